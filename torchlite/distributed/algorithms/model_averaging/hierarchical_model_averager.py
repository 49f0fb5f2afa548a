"""Hierarchical model averaging: small groups often, large ones rarely."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import torchlite.distributed as dist

from .averagers import ModelAverager
from .utils import average_parameters_or_parameter_groups

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(ModelAverager):
    """Averages parameters over groups of several sizes, each after its own number of steps.

    If several periods end at a step, the largest group is averaged.

    Args:
        period_group_size_dict: The size of the groups of consecutive ranks, by the period. Periods and sizes increase,
            and
            the last size is that of the group.
        warmup_steps: The number of steps before the first average. Default: 0.
        process_group: The group. Default: the default group.

    Raises:
        ValueError: The dictionary is empty, or a number is out of range.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from collections import OrderedDict
        >>> from torchlite.distributed.algorithms.model_averaging import hierarchical_model_averager
        >>> averager = hierarchical_model_averager.HierarchicalModelAverager(OrderedDict({4: 1}))
        >>> list(averager.period_process_group_dict)
        [4]
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        period_group_size_dict: OrderedDict[int, int] | None = None,
        warmup_steps: int = 0,
        process_group: Any = None,
    ) -> None:
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        periods, sizes = list(period_group_size_dict), list(period_group_size_dict.values())
        if periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        world = self.process_group.size()
        if sizes[-1] != world:
            raise ValueError(
                f"The last value in arg ``period_process_group_dict`` {sizes[-1]} must be equal to the size of arg "
                f"``process_group`` {world}."
            )
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self._periods, self.warmup_steps = periods, warmup_steps
        self.period_process_group_dict = OrderedDict(
            (period, self.process_group if size == world else dist.new_subgroups(size, group=self.process_group)[0])
            for period, size in period_group_size_dict.items()
        )

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Counts a step, and averages the parameters that have a gradient if it is due.

        Args:
            params: The parameters, or groups of them.
        """
        if self.step >= self.warmup_steps:
            for period in reversed(self._periods):
                if (self.step - self.warmup_steps) % period == 0:
                    average_parameters_or_parameter_groups(params, self.period_process_group_dict[period])
                    break
        self.step += 1
