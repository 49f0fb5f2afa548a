"""Registry of process groups: the default group, ranks, sizes and backends of groups."""

from __future__ import annotations

import warnings
from typing import Any

from ._backend_config import BackendConfig
from ._process_group import ProcessGroup


class _World:
    """Registry of groups."""

    def __init__(self) -> None:
        self.default_pg: ProcessGroup | None = None
        self.groups: dict[str, ProcessGroup] = {}
        self.backends: dict[ProcessGroup, str] = {}
        self.group_count = 0
        self.tags: dict[str, list[ProcessGroup]] = {}

    @property
    def pg_group_ranks(self) -> dict[ProcessGroup, dict[int, int]]:
        """Return for each group its ranks, by rank in the world."""
        return {group: {rank: i for i, rank in enumerate(group._ranks)} for group in self.groups.values()}

    @property
    def pg_names(self) -> dict[ProcessGroup, str]:
        """Return the names of the groups."""
        return {group: name for name, group in self.groups.items()}

    @property
    def pg_map(self) -> dict[ProcessGroup, tuple[str, Any]]:
        """Return backend and store of the groups."""
        return {group: (self.backends[group], group._store) for group in self.groups.values()}


_world = _World()


class _WorldMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """Return the default group."""
        return _world.default_pg

    @WORLD.setter
    def WORLD(cls, group: ProcessGroup | None) -> None:
        _world.default_pg = group


class group(metaclass=_WorldMeta):
    """Namespace of the default group: `group.WORLD`, which is ``None`` before `init_process_group`.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.group.WORLD is None
        True
    """


class GroupMember(metaclass=_WorldMeta):
    """Namespace of `NON_GROUP_MEMBER`, which `new_group` returns on a rank outside the group.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.GroupMember.NON_GROUP_MEMBER is None
        False
    """

    NON_GROUP_MEMBER = -100


def is_initialized() -> bool:
    """Returns whether the default group exists.

    Example:
        >>> torch.distributed.is_initialized()
        False
    """
    return _world.default_pg is not None


def _get_default_group() -> ProcessGroup:
    if _world.default_pg is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return _world.default_pg


def _group_or_default(of: Any) -> Any:
    return _get_default_group() if of is None else of


def _rank_not_in_group(of: Any) -> bool:
    return of == GroupMember.NON_GROUP_MEMBER if of is not None else False


def get_rank(group: ProcessGroup | None = None) -> int:
    """Returns this process's rank in a group, or -1 if it is not in the group.

    Args:
        group: The group. Default: the default group.

    Raises:
        ValueError: There is no default group.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.get_rank()
        Traceback (most recent call last):
            ...
        ValueError: Default process group has not been initialized, please make sure to call init_process_group.
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.get_rank()
        0
        >>> dist.destroy_process_group()
    """
    if _rank_not_in_group(group):
        return -1
    default = _get_default_group()
    return (default if group is None else group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Returns the number of processes in a group, or -1 if this process is not in the group.

    Args:
        group: The group. Default: the default group.

    Raises:
        ValueError: There is no default group.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.get_world_size()
        1
        >>> dist.destroy_process_group()
    """
    if _rank_not_in_group(group):
        return -1
    default = _get_default_group()
    return (default if group is None else group).size()


def _check_registered(of: ProcessGroup) -> ProcessGroup:
    if of not in _world.backends:
        raise ValueError(f"Group {of} is not registered, please create group with torch.distributed.new_group API")
    return of


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Returns the rank in a group of a rank of the world.

    Args:
        group: The group.
        global_rank: The rank in the world.

    Raises:
        ValueError: The rank is not in the group, or the group is not registered.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.get_group_rank(dist.new_group([0]), 0)
        0
        >>> dist.destroy_process_group()
    """
    if group is _world.default_pg:
        return global_rank
    ranks = _check_registered(group)._ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Returns the rank in the world of a rank of a group.

    Args:
        group: The group.
        group_rank: The rank in the group.

    Raises:
        ValueError: The group has no such rank, or is not registered.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.get_global_rank(dist.new_group([0]), 0)
        0
        >>> dist.destroy_process_group()
    """
    if group is _world.default_pg:
        return group_rank
    ranks = _check_registered(group)._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Returns the world ranks of a group's members, in the group's order.

    Args:
        group: The group; ``None`` for the default group.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.get_process_group_ranks(None)
        [0]
        >>> dist.destroy_process_group()
    """
    return list(_check_registered(_group_or_default(group))._ranks)


def get_pg_count() -> int:
    """Returns the number of groups that were created since `init_process_group`.

    Example:
        >>> torch.distributed.get_pg_count()
        0
    """
    return _world.group_count


def get_backend(group: ProcessGroup | None = None) -> str:
    """Returns the name of a group's backend.

    Args:
        group: The group. Default: the default group.

    Raises:
        ValueError: This process is not in the group, or the group is not registered.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.get_backend()
        'gloo'
        >>> dist.destroy_process_group()
    """
    found = _group_or_default(group)
    if _rank_not_in_group(found):
        raise ValueError("Invalid process group specified")
    if found not in _world.backends:
        raise ValueError(
            f"Process group {found} is not initialized in the world group map. Please initialize the group first."
        )
    return _world.backends[found]


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Returns a group's backends by device type.

    Args:
        group: The group. Default: the default group.

    Raises:
        ValueError: This process is not in the group.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("cpu:gloo", rank=0, world_size=1)
        >>> dist.get_backend_config()
        'cpu:gloo'
        >>> dist.destroy_process_group()
    """
    found = _group_or_default(group)
    if _rank_not_in_group(found):
        raise ValueError("Invalid process group specified")
    return repr(BackendConfig(get_backend(found)))


def is_not_member(group: Any, call: str) -> bool:
    """True, with a warning about the call, if this process is not in the group."""
    if group is None or group != GroupMember.NON_GROUP_MEMBER:
        return False
    rank = -1 if _world.default_pg is None else _world.default_pg.rank()
    warnings.warn(f"Running {call} on global rank {rank} which does not belong to the given group.", stacklevel=3)
    return True
