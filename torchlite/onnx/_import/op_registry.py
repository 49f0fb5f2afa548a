"""Registry of ONNX op implementations by domain, name and version; argument conversions."""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from torchlite import Tensor

from .._element_types import NarrowTensor
from .resource_limits import check_elements, check_steps

# Types of numeric inputs: Python values if constant, else tensors.
Ints: TypeAlias = Any
Floats: TypeAlias = Any
Number: TypeAlias = Any
HOST = ("Ints", "Floats", "Number")
_NUMBER = 12  # cost of a Python number in a list, in elements
_USUAL_SHAPE_LENGTH = 4  # usual length of a shape


class Op(NamedTuple):
    """Implementation of an op from a version on. `attributes` is None if it takes any, `host` names numeric inputs,
    `required` names mandatory attributes. `on_common_device` is the function for inputs of several devices.
    """

    since: int
    function: Callable
    inputs: tuple[str, ...]
    attributes: frozenset[str] | None
    host: dict[str, str]
    rest: bool
    counts: bool
    required: tuple[str, ...] = ()
    kinds: dict[str, type] = {}  # types of scalar attributes
    on_common_device: Callable | None = None


_TABLE: dict[tuple[str, str], list[Op]] = {}


def op(*names: str, since: int = 1, domain: str = "") -> Callable[[Callable], Callable]:
    """Register a function for ops from a version on."""

    def register(function: Callable) -> Callable:
        # `inspect.signature` takes longer than the import of most of these modules.
        written: Any = inspect.unwrap(function)
        code, values = written.__code__, written.__defaults__ or ()
        inputs = code.co_varnames[: code.co_argcount]
        taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        first = len(inputs) - len(values)
        defaults = {**dict(zip(inputs[first:], values, strict=True)), **(written.__kwdefaults__ or {})}
        host = {name: kind for name, kind in written.__annotations__.items() if kind in HOST}
        entry = Op(
            since,
            function,
            inputs,
            frozenset(taken) - {"outputs"},
            host,
            bool(code.co_flags & inspect.CO_VARARGS),
            "outputs" in taken,
            inputs[:first],
            {name: type(value) for name, value in defaults.items() if type(value) in (int, float, str)},
            _with_common_device(function, inputs, host),
        )
        for name in names:
            found = _TABLE.setdefault((domain, name), [])
            found.append(entry)
            found.sort(key=lambda item: item.since)
        return function

    return register


def find_op(domain: str, name: str, version: int) -> Op | None:
    """Return the implementation of an op version in its domain, None if there is none."""
    return next((entry for entry in reversed(_TABLE.get((domain, name), [])) if entry.since <= version), None)


def op_versions(domain: str, name: str) -> list[int]:
    """Return the versions with implementations of an op."""
    return [entry.since for entry in _TABLE.get((domain, name), [])]


def _check_list_length(what: str, count: int) -> None:
    """Check the length of a list made from a tensor, as ops loop over it."""
    check_elements(what, count, each=_NUMBER)
    if count > _USUAL_SHAPE_LENGTH:
        check_steps(what, count // _USUAL_SHAPE_LENGTH)


def ints(value: Any) -> list[int] | None:
    """Return an input or attribute as integers."""
    if value is None or value.__class__ is list:
        return value
    if isinstance(value, Tensor):
        _check_list_length("integers of an input", value.numel())
        value = value.tolist()
    return [int(value)] if isinstance(value, (int, float)) else [int(n) for n in value]


def floats(value: Any) -> list[float] | None:
    """Return an input or attribute as floats."""
    if value is None or value.__class__ is list:
        return value
    if isinstance(value, (Tensor, np.ndarray)):
        _check_list_length("numbers of an input", math.prod(value.shape))
        value = value.tolist()
    return [float(value)] if isinstance(value, (int, float)) else [float(n) for n in value]


def single_number(value: Any) -> Any:
    """Return an input or attribute as a single number, None if empty."""
    if isinstance(value, Tensor):
        if value.numel() > 1:
            raise ValueError(f"an input is one number, but got a tensor of shape {tuple(value.shape)}")
        return value.item() if value.numel() else None
    if isinstance(value, (list, tuple)):
        if len(value) > 1:
            raise ValueError(f"an input is one number, but got {len(value)}")
        return value[0] if value else None
    return value


def truth(what: str, condition: Any) -> bool:
    """Return a condition's single Boolean value."""
    found = single_number(condition)
    if not isinstance(found, bool):
        raise ValueError(f"{what}: a condition is one boolean value, but got {type(found).__name__}")
    return found


def fits_into(what: str, value: Any, shape: Any) -> None:
    """Check that a value broadcasts to a shape without enlarging it."""
    sizes = tuple(value.shape)
    if len(sizes) > len(shape) or any(n not in (1, m) for n, m in zip(sizes[::-1], shape[::-1], strict=False)):
        raise ValueError(f"{what}: a tensor of shape {sizes} cannot be broadcast to {tuple(shape)}")


def to_common_device(*values: Any) -> tuple:
    """Move host tensors, from shape computations, to the device of the others."""
    place = next((v.device for v in map(_tensor_of, values) if v is not None and v.device.type != "cpu"), None)
    return values if place is None else tuple([_move(value, place) for value in values])


def _tensor_of(value: Any) -> Tensor | None:
    value = value.values if isinstance(value, NarrowTensor) else value
    return value if isinstance(value, Tensor) else None


def _move(value: Any, place: Any) -> Any:
    tensor = _tensor_of(value)
    if tensor is None or tensor.device == place:
        return value
    return tensor.to(place) if value is tensor else NarrowTensor(tensor.to(place), value.type)


def _with_common_device(function: Callable, inputs: tuple[str, ...], host: dict[str, str]) -> Callable:
    """Return the function of an op that first moves its tensors, except numeric inputs, to their common device.

    It is an attribute of the function's module, so that graphs that call it can be pickled.
    """
    module, name = sys.modules[function.__module__], f"{function.__name__}_on_common_device"
    found = getattr(module, name, None)
    if found is not None:
        return found
    numeric = [i for i, given in enumerate(inputs) if given in host]

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        moved = [*to_common_device(*[None if i in numeric else value for i, value in enumerate(args)])]
        for i in numeric:
            moved[i : i + 1] = args[i : i + 1]
        return function(*moved, **kwargs)

    run.__name__ = run.__qualname__ = name
    setattr(module, name, run)
    return run


def normalize_dims(dims: list[int], rank: int) -> list[int]:
    """Return nonnegative dimensions. Raise IndexError if out of range, ValueError for a duplicate."""
    for d in dims:
        if not -rank <= d < max(rank, 1):
            raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {d})")
    found = [d % rank if rank else 0 for d in dims]
    if len(set(found)) < len(found):
        raise ValueError(f"a dimension is said twice: {str(dims)[:100]}")
    return found
