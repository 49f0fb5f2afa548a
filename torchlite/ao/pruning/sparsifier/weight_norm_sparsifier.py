"""A sparsifier that chooses blocks by the norm of their weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import Tensor

from ._blocks import mask_of_least_blocks, mask_of_least_in_blocks
from .base_sparsifier import BaseSparsifier

__all__ = ["WeightNormSparsifier"]


class WeightNormSparsifier(BaseSparsifier):
    """Makes the blocks of weights zero whose norms are least, or the least numbers of these blocks.

    Args:
        sparsity_level: The share of blocks. Default: 0.5.
        sparse_block_shape: The rows and columns of a block. Default: (1, 4).
        zeros_per_block: The count of zeros in a chosen block. Default: all.
        norm: 1, 2 or a function of weights. Default: 2.

    Raises:
        NotImplementedError: `norm` is another number.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4))
        >>> sparsifier = torch.ao.pruning.WeightNormSparsifier(0.75)
        >>> sparsifier.prepare(model, None)
        >>> sparsifier.step()
        >>> (model[0].weight == 0).sum()
        tensor(12)
    """

    norm_fn: Callable[[Tensor], Tensor]

    def __init__(
        self, sparsity_level: float = 0.5, sparse_block_shape: tuple[int, int] = (1, 4),
        zeros_per_block: int | None = None, norm: Any = None,
    ) -> None:  # fmt: skip
        if zeros_per_block is None:
            zeros_per_block = math.prod(sparse_block_shape)
        if callable(norm):
            self.norm_fn = norm
        elif norm == 1:
            self.norm_fn = torch.abs
        elif norm in (None, 2):
            self.norm_fn = torch.square
        else:
            raise NotImplementedError(f"L-{norm} is not yet implemented.")
        super().__init__(
            defaults={
                "sparsity_level": sparsity_level, "sparse_block_shape": sparse_block_shape,
                "zeros_per_block": zeros_per_block,
            }
        )  # fmt: skip

    def update_mask(  # type: ignore[override]
        self, module: Any, tensor_name: str, sparsity_level: float, sparse_block_shape: tuple[int, int],
        zeros_per_block: int, **kwargs: Any,
    ) -> None:  # fmt: skip
        """Chooses the mask of a tensor.

        Args:
            module: The module.
            tensor_name: The name of the tensor.
            sparsity_level: The share of blocks.
            sparse_block_shape: The rows and columns of a block.
            zeros_per_block: The count of zeros in a chosen block.
            **kwargs: No effect.

        Raises:
            ValueError: `zeros_per_block` is negative or greater than a block.
        """
        in_block = math.prod(sparse_block_shape)
        if zeros_per_block > in_block:
            raise ValueError(
                "Number of zeros per block cannot be more than the total number of elements in that block."
            )
        if zeros_per_block < 0:
            raise ValueError("Number of zeros per block should be positive.")
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.data = torch.ones_like(mask)
            return
        if sparsity_level >= 1.0 and zeros_per_block == in_block:
            mask.data = torch.zeros_like(mask)
            return
        norms = self.norm_fn(getattr(module, tensor_name))
        found = mask_of_least_blocks(norms, sparsity_level, sparse_block_shape, keep=1)
        if zeros_per_block != in_block:
            found = torch.logical_or(found, mask_of_least_in_blocks(norms, zeros_per_block, sparse_block_shape))
        mask.data = found
