"""CAST between all dtypes, as C computes it."""

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
BITS = {"8": 8, "16": 16, "32": 32, "64": 64}
NAN, INF = float("nan"), float("inf")


def casts(sources, targets, count):
    """One program: every source dtype's array, cast to every target dtype."""
    lines, outputs = [], []
    for slot, source in enumerate(sources):
        lines.append(
            f'x{slot} = PARAM : {{"slot": {slot}, "dtype": "{source}", "shape": [{count}]}}'
        )
        for number, target in enumerate(targets):
            lines.append(f'y{slot}_{number} = CAST x{slot} : "{target}"')
            outputs.append(f"y{slot}_{number}")
    return "\n".join([*lines, "return " + " ".join(outputs)])


def extremes(dtype):
    """Eight integers of a dtype, its ends among them."""
    bits = int(dtype.lstrip("uint"))
    low = 0 if dtype.startswith("u") else -(2 ** (bits - 1))
    high = low + 2**bits - 1
    return [low, low + 1, 0, 1, 100, high // 2 + 1, high - 1, high]


def test_integers_to_integers(judge):
    """An integer cast to an integer wraps, between all dtypes."""
    inputs = {slot: extremes(dtype) for slot, dtype in enumerate(INTEGERS)}
    judge.runs(casts(INTEGERS, INTEGERS, 8), inputs)


def test_integers_to_floats(judge):
    """An integer cast to a float is rounded once, to nearest even."""
    inputs = {slot: extremes(dtype) for slot, dtype in enumerate(INTEGERS)}
    judge.runs(casts(INTEGERS, FLOATS, 8), inputs, tolerance=0.0)


def test_large_integers_to_float32(judge):
    """An int64 cast to float32 is not rounded through float64 first."""
    values = [2**24 + 1, 2**24 + 3, 2**62 + 2**38 + 1, 2**62 + 3 * 2**38, -(2**62) - 2**38 - 1]
    values += [2**53 + 1, 2**63 - 1, -(2**63), 9007199791611905]
    judge.runs(casts(["int64"], FLOATS, len(values)), {0: values}, tolerance=0.0)
    values = [2**64 - 1, 2**63 + 2**39 + 1, 2**63 + 2**39, 2**63 + 2**10, 2**53 + 1, 16777217]
    judge.runs(casts(["uint64"], FLOATS, len(values)), {0: values}, tolerance=0.0)


def test_integers_to_narrow_floats(judge):
    """An integer cast to float16 or bfloat16 is rounded once, and overflows to an infinity."""
    values = [2049, 2051, 65519, 65520, -65520, 4099, 33554433, 16842752, 16842753, 257, 259]
    values += [67239937, 1082130433, 2147483647]
    judge.runs(casts(["int32", "int64"], FLOATS[:2], 14), {0: values, 1: values}, tolerance=0.0)


def test_floats_to_integers(judge):
    """A float cast to an integer is truncated toward zero."""
    values = [0.0, 0.75, 1.0, 1.5, 2.25, 99.875, 126.5, -0.0]
    judge.runs(casts(FLOATS, INTEGERS, 8), dict.fromkeys(range(4), values))


def test_negative_floats_to_signed(judge):
    """A negative float cast to a signed integer is truncated toward zero, not down."""
    values = [-0.75, -1.0, -1.5, -2.25, -99.875, -126.5]
    judge.runs(casts(FLOATS, INTEGERS[:4], 6), dict.fromkeys(range(4), values))


def test_large_floats_to_integers(judge):
    """A float at the end of an integer's range is cast exactly."""
    text = """
        x = PARAM : {"slot": 0, "dtype": "float64", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "float64", "shape": [3]}
        z = PARAM : {"slot": 2, "dtype": "float32", "shape": [3]}
        a = CAST x : "int64"
        b = CAST y : "uint64"
        c = CAST z : "uint32"
        d = CAST z : "int64"
        return a b c d
        """
    inputs = {
        0: [-(2.0**63), 2.0**63 - 1024, 2.0**53 + 2],
        1: [2.0**64 - 2048, 2.0**63, 2.0**63 + 2048],
        2: [2.0**32 - 256, 2.0**31, 16777215.0],
    }
    judge.runs(text, inputs)


def test_out_of_range_does_not_trap(judge):
    """A float out of an integer's range gives some value, and its neighbours their own."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [6]}
        i = CAST x : "int32"
        k = CONST : {"value": 100, "dtype": "float32"}
        n = NEG k
        a = CMPLT x k
        b = CMPLT n x
        c = MUL a b
        z = CONST : {"value": -1, "dtype": "int32"}
        y = WHERE c i z
        return y
        """,
        {0: [1e30, 3.5, NAN, -INF, -7.25, 1e10]},
    )


def test_floats_to_floats(judge):
    """A float cast to a float is rounded once, to nearest even."""
    values = [0.1, 65519.0, 65520.0, 1e-8, 2.0**-24, 3 * 2.0**-25, 2.0**-25, 257.0, 259.0, 3.4e38]
    values += [1e300, -1e300, 1e-45, -0.0, INF, -INF, NAN]
    judge.runs(casts(["float32", "float64"], FLOATS, 17), {0: values, 1: values}, tolerance=0.0)
    few = [0.1, -2.5, 60000.0, 2.0**-24, 0.0, INF, NAN]
    judge.runs(casts(FLOATS[:2], FLOATS, 7), {0: few, 1: few}, tolerance=0.0)


def test_float64_to_narrow_floats(judge):
    """A float64 cast to float16 or bfloat16 is not rounded through float32 first."""
    tie16, tiebf = 1 + 2.0**-11, 1 + 2.0**-8
    values = [tie16, tie16 + 2.0**-40, tie16 - 2.0**-40, tiebf, tiebf + 2.0**-40, tiebf - 2.0**-40]
    values += [65519.9999999, 2.0**-25 + 2.0**-60, 2.0**-134 + 2.0**-180]
    judge.runs(casts(["float64"], FLOATS, 9), {0: values}, tolerance=0.0)


def test_subnormal_float16(judge):
    """float16's subnormals are cast exactly in both directions."""
    values = [2.0**-24, 1023 * 2.0**-24, 1.5 * 2.0**-24, 2.5 * 2.0**-24, 2.0**-14, -(2.0**-20)]
    judge.runs(casts(["float32", "float64", "float16"], FLOATS, 6), dict.fromkeys(range(3), values))


def test_to_bool(judge):
    """x cast to bool is x ≠ 0: of fractions, subnormals, NaN and −0 too."""
    values = [0.0, -0.0, 0.25, -1.0, 6e-8, INF, NAN, 256.0]
    judge.runs(casts(FLOATS, ["bool"], 8), dict.fromkeys(range(4), values))
    inputs = {slot: extremes(dtype) for slot, dtype in enumerate(INTEGERS)}
    judge.runs(casts(INTEGERS, ["bool"], 8), inputs)


def test_from_bool(judge):
    """A bool cast to a number is 0 or 1."""
    judge.runs(casts(["bool"], ["bool", *INTEGERS, *FLOATS], 2), {0: [False, True]})


def test_chain_of_casts(judge):
    """Each CAST of a chain takes away what its dtype cannot hold."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [6]}
        a = CAST x : "int8"
        b = CAST a : "uint16"
        c = CAST b : "float16"
        d = CAST c : "float32"
        e = CAST d : "int64"
        f = CAST x : "float32"
        g = CAST f : "int64"
        h = CAST x : "bool"
        i = CAST h : "uint8"
        return b c e g i
        """,
        {0: [300, -1, 16777217, 127, 128, -2147483648]},
    )


def test_wrapped_before_cast(judge):
    """A sum wraps in its own dtype before it is cast to a wider one."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "uint8", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [3]}
        a = ADD x x
        b = CAST a : "int32"
        c = MUL y y
        d = CAST c : "int64"
        n = NEG x
        e = CAST n : "float32"
        return b d e
        """,
        {0: [200, 128, 3], 1: [65536, 50000, -7]},
    )
