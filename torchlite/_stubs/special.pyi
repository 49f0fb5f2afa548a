# Made by tools/make_stubs.py from the op records: do not edit.
"""The functions of torchlite.special."""

import builtins as _b

from .aliases import DType, Ints, Number
from .tensor import Tensor

def airy_ai(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the Airy function Ai of each element.

    Example:
        >>> torch.special.airy_ai(torch.tensor([1.0]))
        tensor([0.1353])
    """

def bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the Bessel function of the first kind of order 0 of each element.

    Example:
        >>> torch.special.bessel_j0(torch.tensor([1.0]))
        tensor([0.7652])
    """

def bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the Bessel function of the first kind of order 1 of each element.

    Example:
        >>> torch.special.bessel_j1(torch.tensor([1.0]))
        tensor([0.4401])
    """

def bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the Bessel function of the second kind of order 0 of each element.

    Example:
        >>> torch.special.bessel_y0(torch.tensor([1.0]))
        tensor([0.0883])
    """

def bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the Bessel function of the second kind of order 1 of each element.

    Example:
        >>> torch.special.bessel_y1(torch.tensor([1.0]))
        tensor([-0.7812])
    """

def chebyshev_polynomial_t(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes the Chebyshev polynomial of the first kind, of each element."""

def chebyshev_polynomial_u(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes the Chebyshev polynomial of the second kind, of each element."""

def chebyshev_polynomial_v(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes the Chebyshev polynomial of the third kind, of each element."""

def chebyshev_polynomial_w(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes the Chebyshev polynomial of the fourth kind, of each element."""

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the derivative of `lgamma`."""

def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the entropy of each element."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the error function of each element."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the complementary error function, precise where it is small."""

def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the scaled complementary error function."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the inverse of the error function on (-1, 1)."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``2 ** input``; integers become the default float dtype.

    Example:
        >>> torch.exp2(torch.tensor([0.0, 3.0]))
        tensor([1., 8.])
    """

def expit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logistic function ``1 / (1 + exp(-input))``; integers become the default float dtype.

    Example:
        >>> torch.sigmoid(torch.tensor([0.0, 1.0]))
        tensor([0.5000, 0.7311])

    See also:
        `torch.logit`, its inverse.
    """

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(input) - 1``, precise for small `input`; integers become the default float dtype.

    Example:
        >>> torch.expm1(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.7183])
    """

def gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the regularized lower incomplete gamma function."""

def gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the regularized upper incomplete gamma function."""

def gammaln(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the logarithm of the absolute value of the gamma function."""

def hermite_polynomial_h(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes the physicists' Hermite polynomial, of each element."""

def hermite_polynomial_he(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes the probabilists' Hermite polynomial, of each element."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the modified Bessel function of the first kind of order 0."""

def i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the exponentially scaled modified Bessel function of the first kind of order 0."""

def i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the modified Bessel function of the first kind of order 1."""

def i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the exponentially scaled modified Bessel function of the first kind of order 1."""

def laguerre_polynomial_l(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes the Laguerre polynomial, of each element."""

def legendre_polynomial_p(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes the Legendre polynomial, of each element."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + input)``, precise for small `input`; integers become the default float dtype.

    Example:
        >>> torch.log1p(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.6931])
    """

def log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the logarithm of `ndtr`, precise for very negative elements.

    Example:
        >>> torch.special.log_ndtr(torch.tensor([0.0, -20.0]))
        tensor([  -0.6931, -203.9172])

    See also:
        `torch.special.ndtr`.
    """

def log_softmax(input: Tensor, dim: _b.int, dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the logarithm of the softmax along a dimension, without overflow."""

def logit(input: Tensor, eps: _b.float | None = None, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the logit: the inverse of the logistic function."""

def logsumexp(input: Tensor, dim: Ints, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Computes the logarithm of the sum of exponentials, without overflow."""

def modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the modified Bessel function of the first kind of order 0 of each element.

    Example:
        >>> torch.special.modified_bessel_i0(torch.tensor([1.0]))
        tensor([1.2661])
    """

def modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the modified Bessel function of the first kind of order 1 of each element.

    Example:
        >>> torch.special.modified_bessel_i1(torch.tensor([1.0]))
        tensor([0.5652])
    """

def modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the modified Bessel function of the second kind of order 0 of each element.

    Example:
        >>> torch.special.modified_bessel_k0(torch.tensor([1.0]))
        tensor([0.4210])
    """

def modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the modified Bessel function of the second kind of order 1 of each element.

    Example:
        >>> torch.special.modified_bessel_k1(torch.tensor([1.0]))
        tensor([0.6019])
    """

def multigammaln(input: Tensor, p: _b.float, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the logarithm of the multivariate gamma function."""

def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the cumulative distribution function of the standard normal distribution."""

def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the quantiles of the standard normal distribution: the inverse of `ndtr`.

    Example:
        >>> torch.special.ndtri(torch.tensor([0.5, 0.8413]))
        tensor([0.0000, 0.9998])

    See also:
        `torch.special.ndtr`.
    """

def polygamma(n: _b.int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes a derivative of `digamma`."""

def psi(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the derivative of `lgamma`."""

def round(input: Tensor, *, decimals: _b.int = 0, out: Tensor | None = None) -> Tensor:
    """Each element rounded to the nearest integer, or to `decimals` decimal places; ties go to even."""

def scaled_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes ``exp(x)`` times the modified Bessel function of the second kind of order 0 of each element.

    Example:
        >>> torch.special.scaled_modified_bessel_k0(torch.tensor([1.0]))
        tensor([1.1445])
    """

def scaled_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes ``exp(x)`` times the modified Bessel function of the second kind of order 1 of each element.

    Example:
        >>> torch.special.scaled_modified_bessel_k1(torch.tensor([1.0]))
        tensor([1.6362])
    """

def shifted_chebyshev_polynomial_t(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes the Chebyshev polynomial of the first kind, at ``2 * input - 1``, of each element."""

def shifted_chebyshev_polynomial_u(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes the Chebyshev polynomial of the second kind, at ``2 * input - 1``, of each element."""

def shifted_chebyshev_polynomial_v(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes the Chebyshev polynomial of the third kind, at ``2 * input - 1``, of each element."""

def shifted_chebyshev_polynomial_w(input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes the Chebyshev polynomial of the fourth kind, at ``2 * input - 1``, of each element."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the normalized sinc function."""

def softmax(input: Tensor, dim: _b.int, dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
    r"""Scales the elements along a dimension to positive values with sum 1."""

def spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the spherical Bessel function of the first kind of order 0, ``sin(x) / x``, of each element.

    Example:
        >>> torch.special.spherical_bessel_j0(torch.tensor([1.0]))
        tensor([0.8415])
    """

def xlog1py(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes ``input * log1p(other)``, and 0 where `input` is 0 and `other` is not NaN."""

def xlogy(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Computes ``input * log(other)``, and 0 where `input` is 0 and `other` is not NaN."""

def zeta(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the Hurwitz zeta function."""
