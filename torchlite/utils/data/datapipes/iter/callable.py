"""Functions of items and batches."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sized
from typing import Any

from ..._utils.collate import default_collate
from ..datapipe import IterDataPipe, functional_datapipe
from ..utils.common import _check_unpickable_fn, validate_input_col

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """The results of a function of each item (functional name: ``map``).

    Args:
        datapipe: The pipe of the items.
        fn: The function.
        input_col: The column (an index or key) that the function gets, or a list of columns for several arguments.
            Default: the item.
        output_col: The column that the result replaces; -1 appends it. Default: ``input_col``; of several the first,
            and the others are removed.

    Raises:
        ValueError: ``output_col`` is given without ``input_col``, or has several columns; or the function takes another
            number of arguments.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([(1, "a"), (2, "b")]).map(str, input_col=0))
        [('1', 'a'), ('2', 'b')]
    """

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        _check_unpickable_fn(fn)
        validate_input_col(fn, input_col)
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def _apply_fn(self, item: Any) -> Any:
        if self.input_col is None:
            return self.fn(item)
        several = isinstance(self.input_col, (list, tuple))
        found = self.fn(*(item[c] for c in self.input_col)) if several else self.fn(item[self.input_col])
        kind = type(item)
        item = list(item) if isinstance(item, tuple) else copy.copy(item)
        if self.output_col == -1:
            item.append(found)
        else:
            first = self.input_col[0] if several else self.input_col
            item[first if self.output_col is None else self.output_col] = found
            for column in sorted(self.input_col[1:], reverse=True) if several and self.output_col is None else ():
                del item[column]
        return tuple(item) if kind is tuple else item

    def __iter__(self) -> Iterator[Any]:
        return map(self._apply_fn, self.datapipe)

    def __len__(self) -> int:
        if not isinstance(self.datapipe, Sized):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return len(self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches as tensors (functional name: ``collate``).

    Args:
        datapipe: The pipe of the batches, lists of items.
        conversion: A function from a list of items to a batch. Default: `default_collate`.
        collate_fn: Replaces ``conversion``. Default: ``None``.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(3)).batch(2).collate())
        [tensor([0, 1]), tensor([2])]
    """

    def __init__(self, datapipe: Any, conversion: Any = default_collate, collate_fn: Any = None) -> None:
        if isinstance(conversion, dict):
            raise NotImplementedError("collate: a dictionary of conversions is for pipes of data frames")
        super().__init__(datapipe, collate_fn or conversion)
