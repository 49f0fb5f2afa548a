"""Learning-rate schedulers. Call `scheduler.step()` after `optimizer.step()`, as a rule once an epoch."""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any

from torchlite._settings.adopted_classes import adopt_classes as _adopt_classes

from ._composed_schedulers import ChainedScheduler, SequentialLR
from ._cyclic_schedulers import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from ._lr_scheduler_base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from ._lr_scheduler_base import LRScheduler, _current_lrs, _warn_outside_step
from ._lr_scheduler_base import _LRScheduler as _LRScheduler
from ._reduce_on_plateau import ReduceLROnPlateau
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchlite import Tensor

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip


def _function_state(scheduler):
    """Return the state of a scheduler with functions: callable objects are saved by their attributes, plain functions
    are not saved.
    """
    state = {key: value for key, value in scheduler.__dict__.items() if key not in ("optimizer", "lr_lambdas")}
    state["lr_lambdas"] = [
        None if isinstance(function, types.FunctionType) else function.__dict__.copy()
        for function in scheduler.lr_lambdas
    ]
    return state


def _load_function_state(scheduler, state_dict):
    functions = state_dict["lr_lambdas"]
    scheduler.__dict__.update({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
    for place, saved in enumerate(functions):
        if saved is not None:
            scheduler.lr_lambdas[place].__dict__.update(saved)


class LambdaLR(LRScheduler):
    r"""Sets the rate to the initial rate times a function of the epoch.

    .. math::

        \eta_t = \eta_0 \, \lambda(t)

    Args:
        optimizer: The optimizer whose groups' rates are set.
        lr_lambda: The function :math:`\lambda` from an epoch to a factor, or a list of one function for each group.
        last_epoch: Epoch to resume after; -1 begins. Otherwise each group needs its ``"initial_lr"``. Default: -1.

    Raises:
        ValueError: The number of functions is not that of the groups.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (epoch + 1))
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.3333, 0.25, 0.2, 0.1667]

    See also:
        `MultiplicativeLR`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = optimizer
        self.lr_lambdas = _as_lambda_list(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        _warn_outside_step(self)
        return [base * function(self.last_epoch) for function, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state, without the optimizer.

        Returns:
            The attributes by name. A callable object is stored by its attributes; a plain function is not stored.
        """
        return _function_state(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the state that `state_dict` returned; plain functions stay as they are.

        Args:
            state_dict: A result of `state_dict`.
        """
        _load_function_state(self, state_dict)


def _as_lambda_list(optimizer, lr_lambda):
    if not isinstance(lr_lambda, (list, tuple)):
        return [lr_lambda] * len(optimizer.param_groups)
    if len(lr_lambda) != len(optimizer.param_groups):
        raise ValueError(f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(lr_lambda)}")
    return list(lr_lambda)


class MultiplicativeLR(LRScheduler):
    r"""Multiplies the present rate by a function of the epoch, in each epoch.

    .. math::

        \eta_t = \eta_{t-1} \, \lambda(t) = \eta_0 \prod_{i=1}^{t} \lambda(i)

    Args:
        optimizer: The optimizer whose groups' rates are set.
        lr_lambda: The function :math:`\lambda` from an epoch to a factor, or a list of one function for each group.
        last_epoch: Epoch to resume after; -1 begins. Otherwise each group needs its ``"initial_lr"``. Default: -1.

    Raises:
        ValueError: The number of functions is not that of the groups.
        TypeError: ``lr_lambda`` is not callable.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5 if epoch < 4 else 1.0)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.25, 0.125, 0.125, 0.125]

    See also:
        `LambdaLR`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = optimizer
        self.lr_lambdas = _as_lambda_list(optimizer, lr_lambda)
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        _warn_outside_step(self)
        if self._is_initial:
            return _current_lrs(self)
        return [
            rate * function(self.last_epoch) for function, rate in zip(self.lr_lambdas, _current_lrs(self), strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state, without the optimizer.

        Returns:
            The attributes by name. A callable object is stored by its attributes; a plain function is not stored.
        """
        return _function_state(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the state that `state_dict` returned; plain functions stay as they are.

        Args:
            state_dict: A result of `state_dict`.
        """
        _load_function_state(self, state_dict)


class StepLR(LRScheduler):
    r"""Multiplies the rate by a factor every few epochs.

    .. math::

        \eta_t = \eta_0 \, \gamma^{\lfloor t / s \rfloor}

    Args:
        optimizer: The optimizer whose groups' rates are set.
        step_size: Number :math:`s` of epochs between two changes.
        gamma: Factor :math:`\gamma`. Default: 0.1.
        last_epoch: Epoch to resume after; -1 begins. Otherwise each group needs its ``"initial_lr"``. Default: -1.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]

    See also:
        `MultiStepLR`, `ExponentialLR`.
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        _warn_outside_step(self)
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return _current_lrs(self)
        return [rate * self.gamma for rate in _current_lrs(self)]

    def _get_closed_form_lr(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    r"""Multiplies the rate by a factor at given epochs.

    .. math::

        \eta_t = \eta_0 \, \gamma^{n_t}

    Here :math:`n_t` is the number of milestones that are at most :math:`t`.

    Args:
        optimizer: The optimizer whose groups' rates are set.
        milestones: The epochs of the changes. An epoch that occurs twice counts twice.
        gamma: Factor :math:`\gamma`. Default: 0.1.
        last_epoch: Epoch to resume after; -1 begins. Otherwise each group needs its ``"initial_lr"``. Default: -1.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 4], gamma=0.5)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.5, 0.5, 0.25, 0.25]

    See also:
        `StepLR`.
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        _warn_outside_step(self)
        if self.last_epoch not in self.milestones:
            return _current_lrs(self)
        return [rate * self.gamma ** self.milestones[self.last_epoch] for rate in _current_lrs(self)]

    def _get_closed_form_lr(self):
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiplies the rate by a factor during the first epochs.

    The rate is ``factor`` times the initial rate before the epoch ``total_iters``, and the initial rate from then on.

    Args:
        optimizer: The optimizer whose groups' rates are set.
        factor: The factor; in [0, 1]. Default: 1/3.
        total_iters: Number of epochs with the factor. Default: 5.
        last_epoch: Epoch to resume after; -1 begins. Otherwise each group needs its ``"initial_lr"``. Default: -1.

    Raises:
        ValueError: ``factor`` is out of range.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=3)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.5, 0.5, 0.5, 1.0, 1.0, 1.0]

    See also:
        `LinearLR`.
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        _warn_outside_step(self)
        if self.last_epoch == 0:
            return [rate * self.factor for rate in _current_lrs(self)]
        if self.last_epoch != self.total_iters:
            return _current_lrs(self)
        return [rate * (1.0 / self.factor) for rate in _current_lrs(self)]

    def _get_closed_form_lr(self):
        factor = self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    r"""Multiplies the rate by a factor that changes linearly, for example to warm up.

    .. math::

        \eta_t = \eta_0 \left( a + (b - a) \frac{\min(t, T)}{T} \right)

    Args:
        optimizer: The optimizer whose groups' rates are set.
        start_factor: Factor :math:`a` at epoch 0; in (0, 1]. Default: 1/3.
        end_factor: Factor :math:`b` from epoch :math:`T` on; in [0, 1]. Default: 1.
        total_iters: The epoch :math:`T` at which the change ends. Default: 5.
        last_epoch: Epoch to resume after; -1 begins. Otherwise each group needs its ``"initial_lr"``. Default: -1.

    Raises:
        ValueError: A factor is out of range.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]

    See also:
        `ConstantLR`, `PolynomialLR`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        _warn_outside_step(self)
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in _current_lrs(self)]
        if self._is_initial or self.last_epoch > self.total_iters:
            return _current_lrs(self)
        rise = self.end_factor - self.start_factor
        change = 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)
        return [rate * change for rate in _current_lrs(self)]

    def _get_closed_form_lr(self):
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * share) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    r"""Multiplies the rate by a factor in each epoch.

    .. math::

        \eta_t = \eta_0 \, \gamma^t

    Args:
        optimizer: The optimizer whose groups' rates are set.
        gamma: Factor :math:`\gamma`.
        last_epoch: Epoch to resume after; -1 begins. Otherwise each group needs its ``"initial_lr"``. Default: -1.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.25, 0.125, 0.0625, 0.0312]

    See also:
        `StepLR`.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        _warn_outside_step(self)
        if self._is_initial:
            return _current_lrs(self)
        return [rate * self.gamma for rate in _current_lrs(self)]

    def _get_closed_form_lr(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    r"""Lowers the rate along half a period of a cosine.

    .. math::

        \eta_t = \eta_{\min} + \frac{1}{2} (\eta_0 - \eta_{\min}) \left( 1 + \cos \frac{\pi t}{T} \right)

    After epoch :math:`T` the rate rises again along the cosine. Each step changes the present rate by the recursive
    form of the formula, so that the scheduler may be chained with others.

    Args:
        optimizer: The optimizer whose groups' rates are set.
        T_max: The epoch :math:`T` at which the rate is lowest.
        eta_min: The lowest rate :math:`\eta_{\min}`. Default: 0.
        last_epoch: Epoch to resume after; -1 begins. Otherwise each group needs its ``"initial_lr"``. Default: -1.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.8536, 0.5, 0.1464, 0.0, 0.1464]

    References:
        - I. Loshchilov, F. Hutter. SGDR: Stochastic gradient descent with warm restarts. 2017.

    See also:
        `CosineAnnealingWarmRestarts`.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        _warn_outside_step(self)
        if self._is_initial:
            return _current_lrs(self)
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                rate + (base - self.eta_min) * rise
                for base, rate in zip(self.base_lrs, _current_lrs(self), strict=True)
            ]
        ratio = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / (
            1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        )
        return [ratio * (rate - self.eta_min) + self.eta_min for rate in _current_lrs(self)]

    def _get_closed_form_lr(self):
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    r"""Lowers the rate to 0 along a polynomial.

    .. math::

        \eta_t = \eta_0 \left( 1 - \frac{\min(t, T)}{T} \right)^p

    Args:
        optimizer: The optimizer whose groups' rates are set.
        total_iters: The epoch :math:`T` from which the rate is 0. Default: 5.
        power: Exponent :math:`p`. Default: 1.
        last_epoch: Epoch to resume after; -1 begins. Otherwise each group needs its ``"initial_lr"``. Default: -1.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4, power=2.0)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5625, 0.25, 0.0625, 0.0, 0.0]

    See also:
        `LinearLR`.
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        _warn_outside_step(self)
        if self._is_initial or self.last_epoch > self.total_iters:
            return _current_lrs(self)
        decay = (
            (1.0 - self.last_epoch / self.total_iters) / (1.0 - (self.last_epoch - 1) / self.total_iters)
        ) ** self.power
        return [rate * decay for rate in _current_lrs(self)]

    def _get_closed_form_lr(self):
        share = (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power
        return [base * share for base in self.base_lrs]


_adopt_classes(globals())
