"""Weeks 9 and 10: derivatives, tensors, and a language model trained with them."""
