"""Programs meant to break a capture by arguments that change and memory that they share.

Each gives eager's results and side effects, call by call.
"""

from __future__ import annotations

import collections
import dataclasses
import gc
import types

import torchlite as torch
from torchlite import nn

from .program_tables import ProgramTable

PROGRAMS = ProgramTable()
program = PROGRAMS.program


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


test_compiled_programs_match_eager = PROGRAMS.make_test()
