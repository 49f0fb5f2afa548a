"""Averages of a model's weights over training: stochastic weight averaging and exponential moving averages."""

from __future__ import annotations

import itertools
import math
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir
from torchlite.nn import Module

from ._lr_scheduler_base import LRScheduler, _format_param, _warn_outside_step
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike


__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def get_ema_multi_avg_fn(decay: float = 0.999) -> Any:
    """A `multi_avg_fn` for exponential moving averages: average = decay average + (1 - decay) value."""
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
    average_one = get_ema_avg_fn(decay)

    def update(averages, values, num_averaged):
        with torch.no_grad():
            for average, value in zip(averages, values, strict=True):
                if average.is_floating_point() or average.is_complex():
                    average.lerp_(value, 1 - decay)
                else:
                    average.copy_(average_one(average, value, num_averaged))

    return update


def get_swa_multi_avg_fn() -> Any:
    """A `multi_avg_fn` for the mean of all values."""
    average_one = get_swa_avg_fn()

    def update(averages, values, num_averaged):
        with torch.no_grad():
            for average, value in zip(averages, values, strict=True):
                average.copy_(average_one(average, value, num_averaged))

    return update


def get_ema_avg_fn(decay: float = 0.999) -> Any:
    """An `avg_fn` for exponential moving averages."""
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    def update(average, value, num_averaged):
        with torch.no_grad():
            return decay * average + (1 - decay) * value

    return update


def get_swa_avg_fn() -> Any:
    """An `avg_fn` for the mean of all values."""

    def update(average, value, num_averaged):
        with torch.no_grad():
            return average + (value - average) / (num_averaged + 1)

    return update


class AveragedModel(Module):
    """A copy of `model` with averaged parameters; `update_parameters(model)` adds the present ones to the averages.

    avg_fn(average, value, count) or multi_avg_fn(averages, values, count): how to average; by default the mean.
    use_buffers: average the buffers too (else they are copied). Called like the model.
    """

    def __init__(
        self,
        model: Any,
        device: DeviceLike = None,
        avg_fn: Any = None,
        multi_avg_fn: Any = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Any) -> Any:
        """Add the parameters of `model` to the averages."""
        averages = [tensor.detach() for tensor in _averaged_tensors(self, self.module)]
        values = [
            tensor.detach().to(average.device)
            for tensor, average in zip(_averaged_tensors(self, model), averages, strict=True)
        ]
        if int(self.n_averaged) == 0:
            for average, value in zip(averages, values, strict=True):
                average.copy_(value)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(averages, values, self.n_averaged)
        else:
            average_one = self.avg_fn if self.avg_fn is not None else get_swa_avg_fn()
            for average, value in zip(averages, values, strict=True):
                average.copy_(average_one(average, value, self.n_averaged))
        if not self.use_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(theirs.detach().to(mine.device))
        self.n_averaged += 1


def _averaged_tensors(model, module):
    return (
        list(itertools.chain(module.parameters(), module.buffers())) if model.use_buffers else list(module.parameters())
    )


def update_bn(loader: Any, model: Any, device: DeviceLike = None) -> Any:
    """Recompute the running statistics of every batch norm in `model`, as cumulative means over the batches of
    `loader`.
    """
    momenta = {
        module: module.momentum
        for module in model.modules()
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
    }
    if not momenta:
        return
    training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None  # type: ignore[assignment]
    with torch.no_grad():
        for batch in loader:
            if isinstance(batch, (list, tuple)):
                batch = batch[0]
            model(batch.to(device) if device is not None else batch)
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Anneals the rate from its present value to `swa_lr` in `anneal_epochs` epochs ("cos" or "linear"), then leaves it
    there.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        for value, group in zip(_format_param(optimizer, swa_lr, "swa_lr"), optimizer.param_groups, strict=True):
            group["swa_lr"] = value
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        _warn_outside_step(self)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = _anneal_fraction(self, step - 1), _anneal_fraction(self, step)
        rates = []
        for group in self.optimizer.param_groups:
            start = group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates


def _anneal_fraction(scheduler, epoch):
    """Return the annealing progress towards swa_lr at an epoch, from 0 to 1."""
    t = max(0, min(1, epoch / max(1, scheduler.anneal_epochs)))
    return t if scheduler._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2


__dir__ = make_module_dir(globals())
