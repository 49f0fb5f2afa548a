"""The main loop of a DataLoader's worker process. `dataloader.py` starts workers and sends them tasks; `transport.py`
moves the batches.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import random
import threading
import time
from typing import Any

import numpy as np

import torchlite as torch
from torchlite.utils._exception_wrapper import ExceptionWrapper

from .fetch import _DatasetKind
from .transport import PIPE_LIMIT, receive, send

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds after which an idle worker checks that its parent is alive


class WorkerInfo:
    """The result of `get_worker_info()` inside a worker: id, num_workers, seed, dataset (this worker's copy)."""

    id: int
    num_workers: int
    seed: int
    dataset: Any

    def __init__(self, *, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.__dict__.update(id=id, num_workers=num_workers, seed=seed, dataset=dataset)

    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError("Cannot assign attributes to WorkerInfo objects")

    def __repr__(self) -> str:
        return "WorkerInfo(" + ", ".join(f"{name}={value}" for name, value in self.__dict__.items()) + ")"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Returns what a `DataLoader`'s worker knows about itself.

    Returns:
        In a worker an object with the attributes ``id`` (from 0), ``num_workers``, ``seed`` and ``dataset`` (this
        worker's copy). ``None`` in the main process.

    Example:
        >>> print(torch.utils.data.get_worker_info())
        None

    See also:
        `IterableDataset`, whose example divides a stream among workers.
    """
    return _worker_info


class _IterableDatasetStopIteration:
    """Message of a worker whose stream has ended."""


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The four numbers that NumPy is seeded with in a worker."""
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(entropy).generate_state(4).tolist()


def _seed_everything(base_seed: int, worker: int) -> int:
    """As PyTorch: Python and torch get base_seed + id, NumPy a state mixed of both."""
    seed = base_seed + worker
    random.seed(seed)
    torch.manual_seed(seed)
    np.random.seed(_generate_state(base_seed, worker))  # noqa: NPY002 user code in workers reads this stream
    return seed


class WorkerSettings:
    """The settings passed to a worker at its start."""

    def __init__(self, loader: Any, base_seed: int) -> None:
        self.dataset, self.collate_fn, self.drop_last, self.batched = (
            loader.dataset,
            loader.collate_fn,
            loader.drop_last,
            loader._auto_collation,
        )
        self.kind = loader._dataset_kind
        self.init_fn, self.count, self.base_seed = loader.worker_init_fn, loader.num_workers, base_seed
        self.limit = (
            max(512, min(PIPE_LIMIT, 100_000 // loader.prefetch_factor)) if loader.prefetch_factor else PIPE_LIMIT
        )


def _watch_parent() -> None:
    """Exit this process when its parent has ended, also while the data set computes or waits."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True, name="torchlite-parent").start()


def _exit_after(sentinel: int) -> None:
    parent = os.getppid()
    while not multiprocessing.connection.wait([sentinel], 1) and os.getppid() == parent:
        pass  # processes forked meanwhile may keep the sentinel from firing
    os._exit(1)


def _worker_loop(connection, settings: WorkerSettings, worker: int, others) -> None:
    """The worker's main loop: every task gets exactly one reply."""
    global _worker_info
    _watch_parent()
    for other in others:  # inherited pipe ends in a forked process: they would keep closed pipes open
        other.close()
    where = f"in DataLoader worker process {worker}"
    answer: Any = None
    error: ExceptionWrapper | None = None
    fetcher: Any = None
    try:
        torch.set_num_threads(1)
        seed = _seed_everything(settings.base_seed, worker)
        _worker_info = WorkerInfo(id=worker, num_workers=settings.count, seed=seed, dataset=settings.dataset)
        if settings.init_fn is not None:
            settings.init_fn(worker)
    except Exception as raised:  # the user's init_fn may raise anything: the loader raises it
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
                    fetcher = fetcher or _DatasetKind.create_fetcher(
                        settings.kind, settings.dataset, settings.batched, settings.collate_fn, settings.drop_last
                    )
                    answer = fetcher.fetch(index)
                except StopIteration:
                    answer = _IterableDatasetStopIteration()
                    if settings.kind == _DatasetKind.Map:  # then the data set is broken: report it
                        answer = ExceptionWrapper(RuntimeError("the dataset raised StopIteration"), where)
                except Exception as raised:  # the user's dataset may raise anything: the loader raises it
                    answer = ExceptionWrapper(raised, where)
            _send_answer(connection, number, answer, settings, where)
            answer = None
    except (KeyboardInterrupt, EOFError, BrokenPipeError, ConnectionResetError):
        return


def _send_answer(connection, number: int, answer, settings: WorkerSettings, where: str) -> None:
    try:
        send(connection, (number, answer), settings.limit)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as raised:  # the batch, or the exception, cannot be pickled
        cause = answer.exc_msg if isinstance(answer, ExceptionWrapper) else ""
        wrapped = ExceptionWrapper(raised, where)
        wrapped.exc_type, wrapped.exc_msg = RuntimeError, cause + wrapped.exc_msg
        send(connection, (number, wrapped), settings.limit)


def _wait_for_task(connection) -> bool:
    """True if a task has arrived; False if the main process is gone."""
    parent = multiprocessing.parent_process()
    while not connection.poll(MP_STATUS_CHECK_INTERVAL):
        if parent is not None and not parent.is_alive():
            return False
    return True


def _stop_workers(processes, pipes, pid: int) -> None:
    """Stop the workers: send a stop message, wait, and terminate those that do not end. In a process forked from the
    owner, where an iterator may be collected, only this process's pipe ends are closed.
    """
    if os.getpid() != pid:
        for pipe in pipes:
            with contextlib.suppress(OSError):  # the worker has closed what it inherited
                pipe.close()
        return
    for pipe in pipes:
        with contextlib.suppress(OSError, ValueError):  # gone already
            send(pipe, None)
    deadline = time.monotonic() + 5
    for process in processes:
        process.join(max(0.1, deadline - time.monotonic()))
        if process.is_alive():
            process.terminate()
            process.join(1)
    for pipe in pipes:
        pipe.close()
