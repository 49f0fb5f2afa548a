"""Orders of a sequence in which every rank has as much of a causal attention to compute."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torchlite as torch


class _LoadBalancer(ABC):
    """An order of the positions, of which each rank gets consecutive ones."""

    @abstractmethod
    def _generate_indices(self, restore: bool = False) -> torch.Tensor | None:
        """Return the positions in this order, or those that restore the original one.

        Args:
            restore: Whether to return the inverse.

        Returns:
            A tensor of shape ``(1, seq_len)``, or ``(batch, seq_len)`` with an order for each sample.
        """


class _HeadTailLoadBalancer(_LoadBalancer):
    """Gives each of n ranks two of 2n pieces: rank r gets piece r and piece 2n - 1 - r."""

    def __init__(self, seq_length: int, world_size: int, device: Any) -> None:
        self.seq_length, self.world_size, self.device = seq_length, world_size, device

    def _generate_indices(self, restore: bool = False) -> torch.Tensor:
        if self.seq_length % (2 * self.world_size):
            raise AssertionError
        pieces = torch.arange(self.seq_length, device=self.device).view(2 * self.world_size, -1)
        head = torch.arange(self.world_size, device=self.device)
        order = pieces[torch.stack([head, 2 * self.world_size - 1 - head], 1).flatten()].flatten()
        return (order.argsort() if restore else order).unsqueeze(0)


def reorder(tensor: torch.Tensor, dim: int, indices: torch.Tensor | None) -> torch.Tensor:
    """Return a tensor with its positions along a dimension in another order.

    Args:
        tensor: The tensor; its first dimension is the batch, unless ``dim`` is 0.
        dim: The dimension of the sequence.
        indices: The order, of shape ``(1, seq_len)`` or ``(batch, seq_len)``; None for no change.

    Raises:
        AssertionError: The indices do not have two dimensions.
        ValueError: Their first size is neither 1 nor that of the batch.
    """
    if indices is None:
        return tensor
    if indices.ndim != 2:
        raise AssertionError(f"load balance index expects shape (1, seq_len) or (B, seq_len) but got {indices.shape}.")
    dim %= tensor.ndim
    if len(indices) == 1:
        return tensor.index_select(dim, indices[0])
    if dim == 0 or len(indices) != len(tensor):
        raise ValueError(
            f"Cannot rearrange buffer: load_balance_indices has shape {indices.shape}, but buffer has shape "
            f"{tensor.shape}."
        )
    return torch.stack([one.index_select(dim - 1, order) for one, order in zip(tensor, indices, strict=True)])
