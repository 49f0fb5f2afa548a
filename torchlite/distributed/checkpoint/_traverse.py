"""Traversal of nested state dicts by paths."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import torchlite as torch

__all__ = ["get_element", "set_element", "traverse_state_dict"]

PATH_ITEM = str | int
OBJ_PATH = tuple[PATH_ITEM, ...]


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _is_traversed(value: list[Any], keep_traversing: Callable[[object], bool]) -> bool:
    """True if a list is traversed: it contains, at any depth of lists, a dict or a value to keep traversing for."""
    return any(
        isinstance(item, Mapping)
        or keep_traversing(item)
        or (isinstance(item, list) and _is_traversed(item, keep_traversing))
        for item in value
    )


def traverse_state_dict(
    state_dict: Mapping[str, Any],
    visitor: Callable[[OBJ_PATH, Any], None],
    keep_traversing: Callable[[object], bool] = _is_tensor,
) -> None:
    """Call `visitor(path, value)` for each value.

    Dicts are traversed, and lists that contain dicts or values with `keep_traversing` (tensors); other lists and tuples
    are values.
    """

    def walk(path: OBJ_PATH, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, item in value.items():
                walk((*path, str(key)), item)
        elif isinstance(value, list) and _is_traversed(value, keep_traversing):
            for number, item in enumerate(value):
                walk((*path, number), item)
        else:
            visitor(path, value)

    for key, value in state_dict.items():
        walk((str(key),), value)


def traverse_state_dict_v_2_3(
    state_dict: Mapping[str, Any],
    visitor: Callable[[OBJ_PATH, Any], None],
    keep_traversing: Callable[[object], bool] = _is_tensor,
) -> None:
    """`traverse_state_dict` for checkpoints without a version: dicts without dicts, lists or tensors are values too."""

    def is_terminal(value: Any) -> bool:
        items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else None
        if items is None:
            return True
        return not any(
            (isinstance(item, Mapping | list) and not is_terminal(item)) or keep_traversing(item) for item in items
        )

    def walk(path: OBJ_PATH, value: Any) -> None:
        if is_terminal(value):
            visitor(path, value)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                walk((*path, str(key)), item)
        else:
            for number, item in enumerate(value):
                walk((*path, number), item)

    for key, value in state_dict.items():
        walk((str(key),), value)


def set_element(root_dict: dict[str, Any], path: OBJ_PATH, value: object) -> None:
    """Set the value at a path; create missing dicts and lists."""
    place: Any = root_dict
    for key, following in itertools.pairwise(path):
        made: Any = {} if isinstance(following, str) else []
        if isinstance(place, dict):
            place = place.setdefault(key, made)
        else:
            _extend_list(place, int(key))
            if place[int(key)] is None:
                place[int(key)] = made
            place = place[int(key)]
    if isinstance(place, list):
        _extend_list(place, int(path[-1]))
    place[path[-1]] = value


def _extend_list(items: list[Any], number: int) -> None:
    items.extend([None] * (number + 1 - len(items)))


def get_element(root_dict: Mapping[str, Any], path: OBJ_PATH, default_value: Any = None) -> Any:
    """Return the value at a path, or the default."""
    place: Any = root_dict
    for key in path:
        if isinstance(key, int):
            if not isinstance(place, list) or len(place) <= key:
                return default_value
        elif not isinstance(place, Mapping) or key not in place:
            return default_value
        place = place[key]
    return place
