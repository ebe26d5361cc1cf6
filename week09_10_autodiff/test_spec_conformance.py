"""The conformance suite of week 9, one test a file."""


def test_conformance(judge, conformance_file):
    """Every program of the conformance suite has its declared outcome."""
    judge.conforms(conformance_file)
