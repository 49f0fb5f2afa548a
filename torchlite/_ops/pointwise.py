"""Elementwise ops: arithmetic, choice and the usual functions."""

from __future__ import annotations

import warnings

import numpy as np

from torchlite._dispatch import (
    ALWAYS_BOOL,
    CAST,
    DEFAULT,
    INPLACE,
    INT_TO_FLOAT,
    MAYBE_VIEW,
    NONDIFF,
    POINTWISE,
    Out,
    call,
    composite,
    memory_layout,
    op,
)
from torchlite._dispatch.node_names import scalar_or_tensor_name
from torchlite._dispatch.op_record import FOUND_DTYPE
from torchlite._dispatch.shapes import broadcast_shapes
from torchlite._dispatch.type_promotion import cast_scalar, check_int64, check_scalar_range, result_dtype
from torchlite._types.dtypes import int64

from ._gradient_helpers import make_missing_derivative_formula, zero_gradient
from .node_graphs import number_or_tensor

_SINGLE = np.dtype("float32")
PW = POINTWISE | INPLACE


def define_binary_op(name: str, *, names=("input", "other"), promote=DEFAULT, tags=PW, **more):
    """Define an op of two operands, which may be Python numbers."""
    return op(f"{name}(Tensor|Number {names[0]}, Tensor|Number {names[1]})", promote=promote, tags=tags, **more)


def define_unary_op(name: str, gradient=None, *, promote=INT_TO_FLOAT, tags=PW, alias="", **more):
    return op(
        f"{name}(Tensor input)",
        promote=promote,
        vjp=None if gradient is None else {"input": gradient},
        tags=tags,
        alias=alias,
        **more,
    )


def conj_of(F, value):
    """The conjugate of an array or a Python number."""
    if getattr(value, "dtype", None) is _SINGLE:  # the usual one, in a third of the time
        return value
    return F.conj(value) if hasattr(value, "shape") else value.conjugate() if isinstance(value, complex) else value


def dtype_name(value) -> str:
    return getattr(getattr(value, "dtype", None), "name", "bool" if isinstance(value, bool) else "")


# --- arithmetic -----------------------------------------------------------------------------------


def check_sub(input, other):
    bools = (dtype_name(input) == "bool") + (dtype_name(other) == "bool")
    if bools == 2:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if bools:
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )


def sub_rule(input, other):
    """Shape and dtype function, called only when the kernel fails, for the error message."""
    check_sub(input, other)
    arrays = [value for value in (input, other) if hasattr(value, "dtype")]
    return broadcast_shapes(*(value.shape for value in arrays)), arrays[0].dtype


def neg_rule(input):
    if dtype_name(input) == "bool":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )
    return input.shape, input.dtype


def check_power(input, exponent):
    if exponent.__class__ is int and exponent < 0 and hasattr(input, "dtype") and input.dtype.category < 2:
        raise RuntimeError("Integers to negative integer powers are not allowed.")


def pow_base(F, g, input, exponent):
    if not hasattr(exponent, "shape"):
        if exponent == 0:
            return F._zeros_like(g)
        return F.mul(g, F.mul(F.conj(F.pow(input, exponent - 1)), conj_of(F, exponent)))
    lowered = F.mul(g, F.conj(F.mul(exponent, F.pow(input, F.sub(exponent, 1)))))
    return F.where(F.eq(exponent, 0), 0, lowered)


def pow_exponent(F, g, input, exponent, out):
    """out * log(input), and 0 where input is 0 (unless the power is infinite there)."""
    if not hasattr(input, "shape"):
        if input == 0:
            return F.where(F.ge(F.real(exponent), 0), 0, F.mul(g, F.mul(out, float("-inf"))))
        import cmath

        log = cmath.log(input)
        return F.mul(
            g,
            F.mul(
                F.conj(out), log.conjugate() if isinstance(input, complex) else log.real if input > 0 else float("nan")
            ),
        )
    zero = F.logical_and(F.eq(input, 0), F.ge(F.real(exponent), 0))
    return F.where(zero, 0, F.mul(g, F.conj(F.mul(out, F.log(F.where(zero, 1, input))))))


define_binary_op(
    "add",
    where="",
    vjp={"input": lambda F, g: g, "other": lambda F, g: g},
    doc="""``input + other``, elementwise with broadcasting; bools combine by logical or.

    The operands promote to a common dtype.

    Example:
        >>> torch.tensor([1.0, 2.0]) + torch.tensor([10.0, 20.0])
        tensor([11., 22.])
    """,
)
define_binary_op(
    "sub",
    where="",
    check=check_sub,
    shape_fn=sub_rule,
    vjp={"input": lambda F, g: g, "other": lambda F, g: F.neg(g)},
    node_name=("SubBackward0", "RsubBackward1(other)"),
    doc="""``input - other``, elementwise with broadcasting.

    The operands promote to a common dtype.

    Raises:
        RuntimeError: An operand is a bool tensor.

    Example:
        >>> torch.tensor([10.0, 20.0]) - torch.tensor([1.0, 2.0])
        tensor([ 9., 18.])
    """,
)
define_binary_op(
    "mul",
    alias="multiply",
    vjp={
        "input": lambda F, g, other: F.mul(g, conj_of(F, other)),
        "other": lambda F, g, input: F.mul(g, conj_of(F, input)),
    },
    doc="""``input * other``, elementwise with broadcasting; bools combine by logical and.

    The operands promote to a common dtype.

    Example:
        >>> torch.mul(torch.tensor([1.0, 2.0]), torch.tensor([[10.0], [20.0]]))
        tensor([[10., 20.],
                [20., 40.]])
    """,
    scalar_rounding="never",
    accepts_scalars=True,
)
define_binary_op(
    "div",
    where="",
    promote=INT_TO_FLOAT,
    vjp={
        "input": lambda F, g, other: F.div(g, conj_of(F, other)),
        "other": lambda F, g, input, other: F.neg(F.mul(g, F.conj(F.div(F.div(input, other), other)))),
    },
    scalar_rounding="never",
    doc="""``input / other``, elementwise with broadcasting: true division.

    Integers and bools become the default float dtype. Division by zero gives an infinity or NaN.

    Example:
        >>> torch.tensor([1, 2]) / torch.tensor([2, 0])
        tensor([0.5000,    inf])
    """,
)
define_binary_op(
    "pow",
    names=("input", "exponent"),
    check=check_power,
    vjp={"input": pow_base, "exponent": pow_exponent},
    doc="""``input ** exponent``, elementwise with broadcasting.

    The operands promote to a common dtype. A negative base to a fractional exponent gives NaN.

    Args:
        exponent: The exponent: a tensor that broadcasts with `input`, or a number.

    Raises:
        RuntimeError: `input` is an integer tensor and `exponent` a negative int.

    Example:
        >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
        tensor([1., 4., 9.])

    See also:
        `torch.float_power`.
    """,
    node_name=scalar_or_tensor_name("Pow", "exponent"),
    numbers={"exponent": False},
)
define_binary_op(
    "floor_divide",
    tags=PW,
    vjp=dict.fromkeys(("input", "other"), make_missing_derivative_formula("floor_divide")),
    doc="""``floor(input / other)``, elementwise with broadcasting.

    The operands promote to a common dtype. The op has no derivative: use ``torch.div(..., rounding_mode="floor")`` for
    one (of zero).

    Raises:
        RuntimeError: An integer is divided by zero.

    Example:
        >>> torch.floor_divide(torch.tensor([7, -7]), 2)
        tensor([ 3, -4])
    """,
    node_name="NotImplemented",
    scalar_rounding="never",
    accepts_scalars=True,
)
define_binary_op(
    "_trunc_divide",
    where="",
    tags=POINTWISE,
    vjp={"input": lambda F, g: F._zeros_like(g), "other": lambda F, g: F._zeros_like(g)},
    doc="``input / other`` rounded towards zero.",
    node_name="DivBackward2",
    scalar_rounding="never",
)
define_binary_op(
    "_floor_divide",
    where="",
    tags=POINTWISE,
    vjp={"input": lambda F, g: F._zeros_like(g), "other": lambda F, g: F._zeros_like(g)},
    doc="``input / other`` rounded down, with a gradient (of zero).",
    node_name="DivBackward2",
    scalar_rounding="never",
)


def scale_by_alpha(F, input, other, alpha):
    """alpha * other, in PyTorch's dtype: alpha must not raise the category of the result."""
    if alpha.__class__ is int and alpha == 1:
        return other
    to = result_dtype([input, other])
    if isinstance(alpha, bool) and to.category:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, (float, complex)) and to.category < 2:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and to.category < 3:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    check_scalar_range(alpha, to)
    if not to.category:
        alpha = bool(check_int64(alpha))
        return F.mul(other, alpha) if hasattr(other, "shape") else other and alpha
    return call.hide_node(F.mul(other, alpha)) if hasattr(other, "shape") else other * alpha


@composite(
    "add_alpha(Tensor|Number input, Tensor|Number other, *, alpha=1)",
    where="",
    alias="torch.add Tensor.add",
    tags=INPLACE,
    base_op="add",
    accepts_scalars=True,
)
def add_alpha(F, input, other, alpha):
    """``input + alpha * other``, elementwise with broadcasting.

    The operands promote to a common dtype; `alpha` does not take part in it.

    Args:
        alpha: The number that multiplies `other`. Default: 1.

    Raises:
        RuntimeError: `alpha` is of a higher category than the result: a float for integers, a complex number for
            floats, a bool for numbers.

    Example:
        >>> torch.add(torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]), alpha=0.5)
        tensor([ 6., 12.])
    """
    return F.add(input, scale_by_alpha(F, input, other, alpha))


@composite(
    "sub_alpha(Tensor|Number input, Tensor|Number other, *, alpha=1)",
    where="",
    alias="torch.sub Tensor.sub torch.subtract Tensor.subtract",
    tags=INPLACE,
    base_op="sub",
    accepts_scalars=True,
)
def sub_alpha(F, input, other, alpha):
    """``input - alpha * other``, elementwise with broadcasting.

    The operands promote to a common dtype; `alpha` does not take part in it.

    Args:
        alpha: The number that multiplies `other`. Default: 1.

    Raises:
        RuntimeError: An operand is a bool tensor, or `alpha` is of a higher category than the result.

    Example:
        >>> torch.sub(torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]), alpha=0.5)
        tensor([-4., -8.])
    """
    return F.sub(input, scale_by_alpha(F, input, other, alpha))


@composite(
    "rsub(Tensor input, Tensor|Number other, *, alpha=1)",
    where="torch",
    node_name=number_or_tensor("other", "RsubBackward1(input)", "RsubBackward0(input, other)"),
)
def rsub(F, input, other, alpha):
    """``other - alpha * input``, elementwise with broadcasting.

    Args:
        alpha: The number that multiplies `input`. Default: 1.

    Raises:
        RuntimeError: An operand is a bool tensor, or `alpha` is of a higher category than the result.

    Example:
        >>> torch.rsub(torch.tensor([1.0, 2.0]), 10.0)
        tensor([9., 8.])

    See also:
        `torch.sub`.
    """
    check_sub(input, other)
    return F.sub(other, scale_by_alpha(F, other, input, alpha))


@composite(
    "div_rounded(Tensor|Number input, Tensor|Number other, *, rounding_mode=None)",
    where="",
    alias="torch.div Tensor.div torch.divide Tensor.divide torch.true_divide Tensor.true_divide",
    tags=INPLACE,
    base_op="div",
    accepts_scalars=True,
)
def div_rounded(F, input, other, rounding_mode):
    """``input / other``, elementwise with broadcasting, with the quotient rounded on request.

    True division turns integers and bools into the default float dtype. The two rounding modes keep the promoted dtype;
    their gradient is zero.

    Args:
        rounding_mode: None for true division, `"trunc"` to round towards zero, `"floor"` to round down. Default: None.

    Raises:
        RuntimeError: `rounding_mode` is another value.

    Example:
        >>> torch.div(torch.tensor([7, -7]), 2)
        tensor([ 3.5000, -3.5000])
        >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="trunc")
        tensor([ 3, -3])
        >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="floor")
        tensor([ 3, -4])
    """
    if rounding_mode is None:
        return F.div(input, other)
    if rounding_mode == "floor":
        return F._floor_divide(input, other)
    if rounding_mode == "trunc":
        return F._trunc_divide(input, other)
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


# --- functions of one operand ---------------------------------------------------------------------


define_unary_op(
    "neg",
    lambda F, g: F.neg(g),
    promote=DEFAULT,
    alias="negative",
    shape_fn=neg_rule,
    doc="""``-input``, elementwise.

    Raises:
        RuntimeError: `input` is a bool tensor.

    Example:
        >>> torch.neg(torch.tensor([1.0, -2.0]))
        tensor([-1.,  2.])
    """,
    out=Out("same", FOUND_DTYPE),
)
define_unary_op(
    "conj",
    lambda F, g: F.conj(g),
    promote=DEFAULT,
    where="",
    tags=POINTWISE | MAYBE_VIEW,
    doc="""The complex conjugate, computed at once; a real tensor itself.

    Example:
        >>> torch.conj_physical(torch.tensor([1 + 2j]))
        tensor([1.-2.j])

    See also:
        `torch.conj`, which returns a view with the conjugate bit.
    """,
)
op(
    "abs(Tensor input)",
    tags=PW,
    alias="absolute",
    vjp={"input": lambda F, g, input: F.mul(g, F.sgn(input))},
    shape_fn=lambda input: (input.shape, input.dtype.to_real()),
    doc="""The absolute value; of a complex tensor, the modulus in the real dtype.

    The gradient at 0 is 0.

    Example:
        >>> torch.abs(torch.tensor([-1.5, 2.0]))
        tensor([1.5000, 2.0000])
        >>> torch.abs(torch.tensor([3 + 4j]))
        tensor([5.])
    """,
    out=Out(
        "same", FOUND_DTYPE, complex_to_real=True, in_place_message="In-place abs is not supported for complex tensors."
    ),
)
define_unary_op(
    "sign",
    zero_gradient,
    promote=DEFAULT,
    doc="""The sign of each element: -1, 0 or 1; 0 for NaN.

    The dtype stays and the gradient is zero.

    Raises:
        NotImplementedError: `input` is complex (see `torch.sgn`).

    Example:
        >>> torch.sign(torch.tensor([-2.5, 0.0, 7.0]))
        tensor([-1.,  0.,  1.])
    """,
    out=Out("same", FOUND_DTYPE),
)
define_unary_op(
    "exp",
    lambda F, g, out: F.mul(g, F.conj(out)),
    doc="""The exponential ``e ** input``; integers become the default float dtype.

    Example:
        >>> torch.exp(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 2.7183])
    """,
)
define_unary_op(
    "log",
    lambda F, g, input: F.div(g, F.conj(input)),
    doc="""The natural logarithm; integers become the default float dtype.

    It is minus infinity at 0, and NaN for negative real numbers.

    Example:
        >>> torch.log(torch.tensor([1.0, 2.0, 0.0]))
        tensor([0.0000, 0.6931,   -inf])
    """,
)
define_unary_op(
    "sqrt",
    lambda F, g, out: F.div(g, F.mul(F.conj(out), 2)),
    doc="""The square root; NaN for negative real numbers. Integers become the default float dtype.

    Example:
        >>> torch.sqrt(torch.tensor([4.0, 2.0]))
        tensor([2.0000, 1.4142])
    """,
)
define_unary_op(
    "rsqrt",
    lambda F, g, out: F.mul(F.mul(g, -0.5), F.conj(F.mul(F.mul(out, out), out))),
    doc="""The reciprocal square root ``1 / sqrt(input)``; integers become the default float dtype.

    It is infinite at 0, and NaN for negative real numbers.

    Example:
        >>> torch.rsqrt(torch.tensor([4.0, 0.25]))
        tensor([0.5000, 2.0000])
    """,
)
define_unary_op(
    "reciprocal",
    lambda F, g, out: F.neg(F.mul(g, F.conj(F.mul(out, out)))),
    doc="""``1 / input``, elementwise; integers become the default float dtype.

    Example:
        >>> torch.reciprocal(torch.tensor([2.0, 4.0]))
        tensor([0.5000, 0.2500])
    """,
)
op(
    "square(Tensor input)",
    tags=PW,
    vjp={"input": lambda F, g, input: F.mul(g, F.conj(F.mul(input, 2)))},
    shape_fn=lambda input: (input.shape, input.dtype if input.dtype.category else int64),
    doc="""``input * input``, elementwise; bools become int64.

    Example:
        >>> torch.square(torch.tensor([-3.0, 2.0]))
        tensor([9., 4.])
    """,
    node_name="PowBackward0",
)
define_unary_op(
    "sin",
    lambda F, g, input: F.mul(g, F.conj(F.cos(input))),
    doc="""The sine of an angle in radians; integers become the default float dtype.

    Example:
        >>> torch.sin(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8415])
    """,
)
define_unary_op(
    "cos",
    lambda F, g, input: F.neg(F.mul(g, F.conj(F.sin(input)))),
    doc="""The cosine of an angle in radians; integers become the default float dtype.

    Example:
        >>> torch.cos(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 0.5403])
    """,
)
define_unary_op(
    "tanh",
    lambda F, g, out: F.mul(g, conj_of(F, F.sub(1, F.mul(out, out)))),
    doc="""The hyperbolic tangent; integers become the default float dtype.

    Example:
        >>> torch.tanh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """,
)
define_unary_op(
    "sigmoid",
    lambda F, g, out: F.mul(g, F.conj(F.mul(out, F.sub(1, out)))),
    alias="special.expit",
    doc="""The logistic function ``1 / (1 + exp(-input))``; integers become the default float dtype.

    Example:
        >>> torch.sigmoid(torch.tensor([0.0, 1.0]))
        tensor([0.5000, 0.7311])

    See also:
        `torch.logit`, its inverse.
    """,
)
define_unary_op(
    "floor",
    zero_gradient,
    promote=DEFAULT,
    doc="""The largest integer that is not above each element. The dtype stays and the gradient is zero.

    Example:
        >>> torch.floor(torch.tensor([1.7, -1.2]))
        tensor([ 1., -2.])
    """,
    out=Out("same", FOUND_DTYPE),
)
define_unary_op(
    "ceil",
    zero_gradient,
    promote=DEFAULT,
    doc="""The smallest integer that is not below each element. The dtype stays and the gradient is zero.

    Example:
        >>> torch.ceil(torch.tensor([1.2, -1.7]))
        tensor([ 2., -1.])
    """,
    out=Out("same", FOUND_DTYPE),
)
define_unary_op(
    "trunc",
    zero_gradient,
    promote=DEFAULT,
    alias="fix",
    doc="""Each element without its fraction: rounded towards zero. The dtype stays and the gradient is zero.

    Example:
        >>> torch.trunc(torch.tensor([1.7, -1.7]))
        tensor([ 1., -1.])
    """,
    out=Out("same", FOUND_DTYPE),
)
for _name, _what, _of_three in (
    ("isnan", "NaN", "[False, False,  True]"),
    ("isinf", "infinite", "[False,  True, False]"),
    ("isfinite", "neither infinite nor NaN", "[ True, False, False]"),
):
    op(
        f"{_name}(Tensor input)",
        promote=ALWAYS_BOOL,
        tags=POINTWISE | NONDIFF,
        opaque="values",
        doc=f"""Whether each element is {_what}: a bool tensor.

        A complex element is tested by both of its parts.

        Example:
            >>> torch.{_name}(torch.tensor([1.0, float("inf"), float("nan")]))
            tensor({_of_three})
        """,
    )
op(
    "real(Tensor input)",
    tags=MAYBE_VIEW,
    shape_fn=lambda input: (input.shape, input.dtype.to_real()),
    vjp={"input": lambda F, g, input_dtype: F.to(g, input_dtype)},
    doc="""The real part: a view of a complex tensor, and a real tensor itself.

    Example:
        >>> x = torch.tensor([1 + 2j])
        >>> torch.real(x)
        tensor([1.])
        >>> torch.real(x).fill_(5.0)
        tensor([5.])
        >>> x
        tensor([5.+2.j])
    """,
    node_name="SelectBackward0(ViewAsRealBackward0(input))",
)
op(
    "to(Tensor input, dtype)",
    where="",
    tags=MAYBE_VIEW | CAST,
    shape_fn=lambda input, dtype: (input.shape, dtype),
    vjp={"input": lambda F, g, input_dtype: F.to(g, input_dtype)},
    node_name="ToCopyBackward0",
    doc="""`input` with another dtype; `input` itself where it has this dtype already.

    Example:
        >>> torch.tensor([1.7, -1.7]).to(torch.int64)
        tensor([ 1, -1])
    """,
)

# --- choice ---------------------------------------------------------------------------------------


def check_condition(condition, input, other):
    if dtype_name(condition) not in ("bool", "uint8"):
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition.dtype.scalar_name}"
        )
    if dtype_name(condition) == "uint8":
        warnings.warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead.",
            UserWarning,
            stacklevel=5,
        )


# The condition last: the hot path begins with an argument that takes part in promotion.
op(
    "_choose(Tensor|Number input, Tensor|Number other, Tensor condition)",
    where="",
    promote=DEFAULT,
    promote_args=("input", "other"),
    tags=POINTWISE,
    vjp={
        "input": lambda F, g, condition: F._choose(g, 0, condition),
        "other": lambda F, g, condition: F._choose(0, g, condition),
    },
    layout=memory_layout.pointwise,
    node_name="WhereBackward0",
    numbers={"input": True, "other": True},
    opaque="array",
)


@composite(
    "_where(Tensor condition, Tensor|Number input, Tensor|Number other)",
    where="",
    layout=memory_layout.pointwise,
    node_name="WhereBackward0",
)
def _where(F, condition, input, other):
    return F._choose(input, other, condition)


@composite(
    "where(Tensor condition, Tensor|Number? input=None, Tensor|Number? other=None)",
    where="torch",
    layout=memory_layout.pointwise,
    out=Out("same", "Expected out type to be {want} but got {got}"),
)
def where(F, condition, input, other):
    """Elements of `input` where `condition` holds, and of `other` elsewhere.

    The three broadcast. `input` and `other` promote to a common dtype. With the condition alone,
    ``nonzero(as_tuple=True)``.

    Args:
        condition: A bool tensor. A uint8 tensor works with a warning.
        input: The elements where `condition` is True: a tensor or a number.
        other: The elements where `condition` is False: a tensor or a number.

    Raises:
        RuntimeError: `condition` has another dtype.

    Example:
        >>> torch.where(torch.tensor([True, False]), torch.tensor([1.0, 2.0]), 0.0)
        tensor([1., 0.])
    """
    if input is None or other is None:
        if input is not other:
            raise TypeError("where() takes both `input` and `other`, or none of them")
        return F.nonzero(condition, as_tuple=True)
    if F.dtype_of(condition).category:
        check_condition(condition, input, other)
    return F._choose(input, other, condition)


@composite("where_method(Tensor input, Tensor condition, Tensor|Number other)", where="", alias="Tensor.where")
def where_method(F, input, condition, other):
    """Elements of this tensor where `condition` holds, and of `other` elsewhere.

    Args:
        condition: A bool tensor that broadcasts with the operands.

    Example:
        >>> torch.tensor([1.0, 2.0]).where(torch.tensor([True, False]), 0.0)
        tensor([1., 0.])
    """
    return F.where(condition, input, other)


@composite(
    "fill(Tensor input, Tensor|Number value)",
    where="torch",
    layout=memory_layout.like_first,
    node_name=number_or_tensor("value", "FillBackward0(input)", "FillBackward1(input, value)"),
)
def fill(F, input, value):
    """A tensor like `input` with every element set to `value`.

    Args:
        value: A number or a tensor without dimensions.

    Raises:
        RuntimeError: `value` is a tensor with dimensions.

    Example:
        >>> torch.fill(torch.zeros(2), 3)
        tensor([3., 3.])
    """
    if hasattr(value, "shape"):
        if value.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
            )
    if isinstance(value, (int, float, complex)):
        value = cast_scalar(value, input.dtype, infinite=input.numel() == 1)
    return F._fill(input, value)
