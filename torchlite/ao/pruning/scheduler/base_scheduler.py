"""The base class of schedulers."""

from __future__ import annotations

import warnings
from typing import Any

from torchlite.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier

from ._counted_steps import count_steps, warn_of_order

__all__ = ["BaseScheduler"]


class BaseScheduler:
    """The base class of schedulers: each step sets the sparsity of a sparsifier's groups to what `get_sl` returns.

    Args:
        sparsifier: The sparsifier, which is prepared.
        last_epoch: The number of the last step. Default: -1, there was none.
        verbose: Whether each change is printed. Default: ``False``.

    Raises:
        TypeError: `sparsifier` is none.

    Example:
        >>> sparsifier = torch.ao.pruning.WeightNormSparsifier()
        >>> sparsifier.prepare(torch.nn.Sequential(torch.nn.Linear(4, 4)), None)
        >>> class Fixed(torch.ao.pruning.BaseScheduler):
        ...     def get_sl(self):
        ...         return [0.25]
        >>> Fixed(sparsifier).get_last_sl()
        [0.25]
    """

    def __init__(self, sparsifier: Any, last_epoch: int = -1, verbose: bool = False) -> None:
        if not isinstance(sparsifier, BaseSparsifier):
            raise TypeError(f"{type(sparsifier).__name__} is not an instance of torch.ao.pruning.BaseSparsifier")
        self.sparsifier = sparsifier
        self.base_sl = [group["sparsity_level"] for group in sparsifier.groups]
        self.last_epoch = last_epoch
        count_steps(sparsifier)
        self._step_count = 0
        self.verbose = verbose
        self._get_sl_called_within_step = False
        self.step()

    def state_dict(self) -> dict[str, Any]:
        """The scheduler's attributes, but for the sparsifier."""
        return {name: value for name, value in vars(self).items() if name != "sparsifier"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Sets the scheduler's attributes.

        Args:
            state_dict: What `state_dict` returned.
        """
        vars(self).update(state_dict)

    def get_last_sl(self) -> Any:
        """The sparsity of each group after the last step."""
        return self._last_sl

    def _warn_outside_of_step(self) -> None:
        if not self._get_sl_called_within_step:
            warnings.warn(
                "To get the last sparsity level computed by the scheduler, please use `get_last_sl()`.", stacklevel=3
            )

    def get_sl(self) -> list[float]:
        """The sparsity of each group at the step ``last_epoch``.

        Raises:
            NotImplementedError: The class does not define it.
        """
        self._warn_outside_of_step()
        raise NotImplementedError

    def print_sl(self, is_verbose: bool, group: Any, sl: float, epoch: int | None = None) -> None:
        """Prints the sparsity of a group.

        Args:
            is_verbose: Whether to print it.
            group: The group's number.
            sl: The sparsity.
            epoch: The number of the step. Default: it is not printed.
        """
        if is_verbose:
            start = "Adjusting" if epoch is None else f"Epoch {epoch:5d}: adjusting"
            print(f"{start} sparsity level of group {group} to {sl:.4e}.")

    def __repr__(self) -> str:
        return f"{type(self).__name__} (\nSparsifier {self.sparsifier}\n    base_sl: {self.base_sl}\n)"

    def step(self, epoch: int | None = None) -> None:
        """Sets the sparsity of the next step.

        Args:
            epoch: The number that is printed.
        """
        warn_of_order(self, self.sparsifier, "sparsifier")
        self._step_count += 1
        self._get_sl_called_within_step = True
        try:
            self.last_epoch += 1
            levels = self.get_sl()
        finally:
            self._get_sl_called_within_step = False
        for place, (group, level) in enumerate(zip(self.sparsifier.groups, levels, strict=False)):
            group["sparsity_level"] = level
            self.print_sl(self.verbose, place, level, epoch)
        self._last_sl = [group["sparsity_level"] for group in self.sparsifier.groups]
        self.sparsifier.enable_mask_update = True

    def _make_sure_a_list(self, var: Any) -> list[Any]:
        """Return one value for each group: those of a list, or the same one for all."""
        count = len(self.sparsifier.groups)
        if not isinstance(var, (list, tuple)):
            return [var] * count
        if len(var) != count:
            raise ValueError(f"Expected variable of length {count}, but got {len(var)}")
        return list(var)
