"""Process groups and collectives under PyTorch's names, re-exported from their modules."""

from __future__ import annotations

import zlib
from typing import Any, NewType, NoReturn

from ._backend_config import (
    Backend,
    BackendConfig,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_ucc_available,
    is_xccl_available,
)
from ._coalescing import _coalescing_manager as _coalescing_manager
from ._coalescing import _CoalescingManager as _CoalescingManager
from ._collective_options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    default_pg_timeout,
)
from ._collectives import _all_gather_base as _all_gather_base
from ._collectives import _reduce_scatter_base as _reduce_scatter_base
from ._collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    supports_complex,
)
from ._debug_level import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from ._debug_tools import breakpoint, record_comm
from ._grad_bucket import BuiltinCommHookType as BuiltinCommHookType
from ._grad_bucket import GradBucket
from ._group_creation import _abort_process_group as _abort_process_group
from ._group_creation import _new_group_with_tag as _new_group_with_tag
from ._group_creation import (
    destroy_process_group,
    get_default_backend_for_device,
    get_node_local_rank,
    init_process_group,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)
from ._group_registry import (
    GroupMember,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    is_initialized,
)
from ._group_registry import _get_default_group as _get_default_group
from ._group_registry import _group_or_default as _group_or_default
from ._group_registry import _rank_not_in_group as _rank_not_in_group
from ._group_registry import _world as _world
from ._object_collectives import _object_to_tensor as _object_to_tensor
from ._object_collectives import _tensor_to_object as _tensor_to_object
from ._object_collectives import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from ._p2p import P2POp, batch_isend_irecv, irecv, isend, recv, send
from ._process_group import ProcessGroup
from ._process_group import process_is_launched as is_torchelastic_launched
from ._reduce_ops import ReduceOp, reduce_op
from ._reduce_ops import _make_nccl_premul_sum as _make_nccl_premul_sum
from ._rendezvous_handlers import register_rendezvous_handler, rendezvous
from ._single_process import SingleProcessCommunicator as SingleProcessCommunicator
from ._stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from ._work import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError, Work

__all__ = [
    "AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "Backend", "BackendConfig",
    "BarrierOptions", "BroadcastOptions", "DebugLevel", "DistBackendError", "DistError", "DistNetworkError",
    "DistStoreError", "FileStore", "GatherOptions", "GradBucket", "GroupMember", "HashStore", "P2POp", "PrefixStore",
    "ProcessGroup", "QueueEmptyError", "ReduceOp", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions", "Store",
    "TCPStore", "GroupName", "breakpoint", "record_comm", "set_debug_level", "set_debug_level_from_env", "shrink_group",
    "Work", "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_gather_single",
    "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv",
    "broadcast", "broadcast_object_list", "default_pg_timeout", "destroy_process_group", "gather", "gather_object",
    "get_backend", "get_backend_config", "get_debug_level", "get_default_backend_for_device", "get_global_rank",
    "get_group_rank", "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size",
    "group", "init_process_group", "irecv", "is_backend_available", "is_gloo_available", "is_initialized",
    "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available",
    "isend", "monitored_barrier", "new_group", "new_subgroups", "new_subgroups_by_enumeration", "recv",
    "recv_object_list", "reduce", "reduce_op", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor",
    "register_rendezvous_handler", "rendezvous", "scatter", "scatter_object_list", "send", "send_object_list",
    "split_group", "supports_complex",
]  # fmt: skip

GroupName = NewType("GroupName", str)  # registered name of a group


def shrink_group(
    ranks_to_exclude: list[int], group: ProcessGroup | None = None, shrink_flags: int = 0, pg_options: Any = None
) -> NoReturn:
    """Raises TypeError: no backend can remove ranks from a group.

    `new_group` with ``use_local_synchronization`` creates a group of the remaining processes.

    Args:
        ranks_to_exclude: The ranks to remove.
        group: The group. Default: the default group.
        shrink_flags: Not used.
        pg_options: Not used.

    Raises:
        TypeError: Always, for valid arguments.
        ValueError: The list is empty, or the group has one member.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.shrink_group([0])
        Traceback (most recent call last):
        ValueError: Cannot shrink a process group with size 1. Group must have at least 2 ranks to support shrinking.
        >>> dist.destroy_process_group()
    """
    if not isinstance(ranks_to_exclude, list):
        raise TypeError(
            f"ranks_to_exclude must be a list, but got {type(ranks_to_exclude).__name__}. "
            "Example: [1, 3, 5] to exclude ranks 1, 3, and 5."
        )
    if not ranks_to_exclude:
        raise ValueError(
            "ranks_to_exclude cannot be empty. To shrink a group, you must specify at least one rank to exclude. "
            "Example: [failed_rank_id]"
        )
    found = _group_or_default(group)
    if found.size() < 2:
        raise ValueError(
            f"Cannot shrink a process group with size {found.size()}. Group must have at least 2 ranks to support "
            "shrinking."
        )
    raise TypeError(f"Process group backend for '{found.group_name}' does not support shrinking operations.")


def _get_default_store() -> Store:
    """Return the store of the default group."""
    return _get_default_group().get_group_store()


def _get_process_group_store(pg: ProcessGroup) -> Store:
    return pg.get_group_store()


def _get_process_group_name(pg: ProcessGroup) -> str:
    return pg.group_name


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """Return the group of a name."""
    if group_name not in _world.groups:
        raise RuntimeError(f"Could not resolve the process group registered under the name {group_name}")
    return _world.groups[group_name]


def _get_group_tag(pg: ProcessGroup) -> str:
    tag = next(tag for tag, groups in _world.tags.items() if pg in groups)
    return tag.removeprefix("user:")


def _get_pg_default_device(group: Any = None) -> Any:
    """Return a device whose tensors the group supports."""
    found = group or _get_default_group()
    devices = found._device_types
    return next((device for device in devices if device.type == "cpu"), devices[0])


def _get_object_coll_device(group: Any = None) -> str:
    return "cpu"


def _find_or_create_pg_by_ranks_and_tag(tag: str, ranks: list[int], stride: int) -> Any:
    """Return this process's group of these ranks under this tag, where `ranks` are split into lists of `stride`."""
    lists = [ranks[start : start + stride] for start in range(0, len(ranks), stride)]
    mine = get_rank()
    found = next(part for part in lists if mine in part)
    for known in _world.tags.get(f"user:{tag}" if tag else "", []):
        if known._ranks == sorted(found):
            return known
    made = [_new_group_with_tag(part, pg_tag=tag) for part in lists]
    return made[lists.index(found)]


def _hash_ranks_to_str(ranks: list[int]) -> str:
    return f"{zlib.crc32('_'.join(map(str, ranks)).encode()):08x}"
