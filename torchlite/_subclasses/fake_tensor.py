"""Fake tensors: shapes and dtypes without elements, on a device that need not be there. The nodes of exported programs
say with them what their values are like; the device "meta" is what computes without elements.
"""

from __future__ import annotations

from typing import Any

import torchlite as torch

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]


class UnsupportedFakeTensorException(RuntimeError):
    """Raised for an operation that fake tensors do not support."""


class DynamicOutputShapeException(RuntimeError):
    """A shape that depends on elements."""


class FakeTensor(torch.Tensor):
    """Tensor on "meta" whose `device` attribute is another device. Its size may have expressions (`torch.SymInt`)."""

    _is_plain = True
    fake_device: Any
    _sizes: Any
    _strides: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("FakeTensor: torchlite makes fake tensors for graphs only; use the device 'meta'")

    @classmethod
    def _of(cls, plain: Any, sizes: Any, strides: Any, device: Any, requires_grad: bool) -> FakeTensor:
        made: Any = object.__new__(cls)
        made._tl_array, made._tl_kernels, made.dtype, made._tl_node, made._tl_meta = (
            plain._tl_array,
            plain._tl_kernels,
            plain.dtype,
            None,
            None,
        )
        made.fake_device, made._strides = torch.device(device), tuple(strides)
        made._sizes = tuple.__new__(torch.Size, sizes)  # which keeps expressions as they are
        return made.requires_grad_() if requires_grad else made

    @property
    def device(self) -> Any:  # type: ignore[override]
        """Where the tensor that it stands for is."""
        return self.fake_device

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """The size, with expressions where it has such."""
        return self._sizes

    def size(self, dim: Any = None) -> Any:
        """The size, or that of a dimension."""
        return self._sizes if dim is None else self._sizes[dim]

    def stride(self, dim: Any = None) -> Any:
        """The strides, or that of a dimension."""
        return self._strides if dim is None else self._strides[dim]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        grad = ", requires_grad=True" if self.requires_grad else ""
        place = f"device='{self.fake_device}', " if self.fake_device.type != "cpu" else ""
        return f"FakeTensor(..., {place}size={tuple(self.shape)}" + (
            f"{grad})" if self.dtype is torch.float32 else f", dtype={self.dtype}{grad})"
        )


class FakeTensorMode:
    """Creating one raises NotImplementedError: the device "meta" computes without elements."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("FakeTensorMode: torchlite has no such mode; use the device 'meta'")


def is_fake(x: Any) -> bool:
    """Whether something is a fake tensor."""
    return isinstance(x, FakeTensor)
