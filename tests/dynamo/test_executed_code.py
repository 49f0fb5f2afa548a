"""Programs that reach what cannot be looked into: what matters is what the code that runs reads."""

import contextvars
import functools
import logging
import os
import re
import subprocess
import sys
import threading
import warnings

import pytest

import torchlite as torch
from torchlite._dynamo.compiled_function import CompiledFunction

LOGGER = logging.getLogger("torchlite.tests.reached")
LOCK = threading.RLock()
WORDS = re.compile("[a-z]+")
VARIABLE = contextvars.ContextVar("variable", default=1)
STATE = {"scale": 2.0, "words": WORDS}
WAITING = iter(range(100))


class Registry(dict):
    """A dictionary of a program's own class."""

    def __getitem__(self, name):
        return super().__getitem__(name)


class Slotted:
    def __init__(self):
        self.lock = threading.Lock()
        self.stream = open(__file__)  # noqa: SIM115  what a logger's handler has
        self.count = 0

    def __del__(self):
        self.stream.close()


REGISTRY = Registry(one=torch.relu, two=torch.tanh)


def seldom():
    """Never called."""
    import sqlite3  # noqa: F401

    return next(WAITING)


def run(function, *calls, replays):
    """Calls of a compiled function give what the function gives, and some are replayed."""
    frame = CompiledFunction(function, "reached")
    with warnings.catch_warnings():
        warnings.simplefilter("error" if replays else "ignore")
        for args in calls:
            found, wanted = frame(*args), function(*args)
            assert torch.equal(found, wanted), args
    assert (frame.replays > 0) is replays, frame.reasons
    return frame


def test_code_that_does_not_run():
    def f(x, odd=False):
        return x * seldom() if odd else x + 1

    x = torch.ones(2)
    run(f, *[(x,)] * 6, replays=True)
    frame = CompiledFunction(f, "odd")
    for _ in range(5):
        assert frame(x).tolist() == [2, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = [frame(x, True).tolist()[0] for _ in range(5)]
    assert given == [*range(int(given[0]), int(given[0]) + 5)], "each call takes the next one"
    assert frame(x).tolist() == [2, 2]


def test_objects_that_programs_carry_along():
    def f(x):
        with LOCK:
            if WORDS.match("abc") and VARIABLE.get() and LOGGER.level < 5:
                x = x * STATE["scale"]
        return REGISTRY["one"](x)

    run(f, *[(torch.randn(3),) for _ in range(6)], replays=True)


def test_contents_of_globals_are_guarded():
    def f(x):
        return REGISTRY["one"](x) * VARIABLE.get() + len(REGISTRY) + LOGGER.level

    frame, x = CompiledFunction(f, "held"), torch.tensor([-1.0, 2.0])
    for change in (lambda: None, lambda: VARIABLE.set(3), lambda: REGISTRY.update(one=torch.neg, three=1),
                   lambda: LOGGER.setLevel(7)):  # fmt: skip
        change()
        for _ in range(5):
            assert torch.equal(frame(x), f(x))
    assert frame.replays >= 4
    VARIABLE.set(1)
    REGISTRY.update(one=torch.relu)
    LOGGER.setLevel(0)


def test_other_code_in_later_calls():
    class Lazy:
        def __init__(self):
            self.table, self.lock, self.waiting = None, LOCK, STATE

        def first(self):
            self.table = torch.arange(3.0)

        def __call__(self, x):
            if self.table is None:
                self.first()
            return x + self.table

    made = Lazy()
    frame = CompiledFunction(made, "lazy")
    for _ in range(7):
        x = torch.randn(3)
        assert torch.equal(frame(x), x + torch.arange(3.0))
    made.table = torch.zeros(3)
    assert torch.equal(frame(x), x)


def test_an_iterator_that_is_used_is_no_constant():
    def f(x):
        return x + next(WAITING)

    frame, x = CompiledFunction(f, "iterator"), torch.zeros(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [frame(x).item() for _ in range(8)]
    assert found == [found[0] + i for i in range(8)] and not frame.replays


def test_fullgraph_names_the_unsupported_call():
    carried = Slotted()

    def f(x):
        carried.stream.readline()
        return x + 1

    compiled = torch.compile(f, fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="readline"):
        for _ in range(4):
            compiled(torch.ones(1))


def test_cached_functions_are_their_results():
    calls = []

    @functools.lru_cache(8)
    def table(n):
        calls.append(n)
        return n * 2

    def f(x):
        return x * table(3)

    x = torch.ones(2)
    f(x)
    run(f, *[(x,)] * 6, replays=True)
    assert calls == [3]


def test_new_objects_are_returned():
    class Output:
        def __init__(self, value, parts):
            self.value, self.parts, self.lock = value, parts, LOCK

    def f(x):
        return Output(x + 1, [x * 2, "name"])

    frame = CompiledFunction(f, "made")
    for i in range(6):
        found = frame(torch.full((2,), float(i)))
        assert type(found) is Output and found.value.tolist() == [i + 1.0] * 2 and found.lock is LOCK
        assert found.parts[0].tolist() == [2.0 * i] * 2 and found.parts[1] == "name"
    assert frame.replays

    def alike(x):
        part = [x + 1]
        made = Output(part, {"part": part})
        return {"made": made, "again": made}

    frame = CompiledFunction(alike, "alike")
    for i in range(5):
        found = frame(torch.full((1,), float(i)))
        assert found["made"] is found["again"] and found["made"].value is found["made"].parts["part"]
        assert found["made"].value[0].item() == i + 1
    assert frame.replays
    shared = [torch.ones(1)]
    twice = CompiledFunction(lambda x: ([shared, shared], x + 1), "twice")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            (a, b), _ = twice(torch.ones(1))
            assert a is b is shared


def test_under_pytorch_name(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torchlite; torchlite.as_torch()\n"
        "import torch\n"
        "net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU())\n"
        "optimizer = torch.optim.Adam(net.parameters())\n"
        "def step(x):\n"
        "    optimizer.zero_grad()\n"
        "    loss = net(x).square().mean()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
        "    return loss\n"
        "compiled = torch.compile(step, fullgraph=True)\n"
        "x = torch.ones(2, 3)\n"
        "for _ in range(4): compiled(x)\n"
        "from torch._dynamo.compiled_function import COMPILED_FUNCTIONS\n"
        "print(len(COMPILED_FUNCTIONS), [f.replays > 0 for f in COMPILED_FUNCTIONS])\n"
    )
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.stdout == "1 [True]\n", done.stdout + done.stderr
