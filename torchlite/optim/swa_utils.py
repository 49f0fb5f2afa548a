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
    """Returns a ``multi_avg_fn`` of `AveragedModel` for exponential moving averages.

    The average becomes ``decay * average + (1 - decay) * value``.

    Args:
        decay: Weight of the present average; in [0, 1]. Default: 0.999.

    Returns:
        A function of the averages, the values and their number, which changes the averages in place.

    Raises:
        ValueError: ``decay`` is out of range.

    Example:
        >>> average = torch.zeros(2)
        >>> torch.optim.swa_utils.get_ema_multi_avg_fn(0.75)([average], [torch.ones(2)], 1)
        >>> average
        tensor([0.2500, 0.2500])
    """
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
    """Returns a ``multi_avg_fn`` of `AveragedModel` for the mean of all values.

    Returns:
        A function of the averages, the values and the number of values so far, which changes the averages in place.

    Example:
        >>> average = torch.zeros(2)
        >>> torch.optim.swa_utils.get_swa_multi_avg_fn()([average], [torch.ones(2)], 3)
        >>> average
        tensor([0.2500, 0.2500])
    """
    average_one = get_swa_avg_fn()

    def update(averages, values, num_averaged):
        with torch.no_grad():
            for average, value in zip(averages, values, strict=True):
                average.copy_(average_one(average, value, num_averaged))

    return update


def get_ema_avg_fn(decay: float = 0.999) -> Any:
    """Returns an ``avg_fn`` of `AveragedModel` for exponential moving averages.

    The average becomes ``decay * average + (1 - decay) * value``.

    Args:
        decay: Weight of the present average; in [0, 1]. Default: 0.999.

    Returns:
        A function of an average, a value and the number of values so far, which returns the new average.

    Raises:
        ValueError: ``decay`` is out of range.

    Example:
        >>> torch.optim.swa_utils.get_ema_avg_fn(0.75)(torch.zeros(2), torch.ones(2), 1)
        tensor([0.2500, 0.2500])
    """
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    def update(average, value, num_averaged):
        with torch.no_grad():
            return decay * average + (1 - decay) * value

    return update


def get_swa_avg_fn() -> Any:
    """Returns an ``avg_fn`` of `AveragedModel` for the mean of all values.

    The average becomes ``average + (value - average) / (count + 1)``.

    Returns:
        A function of an average, a value and the number of values so far, which returns the new average.

    Example:
        >>> torch.optim.swa_utils.get_swa_avg_fn()(torch.zeros(2), torch.ones(2), 3)
        tensor([0.2500, 0.2500])
    """

    def update(average, value, num_averaged):
        with torch.no_grad():
            return average + (value - average) / (num_averaged + 1)

    return update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over training.

    `update_parameters` adds the present parameters of a model to the averages; the first call copies them. The averaged
    model is called like the model.

    Args:
        model: The model to copy.
        device: Device of the copy. Default: that of the model.
        avg_fn: A function of an average, a value and the number of values so far, which returns the new average.
            Default: the mean, as of `get_swa_avg_fn`.
        multi_avg_fn: A function of the lists of averages and values and the number of values so far, which changes the
            averages in place. Excludes ``avg_fn``. Default: ``None``.
        use_buffers: Whether buffers are averaged too, not copied. Default: ``False``.

    Shape:
        - Input and output: those of ``model``.

    Attributes:
        module (Module): The copy with the averages.
        n_averaged (Tensor): Number of the averaged values.

    Raises:
        AssertionError: Both functions are given.

    Example:
        >>> model = torch.nn.Linear(1, 1, bias=False)
        >>> averaged = torch.optim.swa_utils.AveragedModel(model)
        >>> for value in (1.0, 2.0, 6.0):
        ...     _ = torch.nn.init.constant_(model.weight, value)
        ...     averaged.update_parameters(model)
        >>> averaged.module.weight.item()
        3.0
        >>> averaged(torch.ones(1, 1)).item()
        3.0

    References:
        - P. Izmailov, D. Podoprikhin, T. Garipov, D. Vetrov, A. G. Wilson. Averaging weights leads to wider optima and
          better generalization. 2018.

    See also:
        `update_bn`, `SWALR`, `get_ema_multi_avg_fn`.
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
        """Adds the present parameters of a model to the averages.

        Args:
            model: A model with the parameters and buffers of the copied one.
        """
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
    """Computes the running statistics of a model's batch norms anew, from one pass over data.

    They become the means over the batches of ``loader``. An averaged model needs this, since its statistics are those
    of another model. The model keeps its mode; without batch norms nothing is done.

    Args:
        loader: An iterable of batches. The first element of a list or tuple is the model's input.
        model: The model.
        device: Device to which each batch is moved. Default: batches stay where they are.

    Example:
        >>> model = torch.nn.BatchNorm1d(1)
        >>> torch.optim.swa_utils.update_bn([torch.tensor([[1.0], [3.0]]), torch.tensor([[4.0], [8.0]])], model)
        >>> model.running_mean
        tensor([4.])

    See also:
        `AveragedModel`.
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
    r"""Moves the rate from its present value to a constant one, for stochastic weight averaging.

    .. math::

        \eta_t = (1 - \alpha_t) \, \eta_0 + \alpha_t \, \eta_{\text{swa}}

    :math:`\alpha_t` goes from 0 to 1 in ``anneal_epochs`` epochs, linearly or as
    :math:`\frac{1}{2} (1 - \cos (\pi t / T))`, and stays 1.

    Args:
        optimizer: The optimizer whose groups' rates are set.
        swa_lr: The last rate :math:`\eta_{\text{swa}}`, or a list of one for each group.
        anneal_epochs: Number :math:`T` of epochs of the change; an int of at least 0. Default: 10.
        anneal_strategy: ``"cos"`` or ``"linear"``. Default: ``"cos"``.
        last_epoch: Epoch to resume after; -1 begins. Otherwise each group needs its ``"initial_lr"``. Default: -1.

    Raises:
        ValueError: An argument is out of range, or a list does not fit the groups.
        TypeError: ``optimizer`` is not an `Optimizer`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = torch.optim.swa_utils.SWALR(optimizer, 0.5, anneal_epochs=4, anneal_strategy="linear")
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.875, 0.75, 0.625, 0.5, 0.5]

    See also:
        `AveragedModel`.
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
