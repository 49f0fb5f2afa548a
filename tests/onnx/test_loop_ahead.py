"""Loops whose bodies compute products of their steps' numbers: these run ahead, for many steps at once."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from tests.hostile.onnx_files import info, model, node
from torchlite._dynamo.compiled_function import COMPILED_FUNCTIONS
from torchlite.onnx._import import loop_ahead

from .test_loop_calls import function_of, graph, make_constants, run_often

SIZE = 3


def recurrent_loop(condition="counter", kind=6, count=""):
    """h := tanh(x[place] @ w + h @ r), where `place` counts from `begin` on and the loop ends at `end`. `fixed` passes
    through.
    """
    nodes = [
        node("Add", ["place", "one"], ["next"]), node("Cast", ["place"], ["index"], to=7),
        node("Gather", ["x", "index"], ["row"]), node("Unsqueeze", ["row", "zero"], ["line"]),
        node("MatMul", ["line", "w"], ["p"]), node("MatMul", ["h", "fixed"], ["q"]), node("Add", ["p", "q"], ["s"]),
        node("Tanh", ["s"], ["h2"]), node("Identity", ["fixed"], ["fixed2"]),
        node("ReduceMax", ["h2"], ["most"], keepdims=0),
    ]  # fmt: skip
    nodes.append({
        "counter": node("Less", ["next", "end"], ["c2"]), "state": node("Less", ["most", "limit"], ["c2"]),
        "passed": node("Identity", ["c"], ["c2"]),
    }[condition])  # fmt: skip
    body = graph(
        "body", nodes,
        [info("i", kind=7), info("c", kind=9), info("place", kind=kind), info("h", 1, SIZE), info("fixed", SIZE, SIZE)],
        ["c2", "next", "h2", "fixed2", "h2", "line"],
    )  # fmt: skip
    rng = np.random.default_rng(0)
    number = {6: np.int32, 1: np.float32}[kind]
    weights = make_constants(
        w=rng.standard_normal((SIZE, SIZE)).astype("f4"), r=rng.standard_normal((SIZE, SIZE)).astype("f4"),
        one=number(1), zero=np.array([0]), true=np.bool_(True), limit=np.float32(2), begin=number(0),
        state=np.zeros((1, SIZE), "f4"),
    )  # fmt: skip
    loop = node(
        "Loop", [count, "true", "begin", "state", "r"], ["place9", "last", "r9", "all", "lines"], body=body
    )  # fmt: skip
    inputs = [info("x", "n", SIZE), info("end", kind=kind), *([info(count, kind=7)] if count else [])]
    return model([loop], inputs, ["place9", "last", "all", "lines"], weights)


def expected(module, x):
    w, r = module.w, module.r
    h, found = torch.zeros(1, SIZE, device=x.device), []
    for row in x:
        h = torch.tanh(row[None] @ w + h @ r)
        found.append(h)
    return h, torch.stack(found)


def splits_of(before):
    return [split for f, split in loop_ahead._SPLIT.items() if id(f) not in before]


@pytest.mark.parametrize("count", [1, 5, 64, 130])
def test_products_run_ahead(device, count):
    """No row behind the last one is read, though steps are computed in chunks."""
    before = {id(f) for f in COMPILED_FUNCTIONS}
    module = torch.onnx.load(recurrent_loop()).to(device)
    x, end = torch.randn(count, SIZE, device=device), torch.tensor(count, dtype=torch.int32, device=device)
    want = expected(module, x)
    for place, last, every, lines in run_often(module, x, end):
        assert place.item() == count and place.dtype == torch.int32 and place.shape == ()
        torch.testing.assert_close(last, want[0])
        torch.testing.assert_close(every, want[1])
        torch.testing.assert_close(lines, x[:, None])
    assert function_of(module).replays
    assert [split is not None for split in splits_of(before)] == [True]


def test_a_count_ends_it(device):
    module = torch.onnx.load(recurrent_loop("passed", count="m")).to(device)
    x, end = torch.randn(70, SIZE, device=device), torch.tensor(0, dtype=torch.int32, device=device)
    for count in (70, 7):
        want = expected(module, x[:count])
        for place, last, every, _ in run_often(module, x, end, torch.tensor(count, device=device)):
            assert place.item() == count and every.shape[0] == count
            torch.testing.assert_close(last, want[0])


@pytest.mark.parametrize(("condition", "kind"), [("state", 6), ("counter", 1)])
def test_other_loops_stay_whole(device, condition, kind):
    """The condition depends on the state, or the counter is a number whose sums are rounded."""
    before = {id(f) for f in COMPILED_FUNCTIONS}
    module = torch.onnx.load(recurrent_loop(condition, kind, "m")).to(device)
    end = torch.tensor(6, dtype=torch.int32 if kind == 6 else torch.float32, device=device)
    x = torch.randn(6, SIZE, device=device)
    for place, last, *_ in run_often(module, x, end, torch.tensor(6, device=device)):
        assert place.item() == 6
        torch.testing.assert_close(last, expected(module, x)[0])
    function = next(f for f in COMPILED_FUNCTIONS if f.is_part and id(f) not in before)
    found = loop_ahead._SPLIT[function]
    assert found is None or not found.serves((torch.tensor(0.0), *[torch.zeros(1)] * 2))
