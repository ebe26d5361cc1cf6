"""Derivatives of whole programs: layers, attention, losses; once, twice, and compiled."""

import pytest


def param(slot, *shape, dtype="float32"):
    return f'PARAM : {{"slot": {slot}, "dtype": "{dtype}", "shape": {list(shape)}}}'


def const(value, dtype="float32"):
    return f'CONST : {{"value": {value}, "dtype": "{dtype}"}}'


def total(x, rank=1, op="ADD"):
    return f'REDUCE {x} : {{"op": "{op}", "axes": {rank}}}'


def product(y, a, b, m, k, n):
    """y = a[m, k] @ b[k, n]."""
    return f"""
        {y}_at = PERMUTE {a} : [1, 0]
        {y}_l = RESHAPE {y}_at : [{k}, {m}, 1]
        {y}_r = RESHAPE {b} : [{k}, 1, {n}]
        {y}_p = MUL {y}_l {y}_r
        {y} = {total(f"{y}_p")}"""


def softmax(y, x, m, n):
    """y = softmax of each row of x[m, n]; y_s are the sums of powers, y_d = x − max."""
    return f"""
        {y}_t = PERMUTE {x} : [1, 0]
        {y}_m = {total(f"{y}_t", 1, "MAX")}
        {y}_c = RESHAPE {y}_m : [{m}, 1]
        {y}_n = NEG {y}_c
        {y}_d = ADD {x} {y}_n
        {y}_k = {const(1.442695)}
        {y}_x = MUL {y}_d {y}_k
        {y}_e = EXP2 {y}_x
        {y}_f = PERMUTE {y}_e : [1, 0]
        {y}_s = {total(f"{y}_f")}
        {y}_i = RECIP {y}_s
        {y}_j = RESHAPE {y}_i : [{m}, 1]
        {y} = MUL {y}_e {y}_j"""


def log_softmax(y, x, m, n):
    """y = ln softmax of each row of x[m, n]."""
    return f"""
        {softmax(f"{y}_p", x, m, n)}
        {y}_l = LOG2 {y}_p_s
        {y}_g = {const(0.6931472)}
        {y}_h = MUL {y}_l {y}_g
        {y}_i = NEG {y}_h
        {y}_j = RESHAPE {y}_i : [{m}, 1]
        {y} = ADD {y}_p_d {y}_j"""


def sigmoid(y, x):
    return f"""
        {y}_n = {const(-1.442695)}
        {y}_x = MUL {x} {y}_n
        {y}_e = EXP2 {y}_x
        {y}_1 = {const(1)}
        {y}_s = ADD {y}_e {y}_1
        {y} = RECIP {y}_s"""


def norm(y, x, m, n):
    """y = x[m, n], each row of mean 0 and variance 1."""
    return f"""
        {y}_t = PERMUTE {x} : [1, 0]
        {y}_s = {total(f"{y}_t")}
        {y}_c = {const(-1 / n)}
        {y}_m = MUL {y}_s {y}_c
        {y}_r = RESHAPE {y}_m : [{m}, 1]
        {y}_d = ADD {x} {y}_r
        {y}_q = MUL {y}_d {y}_d
        {y}_u = PERMUTE {y}_q : [1, 0]
        {y}_v = {total(f"{y}_u")}
        {y}_k = {const(1 / n)}
        {y}_w = MUL {y}_v {y}_k
        {y}_5 = {const(1e-5)}
        {y}_z = ADD {y}_w {y}_5
        {y}_l = LOG2 {y}_z
        {y}_h = {const(-0.5)}
        {y}_x = MUL {y}_l {y}_h
        {y}_i = EXP2 {y}_x
        {y}_j = RESHAPE {y}_i : [{m}, 1]
        {y} = MUL {y}_d {y}_j"""


def squares(x, rank):
    return f"""
        squared = MUL {x} {x}
        loss = {total("squared", rank)}
        return loss
        """


def cross_entropy(logits, m, n):
    """−mean of ln softmax at the target, PARAM 9, found by comparing with the positions PARAM 8."""
    return f"""
        {log_softmax("ls", logits, m, n)}
        target = {param(9, m, dtype="int32")}
        column = RESHAPE target : [{m}, 1]
        places = {param(8, n, dtype="int32")}
        elsewhere = CMPNE column places
        zero = {const(0)}
        chosen = WHERE elsewhere zero ls
        sum = {total("chosen", 2)}
        share = {const(-1 / m)}
        loss = MUL sum share
        return loss
        """


LINEAR = f"""
        x = {param(0, 3, 4)}
        w = {param(1, 4, 5)}
        b = {param(2, 5)}
        {product("xw", "x", "w", 3, 4, 5)}
        h = ADD xw b"""

PERCEPTRON = f"""
        {LINEAR}
        {sigmoid("g", "h")}
        a = MUL h g
        v = {param(3, 5, 3)}
        {product("z", "a", "v", 3, 5, 3)}
        {cross_entropy("z", 3, 3)}"""

ATTENTION = f"""
        q = {param(0, 3, 2)}
        k = {param(1, 4, 2)}
        v = {param(2, 4, 2)}
        kt = PERMUTE k : [1, 0]
        {product("qk", "q", "kt", 3, 2, 4)}
        scale = {const(0.7071068)}
        scores = MUL qk scale
        see = {param(3, 3, 4, dtype="bool")}
        never = {const('"-inf"')}
        masked = WHERE see scores never
        {softmax("p", "masked", 3, 4)}
        {product("y", "p", "v", 3, 4, 2)}
        {squares("y", 2)}"""

SEEN = [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]

CONVOLUTION = f"""
        x = {param(0, 6)}
        w = {param(1, 3)}
        p = PAD x : [[1, 1]]
        e = EXPAND p : [4, 8]
        f = RESHAPE e : [32]
        s = SHRINK f : [[0, 27]]
        r = RESHAPE s : [3, 9]
        view = SHRINK r : [[0, 3], [0, 6]]
        taps = RESHAPE w : [3, 1]
        m = MUL view taps
        y = {total("m")}
        {squares("y", 1)}"""

POOL = f"""
        x = {param(0, 2, 6)}
        r = RESHAPE x : [2, 3, 2]
        t = PERMUTE r : [2, 0, 1]
        y = {total("t", 1, "MAX")}
        {squares("y", 2)}"""

SCAN = f"""
        x = {param(0, 5)}
        p = PAD x : [[4, 0]]
        e = EXPAND p : [6, 9]
        f = RESHAPE e : [54]
        s = SHRINK f : [[0, 50]]
        r = RESHAPE s : [5, 10]
        w = SHRINK r : [[0, 5], [0, 5]]
        y = {total("w")}
        {squares("y", 1)}"""

EMBEDDING = f"""
        table = {param(0, 7, 3)}
        ids = {param(1, 5, dtype="int32")}
        p = INDEX table ids
        rows = LOAD p
        {norm("y", "rows", 5, 3)}
        g = {param(2, 3)}
        z = MUL y g
        {squares("z", 2)}"""

ONE_HOT = f"""
        table = {param(0, 7, 3)}
        ids = {param(1, 5, 1, dtype="int32")}
        places = {param(2, 7, dtype="int32")}
        elsewhere = CMPNE ids places
        mask = RESHAPE elsewhere : [5, 7, 1]
        zero = {const(0)}
        terms = WHERE mask zero table
        t = PERMUTE terms : [1, 0, 2]
        rows = {total("t")}
        {squares("rows", 2)}"""

NORM = f"""
        x = {param(0, 3, 4)}
        g = {param(1, 4)}
        b = {param(2, 4)}
        {norm("n", "x", 3, 4)}
        s = MUL n g
        y = ADD s b
        {squares("y", 2)}"""

SOFTMAX = f"""
        x = {param(0, 3, 4)}
        w = {param(1, 3, 4)}
        {softmax("p", "x", 3, 4)}
        y = MUL p w
        {squares("y", 2)}"""

FOUND = {8: [0, 1, 2], 9: [0, 2, 2]}


def inputs_of(slots, **more):
    """Ordinary numbers for float slots, by size."""
    found = {slot: [((7 * k + 3 * slot) % 11 - 5) / 4 for k in range(size)] for slot, size in slots}
    return {**found, **more}


PROGRAMS = {
    "a linear layer": (f"{LINEAR}\n{squares('h', 2)}", None),
    "a perceptron and its loss": (
        PERCEPTRON,
        inputs_of([(0, 12), (1, 20), (2, 5), (3, 15)]) | FOUND,
    ),
    "a softmax": (SOFTMAX, None),
    "a norm": (NORM, None),
    "attention": (ATTENTION, inputs_of([(0, 6), (1, 8), (2, 8)]) | {3: SEEN}),
    "a convolution": (CONVOLUTION, None),
    "a pool": (POOL, None),
    "a running sum": (SCAN, None),
    "an embedding": (EMBEDDING, None),
    "a look-up by comparison": (
        ONE_HOT,
        inputs_of([(0, 21)]) | {1: [3, 0, 3, 6, 1], 2: list(range(7))},
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(judge, name):
    """The derivatives by every float input, and the C that the printed program compiles to."""
    text, inputs = PROGRAMS[name]
    judge.differentiates(text, inputs=inputs, compiled=True)


TWICE = [name for name in PROGRAMS if name not in ("a perceptron and its loss", "attention")]


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives(judge, name):
    """What `grad` prints can be derived again."""
    text, inputs = PROGRAMS[name]
    if inputs is None:
        judge.differentiates(text, times=2)
    else:
        judge.differentiates(text, inputs=inputs)


def test_second_derivatives_of_a_perceptron(judge):
    """Two layers with an activation between them, and a sum of squares."""
    text = f"""
        {LINEAR}
        {sigmoid("g", "h")}
        a = MUL h g
        v = {param(3, 5, 2)}
        {product("z", "a", "v", 3, 5, 2)}
        {squares("z", 2)}"""
    judge.differentiates(text, times=2, draws=1)


def test_second_derivatives_of_attention(judge):
    """Of scores, softmax and values, without a mask."""
    text = ATTENTION.replace(f"see = {param(3, 3, 4, dtype='bool')}", "")
    text = text.replace("masked = WHERE see scores never", "masked = NEG scores")
    judge.differentiates(text, times=2, draws=1, compiled=True)


def test_third_derivatives(judge):
    """And again."""
    text = f"""
        x = {param(0, 3)}
        q = MUL x x
        e = EXP2 x
        p = MUL q e
        y = {total("p")}
        return y
        """
    judge.differentiates(text, times=3, compiled=True)


def test_large_numbers_in_a_softmax(judge):
    """What is subtracted for safety keeps the derivatives finite as well."""
    for top in (1e4, -1e4, 3e38):
        inputs = {0: [[top, top, 0, 1], [top, 0, 0, 0], [1, 2, 3, 4]], 1: [[1, 2, 3, 4]] * 3}
        judge.differentiates(SOFTMAX, inputs=inputs)


def test_equal_numbers_in_a_softmax(judge):
    """The derivative of a softmax does not depend on which of the equal maxima is found."""
    inputs = {0: [[2, 2, 2, 2], [1, 3, 3, 0], [0, 0, 0, -5]], 1: [[1, 2, 3, 4]] * 3}
    judge.differentiates(SOFTMAX, inputs=inputs)


def test_stable_loss(judge):
    """A sure and wrong answer costs much, and has a derivative."""
    text = f"x = {param(0, 3, 3)}\n{cross_entropy('x', 3, 3)}"
    logits = [[1e4, 0, 0], [0, -1e4, 1e4], [5, 5, 5]]
    judge.differentiates(text, inputs={0: logits, 8: [0, 1, 2], 9: [1, 2, 0]}, compiled=True)


def test_a_call(judge):
    """The bodies of CALLs are derived, calls in calls too."""
    text = f"""
        x = {param(0, 3)}
        y = {param(1, 3)}
        q = MUL x y
        a = CALL q x x : {{"name": "square"}}
        b = EXP2 x
        c = CALL a b
        d = CALL q a c
        loss = {total("d")}
        return loss
        """
    judge.differentiates(text, [0], times=2)


def test_storage_beside_the_way(judge):
    """Loops and storage that do not depend on the slot are constants."""
    text = f"""
        x = {param(0, 4)}
        w = {param(1, 4)}
        r = RANGE : {{"id": 0, "size": 4}}
        p = INDEX w r
        v = LOAD p
        o = ALLOC : {{"slot": 0, "dtype": "float32", "shape": [4]}}
        q = INDEX o r
        d = ADD v v
        s = STORE q d
        e = END s r
        k = AFTER o e
        m = MUL x k
        n = MUL m x
        loss = {total("n")}
        return loss
        """
    judge.differentiates(text, [0], compiled=True)


def test_a_long_chain(judge):
    """Nodes with two uses, five hundred deep: nothing is derived once for every path."""
    lines = [f"x0 = {param(0, 2)}", f"half = {const(0.5)}"]
    for k in range(500):
        lines += [f"q{k} = MUL x{k} half", f"x{k + 1} = ADD q{k} q{k}"]
    lines += [f"y = {total('x500')}", "return y"]
    judge.differentiates("\n".join(lines))
