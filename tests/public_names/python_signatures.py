"""Signatures of functions and classes as text that PyTorch and this library have in common."""

from __future__ import annotations

import enum
import importlib
import inspect
from typing import Any

_MARKS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
_PLAIN = (type(None), bool, int, float, str)


def described(callable_: Any) -> str | None:
    """The parameters of a callable: `input dim=None *args , keepdim=False`, where a comma precedes keyword-only ones.
    None without a signature.
    """
    try:
        found = inspect.signature(callable_)
    except (TypeError, ValueError):
        return None
    parts, only_keywords = [], False
    for p in found.parameters.values():
        if p.name in ("self", "cls", "_cls") and not parts:
            continue
        if p.kind is p.KEYWORD_ONLY and not only_keywords:
            parts.append(",")
        only_keywords = only_keywords or p.kind is p.KEYWORD_ONLY
        parts.append(_MARKS.get(p.kind, "") + p.name + ("" if p.default is p.empty else f"={_default(p.default)}"))
    return " ".join(parts)


def _default(value: Any) -> str:
    """A default's text: a literal, or "..." for another object."""
    if isinstance(value, enum.Enum) or not isinstance(value, (*_PLAIN, tuple)):
        return "..."
    if isinstance(value, tuple) and not all(isinstance(item, _PLAIN) for item in value):
        return "..."
    return repr(value).replace(" ", "")


def module(package: str, name: str) -> Any:
    """A module of a package by its name below it; the package itself for "torch"."""
    return importlib.import_module(package if name == "torch" else f"{package}.{name}")


def callables(home: Any, package: str) -> dict[str, Any]:
    """The functions and classes in Python that a module shows, and the public methods of the classes."""
    found = {}
    for name in dir(home):
        value = getattr(home, name, None)
        if name.startswith("_") or not str(getattr(value, "__module__", "")).startswith(package):
            continue
        if inspect.isfunction(value):
            found[name] = value
        elif inspect.isclass(value):
            found[name] = value
            for method in vars(value):
                each = inspect.getattr_static(value, method)
                if method.startswith("_") or not inspect.isfunction(getattr(each, "__func__", each)):
                    continue
                found[f"{name}.{method}"] = getattr(value, method)
    return found


def _parsed(text: str) -> tuple[list[str], dict[str, str | None], dict[str, str | None], str]:
    """The positional names, their defaults, the keyword-only names with defaults, and the marks of "*" and "**"."""
    positional: dict[str, str | None] = {}
    only: dict[str, str | None] = {}
    marks, target = "", positional
    for part in text.split(" ") if text else ():
        if part == ",":
            target = only
        elif part.startswith("*"):
            marks += "**," if part.startswith("**") else "*,"
            target = only
        else:
            name, has_default, default = part.partition("=")
            target[name] = default if has_default else None
    return list(positional), positional, only, marks


def differences(theirs: str, ours: str) -> list[str]:
    """What a caller of PyTorch's signature meets with ours: names, positions and defaults that differ. More optional
    parameters, and those that `*args` and `**kwargs` take, make no difference.
    """
    want, want_defaults, want_only, want_marks = _parsed(theirs)
    have, have_defaults, have_only, have_marks = _parsed(ours)
    found = []
    defaults = {**have_defaults, **have_only}
    for place, name in enumerate(want):
        if name not in defaults and "**," not in have_marks:
            found.append(f"no {name}")
        elif name in have and have.index(name) != place or name in have_only and "*," not in have_marks:
            found.append(f"{name} is elsewhere")
    found += [f"no {name}" for name in want_only if name not in defaults and "**," not in have_marks]
    for name, default in {**want_defaults, **want_only}.items():
        if default is not None and name in defaults and defaults[name] not in (default, "...") and default != "...":
            found.append(f"{name}={defaults[name]}, not {default}")
    if "*," not in want_marks:
        strange = [n for n in [*have, *have_only] if n not in (*want, *want_only) and defaults[n] is None]
        found += [f"{name} is required" for name in strange if "**," not in want_marks]
    if "*," in want_marks and "*," not in have_marks and not have:
        found.append("no *args")
    if "**," in want_marks and "**," not in have_marks and not have_only and not have:
        found.append("no **kwargs")
    return found
