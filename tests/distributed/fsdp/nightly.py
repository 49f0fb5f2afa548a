"""Fifty steps of sharded models against one process with the whole batch, and a job that goes on from its checkpoint
after a rank was killed: `python -m tests.distributed.fsdp.nightly`, for the night.

A CNN with batch norms over the world, a small GPT and a ResNet, with three optimizers; the losses must agree to 1e-4 in
each step. On four ranks also copies of shards.
"""

from __future__ import annotations

import copy
import functools
import pathlib
import re
import subprocess
import sys
import tempfile

import torchlite as torch
from tests.distributed.ddp.nightly import STEPS, Residual, compare, models
from tests.distributed.ddp.world_launcher import run
from tests.distributed.rank_launcher import environment
from torchlite import nn
from torchlite.distributed.device_mesh import init_device_mesh
from torchlite.distributed.fsdp import fully_shard

OPTIMIZERS = {
    "SGD": functools.partial(torch.optim.SGD, lr=0.05, momentum=0.9),
    "Adam": functools.partial(torch.optim.Adam, lr=1e-3),
    "AdamW": functools.partial(torch.optim.AdamW, lr=1e-3),
}


def losses_agree(rank, size):
    meshes = [None]
    if size == 4:
        meshes.append(init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "shards")))
    for name, make in OPTIMIZERS.items():
        for number, alone in enumerate(models()):
            parallel = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(alone))
            mesh = meshes[number % len(meshes)]
            for module in list(parallel.modules()):
                if isinstance(module, Residual | nn.TransformerEncoderLayer):
                    fully_shard(module, mesh=mesh)
            fully_shard(parallel, mesh=mesh)
            compare(parallel, alone, make, rank, size, name)


def killed(folder: pathlib.Path, kill: bool) -> str:
    """Return the last loss that a job of three ranks prints; one rank may be killed in its first run."""
    command = [sys.executable, "-m", "torchlite.distributed.run", "--nproc-per-node", "3", "--max-restarts", "1",
               "-m", "tests.distributed.fsdp.checkpoint_restart", str(folder), str(int(kill))]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment(), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    begun = re.findall(r"begins at step (\d+)", done.stdout)
    assert (begun != ["0"]) == kill, done.stdout
    return re.findall(r"the last loss is (\S+)", done.stdout)[-1]


if __name__ == "__main__":
    for ranks in map(int, sys.argv[1:] or (2, 4)):
        with tempfile.TemporaryDirectory() as folder:
            run(pathlib.Path(folder), ranks, losses_agree)
        print(f"{ranks} ranks: the losses of {STEPS} steps agree", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        last = [killed(pathlib.Path(folder) / str(kill), kill) for kill in (False, True)]
    assert last[0] == last[1], last
    print(f"after a rank was killed the job went on to the same loss, {last[0]}")
