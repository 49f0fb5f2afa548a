"""Products of matrices and vectors."""

import math

from .._dispatch import INPLACE, KEEPS_DTYPE, Out, Overlap, composite, memory_layout, op
from .._dispatch.shapes import broadcast_shapes, wrap_dim
from .._dispatch.type_promotion import cast_scalar
from .._types.dtypes import INT, int8, promote_types, uint8
from ._linalg_common import adjoint, as_column, as_row
from .node_graphs import inner_graph, matmul_graph

# --- matmul ---------------------------------------------------------------------------------------

_C_NAMES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long long",
    "int32": "int", "int16": "short", "int8": "signed char", "uint8": "unsigned char",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def _mm_dtypes(input, other):
    if input.dtype is not other.dtype:
        one, two = (_C_NAMES.get(x.dtype.name, x.dtype.name) for x in (input, other))
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {one} != {two}")


def _bmm_dtypes(input, other):
    if input.dtype is not other.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.scalar_name} but found {other.dtype.scalar_name}")


def _mv_dtypes(input, mat, vec):
    if not input.dtype is mat.dtype is vec.dtype:
        one, two, three = (x.dtype.scalar_name for x in (input, mat, vec))
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {one}, {two}, and {three}")


def _matmul_shape(input, other):
    a, b = tuple(input.shape), tuple(other.shape)
    if not a or not b:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {len(a)}D and {len(b)}D")
    if len(a) == 1 and len(b) == 1:
        return _dot_rule("dot", input, other)
    if len(b) == 1 and len(a) == 2:
        return _mv_rule(input, other)
    left, right = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b
    if left[-1] != right[-2]:
        if len(a) > 2 and len(b) > 2:
            batches = math.prod(broadcast_shapes(a[:-2], b[:-2]))
            raise RuntimeError(
                f"Expected size for first two dimensions of batch2 tensor to be: [{batches}, {a[-1]}] but got: "
                f"[{batches}, {b[-2]}]."
            )
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({math.prod(left[:-1])}x{left[-1]} and "
            f"{right[-2]}x{math.prod(right[-1:])})"
        )
    (_bmm_dtypes if len(a) > 2 and len(b) > 2 else _mm_dtypes)(input, other)
    shape = (
        *broadcast_shapes(left[:-2], right[:-2]),
        *(left[-2:-1] if len(a) > 1 else ()),
        *(right[-1:] if len(b) > 1 else ()),
    )
    return shape, input.dtype


def _mm_rule(input, mat2):
    for name, x in (("self", input), ("mat2", mat2)):
        if len(x.shape) != 2:
            raise RuntimeError(f"{name} must be a matrix")
    (n, m), (k, p) = input.shape, mat2.shape
    if m != k:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({n}x{m} and {k}x{p})")
    _mm_dtypes(input, mat2)
    return (n, p), input.dtype


def _bmm_rule(input, mat2):
    for name, x in (("batch1", input), ("batch2", mat2)):
        if len(x.shape) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    (b, n, m), (c, k, p) = input.shape, mat2.shape
    if b != c or m != k:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{b}, {m}] but got: [{c}, {k}]."
        )
    _bmm_dtypes(input, mat2)
    return (b, n, p), input.dtype


def _addmv_rule(input, mat, vec):
    ranks = len(input.shape), len(mat.shape), len(vec.shape)
    if ranks[1:] != (2, 1) or ranks[0] > 1:
        raise RuntimeError("vector + matrix @ vector expected, got " + ", ".join(map(str, ranks)))
    (n, m), size = mat.shape, input.shape[0] if input.shape else 1
    if m != vec.shape[0] or size not in (1, n):
        raise RuntimeError(f"size mismatch, got input ({size}), mat ({n}x{m}), vec ({vec.shape[0]})")
    _mv_dtypes(input, mat, vec)
    return (n,), input.dtype


def _mv_rule(input, vec):
    if len(input.shape) == 2 and len(vec.shape) == 1 and input.shape[1] == vec.shape[0]:
        _mv_dtypes(vec, input, vec)
        return tuple(input.shape[:1]), input.dtype
    if len(input.shape) != 2 or len(vec.shape) != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {len(input.shape)}, {len(vec.shape)}")
    n, m = input.shape
    raise RuntimeError(f"size mismatch, got input ({n}), mat ({n}x{m}), vec ({vec.shape[0]})")


def _dot_rule(name, a, b):
    if len(a.shape) != 1 or len(b.shape) != 1:
        raise RuntimeError(f"1D tensors expected, but got {len(a.shape)}D and {len(b.shape)}D tensors")
    if a.dtype is not b.dtype:
        one, two = a.dtype.scalar_name, b.dtype.scalar_name
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {one} and {two}")
    n, m = a.shape[0], b.shape[0]
    if n != m:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, but "
            f"got {n} and {m} elements respectively"
        )
    return (), a.dtype


def _matmul_input_vjp(F, g, other, input_shape):
    if len(other.shape) == 1:
        return F.mul(F.unsqueeze(g, -1), F.conj(other)) if len(input_shape) > 1 else F.mul(g, F.conj(other))
    if len(input_shape) == 1:
        return F.squeeze(F.matmul(F.conj(other), F.unsqueeze(g, -1)), -1)
    return F.matmul(g, F.conj(F.transpose(other, -1, -2)))


def _matmul_other_vjp(F, g, input, other_shape):
    if len(input.shape) == 1:
        if len(other_shape) == 1:
            return F.mul(g, F.conj(input))
        return F.mul(F.unsqueeze(F.conj(input), -1), F.unsqueeze(g, -2))
    if len(other_shape) == 1:
        return F.squeeze(F.matmul(F.conj(F.transpose(input, -1, -2)), F.unsqueeze(g, -1)), -1)
    if len(other_shape) == 2 and len(input.shape) > 2:
        width = input.shape[-1]
        count = math.prod(input.shape[:-1])
        return F.matmul(F.conj(F.transpose(F.reshape(input, (count, width)), 0, 1)), F.reshape(g, (count, g.shape[-1])))
    return F.matmul(F.conj(F.transpose(input, -1, -2)), g)


op(
    "matmul(Tensor input, Tensor other)",
    alias="linalg.matmul",
    tags=KEEPS_DTYPE,
    shape_fn=_matmul_shape,
    vjp={"input": _matmul_input_vjp, "other": _matmul_other_vjp},
    doc="""Computes the matrix product of the last two dimensions.

    Batch dimensions broadcast. A 1-d first operand is a row and a 1-d second operand a column; that dimension is
    not in the result.

    Args:
        other: The second operand, of the dtype of `input`.

    Raises:
        RuntimeError: The shapes do not fit, or the dtypes differ.

    Example:
        >>> torch.matmul(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
        tensor([3., 7.])

    See also:
        `torch.mm`, `torch.bmm`, `torch.einsum`.
    """,
    layout=memory_layout.contiguous,
    out=Out("same"),
    overlap=Overlap(operands="partial"),
    node_name=matmul_graph,
)

# --- matrices and vectors of fixed rank -----------------------------------------------------------


def _left_operand_vjp(F, g, mat2):
    return F.matmul(g, adjoint(F, mat2))


def _right_operand_vjp(F, g, input):
    return F.matmul(adjoint(F, input), g)


op(
    "mm(Tensor input, Tensor mat2)",
    shape_fn=_mm_rule,
    vjp={"input": _left_operand_vjp, "mat2": _right_operand_vjp},
    doc="""Computes the product of two matrices.

    Args:
        input: The first matrix, of shape ``(n, m)``.
        mat2: The second matrix, of shape ``(m, p)``.

    Returns:
        A matrix of shape ``(n, p)``.

    Raises:
        RuntimeError: An operand does not have two dimensions, or the shapes do not fit.

    Example:
        >>> torch.mm(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]]))
        tensor([[11.]])

    See also:
        `torch.matmul`, which broadcasts.
    """,
    out=Out("same"),
    overlap=Overlap(operands="partial"),
)
op(
    "bmm(Tensor input, Tensor mat2)",
    shape_fn=_bmm_rule,
    vjp={"input": _left_operand_vjp, "mat2": _right_operand_vjp},
    doc="""Computes the products of two batches of matrices.

    Args:
        input: The first matrices, of shape ``(b, n, m)``.
        mat2: The second matrices, of shape ``(b, m, p)``.

    Returns:
        A tensor of shape ``(b, n, p)``.

    Raises:
        RuntimeError: An operand does not have three dimensions, or the shapes do not fit.

    Example:
        >>> torch.bmm(torch.ones(2, 1, 3), torch.ones(2, 3, 1)).flatten()
        tensor([3., 3.])

    See also:
        `torch.matmul`, which broadcasts.
    """,
    layout=memory_layout.contiguous,
    out=Out("same"),
    overlap=Overlap("allowed", "partial"),
)
op(
    "mv(Tensor input, Tensor vec)",
    shape_fn=_mv_rule,
    vjp={
        "input": lambda F, g, vec: F.mul(as_column(F, g), as_row(F, F.conj(vec))),
        "vec": lambda F, g, input: F.matmul(adjoint(F, input), g),
    },
    doc="""Computes the product of a matrix and a vector.

    Args:
        input: The matrix, of shape ``(n, m)``.
        vec: The vector, of shape ``(m,)``.

    Returns:
        A tensor of shape ``(n,)``.

    Example:
        >>> torch.mv(torch.tensor([[1.0, 2.0]]), torch.tensor([3.0, 4.0]))
        tensor([11.])
    """,
    out=Out("same", "addmv input tensors must have the same dtype, but got {got}, {want}, and {want}"),
    overlap=Overlap("allowed", "partial"),
)
op(
    "dot(Tensor input, Tensor tensor)",
    shape_fn=lambda input, tensor: _dot_rule("dot", input, tensor),
    vjp={"input": lambda F, g, tensor: F.mul(g, F.conj(tensor)), "tensor": lambda F, g, input: F.mul(g, F.conj(input))},
    doc="""Computes the sum of the products of two vectors' elements.

    Args:
        input: The first vector, of shape ``(n,)``.
        tensor: The second vector, of shape ``(n,)``.

    Returns:
        A 0-d tensor.

    Raises:
        RuntimeError: The shapes do not fit, or the dtypes differ.

    Example:
        >>> torch.dot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
        tensor(11.)

    See also:
        `torch.vdot`, `torch.linalg.vecdot`.
    """,
    out=Out("same", "result dtype {got} does not match input dtype {want}"),
    overlap=Overlap(operands="partial"),
)
op(
    "vdot(Tensor input, Tensor other)",
    shape_fn=lambda input, other: _dot_rule("vdot", input, other),
    vjp={"input": lambda F, g, other: F.mul(F.conj(g), other), "other": lambda F, g, input: F.mul(g, input)},
    doc="""Computes the sum of the products of the first vector's conjugate and the second vector.

    Args:
        input: The first vector, of shape ``(n,)``.
        other: The second vector, of shape ``(n,)``.

    Returns:
        A 0-d tensor.

    Example:
        >>> torch.vdot(torch.tensor([1j]), torch.tensor([1j]))
        tensor(1.+0.j)

    See also:
        `torch.dot`.
    """,
    out=Out("same", "result dtype {got} does not match input dtype {want}"),
    overlap=Overlap(operands="partial"),
)


def _scale_unless_one(F, x, factor):
    return x if factor == 1 else F.mul(x, factor)


def _conj_number(x):
    return x.conjugate() if isinstance(x, complex) else x


def _add_input(F, g, beta):
    return F._zeros_like(g) if beta == 0 else _scale_unless_one(F, g, _conj_number(beta))


def _scaled_product(F, alpha, a, b):
    return _scale_unless_one(F, F.matmul(a, b), _conj_number(alpha))


def _check_input(input, shape):
    """`input` can be expanded to the product's shape."""
    have, shape = tuple(input.shape), tuple(shape)
    if len(have) > len(shape):
        raise RuntimeError(
            f"expand({list(have)}, size={list(shape)}): the number of sizes provided ({len(shape)}) must be greater "
            f"or equal to the number of dimensions in the tensor ({len(have)})"
        )
    for back in range(1, len(have) + 1):
        if have[-back] not in (1, shape[-back]):
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[-back]}) must match the existing size ({have[-back]}) at "
                f"non-singleton dimension {len(shape) - back}.  Target sizes: {list(shape)}.  Tensor sizes: "
                f"{list(have)}"
            )
    return shape, input.dtype


def _addmm_rule(input, mat1, mat2):
    if input.dtype is not mat2.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {input.dtype.scalar_name} and {mat2.dtype.scalar_name}"
        )
    if mat1.dtype is not mat2.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {mat1.dtype.scalar_name} and {mat2.dtype.scalar_name}"
        )
    for what, mat in (("mat1", mat1), ("mat2", mat2)):
        if len(mat.shape) != 2:
            raise RuntimeError(f"{what} must be a matrix, got {len(mat.shape)}-D tensor")
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({mat1.shape[0]}x{mat1.shape[1]} and "
            f"{mat2.shape[0]}x{mat2.shape[1]})"
        )
    return _check_input(input, (mat1.shape[0], mat2.shape[1]))


def _checked_size(x, dim):
    return x.shape[wrap_dim(dim, len(x.shape))] if x.shape else _raise_no_dimension(dim)


def _raise_no_dimension(dim):
    raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")


def _baddbmm_rule(input, batch1, batch2):
    if not input.dtype is batch1.dtype is batch2.dtype:
        one, two, three = (x.dtype.c_name for x in (input, batch1, batch2))
        raise RuntimeError(f"Input dtypes must be the same, got: input {one}, batch1: {two}, batch2: {three}")
    shape = _check_input(input, (_checked_size(batch1, 0), _checked_size(batch1, 1), _checked_size(batch2, 2)))
    _bmm_rule(batch1, batch2)
    return shape


def _addbmm_rule(input, batch1, batch2):
    if input.dtype is not batch2.dtype:
        one, two = input.dtype.scalar_name, batch2.dtype.scalar_name
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {one} and {two}")
    shape = _check_input(input, (_checked_size(batch1, 1), _checked_size(batch2, 2)))
    if len(batch1.shape) == len(batch2.shape) == 3 and batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(
            f"batch1 and batch2 must have same number of batches, got {batch1.shape[0]} and {batch2.shape[0]}"
        )
    _bmm_rule(batch1, batch2)
    return shape


op(
    "addmm(Tensor input, Tensor mat1, Tensor mat2, *, beta=1, alpha=1)",
    tags=INPLACE,
    shape_fn=_addmm_rule,
    vjp={
        "input": _add_input,
        "mat1": lambda F, g, mat2, alpha: _scaled_product(F, alpha, g, adjoint(F, mat2)),
        "mat2": lambda F, g, mat1, alpha: _scaled_product(F, alpha, adjoint(F, mat1), g),
    },
    doc="""Computes ``beta * input + alpha * (mat1 @ mat2)``.

    Args:
        input: The tensor that is added; it broadcasts.
        mat1: The first matrix, of shape ``(n, m)``.
        mat2: The second matrix, of shape ``(m, p)``.
        beta: The factor of `input`. With 0, `input` is not read. Default: 1.
        alpha: The factor of the product. Default: 1.

    Example:
        >>> torch.addmm(torch.tensor([1.0]), torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]]))
        tensor([[12.]])

    See also:
        `torch.nn.functional.linear`.
    """,
    out=Out("same"),
)
op(
    "addmv(Tensor input, Tensor mat, Tensor vec, *, beta=1, alpha=1)",
    tags=INPLACE,
    shape_fn=_addmv_rule,
    vjp={
        "input": _add_input,
        "mat": lambda F, g, vec, alpha: _scale_unless_one(
            F, F.mul(as_column(F, g), as_row(F, F.conj(vec))), _conj_number(alpha)
        ),
        "vec": lambda F, g, mat, alpha: _scaled_product(F, alpha, adjoint(F, mat), g),
    },
    doc="""Computes ``beta * input + alpha * (mat @ vec)``.

    Args:
        input: The tensor that is added; it broadcasts.
        mat: The matrix, of shape ``(n, m)``.
        vec: The vector, of shape ``(m,)``.
        beta: The factor of `input`. With 0, `input` is not read. Default: 1.
        alpha: The factor of the product. Default: 1.

    Example:
        >>> torch.addmv(torch.tensor([1.0]), torch.tensor([[1.0, 2.0]]), torch.tensor([3.0, 4.0]))
        tensor([12.])
    """,
    out=Out("same"),
    overlap=Overlap("allowed"),
)
op(
    "baddbmm(Tensor input, Tensor batch1, Tensor batch2, *, beta=1, alpha=1)",
    tags=INPLACE,
    shape_fn=_baddbmm_rule,
    vjp={
        "input": _add_input,
        "batch1": lambda F, g, batch2, alpha: _scaled_product(F, alpha, g, adjoint(F, batch2)),
        "batch2": lambda F, g, batch1, alpha: _scaled_product(F, alpha, adjoint(F, batch1), g),
    },
    doc="""Computes ``beta * input + alpha * (batch1 @ batch2)``.

    Args:
        input: The tensor that is added; it broadcasts.
        batch1: The first matrices, of shape ``(b, n, m)``.
        batch2: The second matrices, of shape ``(b, m, p)``.
        beta: The factor of `input`. With 0, `input` is not read. Default: 1.
        alpha: The factor of the product. Default: 1.

    Example:
        >>> torch.baddbmm(torch.ones(1, 1, 1), torch.ones(1, 1, 2), torch.ones(1, 2, 1))
        tensor([[[3.]]])
    """,
    out=Out("same"),
    overlap=Overlap("allowed"),
)
op(
    "addbmm(Tensor input, Tensor batch1, Tensor batch2, *, beta=1, alpha=1)",
    tags=INPLACE,
    shape_fn=_addbmm_rule,
    vjp={
        "input": _add_input,
        "batch1": lambda F, g, batch2, alpha: _scaled_product(F, alpha, F.unsqueeze(g, 0), adjoint(F, batch2)),
        "batch2": lambda F, g, batch1, alpha: _scaled_product(F, alpha, adjoint(F, batch1), F.unsqueeze(g, 0)),
    },
    doc="""Computes ``beta * input + alpha * (batch1 @ batch2).sum(0)``.

    Args:
        input: The tensor that is added; it broadcasts.
        batch1: The first matrices, of shape ``(b, n, m)``.
        batch2: The second matrices, of shape ``(b, m, p)``.
        beta: The factor of `input`. With 0, `input` is not read. Default: 1.
        alpha: The factor of the product. Default: 1.

    Example:
        >>> torch.addbmm(torch.ones(1, 1), torch.ones(3, 1, 2), torch.ones(3, 2, 1))
        tensor([[7.]])
    """,
    out=Out("same", "self and mat2 must have the same dtype, but got {got} and {want}"),
)


@composite("outer(Tensor input, Tensor vec2)", alias="ger", node_name="MulBackward0(ViewBackward0(input), vec2)")
def outer(F, input, vec2):
    """Computes the products of each element of a vector with each of another.

    Args:
        input: The first vector, of shape ``(n,)``.
        vec2: The second vector, of shape ``(m,)``.

    Returns:
        A tensor of shape ``(n, m)``.

    Example:
        >>> torch.outer(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
        tensor([[3., 4.],
                [6., 8.]])
    """
    for name, x in (("self", input), ("vec2", vec2)):
        if x.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {x.ndim}-D")
    return input.unsqueeze(1) * vec2


def _check_factor(name, factor, to):
    """Raise unless a scale factor is a number that fits the result's dtype."""
    if isinstance(factor, bool) and to.category:
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if isinstance(factor, (float, complex)) and to.category < 2:
        raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    if isinstance(factor, complex) and to.category < 3:
        raise RuntimeError(f"value cannot be converted to type {to.c_name} without overflow")
    if to.category == INT:
        cast_scalar(factor, to)


@composite(
    "addr(Tensor input, Tensor vec1, Tensor vec2, *, beta=1, alpha=1)",
    tags=INPLACE,
    layout=memory_layout.pointwise,
    node_name="AddrBackward0(input, vec1, vec2)",
)
def addr(F, input, vec1, vec2, beta, alpha):
    """Computes ``beta * input + alpha * outer(vec1, vec2)``.

    Args:
        input: The tensor that is added; it broadcasts.
        vec1: The first vector, of shape ``(n,)``.
        vec2: The second vector, of shape ``(m,)``.
        beta: The factor of `input`. With 0, `input` is not read. Default: 1.
        alpha: The factor of the product. Default: 1.

    Example:
        >>> torch.addr(torch.ones(1, 2), torch.tensor([2.0]), torch.tensor([3.0, 4.0]))
        tensor([[7., 9.]])
    """
    for name, x in (("vec1", vec1), ("vec2", vec2)):
        if x.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {x.ndim}-D")
    product = vec1.unsqueeze(1) * vec2
    _check_input(input, product.shape)
    category = max(input.dtype.category, product.dtype.category)
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if isinstance(factor, bool) and category:
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if isinstance(factor, float) and category < 2:
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
        if isinstance(factor, complex) and category < 3:
            raise RuntimeError(f"For non-complex input tensors, argument {name} must not be a complex number.")
    _check_factor("beta", beta, promote_types(input.dtype, product.dtype))
    _check_factor("alpha", alpha, promote_types(input.dtype, product.dtype))
    if input.dtype.name == "bool" and product.dtype.name == "bool":
        product = product if alpha else F._zeros_like(product)
        return product | input if beta else product
    if not beta:
        return product * alpha + F._zeros_like(input)
    return (input if beta == 1 else input * beta) + (product if alpha == 1 else product * alpha)


@composite(
    "inner(Tensor input, Tensor other)",
    out=Out(
        "same", "tensordot: Expected the output tensor to have dtype {want}, but got an output tensor with dtype {got}"
    ),
    overlap=Overlap(operands="partial"),
    node_name=inner_graph,
)
def inner(F, input, other):
    """Computes the sums of products along the last dimension of each operand.

    A 0-d operand multiplies the other one.

    Args:
        other: The second operand; its last dimension has the size of the input's.

    Returns:
        A tensor of shape ``input.shape[:-1] + other.shape[:-1]``.

    Example:
        >>> torch.inner(torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        tensor([1., 2.])
    """
    if not input.ndim or not other.ndim:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and "
            f"{list(other.shape)}"
        )
    if input.dtype is not other.dtype:
        raise RuntimeError("both inputs should have same dtype")
    return F.tensordot(input, other, ([-1], [-1]))


# --- what PyTorch has under private names --------------------------------------------------------------------------


def _check_int_mm(input, mat2):
    for name, tensor in (("self", input), ("mat2", mat2)):
        if tensor.ndim != 2:
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} to be of dimension 2 but got {tensor.ndim}")
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got {input.shape[1]} and {mat2.shape[0]}"
        )
    if input.dtype is not int8 and input.dtype is not uint8:
        raise RuntimeError(f"int_mm_out_cpu: Expected self dtype to be int8 or uint8 but got {input.dtype.c_name}")
    if mat2.dtype is not int8:
        raise RuntimeError(f"int_mm_out_cpu: Expected mat2 dtype to be of type int8 but got {mat2.dtype.c_name}")


@composite(
    "_int_mm(Tensor input, Tensor mat2)",
    where="torch",
    out=Out("same", "int_mm_out_cpu: Expected result dtype to be of type kInt but got {c_got}"),
)
def _int_mm(F, input, mat2):
    """The product of two matrices of int8, in int32: (n, m), (m, p) -> (n, p). The first may be uint8.

    >>> torch._int_mm(torch.full((1, 2), 100, dtype=torch.int8), torch.full((2, 1), 100, dtype=torch.int8))
    tensor([[20000]], dtype=torch.int32)
    """
    _check_int_mm(input, mat2)
    return F._quantized_matmul(input, mat2)


@composite(
    "_addmm_activation(Tensor input, Tensor mat1, Tensor mat2, *, beta=1, alpha=1, use_gelu=False)",
    where="torch",
    out=Out("same"),
)
def _addmm_activation(F, input, mat1, mat2, beta, alpha, use_gelu):
    """`torch.addmm` with a rectifier after it, or with `use_gelu` a GELU.

    >>> torch._addmm_activation(torch.tensor([1., -5.]), torch.ones(1, 2), torch.ones(2, 2))
    tensor([[3., 0.]])
    """
    out = F.addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return F.gelu(out) if use_gelu else F.relu(out)


@composite("_compute_linear_combination(Tensor input, Tensor coefficients, *, out=None)", where="torch")
def _compute_linear_combination(F, input, coefficients, out):
    """Sums of the parts of `input` along its first dimension, one for each row of `coefficients`, which are their
    factors. `out` is added to.

    >>> torch._compute_linear_combination(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([[1., -1.]]))
    tensor([[-2., -2.]])
    """
    sums = F.tensordot(F.to(coefficients, input.dtype), input, 1)
    return sums if out is None else out.add_(sums)
