"""Map-style DataPipes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from .datapipe import MapDataPipe, functional_datapipe

__all__ = ["Mapper", "SequenceWrapper"]


class SequenceWrapper(MapDataPipe):
    """A pipe over a sequence, or another object with indices and a length.

    Args:
        sequence: The sequence.
        deepcopy: Whether the pipe holds a deep copy. Default: ``True``.

    Example:
        >>> from torchlite.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper([1, 2])[1]
        2
    """

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class Mapper(MapDataPipe):
    """The results of a function of each item, computed when it is read; the method ``map``.

    Args:
        datapipe: The pipe of the items.
        fn: The function.

    Example:
        >>> from torchlite.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper([1, 2]).map(lambda x: x * 10)[1]
        20
    """

    def __init__(self, datapipe: Any, fn: Callable[..., Any]) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)
