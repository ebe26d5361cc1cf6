"""Weeks 7 and 8: many threads, on a CPU and on a GPU."""
