"""Messages that do not fit, objects that are none, and ranks that do not come: `python -m
tests.distributed.mismatched_messages` as one of two ranks or more; ranks from 2 on only take part in the collectives.
"""

from __future__ import annotations

import os
import re
import time
from datetime import timedelta

import pytest

import torchlite as torch
import torchlite.distributed as dist

LARGE = 1 << 16
DETAIL = os.environ.get("TORCH_DISTRIBUTED_DEBUG") == "DETAIL"


def raises(call, *words):
    with pytest.raises(RuntimeError, match="|".join(map(re.escape, words))):
        call()


def received(rank, given, asked, words, how):
    """Rank 0 sends `given`, rank 1 asks for something else, and then both for the same."""
    if rank == 0:
        if how == "batch":
            for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, given, 1)]):
                work.wait()
        else:
            dist.send(given, 1, tag=3)
        dist.send(torch.arange(4.0), 1, tag=3)
    elif rank == 1:
        if how == "send":
            raises(lambda: dist.recv(asked, 0, tag=3), words)
        elif how == "any":
            raises(lambda: dist.recv(asked, tag=3), words)
        elif how == "async":
            work = dist.irecv(asked, 0, tag=3)
            raises(work.wait, words)
            assert work.is_completed() and words in str(work.exception())
        else:
            (work,) = dist.batch_isend_irecv([dist.P2POp(dist.irecv, asked, 0)])
            raises(work.wait, words)
        x = torch.zeros(4)
        dist.recv(x, 0, tag=3)
        assert x.tolist() == [0, 1, 2, 3], x


def messages(rank):
    for how in ("send", "any", "async", "batch"):
        for n in (3, LARGE):
            for given, asked in (
                (torch.ones(n), torch.zeros(n - 1)),
                (torch.ones(n), torch.zeros(n + 1)),
                (torch.ones(0), torch.zeros(n)),
                (torch.ones(n), torch.zeros(n, dtype=torch.int32)),
                (torch.ones(n), torch.zeros(n // 2 + 1, dtype=torch.float64)),
                (torch.ones(n).half(), torch.zeros(n).bfloat16()),
            ):
                words = f"message of {str(given.dtype)[6:]}, {given.nbytes} bytes, but Rank 1 expects a "
                received(rank, given, asked, words, how)
    dist.barrier()


def objects(rank):
    """Sizes that no object has, sent where objects are expected."""
    for declared in (-1, 1 << 62, (1 << 63) - 1):
        if rank == 0:
            dist.broadcast(torch.tensor([declared]), 0)
            dist.all_gather_into_tensor(torch.empty(dist.get_world_size(), dtype=torch.int64), torch.tensor([declared]))
            dist.send(torch.tensor([declared]), 1)
        else:
            raises(lambda: dist.broadcast_object_list([None], 0), "declares objects of")
            raises(lambda: dist.all_gather_object([None] * dist.get_world_size(), 1), "declares objects of")
            if rank == 1:
                raises(lambda: dist.recv_object_list([None], 0), "declares objects of")
    raises(lambda: dist.broadcast_object_list([1, 2] if rank == 1 else [1], 0), "Detected mismatch")
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, rank)
    assert found == list(range(len(found)))


def in_parts(rank, size):
    """Return exchanges with mismatched parts, and one with matching parts in two forms."""
    if size == 2:
        give, take = ([1, 3], [1, 1]) if rank == 0 else ([2, 1], [2, 1])
        out, x = torch.zeros(sum(take)), torch.ones(sum(give))
        raises(lambda: dist.all_to_all_single(out, x, take, give), "Detected mismatch")
        assert not out.any()
        out = torch.zeros(2 if rank == 0 else 4)  # rank 0 gives equal parts
        give, take = ([2, 2], [2, 0]) if rank == 0 else ([0, 2], [2, 2])
        dist.all_to_all_single(out, torch.full((sum(give),), rank + 1.0), take, give)
        assert out.tolist() == ([1, 1] if rank == 0 else [1, 1, 2, 2]), out
    counts = [3, 1] + [2] * (size - 2) if rank == 1 else [1, 3] + [2] * (size - 2)
    raises(lambda: dist.reduce_scatter(torch.zeros(counts[rank]), [torch.ones(n) for n in counts]), "Detected mismatch")


def overlapping(rank, size):
    """Return collectives that start at the same time and are waited for in different orders; one is mismatched."""
    xs = [torch.full((n + (n == 4 and rank == 1),), float(rank + 1)) for n in (1, 4, 2, LARGE)]
    works = {}
    for i, x in enumerate(xs):
        if DETAIL and i == 1:  # the fingerprints are compared at once
            raises(lambda x=x: dist.all_reduce(x, async_op=True), "Detected mismatch")
        else:
            works[i] = dist.all_reduce(x, async_op=True)
    order = range(4) if rank else reversed(range(4))
    for i in order:
        if i not in works:
            continue
        if i == 1:
            raises(works[i].wait, "Detected mismatch")
        else:
            works[i].wait()
            assert (xs[i] == sum(range(1, size + 1))).all()
    assert (xs[1] == rank + 1).all()  # nothing was written
    # A message that the other rank sends after a collective, which waits for this rank's part of it.
    x, y = torch.ones(LARGE), torch.zeros(1)
    work = dist.all_reduce(x, async_op=True)
    if rank == 0:
        dist.recv(y, 1)
    work.wait()
    if rank == 1:
        dist.send(y, 0)
    assert (x == size).all()


def late(rank, size):
    """Ranks that wait for each other in calls that do not meet: an error when the time is up."""
    group = dist.new_group(list(range(size)), timeout=timedelta(seconds=0.5))
    start, x = time.monotonic(), torch.ones(3)
    if rank == 0:
        raises(lambda: dist.recv(x, 1, group), "Timed out waiting 500ms for recv from rank 1")
    else:
        raises(lambda: dist.all_reduce(x, group=group), "Timed out waiting 500ms for")
    assert time.monotonic() - start < 10 and (x == 1).all()
    dist.barrier()
    group = dist.new_group(list(range(size)), timeout=timedelta(seconds=0.5))
    if rank == 0:
        raises(lambda: dist.monitored_barrier(group, timedelta(seconds=0.5)), "failed to pass monitoredBarrier")
    else:
        raises(lambda: dist.all_reduce(x, group=group), "Timed out waiting 500ms for")
    dist.barrier()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank, size = dist.get_rank(), dist.get_world_size()
    messages(rank)
    objects(rank)
    in_parts(rank, size)
    overlapping(rank, size)
    late(rank, size)
    print("agrees")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
