"""Elementwise ops: arithmetic, comparisons, logic and the usual functions."""

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
    composite,
    memory_layout,
    op,
)
from torchlite._dispatch.node_names import scalar_or_tensor_name
from torchlite._dispatch.op_record import FOUND_DTYPE
from torchlite._dispatch.shapes import broadcast_shapes
from torchlite._dispatch.type_promotion import cast_scalar, check_int64, check_scalar_range, result_dtype
from torchlite._types.dtypes import int64

from ._gradient_helpers import make_missing_derivative_formula

_SINGLE = np.dtype("float32")
PW = POINTWISE | INPLACE
TEST = PW | NONDIFF


def define_binary_op(name: str, *, names=("input", "other"), scalars="both", promote=DEFAULT, tags=PW, **more):
    """Define an op of two operands; `scalars` names those that may be Python numbers: both, the second or none."""
    kinds = ["Tensor|Number" if scalars == "both" else "Tensor", "Tensor" if scalars == "none" else "Tensor|Number"]
    return op(f"{name}({kinds[0]} {names[0]}, {kinds[1]} {names[1]})", promote=promote, tags=tags, **more)


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


define_binary_op("add", where="", vjp={"input": lambda F, g: g, "other": lambda F, g: g})
define_binary_op(
    "sub", where="", check=check_sub, shape_fn=sub_rule, vjp={"input": lambda F, g: g, "other": lambda F, g: F.neg(g)}
)
define_binary_op(
    "mul",
    alias="multiply",
    vjp={
        "input": lambda F, g, other: F.mul(g, conj_of(F, other)),
        "other": lambda F, g, input: F.mul(g, conj_of(F, input)),
    },
    doc="``input * other``, elementwise with broadcasting.",
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
)
define_binary_op(
    "pow",
    names=("input", "exponent"),
    check=check_power,
    vjp={"input": pow_base, "exponent": pow_exponent},
    doc="""``input ** exponent``. RuntimeError for an integer tensor to a negative integer.

    >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    """,
    node_name=scalar_or_tensor_name("Pow", "exponent"),
    numbers={"exponent": False},
)
define_binary_op(
    "floor_divide",
    tags=PW,
    vjp=dict.fromkeys(("input", "other"), make_missing_derivative_formula("floor_divide")),
    doc="``input / other`` rounded down. RuntimeError for an integer division by zero.",
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
    return F.mul(other, alpha) if hasattr(other, "shape") else other * alpha


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
    """``input - alpha * other``, elementwise with broadcasting. RuntimeError for bool tensors."""
    return F.sub(input, scale_by_alpha(F, input, other, alpha))


@composite("rsub(Tensor input, Tensor|Number other, *, alpha=1)", where="torch")
def rsub(F, input, other, alpha):
    """``other - alpha * input``."""
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
    """``input / other``; ``rounding_mode`` None (true division, integers become floats), "trunc" (towards zero) or
    "floor" (down).
    """
    if rounding_mode is None:
        return F.div(input, other)
    if rounding_mode == "floor":
        return F._floor_divide(input, other)
    if rounding_mode == "trunc":
        return F._trunc_divide(input, other)
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


# --- comparisons and logic ------------------------------------------------------------------------


def make_extreme_vjp(pick: str):
    """Gradients of maximum and minimum: shared equally at ties, and where an element is NaN."""

    def gradient(F, g, input, other):
        return F.where(F.eq(input, other), F.mul(g, 0.5), F.where(getattr(F, pick)(other, input), 0, g))

    return {"input": gradient, "other": lambda F, g, input, other: gradient(F, g, other, input)}


define_binary_op(
    "maximum",
    scalars="none",
    vjp=make_extreme_vjp("gt"),
    tags=POINTWISE,
    doc="The larger of two elements; NaN if either is. Gradients at ties go half and half.",
)
define_binary_op(
    "minimum",
    scalars="none",
    vjp=make_extreme_vjp("lt"),
    tags=POINTWISE,
    doc="The smaller of two elements; NaN if either is. Gradients at ties go half and half.",
)
for _name, _alias, _sign in (
    ("eq", "", "=="),
    ("ne", "not_equal", "!="),
    ("lt", "less", "<"),
    ("le", "less_equal", "<="),
    ("gt", "greater", ">"),
    ("ge", "greater_equal", ">="),
):
    define_binary_op(
        _name,
        scalars="second",
        promote=ALWAYS_BOOL,
        tags=TEST,
        alias=_alias,
        scalar_rounding="always",
        out=Out("unchecked"),
        doc=f"``input {_sign} other``, elementwise: a bool tensor.",
    )
for _name, _what in (("and", "both elements are"), ("or", "either element is"), ("xor", "exactly one element is")):
    define_binary_op(
        f"logical_{_name}",
        scalars="none",
        promote=ALWAYS_BOOL,
        tags=TEST,
        out=Out("unchecked"),
        doc=f"Whether {_what} not zero.",
    )
op(
    "logical_not(Tensor input)",
    promote=ALWAYS_BOOL,
    tags=TEST,
    doc="Whether each element is zero.",
    out=Out("unchecked"),
)
for _name, _what in (("and", "And"), ("or", "Or"), ("xor", "Exclusive or")):
    define_binary_op(f"bitwise_{_name}", tags=TEST, doc=f"{_what} of every bit; for bools, logical.")
for _name in ("left", "right"):
    define_binary_op(f"bitwise_{_name}_shift", tags=TEST, doc=f"Arithmetic shift to the {_name}.")

# --- functions of one operand ---------------------------------------------------------------------


def zero_gradient(F, g):
    return F._zeros_like(g)


define_unary_op(
    "neg",
    lambda F, g: F.neg(g),
    promote=DEFAULT,
    alias="negative",
    shape_fn=neg_rule,
    doc="``-input``.",
    out=Out("same", FOUND_DTYPE),
)
define_unary_op(
    "conj",
    lambda F, g: F.conj(g),
    promote=DEFAULT,
    where="",
    tags=POINTWISE | MAYBE_VIEW,
    doc="The complex conjugate, computed; a real tensor itself.",
)
op(
    "abs(Tensor input)",
    tags=PW,
    alias="absolute",
    vjp={"input": lambda F, g, input: F.mul(g, F.sgn(input))},
    shape_fn=lambda input: (input.shape, input.dtype.to_real()),
    doc="The absolute value; of a complex tensor, a real one.",
    out=Out("same", FOUND_DTYPE, complex_to_real=True),
)
define_unary_op(
    "sign",
    zero_gradient,
    promote=DEFAULT,
    doc="-1, 0 or 1 by the sign of each element; 0 for NaN.",
    out=Out("same", FOUND_DTYPE),
)
define_unary_op("exp", lambda F, g, out: F.mul(g, F.conj(out)), doc="``e ** input``.")
define_unary_op("log", lambda F, g, input: F.div(g, F.conj(input)), doc="The natural logarithm.")
define_unary_op("sqrt", lambda F, g, out: F.div(g, F.mul(F.conj(out), 2)), doc="The square root.")
define_unary_op(
    "rsqrt", lambda F, g, out: F.mul(F.mul(g, -0.5), F.conj(F.mul(F.mul(out, out), out))), doc="``1 / sqrt(input)``."
)
define_unary_op("reciprocal", lambda F, g, out: F.neg(F.mul(g, F.conj(F.mul(out, out)))), doc="``1 / input``.")
op(
    "square(Tensor input)",
    tags=PW,
    vjp={"input": lambda F, g, input: F.mul(g, F.conj(F.mul(input, 2)))},
    shape_fn=lambda input: (input.shape, input.dtype if input.dtype.category else int64),
    doc="``input * input``.",
    node_name="PowBackward0",
)
define_unary_op("sin", lambda F, g, input: F.mul(g, F.conj(F.cos(input))), doc="The sine.")
define_unary_op("cos", lambda F, g, input: F.neg(F.mul(g, F.conj(F.sin(input)))), doc="The cosine.")
define_unary_op(
    "tanh", lambda F, g, out: F.mul(g, conj_of(F, F.sub(1, F.mul(out, out)))), doc="The hyperbolic tangent."
)
define_unary_op(
    "sigmoid",
    lambda F, g, out: F.mul(g, F.conj(F.mul(out, F.sub(1, out)))),
    alias="special.expit",
    doc="``1 / (1 + exp(-input))``.",
)
define_unary_op(
    "floor",
    zero_gradient,
    promote=DEFAULT,
    doc="The largest integer not above each element.",
    out=Out("same", FOUND_DTYPE),
)
define_unary_op(
    "ceil",
    zero_gradient,
    promote=DEFAULT,
    doc="The smallest integer not below each element.",
    out=Out("same", FOUND_DTYPE),
)
define_unary_op(
    "trunc",
    zero_gradient,
    promote=DEFAULT,
    alias="fix",
    doc="Each element without its fraction.",
    out=Out("same", FOUND_DTYPE),
)
for _name, _what in (("isnan", "NaN"), ("isinf", "infinite"), ("isfinite", "neither infinite nor NaN")):
    op(f"{_name}(Tensor input)", promote=ALWAYS_BOOL, tags=POINTWISE | NONDIFF, doc=f"Whether each element is {_what}.")
op(
    "real(Tensor input)",
    tags=MAYBE_VIEW,
    shape_fn=lambda input: (input.shape, input.dtype.to_real()),
    vjp={"input": lambda F, g, input_dtype: F.to(g, input_dtype)},
    doc="The real part, a view; a real tensor itself.",
)
op(
    "to(Tensor input, dtype)",
    where="",
    tags=MAYBE_VIEW | CAST,
    shape_fn=lambda input, dtype: (input.shape, dtype),
    vjp={"input": lambda F, g, input_dtype: F.to(g, input_dtype)},
    node_name="ToCopyBackward0",
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
    """Elements of ``input`` where ``condition`` (bool, broadcast) holds, else of ``other``; with the condition alone,
    ``nonzero(as_tuple=True)``.

    >>> torch.where(torch.tensor([True, False]), torch.tensor([1.0, 2.0]), 0.0)
    tensor([1., 0.])
    """
    if input is None and other is None:
        return F.nonzero(condition, as_tuple=True)
    if F.dtype_of(condition).category:
        check_condition(condition, input, other)
    return F._choose(input, other, condition)


@composite("where_method(Tensor input, Tensor condition, Tensor|Number other)", where="", alias="Tensor.where")
def where_method(F, input, condition, other):
    """``torch.where(condition, self, other)``."""
    return F.where(condition, input, other)


@composite("fill(Tensor input, Tensor|Number value)", where="torch", layout=memory_layout.like_first)
def fill(F, input, value):
    """A tensor like ``input`` filled with ``value``, a number or a 0-dimensional tensor."""
    if hasattr(value, "shape"):
        if value.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
            )
    if isinstance(value, (int, float, complex)):
        value = cast_scalar(value, input.dtype, infinite=input.numel() == 1)
    return F._fill(input, value)
