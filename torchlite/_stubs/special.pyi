# Made by tools/make_stubs.py from the op records: do not edit.
"""The functions of torchlite.special."""

import builtins as _b

from .aliases import DType, Ints, Number
from .tensor import Tensor

def airy_ai(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Airy function Ai."""

def bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind of order 0."""

def bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind of order 1."""

def bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind of order 0."""

def bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind of order 1."""

def chebyshev_polynomial_t(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the first kind of degree ``n`` (0 for n < 0), elementwise."""

def chebyshev_polynomial_u(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the second kind of degree ``n`` (0 for n < 0), elementwise."""

def chebyshev_polynomial_v(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the third kind of degree ``n`` (0 for n < 0), elementwise."""

def chebyshev_polynomial_w(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the fourth kind of degree ``n`` (0 for n < 0), elementwise."""

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of ``lgamma``. Minus infinity at 0, NaN at the negative integers."""

def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``-input * log(input)``; 0 at 0, minus infinity below."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function, ``2/sqrt(pi) * integral of exp(-t*t) from 0 to input``.

    >>> torch.erf(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 - erf(input)``, precise where that is small."""

def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The scaled complementary error function, ``exp(input**2) * erfc(input)``."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of ``erf`` on (-1, 1); infinite at the ends, NaN outside."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 to the power of ``input``."""

def expit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + exp(-input))``."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(input) - 1``, precise for small ``input``."""

def gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularised lower incomplete gamma function P(input, other)."""

def gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularised upper incomplete gamma function Q(input, other)."""

def gammaln(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""

def hermite_polynomial_h(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The physicists' Hermite polynomial of degree ``n`` (0 for n < 0), elementwise."""

def hermite_polynomial_he(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The probabilists' Hermite polynomial of degree ``n`` (0 for n < 0), elementwise."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""

def i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(-|input|) * i0(input)``."""

def i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""

def i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(-|input|) * i1(input)``."""

def laguerre_polynomial_l(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Laguerre polynomial of degree ``n`` (0 for n < 0), elementwise."""

def legendre_polynomial_p(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Legendre polynomial of degree ``n`` (0 for n < 0), elementwise."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + input)``, precise for small ``input``."""

def log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(ndtr(input))``, precise far to the left."""

def log_softmax(input: Tensor, dim: _b.int, dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of ``softmax(input, dim)``, computed without underflow."""

def logit(input: Tensor, eps: _b.float | None = None, *, out: Tensor | None = None) -> Tensor:
    """``log(input / (1 - input))``, ``input`` first clamped to [eps, 1 - eps] when ``eps`` is given."""

def logsumexp(input: Tensor, dim: Ints, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """log(sum(exp(input))) over `dim` (an int or several), computed without overflow; integers become the default
    float dtype.

    >>> torch.logsumexp(torch.tensor([0., 0.]), 0)
    tensor(0.6931)
    """

def modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""

def modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""

def modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind of order 0."""

def modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind of order 1."""

def multigammaln(input: Tensor, p: _b.float, *, out: Tensor | None = None) -> Tensor:
    """The multivariate log-gamma function of dimension ``p``: the sum of ``lgamma(input - j/2)`` for j < p, plus
    ``log(pi) p (p-1)/4``.
    """

def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The normal distribution function: the area under the standard normal density left of ``input``."""

def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of ``ndtr``: the normal quantile of a probability."""

def polygamma(n: _b.int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of ``digamma``, n >= 0. RuntimeError for a negative n.

    >>> torch.polygamma(1, torch.tensor([1.0]))
    tensor([1.6449])
    """

def psi(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of ``lgamma``. Minus infinity at 0, NaN at the negative integers."""

def round(input: Tensor, *, decimals: _b.int = 0, out: Tensor | None = None) -> Tensor:
    """To the nearest integer, or to ``decimals`` decimal places (negative: to tens, hundreds ...); ties go to even."""

def scaled_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(input)`` times the modified Bessel function of the second kind of order 0."""

def scaled_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(input)`` times the modified Bessel function of the second kind of order 1."""

def shifted_chebyshev_polynomial_t(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the first kind, at ``2 * input - 1`` of degree ``n`` (0 for n < 0), elementwise."""

def shifted_chebyshev_polynomial_u(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the second kind, at ``2 * input - 1`` of degree ``n`` (0 for n < 0), elementwise."""

def shifted_chebyshev_polynomial_v(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the third kind, at ``2 * input - 1`` of degree ``n`` (0 for n < 0), elementwise."""

def shifted_chebyshev_polynomial_w(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the fourth kind, at ``2 * input - 1`` of degree ``n`` (0 for n < 0), elementwise."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``sin(pi * input) / (pi * input)``, and 1 at 0."""

def softmax(input: Tensor, dim: _b.int, dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
    """``exp(input)`` divided by its sum along ``dim``; shape and dtype of ``input``, or ``dtype`` (the input is cast to
    it first).

    >>> torch.softmax(torch.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """

def spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The spherical Bessel function of the first kind of order 0, ``sin(input) / input``."""

def xlog1py(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input * log1p(other)``, and 0 where ``input`` is 0 (unless ``other`` is NaN)."""

def xlogy(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input * log(other)``, and 0 where ``input`` is 0 (unless ``other`` is NaN)."""

def zeta(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Hurwitz' zeta function: the sum of ``(k + other) ** -input`` over k >= 0."""
