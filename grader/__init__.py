"""The grader: submissions are filters, text in and source out."""
