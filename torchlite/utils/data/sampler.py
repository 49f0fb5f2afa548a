"""Samplers: orders in which the items of a data set are visited. For equal seeds the orders equal PyTorch's."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

if TYPE_CHECKING:
    from torchlite import Generator


Item = TypeVar("Item", covariant=True)


def draw_seed(generator: Generator | None = None) -> int:
    """Draw one int64 from a generator (None: the default generator)."""
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


class Sampler(Generic[Item]):
    """The base class of samplers, which yield the indices that a `DataLoader` loads.

    A subclass defines ``__iter__()`` and usually ``__len__()``. A sampler of batches yields lists of indices.

    Example:
        >>> class Backwards(torch.utils.data.Sampler):
        ...     def __init__(self, data):
        ...         self.data = data
        ...     def __iter__(self):
        ...         return iter(range(len(self.data) - 1, -1, -1))
        ...     def __len__(self):
        ...         return len(self.data)
        >>> data = [10, 20, 30]
        >>> list(torch.utils.data.DataLoader(data, sampler=Backwards(data)))
        [tensor([30]), tensor([20]), tensor([10])]
    """

    def __iter__(self) -> Iterator[Item]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """Yields all indices in order.

    Args:
        data_source: A data set with a length.

    Example:
        >>> list(torch.utils.data.SequentialSampler("abcd"))
        [0, 1, 2, 3]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[Any]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Yields indices in random order.

    Without replacement each index occurs once; if ``num_samples`` is greater than the length, more permutations follow.
    For the same seed the order is that of PyTorch.

    Args:
        data_source: A data set with a length.
        replacement: Whether each index is drawn from all. Default: ``False``.
        num_samples: Number of indices to yield. Default: the length of ``data_source``.
        generator: Source of the random numbers. Default: one seeded by the default generator.

    Raises:
        TypeError: ``replacement`` is not a bool.
        ValueError: ``num_samples`` is not a positive int.

    Example:
        >>> sampler = torch.utils.data.RandomSampler(range(4), generator=torch.Generator().manual_seed(0))
        >>> list(sampler)
        [0, 1, 3, 2]
        >>> sorted(torch.utils.data.RandomSampler(range(2), num_samples=4))
        [0, 0, 1, 1]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source, self.replacement, self._num_samples, self.generator = (
            data_source,
            replacement,
            num_samples,
            generator,
        )
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """Number of indices of a pass; without a given number the present length of the data set."""
        # The data set may have grown since the sampler was created.
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[Any]:
        count, wanted, generator = len(self.data_source), self.num_samples, self.generator
        if generator is None:
            generator = torch.Generator()
            generator.manual_seed(draw_seed())
        if self.replacement:
            for start in range(0, wanted, 32):  # PyTorch's blocks, which the values of a seed depend on
                size = (min(32, wanted - start),)
                yield from torch.randint(high=count, size=size, dtype=torch.int64, generator=generator).tolist()
        else:
            for _ in range(wanted // count):
                yield from torch.randperm(count, generator=generator).tolist()
            yield from torch.randperm(count, generator=generator).tolist()[: wanted % count]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Yields given indices in random order, each once.

    Args:
        indices: The indices.
        generator: Source of the random numbers. Default: the default generator.

    Example:
        >>> sorted(torch.utils.data.SubsetRandomSampler([7, 3, 5]))
        [3, 5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[Any]:
        for i in torch.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Yields random indices with given weights, such as to balance classes.

    Args:
        weights: The weight of each index from 0 on; not negative. Their sum need not be 1.
        num_samples: Number of indices to yield.
        replacement: Whether an index may occur again. Default: ``True``.
        generator: Source of the random numbers. Default: the default generator.

    Raises:
        ValueError: ``num_samples`` is not a positive int, ``replacement`` not a bool, or ``weights`` not
            one-dimensional.
        RuntimeError: There are too few weights without replacement, or none is positive (in iteration).

    Example:
        >>> list(torch.utils.data.WeightedRandomSampler([0.0, 2.0, 0.0], num_samples=4))
        [1, 1, 1, 1]
        >>> sorted(torch.utils.data.WeightedRandomSampler([0.0, 1.0, 3.0], num_samples=2, replacement=False))
        [1, 2]

    See also:
        `torch.multinomial`.
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = torch.as_tensor(weights, dtype=torch.float64)
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[Any]:
        yield from torch.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        ).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Yields lists of the indices of another sampler.

    Args:
        sampler: A sampler, or another iterable of indices.
        batch_size: Number of indices of a list; a positive int.
        drop_last: Whether to leave out a last list that is shorter.

    Raises:
        ValueError: ``batch_size`` is not a positive int, or ``drop_last`` is not a bool.

    Example:
        >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
        >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=True))
        [[0, 1], [2, 3]]
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[Any]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


__dir__ = make_module_dir(globals(), hidden="draw_seed")
