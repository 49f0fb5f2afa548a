"""Loaded modules without gradients are replayed with their tensors as constants, and equal calls without that."""

from __future__ import annotations

import copy
import io
import pickle
import threading

import numpy as np
import pytest

import torchlite as torch
from tests.graph_models import MODELS
from torchlite._dynamo.compiled_function import COMPILED_FUNCTIONS
from torchlite._dynamo.inference_function import InferenceFunction

nn = torch.nn
FORMATS = ("pt2", "torchscript", "onnx")


def through_file(format, module, inputs):
    """The module, written to a file's bytes and loaded."""
    held = io.BytesIO()
    if format == "onnx":
        return torch.onnx.load(torch.onnx.export(module, inputs).to_bytes())
    if format == "pt2":
        torch.export.save(torch.export.export(module, inputs), held)
    else:
        torch.jit.save(torch.jit.trace(module, inputs, check_trace=False), held)
    held.seek(0)
    return torch.export.load(held).module() if format == "pt2" else torch.jit.load(held)


def function_of(module):
    """The InferenceFunction of a module, None before its second call without gradients."""
    found = [f for f in COMPILED_FUNCTIONS if isinstance(f, InferenceFunction) and f.module() is module]
    return found[0] if found else None


def replays(module):
    found = function_of(module)
    return 0 if found is None else found.replays


def steps_of(module):
    """The names of the kernels that a module's replay calls."""
    (variant,) = (v for found in function_of(module).variants.values() for v in found if v.replay is not None)
    return variant.replay.forward.text


def leaves(value):
    return torch.utils._pytree.tree_leaves(value)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2))
        self.body[1].running_mean.uniform_(-1, 1)
        self.body[1].running_var.uniform_(0.5, 2)

    def forward(self, x):
        return self.body(x)


@pytest.fixture(params=FORMATS)
def loaded(request, device):
    module = Small().to(device).eval()
    return through_file(request.param, module, (torch.randn(1, 2, 4, 4, device=device),)).to(device)


@pytest.fixture
def x(device):
    return torch.randn(1, 2, 4, 4, device=device)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::torchlite.jit.TracerWarning")
def test_networks_are_replayed(name, format):
    module, inputs = MODELS[name].make(torch).eval(), MODELS[name].inputs(torch)
    found = through_file(format, module, inputs)
    others = [x + 0.1 * torch.randn_like(x) if x.is_floating_point() else x for x in inputs]
    with torch.no_grad():
        for _ in range(4):
            found(*inputs)
        want, got = leaves(module(*others)), leaves(found(*others))
    assert replays(found) > 0, function_of(found).reasons
    for a, b in zip(want, got, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=2e-6)


def test_later_passes_do_not_cut_bound_chains(monkeypatch):
    """A kernel of one elementwise op, bound to whole shapes, is in no group that runs in blocks."""
    from torchlite_backends.numpy import NumpyBackend

    calls = []

    def bind_chain(self, shape, given, steps, outs, dtypes):
        def run(x, y):
            assert (x.shape, y.shape) == tuple(given)
            calls.append(shape)
            return x + y

        return run

    monkeypatch.setattr(NumpyBackend, "chain_serves", lambda self, name, operands, dtypes: name == "add")
    monkeypatch.setattr(NumpyBackend, "bind_chain", bind_chain)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = torch.nn.Parameter(torch.randn(64))

        def forward(self, x):
            return torch.nn.functional.gelu(x + self.bias)

    module, x = Net().eval(), torch.randn(64, 64, 64)
    found = through_file("onnx", module, (x,))
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(found(x), module(x), rtol=1e-5, atol=1e-6)
    assert replays(found) > 0 and calls


def test_batch_norms_are_folded(loaded, x):
    with torch.no_grad():
        for _ in range(4):
            loaded(x)
    text = steps_of(loaded)
    assert "_batch_norm_eval" not in text and "convolution" in text or "_fused_conv_bn" in text


def test_first_call_is_not_recorded(loaded, x):
    with torch.no_grad():
        loaded(x)
    assert function_of(loaded) is None


def test_with_gradients_it_runs_as_before(loaded, x):
    with torch.no_grad():
        for _ in range(4):
            loaded(x)
    before = replays(loaded)
    x.requires_grad_()
    loaded(x).sum().backward()
    assert x.grad is not None and replays(loaded) == before


def test_written_tensor(loaded, x):
    """An in-place change of a weight counts in the next call."""
    with torch.no_grad():
        for _ in range(4):
            first = loaded(x)
        bias = next(p for p in (*loaded.parameters(), *loaded.buffers()) if p.shape == (2,))
        bias.add_(1.0)
        for _ in range(5):
            torch.testing.assert_close(loaded(x), first + 1)
        assert replays(loaded) > 0


def test_replaced_state(loaded, x):
    with torch.no_grad():
        for _ in range(4):
            first = loaded(x)
        state = {name: value.clone() for name, value in loaded.state_dict().items()}
        (name,) = (n for n, value in state.items() if value.shape == (2,))
        loaded.load_state_dict({**state, name: state[name] + 1})
        torch.testing.assert_close(loaded(x), first + 1)


@pytest.mark.parametrize("format", ["pt2", "torchscript"])
def test_dtype_changes(format, device, x):
    loaded = through_file(format, Small().eval(), (torch.randn(1, 2, 4, 4),)).to(device)
    with torch.no_grad():
        for _ in range(4):
            first = loaded(x)
        loaded.double()
        for _ in range(4):
            got = loaded(x.double())
    assert got.dtype == torch.float64
    torch.testing.assert_close(got, first.double(), rtol=1e-4, atol=1e-5)


def test_other_sizes(device):
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh()).to(device)
    x = torch.randn(2, 3, device=device)
    batch = torch.export.Dim("batch")
    program = torch.export.export(module, (x,), dynamic_shapes=({0: batch},))
    found = program.module()
    with torch.no_grad():
        for count in (*[2] * 4, *range(2, 20), *[7] * 20):
            x = torch.randn(count, 3, device=device)
            torch.testing.assert_close(found(x), module(x))


def test_results_are_new_memory(loaded, x):
    with torch.no_grad():
        for _ in range(4):
            first = loaded(x)
        kept = first.clone()
        loaded(x + 1)
        assert torch.equal(first, kept)
        first.zero_()
        torch.testing.assert_close(loaded(x), kept)


def test_inference_mode(loaded, x):
    with torch.no_grad():
        want = loaded(x)
    with torch.inference_mode():
        for _ in range(5):
            got = loaded(x)
    assert got.is_inference()
    torch.testing.assert_close(got, want)


def test_hooks_of_submodules(device):
    """A hook that is registered later runs."""
    found = through_file("torchscript", Small().eval(), (torch.randn(1, 2, 4, 4),)).to(device)
    x, calls = torch.randn(1, 2, 4, 4, device=device), []
    with torch.no_grad():
        for _ in range(4):
            found(x)
        found.register_forward_hook(lambda *_: calls.append(1))
        found(x)
        found(x)
    assert len(calls) == 2


def test_switches(loaded, x):
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):
        for _ in range(5):
            loaded(x)
    assert replays(loaded) == 0
    with torch.no_grad(), torch.jit.optimized_execution(False):
        for _ in range(5):
            loaded(x)
    assert replays(loaded) == 0


def test_copies(loaded, x):
    with torch.no_grad():
        for _ in range(4):
            want = loaded(x)
        other = copy.deepcopy(loaded)
        for _ in range(4):
            torch.testing.assert_close(other(x), want)
        for value in (*other.parameters(), *other.buffers()):
            value.zero_()
        torch.testing.assert_close(loaded(x), want)


def test_pickled(device, x):
    found = through_file("onnx", Small().eval(), (torch.randn(1, 2, 4, 4),)).to(device)
    with torch.no_grad():
        for _ in range(4):
            want = found(x)
        other = pickle.loads(pickle.dumps(found))
        for _ in range(4):
            torch.testing.assert_close(other(x), want)


def test_numpy_inputs():
    found = through_file("onnx", Small().eval(), (torch.randn(1, 2, 4, 4),))
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 4)).astype("f4")
    with torch.no_grad():
        want = found(torch.from_numpy(x))
        for _ in range(5):
            torch.testing.assert_close(found(x), want)


def test_module_that_keeps_state(device):
    """A program that writes its buffers runs as before."""

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            self.count.add_(1)
            return x + self.count

    found = through_file("pt2", Counter(), (torch.zeros(1),)).to(device)
    x = torch.zeros(1, device=device)
    with torch.no_grad():
        assert [found(x).item() for _ in range(6)] == [1, 2, 3, 4, 5, 6]


def test_module_that_returns_its_tensor(device):
    class Weight(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x + 1, self.weight

    found = through_file("torchscript", Weight(), (torch.zeros(2),)).to(device)
    x = torch.zeros(2, device=device)
    with torch.no_grad():
        for _ in range(5):
            got, weight = found(x)
            assert weight is found.weight and torch.equal(got, x + 1)


def test_branches_by_values(device):
    """A script's `if` decides anew in each call."""

    class Branches(nn.Module):
        def forward(self, x):
            if bool(x.sum() > 0):
                return x + 1
            return x - 1

    held = io.BytesIO()
    torch.jit.save(torch.jit.script(Branches()), held)
    held.seek(0)
    found = torch.jit.load(held).to(device)
    with torch.no_grad():
        for sign in (1, 1, 1, 1, -1, 1, -1, -1, -1, -1, 1):
            x = torch.full((2,), float(sign), device=device)
            assert torch.equal(found(x), x + sign)


def test_threads(loaded, x):
    with torch.no_grad():
        want = loaded(x)
    failures = []

    def run():
        with torch.no_grad():
            for _ in range(30):
                if not torch.allclose(loaded(x), want, atol=1e-5):
                    failures.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_memory_is_freed_with_the_module(x):
    import gc
    import weakref

    found = through_file("torchscript", Small().eval(), (torch.randn(1, 2, 4, 4),))
    x = torch.randn(1, 2, 4, 4)
    with torch.no_grad():
        for _ in range(4):
            found(x)
    gone = weakref.ref(found)
    del found
    gc.collect()
    assert gone() is None


def test_half_precision_is_computed_in_float32():
    """Results have the program's dtype, and are nearer to those of float32 than eager mode's."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 4, 3), nn.Softmax(1)).eval()
    x = torch.randn(2, 3, 12, 12)
    want = module(x)
    half = copy.deepcopy(module).half()
    found = through_file("torchscript", half, (x.half(),))
    with torch.no_grad():
        eager = found(x.half())
        for _ in range(4):
            got = found(x.half())
    assert replays(found) > 0 and got.dtype == torch.float16
    assert (got - want).abs().max() <= (eager - want).abs().max()
    torch.testing.assert_close(got.float(), want, rtol=1e-3, atol=1e-3)


def test_casts_through_half_precision_round():
    class Rounded(nn.Module):
        def forward(self, x):
            return (x * 3).half().float() + 1

    found = through_file("torchscript", Rounded(), (torch.randn(4),))
    x = torch.randn(100)
    with torch.no_grad():
        for _ in range(4):
            got = found(x)
    assert torch.equal(got, (x * 3).half().float() + 1) and replays(found) > 0


def test_channels_last_inputs_and_permuted_views():
    class Permuted(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 4, 1)

        def forward(self, x):
            x = torch.relu(self.first(x.permute(0, 3, 1, 2)))
            x = nn.functional.max_pool2d(x, 2)
            return torch.sigmoid(self.second(x)).permute(0, 2, 3, 1)

    module = Permuted().eval()
    found = through_file("pt2", module, (torch.randn(2, 8, 8, 3),))
    x = torch.randn(2, 8, 8, 3)
    with torch.no_grad():
        for _ in range(4):
            got = found(x)
        torch.testing.assert_close(got, module(x), rtol=1e-5, atol=1e-6)
    assert replays(found) > 0


def test_random_numbers_are_drawn_anew():
    class Noise(nn.Module):
        def forward(self, x):
            return x + torch.rand_like(x)

    found = through_file("torchscript", Noise(), (torch.zeros(8),))
    x = torch.zeros(8)
    with torch.no_grad():
        torch.manual_seed(3)
        got = [found(x) for _ in range(6)]
        torch.manual_seed(3)
        assert all(torch.equal(value, torch.rand(8)) for value in got)


class Remembering(nn.Module):
    """Keeps a tensor and a number for its next call."""

    state: torch.Tensor
    calls: int

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((2,), 0.5))
        self.state, self.calls = torch.zeros(2), 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state = self.state * self.weight + x
        self.calls = 1
        return self.state * 2

    @torch.jit.export
    def reset(self):
        self.state = torch.zeros(2)


def test_script_that_keeps_values_in_attributes(device):
    held = io.BytesIO()
    torch.jit.save(torch.jit.script(Remembering()), held)
    held.seek(0)
    found = torch.jit.load(held).to(device)
    found.state = found.state.to(device)
    want = torch.zeros(2, device=device)
    with torch.no_grad():
        for number in range(8):
            x = torch.full((2,), float(number), device=device)
            want = want * 0.5 + x
            got = found(x)
            assert torch.equal(got, want * 2) and torch.equal(found.state, want)
        assert replays(found) > 0 and found.calls == 1
        found.state = torch.ones(2, device=device)
        assert torch.equal(found(x), (torch.ones(2, device=device) * 0.5 + x) * 2)
        other = found.copy()
        found(x)
        assert not torch.equal(other.state, found.state)
