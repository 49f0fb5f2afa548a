"""Collective steps of checkpoints with error propagation, and look-up of plan items."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torchlite as torch
import torchlite.distributed as dist
from torchlite.distributed.tensor import DTensor

from .api import CheckpointException, _is_wrapped_exception, _wrap_exception
from .metadata import MetadataIndex
from .planner_helpers import narrow_to_index

__all__ = ["find_state_dict_object", "find_tensor_shard"]

T = TypeVar("T")
R = TypeVar("R")


def _collect_failures(results: list[Any]) -> dict[int, Any]:
    return {rank: result for rank, result in enumerate(results) if _is_wrapped_exception(result)}


def _catch_errors(function: Callable[..., Any], *args: Any) -> Any:
    """Return a function's result, or its error with its traceback: no rank blocks the others."""
    try:
        return function(*args)
    except BaseException as error:  # sent to the other ranks, which raise it
        return _wrap_exception(error)


class _DistWrapper:
    """Collective steps of a group's ranks with a coordinator, or of one process without a group.

    Each raises CheckpointException on all ranks if it failed on any.
    """

    def __init__(self, group: Any, use_dist: bool, coordinator_rank: int) -> None:
        self.group, self.use_dist, self.coordinator_rank = group, use_dist, coordinator_rank
        self.rank = dist.get_rank(group) if use_dist else 0
        self.global_coordinator_rank = coordinator_rank
        if use_dist and group is not None:
            self.global_coordinator_rank = dist.get_global_rank(group, coordinator_rank)
        self.is_coordinator = not use_dist or self.rank == coordinator_rank

    def get_rank(self) -> int:
        """Return this process's rank in the group."""
        return self.rank

    def get_world_size(self) -> int:
        """Return the number of processes."""
        return dist.get_world_size(self.group) if self.use_dist else 1

    def broadcast_object(self, object: T | None) -> T:
        """Return the coordinator's object."""
        held: list[Any] = [object]
        if self.use_dist:
            dist.broadcast_object_list(held, self.global_coordinator_rank, group=self.group)
        return held[0]

    def gather_object(self, object: T) -> list[T] | None:
        """Return all ranks' objects, on the coordinator."""
        if not self.use_dist:
            return [object]
        gathered: list[Any] | None = [None] * self.get_world_size() if self.is_coordinator else None
        dist.gather_object(object, gathered, self.global_coordinator_rank, group=self.group)
        return gathered

    def all_gather_object(self, object: T) -> list[T]:
        """Return all ranks' objects."""
        if not self.use_dist:
            return [object]
        gathered: list[Any] = [None] * self.get_world_size()
        dist.all_gather_object(gathered, object, group=self.group)
        return gathered

    def scatter_object(self, object_list: list[T] | None) -> T:
        """Return this rank's element of the coordinator's list."""
        if not self.use_dist:
            assert object_list is not None
            return object_list[0]
        held: list[Any] = [None]
        dist.scatter_object_list(
            held, object_list if self.is_coordinator else None, self.global_coordinator_rank, group=self.group
        )
        return held[0]

    def reduce_scatter(self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], list[R]]) -> R:
        """Run `map_fun` on all ranks, `reduce_fun` of the results on the coordinator; return this rank's element."""
        gathered = self.gather_object(_catch_errors(map_fun))
        answers: list[Any] | None = None
        if self.is_coordinator:
            assert gathered is not None
            answers = self._reduce_on_coordinator(step, gathered, reduce_fun)
            if isinstance(answers, CheckpointException):
                answers = [answers] * self.get_world_size()
        return self._raise_checkpoint_exception(self.scatter_object(answers))

    def all_reduce(self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], R]) -> R:
        """Run `map_fun` on all ranks, `reduce_fun` of the results on the coordinator; return its result on all
        ranks.
        """
        gathered = self.gather_object(_catch_errors(map_fun))
        answer = None
        if self.is_coordinator:
            assert gathered is not None
            answer = self._reduce_on_coordinator(step, gathered, reduce_fun)
        return self._raise_checkpoint_exception(self.broadcast_object(answer))

    def all_gather(self, step: str, map_fun: Callable[[], T]) -> list[T]:
        """Return the results of `map_fun` on all ranks."""
        gathered = self.all_gather_object(_catch_errors(map_fun))
        failures = _collect_failures(gathered)
        if failures:
            raise CheckpointException(step, failures)
        return gathered

    def broadcast(self, step: str, map_fun: Callable[[], T]) -> T:
        """Return the result of `map_fun` on the coordinator."""
        answer = None
        if self.is_coordinator:
            answer = _catch_errors(map_fun)
            if _is_wrapped_exception(answer):
                answer = CheckpointException(step, {self.rank: answer})
        return self._raise_checkpoint_exception(self.broadcast_object(answer))

    def barrier(self) -> None:
        """Wait for all ranks."""
        if self.use_dist:
            dist.barrier(group=self.group)

    def _reduce_on_coordinator(self, step: str, gathered: list[Any], reduce_fun: Callable[[list[Any]], Any]) -> Any:
        failures = _collect_failures(gathered)
        if not failures:
            answer = _catch_errors(reduce_fun, gathered)
            if not _is_wrapped_exception(answer):
                return answer
            failures[self.rank] = answer
        return CheckpointException(step, failures)

    @staticmethod
    def _raise_checkpoint_exception(answer: Any) -> Any:
        if isinstance(answer, CheckpointException):
            raise answer
        return answer


def find_tensor_shard(tensor: torch.Tensor, index: MetadataIndex) -> torch.Tensor:
    """Return this rank's part of a tensor at an index. ValueError if it does not have that part."""
    if isinstance(tensor, DTensor):
        return narrow_to_index(tensor, index)
    if hasattr(tensor, "__get_tensor_shard__"):
        return tensor.__get_tensor_shard__(index)  # type: ignore[no-any-return]
    if index.offset is not None and any(index.offset):
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")
    return tensor


def find_state_dict_object(state_dict: dict[str, Any], index: MetadataIndex) -> Any:
    """Return the object of a flat state dict at an index. ValueError if there is none."""
    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    found = state_dict[index.fqn]
    if isinstance(found, torch.Tensor):
        return find_tensor_shard(found, index)
    if index.offset is not None:
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")
    return found


def _all_gather_keys(local_dict: dict[str, Any], group: Any = None) -> set[str]:
    """Return the keys of all ranks' dicts."""
    gathered: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(gathered, list(local_dict), group=group)
    return set().union(*gathered)


def _warn_if_single_process(no_dist: bool) -> bool:
    """True for a single process: there is no group, or the program requests it."""
    import warnings

    alone = no_dist or not dist.is_initialized()
    if alone and not no_dist:
        warnings.warn(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to save in a single "
            "process.",
            stacklevel=4,
        )
    return alone


def _deprecate_positional(count: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function whose arguments after the first `count` were positional and are keywords now: accept both."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        import inspect

        names = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            import warnings

            if len(args) > count:
                warnings.warn(
                    f"The argument order of {function.__name__} has been changed. Please check the document to avoid "
                    "future breakages.",
                    stacklevel=2,
                )
            late = dict(zip(names[count:], args[count:], strict=False))
            return function(*args[:count], **late, **kwargs)

        return call

    return decorate
