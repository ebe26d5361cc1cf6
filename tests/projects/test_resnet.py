import numpy as np
import pytest

from projects.models import ResidualBlock, resnet_block
from tests.projects.compiled import run
from week01_uops.dtypes import float32, float64

torch = pytest.importorskip("torch", reason="PyTorch is the reference of the block")
nn = torch.nn


class Block(nn.Module):
    """torchvision's BasicBlock, written down."""

    def __init__(self, sizes):
        super().__init__()
        self.conv1 = nn.Conv2d(sizes.channels, sizes.filters, 3, sizes.stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(sizes.filters)
        self.conv2 = nn.Conv2d(sizes.filters, sizes.filters, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(sizes.filters)
        self.downsample = nn.Identity()
        if sizes.downsamples:
            shortcut = nn.Conv2d(sizes.channels, sizes.filters, 1, sizes.stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(sizes.filters))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + self.downsample(x))


def block_of(sizes, dtype):
    """A block in which every number is random."""
    torch.manual_seed(0)
    block = Block(sizes).to(dtype).eval()
    for name, value in block.state_dict().items():
        if "running_var" in name:
            value.uniform_(0.5, 2)
        elif "bn" in name or "downsample.1" in name:
            value.copy_(torch.randn_like(value.double()))
    return block


@pytest.mark.parametrize(("dtype", "tolerance"), [(float32, 2e-5), (float64, 1e-11)])
@pytest.mark.parametrize(
    "sizes",
    [
        ResidualBlock(),
        ResidualBlock(filters=128, stride=2),
        ResidualBlock(1, 3, 7, 5, stride=2),
        ResidualBlock(2, 4, 5, 6),
    ],
    ids=["same shape", "downsampling", "odd size", "more channels"],
)
def test_block_is_pytorchs(sizes, dtype, tolerance):
    block = block_of(sizes, getattr(torch, dtype.name))
    x = np.random.default_rng(0).standard_normal(sizes.shapes()["x"]).astype(dtype.numpy)
    state = block.state_dict()
    inputs = [x, *(state[name].numpy() for name in sizes.shapes() if name != "x")]
    with torch.no_grad():
        expected = block(torch.from_numpy(x)).numpy()
    result = run(resnet_block(sizes, dtype), inputs)
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
