"""What a gradient scaler does on the device: check and unscale gradients, and follow with the scale. No value comes to the host."""
from __future__ import annotations

import math

from torchlite import _dtype
from torchlite._dispatch import NONDIFF, op


def _one_number(F, name, array, dtype=_dtype.float32):
    """PyTorch's errors for a tensor that must be one number of a dtype."""
    if math.prod(array.shape) != 1:
        raise RuntimeError(f"{name} must be a 1-element tensor.")
    if F.dtype_of(array) is not dtype:
        raise RuntimeError(f"{name} must be {'a float' if dtype is _dtype.float32 else 'an int'} tensor.")


# --- gradients -------------------------------------------------------------------------------------------------------------------------------------


def _unscale(F, self, found_inf, inv_scale):
    _one_number(F, "inv_scale", inv_scale)
    _one_number(F, "found_inf", found_inf)
    finite = None
    for grad in self:
        dtype = F.dtype_of(grad)
        if not dtype.is_floating_point:
            raise NotImplementedError(f"\"_amp_foreach_non_finite_check_and_unscale_{F.device.type}\" not implemented for '{dtype.scalar_name}'")
        here = F.all(F.isfinite(grad))
        finite = here if finite is None else F.logical_and(finite, here)
        wide = dtype if dtype.itemsize > 4 else _dtype.float32
        F.copy_into(grad, F.to(F.mul(F.to(grad, wide), F.to(inv_scale, wide)), dtype))
    if finite is not None:
        found = F.reshape(F.to(F.logical_not(finite), _dtype.float32), found_inf.shape)
        F.copy_into(found_inf, F.maximum(found_inf, found))
    return ()


op("_amp_foreach_non_finite_check_and_unscale_(Tensor[] self, Tensor found_inf, Tensor inv_scale)", where="torch", tags=NONDIFF, composite=_unscale,
   doc="Multiply all of `self` by `inv_scale`, in place; `found_inf` becomes 1 where one of them had an infinity or a NaN.")


# --- the scale -------------------------------------------------------------------------------------------------------------------------------------


def _update_scale(F, self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    _one_number(F, "growth_tracker", growth_tracker, _dtype.int32)
    _one_number(F, "current_scale", self)
    _one_number(F, "found_inf", found_inf)
    shape, count_shape = self.shape, growth_tracker.shape
    scale, tracker, found = (F.reshape(x, ()) for x in (self, growth_tracker, found_inf))
    bad = F.ne(found, 0.0)
    count = F.add(tracker, F._full((), 1, _dtype.int32))
    due = F.eq(count, F._full((), growth_interval, _dtype.int32))
    grown = F.mul(scale, float(scale_growth_factor))
    kept = F._choose(grown, scale, F.logical_and(due, F.isfinite(grown)))
    F.copy_into(self, F.reshape(F._choose(F.mul(scale, float(scale_backoff_factor)), kept, bad), shape))
    F.copy_into(growth_tracker, F.reshape(F._choose(F._full((), 0, _dtype.int32), count, F.logical_or(bad, due)), count_shape))
    return self


op("_amp_update_scale_(Tensor self, Tensor growth_tracker, Tensor found_inf, scale_growth_factor, scale_backoff_factor, growth_interval)",
   where="torch", tags=NONDIFF, composite=_update_scale,
   doc="Where `found_inf` is not 0, multiply the scale by the backoff factor; else, after `growth_interval` calls in a row, by the growth factor "
       "if that is finite. In place.")
