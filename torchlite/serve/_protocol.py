"""Requests and answers of the Open Inference Protocol v2, apart from how they travel."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _wire
from ._errors import InvalidRequest, UnknownModel

EXTENSIONS = ("binary_tensor_data", "model_repository", "statistics", "generate")
Parameters = dict[str, bool | int | float | str]


@dataclass(frozen=True)
class TensorSpec:
    """What a model says of an input or output. Without a datatype or shape it takes any; -1 is a free size."""

    name: str
    datatype: str | None = None
    shape: tuple[int, ...] | None = None

    def describe(self) -> dict[str, Any]:
        """Return the protocol's metadata of the tensor."""
        return {"name": self.name, "datatype": self.datatype or "", "shape": list(self.shape or ())}


@dataclass
class OutputWish:
    """An output that a client asks for, and whether its elements come as bytes."""

    name: str
    binary: bool = False


@dataclass
class InferRequest:
    """An inference request. Without `outputs` the client wants all of them."""

    inputs: dict[str, np.ndarray]
    id: str = ""
    outputs: list[OutputWish] = field(default_factory=list)
    parameters: Parameters = field(default_factory=dict)
    binary: bool = False  # the default of the outputs

    @property
    def timeout(self) -> float | None:
        """Seconds until the client no longer wants the answer: the parameter `timeout`, in microseconds."""
        found = self.parameters.get("timeout")
        if found is None:
            return None
        if type(found) is not int or found < 0:
            raise InvalidRequest("the parameter 'timeout' must be a whole number of microseconds")
        return found / 1e6 or None


# -- reading -------------------------------------------------------------------------------


try:  # reads numbers in a quarter of the time of `json`
    from orjson import loads as _quick_loads
except ImportError:
    _quick_loads = None


def parse_json(body: bytes | memoryview) -> Any:
    """Return the value of a JSON body. orjson reads it where it is installed; `json` reads what orjson refuses, such as
    NaN, and finds the error.
    """
    if _quick_loads is not None:
        with contextlib.suppress(ValueError, RecursionError):
            return _quick_loads(body)
    try:
        return json.loads(bytes(body))
    except UnicodeDecodeError:
        raise InvalidRequest("the body is no UTF-8 text") from None
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None
    except ValueError as error:  # also for a number of thousands of digits
        raise InvalidRequest(f"the body is no JSON: {error}") from None


def _take(table: Any, key: str, kind: type, where: str, default: Any = None) -> Any:
    """Return a value of a JSON object after a check of its type."""
    found = table.get(key, default)
    if found is None and default is None and key not in table:
        raise InvalidRequest(f"{where}: '{key}' is missing")
    if type(found) is not kind:
        words = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
        raise InvalidRequest(f"{where}: '{key}' must be {words[kind]}")
    return found


def parameters_of(table: Any, where: str) -> Parameters:
    """Return the parameters of a JSON object."""
    found = _take(table, "parameters", dict, where, {})
    if not all(isinstance(value, bool | int | float | str) for value in found.values()):
        raise InvalidRequest(f"{where}: a parameter must be a text, a number, true or false")
    return found


def check_load_parameters(parameters: Parameters) -> None:
    """Raise InvalidRequest for parameters of a request to load a model: there are none."""
    for name in parameters:
        raise InvalidRequest(f"the server has no parameter '{name}'; it loads what is in its folder")


def check_unload_parameters(parameters: Parameters) -> None:
    """Raise InvalidRequest for wrong parameters of a request to unload a model. A model has no dependents, so
    `unload_dependents` makes no difference.
    """
    for name in parameters:
        if name != "unload_dependents":
            raise InvalidRequest(f"the server has no parameter '{name}'")
        _flag(parameters, name, False, "request")


def _flag(parameters: Parameters, key: str, default: bool, where: str) -> bool:
    found = parameters.get(key, default)
    if type(found) is not bool:
        raise InvalidRequest(f"{where}: the parameter '{key}' must be true or false")
    return found


def infer_request_of(body: bytes, header_length: int | None, most_bytes: int) -> InferRequest:
    """Return the request of an HTTP body: JSON, and after `header_length` bytes the elements of binary tensors."""
    raw = memoryview(body)
    if header_length is not None and not 0 < header_length <= len(raw):
        raise InvalidRequest(
            f"Inference-Header-Content-Length is {header_length}; it must be from 1 to the body's {len(raw)} bytes"
        )
    table = parse_json(raw[:header_length])
    rest = raw[len(raw) if header_length is None else header_length :]
    if type(table) is not dict:
        raise InvalidRequest("the body must be a JSON object")
    parameters = parameters_of(table, "request")
    inputs: dict[str, np.ndarray] = {}
    for about in _take(table, "inputs", list, "request"):
        name, array, rest = _input_of(about, rest, most_bytes)
        if name in inputs:
            raise InvalidRequest(f"input '{name}' is given twice")
        inputs[name] = array
    if len(rest):
        raise InvalidRequest(f"{len(rest)} bytes after the JSON object belong to no input")
    binary = _flag(parameters, "binary_data_output", False, "request")
    return InferRequest(inputs, _take(table, "id", str, "request", ""), _wishes_of(table, binary), parameters, binary)


def _input_of(about: Any, rest: memoryview, most_bytes: int) -> tuple[str, np.ndarray, memoryview]:
    """Return the name and the array of an input, and the bytes that are left for later ones."""
    if type(about) is not dict:
        raise InvalidRequest("each of 'inputs' must be an object")
    name = _take(about, "name", str, "an input")
    where = f"input '{name}'"
    datatype = about.get("datatype")
    shape = _wire.check_shape(name, datatype, about.get("shape"), most_bytes)
    length = parameters_of(about, where).get("binary_data_size")
    if length is None:
        if "data" not in about:
            raise InvalidRequest(f"{where}: 'data' is missing")
        return name, _wire.array_from_json(name, str(datatype), shape, about["data"]), rest
    if "data" in about:
        raise InvalidRequest(f"{where}: it has 'data' and 'binary_data_size'; give one of them")
    if type(length) is not int or not 0 <= length <= len(rest):
        raise InvalidRequest(f"{where}: 'binary_data_size' is {length}; {len(rest)} bytes of the body are left")
    return name, _wire.array_from_bytes(name, str(datatype), shape, rest[:length]), rest[length:]


def _wishes_of(table: dict, binary: bool) -> list[OutputWish]:
    found = []
    for about in _take(table, "outputs", list, "request", []):
        if type(about) is not dict:
            raise InvalidRequest("each of 'outputs' must be an object")
        name = _take(about, "name", str, "an output")
        where = f"output '{name}'"
        parameters = parameters_of(about, where)
        if parameters.get("classification"):
            raise InvalidRequest(f"{where}: the server has no extension 'classification'")
        found.append(OutputWish(name, _flag(parameters, "binary_data", binary, where)))
    if len({wish.name for wish in found}) < len(found):
        raise InvalidRequest("an output is asked for twice")
    return found


def raw_request_of(body: bytes, specs: Sequence[TensorSpec], most_bytes: int) -> InferRequest:
    """Return the request of a body that holds the elements of a model's one input and nothing else."""
    if len(specs) != 1 or specs[0].datatype is None or specs[0].shape is None:
        raise InvalidRequest("a raw binary request needs a model with one input whose datatype and shape are known")
    spec = specs[0]
    sizes, free = list(specs[0].shape), [place for place, size in enumerate(specs[0].shape) if size < 0]
    if spec.datatype == "BYTES":
        body = _wire.array_to_bytes(np.array([bytes(body)], np.object_))
        sizes, free = [1 if size < 0 else size for size in sizes], []
    if len(free) > 1:
        raise InvalidRequest(f"a raw binary request needs an input with one free size; '{spec.name}' has {len(free)}")
    if free:
        one = math.prod(size for size in sizes if size >= 0) * _wire.DTYPES[str(spec.datatype)].itemsize
        if not one or len(body) % one:
            raise InvalidRequest(f"input '{spec.name}': {len(body)} bytes are no multiple of {one}")
        sizes[free[0]] = len(body) // one
    shape = _wire.check_shape(spec.name, spec.datatype, sizes, most_bytes)
    return InferRequest({spec.name: _wire.array_from_bytes(spec.name, str(spec.datatype), shape, body)}, binary=True)


# -- checks against a model ----------------------------------------------------------------


def check_inputs(request: InferRequest, specs: Sequence[TensorSpec]) -> None:
    """Raise InvalidRequest if inputs are missing, unknown, or not of the model's datatype and shape."""
    names = [spec.name for spec in specs]
    strangers = [name for name in request.inputs if name not in names]
    if strangers:
        raise InvalidRequest(f"the model has no input '{strangers[0]}'; its inputs are {', '.join(names)}")
    for spec in specs:
        array = request.inputs.get(spec.name)
        if array is None:
            raise InvalidRequest(f"input '{spec.name}' is missing")
        datatype = _wire.datatype_of(array.dtype)
        if spec.datatype not in (None, datatype):
            raise InvalidRequest(f"input '{spec.name}' must be {spec.datatype}, not {datatype}")
        if spec.shape is not None and not fits(array.shape, spec.shape):
            raise InvalidRequest(
                f"input '{spec.name}' must have the shape {list(spec.shape)} (-1 is any size), not {list(array.shape)}"
            )


def fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """True if a shape is the wanted one, where -1 is any size."""
    if len(shape) != len(wanted):
        return False
    return False not in [want in (-1, size) for size, want in zip(shape, wanted, strict=True)]


def chosen_outputs(request: InferRequest, answer: dict[str, np.ndarray]) -> list[tuple[OutputWish, np.ndarray]]:
    """Return the outputs that a client wants, in its order."""
    wishes = request.outputs or [OutputWish(name, request.binary) for name in answer]
    for wish in wishes:
        if wish.name not in answer:
            raise InvalidRequest(f"the model has no output '{wish.name}'; its outputs are {', '.join(answer)}")
    return [(wish, answer[wish.name]) for wish in wishes]


def check_wishes(request: InferRequest, specs: Sequence[TensorSpec]) -> None:
    """Raise InvalidRequest for an unknown output, where the model says which it has."""
    names = [spec.name for spec in specs]
    for wish in request.outputs:
        if names and wish.name not in names:
            raise InvalidRequest(f"the model has no output '{wish.name}'; its outputs are {', '.join(names)}")


# -- writing -------------------------------------------------------------------------------


def infer_answer(
    name: str, version: str, request: InferRequest, answer: dict[str, np.ndarray]
) -> tuple[dict[str, Any], list[bytes]]:
    """Return the JSON object of an answer, and the elements of its binary outputs."""
    outputs: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for wish, array in chosen_outputs(request, answer):
        about: dict[str, Any] = {
            "name": wish.name,
            "datatype": _wire.datatype_of(array.dtype),
            "shape": list(array.shape),
        }
        if wish.binary:
            parts.append(_wire.array_to_bytes(array))
            about["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            about["data"] = _wire.array_to_json(array)
        outputs.append(about)
    made: dict[str, Any] = {"model_name": name, "model_version": version}
    if request.id:
        made["id"] = request.id
    return {**made, "outputs": outputs}, parts


def check_model_name(name: str) -> str:
    """Return a model's name after a check that it can be a folder's name and a part of an address."""
    if not name or name in (".", "..") or any(c in '/\\:"' or not c.isprintable() for c in name) or len(name) > 255:
        raise UnknownModel(f"no model can be named {name!r}")
    return name
