"""TensorType and Dyn: gradual tensor type annotations."""

from __future__ import annotations

from typing import Any

from ._compatibility import compatibility

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


@compatibility(is_backward_compatible=False)
class TensorType:
    """Type of a tensor with these sizes; `Dyn` is an unknown size.

    >>> from torchlite.fx.tensor_type import Dyn, TensorType
    >>> TensorType((1, 2, Dyn))
    TensorType[(1, 2, Dyn)]
    """

    def __init__(self, dim: Any) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, self.__class__) and list(self.__args__) == list(other.__args__)

    def __hash__(self) -> int:
        return hash(tuple(self.__args__))

    @staticmethod
    def __class_getitem__(*args: Any) -> TensorType:
        if len(args) == 1 and isinstance(args[0], tuple):
            args = args[0]
        return TensorType(tuple(args))


class _DynType:
    """The dynamic type; its instance is `Dyn`."""

    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, self.__class__)

    def __hash__(self) -> int:
        return hash(_DynType)

    def __str__(self) -> str:
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


@compatibility(is_backward_compatible=False)
def is_consistent(t1: Any, t2: Any) -> bool:
    """True if two types are consistent: equal wherever both are known.

    >>> from torchlite.fx.tensor_type import Dyn, TensorType, is_consistent
    >>> is_consistent(TensorType((1, Dyn)), TensorType((Dyn, 3))), is_consistent(TensorType((1,)), TensorType((2,)))
    (True, False)
    """
    if t1 == t2 or isinstance(t1, _DynType) or isinstance(t2, _DynType):
        return True
    return _dims_all(t1, t2, is_consistent)


@compatibility(is_backward_compatible=False)
def is_more_precise(t1: Any, t2: Any) -> bool:
    """True if the first type is at least as precise as the second."""
    if t1 == t2 or isinstance(t2, _DynType):
        return True
    return _dims_all(t1, t2, is_more_precise)


def _dims_all(t1: Any, t2: Any, holds: Any) -> bool:
    return (
        isinstance(t1, TensorType)
        and isinstance(t2, TensorType)
        and len(t1.__args__) == len(t2.__args__)
        and all(map(holds, t1.__args__, t2.__args__))
    )
