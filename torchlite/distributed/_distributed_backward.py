"""The distributed backward pass: from the roots through the graphs of all workers.

First the root's worker finds what the pass reaches. Each worker tells which messages it received lie below which
messages that it sent. Then gradients travel. A worker runs backward from the messages it sent once their gradients
have come, as few times as possible. It sends the gradient of a message it received once all that lies above has run.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import torchlite as torch
from torchlite.futures import Future

from .rpc import _state
from .rpc._agent import let_others_run
from .rpc._autograd_context import DistAutogradContext, find_context, find_or_make, within
from .rpc._channel import CALL
from .rpc.functions import async_execution

ROOT = -1  # in place of a message's number: the roots of the pass
_FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


class _Source:
    """Where gradients enter this worker's graph: tensors that were sent, or the roots."""

    def __init__(self, tensors: Sequence[torch.Tensor], leaves: list[torch.Tensor], below: set[int]) -> None:
        self.tensors, self.leaves, self.below = tensors, leaves, below
        self.gradients: list[torch.Tensor | None] | None = None  # once they have come
        self.has_run = False


class LocalPass:
    """One worker's part of a backward pass."""

    def __init__(self, context: DistAutogradContext) -> None:
        self.context = context
        self.sources: dict[int, _Source] = {}
        self.partial: dict[int, list[torch.Tensor | None]] = {}  # gradients of messages received, as far as computed
        self.places: dict[int, tuple[int, int]] = {}  # of a leaf, by its id: message and place
        self.left: set[int] = set()  # messages received whose gradients are not sent
        self.unacknowledged = 0
        self.retain_graph = False
        self.finished: Future = Future()
        self._run_lock = threading.Lock()

    # What the pass reaches

    def mark(self, number: int, tensors: Sequence[torch.Tensor] | None = None) -> list[tuple[int, int]]:
        """Add a source; return the messages below it that no source before had below: senders and numbers."""
        context = self.context
        with context.lock:
            if number in self.sources:
                return []
            given = context.sent.get(number) if tensors is None else tensors
            if given is None:
                raise RuntimeError(_FREED)
            leaves = find_leaves(given)
            below = {leaf.rpc_message for leaf in leaves if hasattr(leaf, "rpc_message")}
            if not below <= context.received.keys():
                raise RuntimeError(_FREED)
            new = below - self.left
            self.sources[number] = _Source(given, leaves, below)
            for message in new:
                received = context.received[message][1]
                self.partial[message] = [None] * len(received)
                self.places.update((id(leaf), (message, place)) for place, leaf in enumerate(received))
            self.left |= new
            return [(context.received[message][0], message) for message in sorted(new)]

    # Gradients

    def take(self, number: int, gradients: list[torch.Tensor | None]) -> None:
        """Take the gradients of a source, and run what can be run now."""
        with self._run_lock:
            with self.context.lock:
                self.sources[number].gradients = gradients
                chosen = self._choose()
            if chosen:
                self._run(chosen)
            with self.context.lock:
                complete = [message for message in self.left if all(s.has_run for s in self._above(message))]
                self.left.difference_update(complete)
                self.unacknowledged += len(complete)
        for message in complete:
            peer, _ = self.context.received[message]
            sent = call(peer, take_gradients, self.context.number, message, self.partial.pop(message))
            sent._call_when_done(self._acknowledge)
        self._finish_if_done()

    def _above(self, message: int) -> list[_Source]:
        return [source for source in self.sources.values() if message in source.below]

    def _choose(self) -> list[_Source]:
        """Return the sources to run now: those that complete a message, or the rest when nothing is missing."""
        waiting = [source for source in self.sources.values() if not source.has_run]
        if all(source.gradients is not None for source in waiting):
            return waiting
        chosen: list[_Source] = []
        for message in self.left:
            above = self._above(message)
            if all(source.gradients is not None for source in above):
                chosen += [source for source in above if not source.has_run and source not in chosen]
        return chosen

    def _run(self, chosen: list[_Source]) -> None:
        pairs = [
            (tensor, gradient)
            for source in chosen
            for tensor, gradient in zip(source.tensors, source.gradients or (), strict=True)
            if gradient is not None
        ]
        leaves = list({id(leaf): leaf for source in chosen for leaf in source.leaves}.values())
        last = all(source.has_run or source in chosen for source in self.sources.values())
        found: Iterable[Any] = ()
        if pairs and leaves:
            tensors, gradients = zip(*pairs, strict=True)
            keep = self.retain_graph or not last
            found = torch.autograd.grad(tensors, leaves, gradients, retain_graph=keep, allow_unused=True)
        with self.context.lock:
            for leaf, gradient in zip(leaves, found, strict=False):
                if gradient is not None:
                    self._add(leaf, gradient)
            for source in chosen:
                source.has_run = True

    def _add(self, leaf: torch.Tensor, gradient: torch.Tensor) -> None:
        message, place = self.places.get(id(leaf), (None, 0))
        if message is not None:
            parts = self.partial[message]
            before = parts[place]
            parts[place] = gradient if before is None else before + gradient
            return
        known = self.context.gradients
        known[leaf] = known[leaf] + gradient if leaf in known else gradient

    def _acknowledge(self, done: Future) -> None:
        if done._error is not None:
            self.fail(done._error)
            return
        with self.context.lock:
            self.unacknowledged -= 1
        self._finish_if_done()

    def _finish_if_done(self) -> None:
        with self.context.lock:
            running = self.left or self.unacknowledged or not all(s.has_run for s in self.sources.values())
            if running or self.finished.done():
                return
            self._close()
            self.finished.set_result(None)

    def fail(self, error: BaseException) -> None:
        """End the pass with an error."""
        with self.context.lock:
            if not self.finished.done():
                self.context.failure = error
                self._close()
                self.finished.set_exception(error)

    def _close(self) -> None:
        if not self.retain_graph:
            for number in self.sources:
                self.context.sent.pop(number, None)
            for message in [m for source in self.sources.values() for m in source.below]:
                self.context.received.pop(message, None)
        if self.context.running is self:
            self.context.running = None


def find_leaves(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the leaves of the graphs of tensors."""
    left, seen, found = [tensor.grad_fn for tensor in tensors], set(), []
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            found.append(leaf)
        left.extend(following for following, _ in node.next_functions)
    return found


def call(rank: int, function: Any, *args: Any) -> Future:
    """Call a function of this module on a rank, without a context and without a limit."""
    agent = _state.agent()
    worker = agent.workers[rank]
    with within(None):
        return agent.request(CALL, worker, agent.pickle_for(rank, (function, args, {})), 0)


def _pass_of(number: int) -> LocalPass:
    context = find_or_make(number)
    with context.lock:
        if context.running is None:
            context.running, context.failure = LocalPass(context), None
        return context.running


# What workers call on each other


def mark_messages(number: int, messages: list[int], retain_graph: bool) -> list[tuple[int, int]]:
    """Mark messages that this worker sent; return those that it received and that lie below."""
    part = _pass_of(number)
    part.retain_graph = retain_graph
    return [below for message in messages for below in part.mark(message)]


def take_gradients(number: int, message: int, gradients: list[torch.Tensor | None]) -> None:
    """Take the gradients of a message that this worker sent."""
    part = find_context(number).running
    if part is not None:  # else the pass has failed
        try:
            part.take(message, gradients)
        except Exception as error:
            part.fail(error)
            raise


@async_execution
def wait_until_done(number: int) -> Future:
    """Return a future that is complete when this worker's part is."""
    context = find_context(number)
    with context.lock:
        if context.running is not None:
            return context.running.finished
        done: Future = Future()
        done.set_result(None) if context.failure is None else done.set_exception(context.failure)
        return done


def abort(number: int, text: str) -> None:
    """End this worker's part of a pass that failed elsewhere."""
    part = find_or_make(number).running
    if part is not None:
        part.fail(RuntimeError(text))


# The pass


def run_backward(context: DistAutogradContext, roots: Sequence[torch.Tensor], retain_graph: bool) -> None:
    """Run the pass from roots of this worker, which have one element each."""
    me = _state.agent().me.id
    with context.lock:
        if context.running is not None:
            raise RuntimeError(f"a backward pass of the autograd context {context.number} is running")
        part = context.running = LocalPass(context)
        context.failure = None
    part.retain_graph = retain_graph
    workers: set[int] = set()
    try:
        frontier = part.mark(ROOT, roots)
        while frontier:
            by_rank: dict[int, list[int]] = {}
            for rank, message in frontier:
                by_rank.setdefault(rank, []).append(message)
            workers |= by_rank.keys() - {me}
            answers = [
                call(rank, mark_messages, context.number, messages, retain_graph) for rank, messages in by_rank.items()
            ]
            frontier = [below for answer in answers for below in answer.wait()]
        waiting = [call(rank, wait_until_done, context.number) for rank in workers]
        part.take(ROOT, [torch.ones_like(root) for root in roots])
        with let_others_run():
            _wait_for_all([part.finished, *waiting])
    except Exception as error:
        part.fail(error)
        for rank in workers:
            call(rank, abort, context.number, f"the backward pass failed on another worker: {error}")
        raise


def _wait_for_all(futures: list[Future]) -> None:
    """Wait for futures; raise the first error as soon as it is there."""
    done: queue.SimpleQueue = queue.SimpleQueue()
    for future in futures:
        future._call_when_done(done.put)
    for _ in futures:
        done.get().value()


def release(number: int, known: set[int]) -> None:
    """Forget a context on this worker's peers, and on theirs."""
    for rank in known if _state.is_set() else ():  # else RPC has ended
        call(rank, release_here, number)


def release_here(number: int) -> None:
    """Forget a context on this worker, and on those that have it from here."""
    from .rpc._autograd_context import forget_context

    context = forget_context(number)
    if context is not None:
        release(number, context.known)
