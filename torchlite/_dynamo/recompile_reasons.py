"""Tells why a call needs another recording, in PyTorch's words: how it differs from the recorded calls."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from torchlite.nn.modules.module import Module

from .flatten_args import LeafMarker


class RecordedArguments(NamedTuple):
    """The arguments of a recorded call: key and modes, and for each tensor what guards test."""

    key: Any
    modes: tuple
    tensors: list[tuple]


def arguments_of(key: Any, tensors: list, modes: tuple) -> RecordedArguments:
    """Return what a guard tests of arguments."""
    return RecordedArguments(
        key, modes, [(type(t), t.dtype, tuple(t.shape), t.stride(), t.requires_grad) for t in tensors]
    )


def recompile_message(function: Any, now: RecordedArguments, recorded: list[RecordedArguments]) -> str:
    """Return the text of `RecompileError`."""
    code = _code_of(function)
    where = "a function" if code is None else f"function {code.co_name} in {code.co_filename}:{code.co_firstlineno}"
    lines = [f"    - 0/{n}: {_why(function, now, one)}" for n, one in enumerate(recorded)]
    return "\n".join([f"Recompiling {where}", "    triggered by the following guard failure(s):", *lines])


def limit_message(function: Any, limit: int, now: RecordedArguments, recorded: list[RecordedArguments]) -> str:
    """Return the text of the warning that no more calls are recorded."""
    code = _code_of(function)
    name = "" if code is None else f"'{code.co_name}' ({code.co_filename}:{code.co_firstlineno})"
    last = f"0/{len(recorded) - 1}: {_why(function, now, recorded[-1])}" if recorded else "it cannot be recorded"
    return (
        f"torch._dynamo hit config.recompile_limit ({limit})\n   function: {name}\n   last reason: {last}\n"
        'To log all recompilation reasons, use TORCHLITE_LOGS="recompiles".'
    )


def _code_of(function: Any) -> Any:
    function = type(function).forward if isinstance(function, Module) else inspect.unwrap(function)
    return getattr(function, "__code__", None)


def _why(function: Any, now: RecordedArguments, before: RecordedArguments) -> str:
    """Return the first difference of two calls."""
    if now.modes[0] != before.modes[0]:
        return "GLOBAL_STATE changed: grad_mode "
    if now.modes != before.modes:
        return "GLOBAL_STATE changed: a mode or a default"
    names: list[str] = []
    for name, a, b in _pair_arguments(function, before.key, now.key):
        found = _why_not_same_value(name, a, b, names)
        if found:
            return found
    for name, old, new in zip(names, before.tensors, now.tensors, strict=False):
        found = _why_not_same_tensor(name, old, new)
        if found:
            return found
    return "a module, a global or a closure that it reads changed"


def _pair_arguments(function: Any, before: Any, now: Any) -> list[tuple[str, Any, Any]]:
    """Return the names of arguments with their keys in two calls."""
    names = argument_names(function)
    found = []
    for n, (a, b) in enumerate(zip(before[0][1:], now[0][1:], strict=False)):
        found.append((names[n] if n < len(names) else f"args[{n}]", a, b))
    old, new = (dict(key[1][1:]) if key[1] else {} for key in (before, now))
    return found + [(name, old[name], new[name]) for name in old if name in new]


def argument_names(function: Any) -> list[str]:
    """Return the names of a function's positional parameters."""
    try:
        found = inspect.signature(function.forward if isinstance(function, Module) else function)
    except (ValueError, TypeError):
        return []
    return [p.name for p in found.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _why_not_same_value(name: str, a: Any, b: Any, names: list[str]) -> str:
    """Return how a value's key differs, "" if it does not; `names` gets the names of tensors."""
    if a is LeafMarker and b is LeafMarker:
        names.append(name)
        return ""
    if a.__class__ is tuple and b.__class__ is tuple and a[0] is b[0] and a[0] in (tuple, list, dict):
        if len(a) != len(b):
            return f"len({name}) == {len(a) - 1}"
        for n, (x, y) in enumerate(zip(a[1:], b[1:], strict=True)):
            place, x, y = (repr(x[0]), x[1], y[1]) if a[0] is dict else (n, x, y)
            found = _why_not_same_value(f"{name}[{place}]", x, y, names)
            if found:
                return found
        return ""
    if a == b:
        return ""
    if a is LeafMarker or b is LeafMarker or a.__class__ is not tuple:
        return f"expected type of '{name}' to be the recorded one"
    return f"{name} == {a[1] if a[0] is float else repr(a[1])}" if len(a) == 2 else f"{name} is another value"


def _why_not_same_tensor(name: str, old: tuple, new: tuple) -> str:
    (cls, dtype, shape, strides, requires), (cls2, dtype2, shape2, strides2, requires2) = old, new
    if cls is not cls2:
        return f"expected type of '{name}' to be a tensor type, ' but found {cls2}"
    if dtype != dtype2:
        return f"tensor '{name}' dtype mismatch. expected {_dtype_name(dtype)}, actual {_dtype_name(dtype2)}"
    if requires is not requires2:
        return f"tensor '{name}' requires_grad mismatch. expected requires_grad={int(requires)}"
    if len(shape) != len(shape2):
        return f"tensor '{name}' rank mismatch. expected {len(shape)}, actual {len(shape2)}"
    for what, x, y in (("size", shape, shape2), ("stride", strides, strides2)):
        for n, (a, b) in enumerate(zip(x, y, strict=True)):
            if a != b:
                return f"tensor '{name}' {what} mismatch at index {n}. expected {a}, actual {b}"
    return ""


def _dtype_name(dtype: Any) -> str:
    name = str(dtype).rpartition(".")[2]
    known = {"float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long", "int32": "Int",
             "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "bfloat16": "BFloat16",
             "complex64": "ComplexFloat", "complex128": "ComplexDouble"}  # fmt: skip
    return known.get(name, name)
