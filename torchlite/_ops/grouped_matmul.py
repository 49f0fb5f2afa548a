"""Products of groups of matrices that share a tensor: mixtures of experts."""

from .._dispatch import Out, memory_layout, op
from .._types.dtypes import bfloat16, float16, float32, int32
from ._linalg_common import adjoint
from .matmul import _mm_dtypes

_DTYPES = (float32, bfloat16, float16)


def _grouped_mm_rule(input, mat2, offs, bias, out_dtype):
    for name, x in (("mat_a", input), ("mat_b", mat2)):
        if x.dtype not in _DTYPES:
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {x.dtype.scalar_name}")
    for name, x in (("mat_a", input), ("mat_b", mat2)):
        if len(x.shape) not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    _mm_dtypes(input, mat2)
    ranks = len(input.shape), len(mat2.shape)
    if input.shape[-1] != mat2.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if (offs is None) != (ranks == (3, 3)):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if offs is not None and len(offs.shape) != 1:
        raise RuntimeError("offs has to be 1D")
    if offs is not None and offs.dtype is not int32:
        raise RuntimeError("Offsets have to be int32")
    groups = mat2.shape[0] if offs is None else offs.shape[0]
    if any(len(x.shape) == 3 and x.shape[0] != groups for x in (input, mat2)):
        raise RuntimeError("matrix batch sizes have to match")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype not in (None, input.dtype):
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    batch = (groups,) if ranks in ((2, 2), (3, 3)) else ()
    return (*batch, input.shape[-2], mat2.shape[-1]), input.dtype


def _check_grouped_mm(input, mat2, offs, bias, out_dtype):
    _grouped_mm_rule(input, mat2, offs, bias, out_dtype)


op(
    "_grouped_mm(Tensor input, Tensor mat2, Tensor? offs=None, Tensor? bias=None, out_dtype=None)",
    where="torch",
    shape_fn=_grouped_mm_rule,
    check=_check_grouped_mm,
    vjp={
        "input": lambda F, g, mat2, offs: F._grouped_mm(g, adjoint(F, mat2), offs),
        "mat2": lambda F, g, input, offs: F._grouped_mm(adjoint(F, input), g, offs),
    },
    doc="""Computes products of groups of matrices.

    Two stacks of matrices multiply as in `bmm`. If one operand is a matrix, group ``i`` is its rows (of `input`) or
    columns (of `mat2`) from ``offs[i - 1]`` to ``offs[i]``. If both are matrices, the groups split the inner dimension.
    Rows and columns after the last offset have no group: the result is zero there.

    Args:
        input: The first operand, with two or three dimensions: float32, bfloat16 or float16.
        mat2: The second operand, with two or three dimensions, of the same dtype.
        offs: The ends of the groups, int32, in ascending order; ``None`` for two stacks.
        bias: Not supported, as in PyTorch.
        out_dtype: The dtype of the result, which must be that of `input`.

    Returns:
        A tensor of shape ``(groups, n, p)`` for two stacks and for two matrices, else ``(n, p)``.

    Raises:
        RuntimeError: The shapes or dtypes do not fit, `offs` is missing, or its values descend or are too large.

    Example:
        >>> rows, weights = torch.ones(3, 2), torch.stack([torch.eye(2), 2 * torch.eye(2)])
        >>> torch._grouped_mm(rows, weights, torch.tensor([1, 3], dtype=torch.int32))[:, 0]
        tensor([1., 2., 2.])
    """,
    layout=memory_layout.contiguous,
    out=Out(supported=False),
)
