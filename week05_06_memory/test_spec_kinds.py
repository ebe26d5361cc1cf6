"""The kind of a RANGE says how its turns are carried out, and never what is computed."""

import pytest

KINDS = ("loop", "vector", "unroll", "parallel")
each_kind = pytest.mark.parametrize("kind", KINDS)


def loop(number, size, kind=None):
    said = "" if kind is None else f', "kind": "{kind}"'
    return f'{{"id": {number}, "size": {size}{said}}}'


def storage(slot, *shape, dtype="float32"):
    return f'{{"slot": {slot}, "dtype": "{dtype}", "shape": {list(shape)}}}'


@each_kind
@pytest.mark.parametrize("size", [0, 1, 5, 16, 67])
def test_elementwise(judge, kind, size):
    """y[r] = x[r] · x[r], for any number of turns."""
    judge.runs(
        f"""
        x = PARAM : {storage(0, size)}
        r = RANGE : {loop(0, size, kind)}
        p = INDEX x r
        v = LOAD p
        w = MUL v v
        o = ALLOC : {storage(0, size)}
        q = INDEX o r
        s = STORE q w
        e = END s r
        y = AFTER o e
        return y
        """,
        draws=1,
    )


@each_kind
@pytest.mark.parametrize("inner", KINDS)
def test_nests(judge, kind, inner):
    """y[c, r] = x[r, c] + r: two loops, each of any kind."""
    judge.runs(
        f"""
        x = PARAM : {storage(0, 6, 35, dtype="int32")}
        r = RANGE : {loop(0, 6, kind)}
        c = RANGE : {loop(1, 35, inner)}
        p = INDEX x r c
        v = LOAD p
        n = CAST r : "int32"
        w = ADD v n
        o = ALLOC : {storage(0, 35, 6, dtype="int32")}
        q = INDEX o c r
        s = STORE q w
        e = END s r c
        y = AFTER o e
        return y
        """,
        draws=1,
    )


@each_kind
@pytest.mark.parametrize("op", ["ADD", "MUL", "MAX"])
def test_reduction(judge, kind, op):
    """A REDUCE over ranges of any kind, of floats and integers, in a loop over rows."""
    judge.runs(
        f"""
        x = PARAM : {storage(0, 5, 37)}
        z = PARAM : {storage(1, 37, dtype="int16")}
        i = RANGE : {loop(0, 5)}
        r = RANGE : {loop(1, 37, kind)}
        p = INDEX x i r
        v = LOAD p
        t = REDUCE v r : {{"op": "{op}", "axes": 0}}
        o = ALLOC : {storage(0, 5)}
        q = INDEX o i
        s = STORE q t
        e = END s i
        y = AFTER o e
        m = INDEX z r
        n = LOAD m
        u = REDUCE n r : {{"op": "{op}", "axes": 0}}
        return y u
        """,
    )


@each_kind
def test_stage(judge, kind):
    """A STAGE over a range of any kind, read backwards."""
    judge.runs(
        f"""
        x = PARAM : {storage(0, 21)}
        r = RANGE : {loop(0, 21, kind)}
        p = INDEX x r
        v = LOAD p
        d = EXP2 v
        t = STAGE d r
        last = CONST : {{"value": 20, "dtype": "int64"}}
        k = RANGE : {loop(1, 21, kind)}
        n = NEG k
        b = ADD last n
        q = INDEX t b
        w = LOAD q
        o = ALLOC : {storage(0, 21)}
        a = INDEX o k
        s = STORE a w
        e = END s k
        y = AFTER o e
        return y
        """
    )


@each_kind
def test_bound(judge, kind):
    """A range of any kind ends at its bound, the counter of another loop included: triangles."""
    judge.runs(
        f"""
        x = PARAM : {storage(0, 19, 19)}
        i = RANGE : {loop(0, 19)}
        one = CONST : {{"value": 1, "dtype": "int64"}}
        n = ADD i one
        k = RANGE n : {loop(1, 19, kind)}
        p = INDEX x i k
        v = LOAD p
        t = REDUCE v k : {{"op": "ADD", "axes": 0}}
        o = ALLOC : {storage(0, 19)}
        q = INDEX o i
        s = STORE q t
        e = END s i
        y = AFTER o e
        return y
        """
    )


@each_kind
def test_bound_of_an_input(judge, kind):
    """The bound is an input: none, some, all, or more turns than there are."""
    judge.runs(
        f"""
        x = PARAM : {storage(0, 20)}
        n = PARAM : {storage(1, dtype="int32")}
        r = RANGE n : {loop(0, 20, kind)}
        p = INDEX x r
        v = LOAD p
        t = REDUCE v r : {{"op": "MAX", "axes": 0}}
        return t
        """,
        [{0: [(7 * k) % 20 for k in range(20)], 1: n} for n in (-3, 0, 1, 13, 20, 99)],
    )


@each_kind
def test_recurrence(judge, kind):
    """p[r + 1] = 3 · p[r] + x[r]: a turn sees what the turns before it have stored."""
    judge.runs(
        f"""
        x = PARAM : {storage(0, 40, dtype="int32")}
        p = BUFFER : {storage(0, 41, dtype="int32")}
        r = RANGE : {loop(0, 40, kind)}
        one = CONST : {{"value": 1, "dtype": "int64"}}
        three = CONST : {{"value": 3, "dtype": "int32"}}
        before = AFTER p r
        q = INDEX before r
        v = LOAD q
        w = INDEX x r
        z = LOAD w
        m = MUL v three
        a = ADD m z
        j = ADD r one
        t = INDEX before j
        s = STORE t a
        e = END s r
        y = AFTER p e
        return y
        """,
        draws=1,
    )


@each_kind
def test_the_last_store_stays(judge, kind):
    """o[x[r]] = r: of several stores to one element the last turn's stays."""
    judge.runs(
        f"""
        x = PARAM : {storage(0, 50, dtype="int32")}
        o = BUFFER : {storage(0, 8, dtype="int64")}
        r = RANGE : {loop(0, 50, kind)}
        eight = CONST : {{"value": 8, "dtype": "int32"}}
        w = INDEX x r
        z = LOAD w
        m = FLOORMOD z eight
        q = INDEX o m
        s = STORE q r
        e = END s r
        y = AFTER o e
        return y
        """
    )


@each_kind
def test_scatter(judge, kind):
    """o[x[r]] += v[r]: turns that add to one element all count."""
    judge.runs(
        f"""
        x = PARAM : {storage(0, 60, dtype="int32")}
        v = PARAM : {storage(1, 60, dtype="int32")}
        o = BUFFER : {storage(0, 5, dtype="int32")}
        r = RANGE : {loop(0, 60, kind)}
        five = CONST : {{"value": 5, "dtype": "int32"}}
        w = INDEX x r
        z = LOAD w
        m = FLOORMOD z five
        here = AFTER o r
        q = INDEX here m
        old = LOAD q
        b = INDEX v r
        u = LOAD b
        new = ADD old u
        s = STORE q new
        e = END s r
        y = AFTER o e
        return y
        """
    )


@each_kind
def test_gate(judge, kind):
    """Gated loads and stores in loops of any kind: nothing else is read or written."""
    judge.runs(
        f"""
        x = PARAM : {storage(0, 30)}
        o = BUFFER : {storage(0, 33)}
        r = RANGE : {loop(0, 40, kind)}
        five = CONST : {{"value": 5, "dtype": "int64"}}
        end = CONST : {{"value": 30, "dtype": "int64"}}
        back = CONST : {{"value": -5, "dtype": "int64"}}
        low = CMPLT r five
        t = CONST : {{"value": true, "dtype": "bool"}}
        inside = CMPNE low t
        j = ADD r back
        p = INDEX x j
        near = CMPLT j end
        both = MUL inside near
        one = CONST : {{"value": 1, "dtype": "float32"}}
        v = LOAD p both one
        last = CONST : {{"value": 33, "dtype": "int64"}}
        g = CMPLT r last
        q = INDEX o r
        s = STORE q v g
        e = END s r
        y = AFTER o e
        return y
        """,
        draws=1,
    )


@each_kind
def test_order_of_ends(judge, kind):
    """A temporary that each outer turn fills and the next loop reads."""
    judge.runs(
        f"""
        x = PARAM : {storage(0, 7, 18)}
        t = ALLOC : {storage(0, 18)}
        o = ALLOC : {storage(1, 7, 18)}
        i = RANGE : {loop(0, 7, kind)}
        j = RANGE : {loop(1, 18, kind)}
        k = RANGE : {loop(2, 18)}
        fresh = AFTER t i
        p = INDEX x i j
        v = LOAD p
        q = INDEX fresh j
        st = STORE q v
        filled = END st j
        full = AFTER t filled
        last = CONST : {{"value": 17, "dtype": "int64"}}
        n = NEG k
        b = ADD last n
        r = INDEX full b
        u = LOAD r
        d = INDEX o i k
        so = STORE d u
        done = END so i k
        y = AFTER o done
        return y
        """,
        draws=1,
    )


def test_one_number_twice(judge):
    """RANGEs of one id that differ in size, or in kind, are different loops."""
    judge.runs(
        f"""
        x = PARAM : {storage(0, 6, 9)}
        i = RANGE : {loop(3, 6)}
        j = RANGE : {loop(3, 9)}
        k = RANGE : {loop(3, 9, "vector")}
        p = INDEX x i j
        v = LOAD p
        q = INDEX x i k
        w = LOAD q
        m = MUL v w
        t = REDUCE m k : {{"op": "ADD", "axes": 0}}
        o = ALLOC : {storage(0, 6, 9)}
        d = INDEX o i j
        s = STORE d t
        e = END s i j
        y = AFTER o e
        return y
        """
    )


def test_in_a_call(judge):
    """Kinds in the body of a CALL."""
    judge.runs(
        f"""
        x = PARAM : {storage(0, 12)}
        a = PARAM : {storage(0, 12)}
        r = RANGE : {loop(0, 12, "vector")}
        p = INDEX a r
        v = LOAD p
        t = REDUCE v r : {{"op": "ADD", "axes": 0}}
        y = CALL t x
        return y
        """
    )


@each_kind
def test_canonical(judge, kind):
    """`simplify` prints programs with kinds, the kind as the last key."""
    text = f"""
        x = PARAM : {storage(0, 4)}
        r = RANGE : {{"kind": "{kind}", "size": 4, "id": 0}}
        p = INDEX x r
        v = LOAD p
        t = REDUCE v r : {{"op": "ADD", "axes": 0}}
        return t
        """
    judge.accepts(text)
    judge.canonical(text)


@pytest.mark.parametrize("kind", ['"simd"', '"Loop"', '""', '"block"', '"thread"', '"lane"'])
def test_unknown_kind(judge, kind):
    """Other kinds are outside of the domain, those of later weeks too."""
    judge.rejects(f'r = RANGE : {{"id": 0, "size": 4, "kind": {kind}}}\nreturn r', "E311", line=2)


@pytest.mark.parametrize("kind", ["null", "1", "true", '["vector"]'])
def test_kind_of_the_wrong_form(judge, kind):
    """A kind is a string."""
    judge.rejects(f'r = RANGE : {{"id": 0, "size": 4, "kind": {kind}}}\nreturn r', "E306", line=2)


@pytest.mark.parametrize("week", [3, 4])
def test_earlier_weeks(judge, week):
    """To a reader of an earlier week the key is unknown."""
    text = 'x = PARAM : {"slot": 0, "dtype": "float32", "shape": []}\n'
    text += 'r = RANGE : {"id": 0, "size": 4, "kind": "vector"}\nreturn x'
    judge.rejects(text, "E308", line=3, verb=f"simplify --week {week}")
