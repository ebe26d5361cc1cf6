"""One step beside the right derivative: what a compiler with such a slip gets wrong."""


def test_permute_of_axes_of_one_size(judge):
    """The cotangent of PERMUTE goes back, not on: the shape alone does not tell."""
    judge.differentiates(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [2, 2, 2]}
        w = PARAM : {"slot": 1, "dtype": "float32", "shape": [2, 2, 2]}
        p = PERMUTE x : [1, 2, 0]
        q = MUL p w
        y = REDUCE q : {"op": "ADD", "axes": 3}
        return y
        """,
        inputs={0: [[[1, 2], [3, 4]], [[5, 6], [7, 8]]], 1: [[[1, 9], [2, 8]], [[3, 7], [4, 6]]]},
    )
