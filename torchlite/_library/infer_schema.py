"""Schema inference under PyTorch's module name: `infer_schema` and `tuple_to_list`."""

from __future__ import annotations

import typing
from typing import Any

from .function_schema import infer_schema

__all__ = ["infer_schema", "tuple_to_list"]


def tuple_to_list(tuple_type: Any) -> Any:
    """Return the list type that a schema uses for a tuple type.

    >>> from torchlite._library.infer_schema import tuple_to_list
    >>> tuple_to_list(tuple[int, ...])
    list[int]
    """
    parts = typing.get_args(tuple_type)
    if not parts:
        return list
    if len(parts) == 1 or parts[1:] == (Ellipsis,):
        return list[parts[0]]  # type: ignore[valid-type]
    return list[typing.Union[parts]]  # type: ignore[valid-type]
