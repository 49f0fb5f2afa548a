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
    """Averages over groups of `size` consecutive ranks after each `period` steps, per `period_group_size_dict`.

    Periods and sizes must increase, and the last size is the world's, else ValueError. If several periods end at a
    step, the largest group is averaged.
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
        """Count a step, and average if due."""
        if self.step >= self.warmup_steps:
            for period in reversed(self._periods):
                if (self.step - self.warmup_steps) % period == 0:
                    average_parameters_or_parameter_groups(params, self.period_process_group_dict[period])
                    break
        self.step += 1
