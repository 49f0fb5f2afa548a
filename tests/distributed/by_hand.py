"""A program of ranks that nothing of MPI started: `by_hand.py KIND ADDRESS RANK SIZE SECONDS [STEPS]`.

It trains a small model by DistributedDataParallel over equal shares of a batch, and prints the losses of the batch.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta

import torchlite as torch
import torchlite.distributed as dist


def join(kind, address, rank, size, limit):
    if kind == "env":
        dist.init_process_group("gloo", timeout=limit)
    elif kind == "store":
        host, _, port = address.rpartition(":")
        store = dist.TCPStore(host, int(port), size, rank == 0, limit, wait_for_workers=False)
        dist.init_process_group("mpi", store=store, rank=rank, world_size=size, timeout=limit)
    else:
        dist.init_process_group("gloo", f"{kind}://{address}", rank=rank, world_size=size, timeout=limit)


def losses(rank, size, steps):
    """The losses of `steps` steps; a rank has its share of the batch. Without a process group, those of one process."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    x = torch.randn(24, 6)
    y = x.sum(1, keepdim=True).sin()
    if dist.is_initialized():
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x[rank::size]), y[rank::size])
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        if dist.is_initialized():
            dist.all_reduce(mean)
        found.append(mean.item() / size)
    return found


def main():
    kind, address, rank, size, seconds, *steps = sys.argv[1:]
    rank, size = int(rank), int(size)
    join(kind, address, rank, size, timedelta(seconds=float(seconds)))
    assert (dist.get_rank(), dist.get_world_size()) == (rank, size)
    pair = dist.new_group([0, 1])
    if rank < 2:
        dist.barrier(pair)
    dist.barrier()
    sys.stdout.write("joined\n")
    sys.stdout.flush()
    sys.stdout.write(f"losses {json.dumps(losses(rank, size, int(steps[0]) if steps else 5))}\n")
    sys.stdout.flush()
    dist.destroy_process_group()
    if kind == "store":
        dist.init_process_group("gloo")  # the same world again
    else:
        join(kind, address, rank, size, timedelta(seconds=float(seconds)))
    x = torch.ones(1)
    dist.all_reduce(x)
    assert x.item() == size
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
