"""Batches of items."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from ..datapipe import DataChunk, MapDataPipe, functional_datapipe

__all__ = ["BatcherMapDataPipe"]


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Batches of items (functional name: ``batch``).

    Args:
        datapipe: The pipe of the items, with indices from 0.
        batch_size: Number of items of a batch; greater than 0.
        drop_last: Whether to leave out a last batch that is shorter. Default: ``False``.
        wrapper_class: A function from the list of items to the batch. Default: `DataChunk`.

    Raises:
        AssertionError: ``batch_size`` is not greater than 0.

    Example:
        >>> from torchlite.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper(range(5)).batch(2)[2]
        [4]
    """

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: Any) -> Any:
        batch: list[Any] = []
        try:
            for i in range(index * self.batch_size, (index + 1) * self.batch_size):
                batch.append(self.datapipe[i])
        except IndexError as error:
            if self.drop_last or not batch:
                raise IndexError(f"Index {index} is out of bound.") from error
        return self.wrapper_class(batch)

    def __len__(self) -> int:
        if not isinstance(self.datapipe, Sized):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + bool(rest and not self.drop_last)
