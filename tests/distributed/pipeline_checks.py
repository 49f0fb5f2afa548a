"""Pipelines against the same model in one process, in double precision where gradients add up in another order: checks
for a world of two to four ranks.
"""

from __future__ import annotations

import copy

import pytest

import torchlite as torch
import torchlite.distributed as dist
from torchlite import nn
from torchlite.distributed import pipelining
from torchlite.distributed.fsdp import fully_shard
from torchlite.distributed.pipelining import _pipeline_orders
from torchlite.distributed.pipelining._pipeline_orders import (
    BACKWARD,
    FORWARD,
    WEIGHTS,
    Action,
    PipelineOrder,
    provided_action,
    required_action,
)
from torchlite.distributed.pipelining._utils import PipeliningMetadataError, generate_rank_to_stage_mapping
from torchlite.distributed.pipelining.schedules import PipelineScheduleSingle, get_schedule_class
from torchlite.nn import functional as F
from torchlite.nn.parallel import DistributedDataParallel as DDP

ALL = ["GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble"]


class Part(nn.Module):
    """Takes and returns a tensor that requires a gradient, one that does not, and one of integers."""

    def __init__(self, number):
        super().__init__()
        self.number = number
        self.one, self.two, self.norm = nn.Linear(6, 8), nn.Linear(8, 6), nn.LayerNorm(6)

    def forward(self, x, fixed=None, place=None, *, factor=1.0):
        if fixed is None:
            fixed, place = torch.ones_like(x), torch.zeros(x.shape[0], dtype=torch.int64)
        x = x + self.two(torch.tanh(self.one(self.norm(x)))) * fixed * factor
        x = x + self.one.weight[:6].sum(1)  # a parameter used twice
        return x, fixed * 1.5, place + 1


class Last(Part):
    """The last stage gives one tensor, and does not use all that it gets."""

    def forward(self, x, fixed=None, place=None, *, factor=1.0):
        return super().forward(x, fixed, None if fixed is None else place, factor=factor)[0].transpose(0, 1).t()


class Whole(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = nn.ModuleList(parts).double()

    def forward(self, x, **kwargs):
        values = (x,)
        for part in self.parts[:-1]:
            values = part(*values, **kwargs)
        return self.parts[-1](*values, **kwargs)


def scheduled(name, parts, microbatches, group=None, wrap=lambda part: part, **options):
    """A schedule of this rank's copies of a model's parts, and the copies by their numbers."""
    kind = get_schedule_class(name)
    style = "v" if name.startswith("ZBV") else "loop"
    mine = generate_rank_to_stage_mapping(dist.get_world_size(group), len(parts), style)[dist.get_rank(group)]
    copies = {n: wrap(copy.deepcopy(parts[n])) for n in mine}
    stages = [pipelining.PipelineStage(part, n, len(parts), "cpu", group=group) for n, part in copies.items()]
    stages = stages[0] if issubclass(kind, PipelineScheduleSingle) else stages
    return kind(stages, microbatches, **options), copies


def stepped(schedule, x, y, **kwargs):
    """A step with what each rank has to give: its outputs and losses."""
    losses = []
    stages = schedule._stages
    out = schedule.step(
        *([x] if any(s.is_first for s in stages) else []),
        target=y if any(s.is_last for s in stages) else None,
        losses=losses,
        **kwargs,
    )
    return out, losses


def loss_of(output, target):
    return F.mse_loss(output, target) * 10


def same_gradients(copies, whole):
    for number, part in copies.items():
        for (name, mine), theirs in zip(part.named_parameters(), whole.parts[number].parameters(), strict=True):
            assert mine.grad is not None, (number, name)
            torch.testing.assert_close(mine.grad, theirs.grad, atol=1e-10, rtol=1e-10, msg=f"{number} {name}")


def gradients_are_those_of_one_process(rank, size):
    for name in ALL:
        each = 1 if name in ("GPipe", "1F1B") else 2
        whole = Whole([Part(n) for n in range(size * each - 1)] + [Last(size * each - 1)])
        microbatches = 2 * size
        schedule, copies = scheduled(name, whole.parts, microbatches, loss_fn=loss_of)
        for step in range(2):
            x, y = torch.randn(2, microbatches * 3, 6, dtype=torch.float64)
            out, losses = stepped(schedule, x, y, factor=0.5)
            wanted = whole(x, factor=0.5)
            loss = loss_of(wanted, y)
            for parameter in whole.parameters():
                parameter.grad = None
            loss.backward()
            same_gradients(copies, whole)
            if any(s.is_last for s in schedule._stages):
                torch.testing.assert_close(out, wanted, atol=1e-6, rtol=1e-5)
                assert len(losses) == microbatches and abs(sum(losses).item() / microbatches - loss.item()) < 1e-5
            else:
                assert out is None and losses == []
            for part in copies.values():
                part.zero_grad()
        with torch.no_grad():  # evaluation between steps, without and with a graph
            evaluated = schedule.eval(*([x] if 0 in copies else []), factor=0.5)
            if evaluated is not None:
                torch.testing.assert_close(evaluated, wanted, atol=1e-6, rtol=1e-5)


def gradients_add_up_unscaled_and_in_pieces_of_other_sizes(rank, size):
    whole = Whole([Part(n) for n in range(size - 1)] + [Last(size - 1)])
    for name in ("GPipe", "1F1B"):
        sums = lambda output, target: (output - target).square().sum()
        schedule, copies = scheduled(name, whole.parts, size + 1, loss_fn=sums, scale_grads=False)
        for parameter in whole.parameters():
            parameter.grad = None
        for _ in range(2):
            x, y = torch.randn(2, 3 * (size + 1) - 1, 6, dtype=torch.float64)  # the last microbatch is shorter
            stepped(schedule, x, y)
            sums(whole(x), y).backward()
        same_gradients(copies, whole)
        if size == 2:
            x, y = torch.randn(2, 4 * (size + 1), 6, dtype=torch.float64)
            if rank == 0:
                with pytest.raises(
                    PipeliningMetadataError, match=r"output\[0\] has a shape mismatch: expected \(3, 6\)"
                ):
                    stepped(schedule, x, y)
    dist.barrier()


class Frozen(nn.Linear):
    """Nothing in it, or before it, wants a gradient."""

    def __init__(self):
        super().__init__(6, 6)
        self.requires_grad_(False)


class Forgetful(nn.Module):
    """Gives two tensors, of which the next stage uses one."""

    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x, *others):
        return self.used(x), self.unused(x)


class One(nn.Linear):
    def forward(self, x, *others):
        return super().forward(x)


def gradients_that_nobody_has(rank, size):
    for first in (Frozen(), Forgetful()):
        parts = [first, *(One(6, 6) for _ in range(size - 1))]
        for name in ("GPipe", "InterleavedZeroBubble"):
            schedule, copies = scheduled(name, parts, size, loss_fn=loss_of)
            whole = [copy.deepcopy(part) for part in parts]
            for _ in range(2):
                x, y = torch.randn(2, 2 * size, 6)
                stepped(schedule, x, y)
                out = (x,)
                for part in whole:
                    out = part(*out)
                    out = out if isinstance(out, tuple) else (out,)
                loss_of(out[0], y).backward()
                for wanted, parameter in zip(whole[rank].parameters(), copies[rank].parameters(), strict=True):
                    assert (parameter.grad is None) == (wanted.grad is None)
                    if wanted.grad is not None:
                        torch.testing.assert_close(parameter.grad, wanted.grad, atol=1e-6, rtol=1e-5)
                    parameter.grad = wanted.grad = None


class Marked(nn.Module):
    """A model that marks the ends of its stages; it has a value that skips a stage, and buffers."""

    def __init__(self, size):
        super().__init__()
        self.first, self.norm = nn.Linear(6, 8), nn.BatchNorm1d(8)
        self.middle = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(size - 2))
        self.last = nn.Linear(8, 3)

    def forward(self, x, shift):
        x = kept = self.norm(self.first(x))
        pipelining.pipe_split()
        for layer in self.middle:
            x = layer(x)
            pipelining.pipe_split()
        return self.last(x + kept).relu() + shift


def models_are_cut(rank, size):
    model = Marked(size)
    x, y, shift = torch.randn(size * 4, 6), torch.randn(size * 4, 3), torch.randn(size * 4, 1)
    pipe = pipelining.pipeline(copy.deepcopy(model), (x[:4],), {"shift": shift[:4]})
    assert pipe.num_stages == size
    names = [set(pipe.get_stage_module(n).state_dict()) for n in range(size)]
    assert set.union(*names) == set(model.state_dict()) and sum(map(len, names)) == len(model.state_dict())
    stage = pipe.build_stage(rank, torch.device("cpu"))
    schedule = pipelining.Schedule1F1B(stage, size, loss_fn=loss_of)
    out, _ = stepped(schedule, x, y, **({"shift": shift} if rank == 0 else {}))
    wanted = [model(part, move) for part, move in zip(x.chunk(size), shift.chunk(size), strict=True)]
    for part, target in zip(wanted, y.chunk(size), strict=True):
        (loss_of(part, target) / size).backward()
    if rank == size - 1:
        torch.testing.assert_close(out, torch.cat(wanted), atol=1e-6, rtol=1e-5)
    state = dict(model.named_parameters())
    for name, parameter in stage.submod.named_parameters():
        torch.testing.assert_close(parameter.grad, state[name].grad, atol=1e-6, rtol=1e-5)
    for name, buffer in stage.submod.named_buffers():
        torch.testing.assert_close(buffer, model.get_buffer(name))


def data_parallel_stages(rank, size):
    """Two pipelines of two stages, whose stages have their gradients in common; each has half of the batch."""
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
    group, replicas = mesh["pp"].get_group(), mesh["dp"].get_group()
    for name in ("GPipe", "1F1B", "Interleaved1F1B", "InterleavedZeroBubble"):
        count = 2 if name in ("GPipe", "1F1B") else 4
        whole = Whole([Part(n) for n in range(count - 1)] + [Last(count - 1)])
        wrap = lambda part: DDP(part, process_group=replicas)
        schedule, copies = scheduled(name, whole.parts, 4, group, wrap, loss_fn=loss_of)
        for _ in range(2):
            x, y = torch.randn(2, 16, 6, dtype=torch.float64)
            mine = slice(mesh["dp"].get_local_rank(), None, 2)
            stepped(schedule, x[mine], y[mine])
            for parameter in whole.parameters():
                parameter.grad = None
            loss_of(whole(x), y).backward()
            same_gradients({n: part.module for n, part in copies.items()}, whole)
            for part in copies.values():
                part.zero_grad()


def sharded_stages(rank, size):
    """Two pipelines of two stages, whose parameters are sharded over the pipelines."""
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
    group = mesh["pp"].get_group()
    for name in ("GPipe", "1F1B", "Interleaved1F1B"):
        count = 4 if name == "Interleaved1F1B" else 2
        whole = Whole([Part(n) for n in range(count - 1)] + [Last(count - 1)])
        wrap = lambda part: fully_shard(part, mesh=mesh["dp"])
        schedule, copies = scheduled(name, whole.parts, 4, group, wrap, loss_fn=loss_of)
        for _ in range(2):
            x, y = torch.randn(2, 16, 6, dtype=torch.float64)
            mine = slice(mesh["dp"].get_local_rank(), None, 2)
            stepped(schedule, x[mine], y[mine])
            for parameter in whole.parameters():
                parameter.grad = None
            loss_of(whole(x), y).backward()
            for number, part in copies.items():
                wanted = dict(whole.parts[number].named_parameters())
                for path, parameter in part.named_parameters():
                    found = parameter.grad.full_tensor()
                    torch.testing.assert_close(found, wanted[path].grad, atol=1e-10, rtol=1e-10)
                part.zero_grad()


def simulate_times(order: PipelineOrder, rank_of: dict[int, int], costs: dict[str, float]) -> dict[int, float]:
    """Return each rank's end time, given the cost of each kind of action. RuntimeError for a deadlock."""
    last = max(rank_of)
    ends: dict[Action, float] = {}
    clock, place = dict.fromkeys(order, 0.0), dict.fromkeys(order, 0)
    while any(place[rank] < len(order[rank]) for rank in order):
        moved = False
        for rank, actions in order.items():
            while place[rank] < len(actions):
                action = actions[place[rank]]
                wanted = required_action(action, last)
                own = [action._replace(computation_type=FORWARD)] if action.computation_type in "BI" else []
                own += [action._replace(computation_type=BACKWARD)] if action.computation_type == WEIGHTS else []
                before = [*own, *([] if wanted is None else [wanted])]
                if any(one not in ends for one in before):
                    break
                start = max([clock[rank], *(ends[one] for one in before)])
                clock[rank] = ends[provided_action(action)] = start + costs[action.computation_type]
                place[rank], moved = place[rank] + 1, True
        if not moved:
            raise RuntimeError(f"ranks wait for each other: {[order[r][place[r] :][:1] for r in order]}")
    return clock


def orders_have_no_circle(rank, size):
    """Every schedule ends, whatever the number of ranks, stages and microbatches; those without bubbles sooner."""
    costs = {"F": 1.0, "B": 2.0, "I": 1.0, "W": 1.0}
    for ranks in (1, 2, 3, 4, 8):
        for each in (1, 2, 3):
            for microbatches in (1, 2, ranks, 2 * ranks, 5 * ranks):
                rank_of = {stage: stage % ranks for stage in range(ranks * each)}
                orders = [_pipeline_orders.looped_breadth_first(ranks, each, microbatches)]
                orders += [
                    _pipeline_orders.interleaved_one_forward_one_backward(ranks, each, microbatches, halves)
                    for halves in (False, True)
                ]
                ends = [max(simulate_times(order, rank_of, costs).values()) for order in orders]
                assert ends[2] <= ends[1] and ends[2] >= 3 * each * microbatches
                for order in orders:
                    work = [action for actions in order.values() for action in actions]
                    assert len(set(work)) == len(work) and {a.stage_index for a in work} == set(rank_of)
        rank_of = {stage: min(stage, 2 * ranks - 1 - stage) for stage in range(2 * ranks)}
        for microbatches in (1, ranks, 3 * ranks):
            order = _pipeline_orders.zero_bubble_v(ranks, microbatches)
            assert all(len(work) == 6 * microbatches for work in order.values())
            end = max(simulate_times(order, rank_of, costs).values())
            assert microbatches < 2 * ranks or end == 6 * microbatches + ranks - 1
