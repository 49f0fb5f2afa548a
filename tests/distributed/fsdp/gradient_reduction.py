"""How gradients are reduced: hooks of one's own, and scales that all ranks share."""

from __future__ import annotations

import copy

import pytest

import torchlite as torch
import torchlite.distributed as dist
from torchlite import nn
from torchlite.distributed.algorithms._comm_hooks import LOW_PRECISION_HOOKS, default_hooks
from torchlite.distributed.device_mesh import init_device_mesh
from torchlite.distributed.fsdp import FullyShardedDataParallel as FSDP
from torchlite.distributed.fsdp import MixedPrecision, ShardingStrategy, fully_shard
from torchlite.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from torchlite.distributed.fsdp.wrap import ModuleWrapPolicy
from torchlite.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torchlite.nn import functional as F

from .fsdp_checks import Block, Net, batch, close, full, full_parameters, sharded, train

BLOCKS = ModuleWrapPolicy({Block})


def hooks_of_communication(rank, size):
    world = dist.group.WORLD
    for strategy, hook in (
        (ShardingStrategy.FULL_SHARD, default_hooks.reduce_scatter_hook),
        (ShardingStrategy.SHARD_GRAD_OP, default_hooks.reduce_scatter_hook),
        (ShardingStrategy.NO_SHARD, default_hooks.allreduce_hook),
    ):
        alone = Net()
        model = FSDP(copy.deepcopy(alone), auto_wrap_policy=BLOCKS, sharding_strategy=strategy)
        model.register_comm_hook(default_hooks.DefaultState(world), hook)
        train(model, alone, rank, size, steps=2)
        with pytest.raises(AssertionError, match="A communication hook is already registered"):
            model.register_comm_hook(None, hook)
    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.NO_SHARD):
        for hook in LOW_PRECISION_HOOKS:
            alone, (x, y) = Net(), batch(4 * size)
            model = FSDP(copy.deepcopy(alone), auto_wrap_policy=BLOCKS, sharding_strategy=strategy)
            model.register_comm_hook(default_hooks.LowPrecisionState(world), hook)
            for net, part in ((model, slice(rank, None, size)), (alone, slice(None))):
                F.mse_loss(net(x[part]), y[part]).backward()
            close(model, alone, 2e-2)
            differ = [(a != b.grad).any() for (_, a), b in zip(full_parameters(model), alone.parameters(), strict=True)]
            assert all(p.grad.dtype is torch.float32 for p in model.parameters()) and any(differ)


def a_hook_of_ones_own(rank, size):
    alone, seen = Net(), []
    model = FSDP(copy.deepcopy(alone), mixed_precision=MixedPrecision(reduce_dtype=torch.float64))

    def hook(state, grad, part):
        seen.append((state, grad.dtype, grad.dim(), grad.numel() == size * part.numel()))
        dist.reduce_scatter_tensor(part, grad)  # a sum: its mean is left out

    model.register_comm_hook("state", hook)
    x, y = batch(4 * size)
    F.mse_loss(model(x[rank::size]), y[rank::size]).backward()
    F.mse_loss(alone(x), y).backward()
    assert len(seen) == len(list(model.parameters())) and set(seen) == {("state", torch.float64, 1, True)}
    for (_, grad), other in zip(full_parameters(model), alone.parameters(), strict=True):
        torch.testing.assert_close(grad, size * other.grad, atol=1e-5, rtol=1e-5)
    outer = FSDP(nn.Sequential(FSDP(nn.Linear(2, 2))))
    assert outer.check_is_root()
    with pytest.raises(AssertionError, match="only be called on a root instance"):
        outer.module[0].register_comm_hook(None, hook)
    with pytest.raises(ValueError, match="must be callable"):
        outer.register_comm_hook(None, "no")


def optimizers_made_before(rank, size):
    """With `use_orig_params` the parameters stay the objects that an optimizer has."""
    alone = Net()
    model = copy.deepcopy(alone)
    held = list(model.parameters())
    early = torch.optim.Adam(held, lr=0.01)
    model = FSDP(model, auto_wrap_policy=BLOCKS, use_orig_params=True)
    assert all(one is other for one, other in zip(model.parameters(), held, strict=True))
    optimizers = iter((early, torch.optim.Adam(alone.parameters(), lr=0.01)))
    train(model, alone, rank, size, make=lambda _: next(optimizers))


def scales_that_ranks_share(rank, size):
    """One rank's gradients overflow: no rank steps, and the scale falls for all."""
    alone = Net()
    model = sharded(copy.deepcopy(alone))
    for net, make in ((model, ShardedGradScaler), (alone, torch.amp.GradScaler)):
        torch.manual_seed(5)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = make("cpu", init_scale=2.0**10, growth_interval=2)
        scales = []
        for step in range(4):
            x, y = batch(4 * size)
            if step == 1:
                x[0] = torch.inf  # of rank 0 alone
            optimizer.zero_grad()
            part = slice(None) if net is alone else slice(rank, None, size)
            scaler.scale(F.mse_loss(net(x[part]), y[part])).backward()
            if step == 2:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        assert scales == [1024, 512, 512, 1024], scales
    for one, other in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(full(one).detach(), other.detach(), atol=1e-6, rtol=1e-5)


def on_devices_of_opencl(rank, size):
    """Shards, and layers of rows and columns, on the driver that each rank has."""
    torch.opencl.set_device(rank % torch.opencl.device_count())
    device = torch.device("opencl", torch.opencl.current_device())
    mesh = init_device_mesh("opencl", (size,))
    alone = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 3))
    parts = copy.deepcopy(alone).to(device)
    for module in (parts[0], parts[2], parts):
        fully_shard(module, mesh=mesh)
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    columns = parallelize_module(copy.deepcopy(alone).to(device), mesh, plan)
    nets = (alone, parts, columns)
    optimizers = [torch.optim.AdamW(net.parameters(), lr=0.01) for net in nets]
    for _ in range(2):
        x, y = torch.randn(4 * size, 5), torch.randn(4 * size, 3)
        for net, optimizer in zip(nets, optimizers, strict=True):
            mine = slice(rank, None, size) if net is parts else slice(None)
            where = "cpu" if net is alone else device
            optimizer.zero_grad()
            F.mse_loss(net(x[mine].to(where)), y[mine].to(where)).backward()
            optimizer.step()
    for net in (parts, columns):
        for one, other in zip(net.parameters(), alone.parameters(), strict=True):
            assert one.to_local().device == one.grad.to_local().device == device
            torch.testing.assert_close(full(one.grad).cpu(), other.grad, atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(full(one).detach().cpu(), other.detach(), atol=1e-5, rtol=1e-5)
