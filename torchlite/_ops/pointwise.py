"""Elementwise ops: arithmetic, comparisons, logic and the usual functions."""
from __future__ import annotations

from .._dispatch import ALWAYS_BOOL, DEFAULT, INPLACE, INT_TO_FLOAT, MAYBE_VIEW, NONDIFF, POINTWISE, composite, op

PW = POINTWISE | INPLACE


def binary(name: str, *, promote=DEFAULT, vjp=None, tags=PW, alias="", where="torch Tensor", **more):
    return op(f"{name}(Tensor|Number input, Tensor|Number other)", promote=promote, vjp=vjp, tags=tags, alias=alias, where=where, **more)


def unary(name: str, gradient=None, *, promote=INT_TO_FLOAT, tags=PW, alias="", **more):
    return op(f"{name}(Tensor input)", promote=promote, vjp=None if gradient is None else {"input": gradient}, tags=tags, alias=alias, **more)


def _where_zero(F, cond, x):
    return F.where(cond, x, 0)


def _pow_base(F, g, input, other):
    lowered = F.mul(g, F.mul(F.conj(F.pow(input, F.sub(other, 1))), F.conj(other) if hasattr(other, "shape") else other))
    return F.where(F.eq(other, 0), F.zeros_like(lowered), lowered) if hasattr(other, "shape") else lowered if other != 0 else F.zeros_like(g)


def _pow_exponent(F, g, input, other, out):
    if not hasattr(input, "shape"):
        import cmath
        log = 0.0 if input == 0 else cmath.log(input) if isinstance(input, complex) or input < 0 else cmath.log(input).real
        return F.mul(g, F.mul(F.conj(out), log.conjugate() if isinstance(log, complex) else log))
    safe = F.where(F.eq(input, 0), F.ones_like(input), input)
    part = F.mul(g, F.conj(F.mul(out, F.log(safe))))
    return F.where(F.eq(input, 0), F.zeros_like(part), part)


add = binary("add", where="", vjp={"input": lambda F, g: g, "other": lambda F, g: g})
sub = binary("sub", where="", vjp={"input": lambda F, g: g, "other": lambda F, g: F.neg(g)})
mul = binary("mul", alias="multiply", vjp={
    "input": lambda F, g, other: F.mul(g, F.conj(other) if hasattr(other, "shape") else _conj(other)),
    "other": lambda F, g, input: F.mul(g, F.conj(input) if hasattr(input, "shape") else _conj(input))})
div = binary("div", where="", promote=INT_TO_FLOAT, vjp={
    "input": lambda F, g, other: F.div(g, F.conj(other) if hasattr(other, "shape") else _conj(other)),
    "other": lambda F, g, other, out: F.neg(F.mul(g, F.conj(F.div(out, other))))})
binary("pow", vjp={"input": _pow_base, "other": _pow_exponent})


def _conj(number):
    return number.conjugate() if isinstance(number, complex) else number


def _extreme(pick: str):
    """Gradients of maximum and minimum: shared equally at ties."""
    def gradient(F, g, mine, theirs):
        wins = F.to(getattr(F, pick)(mine, theirs), F.dtype_of(g))
        ties = F.mul(F.to(F.eq(mine, theirs), F.dtype_of(g)), 0.5)
        return F.mul(g, F.add(wins, ties))
    return {"input": lambda F, g, input, other: gradient(F, g, input, other), "other": lambda F, g, input, other: gradient(F, g, other, input)}


binary("maximum", vjp=_extreme("gt"))
binary("minimum", vjp=_extreme("lt"))
for _name, _alias in (("eq", ""), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal")):
    binary(_name, promote=ALWAYS_BOOL, tags=PW | NONDIFF, alias=_alias)
for _name in ("logical_and", "logical_or", "logical_xor"):
    binary(_name, promote=ALWAYS_BOOL, tags=PW | NONDIFF)
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"):
    binary(_name, tags=PW | NONDIFF)
binary("floor_divide", tags=PW | NONDIFF)
op("logical_not(Tensor input)", promote=ALWAYS_BOOL, tags=PW | NONDIFF)

unary("neg", lambda F, g: F.neg(g), promote=DEFAULT, alias="negative")
unary("conj", lambda F, g: F.conj(g), promote=DEFAULT, tags=POINTWISE | MAYBE_VIEW)
op("abs(Tensor input)", tags=PW, alias="absolute", vjp={"input": lambda F, g, input: F.mul(g, F.sgn(input))}, meta=lambda input: (input.shape, input.dtype.to_real()))
unary("sign", lambda F, g: F.zeros_like(g), promote=DEFAULT)


unary("exp", lambda F, g, out: F.mul(g, F.conj(out)))
unary("log", lambda F, g, input: F.div(g, F.conj(input)))
unary("sqrt", lambda F, g, out: F.div(g, F.mul(F.conj(out), 2)))
unary("rsqrt", lambda F, g, out: F.mul(F.mul(g, -0.5), F.conj(F.mul(F.mul(out, out), out))))
unary("reciprocal", lambda F, g, out: F.neg(F.mul(g, F.conj(F.mul(out, out)))))
unary("square", lambda F, g, input: F.mul(g, F.conj(F.mul(input, 2))), promote=DEFAULT)
unary("sin", lambda F, g, input: F.mul(g, F.conj(F.cos(input))))
unary("cos", lambda F, g, input: F.neg(F.mul(g, F.conj(F.sin(input)))))
unary("tanh", lambda F, g, out: F.mul(g, F.conj(F.sub(1, F.mul(out, out)))))
unary("sigmoid", lambda F, g, out: F.mul(g, F.conj(F.mul(out, F.sub(1, out)))), alias="special.expit")
unary("floor", lambda F, g: F.zeros_like(g), promote=DEFAULT)
unary("ceil", lambda F, g: F.zeros_like(g), promote=DEFAULT)
unary("trunc", lambda F, g: F.zeros_like(g), promote=DEFAULT, alias="fix")
for _name in ("isnan", "isinf", "isfinite"):
    op(f"{_name}(Tensor input)", promote=ALWAYS_BOOL, tags=POINTWISE | NONDIFF)
op("real(Tensor input)", tags=MAYBE_VIEW, meta=lambda input: (input.shape, input.dtype.to_real()), vjp={"input": lambda F, g, input_dtype: F.to(g, input_dtype)})

op("_where(Tensor condition, Tensor|Number input, Tensor|Number other)", where="", promote=DEFAULT, promote_args=("input", "other"), tags=POINTWISE, vjp={
    "input": lambda F, g, condition: F._where(condition, g, 0), "other": lambda F, g, condition: F._where(condition, 0, g)})
op("to(Tensor input, dtype)", where="", tags=MAYBE_VIEW, meta=lambda input, dtype: (input.shape, dtype), vjp={"input": lambda F, g, input_dtype: F.to(g, input_dtype)})


@composite("where(Tensor condition, Tensor|Number? input=None, Tensor|Number? other=None)", where="torch")
def where(F, condition, input, other):
    """Elements of `input` where `condition` (bool, broadcast) holds, else of `other`; with the condition alone, `nonzero(as_tuple=True)`."""
    if input is None and other is None:
        return F.nonzero(condition, as_tuple=True)
    return F._where(condition, input, other)


@composite("_where_method(Tensor input, Tensor condition, Tensor|Number other)", where="", alias="Tensor.where")
def where_method(F, input, condition, other):
    """`torch.where(condition, self, other)`."""
    return F._where(condition, input, other)


def _scaled(F, other, alpha, name):
    if isinstance(alpha, bool) and getattr(getattr(other, "dtype", None), "name", "bool") != "bool":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    return other if alpha == 1 else F.mul(other, alpha) if hasattr(other, "shape") else other * alpha


@composite("_add(Tensor|Number input, Tensor|Number other, *, alpha=1)", where="", alias="torch.add Tensor.add", tags=INPLACE)
def add_alpha(F, input, other, alpha):
    """input + alpha * other, elementwise with broadcasting."""
    return F.add(input, _scaled(F, other, alpha, "add"))


@composite("_sub(Tensor|Number input, Tensor|Number other, *, alpha=1)", where="", alias="torch.sub Tensor.sub torch.subtract Tensor.subtract", tags=INPLACE)
def sub_alpha(F, input, other, alpha):
    """input - alpha * other, elementwise with broadcasting."""
    for item in (input, other):
        if getattr(getattr(item, "dtype", None), "name", "") == "bool":
            raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
                               "`logical_not()` operator instead.")
    return F.sub(input, _scaled(F, other, alpha, "sub"))


@composite("_div(Tensor|Number input, Tensor|Number other, *, rounding_mode=None)", where="", alias="torch.div Tensor.div torch.divide Tensor.divide", tags=INPLACE)
def div_rounded(F, input, other, rounding_mode):
    """input / other; rounding_mode None (true division), "trunc" or "floor"."""
    if rounding_mode is None:
        return F.div(input, other)
    if rounding_mode == "floor":
        return F.floor_divide(input, other)
    if rounding_mode == "trunc":
        return F._trunc_divide(input, other)
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


binary("_trunc_divide", where="", tags=POINTWISE | NONDIFF)
