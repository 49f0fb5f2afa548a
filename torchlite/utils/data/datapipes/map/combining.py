"""Several pipes as one."""

from __future__ import annotations

from typing import Any

from ..datapipe import MapDataPipe, functional_datapipe

__all__ = ["ConcaterMapDataPipe", "ZipperMapDataPipe"]


def _check_pipes(pipes: tuple[Any, ...]) -> None:
    if not pipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, MapDataPipe) for pipe in pipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    if not all(hasattr(type(pipe), "__len__") for pipe in pipes):
        raise TypeError("Expected all inputs to be `Sized`")


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """Several pipes one after the other (functional name: ``concat``). Indices are numbers from 0.

    Args:
        datapipes: The pipes, at least one.

    Raises:
        ValueError: There is none.
        TypeError: One is not a `MapDataPipe`, or has no length.

    Example:
        >>> from torchlite.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper([1, 2]).concat(SequenceWrapper([3]))[2]
        3
    """

    def __init__(self, *datapipes: Any) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> Any:
        place = index
        for pipe in self.datapipes:
            if place < len(pipe):
                return pipe[place]
            place -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of the items of several pipes with one index (functional name: ``zip``).

    Args:
        datapipes: The pipes, at least one.

    Raises:
        ValueError: There is none.
        TypeError: One is not a `MapDataPipe`, or has no length.

    Example:
        >>> from torchlite.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper([1, 2]).zip(SequenceWrapper("ab"))[1]
        (2, 'b')
    """

    def __init__(self, *datapipes: Any) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> Any:
        found = []
        for pipe in self.datapipes:
            try:
                found.append(pipe[index])
            except IndexError as error:
                raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes {pipe}.") from error
        return tuple(found)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))
