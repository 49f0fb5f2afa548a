"""Iterable-style DataPipes."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from .._utils.collate import default_collate
from .datapipe import DataChunk, IterDataPipe, functional_datapipe

__all__ = ["Batcher", "Collator", "Concater", "Filter", "IterableWrapper", "Mapper", "UnBatcher", "Zipper"]


class IterableWrapper(IterDataPipe):
    """A pipe over an iterable.

    Args:
        iterable: The iterable. One that cannot be copied, such as a generator, is read once.
        deepcopy: Whether each iteration reads a deep copy. Default: ``True``.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([1, 2]))
        [1, 2]
    """

    def __init__(self, iterable: Any, deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:  # an iterable that cannot be copied, such as a generator, is read once
                source = self.iterable
        yield from source

    def __len__(self) -> int:
        return len(self.iterable)


@functional_datapipe("map")
class Mapper(IterDataPipe):
    """The results of a function of each item; the method ``map``.

    Args:
        datapipe: The pipe of the items.
        fn: The function.
        input_col: The column (an index or key) that the function gets, or a list of columns for several arguments.
            Default: the item.
        output_col: The column that the result replaces; -1 appends it. Default: ``input_col``; of several the first,
            and the others are removed.

    Raises:
        ValueError: ``output_col`` is given without ``input_col``.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([(1, "a"), (2, "b")]).map(lambda x: x * 10, input_col=0))
        [(10, 'a'), (20, 'b')]
    """

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def _apply_fn(self, item: Any) -> Any:
        if self.input_col is None:
            return self.fn(item)
        several = isinstance(self.input_col, (list, tuple))
        found = self.fn(*(item[c] for c in self.input_col)) if several else self.fn(item[self.input_col])
        kind = type(item)
        item = list(item) if isinstance(item, tuple) else copy.copy(item)
        if self.output_col == -1:
            item.append(found)
        else:
            first = self.input_col[0] if several else self.input_col
            item[first if self.output_col is None else self.output_col] = found
            for column in sorted(self.input_col[1:], reverse=True) if several and self.output_col is None else ():
                del item[column]
        return tuple(item) if kind is tuple else item

    def __iter__(self) -> Iterator[Any]:
        return map(self._apply_fn, self.datapipe)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("filter")
class Filter(IterDataPipe):
    """The items for which a function is true; the method ``filter``.

    Args:
        datapipe: The pipe of the items.
        filter_fn: The function.
        input_col: The column (an index or key) that the function gets, or a list of columns for several arguments.
            Default: the item.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(6)).filter(lambda x: x % 2 == 0))
        [0, 2, 4]
    """

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def _call_filter_fn(self, item: Any) -> bool:
        if self.input_col is None:
            return self.filter_fn(item)
        if isinstance(self.input_col, (list, tuple)):
            return self.filter_fn(*(item[c] for c in self.input_col))
        return self.filter_fn(item[self.input_col])

    def __iter__(self) -> Iterator[Any]:
        return filter(self._call_filter_fn, self.datapipe)


@functional_datapipe("batch")
class Batcher(IterDataPipe):
    """Batches of items; the method ``batch``.

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
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + bool(rest and not self.drop_last)


@functional_datapipe("unbatch")
class UnBatcher(IterDataPipe):
    """The items of batches; the method ``unbatch``.

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


@functional_datapipe("collate")
class Collator(Mapper):
    """Batches as tensors; the method ``collate``.

    Args:
        datapipe: The pipe of the batches, lists of items.
        conversion: A function from a list of items to a batch. Default: `default_collate`.
        collate_fn: Replaces ``conversion``. Default: ``None``.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(3)).batch(2).collate())
        [tensor([0, 1]), tensor([2])]
    """

    def __init__(self, datapipe: Any, conversion: Any = default_collate, collate_fn: Any = None) -> None:
        super().__init__(datapipe, collate_fn or conversion)


@functional_datapipe("concat")
class Concater(IterDataPipe):
    """Several pipes one after the other; the method ``concat``.

    Args:
        datapipes: The pipes, at least one.

    Raises:
        ValueError: There is none.
        TypeError: One is not an `IterDataPipe`.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([1, 2]).concat(IterableWrapper([3])))
        [1, 2, 3]
    """

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datapipes)

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class Zipper(IterDataPipe):
    """Tuples of one item of each of several pipes, up to the end of the shortest; the method ``zip``.

    Args:
        datapipes: The pipes.

    Raises:
        TypeError: One is not an `IterDataPipe`.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([1, 2]).zip(IterableWrapper("ab")))
        [(1, 'a'), (2, 'b')]
    """

    def __init__(self, *datapipes: Any) -> None:
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))
