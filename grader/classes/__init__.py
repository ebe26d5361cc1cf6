"""Grading a class: many submissions, one after the other or side by side, and never one for all."""
