"""The source of a chain of pipes."""

from __future__ import annotations

import copy
import warnings
from typing import Any

from ..datapipe import MapDataPipe

__all__ = ["SequenceWrapperMapDataPipe"]


class SequenceWrapperMapDataPipe(MapDataPipe):
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
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place modification would affect "
                    "source data",
                    stacklevel=2,
                )

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)
