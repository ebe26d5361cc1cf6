"""What a reader takes: the text of a right program, in all its spellings."""

X = 'x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}'
Y = 'y = PARAM : {"slot": 1, "dtype": "int32", "shape": []}'


def test_comments_and_blanks(judge):
    """Comments and blank lines may stand anywhere after the header, after return too."""
    judge.accepts(
        f"""
        # before

        {X}  # behind an argument
           # blanks before a comment
        y = NEG x # behind a source
        return y # behind the return

        # after
        """
    )


def test_comment_after_header(judge):
    """A comment may follow the header."""
    judge.accepts(f"uops 1 # the first version\n{X}\nreturn x\n")


def test_tabs_and_runs_of_blanks(judge):
    """Fields are separated by any run of blanks and tabs."""
    judge.accepts(f"uops \t 1\n\t{X}\n y\t=  NEG\tx  \t\nreturn \t y\n")


def test_carriage_returns(judge):
    r"""Lines may end in \r\n."""
    judge.accepts(f"uops 1\r\n{X}\r\ny = NEG x\r\nreturn y\r\n")


def test_no_newline_at_the_end(judge):
    """The last line need not end in a newline."""
    judge.accepts(f"uops 1\n{X}\nreturn x")


def test_names(judge):
    """Names are letters, digits, _ . and %, and may look like anything else."""
    judge.accepts(
        """
        ADD = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        %0 = NEG ADD
        _ = ADD %0 ADD
        a.b%c_1 = MUL _ ADD
        uops1 = ADD a.b%c_1 _
        returns = NEG uops1
        return returns
        """
    )


def test_keys_in_any_order(judge):
    """The keys of an argument may stand in any order, with blanks anywhere between them."""
    judge.accepts(
        """
        x = PARAM : { "shape":[ ] ,"range" : [ -3,4 ],  "dtype":"int32","slot":0}
        return x
        """
    )


def test_colon_without_blank_behind(judge):
    """The colon is a field of its own, and the JSON behind it may touch nothing else."""
    judge.accepts('x = PARAM  :  {"slot":0,"dtype":"int32","shape":[]}\nreturn x')


def test_hash_in_a_string(judge):
    """A # inside a JSON string is no comment."""
    judge.accepts(
        f"""
        {X}
        y = NEG x
        c = CALL y x : {{"name": "a # b \\" : c"}}  # a comment
        return c
        """
    )


def test_outputs(judge):
    """An output may be an input, a constant, or returned twice."""
    judge.accepts(
        f"""
        {X}
        k = CONST : {{"value": 5, "dtype": "int8"}}
        y = NEG x
        return x y k y x
        """
    )


def test_slots_with_gaps(judge):
    """Slots may have gaps and stand in any order."""
    judge.accepts(
        """
        a = PARAM : {"slot": 9, "dtype": "int32", "shape": []}
        b = PARAM : {"slot": 2, "dtype": "int32", "shape": []}
        c = ADD a b
        return c
        """
    )


def test_whole_integers(judge):
    """Integers are exact over the whole of int64 and uint64."""
    judge.simplifies(
        """
        a = CONST : {"value": 9223372036854775807, "dtype": "int64"}
        b = CONST : {"value": -9223372036854775808, "dtype": "int64"}
        c = CONST : {"value": 18446744073709551615, "dtype": "uint64"}
        return a b c
        """,
        to="""
        a = CONST : {"value": 9223372036854775807, "dtype": "int64"}
        b = CONST : {"value": -9223372036854775808, "dtype": "int64"}
        c = CONST : {"value": 18446744073709551615, "dtype": "uint64"}
        return a b c
        """,
    )


def test_non_finite_floats(judge):
    """Non-finite floats are written "inf", "-inf" and "nan"."""
    judge.accepts(
        """
        a = CONST : {"value": "inf", "dtype": "float32"}
        b = CONST : {"value": "-inf", "dtype": "float16"}
        c = CONST : {"value": "nan", "dtype": "float64"}
        return a b c
        """
    )


def test_floats_in_any_spelling(judge):
    """A float may be any JSON number, an integer too; equal values are one constant."""
    judge.simplifies(
        """
        a = CONST : {"value": 2, "dtype": "float32"}
        b = CONST : {"value": 2.0, "dtype": "float32"}
        c = CONST : {"value": 0.2e+1, "dtype": "float32"}
        d = CONST : {"value": 20E-1, "dtype": "float32"}
        return a b c d
        """,
        at_most=1,
    )


def test_floats_are_rounded(judge):
    """A float is read as float64, then rounded to nearest even in its dtype."""
    judge.simplifies(
        """
        a = CONST : {"value": 16777217, "dtype": "float32"}
        b = CONST : {"value": 2049, "dtype": "float16"}
        c = CONST : {"value": 257, "dtype": "bfloat16"}
        d = CONST : {"value": 259, "dtype": "bfloat16"}
        return a b c d
        """,
        to="""
        a = CONST : {"value": 16777216, "dtype": "float32"}
        b = CONST : {"value": 2048, "dtype": "float16"}
        c = CONST : {"value": 256, "dtype": "bfloat16"}
        d = CONST : {"value": 260, "dtype": "bfloat16"}
        return a b c d
        """,
    )


def test_shapes(judge):
    """Shapes have any number of sizes up to 32, 0 and 1 among them, and broadcast."""
    judge.accepts(
        """
        a = PARAM : {"slot": 0, "dtype": "float32", "shape": [2, 1, 3]}
        b = PARAM : {"slot": 1, "dtype": "float32", "shape": [4, 1]}
        c = PARAM : {"slot": 2, "dtype": "float32", "shape": [0, 1, 1, 1]}
        d = ADD a b
        e = MUL d c
        return d e
        """
    )


def test_rank_32(judge):
    """A tensor may have 32 axes."""
    ones = ", ".join(["1"] * 32)
    judge.accepts(f'x = PARAM : {{"slot": 0, "dtype": "int8", "shape": [{ones}]}}\nreturn x')


def test_unused_later(judge):
    """A statement that no output needs is still checked, and then left out."""
    judge.accepts(f"{X}\n{Y}\nz = ADD x y\nreturn x")
    judge.rejects(f"{X}\nz = ADD x\nreturn x", "E3", line=3)


def test_long_chain(judge):
    """A chain of ten thousand UOps is an ordinary program."""
    ops = [f"y{k + 1} = {f'MUL y{k}' if k % 2 else 'NEG'} y{k}" for k in range(10_000)]
    first = 'y0 = PARAM : {"slot": 0, "dtype": "int32", "shape": [2]}'
    judge.accepts("\n".join([first, *ops, "return y10000"]))


def test_largest_float_constants(judge):
    """A number just below the middle between the largest float and 2^128 is still a float."""
    judge.simplifies(
        """
        a = CONST : {"value": 65519.99, "dtype": "float16"}
        b = CONST : {"value": 3.4028235e38, "dtype": "float32"}
        return a b
        """,
        to="""
        a = CONST : {"value": 65504, "dtype": "float16"}
        b = CONST : {"value": 3.4028234663852886e38, "dtype": "float32"}
        return a b
        """,
    )
