"""A sparsifier that keeps a band around the diagonal."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .base_sparsifier import BaseSparsifier


class NearlyDiagonalSparsifier(BaseSparsifier):
    """Keeps a band around the diagonal of weights.

    Args:
        nearliness: The width of the band, an odd number; 1 is the diagonal. Default: 1.

    Example:
        >>> model, sparsifier = torch.nn.Sequential(torch.nn.Linear(3, 3)), torch.ao.pruning.NearlyDiagonalSparsifier()
        >>> sparsifier.prepare(model, None)
        >>> sparsifier.step()
        >>> (model[0].weight != 0).sum()
        tensor(3)
    """

    def __init__(self, nearliness: int = 1) -> None:
        super().__init__(defaults={"nearliness": nearliness})

    def update_mask(self, module: Any, tensor_name: str, nearliness: int, **kwargs: Any) -> None:  # type: ignore[override]
        """Sets the mask of a tensor to the band.

        Args:
            module: The module.
            tensor_name: The name of the tensor.
            nearliness: The width of the band.
            **kwargs: No effect.

        Raises:
            ValueError: The width is even, or greater than the tensor allows.
        """
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        rows, columns = getattr(module, tensor_name).shape
        reach = nearliness // 2
        if nearliness > 0 and nearliness % 2 == 0:
            raise ValueError("nearliness can only be an odd number")
        if nearliness > 0 and reach >= min(rows, columns):
            raise ValueError("nearliness cannot be larger than the dimensions of tensor.")
        mask.data = torch.zeros_like(mask)
        if nearliness > 0:
            mask.data = torch.ones_like(mask).tril(reach).triu(-reach)
