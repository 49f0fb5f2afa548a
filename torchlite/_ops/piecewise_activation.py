"""Activation functions that are polynomials between their thresholds."""

import math

from torchlite._dispatch import INPLACE, POINTWISE, RANDOM, Out, Overlap, composite, memory_layout, op
from torchlite._dispatch.public_functions import torch
from torchlite._types.dtypes import BOOL, COMPLEX, INT, finfo

from ._dtype_checks import refuse_kinds
from ._gradient_helpers import zero_gradient
from .activation import require_float


def _relu(F, input):
    dtype = F.dtype_of(input)
    if dtype.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    if dtype.category == 0:
        raise RuntimeError("Boolean inputs not supported for relu")
    return F.where(F.le(input, 0), F._zeros_like(input), input)


def _relu_backward(F, grad, result):
    return F.where(F.le(result, 0), F._zeros_like(grad), grad)


# A gradient depends on the input, as PyTorch's does: it requires a gradient, and its own derivative there is zero.
op(
    "_relu_backward(Tensor grad, Tensor result)",
    where="",
    composite=_relu_backward,
    tags=POINTWISE,
    vjp={"grad": lambda F, g, result: F._relu_backward(g, result), "result": zero_gradient},
    node_name="ThresholdBackwardBackward0",
)

op(
    "relu(Tensor input)",
    composite=_relu,
    tags=POINTWISE | INPLACE,
    vjp={"input": lambda F, g, out: F._relu_backward(g, out)},
    doc="""The positive part ``max(input, 0)``, elementwise; NaN stays NaN.

    The gradient at 0 is 0.

    Raises:
        RuntimeError: `input` is a bool tensor.
        NotImplementedError: `input` is complex.

    Example:
        >>> torch.relu(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])

    See also:
        `torch.nn.ReLU`.
    """,
)


def _leaky_relu(F, input, negative_slope):
    require_float(F, input, "leaky_relu_cpu")
    return F.where(F.gt(input, 0), input, F.mul(input, negative_slope))


def _leaky_relu_backward(F, grad, input, negative_slope):
    return F.where(F.gt(input, 0), grad, F.mul(grad, negative_slope))


op(
    "_leaky_relu_backward(Tensor grad, Tensor input, negative_slope)",
    where="",
    composite=_leaky_relu_backward,
    tags=POINTWISE,
    vjp={
        "grad": lambda F, g, input, negative_slope: F._leaky_relu_backward(g, input, negative_slope),
        "input": zero_gradient,
    },
    node_name="LeakyReluBackwardBackward0",
)

op(
    "leaky_relu(Tensor input, negative_slope=0.01)",
    where="nn.functional",
    composite=_leaky_relu,
    tags=POINTWISE | INPLACE,
    vjp={"input": lambda F, g, input, negative_slope: F._leaky_relu_backward(g, input, negative_slope)},
    doc="""`input` where it is positive, and ``negative_slope * input`` elsewhere.

    The gradient at 0 is `negative_slope`.

    Args:
        negative_slope: The slope for negative numbers. Default: 0.01.

    Raises:
        NotImplementedError: `input` is not floating point.

    Example:
        >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
        tensor([-0.1000,  2.0000])

    See also:
        `torch.nn.LeakyReLU`.
    """,
    layout=memory_layout.pointwise,
)


_COMPLEX_MESSAGE = "clamp is not supported for complex types"


def _refuse_complex(input, *limits):
    if input.dtype.is_complex:
        raise NotImplementedError(_COMPLEX_MESSAGE)


def _hardtanh(F, input, min_val, max_val):
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if F.dtype_of(input).category == 0:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if math.isnan(min_val) or math.isnan(max_val):
        return F._full_like(input, math.nan)
    low = F.where(F.lt(input, min_val), F._full_like(input, min_val), input)
    return F.where(F.gt(low, max_val), F._full_like(input, max_val), low)


def _hardtanh_backward(F, grad, input, min_val, max_val):
    outside = F.logical_or(F.le(input, min_val), F.ge(input, max_val))  # NaN passes the gradient
    return F.where(outside, F._zeros_like(grad), grad)


op(
    "_hardtanh_backward(Tensor grad, Tensor input, min_val, max_val)",
    where="",
    composite=_hardtanh_backward,
    tags=POINTWISE,
    vjp={
        "grad": lambda F, g, input, min_val, max_val: F._hardtanh_backward(g, input, min_val, max_val),
        "input": zero_gradient,
    },
    node_name="HardtanhBackwardBackward0",
)

op(
    "hardtanh(Tensor input, min_val=-1.0, max_val=1.0)",
    where="nn.functional",
    composite=_hardtanh,
    tags=POINTWISE | INPLACE,
    vjp={"input": lambda F, g, input, min_val, max_val: F._hardtanh_backward(g, input, min_val, max_val)},
    doc="""`input` limited to the range from `min_val` to `max_val`.

    The gradient is zero at and beyond the limits.

    Args:
        min_val: The lower limit. Default: -1.0.
        max_val: The upper limit. Default: 1.0.

    Raises:
        ValueError: ``min_val > max_val``.
        RuntimeError: `input` is a bool tensor.

    Example:
        >>> torch.nn.functional.hardtanh(torch.tensor([-2.0, 0.5, 2.0]))
        tensor([-1.0000,  0.5000,  1.0000])

    See also:
        `torch.nn.Hardtanh`.
    """,
    layout=memory_layout.like_first,
    numbers={"min_val": False, "max_val": False},
    check=_refuse_complex,
)

op(
    "relu6(Tensor input)",
    where="nn.functional",
    composite=lambda F, input: F.hardtanh(input, 0, 6),
    tags=POINTWISE | INPLACE,
    vjp={"input": lambda F, g, input: F._hardtanh_backward(g, input, 0, 6)},
    doc="""``min(max(input, 0), 6)``, elementwise.

    The gradient is zero at and beyond the limits.

    Example:
        >>> torch.nn.functional.relu6(torch.tensor([-1.0, 3.0, 8.0]))
        tensor([0., 3., 6.])

    See also:
        `torch.nn.ReLU6`.
    """,
    layout=memory_layout.like_first,
    refuses={("input", COMPLEX): NotImplementedError(_COMPLEX_MESSAGE)},
    node_name="HardtanhBackward0",
)


def _threshold(F, input, threshold, value):
    return F.where(F.le(input, threshold), F._full_like(input, value), input)


def _threshold_backward(F, grad, input, threshold):
    return F.where(F.le(input, threshold), F._zeros_like(grad), grad)


op(
    "_threshold_backward(Tensor grad, Tensor input, threshold)",
    where="",
    composite=_threshold_backward,
    tags=POINTWISE,
    vjp={"grad": lambda F, g, input, threshold: F._threshold_backward(g, input, threshold), "input": zero_gradient},
    node_name="ThresholdBackwardBackward0",
)

op(
    "threshold(Tensor input, threshold, value)",
    where="torch nn.functional",
    composite=_threshold,
    tags=POINTWISE | INPLACE,
    vjp={"input": lambda F, g, input, threshold: F._threshold_backward(g, input, threshold)},
    doc="""`input` where it is above `threshold`, and `value` elsewhere.

    Args:
        threshold: Elements above it are kept.
        value: Replaces the other elements.

    Example:
        >>> torch.threshold(torch.tensor([-1.0, 0.5, 2.0]), 1.0, 0.0)
        tensor([0., 0., 2.])

    See also:
        `torch.nn.Threshold`.
    """,
    layout=memory_layout.like_first,
    overlap=Overlap("allowed"),
    numbers={"threshold": True, "value": False},
    refuses={("input", BOOL): "threshold_cpu", ("input", COMPLEX): "threshold_cpu"},
)


def _hardshrink(F, input, lambd):
    require_float(F, input, "hardshrink_cpu")
    inside = F.logical_and(F.ge(input, -lambd), F.le(input, lambd))
    return F.where(inside, F._zeros_like(input), input)


def _shrink_backward(F, grad, input, lambd):
    inside = F.logical_and(F.ge(input, -lambd), F.le(input, lambd))
    return F.where(inside, F._zeros_like(grad), grad)


def _shrink_vjp(F, g, input, lambd):
    return F._shrink_backward(g, input, lambd)


op(
    "_shrink_backward(Tensor grad, Tensor input, lambd)",
    where="",
    composite=_shrink_backward,
    tags=POINTWISE,
    vjp={"grad": _shrink_vjp, "input": zero_gradient},
)

op(
    "hardshrink(Tensor input, lambd=0.5)",
    where="torch Tensor nn.functional",
    composite=_hardshrink,
    tags=POINTWISE,
    vjp={"input": _shrink_vjp},
    doc="""Zero where the absolute value is at most `lambd`, and `input` elsewhere.

    Args:
        lambd: The half width of the interval that becomes zero. Default: 0.5.

    Raises:
        NotImplementedError: `input` is not floating point.

    Example:
        >>> torch.hardshrink(torch.tensor([-1.0, 0.3, 2.0]))
        tensor([-1.,  0.,  2.])

    See also:
        `torch.nn.Hardshrink`.
    """,
    layout=memory_layout.pointwise,
    numbers={"lambd": False},
)


def _softshrink(F, input, lambd):
    if lambd < 0:
        dtype = F.dtype_of(input)
        raise RuntimeError(
            f"lambda must be in range [0, {finfo(dtype).max:g}] for input dtype {dtype.scalar_name}, but found "
            f"{lambd:g}"
        )
    above = F.where(F.gt(input, lambd), F.sub(input, lambd), F.mul(input, 0))
    return F.where(F.lt(input, -lambd), F.add(input, lambd), above)


op(
    "softshrink(Tensor input, lambd=0.5)",
    where="nn.functional",
    composite=_softshrink,
    tags=POINTWISE,
    vjp={"input": _shrink_vjp},
    doc="""`input` moved towards zero by `lambd`; zero where the absolute value is at most `lambd`.

    Args:
        lambd: The distance, not negative. Default: 0.5.

    Raises:
        RuntimeError: `lambd` is negative.

    Example:
        >>> torch.nn.functional.softshrink(torch.tensor([-1.0, 0.3, 2.0]))
        tensor([-0.5000,  0.0000,  1.5000])

    See also:
        `torch.nn.Softshrink`.
    """,
    layout=memory_layout.pointwise,
    out=Out(supported=True),
)


def _prelu_weight(F, input, weight):
    if weight.ndim == 0 or input.ndim < 2:
        return weight
    return F.reshape(weight, (1, weight.shape[0]) + (1,) * (input.ndim - 2))


def _negative_part(F, input, g):
    """`g` where the input is not positive: the gradient of `_prelu` towards a factor there."""
    return F.where(F.gt(input, 0), F._zeros_like(g), g)


op(
    "_prelu_input_backward(Tensor grad, Tensor input, Tensor weight)",
    where="",
    composite=lambda F, grad, input, weight: F.where(F.gt(input, 0), grad, F.mul(grad, weight)),
    tags=POINTWISE,
    vjp={
        "grad": lambda F, g, input, weight: F._prelu_input_backward(g, input, weight),
        "input": zero_gradient,
        "weight": lambda F, g, grad, input: _negative_part(F, input, F.mul(g, grad)),
    },
    node_name="PreluKernelBackwardBackward0",
)

op(
    "_prelu(Tensor input, Tensor weight)",
    where="",
    composite=lambda F, input, weight: F.where(F.gt(input, 0), input, F.mul(input, weight)),
    vjp={
        "input": lambda F, g, input, weight: F._prelu_input_backward(g, input, weight),
        "weight": lambda F, g, input: _negative_part(F, input, F.mul(g, input)),
    },
    zero_derivatives={"weight": ("weight",)},
    doc="``prelu`` with a weight that already broadcasts against the input.",
    node_name="PreluKernelBackward0",
)


@composite(
    "prelu(Tensor input, Tensor weight)",
    where="torch Tensor nn.functional",
    node_name=lambda call: (
        f"PreluKernelBackward0(input, {'weight' if call.ndim('input') < 2 else 'ViewBackward0(weight)'})"
    ),
)
def prelu(F, input, weight):
    """`input` where it is positive, and ``weight * input`` elsewhere (He et al., 2015).

    Args:
        weight: The slope: one element, or a vector with one for each channel (dimension 1 of `input`).

    Raises:
        RuntimeError: The dtypes differ, `weight` has several dimensions, or its length is not the number of channels.

    Example:
        >>> torch.nn.functional.prelu(torch.tensor([-1.0, 2.0]), torch.tensor([0.25]))
        tensor([-0.2500,  2.0000])

    See also:
        `torch.nn.PReLU`.
    """
    if weight.dtype is not input.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype.scalar_name} and {weight.dtype.scalar_name}"
        )
    count = weight.numel()
    if count != 1:
        if input.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if channels != count:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {count} and "
                f"channel size = {channels}."
            )
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    refuse_kinds(input.dtype, "prelu_cpu", BOOL, INT, COMPLEX)
    return F._prelu(input, _prelu_weight(F, input, weight) if count != 1 else F.reshape(weight, (1,) * input.ndim))


@composite(
    "rrelu(Tensor input, lower=0.125, upper=0.3333333333333333, training=False, generator=None)",
    where="torch nn.functional",
    tags=RANDOM | INPLACE,
    node_name="RreluWithNoiseBackward0(input)",
)
def rrelu(F, input, lower, upper, training, generator):
    """Leaky ReLU with a random slope for each negative element (Xu et al., 2015).

    In training the slope is uniform in ``[lower, upper)``; otherwise it is ``(lower + upper) / 2``.

    Args:
        lower: The least slope. Default: 1/8.
        upper: The greatest slope. Default: 1/3.
        training: Whether the slopes are random. Default: False.
        generator: The generator of the slopes. Default: the device's.

    Raises:
        RuntimeError: A bound is not finite, or ``lower > upper``.

    Example:
        >>> torch.nn.functional.rrelu(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
        tensor([-0.2000,  2.0000])

    See also:
        `torch.nn.RReLU`.
    """
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound:g}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return F.leaky_relu(input, (lower + upper) / 2)
    from .._device.generators import engine_for_table

    slopes = F._random_slopes(input.detach(), lower, upper, engine_for_table(input._tl_kernels, generator))
    return F._with_constant_gradient(input) * slopes


def _hardsigmoid(F, input):
    require_float(F, input, "hardsigmoid_cpu")
    return F.mul(F.hardtanh(F.add(input, 3.0), 0.0, 6.0), 1.0 / 6.0)


def _hardsigmoid_backward(F, grad, input):
    inside = F.lt(F.abs(input), 3.0)  # zero for NaN, unlike the gradient of hardtanh
    return F.where(inside, F.mul(grad, 1.0 / 6.0), F._zeros_like(grad))


op(
    "_hardsigmoid_backward(Tensor grad, Tensor input)",
    where="",
    composite=_hardsigmoid_backward,
    tags=POINTWISE,
    vjp={"grad": lambda F, g, input: F._hardsigmoid_backward(g, input), "input": zero_gradient},
)

op(
    "hardsigmoid(Tensor input)",
    where="nn.functional",
    composite=_hardsigmoid,
    tags=POINTWISE | INPLACE,
    vjp={"input": lambda F, g, input: F._hardsigmoid_backward(g, input)},
    doc="""``min(max(input + 3, 0), 6) / 6``: a piecewise linear sigmoid.

    Raises:
        NotImplementedError: `input` is not floating point.

    Example:
        >>> torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0, 1.5]))
        tensor([0.0000, 0.5000, 0.7500])

    See also:
        `torch.nn.Hardsigmoid`.
    """,
    layout=memory_layout.pointwise,
)


def _hardswish(F, input):
    require_float(F, input, "hardswish_cpu")
    return F.mul(input, F.hardsigmoid(input))


def _hardswish_backward(F, grad, input):
    slope = F.add(F.mul(input, 1.0 / 3.0), 0.5)
    inside = F.where(F.lt(input, 3.0), F.mul(grad, slope), grad)
    return F.where(F.le(input, -3.0), F._zeros_like(grad), inside)


op("_hardswish_backward(Tensor grad, Tensor input)", where="", composite=_hardswish_backward, tags=POINTWISE)
op(
    "hardswish(Tensor input)",
    where="nn.functional",
    composite=_hardswish,
    tags=POINTWISE | INPLACE,
    vjp={"input": lambda F, g, input: F._hardswish_backward(g, input)},
    doc="""``input * min(max(input + 3, 0), 6) / 6`` (Howard et al., 2019).

    Raises:
        NotImplementedError: `input` is not floating point.

    Example:
        >>> torch.nn.functional.hardswish(torch.tensor([-4.0, 1.0, 4.0]))
        tensor([-0.0000, 0.6667, 4.0000])

    See also:
        `torch.nn.Hardswish`.
    """,
    layout=memory_layout.pointwise,
)


@composite("_add_relu(Tensor input, Tensor|Number other, *, alpha=1)", where="torch", tags=INPLACE)
def _add_relu(F, input, other, alpha):
    """``relu(input + alpha * other)``.

    >>> torch._add_relu(torch.tensor([1., 2.]), torch.tensor([-3., 3.]))
    tensor([0., 5.])
    """
    return F.relu(torch.add(input, other, alpha=alpha))
