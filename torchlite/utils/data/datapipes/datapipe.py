"""Base classes of DataPipes: data sets with functional forms registered under a name."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from ..dataset import Dataset, Item, IterableDataset
from ._hook_iterator import _SnapshotState, hook_iterator

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"]


class _DataPipeBase:
    """The functions that pipes of a kind have."""

    functions: dict[str, Callable[..., Any]] = {}
    # Functions of programs that pickle and print pipes: of the state, of the pipe and protocol, and of the pipe.
    getstate_hook: Callable[[Any], Any] | None = None
    reduce_ex_hook: Callable[[Any], Any] | None = None
    str_hook: Callable[[Any], str] | None = None
    repr_hook: Callable[[Any], str] | None = None

    def __getattr__(self, attribute_name: str) -> Any:
        for cls in type(self).__mro__:
            made = cls.__dict__.get("functions", {}).get(attribute_name)
            if made is not None:
                step = functools.partial(made, self)
                functools.update_wrapper(step, made, assigned=("__doc__",))
                return step
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

    @classmethod
    def set_getstate_hook(cls, hook_fn: Any) -> None:
        """Sets the function of a pipe's attributes that returns its pickled state.

        Args:
            hook_fn: The function; ``None`` removes it.

        Raises:
            RuntimeError: There is one already.
        """
        if cls.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls.getstate_hook = hook_fn

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Any) -> None:
        """Sets the function of a pipe that returns how it is pickled; NotImplementedError leaves that to Python.

        Args:
            hook_fn: The function; ``None`` removes it.

        Raises:
            RuntimeError: There is one already.
        """
        if cls.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls.reduce_ex_hook = hook_fn

    def __reduce_ex__(self, protocol: Any) -> Any:
        hook = type(self).__dict__.get("reduce_ex_hook") or type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(protocol)

    def __getstate__(self) -> Any:
        hook = type(self).getstate_hook
        return self.__dict__ if hook is None else hook(self.__dict__)

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)

    def __str__(self) -> str:
        hook = type(self).str_hook
        return type(self).__qualname__ if hook is None else hook(self)

    def __repr__(self) -> str:
        hook = type(self).repr_hook
        return type(self).__qualname__ if hook is None else hook(self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.functions]

    def reset(self) -> None:
        """Returns to the beginning. Pipes with state override it."""


class IterDataPipe(_DataPipeBase, IterableDataset[Item]):
    """The base class of pipes that are iterated over; registered steps such as ``map`` and ``batch`` are methods.

    A pipe has one valid iterator. A new one starts at the beginning, and makes the last one invalid: its next item
    raises RuntimeError. ``fork`` makes pipes that are iterated over independently.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).map(str).batch(2))
        [['0', '1'], ['2', '3'], ['4']]

    See also:
        `MapDataPipe`, `functional_datapipe`.
    """

    functions: dict[str, Callable[..., Any]] = {}
    _valid_iterator_id = 0
    _number_of_samples_yielded = 0
    _snapshot_state = _SnapshotState.NotStarted
    _is_child_datapipe = False

    def __iter__(self) -> Any:
        return self

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__iter__")
        if isinstance(own, types.FunctionType) and not hasattr(own, "_is_hooked"):
            cls.__iter__ = hook_iterator(own)  # type: ignore[assignment, method-assign]


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
        >>> pipe = SequenceWrapper([1, 2, 3]).map(str)
        >>> pipe[1], len(pipe)
        ('2', 3)

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
