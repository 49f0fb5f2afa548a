"""Kinds of arguments."""

import os
from collections.abc import Mapping, Sequence
from typing import IO, Any, Protocol, TypeAlias

import numpy as np

from .basic import device, dtype, layout, memory_format
from .tensor import Tensor

Number: TypeAlias = int | float | bool | complex
Operand: TypeAlias = Tensor | int | float | bool | complex | np.ndarray[Any, Any] | np.generic
Ints: TypeAlias = int | Sequence[int]
OutputSize: TypeAlias = int | Sequence[int | None] | None
DeviceLike: TypeAlias = device | str | int | None
DType: TypeAlias = dtype
Layout: TypeAlias = layout
MemoryFormat: TypeAlias = memory_format
Index: TypeAlias = Any
File: TypeAlias = str | os.PathLike[str] | IO[bytes]
Tensors: TypeAlias = Tensor | Sequence[Tensor]
StateDict: TypeAlias = Mapping[str, Any]
TensorLike: TypeAlias = (
    Tensor | Number | np.ndarray[Any, Any] | np.generic | list[Any] | tuple[Any, ...] | Sequence[Number] | Exported
)

Exported: TypeAlias = SupportsArray | SupportsCUDA | SupportsDLPack

class SupportsArray(Protocol):
    def __array__(self) -> np.ndarray[Any, Any]: ...

class SupportsCUDA(Protocol):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

class SupportsDLPack(Protocol):
    def __dlpack__(self, *, stream: Any = None) -> Any: ...
