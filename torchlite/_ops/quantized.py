"""Products of 8-bit integers, whose sums are exact, and the conversion of their results: the integer steps of quantized
networks.

A zero point is the level that stands for zero. It has the dtype of its levels, and one element, or one for each row of
the left matrix, each column of the right one, each filter of a convolution. A scale is float32.
"""

from .._dispatch import NONDIFF, op
from .._dispatch.shapes import broadcast_shapes
from .._types.dtypes import float32, float64, int8, int32, uint8

_LIMITS = {uint8: (0, 255), int8: (-128, 127)}


def levels_range(dtype):
    """The least and greatest level of a dtype."""
    return _LIMITS[dtype]


def _check_levels(*tensors):
    for tensor in tensors:
        if tensor.dtype not in _LIMITS:
            raise RuntimeError(f"a product of levels takes int8 and uint8, but got {tensor.dtype.name}")


def _check_size(what, tensor, *sizes):
    if tensor is not None and (len(tensor.shape) > 1 or tensor.shape not in ((), (1,), *((n,) for n in sizes))):
        raise RuntimeError(f"{what} of the shape {list(tensor.shape)} where there are {sizes[0]}")


def _result_dtype(scale, out_zero):
    return int32 if scale is None else float32 if out_zero is None else out_zero.dtype


def _column(F, tensor, ndim):
    """Numbers of rows, or channels, such that they broadcast along the `ndim` dimensions after."""
    return F.reshape(tensor, (-1, *(1,) * ndim)) if tensor.ndim else tensor


def _less(F, levels, zero):
    wide = F.to(levels, int32)
    return wide if zero is None else F.sub(wide, F.to(zero, int32))


def _finish(F, total, bias, scale, out_zero):
    """The integer sums `total`, plus a bias, times a scale, rounded to levels around `out_zero`."""
    if bias is not None:
        total = F.add(total, bias)
    if scale is None:
        return total
    out = F.mul(F.to(total, float32), scale)
    if out_zero is None:
        return out
    dtype = F.dtype_of(out_zero)
    out = F.add(F.round(out), F.to(out_zero, float32))
    return F.to(F._clamp_scalars(out, *_LIMITS[dtype]), dtype)


# --- matrix products ------------------------------------------------------------------------------------------------


def _quantized_matmul(F, input, other, input_zero, other_zero, bias, scale, out_zero):
    left = _less(F, input, None if input_zero is None else _column(F, input_zero, 1))
    return _finish(F, F.matmul(left, _less(F, other, other_zero)), bias, scale, out_zero)


def _quantized_matmul_shape(input, other, input_zero, other_zero, bias, scale, out_zero):
    _check_levels(input, other)
    a, b = tuple(input.shape), tuple(other.shape)
    if len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
        raise RuntimeError(f"matrices of the shapes {list(a)} and {list(b)} cannot be multiplied")
    _check_size("zero points", input_zero, a[-2])
    for what, tensor in (("zero points", other_zero), ("biases", bias), ("scales", scale)):
        _check_size(what, tensor, b[-1])
    return (*broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1]), _result_dtype(scale, out_zero)


op(
    "_quantized_matmul(Tensor input, Tensor other, Tensor? input_zero=None, Tensor? other_zero=None, "
    "Tensor? bias=None, Tensor? scale=None, Tensor? out_zero=None)",
    where="",
    tags=NONDIFF,
    composite=_quantized_matmul,
    shape_fn=_quantized_matmul_shape,
    doc="""The product of matrices of levels less their zero points, in int32, which wraps around. `bias`, a number or
    one for each column, is added to it. With a scale, of all or of each column, the result is float32, and with a
    zero point of the result it is levels.
    """,
)

# --- matrix products with a constant matrix -------------------------------------------------------------------------


def _constant_matmul(F, input, matrix, input_zero, bias, scale, out_zero):
    return F._quantized_matmul(input, matrix.levels(), input_zero, matrix.zero, bias, scale, out_zero)


op(
    "_constant_matmul(Tensor input, matrix, Tensor? input_zero=None, Tensor? bias=None, Tensor? scale=None, "
    "Tensor? out_zero=None)",
    where="",
    tags=NONDIFF,
    composite=_constant_matmul,
    shape_fn=lambda input, matrix, input_zero, bias, scale, out_zero: (
        (*input.shape[:-1], matrix.shape[1]),
        _result_dtype(scale, out_zero),
    ),
    doc="The result of `_quantized_matmul`. `matrix` is a `LevelsMatrix`, of which kernels keep their own form.",
)


def _dynamic_linear(F, input, matrix, scale, bias, most, rectify):
    low, high = (F.to(x, float64) for x in (F.clamp_max(F.amin(input), 0), F.clamp_min(F.amax(input), 0)))
    step = F.div(F.sub(high, low), float(most))
    step = F.where(F.eq(step, 0), F._full_like(step, 0.1), step)
    below, above = F.neg(F.div(low, step)), F.div(high, step)
    zero = F.where(F.lt(below, F.add(above, float(most))), below, F.sub(F._full_like(above, float(most)), above))
    zero = F._clamp_scalars(F.round(zero), 0, most)
    single = F.to(step, float32)
    levels = F.round(F.add(F.mul(input, F.div(F._ones_like(single), single)), F.to(zero, float32)))
    levels = F.to(F._clamp_scalars(levels, 0, 255), uint8)
    out = F._constant_matmul(levels, matrix, F.to(zero, uint8), None, F.mul(scale, single), None)
    out = out if bias is None else F.add(out, bias)
    return F.relu(out) if rectify else out


op(
    "_dynamic_linear(Tensor input, matrix, Tensor scale, Tensor? bias, most, rectify=False)",
    where="",
    tags=NONDIFF,
    composite=_dynamic_linear,
    shape_fn=lambda input, matrix, scale, bias, most, rectify: ((*input.shape[:-1], matrix.shape[1]), float32),
    doc="""The product of float32 numbers, as levels from 0 to `most` by their range, with a constant matrix of levels.
    `scale` has the steps of its columns, or the one of all, and `bias` is added to the float32 result. With `rectify`,
    negative results become 0.
    """,
)

# --- convolutions ---------------------------------------------------------------------------------------------------


def _quantized_convolution(
    F, input, weight, input_zero, weight_zero, bias, scale, out_zero, stride, padding, dilation, groups
):
    rank = input.ndim - 2
    image, kernel = F.to(input, float64), F.to(weight, float64)
    if input_zero is not None:
        image = F.sub(image, F.to(input_zero, float64))
    if weight_zero is not None:
        kernel = F.sub(kernel, F.to(_column(F, weight_zero, rank + 1), float64))
    begin, end = padding[:rank], padding[rank:]
    if begin != end:
        sides = [n for pair in zip(begin[::-1], end[::-1], strict=True) for n in pair]
        image, begin = F.constant_pad_nd(image, sides, 0), (0,) * rank
    # Of float64 no sum is off by as much as a half, whatever algorithm there is.
    total = F.convolution(image, kernel, None, stride, begin, dilation, False, (0,) * rank, groups)
    bias, scale = (value if value is None else _column(F, value, rank) for value in (bias, scale))
    return _finish(F, F.to(F.round(total), int32), bias, scale, out_zero)


def _quantized_convolution_shape(
    input, weight, input_zero, weight_zero, bias, scale, out_zero, stride, padding, dilation, groups
):
    _check_levels(input, weight)
    rank, size, kernel = len(weight.shape) - 2, input.shape[2:], weight.shape[2:]
    if rank < 1 or len(input.shape) != rank + 2 or weight.shape[0] % groups or 0 in kernel:
        raise RuntimeError(f"a kernel of the shape {list(weight.shape)} does not fit {list(input.shape)}")
    if input.shape[1] != groups * weight.shape[1]:
        raise RuntimeError(f"a kernel of {weight.shape[1]} channels in {groups} groups for {input.shape[1]} channels")
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    spans = zip(size, padding[:rank], padding[rank:], reach, stride, strict=True)
    out = tuple((n + a + b - r) // s + 1 for n, a, b, r, s in spans)
    if min(out) < 1:
        raise RuntimeError(f"a kernel that covers {reach} does not fit {list(size)}")
    _check_size("zero points", input_zero, 1)
    for what, tensor in (("zero points", weight_zero), ("biases", bias), ("scales", scale)):
        _check_size(what, tensor, weight.shape[0])
    return (input.shape[0], weight.shape[0], *out), _result_dtype(scale, out_zero)


op(
    "_quantized_convolution(Tensor input, Tensor weight, Tensor? input_zero, Tensor? weight_zero, Tensor? bias, "
    "Tensor? scale, Tensor? out_zero, stride, padding, dilation, groups)",
    where="",
    tags=NONDIFF,
    composite=_quantized_convolution,
    shape_fn=_quantized_convolution_shape,
    doc="""The convolution of levels less their zero points, in int32, with biases, scales and a zero point of the
    result as `_quantized_matmul` has them, for each filter. `padding` has the borders at the beginning of each
    dimension, then those at the end; the zero point stands there.
    """,
)

# --- levels by the range of a tensor --------------------------------------------------------------------------------


def _dynamic_quantize(F, input):
    high, low = F.clamp_min(F.amax(input), 0), F.clamp_max(F.amin(input), 0)
    span = F.div(F.sub(high, low), 255.0)
    scale = F.where(F.eq(high, low), F._ones_like(span), span)
    zero = F.round(F._clamp_scalars(F.div(F.neg(low), scale), 0, 255))
    out = F._clamp_scalars(F.add(F.round(F.div(input, scale)), zero), 0, 255)
    return F.to(out, uint8), scale, F.to(zero, uint8)


op(
    "_dynamic_quantize(Tensor input)",
    where="",
    tags=NONDIFF,
    outputs=("levels", "scale", "zero"),
    composite=_dynamic_quantize,
    shape_fn=lambda input: [(input.shape, uint8), ((), input.dtype), ((), uint8)],
    doc="""A float32 tensor as 256 levels between its least and greatest element, or 0 if that lies outside. The scale
    is 1 where all elements are 0.
    """,
)
