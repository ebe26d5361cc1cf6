"""Results in the forms that other programs read, and the points of the course's scale."""
