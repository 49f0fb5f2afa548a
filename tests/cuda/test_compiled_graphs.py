"""`torch.compile` with mode="reduce-overhead" on CUDA: what parts of a program start is a graph; on the simulator."""

from __future__ import annotations

import pytest

import torchlite as torch
from tests.cuda_simulator import kernel_compiler
from torchlite import nn
from torchlite._dynamo import side_effect_monitor
from torchlite._dynamo.compiled_function import CompiledFunction
from torchlite.nn import functional as F

from .fake_backend import installed

pytestmark = [
    pytest.mark.skipif(bool(kernel_compiler.missing()), reason=kernel_compiler.missing()),
    pytest.mark.usefixtures("simulated"),
]


@pytest.fixture(scope="module")
def simulated():
    from tests.cuda_simulator.driver import Simulated
    from torchlite_backends.cupy.backend import CUDABackend

    with installed(other=CUDABackend(Simulated(1))) as backend, torch.device("cuda"):
        yield backend


@pytest.fixture
def graphs(simulated, monkeypatch):
    """The graphs that are launched. What the driver does when memory dies is a library's affair, as CuPy's is."""
    monkeypatch.setattr(side_effect_monitor, "COMPUTING_LIBRARIES", side_effect_monitor.COMPUTING_LIBRARIES | {"tests"})
    driver, started = simulated.device(0).driver, []
    launch = driver.launch_graph
    monkeypatch.setattr(driver, "launch_graph", lambda graph, queue: (started.append(graph), launch(graph, queue))[1])
    return started


def framed(function):
    return CompiledFunction(function, "f", fullgraph=True, mode="reduce-overhead")


def same(a, b):
    return a.dtype is b.dtype and a.stride() == b.stride() and torch.equal(a, b)


@pytest.mark.parametrize("function", [
    lambda x, y: ((x * 2 + y[0]).tanh() * x - y).relu(),
    lambda x, y: (x @ y.t(), y.view(-1)[3:], x),
    lambda x, y: (F.softmax(x, -1), F.layer_norm(x, x.shape[1:]).sum(1)),
    lambda x, y: F.dropout(x, 0.5) + torch.rand_like(y),
])  # fmt: skip
def test_results_are_eager_ones_wherever_arguments_lie(graphs, function):
    frame, kept = framed(function), []
    for k in range(6):
        torch.manual_seed(k)
        x, y = torch.randn(20, 32), torch.randn(3, 20, 32)[1]
        torch.manual_seed(k)
        want = function(x, y)
        torch.manual_seed(k)
        found = frame(x, y)
        kept += zip(*([r] if isinstance(r, torch.Tensor) else r for r in (want, found)), strict=True)
    assert all(same(a, b) for a, b in kept)
    assert frame.replays == 4 == len(graphs)


def test_elementwise_ops_are_one_kernel_of_the_graph(graphs):
    frame = framed(lambda x, y: ((x * 2 + y).tanh() * x - y).relu())
    for _ in range(4):
        frame(torch.ones(64, 128), torch.ones(128))
    assert [len(graph) for graph in graphs] == [1, 1]


def test_writes_reach_the_callers_tensors(graphs):
    frame = framed(lambda x, y: x.add_(y) * 2)
    x, y = torch.zeros(300), torch.ones(300)
    found = [frame(x, y)[0].item() for _ in range(6)]
    assert found == [2, 4, 6, 8, 10, 12] and x[0].item() == 6 and len(graphs) == 4
    other = torch.zeros(300)
    assert frame(other, y)[0].item() == 2 and other[0].item() == 1 and x[0].item() == 6 and len(graphs) == 4


@pytest.mark.parametrize("whole", [True, False])
def test_training_gives_the_losses_of_eager_steps(graphs, whole):
    losses = []
    for wrap in (lambda f: f, framed):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 3))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        called = model if whole else wrap(model)

        def step(x, y, called=called, optimizer=optimizer):
            optimizer.zero_grad()
            loss = F.cross_entropy(called(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        step = wrap(step) if whole else step
        losses.append([step(torch.randn(8, 6), torch.randint(0, 3, (8,))).item() for _ in range(8)])
    assert losses[0] == losses[1] and graphs


def test_ops_that_read_the_host_run_outside_graphs(graphs):
    def repeated(x, n):
        return torch.repeat_interleave(x.exp(), n, 0) * 2

    frame, x = framed(repeated), torch.randn(3, 8)
    for n in [(1, 2, 1), (1, 2, 1), (1, 2, 1), (2, 2, 3), (1, 2, 1)]:
        n = torch.tensor(n)
        assert same(frame(x, n), repeated(x, n))
    assert graphs
