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

from .._dispatch.node_names import saved_argument
from ._gradient_helpers import zero_gradient

UNARY = POINTWISE | INPLACE
LOG_2, LOG_10 = math.log(2.0), math.log(10.0)


def define_smooth_op(name, vjp, doc, alias="", **more):
    """A function with a derivative everywhere; integers become floats."""
    op(f"{name}(Tensor input)", promote=INT_TO_FLOAT, tags=UNARY, vjp={"input": vjp}, alias=alias, doc=doc, **more)


def one_minus_square(F, x):
    return F.sub(1, F.mul(x, x))


def square_plus_one(F, x):
    return F.add(F.mul(x, x), 1)


def acosh_slope(F, x):
    """1 / sqrt(x*x - 1); of complex numbers on the branch that is correct on the entire plane."""
    if not F.dtype_of(x).is_complex:
        return F.rsqrt(F.sub(F.mul(x, x), 1))
    return F.mul(F.rsqrt(F.sub(x, 1)), F.rsqrt(F.add(x, 1)))


define_smooth_op(
    "acos",
    lambda F, g, input: F.mul(g, F.conj(F.neg(F.rsqrt(one_minus_square(F, input))))),
    """The inverse cosine, in radians from 0 to pi; NaN outside [-1, 1].

    Integers become the default float dtype.

    Example:
        >>> torch.acos(torch.tensor([1.0, 0.0]))
        tensor([0.0000, 1.5708])
    """,
    "arccos",
)
define_smooth_op(
    "asin",
    lambda F, g, input: F.mul(g, F.conj(F.rsqrt(one_minus_square(F, input)))),
    """The inverse sine, in radians from -pi/2 to pi/2; NaN outside [-1, 1].

    Integers become the default float dtype.

    Example:
        >>> torch.asin(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.5708])
    """,
    "arcsin",
)
define_smooth_op(
    "atan",
    lambda F, g, input: F.div(g, F.conj(square_plus_one(F, input))),
    """The inverse tangent, in radians from -pi/2 to pi/2. Integers become the default float dtype.

    Example:
        >>> torch.atan(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7854])

    See also:
        `torch.atan2`, which takes the quadrant from the signs of two operands.
    """,
    "arctan",
)
define_smooth_op(
    "acosh",
    lambda F, g, input: F.mul(g, F.conj(acosh_slope(F, input))),
    """The inverse hyperbolic cosine; NaN below 1. Integers become the default float dtype.

    Example:
        >>> torch.acosh(torch.tensor([1.0, 2.0]))
        tensor([0.0000, 1.3170])
    """,
    "arccosh",
)
define_smooth_op(
    "asinh",
    lambda F, g, input: F.mul(g, F.conj(F.rsqrt(square_plus_one(F, input)))),
    """The inverse hyperbolic sine; integers become the default float dtype.

    Example:
        >>> torch.asinh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8814])
    """,
    "arcsinh",
)
define_smooth_op(
    "atanh",
    lambda F, g, input: F.div(g, F.conj(one_minus_square(F, input))),
    """The inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.

    Integers become the default float dtype.

    Example:
        >>> torch.atanh(torch.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.5493,    inf])
    """,
    "arctanh",
)
define_smooth_op(
    "cosh",
    lambda F, g, input: F.mul(g, F.conj(F.sinh(input))),
    """The hyperbolic cosine; integers become the default float dtype.

    Example:
        >>> torch.cosh(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 1.5431])
    """,
)
define_smooth_op(
    "sinh",
    lambda F, g, input: F.mul(g, F.conj(F.cosh(input))),
    """The hyperbolic sine; integers become the default float dtype.

    Example:
        >>> torch.sinh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.1752])
    """,
)
define_smooth_op(
    "tan",
    lambda F, g, out: F.mul(g, F.conj(square_plus_one(F, out))),
    """The tangent of an angle in radians; integers become the default float dtype.

    Example:
        >>> torch.tan(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.5574])
    """,
)
define_smooth_op(
    "log2",
    lambda F, g, input: F.div(g, F.mul(F.conj(input), LOG_2)),
    """The logarithm to base 2; integers become the default float dtype.

    Example:
        >>> torch.log2(torch.tensor([1.0, 8.0]))
        tensor([0., 3.])
    """,
)
define_smooth_op(
    "log10",
    lambda F, g, input: F.div(g, F.mul(F.conj(input), LOG_10)),
    """The logarithm to base 10; integers become the default float dtype.

    Example:
        >>> torch.log10(torch.tensor([1.0, 2.0]))
        tensor([0.0000, 0.3010])
    """,
)
define_smooth_op(
    "log1p",
    lambda F, g, input: F.div(g, F.conj(F.add(input, 1))),
    """``log(1 + input)``, precise for small `input`; integers become the default float dtype.

    Example:
        >>> torch.log1p(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.6931])
    """,
    "special.log1p",
    node_name="Log1PBackward0",
)
define_smooth_op(
    "expm1",
    lambda F, g, out: F.mul(g, F.conj(F.add(out, 1))),
    """``exp(input) - 1``, precise for small `input`; integers become the default float dtype.

    Example:
        >>> torch.expm1(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.7183])
    """,
    "special.expm1",
)
define_smooth_op(
    "exp2",
    lambda F, g, out: F.mul(g, F.mul(F.conj(out), LOG_2)),
    """``2 ** input``; integers become the default float dtype.

    Example:
        >>> torch.exp2(torch.tensor([0.0, 3.0]))
        tensor([1., 8.])
    """,
    "special.exp2",
)
define_smooth_op(
    "deg2rad",
    lambda F, g: F.mul(g, math.pi / 180),
    """Angles in degrees converted to radians; integers become the default float dtype.

    Example:
        >>> torch.deg2rad(torch.tensor([0.0, 180.0]))
        tensor([0.0000, 3.1416])
    """,
    node_name="Deg2RadBackward0",
)
define_smooth_op(
    "rad2deg",
    lambda F, g: F.mul(g, 180 / math.pi),
    """Angles in radians converted to degrees; integers become the default float dtype.

    Example:
        >>> torch.rad2deg(torch.tensor([0.0, 1.0]))
        tensor([ 0.0000, 57.2958])
    """,
    node_name="Rad2DegBackward0",
)


op(
    "round(Tensor input, *, decimals=0)",
    tags=UNARY,
    vjp={"input": lambda F, g, decimals: zero_gradient(F, g)},
    node_name=lambda node: f"RoundBackward{1 if saved_argument(node, 'decimals') else 0}",
    alias="special.round",
    doc="""Each element rounded to the nearest integer, or to `decimals` decimal places; ties go to even.

    The dtype stays and the gradient is zero.

    Args:
        decimals: The number of decimal places; a negative number rounds to tens, hundreds and so on. Default: 0.

    Example:
        >>> torch.round(torch.tensor([0.5, 1.5, 2.6]))
        tensor([0., 2., 3.])
        >>> torch.round(torch.tensor([1234.5]), decimals=-2)
        tensor([1200.])
    """,
)
op(
    "frac(Tensor input)",
    tags=UNARY,
    vjp={"input": lambda F, g: g},
    doc="""The fraction of each element, with the element's sign: ``input - trunc(input)``.

    Example:
        >>> torch.frac(torch.tensor([1.25, -1.25]))
        tensor([ 0.2500, -0.2500])
    """,
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
    doc="""The sign of a real number; of a complex one, ``input / abs(input)``, and 0 at 0.

    Example:
        >>> torch.sgn(torch.tensor([3 + 4j, 0j]))
        tensor([0.6000+0.8000j, 0.0000+0.0000j])
        >>> torch.sgn(torch.tensor([-2.0, 5.0]))
        tensor([-1.,  1.])
    """,
    out=Out("same", FOUND_DTYPE),
)
op(
    "signbit(Tensor input)",
    promote=ALWAYS_BOOL,
    tags=POINTWISE | NONDIFF,
    doc="""Whether the sign bit of each element is set, also for -0.0: a bool tensor.

    Example:
        >>> torch.signbit(torch.tensor([-1.0, -0.0, 0.0]))
        tensor([ True,  True, False])
    """,
    out=Out("same", "{name} does not support non-boolean outputs."),
)
op(
    "positive(Tensor input)",
    tags=MAYBE_VIEW,
    vjp={"input": lambda F, g: g},
    shape_fn=lambda input: (input.shape, input.dtype),
    doc="""`input` itself.

    Raises:
        RuntimeError: `input` is a bool tensor.

    Example:
        >>> torch.positive(torch.tensor([-1.0, 2.0]))
        tensor([-1.,  2.])
    """,
)
op(
    "isposinf(Tensor input)",
    promote=ALWAYS_BOOL,
    tags=POINTWISE | NONDIFF,
    opaque="values",
    doc="""Whether each element is positive infinity: a bool tensor.

    Example:
        >>> torch.isposinf(torch.tensor([1.0, float("inf"), -float("inf")]))
        tensor([False,  True, False])
    """,
    out=Out("same", "{name} does not support non-boolean outputs."),
)
op(
    "isneginf(Tensor input)",
    promote=ALWAYS_BOOL,
    tags=POINTWISE | NONDIFF,
    opaque="values",
    doc="""Whether each element is negative infinity: a bool tensor.

    Example:
        >>> torch.isneginf(torch.tensor([1.0, float("inf"), -float("inf")]))
        tensor([False, False,  True])
    """,
    out=Out("same", "{name} does not support non-boolean outputs."),
)
op(
    "isreal(Tensor input)",
    promote=ALWAYS_BOOL,
    tags=POINTWISE | NONDIFF,
    doc="""Whether the imaginary part of each element is zero: a bool tensor, all True for real dtypes.

    Example:
        >>> torch.isreal(torch.tensor([1 + 0j, 1j]))
        tensor([ True, False])
    """,
    layout=memory_layout.like_first,
)


def angle_vjp(F, g, input):
    if not F.dtype_of(input).is_complex:
        return F._zeros_like(g)
    size = F.abs(input)
    zero = F.eq(size, 0)
    size = F.where(zero, F._ones_like(size), size)  # divided by twice: its square may be no number of the dtype
    return F.where(zero, 0, F.mul(F.mul(F.div(input, size), 1j), F.div(g, size)))


op(
    "angle(Tensor input)",
    promote=INT_TO_FLOAT,
    vjp={"input": angle_vjp},
    shape_fn=lambda input: (input.shape, input.dtype.to_real()),
    doc="""The angle of each complex number in radians; of a real number, 0 or pi, and NaN for NaN.

    The result has the real dtype; integers become the default float dtype.

    Example:
        >>> torch.angle(torch.tensor([1j, 1 + 0j]))
        tensor([1.5708, 0.0000])
        >>> torch.angle(torch.tensor([-1.0, 1.0]))
        tensor([3.1416, 0.0000])
    """,
)
op(
    "conj_physical(Tensor input)",
    tags=UNARY | MAYBE_VIEW,
    vjp={"input": lambda F, g: F.conj(g)},
    doc="""The complex conjugate, computed at once; a real tensor itself.

    Example:
        >>> torch.conj_physical(torch.tensor([1 + 2j]))
        tensor([1.-2.j])

    See also:
        `torch.conj`, which returns a view with the conjugate bit.
    """,
    out=Out("same", FOUND_DTYPE),
    overlap=Overlap("allowed"),
)
op(
    "imag(Tensor input)",
    tags=VIEW,
    vjp={"input": lambda F, g: F.mul(g, 1j)},
    doc="""The imaginary part of a complex tensor: a view of it.

    Raises:
        RuntimeError: `input` is real.

    Example:
        >>> x = torch.tensor([1 + 2j])
        >>> torch.imag(x).fill_(5.0)
        tensor([5.])
        >>> x
        tensor([1.+5.j])
    """,
    node_name="SelectBackward0(ViewAsRealBackward0(input))",
)
op(
    "nan_to_num(Tensor input, nan=None, posinf=None, neginf=None)",
    tags=UNARY,
    vjp={"input": lambda F, g, input: F.where(F.isfinite(input), g, 0)},
    doc="""`input` with numbers in place of NaN and infinities.

    Args:
        nan: Replaces NaN. Default: 0.
        posinf: Replaces positive infinity. Default: the largest finite value of the dtype.
        neginf: Replaces negative infinity. Default: the smallest finite value of the dtype.

    Example:
        >>> torch.nan_to_num(torch.tensor([1.0, float("nan"), float("inf")]), posinf=9.0)
        tensor([1., 0., 9.])
    """,
    layout=memory_layout.like_first,
    out=Out("same", "nan_to_num: dtype of out: {got} should be same as input: {want}"),
)
op(
    "bitwise_not(Tensor input)",
    tags=UNARY | NONDIFF,
    doc="""The complement of every bit of an integer; of a bool, logical not.

    Raises:
        NotImplementedError: `input` is floating point or complex.

    Example:
        >>> torch.bitwise_not(torch.tensor([0, 5]))
        tensor([-1, -6])
        >>> torch.bitwise_not(torch.tensor([True, False]))
        tensor([False,  True])
    """,
    out=Out("same", FOUND_DTYPE),
)


@composite("_conj(Tensor input)", alias="conj")
def conj(F, input):
    """The complex conjugate: a view with the conjugate bit set; a real tensor itself.

    An op that needs the values works them out.

    Example:
        >>> x = torch.tensor([1 + 2j])
        >>> y = x.conj()
        >>> y.is_conj(), y.data_ptr() == x.data_ptr()
        (True, True)
        >>> y.imag.fill_(5)
        tensor([5.])
        >>> x
        tensor([1.-5.j])

    See also:
        `torch.resolve_conj`, `torch.conj_physical`.
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
    """`input` without the conjugate bit: a copy with the values worked out, or `input` itself.

    Example:
        >>> x = torch.tensor([1 + 2j]).conj()
        >>> y = torch.resolve_conj(x)
        >>> x.is_conj(), y.is_conj()
        (True, False)
    """
    return F.clone(input) if input.is_conj() else input


@composite("resolve_neg(Tensor input)")
def resolve_neg(F, input):
    """`input` without the negative bit: a copy with the values worked out, or `input` itself.

    Example:
        >>> x = torch.tensor([1 + 2j]).conj().imag
        >>> y = torch.resolve_neg(x)
        >>> x.is_neg(), y.is_neg(), y
        (True, False, tensor([-2.]))
    """
    return F.clone(input) if input.is_neg() else input
