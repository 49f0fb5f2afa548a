"""`GradBucket`: gradients passed to a communication hook of DistributedDataParallel, in one flat tensor."""

from __future__ import annotations

from typing import Any


class GradBucket:
    """Gradients that `DistributedDataParallel` reduces in one message, as its communication hooks receive them.

    Args:
        index: The bucket's number.
        buffer: The concatenated gradients, a 1-d tensor.
        views: Views of the buffer with the shapes of the parameters.
        parameters: The parameters.
        is_last: Whether it is the last bucket of the backward pass.

    Example:
        >>> buffer, weight = torch.arange(4.0), torch.nn.Parameter(torch.zeros(2, 2))
        >>> bucket = torch.distributed.GradBucket(0, buffer, [buffer.view(2, 2)], [weight], True)
        >>> bucket.gradients()[0].shape
        torch.Size([2, 2])
    """

    __module__ = "torch.distributed"

    def __init__(self, index: int, buffer: Any, views: list[Any], parameters: list[Any], is_last: bool) -> None:
        self._index, self._buffer, self._views = index, buffer, views
        self._parameters, self._is_last = parameters, is_last

    def index(self) -> int:
        """Return the bucket's index: buckets are reduced in this order."""
        return self._index

    def buffer(self) -> Any:
        """Return the concatenated gradients, a 1-d tensor."""
        return self._buffer

    def gradients(self) -> list[Any]:
        """Return the gradients as views of the buffer, in their parameters' shapes."""
        return list(self._views)

    def parameters(self) -> list[Any]:
        """Return the parameters, in the gradients' order."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """True for the last bucket of this backward pass."""
        return self._is_last

    def set_buffer(self, buffer: Any) -> None:
        """Replaces the buffer.

        Args:
            buffer: A tensor of the same size.
        """
        self._buffer = buffer


class BuiltinCommHookType:
    """Hooks of `_register_builtin_comm_hook`."""

    ALLREDUCE, FP16_COMPRESS = range(2)
