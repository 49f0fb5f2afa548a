"""Data sets: objects with items by index, or streams of items."""

from __future__ import annotations

import bisect
import itertools
import math
import operator
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

if TYPE_CHECKING:
    from torchlite import Generator, Tensor


Item = TypeVar("Item", covariant=True)


class Dataset(Generic[Item]):
    """The base class of data sets whose items have indices.

    A subclass defines ``__getitem__(index)`` and usually ``__len__()``, which samplers need. It may define
    ``__getitems__(indices)``, which returns a list of the items of a batch in one call. ``a + b`` is a `ConcatDataset`.

    Example:
        >>> class Squares(torch.utils.data.Dataset):
        ...     def __getitem__(self, index):
        ...         return index**2
        ...     def __len__(self):
        ...         return 4
        >>> list(torch.utils.data.DataLoader(Squares(), batch_size=2))
        [tensor([0, 1]), tensor([4, 9])]

    See also:
        `IterableDataset`, `TensorDataset`, `DataLoader`.
    """

    def __getitem__(self, index: Any) -> Item:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[Item], Iterable[Item]):
    """The base class of data sets that are streams of items.

    A subclass defines ``__iter__()``, and may define ``__len__()``. Each worker of a `DataLoader` has a copy of the
    data set, and all items of each copy are loaded. So ``__iter__`` must divide the work by `get_worker_info`.
    ``a + b`` is a `ChainDataset`.

    Example:
        >>> class Count(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         info = torch.utils.data.get_worker_info()
        ...         start, step = (0, 1) if info is None else (info.id, info.num_workers)
        ...         return iter(range(start, 5, step))
        >>> list(torch.utils.data.DataLoader(Count(), batch_size=2))
        [tensor([0, 1]), tensor([2, 3]), tensor([4])]

    See also:
        `Dataset`, `get_worker_info`.
    """

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset["tuple[Tensor, ...]"]):
    """A data set of the rows of tensors: item i is the tuple of ``tensor[i]`` of each tensor.

    Args:
        tensors: Tensors whose first dimension has the same size.

    Raises:
        AssertionError: The sizes of the first dimension differ.

    Example:
        >>> dataset = torch.utils.data.TensorDataset(torch.tensor([1, 2, 3]), torch.tensor([4, 5, 6]))
        >>> dataset[1]
        (tensor(2), tensor(5))
        >>> len(dataset)
        3

    See also:
        `StackDataset`.
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
    """A data set of several in parallel: item i holds the items i of all.

    Args:
        args: Data sets of one length; an item is a tuple.
        kwargs: Data sets of one length; an item is a dict with these keys. Excludes ``args``.

    Raises:
        ValueError: No data set is given, both kinds are given, or the lengths differ.

    Example:
        >>> dataset = torch.utils.data.StackDataset(image=["a", "b"], label=[0, 1])
        >>> dataset[1]
        {'image': 'b', 'label': 1}
        >>> torch.utils.data.StackDataset(["a", "b"], [0, 1])[1]
        ('b', 1)

    See also:
        `TensorDataset`, `ConcatDataset`.
    """

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
    """A data set of several in sequence: the items of the first, then those of the second, and so on.

    Args:
        datasets: Data sets with a length; at least one.

    Attributes:
        datasets (list[Dataset]): The data sets.
        cumulative_sizes (list[int]): The index at which each data set ends.

    Raises:
        AssertionError: There is no data set, or one is an `IterableDataset`.
        ValueError: A negative index is below minus the length (in indexing).

    Example:
        >>> dataset = torch.utils.data.ConcatDataset([["a", "b"], ["c"]])
        >>> len(dataset), dataset[2], dataset[-3]
        (3, 'c', 'a')

    See also:
        `ChainDataset` for streams, `StackDataset`.
    """

    @staticmethod
    def cumsum(sequence: Any) -> list[int]:
        """Returns the cumulative lengths of data sets.

        Args:
            sequence: The data sets.

        Returns:
            The index at which each of them ends.
        """
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
        """Deprecated spelling of ``cumulative_sizes``."""
        warnings.warn("cummulative_sizes attribute is renamed to cumulative_sizes", DeprecationWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Item]):
    """A data set of several streams in sequence.

    Args:
        datasets: The `IterableDataset` objects. If it is a generator, they are made as they are needed, and one pass is
            possible.

    Raises:
        AssertionError: One is not an `IterableDataset` (in iteration).

    Example:
        >>> class Letters(torch.utils.data.IterableDataset):
        ...     def __init__(self, text):
        ...         self.text = text
        ...     def __iter__(self):
        ...         return iter(self.text)
        >>> list(torch.utils.data.ChainDataset([Letters("ab"), Letters("c")]))
        ['a', 'b', 'c']

    See also:
        `ConcatDataset`.
    """

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
    """A data set of chosen items of another.

    Args:
        dataset: The other data set.
        indices: The indices of the items in ``dataset``; item i is ``dataset[indices[i]]``.

    Example:
        >>> subset = torch.utils.data.Subset(["a", "b", "c", "d"], [3, 1])
        >>> len(subset), subset[0]
        (2, 'd')

    See also:
        `random_split`.
    """

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
    """Splits a data set at random into parts without common items.

    Args:
        dataset: The data set, with a length.
        lengths: The lengths of the parts, which sum to that of ``dataset``; or fractions in [0, 1] with the sum 1.
            Fractions are rounded down, and the remaining items go to the first parts, one each.
        generator: Source of the random numbers. Default: the default generator.

    Returns:
        A list of a `Subset` for each part.

    Raises:
        ValueError: The lengths do not sum to that of ``dataset``, or a fraction is out of range.

    Example:
        >>> first, second = torch.utils.data.random_split(range(10), [0.7, 0.3], torch.Generator().manual_seed(0))
        >>> len(first), len(second)
        (7, 3)
        >>> sorted([*first, *second])
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    total = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _split_lengths(lengths, total)
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    counts: Any = lengths  # index refuses floats
    ends = list(itertools.accumulate(map(operator.index, counts)))
    order = torch.randperm(total, generator=generator).tolist()
    return [Subset(dataset, order[end - length : end]) for end, length in zip(ends, lengths, strict=True)]


__dir__ = make_module_dir(globals())
