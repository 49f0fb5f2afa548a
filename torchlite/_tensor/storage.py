"""Storages: the memory under tensors, shared by a tensor and its views.

A raw array's owner (`owner_of`) is its storage; a tensor's offset, strides and bounds refer to it. An `UntypedStorage`
is a handle to an owner; each owner has at most one at a time.
"""

from __future__ import annotations

import math
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from .._dispatch import call, table_of
from .._dispatch.autograd_graph import adopt_memory_counter, root_meta_of, separate_meta, storage_meta
from .._dispatch.backend import owner_of
from .._dispatch.copy_on_write import SharedBuffer
from .._dispatch.shape_and_value_checks import check_in_bounds_for_storage, storage_nbytes_for
from .._dispatch.shapes import contiguous_strides
from .._settings import fork_locks
from .._settings.backend_flags import FLAGS
from .._types import dtypes
from .._types.devices import device as device_type
from .._types.package_name import package_name
from .live_tensors import live_tensors
from .shared_memory import Mapping, map_descriptor, map_file, map_shared, mapping_of

if TYPE_CHECKING:
    from .properties import PropertyMethods


# -- a tensor's place in its storage -----------------------------------------------------------


def offset_of(tensor: PropertyMethods) -> int:
    """The storage offset of a tensor in elements."""
    data = tensor._tl_array
    owner = owner_of(data)
    return 0 if owner is data else tensor._tl_kernels.offset_between(data, owner) // tensor.dtype.itemsize


def storage_bytes_of(tensor: PropertyMethods) -> tuple[Any, dtypes.dtype]:
    """A tensor's storage as a flat raw array of bytes. If its backend does not expose the memory, it contains the
    tensor's elements, copied if they are not contiguous.
    """
    table = tensor._tl_kernels
    if hasattr(table.backend, "memory"):
        return table.backend.memory(tensor._tl_array), dtypes.uint8
    return table.reshape(table.contiguous(tensor._tl_array), (-1,)), tensor.dtype


def strided_array(table: Any, memory: Any, d: dtypes.dtype, size, stride, offset: int) -> Any:
    """A raw array in the flat memory of a storage, with sizes, strides and offset counted in elements. RuntimeError
    when it would leave it.
    """
    have = table.dtype_of(memory)
    held = memory.shape[0] * have.itemsize
    check_in_bounds_for_storage(size, stride, offset, d.itemsize, held)
    if have is not dtypes.uint8 and have is d and tuple(stride) == contiguous_strides(size):
        count = math.prod(size)
        return table.reshape(table._slice(memory, 0, offset, offset + count, 1), tuple(size))
    if have is not d:
        memory = table._view_dtype(table._slice(memory, 0, 0, held - held % d.itemsize, 1), d)
    return table._as_strided(memory, tuple(size), tuple(stride), offset)


def make_tensor_on_storage(storage: UntypedStorage, d: dtypes.dtype, size, stride, offset: int):
    """A tensor of a storage. RuntimeError when it would leave it."""
    table = storage._tensor._tl_kernels
    out = call.wrap_array(table, strided_array(table, storage._tensor._tl_array, d, size, stride, offset), d)
    out._tl_meta = separate_meta(storage._tensor)
    return out


# -- storages ----------------------------------------------------------------------------------

_handles: weakref.WeakValueDictionary[int, UntypedStorage] = weakref.WeakValueDictionary()  # by id of the owner
_storage_lock = fork_locks.acquire_before_fork(threading.RLock())  # of handles: one for each owner


def storage_of(tensor: PropertyMethods) -> UntypedStorage:
    """The storage of a tensor; the same object as long as a reference to it exists."""
    owner = owner_of(tensor._tl_array)
    with _storage_lock:
        found = _handles.get(id(owner))
        if found is not None and owner_of(found._tensor._tl_array) is owner:
            found._fixed |= getattr(root_meta_of(tensor), "fixed", False)  # an array may have been made of it since
            return found
        out = object.__new__(UntypedStorage)
        shrunk = _shrunk.get(id(owner))
        memory, d = storage_bytes_of(tensor)
        if shrunk is not None:
            memory = tensor._tl_kernels._slice(memory, 0, 0, shrunk.nbytes, 1)
        out._fixed = getattr(root_meta_of(tensor), "fixed", False) or _is_borrowed(owner)
        out._source = weakref.ref(tensor)
        flat = call.wrap_array(tensor._tl_kernels, memory, d)
        flat._tl_meta = storage_meta(tensor)
        out._adopt_tensor(flat)
        return out


def _is_borrowed(owner: Any) -> bool:
    """True if the memory belongs to an object that is not an array. Such memory cannot grow."""
    return isinstance(owner, np.ndarray) and owner.base is not None and owner.base.__class__ is not SharedBuffer


class _Shrunk:
    """A storage that was shrunk under tensors: the remaining bytes, and the views of tensors that no longer fit."""

    def __init__(self, nbytes: int):
        self.nbytes = nbytes
        self.places: dict[int, tuple] = {}  # by a tensor's id: a reference to it, and its size, strides and offset


_shrunk: dict[int, _Shrunk] = {}  # by id of the owner
_MIN_NBYTES = 16  # bytes that stay under tensors whose storage has less


# Python 3.14 does not count the references of local names, so that a hidden reference could pass for one of these.
_YOUNG = (0, 1) if sys.version_info < (3, 14) else ()


def _find_tensors_of_storage(owner: Any, names: int) -> list:
    """All tensors of a storage, by a look at objects of the process. `names` of callers refer to the owner.

    Most tensors of a storage that is resized are young, and the garbage collector keeps young objects apart. The search
    ends as soon as the tensors found hold all references to the memory.
    """
    found: dict[int, Any] = {}
    for generation in (*_YOUNG, None):
        for x in live_tensors(generation):
            data = getattr(x, "_tl_array", None)
            if data is not None and owner_of(data) is owner:
                found[id(x)] = x
        data = x = None
        if generation is not None and _hold_all_references(found.values(), owner, names + 1):
            break
    return list(found.values())


def _hold_all_references(tensors: Collection[Any], owner: Any, names: int) -> bool:
    """True if only these tensors, and as many names of the callers, refer to an owner or to its views."""
    holders = Counter([id(x._tl_array) for x in tensors])
    known = names + 2 + holders.pop(id(owner), 0)  # this function's name, getrefcount's argument
    for x in tensors:
        if count := holders.pop(id(x._tl_array), 0):
            if x._tl_array.base is not owner or sys.getrefcount(x._tl_array) != count + 1:
                return False
            known += 1
    return sys.getrefcount(owner) == known


def _is_only_tensor(tensor: PropertyMethods, owner: Any, more: int = 0) -> bool:
    """True if no other tensor can be on the storage: only this one's raw array and a handle refer to it. `more` are
    further names of the caller's.
    """
    handle = id(owner) in _handles
    own = 3 + more  # the caller's name, this function's, getrefcount's argument
    if owner_of(tensor._tl_array) is not owner:
        return False
    if owner is tensor._tl_array:
        return sys.getrefcount(owner) <= own + 1 + handle
    return sys.getrefcount(owner) <= own + 1 + handle and sys.getrefcount(tensor._tl_array) <= 2


def _tensors_of(storage: UntypedStorage, owner: Any) -> list:
    """All tensors of a storage. The references to its memory tell where there is none but the first, or none at all."""
    source = storage._source()
    own = 4  # the caller's name, this function's, getrefcount's argument, the handle's array
    if source is None and sys.getrefcount(owner) <= own:
        return []
    if source is not None and _is_only_tensor(source, owner, 1):
        return [source]
    return _find_tensors_of_storage(owner, 2)


def resize_storage(storage: UntypedStorage, nbytes: int, only: PropertyMethods | None = None) -> None:
    """Resize a storage; its tensors follow. `only` is the tensor known to be the only one, if any."""
    if nbytes == storage.nbytes():
        return
    if storage._fixed:
        raise RuntimeError("Trying to resize storage that is not resizable")
    move_storage(storage, nbytes, only)


def move_storage(storage: UntypedStorage, nbytes: int, only: PropertyMethods | None = None) -> None:
    """Move a storage's contents to new memory of this many bytes; its tensors follow."""
    old = storage._tensor
    table, owner = old._tl_kernels, owner_of(old._tl_array)
    memory = table._empty((max(nbytes, _MIN_NBYTES) if nbytes < storage.nbytes() else nbytes,), dtypes.uint8)
    kept = min(nbytes, storage.nbytes())
    if kept:
        table.copy_into(table._slice(memory, 0, 0, kept, 1), table._slice(old._tl_array, 0, 0, kept, 1))
    shrunk, state = _shrunk.pop(id(owner), None), _Shrunk(nbytes)
    tensors = [only] if only is not None else _tensors_of(storage, owner)
    _handles.pop(id(owner), None)
    for tensor in tensors:
        if tensor is not old:
            _move_into(tensor, owner, shrunk, memory, state)
    storage._adopt_tensor(call.wrap_array(table, table._slice(memory, 0, 0, nbytes, 1), dtypes.uint8))
    owner = owner_of(memory)
    if state.places or nbytes < _MIN_NBYTES:
        _shrunk[id(owner)] = state
        weakref.finalize(owner, _shrunk.pop, id(owner), None)


def _move_into(tensor: Any, owner: Any, shrunk: _Shrunk | None, memory: Any, state: _Shrunk) -> None:
    """Move a tensor to the same offset in other memory. A tensor that does not fit gets zero strides until it fits
    again.
    """
    table, d = tensor._tl_kernels, tensor.dtype
    known = shrunk.places.get(id(tensor)) if shrunk is not None else None
    if known is not None and known[0]() is tensor:
        size, stride, offset = known[1:]
    else:
        size, stride, offset = geometry_of(tensor)
    if storage_nbytes_for(size, stride, d.itemsize, offset) <= state.nbytes:
        usable = table._slice(memory, 0, 0, state.nbytes, 1)
        tensor._tl_array = strided_array(table, usable, d, size, stride, offset)
    else:
        tensor._tl_array = strided_array(table, memory, d, size, (0,) * len(size), 0)
        state.places[id(tensor)] = weakref.ref(tensor), size, stride, offset


def geometry_of(tensor: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """A tensor's sizes, strides and offset in its storage, in elements."""
    data, size = tensor._tl_array, tensor.dtype.itemsize
    return tuple(data.shape), tuple([s // size for s in data.strides]), offset_of(tensor)


def grow_storage(tensor: PropertyMethods, nbytes: int) -> UntypedStorage:
    """A tensor's storage, grown to at least this many bytes."""
    owner = owner_of(tensor._tl_array)
    alone = _is_only_tensor(tensor, owner)
    storage = storage_of(tensor)
    if nbytes > storage.nbytes():
        resize_storage(storage, nbytes, tensor if alone else None)
    return storage


def set_geometry(tensor: PropertyMethods, storage: UntypedStorage | None, size, stride, offset: int) -> None:
    """Set a tensor's sizes, strides and offset (in elements) in a storage, by default its own. The storage grows if it
    is too small.
    """
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    span = storage_nbytes_for(size, stride, tensor.dtype.itemsize, offset)
    capacity = (tensor.untyped_storage() if storage is None else storage).nbytes()
    if storage is None:
        storage = grow_storage(tensor, span)
    elif span > capacity:
        resize_storage(storage, span)
    if span > capacity and FLAGS.deterministic and FLAGS.fill_uninitialized_memory:
        first = capacity // tensor.dtype.itemsize
        call.fill_uninitialized(
            make_tensor_on_storage(storage, tensor.dtype, (span // tensor.dtype.itemsize - first,), (1,), first)
        )
    tensor._tl_array = strided_array(tensor._tl_kernels, storage._tensor._tl_array, tensor.dtype, size, stride, offset)
    adopt_memory_counter(tensor, storage._tensor)


class _StorageBase:
    """Base class of all untyped storages."""

    def _refuse_meta(self) -> None:
        if self.device.type == "meta":  # type: ignore[attr-defined]
            raise NotImplementedError("Not available for 'meta' device type")


class UntypedStorage(_StorageBase):
    """The bytes under a tensor and all that share its memory.

    `UntypedStorage(4)` has four bytes that are not set, `UntypedStorage([1, 2])` these two, on `device` (the CPU).

    >>> import torchlite as torch
    >>> x = torch.zeros(2, 3)
    >>> x.untyped_storage().nbytes(), x[1].untyped_storage() is x.untyped_storage()
    (24, True)
    """

    _tensor: Any  # a flat tensor of the bytes (or of elements: see `storage_bytes_of`)
    _fixed: bool
    _source: Any = staticmethod(lambda: None)  # a reference to the tensor that the storage was first asked of

    def __new__(cls, *args, device=None):
        out = object.__new__(cls)
        if len(args) > 1:
            raise TypeError(f"torch.UntypedStorage(): expected at most 1 positional argument, but got {len(args)}")
        table = table_of(device_type("cpu") if device is None else call._resolve_device(device))
        given = args[0] if args else 0
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            if given < 0:
                raise RuntimeError(f"Storage size calculation overflowed with sizes=[{int(given)}]")
            memory = table._empty((int(given),), dtypes.uint8)
        else:
            memory = table.from_numpy(_number_to_bytes(given))
        out._fixed = False
        out._adopt_tensor(call.wrap_array(table, memory, dtypes.uint8))
        return out

    def __init__(self, *args, **kwargs):
        pass

    def _adopt_tensor(self, tensor: Any) -> None:
        """Become the handle on the memory of flat bytes."""
        self._tensor = tensor
        _handles[id(owner_of(tensor._tl_array))] = self

    @property
    def device(self):
        return self._tensor.device

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def _on_cpu(self) -> bool:
        return self.device.type == "cpu"

    is_hpu = is_sparse = is_sparse_csr = False

    @property
    def _cdata(self) -> int:
        """A number that no other storage has."""
        return id(owner_of(self._tensor._tl_array))

    @property
    def filename(self) -> str | None:
        """The file that a mapping shares its memory with; None for other storages."""
        return getattr(mapping_of(self._tensor._tl_array), "filename", None)

    def _get_filename(self) -> str | None:
        return self.filename

    def get_device(self) -> int:
        """The index of the device; -1 on the CPU."""
        return self._tensor.get_device()

    def data_ptr(self) -> int:
        """The address of the first byte; on a device a number that no other memory has. 0 without bytes."""
        return self._tensor.data_ptr()

    def nbytes(self) -> int:
        """The length in bytes."""
        return self._tensor.nbytes

    size = __len__ = nbytes

    def element_size(self) -> int:
        """Bytes of an element: 1."""
        return 1

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def resizable(self) -> bool:
        """True if the storage can be resized. It cannot if other objects, such as NumPy arrays, rely on its memory."""
        return not self._fixed

    def resize_(self, size: int) -> UntypedStorage:
        """Resize the storage to a number of bytes; its tensors follow. RuntimeError if it is not resizable."""
        if size < 0:
            raise RuntimeError("size must be non-negative")
        if size >= 1 << 63:
            raise ValueError("Overflow when unpacking long long")
        resize_storage(self, size)
        return self

    def numpy(self) -> np.ndarray:
        """The bytes as a uint8 array on the same memory (CPU), or a copy of a device's."""
        return self._tensor._tl_kernels.to_numpy(self._tensor._tl_array)

    def tolist(self) -> list:
        """The bytes as integers."""
        self._refuse_meta()
        return self.numpy().tolist()

    def _check_index(self, index, words: str = "torch.UntypedStorage") -> int:
        n = self.nbytes()
        if not hasattr(index, "__index__"):
            raise TypeError(f"can't index a {words} with {type(index).__name__}")
        at = index.__index__()
        if not -n <= at < n:
            raise IndexError(f"index {at} out of range for storage of size {n}")
        return at % n

    def _check_range(self, index: slice) -> slice:
        start, stop, step = index.indices(self.nbytes())
        if step != 1:
            raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
        return slice(start, max(start, stop))

    def __getitem__(self, index):
        self._refuse_meta()
        if isinstance(index, slice):
            part = self._check_range(index)
            return _make_storage_part(self._tensor[part])
        return int(self._tensor[self._check_index(index)])

    def __setitem__(self, index, value) -> None:
        self._refuse_meta()
        where = self._check_range(index) if isinstance(index, slice) else self._check_index(index)
        if not isinstance(value, int):
            raise TypeError(f"can't assign a {type(value).__name__} to a torch.UntypedStorage")
        self._tensor[where] = value & 255

    def __iter__(self):
        return iter(self.tolist())

    def fill_(self, value: int) -> UntypedStorage:
        """Write a number into every byte."""
        if self.device.type != "meta":
            self[:] = value
        return self

    def copy_(self, source, non_blocking: bool | None = None) -> UntypedStorage:
        """Write the bytes of another storage of the same length."""
        source = getattr(source, "_untyped_storage", source)
        if source.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            )
        if self.device.type != "meta":
            self._tensor.copy_(source._tensor, bool(non_blocking))
        return self

    def clone(self) -> UntypedStorage:
        """A copy."""
        return storage_of(self._tensor.clone())

    def new(self) -> UntypedStorage:
        """A storage without bytes on the same device."""
        return type(self)(device=self.device)

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo) -> UntypedStorage:
        known = memo.setdefault("torch", {})
        if self._cdata not in known:
            known[self._cdata] = (self, self.clone())  # itself too, so that its number stays its own
        return known[self._cdata][1]

    def __reduce__(self):
        return rebuild_storage, (self.numpy().copy(), str(self.device))

    def to(self, *, device, non_blocking: bool = False) -> UntypedStorage:
        """The storage on a device: itself when it is there."""
        moved = self._tensor.to(device, non_blocking=non_blocking)
        return self if moved is self._tensor else storage_of(moved)

    def cpu(self) -> UntypedStorage:
        """The storage on the CPU."""
        return self.to(device="cpu")

    def cuda(self, device=None, non_blocking: bool = False) -> UntypedStorage:
        """The storage on a CUDA device."""
        if device is None or isinstance(device, int):
            device = device_type("cuda", device or 0) if device is not None else "cuda"
        return self.to(device=device, non_blocking=non_blocking)

    def byteswap(self, dtype) -> None:
        """Reverse the bytes of every element of a dtype (of each part of complex ones)."""
        size = dtype.itemsize // (2 if dtype.category == dtypes.COMPLEX else 1)
        if size > 1:
            rows = self._tensor[: self.nbytes() - self.nbytes() % size].view(-1, size)
            rows.copy_(rows.flip(1))

    # -- memory that other processes see --

    def is_shared(self) -> bool:
        """True if the memory is a mapping shared with other processes; always True on a device."""
        return self.is_cuda or getattr(mapping_of(self._tensor._tl_array), "shared", False)

    def share_memory_(self) -> UntypedStorage:
        """Move the bytes to shared memory, which forked processes see; the tensors on it go along."""
        if self.device.type == "meta":
            raise RuntimeError("_share_fd_: only available on CPU")
        if not self.is_shared() and self._on_cpu:
            _adopt_memory(self, map_shared(self.nbytes(), self._tensor._tl_array))
        return self

    @classmethod
    def _new_shared(cls, size: int, *, device="cpu") -> UntypedStorage:
        return _make_storage_part(_wrap_bytes(map_shared(size)))

    def _share_fd_cpu_(self) -> tuple[int, int]:
        """A descriptor of the shared memory, and its length, for another process to map."""
        self._require_cpu("_share_fd_")
        if not isinstance(mapping_of(self._tensor._tl_array), Mapping) or not self.is_shared():
            self.share_memory_()
        import os

        mapping = mapping_of(self._tensor._tl_array)
        return os.dup(mapping.descriptor) if mapping.filename is None else os.open(
            mapping.filename, os.O_RDWR
        ), self.nbytes()

    @classmethod
    def _new_shared_fd_cpu(cls, descriptor: int, size: int) -> UntypedStorage:
        """The storage on the shared memory behind a descriptor, which becomes the storage's own."""
        return _make_storage_part(_wrap_bytes(map_descriptor(descriptor, size)))

    def _require_cpu(self, name: str) -> None:
        if not self._on_cpu:
            raise RuntimeError(f"{name}: only available on CPU")

    def is_pinned(self, device="cuda") -> bool:
        """True if the memory is page-locked. `device` has no effect: CUDA alone pins memory."""
        return self._tensor.is_pinned()

    def pin_memory(self, device="cuda") -> UntypedStorage:
        """A copy in page-locked memory. `device` has no effect: CUDA alone pins memory."""
        if not self._on_cpu:
            raise TypeError("cannot pin 'torch.storage.UntypedStorage' only CPU memory can be pinned")
        pinned = self._tensor.pin_memory()
        return self if pinned is self._tensor else storage_of(pinned)

    @staticmethod
    def from_buffer(buffer, byte_order: str = "native", count: int = -1, offset: int = 0, *, dtype=dtypes.uint8):
        """A storage with a copy of the bytes of an object with the buffer protocol."""
        return _make_storage_part(_wrap_bytes(bytes_from_buffer(buffer, byte_order, count, offset, dtype)))

    @staticmethod
    def from_file(filename, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """A storage over a file's bytes. With `shared`, writes go to the file, which is created or extended if
        necessary.
        """
        return _make_storage_part(_wrap_bytes(map_file(filename, shared, nbytes)))

    def __repr__(self) -> str:
        items = "..." if self.device.type == "meta" else " " + "\n ".join(map(str, self.tolist()))
        return f"{items}\n[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


def _number_to_bytes(items: Any) -> np.ndarray:
    from collections.abc import Sequence

    if not isinstance(items, (Sequence, np.ndarray, UntypedStorage)):
        raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {type(items).__name__}")
    for item in items:
        if not isinstance(item, (int, np.integer)):
            raise RuntimeError(
                "torch.UntypedStorage(): tried to construct a storage from a sequence "
                f"({type(items).__name__}), but one of the items was of type {type(item).__name__} instead of int"
            )
    return np.array([int(item) & 255 for item in items], np.uint8)


def _wrap_bytes(memory: np.ndarray):
    table = table_of(device_type("cpu"))
    return call.wrap_array(table, table.backend.from_foreign_array(memory), dtypes.uint8)


def _make_storage_part(tensor: Any) -> UntypedStorage:
    """A separate storage over some bytes of another, which shares the memory and cannot grow."""
    if tensor._tl_kernels.device.type == "cpu":
        tensor = call.wrap_array(
            tensor._tl_kernels, tensor._tl_kernels.backend.from_foreign_array(tensor._tl_array), dtypes.uint8
        )
        return storage_of(tensor)
    out = object.__new__(UntypedStorage)
    out._tensor, out._fixed = tensor, True  # no handle on the owner, which is another storage
    return out


# -- bytes of other objects -------------------------------------------------------------------------


def bytes_from_buffer(buffer, byte_order: str, count: int, offset: int, d: dtypes.dtype) -> np.ndarray:
    """A copy of `count` elements (-1: all) of a buffer from the byte `offset` on, in this machine's byte order."""
    if byte_order not in ("native", "little", "big"):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    given, size = np.frombuffer(buffer, np.uint8), d.itemsize
    if offset < 0 or offset > given.size:
        raise ValueError(
            f"offset must be non-negative and no greater than buffer length ({given.size}) , but got {offset}"
        )
    left = given.size - offset
    if count < 0:
        if left % size:
            raise ValueError(
                f"buffer length ({given.size}) must be a multiple of element size ({size})"
                if not offset
                else f"buffer size ({left}) after offset must be a multiple of element size ({size})"
            )
        count = left // size
    if count * size > left:
        raise ValueError(
            f"buffer has only {left // size} elements after offset {offset}, but specified a size of {count}"
        )
    out = given[offset : offset + count * size].copy()
    part = size // 2 if d.category == dtypes.COMPLEX else size
    if byte_order not in ("native", sys.byteorder) and part > 1:
        out = out.reshape(-1, part)[:, ::-1].reshape(-1).copy()
    return (out != 0).astype(np.uint8) if d is dtypes.bool_ else out


# -- memory that other processes or files share -------------------------------------------------


def _adopt_memory(storage: UntypedStorage, memory: np.ndarray) -> None:
    """Move a CPU storage to a copy of its bytes in other memory; its tensors go along."""
    old, state = storage._tensor, _Shrunk(storage.nbytes())
    owner = owner_of(old._tl_array)
    moved = _wrap_bytes(memory)
    tensors = _tensors_of(storage, owner)
    _handles.pop(id(owner), None)
    for tensor in tensors:
        if tensor is not old:
            _move_into(tensor, owner, None, moved._tl_array, state)
    storage._adopt_tensor(moved)
    storage._fixed = True


def storage_owning(memory: np.ndarray) -> UntypedStorage:
    """The storage whose memory an array of bytes owns."""
    return _make_storage_part(_wrap_bytes(memory))


def share_memory(tensor: PropertyMethods) -> PropertyMethods:
    """Move a CPU tensor's storage to shared memory, which forked processes see."""
    if tensor.device.type == "cpu" and not is_shared(tensor) and not _share_alone(tensor):
        storage_of(tensor).share_memory_()
    return tensor


def _share_alone(tensor: PropertyMethods) -> bool:
    """Move the only tensor of a storage to shared memory, without a handle; False where others may be on it."""
    table, data = tensor._tl_kernels, tensor._tl_array
    if data.__class__ is not np.ndarray or data.base is not None or not data.size:
        return False
    with _storage_lock:
        if id(data) in _handles or id(data) in _shrunk or not _is_only_tensor(tensor, data):
            return False
        memory = map_shared(data.nbytes, table.backend.memory(data))
        tensor._tl_array = np.ndarray(data.shape, data.dtype, memory, 0, data.strides)
    return True


def is_shared(tensor: PropertyMethods) -> bool:
    """True if the memory is shared with other processes."""
    return tensor.is_cuda or getattr(mapping_of(tensor._tl_array), "shared", False)


# -- pickling --------------------------------------------------------------------------------------


def rebuild_storage(array: np.ndarray, where: str) -> UntypedStorage:
    """A storage out of a pickle."""
    storage = _make_storage_part(_wrap_bytes(array))
    storage._fixed = False
    return storage.to(device=where)


UntypedStorage.__module__ = _StorageBase.__module__ = f"{package_name()}.storage"
StorageBase = _StorageBase  # its name in `torch`
