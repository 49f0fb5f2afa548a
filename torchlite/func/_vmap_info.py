"""VmapInfo: argument of user-defined `vmap` rules, of autograd Functions and custom ops."""

from __future__ import annotations

from typing import NamedTuple


class VmapInfo(NamedTuple):
    """Argument of a Function's `vmap` method and of a `torch.library.register_vmap` rule."""

    batch_size: int
    randomness: str
