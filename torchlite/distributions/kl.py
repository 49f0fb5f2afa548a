"""Kullback-Leibler divergences: a table of formulas by the types of two distributions.

The formulas are the closed forms of integrals of p log(p / q). Those within one exponential family are from M. Gil, F.
Alajaji and T. Linder ("Renyi divergence measures for commonly used univariate continuous distributions", 2013). The
general one is the Bregman divergence of the log-normaliser (F. Nielsen and R. Nock, "Entropies and cross-entropies of
exponential families", 2010). Where p has mass and q has none, the divergence is infinite.
"""

from __future__ import annotations

import math
import warnings
from functools import total_ordering
from typing import Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal, _batch_lowrank_logdet, _batch_lowrank_mahalanobis
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant

__all__ = ["register_kl", "kl_divergence"]

_KL_REGISTRY: dict[tuple[type, type], Any] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}  # cache of the formulas found for pairs of types


def register_kl(type_p, type_q):
    """Register a function as the divergence of two types of distributions; a decorator.

    `kl_divergence(p, q)` calls the function for ``p`` of ``type_p``, ``q`` of ``type_q`` and their subclasses. Of
    several functions that match, the one of the most specific types is called.

    Args:
        type_p: Subclass of `Distribution`, that of ``p``.
        type_q: Subclass of `Distribution`, that of ``q``.

    Returns:
        A decorator that registers its function and returns it.

    Raises:
        TypeError: ``type_p`` or ``type_q`` is not a class.

    Example:
        >>> D = torch.distributions
        >>> class Shifted(D.Normal): ...
        >>> @D.register_kl(Shifted, Shifted)
        ... def _(p, q):
        ...     return torch.tensor(1.0)
        >>> D.kl_divergence(Shifted(0.0, 1.0), Shifted(0.0, 1.0))
        tensor(1.)
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorator(fun):
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


@total_ordering
class _Match:
    """A pair of types, ordered by subclassing: the least of several matches is the most specific one."""

    __slots__ = ["types"]

    def __init__(self, *types) -> None:
        self.types = types

    def __eq__(self, other):
        return self.types == other.types

    def __lt__(self, other) -> bool:
        return self <= other and self != other

    def __le__(self, other) -> bool:
        for x, y in zip(self.types, other.types, strict=True):
            if not issubclass(x, y):
                return False
            if x is not y:
                break
        return True

    __hash__ = None  # type: ignore[assignment]


def _dispatch_kl(type_p, type_q):
    """Return the formula of the most specific match; if the left and the right type disagree, that of the left, with a
    warning.
    """
    matches = [(sp, sq) for sp, sq in _KL_REGISTRY if issubclass(type_p, sp) and issubclass(type_q, sq)]
    if not matches:
        return NotImplemented
    left = min(_Match(*m) for m in matches).types
    right = min(_Match(*reversed(m)) for m in matches).types
    by_left, by_right = _KL_REGISTRY[left], _KL_REGISTRY[tuple(reversed(right))]
    if by_left is not by_right:
        names = [t.__name__ for t in (type_p, type_q, *left, *reversed(right))]
        warnings.warn(
            f"Ambiguous kl_divergence({names[0]}, {names[1]}). Please register_kl({names[2]}, {names[5]})",
            RuntimeWarning,
            stacklevel=2,
        )
    return by_left


def kl_divergence(p: Distribution, q: Distribution) -> torch.Tensor:
    r"""Compute the Kullback-Leibler divergence of two distributions.

    .. math::

        \operatorname{KL}(p \, \| \, q) = E_{x \sim p} \left[ \log p(x) - \log q(x) \right]

    Where :math:`p` has mass and :math:`q` has none, the divergence is infinite.

    Args:
        p: The distribution over which the expectation is taken.
        q: The distribution that is compared with it.

    Returns:
        A tensor of the batch shape.

    Raises:
        NotImplementedError: No formula is registered for the two types; see `register_kl`.

    Example:
        >>> D = torch.distributions
        >>> D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0))
        tensor(0.5000)
    """
    types = type(p), type(q)
    if types not in _KL_MEMOIZE:
        _KL_MEMOIZE[types] = _dispatch_kl(*types)
    fun = _KL_MEMOIZE[types]
    if fun is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {types[0].__name__} and q type {types[1].__name__}"
        )
    return fun(p, q)


def _infinite_like(tensor):
    return torch.full_like(tensor, torch.inf)


def _x_log_x(tensor):
    """x log x, and 0 at 0."""
    return torch.special.xlogy(tensor, tensor)


def _trace_of_square(matrix):
    """The trace of matrix @ matrix^T, over a batch: the sum of its squared entries."""
    return matrix.pow(2).sum((-2, -1))


# --- within one family ----------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p, q):
    softplus = torch.nn.functional.softplus
    yes = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    yes = yes.masked_fill(q.probs == 0, torch.inf).masked_fill(p.probs == 0, 0)
    no = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    no = no.masked_fill(q.probs == 1, torch.inf).masked_fill(p.probs == 1, 0)
    return yes + no


@register_kl(Beta, Beta)
def _kl_beta_beta(p, q):
    total_p = p.concentration1 + p.concentration0
    total_q = q.concentration1 + q.concentration0
    constants = (
        q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
        - (p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma())
    )  # fmt: skip
    return (
        constants
        + (p.concentration1 - q.concentration1) * torch.digamma(p.concentration1)
        + (p.concentration0 - q.concentration0) * torch.digamma(p.concentration0)
        + (total_q - total_p) * torch.digamma(total_p)
    )


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p, q):
    # The divergence of one trial, times the number of trials; infinite if p has mass outside of q's support.
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return kl.masked_fill(p.total_count > q.total_count, torch.inf)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = terms.masked_fill((q.probs == 0).expand_as(terms), torch.inf)
    return terms.masked_fill((p.probs == 0).expand_as(terms), 0).sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p, q):
    away = p.mean * (p.logits - q.logits) + torch.log1p(-p.probs) - torch.log1p(-q.probs)
    return away + p._cont_bern_log_norm() - q._cont_bern_log_norm()


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p, q):
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    constants = total_p.lgamma() - total_q.lgamma() - (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    expected_log = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return constants + ((p.concentration - q.concentration) * expected_log).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot                             be "
            "computed using Bregman divergences"
        )
    of_p = [nparam.detach().requires_grad_() for nparam in p._natural_params]
    of_q = q._natural_params
    normalizer = p._log_normalizer(*of_p)
    gradients = torch.autograd.grad(normalizer.sum(), of_p, create_graph=True)
    result = q._log_normalizer(*of_q) - normalizer
    for one, other, gradient in zip(of_p, of_q, gradients, strict=True):
        result = result - _sum_rightmost((other - one) * gradient, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p, q):
    return (
        q.concentration * (p.rate / q.rate).log()
        + torch.lgamma(q.concentration)
        - torch.lgamma(p.concentration)
        + (p.concentration - q.concentration) * torch.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p, q):
    ratio = p.scale / q.scale
    loc_p, loc_q = p.loc / q.scale, q.loc / q.scale
    moment = torch.exp(loc_q + (1 + ratio).lgamma() - loc_p)
    return -ratio.log() - loc_q + loc_p + ratio * euler_constant + moment - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p, q):
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p, q):
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p, q):
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * torch.exp(-away / p.scale) - 1


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Low Rank Multivariate Normals with different event shapes cannot be computed"
        )
    factor_p, diag_p = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    return _kl_to_lowrank_normal(p, q, p._log_det(), (diag_p, factor_p))


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed"
        )
    return _kl_to_lowrank_normal(p, q, 2 * p._half_log_det(), (None, p._unbroadcasted_scale_tril))


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed"
        )
    diagonal = torch.diag_embed(p._unbroadcasted_cov_diag.sqrt())
    return _kl_to_multivariate_normal(p, q, p._log_det(), (p._unbroadcasted_cov_factor, diagonal))


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
        )
    return _kl_to_multivariate_normal(p, q, 2 * p._half_log_det(), (p._unbroadcasted_scale_tril,))


def _kl_normal_terms(p, log_det_p, log_det_q, trace, distance):
    """(tr(Sq^-1 Sp) + (mq - mp)^T Sq^-1 (mq - mp) - n + log det Sq - log det Sp) / 2."""
    return 0.5 * (log_det_q - log_det_p + distance + trace - p.event_shape[0])


def _kl_to_lowrank_normal(p, q, log_det_p, covariance):
    """From a normal with a covariance of a diagonal (or None) and factors: diag + sum of F F^T."""
    factor_q, diag_q, capacitance = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q._capacitance_tril
    log_det_q = _batch_lowrank_logdet(factor_q, diag_q, capacitance)
    distance = _batch_lowrank_mahalanobis(factor_q, diag_q, q.loc - p.loc, capacitance)
    # By Woodbury's identity Sq^-1 = Dq^-1 - A^T A, with A = (capacitance's factor)^-1 Wq^T Dq^-1.
    projection = torch.linalg.solve_triangular(capacitance, factor_q.mT / diag_q.unsqueeze(-2), upper=False)
    diagonal, factor = covariance
    trace = _trace_of_square(factor * diag_q.rsqrt().unsqueeze(-1)) - _trace_of_square(projection.matmul(factor))
    if diagonal is not None:
        trace = trace + (diagonal / diag_q).sum(-1) - _trace_of_square(projection * diagonal.sqrt().unsqueeze(-2))
    return _kl_normal_terms(p, log_det_p, log_det_q, trace, distance)


def _kl_to_multivariate_normal(p, q, log_det_p, factors):
    """From a normal whose covariance is a sum of F F^T over `factors`."""
    factor_q = q._unbroadcasted_scale_tril
    distance = _batch_mahalanobis(factor_q, q.loc - p.loc)
    trace: Any = 0
    for factor in factors:
        trace = trace + _trace_of_square(torch.linalg.solve_triangular(factor_q, factor, upper=False))
    return _kl_normal_terms(p, log_det_p, 2 * q._half_log_det(), trace, distance)


@register_kl(Normal, Normal)
def _kl_normal_normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p, q):
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p, q):
    scale, alpha = p.scale / q.scale, q.alpha / p.alpha
    result = q.alpha * scale.log() - alpha.log() + alpha - 1
    return result.masked_fill(p.support.lower_bound < q.support.lower_bound, torch.inf)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p, q):
    # A bijection changes nothing.
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.masked_fill((q.low > p.low) | (q.high < p.high), torch.inf)


@register_kl(Independent, Independent)
def _kl_independent_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p, q):
    # F. Chyzak and F. Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy
    # distributions", 2019.
    above = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return above - (4 * p.scale * q.scale).log()


# --- of two families ------------------------------------------------------------------------------


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p, q):
    return -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def _kl_beta_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p, q):
    expected_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    constant = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + constant - (q.concentration - 1) * expected_log + q.rate * p.mean


@register_kl(Beta, Normal)
def _kl_beta_normal(p, q):
    return _kl_to_normal(p, q, p.mean, p.variance)


def _kl_to_normal(p, q, mean, variance):
    """-H(p) - E[log q]: a normal's log-density has the first two moments alone."""
    square = q.scale.pow(2)
    away = variance + (mean - q.loc).pow(2)
    return -p.entropy() + 0.5 * (2 * math.pi * square).log() + 0.5 * away / square


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p, q):
    result = -p.entropy() + (q.high - q.low).log()
    return result.masked_fill((q.low > 0) | (q.high < 1), torch.inf)


@register_kl(ContinuousBernoulli, Exponential)
def _kl_continuous_bernoulli_exponential(p, q):
    return -p.entropy() - torch.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _kl_continuous_bernoulli_normal(p, q):
    return _kl_to_normal(p, q, p.mean, p.variance)


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p, q):
    # PyTorch's condition: infinite also for the unit interval itself.
    result = -p.entropy() + (q.high - q.low).log()
    return torch.where((q.low >= 0) | (q.high <= 1), torch.full_like(result, torch.inf), result)


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p, q):
    ratio = q.rate / p.rate
    return (
        -q.concentration * torch.log(ratio)
        + ratio
        + q.concentration.lgamma()
        + q.concentration * euler_constant
        - (1 + euler_constant)
    )


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p, q):
    product = p.rate * q.scale
    constant = product.log() - 1 + product.reciprocal()
    return constant - q.loc / q.scale + torch.exp(q.loc / q.scale) * product / (product + 1)


@register_kl(Exponential, Normal)
def _kl_exponential_normal(p, q):
    square, rate = q.scale.pow(2), p.rate.pow(2)
    return 0.5 * torch.log(rate * square * 2 * math.pi) - 1 + (1 / rate - q.loc / p.rate + q.loc.pow(2) / 2) / square


@register_kl(Gamma, Exponential)
def _kl_gamma_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p, q):
    product = p.rate * q.scale
    constant = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    moment = torch.exp(q.loc / q.scale) * (1 + product.reciprocal()).pow(-p.concentration)
    return constant + product.log() + p.concentration / product - q.loc / q.scale + moment


@register_kl(Gamma, Normal)
def _kl_gamma_normal(p, q):
    return _kl_to_normal(p, q, p.concentration / p.rate, p.concentration / p.rate.pow(2))


@register_kl(Gumbel, Normal)
def _kl_gumbel_normal(p, q):
    return _kl_to_normal(p, q, p.mean, p.variance)


@register_kl(Laplace, Normal)
def _kl_laplace_normal(p, q):
    return _kl_to_normal(p, q, p.loc, 2 * p.scale.pow(2))


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p, q):
    mean, ratio = (p.loc - q.loc) / q.scale, (p.scale / q.scale).pow(2)
    return -p.entropy() + mean + torch.exp(-mean + 0.5 * ratio) + q.scale.log()


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p, q):
    # E|x| of a normal: its density at 0 twice the variance, and the mean by the probability of either side.
    away = (p.loc - q.loc) / p.scale
    density = math.sqrt(2 / math.pi) * p.scale * torch.exp(-0.5 * away.pow(2))
    expected = density + (p.loc - q.loc) * torch.erf(math.sqrt(0.5) * away)
    return -p.entropy() + expected / q.scale + torch.log(2 * q.scale)


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p, q):
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return result.masked_fill(p.alpha <= 1, torch.inf)


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p, q):
    expected_log = p.scale.log() + p.alpha.reciprocal()
    result = (
        -p.entropy()
        + q.concentration.lgamma()
        - q.concentration * q.rate.log()
        + (1 - q.concentration) * expected_log
        + q.rate * p.alpha * p.scale / (p.alpha - 1)
    )
    return result.masked_fill(p.alpha <= 1, torch.inf)


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p, q):
    mean = p.alpha * p.scale / (p.alpha - 1)
    variance = p.alpha * p.scale.pow(2) / ((p.alpha - 1).pow(2) * (p.alpha - 2))
    return _kl_to_normal(p, q, mean, variance).masked_fill(p.alpha <= 2, torch.inf)


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p, q):
    width = p.high - p.low
    # E[log x] and E[log(1 - x)] over the interval
    log_x = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    log_rest = (_x_log_x(1 - p.low) - _x_log_x(1 - p.high) - width) / width
    constant = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    result = constant - (q.concentration1 - 1) * log_x - (q.concentration0 - 1) * log_rest - width.log()
    return result.masked_fill((p.high > 1) | (p.low < 0), torch.inf)


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p, q):
    result = -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()
    outside = torch.max(torch.ge(p.high, 1.0), torch.le(p.low, 0.0))
    return torch.where(outside, torch.full_like(result, torch.inf), result)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p, q):
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return result.masked_fill(p.low < 0, torch.inf)


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p, q):
    width = p.high - p.low
    expected_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = (
        -width.log()
        + q.concentration.lgamma()
        - q.concentration * q.rate.log()
        + (1 - q.concentration) * expected_log
        + q.rate * (p.high + p.low) / 2
    )
    return result.masked_fill(p.low < 0, torch.inf)


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p, q):
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    width = p.high - p.low
    moment = q.scale * (torch.exp(-low) - torch.exp(-high)) / width
    return (q.scale / width).log() + 0.5 * (high + low) + moment


@register_kl(Uniform, Normal)
def _kl_uniform_normal(p, q):
    width = p.high - p.low
    away = width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return 0.5 * (2 * math.pi * (q.scale / width).pow(2)).log() + 0.5 * away / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p, q):
    width = p.high - p.low
    expected_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = -width.log() - (q.alpha * q.scale.pow(q.alpha)).log() + (q.alpha + 1) * expected_log
    return result.masked_fill(p.low < q.support.lower_bound, torch.inf)


# --- infinite: p has mass outside of q's support --------------------------------------------------


def _register_infinite_kl(name):
    return lambda p, q: _infinite_like(getattr(p, name))


for _class, _name, _others in (
    (Beta, "concentration1", (Pareto,)),
    (ContinuousBernoulli, "probs", (Pareto,)),
    (Exponential, "rate", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gamma, "concentration", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gumbel, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Laplace, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Normal, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Pareto, "scale", (Beta, ContinuousBernoulli, Uniform)),
    (Poisson, "rate", (Bernoulli, Binomial)),
):
    for _other in _others:
        register_kl(_class, _other)(_register_infinite_kl(_name))


__dir__ = make_module_dir(globals(), "_KL_MEMOIZE _KL_REGISTRY")
