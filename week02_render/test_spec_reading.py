"""The ops of week 2 as text: what a reader takes, prints and refuses."""

X = 'x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3, 4]}'
I = 'i = PARAM : {"slot": 1, "dtype": "int64", "shape": [2]}'
F = 'f = PARAM : {"slot": 2, "dtype": "float32", "shape": []}'
B = 'b = BUFFER : {"slot": 0, "dtype": "float32", "shape": [3, 4]}'
G = 'g = PARAM : {"slot": 3, "dtype": "bool", "shape": [3]}'
ALL = f"{X}\n{I}\n{F}\n{B}\n{G}"


def test_simplify_keeps_storage(judge):
    """`simplify` takes programs with storage, and keeps their meaning."""
    judge.accepts(
        f"""
        {X}
        {B}
        z = CONST : {{"value": 0, "dtype": "float32"}}
        v = ADD x z
        s = STORE b v
        a = AFTER b s
        w = LOAD a
        y = ADD w z
        return y
        """
    )


def test_simplify_keeps_the_order(judge):
    """A read comes before a write also if what is written turns out not to need it."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        t = ALLOC : {"slot": 0, "dtype": "int32", "shape": []}
        s = STORE t x
        first = AFTER t s
        v = LOAD first
        zero = CONST : {"value": 0, "dtype": "int32"}
        z = MUL v zero
        u = STORE first z
        second = AFTER first u
        w = LOAD second
        n = NEG v
        return w n
        """
    )


def test_simplify_keeps_the_order_of_a_value(judge):
    """So does storage that is read as a value, without a LOAD."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        t = ALLOC : {"slot": 0, "dtype": "int32", "shape": []}
        s = STORE t x
        first = AFTER t s
        v = NEG first
        zero = CONST : {"value": 0, "dtype": "int32"}
        z = MUL v zero
        u = STORE first z
        second = AFTER first u
        return second v
        """
    )


def test_simplify_keeps_the_order_of_a_place(judge):
    """A place that waits for a value does so also if the value turns out to be 0."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": []}
        s = STORE b x
        first = AFTER b s
        v = LOAD first
        zero = CONST : {"value": 0, "dtype": "int32"}
        z = MUL v zero
        waited = AFTER first z
        n = ADD x x
        u = STORE waited n
        second = AFTER b u
        return second v
        """
    )


def test_simplify_keeps_a_place(judge):
    """An input stays a place though its range leaves one value."""
    judge.accepts(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [3, 3]}
        v = LOAD x
        p = INDEX x
        w = LOAD p
        n = NEG x
        return v w n x
        """
    )


def test_simplify_inside_an_index(judge):
    """An index is simplified as any other value."""
    judge.simplifies(
        f"""
        {X}
        i = PARAM : {{"slot": 1, "dtype": "int64", "shape": [], "range": [0, 2]}}
        z = CONST : {{"value": 0, "dtype": "int64"}}
        k = CONST : {{"value": 3, "dtype": "int64"}}
        m = FLOORMOD i k
        j = ADD m z
        p = INDEX x j
        v = LOAD p
        return v
        """,
        without=["FLOORMOD", "ADD"],
    )


def test_canonical(judge):
    """Arguments of storage are printed with their keys in order."""
    judge.canonical(
        """
        b = BUFFER : {"shape": [2], "dtype": "int8", "slot": 4}
        t = ALLOC : {"addrspace": "MEM", "shape": [2], "dtype": "int8", "slot": 0}
        v = LOAD b
        s = STORE t v
        a = AFTER t s
        return a
        """
    )


def test_number_of_sources(judge):
    """Too few or too many sources are an E3xx."""
    for line in ["y = INDEX", "y = LOAD", "y = STORE b", "y = AFTER", "y = LOAD x f f f"]:
        judge.rejects(f"{ALL}\n{line}\nreturn x", "E3", line=7)


def test_arguments(judge):
    """Arguments of the wrong form are an E3xx."""
    for line in [
        "y = BUFFER",
        'y = BUFFER : {"slot": 1, "dtype": "float32"}',
        'y = BUFFER : {"slot": -1, "dtype": "float32", "shape": []}',
        'y = BUFFER : {"slot": 1, "dtype": "float32", "shape": [], "addrspace": "MEM"}',
        'y = ALLOC : {"slot": 1, "dtype": "float32", "shape": [], "addrspace": 1}',
        "y = LOAD x : 1",
        "y = INDEX x i : [0]",
    ]:
        judge.rejects(f"{ALL}\n{line}\nreturn x", "E3", line=7)


def test_later_op(judge):
    """With --week 2, an op of a later week is an E3xx."""
    for line in ["y = RESHAPE x : [12]", 'r = RANGE : {"id": 0, "size": 3}', "y = STAGE x"]:
        judge.rejects(f"{ALL}\n{line}\nreturn x", "E3", line=7, verb="simplify --week 2")


def test_index_types(judge):
    """Indices are integers, scalars or of shape (n,), and no more than there are axes."""
    for line in ["y = INDEX x f", "y = INDEX x g", "y = INDEX x i i i", "y = INDEX f i"]:
        judge.rejects(f"{ALL}\n{line}\nreturn x", "E4", line=7)
    table = 'j = PARAM : {"slot": 9, "dtype": "int64", "shape": [2, 2]}'
    judge.rejects(f"{X}\n{table}\ny = INDEX x j\nreturn x", "E4", line=4)


def test_place_expected(judge):
    """INDEX, LOAD and STORE take places, not values."""
    for line in ["y = INDEX v i", "y = LOAD v", "y = STORE v x"]:
        judge.rejects(f"{ALL}\nv = ADD x x\n{line}\nreturn x", "E4", line=8)


def test_place_is_no_value(judge):
    """An indexed place is no value before it is loaded, and no output."""
    judge.rejects(f"{ALL}\np = INDEX x i\ny = NEG p\nreturn y", "E4", line=8)
    judge.rejects(f"{ALL}\np = INDEX x i\ny = STORE b p\nreturn x", "E4", line=8)
    judge.rejects(f"{ALL}\np = INDEX x i\nreturn p", "E4", line=8)


def test_effect_is_no_value(judge):
    """A STORE is no value and no output."""
    judge.rejects(f"{ALL}\ns = STORE b x\ny = NEG s\nreturn y", "E4", line=8)
    judge.rejects(f"{ALL}\ns = STORE b x\nreturn s", "E4", line=8)


def test_call_of_values(judge):
    """The arguments of a CALL are values, and its body is a value or an effect."""
    nodes = f"{ALL}\nn = NEG x\np = INDEX x i\ns = STORE b x"
    for line in ["y = CALL n p", "y = CALL n s", "y = CALL s s", "y = CALL p x i"]:
        judge.rejects(f"{nodes}\n{line}\nreturn x", "E409", line=10)


def test_store_types(judge):
    """A stored value has the place's dtype and shape, and the gate is a bool."""
    for lines in [
        'v = CAST x : "float64"\ns = STORE b v',
        "v = NEG f\ns = STORE b v",
        "p = INDEX b i\ns = STORE p x",
        "v = NEG x\ns = STORE b v f",
        "v = NEG x\ns = STORE b v g",
    ]:
        judge.rejects(f"{ALL}\n{lines}\nreturn x", "E4", line=8)


def test_load_types(judge):
    """The gate of a LOAD is a bool, its alternative of the place's dtype."""
    for line in ["y = LOAD x f", "y = LOAD x g", "h = CMPNE f f\ny = LOAD x h i"]:
        judge.rejects(f"{ALL}\n{line}\nreturn x", "E4", line=7 + line.count("\n"))


def test_input_not_written(judge):
    """A STORE to an input is refused, through an INDEX and through a CALL too."""
    judge.rejects(f"{ALL}\nv = NEG b\ns = STORE x v\na = AFTER b s\nreturn a", "E4", line=8)
    through_index = "p = INDEX x i\nq = INDEX b i\nv = LOAD q\ns = STORE p v\na = AFTER b s"
    judge.rejects(f"{ALL}\n{through_index}\nreturn a", "E4", line=10)
    body = "n = NEG b\nbody = STORE x n\nc = CALL body x i f g\na = AFTER b c"
    judge.rejects(f"{X}\n{B}\n{body.replace(' i f g', '')}\nreturn a", "E4")


def test_two_buffers_of_one_slot(judge):
    """Two BUFFERs of one slot are equal."""
    other = 'c = BUFFER : {"slot": 0, "dtype": "float32", "shape": [12]}'
    judge.rejects(f"{ALL}\n{other}\nreturn b c", "E4", line=7)
