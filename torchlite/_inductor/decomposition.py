"""Decompositions that programs register for PyTorch's own compiler. torchlite's computes each op as eager mode does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._decomp import register_decomposition as _register

decompositions: dict[Any, Callable] = {}


def register_decomposition(ops: Any) -> Callable[[Callable], Callable]:
    """Return a decorator that registers a function in `decompositions`, as that of an overload or of a list of them.

    >>> import torchlite as torch
    >>> from torchlite._inductor.decomposition import decompositions, register_decomposition
    >>> @register_decomposition([torch.ops.aten.erfc.default])
    ... def erfc(x):
    ...     return 1 - torch.erf(x)
    >>> decompositions.pop(torch.ops.aten.erfc.default)(torch.zeros(1))
    tensor([1.])
    """
    return _register(ops, decompositions)


def select_decomp_table() -> dict[Any, Callable]:
    """Return the registered decompositions.

    >>> from torchlite._inductor.decomposition import decompositions, select_decomp_table
    >>> select_decomp_table() is decompositions
    True
    """
    return decompositions
