"""`Join`: training with uneven inputs; finished processes shadow the others' collectives."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, NamedTuple

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

__all__ = ["Join", "JoinHook", "Joinable"]

_MANY = 1000  # iterations beyond this process's own that cause a warning


class JoinHook:
    """The collectives that a process without inputs calls in place of an object.

    Example:
        >>> from torchlite.distributed.algorithms import JoinHook
        >>> JoinHook().main_hook()
    """

    def main_hook(self) -> None:
        """Shadow one iteration of the others: the same collectives in the same order."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Runs after all processes have finished.

        Args:
            is_last_joiner: Whether this process was among the last.
        """


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """Return the configuration of an object outside of a context."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """Base class of objects that run collectives in each iteration, and have a `join_hook` that repeats them.

    Example:
        >>> from torchlite.distributed.algorithms import Joinable
        >>> issubclass(torch.nn.parallel.DistributedDataParallel, Joinable)
        True
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Returns the `JoinHook` of this object.

        Args:
            kwargs: The keyword arguments of `Join`.
        """

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Device of the tensor that counts the processes."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """Group of the processes."""


class Join:
    """Trains in a block with a number of inputs that differs between ranks.

    A rank without inputs repeats the collectives of the others until all have finished.

    Args:
        joinables: The objects that run collectives, such as a `DistributedDataParallel`.
        enable: Whether the block does this. Default: ``True``.
        throw_on_early_termination: Whether all ranks raise RuntimeError once one has no inputs left. Default:
            ``False``.
        kwargs: Passed to the objects' `join_hook`.

    Raises:
        ValueError: There are no objects, or they belong to different groups.
        RuntimeError: A rank has no inputs left and ``throw_on_early_termination`` is set.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms import Join
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> with Join([model]):
        ...     for x in torch.ones(3, 4, 2):  # the number of inputs may differ between ranks
        ...         model(x).sum().backward()
        >>> model.module.bias.grad
        tensor([12.])
        >>> dist.destroy_process_group()
    """

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable, self._throw_on_early_termination = enable, throw_on_early_termination
        for position, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, position == 0)
        groups = [joinable.join_process_group for joinable in joinables]
        if any(group != groups[0] for group in groups):
            raise ValueError("Using join context manager with multiple process groups")
        self._process_group, self._device = groups[0], joinables[0].join_device
        self._rank = self._process_group.rank()

    def __enter__(self) -> None: ...

    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._enable and type is None:
            last = self._shadow_other_ranks()
            for hook in self._join_hooks:
                hook.post_hook(last)

    def _shadow_other_ranks(self) -> bool:
        """Shadow the others' iterations until all have finished; return True if there were none."""
        iterations = 0
        while _sum_over_group(0.0, self):
            if iterations == _MANY:
                warnings.warn(
                    f"Detected uneven input skew of greater than {_MANY}. This means that rank {self._rank} has at "
                    f"least {_MANY} fewer inputs than other currently-active ranks. This level of skew could lead to "
                    "performance degradation during training.",
                    stacklevel=3,
                )
            if self._throw_on_early_termination:
                _sum_over_group(1.0, self)
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            for hook in self._join_hooks:
                hook.main_hook()
            iterations += 1
        return iterations == 0

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Announces, before an object's collectives, that this process has inputs left.

        Args:
            joinable: The object.

        Returns:
            The `Work` of the announcement for the first object of a context, else ``None``.

        Raises:
            AssertionError: The object's class does not call the constructor of `Joinable`.
            RuntimeError: A rank has no inputs left and ``throw_on_early_termination`` is set.
        """
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor")
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        import torchlite.distributed as dist

        group, ones = joinable.join_process_group, torch.ones(1, device=joinable.join_device)
        work: Any = dist.all_reduce(ones, group=group, async_op=True)
        work._counted = ones
        if config.throw_on_early_termination:
            zeros = torch.zeros(1, device=joinable.join_device)
            dist.all_reduce(zeros, group=group)
            if zeros.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work


def _sum_over_group(value: float, join: Join) -> float:
    import torchlite.distributed as dist

    tensor = torch.full((1,), value, device=join._device)
    dist.all_reduce(tensor, group=join._process_group)
    return tensor.item()


__dir__ = make_module_dir(globals())
