"""Flatten nested state dicts to dotted names, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ._traverse import OBJ_PATH, set_element, traverse_state_dict, traverse_state_dict_v_2_3

FLATTEN_MAPPING = dict[str, OBJ_PATH]

__all__ = ["flatten_state_dict", "unflatten_state_dict"]


def _flatten_state_dict(
    state_dict: Mapping[str, Any], traverse: Callable[..., None]
) -> tuple[dict[str, Any], FLATTEN_MAPPING]:
    flat: dict[str, Any] = {}
    paths: FLATTEN_MAPPING = {}

    def add_entry(path: OBJ_PATH, value: Any) -> None:
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"duplicated flatten key {name}")
        flat[name], paths[name] = value, path

    traverse(state_dict, add_entry)
    return flat, paths


def flatten_state_dict(state_dict: Mapping[str, Any]) -> tuple[dict[str, Any], FLATTEN_MAPPING]:
    """Return the values by dotted names, and their paths. ValueError if two have one name.

    >>> from torchlite.distributed.checkpoint._nested_dict import flatten_state_dict
    >>> flatten_state_dict({"a": {"b": 1}, "c": [{"d": 2}]})
    ({'a.b': 1, 'c.0.d': 2}, {'a.b': ('a', 'b'), 'c.0.d': ('c', 0, 'd')})
    """
    return _flatten_state_dict(state_dict, traverse_state_dict)


def _flatten_state_dict_v_2_3(state_dict: Mapping[str, Any]) -> tuple[dict[str, Any], FLATTEN_MAPPING]:
    """Return the same for checkpoints without a version."""
    return _flatten_state_dict(state_dict, traverse_state_dict_v_2_3)


def unflatten_state_dict(state_dict: Mapping[str, Any], mapping: FLATTEN_MAPPING) -> dict[str, Any]:
    """Inverse of `flatten_state_dict`."""
    nested: dict[str, Any] = {}
    for name, value in state_dict.items():
        set_element(nested, mapping[name], value)
    return nested
