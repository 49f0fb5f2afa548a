"""Writing of objects for `save`: the pickle, in which a tensor is a function call on a storage, and the storages."""

from __future__ import annotations

import copyreg
import io
import pickle
import struct
import sys
import types
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from .._dispatch import call, table_of
from .._dispatch.callbacks import CALLBACKS
from .._settings.adopted_classes import definition_of
from .._tensor import Parameter, Tensor
from .._tensor.pickling import reduces_by, state_of, warn_hooks_not_pickled
from .._tensor.storage import UntypedStorage
from .._tensor.typed_storage import TypedStorage
from .._types import dtypes
from .._types.devices import device as device_type
from .._types.layouts import layout
from .._types.python_source import source_of
from . import save_load_options, tensor_rebuild
from .pytorch_names import TYPED_STORAGES, UNTYPED_STORAGE, StorageType, torch_name
from .script_objects import ScriptObjectInFile
from .zip_archive import NATIVE, ArchiveWriter

LEGACY_MAGIC, LEGACY_VERSION = 0x1950A86A20F9469CFC6C, 1001


class _Reference:
    """Placeholder of a storage inside the pickle, written as a persistent id."""

    def __init__(self, key: str, kind: StorageType, location: str, numel: int):
        self.id = ("storage", kind, key, location, numel)


class StorageCollector:
    """The storages encountered while pickling, each once. `tag` returns the device name of a tensor or storage."""

    def __init__(self, tag: Callable[[Any], str]):
        self._tag = tag
        self.arrays: list[np.ndarray] = []
        self._keys: dict[int, tuple[str, Any]] = {}
        self._keep: list[Any] = []  # storages stay alive, so that their ids stay unique

    def of(self, storage: UntypedStorage, dtype, tagged: Any = None) -> _Reference:
        """Return the reference of a storage viewed as elements of a dtype, None for bytes."""
        key, known = self._keys.get(storage._cdata, (None, dtype))
        if known is not dtype and known is not None and dtype is not None and storage.nbytes():
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        if key is None:
            key = str(len(self.arrays))
            self._keep.append(storage)
            self.arrays.append(storage.numpy())
        self._keys[storage._cdata] = key, dtype or known
        kind = UNTYPED_STORAGE if dtype is None else TYPED_STORAGES.get(dtype, UNTYPED_STORAGE)
        size = dtype.itemsize if kind.dtype else 1
        return _Reference(key, kind, self._tag(storage if tagged is None else tagged), storage.nbytes() // size)

    def items(self) -> dict[str, int]:
        """The bytes of an element of each storage, by its name in the file."""
        return {key: dtype.itemsize if dtype in TYPED_STORAGES else 1 for key, dtype in self._keys.values()}

    def reference(self, tensor: Tensor, dtype: Any = None) -> tuple[_Reference, int, tuple[int, ...]]:
        """The reference, offset and strides of a tensor. `dtype` is that of a quantized tensor with these integers."""
        shown = tensor
        if min(tensor._tl_array.strides, default=0) < 0 or not hasattr(tensor._tl_kernels.backend, "memory"):
            shown = _copy_to_host(tensor)
        reference = self.of(shown.untyped_storage(), dtype or shown.dtype, tensor)
        return reference, shown.storage_offset(), tuple(shown.stride())


def _copy_to_host(tensor: Tensor) -> Tensor:
    """Return a copy of a tensor whose memory cannot be exposed directly."""
    return call.wrap_array(
        table_of(device_type("cpu")), np.ascontiguousarray(tensor._tl_kernels.to_numpy(tensor._tl_array)), tensor.dtype
    )


class _ModuleSources:
    """The classes of modules that a pickle of the old format names, each with its source when it is first met."""

    def __init__(self) -> None:
        self._met: set[type] = set()

    def __call__(self, obj: Any) -> tuple | None:
        if not isinstance(obj, type) or not issubclass(obj, CALLBACKS.module_class) or obj in self._met:
            return None
        self._met.add(obj)
        import inspect

        try:
            return "module", obj, inspect.getsourcefile(definition_of(obj)), source_of(obj)
        except (OSError, TypeError):
            warnings.warn(
                f"Couldn't retrieve source code for container of type {obj.__name__}. It won't be checked for "
                "correctness upon loading.",
                stacklevel=2,
            )
            return "module", obj, None, None


def _tensor_rebuild_args(tensor: Any, storages: StorageCollector):
    """Rebuild function and arguments of a tensor as plain Tensor."""
    size, requires_grad = tuple(tensor.shape), tensor.requires_grad
    hooks: OrderedDict = OrderedDict()
    if tensor._tl_is_sparse:
        return tensor_rebuild._rebuild_sparse_tensor, CALLBACKS.sparse("pickle_parts")(tensor)
    if tensor.is_quantized:
        values, quantizer = CALLBACKS.quantized("saved_parts")(tensor)
        reference, offset, stride = storages.reference(values, tensor.dtype)
        if tensor.dtype in dtypes.PACKED_LEVELS:
            stride = tuple(tensor.stride())
        return tensor_rebuild._rebuild_qtensor, (reference, offset, size, stride, quantizer, requires_grad, hooks)
    if tensor._tl_kernels.wraps:
        place = (tensor.dtype, size, tuple(tensor.stride()), tensor.storage_offset())
        return tensor_rebuild._rebuild_wrapper_subclass, (
            type(tensor),
            *place,
            tensor.layout,
            tensor.device,
            requires_grad,
        )
    if tensor.device.type == "meta":
        return tensor_rebuild._rebuild_meta_tensor_no_storage, (
            tensor.dtype,
            size,
            tuple(tensor.stride()),
            requires_grad,
        )
    if tensor._tl_signs and not hasattr(tensor._tl_kernels.backend, "memory"):
        tensor = tensor.clone()
    reference, offset, stride = storages.reference(tensor)
    bits = {name: True for name, bit in (("conj", tensor.is_conj()), ("neg", tensor.is_neg())) if bit}
    metadata = (bits,) if bits else ()
    if tensor.dtype in TYPED_STORAGES:
        return tensor_rebuild._rebuild_tensor_v2, (reference, offset, size, stride, requires_grad, hooks, *metadata)
    return tensor_rebuild._rebuild_tensor_v3, (
        reference,
        offset,
        size,
        stride,
        requires_grad,
        hooks,
        tensor.dtype,
        *metadata,
    )


def _reduce_tensor(tensor: Tensor, storages: StorageCollector):
    warn_hooks_not_pickled(tensor)
    state = state_of(tensor)
    if isinstance(tensor, Parameter) and (type(tensor) is Parameter or tensor._tl_rules):
        plain = tensor.detach()
        if state:
            return tensor_rebuild._rebuild_parameter_with_state, (plain, tensor.requires_grad, OrderedDict(), state)
        return tensor_rebuild._rebuild_parameter, (plain, tensor.requires_grad, OrderedDict())
    function, args = _tensor_rebuild_args(tensor, storages)
    if (type(tensor) is Tensor or tensor._tl_signs or tensor._tl_rules) and not state:
        return function, args
    return tensor_rebuild._rebuild_from_type_v2, (function, type(tensor), args, state)


def _has_custom_reduce(cls: type) -> bool:
    """True if a subclass of Tensor overrides pickling."""
    return cls.__reduce_ex__ is not Tensor.__reduce_ex__ or cls.__reduce__ is not Tensor.__reduce__


def _with_storage_class(reference: tuple) -> tuple:
    """Return a storage's reference with torch's class in place of the placeholder, for picklers written in C."""
    kind = reference[1]
    return (reference[0], getattr(sys.modules["torch"], kind.name.rpartition(".")[2]), *reference[2:])


def make_pickler_class(module, storages: StorageCollector, legacy: bool = False):
    # Only the pickler written in Python can write a class under another library's name. Where `import torch` imports
    # torchlite, the name is already correct.
    base: Any = getattr(module, "_Pickler", None) or module.Pickler
    in_python = issubclass(base, pickle._Pickler)  # type: ignore[attr-defined]
    if not in_python and getattr(sys.modules.get("torch"), "Tensor", None) is not Tensor:
        raise ValueError(
            f"pickle_module {module.__name__} has a Pickler that does not derive from Python's pickle._Pickler: save "
            "with pickle_module=pickle, or let `import torch` mean torchlite (torchlite.as_torch)"
        )

    modules = _ModuleSources()

    class Own(base):
        def persistent_id(self, obj):
            if isinstance(obj, _Reference):
                found = obj.id if in_python else _with_storage_class(obj.id)
                return (*found, None) if legacy else found
            if isinstance(obj, TypedStorage):
                return self.persistent_id(storages.of(obj._untyped_storage, obj.dtype))
            if isinstance(obj, UntypedStorage):
                return self.persistent_id(storages.of(obj, None))
            return modules(obj) if legacy else None

        def reducer_override(self, obj):
            if isinstance(obj, Tensor):
                if not _has_custom_reduce(type(obj)):
                    return _reduce_tensor(obj, storages)
                with reduces_by(lambda tensor: _reduce_tensor(tensor, storages), obj):
                    return obj.__reduce_ex__(self.proto if in_python else pickle.DEFAULT_PROTOCOL)
            if isinstance(obj, layout):
                return tensor_rebuild._get_layout, (str(obj),)
            if isinstance(obj, device_type):
                return device_type, (obj.type,) if obj.index is None else (obj.type, obj.index)
            named = torch_name(obj)
            if named is not None and not isinstance(obj, type) and not callable(obj):
                return named[1]
            if isinstance(obj, StorageType):
                return obj.name
            further = getattr(super(), "reducer_override", None)
            return NotImplemented if further is None else further(obj)

    if not in_python:
        return Own

    class Pickler(Own):
        dispatch = dict(base.dispatch)

        def save_global(self, obj, name=None):
            found = torch_name(obj)
            if found is None:
                try:
                    return super().save_global(obj, name)
                except pickle.PicklingError:
                    pickle.dumps(obj)  # the error of the pickler in C, which differs for local objects
                    raise
            module_name, path = found
            self.write(pickle.GLOBAL + f"{module_name}\n{path}\n".encode())
            self.memoize(obj)
            return None

        def save_reduce(self, func, args, *rest, obj=None, **keywords):
            if not hasattr(type(obj), "_schema_type"):
                return super().save_reduce(func, args, *rest, obj=obj, **keywords)
            # An object of a class that the library defines. It has another class in files.
            super().save_reduce(copyreg.__newobj__, (ScriptObjectInFile,), obj.__getstate__())  # type: ignore[attr-defined]
            self.memoize(obj)
            return None

        dispatch[types.FunctionType] = save_global

    return Pickler


def pickle_object(obj: Any, module: Any, protocol: int, tag: Callable[[Any], str]) -> tuple[bytes, StorageCollector]:
    """An object's pickle, and the storages that it refers to."""
    storages, buffer = StorageCollector(tag), io.BytesIO()
    make_pickler_class(module, storages)(buffer, protocol=protocol).dump(obj)
    return buffer.getvalue(), storages


def write_archive(writer: ArchiveWriter, data: bytes, storages: StorageCollector, byteorder: bool) -> None:
    """Write the records of a checkpoint, except those that end an archive."""
    writer.record("data.pkl", data)
    writer.record(".format_version", b"1")
    writer.record(".storage_alignment", str(save_load_options.save.storage_alignment).encode())
    if byteorder:
        writer.record("byteorder", NATIVE.encode())
    for number, array in enumerate(storages.arrays):
        if save_load_options.thread_options.skip_data:
            writer.hole(f"data/{number}", array.nbytes)
        else:
            writer.record(f"data/{number}", array)


def pickle_legacy(obj: Any, module: Any, protocol: int, tag: Callable[[Any], str]) -> tuple[bytes, StorageCollector]:
    """Write all pickles of the legacy format (before PyTorch 1.6): a magic number, the version, the system, the object,
    and the keys of the storages in the order in which they follow.
    """
    storages, buffer = StorageCollector(tag), io.BytesIO()
    system = {
        "protocol_version": LEGACY_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": struct.calcsize("=h"), "int": struct.calcsize("=i"), "long": struct.calcsize("=l")},
    }
    for value in (LEGACY_MAGIC, LEGACY_VERSION, system):
        pickle.dump(value, buffer, protocol=protocol)
    make_pickler_class(module, storages, legacy=True)(buffer, protocol=protocol).dump(obj)
    pickle.dump(sorted(map(str, range(len(storages.arrays)))), buffer, protocol=protocol)
    return buffer.getvalue(), storages


def write_legacy(stream: Any, data: bytes, storages: StorageCollector) -> None:
    """The pickles, then the number of elements and the bytes of each storage. Bytes are in little-endian order."""
    stream.write(data)
    items = storages.items()
    for key in sorted(items):
        array, item = storages.arrays[int(key)], items[key]
        stream.write(struct.pack("<q", array.nbytes // item))
        stream.write(array)
