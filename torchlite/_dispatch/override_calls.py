"""The arguments that `__torch_function__` receives: PyTorch passes them as the caller wrote them.

Functions of PyTorch in Python pass theirs on in a form of their own, which `override_calls.txt` has
(tools/record_overrides.py). For all others the form is read from the call in the caller's code, which only a call with
an overriding argument does: a Python function does not know whether an argument came by name.
"""

from __future__ import annotations

import dis
import functools
import os
import re
import sys
from types import CodeType
from typing import Any

from .interceptors import strip_default_args


@functools.cache
def python_calls() -> dict[str, tuple[list[str], list[str]]]:
    """The arguments by position and by name that PyTorch's functions in Python pass on, by the functions' names."""
    found = {}
    with open(os.path.join(os.path.dirname(__file__), "override_calls.txt"), encoding="utf-8") as file:
        for line in file:
            name, _, text = line.strip().rstrip(")").partition("(")
            given = text.split(", ") if text else []
            found[name] = ([a for a in given if a[-1] != "="], [a[:-1] for a in given if a[-1] == "="])
    return found


@functools.lru_cache(4096)
def _call_at(code: CodeType, place: int) -> tuple[int, tuple[str, ...]] | None:
    """(arguments by position, names of the others) of the call at an instruction; None if it is no such call."""
    *before, call = (i for i in dis.get_instructions(code) if i.offset <= place)  # `place` may be in the call's cache
    if call.opname == "CALL_KW":  # from Python 3.13 on
        names = before[-1].argval
    elif call.opname == "CALL":
        names = next((code.co_consts[i.arg or 0] for i in before[-2:] if i.opname == "KW_NAMES"), ())
    else:
        return None
    return (call.arg or 0) - len(names), tuple(names)


def _written_call(function: Any) -> tuple[int, tuple[str, ...]] | None:
    """The form of the call of a function that runs now."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not function.__code__:
        frame = frame.f_back  # type: ignore[assignment]
    caller = frame and frame.f_back
    return None if caller is None else _call_at(caller.f_code, caller.f_lasti)


def override_arguments(op: Any, function: Any, bound: list, args: tuple, kwargs: dict) -> tuple[tuple, dict | None]:
    """(args, kwargs) with which `__torch_function__` sees a call of an op's function; kwargs are None without any."""
    home = getattr(function, "__module__", "").rpartition("torchlite.")[2]
    form = python_calls().get(f"{'nn.functional' if home == 'nn.functional' else 'torch'}.{function.__name__}")
    found: tuple[tuple, dict | None] | None
    if form is not None:
        found = _in_python_form(op, bound, *form)
        if found is not None:
            return found
    written = _written_call(function) if hasattr(function, "__code__") else None
    if written is not None:
        found = _in_written_form(op, bound, *written)
        if found is not None:
            return found
    args, kwargs = strip_default_args(op, args, kwargs)
    return args, kwargs or None


def _in_python_form(op: Any, bound: list, by_position: list[str], by_name: list[str]) -> tuple[tuple, dict] | None:
    values = {p.name: value for p, value in zip(op.params, bound, strict=True)}
    if op.has_out:
        values.setdefault("out", None)
    if by_position and by_position[-1][0] == "*":
        *first, rest = bound[: len(by_position)]
        args = *first, *rest
    else:
        args = tuple(bound[: len(by_position)])
    if len(by_position) > len(bound) or not values.keys() >= set(by_name):
        return None
    return args, {name: values[name] for name in by_name}


def _in_written_form(op: Any, bound: list, count: int, names: tuple[str, ...]) -> tuple[tuple, dict | None] | None:
    given: list = []
    left = count
    values = {p.name: value for p, value in zip(op.params, bound, strict=True)}
    absent = {p.name for p, value in zip(op.params, bound, strict=True) if _is_default(value, p.default)}
    for p, value in zip(op.params, bound, strict=True):
        if not left or p.kwonly:
            break
        if p.kind == "varargs":
            spread = left == len(value)
            given += value if spread else [value]
            left -= len(value) if spread else 1
        else:
            given.append(value)
            left -= 1
        absent.add(p.name)
    names = tuple(name for name in names if name != "out" or not op.has_out)  # the caller adds it
    if left or not values.keys() >= set(names) or not values.keys() <= absent | set(names):
        return None
    return tuple(given), {name: values[name] for name in names} or None


def _is_default(value: Any, default: Any) -> bool:
    return (
        value is default
        or isinstance(default, (int, float, str, tuple))
        and value.__class__ is default.__class__
        and value == default
    )


def bind_python_call(function: Any, form: tuple[list[str], list[str]], args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments that a method of PyTorch in Python passes on, with its defaults."""
    import inspect

    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    by_position, by_name = form
    values = list(bound.arguments.values())
    taken = values[: len(by_position)]
    if by_position and re.match(r"\*\w", by_position[-1]):
        taken = [*taken[:-1], *taken[-1]]
    named = {name: bound.arguments[name] for name in by_name if name in bound.arguments}
    return tuple(taken), named
