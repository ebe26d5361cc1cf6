"""Training language models: what `uopc train` does, as a library."""
