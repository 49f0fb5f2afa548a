"""Every collective with every dtype, reduction, group, root and layout: `python -m tests.distributed.collectives` as a
rank. `--device opencl` has the tensors there.
"""

from __future__ import annotations

import argparse
import itertools
import math

import torchlite as torch
import torchlite.distributed as dist
from tests.distributed.checked_collectives import DTYPES, KINDS, MOVED, REDUCING, Step, begin, ops_of
from torchlite.distributed import ReduceOp


def every(groups, device="cpu"):
    """The steps: each group does all that its dtypes have; sizes, roots and layouts take turns."""
    turn = itertools.count()
    shapes = [(5,), (), (0,), (2, 3), (33, 7), (1,), (1000,)]
    dtypes = DTYPES if device == "cpu" else DTYPES[::3]
    for kind, (group, members) in itertools.product(KINDS, groups):
        for dtype in dtypes if kind in REDUCING or device != "cpu" else [*dtypes, *MOVED]:
            for op in ops_of(dtype) if kind in REDUCING else [ReduceOp.SUM]:
                i = next(turn)
                shape = shapes[i % len(shapes)]
                yield Step(kind, group, members, dtype, shape, op, i % len(members), (7, i), i % 3 == 0, device)


def large(group, members):
    """Each collective with some sizes up to 10 MB for a rank."""
    for i, (kind, size) in enumerate(itertools.product(KINDS, (2**12, 2**16, 10 * 2**20))):
        count = size // 4 // (len(members) if "to" in kind or "gather" in kind or "scatter" in kind else 1)
        yield Step(kind, group, members, torch.float32, (count,), ReduceOp.SUM, i % len(members), (8, i))


def nothing_is_lost(groups):
    """Not a number stays where one has it, in the smallest and the largest, whatever the order of ranks."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for bad, op, dtype in itertools.product(
        range(size), (ReduceOp.MIN, ReduceOp.MAX), (torch.float32, torch.float64, torch.float16)
    ):
        x = torch.tensor([math.nan if rank == bad else 1.0, rank, math.inf], dtype=dtype)
        dist.all_reduce(x, op)
        assert math.isnan(x[0]) and x[1] == (0 if op is ReduceOp.MIN else size - 1) and x[2] == math.inf, x


def all_have_the_same_bits():
    """Sums of numbers that round: every rank has the same, each time."""
    torch.manual_seed(dist.get_rank())
    for count in (3, 1000, 100_003):
        given = torch.randn(count)
        first = given.clone()
        dist.all_reduce(first)
        again = given.clone()
        dist.all_reduce(again)
        assert torch.equal(first, again)
        others = [torch.empty_like(first) for _ in range(dist.get_world_size())]
        dist.all_gather(others, first)
        assert all(torch.equal(first, other) for other in others)


def small_ones_at_once_and_later():
    """Some ranks wait for each collective, others for many; sizes about the largest that goes with a header."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for turn, count in enumerate((1, 3, 255, 256, 257, 256 * size + 1)):
        waiting, expected = [], []
        for i in range(30):
            kind, async_op = i % 3, (i + rank + turn) % 4 > 0
            x = torch.arange(count) + float(rank + i)
            if kind == 0:
                work = dist.all_reduce(x, async_op=async_op)
                expected.append((x, torch.arange(count) * size + float(sum(range(size)) + i * size)))
            elif kind == 1:
                work = dist.broadcast(x, i % size, async_op=async_op)
                expected.append((x, torch.arange(count) + float(i % size + i)))
            else:
                out = torch.empty(count * size)
                work = dist.all_gather_into_tensor(out, x, async_op=async_op)
                expected.append((out, torch.cat([torch.arange(count) + float(r + i) for r in range(size)])))
            if work is not None:
                waiting.append(work)
        for work in waiting[::-1] if rank % 2 else waiting:
            work.wait()
        for got, wanted in expected:
            assert torch.equal(got, wanted), (got, wanted)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = [(dist.group.WORLD, list(range(size)))]
    for members in [m for m in ([0, size - 1], list(range(1, size))) if 1 <= len(set(m)) < size]:
        groups.append((dist.new_group(members), members))
    pending = []
    for i, step in enumerate(every(groups, device)):
        if rank in step.members:
            end = begin(step, async_op=bool(i % 2))
            pending.append(end) if i % 4 == 1 else end()
            if len(pending) > 3:
                pending.pop(i % 2)()
    for end in pending:
        end()
    if device == "cpu":
        for step in large(*groups[0]):
            begin(step, async_op=False)()
        nothing_is_lost(groups)
        all_have_the_same_bits()
        small_ones_at_once_and_later()
    dist.barrier()
    dist.destroy_process_group()
    print(f"rank {rank} of {size} agrees")


if __name__ == "__main__":
    main()
