"""A pruner that removes the channels nearest to all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import Tensor

from .base_structured_sparsifier import BaseStructuredSparsifier

__all__ = ["FPGMPruner"]


class FPGMPruner(BaseStructuredSparsifier):
    """Masks the channels with the least sums of distances to the others, which the others can replace.

    Args:
        sparsity_level: The share of channels. Default: 0.5.
        dist: 1 or 2, the norm of the distance, or a function of a matrix that returns the distances of its rows.
            Default: 2.

    Raises:
        NotImplementedError: `dist` is another number.

    Example:
        >>> from torchlite.ao.pruning._experimental.pruner import FPGMPruner
        >>> model, pruner = torch.nn.Sequential(torch.nn.Linear(2, 4)), FPGMPruner(0.25)
        >>> pruner.prepare(model, None)
        >>> pruner.step()
        >>> pruner.prune().get_submodule("0")
        Linear(in_features=2, out_features=3, bias=True)
    """

    dist_fn: Callable[[Tensor], Tensor]

    def __init__(self, sparsity_level: float = 0.5, dist: Any = None) -> None:
        if callable(dist):
            self.dist_fn = dist
        elif dist in (None, 1, 2):
            self.dist_fn = lambda rows: torch.cdist(rows, rows, p=dist or 2)
        else:
            raise NotImplementedError("Distance function is not yet implemented.")
        super().__init__(defaults={"sparsity_level": sparsity_level})

    def _compute_distance(self, t: Tensor) -> Tensor:
        """Return the sum of each channel's distances to all."""
        return self.dist_fn(t.flatten(1)).abs().sum(1)

    def update_mask(self, module: Any, tensor_name: str, sparsity_level: float, **kwargs: Any) -> None:  # type: ignore[override]
        """Chooses the mask of a weight.

        Args:
            module: The module.
            tensor_name: The name of the weight.
            sparsity_level: The share of channels.
            **kwargs: No effect.
        """
        weight, mask = getattr(module, tensor_name), getattr(module.parametrizations, tensor_name)[0].mask
        if sparsity_level <= 0 or sparsity_level >= 1.0:
            mask.data = torch.full_like(mask, sparsity_level <= 0, dtype=torch.bool)
            return
        count = round(sparsity_level * weight.shape[0])
        mask[torch.topk(self._compute_distance(weight), count, largest=False).indices] = False
