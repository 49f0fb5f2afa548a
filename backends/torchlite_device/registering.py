"""How kernel modules offer their functions."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import types
from collections.abc import Callable
from typing import Any

from torchlite._dispatch import REGISTRY

from .device import Device


def on_device(function: Callable) -> Callable:
    """Mark a kernel of an op without array arguments: it takes the Device first."""
    function.on_device = True  # type: ignore[attr-defined]
    return function


def is_op(name: str) -> bool:
    """Whether a name is that of an op or, with a trailing underscore, of its in-place kernel."""
    return name in REGISTRY or name.endswith("_") and name[:-1] in REGISTRY


def kernels_of(device: Device) -> dict[str, Any]:
    """{op name: kernel} of all modules of this package: their own functions that bear an op's name, and the entries of
    their `KERNELS`.
    """
    table: dict[str, Any] = {}
    package = importlib.import_module(__package__)
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{__package__}.{info.name}")
        offered = {
            n: f
            for n, f in vars(module).items()
            if isinstance(f, types.FunctionType) and f.__module__ == module.__name__ and is_op(n)
        }
        offered.update(getattr(module, "KERNELS", {}))
        for op, kernel in offered.items():
            if table.get(op, kernel) is not kernel:  # a module may import another one's KERNELS
                raise RuntimeError(f"two kernels for '{op}': in {table[op].__module__} and {module.__name__}")
            table[op] = functools.partial(kernel, device) if getattr(kernel, "on_device", False) else kernel
    return table
