"""Checks that ranks run: gradients and losses equal those of one process on the full batch."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

import torchlite as torch
import torchlite.distributed as dist
from torchlite import nn
from torchlite.nn import functional as F
from torchlite.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 3)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        return self.last(self.first(x).relu())


class TwoOut(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(2, 2) for _ in range(3))

    def forward(self, x, which="a"):
        return getattr(self, which)(x)


def batch(count=8):
    return torch.randn(count, 6), torch.randn(count, 3)


def grads(model):
    return [None if p.grad is None else p.grad.clone() for p in model.parameters()]


def close(a, b, tolerance=1e-6):
    for one, other in zip(a, b, strict=True):
        assert (one is None) == (other is None)
        assert one is None or (one - other).abs().max().item() <= tolerance, (one, other)


def gradients_are_those_of_the_whole_batch(rank, size):
    x, y = batch(4 * size)
    for options in ({}, {"bucket_cap_mb": 1e-4}, {"gradient_as_bucket_view": True}, {"static_graph": True},
                    {"find_unused_parameters": True}):  # fmt: skip
        torch.manual_seed(rank)
        model = Net()
        parallel = DDP(model, **options)
        alone = copy.deepcopy(model)
        for step in range(3):
            parallel.zero_grad(set_to_none=step != 1)
            alone.zero_grad()
            F.mse_loss(parallel(x[rank::size]), y[rank::size]).backward()
            F.mse_loss(alone(x), y).backward()
            close(grads(model), grads(alone))
        told = parallel._get_ddp_logging_data()
        assert told["has_rebuilt_buckets"] == (0 if "find_unused_parameters" in options else 1)
        assert (told["num_buckets_reduced"] > 1) == ("bucket_cap_mb" in options)
        if "gradient_as_bucket_view" in options:
            buffer = parallel.reducer.buckets[0].buffer
            assert all(p.grad.untyped_storage() is buffer.untyped_storage() for p in model.parameters())


def buffers_and_parameters_begin_as_rank_0s(rank, size):
    model = Net()
    with torch.no_grad():
        for value in (*model.parameters(), *model.buffers()):
            value.fill_(rank + 1)
    parallel = DDP(model)
    assert all((value == 1).all() for value in (*model.parameters(), *model.buffers()))
    model.seen.fill_(rank + 5)
    parallel(batch()[0])
    assert model.seen.item() == 5
    local = DDP(Net(), forward_sync_buffers=False)
    local.module.seen.fill_(rank + 5)
    local(batch()[0])
    assert local.module.seen.item() == rank + 5


def no_sync_and_several_forwards(rank, size):
    model = nn.Linear(1, 1, bias=False)
    for options in ({}, {"gradient_as_bucket_view": True}):
        model.zero_grad()
        parallel, x, found = DDP(model, **options), torch.full((1, 1), rank + 1.0), []
        with parallel.no_sync():
            parallel(x).sum().backward()
        found.append(model.weight.grad.item())
        for _ in range(2):
            parallel(x).sum().backward()
            found.append(model.weight.grad.item())
        mean = (size + 1) / 2
        assert found == [rank + 1, 2 * mean, 3 * mean]
        parallel.zero_grad()
        (parallel(x) + 3 * parallel(x)).sum().backward()
        assert model.weight.grad.item() == 4 * mean


def unused_parameters(rank, size):
    x = torch.ones(1, 2) * (rank + 1)
    parallel = DDP(TwoOut(), find_unused_parameters=True)
    for _ in range(2):
        parallel.zero_grad()
        parallel(x, "a" if rank == 0 else "b").sum().backward()  # another one on each rank, and `c` on none
    model = parallel.module
    assert model.c.weight.grad is None
    close([model.a.weight.grad, model.b.weight.grad],
          [torch.full((2, 2), 1 / size), torch.full((2, 2), sum(range(2, size + 1)) / size)])  # fmt: skip
    static = DDP(TwoOut(), static_graph=True)
    for _ in range(3):
        static.zero_grad()
        static(x).sum().backward()
        assert static.module.b.weight.grad is None
        assert static.module.a.weight.grad[0, 0].item() == (size + 1) / 2
    missing = DDP(TwoOut())
    missing(x).sum().backward()
    with pytest.raises(
        RuntimeError, match="Parameter indices which did not receive grad for rank . *: 2 3 4 5|2 3 4 5"
    ):
        missing(x)
    dist.barrier()


def mistakes(rank, size):
    for model, words in (
        (nn.Linear(2, 2 + rank), r"\[1\]: params\[0\] in this process with sizes \[3, 2\] appears not to match"),
        (nn.Linear(2, 2, bias=rank == 0), "DDP expects same model across all ranks, but Rank .* has .* params"),
        (nn.ReLU(), "DistributedDataParallel is not needed when a module doesn't have any parameter"),
    ):
        with pytest.raises(RuntimeError, match=words):
            DDP(model)
    with pytest.raises(ValueError, match="device_ids and output_device arguments only work with"):
        DDP(nn.Linear(2, 2), device_ids=[0])
    parallel = DDP(nn.Linear(2, 2))
    with pytest.raises(TypeError, match="Communication hook must be callable"):
        parallel.register_comm_hook(None, 3)

    def wrong(state, bucket: int): ...

    with pytest.raises(ValueError, match=r"bucket annotation should be dist\.GradBucket"):
        parallel.register_comm_hook(None, wrong)
    parallel.register_comm_hook(None, lambda state, bucket: bucket.buffer())
    with pytest.raises(RuntimeError, match="can only be called once"):
        parallel.register_comm_hook(None, lambda state, bucket: bucket.buffer())
    with pytest.raises(RuntimeError, match=r"Expected hook to return a `torch\.futures\.Future`"):
        parallel(torch.ones(1, 2)).sum().backward()


def states_and_copies(rank, size):
    parallel = DDP(Net())
    state = parallel.state_dict()
    assert all(name.startswith("module.") for name in state)
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    parallel.module.load_state_dict(state)
    again = pickle.loads(pickle.dumps(parallel))
    copied = copy.deepcopy(parallel)
    stream = io.BytesIO()
    torch.save(parallel.state_dict(), stream)
    for other in (again, copied):
        x = torch.full((2, 6), rank + 1.0)
        other(x).sum().backward()
        means = grads(other)
        told = [None] * size
        dist.all_gather_object(told, [g.tolist() for g in means])
        assert all(one == told[0] for one in told)
    assert all(p.grad is None for p in parallel.parameters())


def sparse_gradients_and_shared_modules(rank, size):
    parallel = DDP(nn.Embedding(5, 2, sparse=True))
    parallel(torch.tensor([rank, 4])).sum().backward()
    expected = torch.zeros(5, 2)
    expected[:size] = 1 / size
    expected[4] += 1
    assert torch.allclose(parallel.module.weight.grad.to_dense(), expected)

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2, bias=False)
            self.same = self.layer

        def forward(self, x):
            inner = torch.utils.checkpoint.checkpoint(self.layer, x, use_reentrant=False)
            return self.same(inner)

    x = torch.randn(2 * size, 2)
    parallel = DDP(Twice())
    alone = copy.deepcopy(parallel.module)
    parallel(x[rank::size]).pow(2).mean().backward()
    alone(x).pow(2).mean().backward()
    close(grads(parallel), grads(alone))


def comm_hooks(rank, size):
    from torchlite.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, default_hooks, register_ddp_comm_hook
    from torchlite.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power

    x, y = batch(4 * size)
    torch.manual_seed(3)
    model = Net()
    alone = copy.deepcopy(model)
    F.mse_loss(alone(x), y).backward()
    expected = grads(alone)

    def check(register, tolerance, steps=1, state=None):
        own = copy.deepcopy(model)
        parallel = DDP(own)
        register(parallel)
        for _ in range(steps):
            parallel.zero_grad()
            F.mse_loss(parallel(x[rank::size]), y[rank::size]).backward()
        told = [None] * size
        dist.all_gather_object(told, [g.tolist() for g in grads(own)])
        assert all(one == told[0] for one in told)
        close(grads(own), expected, tolerance)

    for kind, tolerance in (("ALLREDUCE", 1e-6), ("FP16_COMPRESS", 1e-3), ("BF16_COMPRESS", 1e-2),
                            ("QUANTIZE_PER_TENSOR", 1e-2), ("QUANTIZE_PER_CHANNEL", 1e-2)):  # fmt: skip
        check(lambda ddp, kind=kind: register_ddp_comm_hook(DDPCommHookType[kind], ddp), tolerance)
    hook = default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)
    check(lambda ddp: ddp.register_comm_hook(None, hook), 1e-3)
    # Of rank 3 a gradient of 3 x 16 is itself, and the other one is not far: error feedback brings it closer.
    for kind in (power.powerSGD_hook, power.batched_powerSGD_hook):
        state = power.PowerSGDState(None, 3, start_powerSGD_iter=2, min_compression_rate=0.5)
        check(lambda ddp, state=state, kind=kind: ddp.register_comm_hook(state, kind), 0.3, steps=6)
        assert state.compression_stats()[1] > 0
    seen = []

    def tripling(state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        seen.append((bucket.index(), bucket.is_last(), [g.shape for g in bucket.gradients()]))
        future = torch.futures.Future()
        future.set_result(bucket.buffer() * 3)
        return future

    parallel = DDP(nn.Linear(2, 2))
    parallel.register_comm_hook(None, tripling)
    parallel(torch.ones(1, 2)).sum().backward()
    assert seen == [(0, True, [(2, 2), (2,)])] and parallel.module.weight.grad.tolist() == [[3, 3], [3, 3]]


def uneven_inputs(rank, size):
    for divide in (True, False):
        model = nn.Linear(1, 1, bias=False)
        parallel = DDP(model)
        nn.init.ones_(model.weight)
        optimizer = torch.optim.SGD(parallel.parameters(), 0.1)
        with parallel.join(divide_by_initial_world_size=divide):
            for _ in range(1 + rank):
                optimizer.zero_grad()
                parallel(torch.ones(1, 1)).sum().backward()
                optimizer.step()
        steps = [sum(other >= step for other in range(size)) for step in range(size)]  # who is there in each step
        expected = 1 - 0.1 * (sum(steps) / size if divide else size)
        assert abs(model.weight.item() - expected) < 1e-6
    parallel = DDP(nn.BatchNorm1d(1))
    with parallel.join():
        for _ in range(2 + rank):
            parallel(torch.randn(4, 1)).sum().backward()
    with pytest.raises(RuntimeError, match="exhausted"), parallel.join(throw_on_early_termination=True):
        for _ in range(2 + rank):
            parallel(torch.randn(4, 1)).sum().backward()


def batch_norm_over_the_world(rank, size):
    x = torch.randn(4 * size, 3, 5, dtype=torch.float64)
    weight = torch.randn(3, 5, dtype=torch.float64)
    model = nn.Sequential(nn.BatchNorm1d(3, dtype=torch.float64))
    alone = copy.deepcopy(model)
    parallel = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(model).double())
    mine, whole = x[rank::size].clone().requires_grad_(), x.clone().requires_grad_()
    for _ in range(2):
        parallel.zero_grad(), alone.zero_grad()
        (parallel(mine).pow(3) * weight).sum().mul(size).backward()
        (alone(whole).pow(3) * weight).sum().backward()
    close([mine.grad / size], [whole.grad[rank::size]], 1e-9)
    close(grads(parallel), grads(alone), 1e-9)
    states = parallel.module.state_dict()
    close([states[name].double() for name in states], [value.double() for value in alone.state_dict().values()], 1e-9)
    parallel.eval(), alone.eval()
    close([parallel(mine)], [alone(mine)], 1e-9)


def low_precision(rank, size):
    from torchlite.distributed._ddp.distributed_data_parallel import _MixedPrecision

    x, y = batch(4 * size)
    model = Net()
    alone = copy.deepcopy(model)
    parallel = DDP(model, mixed_precision=_MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
    out = parallel(x[rank::size])
    assert out.dtype is torch.bfloat16
    F.mse_loss(out.float(), y[rank::size]).backward()
    F.mse_loss(alone(x), y).backward()
    assert all(p.dtype is torch.float32 is p.grad.dtype for p in model.parameters())
    close(grads(model), grads(alone), 2e-2)


def delayed_parameters(rank, size):
    x, y = batch(4 * size)
    torch.manual_seed(rank)
    model = Net()
    named = [(name, p) for name, p in model.named_parameters() if name.startswith("last")]
    parallel = DDP(model, delay_all_reduce_named_params=named, param_to_hook_all_reduce=model.first.weight)
    alone = copy.deepcopy(model)
    for p in alone.parameters():
        p.grad = None
    F.mse_loss(parallel(x[rank::size]), y[rank::size]).backward()
    F.mse_loss(alone(x), y).backward()
    close(grads(model), grads(alone))


def optimizers_that_share_out(rank, size):
    from torchlite.distributed.algorithms.join import Join
    from torchlite.distributed.optim import ZeroRedundancyOptimizer

    x, y = batch(4 * size)
    for views in (False, True):
        model, alone = Net(), Net()
        alone.load_state_dict(model.state_dict())
        parallel = DDP(model)
        alone.load_state_dict(model.state_dict())
        shared = ZeroRedundancyOptimizer(
            parallel.parameters(), torch.optim.Adam, lr=0.01, parameters_as_bucket_view=views
        )
        whole = torch.optim.Adam(alone.parameters(), lr=0.01)
        for step in range(4):
            shared.param_groups[0]["lr"] = whole.param_groups[0]["lr"] = 0.01 / (step + 1)
            for optimizer, net, part in ((shared, parallel, slice(rank, None, size)), (whole, alone, slice(None))):
                optimizer.zero_grad()
                F.mse_loss(net(x[part]), y[part]).backward()
                optimizer.step()
            close(list(model.parameters()), list(alone.parameters()), 1e-5)
        assert 0 < len(shared.optim.state) < 4
        if rank:
            with pytest.raises(RuntimeError, match="Optimizer state has not been consolidated on this rank"):
                shared.state_dict()
        shared.consolidate_state_dict(to=0)
        state = [shared.state_dict() if rank == 0 else None]
        dist.broadcast_object_list(state, src=0)
        expected = whole.state_dict()["state"]
        assert list(state[0]["state"]) == list(expected)
        for number, item in state[0]["state"].items():
            close([item["exp_avg"], item["step"]], [expected[number]["exp_avg"], expected[number]["step"]], 1e-5)
        again = ZeroRedundancyOptimizer(parallel.parameters(), torch.optim.Adam, lr=0.5)
        again.load_state_dict(state[0])
        assert again.param_groups[0]["lr"] == 0.01 / 4 and len(again.optim.state) == len(shared.optim.state)
    with Join([parallel, again]):
        for _ in range(1 + rank):
            parallel(x).sum().backward()
            again.step()
    told = [None] * size
    dist.all_gather_object(told, [p.tolist() for p in model.parameters()])
    assert all(one == told[0] for one in told)


def models_averaged(rank, size):
    from torchlite.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as local
    from torchlite.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    from torchlite.distributed.optim import PostLocalSGDOptimizer

    parallel = DDP(nn.Linear(1, 1, bias=False))
    state = local.PostLocalSGDState(None, None, 1, post_local_gradient_allreduce=False)
    parallel.register_comm_hook(state, local.post_localSGD_hook)
    averager = PeriodicModelAverager(period=3, warmup_steps=1)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD(parallel.parameters(), 1.0), averager)
    weights = []
    for _ in range(5):
        optimizer.zero_grad()
        parallel(torch.full((1, 1), rank + 1.0)).sum().backward()
        optimizer.step()
        told = [None] * size
        dist.all_gather_object(told, parallel.module.weight.item())
        weights.append(len(set(told)))
    assert weights == [1, 1, size, size, 1]  # together, mean, alone, alone, mean
    saved = optimizer.state_dict()
    assert saved["step"] == averager.step == 5
    averager.step = 0
    optimizer.load_state_dict(saved)
    assert averager.step == 5


def gradients_on_two_drivers_of_opencl(rank, size):
    """A rank on each driver: gradients are those of the CPU, and what is reduced is in the devices' own memory."""
    device = f"opencl:{rank}"
    text = nn.Sequential(nn.Embedding(12, 8), nn.LayerNorm(8), nn.Flatten(), nn.Linear(40, 10))
    pictures = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    for alone, x in ((text, torch.randint(12, (8, 5))), (pictures, torch.randn(8, 1, 8, 8))):
        y = torch.randint(10, (8,))
        mine = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(alone)).to(device)
        mine = DDP(mine, device_ids=[device], gradient_as_bucket_view=True)
        for _ in range(2):  # the second with buckets in another order
            mine.zero_grad()
            alone.zero_grad()
            F.cross_entropy(mine(x[rank::2].to(device)), y[rank::2].to(device)).backward()
            F.cross_entropy(alone(x), y).backward()
        for one, other in zip(mine.parameters(), alone.parameters(), strict=True):
            assert one.grad.device == torch.device(device)
            torch.testing.assert_close(one.grad.cpu(), other.grad, atol=1e-5, rtol=1e-5)
