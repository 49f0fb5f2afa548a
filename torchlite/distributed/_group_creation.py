"""Creation and destruction of process groups: init_process_group, new_group, split_group."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torchlite as torch
from torchlite._settings import rank_state
from torchlite._settings.fork_locks import reinit_after_fork

from ._backend_config import Backend, BackendConfig
from ._collective_options import default_pg_timeout
from ._group_registry import (
    GroupMember,
    _get_default_group,
    _group_or_default,
    _rank_not_in_group,
    _world,
    get_global_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
)
from ._process_group import ProcessGroup
from ._single_process import SingleProcessCommunicator
from ._transports import find_transport
from ._work import DistBackendError

_INIT_LOCK = reinit_after_fork(threading.RLock())  # a world begins
_HOST_BACKENDS = ("gloo", "mpi")
_DEVICE_BACKENDS = ("nccl",)


def get_default_backend_for_device(device: str | torch.device) -> str:
    """Returns the name of a device's default backend.

    Args:
        device: The device.

    Raises:
        ValueError: The device type has none.

    Example:
        >>> torch.distributed.get_default_backend_for_device("cpu")
        'gloo'
    """
    kind = (device if isinstance(device, torch.device) else torch.device(device)).type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Returns this process's rank on its machine, from the variable LOCAL_RANK.

    Args:
        fallback_rank: The result if the variable is unset. Default: ``None``.

    Raises:
        RuntimeError: The variable is unset and there is no fallback.

    Example:
        >>> torch.distributed.get_node_local_rank(fallback_rank=0)
        0
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def _check_timeout(timeout: Any) -> None:
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


def _serialize_calls(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> None:
        with _INIT_LOCK:
            function(*args, **kwargs)

    return inside


@_serialize_calls
def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: torch.device | int | None = None,
    _ranks: list[int] | None = None,
) -> None:
    """Creates the default group, of all processes that the launcher started.

    `torchlite-run` or ``mpiexec`` starts several processes; a world of one process needs no launcher. Rank and size
    come
    from the arguments, from ``init_method``, from the variables RANK and WORLD_SIZE, or from the launcher. All given
    sources must agree.

    Args:
        backend: The backend's name, or names by device type such as ``"cpu:gloo,cuda:nccl"``. Default: one for each
            device type.
        init_method: Address of the rendezvous: ``env://``, ``tcp://host:port`` or ``file:///path``. Default:
            ``env://``,
            or the launcher's.
        timeout: Limit of the group's calls. Default: 30 minutes.
        world_size: The number of processes. Default: -1, from the other sources.
        rank: This process's rank. Default: -1, from the other sources.
        store: A store to find the others by; excludes ``init_method``. Default: ``None``.
        group_name: Has no effect, as in PyTorch.
        pg_options: Options for the backends of other packages. Default: ``None``.
        device_id: The device that the group is bound to. Default: ``None``.

    Raises:
        ValueError: There is a default group, or the sources disagree.
        AssertionError: ``store`` is given with ``init_method``, or without rank and size; or the backend is unknown.
        TypeError: ``timeout`` is not a `timedelta`.
        RuntimeError: The backend is not available.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.ones(2)
        >>> dist.all_reduce(x)
        >>> x, dist.get_backend()
        (tensor([1., 1.]), 'gloo')
        >>> dist.destroy_process_group()

    See also:
        `destroy_process_group`, `new_group`.
    """
    from ._default_store import create_default_store
    from ._rank_discovery import find_rank

    if _world.default_pg is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None and world_size <= 0:
        raise AssertionError("world_size must be positive if using store")
    if store is not None and rank < 0:
        raise AssertionError("rank must be non-negative if using store")
    name = Backend(backend) if backend else Backend.UNDEFINED
    timeout = default_pg_timeout if timeout is None else timeout
    _check_timeout(timeout)
    devices = BackendConfig(name).get_device_backend_map()
    _check_backends(devices)
    place = find_rank(name, init_method, rank, world_size, store, timeout)
    process_group = _make_group(
        "0", list(range(place.size)), place.rank, devices, timeout, "default_pg", place.store, pg_options, True
    )
    if place.store is None:
        process_group._store = create_default_store(
            place.rank, place.size, _make_host_communicator(process_group, place.size, timeout), timeout
        )
    if device_id is not None:
        process_group.bound_device_id = torch.device(device_id)
    _world.group_count = 1
    _register_group(process_group, name, "")
    _world.default_pg = process_group
    if place.size > 1:
        sys.excepthook = _ExceptHook(sys.excepthook, place.rank)


def _make_host_communicator(made: ProcessGroup, size: int, timeout: timedelta) -> Any:
    """Return the communicator for exchanges before there is a store; None for a third-party backend."""
    found = [getattr(backend, "_communicator", None) for backend in made._distinct_backends()]
    hosts = [one for one in found if one is not None and not getattr(one, "of_devices", False)]
    if hosts:
        return hosts[0]
    if all(one is None for one in found):
        return None
    return _make_communicator("mpi", list(range(size)), "", timeout.total_seconds(), True)


def _check_backends(devices: dict[str, str]) -> None:
    for name in set(devices.values()):
        if name.upper() in Backend._plugins or name in _HOST_BACKENDS:
            continue
        if name in _DEVICE_BACKENDS and not (why := find_transport(name).why_not()):
            continue
        if name in ("nccl", "ucc", "xccl"):
            more = f": {why}" if name in _DEVICE_BACKENDS else ""
            raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in{more}")
        else:
            raise AssertionError(f"Unknown c10d backend type {name.upper()}")


def _make_group(
    name: str,
    ranks: list[int],
    rank: int,
    devices: dict[str, str],
    timeout: timedelta,
    desc: str,
    store: Any,
    options: Any = None,
    everyone: bool = False,
) -> ProcessGroup:
    """Create a group, with a communication backend per device."""
    backends: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    title = f"group {name} ({desc})"
    for device, backend in devices.items():
        if backend not in backends:
            if backend in _HOST_BACKENDS:
                backends[backend] = _make_host_backend(backend, ranks, name, timeout, title, everyone)
            elif backend in _DEVICE_BACKENDS:
                backends[backend] = _make_device_backend(backend, ranks, rank, name, timeout, title)
            else:
                backends[backend] = _make_plugin_backend(backend, ranks, rank, name, timeout, store, options)
        parts[device] = backends[backend]
    words = {"_desc": desc, "_store": store, "_timeout": timeout, "_backend_name": next(iter(backends), "undefined")}
    return ProcessGroup._create(name, ranks, rank, parts, **words)


def _make_host_backend(
    backend: str, ranks: list[int], name: str, timeout: timedelta, title: str, everyone: bool
) -> Any:
    from ._debug_level import DebugLevel, get_debug_level
    from ._host_comm_backend import HostCommBackend

    kind = HostCommBackend
    if get_debug_level() is DebugLevel.DETAIL and len(ranks) > 1:
        from ._collective_fingerprints import CheckedCommBackend as kind
    communicator = _make_communicator(backend, ranks, name, timeout.total_seconds(), everyone)
    return kind(communicator, backend, timeout, f"{title}, ranks {ranks}")


def _make_device_backend(backend: str, ranks: list[int], rank: int, name: str, timeout: timedelta, title: str) -> Any:
    from ._device_comm_backend import DeviceCommBackend, DeviceCommunicator

    store = lambda: _world.groups[name].get_group_store()
    made = DeviceCommunicator(find_transport(backend), rank, len(ranks), name, store)
    return DeviceCommBackend(made, backend, timeout, f"{title}, ranks {ranks}")  # type: ignore[arg-type]


def _make_communicator(backend: str, ranks: list[int], name: str, limit: float, everyone: bool) -> Any:
    if len(ranks) == 1:
        return SingleProcessCommunicator()
    try:
        return find_transport(backend).world(limit) if everyone else find_transport(backend).group(ranks, name, limit)
    except TimeoutError as error:
        raise DistBackendError(f"Timed out while making process group {name}: {error}") from None
    except ConnectionError as error:
        raise DistBackendError(f"A process was lost while making process group {name}: {error}") from None


def _make_plugin_backend(
    backend: str, ranks: list[int], rank: int, name: str, timeout: timedelta, store: Any, options: Any
) -> Any:
    from ._stores import PrefixStore

    plugin = Backend._plugins[backend.upper()]
    inner = PrefixStore(f"{name}/", store() if callable(store) else store) if store is not None else None
    if not plugin.extended_api:
        return plugin.creator_fn(inner, rank, len(ranks), timeout)
    from types import SimpleNamespace

    told = SimpleNamespace(
        store=inner, group_rank=rank, group_size=len(ranks), timeout=timeout, group_id=name, global_ranks_in_group=ranks
    )
    return plugin.creator_fn(told, options)


def _register_group(made: ProcessGroup, backend: str, tag: str) -> None:
    _world.groups[made.group_name] = made
    _world.backends[made] = backend
    _world.tags.setdefault(tag, []).append(made)


class _ExceptHook:
    """Excepthook of a failing process: prints its traceback with the rank on each line, then aborts the world."""

    def __init__(self, before: Any, rank: int) -> None:
        self._before, self._rank, self._process = before, rank, os.getpid()

    def __call__(self, kind: Any, error: Any, trace: Any) -> None:
        import traceback

        if self._before is sys.__excepthook__:
            lines = "".join(traceback.format_exception(kind, error, trace)).splitlines()
            sys.stderr.write("".join(f"[rank{self._rank}]: {line}\n" for line in lines))
        else:
            self._before(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        if kind is KeyboardInterrupt or os.getpid() != self._process:  # a forked child only ends itself
            return
        from ._launch.error_file import report

        if report(error):
            os._exit(1)  # the launcher ends the others
        find_transport("mpi").abort(1)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Destroys a group and its backends; without an argument, all groups.

    Args:
        group: The group. Default: the default group, and with it all others.

    Raises:
        AssertionError: There is no default group.
        ValueError: The group is not registered.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.destroy_process_group()
        >>> dist.is_initialized()
        False
    """
    if _rank_not_in_group(group):
        return
    found = _world.default_pg if group is None else group
    if found is None:
        raise AssertionError("Process group cannot be None")
    if found not in _world.backends:
        raise ValueError("Invalid process group specified")
    ended = list(_world.groups.values()) if found is _world.default_pg else [found]
    for each in reversed(ended):
        del _world.groups[each.group_name]
        del _world.backends[each]
        for groups in _world.tags.values():
            if each in groups:
                groups.remove(each)
        each.shutdown()
    if found is _world.default_pg:
        _world.default_pg = None
        _world.group_count = 0
        rank_state.write_state(rank_state.DESTROYED)
        if isinstance(sys.excepthook, _ExceptHook):
            sys.excepthook = sys.excepthook._before


_abort_process_group = destroy_process_group


def new_group(
    ranks: list[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: torch.device | None = None,
    sort_ranks: bool = True,
) -> Any:
    """Creates a group of some ranks of the world. All processes call it, in the same order.

    Args:
        ranks: The ranks. Default: all.
        timeout: Limit of the group's calls. Default: 30 minutes.
        backend: The backend's name. Default: the default group's.
        pg_options: Options for the backends of other packages. Default: ``None``.
        use_local_synchronization: Whether only the members call it. Default: ``False``.
        group_desc: A description. Default: ``None``.
        device_id: The device that the group is bound to. Default: ``None``.
        sort_ranks: Whether the members are in the order of their ranks; otherwise in that of ``ranks``. Default:
            ``True``.

    Returns:
        The group; on other ranks ``GroupMember.NON_GROUP_MEMBER``.

    Raises:
        ValueError: A rank is not in the world, or there is no default group.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> group = dist.new_group([0])
        >>> dist.get_process_group_ranks(group)
        [0]
        >>> dist.destroy_process_group()
    """
    return _new_group_with_tag(
        ranks, timeout, backend, pg_options, None, use_local_synchronization, group_desc, device_id, sort_ranks
    )


def _new_group_with_tag(
    ranks: Any = None,
    timeout: Any = None,
    backend: Any = None,
    backend_options: Any = None,
    pg_tag: str | None = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    default = _get_default_group()
    name = Backend(backend) if backend else _world.backends[default]
    timeout = default._timeout if timeout is None else timeout
    _check_timeout(timeout)
    ranks = _check_ranks(list(range(default.size())) if ranks is None else list(ranks), default.size(), sort_ranks)
    devices = BackendConfig(name).get_device_backend_map()
    _check_backends(devices)
    if use_local_synchronization:
        if default.rank() not in ranks:
            return None
        title = hashlib.sha1("_".join(map(str, ranks)).encode()).hexdigest()
        count = sum(known.startswith(title) for known in _world.groups)
        title = f"{title}_{count}"
    else:
        title = str(_world.group_count)
        _world.group_count += 1
    if default.rank() not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    mine = ranks.index(default.rank())
    desc = "undefined" if group_desc is None else group_desc
    process_group = _make_group(title, ranks, mine, devices, timeout, desc, default._store, backend_options)
    process_group.bound_device_id = default.bound_device_id if device_id is None else device_id
    _register_group(process_group, name, f"user:{pg_tag}" if pg_tag else f"ptd:{title}")
    return process_group


def _check_ranks(ranks: list[int], size: int, sort: bool) -> list[int]:
    if len(ranks) > size:
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"ranks list must not contain duplicate entries, got {ranks}")
    for rank in ranks:
        if rank < 0 or rank >= size:
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
    return sorted(ranks) if sort else ranks


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Creates groups of equal size, of consecutive ranks of a group.

    Args:
        group_size: The size of each. Default: the number of processes on this machine.
        group: The group to divide. Default: the default group.
        timeout: Limit of the group's calls. Default: 30 minutes.
        backend: The backend's name. Default: the default group's.
        pg_options: Options for the backends of other packages. Default: ``None``.
        group_desc: A description. Default: ``None``.

    Returns:
        A pair: this process's group, and the list of all.

    Raises:
        ValueError: The size is not positive, or does not divide the group's.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> mine, every = dist.new_subgroups(1)
        >>> dist.get_process_group_ranks(mine), len(every)
        ([0], 1)
        >>> dist.destroy_process_group()
    """
    size = get_world_size(group)
    if group_size is None:
        group_size = int(os.environ.get("LOCAL_WORLD_SIZE", "0")) or _neighbour_ranks()
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    ranks = get_process_group_ranks(group)
    lists = [ranks[start : start + group_size] for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def _neighbour_ranks() -> int:
    return find_transport("mpi").local_rank_and_size()[1] if get_world_size() > 1 else 1


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Creates groups of given ranks, which share none.

    Args:
        ranks_per_subgroup_list: The ranks of each group.
        timeout: Limit of the group's calls. Default: 30 minutes.
        backend: The backend's name. Default: the default group's.
        pg_options: Options for the backends of other packages. Default: ``None``.
        group_desc: A description. Default: ``None``.

    Returns:
        A pair: this process's group, or ``None``, and the list of all.

    Raises:
        ValueError: The list is empty, or a rank appears twice.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> mine, every = dist.new_subgroups_by_enumeration([[0]])
        >>> mine is every[0]
        True
        >>> dist.destroy_process_group()
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: dict[int, list[int]] = {}
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}")
            seen[rank] = ranks
    mine, every = None, []
    for ranks in ranks_per_subgroup_list:
        subgroup = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        every.append(subgroup)
        if get_rank() in ranks:
            mine = subgroup
    return mine, every


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:
    """Splits a group into parts. All of its members call it.

    Args:
        parent_pg: The group. Default: the default group.
        split_ranks: The ranks of each part, counted in the group.
        timeout: Limit of the parts' calls. Default: the group's.
        pg_options: Options for the backends of other packages. Default: ``None``.
        group_desc: A description. Default: made from the group's.
        backend: The backend's name. Default: the group's.

    Returns:
        This process's part, or ``None``.

    Raises:
        ValueError: A part is empty, too long, or names a rank twice.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.split_group(split_ranks=[[0]]).size()
        1
        >>> dist.destroy_process_group()
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = _group_or_default(parent_pg)
    seen: set[int] = set()
    for ranks in split_ranks:
        if not ranks:
            raise ValueError("the split group cannot be empty")
        if len(ranks) > parent.size():
            raise ValueError(
                "the split group's size should be less or equal to the world_size set by init_process_group"
            )
        if len(set(ranks)) != len(ranks):
            raise ValueError("the split group cannot have duplicate ranks")
        seen.update(ranks)
    count = getattr(parent, "_splits", 0)
    parent._splits = count + 1
    mine = next((sorted(ranks) for ranks in split_ranks if parent.rank() in ranks), None)
    if mine is None:
        return None
    members = [get_global_rank(parent, rank) for rank in mine]
    name = Backend(backend) if backend else _world.backends[parent]
    devices = BackendConfig(name).get_device_backend_map()
    title = f"{parent.group_name}:split:{count}:{'_'.join(map(str, members))}"
    desc = f"{parent.group_desc}:split:{count}" if group_desc is None else group_desc
    limit = parent._timeout if timeout is None else timeout
    rank = mine.index(parent.rank())
    process_group = _make_group(title, members, rank, devices, limit, desc, parent._store, pg_options)
    _register_group(process_group, name, f"ptd:{title}")
    return process_group


def _forget_prepared() -> None:
    """Drop fast paths in a forked child: they use the parent's connections. New ones raise the transport's error."""
    for group in _world.groups.values():
        if group._prepared is not None:
            group._prepared = {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_prepared)
