"""Classes whose `__module__` names the public module that offers them, not the private one whose file defines them."""

from __future__ import annotations

from typing import Any

# What `inspect` reads of a class to find its text, as it was before the class was adopted.
_DEFINITIONS: dict[type, dict[str, Any]] = {}


def adopt_classes(namespace: dict[str, Any]) -> None:
    """Set `__module__` of the classes that private modules of the same package define for the module of these globals.

    Programs and pickles refer to them there.
    """
    name = namespace["__name__"]
    private = f"{name.rpartition('.')[0]}._"
    for value in namespace.values():
        if isinstance(value, type) and value.__module__.startswith(private):
            adopt_class(value, name)


def adopt_class(cls: type, name: str) -> None:
    """Set `__module__` of a class to the name of the module that offers it."""
    kept = ("__module__", "__qualname__", "__firstlineno__")  # Python 3.13 drops the last when the first is set
    _DEFINITIONS[cls] = {key: getattr(cls, key) for key in kept if hasattr(cls, key)}
    cls.__module__ = name


def definition_of(cls: type) -> type:
    """The class itself, or for an adopted one a class that `inspect` finds in the file that defines it."""
    return type(cls.__name__, (), _DEFINITIONS[cls]) if cls in _DEFINITIONS else cls
