"""Handwritten digits: a classifier trained with PyTorch, exported, and run as a program."""
