"""The data of quantized tensors, and their class.

A quantized tensor is a Tensor whose `_tl_array` is a `QuantizedData`: an ordinary tensor of integers, and the quantizer
that gives their numbers. Its class is a subclass of Tensor, so generated functions do not take it for a plain tensor;
the general path looks up its rule (`op_dispatch.py`). Quantized tensors have no gradients.
"""

from __future__ import annotations

from typing import Any, NoReturn

from .._dispatch.autograd_graph import alias_meta, autograd_meta_of, is_inference
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.dispatch_state import GLOBALS, MODE
from .._dispatch.error_translation import no_backend_kernel_error
from .._dispatch.tracing import TRACES, trace_method
from .._tensor import Tensor
from .._types.layouts import contiguous_format
from .quantizers import QUANTIZED, PerTensor

_new = object.__new__


class QuantizedData:
    """Integers, as a plain tensor without history, and the quantizer that gives their numbers."""

    __slots__ = ("values", "quantizer")
    base = None

    def __init__(self, values: Any, quantizer: Any) -> None:
        self.values, self.quantizer = values, quantizer

    shape = property(lambda self: tuple(self.values.shape))
    ndim = property(lambda self: self.values.ndim)
    dtype = property(lambda self: self.values._tl_array.dtype)
    itemsize = property(lambda self: self.values.dtype.itemsize)
    strides = property(lambda self: self.values._tl_array.strides)


def wrap_quantized(values: Any, quantizer: Any) -> QuantizedTensor:
    """A quantized tensor of integers and a quantizer."""
    GLOBALS["CLASS_RULES"] = True
    out: Any = _new(QuantizedTensor)
    out._tl_array, out._tl_kernels, out.dtype, out._tl_node, out._tl_meta = (
        QuantizedData(values, quantizer), values._tl_kernels, QUANTIZED[values.dtype], None, None,
    )  # fmt: skip
    if MODE.inference:
        autograd_meta_of(out).inference = True
    return out


def is_quantized(value: Any) -> bool:
    """True if a value is a quantized tensor."""
    return isinstance(value, QuantizedTensor)


def no_kernel_error(name: str, tensor: Any) -> NotImplementedError:
    """Return PyTorch's error for an op that quantized tensors do not have."""
    return no_backend_kernel_error(name, "Quantized", tensor)


class QuantizedTensor(Tensor):
    """A tensor of integers with a scale and a zero point."""

    __slots__ = ()
    _tl_is_plain = True
    _tl_rules = "quantized"

    is_quantized = property(lambda self: True)
    _values = property(lambda self: self._tl_array.values)
    _quantizer = property(lambda self: self._tl_array.quantizer)

    def storage_offset(self) -> int:
        return self._values.storage_offset()

    def untyped_storage(self) -> Any:
        return self._values.untyped_storage()

    def storage(self) -> Any:
        return self._values.storage()

    _typed_storage = storage

    def data_ptr(self) -> int:
        return self._values.data_ptr()

    _tl_address = data_ptr

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        return self._values.is_contiguous(memory_format=memory_format)

    def is_shared(self) -> bool:
        return self._values.is_shared()

    def share_memory_(self) -> Any:
        self._values.share_memory_()
        return self

    def resize_(self, *sizes: Any, memory_format: Any = contiguous_format) -> Any:
        if not isinstance(self._quantizer, PerTensor):
            raise RuntimeError("Can only resize quantized tensors with per-tensor schemes!")
        self._values.resize_(*sizes, memory_format=memory_format)
        return self

    def as_strided_(self, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
        if not isinstance(self._quantizer, PerTensor):
            raise RuntimeError("Setting strides is possible only on uniformly quantized tensor")
        self._values.as_strided_(size, stride, storage_offset)
        return self

    def new(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("Legacy tensor constructors of quantized tensors are not supported")

    def apply_(self, callable: Any) -> NoReturn:
        raise RuntimeError("load_scalar: invalid type")

    def numpy(self, *, force: bool = False) -> NoReturn:
        raise TypeError(f"Got unsupported ScalarType {self.dtype.scalar_name}")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.numpy()

    def tolist(self) -> Any:
        if self.ndim == 0:
            return self.item()
        raise RuntimeError("load_scalar: invalid type")

    def item(self) -> float:
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self.dequantize().item()

    def __float__(self) -> float:
        return self.item()

    def __bool__(self) -> bool:
        return bool(self.item()) if self.numel() == 1 else Tensor.__bool__(self)

    def __getitem__(self, index: Any) -> Any:
        if TRACES and (found := trace_method("__getitem__", self, index)) is not NotImplemented:
            return found
        return CALLBACKS.quantized("getitem")(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        CALLBACKS.quantized("setitem")(self, index, value)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        if dtype is not None:
            return Tensor.type(self, dtype, non_blocking)
        where = "" if self.is_cpu else f"{self.device.type}."
        return f"torch.quantized.{where}{self.dtype.scalar_name}Tensor"

    def detach(self) -> Any:
        if TRACES and (found := trace_method("detach", self)) is not NotImplemented:
            return found
        out: Any = wrap_quantized(self._values, self._quantizer)
        out._tl_meta = alias_meta(self)
        return out

    @property
    def data(self) -> Any:
        out: Any = wrap_quantized(self._values, self._quantizer)
        if is_inference(self):
            autograd_meta_of(out).inference = True
        return out

    @data.setter
    def data(self, value: Any) -> None:
        Tensor.data.fset(self, value)  # type: ignore[attr-defined]

    def as_subclass(self, cls: Any) -> Any:
        if not issubclass(cls, QuantizedTensor) and cls.__module__.startswith("torchlite"):
            cls = QuantizedTensor
        return Tensor.as_subclass(self, cls)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        return CALLBACKS.quantized("convert")(self, *args, **kwargs)

    def __dlpack__(self, **keywords: Any) -> NoReturn:
        raise BufferError("Can't export quantized tensors")

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return CALLBACKS.quantized("quantized_repr")(self)

    def _copied_with_storage(self, memo: Any) -> Any:
        return wrap_quantized(self._values._copied_with_storage(memo), self._quantizer.copied())


QuantizedTensor.__name__ = QuantizedTensor.__qualname__ = "Tensor"
QuantizedTensor.__module__ = Tensor.__module__
