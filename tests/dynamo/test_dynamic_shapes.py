"""Calls whose sizes, or numbers among the arguments, vary: results are eager's, and nothing runs into a limit."""

from __future__ import annotations

import copy
import gc
import itertools
import math
import re
import warnings

import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dynamo.compiled_function import CompiledFunction
from torchlite._dynamo.dynamic_shapes import CALLS_BEFORE_CAPTURE, SizeVariant
from torchlite.fx.experimental.symbolic_shapes import ConstraintViolationError

F = nn.functional


def sized(frame):
    """The sizes that are captured beside the first ones."""
    return [place for place in frame.variants if place.__class__ is SizeVariant]


def mlp():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)), lambda n: torch.randn(n, 6)


def cnn():
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Dropout(0.25), nn.Linear(4, 4))  # fmt: skip
    return model, lambda n: torch.randn(n + 1, 2, 5, 6)


def attention():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, dropout=0.1), 1)
    return model, lambda n: torch.randn(2, n, 8)


def lstm():
    return nn.LSTM(5, 4, batch_first=True), lambda n: torch.randn(3, n, 5)


def stepping(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        out = model(x)
        out = (out[0] if isinstance(out, tuple) else out).reshape(-1, 4)
        loss = F.cross_entropy(out if out.shape[0] == y.shape[0] else out[: y.shape[0]], y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@pytest.mark.parametrize("make", [mlp, cnn, attention, lstm])
def test_training_over_fifty_sizes(make):
    torch.manual_seed(0)
    model, inputs = make()
    often = (3, 7)  # these come again and again, the others once or twice
    sizes = [n for one in range(1, 51) for n in (one, *(often if one % 2 else ()))] + [3, 7] * 3
    losses, states, frames = [], [], []
    for compiled in (False, True):
        mine = copy.deepcopy(model)
        step = stepping(mine)
        if compiled:
            step = CompiledFunction(step, "step", fullgraph=True, limit=2)
            frames.append(step)
        torch.manual_seed(1)
        losses.append([])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for n in sizes:
                x = inputs(n)
                losses[-1].append(step(x, torch.randint(0, 4, (max(n // 2, 1),))).item())
        states.append([t.tolist() for t in mine.state_dict().values()])
    (frame,) = frames
    assert losses[0] == losses[1] and states[0] == states[1]
    assert not frame.reasons and not frame.gave_up and frame.replays >= 15
    assert 1 <= len(sized(frame)) <= 2  # one of both may be what was captured first


def test_each_branch_on_a_size_is_captured():
    def f(x):
        if x.shape[0] > 4:
            return x.sin()
        return x * x.shape[0] if x.shape[0] != 1 else x[0]

    frame = CompiledFunction(f, "f", fullgraph=True, limit=1)
    for _ in range(CALLS_BEFORE_CAPTURE + 4):
        for n in (2, 4, 5, 1, 6):
            x = torch.randn(n, 3)
            assert torch.equal(frame(x), f(x))
    assert len(sized(frame)) == 4 and frame.replays >= CALLS_BEFORE_CAPTURE + 2 + 4 * 2


def test_a_graph_break_for_one_size_leaves_the_others(capsys):
    def f(x):
        if len(x) == 3:
            print("three")
        return x + 1

    frame = CompiledFunction(f, "f")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(CALLS_BEFORE_CAPTURE + 4):
            for n in (2, 3, 4):
                assert frame(torch.ones(n)).tolist() == [2.0] * n
    assert (
        capsys.readouterr().out == "three\n" * (CALLS_BEFORE_CAPTURE + 4)
        and len(caught) == 1
        and len(sized(frame)) == 1
    )


def test_static_shapes_are_captured_separately():
    x = torch.ones(3, 2)
    fixed = CompiledFunction(lambda x: x * 2, "f", dynamic=False, limit=2)
    for n in (2, 3):
        for _ in range(3):
            fixed(torch.ones(n))
    assert fixed.replays == 2
    with pytest.warns(UserWarning, match=r"hit config.recompile_limit \(2\)"):
        fixed(torch.ones(4))
    with torch._dynamo.config.patch(automatic_dynamic_shapes=False):
        settled = CompiledFunction(lambda x: x * 2, "f")
        settled(x)
        settled(torch.ones(4, 2))
        assert sum(map(len, settled.variants.values())) == 2
        marked = CompiledFunction(lambda x: x * 2, "f")
        torch._dynamo.mark_dynamic(x, 0)
        marked(x)
        marked(torch.ones(4, 2))
        assert sum(map(len, marked.variants.values())) == 1
        marked(torch.ones(4, 3))
        assert sum(map(len, marked.variants.values())) == 2


def test_marks_have_bounds():
    x = torch.ones(3, 2)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=5)
    torch._dynamo.mark_static(x, 1)
    frame = CompiledFunction(lambda x: x * 2, "f")
    for shape, captures in (((3, 2), 1), ((5, 2), 1), ((2, 2), 1), ((6, 2), 2)):
        frame(x if shape == (3, 2) else torch.ones(shape))
        assert sum(map(len, frame.variants.values())) == captures
    torch._dynamo.mark_dynamic(x, 0, min=4)
    with pytest.raises(ConstraintViolationError, match=r"3 not in range \[4, int"):
        CompiledFunction(lambda x: x * 2, "f")(x)
    for mark in (torch._dynamo.mark_dynamic, torch._dynamo.maybe_mark_dynamic, torch._dynamo.mark_static):
        with pytest.raises(AssertionError, match="Expected index to be int, list, or tuple, got <class 'str'>"):
            mark(x, "a")


def test_the_number_of_cached_sizes_is_limited():
    frame = CompiledFunction(lambda x: x * 2, "f")
    for _ in range(2 * CALLS_BEFORE_CAPTURE):
        for n in range(100):
            frame(torch.ones(n))
    assert len(sized(frame)) == 64 and not frame.reasons
    (sizes,) = next(iter(frame.structures.values()))
    assert sizes.needed == CALLS_BEFORE_CAPTURE and len(sizes.calls) <= 100
    for _ in range(3 * CALLS_BEFORE_CAPTURE):
        for n in range(200, 300):
            frame(torch.ones(n))
    assert len(sized(frame)) == 64 and sizes.needed > CALLS_BEFORE_CAPTURE


def test_numbers_that_change_with_each_call_run_into_no_limit():
    frame = CompiledFunction(lambda x, step: x * step + step, "f", fullgraph=True)
    for step in range(50):
        assert frame(torch.ones(2), step).tolist() == [2.0 * step] * 2
    for _ in range(CALLS_BEFORE_CAPTURE + 4):
        frame(torch.ones(2), 7)
    assert not frame.reasons and frame.replays >= 2
    assert sum(map(len, frame.variants.values())) == 2


def test_stances_where_a_size_is_new():
    frame = CompiledFunction(lambda x: x * 2, "f")
    for _ in range(3):
        frame(torch.ones(2))
    for stance in ("eager_on_recompile", "fail_on_recompile"):
        with torch.compiler.set_stance(stance):
            for _ in range(CALLS_BEFORE_CAPTURE + 2):
                assert frame(torch.ones(3)).tolist() == [2.0] * 3
    assert not sized(frame)


def test_a_thousand_sizes_hold_no_memory():
    weight = torch.randn(4, 4, requires_grad=True)
    frame = CompiledFunction(lambda x: (x @ weight).relu().sum(), "f")
    counts = []
    for n in itertools.chain(range(1, 400), range(1, 1000)):
        frame(torch.randn(n, 4)).backward()
        weight.grad = None
        if n in (399, 999):
            gc.collect()
            counts.append(len(gc.get_objects()))
    assert len(sized(frame)) == 0 and counts[-1] - counts[0] < 5000


def test_custom_backends_get_a_graph_for_each_size():
    given = []

    def compiler(graph, inputs):
        given.append(tuple(inputs[0].shape))
        return graph.forward

    f = torch.compile(lambda x, n: x.reshape(-1) * n, backend=compiler, fullgraph=True, recompile_limit=2)
    for _ in range(2):
        for n in range(1, 31):
            assert torch.equal(f(torch.ones(n, 2), 3), torch.full((2 * n,), 3.0))
    assert given == [(n, 2) for n in range(1, 31)]
    f(torch.ones(3, 2), 4)
    assert len(given) == 31


def _halves(x):
    return x[: x.shape[0] // 2] + x[x.shape[0] // 2 :]


@pytest.mark.parametrize(
    "function, dims",
    [
        (lambda x: x + 1 if x.shape[0] == 4 else x, [0]),
        (lambda x: x + torch.ones(4, 3), [0]),
        (lambda x: x.view(4, 3), [0]),
        (lambda x: sum(x[i] for i in range(x.shape[0])), [0]),
        (lambda x: x * [0, 1, 2, 3, 4, 5][x.shape[0]], [0]),
        (lambda x: sum(x.unbind(0)), [0]),
    ],
)
def test_a_marked_size_that_is_specialized_is_an_error(function, dims):
    x = torch.ones(4, 3)
    torch._dynamo.mark_dynamic(x, 0)
    text = (
        "Constraints violated (L['x'].size()[0])! For more information, run with TORCH_LOGS=\"+dynamic\".\n"
        "  - You marked L['x'].size()[0] as dynamic but your code specialized it to be a constant (4). If you're using "
        "mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either "
        "Dim.STATIC or Dim.AUTO."
    )
    with pytest.raises(ConstraintViolationError, match=f"^{re.escape(text)}"):
        torch.compile(function)(x)
    y = torch.ones(4, 3)
    torch._dynamo.maybe_mark_dynamic(y, 0)
    assert torch.equal(torch.compile(function)(y), function(y))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1 if x.shape[0] > 2 else x,
        lambda x: x.view(x.shape[0] // 2, -1) if x.shape[0] % 2 == 0 else x,
        _halves,
        lambda x: x.reshape(-1).softmax(0) / math.sqrt(x.shape[0]),
        lambda x: torch.cat(x.chunk(2)[::-1]) + torch.rand(x.shape[0], 1),
        lambda x: x * torch.arange(x.shape[0])[:, None],
    ],
)
def test_a_marked_size_may_vary(function):
    x = torch.ones(4, 3)
    torch._dynamo.mark_dynamic(x, 0)
    torch.manual_seed(0)
    found = torch.compile(function)(x)
    torch.manual_seed(0)
    assert torch.equal(found, function(x))


@pytest.mark.parametrize(
    "first, second, reason",
    [
        ((torch.ones(2, 3),), (torch.ones(2, 4),), "tensor 'x' size mismatch at index 1. expected 3, actual 4"),
        ((torch.ones(2, 3),), (torch.ones(6),), "tensor 'x' rank mismatch. expected 2, actual 1"),
        ((torch.ones(2),), (torch.ones(2).double(),), "tensor 'x' dtype mismatch. expected Float, actual Double"),
        ((torch.ones(3, 2),), (torch.ones(2, 3).t(),), "tensor 'x' stride mismatch at index 0. expected 2, actual 1"),
        (
            (torch.ones(2),),
            (torch.ones(2, requires_grad=True),),
            "tensor 'x' requires_grad mismatch. expected requires_",
        ),
        ((torch.ones(2), 1), (torch.ones(2), 2), "n == 1"),
        ((torch.ones(2), "a"), (torch.ones(2), "b"), "n == 'a'"),
        ((torch.ones(2), [1, 2]), (torch.ones(2), [1, 2, 3]), "len(n) == 2"),
    ],
)
def test_error_on_recompile_tells_the_difference(first, second, reason):
    def f(x, n=1):
        return x * 2

    with torch._dynamo.config.patch(error_on_recompile=True):
        compiled = torch.compile(f)
        for _ in range(3):
            compiled(*first)
        with pytest.raises(torch._dynamo.exc.RecompileError) as caught:
            compiled(*second)
        compiled(*first)
    line = f.__code__.co_firstlineno
    start = (
        f"Recompiling function f in {__file__}:{line}\n    triggered by the following guard failure(s):\n    - 0/0: "
    )
    assert str(caught.value).startswith(start + reason)


def test_a_recompile_limit_ends_recordings_with_a_warning():
    def f(x, n):
        return x * len(n)

    with torch._dynamo.config.patch(cache_size_limit=3):
        assert torch._dynamo.config.recompile_limit == 3
        compiled = torch.compile(f, dynamic=False)
        for size in range(2, 5):
            compiled(torch.ones(size), "ab")
        with pytest.warns(UserWarning, match=r"torch._dynamo hit config.recompile_limit \(3\)\n   function: 'f' \("):
            assert compiled(torch.ones(5), "ab").tolist() == [2] * 5
        whole = torch.compile(f, dynamic=False, fullgraph=True)
        for size in range(2, 5):
            whole(torch.ones(size), "ab")
        with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit, match="^Hard failure due to fullgraph=True$"):
            whole(torch.ones(5), "ab")
    assert torch._dynamo.config.cache_size_limit == 8
    torch._dynamo.config.cache_size_limit = 5
    assert torch._dynamo.config.recompile_limit == 5
    torch._dynamo.config.recompile_limit = 8
