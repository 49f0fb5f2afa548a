"""Reading of objects for `load`: one of two unpicklers for the pickle, and the storages that it refers to."""

from __future__ import annotations

import io
import os
import pickle
import struct
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._dispatch import call, table_of
from .._dispatch.callbacks import CALLBACKS
from .._tensor.storage import UntypedStorage
from .._tensor.storage import storage_of as untyped_of
from .._tensor.typed_storage import TypedStorage, typed_storage_over
from .._types import dtypes
from .._types.devices import device as device_type
from .._types.package_name import is_torchlite_object
from .._types.python_source import source_of
from . import save_load_options
from .checkpoint_writer import LEGACY_MAGIC, LEGACY_VERSION
from .pickle_costs import short_repr
from .pytorch_names import StorageType, resolve_pytorch_name
from .resource_budget import Budget
from .weights_only_unpickler import RestrictedUnpickler
from .zip_archive import NATIVE, ArchiveReader, _read_into, byteswap

UNSAFE = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to "
    "`True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
    "arbitrary code execution. Do it only if you got the file from a trusted source."
)


class SourceChangeWarning(Warning):
    """Warns that the source of a module's class differs from the one in a legacy checkpoint.

    Example:
        >>> issubclass(torch.serialization.SourceChangeWarning, Warning)
        True
    """


# -- pickles -----------------------------------------------------------------------------


def _make_unpickler_class(module, persistent_load):
    class Unpickler(module.Unpickler):  # type: ignore[name-defined]
        def find_class(self, mod, name):
            if mod == "torch" or mod.startswith("torch."):
                try:
                    return resolve_pytorch_name(mod, name)
                except (ImportError, AttributeError):
                    raise AttributeError(
                        f"Can't get attribute '{name}' on module '{mod}': torchlite does not have it"
                    ) from None
            return super().find_class(mod, name)

        def persistent_load(self, identity):
            return persistent_load(identity)

    return Unpickler


def _explain_weights_only_error(reason: str) -> str:
    """Return PyTorch's error message around an unpickler's reason."""
    if "was not an allowed global by default" in reason:
        prefix = (
            "Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo those "
            f"steps only if you trust the source of the checkpoint\033[0m. \n\t(1) {UNSAFE}\n\t(2) Alternatively, to "
            "load with `weights_only=True` please check the recommended steps in the following error message.\n\t"
            f"WeightsUnpickler error: {reason}"
        )
    else:
        prefix = f"Weights only load failed. {UNSAFE}\n"
        if "is blocked" not in reason:
            prefix += (
                "Please file an issue with the following so that we can make `weights_only=True` compatible with your "
                "use case: WeightsUnpickler error: "
            )
        prefix += f"\n\n{reason}"
    return (
        f"{prefix}\n\nCheck the documentation of torch.load to learn more about types accepted by default with "
        "weights_only https://pytorch.org/docs/stable/generated/torch.load.html."
    )


def _name_record_in_message(error: BaseException, record: str) -> str:
    """An error's text with the record that it was met in."""
    said = str(error)
    return said if record in said else f"{said} (in the record {record})"


def unpickle(
    stream, size: int, record: str, persistent_load, how: LoadRequest, budget: Budget, data: bytes | None = None,
    unfilled: list[Any] | None = None,
) -> Any:  # fmt: skip
    """Read one pickle from a stream with `size` more bytes. Errors with `weights_only` name the record. Indices of
    sparse tensors are validated, or the tensors are added to `unfilled`.
    """
    if not how.weights_only:
        return _make_unpickler_class(how.module, persistent_load)(stream, **how.pickle_options).load()
    try:
        encoding = how.pickle_options.get("encoding", "utf-8")
        unpickler = RestrictedUnpickler(stream, persistent_load, encoding, size, data, budget)
        found = unpickler.load()
        if unfilled is None:
            check_sparse(unpickler.sparse, budget)
        else:
            unfilled += unpickler.sparse
        return found
    except _UserFunctionError as error:
        raise error.cause from None
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(_explain_weights_only_error(_name_record_in_message(error, record))) from None
    except (RuntimeError, EOFError) as error:
        if type(error) in (RuntimeError, EOFError):
            raise type(error)(_name_record_in_message(error, record)) from None
        raise


def check_sparse(tensors: list[Any], budget: Budget) -> None:
    """Validate the indices of a sparse tensor: RuntimeError if they are out of range. The budget is charged for indices
    that are views.
    """
    for tensor in tensors:
        budget.take(24 * sum(part.numel() for part in tensor._tl_array.parts))
        if not save_load_options.thread_options.skip_data and tensor.device.type != "meta":
            CALLBACKS.sparse("validate")(tensor._tl_array)


class _UserFunctionError(Exception):
    """An error in a user-defined function, not caused by the file."""

    def __init__(self, cause: Exception):
        self.cause = cause


class LoadRequest:
    """The arguments of a `load` call."""

    def __init__(self, map_location: Any, module: Any, weights_only: bool, restore: Callable, pickle_options: dict):
        self.map_location, self.module, self.weights_only = map_location, module, weights_only
        self._restore, self.pickle_options = restore, pickle_options

    def restore(self, storage: Any, location: str) -> Any:
        """Move a storage according to `map_location`."""
        if self.map_location is None or not self.weights_only:
            return self._restore(storage, location)
        try:
            return self._restore(storage, location)
        except (RuntimeError, EOFError, pickle.UnpicklingError):
            raise
        except Exception as error:  # the user's map_location may raise anything
            raise _UserFunctionError(error) from None


# -- storages ----------------------------------------------------------------------------


def make_storage(array: np.ndarray, d) -> UntypedStorage | TypedStorage:
    """Return a storage on loaded bytes; `d` is None for untyped ones."""
    table = table_of(device_type("cpu"))
    untyped = untyped_of(call.wrap_array(table, table.backend.from_foreign_array(array), dtypes.uint8))
    return untyped if d is None else typed_storage_over(untyped, d)


def _parse_persistent_id(identity: Any, length: int) -> list:
    """Return the validated parts of a storage's persistent id."""
    if type(identity) is not tuple or len(identity) != length:
        raise pickle.UnpicklingError(f"a storage's id has {length} parts, but got {short_repr(identity)}")
    parts = [v.decode("ascii") if isinstance(v, bytes) else v for v in identity[1:5]]
    kind, key, location, numel = parts
    if (
        not isinstance(kind, StorageType)
        or type(key) is not str
        or type(location) is not str
        or type(numel) is not int
        or not 0 <= numel < 1 << 62
        or len(key) > 200
        or len(location) > 200
    ):
        raise pickle.UnpicklingError(f"not a storage's id: ({', '.join(map(short_repr, identity))})")
    return parts


class ArchiveStorages:
    """Loads the storages of a zip archive, each once: the records of a folder."""

    def __init__(self, reader: ArchiveReader, how: LoadRequest, folder: str = "data"):
        self._reader, self._restore, self._folder = reader, how.restore, folder
        self._swap = _read_byte_order(reader) != NATIVE
        self._loaded: dict[str, Any] = {}

    def __call__(self, identity):
        kind, key, location, numel = _parse_persistent_id(identity, 5)
        name, item = self._record_of(key), kind.dtype.itemsize if kind.dtype else 1
        if name in self._loaded:
            return self._loaded[name]
        if self._reader.size(name) != numel * item:
            raise RuntimeError(
                f"the storage {name} should have {numel * item} bytes, but the archive has "
                f"{self._reader.size(name)}: the checkpoint file is corrupted"
            )
        if save_load_options.thread_options.skip_data:
            array = np.empty(numel * item, np.uint8)
        else:
            array = self._reader.array(name)
            if self._swap:
                array = byteswap(array, item // 2 if kind.dtype and kind.dtype.is_complex else item)
        storage = self._restore(make_storage(array, kind.dtype), location)
        if numel:  # an empty one may have several dtypes
            self._loaded[name] = storage
        return storage

    def _record_of(self, key: str) -> str:
        """Return the name of the record of a storage."""
        return f"{self._folder}/{key}"


def _read_byte_order(reader: ArchiveReader) -> str:
    """Return the byte order of an archive: its record, else the default for archives without one."""
    order = reader.byteorder()
    if order is not None:
        return order
    unsaid = save_load_options.load.endianness
    if unsaid is save_load_options.LoadEndianness.NATIVE:
        return NATIVE
    return "big" if unsaid is save_load_options.LoadEndianness.BIG else "little"


def load_archive(
    stream, how: LoadRequest, mapped: str, budget: Budget | None = None, from_position: bool = False
) -> Any:
    """The object of a checkpoint in today's format. `from_position`: that of the archive at the file's position, after
    which the file is at the archive's end.
    """
    start = stream.tell()
    reader = ArchiveReader(stream, mapped=mapped, budget=budget, from_position=from_position)
    if reader.has("constants.pkl"):
        stream.seek(start)
        return _load_torchscript(stream, how)
    data = reader.bytes("data.pkl")
    found = unpickle(io.BytesIO(data), len(data), "data.pkl", ArchiveStorages(reader, how), how, reader.budget, data)
    if from_position:
        stream.seek(reader.end)
    return found


def _load_torchscript(stream: Any, how: LoadRequest) -> Any:
    """The module of a TorchScript archive, which no file of weights alone is."""
    if how.weights_only:
        raise RuntimeError(
            f"Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. {UNSAFE} (the "
            "archive has the record constants.pkl)"
        )
    warnings.warn(
        "'torch.load' received a zip file that looks like a TorchScript archive dispatching to 'torch.jit.load' (call "
        "'torch.jit.load' directly to silence this warning)",
        UserWarning,
        stacklevel=4,
    )
    return CALLBACKS.load_torchscript(stream, map_location=how.map_location)


# -- the format from before PyTorch 1.6 ------------------------------------------------------


class _LegacyStorages:
    """Storages of the legacy format: created empty while unpickling, filled from the data after the pickle. `room` is
    the number of bytes that the file has for all of them.
    """

    def __init__(self, room: int):
        self._room = room
        self.arrays: dict[str, tuple[np.ndarray, int]] = {}
        self.loaded: dict[str, Any] = {}
        self.locations: dict[str, str] = {}

    def __call__(self, identity):
        if type(identity) is tuple and len(identity) == 4 and identity[0] == "module":
            _compare_source(*identity[1:])
            return identity[1]
        kind, key, location, numel = _parse_persistent_id(identity, 6)
        if key not in self.loaded:
            d = kind.dtype or dtypes.uint8
            self._room -= 8 + numel * d.itemsize
            if self._room < 0:
                raise pickle.UnpicklingError(
                    f"the storage {short_repr(key)} should have {numel * d.itemsize} bytes, which the file has not"
                )
            array = np.zeros(numel * d.itemsize, np.uint8)
            self.arrays[key] = array, d.itemsize
            self.locations[key] = location
            self.loaded[key] = make_storage(array, kind.dtype)
        return _legacy_storage_part(self.loaded, self.loaded[key], identity[5])


def _legacy_storage_part(loaded: dict[str, Any], storage: Any, view: Any) -> Any:
    """The part of a storage that a persistent id of before PyTorch 0.4 names: its key, first element and length."""
    if view is None:
        return storage
    if type(view) is not tuple or [type(part) for part in view] != [str, int, int] or len(view[0]) > 200:
        raise pickle.UnpicklingError(f"not a part of a storage: {short_repr(view)}")
    key, first, count = view
    if key not in loaded:
        held, item = getattr(storage, "_untyped_storage", storage), getattr(storage, "dtype", dtypes.uint8).itemsize
        if not 0 <= first <= first + count <= held.nbytes() // item:
            raise pickle.UnpicklingError(f"the part {short_repr(key)} of a storage reaches beyond it")
        part = held[first * item : (first + count) * item]
        loaded[key] = part if held is storage else typed_storage_over(part, storage.dtype)
    return loaded[key]


class _FilledStorages:
    """The same storages after they are filled, on their target devices."""

    def __init__(self, storages: _LegacyStorages, restore: Callable):
        self._storages, self._restore = storages, restore
        self._done: dict[str, Any] = {}

    def __call__(self, identity):
        if len(identity) == 4:
            return identity[1]
        key = identity[2].decode() if isinstance(identity[2], bytes) else identity[2]
        if key not in self._done:
            self._done[key] = self._restore(self._storages.loaded[key], self._storages.locations[key])
        return _legacy_storage_part(self._done, self._done[key], identity[5])


def load_legacy(stream, how: LoadRequest, budget: Budget | None = None) -> Any:
    """Return the object of a legacy checkpoint (before PyTorch 1.6).

    Storages follow the object that refers to them, so it is unpickled on the CPU; for other devices once more after the
    storages are read.
    """
    begin = stream.tell()
    stream.seek(0, os.SEEK_END)
    end = stream.tell()
    stream.seek(begin)
    storages, room = _LegacyStorages(end - begin), budget or Budget(end - begin)

    unfilled: list[Any] = []

    def load_one_pickle(record: str, persistent_load: Callable = storages, room: Budget = room) -> Any:
        later = unfilled if persistent_load is storages else None
        return unpickle(stream, end - stream.tell(), record, persistent_load, how, room, unfilled=later)

    if begin == 0 and _is_tar(stream):
        raise RuntimeError(
            f"Cannot use ``weights_only=True`` with files saved in the legacy .tar format. {UNSAFE}"
            if how.weights_only
            else "files in the .tar format from before PyTorch 0.1.10 cannot be loaded: save them anew in PyTorch"
        )
    magic = load_one_pickle("magic number")
    if type(magic) is not int or magic != LEGACY_MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = load_one_pickle("protocol version")
    if type(version) is not int or version != LEGACY_VERSION:
        raise RuntimeError(f"Invalid protocol version: {short_repr(version)} (in the record protocol version)")
    load_one_pickle("system info")
    place = stream.tell()
    out = load_one_pickle("object")
    keys = load_one_pickle("storage keys")
    if type(keys) is not list or any(type(key) not in (str, bytes) for key in keys):
        raise pickle.UnpicklingError(f"the record storage keys should be a list of names, but is {short_repr(keys)}")
    if not save_load_options.thread_options.skip_data:
        for key in keys:
            _read_storage(stream, key.decode("latin1") if isinstance(key, bytes) else key, storages)
    check_sparse(unfilled, room)
    if how.map_location is None and all(where == "cpu" for where in storages.locations.values()):
        return out
    after = stream.tell()
    stream.seek(place)
    out = load_one_pickle("object", _FilledStorages(storages, how.restore), budget or Budget(end - begin))
    stream.seek(after)
    return out


def _read_storage(stream, key: str, storages: _LegacyStorages) -> None:
    """Read the bytes of a storage."""
    if key not in storages.arrays:
        raise RuntimeError(
            f"the checkpoint file is corrupted: it has data of a storage {short_repr(key)} that nothing uses (in the "
            f"record "
            "storage keys)"
        )
    array, item = storages.arrays[key]
    header = stream.read(8)
    if (
        len(header) != 8
        or struct.unpack("<q", header)[0] * item != array.size
        or _read_into(stream, array.data) != array.size
    ):
        raise RuntimeError(f"unexpected EOF in the storage {short_repr(key)}: the checkpoint file is corrupted")
    if NATIVE == "big" and item > 1:
        array[:] = byteswap(array, item)


def _is_tar(stream) -> bool:
    begin = stream.tell()
    head = stream.read(512)
    stream.seek(begin)
    if len(head) < 512 or head[257:262] != b"ustar":
        return False
    import tarfile

    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def _compare_source(cls: Any, file: Any, before: Any) -> None:
    """Warn if the source of a module's class differs from the one in the file. torchlite's classes always differ from
    PyTorch's.
    """
    if not file or not before or is_torchlite_object(cls):
        return
    try:
        now = source_of(cls)
    except (OSError, TypeError):
        warnings.warn(
            f"Couldn't retrieve source code for container of type {cls.__name__}. It won't be checked for correctness "
            "upon loading.",
            stacklevel=2,
        )
        return
    if now != before:
        name, advice = f"{cls.__module__}.{cls.__qualname__}", _source_change_advice_text(cls, file, before, now)
        warnings.warn(f"source code of class '{name}' has changed. {advice}", SourceChangeWarning, stacklevel=2)


def _source_change_advice_text(cls: Any, file: str, before: str, now: str) -> str:
    if not getattr(cls, "dump_patches", False):
        return (
            "you can retrieve the original source code by accessing the object's source attribute or set "
            "`torch.nn.Module.dump_patches = True` and use the patch tool to revert the changes."
        )
    import difflib

    name = f"{cls.__name__}.patch"
    patch = "\n".join(difflib.unified_diff(now.split("\n"), before.split("\n"), file, file, lineterm=""))
    try:
        with open(name, "x") as stream:
            stream.write(patch)
    except OSError:
        return (
            f"Tried to save a patch, but couldn't create a writable file {name}. Make sure it doesn't exist and your "
            "working directory is writable."
        )
    return f"Saved a reverse patch to {name}. Run `patch -p0 < {name}` to revert your changes."
