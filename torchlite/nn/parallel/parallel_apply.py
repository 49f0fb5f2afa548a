"""Application of module replicas to their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlite.nn.modules.module import Module

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Return the output of each module for its inputs (a tuple of arguments, or one) and its keyword arguments. The
    calls run in sequence, while the devices work asynchronously. AssertionError if the numbers of modules and inputs
    differ.
    """
    named = kwargs_tup or [{}] * len(modules)
    if not len(modules) == len(inputs) == len(named) == len(devices or modules):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}"
            f" (or of kwargs {len(named)}, or of devices {len(devices or modules)})"
        )
    arguments = [given if isinstance(given, (list, tuple)) else (given,) for given in inputs]
    return [module(*args, **kwargs) for module, args, kwargs in zip(modules, arguments, named, strict=True)]
