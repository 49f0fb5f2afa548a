"""The order of items."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import torchlite as torch

from ..datapipe import IterDataPipe, MapDataPipe

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe(IterDataPipe):
    """The items of a `MapDataPipe` in random order, as an `IterDataPipe` (functional name: ``shuffle``).

    The order depends on `torch.manual_seed`, or on the method `set_seed`.

    Args:
        datapipe: The pipe of the items.
        indices: The indices or keys of its items. Default: from 0 to its length.

    Example:
        >>> from torchlite.utils.data.datapipes.map import SequenceWrapper
        >>> sorted(SequenceWrapper([3, 1, 2]).shuffle())
        [1, 2, 3]
    """

    def __init__(self, datapipe: MapDataPipe, *, indices: list | None = None) -> None:
        self.datapipe: Any = datapipe
        self.indices = list(range(len(self.datapipe))) if indices is None else indices
        self._enabled, self._seed = True, None
        self._rng = random.Random()
        self._shuffled_indices: list[Any] = self.indices

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Sets whether the order is random.

        Args:
            shuffle: Whether it is. Default: ``True``.

        Returns:
            The pipe.
        """
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """Sets the seed of the next iteration.

        Args:
            seed: The seed.

        Returns:
            The pipe.
        """
        self._seed = seed  # type: ignore[assignment]
        return self

    def reset(self) -> None:
        """Draws a new order."""
        if self._enabled:
            if self._seed is None:
                self._seed = int(torch.empty((), dtype=torch.int64).random_().item())  # type: ignore[assignment]
            self._rng.seed(self._seed)
            self._seed = None
            self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            for index in self.indices:
                yield self.datapipe[index]
            return
        while self._shuffled_indices:
            yield self.datapipe[self._shuffled_indices.pop()]

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
