"""What the backend protocols of OpenCL and CUDA have in common. Imports no kernels before a device is asked for."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from torchlite._types.dtypes import from_np


class DeviceBackend:
    """A backend whose raw arrays are `torchlite_device.array.Array`s; a runtime's adds which devices there are."""

    name: str

    def __init__(self) -> None:
        self._devices: dict[int, Any] = {}
        self._runtimes: dict[int, Any] = {}
        self._lock = threading.RLock()

    @property
    def array(self) -> type:
        from .array import Array

        return Array

    def device(self, index: int) -> Any:
        """The Device of an index, made when first asked for."""
        raise NotImplementedError

    def kernels(self, index: int) -> dict[str, Any]:
        from .registering import kernels_of

        return kernels_of(self.device(index))

    def as_array(self, value: Any) -> Any:
        raise TypeError(f"a kernel of {self.name} returned {type(value).__name__}, not an Array")

    def from_numpy(self, array: np.ndarray, index: int) -> Any:
        from .transfer import from_numpy

        return from_numpy(np.asarray(array), self.device(index))

    def to_numpy(self, raw: Any) -> np.ndarray:
        from .transfer import to_numpy

        return to_numpy(raw)

    def dtype_of(self, raw: Any) -> Any:
        return from_np(raw.dtype)

    def offset_between(self, raw: Any, base: Any) -> int:
        return (raw.offset - base.offset) * raw.itemsize

    def copy_into(self, target: Any, source: Any) -> None:
        from .copying import copy_into

        copy_into(target, source)

    def owns(self, raw: Any) -> bool:
        return raw.base is None

    def random_engine(self, index: int) -> Any:
        from .random import Engine

        return Engine()
