"""What the ops mean, a second time and independently: whole arrays of small values at once.

Every proof by exhaustion compares two programs here, on all assignments of their PARAMs. Values of
integers are held in int64, exact for dtypes of up to 16 bits (int64 itself wraps as it should;
uint64 is not for here), of floats in float64, rounded into their dtype after each op.
"""

import ml_dtypes
import numpy as np

from week01_uops import ops
from week01_uops.dtypes import DType
from week01_uops.node import CONST, UOp

INT3 = DType("int3", "int", 3, np.dtype(np.int8))
UINT3 = DType("uint3", "uint", 3, np.dtype(np.uint8))
INT4 = DType("int4", "int", 4, np.dtype(np.int8))
UINT4 = DType("uint4", "uint", 4, np.dtype(np.uint8))
INT5 = DType("int5", "int", 5, np.dtype(np.int8))
FLOAT8 = DType("float8", "float", 8, np.dtype(ml_dtypes.float8_e5m2), 3, 15)


class UnspecifiedError(Exception):
    """The format leaves the value open for some assignment."""


def into(values: np.ndarray, dtype: DType) -> np.ndarray:
    """Exact or double results brought into the dtype."""
    if dtype.kind == "bool":
        return values != 0
    if dtype.is_float:
        with np.errstate(all="ignore"):
            return values.astype(dtype.numpy).astype(np.float64)
    if dtype.bits == 64:
        return values  # NumPy's own int64 wraps
    return (values - dtype.min) % (1 << dtype.bits) + dtype.min


def _floordiv(x, y):
    return np.where(y == 0, 0, x // np.where(y == 0, 1, y))


def _floormod(x, y):
    return np.where(y == 0, x, x % np.where(y == 0, 1, y))


def _cast(x, dtype: DType):
    if dtype.is_int and x.dtype == np.float64:
        whole = np.trunc(x)
        open_ = ~np.isfinite(x) | (whole < dtype.min) | (whole > dtype.max)
        return np.where(open_, np.nan, whole)
    return x


MEANING = {
    ops.ADD: np.add,
    ops.MUL: np.multiply,
    ops.NEG: lambda x: 0 - x,
    ops.MAX: np.maximum,
    ops.FLOORDIV: _floordiv,
    ops.FLOORMOD: _floormod,
    ops.RECIP: lambda x: 1 / x,
    ops.EXP2: np.exp2,
    ops.LOG2: np.log2,
    ops.CMPLT: np.less,
    ops.CMPNE: np.not_equal,
    ops.WHERE: np.where,
}


def params(*nodes: UOp) -> list[UOp]:
    """The PARAMs of programs, by slot."""
    found = {n for node in nodes for n in node.toposort() if n.op is ops.PARAM}
    return sorted(found, key=lambda n: n.arg.slot)


TELLING = (0.0, 2.0**-16, 0.25, 1.0, 1.25, 3.0, 57344.0, float("inf"))
"""A zero, the least subnormal, some numbers, the largest one and infinity of `FLOAT8`."""


def values_of(param: UOp, every: bool = True) -> np.ndarray:
    """All values that a PARAM may have; of a float, the telling ones unless `every` is wanted."""
    dtype = param.dtype
    if dtype.kind == "bool":
        return np.array([False, True])
    if dtype.is_float and not every:
        return np.array([*TELLING, *[-value for value in TELLING], float("nan")])
    if dtype.is_float:
        bits = np.arange(1 << dtype.bits, dtype=f"u{dtype.bits // 8}")
        with np.errstate(invalid="ignore"):
            return bits.view(dtype.numpy).astype(np.float64)
    low, high = param.interval
    return np.arange(low, high + 1)


def assignments(nodes: list[UOp]) -> dict[UOp, np.ndarray]:
    """Every combination of values, as one array a PARAM."""
    every = sum(node.dtype.bits for node in nodes if node.dtype.is_float) <= 16
    grids = np.meshgrid(*[values_of(node, every) for node in nodes], indexing="ij")
    return {node: grid.ravel() for node, grid in zip(nodes, grids, strict=True)}


def evaluate(root: UOp, inputs: dict[UOp, np.ndarray]) -> np.ndarray:
    """The values of a scalar expression, one for each assignment; NaN where it is left open."""
    done: dict[UOp, np.ndarray] = dict(inputs)
    with np.errstate(all="ignore"):
        for node in root.toposort():
            if node not in done:
                done[node] = _value(node, [done[s] for s in node.src])
    return done[root]


def _value(node: UOp, sources: list[np.ndarray]) -> np.ndarray:
    if node.op is CONST:
        kind = {"bool": bool, "float": np.float64}.get(node.dtype.kind, np.int64)
        return np.array(node.arg.value, dtype=kind)
    if node.op is ops.CAST:
        result = _cast(sources[0], node.dtype)
        if node.dtype.is_int and result.dtype == np.float64:
            if np.isnan(result).any():
                raise UnspecifiedError
            result = result.astype(np.int64)
        result = result.astype(np.float64) if node.dtype.is_float else result
        return into(result, node.dtype)
    if node.op is ops.NEG and node.dtype.is_float:
        return -sources[0]
    if node.dtype.kind == "bool" and node.op in (ops.MUL, ops.MAX):
        return (np.logical_and if node.op is ops.MUL else np.logical_or)(*sources)
    result = MEANING[node.op](*sources)
    return (
        result
        if node.op in (ops.CMPLT, ops.CMPNE, ops.WHERE, ops.MAX)
        else into(result, node.dtype)
    )


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Equal up to the sign of a zero; NaN equals NaN."""
    return (a == b) | ((a != a) & (b != b))


def difference(before: UOp, after: UOp) -> str | None:
    """An assignment for which two programs differ, as a sentence; None if there is none."""
    inputs = params(before, after)
    given = assignments(inputs)
    old, new = np.broadcast_arrays(evaluate(before, given), evaluate(after, given))
    wrong = np.flatnonzero(~same(old, new))
    if not wrong.size:
        return None
    at = int(wrong[0])
    where = ", ".join(f"p{p.arg.slot} = {given[p][at]}" for p in inputs)
    return f"{old.ravel()[at]} became {new.ravel()[at]} at {where}"


def constants(dtype: DType) -> list:
    """Every value of a small dtype; of a float the telling ones."""
    if dtype.kind == "bool":
        return [False, True]
    if dtype.is_float:
        return [0.0, -0.0, 1.0, -1.0, 2.0, -0.5, 3.0, float("inf"), float("-inf"), float("nan")]
    return list(range(dtype.min, dtype.max + 1))
