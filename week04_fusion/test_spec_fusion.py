"""Fusion: how many loop nests a program may cost. The bounds leave room for several answers."""

from pathlib import Path

PROGRAMS = Path(__file__).parent.parent / "week03_loops" / "programs"


def sample(name):
    return (PROGRAMS / f"{name}.uop").read_text()


# One nest is enough -------------------------------------------------------------------------


def test_elementwise_chain(judge):
    """A chain of elementwise ops is one loop nest without scratch memory."""
    steps = [f"y{n + 1} = {('EXP2', 'NEG', 'ADD')[n % 3]} y{n}" for n in range(21)]
    steps = [s + s[s.rindex(" ") :] if "ADD" in s else s for s in steps]
    start = 'y0 = PARAM : {"slot": 0, "dtype": "float32", "shape": [50, 20]}'
    text = "\n".join([start, *steps, "return y21"])
    judge.emits(text, kernels_at_most=1, workspace_at_most=0)
    judge.runs(text)


def test_movement_costs_nothing(judge):
    """Movement ops are index arithmetic: any number of them is one loop nest."""
    text = """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [6, 8]}
        a = PERMUTE x : [1, 0]
        b = RESHAPE a : [4, 12]
        c = FLIP b : [0]
        d = PAD c : [[1, 1], [0, 0]]
        e = SHRINK d : [[0, 5], [2, 12]]
        f = PERMUTE e : [1, 0]
        g = EXP2 f
        return g
        """
    judge.emits(text, kernels_at_most=1, workspace_at_most=0)
    judge.runs(text)


def test_elementwise_around_movement(judge):
    """Elementwise ops before and after movement are one nest, if no element is computed twice."""
    text = """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [16, 24]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [24, 16]}
        a = EXP2 x
        b = PERMUTE a : [1, 0]
        c = MUL b y
        d = FLIP c : [1]
        e = RESHAPE d : [384]
        f = LOG2 e
        return f
        """
    judge.emits(text, kernels_at_most=1, workspace_at_most=0)
    judge.runs(text)


def test_product_is_not_stored(judge):
    """The products of a matrix product are summed where they are made."""
    text = sample("gemm")
    judge.emits(text, kernels_at_most=1, workspace_at_most=0)


def test_sum_of_expression(judge):
    """What is reduced is computed in the reduction's loop."""
    text = """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [64, 32]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [32]}
        a = ADD x y
        b = EXP2 a
        c = MUL b x
        s = REDUCE c : {"op": "ADD", "axes": 2}
        return s
        """
    judge.emits(text, kernels_at_most=1, workspace_at_most=0)
    judge.runs(text)


def test_after_a_reduction(judge):
    """Elementwise ops behind a reduction, at its shape, need no nest of their own."""
    text = """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [40, 30]}
        b = PARAM : {"slot": 1, "dtype": "float32", "shape": [30]}
        s = REDUCE x : {"op": "ADD", "axes": 1}
        a = ADD s b
        z = CONST : {"value": 0, "dtype": "float32"}
        r = MAX a z
        return r
        """
    judge.emits(text, kernels_at_most=1, workspace_at_most=0)
    judge.runs(text)


def test_gemm_with_bias_and_relu(judge):
    """A matrix product with bias and ReLU is one nest without scratch memory."""
    judge.emits(sample("gemm_bias_relu"), kernels_at_most=1, workspace_at_most=0)


def test_convolution(judge):
    """A convolution is one nest: windows are index arithmetic, not copies."""
    judge.emits(sample("conv"), kernels_at_most=2, workspace_at_most=1 << 16)


def test_constants_are_not_stored(judge):
    """A mask made of constants is computed where it is used."""
    judge.emits(sample("tril"), kernels_at_most=2, workspace_at_most=1 << 16)


# A few nests --------------------------------------------------------------------------------


def test_softmax(judge):
    """A softmax is three nests at most: maximum, sum, quotient."""
    judge.emits(sample("softmax"), kernels_at_most=3)


def test_layernorm(judge):
    """A layer norm is three nests at most."""
    judge.emits(sample("layernorm"), kernels_at_most=3)


def test_mean_and_variance(judge):
    """Mean and variance of one array are three nests at most."""
    judge.emits(sample("mean_and_variance"), kernels_at_most=3)


def test_outputs_that_share(judge):
    """Two outputs computed from one expression are two nests at most, and no scratch memory."""
    text = """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [33, 21]}
        e = EXP2 x
        a = ADD e x
        b = MUL e e
        return a b
        """
    judge.emits(text, kernels_at_most=2, workspace_at_most=0)
    judge.runs(text)


def test_output_that_feeds_an_output(judge):
    """An output that another one needs is computed once, into its own array."""
    text = """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [30, 20]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [20]}
        m = MUL x y
        s = REDUCE m : {"op": "ADD", "axes": 1}
        e = EXP2 s
        return s e
        """
    judge.emits(text, kernels_at_most=2, workspace_at_most=0)
    judge.runs(text)


def test_two_layers(judge):
    """Two linear layers with a ReLU between are two nests."""
    text = """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [24, 32]}
        v = PARAM : {"slot": 1, "dtype": "float32", "shape": [32, 48]}
        w = PARAM : {"slot": 2, "dtype": "float32", "shape": [48, 16]}
        z = CONST : {"value": 0, "dtype": "float32"}
        a = PERMUTE x : [1, 0]
        b = RESHAPE a : [32, 24, 1]
        c = RESHAPE v : [32, 1, 48]
        d = MUL b c
        e = REDUCE d : {"op": "ADD", "axes": 1}
        f = MAX e z
        g = PERMUTE f : [1, 0]
        h = RESHAPE g : [48, 24, 1]
        i = RESHAPE w : [48, 1, 16]
        j = MUL h i
        k = REDUCE j : {"op": "ADD", "axes": 1}
        return k
        """
    judge.emits(text, kernels_at_most=2, workspace_at_most=24 * 48 * 4 + 64)
    judge.runs(text, special=False)


def test_attention(judge):
    """An attention layer is six nests at most, and stores no product of three indices."""
    judge.emits(sample("attention"), kernels_at_most=6, workspace_at_most=1 << 20)


def test_cross_entropy(judge):
    """A cross entropy is six nests at most."""
    judge.emits(sample("cross_entropy"), kernels_at_most=6)


def test_residual_layernorm(judge):
    """A sum and its layer norm are four nests at most."""
    judge.emits(sample("residual_layernorm"), kernels_at_most=4)


# Nothing that nobody needs ------------------------------------------------------------------


def test_unused_work(judge):
    """What no output needs costs nothing."""
    judge.emits(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [20, 20]}
        z = CONST : {"value": 0, "dtype": "int32"}
        i = CAST x : "int32"
        s = REDUCE i : {"op": "ADD", "axes": 1}
        p = MUL s z
        r = REDUCE x : {"op": "MAX", "axes": 2}
        a = NEG x
        return a
        """,
        kernels_at_most=1,
        workspace_at_most=0,
    )


def test_value_used_in_parts(judge):
    """A sum of which only a corner is needed is computed there alone."""
    text = """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [50, 64, 64]}
        s = REDUCE x : {"op": "ADD", "axes": 1}
        c = SHRINK s : [[0, 2], [0, 3]]
        return c
        """
    judge.emits(text, kernels_at_most=1, workspace_at_most=0)
    judge.runs(text, draws=1, special=False)


def test_equal_work_is_done_once(judge):
    """Equal expressions under different names are one."""
    text = """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [20, 30]}
        a = EXP2 x
        b = REDUCE a : {"op": "ADD", "axes": 1}
        c = EXP2 x
        d = REDUCE c : {"op": "ADD", "axes": 1}
        e = ADD b d
        return e
        """
    judge.emits(text, kernels_at_most=1, workspace_at_most=0)
    judge.runs(text)


# Fusion does not change values --------------------------------------------------------------


def test_shared_product_is_still_rounded(judge):
    """A product that two nests use is rounded in both: fusion makes no fma of it."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [2, 3]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [2, 3]}
        p = MUL x y
        m = REDUCE p : {"op": "MAX", "axes": 1}
        n = NEG m
        d = ADD p n
        return d
        """,
        {0: [[1.0000001, 3.1415927, 1e10]] * 2, 1: [[1.0000001, 2.7182817, 1.0000001]] * 2},
        tolerance=0.0,
    )


def test_float16_is_rounded_between_nests(judge):
    """A float16 value is rounded once, whether it is stored or not."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float16", "shape": [300, 3]}
        s = REDUCE x : {"op": "ADD", "axes": 1}
        n = NEG s
        k = CONST : {"value": 0.0009765625, "dtype": "float16"}
        a = ADD s k
        d = ADD a n
        e = EXPAND d : [4, 3]
        return e
        """,
        {0: [[0.1, 0.3, 1]] * 300},
        tolerance=0.0,
    )


def test_pad_is_zero_after_fusion(judge):
    """PAD of a computed value is 0 outside, fused or not."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [6, 5]}
        m = REDUCE x : {"op": "MAX", "axes": 1}
        e = EXP2 m
        p = PAD e : [[2, 2]]
        f = EXP2 p
        g = PAD f : [[1, 0]]
        r = RESHAPE g : [10, 1]
        t = EXPAND r : [10, 3]
        s = REDUCE t : {"op": "ADD", "axes": 1}
        return g s
        """
    )


def test_windows_of_a_computed_value(judge):
    """Overlapping windows of a computed array read each element as it is."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [8, 6]}
        m = REDUCE x : {"op": "MAX", "axes": 1}
        e = EXPAND m : [4, 6]
        f = RESHAPE e : [24]
        s = SHRINK f : [[0, 21]]
        r = RESHAPE s : [3, 7]
        w = SHRINK r : [[0, 3], [0, 4]]
        a = REDUCE w : {"op": "ADD", "axes": 1}
        return a
        """
    )


def test_value_and_its_transpose(judge):
    """A computed matrix used as it is and transposed, in one sum of products."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [9, 12]}
        e = EXP2 x
        t = PERMUTE e : [1, 0]
        a = RESHAPE t : [12, 9, 1]
        b = RESHAPE t : [12, 1, 9]
        p = MUL a b
        g = REDUCE p : {"op": "ADD", "axes": 1}
        h = PERMUTE g : [1, 0]
        s = ADD g h
        return s g
        """
    )
