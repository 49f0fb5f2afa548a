"""Flatten and Unflatten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Joins a range of dimensions into one.

    Args:
        start_dim: First dimension to join. Default: 1.
        end_dim: Last dimension to join. Default: -1.

    Shape:
        - Input: ``(N, d1, ..., dK)``.
        - Output: ``(N, d1 * ... * dK)`` with the default range.

    Example:
        >>> torch.nn.Flatten()(torch.zeros(32, 1, 5, 5)).shape
        torch.Size([32, 25])
        >>> torch.nn.Flatten(0, 2)(torch.zeros(32, 1, 5, 5)).shape
        torch.Size([160, 5])

    See also:
        `torch.flatten`, `Unflatten`.
    """

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits a dimension into several.

    Args:
        dim: Dimension to split.
        unflattened_size: Tuple or list of the new sizes. Their product is the size of ``dim``; one of them may be -1,
            which is inferred.

    Shape:
        - Input: ``(*, S, *)``, with S at ``dim``.
        - Output: ``(*, *unflattened_size, *)``.

    Raises:
        TypeError: ``unflattened_size`` is not a tuple or list of ints.
        RuntimeError: The product of the sizes is not the size of ``dim``, at the call.

    Example:
        >>> torch.nn.Unflatten(1, (2, 5, 5))(torch.zeros(2, 50)).shape
        torch.Size([2, 2, 5, 5])

    See also:
        `torch.unflatten`, `Flatten`.
    """

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for place, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos "
                    f"{place}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
