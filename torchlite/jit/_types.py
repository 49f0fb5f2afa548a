"""TorchScript's type objects (`torch._C.TensorType`, ...): printing, comparison and contained types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Type:
    """A TorchScript type.

    >>> import torchlite as torch
    >>> torch.DictType(torch.StringType.get(), torch.ListType(torch.IntType.get()))
    Dict[str, List[int]]
    """

    _name = ""
    _parts: tuple[Type, ...] = ()

    @property
    def annotation_str(self) -> str:
        """Return the type as an annotation."""
        return f"{self._name}[{', '.join(map(str, self._parts))}]" if self._parts else self._name

    def kind(self) -> str:
        """Return the class name."""
        return type(self).__name__

    def containedTypes(self) -> list[Type]:
        """Return the contained types."""
        return list(self._parts)

    def isSubtypeOf(self, other: Type) -> bool:
        """True if this type is a subtype of the other."""
        if self == other or isinstance(other, AnyType):
            return True
        if isinstance(other, (OptionalType, UnionType)):
            whole = isinstance(other, OptionalType) and isinstance(self, NoneType)
            return whole or any(self.isSubtypeOf(part) for part in other._parts)
        return isinstance(other, NumberType) and isinstance(self, (IntType, FloatType, ComplexType))

    def __repr__(self) -> str:
        return self.annotation_str

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parts == other._parts  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self._parts))


class _SingletonType(Type):
    """Type with a single instance, which `get` returns."""

    @classmethod
    def get(cls) -> Any:
        """Return the instance."""
        return cls()


class AnyType(_SingletonType):
    """TorchScript's `Any`."""

    _name = "Any"


class BoolType(_SingletonType):
    """TorchScript's `bool`."""

    _name = "bool"


class ComplexType(_SingletonType):
    """TorchScript's `complex`."""

    _name = "complex"


class DeviceObjType(_SingletonType):
    """TorchScript's `Device`."""

    _name = "Device"


class FloatType(_SingletonType):
    """TorchScript's `float`."""

    _name = "float"


class IntType(_SingletonType):
    """TorchScript's `int`."""

    _name = "int"


class NoneType(_SingletonType):
    """TorchScript's `NoneType`."""

    _name = "NoneType"


class NumberType(_SingletonType):
    """TorchScript's `number`."""

    _name = "number"


class PyObjectType(_SingletonType):
    """TorchScript's `PyObject`."""

    _name = "PyObject"


class StreamObjType(_SingletonType):
    """TorchScript's `Stream`."""

    _name = "Stream"


class StringType(_SingletonType):
    """TorchScript's `str`."""

    _name = "str"


class SymBoolType(_SingletonType):
    """TorchScript's `bool`."""

    _name = "bool"


class SymIntType(_SingletonType):
    """TorchScript's `int`."""

    _name = "int"


class TensorType(_SingletonType):
    """TorchScript's `Tensor`."""

    _name = "Tensor"


class _ElementType(Type):
    """Type with one element type."""

    def __init__(self, element: Type) -> None:
        self._parts = (element,)

    def getElementType(self) -> Type:
        """Return the element type."""
        return self._parts[0]


class ListType(_ElementType):
    """List of a type."""

    _name = "List"

    @staticmethod
    def ofInts() -> ListType:
        """Return the type of a list of ints."""
        return ListType(IntType())

    @staticmethod
    def ofTensors() -> ListType:
        """Return the type of a list of tensors."""
        return ListType(TensorType())


class OptionalType(_ElementType):
    """Optional of a type."""

    _name = "Optional"

    @staticmethod
    def ofTensor() -> OptionalType:
        """Return the type of an optional tensor."""
        return OptionalType(TensorType())


class FutureType(_ElementType):
    """Future of a type."""

    _name = "Future"


class DictType(Type):
    """Dictionary, by key and value type."""

    _name = "Dict"

    def __init__(self, key: Type, value: Type) -> None:
        self._parts = (key, value)

    def getKeyType(self) -> Type:
        """Return the key type."""
        return self._parts[0]

    def getValueType(self) -> Type:
        """Return the value type."""
        return self._parts[1]


class TupleType(Type):
    """Tuple, by element types."""

    _name = "Tuple"

    def __init__(self, elements: Sequence[Type]) -> None:
        self._parts = tuple(elements)

    def elements(self) -> list[Type]:
        """Return the element types."""
        return list(self._parts)


class UnionType(Type):
    """Union of types."""

    _name = "Union"

    def __init__(self, members: Sequence[Type]) -> None:
        self._parts = tuple(members)
