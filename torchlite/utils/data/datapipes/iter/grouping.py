"""Batches of items, by number or by a key."""

from __future__ import annotations

import itertools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sized
from typing import Any

from ..datapipe import DataChunk, IterDataPipe, functional_datapipe
from ..utils.common import _check_unpickable_fn

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


def __getattr__(name: str) -> Any:
    if name in ("SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"):
        from . import sharding

        warnings.warn(
            f"`{name}` from `torch.utils.data.datapipes.iter.grouping` is going to be removed in PyTorch 2.1. Please "
            f"use `{name}` from `torch.utils.data.datapipes.iter.sharding`",
            FutureWarning,
            stacklevel=2,
        )
        return getattr(sharding, name)
    raise AttributeError(f"module {__name__} has no attribute {name}")


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Batches of items (functional name: ``batch``).

    Args:
        datapipe: The pipe of the items.
        batch_size: Number of items of a batch; greater than 0.
        drop_last: Whether to leave out a last batch that is shorter. Default: ``False``.
        wrapper_class: A function from the list of items to the batch. Default: `DataChunk`.

    Raises:
        AssertionError: ``batch_size`` is not greater than 0.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).batch(2))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        items = iter(self.datapipe)
        while batch := list(itertools.islice(items, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.wrapper_class(batch)

    def __len__(self) -> int:
        if not isinstance(self.datapipe, Sized):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + bool(rest and not self.drop_last)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The items of batches (functional name: ``unbatch``).

    Args:
        datapipe: The pipe of the batches.
        unbatch_level: Number of levels of nested batches to take apart; -1 takes all. Default: 1.

    Raises:
        ValueError: ``unbatch_level`` is less than -1 (in iteration).
        IndexError: It exceeds the depth of the batches (in iteration).

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([[1, 2], [3]]).unbatch())
        [1, 2, 3]
    """

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def _iterate_items(self, item: Any, level: int) -> Iterator[Any]:
        if level == 0 or (level < 0 and not isinstance(item, (list, DataChunk))):
            yield item
            return
        if not isinstance(item, (list, DataChunk)):
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        for inner in item:
            yield from self._iterate_items(inner, level - 1)

    def __iter__(self) -> Iterator[Any]:
        if self.unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        for item in self.datapipe:
            yield from self._iterate_items(item, self.unbatch_level)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Groups of items with equal keys (functional name: ``groupby``).

    A group is complete with ``group_size`` items, or once the buffer is full (the largest group), or at the end.

    Args:
        datapipe: The pipe of the items.
        group_key_fn: Function of an item that returns its key.
        keep_key: Whether a group is a pair of the key and the items. Default: ``False``.
        buffer_size: Number of items that wait for their groups. Default: 10000.
        group_size: The largest number of items of a group. Default: ``buffer_size``.
        guaranteed_group_size: The least number of items of a group that a full buffer gives. Default: ``group_size``.
        drop_remaining: Whether a full buffer drops groups that are smaller, instead of an error. Default: ``False``.

    Raises:
        AssertionError: The sizes do not fit each other.
        RuntimeError: In iteration: the buffer is full, and no group has ``guaranteed_group_size`` items.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([1, -1, 2]).groupby(abs))
        [[1, -1], [2]]
    """

    def __init__(
        self,
        datapipe: Any,
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        _check_unpickable_fn(group_key_fn)
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is not None and (group_size is None or not 0 < guaranteed_group_size <= group_size):
            raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.max_buffer_size, self.group_size, self.drop_remaining = buffer_size, group_size, drop_remaining
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size
        self.wrapper_class = DataChunk
        self.buffer_elements: defaultdict[Any, list[Any]] = defaultdict(list)
        self.curr_buffer_size = 0

    def reset(self) -> None:
        """Empties the buffer."""
        self.buffer_elements, self.curr_buffer_size = defaultdict(list), 0

    def _take(self, key: Any) -> Any:
        """The group of a key, out of the buffer."""
        items = self.buffer_elements.pop(key)
        self.curr_buffer_size -= len(items)
        group = self.wrapper_class(items)
        return (key, group) if self.keep_key else group

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            key = self.group_key_fn(item)
            self.buffer_elements[key].append(item)
            self.curr_buffer_size += 1
            if self.group_size is not None and len(self.buffer_elements[key]) == self.group_size:
                yield self._take(key)
            if self.curr_buffer_size == self.max_buffer_size:
                largest = max(self.buffer_elements, key=lambda one: len(self.buffer_elements[one]))
                least = self.guaranteed_group_size
                if least is None or len(self.buffer_elements[largest]) >= least:
                    yield self._take(largest)
                elif self.drop_remaining:
                    self._take(largest)
                else:
                    raise RuntimeError("Failed to group items", str(self.buffer_elements[largest]))
        for key in tuple(self.buffer_elements):
            yield self._take(key)
