"""Flattens pytrees by a given tree spec, for generated code."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, TypeAlias

from .. import return_types
from ..utils._pytree import PyTree, TreeSpec, tree_flatten

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

FlattenFnSpec: TypeAlias = Callable[[PyTree, TreeSpec], list]
FlattenFnExactMatchSpec: TypeAlias = Callable[[PyTree, TreeSpec], bool]
FlattenFuncSpec, FlattenFuncExactMatchSpec = FlattenFnSpec, FlattenFnExactMatchSpec
SUPPORTED_NODES: dict[Any, FlattenFnSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, FlattenFnExactMatchSpec | None] = {}


def register_pytree_flatten_spec(
    cls: Any, flatten_fn_spec: FlattenFnSpec, flatten_fn_exact_match_spec: FlattenFnExactMatchSpec | None = None
) -> None:
    """Register how objects of a class are flattened: `flatten_fn_spec(value, spec)` returns the children."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls: Any) -> None:
    del SUPPORTED_NODES[cls], SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(pytree: PyTree, spec: TreeSpec, exact_structural_match: bool = False) -> list[Any]:
    """Return the leaves of a value with the structure `spec`. Raise RuntimeError for another structure.

    >>> from torchlite.fx._pytree import tree_flatten_spec
    >>> from torchlite.utils._pytree import tree_structure
    >>> tree_flatten_spec([1, {"a": 2, "b": 3}], tree_structure([0, {"b": 0, "a": 0}]))
    [1, 3, 2]
    """
    if spec.is_leaf():
        return [pytree]
    split = SUPPORTED_NODES.get(spec.type)
    if split is None:
        leaves, found = tree_flatten(pytree)
        if found != spec:
            raise RuntimeError(f"Real spec {found} of object {pytree} is different from expected spec {spec}.")
        return leaves
    matches = SUPPORTED_NODES_EXACT_MATCH[spec.type]
    if exact_structural_match and matches is not None and not matches(pytree, spec):
        raise RuntimeError(f"Cannot flatten pytree {pytree}, given spec: {spec}")
    children = zip(split(pytree, spec), spec.children(), strict=False)
    return [leaf for part, inner in children for leaf in tree_flatten_spec(part, inner, exact_structural_match)]


def _flatten_by_key(value: Any, spec: TreeSpec) -> list[Any]:
    return [value[key] for key in spec.context]


def _flatten_by_index(value: Any, spec: TreeSpec) -> list[Any]:
    return [value[i] for i in range(spec.num_children)]


def _has_same_length(value: Any, spec: TreeSpec) -> bool:
    return len(value) == spec.num_children


register_pytree_flatten_spec(dict, _flatten_by_key, _has_same_length)
for _kind in (list, tuple, namedtuple, *return_types.all_return_types):
    register_pytree_flatten_spec(_kind, _flatten_by_index, _has_same_length)
