"""A mode that programs enter where a compiler reads indexing by tensors."""

from __future__ import annotations

from typing import Any

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """Within this `tensor[index]` with an index of no dimensions stays a tensor's op for compilers and `vmap`; indexing
    does that here anyway.
    """

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(self, *error: Any) -> None: ...
