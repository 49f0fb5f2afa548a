"""The deprecated forms of `torch.cuda.amp` and `torch.cpu.amp`, which fix the device type."""

from __future__ import annotations

import warnings
from typing import Any

from .._types.package_name import package_name
from . import autocast_mode, grad_scaler


def _warn_deprecated(old: str, new: str) -> None:
    warnings.warn(f"`torch.{old}` is deprecated. Please use `torch.amp.{new}` instead.", FutureWarning, stacklevel=3)


def make_deprecated_forms(device_type: str) -> Any:
    """The classes `autocast` and `GradScaler` without the device type, and the functions
    `custom_fwd` and `custom_bwd`.
    """
    place, default = f"{device_type}.amp", autocast_mode.DEFAULTS[device_type]

    class autocast(autocast_mode.autocast):
        __doc__ = f"Deprecated: use `torch.autocast({device_type!r}, ...)`."

        def __init__(self, enabled=True, dtype=default, cache_enabled=True):
            _warn_deprecated(f"{place}.autocast(args...)", f"autocast('{device_type}', args...)")
            super().__init__(device_type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    class GradScaler(grad_scaler.GradScaler):
        __doc__ = f"Deprecated: use `torch.amp.GradScaler({device_type!r}, ...)`."

        def __init__(
            self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True
        ):
            _warn_deprecated(f"{place}.GradScaler(args...)", f"GradScaler('{device_type}', args...)")
            super().__init__(device_type, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    def custom_fwd(fwd=None, *, cast_inputs=None):
        _warn_deprecated(f"{place}.custom_fwd(args...)", f"custom_fwd(args..., device_type='{device_type}')")
        return autocast_mode.custom_fwd(fwd, device_type=device_type, cast_inputs=cast_inputs)

    def custom_bwd(bwd):
        _warn_deprecated(f"{place}.custom_bwd(args...)", f"custom_bwd(args..., device_type='{device_type}')")
        return autocast_mode.custom_bwd(bwd, device_type=device_type)

    forms = autocast, GradScaler, custom_fwd, custom_bwd
    for item in forms:
        item.__module__, item.__qualname__ = f"{package_name()}.{place}", item.__name__
        item.__doc__ = item.__doc__ or f"Deprecated: use `torch.amp.{item.__name__}(..., device_type={device_type!r})`."
    return forms
