"""Grouped matrix multiplication: products of several matrices of different sizes stored in one tensor."""

from __future__ import annotations

from typing import Any

import torchlite as torch


def grouped_mm(mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """Computes products of groups of matrices.

    Two stacks of matrices multiply as in `bmm`. If one operand is a matrix, group ``i`` is its rows (of `mat_a`) or
    columns (of `mat_b`) up to ``offs[i]``. If both are matrices, the groups split the inner dimension. Rows and columns
    after the last offset have no group: the result is zero there.

    Args:
        mat_a: The first operand, with two or three dimensions.
        mat_b: The second operand, with two or three dimensions.
        offs: The ends of the groups, int32, in ascending order; for two stacks ``None``.
        bias: Not supported, as in PyTorch.
        out_dtype: The dtype of the result, which must be the operands'.

    Raises:
        RuntimeError: The shapes or dtypes do not fit, `offs` is missing or given for two stacks, or `bias` is given.

    Example:
        >>> rows, weights = torch.ones(3, 2), torch.stack([torch.eye(2), 2 * torch.eye(2)])
        >>> F.grouped_mm(rows, weights, offs=torch.tensor([1, 3], dtype=torch.int32))[:, 0]
        tensor([1., 2., 2.])
    """
    return torch._grouped_mm(mat_a, mat_b, offs, bias, out_dtype)
