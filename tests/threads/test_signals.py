"""Handlers of signals use the library while the thread that they interrupt does: nothing hangs, values are right."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")

# `main` and `handler` are functions of a number. A signal comes half a millisecond after the last one was handled, or
# half the handler's time, so that `main` advances on a busy machine too.
_PROGRAM = """
import faulthandler, signal, sys, time
import torchlite as torch
F = torch.nn.functional
faulthandler.dump_traceback_later({seconds} + 40, exit=True)
torch.manual_seed(0)
x, y = torch.randn(512, 1024), torch.randn(512, 1024) * 3
w = torch.randn(32, 32, 3, 3)
{program}
handled, within = 0, False

def interrupt(number, frame):
    global handled, within
    if not within:
        within = True
        handled += 1
        start = time.monotonic()
        handler(handled)
        within = False
        signal.setitimer(signal.ITIMER_REAL, max(0.0005, (time.monotonic() - start) / 2))

for k in range(2):  # what is first used is loaded
    main(k), handler(k)
begin()
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.0005)
until, turns = time.monotonic() + {seconds}, 0
while time.monotonic() < until or handled < 20:
    main(turns)
    turns += 1
signal.signal(signal.SIGALRM, signal.SIG_IGN)
end()
print(turns, "turns", handled, "signals")
"""


def interrupted(program: str, seconds: float = 3.0) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM.format(program=textwrap.dedent(program), seconds=seconds)],
        capture_output=True, text=True, timeout=seconds + 90, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


WORK = {
    "seeds": ("torch.manual_seed(3)", "torch.manual_seed(4)"),
    "activation": ("F.gelu(x)", "F.gelu(y)"),
    "norm": ("F.batch_norm(x, None, None, training=True)", "F.batch_norm(y, None, None, training=True)"),
    "reduction": ("torch.softmax(x, 1)", "torch.softmax(y, 1)"),
    "product": ("x @ x.t()", "y @ y.t()"),
    "convolution": ("F.conv2d(x.view(1, 32, 128, 128), w)", "F.conv2d(y.view(1, 32, 128, 128), w)"),
    "attention": ("F.scaled_dot_product_attention(*[x.view(1, 8, 512, 128)] * 3)",
                  "F.scaled_dot_product_attention(*[y.view(1, 8, 512, 128)] * 3)"),
    "backward": ("gradient(x)", "gradient(y)"),
    "interceptors": ("torch.fx.symbolic_trace(layer)", "torch.export.export(layer, (torch.ones(1, 4),))"),
    "compile": ("torch.compile(lambda a: a + 1)(x)", "torch.compile(lambda a: a + 2)(x)"),
    "all": ("F.gelu(x), x @ x.t(), torch.rand(5), gradient(x), torch.manual_seed(1)",
            "F.gelu(y), y @ y.t(), torch.rand(5, generator=own), gradient(y)"),
}  # fmt: skip


@pytest.mark.parametrize("name", WORK)
def test_handlers_work_while_the_thread_does_the_same(name):
    """Values are those without signals, and BLAS has as many threads afterwards as before."""
    main, handler = WORK[name]
    interrupted(
        f"""
    leaf, layer = torch.ones(1024, requires_grad=True), torch.nn.Linear(4, 4)
    own = torch.Generator()

    def gradient(x):
        with torch.enable_grad():  # a handler finds the mode of what it interrupts
            (F.gelu(x) * leaf).sum().backward(inputs=[leaf])
        return torch.zeros(1)

    def result(*values):
        return values[0] if isinstance(values[0], torch.Tensor) else torch.zeros(1)

    def main(k):
        found = result({main})
        assert torch.equal(found, wanted)

    def handler(k):
        found = result({handler})
        assert torch.equal(found, other)

    wanted, other = result({main}), result({handler})
    from torchlite_backends.numpy import blas
    controls = blas._find_thread_controls()

    def begin():
        global threads
        threads = controls and controls[1]()

    def end():
        assert not blas.single_threaded._entered and not blas.single_threaded.nesting_depth()
        assert threads == (controls and controls[1]())
    """,
        seconds=3.0 if name == "all" else 1.0,
    )


def _at_each_instruction(function, handler):
    """Run `function`, and `handler` before each bytecode instruction that the grad modes' own code executes."""
    from torchlite._dispatch import dispatch_state
    from torchlite.autograd import grad_mode

    files = {dispatch_state.__file__, grad_mode.__file__}
    ran = 0

    def trace(frame, event, argument):
        nonlocal ran
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            ran += 1
            sys.settrace(None)
            handler()
            sys.settrace(trace)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    assert ran > 50


@pytest.mark.parametrize("outer", ["no_grad", "enable_grad", "inference_mode"])
@pytest.mark.parametrize("inner", ["no_grad", "enable_grad", "inference_mode"])
@pytest.mark.parametrize("around", ["no_grad", "enable_grad", "inference_mode"])
def test_grad_modes_nest_at_each_instruction(around, outer, inner):
    """A handler that sets a mode and restores it may run between any two instructions of another change of mode."""
    import torchlite as torch
    from torchlite._dispatch import dispatch_state

    def states():
        return (
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            len(dispatch_state.NO_GRAD),
            len(dispatch_state.STALE_VIEW_CHECKS),
        )

    def handler():
        with getattr(torch, inner)():
            assert torch.is_grad_enabled() is (inner == "enable_grad")
        with torch.inference_mode(False), torch.enable_grad():
            assert (torch.ones(1, requires_grad=True) * 2).requires_grad

    def change():
        with getattr(torch, outer)():
            pass

    with getattr(torch, around)():
        before = states()
        _at_each_instruction(change, handler)
        assert states() == before


# A handler raises KeyboardInterrupt at random moments (the seed is printed), 300 times or for two seconds.
_RAISING = """
import random, signal, time
import torchlite as torch
from torchlite._dispatch import interceptors, tracing
from torchlite._dispatch.dispatch_state import GLOBALS, MODE, NO_GRAD
from torchlite.autograd.engine import CURRENT_PASSES
from torchlite.fx.experimental.proxy_tensor import make_fx
from torchlite._settings.jit_state import STATE

x, layer = torch.randn(8, 8), torch.nn.Linear(8, 8)

def work():
    {work}

def state():
    return (interceptors.stack.items, interceptors.stack.active, GLOBALS["INTERCEPTORS"], tracing.TRACES,
            tracing.THREAD.trace, tracing._rebound, MODE.grad, MODE.transforms, MODE.forwards, MODE.forward,
            STATE.recorder, STATE.inside, CURRENT_PASSES.runs)

work()
before = repr(state())
start = time.perf_counter()
work()
took = time.perf_counter() - start
seed = random.randrange(1 << 32)
print("seed", seed)
drawn, armed, count = random.Random(seed), False, 0

def interrupt(number, frame):
    if armed:
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
until = time.monotonic() + 2
while count < 300 and time.monotonic() < until or not count:
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, max(1e-5, drawn.random() * took))
        work()
        armed = False
    except KeyboardInterrupt:
        armed = False
        count += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert repr(state()) == before, (count, state(), before)
work()
print(count, "interrupts")
"""


@pytest.mark.parametrize(
    "work",
    [
        "x.clone().requires_grad_().sin().sum().backward()",
        "torch.func.vmap(torch.func.vmap(lambda a: (a.sin() * 2).sum()))(x)",
        "torch.func.jvp(torch.sin, (x,), (x,))",
        "torch.func.grad(lambda a: a.sin().sum())(x)",
        "make_fx(lambda a: layer(a).sin())(x)",
        "torch.jit.trace(layer, (x,))",
        "torch.fx.symbolic_trace(layer)",
    ],
)
def test_interrupts_leave_no_thread_in_the_middle_of_a_trace(work):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _RAISING.format(work=work)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
