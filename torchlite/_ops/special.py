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

from ._gradient_helpers import make_not_implemented_formula

UNARY = POINTWISE | INPLACE
TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


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
    doc="""The error function, ``2/sqrt(pi) * integral of exp(-t*t) from 0 to input``.

    >>> torch.erf(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """,
    layout=memory_layout.pointwise,
)
op(
    "erfc(Tensor input)",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    alias="special.erfc",
    vjp={"input": lambda F, g, input: F.mul(g, gaussian(F, input, -TWO_OVER_ROOT_PI))},
    doc="``1 - erf(input)``, precise where that is small.",
    layout=memory_layout.pointwise,
)
op(
    "special_erfcx(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input, out: F.mul(g, F.sub(F.mul(F.mul(input, out), 2.0), TWO_OVER_ROOT_PI))},
    doc="The scaled complementary error function, ``exp(input**2) * erfc(input)``.",
    layout=memory_layout.pointwise,
)
op(
    "erfinv(Tensor input)",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    alias="special.erfinv",
    vjp={"input": lambda F, g, input: F.mul(g, F.mul(F.exp(F.square(F.erfinv(input))), 1.0 / TWO_OVER_ROOT_PI))},
    doc="The inverse of ``erf`` on (-1, 1); infinite at the ends, NaN outside.",
    layout=memory_layout.pointwise,
)
op(
    "special_ndtr(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input: F.mul(g, F.mul(F.exp(F.mul(F.mul(input, input), -0.5)), 1.0 / ROOT_TWO_PI))},
    doc="The normal distribution function: the area under the standard normal density left of ``input``.",
    layout=memory_layout.pointwise,
)
op(
    "special_ndtri(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={"input": lambda F, g, out: F.mul(g, F.mul(F.exp(F.mul(F.mul(out, out), 0.5)), ROOT_TWO_PI))},
    doc="The inverse of ``ndtr``: the normal quantile of a probability.",
    layout=memory_layout.pointwise,
)
op(
    "special_log_ndtr(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={
        "input": lambda F, g, input: F.div(
            F.mul(g, math.sqrt(2.0 / math.pi)), F.special_erfcx(F.mul(input, -math.sqrt(0.5)))
        )
    },
    doc="``log(ndtr(input))``, precise far to the left.",
    layout=memory_layout.pointwise,
)

# --- gamma and zeta -------------------------------------------------------------------------------

op(
    "lgamma(Tensor input)",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    alias="special.gammaln",
    vjp={"input": lambda F, g, input: F.mul(g, F.digamma(input))},
    doc="The logarithm of the absolute value of the gamma function.",
)
op(
    "digamma(Tensor input)",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    alias="special.digamma special.psi",
    vjp={"input": lambda F, g, input: F.mul(g, F.polygamma(input, 1))},
    doc="The derivative of ``lgamma``. Minus infinity at 0, NaN at the negative integers.",
    layout=memory_layout.pointwise,
)
op(
    "polygamma(Tensor input, n)",
    where="Tensor",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    vjp={"input": lambda F, g, input, n: F.mul(g, F.polygamma(input, n + 1))},
    doc="The n-th derivative of ``digamma``, n >= 0.",
)


@composite("special_polygamma(n, Tensor input)", where="special", alias="torch.polygamma")
def special_polygamma(F, n, input):
    """The n-th derivative of ``digamma``, n >= 0. RuntimeError for a negative n.

    >>> torch.polygamma(1, torch.tensor([1.0]))
    tensor([1.6449])
    """
    return F.polygamma(input, n)


@composite("mvlgamma(Tensor input, p)", tags=INPLACE, alias="special.multigammaln", overlap=Overlap(operands="partial"))
def mvlgamma(F, input, p):
    """The multivariate log-gamma function of dimension ``p``: the sum of ``lgamma(input - j/2)`` for j < p, plus
    ``log(pi) p (p-1)/4``.
    """
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
    doc="The regularised lower incomplete gamma function P(input, other).",
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
    doc="The regularised upper incomplete gamma function Q(input, other).",
    layout=memory_layout.pointwise,
)
op(
    "special_zeta(Tensor|Number input, Tensor|Number other)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={
        "input": make_not_implemented_formula("zeta"),
        "other": lambda F, g, input, other: F.neg(F.mul(g, F.mul(F.special_zeta(F.add(input, 1), other), input))),
    },
    doc="Hurwitz' zeta function: the sum of ``(k + other) ** -input`` over k >= 0.",
    layout=memory_layout.pointwise,
)

# --- logarithms of products -----------------------------------------------------------------------


def make_times_log_vjps(name, where, alias, inner, edge, doc, node_name=""):
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
        node_name=node_name,
        layout=memory_layout.pointwise,
    )


make_times_log_vjps(
    "xlogy",
    "torch Tensor",
    "special.xlogy",
    "log",
    0,
    "``input * log(other)``, and 0 where ``input`` is 0 (unless ``other`` is NaN).",
)
make_times_log_vjps(
    "special_xlog1py",
    "special",
    "",
    "log1p",
    -1,
    "``input * log1p(other)``, and 0 where ``input`` is 0 (unless ``other`` is NaN).",
    "SpecialXlog1PyBackward0",
)
op(
    "special_entr(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input: F.neg(F.mul(g, F.add(F.log(input), 1)))},
    doc="``-input * log(input)``; 0 at 0, minus infinity below.",
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
    doc="``log(input / (1 - input))``, ``input`` first clamped to [eps, 1 - eps] when ``eps`` is given.",
)


def sinc_vjp(F, g, input):
    zero = F.eq(input, 0)
    safe = F.where(zero, 1, input)
    scaled = F.mul(safe, math.pi)
    # Divided twice: the square of a small number is 0.
    slope = F.div(F.div(F.sub(F.mul(F.cos(scaled), scaled), F.sin(scaled)), scaled), safe)
    return F.where(zero, 0, F.mul(g, F.conj(slope)))


op(
    "sinc(Tensor input)",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    alias="special.sinc",
    vjp={"input": sinc_vjp},
    doc="``sin(pi * input) / (pi * input)``, and 1 at 0.",
)

# --- Bessel functions -----------------------------------------------------------------------------


def divide_with_limit(F, numerator, x, at_zero):
    """numerator / x, with its limit at 0."""
    zero = F.eq(x, 0)
    return F.where(zero, at_zero, F.div(numerator, F.where(zero, 1, x)))


op(
    "i0(Tensor input)",
    promote=INT_TO_FLOAT,
    tags=UNARY,
    alias="special.i0",
    vjp={"input": lambda F, g, input: F.mul(g, F.special_i1(input))},
    doc="The modified Bessel function of the first kind of order 0.",
    layout=memory_layout.pointwise,
)
op(
    "special_i0e(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input, out: F.mul(g, F.sub(F.special_i1e(input), F.mul(F.sign(input), out)))},
    doc="``exp(-|input|) * i0(input)``.",
    layout=memory_layout.pointwise,
    node_name="SpecialI0EBackward0",
)
op(
    "special_i1(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input, out: F.mul(g, F.sub(F.i0(input), divide_with_limit(F, out, input, 0.5)))},
    doc="The modified Bessel function of the first kind of order 1.",
    layout=memory_layout.pointwise,
)
op(
    "special_i1e(Tensor input)",
    where="special",
    promote=INT_TO_FLOAT,
    tags=POINTWISE,
    vjp={
        "input": lambda F, g, input, out: F.mul(
            g, F.sub(F.sub(F.special_i0e(input), F.mul(F.sign(input), out)), divide_with_limit(F, out, input, 0.5))
        )
    },
    doc="``exp(-|input|) * i1(input)``.",
    layout=memory_layout.pointwise,
    node_name="SpecialI1EBackward0",
)


def define_without_gradient(name, doc):
    op(
        f"special_{name}(Tensor input)",
        where="special",
        promote=INT_TO_FLOAT,
        tags=POINTWISE | NONDIFF,
        doc=doc,
        layout=memory_layout.pointwise,
    )


for _kind, _letter in (("first", "j"), ("second", "y")):
    for _order in (0, 1):
        define_without_gradient(
            f"bessel_{_letter}{_order}", f"The Bessel function of the {_kind} kind of order {_order}."
        )
for _kind, _letter in (("first", "i"), ("second", "k")):
    for _order in (0, 1):
        define_without_gradient(
            f"modified_bessel_{_letter}{_order}", f"The modified Bessel function of the {_kind} kind of order {_order}."
        )
for _order in (0, 1):
    define_without_gradient(
        f"scaled_modified_bessel_k{_order}",
        f"``exp(input)`` times the modified Bessel function of the second kind of order {_order}.",
    )
define_without_gradient(
    "spherical_bessel_j0", "The spherical Bessel function of the first kind of order 0, ``sin(input) / input``."
)
define_without_gradient("airy_ai", "The Airy function Ai.")

# --- orthogonal polynomials -----------------------------------------------------------------------

for _name, _what in (
    ("chebyshev_polynomial_t", "Chebyshev polynomial of the first kind"),
    ("chebyshev_polynomial_u", "Chebyshev polynomial of the second kind"),
    ("chebyshev_polynomial_v", "Chebyshev polynomial of the third kind"),
    ("chebyshev_polynomial_w", "Chebyshev polynomial of the fourth kind"),
    ("shifted_chebyshev_polynomial_t", "Chebyshev polynomial of the first kind, at ``2 * input - 1``"),
    ("shifted_chebyshev_polynomial_u", "Chebyshev polynomial of the second kind, at ``2 * input - 1``"),
    ("shifted_chebyshev_polynomial_v", "Chebyshev polynomial of the third kind, at ``2 * input - 1``"),
    ("shifted_chebyshev_polynomial_w", "Chebyshev polynomial of the fourth kind, at ``2 * input - 1``"),
    ("hermite_polynomial_h", "physicists' Hermite polynomial"),
    ("hermite_polynomial_he", "probabilists' Hermite polynomial"),
    ("laguerre_polynomial_l", "Laguerre polynomial"),
    ("legendre_polynomial_p", "Legendre polynomial"),
):
    op(
        f"special_{_name}(Tensor|Number input, Tensor|Number n)",
        where="special",
        promote=INT_TO_FLOAT,
        tags=POINTWISE | NONDIFF,
        doc=f"The {_what} of degree ``n`` (0 for n < 0), elementwise.",
        layout=memory_layout.pointwise,
    )
