"""The functions of `torch.linalg`, `torch.fft` and `torch.special` under the library's names, for `torch._C`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch

from .._aten.recorded_schemas import all_names


def library_functions(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the module of `torch._C` with the functions of a public module.

    >>> get, _ = library_functions("linalg")
    >>> get("linalg_inv")(torch.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    prefix = f"{module}_"
    starts = prefix, f"_{prefix}"
    names = [name for name in all_names() if name.startswith(starts) and not name.endswith(("_", "_backward"))]

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module 'torch._C._{module}' has no attribute '{name}'")
        found = getattr(getattr(torch, module), name.removeprefix(prefix), None)
        return getattr(torch.ops.aten, name) if found is None else found

    return get, lambda: list(names)
