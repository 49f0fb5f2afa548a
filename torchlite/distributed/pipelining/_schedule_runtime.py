"""Execution of a pipeline step on one rank: its actions in order, and the messages in between.

Messages between two ranks are sent in the sender's order, and received in it, even if they are needed in another. The
order alone therefore identifies a message. Sends are not waited for before the step's end, so that they cannot cause a
deadlock that the action order does not have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import torchlite as torch
import torchlite.distributed as dist

from ._pipeline_orders import (
    BACKWARD,
    FORWARD,
    INPUTS,
    WEIGHTS,
    Action,
    PipelineOrder,
    messages_between_ranks,
    provided_action,
    required_action,
)
from ._utils import PipeliningMetadataError
from .stage import PipelineStage, Tensors, as_tuple

_TAG = 1  # of messages between stages


class TensorSpec(NamedTuple):
    """Shape, dtype and requires_grad of a tensor to receive. One without requires_grad gets no gradient."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    requires_grad: bool


TensorSpecs = tuple[TensorSpec | None, ...]


def _dtypes() -> list[torch.dtype]:
    found = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    return sorted(found, key=str)


def _encode_specs(kinds: TensorSpecs) -> list[int]:
    places = {dtype: place for place, dtype in enumerate(_dtypes())}
    numbers = [len(kinds)]
    for kind in kinds:
        if kind is None:
            numbers.append(-1)
        else:
            numbers += [places[kind.dtype], int(kind.requires_grad), len(kind.shape), *kind.shape]
    return numbers


def _decode_specs(numbers: list[int]) -> TensorSpecs:
    dtypes, rest = _dtypes(), iter(numbers)
    kinds: list[TensorSpec | None] = []
    for _ in range(next(rest)):
        place = next(rest)
        if place < 0:
            kinds.append(None)
            continue
        required, length = bool(next(rest)), next(rest)
        kinds.append(TensorSpec(tuple(next(rest) for _ in range(length)), dtypes[place], required))
    return tuple(kinds)


class P2PMessenger:
    """Point-to-point messages between this rank and others of the group. The first one of an action has the tensor
    specs.
    """

    def __init__(
        self, group: Any, device: torch.device, order: PipelineOrder, rank_of: dict[int, int], has_backward: bool
    ) -> None:
        self.group, self.device, self.has_backward = group, device, has_backward
        self.me = dist.get_rank(group)
        self.last = max(rank_of)
        self.rank_of = rank_of
        self.plan = messages_between_ranks(order, rank_of)
        self.sent: dict[Action, TensorSpecs] = {}
        self.known: dict[Action, TensorSpecs] = {}
        self.begin()

    def begin(self) -> None:
        """Begin a step: nothing is received yet."""
        self.coming = {source: deque(work) for (source, to), work in self.plan.items() if to == self.me}
        self.arriving: dict[Action, tuple[list[Any], Tensors]] = {}
        self.leaving: list[Any] = []

    def source_of(self, action: Action) -> tuple[Action, int] | None:
        """Return the remote action that this action depends on."""
        wanted = required_action(action, self.last)
        if wanted is None or self.rank_of[wanted.stage_index] == self.me:
            return None
        return wanted, self.rank_of[wanted.stage_index]

    def send(self, work: Action, to: int, tensors: Tensors) -> None:
        """Start sending the results of an action. PipeliningMetadataError if their specs changed."""
        if any(hasattr(tensor, "placements") for tensor in tensors):
            raise PipeliningMetadataError(
                f"Stage {work.stage_index} gives a DTensor: between stages go tensors, which to_local() and a layer's "
                "use_local_output=True give"
            )
        kinds = tuple(None if t is None else self._spec_of(t) for t in tensors)
        before = self.sent.get(work)
        if before is None:
            self.sent[work] = kinds
            numbers = torch.tensor(_encode_specs(kinds), dtype=torch.int64, device=self.device)
            self._start_send(torch.tensor([len(numbers)], device=self.device), to)
            self._start_send(numbers, to)
        elif before != kinds:
            tensors = self._match_specs(work, before, tensors)
        for tensor in tensors:
            if tensor is not None:
                self._start_send(tensor.detach().contiguous(), to)

    def _spec_of(self, tensor: torch.Tensor) -> TensorSpec:
        return TensorSpec(tuple(tensor.shape), tensor.dtype, self.has_backward and tensor.requires_grad)

    def _match_specs(self, work: Action, before: TensorSpecs, tensors: Tensors) -> Tensors:
        """Return tensors with the expected specs: a missing gradient becomes zeros."""
        what = "output" if work.computation_type == FORWARD else "input gradient"
        words = f"Stage {work.stage_index}: {what}"
        if len(before) != len(tensors):
            raise PipeliningMetadataError(f"{words}s changed: there were {len(before)}, now {len(tensors)}")
        outputs = []
        for i, (kind, tensor) in enumerate(zip(before, tensors, strict=True)):
            if tensor is None and kind is not None:
                tensor = torch.zeros(kind.shape, dtype=kind.dtype, device=self.device)
            elif tensor is not None:
                if kind is None:
                    raise PipeliningMetadataError(f"{words}[{i}] was None in the first step, and is none now")
                for name, want, have in zip(TensorSpec._fields, kind, self._spec_of(tensor), strict=True):
                    if want != have:
                        raise PipeliningMetadataError(
                            f"{words}[{i}] has a {name} mismatch: expected {want} actual {have}"
                        )
            outputs.append(tensor)
        return tuple(outputs)

    def _start_send(self, tensor: torch.Tensor, to: int) -> None:
        self.leaving.append(dist.isend(tensor, group=self.group, group_dst=to, tag=_TAG))

    def ask(self, work: Action, source: int) -> None:
        """Start receiving everything up to these results."""
        while work not in self.arriving:
            following = self.coming[source].popleft()
            if following not in self.known:
                self.known[following] = self._receive_specs(source)
            buffers: list[Any] = []
            works = []
            for kind in self.known[following]:
                if kind is None:
                    buffers.append(None)
                    continue
                buffer = torch.empty(kind.shape, dtype=kind.dtype, device=self.device)
                works.append(dist.irecv(buffer, group=self.group, group_src=source, tag=_TAG))
                buffers.append(buffer)
            self.arriving[following] = works, tuple(buffers)

    def expect(self, work: Action, source: int) -> None:
        """Start receiving these results early if that does not block."""
        if work not in self.arriving and all(one in self.known for one in self.coming[source]):
            self.ask(work, source)

    def _receive_specs(self, source: int) -> TensorSpecs:
        length = torch.empty(1, dtype=torch.int64, device=self.device)
        dist.recv(length, group=self.group, group_src=source, tag=_TAG)
        numbers = torch.empty(int(length.item()), dtype=torch.int64, device=self.device)
        dist.recv(numbers, group=self.group, group_src=source, tag=_TAG)
        return _decode_specs(numbers.tolist())

    def take(self, work: Action, source: int) -> Tensors:
        """Wait for the results of another rank's action, and return them."""
        self.ask(work, source)
        works, buffers = self.arriving.pop(work)
        for one in works:
            one.wait()
        return buffers

    def requires_grad(self, work: Action) -> list[bool]:
        """Return which results of another rank's action require gradients."""
        return [kind is not None and kind.requires_grad for kind in self.known[work]]

    def give_up(self) -> None:
        """Abort a failed step: its receives must not match messages of the next."""
        for works, _ in self.arriving.values():
            for work in works:
                work.abort()

    def finish(self) -> None:
        """Wait until everything is sent."""
        for work in self.leaving:
            work.wait()
        self.leaving = []


class ScheduleRunner:
    """Runs a rank's part of a schedule repeatedly."""

    def __init__(
        self, stages: list[PipelineStage], order: PipelineOrder, rank_of: dict[int, int], has_backward: bool
    ) -> None:
        self.stages = {stage.stage_index: stage for stage in stages}
        first = stages[0]
        if not has_backward:
            order = {rank: [a for a in work if a.computation_type == FORWARD] for rank, work in order.items()}
        self.post = P2PMessenger(first.group, first.device, order, rank_of, has_backward)
        self.actions, self.has_backward = order[first.group_rank], has_backward
        ends = {}
        for action in self.actions:
            if action.computation_type in (BACKWARD, WEIGHTS):
                ends[action.stage_index] = action
        self.lasts = set(ends.values())

    def run(
        self,
        args: list[tuple],
        kwargs: list[dict[str, Any]],
        loss_of: Callable[[Any, int], Any] | None,
        keeps_outputs: bool,
    ) -> tuple[list[Any], list[Any]]:
        """Run a step; return the last stage's outputs and losses by microbatch, if it is on this rank."""
        self.args, self.kwargs, self.loss_of, self.keeps_outputs = args, kwargs, loss_of, keeps_outputs
        self.outputs: list[Any] = [None] * len(args)
        self.losses: list[Any] = [None] * len(args)
        self.local: dict[Action, Tensors] = {}  # results between stages of this rank
        self.post.begin()
        try:
            self._run_all()
            return self.outputs, self.losses
        except BaseException:
            self.post.give_up()
            raise
        finally:  # a schedule is long-lived, its last step's tensors are not
            self.args, self.kwargs, self.outputs, self.losses = [], [], [], []
            self.local.clear()

    def _run_all(self) -> None:
        sources = [self.post.source_of(action) for action in self.actions]
        for place, action in enumerate(self.actions):
            if sources[place] is not None:
                self.post.ask(*sources[place])
            following = next((found for found in sources[place + 1 :] if found is not None), None)
            if following is not None:
                self.post.expect(*following)
            results = self._run_action(action, sources[place])
            self._send_results(provided_action(action), results)
        self.post.finish()

    def _run_action(self, action: Action, source: tuple[Action, int] | None) -> Tensors:
        stage, kind, m = self.stages[action.stage_index], action.computation_type, action.microbatch_index
        last = action in self.lasts
        if kind == FORWARD:
            return self._run_forward(stage, m, source)
        if kind == WEIGHTS:
            stage.backward_weight_one_chunk(m, last_backward=last)
            return ()
        loss, grads = None, ()
        if stage.is_last:
            loss = self.losses[m]
        else:
            grads = self._take_stage_results(action, source)
        full = kind != INPUTS
        found = stage.backward_one_chunk(m, loss, full_backward=full, last_backward=last, grads=grads)
        if full and stage.dw_builder is not None:
            stage.backward_weight_one_chunk(m, last_backward=last)
        return found

    def _take_stage_results(self, action: Action, source: tuple[Action, int] | None) -> Tensors:
        """Return the results of another stage for this action."""
        if source is not None:
            return self.post.take(*source)
        wanted = required_action(action, self.post.last)
        assert wanted is not None
        return self.local.pop(wanted)

    def _run_forward(self, stage: PipelineStage, m: int, source: tuple[Action, int] | None) -> Tensors:
        if stage.is_first:
            inputs = self.args[m]
        else:
            given = self._take_stage_results(Action(stage.stage_index, FORWARD, m), source)
            wants = [t.requires_grad for t in given] if source is None else self.post.requires_grad(source[0])
            inputs = tuple(
                t.detach().requires_grad_(want and self.has_backward) for t, want in zip(given, wants, strict=True)
            )
        stage.check("input", inputs)
        output = stage.forward_one_chunk(m, inputs, self.kwargs[m])
        results = as_tuple(output)
        stage.check("output", results)
        if stage.is_last:
            self.outputs[m] = output if self.keeps_outputs else None
            self.losses[m] = self.loss_of(output, m) if self.loss_of is not None else None
        if self.has_backward:
            stage.keep_for_backward(m, inputs, () if stage.is_last else results)
        return results

    def _send_results(self, action: Action, results: Tensors) -> None:
        stage, kind, _ = action
        target = {FORWARD: stage + 1, BACKWARD: stage - 1}.get(kind, -1)
        if not 0 <= target <= self.post.last:
            return
        rank = self.post.rank_of[target]
        if rank == self.post.me:
            self.local[action] = results
        else:
            self.post.send(action, rank, results)
