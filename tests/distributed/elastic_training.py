"""A program of a run whose machines come and go: `elastic_training.py FOLDER [FAIL_AT]`.

It trains until the folder has the file "enough", with a checkpoint of each step, and appends each loss to the folder's
"losses". With FAIL_AT rank 1 fails once after that step.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta

import torchlite as torch
import torchlite.distributed as dist

ROWS = 24


def make():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    x = torch.randn(ROWS, 6)
    return model, torch.optim.Adam(model.parameters(), lr=0.002), x, x.sum(1, keepdim=True).sin()


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def losses(steps):
    """The losses of one process."""
    model, optimizer, x, y = make()
    return [step(model, optimizer, x, y).item() for _ in range(steps)]


def main():
    folder, fail_at = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else -1
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    model, optimizer, x, y = make()
    path, number = os.path.join(folder, "checkpoint"), 0
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        number = saved["step"]
    dist.barrier()
    parallel = torch.nn.parallel.DistributedDataParallel(model) if size > 1 else model
    goes = torch.ones(1)
    while goes.item():
        mean = step(parallel, optimizer, x[rank::size], y[rank::size])
        dist.all_reduce(mean)
        number += 1
        if rank == 0:  # the loss first: a step whose checkpoint exists has one
            words = {"step": number, "size": size, "restart": os.environ["TORCHELASTIC_RESTART_COUNT"]}
            with open(os.path.join(folder, "losses"), "a") as file:
                file.write(f"{json.dumps({**words, 'loss': mean.item() / size})}\n")
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": number}
            torch.save(state, f"{path}.new")
            os.replace(f"{path}.new", path)
        if rank == 1 and number == fail_at and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            raise ValueError("this rank is tired")
        goes.fill_(0.0 if os.path.exists(os.path.join(folder, "enough")) else 1.0)
        dist.broadcast(goes, 0)
        time.sleep(0.05)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
