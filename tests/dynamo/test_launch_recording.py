"""Captures on the test's device: on OpenCL their kernels are launches that are recorded once."""

from __future__ import annotations

import itertools
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dispatch.kernel_recorder import UnrecordableError
from torchlite._dynamo.compiled_function import CompiledFunction
from torchlite._dynamo.launch_recording import LaunchSequence
from torchlite._dynamo.program_ir import Program, Slot, Step
from torchlite.nn import functional as F

pytestmark = pytest.mark.usefixtures("on_device")


def same(a, b):
    return a.dtype is b.dtype and a.stride() == b.stride() and torch.equal(a, b)


def chained(x, y):
    return ((x * 2 + y).tanh() * x - y).relu()


def rows(x, y):
    return (x * y[0] + y[:, :1]).exp().sum(1), x.mean(), F.softmax(x, -1), F.layer_norm(x, x.shape[1:])


def views(x, y):
    z = x @ y.t()
    return z[1:], z.t(), y.view(-1), x


def written(x, y):
    x.add_(y)
    z = x * 2
    y[0] = 1
    return z, x[1]


def drawn(x, y):
    return F.dropout(x, 0.5) + torch.rand_like(y), torch.randn(3)


def branched(x, y):
    return x + y if x.sum() > 0 else x - y


@pytest.mark.parametrize("function", [chained, rows, views, written, drawn, branched])
@pytest.mark.parametrize("shape", [(4, 6), (400, 500)])
def test_results_match_eager_and_do_not_change_later(function, shape):
    frame = CompiledFunction(function, "f", fullgraph=True)
    kept = []
    for k in range(7):
        torch.manual_seed(k)
        x, y = torch.randn(shape), torch.randn(shape)
        a, b = x.clone(), y.clone()
        torch.manual_seed(k)
        want = function(x, y)
        torch.manual_seed(k)
        found = frame(a, b)
        want, found = ([r] if isinstance(r, torch.Tensor) else list(r) for r in (want, found))
        kept.append(([*want, x, y], [*found, a, b], torch.rand(1) if k % 2 else None))
    for want, found, _ in kept:
        assert all(same(s, t) for s, t in zip(want, found, strict=True))
    assert frame.replays >= 3


def test_arguments_lie_anywhere():
    frame = CompiledFunction(chained, "f", fullgraph=True)
    memory = torch.randn(6, 20, 30)
    x, y = torch.randn(20, 30), torch.randn(20, 30)
    for a, b in [(x, y), (x, y), (x, y), (memory[1], y), (y, memory[2]), (memory[3], memory[4]), (x, y)] * 2:
        assert same(frame(a, b), chained(a, b))
    twice = CompiledFunction(lambda a, b: a * b + a, "g", fullgraph=True)
    for a, b in [(x, x), (x, x), (x, x), (y, y), (memory[0], memory[0])]:
        assert same(twice(a, b), a * b + a)


def test_results_in_the_memory_of_arguments_are_views_of_them():
    frame = CompiledFunction(lambda x: (x.add_(1), x[1:].t()), "f", fullgraph=True)
    for _ in range(5):
        x = torch.zeros(3, 4)
        given, view = frame(x)
        assert given is x and view._base is x and x.tolist() == torch.ones(3, 4).tolist()
        x.mul_(3)
        assert view.tolist() == torch.full((4, 2), 3.0).tolist()


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD])
def test_training_gives_the_losses_of_eager_steps(whole, optimizer):
    losses = []
    for wrap in (lambda f, name: f, lambda f, name: CompiledFunction(f, name, fullgraph=True)):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(64, 5)
        )
        used = optimizer(model.parameters(), lr=0.01)
        called = model if whole else wrap(model, "model")

        def step(x, y, model=called, used=used):
            used.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            used.step()
            return loss.detach()

        step = wrap(step, "step") if whole else step
        losses.append([step(torch.randn(8, 2, 6, 6), torch.randint(0, 5, (8,))).item() for _ in range(12)])
        if not losses[1:]:
            continue
        assert (step if whole else called).replays >= 8
    torch.testing.assert_close(torch.tensor(losses[1]), torch.tensor(losses[0]), rtol=1e-5, atol=0)


def test_gradients_accumulate():
    weight = torch.randn(5, 5, requires_grad=True)
    other = weight.detach().clone().requires_grad_()
    frame = CompiledFunction(lambda x: (x @ weight).tanh().sum(), "f", fullgraph=True)
    for k in range(8):
        x = torch.randn(3, 5)
        frame(x).backward()
        (x @ other).tanh().sum().backward()
        assert same(weight.grad, other.grad)
        if k % 3 == 2:
            weight.grad = other.grad = None


def test_bad_indices_raise_as_they_do_without():
    table = torch.randn(4, 3)
    frame = CompiledFunction(lambda i: F.embedding(i, table), "f", fullgraph=True)
    for _ in range(4):
        assert same(frame(torch.tensor([1, 2])), table[1:3])
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        frame(torch.tensor([1, 7])).tolist()
    assert same(frame(torch.tensor([0, 1])), table[:2])


def test_shapes_that_depend_on_elements_are_those_of_the_elements():
    def repeated(x, n):
        return torch.repeat_interleave(x, n, 0).exp() * 2

    frame = CompiledFunction(repeated, "f")
    x = torch.randn(3, 4)
    for n in [(1, 2, 1), (1, 2, 1), (1, 2, 1), (2, 2, 3), (0, 1, 0), (1, 2, 1)]:
        n = torch.tensor(n)
        results = []
        for f in (frame, repeated):
            given = x.clone().requires_grad_()
            found = f(given, n)
            results.append((found, *torch.autograd.grad(found.sum(), given)))
        assert all(same(a, b) for a, b in zip(*results, strict=True))


def test_threads_that_compute_meanwhile_are_not_recorded(device):
    x = torch.randn(300, 600)
    want = chained(x, x).sum().item()
    stop, found = threading.Event(), []

    def work():
        with torch.device(device):
            while not stop.is_set():
                found.append(chained(x, x).sum().item())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for n in range(6):
            function = lambda a, n=n: a.exp().sum(0) * n + torch.rand(600)
            frame = CompiledFunction(function, "f")
            for _ in range(4):
                torch.manual_seed(n)
                value = frame(x)
                torch.manual_seed(n)
                assert same(value, function(x))
    finally:
        stop.set()
        thread.join()
    assert found and set(found) == {want}


def test_threads_get_separate_results():
    frame = CompiledFunction(lambda a: (a * 2 + 1).exp() - a, "f", fullgraph=True)
    arguments = [torch.randn(50, 60) for _ in range(4)]
    for a in arguments:
        frame(a)
    wrong = []

    def work(a):
        want = (a * 2 + 1).exp() - a
        for _ in range(30):
            if not same(frame(a), want):
                wrong.append(a)

    threads = [threading.Thread(target=work, args=(a,)) for a in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_elementwise_ops_share_a_launch_across_other_ops(opencl):
    def f(x, y):
        first = x * 2 + y
        product = y @ x.t()
        return first.tanh() - x, product

    frame = CompiledFunction(f, "f", fullgraph=True)
    x, y = torch.randn(64, 128), torch.randn(64, 128)
    for _ in range(3):
        assert all(same(a, b) for a, b in zip(frame(x, y), f(x, y), strict=True))
    (variants,) = frame.variants.values()
    part = variants[0].replay.forward.__globals__["launches"]
    alone = CompiledFunction(lambda x, y: y @ x.t(), "g", fullgraph=True)
    for _ in range(3):
        alone(x, y)
    ((other,),) = alone.variants.values()
    product = other.replay.forward.__globals__["launches"]
    assert len(part._launches.launches) == len(product._launches.launches) + 1


def summed(x, scale, shift):
    y = (x * scale + shift).sigmoid() * x
    return y.sum(1), (x.exp() - shift).mean(-1), ((x * 2).tanh() + scale).amax(1, keepdim=True), (x * x + 1).sum()


def summed_and_read_later(x, scale, shift):
    y = (x * scale).sigmoid()
    z, t = y.sum(1), (x - shift).abs()
    part = t[2:]
    return y + 1, z, t.mean(1), part, (x * x).amin((0, 1)), (x * 2 - 1).sum(0)


@pytest.mark.parametrize("function", [summed, summed_and_read_later])
@pytest.mark.parametrize("rows, columns", [(128, 1024), (300, 48), (128, 50), (3, 16), (2, 20000)])
def test_reductions_of_elementwise_results(function, rows, columns):
    frame = CompiledFunction(function, "f", fullgraph=True)
    for k in range(4):
        x, scale, shift = torch.randn(rows, columns), torch.randn(columns), torch.randn(rows, 1)
        x[k % rows, 3] = float("nan") if k == 3 else 0.0
        for found, want in zip(frame(x, scale, shift), function(x, scale, shift), strict=True):
            torch.testing.assert_close(found, want, rtol=0, atol=0, equal_nan=True)


def test_reductions_share_a_launch_with_their_input(opencl):
    frame = CompiledFunction(summed, "f", fullgraph=True)
    x, scale, shift = torch.randn(400, 128), torch.randn(128), torch.randn(400, 1)
    if not x._tl_array.device.is_cpu:
        pytest.skip("rows are reduced by vectors on CPUs")
    for _ in range(3):
        frame(x, scale, shift)
    (variants,) = frame.variants.values()
    launches = variants[0].replay.forward.__globals__["launches"]._launches.launches
    names = [kernel.function_name for kernel, *_ in launches]
    assert names[:3] == ["whole"] * 3 and set(names) <= {"whole", "part", "join"}


def test_only_replaced_gradients_are_released(device):
    model = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, fresh):
        if fresh:
            optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    frame, x = CompiledFunction(step, "step", fullgraph=True), torch.randn(8, 64)
    for _ in range(4):
        frame(x, True)
    kept = model.weight.grad
    values = kept.clone()
    frame(x, True)
    assert model.weight.grad is not kept and torch.equal(kept, values)
    added = [model.weight.grad.clone()]
    for _ in range(4):  # these add to what there is
        frame(x, False)
        added.append(model.weight.grad.clone())
    assert all(b.norm() > a.norm() for a, b in itertools.pairwise(added))


def test_constants_on_the_host_among_results():
    def f(x, y):
        return x + y, torch.tensor(x.equal(y), device="cpu"), torch.tensor([1.0, 2.0], device="cpu")

    x = torch.ones(3)
    frame = CompiledFunction(f, "f", fullgraph=True)
    for y in [y for y in (x, x * 2) for _ in range(4)] + [x, x * 2]:
        total, alike, plain = frame(x, y.clone())
        want = f(x, y)
        assert torch.equal(total, want[0]) and alike.item() == want[1].item() and plain.tolist() == [1.0, 2.0]
        assert alike.device.type == plain.device.type == "cpu"
        plain.add_(1)
    assert frame.replays == 6


def test_gemm_configs_are_measured_once_and_cached(opencl, tmp_path, monkeypatch):
    from torchlite_backends.device_runtime.linalg import autotune

    model = nn.Sequential(nn.Linear(40, 70), nn.ReLU(), nn.Linear(70, 40))
    x = torch.randn(33, 40)
    state = x._tl_array.device
    before, measured = dict(state.plans), []

    def slowest(device, kind, sizes, added, forms):
        measured.append(sizes[:3])
        return forms[-1]

    monkeypatch.setenv("TORCHLITE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(autotune, "find_fastest_config", slowest)
    monkeypatch.delitem(state.state, "forms", raising=False)
    for again in range(3):
        if again == 2:  # as another process, which finds what this one kept
            del state.state["forms"]
        frame = CompiledFunction(model, "model", fullgraph=True, mode="max-autotune")
        for _ in range(4):
            assert torch.equal(frame(x), model(x))
        assert frame.replays == 2 and measured == [(33, 70, 40), (33, 40, 70)]
        assert {repr(form) for form in state.state["forms"].values()} == {repr(autotune.list_candidate_configs(state,
        "f32", s)[-1])
                for _, s, _ in state.state["forms"]}  # fmt: skip
    assert state.forms is None and all(state.plans[key] is plan for key, plan in before.items())
    for file in tmp_path.rglob("*.bin"):
        file.write_bytes(b"damaged")
    del state.state["forms"]
    frame = CompiledFunction(model, "model", fullgraph=True, mode="max-autotune")
    assert all(torch.equal(frame(x), model(x)) for _ in range(4)) and len(measured) == 4


@pytest.mark.parametrize("sizes", [(33, 40, 70), (5, 9, 7), (3, 5000, 20), (1, 64, 300), (2, 3, 4)])
def test_products_with_epilogues(opencl, sizes):
    def function(x, w, b, y):
        found = x @ w + b, (x @ w + b).relu(), (y + torch.mm(x, w)).relu_() * 2, (x @ w).relu()
        return *found, F.linear(x, w.t(), b).relu(), (x @ w.t().t() + y[:1]).relu()

    m, k, n = sizes
    frame = CompiledFunction(function, "f", fullgraph=True)
    x, w, b, y = torch.randn(m, k), torch.randn(k, n), torch.randn(n), torch.randn(m, n)
    y[0, 0] = float("nan")
    for _ in range(4):
        for found, want in zip(frame(x, w, b, y), function(x, w, b, y), strict=True):
            torch.testing.assert_close(found, want, rtol=0, atol=0, equal_nan=True)
    assert frame.replays == 2


@pytest.mark.parametrize("batch", [1, 3])
def test_convolutions_share_a_launch_with_clamps(opencl, batch):
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(inplace=True), torch.nn.Conv2d(8, 8, 3, groups=8),
        torch.nn.ReLU6(), torch.nn.ConvTranspose2d(8, 4, 2, stride=2), torch.nn.ReLU(),
    )  # fmt: skip
    alone = torch.nn.Sequential(layers[0], layers[2], layers[4])
    counts = []
    with torch.no_grad():
        for model in (layers, alone):
            frame = CompiledFunction(model, "model", fullgraph=True)
            for _ in range(4):
                x = torch.randn(batch, 3, 9, 8) * 3
                assert torch.equal(frame(x), model(x))
            ((variant,),) = frame.variants.values()
            counts.append(len(variant.replay.forward.__globals__["launches"]._launches.launches))
    assert counts[0] == counts[1]


def test_in_place_writes_to_temporaries_are_fused(opencl):
    def function(x, y):
        t = x.exp()
        t[1:] = 2.0
        z = x @ y
        z.relu_()
        z += 1
        z.mul_(y)
        return z.tanh_(), t.sqrt_()

    frame = CompiledFunction(function, "f", fullgraph=True)
    for _ in range(4):
        x, y = torch.randn(40, 40), torch.randn(40, 40)
        assert all(same(a, b) for a, b in zip(frame(x, y), function(x, y), strict=True))
    ((variant,),) = frame.variants.values()
    launches = variant.replay.forward.__globals__["launches"]._launches.launches
    assert len(launches) == 5  # exp, the assignment; the product with relu, the sum with what follows, and the root


def test_what_kernels_make_at_their_first_call_does_not_split_a_sequence(device, monkeypatch):
    """A convolution with a folded batch norm has a bias, so its offset table is not that of the recorded call."""
    sequences = []

    def split(sequence, place):
        raise AssertionError(f"{sequence.program.steps[place].name} needs the host")

    monkeypatch.setattr(LaunchSequence, "__init__", _and_append(LaunchSequence.__init__, sequences))
    monkeypatch.setattr(LaunchSequence, "_split_around_host_step", split)
    module = nn.Sequential(nn.Conv2d(3, 5, 3, bias=False), nn.BatchNorm2d(5), nn.ReLU(), nn.Conv2d(5, 7, 3, stride=2))
    module = torch.onnx.load(
        torch.onnx.export(module.cpu().eval(), (torch.randn(1, 3, 19, 17, device="cpu"),)).to_bytes()
    )
    module, x = module.to(device), torch.randn(1, 3, 19, 17)
    with torch.no_grad():
        want = module(x)
        for _ in range(7):
            torch.testing.assert_close(module(x), want, rtol=1e-5, atol=1e-5)
    assert all(sequence._launches is not None for sequence in sequences)
    assert len(sequences) == (torch.device(device).type != "cpu")


def _and_append(run, found):
    def call(self, *args):
        run(self, *args)
        found.append(self)

    return call


def test_kernels_around_a_step_on_the_host_are_recorded():
    """The first call runs kernel by kernel, the second finds the step that needs the host and records the others."""
    recorded, recording = [], []

    def on_the_host(x):
        if recording:
            raise UnrecordableError("needs the host")
        return x - 3

    class Table:
        device = SimpleNamespace(index=0)

        def __getattr__(self, name):
            return getattr(torch.zeros(1, device="cpu")._tl_kernels, name)

        @property
        def backend(self):
            return self

        def record_launches(self, index, steps, given, mode):
            recording.append(True)
            try:
                steps(*given)
            finally:
                recording.clear()
            recorded.append([step.name for step in steps.program.steps])
            return SimpleNamespace(run=lambda given: steps(*given))

    kernels = {"add": lambda x: x + 1, "double": lambda x: x * 2, "host": on_the_host, "square": lambda x: x * x}
    steps = [Step(name, run, (Slot(k),), {}, Slot(k + 1)) for k, (name, run) in enumerate(kernels.items())]
    sequence = LaunchSequence(Program(steps, [0], {}, [1, 4]), Table(), "launches")
    for k in range(4):
        added, squared = sequence(np.full(2, float(k)))
        assert added.tolist() == [k + 1] * 2 and squared.tolist() == [(2 * k - 1) ** 2] * 2
    assert recorded == [["add", "double"], ["square"]]
