"""The file `.metadata`: a pickle read by an unpickler restricted to PyTorch's metadata classes."""

from __future__ import annotations

import io
import math
import pathlib
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

import torchlite as torch
from torchlite._serialization.checkpoint_writer import pickle_object
from torchlite._serialization.pickle_costs import short_repr
from torchlite._serialization.resource_budget import Budget
from torchlite._serialization.weights_only_unpickler import RestrictedUnpickler
from torchlite._types.layouts import are_valid_sizes

from . import metadata as described
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)

_MODULE = "torch.distributed.checkpoint.metadata"
_NAMES: dict[tuple[str, str], Any] = {
    (_MODULE, name): getattr(described, name) for name in (*described.__all__, "_MEM_FORMAT_ENCODING")
} | {
    (module, name): pathlib.PurePath  # of any system
    for module in ("pathlib", "pathlib._local")
    for name in ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath")
}
_KINDS = (TensorStorageMetadata, BytesStorageMetadata)
# Allowed types of fields by class; other classes are checked after reading.
_PROPERTIES: dict[str, tuple[type, ...]] = {
    "dtype": (torch.dtype,), "layout": (torch.layout,), "requires_grad": (bool,),
    "memory_format": (described._MEM_FORMAT_ENCODING,), "pin_memory": (bool,),
}  # fmt: skip
_FIELDS: dict[type, dict[str, tuple[type, ...]]] = {
    TensorProperties: _PROPERTIES,
    MetadataIndex: {"fqn": (str,), "offset": (torch.Size, type(None)), "index": (int, type(None))},
}
_LENGTH = object()  # the key of a list's length
_FREE_PLACES = 1 << 16  # of lists, that need no path
_PLACE = 240  # bytes for a part of a path
_STEPS = 16  # of the budget, for a number of a part or of a path
_MOST_PAIRS = 1 << 26  # of parts that are compared, in a dimension each


class _Unpickler(RestrictedUnpickler):
    """Unpickler of metadata classes, and of a storage's classes in them."""

    def __init__(self, stream: io.BytesIO, size: int, further: Mapping[tuple[str, str], Any]) -> None:
        super().__init__(stream, _reject_storage, size=size)
        # No user-defined classes: the file's origin is unknown.
        self._allowed = {**_NAMES, **further}
        self._allowed_ids = {id(value) for value in self._allowed.values()}

    def _check(self, function: Any, args: tuple[Any, ...]) -> int | None:
        paid = super()._check(function, args)
        if id(function) in self._allowed_ids and not _is_allowed_call(function, args):
            raise pickle.UnpicklingError(f"metadata make no {short_repr(function)} of these arguments")
        return paid

    def _build_allowed(self, target: Any, state: Any) -> None:
        named = state
        if type(target) is TensorProperties and type(state) is tuple and len(state) == len(_PROPERTIES):
            named = dict(zip(_PROPERTIES, state, strict=True))
        if type(named) is not dict or not is_dataclass(target):
            raise pickle.UnpicklingError(f"metadata have no such state of {short_repr(type(target))}")
        kinds = _FIELDS.get(type(target), {})
        known = {field.name for field in fields(target)}
        for name, value in named.items():
            if name not in known or name in kinds and type(value) not in kinds[name]:
                raise pickle.UnpicklingError(
                    f"metadata have no {short_repr(name)} of {short_repr(type(target))} like this"
                )
        super()._build_allowed(target, state)


def _is_allowed_call(function: Any, args: tuple[Any, ...]) -> bool:
    """True if a call creates metadata: dataclasses without fields, enum members, paths."""
    if is_dataclass(function):
        return not args
    kinds = (str,) if function is pathlib.PurePath else (int, str)
    return all(type(arg) in kinds for arg in args)


def _reject_storage(name: tuple[Any, ...]) -> Any:
    raise pickle.UnpicklingError("metadata have no tensors in them")


def serialize_metadata(metadata: Metadata) -> bytes:
    """Return metadata as file content."""
    data, _ = pickle_object(metadata, pickle, 4, lambda _: "cpu")
    return data


def parse_metadata(data: bytes, further: Mapping[tuple[str, str], Any]) -> Metadata:
    """Read a file's metadata. UnpicklingError if it is damaged or contains other classes.

    `further` has a storage's own classes by PyTorch's names.
    """
    try:
        unpickler = _Unpickler(io.BytesIO(data), len(data), further)
        found = unpickler.load()
    except EOFError as error:
        raise pickle.UnpicklingError(f"the metadata of the checkpoint are not whole: {error}") from None
    wrong = _find_fault(found, unpickler._budget)
    if wrong:
        raise pickle.UnpicklingError(f"the metadata of the checkpoint are damaged: {wrong}")
    return found  # type: ignore[no-any-return]


def _find_fault(found: Any, budget: Budget) -> str:
    """Return the first fault of metadata, or "".

    BudgetExceeded if many names share their parts: each name is charged for all of them.
    """
    if type(found) is not Metadata or type(getattr(found, "state_dict_metadata", None)) is not dict:
        return "there is no state dict in them"
    for name, value in found.state_dict_metadata.items():
        if type(name) is not str or type(value) not in _KINDS:
            return "a state dict's entry is neither a tensor nor bytes"
        if type(value) is TensorStorageMetadata and not _is_tensor(value, budget):
            return f"{short_repr(name)} is no tensor in parts"
    paths = found.planner_data
    if paths is not None and not (type(paths) is dict and all(_is_path(path, budget) for path in paths.values())):
        return "the names' paths are no names and numbers"
    if paths is not None and _count_list_elements(paths.values()) > _FREE_PLACES + sum(map(len, paths.values())):
        return "lists have places that no path leads to"
    if found.storage_meta is not None and type(found.storage_meta) is not StorageMeta:
        return "what the storage says of them is none"
    places = found.storage_data
    if places is not None and not (type(places) is dict and all(type(key) is MetadataIndex for key in places)):
        return "the places of the parts have no names"
    return ""


def find_gaps(metadata: Metadata) -> list[str]:
    """Return the tensors that their parts do not cover exactly."""
    found = []
    for name, value in metadata.state_dict_metadata.items():
        if isinstance(value, TensorStorageMetadata):
            if sum(math.prod(chunk.sizes) for chunk in value.chunks) != math.prod(value.size):
                found.append(f"{short_repr(name)} is not all there")
            elif _boxes_overlap(value.chunks):
                found.append(f"{short_repr(name)} has parts that lie over each other")
    return found


def _boxes_overlap(chunks: list[ChunkStorageMetadata]) -> bool:
    """True if two boxes intersect, or if so many are adjacent that the test would take long."""
    boxes = [(chunk.offsets, chunk.sizes) for chunk in chunks if math.prod(chunk.sizes)]
    if len(boxes) < 2:
        return False
    begin = np.array([offsets for offsets, _ in boxes])
    end = begin + np.array([sizes for _, sizes in boxes])
    own = np.arange(len(boxes)) + 1
    sweeps = []  # by dimension: a sorted order of the boxes, and how far each reaches
    for dim in range(begin.shape[1]):
        order = np.argsort(begin[:, dim], kind="stable")
        reach = np.searchsorted(begin[order, dim], end[order, dim])
        sweeps.append((int((reach - own).sum()), order, reach))
    pairs, order, reach = min(sweeps, key=lambda sweep: sweep[0])
    begin, end = begin[order], end[order]
    return pairs * begin.shape[1] > _MOST_PAIRS or any(
        ((begin[i + 1 : last] < end[i]) & (end[i + 1 : last] > begin[i])).all(1).any()
        for i, last in enumerate(reach.tolist())
        if last > i + 1
    )


def _is_tensor(value: TensorStorageMetadata, budget: Budget) -> bool:
    held = vars(value)
    properties, size, chunks = held.get("properties"), held.get("size"), held.get("chunks")
    if type(chunks) is list and type(size) is torch.Size:
        budget.spend(_STEPS * (2 + len(size)) * len(chunks))
    return (
        isinstance(getattr(properties, "dtype", None), torch.dtype)
        and _is_size(size)
        and type(chunks) is list
        and all(type(chunk) is ChunkStorageMetadata and _is_box(vars(chunk), size) for chunk in chunks)
    )


def _is_box(held: dict[str, Any], size: Any) -> bool:
    offsets, sizes = held.get("offsets"), held.get("sizes")
    return (
        _is_size(offsets)
        and _is_size(sizes)
        and len(offsets) == len(sizes) == len(size)  # type: ignore[arg-type]
        and all(begin + count <= whole for begin, count, whole in zip(offsets, sizes, size, strict=True))  # type: ignore[arg-type]
    )


def _is_size(value: Any) -> bool:
    return type(value) is torch.Size and are_valid_sizes(value)


def _is_path(value: Any, budget: Budget) -> bool:
    if type(value) is tuple:
        budget.spend(_STEPS * len(value))
        budget.take(_PLACE * len(value))
    return type(value) is tuple and all(
        type(part) is str or type(part) is int and 0 <= part < 1 << 31 for part in value
    )


def _count_list_elements(paths: Iterable[tuple]) -> int:
    """Return the number of elements of all lists: an integer in a path is a list index, up to which the list is
    filled.
    """
    root: dict[Any, Any] = {}
    places = 0
    for path in paths:
        found = root
        for part in path:
            if type(part) is int and part >= found.get(_LENGTH, 0):
                places += part + 1 - found.get(_LENGTH, 0)
                found[_LENGTH] = part + 1
            found = found.setdefault(part, {})
    return places
