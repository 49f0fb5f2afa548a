"""Loading of a distributed checkpoint into a state dict, with resharding."""

from __future__ import annotations

import os
from typing import Any

from ._storage_utils import reader_for
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .metadata import Metadata
from .planner import LoadPlan, LoadPlanner
from .stateful import Stateful
from .storage import StorageReader
from .utils import _all_gather_keys, _deprecate_positional, _DistWrapper, _warn_if_single_process

__all__ = ["load", "load_state_dict"]


@_deprecate_positional(1)
def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Loads a checkpoint into a state dict. All ranks of the group call it.

    Tensors are loaded in place: a DTensor's shard from any number of ranks and any sharding. Other values are replaced.
    An
    object with a `state_dict` method gets its state through `load_state_dict`. No code of a checkpoint runs: other
    classes
    must be allowed by `torch.serialization.add_safe_globals`.

    Args:
        state_dict: The state dict to load into.
        checkpoint_id: The folder. Default: that of the reader.
        storage_reader: The reader. Default: a `FileSystemReader`.
        planner: The planner. Default: a `DefaultLoadPlanner`.
        process_group: The group. Default: the default group.
        no_dist: Whether this process loads alone. Default: ``False``.

    Raises:
        CheckpointException: A rank fails, raised on all: a name is missing, a tensor has another size, or a file is
            damaged.

    Example:
        >>> import tempfile
        >>> import torchlite.distributed.checkpoint as dcp
        >>> state = {"weight": torch.zeros(2)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dcp.save({"weight": torch.ones(2)}, checkpoint_id=folder, no_dist=True)
        ...     dcp.load(state, checkpoint_id=folder, no_dist=True)
        >>> state
        {'weight': tensor([1., 1.])}
    """
    alone = _warn_if_single_process(no_dist)
    keys = sorted(state_dict if alone else _all_gather_keys(state_dict, process_group))
    states: dict[str, Any] = {}
    for key in keys:  # a `state_dict` method may have to be called on all ranks in one order
        if key in state_dict:
            value = state_dict[key]
            states[key] = value.state_dict() if isinstance(value, Stateful) else value
    reader = reader_for(storage_reader, checkpoint_id)
    _load_state_dict(states, reader, process_group, 0, alone, planner)
    for key, value in states.items():
        holder = state_dict[key]
        if isinstance(holder, Stateful):
            holder.load_state_dict(value)
        else:
            state_dict[key] = value


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """Loads a checkpoint; deprecated name of `load`, without support for objects with a `state_dict` method.

    Args:
        state_dict: The state dict to load into.
        storage_reader: The reader.
        process_group: The group. Default: the default group.
        coordinator_rank: The rank that coordinates. Default: 0.
        no_dist: Whether this process loads alone. Default: ``False``.
        planner: The planner. Default: a `DefaultLoadPlanner`.

    Example:
        >>> import tempfile, warnings
        >>> import torchlite.distributed.checkpoint as dcp
        >>> state = {"weight": torch.zeros(2)}
        >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     _ = dcp.save({"weight": torch.ones(2)}, checkpoint_id=folder, no_dist=True)
        ...     dcp.load_state_dict(state, dcp.FileSystemReader(folder), no_dist=True)
        >>> state
        {'weight': tensor([1., 1.])}
    """
    import warnings

    warnings.warn("'load_state_dict' is deprecated, use 'load' instead.", FutureWarning, stacklevel=2)
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _read_metadata(reader: StorageReader, rank: int) -> tuple[Metadata, bool]:
    """Return the checkpoint's metadata, and whether it covers all ranks. AssertionError if there is none."""
    try:
        return reader.read_metadata(), True
    except OSError as error:
        missing = error
    try:
        return reader.read_metadata(rank=rank), False
    except (OSError, TypeError) as error:
        raise AssertionError(
            f"metadata is None; global metadata read failed: {missing}; rank local metadata read failed: {error}"
        ) from None


def _load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    chosen: LoadPlanner = DefaultLoadPlanner() if planner is None else planner
    of_all = [True]

    def make_local_plan() -> LoadPlan:
        metadata, of_all[0] = _read_metadata(storage_reader, ranks.rank)
        chosen.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        storage_reader.set_up_storage_reader(metadata, ranks.is_coordinator, rank=ranks.rank, use_collectives=of_all[0])
        return storage_reader.prepare_local_plan(chosen.create_local_plan())

    def make_global_plan(plans: list[LoadPlan]) -> list[LoadPlan]:
        return storage_reader.prepare_global_plan(chosen.create_global_plan(plans))

    plan = ranks.reduce_scatter("plan", make_local_plan, make_global_plan)

    def read_data() -> None:
        storage_reader.read_data(chosen.finish_plan(plan), chosen).wait()

    ranks.all_gather("read", read_data)


def _load_state_dict_from_keys(
    keys: set[str] | str | None = None,
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None,
    process_group: Any = None,
) -> dict[str, Any]:
    """Return a state dict of a checkpoint's entries, or those of `keys`; tensors are complete on every rank."""
    alone = _warn_if_single_process(False)
    reader = reader_for(storage_reader, checkpoint_id)
    wanted = {keys} if isinstance(keys, str) else keys
    found: dict[str, Any] = {}
    _load_state_dict(found, reader, process_group, 0, alone, _EmptyStateDictLoadPlanner(keys=wanted))
    return found
