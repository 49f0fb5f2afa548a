"""Native concatenation of arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .device import address
from .native_gather import CHUNK, wrap_dim
from .native_kernel import NONTEMPORAL_STORE, TYPE_DEFINITIONS, NativeKernel

_CAT_SOURCE = (
    TYPE_DEFINITIONS
    + NONTEMPORAL_STORE
    + r"""
// Arrays side by side: `count` of them, of `widths[k]` bytes in each of the rows of `out`, which have `width`.
struct Cat { const char* const* arrays; const i64* widths; char* out; i64 width, size, piece, past_caches; };
static int cat(const Cat& of, i64 begin, i64 end) {
    i64 at = begin * of.piece;
    end = least(end * of.piece, of.size);
    i64 row = at / of.width, inside = at % of.width, k = 0;
    while (inside >= of.widths[k]) inside -= of.widths[k++];
    while (at < end) {
        const i64 n = least(of.widths[k] - inside, end - at);
        const char* from = of.arrays[k] + row * of.widths[k] + inside;
        if (of.past_caches) stream(of.out + at, from, n);
        else memcpy(of.out + at, from, n);
        at += n;
        inside = 0;
        if (++k, at < end && at % of.width == 0) {
            row++;
            k = 0;
        }
    }
    if (of.past_caches) streamed();
    return 0;
}
ENTRY(cat, Cat)
"""
)


_cat_kernel = NativeKernel(_CAT_SOURCE, "cat", "QQQqqqq")


def cat(device: Any, tensors: Any, dim: Any = 0) -> Any:
    kept = [t for t in tensors if t.shape != (0,)]
    if not kept or kept[0].__class__ is not np.ndarray:
        return None
    first = kept[0]
    d = wrap_dim(dim, first.ndim)
    if d is None or any(t.ndim != first.ndim or t.dtype != first.dtype or not t.flags.c_contiguous for t in kept):
        return None
    before, behind = first.shape[:d], first.shape[d + 1 :]
    if any(t.shape[:d] != before or t.shape[d + 1 :] != behind for t in kept):
        return None
    out = np.empty((*before, sum(t.shape[d] for t in kept), *behind), first.dtype)
    if not out.size:
        return None
    kept = [t for t in kept if t.size]
    width = out.nbytes // math.prod(before)
    addresses = np.array([address(t) for t in kept], np.uint64)
    widths = np.array([t.nbytes // math.prod(before) for t in kept], np.int64)
    past_caches = 2 * out.nbytes > device.cached
    count = -(-out.nbytes // CHUNK)
    _cat_kernel(device, count, 2 * out.nbytes, addresses, widths, out, width, out.nbytes, CHUNK, past_caches)
    return out


kernels = {"cat": cat}
