"""Loops of loaded modules in optimized calls: one step of the program, and a program for the body."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from tests.hostile.onnx_files import info, model, node
from torchlite._dynamo.compiled_function import COMPILED_FUNCTIONS
from torchlite.onnx import OnnxFileError
from torchlite.onnx._export.graph_builder import make_tensor
from torchlite.onnx._protobuf import Message

ATTEMPTS = 5


def make_constants(**arrays):
    return [make_tensor(name, np.asarray(value), np.asarray(value).dtype.name) for name, value in arrays.items()]


def run_often(module, *inputs):
    """The result of each call without gradients; the later ones are optimized."""
    with torch.no_grad():
        return [module(*inputs) for _ in range(ATTEMPTS)]


def function_of(module):
    return next(f for f in COMPILED_FUNCTIONS if getattr(f, "module", lambda: None)() is module)


def texts_of(module):
    """The programs of a module's replays."""
    return [v.replay.forward.text for found in function_of(module).variants.values() for v in found if v.replay]


def graph(name, nodes, inputs, outputs):
    return Message("Graph", name=name, input=inputs, node=nodes, output=[info(n) for n in outputs])


def counting_loop():
    """h := tanh(h @ w) with all h as a scan output, `m` times."""
    body = graph(
        "body",
        [node("MatMul", ["h", "w"], ["p"]), node("Tanh", ["p"], ["h2"]), node("Identity", ["c"], ["c1"])],
        [info("i", kind=7), info("c", kind=9), info("h", 1, 4)],
        ["c1", "h2", "h2"],
    )
    weights = make_constants(w=np.linspace(-1, 1, 16, dtype="f4").reshape(4, 4))
    loop = node("Loop", ["m", "", "x"], ["last", "all"], body=body)
    return model([loop], [info("x", 1, 4), info("m", kind=7)], ["last", "all"], weights)


def expected(x, count):
    w = torch.linspace(-1, 1, 16).reshape(4, 4).to(x.device)
    found = []
    for _ in range(count):
        x = torch.tanh(x @ w)
        found.append(x)
    return x, torch.stack(found)


def test_steps_are_not_unrolled(device):
    module = torch.onnx.load(counting_loop()).to(device)
    x = torch.randn(1, 4, device=device)
    for count in (6, 3, 40):  # another number of steps has another program, since the result has another shape
        for last, every in run_often(module, x, torch.tensor(count, device=device)):
            want = expected(x, count)
            torch.testing.assert_close(last, want[0])
            torch.testing.assert_close(every, want[1])
    assert function_of(module).replays
    texts = texts_of(module)
    assert texts and all(text.count(" = _loop") == 1 and "= matmul" not in text for text in texts)


def test_body_has_a_program(device):
    module = torch.onnx.load(counting_loop()).to(device)
    x = torch.randn(1, 4, device=device)
    before = {id(f) for f in COMPILED_FUNCTIONS}
    run_often(module, x, torch.tensor(30, device=device))
    (body,) = (f for f in COMPILED_FUNCTIONS if f.is_part and id(f) not in before)
    assert body.replays >= 30 and not body.reasons


def test_results_are_new_memory(device):
    """A loop that runs no step returns its inputs' values, and not the inputs."""
    body = graph(
        "body", [node("Identity", ["c"], ["c1"]), node("Identity", ["h"], ["h1"])],
        [info("i", kind=7), info("c", kind=9), info("h", 1, 4)], ["c1", "h1"],
    )  # fmt: skip
    loop = node("Loop", ["m", "", "x"], ["y"], body=body)
    module = torch.onnx.load(
        model([node("Relu", ["z"], ["x"]), loop, node("Add", ["y", "x"], ["s"])], [info("z", 1, 4), info("m", kind=7)],
              ["y", "s"])
    ).to(device)  # fmt: skip
    z = torch.randn(1, 4, device=device)
    for count in (0, 2):
        for y, s in run_often(module, z, torch.tensor(count, device=device)):
            torch.testing.assert_close(y, z.relu())
            y.zero_()
            torch.testing.assert_close(s, 2 * z.relu())


def test_a_condition_ends_it(device):
    """The number of steps depends on elements: one program serves, as the shapes stay."""
    body = graph(
        "body",
        [node("Add", ["h", "one"], ["h2"]), node("Less", ["h2", "limit"], ["c2"])],
        [info("i", kind=7), info("c", kind=9), info("h")],
        ["c2", "h2"],
    )
    values = make_constants(one=np.float32(1), limit=np.float32(10), true=np.bool_(True))
    loop = node("Loop", ["", "true", "x"], ["y"], body=body)
    module = torch.onnx.load(model([loop], [info("x")], ["y"], values)).to(device)
    for start in (0.5, 7.5, 3.5, 12.0):
        for y in run_often(module, torch.tensor(start, device=device)):
            assert y.item() == max(start + 1, 10.5 if start < 10 else 0)
    assert function_of(module).replays >= 4 * ATTEMPTS - 3 and not function_of(module).reasons


def test_values_that_a_body_passes_on(device):
    """Weights among the carried values are results as they are."""
    body = graph(
        "body",
        [node("MatMul", ["h", "w1"], ["h2"]), node("Identity", ["c"], ["c1"])],
        [info("i", kind=7), info("c", kind=9), info("w1", 4, 4), info("h", 1, 4)],
        ["c1", "w1", "h2"],
    )
    w = np.linspace(-1, 1, 16, dtype="f4").reshape(4, 4)
    loop = node("Loop", ["m", "", "w", "x"], ["w2", "y"], body=body)
    module = torch.onnx.load(
        model([loop], [info("x", 1, 4), info("m", kind=7)], ["y", "w2"], make_constants(w=w))
    ).to(device)  # fmt: skip
    x = torch.randn(1, 4, device=device)
    for y, w2 in run_often(module, x, torch.tensor(3)):
        torch.testing.assert_close(w2.cpu(), torch.from_numpy(w))
        torch.testing.assert_close(y, x @ w2 @ w2 @ w2)


def test_random_numbers_are_drawn_anew():
    body = graph(
        "body",
        [node("RandomNormalLike", ["h"], ["h2"]), node("Identity", ["c"], ["c1"])],
        [info("i", kind=7), info("c", kind=9), info("h", 1, 4)],
        ["c1", "h2", "h2"],
    )
    loop = node("Loop", ["m", "", "x"], ["y", "all"], body=body)
    module = torch.onnx.load(model([loop], [info("x", 1, 4), info("m", kind=7)], ["y", "all"]))
    found = run_often(module, torch.zeros(1, 4), torch.tensor(2))
    assert len({tuple(y.reshape(-1).tolist()) for y, _ in found}) == ATTEMPTS
    assert "loop draws random numbers" in function_of(module).reasons[0]


@pytest.mark.parametrize("backward", [0, 1])
def test_scan(backward, device):
    body = graph(
        "body",
        [node("Add", ["s", "v"], ["s2"]), node("Tanh", ["s2"], ["t"])],
        [info("s", 3), info("v", 3)],
        ["s2", "t"],
    )
    scan = node("Scan", ["s0", "x"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_directions=[backward])
    module = torch.onnx.load(model([scan], [info("s0", 3), info("x", "T", 3)], ["last", "all"])).to(device)
    for steps in (20, 5):
        s0, x = torch.randn(3, device=device), torch.randn(steps, 3, device=device)
        for last, every in run_often(module, s0, x):
            sums = s0 + (x.flip(0) if backward else x).cumsum(0)
            torch.testing.assert_close(last, sums[-1])
            torch.testing.assert_close(every, sums.tanh())
    texts = texts_of(module)
    assert texts and all("_scan" in text and "tanh(" not in text for text in texts)


def test_gradients_pass_through_the_steps(device):
    module = torch.onnx.load(counting_loop()).to(device)
    x = torch.randn(1, 4, device=device)
    run_often(module, x, torch.tensor(3))
    x.requires_grad_()
    (grad,) = torch.autograd.grad(module(x, torch.tensor(3))[0].sum(), x)
    (want,) = torch.autograd.grad(expected(x, 3)[0].sum(), x)
    torch.testing.assert_close(grad, want)


def test_endless_loops_end_in_replays():
    """The limit of time holds in a replay, whose number of steps may be another."""
    body = graph(
        "body",
        [node("Mul", ["h", "half"], ["h2"]), node("Greater", ["h2", "limit"], ["c2"])],
        [info("i", kind=7), info("c", kind=9), info("h")],
        ["c2", "h2"],
    )
    values = make_constants(half=np.float32(1), limit=np.float32(10), true=np.bool_(True))
    loop = node("Loop", ["", "true", "x"], ["y"], body=body)
    module = torch.onnx.load(model([loop], [info("x")], ["y"], values))
    run_often(module, torch.tensor(1.0))
    assert function_of(module).replays
    with torch.no_grad(), pytest.raises(OnnxFileError, match="CPU time"):
        module(torch.tensor(20.0))
    torch.testing.assert_close(run_often(module, torch.tensor(2.0))[-1], torch.tensor(2.0))
