"""Ops that programs register with a `Library`, in compiled functions."""

import contextlib

import numpy as np
import pytest

import torchlite as torch
from torchlite._dynamo.compiled_function import CompiledFunction

SCALE = {"by": 2.0}


class Tripled(torch.autograd.Function):
    """A derivative of its own: three times the true one."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor * 3, None


def composite(x, factor):
    return x * factor * SCALE["by"] + 1


def on_the_host(x, factor):
    return torch.from_numpy(x.detach().numpy() * np.float32(factor))


def write(x, factor):
    x.mul_(factor)


@pytest.fixture
def library():
    with contextlib.ExitStack() as stack:
        found = torch.library.Library("compiled_ops", "DEF")
        stack.callback(found._destroy)
        found.define("composite(Tensor x, float factor) -> Tensor")
        found.impl("composite", composite, "CompositeImplicitAutograd")
        found.define("host(Tensor x, float factor) -> Tensor")
        found.impl("host", on_the_host, "CPU")
        torch.library.register_autograd(
            "compiled_ops::host",
            lambda ctx, grad: (grad * ctx.factor, None),
            setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]),
            lib=found,
        )
        found.define("own_derivative(Tensor x, float factor) -> Tensor")
        found.impl("own_derivative", lambda x, factor: Tripled.apply(x, factor), "Autograd")
        found.impl("own_derivative", lambda x, factor: x * factor, "CPU")
        found.define("write(Tensor(a!) x, float factor) -> ()")
        found.impl("write", write, "CPU")
        found.define("several(Tensor x) -> (Tensor, Tensor)")
        found.impl("several", lambda x: (x.sum(0), x.amax(0)), "CompositeExplicitAutograd")
        yield torch.ops.compiled_ops


def results(function, count=5):
    """The results and gradients of calls with different numbers."""
    found = []
    for i in range(count):
        x = torch.full((2, 3), i + 1.0).requires_grad_()
        result = function(x)
        result.sum().backward()
        found.append((result.tolist(), x.grad.tolist()))
    return found


def programs(ops):
    space = torch.ops.compiled_ops
    overload = ops.host.default

    def mutates(x):
        y = x.detach() * 2
        torch.ops.compiled_ops.write(y, 3.0)
        return y * x

    def pair(x):
        total, most = torch.ops.compiled_ops.several(x.detach())
        return x * total + most

    return {
        "composite": lambda x: torch.ops.compiled_ops.composite(x, 3.0).sin(),
        "device's kernel": lambda x: torch.ops.compiled_ops.host(x, 3.0).sin(),
        "overload in a closure": lambda x: overload(x, 3.0).sin(),
        "library in a closure": lambda x: space.host(x, 3.0).sin(),
        "derivative of the program": lambda x: torch.ops.compiled_ops.own_derivative(x, 3.0).sin(),
        "writes": mutates,
        "two results": pair,
    }


@pytest.mark.parametrize(
    "name",
    ["composite", "device's kernel", "overload in a closure", "library in a closure", "derivative of the program",
     "writes", "two results"],
)  # fmt: skip
def test_a_compiled_function_calls_them_without_a_break(library, name):
    function = programs(library)[name]
    compiled = CompiledFunction(function, "function", fullgraph=True)
    assert results(compiled) == results(function)
    assert compiled.replays > 1


@pytest.mark.parametrize("name", ["composite", "host", "own_derivative"])
@pytest.mark.parametrize("overload", [False, True])
def test_an_op_itself_compiles(library, name, overload):
    op = getattr(library, name)
    op = op.default if overload else op
    compiled = CompiledFunction(op, "op", fullgraph=True)
    assert results(lambda x: compiled(x, 3.0)) == results(lambda x: op(x, 3.0))
    assert compiled.replays > 1


def test_gradients_flow_through_a_kernel_without_a_derivative(library):
    def function(x):
        y = x * 2
        torch.ops.compiled_ops.write(y, 3.0)
        return y.sin() + torch.ops.compiled_ops.several(y)[0]

    with pytest.warns(UserWarning, match="runs eagerly"):
        assert results(torch.compile(function)) == results(function)


def test_a_composite_is_compiled_anew_when_what_it_reads_changes(library, monkeypatch):
    compiled = torch.compile(lambda x: torch.ops.compiled_ops.composite(x, 3.0))
    assert results(compiled)[0][0] == [[7.0] * 3] * 2
    monkeypatch.setitem(SCALE, "by", 4.0)
    assert results(compiled)[0][0] == [[13.0] * 3] * 2


def test_a_kernel_registered_later_is_called(library):
    compiled = torch.compile(lambda x: torch.ops.compiled_ops.host(x, 3.0))
    assert results(compiled)[0][0] == [[3.0] * 3] * 2
    later = torch.library.Library("compiled_ops", "IMPL")
    later.impl("host", lambda x, factor: x - factor, "CPU", allow_override=True)
    try:
        assert results(compiled)[0][0] == [[-2.0] * 3] * 2
    finally:
        later._destroy()
    assert results(compiled)[0][0] == [[3.0] * 3] * 2


def test_a_program_names_the_op(library):
    compiled = torch.compile(library.host)
    result, (source,) = torch._inductor.utils.run_and_get_code(compiled, torch.ones(2), 3.0)
    assert result.tolist() == [3.0, 3.0] and "compiled_ops_host(v0, 3.0)" in source
