"""CALL: a body with its PARAMs replaced by arguments."""

X = 'x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}'
Y = 'y = PARAM : {"slot": 1, "dtype": "int32", "shape": []}'


def test_inlined(judge):
    """A CALL becomes its body, with the arguments in place of the PARAMs."""
    judge.simplifies(
        f"""
        {X}
        {Y}
        body = FLOORDIV x y
        a = NEG y
        c = CALL body a x
        return c
        """,
        to=f"""
        {X}
        {Y}
        a = NEG y
        c = FLOORDIV a x
        return c
        """,
    )


def test_named(judge):
    """The name of a CALL changes nothing."""
    judge.simplifies(
        f"""
        {X}
        body = NEG x
        c = CALL body x : {{"name": "negate"}}
        d = CALL body x
        e = CMPNE c d
        return e
        """,
        to='f = CONST : {"value": false, "dtype": "bool"}\nreturn f',
    )


def test_arguments_exchanged(judge):
    """PARAMs in the arguments are the caller's: they are not replaced again."""
    judge.simplifies(
        f"""
        {X}
        {Y}
        body = FLOORDIV x y
        c = CALL body y x
        return c
        """,
        to=f"""
        {X}
        {Y}
        c = FLOORDIV y x
        return c
        """,
    )


def test_body_is_also_a_value(judge):
    """One node may be a body, an argument and an output at once."""
    judge.simplifies(
        f"""
        {X}
        n = NEG x
        c = CALL n n
        return c n
        """,
        to=f"""
        {X}
        n = NEG x
        return x n
        """,
    )


def test_call_in_a_body(judge):
    """A body may hold CALLs, whose bodies have PARAMs of their own."""
    judge.simplifies(
        f"""
        {X}
        {Y}
        inner = FLOORMOD x y
        outer = CALL inner y x
        c = CALL outer y x
        return c
        """,
        to=f"""
        {X}
        {Y}
        c = FLOORMOD x y
        return c
        """,
    )


def test_call_as_argument(judge):
    """An argument may be a CALL."""
    judge.simplifies(
        f"""
        {X}
        n = NEG x
        once = CALL n x
        twice = CALL n once
        thrice = CALL n twice
        return thrice
        """,
        to=f"""
        {X}
        n = NEG x
        return n
        """,
    )


def test_body_without_params(judge):
    """A body without PARAMs takes no arguments."""
    judge.simplifies(
        """
        k = CONST : {"value": 3, "dtype": "int8"}
        s = MUL k k
        c = CALL s
        return c
        """,
        to='k = CONST : {"value": 9, "dtype": "int8"}\nreturn k',
    )


def test_body_is_a_param(judge):
    """The body may be a PARAM: then the CALL is its argument."""
    judge.simplifies(
        f"""
        {X}
        {Y}
        s = ADD x y
        c = CALL y x s
        return c
        """,
        to=f"{X}\n{Y}\ns = ADD x y\nreturn s",
    )


def test_gap_in_slots(judge):
    """A CALL has one argument for every slot up to the highest, used or not."""
    judge.simplifies(
        f"""
        {X}
        h = PARAM : {{"slot": 2, "dtype": "int32", "shape": []}}
        u = PARAM : {{"slot": 7, "dtype": "float32", "shape": [3]}}
        body = FLOORDIV h x
        c = CALL body h u x
        return c
        """,
        to=f"""
        {X}
        h = PARAM : {{"slot": 2, "dtype": "int32", "shape": []}}
        c = FLOORDIV x h
        return c
        """,
    )


def test_simplified_after_inlining(judge):
    """What the arguments make constant is folded."""
    judge.simplifies(
        f"""
        {X}
        {Y}
        z = CONST : {{"value": 0, "dtype": "int32"}}
        k = CONST : {{"value": 1, "dtype": "int32"}}
        p = MUL x y
        s = ADD p x
        c = CALL s x z
        d = CALL s k k
        return c d
        """,
        to=f"""
        {X}
        k = CONST : {{"value": 2, "dtype": "int32"}}
        return x k
        """,
    )


def test_range_of_a_body(judge):
    """Inlined, the range of the argument holds, not that of the body's PARAM."""
    judge.simplifies(
        """
        p = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        k = CONST : {"value": 8, "dtype": "int32"}
        body = CMPLT p k
        i = PARAM : {"slot": 1, "dtype": "int32", "shape": [], "range": [0, 7]}
        c = CALL body i
        return c
        """,
        to='t = CONST : {"value": true, "dtype": "bool"}\nreturn t',
    )


def test_arrays(judge):
    """Arguments of any shape, as long as it is the PARAM's."""
    judge.simplifies(
        """
        a = PARAM : {"slot": 0, "dtype": "float32", "shape": [2, 3]}
        b = PARAM : {"slot": 1, "dtype": "float32", "shape": [3]}
        body = MUL a b
        d = ADD a a
        e = EXP2 b
        c = CALL body d e
        return c
        """,
        without=["CALL"],
    )


def test_one_body_called_often(judge):
    """Each CALL replaces the PARAMs of a shared body anew."""
    judge.simplifies(
        f"""
        {X}
        {Y}
        body = FLOORDIV x y
        a = CALL body x y
        b = CALL body y x
        c = CALL body a b
        d = CALL body c c
        return d
        """,
        without=["CALL"],
        at_most_of={"FLOORDIV": 4},
    )


def test_chain_of_calls(judge):
    """A hundred CALLs, one inside the other, are inlined."""
    start = 'x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}\nc0 = NEG x'
    steps = [f"c{n + 1} = CALL c{n} x" for n in range(100)]
    judge.simplifies(
        "\n".join([start, *steps, "return c100"]),
        to='x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}\ny = NEG x\nreturn y',
    )


def test_calls_that_share(judge):
    """CALLs of CALLs that use their argument twice stay small: equal nodes are one."""
    first = 'x = PARAM : {"slot": 0, "dtype": "float32", "shape": []}\nb0 = EXP2 x'
    steps = [f"s{n} = ADD b{n} b{n}\nb{n + 1} = CALL s{n} b{n}" for n in range(8)]
    judge.simplifies("\n".join([first, *steps, "return b8"]), without=["CALL"])


# What is refused ----------------------------------------------------------------------------


def test_missing_argument(judge):
    """A CALL with too few or too many arguments is an E4xx."""
    judge.rejects(f"{X}\n{Y}\nb = ADD x y\nc = CALL b x\nreturn c", "E4", line=5)
    judge.rejects(f"{X}\n{Y}\nb = NEG x\nc = CALL b x y\nreturn c", "E4", line=5)
    judge.rejects(f"{X}\n{Y}\nb = NEG y\nc = CALL b x\nreturn c", "E4", line=5)


def test_argument_of_another_type(judge):
    """Arguments have the dtype and the shape of the PARAM, without broadcasting."""
    f = 'f = PARAM : {"slot": 1, "dtype": "float32", "shape": []}'
    v = 'v = PARAM : {"slot": 1, "dtype": "int32", "shape": [1]}'
    judge.rejects(f"{X}\n{f}\nb = NEG x\nc = CALL b f\nreturn c", "E4", line=5)
    judge.rejects(f"{X}\n{v}\nb = NEG x\nc = CALL b v\nreturn c", "E4", line=5)


def test_scopes(judge):
    """A slot may be one thing in a body and another in the program around it."""
    f = 'f = PARAM : {"slot": 0, "dtype": "float32", "shape": []}'
    judge.simplifies(
        f'{X}\n{f}\nb = NEG x\ni = CAST f : "int32"\nk = CALL b i\ng = CAST k : "bool"\nreturn g',
        without=["CALL"],
        inputs=[{0: 3.5}, {0: -2.0}, {0: 0.25}],
    )
    both = f'{X}\n{f}\ng = CAST f : "int32"\nb = ADD x g\nc = CALL b x\nreturn c'
    judge.rejects(both, "E4")
