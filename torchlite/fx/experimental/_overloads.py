"""Calls of torchlite's functions as calls of the library's overloads: found by matching arguments against schemas."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..._aten import ops
from ..._aten.table import entries
from ..._dispatch import call
from ..._dispatch.record import NAMESPACES, Op
from ..._dispatch.signatures import NUMBERS_AS_TENSORS

Found = tuple[Any, tuple, dict]
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
_NUMBERS = (int, float, bool, complex)
# Names of our arguments where the library has others.
_ALIASES = {
    "self": ("input", "condition"), "size": ("shape",), "shape": ("size",), "dims": ("dim",), "dim": ("dims",),
    "tensors": ("tensors", "input"), "cudnn_enabled": (), "exponent": ("other",), "other": ("exponent",),
    "dim0": ("dim0", "axis0"), "train": ("training",), "training": ("train",), "target": ("target",),
    "repeats": ("sizes", "repeats"), "indices": ("input", "indices"), "pad": ("pad", "padding"),
}  # fmt: skip


# Records beneath a composite of that name, which are another op of the library.
_INNER = {"_prelu": "_prelu_kernel"}


@functools.cache
def _names(op: Op) -> tuple[str, ...]:
    """The names that the library may have for a record."""
    if op.name in _INNER:
        return (_INNER[op.name],)
    found = [op.name, op.name.removeprefix("_")]
    for space in ("torch", "nn.functional", "Tensor", "linalg", "special", "fft"):
        prefix = f"{space}_" if space in ("linalg", "special", "fft") else ""
        found += [prefix + name for name, record in NAMESPACES.get(space, {}).items() if record is op]
    found += [{"_where": "where", "max_dim": "max", "min_dim": "min", "to": "to"}.get(op.name, "")]
    return tuple(dict.fromkeys(name for name in found if name and entries(name)))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, call.Tensor)


def _fitted(argument: Any, value: Any, numbers: bool) -> Any:
    """A value as an argument's type has it; NotImplemented where it has none."""
    kind = argument.type
    if argument.name == "reduction" and isinstance(value, str) and kind.base == "int":
        return _REDUCTIONS.get(value, NotImplemented)
    if isinstance(value, tuple):
        value = [*value]
    if _is_tensor(value) and kind.base != "Tensor" and "[" not in kind.text:
        return NotImplemented
    if kind.text == "Tensor" and isinstance(value, _NUMBERS):
        return value if numbers else NotImplemented
    if "SymInt" in kind.text or "int" in kind.text or "float" in kind.text:
        wants_list = any(s.startswith("[") for s in kind.suffixes)
        if wants_list and isinstance(value, _NUMBERS):
            count = argument.N or 1
            value = [value] * count
        if wants_list and isinstance(value, list) and argument.N and 1 == len(value) < argument.N:
            value = value * argument.N
    if isinstance(value, bool) and kind.base in ("int", "SymInt", "float"):
        return NotImplemented
    if kind.base == "float" and isinstance(value, int):
        value = float(value)
    return value if kind.holds(value) else NotImplemented


def fit(overload: Any, params: list[tuple[str, Any, Any]], numbers: bool) -> Found | None:
    """A call of an overload with these arguments, each a name, a value and a default; None where it has others."""
    schema = overload._schema
    left = {name: (value, default) for name, value, default in params}
    order = [name for name, _, _ in params]
    given: dict[str, Any] = {}
    for place, argument in enumerate(schema.arguments):
        if argument.kwarg_only and argument.is_write:
            return None
        name = next((n for n in (argument.name, *_ALIASES.get(argument.name, ())) if n in left), None)
        if name is None and place < len(order) and order[place] in left and not argument.has_default:
            name = order[place]
        if name is None:
            continue
        value, default = left.pop(name)
        unsaid = value is default or (isinstance(value, (int, float, str, bool)) and value == default)
        fitted = _fitted(argument, value, numbers)
        if fitted is NotImplemented:
            if unsaid and argument.has_default:
                continue
            return None
        if not (argument.has_default and _same(fitted, argument.default_value)):
            given[argument.name] = fitted
    for value, default in left.values():
        if not (value is default or (not _is_tensor(value) and _same(value, default))):
            return None
    if any(not a.has_default and a.name not in given for a in schema.arguments):
        return None
    return _called(overload, given)


def _same(a: Any, b: Any) -> bool:
    if _is_tensor(a) or _is_tensor(b):
        return a is b
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and a == b or (a is None and b is None)


def _called(overload: Any, given: dict[str, Any]) -> Found:
    """Arguments by name as a call has them: those with a position up to the last that is given."""
    schema = overload._schema
    positional = schema.positional
    last = max((i for i, a in enumerate(positional) if a.name in given), default=-1)
    args = tuple(given.get(a.name, a.default_value) for a in positional[: last + 1])
    names = {a.name for a in positional}
    return overload, args, {name: value for name, value in given.items() if name not in names}


def whole(op: Op, values: list, writes: bool = False) -> Found | None:
    """A record's call as one call of the library; None where the library writes it in others."""
    special = _SPECIAL.get(op.name)
    if special is not None and not writes:
        found = special(*values)
        if found is not None:
            return found
    if op.name in _NEVER:
        return None
    params = []
    for p, value in zip(op.params, values, strict=True):
        params.append((p.name, list(value) if p.kind == "varargs" else value, p.default))
    best: Found | None = None
    for name in _names(op):
        wanted = name + "_" * writes
        for which, entry in entries(wanted).items():
            if entry.is_script:
                continue
            found = fit(getattr(getattr(ops.aten, wanted), which), params, wanted in NUMBERS_AS_TENSORS)
            if found is not None and (best is None or _length(found) < _length(best)):
                best = found
        if best is not None:
            return best
    return None


def _length(found: Found) -> int:
    """How many arguments a call has: of those that fit, the shortest is meant."""
    return len(found[1]) + len(found[2])


# -- where names or arguments are others ------------------------------------------------------------

_NEVER = frozenset(("_setitem", "_slice_index", "_index", "getitem"))
_aten = ops.aten


def _by_name(overload: Any, **given: Any) -> Found | None:
    return fit(overload, [(name, value, None) for name, value in given.items()], False)


def _sub(input: Any, other: Any, alpha: Any = 1) -> Found | None:
    if not _is_tensor(input):
        return _aten.rsub.Scalar, (other, input), {} if alpha == 1 else {"alpha": alpha}
    return None


def _swapped(name: str) -> Callable:
    def swapped(input: Any, other: Any, *rest: Any) -> Found | None:
        return None if _is_tensor(input) else (getattr(_aten, name).Tensor, (other, input), {})

    return swapped


def _div(input: Any, other: Any, *rest: Any) -> Found | None:
    if _is_tensor(input) or not _is_tensor(other):
        return None
    return _aten.mul.Tensor, (_Inner(_aten.reciprocal.default, (other,)), input), {}


class _Inner:
    """An argument that is a call itself."""

    def __init__(self, overload: Any, args: tuple, kwargs: dict | None = None) -> None:
        self.overload, self.args, self.kwargs = overload, args, kwargs or {}


def _batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, training: Any, momentum: Any, eps: Any
) -> Found:
    return (
        _aten.batch_norm.default,
        (input, weight, bias, running_mean, running_var, training, momentum, eps, False),
        {},
    )


def _instance_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, use_input_stats: Any, momentum: Any,
    eps: Any,
) -> Found:  # fmt: skip
    args = (input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)
    return _aten.instance_norm.default, args, {}


_SPECIAL: dict[str, Callable[..., Found | None]] = {
    "sub": _sub, "_sub": _sub, "mul": _swapped("mul"), "add": _swapped("add"), "_add": _swapped("add"), "div": _div,
    "_div": _div,
}  # fmt: skip


def special(name: str) -> Callable:
    """Add how a record's call is written in the library."""

    def add(function: Callable) -> Callable:
        _SPECIAL[name] = function
        return function

    return add
