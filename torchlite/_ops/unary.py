"""Functions of one operand: inverse and hyperbolic functions, rounding, classification, parts of complex numbers."""

import math

from torchlite._dispatch import (
    ALWAYS_BOOL,
    INPLACE,
    INT_TO_FLOAT,
    MAYBE_VIEW,
    NONDIFF,
    POINTWISE,
    VIEW,
    Out,
    Overlap,
    composite,
    memory_layout,
    op,
)
from torchlite._dispatch.op_record import FOUND_DTYPE
from torchlite._tensor.conj_neg_views import CONJ, NEG, toggle_conj_neg

UNARY = POINTWISE | INPLACE
LOG_2, LOG_10 = math.log(2.0), math.log(10.0)


def zero_gradient(F, g):
    return F._zeros_like(g)


def define_smooth_op(name, vjp, doc, alias="", **more):
    """A function with a derivative everywhere; integers become floats."""
    op(f"{name}(Tensor input)", promote=INT_TO_FLOAT, tags=UNARY, vjp={"input": vjp}, alias=alias, doc=doc, **more)


def one_minus_square(F, x):
    return F.sub(1, F.mul(x, x))


def square_plus_one(F, x):
    return F.add(F.mul(x, x), 1)


def acosh_slope(F, x):
    """1 / sqrt(x*x - 1), on the branch that is correct on the entire complex plane."""
    return F.mul(F.rsqrt(F.sub(x, 1)), F.rsqrt(F.add(x, 1)))


define_smooth_op(
    "acos",
    lambda F, g, input: F.mul(g, F.conj(F.neg(F.rsqrt(one_minus_square(F, input))))),
    "The inverse cosine, in radians.",
    "arccos",
)
define_smooth_op(
    "asin",
    lambda F, g, input: F.mul(g, F.conj(F.rsqrt(one_minus_square(F, input)))),
    "The inverse sine, in radians.",
    "arcsin",
)
define_smooth_op(
    "atan",
    lambda F, g, input: F.div(g, F.conj(square_plus_one(F, input))),
    "The inverse tangent, in radians.",
    "arctan",
)
define_smooth_op(
    "acosh", lambda F, g, input: F.mul(g, F.conj(acosh_slope(F, input))), "The inverse hyperbolic cosine.", "arccosh"
)
define_smooth_op(
    "asinh",
    lambda F, g, input: F.mul(g, F.conj(F.rsqrt(square_plus_one(F, input)))),
    "The inverse hyperbolic sine.",
    "arcsinh",
)
define_smooth_op(
    "atanh",
    lambda F, g, input: F.div(g, F.conj(one_minus_square(F, input))),
    "The inverse hyperbolic tangent.",
    "arctanh",
)
define_smooth_op("cosh", lambda F, g, input: F.mul(g, F.conj(F.sinh(input))), "The hyperbolic cosine.")
define_smooth_op("sinh", lambda F, g, input: F.mul(g, F.conj(F.cosh(input))), "The hyperbolic sine.")
define_smooth_op("tan", lambda F, g, out: F.mul(g, F.conj(square_plus_one(F, out))), "The tangent.")
define_smooth_op("log2", lambda F, g, input: F.div(g, F.mul(F.conj(input), LOG_2)), "The logarithm to base 2.")
define_smooth_op("log10", lambda F, g, input: F.div(g, F.mul(F.conj(input), LOG_10)), "The logarithm to base 10.")
define_smooth_op(
    "log1p",
    lambda F, g, input: F.div(g, F.conj(F.add(input, 1))),
    "``log(1 + input)``, precise for small ``input``.",
    "special.log1p",
    node_name="Log1PBackward0",
)
define_smooth_op(
    "expm1",
    lambda F, g, out: F.mul(g, F.conj(F.add(out, 1))),
    "``exp(input) - 1``, precise for small ``input``.",
    "special.expm1",
)
define_smooth_op(
    "exp2", lambda F, g, out: F.mul(g, F.mul(F.conj(out), LOG_2)), "2 to the power of ``input``.", "special.exp2"
)
define_smooth_op("deg2rad", lambda F, g: F.mul(g, math.pi / 180), "Degrees to radians.", node_name="Deg2RadBackward0")
define_smooth_op("rad2deg", lambda F, g: F.mul(g, 180 / math.pi), "Radians to degrees.", node_name="Rad2DegBackward0")


op(
    "round(Tensor input, *, decimals=0)",
    tags=UNARY,
    vjp={"input": zero_gradient},
    alias="special.round",
    doc="To the nearest integer, or to ``decimals`` decimal places (negative: to tens, hundreds ...); ties go to even.",
)
op(
    "frac(Tensor input)",
    tags=UNARY,
    vjp={"input": lambda F, g: g},
    doc="The fraction of ``input``, with its sign.",
    out=Out("same", FOUND_DTYPE),
)


def sgn_vjp(F, g, input, out):
    """For complex z: g/|z| without its component along z."""
    if not F.dtype_of(input).is_complex:
        return F._zeros_like(g)
    size = F.abs(input)
    along = F.mul(F.to(F.real(F.mul(g, F.conj(out))), F.dtype_of(g)), out)
    return F.where(F.eq(size, 0), 0, F.div(F.sub(g, along), F.where(F.eq(size, 0), 1, size)))


op(
    "sgn(Tensor input)",
    tags=UNARY,
    vjp={"input": sgn_vjp},
    doc="The sign of a real number; of a complex one, ``input / |input|`` (0 at 0).",
    out=Out("same", FOUND_DTYPE),
)
op(
    "signbit(Tensor input)",
    promote=ALWAYS_BOOL,
    tags=POINTWISE | NONDIFF,
    doc="Whether the sign bit is set (also for -0.0).",
    out=Out("same", "{name} does not support non-boolean outputs."),
)
op(
    "positive(Tensor input)",
    tags=MAYBE_VIEW,
    vjp={"input": lambda F, g: g},
    shape_fn=lambda input: (input.shape, input.dtype),
    doc="``input`` itself. RuntimeError for a bool tensor.",
)
op(
    "isposinf(Tensor input)",
    promote=ALWAYS_BOOL,
    tags=POINTWISE | NONDIFF,
    doc="Whether each element is positive infinity.",
    out=Out("same", "{name} does not support non-boolean outputs."),
)
op(
    "isneginf(Tensor input)",
    promote=ALWAYS_BOOL,
    tags=POINTWISE | NONDIFF,
    doc="Whether each element is negative infinity.",
    out=Out("same", "{name} does not support non-boolean outputs."),
)
op(
    "isreal(Tensor input)",
    promote=ALWAYS_BOOL,
    tags=POINTWISE | NONDIFF,
    doc="Whether each element's imaginary part is zero.",
    layout=memory_layout.like_first,
)


def angle_vjp(F, g, input):
    if not F.dtype_of(input).is_complex:
        return F._zeros_like(g)
    square = F.real(F.mul(input, F.conj(input)))
    zero = F.eq(square, 0)
    return F.where(zero, 0, F.mul(F.mul(input, 1j), F.div(g, F.where(zero, 1, square))))


op(
    "angle(Tensor input)",
    promote=INT_TO_FLOAT,
    vjp={"input": angle_vjp},
    shape_fn=lambda input: (input.shape, input.dtype.to_real()),
    doc="The angle in radians; for real numbers 0 or pi.",
)
op(
    "conj_physical(Tensor input)",
    tags=UNARY | MAYBE_VIEW,
    vjp={"input": lambda F, g: F.conj(g)},
    doc="The complex conjugate.",
    out=Out("same", FOUND_DTYPE),
    overlap=Overlap("allowed"),
)
op(
    "imag(Tensor input)",
    tags=VIEW,
    vjp={"input": lambda F, g: F.mul(g, 1j)},
    doc="The imaginary part, a view. RuntimeError for a real tensor.",
)
op(
    "nan_to_num(Tensor input, nan=None, posinf=None, neginf=None)",
    tags=UNARY,
    vjp={"input": lambda F, g, input: F.where(F.isfinite(input), g, 0)},
    doc="NaN becomes ``nan`` (0), infinities ``posinf`` and ``neginf`` (the largest and smallest finite values).",
    layout=memory_layout.like_first,
    out=Out("same", "nan_to_num: dtype of out: {got} should be same as input: {want}"),
)
op(
    "bitwise_not(Tensor input)",
    tags=UNARY | NONDIFF,
    doc="The complement of every bit; for bools, logical not.",
    out=Out("same", FOUND_DTYPE),
)


@composite("_conj(Tensor input)", alias="conj")
def conj(F, input):
    """The complex conjugate: a view with the conjugate bit, which ops work out where they need it; a real tensor
    itself.

    >>> x = torch.tensor([1 + 2j])
    >>> y = x.conj()
    >>> y.is_conj(), y.data_ptr() == x.data_ptr()
    (True, True)
    >>> y.imag.fill_(5)
    tensor([5.])
    >>> x
    tensor([1.-5.j])
    """
    return toggle_conj_neg(input, CONJ) if input.dtype.is_complex else input


@composite("_conj_physical(Tensor input)")
def conj_physical(F, input):
    """The complex conjugate, computed."""
    return F.conj(input)


@composite("_neg_view(Tensor input)")
def neg_view(F, input):
    """The negative: a view with the negative bit, which ops work out where they need it."""
    return toggle_conj_neg(input, NEG)


@composite("resolve_conj(Tensor input)")
def resolve_conj(F, input):
    """A copy in which the conjugate bit is worked out; a tensor without it itself."""
    return F.clone(input) if input.is_conj() else input


@composite("resolve_neg(Tensor input)")
def resolve_neg(F, input):
    """A copy in which the negative bit is worked out; a tensor without it itself."""
    return F.clone(input) if input.is_neg() else input
