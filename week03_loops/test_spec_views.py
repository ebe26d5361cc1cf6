"""Movement ops composed: views of views, of values and of places."""


def test_transpose_and_reshape(judge):
    """RESHAPE of a PERMUTE is not a permutation of the flat array."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [4, 6]}
        p = PERMUTE x : [1, 0]
        a = RESHAPE p : [4, 6]
        b = RESHAPE p : [24]
        c = RESHAPE a : [2, 3, 4]
        d = PERMUTE c : [2, 0, 1]
        e = RESHAPE d : [3, 8]
        return a b e
        """,
        {0: range(24)},
    )


def test_flip_of_shrink(judge):
    """FLIP of a SHRINK, and SHRINK of a FLIP."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [7]}
        s = SHRINK x : [[1, 5]]
        a = FLIP s : [0]
        f = FLIP x : [0]
        b = SHRINK f : [[1, 5]]
        c = PAD a : [[1, 2]]
        d = FLIP c : [0]
        return a b d
        """,
        {0: range(7)},
    )


def test_strides(judge):
    """Every second element: PAD, RESHAPE, SHRINK, RESHAPE."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [9]}
        p = PAD x : [[0, 1]]
        r = RESHAPE p : [5, 2]
        s = SHRINK r : [[0, 5], [0, 1]]
        a = RESHAPE s : [5]
        t = SHRINK r : [[0, 4], [1, 2]]
        b = RESHAPE t : [4]
        return a b
        """,
        {0: range(1, 10)},
    )


def test_repeat(judge):
    """Each element three times, and the whole three times."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [4]}
        c = RESHAPE x : [4, 1]
        e = EXPAND c : [4, 3]
        a = RESHAPE e : [12]
        f = EXPAND x : [3, 4]
        b = RESHAPE f : [12]
        return a b
        """,
        {0: [5, 6, 7, 8]},
    )


def test_windows(judge):
    """Sliding windows out of EXPAND, RESHAPE and SHRINK: the view that overlaps itself."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [6]}
        e = EXPAND x : [4, 6]
        f = RESHAPE e : [24]
        s = SHRINK f : [[0, 21]]
        r = RESHAPE s : [3, 7]
        a = SHRINK r : [[0, 3], [0, 4]]
        return a
        """,
        {0: [10, 11, 12, 13, 14, 15]},
    )


def test_concatenate(judge):
    """PAD and ADD concatenate; PAD and WHERE keep infinities apart."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3, 2]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [3, 4]}
        p = PAD x : [[0, 0], [0, 4]]
        q = PAD y : [[0, 0], [2, 0]]
        a = ADD p q
        return a
        """
    )


def test_roll(judge):
    """An array rolled by two: two SHRINKs, two PADs."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [7]}
        s = SHRINK x : [[5, 7]]
        t = SHRINK x : [[0, 5]]
        p = PAD s : [[0, 5]]
        q = PAD t : [[2, 0]]
        a = ADD p q
        return a
        """,
        {0: range(7)},
    )


def test_tiles(judge):
    """A matrix of 2 by 3 tiles, and the tiles put back together."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [4, 9]}
        r = RESHAPE x : [2, 2, 3, 3]
        p = PERMUTE r : [0, 2, 1, 3]
        a = RESHAPE p : [6, 2, 3]
        u = RESHAPE a : [2, 3, 2, 3]
        v = PERMUTE u : [0, 2, 1, 3]
        b = RESHAPE v : [4, 9]
        return a b
        """,
        {0: range(36)},
    )


def test_views_of_values(judge):
    """Movement of what was computed, not only of inputs."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3, 4]}
        y = PARAM : {"slot": 1, "dtype": "float32", "shape": [4, 3]}
        e = EXP2 x
        p = PERMUTE e : [1, 0]
        s = ADD p y
        f = FLIP s : [0]
        r = RESHAPE f : [12]
        t = SHRINK r : [[2, 11]]
        a = MUL t t
        return a
        """
    )


def test_one_value_seen_two_ways(judge):
    """A matrix and its transpose in one sum."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [5, 5]}
        e = EXP2 x
        p = PERMUTE e : [1, 0]
        a = ADD e p
        f = FLIP a : [0, 1]
        b = MUL a f
        return b
        """
    )


def test_input_seen_ten_ways(judge):
    """Ten shifted copies of one array, added."""
    lines = ['x = PARAM : {"slot": 0, "dtype": "int32", "shape": [20]}']
    lines += [f"s{k} = SHRINK x : [[{k}, {k + 11}]]" for k in range(10)]
    lines += ["a1 = ADD s0 s1"] + [f"a{k} = ADD a{k - 1} s{k}" for k in range(2, 10)]
    judge.runs("\n".join([*lines, "return a9"]))


def test_broadcast_after_movement(judge):
    """A moved array broadcasts like any other."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [2, 3]}
        y = PARAM : {"slot": 1, "dtype": "int32", "shape": [3, 2]}
        r = RESHAPE x : [2, 3, 1]
        p = PERMUTE y : [1, 0]
        s = RESHAPE p : [2, 1, 3]
        a = MUL r s
        return a
        """
    )


def test_identity_movements(judge):
    """Movement that moves nothing is simplified away."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3, 4]}
        a = RESHAPE x : [3, 4]
        b = PERMUTE a : [0, 1]
        c = EXPAND b : [3, 4]
        d = SHRINK c : [[0, 3], [0, 4]]
        e = PAD d : [[0, 0], [0, 0]]
        f = FLIP e : []
        return f
        """,
        at_most=1,
    )


def test_movements_undone(judge):
    """PERMUTE there and back, FLIP twice, and RESHAPE of RESHAPE merge."""
    judge.simplifies(
        """
        x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3, 4]}
        a = PERMUTE x : [1, 0]
        b = PERMUTE a : [1, 0]
        c = FLIP b : [0]
        d = FLIP c : [0]
        e = RESHAPE d : [12]
        f = RESHAPE e : [2, 6]
        return f
        """,
        at_most=2,
    )


def test_moves_into_a_place(judge):
    """A movement of a place is a place: STORE through it writes moved elements."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [2, 3]}
        b = BUFFER : {"slot": 0, "dtype": "int32", "shape": [4, 4]}
        p = PERMUTE b : [1, 0]
        f = FLIP p : [0]
        w = SHRINK f : [[1, 3], [1, 4]]
        s = STORE w x
        a = AFTER b s
        return a
        """,
        {0: range(1, 7)},
    )


def test_index_through_movement(judge):
    """INDEX of a moved place reads the moved element, a zero of PAD included."""
    judge.runs(
        """
        x = PARAM : {"slot": 0, "dtype": "int32", "shape": [3, 2]}
        i = PARAM : {"slot": 1, "dtype": "int64", "shape": [4]}
        p = PERMUTE x : [1, 0]
        q = PAD p : [[1, 1], [0, 0]]
        k = INDEX q i
        v = LOAD k
        r = RESHAPE x : [6]
        j = INDEX r i
        w = LOAD j
        return v w
        """,
        {0: range(1, 7), 1: [0, 1, 2, 3]},
    )
