"""The kernel table of a device, and the memory relations of its raw arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._settings.cached_property import cached_property
from .._types.devices import device
from .._types.dtypes import float16, float32, float64
from .dispatch_state import GLOBALS

if TYPE_CHECKING:
    from ..backends.protocol import AnyBackend

_REAL = frozenset((float32, float64, float16))


class OutOfMemoryError(RuntimeError):
    """A device has not enough free memory."""


OutOfMemoryError.__module__ = "torchlite"


# The members of `torchlite.backends.protocol.Backend`, whose module takes milliseconds to import.
REQUIRED_MEMBERS = (
    "array", "as_array", "copy_into", "device_count", "dtype_of", "from_numpy", "is_sole_owner", "kernels",
    "offset_between", "to_numpy", "why_not",
)  # fmt: skip


def owner_of(raw: Any) -> Any:
    """The array that owns the memory of a raw array: itself, or who follows `base` to arrays of its class."""
    while raw.base.__class__ is raw.__class__:
        raw = raw.base
    return raw


def is_view(raw: Any, of: Any) -> bool:
    """True if `raw`, the result of an op on `of`, shares its memory: `.base` of an array is the owner of its memory, or
    None.
    """
    base = raw.base
    return raw is of or (base is not None and (base is of or base is of.base))


class KernelTable:
    """The kernels of one device, immutable once its backend is loaded: for each op its kernel, else its composite, else
    a function that raises the missing-kernel error.
    """

    wraps = False  # of tensors that report the device but have no data

    if TYPE_CHECKING:  # kernels are attributes under their op's name

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, backend: AnyBackend, where: device):
        self.backend = backend
        self.device = where
        self.array = backend.array
        # The dtypes that Python numbers are combined with in the kernels, and how half precision is computed in float32
        # where the kernels do not do so themselves.
        self.scalar_dtypes = getattr(backend, "scalar_dtypes", _REAL)
        # Those of them that hold every number a program is likely to write.
        self.exact_scalar_dtypes = frozenset([d for d in self.scalar_dtypes if d.itemsize > 2])
        self.in_float32 = getattr(backend, "in_float32", None)
        self.backward_in_float32 = getattr(backend, "backward_in_float32", None)
        # Set by the registry, which knows the other tables, not by backends.
        self._move: Any = None
        self._larger: Any = None
        self.as_array, self.to_numpy, self.copy_into = backend.as_array, backend.to_numpy, backend.copy_into
        self.dtype_of, self.offset_between = backend.dtype_of, backend.offset_between
        self.is_sole_owner = backend.is_sole_owner

    def __repr__(self) -> str:
        return f"<kernel table of {self.device}>"

    @cached_property
    def large(self) -> KernelTable:
        """The kernels for large arrays, created at first use. Tensors never refer to this table."""
        return self._larger()

    def for_size(self, raw: Any) -> KernelTable:
        """The table whose kernels suit an array's size; of a list of arrays the first one's."""
        if (raw.__class__ is list or raw.__class__ is tuple) and raw:
            raw = raw[0]
        return self if getattr(raw, "size", 0) < GLOBALS["LARGE"] else self.large

    def from_numpy(self, array: np.ndarray) -> Any:
        return self.backend.from_numpy(array, self.device.index or 0)

    def move_to(self, target: KernelTable, raw: Any) -> Any:
        """A raw array of this device on another one."""
        if target.device.type == "meta":
            return (
                target.backend.from_numpy(raw, 0)
                if hasattr(raw, "dtype") and not hasattr(raw, "element_strides")
                else raw
            )
        return target.from_numpy(self.to_numpy(raw))
