"""What a communication hook of DistributedDataParallel gets: the gradients of a bucket, in one flat tensor."""

from __future__ import annotations

from typing import Any


class GradBucket:
    """Gradients that are reduced together. `buffer()` is flat; a hook returns a future of what becomes of it."""

    __module__ = "torch.distributed"

    def __init__(self, index: int, buffer: Any, views: list[Any], parameters: list[Any], is_last: bool) -> None:
        self._index, self._buffer, self._views = index, buffer, views
        self._parameters, self._is_last = parameters, is_last

    def index(self) -> int:
        """The bucket's number: they are reduced in this order."""
        return self._index

    def buffer(self) -> Any:
        """The gradients, one after the other, in a tensor of one dimension."""
        return self._buffer

    def gradients(self) -> list[Any]:
        """The gradients as they lie in the buffer, in their parameters' shapes."""
        return list(self._views)

    def parameters(self) -> list[Any]:
        """The parameters, in the gradients' order."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether it is the last bucket of this backward pass."""
        return self._is_last

    def set_buffer(self, buffer: Any) -> None:
        """Put another tensor in the buffer's place; of the same size, it gives the gradients."""
        self._buffer = buffer


class BuiltinCommHookType:
    """The hooks that `_register_builtin_comm_hook` knows."""

    ALLREDUCE, FP16_COMPRESS = range(2)
