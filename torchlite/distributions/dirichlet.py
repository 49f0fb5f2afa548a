"""The Dirichlet distribution."""

from __future__ import annotations

import torchlite as torch
from torchlite.autograd import Function
from torchlite.autograd.function import once_differentiable

from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x, concentration, grad_output):
    """Return the gradient of samples `x` with respect to the concentration. `_dirichlet_grad` is that of the marginal;
    the other components shrink in proportion.
    """
    total = concentration.sum(-1, True).expand_as(concentration)
    return torch._dirichlet_grad(x, concentration, total) * (grad_output - (x * grad_output).sum(-1, True))


class _Dirichlet(Function):
    """Samples with implicit gradients (M. Jankowiak and F. Obermeyer, "Pathwise derivatives beyond the
    reparameterization trick", 2018).
    """

    @staticmethod
    def forward(ctx, concentration):
        x = torch._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, concentration = ctx.saved_tensors
        return _Dirichlet_backward(x, concentration, grad_output)


class Dirichlet(ExponentialFamily):
    r"""The Dirichlet distribution on the simplex, with concentrations :math:`\alpha_1, \ldots, \alpha_K`.

    .. math::

        p(x) = \frac{\Gamma\left( \sum_{i=1}^K \alpha_i \right)}{\prod_{i=1}^K \Gamma(\alpha_i)}
        \prod_{i=1}^K x_i^{\alpha_i - 1}, \quad x_i \ge 0, \quad \sum_{i=1}^K x_i = 1

    Samples have implicit gradients.

    Args:
        concentration: Positive concentrations, a tensor of shape ``(..., K)``.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of ``concentration`` without its last dimension.
        - Event shape: ``(K,)``.

    Raises:
        ValueError: ``concentration`` is 0-dimensional.
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.Dirichlet(torch.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])

    References:
        M. Jankowiak and F. Obermeyer, "Pathwise derivatives beyond the reparameterization trick", 2018.

    See also:
        `Beta`, `LogisticNormal`.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _broadcast = {"concentration": 1}

    def __init__(self, concentration, validate_args=None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape=()) -> torch.Tensor:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (
            torch.xlogy(self.concentration - 1.0, value).sum(-1)
            + torch.lgamma(self.concentration.sum(-1))
            - torch.lgamma(self.concentration).sum(-1)
        )

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\alpha_i / \sum_j \alpha_j`."""
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value, proportional to :math:`\max(\alpha_i - 1, 0)`.

        If all concentrations are below 1, the density is infinite at the corners, and a corner is returned.
        """
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        # If no component exceeds 1 the density grows towards the corners: take the most likely one.
        corner = (self.concentration < 1).all(dim=-1, keepdim=True)
        likeliest = torch.nn.functional.one_hot(mode.argmax(dim=-1), self.concentration.shape[-1])
        return torch.where(corner, likeliest.to(mode), mode)

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`\alpha_i (s - \alpha_i) / (s^2 (s + 1))`, with :math:`s = \sum_j \alpha_j`."""
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> torch.Tensor:
        n = self.concentration.size(-1)
        total = self.concentration.sum(-1)
        return (
            torch.lgamma(self.concentration).sum(-1)
            - torch.lgamma(total)
            - (n - total) * torch.digamma(total)
            - ((self.concentration - 1.0) * torch.digamma(self.concentration)).sum(-1)
        )

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - torch.lgamma(x.sum(-1))
