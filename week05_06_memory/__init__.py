"""Weeks 5 and 6: the memory hierarchy, and schedules."""
