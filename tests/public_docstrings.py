"""Missing parts of the docstrings of public functions, classes and methods: first sentence, arguments, example."""

import enum
import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType

import torchlite
from torchlite._dispatch.op_docstrings import documented_arguments, sections


def public_names(module: ModuleType) -> list[str]:
    return sorted(set(getattr(module, "__all__", None) or [name for name in dir(module) if name[0] != "_"]))


def parameters(function) -> list[str] | None:
    """The names of the parameters that a docstring describes; None where the signature does not tell them."""
    if getattr(function, "__init__", None) is torchlite.nn.Module.__init__:
        return []  # the layer accepts none
    try:
        names = inspect.signature(function).parameters
    except (TypeError, ValueError):  # of a builtin
        return []
    if {"args", "kwargs"} & set(names):  # `*args` of a constructor that has several forms
        return None
    return [name for name in names if name[0] != "_"]


def missing_parts(docstring: str | None, names: list[str] | None, example: bool) -> list[str]:
    """The missing parts of a docstring; `names` are the parameters, None if they need no text."""
    text = inspect.cleandoc(docstring or "")
    if not text:
        return ["a docstring"]
    found = sections(text)
    first = found[""].partition("\n\n")[0].strip()
    lacks = [] if first.endswith((".", ":")) else ["the first sentence's full stop"]
    if names is not None:
        documented = {name for group in documented_arguments(found.get("Args", "")) for name in group}
        lacks += [f"Args: {name}" for name in names if name not in documented]
        lacks += [f"no parameter: {name}" for name in sorted(documented - set(names)) if names]
    if example and ">>> " not in text and "Example" not in found:
        lacks.append("Example")
    return lacks


def _of_members(kind: type) -> Iterator[tuple[str, list[str]]]:
    for name, value in sorted(vars(kind).items()):
        if name[0] == "_":
            continue
        member = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if isinstance(member, property):
            yield name, missing_parts(member.__doc__, None, False)
        elif inspect.isfunction(member) and not hasattr(member, "op"):
            own = member.__doc__  # a method may rely on the docstring of the one that it overrides
            names = (parameters(member) or [])[not isinstance(value, staticmethod) :] if own else None
            yield name, missing_parts(own or inspect.getdoc(getattr(kind, name)), names, False)


def all_missing_parts(namespace: str) -> dict[str, list[str]]:
    """By name what the namespace's functions, classes and their own methods lack; op records are not among them."""
    package = torchlite.__name__
    module = importlib.import_module(f"{package}.{namespace}" if namespace else package)
    found = {}
    for name in public_names(module):
        value = getattr(module, name, None)
        ours = str(getattr(value, "__module__", "")).startswith(package)
        if inspect.ismodule(value) or not callable(value) or hasattr(value, "op") or not ours:
            continue
        own = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        made_by_members = isinstance(value, enum.EnumMeta)  # an enum's constructor looks its members up
        found[name] = missing_parts(own, None if made_by_members else parameters(value), True)
        if inspect.isclass(value):
            found |= {f"{name}.{member}": lacks for member, lacks in _of_members(value)}
    return {name: lacks for name, lacks in found.items() if lacks}
