"""Data sets: objects with items by index, or streams of items."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

if TYPE_CHECKING:
    from torchlite import Generator, Tensor


Item = TypeVar("Item", covariant=True)


class Dataset(Generic[Item]):
    """Items by index: subclasses define `__getitem__(index)`, usually `__len__`, and optionally `__getitems__(indices)`
    to fetch a batch in one call.
    """

    def __getitem__(self, index: Any) -> Item:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[Item], Iterable[Item]):
    """A stream of items: subclasses have `__iter__`. With several workers each has a copy: split the work by
    `get_worker_info()`.
    """

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset["tuple[Tensor, ...]"]):
    """Rows of tensors: item i is the tuple of `tensor[i]`. All tensors have the same first dimension.

    >>> import torchlite as torch
    >>> from torchlite.utils.data import TensorDataset
    >>> TensorDataset(torch.tensor([1, 2, 3]), torch.tensor([4, 5, 6]))[1]
    (tensor(2), tensor(5))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Item]):
    """Several data sets in parallel: item i is the tuple (or dict, for keyword arguments) of their items i."""

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        self._length = len(_datasets_of_stack(self)[0])  # type: ignore[arg-type]
        if any(self._length != len(member) for member in _datasets_of_stack(self)):  # type: ignore[arg-type]
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index: Any) -> Any:
        return _rebuild_item(self, [member[index] for member in _datasets_of_stack(self)])

    def __getitems__(self, indices: list) -> Any:
        columns = []
        for member in _datasets_of_stack(self):
            fetch = getattr(member, "__getitems__", None)
            column = fetch(indices) if callable(fetch) else [member[i] for i in indices]
            if len(column) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(column)}")
            columns.append(column)
        return [_rebuild_item(self, row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


def _datasets_of_stack(stack) -> list[Dataset]:
    return list(stack.datasets.values() if isinstance(stack.datasets, dict) else stack.datasets)


def _rebuild_item(stack, items):
    return dict(zip(stack.datasets, items, strict=True)) if isinstance(stack.datasets, dict) else tuple(items)


class ConcatDataset(Dataset[Item]):
    """Concatenation of data sets."""

    @staticmethod
    def cumsum(sequence: Any) -> list[int]:
        return list(itertools.accumulate(len(member) for member in sequence))

    def __init__(self, datasets: Iterable[Dataset[Item]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(member, IterableDataset) for member in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: Any) -> Item:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]

    @property
    def cummulative_sizes(self) -> Any:
        warnings.warn("cummulative_sizes attribute is renamed to cumulative_sizes", DeprecationWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Item]):
    """Concatenation of streams."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        super().__init__()
        self.datasets = datasets

    def __iter__(self) -> Iterator:
        for member in self.datasets:
            if not isinstance(member, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from member

    def __len__(self) -> int:
        return sum(len(member) for member in self.datasets)  # type: ignore[misc, arg-type]


class Subset(Dataset[Item]):
    """The items of a data set at the given indices."""

    def __init__(self, dataset: Dataset[Item], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Item:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list:
        fetch = getattr(self.dataset, "__getitems__", None)
        wanted = [self.indices[i] for i in indices]
        return fetch(wanted) if callable(fetch) else [self.dataset[i] for i in wanted]

    def __len__(self) -> int:
        return len(self.indices)


def _split_lengths(lengths, total: int) -> list[int]:
    """Return integer lengths from fractions that sum to one; the remainder is spread over the first ones."""
    out = []
    for i, fraction in enumerate(lengths):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        out.append(math.floor(total * fraction))
    for i in range(total - sum(out)):
        out[i % len(out)] += 1
    for i, length in enumerate(out):
        if not length:
            warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=3)
    return out


def random_split(
    dataset: Dataset[Item], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[Item]]:
    """Split a data set at random into parts of the given lengths, or of fractions that sum to one.

    >>> import torchlite as torch
    >>> from torchlite.utils.data import random_split
    >>> [len(part) for part in random_split(range(10), [0.7, 0.3], torch.Generator().manual_seed(0))]
    [7, 3]
    """
    total = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _split_lengths(lengths, total)
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = torch.randperm(total, generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[int(end - length) : int(end)]) for end, length in zip(ends, lengths, strict=True)]


__dir__ = make_module_dir(globals())
