"""The source of a chain of pipes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sized
from typing import Any

from ..datapipe import IterDataPipe

__all__ = ["IterableWrapperIterDataPipe"]


class IterableWrapperIterDataPipe(IterDataPipe):
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
            except TypeError:  # such as a generator
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place modification would affect "
                    "source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self) -> int:
        if not isinstance(self.iterable, Sized):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return len(self.iterable)
