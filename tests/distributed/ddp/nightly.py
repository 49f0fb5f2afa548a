"""Fifty steps on several processes against one with the whole batch: `python -m tests.distributed.ddp.nightly`.

A CNN with batch norms over the world, a small GPT and a ResNet; the losses must agree to 1e-4 in each step.
"""

from __future__ import annotations

import copy
import pathlib
import sys
import tempfile

import torchlite as torch
import torchlite.distributed as dist
from torchlite import nn
from torchlite.nn import functional as F
from torchlite.nn.parallel import DistributedDataParallel as DDP

from .world_launcher import run

STEPS = 50


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x):
        return (x + self.body(x)).relu()


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.symbols, self.places = nn.Embedding(32, 32), nn.Embedding(16, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks, self.last = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(32, 32)

    def forward(self, x):
        mask = torch.full((16, 16), float("-inf")).triu(1)
        return self.last(self.blocks(self.symbols(x) + self.places.weight, mask)).transpose(1, 2)


def models():
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)]
    yield nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), *head)
    yield GPT()
    yield nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), Residual(8), Residual(8), *copy.deepcopy(head)
    )


def losses_agree(rank, size):
    for model in models():
        parallel = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(model)))
        compare(parallel, model, lambda p: torch.optim.SGD(p, 0.05, momentum=0.9), rank, size)


def compare(parallel, alone, make, rank, size, name=""):
    """Compare fifty steps on this rank's part of a batch with steps on the full batch; `make` creates optimizers."""
    text = isinstance(alone, GPT)
    nets = [(net, make(net.parameters())) for net in (parallel, alone)]
    for step in range(STEPS):
        x = torch.randint(32, (16, 16)) if text else torch.randn(16, 1, 8, 8)
        y = x.roll(-1, 1) if text else torch.randint(10, (16,))
        found = []
        for (net, optimizer), part in zip(nets, (slice(rank, None, size), slice(None)), strict=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x[part]), y[part])
            loss.backward()
            optimizer.step()
            found.append(loss.detach())
        dist.all_reduce(found[0])
        assert abs(found[0].item() / size - found[1].item()) < 1e-4, (type(alone), name, step, found)


if __name__ == "__main__":
    for ranks in map(int, sys.argv[1:] or (2, 4)):
        with tempfile.TemporaryDirectory() as folder:
            run(pathlib.Path(folder), ranks, losses_agree)
        print(f"{ranks} ranks: the losses of {STEPS} steps agree", flush=True)
