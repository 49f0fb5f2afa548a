"""More programs that cannot be captured as a whole, as in `programs_with_breaks`: with autograd's functions and hooks,
writes, random numbers, classes and modules.
"""

from __future__ import annotations

import torchlite as torch
from torchlite import nn

from .programs_with_breaks import F, program, weights

# -- autograd: custom Functions, hooks, several parts ------------------------------------------------


class Noted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        print("forward")
        return x * 3

    @staticmethod
    def backward(ctx, g):
        print("backward", g.sum().item())
        return g * 3


@program
def custom_function_that_prints():
    (w,) = weights((3, 3))

    def f(x):
        y = (x @ w).sin()
        z = Noted.apply(y)
        return z.cos() * 2

    return f, [w]


@program
def tensor_hook_that_prints():
    (w,) = weights((3, 3))

    def f(x):
        y = x @ w
        y.register_hook(lambda g: print("hook", g.sum().item()))
        z = y.sin() * 2
        return z + 1

    return f, [w]


@program
def hook_that_changes_the_gradient():
    def f(x):
        y = x * 2
        print("before")
        y.register_hook(lambda g: g * 10)
        return y.sin() + y

    return f, []


@program
def retained_gradient():
    def f(x):
        y = x * 2
        z = y.sin()
        print(z.sum().item())
        y.retain_grad()
        return z * y, y

    return f, []


@program
def gradient_of_intermediate():
    def f(x):
        y = x * 2
        z = y.sin().sum()
        print(z.item())
        (g,) = torch.autograd.grad(z, y, retain_graph=True)
        print(g.sum().item())
        return z + (g * x).sum()

    return f, []


@program
def backward_inside():
    (w,) = weights((3, 2))

    def f(x):
        w.grad = None
        loss = (x.detach() @ w).pow(2).mean()
        print(loss.item())
        loss.backward()
        print(w.grad.sum().item())
        return loss.detach()

    return f, [w]


@program
def training_step():
    (w, b) = weights((3, 2), (2,))
    optimizer = torch.optim.SGD([w, b], lr=0.1, momentum=0.9)
    losses = []

    def f(x):
        optimizer.zero_grad()
        loss = (x.detach() @ w + b).tanh().pow(2).mean()
        losses.append(loss.item())
        print(losses[-1])
        loss.backward()
        optimizer.step()
        return loss.detach()

    return f, [w, b]


@program
def clipped_training_step():
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)

    def f(x):
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(net(x.detach()), torch.ones(4, 1))
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        print(f"{loss.item():.5f} {norm.item():.5f}")
        optimizer.step()
        return loss.detach()

    return f, list(net.parameters())


@program
def second_derivative():
    def f(x):
        y = (x**3).sum()
        print(y.item())
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        print(g.sum().item())
        return (g**2).sum()

    return f, []


@program
def detached_between():
    def f(x):
        y = x.sin()
        d = y.detach()
        print(d.sum().item())
        return y * d + d

    return f, []


# -- writes in place ----------------------------------------------------------------------------------


@program
def buffer_written_before():
    total = torch.zeros(3)

    def f(x):
        total.add_(x.detach().sum(0))
        print(total.sum().item())
        return x * total

    return f, [total]


@program
def buffer_written_after():
    total = torch.zeros(3)

    def f(x):
        y = x + total
        print(y.sum().item())
        total.mul_(0.5).add_(1)
        return y + total

    return f, [total]


@program
def argument_written():
    def f(x):
        y = x.detach().clone()
        y.mul_(2)
        print(y.sum().item())
        y[0] = 7
        y += 1
        return y * x

    return f, []


@program
def view_written():
    def f(x):
        y = x.detach().clone()
        v = y[1:3]
        print(v.sum().item())
        v.zero_()
        print(y.sum().item())
        return (y + x).sin()

    return f, []


@program
def written_with_history():
    def f(x):
        y = x * 2
        print(y.sum().item())
        y.mul_(3)
        y[0].add_(1)
        print(y.sum().item())
        return y.sin()

    return f, []


@program
def swapped_variables():
    def f(x):
        a, b = x * 2, x + 1
        print("swap")
        a, b = b, a
        a = a.sin()
        print(a.sum().item())
        return a - b

    return f, []


# -- random numbers ---------------------------------------------------------------------------------


@program
def draws_before_and_after():
    def f(x):
        y = x + torch.randn(4, 3)
        print(y.sum().item())
        z = y * torch.rand(4, 3)
        print(torch.rand(1).item())
        return F.dropout(z, 0.5)

    return f, []


@program
def seeded_within():
    def f(x):
        y = x + torch.rand(4, 3)
        torch.manual_seed(5)
        z = y * torch.rand(4, 3)
        return z.sin()

    return f, []


@program
def own_generator():
    generator = torch.Generator().manual_seed(1)

    def f(x):
        y = x * torch.rand(4, 3, generator=generator)
        print(y.sum().item())
        return y + torch.rand(4, 3, generator=generator)

    return f, []


# -- classes and modules ------------------------------------------------------------------------------


class Printing(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.linear = nn.Linear(3, width)

    def forward(self, x):
        y = self.linear(x).relu()
        print("module", y.sum().item())
        return y.sin()


@program
def module():
    net = Printing()
    return net, list(net.parameters())


@program
def sequential_of_modules():
    net = nn.Sequential(nn.Linear(3, 3), Printing(), nn.Tanh(), Printing(2), nn.ReLU())
    return net, list(net.parameters())


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.calls = nn.Linear(3, 3), 0

    def forward(self, x):
        self.calls += 1
        y = self.linear(x).tanh()
        if self.calls % 2:
            print("odd", self.calls)
        return y * 2


@program
def module_that_counts():
    net = Counting()
    return net, list(net.parameters())


class Base(nn.Module):
    def forward(self, x):
        print("base", x.sum().item())
        return x * 2


class Derived(Base):
    def __init__(self):
        super().__init__()
        self.__weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        y = x * self.__weight
        y = super().forward(y)
        return y.sin() + self.__weight


@program
def super_and_private_names():
    net = Derived()
    return net, list(net.parameters())


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.norms = []

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu() + x
            self.norms.append(x.norm().item())
        print(len(self.norms), self.norms[-1])
        return x.mean(1)


@program
def module_with_layers():
    net = Stack()
    return net, list(net.parameters())


@program
def forward_hook_that_prints():
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    net[0].register_forward_hook(lambda m, args, result: print("hook", result.sum().item()))

    def f(x):
        y = x * 2
        z = net(y)
        return z.sin() + y

    return f, list(net.parameters())


@program
def backward_hook_of_module():
    net = nn.Linear(3, 3)
    net.register_full_backward_hook(lambda m, given, made: print("gradient", made[0].sum().item()))

    def f(x):
        y = net(x * 2)
        print(y.sum().item())
        return y.sin()

    return f, list(net.parameters())


class Account:
    rate = 2.0

    def __init__(self):
        self.log = []

    @property
    def factor(self):
        return self.rate

    @staticmethod
    def square(t):
        return t * t

    @classmethod
    def scale(cls, t):
        return t * cls.rate

    def note(self, t):
        self.log.append(t.sum().item())
        print(len(self.log), self.log[-1])
        return t + 1

    def __call__(self, x):
        y = self.square(x) * self.factor
        z = self.note(y)
        return self.scale(z).sin()


@program
def object_with_methods():
    return Account().__call__, []


@program
def class_within():
    def f(x):
        class Pair:
            def __init__(self, a, b):
                self.a, self.b = a, b

            def total(self):
                return self.a + self.b

        pair = Pair(x * 2, x.sin())
        print("pair", pair.total().sum().item())
        return pair.total() * pair.a

    return f, []


@program
def deletion():
    def f(x):
        y = x * 2
        z = y.sin()
        del y
        print(z.sum().item())
        return z + 1

    return f, []


@program
def unbound_in_one_branch():
    def f(x):
        y = x + torch.rand(4, 3)
        if y.sum() > 0:
            extra = y * 2
        print("joined")
        try:
            return extra.sin()
        except UnboundLocalError as error:
            print(error)
            return y

    return f, []


@program
def match_statement():
    def f(x, kind="a"):
        y = x * 2
        match kind:
            case "a":
                print("case a")
                y = y.sin()
            case other:
                print(other)
        return y + 1

    return f, []


@program
def augmented_targets():
    state = {"total": 0.0}

    def f(x):
        y = x.exp()
        state["total"] += y.sum().item()
        print(state["total"])
        y = y * 2
        y += 1
        return y.log()

    return f, []


@program
def chained_comparison():
    def f(x):
        y = x + torch.rand(4, 3)
        if -1 < y.sum() < 3:
            print("within")
            y = y * 2
        return y.sin()

    return f, []


# -- names, loops and objects in odd places ------------------------------------------------------------

LAST = None


@program
def global_assignment():
    def f(x):
        global LAST
        y = x * 2 + 1
        LAST = y.detach().sum()
        print(LAST.item())
        return y.sin() * LAST

    return f, []


@program
def return_inside_a_loop():
    def f(x):
        y = x.sin() * 2
        for n in range(3):
            y = y + n
            if n == 1:
                return y.cos() * 3
        return y

    def g(x):
        z = f(x) + 1
        print(z.sum().item())
        for n in range(2):
            z = z * 2
            if n == 1 and x.shape[0] == 4:
                return z.exp() + n
        print("not reached")
        return z

    return g, []


@program
def finally_in_a_loop():
    def f(x):
        y = x * 2
        for n in range(4):
            try:
                y = y.sin() + 1
                if n == 1:
                    continue
                print(n, y.sum().item())
                if n == 2:
                    break
            finally:
                y = y * 2
                print("finally", n)
        else:
            print("else")
        return y.cos()

    return f, []


@program
def maybe_unbound_after_loop():
    def f(x):
        y = x + torch.rand(4, 3)
        for row in y:
            last = row * 2
            if row.sum() > 1:
                break
        print(last.sum().item())
        return last.sin() + y

    return f, []


@program
def star_arguments_and_unpacking():
    def f(*given, **named):
        (x,) = given
        first, *others = (x * n for n in range(1, 4))
        print(len(others), sorted(named))
        a, (b, c) = first, others
        return (a * b).sin() + c

    return f, []


@program
def subscripts_written():
    def f(x):
        held = {"y": x * 2, "n": 0}
        held["n"] += 1
        print(held["n"])
        held["y"] = held["y"].sin()
        rows = [held["y"], x]
        rows[0] = rows[0] + rows[1]
        print(rows[0].sum().item())
        return rows[0] * held["y"]

    return f, []


class Holder:
    def __init__(self):
        self.value = None
        self.steps = 0


@program
def attributes_written():
    holder = Holder()

    def f(x):
        holder.value = x.detach() * 2
        holder.steps += 1
        print(holder.steps)
        y = holder.value.sin() + x
        holder.value = None
        return y * holder.steps

    return f, []


@program
def lambdas_in_a_loop():
    def f(x):
        calls = []
        for n in range(3):
            calls.append(lambda t, n=n: t * n + 1)
        print(len(calls))
        for call in calls:
            x = call(x).sin()
        return x

    return f, []


@program
def late_binding_lambdas():
    def f(x):
        calls = [lambda t: t * n for n in range(3)]
        n = 7
        print(len(calls))
        return sum(call(x) for call in calls) + n

    return f, []


@program
def sorted_by_elements():
    def f(x):
        rows = sorted((x * 2).unbind(), key=lambda row: row.sum().item())
        print([round(row[0].item(), 2) for row in rows])
        return torch.stack(rows).sin()

    return f, []


@program
def any_and_filter():
    def f(x):
        y = x + torch.rand(4, 3)
        kept = [row for row in y if row.sum() > 0]
        print(len(kept), any(bool(row[0] > 1) for row in y))
        return torch.stack([*kept, y[0]]).sum(0).cos()

    return f, []


@program
def try_star_else_and_reraise():
    def inner(t):
        try:
            u = t * 2
            print("try")
            if t.shape[0] == 4:
                raise LookupError("four")
        except LookupError as error:
            print("again", error)
            raise TypeError("wrapped") from error
        else:
            return u

    def f(x):
        y = x.sin()
        try:
            y = inner(y) + 1
        except TypeError as error:
            print(error, repr(error.__cause__))
            y = y * 5
        return y.exp()

    return f, []


@program
def nested_with_and_return():
    def f(x):
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            y = x * 2
            if y.sum() > 0:
                print("positive")
                return (y + 1).sin()
        y = x * 3
        print("not positive")
        return y.cos() + 1

    return f, []


@program
def default_of_an_inner_function():
    def f(x, scale=3.0):
        def inner(t, by=scale, *, plus=1):
            u = t * by
            print("inner", u.sum().item())
            return u + plus

        return inner(x).sin() + inner(x, 2.0, plus=4)

    return f, []


@program
def variable_of_two_kinds():
    def f(x):
        y = x.sum() * 2
        y = y.item()
        print(y)
        y = x * min(y, 1.0)
        return y.sin() + y

    return f, []


@program
def while_else():
    def f(x):
        n, y = 0, x * 1
        while y.sum() < 50 and n < 5:
            y = y * 2 + torch.rand(1)
            n += 1
        else:
            print("else", n)
        return y.sin()

    return f, []


@program
def deep_loops():
    def f(x):
        y = x * 1
        for i in range(2):
            for j in range(2):
                y = y.sin() + i
                if y.sum() > 100:
                    break
                print(i, j, y.sum().item())
                y = y * (j + 1)
            y = y + 1
        return y

    return f, []


@program
def setattr_and_getattr():
    net = nn.Linear(3, 3)

    def f(x):
        y = net(x).relu()
        net.last = y.detach().mean().item()
        print(round(getattr(net, "last"), 4))
        return y * net.last + net.weight.sum()

    return f, list(net.parameters())


@program
def iterator_across():
    def f(x):
        rows = iter(x.unbind())
        first = next(rows) * 2
        print(first.sum().item())
        second = next(rows) + first
        print(second.sum().item())
        return torch.stack([first, second, *rows])

    return f, []


@program
def aliases_across():
    def f(x):
        y = x.detach() * 2
        same, view = y, y[0]
        print(y is same)
        y.add_(1)
        print(same.sum().item(), view.sum().item(), y is same)
        view.mul_(2)
        return same + x

    return f, []


@program
def handlers_of_one_name():
    def f(x):
        y = x * 2
        try:
            if y.sum().item() > -100:
                raise ValueError("outer")
        except ValueError as error:
            print(error)
            for place in range(2):
                z = y / (x.abs() + place + 1)
                try:
                    w = (z + y).sin()
                    if z.sum().item() > 0:
                        raise ValueError(f"inner {place}")
                except ValueError as error:
                    print(error)
                    y = torch.where(z > 0, z, w)
            try:
                y = y.tanh() + z
                w = y * 2
                if w.sum().item() > 0:
                    raise ValueError("last")
            except ValueError as error:
                print(error)
                for _ in range(2):
                    y = y * 0.5
                    print(y.sum().item())
        return y.exp()

    return f, []


@program
def variable_that_some_paths_write():
    calls = []

    def f(x):
        y = torch.sin(x) + 1
        print(y.sum().item())
        z = y * 2
        w = z + x
        if len(calls) > 2:
            w = w.cos() * y
            return w
            z = w
        calls.append(1) if len(calls) < 2 else None
        print(w.mean().item())
        return z * w

    return f, []


@program
def captured_in_a_try_statement():
    def f(x):
        print(x.sum().item())
        for place in range(1):
            try:
                y = (x + place).tanh()
                z = sum([y * n for n in range(3)])

                def scaled(q):
                    return q * y + 1

                z = scaled(z)
            finally:
                x = x.detach() * 2
            print(z.sum().item())
        return y + z * x

    return f, []
