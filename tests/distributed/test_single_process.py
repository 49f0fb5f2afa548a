"""A world of one process, which needs no MPI; what is refused before there is one; names of backends."""

import functools
import io
import time
from datetime import timedelta

import pytest

import torchlite as torch
import torchlite.distributed as dist
from tests.distributed.checked_collectives import KINDS, MOVED, REDUCING, Step, begin, ops_of
from torchlite.distributed import Backend, ReduceOp


@pytest.fixture
def alone(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


@pytest.mark.parametrize("kind", KINDS)
def test_collectives(alone, device, kind):
    dtypes = [torch.float32, torch.bfloat16, torch.int64, torch.bool, *([] if kind in REDUCING else MOVED)]
    for i, dtype in enumerate(dtypes):
        for op in ops_of(dtype) if kind in REDUCING else [ReduceOp.SUM]:
            if device != "cpu" and dtype in MOVED:
                continue
            begin(Step(kind, alone, [0], dtype, (2, 3), op, 0, (1, i), bool(i % 2), device), i == 0)()


def test_the_group(alone):
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
    assert alone.name() == "gloo" and alone.group_name == "0" and alone.group_desc == "default_pg"
    assert dist.get_backend_config() == "cpu:gloo,cuda:gloo,opencl:gloo"
    with pytest.raises(ValueError, match="default process group twice"):
        dist.init_process_group("gloo", rank=0, world_size=1)
    with pytest.raises(ValueError, match="destination rank should not be the same"):
        dist.send(torch.ones(1), 0)
    found = [None]
    dist.all_gather_object(found, {"a": 1})
    assert found == [{"a": 1}]
    work = dist.all_reduce(torch.ones(2), async_op=True)
    assert isinstance(work, dist.Work) and work.wait() and work.is_success() and work.result()[0].tolist() == [1, 1]
    dist.monitored_barrier(timeout=timedelta(seconds=1))
    assert list(torch.utils.data.DistributedSampler(range(3), shuffle=False)) == [0, 1, 2]


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: dist.get_rank(), ValueError, "Default process group has not been initialized"),
        (lambda: dist.all_reduce(torch.ones(1)), ValueError, "Default process group has not been initialized"),
        (lambda: dist.new_group([0]), ValueError, "Default process group has not been initialized"),
        (lambda: dist.destroy_process_group(), AssertionError, "Process group cannot be None"),
        (lambda: dist.init_process_group("gloo"), ValueError, "environment variable RANK expected, but not set"),
        (
            lambda: dist.init_process_group("gloo", rank=1, world_size=2),
            ValueError,
            "environment variable MASTER_ADDR expected, but not set",
        ),
        (lambda: dist.init_process_group(store=dist.HashStore(), rank=0, world_size=0), AssertionError, "be positive"),
        (lambda: dist.init_process_group("tcp", init_method="tcp://a:1"), AssertionError, "Unknown c10d backend"),
        (lambda: dist.init_process_group("gloo", "tcp://a:1"), ValueError, "rank parameter missing"),
        (lambda: dist.init_process_group("gloo", timeout=3), TypeError, "datetime.timedelta, got 3"),
        (lambda: dist.init_process_group("nccl", rank=0, world_size=1), RuntimeError, "doesn't have NCCL built in"),
        (lambda: dist.init_process_group("cpu:gloo,cpu:mpi"), ValueError, "Duplicate device type cpu"),
        (lambda: dist.init_process_group("cpu:gloo:mpi"), ValueError, "Invalid device:backend pairing"),
    ],
)
@pytest.mark.filterwarnings("ignore:Device capability")
def test_refused(monkeypatch, call, kind, words):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(kind, match=words):
        call()
    assert not dist.is_initialized() and dist.group.WORLD is None


def test_mpi_alone_needs_no_place():
    dist.init_process_group("mpi")
    assert dist.get_world_size() == 1
    dist.destroy_process_group()


def test_reductions_have_names():
    assert isinstance(ReduceOp.SUM, ReduceOp) and ReduceOp.SUM == ReduceOp(ReduceOp.SUM) != ReduceOp.MAX
    assert str(ReduceOp.SUM) == "RedOpType.SUM" and repr(ReduceOp.SUM) == "<RedOpType.SUM: 0>"
    with pytest.warns(FutureWarning, match="deprecated"):
        assert dist.reduce_op.MAX is ReduceOp.MAX


def test_register_backend():
    class Counting:
        def __init__(self, store, rank, size, timeout):
            self.calls = []

        def name(self):
            return "counting"

        def allreduce(self, tensors, opts):
            self.calls.append(opts.reduceOp)
            return None

    Backend.register_backend("counting", Counting, devices=["cpu"])
    dist.init_process_group("counting", rank=0, world_size=1)
    try:
        dist.all_reduce(torch.ones(1), ReduceOp.MAX)
        assert dist.get_backend() == "counting" == Backend.COUNTING
        assert dist.group.WORLD._get_backend(torch.device("cpu")).calls == [ReduceOp.MAX]
    finally:
        dist.destroy_process_group()
    with pytest.raises(RuntimeError, match="counting c10d backend already exist"):
        Backend.register_backend("counting", Counting)


def test_record_writes_the_error_file(monkeypatch, tmp_path):
    from torchlite.distributed.elastic.multiprocessing.errors import record

    @record
    def main():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        main()
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    with pytest.raises(ValueError, match="no"):
        main()
    told = (tmp_path / "error.json").read_text()
    assert "ValueError: no" in told and "in main" in told
    assert dist.constants.default_pg_timeout == timedelta(minutes=30)


@pytest.mark.parametrize("kind", ["NO_REENTRANT", "REENTRANT", "offload"])
def test_wrappers_of_activations(kind):
    from torchlite.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers

    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(4, 2)))
    names, x = list(net.state_dict()), torch.randn(5, 3, requires_grad=True)
    net(x).sum().backward()
    right, given = [p.grad.clone() for p in net.parameters()], x.grad.clone()
    runs = []
    net[1][0].register_forward_hook(lambda *_: runs.append(1))
    wrap = wrappers.offload_wrapper
    if kind != "offload":
        wrap = functools.partial(wrappers.checkpoint_wrapper, checkpoint_impl=wrappers.CheckpointImpl[kind])
    wrappers.apply_activation_checkpointing(net, wrap, lambda part: isinstance(part, torch.nn.Sequential))
    assert list(net.state_dict()) == names
    assert [name for name, _ in net[1].named_parameters()] == ["1.weight", "1.bias"]
    assert isinstance(net[1], wrappers.ActivationWrapper) and isinstance(net[1][1], torch.nn.Linear)
    net.zero_grad()
    x.grad = None
    net(x).sum().backward()
    assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), right, strict=True))
    assert torch.equal(x.grad, given) and len(runs) == (1 if kind == "offload" else 2)
    net.load_state_dict({name: torch.zeros_like(value) for name, value in net.state_dict().items()})
    assert not net(x).any()


def test_debug_level(monkeypatch):
    assert dist.get_debug_level() is dist.DebugLevel.OFF and dist.GroupName("a") == "a"
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    assert dist.get_debug_level() is dist.DebugLevel.DETAIL
    monkeypatch.setattr("torchlite.distributed._debug_level._level", [])
    dist.set_debug_level(dist.DebugLevel.INFO)
    assert dist.get_debug_level() is dist.DebugLevel.INFO
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() is dist.DebugLevel.DETAIL
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "much")
    with pytest.raises(ValueError, match="must be OFF, INFO, or DETAIL"):
        dist.set_debug_level_from_env()
    with pytest.raises(TypeError, match="set_debug_level"):
        dist.set_debug_level(1)


def test_a_breakpoint_stops_one_rank(monkeypatch, capsys):
    dist.init_process_group("gloo", rank=0, world_size=1)
    monkeypatch.setattr("torchlite.distributed._debug_tools._calls", 0)
    monkeypatch.setattr("sys.stdin", io.StringIO("up\np answer\ncontinue\n"))
    answer = 41 + 1
    dist.breakpoint(skip=1)
    assert "42" not in capsys.readouterr().out
    dist.breakpoint(skip=1)
    said = capsys.readouterr().out
    assert "Type 'up' to get to the frame" in said and str(answer) in said
    for ranks, kind, words in (
        (0, TypeError, "ranks_to_exclude must be a list, but got int"),
        ([], ValueError, "ranks_to_exclude cannot be empty"),
        ([0], ValueError, "Cannot shrink a process group with size 1"),
    ):
        with pytest.raises(kind, match=words):
            dist.shrink_group(ranks)
    dist.destroy_process_group()


def test_a_modules_state_of_one_process():
    dist.init_process_group("gloo", rank=0, world_size=1)
    from torchlite.distributed.utils import _sync_module_states

    net = torch.nn.BatchNorm1d(2)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    _sync_module_states(net, dist.group.WORLD, 1 << 20, 0)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    dist.destroy_process_group()


@pytest.mark.parametrize(
    "rank, size, words",
    [
        ("0", "0", "TCPStore world size cannot be 0"),
        ("5", "2", "rank 5 is not in a world of 2 processes"),
        ("2", "2", "rank 2 is not in a world of 2 processes"),
        ("1", "1", "rank 1 is not in a world of 1 process"),
        ("-1", "2", "RANK must not be negative, but it is -1"),
        ("0", "-3", "WORLD_SIZE must not be negative, but it is -3"),
        ("x", "2", "RANK must be an integer: invalid literal for int.. with base 10: 'x'"),
        ("0", "1.5", "WORLD_SIZE must be an integer: invalid literal for int.. with base 10: '1.5'"),
        ("", "2", "RANK must be an integer"),
    ],
)
def test_places_that_no_world_has_are_refused_at_once(monkeypatch, rank, size, words):
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "29609")
    begin = time.monotonic()
    for say in (lambda: dist.init_process_group("gloo"), lambda: next(dist.rendezvous("env://"))):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", size)
        with pytest.raises(ValueError, match=words):
            say()
    if rank.isdigit() and size.isdigit():
        monkeypatch.delenv("RANK")
        monkeypatch.delenv("WORLD_SIZE")
        with pytest.raises(ValueError, match=words):
            dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29609", rank=int(rank), world_size=int(size))
    assert time.monotonic() - begin < 5 and not dist.is_initialized()
