"""Programs meant to break a capture: each gives eager's results and side effects, call by call."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import itertools
import math
import random
import threading
import time
import types
import warnings

import numpy as np
import pytest

import torchlite as torch
from torchlite import nn

PROGRAMS = {}


def program(make):
    """Put a program into the table: `make()` gives (function, log), and `log()` is what else it did."""
    PROGRAMS[make.__name__] = make
    return make


def nothing():
    return None


COUNTER = 0
SCALE = 2.0
REGISTER: list = []


@program
def prints():
    return (lambda x: (print("called", tuple(x.shape)), x + 1)[1]), nothing


@program
def prints_a_tensor():
    def f(x):
        print(x.sum())
        return x * 2

    return f, nothing


@program
def appends_to_a_list():
    seen = []

    def f(x):
        seen.append(len(seen))
        return x * len(seen)

    return f, lambda: list(seen)


@program
def appends_tensors():
    seen = []

    def f(x):
        seen.append(x * 2)
        return x + 1

    return f, lambda: [t.tolist() for t in seen]


@program
def fills_a_dictionary():
    cache: dict = {}

    def f(x):
        cache[len(cache)] = x.shape
        return x + len(cache)

    return f, lambda: dict(cache)


@program
def counts_in_a_global():
    def f(x):
        global COUNTER
        COUNTER += 1
        return x + COUNTER

    globals()["COUNTER"] = 0
    return f, lambda: COUNTER


@program
def counts_in_a_closure():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n

    return f, lambda: n


@program
def counts_on_itself():
    def f(x):
        f.calls += 1
        return x - f.calls

    f.calls = 0
    return f, lambda: f.calls


@program
def counts_in_a_module():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    net = Counting()
    return net, lambda: net.calls


@program
def counts_in_a_class():
    class Shared:
        calls = 0

    def f(x):
        Shared.calls += 1
        return x + Shared.calls

    return f, lambda: Shared.calls


@program
def branches_on_an_item():
    def f(x):
        return x * 2 if x.sum().item() > 0 else x - 1

    return f, nothing


@program
def branches_on_a_tensor():
    def f(x):
        if x.sum() > 0:
            return x.relu()
        return -x

    return f, nothing


@program
def loops_as_long_as_elements_say():
    def f(x):
        count = 0
        while x.abs().max() > 0.5:
            x, count = x * 0.5, count + 1
        return x, count

    return f, nothing


@program
def returns_an_item():
    return (lambda x: (x * 2, x.sum().item())), nothing


@program
def multiplies_by_an_item():
    return (lambda x: x * x.max().item()), nothing


@program
def indexes_by_a_tensor():
    return (lambda x: x[x.argmax(0)[0]]), nothing


@program
def masks():
    return (lambda x: x[x > 0].sum() + x.nonzero().shape[0]), nothing


@program
def numpy_in_the_middle():
    return (lambda x: torch.from_numpy(np.sort(x.numpy())) * 2), nothing


@program
def numpy_on_a_tensor():
    return (lambda x: torch.as_tensor(np.tanh(x)) + 1), nothing


@program
def numpy_draws():
    np.random.seed(0)  # noqa: NPY002
    return (lambda x: x + float(np.random.rand())), nothing  # noqa: NPY002


@program
def python_draws():
    random.seed(0)
    return (lambda x: x + random.random()), nothing


@program
def reads_the_clock():
    return (lambda x: (x + 1, time.perf_counter() > 0)), nothing


@program
def draws():
    return (lambda x: x + torch.rand(2) + torch.nn.functional.dropout(x, 0.5)), nothing


@program
def seeds():
    def f(x):
        torch.manual_seed(3)
        return x + torch.rand(2)

    return f, lambda: torch.rand(1).item()


@program
def alternates():
    turns = itertools.cycle([1.0, 2.0])
    return (lambda x: x * next(turns)), nothing


@program
def pops():
    numbers = [5.0, 4.0, 3.0, 2.0, 1.0, 0.5, 0.25]
    return (lambda x: x * numbers.pop()), lambda: list(numbers)


@program
def reads_a_list_that_grows():
    REGISTER.clear()

    def f(x):
        return x + len(REGISTER)

    return f, lambda: REGISTER.append(1)


@program
def reads_a_global_that_changes():
    def f(x):
        return x * SCALE

    def change():
        global SCALE
        SCALE += 1.0

    globals()["SCALE"] = 2.0
    return f, change


@program
def reads_a_closure_that_changes():
    factor = 1.0

    def f(x):
        return x * factor

    def change():
        nonlocal factor
        factor += 0.5

    return f, change


@program
def reads_an_attribute_that_changes():
    box = types.SimpleNamespace(factor=1.0)

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 1

        def forward(self, x):
            return x * self.factor + box.factor

    net = Scaled()

    def change():
        net.factor = net.factor + 1 if net.factor != 2 else 2.0
        box.factor += 1

    return net, change


@program
def one_and_true_are_two_things():
    class Flag(nn.Module):
        def __init__(self):
            super().__init__()
            self.flag = 1

        def forward(self, x):
            return x * (10 if self.flag is True else 1)

    net = Flag()

    def change():
        net.flag = True if net.flag is not True else 1

    return net, change


@program
def training_and_evaluation():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.BatchNorm1d(2))

    def change():
        net.train(not net.training)

    return net, change


@program
def writes_a_buffer():
    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(2))

        def forward(self, x):
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            return x - self.mean

    net = Mean()
    return net, lambda: (net.mean.tolist(), net.mean._version)


@program
def replaces_a_buffer():
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("last", torch.zeros(2, 2))

        def forward(self, x):
            before, self.last = self.last, x * 1
            return x - before

    net = Last()
    return net, lambda: net.last.tolist()


@program
def writes_its_argument():
    def f(x):
        x.add_(1)
        x[0] = 7.0
        return x

    return f, nothing


@program
def writes_after_reading():
    total = torch.zeros(())

    def f(x):
        total.add_(x.sum())
        if total > 2:
            total.zero_()
        return x + total

    return f, lambda: total.item()


@program
def raises():
    def f(x):
        if x.sum() > 0:
            raise ValueError("positive")
        return x + 1

    return f, nothing


@program
def catches():
    def f(x):
        try:
            return x @ torch.ones(3, 3)
        except RuntimeError:
            return x @ torch.ones(2, 3)

    return f, nothing


@program
def generators():
    def parts(x):
        for i in range(x.shape[0]):
            yield x[i] * i

    return (lambda x: sum(parts(x))), nothing


@program
def gives_a_generator():
    return (lambda x: (x[i] for i in range(2))), nothing


@program
def warns():
    def f(x):
        warnings.warn("careful", UserWarning, stacklevel=1)
        return x + 1

    return f, nothing


@program
def changing_shapes():
    shapes = itertools.count(1)

    def f(x):
        return x.reshape(-1).repeat(2)

    return (lambda x: f(x.repeat(next(shapes), 1))), nothing


@program
def changing_numbers():
    return torch.compile(lambda x, n=3: x * n), nothing


@program
def defines_functions():
    def f(x):
        def inner(y):
            return y * x.shape[0]

        return functools.reduce(lambda a, b: a + b, [inner(x), inner(x * 2)])

    return f, nothing


@program
def comprehensions_and_zips():
    def f(x):
        found = {str(i): a * b for i, (a, b) in enumerate(zip(x, x.t(), strict=True))}
        return sorted(found), torch.stack([found[k] for k in sorted(found)])

    return f, nothing


@program
def a_dataclass_of_its_own():
    @dataclasses.dataclass
    class Settings:
        scale: float = 2.0
        names: tuple = ("a", "b")

    settings = Settings()

    def f(x):
        return x * settings.scale + len(settings.names)

    def change():
        settings.scale += 1

    return f, change


@program
def constants_that_are_written():
    def f(x):
        total = torch.tensor([0.0, 1.0])
        total += x[0]
        total[0] = 5.0
        return total, torch.tensor(3) + x.long(), total.view(2)

    return f, nothing


@program
def context_managers():
    def f(x):
        with torch.no_grad():
            y = x * 2
        with contextlib.suppress(KeyError):
            y = y + math.sqrt(4.0)
        return y

    return f, nothing


@program
def writes_a_file_like():
    out = io.StringIO()

    def f(x):
        out.write("x")
        return x + 1

    return f, out.getvalue


@program
def in_a_thread():
    def f(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(x * 2))
        thread.start()
        thread.join()
        return found[0]

    return f, nothing


@program
def prints_in_a_thread():
    seen = []

    def f(x):
        thread = threading.Thread(target=lambda: seen.append(1))
        thread.start()
        thread.join()
        return x + 1

    return f, lambda: list(seen)


@program
def turns_gradients_off():
    def f(x):
        torch.set_grad_enabled(not torch.is_grad_enabled())
        return x + 1

    def log():
        before = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        return before

    return f, log


@program
def sets_the_threads():
    before = torch.get_num_threads()

    def f(x):
        torch.set_num_threads(before + 1 if torch.get_num_threads() == before else before)
        return x + 1

    def log():
        found = torch.get_num_threads() - before
        torch.set_num_threads(before)
        return found

    return f, log


@program
def sets_an_attribute_of_a_tensor():
    def f(x):
        x.tag = getattr(x, "tag", 0) + 1
        return x + x.tag

    return f, nothing


@program
def registers_a_hook():
    seen = []

    def f(x):
        y = x * 2
        if y.requires_grad:
            y.register_hook(lambda g: seen.append(1))
        return y

    return f, lambda: list(seen)


def plain(result):
    """A result in a form that can be compared."""
    if isinstance(result, torch.Tensor):
        return ("tensor", result.dtype, tuple(result.shape), result.requires_grad, result.tolist())
    if isinstance(result, (list, tuple)):
        return [plain(item) for item in result]
    if isinstance(result, types.GeneratorType):
        return [plain(item) for item in result]
    return result


def history(function, log, calls=7):
    """Return the outcomes of consecutive calls with several arguments."""
    found = []
    for i in range(calls):
        torch.manual_seed(i)
        x = torch.randn(2, 2) + (0.6 if i % 3 else -0.6)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = plain(function(x))
            except Exception as error:
                result = type(error), str(error)
        told = [str(w.message) for w in caught if "runs eagerly" not in str(w.message)]
        found.append((result, out.getvalue(), told, plain(x), plain(log())))
    return found


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_compiled_programs_match_eager(name):
    histories = []
    for compiled in (lambda function: function, torch.compile):
        torch.manual_seed(0)
        function, log = PROGRAMS[name]()
        histories.append(history(compiled(function), log))
    assert histories[1] == histories[0]


def test_there_are_enough():
    assert len(PROGRAMS) >= 40
