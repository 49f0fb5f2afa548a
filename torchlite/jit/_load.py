"""`torch.jit.load`: reads a program archive. Only `__setstate__` methods run, with bounded steps and memory."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
from typing import Any

from .._serialization.atomic_files import check_regular, open_regular
from .._serialization.checkpoint_reader import ArchiveStorages, LoadRequest, check_sparse
from .._serialization.file_formats import names_other_loaders
from .._types.devices import device as device_type
from ._compilation_unit import ScriptProgram
from ._program_archive import ProgramReader
from ._program_unpickler import ProgramUnpickler
from ._script_modules import RecursiveScriptModule
from ._value_limits import VISITS, count_visited

_ERRORS = (pickle.UnpicklingError, EOFError, RuntimeError)
# Python errors of malformed pickles or programs.
_RAW = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError)


@names_other_loaders("torchscript")
def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Return the module of a `torch.jit.save` file, written by torchlite or PyTorch.

    f: a path or a seekable binary file, read from its position. map_location: the device of the tensors; by default the
    saved one. _extra_files: a dictionary whose values become the bytes of the records. Before the module
    is called, only `__setstate__` runs, with bounded work and only TorchScript's forms. Raise ValueError for a missing
    file, RuntimeError that names the part for a damaged one.

    >>> import torchlite as torch, io
    >>> file = io.BytesIO()
    >>> torch.jit.save(torch.jit.trace(torch.nn.Linear(2, 1), torch.ones(1, 2)), file)
    >>> _ = file.seek(0)
    >>> torch.jit.load(file)(torch.ones(3, 2)).shape
    torch.Size([3, 1])
    """
    where = _check_location(map_location)
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        if not os.path.exists(path):
            raise ValueError(f"The provided filename {path} does not exist")
        if os.path.isdir(path):
            raise ValueError(f"The provided filename {path} is a directory")
        file: Any = open_regular(path)
    else:
        file = contextlib.nullcontext(check_regular(f))
    with file as stream:
        return load_module(_make_seekable(stream), where, _extra_files, from_position=stream is f)


def _make_seekable(stream: Any) -> Any:
    if hasattr(stream, "seek") and hasattr(stream, "tell"):
        return stream
    return io.BytesIO(stream.read())


def _check_location(where: Any) -> Any:
    if where is None or isinstance(where, device_type):
        return where
    if isinstance(where, str):
        return device_type(where)
    raise ValueError(f"map_location should be either None, string or torch.device, but got type: {type(where)}")


def load_module(stream: Any, where: Any = None, extra: Any = None, from_position: bool = False) -> Any:
    """Return the module of an open file. `from_position`: of the archive at its position, if one begins there."""
    from ..serialization import _get_restore_location

    reader = ProgramReader(stream, from_position=from_position)
    if not reader.has("constants.pkl") or not reader.has("data.pkl"):
        what = "constants.pkl" if reader.has("data.pkl") else "data.pkl"
        raise RuntimeError(f"file not found: {reader.top}{what}: the archive is no program of TorchScript")
    how = LoadRequest(where, pickle, True, _get_restore_location(where), {})
    sources = read_sources(reader, "code/")
    program = ScriptProgram(sources, (), reader.version(), getattr(stream, "name", ""))
    folders = {name: ArchiveStorages(reader, how, name) for name in ("constants", "data")}
    root = read_program(reader, program, "", folders["constants"], folders["data"])
    if where is not None:
        program.move(where, tensors=False)
    if extra is not None:
        for name in extra:
            record = f"extra/{name}"
            extra[name] = reader.inflated(record) if reader.has(record) else b""
    return root


def read_sources(reader: ProgramReader, folder: str) -> dict[str, str]:
    """Return the texts of a program's modules, whose records are in `folder`."""
    return {
        name[len(folder) : -3].replace("/", "."): reader.text(name)
        for name in reader.names()
        if name.startswith(folder) and name.endswith(".py")
    }


def read_program(reader: ProgramReader, program: ScriptProgram, folder: str, constants: Any, data: Any) -> Any:
    """Return the module of a program whose pickles are in `folder`. `constants`, `data`: the pickles' storages."""
    program.longest, program.of_file = reader.longest, True
    program.counts = any("__setstate__" in text for text in program.sources.values())
    found = _unpickle_record(reader, f"{folder}constants.pkl", constants, program)
    if type(found) is not tuple:
        raise RuntimeError(f"the constants are no tuple (in the record {folder}constants.pkl)")
    _check_values(found, reader.length, f"{folder}constants.pkl")
    program.constants = found
    record = f"{folder}data.pkl"
    root = _unpickle_record(reader, record, data, program)
    program.counts, program.counted, program.named_places = False, [], {}
    if not isinstance(root, RecursiveScriptModule):
        raise RuntimeError(f"the archive holds no module (in the record {record})")
    _check_module_tree(root, reader.length, record)
    return root


def _unpickle_record(reader: Any, record: str, storages: Any, program: Any) -> Any:
    data = reader.inflated(record)
    try:
        unpickler = ProgramUnpickler(io.BytesIO(data), storages, data, program, reader.budget)
        found = unpickler.load()
        check_sparse(unpickler.sparse, reader.budget)
        unpickler.set_states(reader.length)
        return found
    except RecursionError:
        raise RuntimeError(f"its values lie too deep in each other (in the record {record})") from None
    except _RAW as error:
        reason = f"{type(error).__name__}: {str(error)[:500]}"
        raise RuntimeError(f"this is no program of TorchScript ({reason}; in the record {record})") from error
    except _ERRORS as error:
        message = str(error)
        if "record" not in message:
            message = f"{message} (in the record {record})"
        if type(error) in (pickle.UnpicklingError, EOFError):
            raise RuntimeError(message) from None
        if message == str(error):
            raise
        raise type(error)(message) from None


def _check_values(values: Any, size: int, record: str) -> None:
    """Raise RuntimeError for values with more references than a file of this size can contain."""
    try:
        count_visited(*values, tensor=0, most=VISITS + 64 * size)
    except RuntimeError as error:
        raise RuntimeError(f"{error} (in the record {record})") from None


def _check_module_tree(root: Any, size: int, record: str) -> None:
    """Raise RuntimeError for a module that contains itself or lacks attributes of its class."""
    pending, inside = [(root, False)], set()
    done: set[int] = set()
    while pending:
        module, left = pending.pop()
        if left:
            inside.discard(id(module))
            continue
        if id(module) in inside:
            raise RuntimeError(f"a module lies in itself (in the record {record})")
        if id(module) in done:
            continue
        done.add(id(module))
        inside.add(id(module))
        pending.append((module, True))
        script = module._script
        _check_values(module._attributes.values(), size, record)
        for name, table in [*((n, module._parameters) for n in script.parameters)]:
            if script.types.get(name) == "Tensor" and name not in table:
                raise RuntimeError(f"{script.name} has no parameter {name[:100]} (in the record {record})")
        pending.extend((child, False) for child in module._modules.values())
        for child in module._modules.values():
            if id(child) in inside:
                raise RuntimeError(f"a module lies in itself (in the record {record})")
