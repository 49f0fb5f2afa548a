"""The worker processes of a DataLoader: what runs in them, and the iterator that gives them work."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import multiprocessing.connection as connections
import random
import time
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

import torchlite as torch
from torchlite._utils import ExceptionWrapper

from ._fetch import fetcher_for
from ._transport import PIPE_LIMIT, make_folders, receive, remove_folders, send

if TYPE_CHECKING:
    from collections.abc import Iterator


class WorkerInfo:
    """What `get_worker_info()` tells inside a worker: id, num_workers, seed, dataset (this worker's copy)."""

    id: int
    num_workers: int
    seed: int
    dataset: Any

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError("Cannot assign attributes to WorkerInfo objects")

    def __repr__(self) -> str:
        return "WorkerInfo(" + ", ".join(f"{name}={value}" for name, value in self.__dict__.items()) + ")"


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a DataLoader's worker, what it has to know about itself; None in the main process."""
    return _info


class _End:
    """A worker's answer when its stream has ended."""


def _seed_everything(base_seed: int, worker: int) -> int:
    """As PyTorch: Python and torch get base_seed + id, NumPy a state mixed of both."""
    seed = base_seed + worker
    random.seed(seed)
    torch.manual_seed(seed)
    entropy = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    # user code in workers reads this stream
    np.random.seed(np.random.SeedSequence(entropy).generate_state(4))  # noqa: NPY002
    return seed


class Settings:
    """What a worker is told when it starts."""

    def __init__(self, loader: Any, base_seed: int, folders: list[str]) -> None:
        self.dataset, self.collate_fn, self.drop_last, self.batched = (
            loader.dataset,
            loader.collate_fn,
            loader.drop_last,
            loader._auto_collation,
        )
        self.init_fn, self.count, self.base_seed, self.folders = (
            loader.worker_init_fn,
            loader.num_workers,
            base_seed,
            folders,
        )
        self.limit = (
            max(512, min(PIPE_LIMIT, 100_000 // loader.prefetch_factor)) if loader.prefetch_factor else PIPE_LIMIT
        )


def _serve(connection, settings: Settings, worker: int, others) -> None:
    """The worker's main loop: every task gets exactly one answer."""
    global _info
    for other in others:  # ends of pipes that a forked process inherits: they would keep pipes open that should close
        other.close()
    where = f"in DataLoader worker process {worker}"
    answer: Any = None
    error: ExceptionWrapper | None = None
    fetcher: Any = None
    try:
        torch.set_num_threads(1)
        seed = _seed_everything(settings.base_seed, worker)
        _info = WorkerInfo(id=worker, num_workers=settings.count, seed=seed, dataset=settings.dataset)
        if settings.init_fn is not None:
            settings.init_fn(worker)
    except Exception as raised:
        error = ExceptionWrapper(raised, where)
    try:
        while _wait_for_task(connection):
            task = receive(connection)
            if task is None:
                return
            number, index = task
            if number < 0:  # a new epoch
                fetcher, answer = None, None
            elif error is not None:
                answer, error = error, None
            else:
                try:
                    fetcher = fetcher or fetcher_for(
                        settings.dataset, settings.batched, settings.collate_fn, settings.drop_last
                    )
                    answer = fetcher.fetch(index)
                except StopIteration:
                    answer = _End()
                    if not isinstance(
                        settings.dataset, torch.utils.data.IterableDataset
                    ):  # then the data set is broken: say so
                        answer = ExceptionWrapper(RuntimeError("the dataset raised StopIteration"), where)
                except Exception as raised:
                    answer = ExceptionWrapper(raised, where)
            _answer(connection, number, answer, settings, where)
            answer = None
    except (KeyboardInterrupt, EOFError, BrokenPipeError, ConnectionResetError):
        return


def _answer(connection, number: int, answer, settings: Settings, where: str) -> None:
    try:
        send(connection, (number, answer), settings.folders, settings.limit)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as raised:  # the batch, or the exception, does not pickle
        cause = answer.exc_msg if isinstance(answer, ExceptionWrapper) else ""
        wrapped = ExceptionWrapper(raised, where)
        wrapped.exc_type, wrapped.exc_msg = RuntimeError, cause + wrapped.exc_msg
        send(connection, (number, wrapped), settings.folders, settings.limit)


def _wait_for_task(connection) -> bool:
    """Whether a task came; False when the main process is gone."""
    parent = multiprocessing.parent_process()
    while not connection.poll(5):
        if parent is not None and not parent.is_alive():
            return False
    return True


def _stop(processes, pipes, folders) -> None:
    """End the workers: ask, wait, and end those that do not listen."""
    for pipe in pipes:
        with contextlib.suppress(OSError, ValueError):  # gone already
            send(pipe, None, folders)
    deadline = time.monotonic() + 5
    for process in processes:
        process.join(max(0.1, deadline - time.monotonic()))
        if process.is_alive():
            process.terminate()
            process.join(1)
    for pipe in pipes:
        pipe.close()
    remove_folders(folders)


class WorkersIterator:
    """Batches made by worker processes, in the order of the sampler unless `in_order` is False."""

    def __init__(self, loader: Any, base_seed: int, indices: Any) -> None:
        self._loader, self._timeout = loader, loader.timeout
        self._folders = make_folders()
        settings = Settings(loader, base_seed, self._folders)
        self._limit = settings.limit
        context = loader.multiprocessing_context or multiprocessing.get_context()
        forked = context.get_start_method() == "fork"
        self._pipes: list[Any] = []
        self._processes: list[Any] = []
        self._finalizer = weakref.finalize(self, _stop, self._processes, self._pipes, self._folders)
        for worker in range(loader.num_workers):
            mine, theirs = context.Pipe()
            self._pipes.append(mine)
            process = context.Process(
                target=_serve, args=(theirs, settings, worker, list(self._pipes) if forked else []), daemon=True
            )
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", DeprecationWarning
                )  # forking with threads: ours start again in the child
                process.start()
            theirs.close()
            self._processes.append(process)
        self._begin(indices)

    def _begin(self, indices) -> None:
        self._indices, self._sent, self._next = indices, 0, 0
        self._waiting: dict[int, int] = {}  # number of the task -> worker
        self._ready: dict[int, Any] = {}
        self._active = [True] * len(self._pipes)
        self._cycle = itertools.cycle(range(len(self._pipes)))
        for _ in range(self._loader.prefetch_factor * len(self._pipes)):
            self._give_work()

    def restart(self, indices: Any) -> None:
        """A new epoch with the same workers."""
        while self._waiting:
            self._receive()
        for worker, pipe in enumerate(self._pipes):
            self._waiting[-1 - worker] = worker
            send(pipe, (-1 - worker, None), self._folders, self._limit)
        while self._waiting:
            self._receive()
        self._begin(indices)

    def _give_work(self) -> None:
        if not any(self._active):
            return
        try:
            index = next(self._indices)
        except StopIteration:
            return
        worker = next(w for w in self._cycle if self._active[w])
        self._waiting[self._sent] = worker
        try:
            send(self._pipes[worker], (self._sent, index), self._folders, self._limit)
        except (BrokenPipeError, ConnectionResetError):
            self._lost()
        self._sent += 1

    def _lost(self):
        # A pipe closes a moment before its process has ended.
        for sentinel in connections.wait([p.sentinel for p in self._processes], 2):
            next(p for p in self._processes if p.sentinel == sentinel).join(2)
        gone = [str(p.pid) for p in self._processes if not p.is_alive()]
        self.close()
        raise RuntimeError(f"DataLoader worker (pid(s) {', '.join(gone)}) exited unexpectedly")

    def _receive(self) -> None:
        """Take one answer. RuntimeError when a worker died or the time is over."""
        wanted = {self._pipes[w] for w in self._waiting.values()}
        sentinels = [p.sentinel for p in self._processes]
        found = connections.wait([*wanted, *sentinels], self._timeout or None)
        if not found:
            for process in self._processes:
                process.terminate()  # they are busy with something endless and would not listen
            self.close()
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        pipe = next((item for item in found if item in wanted), None)
        if pipe is None:
            self._lost()
        try:
            number, data = receive(pipe)
        except (EOFError, ConnectionResetError):
            self._lost()
        worker = self._waiting.pop(number)
        if isinstance(data, _End):
            self._active[worker] = False
            self._give_work()
        elif number >= 0:
            self._ready[number] = data

    def _next_number(self) -> int | None:
        """The batch to hand out now, None when it is still waited for. StopIteration when there is no more."""
        if not self._loader.in_order:
            if self._ready:
                return next(iter(self._ready))
        else:
            while self._next < self._sent and self._next not in self._waiting and self._next not in self._ready:
                self._next += 1  # a worker's stream ended
            if self._next in self._ready:
                self._next += 1
                return self._next - 1
        if not self._waiting:
            if not self._loader.persistent_workers:
                self.close()
            raise StopIteration
        return None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while True:
            number = self._next_number()
            if number is not None:
                data = self._ready.pop(number)
                self._give_work()
                if isinstance(data, ExceptionWrapper):
                    data.reraise()
                return data
            self._receive()

    def close(self) -> None:
        """End the workers now (happens by itself at the end of the epoch, or when the iterator is dropped)."""
        self._finalizer()
        self._waiting.clear()

    def __len__(self) -> int:
        return len(self._loader)
