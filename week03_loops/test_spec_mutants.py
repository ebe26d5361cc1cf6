"""One step beside the right move: what a compiler with such a slip gets wrong."""


def test_two_permutes(judge):
    """Axes of one size: which of two permutations comes first is seen in the elements alone."""
    text = """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3, 3, 3]}
        p = PERMUTE x : [1, 0, 2]
        q = PERMUTE p : [0, 2, 1]
        r = PERMUTE q : [0, 2, 1]
        s = PERMUTE r : [2, 0, 1]
        return q s
        """
    judge.accepts(text)
    judge.runs(text, {0: range(27)})


def test_two_shrinks(judge):
    """The second SHRINK counts from where the first one begins."""
    text = """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [9, 5]}
        a = SHRINK x : [[2, 8], [1, 5]]
        b = SHRINK a : [[1, 4], [0, 3]]
        return b
        """
    judge.accepts(text)
    judge.runs(text, {0: range(45)})
