"""Loaded modules without gradients are replayed with their tensors as constants, and equal calls without that."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import threading
import types

import numpy as np
import pytest

import torchlite as torch
from tests.graph_models import MODELS
from torchlite._dynamo.compiled_function import COMPILED_FUNCTIONS
from torchlite._dynamo.dynamic_shapes import CALLS_BEFORE_CAPTURE
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


@pytest.mark.parametrize(("seconds", "wanted"), [(0.0, CALLS_BEFORE_CAPTURE), (0.03, CALLS_BEFORE_CAPTURE), (0.25, 2)])
def test_long_calls_of_a_size_are_recorded_after_fewer_of_them(monkeypatch, seconds, wanted):
    """A server's joined call may take as long as all calls of a short program before its capture."""
    network = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    loaded = through_file("torchscript", network.eval(), torch.randn(1, 3))
    clock = [0.0]

    def thread_time():
        clock[0] += seconds  # between the two reads of a call
        return clock[0]

    with torch.no_grad():
        for _ in range(5):
            loaded(torch.randn(1, 3))
        monkeypatch.setattr("torchlite._dynamo.inference_function.time.thread_time", thread_time)
        x, before, calls = torch.randn(8, 3), replays(loaded), 0
        while replays(loaded) == before:
            torch.testing.assert_close(loaded(x), network(x))
            calls += 1
            assert calls < 2 * CALLS_BEFORE_CAPTURE
    assert calls == wanted + 3  # two are recorded, and the next one is replayed


def test_sizes_share_the_weights_that_programs_compute():
    """Folded and reordered weights of several sizes are the same arrays."""
    network = nn.Sequential(
        nn.Conv2d(3, 24, 3), nn.BatchNorm2d(24), nn.ReLU(), nn.Conv2d(24, 32, 3), nn.BatchNorm2d(32)
    )
    loaded = through_file("torchscript", network.eval(), torch.randn(1, 3, 20, 20))
    sizes = [torch.randn(1, 3, 20, n) for n in (20, 24)]
    with torch.no_grad():
        wanted = [loaded(x) for x in sizes]
        for x, want in zip(sizes, wanted, strict=True):
            for _ in range(CALLS_BEFORE_CAPTURE + 4):
                torch.testing.assert_close(loaded(x), want, rtol=1e-4, atol=1e-5)
    constants = []
    for found in function_of(loaded).variants.values():
        for variant in found:
            held = gc_reachable_arrays(variant.replay.forward)
            constants.append({id(array) for array in held if array.nbytes >= 1 << 14})
    assert len(constants) == 2 and constants[0] and constants[0] == constants[1]


def gc_reachable_arrays(function):
    """The row-major arrays that a function's globals reach."""
    found, seen, waiting = [], set(), list(function.__globals__.items())
    waiting = [value for name, value in waiting if name != "__builtins__"]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, (type, types.ModuleType)):
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            found.append(value)
        elif isinstance(value, types.FunctionType):
            waiting += [cell.cell_contents for cell in value.__closure__ or ()]
        else:
            waiting += gc.get_referents(value)
    return found


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


def test_half_precision_is_computed_in_float32(device):
    """Results have the program's dtype, and are nearer to those of float32 than eager mode's."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 4, 3), nn.Softmax(1)).eval()
    x = torch.randn(2, 3, 12, 12)
    want = module(x)
    half = copy.deepcopy(module).half()
    found = through_file("torchscript", half, (x.half(),)).to(device)
    x = x.half().to(device)
    with torch.no_grad():
        eager = found(x).cpu()
        for _ in range(5):
            got = found(x).cpu()
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


@pytest.mark.parametrize("format", ["torchscript", "onnx"])
def test_random_numbers_are_drawn_anew(format, device):
    class Noise(nn.Module):
        def forward(self, x):
            return x + torch.rand_like(x)

    found = through_file(format, Noise(), (torch.zeros(8),)).to(device)
    x = torch.zeros(8, device=device)
    with torch.no_grad():
        torch.manual_seed(3)
        got = [found(x) for _ in range(6)]
        torch.manual_seed(3)
        assert all(torch.equal(value, torch.rand(8, device=device)) for value in got)
    assert replays(found) > 0


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


# -- scripts that Python runs ----------------------------------------------------------------------


class Scripted(nn.Module):
    """A module for `torch.jit.script` with helpers, attributes, a branch on an attribute, and layers."""

    scale: float

    def __init__(self):
        super().__init__()
        self.body, self.drop, self.scale, self.mirrors = Small(), nn.Dropout(0.5), 0.5, False
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.GELU()])

    def forward(self, x):
        x = self.drop(self.body(x)) * self.scale
        for layer in self.layers:
            x = layer(x)
        if self.mirrors:
            x = -x
        return self.shift(x)

    def shift(self, x):
        return x + 1


MADE = {
    "script": torch.jit.script,
    "trace": lambda module: torch.jit.trace(module, (torch.randn(1, 2, 4, 4),)),
    "freeze": lambda module: torch.jit.freeze(torch.jit.script(module)),
    "optimize_for_inference": lambda module: torch.jit.optimize_for_inference(torch.jit.script(module)),
}


@pytest.mark.parametrize("make", MADE)
def test_programs_made_in_this_process(make):
    module = Scripted().eval()
    made = MADE[make](module)
    x = torch.randn(1, 2, 4, 4)
    with torch.no_grad():
        want = module(x)
        for _ in range(5):
            torch.testing.assert_close(made(x), want, rtol=1e-4, atol=1e-5)
    assert replays(made) > 0, function_of(made).reasons
    text = steps_of(made)
    assert "_batch_norm_eval" not in text and "1e-05" not in text


@pytest.mark.parametrize("make", ["script", "trace"])
def test_programs_made_in_this_process_see_changes(make):
    module = Scripted().eval()
    made = MADE[make](module)
    x = torch.randn(1, 2, 4, 4)
    with torch.no_grad():
        for _ in range(4):
            made(x)
        for change in (
            lambda: module.body.body[0].weight.data.mul_(2),
            lambda: module.layers[0].weight.add_(1),
            lambda: made.load_state_dict({n: value * 1.5 for n, value in made.state_dict().items()}),
            lambda: module.double() and made.double(),
        ):
            change()
            given = x.to(module.layers[0].weight.dtype)
            for _ in range(4):
                torch.testing.assert_close(made(given), module(given), rtol=1e-4, atol=1e-5)
    made.layers[0].weight.requires_grad_(True)
    made(given).sum().backward()
    assert made.layers[0].weight.grad is not None


def test_attributes_of_scripts():
    """Values of attributes belong to what is checked, and so does the mode."""
    made = torch.jit.script(Scripted().eval())
    x = torch.randn(1, 2, 4, 4)
    with torch.no_grad():
        for _ in range(4):
            first = made(x)
        made.scale = 0.0
        assert not torch.equal(made(x), first)
        made.scale = 0.5
        made.mirrors = True
        for _ in range(4):
            torch.testing.assert_close(made(x), 2 - first)
        made.mirrors = False
        made.train()
        torch.manual_seed(0)
        assert any(not torch.allclose(made(x), first) for _ in range(8))
        made.eval()


def test_script_switch():
    made = torch.jit.script(Scripted().eval())
    x = torch.randn(1, 2, 4, 4)
    with torch.no_grad(), torch.jit.optimized_execution(False):
        for _ in range(5):
            made(x)
    assert replays(made) == 0


def test_scripts_in_scripts_are_one_program():
    made = torch.jit.script(nn.Sequential(torch.jit.script(Scripted().eval()), nn.Linear(2, 2)).eval())
    x = torch.randn(1, 2, 4, 4)
    with torch.no_grad():
        for _ in range(5):
            made(x)
    assert replays(made) > 0 and function_of(made[0]) is None


class Counting(nn.Module):
    """Writes an attribute of its own."""

    calls: int

    def __init__(self):
        super().__init__()
        self.calls, self.weight = 0, nn.Parameter(torch.ones(2))

    def forward(self, x):
        self.calls += 1
        return x * self.weight + self.calls


def test_scripts_that_count():
    made = torch.jit.script(Counting())
    with torch.no_grad():
        for number in range(1, 12):
            assert torch.equal(made(torch.zeros(2)), torch.full((2,), float(number))) and made.calls == number


class Remembers(nn.Module):
    """Keeps a tensor in an attribute and appends to a list."""

    def __init__(self):
        super().__init__()
        self.last = torch.zeros(2)
        self.sizes = [0]

    def forward(self, x):
        out = x + self.last
        self.last = x
        self.sizes.append(len(self.sizes))
        return out


def test_scripts_that_keep_values():
    made = torch.jit.script(Remembers())
    with torch.no_grad():
        before = torch.zeros(2)
        for number in range(1, 9):
            x = torch.full((2,), float(number))
            assert torch.equal(made(x), x + before)
            before = x
    assert made.sizes == list(range(9))


class Speaking(nn.Module):
    def forward(self, x):
        print("called")
        if bool(x.sum() > 0):
            return x + 1
        return x - 1


def test_scripts_that_print(capsys):
    made = torch.jit.script(Speaking())
    with torch.no_grad():
        for sign in (1, 1, 1, -1, -1, -1, 1):
            assert torch.equal(made(torch.full((2,), float(sign))), torch.full((2,), 2.0 * sign))
    assert capsys.readouterr().out == "called\n" * 7


class Choosing(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        if bool(x.sum() > 0):
            return x + self.weight
        return x - self.weight


def test_scripts_that_branch_on_elements():
    made = torch.jit.script(Choosing())
    with torch.no_grad():
        for sign in (1, 1, 1, 1, -1, 1, -1, -1, -1, -1, 1):
            x = torch.full((2,), float(sign))
            assert torch.equal(made(x), x + sign)
    assert replays(made) > 0


def test_hooks_of_parts_of_scripts():
    made = torch.jit.script(Scripted().eval())
    x, calls = torch.randn(1, 2, 4, 4), []
    with torch.no_grad():
        for _ in range(4):
            made(x)
        made.layers[0].register_forward_hook(lambda *_: calls.append(1))
        made(x)
        made(x)
    assert len(calls) == 2


def test_state_that_changes_before_each_call():
    """A module whose buffer is replaced before each call is not recorded each time."""
    found = through_file("torchscript", Small().eval(), (torch.randn(1, 2, 4, 4),))
    x = torch.randn(1, 2, 4, 4)
    name, buffer = next((name, buffer) for name, buffer in found.named_buffers() if "mean" in name)
    owner = found.get_submodule(name.rpartition(".")[0])
    with torch.no_grad():
        for _ in range(60):
            owner._buffers["running_mean"] = buffer.clone()
            found(x)
    assert function_of(found).gave_up


class Unrolled(nn.Module):
    def forward(self, x):
        for _ in range(40):
            x = x * 0.5 + 1
        return x


def test_long_programs_wait(monkeypatch):
    """A program of many kernels is recorded only after several calls, and one of too many never."""
    from torchlite._dynamo import inference_function

    x = torch.randn(3)
    for most, served in ((100, True), (50, False)):
        monkeypatch.setattr(inference_function, "_SHORT_STEPS", 30)
        monkeypatch.setattr(inference_function, "_MAX_STEPS", most)
        monkeypatch.setattr(inference_function, "_CALLS_BEFORE_LONG_PROGRAMS", 5)
        found = through_file("torchscript", Unrolled(), (x,))
        counts = []
        with torch.no_grad():
            for _ in range(12):
                torch.testing.assert_close(found(x), Unrolled()(x))
                counts.append(replays(found))
                if len(counts) == 4:
                    why = f"it runs more than 30 kernels: such a program is recorded after {5} more calls"
                    assert function_of(found).postponed == why
        assert counts[8] == 0 and (counts[-1] > 0) is served
        assert not function_of(found).postponed or not served
        assert bool(function_of(found).reasons) is not served


class Decoder(nn.Module):
    """One step of a decoder, whose keys and number of steps are arguments that it writes."""

    def __init__(self):
        super().__init__()
        self.weight, self.project = nn.Parameter(torch.rand(8) + 0.5), nn.Linear(8, 8)

    def forward(self, x, keys, length):
        x = self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
        keys.index_copy_(1, torch.arange(1) + length, self.project(x))
        before = keys.sum(1)
        length.add_(1)
        return torch.tanh(x @ keys.transpose(1, 2)) * 2 + 1, before, length.clone()


@pytest.mark.parametrize("with_views", [False, True])
def test_a_call_that_writes_its_arguments_is_optimized(with_views):
    torch.manual_seed(0)
    model = Decoder().eval()
    earlier = set(COMPILED_FUNCTIONS)
    compiled = torch.compile(model)
    states = []
    for function in (model, compiled):
        generator = torch.Generator().manual_seed(1)
        keys, length = torch.zeros(2, 6, 16)[..., ::2] if with_views else torch.zeros(2, 6, 8), torch.zeros(1).long()
        with torch.no_grad():
            outs = [function(torch.randn(2, 1, 8, generator=generator), keys, length) for _ in range(6)]
        states.append((outs, keys, length))
    torch.testing.assert_close(states[0], states[1], rtol=1e-5, atol=1e-6)
    texts = [
        variant.replay.forward.text
        for found in set(COMPILED_FUNCTIONS) - earlier
        for variants in found.variants.values()
        for variant in variants
    ]
    assert len(texts) == 1 and "_rms_norm(" in texts[0] and "index_copy_(" in texts[0]
