"""Groups of ops of a compiled program as kernels of the CPU's engines."""

from __future__ import annotations

import importlib

import pytest

import torchlite as torch
from torchlite._dynamo.compiled_function import CompiledFunction
from torchlite_backends.cpu_engines import engine_selection
from torchlite_backends.cpu_engines.fused_launches import FusedLaunches

SHAPE = (300, 16, 32)


@pytest.fixture(params=["cc", "opencl"])
def engine(request, monkeypatch):
    if request.param == "opencl":
        pytest.importorskip("pyopencl")
    found = importlib.import_module(f"torchlite_backends.{request.param}.cpu_engine").engine
    monkeypatch.setenv("TORCHLITE_CPU_KERNELS", request.param)
    if found.why_not() or found.fusion_device() is None:
        pytest.skip(f"the engine {request.param} cannot serve here: {found.why_not()}")
    monkeypatch.setattr(engine_selection, "select_engine", lambda: engine_selection.Selection(found, {}))
    return found


def replayed(function, *shapes, calls=4):
    """The kernels of a function's replay; its results were eager's."""
    frame = CompiledFunction(function, "joined", fullgraph=True)
    for seed in range(calls):
        torch.manual_seed(seed)
        given = [torch.randn(shape) for shape in shapes]
        expected, found = function(*given), frame(*given)
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    assert frame.replays == calls - 2
    space = next(iter(frame.variants.values()))[0].replay.forward.__globals__
    return [kernel for kernel in space.values() if isinstance(kernel, FusedLaunches)]


@pytest.mark.parametrize("function", [
    lambda x, y: ((x * 2 + y).tanh() * x - y).relu(),
    lambda x, y: ((r := x.sigmoid() * y), (r - y).abs().sqrt() + x),
    lambda x, y: torch.addcmul(x, y, y, value=0.5).exp() - y.double().float(),
    lambda x, y: (x * y[0] + 1).cos() * x[:, :, :1].contiguous(),
])  # fmt: skip
def test_a_group_is_one_kernel(function, engine):
    (kernel,) = replayed(function, SHAPE, SHAPE)
    assert len(kernel.launches) == 1


def test_products_and_sums_of_two_ops_have_eagers_bits(engine):
    def function(x, y):
        return ((x * 3 + y) * y - x) * x + y * 0.1

    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    frame = CompiledFunction(function, "joined", fullgraph=True)
    assert all(torch.equal(frame(x, y), function(x, y)) for _ in range(4)) and frame.replays == 2


def test_long_groups_are_several_kernels(engine):
    def function(x, y):
        for _ in range(9):
            x = (x * y * 0.1).sin()
        return x

    (kernel,) = replayed(function, SHAPE, SHAPE)
    assert len(kernel.launches) == 3


def test_a_reduction_follows_the_kernel(engine):
    (kernel,) = replayed(lambda x, scale: ((x * scale).sigmoid() * x).sum(-1), SHAPE, (32,))
    assert len(kernel.outs) == 1


@pytest.mark.parametrize("function", [
    lambda x, y: torch.where(x > y, x * 2, y) + 1,
    lambda x, y: (x.double() * y).float() + 1,
])  # fmt: skip
def test_unfusable_functions_stay_with_numpy(function, engine):
    assert not replayed(function, SHAPE, SHAPE)


def test_numpy_serves_where_the_engine_is_another_one(engine, monkeypatch):
    def function(x, y):
        return (x * 2 + y).relu()

    (kernel,) = replayed(function, SHAPE, SHAPE)
    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    expected = kernel(x.numpy(), y.numpy())[0]
    monkeypatch.setattr(kernel, "launches", None)
    monkeypatch.setattr(engine, "fusion_device", lambda: None)
    assert (kernel(x.numpy(), y.numpy())[0] == expected).all()


def test_numpy_serves_where_nothing_can_be_built(engine, monkeypatch):
    def refuse(text):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(engine.fusion_device(), "build", refuse)
    monkeypatch.setattr(engine.fusion_device(), "functions", {})
    monkeypatch.setattr(engine.fusion_device(), "programs", {})
    assert not replayed(lambda x, y: (x * 5 + y).exp(), SHAPE, SHAPE)


def test_full_group_that_joins_another_one():
    """No step is lost where a group of the largest size and another one are joined by a further step."""
    from torchlite._dynamo.fusion_groups import MAX_GROUP_SIZE, form_fusion_groups
    from torchlite._dynamo.program_ir import Program, Slot, Step

    steps, number, ends = [], 2, []
    for start, length in ((0, MAX_GROUP_SIZE - 2), (1, 4)):
        last = start
        for _ in range(length):
            steps.append(Step("tanh", None, (Slot(last),), {}, Slot(number)))
            last, number = number, number + 1
        ends.append(last)
    steps.append(Step("add", None, tuple(map(Slot, ends)), {}, Slot(number)))
    steps.append(Step("tanh", None, (Slot(number),), {}, Slot(number + 1)))
    program = Program(steps, [0, 1], {}, [number + 1])
    layouts = dict.fromkeys(range(number + 2), ((4,), torch.float32.np, True))
    found = form_fusion_groups(program, layouts, 1)
    made = [n for one in found for step in getattr(one, "steps", [one]) for n in step.makes()]
    assert sorted(made) == list(range(2, number + 2))
