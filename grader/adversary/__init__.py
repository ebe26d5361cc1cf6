"""The adversary suite: compilers that are wrong on purpose, and right ones that must pass."""
