"""Periodic averaging of parameters over processes."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import torchlite.distributed as dist

from .utils import average_parameters_or_parameter_groups

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Base class of averagers of parameters; ``step`` counts the calls.

    Args:
        process_group: The group. Default: the default group.

    Example:
        >>> from torchlite.distributed.algorithms.model_averaging import averagers
        >>> issubclass(averagers.PeriodicModelAverager, averagers.ModelAverager)
        True
    """

    def __init__(self, process_group: Any = None) -> None:
        self.process_group: Any = dist.group.WORLD if process_group is None else process_group
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Averages parameters, if it is due.

        Args:
            params: The parameters, or groups of them.
        """


class PeriodicModelAverager(ModelAverager):
    """Averages the parameters of all ranks after every ``period`` steps.

    Args:
        period: The number of steps.
        warmup_steps: The number of steps before the first average. Default: 0.
        process_group: The group. Default: the default group.

    Raises:
        ValueError: A number is out of range.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
        >>> averager, weight = PeriodicModelAverager(period=4), torch.nn.Parameter(torch.ones(2))
        >>> weight.sum().backward()
        >>> averager.average_parameters([weight])
        >>> averager.step
        1
        >>> dist.destroy_process_group()
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(
                "When period is 1, no need to use model averaging because the communication cost of all-reducing "
                "parameters will be no less than the cost of all-reducing gradients by DistributedDataParallel in the "
                "backward pass. Therefore, only DistributedDataParallel should be used for this case.",
                stacklevel=2,
            )
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Counts a step, and averages the parameters that have a gradient if it is due.

        Args:
            params: The parameters, or groups of them.
        """
        since = self.step - self.warmup_steps
        if since >= 0 and since % self.period == 0:
            average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
