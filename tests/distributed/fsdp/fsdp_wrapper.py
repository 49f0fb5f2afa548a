"""FullyShardedDataParallel, and checkpoints of sharded models, on several ranks."""

from __future__ import annotations

import contextlib
import copy
import functools
import pathlib

import pytest

import torchlite as torch
import torchlite.distributed as dist
import torchlite.distributed.checkpoint as dcp
from torchlite import nn
from torchlite.distributed.checkpoint.optimizer import load_sharded_optimizer_state_dict
from torchlite.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torchlite.distributed.device_mesh import init_device_mesh
from torchlite.distributed.fsdp import (
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)
from torchlite.distributed.fsdp import FullyShardedDataParallel as FSDP
from torchlite.distributed.fsdp.wrap import (
    CustomPolicy,
    ModuleWrapPolicy,
    lambda_auto_wrap_policy,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
)
from torchlite.distributed.tensor import DTensor
from torchlite.nn import functional as F

from .fsdp_checks import Block, Net, batch, close, full, full_parameters, sharded, train

BLOCKS = ModuleWrapPolicy({Block})


def strategies_and_policies(rank, size):
    policies = [
        BLOCKS,
        functools.partial(size_based_auto_wrap_policy, min_num_params=100),
        functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block}),
        functools.partial(lambda_auto_wrap_policy, lambda_fn=lambda module: isinstance(module, nn.LayerNorm)),
        CustomPolicy(lambda module: {"sharding_strategy": ShardingStrategy.SHARD_GRAD_OP} if isinstance(module, Block)
                     else False),
    ]  # fmt: skip
    for number, strategy in enumerate((ShardingStrategy.FULL_SHARD, ShardingStrategy.NO_SHARD, None, None, None)):
        alone = Net()
        model = FSDP(copy.deepcopy(alone), auto_wrap_policy=policies[number], sharding_strategy=strategy)
        assert len(FSDP.fsdp_modules(model)) > 3 and FSDP.fsdp_modules(model, root_only=True) == [model]
        train(model, alone, rank, size, steps=2)
        assert model.check_is_root() and not FSDP.fsdp_modules(model)[1].check_is_root()
    alone = Net()
    options = {
        "use_orig_params": True,
        "cpu_offload": CPUOffload(True),
        "sharding_strategy": ShardingStrategy.SHARD_GRAD_OP,
    }
    train(FSDP(copy.deepcopy(alone), auto_wrap_policy=BLOCKS, **options), alone, rank, size, steps=2)


def whole_parameters_for_a_while(rank, size):
    torch.manual_seed(rank)
    model = FSDP(Net(), auto_wrap_policy=BLOCKS, sync_module_states=True)
    torch.manual_seed(0)
    told = [None] * size
    dist.all_gather_object(told, [value.tolist() for value, _ in full_parameters(model)])
    assert all(one == told[0] for one in told)
    assert "_fsdp_wrapped_module.first.weight" in dict(model.named_parameters())
    names = [name.replace("_fsdp_wrapped_module.", "") for name, _ in model.named_parameters()]
    x, y = batch(2)
    F.mse_loss(model(x), y).backward()
    with FSDP.summon_full_params(model, with_grads=True):
        found = dict(model.named_parameters())
        assert found["blocks.0.up.weight"].shape == (11, 6) and not isinstance(found["first.weight"], DTensor)
        assert found["blocks.0.up.weight"].grad.shape == (11, 6)
        with torch.no_grad():
            found["blocks.0.up.weight"].fill_(3)
            found["first.weight"].grad.fill_(2)
    found = dict(zip(names, full_parameters(model), strict=True))
    assert (found["blocks.0.up.weight"][0] == 3).all() and (found["first.weight"][1] == 2).all()
    with FSDP.summon_full_params(model, writeback=False), torch.no_grad():
        model.module.first.weight.fill_(9)
    assert (model.module.first.weight != 9).all()
    with pytest.raises(NotImplementedError, match="writeback=True and rank0_only=True is not supported"):
        with FSDP.summon_full_params(model, rank0_only=True):
            pass
    with FSDP.summon_full_params(model, rank0_only=True, writeback=False):
        assert model.module.first.weight.ndim == (1 if rank else 2)
    model.apply(lambda module: nn.init.ones_(module.weight) if isinstance(module, nn.Linear) else None)
    assert (model.module.first.weight == 1).all()


class NotYetLoaded:
    """A tensor-like object, as libraries that read files lazily have: its class copies when it is used."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.shape, self.dtype, self.device = tensor.shape, tensor.dtype, tensor.device

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*(value.tensor if isinstance(value, cls) else value for value in args), **(kwargs or {}))


def what_is_held_and_loaded(rank, size):
    alone = Net()
    state = {name: value + 1 for name, value in alone.state_dict().items()}
    for options in ({}, {"use_orig_params": True}, {"sharding_strategy": ShardingStrategy.NO_SHARD}):
        model = FSDP(copy.deepcopy(alone), auto_wrap_policy=BLOCKS, **options)
        weight = model.module.first.weight
        assert type(weight) is nn.Parameter and weight._fsdp_flattened
        rows = len(torch.arange(6).chunk(size)[rank])
        assert weight.shape == ((6, 5) if model.sharding_strategy is ShardingStrategy.NO_SHARD else (rows * 5,))
        for loaded in (state, {name: NotYetLoaded(value) for name, value in state.items()}):
            for whole in (False, True):  # also into full parameters, which are written back
                model.load_state_dict(alone.state_dict())
                with FSDP.summon_full_params(model) if whole else contextlib.nullcontext():
                    model.load_state_dict(loaded)
                    found = model.state_dict()
                    assert all((found[name] == state[name]).all() for name in state)
                assert all((value == state[name]).all() for name, value in model.state_dict().items())
        with pytest.raises(RuntimeError, match="size mismatch for .*first.bias"):
            model.load_state_dict({**state, "first.bias": torch.zeros(5)})


def gradients_that_wait_and_norms(rank, size):
    alone = Net()
    model = FSDP(copy.deepcopy(alone), auto_wrap_policy=BLOCKS)
    for step in range(3):
        x, y = batch(4 * size)
        loss = lambda x=x, y=y: F.mse_loss(model(x[rank::size]), y[rank::size]) * 3
        if step < 2:
            with model.no_sync():
                loss().backward()
        else:
            loss().backward()
        (F.mse_loss(alone(x), y) * 3).backward()
    close(model, alone, 1e-5)
    for kind in (2.0, float("inf")):
        mine, theirs = model.clip_grad_norm_(0.5, kind), nn.utils.clip_grad_norm_(alone.parameters(), 0.5, kind)
        assert abs(mine.item() - theirs.item()) < 1e-4 * theirs.item()
        close(model, alone, 1e-5)
    low = FSDP(nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)), auto_wrap_policy=BLOCKS,
               mixed_precision=MixedPrecision(torch.bfloat16, torch.float32, torch.bfloat16))  # fmt: skip
    assert low(x[rank::size]).dtype is torch.bfloat16
    assert type(low.module[1]) is FSDP


def kinds_of_state(rank, size):
    alone = Net()
    model = FSDP(copy.deepcopy(alone), auto_wrap_policy=BLOCKS)
    optimizers = train(model, alone, rank, size, steps=2)
    expected = alone.state_dict()
    state = model.state_dict()
    assert list(state) == list(expected)
    assert all((state[name] - expected[name]).abs().max() < 1e-5 for name in state)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(True, True),
                              FullOptimStateDictConfig(True, True)):  # fmt: skip
        assert len(model.state_dict()) == (len(expected) if rank == 0 else 0)
        moments = FSDP.optim_state_dict(model, optimizers[0])
        assert bool(moments) == (rank == 0)
        again = FSDP.optim_state_dict_to_load(model, optimizers[0], moments)
        optimizers[0].load_state_dict(again)
    other = FSDP(Net(), auto_wrap_policy=BLOCKS)
    for kind in StateDictType:
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.zero_()
        with FSDP.state_dict_type(model, kind), FSDP.state_dict_type(other, kind):
            taken = model.state_dict()
            assert isinstance(taken["first.weight"], DTensor) == (kind is StateDictType.SHARDED_STATE_DICT)
            other.load_state_dict(taken)
        assert all((p == q).all() for p, q in zip(other.parameters(), model.parameters(), strict=True))
    named = FSDP.full_optim_state_dict(model, optimizers[0], rank0_only=False)
    theirs = optimizers[1].state_dict()["state"]
    names = list(dict(alone.named_parameters()))
    for number, held in theirs.items():
        assert (named["state"][names[number]]["exp_avg"] - held["exp_avg"]).abs().max() < 1e-5
    from torchlite.distributed.fsdp.fully_sharded_data_parallel import OptimStateKeyType

    by_number = FSDP.rekey_optim_state_dict(named, OptimStateKeyType.PARAM_ID, model)
    assert set(by_number["state"]) == set(theirs)
    train(model, alone, rank, size, steps=1)


def hybrid_strategies(rank, size):
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("copies", "shards"))
    for options in ({"device_mesh": mesh}, {"process_group": (mesh.get_group("shards"), mesh.get_group("copies"))}):
        alone = Net()
        options["sharding_strategy"] = ShardingStrategy.HYBRID_SHARD
        train(FSDP(copy.deepcopy(alone), auto_wrap_policy=BLOCKS, **options), alone, rank, size, steps=2)


# -- checkpoints


def _made(rank, size):
    torch.manual_seed(7)
    model = sharded(Net())
    return model, torch.optim.AdamW(model.parameters(), 0.01)


def _steps(model, optimizer, rank, size, steps):
    """Return the losses of the full batch in some steps, each with other data."""
    found = []
    for step in steps:
        draw = torch.Generator().manual_seed(step)
        x, y = torch.randn(12, 5, generator=draw), torch.randn(12, 2, generator=draw)
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[rank::size]), y[rank::size])
        loss.backward()
        optimizer.step()
        every = loss.detach() * len(x[rank::size]) / 12
        dist.all_reduce(every)
        found.append(every.item())
    return found


def _folder():
    """A folder that all ranks know."""
    import os

    return pathlib.Path(os.environ["TORCHLITE_TEST_FOLDER"])


def saves(rank, size):
    model, optimizer = _made(rank, size)
    _steps(model, optimizer, rank, size, range(3))
    states = get_state_dict(model, optimizer)
    dcp.save({"model": states[0], "optimizer": states[1], "n": size}, checkpoint_id=_folder() / "parts")
    future = dcp.async_save({"model": states[0], "optimizer": states[1], "n": size}, checkpoint_id=_folder() / "later")
    elsewhere = dcp.async_save(
        {"model": states[0], "optimizer": states[1], "n": size},
        checkpoint_id=_folder() / "elsewhere",
        async_checkpointer_type=dcp.state_dict_saver.AsyncCheckpointerType.PROCESS,
    )
    for whole in (False, True):
        folder = str(_folder() / f"safetensors_{whole}")
        dcp.save(
            dict(states[0]),
            storage_writer=dcp.HuggingFaceStorageWriter(folder, save_distributed=True, enable_consolidation=whole),
        )
    losses = _steps(model, optimizer, rank, size, range(3, 6))
    future.result()
    elsewhere.result()
    whole = get_state_dict(model, optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    assert bool(whole[0]) == bool(whole[1]) == (rank == 0)
    if rank == 0:
        (_folder() / "losses").write_text(repr(losses))


def goes_on(rank, size):
    expected = eval((_folder() / "losses").read_text())  # of our own
    for name in ("parts", "later", "elsewhere"):
        model, optimizer = _made(rank, size)
        _steps(model, optimizer, rank, size, range(20, 21))
        states = get_state_dict(model, optimizer)
        state = {"model": states[0], "optimizer": states[1], "n": 0}
        dcp.load(state, checkpoint_id=_folder() / name)
        for whole in (False, True):
            weights = {key: torch.zeros_like(value) for key, value in states[0].items()}
            dcp.load(weights, storage_reader=dcp.HuggingFaceStorageReader(str(_folder() / f"safetensors_{whole}")))
            assert all(torch.equal(full(weights[key]), full(value)) for key, value in state["model"].items())
        again = load_sharded_optimizer_state_dict(states[0], "optimizer", dcp.FileSystemReader(_folder() / name))
        for key, slots in state["optimizer"]["state"].items():
            found = again["optimizer"]["state"][key]
            assert isinstance(found["exp_avg"], DTensor) and found["step"] == slots["step"]
            assert torch.equal(found["exp_avg"].to_local(), slots["exp_avg"].to_local())
        assert again["optimizer"]["param_groups"] == state["optimizer"]["param_groups"]
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        found = _steps(model, optimizer, rank, size, range(3, 6))
        assert all(abs(a - b) < 1e-5 for a, b in zip(found, expected, strict=True)), (name, found, expected)


def fails_on_one_rank(rank, size):
    model, _ = _made(rank, size)
    state = {"x": torch.ones(2) if rank else (lambda: 0)}
    with pytest.raises(dcp.CheckpointException) as found:
        dcp.save(state, checkpoint_id=_folder() / "bad")
    assert list(found.value.failures) == [0] and not (_folder() / "bad" / ".metadata").exists()
    with pytest.raises(dcp.CheckpointException, match="Missing key in checkpoint state_dict: absent"):
        dcp.load({"absent": 1}, checkpoint_id=_folder() / "parts")
    assert model.first.weight.shape == (6, 5)


def whole_states_from_one_rank(rank, size):
    model, optimizer = _made(rank, size)
    _steps(model, optimizer, rank, size, range(2))
    for flat in (False, True):
        options = StateDictOptions(full_state_dict=True, cpu_offload=True, flatten_optimizer_state_dict=flat)
        whole = get_state_dict(model, optimizer, options=options)
        other, theirs = _made(rank, size)
        _steps(other, theirs, rank, size, range(9, 10))
        options.broadcast_from_rank0 = True
        set_state_dict(other, theirs, model_state_dict=whole[0], optim_state_dict=whole[1], options=options)
        assert all((full(p) == full(q)).all() for p, q in zip(model.parameters(), other.parameters(), strict=True))
        for p, q in zip(model.parameters(), other.parameters(), strict=True):
            mine, loaded = optimizer.state[p], theirs.state[q]
            assert (full(mine["exp_avg_sq"]) == full(loaded["exp_avg_sq"])).all() and mine["step"] == loaded["step"]
            assert isinstance(loaded["exp_avg"], DTensor)
