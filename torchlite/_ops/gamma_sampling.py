"""Gamma and Dirichlet variates, and their derivatives with respect to the parameters.

A variate x that is drawn as the quantile of a fixed level moves with a parameter a by dx/da = -(dF/da)(x) / p(x): its
implicit gradient (M. Figurnov, S. Mohamed and A. Mnih, "Implicit reparameterization gradients", 2018), with the
distribution function F and the density p.
"""

from __future__ import annotations

import contextlib
from typing import Any

from .._device.generators import engine_for_table
from .._dispatch import DEFAULT, RANDOM, composite, memory_layout, op
from .._types.dtypes import finfo, float32, float64
from ._gradient_helpers import make_missing_derivative_formula

_ROUNDS = 8  # of rejection on devices: fewer than one variate in 10**10 is refused by all of them


# --- drawing --------------------------------------------------------------------------------------


def _smallest_normal(dtype) -> float:
    """The smallest normal number of a dtype: no variate is rounded to 0."""
    return finfo(dtype).tiny


def _draw_gammas(F, concentration, generator):
    """Gamma variates by several draws, between which no other thread draws from an engine that has a lock."""
    with getattr(generator, "lock", None) or contextlib.nullcontext():
        return _draw_gammas_marsaglia_tsang(F, concentration, generator)


def _draw_gammas_marsaglia_tsang(F, concentration, generator):
    """Marsaglia and Tsang's method, with as many rounds for all."""
    dtype, shape = F.dtype_of(concentration), concentration.shape
    real = float64 if dtype is float64 else float32
    wanted = F.to(concentration, real)
    small = F.lt(wanted, 1.0)
    a = F.where(small, F.add(wanted, 1.0), wanted)
    d = F.sub(a, 1.0 / 3.0)
    c = F.rsqrt(F.mul(d, 9.0))
    value, waiting = d, F.ge(d, 0.0)
    for _ in range(_ROUNDS):
        x = F._random_normal(shape, real, 0.0, 1.0, False, generator)
        root = F.add(F.mul(c, x), 1.0)
        positive = F.gt(root, 0.0)
        v = F.where(positive, F.mul(F.mul(root, root), root), 1.0)
        log_u = F.log1p(F.neg(F._random_uniform(shape, real, 0.0, 1.0, generator)))
        bound = F.add(F.mul(F.mul(x, x), 0.5), F.mul(d, F.add(F.sub(F.log(v), v), 1.0)))
        accepted = F.logical_and(positive, F.lt(log_u, bound))
        value = F.where(F.logical_and(waiting, accepted), F.mul(d, v), value)
        waiting = F.logical_and(waiting, F.logical_not(accepted))
    # For a below 1: a variate of a + 1 times u**(1 / a).
    log_u = F.log1p(F.neg(F._random_uniform(shape, real, 0.0, 1.0, generator)))
    value = F.mul(value, F.where(small, F.exp(F.div(log_u, F.where(small, wanted, 1.0))), 1.0))
    return F.to(F._clamp_scalars(value, _smallest_normal(dtype), None), dtype)


def _draw_dirichlets(F, concentration, generator):
    """Gamma variates over their sum."""
    values = F._random_gamma(concentration, generator)
    shares = F.div(values, F.sum(values, -1, True))
    return F._clamp_scalars(shares, _smallest_normal(F.dtype_of(shares)), None)


_DRAWN: dict[str, Any] = {
    "where": "",
    "tags": RANDOM,
    "shape_fn": lambda concentration: (concentration.shape, concentration.dtype),
}
op(
    "_random_gamma(Tensor concentration, generator)",
    **_DRAWN,
    composite=_draw_gammas,
    vjp={"concentration": lambda F, g, concentration, out: F.mul(g, F._standard_gamma_grad(concentration, out))},
    doc="Gamma variates of rate 1 (G. Marsaglia and W. W. Tsang, 'A simple method for generating gamma variables', "
    "2000).",
    node_name="StandardGammaBackward0",
)
op(
    "_random_dirichlet(Tensor concentration, generator)",
    **_DRAWN,
    composite=_draw_dirichlets,
    vjp={"concentration": make_missing_derivative_formula("_sample_dirichlet")},
    doc="Dirichlet variates along the last dimension.",
    node_name="NotImplemented",
)


def _check_real_cpu_dtype(input, kernel: str) -> None:
    """PyTorch's error for dtypes without a CPU kernel."""
    if input.dtype.category != 2 or (input.dtype.itemsize < 4 and input.device.type == "cpu"):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.scalar_name}'")


@composite("_standard_gamma(Tensor input, generator=None)", where="torch", layout=memory_layout.like_first)
def _standard_gamma(F, input, generator):
    """Gamma variates of the shape parameters in `input` and rate 1. Their gradients are implicit:
    ``_standard_gamma_grad``.
    """
    _check_real_cpu_dtype(input, "gamma_cpu")
    return F._random_gamma(input, engine_for_table(input._tl_kernels, generator))


@composite("_sample_dirichlet(Tensor input, generator=None)", where="torch", layout=memory_layout.like_first)
def _sample_dirichlet(F, input, generator):
    """Dirichlet variates of the concentrations along the last dimension of `input`. Not differentiable;
    `torch.distributions.Dirichlet` implements the gradient.
    """
    _check_real_cpu_dtype(input, "dirichlet")
    return F._random_dirichlet(input, engine_for_table(input._tl_kernels, generator))


# --- implicit gradients ---------------------------------------------------------------------------
#
# Near an end of its range a distribution function is a power series in the distance to the end, whose terms are all
# positive; its derivative by a parameter is that of the logarithm of each term. In between
#
#     dx/da = -(1 / p(x)) * integral from the lower end to x of (d log p(t) / da) p(t) dt
#           = +(1 / p(x)) * integral from x to the upper end of the same
#
# (the total is 0), of which the one is taken whose integrand has one sign: below where d log p / da is 0 the lower one.
# With log(t / x), or the difference of log-odds, as the variable, both have one form, and the double exponential rule
# (H. Takahasi and M. Mori, 1974) gives them to nearly all digits. Nothing is the difference of large numbers.

_SERIES_END = 1.5  # series are used where their argument, times the sum of the concentrations, is less
_TERMS = 56
_NODES = 40
_STEP = 0.2
_FIRST_NODE = -3.6
_PIECE = 1 << 20  # elements, times terms or nodes, that are computed at once


def _one_to_n(F, count: int, dtype):
    """1, 2 ... `count`."""
    return F.cumsum(F._full((count,), 1.0, dtype), -1)


def _sum_of_products_and_derivative(F, ratio, slope):
    """S = sum of products of `ratio` along the last dimension, beginning with 1, and its derivative, with `slope` the
    derivative of log ratio.
    """
    terms = F.cumprod(ratio, -1)
    return F.add(F.sum(terms, -1), 1.0), F.sum(F.mul(terms, F.cumsum(slope, -1)), -1)


def _integrate_double_exponential(F, scale, integrand):
    """The integral from 0 to infinity of a function of s that changes over lengths of `scale` and decays at least
    exponentially. `integrand(s)` gets s with the nodes in a new last dimension.
    """
    dtype = F.dtype_of(scale)
    t = F.add(F.mul(_one_to_n(F, _NODES, dtype), _STEP), _FIRST_NODE - _STEP)
    q = F.exp(F.sub(t, F.exp(F.neg(t))))
    weight = F.mul(F.mul(q, F.add(F.exp(F.neg(t)), 1.0)), _STEP)
    s = F.mul(F.unsqueeze(scale, -1), q)
    return F.mul(scale, F.sum(F.mul(integrand(s), weight), -1))


def _lower_integral_sign(F, start):
    """-1 where the lower integral is taken, else 1."""
    return F.sub(F.mul(F.to(F.ge(start, 0.0), F.dtype_of(start)), 2.0), 1.0)


def _apply_blockwise(F, formula, *operands):
    """Apply `formula(*operands)` to flat arrays of one shape in blocks that fit in the cache with all quadrature
    nodes.
    """
    shape = operands[0].shape
    flat = [F.reshape(x, (-1,)) for x in operands]
    size, piece = flat[0].shape[0], max(_PIECE // _TERMS, 1)
    if size <= piece:
        return F.reshape(formula(*flat), shape)
    parts = [
        formula(*(F._slice(x, 0, start, min(start + piece, size), 1) for x in flat)) for start in range(0, size, piece)
    ]
    return F.reshape(F.cat(parts, 0), shape)


def _gamma_sample_derivative(F, a, x):
    """dx/da of gamma variates x of shape parameters a, one-dimensional."""
    dtype = F.dtype_of(x)
    # F(x) = x**a exp(-x) / Gamma(a + 1) * sum of x**n / ((a + 1) ... (a + n)), and p(x) = x**(a - 1) exp(-x) / Gamma(a)
    log_x = F.log(x)
    below = F.add(F.unsqueeze(a, -1), _one_to_n(F, _TERMS, dtype))
    near = F.unsqueeze(F._clamp_scalars(x, None, _SERIES_END), -1)
    total, moved = _sum_of_products_and_derivative(F, F.div(near, below), F.neg(F.reciprocal(below)))
    log_slope = F.sub(log_x, F.digamma(F.add(a, 1.0)))
    by_series = F.neg(F.mul(F.div(x, a), F.add(F.mul(total, log_slope), moved)))
    # d log p(t) / da = log t - digamma(a), and p(x exp(e)) exp(e) / p(x) = exp(a e - x (exp(e) - 1))
    start = F.sub(log_x, F.digamma(a))
    side = _lower_integral_sign(F, start)
    scale = F.reciprocal(F.add(F.abs(F.sub(a, x)), F.sqrt(x)))

    def integrand(s):
        e = F.mul(F.unsqueeze(side, -1), s)
        log_weight = F.sub(F.mul(F.unsqueeze(a, -1), e), F.mul(F.unsqueeze(x, -1), F.expm1(e)))
        return F.mul(F.add(F.unsqueeze(start, -1), e), F.exp(log_weight))

    by_integral = F.mul(F.mul(side, x), _integrate_double_exponential(F, scale, integrand))
    return F.where(F.lt(x, _SERIES_END), by_series, by_integral)


def _beta_sample_derivative(F, x, a, total):
    """dx/da / (1 - x) of beta variates x of parameters a and total - a, where the latter stays."""
    dtype = F.dtype_of(x)
    b, rest = F.sub(total, a), F.add(F.neg(x), 1.0)
    log_x = F.where(F.lt(x, 0.5), F.log(x), F.log1p(F.neg(rest)))
    counted = _one_to_n(F, _TERMS, dtype)
    rising = F.add(F.unsqueeze(total, -1), F.sub(counted, 1.0))
    digamma_total = F.digamma(total)

    def term_ratios(distance, parameter):
        """The ratios of the terms of x**a (1 - x)**b / (a B) * sum of (total)_n / (a + 1)_n x**n."""
        inside = F.minimum(F._clamp_scalars(distance, None, 0.5), F.mul(F.reciprocal(total), _SERIES_END))
        inside = F.unsqueeze(inside, -1)
        below = F.add(F.unsqueeze(parameter, -1), counted)
        return F.div(F.mul(inside, rising), below), F.reciprocal(below)

    # Near 0, as a series of F itself; near 1, as one of 1 - F, where a is the other parameter.
    ratio, falling = term_ratios(x, a)
    low, low_moved = _sum_of_products_and_derivative(F, ratio, F.sub(F.reciprocal(rising), falling))
    low_slope = F.sub(F.add(log_x, digamma_total), F.digamma(F.add(a, 1.0)))
    by_low = F.neg(F.mul(F.div(x, a), F.add(F.mul(low, low_slope), low_moved)))
    ratio, falling = term_ratios(rest, b)
    high, high_moved = _sum_of_products_and_derivative(F, ratio, F.reciprocal(rising))
    start = F.sub(F.add(log_x, digamma_total), F.digamma(a))
    by_high = F.mul(F.div(x, b), F.add(F.mul(high, start), high_moved))
    # d log p(t) / da = log t - digamma(a) + digamma(total); with log-odds of t that differ from those of x by e,
    # log(t / x) = e - r and log((1 - t) / (1 - x)) = -r for r = log(1 + x (exp(e) - 1))
    side = _lower_integral_sign(F, start)
    slope, spread = F.sub(a, F.mul(total, x)), F.mul(F.mul(total, x), rest)
    scale = F.reciprocal(F.add(F.abs(slope), F.sqrt(spread)))

    def integrand(s):
        e = F.mul(F.unsqueeze(side, -1), s)
        r = F.log1p(F.mul(F.unsqueeze(x, -1), F.expm1(e)))
        log_weight = F.sub(F.mul(F.unsqueeze(a, -1), e), F.mul(F.unsqueeze(total, -1), r))
        return F.mul(F.add(F.unsqueeze(start, -1), F.sub(e, r)), F.exp(log_weight))

    by_integral = F.mul(F.mul(side, x), _integrate_double_exponential(F, scale, integrand))
    at_low = F.logical_and(F.lt(x, 0.5), F.lt(F.mul(total, x), _SERIES_END))
    at_high = F.logical_and(F.ge(x, 0.5), F.lt(F.mul(total, rest), _SERIES_END))
    return F.where(at_low, by_low, F.where(at_high, by_high, by_integral))


def _compute_in_float32(F, formula, *operands):
    dtype = F.dtype_of(operands[0])
    wide = [F.to(x, float32) if dtype.itemsize < 4 else x for x in operands]
    return F.to(_apply_blockwise(F, lambda *flat: formula(F, *flat), *wide), dtype)


def _make_not_implemented_formula(name: str):
    def formula(F, g):
        raise RuntimeError(f"the derivative for '{name}' is not implemented.")

    return formula


op(
    "_standard_gamma_grad(Tensor input, Tensor output)",
    promote=DEFAULT,
    tags=0,
    where="torch",
    shape_fn=lambda input, output: (input.shape, input.dtype),
    composite=lambda F, input, output: _compute_in_float32(F, _gamma_sample_derivative, input, output),
    vjp=dict.fromkeys(("input", "output"), _make_not_implemented_formula("_standard_gamma_grad")),
    doc="""How gamma variates ``output`` of shape parameters ``input`` (both of one shape) move with them.

    >>> import torchlite as torch
    >>> torch._standard_gamma_grad(torch.tensor([1.0]), torch.tensor([0.0001]))
    tensor([0.0010])
    """,
    node_name="StandardGammaGradBackward0(input)",
)
op(
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total)",
    promote=DEFAULT,
    tags=0,
    where="torch",
    shape_fn=lambda x, alpha, total: (x.shape, x.dtype),
    composite=lambda F, x, alpha, total: _compute_in_float32(F, _beta_sample_derivative, x, alpha, total),
    vjp=dict.fromkeys(("x", "alpha", "total"), make_missing_derivative_formula("_dirichlet_grad")),
    doc="How beta variates ``x`` of parameters ``alpha`` and ``total - alpha`` move with ``alpha``; over ``1 - x``.",
    node_name="NotImplemented",
)
