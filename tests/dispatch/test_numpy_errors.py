"""NumPy's warnings and errors do not reach a program from ops, whatever it sets; its own NumPy code keeps its state."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import warnings

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import numpy_errors
from torchlite._dispatch.dispatch_state import GLOBALS
from torchlite._dispatch.numpy_errors import is_busy, run_quietly

INF = float("inf")
PROGRAMS = [
    lambda: torch.zeros(3).log(),
    lambda: torch.zeros(3).log_(),
    lambda: 1 / torch.zeros(3),
    lambda: torch.tensor([1.0, 0.0]).half().div(0),
    lambda: torch.tensor([3e38]).add_(3e38),
    lambda: torch.full((100,), 1e10).prod(),
    lambda: torch.logcumsumexp(torch.tensor([-INF, 1.0, INF, -INF]), 0),
    lambda: torch.empty(4).uniform_(-1.7e38, 1.7e38),
    lambda: torch.isclose(torch.tensor([INF, 1.0]), torch.tensor([INF, INF])),
    lambda: torch.tensor([1e300]).float(),
    lambda: torch.tensor(1e300, dtype=torch.float32),
    lambda: torch.tensor([1e300], dtype=torch.float64).to(torch.float32),
    lambda: torch.zeros(1).copy_(torch.tensor([1e300], dtype=torch.float64)),
    lambda: torch.zeros(1 << 18).log(),  # on several threads
    lambda: torch.zeros(2, 2, requires_grad=True).log().sum().backward(),
    lambda: torch.zeros(2, 2, requires_grad=True).sqrt().sum().backward(create_graph=False),
    lambda: torch.full((2,), 3e38).softmax(0) * 3e38,
    lambda: torch.linalg.inv(torch.eye(2) * 1e-38),
    lambda: torch.func.jvp(torch.log, (torch.zeros(3),), (torch.ones(3),)),
    lambda: torch.vmap(torch.log)(torch.zeros(3)),
    lambda: str(torch.tensor([1e-40, 1e38, INF])),
    lambda: torch.sparse_coo_tensor([[0]], [3e38], (1,)) * 3.0,
    lambda: torch.nn.functional.cross_entropy(torch.tensor([[INF, -INF]]), torch.tensor([0])),
]


@pytest.fixture(params=["error", "always"])
def seen(request):
    """The warnings that are shown under the filters of a program."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(request.param)
        yield found


@pytest.mark.parametrize("program", PROGRAMS)
def test_ops_are_silent_under_every_filter(program, seen):
    program()
    program()
    assert not seen


@pytest.mark.parametrize("how", ["raise", "call", "print"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_ops_do_not_read_the_programs_state(program, how, capsys):
    called = []
    before = np.seterrcall(lambda *what: called.append(what))
    try:
        with np.errstate(all=how):
            program()
            assert set(np.geterr().values()) == {how}
    finally:
        np.seterrcall(before)
    assert not called and not capsys.readouterr().out


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_run_once_within_a_kernel(program):
    """A compiled program, whose replay is a quiet call, runs Python code that calls ops."""
    runs = []

    def outer():
        runs.append(1)
        for _ in range(2):
            program()

    run_quietly(outer)
    assert runs == [1]


def test_a_refusal_inside_a_call_is_no_refusal_of_the_call():
    runs = []

    def outer():
        runs.append(1)
        raise RuntimeError("cannot enter context: <one> is already entered")

    with pytest.raises(RuntimeError, match="cannot enter context"):
        run_quietly(outer)
    assert runs == [1]


def test_an_optimizer_is_silent():
    parameter = torch.nn.Parameter(torch.full((3,), 1e30))
    parameter.grad = torch.full((3,), 1e30)
    with np.errstate(all="raise"):
        for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop):
            kind([parameter], lr=1e10).step()
        torch.nn.utils.clip_grad_norm_([parameter], 1e-30)


def test_the_programs_own_numpy_warns():
    torch.zeros(3).log()
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.log(np.zeros(3))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        torch.zeros(3).log()
        np.log(np.zeros(3))


def test_hooks_and_functions_of_a_program_have_its_state_and_variables():
    variable = contextvars.ContextVar("variable")
    variable.set("the program's")
    seen = []

    def look(value):
        seen.append((variable.get(None), np.geterr()["divide"]))
        return value

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return look(x) * 2

        @staticmethod
        def backward(ctx, g):
            return look(g) * 2

    with np.errstate(divide="raise"), torch.autograd.graph.saved_tensors_hooks(look, look):
        x = torch.ones(2, requires_grad=True)
        x.register_hook(look)
        Double.apply(x * x).log().sum().backward()
    assert len(seen) >= 7 and set(seen) == {("the program's", "raise")}


def test_threads_are_silent(private_contexts):
    failures = []

    def work():
        try:
            with np.errstate(all="raise"):
                for _ in range(200):
                    torch.zeros(3).log()
        except FloatingPointError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_tasks_are_silent(private_contexts):
    async def work():
        with np.errstate(all="raise"):
            for _ in range(5):
                torch.zeros(3).log()
                await asyncio.sleep(0)
            return np.geterr()["divide"]

    async def both():
        return await asyncio.gather(work(), work(), asyncio.to_thread(lambda: torch.zeros(3).log().tolist()))

    assert asyncio.run(both()) == ["raise", "raise", [-INF] * 3]


@pytest.fixture(params=["one for all ops", "one for each context"])
def private_contexts(request, monkeypatch):
    """How ops share private contexts; the state before it after the test."""
    one = request.param == "one for all ops"
    monkeypatch.setitem(GLOBALS, "quiet_run", GLOBALS["quiet_run"] if one else numpy_errors._run_in_own_context)


def in_the_same_context(function):
    """What a function returns in another thread whose context is a copy of one that runs a kernel meanwhile."""
    copied, results = contextvars.copy_context(), []

    def kernel():
        thread = threading.Thread(target=lambda: results.append(copied.run(function)))
        thread.start()
        thread.join()

    run_quietly(kernel)
    return results[0]


@pytest.mark.parametrize(
    "program",
    [
        lambda: torch.zeros(3).log().tolist(),
        lambda: torch.zeros(3).log_().tolist(),
        lambda: torch.zeros(3).add_(1.0).tolist(),
        lambda: (torch.zeros(3) + 1).tolist(),
        lambda: torch.cat([torch.zeros(1), torch.ones(2)]).tolist(),
        lambda: torch.tensor([1e300, 1]).float().sort().values.tolist(),
    ],
)
def test_a_context_that_two_threads_share(program, private_contexts):
    torch.zeros(1).log()
    with np.errstate(all="raise"):
        assert in_the_same_context(program) == program()
    assert GLOBALS["quiet_run"] is numpy_errors._run_in_own_context


def test_backward_in_a_context_that_two_threads_share(private_contexts):
    def gradient():
        return torch.autograd.grad((x * x).log().sum(), x)[0].tolist()

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert in_the_same_context(gradient) == gradient() == [2.0, 1.0]
    loss = (x * x).log().sum()  # whose backward pass alone is there
    assert in_the_same_context(lambda: torch.autograd.grad(loss, x)[0].tolist()) == [2.0, 1.0]


def test_ops_within_kernels_do_not_end_the_sharing(private_contexts):
    before = GLOBALS["quiet_run"]
    assert run_quietly(lambda: (torch.zeros(3).log().add_(1) + run_quietly(np.float32, 1)).tolist()) == [-INF] * 3
    assert GLOBALS["quiet_run"] is before


def test_errors_of_kernels_pass():
    def refuse():
        raise RuntimeError("cannot enter")

    with pytest.raises(RuntimeError, match="cannot enter") as caught:
        run_quietly(refuse)
    assert not is_busy(caught.value)
    assert run_quietly(lambda: run_quietly(np.geterr)) == dict.fromkeys(
        ("divide", "over", "under", "invalid"), "ignore"
    )
