"""The processes that compute: a template, which loads a version of a model, and the workers that are forked from it.

The template has one thread and computes nothing but the model's first calls. So a fork copies no lock that another
thread holds, and workers share all memory that neither they nor the template write to: the weights, and what was made
of them for faster calls.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from . import _frames
from ._errors import ModelFailed, ServeError, Unavailable
from ._payloads import arrived
from ._sources import ModelSource

_log = logging.getLogger("torchlite.serve")
# After so many calls of a size a module has recorded its kernels and laid out its weights for them, to be shared. The
# first size takes three calls. Few rows are laid out as many are, and one row in another way.
_FIRST_CALLS, _FIRST_SECONDS = 26, 1.0
_FEW_ROWS = 4
_LAST_CALLS = 1.0  # seconds that workers have after the server has gone
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Order:
    """The model that a template loads, if `preload` is true; else each worker loads it."""

    source: ModelSource
    version: str
    path: Path | None
    allow_code: bool
    preload: bool
    threads: int  # of one worker


# -- what travels --------------------------------------------------------------------------


@dataclass(frozen=True)
class Hello:
    """A worker's first message: its model as the server's process knows it."""

    process: int
    model: Any
    figures: list[tuple[str, float, str]]


@dataclass(frozen=True)
class Failed:
    """The model cannot be loaded."""

    text: str


@dataclass(frozen=True)
class HasThreads:
    """The model's code has started threads, which a fork would lose: each worker must load the model itself."""

    names: str


@dataclass(frozen=True)
class Ended:
    """A worker's process has ended, with an exit status, or by a signal, which is negative."""

    process: int
    status: int


LOADED, FORK, CANCEL = "loaded", "fork", "cancel"
CALL, PART, DONE, ERROR = range(4)  # kinds of messages of a call


# -- the template --------------------------------------------------------------------------


def main(descriptor: int) -> None:
    """Run a template whose server holds the other end of a socket."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stay)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)
    with contextlib.suppress(EOFError, OSError):
        order: Order = _frames.receive(control)
        _Template(control, order).run()


def _stay(_number: int, _frame: Any) -> None:
    """The signal is also sent to the server, which ends its workers when it has drained."""


class _Template:
    def __init__(self, control: socket.socket, order: Order) -> None:
        self._control, self._order = control, order
        self._model: _Model | None = None
        self._children: set[int] = set()

    def run(self) -> None:
        if self._order.preload:
            try:
                self._model = _Model(self._order)
            except Exception as error:  # of a file, or of a model's code
                _frames.send(self._control, Failed(text_of(error)))
                return
            if threads := _foreign_threads():
                _frames.send(self._control, HasThreads(threads))
                return
            gc.collect()
            gc.freeze()  # a later collection would write to the pages of all objects
        signal.signal(signal.SIGCHLD, lambda *_: self._reap())
        _frames.send(self._control, LOADED)
        try:
            self._serve()
        finally:
            self._end()

    def _serve(self) -> None:
        while True:
            word, descriptors, _, _ = socket.recv_fds(self._control, 64, 1)
            if not word:
                return
            if word == FORK.encode():
                self._fork(descriptors[0])
            elif int(word) in self._children:  # a worker that must end
                os.kill(int(word), signal.SIGKILL)

    def _fork(self, descriptor: int) -> None:
        sys.stdout.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # until the child is in the set
        try:
            process = os.fork()
            if process == 0:
                self._be_worker(descriptor)
            self._children.add(process)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            os.close(descriptor)

    def _be_worker(self, descriptor: int) -> NoReturn:
        status = 1
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            self._control.close()
            _work(socket.socket(fileno=descriptor), self._order, self._model)
            status = 0
        except (EOFError, OSError):  # the server has gone
            status = 0
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        except BaseException:  # the log says whatever ends a worker
            _log.exception("worker process %s of model %s failed", os.getpid(), self._order.source.name)
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(status)  # what the template does at its end is not for its copies

    def _reap(self) -> None:
        for process in list(self._children):
            found, status = os.waitpid(process, os.WNOHANG)
            if found:
                self._children.discard(process)
                with contextlib.suppress(OSError):
                    _frames.send(self._control, Ended(process, os.waitstatus_to_exitcode(status)))

    def _end(self) -> None:
        """End the workers, whose server has gone: idle ones have seen it."""
        end = time.monotonic() + _LAST_CALLS
        while self._children and time.monotonic() < end:
            time.sleep(0.01)
        for process in list(self._children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def _foreign_threads() -> str:
    """Return the names of the threads beside this one, if there are any. Torchlite has one here."""
    found = []
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):  # it has ended
            if int(task) != os.getpid():
                found.append(Path(f"/proc/self/task/{task}/comm").read_text(encoding="utf-8", errors="replace").strip())
    return ", ".join(dict.fromkeys(found))


def text_of(error: BaseException) -> str:
    """Return an error's text in one line."""
    return " ".join(str(error).split())[:500] or type(error).__name__


# -- a worker ------------------------------------------------------------------------------


class _Model:
    """A loaded model, and the figures that its handler has recorded since they were last sent."""

    def __init__(self, order: Order) -> None:
        from ._loading import load_model, warm_up
        from ._tensor_model import TensorModel

        self._figures: list[tuple[str, float, str]] = []
        self._lock = threading.Lock()
        source, config = order.source, order.source.config
        if order.preload:
            source = replace(source, config=replace(config, warmup=0))
        self.model = load_model(source, order.version, order.path, order.allow_code, self._record)
        if order.preload and config.warmup and isinstance(self.model, TensorModel):
            if self.model.can_batch and config.max_batch > 1:
                warm_up(self.model, 3, _FEW_ROWS)
            warm_up(self.model, _FIRST_CALLS, seconds=_FIRST_SECONDS)

    def _record(self, name: str, value: float, unit: str) -> None:
        with self._lock:
            self._figures.append((str(name), float(value), str(unit)))

    def take_figures(self) -> list[tuple[str, float, str]]:
        """Return the figures, and forget them."""
        with self._lock:
            found, self._figures = self._figures, []
        return found


def _work(channel: socket.socket, order: Order, loaded: _Model | None) -> None:
    """Answer the server's calls until it closes the channel."""
    _settle(order)
    if loaded is None:
        try:
            loaded = _Model(order)
        except Exception as error:  # of a file, or of a model's code
            _frames.send(channel, Failed(text_of(error)))
            return
    _frames.send(channel, Hello(os.getpid(), loaded.model.without_code(), loaded.take_figures()))
    while True:
        message = _frames.receive(channel)
        if message[0] != CANCEL:  # or it is for a call that has ended meanwhile
            _Call(channel, message[1]).run(loaded, message[2])
            del message


def _settle(order: Order) -> None:
    """Give a fresh worker its threads, and random numbers of its own."""
    import numpy as np

    import torchlite as torch

    for name in THREAD_VARIABLES:
        os.environ[name] = str(order.threads)
    if order.preload and order.threads > 1:
        torch.set_num_threads(order.threads)
    random.seed()
    np.random.seed()  # noqa: NPY002 - the state that a handler's `np.random.rand` reads
    torch.seed()


class _Call:
    """One call of the model, and the way to send parts of its answers."""

    def __init__(self, channel: socket.socket, number: int) -> None:
        self._channel, self._number = channel, number
        self._cancelled = False

    def run(self, loaded: _Model, payloads: Sequence[Any]) -> None:
        """Call the model, and send its answers or its error."""
        try:
            requests = [arrived(payload, place, self) for place, payload in enumerate(payloads)]
            results, times = loaded.model.run(requests)
            answer = (DONE, self._number, (results, times), loaded.take_figures())
        except Exception as error:  # whatever the model raises is its requests' answer
            answer = (ERROR, self._number, self._error_of(error), loaded.take_figures())  # type: ignore[assignment]
        try:
            message = _frames.Message(answer)
        except Exception as error:  # of pickle, or of an object of the model's code
            failed = ModelFailed(f"the answer cannot leave the worker process: {text_of(error)}")
            message = _frames.Message((ERROR, self._number, failed, loaded.take_figures()))
        message.send(self._channel)

    @staticmethod
    def _error_of(error: Exception) -> ServeError:
        if isinstance(error, ServeError):
            return error
        _log.error("a call failed", exc_info=error)
        return ServeError(f"the server failed ({type(error).__name__}); its log says how")

    def send_part(self, place: int, part: Any) -> None:
        """Send a part of the answer of one of the call's requests. Unavailable if the client wants no more."""
        if self.is_cancelled():
            raise Unavailable("the client takes the answer's parts too slowly, or has gone")
        try:
            message = _frames.Message((PART, self._number, place, part))
        except Exception as error:  # of pickle, or of an object of the model's code
            raise ModelFailed(f"a part of the answer cannot leave the worker process: {text_of(error)}") from error
        message.send(self._channel)

    def is_cancelled(self) -> bool:
        """True if the server wants no more of this call."""
        while not self._cancelled:
            try:
                message = _frames.receive(self._channel, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            self._cancelled = message == (CANCEL, self._number)
        return True
