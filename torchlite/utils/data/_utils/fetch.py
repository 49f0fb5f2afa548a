"""Fetching of batches from a data set, in the main process or in a worker."""

from __future__ import annotations

from typing import Any

import numpy as np

import torchlite as torch

from ..dataset import Subset, TensorDataset
from .collate import default_collate


class _BaseDatasetFetcher:
    """Base of the fetchers of batches."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> None:
        self.dataset, self.auto_collation, self.collate_fn = dataset, auto_collation, collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return the next batch. Subclasses define it."""
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Batches of a data set with items by index."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return one item, or the batch of a collection of indices."""
        dataset, index = self.dataset, possibly_batched_index
        if not self.auto_collation:
            return self.collate_fn(dataset[index])
        if self.collate_fn is default_collate and type(dataset) in (Subset, TensorDataset):
            index = list(index)
            if set(map(type, index)) == {int}:
                rows = self._fetch_tensor_rows(dataset, index)
                if rows is not None:
                    return rows
        fetch = getattr(dataset, "__getitems__", None)
        return self.collate_fn(fetch(index) if callable(fetch) and fetch else [dataset[i] for i in index])

    def _fetch_tensor_rows(self, dataset, index):
        """Return rows of a TensorDataset by one index, equal to stacking them one by one; None for other data sets."""
        while type(dataset) is Subset:
            index, dataset = [dataset.indices[i] for i in index], dataset.dataset
        if type(dataset) is not TensorDataset or not index:
            return None
        rows = torch.from_numpy(np.array(index, np.int64))  # once for all tensors
        return [tensor[rows] for tensor in dataset.tensors]


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Batches of a stream. StopIteration at its end."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter, self.ended = iter(dataset), False

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The next item, or a batch of as many as there are indices."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        batch = []
        for _ in possibly_batched_index:  # by `next` alone: some streams restart in `iter`
            try:
                batch.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not batch or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate_fn(batch)


class _DatasetKind:
    """The kinds of data sets: items by index, or a stream. A loader's kind is its `_dataset_kind`."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> Any:
        """Return the fetcher for a data set kind."""
        made = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return made(dataset, auto_collation, collate_fn, drop_last)
