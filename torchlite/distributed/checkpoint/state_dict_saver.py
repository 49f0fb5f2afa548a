"""Saving of a state dict as a distributed checkpoint, synchronously or in the background."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torchlite.distributed as dist

from ._storage_utils import writer_for
from .default_planner import DefaultSavePlanner
from .metadata import Metadata
from .planner import SavePlan, SavePlanner
from .staging import AsyncStager, BlockingAsyncStager
from .stateful import Stateful
from .storage import StorageWriter, WriteResult
from .utils import _deprecate_positional, _DistWrapper, _warn_if_single_process

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(Enum):
    """Where an asynchronous save runs."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """Futures of the copy, and of the complete checkpoint."""

    staging_completion: Future[None]
    upload_completion: Future[None]


@_deprecate_positional(1)
def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Saves a state dict to a checkpoint. All ranks of the group call it.

    Each rank writes its shards of DTensors, and one rank a replicated value. An object with a `state_dict` method is
    saved
    through it. The checkpoint is valid once the file ``.metadata`` exists; an earlier one is valid until then.

    Args:
        state_dict: The state dict.
        checkpoint_id: The folder. Default: that of the writer.
        storage_writer: The writer. Default: a `FileSystemWriter`.
        planner: The planner. Default: a `DefaultSavePlanner`.
        process_group: The group. Default: the default group.
        no_dist: Whether this process saves alone. Default: ``False``.
        use_collectives: ``False`` lets each rank save without the others, with its own metadata. Default: ``True``.

    Returns:
        The `Metadata`.

    Raises:
        CheckpointException: A rank fails; raised on all.
        RuntimeError: There is neither a folder nor a writer.

    Example:
        >>> import tempfile
        >>> import torchlite.distributed.checkpoint as dcp
        >>> folder = tempfile.TemporaryDirectory()
        >>> _ = dcp.save({"weight": torch.arange(3.0), "step": 7}, checkpoint_id=folder.name, no_dist=True)
        >>> state = {"weight": torch.zeros(3), "step": 0}
        >>> dcp.load(state, checkpoint_id=folder.name, no_dist=True)
        >>> state
        {'weight': tensor([0., 1., 2.]), 'step': 7}
        >>> folder.cleanup()
    """
    alone = _warn_if_single_process(no_dist)
    writer = writer_for(storage_writer, checkpoint_id)
    return _save_state_dict(
        _stateful_to_state_dict(state_dict), writer, process_group, 0, alone, planner, use_collectives
    )


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    """Saves a state dict; deprecated name of `save`, without support for objects with a `state_dict` method.

    Args:
        state_dict: The state dict.
        storage_writer: The writer.
        process_group: The group. Default: the default group.
        coordinator_rank: The rank that coordinates. Default: 0.
        no_dist: Whether this process saves alone. Default: ``False``.
        planner: The planner. Default: a `DefaultSavePlanner`.

    Returns:
        The `Metadata`.

    Example:
        >>> import tempfile, warnings
        >>> import torchlite.distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     metadata = dcp.save_state_dict({"weight": torch.ones(2)}, dcp.FileSystemWriter(folder), no_dist=True)
        >>> list(metadata.state_dict_metadata)
        ['weight']
    """
    import warnings

    warnings.warn("'save_state_dict' is deprecated, use 'save' instead.", FutureWarning, stacklevel=2)
    storage_writer.reset()
    return _save_state_dict(state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner)


_pool: dict[str, ThreadPoolExecutor] = {}
_groups: dict[Any, Any] = {}


def _make_background_group(process_group: Any) -> Any:
    """Return a group of the same ranks for background saves, whose messages must not mix with the program's."""
    key = process_group if process_group is not None else dist.group.WORLD
    if key not in _groups or _groups[key] not in dist.distributed_c10d._world.pg_map:
        _groups.clear()  # those of worlds that have ended
        _groups[key] = dist.new_group(dist.get_process_group_ranks(key))
    return _groups[key]


@_deprecate_positional(1)
def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: AsyncStager | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future[Any] | AsyncSaveResponse:
    """Saves a copy of a state dict in the background. All ranks of the world call it.

    Wait for the result before another save. ``AsyncCheckpointerType.PROCESS`` starts a process that serialises and
    writes this rank's part, and later those of other saves. A thread of this process talks to the other ranks. The
    process is started with the method "spawn", so the program's main module must be importable. It ends with this one.

    Args:
        state_dict: The state dict.
        checkpoint_id: The folder. Default: that of the writer.
        storage_writer: The writer. Default: a `FileSystemWriter`.
        planner: The planner. Default: a `DefaultSavePlanner`.
        process_group: The group. Default: the default group.
        async_checkpointer_type: What writes: a thread, or a process of its own. Default:
            ``AsyncCheckpointerType.THREAD``.
        async_stager: Makes the copy. Default: the writer, if it can, else a `BlockingAsyncStager`.
        no_dist: Whether this process saves alone. Default: ``False``.
        use_collectives: As for `save`.

    Returns:
        A future of the `Metadata`. If ``async_stager`` copies in the background, an `AsyncSaveResponse`; the state dict
        must not change until its ``staging_completion``.

    Raises:
        TypeError: ``async_checkpointer_type`` is no `AsyncCheckpointerType`. The errors of the save come with the
            future, as a `CheckpointException`.

    Example:
        >>> import tempfile
        >>> import torchlite.distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     future = dcp.async_save({"weight": torch.ones(2)}, checkpoint_id=folder, no_dist=True)
        ...     list(future.result().state_dict_metadata)
        ['weight']
    """
    if not isinstance(async_checkpointer_type, AsyncCheckpointerType):
        raise TypeError(f"async_checkpointer_type must be an AsyncCheckpointerType, not {async_checkpointer_type!r}")
    alone = _warn_if_single_process(no_dist)
    writer = writer_for(storage_writer, checkpoint_id)
    if async_stager is None:
        async_stager = writer if isinstance(writer, AsyncStager) else BlockingAsyncStager()
    group = None if alone else _make_background_group(process_group)
    staged = async_stager.stage(_stateful_to_state_dict(state_dict))
    if not _pool:
        _pool["thread"] = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")

    def run() -> Metadata:
        state = staged.result() if isinstance(staged, Future) else staged
        in_process = async_checkpointer_type is AsyncCheckpointerType.PROCESS
        return _save_state_dict(state, writer, group, 0, alone, planner, use_collectives, in_process)

    saved = _pool["thread"].submit(run)
    if isinstance(staged, Future):
        return AsyncSaveResponse(staged, saved)  # type: ignore[arg-type]
    if async_stager.should_synchronize_after_execute:
        async_stager.synchronize_staging()
    return saved


def _stateful_to_state_dict(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Return the state dict with stateful objects replaced by their states."""
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


def _save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
    use_collectives: bool = True,
    in_process: bool = False,
) -> Metadata:
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    chosen: SavePlanner = DefaultSavePlanner() if planner is None else planner
    described: list[Metadata] = []

    def make_local_plan() -> SavePlan:
        chosen.set_up_planner(
            state_dict=state_dict, storage_meta=storage_writer.storage_meta(), is_coordinator=ranks.is_coordinator
        )
        storage_writer.set_up_storage_writer(ranks.is_coordinator, rank=ranks.rank, use_collectives=use_collectives)
        return storage_writer.prepare_local_plan(chosen.create_local_plan())

    def make_global_plan(plans: list[SavePlan]) -> list[SavePlan]:
        whole, metadata = chosen.create_global_plan(plans)
        described[:] = [metadata]
        return storage_writer.prepare_global_plan(whole)

    def write_data(plan: SavePlan) -> list[WriteResult]:
        if in_process:
            from ._writer_process import writer_process

            return writer_process().write(storage_writer, chosen.finish_plan(plan), chosen)
        future = storage_writer.write_data(chosen.finish_plan(plan), chosen)
        future.wait()
        return future.value()

    def finish_checkpoint(results: list[list[WriteResult]]) -> Metadata:
        storage_writer.finish(metadata=described[0], results=results)
        return described[0]

    if use_collectives:
        plan = ranks.reduce_scatter("plan", make_local_plan, make_global_plan)
        return ranks.all_reduce("write", lambda: write_data(plan), finish_checkpoint)
    alone = _DistWrapper(None, False, 0)

    def make_global_plan_without_storage(plans: list[SavePlan]) -> list[SavePlan]:
        whole, metadata = chosen.create_global_plan(plans)
        described[:] = [metadata]
        return whole

    mine = alone.reduce_scatter("plan", make_local_plan, make_global_plan_without_storage)
    result = alone.all_reduce("write", lambda: write_data(mine), finish_checkpoint)
    ranks.barrier()
    return result
