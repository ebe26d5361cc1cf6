"""Week 2: memory ops, linearization, C text and its runtime."""
