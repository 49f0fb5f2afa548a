"""Groups of processes: none. Their names are there for programs that import them, and each says so when it is called.

What asks for the default group raises what PyTorch raises before `init_process_group`, and that function refuses.
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable
from typing import Any

from torchlite._types.refused import refusing

default_pg_timeout = datetime.timedelta(minutes=30)
_GROUPS = (
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast",
    "broadcast_object_list", "destroy_process_group", "gather", "gather_object", "get_backend", "get_backend_config",
    "get_global_rank", "get_group_rank", "get_node_local_rank", "get_process_group_ranks", "get_rank",
    "get_world_size", "irecv", "isend", "monitored_barrier", "new_group", "new_subgroups",
    "new_subgroups_by_enumeration", "recv", "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor",
    "scatter", "scatter_object_list", "send", "send_object_list", "split_group", "_get_default_group",
)  # fmt: skip
_ABSENT = (
    "FileStore", "HashStore", "PrefixStore", "Store", "TCPStore", "init_process_group", "new_process_group",
    "rendezvous", "_new_process_group_helper",
)  # fmt: skip
_BACKENDS = ("gloo", "mpi", "nccl", "ucc", "xccl")
__all__ = [
    "Backend", "GroupMember", "P2POp", "ProcessGroup", "ReduceOp", "Work", "default_pg_timeout", "group",
    "is_backend_available", "is_initialized", "is_torchelastic_launched",
]  # fmt: skip


class ProcessGroup:
    """A class for annotations: there is no group."""


class Work:
    """A class for annotations: nothing runs in other processes."""


class P2POp:
    """A message to another process: there is none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_group()


class GroupMember:
    """The default group: none."""

    WORLD: Any = None
    NON_GROUP_MEMBER = -100


class group(GroupMember):
    """The default group: none."""


class Backend(str):
    """The name of what carries messages, in small letters."""

    UNDEFINED = "undefined"
    GLOO, MPI, NCCL, UCC, XCCL = "gloo", "mpi", "nccl", "ucc", "xccl"

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend name must be a string, but got: {name!r}")
        return super().__new__(cls, name.lower())


class ReduceOp(enum.Enum):
    """How the tensors of several processes become one."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


def is_initialized() -> bool:
    """Whether there is a default process group: there is none."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether a launcher started this process: `torchrun` needs process groups."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether something carries messages: nothing does."""
    return False


def _no_group(*args: Any, **kwargs: Any) -> Any:
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


def __getattr__(name: str) -> Any:
    found: Callable
    if name in _GROUPS:

        def found(*args: Any, **kwargs: Any) -> Any:
            _no_group()

        found.__name__ = found.__qualname__ = name
        found.__doc__ = "Refuses, as there is no default process group."
    elif name in _ABSENT:
        found = refusing(f"torch.distributed.{name}")
    elif name.removeprefix("is_").removesuffix("_available") in _BACKENDS:

        def found() -> bool:
            return False

        found.__name__ = found.__qualname__ = name
    else:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = found
    return found
