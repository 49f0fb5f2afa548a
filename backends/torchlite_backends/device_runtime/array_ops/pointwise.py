"""Kernels of pointwise ops: expression rules called with the parameters of the op's record.

Choices that depend on arguments are made in Python before the launch.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from torchlite._dispatch import REGISTRY
from torchlite._dispatch.shape_and_value_checks import check_same_dtype
from torchlite._dispatch.type_promotion import cast_scalar
from torchlite._types.dtypes import BY_NAME, finfo, from_np
from torchlite_backends.kernel_sources.activation_rules import RULES as ACTIVATIONS
from torchlite_backends.kernel_sources.dtype_kinds import CATEGORY, KINDS, REAL_KIND
from torchlite_backends.kernel_sources.pointwise_codegen import Rule
from torchlite_backends.kernel_sources.pointwise_rules import RULES as TABLE

from ..core.array import Array, kind_of, make_view, numpy_dtype_of_kind
from ..core.contiguous_copy import clone_row_major
from ..core.host_transfer import to_numpy
from ..core.kernel_markers import is_op
from ..core.pointwise_dispatch import apply_pointwise_rule, cast, scalar_kind_of, select_where
from .creation import full

RULES = {**TABLE, **ACTIVATIONS}
KERNELS: dict[str, Any] = {}


def _scalar_type_name(kind: str) -> str:
    return BY_NAME[KINDS[kind].numpy].scalar_name


def _not_implemented_error(kernel: str, kind: str) -> NotImplementedError:
    return NotImplementedError(f"\"{kernel}\" not implemented for '{_scalar_type_name(kind)}'")


def _copy_if_overlapping(x, target: Array):
    """Return an operand, or a copy if writing `target` would change elements still to be read."""
    if (
        x.__class__ is Array
        and x.buffer is target.buffer
        and (x.offset, x.steps, x.shape) != (target.offset, target.steps, target.shape)
    ):
        return clone_row_major(x)
    return x


# -- ops that are their rule --


def _make_unary_kernels(rule: Rule):
    def kernel(input, out=None):
        return apply_pointwise_rule(rule, (input,), (), out)

    def kernel_(input):
        apply_pointwise_rule(rule, (input,), (), input)

    kernel.takes_out = True  # type: ignore[attr-defined]
    return kernel, kernel_


def _make_binary_kernels(rule: Rule):
    def kernel(input, other, out=None):
        return apply_pointwise_rule(rule, (input, other), (), out)

    def kernel_(input, other):
        apply_pointwise_rule(rule, (input, _copy_if_overlapping(other, input)), (), input)

    kernel.takes_out = True  # type: ignore[attr-defined]
    return kernel, kernel_


_BY_OPERANDS = {
    1: _make_unary_kernels,
    2: _make_binary_kernels,
}  # kernels of more operands, or with other arguments, are written below
for _name, _rule in RULES.items():
    _params = REGISTRY[_name].params if is_op(_name) and not _rule.numbers else ()
    if len(_params) in _BY_OPERANDS and len(REGISTRY[_name].tensor_params) == len(_params):
        KERNELS[_name], _in_place = _BY_OPERANDS[len(_params)](_rule)
        if not _rule.test and not _rule.out:
            KERNELS[_name + "_"] = _in_place


# -- Ops with options or numbers: `kernel(*the record's parameters, out=None)`, also the source of the in-place form --


def register_with_inplace(function: Callable) -> Callable:
    """Register a kernel and its in-place form."""
    name = function.__name__

    def in_place(input, *others, **keywords):
        function(input, *[_copy_if_overlapping(x, input) for x in others], out=input, **keywords)

    KERNELS[name] = function
    if not REGISTRY[name].is_implicit:  # their history is that of their parts
        KERNELS[name + "_"] = in_place
    return function


def register_scalar_op(name: str, operands: int, *defaults, check: Callable | None = None) -> None:
    """Register the kernels of an op with `operands` operands followed by its rule's numbers, the last with defaults."""
    rule = RULES[name]
    count = operands + len(rule.numbers)

    def kernel(*values, out=None):
        if len(values) < count:
            values += defaults[len(values) - count :]
        if check is not None:
            check(values[0], *values[operands:])
        return apply_pointwise_rule(rule, values[:operands], values[operands:], out)

    kernel.__name__ = name
    register_with_inplace(kernel)


def _check_hardtanh(input, low, high):
    if low > high:
        raise ValueError("min_val cannot be greater than max_val")


def _check_softshrink(input, limit):
    if limit < 0:
        dtype = from_np(input.dtype)
        raise RuntimeError(
            f"lambda must be in range [0, {finfo(dtype).max:g}] for input dtype {dtype.scalar_name}, but found "
            f"{limit:g}"
        )


register_scalar_op("leaky_relu", 1, 0.01)
register_scalar_op("_leaky_relu_backward", 2)
register_scalar_op("hardtanh", 1, -1.0, 1.0, check=_check_hardtanh)
register_scalar_op("_hardtanh_backward", 2)
register_scalar_op("threshold", 1)
register_scalar_op("hardshrink", 1, 0.5)
register_scalar_op("softshrink", 1, 0.5, check=_check_softshrink)
register_scalar_op("_elu", 1)
register_scalar_op("_elu_backward", 2)
register_scalar_op("softplus", 1, 1.0, 20.0)
register_scalar_op("_softplus_backward", 2)
register_scalar_op("_huber", 2)


@register_with_inplace
def elu(input, alpha=1.0, out=None):
    return apply_pointwise_rule(RULES["_elu"], (input,), (alpha, 1.0, 1.0), out)


@register_with_inplace
def relu6(input, out=None):
    return apply_pointwise_rule(RULES["hardtanh"], (input,), (0, 6), out)


def gelu(input, *, approximate="none"):
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return apply_pointwise_rule(RULES["gelu" if approximate == "none" else "gelu_tanh"], (input,))


def _gelu_backward(grad, input, approximate="none"):
    return apply_pointwise_rule(
        RULES["gelu_backward" if approximate == "none" else "gelu_tanh_backward"], (grad, input)
    )


KERNELS["gelu"], KERNELS["_gelu_backward"] = gelu, _gelu_backward


@register_with_inplace
def pow(input, exponent, out=None):
    array = input if input.__class__ is Array else exponent
    category = CATEGORY[array.kind]
    if category == "c" and out is None:  # powers that are exact, also of NaN
        if array is exponent:
            if input == 1:
                return full(array.device, array.shape, 1, array.kind)
        elif exponent.__class__ is not Array and exponent in (0, 1):
            return clone_row_major(input) if exponent else full(array.device, array.shape, 1, array.kind)
    if exponent.__class__ is not Array:
        if category == "i" and exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        if exponent == 2 and category in "fc":
            return apply_pointwise_rule(RULES["square"], (input,), (), out)
        simple = {3: "cube", 0.5: "sqrt", -1: "reciprocal"}.get(exponent) if category == "f" else None
        if simple is not None:
            return apply_pointwise_rule(RULES[simple], (input,), (), out)
    return apply_pointwise_rule(RULES["pow"], (input, exponent), (), out)


@register_with_inplace
def square(input, out=None):
    return cast(input, "i64", out) if input.kind == "b8" else apply_pointwise_rule(RULES["square"], (input,), (), out)


def abs_(input):
    if input.kind == "b8":
        raise NotImplementedError("\"abs_cpu\" not implemented for 'Bool'")
    if input.kind in REAL_KIND:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    apply_pointwise_rule(RULES["abs"], (input,), (), input)


KERNELS["abs_"] = abs_


def positive(input):
    if input.kind == "b8":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def conj(input):
    return apply_pointwise_rule(RULES["conj_physical"], (input,)) if input.kind in REAL_KIND else input


def conj_physical(input):
    return conj(input)


KERNELS["positive"], KERNELS["conj"], KERNELS["conj_physical"] = positive, conj, conj_physical


def view_complex_part(x: Array, which: int) -> Array:
    """View the real (0) or imaginary (1) parts of a complex array."""
    out = make_view(x, x.shape, tuple([2 * s for s in x.steps]), 2 * x.offset + which)
    out.kind = REAL_KIND[x.kind]
    out.dtype = numpy_dtype_of_kind(out.kind)
    return out


def real(input):
    return view_complex_part(input, 0) if input.kind in REAL_KIND else input


def imag(input):
    if input.kind not in REAL_KIND:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return view_complex_part(input, 1)


KERNELS["real"], KERNELS["imag"] = real, imag


@register_with_inplace
def round(input, *, decimals=0, out=None):
    decimals = operator.index(decimals)
    if decimals == 0:
        return apply_pointwise_rule(RULES["round"], (input,), (), out)
    return apply_pointwise_rule(
        RULES["round_up" if decimals > 0 else "round_down"], (input,), (10.0 ** abs(decimals),), out
    )


@register_with_inplace
def nan_to_num(input, nan=None, posinf=None, neginf=None, out=None):
    numbers: tuple = (0, 0, 0)
    if CATEGORY[input.kind] in "fc":
        largest = finfo(from_np(input.dtype)).max
        numbers = (nan or 0.0, largest if posinf is None else posinf, -largest if neginf is None else neginf)
    return apply_pointwise_rule(RULES["nan_to_num"], (input,), numbers, out)


@register_with_inplace
def logit(input, eps=None, out=None):
    return (
        apply_pointwise_rule(RULES["logit"], (input,), (), out)
        if eps is None
        else apply_pointwise_rule(RULES["logit_eps"], (input,), (eps, 1 - eps), out)
    )


@register_with_inplace
def polygamma(input, n, out=None):
    n = operator.index(n)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return apply_pointwise_rule(RULES["digamma"], (input,), (), out)
    scale = math.exp(math.lgamma(n + 1)) if n > 20 else float(math.factorial(n))
    return apply_pointwise_rule(RULES["polygamma"], (input,), (n, scale if n % 2 else -scale), out)


@register_with_inplace
def heaviside(input, values, out=None):
    if input.kind != values.kind:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return apply_pointwise_rule(RULES["heaviside"], (input, values), (), out)


# -- clamping and three operands --


@register_with_inplace
def clamp(input, min=None, max=None, out=None):
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if max is None:
        return apply_pointwise_rule(RULES["clamp_low"], (input, min), (), out)
    return (
        apply_pointwise_rule(RULES["clamp_high"], (input, max), (), out)
        if min is None
        else apply_pointwise_rule(RULES["clamp"], (input, min, max), (), out)
    )


KERNELS["_clamp_tensors"] = KERNELS["_clamp_scalars"] = clamp
KERNELS["_clamp_tensors_"] = KERNELS["_clamp_scalars_"] = lambda input, min, max: clamp(input, min, max, input)


@register_with_inplace
def lerp(input, end, weight, out=None):
    check_same_dtype(input, end, "end")
    if weight.__class__ is not Array:
        return apply_pointwise_rule(RULES["_lerp_scalar"], (input, end, weight), (), out)
    check_same_dtype(input, weight, "weight")
    return apply_pointwise_rule(RULES["_lerp_tensor"], (input, end, weight), (), out)


KERNELS["_lerp_tensor"] = KERNELS["_lerp_scalar"] = lerp


@register_with_inplace
def addcmul(input, tensor1, tensor2, *, value=1, out=None):
    return apply_pointwise_rule(RULES["addcmul"], (input, tensor1, tensor2), (value,), out)


@register_with_inplace
def addcdiv(input, tensor1, tensor2, *, value=1, out=None):
    if CATEGORY[input.kind] in "ib":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + "
            "value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * "
            "tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: "
            "(input + value * tensor1 / tensor2), for all dtypes."
        )
    return apply_pointwise_rule(RULES["addcdiv"], (input, tensor1, tensor2), (value,), out)


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    if input.kind != other.kind:
        raise RuntimeError(f"{_scalar_type_name(input.kind)} did not match {_scalar_type_name(other.kind)}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    if CATEGORY[input.kind] in "ib":
        if rtol == 0 and atol == 0:
            return apply_pointwise_rule(RULES["eq"], (input, other))
        wide = "f64" if input.device.fp64 else "f32"
        input, other = cast(input, wide), cast(other, wide)
    return apply_pointwise_rule(RULES["isclose_nan" if equal_nan else "isclose"], (input, other), (rtol, atol))


def complex(real, imag):
    if real.kind != imag.kind or real.kind not in ("f16", "f32", "f64"):
        raise RuntimeError("parts that the rule of the op has words for")
    return apply_pointwise_rule(RULES["complex"], (real, imag))


def polar(abs, angle):
    return apply_pointwise_rule(RULES["polar"], (abs, angle)) if abs.kind in ("f32", "f64") else complex(abs, angle)


def frexp(input):
    if CATEGORY[input.kind] != "f":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return apply_pointwise_rule(RULES["mantissa"], (input,)), apply_pointwise_rule(RULES["exponent"], (input,))


KERNELS["isclose"], KERNELS["complex"], KERNELS["polar"], KERNELS["frexp"] = isclose, complex, polar, frexp


# -- choice and conversion --


def _choose(input, other, condition):
    if input.__class__ is not Array and other.__class__ is not Array:  # two numbers
        kind = max(map(scalar_kind_of, (input, other)), key=("b8", "i64", "f32", "c64").index)
        input = full(condition.device, (), input, kind)
    return select_where(condition, input, other)


def _where(condition, input, other):
    return _choose(input, other, condition)


def where(condition, input=None, other=None):
    return _choose(input, other, condition)


def _masked_fill(input, mask, value, out=None):
    if mask.kind != "b8":
        name = KINDS[mask.kind].numpy
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{'float' if name == 'float32' else name}"
        )
    if value.__class__ is Array:
        if value.ndim:
            raise RuntimeError(
                f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} "
                "dimension(s)."
            )
        if value.kind != input.kind and value.kind != "b8":
            cast_scalar(to_numpy(value).item(), from_np(input.dtype))
        value = cast(value, input.kind)
    else:
        value = cast_scalar(value, from_np(input.dtype))
    return select_where(mask, value, input, out)


_masked_fill_tensor = _masked_fill


def to(input, dtype):
    kind = kind_of(dtype.np)
    return input if kind == input.kind else cast(input, kind)


KERNELS.update(
    _choose=_choose, _where=_where, where=where, _masked_fill=_masked_fill, _masked_fill_tensor=_masked_fill, to=to
)
