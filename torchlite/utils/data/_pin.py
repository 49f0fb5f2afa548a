"""Batches in page-locked memory, from which copies to a CUDA device are quicker."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ... import Tensor, accelerator

if TYPE_CHECKING:
    from collections.abc import Iterator


def pin_memory(batch: Any) -> Any:
    """A batch with its tensors in page-locked memory; what is no tensor, collection or object with `pin_memory()` stays
    as it is.
    """
    if isinstance(batch, Tensor) or (not isinstance(batch, type) and hasattr(batch, "pin_memory")):
        return batch.pin_memory()
    if isinstance(batch, Mapping):
        return type(batch)({key: pin_memory(item) for key, item in batch.items()})  # type: ignore[call-arg]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(pin_memory(item) for item in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(pin_memory(item) for item in batch)
    return batch


class Pinned:
    """An iterator's batches, pinned."""

    def __init__(self, batches: Any) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return pin_memory(next(self._batches))

    def __len__(self) -> int:
        return len(self._batches)


def pinned(batches: Any) -> Any:
    """The batches pinned; with a warning the batches themselves where there is no accelerator."""
    if accelerator.is_available():
        return Pinned(batches)
    warnings.warn(
        "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
        stacklevel=4,
    )
    return batches
