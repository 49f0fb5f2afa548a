"""Medians, modes, counts and histograms."""

from __future__ import annotations

import math

import numpy as np

from torchlite._dispatch.shape_and_value_checks import histogram_range, histogram_scale
from torchlite._dispatch.shapes import wrap_dim
from torchlite._types.dtypes import finfo, float32, float64, from_np
from torchlite_backends.kernel_sources.histogram import COUNT_BINS, FIND_BINS
from torchlite_backends.kernel_sources.reduce import COMPUTE_TYPES, compute_kind

from ..core.array import Array, empty, make_view
from ..core.contiguous_copy import as_contiguous
from ..core.copy_fill import fill_with
from ..core.device import Device, round_up_to_groups
from ..core.device_asserts import check_takes
from ..core.host_transfer import from_numpy, to_numpy
from ..core.pointwise_dispatch import cast
from .reduce import INTEGRAL_KINDS, amax, amin, check_not_empty, reduce
from .sort import select_by_rank

_BIN_OF_INDEX, _BIN_OF_VALUE = (
    "bin = (int)(v);",
    "R f = v; if (f >= low && f <= high) { "
    "bin = min((int)((SCALED(f) - SCALED(low)) * size / (SCALED(high) - SCALED(low))), size - 1); }",
)


# One element along a dimension


def _median_along_dim(name: str, which: int, input: Array, dim, keepdim: bool) -> tuple[Array, Array]:
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        return cast(input, input.kind, empty(input.device, (), input.kind)), from_numpy(
            np.zeros((), np.int64), input.device
        )
    check_not_empty(name, input, dim)
    return select_by_rank(input, dim, keepdim, which)


def _median_dim(input, dim, keepdim=False):
    return _median_along_dim("median", 1, input, dim, keepdim)


def _nanmedian_dim(input, dim, keepdim=False):
    return _median_along_dim("nanmedian", 2, input, dim, keepdim)


def mode(input, dim=-1, keepdim=False):
    return _median_along_dim("mode", 3, input, dim, keepdim)


def _median_of_all_elements(which: int, input: Array) -> Array:
    if not input.size:
        with np.errstate(invalid="ignore"):  # for integers what a cast of NaN gives, as on the CPU
            nan = np.float32(math.nan).astype(input.dtype).item() if input.kind in INTEGRAL_KINDS else math.nan
        return fill_with(empty(input.device, (), input.kind), nan)
    flat = as_contiguous(input)
    return select_by_rank(make_view(flat, (flat.size,), (1,), flat.offset), 0, False, which)[0]


def _median_all(input):
    return _median_of_all_elements(1, input)


def _nanmedian_all(input):
    return _median_of_all_elements(2, input)


# Counts and histograms


def _choose_histogram_parts(device: Device, count: int, size: int) -> int:
    """Return the number of parts with separate histograms."""
    wanted = 2 * device.units if device.is_cpu else 512
    return max(1, min(wanted, count // (4096 if device.is_cpu else 256), (1 << 22) // max(size, 1)))


def _compute_histogram(
    x: Array, size: int, place: str, kind: str, weights: Array | None = None, low: float = 0.0, high: float = 0.0
) -> Array:
    """Return the weight of `x` in each of `size` bins, as elements of `kind`."""
    device = x.device
    if weights is not None:
        check_takes(weights, "fib", "bincount_cpu")
    real = compute_kind(x.kind) if x.kind not in INTEGRAL_KINDS else "f32"
    bins = "i32" if weights is None else "f64" if device.fp64 else "f32"
    parts = _choose_histogram_parts(device, x.size, size)
    out = empty(device, (parts, size), bins)
    defines = {
        "PLACE(v)": place,
        "WEIGHT": "1" if weights is None else "V_LD(AT(weights), i)",
        "R": COMPUTE_TYPES[real][0],
    }
    source = "".join(f"#define {name} {text}\n" for name, text in defines.items()) + COUNT_BINS
    function = device.function(
        source,
        "count_bins",
        "pppiii" + 2 * ("d" if real == "f64" else "f"),
        T=x.kind,
        V=x.kind if weights is None else weights.kind,
        B=bins,
    )
    function((parts,), (1,), x, x if weights is None else weights, out, x.size, size, -(-x.size // parts), low, high)
    return reduce("sum", out, 0, False, kind, "i64" if kind in INTEGRAL_KINDS else compute_kind(kind))


def bincount(input, weights=None, minlength=0):
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.kind not in INTEGRAL_KINDS or input.kind == "b8":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{from_np(input.dtype).scalar_name}'")
    if input.ndim != 1 or (input.size and int(to_numpy(amin(input))) < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    kind = "i64" if weights is None else "f32" if weights.kind == "f32" else "f64"
    largest, most = int(to_numpy(amax(input))) if input.size else -1, (1 << 63) - 1
    if largest >= most:
        raise RuntimeError(f"maximum value of input overflowed, it should be < {most} but got {largest}")
    size = max(largest + 1, minlength)
    if not input.size or not size:
        return fill_with(empty(input.device, (size,), kind), 0)
    return _compute_histogram(
        as_contiguous(input), size, _BIN_OF_INDEX, kind, None if weights is None else as_contiguous(weights)
    )


def _resolve_histogram_range(name: str, x: Array, low: float, high: float) -> tuple[float, float]:
    """Return the limits of a histogram: the arguments, or the data's range where both are equal."""
    if low == high and x.size:
        low, high = float(to_numpy(amin(x))), float(to_numpy(amax(x)))
    return histogram_range(name, low, high)


def histc(input, bins=100, min=0, max=0):
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if input.kind in INTEGRAL_KINDS or input.kind[0] == "c":
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{from_np(input.dtype).scalar_name}'")
    low, high = _resolve_histogram_range("torch.histc", input, float(min), float(max))
    if not input.size:
        return fill_with(empty(input.device, (bins,), input.kind), 0)
    scale = histogram_scale(low, high, bins, finfo(float64 if input.kind == "f64" else float32).max)
    place = _BIN_OF_VALUE.replace("SCALED", "" if scale == 1 else f"{scale!r}f * ")
    return _compute_histogram(as_contiguous(input), bins, place, input.kind, None, low, high)


def _histogram_counts(input, edges, weight=None):
    """Return the weight of `input` (samples, dimensions) between the edges of each dimension; the last bin is
    closed.
    """
    check_takes(input, "f", "histogramdd")
    device, dims = input.device, input.shape[-1]
    shape = tuple([e.shape[0] - 1 for e in edges])
    x, count = as_contiguous(input), input.size // dims if dims else 0
    out = empty(device, shape, input.kind)
    if not count or not out.size:
        return fill_with(out, 0)
    place = empty(device, (count,), "i32")
    function = device.function(FIND_BINS, "find_bins", "pppiiii", T=x.kind)
    for column, e in enumerate(edges):
        function(
            round_up_to_groups(count, 64),
            (64,),
            x,
            as_contiguous(cast(e, x.kind)),
            place,
            count,
            dims,
            column,
            shape[column],
        )
    found = _compute_histogram(
        place, out.size, _BIN_OF_INDEX, input.kind, None if weight is None else as_contiguous(weight)
    )
    return make_view(found, shape, out.steps, found.offset)
