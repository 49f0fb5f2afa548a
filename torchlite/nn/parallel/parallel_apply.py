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
    """Returns the outputs of several modules, each for its own inputs.

    The calls run one after the other, while the devices work asynchronously.

    Args:
        modules: The modules.
        inputs: For each module an input, or a tuple of inputs.
        kwargs_tup: For each module its keyword arguments. Default: none.
        devices: The modules' devices; only the number is checked. Default: none.

    Raises:
        AssertionError: The numbers of modules, inputs, keyword arguments and devices differ.

    Example:
        >>> modules = [torch.nn.Identity(), torch.nn.ReLU()]
        >>> torch.nn.parallel.parallel_apply(modules, [torch.tensor([-1.0]), torch.tensor([-1.0])])
        [tensor([-1.]), tensor([0.])]
    """
    named = kwargs_tup or [{}] * len(modules)
    if not len(modules) == len(inputs) == len(named) == len(devices or modules):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}"
            f" (or of kwargs {len(named)}, or of devices {len(devices or modules)})"
        )
    arguments = [given if isinstance(given, (list, tuple)) else (given,) for given in inputs]
    return [module(*args, **kwargs) for module, args, kwargs in zip(modules, arguments, named, strict=True)]
