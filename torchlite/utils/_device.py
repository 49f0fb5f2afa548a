"""The default device of tensor factories."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite.overrides import TorchFunctionMode

__all__ = ["DeviceContext", "device_decorator", "set_device"]

CURRENT_DEVICE: Any = None


@functools.cache
def _list_device_constructors() -> set[Callable]:
    """Return the functions that create tensors from no tensor."""
    names = (
        "empty empty_permuted empty_strided ones arange bartlett_window blackman_window eye full fill hamming_window "
        "hann_window kaiser_window linspace logspace rand randn randint randperm range sparse_coo_tensor "
        "sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor tril_indices "
        "triu_indices zeros asarray tensor as_tensor scalar_tensor"
    ).split()
    return {getattr(torch, name) for name in names if hasattr(torch, name)}


class DeviceContext(TorchFunctionMode):
    """Context manager that sets the default device to `device`.

    >>> import torchlite as torch
    >>> from torchlite.utils._device import DeviceContext
    >>> with DeviceContext("meta"):
    ...     torch.ones(2).device.type
    'meta'
    """

    def __init__(self, device: Any) -> None:
        self.device = torch.device(device)

    def __enter__(self) -> Any:
        # Every factory reads the default device, so calls need not be intercepted.
        return self.device.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self.device.__exit__(*exc)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _list_device_constructors() and kwargs.get("device") is None:
            kwargs["device"] = self.device
        return func(*args, **kwargs)


def device_decorator(device: Any, func: Callable) -> Callable:
    """Return a function that creates its tensors on a device."""
    return torch.device(device)(func)


def set_device(device: Any) -> Callable[[Callable], Callable]:
    """Decorator: the function creates its tensors on a device."""
    return lambda func: device_decorator(torch.device(device), func)
