"""Scaled dot product attention on tensor cores: what the kernels in `torchlite_kernels.cuda_attention` take, and their launches."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlite._switches import SWITCHES
from torchlite_device.array import Array
from torchlite_device.attention import Attention, backward, forward
from torchlite_device.copying import clone_row_major
from torchlite_device.device import grid
from torchlite_kernels.cuda_attention import CAPABILITIES, EVEN, LARGEST, WARPS, WIDE, variant

_ALIGNED = 16  # bytes, which are copied as one
_THREADS = 32 * WARPS


def _is_walkable(x: Array) -> bool:
    """Whether an operand's features lie one after the other, and every row at a multiple of 16 bytes."""
    even = x.steps[-1] == 1 and all(step % EVEN == 0 or n == 1 for n, step in zip(x.shape[:-1], x.steps, strict=False))
    return even and x.data_ptr() % _ALIGNED == 0


class TensorCores(Attention):
    """One attention by those kernels. Operands that they cannot walk are copied."""

    __slots__ = ("dim", "masked")

    def operand(self, x: Array) -> Array:
        x = super().operand(x)
        return x if _is_walkable(x) else clone_row_major(x)

    def choose(self) -> None:
        self.dim = -(-max(self.features, self.values) // 32) * 32
        self.masked = None if self.mask is None else self.mask.kind

    def start(self, name: str, side: int, arrays: tuple, grad: Array | None, out: Array | None, *more: bytes) -> None:
        kind, shape = self.query.kind, self.shape(grad, out)
        if name == "dots":
            kernel = variant(name, kind, self.dim)
            run = self.device.function(kernel.text, name, "pppxi", **kernel.kinds)
            lanes = 16 if self.dim > 64 else self.dim // EVEN
            run(grid(self.heads * side * lanes, _THREADS), (_THREADS,), *arrays, shape, self.heads)
            return
        wide = WIDE.get((name, self.dim))
        is_wide = wide is not None and self.heads * -(-side // wide.own) >= self.device.units
        kernel = variant(name, kind, self.dim, self.masked, is_wide)
        run = self.device.function(kernel.text, name, "p" * len(arrays) + "xf" + "x" * len(more), **kernel.kinds)
        run((self.heads * -(-side // kernel.tiles.own) * _THREADS,), (_THREADS,), *arrays, shape, self.scale, *more)


def _takes(query: Array, value: Array, mask: Array | None, scale: float) -> bool:
    needed = CAPABILITIES.get(query.kind)
    if needed is None or not SWITCHES.sdp["flash"] or not scale > 0:
        return False
    device: Any = query.device
    has, features, values = device.properties, query.shape[-1], value.shape[-1]
    even = features % EVEN == 0 and values % EVEN == 0 and 0 < features <= LARGEST and 0 < values <= LARGEST
    return even and (has["major"], has["minor"]) >= needed and (mask is None or mask.kind in ("b8", query.kind))


def _sdpa(streaming: Callable, query, key, value, attn_mask, is_causal, scale):
    if _takes(query, value, attn_mask, scale):
        return forward(TensorCores(query, key, value, attn_mask, is_causal, scale))
    return streaming(query, key, value, attn_mask, is_causal, scale)


def _sdpa_backward(streaming: Callable, grad, query, key, value, attn_mask, out, lse, is_causal, scale, needs):
    if _takes(query, value, attn_mask, scale):
        return backward(TensorCores(query, key, value, attn_mask, is_causal, scale), grad, out, lse, needs)
    return streaming(grad, query, key, value, attn_mask, out, lse, is_causal, scale, needs)


def kernels(table: dict[str, Any]) -> dict[str, Any]:
    """Kernels that use tensor cores where they can, over those of a device's table."""
    return {kernel.__name__: functools.partial(kernel, table[kernel.__name__]) for kernel in (_sdpa, _sdpa_backward)}
