"""Gradient scaling on the device: check and unscale gradients, and update the scale, without synchronising with the
host.
"""

from __future__ import annotations

import math

from torchlite._dispatch import NONDIFF, op
from torchlite._types import dtypes

from .fused_optim import SMALL, _flatten_arrays


def _check_single_number(F, name, array, dtype=dtypes.float32):
    """PyTorch's errors for a tensor that must be one number of a dtype."""
    if math.prod(array.shape) != 1:
        raise RuntimeError(f"{name} must be a 1-element tensor.")
    if F.dtype_of(array) is not dtype:
        raise RuntimeError(f"{name} must be {'a float' if dtype is dtypes.float32 else 'an int'} tensor.")


# --- gradients ------------------------------------------------------------------------------------


def _unscale_in_place(F, self, found_inf, inv_scale):
    _check_single_number(F, "inv_scale", inv_scale)
    _check_single_number(F, "found_inf", found_inf)
    kinds: dict = {}
    for grad in self:
        kinds.setdefault(grad.dtype, []).append(grad)
    for grads in kinds.values():
        dtype = F.dtype_of(grads[0])
        if not dtype.is_floating_point:
            raise NotImplementedError(
                f'"_amp_foreach_non_finite_check_and_unscale_{F.device.type}" not implemented for '
                f"'{dtype.scalar_name}'"
            )
        F._unscale_homogeneous(grads, found_inf, inv_scale)
    return ()


def _unscale_homogeneous(F, grads, found_inf, inv_scale):
    _flag_infinities(F, grads, found_inf)
    _multiply_in_place(F, grads, inv_scale, F.dtype_of(grads[0]))


def _flag_infinities(F, grads, found_inf):
    small = [grad for grad in grads if math.prod(grad.shape) <= SMALL]
    large = [grad for grad in grads if math.prod(grad.shape) > SMALL]
    for values in [*large, *([_flatten_arrays(F, small)] if small else [])]:
        found = F.to(F.logical_not(F.all(F.isfinite(values))), dtypes.float32)
        F.copy_into(found_inf, F.maximum(found_inf, F.reshape(found, found_inf.shape)))


def _multiply_in_place(F, grads, factor, dtype):
    """In place, as wide as float32 at least."""
    wide = dtype if dtype.itemsize > 4 else dtypes.float32
    factor, in_place = F.to(factor, wide), getattr(F, "mul_", None)
    for grad in grads:
        if wide is dtype and in_place is not None:
            in_place(grad, factor)
        else:
            F.copy_into(grad, F.to(F.mul(F.to(grad, wide), factor), dtype))


op(
    "_amp_foreach_non_finite_check_and_unscale_(Tensor[] self, Tensor found_inf, Tensor inv_scale)",
    where="torch",
    tags=NONDIFF,
    composite=_unscale_in_place,
    doc="Multiply all of `self` by `inv_scale`, in place; `found_inf` becomes 1 where one of them had an infinity or "
    "a NaN.",
)
op(
    "_unscale_homogeneous(grads, found_inf, inv_scale)",
    where="",
    tags=NONDIFF,
    mutates="arguments",
    composite=_unscale_homogeneous,
    doc="The same for a list of raw arrays of one floating dtype.",
)


# --- the scale ------------------------------------------------------------------------------------


def _update_scale(F, self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    _check_single_number(F, "growth_tracker", growth_tracker, dtypes.int32)
    _check_single_number(F, "current_scale", self)
    _check_single_number(F, "found_inf", found_inf)
    shape, count_shape = self.shape, growth_tracker.shape
    scale, tracker, found = (F.reshape(x, ()) for x in (self, growth_tracker, found_inf))
    bad = F.ne(found, 0.0)
    count = F.add(tracker, F._full((), 1, dtypes.int32))
    due = F.eq(count, F._full((), growth_interval, dtypes.int32))
    grown = F.mul(scale, float(scale_growth_factor))
    kept = F._choose(grown, scale, F.logical_and(due, F.isfinite(grown)))
    F.copy_into(self, F.reshape(F._choose(F.mul(scale, float(scale_backoff_factor)), kept, bad), shape))
    F.copy_into(
        growth_tracker, F.reshape(F._choose(F._full((), 0, dtypes.int32), count, F.logical_or(bad, due)), count_shape)
    )
    return self


op(
    "_amp_update_scale_(Tensor self, Tensor growth_tracker, Tensor found_inf, scale_growth_factor, "
    "scale_backoff_factor, growth_interval)",
    where="torch",
    tags=NONDIFF,
    composite=_update_scale,
    doc="Where `found_inf` is not 0, multiply the scale by the backoff factor; else, after `growth_interval` calls "
    "in a row, by the growth factor if that is finite. In place.",
)
