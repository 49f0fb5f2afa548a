"""`torch.jit.trace`: what a run does, written down; and that it is the same after `save` and `load`."""

import io
import warnings

import pytest

import torchlite as torch

from ..graph_models import MODELS
from .record import leaves


def again(module, **options):
    out = io.BytesIO()
    torch.jit.save(module, out)
    return torch.jit.load(io.BytesIO(out.getvalue()), **options)


def same(found, wanted, tolerance=1e-5):
    assert len(leaves(found)) == len(leaves(wanted))
    for a, b in zip(leaves(found), leaves(wanted), strict=True):
        torch.testing.assert_close(a.cpu(), b.cpu(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", MODELS)
def test_models(device, name):
    one = MODELS[name]
    module = one.make(torch).to(device)
    inputs = [x.to(device) for x in one.inputs(torch)]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(module, tuple(inputs), check_trace=False)
        tolerance = 1e-5 if str(device) == "cpu" else 1e-4
        same(traced(*inputs), module(*inputs), tolerance)
        inputs = [x.cpu() for x in inputs]
        same(again(traced, map_location="cpu")(*inputs), module.cpu()(*inputs), tolerance)


@pytest.mark.parametrize("name", ["resnet", "gpt", "vit", "lstm"])
def test_other_batches(name):
    one = MODELS[name]
    module = one.make(torch)
    with torch.no_grad():
        traced = torch.jit.trace(module, one.inputs(torch), check_trace=False)
        same(traced(*one.inputs(torch, 3)), module(*one.inputs(torch, 3)))


def test_training_changes_the_same_weights():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU())
    traced = torch.jit.trace(net, torch.ones(2, 3), check_trace=False)
    assert [n for n, _ in traced.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert next(traced.parameters()) is next(net.parameters()) and traced[0].weight is net[0].weight
    before = int(net[1].num_batches_tracked)
    traced(torch.randn(5, 3)).sum().backward()
    assert net[0].weight.grad is not None and int(net[1].num_batches_tracked) == before + 1


def test_functions_and_structures():
    def function(pair, more):
        x, y = pair
        x = x.clone()
        x[0] = 3.0
        x[:, 1] += y[:, 1]
        return {"sum": x + y, "parts": [x[1:], x[..., None], y[torch.tensor([0, 1])]]}, more["z"].float().view(
            -1, x.shape[0]
        )

    given = ((torch.ones(2, 3), torch.arange(6.0).view(2, 3)), {"z": torch.arange(4)})
    with pytest.raises(RuntimeError, match="pass strict=False"):
        torch.jit.trace(function, given)
    traced = torch.jit.trace(function, given, strict=False)
    assert isinstance(traced, torch.jit.ScriptFunction) and "torch.select" in traced.code
    found, wanted = again(traced)(*given), function(*given)
    same(found[0]["sum"], wanted[0]["sum"])
    same(found[0]["parts"], wanted[0]["parts"])
    same(found[1], wanted[1])


def test_values_that_python_reads_warn():
    def function(x):
        return x * 2 if x.sum() > 0 else x * 3

    with pytest.warns(torch.jit.TracerWarning, match="Converting a tensor to a Python boolean"):
        traced = torch.jit.trace(function, torch.ones(2))
    assert traced(-torch.ones(2)).tolist() == [-2.0, -2.0] and not torch.jit.is_tracing()
    with pytest.warns(torch.jit.TracerWarning) as told:
        torch.jit.trace(lambda x: x * int(x.sum()), torch.ones(2), check_trace=False)
    assert [(w.filename, str(w.message)[:42]) for w in told] == [
        (__file__, "Converting a tensor to a Python integer mi")
    ]  # once, at the program's line
    seen = []
    torch.jit.trace(lambda x: seen.append(torch.jit.is_tracing()) or x + 1, torch.ones(1), check_trace=False)
    assert seen == [True]


def test_a_run_that_differs_warns():
    count = [0.0]

    def function(x):
        count[0] += 1
        return x + count[0]

    with pytest.warns(torch.jit.TracerWarning, match="does not match the corresponding output"):
        torch.jit.trace(function, torch.ones(2))


def test_methods_and_wrong_inputs():
    class Two(torch.nn.Module):
        def forward(self, x):
            return x + 1

        def other(self, x):
            return x * 2

    traced = torch.jit.trace_module(Two(), {"forward": torch.ones(1), "other": torch.ones(2)})
    assert traced(torch.ones(1)).item() == 2 and again(traced).other(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(AttributeError, match="expected torch.nn.Module"):
        torch.jit.trace_module(3, {})
    with pytest.raises(AttributeError, match="expected a dictionary"):
        torch.jit.trace_module(Two(), [])
    with pytest.raises(RuntimeError, match="cannot be traced"):
        torch.jit.trace(lambda x: x, (object(),))


def test_tracing_does_not_change_classes():
    """Programs ask `type(x) is torch.Tensor`; other threads see nothing of a trace."""
    before = {name: torch.Tensor.__dict__.get(name) for name in ("detach", "__bool__", "shape", "new_zeros")}

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 2)

        def forward(self, x):
            assert type(x) is torch.Tensor and type(self.layer.weight) is torch.nn.Parameter
            y = self.layer(x)[:, :1]
            assert type(y) is torch.Tensor
            return y.view(-1, y.size(0))

    traced = torch.jit.trace(Model(), torch.ones(2, 3))
    assert traced(torch.ones(5, 3)).shape == (1, 5)
    with pytest.raises(ZeroDivisionError):
        torch.jit.trace(lambda x: x.detach().sum() / (x.size(0) // 0), (torch.ones(2),))
    assert {name: torch.Tensor.__dict__.get(name) for name in before} == before


def test_reads_of_tensors_outside_are_not_recorded():
    other = torch.tensor(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = torch.jit.trace(lambda x: x + int(other), (torch.ones(2),))
    assert traced(torch.zeros(2)).tolist() == [3.0, 3.0]


def _symmetric(x):
    return x @ x.T + torch.eye(3)


@pytest.mark.parametrize("function", [
    lambda x: x + torch.empty_like(x).uniform_(-1, 1), lambda x: x + torch.zeros(3, 3).random_(5),
    lambda x: x + x.new(3, 3).uniform_(2, 3), lambda x: x + x.new(x.shape).normal_(),
    lambda x: torch.where(torch.max(x < 0.4, x > 0.9), x, 2 * x), lambda x: torch.min(x, 1 - x),
    lambda x: torch.linalg.solve_triangular(_symmetric(x), x, upper=True),
    lambda x: torch.cholesky_solve(x, torch.linalg.cholesky(_symmetric(x))),
    lambda x: torch.unique(x), lambda x: torch.unique(x, dim=0, return_counts=True)[1],
    lambda x: torch.unique_consecutive(x), lambda x: torch.cdist(x, x + 1),
])  # fmt: skip
def test_records_the_call_with_its_arguments(function):
    x = torch.rand(3, 3)
    traced = torch.jit.trace(function, x, check_trace=False)
    for program in (traced, again(traced)):
        torch.manual_seed(5)
        wanted = function(x.flip(0))
        torch.manual_seed(5)
        same(program(x.flip(0)), wanted)


@pytest.mark.filterwarnings("ignore::torchlite.jit.TracerWarning")  # arguments are validated
@pytest.mark.parametrize("name", ["Normal", "Laplace", "Exponential", "ContinuousBernoulli", "Geometric"])
def test_distributions(name):
    kind = getattr(torch.distributions, name)
    two = name in ("Normal", "Laplace")

    def draw(a, b):
        made = kind(a, b) if two else kind(a)
        x = made.sample()
        return x, made.log_prob(x)

    inputs = torch.rand(4), torch.rand(4)
    traced = torch.jit.trace(draw, inputs, check_trace=False)
    torch.manual_seed(1)
    wanted = draw(*inputs)
    torch.manual_seed(1)
    same(traced(*inputs), wanted)
    assert any(node.isNondeterministic() for node in traced.graph.nodes())


def test_nodes_of_a_graph():
    graph = torch.jit.trace(lambda x: torch.relu(x) + 1, torch.ones(2)).graph
    assert [node.kind() for node in graph.nodes()] == ["aten::relu", *["prim::Constant"] * 2, "aten::add"]
    assert not any(node.isNondeterministic() for node in graph.nodes())
    assert [str(node).partition(" = ")[2] for node in graph.findAllNodes("aten::relu")] == ["aten::relu(%x)"]


def test_the_function_gets_the_tensors_of_the_caller():
    x, seen = torch.ones(2), []
    torch.jit.trace(lambda a, b, c: (seen.append((a is x, b is x, c["k"] is x)), a + b + c["k"])[1], (x, x, {"k": x}))
    assert seen[0] == (True, False, False)
    y = torch.ones(2, requires_grad=True) * 2
    torch.jit.trace(lambda a: (seen.append(a is y), a * 2)[1], (y,), check_trace=False)
    assert seen[-1] is True


def test_writes_to_inputs_reach_the_caller():
    x = torch.zeros(2)
    traced = torch.jit.trace(lambda a: a.add_(1) * 2, x, check_trace=False)
    assert x.tolist() == [1, 1] and traced(x).tolist() == [4, 4] and x.tolist() == [2, 2]
