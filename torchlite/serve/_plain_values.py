"""Requests and answers of plain JSON values by the tensors' names: for `generate` and TorchServe's API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _wire
from ._errors import InvalidRequest
from ._protocol import InferRequest, TensorSpec, parameters_of


def plain_request_of(table: Any, specs: Sequence[TensorSpec], most_bytes: int) -> InferRequest:
    """Return the request of a JSON object: each input by its name, beside `id` and `parameters`."""
    if type(table) is not dict:
        raise InvalidRequest("the body must be a JSON object")
    names = {spec.name for spec in specs}
    rest = {key: value for key, value in table.items() if key in names or not specs}
    for key in set(table) - set(rest) - {"id", "parameters"}:
        raise InvalidRequest(f"the model has no input '{key}'; its inputs are {', '.join(sorted(names))}")
    if not specs:
        rest = {key: value for key, value in rest.items() if key not in ("id", "parameters")}
    identifier = "" if "id" in names else table.get("id", "")
    if type(identifier) is not str:
        raise InvalidRequest("'id' must be a text")
    parameters = {} if "parameters" in names else parameters_of(table, "request")
    return InferRequest(inputs_of(rest, specs, most_bytes), identifier, parameters=parameters)


def inputs_of(values: dict[str, Any], specs: Sequence[TensorSpec], most_bytes: int) -> dict[str, np.ndarray]:
    """Return the arrays of values by the inputs' names: lists, numbers and texts."""
    by_name = {spec.name: spec for spec in specs}
    return {name: array_of_value(name, value, by_name.get(name), most_bytes) for name, value in values.items()}


def array_of_value(name: str, value: Any, spec: TensorSpec | None, most_bytes: int) -> np.ndarray:
    """Return the array of a list, number or text. Sizes of 1 are put before its own where the model has more."""
    shape = _nested_shape(name, value)
    datatype = spec.datatype if spec is not None and spec.datatype else _guess_datatype(name, value)
    wanted = len(spec.shape) if spec is not None and spec.shape is not None else 1
    checked = _wire.check_shape(name, datatype, shape, most_bytes)
    array = _wire.array_from_json(name, datatype, checked, value if isinstance(value, list) else [value])
    return array.reshape((1,) * (wanted - len(shape)) + shape)


def _nested_shape(name: str, value: Any) -> tuple[int, ...]:
    """Return the shape of nested lists."""
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        if len(shape) > _wire.MOST_DIMENSIONS:
            raise InvalidRequest(f"input '{name}': lists are nested over {_wire.MOST_DIMENSIONS} times")
        if not value:
            break
        value = value[0]
    return tuple(shape)


def _guess_datatype(name: str, value: Any) -> str:
    """Return the datatype of values for an input that takes any."""
    while isinstance(value, list):
        if not value:
            return "FP32"
        kinds = {type(element) for element in value}
        value = next((element for element in value if isinstance(element, float)), value[0])
        if list in kinds and len(kinds) > 1:
            raise InvalidRequest(f"input '{name}': lists and values are mixed")
    for kind, datatype in ((bool, "BOOL"), (int, "INT64"), (float, "FP32"), (str, "BYTES")):
        if type(value) is kind:
            return datatype
    raise InvalidRequest(f"input '{name}': wanted are numbers, texts, or lists of them")


def plain_values(answer: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return outputs as JSON values by their names: one element as itself, others as a flat list."""
    found = {}
    for name, array in answer.items():
        values = _wire.array_to_json(array)
        found[name] = values[0] if len(values) == 1 else values
    return found


def nested_values(array: np.ndarray) -> Any:
    """Return an output as nested lists."""
    if array.dtype == np.object_:
        flat = _wire.array_to_json(array)
        return np.array(flat, np.object_).reshape(array.shape).tolist()
    return (array.astype(np.float32) if _wire.is_bfloat16(array.dtype) else array).tolist()
