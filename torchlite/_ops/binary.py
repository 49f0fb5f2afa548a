"""Ops of two and three operands: division with rounding, extremes, bits, clamping, interpolation, comparison within a
tolerance.
"""

import math

from torchlite._dispatch import DEFAULT, INPLACE, INT_TO_FLOAT, NONDIFF, POINTWISE, Out, composite, memory_layout, op
from torchlite._dispatch.node_names import scalar_or_tensor_name
from torchlite._dispatch.op_record import FOUND_DTYPE
from torchlite._dispatch.shapes import broadcast_shapes
from torchlite._types.dtypes import BOOL, FLOAT, bool_, complex64, complex128, float32, float64, int32, int64

from ._gradient_helpers import make_missing_derivative_formula

BINARY = POINTWISE | INPLACE


def zero_where_not(F, mask, g):
    return F.where(mask, g, 0)


# --- division with rounding, and what it leaves ---------------------------------------------------

op(
    "fmod(Tensor input, Tensor|Number other)",
    promote=DEFAULT,
    tags=BINARY,
    vjp={"input": lambda F, g: g, "other": lambda F, g, input, other: F.neg(F.mul(g, F._trunc_divide(input, other)))},
    doc="""The remainder of ``input / other`` with the sign of `input`, with broadcasting, as C's `fmod`.

    Raises:
        RuntimeError: An integer is divided by zero.

    Example:
        >>> torch.fmod(torch.tensor([-3.0, 3.0]), 2)
        tensor([-1.,  1.])

    See also:
        `torch.remainder`, whose result has the sign of `other`.
    """,
    node_name=scalar_or_tensor_name("Fmod"),
    scalar_rounding="always",
)
op(
    "remainder(Tensor|Number input, Tensor|Number other)",
    promote=DEFAULT,
    tags=BINARY,
    vjp={"input": lambda F, g: g, "other": lambda F, g, input, other: F.neg(F.mul(g, F._floor_divide(input, other)))},
    doc="""The remainder of ``input / other`` with the sign of `other`, with broadcasting, as Python's ``%``.

    Raises:
        RuntimeError: An integer is divided by zero.

    Example:
        >>> torch.remainder(torch.tensor([-3.0, 3.0]), 2)
        tensor([1., 1.])

    See also:
        `torch.fmod`, whose result has the sign of `input`.
    """,
    node_name=scalar_or_tensor_name("Remainder"),
    scalar_rounding="always",
)

# --- functions of two real numbers ----------------------------------------------------------------


def _per_square_distance(F, value, x, y):
    """`value / (x^2 + y^2)` without overflow, and 0 at the origin, as PyTorch."""
    is_origin = F.logical_and(F.eq(x, 0), F.eq(y, 0))
    distance = F.hypot(F.where(is_origin, F._full_like(x, 1e30), x), y)
    return F.div(F.div(value, distance), distance)


op(
    "atan2(Tensor input, Tensor other)",
    promote=INT_TO_FLOAT,
    tags=BINARY,
    alias="arctan2",
    vjp={
        "input": lambda F, g, input, other: F.mul(g, _per_square_distance(F, other, input, other)),
        "other": lambda F, g, input, other: F.neg(F.mul(g, _per_square_distance(F, input, input, other))),
    },
    doc="""The angle of the points with abscissa `other` and ordinate `input`, in radians from -pi to pi.

    The operands broadcast. Integers become the default float dtype.

    Args:
        input: The ordinates.
        other: The abscissas: a tensor that broadcasts with `input`.

    Example:
        >>> torch.atan2(torch.tensor([1.0, -1.0]), torch.tensor([0.0, -1.0]))
        tensor([ 1.5708, -2.3562])
    """,
)


def copysign_vjp(F, g, input, out):
    zero = F.eq(input, 0)
    return F.where(zero, 0, F.mul(g, F.div(out, F.where(zero, 1, input))))


op(
    "copysign(Tensor input, Tensor|Number other)",
    promote=INT_TO_FLOAT,
    tags=BINARY,
    vjp={"input": copysign_vjp, "other": lambda F, g: F._zeros_like(g)},
    node_name=scalar_or_tensor_name("Copysign", number=1),
    doc="""The magnitude of `input` with the sign of `other`, with broadcasting.

    Integers become the default float dtype. The gradient at 0 is 0.

    Example:
        >>> torch.copysign(torch.tensor([1.0, -2.0]), -0.0)
        tensor([-1., -2.])
    """,
    layout=memory_layout.pointwise,
)
op(
    "hypot(Tensor input, Tensor other)",
    promote=DEFAULT,
    tags=BINARY,
    vjp={
        "input": lambda F, g, input, out: F.mul(g, F.div(input, out)),
        "other": lambda F, g, other, out: F.mul(g, F.div(other, out)),
    },
    doc="""The hypotenuse ``sqrt(input**2 + other**2)``, with broadcasting, computed without overflow.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.hypot(torch.tensor([3.0]), torch.tensor([4.0]))
        tensor([5.])
    """,
    layout=memory_layout.pointwise,
)
op(
    "nextafter(Tensor input, Tensor other)",
    promote=DEFAULT,
    tags=BINARY,
    vjp={"input": lambda F, g, input, other: F.where(F.eq(input, other), 0, g), "other": lambda F, g: F._zeros_like(g)},
    doc="""The next number of the dtype after `input` towards `other`, with broadcasting.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.nextafter(torch.tensor([1.0]), torch.tensor([2.0])) - 1
        tensor([1.1921e-07])
    """,
    layout=memory_layout.pointwise,
)
op(
    "logaddexp(Tensor input, Tensor other)",
    promote=DEFAULT,
    tags=POINTWISE,
    vjp={
        "input": lambda F, g, input, other: F.div(g, F.conj(F.add(F.exp(F.sub(other, input)), 1))),
        "other": lambda F, g, input, other: F.div(g, F.conj(F.add(F.exp(F.sub(input, other)), 1))),
    },
    doc="""``log(exp(input) + exp(other))``, with broadcasting, computed without overflow.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.logaddexp(torch.tensor([0.0, 1000.0]), torch.tensor([0.0, 1000.0]))
        tensor([6.9315e-01, 1.0007e+03])
    """,
    layout=memory_layout.pointwise,
)
op(
    "logaddexp2(Tensor input, Tensor other)",
    promote=DEFAULT,
    tags=POINTWISE,
    vjp={
        "input": lambda F, g, input, other: F.div(g, F.add(F.exp2(F.sub(other, input)), 1)),
        "other": lambda F, g, input, other: F.div(g, F.add(F.exp2(F.sub(input, other)), 1)),
    },
    doc="""``log2(2**input + 2**other)``, with broadcasting, computed without overflow.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.logaddexp2(torch.tensor([0.0, 1000.0]), torch.tensor([0.0, 1000.0]))
        tensor([1.0000e+00, 1.0010e+03])
    """,
)


def selects_first_mask(F, input, other, compare):
    """Mask of the elements for which fmax or fmin selects its first operand: it wins or ties, or the other is NaN."""
    return F.logical_or(compare(input, other), F.isnan(other))


def make_extreme_vjps(name, comparison, doc):
    def first_operand_vjp(F, g, input, other):
        return zero_where_not(F, selects_first_mask(F, input, other, getattr(F, comparison)), g)

    def second_operand_vjp(F, g, input, other):
        return zero_where_not(F, F.logical_not(selects_first_mask(F, input, other, getattr(F, comparison))), g)

    op(
        f"{name}(Tensor input, Tensor other)",
        promote=DEFAULT,
        tags=POINTWISE,
        vjp={"input": first_operand_vjp, "other": second_operand_vjp},
        doc=doc,
    )


make_extreme_vjps(
    "fmax",
    "ge",
    """The larger of two elements, with broadcasting; a number rather than a NaN.

    Where they are equal, `input` gets the gradient.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.fmax(torch.tensor([1.0, float("nan")]), torch.tensor([2.0, 3.0]))
        tensor([2., 3.])

    See also:
        `torch.maximum`, which returns NaN where either is.
    """,
)
make_extreme_vjps(
    "fmin",
    "le",
    """The smaller of two elements, with broadcasting; a number rather than a NaN.

    Where they are equal, `input` gets the gradient.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.fmin(torch.tensor([1.0, float("nan")]), torch.tensor([2.0, 3.0]))
        tensor([1., 3.])

    See also:
        `torch.minimum`, which returns NaN where either is.
    """,
)
op(
    "heaviside(Tensor input, Tensor values)",
    tags=BINARY,
    vjp=dict.fromkeys(("input", "values"), make_missing_derivative_formula("heaviside")),
    doc="""The Heaviside step function: 0 below zero, 1 above, `values` at zero.

    The op has no derivative.

    Args:
        values: The values at zero: a tensor of the dtype of `input` that broadcasts with it.

    Raises:
        RuntimeError: The dtypes differ.

    Example:
        >>> torch.heaviside(torch.tensor([-1.5, 0.0, 2.0]), torch.tensor(0.5))
        tensor([0.0000, 0.5000, 1.0000])
    """,
    layout=memory_layout.pointwise,
    out=Out("same", "heaviside is not yet implemented for tensors with different dtypes."),
    node_name="NotImplemented",
)
op(
    "gcd(Tensor input, Tensor other)",
    promote=DEFAULT,
    tags=BINARY | NONDIFF,
    doc="""The greatest common divisor of two integers, with broadcasting; not negative.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.gcd(torch.tensor([12, -5]), torch.tensor([18, 10]))
        tensor([6, 5])
    """,
)
op(
    "lcm(Tensor input, Tensor other)",
    promote=DEFAULT,
    tags=BINARY | NONDIFF,
    doc="""The least common multiple of two integers, with broadcasting; not negative.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.lcm(torch.tensor([4, -5]), torch.tensor([6, 10]))
        tensor([12, 10])
    """,
)

# --- clamping -------------------------------------------------------------------------------------


def inside_limits_mask(F, input, min, max):
    if min is None:
        return F.le(input, max)
    return F.ge(input, min) if max is None else F.logical_and(F.ge(input, min), F.le(input, max))


def clamp_min_vjp(F, g, input, min, max):
    below = F.lt(input, min)
    return zero_where_not(F, below if max is None else F.logical_and(below, F.lt(min, max)), g)


def clamp_max_vjp(F, g, input, min, max):
    above = F.gt(input, max)
    if min is not None:  # where the limits are one number the input keeps the gradient if it equals them
        above = F.logical_or(
            above, F.logical_and(F.ge(min, max), F.logical_not(inside_limits_mask(F, input, min, max)))
        )
    return zero_where_not(F, above, g)


op(
    "_clamp_tensors(Tensor input, Tensor|Number? min=None, Tensor|Number? max=None)",
    where="",
    promote=DEFAULT,
    tags=POINTWISE,
    vjp={
        "input": lambda F, g, input, min, max: zero_where_not(F, inside_limits_mask(F, input, min, max), g),
        "min": clamp_min_vjp,
        "max": clamp_max_vjp,
    },
    node_name="ClampBackward0",
    numbers={"min": False, "max": False},
)
op(
    "_clamp_scalars(Tensor input, min, max)",
    where="",
    promote=DEFAULT,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input, min, max: zero_where_not(F, inside_limits_mask(F, input, min, max), g)},
    node_name="ClampBackward1",
    numbers={"min": False, "max": False},
)


@composite(
    "clamp(Tensor input, Tensor|Number? min=None, Tensor|Number? max=None)",
    tags=INPLACE,
    number_ops=("_clamp_tensors", "_clamp_scalars"),
    alias="clip",
    layout=memory_layout.pointwise,
    out=Out("same", FOUND_DTYPE),
)
def clamp(F, input, min, max):
    """`input` limited to the range from `min` to `max`, elementwise: ``min(max(input, min), max)``.

    Where ``min > max`` the result is `max`. NaN stays NaN. The gradient of `input` is
    zero outside the limits and passes at them.

    Args:
        min: The lower limit: a number or a tensor that broadcasts with `input`. Default: no limit.
        max: The upper limit: a number or a tensor that broadcasts with `input`. Default: no limit.

    Raises:
        RuntimeError: Both limits are absent.
        NotImplementedError: `input` is a bool tensor and no limit promotes it.

    Example:
        >>> torch.clamp(torch.tensor([-2.0, 0.5, 3.0]), min=-1, max=1)
        tensor([-1.0000,  0.5000,  1.0000])
    """
    dtype = F.dtype_of(input)
    if dtype is bool_ and all(bound is None or bound.__class__ is bool for bound in (min, max)):
        which = (
            "clamp_scalar"
            if min is not None and max is not None
            else "clamp_max_scalar"
            if min is None
            else "clamp_min_scalar"
        )
        raise NotImplementedError(f"\"{which}_cpu\" not implemented for 'Bool'")
    if (
        dtype.category == 2
        and (min is None or min.__class__ in (int, float))
        and (max is None or max.__class__ in (int, float))
    ):
        return F._clamp_scalars(input, min, max)
    return F._clamp_tensors(input, min, max)


op(
    "clamp_min(Tensor input, Tensor|Number min)",
    promote=DEFAULT,
    tags=BINARY,
    vjp={
        "input": lambda F, g, input, min: zero_where_not(F, F.ge(input, min), g),
        "min": lambda F, g, input, min: zero_where_not(F, F.lt(input, min), g),
    },
    doc="""The larger of `input` and the limit `min`, elementwise; NaN stays NaN.

    Args:
        min: The lower limit: a number or a tensor that broadcasts with `input`.

    Example:
        >>> torch.clamp_min(torch.tensor([-2.0, 0.5]), 0)
        tensor([0.0000, 0.5000])
    """,
    node_name=scalar_or_tensor_name("ClampMin", "min"),
    numbers={"min": False},
)
op(
    "clamp_max(Tensor input, Tensor|Number max)",
    promote=DEFAULT,
    tags=BINARY,
    vjp={
        "input": lambda F, g, input, max: zero_where_not(F, F.le(input, max), g),
        "max": lambda F, g, input, max: zero_where_not(F, F.gt(input, max), g),
    },
    doc="""The smaller of `input` and the limit `max`, elementwise; NaN stays NaN.

    Args:
        max: The upper limit: a number or a tensor that broadcasts with `input`.

    Example:
        >>> torch.clamp_max(torch.tensor([-2.0, 0.5]), 0)
        tensor([-2.,  0.])
    """,
    node_name=scalar_or_tensor_name("ClampMax", "max"),
    numbers={"max": False},
)

# --- three operands -------------------------------------------------------------------------------

op(
    "_lerp_tensor(Tensor input, Tensor end, Tensor weight)",
    where="",
    tags=POINTWISE,
    vjp={
        "input": lambda F, g, weight: F.mul(g, F.conj(F.sub(1, weight))),
        "end": lambda F, g, weight: F.mul(g, F.conj(weight)),
        "weight": lambda F, g, input, end: F.mul(g, F.conj(F.sub(end, input))),
    },
    node_name="LerpBackward1",
    kernel_name="lerp_kernel_tensor",
)
op(
    "_lerp_scalar(Tensor input, Tensor end, weight)",
    where="",
    tags=POINTWISE,
    vjp={
        "input": lambda F, g, weight: F.mul(g, (1 - weight).conjugate()),
        "end": lambda F, g, weight: F.mul(g, weight.conjugate()),
    },
    node_name="LerpBackward0",
    kernel_name="lerp_kernel_scalar",
    numbers={"weight": True},
)


@composite("lerp(Tensor input, Tensor end, Tensor|Number weight)", tags=INPLACE)
def lerp(F, input, end, weight):
    """The linear interpolation ``input + weight * (end - input)``, with broadcasting.

    The tensors have one dtype.

    Args:
        end: The value at weight 1: a tensor that broadcasts with `input`.
        weight: The position between `input` (0) and `end` (1): a number or a tensor that broadcasts.

    Example:
        >>> torch.lerp(torch.tensor([0.0, 10.0]), torch.tensor([10.0, 20.0]), 0.5)
        tensor([ 5., 15.])
    """
    return F._lerp_tensor(input, end, weight) if hasattr(weight, "shape") else F._lerp_scalar(input, end, weight)


op(
    "addcmul(Tensor input, Tensor tensor1, Tensor tensor2, *, value=1)",
    promote=DEFAULT,
    tags=BINARY,
    vjp={
        "input": lambda F, g: g,
        "tensor1": lambda F, g, tensor2, value: F.mul(g, F.conj(F.mul(tensor2, value))),
        "tensor2": lambda F, g, tensor1, value: F.mul(g, F.conj(F.mul(tensor1, value))),
    },
    doc="""``input + value * tensor1 * tensor2``, elementwise with broadcasting.

    Args:
        tensor1, tensor2: The factors.
        value: The number that multiplies the product. Default: 1.

    Example:
        >>> torch.addcmul(torch.tensor([1.0, 1.0]), torch.tensor([2.0, 3.0]), torch.tensor([4.0, 5.0]), value=0.5)
        tensor([5.0000, 8.5000])
    """,
    layout=memory_layout.pointwise,
    numbers={"value": True},
    refuses={("input", BOOL): "addcmul_cpu_out"},
)
op(
    "addcdiv(Tensor input, Tensor tensor1, Tensor tensor2, *, value=1)",
    promote=DEFAULT,
    tags=BINARY,
    vjp={
        "input": lambda F, g: g,
        "tensor1": lambda F, g, tensor2, value: F.mul(g, F.conj(F.div(value, tensor2))),
        "tensor2": lambda F, g, tensor1, tensor2, value: F.neg(
            F.mul(g, F.conj(F.div(F.mul(tensor1, value), F.mul(tensor2, tensor2))))
        ),
    },
    doc="""``input + value * tensor1 / tensor2``, elementwise with broadcasting.

    Args:
        tensor1: The numerator.
        tensor2: The denominator.
        value: The number that multiplies the quotient. Default: 1.

    Raises:
        RuntimeError: All three are integer tensors.

    Example:
        >>> torch.addcdiv(torch.tensor([1.0, 1.0]), torch.tensor([2.0, 3.0]), torch.tensor([4.0, 6.0]), value=2)
        tensor([2., 2.])
    """,
    layout=memory_layout.pointwise,
    numbers={"value": True},
)

# --- complex numbers ------------------------------------------------------------------------------


def _check_parts(first, second):
    kinds = [first.dtype, second.dtype]
    if any(d.name not in ("float16", "float32", "float64") for d in kinds):
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{kinds[0].scalar_name} and {kinds[1].scalar_name}"
        )
    if kinds[0] is not kinds[1]:
        raise RuntimeError(
            f"Expected object of scalar type {kinds[0].scalar_name} but got scalar type {kinds[1].scalar_name} for "
            "second argument"
        )


def _frexp_parts_rule(real, imag):
    _check_parts(real, imag)
    return broadcast_shapes(real.shape, imag.shape), complex128 if real.dtype is float64 else complex64


op(
    "complex(Tensor real, Tensor imag)",
    where="torch",
    shape_fn=_frexp_parts_rule,
    vjp={"real": lambda F, g: F.real(g), "imag": lambda F, g: F.imag(g)},
    doc="""The complex tensor ``real + 1j * imag``, with broadcasting.

    Args:
        real: The real part, of dtype float16, float32 or float64.
        imag: The imaginary part, of the same dtype.

    Returns:
        A tensor of the complex dtype whose parts have this dtype.

    Raises:
        RuntimeError: A part has another dtype, or the two dtypes differ.

    Example:
        >>> torch.complex(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
        tensor([1.+3.j, 2.+4.j])
    """,
    layout=memory_layout.pointwise,
    out=Out("same", "Expected object of scalar type {want} but got scalar type {got} for argument 'out'"),
    check=_check_parts,
)
op(
    "polar(Tensor abs, Tensor angle)",
    where="torch",
    shape_fn=lambda abs, angle: _frexp_parts_rule(abs, angle),
    vjp={
        # By the sign of the result, as PyTorch: 0 at 0, and that of the turned angle below.
        "abs": lambda F, g, out: F.real(F.mul(F.conj(g), F.sgn(out))),
        "angle": lambda F, g, out: F.real(F.mul(F.conj(g), F.mul(out, 1j))),
    },
    doc="""The complex tensor ``abs * exp(1j * angle)``, with broadcasting.

    Args:
        abs: The absolute values, of dtype float16, float32 or float64.
        angle: The angles in radians, of the same dtype.

    Returns:
        A tensor of the complex dtype whose parts have this dtype.

    Raises:
        RuntimeError: An operand has another dtype, or the two dtypes differ.

    Example:
        >>> torch.polar(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
        tensor([1.+0.j, 2.+0.j])
    """,
    layout=memory_layout.pointwise,
    out=Out("same", "Expected object of scalar type {want} but got scalar type {got} for argument 'out'"),
    check=_check_parts,
)

# --- the rest -------------------------------------------------------------------------------------

op(
    "frexp(Tensor input)",
    outputs=("mantissa", "exponent"),
    nondiff=(1,),
    vjp={"input": lambda F, g, out1: frexp_vjp(F, g[0], out1)},
    shape_fn=lambda input: [(input.shape, input.dtype), (input.shape, int32)],
    doc="""The mantissa and the exponent of each element: ``input = mantissa * 2**exponent``.

    The absolute value of the mantissa is at least 0.5 and less than 1; 0 has mantissa 0.

    Returns:
        A named tuple `(mantissa, exponent)`: a tensor of the dtype of `input`, and an int32 tensor without a gradient.

    Example:
        >>> torch.frexp(torch.tensor([3.0, -0.25]))
        torch.return_types.frexp(
        mantissa=tensor([ 0.7500, -0.5000]),
        exponent=tensor([ 2, -1], dtype=torch.int32))

    See also:
        `torch.ldexp`, its inverse.
    """,
    layout=memory_layout.like_first,
    out=Out(
        "same",
        (
            "torch.frexp() expects mantissa to have dtype {c_want} but got {c_got}",
            "torch.frexp() expects exponent to have int dtype but got {c_got}",
        ),
    ),
)


def frexp_vjp(F, g, exponent):
    return None if g is None else F.div(g, F.exp2(F.to(exponent, F.dtype_of(g))))


op(
    "isclose(Tensor input, Tensor other, rtol=1e-05, atol=1e-08, equal_nan=False)",
    tags=POINTWISE | NONDIFF,
    shape_fn=lambda input, other: (broadcast_shapes(input.shape, other.shape), bool_),
    doc="""Whether ``abs(input - other) <= atol + rtol * abs(other)``, with broadcasting: a bool tensor.

    Infinities are close to infinities of the same sign.

    Args:
        other: The second operand: a tensor of the dtype of `input` that broadcasts with it.
        rtol: The relative tolerance. Default: 1e-5.
        atol: The absolute tolerance. Default: 1e-8.
        equal_nan: Whether NaN is close to NaN. Default: False.

    Raises:
        RuntimeError: The dtypes differ.

    Example:
        >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.000001, 2.1]))
        tensor([ True, False])
    """,
    layout=memory_layout.pointwise,
)


@composite("allclose(Tensor input, Tensor other, rtol=1e-05, atol=1e-08, equal_nan=False)")
def allclose(F, input, other, rtol, atol, equal_nan):
    """Whether all elements are close: ``abs(input - other) <= atol + rtol * abs(other)``.

    Args:
        other: The second operand: a tensor of the dtype of `input` that broadcasts with it.
        rtol: The relative tolerance. Default: 1e-5.
        atol: The absolute tolerance. Default: 1e-8.
        equal_nan: Whether NaN is close to NaN. Default: False.

    Returns:
        A Python bool.

    Raises:
        RuntimeError: The dtypes differ.

    Example:
        >>> torch.allclose(torch.tensor([1.0, 2.0]), torch.tensor([1.000001, 2.000001]))
        True

    See also:
        `torch.isclose`, `torch.testing.assert_close`.
    """
    return bool(F.isclose(input, other, rtol, atol, equal_nan).all())


def _multiply_by_power_of_two(F, input, other):
    dtype = F.dtype_of(input)
    if F.dtype_of(other).category != 1:
        return F.mul(input, F.pow(2.0, other))
    # In three steps: the power of two itself may be too large.
    wide = float32 if dtype.itemsize < 4 else dtype
    most = 1020 if wide is float64 else 126
    other = F._clamp_scalars(F.to(other, int64), -3 * most, 3 * most)
    first = F._trunc_divide(other, 3)
    second = F._trunc_divide(F.sub(other, first), 2)
    out = F.to(input, wide)
    for power in (first, second, F.sub(F.sub(other, first), second)):
        out = F.mul(out, F.pow(2.0, F.to(power, wide)))
    return F.to(out, dtype)


op(
    "_ldexp(Tensor input, Tensor other)",
    where="",
    composite=_multiply_by_power_of_two,
    shape_fn=lambda input, other: (broadcast_shapes(input.shape, other.shape), input.dtype),
    vjp={"input": lambda F, g, other: F._ldexp(g, other), "other": lambda F, g, out: F.mul(g, F.mul(out, math.log(2)))},
    doc="``input * 2**other`` of floating-point ``input``, where ``other`` has its dtype or is an integer.",
)


@composite("ldexp(Tensor input, Tensor other)", tags=INPLACE)
def ldexp(F, input, other):
    """``input * 2**other``, with broadcasting.

    The result has the dtype of a floating-point `input` where `other` is an integer.

    Args:
        other: The exponent: a tensor that broadcasts with `input`.

    Example:
        >>> torch.ldexp(torch.tensor([0.75, 1.0]), torch.tensor([2, -1]))
        tensor([3.0000, 0.5000])

    See also:
        `torch.frexp`, its inverse.
    """
    kinds = F.dtype_of(input).category, F.dtype_of(other).category
    if kinds == (FLOAT, 1) or kinds == (FLOAT, FLOAT) and F.dtype_of(input) is F.dtype_of(other):
        return F._ldexp(input, other)
    return F.mul(input, F.pow(2.0, other))


@composite(
    "float_power(Tensor|Number input, Tensor|Number exponent)",
    tags=INPLACE,
    layout=memory_layout.pointwise,
    out=Out(
        "same",
        "the output given to float_power has dtype {got} but the operation's result requires dtype {want}",
        in_place_message="the base given to float_power_ has dtype {got} but the operation's result requires "
        "dtype {want}",
    ),
)
def float_power(F, input, exponent):
    """``input ** exponent`` in double precision, with broadcasting.

    Args:
        exponent: The exponent: a tensor that broadcasts with `input`, or a number.

    Returns:
        A float64 tensor; a complex128 one where an operand is complex.

    Example:
        >>> torch.float_power(torch.tensor([2, 3]), -1)
        tensor([0.5000, 0.3333], dtype=torch.float64)
    """

    def is_complex(value):
        return isinstance(value, complex) or getattr(getattr(value, "dtype", None), "is_complex", False)

    to = complex128 if is_complex(input) or is_complex(exponent) else float64
    cast = [value.to(to) if hasattr(value, "dtype") else value for value in (input, exponent)]
    return F.pow(cast[0], cast[1])
