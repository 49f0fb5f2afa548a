"""Shapes that depend on elements, warnings, lazy signs, ops without derivatives: replayed, and as eager has them."""

from __future__ import annotations

import copy
import cProfile
import json
import math
import pickle
import subprocess
import sys
import types
import warnings

import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dynamo.compiled_function import CompiledFunction
from torchlite._dynamo.lazy_scalars import is_returned
from torchlite._dynamo.sys_setprofile import ProfileHook

F = nn.functional

COUNTED = {
    "mask": lambda x: x[x > 0] * len(x[x > 0]),
    "masked_select": lambda x: x.masked_select(x > 0) * x.masked_select(x > 0).shape[0],
    "where": lambda x: torch.where(x > 0)[0] * torch.where(x > 0)[0].numel(),
    "nonzero": lambda x: x.relu().nonzero().shape[0] + x,
    "argwhere": lambda x: torch.argwhere(x.relu()).shape[0] * x,
    "unique": lambda x: torch.unique(x.sign()).numel() * x,
    "_unique_rows": lambda x: torch.unique(x.sign().reshape(3, 2), dim=0).shape[0] * x,
    "unique_consecutive": lambda x: torch.unique_consecutive(x.sign()).numel() * x,
    "bincount": lambda x: torch.bincount((x.abs() * 3).long()).numel() * x,
    "repeat_interleave": lambda x: torch.repeat_interleave(x, (x > 0).long()).numel() * x,
    "one_hot": lambda x: F.one_hot((x.abs() * 3).long()).shape[1] * x,
    "tensor_split": lambda x: len(x.tensor_split((x > 0).sum().reshape(1))[0]) * x,
    "own memory is written first": lambda x: x.clone().mul_(2)[x > 0].numel() * x,
    "a new array is filled": lambda x: torch.zeros(6).masked_scatter(x > 0, x[x > 0]) * x[x > 0].numel(),
}


@pytest.mark.parametrize("name", COUNTED)
def test_shapes_that_depend_on_elements(name):
    f = COUNTED[name]
    frame = CompiledFunction(f, "f", fullgraph=True, limit=50)
    torch.manual_seed(0)
    inputs = [torch.randn(6) for _ in range(3)] + [torch.ones(6)]
    for x in [x for x in inputs for _ in range(3)] + inputs * 3:
        assert torch.equal(frame(x), f(x))
    assert frame.replays >= 12


def test_capture_is_not_retried_for_unique_counts():
    f = COUNTED["mask"]
    frame = CompiledFunction(f, "f")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(100):
            x = torch.arange(100.0) - n
            assert torch.equal(frame(x), f(x))
    assert not frame.variants and len(caught) == 1 and "elements decided in 8 ways" in str(caught[0].message)


def test_a_write_outside_before_elements_are_read_is_refused():
    total = torch.zeros(())

    def f(x):
        total.add_(1)
        return x[x > 0]

    frame = CompiledFunction(f, "f")
    with pytest.warns(UserWarning, match="the shape of what _index gives depends on elements, after something was"):
        assert [len(frame(torch.ones(3))) for _ in range(4)] == [3] * 4
    assert total.item() == 4


def test_warnings_are_given_again():
    def inner(x):
        warnings.warn("small", DeprecationWarning, stacklevel=2)
        return F.kl_div(x, x.exp()) + F.dropout2d(x.reshape(1, 2, 2), 0.0).sum()

    def f(x):
        return inner(x) * 2

    def told(function):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(torch.ones(2, 2))
        return [(str(w.message)[:20], w.category, w.filename, w.lineno) for w in caught]

    frame = CompiledFunction(f, "f", fullgraph=True)
    want = told(f)
    assert len(want) == 3 and all(place[2] == __file__ for place in want)
    for _ in range(5):
        assert told(frame) == want
    assert frame.replays == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DeprecationWarning, match="small"):
            frame(torch.ones(2, 2))


def test_warnings_about_the_line_that_calls():
    def f(x):
        warnings.warn("outside", stacklevel=2)
        return x + 1

    compiled = torch.compile(f, fullgraph=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(4):
            compiled(torch.ones(1))
        f(torch.ones(1))
    places = [(w.filename, w.lineno) for w in caught]
    assert places == [places[0]] * 4 + [(places[0][0], places[0][1] + 1)] and places[0][0] == __file__


def test_results_with_signs():
    def f(x):
        return x.conj(), x.mH, (x * 2).conj().imag, x.real

    frame = CompiledFunction(f, "f", fullgraph=True)
    for i in range(5):
        x = torch.tensor([[1 + 2j, 3j], [i, 4]], requires_grad=True)
        outcomes = []
        for function in (frame, f):
            found = function(x)
            signs = [(t.is_conj(), t.is_neg(), t.tolist()) for t in found]
            (g,) = torch.autograd.grad(found[1].abs().sum() + found[2].sum(), x)
            outcomes.append((signs, g.tolist()))
        assert outcomes[0] == outcomes[1]
    assert frame.replays == 3


def test_ops_without_derivative_fail_where_backward_does():
    frame = CompiledFunction(lambda x: torch.geqrf(x), "f", fullgraph=True)
    for _ in range(4):
        a, tau = frame(torch.eye(2, requires_grad=True))
        assert a.requires_grad
        for t in (a, tau):
            with pytest.raises(NotImplementedError, match="the derivative for 'geqrf' is not implemented"):
                t.sum().backward()
    assert frame.replays == 2


TEXTS = {
    "percent": lambda x: (x, "%.3f" % x.sum().item()),  # noqa: UP031
    "format": lambda x: (x, "{:.3f}".format(x.sum().item()), f"{x.sum().item():.2f}", str(x.sum().item())),  # noqa: UP032
    "json": lambda x: (x, json.dumps([x.sum().item()])),
    "key": lambda x: (x, {x.sum().item(): 1}),
    "set": lambda x: [x, {x.sum().item()}.pop()],
    "complex": lambda x: (x, complex(x.sum().item()), complex(0, x.sum().item())),
    "hex": lambda x: (x, x.sum().item().hex()),
    "is it a float": lambda x: x * isinstance(x.sum().item(), float),
    "is it exactly a float": lambda x: x * (type(x.sum().item()) is float),
    "root": lambda x: math.sqrt(x.sum().item()) * x,
    "largest": lambda x: max(x.sum().item(), 0.5) * x,
    "copied": lambda x: (x, copy.deepcopy([x.sum().item()])),
    "remainder, and returned": lambda x: [x * (7 % 4), x.sum().item()],
    "only returned": lambda x: x.sum().item(),
}


@pytest.mark.parametrize("name", TEXTS)
def test_numbers_of_elements_are_numbers(name):
    """`item()` returns a plain number during capture, and its uses are guarded."""

    def known(value):
        if isinstance(value, torch.Tensor):
            return value.tolist()
        if isinstance(value, dict):
            return [(type(key), key) for key in value]
        return [known(one) for one in value] if isinstance(value, (list, tuple)) else (type(value), value)

    f = TEXTS[name]
    frame = CompiledFunction(f, "f")
    x = torch.tensor([0.1, 0.2, 0.3])
    found = []
    for scale in (1, 1, 2, 2, 2, 1, 3, 2):
        found.append(frame(x * scale))
        assert known(found[-1]) == known(f(x * scale))
    pickle.dumps(found)
    assert frame.replays >= 3 and not frame.reasons


def test_second_derivatives_after_changes():
    scale = 2.0

    def f(x):
        return x.pow(3) * scale

    frame = CompiledFunction(f, "f")
    x = torch.ones(2, requires_grad=True)
    for _ in range(3):
        y = frame(x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [12.0, 12.0]
    y = frame(x)
    scale = 5.0
    assert torch.autograd.grad(frame(x).sum(), x)[0].tolist() == [15.0, 15.0]
    with pytest.raises(RuntimeError, match="is not what it was in the forward pass"):
        torch.autograd.grad(y.sum(), x, create_graph=True)
    y = frame(x)
    scale = 7.0
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [15.0, 15.0]


_FINALIZERS = """
import faulthandler, gc, warnings
import torchlite as torch
warnings.simplefilter("ignore")
faulthandler.enable()

class Compiles:
    def __init__(self):
        self.cycle = self

    def __del__(self):
        torch.compile(lambda x: x.cos())(torch.ones(2))

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 8))
x = torch.randn(4, 8)
expected = model(x).sin() + 1
gc.set_threshold(30, 3, 3)
for _ in range(60):
    for _ in range(10):
        Compiles()
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: model(x).sin() + 1)
    assert torch.allclose(compiled(x), expected) and torch.allclose(compiled(x * 1), expected)
print("done")
"""


def test_finalizers_may_compile_while_a_call_is_captured():
    """A collection runs them between any two calls that the capture looks at."""
    done = subprocess.run([sys.executable, "-c", _FINALIZERS], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == ["done"], done.stderr[-3000:]


def test_a_profile_of_before_is_there_again():
    """A capture that is interrupted by another one goes on, as do profilers."""
    seen, calls = [], lambda frame, event, argument: seen.append(event)
    with ProfileHook(calls):
        with ProfileHook(lambda *_: None) as inner:
            inner.pause()
        assert sys.getprofile() is calls
    assert sys.getprofile() is None and seen
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        with ProfileHook(calls):
            pass
        assert sys.getprofile() is profiler
    finally:
        profiler.disable()


# Layers that Sequential fuses without gradients: the fused ops write nothing.
FUSED_LAYERS = {
    "conv, norm": (nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)),
    "conv, norm, relu": (nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
    "transposed conv, norm": (nn.ConvTranspose2d(1, 4, 3), nn.BatchNorm2d(4)),
    "norm, relu6": (nn.BatchNorm2d(1), nn.ReLU6()),
}


@pytest.mark.parametrize("name", FUSED_LAYERS)
def test_elements_are_read_behind_fused_layers(name, device):
    model = nn.Sequential(*copy.deepcopy(FUSED_LAYERS[name])).to(device).eval()
    read = CompiledFunction(lambda x: model(x).argmax().item(), "f")
    branch = CompiledFunction(lambda x: model(x) if model(x).sum() > -1e9 else x, "f")
    x = torch.randn(2, 1, 6, 6, device=device)
    with torch.inference_mode():
        for _ in range(5):
            assert read(x) == model(x).argmax().item()
            assert torch.allclose(branch(x), model(x), atol=1e-6)
    assert min(read.replays, branch.replays) >= 2 and not read.reasons and not branch.reasons


RETURNED_LISTS = {
    "alone": lambda x: (x * 2).tolist(),
    "in a tuple": lambda x: ((x * 2).tolist(), x.argmax(-1).tolist(), x.sum().item()),
    "in a dictionary": lambda x: {"scores": [x.exp().tolist(), len(x)], "best": x.argmax().tolist(), "n": x.shape[0]},
    "of bools and integers": lambda x: ((x > 0).tolist(), (x * 3).long().tolist()),
    "of bfloat16": lambda x: x.bfloat16().tolist(),
    "before a write": lambda x: ((y := x * 2).tolist(), y.mul_(3)),
    "twice the same": lambda x: (x.relu().tolist(), x.relu().tolist()),
}


@pytest.mark.parametrize("name", RETURNED_LISTS)
def test_a_returned_list_is_read_by_each_replay(name, device):
    f = RETURNED_LISTS[name]
    compiled = CompiledFunction(f, "f")
    for _ in range(8):
        x = torch.randn(3, 4, device=device)
        found, want = compiled(x), f(x)
        assert str(found) == str(want) and type(found) is type(want)
    assert compiled.replays >= 5 and not compiled.reasons
    found = compiled(x)
    assert json.dumps(found if name != "before a write" else found[0])  # plain lists and numbers


def test_a_list_that_is_used_is_part_of_the_guards():
    compiled = CompiledFunction(lambda x: len(x.sign().tolist()[0]) * x, "f")
    for _ in range(6):
        assert torch.equal(compiled(torch.ones(2, 3)), torch.full((2, 3), 3.0))
    assert compiled.replays >= 3
    other = CompiledFunction(lambda x: x.tolist()[0] + 1, "f")
    for number in (1.0, 1.0, 1.0, 5.0, 1.0):
        assert other(torch.tensor([number])) == number + 1


def _ask(answers):
    answers.append(is_returned(sys._getframe(1)))
    return 1.0


@pytest.mark.parametrize(
    ("function", "returned"),
    [
        (lambda a: _ask(a), True),
        (lambda a: (1, _ask(a), _ask(a)), True),
        (lambda a: {"x": _ask(a), "y": [len("yy"), max(1, 2, key=abs)], "z": _ask(a)}, True),
        (lambda a: (max(a, default=0), _ask(a), -len("a"), a.__class__.__name__, "a" < "b", a[:0]), True),
        (lambda a: _ask(a) + 1, False),
        (lambda a: [_ask(a), 1 if a else 2], False),
        (lambda a: abs(_ask(a)), False),
        (lambda a: f"{_ask(a)}", False),
        (lambda a: [_ask(a)][0], False),
        (lambda a: {_ask(a)}, False),
        (lambda a: _ask(a) and 2, False),
        (lambda a: [*(_ask(a), 2)], False),
    ],
)
def test_values_that_are_returned_and_not_used(function, returned):
    answers = []
    function(answers)
    assert answers and set(answers) == {returned}


_LOG: list = []


class _Trainer:
    def __init__(self):
        self.losses, self.layer = [], nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.layer.parameters(), 0.1)

    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.layer(x).square().mean()
        self.losses.append(loss.item())
        loss.backward()
        _LOG.append(("done", x.shape[0]))
        self.optimizer.step()
        return loss

    def report(self):
        return sum(self.losses) / len(self.losses)

    def reporting_step(self, x):
        return self.step(x) * 0 + self.report()


def test_a_step_that_appends_its_loss_is_one_program():
    found = []
    for compiles in (False, True):
        torch.manual_seed(0)
        trainer = _Trainer()
        _LOG.clear()
        step = frame = CompiledFunction(trainer.step, "step") if compiles else trainer.step
        results = [step(torch.randn(n, 3)).item() for n in (4, 4, 4, 4, 6, 6, 6, 6, 4)]
        found.append((trainer.losses, results, list(_LOG), trainer.layer.weight.tolist()))
    assert found[0] == found[1] and {type(loss) for loss in found[1][0]} == {float}
    assert frame.tree is None and frame.replays >= 2


def test_a_method_that_reads_the_list_is_noticed_when_it_runs():
    found = []
    for compiles in (False, True):
        torch.manual_seed(0)
        trainer = _Trainer()
        step = CompiledFunction(trainer.reporting_step, "step") if compiles else trainer.reporting_step
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(([step(torch.randn(4, 3)).item() for _ in range(8)], trainer.losses))
    assert found[0] == found[1]


def test_lists_that_a_function_reads_are_guarded():
    kept, seen = [1.0], []

    def reads(x):
        kept.append(x.sum().item())
        return x * len(kept) + kept[0]

    def branches(x):
        (kept if x.sum() > 0 else seen).append(x.max().item())
        return x * 2

    def aliases(x):
        more = kept
        more.append(x.min().item())
        return x + more[-1]

    def asks(x):
        seen.append(x.sum().item())
        return x + len(getattr(asks, "__closure__"))

    for function in (reads, branches, aliases, asks):
        found = []
        for call in (function, CompiledFunction(function, "f")):
            kept[:], seen[:] = [1.0], []
            torch.manual_seed(0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = [call(torch.randn(3)).tolist() for _ in range(8)]
            found.append((results, list(kept), list(seen), {type(one) for one in kept + seen}))
        assert found[0] == found[1]


def test_what_is_appended_may_be_a_tensor_or_another_list_in_each_branch():
    high, low = [], []

    def f(x):
        y = x * 2
        if x.sum() > 0:
            high.append((y.detach() + 1, y.sum().item()))
        else:
            low.append({"y": y.detach() + 2})
        return None

    found = []
    for call in (f, frame := CompiledFunction(f, "f")):
        high.clear()
        low.clear()
        for n in (1.0, -1.0) * 5:
            call(torch.full((2,), n))
        found.append(([(t.tolist(), n) for t, n in high], [one["y"].tolist() for one in low]))
    assert found[0] == found[1] and frame.replays > 3
    assert len({id(t) for t, _ in high}) == 5  # each call appends a tensor of its own


def test_a_call_that_appends_is_not_repeated_for_second_derivatives():
    seen = []

    def f(x):
        seen.append(x.sum().item())
        return (x**3).sum()

    frame = CompiledFunction(f, "f")
    for _ in range(4):
        x = torch.ones(2, requires_grad=True)
        frame(x).backward()
    assert frame.replays == 2 and len(seen) == 4
    with pytest.raises(RuntimeError, match="double backward"):
        torch.autograd.grad(frame(x), x, create_graph=True)
    assert len(seen) == 5


def test_a_compiler_of_the_programs_own_gets_the_graph_of_a_function_that_appends():
    seen = []

    def f(x):
        y = x * 2
        seen.append(y.sum().item())
        return y + 1

    compiled = torch.compile(f, backend=lambda graph, inputs: graph.forward)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = [compiled(torch.full((2,), float(n))).tolist() for n in range(4)]
    assert results == [[2.0 * n + 1] * 2 for n in range(4)] and seen == [4.0 * n for n in range(4)]


def test_numbers_that_outlive_a_capture_that_fails_are_plain():
    kept, state = {}, types.SimpleNamespace(last=None)

    def f(x):
        y = x * 2
        kept.setdefault("l", []).append(y.max().item())
        state.last = y.min().item()
        kept["t"] = (y.sum().item(), 1)
        if x.sum().item() > 3:
            raise ValueError(y.mean().item())
        return [y.sum().item()], y

    frame = CompiledFunction(f, "f")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (1.0, 2.0, 3.0, 2.0, 1.0, 3.0):
            try:
                returned = frame(torch.full((2,), n))[0]
            except ValueError as error:
                returned = list(error.args)
            assert [type(one) for one in (*kept["l"], state.last, kept["t"][0], *returned)] == [float] * (
                len(kept["l"]) + 3
            )
    assert kept["l"] == [2.0, 4.0, 6.0, 4.0, 2.0, 6.0]
