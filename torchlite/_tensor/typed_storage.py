"""TypedStorage: a storage with a dtype, and torch.FloatStorage and similar classes. Deprecated as in PyTorch, with one
warning. This module also adds the methods of UntypedStorage that need it, so users import both from here.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._dispatch import call
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.parsed_functions import parsed
from .._types import dtypes
from .._types.devices import device as device_type
from .._types.layouts import strided
from .._types.package_name import package_name
from .storage import UntypedStorage, make_tensor_on_storage, storage_of

_warned = False
_always_warn = False


def _warn_deprecated(stacklevel: int = 2) -> None:
    global _warned
    if _warned and not _always_warn:
        return
    _warned = True
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
        "class. This should only matter to you if you are using storages directly.  To access UntypedStorage "
        "directly, use tensor.untyped_storage() instead of tensor.storage()",
        UserWarning,
        stacklevel=stacklevel + 1,
    )


def _reset_warn_typed_storage_removal() -> None:
    global _warned
    _warned = False


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    global _always_warn
    _always_warn = always_warn


def _get_always_warn_typed_storage_removal() -> bool:
    return _always_warn


_NAMES = {
    dtypes.BY_NAME[name]: f"{dtypes.BY_NAME[name].scalar_name}Storage"
    for name in (
        "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool", "bfloat16", "complex128",
        "complex64",
    )
}  # fmt: skip


def _dtype_to_storage_type_map() -> dict:
    return dict(_NAMES)


def _storage_type_to_dtype_map() -> dict:
    return {name: d for d, name in _NAMES.items()}


def typed_storage_over(storage: UntypedStorage, d: dtypes.dtype) -> TypedStorage:
    """The elements of a dtype in a storage."""
    out = object.__new__(TypedStorage)
    out.dtype, out._untyped_storage = d, storage
    return out


def typed_storage_of(tensor: Any) -> TypedStorage:
    """Return a tensor's storage as a TypedStorage of the tensor's dtype."""
    return typed_storage_over(storage_of(tensor), tensor.dtype)


_SIGNATURES = """
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)"""
_LEGACY_SIGNATURES = """
 * no arguments
 * (int size)
 * (Sequence data)
 * (*, UntypedStorage wrap_storage)"""


def _new_memory(args: tuple, d: dtypes.dtype, where: Any, words: str) -> UntypedStorage:
    """The storage for a size, for a sequence's items, or without bytes."""
    if len(args) > 1:
        raise RuntimeError(f"{words}\n\nToo many positional arguments")
    if not args:
        return UntypedStorage(device=where)
    if isinstance(args[0], (int, np.integer)) and not isinstance(args[0], bool):
        return UntypedStorage(int(args[0]) * d.itemsize, device=where)
    from collections.abc import Sequence

    if isinstance(args[0], str):
        raise TypeError(f"new(): invalid data type '{type(args[0]).__name__}'")
    if not isinstance(args[0], (Sequence, np.ndarray)):
        raise TypeError(f"{words}\n\nArgument type not recognized: {type(args[0])}")
    return storage_of(CALLBACKS.as_tensor(args[0], dtype=d).clone().contiguous().to(where))


def _rebuild(storage: UntypedStorage, dtype_name: str) -> TypedStorage:
    """A storage out of a pickle."""
    return typed_storage_over(storage, dtypes.BY_NAME[dtype_name])


class TypedStorage:
    """The elements of a dtype in a storage.

    `TypedStorage(size)`, `TypedStorage(sequence)`, or `TypedStorage(wrap_storage=untyped)` on the memory of another,
    with `dtype` and `device`. Deprecated: `Tensor.untyped_storage` has the bytes.
    """

    dtype: dtypes.dtype
    _untyped_storage: UntypedStorage
    is_sparse = False

    def __init__(self, *args, device=None, dtype=None, wrap_storage=None, _internal=False):
        if not _internal:
            _warn_deprecated()
        words = (
            f"{type(self).__name__}.__init__ received an invalid combination of arguments. Expected one "
            f"of:{_SIGNATURES}"
        )
        if wrap_storage is not None:
            if args:
                raise RuntimeError(f"{words}\n\nNo positional arguments should be given when using 'wrap_storage'")
            if dtype is None:
                raise RuntimeError(f"{words}\n\nArgument 'dtype' must be specified")
            if not isinstance(dtype, dtypes.dtype):
                raise TypeError(f"{words}\n\nArgument 'dtype' must be torch.dtype, not {type(dtype)}")
            if device is not None:
                raise RuntimeError(f"{words}\n\nArgument 'device' should not be specified when 'wrap_storage' is given")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"{words}\n\nArgument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}"
                )
            self.dtype, self._untyped_storage = dtype, wrap_storage
            return
        self.dtype = dtypes.get_default_dtype() if dtype is None else dtype
        where = call._resolve_device("cpu" if device is None else device)
        if where.type not in ("cpu", "cuda", "meta", "opencl"):
            raise RuntimeError(f"{words}\n\nStorage device not recognized: {where.type}")
        self._untyped_storage = _new_memory(args, self.dtype, where, words)

    @property
    def _tensor(self) -> Any:
        """The elements as a flat tensor on the storage."""
        count = self._size()
        return make_tensor_on_storage(self._untyped_storage, self.dtype, (count,), (1,), 0)

    # -- without a warning, for PyTorch's own use --

    @property
    def _dtype(self) -> dtypes.dtype:
        return self.dtype

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def _size(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def _nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def _element_size(self) -> int:
        return self.dtype.itemsize

    def _data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    def _is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    def _share_memory_(self) -> TypedStorage:
        self._untyped_storage.share_memory_()
        return self

    def _resize_(self, size: int) -> None:
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def _pickle_storage_type(self) -> str:
        if self.dtype not in _NAMES:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return _NAMES[self.dtype]

    def _maybe_wrap_index(self, index: Any, stop: bool = False) -> int:
        n = self._size()
        if index is None:
            return n if stop else 0
        if not hasattr(index, "__index__"):
            raise TypeError(f"can't index a {type(self)} with {type(index)}")
        at = index.__index__()
        if stop and at >= n:
            return n
        if not -n <= at < n:
            raise IndexError(f"index {at} out of range for storage of size {n}")
        return at % n

    def _getitem(self, index: Any) -> Any:
        self._untyped_storage._refuse_meta()
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        return self._tensor[self._maybe_wrap_index(index)].item()

    def _setitem(self, index: Any, value: Any) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if isinstance(value, (TypedStorage, UntypedStorage)):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        if isinstance(index, slice):
            index = slice(self._maybe_wrap_index(index.start), self._maybe_wrap_index(index.stop, True), index.step)
        else:
            index = self._maybe_wrap_index(index)
        self._tensor[index] = value

    def _deepcopy(self, memo: dict) -> TypedStorage:
        import copy

        return typed_storage_over(copy.deepcopy(self._untyped_storage, memo), self.dtype)

    def _to(self, d: dtypes.dtype) -> TypedStorage:
        moved = self._tensor.to(d)
        return typed_storage_of(
            moved.clone() if moved._tl_array is self._tensor._tl_array or d is self.dtype else moved
        )

    @classmethod
    def _new_shared(cls, size: int, *, dtype=None, device="cpu") -> TypedStorage:
        d = getattr(cls, "dtype", None) or dtype or dtypes.get_default_dtype()
        return typed_storage_over(UntypedStorage._new_shared(size * d.itemsize, device=device), d)

    # -- PyTorch's public methods --

    def __new__(cls, *args, **kwargs):
        return object.__new__(cls)

    @property
    def device(self):
        _warn_deprecated()
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        _warn_deprecated()
        return self._untyped_storage.is_cuda

    @property
    def filename(self) -> str | None:
        """The file that a mapping shares its memory with."""
        _warn_deprecated()
        return self._untyped_storage.filename

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        _warn_deprecated()
        return self._untyped_storage

    def __len__(self) -> int:
        _warn_deprecated()
        return self._size()

    def size(self) -> int:
        """The number of elements."""
        _warn_deprecated()
        return self._size()

    def nbytes(self) -> int:
        """The length in bytes."""
        _warn_deprecated()
        return self._nbytes()

    def element_size(self) -> int:
        """Bytes of an element."""
        _warn_deprecated()
        return self._element_size()

    def __sizeof__(self) -> int:
        _warn_deprecated()
        return object.__sizeof__(self) + self._nbytes()

    def data_ptr(self) -> int:
        """The address of the first element."""
        _warn_deprecated()
        return self._data_ptr()

    def get_device(self) -> int:
        """The index of the device; -1 on the CPU."""
        _warn_deprecated()
        return self._untyped_storage.get_device()

    def resizable(self) -> bool:
        """True if the storage can be resized."""
        _warn_deprecated()
        return self._untyped_storage.resizable()

    def resize_(self, size: int) -> None:
        """Resize the storage to a number of elements."""
        _warn_deprecated()
        self._resize_(size)

    def is_shared(self) -> bool:
        """True if the memory is shared with other processes."""
        _warn_deprecated()
        return self._is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move the elements to shared memory."""
        _warn_deprecated()
        return self._share_memory_()

    def is_pinned(self, device=None) -> bool:
        """True if the memory is page-locked."""
        _warn_deprecated()
        return self._untyped_storage.is_pinned(device)

    def pin_memory(self, device=None) -> TypedStorage:
        """A copy in page-locked memory."""
        _warn_deprecated()
        return typed_storage_over(self._untyped_storage.pin_memory(device), self.dtype)

    def _share_fd_cpu_(self, *args, **kwargs):
        return (*self._untyped_storage._share_fd_cpu_(*args, **kwargs)[:1], self._size())

    def _share_filename_cpu_(self, *args, **kwargs):
        self._untyped_storage._require_cpu("_share_filename_")
        raise NotImplementedError("storages are shared by descriptors here (_share_fd_cpu_), not by file names")

    def _write_file(self, file, is_real_file: bool, save_size: bool, element_size: int) -> None:
        """Write the length (if requested) and the bytes."""
        if self._untyped_storage.device.type == "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        if save_size:
            file.write((self._nbytes() // element_size).to_bytes(8, "little"))
        file.write(self._untyped_storage.numpy().tobytes())

    def pickle_storage_type(self) -> str:
        """The name of its class in checkpoints: "FloatStorage"."""
        _warn_deprecated()
        return self._pickle_storage_type()

    def type(self, dtype=None, non_blocking: bool = False):
        """The name of its kind, "torch.FloatStorage", or itself as that kind. `non_blocking` has no effect: the cast
        runs on the host.
        """
        _warn_deprecated()
        if dtype is None:
            where = self._untyped_storage.device.type
            return f"torch.{'' if where == 'cpu' else where + '.'}{self._pickle_storage_type()}"
        name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "")
        d = _storage_type_to_dtype_map().get(name.rpartition(".")[2])
        if d is None:
            raise ValueError(f"invalid type: '{dtype}'")
        return self._to(d)

    def tolist(self) -> list:
        """The elements as Python numbers."""
        _warn_deprecated()
        self._untyped_storage._refuse_meta()
        return self._tensor.tolist()

    def __iter__(self):
        _warn_deprecated()
        return iter(self.tolist())

    def __getitem__(self, index):
        _warn_deprecated()
        return self._getitem(index)

    def __setitem__(self, index, value) -> None:
        _warn_deprecated()
        self._setitem(index, value)

    def fill_(self, value) -> TypedStorage:
        """Write a number into every element."""
        _warn_deprecated()
        self._setitem(slice(0, self._size()), value)
        return self

    def copy_(self, source, non_blocking: bool | None = None) -> TypedStorage:
        """Write the bytes of another storage of the same length."""
        _warn_deprecated()
        if source.device.type == "meta" and self._untyped_storage.device.type != "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        self._untyped_storage.copy_(source, non_blocking)
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        _warn_deprecated()
        return typed_storage_over(self._untyped_storage.clone(), self.dtype)

    def cpu(self) -> TypedStorage:
        """The storage on the CPU."""
        _warn_deprecated()
        return typed_storage_over(self._untyped_storage.cpu(), self.dtype)

    def cuda(self, device=None, non_blocking: bool = False) -> TypedStorage:
        """The storage on a CUDA device."""
        _warn_deprecated()
        return typed_storage_over(self._untyped_storage.cuda(device, non_blocking), self.dtype)

    def to(self, *, device, non_blocking: bool = False) -> TypedStorage:
        """The storage on a device."""
        _warn_deprecated()
        return typed_storage_over(self._untyped_storage.to(device=device, non_blocking=non_blocking), self.dtype)

    def __copy__(self) -> TypedStorage:
        return typed_storage_over(self._untyped_storage.clone(), self.dtype)

    def __deepcopy__(self, memo) -> TypedStorage:
        return self._deepcopy(memo)

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __reduce__(self):
        return _rebuild, (self._untyped_storage, self.dtype.name)

    @classmethod
    def from_buffer(cls, *args, **kwargs) -> TypedStorage:
        """A storage with a copy of a buffer's bytes: `from_buffer(buffer, byte_order)`."""
        _warn_deprecated()
        d = kwargs.pop("dtype", None) or getattr(cls, "dtype", None) or dtypes.get_default_dtype()
        if cls is not TypedStorage and len(args) < 2 and "byte_order" not in kwargs and d.itemsize > 1:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        return typed_storage_over(UntypedStorage.from_buffer(*args, dtype=d, **kwargs), d)

    @classmethod
    def from_file(cls, filename, shared: bool, size: int) -> TypedStorage:
        """A storage on a file's elements; with `shared` changes go to the file."""
        _warn_deprecated()
        if cls is TypedStorage:
            raise RuntimeError("from_file can only be called on derived classes")
        d = cls.dtype
        return typed_storage_over(UntypedStorage.from_file(filename, shared, size * d.itemsize), d)

    def __repr__(self) -> str:
        storage = self._untyped_storage
        meta = storage.device.type == "meta"
        items = "..." if meta else " " + "\n ".join(map(str, self._tensor.tolist()))
        return (
            f"{items}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={storage.device}) of size {self._size()}]"
        )


def _add_casts(name: str, d: dtypes.dtype) -> None:
    def cast(self: TypedStorage) -> TypedStorage:
        _warn_deprecated()
        return self._to(d)

    def cast_bytes(self: UntypedStorage) -> TypedStorage:
        return typed_storage_over(self, dtypes.uint8)._to(d)

    cast.__name__ = cast_bytes.__name__ = name
    cast.__doc__ = f"The elements converted to {d}."
    cast_bytes.__doc__ = f"The bytes as numbers, converted to {d}."
    setattr(TypedStorage, name, cast)
    setattr(UntypedStorage, name, cast_bytes)


for _name, _d in (
    ("double", "float64"), ("float", "float32"), ("half", "float16"), ("long", "int64"), ("int", "int32"),
    ("short", "int16"), ("char", "int8"), ("byte", "uint8"), ("bool", "bool"), ("bfloat16", "bfloat16"),
    ("complex_double", "complex128"), ("complex_float", "complex64"),
):  # fmt: skip
    _add_casts(_name, dtypes.BY_NAME[_d])


def _storage_type_or_cast(self: UntypedStorage, dtype=None, non_blocking: bool = False):
    """The name of its kind, or itself as that kind. `non_blocking` has no effect: the cast runs on the host."""
    if dtype is None:
        return "torch.storage.UntypedStorage"
    return (
        self
        if dtype in (UntypedStorage, "torch.storage.UntypedStorage")
        else typed_storage_over(self, dtypes.uint8).type(dtype)
    )


UntypedStorage.type = _storage_type_or_cast  # type: ignore[attr-defined]


# -- torch.FloatStorage and its kind -------------------------------------------------------------


_CPU_ONLY = frozenset(("from_buffer", "_new_with_weak_ptr", "_new_shared_filename"))


class _LegacyStorageMeta(type):
    """`torch.FloatStorage(3)` creates a TypedStorage of float32; isinstance with one of these classes tests the
    dtype.
    """

    dtype: dtypes.dtype
    where: str

    def __call__(cls, *args, wrap_storage=None, **kwargs):
        if not hasattr(cls, "where"):
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        if not kwargs.pop("_internal", False):
            _warn_deprecated()
        words = f"{cls}.__new__ received an invalid combination of arguments. Expected one of:{_LEGACY_SIGNATURES}"
        for name in ("device", "dtype"):
            if name in kwargs:
                raise RuntimeError(f"{words}\n\nKeyword argument '{name}' cannot be specified")
        if kwargs:
            raise TypeError(f"{cls}.__new__() got an unexpected keyword argument '{next(iter(kwargs))}'")
        if wrap_storage is None:
            return typed_storage_over(_new_memory(args, cls.dtype, device_type(cls.where), words), cls.dtype)
        if args:
            raise RuntimeError(f"{words}\n\nNo positional arguments should be given when using 'wrap_storage'")
        if not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(f"{words}\n\nArgument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
        if wrap_storage.device.type != cls.where:
            raise RuntimeError(
                f"{words}\n\nDevice of 'wrap_storage' must be {cls.where}, but got {wrap_storage.device.type}"
            )
        return typed_storage_over(wrap_storage, cls.dtype)

    def __getattribute__(cls, name: str) -> Any:
        if name in _CPU_ONLY and type.__getattribute__(cls, "__dict__").get("where") == "cuda":
            raise RuntimeError(f"{cls.__name__}.{name}: Not available for CUDA storage")
        return type.__getattribute__(cls, name)

    def __instancecheck__(cls, instance: Any) -> bool:
        if not hasattr(cls, "where"):
            return type.__instancecheck__(cls, instance)
        return (
            type(instance) is TypedStorage
            and instance.dtype is cls.dtype
            and instance._untyped_storage.device.type == cls.where
        )

    @property
    def _dtype(cls) -> dtypes.dtype:
        return cls.dtype


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """Base class of torch.FloatStorage and similar classes."""


_LEGACY_DOC = """A storage of {} on a device of the type {}. Deprecated: use `torch.UntypedStorage`."""


def storage_class(d: dtypes.dtype, where: str = "cpu") -> Any:
    """torch.FloatStorage … of a dtype, on a device type. KeyError for a dtype without one."""
    key = d, where
    if key not in _classes:
        module = "torch" if where == "cpu" else f"torch.{where}"
        _classes[key] = _LegacyStorageMeta(
            _NAMES[d],
            (_LegacyStorage,),
            {"dtype": d, "where": where, "__module__": module, "__doc__": _LEGACY_DOC.format(d, where)},
        )
    return _classes[key]


def storage_named(name: str, where: str) -> Any:
    """The storage class of that name on a device type. AttributeError if there is none."""
    d = _storage_type_to_dtype_map().get(name)
    if d is None:
        raise AttributeError(f"module '{package_name()}.{where}' has no attribute '{name}'")
    return storage_class(d, where)


_classes: dict[tuple, Any] = {}
for _d, _name in _NAMES.items():  # type: ignore[assignment]
    globals()[_name] = storage_class(_d)  # type: ignore[arg-type]


_storage_classes = {UntypedStorage, TypedStorage, *_classes.values()}

# -- tensors of storages -----------------------------------------------------------------------------


def checked_bytes(storage: Any, d: dtypes.dtype) -> UntypedStorage:
    """The bytes of a storage, checked for a tensor of the given dtype."""
    if isinstance(storage, UntypedStorage):
        return storage
    if storage.dtype is not d:
        raise RuntimeError(
            f"Expected a Storage of type {d.scalar_name} or an UntypedStorage, but got type "
            f"{storage.dtype.scalar_name} for argument 1 'storage'"
        )
    return storage._untyped_storage


def is_storage(value: Any) -> bool:
    return isinstance(value, (UntypedStorage, TypedStorage))


@parsed("from_file")
def from_file(
    filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
) -> Any:
    """A flat tensor over a file's first `size` elements. With `shared`, writes go to the file, which is created or
    extended if necessary. RuntimeError if the file is missing or too short.
    """
    if layout not in (None, strided):
        raise NotImplementedError(f"from_file(): a tensor over a file is strided, not {layout}")
    if pin_memory:
        raise RuntimeError("tensors constructed from a file cannot be pinned")
    d = dtype or dtypes.get_default_dtype()
    out = flat_tensor_of(UntypedStorage.from_file(filename, bool(shared), size * d.itemsize), d)
    out = out if device is None else out.to(device)
    return out.requires_grad_(requires_grad)


def flat_tensor_of(storage: Any, d: dtypes.dtype) -> Any:
    """A flat tensor of a dtype on all of a storage."""
    storage = checked_bytes(storage, d)
    return make_tensor_on_storage(storage, d, (storage.nbytes() // d.itemsize,), (1,), 0)


TypedStorage.__module__ = _LegacyStorage.__module__ = f"{package_name()}.storage"
