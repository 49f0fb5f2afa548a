"""A scheduler whose sparsity is given by functions."""

from __future__ import annotations

from typing import Any

from .base_scheduler import BaseScheduler

__all__ = ["LambdaSL"]


class LambdaSL(BaseScheduler):
    """Sets the sparsity to the sparsifier's times a function of the step.

    Args:
        sparsifier: The sparsifier, which is prepared.
        sl_lambda: A function, or a list with one for each group.
        last_epoch: The number of the last step. Default: -1, there was none.
        verbose: Whether each change is printed. Default: ``False``.

    Raises:
        ValueError: The list has another length than there are groups.

    Example:
        >>> sparsifier = torch.ao.pruning.WeightNormSparsifier(0.5)
        >>> sparsifier.prepare(torch.nn.Sequential(torch.nn.Linear(4, 4)), None)
        >>> torch.ao.pruning.LambdaSL(sparsifier, lambda step: 1 / (step + 1)).get_last_sl()
        [0.5]
    """

    def __init__(self, sparsifier: Any, sl_lambda: Any, last_epoch: int = -1, verbose: bool = False) -> None:
        self.sparsifier = sparsifier
        count = len(sparsifier.groups)
        functions = list(sl_lambda) if isinstance(sl_lambda, (list, tuple)) else [sl_lambda] * count
        if len(functions) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(functions)}")
        self.sl_lambdas = functions
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self) -> list[float]:
        """The sparsity of each group at the step ``last_epoch``."""
        self._warn_outside_of_step()
        return [level * f(self.last_epoch) for f, level in zip(self.sl_lambdas, self.base_sl, strict=True)]
