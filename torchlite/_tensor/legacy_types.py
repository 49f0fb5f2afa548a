"""torch.FloatTensor and similar classes: constructors for one dtype that support isinstance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._device.streams import accelerator_of
from .._dispatch import call
from .._types import dtypes, layouts
from .creation import legacy_tensor

if TYPE_CHECKING:
    from .tensor import Tensor


class _TypedTensor(type):
    """`torch.LongTensor(2, 3)`, `torch.LongTensor([1, 2])`, `isinstance(x, torch.LongTensor)`."""

    dtype: dtypes.dtype
    where: str  # a device type
    layout: layouts.layout = layouts.strided

    def __call__(cls, *args: Any, device: Any = None, size: Any = None) -> Tensor:
        cls._check_there()
        return legacy_tensor(args, cls.dtype, device, size, cls.where)

    def _check_there(cls) -> None:
        missing = cls.where != "cpu" and accelerator_of(cls.where).why_not()
        if missing:
            raise TypeError(f"type {cls.__module__}.{cls.__name__} not available. {missing}")

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, call.Tensor)
            and instance.dtype is cls.dtype
            and instance.device.type == cls.where
            and instance.layout is cls.layout
        )

    def __new__(mcs, name: str, bases: tuple, body: dict) -> Any:
        if bases:
            shown = f"{bases[0].__module__}.{bases[0].__name__}"
            raise TypeError(f"type '{shown}' is not an acceptable base type")
        return type.__new__(mcs, name, bases, body)

    @property
    def is_xpu(cls) -> bool:
        """Whether the tensor is on a device of the type xpu: always ``False``."""
        return False

    @property
    def is_cuda(cls) -> bool:
        """Whether the tensor is on a CUDA device."""
        return cls.where == "cuda"


def _make_tensor_type(name: str, d: dtypes.dtype, where: str = "cpu") -> _TypedTensor:
    return _TypedTensor(
        name,
        (),
        {
            "dtype": d,
            "where": where,
            "__module__": "torch" if where == "cpu" else f"torch.{where}",
            "__doc__": f"{where.upper()} tensors of {d}: made from sizes (uninitialised) or from a sequence.",
        },
    )


def typed_tensor_class(name: str, where: str) -> _TypedTensor:
    """The class of that name for another device type: `torch.cuda.FloatTensor`."""
    return _make_tensor_type(name, globals()[name].dtype, where)


def device_and_dtype_of(kind: Any) -> tuple[str, dtypes.dtype] | None:
    """Device type and dtype of one of these classes, or of a name such as "torch.cuda.FloatTensor"; None for anything
    else.
    """
    if isinstance(kind, _TypedTensor):
        return kind.where, kind.dtype
    if kind is call.Tensor:
        return "cpu", dtypes.get_default_dtype()
    names = {f"{d.scalar_name}Tensor": d for d in dtypes.BY_NAME.values()}
    prefix, _, last = str(kind).rpartition(".")
    where = {"torch": "cpu", "torch.cuda": "cuda", "torch.opencl": "opencl"}.get(prefix.removesuffix(".sparse"))
    return None if where is None or last not in names else (where, names[last])


BoolTensor = _make_tensor_type("BoolTensor", dtypes.bool_)
ByteTensor = _make_tensor_type("ByteTensor", dtypes.uint8)
CharTensor = _make_tensor_type("CharTensor", dtypes.int8)
ShortTensor = _make_tensor_type("ShortTensor", dtypes.int16)
IntTensor = _make_tensor_type("IntTensor", dtypes.int32)
LongTensor = _make_tensor_type("LongTensor", dtypes.int64)
HalfTensor = _make_tensor_type("HalfTensor", dtypes.float16)
BFloat16Tensor = _make_tensor_type("BFloat16Tensor", dtypes.bfloat16)
FloatTensor = _make_tensor_type("FloatTensor", dtypes.float32)
DoubleTensor = _make_tensor_type("DoubleTensor", dtypes.float64)

_tensor_classes = {
    BoolTensor, ByteTensor, CharTensor, ShortTensor, IntTensor, LongTensor, HalfTensor, BFloat16Tensor, FloatTensor,
    DoubleTensor,
}  # fmt: skip
