"""What nested tensors of both layouts share."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite._aten.inner_history import InnerHistory


class NestedBase(InnerHistory):
    """A tensor of tensors. `_values` has all elements and the history."""

    __slots__ = ()
    is_nested = True  # type: ignore[assignment]

    @staticmethod
    def _run_function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("a custom autograd.Function takes no nested tensor: give it `values()`")

    def __iter__(self) -> Any:
        return iter(self.unbind())

    def __bool__(self) -> bool:
        if self.numel() == 1:
            return bool(self._values)
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    def item(self) -> Any:
        """Returns the only element. RuntimeError if there are others."""
        if self.numel() == 1:
            return self._values.item()
        raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")

    def tolist(self) -> Any:
        raise RuntimeError(f".tolist() is not supported for tensor subclasses, got {type(self).__name__}")

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def numel(self) -> int:
        """Returns the number of elements of all parts."""
        return self._values.numel()

    nelement = numel

    def data_ptr(self) -> int:
        """Returns the address of the elements."""
        return self._values.data_ptr()

    def untyped_storage(self) -> Any:
        """Returns the storage of the elements."""
        return self._values.untyped_storage()

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the tensor with another dtype or on another device; see `torch.Tensor.to`."""
        if args and isinstance(args[0], NestedBase):
            args = (args[0]._values, *args[1:])
        values = self._values.to(*args, **kwargs)
        return self if values is self._values else self._like(values)

    def cpu(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the tensor on the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        """Returns the tensor on a CUDA device."""
        return self.to("cuda" if device is None else device)

    def pin_memory(self, device: Any = None) -> Any:
        """Returns the tensor in page-locked memory."""
        return self._like(self._values.pin_memory())


def _cast(dtype: torch.dtype, name: str) -> Any:
    def cast(self: Any, memory_format: Any = None) -> Any:
        return self.to(dtype)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"Returns the tensor with the dtype {dtype}."
    return cast


for _name, _dtype in {
    "double": torch.float64, "float": torch.float32, "half": torch.float16, "bfloat16": torch.bfloat16,
    "long": torch.int64, "int": torch.int32, "short": torch.int16, "char": torch.int8, "byte": torch.uint8,
    "bool": torch.bool,
}.items():  # fmt: skip
    setattr(NestedBase, _name, _cast(_dtype, _name))
