"""DataLoader: batches of a data set, made in this process or by workers."""

from __future__ import annotations

import itertools
import multiprocessing
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ._collate import default_collate, default_convert
from ._fetch import fetcher_for
from ._pin import pinned
from ._workers import WorkersIterator
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed

if TYPE_CHECKING:
    from torchlite import Generator


Item = TypeVar("Item", covariant=True)
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _SingleProcessIterator:
    """Batches made when they are asked for."""

    def __init__(self, loader: Any, indices: Iterator[Any]) -> None:
        self._indices = indices
        self._fetcher = fetcher_for(loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last)
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._fetcher.fetch(next(self._indices))

    def __len__(self) -> int:
        return len(self._loader)


def _conflict(**given) -> None:
    """ValueError for options that a stream cannot have."""
    for name, value in given.items():
        if value not in (None, False):
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )


class DataLoader(Generic[Item]):
    """Iterates over a data set in batches.

    dataset: items by index, or an IterableDataset. batch_size: items a batch; None hands out single items. shuffle: a
    new random order each epoch. sampler, batch_sampler: the order by hand. num_workers: processes that make batches
    ahead (0: this process). collate_fn: from a list of items to a batch. pin_memory: batches in page-locked memory, for
    a CUDA device; a warning where there is no accelerator. drop_last: leave out a shorter last batch. timeout: seconds
    to wait for a worker (0: for ever). worker_init_fn(worker_id): called first in each worker. multiprocessing_context:
    "fork", "spawn" … generator: the source of the order. prefetch_factor: batches a worker makes ahead (2).
    persistent_workers: keep them between epochs. in_order: False hands out batches as they come.

    For the same seed the order is PyTorch's. ValueError for options that exclude each other.

    >>> import torchlite as torch
    >>> from torchlite.utils.data import DataLoader, TensorDataset
    >>> [batch for batch, in DataLoader(TensorDataset(torch.tensor([1, 2, 3])), batch_size=2)]
    [tensor([1, 2]), tensor([3])]
    """

    dataset: Dataset[Item]
    _ready = False

    def __init__(
        self,
        dataset: Dataset[Item],
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
        self.dataset, self.num_workers, self.timeout, self.worker_init_fn = (
            dataset,
            num_workers,
            timeout,
            worker_init_fn,
        )
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device, self.generator, self.in_order = (
            pin_memory,
            pin_memory_device,
            generator,
            in_order,
        )
        self._is_stream = isinstance(dataset, IterableDataset)
        if self._is_stream:
            _conflict(shuffle=shuffle, sampler=sampler, batch_sampler=batch_sampler)
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
            if self._is_stream:
                sampler = _Endless()
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
        self._iterator: WorkersIterator | None = None
        self._ready = True

    @property
    def multiprocessing_context(self) -> Any:
        return self._context

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
        self._context = context

    def __setattr__(self, name: str, value: Any) -> None:
        if self._ready and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {self.__class__.__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        indices = iter(self._index_sampler)
        base_seed = draw_seed(
            self.generator
        )  # in every epoch, also without workers: so the stream of random numbers goes on as PyTorch's
        if not self.num_workers:
            return self._counted(_SingleProcessIterator(self, indices))
        if not self.persistent_workers:
            return self._counted(WorkersIterator(self, base_seed, indices))
        if self._iterator is None or not self._iterator._finalizer.alive:
            self._iterator = WorkersIterator(self, base_seed, indices)
        else:
            self._iterator.restart(indices)
        return self._counted(self._iterator)

    def _counted(self, batches):
        """The iterator, pinned if that is wanted; a stream that says its length is watched."""
        if self.pin_memory:
            batches = pinned(batches)
        return _Watched(batches, self) if self._is_stream and hasattr(self.dataset, "__len__") else batches

    def __len__(self) -> int:
        if not self._is_stream:
            return len(self._index_sampler)
        length = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Accepted for compatibility: the number of workers is the caller's choice."""


class _Endless(Sampler):
    """Says "the next one" for as long as a stream goes on."""

    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat(None)


class _Watched:
    """Warns when a stream gives more batches than its length promises."""

    def __init__(self, batches: Any, loader: DataLoader) -> None:
        self._batches, self._loader, self._expected, self._given = batches, loader, len(loader), 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return self._expected

    def __next__(self) -> Any:
        batch = next(self._batches)
        self._given += 1
        if self._given == self._expected + 1:
            hint = (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker."
                if self._loader.num_workers
                else ""
            )
            warnings.warn(
                f"Length of IterableDataset {self._loader.dataset} was reported to be {self._expected} (when "
                f"accessing len(dataloader)), but {self._given} samples have been fetched. {hint}",
                stacklevel=2,
            )
        return batch


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
