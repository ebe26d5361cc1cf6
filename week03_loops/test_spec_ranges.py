"""RANGEs that are reduced, RANGEs with bounds, and RANGEs that are left open."""


def test_reduce_over_a_range(judge):
    """REDUCE with RANGE sources reduces over those loops."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [5, 7]}
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [5]}
        i = RANGE : {"id": 0, "size": 5}
        k = RANGE : {"id": 1, "size": 7}
        p = INDEX x i k
        v = LOAD p
        r = REDUCE v k : {"op": "ADD", "axes": 0}
        q = INDEX t i
        s = STORE q r
        loop = END s i
        a = AFTER t loop
        return a
        """
    )


def test_reduce_alone(judge):
    """A reduction over loops is a value, also without a loop around it."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [5, 7]}
        i = RANGE : {"id": 0, "size": 5}
        k = RANGE : {"id": 1, "size": 7}
        p = INDEX x i k
        v = LOAD p
        a = REDUCE v i k : {"op": "ADD", "axes": 0}
        b = REDUCE v k i : {"op": "MAX", "axes": 0}
        c = ADD a b
        return a b c
        """
    )


def test_matrix_product(judge):
    """A matrix product, loop by loop."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4, 6]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [6, 5]}
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [4, 5]}
        i = RANGE : {"id": 0, "size": 4}
        j = RANGE : {"id": 1, "size": 5}
        k = RANGE : {"id": 2, "size": 6}
        p = INDEX x i k
        q = INDEX y k j
        u = LOAD p
        v = LOAD q
        m = MUL u v
        r = REDUCE m k : {"op": "ADD", "axes": 0}
        w = INDEX t i j
        s = STORE w r
        loop = END s i j
        a = AFTER t loop
        return a
        """
    )


def test_bound(judge):
    """A RANGE with a source ends at the smaller of size and bound; a negative bound is 0."""
    judge.runs(
        """
        n = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        b = BUFFER : {"slot": 0, "dtype": "int64", "shape": [6]}
        i = RANGE n : {"id": 0, "size": 6}
        one = CONST : {"value": 1, "dtype": "int64"}
        v = ADD i one
        q = INDEX b i
        s = STORE q v
        loop = END s i
        a = AFTER b loop
        return a
        """,
        [{0: 4}, {0: 0}, {0: -3}, {0: 6}, {0: 1000}],
    )


def test_triangular(judge):
    """The bound of an inner loop may be the counter of an outer one."""
    judge.runs(
        """
        b = BUFFER : {"slot": 0, "dtype": "int64", "shape": [5, 5]}
        i = RANGE : {"id": 0, "size": 5}
        j = RANGE i : {"id": 1, "size": 5}
        one = CONST : {"value": 1, "dtype": "int64"}
        v = ADD i one
        q = INDEX b i j
        s = STORE q v
        loop = END s i j
        a = AFTER b loop
        return a
        """
    )


def test_bounded_sum(judge):
    """A reduction over a bounded loop: the first n terms, the identity for none."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [6]}
        n = PARAM : {"slot": 1, "dtype": "uint8", "shape": []}
        k = RANGE n : {"id": 0, "size": 6}
        p = INDEX x k
        v = LOAD p
        a = REDUCE v k : {"op": "ADD", "axes": 0}
        b = REDUCE v k : {"op": "MAX", "axes": 0}
        return a b
        """,
        [{0: [1, 2, 4, 8, 16, 32], 1: n} for n in (0, 1, 4, 6, 200)],
    )


def test_prefix_sums(judge):
    """A reduction whose bound is an outer counter: prefix sums."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [8]}
        t = ALLOC : {"slot": 0, "dtype": "int32", "shape": [8]}
        i = RANGE : {"id": 0, "size": 8}
        one = CONST : {"value": 1, "dtype": "int64"}
        n = ADD i one
        k = RANGE n : {"id": 1, "size": 8}
        p = INDEX x k
        v = LOAD p
        r = REDUCE v k : {"op": "ADD", "axes": 0}
        q = INDEX t i
        s = STORE q r
        loop = END s i
        a = AFTER t loop
        return a
        """
    )


# What is refused ----------------------------------------------------------------------------

BASE = """x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [3]}
i = RANGE : {"id": 0, "size": 3}
p = INDEX x i
v = LOAD p
q = INDEX t i
s = STORE q v"""


def test_open_range(judge):
    """A RANGE that nothing closes is an E4xx."""
    judge.rejects(f"{BASE}\na = AFTER t s\nreturn a", "E4")
    judge.rejects(f"{BASE}\nreturn v", "E4")
    judge.rejects(f"{BASE}\nreturn i", "E4")


def test_closed_twice(judge):
    """A RANGE is closed once by an END."""
    judge.rejects(f"{BASE}\ne = END s i i\na = AFTER t e\nreturn a", "E4", line=9)


def test_end_of_a_value(judge):
    """END takes an effect and RANGEs."""
    judge.rejects(f"{BASE}\ne = END v i\nreturn x", "E4", line=9)
    judge.rejects(f"{BASE}\ne = END s p\nreturn x", "E4", line=9)
    judge.rejects(f"{BASE}\ne = END s\nreturn x", "E3", line=9)


def test_range_arguments(judge):
    """A RANGE has an id and a size that are not negative, and an integer scalar as bound."""
    for line in [
        'r = RANGE : {"id": 0, "size": -1}',
        'r = RANGE : {"id": -1, "size": 3}',
        'r = RANGE : {"id": 0}',
        'r = RANGE : {"id": 0, "size": 3.0}',
        "r = RANGE : 3",
    ]:
        judge.rejects(f"{BASE}\n{line}\nreturn x", "E3", line=9)
    judge.rejects(f'{BASE}\nr = RANGE v : {{"id": 1, "size": 3}}\nreturn x', "E4", line=9)


def test_axes_and_ranges(judge):
    """A REDUCE over RANGEs has axes 0."""
    judge.rejects(f'{BASE}\nr = REDUCE x i : {{"op": "ADD", "axes": 1}}\nreturn x', "E4", line=9)
