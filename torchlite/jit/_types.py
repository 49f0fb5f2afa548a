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
    """TorchScript's type `Any`; `get` returns the one object.

    Example:
        >>> torch.AnyType.get()
        Any
    """

    _name = "Any"


class BoolType(_SingletonType):
    """TorchScript's type `bool`; `get` returns the one object.

    Example:
        >>> torch.BoolType.get()
        bool
    """

    _name = "bool"


class ComplexType(_SingletonType):
    """TorchScript's type `complex`; `get` returns the one object.

    Example:
        >>> torch.ComplexType.get()
        complex
    """

    _name = "complex"


class DeviceObjType(_SingletonType):
    """TorchScript's type `Device`; `get` returns the one object.

    Example:
        >>> torch.DeviceObjType.get()
        Device
    """

    _name = "Device"


class FloatType(_SingletonType):
    """TorchScript's type `float`; `get` returns the one object.

    Example:
        >>> torch.FloatType.get()
        float
    """

    _name = "float"


class IntType(_SingletonType):
    """TorchScript's type `int`; `get` returns the one object.

    Example:
        >>> torch.IntType.get()
        int
    """

    _name = "int"


class NoneType(_SingletonType):
    """TorchScript's type `NoneType`; `get` returns the one object.

    Example:
        >>> torch.NoneType.get()
        NoneType
    """

    _name = "NoneType"


class NumberType(_SingletonType):
    """TorchScript's type `number`; `get` returns the one object.

    Example:
        >>> torch.NumberType.get()
        number
    """

    _name = "number"


class PyObjectType(_SingletonType):
    """TorchScript's type `PyObject`; `get` returns the one object.

    Example:
        >>> torch.PyObjectType.get()
        PyObject
    """

    _name = "PyObject"


class StreamObjType(_SingletonType):
    """TorchScript's type `Stream`; `get` returns the one object.

    Example:
        >>> torch.StreamObjType.get()
        Stream
    """

    _name = "Stream"


class StringType(_SingletonType):
    """TorchScript's type `str`; `get` returns the one object.

    Example:
        >>> torch.StringType.get()
        str
    """

    _name = "str"


class SymBoolType(_SingletonType):
    """TorchScript's type `bool`; `get` returns the one object.

    Example:
        >>> torch.SymBoolType.get()
        bool
    """

    _name = "bool"


class SymIntType(_SingletonType):
    """TorchScript's type `int`; `get` returns the one object.

    Example:
        >>> torch.SymIntType.get()
        int
    """

    _name = "int"


class TensorType(_SingletonType):
    """TorchScript's type `Tensor`; `get` returns the one object.

    Example:
        >>> torch.TensorType.get()
        Tensor
    """

    _name = "Tensor"


class _ElementType(Type):
    """Type with one element type."""

    def __init__(self, element: Type) -> None:
        self._parts = (element,)

    def getElementType(self) -> Type:
        """Return the element type."""
        return self._parts[0]


class ListType(_ElementType):
    """TorchScript's list of a type.

    Args:
        element: Type of the items.

    Example:
        >>> torch.ListType(torch.IntType.get())
        List[int]
    """

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
    """TorchScript's type of a value that may be None.

    Args:
        element: Type of the value.

    Example:
        >>> torch.OptionalType(torch.IntType.get())
        Optional[int]
    """

    _name = "Optional"

    @staticmethod
    def ofTensor() -> OptionalType:
        """Return the type of an optional tensor."""
        return OptionalType(TensorType())


class FutureType(_ElementType):
    """TorchScript's future of a type.

    Args:
        element: Type of the result.

    Example:
        >>> torch.FutureType(torch.IntType.get())
        Future[int]
    """

    _name = "Future"


class DictType(Type):
    """TorchScript's dictionary.

    Args:
        key: Type of the keys.
        value: Type of the values.

    Example:
        >>> torch.DictType(torch.StringType.get(), torch.IntType.get())
        Dict[str, int]
    """

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
    """TorchScript's tuple.

    Args:
        elements: Types of the items.

    Example:
        >>> torch.TupleType([torch.IntType.get(), torch.TensorType.get()])
        Tuple[int, Tensor]
    """

    _name = "Tuple"

    def __init__(self, elements: Sequence[Type]) -> None:
        self._parts = tuple(elements)

    def elements(self) -> list[Type]:
        """Return the element types."""
        return list(self._parts)


class UnionType(Type):
    """TorchScript's union of types.

    Args:
        members: The types.

    Example:
        >>> torch.UnionType([torch.IntType.get(), torch.StringType.get()])
        Union[int, str]
    """

    _name = "Union"

    def __init__(self, members: Sequence[Type]) -> None:
        self._parts = tuple(members)
