"""Which function does an op of a version."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from torchlite import Tensor

from .resource_limits import check_elements, check_steps

# What inputs are that are numbers rather than data: Python's where the file says them, else tensors.
Ints: TypeAlias = Any
Floats: TypeAlias = Any
Number: TypeAlias = Any
HOST = ("Ints", "Floats", "Number")
_NUMBER = 12  # elements for a number of Python in a list
_FEW = 4  # numbers, as many as a shape usually has


class Op(NamedTuple):
    """A function for an op from a version on. `attributes` is None where it takes any, `host` names its inputs that are
    numbers, `required` those that it has to have.
    """

    since: int
    function: Callable
    inputs: tuple[str, ...]
    attributes: frozenset[str] | None
    host: dict[str, str]
    rest: bool
    counts: bool
    required: tuple[str, ...] = ()
    kinds: dict[str, type] = {}  # of attributes that are a number or a text


_TABLE: dict[tuple[str, str], list[Op]] = {}


def op(*names: str, since: int = 1, domain: str = "") -> Callable[[Callable], Callable]:
    """Let a function do ops from a version on."""

    def register(function: Callable) -> Callable:
        params = inspect.signature(function).parameters.values()
        kinds = {p.name: str(p.annotation) for p in params if str(p.annotation) in HOST}
        entry = Op(
            since,
            function,
            tuple(p.name for p in params if p.kind is p.POSITIONAL_OR_KEYWORD),
            frozenset(p.name for p in params if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)) - {"outputs"},
            kinds,
            any(p.kind is p.VAR_POSITIONAL for p in params),
            any(p.name == "outputs" for p in params),
            tuple(p.name for p in params if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty),
            {p.name: type(p.default) for p in params if type(p.default) in (int, float, str)},
        )
        for name in names:
            found = _TABLE.setdefault((domain, name), [])
            found.append(entry)
            found.sort(key=lambda item: item.since)
        return function

    return register


def find_op(domain: str, name: str, version: int) -> Op | None:
    """What does an op of a version of its domain; None where nothing does."""
    return next((entry for entry in reversed(_TABLE.get((domain, name), [])) if entry.since <= version), None)


def op_versions(domain: str, name: str) -> list[int]:
    """From which versions on there are functions for an op."""
    return [entry.since for entry in _TABLE.get((domain, name), [])]


def _check_list_length(what: str, count: int) -> None:
    """Check the numbers of a list that is made of a tensor. Ops go through lists."""
    check_elements(what, count, each=_NUMBER)
    if count > _FEW:
        check_steps(what, count // _FEW)


def ints(value: Any) -> list[int] | None:
    """Integers of an input or attribute."""
    if value is None or value.__class__ is list:
        return value
    if isinstance(value, Tensor):
        _check_list_length("integers of an input", value.numel())
        value = value.tolist()
    return [int(value)] if isinstance(value, (int, float)) else [int(n) for n in value]


def floats(value: Any) -> list[float] | None:
    """Numbers of an input or attribute."""
    if value is None or value.__class__ is list:
        return value
    if isinstance(value, (Tensor, np.ndarray)):
        _check_list_length("numbers of an input", math.prod(value.shape))
        value = value.tolist()
    return [float(value)] if isinstance(value, (int, float)) else [float(n) for n in value]


def single_number(value: Any) -> Any:
    """The one number of an input or attribute; None where it is empty."""
    if isinstance(value, Tensor):
        if value.numel() > 1:
            raise ValueError(f"an input is one number, but got a tensor of shape {tuple(value.shape)}")
        return value.reshape(-1)[0].item() if value.numel() else None
    if isinstance(value, (list, tuple)):
        if len(value) > 1:
            raise ValueError(f"an input is one number, but got {len(value)}")
        return value[0] if value else None
    return value


def truth(what: str, condition: Any) -> bool:
    """The one boolean value of a condition."""
    found = single_number(condition)
    if not isinstance(found, bool):
        raise ValueError(f"{what}: a condition is one boolean value, but got {type(found).__name__}")
    return found


def fits_into(what: str, value: Any, shape: Any) -> None:
    """Check that a value is broadcast to a shape, which it does not make larger."""
    sizes = tuple(value.shape)
    if len(sizes) > len(shape) or any(n not in (1, m) for n, m in zip(sizes[::-1], shape[::-1], strict=False)):
        raise ValueError(f"{what}: a tensor of shape {sizes} cannot be broadcast to {tuple(shape)}")


def to_common_device(*values: Any) -> tuple:
    """Tensors of one device: those of the host, where shapes are computed, go to that of the others."""
    place = next((v.device for v in values if isinstance(v, Tensor) and v.device.type != "cpu"), None)
    if place is None:
        return values
    return tuple(v.to(place) if isinstance(v, Tensor) and v.device != place else v for v in values)


def normalize_dims(dims: list[int], rank: int) -> list[int]:
    """Dimensions counted from the front. IndexError for one that is not there, ValueError for one given twice."""
    for d in dims:
        if not -rank <= d < max(rank, 1):
            raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {d})")
    found = [d % rank if rank else 0 for d in dims]
    if len(set(found)) < len(found):
        raise ValueError(f"a dimension is said twice: {str(dims)[:100]}")
    return found
