"""Layer, RMS and batch norm, forward and backward, and updates of running statistics."""

from __future__ import annotations

import math

from torchlite_backends.kernel_sources import normalisation as texts
from torchlite_backends.kernel_sources.dtype_kinds import KINDS
from torchlite_backends.kernel_sources.pointwise_codegen import Rule

from ..array_ops.creation import full
from ..array_ops.pointwise import KERNELS as POINTWISE
from ..core.array import Array, empty
from ..core.contiguous_copy import as_contiguous
from ..core.device import Device
from ..core.pointwise_dispatch import apply_pointwise_rule, cast
from ..core.views import broadcast_view, reshape
from .row_launch import FLOATS, cast_parameters_to_common_kind, make_row_launch, raise_not_implemented

_ROWS_OF_A_SUM = 512
_WEIGHT, _BIAS, _CENTRED, _OF_INPUT, _OF_WEIGHT, _OF_BIAS = 1, 2, 4, 8, 16, 32


def _needs_as_flags(needs) -> int:
    flags = 0
    for bit, need in zip((_OF_INPUT, _OF_WEIGHT, _OF_BIAS), needs, strict=False):
        if need:
            flags |= bit
    return flags


# -- layer and RMS norm --


def _normalize_rows(
    name: str, input: Array, weight: Array | None, bias: Array | None, n_dims: int, eps: float, centred: bool
) -> tuple[Array, Array | None, Array]:
    """Return the normalised rows and for each row the mean (None for RMS norm) and the reciprocal deviation."""
    kind, device = input.kind, input.device
    if kind not in FLOATS:
        raise_not_implemented(input, name)
    wide = FLOATS[kind]
    if not input.size:
        nothing = full(device, _row_statistics_shape(input.shape, n_dims), 0, wide)
        return empty(device, input.shape, kind), nothing if centred else None, nothing
    own, (weight, bias) = cast_parameters_to_common_kind(kind, weight, bias)
    key = ("layer_norm", kind, own, input.shape, n_dims)
    found = device.plans.get(key)
    if found is None:
        small = _row_statistics_shape(input.shape, n_dims)
        rows = math.prod(small)
        n = input.size // rows
        at = make_row_launch(device, kind, rows, n)
        function = device.function(
            texts.LAYER_NORM, "layer_norm", "ppppppiiii" + KINDS[wide].pack, at.widths, T=kind, P=own, **at.macros
        )
        found = device.plans[key] = function, at.global_size, at.local_size, small, (rows, n, at.per)
    function, global_size, local_size, small, numbers = found
    out, rstd = empty(device, input.shape, kind), empty(device, small, wide)
    mean = empty(device, small, wide) if centred else None
    x = as_contiguous(input)
    flags = (weight is not None) * _WEIGHT | (bias is not None) * _BIAS | centred * _CENTRED
    function(global_size, local_size, x, weight or x, bias or x, out, mean or rstd, rstd, *numbers, flags, eps)
    return out, mean, rstd


def _row_statistics_shape(shape: tuple[int, ...], n_dims: int) -> tuple[int, ...]:
    """Return the shape of row statistics, where a row covers the last dimensions."""
    return shape[: len(shape) - n_dims] + (1,) * n_dims


def _normalize_rows_backward(
    grad: Array, input: Array, weight: Array | None, mean: Array | None, rstd: Array, n_dims: int, needs
) -> tuple[Array | None, ...]:
    """Return the gradients of input, weight and bias, None where not in `needs`."""
    kind, device, shape = input.kind, input.device, input.shape[input.ndim - n_dims :]
    wide = FLOATS[kind]
    own, (weight,) = cast_parameters_to_common_kind(kind, weight)
    if not input.size:
        return tuple(
            [
                full(device, s, 0, k) if need else None
                for s, k, need in zip((input.shape, shape, shape), (kind, own, own), needs, strict=False)
            ]
        )
    flags = _needs_as_flags(needs) | (weight is not None) * _WEIGHT | (mean is not None) * _CENTRED
    n = math.prod(shape)
    rows, sums = input.size // n, bool(flags & (_OF_WEIGHT | _OF_BIAS))
    key = ("layer_norm_backward", kind, own, rows, n, sums)
    found = device.plans.get(key)
    if found is None:
        at = make_row_launch(device, kind, rows, n, workers=_count_workers(device, rows, n) if sums else 0)
        function = device.function(
            texts.LAYER_NORM_BACKWARD, "layer_norm_backward", "ppppppppiiii", at.widths, T=kind, P=own, **at.macros
        )
        found = device.plans[key] = function, at
    function, at = found
    grad, x, rstd = as_contiguous(broadcast_view(grad, input.shape)), as_contiguous(input), as_contiguous(rstd)
    out = empty(device, input.shape, kind) if flags & _OF_INPUT else None
    partial = [
        empty(device, shape if at.workers == 1 and own == wide else (at.workers, n), wide) if flags & bit else None
        for bit in (_OF_WEIGHT, _OF_BIAS)
    ]
    centre = rstd if mean is None else as_contiguous(mean)
    function(
        at.global_size,
        at.local_size,
        grad,
        x,
        weight or x,
        centre,
        rstd,
        out or x,
        partial[0] or rstd,
        partial[1] or rstd,
        rows,
        n,
        at.per,
        flags,
    )
    if sums and not (at.workers == 1 and own == wide):
        partial = _sum_columns_over_workers(partial, own, shape, at.workers, n, flags)
    return out, *partial


def _count_workers(device: Device, rows: int, n: int) -> int:
    """Return how many workers add up gradients of weights over rows; each adds up few, as every sum rounds."""
    return max(4 * device.units * (64 if not device.is_cpu and n <= 32 else 1), rows // _ROWS_OF_A_SUM)


def _sum_columns_over_workers(
    sums: list[Array | None], own: str, shape, workers: int, n: int, flags: int
) -> list[Array | None]:
    """Sum over the workers, in their order."""
    device = next(s for s in sums if s is not None).device
    key = ("column_sums", own, n)
    found = device.plans.get(key)
    if found is None:
        wide = FLOATS[own]
        at = make_row_launch(device, wide, n, 1, inner=n) if n > 1 else make_row_launch(device, wide, 1, 1)
        function = device.function(texts.COLUMN_SUMS, "column_sums", "ppppiii", at.widths, T=wide, P=own, **at.macros)
        count = 2 * -(-n // int(at.macros["W"]))
        found = device.plans[key] = function, (-(-count // at.local_size[0]) * at.local_size[0],), at.local_size
    function, global_size, local_size = found
    results = [empty(device, shape, own) if s is not None else None for s in sums]
    (a, b), (of_a, of_b) = sums, results
    function(global_size, local_size, a or b, b or a, of_a or of_b, of_b or of_a, workers, n, flags)
    return results


def _layer_norm(input, weight, bias, n_dims, eps):
    return _normalize_rows("LayerNormKernelImpl", input, weight, bias, n_dims, eps, True)


def _layer_norm_backward(grad, input, weight, mean, rstd, n_dims, eps, needs):
    return _normalize_rows_backward(grad, input, weight, mean, rstd, n_dims, needs)


def _rms_norm(input, weight, n_dims, eps):
    out, _, rstd = _normalize_rows("rms_norm", input, weight, None, n_dims, eps, False)
    return out, rstd


def _rms_norm_backward(grad, input, weight, rstd, n_dims, eps, needs):
    return _normalize_rows_backward(grad, input, weight, None, rstd, n_dims, needs)[:2]


# -- batch norm --


def _build_channel_kernel(source: str, name: str, signature: str, x: Array, own: str):
    """Return the kernel of a channel family for an array (samples, channels, ...) and its launch.

    That is (function, global size, local size, numbers).
    """
    device, shape, kind = x.device, x.shape, x.kind
    key = (name, kind, own, shape)
    found = device.plans.get(key)
    if found is None:
        samples, channels, length = shape[0], shape[1], math.prod(shape[2:])
        if length == 1 and device.is_cpu and channels > 1:
            at = make_row_launch(device, kind, channels, samples, inner=channels)
        else:
            at = make_row_launch(device, kind, channels, samples * length, run=length)
        narrow = {"NARROW_RANGE": "1"} if kind == "f16" else {}
        function = device.function(source, name, signature, at.widths, T=kind, P=own, **at.macros, **narrow)
        found = device.plans[key] = (
            function,
            at.global_size,
            at.local_size,
            (at.rows, samples, channels, length, at.per),
        )
    return found


def _batch_norm_train(input, weight, bias, eps):
    kind, device, channels = input.kind, input.device, (input.shape[1],)
    if kind not in FLOATS:
        raise_not_implemented(input, "batch_norm")
    if not input.size:
        nothing = full(device, channels, math.nan, kind)
        return empty(device, input.shape, kind), nothing, full(device, channels, math.nan, kind)
    own, (weight, bias) = cast_parameters_to_common_kind(kind, weight, bias)
    function, global_size, local_size, numbers = _build_channel_kernel(
        texts.BATCH_NORM, "batch_norm", "ppppppiiiiii" + KINDS[FLOATS[kind]].pack, input, own
    )
    x = as_contiguous(input)
    out, mean, var = empty(device, input.shape, kind), empty(device, channels, kind), empty(device, channels, kind)
    function(
        global_size,
        local_size,
        x,
        weight or x,
        bias or x,
        out,
        mean,
        var,
        *numbers,
        (weight is not None) * _WEIGHT | (bias is not None) * _BIAS,
        eps,
    )
    return out, mean, var


def _batch_norm_backward(grad, input, weight, mean, var, eps, needs):
    kind, device, channels = input.kind, input.device, (input.shape[1],)
    own, (weight,) = cast_parameters_to_common_kind(kind, weight)
    results = [
        empty(device, s, k) if need else None
        for s, k, need in zip((input.shape, channels, channels), (kind, own, own), needs, strict=True)
    ]
    if not input.size:
        return tuple([None if r is None else full(device, r.shape, 0, r.kind) for r in results])
    function, global_size, local_size, numbers = _build_channel_kernel(
        texts.BATCH_NORM_BACKWARD, "batch_norm_backward", "ppppppppiiiiii" + KINDS[FLOATS[kind]].pack, input, own
    )
    x, grad = as_contiguous(input), as_contiguous(broadcast_view(grad, input.shape))
    mean, var = (as_contiguous(s if s.kind == kind else cast(s, kind)) for s in (mean, var))
    out, of_weight, of_bias = (r or mean for r in results)
    function(
        global_size,
        local_size,
        grad,
        x,
        weight or x,
        mean,
        var,
        out,
        of_weight,
        of_bias,
        *numbers,
        _needs_as_flags(needs) | (weight is not None) * _WEIGHT,
        eps,
    )
    return tuple(results)


def _channel_affine(input, scale, shift):
    if input.kind not in FLOATS:
        shape = (1, -1) + (1,) * (input.ndim - 2)
        return POINTWISE["add"](POINTWISE["mul"](input, reshape(scale, shape)), reshape(shift, shape))
    out = empty(input.device, input.shape, input.kind)
    if out.size:
        own, (scale, shift) = cast_parameters_to_common_kind(input.kind, scale, shift)
        function, global_size, local_size, numbers = _build_channel_kernel(
            texts.CHANNEL_AFFINE, "channel_affine", "ppppiiiii", input, own
        )
        function(global_size, local_size, as_contiguous(input), scale, shift, out, *numbers)
    return out


_MOVING_AVERAGE = Rule("moving_average", f="a * keep + b * take", numbers=("keep", "take"))


def _moving_average_(target, new, keep, take):
    apply_pointwise_rule(
        _MOVING_AVERAGE, (target, new if new.kind == target.kind else cast(new, target.kind)), (keep, take), target
    )
