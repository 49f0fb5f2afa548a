"""Products of chains of matrices, contractions of tensors, and products of vectors along a dimension."""

import math

from .._dispatch import Out, Overlap, composite, memory_layout
from .._dispatch.shapes import wrap_dim
from .._types.dtypes import BOOL
from ._dtype_checks import refuse_kinds
from .node_graphs import multi_dot_graph


def _chain_order(sizes):
    """The cheapest bracketing of a chain of products: split[i][j] is where i..j is cut (Cormen et al., "Introduction to
    Algorithms", 15.2).
    """
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split


@composite(
    "linalg_multi_dot(tensors)",
    where="linalg",
    out=Out("same", "multi_dot(): expected out tensor to have dtype {c_want} but got {c_got}"),
    node_name=multi_dot_graph("tensors"),
)
def linalg_multi_dot(F, tensors):
    """Computes the product of several matrices in the order of least cost.

    Args:
        tensors: At least two matrices. The first may be a vector, a row, and the last one too, a column.

    Raises:
        RuntimeError: There are fewer than two, or the shapes do not fit.

    Source:
        The order is found by dynamic programming (Cormen et al., Introduction to Algorithms, section 15.2).

    Example:
        >>> torch.linalg.multi_dot([torch.ones(1, 2), torch.ones(2, 3), torch.ones(3, 1)])
        tensor([[6.]])
    """
    tensors = list(tensors)
    n = len(tensors)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    for end, i in (("first", 0), ("last", n - 1)):
        if tensors[i].ndim not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {end} tensor must be 1D or 2D but got {tensors[i].ndim}D")
    vectors, shapes = (tensors[0].ndim == 1, tensors[-1].ndim == 1), [list(t.shape) for t in tensors]
    if vectors[0]:
        tensors[0] = tensors[0].unsqueeze(0)
    if vectors[1]:
        tensors[-1] = tensors[-1].unsqueeze(-1)
    for i, tensor in enumerate(tensors):
        if tensor.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {tensor.ndim}D")
        if tensor.dtype is not tensors[0].dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {tensors[0].dtype.c_name} and "
                f"tensor {i} {tensor.dtype.c_name}"
            )
        if i and tensors[i - 1].shape[1] != tensor.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i - 1} and {i} with shapes {shapes[i - 1]} and {shapes[i]} cannot be multiplied"
            )
    split = _chain_order([t.shape[0] for t in tensors] + [tensors[-1].shape[1]])

    def chain(i, j):
        return tensors[i] if i == j else chain(i, split[i][j]) @ chain(split[i][j] + 1, j)

    result = chain(0, n - 1)
    result = result.squeeze(0) if vectors[0] else result
    return result.squeeze(-1) if vectors[1] else result


@composite(
    "chain_matmul(*matrices)",
    where="torch",
    out=Out("same", "multi_dot(): expected out tensor to have dtype {c_want} but got {c_got}"),
    node_name=multi_dot_graph("matrices"),
)
def chain_matmul(F, matrices):
    """Computes the product of several matrices. Deprecated: use `torch.linalg.multi_dot`.

    Args:
        matrices: The matrices, each an argument; of a single one the result is a copy.

    Example:
        >>> torch.chain_matmul(torch.ones(1, 2), torch.ones(2, 1))
        tensor([[2.]])

    See also:
        `torch.linalg.multi_dot`.
    """
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for matrix in matrices:
        if matrix.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.ndim}, expected 2 instead.")
    return F.clone(matrices[0]) if len(matrices) == 1 else F.linalg_multi_dot(matrices)


def _contracted_dims(a, b, dims):
    """The dimensions of a and b that `tensordot` contracts."""
    if hasattr(dims, "tolist"):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(-dims, 0)), list(range(dims))
    one, two = (list(d) if isinstance(d, (list, tuple)) else [d] for d in dims)
    if len(one) != len(two):
        raise RuntimeError("both dimension lists should have same length")
    return one, two


@composite(
    "tensordot(Tensor a, Tensor b, dims=2)",
    where="torch",
    out=Out(
        "same", "tensordot: Expected the output tensor to have dtype {want}, but got an output tensor with dtype {got}"
    ),
    overlap=Overlap(operands="partial"),
    keywords_from=2,
    kwarg_aliases={"axes": "dims"},
)
def tensordot(F, a, b, dims):
    """Computes sums of products over dimensions of two tensors.

    Args:
        a: The first tensor.
        b: The second tensor.
        dims: The number of dimensions: the last ones of `a` and the first ones of `b`. Or two lists of dimensions,
            of `a` and of `b`. Default: 2.

    Returns:
        A tensor with the remaining dimensions of `a`, then those of `b`.

    Example:
        >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), 1).shape
        torch.Size([2, 4])

    See also:
        `torch.einsum`, `numpy.tensordot`.
    """
    one, two = _contracted_dims(a, b, dims)
    if a.dtype is not b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    size = 1
    for i, j in zip(one, two, strict=True):
        if a.shape[i] != b.shape[j]:
            if a.shape[i] != 1 and b.shape[j] != 1:
                raise RuntimeError(
                    f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} and second has "
                    f"size {b.shape[j]} in dim {j}"
                )
            a, b = (
                (a.sum(i, keepdim=True, dtype=a.dtype), b)
                if b.shape[j] == 1
                else (a, b.sum(j, keepdim=True, dtype=b.dtype))
            )
        size *= a.shape[i]
    one, two = [d % a.ndim for d in one], [d % b.ndim for d in two]
    free_a = [d for d in range(a.ndim) if d not in one]
    free_b = [d for d in range(b.ndim) if d not in two]
    shape = [a.shape[d] for d in free_a] + [b.shape[d] for d in free_b]
    left = a.permute(free_a + one).reshape(math.prod([a.shape[d] for d in free_a]), size)
    right = b.permute(two + free_b).reshape(size, math.prod([b.shape[d] for d in free_b]))
    return (left @ right).reshape(shape)


@composite(
    "kron(Tensor input, Tensor other)",
    layout=memory_layout.pointwise,
    node_name="UnsafeViewBackward0(MulBackward0(UnsafeViewBackward0(input), UnsafeViewBackward0(other)))",
)
def kron(F, input, other):
    """Computes the Kronecker product: each element of the first tensor times all of the second, as blocks.

    The shorter shape is padded with leading ones.

    Args:
        other: The second tensor.

    Example:
        >>> torch.kron(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
        tensor([1., 1., 2., 2.])
    """
    ndim = max(input.ndim, other.ndim)
    a = (1,) * (ndim - input.ndim) + tuple(input.shape)
    b = (1,) * (ndim - other.ndim) + tuple(other.shape)
    one = [n for pair in zip(a, (1,) * ndim, strict=True) for n in pair]
    two = [n for pair in zip((1,) * ndim, b, strict=True) for n in pair]
    return (input.reshape(one) * other.reshape(two)).reshape([m * n for m, n in zip(a, b, strict=True)])


@composite(
    "linalg_cross(Tensor input, Tensor other, *, dim=-1)",
    where="linalg",
    layout=memory_layout.contiguous,
    out=Out("same"),
    overlap=Overlap(operands="none"),
    node_name="LinalgCrossBackward0(input, other)",
)
def linalg_cross(F, input, other, dim):
    """Computes the cross products of vectors with three elements.

    Args:
        other: The second vectors, which broadcast with `input`.
        dim: The dimension of the vectors, of size 3. Default: the last.

    Raises:
        RuntimeError: The size of `dim` is not 3.

    Example:
        >>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
        tensor([0., 0., 1.])
    """
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    wrap_dim(dim, input.ndim)
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}"
        )
    refuse_kinds(input.dtype, "cross", BOOL)
    a, b = input.unbind(dim), other.unbind(dim)
    return F.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], dim)


@composite(
    "cross(Tensor input, Tensor other, dim=None)",
    out=Out("same"),
    overlap=Overlap(operands="none"),
    node_name="LinalgCrossBackward0(input, other)",
)
def cross(F, input, other, dim):
    """Computes the cross products of vectors with three elements.

    Args:
        other: The second vectors, which broadcast with `input`.
        dim: The dimension of the vectors. Default: the first one of size 3.

    Example:
        >>> torch.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]), dim=0)
        tensor([0., 0., 1.])

    See also:
        `torch.linalg.cross`.
    """
    if dim is None:
        shape = tuple(input.shape)
        if 3 not in shape:
            raise RuntimeError("no dimension of size 3 in input")
        dim = shape.index(3)
    return F.linalg_cross(input, other, dim=dim)


@composite(
    "linalg_vecdot(Tensor x, Tensor y, *, dim=-1)",
    where="linalg",
    out=Out("same", "linalg.vecdot: Expected out of dtype{want} but found {got}"),
)
def linalg_vecdot(F, x, y, dim):
    """Computes the sums of ``conj(x) * y`` along a dimension.

    Args:
        x: The first vectors.
        y: The second vectors, which broadcast with `x`.
        dim: The dimension of the vectors. Default: the last.

    Example:
        >>> torch.linalg.vecdot(torch.tensor([1j, 2]), torch.tensor([1j, 1]))
        tensor(3.+0.j)

    See also:
        `torch.vdot`.
    """
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {x.dtype.scalar_name} and "
            f"y of type {y.dtype.scalar_name} instead"
        )
    if x.dtype.category < 2:
        return (x * y).sum(dim, dtype=x.dtype)
    return (x.conj() * y).sum(dim)
