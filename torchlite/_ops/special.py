"""Special functions. Integers are converted to floats; a half or bfloat16 operand is computed in a wider dtype and
rounded once.
"""

import math

from torchlite._dispatch import (
    DEFAULT,
    INPLACE,
    INT_TO_FLOAT,
    NONDIFF,
    POINTWISE,
    Overlap,
    composite,
    memory_layout,
    op,
)
from torchlite._types.dtypes import BOOL, COMPLEX, bfloat16, float16

from ._dtype_checks import refuse_floats
from ._gradient_helpers import make_not_implemented_formula

UNARY = POINTWISE | INPLACE
TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


def _refuse_half(name):
    """The dtypes of half precision, for which PyTorch has no kernel."""
    return {("input", dtype): f"{name}_cpu" for dtype in (float16, bfloat16)}


def gaussian(F, x, scale):
    """scale * exp(-x*x)"""
    return F.mul(F.exp(F.neg(F.mul(x, x))), scale)


# --- error functions ------------------------------------------------------------------------------

op(
    "erf(Tensor input)",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    alias="special.erf",
    vjp={"input": lambda F, g, input: F.mul(g, gaussian(F, input, TWO_OVER_ROOT_PI))},
    doc=r"""Computes the error function of each element.

    .. math::

        \mathrm{erf}(x) = \frac{2}{\sqrt{\pi}} \int_0^x e^{-t^2} \, dt

    Example:
        >>> torch.erf(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8427])

    See also:
        `torch.erfc`, `torch.erfinv`.
    """,
    layout=memory_layout.pointwise,
)
op(
    "erfc(Tensor input)",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    alias="special.erfc",
    vjp={"input": lambda F, g, input: F.mul(g, gaussian(F, input, -TWO_OVER_ROOT_PI))},
    doc=r"""Computes the complementary error function, precise where it is small.

    .. math::

        \mathrm{erfc}(x) = 1 - \mathrm{erf}(x)

    Example:
        >>> torch.erfc(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 0.1573])

    See also:
        `torch.erf`.
    """,
    layout=memory_layout.pointwise,
)
op(
    "special_erfcx(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input, out: F.mul(g, F.sub(F.mul(F.mul(input, out), 2.0), TWO_OVER_ROOT_PI))},
    doc=r"""Computes the scaled complementary error function.

    .. math::

        \exp(x^2) \, \mathrm{erfc}(x)

    Example:
        >>> torch.special.erfcx(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 0.4276])

    See also:
        `torch.erfc`.
    """,
    layout=memory_layout.pointwise,
    refuses=_refuse_half("erfcx"),
)
op(
    "erfinv(Tensor input)",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    alias="special.erfinv",
    vjp={"input": lambda F, g, input: F.mul(g, F.mul(F.exp(F.square(F.erfinv(input))), 1.0 / TWO_OVER_ROOT_PI))},
    doc="""Computes the inverse of the error function on (-1, 1).

    The result is infinite at the ends, and NaN outside.

    Example:
        >>> torch.erfinv(torch.tensor([0.0, 0.5]))
        tensor([0.0000, 0.4769])

    See also:
        `torch.erf`.
    """,
    layout=memory_layout.pointwise,
)
op(
    "special_ndtr(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input: F.mul(g, F.mul(F.exp(F.mul(F.mul(input, input), -0.5)), 1.0 / ROOT_TWO_PI))},
    doc=r"""Computes the cumulative distribution function of the standard normal distribution.

    .. math::

        \Phi(x) = \frac{1}{\sqrt{2 \pi}} \int_{-\infty}^x e^{-t^2 / 2} \, dt

    Example:
        >>> torch.special.ndtr(torch.tensor([0.0, 1.0]))
        tensor([0.5000, 0.8413])

    See also:
        `torch.special.ndtri`, `torch.special.log_ndtr`.
    """,
    layout=memory_layout.pointwise,
    node_name="MulBackward1(AddBackward1(ErfBackward0(MulBackward1(input))))",
)
op(
    "special_ndtri(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={"input": lambda F, g, out: F.mul(g, F.mul(F.exp(F.mul(F.mul(out, out), 0.5)), ROOT_TWO_PI))},
    doc="""Computes the quantiles of the standard normal distribution: the inverse of `ndtr`.

    Example:
        >>> torch.special.ndtri(torch.tensor([0.5, 0.8413]))
        tensor([0.0000, 0.9998])

    See also:
        `torch.special.ndtr`.
    """,
    layout=memory_layout.pointwise,
    refuses=_refuse_half("ndtri"),
)


def _log_ndtr_vjp(F, g, input):
    """The density over `ndtr`; by `erfcx` for negative elements, where both underflow."""
    zeros = F._zeros_like(input)
    is_positive = F.gt(input, 0)
    negative, positive = F.where(is_positive, zeros, input), F.where(is_positive, input, zeros)
    density = F.div(F.exp(F.mul(F.mul(positive, positive), -0.5)), ROOT_TWO_PI)
    return F.where(
        is_positive,
        F.mul(g, F.div(density, F.special_ndtr(positive))),
        F.div(F.mul(g, math.sqrt(2.0 / math.pi)), F.special_erfcx(F.mul(negative, -math.sqrt(0.5)))),
    )


op(
    "special_log_ndtr(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={"input": _log_ndtr_vjp},
    doc="""Computes the logarithm of `ndtr`, precise for very negative elements.

    Example:
        >>> torch.special.log_ndtr(torch.tensor([0.0, -20.0]))
        tensor([  -0.6931, -203.9172])

    See also:
        `torch.special.ndtr`.
    """,
    layout=memory_layout.pointwise,
    refuses=_refuse_half("log_ndtr"),
)

# --- gamma and zeta -------------------------------------------------------------------------------

op(
    "lgamma(Tensor input)",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    alias="special.gammaln",
    vjp={"input": lambda F, g, input: F.mul(g, F.digamma(input))},
    doc=r"""Computes the logarithm of the absolute value of the gamma function.

    .. math::

        \log |\Gamma(x)|

    Example:
        >>> torch.lgamma(torch.tensor([1.0, 4.0]))
        tensor([0.0000, 1.7918])

    See also:
        `torch.digamma`.
    """,
)
op(
    "digamma(Tensor input)",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    alias="special.digamma special.psi",
    vjp={"input": lambda F, g, input: F.mul(g, F.polygamma(input, 1))},
    doc=r"""Computes the derivative of `lgamma`.

    .. math::

        \psi(x) = \frac{d}{dx} \log \Gamma(x)

    The result is minus infinity at 0, and NaN at the negative integers.

    Example:
        >>> torch.digamma(torch.tensor([1.0]))
        tensor([-0.5772])

    See also:
        `torch.polygamma`.
    """,
    layout=memory_layout.pointwise,
)
op(
    "polygamma(Tensor input, n)",
    where="Tensor",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    vjp={"input": lambda F, g, input, n: F.mul(g, F.polygamma(input, n + 1))},
    doc=r"""Computes a derivative of `digamma`.

    .. math::

        \psi^{(n)}(x)

    Args:
        n: The order of the derivative, at least 0.

    Example:
        >>> torch.tensor([1.0]).polygamma(1)
        tensor([1.6449])

    See also:
        `torch.digamma`.
    """,
)


@composite("special_polygamma(n, Tensor input)", where="special", alias="torch.polygamma")
def special_polygamma(F, n, input):
    r"""Computes a derivative of `digamma`.

    .. math::

        \psi^{(n)}(x)

    Args:
        n: The order of the derivative.

    Raises:
        RuntimeError: `n` is negative.

    Example:
        >>> torch.polygamma(1, torch.tensor([1.0]))
        tensor([1.6449])

    See also:
        `torch.digamma`.
    """
    refuse_floats(n)
    return F.polygamma(input, n)


@composite(
    "mvlgamma(Tensor input, p)",
    tags=INPLACE,
    alias="special.multigammaln",
    overlap=Overlap(operands="partial"),
    node_name="MvlgammaBackward0(input)",
)
def mvlgamma(F, input, p):
    r"""Computes the logarithm of the multivariate gamma function.

    .. math::

        \log \Gamma_p(x) = \frac{p (p - 1)}{4} \log \pi + \sum_{j = 0}^{p - 1} \log \Gamma \left( x - \frac{j}{2}
        \right)

    Args:
        p: The dimension, at least 1.

    Raises:
        RuntimeError: `p` is less than 1.

    Example:
        >>> torch.mvlgamma(torch.tensor([2.0]), 2)
        tensor([0.4516])

    See also:
        `torch.lgamma`.
    """
    if input.dtype.category == BOOL:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    total = F.lgamma(input)
    for j in range(1, p):
        total = total + F.lgamma(input - 0.5 * j)
    return total + math.log(math.pi) * p * (p - 1) / 4


def gamma_density(F, a, x):
    """The derivative of P(a, x) by x: x**(a-1) exp(-x) / gamma(a)."""
    return F.exp(F.sub(F.sub(F.mul(F.sub(a, 1), F.log(x)), x), F.lgamma(a)))


op(
    "igamma(Tensor input, Tensor other)",
    promote=DEFAULT,
    tags=UNARY,
    alias="special.gammainc",
    vjp={
        "input": make_not_implemented_formula("igamma", "input"),
        "other": lambda F, g, input, other: F.mul(g, gamma_density(F, input, other)),
    },
    doc=r"""Computes the regularized lower incomplete gamma function.

    .. math::

        P(a, x) = \frac{1}{\Gamma(a)} \int_0^x t^{a - 1} e^{-t} \, dt

    Args:
        input: The parameter :math:`a`, positive.
        other: The bound :math:`x`, not negative.

    Example:
        >>> torch.igamma(torch.tensor([1.0]), torch.tensor([1.0]))
        tensor([0.6321])

    See also:
        `torch.igammac`.
    """,
    layout=memory_layout.pointwise,
)
op(
    "igammac(Tensor input, Tensor other)",
    promote=DEFAULT,
    tags=UNARY,
    alias="special.gammaincc",
    vjp={
        "input": make_not_implemented_formula("igammac", "input"),
        "other": lambda F, g, input, other: F.neg(F.mul(g, gamma_density(F, input, other))),
    },
    doc="""Computes the regularized upper incomplete gamma function.

    .. math::

        Q(a, x) = 1 - P(a, x)

    Args:
        input: The parameter :math:`a`, positive.
        other: The bound :math:`x`, not negative.

    Example:
        >>> torch.igammac(torch.tensor([1.0]), torch.tensor([1.0]))
        tensor([0.3679])

    See also:
        `torch.igamma`.
    """,
    layout=memory_layout.pointwise,
)


def overload_name(name):
    """The name of an op with overloads for two tensors, and for a number in the first or the second place."""

    def choose_name(node):
        mark = getattr(node, "_shown", "")
        return {"input": f"{name}Backward1(other)", "other": f"{name}Backward2(input)"}.get(mark, f"{name}Backward0")

    return choose_name


op(
    "special_zeta(Tensor|Number input, Tensor|Number other)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={
        "input": make_not_implemented_formula("zeta"),
        "other": lambda F, g, input, other: F.neg(F.mul(g, F.mul(F.special_zeta(F.add(input, 1), other), input))),
    },
    node_name=overload_name("SpecialZeta"),
    doc=r"""Computes the Hurwitz zeta function.

    .. math::

        \zeta(x, q) = \sum_{k = 0}^{\infty} \frac{1}{(k + q)^x}

    Args:
        input: The exponent :math:`x`, a tensor or a number.
        other: The offset :math:`q`, a tensor or a number.

    Example:
        >>> torch.special.zeta(torch.tensor([2.0]), torch.tensor([1.0]))
        tensor([1.6449])
    """,
    layout=memory_layout.pointwise,
)

# --- logarithms of products -----------------------------------------------------------------------


def make_times_log_vjps(name, where, alias, inner, edge, doc, node_name="Xlogy"):
    """xlogy and xlog1py: 0 where `input` is 0, even if the logarithm is not finite."""

    def input_vjp(F, g, input, other):
        if not hasattr(other, "shape"):
            other = F._full_like(g, other)
        dead = F.logical_and(F.eq(input, 0), F.le(other, edge))
        return F.where(dead, 0, F.mul(g, getattr(F, inner)(F.where(dead, 1, other))))

    def other_vjp(F, g, input, other):
        return F.mul(g, F.div(input, F.sub(other, edge) if edge else other))

    op(
        f"{name}(Tensor|Number input, Tensor|Number other)",
        where=where,
        promote=INT_TO_FLOAT,
        tags=POINTWISE | (INPLACE if "Tensor" in where else 0),
        alias=alias,
        vjp={"input": input_vjp, "other": other_vjp},
        doc=doc,
        node_name=overload_name(node_name),
        layout=memory_layout.pointwise,
    )


_TIMES_LOG_DOC = """Computes ``input * {log}(other)``, and 0 where `input` is 0 and `other` is not NaN.

Args:
    input: The factor, a tensor or a number.
    other: The argument of the logarithm: a tensor that broadcasts with `input`, or a number.

Example:
    >>> torch.{name}(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 2.0]))
    tensor([0.0000, {value}])
"""
make_times_log_vjps(
    "xlogy", "torch Tensor", "special.xlogy", "log", 0, _TIMES_LOG_DOC.format(log="log", value="0.6931", name="xlogy")
)
make_times_log_vjps(
    "special_xlog1py",
    "special",
    "",
    "log1p",
    -1,
    _TIMES_LOG_DOC.format(log="log1p", value="1.0986", name="special.xlog1py"),
    "SpecialXlog1Py",
)
op(
    "special_entr(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input: F.neg(F.mul(g, F.add(F.log(input), 1)))},
    doc=r"""Computes the entropy of each element.

    .. math::

        -x \log x

    The result is 0 at 0, and minus infinity below.

    Example:
        >>> torch.special.entr(torch.tensor([0.0, 0.5]))
        tensor([0.0000, 0.3466])

    See also:
        `torch.special.xlogy`.
    """,
    refuses={("input", COMPLEX): "entr_cpu"},
)


def logit_vjp(F, g, input, eps):
    """1 / (x (1 - x)) inside the open interval; outside NaN, or 0 where x was clamped."""
    low = 0 if eps is None else eps
    slope = F.div(g, F.mul(input, F.sub(1, input)))
    outside = F.logical_or(F.lt(input, low), F.gt(input, 1 - low))
    return F.where(outside, math.nan if eps is None else 0, slope)


op(
    "logit(Tensor input, eps=None)",
    promote=INT_TO_FLOAT,
    promote_args=("input",),
    tags=UNARY,
    alias="special.logit",
    vjp={"input": logit_vjp},
    doc=r"""Computes the logit: the inverse of the logistic function.

    .. math::

        \log \frac{x}{1 - x}

    Args:
        eps: Elements are limited to ``[eps, 1 - eps]`` first. Default: none.

    Example:
        >>> torch.logit(torch.tensor([0.5, 0.9]))
        tensor([0.0000, 2.1972])

    See also:
        `torch.sigmoid`.
    """,
    refuses={("input", COMPLEX): "logit_cpu"},
)


def sinc_vjp(F, g, input):
    """(z cos z - sin z) / (z x) for z = pi x. Near 0, where it cancels, its Taylor series."""
    near = F.lt(F.abs(input), 0.1)
    safe = F.where(near, 1, input)
    scaled = F.mul(safe, math.pi)
    slope = F.div(F.sub(F.mul(F.cos(scaled), scaled), F.sin(scaled)), F.mul(scaled, safe))
    small = F.mul(F.where(near, input, 0), math.pi)
    square = F.mul(small, small)
    series = F._ones_like(square)
    for divisor in (130, 88, 54, 28, 10):
        series = F.sub(1, F.mul(F.mul(square, series), 1 / divisor))
    series = F.sub(0, F.mul(F.mul(small, series), math.pi / 3))  # +0 at 0
    return F.mul(g, F.conj(F.where(near, series, slope)))


op(
    "sinc(Tensor input)",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    alias="special.sinc",
    vjp={"input": sinc_vjp},
    doc=r"""Computes the normalized sinc function.

    .. math::

        \frac{\sin(\pi x)}{\pi x}

    The result is 1 at 0.

    Example:
        >>> torch.sinc(torch.tensor([0.0, 0.5]))
        tensor([1.0000, 0.6366])

    See also:
        `numpy.sinc`.
    """,
)

# --- Bessel functions -----------------------------------------------------------------------------


# The Taylor coefficients of i1(x) / x in x^2, the highest power first.
_I1_SERIES = [1 / (2 ** (2 * k + 1) * math.factorial(k) * math.factorial(k + 1)) for k in range(9, -1, -1)]


def _i1_over_x(F, out, x, scaled=False):
    """i1(x) / x, or i1e(x) / x: a series near 0, where the derivative of the quotient loses all digits."""
    small = F.lt(F.abs(x), 1)
    near = F.where(small, x, F._zeros_like(x))
    square = F.mul(near, near)
    series = F._full_like(square, _I1_SERIES[0])
    for coefficient in _I1_SERIES[1:]:
        series = F.add(F.mul(series, square), coefficient)
    if scaled:
        series = F.mul(series, F.exp(F.neg(F.abs(x))))
    return F.where(small, series, F.div(out, F.where(small, F._full_like(x, 1), x)))


op(
    "i0(Tensor input)",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    alias="special.i0",
    vjp={"input": lambda F, g, input: F.mul(g, F.special_i1(input))},
    doc="""Computes the modified Bessel function of the first kind of order 0.

    .. math::

        I_0(x)

    Example:
        >>> torch.i0(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 1.2661])

    See also:
        `torch.special.i0e`.
    """,
    layout=memory_layout.pointwise,
)
op(
    "special_i0e(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input, out: F.mul(g, F.sub(F.special_i1e(input), F.mul(F.sign(input), out)))},
    doc="""Computes the exponentially scaled modified Bessel function of the first kind of order 0.

    .. math::

        e^{-|x|} I_0(x)

    Example:
        >>> torch.special.i0e(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 0.4658])

    See also:
        `torch.special.i0`.
    """,
    layout=memory_layout.pointwise,
    node_name="SpecialI0EBackward0",
)
op(
    "special_i1(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input, out: F.mul(g, F.sub(F.i0(input), _i1_over_x(F, out, input)))},
    doc="""Computes the modified Bessel function of the first kind of order 1.

    .. math::

        I_1(x)

    Example:
        >>> torch.special.i1(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.5652])

    See also:
        `torch.special.i1e`.
    """,
    layout=memory_layout.pointwise,
)
op(
    "special_i1e(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={
        "input": lambda F, g, input, out: F.mul(
            g, F.sub(F.sub(F.special_i0e(input), F.mul(F.sign(input), out)), _i1_over_x(F, out, input, True))
        )
    },
    doc="""Computes the exponentially scaled modified Bessel function of the first kind of order 1.

    .. math::

        e^{-|x|} I_1(x)

    Example:
        >>> torch.special.i1e(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.2079])

    See also:
        `torch.special.i1`.
    """,
    layout=memory_layout.pointwise,
    node_name="SpecialI1EBackward0",
)


def _define_without_gradient(name, doc):
    op(
        f"special_{name}(Tensor input)",
        where="special",
        promote=INT_TO_FLOAT,
        tags=POINTWISE | NONDIFF,
        doc=doc,
        layout=memory_layout.pointwise,
        refuses=_refuse_half(name),
    )


_BESSEL_DOC = """Computes {what} of each element.

Example:
    >>> torch.special.{name}(torch.tensor([1.0]))
    tensor([{value}])
"""
_BESSEL = {
    "bessel_j0": ("the Bessel function of the first kind of order 0", "0.7652"),
    "bessel_j1": ("the Bessel function of the first kind of order 1", "0.4401"),
    "bessel_y0": ("the Bessel function of the second kind of order 0", "0.0883"),
    "bessel_y1": ("the Bessel function of the second kind of order 1", "-0.7812"),
    "modified_bessel_i0": ("the modified Bessel function of the first kind of order 0", "1.2661"),
    "modified_bessel_i1": ("the modified Bessel function of the first kind of order 1", "0.5652"),
    "modified_bessel_k0": ("the modified Bessel function of the second kind of order 0", "0.4210"),
    "modified_bessel_k1": ("the modified Bessel function of the second kind of order 1", "0.6019"),
    "scaled_modified_bessel_k0": (
        "``exp(x)`` times the modified Bessel function of the second kind of order 0",
        "1.1445",
    ),
    "scaled_modified_bessel_k1": (
        "``exp(x)`` times the modified Bessel function of the second kind of order 1",
        "1.6362",
    ),
    "spherical_bessel_j0": ("the spherical Bessel function of the first kind of order 0, ``sin(x) / x``,", "0.8415"),
    "airy_ai": ("the Airy function Ai", "0.1353"),
}
for _name, (_what, _value) in _BESSEL.items():
    _define_without_gradient(_name, _BESSEL_DOC.format(name=_name, what=_what, value=_value))

# --- orthogonal polynomials -----------------------------------------------------------------------

# {polynomial: name, value of degree 2 at 0.5}
_POLYNOMIALS = {
    "chebyshev_polynomial_t": ("Chebyshev polynomial of the first kind", "-0.5000"),
    "chebyshev_polynomial_u": ("Chebyshev polynomial of the second kind", "0."),
    "chebyshev_polynomial_v": ("Chebyshev polynomial of the third kind", "-1."),
    "chebyshev_polynomial_w": ("Chebyshev polynomial of the fourth kind", "1."),
    "shifted_chebyshev_polynomial_t": ("Chebyshev polynomial of the first kind, at ``2 * input - 1``", "-1."),
    "shifted_chebyshev_polynomial_u": ("Chebyshev polynomial of the second kind, at ``2 * input - 1``", "-1."),
    "shifted_chebyshev_polynomial_v": ("Chebyshev polynomial of the third kind, at ``2 * input - 1``", "-1."),
    "shifted_chebyshev_polynomial_w": ("Chebyshev polynomial of the fourth kind, at ``2 * input - 1``", "-1."),
    "hermite_polynomial_h": ("physicists' Hermite polynomial", "-1."),
    "hermite_polynomial_he": ("probabilists' Hermite polynomial", "-0.7500"),
    "laguerre_polynomial_l": ("Laguerre polynomial", "0.1250"),
    "legendre_polynomial_p": ("Legendre polynomial", "-0.1250"),
}
_POLYNOMIAL_DOC = """Computes the {what}, of each element.

Args:
    input: The argument, a tensor or a number.
    n: The degree: a number, or a tensor that broadcasts with `input`. The result is 0 for a negative one.

Example:
    >>> torch.special.{name}(torch.tensor([0.5]), 2)
    tensor([{value}])
"""
for _name, (_what, _value) in _POLYNOMIALS.items():
    op(
        f"special_{_name}(Tensor|Number input, Tensor|Number n)",
        where="special",
        promote=INT_TO_FLOAT,
        tags=POINTWISE | NONDIFF,
        doc=_POLYNOMIAL_DOC.format(name=_name, what=_what, value=_value),
        layout=memory_layout.pointwise,
    )
