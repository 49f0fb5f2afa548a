"""Types that programs annotate with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias, Union

from torchlite._settings.module_dir import make_module_dir

from ._tensor import Tensor
from ._tensor.typed_storage import TypedStorage, UntypedStorage
from ._types.devices import device as _device
from ._types.dtypes import dtype as _dtype  # noqa: F401  packages take these from here
from ._types.layouts import Size
from ._types.layouts import layout as _layout  # noqa: F401

__all__ = ["Device", "FileLike", "Number", "Storage"]

_bool, _int, _float, _str, _bytes, _complex = bool, int, float, str, bytes, complex
Number: TypeAlias = Union[int, float, bool]
_Number = (bool, int, float)
Device: TypeAlias = Union[_device, str, int, None]
FileLike: TypeAlias = Union[str, os.PathLike[str], IO[bytes]]
Storage: TypeAlias = Union[TypedStorage, UntypedStorage]
_size: TypeAlias = Union[Size, list[int], tuple[int, ...]]
_symsize = _size
_TensorOrTensors: TypeAlias = Union[Tensor, Sequence[Tensor]]
_TensorOrOptionalTensors: TypeAlias = Any
IntLikeType, FloatLikeType, BoolLikeType = int, float, bool


__dir__ = make_module_dir(globals())
