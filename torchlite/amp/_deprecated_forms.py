"""The deprecated forms of `torch.cuda.amp` and `torch.cpu.amp`, which fix the device type."""

from __future__ import annotations

import warnings
from typing import Any

from .._types.package_name import package_name
from . import autocast_mode, grad_scaler

_AUTOCAST_DOC = """Deprecated: use ``torch.autocast({device!r}, ...)``.

Args:
    enabled: As for `torch.autocast`.
    dtype: As for `torch.autocast`. Default: ``{default}``.
    cache_enabled: As for `torch.autocast`.

Example:
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     region = torch.{place}.autocast(enabled=False)
    >>> with region:
    ...     torch.is_autocast_enabled({device!r})
    False
"""

_SCALER_DOC = """Deprecated: use ``torch.amp.GradScaler({device!r}, ...)``.

Args:
    init_scale: As for `torch.amp.GradScaler`.
    growth_factor: As for `torch.amp.GradScaler`.
    backoff_factor: As for `torch.amp.GradScaler`.
    growth_interval: As for `torch.amp.GradScaler`.
    enabled: As for `torch.amp.GradScaler`.

Example:
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     scaler = torch.{place}.GradScaler(enabled=False)
    >>> scaler.get_scale()
    1.0
"""

_FUNCTION_DOC = """Deprecated: use ``torch.amp.{name}(..., device_type={device!r})``.

Args:
    {what}{more}

Returns:
    The wrapped function.
"""


def _warn_deprecated(old: str, new: str) -> None:
    warnings.warn(f"`torch.{old}` is deprecated. Please use `torch.amp.{new}` instead.", FutureWarning, stacklevel=3)


def make_deprecated_forms(device_type: str) -> Any:
    """The classes `autocast` and `GradScaler` without the device type, and the functions
    `custom_fwd` and `custom_bwd`.
    """
    place, default = f"{device_type}.amp", autocast_mode.DEFAULTS[device_type]

    class autocast(autocast_mode.autocast):
        __doc__ = _AUTOCAST_DOC.format(place=place, device=device_type, default=default)

        def __init__(self, enabled=True, dtype=default, cache_enabled=True):
            _warn_deprecated(f"{place}.autocast(args...)", f"autocast('{device_type}', args...)")
            super().__init__(device_type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    class GradScaler(grad_scaler.GradScaler):
        __doc__ = _SCALER_DOC.format(place=place, device=device_type)

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
    custom_fwd.__doc__ = _FUNCTION_DOC.format(
        name="custom_fwd", what="fwd: The `forward`. Default: none; the call then returns a decorator.",
        more="\n    cast_inputs: As for `torch.amp.custom_fwd`.", device=device_type,
    )  # fmt: skip
    custom_bwd.__doc__ = _FUNCTION_DOC.format(
        name="custom_bwd", what="bwd: The `backward`.", more="", device=device_type
    )
    for item in forms:
        item.__module__, item.__qualname__ = f"{package_name()}.{place}", item.__name__
    return forms
