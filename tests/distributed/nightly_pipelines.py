"""Fifty steps of networks in stages against one process, for the night: `python -m
tests.distributed.nightly_pipelines`.

A small GPT and a CNN under several schedules, and two pipelines of two stages with their gradients in common; the
losses must agree to 1e-4 in each step.
"""

from __future__ import annotations

import copy
import itertools
import pathlib
import sys
import tempfile

import torchlite as torch
import torchlite.distributed as dist
from tests.distributed.ddp.world_launcher import run
from torchlite import nn
from torchlite.nn import functional as F
from torchlite.nn.parallel import DistributedDataParallel as DDP

from .pipeline_checks import scheduled, stepped

STEPS = 50


class Start(nn.Module):
    def __init__(self):
        super().__init__()
        self.symbols, self.places = nn.Embedding(32, 32), nn.Embedding(16, 32)

    def forward(self, x):
        return self.symbols(x) + self.places.weight


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)

    def forward(self, x):
        return self.layer(x, torch.full((16, 16), float("-inf")).triu(1))


class End(nn.Linear):
    def forward(self, x):
        return super().forward(x).transpose(1, 2)


def gpt():
    return [Start(), *(Block() for _ in range(6)), End(32, 32)]


def cnn():
    """Group norms: a batch norm of a microbatch is not that of the batch."""
    conv = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(2, b), nn.ReLU())
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    pooled = nn.Sequential(nn.MaxPool2d(2), conv(8, 16))
    return [conv(1, 8), conv(8, 8), conv(8, 8), pooled, *(conv(16, 16) for _ in range(3)), head]


def batch(text):
    x = torch.randint(32, (16, 16)) if text else torch.randn(16, 1, 8, 8)
    return x, x.roll(-1, 1) if text else torch.randint(10, (16,))


def trained(name, layers, text, group=None, replicas=None):
    """Train under a schedule and alone, and compare the losses of this rank's pipeline."""
    each = 1 if name in ("GPipe", "1F1B") else 2
    count = each * dist.get_world_size(group)
    bounds = [round(i * len(layers) / count) for i in range(count + 1)]
    parts = [nn.Sequential(*layers[a:b]) for a, b in itertools.pairwise(bounds)]
    wrap = (lambda part: part) if replicas is None else lambda part: DDP(part, process_group=replicas)
    schedule, copies = scheduled(name, parts, 4, group, wrap, loss_fn=F.cross_entropy)
    alone = copy.deepcopy(nn.Sequential(*layers))
    mine = torch.optim.SGD([p for part in copies.values() for p in part.parameters()], 0.05, momentum=0.9)
    theirs = torch.optim.SGD(alone.parameters(), 0.05, momentum=0.9)
    part = slice(None) if replicas is None else slice(dist.get_rank(replicas), None, 2)
    for step in range(STEPS):
        x, y = batch(text)
        mine.zero_grad()
        _, losses = stepped(schedule, x[part], y[part])
        mine.step()
        theirs.zero_grad()
        wanted = F.cross_entropy(alone(x), y)
        wanted.backward()
        theirs.step()
        if losses:
            found = (sum(losses) / len(losses)).detach()
            if replicas is not None:
                dist.all_reduce(found, group=replicas)
                found /= 2
            assert abs(found.item() - wanted.item()) < 1e-4, (name, text, step, found, wanted)


def losses_agree(rank, size):
    for text, layers in ((True, gpt()), (False, cnn())):
        for name in ("GPipe", "1F1B", "Interleaved1F1B", "ZBVZeroBubble"):
            trained(name, layers, text)


def losses_of_a_mixture_agree(rank, size):
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
    for text, layers in ((True, gpt()), (False, cnn())):
        for name in ("1F1B", "InterleavedZeroBubble"):
            trained(name, layers, text, mesh["pp"].get_group(), mesh["dp"].get_group())


if __name__ == "__main__":
    for ranks in map(int, sys.argv[1:] or (2, 3, 4)):
        with tempfile.TemporaryDirectory() as folder:
            run(pathlib.Path(folder), ranks, losses_agree, *([losses_of_a_mixture_agree] if ranks == 4 else []))
        print(f"{ranks} ranks: the losses agree")
