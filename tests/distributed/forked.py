"""A rank whose forked child uses its process group, and ranks that come late to another group: `forked.py HOW`."""

from __future__ import annotations

import os
import sys
import time
import warnings
from datetime import timedelta

import torchlite as torch
import torchlite.distributed as dist


def child(work):
    """The exit code of a child in which each call is refused."""
    x = torch.ones(5)
    calls = [
        lambda: dist.all_reduce(x), lambda: dist.all_reduce(x, async_op=True), lambda: dist.send(x, 1),
        lambda: dist.recv(x, 1), lambda: dist.recv(x), lambda: dist.barrier(), lambda: dist.broadcast(x, 0),
        lambda: dist.all_gather_object([None, None], 1), lambda: dist.all_reduce(x.t()), lambda: dist.new_group([0, 1]),
        lambda: dist.monitored_barrier(), lambda: work.wait(), lambda: again(),
    ]  # fmt: skip
    for i, call in enumerate(calls):
        try:
            call()
        except RuntimeError as error:
            if "does not survive a fork" in str(error) and x.tolist() == [1.0] * 5:
                continue
            sys.stdout.write(f"call {i}: {error!r}\n")
        return i + 10
    return 0


def again():
    dist.destroy_process_group()
    dist.init_process_group("gloo", timeout=timedelta(seconds=2))


def forked(rank):
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    x = torch.ones(5)
    for call in (dist.all_reduce, lambda x: dist.broadcast(x, 0), lambda x: dist.all_reduce(x.clone(), async_op=True)):
        call(x)  # prepared before the fork
    dist.send(x, 1 - rank) if rank == 0 else dist.recv(x, 1 - rank)
    late = torch.zeros(1 << 20)
    work = dist.all_reduce(late, async_op=True) if rank == 0 else None
    if rank == 0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            process = os.fork()
        if process == 0:
            os._exit(child(work))
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        sys.stdout.write(f"child {code}\n")
    else:
        work = dist.all_reduce(late, async_op=True)
    work.wait()
    for _ in range(100):
        x = torch.ones(5) * (rank + 1)
        dist.all_reduce(x)
        assert x.tolist() == [3.0] * 5
    dist.barrier()
    sys.stdout.write(f"right {rank}\n")


def late(rank):
    """Rank 1 gives up before rank 0 comes, who gives up too; then both come."""
    dist.init_process_group("gloo")
    dist.destroy_process_group()
    for attempt in range(2):
        time.sleep(2.5 if rank == 0 and attempt == 0 else 0)
        try:
            begin = time.monotonic()
            dist.init_process_group("gloo", timeout=timedelta(seconds=1 if attempt == 0 else 30))
        except dist.DistError as error:
            sys.stdout.write(f"rank {rank} gave up {time.monotonic() - begin < 2} {type(error).__name__}\n")
            assert not dist.is_initialized()
            time.sleep(3.5 if rank == 1 else 0)
            continue
        break
    x = torch.ones(3) * rank
    dist.all_reduce(x)
    sys.stdout.write(f"rank {rank} has {x.tolist()}\n")


def alone(rank):
    """Rank 1 gives up and ends; rank 0 comes afterwards."""
    dist.init_process_group("gloo")
    dist.destroy_process_group()
    time.sleep(2.5 if rank == 0 else 0)
    begin = time.monotonic()
    try:
        dist.init_process_group("gloo", timeout=timedelta(seconds=1))
    except dist.DistError:
        sys.stdout.write(f"rank {rank} gave up {time.monotonic() - begin < 2}\n")


if __name__ == "__main__":
    {"forked": forked, "late": late, "alone": alone}[sys.argv[1]](int(os.environ["RANK"]))
