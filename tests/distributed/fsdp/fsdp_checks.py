"""Checks that ranks run: a sharded model equals one process on the full batch."""

from __future__ import annotations

import copy
import functools

import pytest

import torchlite as torch
from torchlite import nn
from torchlite.distributed.device_mesh import init_device_mesh
from torchlite.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    fully_shard,
)
from torchlite.distributed.tensor import DTensor, Shard
from torchlite.nn import functional as F
from torchlite.utils.checkpoint import checkpoint


class Block(nn.Module):
    """Odd sizes, so that no rank count divides all of them."""

    def __init__(self, width=6, again=None):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 11), nn.Linear(11, width)
        self.again = again

    def forward(self, x):
        inner = lambda x: self.down(self.up(self.norm(x)).relu())
        return x + (inner(x) if self.again is None else checkpoint(inner, x, use_reentrant=self.again))


class Net(nn.Module):
    """Blocks between a first and a last layer, whose weights are tied to a head that is used as well."""

    def __init__(self, again=None):
        super().__init__()
        self.first = nn.Linear(5, 6)
        self.blocks = nn.ModuleList(Block(again=again) for _ in range(3))
        self.last, self.head = nn.Linear(6, 2), nn.Linear(6, 2)
        self.head.weight = self.last.weight
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x) + self.head(x.tanh())


def sharded(model, inner=Block, **options):
    for module in model.modules():
        if isinstance(module, inner):
            fully_shard(module, **options)
    return fully_shard(model, **options)


def batch(count):
    return torch.randn(count, 5), torch.randn(count, 2)


def full(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def full_parameters(model):
    """Full values and gradients of a model's parameters, in their order."""
    if not isinstance(model, FullyShardedDataParallel):
        assert all(isinstance(p, DTensor) for p in model.parameters())
        return [(full(p).detach(), full(p.grad)) for p in model.parameters()]
    assert all(type(p) is nn.Parameter and not isinstance(p.grad, DTensor) for p in model.parameters())
    copied = lambda tensor: None if tensor is None else tensor.detach().clone()
    with FullyShardedDataParallel.summon_full_params(model, writeback=False, with_grads=True):
        return [(copied(p), copied(p.grad)) for p in model.parameters()]


def close(a, b, tolerance=1e-6):
    for found, (name, other) in zip(full_parameters(a), b.named_parameters(), strict=True):
        for what, x, y in zip(("value", "grad"), found, (other, other.grad), strict=True):
            assert (x is None) == (y is None), (name, what)
            if x is not None:
                assert x.shape == y.shape and (x - y).abs().max().item() <= tolerance, (name, what, x, y)


def train(model, alone, rank, size, steps=3, make=functools.partial(torch.optim.Adam, lr=0.01), tolerance=1e-6):
    """Steps of both, compared after each."""
    optimizers = [make(model.parameters()), make(alone.parameters())]
    for _ in range(steps):
        x, y = batch(4 * size)
        for net, optimizer, part in zip(
            (model, alone), optimizers, (slice(rank, None, size), slice(None)), strict=True
        ):
            optimizer.zero_grad()
            F.mse_loss(net(x[part]), y[part]).backward()
        close(model, alone, tolerance)
        for optimizer in optimizers:
            optimizer.step()
    close(model, alone, 10 * tolerance)
    return optimizers


def gradients_and_steps_are_those_of_the_whole_batch(rank, size):
    for again in (None, False, True):
        for options in ({}, {"reshard_after_forward": False}, {"reshard_after_forward": True}):
            alone = Net(again)
            train(sharded(copy.deepcopy(alone), **options), alone, rank, size)
    for make in (functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9), torch.optim.AdamW):
        alone = Net()
        train(sharded(copy.deepcopy(alone)), alone, rank, size, make=make, tolerance=1e-5)
    alone = Net()
    train(fully_shard(copy.deepcopy(alone)), alone, rank, size)


def what_a_rank_keeps(rank, size):
    model = sharded(Net())
    assert isinstance(model, FSDPModule) and type(model).__name__ == "FSDPNet" and isinstance(model, Net)
    weight = model.blocks[0].up.weight
    assert isinstance(weight, DTensor) and isinstance(weight, nn.Parameter)
    assert weight.placements == (Shard(0),) and weight.shape == (11, 6)
    rows = [len(part) for part in torch.arange(11).chunk(size)] + [0] * size
    assert weight.to_local().shape == (rows[rank], 6)
    assert model.head.weight is model.last.weight
    model.unshard()
    assert type(model.first.weight) is nn.Parameter and model.first.weight.shape == (6, 5)
    assert isinstance(model.blocks[0].up.weight, DTensor)
    model.reshard()
    handle = model.blocks[1].unshard(async_op=True)
    handle.wait()
    assert type(model.blocks[1].up.weight) is nn.Parameter
    assert all(isinstance(value, DTensor) for name, value in model.state_dict().items() if name != "seen")
    assert model.blocks[1].up.weight.__class__ is DTensor or isinstance(model.blocks[1].up.weight, DTensor)
    with torch.no_grad():
        model(batch(2)[0])
    assert isinstance(model.blocks[0].up.weight, DTensor)
    with pytest.raises(AssertionError, match="FSDP does not support deepcopy"):
        copy.deepcopy(model)


def no_sync_and_several_forwards(rank, size):
    for reshard in (True, False):
        alone = Net()
        model = sharded(copy.deepcopy(alone))
        model.set_reshard_after_backward(reshard)
        for step in range(3):
            x, y = batch(4 * size)
            model.set_requires_gradient_sync(step == 2)
            for net, part in ((model, slice(rank, None, size)), (alone, slice(None))):
                F.mse_loss(net(x[part]), y[part]).backward()
        assert isinstance(model.first.weight, DTensor) == reshard
        model.reshard(), [block.reshard() for block in model.blocks]
        close(model, alone, 1e-5)
        x, y = batch(4 * size)
        for net, part in ((model, slice(rank, None, size)), (alone, slice(None))):
            net.zero_grad()
            (F.mse_loss(net(x[part]), y[part]) + 2 * F.mse_loss(net(2 * x[part]), y[part])).backward()
        model.reshard(), [block.reshard() for block in model.blocks]
        close(model, alone, 1e-5)
        for net, part in ((model, slice(rank, None, size)), (alone, slice(None))):
            F.mse_loss(net(x[part]), y[part]).backward()  # onto what is there
        model.reshard(), [block.reshard() for block in model.blocks]
        close(model, alone, 1e-5)


def other_dimensions_and_ignored(rank, size):
    place = lambda parameter: Shard(1) if parameter.ndim == 2 else None
    alone = nn.Sequential(nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 24))
    model = copy.deepcopy(alone)
    for layer in (model[0], model[2]):
        fully_shard(layer, shard_placement_fn=place)
    fully_shard(model)
    assert model[2].weight.placements == (Shard(1),) and model[2].weight.to_local().shape == (24, 12 // size)
    x = torch.randn(4 * size, 12)
    for net, part in ((model, slice(rank, None, size)), (alone, slice(None))):
        net(x[part]).pow(2).mean().backward()
    close(model, alone)
    alone = Net()
    model = copy.deepcopy(alone)
    plain = model.first.weight
    sharded(model, ignored_params={plain})
    assert model.first.weight is plain
    model(x[:, :5]).sum().backward()
    assert plain.grad is not None and not isinstance(plain.grad, DTensor)
    with pytest.raises(ValueError, match="fully_shard doesn't support scalar parameters"):
        scalar = nn.Module()
        scalar.x = nn.Parameter(torch.tensor(1.0))
        fully_shard(scalar)
    with pytest.raises(ValueError, match="does not support containers that do not implement forward"):
        fully_shard(nn.ModuleList([nn.Linear(2, 2)]))
    with pytest.raises(AssertionError, match="only be applied to a module once"):
        fully_shard(model)
    frozen = Net()
    frozen.blocks.requires_grad_(False)
    alone = copy.deepcopy(frozen)
    train(sharded(frozen), alone, rank, size)


def low_precision(rank, size):
    alone = Net()
    model = copy.deepcopy(alone)
    for block in model.blocks:
        fully_shard(block, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
    fully_shard(model, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.float32))
    seen = []
    model.blocks[0].register_forward_pre_hook(lambda module, args: seen.append((args[0].dtype, module.up.weight.dtype)))
    x, y = batch(4 * size)
    out = model(x[rank::size])
    F.mse_loss(out, y[rank::size]).backward()
    F.mse_loss(alone(x), y).backward()
    assert out.dtype is torch.float32 and all(p.grad.dtype is torch.float32 is p.dtype for p in model.parameters())
    assert seen[0][1] is torch.bfloat16
    close(model, alone, 5e-2)
    alone = Net()
    train(sharded(copy.deepcopy(alone), offload_policy=CPUOffloadPolicy()), alone, rank, size)


def prefetching_and_methods(rank, size):
    alone = Net()
    model = sharded(copy.deepcopy(alone))
    model.set_modules_to_forward_prefetch([model.blocks[0]])
    model.blocks[0].set_modules_to_forward_prefetch([model.blocks[1], model.blocks[2]])
    model.blocks[2].set_modules_to_backward_prefetch([model.blocks[1], model.blocks[0]])
    train(model, alone, rank, size)
    from torchlite.distributed.fsdp import register_fsdp_forward_method

    class Twice(Net):
        def other(self, x):
            return 2 * self(x)

    alone = Twice()
    model = sharded(copy.deepcopy(alone))
    register_fsdp_forward_method(model, "other")
    x, _ = batch(4 * size)
    for net, part in ((model, slice(rank, None, size)), (alone, slice(None))):
        net.other(x[part]).pow(2).mean().backward()
    close(model, alone)


def norms_of_gradients(rank, size):
    for kind in (2.0, float("inf"), 1.0):
        alone = Net()
        model = sharded(copy.deepcopy(alone))
        x, y = batch(4 * size)
        for net, part in ((model, slice(rank, None, size)), (alone, slice(None))):
            F.mse_loss(net(x[part]), y[part]).mul(50).backward()
        mine = nn.utils.clip_grad_norm_(model.parameters(), 0.5, kind)
        theirs = nn.utils.clip_grad_norm_(alone.parameters(), 0.5, kind)
        assert abs(full(mine).item() - theirs.item()) < 1e-4 * theirs.item()
        close(model, alone, 1e-6)


def made_without_memory(rank, size):
    with torch.device("meta"):
        model = Net()
    sharded(model)
    assert model.first.weight.to_local().is_meta
    with pytest.raises(RuntimeError, match="should be materialized from meta device before training"):
        model(torch.zeros(1, 5))
    alone = Net()
    model.to_empty(device="cpu")
    from torchlite.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict

    state = {name: value.clone() for name, value in alone.state_dict().items()} if rank == 0 else {}
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(model, state, options=options)
    alone.load_state_dict({name: full(value) for name, value in model.state_dict().items()})
    train(model, alone, rank, size)


def meshes_of_two_dimensions(rank, size):
    """On four ranks: replicated shards, a tensor replicated on two ranks, and shards of tensor-parallel layers."""
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("copies", "shards"))
    alone = Net()
    model = sharded(copy.deepcopy(alone), mesh=mesh)
    assert len(model.first.weight.placements) == 2
    train(model, alone, rank, size)
    model.set_requires_all_reduce(False)
    model.zero_grad(), alone.zero_grad()
    for step in range(2):
        model.set_requires_all_reduce(step == 1)
        x, y = batch(4 * size)
        for net, part in ((model, slice(rank, None, size)), (alone, slice(None))):
            F.mse_loss(net(x[part]), y[part]).backward()
    close(model, alone, 1e-5)
    alone = Net()
    train(sharded(copy.deepcopy(alone), reshard_after_forward=2), alone, rank, size)


def over_tensor_parallel(rank, size):
    from torchlite.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    alone = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
    model = copy.deepcopy(alone)
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    lanes = size // 2
    mine = mesh["dp"].get_local_rank()
    optimizers = [torch.optim.Adam(net.parameters(), 0.01) for net in (model, alone)]
    for _ in range(3):
        x = torch.randn(4 * lanes, 8)
        for net, part in ((model, slice(mine, None, lanes)), (alone, slice(None))):
            net.zero_grad()
            net(x[part]).pow(2).mean().backward()
        close(model, alone, 1e-6)
        for optimizer in optimizers:
            optimizer.step()
    close(model, alone, 1e-5)


def memory_is_shared_out(rank, size):
    """A rank has its parts, and one group's wholes for a while, whatever the graph keeps."""
    width, layers, mib = 1024, 6, 1 << 20
    before = _private()
    with torch.device("meta"):
        model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(layers)))
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    model.to_empty(device="cpu")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.to_local().normal_(0, 0.03)
    weights, whole = [layer[0].weight for layer in model], width * width * 4 / mib
    assert all(weight.to_local().numel() == width * width // size for weight in weights)
    groups = [layer._get_fsdp_state().group for layer in model]
    for _ in range(2):
        model.zero_grad()
        x, arrived = torch.randn(4, width, requires_grad=True), []
        out = model(x)
        assert not any(group.whole for group in groups) and not any(map(_written, groups))
        x.register_hook(lambda grad, arrived=arrived: arrived.append([weight.grad is not None for weight in weights]))
        out.pow(2).mean().backward()
        assert arrived == [[False, *[True] * (layers - 1)]]  # while backward went on
        assert not any(map(_written, groups))
    mine = 2 * layers * whole / size
    if before:  # where the system says it
        assert _private() - before < mine + whole + 6, (_private() - before, mine, whole)


def _private():
    """MiB that this process alone has; 0 where the system does not say."""
    try:
        with open("/proc/self/smaps_rollup") as lines:
            return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty")) / 1024
    except OSError:
        return 0


def _written(group):
    """Whether any element of a group's wholes is not zero: what the system has taken back is."""
    return any(int(p._unsharded.target.count_nonzero()) for p in group.parameters if p._unsharded is not None)
