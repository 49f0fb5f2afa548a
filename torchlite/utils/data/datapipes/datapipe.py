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
        """Registers a function as a method of pipes of this kind.

        Args:
            function_name: Name of the method.
            function: Called with the pipe and the method's arguments.
        """
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Registers the class of a pipe as a method of pipes of this kind.

        `enable_df_api_tracing` has no effect: data frames are not traced.

        Args:
            function_name: Name of the method.
            cls_to_register: The class, called with the pipe and the method's arguments.
            enable_df_api_tracing: Accepted for PyTorch's signature. Default: ``False``.

        Raises:
            Exception: The name is registered already.
        """
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = cls_to_register

    def __getstate__(self) -> Any:
        return self.__dict__

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)

    def reset(self) -> None:
        """Returns to the beginning. Pipes with state override it."""


class IterDataPipe(_DataPipeBase, IterableDataset[Item]):
    """The base class of pipes that are iterated over; registered steps such as ``map`` and ``batch`` are methods.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).map(lambda x: x * x).batch(2))
        [[0, 1], [4, 9], [16]]

    See also:
        `MapDataPipe`, `functional_datapipe`.
    """

    functions: dict[str, Callable[..., Any]] = {}


class DFIterDataPipe(IterDataPipe[Item]):
    """The base class of pipes of data frames; it adds nothing to `IterDataPipe`.

    Example:
        >>> class Frames(torch.utils.data.DFIterDataPipe):
        ...     def __iter__(self):
        ...         yield {"a": [1, 2]}
        >>> list(Frames())
        [{'a': [1, 2]}]
    """


class MapDataPipe(_DataPipeBase, Dataset[Item]):
    """The base class of pipes that are indexed; registered steps such as ``map`` are methods.

    Example:
        >>> from torchlite.utils.data.datapipes.map import SequenceWrapper
        >>> pipe = SequenceWrapper([1, 2, 3]).map(lambda x: x * x)
        >>> pipe[1], len(pipe)
        (4, 3)

    See also:
        `IterDataPipe`.
    """

    functions: dict[str, Callable[..., Any]] = {}


class DataChunk(list):
    """A list of the items of a batch of a pipe.

    Args:
        items: The items.

    Example:
        >>> chunk = torch.utils.data.DataChunk([1, 2])
        >>> chunk, list(chunk.raw_iterator())
        ([1, 2], [1, 2])
    """

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def raw_iterator(self) -> Any:
        """Iterates over the items.

        Yields:
            Each item.
        """
        yield from self.items


class functional_datapipe:
    """Class decorator that registers a pipe as a method of all pipes of its kind.

    `enable_df_api_tracing` has no effect: data frames are not traced.

    Args:
        name: Name of the method. It constructs the pipe, with the pipe that it is called on as the first argument.
        enable_df_api_tracing: Accepted for PyTorch's signature. Default: ``False``.

    Raises:
        TypeError: The decorated class is not a pipe.
        Exception: The name is registered already.

    Example:
        >>> from torchlite.utils.data import IterDataPipe, functional_datapipe
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> @functional_datapipe("repeat_each_of_example")
        ... class RepeatEach(IterDataPipe):
        ...     def __init__(self, source, times):
        ...         self.source, self.times = source, times
        ...     def __iter__(self):
        ...         for item in self.source:
        ...             yield from [item] * self.times
        >>> list(IterableWrapper([1, 2]).repeat_each_of_example(2))
        [1, 1, 2, 2]
        >>> del IterDataPipe.functions["repeat_each_of_example"]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Any) -> Any:
        for kind in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls)
                return cls
        raise TypeError("`functional_datapipe` can only decorate IterDataPipe and MapDataPipe")
