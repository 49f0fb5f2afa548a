"""The contract of a backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._settings.cached import cached_property
from .._types.devices import device
from .._types.dtypes import dtype, float16, float32, float64
from .dispatch_state import GLOBALS

_REAL = frozenset((float32, float64, float16))


class OutOfMemoryError(RuntimeError):
    """A device has not enough free memory."""


OutOfMemoryError.__module__ = "torchlite"


class Backend(Protocol):
    """What an entry point of the group `torchlite.backends` loads. Its name in the group is the device's type."""

    name: str
    # the class of its raw arrays: these have .shape, .ndim, .size, .dtype, .strides (in bytes) and .base (see
    # is_view)
    array: type

    def why_not(self) -> str:
        """ "" when the device can be used, else one sentence saying what is missing and what to install."""
        ...

    def device_count(self) -> int: ...

    def kernels(self, index: int) -> dict[str, Any]:
        """{op name: kernel} for one device."""
        ...

    # Where large arrays are worth other kernels:

    def large_kernels(self, index: int) -> dict[str, Any]:
        """Kernels for ops whose first tensor has at least `LARGE` elements (`_dispatch/runtime.py`), in place of those
        of `kernels(index)` with the same names. They take arrays of any size: formulas and composites call them too.
        """
        ...

    def as_array(self, value: Any) -> Any:
        """A kernel's 0-d result as a raw array."""
        ...

    def from_numpy(self, array: np.ndarray, index: int) -> Any: ...

    def to_numpy(self, raw: Any) -> np.ndarray: ...

    # Where the host has the device's memory:

    def host_view(self, raw: Any, write: bool) -> Any:
        """`with host_view(raw, write) as a:` gives a contiguous array's memory as a NumPy array, without a copy. None where
        it has to be copied.
        """
        ...

    def dtype_of(self, raw: Any) -> dtype: ...

    def offset_between(self, raw: Any, base: Any) -> int:
        """Bytes from the first element of `base` to that of `raw`, a view of it."""
        ...

    def memory(self, raw: Any) -> Any:
        """The whole storage that an array lies in as a flat array of bytes (uint8), on the same memory."""
        ...

    def from_dlpack(self, exporter: Any) -> Any:
        """A raw array on the memory of an object with `__dlpack__` on this kind of device."""
        ...

    def copy_into(self, target: Any, source: Any) -> None:
        """Write `source`, broadcast and cast, into `target` in place."""
        ...

    def is_sole_owner(self, raw: Any) -> bool:
        """Whether nothing else can hold this array's memory, so that it may become a `.grad` without a copy."""
        ...

    def random_engine(self, index: int) -> Any:
        """A new engine of the device's random stream (see `torchlite._device.generators`)."""
        ...

    # Only of "cpu":

    def blockwise(self, body: Any, shape: tuple, dtypes: tuple, arrays: tuple) -> tuple:
        """New contiguous arrays of the dtypes that `body(*parts of them, *parts of arrays)` fills, part by part; all
        arrays are contiguous and have the shape. A body calls kernels of pointwise ops.
        """
        ...

    scalar_dtypes: frozenset[dtype]

    def engine(self) -> str:
        """The name of the engine that computes over large arrays."""
        ...

    def engines(self) -> list[tuple[str, str]]:
        """For each engine its name and a line: whether it serves, and why not."""
        ...

    def in_float32(self, kernel: Any) -> Any:
        """A kernel that computes in float32 where its arrays have half precision."""
        ...

    def backward_in_float32(self, backward: Any, table: Any, g: Any, node: Any, get: Any, get_out: Any) -> Any:
        """A node's backward function likewise."""
        ...

    def from_foreign_array(self, array: np.ndarray, write: bool = False) -> Any:
        """A raw array on the memory of any NumPy array, which owns what lies from its first to its last element, and
        may be written in spite of the array's flag if `write`.
        """
        ...

    def onednn(self) -> Any:
        """The oneDNN that convolutions use: an object with `library`, which has `version`, `path` and `call`, or is
        None, and `why_not`, a sentence.
        """
        ...

    # Only of device types with a module such as `torch.opencl`:

    def runtime(self, index: int) -> Any:
        """A device as that module asks for it: what `torchlite._device.accelerators.Runtime` lists."""
        ...

    def records(self, mode: str) -> bool:
        """Whether `recorded` serves programs that are compiled in a mode of `torch.compile`."""
        ...

    def recorded(self, index: int, function: Any, given: tuple, mode: str) -> Any:
        """What `function(*given)`, which gets arrays and returns a tuple of them, starts on a device, without running
        it: an object whose `run(arrays)` starts all of it again and gives the results, or None for arrays of
        other shapes, or that lie otherwise in their memory. `recording.Unrecordable` where the host has a part in it.
        After a call `function.touched` are the arrays that kernels may have written to.
        """
        ...

    def fused_matmul(self, name: str, then: str) -> Any:
        """A kernel, with the arguments of `name`, of a product (or a convolution) and an elementwise op of its result,
        with the bits of the two; None where there is none. A backend that has this method adds a matrix or a vector in
        `addmm` with the bits of `mm` and `add`.
        """
        ...

    def consume_last_use(self, kernel: Any) -> Any:
        """A kernel that need not write what waits to be its first argument: nobody reads that later. Of backends that
        have `records`.
        """
        ...

    # Only of "cuda":

    def cuda_array_interface(self, raw: Any) -> dict[str, Any]:
        """What `__cuda_array_interface__` of an array is."""
        ...

    def from_cuda_array_interface(self, data: Any) -> Any:
        """A raw array on the memory of an object with `__cuda_array_interface__`."""
        ...

    def to_dlpack(self, raw: Any, stream: int | None) -> Any:
        """A capsule, or an object with `__dlpack__`, for a consumer that works in a stream (as DLPack numbers them)."""
        ...

    def cudnn_version(self) -> int | None:
        """cuDNN's version where it is used."""
        ...


def owner_of(raw: Any) -> Any:
    """The array that owns the memory of a raw array: itself, or who follows `base` to arrays of its class."""
    while raw.base.__class__ is raw.__class__:
        raw = raw.base
    return raw


def is_view(raw: Any, of: Any) -> bool:
    """Whether `raw`, made by an op from `of`, shares its memory: an array's `.base` is the array that owns its memory,
    or None.
    """
    base = raw.base
    return raw is of or (base is not None and (base is of or base is of.base))


class KernelTable:
    """The kernels of one device, frozen when its backend loads: for each op its kernel, else its composite, else a
    function that says what is missing.
    """

    wraps = False  # of tensors that say they are on the device, and have no data of their own

    if TYPE_CHECKING:  # kernels are attributes under their op's name

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, backend: Backend, where: device):
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
        # Set by the registry, which knows other tables: no backend's business.
        self._move: Any = None
        self._larger: Any = None
        for name in ("as_array", "to_numpy", "dtype_of", "offset_between", "copy_into", "is_sole_owner"):
            setattr(self, name, getattr(backend, name))

    def __repr__(self) -> str:
        return f"<kernel table of {self.device}>"

    @cached_property
    def large(self) -> KernelTable:
        """The kernels for large arrays, made when they are first asked for. Tensors never name it as their table."""
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
