"""RRef: a reference to a value that lives on one rank."""

from __future__ import annotations

import weakref
from typing import Any, Generic, TypeVar

from torchlite.futures import Future

from . import functions
from ._agent import IDS, RemoteError, _make_error
from ._channel import FETCH
from ._state import agent as current_agent
from ._worker_info import WorkerInfo
from .constants import UNSET_RPC_TIMEOUT

_T = TypeVar("_T")


class RRef(Generic[_T]):
    """Reference to a value of some worker, its owner; made here, this worker is the owner.

    An RRef can be an argument or a result of a call. The owner keeps the value until no RRef refers to it.

    Args:
        value: The value.
        type_hint: The class that other workers see as the type of the value. Default: the value's.

    Example:
        >>> torch.distributed.rpc.RRef(1)
        Traceback (most recent call last):
        RuntimeError: RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.
    """

    def __init__(self, value: _T, type_hint: Any = None) -> None:
        agent = current_agent()
        if type_hint is not None and not isinstance(value, type_hint):
            raise TypeError(f"the value is no {type_hint}, but a {type(value)}")
        rref, holder = agent.new_id(), agent.new_id()
        agent.own(rref).future.set_result(value)
        agent.add_holder(agent.me.id, rref, holder)
        self._bind(agent.me, rref, holder, None)

    def _bind(self, owner: WorkerInfo, rref: tuple[int, int], holder: tuple[int, int], made: Future | None) -> None:
        agent = current_agent()
        self._agent, self._owner, self._id, self._made = agent, owner, rref, made
        self._value = agent.own(rref) if owner.id == agent.me.id else None
        weakref.finalize(self, agent.drop_holder, owner.id, rref, holder).atexit = False

    def _share(self) -> tuple[int, tuple[int, int], tuple[int, int]]:
        holder = self._agent.new_id()
        self._agent.add_holder(self._owner.id, self._id, holder)
        return self._owner.id, self._id, holder

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
        value = self._agent.request(FETCH, self._owner, IDS.pack(*self._id, 0, 0), timeout).wait()
        self._made = None  # the owner has the value, whichever answer came first
        return value

    def rpc_sync(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """Returns a proxy: its methods run on the owner and return their result.

        Args:
            timeout: Seconds for each call.
        """
        from .api import rpc_sync

        return _Proxy(self, rpc_sync, timeout)

    def rpc_async(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """Returns a proxy: its methods run on the owner and return a future.

        Args:
            timeout: Seconds for each call.
        """
        from .api import rpc_async

        return _Proxy(self, rpc_async, timeout)

    def remote(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """Returns a proxy: its methods run on the owner and return an RRef.

        Args:
            timeout: Seconds for each call.
        """
        from .api import remote

        return _Proxy(self, remote, timeout)

    def __repr__(self) -> str:
        kind = "OwnerRRef" if self._value is not None else "UserRRef"
        return f"{kind}(rref_id = GloballyUniqueId(created_on={self._id[0]}, local_id={self._id[1]}))"


def _wait_for(future: Future) -> Any:
    try:
        return future.wait()
    except RemoteError as error:
        raise _make_error(*error.args) from None


def make_rref(owner: WorkerInfo, rref: tuple[int, int], holder: tuple[int, int], made: Future | None) -> RRef:
    """Return an RRef of a value elsewhere, whose holder the owner knows or will."""
    made_rref: RRef = RRef.__new__(RRef)
    made_rref._bind(owner, rref, holder, made)
    return made_rref


def unpickle_rref(owner: int, rref: tuple[int, int], holder: tuple[int, int]) -> RRef:
    """Return the RRef that a message has."""
    return make_rref(current_agent().workers[owner], rref, holder, None)


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
