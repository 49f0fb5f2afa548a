"""A data sparsifier that chooses blocks by the norm of their numbers."""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch
from torchlite.ao.pruning.sparsifier._blocks import mask_of_least_blocks, mask_of_least_in_blocks

from .base_data_sparsifier import BaseDataSparsifier

__all__ = ["DataNormSparsifier"]


class DataNormSparsifier(BaseDataSparsifier):
    """Makes the blocks of matrices zero whose norms are least, or the least numbers of these blocks.

    Args:
        data_list: Pairs of names and data. Default: none.
        sparsity_level: The share of blocks. Default: 0.5.
        sparse_block_shape: The rows and columns of a block. Default: (1, 4).
        zeros_per_block: The count of zeros in a chosen block. Default: all.
        norm: ``"L1"`` or ``"L2"``. Default: ``"L1"``.

    Raises:
        AssertionError: `norm` is another one.

    Example:
        >>> from torchlite.ao.pruning._experimental.data_sparsifier import DataNormSparsifier
        >>> sparsifier = DataNormSparsifier([("a", torch.tensor([[1.0, 2.0], [-3.0, 0.5]]))], 0.5, (1, 1))
        >>> sparsifier.step()
        >>> sparsifier.get_data("a", return_original=False)
        tensor([[ 0.,  2.],
                [-3.,  0.]])
    """

    def __init__(
        self, data_list: Any = None, sparsity_level: float = 0.5, sparse_block_shape: tuple[int, int] = (1, 4),
        zeros_per_block: int | None = None, norm: str = "L1",
    ) -> None:  # fmt: skip
        if norm not in ("L1", "L2"):
            raise AssertionError("only L1 and L2 norm supported at the moment")
        self.norm = norm
        super().__init__(
            data_list=data_list, sparsity_level=sparsity_level, sparse_block_shape=sparse_block_shape,
            zeros_per_block=math.prod(sparse_block_shape) if zeros_per_block is None else zeros_per_block,
        )  # fmt: skip

    def update_mask(  # type: ignore[override]
        self, name: str, data: Any, sparsity_level: float, sparse_block_shape: tuple[int, int], zeros_per_block: int,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        """Chooses the mask of a name.

        Args:
            name: The name.
            data: The data, of two dimensions with more than one element, or fewer.
            sparsity_level: The share of blocks.
            sparse_block_shape: The rows and columns of a block.
            zeros_per_block: The count of zeros in a chosen block.
            **kwargs: No effect.

        Raises:
            ValueError: `zeros_per_block` is negative or greater than a block, or the data has more dimensions.
        """
        if zeros_per_block > math.prod(sparse_block_shape):
            raise ValueError(
                "Number of zeros per block cannot be more than the total number of elements in that block."
            )
        if zeros_per_block < 0:
            raise ValueError("Number of zeros per block should be positive.")
        norms = (data.abs() if self.norm == "L1" else data * data).squeeze()
        if norms.dim() > 2:
            raise ValueError("only supports 2-D at the moment")
        norms = norms.reshape(-1, norms.shape[-1] if norms.dim() else 1)
        mask = mask_of_least_blocks(norms, sparsity_level, sparse_block_shape)
        inside = mask_of_least_in_blocks(norms, zeros_per_block, sparse_block_shape)
        self.get_mask(name).data = torch.maximum(mask, inside).to(torch.int8).reshape(data.shape)
