"""TorchScript's operators on lists and dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._str_ops import format_value
from ._value_limits import _MAX_REPEATED_LENGTH, count_visited


def list_mul(items: Any, times: Any) -> Any:
    """Repeat a list or string. Raise RuntimeError if too long."""
    if times > 1 and len(items) * times > _MAX_REPEATED_LENGTH:
        raise RuntimeError(f"a list or text of {len(items)} items cannot be repeated {times} times")
    return items * times


def safe_hash(value: Any) -> int:
    """Return a hash independent of addresses. Raise RuntimeError for values that hash by identity."""
    if value is None:
        return 0
    if value.__class__ is tuple:
        count_visited(value)
        return _safe_hash(value)
    if value.__class__ in (int, float, bool, complex, str):
        return hash(value)
    raise RuntimeError(f"unhashable type: '{value.__class__.__name__}'")


def _safe_hash(value: Any) -> int:
    return hash(tuple(map(_safe_hash, value))) if value.__class__ is tuple else safe_hash(value)


def is_equal(a: Any, b: Any) -> bool:
    """True if two values are equal, tensors in lists by value. Raise RuntimeError if that would take too long."""
    if isinstance(a, (list, tuple, dict)):
        count_visited(a)
    return _is_equal(a, b)


def _is_equal(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_is_equal(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b) if getattr(a, "shape", ()) == getattr(b, "shape", ()) == () else bool((a == b).all())


def contains(items: Any, item: Any) -> bool:
    """True if a list contains an item, a dictionary a key, or a string a substring."""
    if items.__class__ is list or items.__class__ is tuple:
        count_visited(items)
        return any(_is_equal(x, item) for x in items)
    return safe_key(item) in items


def safe_key(key: Any) -> Any:
    """Return a hashable key. Raise RuntimeError for a tuple that is too large."""
    if isinstance(key, tuple):
        count_visited(key)
    return key


def _append_item(items: list, item: Any) -> list:
    items.append(item)
    return items


def _insert(items: list, place: int, item: Any) -> None:
    items.insert(place, item)


def _remove(items: list, item: Any) -> None:
    del items[index_of(items, item)]


def index_of(items: list, item: Any) -> int:
    """Return the first index of an item. Raise ValueError if there is none."""
    count_visited(items)
    for place, one in enumerate(items):
        if _is_equal(one, item):
            return place
    raise ValueError(f"'{format_value(item)[:100]}' is not in list")


def _sort(items: list, reverse: bool = False) -> None:
    count_visited(items)
    items.sort(reverse=reverse)


def sorted_(items: Any, reverse: bool = False) -> list:
    """Return a list's items sorted."""
    found = to_list(items)
    count_visited(found)
    return sorted(found, reverse=reverse)


def _bounded_comparison(function: Callable) -> Callable:
    """Return a comparison or selection that first bounds the size of its arguments."""

    def run(*values: Any) -> Any:
        if any(isinstance(value, (list, tuple)) for value in values):
            count_visited(*values)
        return function(*values)

    return run


def _slice_list(items: Any, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return items[start : None if end == 0x7FFFFFFFFFFFFFFF else end : step]


def set_item(items: Any, key: Any, value: Any) -> None:
    """Set `items[key] = value`."""
    items[safe_key(key)] = value


def delete(items: Any, key: Any) -> None:
    """Delete `items[key]`."""
    del items[safe_key(key)]


def _pop(items: Any, *args: Any) -> Any:
    return items.pop(*map(safe_key, args))


def _get_item(items: dict, key: Any, default: Any = None) -> Any:
    return items.get(safe_key(key), default)


def to_dict(items: Any = (), *rest: Any, **named: Any) -> dict:
    """Return a dictionary from pairs or a dictionary, and keywords."""
    if items.__class__ is not dict:
        items = [(safe_key(key), value) for key, value in items]
    return {**dict(items), **named}


def _range_length(items: range) -> int:
    """Return the length of a range, which may be 2**63 or more, beyond `len`."""
    return max(0, -(-(items.stop - items.start) // items.step))


def to_list(items: Any = ()) -> list:
    """Return a list of a list, string or range. Raise RuntimeError if too long."""
    if items.__class__ is range and _range_length(items) > _MAX_REPEATED_LENGTH:
        raise RuntimeError(f"a list of {_range_length(items)} numbers would be too long")
    return list(items)
