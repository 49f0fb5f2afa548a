"""Programs meant to break a capture by objects, closures and threads that keep state.

Each gives eager's results and side effects, call by call.
"""

from __future__ import annotations

import gc
import threading
import types
import weakref

import torchlite as torch
from torchlite import nn

from .program_tables import ProgramTable

PROGRAMS = ProgramTable()
program = PROGRAMS.program


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


test_compiled_programs_match_eager = PROGRAMS.make_test()
