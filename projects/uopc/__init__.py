"""uopc: the reference compiler on the command line."""
