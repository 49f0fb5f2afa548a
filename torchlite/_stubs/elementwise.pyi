# Made by tools/make_stubs.py from the op records: do not edit.
"""Functions and methods of ops: elementwise."""

import builtins as _b
from collections.abc import Sequence
from typing import Any, Self, overload

from . import results
from .aliases import Number
from .tensor import Tensor

class ElementwiseMethods:
    def _conj(self) -> Tensor:
        """The complex conjugate: a view with the conjugate bit, which ops work out where they need it; a real tensor
        itself.
        """
    def _conj_physical(self) -> Tensor:
        """The complex conjugate, computed."""
    def _neg_view(self) -> Tensor:
        """The negative: a view with the negative bit, which ops work out where they need it."""
    def abs(self) -> Tensor:
        """The absolute value; of a complex tensor, a real one."""
    def absolute(self) -> Tensor:
        """The absolute value; of a complex tensor, a real one."""
    def acos(self) -> Tensor:
        """The inverse cosine, in radians."""
    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine."""
    def add(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """``input + alpha * other``, elementwise with broadcasting.

        >>> torch.add(torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]), alpha=0.5)
        tensor([ 6., 12.])
        """
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """``input + value * tensor1 / tensor2``. RuntimeError for integers."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """``input + value * tensor1 * tensor2``."""
    def allclose(
        self, other: Tensor, rtol: _b.float = 1e-05, atol: _b.float = 1e-08, equal_nan: _b.bool = False
    ) -> _b.bool:
        """True if all elements are close (see ``isclose``): a Python bool."""
    def angle(self) -> Tensor:
        """The angle in radians; for real numbers 0 or pi."""
    def arccos(self) -> Tensor:
        """The inverse cosine, in radians."""
    def arccosh(self) -> Tensor:
        """The inverse hyperbolic cosine."""
    def arcsin(self) -> Tensor:
        """The inverse sine, in radians."""
    def arcsinh(self) -> Tensor:
        """The inverse hyperbolic sine."""
    def arctan(self) -> Tensor:
        """The inverse tangent, in radians."""
    def arctan2(self, other: Tensor) -> Tensor:
        """The angle of the point (other, input), in radians from -pi to pi."""
    def arctanh(self) -> Tensor:
        """The inverse hyperbolic tangent."""
    def asin(self) -> Tensor:
        """The inverse sine, in radians."""
    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine."""
    def atan(self) -> Tensor:
        """The inverse tangent, in radians."""
    def atan2(self, other: Tensor) -> Tensor:
        """The angle of the point (other, input), in radians from -pi to pi."""
    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent."""
    def bitwise_and(self, other: Tensor | Number) -> Tensor:
        """And of every bit; for bools, logical."""
    def bitwise_left_shift(self, other: Tensor | Number) -> Tensor:
        """Arithmetic shift to the left."""
    def bitwise_not(self) -> Tensor:
        """The complement of every bit; for bools, logical not."""
    def bitwise_or(self, other: Tensor | Number) -> Tensor:
        """Or of every bit; for bools, logical."""
    def bitwise_right_shift(self, other: Tensor | Number) -> Tensor:
        """Arithmetic shift to the right."""
    def bitwise_xor(self, other: Tensor | Number) -> Tensor:
        """Exclusive or of every bit; for bools, logical."""
    def ceil(self) -> Tensor:
        """The smallest integer not below each element."""
    def clamp(self, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
        """``input`` between ``min`` and ``max`` (numbers or tensors; either may be absent). Where ``min > max`` the
        result is ``max``.

        RuntimeError when both are absent.
        """
    def clamp_max(self, max: Tensor | Number) -> Tensor:
        """``input``, at most ``max``."""
    def clamp_min(self, min: Tensor | Number) -> Tensor:
        """``input``, at least ``min``."""
    def clip(self, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
        """``input`` between ``min`` and ``max`` (numbers or tensors; either may be absent). Where ``min > max`` the
        result is ``max``.

        RuntimeError when both are absent.
        """
    def conj(self) -> Tensor:
        """The complex conjugate: a view with the conjugate bit, which ops work out where they need it; a real tensor
        itself.
        """
    def conj_physical(self) -> Tensor:
        """The complex conjugate."""
    def copysign(self, other: Tensor | Number) -> Tensor:
        """The size of ``input`` with the sign of ``other``."""
    def cos(self) -> Tensor:
        """The cosine."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine."""
    def deg2rad(self) -> Tensor:
        """Degrees to radians."""
    def digamma(self) -> Tensor:
        r"""Computes the derivative of `lgamma`."""
    def div(self, other: Tensor | Number, *, rounding_mode: _b.str | None = None) -> Tensor:
        """``input / other``; ``rounding_mode`` None (true division, integers become floats), "trunc" (towards zero) or
        "floor" (down).
        """
    def divide(self, other: Tensor | Number, *, rounding_mode: _b.str | None = None) -> Tensor:
        """``input / other``; ``rounding_mode`` None (true division, integers become floats), "trunc" (towards zero) or
        "floor" (down).
        """
    def eq(self, other: Tensor | Number) -> Tensor:
        """``input == other``, elementwise: a bool tensor."""
    def erf(self) -> Tensor:
        r"""Computes the error function of each element."""
    def erfc(self) -> Tensor:
        r"""Computes the complementary error function, precise where it is small."""
    def erfinv(self) -> Tensor:
        """Computes the inverse of the error function on (-1, 1)."""
    def exp(self) -> Tensor:
        """``e ** input``."""
    def exp2(self) -> Tensor:
        """2 to the power of ``input``."""
    def expm1(self) -> Tensor:
        """``exp(input) - 1``, precise for small ``input``."""
    def fix(self) -> Tensor:
        """Each element without its fraction."""
    def float_power(self, exponent: Tensor | Number) -> Tensor:
        """``input ** exponent`` in double precision (complex if either is)."""
    def floor(self) -> Tensor:
        """The largest integer not above each element."""
    def floor_divide(self, other: Tensor | Number) -> Tensor:
        """``input / other`` rounded down. RuntimeError for an integer division by zero."""
    def fmax(self, other: Tensor) -> Tensor:
        """The larger of two elements; a number rather than a NaN."""
    def fmin(self, other: Tensor) -> Tensor:
        """The smaller of two elements; a number rather than a NaN."""
    def fmod(self, other: Tensor | Number) -> Tensor:
        """The remainder of ``input / other`` with the sign of ``input``."""
    def frac(self) -> Tensor:
        """The fraction of ``input``, with its sign."""
    def frexp(self) -> results.frexp:
        """``input = mantissa * 2**exponent`` with 0.5 <= |mantissa| < 1."""
    def gcd(self, other: Tensor) -> Tensor:
        """The greatest common divisor of integers."""
    def ge(self, other: Tensor | Number) -> Tensor:
        """``input >= other``, elementwise: a bool tensor."""
    def greater(self, other: Tensor | Number) -> Tensor:
        """``input > other``, elementwise: a bool tensor."""
    def greater_equal(self, other: Tensor | Number) -> Tensor:
        """``input >= other``, elementwise: a bool tensor."""
    def gt(self, other: Tensor | Number) -> Tensor:
        """``input > other``, elementwise: a bool tensor."""
    def hardshrink(self, lambd: _b.float = 0.5) -> Tensor:
        """Zero within ``[-lambd, lambd]``, ``input`` elsewhere."""
    def heaviside(self, values: Tensor) -> Tensor:
        """0 below zero, 1 above, ``values`` at zero."""
    def hypot(self, other: Tensor) -> Tensor:
        """``sqrt(input**2 + other**2)`` without overflow."""
    def i0(self) -> Tensor:
        """Computes the modified Bessel function of the first kind of order 0."""
    def igamma(self, other: Tensor) -> Tensor:
        r"""Computes the regularized lower incomplete gamma function."""
    def igammac(self, other: Tensor) -> Tensor:
        """Computes the regularized upper incomplete gamma function."""
    def isclose(
        self, other: Tensor, rtol: _b.float = 1e-05, atol: _b.float = 1e-08, equal_nan: _b.bool = False
    ) -> Tensor:
        """Whether ``|input - other| <= atol + rtol * |other|``, elementwise; equal infinities are close, and NaNs if
        ``equal_nan``.
        """
    def isfinite(self) -> Tensor:
        """Whether each element is neither infinite nor NaN."""
    def isinf(self) -> Tensor:
        """Whether each element is infinite."""
    def isnan(self) -> Tensor:
        """Whether each element is NaN."""
    def isneginf(self) -> Tensor:
        """Whether each element is negative infinity."""
    def isposinf(self) -> Tensor:
        """Whether each element is positive infinity."""
    def isreal(self) -> Tensor:
        """Whether each element's imaginary part is zero."""
    def lcm(self, other: Tensor) -> Tensor:
        """The least common multiple of integers."""
    def ldexp(self, other: Tensor) -> Tensor:
        """``input * 2**other``; of the dtype of a floating-point ``input`` where ``other`` is an integer."""
    def le(self, other: Tensor | Number) -> Tensor:
        """``input <= other``, elementwise: a bool tensor."""
    def lerp(self, end: Tensor, weight: Tensor | Number) -> Tensor:
        """``input + weight * (end - input)``. The three have one dtype.

        >>> torch.lerp(torch.tensor([0.0, 10.0]), torch.tensor([10.0, 20.0]), 0.5)
        tensor([ 5., 15.])
        """
    def less(self, other: Tensor | Number) -> Tensor:
        """``input < other``, elementwise: a bool tensor."""
    def less_equal(self, other: Tensor | Number) -> Tensor:
        """``input <= other``, elementwise: a bool tensor."""
    def lgamma(self) -> Tensor:
        r"""Computes the logarithm of the absolute value of the gamma function."""
    def log(self) -> Tensor:
        """The natural logarithm."""
    def log10(self) -> Tensor:
        """The logarithm to base 10."""
    def log1p(self) -> Tensor:
        """``log(1 + input)``, precise for small ``input``."""
    def log2(self) -> Tensor:
        """The logarithm to base 2."""
    def logaddexp(self, other: Tensor) -> Tensor:
        """``log(exp(input) + exp(other))``."""
    def logaddexp2(self, other: Tensor) -> Tensor:
        """``log2(2**input + 2**other)``."""
    def logical_and(self, other: Tensor) -> Tensor:
        """Whether both elements are not zero."""
    def logical_not(self) -> Tensor:
        """Whether each element is zero."""
    def logical_or(self, other: Tensor) -> Tensor:
        """Whether either element is not zero."""
    def logical_xor(self, other: Tensor) -> Tensor:
        """Whether exactly one element is not zero."""
    def logit(self, eps: _b.float | None = None) -> Tensor:
        r"""Computes the logit: the inverse of the logistic function."""
    def lt(self, other: Tensor | Number) -> Tensor:
        """``input < other``, elementwise: a bool tensor."""
    def maximum(self, other: Tensor) -> Tensor:
        """The larger of two elements; NaN if either is. Gradients at ties go half and half."""
    def minimum(self, other: Tensor) -> Tensor:
        """The smaller of two elements; NaN if either is. Gradients at ties go half and half."""
    def mul(self, other: Tensor | Number) -> Tensor:
        """``input * other``, elementwise with broadcasting."""
    def multiply(self, other: Tensor | Number) -> Tensor:
        """``input * other``, elementwise with broadcasting."""
    def mvlgamma(self, p: _b.float) -> Tensor:
        r"""Computes the logarithm of the multivariate gamma function."""
    def nan_to_num(
        self, nan: _b.float | None = None, posinf: _b.float | None = None, neginf: _b.float | None = None
    ) -> Tensor:
        """NaN becomes ``nan`` (0), infinities ``posinf`` and ``neginf`` (the largest and smallest finite values)."""
    def ne(self, other: Tensor | Number) -> Tensor:
        """``input != other``, elementwise: a bool tensor."""
    def neg(self) -> Tensor:
        """``-input``."""
    def negative(self) -> Tensor:
        """``-input``."""
    def nextafter(self, other: Tensor) -> Tensor:
        """The next number after ``input`` towards ``other``."""
    def not_equal(self, other: Tensor | Number) -> Tensor:
        """``input != other``, elementwise: a bool tensor."""
    def polygamma(self, n: _b.int) -> Tensor:
        r"""Computes a derivative of `digamma`."""
    def positive(self) -> Tensor:
        """``input`` itself. RuntimeError for a bool tensor."""
    def pow(self, exponent: Tensor | Number) -> Tensor:
        """``input ** exponent``. RuntimeError for an integer tensor to a negative integer.

        >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
        tensor([1., 4., 9.])
        """
    def prelu(self, weight: Tensor) -> Tensor:
        """``input`` where positive, ``weight * input`` elsewhere; ``weight`` has one element or one for each channel
        (dimension 1).
        """
    def rad2deg(self) -> Tensor:
        """Radians to degrees."""
    def reciprocal(self) -> Tensor:
        """``1 / input``."""
    def relu(self) -> Tensor:
        """The positive part, ``max(input, 0)``, elementwise; NaN stays NaN.

        >>> torch.relu(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
        """
    def remainder(self, other: Tensor | Number) -> Tensor:
        """The remainder of ``input / other`` with the sign of ``other``, as Python's ``%``."""
    def resolve_conj(self) -> Tensor:
        """A copy in which the conjugate bit is worked out; a tensor without it itself."""
    def resolve_neg(self) -> Tensor:
        """A copy in which the negative bit is worked out; a tensor without it itself."""
    def round(self, *, decimals: _b.int = 0) -> Tensor:
        """To the nearest integer, or to ``decimals`` decimal places (negative: to tens, hundreds ...); ties go to
        even.
        """
    def rsqrt(self) -> Tensor:
        """``1 / sqrt(input)``."""
    def sgn(self) -> Tensor:
        """The sign of a real number; of a complex one, ``input / |input|`` (0 at 0)."""
    def sigmoid(self) -> Tensor:
        """``1 / (1 + exp(-input))``."""
    def sign(self) -> Tensor:
        """-1, 0 or 1 by the sign of each element; 0 for NaN."""
    def signbit(self) -> Tensor:
        """Whether the sign bit is set (also for -0.0)."""
    def sin(self) -> Tensor:
        """The sine."""
    def sinc(self) -> Tensor:
        r"""Computes the normalized sinc function."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine."""
    def sqrt(self) -> Tensor:
        """The square root."""
    def square(self) -> Tensor:
        """``input * input``."""
    def sub(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """``input - alpha * other``, elementwise with broadcasting. RuntimeError for bool tensors."""
    def subtract(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """``input - alpha * other``, elementwise with broadcasting. RuntimeError for bool tensors."""
    def tan(self) -> Tensor:
        """The tangent."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""
    def true_divide(self, other: Tensor | Number, *, rounding_mode: _b.str | None = None) -> Tensor:
        """``input / other``; ``rounding_mode`` None (true division, integers become floats), "trunc" (towards zero) or
        "floor" (down).
        """
    def trunc(self) -> Tensor:
        """Each element without its fraction."""
    def where(self, condition: Tensor, other: Tensor | Number) -> Tensor:
        """``torch.where(condition, self, other)``."""
    def xlogy(self, other: Tensor | Number) -> Tensor:
        """Computes ``input * log(other)``, and 0 where `input` is 0 and `other` is not NaN."""
    def abs_(self) -> Self:
        """In-place version of `abs`: writes the result into the tensor and returns it."""
    def absolute_(self) -> Self:
        """In-place version of `absolute`: writes the result into the tensor and returns it."""
    def acos_(self) -> Self:
        """In-place version of `acos`: writes the result into the tensor and returns it."""
    def acosh_(self) -> Self:
        """In-place version of `acosh`: writes the result into the tensor and returns it."""
    def add_(self, other: Tensor | Number, *, alpha: Number = 1) -> Self:
        """In-place version of `add`: writes the result into the tensor and returns it."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Self:
        """In-place version of `addcdiv`: writes the result into the tensor and returns it."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Self:
        """In-place version of `addcmul`: writes the result into the tensor and returns it."""
    def arccos_(self) -> Self:
        """In-place version of `arccos`: writes the result into the tensor and returns it."""
    def arccosh_(self) -> Self:
        """In-place version of `arccosh`: writes the result into the tensor and returns it."""
    def arcsin_(self) -> Self:
        """In-place version of `arcsin`: writes the result into the tensor and returns it."""
    def arcsinh_(self) -> Self:
        """In-place version of `arcsinh`: writes the result into the tensor and returns it."""
    def arctan_(self) -> Self:
        """In-place version of `arctan`: writes the result into the tensor and returns it."""
    def arctan2_(self, other: Tensor) -> Self:
        """In-place version of `arctan2`: writes the result into the tensor and returns it."""
    def arctanh_(self) -> Self:
        """In-place version of `arctanh`: writes the result into the tensor and returns it."""
    def asin_(self) -> Self:
        """In-place version of `asin`: writes the result into the tensor and returns it."""
    def asinh_(self) -> Self:
        """In-place version of `asinh`: writes the result into the tensor and returns it."""
    def atan_(self) -> Self:
        """In-place version of `atan`: writes the result into the tensor and returns it."""
    def atan2_(self, other: Tensor) -> Self:
        """In-place version of `atan2`: writes the result into the tensor and returns it."""
    def atanh_(self) -> Self:
        """In-place version of `atanh`: writes the result into the tensor and returns it."""
    def bitwise_and_(self, other: Tensor | Number) -> Self:
        """In-place version of `bitwise_and`: writes the result into the tensor and returns it."""
    def bitwise_left_shift_(self, other: Tensor | Number) -> Self:
        """In-place version of `bitwise_left_shift`: writes the result into the tensor and returns it."""
    def bitwise_not_(self) -> Self:
        """In-place version of `bitwise_not`: writes the result into the tensor and returns it."""
    def bitwise_or_(self, other: Tensor | Number) -> Self:
        """In-place version of `bitwise_or`: writes the result into the tensor and returns it."""
    def bitwise_right_shift_(self, other: Tensor | Number) -> Self:
        """In-place version of `bitwise_right_shift`: writes the result into the tensor and returns it."""
    def bitwise_xor_(self, other: Tensor | Number) -> Self:
        """In-place version of `bitwise_xor`: writes the result into the tensor and returns it."""
    def ceil_(self) -> Self:
        """In-place version of `ceil`: writes the result into the tensor and returns it."""
    def clamp_(self, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Self:
        """In-place version of `clamp`: writes the result into the tensor and returns it."""
    def clamp_max_(self, max: Tensor | Number) -> Self:
        """In-place version of `clamp_max`: writes the result into the tensor and returns it."""
    def clamp_min_(self, min: Tensor | Number) -> Self:
        """In-place version of `clamp_min`: writes the result into the tensor and returns it."""
    def clip_(self, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Self:
        """In-place version of `clip`: writes the result into the tensor and returns it."""
    def conj_physical_(self) -> Self:
        """In-place version of `conj_physical`: writes the result into the tensor and returns it."""
    def copysign_(self, other: Tensor | Number) -> Self:
        """In-place version of `copysign`: writes the result into the tensor and returns it."""
    def cos_(self) -> Self:
        """In-place version of `cos`: writes the result into the tensor and returns it."""
    def cosh_(self) -> Self:
        """In-place version of `cosh`: writes the result into the tensor and returns it."""
    def deg2rad_(self) -> Self:
        """In-place version of `deg2rad`: writes the result into the tensor and returns it."""
    def digamma_(self) -> Self:
        """In-place version of `digamma`: writes the result into the tensor and returns it."""
    def div_(self, other: Tensor | Number, *, rounding_mode: _b.str | None = None) -> Self:
        """In-place version of `div`: writes the result into the tensor and returns it."""
    def divide_(self, other: Tensor | Number, *, rounding_mode: _b.str | None = None) -> Self:
        """In-place version of `divide`: writes the result into the tensor and returns it."""
    def eq_(self, other: Tensor | Number) -> Self:
        """In-place version of `eq`: writes the result into the tensor and returns it."""
    def erf_(self) -> Self:
        """In-place version of `erf`: writes the result into the tensor and returns it."""
    def erfc_(self) -> Self:
        """In-place version of `erfc`: writes the result into the tensor and returns it."""
    def erfinv_(self) -> Self:
        """In-place version of `erfinv`: writes the result into the tensor and returns it."""
    def exp_(self) -> Self:
        """In-place version of `exp`: writes the result into the tensor and returns it."""
    def exp2_(self) -> Self:
        """In-place version of `exp2`: writes the result into the tensor and returns it."""
    def expm1_(self) -> Self:
        """In-place version of `expm1`: writes the result into the tensor and returns it."""
    def fix_(self) -> Self:
        """In-place version of `fix`: writes the result into the tensor and returns it."""
    def float_power_(self, exponent: Tensor | Number) -> Self:
        """In-place version of `float_power`: writes the result into the tensor and returns it."""
    def floor_(self) -> Self:
        """In-place version of `floor`: writes the result into the tensor and returns it."""
    def floor_divide_(self, other: Tensor | Number) -> Self:
        """In-place version of `floor_divide`: writes the result into the tensor and returns it."""
    def fmod_(self, other: Tensor | Number) -> Self:
        """In-place version of `fmod`: writes the result into the tensor and returns it."""
    def frac_(self) -> Self:
        """In-place version of `frac`: writes the result into the tensor and returns it."""
    def gcd_(self, other: Tensor) -> Self:
        """In-place version of `gcd`: writes the result into the tensor and returns it."""
    def ge_(self, other: Tensor | Number) -> Self:
        """In-place version of `ge`: writes the result into the tensor and returns it."""
    def greater_(self, other: Tensor | Number) -> Self:
        """In-place version of `greater`: writes the result into the tensor and returns it."""
    def greater_equal_(self, other: Tensor | Number) -> Self:
        """In-place version of `greater_equal`: writes the result into the tensor and returns it."""
    def gt_(self, other: Tensor | Number) -> Self:
        """In-place version of `gt`: writes the result into the tensor and returns it."""
    def heaviside_(self, values: Tensor) -> Self:
        """In-place version of `heaviside`: writes the result into the tensor and returns it."""
    def hypot_(self, other: Tensor) -> Self:
        """In-place version of `hypot`: writes the result into the tensor and returns it."""
    def i0_(self) -> Self:
        """In-place version of `i0`: writes the result into the tensor and returns it."""
    def igamma_(self, other: Tensor) -> Self:
        """In-place version of `igamma`: writes the result into the tensor and returns it."""
    def igammac_(self, other: Tensor) -> Self:
        """In-place version of `igammac`: writes the result into the tensor and returns it."""
    def lcm_(self, other: Tensor) -> Self:
        """In-place version of `lcm`: writes the result into the tensor and returns it."""
    def ldexp_(self, other: Tensor) -> Self:
        """In-place version of `ldexp`: writes the result into the tensor and returns it."""
    def le_(self, other: Tensor | Number) -> Self:
        """In-place version of `le`: writes the result into the tensor and returns it."""
    def lerp_(self, end: Tensor, weight: Tensor | Number) -> Self:
        """In-place version of `lerp`: writes the result into the tensor and returns it."""
    def less_(self, other: Tensor | Number) -> Self:
        """In-place version of `less`: writes the result into the tensor and returns it."""
    def less_equal_(self, other: Tensor | Number) -> Self:
        """In-place version of `less_equal`: writes the result into the tensor and returns it."""
    def lgamma_(self) -> Self:
        """In-place version of `lgamma`: writes the result into the tensor and returns it."""
    def log_(self) -> Self:
        """In-place version of `log`: writes the result into the tensor and returns it."""
    def log10_(self) -> Self:
        """In-place version of `log10`: writes the result into the tensor and returns it."""
    def log1p_(self) -> Self:
        """In-place version of `log1p`: writes the result into the tensor and returns it."""
    def log2_(self) -> Self:
        """In-place version of `log2`: writes the result into the tensor and returns it."""
    def logical_and_(self, other: Tensor) -> Self:
        """In-place version of `logical_and`: writes the result into the tensor and returns it."""
    def logical_not_(self) -> Self:
        """In-place version of `logical_not`: writes the result into the tensor and returns it."""
    def logical_or_(self, other: Tensor) -> Self:
        """In-place version of `logical_or`: writes the result into the tensor and returns it."""
    def logical_xor_(self, other: Tensor) -> Self:
        """In-place version of `logical_xor`: writes the result into the tensor and returns it."""
    def logit_(self, eps: _b.float | None = None) -> Self:
        """In-place version of `logit`: writes the result into the tensor and returns it."""
    def lt_(self, other: Tensor | Number) -> Self:
        """In-place version of `lt`: writes the result into the tensor and returns it."""
    def mul_(self, other: Tensor | Number) -> Self:
        """In-place version of `mul`: writes the result into the tensor and returns it."""
    def multiply_(self, other: Tensor | Number) -> Self:
        """In-place version of `multiply`: writes the result into the tensor and returns it."""
    def mvlgamma_(self, p: _b.float) -> Self:
        """In-place version of `mvlgamma`: writes the result into the tensor and returns it."""
    def nan_to_num_(
        self, nan: _b.float | None = None, posinf: _b.float | None = None, neginf: _b.float | None = None
    ) -> Self:
        """In-place version of `nan_to_num`: writes the result into the tensor and returns it."""
    def ne_(self, other: Tensor | Number) -> Self:
        """In-place version of `ne`: writes the result into the tensor and returns it."""
    def neg_(self) -> Self:
        """In-place version of `neg`: writes the result into the tensor and returns it."""
    def negative_(self) -> Self:
        """In-place version of `negative`: writes the result into the tensor and returns it."""
    def nextafter_(self, other: Tensor) -> Self:
        """In-place version of `nextafter`: writes the result into the tensor and returns it."""
    def not_equal_(self, other: Tensor | Number) -> Self:
        """In-place version of `not_equal`: writes the result into the tensor and returns it."""
    def polygamma_(self, n: _b.int) -> Self:
        """In-place version of `polygamma`: writes the result into the tensor and returns it."""
    def pow_(self, exponent: Tensor | Number) -> Self:
        """In-place version of `pow`: writes the result into the tensor and returns it."""
    def rad2deg_(self) -> Self:
        """In-place version of `rad2deg`: writes the result into the tensor and returns it."""
    def reciprocal_(self) -> Self:
        """In-place version of `reciprocal`: writes the result into the tensor and returns it."""
    def relu_(self) -> Self:
        """In-place version of `relu`: writes the result into the tensor and returns it."""
    def remainder_(self, other: Tensor | Number) -> Self:
        """In-place version of `remainder`: writes the result into the tensor and returns it."""
    def round_(self, *, decimals: _b.int = 0) -> Self:
        """In-place version of `round`: writes the result into the tensor and returns it."""
    def rsqrt_(self) -> Self:
        """In-place version of `rsqrt`: writes the result into the tensor and returns it."""
    def sgn_(self) -> Self:
        """In-place version of `sgn`: writes the result into the tensor and returns it."""
    def sigmoid_(self) -> Self:
        """In-place version of `sigmoid`: writes the result into the tensor and returns it."""
    def sign_(self) -> Self:
        """In-place version of `sign`: writes the result into the tensor and returns it."""
    def sin_(self) -> Self:
        """In-place version of `sin`: writes the result into the tensor and returns it."""
    def sinc_(self) -> Self:
        """In-place version of `sinc`: writes the result into the tensor and returns it."""
    def sinh_(self) -> Self:
        """In-place version of `sinh`: writes the result into the tensor and returns it."""
    def sqrt_(self) -> Self:
        """In-place version of `sqrt`: writes the result into the tensor and returns it."""
    def square_(self) -> Self:
        """In-place version of `square`: writes the result into the tensor and returns it."""
    def sub_(self, other: Tensor | Number, *, alpha: Number = 1) -> Self:
        """In-place version of `sub`: writes the result into the tensor and returns it."""
    def subtract_(self, other: Tensor | Number, *, alpha: Number = 1) -> Self:
        """In-place version of `subtract`: writes the result into the tensor and returns it."""
    def tan_(self) -> Self:
        """In-place version of `tan`: writes the result into the tensor and returns it."""
    def tanh_(self) -> Self:
        """In-place version of `tanh`: writes the result into the tensor and returns it."""
    def true_divide_(self, other: Tensor | Number, *, rounding_mode: _b.str | None = None) -> Self:
        """In-place version of `true_divide`: writes the result into the tensor and returns it."""
    def trunc_(self) -> Self:
        """In-place version of `trunc`: writes the result into the tensor and returns it."""
    def xlogy_(self, other: Tensor | Number) -> Self:
        """In-place version of `xlogy`: writes the result into the tensor and returns it."""

def _add_relu(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """``relu(input + alpha * other)``.

    >>> torch._add_relu(torch.tensor([1., 2.]), torch.tensor([-3., 3.]))
    tensor([0., 5.])
    """

def _amp_foreach_non_finite_check_and_unscale_(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply all of `self` by `inv_scale`, in place; `found_inf` becomes 1 where one of them had an infinity or a
    NaN.
    """

def _amp_update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: _b.float,
    scale_backoff_factor: _b.float,
    growth_interval: _b.int,
) -> Tensor:
    """Where `found_inf` is not 0, multiply the scale by the backoff factor; else, after `growth_interval` calls in a
    row, by the growth factor if that is finite. In place.
    """

def _conj(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate: a view with the conjugate bit, which ops work out where they need it; a real tensor
    itself.
    """

def _conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate, computed."""

def _neg_view(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The negative: a view with the negative bit, which ops work out where they need it."""

def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; of a complex tensor, a real one."""

def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; of a complex tensor, a real one."""

def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine, in radians."""

def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine."""

def add(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """``input + alpha * other``, elementwise with broadcasting.

    >>> torch.add(torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]), alpha=0.5)
    tensor([ 6., 12.])
    """

def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1, out: Tensor | None = None) -> Tensor:
    """``input + value * tensor1 / tensor2``. RuntimeError for integers."""

def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1, out: Tensor | None = None) -> Tensor:
    """``input + value * tensor1 * tensor2``."""

def allclose(
    input: Tensor, other: Tensor, rtol: _b.float = 1e-05, atol: _b.float = 1e-08, equal_nan: _b.bool = False
) -> _b.bool:
    """True if all elements are close (see ``isclose``): a Python bool."""

def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle in radians; for real numbers 0 or pi."""

def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine, in radians."""

def arccosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine."""

def arcsin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine, in radians."""

def arcsinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine."""

def arctan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent, in radians."""

def arctan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point (other, input), in radians from -pi to pi."""

def arctanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent."""

def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine, in radians."""

def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine."""

def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent, in radians."""

def atan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point (other, input), in radians from -pi to pi."""

def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent."""

def bitwise_and(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """And of every bit; for bools, logical."""

def bitwise_left_shift(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Arithmetic shift to the left."""

def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complement of every bit; for bools, logical not."""

def bitwise_or(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Or of every bit; for bools, logical."""

def bitwise_right_shift(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Arithmetic shift to the right."""

def bitwise_xor(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Exclusive or of every bit; for bools, logical."""

def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest integer not below each element."""

def celu(input: Tensor, alpha: Number = 1.0, *, out: Tensor | None = None) -> Tensor:
    """``max(0, input) + min(0, alpha * (exp(input / alpha) - 1))`` (Barron, 2017)."""

def clamp(
    input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None, *, out: Tensor | None = None
) -> Tensor:
    """``input`` between ``min`` and ``max`` (numbers or tensors; either may be absent). Where ``min > max`` the result
    is ``max``.

    RuntimeError when both are absent.
    """

def clamp_max(input: Tensor, max: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input``, at most ``max``."""

def clamp_min(input: Tensor, min: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input``, at least ``min``."""

def clip(
    input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None, *, out: Tensor | None = None
) -> Tensor:
    """``input`` between ``min`` and ``max`` (numbers or tensors; either may be absent). Where ``min > max`` the result
    is ``max``.

    RuntimeError when both are absent.
    """

def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A complex tensor from its real and imaginary parts, of one floating dtype."""

def conj(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate: a view with the conjugate bit, which ops work out where they need it; a real tensor
    itself.
    """

def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate."""

def copysign(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The size of ``input`` with the sign of ``other``."""

def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The cosine."""

def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic cosine."""

def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Degrees to radians."""

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the derivative of `lgamma`."""

def div(
    input: Tensor | Number, other: Tensor | Number, *, rounding_mode: _b.str | None = None, out: Tensor | None = None
) -> Tensor:
    """``input / other``; ``rounding_mode`` None (true division, integers become floats), "trunc" (towards zero) or
    "floor" (down).
    """

def divide(
    input: Tensor | Number, other: Tensor | Number, *, rounding_mode: _b.str | None = None, out: Tensor | None = None
) -> Tensor:
    """``input / other``; ``rounding_mode`` None (true division, integers become floats), "trunc" (towards zero) or
    "floor" (down).
    """

def eq(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input == other``, elementwise: a bool tensor."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the error function of each element."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the complementary error function, precise where it is small."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the inverse of the error function on (-1, 1)."""

def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``e ** input``."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 to the power of ``input``."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(input) - 1``, precise for small ``input``."""

def fill(input: Tensor, value: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """A tensor like ``input`` filled with ``value``, a number or a 0-dimensional tensor."""

def fix(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Each element without its fraction."""

def float_power(input: Tensor | Number, exponent: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent`` in double precision (complex if either is)."""

def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest integer not above each element."""

def floor_divide(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input / other`` rounded down. RuntimeError for an integer division by zero."""

def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of two elements; a number rather than a NaN."""

def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of two elements; a number rather than a NaN."""

def fmod(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The remainder of ``input / other`` with the sign of ``input``."""

def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The fraction of ``input``, with its sign."""

def frexp(input: Tensor, *, out: Sequence[Tensor] | None = None) -> results.frexp:
    """``input = mantissa * 2**exponent`` with 0.5 <= |mantissa| < 1."""

def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The greatest common divisor of integers."""

def ge(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input >= other``, elementwise: a bool tensor."""

def greater(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input > other``, elementwise: a bool tensor."""

def greater_equal(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input >= other``, elementwise: a bool tensor."""

def gt(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input > other``, elementwise: a bool tensor."""

def hardshrink(input: Tensor, lambd: _b.float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Zero within ``[-lambd, lambd]``, ``input`` elsewhere."""

def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 below zero, 1 above, ``values`` at zero."""

def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``sqrt(input**2 + other**2)`` without overflow."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the modified Bessel function of the first kind of order 0."""

def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the regularized lower incomplete gamma function."""

def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the regularized upper incomplete gamma function."""

def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view. RuntimeError for a real tensor."""

def isclose(
    input: Tensor,
    other: Tensor,
    rtol: _b.float = 1e-05,
    atol: _b.float = 1e-08,
    equal_nan: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Whether ``|input - other| <= atol + rtol * |other|``, elementwise; equal infinities are close, and NaNs if
    ``equal_nan``.
    """

def isfinite(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is neither infinite nor NaN."""

def isinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is infinite."""

def isnan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is NaN."""

def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is negative infinity."""

def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is positive infinity."""

def isreal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element's imaginary part is zero."""

def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The least common multiple of integers."""

def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input * 2**other``; of the dtype of a floating-point ``input`` where ``other`` is an integer."""

def le(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input <= other``, elementwise: a bool tensor."""

def lerp(input: Tensor, end: Tensor, weight: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input + weight * (end - input)``. The three have one dtype.

    >>> torch.lerp(torch.tensor([0.0, 10.0]), torch.tensor([10.0, 20.0]), 0.5)
    tensor([ 5., 15.])
    """

def less(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input < other``, elementwise: a bool tensor."""

def less_equal(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input <= other``, elementwise: a bool tensor."""

def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the logarithm of the absolute value of the gamma function."""

def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm."""

def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 10."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + input)``, precise for small ``input``."""

def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2."""

def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(exp(input) + exp(other))``."""

def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log2(2**input + 2**other)``."""

def logical_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether both elements are not zero."""

def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is zero."""

def logical_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether either element is not zero."""

def logical_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether exactly one element is not zero."""

def logit(input: Tensor, eps: _b.float | None = None, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the logit: the inverse of the logistic function."""

def lt(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input < other``, elementwise: a bool tensor."""

def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of two elements; NaN if either is. Gradients at ties go half and half."""

def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of two elements; NaN if either is. Gradients at ties go half and half."""

def mul(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input * other``, elementwise with broadcasting."""

def multiply(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input * other``, elementwise with broadcasting."""

def mvlgamma(input: Tensor, p: _b.float, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the logarithm of the multivariate gamma function."""

def nan_to_num(
    input: Tensor,
    nan: _b.float | None = None,
    posinf: _b.float | None = None,
    neginf: _b.float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """NaN becomes ``nan`` (0), infinities ``posinf`` and ``neginf`` (the largest and smallest finite values)."""

def ne(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input != other``, elementwise: a bool tensor."""

def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``-input``."""

def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``-input``."""

def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The next number after ``input`` towards ``other``."""

def not_equal(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input != other``, elementwise: a bool tensor."""

def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A complex tensor from its absolute values and angles."""

def polygamma(n: _b.int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes a derivative of `digamma`."""

def positive(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input`` itself. RuntimeError for a bool tensor."""

def pow(input: Tensor | Number, exponent: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent``. RuntimeError for an integer tensor to a negative integer.

    >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    """

def prelu(input: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input`` where positive, ``weight * input`` elsewhere; ``weight`` has one element or one for each channel
    (dimension 1).
    """

def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Radians to degrees."""

def real(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The real part, a view; a real tensor itself."""

def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / input``."""

def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The positive part, ``max(input, 0)``, elementwise; NaN stays NaN.

    >>> torch.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

def remainder(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The remainder of ``input / other`` with the sign of ``other``, as Python's ``%``."""

def resolve_conj(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy in which the conjugate bit is worked out; a tensor without it itself."""

def resolve_neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy in which the negative bit is worked out; a tensor without it itself."""

def round(input: Tensor, *, decimals: _b.int = 0, out: Tensor | None = None) -> Tensor:
    """To the nearest integer, or to ``decimals`` decimal places (negative: to tens, hundreds ...); ties go to even."""

def rrelu(
    input: Tensor,
    lower: _b.float = 0.125,
    upper: Number = 0.3333333333333333,
    training: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Leaky relu whose slope is drawn from ``[lower, upper)`` for each negative element in training, and is the middle
    of the range otherwise. RuntimeError for bounds that are not finite, or not in order.
    """

def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / sqrt(input)``."""

def rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """``other - alpha * input``."""

def selu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``elu`` scaled so that activations keep mean 0 and variance 1 from layer to layer (Klambauer et al., 2017)."""

def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sign of a real number; of a complex one, ``input / |input|`` (0 at 0)."""

def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + exp(-input))``."""

def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-1, 0 or 1 by the sign of each element; 0 for NaN."""

def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the sign bit is set (also for -0.0)."""

def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sine."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the normalized sinc function."""

def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic sine."""

def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root."""

def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input * input``."""

def sub(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """``input - alpha * other``, elementwise with broadcasting. RuntimeError for bool tensors."""

def subtract(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """``input - alpha * other``, elementwise with broadcasting. RuntimeError for bool tensors."""

def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tangent."""

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent."""

def threshold(input: Tensor, threshold: _b.float, value: Any, *, out: Tensor | None = None) -> Tensor:
    """``input`` where it is above ``threshold``, ``value`` elsewhere."""

def true_divide(
    input: Tensor | Number, other: Tensor | Number, *, rounding_mode: _b.str | None = None, out: Tensor | None = None
) -> Tensor:
    """``input / other``; ``rounding_mode`` None (true division, integers become floats), "trunc" (towards zero) or
    "floor" (down).
    """

def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Each element without its fraction."""

@overload
def where(condition: Tensor) -> tuple[Tensor, ...]:
    """Elements of ``input`` where ``condition`` (bool, broadcast) holds, else of ``other``; with the condition alone,
    ``nonzero(as_tuple=True)``.

    >>> torch.where(torch.tensor([True, False]), torch.tensor([1.0, 2.0]), 0.0)
    tensor([1., 0.])
    """

@overload
def where(
    condition: Tensor, input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor: ...
def xlogy(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes ``input * log(other)``, and 0 where `input` is 0 and `other` is not NaN."""

def abs_(input: Tensor) -> Tensor:
    """In-place version of `abs`: writes the result into the tensor and returns it."""

def absolute_(input: Tensor) -> Tensor:
    """In-place version of `absolute`: writes the result into the tensor and returns it."""

def acos_(input: Tensor) -> Tensor:
    """In-place version of `acos`: writes the result into the tensor and returns it."""

def acosh_(input: Tensor) -> Tensor:
    """In-place version of `acosh`: writes the result into the tensor and returns it."""

def add_(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """In-place version of `add`: writes the result into the tensor and returns it."""

def addcdiv_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """In-place version of `addcdiv`: writes the result into the tensor and returns it."""

def addcmul_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """In-place version of `addcmul`: writes the result into the tensor and returns it."""

def arccos_(input: Tensor) -> Tensor:
    """In-place version of `arccos`: writes the result into the tensor and returns it."""

def arccosh_(input: Tensor) -> Tensor:
    """In-place version of `arccosh`: writes the result into the tensor and returns it."""

def arcsin_(input: Tensor) -> Tensor:
    """In-place version of `arcsin`: writes the result into the tensor and returns it."""

def arcsinh_(input: Tensor) -> Tensor:
    """In-place version of `arcsinh`: writes the result into the tensor and returns it."""

def arctan_(input: Tensor) -> Tensor:
    """In-place version of `arctan`: writes the result into the tensor and returns it."""

def arctan2_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `arctan2`: writes the result into the tensor and returns it."""

def arctanh_(input: Tensor) -> Tensor:
    """In-place version of `arctanh`: writes the result into the tensor and returns it."""

def asin_(input: Tensor) -> Tensor:
    """In-place version of `asin`: writes the result into the tensor and returns it."""

def asinh_(input: Tensor) -> Tensor:
    """In-place version of `asinh`: writes the result into the tensor and returns it."""

def atan_(input: Tensor) -> Tensor:
    """In-place version of `atan`: writes the result into the tensor and returns it."""

def atan2_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `atan2`: writes the result into the tensor and returns it."""

def atanh_(input: Tensor) -> Tensor:
    """In-place version of `atanh`: writes the result into the tensor and returns it."""

def bitwise_and_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """In-place version of `bitwise_and`: writes the result into the tensor and returns it."""

def bitwise_left_shift_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """In-place version of `bitwise_left_shift`: writes the result into the tensor and returns it."""

def bitwise_not_(input: Tensor) -> Tensor:
    """In-place version of `bitwise_not`: writes the result into the tensor and returns it."""

def bitwise_or_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """In-place version of `bitwise_or`: writes the result into the tensor and returns it."""

def bitwise_right_shift_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """In-place version of `bitwise_right_shift`: writes the result into the tensor and returns it."""

def bitwise_xor_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """In-place version of `bitwise_xor`: writes the result into the tensor and returns it."""

def ceil_(input: Tensor) -> Tensor:
    """In-place version of `ceil`: writes the result into the tensor and returns it."""

def celu_(input: Tensor, alpha: Number = 1.0) -> Tensor:
    """In-place version of `celu`: writes the result into the tensor and returns it."""

def clamp_(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """In-place version of `clamp`: writes the result into the tensor and returns it."""

def clamp_max_(input: Tensor, max: Tensor | Number) -> Tensor:
    """In-place version of `clamp_max`: writes the result into the tensor and returns it."""

def clamp_min_(input: Tensor, min: Tensor | Number) -> Tensor:
    """In-place version of `clamp_min`: writes the result into the tensor and returns it."""

def clip_(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """In-place version of `clip`: writes the result into the tensor and returns it."""

def conj_physical_(input: Tensor) -> Tensor:
    """In-place version of `conj_physical`: writes the result into the tensor and returns it."""

def copysign_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In-place version of `copysign`: writes the result into the tensor and returns it."""

def cos_(input: Tensor) -> Tensor:
    """In-place version of `cos`: writes the result into the tensor and returns it."""

def cosh_(input: Tensor) -> Tensor:
    """In-place version of `cosh`: writes the result into the tensor and returns it."""

def deg2rad_(input: Tensor) -> Tensor:
    """In-place version of `deg2rad`: writes the result into the tensor and returns it."""

def digamma_(input: Tensor) -> Tensor:
    """In-place version of `digamma`: writes the result into the tensor and returns it."""

def div_(input: Tensor | Number, other: Tensor | Number, *, rounding_mode: _b.str | None = None) -> Tensor:
    """In-place version of `div`: writes the result into the tensor and returns it."""

def divide_(input: Tensor | Number, other: Tensor | Number, *, rounding_mode: _b.str | None = None) -> Tensor:
    """In-place version of `divide`: writes the result into the tensor and returns it."""

def eq_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In-place version of `eq`: writes the result into the tensor and returns it."""

def erf_(input: Tensor) -> Tensor:
    """In-place version of `erf`: writes the result into the tensor and returns it."""

def erfc_(input: Tensor) -> Tensor:
    """In-place version of `erfc`: writes the result into the tensor and returns it."""

def erfinv_(input: Tensor) -> Tensor:
    """In-place version of `erfinv`: writes the result into the tensor and returns it."""

def exp_(input: Tensor) -> Tensor:
    """In-place version of `exp`: writes the result into the tensor and returns it."""

def exp2_(input: Tensor) -> Tensor:
    """In-place version of `exp2`: writes the result into the tensor and returns it."""

def expm1_(input: Tensor) -> Tensor:
    """In-place version of `expm1`: writes the result into the tensor and returns it."""

def fix_(input: Tensor) -> Tensor:
    """In-place version of `fix`: writes the result into the tensor and returns it."""

def float_power_(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """In-place version of `float_power`: writes the result into the tensor and returns it."""

def floor_(input: Tensor) -> Tensor:
    """In-place version of `floor`: writes the result into the tensor and returns it."""

def floor_divide_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """In-place version of `floor_divide`: writes the result into the tensor and returns it."""

def fmod_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In-place version of `fmod`: writes the result into the tensor and returns it."""

def frac_(input: Tensor) -> Tensor:
    """In-place version of `frac`: writes the result into the tensor and returns it."""

def gcd_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `gcd`: writes the result into the tensor and returns it."""

def ge_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In-place version of `ge`: writes the result into the tensor and returns it."""

def greater_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In-place version of `greater`: writes the result into the tensor and returns it."""

def greater_equal_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In-place version of `greater_equal`: writes the result into the tensor and returns it."""

def gt_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In-place version of `gt`: writes the result into the tensor and returns it."""

def heaviside_(input: Tensor, values: Tensor) -> Tensor:
    """In-place version of `heaviside`: writes the result into the tensor and returns it."""

def hypot_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `hypot`: writes the result into the tensor and returns it."""

def i0_(input: Tensor) -> Tensor:
    """In-place version of `i0`: writes the result into the tensor and returns it."""

def igamma_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `igamma`: writes the result into the tensor and returns it."""

def igammac_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `igammac`: writes the result into the tensor and returns it."""

def lcm_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `lcm`: writes the result into the tensor and returns it."""

def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `ldexp`: writes the result into the tensor and returns it."""

def le_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In-place version of `le`: writes the result into the tensor and returns it."""

def lerp_(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """In-place version of `lerp`: writes the result into the tensor and returns it."""

def less_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In-place version of `less`: writes the result into the tensor and returns it."""

def less_equal_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In-place version of `less_equal`: writes the result into the tensor and returns it."""

def lgamma_(input: Tensor) -> Tensor:
    """In-place version of `lgamma`: writes the result into the tensor and returns it."""

def log_(input: Tensor) -> Tensor:
    """In-place version of `log`: writes the result into the tensor and returns it."""

def log10_(input: Tensor) -> Tensor:
    """In-place version of `log10`: writes the result into the tensor and returns it."""

def log1p_(input: Tensor) -> Tensor:
    """In-place version of `log1p`: writes the result into the tensor and returns it."""

def log2_(input: Tensor) -> Tensor:
    """In-place version of `log2`: writes the result into the tensor and returns it."""

def logical_and_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `logical_and`: writes the result into the tensor and returns it."""

def logical_not_(input: Tensor) -> Tensor:
    """In-place version of `logical_not`: writes the result into the tensor and returns it."""

def logical_or_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `logical_or`: writes the result into the tensor and returns it."""

def logical_xor_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `logical_xor`: writes the result into the tensor and returns it."""

def logit_(input: Tensor, eps: _b.float | None = None) -> Tensor:
    """In-place version of `logit`: writes the result into the tensor and returns it."""

def lt_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In-place version of `lt`: writes the result into the tensor and returns it."""

def mul_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """In-place version of `mul`: writes the result into the tensor and returns it."""

def multiply_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """In-place version of `multiply`: writes the result into the tensor and returns it."""

def mvlgamma_(input: Tensor, p: _b.float) -> Tensor:
    """In-place version of `mvlgamma`: writes the result into the tensor and returns it."""

def nan_to_num_(
    input: Tensor, nan: _b.float | None = None, posinf: _b.float | None = None, neginf: _b.float | None = None
) -> Tensor:
    """In-place version of `nan_to_num`: writes the result into the tensor and returns it."""

def ne_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In-place version of `ne`: writes the result into the tensor and returns it."""

def neg_(input: Tensor) -> Tensor:
    """In-place version of `neg`: writes the result into the tensor and returns it."""

def negative_(input: Tensor) -> Tensor:
    """In-place version of `negative`: writes the result into the tensor and returns it."""

def nextafter_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `nextafter`: writes the result into the tensor and returns it."""

def not_equal_(input: Tensor, other: Tensor | Number) -> Tensor:
    """In-place version of `not_equal`: writes the result into the tensor and returns it."""

def pow_(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """In-place version of `pow`: writes the result into the tensor and returns it."""

def rad2deg_(input: Tensor) -> Tensor:
    """In-place version of `rad2deg`: writes the result into the tensor and returns it."""

def reciprocal_(input: Tensor) -> Tensor:
    """In-place version of `reciprocal`: writes the result into the tensor and returns it."""

def relu_(input: Tensor) -> Tensor:
    """In-place version of `relu`: writes the result into the tensor and returns it."""

def remainder_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """In-place version of `remainder`: writes the result into the tensor and returns it."""

def round_(input: Tensor, *, decimals: _b.int = 0) -> Tensor:
    """In-place version of `round`: writes the result into the tensor and returns it."""

def rrelu_(
    input: Tensor, lower: _b.float = 0.125, upper: Number = 0.3333333333333333, training: _b.bool = False
) -> Tensor:
    """In-place version of `rrelu`: writes the result into the tensor and returns it."""

def rsqrt_(input: Tensor) -> Tensor:
    """In-place version of `rsqrt`: writes the result into the tensor and returns it."""

def selu_(input: Tensor) -> Tensor:
    """In-place version of `selu`: writes the result into the tensor and returns it."""

def sgn_(input: Tensor) -> Tensor:
    """In-place version of `sgn`: writes the result into the tensor and returns it."""

def sigmoid_(input: Tensor) -> Tensor:
    """In-place version of `sigmoid`: writes the result into the tensor and returns it."""

def sign_(input: Tensor) -> Tensor:
    """In-place version of `sign`: writes the result into the tensor and returns it."""

def sin_(input: Tensor) -> Tensor:
    """In-place version of `sin`: writes the result into the tensor and returns it."""

def sinc_(input: Tensor) -> Tensor:
    """In-place version of `sinc`: writes the result into the tensor and returns it."""

def sinh_(input: Tensor) -> Tensor:
    """In-place version of `sinh`: writes the result into the tensor and returns it."""

def sqrt_(input: Tensor) -> Tensor:
    """In-place version of `sqrt`: writes the result into the tensor and returns it."""

def square_(input: Tensor) -> Tensor:
    """In-place version of `square`: writes the result into the tensor and returns it."""

def sub_(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """In-place version of `sub`: writes the result into the tensor and returns it."""

def subtract_(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """In-place version of `subtract`: writes the result into the tensor and returns it."""

def tan_(input: Tensor) -> Tensor:
    """In-place version of `tan`: writes the result into the tensor and returns it."""

def tanh_(input: Tensor) -> Tensor:
    """In-place version of `tanh`: writes the result into the tensor and returns it."""

def threshold_(input: Tensor, threshold: _b.float, value: Any) -> Tensor:
    """In-place version of `threshold`: writes the result into the tensor and returns it."""

def true_divide_(input: Tensor | Number, other: Tensor | Number, *, rounding_mode: _b.str | None = None) -> Tensor:
    """In-place version of `true_divide`: writes the result into the tensor and returns it."""

def trunc_(input: Tensor) -> Tensor:
    """In-place version of `trunc`: writes the result into the tensor and returns it."""

def xlogy_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """In-place version of `xlogy`: writes the result into the tensor and returns it."""
