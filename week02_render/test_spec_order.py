"""Order is dependence: what happens before what, said by AFTER."""


def test_last_store_wins(judge):
    """Of two STOREs in order, the later one stays."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [4]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [4]}
        t = ALLOC : {"slot": 0, "dtype": "int32", "shape": [4]}
        s = STORE t x
        u = AFTER t s
        r = STORE u y
        a = AFTER t r
        return a
        """
    )


def test_statements_in_another_order(judge):
    """The order of the lines says nothing: the same program, written the other way round."""
    judge.runs(
        """
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [4]}
        n = NEG y
        t = ALLOC : {"slot": 0, "dtype": "int32", "shape": [4]}
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [4]}
        s = STORE t x
        u = AFTER t s
        v = LOAD u
        w = AFTER u v
        r = STORE w n
        a = AFTER t r
        b = ADD a v
        return b v a
        """
    )


def test_read_between_writes(judge):
    """A value read between two STOREs is the first one's."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [3]}
        b = BUFFER : {"slot": 0, "dtype": "float32", "shape": [3]}
        s = STORE b x
        first = AFTER b s
        v = LOAD first
        place = AFTER first v
        t = STORE place y
        second = AFTER b t
        w = LOAD second
        d = ADD v w
        return v w d
        """
    )


def test_read_between_by_way_of_a_sum(judge):
    """What waits for a value waits for the reading behind it."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [3]}
        b = BUFFER : {"slot": 0, "dtype": "float32", "shape": [3]}
        s = STORE b x
        first = AFTER b s
        sum = ADD first y
        place = AFTER first sum
        t = STORE place y
        second = AFTER b t
        e = EXP2 sum
        return e second sum
        """
    )


def test_ten_writes(judge):
    """Ten STOREs in a chain, each of what the one before left."""
    lines = ['x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3]}']
    lines += ['b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [3]}', "s0 = STORE b x"]
    for n in range(10):
        lines += [f"p{n} = AFTER b s{n}", f"v{n} = LOAD p{n}", f"w{n} = ADD v{n} x"]
        lines += [f"q{n} = AFTER p{n} w{n}", f"s{n + 1} = STORE q{n} w{n}"]
    judge.runs("\n".join([*lines, "a = AFTER b s10", "return a v3"]))


def test_after_of_a_value(judge):
    """AFTER of a value is the value."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3]}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [3]}
        s = STORE b x
        n = NEG x
        y = AFTER n s
        z = ADD y y
        a = AFTER b s
        return z a
        """
    )


def test_after_of_an_effect(judge):
    """AFTER of an effect is the effect, once the others have happened."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [3]}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [3]}
        c = BUFFER : {"slot": 1, "dtype": "int32", "shape": [3]}
        s = STORE b x
        t = STORE c y
        u = AFTER t s
        p = AFTER c u
        q = AFTER b u
        return p q
        """
    )


def test_after_with_nothing_to_wait_for(judge):
    """AFTER with one source is that source."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3]}
        y = AFTER x
        z = NEG y
        return z y
        """
    )


def test_effect_of_an_unread_store(judge):
    """A STORE happens although nobody reads the place here, if an output waits for it."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3]}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [3]}
        c = BUFFER : {"slot": 1, "dtype": "int32", "shape": [3]}
        s = STORE b x
        after = AFTER b s
        v = LOAD after
        t = STORE c v
        done = AFTER x t
        p = AFTER c t
        return done p
        """
    )


def test_two_readers(judge):
    """A stored value may be read by many, each of whom waits for it."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [8]}
        t = ALLOC : {"slot": 0, "dtype": "float32", "shape": [8]}
        e = EXP2 x
        s = STORE t e
        u = AFTER t s
        a = ADD u x
        b = MUL u u
        c = RECIP u
        return a b c
        """
    )


def test_exchange(judge):
    """Two BUFFERs exchange their contents: both are read before either is written."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [3]}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [3]}
        c = BUFFER : {"slot": 1, "dtype": "int32", "shape": [3]}
        s = STORE b x
        t = STORE c y
        b1 = AFTER b s
        c1 = AFTER c t
        v = LOAD b1
        w = LOAD c1
        b2 = AFTER b1 v w
        c2 = AFTER c1 v w
        q = STORE b2 w
        r = STORE c2 v
        b3 = AFTER b q
        c3 = AFTER c r
        return b3 c3
        """
    )
