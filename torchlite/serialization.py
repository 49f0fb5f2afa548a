"""torch.save and torch.load in PyTorch's zip format: each library reads the other's files."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import sys
import warnings
from collections.abc import Callable
from typing import IO, Any, TypeAlias

from torchlite._settings.module_dir import make_module_dir

from ._dispatch import table_of
from ._dispatch.error_translation import filter_traceback
from ._serialization import checkpoint_writer, save_load_options, weights_only_unpickler
from ._serialization.atomic_files import replace_file
from ._serialization.checkpoint_reader import UNSAFE, LoadRequest, SourceChangeWarning, load_archive, load_legacy
from ._serialization.file_formats import names_other_loaders
from ._serialization.file_openers import _check_seekable as _check_seekable
from ._serialization.file_openers import _is_path, _is_zipfile, _open_file_like, _open_zipfile_writer
from ._serialization.file_openers import _is_torchscript_zip as _is_torchscript_zip
from ._serialization.file_openers import _open_buffer_reader as _open_buffer_reader
from ._serialization.file_openers import _open_buffer_writer as _open_buffer_writer
from ._serialization.file_openers import _open_file as _open_file
from ._serialization.file_openers import _open_zipfile_reader as _open_zipfile_reader
from ._serialization.file_openers import _opener as _opener
from ._serialization.pytorch_file import PyTorchFileReader
from ._serialization.pytorch_names import StorageType
from ._serialization.resource_budget import Budget
from ._serialization.save_load_options import LoadEndianness
from ._serialization.save_load_options import thread_options as _serialization_tls
from ._serialization.tensor_rebuild import _get_layout as _get_layout
from ._tensor.storage import UntypedStorage, storage_of
from ._tensor.typed_storage import TypedStorage, typed_storage_of
from ._types.devices import device as device_type

__all__ = [
    "LoadEndianness", "SourceChangeWarning", "StorageType", "add_safe_globals", "check_module_version_greater_or_equal",
    "clear_safe_globals", "default_restore_location", "get_crc32_options", "get_default_load_endianness",
    "get_default_mmap_options", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load", "location_tag",
    "mkdtemp", "normalize_storage_type", "register_package", "safe_globals", "save", "set_crc32_options",
    "set_default_load_endianness", "set_default_mmap_options", "skip_data", "storage_to_tensor_type",
    "validate_cuda_device",
]  # fmt: skip

DEFAULT_PROTOCOL = 2
MAGIC_NUMBER, PROTOCOL_VERSION = checkpoint_writer.LEGACY_MAGIC, checkpoint_writer.LEGACY_VERSION
STORAGE_KEY_SEPARATOR = ","
FileLike: TypeAlias = "str | os.PathLike[str] | IO[bytes]"
MAP_LOCATION: TypeAlias = "Callable[[Any, str], Any] | device_type | str | dict[str, str] | None"
UNSAFE_MESSAGE = UNSAFE
_package_registry: list[tuple[int, Callable, Callable]] = []


# -- options -----------------------------------------------------------------------------


def set_crc32_options(compute_crc32: bool) -> None:
    """Sets whether `save` computes the checksums of records.

    Other programs that read zip files need them. `load` verifies the checksums that a file has.

    Args:
        compute_crc32: Whether they are computed. Default of the process: ``True``.

    Example:
        >>> torch.serialization.set_crc32_options(False)
        >>> torch.serialization.get_crc32_options()
        False
        >>> torch.serialization.set_crc32_options(True)
    """
    save_load_options.save.compute_crc32 = bool(compute_crc32)


def get_crc32_options() -> bool:
    """Returns whether `save` computes the checksums of records; see `set_crc32_options`."""
    return save_load_options.save.compute_crc32


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order that `load` assumes for files without a record of it.

    Args:
        endianness: A `LoadEndianness`, or ``None`` for little endian.

    Raises:
        TypeError: The argument is another object.

    Example:
        >>> import torchlite as torch
        >>> torch.serialization.set_default_load_endianness(torch.serialization.LoadEndianness.NATIVE)
        >>> torch.serialization.get_default_load_endianness()
        <LoadEndianness.NATIVE: 1>
        >>> torch.serialization.set_default_load_endianness(None)
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    save_load_options.load.endianness = endianness


def get_default_load_endianness() -> LoadEndianness | None:
    """Returns the byte order that `load` assumes for files without a record of it.

    Example:
        >>> torch.serialization.get_default_load_endianness() is None
        True
    """
    return save_load_options.load.endianness


def get_default_mmap_options() -> int | None:
    """Returns the flag with which `load(mmap=True)` maps files: `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`.

    Example:
        >>> import mmap
        >>> torch.serialization.get_default_mmap_options() == getattr(mmap, "MAP_PRIVATE", None)
        True
    """
    return save_load_options.load.mmap_flags


class set_default_mmap_options:
    """Sets the flag of `load(mmap=True)`, permanently or in a `with` block.

    With `mmap.MAP_PRIVATE` writes to tensors stay in this process. With `mmap.MAP_SHARED` they go to the file.

    Args:
        flags: `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`.

    Raises:
        ValueError: Another flag is given.
        RuntimeError: The system is Windows, whose files are always mapped privately.

    Example:
        >>> import sys
        >>> if sys.platform != "win32":
        ...     import mmap
        ...
        ...     with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        ...         assert torch.serialization.get_default_mmap_options() == mmap.MAP_SHARED
    """

    def __init__(self, flags: int):
        if sys.platform == "win32":
            raise RuntimeError("Changing the default mmap options is currently not supported for Windows")
        import mmap

        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.prev = save_load_options.load.mmap_flags
        save_load_options.load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        save_load_options.load.mmap_flags = self.prev


class skip_data:
    """Context manager that leaves out the bytes of storages.

    `save` reserves their space in the file without writing them, and `load` creates storages without reading them. It
    serves checkpoints whose bytes are written or read in another way.

    Args:
        materialize_fake_tensors: No effect: there are no fake tensors.

    Example:
        >>> import torchlite as torch, io
        >>> file = io.BytesIO()
        >>> with torch.serialization.skip_data():
        ...     torch.save(torch.ones(2), file)
        >>> _ = file.seek(0)
        >>> torch.load(file)
        tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        local = _serialization_tls
        self._before = local.skip_data, local.materialize_fake_tensors
        local.skip_data, local.materialize_fake_tensors = True, self.materialize_fake_tensors

    def __exit__(self, *exc: Any) -> None:
        _serialization_tls.skip_data, _serialization_tls.materialize_fake_tensors = self._before


# -- globals allowed with weights_only=True -----------------------------------------------


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allows classes and functions in files that `load(weights_only=True)` reads.

    Args:
        safe_globals: List of classes and functions. An item is one, or a pair ``(object, "full.name")`` with the name
            that files have.

    Example:
        >>> from fractions import Fraction
        >>> torch.serialization.add_safe_globals([Fraction])
        >>> torch.serialization.get_safe_globals()
        [<class 'fractions.Fraction'>]
        >>> torch.serialization.clear_safe_globals()

    See also:
        `safe_globals`, `get_unsafe_globals_in_checkpoint`.
    """
    known = weights_only_unpickler.user_globals()
    known.extend(item for item in safe_globals if item not in known)


def get_safe_globals() -> list[Any]:
    """Returns the list of the globals added with `add_safe_globals`.

    Example:
        >>> torch.serialization.get_safe_globals()
        []
    """
    return list(weights_only_unpickler.user_globals())


def clear_safe_globals() -> None:
    """Removes the globals added with `add_safe_globals`.

    Example:
        >>> torch.serialization.clear_safe_globals()
        >>> torch.serialization.get_safe_globals()
        []
    """
    weights_only_unpickler.user_globals().clear()


class safe_globals:
    """Context manager that allows classes and functions as `add_safe_globals` does, inside the block only.

    Args:
        safe_globals: List of classes, functions and pairs ``(object, "full.name")``.

    Example:
        >>> import io
        >>> from fractions import Fraction
        >>> file = io.BytesIO()
        >>> torch.save(Fraction(1, 2), file)
        >>> _ = file.seek(0)
        >>> with torch.serialization.safe_globals([Fraction]):
        ...     torch.load(file)
        Fraction(1, 2)
    """

    def __init__(self, safe_globals: list[Any]):
        self._items = safe_globals

    def __enter__(self):
        self._before = get_safe_globals()
        add_safe_globals(self._items)

    def __exit__(self, *exc):
        weights_only_unpickler.user_globals()[:] = self._before


def get_unsafe_globals_in_checkpoint(f) -> list[str]:
    """Returns the names in a checkpoint that `load(weights_only=True)` refuses.

    The pickle is read and not run.

    Args:
        f: Path or seekable binary file of a zip checkpoint.

    Returns:
        Sorted list of ``"module.name"``; ``"?"`` for a name that the pickle computes.

    Raises:
        ValueError: The file is not a checkpoint in the zip format.
        pickle.UnpicklingError: The pickle is damaged.

    Example:
        >>> import io
        >>> from fractions import Fraction
        >>> file = io.BytesIO()
        >>> torch.save(Fraction(1, 2), file)
        >>> _ = file.seek(0)
        >>> torch.serialization.get_unsafe_globals_in_checkpoint(file)
        ['fractions.Fraction']
    """
    with _open_file_like(f, "rb") as stream:
        if not _is_zipfile(stream):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        reader = PyTorchFileReader(stream)
        if _is_torchscript_zip(reader):
            raise ValueError(
                "Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint"
            )
        data = reader.get_record("data.pkl")
    from ._serialization.pickle_globals import find_globals

    try:
        names = find_globals(data)
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(f"{error} (in the record data.pkl)") from None
    return sorted(f"{module}.{name}" for module, name in names if not weights_only_unpickler.is_allowed(module, name))


# -- helpers -------------------------------------------------------------------------------


@contextlib.contextmanager
def mkdtemp():
    """Context manager that makes a temporary folder and removes it with its files at the end.

    Yields:
        Path of the folder.

    Example:
        >>> import os
        >>> with torch.serialization.mkdtemp() as folder:
        ...     os.path.isdir(folder)
        True
        >>> os.path.isdir(folder)
        False
    """
    import tempfile

    with tempfile.TemporaryDirectory() as path:
        yield path


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple, error_if_malformed: bool = True
) -> bool:
    """Returns whether a module has a version or a later one.

    Args:
        module: A module with ``__version__``.
        req_version_tuple: The version as a tuple of ints, such as ``(0, 3, 1)``.
        error_if_malformed: Whether a version that is not numbers with dots between them is an error. Otherwise a
            warning is given and the result is ``True``. Default: ``True``.

    Returns:
        bool.

    Raises:
        RuntimeError: The module's version is malformed.

    Example:
        >>> import numpy
        >>> torch.serialization.check_module_version_greater_or_equal(numpy, (1, 0))
        True
    """
    try:
        pairs = zip(req_version_tuple, module.__version__.split("."), strict=False)
        parts = tuple(type(wanted)(part) for wanted, part in pairs)
    except (AttributeError, TypeError, ValueError) as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared "
            f"with tuple {req_version_tuple!s}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but continuing assuming that requirement is met", stacklevel=2)
        return True
    return parts >= req_version_tuple


def _check_dill_version(pickle_module: Any) -> None:
    if pickle_module is not None and pickle_module.__name__ == "dill":
        if not check_module_version_greater_or_equal(pickle_module, (0, 3, 1), False):
            raise ValueError(
                f"'torch' supports dill >= (0, 3, 1), but you have dill {pickle_module.__version__}. Please upgrade "
                "dill or switch to 'pickle'"
            )


# -- devices -----------------------------------------------------------------------------


def location_tag(storage) -> str:
    """Returns the name that a checkpoint has for a storage's device: "cpu", "cuda:0", ….

    Args:
        storage: A storage.

    Example:
        >>> torch.serialization.location_tag(torch.zeros(2).untyped_storage())
        'cpu'
    """
    for _, tagger, _ in _package_registry:
        tag = tagger(storage)
        if tag:
            return tag
    where = storage.device
    return "cpu" if where.type == "cpu" else "meta" if where.type == "meta" else f"{where.type}:{where.index or 0}"


def register_package(priority: int, tagger: Callable, deserializer: Callable) -> None:
    """Registers a kind of device with `save` and `load`.

    Args:
        priority: An int; functions of lower priority are asked first.
        tagger: Function of a storage. Returns the name of its device in the file, or ``None``.
        deserializer: Function of a storage and a name. Returns a storage on that device, or ``None``.

    Example:
        >>> def restore(storage, location):
        ...     return storage.cpu() if location == "abacus" else None
        >>> torch.serialization.register_package(50, lambda storage: None, restore)
        >>> storage = torch.zeros(2).untyped_storage()
        >>> torch.serialization.default_restore_location(storage, "abacus").device
        device(type='cpu')
    """
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda entry: entry[0])


def default_restore_location(storage, location: str):
    """Returns a storage moved to the device that a file names.

    Args:
        storage: A storage on the CPU.
        location: Name of a device, such as ``"cuda:0"``.

    Raises:
        RuntimeError: There is no such device here, or the name is unknown.

    Example:
        >>> storage = torch.zeros(2).untyped_storage()
        >>> torch.serialization.default_restore_location(storage, "cpu").device
        device(type='cpu')
    """
    for _, _, deserializer in _package_registry:
        out = deserializer(storage, location)
        if out is not None:
            return out
    if location == "cpu":
        return storage
    try:
        where = device_type(location)
    except RuntimeError:
        if location.partition(":")[0] in ("cuda", "opencl", "xpu", "mps", "meta", "cpu"):
            raise
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


def validate_cuda_device(location: str) -> int:
    """Returns the index of the CUDA device that a checkpoint names.

    Args:
        location: ``"cuda"`` or ``"cuda:N"``.

    Raises:
        RuntimeError: There is no such device here.

    Example:
        >>> torch.serialization.validate_cuda_device("cuda:1000")
        Traceback (most recent call last):
        RuntimeError: Attempting to deserialize object on a CUDA device ...
    """
    default_restore_location(UntypedStorage(0), location)
    return device_type(location).index or 0


def normalize_storage_type(storage_type: type) -> type:
    """Returns the class of `torch` with the name of a storage class.

    Args:
        storage_type: A storage class.

    Example:
        >>> torch.serialization.normalize_storage_type(torch.FloatStorage) is torch.FloatStorage
        True
    """
    from ._tensor import typed_storage

    return getattr(typed_storage, storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> Any:
    """Returns the old tensor class named as a storage's class, with "Tensor" for "Storage".

    Args:
        storage: A storage.

    Raises:
        AttributeError: There is no such class, as for the storages of today.

    Example:
        >>> torch.serialization.storage_to_tensor_type(torch.zeros(2).untyped_storage())
        Traceback (most recent call last):
        AttributeError: ...
    """
    from ._tensor import legacy_types

    return getattr(legacy_types, type(storage).__name__.replace("Storage", "Tensor"))


def _get_restore_location(map_location) -> Callable:
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, str(map_location.get(location, location)))
    if isinstance(map_location, (str, device_type)):
        return lambda storage, location: default_restore_location(storage, str(map_location))

    def restore_by_map_location(storage, location):
        out = map_location(storage, location)
        return default_restore_location(storage, location) if out is None else out

    return restore_by_map_location


# -- saving ----------------------------------------------------------------------------------


def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes an object with its tensors to a file that torchlite and PyTorch can load.

    Tensors that share memory are stored once and share it again after loading. A file at a path is replaced only on
    completion, so a failure leaves the old file.

    Args:
        obj: Any picklable object: a tensor, a `state_dict`, containers of these, ….
        f: A path, or a binary file open for writing.
        pickle_module: Module that pickles the object. Default: ``pickle``.
        pickle_protocol: Protocol of the pickle. Default: 2.

    Raises:
        AttributeError: ``f`` is neither a path nor a file.
        RuntimeError: The folder does not exist.
        pickle.PicklingError: The object cannot be pickled. Pickle raises other types too.

    Example:
        >>> import torchlite as torch, io
        >>> file = io.BytesIO()
        >>> torch.save({"weight": torch.ones(2)}, file)
        >>> _ = file.seek(0)
        >>> torch.load(file)
        {'weight': tensor([1., 1.])}

    See also:
        `torch.load`, `torch.nn.Module.state_dict`.
    """
    _check_dill_version(pickle_module)
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if not _use_new_zipfile_serialization:
        if _serialization_tls.skip_data:
            raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
        _save_legacy(obj, f, pickle_module, pickle_protocol)
        return
    # All errors of user-defined objects are raised before a file is opened.
    data, storages = checkpoint_writer.pickle_object(obj, pickle_module, pickle_protocol, location_tag)
    with _open_zipfile_writer(f) as zip_file:
        checkpoint_writer.write_archive(zip_file._writer, data, storages, not _disable_byteorder_record)


def _save_legacy(obj: Any, f: Any, pickle_module: Any, pickle_protocol: int) -> None:
    data, storages = checkpoint_writer.pickle_legacy(obj, pickle_module, pickle_protocol, location_tag)
    if not _is_path(f):
        checkpoint_writer.write_legacy(f, data, storages)
        f.flush()
        return
    with replace_file(os.fspath(f), plain=True) as stream:
        checkpoint_writer.write_legacy(stream, data, storages)


# -- loading ---------------------------------------------------------------------------------


def _read_environment_flag(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "y", "yes", "true")


def _resolve_weights_only(weights_only: bool | None, pickle_module: Any) -> bool:
    """Return whether to load weights only, from `load`'s argument and the environment."""
    force, force_not = (
        _read_environment_flag("TORCH_FORCE_WEIGHTS_ONLY_LOAD"),
        _read_environment_flag("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"),
    )
    if force and force_not:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both "
            "were set."
        )
    if force:
        return True
    if weights_only is None and force_not:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not "
            "explicitly passed to `torch.load`, forcing weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        return False
    return pickle_module is None if weights_only is None else bool(weights_only)


@names_other_loaders("checkpoint", "torchscript")
def load(
    f,
    map_location=None,
    pickle_module=None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args,
):
    """Reads a file written by `torch.save`, of torchlite or PyTorch.

    Args:
        f: A path, or a seekable binary file.
        map_location: Where the tensors go: a device or its name, a dict from names in the file to names here, or a
            function ``(storage, name) -> storage``. Default: the devices from which they were saved.
        pickle_module: Module that unpickles, for ``weights_only=False``. Default: ``pickle``.
        weights_only: ``True`` loads only tensors, plain containers and the globals of
            `torch.serialization.add_safe_globals`, with limits of time and memory by the file's size. ``False`` runs
            the pickle, which can execute any code: use it only for files you trust. Default: ``True``.
        mmap: Whether to map the file into memory, so that tensors are read when used. ``f`` must be a path. Default:
            ``False``.
        **pickle_load_args: Arguments of the unpickler, such as ``encoding``, for ``weights_only=False``.

    Returns:
        The object.

    Raises:
        pickle.UnpicklingError: The file has names that are not allowed.
        RuntimeError: The file is damaged, or is for a device that is not here.
        FileNotFoundError: There is no file at the path.
        ValueError: ``mmap`` is given with a file that is not a path.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save([torch.ones(2), "text"], file)
        >>> _ = file.seek(0)
        >>> torch.load(file, map_location="cpu")
        [tensor([1., 1.]), 'text']

    See also:
        `torch.save`, `torch.nn.Module.load_state_dict`.
    """
    weights_only = _resolve_weights_only(weights_only, pickle_module)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    _check_dill_version(pickle_module)
    mapped = save_load_options.load.mmap if mmap is None else bool(mmap)
    if mapped and not _is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    if pickle_load_args and weights_only:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
        for name in pickle_load_args.keys() - {"encoding"}:
            raise TypeError(f"Unpickler.__init__() got an unexpected keyword argument '{name}'")
    pickle_load_args.setdefault("encoding", "utf-8")
    how = LoadRequest(
        map_location, pickle_module or pickle, weights_only, _get_restore_location(map_location), pickle_load_args
    )
    shared = mapped and _is_shared(save_load_options.load.mmap_flags)
    try:
        with _open_file_like(f, "r+b" if shared else "rb") as stream:
            if _is_zipfile(stream):
                mapping = ("shared" if shared else "private") if mapped else ""
                return load_archive(stream, how, mapping, from_position=not _is_path(f))
            if mapped:
                raise RuntimeError(
                    f"mmap can only be used with files saved with `torch.save({f}, "
                    "_use_new_zipfile_serialization=True), please torch.save your checkpoint with this option in order "
                    "to use mmap."
                )
            return load_legacy(stream, how)
    except Exception:
        filter_traceback()
        raise


def _load_part(data: bytes, budget: Budget, map_location: Any = None) -> Any:
    """Load a checkpoint of weights embedded in another file, whose budget is charged."""
    how = LoadRequest(map_location, pickle, True, _get_restore_location(map_location), {"encoding": "utf-8"})
    stream = io.BytesIO(data)
    return load_archive(stream, how, "", budget) if _is_zipfile(stream) else load_legacy(stream, how, budget)


def _is_shared(flags: int | None) -> bool:
    import mmap

    return flags is not None and flags == getattr(mmap, "MAP_SHARED", None)


__dir__ = make_module_dir(
    globals(),
    (
        "DEFAULT_PROTOCOL MAGIC_NUMBER PROTOCOL_VERSION STORAGE_KEY_SEPARATOR UNSAFE_MESSAGE _check_seekable "
        "_get_layout _is_path _is_torchscript_zip _is_zipfile _open_buffer_reader _open_buffer_writer _open_file "
        "_open_file_like _open_zipfile_reader _open_zipfile_writer _opener _package_registry _serialization_tls"
    ),
)
