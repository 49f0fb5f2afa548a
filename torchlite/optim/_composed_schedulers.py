"""Learning-rate schedulers of other schedulers: SequentialLR, ChainedScheduler."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from ._lr_scheduler_base import LRScheduler, _copy, _update_param_group_val
from ._reduce_on_plateau import ReduceLROnPlateau
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Sequence


def _nested_state(scheduler):
    state = {key: value for key, value in scheduler.__dict__.items() if key not in ("optimizer", "_schedulers")}
    state["_schedulers"] = [inner.state_dict() for inner in scheduler._schedulers]
    return state


def _load_nested(scheduler, state_dict):
    inner_states = state_dict["_schedulers"]
    scheduler.__dict__.update({key: value for key, value in state_dict.items() if key != "_schedulers"})
    for inner, state in zip(scheduler._schedulers, inner_states, strict=True):
        inner.load_state_dict(state)


def _check_schedulers(name, schedulers, optimizer):
    """TypeError or ValueError for a scheduler that `name` cannot step."""
    for place, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {place} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                f"specified when calling `step`, but got one at index {place} in the given schedulers sequence."
            )
        if optimizer != scheduler.optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(scheduler).__name__} at index {place} has {scheduler.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )


class SequentialLR(LRScheduler):
    """Runs several schedulers one after the other.

    At each milestone the next scheduler begins with its epoch 0.

    Args:
        optimizer: The optimizer whose groups' rates are set.
        schedulers: The schedulers, all of ``optimizer``; `ReduceLROnPlateau` is not accepted.
        milestones: The epochs at which the next scheduler begins; one less than the schedulers.
        last_epoch: Number of the last epoch; -1 begins. Default: -1.

    Raises:
        ValueError: There is no scheduler, their number does not fit that of the milestones, or one is not accepted.
        TypeError: One has no ``optimizer``.

    Example:
        >>> from torchlite.optim.lr_scheduler import ExponentialLR, LinearLR, SequentialLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> warm_up = LinearLR(optimizer, start_factor=0.5, total_iters=2)
        >>> decay = ExponentialLR(optimizer, gamma=0.5)
        >>> scheduler = SequentialLR(optimizer, [warm_up, decay], milestones=[2])
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.5, 0.75, 1.0, 0.5, 0.25, 0.125]

    See also:
        `ChainedScheduler`.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        _check_schedulers(name, schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to "
                f"be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each scheduler has done its initial step; only the first one's counts.
        for group in optimizer.param_groups:
            _update_param_group_val(group, "lr", group["initial_lr"])
        self.recursive_undo()
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def recursive_undo(self, sched: LRScheduler | None = None) -> None:
        """Undoes the last step of the inner schedulers, also of those nested in them.

        Args:
            sched: The scheduler to undo. Default: this one, so all inner schedulers.
        """
        scheduler: Any = self if sched is None else sched
        if hasattr(scheduler, "_schedulers"):
            for one in scheduler._schedulers:
                self.recursive_undo(one)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self) -> Any:
        """Goes to the next epoch: steps the scheduler of that epoch."""
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[place]
        if place > 0 and self._milestones[place - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Returns the state, without the optimizer and with the states of the inner schedulers.

        Returns:
            The attributes by name.
        """
        return _nested_state(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the state that `state_dict` returned, also into the inner schedulers.

        Args:
            state_dict: A result of `state_dict`.
        """
        _load_nested(self, state_dict)


class ChainedScheduler(LRScheduler):
    """Steps several schedulers together: each changes the rate that the one before it has set.

    The factors of schedulers that multiply the present rate multiply each other.

    Args:
        schedulers: The schedulers, all of one optimizer; `ReduceLROnPlateau` is not accepted.
        optimizer: Their optimizer. Default: that of the first scheduler.

    Raises:
        ValueError: There is no scheduler, or one is not accepted.
        TypeError: One has no ``optimizer``.

    Example:
        >>> from torchlite.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> start = ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> scheduler = ChainedScheduler([start, ExponentialLR(optimizer, gamma=0.5)])
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.5, 0.25, 0.25, 0.125, 0.0625]

    See also:
        `SequentialLR`.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        _check_schedulers(name, schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = [_copy(group["lr"]) for group in optimizer.param_groups]

    def step(self) -> Any:
        """Steps every scheduler, in order."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = [_copy(group["lr"]) for group in self._schedulers[-1].optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state, without the optimizer and with the states of the inner schedulers.

        Returns:
            The attributes by name.
        """
        return _nested_state(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the state that `state_dict` returned, also into the inner schedulers.

        Args:
            state_dict: A result of `state_dict`.
        """
        _load_nested(self, state_dict)
