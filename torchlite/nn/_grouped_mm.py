"""Grouped matrix multiplication: products of several matrices of different sizes stored in one tensor."""

from __future__ import annotations

from typing import Any

import torchlite as torch


def grouped_mm(mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """Computes products of groups of matrices.

    Two stacks of matrices multiply as in `bmm`. If one operand is a matrix, group ``i`` is its rows (of `mat_a`) or
    columns (of `mat_b`) up to ``offs[i]``. If both are matrices, the groups split the inner dimension.

    Args:
        mat_a: The first operand, with two or three dimensions.
        mat_b: The second operand, with two or three dimensions.
        offs: The ends of the groups, int32; for two stacks ``None``.
        bias: Not supported, as in PyTorch.
        out_dtype: The dtype of the result. Default: the operands'.

    Raises:
        ValueError: `offs` is missing, or given for two stacks.
        NotImplementedError: `bias` is given.

    Example:
        >>> rows, weights = torch.ones(3, 2), torch.stack([torch.eye(2), 2 * torch.eye(2)])
        >>> F.grouped_mm(rows, weights, offs=torch.tensor([1, 3], dtype=torch.int32))[:, 0]
        tensor([1., 2., 2.])
    """
    if (offs is None) != (mat_a.ndim == 3 and mat_b.ndim == 3):
        raise ValueError("offs is given where one of the matrices is 2-D, and only there")
    if bias is not None:
        raise NotImplementedError("grouped_mm with a bias: PyTorch has none either")
    if offs is None:
        out = torch.bmm(mat_a, mat_b)
    else:
        ends = [int(end) for end in offs.tolist()]
        parts = list(zip([0, *ends[:-1]], ends, strict=True))
        if mat_a.ndim == 2 and mat_b.ndim == 2:
            out = torch.stack([mat_a[:, i:j] @ mat_b[i:j] for i, j in parts])
        elif mat_a.ndim == 2:
            out = torch.cat([mat_a[i:j] @ group for (i, j), group in zip(parts, mat_b, strict=True)])
        else:
            out = torch.cat([group @ mat_b[:, i:j] for (i, j), group in zip(parts, mat_a, strict=True)], 1)
    return out if out_dtype is None else out.to(out_dtype)
