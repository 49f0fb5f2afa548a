"""Cyclic learning-rate schedulers: CyclicLR, CosineAnnealingWarmRestarts, OneCycleLR."""

from __future__ import annotations

import functools
import math
import types
from typing import TYPE_CHECKING, Any

from ._lr_scheduler_base import LRScheduler, _copy, _format_param, _update_param_group_val, _warn_outside_step
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchlite import Tensor


# CyclicLR and OneCycleLR cycle the momentum, which Adam calls betas[0].


def _find_momentum(scheduler):
    if "momentum" not in scheduler.optimizer.defaults and "betas" not in scheduler.optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    scheduler.use_beta1 = "betas" in scheduler.optimizer.defaults


def _set_momentum(scheduler, group, value):
    if scheduler.use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _triangular(x):
    return 1.0


def _triangular2(x):
    return 1 / (2.0 ** (x - 1))


def _exp_range(gamma, x):
    return gamma**x


class CyclicLR(LRScheduler):
    r"""Moves the rate linearly up and down between two bounds; call `step` after each batch.

    .. math::

        \begin{aligned}
        c_t &= \lfloor 1 + t / T \rfloor, \quad x_t = 1 + t / T - c_t \\
        h_t &= \begin{cases}
        x_t / r & \text{if } x_t \le r \\
        (1 - x_t) / (1 - r) & \text{else}
        \end{cases} \\
        \eta_t &= \eta_{\min} + (\eta_{\max} - \eta_{\min}) \, h_t \, s_t
        \end{aligned}

    :math:`T` is the length of a cycle, :math:`r` its rising fraction and :math:`c_t` its number. The scale :math:`s_t`
    depends on ``mode``: 1 for ``"triangular"``, :math:`2^{1 - c_t}` for ``"triangular2"`` and :math:`\gamma^t` for
    ``"exp_range"``. With ``cycle_momentum`` the momentum moves against the rate:
    :math:`\mu_t = \mu_{\max} - (\mu_{\max} - \mu_{\min}) \, h_t \, s_t`.

    Args:
        optimizer: The optimizer whose groups' rates are set.
        base_lr: Lower bound :math:`\eta_{\min}`, or a list of one for each group.
        max_lr: Upper bound :math:`\eta_{\max}`, or a list of one for each group.
        step_size_up: Number of steps with a rising rate. Default: 2000.
        step_size_down: Number of steps with a falling rate. Default: ``step_size_up``.
        mode: ``"triangular"``, ``"triangular2"`` or ``"exp_range"``; ignored if ``scale_fn`` is given. Default:
            ``"triangular"``.
        gamma: Base :math:`\gamma` of ``"exp_range"``. Default: 1.
        scale_fn: A function of one number that returns the scale :math:`s_t`. Default: that of ``mode``.
        scale_mode: Whether ``scale_fn`` is called with the number of the cycle (``"cycle"``) or of the step
            (``"iterations"``). Default: ``"cycle"``.
        cycle_momentum: Whether the momentum (``betas[0]`` of Adam) changes too. Default: ``True``.
        base_momentum: Lower bound :math:`\mu_{\min}`, or a list of one for each group. Default: 0.8.
        max_momentum: Upper bound :math:`\mu_{\max}`, or a list of one for each group. Default: 0.9.
        last_epoch: Number of the last batch; -1 begins. Default: -1.

    Raises:
        ValueError: ``mode`` is unknown, a list does not fit the groups, or the optimizer has no momentum with
            ``cycle_momentum``.
        TypeError: ``optimizer`` is not an `Optimizer`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, step_size_up=2, cycle_momentum=False)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.1, 0.3, 0.5, 0.3, 0.1, 0.3]

    References:
        - L. N. Smith. Cyclical learning rates for training neural networks. 2017.

    See also:
        `OneCycleLR`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Any = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        base_lrs = _format_param(optimizer, base_lr, "base_lr")
        if last_epoch == -1:
            for value, group in zip(base_lrs, optimizer.param_groups, strict=True):
                _update_param_group_val(group, "lr", value)
        self.max_lrs = _format_param(optimizer, max_lr, "max_lr")
        up = float(step_size_up)
        self.total_size = up + (float(step_size_down) if step_size_down is not None else up)
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _find_momentum(self)
            self.base_momentums = _format_param(optimizer, base_momentum, "base_momentum")
            self.max_momentums = _format_param(optimizer, max_momentum, "max_momentum")
            if last_epoch == -1:
                for largest, smallest, group in zip(
                    self.max_momentums, self.base_momentums, optimizer.param_groups, strict=True
                ):
                    _set_momentum(self, group, largest)
                    group["max_momentum"] = largest
                    group["base_momentum"] = smallest
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: Any) -> Any:
        """Returns the scale of a cycle's height.

        Args:
            x: Number of the cycle, from 1, or of the step, from 0, as ``scale_mode`` says.
        """
        return self._scale_fn_ref(x) if self._scale_fn_custom is None else self._scale_fn_custom(x)

    def _init_scale_fn(self):
        if self._scale_fn_custom is None:
            shrink = functools.partial(_exp_range, self.gamma)
            self._scale_fn_ref = {"triangular": _triangular, "triangular2": _triangular2}.get(self.mode, shrink)

    def get_lr(self) -> list[float | Tensor]:
        _warn_outside_step(self)
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for smallest, largest, group in zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True
            ):
                _set_momentum(self, group, largest - (largest - smallest) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state, without the optimizer.

        Returns:
            The attributes by name. A callable object as ``scale_fn`` is stored by its attributes; a plain function is
            not stored.
        """
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        function = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None
        if function is not None and not isinstance(function, types.FunctionType):
            state["_scale_fn_custom"] = function.__dict__.copy()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the state that `state_dict` returned.

        Args:
            state_dict: A result of `state_dict`.
        """
        state = dict(state_dict)
        function = state.pop("_scale_fn_custom", None)
        super().load_state_dict(state)
        if function is not None:
            self._scale_fn_custom.__dict__.update(function)
        self._init_scale_fn()


class CosineAnnealingWarmRestarts(LRScheduler):
    r"""Lowers the rate along half a period of a cosine, again and again.

    .. math::

        \eta_t = \eta_{\min} + \frac{1}{2} (\eta_0 - \eta_{\min}) \left( 1 + \cos \frac{\pi T_{\text{cur}}}{T_i} \right)

    :math:`T_{\text{cur}}` counts the epochs since the last restart. The i-th period has :math:`T_i` epochs: first
    ``T_0``, then each time ``T_mult`` times as many.

    Args:
        optimizer: The optimizer whose groups' rates are set.
        T_0: Number of epochs of the first period; a positive int.
        T_mult: Factor of the periods; an int of at least 1. Default: 1.
        eta_min: The lowest rate :math:`\eta_{\min}`. Default: 0.
        last_epoch: Epoch to resume after; -1 begins. Otherwise each group needs its ``"initial_lr"``. Default: -1.

    Raises:
        ValueError: ``T_0`` or ``T_mult`` is out of range.
        TypeError: ``eta_min`` is not a number, or ``optimizer`` not an `Optimizer`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 1.0, 0.8536, 0.5, 0.1464]

    References:
        - I. Loshchilov, F. Hutter. SGDR: Stochastic gradient descent with warm restarts. 2017.

    See also:
        `CosineAnnealingLR`.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise TypeError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        _warn_outside_step(self)
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: int | None = None) -> Any:
        """Goes to the next epoch, or to a given one, and sets the rates of the groups.

        Args:
            epoch: The epoch to go to. It may be a fraction, such as ``epoch + batch / batches`` after each batch.
                Default: the next one.

        Raises:
            ValueError: ``epoch`` is negative.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur = self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            if epoch < self.T_0:
                self.T_i, self.T_cur = self.T_0, epoch
            elif self.T_mult == 1:
                self.T_cur = epoch % self.T_0
            else:
                n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
                self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
                self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            values = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            _update_param_group_val(group, "lr", value)
        self._last_lr = [_copy(group["lr"]) for group in self.optimizer.param_groups]


def _anneal_cosine(start, end, share):
    return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


def _anneal_linear(start, end, share):
    return (end - start) * share + start


def _make_phase(end_step, start_lr, end_lr, start_momentum, end_momentum):
    """A part of the cycle: until when, and between which options of a group the rate and the momentum go."""
    return {
        "end_step": end_step,
        "start_lr": start_lr,
        "end_lr": end_lr,
        "start_momentum": start_momentum,
        "end_momentum": end_momentum,
    }


class OneCycleLR(LRScheduler):
    r"""Raises the rate to a maximum and lowers it far below its start, in one cycle; call `step` after each batch.

    With n as the number of steps, the rate goes from ``max_lr / div_factor`` at step 0 to ``max_lr`` at step
    ``pct_start * n - 1``, and then to ``max_lr / div_factor / final_div_factor`` at step ``n - 1``. With
    ``three_phase`` it returns to ``max_lr / div_factor`` at step ``2 * pct_start * n - 2`` first. A part from rate a to
    rate b follows, with x from 0 to 1, a cosine, :math:`b + \frac{1}{2} (a - b) (1 + \cos \pi x)`, or a line,
    :math:`a + (b - a) x`. The momentum moves against the rate.

    Args:
        optimizer: The optimizer whose groups' rates are set.
        max_lr: Highest rate, or a list of one for each group.
        total_steps: Number n of steps. Default: ``epochs * steps_per_epoch``, which must then be given.
        epochs: Number of epochs. Default: ``None``.
        steps_per_epoch: Number of steps of an epoch. Default: ``None``.
        pct_start: Fraction of the steps with a rising rate; a float in [0, 1]. Default: 0.3.
        anneal_strategy: ``"cos"`` or ``"linear"``. Default: ``"cos"``.
        cycle_momentum: Whether the momentum (``betas[0]`` of Adam) changes too. Default: ``True``.
        base_momentum: Lowest momentum, or a list of one for each group. Default: 0.85.
        max_momentum: Highest momentum, or a list of one for each group. Default: 0.95.
        div_factor: Ratio of the highest to the initial rate. Default: 25.
        final_div_factor: Ratio of the initial to the last rate. Default: 1e4.
        three_phase: Whether the rate falls in two parts, the first as long as the rise. Default: ``False``.
        last_epoch: Number of the last batch; -1 begins. Default: -1.

    Raises:
        ValueError: An argument is out of range, the number of steps is not given, a list does not fit the groups, the
            optimizer has no momentum with ``cycle_momentum``, or `step` goes beyond the number of steps.
        TypeError: ``optimizer`` is not an `Optimizer`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(
        ...     optimizer, max_lr=1.0, total_steps=6, pct_start=0.5, cycle_momentum=False
        ... )
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.04, 0.52, 1.0, 0.75, 0.25, 0.0]

    References:
        - L. N. Smith, N. Topin. Super-convergence: Very fast training of neural networks using large learning rates.
          2019.

    See also:
        `CyclicLR`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        self.total_steps = _resolve_total_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        rising = float(pct_start * self.total_steps) - 1
        up = _make_phase(rising, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        last = self.total_steps - 1
        if three_phase:
            middle = float(2 * pct_start * self.total_steps) - 2
            self._schedule_phases = [
                up,
                _make_phase(middle, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                _make_phase(last, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            self._schedule_phases = [up, _make_phase(last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        self._anneal_func_type = anneal_strategy
        largest = _format_param(optimizer, max_lr, "max_lr")
        if last_epoch == -1:
            for place, group in enumerate(optimizer.param_groups):
                group["initial_lr"] = largest[place] / div_factor
                group["max_lr"] = largest[place]
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _find_momentum(self)
            high = _format_param(optimizer, max_momentum, "max_momentum")
            low = _format_param(optimizer, base_momentum, "base_momentum")
            if last_epoch == -1:
                for at_most, at_least, group in zip(high, low, optimizer.param_groups, strict=True):
                    _set_momentum(self, group, at_most)
                    group["max_momentum"] = at_most
                    group["base_momentum"] = at_least
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        _warn_outside_step(self)
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is {self.total_steps}"
            )
        anneal = _anneal_cosine if self._anneal_func_type == "cos" else _anneal_linear
        values = []
        for group in self.optimizer.param_groups:
            begin = 0.0
            for number, phase in enumerate(self._schedule_phases):
                end = phase["end_step"]
                if self.last_epoch <= end or number == len(self._schedule_phases) - 1:
                    share = (self.last_epoch - begin) / (end - begin)
                    values.append(anneal(group[phase["start_lr"]], group[phase["end_lr"]], share))
                    if self.cycle_momentum:
                        _set_momentum(
                            self, group, anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], share)
                        )
                    break
                begin = end
        return values


def _resolve_total_steps(total_steps, epochs, steps_per_epoch):
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in (
        (("total_steps", total_steps),)
        if total_steps is not None
        else (("epochs", epochs), ("steps_per_epoch", steps_per_epoch))
    ):
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return total_steps if total_steps is not None else epochs * steps_per_epoch
