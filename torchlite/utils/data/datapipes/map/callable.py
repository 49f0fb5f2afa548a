"""Functions of items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..datapipe import MapDataPipe, functional_datapipe
from ..utils.common import _check_unpickable_fn

__all__ = ["MapperMapDataPipe", "default_fn"]


def default_fn(data: Any) -> Any:
    """Returns its argument.

    Args:
        data: Any object.

    Example:
        >>> from torchlite.utils.data.datapipes.map.callable import default_fn
        >>> default_fn(2)
        2
    """
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """The results of a function of each item, computed when it is read (functional name: ``map``).

    Args:
        datapipe: The pipe of the items.
        fn: The function. Default: returns the item.

    Example:
        >>> from torchlite.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper([1, 2]).map(str)[1]
        '2'
    """

    def __init__(self, datapipe: Any, fn: Callable[..., Any] = default_fn) -> None:
        _check_unpickable_fn(fn)
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)
