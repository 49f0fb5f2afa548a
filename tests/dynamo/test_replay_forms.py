"""Compiled functions without gradients have the tensors of their state as constants, as long as nobody writes these."""

from __future__ import annotations

import copy
import io
import os
import pickle
import threading

import numpy as np
import pytest

import torchlite as torch
from torchlite._dynamo.compiled_function import COMPILED_FUNCTIONS

nn = torch.nn


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU())
        self.head = nn.Linear(12, 2)
        self.body[1].running_mean.uniform_(-1, 1)
        self.body[1].running_var.uniform_(0.5, 2)

    def forward(self, x):
        return torch.tanh(self.head(self.body(x).flatten(1)))


class Compiled:
    """A module, the same compiled, and the compiled function behind it."""

    def __init__(self, module):
        before = set(COMPILED_FUNCTIONS)
        self.module, self.compiled = module, torch.compile(module)
        (self.function,) = set(COMPILED_FUNCTIONS) - before

    def check(self, *inputs, times=1):
        """Compare results of both in several calls."""
        for _ in range(times):
            want, got = self.module(*inputs), self.compiled(*inputs)
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
            assert got.requires_grad == want.requires_grad

    def variant(self):
        (found,) = (v for variants in self.function.variants.values() for v in variants if v.forms is not None)
        return found

    def has_constants(self):
        found = self.variant().forms.specialized
        return found is not None and len(found.tensors.tensors) > 0

    def settle(self, *inputs):
        """Call until the tensors are constants."""
        for _ in range(2000):
            self.check(*inputs)
            if self.function.replays and self.has_constants():
                return
        raise AssertionError("the tensors did not become constants")


@pytest.fixture
def x(device):
    return torch.randn(1, 2, 4, 4, device=device)


@pytest.fixture
def both(device, x):
    torch.manual_seed(0)
    both = Compiled(Small().to(device).eval())
    with torch.no_grad():
        both.check(x, times=4)
    assert both.has_constants() and both.function.replays > 0
    return both


def write_in_place(module):
    module.body[0].weight.mul_(2)


def write_through_data(module):
    module.body[0].weight.data.mul_(2)


def replace_data(module):
    module.body[0].weight.data = module.body[0].weight * 2


def replace_data_and_write_it(module):
    new = module.body[0].weight.detach().clone()
    module.body[0].weight.data = new
    new.mul_(2)


def load_state(module):
    module.load_state_dict({name: value * 2 for name, value in module.state_dict().items()})


def assign_state(module):
    module.load_state_dict({name: value * 2 for name, value in module.state_dict().items()}, assign=True)


def replace_parameter(module):
    module.body[0].weight = nn.Parameter(module.body[0].weight * 2)


def write_buffer(module):
    module.body[1].running_mean.add_(1)


def write_a_view(module):
    module.body[0].weight[0].add_(1)


def keep_versions(module):
    with torch.autograd._unsafe_preserve_version_counter(module.body[0].weight):
        module.body[0].weight.add_(1)


def step_of_an_optimizer(module):
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    torch.optim.Adam(module.parameters(), lr=0.1).step()
    module.zero_grad()


def write_the_storage(module):
    storage = module.body[1].running_mean.untyped_storage()
    storage.copy_((module.body[1].running_mean + 1).untyped_storage())


CHANGES = (
    write_in_place, write_through_data, replace_data, replace_data_and_write_it, load_state, assign_state,
    replace_parameter, write_buffer, write_a_view, keep_versions, step_of_an_optimizer, write_the_storage,
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_changed_weights(both, x, change):
    with torch.no_grad():
        for _ in range(2):
            before = both.compiled(x)
            change(both.module)
            both.check(x, times=3)
            assert not torch.equal(both.compiled(x), before)
        both.check(x, times=40)


def test_an_alias_from_before(device, x):
    """A tensor that shares a weight's memory, made before the first call, is written after it."""
    module = Small().to(device).eval()
    aliases = [module.body[0].weight.data, module.body[1].running_var.detach()]
    both = Compiled(module)
    with torch.no_grad():
        both.settle(x)
        for alias in aliases:
            alias.mul_(2)
            both.check(x, times=2)


def test_a_parameter_made_of_a_tensor():
    source = torch.ones(2, 2)
    both = Compiled(nn.Linear(2, 2, bias=False))
    both.module.weight = nn.Parameter(source)
    x = torch.ones(1, 2)
    with torch.no_grad():
        both.settle(x)
        source.add_(1)
        both.check(x)


def test_numpy_views(x):
    """A tensor of which NumPy has an array is no constant any more: writes to the array have no count."""
    both = Compiled(Small().eval())
    x = torch.randn(1, 2, 4, 4)
    with torch.no_grad():
        both.check(x, times=5)
        array = both.module.body[1].running_mean.numpy()
        for _ in range(40):
            array += 0.5
            both.check(x)
        assert both.has_constants()  # the others


def test_tensors_of_numpy_arrays():
    array = np.ones((2, 2), np.float32)
    both = Compiled(nn.Linear(2, 2))
    both.module.weight.data = torch.from_numpy(array)
    x = torch.ones(1, 2)
    with torch.no_grad():
        for _ in range(30):
            array += 1
            both.check(x)


def test_shared_memory():
    """Other processes write without a count."""
    both = Compiled(Small().eval())
    x = torch.randn(1, 2, 4, 4)
    with torch.no_grad():
        both.check(x, times=4)
        both.module.share_memory()
        both.check(x, times=30)
        assert not both.has_constants()


def test_constants_come_back(both, x):
    with torch.no_grad():
        for _ in range(3):
            both.module.head.bias.add_(1)
            both.check(x)
            assert not both.has_constants()
            both.settle(x)


def test_batch_norms_are_folded(both, x):
    text = both.variant().replay.forward.text
    assert "_batch_norm_eval" not in text and "running" not in text
    line = next(line for line in text.splitlines() if "conv" in line)
    assert "1e-05" not in line


def test_the_general_form_reads_the_tensors(both, x):
    with torch.no_grad():
        both.module.head.bias.add_(1)
        both.check(x)
        replays = both.function.replays
        both.check(x)
        assert both.function.replays == replays + 1 and not both.has_constants()


def test_gradients(both, x):
    """A call with gradients has its own variant, and both go on to be replayed."""
    for _ in range(3):
        both.check(x)
        both.compiled(x).sum().backward()
        with torch.no_grad():
            both.check(x)
    assert both.module.head.weight.grad is not None
    want = both.module.head.weight.grad.clone()
    both.module.zero_grad()
    for _ in range(3):
        both.module(x).sum().backward()
    torch.testing.assert_close(both.module.head.weight.grad, want)


def test_parameters_without_gradients(device, x):
    """With all parameters frozen the tensors are constants in grad mode too, until one wants a gradient."""
    both = Compiled(Small().to(device).eval().requires_grad_(False))
    both.check(x, times=5)
    assert both.has_constants()
    both.module.head.weight.requires_grad_()
    both.check(x, times=4)
    both.compiled(x).sum().backward()
    assert both.module.head.weight.grad is not None


def test_modes_of_layers(device, x):
    """Batch norm in training mode writes its buffers; dropout draws."""
    module = nn.Sequential(Small(), nn.Dropout(0.5)).to(device)
    other = copy.deepcopy(module)
    both = torch.compile(module)
    with torch.no_grad():
        for training in (False, True, False, True, False):
            module.train(training), other.train(training)
            for seed in range(5):
                torch.manual_seed(seed)
                got = both(x)
                torch.manual_seed(seed)
                torch.testing.assert_close(got, other(x), rtol=1e-4, atol=1e-5)
        for name, value in module.state_dict().items():
            torch.testing.assert_close(value, other.state_dict()[name])


def test_dtypes(both, x):
    with torch.no_grad():
        both.module.double()
        both.check(x.double(), times=4)
        both.module.float()
        both.check(x, times=4)


def test_half_precision_rounds_at_the_end_only(x):
    module = Small().eval()
    x = torch.randn(1, 2, 4, 4)
    want = module(x)
    half = copy.deepcopy(module).half()
    compiled = torch.compile(half)
    with torch.no_grad():
        for _ in range(5):
            got = compiled(x.half())
        eager = half(x.half())
    assert got.dtype == torch.float16 and (got - want).abs().max() <= (eager - want).abs().max() + 1e-4


def test_autocast(device):
    both = Compiled(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device))
    x = torch.randn(3, 4, device=device)
    with torch.no_grad():
        for _ in range(4):
            with torch.autocast(x.device.type, dtype=torch.bfloat16):
                got, want = both.compiled(x), both.module(x)
            assert got.dtype == want.dtype == torch.bfloat16
            torch.testing.assert_close(got, want, rtol=0.03, atol=0.03)
            both.check(x)


def test_sizes(device):
    """Each size has its own constants, and a written weight counts in all."""
    both = Compiled(nn.Sequential(nn.Linear(3, 4), nn.Tanh()).to(device))
    with torch.no_grad():
        for count in (*[2] * 4, *range(2, 12), *[7] * 20, *[2, 7] * 4):
            both.check(torch.randn(count, 3, device=device))
        both.module[0].weight.data.add_(1)
        for count in (2, 7, 3, 2, 7):
            both.check(torch.randn(count, 3, device=device))


def test_results_are_new_memory(both, x):
    with torch.no_grad():
        first = both.compiled(x)
        kept = first.clone()
        both.compiled(x + 1)
        assert torch.equal(first, kept)
        first.zero_()
        torch.testing.assert_close(both.compiled(x), kept)


def test_a_returned_weight_is_no_constant(device):
    class Returning(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.other = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x * self.other, self.weight, self.weight[:1]

    module = Returning().to(device)
    compiled, x = torch.compile(module), torch.ones(2, device=device)
    with torch.no_grad():
        for number in range(6):
            out, weight, part = compiled(x)
            assert weight is module.weight and part.data_ptr() == weight.data_ptr()
            weight.add_(1)
            assert torch.equal(compiled(x)[2], module.weight[:1]) and torch.equal(out, module.other)


def test_a_written_buffer_is_no_constant(device):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(1))
            self.scale = nn.Parameter(torch.full((1,), 2.0))

        def forward(self, x):
            self.count.add_(1)
            return x + self.count * self.scale

    both = torch.compile(Counter().to(device))
    x = torch.zeros(1, device=device)
    with torch.no_grad():
        assert [both(x).item() for _ in range(6)] == [2, 4, 6, 8, 10, 12]
        both.count.zero_()
        assert [both(x).item() for _ in range(3)] == [2, 4, 6]


def test_arguments_in_the_memory_of_the_function_s_tensors(device):
    """A view of the written buffer, which the call must see changed, and one of the constant weight."""

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(2))
            self.scale = nn.Parameter(torch.full((2,), 2.0))

        def forward(self, x, y):
            self.total.add_(x * self.scale)
            return x + 1, y * self.total

    plain, module = Counter().to(device), Counter().to(device)
    both = torch.compile(module)
    with torch.no_grad():
        for kind in (None,) * 6 + ("total", "scale", None, "scale", "total", None):
            x = torch.tensor([1.0, -3.0], device=device)
            views = [x if kind is None else getattr(m, kind)[:] for m in (plain, module)]
            want, got = (f(view if kind == "total" else x, view) for f, view in zip((plain, both), views, strict=True))
            for a, b in zip((*want, plain.total, views[0]), (*got, module.total, views[1]), strict=True):
                torch.testing.assert_close(b, a)
            assert views[0]._version == views[1]._version and plain.total._version == module.total._version


@pytest.mark.parametrize("change", ["cell", "name", "builtin", "hook"])
def test_changed_reads(change):
    """A variable of a closure, names that functions of one module read, and a name that hides a builtin."""
    space = {"torch": torch, "first": 2.0, "second": 3.0, "__name__": "program"}
    exec("def double(x): return x * first + second\ndef size(x): return abs(x) - first", space)
    double, size, offset, module = space["double"], space["size"], 1.0, nn.Linear(2, 2)

    def total(x):
        return module(double(x) + size(x)) + offset

    both, x = torch.compile(total), torch.tensor([1.0, -2.0])
    with torch.no_grad():
        for _ in range(6):
            torch.testing.assert_close(both(x), total(x))
        if change == "cell":
            offset = 5.0
        elif change == "name":
            space["first"] = 4.0
        elif change == "builtin":
            space["abs"] = torch.exp
        else:
            module.register_forward_hook(lambda module, args, out: out * 2)
        for _ in range(3):
            torch.testing.assert_close(both(x), total(x))
        if change == "cell":
            del offset
            with pytest.raises(NameError, match="offset"):
                both(x)


def test_a_weight_as_argument(device):
    both = torch.compile(lambda module, weight: module(weight.mul_(2)).sum())
    module = nn.Linear(2, 2).to(device)
    with torch.no_grad():
        for _ in range(5):
            other = copy.deepcopy(module)
            want = other(other.weight.mul_(2)).sum()
            torch.testing.assert_close(both(module, module.weight), want)
            module.weight.div_(2)


def test_functions_with_modules(device, x):
    module = Small().to(device).eval()

    @torch.compile
    def predict(x):
        return torch.softmax(module(x), 1)

    with torch.inference_mode():
        for number in range(8):
            torch.testing.assert_close(predict(x), torch.softmax(module(x), 1), rtol=1e-4, atol=1e-5)
            if number == 5:
                module.head.weight.add_(1)


def test_elements_of_constants_are_no_reads(device):
    class Reading(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("power", torch.tensor([2]))

        def forward(self, x):
            return x ** self.power.item() if self.power > 0 else x

    both = Compiled(Reading().to(device))
    x = torch.arange(3.0, device=device)
    with torch.no_grad():
        both.check(x, times=5)
        assert "read" not in both.variant().replay.forward.text
        both.module.power.fill_(3)
        both.check(x, times=5)
        both.module.power.fill_(-1)
        both.check(x, times=5)


def test_hooks_of_submodules(both, x):
    calls = []
    with torch.no_grad():
        handle = both.module.body.register_forward_hook(lambda module, given, out: calls.append(1) or out + 1)
        both.check(x, times=2)
        assert len(calls) == 4
        handle.remove()
        both.check(x, times=4)
    assert len(calls) == 4


class Named(torch.Tensor):
    pass


@pytest.mark.filterwarnings("ignore:torch.compile")
def test_subclasses_as_inputs(x):
    both = Compiled(Small().eval())
    x = torch.randn(1, 2, 4, 4)
    with torch.no_grad():
        both.check(x, times=4)
        got = both.compiled(x.as_subclass(Named))
        assert type(got) is Named
        both.check(x)


def test_threads(both, x):
    with torch.no_grad():
        want = both.module(x)
    failures = []

    def run():
        with torch.no_grad():
            for _ in range(30):
                if not torch.allclose(both.compiled(x), want, atol=1e-5):
                    failures.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forks():
    both = Compiled(Small().eval())
    x = torch.randn(1, 2, 4, 4)
    with torch.no_grad():
        both.check(x, times=4)
        child = os.fork()
        if not child:
            code = 1
            try:
                both.check(x)
                both.module.head.bias.add_(1)
                both.check(x, times=12)
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        both.check(x)


def test_copies_and_pickles(both, x):
    with torch.no_grad():
        want = both.compiled(x)
        other = copy.deepcopy(both.compiled)
        for _ in range(4):
            torch.testing.assert_close(other(x), want, rtol=1e-4, atol=1e-5)
        other.head.bias.add_(1)
        torch.testing.assert_close(both.compiled(x), want)
        again = pickle.loads(pickle.dumps(both.compiled))
        held = io.BytesIO()
        torch.save(both.compiled, held)
        held.seek(0)
        for found in (again, torch.load(held, weights_only=False, map_location=x.device)):
            for _ in range(4):
                torch.testing.assert_close(found.to(x.device)(x), want, rtol=1e-4, atol=1e-5)


def test_memory_is_freed_with_the_module(x):
    import gc
    import weakref

    both = Compiled(Small().eval())
    with torch.no_grad():
        both.check(torch.randn(1, 2, 4, 4), times=4)
    gone = weakref.ref(both.module)
    del both
    gc.collect()
    assert gone() is None
