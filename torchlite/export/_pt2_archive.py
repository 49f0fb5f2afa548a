"""Reads the archive of a `.pt2` file: records, JSON and tensors."""

from __future__ import annotations

import functools
import json
import math
from typing import Any

import torchlite as torch
from torchlite._serialization.resource_budget import MAX_DEPTH
from torchlite._serialization.tensor_rebuild import _rebuild_tensor
from torchlite._serialization.zip_archive import ArchiveReader
from torchlite._types.layouts import MAX_DIMS
from torchlite.fx._codegen import _PyTreeCodeGen, _PyTreeInfo
from torchlite.nn.parameter import Parameter
from torchlite.serialization import _load_part
from torchlite.utils._pytree import tree_structure

from ._serde_schema import DTYPES, format_error


def typed_field(entry: Any, name: str, kinds: Any, where: str) -> Any:
    """Return a field of a JSON object after a type check."""
    if type(entry) is not dict or name not in entry:
        raise format_error(where, f"there is no field {name!r}")
    value = entry[name]
    kind = type(value)
    if kind is kinds or type(kinds) is tuple and kind in kinds:
        return value
    wanted = kinds if type(kinds) is tuple else (kinds,)
    raise format_error(where, f"field {name!r} is {kind.__name__}, not {' or '.join(k.__name__ for k in wanted)}")


def parse_union(entry: Any, where: str) -> tuple[str, Any]:
    """Return tag and value of a one-key object."""
    if type(entry) is not dict or len(entry) != 1:
        raise format_error(where, "an object with one key is wanted")
    return next(iter(entry.items()))


def check_name(name: Any, where: str) -> str:
    """Check the dotted name of a parameter, buffer, constant or module. Raise FormatError if a part is no valid or a
    reserved attribute name.
    """
    if not is_valid_name(name):
        raise format_error(where, f"{str(name)[:100]!r} cannot be the name of an attribute")
    return name


def is_valid_name(name: Any) -> bool:
    """True if the dotted name is valid in a file."""
    if type(name) is not str or len(name) > 4096:
        return False
    parts = name.split(".")
    return len(parts) <= MAX_DEPTH and all(map(_can_be_attribute, parts))


@functools.lru_cache(maxsize=4096)
def _can_be_attribute(part: str) -> bool:
    return part.isprintable() and part != "" and not part.startswith("__") and part not in _reserved_attribute_names()


@functools.cache
def _reserved_attribute_names() -> frozenset[str]:
    """Return the attributes of every graph module, which a file's names must not shadow."""
    from ._unlift import ProgramModule

    graph = torch.fx.Graph()
    graph.output(())
    graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo([], tree_structure(((), {})), None)))
    return frozenset(dir(ProgramModule(torch.nn.Module(), graph)))


def parse_int(entry: Any, where: str) -> int:
    """Return a size: `{"as_int": n}`, or the hint of an expression."""
    tag, value = parse_union(entry, where)
    if tag == "as_expr" and type(value) is dict and type(value.get("hint")) is dict:
        value = value["hint"].get("as_int")
    if type(value) is not int or not -(1 << 62) < value < 1 << 62:
        raise format_error(where, "a size is no integer")
    return value


def parse_json(data: bytes, where: str) -> Any:
    """Parse a record's JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError, MemoryError) as error:
        raise format_error(where, f"it is no JSON ({type(error).__name__}: {str(error)[:100]})") from None


class Pt2Reader:
    """Records of an archive, checked on access."""

    def __init__(self, stream: Any, from_position: bool = False) -> None:
        self.reader = ArchiveReader(stream, from_position=from_position)
        self._storages: dict[str, Any] = {}
        self._tensors: dict[tuple, Any] = {}

    def has(self, name: str) -> bool:
        return self.reader.has(name)

    def bytes(self, name: str) -> bytes:
        if not self.reader.has(name):
            raise format_error(name, "the archive has no such record")
        return self.reader.bytes(name)

    def json(self, name: str) -> Any:
        return parse_json(self.bytes(name), name)

    def names(self) -> list[str]:
        return self.reader.names()

    def checkpoint(self, name: str, map_location: Any = None) -> Any:
        """Return a nested checkpoint's content; it counts towards the file's budget."""
        return _load_part(self.bytes(name), self.reader.budget, map_location)

    def tensors(self, folder: str, config: str) -> dict[str, Any]:
        """Return the tensors that a config describes, by name, with parameters as Parameter."""
        if not self.has(f"{folder}{config}"):
            return {}
        entries = typed_field(self.json(f"{folder}{config}"), "config", dict, config)
        return {
            check_name(name, config): self._read_tensor(entry, folder, f"{config}, {name[:100]}")
            for name, entry in entries.items()
        }

    def _read_tensor(self, entry: Any, folder: str, where: str) -> Any:
        path = folder + typed_field(entry, "path_name", str, where)
        if typed_field(entry, "use_pickle", bool, where):
            if not self.has(path):
                raise format_error(where, f"there is no record {path[:100]}")
            return self._load_pickled_tensor(path, where)
        meta = typed_field(entry, "tensor_meta", dict, where)
        sizes = [parse_int(n, where) for n in typed_field(meta, "sizes", list, where)]
        strides = [parse_int(n, where) for n in typed_field(meta, "strides", list, where)]
        offset = parse_int(typed_field(meta, "storage_offset", dict, where), where)
        dtype = DTYPES.get(typed_field(meta, "dtype", int, where))
        if dtype is None:
            raise format_error(where, f"its dtype {meta['dtype']} is unknown")
        if len(sizes) != len(strides) or len(sizes) > MAX_DIMS or min([0, offset, *sizes, *strides]) < 0:
            raise format_error(where, "its sizes and strides do not fit")
        is_param, wants = typed_field(entry, "is_param", bool, where), typed_field(meta, "requires_grad", bool, where)
        kind = typed_field(typed_field(meta, "device", dict, where), "type", str, where)
        key = (path, *sizes, None, *strides, offset, dtype, is_param, wants, kind)
        if key not in self._tensors:
            if kind == "meta" or not self.has(path) and math.prod(sizes):
                if kind != "meta":
                    raise format_error(where, f"there is no record {path[:100]}")
                tensor = torch.empty_strided(sizes, strides, dtype=dtype, device="meta")
            else:
                tensor = self._make_tensor_on_record(path, dtype, sizes, strides, offset, where)
            wants = wants and (dtype.is_floating_point or dtype.is_complex)
            self._tensors[key] = Parameter(tensor, wants) if is_param else tensor.requires_grad_(wants)
        return self._tensors[key]

    def _make_tensor_on_record(self, path: str, dtype: Any, sizes: list, strides: list, offset: int, where: str) -> Any:
        """Return a tensor over a record's bytes."""
        last = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
        if not math.prod(sizes):
            return torch.empty_strided(sizes, strides, dtype=dtype)
        if path not in self._storages:
            self._storages[path] = torch.from_numpy(self.reader.array(path)).untyped_storage()
        storage = self._storages[path]
        if (last + 1) * dtype.itemsize > storage.nbytes():
            raise format_error(where, f"a tensor of size {sizes[:20]} reaches beyond the record {path[:100]}")
        typed = torch.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)
        return _rebuild_tensor(typed, offset, tuple(sizes), tuple(strides))

    def _load_pickled_tensor(self, path: str, where: str) -> Any:
        """Return a tensor stored as a nested checkpoint."""
        if (path,) not in self._tensors:
            found = self.checkpoint(path)
            if not isinstance(found, torch.Tensor):
                raise format_error(where, f"the record {path[:100]} holds no tensor")
            self._tensors[path,] = found
        return self._tensors[path,]
