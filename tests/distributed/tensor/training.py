"""Networks that lie over several processes against the same on one.

`mpiexec -n 4 python -m tests.distributed.tensor.training` runs it; `--steps 50` is the long form.
"""

from __future__ import annotations

import argparse
import copy
import warnings

import pytest

import torchlite as torch
import torchlite.distributed as dist
from torchlite import nn
from torchlite.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torchlite.distributed.tensor.debug import CommDebugMode
from torchlite.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torchlite.distributed.tensor.parallel.ddp import _pre_dp_module_transform
from torchlite.nn import functional as F

WORDS, LENGTH, WIDTH, HEADS = 24, 8, 24, 12


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        q, k, v = (
            part(x).view(x.shape[0], x.shape[1], -1, WIDTH // HEADS).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.norm, self.last = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x):
        h = self.words(x) + self.places(torch.arange(x.shape[1]).expand(x.shape))
        for block in self.blocks:
            h = block(h)
        return self.last(self.norm(h))


def _plan(sequence: bool):
    """A GPT's plan: as PyTorch's tutorial has it, with the sequence cut between the blocks or not."""
    between = Shard(1) if sequence else Replicate()
    first = RowwiseParallel(input_layouts=Replicate(), output_layouts=between, use_local_output=not sequence)
    plan: dict = {
        "words": first,
        "places": RowwiseParallel(input_layouts=Replicate(), output_layouts=between, use_local_output=not sequence),
        "last": ColwiseParallel(input_layouts=between, use_local_output=False),
        "blocks.*.attention.q": ColwiseParallel(use_local_output=True),
        "blocks.*.attention.[kv]": ColwiseParallel(),
        "blocks.*.attention.out": RowwiseParallel(output_layouts=between, use_local_output=not sequence),
        "blocks.*.up": ColwiseParallel(input_layouts=between),
        "blocks.*.down": RowwiseParallel(output_layouts=between, use_local_output=not sequence),
    }
    if sequence:
        plan |= {
            "norm": SequenceParallel(), "blocks.*.norm[12]": SequenceParallel(),
            "blocks.*.attention": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
        }  # fmt: skip
    return plan


def _close(model, alone, limit=1e-6):
    """The gradients are those of the network on one process."""
    for (name, own), whole in zip(model.named_parameters(), alone.parameters(), strict=True):
        grad = own.grad.full_tensor() if isinstance(own.grad, DTensor) else own.grad
        if not isinstance(own, DTensor) and grad.shape != whole.grad.shape:
            continue
        torch.testing.assert_close(grad, whole.grad, rtol=0, atol=limit, msg=lambda m, name=name: f"{name}: {m}")


def _trained(model, alone, losses, steps, optimizer, batches, **options):
    """Both networks through the same steps: equal losses to 1e-4, and at first equal gradients to 1e-6."""
    both = [optimizer(net.parameters(), **options) for net in (model, alone)]
    for step in range(steps):
        batch = next(batches)
        found = []
        for net, loss, optim in zip((model, alone), losses, both, strict=True):
            optim.zero_grad()
            value = loss(net, *batch)
            value.backward()
            found.append(value.full_tensor().item() if isinstance(value, DTensor) else value.item())
        if step == 0:
            _close(model, alone)
        if all(isinstance(p, DTensor) for p in model.parameters()):
            norms = [nn.utils.clip_grad_norm_(net.parameters(), 1.0) for net in (model, alone)]
            norms = [n.full_tensor() if isinstance(n, DTensor) else n for n in norms]
            assert abs(norms[0] - norms[1]) < 1e-4 * (1 + norms[1]), (step, norms)
        for optim in both:
            optim.step()
        assert abs(found[0] - found[1]) < 1e-4, (step, found)


def _texts():
    generator = torch.Generator().manual_seed(5)
    while True:
        x = torch.randint(WORDS, (4, LENGTH), generator=generator)
        yield x, x.roll(-1, 1)


def _points():
    generator = torch.Generator().manual_seed(3)
    while True:
        yield torch.randn(6, 5, generator=generator), torch.randn(6, 3, generator=generator)


def mlp(mesh, steps):
    """Columns, then rows; every optimizer."""
    for optimizer, options in (
        (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9}),
        (torch.optim.Adam, {"lr": 0.01}),
        (torch.optim.AdamW, {"lr": 0.01, "foreach": True}),
        (torch.optim.Adam, {"lr": 0.01, "fused": True}),
        (torch.optim.SGD, {"lr": 0.05, "foreach": True, "weight_decay": 0.1}),
        (torch.optim.RMSprop, {"lr": 0.01}),
    ):
        torch.manual_seed(0)
        alone = nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.Linear(7, 7), nn.ReLU(), nn.Linear(7, 3))
        plan = {
            "0": ColwiseParallel(use_local_output=False), "2": RowwiseParallel(use_local_output=False),
            "4": ColwiseParallel(output_layouts=Replicate()),
        }  # fmt: skip
        model = parallelize_module(copy.deepcopy(alone), mesh, plan)
        losses = [lambda net, x, y: F.mse_loss(net(x), y)] * 2
        _trained(model, alone, losses, steps, optimizer, _points(), **options)


def gpt(mesh, steps, sequence):
    """With the loss computed where the classes lie; its target plain or a DTensor."""
    torch.manual_seed(0)
    alone = GPT()
    model = parallelize_module(copy.deepcopy(alone), mesh, _plan(sequence))

    def parallel(net, x, y):
        with loss_parallel():
            scores = net(x)
            assert scores.placements == (Shard(2),)
            target = y.flatten() if sequence else distribute_tensor(y.flatten(), mesh)
            return F.cross_entropy(scores.flatten(0, 1), target)

    losses = [parallel, lambda net, x, y: F.cross_entropy(net(x).flatten(0, 1), y.flatten())]
    _trained(model, alone, losses, steps, torch.optim.AdamW, _texts(), lr=1e-3)


def data_by_dtensors(mesh, steps):
    """Replicated parameters, a batch that is cut: gradients are summed by themselves."""
    torch.manual_seed(0)
    alone = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Tanh(), nn.Linear(7, 3))
    model = distribute_module(copy.deepcopy(alone), mesh)

    def parallel(net, x, y):
        given = [distribute_tensor(t, mesh, [Shard(0)]) for t in (x, y)]
        return F.mse_loss(net(given[0]), given[1])

    _trained(model, alone, [parallel, lambda net, x, y: F.mse_loss(net(x), y)], steps, torch.optim.Adam, _points())


def data_and_tensors(steps):
    """DistributedDataParallel over one dimension of a 2x2 mesh, tensor parallelism over the other."""
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    place = mesh.get_local_rank("dp")
    torch.manual_seed(0)
    alone = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 3))
    model = parallelize_module(copy.deepcopy(alone), mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    _pre_dp_module_transform(model)
    model = nn.parallel.DistributedDataParallel(model, process_group=mesh.get_group("dp"))
    both = [torch.optim.SGD(net.parameters(), 0.1, momentum=0.9) for net in (model, alone)]
    batches = _points()
    for _ in range(steps):
        x, y = next(batches)
        outs = []
        for net, optim, rows in zip((model, alone), both, (slice(place * 3, place * 3 + 3), slice(None)), strict=True):
            optim.zero_grad()
            loss = F.mse_loss(net(x[rows]), y[rows])
            loss.backward()
            optim.step()
            outs.append(loss.detach())
        dist.all_reduce(outs[0], group=mesh.get_group("dp"))
        assert abs(outs[0] / 2 - outs[1]) < 1e-4


def collectives_are_counted(mesh):
    """One all-reduce for a pair of columns and rows."""
    net = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 4))
    parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    with CommDebugMode() as counted:
        net(torch.ones(2, 4))
    assert counted.get_comm_counts()[torch.ops.c10d_functional.all_reduce] == counted.get_total_counts() == 1
    assert "Sequential" in counted.generate_comm_debug_tracing_table()
    x = DTensor.from_local(torch.ones(4, 4), mesh, [Partial()])
    with CommDebugMode() as counted:
        x.redistribute(mesh, [Shard(0)])
    assert counted.get_comm_counts()[torch.ops.c10d_functional.reduce_scatter_tensor] == 1


def plans(mesh):
    """Plans raise and warn for wrong arguments."""
    with pytest.warns(UserWarning, match="could not be resolved: no submodule matching token 'nowhere'"):
        parallelize_module(nn.Sequential(nn.Linear(2, 2)), mesh, {"nowhere": ColwiseParallel()})
    with pytest.raises(NotImplementedError, match="ColwiseParallel currently only support nn.Linear and nn.Embedding"):
        parallelize_module(nn.Conv2d(1, 1, 1), mesh, ColwiseParallel())
    net = parallelize_module(
        nn.Linear(4, 4), mesh, PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=Shard(0))
    )
    size = -(-8 // mesh.size())
    start = min(8, mesh.get_rank() * size)
    assert net(torch.ones(8, 4)).shape[0] == min(8, start + size) - start


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--steps", type=int, default=2)
    steps = asked.parse_args().steps
    warnings.simplefilter("error")
    dist.init_process_group("gloo")
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    mlp(mesh, steps)
    for sequence in (False, True):
        gpt(mesh, steps, sequence)
    data_by_dtensors(mesh, steps)
    if dist.get_world_size() == 4:
        data_and_tensors(steps)
    collectives_are_counted(mesh)
    plans(mesh)
    print("agrees", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
