"""Trains a sharded model and saves it every second step.

`python -m tests.distributed.fsdp.checkpoint_restart FOLDER KILL`: the first run is killed on one rank in the middle
of a step.
"""

from __future__ import annotations

import os
import pathlib
import signal
import sys

import torchlite as torch
import torchlite.distributed as dist
import torchlite.distributed.checkpoint as dcp
from torchlite.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torchlite.nn import functional as F

from .fsdp_checks import Net, sharded

STEPS = 12


def main(folder: pathlib.Path, kill: bool) -> None:
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)
    model = sharded(Net())
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    first = 0
    if (folder / ".metadata").exists():
        states = get_state_dict(model, optimizer)
        state = {"model": states[0], "optimizer": states[1], "step": 0}
        dcp.load(state, checkpoint_id=folder)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        first = state["step"]
    if rank == 0:
        print(f"begins at step {first}", flush=True)
    for step in range(first, STEPS):
        draw = torch.Generator().manual_seed(step)
        x, y = torch.randn(12, 5, generator=draw), torch.randn(12, 2, generator=draw)
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[rank::size]), y[rank::size])
        loss.backward()
        if kill and step == 7 and rank == 1 and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.step()
        if step % 2:
            states = get_state_dict(model, optimizer)
            dcp.save({"model": states[0], "optimizer": states[1], "step": step + 1}, checkpoint_id=folder)
    every = loss.detach()
    dist.all_reduce(every)
    if rank == 0:
        print(f"the last loss is {every.item() / size:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), bool(int(sys.argv[2])))
