"""Python and NumPy protocols of tensors: conversion to numbers, iteration, and arrays."""

from __future__ import annotations

import math

import numpy as np

from .._dispatch import autograd_graph, call
from .._dispatch.autograd_graph import AutogradMeta, lend_memory, root_meta_of
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.error_translation import filter_traceback
from .._dispatch.tracing import TRACES, trace_method
from .._types import dtypes, opaque_dtypes
from .autograd_methods import AutogradMethods

_WITHOUT_NUMPY = frozenset(
    d for d in dtypes.BY_NAME.values() if "float8" in d.name or d.name in ("bfloat16", "complex32", *dtypes.OPAQUE)
)


def _to_python_number(tensor, wanted: str = ""):
    """The value for Python's `int`, `float` and `complex`: ValueError for other than one element, RuntimeError for an
    imaginary part that C++'s type `wanted` does not have.
    """
    if math.prod(tensor._tl_array.shape) != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    value = tensor.item()
    if wanted and value.__class__ is complex:
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {wanted} without overflow")
        return value.real
    return value


class PythonProtocols(AutogradMethods):
    """The part of Tensor that Python and NumPy call."""

    __slots__ = ()

    def __repr__(self, *, tensor_contents=None) -> str:
        from .printing import tensor_repr

        return tensor_repr(self, tensor_contents)

    def __format__(self, spec: str) -> str:
        if TRACES and (found := trace_method("__format__", self, spec)) is not NotImplemented:
            return found
        if (
            self._tl_array.ndim == 0
            and not self.is_meta
            and (self._tl_signs or type(self) in (call.Tensor, call.Parameter))
        ):
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __hash__(self) -> int:
        return id(self)

    def item(self):
        """The value of a one-element tensor as a Python number. RuntimeError for more elements."""
        if TRACES and (found := trace_method("item", self)) is not NotImplemented:
            return found
        data = self._tl_array
        if math.prod(data.shape) != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        array = self._tl_kernels.to_numpy(data)
        value = array.item()
        if isinstance(value, (float, int, complex)):
            return value
        if array.dtype.names:
            return opaque_dtypes.python_value(array)
        return self.dtype.category >= 3 and complex(value) or float(value)

    def tolist(self):
        """The elements as nested lists of Python numbers; a 0-d tensor as a number."""
        if TRACES and (found := trace_method("tolist", self)) is not NotImplemented:
            return found
        array = self._tl_kernels.to_numpy(self._tl_array)
        if self.dtype._np is None and array.dtype.names:
            return opaque_dtypes.python_values(array)
        return array.tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Returns a NumPy array on the same memory.

        Args:
            force: Whether a tensor that requires a gradient, or is on another device, is copied. Default: ``False``.

        Raises:
            RuntimeError: The tensor requires a gradient.
            TypeError: The tensor is not on the CPU, or NumPy lacks its dtype: bfloat16, float8 and complex32.

        See also:
            `torch.from_numpy`.
        """
        if TRACES and (found := trace_method("numpy", self, force=force)) is not NotImplemented:
            return found
        if self.dtype in _WITHOUT_NUMPY:
            raise TypeError(f"Got unsupported ScalarType {self.dtype.scalar_name}")
        array = self._host_array(force)
        if not getattr(self._tl_meta, "lent", False):
            lend_memory(self)
        return array

    def _host_array(self, force: bool = False) -> np.ndarray:
        """The array of `numpy`, in ml_dtypes' dtypes where NumPy lacks one."""
        if call.GLOBALS["WRITE_CHECKS"]:
            autograd_graph.run_pre_write_hooks(self)
        data, meta = self._tl_array, self._tl_meta
        if data.__class__ is np.ndarray and self._tl_node is None:  # the usual tensors first
            if meta is None:
                meta = self._tl_meta = object.__new__(AutogradMeta)
                meta.fixed = True
                return data.view()
            if meta.__class__ is AutogradMeta and meta.fixed:
                return data.view()
        if not force and call.MODE.grad and self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self.device.type != "cpu" and not force:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
                "host memory first."
            )
        if data.__class__ is not np.ndarray:
            return self._tl_kernels.to_numpy(data)
        root_meta_of(self).fixed = True
        return data.view()

    def __array__(self, dtype=None, copy=None):
        if TRACES and (found := trace_method("__array__", self, dtype, copy)) is not NotImplemented:
            return found
        array = self.numpy()
        if dtype is None or array.dtype == dtype:
            return array.copy() if copy else array
        if copy is False:
            raise ValueError(f"a copy is needed to give a {array.dtype} tensor as {np.dtype(dtype)}")
        return array.astype(dtype)

    def to_numpy(self) -> np.ndarray:
        """The tensor as an array, as `numpy()`. Matplotlib and others call this method of any library's arrays.

        RuntimeError when it requires grad; TypeError on another device.
        """
        return self.numpy()

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return CALLBACKS.array_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function, types, args, kwargs):
        return CALLBACKS.array_function(function, args, kwargs)

    def __array_namespace__(self, *, api_version=None):
        """The Array API namespace: `torchlite`, except for functions to which the standard gives another meaning.
        ValueError for an unknown version of the standard.
        """
        from .array_api_functions import VERSIONS

        if api_version is not None and api_version not in VERSIONS:
            raise ValueError(f"unknown version of the Array API: {api_version!r}, known are {', '.join(VERSIONS)}")
        return CALLBACKS.array_namespace()

    def to_device(self, device, /, *, stream=None):
        """Returns the tensor on a device, as the Array API defines it: itself if it is there.

        Args:
            device: The device.
            stream: The stream in which the copy is queued. Default: the current one.

        Raises:
            TypeError: `stream` is not a stream.
            ValueError: The device has no streams.
        """
        if stream is None:
            return self.to(device)
        if getattr(stream, "device_type", None) is None and not hasattr(stream, "device"):
            raise TypeError(f"to_device(): stream must be a torch.Stream, not {type(stream).__name__}")
        with stream:
            return self.to(device)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        from .interop import to_dlpack

        if call.GLOBALS["WRITE_CHECKS"]:
            autograd_graph.run_pre_write_hooks(self)
        lend_memory(self)
        return to_dlpack(self, stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self):
        from .interop import dlpack_device

        return dlpack_device(self)

    @property
    def __cuda_array_interface__(self):
        from .interop import cuda_array_interface

        lend_memory(self)
        return cuda_array_interface(self)

    def __bool__(self) -> bool:
        if TRACES and (found := trace_method("__bool__", self)) is not NotImplemented:
            return found
        n = self.numel()
        if n != 1:
            raise RuntimeError(
                "Boolean value of Tensor with no values is ambiguous"
                if n == 0
                else "Boolean value of Tensor with more than one value is ambiguous"
            )
        return bool(self._tl_kernels.to_numpy(self._tl_array))

    def __int__(self) -> int:
        if TRACES and (found := trace_method("__int__", self)) is not NotImplemented:
            return found
        return int(_to_python_number(self, "int64_t"))

    def __float__(self) -> float:
        if TRACES and (found := trace_method("__float__", self)) is not NotImplemented:
            return found
        try:
            return float(_to_python_number(self, "double"))
        except Exception:
            filter_traceback()
            raise

    def __complex__(self) -> complex:
        if TRACES and (found := trace_method("__complex__", self)) is not NotImplemented:
            return found
        return complex(_to_python_number(self))

    def __index__(self) -> int:
        if TRACES and (found := trace_method("__index__", self)) is not NotImplemented:
            return found
        if self.numel() != 1 or self.dtype.category >= dtypes.FLOAT:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __iter__(self):
        if not self._tl_array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self):
        return self.flip(0) if self._tl_array.ndim else self

    def __contains__(self, element) -> bool:
        if isinstance(element, (call.Tensor, int, float, complex)):
            return bool(self.eq(element).any().item())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")

    def __dir__(self):
        return sorted({*object.__dir__(self), *dir(type(self))})

    def __delitem__(self, index):
        raise TypeError("Tensor does not support deleting items")
