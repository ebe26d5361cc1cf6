"""Reading storage: INDEX and LOAD."""


def test_load_whole(judge):
    """LOAD of an input reads it whole, as its name alone does."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3, 4]}
        v = LOAD x
        a = ADD v x
        return a v
        """
    )


def test_scalar_index(judge):
    """A scalar index removes its axis; axes without an index stay whole."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3, 4, 5]}
        i = CONST : {"value": 2, "dtype": "int32"}
        j = CONST : {"value": 3, "dtype": "int64"}
        k = CONST : {"value": 0, "dtype": "uint8"}
        p = INDEX x i
        q = INDEX x i j
        r = INDEX x i j k
        a = LOAD p
        b = LOAD q
        c = LOAD r
        return a b c
        """
    )


def test_input_as_index(judge):
    """An index may be an input, of any integer dtype."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [7]}
        i = PARAM : {"slot": 1, "dtype": "int8", "shape": [], "range": [0, 6]}
        j = PARAM : {"slot": 2, "dtype": "uint64", "shape": [], "range": [0, 6]}
        p = INDEX x i
        q = INDEX x j
        a = LOAD p
        b = LOAD q
        return a b
        """,
        [{0: range(7), 1: 0, 2: 6}, {0: range(7), 1: 5, 2: 1}],
    )


def test_array_index(judge):
    """An index of shape (n,) makes its axis n: rows are picked, in any order, also twice."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [5, 3]}
        i = PARAM : {"slot": 1, "dtype": "int64", "shape": [6]}
        p = INDEX x i
        a = LOAD p
        return a
        """,
        {0: [[3 * r + c for c in range(3)] for r in range(5)], 1: [4, 0, 0, 2, 4, 1]},
    )


def test_two_array_indices(judge):
    """Two array indices pick rows and columns, each for itself."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [4, 5]}
        i = PARAM : {"slot": 1, "dtype": "int64", "shape": [3]}
        j = PARAM : {"slot": 2, "dtype": "int16", "shape": [2]}
        p = INDEX x i j
        a = LOAD p
        return a
        """,
        {0: [[10 * r + c for c in range(5)] for r in range(4)], 1: [3, 0, 1], 2: [4, 2]},
    )


def test_scalar_and_array_index(judge):
    """Scalar and array indices mixed, and an axis left whole."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3, 4, 2]}
        i = PARAM : {"slot": 1, "dtype": "int64", "shape": [3]}
        k = CONST : {"value": 1, "dtype": "int64"}
        p = INDEX x k i
        q = INDEX x i k
        a = LOAD p
        b = LOAD q
        return a b
        """,
        {0: range(24), 1: [2, 0, 1]},
    )


def test_index_of_index(judge):
    """An INDEX of an INDEX takes the axes that are left."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3, 4, 2]}
        i = CONST : {"value": 2, "dtype": "int64"}
        j = PARAM : {"slot": 1, "dtype": "int64", "shape": [3]}
        p = INDEX x i
        q = INDEX p j
        r = INDEX q j
        a = LOAD q
        b = LOAD r
        return a b
        """,
        {0: range(24), 1: [2, 0, 1]},
    )


def test_computed_index(judge):
    """An index may be any expression over integers."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [8]}
        i = PARAM : {"slot": 1, "dtype": "int32", "shape": [5]}
        n = CONST : {"value": 8, "dtype": "int32"}
        k = CONST : {"value": 3, "dtype": "int32"}
        m = MUL i k
        j = FLOORMOD m n
        p = INDEX x j
        a = LOAD p
        return a
        """,
        {0: range(8), 1: [-100, -1, 0, 5, 77]},
    )


def test_loaded_index(judge):
    """What was loaded may be an index: a chain of look-ups."""
    judge.runs(
        """
        t = PARAM : {"slot": 0, "dtype": "int64", "shape": [6]}
        p = INDEX t t
        u = LOAD p
        q = INDEX t u
        v = LOAD q
        return u v
        """,
        {0: [3, 5, 1, 0, 2, 4]},
    )


def test_gate(judge):
    """Where the gate is false LOAD gives its third source."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [4]}
        g = PARAM : {"slot": 1, "dtype": "bool", "shape": [4]}
        h = PARAM : {"slot": 2, "dtype": "bool", "shape": []}
        y = PARAM : {"slot": 3, "dtype": "int32", "shape": [4]}
        k = CONST : {"value": -9, "dtype": "int32"}
        a = LOAD x g k
        b = LOAD x h y
        c = LOAD x g y
        return a b c
        """,
        [
            {0: [1, 2, 3, 4], 1: [True, False, True, False], 2: False, 3: [5, 6, 7, 8]},
            {0: [1, 2, 3, 4], 1: [False, False, True, True], 2: True, 3: [5, 6, 7, 8]},
        ],
    )


def test_gate_keeps_out_of_range_away(judge):
    """Where the gate is false the index may be out of range: nothing is read there."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4]}
        i = PARAM : {"slot": 1, "dtype": "int64", "shape": [6]}
        n = CONST : {"value": 4, "dtype": "int64"}
        z = CONST : {"value": -1, "dtype": "int64"}
        e = CONST : {"value": 0.5, "dtype": "float32"}
        below = CMPLT i n
        above = CMPLT z i
        inside = MUL below above
        p = INDEX x i
        a = LOAD p inside e
        return a
        """,
        {0: [10, 11, 12, 13], 1: [0, -1, 3, 4, 1000000000000, -1000000000000]},
    )


def test_empty_index(judge):
    """An index of no elements picks nothing."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [4, 2]}
        i = PARAM : {"slot": 1, "dtype": "int64", "shape": [0]}
        p = INDEX x i
        a = LOAD p
        b = ADD a a
        return b
        """,
        {0: range(8), 1: []},
    )
