"""ReduceLROnPlateau, the learning-rate scheduler that follows a metric."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from ._lr_scheduler_base import EPOCH_DEPRECATION_WARNING, LRScheduler, _copy, _update_param_group_val
from .optimizer import Optimizer

if TYPE_CHECKING:
    from torchlite import Tensor


class ReduceLROnPlateau(LRScheduler):
    r"""Multiplies the rate by a factor when a metric has stopped improving.

    `step` takes the metric of the epoch, such as the validation loss. The rate :math:`\eta` becomes
    :math:`\max(\eta f, \eta_{\min})` after more than ``patience`` epochs in sequence without an improvement.

    Args:
        optimizer: The optimizer whose groups' rates are set.
        mode: ``"min"`` if a lower metric is better, ``"max"`` if a higher one is. Default: ``"min"``.
        factor: Factor :math:`f` of the rate; less than 1. Default: 0.1.
        patience: Number of epochs without an improvement that do not change the rate. Default: 10.
        threshold: Least improvement that counts. Default: 1e-4.
        threshold_mode: ``"rel"`` if ``threshold`` is a fraction of the best metric, ``"abs"`` if a difference. Default:
            ``"rel"``.
        cooldown: Number of epochs after a change in which none is counted as bad. Default: 0.
        min_lr: Lowest rate :math:`\eta_{\min}`, or a list of one for each group. Default: 0.
        eps: Changes of the rate up to this size are not made. Default: 1e-8.

    Raises:
        ValueError: ``factor``, ``mode``, ``threshold_mode`` or the number of lowest rates is wrong.
        TypeError: ``optimizer`` is not an `Optimizer`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
        >>> rates = []
        >>> for loss in (0.9, 0.8, 0.8, 0.8, 0.7):
        ...     scheduler.step(loss)
        ...     rates.append(scheduler.get_last_lr()[0])
        >>> rates
        [1.0, 1.0, 1.0, 0.5, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] | tuple[float, ...] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.factor = factor
        self.optimizer = optimizer
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != len(optimizer.param_groups):
                raise ValueError(f"expected {len(optimizer.param_groups)} min_lrs, got {len(min_lr)}")
            self.default_min_lr: float | None = None
            self.min_lrs: list[float] = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * len(optimizer.param_groups)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = [_copy(group["lr"]) for group in optimizer.param_groups]
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self):
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: float | Tensor, epoch: int | None = None) -> None:
        """Records the metric of an epoch, and lowers the rates if it is time.

        Args:
            metrics: The metric, a number or a one-element tensor.
            epoch: Deprecated. Number of the epoch. Default: the next one.

        Raises:
            RuntimeError: ``min_lr`` was a list and the number of groups has changed.
        """
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=3)
        self.last_epoch = epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = [_copy(group["lr"]) for group in self.optimizer.param_groups]

    def _reduce_lr(self, epoch):
        if len(self.optimizer.param_groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(self.optimizer.param_groups)}) differs "
                    f"from when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new "
                    "param group being added to the optimizer. Please modify the `min_lrs` field to match the length "
                    "of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(self.optimizer.param_groups)
        for group, smallest in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, smallest)
            if old - new > self.eps:
                _update_param_group_val(group, "lr", new)

    @property
    def in_cooldown(self) -> Any:
        """Whether the epochs after a change are still not counted."""
        return self.cooldown_counter > 0

    def _is_better(self, a, best):
        if self.threshold_mode == "rel":
            return a < best * (1.0 - self.threshold) if self.mode == "min" else a > best * (self.threshold + 1.0)
        return a < best - self.threshold if self.mode == "min" else a > best + self.threshold
