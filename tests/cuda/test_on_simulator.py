"""torch.cuda above the real backend, whose driver is the simulator: streams, graphs with random numbers, memory, shared
arrays.
"""

from __future__ import annotations

import pytest

import torchlite as torch
from tests.cuda_simulator import kernel_compiler
from torchlite import nn

from .fake_backend import installed
from .training import losses

cuda = torch.cuda
pytestmark = [
    pytest.mark.skipif(bool(kernel_compiler.missing()), reason=kernel_compiler.missing()),
    pytest.mark.usefixtures("simulated"),
]


@pytest.fixture(scope="module")
def simulated():
    from tests.cuda_simulator.driver import Simulated
    from torchlite_backends.cupy.backend import CUDABackend

    with installed(other=CUDABackend(Simulated(1))) as backend:
        yield backend


def test_devices_and_memory():
    x = torch.ones(1000, device="cuda")
    assert cuda.get_device_capability() == (8, 0) and cuda.get_arch_list() == ["sm_80"] and cuda.is_tf32_supported()
    assert (
        "CUDA simulator" in repr(cuda.get_device_properties())
        and cuda.memory_allocated() >= x.nbytes <= cuda.max_memory_allocated()
    )
    assert (
        "Allocated memory" in cuda.memory_summary()
        and cuda.mem_get_info()[1] == cuda.get_device_properties().total_memory
    )
    cuda.reset_accumulated_memory_stats()
    assert cuda.memory_stats()["num_ooms"] == 0
    assert torch.ones(3).pin_memory().is_pinned()


def test_profiler(simulated):
    with cuda.profiler.profile():
        assert simulated.device(0).driver.profiled is True
    assert simulated.device(0).driver.profiled is False


def test_memory_can_be_limited():
    cuda.set_per_process_memory_fraction(0.01)
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory. Tried to allocate 400.00 MiB"):
        torch.empty(100 << 20, device="cuda")
    cuda.set_per_process_memory_fraction(1.0)
    assert torch.empty(100 << 20, device="cuda").shape == (100 << 20,)


def test_streams_and_events():
    side, start, end = cuda.Stream(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    x = torch.arange(5.0, device="cuda")
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        assert cuda.current_stream() is side
        start.record()
        y = x * 2 + 1
        end.record()
    x.record_stream(side)
    cuda.current_stream().wait_stream(side)
    end.synchronize()
    assert (
        start.elapsed_time(end) >= 0
        and end.cuda_event != start.cuda_event != 0
        and side.query()
        and y.tolist() == [1, 3, 5, 7, 9]
    )
    assert cuda.ExternalStream(side.cuda_stream) == side and not cuda.can_device_access_peer(0, 0)


def test_a_graph_runs_on_new_inputs():
    x, graph = torch.tensor([1.0, 2.0], device="cuda"), cuda.CUDAGraph()
    with cuda.graph(graph):
        y = x * 2 + 1
        y.add_(10)
    graph.replay()
    assert y.tolist() == [13, 15]
    x.copy_(torch.tensor([5.0, 6.0]))
    graph.replay()
    assert y.tolist() == [21, 23]
    with pytest.raises(RuntimeError, match="operation not permitted when stream is capturing"):
        with cuda.graph(cuda.CUDAGraph()):
            (x + 1).sum().item()
    assert (x + 1).tolist() == [6, 7] and not cuda.is_current_stream_capturing()


def draws(generator):
    x = torch.full((9,), 3.0, device="cuda")
    return [
        nn.functional.dropout(torch.ones(100, device="cuda"), 0.5),
        torch.rand(7, device="cuda"),
        torch.randn(70, device="cuda", dtype=torch.float64),
        torch.randint(0, 9, (5,), device="cuda"),
        torch.randint(0, 1 << 40, (5,), device="cuda"),
        torch.rand(3, device="cuda", generator=generator),
        torch.poisson(x),
        torch.binomial(x * 5, x / 6),
        torch.randperm(9, device="cuda"),
        torch.ones(4, device="cuda").bernoulli_(0.5),
        x.exponential_(),
    ]


def test_replays_draw_the_numbers_of_eager_calls():
    other = torch.Generator("cuda")

    def restart():
        torch.manual_seed(3)
        other.manual_seed(5)

    restart()
    eager = [[t.tolist() for t in draws(other)] for _ in range(3)]
    after = torch.rand(4, device="cuda").tolist()
    restart()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = draws(other)
    for want in eager:
        graph.replay()
        assert [t.tolist() for t in out] == want
    assert torch.rand(4, device="cuda").tolist() == after  # what is drawn outside goes on behind the replays
    restart()
    graph.replay()
    assert [t.tolist() for t in out] == eager[0]


def test_replays_and_recorded_steps_do_not_wait(monkeypatch):
    from tests.cuda_simulator.driver import Driver

    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).cuda()
    optimizer, x = torch.optim.Adam(model.parameters(), capturable=True), torch.randn(4, 3, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=False)
        model(x).sum().backward()
        optimizer.step()

    step()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        step()
    waits = []
    for name in ("synchronize", "synchronize_stream", "wait_event"):
        monkeypatch.setattr(
            Driver,
            name,
            lambda self, *at, _wait=getattr(Driver, name), _name=name: (waits.append(_name), _wait(self, *at))[1],
        )
    for _ in range(3):
        graph.replay()
        step()
    assert waits == []
    cuda.synchronize()
    assert waits == ["synchronize"]


def test_a_training_step_with_dropout():
    def made():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 1)).cuda()
        return model, torch.optim.AdamW(model.parameters(), lr=0.01, capturable=True)

    eager, replayed = losses(made, steps=5)
    assert replayed == pytest.approx(eager, rel=1e-5)


def test_graphed_callables():
    torch.manual_seed(0)
    eager = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.LayerNorm(4)).cuda()
    graphed = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.LayerNorm(4)).cuda()
    graphed.load_state_dict(eager.state_dict())
    cuda.make_graphed_callables(graphed, (torch.randn(2, 3).cuda().requires_grad_(),))
    for _ in range(2):
        x = torch.randn(2, 3).cuda()
        found = []
        for model in (eager, graphed):
            inputs = x.clone().requires_grad_()
            out = model(inputs)
            (out**3).sum().backward()
            found.append([out, inputs.grad, *(p.grad for p in model.parameters())])
        for want, got in zip(*found, strict=True):
            torch.testing.assert_close(got.detach().cpu(), want.detach().cpu(), rtol=1e-4, atol=1e-5)


def test_shared_arrays():
    x = torch.arange(6.0, device="cuda").view(2, 3)
    again = torch.as_tensor(
        type("Array", (), {"__cuda_array_interface__": x[:, 1:].__cuda_array_interface__, "kept": x})()
    )
    again.add_(10)
    assert x.tolist() == [[0, 11, 12], [3, 14, 15]] and x.__dlpack_device__() == (2, 0)


@pytest.mark.parametrize(
    "name, options",
    [
        ("Adam", {}),
        ("AdamW", {"weight_decay": 0.1, "amsgrad": True}),
        ("Adam", {"betas": (0.0, 0.9)}),
        ("Adamax", {}),
        ("NAdam", {}),
        ("RAdam", {"betas": (0.9, 0.9)}),
        ("ASGD", {"t0": 2}),
        ("RMSprop", {}),
        ("Adadelta", {}),
        ("Rprop", {}),
    ],
)
def test_optimizers_count_their_steps_in_replays(name, options):
    def made(**more):
        torch.manual_seed(0)
        params = [torch.randn(shape, device="cuda", requires_grad=True) for shape in ((4, 3), (), (50,))]
        for p in params:
            p.grad = p.detach() * 2
        return params, getattr(torch.optim, name)(params, lr=0.1, **options, **more)

    want, optimizer = made()
    for _ in range(8):
        optimizer.step()
    params, optimizer = made(capturable=True)
    optimizer.step()  # makes the state; recorded, it would be made anew in every replay
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        optimizer.step()
    for _ in range(7):
        graph.replay()
    for a, b in zip(params, want, strict=True):
        torch.testing.assert_close(a.detach().cpu(), b.detach().cpu(), rtol=1e-4, atol=1e-5)
    assert {state["step"].item() for state in optimizer.state.values()} == {8.0}


RULES = {
    "Adam": {"capturable": True},
    "AdamW": {"capturable": True, "amsgrad": True},
    "SGD": {"momentum": 0.9},
    "Adagrad": {"lr_decay": 0.5},
}


@pytest.mark.parametrize("name", RULES)
def test_a_graph_captures_a_training_step_with_a_scaler(name):
    def made():
        torch.manual_seed(0)
        model = nn.Linear(3, 2).cuda()
        return (
            model,
            getattr(torch.optim, name)(model.parameters(), lr=0.1, fused=True, **RULES[name]),
            torch.amp.GradScaler("cuda", 1024.0, growth_interval=2),
        )

    def iterate(model, optimizer, scaler, x):
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x).float().pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    torch.manual_seed(1)
    inputs = [torch.randn(4, 3) for _ in range(6)]
    inputs[1][0, 0] = inputs[3][0, 0] = float("inf")
    model, *rest = made()
    for x in inputs:
        iterate(model, *rest, x.cuda())
    want, want_scale = [p.tolist() for p in model.parameters()], rest[1].get_scale()
    assert want_scale == 512.0 and all(state.get("step", 4) == 4 for state in rest[0].state.values())
    model, optimizer, scaler = made()
    x, graph = inputs[0].cuda(), cuda.CUDAGraph()
    iterate(model, optimizer, scaler, x)
    with cuda.graph(graph):
        iterate(model, optimizer, scaler, x)
    for later in inputs[1:]:
        x.copy_(later)
        graph.replay()
    for p, values in zip(model.parameters(), want, strict=True):
        torch.testing.assert_close(p.detach().cpu(), torch.tensor(values))
    assert scaler.get_scale() == want_scale and all(state.get("step", 4) == 4 for state in optimizer.state.values())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_chained_ops_have_the_bits_of_single_ones(dtype):
    """CUDA's compilers make one step of a product and a sum that follow each other; the simulator's does where a
    work-item computes single elements, as the last three here.
    """
    for seed in range(8):
        torch.manual_seed(seed)
        x, y, z = (torch.randn(131075, dtype=dtype).to("cuda") for _ in range(3))
        product = x * y
        product.cpu()  # now it is no part of a chain
        singly = (product + z).cpu()
        for _ in range(2):  # joined from the second time on
            found = x * y + z  # in an `assert` pytest would keep the product
            assert torch.equal(found.cpu(), singly)
