"""Remote procedure calls: functions that run on other workers, and references to values there."""

from __future__ import annotations

import enum
import itertools
from datetime import timedelta

from torchlite._settings.module_dir import make_module_dir

from . import _state
from . import api as api
from . import constants as constants
from . import functions as functions
from ._worker_info import WorkerInfo
from .api import (
    RRef,
    _get_current_rpc_agent,
    _is_current_rpc_agent_set,
    get_worker_info,
    remote,
    rpc_async,
    rpc_sync,
    shutdown,
)
from .options import RpcBackendOptions, TensorPipeRpcBackendOptions

__all__ = [
    "BackendType",
    "RRef",
    "RpcBackendOptions",
    "TensorPipeRpcBackendOptions",
    "WorkerInfo",
    "get_worker_info",
    "init_rpc",
    "is_available",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]

_worlds = itertools.count()  # keys of an earlier world may be in the same store


class BackendType(enum.Enum):
    """The backends of RPC; there is one, under PyTorch's name."""

    TENSORPIPE = "TENSORPIPE"


def is_available() -> bool:
    """Returns ``True``: RPC is supported.

    Example:
        >>> torch.distributed.rpc.is_available()
        True
    """
    return True


def init_rpc(
    name: str,
    backend: BackendType | None = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: RpcBackendOptions | None = None,
) -> None:
    """Joins this process to a world of workers that call each other.

    Messages are pickles, as in PyTorch: each worker can run any code in the others. A worker listens on the address
    that leads to the store's host. It reads a message only from a peer that proves to know the world's secret, which
    rank 0 puts into the store.

    Args:
        name: A name that no other worker has.
        backend: `BackendType.TENSORPIPE`, the default.
        rank: This worker's rank. Default: from the address or the environment.
        world_size: How many workers there are. Default: from the address or the environment.
        rpc_backend_options: Threads, time limit, address and device maps.

    Raises:
        TypeError: ``backend`` or ``rpc_backend_options`` has another type.
        RuntimeError: RPC is initialized, two workers have the same name, or one cannot be reached.
        ValueError: The name has other characters than letters, digits, "_", ":" and "-", or is too long. A rank or
            size is missing.

    Example:
        >>> import torchlite.distributed.rpc as rpc
        >>> options = rpc.TensorPipeRpcBackendOptions(init_method="tcp://localhost:0")
        >>> rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> rpc.rpc_sync("alone", torch.add, (torch.ones(2), 1))
        tensor([2., 2.])
        >>> rpc.remote("alone", max, (1, 2)).to_here()
        2
        >>> rpc.shutdown()
    """
    import re

    from .._rendezvous_handlers import rendezvous
    from .._stores import PrefixStore
    from ._agent import Agent, find_own_address

    if backend is not None and not isinstance(backend, BackendType):
        raise TypeError("Argument backend must be a member of BackendType")
    if rpc_backend_options is not None and not isinstance(rpc_backend_options, RpcBackendOptions):
        raise TypeError("Argument rpc_backend_options must be an instance of RpcBackendOptions")
    options = rpc_backend_options or TensorPipeRpcBackendOptions()
    if not isinstance(options, TensorPipeRpcBackendOptions):
        raise TypeError(f"`rpc_backend_options` must be a `TensorPipeRpcBackendOptions`. {options}")
    if not re.fullmatch(r"[A-Za-z0-9_:-]{1,127}", name):
        raise ValueError(
            f"Worker name must match ^[A-Za-z0-9-_:]*$ and be non-empty and shorter than 128 chars, but got {name}"
        )
    if _state.is_set():
        raise RuntimeError("RPC is already initialized")
    store, rank, size = next(rendezvous(options.init_method, rank, -1 if world_size is None else world_size))
    limit = options.rpc_timeout or 300.0
    store.set_timeout(timedelta(seconds=limit))
    agent = Agent(PrefixStore(f"rpc_{next(_worlds)}", store), name, rank, size, options, find_own_address(store))
    _state.put(agent)
    agent.ready.set()


__dir__ = make_module_dir(globals())
