"""Scratch memory: what has to be stored, where it may lie, and STAGE, which says so."""

import itertools


def matmul(x, w, size, name):
    """The lines of name = x @ w, square matrices."""
    return [
        f"{name}.t = PERMUTE {x} : [1, 0]",
        f"{name}.a = RESHAPE {name}.t : [{size}, {size}, 1]",
        f"{name}.b = RESHAPE {w} : [{size}, 1, {size}]",
        f"{name}.p = MUL {name}.a {name}.b",
        f'{name} = REDUCE {name}.p : {{"op": "ADD", "axes": 1}}',
    ]


def matrix(name, slot, size):
    return f'{name} = PARAM : {{"slot": {slot}, "dtype": "float32", "shape": [{size}, {size}]}}'


SMALL = 'k = CONST : {"value": 0.125, "dtype": "float32"}'


def chain(count, size):
    """x @ w @ w @ …, each product scaled."""
    lines = [matrix("y0", 0, size), matrix("w", 1, size), SMALL]
    for n in range(count):
        lines += matmul(f"y{n}", "w", size, f"m{n}")
        lines += [f"y{n + 1} = MUL m{n} k"]
    return "\n".join([*lines, f"return y{count}"])


def test_chain_of_products(judge):
    """Twelve matrix products in a chain need two temporaries, not eleven."""
    text = chain(12, 32)
    judge.emits(text, kernels_at_most=24, workspace_at_most=3 * 32 * 32 * 4)
    judge.runs(text, special=False)


def test_temporaries_of_different_sizes(judge):
    """Temporaries of different sizes share memory once their lives have ended."""
    sizes = [8, 64, 16, 128, 8, 32, 64, 8]
    lines = [f'y0 = PARAM : {{"slot": 0, "dtype": "float32", "shape": [16, {sizes[0]}]}}', SMALL]
    for n, (a, b) in enumerate(itertools.pairwise(sizes)):
        lines += [
            f'w{n} = PARAM : {{"slot": {n + 1}, "dtype": "float32", "shape": [{a}, {b}]}}',
            f"t{n} = PERMUTE y{n} : [1, 0]",
            f"a{n} = RESHAPE t{n} : [{a}, 16, 1]",
            f"b{n} = RESHAPE w{n} : [{a}, 1, {b}]",
            f"p{n} = MUL a{n} b{n}",
            f'm{n} = REDUCE p{n} : {{"op": "ADD", "axes": 1}}',
            f"y{n + 1} = MUL m{n} k",
        ]
    text = "\n".join([*lines, f"return y{len(sizes) - 1}"])
    judge.emits(text, workspace_at_most=16 * 4 * (128 + 64))
    judge.runs(text, special=False)


def test_long_skip_connection(judge):
    """A value that is needed much later keeps its memory until then."""
    lines = [matrix("x", 0, 16), matrix("w", 1, 16), SMALL]
    lines += [*matmul("x", "w", 16, "m"), "y0 = MUL m k"]
    for n in range(6):
        lines += [*matmul(f"y{n}", "w", 16, f"m{n}"), f"y{n + 1} = MUL m{n} k"]
    lines += ["s = ADD y6 y0", *matmul("s", "w", 16, "r"), "z = ADD r y3"]
    text = "\n".join([*lines, "return z"])
    judge.emits(text, workspace_at_most=6 * 16 * 16 * 4)
    judge.runs(text, special=False)


def test_residual_network(judge):
    """Eight residual layers: each value lives until the sum behind the next."""
    lines = [matrix("y0", 0, 24), matrix("w", 1, 24), SMALL]
    lines += ['z = CONST : {"value": 0, "dtype": "float32"}']
    for n in range(8):
        lines += matmul(f"y{n}", "w", 24, f"m{n}")
        lines += [f"r{n} = MAX m{n} z", f"q{n} = MUL r{n} k", f"y{n + 1} = ADD q{n} y{n}"]
    text = "\n".join([*lines, "return y8"])
    judge.emits(text, workspace_at_most=4 * 24 * 24 * 4)
    judge.runs(text, special=False)


def test_many_values_alive_at_once(judge):
    """Eight products of one matrix, added up in the end: none overwrites another."""
    lines = [matrix("x", 0, 12)]
    for n in range(8):
        lines += [matrix(f"w{n}", n + 1, 12), *matmul("x", f"w{n}", 12, f"m{n}")]
        lines += [*matmul(f"m{n}", "x", 12, f"q{n}")]
    for n in range(7):
        left = f"q{n}" if n == 0 else f"s{n}"
        lines += [*matmul(left, f"q{n + 1}", 12, f"s{n + 1}")]
    judge.runs("\n".join([*lines, "return s7"]), special=False, draws=1)


def test_outputs_are_not_scratch(judge):
    """Intermediate results that are outputs too keep their values."""
    lines = [matrix("y0", 0, 16), matrix("w", 1, 16), SMALL]
    for n in range(5):
        lines += [*matmul(f"y{n}", "w", 16, f"m{n}"), f"y{n + 1} = MUL m{n} k"]
    judge.runs("\n".join([*lines, "return y5 y1 y3 m2 y3"]), special=False)


def test_same_size_in_different_dtypes(judge):
    """Memory may pass from one dtype to another."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [8, 8]}
        a = REDUCE x : {"op": "ADD", "axes": 1}
        b = CAST a : "int32"
        c = EXPAND b : [8, 8]
        d = PERMUTE c : [1, 0]
        e = ADD c d
        f = REDUCE e : {"op": "MAX", "axes": 1}
        g = CAST f : "int8"
        h = EXPAND g : [8, 8]
        i = PERMUTE h : [1, 0]
        j = CMPLT h i
        k = REDUCE j : {"op": "MAX", "axes": 1}
        return k g
        """,
        special=False,
    )


def test_odd_bytes(judge):
    """Temporaries of odd sizes are aligned all the same."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int8", "shape": [5, 7]}
        y = PARAM : {"slot": 1, "dtype": "float64", "shape": [5, 3]}
        a = REDUCE x : {"op": "ADD", "axes": 1}
        b = EXPAND a : [3, 7]
        c = REDUCE y : {"op": "ADD", "axes": 1}
        d = RESHAPE c : [3, 1]
        e = CAST b : "float64"
        f = MUL e d
        g = REDUCE f : {"op": "MAX", "axes": 1}
        h = EXPAND g : [7, 7]
        i = PERMUTE h : [1, 0]
        j = ADD h i
        return j
        """,
        special=False,
    )


def test_buffers_and_temporaries(judge):
    """BUFFERs and temporaries in one program are different memory."""
    text = [matrix("x", 0, 8), matrix("w", 1, 8), *matmul("x", "w", 8, "m")]
    text += ['b = BUFFER : {"slot": 0, "dtype": "float32", "shape": [8, 8]}', "s = STORE b m"]
    text += ["a = AFTER b s", *matmul("a", "m", 8, "q"), *matmul("q", "a", 8, "r")]
    judge.runs("\n".join([*text, "return r a"]), special=False)


# STAGE --------------------------------------------------------------------------------------


def test_stage_is_its_value(judge):
    """STAGE without ranges is its source, wherever it is held."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3, 4]}
        e = EXP2 x
        s = STAGE e
        t = STAGE s : {"addrspace": "LOCAL"}
        p = PERMUTE t : [1, 0]
        r = REDUCE p : {"op": "ADD", "axes": 1}
        return r s
        """
    )


def test_stage_of_a_matrix(judge):
    """A staged value may be read in any order."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [6, 5]}
        e = EXP2 x
        s = STAGE e
        p = PERMUTE s : [1, 0]
        f = FLIP p : [0, 1]
        i = PARAM : {"slot": 1, "dtype": "int64", "shape": [4]}
        q = INDEX s i
        v = LOAD q
        return f v
        """,
        {0: [[0.5 * r - c for c in range(5)] for r in range(6)], 1: [5, 0, 0, 3]},
    )


def test_stage_over_a_range(judge):
    """STAGE over ranges has an axis for each, in the order in which they are named."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [2, 3]}
        r = RANGE : {"id": 0, "size": 2}
        q = RANGE : {"id": 1, "size": 3}
        p = INDEX x r q
        v = LOAD p
        a = STAGE v r q
        b = STAGE v q r
        n = NEG a
        return a b n
        """
    )


def test_stage_of_rows(judge):
    """The axes of the ranges come before those of the value."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4, 3]}
        r = RANGE : {"id": 0, "size": 4}
        p = INDEX x r
        v = LOAD p
        e = EXP2 v
        s = STAGE e r
        a = REDUCE s : {"op": "ADD", "axes": 1}
        return s a
        """
    )


def test_stage_in_a_loop(judge):
    """A STAGE inside a loop is filled anew in each turn."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4, 6]}
        o = ALLOC : {"slot": 0, "dtype": "float32", "shape": [4, 6]}
        i = RANGE : {"id": 0, "size": 4}
        j = RANGE : {"id": 1, "size": 6}
        p = INDEX x i j
        v = LOAD p
        e = EXP2 v
        row = STAGE e j
        k = RANGE : {"id": 2, "size": 6}
        q = INDEX row k
        u = LOAD q
        sum = REDUCE u k : {"op": "ADD", "axes": 0}
        r = RECIP sum
        l = RANGE : {"id": 3, "size": 6}
        t = INDEX row l
        w = LOAD t
        y = MUL w r
        d = INDEX o i l
        s = STORE d y
        loop = END s i l
        a = AFTER o loop
        return a
        """
    )


def test_packed_panel(judge):
    """A panel of B is packed once for each column block, between two loops."""
    judge.runs(
        """
        a = PARAM : {"slot": 0, "dtype": "float32", "shape": [5, 6]}
        b = PARAM : {"slot": 1, "dtype": "float32", "shape": [6, 8]}
        o = ALLOC : {"slot": 0, "dtype": "float32", "shape": [5, 8]}
        four = CONST : {"value": 4, "dtype": "int64"}
        jo = RANGE : {"id": 0, "size": 2}
        ji = RANGE : {"id": 1, "size": 4}
        k = RANGE : {"id": 2, "size": 6}
        jm = MUL jo four
        j = ADD jm ji
        pb = INDEX b k j
        vb = LOAD pb
        panel = STAGE vb k ji
        i = RANGE : {"id": 3, "size": 5}
        l = RANGE : {"id": 4, "size": 6}
        c = RANGE : {"id": 5, "size": 4}
        pa = INDEX a i l
        va = LOAD pa
        pp = INDEX panel l c
        vp = LOAD pp
        m = MUL va vp
        sum = REDUCE m l : {"op": "ADD", "axes": 0}
        jc = ADD jm c
        q = INDEX o i jc
        st = STORE q sum
        e = END st jo i c
        r = AFTER o e
        return r
        """
    )


def test_stage_read_by_two(judge):
    """A STAGE that two results read."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [7, 3]}
        m = REDUCE x : {"op": "MAX", "axes": 1}
        s = STAGE m
        n = NEG s
        d = ADD x n
        e = EXP2 s
        return d e
        """
    )


def test_stage_keeps_its_meaning(judge):
    """`simplify` takes programs with STAGE and keeps their meaning."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4, 3]}
        r = RANGE : {"id": 0, "size": 4}
        z = CONST : {"value": 0, "dtype": "float32"}
        p = INDEX x r
        v = LOAD p
        y = ADD v z
        s = STAGE y r : {"addrspace": "LOCAL"}
        t = STAGE s
        a = NEG t
        return a
        """
    )


def test_stage_arguments(judge):
    """STAGE takes a value, RANGEs, and an address space at most."""
    start = 'x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}\n'
    start += 'r = RANGE : {"id": 0, "size": 3}\np = INDEX x r\nv = LOAD p'
    judge.rejects(f"{start}\ns = STAGE\nreturn x", "E3", line=6)
    judge.rejects(f'{start}\ns = STAGE x : {{"space": "MEM"}}\nreturn x', "E3", line=6)
    judge.rejects(f'{start}\ns = STAGE x : {{"addrspace": 3}}\nreturn x', "E3", line=6)
    judge.rejects(f"{start}\ns = STAGE v x\nreturn x", "E4", line=6)
    judge.rejects(f"{start}\ns = STAGE v r r\nreturn x", "E4", line=6)
    judge.rejects(f"{start}\ns = STAGE v\nreturn s", "E4")
    judge.rejects(f"{start}\ns = STAGE p r\nreturn s", "E4", line=6)
