"""Programs that cannot be captured as a whole. Each factory returns a function of (4, 3) tensors and further tensors
whose elements and gradients are compared."""

from __future__ import annotations

import contextlib
import logging
import math

import numpy as np

import torchlite as torch
from torchlite import nn

F = nn.functional
PROGRAMS = {}


def program(factory):
    PROGRAMS[factory.__name__] = factory
    return factory


def weights(*shapes):
    return [torch.randn(*shape, requires_grad=True) for shape in shapes]


# -- reading elements and printing ----------------------------------------------------------------


@program
def print_item():
    (w,) = weights((3, 3))

    def f(x):
        y = (x @ w).relu()
        print("sum", y.sum().item())
        return (y.sin() * 2).sum()

    return f, [w]


@program
def print_tensor():
    def f(x):
        y = x * 2 + 1
        print(y.detach())
        return y.cos().sum()

    return f, []


@program
def print_first_and_last():
    def f(x):
        print("begin")
        y = x.exp() * x
        z = y - y.mean()
        print("end")
        return z

    return f, []


@program
def prints_between_every_op():
    def f(x):
        a = x * 3
        print(a.sum().item())
        b = a.sin()
        print(b.sum().item())
        c = b + a
        print(c.sum().item())
        return c

    return f, []


@program
def item_in_list():
    history = []
    (w,) = weights((3, 2))

    def f(x):
        loss = (x @ w).pow(2).mean()
        history.append(loss.item())
        print(len(history), history[-1])
        return loss * 2 + x.sum()

    return f, [w]


@program
def item_scales():
    def f(x):
        y = x.tanh()
        scale = y.abs().max().item()
        print(scale)
        z = y * scale
        return z.exp().sum()

    return f, []


@program
def tolist():
    def f(x):
        rows = (x * 2).sum(1).tolist()
        print([round(r, 3) for r in rows])
        return (x - 1) * (x + 1)

    return f, []


@program
def to_numpy():
    def f(x):
        y = (x.detach() * 2).numpy()
        total = float(np.linalg.norm(y))
        print(f"{total:.4f}")
        return (x * 2).sin()

    return f, []


@program
def numpy_and_back():
    def f(x):
        y = x.detach().sigmoid()
        z = torch.from_numpy(np.sort(y.numpy(), axis=1))
        return (x * z).relu() + 1

    return f, []


@program
def float_of_tensor():
    def f(x):
        y = x.abs() + 1
        print(float(y.sum()))
        return y.log().sum()

    return f, []


@program
def formatted():
    def f(x):
        y = x.square()
        message = f"mean {y.mean().item():.3f} of {x.shape[0]}"
        print(message)
        return y.sqrt() + len(message)

    return f, []


@program
def formatted_tensor():
    def f(x):
        y = x.floor()
        print(f"{y.sum()} and {y.dtype}")
        return x * y

    return f, []


@program
def nested_expression():
    (w,) = weights((3, 3))

    def f(x):
        return (x @ w).sin() * math.exp(min((x * 2).sum().item(), 1.0)) + (x + 1).cos()

    return f, [w]


@program
def two_items_in_one_call():
    def f(x):
        y = x * 2
        print(y.min().item(), y.max().item(), sep=" to ")
        return y / 3

    return f, []


@program
def item_returned_as_well():
    def f(x):
        y = x.sin() * 2
        value = y.sum().item()
        print(value)
        return y, value

    return f, []


# -- branches and loops on elements -----------------------------------------------------------------


@program
def branch_after_draw():
    def f(x):
        noise = torch.randn(4, 3)
        y = x + noise
        if y.sum() > 0:
            z = y * 2
        else:
            z = y.sin() - 1
        return z.exp()

    return f, []


@program
def branch_returns():
    def f(x):
        y = F.dropout(x, 0.5)
        if y.sum() > 0:
            return y * 2
        w = y - 1
        return w.cos()

    return f, []


@program
def elif_chain():
    def f(x):
        total = (x + torch.rand(4, 3)).sum()
        if total > 4:
            print("large")
            y = x * 4
        elif total > 0:
            print("middle")
            y = x * 2
        else:
            print("small")
            y = x
        return y + total

    return f, []


@program
def conditional_expression():
    def f(x):
        y = x + torch.rand(4, 3)
        z = y.sin() if y.mean() > 0.5 else y.cos()
        return z * 2

    return f, []


@program
def and_or():
    def f(x):
        y = x + torch.rand(4, 3)
        if y.sum() > 0 and y.max() > 1 or y.min() < -2:
            y = y * 2
        if not y.sum() > 3:
            y = y - 1
        return y.exp()

    return f, []


@program
def while_elements():
    def f(x):
        y = x + torch.rand(4, 3)
        turns = 0
        while y.abs().sum() < 100:
            y = y * 2
            turns += 1
        print(turns)
        return y.log1p().sum() if turns < 0 else y

    return f, []


@program
def while_with_break():
    def f(x):
        y = torch.rand(4, 3) + x.abs()
        while True:
            y = y * 1.5 + 0.1
            if y.mean() > 5:
                break
            if y.max() > 50:
                continue
            y = y + 1
        return y.sqrt()

    return f, []


@program
def for_with_print():
    (w,) = weights((3, 3))

    def f(x):
        for n in range(3):
            x = (x @ w).tanh() + n
            print(n, x.sum().item())
        return x * 2

    return f, [w]


@program
def for_else_and_break():
    def f(x):
        y = x.detach() + torch.rand(4, 3)
        for n in range(4):
            y = y + 0.5
            if y.sum() > 9:
                print("stop", n)
                break
        else:
            print("all")
            y = y * 3
        return y + x

    return f, []


@program
def assertion_on_elements():
    def f(x):
        y = x.abs() + torch.rand(4, 3)
        if not (y >= 0).all():
            raise AssertionError("negative")
        return y.sqrt()

    return f, []


@program
def comprehension_with_items():
    def f(x):
        y = x * 2
        values = [row.sum().item() for row in y]
        print(values)
        return y.sin() + sum(range(len(values)))

    return f, []


@program
def comprehension_of_tensors():
    def f(x):
        rows = [row * n for n, row in enumerate(x)]
        print(len(rows))
        return torch.stack([row.sin() for row in rows])

    return f, []


@program
def walrus():
    def f(x):
        y = x + torch.rand(4, 3)
        if (total := y.sum()) > 0:
            return y * total
        return y - total

    return f, []


# -- unknown objects and calls ----------------------------------------------------------------------


class Meter:
    __slots__ = ("values",)

    def __init__(self):
        self.values = []

    def add(self, value):
        self.values.append(value)


@program
def object_with_slots():
    meter = Meter()

    def f(x):
        y = x.exp()
        meter.add(y.sum().item())
        z = y / (1 + y)
        print(len(meter.values), meter.values[-1])
        return z

    return f, []


@program
def logger():
    log = logging.getLogger("programs_with_breaks")

    def f(x):
        y = x * 5
        log.debug("value %s", y)
        return y.sin().sum()

    return f, []


@program
def python_random_numbers():
    import random

    random.seed(3)

    def f(x):
        y = x * 2
        factor = random.choice([1.0, 2.0])
        return (y * factor).sin()

    return f, []


@program
def counter_in_closure():
    count = 0

    def f(x):
        nonlocal count
        y = x.sigmoid() * 2
        count += 1
        print(count)
        return y.cos() + y

    return f, []


TOTALS = {"calls": 0}


@program
def global_dictionary():
    TOTALS["calls"] = 0

    def f(x):
        y = x * 3 - 1
        TOTALS["calls"] += 1
        print(TOTALS["calls"])
        return y.relu().sum()

    return f, []


@program
def disabled_function():
    @torch.compiler.disable
    def aside(t):
        print("aside", t.sum().item())
        return t * 2

    def f(x):
        y = x.sin()
        z = aside(y)
        return z.exp() + y

    return f, []


@program
def marked_graph_break():
    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y.sin() * 2

    return f, []


@program
def dictionary_and_list_across():
    def f(x):
        parts = {"a": x * 2, "b": [x + 1, x - 1]}
        print(sorted(parts))
        parts["c"] = parts["a"] * parts["b"][0]
        print(len(parts))
        return parts["c"] + parts["b"][1]

    return f, []


@program
def list_that_grows():
    def f(x):
        found = []
        for n in range(3):
            x = x.sin() + n
            found.append(x)
            print(len(found))
        return torch.stack(found).sum(0)

    return f, []


# -- functions, closures, generators ----------------------------------------------------------------


def _helper_with_print(t, scale=2.0):
    u = t * scale
    print("helper", u.sum().item())
    return u.sin()


@program
def nested_call():
    def f(x):
        y = x + 1
        z = _helper_with_print(y) * 2
        return z.cos() + y

    return f, []


@program
def nested_call_twice():
    def f(x):
        y = _helper_with_print(x * 2, scale=0.5)
        return _helper_with_print(y + x).exp()

    return f, []


def _inner(t):
    t = t.relu() + 1
    print("inner", t.max().item())
    return t * 2


def _outer(t):
    t = _inner(t - 1) * 3
    return t.sin()


@program
def three_levels():
    def f(x):
        y = _outer(x * 2)
        return y + x

    return f, []


def _early(t):
    u = t + torch.rand(4, 3)
    if u.sum() > 0:
        return u * 2
    return u - 3


@program
def nested_early_return():
    def f(x):
        return _early(x).sin() + 1

    return f, []


@program
def local_function():
    (w,) = weights((3, 3))

    def f(x):
        def layer(t):
            return (t @ w).tanh()

        y = layer(x)
        print(y.sum().item())
        return layer(y) * 2

    return f, [w]


@program
def closure_over_rebound_variable():
    def f(x):
        scale = 2.0

        def grow(t):
            return t * scale

        y = grow(x)
        print(y.sum().item())
        scale = 3.0
        return grow(y) + 1

    return f, []


@program
def nonlocal_writer():
    def f(x):
        calls = 0

        def note(t):
            nonlocal calls
            calls += 1
            return t + calls

        y = note(x * 2)
        print(calls)
        y = note(y.sin())
        print(calls)
        return y * calls

    return f, []


@program
def generator():
    def rows(t):
        for row in t:
            yield row * 2

    def f(x):
        y = x.sin()
        total = 0
        for row in rows(y):
            total = total + row.sum()
            print(total.item())
        return y * total

    return f, []


@program
def generator_expression():
    def f(x):
        y = x * 2
        print(y.sum().item())
        return sum(row.sin().sum() for row in y) + y

    return f, []


@program
def lambda_break():
    return lambda x: (x * 2).sin() * (1 if print((x + 1).sum().item()) is None else 2), []


@program
def recursion():
    def f(x, depth=2):
        y = x.sin() * 2
        print(depth, y.sum().item())
        return f(y, depth - 1) + 1 if depth else y

    return f, []


@program
def keyword_and_default_arguments():
    def inner(t, /, a=1.0, *rest, b, **more):
        u = t * a + b
        print(u.sum().item(), len(rest), sorted(more))
        return u.sin()

    def f(x, *args, power=2, **kwargs):
        return inner(x**power, 2.0, 3, b=x.mean(), c=4) * 2

    return f, []


# -- with, try, exceptions ----------------------------------------------------------------------------


@program
def no_grad_around():
    (w,) = weights((3, 3))

    def f(x):
        y = x @ w
        with torch.no_grad():
            z = y.sin() * 2
            print(z.sum().item(), z.requires_grad)
            u = z + 1
        return y * u

    return f, [w]


@program
def enable_grad_within():
    @torch.no_grad()
    def f(x):
        y = x * 2
        print(y.requires_grad)
        with torch.enable_grad():
            z = x * 3
            print(z.requires_grad)
            z = z.sin()
        return z + y

    return f, []


@program
def autocast_around():
    (w,) = weights((3, 3))

    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ w
            print(y.dtype)
            z = y @ w.T
        return z.float().sin()

    return f, [w]


@program
def own_context_manager():
    @contextlib.contextmanager
    def section(name):
        print("enter", name)
        try:
            yield
        finally:
            print("leave", name)

    def f(x):
        y = x * 2
        with section("a"):
            y = y.sin() + 1
            with section("b"):
                y = y * y
        return y.cos()

    return f, []


@program
def try_finally():
    def f(x):
        y = x * 2
        try:
            y = y.sin()
            print("body", y.sum().item())
            y = y + 1
        finally:
            print("finally")
        return y * 2

    return f, []


@program
def try_return_finally():
    def f(x):
        try:
            y = x.sin() * 2
            print(y.sum().item())
            return y + 1
        finally:
            print("finally")

    return f, []


@program
def caught_exception():
    def f(x):
        y = x.exp()
        try:
            z = y * 2
            print("before")
            if z.sum() > 0:
                raise ValueError("positive")
            z = z * 3
        except ValueError as error:
            print("caught", error)
            z = z + 1
        else:
            print("else")
        return z.log()

    return f, []


@program
def variables_seen_by_handler():
    def f(x):
        y = x * 1
        try:
            y = y + 1
            z = y.sin()
            y = z * 2
            u = torch.cat([y, y[:, :2]])
            y = u + 1
        except RuntimeError:
            print("sizes", tuple(y.shape))
        print(y.sum().item())
        return y.cos()

    return f, []


@program
def raised_between_parts():
    calls = []

    def f(x):
        y = x * 2
        calls.append(len(calls))
        print("call", calls[-1])
        if calls[-1] % 2:
            raise KeyError(calls[-1])
        return y.sin()

    return f, []


@program
def error_of_an_op_after_print():
    def f(x):
        y = x.sin()
        print("printed")
        z = y + 1
        return z @ y

    return f, []


@program
def suppressed():
    def f(x):
        y = x * 2
        with contextlib.suppress(ZeroDivisionError):
            y = y + 1
            y = y * (1 / 0)
            y = y - 5
        print("after")
        return y.sin()

    return f, []


@program
def exception_in_nested_call():
    def check(t):
        u = t.abs() + 1
        print("check")
        if t.sum().item() > 0:
            raise RuntimeError("too large")
        return u

    def f(x):
        try:
            y = check(x * 2)
        except RuntimeError as error:
            print(error)
            y = x
        return y.sin() * 2

    return f, []
