"""Programs meant to break a capture by gradients, modes and settings.

Each gives eager's results and side effects, call by call.
"""

from __future__ import annotations

import contextlib

import torchlite as torch
from torchlite import nn

from .program_tables import ProgramTable

PROGRAMS = ProgramTable()
program = PROGRAMS.program


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


test_compiled_programs_match_eager = PROGRAMS.make_test()
