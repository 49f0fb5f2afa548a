"""Base classes of DataPipes: data sets with functional forms registered under a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dataset import Dataset, Item, IterableDataset

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"]


class _DataPipeBase:
    """The functions that pipes of a kind have."""

    functions: dict[str, Callable[..., Any]] = {}

    def __getattr__(self, attribute_name: str) -> Any:
        for cls in type(self).__mro__:
            made = cls.__dict__.get("functions", {}).get(attribute_name)
            if made is not None:
                return lambda *args, **kwargs: made(self, *args, **kwargs)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attribute_name}'")

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Register a function under a name on pipes of this kind."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Register another pipe as a method of pipes of this kind. Exception for a registered name.
        `enable_df_api_tracing` has no effect: data frames are not traced.
        """
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = cls_to_register

    def __getstate__(self) -> Any:
        return self.__dict__

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)

    def reset(self) -> None:
        """Return to the beginning. Pipes with state override it."""


class IterDataPipe(_DataPipeBase, IterableDataset[Item]):
    """A pipe that is iterated over.

    >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(range(5)).map(lambda x: x * x).batch(2))
    [[0, 1], [4, 9], [16]]
    """

    functions: dict[str, Callable[..., Any]] = {}


class DFIterDataPipe(IterDataPipe[Item]):
    """A pipe of data frames."""


class MapDataPipe(_DataPipeBase, Dataset[Item]):
    """A pipe that is indexed."""

    functions: dict[str, Callable[..., Any]] = {}


class DataChunk(list):
    """A batch of items."""

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def raw_iterator(self) -> Any:
        yield from self.items


class functional_datapipe:
    """Decorator that registers a pipe's class under a name, as a method of other pipes. TypeError for a class that is
    not a pipe. `enable_df_api_tracing` has no effect: data frames are not traced.
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Any) -> Any:
        for kind in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls)
                return cls
        raise TypeError("`functional_datapipe` can only decorate IterDataPipe and MapDataPipe")
