"""Traces of several threads at once, and programs that run eagerly beside them."""

from __future__ import annotations

import builtins
import contextlib
import io
import math
import os
import sys
import threading
import time
import warnings

import pytest

import torchlite as torch
from torchlite._dispatch import recording, tracing

PAIRS = int(os.environ.get("TORCHLITE_TRACING_PAIRS", "10"))  # 200 at night


def linear():
    """A layer whose numbers are no draws, which threads share."""
    made = torch.nn.Linear(4, 4)
    with torch.no_grad():
        made.weight.copy_(torch.linspace(-1, 1, 16).reshape(4, 4))
        made.bias.fill_(0.25)
    return made


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = linear()
        self.meet = None

    def scaled(self, x):
        return x * min(x.shape[0], 100) / math.sqrt(x.shape[1])

    def forward(self, x):
        if self.meet is not None:
            self.meet()
        return self.scaled(torch.relu(self.linear(x)))[0:2]


class Plain(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = linear()
        self.meet = None

    def forward(self, x):
        if self.meet is not None:
            self.meet()
        return torch.nn.functional.relu(self.linear(x)) + math.sqrt(x.size(1))


class Scripted(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = linear()

    def forward(self, x):
        return torch.relu(self.linear(x)) * 2


def exported(x, meet):
    net = Net()
    net.meet = meet
    sizes = {"x": {0: torch.export.Dim("n", min=2, max=64)}}
    program = torch.export.export(net, (x,), dynamic_shapes=sizes)
    return program.module()(torch.ones(7, 4))


def symbolic(x, meet):
    net = Plain()
    net.meet = meet
    return torch.fx.symbolic_trace(net)(x)


def compiled(x, meet):
    def f(x):
        return torch.relu(x) * 3 + min(4, 5)

    if meet is not None:
        meet()
    call = torch.compile(f)
    return [call(x) for _ in range(3)][-1]


def scripted(x, meet):
    if meet is not None:
        meet()
    return torch.jit.script(Scripted())(x)


def traced(x, meet):
    net = Scripted()
    if meet is not None:
        net.register_forward_pre_hook(lambda *_: meet())
    return torch.jit.trace(net, (x,), check_trace=False)(x)


def made(x, meet):
    def f(x):
        if meet is not None:
            meet()
        return torch.relu(x).sum(0)[1:]

    from torchlite.fx.experimental.proxy_tensor import make_fx

    return make_fx(f)(x)(x)


def mapped(x, meet):
    if meet is not None:
        meet()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
        return torch.vmap(lambda row: torch.relu(row) * row.sum())(x)


WAYS = {f.__name__: f for f in (exported, symbolic, compiled, scripted, traced, made, mapped)}


def everything():
    """The attributes of what a trace might replace."""
    spaces = {"builtins": vars(builtins), "math": vars(math), "warnings": vars(warnings)}
    spaces |= {"Module": vars(torch.nn.Module), "functional": vars(torch.nn.functional), "globals": globals()}
    return {name: dict(space) for name, space in spaces.items()} | {"Tensor": dict(vars(torch.Tensor))}


VOLATILE = {"_filters_version", "filters", "showwarning", "_showwarnmsg_impl", "onceregistry", "_onceregistry"}


def changed(before, after):
    """The names whose values are others; those that `warnings.catch_warnings` changes, and first uses, are not."""
    return [
        (where, name)
        for where, space in before.items()
        for name, value in space.items()
        if name not in VOLATILE and after[where].get(name) is not value and type(value).__name__ != "_Later"
    ]


class Eager(threading.Thread):
    """Runs programs as they are written while others trace, and looks at what Python and torchlite have."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.stop, self.rounds, self.wrong = threading.Event(), 0, []

    def run(self) -> None:
        try:
            net = Plain()
            x = torch.arange(12.0).reshape(3, 4)
            want = net(x)
            names = "min", "max", "print", "len"
            before = [getattr(builtins, n) for n in names], math.sqrt, warnings.warn, [
                getattr(torch.nn.Module, n) for n in ("__call__", "__getattr__", "_call_impl")
            ]  # fmt: skip
            while not self.stop.is_set():
                now = [getattr(builtins, n) for n in names], math.sqrt, warnings.warn, [
                    getattr(torch.nn.Module, n) for n in ("__call__", "__getattr__", "_call_impl")
                ]  # fmt: skip
                if now != before or not torch.equal(net(x), want) or min(3, 2) != 2 or x[1, 2].item() != 6.0:
                    self.wrong.append(self.rounds)
                self.rounds += 1
                time.sleep(1e-4)  # so that the traces get their turns
        except BaseException as error:
            self.wrong.append(error)


@pytest.fixture
def quick_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(first, second, barrier=None):
    """What two functions give that run in two threads, or their errors."""
    found = [None, None]

    def run(i, way):
        try:
            found[i] = way(torch.arange(12.0).reshape(3, 4) - 5, None if barrier is None else lambda: meet(barrier))
        except BaseException as error:
            found[i] = error

    def meet(barrier):
        with contextlib.suppress(threading.BrokenBarrierError):  # the other has met it often enough
            barrier.wait(0.2)

    threads = [threading.Thread(target=run, args=(i, way)) for i, way in enumerate((first, second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return found


@pytest.mark.filterwarnings("ignore")
def test_overlapping_pairs(quick_switches):
    ways = list(WAYS.values())
    want = {way: way(torch.arange(12.0).reshape(3, 4) - 5, None) for way in ways}
    before = everything()
    eager = Eager()
    eager.start()
    try:
        for i in range(PAIRS):
            first, second = ways[i % len(ways)], ways[(i // len(ways) + i * 3 + 1) % len(ways)]
            found = together(first, second, threading.Barrier(2) if i % 2 else None)
            for way, value in zip((first, second), found, strict=True):
                assert isinstance(value, torch.Tensor), (i, way.__name__, value)
                assert torch.equal(value, want[way]), (i, way.__name__)
    finally:
        eager.stop.set()
        eager.join(60)
    assert eager.wrong == [] and eager.rounds
    assert changed(before, everything()) == []
    assert not tracing.TRACES and not tracing._rebound


@pytest.mark.parametrize("way", [exported, symbolic], ids=lambda way: way.__name__)
def test_two_traces_that_end_in_the_order_in_which_they_began(way):
    x, before = torch.ones(3, 4), everything()
    begun, ended, errors = threading.Event(), threading.Event(), []

    def first():
        def meet():
            assert begun.wait(30)

        try:
            way(x, meet)
        except BaseException as error:
            errors.append(error)
        ended.set()

    def second():
        def meet():
            begun.set()
            assert ended.wait(30)

        try:
            way(x, meet)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=f) for f in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert errors == [] and changed(before, everything()) == [] and not tracing._rebound


@pytest.mark.parametrize("way", [exported, symbolic, made, traced], ids=lambda way: way.__name__)
def test_an_error_in_one_of_two_traces(way):
    before = everything()
    want = way(torch.arange(12.0).reshape(3, 4) - 5, None)

    def fails(x, meet):
        def meet_and_raise():
            meet()
            raise KeyError("here")

        return way(x, meet_and_raise)

    one, other = together(way, fails, threading.Barrier(2))
    assert torch.equal(one, want) and isinstance(other, KeyError)
    assert changed(before, everything()) == [] and not tracing.TRACES and not tracing._rebound


def test_traces_within_a_trace_and_on_a_thread_that_a_trace_waits_for():
    x = torch.ones(3, 4)

    def within():
        torch.fx.symbolic_trace(Plain())
        thread = threading.Thread(target=symbolic, args=(x, None))
        thread.start()
        thread.join(30)
        assert not thread.is_alive()

    assert torch.equal(exported(x, within), exported(x, None))
    assert not tracing.TRACES and not tracing._rebound


def test_tracing_is_said_of_the_thread_that_traces():
    said = []

    def meet():
        thread = threading.Thread(target=lambda: said.append(torch.fx._symbolic_trace.is_fx_tracing()))
        thread.start()
        thread.join()
        said.append(torch.fx._symbolic_trace.is_fx_tracing())

    symbolic(torch.ones(3, 4), meet)
    assert said == [False, True]
    told = []

    def f(x):
        told.append((torch.jit.is_tracing(), torch._C._is_tracing()))
        return x + 1

    torch.jit.trace(f, (torch.ones(2),), check_trace=False)
    assert told[0] == (True, True) and not torch._C._is_tracing()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_beside_a_trace_has_no_trace():
    def meet():
        def fork():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                child = os.fork()
            if not child:
                os._exit(0 if not tracing.TRACES and not tracing._rebound and isinstance(math, type(os)) else 1)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

        thread = threading.Thread(target=fork)
        thread.start()
        thread.join(30)

    codes: list[int] = []
    symbolic(torch.ones(3, 4), meet)
    assert codes == [0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_beside_a_recorder_can_record():
    def fork():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if not child:
            try:
                same = all(table.__dict__[name] is kernel for name, kernel in plain.items())
                with recording.KernelRecorder(table):
                    torch.ones(2).exp()
                os._exit(0 if same and not recording.RECORDERS else 1)
            finally:
                os._exit(2)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    codes: list[int] = []
    table = torch.ones(2)._table
    plain = dict(table.__dict__)
    with recording.KernelRecorder(table):
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join(30)
        fork()  # the thread that records is there in the child: its recorder goes on
    assert codes == [0, 2]


def test_saved_programs_of_threads(quick_switches):
    def saved(x, meet):
        buffer = io.BytesIO()
        torch.export.save(torch.export.export(Scripted(), (x,)), buffer)
        buffer.seek(0)
        return torch.export.load(buffer).module()(x) * 0

    one, other = together(saved, saved)
    assert torch.equal(one, other)


def test_two_exports_of_one_module(quick_switches):
    net, x = Plain(), torch.ones(3, 4)
    before = dict(vars(net.linear))
    want = net(x)

    def way(x, meet):
        net.meet = meet
        return torch.export.export(net, (torch.ones(3, 4),)).module()(torch.ones(3, 4))

    for _ in range(3):
        for found in together(way, way, threading.Barrier(2)):
            assert torch.equal(found, want)
    net.meet = None
    assert vars(net.linear).keys() == before.keys()
    assert {type(p) for p in net.parameters()} == {torch.nn.Parameter}
