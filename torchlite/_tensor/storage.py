"""Storages: the memory under tensors, for sharing, pickling and checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._dispatch import call, table_of
from .._dispatch.runtime import LEAF
from .._types import dtypes

if TYPE_CHECKING:
    from .properties import Properties


def root_array(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory under a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _bounds(array: np.ndarray) -> tuple[int, int]:
    """Address of the storage's first byte, and its length in bytes."""
    root = root_array(array)
    low, high = np.lib.array_utils.byte_bounds(root) if root.size else (root.ctypes.data, root.ctypes.data)
    return low, high - low


def offset_of(tensor: Properties) -> int:
    """The storage offset of a tensor in elements."""
    data = tensor._data
    if isinstance(data, np.ndarray):
        return (data.ctypes.data - _bounds(data)[0]) // max(tensor.dtype.itemsize, 1) if data.size else 0
    return getattr(data, "offset", 0)


def owner_of(tensor: Properties):
    """The raw array that owns a device tensor's memory, as far as its backend shows it."""
    data = tensor._data
    base = getattr(data, "base", None)
    return base if isinstance(base, tensor._table.array) else data


class UntypedStorage:
    """The bytes under a tensor and all that share its memory."""

    def __init__(self, tensor: Properties):
        self._tensor: Any = tensor

    @property
    def device(self):
        return self._tensor.device

    def data_ptr(self) -> int:
        """The address of the first byte; on a device a number that no other memory has."""
        data = self._tensor._data
        return (
            _bounds(data)[0]
            if isinstance(data, np.ndarray)
            else owner_of(self._tensor).data_ptr()
            if hasattr(data, "data_ptr")
            else 0
        )

    def nbytes(self) -> int:
        """The length in bytes."""
        data = self._tensor._data
        return (
            _bounds(data)[1]
            if isinstance(data, np.ndarray)
            else getattr(owner_of(self._tensor), "nbytes", self._tensor.nbytes)
        )

    size = nbytes
    __len__ = nbytes

    def numpy(self) -> np.ndarray:
        """The bytes as a uint8 array on the same memory (CPU), or a copy of a device's."""
        data = self._tensor._data
        if not isinstance(data, np.ndarray):
            return np.ascontiguousarray(self._tensor._table.to_numpy(owner_of(self._tensor))).reshape(-1).view(np.uint8)
        root = root_array(data)
        if not root.flags.c_contiguous:
            root = (
                root.T
                if root.flags.f_contiguous
                else np.lib.stride_tricks.as_strided(root, (self.nbytes() // root.itemsize,), (root.itemsize,))
            )
        return root.reshape(-1).view(np.uint8)

    def tolist(self) -> list:
        return self.numpy().tolist()

    def __getitem__(self, index):
        return self.numpy()[index]

    def __eq__(self, other) -> bool:
        return (
            isinstance(other, UntypedStorage)
            and other.data_ptr() == self.data_ptr()
            and other.nbytes() == self.nbytes()
        )

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def __repr__(self) -> str:
        return f"[torchlite.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


class TypedStorage(UntypedStorage):
    """The elements under a tensor."""

    @property
    def dtype(self):
        return self._tensor.dtype

    def size(self) -> int:
        """The number of elements."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = size

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._tensor)

    def tolist(self) -> list:
        return self.numpy().view(self.dtype.np).tolist()

    def __getitem__(self, index):
        return self.numpy().view(self.dtype.np)[index]


def rebuild(array: np.ndarray, dtype_name: str, requires_grad: bool, cls, attributes: dict, where: str = "cpu"):
    """A tensor out of a pickle."""
    d = dtypes.ALL[dtype_name]
    from .._types.devices import device

    table = table_of(device(where))
    out = call.wrap(table, table.from_numpy(array.view(d.np) if array.dtype != d.np else array), d)
    if cls is not call.Tensor:
        out = out.as_subclass(cls)
    if requires_grad:
        out.requires_grad_()
    if attributes:
        out.__dict__.update(attributes)
    return out


def reduce_tensor(tensor: Properties):
    """What pickle stores: the elements as a NumPy array, dtype, requires_grad, class and attributes."""
    if tensor._node is not None and tensor._node is not LEAF:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support pickling; call .detach() first"
        )
    array = tensor._table.to_numpy(tensor._data)
    d = tensor.dtype
    if array.dtype.kind == "V" or d.name in dtypes._EXTRA:
        array = np.ascontiguousarray(array).view(f"u{d.itemsize}")
    return rebuild, (array, d.name, tensor._node is LEAF, type(tensor), dict(tensor.__dict__), str(tensor.device))


_shared: dict[int, object] = {}


def share_memory(tensor: Properties) -> Properties:
    """Move a CPU tensor's memory to an anonymous shared mapping, which forked processes see."""
    if is_shared(tensor) or not isinstance(tensor._data, np.ndarray):
        return tensor
    import mmap

    array = tensor._data
    memory = mmap.mmap(-1, max(array.nbytes, 1))
    moved = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
    moved[...] = array
    tensor._data = moved
    return tensor


def is_shared(tensor: Properties) -> bool:
    """Whether the memory is a shared mapping."""
    import mmap

    base = getattr(tensor._data, "base", None)
    while base is not None and not isinstance(base, (mmap.mmap, memoryview)):
        base = getattr(base, "base", None)
    return isinstance(base, mmap.mmap) or (isinstance(base, memoryview) and isinstance(base.obj, mmap.mmap))
