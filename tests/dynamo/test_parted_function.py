"""Functions that cannot be captured as a whole run in parts, with eager's results, gradients and order of effects."""

from __future__ import annotations

import concurrent.futures
import contextlib
import io
import warnings

import pytest

import torchlite as torch
from torchlite._dynamo import compiled_function
from torchlite._dynamo.compiled_function import CompiledFunction

from . import programs_with_objects, random_effects  # noqa: F401 - the first adds to PROGRAMS
from .programs_with_breaks import PROGRAMS
from .random_breaks import difference, replays_of

CALLS = 9
# Programs of which every statement runs as written, and why.
WITHOUT_PARTS = {
    "class_within": "objects of a class that each call defines",
    "closure_over_rebound_variable": "a local function that sees the variable change",
    "nonlocal_writer": "a local function that changes a variable",
    "lambdas_in_a_loop": "functions that each call makes",
    "late_binding_lambdas": "local functions that see a variable change",
    "attributes_written": "attributes that are other tensors in each call",
    "setattr_and_getattr": "attributes of a library's module",
}


def outcome(factory, compiles):
    """Run a program several times. Return what it gave and printed, the gradients, and its compiled function."""
    torch.manual_seed(0)
    printed = io.StringIO()
    function, tensors = factory()
    call = frame = CompiledFunction(function, "f") if compiles else None
    call = call or function
    found, gradients = [], []
    generator = torch.Generator().manual_seed(1)
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(CALLS):
            x = torch.randn(4, 3, generator=generator).requires_grad_()
            try:
                result = call(x)
                leaves = [t for t in (result if isinstance(result, tuple) else (result,)) if torch.is_tensor(t)]
                if leaves[0].requires_grad:
                    leaves[0].sum().backward()
                found.append([t.tolist() for t in leaves])
                gradients += [t.grad.clone() for t in leaves if t.retains_grad and t.grad is not None]
            except Exception as error:
                found.append((type(error), str(error)))
            gradients += [t.grad.clone() for t in (x, *tensors) if t.grad is not None]
            found.append([(t.tolist(), t._version, t.grad is None) for t in tensors])
            found[-2:] = [repr(one) for one in found[-2:]]
            print("--")
    found.append(torch.rand(2).tolist())
    return found, printed.getvalue(), gradients, frame


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_breaks(name, monkeypatch):
    monkeypatch.setattr(compiled_function, "_MIN_KERNELS", 1)  # the programs are small
    wanted, printed, wanted_gradients, _ = outcome(PROGRAMS[name], False)
    found, printed_by_parts, gradients, frame = outcome(PROGRAMS[name], True)
    assert printed_by_parts == printed
    assert found == wanted
    # Gradients that several parts add to one tensor may differ by the order of the sums.
    for given, expected in zip(gradients, wanted_gradients, strict=True):
        torch.testing.assert_close(given, expected, rtol=1e-5, atol=1e-5 * float(expected.abs().max()), equal_nan=True)
    assert (replays_of(frame) > 0) is (name not in WITHOUT_PARTS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", [0, 15])
def test_random_functions_with_breaks(first, monkeypatch, tmp_path):
    monkeypatch.setattr(compiled_function, "_MIN_KERNELS", 1)  # the programs are small
    found = {seed: difference(seed, tmp_path) for seed in range(first, first + 15)}
    assert {seed: text for seed, (text, _) in found.items() if text} == {}
    assert sum(replays > 0 for _, replays in found.values()) > 7


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", [0, 12])
def test_random_functions_with_effects(first, monkeypatch, tmp_path):
    monkeypatch.setattr(compiled_function, "_MIN_KERNELS", 1)  # the programs are small
    found = {seed: random_effects.difference(seed, tmp_path) for seed in range(first, first + 12)}
    assert {seed: text for seed, (text, _) in found.items() if text} == {}
    assert sum(replays > 0 for _, replays in found.values()) > 4


def _recursive(x, n):
    print(n)
    return x if n == 0 else _recursive(x * 2 + 1, n - 1) - 1


def _unbound(x):
    print("before")
    if x.sum() > 100:
        value = x + 1
    return value * 2 + x


def _fails(x):
    print(x.sum().item())
    y = x * 2 + 1
    return y.view(7)


def _raises(x):
    y = x * 2 + 1
    print(y.sum().item())
    raise ValueError(f"{y.mean().item()}") from KeyError("k")


def _names(x):
    print(x.sum().item())

    class Within:
        def method(self):
            return x

    def inner():
        return x

    return repr([Within.__qualname__, Within.method.__qualname__, inner.__qualname__, (lambda: x).__qualname__]), x + 1


@pytest.mark.parametrize("function", [lambda x: _recursive(x, 3), _unbound, _fails, _raises, _names])
def test_errors_and_names_of_parts_are_eagers(function):
    found = []
    for call in (function, CompiledFunction(function, "f")):
        outcomes = []
        with contextlib.redirect_stdout(printed := io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(6):
                try:
                    result = call(torch.ones(4))
                    outcomes.append(repr(result))
                except Exception as error:
                    outcomes.append((type(error), str(error), repr(error.__cause__), repr(error.__context__)))
        found.append((outcomes, printed.getvalue()))
    assert found[0] == found[1]


def test_hooks_of_results_without_gradients_do_not_run():
    def f(x):
        y, z = x * 2 + 1, x.sin() * 3
        print("between")
        z.register_hook(lambda g: calls.append(g.tolist()))
        return y * 2, z * 2

    frame, calls = CompiledFunction(f, "f"), []
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):
            x = torch.ones(2, requires_grad=True)
            frame(x)[0].sum().backward()
            assert x.grad.tolist() == [4, 4] and calls == []
            frame(x)[1].sum().backward()
            assert calls.pop() == [2, 2]
    assert replays_of(frame) > 0


def _reads_after_a_draw(x):
    y = x + torch.rand(3)
    return y * 2 if y.sum() > 0 else y


def _item_after_a_draw(x):
    y = x + torch.rand(3)
    return y * len(str(y.sum().item()))


def _inner_print(x):
    print("inner")
    return x


@pytest.mark.parametrize(
    "function, name, line",
    [
        (_inner_print, "Failed to trace builtin operator", 'print("inner")'),
        (lambda x: _inner_print(x) + 1, "Failed to trace builtin operator", 'print("inner")'),
        (_reads_after_a_draw, "Data-dependent branching", "return y * 2 if y.sum() > 0 else y"),
        (_item_after_a_draw, "Unsupported Tensor.item() call", "return y * len(str(y.sum().item()))"),
        (
            lambda x: torch._dynamo.graph_break() or x,
            "Call to `torch._dynamo.graph_break()`",
            "lambda x: torch._dynamo",
        ),
    ],
)
def test_fullgraph_names_the_break_and_the_lines(function, name, line):
    compiled = torch.compile(function, fullgraph=True)
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(torch._dynamo.exc.Unsupported) as caught:
        for _ in range(2):  # a call that imports modules is recorded again
            compiled(torch.ones(3))
    text = str(caught.value)
    assert text.startswith(name) and line in text.partition("from user code:")[2]
    assert isinstance(caught.value, RuntimeError) and caught.value.__class__.__name__ == "Unsupported"


def _warns_of_its_caller(x):
    print("inner")
    warnings.warn("caller", UserWarning, stacklevel=2)
    return x.sin()


def _warns(x):
    y = x * 2 + 1
    print(y.sum().item())
    warnings.warn("own", UserWarning, stacklevel=1)
    z = _warns_of_its_caller(y) * 2
    return z


def test_warnings_name_the_lines_of_eager_mode():
    found = []
    for call in (_warns, CompiledFunction(_warns, "f")):
        with warnings.catch_warnings(record=True) as told, contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("always")
            for _ in range(5):
                call(torch.ones(3))
        found.append([(str(w.message), w.filename, w.lineno) for w in told if "runs eagerly" not in str(w.message)])
    assert found[0] == found[1] and len(found[0]) == 10


def test_functions_without_source_and_generators_run_as_written():
    space = {"torch": torch, "log": []}
    exec("def f(x):\n    y = x * 2\n    log.append(1)\n    return y + 1", space)

    def generator(x):
        yield x * 2
        yield x + 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = CompiledFunction(space["f"], "f")
        assert [frame(torch.ones(1)).item() for _ in range(5)] == [3] * 5 and frame.tree is None
        rows = CompiledFunction(generator, "generator")
        assert [[t.item() for t in rows(torch.ones(1))] for _ in range(3)] == [[2, 2]] * 3
    assert space["log"] == [1] * 5


@pytest.mark.parametrize("read", [float, torch.Tensor.item])
def test_threads_share_a_function_that_appends(read):
    printed = []

    def f(x):
        y = x.sin() * 2
        printed.append(read(y.sum()))
        return (y + 1).cos()

    frame = CompiledFunction(f, "f")
    inputs = [torch.full((3,), float(n)) for n in range(8)]
    wanted = [f(x).tolist() for x in inputs]
    with warnings.catch_warnings(), concurrent.futures.ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("ignore")
        for _ in range(5):
            assert [t.tolist() for t in pool.map(frame, inputs)] == wanted
    assert len(printed) == 48 and {type(one) for one in printed} == {float}
    assert sorted(set(printed)) == sorted(set(printed[:8]))


def test_a_part_is_recorded_for_each_module_of_a_loop():
    layers = [torch.nn.Linear(3, 3) for _ in range(12)]

    def f(x):
        for layer in layers:
            x = layer(x).relu() + 1
            print(x.sum().item())
        return x

    frame, x = CompiledFunction(f, "f"), torch.ones(2, 3)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for _ in range(6):
            assert torch.equal(frame(x), f(x))
    assert replays_of(frame) >= 24
