"""Pipeline schedules: GPipe, 1F1B, interleaved, looped BFS and zero bubble."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import torchlite as torch
from torchlite._types.unsupported import unsupported_function

from . import _pipeline_orders
from ._schedule_runtime import ScheduleRunner
from ._utils import PipeliningMetadataError, generate_stage_to_rank_mapping
from .microbatch import merge_chunks, split_args_kwargs_into_chunks
from .stage import PipelineStage

__all__ = [
    "PipelineScheduleMulti", "PipelineScheduleSingle", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe",
    "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble",
    "get_schedule_class",
]  # fmt: skip


class _PipelineSchedule:
    """Base of schedules: stages of this rank, an action order, and steps."""

    _stages: list[PipelineStage]
    _num_stages: int

    def __init__(
        self,
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        self._n_microbatches, self._loss_fn, self.scale_grads = n_microbatches, loss_fn, scale_grads
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        self._has_backward = loss_fn is not None
        self.pipeline_order: _pipeline_orders.PipelineOrder = {}
        self._rank_of: dict[int, int] = {}
        self._runners: dict[bool, ScheduleRunner] = {}  # with backwards, and without

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Any] | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run a batch forward through all stages, and with a `loss_fn` backward; gradients accumulate in the
        parameters.

        Every rank of the pipeline calls it: the one with the first stage passes the model's arguments, the one with the
        last the `target`, a tensor that is split along its first dimension. The latter gets the merged outputs (with
        `return_outputs`), and the microbatches' losses in the list `losses`; the others get None. Keyword arguments go
        to the stages of the rank that passes them. With `scale_grads` the gradients are divided by the number of
        microbatches: for a mean loss they are those of the mean over the batch. loss_kwargs: more arguments for
        `loss_fn`.

        RuntimeError under `no_grad`, ValueError for a batch with fewer rows than microbatches, PipeliningMetadataError
        if tensors between stages differ from those of the first step.
        """
        if self._has_backward and not torch.is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; it should not be used under "
                "torch.no_grad() context. Please call eval() instead."
            )
        return self._split_and_run(self._has_backward, args, kwargs, target, losses, return_outputs, loss_kwargs)

    def eval(self, *args: Any, target: Any = None, losses: list[Any] | None = None, **kwargs: Any) -> Any:
        """Run a batch forward through all stages. Arguments and results as in `step`."""
        return self._split_and_run(False, args, kwargs, target, losses, True, None)

    def _split_and_run(
        self,
        backward: bool,
        args: tuple,
        kwargs: dict[str, Any],
        target: Any,
        losses: Any,
        return_outputs: bool,
        loss_kwargs: Any,
    ) -> Any:
        n = self._n_microbatches
        pieces, named = split_args_kwargs_into_chunks(args, kwargs, n, self._args_chunk_spec, self._kwargs_chunk_spec)
        targets = None if target is None else list(torch.tensor_split(target, n))
        outputs = self._run(backward, pieces, named, targets, losses, return_outputs, loss_kwargs)
        if not return_outputs or not self._has_last():
            return None
        return merge_chunks(outputs, self._output_merge_spec)

    def _step_microbatches(
        self,
        arg_mbs: list | None = None,
        kwarg_mbs: list | None = None,
        target_mbs: list | None = None,
        losses: list | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Run a step over the microbatches of a batch."""
        self._run(self._has_backward, arg_mbs, kwarg_mbs, target_mbs, losses, return_outputs, loss_kwargs)

    def _has_last(self) -> bool:
        return any(stage.is_last for stage in self._stages)

    def _run(
        self,
        backward: bool,
        arg_mbs: list | None,
        kwarg_mbs: list | None,
        target_mbs: list | None,
        losses: Any,
        return_outputs: bool,
        loss_kwargs: dict[str, Any] | None,
    ) -> list[Any]:
        n = self._n_microbatches
        for name, values in (("arg_mbs", arg_mbs), ("kwarg_mbs", kwarg_mbs), ("target_mbs", target_mbs)):
            if values is not None and len(values) != n:
                raise ValueError(f"Expecting {n} {name} but got {len(values)}")
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        if backward and self._has_last() and target_mbs is None:
            raise PipeliningMetadataError(f"Stage {self._num_stages - 1}: loss_fn and target required for last stage")
        for stage in self._stages:
            stage.clear_runtime_states()
        if backward not in self._runners:
            self._runners[backward] = ScheduleRunner(self._stages, self.pipeline_order, self._rank_of, backward)

        def loss_of(output: Any, m: int) -> Any:
            assert self._loss_fn is not None and target_mbs is not None
            return self._loss_fn(output, target_mbs[m], **(loss_kwargs or {}))

        wants_loss = self._loss_fn is not None and target_mbs is not None
        outputs, found = self._runners[backward].run(
            arg_mbs or [()] * n, kwarg_mbs or [{}] * n, loss_of if wants_loss else None, return_outputs
        )
        if backward and self.scale_grads:
            for stage in self._stages:
                stage.scale_grads(n)
        if losses is not None and self._has_last():
            losses[:] = found if wants_loss else []
        return outputs


class PipelineScheduleSingle(_PipelineSchedule):
    """Schedule with one stage per rank."""

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        super().__init__(n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads)
        self._num_stages = stage.num_stages
        self._stage, self._stages = stage, [stage]
        self._rank_of = stage.stage_index_to_group_rank
        if stage.group_size != stage.num_stages:
            raise ValueError(
                f"{type(self).__name__} has one stage on each rank, but there are {stage.num_stages} stages and "
                f"{stage.group_size} ranks"
            )
        self.pipeline_order = self._make_order(stage.num_stages, n_microbatches)

    def _make_order(self, ranks: int, microbatches: int) -> _pipeline_orders.PipelineOrder:
        raise NotImplementedError("a schedule says in which order its ranks compute")


class ScheduleGPipe(PipelineScheduleSingle):
    """Schedule that runs all microbatches forward, then all backward.

    Args:
        stage: The rank's stage.
        n_microbatches: The number of microbatches of a batch.
        loss_fn: Called as ``loss_fn(output, target)`` on the last stage. All ranks pass one, or none for inference.
            Default:
            none.
        args_chunk_spec: A `TensorChunkSpec` for each positional argument. Default: dimension 0.
        kwargs_chunk_spec: A `TensorChunkSpec` for each keyword argument. Default: dimension 0.
        output_merge_spec: How the outputs are merged. Default: along dimension 0.
        scale_grads: Whether gradients are divided by the number of microbatches. Default: ``True``.

    Raises:
        ValueError: There is more than one stage for each rank.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.pipelining import PipelineStage, ScheduleGPipe
        >>> stage = PipelineStage(torch.nn.Linear(2, 1), 0, 1, "cpu")
        >>> schedule = ScheduleGPipe(stage, 2, loss_fn=torch.nn.functional.mse_loss)
        >>> losses = []
        >>> schedule.step(torch.ones(4, 2), target=torch.zeros(4, 1), losses=losses).shape, len(losses)
        (torch.Size([4, 1]), 2)
        >>> dist.destroy_process_group()

    References:
        - Y. Huang et al. GPipe: efficient training of giant neural networks using pipeline parallelism. 2018.
    """

    def _make_order(self, ranks: int, microbatches: int) -> _pipeline_orders.PipelineOrder:
        return _pipeline_orders.fill_drain(ranks, microbatches)


class Schedule1F1B(PipelineScheduleSingle):
    """Schedule in which backward and forward passes alternate, after the first forward passes.

    A rank stores no more microbatches than there are stages.

    Args:
        stage: The rank's stage.
        n_microbatches: The number of microbatches of a batch.
        loss_fn: Called as ``loss_fn(output, target)`` on the last stage. All ranks pass one, or none for inference.
            Default:
            none.
        args_chunk_spec: A `TensorChunkSpec` for each positional argument. Default: dimension 0.
        kwargs_chunk_spec: A `TensorChunkSpec` for each keyword argument. Default: dimension 0.
        output_merge_spec: How the outputs are merged. Default: along dimension 0.
        scale_grads: Whether gradients are divided by the number of microbatches. Default: ``True``.

    Raises:
        ValueError: There is more than one stage for each rank, or there are fewer microbatches than stages.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.pipelining import PipelineStage, Schedule1F1B
        >>> stage = PipelineStage(torch.nn.Linear(2, 1), 0, 1, "cpu")
        >>> schedule = Schedule1F1B(stage, 2, loss_fn=torch.nn.functional.mse_loss)
        >>> losses = []
        >>> schedule.step(torch.ones(4, 2), target=torch.zeros(4, 1), losses=losses).shape, len(losses)
        (torch.Size([4, 1]), 2)
        >>> dist.destroy_process_group()

    References:
        - D. Narayanan et al. Memory-efficient pipeline-parallel DNN training. 2020.
    """

    def _make_order(self, ranks: int, microbatches: int) -> _pipeline_orders.PipelineOrder:
        if microbatches < ranks:
            raise ValueError(
                f"Number of microbatches ({microbatches}) must be greater than or equal to the number of stages "
                f"({ranks})."
            )
        return _pipeline_orders.one_forward_one_backward(ranks, microbatches)


class _ScheduleForwardOnly(PipelineScheduleSingle):
    """Forward passes only."""

    def _make_order(self, ranks: int, microbatches: int) -> _pipeline_orders.PipelineOrder:
        return _pipeline_orders.fill_drain(ranks, microbatches)

    def step(self, *args: Any, target: Any = None, losses: Any = None, **kwargs: Any) -> Any:
        """Run a batch through all stages. RuntimeError if losses are requested."""
        if target is not None or losses is not None:
            raise RuntimeError("Forward-only schedule does not support loss computation")
        return self.eval(*args, **kwargs)


class PipelineScheduleMulti(_PipelineSchedule):
    """Schedule with several stages per rank: `stages`, in ascending order. `defer_pp_recv` has no effect here."""

    _style = "loop"

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        use_full_backward: bool | None = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
    ) -> None:
        super().__init__(n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads)
        if use_full_backward is not None:
            warnings.warn(
                "Deprecation warning: 'use_full_backward' is no longer supported. Simply stop passing it, and "
                "everything should still work fine.", FutureWarning, stacklevel=2,
            )  # fmt: skip
        if not backward_requires_autograd:
            raise NotImplementedError("backward_requires_autograd=False: a stage's backward is autograd's here")
        self._stages, self._num_stages = stages, stages[0].num_stages
        self.pp_group_size, self.rank = stages[0].group_size, stages[0].group_rank
        if self._num_stages != self.pp_group_size * len(stages):
            raise ValueError(
                f"{len(stages)} stages on each of {self.pp_group_size} ranks are not the {self._num_stages} stages of "
                "the pipeline"
            )
        self._rank_of = generate_stage_to_rank_mapping(self.pp_group_size, self._num_stages, self._style)
        self.stage_index_to_group_rank = self._rank_of
        mine = [number for number, rank in self._rank_of.items() if rank == self.rank]
        if sorted(stage.stage_index for stage in stages) != mine:
            raise ValueError(
                f"Rank {self.rank} has the stages {mine} in this schedule, and not "
                f"{[stage.stage_index for stage in stages]}"
            )
        for stage in stages:
            stage.stage_index_to_group_rank = self._rank_of
        self.pipeline_order = self._make_order(self.pp_group_size, len(stages), n_microbatches)

    def _make_order(self, ranks: int, each: int, microbatches: int) -> _pipeline_orders.PipelineOrder:
        raise NotImplementedError("a schedule says in which order its ranks compute")


class _WithSpecs(PipelineScheduleMulti):
    """Common arguments of these schedules.

    `defer_pp_recv` has no effect: receives wait at their use.
    """

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        super().__init__(
            stages, n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, None, scale_grads,
            backward_requires_autograd,
        )  # fmt: skip


class ScheduleInterleaved1F1B(_WithSpecs):
    """1F1B with several stages on each rank, which leaves the ranks less idle.

    Rank ``r`` of ``n`` has the stages ``r``, ``r + n``, ``r + 2n`` and so on.

    Args:
        stages: The rank's stages, in ascending order.
        n_microbatches: The number of microbatches of a batch.
        loss_fn: Called as ``loss_fn(output, target)`` on the last stage. All ranks pass one, or none for inference.
            Default:
            none.
        args_chunk_spec: A `TensorChunkSpec` for each positional argument. Default: dimension 0.
        kwargs_chunk_spec: A `TensorChunkSpec` for each keyword argument. Default: dimension 0.
        output_merge_spec: How the outputs are merged. Default: along dimension 0.
        scale_grads: Whether gradients are divided by the number of microbatches. Default: ``True``.
        backward_requires_autograd: Must be ``True``.
        defer_pp_recv: Has no effect: a receive waits where its value is used.

    Raises:
        ValueError: The microbatches are not a multiple of the rounds, ``max(1, microbatches // ranks)``.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
        >>> stages = [PipelineStage(torch.nn.Linear(2, 2), i, 2, "cpu") for i in range(2)]
        >>> schedule = ScheduleInterleaved1F1B(stages, 2, loss_fn=torch.nn.functional.mse_loss)
        >>> schedule.step(torch.ones(4, 2), target=torch.zeros(4, 2)).shape
        torch.Size([4, 2])
        >>> dist.destroy_process_group()

    References:
        - D. Narayanan et al. Efficient large-scale language model training on GPU clusters using Megatron-LM. 2021.
    """

    def _make_order(self, ranks: int, each: int, microbatches: int) -> _pipeline_orders.PipelineOrder:
        return _pipeline_orders.interleaved_one_forward_one_backward(ranks, each, microbatches)


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """Breadth-first schedule: all microbatches go through a stage before the rank's next stage.

    Args:
        stages: The rank's stages, in ascending order.
        n_microbatches: The number of microbatches of a batch.
        loss_fn: Called as ``loss_fn(output, target)`` on the last stage. All ranks pass one, or none for inference.
            Default:
            none.
        output_merge_spec: How the outputs are merged. Default: along dimension 0.
        scale_grads: Whether gradients are divided by the number of microbatches. Default: ``True``.
        backward_requires_autograd: Must be ``True``.
        defer_pp_recv: Has no effect: a receive waits where its value is used.

    Raises:
        ValueError: The stages or the microbatches do not match.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.pipelining import PipelineStage, ScheduleLoopedBFS
        >>> stages = [PipelineStage(torch.nn.Linear(2, 2), i, 2, "cpu") for i in range(2)]
        >>> schedule = ScheduleLoopedBFS(stages, 2, loss_fn=torch.nn.functional.mse_loss)
        >>> schedule.step(torch.ones(4, 2), target=torch.zeros(4, 2)).shape
        torch.Size([4, 2])
        >>> dist.destroy_process_group()

    References:
        - J. Lamy-Poirier. Breadth-first pipeline parallelism. 2022.
    """

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        super().__init__(
            stages, n_microbatches, loss_fn, output_merge_spec=output_merge_spec, scale_grads=scale_grads,
            backward_requires_autograd=backward_requires_autograd,
        )  # fmt: skip

    def _make_order(self, ranks: int, each: int, microbatches: int) -> _pipeline_orders.PipelineOrder:
        return _pipeline_orders.looped_breadth_first(ranks, each, microbatches)


class ScheduleInterleavedZeroBubble(_WithSpecs):
    """Interleaved 1F1B with split backward passes: gradients of weights fill a rank's idle time.

    `DistributedDataParallel` modules reduce their gradients with the last microbatch's gradients of weights.

    Args:
        stages: The rank's stages, in ascending order.
        n_microbatches: The number of microbatches of a batch.
        loss_fn: Called as ``loss_fn(output, target)`` on the last stage. All ranks pass one, or none for inference.
            Default:
            none.
        args_chunk_spec: A `TensorChunkSpec` for each positional argument. Default: dimension 0.
        kwargs_chunk_spec: A `TensorChunkSpec` for each keyword argument. Default: dimension 0.
        output_merge_spec: How the outputs are merged. Default: along dimension 0.
        scale_grads: Whether gradients are divided by the number of microbatches. Default: ``True``.
        backward_requires_autograd: Must be ``True``.
        defer_pp_recv: Has no effect: a receive waits where its value is used.

    Raises:
        ValueError: The stages or the microbatches do not match.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble
        >>> stages = [PipelineStage(torch.nn.Linear(2, 2), i, 2, "cpu") for i in range(2)]
        >>> schedule = ScheduleInterleavedZeroBubble(stages, 2, loss_fn=torch.nn.functional.mse_loss)
        >>> schedule.step(torch.ones(4, 2), target=torch.zeros(4, 2)).shape
        torch.Size([4, 2])
        >>> dist.destroy_process_group()

    References:
        - P. Qi, X. Wan, G. Huang, M. Lin. Zero bubble pipeline parallelism. 2023.
    """

    def _make_order(self, ranks: int, each: int, microbatches: int) -> _pipeline_orders.PipelineOrder:
        return _pipeline_orders.interleaved_one_forward_one_backward(ranks, each, microbatches, halves=True)


class ScheduleZBVZeroBubble(_WithSpecs):
    """Schedule without idle time over two stages on each rank, in the shape of a V.

    Of ``n`` ranks, rank ``r`` has the stages ``r`` and ``2n - 1 - r``.

    Args:
        stages: The rank's two stages.
        args: Other arguments of `ScheduleInterleavedZeroBubble`.
        kwargs: Other arguments of `ScheduleInterleavedZeroBubble`.

    Raises:
        ValueError: A rank does not have two stages.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.pipelining import PipelineStage, ScheduleZBVZeroBubble
        >>> stages = [PipelineStage(torch.nn.Linear(2, 2), i, 2, "cpu") for i in range(2)]
        >>> schedule = ScheduleZBVZeroBubble(stages, 2, loss_fn=torch.nn.functional.mse_loss)
        >>> schedule.step(torch.ones(4, 2), target=torch.zeros(4, 2)).shape
        torch.Size([4, 2])
        >>> dist.destroy_process_group()

    References:
        - P. Qi, X. Wan, G. Huang, M. Lin. Zero bubble pipeline parallelism. 2023.
    """

    _style = "v"

    def __init__(self, stages: list[PipelineStage], *args: Any, **kwargs: Any) -> None:
        if len(stages) != 2:
            raise ValueError(f"ZBV requires exactly 2 stages per rank, but got {len(stages)}.")
        super().__init__(stages, *args, **kwargs)

    def _make_order(self, ranks: int, each: int, microbatches: int) -> _pipeline_orders.PipelineOrder:
        return _pipeline_orders.zero_bubble_v(ranks, microbatches)


class ScheduleDualPipeV(_WithSpecs):
    """Schedule of PyTorch that overlaps a forward pass with a backward pass; not supported.

    Args:
        args: Ignored.
        kwargs: Ignored.

    Raises:
        NotImplementedError: Always.

    Example:
        >>> torch.distributed.pipelining.ScheduleDualPipeV([], 2)
        Traceback (most recent call last):
        NotImplementedError: ...
    """

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        unsupported_function("torch.distributed.pipelining.ScheduleDualPipeV")()


def get_schedule_class(schedule_name: str) -> type[_PipelineSchedule]:
    """Return the class of a schedule, by its name without "Schedule", case-insensitively.

    >>> from torchlite.distributed.pipelining.schedules import get_schedule_class
    >>> get_schedule_class("1f1b").__name__
    'Schedule1F1B'
    """
    classes = {
        "1F1B": Schedule1F1B, "Interleaved1F1B": ScheduleInterleaved1F1B, "GPipe": ScheduleGPipe,
        "LoopedBFS": ScheduleLoopedBFS, "InterleavedZeroBubble": ScheduleInterleavedZeroBubble,
        "PipelineScheduleSingle": PipelineScheduleSingle, "PipelineScheduleMulti": PipelineScheduleMulti,
        "ZBVZeroBubble": ScheduleZBVZeroBubble, "DualPipeV": ScheduleDualPipeV,
    }  # fmt: skip
    found = {name.lower(): one for name, one in classes.items()}.get(schedule_name.lower())
    if found is None:
        raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are {list(classes)}")
    return found
