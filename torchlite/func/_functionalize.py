"""`functionalize` and `debug_unwrap` of `torch.func`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._dispatch import MODE
from .._tensor import Tensor
from ._batched_tensor import BatchedTensor


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """Return a function that behaves as its functionalized form would.

    torchlite's transforms support in-place ops, so nothing is rewritten. Mutations of arguments stay visible to the
    caller, as in PyTorch.

    Args:
        func: Function of tensors.
        remove: ``"mutations"`` or ``"mutations_and_views"``; both have the same effect. Default: ``"mutations"``.

    Returns:
        A function of the same arguments.

    Raises:
        RuntimeError: ``remove`` has another value.

    Example:
        >>> torch.func.functionalize(lambda x: x.clone().add_(1))(torch.zeros(2))
        tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options "
            "are:\n     remove='mutations': all inplace and out= operators will be removed from the program, and "
            "replaced with their out-of-place equivalents.\n     remove='mutations_and_views': In addition to the "
            "above, all aliasing operators {view} will be replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def functional(*args, **kwargs):
        MODE.transforms += 1
        try:
            return func(*args, **kwargs)
        finally:
            MODE.transforms -= 1

    return functional


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Return the whole batch of a tensor inside `vmap`, for debugging.

    Args:
        tensor: A tensor. One that is not batched is returned unchanged.
        recurse: Whether to unwrap all levels of nested transforms; else the innermost one. Default: ``True``.

    Returns:
        The tensor with its batch dimension.

    Raises:
        ValueError: ``tensor`` is ``None``.
        TypeError: ``tensor`` is of another type.

    Example:
        >>> def show(x):
        ...     print(torch.func.debug_unwrap(x))
        ...     return x
        >>> _ = torch.vmap(show)(torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """
    if not isinstance(tensor, Tensor):
        raise (
            ValueError(f"Expected a Tensor, got {type(tensor).__name__}")
            if tensor is None
            else TypeError(f"debug_unwrap: expected a Tensor, not {type(tensor).__name__}")
        )
    found: Any = tensor
    while found.__class__ is BatchedTensor:
        found = found._value
        if not recurse:
            break
    return found
