"""Traces of several threads at once, and programs that run eagerly beside them."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import copy
import io
import linecache
import math
import os
import pickle
import sys
import threading
import time
import warnings

import pytest

import torchlite as torch
from torchlite._dispatch import kernel_recorder, tracing

PAIRS = int(os.environ.get("TORCHLITE_TRACING_PAIRS", "10"))  # 200 at night


def linear():
    """A layer whose numbers are no draws."""
    made = torch.nn.Linear(4, 4)
    with torch.no_grad():
        made.weight.copy_(torch.linspace(-1, 1, 16).reshape(4, 4))
        made.bias.fill_(0.25)
    return made


# Functions shared by traced programs and by programs that run eagerly.
SHARED = torch.nn.Sequential(linear(), torch.nn.BatchNorm1d(4)).eval()
CONSTANT = torch.linspace(0, 1, 4)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = SHARED[0]
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
        self.linear = SHARED[0]
        self.meet = None

    def forward(self, x):
        if self.meet is not None:
            self.meet()
        return torch.nn.functional.relu(self.linear(x)) + math.sqrt(x.size(1))


class Scripted(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = SHARED[0]

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


def written(x, meet):
    net, file = Plain(), io.BytesIO()
    net.meet = meet
    torch.onnx.export(net, (x,), file)
    return torch.onnx.load(io.BytesIO(file.getvalue()))(x)


WAYS = {f.__name__: f for f in (exported, symbolic, compiled, scripted, traced, made, mapped, written)}


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


def attributes():
    """The attributes of what a trace might replace, by the names of their owners."""
    owners = torch.Tensor, torch.nn.Parameter, torch.nn.Module, builtins, math, warnings
    return {owner.__name__: (owner, dict(vars(owner))) for owner in owners}


def replaced(before):
    """Return the attributes that were replaced; methods created at their first use count as unchanged afterwards."""
    return [
        f"{where}.{name}"
        for where, (owner, names) in before.items()
        for name, value in names.items()
        if vars(owner).get(name) is not value and type(value).__name__ != "_Later"
    ]


def not_plain(model):
    """Return the names of a module's tensors whose classes have changed since its creation."""
    found = [name for name, value in model.named_parameters() if type(value) is not torch.nn.Parameter]
    return found + [name for name, value in model.named_buffers() if type(value) is not torch.Tensor]


def copies(model):
    """Copies of a module by each way that writes the classes of its tensors."""
    yield copy.deepcopy(model)
    yield pickle.loads(pickle.dumps(model))
    file = io.BytesIO()
    torch.save(model, file)
    assert b"experimental" not in file.getvalue()
    yield torch.load(io.BytesIO(file.getvalue()), weights_only=False)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    again = copy.deepcopy(model)
    again.load_state_dict(torch.load(io.BytesIO(file.getvalue())))
    yield again


def seen_by_a_thread_that_traces_nothing(before):
    """The attributes and values that differ from those without a trace."""
    wrong = replaced(before) + not_plain(SHARED) + [type(CONSTANT).__name__] * (type(CONSTANT) is not torch.Tensor)
    for made in copies(SHARED):
        wrong += not_plain(made)
        wrong += [f"values of {n}" for n, v in made.state_dict().items() if not torch.equal(v, SHARED.state_dict()[n])]
    x = torch.arange(12.0).reshape(3, 4)
    values = {
        "sizes": {type(n) for n in (*x.shape, x.size(0), x.numel(), *x.size())} == {int},
        "reads": x[1, 2].item() == 6.0
        and bool(x[0, 1])
        and int(x[2, 3]) == 11
        and x[0].tolist() == [0.0, 1.0, 2.0, 3.0],
        "tensors": {type(t) for t in (x.detach(), x.data, x[0], x.to(torch.int64), x.new_zeros(2), x.cpu())}
        == {torch.Tensor},
        "format": f"{x.sum():.1f}" == "66.0",
        "functions": min(3, 2) == 2 and math.sqrt(4.0) == 2.0,
        "dtype": torch.get_default_dtype() is torch.float32,
        "grad": torch.is_grad_enabled() and not torch.is_inference_mode_enabled(),
        "autocast": not torch.is_autocast_enabled("cpu") and (x @ x.T).dtype is torch.float32,
        "tracing": not torch.jit.is_tracing() and not torch.compiler.is_exporting(),
    }
    x.requires_grad_()
    SHARED(x).sum().backward()
    values["gradients"] = type(x.grad) is torch.Tensor and SHARED[0].weight.requires_grad
    return wrong + [name for name, holds in values.items() if not holds]


class Eager(threading.Thread):
    """Runs programs as they are written while others trace, and looks at what Python and torchlite have."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.stop, self.rounds, self.wrong = threading.Event(), 0, []

    def run(self) -> None:
        try:
            net, before = Plain(), attributes()
            x = torch.arange(12.0).reshape(3, 4)
            want = net(x)
            while not self.stop.is_set():
                self.wrong += seen_by_a_thread_that_traces_nothing(before)
                if not torch.equal(net(x), want):
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
    """Run two functions in two threads; return their results or errors."""
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


def interrupt_at_line(work, functions: tuple[str, ...], line: int) -> bool:
    """Run `work`, and raise KeyboardInterrupt at the n-th line that runs of these functions of the module of traces;
    True if it came so far. Lines that begin a block with a lock do not count: Python lets no signal in where the lock
    is taken or released, and a trace function that raises there would keep it.
    """
    count = 0

    def at_call(frame, event, arg):
        code = frame.f_code
        return at_line if code.co_filename == tracing.__file__ and code.co_name in functions else None

    def at_line(frame, event, arg):
        nonlocal count
        if event == "line" and not linecache.getline(tracing.__file__, frame.f_lineno).lstrip().startswith("with "):
            count += 1
            if count == line:
                raise KeyboardInterrupt
        return at_line

    before = sys.gettrace()
    sys.settrace(at_call)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("functions", [("rebind", "__init__"), ("__enter__",), ("__exit__", "restore")])
def test_an_interrupt_at_any_line_leaves_no_name_rebound(functions):
    layer = Plain()
    torch.fx.symbolic_trace(layer)
    before, line = everything(), 1
    while interrupt_at_line(lambda: torch.fx.symbolic_trace(layer), functions, line):
        assert changed(before, everything()) == [] and not tracing.TRACES and not tracing._rebound, line
        assert tracing.THREAD.trace is None and not tracing._lock._is_owned(), line
        line += 1
    assert line > 3


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


def test_is_fx_tracing_is_per_thread():
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


class Uses(torch.nn.Module):
    """A program of parts that other threads use as well. In the middle of its first run it calls `meet`."""

    def __init__(self, meet) -> None:
        super().__init__()
        self.net, self.constant, self.meet = SHARED, CONSTANT, [meet]

    def forward(self, x):
        y = self.net(x) + self.constant + self.net[0].weight.detach()[0]
        while self.meet:
            self.meet.pop()()
        return y * x.shape[0] + self.net[0].bias.data


def export(net, x):
    torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim("n", min=2, max=64)},)).run_decompositions()


def make_fx(net, x):
    from torchlite.fx.experimental.proxy_tensor import make_fx

    make_fx(lambda x: net(x))(x)


# Traces of a module, each as a function of the module and an input.
TRACES = {
    "export": export,
    "make_fx": make_fx,
    "trace": lambda net, x: torch.jit.trace(net, (x,), check_trace=False),
    "_get_trace_graph": lambda net, x: torch.jit._get_trace_graph(net, (x,)),
    "symbolic_trace": lambda net, x: torch.fx.symbolic_trace(net),
    "onnx": lambda net, x: torch.onnx.export(net, (x,), io.BytesIO()),
    "compile": lambda net, x: torch.compile(net)(x),
    "explain": lambda net, x: torch._dynamo.explain(net)(x),
}


@pytest.fixture(scope="module", autouse=True)
def first_uses():
    """Operators are created at their first use, which replaces them on the class permanently."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way in TRACES.values():
            way(Uses(lambda: None), torch.ones(3, 4))
        for way in WAYS.values():
            way(torch.arange(12.0).reshape(3, 4) - 5, None)
        seen_by_a_thread_that_traces_nothing(attributes())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", TRACES.values(), ids=TRACES)
def test_another_thread_sees_nothing_of_a_trace(way):
    before, found, classes = attributes(), [], []

    def meet():
        thread = threading.Thread(target=lambda: found.append(seen_by_a_thread_that_traces_nothing(before)))
        thread.start()
        thread.join(60)
        classes.extend(not_plain(SHARED) + replaced(before))

    with torch.no_grad():
        way(Uses(meet), torch.ones(3, 4))
    assert found == [[]] and classes == []
    assert seen_by_a_thread_that_traces_nothing(before) == [] and not tracing.TRACES


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", TRACES.values(), ids=TRACES)
def test_a_trace_sees_nothing_of_the_modes_of_another_thread(way):
    found = []

    def meet():
        entered, leave = threading.Event(), threading.Event()

        def other():
            with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
                entered.set()
                assert leave.wait(60)

        thread = threading.Thread(target=other)
        thread.start()
        assert entered.wait(60)
        found.append((torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.get_default_dtype()))
        leave.set()
        thread.join(60)

    way(Uses(meet), torch.ones(3, 4))
    assert found == [(True, False, torch.float32)]


def test_an_event_loop_beside_an_export():
    before = attributes()

    async def main():
        loop, begun, leave = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def meet():
            loop.call_soon_threadsafe(begun.set)
            assert leave.wait(60)

        async def eager():
            found = []
            for _ in range(3):
                found += seen_by_a_thread_that_traces_nothing(before)
                await asyncio.sleep(0)
            return found

        task = asyncio.create_task(asyncio.to_thread(export, Uses(meet), torch.ones(3, 4)))
        try:
            await asyncio.wait_for(begun.wait(), 60)
            return await asyncio.gather(eager(), eager())
        finally:
            leave.set()
            await task

    assert asyncio.run(main()) == [[], []]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("in_thread", [True, False], ids=["beside", "within"])
@pytest.mark.parametrize("way", TRACES.values(), ids=TRACES)
def test_a_forked_child_has_plain_classes(way, in_thread):
    before, codes = attributes(), []

    def fork():
        child = os.fork()
        if child:
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            return
        try:
            wrong = replaced(before) + not_plain(SHARED)
            if in_thread:  # the trace is of a thread that is not there
                wrong += seen_by_a_thread_that_traces_nothing(before) + tracing.TRACES
                way(Uses(lambda: None), torch.ones(3, 4))
            os._exit(len(wrong) and 1)
        except BaseException:
            os._exit(3)

    def meet():
        thread = threading.Thread(target=fork) if in_thread else None
        if thread is None:
            fork()
            return
        thread.start()
        thread.join(60)

    way(Uses(meet), torch.ones(3, 4))
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
                with kernel_recorder.KernelRecorder(table):
                    torch.ones(2).exp()
                os._exit(0 if same and not kernel_recorder.RECORDERS else 1)
            finally:
                os._exit(2)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    codes: list[int] = []
    table = torch.ones(2)._tl_kernels
    plain = dict(table.__dict__)
    with kernel_recorder.KernelRecorder(table):
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
