"""Cumulative sums, products, extremes and linear recurrences along a dimension."""

from __future__ import annotations

import math
import struct

from torchlite._dispatch.shapes import wrap_dim
from torchlite_backends.kernel_sources.reduce import compute_kind
from torchlite_backends.kernel_sources.scan import scan_source

from ..core.array import Array, empty
from ..core.contiguous_copy import as_contiguous
from ..core.copy_fill import fill_with
from ..core.device import round_up_to_groups
from ..core.device_asserts import check_takes
from ..core.pointwise_dispatch import cast
from .reduce import accumulation_kind_of, resolve_dtype

_pack = struct.Struct("7i").pack


class _ScanPlan:
    """Launches of a scan of rows of a length whose elements are `inner` apart."""

    __slots__ = ("launches", "states", "form")

    def __init__(self, op: str, x: Array, dim: int, out: str, more: str, work: str):
        device, length = x.device, x.shape[dim]
        inner = math.prod(x.shape[dim + 1 :])
        rows = x.size // length
        layout, lanes, wide, group = "any", 1, 1, 1
        if not device.is_cpu:
            if rows < 1024 or inner < 32:
                layout, group = "group", min(128, device.group)
        elif work[0] != "c" and x.size > 2048:
            layout = "row" if inner == 1 else "column" if inner >= 16 else "any"
            if layout == "column":
                wide = 16 if inner >= 256 else 4 if inner >= 64 else 1
                lanes = 16 * wide
        strips = rows // inner * -(-inner // lanes)
        target, least = (4 * device.units, 16384) if device.is_cpu else (8 * device.units, 2048)
        parts = (
            max(min(-(-target // strips), x.size // (least * strips)), 1)
            if strips < 2 * device.units or not device.is_cpu
            else 1
        )
        chunk = -(-length // (16 * parts)) * 16
        parts = -(-length // chunk)
        if work == "f32" and op == "cumsum" and device.fp64:
            work = "f64"  # as in PyTorch, float32 sums accumulate in double
        text = scan_source(op, work, work, out, layout, group, wide)
        widths = (16,) if layout in ("row", "column") else ()
        self.form = _pack(rows, length, inner, strips, chunk, parts, 0)
        self.states = (
            strips * parts * 4 * lanes if parts > 1 else 0
        )  # of eight bytes each: a State is no larger than two complex128
        steps = (
            (("total", strips * (parts - 1) * group), ("carry", strips * wide), ("run", strips * parts * group))
            if parts > 1
            else (("run", strips * group),)
        )
        self.launches = []
        for name, items in steps:
            local = (
                (group if name != "carry" else 1)
                if group > 1
                else min(64, device.group)
                if not device.is_cpu
                else 16
                if items >= 64 * device.units
                else 1
            )
            function = device.function(text, name, "pppppx", widths, T=x.kind, O=out, M=more)
            form = _pack(rows, length, inner, strips, chunk, parts, 1) if name == "total" else self.form
            self.launches.append((function, round_up_to_groups(items, local), (local,), form))


def scan_along_dim(
    op: str, x: Array, dim: int, out_kind: str, work: str, factor: Array | None = None
) -> tuple[Array, Array]:
    """Return the running combination and, for extremes, its indices."""
    dim = wrap_dim(dim, x.ndim)
    out = empty(x.device, x.shape, out_kind)
    more = empty(x.device, x.shape, "i64") if op in ("cummax", "cummin") else out
    if not x.size:
        return out, more
    if not x.ndim:
        return cast(x, out_kind, out), fill_with(more, 0) if more is not out else more
    x = as_contiguous(x)
    factor = x if factor is None else as_contiguous(factor)
    key = (op, x.kind, x.shape, dim, out_kind)
    plans = x.device.kept("scans")
    plan = plans.get(key)
    if plan is None:
        plan = plans[key] = _ScanPlan(op, x, dim, out_kind, more.kind, work)
    states = empty(x.device, (plan.states,), "i64") if plan.states else out
    for function, items, group, form in plan.launches:
        function(items, group, x, factor, out, more, states, form)
    return out, more


def cumsum(input, dim, *, dtype=None):
    input, kind = resolve_dtype(input, dtype)
    return scan_along_dim("cumsum", input, dim, kind, accumulation_kind_of(kind))[0]


def cumprod(input, dim, *, dtype=None):
    input, kind = resolve_dtype(input, dtype)
    return scan_along_dim("cumprod", input, dim, kind, accumulation_kind_of(kind))[0]


def cummax(input, dim):
    check_takes(input, "fib", "cummax_helper_cpu")
    return scan_along_dim("cummax", input, dim, input.kind, compute_kind(input.kind))


def cummin(input, dim):
    check_takes(input, "fib", "cummin_helper_cpu")
    return scan_along_dim("cummin", input, dim, input.kind, compute_kind(input.kind))


def logcumsumexp(input, dim):
    # As PyTorch's on the CPU, whose doubles are fast.
    work = "f64" if input.kind == "f32" and input.device.is_cpu else compute_kind(input.kind)
    return scan_along_dim("logcumsumexp", input, dim, input.kind, work)[0]


def _linear_recurrence(factor, term, dim):
    """Linear recurrence: out[0] = term[0], out[i] = term[i] + factor[i] * out[i-1] along `dim`."""
    return scan_along_dim("_linear_recurrence", term, dim, term.kind, compute_kind(term.kind), factor)[0]
