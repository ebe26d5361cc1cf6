"""RANGE and END: loops written by hand."""


def test_loop(judge):
    """A loop that stores element by element."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [10]}
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [10]}
        i = RANGE : {"id": 0, "size": 10}
        p = INDEX x i
        v = LOAD p
        e = EXP2 v
        q = INDEX t i
        s = STORE q e
        loop = END s i
        a = AFTER t loop
        return a
        """
    )


def test_nest(judge):
    """END closes several loops, outermost first."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3, 5]}
        t = ALLOC : {"slot": 0, "dtype": "int32", "shape": [5, 3]}
        i = RANGE : {"id": 0, "size": 3}
        j = RANGE : {"id": 1, "size": 5}
        p = INDEX x i j
        v = LOAD p
        q = INDEX t j i
        s = STORE q v
        loop = END s j i
        a = AFTER t loop
        return a
        """
    )


def test_counter_as_a_value(judge):
    """The counter is an int64 value."""
    judge.runs(
        """
        t = ALLOC : {"slot": 0, "dtype": "int64", "shape": [4, 6]}
        i = RANGE : {"id": 7, "size": 4}
        j = RANGE : {"id": 3, "size": 6}
        k = CONST : {"value": 10, "dtype": "int64"}
        m = MUL i k
        v = ADD m j
        q = INDEX t i j
        s = STORE q v
        loop = END s i j
        a = AFTER t loop
        return a
        """
    )


def test_flat_index(judge):
    """Quotient and remainder of a counter: one loop over a matrix."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4, 6]}
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [24]}
        i = RANGE : {"id": 0, "size": 24}
        six = CONST : {"value": 6, "dtype": "int64"}
        r = FLOORDIV i six
        c = FLOORMOD i six
        p = INDEX x r c
        v = LOAD p
        q = INDEX t i
        s = STORE q v
        loop = END s i
        a = AFTER t loop
        return a
        """
    )


def test_loop_of_rows(judge):
    """An index that is a counter leaves the other axes whole."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4, 3]}
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [4, 3]}
        i = RANGE : {"id": 0, "size": 4}
        three = CONST : {"value": 3, "dtype": "int64"}
        n = NEG i
        r = ADD three n
        p = INDEX x i
        v = LOAD p
        e = ADD v v
        q = INDEX t r
        s = STORE q e
        loop = END s i
        a = AFTER t loop
        return a
        """
    )


def test_size_zero(judge):
    """A loop of no iterations does nothing, a sum over it is 0."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        b = BUFFER : {"slot": 0, "dtype": "float32", "shape": [3]}
        i = RANGE : {"id": 0, "size": 0}
        p = INDEX x i
        v = LOAD p
        q = INDEX b i
        s = STORE q v
        loop = END s i
        a = AFTER b loop
        c = REDUCE v i : {"op": "ADD", "axes": 0}
        return a c
        """
    )


def test_size_one(judge):
    """A loop of one iteration."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [1, 3]}
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [1, 3]}
        i = RANGE : {"id": 0, "size": 1}
        j = RANGE : {"id": 1, "size": 3}
        p = INDEX x i j
        v = LOAD p
        q = INDEX t i j
        s = STORE q v
        loop = END s i j
        a = AFTER t loop
        return a
        """
    )


def test_gate_in_a_loop(judge):
    """A gated LOAD in a loop reads nothing where its gate is false."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4]}
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [8]}
        i = RANGE : {"id": 0, "size": 8}
        two = CONST : {"value": -2, "dtype": "int64"}
        j = ADD i two
        low = CONST : {"value": -1, "dtype": "int64"}
        high = CONST : {"value": 4, "dtype": "int64"}
        g = CMPLT low j
        h = CMPLT j high
        inside = MUL g h
        z = CONST : {"value": 0.5, "dtype": "float32"}
        p = INDEX x j
        v = LOAD p inside z
        q = INDEX t i
        s = STORE q v
        loop = END s i
        a = AFTER t loop
        return a
        """
    )


def test_gated_store_in_a_loop(judge):
    """A gated STORE in a loop: only the even places are written."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [7]}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [7]}
        i = RANGE : {"id": 0, "size": 7}
        two = CONST : {"value": 2, "dtype": "int64"}
        z = CONST : {"value": 1, "dtype": "int64"}
        m = FLOORMOD i two
        even = CMPLT m z
        p = INDEX x i
        v = LOAD p
        q = INDEX b i
        s = STORE q v even
        loop = END s i
        a = AFTER b loop
        return a
        """
    )


def test_accumulator(judge):
    """A running sum kept in storage: each iteration reads what the one before wrote."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [9]}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": []}
        i = RANGE : {"id": 0, "size": 9}
        here = AFTER b i
        old = LOAD here
        p = INDEX x i
        v = LOAD p
        new = ADD old v
        s = STORE b new
        loop = END s i
        a = AFTER b loop
        return a
        """
    )


def test_recurrence(judge):
    """A recurrence: element i from element i − 1, in order."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [9]}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [10]}
        i = RANGE : {"id": 0, "size": 9}
        one = CONST : {"value": 1, "dtype": "int64"}
        j = ADD i one
        three = CONST : {"value": 3, "dtype": "int32"}
        here = AFTER b i
        p = INDEX here i
        old = LOAD p
        m = MUL old three
        q = INDEX x i
        v = LOAD q
        new = ADD m v
        r = INDEX b j
        s = STORE r new
        loop = END s i
        a = AFTER b loop
        return a
        """
    )


def test_two_loops(judge):
    """Two loops in order: the second reads what the first one wrote."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [6]}
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [6]}
        u = ALLOC : {"slot": 1, "dtype": "float32", "shape": [6]}
        i = RANGE : {"id": 0, "size": 6}
        p = INDEX x i
        v = LOAD p
        e = EXP2 v
        q = INDEX t i
        s = STORE q e
        first = END s i
        j = RANGE : {"id": 1, "size": 6}
        five = CONST : {"value": 5, "dtype": "int64"}
        n = NEG j
        r = ADD five n
        done = AFTER t first
        w = INDEX done r
        y = LOAD w
        z = INDEX u j
        o = STORE z y
        second = END o j
        a = AFTER u second
        return a
        """
    )


def test_one_range_in_two_loops(judge):
    """One RANGE may be closed by two ENDs: these are two loops."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [6]}
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [6]}
        u = ALLOC : {"slot": 1, "dtype": "float32", "shape": [6]}
        i = RANGE : {"id": 0, "size": 6}
        p = INDEX x i
        v = LOAD p
        q = INDEX t i
        s = STORE q v
        first = END s i
        done = AFTER t first
        w = INDEX done i
        y = LOAD w
        d = ADD y v
        z = INDEX u i
        o = STORE z d
        second = END o i
        a = AFTER u second
        return a
        """
    )


def test_range_written_twice(judge):
    """Two lines that define equal RANGEs define one, their bounds included."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [6]}
        n = PARAM : {"slot": 1, "dtype": "int64", "shape": [], "range": [0, 6]}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [6]}
        m = NEG n
        k = NEG m
        i = RANGE k : {"id": 0, "size": 6}
        p = INDEX x i
        v = LOAD p
        o = NEG n
        l = NEG o
        j = RANGE l : {"size": 6, "id": 0}
        q = INDEX b j
        s = STORE q v
        loop = END s i
        a = AFTER b loop
        return a
        """
    )


def test_loop_and_tensors(judge):
    """Loops and whole arrays in one program."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4, 4]}
        y = ADD x x
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [4, 4]}
        s0 = STORE t y
        u = ALLOC : {"slot": 1, "dtype": "float32", "shape": [4]}
        i = RANGE : {"id": 0, "size": 4}
        full = AFTER t s0
        p = INDEX full i i
        v = LOAD p
        q = INDEX u i
        s = STORE q v
        loop = END s i
        d = AFTER u loop
        r = RESHAPE d : [4, 1]
        a = MUL r x
        return a d
        """
    )


COUNTED = """
    x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
    b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [1]}
    r = RANGE : {"id": 0, "size": 4}
    k = CONST : {"value": 0, "dtype": "int64"}
    z = MUL r k
    p = INDEX b z
    v = LOAD p
    n = ADD v x
    s = STORE p n
    e = END s r
    a = AFTER b e
    return a
    """


def test_range_that_an_index_does_not_need(judge):
    """A LOAD is done in each turn of a loop that its index names, needed or not."""
    judge.runs(COUNTED)


def test_simplify_keeps_the_turns(judge):
    """So it is after `simplify`, which may find that the index needs no loop."""
    judge.accepts(COUNTED)
