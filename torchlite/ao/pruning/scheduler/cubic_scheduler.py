"""A scheduler whose sparsity grows by a cubic function."""

from __future__ import annotations

from typing import Any

from .base_scheduler import BaseScheduler

__all__ = ["CubicSL"]


class CubicSL(BaseScheduler):
    """Sets the sparsity from a first to the sparsifier's: ``final + (first - final) * (1 - (t - t0) / (dt * n))**3``,
    not below the first nor above the final one.

    Each argument is one value, or a list with one for each group.

    Args:
        sparsifier: The sparsifier, which is prepared.
        init_sl: The first sparsity. Default: 0.
        init_t: The step ``t0`` at which it begins. Default: 0.
        delta_t: The steps ``dt`` between two changes. Default: 10.
        total_t: The count ``n`` of changes. Default: 100.
        initially_zero: Whether the sparsity is zero before `init_t`. Default: ``False``, it is the first one.
        last_epoch: The number of the last step. Default: -1, there was none.
        verbose: Whether each change is printed. Default: ``False``.

    Raises:
        ValueError: A list has another length than there are groups.

    Example:
        >>> sparsifier = torch.ao.pruning.WeightNormSparsifier(0.8)
        >>> sparsifier.prepare(torch.nn.Sequential(torch.nn.Linear(4, 4)), None)
        >>> scheduler = torch.ao.pruning.CubicSL(sparsifier, delta_t=1, total_t=2)
        >>> sparsifier.step()
        >>> scheduler.step()
        >>> scheduler.get_last_sl()
        [0.7000000000000001]
    """

    def __init__(
        self, sparsifier: Any, init_sl: Any = 0.0, init_t: Any = 0, delta_t: Any = 10, total_t: Any = 100,
        initially_zero: Any = False, last_epoch: int = -1, verbose: bool = False,
    ) -> None:  # fmt: skip
        self.sparsifier = sparsifier
        self.init_sl, self.init_t = self._make_sure_a_list(init_sl), self._make_sure_a_list(init_t)
        self.delta_t, self.total_t = self._make_sure_a_list(delta_t), self._make_sure_a_list(total_t)
        self.initially_zero = self._make_sure_a_list(initially_zero)
        super().__init__(sparsifier, last_epoch, verbose)

    @staticmethod
    def sparsity_compute_fn(
        s_0: float, s_f: float, t: float, t_0: float, dt: float, n: float, initially_zero: bool = False
    ) -> float:
        """The sparsity at a step.

        Args:
            s_0: The first sparsity.
            s_f: The final one.
            t: The step.
            t_0: The first step.
            dt: The steps between two changes.
            n: The count of changes.
            initially_zero: Whether it is zero before `t_0`. Default: ``False``.

        Example:
            >>> torch.ao.pruning.CubicSL.sparsity_compute_fn(0.0, 0.5, 1, 0, 1, 2)
            0.4375
        """
        if initially_zero and t < t_0:
            return 0
        rest = 1.0 - (t - t_0) / (dt * n)
        return max(s_0, min(s_f, s_f + (s_0 - s_f) * rest**3))

    def get_sl(self) -> list[float]:
        """The sparsity of each group at the step ``last_epoch``."""
        self._warn_outside_of_step()
        given = self.init_sl, self.base_sl, self.init_t, self.delta_t, self.total_t, self.initially_zero
        return [
            self.sparsity_compute_fn(first, final, self.last_epoch, start, between, count, zero)
            for first, final, start, between, count, zero in zip(*given, strict=True)
        ]
