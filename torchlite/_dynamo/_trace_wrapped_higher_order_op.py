"""TransformGetItemToIndex, a mode for indexing with zero-dimensional tensors under `vmap` and compilers."""

from __future__ import annotations

from typing import Any

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """Keep `tensor[index]` with a zero-dimensional index a tensor op. Indexing does so without this mode too."""

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(self, *error: Any) -> None: ...
