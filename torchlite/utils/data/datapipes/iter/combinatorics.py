"""The order of items: samplers and shuffling."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sized
from typing import Any

import torchlite as torch

from ...sampler import Sampler, SequentialSampler
from ..datapipe import IterDataPipe, functional_datapipe

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """The indices that a sampler draws for a pipe.

    Args:
        datapipe: The pipe, which has a length.
        sampler: The class of the sampler. Default: `SequentialSampler`.
        sampler_args: Its arguments. Default: none.
        sampler_kwargs: Its arguments by name. Default: none.

    Raises:
        AssertionError: The pipe has no length.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper, Sampler
        >>> list(Sampler(IterableWrapper("abc")))
        [0, 1, 2]
    """

    def __init__(
        self,
        datapipe: Any,
        sampler: type[Sampler] = SequentialSampler,
        sampler_args: tuple | None = None,
        sampler_kwargs: dict | None = None,
    ) -> None:
        if not isinstance(datapipe, Sized):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        self.datapipe = datapipe
        self.sampler_args, self.sampler_kwargs = sampler_args or (), {**(sampler_kwargs or {}), "data_source": datapipe}
        self.sampler: Any = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        if isinstance(self.sampler, Sized):
            return len(self.sampler)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe):
    """The items in random order, drawn from a buffer (functional name: ``shuffle``).

    The order depends on `torch.manual_seed`, or on the method `set_seed`.

    Args:
        datapipe: The pipe of the items.
        buffer_size: Number of items in the buffer, from which each is drawn. Default: 10000.
        unbatch_level: Number of levels of batches that are taken apart before. Default: 0.

    Raises:
        AssertionError: ``buffer_size`` is not greater than 0.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> sorted(IterableWrapper(range(4)).shuffle())
        [0, 1, 2, 3]
    """

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size, self._enabled, self._seed = buffer_size, True, None
        self._buffer: list[Any] = []
        self._rng = random.Random()

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
        """Empties the buffer and seeds the order."""
        self._buffer = []
        if self._enabled:
            if self._seed is None:
                self._seed = int(torch.empty((), dtype=torch.int64).random_().item())  # type: ignore[assignment]
            self._rng.seed(self._seed)
            self._seed = None

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        for item in self.datapipe:
            if len(self._buffer) < self.buffer_size:
                self._buffer.append(item)
                continue
            place = self._rng.randint(0, len(self._buffer) - 1)
            drawn, self._buffer[place] = self._buffer[place], item
            yield drawn
        while self._buffer:
            yield self._buffer.pop(self._rng.randint(0, len(self._buffer) - 1))

    def __len__(self) -> int:
        if isinstance(self.datapipe, Sized):
            return len(self.datapipe)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
