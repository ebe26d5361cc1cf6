"""Arrays, their shapes, and how a program meets its caller: inputs by slot, outputs in order."""


def test_scalars(judge):
    """Arrays of shape [] have one element."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": []}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": []}
        a = ADD x y
        return a
        """
    )


def test_broadcast_scalar(judge):
    """A scalar meets every element."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3, 5]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": []}
        k = CONST : {"value": 0.5, "dtype": "float32"}
        a = MUL x y
        b = MAX k a
        return b
        """
    )


def test_broadcast_axes(judge):
    """Axes of size 1 grow, and missing axes come in front, as in NumPy."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [4, 1, 5]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [3, 1]}
        z = PARAM : {"slot": 2, "dtype": "int32", "shape": [5]}
        a = ADD x y
        b = MUL y z
        c = CMPLT a b
        d = WHERE c x z
        return a b c d
        """
    )


def test_outer_product(judge):
    """A column and a row make a table."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float64", "shape": [7, 1]}
        y = PARAM : {"slot": 1, "dtype": "float64", "shape": [1, 11]}
        a = MUL x y
        return a
        """
    )


def test_broadcast_of_shared_value(judge):
    """One value may be used at its own shape and at a larger one."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3, 1]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [1, 4]}
        a = EXP2 x
        b = ADD a y
        c = MUL a a
        d = ADD b c
        return a c d
        """
    )


def test_broadcast_condition(judge):
    """The condition of WHERE broadcasts, and so do its sides."""
    judge.runs(
        """
        c = PARAM : {"slot": 0, "dtype": "bool", "shape": [2, 1, 1]}
        x = PARAM : {"slot": 1, "dtype": "int16", "shape": [3, 1]}
        y = PARAM : {"slot": 2, "dtype": "int16", "shape": [4]}
        a = WHERE c x y
        return a
        """
    )


def test_sizes_of_one(judge):
    """Axes of size 1 stay axes."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [1, 1, 1]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [1]}
        a = ADD x y
        b = NEG y
        return a b
        """
    )


def test_empty_arrays(judge):
    """Arrays with a size of 0 have no elements; the others are computed all the same."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [0]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [3, 0, 2]}
        z = PARAM : {"slot": 2, "dtype": "float32", "shape": [2]}
        a = EXP2 x
        b = ADD y z
        c = NEG z
        return a b c x
        """
    )


def test_empty_by_broadcast(judge):
    """A size of 1 broadcast with 0 is 0."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [4, 1]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [0]}
        a = ADD x y
        return a x
        """
    )


def test_many_axes(judge):
    """Eight axes are as good as two."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [2, 1, 2, 1, 3, 1, 2, 1]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [3, 1, 2, 1, 2, 1, 5]}
        a = ADD x y
        return a
        """
    )


def test_odd_sizes(judge):
    """Sizes that no vector length divides."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [1009]}
        y = PARAM : {"slot": 1, "dtype": "uint8", "shape": [7, 13]}
        a = MUL x x
        b = ADD y y
        return a b
        """
    )


def test_large_array(judge):
    """A million elements."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [1000, 1000]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [1000]}
        a = ADD x y
        return a
        """,
        draws=1,
    )


# Slots and outputs --------------------------------------------------------------------------


def test_several_outputs(judge):
    """Outputs of different shapes and dtypes, in the order of return."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [2, 4]}
        a = CMPLT x y
        b = ADD x x
        c = CAST b : "int8"
        d = MAX y b
        return d a b c
        """,
        {0: [1, -2, 3.5, 0], 1: [[0, 5, 2, 2], [9, -9, 7, 7]]},
    )


def test_output_twice(judge):
    """An output may be returned twice: both arrays are filled."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [5]}
        a = EXP2 x
        return a a
        """
    )


def test_input_returned(judge):
    """An input may be an output, also twice: it is copied."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int16", "shape": [5]}
        y = PARAM : {"slot": 1, "dtype": "bool", "shape": []}
        a = NEG x
        return x a x y
        """
    )


def test_inputs_exchanged(judge):
    """Two inputs returned in the other order."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [3]}
        return y x
        """
    )


def test_constant_returned(judge):
    """A constant may be an output, of a program without inputs."""
    judge.runs(
        """
        a = CONST : {"value": 3, "dtype": "int64"}
        b = CONST : {"value": 0.25, "dtype": "bfloat16"}
        c = ADD a a
        return c a b a
        """
    )


def test_absent_slots(judge):
    """Slots may have gaps, and the pointer of an absent slot may be null."""
    judge.runs(
        """
        x = PARAM : {"slot": 5, "dtype": "float32", "shape": [3]}
        y = PARAM : {"slot": 2, "dtype": "float32", "shape": [3]}
        n = NEG y
        a = ADD x n
        return a
        """
    )


def test_unused_input(judge):
    """An input that the simplified program does not need does no harm."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [3]}
        z = CONST : {"value": 0, "dtype": "int32"}
        p = MUL y z
        a = ADD x p
        return a
        """
    )


def test_output_of_output(judge):
    """An output may be computed from another one."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [6]}
        a = EXP2 x
        b = ADD a x
        c = MUL b a
        return c b a
        """
    )


def test_many_inputs_and_outputs(judge):
    """Forty inputs and forty outputs."""
    lines = [f'x{n} = PARAM : {{"slot": {n}, "dtype": "int32", "shape": [3]}}' for n in range(40)]
    lines += [f"y{n} = MAX x{n} x{(n * 7 + 1) % 40}" for n in range(40)]
    judge.runs("\n".join([*lines, "return " + " ".join(f"y{n}" for n in range(40))]))


def test_ranges_hold(judge):
    """Where a PARAM's range leaves out 0, the guard of a division may go; the value may not."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [], "range": [1, 9]}
        q = FLOORDIV x y
        r = FLOORMOD x y
        return q r
        """,
        [{0: -7, 1: 2}, {0: 7, 1: 9}, {0: -2147483648, 1: 1}],
    )
