"""Top-level functions of PyTorch that query tensors and are not ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._dispatch import call
from .._dispatch.backend import OutOfMemoryError as OutOfMemoryError
from .._dispatch.dispatch_state import OVERRIDES
from .._dispatch.interceptors import call_override, call_torch_function, find_torch_function_override
from .._dispatch.parsed_functions import parsed
from .._dispatch.type_promotion import result_dtype
from .._types.dtypes import dtype
from .._types.layouts import Size

if TYPE_CHECKING:
    from .tensor import Tensor


def is_tensor(obj: Any) -> bool:
    """True if the object is a Tensor."""
    return isinstance(obj, call.Tensor)


def is_storage(obj: Any) -> bool:
    """True if the object is a storage."""
    from .typed_storage import is_storage

    return is_storage(obj)


def is_floating_point(input: Tensor) -> bool:
    """True if the tensor's dtype is a floating-point dtype."""
    if OVERRIDES and (found := call_override(is_floating_point, (input,))) is not NotImplemented:
        return found
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """True if the tensor's dtype is complex."""
    if OVERRIDES and (found := call_override(is_complex, (input,))) is not NotImplemented:
        return found
    return input.is_complex()


@parsed("is_signed")
def is_signed(input: Tensor) -> bool:
    """True if the tensor's dtype can represent negative values."""
    if OVERRIDES and (found := call_override(is_signed, (input,))) is not NotImplemented:
        return found
    return input.is_signed()


@parsed("get_device")
def get_device(input: Tensor) -> int:
    """The index of the tensor's device; -1 on the CPU."""
    if OVERRIDES and (found := call_override(get_device, (input,))) is not NotImplemented:
        return found
    return input.get_device()


@parsed("is_conj")
def is_conj(input: Tensor) -> bool:
    """Always False: conjugates are computed."""
    if OVERRIDES and (found := call_override(is_conj, (input,))) is not NotImplemented:
        return found
    return input.is_conj()


@parsed("is_neg")
def is_neg(input: Tensor) -> bool:
    """Always False: negatives are computed."""
    if OVERRIDES and (found := call_override(is_neg, (input,))) is not NotImplemented:
        return found
    return input.is_neg()


@parsed("is_inference")
def is_inference(input: Tensor) -> bool:
    """True if the tensor carries the mark of inference mode (never)."""
    if OVERRIDES and (found := call_override(is_inference, (input,))) is not NotImplemented:
        return found
    return input.is_inference()


@parsed("is_nonzero")
def is_nonzero(input: Tensor) -> bool:
    """True if a one-element tensor is not zero. RuntimeError for other sizes."""
    if OVERRIDES and (found := call_override(is_nonzero, (input,))) is not NotImplemented:
        return found
    if input.numel() != 1:
        raise RuntimeError(
            "Boolean value of Tensor with no values is ambiguous"
            if not input.numel()
            else "Boolean value of Tensor with more than one value is ambiguous"
        )
    return bool(input)


def _has_compatible_shallow_copy_type(input, from_):
    """Return whether `input.data` could become `from_`: both are dense, or both of one sparse layout.

    >>> import torchlite as torch
    >>> torch._has_compatible_shallow_copy_type(torch.ones(2), torch.ones(2).to_sparse())
    False
    """
    meta = [x.device.type == "meta" for x in (input, from_)]
    return input.layout is from_.layout and input.is_nested == from_.is_nested and meta[0] == meta[1]


@parsed("is_same_size")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """True if two tensors have the same shape."""
    if OVERRIDES and (found := call_override(is_same_size, (input, other))) is not NotImplemented:
        return found
    return input.shape == other.shape


def numel(input: Tensor) -> int:
    """The number of elements."""
    if OVERRIDES and (found := call_override(numel, (input,))) is not NotImplemented:
        return found
    return input.numel()


def typename(obj: Any) -> str:
    """The full name of a class or function, else of an object's type; of a tensor such as "torch.FloatTensor"."""
    if isinstance(obj, call.Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") and hasattr(obj, "__module__") else type(obj)
    return f"{named.__module__ or 'builtins'}.{named.__qualname__}".removeprefix("builtins.")


_OPERANDS = ("scalar", "scalar1", "tensor", "tensor1", "scalar2", "tensor2", "other", "x2")


def result_type(*arrays_and_dtypes, **named) -> dtype:
    """The dtype in which an arithmetic op combines tensors, dtypes and numbers (PyTorch: two tensors or numbers, by
    the names of its signatures: `tensor` and `other`, `scalar` and `tensor`, `scalar1` and `scalar2`). TypeError for
    anything else.

    >>> import torchlite as torch
    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    torch.float32
    >>> torch.result_type(torch.int8, torch.int16, torch.uint8)
    torch.int16
    """
    if OVERRIDES and (found := call_override(result_type, arrays_and_dtypes, named or None)) is not NotImplemented:
        return found
    values = [*arrays_and_dtypes, *(named.pop(name) for name in _OPERANDS if name in named)]
    if named:
        raise TypeError(f"result_type() got an unexpected keyword argument '{next(iter(named))}'")
    if not values:
        raise TypeError('result_type() missing 2 required positional arguments: "tensor1", "tensor2"')
    return result_dtype(values)


def broadcast_shapes(*shapes_) -> Size:
    """The broadcast shape of these shapes. RuntimeError if they do not broadcast."""
    wanted = [(s,) if isinstance(s, int) else tuple(s) for s in shapes_]
    common = [1] * max(map(len, wanted), default=0)
    for index, shape in enumerate(wanted):
        for place in range(-1, -1 - len(shape), -1):
            if shape[place] not in (1, common[place]) and common[place] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[place]} at {place}! Mismatching argument at "
                    f"index {index} had {shape}; but expected shape should be broadcastable to {common}"
                )
            common[place] = common[place] if shape[place] == 1 else shape[place]
    if min(common, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension ({min(common)}): ({min(common)})")
    return Size(common)


def set_default_tensor_type(t) -> None:
    """Set the default dtype, and for "torch.cuda.FloatTensor" and its kind the default device, by a
    type or its name.
    """
    from .._types.devices import set_default_tensor_type_device
    from .._types.dtypes import set_default_dtype
    from .legacy_types import device_and_dtype_of

    found = device_and_dtype_of(t)
    if found is None or not found[1].is_floating_point:
        raise TypeError(f"invalid type object: only floating-point types are supported as the default type, got {t}")
    where, d = found
    set_default_dtype(d)
    set_default_tensor_type_device(where)


def _assert(condition, message) -> None:
    """`assert condition, message` as a function: AssertionError if the condition (also a one-element tensor) is
    false.
    """
    if condition.__class__ is not bool and find_torch_function_override((condition,)) is not None:
        call_torch_function(_assert, (condition,), (condition, message), {})
    elif not condition:
        raise AssertionError(message)


def _shape_as_tensor(self: Any) -> Any:
    """The shape as a tensor of int64 on the CPU."""
    from .creation import tensor

    return tensor(tuple(self.shape))


def _cast_function(name: str) -> Any:
    def cast(self: Any, non_blocking: bool = False) -> Any:
        return getattr(self, name.lower())()

    cast.__name__ = cast.__qualname__ = f"_cast_{name}"
    cast.__doc__ = f"Same as `input.{name.lower()}()`."
    return cast


_cast_Byte = _cast_function("Byte")
_cast_Char = _cast_function("Char")
_cast_Short = _cast_function("Short")
_cast_Int = _cast_function("Int")
_cast_Long = _cast_function("Long")
_cast_Half = _cast_function("Half")
_cast_Float = _cast_function("Float")
_cast_Double = _cast_function("Double")


def _softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    """The gradient of a softmax's input, from that of its output and the output."""
    products = grad_output * output
    return (products - output * products.sum(dim, keepdim=True)).to(input_dtype)


def _log_softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    """The gradient of a log-softmax's input, from that of its output and the output."""
    return (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)


def _check_half_to_float(half_to_float: bool) -> None:
    if half_to_float:
        raise RuntimeError("softmax with half to float conversion is not supported on CPU")


def _softmax(self: Any, dim: int, half_to_float: bool) -> Any:
    """Same as ``torch.softmax(self, dim)``.

    Raises:
        RuntimeError: `half_to_float` is true.
    """
    _check_half_to_float(half_to_float)
    return self.softmax(dim)


def _log_softmax(self: Any, dim: int, half_to_float: bool) -> Any:
    """Same as ``torch.log_softmax(self, dim)``.

    Raises:
        RuntimeError: `half_to_float` is true.
    """
    _check_half_to_float(half_to_float)
    return self.log_softmax(dim)


class AcceleratorError(RuntimeError):
    """Error of a device; `error_code` is the device's error number, if it has one."""

    error_code = 0


@parsed("is_distributed")
def is_distributed(input: Tensor) -> bool:
    """True if a tensor is distributed over several machines: always False."""
    return False
