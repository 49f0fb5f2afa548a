"""LRScheduler, the base class of learning-rate schedulers."""

from __future__ import annotations

import functools
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import torchlite as torch

from .._dispatch.kernel_recorder import record_as_single_step
from .optimizer import Optimizer

if TYPE_CHECKING:
    from torchlite import Tensor

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)


def _copy(value):
    return value.clone() if isinstance(value, torch.Tensor) else value


def _update_param_group_val(group, key, value):
    """Set an option of a group; a tensor is filled in place, so that it stays the same object."""
    if isinstance(group[key], torch.Tensor):
        group[key].fill_(value.item() if isinstance(value, torch.Tensor) else value)
    else:
        group[key] = value


def _format_param(optimizer, value, name):
    """Return one value for each group; tensors are copied, since schedulers write into theirs."""
    if not isinstance(value, (list, tuple)):
        return [_copy(value) for _ in optimizer.param_groups]
    if len(value) != len(optimizer.param_groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {len(optimizer.param_groups)}."
        )
    return [_copy(each) for each in value]


class LRScheduler:
    """The base class of learning-rate schedulers.

    A subclass defines `get_lr`, which returns the new rate of each group. It reads ``last_epoch`` (the number of steps
    done), ``base_lrs`` (the groups' initial rates) and the present rates in ``optimizer.param_groups``. The constructor
    does the step to epoch 0. Call ``scheduler.step()`` after ``optimizer.step()``.

    Args:
        optimizer: The optimizer whose groups' rates are set.
        last_epoch: Epoch to resume after; -1 begins. Otherwise each group needs its ``"initial_lr"``. Default: -1.

    Attributes:
        last_epoch (int): Number of the present epoch, from 0.
        base_lrs (list[float]): The initial rates of the groups.

    Raises:
        TypeError: ``optimizer`` is not an `Optimizer`.
        KeyError: ``last_epoch`` is not -1 and a group has no ``"initial_lr"``.

    Example:
        >>> class InverseRoot(torch.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [base / (self.last_epoch + 1) ** 0.5 for base in self.base_lrs]
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = InverseRoot(optimizer)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.7071, 0.5774, 0.5]
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", _copy(group["lr"]))
        else:
            for place, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{place}] when resuming scheduler with "
                        "last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from a "
                        "checkpoint but haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 "
                        "for a fresh training run (not recommended)"
                    )
        self.base_lrs = [_copy(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _track_optimizer_steps(optimizer)
        self._initial_step()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = record_as_single_step(cls.__dict__["step"])  # type: ignore[method-assign]

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Returns the state, without the optimizer.

        Returns:
            The attributes by name.
        """
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the state that `state_dict` returned.

        Args:
            state_dict: A result of `state_dict`.
        """
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[float | Tensor]:
        """Returns the rates that the last step set.

        Returns:
            A list with one rate for each group.
        """
        return self._last_lr

    def get_lr(self) -> list[float | Tensor]:
        """Computes the rates of the epoch ``last_epoch``; subclasses define it and `step` calls it.

        Returns:
            A list with one rate for each group.

        Raises:
            NotImplementedError: The subclass does not define it.
        """
        raise NotImplementedError

    @record_as_single_step
    def step(self, epoch: int | None = None) -> Any:
        """Goes to the next epoch and sets the rates of the groups.

        Args:
            epoch: Deprecated. The epoch to go to. Default: the next one.
        """
        if self._step_count == 1 and not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
                "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                UserWarning,
                stacklevel=3,
            )
        elif self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure "
                "to do this will result in PyTorch skipping the first value of the learning rate schedule. See more "
                "details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                UserWarning,
                stacklevel=3,
            )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=3)
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                values = self._get_closed_form_lr() if hasattr(self, "_get_closed_form_lr") else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            _update_param_group_val(group, "lr", value)
        self._last_lr = [_copy(group["lr"]) for group in self.optimizer.param_groups]


class _LRScheduler(LRScheduler):
    """The former name of the base, from which some programs derive."""


def _track_optimizer_steps(optimizer):
    """Mark the optimizer's steps from now on, so that a scheduler step before the first one can warn."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    step, reference = optimizer.step.__func__, weakref.ref(optimizer)

    @functools.wraps(step)
    def step_and_note(*args, **kwargs):
        own: Any = reference()
        own._opt_called = True
        return step(own, *args, **kwargs)

    step_and_note._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step_and_note


def _warn_outside_step(scheduler):
    if not scheduler._get_lr_called_within_step:
        warnings.warn(
            "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
            UserWarning,
            stacklevel=3,
        )


def _current_lrs(scheduler):
    """The groups' present rates."""
    return [_copy(group["lr"]) for group in scheduler.optimizer.param_groups]
