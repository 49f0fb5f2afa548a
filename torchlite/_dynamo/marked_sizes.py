"""Checks dimensions that `mark_dynamic` marks: a program that holds for one size alone is an error."""

from __future__ import annotations

from typing import Any

from torchlite._device.generators import use_copied_generators
from torchlite._dispatch.call import Tensor
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite.nn.modules.module import Module
from torchlite.utils import _pytree as pytree

from .recompile_reasons import argument_names

_MARKS = "_dynamo_dynamic_indices"
_UNTRACED = (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError, AssertionError)


def has_marked_sizes(tensors: list) -> bool:
    """True if a dimension of a tensor was marked by `mark_dynamic`."""
    return any(_MARKS in tensor.__dict__ for tensor in tensors)


def check_marked_sizes(function: Any, args: tuple, kwargs: dict) -> None:
    """Raise ConstraintViolationError if a function specializes a marked dimension. It is traced, also with other sizes.
    A function that cannot be traced is not checked.
    """
    from torchlite.fx.experimental.symbolic_shapes import ConstraintViolationError

    leaves = pytree.tree_leaves((args, kwargs))
    dims = [_marked_dims(leaf) for leaf in leaves]
    if not any(dims):
        return
    module = function
    if not isinstance(function, Module):
        module = Module()
        module.forward = function
    try:
        with use_copied_generators():
            found = CALLBACKS.specialized_sizes(module, args, kwargs, dims)
    except _UNTRACED:
        return
    if found:
        paths = _paths_of(function, args, kwargs)
        names = [f"{paths[leaf]}.size()[{dim}]" for leaf, dim in found]
        lines = [_specialized(name, leaves[leaf].shape[dim]) for name, (leaf, dim) in zip(names, found, strict=True)]
        raise ConstraintViolationError(
            f'Constraints violated ({", ".join(names)})! For more information, run with TORCH_LOGS="+dynamic".\n'
            + "\n".join(lines)
        )


def _specialized(name: str, size: int) -> str:
    return (
        f"  - You marked {name} as dynamic but your code specialized it to be a constant ({size}). If you're using "
        "mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either "
        "Dim.STATIC or Dim.AUTO."
    )


def _marked_dims(leaf: Any) -> set[int]:
    """Return the marked dimensions of an argument; 0 and 1 are never dynamic."""
    if not isinstance(leaf, Tensor):
        return set()
    marked = {dim % leaf.dim() for dim in leaf.__dict__.get(_MARKS, ()) if leaf.dim()}
    return {dim for dim in marked if leaf.shape[dim] > 1}


def _paths_of(function: Any, args: tuple, kwargs: dict) -> list[str]:
    """Return how PyTorch names the leaves of arguments: `L['x'][0]`."""
    names = argument_names(function)
    named = [(names[n] if n < len(names) else f"args[{n}]", value) for n, value in enumerate(args)]
    return [
        f"L['{name}']{pytree.keystr(path)}"
        for name, value in [*named, *kwargs.items()]
        for path, _ in pytree.tree_leaves_with_path(value)
    ]
