"""Unpicklers of packages: the restricted one, and Python's for trusted packages. TorchScript modules load with both."""

from __future__ import annotations

import functools
import io
import pickle
from typing import Any

from .._serialization.checkpoint_reader import ArchiveStorages, LoadRequest, _UserFunctionError, check_sparse
from .._serialization.pickle_globals import to_python3_name
from .._serialization.pytorch_names import resolve_pytorch_name
from .._serialization.weights_only_unpickler import RestrictedUnpickler
from .._types.devices import device as device_type
from ..jit._compilation_unit import ScriptProgram
from ..jit._load import read_program, read_sources
from ..jit._program_archive import ProgramReader
from ..serialization import _get_restore_location

_CODE = ".data/ts_code/"
# Pickles refer to TorchScript modules as calls of this function.
_SCRIPT_NAME = ("torch.jit._script", "unpackage_script_module")
_SCRIPT = object()
_STEPS_PER_LETTER = 4


class _Storages(ArchiveStorages):
    """The storages of a package. Its pickles and its TorchScript modules share them."""

    def __call__(self, identity: Any) -> Any:
        if type(identity) is tuple and len(identity) == 5 and type(identity[2]) is int:
            identity = (*identity[:2], str(identity[2]), *identity[3:])
        return super().__call__(identity)

    def _record_of(self, key: str) -> str:
        return f".data/{key.removesuffix('.storage')}.storage"


class _Reading:
    """State of one call of `load_pickle`."""

    def __init__(self, importer: Any, reader: ProgramReader, map_location: Any):
        how = LoadRequest(
            map_location, pickle, importer.weights_only, _get_restore_location(map_location), {"encoding": "utf-8"}
        )
        self.importer, self.reader, self._where = importer, reader, map_location
        self.storages = _Storages(reader, how)
        self._scripts: dict[str, Any] = {}
        self._reduced: dict[Any, Any] = {}

    @functools.cached_property
    def _sources(self) -> dict[str, str]:
        return read_sources(self.reader, f"{_CODE}code/")

    def load_script(self, args: Any) -> Any:
        """Return the TorchScript module whose number a pickle has."""
        if type(args) is not tuple or len(args) != 1 or type(args[0]) is not str:
            raise pickle.UnpicklingError("a TorchScript module of a package is named by a text")
        number = args[0]
        if number not in self._scripts:
            # Each program compiles what it needs of the sources, which all of them share.
            self.reader.budget.spend(_STEPS_PER_LETTER * sum(map(len, self._sources.values())))
            program = ScriptProgram(self._sources, (), self.reader.version(), self.importer.filename)
            found = read_program(self.reader, program, f"{_CODE}{number}/", self.storages, self.storages)
            if isinstance(self._where, (str, device_type)):
                program.move(device_type(self._where), tensors=False)
            self._scripts[number] = found
        return self._scripts[number]

    def load_persistent(self, identity: Any) -> Any:
        """Return what a trusted pickle refers to: a storage, or the result of a function that gets the importer."""
        if identity[0] != "reduce_package":
            return self.storages(identity)
        *key, function, args = identity[1:]
        if function is _SCRIPT:
            return self.load_script(args)
        if not key:
            return function(self.importer, *args)
        if key[0] not in self._reduced:
            self._reduced[key[0]] = function(self.importer, *args)
        return self._reduced[key[0]]


class _NeedsTrust(pickle.UnpicklingError):
    """A pickle needs what only a trusted package may have."""


class _RestrictedUnpickler(RestrictedUnpickler):
    def __init__(self, reading: _Reading, data: bytes):
        super().__init__(io.BytesIO(data), reading.storages, "utf-8", len(data), data, reading.reader.budget)
        self._reading = reading

    def _global(self, module: str, name: str) -> None:
        if (module, name) == _SCRIPT_NAME:
            self._push(_SCRIPT)
            return
        if self._reading.importer._source_of(module) is not None:
            raise _NeedsTrust(f"it needs {module}.{name}, which is code of the package")
        try:
            super()._global(module, name)
        except pickle.UnpicklingError as error:
            raise _NeedsTrust(str(error)) from None

    def _persistent(self) -> None:
        identity = self._top()
        if type(identity) is tuple and len(identity) in (3, 4) and identity[0] == "reduce_package":
            self._pop()
            if identity[-2] is not _SCRIPT:
                raise _NeedsTrust("it calls a function of the package's format, which may run its code")
            self._push(self._reading.load_script(identity[-1]))
        else:
            super()._persistent()


_RestrictedUnpickler.handlers = RestrictedUnpickler.handlers | {pickle.BINPERSID: _RestrictedUnpickler._persistent}


class _TrustedUnpickler(pickle.Unpickler):
    def __init__(self, reading: _Reading, data: bytes):
        super().__init__(io.BytesIO(data))
        self._reading = reading

    def find_class(self, module: str, name: str) -> Any:
        importer = self._reading.importer
        if (module, name) == _SCRIPT_NAME:
            return _SCRIPT
        if importer._source_of(module) is None:
            if module == "torch" or module.startswith("torch."):
                return resolve_pytorch_name(module, name)
            module, name = to_python3_name(module, name)
        return functools.reduce(getattr, name.split("."), importer.import_module(module))

    def persistent_load(self, identity: Any) -> Any:
        return self._reading.load_persistent(identity)


def load(importer: Any, reader: ProgramReader, path: str, map_location: Any, advice: str) -> Any:
    """Return the object of the pickle in a record. Errors of a pickle that needs trust have the advice."""
    data = reader.inflated(path)
    reading = _Reading(importer, reader, map_location)
    if not importer.weights_only:
        return _TrustedUnpickler(reading, data).load()
    unpickler = _RestrictedUnpickler(reading, data)
    try:
        found = unpickler.load()
        check_sparse(unpickler.sparse, reader.budget)
        return found
    except _UserFunctionError as error:
        raise error.cause from None
    except pickle.UnpicklingError as error:
        more = f". {advice}" if isinstance(error, _NeedsTrust) else ""
        raise pickle.UnpicklingError(f"Weights only load failed: {error} (in the record {path}){more}") from None
    except (RuntimeError, EOFError) as error:
        if type(error) in (RuntimeError, EOFError) and "record" not in str(error):
            raise type(error)(f"{error} (in the record {path})") from None
        raise
