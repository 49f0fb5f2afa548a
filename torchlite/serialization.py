"""torch.save and torch.load in PyTorch's own zip format: files written here load in PyTorch, and
PyTorch's load here.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import pickletools
import struct
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _utils
from ._dispatch import call, table_of
from ._serialization import restricted
from ._serialization.archive import ALIGNMENT, NATIVE, Reader, Writer, byteswap, replacing
from ._serialization.names import TYPED_STORAGES, UNTYPED_STORAGE, StorageType, lookup, torch_name
from ._tensor import Parameter, Tensor
from ._tensor.storage import UntypedStorage, storage_of
from ._tensor.typed_storage import TypedStorage, over, typed_storage_of
from ._types.devices import device as device_type
from ._types.layouts import layout

__all__ = [
    "add_safe_globals", "clear_safe_globals", "default_restore_location", "get_crc32_options", "get_safe_globals",
    "get_unsafe_globals_in_checkpoint", "load", "location_tag", "register_package", "safe_globals", "save",
    "set_crc32_options",
]  # fmt: skip

DEFAULT_PROTOCOL = 2
_checksums = True
_packages: list[tuple[int, Callable, Callable]] = []


def set_crc32_options(compute_crc32: bool) -> None:
    """Whether `save` computes the checksums of records (zip tools want them; `load` verifies the
    ones that are there).
    """
    global _checksums
    _checksums = bool(compute_crc32)


def get_crc32_options() -> bool:
    """Whether `save` computes the checksums of records."""
    return _checksums


# -- what weights_only=True may load ------------------------------------------------------


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let `load(weights_only=True)` use these classes and functions as well. An item is a class or function, or a pair
    (object, "full.name").
    """
    restricted.user_globals().extend(item for item in safe_globals if item not in restricted.user_globals())


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` added."""
    return list(restricted.user_globals())


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` added."""
    restricted.user_globals().clear()


class safe_globals:
    """`with safe_globals([...]):` is `add_safe_globals` for the time of the block."""

    def __init__(self, safe_globals: list[Any]):
        self._items = safe_globals

    def __enter__(self):
        self._before = get_safe_globals()
        add_safe_globals(self._items)

    def __exit__(self, *exc):
        restricted.user_globals()[:] = self._before


def get_unsafe_globals_in_checkpoint(f) -> list[str]:
    """The names in a checkpoint that `load(weights_only=True)` would refuse. Nothing of the file is run."""
    with _opened(f) as stream:
        names = _names_in(Reader(stream).bytes("data.pkl"))
    return sorted(f"{module}.{name}" for module, name in names if not restricted.is_allowed(module, name))


def _names_in(data: bytes) -> set[tuple[str, str]]:
    out: set[tuple[str, str]] = set()
    strings: list[Any] = []
    memo: dict[Any, Any] = {}
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name == "GLOBAL":
            module, _, name = str(argument).partition(" ")
            out.add((module, name))
        elif opcode.name == "STACK_GLOBAL":
            out.add((strings[-2], strings[-1]))
        elif "UNICODE" in opcode.name:
            strings.append(argument)
        elif opcode.name == "MEMOIZE":
            memo[len(memo)] = strings[-1] if strings else None
        elif opcode.name in ("BINGET", "LONG_BINGET") and isinstance(memo.get(argument), str):
            strings.append(memo[argument])
    return out


# -- saving ----------------------------------------------------------------------------------


class _Reference:
    """Stands for a storage inside the pickle; it is written as a persistent id."""

    def __init__(self, key: str, kind: StorageType, location: str, numel: int):
        self.id = ("storage", kind, key, location, numel)


class _Storages:
    """The storages met while pickling, each once."""

    def __init__(self):
        self.arrays: list[np.ndarray] = []
        self._keys: dict[int, tuple[str, Any]] = {}
        self._keep: list[Any] = []  # storages stay alive, so that their numbers stay theirs

    def of(self, storage: UntypedStorage, dtype, tagged: Any = None) -> _Reference:
        """The reference of a storage seen as elements of a dtype, None for bytes."""
        key, known = self._keys.get(storage._cdata, (None, dtype))
        if known is not dtype and known is not None and dtype is not None:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        if key is None:
            key = str(len(self.arrays))
            self._keep.append(storage)
            self.arrays.append(storage.numpy())
        self._keys[storage._cdata] = key, dtype or known
        kind = UNTYPED_STORAGE if dtype is None else TYPED_STORAGES.get(dtype, UNTYPED_STORAGE)
        size = dtype.itemsize if kind.dtype else 1
        return _Reference(key, kind, location_tag(storage if tagged is None else tagged), storage.nbytes() // size)

    def reference(self, tensor: Tensor) -> tuple[_Reference, int, tuple[int, ...]]:
        """The reference, offset and strides of a tensor."""
        shown = tensor
        if min(tensor._data.strides, default=0) < 0 or not hasattr(tensor._table.backend, "memory"):
            shown = _on_host(tensor)
        reference = self.of(shown.untyped_storage(), shown.dtype, tensor)
        return reference, shown.storage_offset(), tuple(shown.stride())


def _on_host(tensor: Tensor) -> Tensor:
    """A copy of a tensor whose memory cannot be shown as it is."""
    return call.wrap(
        table_of(device_type("cpu")), np.ascontiguousarray(tensor._table.to_numpy(tensor._data)), tensor.dtype
    )


def location_tag(storage) -> str:
    """The name of the device in a checkpoint: "cpu", "cuda:0" …"""
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag:
            return tag
    where = storage.device
    return "cpu" if where.type == "cpu" else "meta" if where.type == "meta" else f"{where.type}:{where.index or 0}"


def _tensor_args(tensor: Tensor, storages: _Storages):
    """Rebuild function and arguments of a tensor as plain Tensor."""
    size, requires_grad = tuple(tensor.shape), tensor.requires_grad
    hooks: OrderedDict = OrderedDict()
    if tensor.device.type == "meta":
        return _utils._rebuild_meta_tensor_no_storage, (tensor.dtype, size, tuple(tensor.stride()), requires_grad)
    reference, offset, stride = storages.reference(tensor)
    if tensor.dtype in TYPED_STORAGES:
        return _utils._rebuild_tensor_v2, (reference, offset, size, stride, requires_grad, hooks)
    return _utils._rebuild_tensor_v3, (reference, offset, size, stride, requires_grad, hooks, tensor.dtype)


def _reduce_tensor(tensor: Tensor, storages: _Storages):
    state = dict(tensor.__dict__)
    if isinstance(tensor, Parameter) and type(tensor) is Parameter:
        plain = tensor.detach()
        if state:
            return _utils._rebuild_parameter_with_state, (plain, tensor.requires_grad, OrderedDict(), state)
        return _utils._rebuild_parameter, (plain, tensor.requires_grad, OrderedDict())
    function, args = _tensor_args(tensor, storages)
    if type(tensor) is Tensor and not state:
        return function, args
    return _utils._rebuild_from_type_v2, (function, type(tensor), args, state)


def _pickler_class(module, storages: _Storages):
    # Only the pickler written in Python lets a class be written under another library's name.
    base: Any = getattr(module, "_Pickler", None) or module.Pickler
    if not issubclass(base, pickle._Pickler):  # type: ignore[attr-defined]
        raise ValueError(
            f"pickle_module {module.__name__} has a Pickler that does not derive from Python's pickle._Pickler: save "
            "with pickle_module=pickle"
        )

    class Pickler(base):
        dispatch = dict(base.dispatch)

        def persistent_id(self, obj):
            if isinstance(obj, _Reference):
                return obj.id
            if isinstance(obj, TypedStorage):
                return storages.of(obj._untyped_storage, obj.dtype).id
            if isinstance(obj, UntypedStorage):
                return storages.of(obj, None).id
            return None

        def reducer_override(self, obj):
            if isinstance(obj, Tensor):
                return _reduce_tensor(obj, storages)
            if isinstance(obj, layout):
                return _utils._get_layout, (str(obj),)
            if isinstance(obj, device_type):
                return device_type, (obj.type,) if obj.index is None else (obj.type, obj.index)
            named = torch_name(obj)
            if named is not None and not isinstance(obj, type) and not callable(obj):
                return named[1]
            if isinstance(obj, StorageType):
                return obj.name
            return NotImplemented

        def save_global(self, obj, name=None):
            found = torch_name(obj)
            if found is None:
                return super().save_global(obj, name)
            module_name, path = found
            self.write(pickle.GLOBAL + f"{module_name}\n{path}\n".encode())
            self.memoize(obj)
            return None

        dispatch[types.FunctionType] = save_global

    return Pickler


def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object with its tensors to a file that torchlite and PyTorch can load.

    obj: anything that pickles; tensors that share memory are stored once and share it again after loading. f: a path,
    or a binary file open for writing. A path is replaced only when all is written, so a failure leaves the old file.
    RuntimeError when the folder does not exist; pickle's errors for objects that do not pickle.

    >>> import torchlite as torch, io
    >>> file = io.BytesIO()
    >>> torch.save({"weight": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'weight': tensor([1., 1.])}
    """
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if not _use_new_zipfile_serialization:
        raise NotImplementedError(
            "the format from before PyTorch 1.6 can be loaded but not written: leave out "
            "_use_new_zipfile_serialization=False"
        )
    if not 2 <= pickle_protocol < 4:
        raise ValueError(
            f"pickle_protocol must be 2 or 3 (PyTorch's loader knows no later one), but got {pickle_protocol}"
        )
    storages, buffer = _Storages(), io.BytesIO()
    pickler = _pickler_class(pickle_module, storages)(buffer, protocol=pickle_protocol)
    pickler.dump(obj)
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        path = path.decode() if isinstance(path, bytes) else path
        top = os.path.splitext(os.path.basename(path))[0] or "archive"
        with replacing(path) as stream:
            _write(stream, top, buffer, storages.arrays, not _disable_byteorder_record)
    else:
        _write(f, "archive", buffer, storages.arrays, not _disable_byteorder_record)


def _write(stream, top: str, pickled: io.BytesIO, arrays: list[np.ndarray], byteorder: bool) -> None:
    writer = Writer(stream, top, checksum=_checksums)
    writer.record("data.pkl", pickled.getvalue())
    writer.record(".format_version", b"1")
    writer.record(".storage_alignment", str(ALIGNMENT).encode())
    if byteorder:
        writer.record("byteorder", NATIVE.encode())
    for number, array in enumerate(arrays):
        writer.record(f"data/{number}", array)
    writer.finish()


# -- loading ---------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(f):
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as stream:
            yield stream
        return
    for name in ("read", "readline", "seek", "tell"):
        if not hasattr(f, name):
            raise AttributeError(
                f"{type(f).__name__!r} object has no attribute '{name}'. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )
    yield f


def register_package(priority: int, tagger: Callable, deserializer: Callable) -> None:
    """Teach `save` and `load` a device: `tagger(storage)` gives its name in the file or None, `deserializer(storage,
    name)` a storage there or None.

    Entries of lower priority are asked first.
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda entry: entry[0])


def default_restore_location(storage, location: str):
    """The storage moved to the device that a file names. RuntimeError when that device is not there."""
    for _, _, deserializer in _packages:
        out = deserializer(storage, location)
        if out is not None:
            return out
    if location == "cpu":
        return storage
    try:
        where = device_type(location)
    except RuntimeError:
        raise RuntimeError(
            f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {location})"
        ) from None
    try:
        table_of(where)
    except (RuntimeError, ImportError) as error:
        kind, module = where.type.upper(), where.type
        name = {"OPENCL": "an OpenCL"}.get(kind, f"a {kind}")
        raise RuntimeError(
            f"Attempting to deserialize object on {name} device but torch.{module}.is_available() is False. If you "
            "are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map "
            f"your storages to the CPU. ({error})"
        ) from None
    moved = storage._tensor.to(where)
    return typed_storage_of(moved) if isinstance(storage, TypedStorage) else storage_of(moved)


def _restorer(map_location) -> Callable:
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, str(map_location.get(location, location)))
    if isinstance(map_location, (str, device_type)):
        return lambda storage, location: default_restore_location(storage, str(map_location))

    def ask(storage, location):
        out = map_location(storage, location)
        return default_restore_location(storage, location) if out is None else out

    return ask


def _storage_of(array: np.ndarray, d) -> UntypedStorage | TypedStorage:
    """A storage on loaded bytes; `d` is None for untyped ones."""
    table = table_of(device_type("cpu"))
    from ._types import dtypes as _dtype

    untyped = storage_of(call.wrap(table, table.backend.adopt(array), _dtype.uint8))
    return untyped if d is None else over(untyped, d)


class _ArchiveStorages:
    """Loads the storages of a zip archive, each once."""

    def __init__(self, reader: Reader, map_location):
        self._reader, self._restore = reader, _restorer(map_location)
        order = reader.byteorder()
        self._swap = order is not None and order != NATIVE
        self._loaded: dict[str, Any] = {}

    def __call__(self, identity):
        try:
            _, kind, key, location, numel = (v.decode() if isinstance(v, bytes) else v for v in identity)
        except ValueError:
            raise pickle.UnpicklingError(f"a storage's id has five parts, but got {len(identity)}") from None
        if (
            not isinstance(kind, StorageType)
            or type(key) is not str
            or type(location) is not str
            or type(numel) is not int
            or numel < 0
        ):
            raise pickle.UnpicklingError(f"not a storage's id: {identity!r}")
        if key in self._loaded:
            return self._loaded[key]
        name, item = f"data/{key}", kind.dtype.itemsize if kind.dtype else 1
        if self._reader.size(name) != numel * item:
            raise RuntimeError(
                f"the storage {name} should have {numel * item} bytes, but the archive has "
                f"{self._reader.size(name)}: the checkpoint file is corrupted"
            )
        array = self._reader.array(name)
        if self._swap:
            array = byteswap(array, item // 2 if kind.dtype and kind.dtype.is_complex else item)
        self._loaded[key] = self._restore(_storage_of(array, kind.dtype), location)
        return self._loaded[key]


def _unpickler_class(module, persistent_load):
    class Unpickler(module.Unpickler):  # type: ignore[name-defined]
        def find_class(self, mod, name):
            if mod == "torch" or mod.startswith("torch."):
                try:
                    return lookup(mod, name)
                except (ImportError, AttributeError):
                    raise AttributeError(
                        f"Can't get attribute '{name}' on module '{mod}': torchlite does not have it"
                    ) from None
            return super().find_class(mod, name)

        def persistent_load(self, identity):
            return persistent_load(identity)

    return Unpickler


_NOT_WEIGHTS = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to "
    "`True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
    "arbitrary code execution. Do it only if you got the file from a trusted source."
)


def _weights_only_message(reason: str) -> str:
    if "allowlist" in reason:
        return (
            "Weights only load failed. This file can still be loaded, to do so you have two options, do those steps "
            "only if you trust the source of the checkpoint. \n"
            f"\t(1) {_NOT_WEIGHTS}\n"
            "\t(2) Alternatively, to load with `weights_only=True` please check the recommended steps in the "
            "following error message.\n"
            f"\tWeightsUnpickler error: {reason}"
        )
    return f"Weights only load failed. {_NOT_WEIGHTS}\n\tWeightsUnpickler error: {reason}"


def _unpickle(stream, module, persistent_load, weights_only: bool, options: dict):
    if not weights_only:
        return _unpickler_class(module, persistent_load)(stream, **options).load()
    try:
        return restricted.RestrictedUnpickler(stream, persistent_load, options.get("encoding", "utf-8")).load()
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(_weights_only_message(str(error))) from None


def _flag(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "y", "yes", "true")


def load(
    f,
    map_location=None,
    pickle_module=None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args,
):
    """Read what `save` wrote, here or in PyTorch.

    f: a path, or a seekable binary file. map_location: the device for the tensors (a device or its name, a dict of
    names, or a function `(storage, name) -> storage`); by default the one they were on. weights_only: True (the
    default) loads tensors, plain containers and what `torch.serialization.add_safe_globals` allows, and nothing else;
    False runs the pickle, which can execute any code: only for files you trust. mmap: True maps the file into memory
    (path only); tensors are then read when used. UnpicklingError for names that are not allowed, RuntimeError for
    damaged files, FileNotFoundError.
    """
    if weights_only is None:
        weights_only = pickle_module is None and not _flag("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    if _flag("TORCH_FORCE_WEIGHTS_ONLY_LOAD"):
        weights_only = True
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    pickle_load_args.setdefault("encoding", "utf-8")
    with _opened(f) as stream:
        start = stream.tell()
        head = stream.read(4)
        stream.seek(start)
        if head == b"PK\3\4":
            return _load_zip(stream, map_location, pickle_module or pickle, weights_only, bool(mmap), pickle_load_args)
        if mmap:
            raise RuntimeError(
                "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), "
                "please torch.save your checkpoint with this option in order to use mmap."
            )
        return _load_legacy(stream, map_location, pickle_module or pickle, weights_only, pickle_load_args)


def _load_zip(stream, map_location, module, weights_only: bool, mapped: bool, options: dict):
    reader = Reader(stream, mapped=mapped)
    if reader.has("constants.pkl"):
        raise RuntimeError(
            "the file is a TorchScript archive, which torchlite cannot run: save the module's state_dict() in "
            "PyTorch and load that"
        )
    return _unpickle(
        io.BytesIO(reader.bytes("data.pkl")), module, _ArchiveStorages(reader, map_location), weights_only, options
    )


_LEGACY_MAGIC, _LEGACY_VERSION = 0x1950A86A20F9469CFC6C, 1001


class _LegacyStorages:
    """Storages of the format before PyTorch 1.6: made empty while unpickling, filled from what follows the pickle."""

    def __init__(self, map_location):
        self._restore = _restorer(map_location)
        self.waiting: dict[str, tuple[Any, int]] = {}
        self._loaded: dict[str, Any] = {}

    def __call__(self, identity):
        if len(identity) != 6 or not isinstance(identity[1], StorageType) or identity[5] is not None:
            raise pickle.UnpicklingError("not a storage's id in the format from before PyTorch 1.6")
        _, kind, key, location, numel, _ = identity
        if type(numel) is not int or not 0 <= numel < 1 << 40 or kind.dtype is None:
            raise pickle.UnpicklingError(f"not a storage's id: {identity!r}")
        if key not in self._loaded:
            array = np.zeros(numel * kind.dtype.itemsize, np.uint8)
            self.waiting[key] = array, kind.dtype.itemsize
            self._loaded[key] = self._restore(_storage_of(array, kind.dtype), location)
        return self._loaded[key]


def _load_legacy(stream, map_location, module, weights_only: bool, options: dict):
    storages = _LegacyStorages("cpu")
    if _unpickle(stream, module, storages, weights_only, options) != _LEGACY_MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    if _unpickle(stream, module, storages, weights_only, options) != _LEGACY_VERSION:
        raise RuntimeError("Invalid protocol version")
    _unpickle(stream, module, storages, weights_only, options)
    out = _unpickle(stream, module, storages, weights_only, options)
    for key in _unpickle(stream, module, storages, weights_only, options):
        if key not in storages.waiting:
            raise RuntimeError(f"the checkpoint file is corrupted: it has data of a storage {key!r} that nothing uses")
        array, item = storages.waiting[key]
        header = stream.read(8)
        data = stream.read(array.size)
        if len(header) != 8 or struct.unpack("<q", header)[0] * item != array.size or len(data) != array.size:
            raise RuntimeError("unexpected EOF: the checkpoint file is corrupted")
        array[:] = np.frombuffer(data, np.uint8)
    return _moved(out, map_location) if map_location is not None else out


def _moved(value, map_location):
    """Tensors of the old format on the wanted device (they are filled on the CPU, after unpickling)."""
    if isinstance(value, Tensor):
        storage = storage_of(value)
        moved = _restorer(map_location)(storage, "cpu")
        return value if moved is storage or moved is None else value.to(moved.device)
    if isinstance(value, dict):
        for key in value:
            value[key] = _moved(value[key], map_location)
        return value
    return [_moved(v, map_location) for v in value] if type(value) is list else value
