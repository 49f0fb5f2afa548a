"""Fake quantization: numbers rounded to the levels that integers would have, still as floating-point numbers.

A scale is the distance of two levels, a zero point the level that stands for zero. The gradient is that of the
identity where a number is in the levels' range, and zero elsewhere (the straight-through rule).
"""

import math

import numpy as np

from .._dispatch import NONDIFF, composite, op
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.shape_and_value_checks import any_true
from .._types.dtypes import FLOAT, bool_, float16, float32, float64, int32

_FAR = 2.0**63  # PyTorch keeps levels as int64: what lies beyond, and NaN, becomes the least one
_BAD_RANGE = "`quant_min` should be less than or         equal to `quant_max`"
_BAD_ZERO = "`zero_point` must be between `quant_min` and `quant_max`."
_SMALL_SCALE = float(np.float32(6.1e-5))  # lesser ones would be subnormal in half precision
_LEAST_WITH_INVERSE = 2.0**-128 * (1 + 2.0**-24)  # the inverse of a lesser one is infinite in float32


def _check_range(quant_min, quant_max, with_zero=False):
    if not isinstance(quant_min, int) or not isinstance(quant_max, int):
        raise TypeError("quant_min and quant_max must be int")
    if quant_min > quant_max or with_zero and not quant_min <= 0 <= quant_max:
        rest = ", and the quantization range should include 0." if with_zero else "."
        raise RuntimeError(_BAD_RANGE + rest)


def _wide(F, input, kernel):
    """The input in the dtype in which levels are computed."""
    dtype = F.dtype_of(input)
    if dtype.category != FLOAT or dtype.itemsize == 1:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtype.scalar_name}'")
    return F.to(input, float32) if dtype.itemsize < 4 else input


def _float(F, tensor, dtype=float32):
    """A tensor of one element as a 0-d array."""
    if math.prod(tensor.shape) != 1:
        raise RuntimeError(f"a Tensor with {math.prod(tensor.shape)} elements cannot be converted to Scalar")
    return F.to(F.to(F.reshape(tensor, ()), dtype), float32)


def _first(F, tensor):
    """The first number of a tensor of one dimension, as a 0-d float32 array."""
    if not tensor.shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    return F.to(F.reshape(F.narrow(tensor, 0, 0, 1), ()), float32)


def _limit(F, value):
    return F._full((), float(value), float32)


# --- one scale for all elements -------------------------------------------------------------------------------------


def _round_by_one(F, input, scale, zero_point, quant_min, quant_max):
    """The result and the mask; the scale and the zero point are 0-d float32 arrays. NaN becomes the least level."""
    wide = _wide(F, input, "fake_quantize_tensor_cachemask_kernel_type_handling")
    inverse = F.reciprocal(scale)
    levels = F.add(F.round(F.mul(wide, F.to(inverse, F.dtype_of(wide)))), F.to(zero_point, F.dtype_of(wide)))
    levels = F.to(levels, float32)
    inside = F.fmin(F.fmax(levels, _limit(F, quant_min)), _limit(F, quant_max))
    return F.to(F.mul(F.sub(inside, zero_point), scale), F.dtype_of(input)), F.eq(levels, inside)


def _by_numbers(F, input, scale, zero_point, quant_min, quant_max):
    _check_range(quant_min, quant_max)
    if not quant_min <= zero_point <= quant_max:
        raise RuntimeError(_BAD_ZERO)
    return _round_by_one(F, input, _limit(F, scale), _limit(F, zero_point), quant_min, quant_max)


def _by_tensors(F, input, scale, zero_point, fake_quant_enabled, quant_min, quant_max):
    _check_range(quant_min, quant_max)
    zero_point = _float(F, zero_point, int32)
    result, mask = _round_by_one(F, input, _float(F, scale), zero_point, quant_min, quant_max)
    if fake_quant_enabled is None:
        return result, mask
    off = F.eq(_float(F, fake_quant_enabled), _limit(F, 0))
    return F._choose(input, result, off), F.logical_or(mask, off)


def _pass_gradient(F, grad, mask):
    if mask.shape != grad.shape:
        raise RuntimeError("`mask` and `dY` are not the same size: ")
    return F.mul(grad, F.to(mask, F.dtype_of(grad)))


for _kind in ("tensor", "channel"):
    op(
        f"_fake_quantize_per_{_kind}_affine_cachemask_backward(Tensor grad, Tensor mask)",
        where="",
        composite=_pass_gradient,
        vjp={"grad": lambda F, g, mask: F.mul(g, F.to(mask, F.dtype_of(g)))},
        doc="The gradient where the mask is true, zero elsewhere.",
        node_name="MulBackward0(grad, mask)",
    )
op(
    "_fake_quantize_per_tensor_affine_cachemask(Tensor input, scale, zero_point, quant_min, quant_max)",
    where="",
    multi_output=True,
    nondiff={1},
    composite=_by_numbers,
    vjp={"input": lambda F, g, out1: F._fake_quantize_per_tensor_affine_cachemask_backward(g[0], out1)},
    doc="The result of `fake_quantize_per_tensor_affine`, and where the levels were in the range.",
)
for _name, _where, _flag in (
    ("_fake_quantize_by_tensors", "", "Tensor?"),
    ("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "torch", "Tensor"),
):
    op(
        f"{_name}(Tensor input, Tensor scale, Tensor zero_point, {_flag} fake_quant_enabled, quant_min, quant_max)",
        where=_where,
        outputs=("output", "mask"),
        nondiff={1},
        composite=_by_tensors,
        vjp={"input": lambda F, g, out1: F._fake_quantize_per_tensor_affine_cachemask_backward(g[0], out1)},
        doc="The same with tensors of one element; where `fake_quant_enabled` is 0, the result is the input.",
        node_name="FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0",
    )


@composite(
    "fake_quantize_per_tensor_affine(Tensor input, Tensor|Number scale, Tensor|Number zero_point, quant_min, "
    "quant_max)",
    where="torch",
)
def fake_quantize_per_tensor_affine(F, input, scale, zero_point, quant_min, quant_max):
    """Rounds each element to a multiple of `scale` that an integer between `quant_min` and `quant_max` stands for:
    ``(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale``.

    Ties are rounded to even, and NaN becomes the least level. The gradient is that of the result where the level was
    in the range, and zero elsewhere.

    Args:
        input: The tensor, of a floating-point dtype.
        scale: The distance of two levels: a number, or a tensor of one element.
        zero_point: The integer that stands for zero: a number, or a tensor of one element if `scale` is one.
        quant_min: The least integer.
        quant_max: The greatest integer.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        RuntimeError: `quant_min` is greater than `quant_max`, or the zero point is a number outside of them.

    Example:
        >>> torch.fake_quantize_per_tensor_affine(torch.tensor([0.12, 0.26, 9.0]), 0.1, 0, 0, 15)
        tensor([0.1000, 0.3000, 1.5000])
    """
    if hasattr(scale, "_tl_array") and hasattr(zero_point, "_tl_array"):
        return F._fake_quantize_by_tensors(input, scale, zero_point, None, quant_min, quant_max)[0]
    if hasattr(scale, "_tl_array") and not hasattr(zero_point, "_tl_array"):
        raise TypeError("zero_point must be a tensor where scale is one")
    zero_point = zero_point.item() if hasattr(zero_point, "_tl_array") else zero_point
    if not isinstance(zero_point, int):
        raise TypeError("zero_point must be int")
    return F._fake_quantize_per_tensor_affine_cachemask(input, scale, zero_point, quant_min, quant_max)[0]


# --- a scale for each channel ---------------------------------------------------------------------------------------


def _check_channels(input, scale, zero_point, axis):
    if len(scale.shape) != 1:
        raise RuntimeError("scale should be a 1-D tensor")
    if len(zero_point.shape) != 1:
        raise RuntimeError("zero point should be a 1-D tensor")
    if scale.shape != zero_point.shape:
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    rank = len(input.shape)
    if axis == rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [-{rank}, {rank - 1}], but got {axis})")
    if not 0 <= axis < rank:
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    if scale.shape[0] != input.shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")


def _along(F, tensor, input, axis, dtype):
    """Numbers of channels, such that they broadcast with the input."""
    return F.reshape(F.to(tensor, dtype), (*(1,) * axis, -1, *(1,) * (input.ndim - 1 - axis)))


def _clamp_levels(F, levels, quant_min, quant_max):
    near = F.lt(F.abs(levels), _limit(F, _FAR))
    return F._choose(F._clamp_scalars(levels, float(quant_min), float(quant_max)), float(quant_min), near)


def _by_channels(F, input, scale, zero_point, axis, quant_min, quant_max):
    dtype = F.dtype_of(scale)
    if dtype.name not in ("float32", "bfloat16"):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {dtype.scalar_name}")
    kind = F.dtype_of(zero_point)
    if kind not in (int32, float32, float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {kind.scalar_name}")
    _check_channels(input, scale, zero_point, axis)
    _check_range(quant_min, quant_max)
    wide = _wide(F, input, "fake_quantize_channel_cachemask_cpu_type_handling")
    dtype = F.dtype_of(wide)
    inverse = F.to(F.reciprocal(_along(F, scale, input, axis, float32)), dtype)
    zero, levels = _along(F, zero_point, input, axis, dtype), F.mul(wide, inverse)
    levels = F.add(F.round(levels), zero) if kind is int32 else F.round(F.add(levels, zero))
    inside = _clamp_levels(F, levels, quant_min, quant_max)
    exact = dtype if kind is int32 else float64  # the difference of integers is exact in either
    result = F.mul(F.sub(F.to(inside, exact), F.to(zero, exact)), _along(F, scale, input, axis, exact))
    return F.to(result, F.dtype_of(input)), F.eq(levels, inside)


def _refuse_far_zero_points(input, scale, zero_point, axis, quant_min, quant_max):
    """The zero points' range is checked where they are integers."""
    if zero_point.dtype is int32 and not zero_point.is_meta and zero_point.numel():
        zero_point = zero_point.detach()
        if any_true((zero_point < quant_min) | (zero_point > quant_max)) and quant_min <= quant_max:
            raise RuntimeError(_BAD_ZERO)


op(
    "_fake_quantize_per_channel_affine_cachemask(Tensor input, Tensor scale, Tensor zero_point, axis, quant_min, "
    "quant_max)",
    where="",
    multi_output=True,
    nondiff={1},
    composite=_by_channels,
    vjp={"input": lambda F, g, out1: F._fake_quantize_per_channel_affine_cachemask_backward(g[0], out1)},
    check=_refuse_far_zero_points,
    doc="The result of `fake_quantize_per_channel_affine`, and where the levels were in the range.",
)


@composite(
    "fake_quantize_per_channel_affine(Tensor input, Tensor scale, Tensor zero_point, axis, quant_min, quant_max)",
    where="torch",
)
def fake_quantize_per_channel_affine(F, input, scale, zero_point, axis, quant_min, quant_max):
    """Rounds each element to the levels of its channel, as `torch.fake_quantize_per_tensor_affine` does to those of a
    tensor.

    Where the zero points are floating-point numbers, a level is ``round(input / scale + zero_point)``.

    Args:
        input: The tensor, of a floating-point dtype.
        scale: The distances of two levels, of shape ``(input.shape[axis],)`` and of float32.
        zero_point: The levels that stand for zero, of the same shape, of int32, float32 or float16.
        axis: The dimension of the channels, not negative.
        quant_min: The least integer.
        quant_max: The greatest integer.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        RuntimeError: A dtype or a shape is another one, `quant_min` is greater than `quant_max`, or an integer zero
            point is outside of them.

    Example:
        >>> x = torch.tensor([[0.12, 0.26], [0.12, 0.26]])
        >>> zero = torch.zeros(2, dtype=torch.int32)
        >>> torch.fake_quantize_per_channel_affine(x, torch.tensor([0.1, 0.5]), zero, 0, 0, 15)
        tensor([[0.1000, 0.3000],
                [0.0000, 0.5000]])
    """
    return F._fake_quantize_per_channel_affine_cachemask(input, scale, zero_point, axis, quant_min, quant_max)[0]


# --- scales that are trained ----------------------------------------------------------------------------------------


def _learnable_by_one(F, input, scale, zero_point, quant_min, quant_max, grad_factor):
    _check_range(quant_min, quant_max)
    zero_point = F._clamp_scalars(F.round(_first(F, zero_point)), float(quant_min), float(quant_max))
    return _round_by_one(F, input, _first(F, scale), zero_point, quant_min, quant_max)[0]


def _learnable_by_channels(F, input, scale, zero_point, axis, quant_min, quant_max, grad_factor):
    zero_point = F._clamp_scalars(F.round(F.to(zero_point, float32)), float(quant_min), float(quant_max))
    return _by_channels(F, input, scale, F.to(zero_point, int32), axis, quant_min, quant_max)[0]


def _learnable_gradients(F, grad, input, scale, zero_point, quant_min, quant_max, factor):
    """The gradients of the input, and of the scale and the zero point for each element (Esser et al., 2020)."""
    inverse = F.reciprocal(scale)
    levels = F.add(F.round(F.mul(input, inverse)), zero_point)
    inside = _clamp_levels(F, levels, quant_min, quant_max)
    mask, offset = F.eq(levels, inside), F.sub(inside, zero_point)
    error = F.mul(F.sub(F.mul(offset, scale), input), inverse)
    of_scale = F.mul(F.mul(grad, F._choose(error, offset, mask)), factor)
    of_zero = F.mul(F._choose(0.0, F.mul(F.neg(scale), grad), mask), factor)
    return F._choose(grad, 0.0, mask), of_scale, of_zero


def _check_learnable(F, grad, input, scale, zero_point):
    for name, tensor in (("dY_", grad), ("X_", input), ("scale_", scale), ("zero_point_", zero_point)):
        if F.dtype_of(tensor) is not float32:
            raise RuntimeError(
                f"Expected {name}.scalar_type() == ScalarType::Float to be true, but got false.  (Could this error "
                "message be improved?  If so, please report an enhancement request to PyTorch.)"
            )
    if grad.shape != input.shape:
        raise RuntimeError("`X` and `dY` are not the same size")


def _learnable_by_one_backward(F, grad, input, scale, zero_point, quant_min, quant_max, grad_factor):
    _check_learnable(F, grad, input, scale, zero_point)
    _check_range(quant_min, quant_max, with_zero=True)
    if 0 in input.shape:
        return input, scale, zero_point
    for index, tensor in ((1, scale), (2, zero_point)):
        if tensor.shape != (1,):
            raise RuntimeError(
                "Function FakeQuantizeLearnablePerTensorAffineBackward0 returned an invalid gradient at index "
                f"{index} - got [1] but expected shape compatible with {list(tensor.shape)}"
            )
    # PyTorch rounds halves up, then towards zero, here, and to even in the forward pass.
    zero = F.trunc(F._clamp_scalars(F.add(_first(F, zero_point), 0.5), float(quant_min), float(quant_max)))
    found = _learnable_gradients(F, grad, input, _first(F, scale), zero, quant_min, quant_max, float(grad_factor))
    return found[0], *(F.reshape(F.sum(x, None, False), (1,)) for x in found[1:])


def _learnable_by_channels_backward(F, grad, input, scale, zero_point, axis, quant_min, quant_max, grad_factor):
    _check_learnable(F, grad, input, scale, zero_point)
    if not quant_min <= 0 <= quant_max:
        raise RuntimeError("Expecting `quant_min` <= 0 and `quant_max` >= 0")
    _check_channels(input, scale, zero_point, axis)
    if 0 in input.shape:
        return input, scale, zero_point
    zero = F._clamp_scalars(F.round(zero_point), float(quant_min), float(quant_max))
    scale, zero = (_along(F, x, input, axis, float32) for x in (scale, zero))
    found = _learnable_gradients(F, grad, input, scale, zero, quant_min, quant_max, float(grad_factor))
    others = tuple(d for d in range(input.ndim) if d != axis)
    return found[0], *(F.sum(x, others, False) if others else x for x in found[1:])


def _gradients_by_one(F, g, input, scale, zero_point, quant_min, quant_max, grad_factor):
    run = F._fake_quantize_learnable_per_tensor_affine_backward
    return run(g, input, scale, zero_point, quant_min, quant_max, grad_factor)


def _gradients_by_channels(F, g, input, scale, zero_point, axis, quant_min, quant_max, grad_factor):
    run = F._fake_quantize_learnable_per_channel_affine_backward
    return run(g, input, scale, zero_point, axis, quant_min, quant_max, grad_factor)


def _define_learnable(kind, axis, forward, backward, formula):
    parameters = f"Tensor input, Tensor scale, Tensor zero_point, {axis}quant_min, quant_max, grad_factor=1.0"
    op(
        f"_fake_quantize_learnable_per_{kind}_affine_backward(Tensor grad, {parameters})",
        where="",
        tags=NONDIFF,
        multi_output=True,
        composite=backward,
        node_name="NotImplemented",
        doc="The gradients of the input, of the scale and of the zero point.",
    )
    op(
        f"_fake_quantize_learnable_per_{kind}_affine({parameters})",
        where="torch",
        composite=forward,
        vjp={("input", "scale", "zero_point"): formula},
        zero_derivatives={name: (name,) for name in ("input", "scale", "zero_point")},
        doc="Fake quantization whose scale and zero point have gradients too, times `grad_factor`.",
    )


_define_learnable("tensor", "", _learnable_by_one, _learnable_by_one_backward, _gradients_by_one)
_define_learnable("channel", "axis, ", _learnable_by_channels, _learnable_by_channels_backward, _gradients_by_channels)


# --- the choice of scales -------------------------------------------------------------------------------------------


def _single(value):
    return float(np.float32(value))


def _choose_level(low, high, quant_min, quant_max, symmetric=False):
    """The scale and the zero point with which integers cover a range of float32, and zero exactly."""
    steps = quant_max - quant_min
    if symmetric and low < 0 < high:
        below, above = -(steps // 2 + 1), steps // 2
        size = max(abs(_single(low / below)), abs(_single(high / above)))
        low, high = _single(size * below), _single(size * above)
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / steps
    if _single(scale) < _LEAST_WITH_INVERSE:
        scale = 0.1
    if scale < _SMALL_SCALE:
        width, factor = _single(_SMALL_SCALE * steps), _single(_SMALL_SCALE / _single(scale))
        if low == 0:
            high = width
        elif high == 0:
            low = -width
        else:
            low, high = _single(low * factor), _single(high * factor)
        scale = _SMALL_SCALE
    below, above = low / scale, high / scale
    # The end that is nearer to an integer's limit has the lesser error.
    zero = quant_min - below if abs(quant_min) - abs(below) < abs(quant_max) - abs(above) else quant_max - above
    if symmetric and low < 0 < high:
        zero = (quant_min + quant_max) / 2
    return scale, -(2**31) if math.isnan(zero) else round(min(max(zero, quant_min), quant_max))


@composite("_choose_qparams_per_tensor(Tensor input, reduce_range=False)", where="torch")
def _choose_qparams_per_tensor(F, input, reduce_range):
    """The scale and the zero point, as numbers, with which bytes cover the range of a tensor."""
    low, high = (_single(find(input.detach()).item()) for find in (F.min, F.max))
    if not low <= high:
        raise RuntimeError("In ChooseQuantizationParams, min should be less than or equal to max")
    return _choose_level(low, high, 0, 127 if reduce_range else 255)


def _rounding_error(x, low, high, bit_width):
    """The norm of what rounding to the levels of a range adds, in float32; half precision holds the range."""
    single, most = np.float32, (1 << bit_width) - 1
    low = single(np.float16(low))
    scale = single(np.float16((high - low) / single(most))) if high != low else single(1)
    levels = np.rint((x - low) * (single(1) / scale if scale else single(1))).clip(0, most).astype(single)
    error = levels * scale + low - x
    return np.sqrt(np.add.accumulate(error * error, dtype=single)[-1])


@composite("choose_qparams_optimized(Tensor input, numel, n_bins, ratio, bit_width)", where="torch")
def choose_qparams_optimized(F, input, numel, n_bins, ratio, bit_width):
    """Chooses a range within that of a tensor whose levels have the least squared error, step by step from both ends.

    Args:
        input: The tensor, of float32.
        numel: How many of its elements count, from the first on.
        n_bins: The number of steps in the whole range.
        ratio: How much of the range may be left out.
        bit_width: The bits of a level.

    Returns:
        The greatest and the least number of the range, as tensors of one element.

    Raises:
        RuntimeError: The tensor has fewer elements, or is not of float32.

    Example:
        >>> torch.choose_qparams_optimized(torch.tensor([-1.0, 2.0, 0.5, 7.0]), 4, 200, 0.16, 8)
        (tensor([7.]), tensor([-1.]))
    """
    if not 0 <= numel <= input.numel():
        raise RuntimeError("numel is out of the bound of input tensor")
    if input.dtype is not float32:
        raise RuntimeError(f"expected scalar type Float but found {input.dtype.scalar_name}")
    x = input.detach().cpu().reshape(-1).numpy()[:numel]
    low, high = start, end = x.min(), x.max()
    step = (end - start) / np.float32(n_bins)
    least_width = np.float32(int(n_bins * (1 - np.float32(ratio)))) * step
    error = best = _rounding_error(x, start, end, bit_width)
    while start + least_width < end:
        after_start = _rounding_error(x, start + step, end, bit_width)
        after_end = _rounding_error(x, start, end - step, bit_width)
        if error < min(after_start, after_end, best):
            best, low, high = error, start, end
        if after_start < after_end:
            start, error = start + step, after_start
        else:
            end, error = end - step, after_end
    return tuple(CALLBACKS.as_tensor(np.asarray([value])).to(input.device) for value in (high, low))


def _moved_range(F, input, running_min, running_max, averaging_const, per_row):
    flat = F.reshape(input, (input.shape[0], -1)) if per_row else F.reshape(input, (-1,))
    ends = F.amin(flat, (-1,), False), F.amax(flat, (-1,), False)
    moved = []
    for old, new in zip((running_min, running_max), ends, strict=True):
        new = F.reshape(new, old.shape)
        average = F.add(old, F.mul(F.sub(new, old), averaging_const))
        moved.append(F._choose(new, average, F.isinf(old)))
    return tuple(moved)


op(
    "_moved_range(Tensor input, Tensor running_min, Tensor running_max, averaging_const, per_row)",
    where="",
    tags=NONDIFF,
    multi_output=True,
    composite=_moved_range,
    doc="The running ranges after a tensor: moved towards its range, or that range where they were infinite.",
)


@composite(
    "_fused_moving_avg_obs_fq_helper(Tensor input, Tensor observer_on, Tensor fake_quant_on, Tensor running_min, "
    "Tensor running_max, Tensor scale, Tensor zero_point, averaging_const, quant_min, quant_max, ch_axis, "
    "per_row_fake_quant=False, symmetric_quant=False)",
    where="",
    node_name="FusedMovingAvgObsFqHelperBackward0(input)",
)
def _fused_helper(
    F, input, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min,
    quant_max, ch_axis, per_row_fake_quant, symmetric_quant,
):  # fmt: skip
    """The result of `fused_moving_avg_obs_fake_quant`, and where the levels were in the range."""
    if not input.numel():
        return F.clone(input), F.ones_like(input, dtype=bool_)
    _check_range(quant_min, quant_max)
    running = running_min, running_max
    if per_row_fake_quant:
        if ch_axis != 0:
            raise RuntimeError(
                "Per-channel FakeQuant in fused_moving_avg_obs_fake_quant is only supported on axis == 0"
            )
        if running_min.numel() == 0:
            for tensor, value in zip((*running, scale, zero_point), (math.inf, -math.inf, 1, 0), strict=True):
                tensor.resize_(input.shape[0]).fill_(value)
        sizes = [x.numel() for x in (*running, scale, zero_point)] + [input.shape[0]]
        if min(sizes) != max(sizes):
            least = min(sizes)
            raise IndexError(f"select(): index {least} out of range for tensor of size [{least}] at dimension 0")
    if int(observer_on.item()):
        if input.dtype is not float32:
            raise RuntimeError(f"expected scalar type Float but found {input.dtype.scalar_name}")
        moved = F._moved_range(input.detach(), *running, averaging_const, per_row_fake_quant)
        for old, new in zip(running, moved, strict=True):
            old.copy_(new)
    if not int(fake_quant_on.item()):
        return F.clone(input), F.ones_like(input, dtype=bool_)
    ranges = zip(*(x.detach().reshape(-1).tolist() for x in running), strict=True)
    with np.errstate(over="ignore"):
        chosen = [_choose_level(low, high, quant_min, quant_max, symmetric_quant) for low, high in ranges]
    for old, values in zip((scale, zero_point), zip(*chosen, strict=True), strict=True):
        if len(values) == 1:
            old.fill_(values[0])
        else:
            old.copy_(CALLBACKS.as_tensor(values).reshape(old.shape))
    if per_row_fake_quant:
        return tuple(
            F._fake_quantize_per_channel_affine_cachemask(input, scale, zero_point, ch_axis, quant_min, quant_max)
        )
    return tuple(F._fake_quantize_by_tensors(input, scale, zero_point, None, quant_min, quant_max))


@composite(
    "fused_moving_avg_obs_fake_quant(Tensor input, Tensor observer_on, Tensor fake_quant_on, Tensor running_min, "
    "Tensor running_max, Tensor scale, Tensor zero_point, averaging_const, quant_min, quant_max, ch_axis, "
    "per_row_fake_quant=False, symmetric_quant=False)",
    where="torch",
)
def fused_moving_avg_obs_fake_quant(
    F, input, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min,
    quant_max, ch_axis, per_row_fake_quant, symmetric_quant,
):  # fmt: skip
    """Observes the range of the input, chooses a scale and a zero point for it, and rounds the input to their levels.

    The running range moves by ``averaging_const * (range - running)``. It, the scale and the zero point are written in
    place.

    Args:
        input: The tensor, of float32.
        observer_on: Whether the running range moves: a tensor of one element, 0 or 1.
        fake_quant_on: Whether the scale is chosen and the input rounded: a tensor of one element, 0 or 1.
        running_min: The running minimum; infinite before the first call.
        running_max: The running maximum, likewise.
        scale: The scale.
        zero_point: The zero point, of int32.
        averaging_const: The weight of the input's range.
        quant_min: The least integer.
        quant_max: The greatest integer.
        ch_axis: The dimension of the channels: 0, if each has a range.
        per_row_fake_quant: Whether each channel has a range. Default: ``False``.
        symmetric_quant: Whether a range of both signs is made symmetric. Default: ``False``.

    Returns:
        The rounded input, or a copy of the input if `fake_quant_on` is 0.

    Raises:
        RuntimeError: The input is not of float32, or `ch_axis` is not 0 with ranges of channels.

    Example:
        >>> on, low, high = torch.ones(1), torch.tensor(-1.0), torch.tensor(1.0)
        >>> scale, zero = torch.ones(1), torch.zeros(1, dtype=torch.int32)
        >>> x = torch.tensor([-0.5, 0.3, 3.0])
        >>> torch.fused_moving_avg_obs_fake_quant(x, on, on, low, high, scale, zero, 0.5, 0, 255, -1)
        tensor([-0.4961,  0.3020,  1.9951])
        >>> low, high
        (tensor(-0.7500), tensor(2.))
    """
    return F._fused_moving_avg_obs_fq_helper(
        input, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min,
        quant_max, ch_axis, per_row_fake_quant, symmetric_quant,
    )[0]  # fmt: skip
