"""Size limits of TorchScript values: bounds on derived lists and strings, and on visits of shared structures."""

from __future__ import annotations

from typing import Any

from torchlite._dispatch.call import Tensor

_MAX_LENGTH = 1 << 21  # maximum items or characters of a derived list or string
_MAX_REPEATED_LENGTH = 1 << 19  # maximum for results sized by a number alone: `*`, padding, ranges
# Maximum visits (items and characters) of `str`, `==`, `hash`, sorting and similar in shared structures; additional
# cost of a container or tensor; maximum depth.
VISITS, _OF_CONTAINER, _DEEPEST = 1 << 24, 32, 200
_LEAF_TYPES = frozenset((int, float, bool, complex, type(None)))
_MAX_PRINTED_ELEMENTS = 1 << 13  # visits; printing a tensor costs about as much


def count_visited(*values: Any, tensor: int = 256, most: int = VISITS) -> int:
    """Return the size of values, shared ones counted at each occurrence. Raise RuntimeError if too large: a list that
    contains a list twice, nested, grows exponentially.

    tensor: count per tensor; 0 also ignores strings. most: limit for shared structures; trees may be larger.
    """
    spent, depth, level = 0, 0, [value for value in values if value.__class__ not in _LEAF_TYPES]
    while level:
        below: list[Any] = []
        for value in level:
            if isinstance(value, str):
                spent += len(value) if tensor else 0
            elif isinstance(value, Tensor):
                spent += tensor
            elif isinstance(value, (list, tuple, dict)):
                spent += _OF_CONTAINER + len(value)
                parts = value if not isinstance(value, dict) else (*value, *value.values())
                if not _LEAF_TYPES.issuperset(map(type, parts)):
                    below += [part for part in parts if part.__class__ not in _LEAF_TYPES]
            if spent > most:
                if 4 * len({*map(id, level)}) <= len(level) or 4 * len({*map(id, below)}) <= len(below) > 4:
                    raise RuntimeError(f"a value holds others in so many places that {spent} would be visited")
                most = 2 * spent
        level, depth = below, depth + 1
        if depth > _DEEPEST:
            raise RuntimeError(f"a value is nested more than {_DEEPEST} deep")
    return spent


def _check_length(length: int) -> None:
    """Raise RuntimeError if a list or string would be too long."""
    if length > _MAX_LENGTH:
        raise RuntimeError(f"a list or text of {length} items would be too long")
