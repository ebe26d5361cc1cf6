"""Week 1: one node, its types, patterns, rewriting and evaluation."""
