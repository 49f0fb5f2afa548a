"""Pipeline stage: a part of a model on one rank, with the state of microbatches in flight."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite.nn.modules.module import Module

from . import _split_backward
from ._utils import PipeInfo, PipeliningMetadataError, generate_stage_to_rank_mapping

__all__ = ["PipelineStage", "build_stage"]

Tensors = tuple[Any, ...]


def as_tuple(value: Any) -> Tensors:
    """Return a stage's result as a tuple."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _check_tensors(values: Tensors, words: str) -> None:
    for i, value in enumerate(values):
        if not isinstance(value, torch.Tensor):
            raise PipeliningMetadataError(
                f"{words}[{i}] has type {type(value).__name__}. All stage args must be tensors. Use kwargs for "
                "non-tensor inputs."
            )


class _PipelineStageBase:
    """Base of stages: position in the pipeline, and forward and backward of one microbatch."""

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        group: Any = None,
        dw_builder: Callable[[], Callable[..., None]] | None = None,
    ) -> None:
        if stage_index >= num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device, self.group, self.dw_builder = torch.device(device), group, dw_builder
        self.group_rank, self.group_size = dist.get_rank(group), dist.get_world_size(group)
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}"
            )
        self.stage_index_to_group_rank = generate_stage_to_rank_mapping(self.group_size, num_stages)
        self.log_prefix = f"[Stage {stage_index}]"
        self._running: dict[int, tuple[Tensors, Tensors]] = {}  # by microbatch the inputs that wait for a gradient
        self._owed: dict[int, list[_split_backward.Root]] = {}  # by microbatch where the weights' gradients begin
        self._runners: dict[int, Callable[..., None]] = {}  # those of `dw_builder`

    @property
    def is_first(self) -> bool:
        """True for the first stage, which gets the model's inputs."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """True for the last stage, which has the model's outputs and the loss."""
        return self.stage_index == self.num_stages - 1

    def clear_runtime_states(self) -> None:
        """Drop unfinished microbatches."""
        for held in (self._running, self._owed, self._runners):
            held.clear()

    def scale_grads(self, grad_scale_factor: int) -> None:
        """Divide the gradients of the parameters."""
        if grad_scale_factor != 1:
            for parameter in self.submod.parameters():
                if parameter.grad is not None:
                    parameter.grad.div_(grad_scale_factor)

    # -- one microbatch

    def forward_one_chunk(self, fwd_chunk_id: int, args: Tensors, kwargs: dict[str, Any] | None = None) -> Any:
        """Return the module's result for one microbatch; inputs from an earlier stage are leaves of a separate
        graph.

        `fwd_chunk_id` has no effect on the result; subclasses may use it.
        """
        if self.is_first:
            _check_tensors(args, f"Stage {self.stage_index}: arg")
        with self._defer_gradient_sync():
            output = self.submod(*args, **(kwargs or {}))
        _check_tensors(as_tuple(output), f"Stage {self.stage_index}: output")
        return output

    def keep_for_backward(self, chunk_id: int, args: Tensors, outputs: Tensors) -> None:
        """Save the roots and leaves of this microbatch's backward."""
        self._running[chunk_id] = args, outputs

    def backward_one_chunk(
        self,
        bwd_chunk_id: int,
        loss: Any = None,
        full_backward: bool = True,
        last_backward: bool = False,
        grads: Tensors = (),
    ) -> Tensors:
        """Return the gradients of the stage's inputs (or None), from a loss or from those of the outputs.

        full_backward: also compute the parameters' gradients; otherwise `backward_weight_one_chunk` does.
        last_backward: no other microbatch accumulates into the parameters' gradients after this.
        """
        args, outputs = self._running.pop(bwd_chunk_id)
        if loss is not None:
            roots = [(loss, None)]
        else:
            pairs = zip(outputs, grads, strict=True)
            roots = [(out, grad) for out, grad in pairs if grad is not None and out.requires_grad]
        inputs = [] if self.is_first else [x for x in args if x.requires_grad]
        if self.dw_builder is not None:
            # Its backward defers the weights to a function, which runs when it is due.
            self._runners[bwd_chunk_id], full_backward = self.dw_builder(), True
        if full_backward:
            self._accumulate_gradients(lambda: _run_stage_backward(roots), outputs, last_backward and bool(roots))
            found: Tensors = tuple(x.grad for x in inputs)
        else:
            found, self._owed[bwd_chunk_id] = _split_backward.backward_input(roots, inputs)
        given = iter(found)
        return () if self.is_first else tuple(next(given) if x.requires_grad else None for x in args)

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> None:
        """Compute the parameters' gradients that `backward_one_chunk` deferred."""
        if self.dw_builder is not None:
            if bwd_chunk_id not in self._runners:
                raise AssertionError(
                    f"{self.log_prefix} Attempted to run backward_weight_one_chunk for chunk {bwd_chunk_id} without "
                    "first calling `backward_one_chunk(full_backward=False)`"
                )
            self._runners.pop(bwd_chunk_id)()
            return
        left = self._owed.pop(bwd_chunk_id)
        self._accumulate_gradients(
            lambda: _split_backward.backward_weight(left), [edge for edge, _ in left], last_backward
        )

    # -- data parallel modules, whose gradients are reduced once for all microbatches

    @contextlib.contextmanager
    def _defer_gradient_sync(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if isinstance(self.submod, torch.nn.parallel.DistributedDataParallel):
                stack.enter_context(self.submod.no_sync())
            yield

    def _accumulate_gradients(self, backward: Callable[[], None], outputs: Any, last: bool) -> None:
        module = self.submod
        if isinstance(module, torch.nn.parallel.DistributedDataParallel) and last and module.reducer is not None:
            module.reducer.prepare(list(outputs) if module.find_unused_parameters else None)
        elif hasattr(module, "set_requires_gradient_sync"):  # fully_shard's
            module.set_is_last_backward(last)
            module.set_reshard_after_backward(last)
            module.set_requires_gradient_sync(last)
        backward()


def _run_stage_backward(roots: list[_split_backward.Root]) -> None:
    if roots:
        tensors, grads = zip(*roots, strict=True)
        torch.autograd.backward(tensors, grads)


class PipelineStage(_PipelineStageBase):
    """Stage of a pipeline.

    Its inputs are the result of the stage before, a tensor or a tuple. The first microbatch determines the shapes and
    dtypes
    between stages. The stages are assigned to the ranks in turn.

    Args:
        submodule: The stage's module.
        stage_index: Its number.
        num_stages: The number of all stages.
        device: The device.
        input_args: Example inputs, which the first microbatch is checked against. Default: none.
        output_args: Example outputs, which the first microbatch is checked against. Default: none.
        output_grads: Has no effect: a gradient has its tensor's shape.
        input_grads: Has no effect: a gradient has its tensor's shape.
        group: The group. Default: the default group.
        dw_builder: Called for each microbatch; returns a function that computes the gradients of the weights, for a
            module
            whose backward leaves them out. Default: none.
        get_mesh: Not supported: stages do not exchange DTensors.

    Raises:
        ValueError: There is no such stage.
        RuntimeError: There are more ranks than stages.
        NotImplementedError: ``get_mesh`` is given.

    Example:
        >>> from torchlite.distributed.pipelining import PipelineStage, ScheduleGPipe
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> model = torch.nn.Linear(2, 1)
        >>> schedule = ScheduleGPipe(PipelineStage(model, 0, 1, "cpu"), 2, loss_fn=torch.nn.functional.mse_loss)
        >>> losses = []
        >>> schedule.step(torch.ones(4, 2), target=torch.zeros(4, 1), losses=losses).shape, len(losses)
        (torch.Size([4, 1]), 2)
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Any = None,
        output_args: Any = None,
        output_grads: Any = None,
        input_grads: Any = None,
        group: Any = None,
        dw_builder: Callable[[], Callable[..., None]] | None = None,
        get_mesh: Any = None,
    ) -> None:
        super().__init__(submodule, stage_index, num_stages, device, group, dw_builder)
        if get_mesh is not None:
            raise NotImplementedError("PipelineStage(): get_mesh: stages pass plain tensors on, not DTensors")
        self._expected = {
            "input": None if input_args is None else as_tuple(input_args),
            "output": None if output_args is None else as_tuple(output_args),
        }

    def check(self, kind: str, values: Tensors) -> None:
        """Compares tensors with the stage's examples.

        Args:
            kind: ``"input"`` or ``"output"``.
            values: The tensors.

        Raises:
            PipeliningMetadataError: Numbers, shapes or dtypes differ.
        """
        expected = self._expected[kind]
        if expected is None:
            return
        if len(expected) != len(values):
            raise PipeliningMetadataError(
                f"Stage {self.stage_index}: expected {len(expected)} {kind}s, got {len(values)}"
            )
        for i, (reference, value) in enumerate(zip(expected, values, strict=True)):
            for what, want, have in (
                ("shape", tuple(reference.shape), tuple(value.shape)),
                ("dtype", reference.dtype, value.dtype),
            ):
                if want != have:
                    raise PipeliningMetadataError(
                        f"Stage {self.stage_index}: {kind}[{i}] has a {what} mismatch: expected {want} actual {have}"
                    )


def build_stage(
    stage_module: Module, stage_index: int, pipe_info: PipeInfo, device: Any, group: Any = None
) -> PipelineStage:
    """Returns a stage of a model that `pipeline` split.

    Args:
        stage_module: The stage's module.
        stage_index: Its number.
        pipe_info: What ``pipe.info()`` returns.
        device: The device.
        group: The group. Default: the default group.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.pipelining import build_stage, pipeline
        >>> pipe = pipeline(torch.nn.Linear(2, 1), (torch.ones(4, 2),))
        >>> build_stage(pipe.get_stage_module(0), 0, pipe.info(), "cpu").is_last
        True
        >>> dist.destroy_process_group()
    """
    return PipelineStage(stage_module, stage_index, pipe_info.num_stages, device, group=group)
