"""Requests and answers of the protocol as gRPC messages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _wire
from ._errors import InvalidRequest
from ._grpc_messages import messages
from ._protocol import InferRequest, OutputWish, Parameters, chosen_outputs

# The field of the elements of each datatype; FP16 and BF16 have none, and come as raw bytes.
_CONTENTS = {
    "BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
    "INT64": "int64_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents",
    "UINT64": "uint64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents",
}  # fmt: skip


def parameters_of(found: Any) -> Parameters:
    """Return the parameters of a message."""
    made = {}
    for key, value in found.items():
        kind = value.WhichOneof("parameter_choice")
        if kind is None:
            raise InvalidRequest(f"the parameter '{key}' has no value")
        made[key] = getattr(value, kind)
    return made


def infer_request_of(message: Any, most_bytes: int) -> InferRequest:
    """Return the request of a message."""
    raw = message.raw_input_contents
    if raw and len(raw) != len(message.inputs):
        raise InvalidRequest(f"{len(raw)} raw_input_contents for {len(message.inputs)} inputs")
    inputs: dict[str, np.ndarray] = {}
    for place, about in enumerate(message.inputs):
        if about.name in inputs:
            raise InvalidRequest(f"input '{about.name}' is given twice")
        shape = _wire.check_shape(about.name, about.datatype, list(about.shape), most_bytes)
        if raw:
            if about.HasField("contents"):
                raise InvalidRequest(f"input '{about.name}': it has contents beside raw_input_contents")
            inputs[about.name] = _wire.array_from_bytes(about.name, about.datatype, shape, raw[place])
        else:
            inputs[about.name] = _array_of(about, shape)
    wishes = [OutputWish(about.name, True) for about in message.outputs]
    if len({wish.name for wish in wishes}) < len(wishes):
        raise InvalidRequest("an output is asked for twice")
    for about in message.outputs:
        if about.parameters["classification"].int64_param if "classification" in about.parameters else 0:
            raise InvalidRequest(f"output '{about.name}': the server has no extension 'classification'")
    return InferRequest(inputs, message.id, wishes, parameters_of(message.parameters), binary=True)


def _array_of(about: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array of an input's typed elements."""
    name, datatype = about.name, about.datatype
    key = _CONTENTS.get(datatype)
    if key is None:
        raise InvalidRequest(f"input '{name}': elements of {datatype} must come as raw_input_contents")
    for field, _ in about.contents.ListFields():
        if field.name != key:
            raise InvalidRequest(f"input '{name}': elements of {datatype} must come as {key}, not {field.name}")
    elements = getattr(about.contents, key)
    if len(elements) != math.prod(shape):
        raise InvalidRequest(
            f"input '{name}': {len(elements)} elements; the shape {list(shape)} has {math.prod(shape)}"
        )
    if datatype == "BYTES":
        made = np.empty(len(elements), np.object_)
        made[:] = list(elements)
        return made.reshape(shape)
    wide = np.array(elements, np.float64 if datatype in ("FP32", "FP64") else None)
    if wide.size == 0:
        return np.empty(shape, _wire.DTYPES[datatype])
    if datatype in ("FP32", "FP64", "BOOL"):
        return wide.astype(_wire.DTYPES[datatype]).reshape(shape)
    return _wire.array_from_json(name, datatype, shape, wide.tolist())


def infer_answer(name: str, version: str, request: InferRequest, answer: dict[str, np.ndarray]) -> Any:
    """Return the message of an answer; its elements are raw bytes."""
    made = messages.ModelInferResponse(model_name=name, model_version=version, id=request.id)
    for wish, array in chosen_outputs(request, answer):
        made.outputs.add(name=wish.name, datatype=_wire.datatype_of(array.dtype), shape=array.shape)
        made.raw_output_contents.append(_wire.array_to_bytes(array))
    return made
