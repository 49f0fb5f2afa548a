"""Several pipes as one, and one pipe as several."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sized
from typing import Any

from .._hook_iterator import check_valid
from ..datapipe import IterDataPipe, functional_datapipe
from ..utils.common import StreamWrapper, _check_unpickable_fn

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """Several pipes one after the other (functional name: ``concat``).

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
        if not all(isinstance(pipe, Sized) for pipe in self.datapipes):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of one item of each of several pipes, up to the end of the shortest (functional name: ``zip``).

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
        if not all(isinstance(pipe, Sized) for pipe in self.datapipes):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return min(map(len, self.datapipes))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """One item of each of several pipes in turn, up to the end of the shortest (functional name: ``mux``).

    Args:
        datapipes: The pipes.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([1, 2]).mux(IterableWrapper("abc")))
        [1, 'a', 2, 'b']
    """

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(zip(*self.datapipes, strict=False))

    def __len__(self) -> int:
        if not all(isinstance(pipe, Sized) for pipe in self.datapipes):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return min(map(len, self.datapipes)) * len(self.datapipes)


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """Several pipes with the items of one (functional name: ``fork``).

    Args:
        datapipe: The pipe of the items.
        num_instances: Number of pipes.
        buffer_size: Number of items that one pipe may be ahead of another; -1 for any number. Default: 1000.
        copy: What the pipes after the first get: the item, or its ``"shallow"`` or ``"deep"`` copy. Default: the item.

    Returns:
        A list of pipes; the pipe itself if ``num_instances`` is 1.

    Raises:
        ValueError: ``num_instances`` is less than 1, or ``copy`` is unknown.
        BufferError: In iteration: one pipe is further ahead than ``buffer_size``.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> a, b = IterableWrapper(range(3)).fork(2)
        >>> list(a), list(b)
        ([0, 1, 2], [0, 1, 2])
    """

    def __new__(cls, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: Any = None) -> Any:
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        if num_instances == 1:
            return datapipe
        main = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(main, i) for i in range(num_instances)]


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """Several pipes among which the items of one are divided (functional name: ``demux``).

    Args:
        datapipe: The pipe of the items.
        num_instances: Number of pipes.
        classifier_fn: Function of an item that returns the number of its pipe, or ``None``.
        drop_none: Whether items of the pipe ``None`` are left out, instead of an error. Default: ``False``.
        buffer_size: Number of items that wait for the pipes that read them; -1 for any number. Default: 1000.

    Returns:
        A list of pipes.

    Raises:
        ValueError: ``num_instances`` is less than 1; in iteration: there is no such pipe.
        BufferError: In iteration: more items wait than ``buffer_size``.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> short, long = IterableWrapper(["", "a", "b", ""]).demux(2, len)
        >>> list(short), list(long)
        (['', ''], ['a', 'b'])
    """

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        _check_unpickable_fn(classifier_fn)
        main = _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(main, i) for i in range(num_instances)]


class _MainDataPipe(IterDataPipe):
    """The common part of the pipes of `fork` and `demux`: items that wait, by pipe, and the source's iterator."""

    name = ""

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int) -> None:
        if buffer_size < 0:
            warnings.warn(
                f"Unlimited buffer size is set for `{self.name}`, please be aware of OutOfMemory risk", stacklevel=4
            )
        self.main_datapipe, self.num_instances, self.buffer_size = datapipe, num_instances, buffer_size
        self.reset()

    def reset(self) -> None:
        """Return to the beginning of the source."""
        self._source: Any = None
        self._waiting: list[deque[Any]] = [deque() for _ in range(self.num_instances)]
        self._ended = set[int]()

    def _read(self, instance: int) -> bool:
        """Give the source's next item, which a pipe asks for, to its pipes; False at the end."""
        if self._source is None:
            self._source = iter(self.main_datapipe)
        try:
            item = next(self._source)
        except StopIteration:
            return False
        self._divide(item)
        others = [len(waiting) for i, waiting in enumerate(self._waiting) if i != instance]
        if 0 <= self.buffer_size < self._count_waiting(others):
            kind = type(self).__name__.removeprefix("_")
            raise BufferError(f"{kind} buffer overflow, buffer size {self.buffer_size} is insufficient.")
        return True

    def _divide(self, item: Any) -> None:
        raise NotImplementedError

    def _count_waiting(self, others: list[int]) -> int:
        """How much of the buffer is in use, by the numbers of items that wait for the other pipes."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("the pipes that read it are iterated over")

    def items_of(self, instance: int) -> Iterator[Any]:
        """The items of a pipe."""
        waiting = self._waiting[instance]
        while True:
            if waiting:
                yield waiting.popleft()
            elif not self._read(instance):
                self._ended.add(instance)
                return

    def is_every_instance_exhausted(self) -> bool:
        """True if all pipes are at their end."""
        return len(self._ended) == self.num_instances

    def __getstate__(self) -> Any:
        state = {k: v for k, v in self.__dict__.items() if k not in ("_source", "_waiting", "_ended")}
        hook = type(self).getstate_hook
        return state if hook is None else hook(state)

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self.reset()


class _ForkerIterDataPipe(_MainDataPipe):
    name = "fork"

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: Any = None) -> None:
        if copy not in (None, "shallow", "deep"):
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        self.copy = copy
        super().__init__(datapipe, num_instances, buffer_size)

    def _divide(self, item: Any) -> None:
        change = {None: lambda x: x, "shallow": copy.copy, "deep": copy.deepcopy}[self.copy]
        for i, waiting in enumerate(self._waiting):
            waiting.append(item if not i else change(item))

    def _count_waiting(self, others: list[int]) -> int:
        return max(others)

    def __len__(self) -> int:
        return len(self.main_datapipe)


class _DemultiplexerIterDataPipe(_MainDataPipe):
    name = "demux"

    def __init__(
        self, datapipe: Any, num_instances: int, classifier_fn: Any, drop_none: bool, buffer_size: int
    ) -> None:
        self.classifier_fn, self.drop_none = classifier_fn, drop_none
        super().__init__(datapipe, num_instances, buffer_size)

    def _divide(self, item: Any) -> None:
        place = self.classifier_fn(item)
        if place is None and self.drop_none:
            StreamWrapper.close_streams(item)
            return
        if place is None or not 0 <= place < self.num_instances:
            raise ValueError(
                f"Output of the classification fn should be between 0 and {self.num_instances - 1}. {place} is "
                "returned."
            )
        self._waiting[place].append(item)

    def _count_waiting(self, others: list[int]) -> int:
        return sum(others)


class _ChildDataPipe(IterDataPipe):
    """One of the pipes that `fork` and `demux` return. A second iterator of one pipe begins anew for all."""

    _is_child_datapipe = True
    _valid_iterator_id = -1  # before the first iterator of the pipe it reads

    def __init__(self, main_datapipe: Any, instance_id: int) -> None:
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self) -> Iterator[Any]:
        main = self.main_datapipe
        if self._valid_iterator_id == main._valid_iterator_id:  # this pipe has read from this beginning
            if not main.is_every_instance_exhausted():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer and "
                    "each child DataPipe will read from the start again.",
                    UserWarning,
                    stacklevel=2,
                )
            main._valid_iterator_id += 1
            main.reset()
        self._valid_iterator_id = main._valid_iterator_id
        return _ChildIterator(self)

    def __len__(self) -> int:
        return len(self.main_datapipe)

    def _check_valid_iterator_id(self, iterator_id: int) -> bool:
        return iterator_id == self._valid_iterator_id == self.main_datapipe._valid_iterator_id


class _ChildIterator:
    """The iterator of one of these pipes, invalid once the pipes begin anew."""

    def __init__(self, pipe: _ChildDataPipe) -> None:
        self._pipe, self._number = pipe, pipe._valid_iterator_id
        self._items = pipe.main_datapipe.items_of(pipe.instance_id)

    def __iter__(self) -> _ChildIterator:
        return self

    def __next__(self) -> Any:
        if not self._pipe._check_valid_iterator_id(self._number):
            check_valid(self._pipe, -1)
        item = next(self._items)
        self._pipe._number_of_samples_yielded += 1
        return item
