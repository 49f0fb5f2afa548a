"""Vector norms and pairwise distances of rows."""

from __future__ import annotations

from torchlite_backends.kernel_sources.cdist import DISTANCES
from torchlite_backends.kernel_sources.dtype_kinds import REAL_KIND

from ..array_ops.pointwise import KERNELS as POINTWISE
from ..array_ops.reduce import amax, amin, compute_reduced_shape, count_nonzero, reduce
from ..core.array import Array, empty
from ..core.broadcasting import broadcast_shape
from ..core.contiguous_copy import as_contiguous, clone_row_major
from ..core.device import round_up_to_groups
from ..core.device_asserts import check_takes
from ..core.pointwise_dispatch import cast
from ..core.views import expand, reshape


def _vector_norm_core(input, ord, dim, keepdim):
    check_takes(input, "fc", "linalg_vector_norm_cpu")
    axes, kind = tuple(dim), REAL_KIND.get(input.kind, input.kind)
    if not axes:  # nothing to reduce
        if ord == 0:
            return cast(POINTWISE["ne"](input, 0), kind)
        size = POINTWISE["abs"](input)
        return clone_row_major(size) if size is input else size
    if ord in (float("inf"), -float("inf")):
        return (amax if ord > 0 else amin)(POINTWISE["abs"](input), axes, keepdim)
    if ord == 0:
        return _count_nonzero_as(input, axes, keepdim, kind)
    if ord == 2:
        in_double = input.device.fp64 and input.kind in ("f32", "f16", "bf16")  # squares are within its range
        return reduce("norm2_wide" if in_double else "norm2", input, axes, keepdim, kind)
    if ord == 1:
        return reduce("norm1", input, axes, keepdim, kind)
    return reduce("normp" if ord > 0 else "normp_negative", input, axes, keepdim, kind, correction=float(ord))


def _count_nonzero_as(input: Array, axes: tuple[int, ...], keepdim: bool, kind: str) -> Array:
    return reshape(cast(count_nonzero(input, axes), kind), compute_reduced_shape(input.shape, axes, keepdim))


def _cdist_core(x1, x2, p):
    batch = broadcast_shape((x1.shape[:-2], x2.shape[:-2]))
    rows, columns, n = x1.shape[-2], x2.shape[-2], x1.shape[-1]
    out = empty(x1.device, (*batch, rows, columns), x1.kind)
    if out.size:
        x, y = as_contiguous(expand(x1, (*batch, rows, n))), as_contiguous(expand(x2, (*batch, columns, n)))
        mode = {0.0: 0, 1.0: 1, 2.0: 2, float("inf"): 3}.get(float(p), 4)
        wide = "f64" if x.device.fp64 else REAL_KIND.get(x.kind, "f32")
        run = x.device.function(DISTANCES, "distances", "pppiiiifi", (16,), T=x.kind, D=wide)
        run(round_up_to_groups(out.size, 64), (64,), x, y, out, rows, columns, n, mode, float(p), out.size)
    return out
