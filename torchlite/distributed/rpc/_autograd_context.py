"""Contexts of distributed autograd, and the nodes that join the graphs of two workers.

A call within a context has its number. For the tensors of a message that require a gradient, the sender keeps a node
`SendRpc`, whose inputs they are. The receiver makes them results of nodes `RecvRpc`. Each has a leaf without memory,
whose gradient is that of the tensor.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
import threading
from collections.abc import Iterator
from typing import Any

import torchlite as torch
from torchlite._settings import fork_locks
from torchlite.autograd import Function

META = struct.Struct("!QQ")  # a context's number plus one, or zero, and the message's
_RANK_SHIFT = 48  # a number is a rank, and a count


class _ThisThread(threading.local):
    context: DistAutogradContext | None = None
    incoming: _Incoming | None = None  # the message that this thread reads


_this_thread = _ThisThread()
_contexts: dict[int, DistAutogradContext] = {}
_counts = itertools.count()
_lock = fork_locks.acquire_before_fork(threading.RLock())


class SendRpc(Function):
    """The node of tensors that were sent: its results stand for them, and have no memory."""

    @staticmethod
    def forward(ctx: Any, *tensors: torch.Tensor) -> Any:
        return tuple(tensor.new_zeros(()).expand(tensor.shape) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return grads


class RecvRpc(Function):
    """The node of a tensor that came; its input is the leaf that stands for the sender's."""

    @staticmethod
    def forward(ctx: Any, payload: list[torch.Tensor], leaf: torch.Tensor) -> torch.Tensor:
        return payload[0]

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return None, grad


class DistAutogradContext:
    """One worker's part of a distributed backward pass: its messages, and gradients of leaves.

    `context` makes one, and a worker that gets a message of a context that it does not know.

    Args:
        number: The number of the context.

    Example:
        >>> import torchlite.distributed.autograd as dist_autograd
        >>> dist_autograd.DistAutogradContext(3)._context_id()
        3
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.known: set[int] = set()  # ranks that got a message of this context from here
        self.sent: dict[int, tuple[torch.Tensor, ...]] = {}  # results of SendRpc, by message
        self.received: dict[int, tuple[int, list[torch.Tensor]]] = {}  # the sender and the leaves, by message
        self.gradients: dict[torch.Tensor, torch.Tensor] = {}
        self.running: Any = None  # this worker's part of the backward pass
        self.failure: BaseException | None = None  # of the last one
        self.lock = threading.RLock()

    def _context_id(self) -> int:
        return self.number

    def _known_worker_ids(self) -> set[int]:
        return self.known

    def _send_functions(self) -> dict[int, Any]:
        return {number: tensors[0].grad_fn for number, tensors in self.sent.items()}

    def _recv_functions(self) -> dict[int, Any]:
        return {number: leaves for number, (_, leaves) in self.received.items()}


class _Incoming:
    """The tensors of a message that is being read."""

    def __init__(self) -> None:
        self.leaves: list[torch.Tensor] = []


def new_number() -> int:
    """Return a number that no other rank gives."""
    from ._state import agent

    return agent().me.id << _RANK_SHIFT | next(_counts)


def current_context() -> DistAutogradContext | None:
    """Return this thread's context."""
    return _this_thread.context


def make_context() -> DistAutogradContext:
    """Make a context, and make it this thread's."""
    if _this_thread.context is not None:
        raise RuntimeError("Already have an autograd context id set for this thread.")
    _this_thread.context = find_or_make(new_number())
    return _this_thread.context


def find_or_make(number: int) -> DistAutogradContext:
    """Return the context of a number; another rank may have made it."""
    with _lock:
        return _contexts.setdefault(number, DistAutogradContext(number))


def find_context(number: int) -> DistAutogradContext:
    """Return the context of a number; RuntimeError if there is none."""
    with _lock:
        found = _contexts.get(number)
    if found is None:
        raise RuntimeError(f"Could not find autograd context with id: {number}")
    return found


def forget_context(number: int) -> DistAutogradContext | None:
    """Remove a context, of this thread too; return it."""
    if _this_thread.context is not None and _this_thread.context.number == number:
        _this_thread.context = None
    with _lock:
        return _contexts.pop(number, None)


@contextlib.contextmanager
def within(context: DistAutogradContext | None) -> Iterator[None]:
    """Make a context this thread's, in a block; None for no context."""
    before, _this_thread.context = _this_thread.context, context
    try:
        yield
    finally:
        _this_thread.context = before


class Outgoing:
    """The tensors of a message that is being written for a rank."""

    def __init__(self, context: DistAutogradContext, peer: int, me: int) -> None:
        self.context, self.number = context, new_number()
        self.tensors: list[torch.Tensor] = []
        if peer != me:
            context.known.add(peer)

    def reduce(self, tensor: torch.Tensor) -> tuple:
        """Return how a tensor that requires a gradient is pickled."""
        self.tensors.append(tensor)
        return _receive_tensor, (tensor.detach(),)

    def finish(self) -> bytes:
        """Keep the node of the tensors; return the beginning of the message."""
        if self.tensors:
            with torch.enable_grad():
                self.context.sent[self.number] = SendRpc.apply(*self.tensors)
        return META.pack(self.context.number + 1, self.number)


NO_CONTEXT = META.pack(0, 0)


def _receive_tensor(payload: torch.Tensor) -> torch.Tensor:
    leaf = payload.new_zeros(()).expand(payload.shape).requires_grad_()
    incoming = _this_thread.incoming
    assert incoming is not None
    incoming.leaves.append(leaf)
    with torch.enable_grad():
        return RecvRpc.apply([payload], leaf)


def read(data: Any, peer: int, loads: Any, is_reply: bool = False) -> tuple[Any, DistAutogradContext | None]:
    """Return the value of a message of a rank, and its context. A reply may come after the end of its context."""
    number, message = META.unpack(data[: META.size])
    context = None
    if number:
        context = _contexts.get(number - 1) if is_reply else find_or_make(number - 1)
    before, _this_thread.incoming = _this_thread.incoming, _Incoming()
    try:
        value = loads(memoryview(data)[META.size :]) if len(data) > META.size else None
        leaves = _this_thread.incoming.leaves
    finally:
        _this_thread.incoming = before
    if context is not None and leaves:
        for leaf in leaves:
            leaf.rpc_message = message  # type: ignore[attr-defined]
        context.received[message] = peer, leaves
    return value, context


def _forget_in_child() -> None:
    _contexts.clear()
    _this_thread.context = None


os.register_at_fork(after_in_child=_forget_in_child)
