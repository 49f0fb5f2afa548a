"""Splitting of a batch into microbatches, and merging of their results."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """Dimension along which a tensor is split into microbatches.

    Args:
        split_dim: The dimension.

    Example:
        >>> from torchlite.distributed.pipelining.microbatch import TensorChunkSpec
        >>> TensorChunkSpec.from_dict({"mask": 1})["mask"].split_dim
        1
    """

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"{self.__class__.__module__}.{self.__class__.__name__}({self.split_dim})"

    def __str__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> Any:
        """Returns a specification for each positional argument.

        Args:
            chunk_dims: The dimensions.
        """
        return tuple(TensorChunkSpec(dim) for dim in chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> Any:
        """Returns a specification for each keyword argument.

        Args:
            chunk_dims: The dimensions by name.
        """
        return {name: TensorChunkSpec(dim) for name, dim in chunk_dims.items()}


class _Replicate:
    """Every microbatch gets the full value."""


class _CustomReducer:
    """Results are combined by a function, starting from an initial value."""

    def __init__(self, init_value: Any, reduce_fn: Callable[[Any, Any], Any]) -> None:
        self.init_value, self.reduce_fn = init_value, reduce_fn


class _LossReducer(_CustomReducer):
    """Losses are combined."""


sum_reducer = _LossReducer(0.0, operator.add)


def _default_spec(value: Any) -> Any:
    return TensorChunkSpec(0) if isinstance(value, torch.Tensor) else _Replicate()


def _flatten_with_specs(values: Any, spec: Any) -> tuple[list[Any], list[Any], Any]:
    """Return the leaves of values, the specification of each, and their tree. A specification applies to a subtree."""
    leaves, tree = tree_flatten(values)
    if spec is None:
        return leaves, [_default_spec(leaf) for leaf in leaves], tree
    kinds: list[Any] = []

    def walk(value: Any, said: Any) -> None:
        if isinstance(value, (list, tuple)) and isinstance(said, (list, tuple)) and len(value) == len(said):
            for one, its in zip(value, said, strict=True):
                walk(one, its)
        elif isinstance(value, dict) and isinstance(said, dict) and list(value) == list(said):
            for name, one in value.items():
                walk(one, said[name])
        else:
            below = tree_flatten(value)[0]
            kinds.extend(said if isinstance(one, torch.Tensor) else _Replicate() for one in below)

    walk(values, spec)
    return leaves, kinds, tree


def _chunk_count(leaves: list[Any], kinds: list[Any], chunks: int) -> int:
    """Return the number of chunks: fewer than requested if the first tensor is too short."""
    for leaf, kind in zip(leaves, kinds, strict=True):
        if isinstance(leaf, torch.Tensor) and isinstance(kind, TensorChunkSpec):
            size = leaf.size(kind.split_dim)
            if size < chunks:
                warnings.warn(
                    f"Tensor size on chunking dimension is {size}, downsizing the number of chunks from {chunks} to "
                    f"{size}.",
                    stacklevel=4,
                )
            return min(chunks, size)
    return chunks


def _split_leaf(leaf: Any, kind: Any, chunks: int) -> list[Any]:
    if isinstance(kind, _Replicate) or not isinstance(leaf, torch.Tensor):
        return [leaf] * chunks
    if not isinstance(kind, TensorChunkSpec):
        raise AssertionError(f"Expected TensorChunkSpec, got {type(kind)}")
    return list(torch.tensor_split(leaf, chunks, kind.split_dim))


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
    kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
) -> tuple[list[tuple], list[dict]]:
    """Splits arguments into microbatches.

    Tensors are split; other values go to all microbatches. A first tensor shorter than ``chunks`` reduces their number.

    Args:
        args: The positional arguments.
        kwargs: The keyword arguments.
        chunks: The number of microbatches.
        args_chunk_spec: A `TensorChunkSpec` for each positional argument. Default: dimension 0.
        kwargs_chunk_spec: A `TensorChunkSpec` for each keyword argument. Default: dimension 0.

    Returns:
        The positional arguments and the keyword arguments of each microbatch, as two lists.

    Raises:
        AssertionError: Specifications and arguments differ in number or names.

    Example:
        >>> from torchlite.distributed.pipelining.microbatch import split_args_kwargs_into_chunks
        >>> split_args_kwargs_into_chunks((torch.arange(4), 7), {}, 2)
        ([(tensor([0, 1]), 7), (tensor([2, 3]), 7)], [{}, {}])
    """
    kwargs = {} if kwargs is None else kwargs
    for given, chunk_spec in ((dict(enumerate(args)), args_chunk_spec), (kwargs, kwargs_chunk_spec)):
        named = dict(enumerate(chunk_spec)) if isinstance(chunk_spec, tuple) else chunk_spec
        if named is not None and given and list(given) != list(named):
            raise AssertionError(f"args_dict.keys() = {list(given)} args_chunk_spec.keys() = {list(named)}")
    first = _flatten_with_specs(args, args_chunk_spec)
    named_spec = None if kwargs_chunk_spec is None else {name: kwargs_chunk_spec[name] for name in kwargs}
    second = _flatten_with_specs(kwargs, named_spec)
    count = _chunk_count(*first[:2], chunks)
    count = _chunk_count(*second[:2], count)

    def split(leaves: list[Any], kinds: list[Any], tree: Any) -> list[Any]:
        columns = [_split_leaf(leaf, kind, count) for leaf, kind in zip(leaves, kinds, strict=True)]
        return [tree_unflatten([column[i] for column in columns], tree) for i in range(count)]

    return split(*first), split(*second)


def merge_chunks(chunks: list[Any], chunk_spec: Any) -> Any:
    """Merges the results of microbatches: concatenates tensors.

    Args:
        chunks: The results.
        chunk_spec: A `TensorChunkSpec` for each leaf, or ``None`` for a value that all have. Default with ``None``:
            dimension 0.

    Returns:
        The merged result.

    Raises:
        ValueError: A result has another structure.

    Example:
        >>> from torchlite.distributed.pipelining.microbatch import merge_chunks
        >>> merge_chunks([torch.zeros(1), torch.ones(2)], None)
        tensor([0., 1., 1.])
    """
    if chunk_spec is not None:
        kinds, tree = tree_flatten(chunk_spec)
    else:
        leaves, tree = tree_flatten(chunks[0])
        kinds = [TensorChunkSpec(0)] * len(leaves)
    rows = []
    for chunk in chunks:
        leaves = tree_flatten(chunk)[0]
        if len(leaves) != len(kinds):
            raise ValueError(f"Chunk {chunk} did not match chunk spec {chunk_spec}")
        rows.append(leaves)
    return tree_unflatten([_merge_values([row[i] for row in rows], kind) for i, kind in enumerate(kinds)], tree)


def _merge_values(values: list[Any], kind: Any) -> Any:
    if isinstance(kind, TensorChunkSpec):
        return torch.cat(values, dim=kind.split_dim)
    if isinstance(kind, _CustomReducer):
        made = kind.init_value
        for value in values:
            made = kind.reduce_fn(made, value)
        return made
    for value in values[1:]:
        if isinstance(value, torch.Tensor) or value != values[0]:
            raise AssertionError(f"Expected {values[0]}, got {value}")
    return values[0]
