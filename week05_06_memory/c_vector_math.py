"""Functions of float32 as polynomials."""

MATH = {}
