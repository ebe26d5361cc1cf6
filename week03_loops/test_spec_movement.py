"""Movement ops: RESHAPE, EXPAND, PERMUTE, FLIP, PAD, SHRINK, each alone."""


def test_reshape(judge):
    """RESHAPE keeps the elements in row-major order, whatever the shapes are."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [4, 6]}
        a = RESHAPE x : [24]
        b = RESHAPE x : [3, 8]
        c = RESHAPE x : [2, 2, 2, 3]
        d = RESHAPE x : [1, 4, 1, 6, 1]
        e = RESHAPE x : [8, 3]
        return a b c d e
        """,
        {0: range(24)},
    )


def test_reshape_of_scalars(judge):
    """A scalar may be reshaped to ones, and back."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": []}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [1, 1]}
        a = RESHAPE x : [1, 1, 1]
        b = RESHAPE y : []
        c = ADD a b
        return a b c
        """
    )


def test_reshape_of_nothing(judge):
    """Shapes of no elements may be reshaped into one another."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3, 0, 2]}
        a = RESHAPE x : [0]
        b = RESHAPE x : [0, 7]
        c = NEG b
        return a c
        """
    )


def test_expand(judge):
    """EXPAND repeats axes of size 1, and puts new ones in front."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3, 1]}
        k = CONST : {"value": 7, "dtype": "int32"}
        a = EXPAND x : [3, 4]
        b = EXPAND x : [2, 3, 1]
        c = EXPAND x : [2, 3, 5]
        d = EXPAND k : [2, 2]
        e = EXPAND x : [3, 0]
        return a b c d e
        """,
        {0: [1, 2, 3]},
    )


def test_permute(judge):
    """Axis k of PERMUTE is axis axes[k] of its source."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [2, 3, 4]}
        a = PERMUTE x : [2, 0, 1]
        b = PERMUTE x : [1, 0, 2]
        c = PERMUTE x : [0, 1, 2]
        d = PERMUTE x : [2, 1, 0]
        return a b c d
        """,
        {0: range(24)},
    )


def test_flip(judge):
    """FLIP reverses the named axes."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [2, 3, 4]}
        a = FLIP x : [2]
        b = FLIP x : [0, 1]
        c = FLIP x : []
        d = FLIP x : [1, 2, 0]
        return a b c d
        """,
        {0: range(24)},
    )


def test_pad(judge):
    """PAD puts zeros before and after."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [2, 3]}
        b = PARAM : {"slot": 1, "dtype": "bool", "shape": [2]}
        f = PARAM : {"slot": 2, "dtype": "float32", "shape": []}
        a = PAD x : [[1, 0], [0, 2]]
        c = PAD x : [[0, 0], [3, 3]]
        d = PAD b : [[1, 1]]
        e = PAD f : []
        return a c d e
        """,
        {0: range(1, 7), 1: [True, True], 2: 2.5},
    )


def test_shrink(judge):
    """SHRINK takes the box [start, end) of each axis."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [5, 6]}
        a = SHRINK x : [[1, 4], [0, 6]]
        b = SHRINK x : [[4, 5], [2, 3]]
        c = SHRINK x : [[0, 5], [3, 3]]
        d = SHRINK x : [[0, 5], [0, 6]]
        return a b c d
        """,
        {0: range(30)},
    )


def test_every_dtype(judge):
    """Elements of every dtype are moved unchanged."""
    dtypes = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    dtypes += ["float16", "bfloat16", "float32", "float64"]
    lines, outputs = [], []
    for n, dtype in enumerate(dtypes):
        lines += [f'x{n} = PARAM : {{"slot": {n}, "dtype": "{dtype}", "shape": [3, 4]}}']
        lines += [f"a{n} = PERMUTE x{n} : [1, 0]", f"b{n} = FLIP a{n} : [0]"]
        lines += [f"c{n} = PAD b{n} : [[1, 0], [0, 1]]", f"d{n} = SHRINK c{n} : [[0, 4], [1, 4]]"]
        outputs.append(f"d{n}")
    judge.runs("\n".join([*lines, "return " + " ".join(outputs)]), tolerance=0.0)


# PAD's zeros --------------------------------------------------------------------------------


def test_pad_is_zero_behind_exp(judge):
    """EXP2 of PAD's zero is 1: the zero is a value, not something left out."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        p = PAD x : [[2, 1]]
        a = EXP2 p
        return a
        """
    )


def test_pad_after_exp(judge):
    """PAD of EXP2 has zeros, not ones, outside."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        e = EXP2 x
        a = PAD e : [[2, 1]]
        r = RECIP x
        b = PAD r : [[1, 1]]
        return a b
        """
    )


def test_pad_of_nan(judge):
    """Outside, PAD is 0 though the elements inside are NaN and infinite."""
    nan, inf = float("nan"), float("inf")
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        k = CONST : {"value": 1, "dtype": "float32"}
        y = ADD x k
        a = PAD y : [[1, 2]]
        z = CONST : {"value": 0, "dtype": "float32"}
        p = PAD x : [[1, 1]]
        m = MUL p z
        return a m
        """,
        {0: [nan, inf, -inf]},
    )


def test_pad_of_pad(judge):
    """Zeros around zeros."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [2, 2]}
        a = PAD x : [[1, 0], [0, 1]]
        e = EXP2 a
        b = PAD e : [[0, 1], [2, 0]]
        return b
        """
    )


def test_pad_is_not_read(judge):
    """Outside, nothing is read: the array may end at the edge of memory."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4]}
        a = PAD x : [[1000000, 0]]
        s = SHRINK a : [[0, 3]]
        t = PAD x : [[0, 1000000]]
        u = SHRINK t : [[1000001, 1000004]]
        b = ADD s u
        return b
        """
    )


def test_pad_of_nothing(judge):
    """PAD of an empty array is all zeros."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [0, 2]}
        a = PAD x : [[1, 2], [0, 0]]
        k = CONST : {"value": 1, "dtype": "float32"}
        b = ADD a k
        return a b
        """
    )


def test_pad_in_a_condition(judge):
    """PAD of true makes a mask."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [5]}
        t = CONST : {"value": true, "dtype": "bool"}
        r = RESHAPE t : [1]
        e = EXPAND r : [3]
        m = PAD e : [[1, 1]]
        z = CONST : {"value": -1, "dtype": "float32"}
        a = WHERE m x z
        return a
        """
    )
