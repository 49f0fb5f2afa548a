"""`_vmap`, by its name in older programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .func import vmap


def _vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False) -> Callable:
    """`torch.vmap` with the randomness "error"; `allow_none_pass_through` lets results be None.

    >>> import torchlite as torch
    >>> torch._vmap_internals._vmap(torch.sum)(torch.ones(2, 3))
    tensor([3., 3.])
    """
    if not allow_none_pass_through:
        return vmap(func, in_dims, out_dims)

    def batched(*args: Any) -> Any:
        absent: list[bool] = []

        def present(*values: Any) -> tuple:
            found = func(*values)
            parts = found if isinstance(found, tuple) else (found,)
            absent[:] = [part is None for part in parts]
            return tuple(part for part in parts if part is not None)

        made = iter(vmap(present, in_dims, out_dims)(*args))
        return tuple(None if is_absent else next(made) for is_absent in absent)

    return batched
