"""Two processes train one network

`DistributedDataParallel` averages gradients over two processes, which end with the weights of one process.

Each process computes the gradients of half a batch. Averaged, they are the gradients of the complete batch. So two
processes make the steps of one, up to rounding.

Needs mpi4py and an MPI library (the extra `mpi`).
"""

import os
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import torchlite as torch
import torchlite.distributed as dist
import torchlite.multiprocessing as mp
from torchlite import nn
from torchlite.nn.parallel import DistributedDataParallel

EPOCHS, BATCH = (1, 512) if "--quick" in sys.argv else (5, 128)

# %%
# `train` runs in every process. All processes draw the same order of images, because they have the same seed. Each
# takes its own part of a batch: every second image, from its rank on.


def train(rank, size):
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    parallel = DistributedDataParallel(model) if size > 1 else model
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(EPOCHS):
        for batch in torch.randperm(1792).split(BATCH):
            mine = batch[rank::size]
            loss = nn.functional.cross_entropy(parallel(images[mine]), labels[mine])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses, model.state_dict()


# %%
# A process that `mp.spawn` starts joins the group, trains, and saves what it has. It imports this script, so the
# rest of the script stands under `if __name__ == "__main__"`.


def work(rank, size, folder):
    dist.init_process_group("gloo", rank=rank, world_size=size)
    torch.save(train(rank, size), f"{folder}/rank{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29512")
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (2, folder), nprocs=2)
        results = [torch.load(Path(folder) / f"rank{rank}.pt") for rank in range(2)]
    alone, weights = train(0, 1)
    for rank, (losses, state) in enumerate(results):
        difference = max((state[name] - weights[name]).abs().max().item() for name in weights)
        print(f"rank {rank}: {len(losses)} steps, last loss {losses[-1]:.4f}")
        print(f"    largest difference of its weights from one process's: {difference:.1e}")
    print(f"one process: last loss {alone[-1]:.4f}")

# %%
# The losses of the two ranks are those of their halves of a batch. Their mean is the loss of one process.

if __name__ == "__main__":
    mean = torch.tensor([losses for losses, _ in results]).mean(0)
    figure, axis = plt.subplots(figsize=(7, 3.4))
    for rank, (losses, _) in enumerate(results):
        axis.plot(losses, linewidth=0.8, label=f"rank {rank}")
    axis.plot(mean, "k", label="mean of the ranks")
    axis.plot(alone, "C3--", label="one process")
    axis.set(title="Training loss", xlabel="step", yscale="log")
    axis.legend()
