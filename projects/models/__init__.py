"""Parts of real networks as programs. PARAM slots are numbered in the order of `shapes()`."""

from projects.models.classifier import Classifier, digits_classifier
from projects.models.resnet import ResidualBlock, resnet_block
from projects.models.transformer import Transformer, rotary_tables, transformer_block

__all__ = [
    "Classifier",
    "ResidualBlock",
    "Transformer",
    "digits_classifier",
    "resnet_block",
    "rotary_tables",
    "transformer_block",
]
