"""Products of matrices with scales, which enumerations describe."""

from __future__ import annotations

import enum
from typing import Any

import torchlite as torch


class ScalingType(enum.Enum):
    """How scales are given: one of a matrix, one of each row, or one of each block.

    Example:
        >>> torch.nn.functional.ScalingType.RowWise.value
        1
    """

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.Enum):
    """The order of scales in memory.

    Example:
        >>> torch.nn.functional.SwizzleType.NO_SWIZZLE.value
        0
    """

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _as_list(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def scaled_mm(
    mat_a: Any,
    mat_b: Any,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Any = None,
    output_dtype: Any = torch.bfloat16,
    contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Any:
    """Computes the product of two matrices of float8, which are multiplied by scales before.

    Args:
        mat_a: The first matrix, of shape ``(n, m)``.
        mat_b: The second matrix, of shape ``(m, p)``.
        scale_a: The scales of the first matrix, or a list of them.
        scale_recipe_a: How they are given: `ScalingType.TensorWise`, or `ScalingType.RowWise` with the shape
            ``(n, 1)``.
        scale_b: The scales of the second matrix, with the shape ``(1, p)`` by row.
        scale_recipe_b: As `scale_recipe_a`.
        swizzle_a: The order of the scales in memory: `SwizzleType.NO_SWIZZLE`, or ``None``.
        swizzle_b: As `swizzle_a`.
        bias: A number for each column of the result, added to it, or ``None``.
        output_dtype: The dtype of the result. ``None``: that of `mat_a`.
        contraction_dim: The dimensions along which products are added up, or nothing.
        use_fast_accum: Not used.

    Returns:
        A matrix of shape ``(n, p)``.

    Raises:
        ValueError: The arguments do not fit.

    Example:
        >>> x, two = torch.eye(2).to(torch.float8_e4m3fn), torch.tensor(2.0)
        >>> F.scaled_mm(x, x, two, F.ScalingType.TensorWise, two, F.ScalingType.TensorWise)
        tensor([[4., 0.],
                [0., 4.]], dtype=torch.bfloat16)
    """
    recipes = [[kind.value for kind in _as_list(value)] for value in (scale_recipe_a, scale_recipe_b)]
    orders = [[kind.value for kind in _as_list(value)] for value in (swizzle_a, swizzle_b)]
    return torch._scaled_mm_v2(
        mat_a, mat_b, _as_list(scale_a), recipes[0], orders[0], _as_list(scale_b), recipes[1], orders[1], bias,
        output_dtype, contraction_dim, use_fast_accum,
    )  # fmt: skip
