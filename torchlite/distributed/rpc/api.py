"""Calls of functions on other workers, and RRefs: references to values that live there."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from torchlite.futures import Future

from . import _state, functions
from ._agent import IDS, RemoteError, make_error
from ._channel import CALL, FETCH, REMOTE
from ._worker_info import WorkerInfo
from .constants import DEFAULT_SHUTDOWN_TIMEOUT, UNSET_RPC_TIMEOUT

__all__ = ["RRef", "get_worker_info", "remote", "rpc_async", "rpc_sync", "shutdown"]
_T = TypeVar("_T")


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
    return _make_rref(worker, rref, holder, agent.request(REMOTE, worker, data, timeout))


class RRef(Generic[_T]):
    """Reference to a value of some worker, its owner; made here, this worker is the owner.

    An RRef can be an argument or a result of a call. The owner keeps the value until no RRef refers to it.

    Args:
        value: The value.
        type_hint: A class of which the value must be an instance. Default: any.

    Raises:
        TypeError: The value has another class than ``type_hint``.

    Example:
        >>> torch.distributed.rpc.RRef(1)
        Traceback (most recent call last):
        RuntimeError: RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.
    """

    def __init__(self, value: _T, type_hint: Any = None) -> None:
        agent = _state.agent()
        if type_hint is not None and not isinstance(value, type_hint):
            raise TypeError(f"the value is no {type_hint}, but a {type(value)}")
        rref, holder = agent.new_id(), agent.new_id()
        agent.own(rref).future.set_result(value)
        agent.add_holder(agent.me.id, rref, holder)
        self._bind(agent.me, rref, holder, None)

    def _bind(self, owner: WorkerInfo, rref: tuple[int, int], holder: tuple[int, int], made: Future | None) -> None:
        agent = _state.agent()
        self._agent, self._owner, self._id, self._made = agent, owner, rref, made
        self._value = agent.own(rref) if owner.id == agent.me.id else None
        weakref.finalize(self, agent.drop_holder, owner.id, rref, holder).atexit = False

    def _reduce_for_peer(self) -> tuple:
        holder = self._agent.new_id()
        self._agent.add_holder(self._owner.id, self._id, holder)
        return _unpickle_rref, (self._owner.id, self._id, holder)

    def __reduce__(self) -> Any:
        raise RuntimeError("Can not pickle rref in python pickler, rref can only be pickled when using RPC")

    def owner(self) -> WorkerInfo:
        """Returns the worker that has the value."""
        return self._owner

    def owner_name(self) -> str:
        """Returns the name of the worker that has the value."""
        return self._owner.name

    def is_owner(self) -> bool:
        """Returns whether this worker has the value."""
        return self._value is not None

    def confirmed_by_owner(self) -> bool:
        """Returns whether the owner has said that the value exists."""
        return self._made is None or (self._made.done() and self._made._error is None)

    def local_value(self) -> _T:
        """Returns the value itself.

        Raises:
            RuntimeError: Another worker has it.
        """
        if self._value is None:
            raise RuntimeError(
                f"For {self!r}, can't call localValue() on user {self._agent.me}. Call it on owner {self._owner}"
            )
        return _wait_for(self._value.future)

    def to_here(self, timeout: float = UNSET_RPC_TIMEOUT) -> _T:
        """Returns the value itself on its owner, else a copy; waits until there is one.

        Args:
            timeout: Seconds; 0 means without a limit. Default: the world's.

        Raises:
            RuntimeError: The time is over, or the owner ended.
        """
        if self._value is not None:
            return self.local_value()
        if self._made is not None and self._made.done():
            self._made.value()  # it raises what became of the request
        data = IDS.pack(*self._id, 0, 0) + self._agent.context_for(self._owner.id)
        value = self._agent.request(FETCH, self._owner, data, timeout).wait()
        self._made = None  # the owner has the value, whichever answer came first
        return value

    def rpc_sync(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """Returns a proxy: its methods run on the owner and return their result.

        Args:
            timeout: Seconds for each call.
        """
        return _Proxy(self, rpc_sync, timeout)

    def rpc_async(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """Returns a proxy: its methods run on the owner and return a future.

        Args:
            timeout: Seconds for each call.
        """
        return _Proxy(self, rpc_async, timeout)

    def remote(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """Returns a proxy: its methods run on the owner and return an RRef.

        Args:
            timeout: Seconds for each call.
        """
        return _Proxy(self, remote, timeout)

    def __repr__(self) -> str:
        kind = "OwnerRRef" if self._value is not None else "UserRRef"
        return f"{kind}(rref_id = GloballyUniqueId(created_on={self._id[0]}, local_id={self._id[1]}))"


def _get_current_rpc_agent() -> Any:
    """Return this process's agent."""
    return _state.agent()


def _wait_for(future: Future) -> Any:
    try:
        return future.wait()
    except RemoteError as error:
        raise make_error(*error.args) from None


def _make_rref(owner: WorkerInfo, rref: tuple[int, int], holder: tuple[int, int], made: Future | None) -> RRef:
    """Return an RRef of a value elsewhere, whose holder the owner knows or will."""
    made_rref: RRef = RRef.__new__(RRef)
    made_rref._bind(owner, rref, holder, made)
    return made_rref


def _unpickle_rref(owner: int, rref: tuple[int, int], holder: tuple[int, int]) -> RRef:
    """Return the RRef that a message has."""
    return _make_rref(_state.agent().workers[owner], rref, holder, None)


def _call_method(rref: RRef, name: str, args: Any, kwargs: Any) -> Any:
    return getattr(rref.local_value(), name)(*args, **kwargs)


@functions.async_execution
def _call_method_later(rref: RRef, name: str, args: Any, kwargs: Any) -> Any:
    result = _call_method(rref, name, args, kwargs)
    if hasattr(getattr(rref.local_value(), name), "_wrapped_async_rpc_function"):
        return result
    done: Future = Future()
    done.set_result(result)
    return done


class _Proxy:
    def __init__(self, rref: RRef, call: Any, timeout: float) -> None:
        self._rref, self._call, self._timeout = rref, call, timeout

    def __getattr__(self, name: str) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            where = self._rref.owner()
            return self._call(where, _call_method_later, (self._rref, name, args, kwargs), timeout=self._timeout)

        return run


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
