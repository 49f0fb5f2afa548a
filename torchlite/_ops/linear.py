"""Linear layers: linear and bilinear."""

import math

from torchlite._dispatch import Overlap, composite, op

from .node_graphs import linear_graph, weighted_sum_graph


def _linear(F, input, weight, bias=None):
    if weight.ndim == 1:
        out = F.matmul(input, weight)
    else:
        out = F.matmul(input, F.transpose(weight, 0, 1))
    return out if bias is None else F.add(out, bias)


def _outer_gradient(F, grad, input):
    """``grad^T conj(input)``, summed over every leading dimension: (..., out), (..., in) -> (out, in)."""
    if grad.ndim != 2:  # -1 is ambiguous for an array without elements
        rows = math.prod(grad.shape[:-1])
        grad, input = F.reshape(grad, (rows, grad.shape[-1])), F.reshape(input, (rows, input.shape[-1]))
    return F.matmul(F.transpose(grad, 0, 1), F.conj(input))


def _linear_input_vjp(F, g, weight, bias_dtype):
    if weight.ndim == 1:
        return F.mul(F.unsqueeze(g, -1), F.conj(weight))
    return F._linear_input_grad(g, weight)


def _linear_weight_vjp(F, g, input, weight_shape, bias_dtype):
    if len(weight_shape) == 1:
        return F.mul(F.unsqueeze(g, -1), F.conj(input))
    return F._linear_weight_grad(g, input)


def _check_added(bias, shape):
    """Raise unless a bias can be added to a product of this shape, whose leading dimensions PyTorch flattens."""
    rows = math.prod(shape[:-1])
    target = [rows, shape[-1]] if len(shape) < 3 or bias.ndim < 2 else list(shape)
    if len(target) == 2 and bias.ndim > 2:
        raise RuntimeError(
            f"expand(torch.{bias.dtype.scalar_name}Tensor{{{list(bias.shape)}}}, size={target}): the number of sizes "
            f"provided (2) must be greater or equal to the number of dimensions in the tensor ({bias.ndim})"
        )
    for back, (have, want) in enumerate(zip(reversed(bias.shape), reversed(target), strict=False), 1):
        dim = len(target) - back
        if have not in (1, want):
            if len(target) > 2:
                raise RuntimeError(
                    f"The size of tensor a ({want}) must match the size of tensor b ({have}) at non-singleton "
                    f"dimension {dim}"
                )
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) at non-singleton "
                f"dimension {dim}.  Target sizes: {target}.  Tensor sizes: {list(bias.shape)}"
            )


def _linear_shape_fn(input, weight, bias):
    if not input.ndim or not weight.ndim:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and {weight.ndim}D"
        )
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    if weight.ndim == 1 and bias is not None:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    rows = 1
    for size in input.shape[:-1]:
        rows *= size
    features = input.shape[-1] if input.ndim else 1
    if features != weight.shape[-1]:
        if weight.ndim == 1:
            raise RuntimeError(
                f"inconsistent tensor size, expected tensor [{features}] and src [{weight.shape[0]}] to have the "
                f"same number of elements, but got {features} and {weight.shape[0]} elements respectively"
            )
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{features} and {weight.shape[1]}x{weight.shape[0]})"
        )
    if bias is not None:  # by addmm then
        for name, other in (("self", bias), ("mat1", input)):
            if other.dtype is not weight.dtype:
                raise RuntimeError(
                    f"{name} and mat2 must have the same dtype, but got {other.dtype.scalar_name} and "
                    f"{weight.dtype.scalar_name}"
                )
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {_c_name(input.dtype)} != {_c_name(weight.dtype)}"
        )
    shape = tuple(input.shape[:-1]) + tuple(weight.shape[:-1])
    if bias is not None:
        _check_added(bias, shape)
    return shape, input.dtype


def _c_name(dtype):
    names = {
        "float32": "float",
        "float64": "double",
        "float16": "c10::Half",
        "bfloat16": "c10::BFloat16",
        "int64": "long int",
    }
    return names.get(dtype.name, dtype.name)


def _linear_bias_vjp(F, g, bias_shape, bias_dtype):
    # Another shape than (out,) is summed down to by the engine.
    return F._linear_bias_grad(g) if g.ndim > 1 and tuple(bias_shape) == (g.shape[-1],) else g


def _row_sum(F, grad):
    return F.sum(grad, tuple(range(grad.ndim - 1)), False)


op(
    "_linear_input_grad(Tensor grad, Tensor weight)",
    where="",
    composite=lambda F, grad, weight: F.matmul(grad, F.conj(weight)),
)
op("_linear_bias_grad(Tensor grad)", where="", composite=_row_sum)
op("_linear_weight_grad(Tensor grad, Tensor input)", where="", composite=_outer_gradient)


op(
    "linear(Tensor input, Tensor weight, Tensor? bias=None)",
    where="nn.functional",
    composite=_linear,
    shape_fn=_linear_shape_fn,
    vjp={"input": _linear_input_vjp, "weight": _linear_weight_vjp, "bias": _linear_bias_vjp},
    doc="""Applies an affine map to the last dimension: ``y = input @ weight.T + bias``.

    Args:
        input: The input, of shape ``(*, in_features)``.
        weight: The matrix, of shape ``(out_features, in_features)`` or ``(in_features,)``.
        bias: The offset, of shape ``(out_features,)``. Default: none.

    Returns:
        A tensor of shape ``(*, out_features)``, or ``(*)`` for a 1-d weight.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.

    Example:
        >>> F.linear(torch.ones(1, 2), torch.tensor([[1.0, 2.0]]), torch.tensor([0.5]))
        tensor([[3.5000]])

    See also:
        `torch.nn.Linear`.
    """,
    overlap=Overlap(operands="partial"),
    node_name=linear_graph,
)


@composite(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None)",
    where="torch nn.functional",
    node_name=weighted_sum_graph,
)
def bilinear(F, input1, input2, weight, bias):
    """Applies a bilinear map to the last dimensions of two inputs: ``y[k] = input1^T weight[k] input2 + bias[k]``.

    Args:
        input1: The first input, of shape ``(*, in1_features)``.
        input2: The second input, of shape ``(*, in2_features)``, with the same leading dimensions.
        weight: The matrices, of shape ``(out_features, in1_features, in2_features)``.
        bias: The offset, of shape ``(out_features,)``. Default: none.

    Returns:
        A tensor of shape ``(*, out_features)``.

    Raises:
        RuntimeError: Shapes do not fit.

    Example:
        >>> F.bilinear(torch.tensor([1.0, 2.0]), torch.tensor([3.0]), torch.tensor([[[1.0], [1.0]]]))
        tensor([9.])

    See also:
        `torch.nn.Bilinear`.
    """
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for dim, (first, second) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if first != second:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {dim}: got {first} and {second}"
            )
    out, size1, size2 = weight.shape
    for number, tensor, size in ((1, input1, size1), (2, input2, size2)):
        if tensor.shape[-1] != size:
            raise RuntimeError(
                f"bilinear(): input{number} size does not match weight size: got {tensor.shape[-1]} but expected {size}"
            )
    if bias is not None and bias.shape[0] != out:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {out}")
    lead = tuple(input1.shape[:-1])
    half = F.matmul(input1, weight.permute(1, 0, 2).reshape(size1, out * size2)).reshape(*lead, out, size2)
    result = F.matmul(half, input2.unsqueeze(-1)).squeeze(-1)
    return result if bias is None else result + bias
