"""Default save and load planners: each rank writes its shards, replicated values once, and reads what it needs."""

from __future__ import annotations

import dataclasses
import io
import itertools
import operator
from functools import reduce
from typing import Any

import torchlite as torch
from torchlite.distributed._local_shards import narrow_to_box

from ._nested_dict import FLATTEN_MAPPING, _flatten_state_dict_v_2_3, flatten_state_dict
from ._traverse import set_element
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType
from .planner_helpers import (
    _create_default_metadata_only_plan,
    _create_read_items,
    _create_write_items,
    _init_state_dict,
    as_bytes,
    is_on_other_ranks,
)
from .utils import find_state_dict_object

__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan", "create_default_global_save_plan",
    "create_default_local_load_plan", "create_default_local_save_plan",
]  # fmt: skip

VERSION = "1.0.0"  # of the metadata


class DefaultSavePlanner(SavePlanner):
    """Writes a state dict under flat names; one rank writes a replicated value.

    That is the rank with the least to write. Subclasses may override `lookup_object` and `transform_object`.

    Args:
        flatten_state_dict: Whether nested dictionaries and lists become flat names. Default: ``True``.
        flatten_sharded_tensors: Has no effect.
        dedup_replicated_tensors: Deprecated; warns.
        dedup_save_to_lowest_rank: Whether the lowest rank writes a replicated value. Default: ``False``.
        enable_plan_caching: Has no effect: each save makes its plan.

    Example:
        >>> import tempfile
        >>> import torchlite.distributed.checkpoint as dcp
        >>> planner = dcp.DefaultSavePlanner(dedup_save_to_lowest_rank=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     state = {"model": {"bias": torch.ones(1)}}
        ...     metadata = dcp.save(state, checkpoint_id=folder, planner=planner, no_dist=True)
        >>> list(metadata.state_dict_metadata)
        ['model.bias']
    """

    mappings: FLATTEN_MAPPING

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self._enable_plan_caching = enable_plan_caching
        self.mappings = {}
        if dedup_replicated_tensors is not None:
            import warnings

            warnings.warn(
                "DefaultSavePlanner's `dedup_replicated_tensors` argument is being deprecated, and no longer has any "
                "effect. Please remove this argument from your call.",
                stacklevel=2,
            )

    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        plans = dedup_save_plans(all_plans, self.dedup_save_to_lowest_rank)
        plans, metadata = create_default_global_save_plan(plans)
        if self.flatten_state_dict:
            paths: FLATTEN_MAPPING = {}
            for plan in reversed(all_plans):
                paths.update(plan.planner_data)
            metadata = dataclasses.replace(metadata, planner_data=paths)
        wrong = _validate_global_plan(plans, metadata)
        if wrong:
            raise ValueError(f"Failed to validate global plan: {'; '.join(wrong)}")
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> torch.Tensor | io.BytesIO:
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """Returns the state dict's object at an index.

        Args:
            index: The index.
        """
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """Returns what is written for an object.

        Args:
            write_item: The item.
            object: The object.
        """
        return as_bytes(object) if write_item.type == WriteItemType.BYTE_IO else object


class DefaultLoadPlanner(LoadPlanner):
    """Reads into the tensors of a state dict, whatever the sharding of the checkpoint; replaces other values.

    Subclasses may override `lookup_tensor` and `transform_tensor`.

    Args:
        flatten_state_dict: Whether nested dictionaries and lists have flat names. Default: ``True``.
        flatten_sharded_tensors: Has no effect.
        allow_partial_load: Whether a value that the checkpoint lacks stays as it is. Default: ``False``.

    Example:
        >>> import tempfile
        >>> import torchlite.distributed.checkpoint as dcp
        >>> state = {"weight": torch.zeros(2), "more": torch.zeros(1)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dcp.save({"weight": torch.ones(2)}, checkpoint_id=folder, no_dist=True)
        ...     planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
        ...     dcp.load(state, checkpoint_id=folder, planner=planner, no_dist=True)
        >>> state
        {'weight': tensor([1., 1.]), 'more': tensor([0.])}
    """

    original_state_dict: dict[str, Any]
    mappings: FLATTEN_MAPPING

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict, self.mappings = {}, {}

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        _init_state_dict(state_dict)
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator

    def create_local_plan(self) -> LoadPlan:
        assert self.metadata is not None
        if self.flatten_state_dict and self.metadata.version is None:
            older, paths = _flatten_state_dict_v_2_3(self.original_state_dict)
            if any(name not in self.metadata.state_dict_metadata for name in self.state_dict):
                self.state_dict, self.mappings = older, paths
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan: LoadPlan) -> LoadPlan:
        return new_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Loads an object; only classes that `torch.serialization.add_safe_globals` allows.

        Args:
            read_item: The item.
            value: The bytes.
        """
        found = torch.load(value, weights_only=True)
        name = read_item.dest_index.fqn
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], found)
        else:
            self.state_dict[name] = found

    def resolve_tensor(self, read_item: ReadItem) -> torch.Tensor:
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: torch.Tensor) -> None:
        """Does nothing: the tensor is the state dict's own.

        Args:
            read_item: The item.
            tensor: The tensor.
        """

    def lookup_tensor(self, index: MetadataIndex) -> torch.Tensor:
        """Returns the state dict's tensor at an index.

        Args:
            index: The index.
        """
        return find_state_dict_object(self.state_dict, index)  # type: ignore[no-any-return]

    def transform_tensor(self, read_item: ReadItem, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the box of a tensor that an item is read into.

        Args:
            read_item: The item.
            tensor: The tensor.
        """
        return narrow_to_box(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Fills a state dict with the checkpoint's entries, or those of `keys`: full names, or prefixes that end before a
    dot.
    """

    def __init__(self, keys: Any = None, *args: Any, **kwargs: Any) -> None:
        self.keys = keys
        super().__init__(*args, **kwargs)

    def _should_include_key(self, key: str, metadata: Metadata) -> bool:
        if self.keys is None or key in self.keys:
            return True
        wanted = {self.keys} if isinstance(self.keys, str) else self.keys
        path = [str(part) for part in (metadata.planner_data or {}).get(key, key.split("."))]
        return any(".".join(path[:count]) in wanted for count in range(1, len(path) + 1))

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        if state_dict:
            raise AssertionError("state_dict must be empty")
        if metadata is None:
            raise AssertionError("metadata must not be None")
        for name, described in metadata.state_dict_metadata.items():
            if not self._should_include_key(name, metadata):
                continue
            value: Any = described
            if isinstance(described, TensorStorageMetadata):
                value = torch.empty(described.size, dtype=described.properties.dtype)
            if metadata.planner_data and name in metadata.planner_data:
                set_element(state_dict, metadata.planner_data[name], value)
            else:
                state_dict[name] = value
        super().set_up_planner(state_dict, metadata, is_coordinator)


def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata, strict: bool = True) -> LoadPlan:
    """Return this rank's read items.

    With `strict` RuntimeError for a name missing in the checkpoint; ValueError for a tensor of another size.
    """
    items: list[ReadItem] = []
    for fqn, value in state_dict.items():
        if fqn not in metadata.state_dict_metadata:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {fqn}.")
            continue
        described = metadata.state_dict_metadata[fqn]
        if isinstance(described, TensorStorageMetadata) and getattr(value, "size", None) is not None:
            if described.size != value.size():
                raise ValueError(f"Size mismatch between saved {described.size} and current: {value.size()} for {fqn}")
        if not is_on_other_ranks(value):
            items += _create_read_items(fqn, described, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """Return the plans unchanged."""
    return all_plans


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """Return write items for everything on this rank; the global plan removes duplicates.

    `is_coordinator` has no effect: every rank plans alike.
    """
    return SavePlan(
        [
            item
            for fqn, value in state_dict.items()
            if not is_on_other_ranks(value)
            for item in _create_write_items(fqn, value)
        ]
    )


def dedup_save_plans(all_plans: list[SavePlan], save_to_lowest_rank: bool = False) -> list[SavePlan]:
    """Return the plans with each item in one of them: the one with the least to write, or the first."""
    holders: dict[MetadataIndex, list[int]] = {}
    found: dict[MetadataIndex, WriteItem] = {}
    for number, plan in enumerate(all_plans):
        for item in plan.items:
            holders.setdefault(item.index, []).append(number)
            found[item.index] = item
    sizes = [0] * len(all_plans)
    chosen: list[set[MetadataIndex]] = [set() for _ in all_plans]
    # Items of one rank are counted first.
    for index, numbers in sorted(holders.items(), key=lambda entry: len(entry[1]) > 1):
        best = numbers[0] if save_to_lowest_rank else min(numbers, key=lambda number: sizes[number])
        chosen[best].add(index)
        sizes[best] += found[index].tensor_storage_size() or 1
    return [
        dataclasses.replace(plan, items=[item for item in plan.items if item.index in mine])
        for plan, mine in zip(all_plans, chosen, strict=True)
    ]


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """Return the plans with part numbers in their items, and the metadata of the checkpoint."""
    described: dict[str, Any] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            name = item.index.fqn
            if item.type != WriteItemType.SHARD and name in described:
                raise AssertionError(f"item.index.fqn {name} already in md")
            if item.type == WriteItemType.BYTE_IO:
                described[name] = BytesStorageMetadata()
                items.append(item)
                continue
            if item.tensor_data is None:
                raise AssertionError("item.tensor_data is not None")
            data = item.tensor_data
            tensor = described.setdefault(name, TensorStorageMetadata(data.properties, data.size, []))
            if rewrite_index_hints:
                item = dataclasses.replace(item, index=dataclasses.replace(item.index, index=len(tensor.chunks)))
            items.append(item)
            tensor.chunks.append(data.chunk)
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(described, version=VERSION)


def _create_default_local_metadata(state_dict: dict[str, Any]) -> Metadata:
    """Return the metadata of a checkpoint of this rank alone."""
    return create_default_global_save_plan([_create_default_metadata_only_plan(state_dict)])[1]


def _check_box_overlap(box0: ChunkStorageMetadata, box1: ChunkStorageMetadata) -> bool:
    """True if two boxes intersect."""
    return all(
        a < b + m and b < a + n for a, n, b, m in zip(box0.offsets, box0.sizes, box1.offsets, box1.sizes, strict=True)
    )


def _check_box_bounds(outer_box_size: torch.Size, inner_box: ChunkStorageMetadata) -> bool:
    """True if a box lies within a tensor of a size."""
    return len(outer_box_size) == len(inner_box.offsets) == len(inner_box.sizes) and all(
        offset >= 0 and size >= 0 and offset + size <= whole
        for whole, offset, size in zip(outer_box_size, inner_box.offsets, inner_box.sizes, strict=True)
    )


def _validate_global_plan(global_plan: list[SavePlan], metadata: Metadata) -> list[str]:
    """Return messages for parts that are out of bounds, overlap, or do not cover their tensor."""
    wrong = []
    for name, described in metadata.state_dict_metadata.items():
        if isinstance(described, BytesStorageMetadata) or not described.size:
            continue
        volume = 0
        for chunk in described.chunks:
            if not _check_box_bounds(described.size, chunk):
                wrong.append(f"key:{name} has out of bounds chunk: outer-size:{described.size} chunk: {chunk}")
            volume += reduce(operator.mul, chunk.sizes, 1)
        if _any_overlap(described.chunks):
            wrong.append(f"key:{name} has overlapping chunks")
        whole = reduce(operator.mul, described.size, 1)
        if volume != whole:
            wrong.append(f"key:{name} invalid fill tensor-volume: {whole} chunks-volume: {volume}")
    return wrong


def _any_overlap(chunks: list[ChunkStorageMetadata]) -> bool:
    """True if any two boxes intersect. Sorting by the first dimension leaves few pairs to test."""
    ordered = sorted((chunk for chunk in chunks if all(chunk.sizes)), key=lambda chunk: tuple(chunk.offsets))
    for number, chunk in enumerate(ordered):
        end = chunk.offsets[0] + chunk.sizes[0]
        for other in itertools.islice(ordered, number + 1, None):
            if other.offsets[0] >= end:
                break
            if _check_box_overlap(chunk, other):
                return True
    return False
