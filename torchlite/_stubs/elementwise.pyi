# Made by tools/make_stubs.py from the op records: do not edit.
"""Functions and methods of ops: elementwise."""

import builtins as _b
from collections.abc import Sequence
from typing import Any, Self, overload

from . import results
from .aliases import Number
from .basic import Generator
from .tensor import Tensor

class ElementwiseMethods:
    def _conj(self) -> Tensor:
        """The complex conjugate: a view with the conjugate bit set; a real tensor itself."""
    def _conj_physical(self) -> Tensor:
        """The complex conjugate, computed."""
    def _neg_view(self) -> Tensor:
        """The negative: a view with the negative bit, which ops work out where they need it."""
    def abs(self) -> Tensor:
        """The absolute value; of a complex tensor, the modulus in the real dtype."""
    def absolute(self) -> Tensor:
        """The absolute value; of a complex tensor, the modulus in the real dtype."""
    def acos(self) -> Tensor:
        """The inverse cosine, in radians from 0 to pi; NaN outside [-1, 1].

        Integers become the default float dtype.

        Example:
            >>> torch.acos(torch.tensor([1.0, 0.0]))
            tensor([0.0000, 1.5708])
        """
    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine; NaN below 1. Integers become the default float dtype.

        Example:
            >>> torch.acosh(torch.tensor([1.0, 2.0]))
            tensor([0.0000, 1.3170])
        """
    def add(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """``input + alpha * other``, elementwise with broadcasting."""
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """``input + value * tensor1 / tensor2``, elementwise with broadcasting."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """``input + value * tensor1 * tensor2``, elementwise with broadcasting."""
    def allclose(
        self, other: Tensor, rtol: _b.float = 1e-05, atol: _b.float = 1e-08, equal_nan: _b.bool = False
    ) -> _b.bool:
        """Whether all elements are close: ``abs(input - other) <= atol + rtol * abs(other)``."""
    def angle(self) -> Tensor:
        """The angle of each complex number in radians; of a real number, 0 or pi, and NaN for NaN."""
    def arccos(self) -> Tensor:
        """The inverse cosine, in radians from 0 to pi; NaN outside [-1, 1].

        Integers become the default float dtype.

        Example:
            >>> torch.acos(torch.tensor([1.0, 0.0]))
            tensor([0.0000, 1.5708])
        """
    def arccosh(self) -> Tensor:
        """The inverse hyperbolic cosine; NaN below 1. Integers become the default float dtype.

        Example:
            >>> torch.acosh(torch.tensor([1.0, 2.0]))
            tensor([0.0000, 1.3170])
        """
    def arcsin(self) -> Tensor:
        """The inverse sine, in radians from -pi/2 to pi/2; NaN outside [-1, 1].

        Integers become the default float dtype.

        Example:
            >>> torch.asin(torch.tensor([0.0, 1.0]))
            tensor([0.0000, 1.5708])
        """
    def arcsinh(self) -> Tensor:
        """The inverse hyperbolic sine; integers become the default float dtype.

        Example:
            >>> torch.asinh(torch.tensor([0.0, 1.0]))
            tensor([0.0000, 0.8814])
        """
    def arctan(self) -> Tensor:
        """The inverse tangent, in radians from -pi/2 to pi/2. Integers become the default float dtype.

        Example:
            >>> torch.atan(torch.tensor([0.0, 1.0]))
            tensor([0.0000, 0.7854])

        See also:
            `torch.atan2`, which takes the quadrant from the signs of two operands.
        """
    def arctan2(self, other: Tensor) -> Tensor:
        """The angle of the points with abscissa `other` and ordinate `input`, in radians from -pi to pi."""
    def arctanh(self) -> Tensor:
        """The inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.

        Integers become the default float dtype.

        Example:
            >>> torch.atanh(torch.tensor([0.0, 0.5, 1.0]))
            tensor([0.0000, 0.5493,    inf])
        """
    def asin(self) -> Tensor:
        """The inverse sine, in radians from -pi/2 to pi/2; NaN outside [-1, 1].

        Integers become the default float dtype.

        Example:
            >>> torch.asin(torch.tensor([0.0, 1.0]))
            tensor([0.0000, 1.5708])
        """
    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine; integers become the default float dtype.

        Example:
            >>> torch.asinh(torch.tensor([0.0, 1.0]))
            tensor([0.0000, 0.8814])
        """
    def atan(self) -> Tensor:
        """The inverse tangent, in radians from -pi/2 to pi/2. Integers become the default float dtype.

        Example:
            >>> torch.atan(torch.tensor([0.0, 1.0]))
            tensor([0.0000, 0.7854])

        See also:
            `torch.atan2`, which takes the quadrant from the signs of two operands.
        """
    def atan2(self, other: Tensor) -> Tensor:
        """The angle of the points with abscissa `other` and ordinate `input`, in radians from -pi to pi."""
    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.

        Integers become the default float dtype.

        Example:
            >>> torch.atanh(torch.tensor([0.0, 0.5, 1.0]))
            tensor([0.0000, 0.5493,    inf])
        """
    def bitwise_and(self, other: Tensor | Number) -> Tensor:
        """The and of every bit of two integers, with broadcasting; of bools, the logical and.

        Example:
            >>> torch.bitwise_and(torch.tensor(12), torch.tensor(10))
            tensor(8)
        """
    def bitwise_left_shift(self, other: Tensor | Number) -> Tensor:
        """The arithmetic shift of integers to the left: ``input * 2 ** other``, rounded down.

        Args:
            other: The number of bits: a tensor that broadcasts with `input`, or a number.

        Example:
            >>> torch.bitwise_left_shift(torch.tensor([1, -1]), 2)
            tensor([ 4, -4])
        """
    def bitwise_not(self) -> Tensor:
        """The complement of every bit of an integer; of a bool, logical not."""
    def bitwise_or(self, other: Tensor | Number) -> Tensor:
        """The or of every bit of two integers, with broadcasting; of bools, the logical or.

        Example:
            >>> torch.bitwise_or(torch.tensor(12), torch.tensor(10))
            tensor(14)
        """
    def bitwise_right_shift(self, other: Tensor | Number) -> Tensor:
        """The arithmetic shift of integers to the right: ``input * 2 ** -other``, rounded down.

        Args:
            other: The number of bits: a tensor that broadcasts with `input`, or a number.

        Example:
            >>> torch.bitwise_right_shift(torch.tensor([1, -1]), 2)
            tensor([ 0, -1])
        """
    def bitwise_xor(self, other: Tensor | Number) -> Tensor:
        """The exclusive or of every bit of two integers, with broadcasting; of bools, the logical exclusive or.

        Example:
            >>> torch.bitwise_xor(torch.tensor(12), torch.tensor(10))
            tensor(6)
        """
    def ceil(self) -> Tensor:
        """The smallest integer that is not below each element. The dtype stays and the gradient is zero.

        Example:
            >>> torch.ceil(torch.tensor([1.2, -1.7]))
            tensor([ 2., -1.])
        """
    def clamp(self, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
        """`input` limited to the range from `min` to `max`, elementwise: ``min(max(input, min), max)``."""
    def clamp_max(self, max: Tensor | Number) -> Tensor:
        """The smaller of `input` and the limit `max`, elementwise; NaN stays NaN.

        Args:
            max: The upper limit: a number or a tensor that broadcasts with `input`.

        Example:
            >>> torch.clamp_max(torch.tensor([-2.0, 0.5]), 0)
            tensor([-2.,  0.])
        """
    def clamp_min(self, min: Tensor | Number) -> Tensor:
        """The larger of `input` and the limit `min`, elementwise; NaN stays NaN.

        Args:
            min: The lower limit: a number or a tensor that broadcasts with `input`.

        Example:
            >>> torch.clamp_min(torch.tensor([-2.0, 0.5]), 0)
            tensor([0.0000, 0.5000])
        """
    def clip(self, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
        """`input` limited to the range from `min` to `max`, elementwise: ``min(max(input, min), max)``."""
    def conj(self) -> Tensor:
        """The complex conjugate: a view with the conjugate bit set; a real tensor itself."""
    def conj_physical(self) -> Tensor:
        """The complex conjugate, computed at once; a real tensor itself.

        Example:
            >>> torch.conj_physical(torch.tensor([1 + 2j]))
            tensor([1.-2.j])

        See also:
            `torch.conj`, which returns a view with the conjugate bit.
        """
    def copysign(self, other: Tensor | Number) -> Tensor:
        """The magnitude of `input` with the sign of `other`, with broadcasting.

        Integers become the default float dtype. The gradient at 0 is 0.

        Example:
            >>> torch.copysign(torch.tensor([1.0, -2.0]), -0.0)
            tensor([-1., -2.])
        """
    def cos(self) -> Tensor:
        """The cosine of an angle in radians; integers become the default float dtype.

        Example:
            >>> torch.cos(torch.tensor([0.0, 1.0]))
            tensor([1.0000, 0.5403])
        """
    def cosh(self) -> Tensor:
        """The hyperbolic cosine; integers become the default float dtype.

        Example:
            >>> torch.cosh(torch.tensor([0.0, 1.0]))
            tensor([1.0000, 1.5431])
        """
    def deg2rad(self) -> Tensor:
        """Angles in degrees converted to radians; integers become the default float dtype.

        Example:
            >>> torch.deg2rad(torch.tensor([0.0, 180.0]))
            tensor([0.0000, 3.1416])
        """
    def digamma(self) -> Tensor:
        r"""Computes the derivative of `lgamma`."""
    def div(self, other: Tensor | Number, *, rounding_mode: _b.str | None = None) -> Tensor:
        """``input / other``, elementwise with broadcasting, with the quotient rounded on request."""
    def divide(self, other: Tensor | Number, *, rounding_mode: _b.str | None = None) -> Tensor:
        """``input / other``, elementwise with broadcasting, with the quotient rounded on request."""
    def eq(self, other: Tensor | Number) -> Tensor:
        """``input == other``, elementwise with broadcasting: a bool tensor.

        Example:
            >>> torch.eq(torch.tensor([1, 2, 3]), 2)
            tensor([False,  True, False])
        """
    def erf(self) -> Tensor:
        r"""Computes the error function of each element."""
    def erfc(self) -> Tensor:
        r"""Computes the complementary error function, precise where it is small."""
    def erfinv(self) -> Tensor:
        """Computes the inverse of the error function on (-1, 1)."""
    def exp(self) -> Tensor:
        """The exponential ``e ** input``; integers become the default float dtype.

        Example:
            >>> torch.exp(torch.tensor([0.0, 1.0]))
            tensor([1.0000, 2.7183])
        """
    def exp2(self) -> Tensor:
        """``2 ** input``; integers become the default float dtype.

        Example:
            >>> torch.exp2(torch.tensor([0.0, 3.0]))
            tensor([1., 8.])
        """
    def expm1(self) -> Tensor:
        """``exp(input) - 1``, precise for small `input`; integers become the default float dtype.

        Example:
            >>> torch.expm1(torch.tensor([0.0, 1.0]))
            tensor([0.0000, 1.7183])
        """
    def fix(self) -> Tensor:
        """Each element without its fraction: rounded towards zero. The dtype stays and the gradient is zero.

        Example:
            >>> torch.trunc(torch.tensor([1.7, -1.7]))
            tensor([ 1., -1.])
        """
    def float_power(self, exponent: Tensor | Number) -> Tensor:
        """``input ** exponent`` in double precision, with broadcasting."""
    def floor(self) -> Tensor:
        """The largest integer that is not above each element. The dtype stays and the gradient is zero.

        Example:
            >>> torch.floor(torch.tensor([1.7, -1.2]))
            tensor([ 1., -2.])
        """
    def floor_divide(self, other: Tensor | Number) -> Tensor:
        """``floor(input / other)``, elementwise with broadcasting."""
    def fmax(self, other: Tensor) -> Tensor:
        """The larger of two elements, with broadcasting; a number rather than a NaN."""
    def fmin(self, other: Tensor) -> Tensor:
        """The smaller of two elements, with broadcasting; a number rather than a NaN."""
    def fmod(self, other: Tensor | Number) -> Tensor:
        """The remainder of ``input / other`` with the sign of `input`, with broadcasting, as C's `fmod`."""
    def frac(self) -> Tensor:
        """The fraction of each element, with the element's sign: ``input - trunc(input)``.

        Example:
            >>> torch.frac(torch.tensor([1.25, -1.25]))
            tensor([ 0.2500, -0.2500])
        """
    def frexp(self) -> results.frexp:
        """The mantissa and the exponent of each element: ``input = mantissa * 2**exponent``."""
    def gcd(self, other: Tensor) -> Tensor:
        """The greatest common divisor of two integers, with broadcasting; not negative.

        Args:
            other: The second operand: a tensor that broadcasts with `input`.

        Example:
            >>> torch.gcd(torch.tensor([12, -5]), torch.tensor([18, 10]))
            tensor([6, 5])
        """
    def ge(self, other: Tensor | Number) -> Tensor:
        """``input >= other``, elementwise with broadcasting: a bool tensor.

        Example:
            >>> torch.ge(torch.tensor([1, 2, 3]), 2)
            tensor([False,  True,  True])
        """
    def greater(self, other: Tensor | Number) -> Tensor:
        """``input > other``, elementwise with broadcasting: a bool tensor.

        Example:
            >>> torch.gt(torch.tensor([1, 2, 3]), 2)
            tensor([False, False,  True])
        """
    def greater_equal(self, other: Tensor | Number) -> Tensor:
        """``input >= other``, elementwise with broadcasting: a bool tensor.

        Example:
            >>> torch.ge(torch.tensor([1, 2, 3]), 2)
            tensor([False,  True,  True])
        """
    def gt(self, other: Tensor | Number) -> Tensor:
        """``input > other``, elementwise with broadcasting: a bool tensor.

        Example:
            >>> torch.gt(torch.tensor([1, 2, 3]), 2)
            tensor([False, False,  True])
        """
    def hardshrink(self, lambd: _b.float = 0.5) -> Tensor:
        """Zero where the absolute value is at most `lambd`, and `input` elsewhere."""
    def heaviside(self, values: Tensor) -> Tensor:
        """The Heaviside step function: 0 below zero, 1 above, `values` at zero."""
    def hypot(self, other: Tensor) -> Tensor:
        """The hypotenuse ``sqrt(input**2 + other**2)``, with broadcasting, computed without overflow.

        Args:
            other: The second operand: a tensor that broadcasts with `input`.

        Example:
            >>> torch.hypot(torch.tensor([3.0]), torch.tensor([4.0]))
            tensor([5.])
        """
    def i0(self) -> Tensor:
        """Computes the modified Bessel function of the first kind of order 0."""
    def igamma(self, other: Tensor) -> Tensor:
        r"""Computes the regularized lower incomplete gamma function."""
    def igammac(self, other: Tensor) -> Tensor:
        """Computes the regularized upper incomplete gamma function."""
    def isclose(
        self, other: Tensor, rtol: _b.float = 1e-05, atol: _b.float = 1e-08, equal_nan: _b.bool = False
    ) -> Tensor:
        """Whether ``abs(input - other) <= atol + rtol * abs(other)``, with broadcasting: a bool tensor."""
    def isfinite(self) -> Tensor:
        """Whether each element is neither infinite nor NaN: a bool tensor.

        A complex element is tested by both of its parts.

        Example:
            >>> torch.isfinite(torch.tensor([1.0, float("inf"), float("nan")]))
            tensor([ True, False, False])
        """
    def isinf(self) -> Tensor:
        """Whether each element is infinite: a bool tensor.

        A complex element is tested by both of its parts.

        Example:
            >>> torch.isinf(torch.tensor([1.0, float("inf"), float("nan")]))
            tensor([False,  True, False])
        """
    def isnan(self) -> Tensor:
        """Whether each element is NaN: a bool tensor.

        A complex element is tested by both of its parts.

        Example:
            >>> torch.isnan(torch.tensor([1.0, float("inf"), float("nan")]))
            tensor([False, False,  True])
        """
    def isneginf(self) -> Tensor:
        """Whether each element is negative infinity: a bool tensor.

        Example:
            >>> torch.isneginf(torch.tensor([1.0, float("inf"), -float("inf")]))
            tensor([False, False,  True])
        """
    def isposinf(self) -> Tensor:
        """Whether each element is positive infinity: a bool tensor.

        Example:
            >>> torch.isposinf(torch.tensor([1.0, float("inf"), -float("inf")]))
            tensor([False,  True, False])
        """
    def isreal(self) -> Tensor:
        """Whether the imaginary part of each element is zero: a bool tensor, all True for real dtypes.

        Example:
            >>> torch.isreal(torch.tensor([1 + 0j, 1j]))
            tensor([ True, False])
        """
    def lcm(self, other: Tensor) -> Tensor:
        """The least common multiple of two integers, with broadcasting; not negative.

        Args:
            other: The second operand: a tensor that broadcasts with `input`.

        Example:
            >>> torch.lcm(torch.tensor([4, -5]), torch.tensor([6, 10]))
            tensor([12, 10])
        """
    def ldexp(self, other: Tensor) -> Tensor:
        """``input * 2**other``, with broadcasting."""
    def le(self, other: Tensor | Number) -> Tensor:
        """``input <= other``, elementwise with broadcasting: a bool tensor.

        Example:
            >>> torch.le(torch.tensor([1, 2, 3]), 2)
            tensor([ True,  True, False])
        """
    def lerp(self, end: Tensor, weight: Tensor | Number) -> Tensor:
        """The linear interpolation ``input + weight * (end - input)``, with broadcasting."""
    def less(self, other: Tensor | Number) -> Tensor:
        """``input < other``, elementwise with broadcasting: a bool tensor.

        Example:
            >>> torch.lt(torch.tensor([1, 2, 3]), 2)
            tensor([ True, False, False])
        """
    def less_equal(self, other: Tensor | Number) -> Tensor:
        """``input <= other``, elementwise with broadcasting: a bool tensor.

        Example:
            >>> torch.le(torch.tensor([1, 2, 3]), 2)
            tensor([ True,  True, False])
        """
    def lgamma(self) -> Tensor:
        r"""Computes the logarithm of the absolute value of the gamma function."""
    def log(self) -> Tensor:
        """The natural logarithm; integers become the default float dtype.

        It is minus infinity at 0, and NaN for negative real numbers.

        Example:
            >>> torch.log(torch.tensor([1.0, 2.0, 0.0]))
            tensor([0.0000, 0.6931,   -inf])
        """
    def log10(self) -> Tensor:
        """The logarithm to base 10; integers become the default float dtype.

        Example:
            >>> torch.log10(torch.tensor([1.0, 2.0]))
            tensor([0.0000, 0.3010])
        """
    def log1p(self) -> Tensor:
        """``log(1 + input)``, precise for small `input`; integers become the default float dtype.

        Example:
            >>> torch.log1p(torch.tensor([0.0, 1.0]))
            tensor([0.0000, 0.6931])
        """
    def log2(self) -> Tensor:
        """The logarithm to base 2; integers become the default float dtype.

        Example:
            >>> torch.log2(torch.tensor([1.0, 8.0]))
            tensor([0., 3.])
        """
    def logaddexp(self, other: Tensor) -> Tensor:
        """``log(exp(input) + exp(other))``, with broadcasting, computed without overflow.

        Args:
            other: The second operand: a tensor that broadcasts with `input`.

        Example:
            >>> torch.logaddexp(torch.tensor([0.0, 1000.0]), torch.tensor([0.0, 1000.0]))
            tensor([6.9315e-01, 1.0007e+03])
        """
    def logaddexp2(self, other: Tensor) -> Tensor:
        """``log2(2**input + 2**other)``, with broadcasting, computed without overflow.

        Args:
            other: The second operand: a tensor that broadcasts with `input`.

        Example:
            >>> torch.logaddexp2(torch.tensor([0.0, 1000.0]), torch.tensor([0.0, 1000.0]))
            tensor([1.0000e+00, 1.0010e+03])
        """
    def logical_and(self, other: Tensor) -> Tensor:
        """Whether both elements are not zero, with broadcasting: a bool tensor.

        Args:
            other: The second operand: a tensor that broadcasts with `input`.

        Example:
            >>> torch.logical_and(torch.tensor([0, 0, 1]), torch.tensor([0, 2, 3]))
            tensor([False, False,  True])
        """
    def logical_not(self) -> Tensor:
        """Whether each element is zero: a bool tensor.

        Example:
            >>> torch.logical_not(torch.tensor([0, 1, 2]))
            tensor([ True, False, False])
        """
    def logical_or(self, other: Tensor) -> Tensor:
        """Whether either element is not zero, with broadcasting: a bool tensor.

        Args:
            other: The second operand: a tensor that broadcasts with `input`.

        Example:
            >>> torch.logical_or(torch.tensor([0, 0, 1]), torch.tensor([0, 2, 3]))
            tensor([False,  True,  True])
        """
    def logical_xor(self, other: Tensor) -> Tensor:
        """Whether exactly one element is not zero, with broadcasting: a bool tensor.

        Args:
            other: The second operand: a tensor that broadcasts with `input`.

        Example:
            >>> torch.logical_xor(torch.tensor([0, 0, 1]), torch.tensor([0, 2, 3]))
            tensor([False,  True, False])
        """
    def logit(self, eps: _b.float | None = None) -> Tensor:
        r"""Computes the logit: the inverse of the logistic function."""
    def lt(self, other: Tensor | Number) -> Tensor:
        """``input < other``, elementwise with broadcasting: a bool tensor.

        Example:
            >>> torch.lt(torch.tensor([1, 2, 3]), 2)
            tensor([ True, False, False])
        """
    def maximum(self, other: Tensor) -> Tensor:
        """The larger of two elements, with broadcasting; NaN where either is NaN."""
    def minimum(self, other: Tensor) -> Tensor:
        """The smaller of two elements, with broadcasting; NaN where either is NaN."""
    def mul(self, other: Tensor | Number) -> Tensor:
        """``input * other``, elementwise with broadcasting; bools combine by logical and.

        The operands promote to a common dtype.

        Example:
            >>> torch.mul(torch.tensor([1.0, 2.0]), torch.tensor([[10.0], [20.0]]))
            tensor([[10., 20.],
                    [20., 40.]])
        """
    def multiply(self, other: Tensor | Number) -> Tensor:
        """``input * other``, elementwise with broadcasting; bools combine by logical and.

        The operands promote to a common dtype.

        Example:
            >>> torch.mul(torch.tensor([1.0, 2.0]), torch.tensor([[10.0], [20.0]]))
            tensor([[10., 20.],
                    [20., 40.]])
        """
    def mvlgamma(self, p: _b.float) -> Tensor:
        r"""Computes the logarithm of the multivariate gamma function."""
    def nan_to_num(
        self, nan: _b.float | None = None, posinf: _b.float | None = None, neginf: _b.float | None = None
    ) -> Tensor:
        """`input` with numbers in place of NaN and infinities."""
    def ne(self, other: Tensor | Number) -> Tensor:
        """``input != other``, elementwise with broadcasting: a bool tensor.

        Example:
            >>> torch.ne(torch.tensor([1, 2, 3]), 2)
            tensor([ True, False,  True])
        """
    def neg(self) -> Tensor:
        """``-input``, elementwise.

        Raises:
            RuntimeError: `input` is a bool tensor.

        Example:
            >>> torch.neg(torch.tensor([1.0, -2.0]))
            tensor([-1.,  2.])
        """
    def negative(self) -> Tensor:
        """``-input``, elementwise.

        Raises:
            RuntimeError: `input` is a bool tensor.

        Example:
            >>> torch.neg(torch.tensor([1.0, -2.0]))
            tensor([-1.,  2.])
        """
    def nextafter(self, other: Tensor) -> Tensor:
        """The next number of the dtype after `input` towards `other`, with broadcasting.

        Args:
            other: The second operand: a tensor that broadcasts with `input`.

        Example:
            >>> torch.nextafter(torch.tensor([1.0]), torch.tensor([2.0])) - 1
            tensor([1.1921e-07])
        """
    def not_equal(self, other: Tensor | Number) -> Tensor:
        """``input != other``, elementwise with broadcasting: a bool tensor.

        Example:
            >>> torch.ne(torch.tensor([1, 2, 3]), 2)
            tensor([ True, False,  True])
        """
    def polygamma(self, n: _b.int) -> Tensor:
        r"""Computes a derivative of `digamma`."""
    def positive(self) -> Tensor:
        """`input` itself.

        Raises:
            RuntimeError: `input` is a bool tensor.

        Example:
            >>> torch.positive(torch.tensor([-1.0, 2.0]))
            tensor([-1.,  2.])
        """
    def pow(self, exponent: Tensor | Number) -> Tensor:
        """``input ** exponent``, elementwise with broadcasting."""
    def prelu(self, weight: Tensor) -> Tensor:
        """`input` where it is positive, and ``weight * input`` elsewhere (He et al., 2015)."""
    def rad2deg(self) -> Tensor:
        """Angles in radians converted to degrees; integers become the default float dtype.

        Example:
            >>> torch.rad2deg(torch.tensor([0.0, 1.0]))
            tensor([ 0.0000, 57.2958])
        """
    def reciprocal(self) -> Tensor:
        """``1 / input``, elementwise; integers become the default float dtype.

        Example:
            >>> torch.reciprocal(torch.tensor([2.0, 4.0]))
            tensor([0.5000, 0.2500])
        """
    def relu(self) -> Tensor:
        """The positive part ``max(input, 0)``, elementwise; NaN stays NaN."""
    def remainder(self, other: Tensor | Number) -> Tensor:
        """The remainder of ``input / other`` with the sign of `other`, with broadcasting, as Python's ``%``."""
    def resolve_conj(self) -> Tensor:
        """`input` without the conjugate bit: a copy with the values worked out, or `input` itself.

        Example:
            >>> x = torch.tensor([1 + 2j]).conj()
            >>> y = torch.resolve_conj(x)
            >>> x.is_conj(), y.is_conj()
            (True, False)
        """
    def resolve_neg(self) -> Tensor:
        """`input` without the negative bit: a copy with the values worked out, or `input` itself.

        Example:
            >>> x = torch.tensor([1 + 2j]).conj().imag
            >>> y = torch.resolve_neg(x)
            >>> x.is_neg(), y.is_neg(), y
            (True, False, tensor([-2.]))
        """
    def round(self, *, decimals: _b.int = 0) -> Tensor:
        """Each element rounded to the nearest integer, or to `decimals` decimal places; ties go to even."""
    def rsqrt(self) -> Tensor:
        """The reciprocal square root ``1 / sqrt(input)``; integers become the default float dtype.

        It is infinite at 0, and NaN for negative real numbers.

        Example:
            >>> torch.rsqrt(torch.tensor([4.0, 0.25]))
            tensor([0.5000, 2.0000])
        """
    def sgn(self) -> Tensor:
        """The sign of a real number; of a complex one, ``input / abs(input)``, and 0 at 0.

        Example:
            >>> torch.sgn(torch.tensor([3 + 4j, 0j]))
            tensor([0.6000+0.8000j, 0.0000+0.0000j])
            >>> torch.sgn(torch.tensor([-2.0, 5.0]))
            tensor([-1.,  1.])
        """
    def sigmoid(self) -> Tensor:
        """The logistic function ``1 / (1 + exp(-input))``; integers become the default float dtype.

        Example:
            >>> torch.sigmoid(torch.tensor([0.0, 1.0]))
            tensor([0.5000, 0.7311])

        See also:
            `torch.logit`, its inverse.
        """
    def sign(self) -> Tensor:
        """The sign of each element: -1, 0 or 1; 0 for NaN."""
    def signbit(self) -> Tensor:
        """Whether the sign bit of each element is set, also for -0.0: a bool tensor.

        Example:
            >>> torch.signbit(torch.tensor([-1.0, -0.0, 0.0]))
            tensor([ True,  True, False])
        """
    def sin(self) -> Tensor:
        """The sine of an angle in radians; integers become the default float dtype.

        Example:
            >>> torch.sin(torch.tensor([0.0, 1.0]))
            tensor([0.0000, 0.8415])
        """
    def sinc(self) -> Tensor:
        r"""Computes the normalized sinc function."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine; integers become the default float dtype.

        Example:
            >>> torch.sinh(torch.tensor([0.0, 1.0]))
            tensor([0.0000, 1.1752])
        """
    def sqrt(self) -> Tensor:
        """The square root; NaN for negative real numbers. Integers become the default float dtype.

        Example:
            >>> torch.sqrt(torch.tensor([4.0, 2.0]))
            tensor([2.0000, 1.4142])
        """
    def square(self) -> Tensor:
        """``input * input``, elementwise; bools become int64.

        Example:
            >>> torch.square(torch.tensor([-3.0, 2.0]))
            tensor([9., 4.])
        """
    def sub(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """``input - alpha * other``, elementwise with broadcasting."""
    def subtract(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """``input - alpha * other``, elementwise with broadcasting."""
    def tan(self) -> Tensor:
        """The tangent of an angle in radians; integers become the default float dtype.

        Example:
            >>> torch.tan(torch.tensor([0.0, 1.0]))
            tensor([0.0000, 1.5574])
        """
    def tanh(self) -> Tensor:
        """The hyperbolic tangent; integers become the default float dtype.

        Example:
            >>> torch.tanh(torch.tensor([0.0, 1.0]))
            tensor([0.0000, 0.7616])
        """
    def true_divide(self, other: Tensor | Number, *, rounding_mode: _b.str | None = None) -> Tensor:
        """``input / other``, elementwise with broadcasting, with the quotient rounded on request."""
    def trunc(self) -> Tensor:
        """Each element without its fraction: rounded towards zero. The dtype stays and the gradient is zero.

        Example:
            >>> torch.trunc(torch.tensor([1.7, -1.7]))
            tensor([ 1., -1.])
        """
    def where(self, condition: Tensor, other: Tensor | Number) -> Tensor:
        """Elements of this tensor where `condition` holds, and of `other` elsewhere.

        Args:
            condition: A bool tensor that broadcasts with the operands.

        Example:
            >>> torch.tensor([1.0, 2.0]).where(torch.tensor([True, False]), 0.0)
            tensor([1., 0.])
        """
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

def _choose_qparams_per_tensor(input: Tensor, reduce_range: _b.bool = False) -> tuple[_b.float, _b.int]:
    """The scale and the zero point, as numbers, with which bytes cover the range of a tensor."""

def _conj(input: Tensor) -> Tensor:
    """The complex conjugate: a view with the conjugate bit set; a real tensor itself."""

def _conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate, computed."""

def _fake_quantize_learnable_per_channel_affine(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: _b.int,
    quant_min: _b.int,
    quant_max: _b.int,
    grad_factor: Number = 1.0,
) -> Tensor:
    """Fake quantization whose scale and zero point have gradients too, times `grad_factor`."""

def _fake_quantize_learnable_per_tensor_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: _b.int, quant_max: _b.int, grad_factor: Number = 1.0
) -> Tensor:
    """Fake quantization whose scale and zero point have gradients too, times `grad_factor`."""

def _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
    input: Tensor, scale: Tensor, zero_point: Tensor, fake_quant_enabled: Tensor, quant_min: _b.int, quant_max: _b.int
) -> results.fake_quantize_per_tensor_affine_cachemask_tensor_qparams:
    """The same with tensors of one element; where `fake_quant_enabled` is 0, the result is the input."""

def _neg_view(input: Tensor) -> Tensor:
    """The negative: a view with the negative bit, which ops work out where they need it."""

def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; of a complex tensor, the modulus in the real dtype."""

def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; of a complex tensor, the modulus in the real dtype."""

def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine, in radians from 0 to pi; NaN outside [-1, 1].

    Integers become the default float dtype.

    Example:
        >>> torch.acos(torch.tensor([1.0, 0.0]))
        tensor([0.0000, 1.5708])
    """

def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine; NaN below 1. Integers become the default float dtype.

    Example:
        >>> torch.acosh(torch.tensor([1.0, 2.0]))
        tensor([0.0000, 1.3170])
    """

def add(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """``input + alpha * other``, elementwise with broadcasting."""

def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1, out: Tensor | None = None) -> Tensor:
    """``input + value * tensor1 / tensor2``, elementwise with broadcasting."""

def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1, out: Tensor | None = None) -> Tensor:
    """``input + value * tensor1 * tensor2``, elementwise with broadcasting."""

def allclose(
    input: Tensor, other: Tensor, rtol: _b.float = 1e-05, atol: _b.float = 1e-08, equal_nan: _b.bool = False
) -> _b.bool:
    """Whether all elements are close: ``abs(input - other) <= atol + rtol * abs(other)``."""

def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of each complex number in radians; of a real number, 0 or pi, and NaN for NaN."""

def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine, in radians from 0 to pi; NaN outside [-1, 1].

    Integers become the default float dtype.

    Example:
        >>> torch.acos(torch.tensor([1.0, 0.0]))
        tensor([0.0000, 1.5708])
    """

def arccosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine; NaN below 1. Integers become the default float dtype.

    Example:
        >>> torch.acosh(torch.tensor([1.0, 2.0]))
        tensor([0.0000, 1.3170])
    """

def arcsin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine, in radians from -pi/2 to pi/2; NaN outside [-1, 1].

    Integers become the default float dtype.

    Example:
        >>> torch.asin(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.5708])
    """

def arcsinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine; integers become the default float dtype.

    Example:
        >>> torch.asinh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8814])
    """

def arctan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent, in radians from -pi/2 to pi/2. Integers become the default float dtype.

    Example:
        >>> torch.atan(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7854])

    See also:
        `torch.atan2`, which takes the quadrant from the signs of two operands.
    """

def arctan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of the points with abscissa `other` and ordinate `input`, in radians from -pi to pi."""

def arctanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.

    Integers become the default float dtype.

    Example:
        >>> torch.atanh(torch.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.5493,    inf])
    """

def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine, in radians from -pi/2 to pi/2; NaN outside [-1, 1].

    Integers become the default float dtype.

    Example:
        >>> torch.asin(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.5708])
    """

def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine; integers become the default float dtype.

    Example:
        >>> torch.asinh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8814])
    """

def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent, in radians from -pi/2 to pi/2. Integers become the default float dtype.

    Example:
        >>> torch.atan(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7854])

    See also:
        `torch.atan2`, which takes the quadrant from the signs of two operands.
    """

def atan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of the points with abscissa `other` and ordinate `input`, in radians from -pi to pi."""

def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.

    Integers become the default float dtype.

    Example:
        >>> torch.atanh(torch.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.5493,    inf])
    """

def bitwise_and(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The and of every bit of two integers, with broadcasting; of bools, the logical and.

    Example:
        >>> torch.bitwise_and(torch.tensor(12), torch.tensor(10))
        tensor(8)
    """

def bitwise_left_shift(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The arithmetic shift of integers to the left: ``input * 2 ** other``, rounded down.

    Args:
        other: The number of bits: a tensor that broadcasts with `input`, or a number.

    Example:
        >>> torch.bitwise_left_shift(torch.tensor([1, -1]), 2)
        tensor([ 4, -4])
    """

def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complement of every bit of an integer; of a bool, logical not."""

def bitwise_or(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The or of every bit of two integers, with broadcasting; of bools, the logical or.

    Example:
        >>> torch.bitwise_or(torch.tensor(12), torch.tensor(10))
        tensor(14)
    """

def bitwise_right_shift(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The arithmetic shift of integers to the right: ``input * 2 ** -other``, rounded down.

    Args:
        other: The number of bits: a tensor that broadcasts with `input`, or a number.

    Example:
        >>> torch.bitwise_right_shift(torch.tensor([1, -1]), 2)
        tensor([ 0, -1])
    """

def bitwise_xor(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The exclusive or of every bit of two integers, with broadcasting; of bools, the logical exclusive or.

    Example:
        >>> torch.bitwise_xor(torch.tensor(12), torch.tensor(10))
        tensor(6)
    """

def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest integer that is not below each element. The dtype stays and the gradient is zero.

    Example:
        >>> torch.ceil(torch.tensor([1.2, -1.7]))
        tensor([ 2., -1.])
    """

def celu(input: Tensor, alpha: Number = 1.0) -> Tensor:
    """``max(0, input) + min(0, alpha * (exp(input / alpha) - 1))`` (Barron, 2017)."""

def choose_qparams_optimized(
    input: Tensor, numel: _b.int, n_bins: _b.int, ratio: _b.float, bit_width: _b.int
) -> tuple[Tensor, Tensor]:
    """Chooses a range within that of a tensor whose levels have the least squared error, step by step from both
    ends.
    """

def clamp(
    input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None, *, out: Tensor | None = None
) -> Tensor:
    """`input` limited to the range from `min` to `max`, elementwise: ``min(max(input, min), max)``."""

def clamp_max(input: Tensor, max: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The smaller of `input` and the limit `max`, elementwise; NaN stays NaN.

    Args:
        max: The upper limit: a number or a tensor that broadcasts with `input`.

    Example:
        >>> torch.clamp_max(torch.tensor([-2.0, 0.5]), 0)
        tensor([-2.,  0.])
    """

def clamp_min(input: Tensor, min: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The larger of `input` and the limit `min`, elementwise; NaN stays NaN.

    Args:
        min: The lower limit: a number or a tensor that broadcasts with `input`.

    Example:
        >>> torch.clamp_min(torch.tensor([-2.0, 0.5]), 0)
        tensor([0.0000, 0.5000])
    """

def clip(
    input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None, *, out: Tensor | None = None
) -> Tensor:
    """`input` limited to the range from `min` to `max`, elementwise: ``min(max(input, min), max)``."""

def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex tensor ``real + 1j * imag``, with broadcasting."""

def conj(input: Tensor) -> Tensor:
    """The complex conjugate: a view with the conjugate bit set; a real tensor itself."""

def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate, computed at once; a real tensor itself.

    Example:
        >>> torch.conj_physical(torch.tensor([1 + 2j]))
        tensor([1.-2.j])

    See also:
        `torch.conj`, which returns a view with the conjugate bit.
    """

def copysign(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The magnitude of `input` with the sign of `other`, with broadcasting.

    Integers become the default float dtype. The gradient at 0 is 0.

    Example:
        >>> torch.copysign(torch.tensor([1.0, -2.0]), -0.0)
        tensor([-1., -2.])
    """

def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The cosine of an angle in radians; integers become the default float dtype.

    Example:
        >>> torch.cos(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 0.5403])
    """

def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic cosine; integers become the default float dtype.

    Example:
        >>> torch.cosh(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 1.5431])
    """

def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angles in degrees converted to radians; integers become the default float dtype.

    Example:
        >>> torch.deg2rad(torch.tensor([0.0, 180.0]))
        tensor([0.0000, 3.1416])
    """

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the derivative of `lgamma`."""

def div(
    input: Tensor | Number, other: Tensor | Number, *, rounding_mode: _b.str | None = None, out: Tensor | None = None
) -> Tensor:
    """``input / other``, elementwise with broadcasting, with the quotient rounded on request."""

def divide(
    input: Tensor | Number, other: Tensor | Number, *, rounding_mode: _b.str | None = None, out: Tensor | None = None
) -> Tensor:
    """``input / other``, elementwise with broadcasting, with the quotient rounded on request."""

def eq(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input == other``, elementwise with broadcasting: a bool tensor.

    Example:
        >>> torch.eq(torch.tensor([1, 2, 3]), 2)
        tensor([False,  True, False])
    """

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the error function of each element."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the complementary error function, precise where it is small."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the inverse of the error function on (-1, 1)."""

def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The exponential ``e ** input``; integers become the default float dtype.

    Example:
        >>> torch.exp(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 2.7183])
    """

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``2 ** input``; integers become the default float dtype.

    Example:
        >>> torch.exp2(torch.tensor([0.0, 3.0]))
        tensor([1., 8.])
    """

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(input) - 1``, precise for small `input`; integers become the default float dtype.

    Example:
        >>> torch.expm1(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.7183])
    """

def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: _b.int, quant_min: _b.int, quant_max: _b.int
) -> Tensor:
    """Rounds each element to the levels of its channel, as `torch.fake_quantize_per_tensor_affine` does to those of a
    tensor.
    """

def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Tensor | Number, zero_point: Tensor | Number, quant_min: _b.int, quant_max: _b.int
) -> Tensor:
    """Rounds each element to a multiple of `scale` that an integer between `quant_min` and `quant_max` stands for:
    ``(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale``.
    """

def fill(input: Tensor, value: Tensor | Number) -> Tensor:
    """A tensor like `input` with every element set to `value`."""

def fix(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Each element without its fraction: rounded towards zero. The dtype stays and the gradient is zero.

    Example:
        >>> torch.trunc(torch.tensor([1.7, -1.7]))
        tensor([ 1., -1.])
    """

def float_power(input: Tensor | Number, exponent: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent`` in double precision, with broadcasting."""

def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest integer that is not above each element. The dtype stays and the gradient is zero.

    Example:
        >>> torch.floor(torch.tensor([1.7, -1.2]))
        tensor([ 1., -2.])
    """

def floor_divide(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``floor(input / other)``, elementwise with broadcasting."""

def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of two elements, with broadcasting; a number rather than a NaN."""

def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of two elements, with broadcasting; a number rather than a NaN."""

def fmod(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The remainder of ``input / other`` with the sign of `input`, with broadcasting, as C's `fmod`."""

def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The fraction of each element, with the element's sign: ``input - trunc(input)``.

    Example:
        >>> torch.frac(torch.tensor([1.25, -1.25]))
        tensor([ 0.2500, -0.2500])
    """

def frexp(input: Tensor, *, out: Sequence[Tensor] | None = None) -> results.frexp:
    """The mantissa and the exponent of each element: ``input = mantissa * 2**exponent``."""

def fused_moving_avg_obs_fake_quant(
    input: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: _b.float,
    quant_min: _b.int,
    quant_max: _b.int,
    ch_axis: _b.int,
    per_row_fake_quant: _b.bool = False,
    symmetric_quant: _b.bool = False,
) -> Tensor:
    """Observes the range of the input, chooses a scale and a zero point for it, and rounds the input to their
    levels.
    """

def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The greatest common divisor of two integers, with broadcasting; not negative.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.gcd(torch.tensor([12, -5]), torch.tensor([18, 10]))
        tensor([6, 5])
    """

def ge(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input >= other``, elementwise with broadcasting: a bool tensor.

    Example:
        >>> torch.ge(torch.tensor([1, 2, 3]), 2)
        tensor([False,  True,  True])
    """

def greater(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input > other``, elementwise with broadcasting: a bool tensor.

    Example:
        >>> torch.gt(torch.tensor([1, 2, 3]), 2)
        tensor([False, False,  True])
    """

def greater_equal(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input >= other``, elementwise with broadcasting: a bool tensor.

    Example:
        >>> torch.ge(torch.tensor([1, 2, 3]), 2)
        tensor([False,  True,  True])
    """

def gt(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input > other``, elementwise with broadcasting: a bool tensor.

    Example:
        >>> torch.gt(torch.tensor([1, 2, 3]), 2)
        tensor([False, False,  True])
    """

def hardshrink(input: Tensor, lambd: _b.float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Zero where the absolute value is at most `lambd`, and `input` elsewhere."""

def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Heaviside step function: 0 below zero, 1 above, `values` at zero."""

def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hypotenuse ``sqrt(input**2 + other**2)``, with broadcasting, computed without overflow.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.hypot(torch.tensor([3.0]), torch.tensor([4.0]))
        tensor([5.])
    """

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the modified Bessel function of the first kind of order 0."""

def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the regularized lower incomplete gamma function."""

def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the regularized upper incomplete gamma function."""

def imag(input: Tensor) -> Tensor:
    """The imaginary part of a complex tensor: a view of it."""

def isclose(
    input: Tensor, other: Tensor, rtol: _b.float = 1e-05, atol: _b.float = 1e-08, equal_nan: _b.bool = False
) -> Tensor:
    """Whether ``abs(input - other) <= atol + rtol * abs(other)``, with broadcasting: a bool tensor."""

def isfinite(input: Tensor) -> Tensor:
    """Whether each element is neither infinite nor NaN: a bool tensor.

    A complex element is tested by both of its parts.

    Example:
        >>> torch.isfinite(torch.tensor([1.0, float("inf"), float("nan")]))
        tensor([ True, False, False])
    """

def isinf(input: Tensor) -> Tensor:
    """Whether each element is infinite: a bool tensor.

    A complex element is tested by both of its parts.

    Example:
        >>> torch.isinf(torch.tensor([1.0, float("inf"), float("nan")]))
        tensor([False,  True, False])
    """

def isnan(input: Tensor) -> Tensor:
    """Whether each element is NaN: a bool tensor.

    A complex element is tested by both of its parts.

    Example:
        >>> torch.isnan(torch.tensor([1.0, float("inf"), float("nan")]))
        tensor([False, False,  True])
    """

def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is negative infinity: a bool tensor.

    Example:
        >>> torch.isneginf(torch.tensor([1.0, float("inf"), -float("inf")]))
        tensor([False, False,  True])
    """

def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is positive infinity: a bool tensor.

    Example:
        >>> torch.isposinf(torch.tensor([1.0, float("inf"), -float("inf")]))
        tensor([False,  True, False])
    """

def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part of each element is zero: a bool tensor, all True for real dtypes.

    Example:
        >>> torch.isreal(torch.tensor([1 + 0j, 1j]))
        tensor([ True, False])
    """

def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The least common multiple of two integers, with broadcasting; not negative.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.lcm(torch.tensor([4, -5]), torch.tensor([6, 10]))
        tensor([12, 10])
    """

def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input * 2**other``, with broadcasting."""

def le(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input <= other``, elementwise with broadcasting: a bool tensor.

    Example:
        >>> torch.le(torch.tensor([1, 2, 3]), 2)
        tensor([ True,  True, False])
    """

def lerp(input: Tensor, end: Tensor, weight: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The linear interpolation ``input + weight * (end - input)``, with broadcasting."""

def less(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input < other``, elementwise with broadcasting: a bool tensor.

    Example:
        >>> torch.lt(torch.tensor([1, 2, 3]), 2)
        tensor([ True, False, False])
    """

def less_equal(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input <= other``, elementwise with broadcasting: a bool tensor.

    Example:
        >>> torch.le(torch.tensor([1, 2, 3]), 2)
        tensor([ True,  True, False])
    """

def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the logarithm of the absolute value of the gamma function."""

def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm; integers become the default float dtype.

    It is minus infinity at 0, and NaN for negative real numbers.

    Example:
        >>> torch.log(torch.tensor([1.0, 2.0, 0.0]))
        tensor([0.0000, 0.6931,   -inf])
    """

def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 10; integers become the default float dtype.

    Example:
        >>> torch.log10(torch.tensor([1.0, 2.0]))
        tensor([0.0000, 0.3010])
    """

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + input)``, precise for small `input`; integers become the default float dtype.

    Example:
        >>> torch.log1p(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.6931])
    """

def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2; integers become the default float dtype.

    Example:
        >>> torch.log2(torch.tensor([1.0, 8.0]))
        tensor([0., 3.])
    """

def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(exp(input) + exp(other))``, with broadcasting, computed without overflow.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.logaddexp(torch.tensor([0.0, 1000.0]), torch.tensor([0.0, 1000.0]))
        tensor([6.9315e-01, 1.0007e+03])
    """

def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log2(2**input + 2**other)``, with broadcasting, computed without overflow.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.logaddexp2(torch.tensor([0.0, 1000.0]), torch.tensor([0.0, 1000.0]))
        tensor([1.0000e+00, 1.0010e+03])
    """

def logical_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether both elements are not zero, with broadcasting: a bool tensor.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.logical_and(torch.tensor([0, 0, 1]), torch.tensor([0, 2, 3]))
        tensor([False, False,  True])
    """

def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is zero: a bool tensor.

    Example:
        >>> torch.logical_not(torch.tensor([0, 1, 2]))
        tensor([ True, False, False])
    """

def logical_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether either element is not zero, with broadcasting: a bool tensor.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.logical_or(torch.tensor([0, 0, 1]), torch.tensor([0, 2, 3]))
        tensor([False,  True,  True])
    """

def logical_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether exactly one element is not zero, with broadcasting: a bool tensor.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.logical_xor(torch.tensor([0, 0, 1]), torch.tensor([0, 2, 3]))
        tensor([False,  True, False])
    """

def logit(input: Tensor, eps: _b.float | None = None, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the logit: the inverse of the logistic function."""

def lt(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input < other``, elementwise with broadcasting: a bool tensor.

    Example:
        >>> torch.lt(torch.tensor([1, 2, 3]), 2)
        tensor([ True, False, False])
    """

def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of two elements, with broadcasting; NaN where either is NaN."""

def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of two elements, with broadcasting; NaN where either is NaN."""

def mul(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input * other``, elementwise with broadcasting; bools combine by logical and.

    The operands promote to a common dtype.

    Example:
        >>> torch.mul(torch.tensor([1.0, 2.0]), torch.tensor([[10.0], [20.0]]))
        tensor([[10., 20.],
                [20., 40.]])
    """

def multiply(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input * other``, elementwise with broadcasting; bools combine by logical and.

    The operands promote to a common dtype.

    Example:
        >>> torch.mul(torch.tensor([1.0, 2.0]), torch.tensor([[10.0], [20.0]]))
        tensor([[10., 20.],
                [20., 40.]])
    """

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
    """`input` with numbers in place of NaN and infinities."""

def ne(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input != other``, elementwise with broadcasting: a bool tensor.

    Example:
        >>> torch.ne(torch.tensor([1, 2, 3]), 2)
        tensor([ True, False,  True])
    """

def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``-input``, elementwise.

    Raises:
        RuntimeError: `input` is a bool tensor.

    Example:
        >>> torch.neg(torch.tensor([1.0, -2.0]))
        tensor([-1.,  2.])
    """

def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``-input``, elementwise.

    Raises:
        RuntimeError: `input` is a bool tensor.

    Example:
        >>> torch.neg(torch.tensor([1.0, -2.0]))
        tensor([-1.,  2.])
    """

def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The next number of the dtype after `input` towards `other`, with broadcasting.

    Args:
        other: The second operand: a tensor that broadcasts with `input`.

    Example:
        >>> torch.nextafter(torch.tensor([1.0]), torch.tensor([2.0])) - 1
        tensor([1.1921e-07])
    """

def not_equal(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input != other``, elementwise with broadcasting: a bool tensor.

    Example:
        >>> torch.ne(torch.tensor([1, 2, 3]), 2)
        tensor([ True, False,  True])
    """

def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex tensor ``abs * exp(1j * angle)``, with broadcasting."""

def polygamma(n: _b.int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes a derivative of `digamma`."""

def positive(input: Tensor) -> Tensor:
    """`input` itself.

    Raises:
        RuntimeError: `input` is a bool tensor.

    Example:
        >>> torch.positive(torch.tensor([-1.0, 2.0]))
        tensor([-1.,  2.])
    """

def pow(input: Tensor | Number, exponent: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent``, elementwise with broadcasting."""

def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`input` where it is positive, and ``weight * input`` elsewhere (He et al., 2015)."""

def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angles in radians converted to degrees; integers become the default float dtype.

    Example:
        >>> torch.rad2deg(torch.tensor([0.0, 1.0]))
        tensor([ 0.0000, 57.2958])
    """

def real(input: Tensor) -> Tensor:
    """The real part: a view of a complex tensor, and a real tensor itself."""

def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / input``, elementwise; integers become the default float dtype.

    Example:
        >>> torch.reciprocal(torch.tensor([2.0, 4.0]))
        tensor([0.5000, 0.2500])
    """

def relu(input: Tensor) -> Tensor:
    """The positive part ``max(input, 0)``, elementwise; NaN stays NaN."""

def remainder(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The remainder of ``input / other`` with the sign of `other`, with broadcasting, as Python's ``%``."""

def resolve_conj(input: Tensor) -> Tensor:
    """`input` without the conjugate bit: a copy with the values worked out, or `input` itself.

    Example:
        >>> x = torch.tensor([1 + 2j]).conj()
        >>> y = torch.resolve_conj(x)
        >>> x.is_conj(), y.is_conj()
        (True, False)
    """

def resolve_neg(input: Tensor) -> Tensor:
    """`input` without the negative bit: a copy with the values worked out, or `input` itself.

    Example:
        >>> x = torch.tensor([1 + 2j]).conj().imag
        >>> y = torch.resolve_neg(x)
        >>> x.is_neg(), y.is_neg(), y
        (True, False, tensor([-2.]))
    """

def round(input: Tensor, *, decimals: _b.int = 0, out: Tensor | None = None) -> Tensor:
    """Each element rounded to the nearest integer, or to `decimals` decimal places; ties go to even."""

def rrelu(
    input: Tensor,
    lower: _b.float = 0.125,
    upper: Number = 0.3333333333333333,
    training: _b.bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Leaky ReLU with a random slope for each negative element (Xu et al., 2015)."""

def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The reciprocal square root ``1 / sqrt(input)``; integers become the default float dtype.

    It is infinite at 0, and NaN for negative real numbers.

    Example:
        >>> torch.rsqrt(torch.tensor([4.0, 0.25]))
        tensor([0.5000, 2.0000])
    """

def rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """``other - alpha * input``, elementwise with broadcasting."""

def selu(input: Tensor) -> Tensor:
    """The scaled ELU: ``scale * (max(0, input) + min(0, alpha * (exp(input) - 1)))``."""

def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sign of a real number; of a complex one, ``input / abs(input)``, and 0 at 0.

    Example:
        >>> torch.sgn(torch.tensor([3 + 4j, 0j]))
        tensor([0.6000+0.8000j, 0.0000+0.0000j])
        >>> torch.sgn(torch.tensor([-2.0, 5.0]))
        tensor([-1.,  1.])
    """

def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logistic function ``1 / (1 + exp(-input))``; integers become the default float dtype.

    Example:
        >>> torch.sigmoid(torch.tensor([0.0, 1.0]))
        tensor([0.5000, 0.7311])

    See also:
        `torch.logit`, its inverse.
    """

def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sign of each element: -1, 0 or 1; 0 for NaN."""

def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the sign bit of each element is set, also for -0.0: a bool tensor.

    Example:
        >>> torch.signbit(torch.tensor([-1.0, -0.0, 0.0]))
        tensor([ True,  True, False])
    """

def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sine of an angle in radians; integers become the default float dtype.

    Example:
        >>> torch.sin(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8415])
    """

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the normalized sinc function."""

def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic sine; integers become the default float dtype.

    Example:
        >>> torch.sinh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.1752])
    """

def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root; NaN for negative real numbers. Integers become the default float dtype.

    Example:
        >>> torch.sqrt(torch.tensor([4.0, 2.0]))
        tensor([2.0000, 1.4142])
    """

def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input * input``, elementwise; bools become int64.

    Example:
        >>> torch.square(torch.tensor([-3.0, 2.0]))
        tensor([9., 4.])
    """

def sub(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """``input - alpha * other``, elementwise with broadcasting."""

def subtract(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """``input - alpha * other``, elementwise with broadcasting."""

def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tangent of an angle in radians; integers become the default float dtype.

    Example:
        >>> torch.tan(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.5574])
    """

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent; integers become the default float dtype.

    Example:
        >>> torch.tanh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """

def threshold(input: Tensor, threshold: _b.float, value: Any, *, out: Tensor | None = None) -> Tensor:
    """`input` where it is above `threshold`, and `value` elsewhere."""

def true_divide(
    input: Tensor | Number, other: Tensor | Number, *, rounding_mode: _b.str | None = None, out: Tensor | None = None
) -> Tensor:
    """``input / other``, elementwise with broadcasting, with the quotient rounded on request."""

def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Each element without its fraction: rounded towards zero. The dtype stays and the gradient is zero.

    Example:
        >>> torch.trunc(torch.tensor([1.7, -1.7]))
        tensor([ 1., -1.])
    """

@overload
def where(condition: Tensor) -> tuple[Tensor, ...]:
    """Elements of `input` where `condition` holds, and of `other` elsewhere."""

@overload
def where(
    condition: Tensor, input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor: ...
def xlogy(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes ``input * log(other)``, and 0 where `input` is 0 and `other` is not NaN."""

def abs_(input: Tensor) -> Tensor:
    """In-place version of `abs`: writes the result into the tensor and returns it."""

def acos_(input: Tensor) -> Tensor:
    """In-place version of `acos`: writes the result into the tensor and returns it."""

def acosh_(input: Tensor) -> Tensor:
    """In-place version of `acosh`: writes the result into the tensor and returns it."""

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

def arctanh_(input: Tensor) -> Tensor:
    """In-place version of `arctanh`: writes the result into the tensor and returns it."""

def asin_(input: Tensor) -> Tensor:
    """In-place version of `asin`: writes the result into the tensor and returns it."""

def asinh_(input: Tensor) -> Tensor:
    """In-place version of `asinh`: writes the result into the tensor and returns it."""

def atan_(input: Tensor) -> Tensor:
    """In-place version of `atan`: writes the result into the tensor and returns it."""

def atanh_(input: Tensor) -> Tensor:
    """In-place version of `atanh`: writes the result into the tensor and returns it."""

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

def cos_(input: Tensor) -> Tensor:
    """In-place version of `cos`: writes the result into the tensor and returns it."""

def cosh_(input: Tensor) -> Tensor:
    """In-place version of `cosh`: writes the result into the tensor and returns it."""

def deg2rad_(input: Tensor) -> Tensor:
    """In-place version of `deg2rad`: writes the result into the tensor and returns it."""

def erf_(input: Tensor) -> Tensor:
    """In-place version of `erf`: writes the result into the tensor and returns it."""

def erfc_(input: Tensor) -> Tensor:
    """In-place version of `erfc`: writes the result into the tensor and returns it."""

def exp_(input: Tensor) -> Tensor:
    """In-place version of `exp`: writes the result into the tensor and returns it."""

def exp2_(input: Tensor) -> Tensor:
    """In-place version of `exp2`: writes the result into the tensor and returns it."""

def expm1_(input: Tensor) -> Tensor:
    """In-place version of `expm1`: writes the result into the tensor and returns it."""

def fix_(input: Tensor) -> Tensor:
    """In-place version of `fix`: writes the result into the tensor and returns it."""

def floor_(input: Tensor) -> Tensor:
    """In-place version of `floor`: writes the result into the tensor and returns it."""

def frac_(input: Tensor) -> Tensor:
    """In-place version of `frac`: writes the result into the tensor and returns it."""

def gcd_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `gcd`: writes the result into the tensor and returns it."""

def i0_(input: Tensor) -> Tensor:
    """In-place version of `i0`: writes the result into the tensor and returns it."""

def lcm_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `lcm`: writes the result into the tensor and returns it."""

def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `ldexp`: writes the result into the tensor and returns it."""

def log_(input: Tensor) -> Tensor:
    """In-place version of `log`: writes the result into the tensor and returns it."""

def log10_(input: Tensor) -> Tensor:
    """In-place version of `log10`: writes the result into the tensor and returns it."""

def log1p_(input: Tensor) -> Tensor:
    """In-place version of `log1p`: writes the result into the tensor and returns it."""

def log2_(input: Tensor) -> Tensor:
    """In-place version of `log2`: writes the result into the tensor and returns it."""

def logit_(input: Tensor, eps: _b.float | None = None) -> Tensor:
    """In-place version of `logit`: writes the result into the tensor and returns it."""

def nan_to_num_(
    input: Tensor, nan: _b.float | None = None, posinf: _b.float | None = None, neginf: _b.float | None = None
) -> Tensor:
    """In-place version of `nan_to_num`: writes the result into the tensor and returns it."""

def neg_(input: Tensor) -> Tensor:
    """In-place version of `neg`: writes the result into the tensor and returns it."""

def negative_(input: Tensor) -> Tensor:
    """In-place version of `negative`: writes the result into the tensor and returns it."""

def rad2deg_(input: Tensor) -> Tensor:
    """In-place version of `rad2deg`: writes the result into the tensor and returns it."""

def reciprocal_(input: Tensor) -> Tensor:
    """In-place version of `reciprocal`: writes the result into the tensor and returns it."""

def relu_(input: Tensor) -> Tensor:
    """In-place version of `relu`: writes the result into the tensor and returns it."""

def round_(input: Tensor, *, decimals: _b.int = 0) -> Tensor:
    """In-place version of `round`: writes the result into the tensor and returns it."""

def rrelu_(
    input: Tensor,
    lower: _b.float = 0.125,
    upper: Number = 0.3333333333333333,
    training: _b.bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """In-place version of `rrelu`: writes the result into the tensor and returns it."""

def rsqrt_(input: Tensor) -> Tensor:
    """In-place version of `rsqrt`: writes the result into the tensor and returns it."""

def selu_(input: Tensor) -> Tensor:
    """In-place version of `selu`: writes the result into the tensor and returns it."""

def sigmoid_(input: Tensor) -> Tensor:
    """In-place version of `sigmoid`: writes the result into the tensor and returns it."""

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

def tan_(input: Tensor) -> Tensor:
    """In-place version of `tan`: writes the result into the tensor and returns it."""

def tanh_(input: Tensor) -> Tensor:
    """In-place version of `tanh`: writes the result into the tensor and returns it."""

def threshold_(input: Tensor, threshold: _b.float, value: Any) -> Tensor:
    """In-place version of `threshold`: writes the result into the tensor and returns it."""

def trunc_(input: Tensor) -> Tensor:
    """In-place version of `trunc`: writes the result into the tensor and returns it."""

def xlogy_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """In-place version of `xlogy`: writes the result into the tensor and returns it."""
