"""Writing storage: ALLOC, STORE and BUFFER."""


# ALLOC and STORE ----------------------------------------------------------------------------


def test_store_and_load(judge):
    """What is stored in an ALLOC is what is read from it afterwards."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3, 4]}
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [3, 4]}
        e = EXP2 x
        s = STORE t e
        u = AFTER t s
        v = LOAD u
        a = ADD v u
        return a
        """
    )


def test_store_of_every_dtype(judge):
    """ALLOC and BUFFER hold every dtype."""
    dtypes = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    dtypes += ["float16", "bfloat16", "float32", "float64"]
    lines, outputs = [], []
    for n, dtype in enumerate(dtypes):
        shape = f'{{"slot": {n}, "dtype": "{dtype}", "shape": [5]}}'
        lines += [f"x{n} = PARAM : {shape}", f"t{n} = ALLOC : {shape}", f"b{n} = BUFFER : {shape}"]
        lines += [f"s{n} = STORE t{n} x{n}", f"u{n} = AFTER t{n} s{n}", f"m{n} = MAX u{n} x{n}"]
        lines += [f"r{n} = STORE b{n} m{n}", f"v{n} = AFTER b{n} r{n}"]
        outputs.append(f"v{n}")
    judge.runs("\n".join([*lines, "return " + " ".join(outputs)]))


def test_two_allocs(judge):
    """ALLOCs of different slots are different storage, and need not be of one size."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [5]}
        y = PARAM : {"slot": 1, "dtype": "int8", "shape": [3]}
        t = ALLOC : {"slot": 0, "dtype": "int32", "shape": [5]}
        u = ALLOC : {"slot": 1, "dtype": "int8", "shape": [3]}
        s = STORE t x
        r = STORE u y
        a = AFTER t s r
        b = AFTER u s r
        return a b
        """
    )


def test_store_part(judge):
    """STORE to an INDEX writes a part: one element, a row, a grid."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        r = PARAM : {"slot": 1, "dtype": "int32", "shape": [3]}
        g = PARAM : {"slot": 2, "dtype": "int32", "shape": [2, 2]}
        i = PARAM : {"slot": 3, "dtype": "int64", "shape": [2]}
        one = CONST : {"value": 1, "dtype": "int64"}
        three = CONST : {"value": 3, "dtype": "int64"}
        two = CONST : {"value": 2, "dtype": "int64"}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [4, 3]}
        p = INDEX b one two
        q = INDEX b three
        w = INDEX b i i
        s = STORE p x
        t = STORE q r
        u = STORE w g
        a = AFTER b s t u
        return a
        """,
        {0: 5, 1: [6, 7, 8], 2: [[1, 2], [3, 4]], 3: [2, 0]},
    )


def test_scatter(judge):
    """STORE through an array index scatters: each element to its place."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4]}
        i = PARAM : {"slot": 1, "dtype": "int32", "shape": [4]}
        b = BUFFER : {"slot": 0, "dtype": "float32", "shape": [7]}
        p = INDEX b i
        s = STORE p x
        a = AFTER b s
        return a
        """,
        {0: [1, 2, 3, 4], 1: [6, 0, 3, 2]},
    )


def test_store_gate(judge):
    """Where its gate is false, STORE writes nothing, whatever the index is."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4]}
        i = PARAM : {"slot": 1, "dtype": "int64", "shape": [4]}
        g = PARAM : {"slot": 2, "dtype": "bool", "shape": [4]}
        h = PARAM : {"slot": 3, "dtype": "bool", "shape": []}
        b = BUFFER : {"slot": 0, "dtype": "float32", "shape": [4]}
        c = BUFFER : {"slot": 1, "dtype": "float32", "shape": [4]}
        p = INDEX b i
        s = STORE p x g
        t = STORE c x h
        a = AFTER b s
        d = AFTER c t
        return a d
        """,
        [
            {
                0: [1, 2, 3, 4],
                1: [0, 1000000000000, 3, -1],
                2: [True, False, True, False],
                3: False,
            },
            {0: [1, 2, 3, 4], 1: [2, 1, 99, 0], 2: [True, True, False, True], 3: True},
        ],
    )


def test_store_broadcast_value(judge):
    """A value is broadcast by an op before it is stored: STORE itself does not."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [1, 4]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [3, 1]}
        t = ALLOC : {"slot": 2, "dtype": "float32", "shape": [3, 4]}
        v = ADD x y
        s = STORE t v
        a = AFTER t s
        return a
        """
    )


def test_halves(judge):
    """Two STOREs fill the halves of one ALLOC."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        i = PARAM : {"slot": 1, "dtype": "int64", "shape": [3]}
        k = CONST : {"value": 3, "dtype": "int64"}
        j = ADD i k
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [6]}
        p = INDEX t i
        q = INDEX t j
        n = NEG x
        s = STORE p x
        r = STORE q n
        a = AFTER t s r
        e = EXP2 a
        return e a
        """,
        {0: [1, 2, 3], 1: [0, 1, 2]},
    )


def test_large_alloc(judge):
    """An ALLOC of nine megabytes is not put on the stack."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float64", "shape": [1100, 1100]}
        t = ALLOC : {"slot": 0, "dtype": "float64", "shape": [1100, 1100]}
        s = STORE t x
        u = AFTER t s
        a = ADD u u
        return a
        """,
        draws=1,
        special=False,
    )


# BUFFER -------------------------------------------------------------------------------------


def test_buffer_is_zero_at_first(judge):
    """A BUFFER is zero at first; a PARAM of the same slot is something else."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        b = BUFFER : {"slot": 0, "dtype": "float32", "shape": [3]}
        c = BUFFER : {"slot": 7, "dtype": "bool", "shape": [2, 2]}
        a = ADD b x
        return a b c
        """
    )


def test_buffer_read_before_written(judge):
    """The value that was read stays, though the BUFFER is written afterwards."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3]}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [3]}
        old = LOAD b
        new = ADD old x
        s = STORE b new
        a = AFTER b s
        return a old
        """
    )


def test_buffer_reversed_in_place(judge):
    """A value read whole is stored back in another order: no element is read too late."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [4]}
        i = PARAM : {"slot": 1, "dtype": "int64", "shape": [4]}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [4]}
        s = STORE b x
        first = AFTER b s
        p = INDEX first i
        v = LOAD p
        waited = AFTER b s v
        t = STORE waited v
        second = AFTER b t
        return second
        """,
        {0: [1, 2, 3, 4], 1: [3, 2, 1, 0]},
    )


def test_buffer_reversed_without_after(judge):
    """A value depends on all that it reads: storing it back in another order is no race."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [4]}
        i = PARAM : {"slot": 1, "dtype": "int64", "shape": [4]}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [4]}
        s = STORE b x
        first = AFTER b s
        p = INDEX first i
        v = LOAD p
        t = STORE first v
        second = AFTER b t
        return second
        """,
        {0: [1, 2, 3, 4], 1: [3, 2, 1, 0]},
    )


def test_buffer_of_the_whole_program(judge):
    """A BUFFER named in two places is one BUFFER."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [2]}
        b = BUFFER : {"slot": 3, "dtype": "int32", "shape": [2]}
        s = STORE b x
        again = BUFFER : {"slot": 3, "dtype": "int32", "shape": [2]}
        a = AFTER again s
        return a
        """
    )


def test_index_overwritten(judge):
    """An index that is storage counts as it was at the INDEX, and is storage all the same."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3]}
        t = PARAM : {"slot": 1, "dtype": "float32", "shape": [3]}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [3]}
        k = CONST : {"value": 3, "dtype": "int32"}
        m = FLOORMOD x k
        s = STORE b m
        first = AFTER b s
        p = INDEX t first
        waited = AFTER first p
        n = NEG m
        u = STORE waited n
        v = LOAD p
        second = AFTER b u
        return v second
        """
    )


def test_stored_value_overwritten(judge):
    """So does a stored value that is storage."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3]}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [3]}
        c = BUFFER : {"slot": 1, "dtype": "int32", "shape": [3]}
        s = STORE b x
        first = AFTER b s
        copy = STORE c first
        waited = AFTER first copy
        n = NEG x
        u = STORE waited n
        second = AFTER b u
        a = AFTER c copy
        return a second
        """
    )


CALLS_THAT_HOLD = """
    p = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
    u = ALLOC : {"slot": 0, "dtype": "float32", "shape": [3]}
    f = STORE u p
    g = AFTER u f
    body = LOAD g
    x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
    y = PARAM : {"slot": 1, "dtype": "float32", "shape": [3]}
    t = ALLOC : {"slot": 0, "dtype": "float32", "shape": []}
    k = CONST : {"value": 3, "dtype": "float32"}
    s = STORE t k
    a = AFTER t s
    c = CALL body x
    d = CALL body y
    q = ADD c d
    r = MUL q a
    return c d r
    """


def test_calls_that_hold(judge):
    """Each CALL has ALLOCs of its own, whatever slots the body and the program number them by."""
    judge.runs(CALLS_THAT_HOLD)


def test_simplify_calls_that_hold(judge):
    """So it is in what `simplify` prints."""
    judge.accepts(CALLS_THAT_HOLD)


def test_call_that_stores(judge):
    """A body may STORE into the place that it is given."""
    judge.runs(
        """
        p = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        v = PARAM : {"slot": 1, "dtype": "float32", "shape": [3]}
        d = ADD v v
        body = STORE p d
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        b = BUFFER : {"slot": 0, "dtype": "float32", "shape": [3]}
        c = CALL body b x
        a = AFTER b c
        return a
        """
    )
