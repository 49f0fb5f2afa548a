"""Scaled dot product attention on tensor cores: supported operands and launches.

The kernels are in `torchlite_backends.kernel_sources.flash_attention_cuda`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlite._settings.backend_flags import FLAGS
from torchlite_backends.device_runtime.core.array import Array
from torchlite_backends.device_runtime.core.contiguous_copy import clone_row_major
from torchlite_backends.device_runtime.core.device import round_up_to_groups
from torchlite_backends.device_runtime.nn.attention import (
    Attention,
    Launch,
    attention_backward,
    attention_forward,
    pack_walk,
)
from torchlite_backends.kernel_sources.flash_attention_cuda import (
    ALIGNMENT,
    CAPABILITIES,
    LARGE_TILES,
    MAX_FEATURES,
    WARPS,
    kernel_source,
)

_ALIGNED = 16  # bytes, copied at a time
_THREADS = 32 * WARPS


@functools.lru_cache(4096)
def _is_aligned(shape: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    return steps[-1] == 1 and all(step % ALIGNMENT == 0 or n == 1 for n, step in zip(shape[:-1], steps, strict=False))


def _is_walkable(x: Array) -> bool:
    """True if an operand's features are contiguous, and every row is 16-byte aligned."""
    return _is_aligned(x.shape, x.steps) and x.data_ptr() % _ALIGNED == 0


class TensorCoreAttention(Attention):
    """One attention on tensor cores. Operands that the kernels cannot read are copied."""

    __slots__ = ()

    def prepare_operand(self, x: Array) -> Array:
        x = super().prepare_operand(x)
        return x if _is_walkable(x) else clone_row_major(x)

    def launch(self, name: str, count: int, grad: Array | None, out: Array | None, *more: Array) -> Launch:
        kind, shape, side = self.query.kind, self.shape(grad, out), self.rows_of_side(name)
        dim = -(-max(self.features, self.values) // 32) * 32
        if name == "dots":
            kernel = kernel_source(name, kind, dim)
            lanes = 16 if dim > 64 else dim // ALIGNMENT
            function = self.device.function(kernel.text, name, "pppxi", **kernel.kinds)
            return Launch(
                function, round_up_to_groups(self.heads * side * lanes, _THREADS), (_THREADS,), (shape, self.heads)
            )
        wide = LARGE_TILES.get((name, dim))
        is_wide = wide is not None and self.heads * -(-side // wide.own) >= self.device.units
        kernel = kernel_source(name, kind, dim, None if self.mask is None else self.mask.kind, is_wide)
        function = self.device.function(kernel.text, name, "p" * count + "xf" + "x" * len(more), **kernel.kinds)
        return Launch(
            function,
            (self.heads * -(-side // kernel.tiles.own) * _THREADS,),
            (_THREADS,),
            (shape, self.scale, *map(pack_walk, more)),
        )


def _is_supported(query: Array, value: Array, mask: Array | None, scale: float) -> bool:
    needed = CAPABILITIES.get(query.kind)
    if needed is None or not FLAGS.sdp["flash"] or not scale > 0:
        return False
    device: Any = query.device
    has, features, values = device.properties, query.shape[-1], value.shape[-1]
    even = (
        features % ALIGNMENT == 0
        and values % ALIGNMENT == 0
        and 0 < features <= MAX_FEATURES
        and 0 < values <= MAX_FEATURES
    )
    return even and (has["major"], has["minor"]) >= needed and (mask is None or mask.kind in ("b8", query.kind))


def _sdpa(streaming: Callable, query, key, value, attn_mask, is_causal, scale):
    if _is_supported(query, value, attn_mask, scale):
        return attention_forward(TensorCoreAttention(query, key, value, attn_mask, is_causal, scale))
    return streaming(query, key, value, attn_mask, is_causal, scale)


def _sdpa_backward(streaming: Callable, grad, query, key, value, attn_mask, out, lse, is_causal, scale, needs):
    if _is_supported(query, value, attn_mask, scale):
        return attention_backward(
            TensorCoreAttention(query, key, value, attn_mask, is_causal, scale), grad, out, lse, needs
        )
    return streaming(grad, query, key, value, attn_mask, out, lse, is_causal, scale, needs)


def kernels(table: dict[str, Any]) -> dict[str, Any]:
    """Return attention kernels that use tensor cores where possible and fall back to those of `table`."""
    return {kernel.__name__: functools.partial(kernel, table[kernel.__name__]) for kernel in (_sdpa, _sdpa_backward)}
