"""Kernels written once over an Array API namespace `xp`, shared by NumPy and CuPy.

The modules here read a global `xp`. `bind(xp)` makes the kernels of one namespace: it copies every function with
globals in which `xp` is that namespace, so a call does no extra look-up.
"""

from __future__ import annotations

import importlib
import os
import types
from typing import Any

# Ops whose kernel is the namespace's own function.
NUMPY_NAMES = {
    "add": "add", "sub": "subtract", "mul": "multiply", "neg": "negative", "positive": "positive", "maximum": "maximum",
    "minimum": "minimum", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal", "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
    "logical_not": "logical_not", "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor", "bitwise_not": "invert", "exp": "exp", "log": "log", "sqrt": "sqrt",
    "square": "square", "sin": "sin", "cos": "cos", "tanh": "tanh", "isnan": "isnan", "isinf": "isinf",
    "isfinite": "isfinite", "div": "divide", "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin",
    "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh", "cosh": "cosh", "sinh": "sinh", "tan": "tan",
    "log2": "log2", "log10": "log10", "log1p": "log1p", "expm1": "expm1", "exp2": "exp2", "atan2": "arctan2",
    "copysign": "copysign",
}  # fmt: skip


class Namespace(types.ModuleType):
    """Namespace of an array runtime, with replacements for some functions and array_api_compat's for missing ones.

    The runtime comes first: array_api_compat wraps functions that the runtime has in a slower form with another
    signature.
    """

    def __init__(self, runtime: types.ModuleType, **better: Any):
        super().__init__(runtime.__name__)
        self.__dict__.update(vars(runtime), **better)

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(f"array_api_compat.{self.__name__}"), name)
        setattr(self, name, found)
        return found


def bind_kernels(runtime: types.ModuleType) -> dict[str, Any]:
    """Return {op name: kernel} over an array runtime (`numpy`, `cupy`, or its `Namespace`)."""
    xp = runtime if isinstance(runtime, Namespace) else Namespace(runtime)
    table: dict[str, Any] = {op: getattr(xp, name) for op, name in NUMPY_NAMES.items()}
    table.update(bind_package(importlib.import_module(__name__), xp))
    return table


def bind_package(package: types.ModuleType, xp: Any) -> dict[str, Any]:
    """Bind all modules of a package; return its functions named after an op (in-place kernels end in an underscore)."""
    table: dict[str, Any] = {}
    scopes: dict[str, dict] = {}
    for name in _list_modules(package):
        table.update(bind_module(importlib.import_module(f"{package.__name__}.{name}"), xp, scopes))
    return table


def _list_modules(package: types.ModuleType) -> list[str]:
    """Return the names of a package's modules, as `pkgutil` does, whose import takes as long as three of them."""
    try:
        files = [name for folder in package.__path__ for name in os.listdir(folder)]
    except OSError:  # the package is in an archive
        import pkgutil

        return [info.name for info in pkgutil.iter_modules(package.__path__)]
    return sorted({name.partition(".")[0] for name in files if name.endswith((".py", ".pyc"))} - {"__init__"})


def bind_module(module: types.ModuleType, xp: Any, scopes: dict[str, dict]) -> dict[str, Any]:
    """Return the kernels of one module. `scopes` maps modules bound earlier for this `xp` to their globals."""
    from torchlite._dispatch import REGISTRY

    table: dict[str, Any] = {}
    scope = rebind_globals(module, xp, scopes)
    for name, value in vars(module).items():
        if name in REGISTRY or name.endswith("_") and name[:-1] in REGISTRY:
            if (
                isinstance(value, types.FunctionType)
                and value.__module__ == module.__name__
                or not isinstance(value, types.FunctionType)
                and callable(value)
            ):
                table[name] = scope[name]
    return table


def rebind_globals(module: types.ModuleType, xp: Any, scopes: dict[str, dict]) -> dict[str, Any]:
    """Return a copy of a module's globals in which `xp` is the given namespace.

    Its functions, and the modules of these packages that it imports, are rebound the same way.
    """
    if module.__name__ in scopes:
        return scopes[module.__name__]
    scope = scopes[module.__name__] = dict(vars(module))
    if "xp" in scope:
        scope["xp"] = xp
    for name, value in vars(module).items():
        if not isinstance(value, types.FunctionType):
            continue
        if value.__module__ == module.__name__:
            bound = types.FunctionType(value.__code__, scope, value.__name__, value.__defaults__, value.__closure__)
            bound.__kwdefaults__, bound.__doc__ = value.__kwdefaults__, value.__doc__
            bound.__module__ = value.__module__
            bound.__dict__.update(vars(value))
            scope[name] = bound
        elif value.__module__.startswith("torchlite_backends"):
            origin = importlib.import_module(value.__module__)
            scope[name] = rebind_globals(origin, xp, scopes)[value.__name__]
    return scope
