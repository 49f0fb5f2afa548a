"""Functions that are found at their first use: torch generates a function then, which takes a millisecond."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torchlite as torch
from torchlite.nn import functional as F


def torch_function(name: str) -> Callable:
    """The function of `torch`, or with the prefix `F.` of `torch.nn.functional`.

    >>> torch_function("F.relu").__name__
    'relu'
    """
    return getattr(F, name[2:]) if name.startswith("F.") else getattr(torch, name)


class LazyFunctions(Mapping[str, Callable]):
    """The functions of ONNX ops. `make(op)` returns one at its first use."""

    def __init__(self, names: Mapping[str, str], make: Callable[[str], Callable]):
        self.names, self._make, self._made = names, make, dict[str, Callable]()

    def __getitem__(self, name: str) -> Callable:
        found = self._made.get(name)
        if found is None:
            if name not in self.names:
                raise KeyError(name)
            found = self._made[name] = self._make(name)
        return found

    def has_made(self, function: object) -> bool:
        """Whether an op has got this function."""
        return any(made is function for made in self._made.values())

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names


class FunctionSet:
    """A set of torch's functions, by their names. A test for membership finds none but functions of that name.

    >>> torch.relu in FunctionSet(["relu", "F.conv1d"]), torch.tanh in FunctionSet(["relu"])
    (True, False)
    """

    def __init__(self, names: Any):
        self._names: dict[str, list[str]] = {}
        for name in names:
            self._names.setdefault(name.removeprefix("F."), []).append(name)

    def __contains__(self, function: object) -> bool:
        names = self._names.get(getattr(function, "__name__", ""), ())
        return any(torch_function(name) is function for name in names)
