"""Scatter a batch over several devices, and gather results from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchlite as torch
from torchlite import Tensor

__all__ = ["gather", "is_namedtuple", "scatter", "scatter_kwargs"]


def is_namedtuple(obj: Any) -> bool:
    """True if `obj` is a named tuple."""
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Splits inputs over several devices, differentiably.

    Tensors, also those in tuples, lists and dicts, are split as `torch.chunk` does, and moved. Each device gets other
    values
    unchanged.

    Args:
        inputs: The inputs.
        target_gpus: The devices.
        dim: The dimension to split. Default: 0.

    Returns:
        The inputs of each device, as a tuple or list.

    Example:
        >>> [list(part.shape) for part in torch.nn.parallel.scatter(torch.ones(5, 2), ["cpu", "cpu"])]
        [[3, 2], [2, 2]]
    """
    if isinstance(inputs, Tensor):
        parts = inputs.chunk(len(target_gpus), dim)
        return tuple(part.to(where) for part, where in zip(parts, target_gpus, strict=False))
    if inputs and isinstance(inputs, (tuple, list)):
        items = zip(*(scatter(item, target_gpus, dim) for item in inputs), strict=False)
        make: Any = (lambda item: type(inputs)(*item)) if is_namedtuple(inputs) else type(inputs)
        return [make(item) for item in items]
    if inputs and isinstance(inputs, dict):
        pairs = zip(*(scatter(pair, target_gpus, dim) for pair in inputs.items()), strict=False)
        return [type(inputs)(pair) for pair in pairs]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """`scatter` positional and keyword arguments to equal numbers of devices."""
    args = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    count = max(len(args), len(named))
    args += [() for _ in range(count - len(args))]
    named += [{} for _ in range(count - len(named))]
    return tuple(args), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Merges the outputs of several devices on one, differentiably.

    Tensors are concatenated, and scalars form a vector. Dicts and tuples are merged item by item.

    Args:
        outputs: The outputs.
        target_device: The device of the result.
        dim: The dimension to concatenate along. Default: 0.

    Raises:
        ValueError: Dicts differ in length.

    Example:
        >>> torch.nn.parallel.gather([torch.ones(3, 2), torch.ones(2, 2)], "cpu").shape
        torch.Size([5, 2])
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        moved = [out.to(target_device) for out in outputs]
        return torch.cat([out.reshape(1) for out in moved]) if first.ndim == 0 else torch.cat(moved, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(out) != len(first) for out in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([out[key] for out in outputs], target_device, dim)) for key in first)
    joined = (gather(list(items), target_device, dim) for items in zip(*outputs, strict=False))
    return type(first)(*joined) if is_namedtuple(first) else type(first)(joined)
