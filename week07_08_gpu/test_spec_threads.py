"""Threads: right results on any number of them, with the same bits wherever a sum stays whole."""

from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent.parent / "week03_loops" / "programs"
COUNTS = (1, 2, 3, 4)


def param(slot, *shape, dtype="float32"):
    return f'PARAM : {{"slot": {slot}, "dtype": "{dtype}", "shape": {list(shape)}}}'


def const(value, dtype="float32"):
    return f'CONST : {{"value": {value}, "dtype": "{dtype}"}}'


def storage(op, *shape, dtype="float32", slot=0):
    return f'{op} : {{"slot": {slot}, "dtype": "{dtype}", "shape": {list(shape)}}}'


def loop(number, size, kind=None):
    said = "" if kind is None else f', "kind": "{kind}"'
    return f'RANGE : {{"id": {number}, "size": {size}{said}}}'


def total(x, op="ADD", axes=1):
    return f'REDUCE {x} : {{"op": "{op}", "axes": {axes}}}'


def product(m, k, n):
    """a[m, k] @ b[k, n]."""
    return f"""
        a = {param(0, m, k)}
        b = {param(1, k, n)}
        at = PERMUTE a : [1, 0]
        left = RESHAPE at : [{k}, {m}, 1]
        right = RESHAPE b : [{k}, 1, {n}]
        terms = MUL left right
        c = {total("terms")}
        return c
        """


def softmax(m, n):
    """Of each row of x[m, n]."""
    return f"""
        x = {param(0, m, n)}
        xt = PERMUTE x : [1, 0]
        top = {total("xt", "MAX")}
        high = RESHAPE top : [{m}, 1]
        low = NEG high
        d = ADD x low
        scale = {const(1.442695)}
        s = MUL d scale
        e = EXP2 s
        et = PERMUTE e : [1, 0]
        sum = {total("et")}
        column = RESHAPE sum : [{m}, 1]
        part = RECIP column
        y = MUL e part
        return y
        """


def test_elements(judge):
    """A long elementwise program."""
    judge.runs(
        f"""
        x = {param(0, 200003)}
        half = {const(0.5)}
        h = MUL x half
        e = EXP2 h
        y = MUL e x
        return y
        """,
        draws=1,
        threads=COUNTS,
    )


@pytest.mark.parametrize(
    ("m", "k", "n"), [(128, 96, 160), (331, 64, 16), (4, 64, 2048), (67, 131, 101)]
)
def test_product(judge, m, k, n):
    """A matrix product with many panels, few panels, few rows, and sizes that divide nothing."""
    judge.runs(product(m, k, n), draws=1, threads=COUNTS)


def test_rows(judge):
    """Each row on one thread, with what it holds for itself."""
    judge.runs(softmax(96, 700), draws=1, threads=COUNTS)


def test_few_long_rows(judge):
    """Rows that are longer than what a thread's stack should hold."""
    judge.runs(softmax(8, 30000), draws=1, threads=COUNTS)


@pytest.mark.parametrize("op", ["ADD", "MAX"])
def test_reduction_of_everything(judge, op):
    """One result: threads share a reduction; its parts may depend on their number."""
    judge.runs(
        f"""
        x = {param(0, 300, 1000)}
        s = {total("x", op, 2)}
        return s
        """,
        draws=1,
        threads=COUNTS,
        same_bits=op == "MAX",
    )


def test_reduction_of_columns(judge):
    """A matrix is read row by row into sums that stay in the cache."""
    judge.runs(
        f"""
        x = {param(0, 700, 900)}
        s = {total("x")}
        return s
        """,
        draws=1,
        threads=COUNTS,
        same_bits=False,
    )


def test_two_results_one_after_the_other(judge):
    """The second kernel needs all of the first one."""
    judge.runs(
        f"""
        x = {param(0, 400, 400)}
        e = EXP2 x
        s = {total("e")}
        r = RECIP s
        t = PERMUTE e : [1, 0]
        u = MUL t r
        v = {total("u")}
        return s v
        """,
        draws=1,
        threads=COUNTS,
        same_bits=False,
    )


def remainders(value, *numbers):
    """`value` modulo one number after the other: work that is no memory traffic."""
    lines, last = [], value
    for k, n in enumerate(numbers):
        lines += [f"n{k} = {const(n, 'int64')}", f"m{k} = FLOORMOD {last} n{k}"]
        last = f"m{k}"
    return "\n        ".join([*lines, f"end = ADD {last} {last}"])


MANY = (1000003, 500009, 100003, 50021, 10007, 5003, 1009)


def test_recurrence(judge):
    """p[i + 1] follows from p[i]: the order of iterations counts, whatever a kind says."""
    for kind in (None, "parallel"):
        judge.runs(
            f"""
        x = {param(0, 3000, dtype="int64")}
        p = {storage("BUFFER", 3001, dtype="int64")}
        i = {loop(0, 3000, kind)}
        one = {const(1, "int64")}
        before = AFTER p i
        q = INDEX before i
        v = LOAD q
        w = INDEX x i
        z = LOAD w
        s = ADD v z
        {remainders("s", *MANY)}
        j = ADD i one
        r = INDEX before j
        st = STORE r end
        done = END st i
        y = AFTER p done
        return y
        """,
            draws=1,
            threads=COUNTS,
        )


def test_recurrence_of_columns(judge):
    """p[i + 1, j] = p[i, j] · x[i, j] + 1: the order counts in i, and not in j."""
    judge.runs(
        f"""
        x = {param(0, 60, 3000, dtype="int32")}
        p = {storage("BUFFER", 61, 3000, dtype="int32")}
        i = {loop(0, 60)}
        j = {loop(1, 3000)}
        one = {const(1, "int64")}
        unit = {const(1, "int32")}
        before = AFTER p i j
        q = INDEX before i j
        v = LOAD q
        w = INDEX x i j
        z = LOAD w
        m = MUL v z
        s = ADD m unit
        k = ADD i one
        r = INDEX before k j
        st = STORE r s
        done = END st i j
        y = AFTER p done
        return y
        """,
        draws=1,
        threads=COUNTS,
    )


def test_the_last_store_stays(judge):
    """p[2·(x[i] mod 5)] = i: iterations that store to one element do so in their order."""
    judge.runs(
        f"""
        x = {param(0, 3000, dtype="int64")}
        p = {storage("BUFFER", 10, dtype="int64")}
        i = {loop(0, 3000)}
        w = INDEX x i
        z = LOAD w
        {remainders("z", *MANY, 5)}
        before = AFTER p i
        r = INDEX before end
        st = STORE r i
        done = END st i
        y = AFTER p done
        return y
        """,
        draws=1,
        threads=COUNTS,
    )


def test_what_an_iteration_leaves_behind(judge):
    """A temporary that every iteration fills is read after the loop: it holds the last one's."""
    judge.runs(
        f"""
        x = {param(0, 300, 400)}
        o = {storage("ALLOC", 300, 400)}
        t = {storage("ALLOC", 400, slot=1)}
        i = {loop(0, 300)}
        j = {loop(1, 400)}
        k = {loop(2, 400)}
        fresh = AFTER t i
        p = INDEX x i j
        v = LOAD p
        e = EXP2 v
        q = INDEX fresh j
        st = STORE q e
        filled = END st j
        full = AFTER t filled
        back = {const(399, "int64")}
        n = NEG k
        b = ADD back n
        r = INDEX full b
        u = LOAD r
        d = INDEX o i k
        so = STORE d u
        done = END so i k
        y = AFTER o done
        last = AFTER t done
        return y last
        """,
        draws=1,
        threads=COUNTS,
    )


@pytest.mark.parametrize("name", ["attention_causal", "conv_stride_padding", "embedding", "cumsum"])
def test_program(judge, name):
    """A program of week 3."""
    judge.runs((PROGRAMS / f"{name}.uop").read_text(), draws=1, threads=(1, 3), same_bits=False)


def test_little_work(judge):
    """A few elements are not worth starting threads for."""
    judge.emits(
        f"""
        x = {param(0, 100)}
        y = ADD x x
        return y
        """,
        without=[r"omp\s+parallel", r"\bpthread_create\b"],
    )
