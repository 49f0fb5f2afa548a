"""The base class of schedulers of data sparsifiers."""

from __future__ import annotations

from typing import Any

from torchlite.ao.pruning._experimental.data_sparsifier import BaseDataSparsifier
from torchlite.ao.pruning.scheduler._counted_steps import count_steps, warn_of_order

__all__ = ["BaseDataScheduler"]


class BaseDataScheduler:
    """The base class of schedulers: each step sets one argument of a data sparsifier's groups to what
    `get_schedule_param` returns.

    Args:
        data_sparsifier: The sparsifier.
        schedule_param: The name of the argument.
        last_epoch: The number of the last step. Default: -1, there was none.
        verbose: Whether each change is printed. Default: ``False``.

    Raises:
        TypeError: `data_sparsifier` is none.

    Example:
        >>> from torchlite.ao.pruning._experimental.data_scheduler import BaseDataScheduler
        >>> from torchlite.ao.pruning._experimental.data_sparsifier import DataNormSparsifier
        >>> class Halved(BaseDataScheduler):
        ...     def get_schedule_param(self):
        ...         return {name: value / 2 for name, value in self.base_param.items()}
        >>> Halved(DataNormSparsifier([("a", torch.ones(4, 4))]), "sparsity_level").get_last_param()
        {'a': 0.25}
    """

    def __init__(self, data_sparsifier: Any, schedule_param: str, last_epoch: int = -1, verbose: bool = False) -> None:
        if not isinstance(data_sparsifier, BaseDataSparsifier):
            raise TypeError(
                f"{type(data_sparsifier).__name__} is not an instance of torch.ao.pruning.BaseDataSparsifier"
            )
        self.data_sparsifier, self.schedule_param = data_sparsifier, schedule_param
        self.base_param = self._values()
        self.last_epoch = last_epoch
        count_steps(data_sparsifier)
        self._step_count = 0
        self.verbose = verbose
        self._get_sp_called_within_step = False
        self.step()

    def _values(self) -> dict[str, Any]:
        """Return the argument of each group."""
        return {name: group.get(self.schedule_param) for name, group in self.data_sparsifier.data_groups.items()}

    def get_schedule_param(self) -> dict[str, Any]:
        """The argument of each group at the step ``last_epoch``.

        Raises:
            NotImplementedError: The class does not define it.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__} (\nData Sparsifier {self.data_sparsifier}\n"
            f"    {self.schedule_param}: {self.base_param}\n)"
        )

    def state_dict(self) -> dict[str, Any]:
        """The scheduler's attributes, but for the sparsifier."""
        return {name: value for name, value in vars(self).items() if name != "data_sparsifier"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Sets the scheduler's attributes.

        Args:
            state_dict: What `state_dict` returned.
        """
        vars(self).update(state_dict)

    def get_last_param(self) -> dict[str, Any]:
        """The argument of each group after the last step."""
        return self._last_param

    def step(self) -> None:
        """Sets the argument of the next step."""
        warn_of_order(self, self.data_sparsifier, "data_sparsifier")
        self._step_count += 1
        self._get_sp_called_within_step = True
        try:
            self.last_epoch += 1
            values = self.get_schedule_param()
        finally:
            self._get_sp_called_within_step = False
        for name, value in values.items():
            self.data_sparsifier.data_groups[name][self.schedule_param] = value
            if self.verbose:
                print(f"Adjusting {self.schedule_param} for group {name} to {value}")
        self._last_param = self._values()
        self.data_sparsifier.enable_mask_update = True
