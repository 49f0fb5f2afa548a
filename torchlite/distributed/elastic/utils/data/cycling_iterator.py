"""An iterator over epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["CyclingIterator"]

_T = TypeVar("_T")


class CyclingIterator(Iterator[_T], Generic[_T]):
    """Iterator over the values of some iterators after one another, one for each epoch.

    Args:
        n: The number of epochs.
        generator_fn: Returns the iterator of an epoch, whose number it gets.
        start_epoch: The number of the first one. Default: 0.

    Example:
        >>> from torchlite.distributed.elastic.utils.data import CyclingIterator
        >>> list(CyclingIterator(2, lambda epoch: iter([epoch, 10])))
        [0, 10, 1, 10]
    """

    def __init__(self, n: int, generator_fn: Callable[[int], Iterator[_T]], start_epoch: int = 0) -> None:
        self._n, self._epoch, self._generator_fn = n, start_epoch, generator_fn
        self._iter = generator_fn(start_epoch)

    def __iter__(self) -> CyclingIterator[_T]:
        return self

    def __next__(self) -> _T:
        while True:
            try:
                return next(self._iter)
            except StopIteration:
                if self._epoch == self._n - 1:
                    raise
                self._epoch += 1
                self._iter = self._generator_fn(self._epoch)
