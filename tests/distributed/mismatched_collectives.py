"""Ranks that disagree in a collective or a message: `python -m tests.distributed.mismatched_collectives` as a rank.

In each case rank 1 does something else than the others. All ranks must get an error (a receiver alone, where a message
does not fit), tensors stay as they were, and the group works afterwards.
"""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

import torchlite as torch
import torchlite.distributed as dist
from torchlite.distributed import ReduceOp

DETAIL = os.environ.get("TORCH_DISTRIBUTED_DEBUG") == "DETAIL"


def ones(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype)


def collectives(group, ranks):
    """By name a collective of the given elements and of a root or operation."""
    n, me = len(ranks), dist.get_rank(group)

    def mine(root, value):
        return value if me == root else None

    return {
        "all_reduce": lambda k, dt, how, **a: dist.all_reduce(
            ones(k, dtype=dt), (ReduceOp.SUM, ReduceOp.MAX)[how], group, **a
        ),
        "all_reduce_coalesced": lambda k, dt, how: dist.all_reduce_coalesced(
            [ones(k, dtype=dt), ones(2, dtype=dt)], (ReduceOp.SUM, ReduceOp.MAX)[how], group
        ),
        "reduce": lambda k, dt, how, **a: dist.reduce(ones(k, dtype=dt), group_dst=how, group=group, **a),
        "broadcast": lambda k, dt, how, **a: dist.broadcast(ones(k, dtype=dt), group_src=how, group=group, **a),
        "all_gather": lambda k, dt, how, **a: dist.all_gather(
            [ones(k, dtype=dt) for _ in range(n)], ones(k, dtype=dt), group, **a
        ),
        "all_gather_into_tensor": lambda k, dt, how, **a: dist.all_gather_into_tensor(
            ones(k * n, dtype=dt), ones(k, dtype=dt), group, **a
        ),
        "reduce_scatter_tensor": lambda k, dt, how, **a: dist.reduce_scatter_tensor(
            ones(k, dtype=dt), ones(k * n, dtype=dt), (ReduceOp.SUM, ReduceOp.MAX)[how], group, **a
        ),
        "reduce_scatter": lambda k, dt, how, **a: dist.reduce_scatter(
            ones(k, dtype=dt), [ones(k, dtype=dt) for _ in range(n)], (ReduceOp.SUM, ReduceOp.MAX)[how], group, **a
        ),
        "gather": lambda k, dt, how, **a: dist.gather(
            ones(k, dtype=dt), mine(how, [ones(k, dtype=dt) for _ in range(n)]), group_dst=how, group=group, **a
        ),
        "scatter": lambda k, dt, how, **a: dist.scatter(
            ones(k, dtype=dt), mine(how, [ones(k, dtype=dt) for _ in range(n)]), group_src=how, group=group, **a
        ),
        "all_to_all_single": lambda k, dt, how, **a: dist.all_to_all_single(
            ones(k * n, dtype=dt), ones(k * n, dtype=dt), group=group, **a
        ),
        "all_to_all": lambda k, dt, how, **a: dist.all_to_all(
            [ones(k, dtype=dt) for _ in range(n)], [ones(k, dtype=dt) for _ in range(n)], group, **a
        ),
        "barrier": lambda k, dt, how, **a: dist.barrier(group, **a),
    }  # fmt: skip


ROOTED = ("reduce", "broadcast", "gather", "scatter")
REDUCING = ("all_reduce", "all_reduce_coalesced", "reduce_scatter_tensor", "reduce_scatter")
# The same call to the engine in two forms: without DETAIL they match, and mean the same.
TWINS = ({"all_gather", "all_gather_into_tensor"}, {"reduce_scatter_tensor", "reduce_scatter"},
         {"all_to_all_single", "all_to_all"})  # fmt: skip


def disagreements(calls):
    """Return by name the collective of the others, that of rank 1, and a part of the error with DETAIL."""
    f32, large = torch.float32, 3000
    for name in calls:
        if name != "barrier":
            sizes = "Splits: Rank " if name.startswith("all_to_all") else "Tensor Tensor shapes: "
            yield f"{name}: size", (name, 2, f32, 0), (name, 3, f32, 0), sizes
            yield f"{name}: large size", (name, large, f32, 0), (name, large * 2, f32, 0), sizes
            yield f"{name}: none", (name, 4, f32, 0), (name, 0, f32, 0), sizes
            yield f"{name}: dtype", (name, 4, f32, 0), (name, 4, torch.int32, 0), "Tensor Tensor dtypes: "
            yield f"{name}: halves", (name, 4, torch.float16, 0), (name, 4, torch.bfloat16, 0), "Tensor Tensor dtypes: "
        if name in ROOTED:
            yield f"{name}: root", (name, 4, f32, 0), (name, 4, f32, 1), "Root rank: "
        if name in REDUCING:
            yield f"{name}: op", (name, 4, f32, 0), (name, 4, f32, 1), "Reduce op: "
        for other in calls:
            if other != name and not (not DETAIL and {name, other} in TWINS):
                yield f"{name} against {other}", (name, 4, f32, 0), (other, 4, f32, 0), "Op type: "


def check(name, call, group, words):
    with pytest.raises(RuntimeError) as caught:
        call()
    said = str(caught.value)
    assert "Detected mismatch between collectives on ranks. " in said, f"{name}: {said}"
    if DETAIL:
        assert caught.type is RuntimeError and "CollectiveFingerPrint(SequenceNumber=" in said, f"{name}: {said}"
        assert words in said, f"{name}: {said}"
    x = torch.tensor([dist.get_rank(group) + 1.0])
    dist.all_reduce(x, group=group)
    assert x.item() == sum(range(1, dist.get_world_size(group) + 1)), name


def all_cases(group, ranks):
    calls = collectives(group, ranks)
    odd = dist.get_rank(group) == 1
    count = 0
    for name, others, mine, words in disagreements(calls):
        call, *args = mine if odd else others
        check(name, lambda call=call, args=args: calls[call](*args), group, words)
        count += 1
        if name.partition(":")[2] in (" size", " dtype") and "coalesced" not in name:

            def begun(call=call, args=args):
                work = calls[call](*args, async_op=True)
                work.wait()

            check(f"{name}, async", begun, group, words)
    parts = [ones(2), ones(3)][:: -1 if odd else 1]  # of one size in all
    check("parts", lambda: dist.all_reduce_coalesced(parts, group=group), group, "Tensor Tensor shapes: ")
    return count + 1


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank, size = dist.get_rank(), dist.get_world_size()
    count = all_cases(None, list(range(size)))
    if size > 2:
        pair = dist.new_group([0, size - 1], timeout=timedelta(seconds=20))
        if rank in (0, size - 1):
            all_cases(pair, [0, size - 1])
    dist.barrier()
    if rank == 0:
        print(f"{count} disagreements")
    dist.destroy_process_group()
    print("agrees")


if __name__ == "__main__":
    main()
