"""Indices and elements selected by a mask: nonzero, masked_select."""

from __future__ import annotations

import math
import struct

from torchlite_backends.kernel_sources.unique_nonzero import NONZERO

from ..core.array import Array, empty, make_view
from ..core.broadcasting import broadcast_shape
from ..core.contiguous_copy import as_contiguous
from ..core.copy_fill import fill_with
from ..core.device import round_up_to_groups
from ..core.host_transfer import to_numpy
from ..core.views import broadcast_view
from .scan import scan_along_dim


class _NonzeroMask:
    """Nonzero elements of a contiguous array, counted in chunks with prefix sums."""

    def __init__(self, x: Array, limit: int = (1 << 31) - 1):
        self.x, self.device = x, x.device
        self.chunk = max(-(-x.size // (8 * x.device.units)), 1024) if x.device.is_cpu else max(-(-x.size // 16384), 16)
        self.chunks = -(-x.size // self.chunk)
        shape = x.shape or (1,)
        self.form = struct.pack(
            "21i", x.size, self.chunk, self.chunks, len(shape), limit, *shape, *[0] * (16 - len(shape))
        )
        self.counts = empty(x.device, (self.chunks,), "i32")
        self.run("count_true", "ppx", x, self.counts)
        self.ends = scan_along_dim("cumsum", self.counts, 0, "i32", "i32")[0]

    def run(self, name: str, signature: str, *arrays: Array, **kinds: str) -> None:
        real = self.x.kind[0] != "c"
        kinds = {"V": self.x.kind} | kinds | ({"VECTORS": "1"} if real else {})
        kinds["IS_TRUE(v)"] = "((v) != 0)" if real else "((v).x != 0 || (v).y != 0)"
        group = 1 if self.device.is_cpu else min(64, self.device.group)
        self.device.function(NONZERO, name, signature, (16,) if real else (), T=self.x.kind, **kinds)(
            round_up_to_groups(self.chunks, group), (group,), *arrays, self.form
        )

    def count(self) -> int:
        """Return the number of nonzero elements; waits for the device."""
        return int(to_numpy(make_view(self.ends, (), (), self.chunks - 1)))


def _nonzero_indices(input):
    if not input.size:
        return empty(input.device, (0, input.ndim), "i64")
    found = _NonzeroMask(as_contiguous(input))
    out = empty(input.device, (found.count(), input.ndim), "i64")
    if out.size:
        found.run("write_places", "ppppx", found.x, found.counts, found.ends, out)
    return out


def nonzero_static(input, *, size, fill_value=-1):
    out = fill_with(empty(input.device, (size, input.ndim), "i64"), math.trunc(fill_value))
    if out.size and input.size:
        found = _NonzeroMask(as_contiguous(input), size)
        found.run("write_places", "ppppx", found.x, found.counts, found.ends, out)
    return out


def masked_select(input, mask):
    if mask.kind != "b8":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast_shape((mask.shape, input.shape))
    x, mask = (as_contiguous(broadcast_view(a, shape)) for a in (input, mask))
    if not x.size:
        return empty(x.device, (0,), x.kind)
    found = _NonzeroMask(mask)
    out = empty(x.device, (found.count(),), x.kind)
    if out.size:
        found.run("write_chosen", "pppppx", mask, found.counts, found.ends, x, out, V=x.kind)
    return out
