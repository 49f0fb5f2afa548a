"""Programs meant to break a capture by what they share: arguments, aliases, gradients, attributes, objects, threads.
Each gives eager's results and side effects, call by call."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import gc
import threading
import types
import warnings
import weakref

import pytest

import torchlite as torch
from torchlite import nn

PROGRAMS = {}


def program(make):
    """Put a program into the table: `make(compile)` gives a function of (the number of the call, a tensor) that is
    called, and whose result says everything.
    """
    PROGRAMS[make.__name__] = make
    return make


def shown(value):
    """A result in a form that can be compared."""
    if isinstance(value, torch.Tensor):
        return ("tensor", str(value.dtype), tuple(value.shape), value.stride(), value.requires_grad, value.is_leaf,
                value._version, value.is_inference(), value.tolist())  # fmt: skip
    if isinstance(value, dict):
        return type(value).__name__, [(shown(k), shown(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [shown(item) for item in value]
    if dataclasses.is_dataclass(value):
        return type(value).__name__, shown(vars(value))
    return type(value).__name__, str(value)


# -- arguments ---------------------------------------------------------------------------------


@program
def a_list_among_arguments_that_grows(compile):
    f = compile(lambda x, seen: (seen.append(x * 2), x + 1)[1])

    def run(i, x):
        seen = []
        return f(x, seen), seen

    return run


@program
def a_dictionary_among_arguments_that_is_filled(compile):
    def f(x, found):
        found["double"] = x * 2
        return x + 1

    f = compile(f)

    def run(i, x):
        found = {"a": 1}
        return f(x, found), found

    return run


@program
def a_list_among_arguments_that_shrinks(compile):
    f = compile(lambda parts: parts.pop() * len(parts))

    def run(i, x):
        parts = [x, x * 2, x * 3]
        return f(parts), parts

    return run


@program
def keyword_arguments_in_another_order(compile):
    f = compile(lambda x, **named: [*named, sum(named.values()) * x])
    return lambda i, x: f(x, a=x, b=x * 2) if i % 2 else f(x, b=x, a=x * 2)


@program
def dictionaries_in_another_order(compile):
    f = compile(lambda batch: list(batch) + [next(iter(batch.values())) * 2])
    return lambda i, x: f({"a": x, "b": x + 1} if i % 3 else {"b": x + 1, "a": x})


@dataclasses.dataclass
class Batch:
    x: object
    scale: float = 2.0
    notes: list = dataclasses.field(default_factory=list)


@program
def dataclasses_as_arguments(compile):
    f = compile(lambda batch: batch.x * batch.scale)
    return lambda i, x: f(Batch(x, 2.0 if i % 3 else 3.0))


@program
def dataclasses_as_results(compile):
    f = compile(lambda x: Batch(x * 2, x.sum().item()))
    return lambda i, x: f(x)


@program
def a_dataclass_that_is_written(compile):
    def f(batch):
        batch.x = batch.x * 2
        batch.notes.append(1)
        return batch.x + 1

    f = compile(f)

    def run(i, x):
        batch = Batch(x)
        return f(batch), batch

    return run


@program
def defaults_that_change(compile):
    def f(x, seen=[1.0]):
        seen.append(seen[-1] + 1)
        return x * seen[-1]

    compiled = compile(f)
    return lambda i, x: (compiled(x), list(f.__defaults__[0]))


@program
def named_tuples(compile):
    pair = collections.namedtuple("pair", "a b")
    f = compile(lambda p: pair(p.b * 2, p.a))
    return lambda i, x: f(pair(x, x + 1))


@program
def simple_namespaces(compile):
    f = compile(lambda o: o.x * o.k)
    return lambda i, x: f(types.SimpleNamespace(x=x, k=i % 2))


@program
def ordered_dictionaries_as_results(compile):
    f = compile(lambda x: collections.OrderedDict(a=x, b=x * 2))
    return lambda i, x: f(x)


@program
def numbers_that_count(compile):
    f = compile(lambda x, i: x * i + (1 if i > 4 else 0))
    return lambda i, x: f(x, i)


@program
def floats_that_are_equal_but_not_the_same(compile):
    f = compile(lambda x, z: x / z if z != 0 else x.copysign(torch.tensor(z)))
    return lambda i, x: f(x, (0.0, -0.0)[i % 2])


# -- aliases -----------------------------------------------------------------------------------


@program
def one_tensor_twice(compile):
    def f(a, b):
        a.add_(1)
        return a * b

    f = compile(f)
    return lambda i, x: (f(x, x) if i % 3 else f(x, x.clone()), x)


@program
def views_of_one_another(compile):
    def f(a, b):
        a.mul_(2)
        return a.sum() + b

    f = compile(f)
    return lambda i, x: (f(x[0], x) if i % 3 else f(x[0].clone(), x), x)


@program
def overlapping_slices(compile):
    def f(a, b):
        a += 1
        return b * 2, a

    f = compile(f)

    def run(i, x):
        flat = x.reshape(-1).clone()
        return f(flat[:3], flat[1:]) if i % 2 else f(flat[:2], flat[2:])

    return run


@program
def a_parameter_as_argument(compile):
    torch.manual_seed(0)
    net = nn.Linear(2, 2)
    f = compile(lambda x, w: net(x) + w.sum())
    return lambda i, x: f(x, net.weight if i % 3 else net.weight.detach().clone())


@program
def results_that_are_arguments(compile):
    f = compile(lambda x: (x, x.view(-1), x * 1))

    def run(i, x):
        a, b, c = f(x)
        b.add_(5)
        return a is x, a, b, c, x

    return run


@program
def results_that_are_changed_between_calls(compile):
    scale = torch.ones(2)
    f = compile(lambda x: (x * scale, scale))

    def run(i, x):
        found, same = f(x)
        found.zero_()
        same.add_(1)
        return found, scale

    return run


@program
def results_that_share_memory(compile):
    def f(x):
        y = x * 2
        return y[0], y[1], y

    f = compile(f)

    def run(i, x):
        a, b, c = f(x)
        a.add_(1)
        return a, b, c

    return run


@program
def constants_that_are_returned_and_changed(compile):
    f = compile(lambda x: (x + 1, torch.zeros(2), torch.tensor([1.0, 2.0])))

    def run(i, x):
        found = f(x)
        for t in found:
            t.add_(1)
        return found

    return run


@program
def memory_that_is_used_again(compile):
    f = compile(lambda x: (x * 2).relu())

    def run(i, x):
        found = [f(x + k) for k in range(3)]
        del x
        gc.collect()
        return found

    return run


@program
def expanded_arguments(compile):
    f = compile(lambda x: x * 2 + x.sum(0))
    return lambda i, x: f(x[:1].expand(2, 2) if i % 2 else x)


@program
def data_that_is_swapped(compile):
    torch.manual_seed(0)
    net = nn.Linear(2, 2)
    f = compile(net)

    def run(i, x):
        if i == 4:
            net.weight.data = torch.ones(2, 2)
        if i == 6:
            net.weight = nn.Parameter(torch.zeros(2, 2))
        return f(x)

    return run


# -- gradients ---------------------------------------------------------------------------------


@program
def requires_grad_inside(compile):
    def f(x):
        x.requires_grad_()
        return (x * x).sum()

    f = compile(f)

    def run(i, x):
        out = f(x)
        out.backward()
        return out, x, x.grad

    return run


@program
def gradients_are_read(compile):
    w = torch.ones(2, requires_grad=True)
    f = compile(lambda x: x * (0 if w.grad is None else w.grad.sum()))

    def run(i, x):
        w.grad = None if i % 2 else torch.full((2,), float(i))
        return f(x)

    return run


@program
def graphs_that_are_kept(compile):
    w = torch.ones(2, requires_grad=True)

    def f(x):
        loss = (w * x).sin().sum()
        loss.backward(retain_graph=True)
        loss.backward()
        return loss.detach()

    f = compile(f)
    return lambda i, x: (f(x), w.grad)


@program
def backward_twice_outside(compile):
    w = torch.ones(2, requires_grad=True)
    f = compile(lambda x: (w * x).sin().sum())

    def run(i, x):
        loss = f(x)
        loss.backward(retain_graph=True)
        loss.backward()
        try:
            loss.backward()
        except RuntimeError as error:
            return w.grad, str(error)[:40]

    return run


@program
def second_derivatives(compile):
    f = compile(lambda x: x.pow(3).sum())

    def run(i, x):
        x.requires_grad_()
        (g,) = torch.autograd.grad(f(x), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        return g, h

    return run


@program
def gradients_of_what_is_no_leaf(compile):
    f = compile(lambda y: y.sin())

    def run(i, x):
        y = x.requires_grad_() * 2
        y.retain_grad()
        f(y).sum().backward()
        return x.grad, y.grad

    return run


@program
def parts_that_want_no_gradient_any_more(compile):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def f(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    f = compile(f)

    def run(i, x):
        if i in (4, 7):
            net[0].requires_grad_(i == 7)
        return f(x), [(p, p.grad) for p in net.parameters()]

    return run


@program
def gradients_that_are_set_by_hand(compile):
    w = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([w], lr=0.1)

    def f(x):
        w.grad = x.sum(0)
        optimizer.step()
        return w * 1

    f = compile(f)
    return lambda i, x: (f(x), w.grad, w)


@program
def rates_that_are_read(compile):
    w = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([w], lr=0.1)
    f = compile(lambda x: x * optimizer.param_groups[0]["lr"])

    def run(i, x):
        optimizer.param_groups[0]["lr"] = 0.1 if i < 5 else 0.5
        return f(x)

    return run


@program
def rates_that_are_set_inside(compile):
    w = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([w], lr=0.1)

    def f(x):
        for group in optimizer.param_groups:
            group["lr"] = 0.1
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return w * 1

    f = compile(f)

    def run(i, x):
        if i == 5:
            optimizer.param_groups[0]["lr"] = 3.0
        return f(x)

    return run


@program
def the_state_of_an_optimizer(compile):
    w = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([w], lr=0.1)

    def f(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return optimizer.state[w]["step"] * x

    f = compile(f)
    return lambda i, x: (f(x), w)


@program
def a_custom_function_that_counts(compile):
    class Count(torch.autograd.Function):
        calls = [0, 0]

        @staticmethod
        def forward(ctx, x):
            Count.calls[0] += 1
            return x * 2

        @staticmethod
        def backward(ctx, g):
            Count.calls[1] += 1
            return g * 2

    f = compile(lambda x: Count.apply(x))

    def run(i, x):
        x.requires_grad_()
        f(x).sum().backward()
        return x.grad, list(Count.calls)

    return run


@program
def a_backward_that_counts(compile):
    calls = []

    class Count(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            calls.append(len(calls))
            return g * 2

    f = compile(lambda x: Count.apply(x) * 3)

    def run(i, x):
        x.requires_grad_()
        f(x).sum().backward()
        return x.grad, list(calls)

    return run


@program
def hooks_that_count(compile):
    calls = []

    def f(x):
        y = x * 2
        y.register_hook(lambda g: calls.append(float(g.sum())))
        return y * 3

    f = compile(f)

    def run(i, x):
        x.requires_grad_()
        f(x).sum().backward()
        return x.grad, list(calls)

    return run


@program
def saved_tensors_that_are_counted(compile):
    calls = []

    def f(x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (calls.append(1), t)[1]):
            return (x.sin() * x).sum()

    f = compile(f)

    def run(i, x):
        x.requires_grad_()
        f(x).backward()
        return x.grad, list(calls)

    return run


@program
def hooks_around_backward_of_modules(compile):
    calls = []
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    net[1].register_full_backward_hook(lambda module, gi, go: calls.append(1))
    f = compile(net)

    def run(i, x):
        f(x).sum().backward()
        return net[0].weight.grad, list(calls)

    return run


@program
def a_gradient_that_nobody_can_take(compile):
    def f(x):
        y = x.exp()
        y.add_(1)
        return y

    f = compile(f)

    def run(i, x):
        x.requires_grad_()
        try:
            f(x).sum().backward()
        except RuntimeError as error:
            return str(error)[:60]

    return run


# -- modes and settings ------------------------------------------------------------------------


@program
def inference_inside(compile):
    def f(x):
        with torch.inference_mode():
            return x * 2

    f = compile(f)

    def run(i, x):
        found = f(x)
        return found.is_inference(), found.tolist()

    return run


@program
def inference_around(compile):
    f = compile(lambda x: x * 2)

    def run(i, x):
        with torch.inference_mode() if i % 2 else contextlib.nullcontext():
            found = f(x)
        return found.is_inference(), found.tolist()

    return run


@program
def autocast_around(compile):
    torch.manual_seed(0)
    net = nn.Linear(2, 2)
    f = compile(net)

    def run(i, x):
        with torch.autocast("cpu", torch.bfloat16, enabled=i % 3 > 0):
            found = f(x)
            again = f(x)
        found.float().sum().backward()
        return found, again, net.weight.grad

    return run


@program
def autocast_with_other_dtypes(compile):
    f = compile(lambda x: x @ x)

    def run(i, x):
        with torch.autocast("cpu", (torch.bfloat16, torch.float16)[i % 2]):
            return f(x)

    return run


@program
def default_dtypes(compile):
    f = compile(lambda x: torch.ones(2) + x)

    def run(i, x):
        torch.set_default_dtype(torch.float64 if i % 2 else torch.float32)
        try:
            return f(x)
        finally:
            torch.set_default_dtype(torch.float32)

    return run


@program
def random_states_inside(compile):
    def f(x):
        state = torch.get_rng_state()
        a = torch.rand(2)
        torch.set_rng_state(state)
        return a, torch.rand(2), x + torch.rand(2)

    f = compile(f)

    def run(i, x):
        torch.manual_seed(i)
        return f(x), torch.rand(1)

    return run


@program
def a_fork_of_random_numbers(compile):
    def f(x):
        with torch.random.fork_rng():
            a = torch.rand(2)
        return a, torch.rand(2)

    f = compile(f)

    def run(i, x):
        torch.manual_seed(i)
        return f(x), torch.rand(1)

    return run


@program
def a_generator_of_its_own(compile):
    generator = torch.Generator().manual_seed(0)
    f = compile(lambda x: x + torch.rand(2, generator=generator))

    def run(i, x):
        if i == 4:
            generator.manual_seed(0)
        return f(x), generator.get_state().sum()

    return run


# -- objects -----------------------------------------------------------------------------------


@program
def an_error_in_the_middle(compile):
    total = torch.zeros(2)

    def f(x, fails):
        total.add_(1)
        if fails:
            raise ValueError("no")
        return x + total

    f = compile(f)

    def run(i, x):
        try:
            return f(x, i == 4), total
        except ValueError as error:
            return str(error), total

    return run


@program
def an_error_that_elements_decide(compile):
    total = torch.zeros(2)

    def f(x):
        if x.sum() > 0:
            raise ValueError("no")
        total.add_(1)
        return x + total

    f = compile(f)

    def run(i, x):
        try:
            return f(x if i % 4 == 3 else -x.abs()), total
        except ValueError as error:
            return str(error), total

    return run


@program
def closures_that_change(compile):
    factor = 1.0

    def f(x):
        return x * factor

    compiled = compile(f)

    def run(i, x):
        nonlocal factor
        factor = 1.0 if i < 4 else 2.0
        return compiled(x)

    return run


@program
def functions_that_are_replaced(compile):
    holder = types.SimpleNamespace(act=torch.relu)
    f = compile(lambda x: holder.act(x))

    def run(i, x):
        holder.act = torch.relu if i < 4 else torch.tanh
        return f(x)

    return run


@program
def methods_that_are_replaced(compile):
    class Net(nn.Module):
        def forward(self, x):
            return self.act(x)

        def act(self, x):
            return x * 2

    net = Net()
    f = compile(net)

    def run(i, x):
        if i == 4:
            net.act = lambda x: x * 3
        if i == 6:
            Net.act = lambda self, x: x * 4
            del net.act
        return f(x)

    return run


@program
def weak_references(compile):
    kept = torch.ones(2)
    reference = weakref.ref(kept)
    f = compile(lambda x: x * (1 if reference() is None else reference()))

    def run(i, x):
        nonlocal kept
        if i == 5:
            kept = None
            gc.collect()
        return f(x), reference() is None

    return run


@program
def recursion(compile):
    def f(x, n):
        return x if n == 0 else f(x * 2, n - 1) + 1

    compiled = compile(f)
    return lambda i, x: compiled(x, 3)


@program
def a_compiled_function_that_calls_itself(compile):
    @compile
    def f(x, n):
        return x if n == 0 else f(x * 2, n - 1) + 1

    return lambda i, x: f(x, i % 3)


@program
def a_counter_object(compile):
    class Counter:
        def __init__(self):
            self.n = 0

        def __call__(self, x):
            self.n += 1
            return x * self.n

    counter = Counter()
    f = compile(counter)
    return lambda i, x: (f(x), counter.n)


@program
def properties_and_slots(compile):
    class Box:
        __slots__ = ("value",)

        @property
        def double(self):
            return self.value * 2

    box = Box()
    f = compile(lambda x: x * box.double)

    def run(i, x):
        box.value = 1 if i < 4 else 5
        return f(x)

    return run


@program
def getattr_with_a_name(compile):
    class Box:
        a, b = 1.0, 2.0

    names = ["a"]
    f = compile(lambda x: x * getattr(Box, names[0]))

    def run(i, x):
        names[0] = "ab"[i % 2]
        Box.b = 3.0 if i > 4 else 2.0
        return f(x)

    return run


@program
def dynamic_getattr_hooks(compile):
    class Lazy:
        def __init__(self):
            self.calls = 0

        def __getattr__(self, name):
            self.__dict__["calls"] += 1
            return self.__dict__["calls"]

    lazy = Lazy()
    f = compile(lambda x: x * lazy.anything)
    return lambda i, x: (f(x), lazy.calls)


@program
def iterators_that_live_on(compile):
    source = iter(range(100))
    f = compile(lambda x: x * next(source))
    return lambda i, x: f(x)


@program
def a_cache_of_results(compile):
    cache = {}

    def f(x):
        key = tuple(x.shape)
        if key not in cache:
            cache[key] = torch.full(key, 2.0)
        return x * cache[key]

    f = compile(f)

    def run(i, x):
        if i == 5:
            cache[(2, 2)] = torch.full((2, 2), 3.0)
        return f(x if i % 3 else x[0]), len(cache)

    return run


@program
def tensors_in_attributes_that_are_swapped(compile):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.ones(2)

        def forward(self, x):
            return x * self.table

    net = Net()
    f = compile(net)

    def run(i, x):
        net.table = torch.full((2,), float(i // 2))
        return f(x)

    return run


@program
def global_registries(compile):
    f = compile(lambda x: x * len(REGISTERED))

    def run(i, x):
        if i % 3 == 2:
            REGISTERED.append(i)
        return f(x)

    REGISTERED.clear()
    return run


REGISTERED: list = []


@program
def views_kept_from_before(compile):
    base = torch.zeros(4)
    view = base[:2]

    def f(x):
        base.add_(1)
        return view * x

    f = compile(f)
    return lambda i, x: (f(x), view, base)


@program
def shapes_of_the_last_batch(compile):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    f = compile(net)

    def run(i, x):
        x = x.repeat(1 + i % 3, 1)
        return f(x), net[1].running_mean

    return run


@program
def threads_at_once(compile):
    torch.manual_seed(0)
    net = nn.Linear(2, 2)
    f = compile(lambda x: net(x).tanh())

    def run(i, x):
        found = [None] * 3

        def work(k):
            found[k] = f(x + k).tolist()

        threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    return run


@program
def numbers_that_are_read_and_used(compile):
    kept = []

    def f(x):
        value = x.sum().item()
        kept.append(value)
        scaled = x * value
        return scaled, f"{value:.3f}", int(value), [value, -value], type(value) is float

    f = compile(f)
    return lambda i, x: (f(x), list(kept))


@program
def numbers_that_are_read_late(compile):
    total = torch.zeros(())

    def f(x):
        total.add_(x.sum())
        value = total.item()
        total.mul_(2)
        return value, {"v": [value]}, total.item()

    f = compile(f)
    return lambda i, x: (f(x), total)


@program
def numbers_that_decide_late(compile):
    total = torch.zeros(())

    def f(x):
        total.add_(x.abs().sum())
        if total.item() > 5:
            total.zero_()
        return x + total

    f = compile(f)
    return lambda i, x: (f(x), total)


@program
def counts_that_are_returned(compile):
    def f(x):
        total = (x > 0).sum()
        return x * 2, total.item(), (x > 0).any().item()

    f = compile(f)
    return lambda i, x: f(x)


@program
def places_that_elements_give(compile):
    f = compile(lambda x: x.sum(int((x[0, 0] > 0).item())) + x.select(0, x.argmax().item() % 2))
    return lambda i, x: f(x)


@program
def a_message_of_a_number(compile):
    f = compile(lambda x: f"loss {x.sum().item():.2f}")
    return lambda i, x: f(x)


@program
def a_scheduler_that_is_read(compile):
    w = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([w], lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)

    def f(x):
        optimizer.step()
        schedule.step()
        return x * schedule.get_last_lr()[0]

    f = compile(f)
    return lambda i, x: f(x)


def history(make, compile, calls=9):
    """Return the outcomes of consecutive calls."""
    torch.manual_seed(0)
    run = make(compile)
    found = []
    for i in range(calls):
        torch.manual_seed(i)
        x = torch.randn(2, 2) + (0.6 if i % 3 else -0.6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = run(i, x)
            except Exception as error:
                result = type(error), str(error)
        found.append((shown(result), shown(x)))
    return found


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_compiled_programs_match_eager(name):
    torch.compiler.reset()
    want = history(PROGRAMS[name], lambda f: f)
    assert history(PROGRAMS[name], torch.compile) == want
