"""The von Mises distribution."""

from __future__ import annotations

import math

import torchlite as torch

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


def _rejection_sample(loc, concentration, proposal_r, x):
    """Fill `x` by rejection from a wrapped Cauchy distribution, all in one dtype (D. J. Best and N. I. Fisher,
    "Efficient simulation of the von Mises distribution", 1979).
    """
    done = torch.zeros(x.shape, dtype=torch.bool, device=loc.device)
    while not done.all():
        u1, u2, u3 = torch.rand((3,) + x.shape, dtype=loc.dtype, device=loc.device).unbind()
        z = torch.cos(math.pi * u1)
        f = (1 + proposal_r * z) / (proposal_r + z)
        c = concentration * (proposal_r - f)
        accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
        if accept.any():
            x = torch.where(accept, (u3 - 0.5).sign() * f.acos(), x)
            done = done | accept
    return (x + math.pi + loc) % (2 * math.pi) - math.pi


class VonMises(Distribution):
    r"""The von Mises distribution of angles, with mean direction :math:`\mu` and concentration :math:`\kappa`.

    .. math::

        p(x) = \frac{\exp(\kappa \cos(x - \mu))}{2 \pi I_0(\kappa)}, \quad x \in [-\pi, \pi)

    :math:`I_0` is the modified Bessel function of order 0. Samples are in radians, in :math:`[-\pi, \pi)`, and are
    drawn in double precision; they have no gradients. `log_prob` takes any real angle, since the density is periodic.

    Args:
        loc: Mean direction :math:`\mu` in radians, real. A number or a tensor.
        concentration: Concentration :math:`\kappa`, positive. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.VonMises(torch.tensor([1.0]), torch.tensor([4.0])).mean
        tensor([1.])

    References:
        D. J. Best and N. I. Fisher, "Efficient simulation of the von Mises distribution", 1979.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _broadcast = {"loc": 0, "concentration": 0}

    def __init__(self, loc, concentration, validate_args=None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, torch.Size(), validate_args)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # log I0(k) = k + log(exp(-k) I0(k))
        away = torch.cos(value - self.loc) - 1
        return self.concentration * away - math.log(2 * math.pi) - torch.special.i0e(self.concentration).log()

    @lazy_property
    def _loc(self):
        return self.loc.to(torch.double)

    @lazy_property
    def _concentration(self):
        return self.concentration.to(torch.double)

    @lazy_property
    def _proposal_r(self):
        k = self._concentration
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        # rho is a difference of nearly equal numbers for a small k: there the series of r.
        return torch.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))

    @torch.no_grad()
    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        x = torch.empty(self._extended_shape(sample_shape), dtype=self._loc.dtype, device=self.loc.device)
        return _rejection_sample(self._loc, self._concentration, self._proposal_r, x).to(self.loc.dtype)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean direction :math:`\mu`."""
        return self.loc

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable direction :math:`\mu`."""
        return self.loc

    @lazy_property
    def variance(self) -> torch.Tensor:
        r"""The circular variance :math:`1 - I_1(\kappa) / I_0(\kappa)`."""
        return 1 - torch.special.i1e(self.concentration) / torch.special.i0e(self.concentration)
