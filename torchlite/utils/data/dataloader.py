"""DataLoader: batches of a data set, loaded in this process or by workers."""

from __future__ import annotations

import contextlib
import functools
import itertools
import multiprocessing
import multiprocessing.connection as connections
import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypedDict, TypeVar, Unpack, cast, overload

import torchlite as torch
from torchlite import accelerator
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite._settings.module_dir import make_module_dir
from torchlite._settings.temporary_folders import use_for_multiprocessing
from torchlite._tensor.shared_memory import map_shared
from torchlite.utils._exception_wrapper import ExceptionWrapper

from . import graph_settings
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import _DatasetKind
from ._utils.pin_memory import pin_memory
from ._utils.transport import receive, send
from ._utils.worker import WorkerSettings, _IterableDatasetStopIteration, _stop_workers, _worker_loop, get_worker_info
from .datapipes.datapipe import IterDataPipe, MapDataPipe
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed

Item = TypeVar("Item", covariant=True)

if TYPE_CHECKING:
    import numpy as np

    from torchlite import Generator, Tensor

    class _NamedTuple(Protocol):
        """Items that `default_collate` makes a batch of the same class of."""

        @property
        def _fields(self) -> tuple[str, ...]: ...

    class _SizedItems(Protocol[Item]):
        """A data set of another class."""

        def __getitem__(self, index: Any, /) -> Item: ...
        def __len__(self) -> int: ...

    class _Options(TypedDict, total=False):
        pin_memory: bool
        drop_last: bool
        timeout: float
        worker_init_fn: Callable[[int], None] | None
        multiprocessing_context: Any
        generator: Generator | None
        prefetch_factor: int | None
        persistent_workers: bool
        pin_memory_device: str
        in_order: bool

    class _AllOptions(_Options, total=False):
        shuffle: bool | None
        sampler: Sampler | Iterable | None
        batch_sampler: Sampler | Iterable | None
        num_workers: int
        collate_fn: None


_collate_fn_t = Callable[[list[Any]], Any]  # packages annotate with these two
_worker_init_fn_t = Callable[[int], None]
_FIXED_ATTRIBUTES = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _BaseDataLoaderIter:
    """Iterator over the batches of one epoch."""

    def __init__(self, loader: DataLoader) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._persistent_workers = loader.persistent_workers
        self._pin_memory = loader.pin_memory and accelerator.is_available()
        if loader.pin_memory and not self._pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                stacklevel=4,
            )
        self._sampler_iter: Any = iter(self._index_sampler)
        # Drawn without workers as well, so that the random number stream continues as PyTorch's.
        self._base_seed = draw_seed(loader.generator)
        self._num_yielded = 0
        self._len_called = loader._IterableDataset_len_called
        self._seed_pipes(loader)

    def __iter__(self) -> Iterator[Any]:
        return self

    def _seed_pipes(self, loader: DataLoader) -> None:
        """Seed the shuffled pipes of a DataPipe, equally in all workers, and divide it among ranks."""
        if not isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            return
        if not self._num_workers:
            rank, world_size = _rank_and_world_size()
            graph_settings.apply_sharding(self._dataset, world_size, rank)
        if isinstance(self._dataset, IterDataPipe):
            seed = int(torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item())
            graph_settings.apply_random_seed(self._dataset, torch.Generator().manual_seed(seed))

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        """Start another epoch."""
        self._seed_pipes(loader)
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._len_called = loader._IterableDataset_len_called

    def _next_index(self):
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        data = self._next_data()
        self._num_yielded += 1
        if (
            self._dataset_kind == _DatasetKind.Iterable
            and self._len_called is not None
            and self._num_yielded > self._len_called
        ):
            hint = (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
                if self._num_workers
                else ""
            )
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {self._len_called}(when accessing "
                f"len(dataloader)), but {self._num_yielded} samples have been fetched. {hint}",
                stacklevel=2,
            )
        return pin_memory(data) if self._pin_memory else data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Iterator that loads batches in this process, on demand."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(self._next_index())


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Iterator over batches that worker processes load, in the order of the sampler unless `in_order` is False."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self._in_order, self._prefetch_factor = loader.in_order, loader.prefetch_factor or 2
        settings = WorkerSettings(loader, self._base_seed)
        self._limit = settings.limit
        context: Any = loader.multiprocessing_context or multiprocessing.get_context()
        forked = context.get_start_method() == "fork"
        if context.get_start_method() == "forkserver":
            use_for_multiprocessing()
        self._pipes: list[Any] = []
        self._workers: list[Any] = []
        self._finalizer = weakref.finalize(self, _stop_workers, self._workers, self._pipes, os.getpid())
        for worker in range(self._num_workers):
            mine, theirs = context.Pipe()
            self._pipes.append(mine)
            process = context.Process(
                target=_worker_loop, args=(theirs, settings, worker, list(self._pipes) if forked else []), daemon=True
            )
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", DeprecationWarning
                )  # forking with threads: ours start again in the child
                process.start()
            theirs.close()
            self._workers.append(process)
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self._sent = self._next = 0
        self._waiting: dict[int, int] = {}  # number of the task -> worker
        self._ready: dict[int, Any] = {}
        self._active = [True] * len(self._pipes)
        self._cycle = itertools.cycle(range(len(self._pipes)))
        for _ in range(self._prefetch_factor * len(self._pipes)):
            self._send_task()

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        """Start another epoch with the same workers."""
        super()._reset(loader, first_iter)
        while self._waiting:
            self._receive()
        for worker, pipe in enumerate(self._pipes):
            self._waiting[-1 - worker] = worker
            send(pipe, (-1 - worker, None), self._limit)
        while self._waiting:
            self._receive()
        self._begin_epoch()

    def _send_task(self) -> None:
        if not any(self._active):
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker = next(w for w in self._cycle if self._active[w])
        self._waiting[self._sent] = worker
        try:
            send(self._pipes[worker], (self._sent, index), self._limit)
        except (BrokenPipeError, ConnectionResetError):
            self._raise_worker_died()
        self._sent += 1

    def _raise_worker_died(self):
        # A pipe closes a moment before its process has ended.
        for sentinel in connections.wait([p.sentinel for p in self._workers], 2):
            next(p for p in self._workers if p.sentinel == sentinel).join(2)
        gone = [str(p.pid) for p in self._workers if not p.is_alive()]
        self._shutdown_workers()
        raise RuntimeError(f"DataLoader worker (pid(s) {', '.join(gone)}) exited unexpectedly")

    def _receive(self) -> None:
        """Receive one reply. RuntimeError if a worker died or the timeout expired."""
        pipes = {self._pipes[w] for w in self._waiting.values()}
        # A worker whose stream has ended may exit.
        sentinels = [p.sentinel for p, active in zip(self._workers, self._active, strict=True) if active]
        found = connections.wait([*pipes, *sentinels], self._timeout or None)
        if not found:
            for process in self._workers:
                process.terminate()  # they are busy with something endless and would not listen
            self._shutdown_workers()
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        pipe = next((item for item in found if item in pipes), None)
        if pipe is None:
            self._raise_worker_died()
        try:
            number, data = receive(pipe, map_shared)  # as in PyTorch, batches are in shared memory
        except (EOFError, ConnectionResetError):
            self._raise_worker_died()
        worker = self._waiting.pop(number)
        if isinstance(data, _IterableDatasetStopIteration):
            if self._active[worker] and not self._persistent_workers:
                with contextlib.suppress(OSError):  # it may be gone already
                    send(self._pipes[worker], None, self._limit)
            self._active[worker] = False
            self._send_task()
        elif number >= 0:
            self._ready[number] = data

    def _next_number(self) -> int | None:
        """Return the number of the next batch to return, None while it is pending. StopIteration after the last."""
        if not self._in_order:
            if self._ready:
                return next(iter(self._ready))
        else:
            while self._next < self._sent and self._next not in self._waiting and self._next not in self._ready:
                self._next += 1  # a worker's stream ended
            if self._next in self._ready:
                self._next += 1
                return self._next - 1
        if not self._waiting:
            if not self._persistent_workers:
                self._shutdown_workers()
            raise StopIteration
        return None

    def _next_data(self) -> Any:
        while True:
            number = self._next_number()
            if number is not None:
                data = self._ready.pop(number)
                self._send_task()
                if isinstance(data, ExceptionWrapper):
                    data.reraise()
                return data
            self._receive()

    def _shutdown_workers(self) -> None:
        """End the workers now (happens by itself at the end of the epoch, or when the iterator is dropped)."""
        self._finalizer()
        self._waiting.clear()


def _raise_option_conflict(**given) -> None:
    """ValueError for options that a stream cannot have."""
    for name, value in given.items():
        if value not in (None, False):
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )


class DataLoader(Generic[Item]):
    """Iterates over a data set in batches, which it or its worker processes load.

    For the same seed the order is that of PyTorch. The length is the number of batches.

    Args:
        dataset: A `Dataset`, or anything with ``__getitem__`` and ``__len__``; or an `IterableDataset`.
        batch_size: Number of items of a batch. ``None`` yields single items. Default: 1.
        shuffle: Whether each epoch has a new random order. Default: ``False``.
        sampler: An iterable of the indices, in the order to load. Excludes ``shuffle``.
        batch_sampler: An iterable of the lists of indices of the batches. Excludes ``batch_size``, ``shuffle``,
            ``sampler`` and ``drop_last``.
        num_workers: Number of processes that load batches ahead; 0 loads in this process. Default: 0.
        collate_fn: A function from a list of items to a batch; without batches, from an item to what is yielded.
            Default: `default_collate`, or `default_convert` without batches.
        pin_memory: Whether batches are in page-locked memory, for copies to a CUDA device. Without an accelerator it
            has no effect and warns. Default: ``False``.
        drop_last: Whether to leave out a last batch that is shorter. Default: ``False``.
        timeout: Seconds to wait for a worker's batch; 0 waits without a limit. Default: 0.
        worker_init_fn: A function of the worker's number that runs first in each worker.
        multiprocessing_context: A context of `multiprocessing`, or its start method: ``"fork"``, ``"spawn"`` or
            ``"forkserver"``. Default: that of Python.
        generator: Source of the random order and of the workers' seeds. Default: the default generator.
        prefetch_factor: Number of batches that each worker loads ahead. Default: 2; only with workers.
        persistent_workers: Whether the workers stay alive for the next epoch. Default: ``False``.
        pin_memory_device: Accepted for PyTorch's signature; no effect.
        in_order: Whether workers' batches are yielded in the order of the sampler, not in that of completion. Default:
            ``True``.

    Raises:
        ValueError: An option is out of range, or options exclude each other.
        TypeError: ``multiprocessing_context`` is neither a string nor a context.
        RuntimeError: A worker ended unexpectedly or exceeded ``timeout`` (in iteration). An error in a worker is raised
            with its own type.

    Example:
        >>> dataset = torch.utils.data.TensorDataset(torch.arange(5), torch.arange(5) * 10)
        >>> loader = torch.utils.data.DataLoader(dataset, batch_size=2)
        >>> len(loader)
        3
        >>> for x, y in loader:
        ...     print(x, y)
        tensor([0, 1]) tensor([ 0, 10])
        tensor([2, 3]) tensor([20, 30])
        tensor([4]) tensor([40])

    See also:
        `Dataset`, `IterableDataset`, `Sampler`, `torch.utils.data.DistributedSampler`.
    """

    dataset: Dataset[Item]
    __initialized = False

    # The item type is the data set's; with a collate_fn, and for single items, nothing is known of a batch.
    @overload
    def __init__(
        self: DataLoader[Any],
        dataset: Dataset[Any] | _SizedItems[Any],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler | Iterable | None = None,
        num_workers: int = 0,
        *,
        collate_fn: Callable[[list[Any]], Any],
        **options: Unpack[_Options],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[Any],
        dataset: Dataset[Any] | _SizedItems[Any],
        batch_size: None,
        **options: Unpack[_AllOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        dataset: Dataset[Item] | _SizedItems[Item],
        batch_size: int = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler | Iterable | None = None,
        num_workers: int = 0,
        collate_fn: None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None: ...
    def __init__(
        self,
        dataset: Dataset[Item] | _SizedItems[Item],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler | Iterable | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = cast("Dataset[Item]", dataset)
        self.num_workers, self.timeout, self.worker_init_fn = num_workers, timeout, worker_init_fn
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device, self.generator, self.in_order = (
            pin_memory,
            pin_memory_device,
            generator,
            in_order,
        )
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        if self._dataset_kind == _DatasetKind.Iterable:
            pipe = isinstance(dataset, IterDataPipe)
            _raise_option_conflict(shuffle=shuffle and not pipe, sampler=sampler, batch_sampler=batch_sampler)
            if pipe:
                self.dataset, shuffle = graph_settings.apply_shuffle_settings(dataset, shuffle), None
        if isinstance(dataset, (IterDataPipe, MapDataPipe)) and num_workers:
            self.worker_init_fn = functools.partial(
                _share_among_workers, worker_init_fn, *_rank_and_world_size(), num_workers
            )
        shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            else:
                sampler = (
                    RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
                    if shuffle
                    else SequentialSampler(dataset)  # type: ignore[arg-type]
                )
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.sampler, self.batch_sampler = (
            batch_size,
            drop_last,
            sampler,
            batch_sampler,
        )
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self.persistent_workers = persistent_workers
        self.multiprocessing_context = multiprocessing_context
        self._iterator: _BaseDataLoaderIter | None = None
        self._IterableDataset_len_called: int | None = None
        self.__initialized = True
        self.check_worker_number_rationality()

    @property
    def multiprocessing_context(self) -> Any:
        """Context of `multiprocessing` that starts the workers, or ``None``. A start method may be assigned."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> Any:
        if context is not None:
            if not self.num_workers:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    "num_workers=0"
                )
            if isinstance(context, str):
                if context not in multiprocessing.get_all_start_methods():
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{multiprocessing.get_all_start_methods()!r}, but got multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
        self.__multiprocessing_context = context

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__initialized and name in _FIXED_ATTRIBUTES:
            raise ValueError(f"{name} attribute should not be set after {self.__class__.__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self) -> _BaseDataLoaderIter:
        """The iterator of a new epoch."""
        if not self.num_workers:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    # What `default_collate` makes of the items that are known; the batches of other items are Any.
    @overload
    def __iter__(self: DataLoader[_NamedTuple]) -> Iterator[Any]: ...
    @overload
    def __iter__(self: DataLoader[tuple[Tensor | np.ndarray | float, ...]]) -> Iterator[list[Tensor]]: ...
    @overload
    def __iter__(self: DataLoader[dict[str, Tensor]]) -> Iterator[dict[str, Tensor]]: ...
    @overload
    def __iter__(self: DataLoader[Tensor | np.ndarray | float]) -> Iterator[Tensor]: ...
    @overload
    def __iter__(self) -> Iterator[Any]: ...
    def __iter__(self) -> Iterator[Any]:
        if not (self.persistent_workers and self.num_workers):
            return self._get_iterator()
        if self._iterator is None or not self._iterator._finalizer.alive:  # type: ignore[attr-defined]
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        # Iterators created after this warn of more batches.
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warns if there are more workers than processors for this process."""
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if count is None or self.num_workers <= count:
            return
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of "
            f"worker in current system is {count}, which is smaller than what this DataLoader is going to create. "
            "Please be aware that excessive worker creation might get DataLoader running slow or even freeze, lower "
            "the worker number to avoid potential slowness/freeze if necessary.",
            stacklevel=3,
        )


class _InfiniteConstantSampler(Sampler):
    """Yields None as the index for as long as a stream continues."""

    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat(None)


def _rank_and_world_size() -> tuple[int, int]:
    """The rank of this process and their number: 0 and 1 without a process group."""
    try:
        return CALLBACKS.get_rank(), CALLBACKS.get_world_size()
    except (RuntimeError, ValueError):  # no process group
        return 0, 1


def _share_among_workers(
    init_fn: Callable[[int], None] | None, rank: int, world_size: int, num_workers: int, worker_id: int
) -> None:
    """Divide a worker's DataPipe among ranks and workers, and run the program's own function."""
    info = get_worker_info()
    if info is not None:
        graph_settings.apply_sharding(info.dataset, world_size * num_workers, worker_id * world_size + rank)
    if init_fn is not None:
        init_fn(worker_id)


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


__dir__ = make_module_dir(globals(), "_DatasetKind default_collate default_convert")
