"""The items for which a function is true."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..datapipe import IterDataPipe, functional_datapipe
from ..utils.common import _check_unpickable_fn, validate_input_col

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The items for which a function is true (functional name: ``filter``).

    Args:
        datapipe: The pipe of the items.
        filter_fn: The function.
        input_col: The column (an index or key) that the function gets, or a list of columns for several arguments.
            Default: the item.

    Raises:
        ValueError: The function takes another number of arguments; in iteration: its result is no bool.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(["a", "B"]).filter(str.islower))
        ['a']
    """

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        _check_unpickable_fn(filter_fn)
        validate_input_col(filter_fn, input_col)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def _call_filter_fn(self, item: Any) -> bool:
        if self.input_col is None:
            return self.filter_fn(item)
        if isinstance(self.input_col, (list, tuple)):
            return self.filter_fn(*(item[c] for c in self.input_col))
        return self.filter_fn(item[self.input_col])

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            found = self._call_filter_fn(item)
            if not isinstance(found, bool):
                raise ValueError(f"Boolean output is required for `filter_fn` of FilterIterDataPipe, got {type(found)}")
            if found:
                yield item
