"""How a batch is fetched from a data set, in the main process or in a worker."""

from __future__ import annotations

import itertools
from typing import Any

from ._collate import default_collate
from .dataset import IterableDataset, Subset, TensorDataset


def default_item(item: Any) -> Any:
    """Without batching there is nothing to put together."""
    from ._collate import default_convert

    return default_convert(item)


class MapFetcher:
    """Batches of a data set with items by index."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Any, drop_last: bool) -> None:
        self._dataset, self._batched, self._collate_fn = dataset, batched, collate_fn

    def fetch(self, index: Any) -> Any:
        dataset = self._dataset
        if not self._batched:
            return self._collate_fn(dataset[index])
        if self._collate_fn is default_collate:
            while type(dataset) is Subset:
                index, dataset = [dataset.indices[i] for i in index], dataset.dataset
            if type(dataset) is TensorDataset:  # the rows at once: the same as stacking them one by one
                return [tensor[index] for tensor in dataset.tensors]
        fetch = getattr(dataset, "__getitems__", None)
        return self._collate_fn(fetch(index) if callable(fetch) else [dataset[i] for i in index])


class StreamFetcher:
    """Batches of a stream. StopIteration at its end."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Any, drop_last: bool) -> None:
        self._items, self._batched, self._collate_fn, self._drop_last = iter(dataset), batched, collate_fn, drop_last
        self._ended = False

    def fetch(self, index: Any) -> Any:
        if self._ended:
            raise StopIteration
        if not self._batched:
            return self._collate_fn(next(self._items))
        batch = list(itertools.islice(self._items, len(index)))
        self._ended = len(batch) < len(index)
        if not batch or (self._ended and self._drop_last):
            raise StopIteration
        return self._collate_fn(batch)


def fetcher_for(dataset: Any, batched: bool, collate_fn: Any, drop_last: bool) -> Any:
    kind = StreamFetcher if isinstance(dataset, IterableDataset) else MapFetcher
    return kind(dataset, batched, collate_fn, drop_last)
