"""`torch.profiler` and `torch.autograd.profiler`."""

from __future__ import annotations

import gzip
import json

import pytest

import torchlite as torch
from torchlite._dispatch import interceptors
from torchlite._dispatch.dispatch_state import GLOBALS
from torchlite.fx.experimental.proxy_tensor import make_fx
from torchlite.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule


def names(events):
    return [event.name for event in events]


def test_ops_of_both_passes_by_name():
    layer, x = torch.nn.Linear(8, 4), torch.ones(2, 8)
    with profile() as prof:
        layer(x).relu().sum().backward()
    found = names(prof.events())
    assert found[:3] == ["aten::linear", "aten::relu", "aten::sum"]
    node = next(e for e in prof.events() if e.name == "ReluBackward0")
    assert node.cpu_parent.name == "autograd::engine::evaluate_function: ReluBackward0"
    assert names(node.cpu_children) == ["aten::relu_backward"]
    assert not GLOBALS["INTERCEPTORS"]


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_numbers_stay_the_same(kind):
    grads = []
    for on in (False, True):
        torch.manual_seed(0)
        x, w = torch.randn(4, 8).to(kind), torch.randn(8, 3).to(kind).requires_grad_()
        with torch.autograd.profiler.profile(enabled=on):
            torch.tanh(x @ w).square().sum().backward()
        grads.append(w.grad)
    assert torch.equal(*grads)


def test_regions_contain_their_events():
    @record_function("decorated")
    def double(x):
        return x * 2

    with profile() as prof, record_function("outer"):
        double(torch.ones(2))
    outer, inner = (next(e for e in prof.events() if e.name == n) for n in ("outer", "decorated"))
    assert inner.cpu_parent is outer and names(inner.cpu_children) == ["aten::mul"]
    assert outer.cpu_time_total >= inner.cpu_time_total >= inner.self_cpu_time_total >= 0
    assert outer.self_cpu_time_total + sum(e.cpu_time_total for e in outer.cpu_children) == outer.cpu_time_total
    with record_function("nobody looks"):
        pass


def test_averages_and_their_table():
    x = torch.ones(4, 4)
    with profile(record_shapes=True, with_flops=True, profile_memory=True) as prof:
        for _ in range(3):
            torch.mm(x, x)
        torch.mm(x[:2], x)
    averages = {e.key: e for e in prof.key_averages()}
    assert averages["aten::mm"].count == 4 and averages["aten::mm"].flops == 3 * 128 + 64
    assert averages["aten::mm"].cpu_memory_usage == 3 * 64 + 32
    by_shape = [e for e in prof.key_averages(group_by_input_shape=True) if e.key == "aten::mm"]
    assert sorted((e.count, e.input_shapes) for e in by_shape) == [(1, [[2, 4], [4, 4]]), (3, [[4, 4], [4, 4]])]
    table = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=1)
    lines = table.splitlines()
    assert (
        "Self CPU %" in lines[1] and "# of Calls" in lines[1] and "Total MFLOPs" in lines[1] and "CPU Mem" in lines[1]
    )
    assert len(lines) == 6 and lines[-1].startswith("Self CPU time total: ")
    with pytest.raises(AttributeError):
        prof.key_averages().table(sort_by="nothing")
    assert prof.events().total_average().count == len(prof.events())


def test_traces_and_stacks_are_written(tmp_path):
    with profile(with_stack=True, record_shapes=True) as prof:
        for _ in range(20):
            torch.ones(64, 64).exp()
    prof.add_metadata_json("numbers", "[1, 2]")
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    text = (tmp_path / "trace.json").read_text()
    assert gzip.decompress((tmp_path / "trace.json.gz").read_bytes()).decode() == text
    trace = json.loads(text)
    event = next(e for e in trace["traceEvents"] if e["name"] == "aten::exp")
    assert event["ph"] == "X" and event["dur"] > 0 and event["args"]["Input Dims"][0] == [64, 64]
    assert "test_profiler.py" in event["args"]["Call stack"]
    prof.export_stacks(str(tmp_path / "stacks.txt"))
    assert "test_traces_and_stacks_are_written" in (tmp_path / "stacks.txt").read_text()
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(tmp_path / "stacks.txt"), "other")


def test_schedules():
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    none, warm, record, save = ProfilerAction
    cycle = [none, warm, record, save]
    assert [plan(i) for i in range(11)] == [none, *cycle, *cycle, none, none]
    with pytest.warns(UserWarning, match="won't be using warmup"):
        schedule(wait=0, warmup=0, active=1)
    with pytest.raises(AssertionError):
        schedule(wait=0, warmup=1, active=0)


def test_steps_of_a_schedule():
    ready, x = [], torch.ones(2)
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=lambda p: ready.append((p.step_num, names(p.events())))) as prof:
        for _ in range(9):
            x.neg().exp()
            prof.step()
    assert [step for step, _ in ready] == [4, 8]
    assert ready[0][1] == ["ProfilerStep#2", "aten::neg", "aten::exp", "ProfilerStep#3", "aten::neg", "aten::exp"]


def test_steps_of_optimizers_are_regions():
    p = torch.nn.Parameter(torch.ones(2))
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        p.sum().backward()
        torch.optim.SGD([p], lr=0.1).step()
    assert "Optimizer.step#SGD.step" in names(prof.events())


def test_traces_for_tensorboard(tmp_path):
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path / "logs"), worker_name="w")
    with profile(on_trace_ready=handler):
        torch.ones(2)
    (file,) = (tmp_path / "logs").iterdir()
    assert file.name.startswith("w.") and file.name.endswith(".pt.trace.json")


def test_misuse():
    prof = torch.autograd.profiler.profile()
    with pytest.raises(RuntimeError, match="didn't finish running"):
        prof.key_averages()
    with prof, pytest.raises(RuntimeError, match="not reentrant"):
        prof.__enter__()
    for refusing in (torch.autograd.profiler.emit_nvtx, torch.autograd.profiler.emit_itt):
        with pytest.raises(RuntimeError, match="use torch.profiler"), refusing():
            pass
    with pytest.raises(AssertionError, match="No valid profiler activities"):
        profile(activities=[])


def test_time_on_the_device(device):
    x = torch.ones(64, 64, device=device)
    activities = [ProfilerActivity.CPU] + [a for a in ProfilerActivity if a.name.lower() == x.device.type]
    with profile(activities=activities) as prof:
        (x @ x).sum()
    total = sum(e.self_device_time_total for e in prof.events())
    assert (total > 0) == (x.device.type != "cpu")
    if x.device.type != "cpu":
        assert f"Self {x.device.type.upper()}" in prof.key_averages().table()


def test_events_find_their_parents_by_time():
    util = torch.autograd.profiler_util
    events = util.EventList(
        [
            util.FunctionEvent(id=i, node_id=0, name=str(i), thread=0, start_us=s, end_us=e)
            for i, (s, e) in enumerate(((0, 10), (1, 4), (2, 3), (5, 8), (11, 12)))
        ]
    )
    events._build_tree()
    assert [e.cpu_parent and e.cpu_parent.name for e in events] == [None, "0", "1", "0", None]
    assert events.self_cpu_time_total == 11


def test_ops_and_their_nodes_have_one_number():
    x = torch.ones(2, requires_grad=True)
    with profile() as prof:
        (x * 2).sum().backward()
    numbers = {e.name: e.sequence_nr for e in reversed(prof.events())}
    assert numbers["aten::mul"] == numbers["MulBackward0"] >= 0 and numbers["aten::sum"] == numbers["SumBackward0"] >= 0


def test_regions_as_ops():
    with profile() as prof:
        handle = torch.ops.profiler._record_function_enter("bar", None)
        torch.ones(2)
        torch.ops.profiler._record_function_exit(handle)
    assert next(e for e in prof.events() if e.name == "bar").cpu_children


def test_an_op_is_one_event_whatever_its_function_is_written_in():
    x = torch.ones(4, 4)
    with torch.profiler.profile() as prof:
        torch.add(x, 1)
        torch.softmax(x, 0)
        x.max(0)
        torch.add(torch.add(x, 1), 1)
    counts = {event.key: event.count for event in prof.key_averages()}
    assert counts["aten::add"] == 3 and counts["aten::softmax"] == 1 and counts["aten::max"] == 1


def test_schedule_rejects_negative_steps():
    with pytest.raises(AssertionError, match=r"Got wait=-1 \(need >= 0\), warmup=1"):
        torch.profiler.schedule(wait=-1, warmup=1, active=1)


@pytest.mark.parametrize("trace", ["make_fx", "vmap", "grad", "jit", "mode"])
def test_a_profile_may_end_inside_a_later_region(trace):
    """The profile leaves the stack, and what began after it stays there."""
    x = torch.linspace(0.1, 1, 6).reshape(2, 3)
    profile = torch.profiler.profile()

    def work(x):
        y = x.sin()
        profile.__exit__(None, None, None)
        return (y.cos() * 2 + y.tan()).sum(-1)

    def plain(x):
        return (x.sin().cos() * 2 + x.sin().tan()).sum(-1)

    profile.__enter__()
    if trace == "make_fx":
        assert torch.equal(make_fx(work)(x)(x * 2), plain(x * 2))
    elif trace == "vmap":
        assert torch.equal(torch.func.vmap(work)(x), plain(x))
    elif trace == "grad":
        found = torch.func.grad(lambda x: work(x).sum())(x)
        torch.testing.assert_close(found, torch.func.grad(lambda x: plain(x).sum())(x))
    elif trace == "jit":
        assert torch.equal(torch.jit.trace(work, (x,), check_trace=False)(x * 2), plain(x * 2))
    else:
        with torch.overrides.BaseTorchFunctionMode():
            assert torch.equal(work(x), plain(x)) and len(interceptors.stack.items) == 1
    assert not interceptors.stack.items and not GLOBALS["INTERCEPTORS"]
