"""A model of the list."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np


@dataclasses.dataclass
class Model:
    """A model: `build(torch)` makes the module, `given(batch)` its arguments as arrays."""

    name: str
    build: Callable[[Any], Any]
    given: Callable[[int], tuple[np.ndarray, ...]]
    batch: int | None = 0  # the dimension of every argument that is the batch; None where there is none
    scripts: bool = True  # whether `torch.jit.script` takes it

    def make(self, torch: Any, train: bool = False) -> Any:
        """The module with its weights, in eval mode or training."""
        return filled(torch, self.build(torch)).train(train)

    def inputs(self, torch: Any, batch: int = 2) -> tuple[Any, ...]:
        """Arguments of a batch."""
        return tuple(torch.from_numpy(a) for a in self.given(batch))

    def dynamic(self, torch: Any) -> tuple[dict[int, Any], ...] | None:
        """`dynamic_shapes` of torch.export, with the batch as a dimension."""
        if self.batch is None:
            return None
        dim = torch.export.Dim("batch", min=2, max=64)
        return tuple({self.batch: dim} for _ in self.given(2))


MODELS: dict[str, Model] = {}


def model(given: Callable[..., Any], batch: int | None = 0, scripts: bool = True) -> Callable:
    """Put a function that builds a module on the list, with `given(rng, batch)`, which makes its arguments."""

    def add(build: Callable) -> Callable:
        name = build.__name__

        def arguments(batch: int) -> tuple[np.ndarray, ...]:
            found = given(np.random.default_rng(zlib.crc32(name.encode()) + batch), batch)
            return found if isinstance(found, tuple) else (found,)

        MODELS[name] = Model(name, build, arguments, batch, scripts)
        return build

    return add


def normal(*shape: int) -> Callable:
    """Arguments: one array of normal numbers, with the batch before `shape`."""
    return lambda rng, batch: rng.standard_normal((batch, *shape)).astype(np.float32)


def tokens(count: int, length: int) -> Callable:
    """Arguments: one array of `length` numbers below `count`."""
    return lambda rng, batch: rng.integers(0, count, (batch, length))


def filled(torch: Any, module: Any) -> Any:
    """The module, its parameters and buffers of floating point filled by their names alone."""
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            if not tensor.is_floating_point():
                continue
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            values = rng.standard_normal(tuple(tensor.shape)) / max(1, tensor.numel() // max(1, len(tensor))) ** 0.5
            if tensor.ndim == 1:
                values = values * 0.1
                if name.endswith(("weight", "running_var", "scale")):
                    values = 1 + np.abs(values)
            tensor.copy_(torch.from_numpy(np.asarray(values, np.float32)))
    return module
