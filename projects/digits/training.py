"""Training the classifier with PyTorch on scikit-learn's bundled digits (1797 images, 8 × 8)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

from projects.models import Classifier

HELD_OUT = 360
"""The last images, a fifth of them, are not trained on."""


class Network(nn.Module):
    """The network of `projects.models.digits_classifier`, weights under the same names."""

    def __init__(self, sizes: Classifier) -> None:
        super().__init__()
        first, second = sizes.filters
        self.conv1 = nn.Conv2d(1, first, 3, padding=1)
        self.conv2 = nn.Conv2d(first, second, 3, padding=1)
        self.head = nn.Linear(second * (sizes.size // 2) ** 2, sizes.classes)

    def forward(self, images: Tensor) -> Tensor:
        """(n, 1, size, size) → logits (n, classes)."""
        x = functional.relu(self.conv2(functional.relu(self.conv1(images))))
        logits: Tensor = self.head(functional.max_pool2d(x, 2).flatten(1))
        return logits


def digits() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Images (n, 1, 8, 8) in [0, 1] and their labels (n)."""
    bunch = load_digits()
    images = (bunch.images / 16).astype(np.float32)[:, None]
    return images, bunch.target.astype(np.int64)


def train(epochs: int = 20, seed: int = 0, batch: int = 32) -> Network:
    """A network trained with Adam on all but the held-out images; the seed settles everything."""
    torch.manual_seed(seed)
    network = Network(Classifier())
    images, labels = (torch.from_numpy(array[:-HELD_OUT]) for array in digits())
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for start in range(0, len(images), batch):
            chosen = order[start : start + batch]
            loss = functional.cross_entropy(network(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
    return network.eval()
