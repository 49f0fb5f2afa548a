"""Calls of functions on other workers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlite.futures import Future

from . import _state
from ._agent import IDS
from ._channel import CALL, REMOTE
from ._rref import RRef, make_rref
from ._worker_info import WorkerInfo
from .constants import DEFAULT_SHUTDOWN_TIMEOUT, UNSET_RPC_TIMEOUT

__all__ = ["RRef", "get_worker_info", "remote", "rpc_async", "rpc_sync", "shutdown"]


def _require_initialized(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function that needs RPC: a call without it raises RuntimeError."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _state.agent()
        return func(*args, **kwargs)

    return wrapper


def _is_current_rpc_agent_set() -> bool:
    """Return whether `init_rpc` was called."""
    return _state.is_set()


def get_worker_info(worker_name: str | None = None) -> WorkerInfo:
    """Returns the worker of a name.

    Args:
        worker_name: The name. Default: this worker.

    Raises:
        RuntimeError: RPC is not initialized, or no worker has the name.

    Example:
        >>> torch.distributed.rpc.get_worker_info()
        Traceback (most recent call last):
        RuntimeError: RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.
    """
    agent = _state.agent()
    return agent.me if worker_name is None else agent.get_worker_info(worker_name)


def rpc_async(to: Any, func: Callable[..., Any], args: Any = None, kwargs: Any = None, timeout: float = -1.0) -> Future:
    """Calls a function on a worker and returns a future of its result.

    Args:
        to: Name, rank or `WorkerInfo` of the worker.
        func: A function that pickle finds by its name on both sides.
        args: Its arguments.
        kwargs: Its named arguments.
        timeout: Seconds; 0 means without a limit. Default: the world's.

    Returns:
        A future. Its error has the class of the remote error, and its text with the remote traceback.

    Raises:
        RuntimeError: RPC is not initialized, or there is no such worker.
        TypeError: ``func`` is not callable.

    Example:
        >>> torch.distributed.rpc.rpc_async("worker1", max, (1, 2))
        Traceback (most recent call last):
        RuntimeError: RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.
    """
    agent = _state.agent()
    if not callable(func):
        raise TypeError("function should be callable.")
    worker = agent.get_worker_info(to)
    return agent.request(CALL, worker, agent.pickle_for(worker.id, (func, tuple(args or ()), kwargs or {})), timeout)


def rpc_sync(to: Any, func: Callable[..., Any], args: Any = None, kwargs: Any = None, timeout: float = -1.0) -> Any:
    """Calls a function on a worker and returns its result.

    Args:
        to: Name, rank or `WorkerInfo` of the worker.
        func: A function that pickle finds by its name on both sides.
        args: Its arguments.
        kwargs: Its named arguments.
        timeout: Seconds; 0 means without a limit. Default: the world's.

    Raises:
        RuntimeError: RPC is not initialized, the time is over, or the worker ended. An error of the function keeps
            its class.
        TypeError: ``func`` is not callable.

    Example:
        >>> torch.distributed.rpc.rpc_sync("worker1", max, (1, 2))
        Traceback (most recent call last):
        RuntimeError: RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.
    """
    return rpc_async(to, func, args, kwargs, timeout).wait()


def remote(
    to: Any, func: Callable[..., Any], args: Any = None, kwargs: Any = None, timeout: float = UNSET_RPC_TIMEOUT
) -> RRef:
    """Calls a function on a worker and returns an RRef of its result at once.

    Args:
        to: Name, rank or `WorkerInfo` of the worker, which will own the result.
        func: A function that pickle finds by its name on both sides.
        args: Its arguments.
        kwargs: Its named arguments.
        timeout: Seconds; 0 means without a limit. Default: the world's. After it, uses of the RRef raise.

    Raises:
        RuntimeError: RPC is not initialized, or there is no such worker.
        TypeError: ``func`` is not callable.

    Example:
        >>> torch.distributed.rpc.remote("worker1", max, (1, 2))
        Traceback (most recent call last):
        RuntimeError: RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.
    """
    agent = _state.agent()
    if not callable(func):
        raise TypeError("function should be callable.")
    worker = agent.get_worker_info(to)
    rref, holder = agent.new_id(), agent.new_id()
    data = IDS.pack(*rref, *holder) + agent.pickle_for(worker.id, (func, tuple(args or ()), kwargs or {}))
    return make_rref(worker, rref, holder, agent.request(REMOTE, worker, data, timeout))


def shutdown(graceful: bool = True, timeout: float = DEFAULT_SHUTDOWN_TIMEOUT) -> None:
    """Ends RPC in this process.

    Args:
        graceful: Wait until every worker has called this and no call is on the way.
        timeout: Seconds to wait; 0 means without a limit.

    Raises:
        RuntimeError: RPC is not initialized, a worker ended without calling this, or the time is over. RPC has
            ended all the same.

    Example:
        >>> torch.distributed.rpc.shutdown()
        Traceback (most recent call last):
        RuntimeError: RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.
    """
    agent = _state.agent()
    try:
        if graceful:
            agent.wait_for_all(timeout)
    finally:
        _state.take().close()
