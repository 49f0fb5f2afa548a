"""`ProcessGroup`: a group's names and its communication backend per device."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torchlite as torch

from ._collective_options import default_pg_timeout
from ._work import Work


class BackendType(enum.IntEnum):
    """Backend types of a ProcessGroup."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, CUSTOM = range(7)


def _device_of(values: Any) -> torch.device | None:
    """Return the device of the first tensor."""
    for value in values:
        if isinstance(value, torch.Tensor):
            return value.device
        if isinstance(value, list | tuple):
            found = _device_of(value)
            if found is not None:
                return found
    return None


def _make_delegating_method(name: str) -> Callable[..., Any]:
    """Return a method that calls the backend of its tensors' device."""

    def method(self: ProcessGroup, *args: Any, **kwargs: Any) -> Any:
        device = _device_of(args) or _device_of(kwargs.values())
        return getattr(self._get_backend(device), name)(*args, **kwargs)

    method.__name__, method.__qualname__ = name, f"ProcessGroup.{name}"
    method.__doc__ = f"Call `{name}` of the backend of the tensors' device."
    return method


class ProcessGroup:
    """Group of processes that communicate; `init_process_group` and `new_group` create it.

    Its methods, such as `allreduce`, call the backend of the tensors' device. Programs call the functions of
    `torch.distributed`. Backends of other packages derive from the class.

    Args:
        args: A store, the rank and the size; for derived classes. Default: rank 0 of 1.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> group = dist.group.WORLD
        >>> group.rank(), group.size(), group.name()
        (0, 1, 'gloo')
        >>> dist.destroy_process_group()
    """

    __module__ = "torch.distributed.distributed_c10d"
    BackendType = BackendType
    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, CUSTOM = BackendType
    _prepared: dict[Any, Any] | None = None  # fast paths by call (`_sync_fast_path`); None if there are none

    def __init__(self, *args: Any) -> None:
        numbers = [value for value in args if isinstance(value, int)]  # a store may come first
        self._rank, self._size = (*numbers, 0, 1)[:2] if len(numbers) >= 2 else (0, 1)
        self._backends: dict[str, Any] = {}
        self._name, self._desc, self._backend_name = "", "undefined", "undefined"
        self._ranks: list[int] = []
        self._store: Any = None
        self._sequence = 0
        self._timeout = default_pg_timeout
        self.bound_device_id: Any = None

    @classmethod
    def _create(cls, name: str, ranks: list[int], rank: int, backends: dict[str, Any], **words: Any) -> ProcessGroup:
        made = cls(rank, len(ranks))
        made._name, made._ranks, made._backends, made._prepared = name, ranks, backends, {}
        for key, value in words.items():
            setattr(made, key, value)
        return made

    def rank(self) -> int:
        """Return this process's rank in the group."""
        return self._rank

    def size(self) -> int:
        """Return the size of the group."""
        return self._size

    def name(self) -> str:
        """Return the name of the backend."""
        return self._get_backend_name()

    def _get_backend_name(self) -> str:
        return next((backend.name() for backend in self._backends.values()), self._backend_name)

    @property
    def group_name(self) -> str:
        """Return the registered name of the group."""
        return self._name

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_desc(self) -> str:
        """Return the description of the group."""
        return self._desc

    def _set_group_desc(self, desc: str) -> None:
        self._desc = desc

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device(name) for name in self._backends]

    def _get_backend(self, device: Any = None) -> Any:
        found = self._backends.get(getattr(device, "type", "cpu"))
        if found is not None:
            return found
        if not self._backends:
            raise RuntimeError(
                f"Process group {self._name!r} has been destroyed" if self._name else "a ProcessGroup without backends"
            )
        if device is None:
            return next(iter(self._backends.values()))
        kind = torch.device(device).type
        if kind not in self._backends:
            raise RuntimeError(f"No backend type associated with device type {kind}")
        return self._backends[kind]

    def _register_backend(self, device: Any, backend_type: Any, backend: Any) -> None:
        self._backends[torch.device(device).type] = backend
        self._prepared = None if self._prepared is None else {}

    def _set_default_backend(self, backend_type: Any) -> None:
        """Do nothing: the device decides the backend."""

    def _id(self) -> int:
        return id(self)

    _backend_id = _id

    def _has_hooks(self) -> bool:
        return False

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def _set_sequence_number_for_group(self) -> None:
        self._sequence = 0

    def get_group_store(self) -> Any:
        """Returns the store that the group's members share.

        Raises:
            RuntimeError: The group has no store.
        """
        if self._store is None:
            raise RuntimeError("the process group has no store")
        return self._store() if callable(self._store) else self._store

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the timeout of calls.

        Args:
            timeout: The timeout.
        """
        self._timeout = timeout
        for backend in self._distinct_backends():
            backend.set_timeout(timeout)

    def _distinct_backends(self) -> list[Any]:
        return list({id(backend): backend for backend in self._backends.values()}.values())

    def shutdown(self) -> None:
        """Shut down the group's backends."""
        parts, self._backends, self._prepared = self._distinct_backends(), {}, None
        for backend in parts:
            if hasattr(backend, "shutdown"):
                backend.shutdown()

    abort = shutdown

    def _wait_for_pending_works(self) -> None:
        """Do nothing: works are waited for one by one."""

    def _start_coalescing(self, device: Any = None) -> None:
        """Do nothing: messages start immediately, without coalescing."""

    def _end_coalescing(self, device: Any = None) -> Work | None:
        """Do nothing: there is no coalescing."""

    def boxed(self) -> ProcessGroup:
        """Return the group."""
        return self

    unbox = staticmethod(lambda group: group)

    def barrier(self, *args: Any, **kwargs: Any) -> Work:
        """Waits until all members called it, and returns a `Work`.

        Args:
            args: A `BarrierOptions`.
            kwargs: The same by keyword, ``opts``.
        """
        return self._get_backend().barrier(*args, **kwargs)

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    def __deepcopy__(self, memo: Any) -> ProcessGroup:
        return self


for _name in (
    "broadcast", "allreduce", "allreduce_coalesced", "reduce", "allgather", "_allgather_base", "all_gather_single",
    "allgather_coalesced", "allgather_into_tensor_coalesced", "all_gather_single_coalesced", "gather", "scatter",
    "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_single", "reduce_scatter_tensor_coalesced",
    "reduce_scatter_single_coalesced", "alltoall", "alltoall_base", "all_to_all_single", "send", "recv",
    "recv_anysource", "monitored_barrier",
):  # fmt: skip
    setattr(ProcessGroup, _name, _make_delegating_method(_name))


def process_is_launched() -> bool:
    """Returns whether `torchlite-run`, or a launcher like it, started this process.

    Example:
        >>> isinstance(torch.distributed.is_torchelastic_launched(), bool)
        True
    """
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None
