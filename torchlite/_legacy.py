"""torch.FloatTensor and its kind: constructors of one dtype, which also answer isinstance."""
from __future__ import annotations

from typing import Any

from . import _dtype
from ._creation import legacy_tensor
from ._tensor import Tensor


class _TypedTensor(type):
    """`torch.LongTensor(2, 3)`, `torch.LongTensor([1, 2])`, `isinstance(x, torch.LongTensor)`."""

    dtype: _dtype.dtype

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        return legacy_tensor(args, cls.dtype, device)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.is_cpu


def _make(name: str, d: _dtype.dtype) -> _TypedTensor:
    return _TypedTensor(name, (), {"dtype": d, "__module__": "torch",
                                   "__doc__": f"CPU tensors of {d}: made from sizes (uninitialised) or from a sequence."})


BoolTensor = _make("BoolTensor", _dtype.bool_)
ByteTensor = _make("ByteTensor", _dtype.uint8)
CharTensor = _make("CharTensor", _dtype.int8)
ShortTensor = _make("ShortTensor", _dtype.int16)
IntTensor = _make("IntTensor", _dtype.int32)
LongTensor = _make("LongTensor", _dtype.int64)
HalfTensor = _make("HalfTensor", _dtype.float16)
BFloat16Tensor = _make("BFloat16Tensor", _dtype.bfloat16)
FloatTensor = _make("FloatTensor", _dtype.float32)
DoubleTensor = _make("DoubleTensor", _dtype.float64)
