"""Python values as JSON and back: arrays, bytes, and dicts keyed by slot."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from week01_uops.dtypes import ALL

Json = Any
_BY_NUMPY_NAME = {dtype.numpy.name: dtype.numpy for dtype in ALL}


def encode(value: Any) -> Json:  # noqa: ANN401 - what tests pass to a check
    """A value of plain Python, NumPy arrays and bytes, as JSON."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        data = base64.b64encode(array.tobytes()).decode()
        return {"$array": [array.dtype.name, list(np.shape(value)), data]}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, dict) and not all(isinstance(k, str) for k in value):
        return {"$slots": [[key, encode(item)] for key, item in value.items()]}
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [encode(item) for item in value]
    return value


def decode(json: Json) -> Any:  # noqa: ANN401
    """The value that `encode` was given; tuples come back as lists."""
    if isinstance(json, list):
        return [decode(item) for item in json]
    if not isinstance(json, dict):
        return json
    if "$array" in json:
        name, shape, data = json["$array"]
        flat = np.frombuffer(base64.b64decode(data), dtype=_BY_NUMPY_NAME[name])
        return flat.reshape(shape).copy()
    if "$bytes" in json:
        return base64.b64decode(json["$bytes"])
    if "$slots" in json:
        return {key: decode(item) for key, item in json["$slots"]}
    return {key: decode(item) for key, item in json.items()}
