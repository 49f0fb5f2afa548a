"""`dir()` of a module, without what it imports for itself."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar


def make_module_dir(namespace: Mapping[str, Any], more: str = "", hidden: str = "") -> Callable[[], list[str]]:
    """Make the `__dir__` of the module that has these globals.

    It lists the names in `__all__`, the functions and classes that the module defines, but for those in `hidden`, its
    submodules, and `more`: PyTorch's constants, and names of PyTorch that the module imports.
    """
    name = namespace["__name__"]

    def is_own(key: str, value: Any) -> bool:
        if isinstance(value, types.ModuleType):
            return value.__name__ == f"{name}.{key}"
        return key.startswith("__") or (getattr(value, "__module__", None) == name and not isinstance(value, TypeVar))

    def list_names() -> list[str]:
        own = {key for key, value in list(namespace.items()) if is_own(key, value)} - {*hidden.split()}
        return sorted({*own, *namespace.get("__all__", ()), *more.split()})

    return list_names
