"""Compilers of a program's own that get ops below autograd, forward and backward apart."""

from __future__ import annotations

import pytest

import torchlite as torch
from tests.dynamo.test_custom_backend import GRAPHS, NO_GRAPHS, Net, outcome
from torchlite import nn
from torchlite._decomp import get_decompositions
from torchlite._dynamo.backends.common import aot_autograd
from torchlite._functorch.aot_autograd import aot_function, aot_module, make_boxed_compiler, make_boxed_func, nop
from torchlite._functorch.partitioners import default_partition
from torchlite.fx.experimental.proxy_tensor import make_fx


def targets(graph):
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("name", [name for name in GRAPHS if name not in NO_GRAPHS])
def test_functions_train_as_they_are_written(name):
    found, graphs = {}, []

    def compiler(graph, inputs):
        graphs.append((graph, inputs))
        assert not any("_set_grad_enabled" in target for target in targets(graph))
        return make_boxed_func(graph.forward)

    for kind in ("eager", "aot"):
        torch.manual_seed(0)
        net = Net()
        call = getattr(net, name)
        if kind == "aot":
            call = torch.compile(call, backend=aot_autograd(fw_compiler=compiler))
        found[kind] = [outcome(net, call, seed) for seed in range(4)]
    torch.testing.assert_close(found["aot"], found["eager"], rtol=1e-5, atol=1e-6)
    assert len(graphs) == 2
    for graph, inputs in graphs:
        assert [i.shape for i in inputs] == [n.meta["val"].shape for n in graph.graph.nodes if n.op == "placeholder"]


def test_a_module_trains():
    losses, x, y = {}, torch.randn(8, 4), torch.randint(0, 3, (8,))
    for kind in ("eager", "aot"):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 3))
        run = model if kind == "eager" else aot_module(model, fw_compiler=nop, decompositions=get_decompositions([]))
        optimizer = torch.optim.Adam(run.parameters(), 0.01)
        losses[kind] = []
        for _ in range(10):
            loss = nn.functional.cross_entropy(run(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[kind].append(loss.item())
    torch.testing.assert_close(losses["aot"], losses["eager"], rtol=1e-4, atol=1e-5)
    assert list(run.state_dict()) == [f"orig_module.{key}" for key in model.state_dict()]


def test_a_graph_for_each_kind_of_arguments():
    made = []
    compiler = make_boxed_compiler(lambda graph, inputs: made.append(targets(graph)) or graph)
    f = aot_function(lambda x, k=2: {"a": x * k, "k": k, "none": None}, compiler)
    for _ in range(2):
        found = f(torch.ones(2))
        assert found["a"].tolist() == [2, 2] and found["k"] == 2 and found["none"] is None
    assert len(made) == 1
    assert f(torch.ones(2), 3)["a"].tolist() == [3, 3] and len(made) == 2
    f(torch.ones(2, requires_grad=True))["a"].sum().backward()
    assert len(made) == 4  # forward and backward
    with torch.no_grad():
        assert not f(torch.ones(2, requires_grad=True))["a"].requires_grad
    assert len(made) == 5


def test_inference_and_backward_use_separate_compilers():
    called = []

    def compiler(name):
        return lambda graph, inputs: called.append(name) or graph

    f = aot_function(torch.sin, compiler("forward"), compiler("backward"), inference_compiler=compiler("inference"))
    f(torch.ones(1))
    y = f(torch.ones(1, requires_grad=True))
    assert called == ["inference", "forward"]
    y.backward()
    assert called == ["inference", "forward", "backward"]


def test_decompositions_are_traced():
    seen = []
    f = aot_function(
        lambda x: nn.functional.silu(x),
        lambda graph, inputs: seen.append(targets(graph)) or graph,
        decompositions={torch.ops.aten.silu.default: lambda x: x * x.sigmoid()},
    )
    x = torch.randn(3)
    torch.testing.assert_close(f(x), nn.functional.silu(x))
    assert seen == [["aten.sigmoid.default", "aten.mul.Tensor"]]


def test_writes_and_second_derivatives():
    total = torch.zeros(2)
    f = aot_function(lambda total, x: total.add_(x.detach()) * x, nop)
    x = torch.ones(2, requires_grad=True)
    for n in (1, 2, 3):
        y = f(total, x)
        assert total.tolist() == [n, n] and y.tolist() == [n, n]
    (g,) = torch.autograd.grad(f(torch.zeros(2), x).sum(), x, create_graph=True)
    assert g.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="once_differentiable|does not require grad"):
        g.sum().backward()


def test_nothing_is_computed_twice():
    def joint(primals_1, tangents_1):
        y = primals_1.exp()
        return y.sin(), tangents_1 * y.cos() * y

    graph = make_fx(joint)(torch.ones(2), torch.ones(2))
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            node.target = node.target.removesuffix("_1")
    first, second = default_partition(graph, (), num_fwd_outputs=1)
    assert targets(first) == ["aten.exp.default", "aten.sin.default"]
    assert targets(second) == ["aten.cos.default", "aten.mul.Tensor", "aten.mul.Tensor"]
    x, t = torch.randn(2), torch.randn(2)
    y, *saved = first(x)
    (g,) = second(*saved, t)
    torch.testing.assert_close((y, g), graph(x, t))
