"""Random functions with all that has an order: prints, hooks, writes to views, generators, closures, classes, handlers
of errors, random numbers, reads of elements.

Programs of even seeds compute with small dyadic numbers, of which sums are exact in any order. So their gradients are
compared bit for bit. Those of odd seeds call other functions too.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
import random
import re
import traceback
import types
import warnings

import torchlite as torch
from torchlite._dynamo.compiled_function import CompiledFunction

from .random_breaks import _Writer, import_program, replays_of

# What the functions call. `trace` records effects in their order.
_PRELUDE = """
import contextlib
import functools
import random
import warnings

import torchlite as torch

trace, kept, total = [], {}, 0


def branching(t):
    u = t + 1
    if u.sum() > 1:
        return u.relu()
    return u - 2


def tracing(s, t):
    trace.append(float(s.mean()))
    return s + t.sign()


def recursive(t, n):
    if n == 0 or t.sum() > 20:
        return t
    return recursive(t + 1, n - 1) - 0.5


def takes(*tensors, scale=1.0, **others):
    trace.append((len(tensors), sorted(others)))
    return tensors[0] + tensors[-1] * (scale > 0)


def failing(t):
    if t.sum() > 4:
        raise ValueError(f"too large: {t.sum().item()}")
    return t + 2


def parts_of(t):
    try:
        for n in range(3):
            trace.append(n)
            yield t + n
    finally:
        trace.append("closed")


def generating(t):
    return sum(parts_of(t)) * 0.25


def first_of(t):
    for one in parts_of(t):
        if one.sum() > 0:
            return one
    return t


@contextlib.contextmanager
def block(name):
    trace.append(f"enter {name}")
    try:
        yield name
    finally:
        trace.append(f"leave {name}")


def noting(function):
    @functools.wraps(function)
    def inner(*args):
        trace.append("call")
        return function(*args)

    return inner


@noting
def noted(t):
    return t * 0.5 + 1


class Scope:
    def __init__(self, suppresses):
        self.suppresses = suppresses

    def __enter__(self):
        trace.append("in")
        return self

    def __exit__(self, kind, error, where):
        trace.append(("out", None if kind is None else kind.__name__))
        return self.suppresses and kind is not None and issubclass(kind, ValueError)


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
        trace.append("pair")

    def joined(self):
        return self.a + self.b if self.a.sum() > self.b.sum() else self.a - self.b

    def __getitem__(self, n):
        trace.append(n)
        return (self.a, self.b)[n]


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        trace.append("forward")
        return x * 3

    @staticmethod
    def backward(ctx, g):
        trace.append("backward")
        return g * 3


class Crossed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x.sign())
        return x + y, x - y

    @staticmethod
    def backward(ctx, g, h):
        (sign,) = ctx.saved_tensors
        trace.append(sign.sum().item())
        return g + h * sign, g - h


class State:
    def __init__(self):
        self.count, self.scale, self.buffer = 0, torch.full((4, 4), 1.5, dtype=torch.float64), torch.zeros(4).double()
        self.items, self.last = [], None

    @property
    def doubled(self):
        self.count += 1
        return self.scale * 2

    def __call__(self, t):
        return t + self.scale * (self.count % 2)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.calls = torch.nn.Linear(4, 4).double(), 0
        self.register_buffer("seen", torch.zeros(4).double())
        with torch.no_grad():
            for t in self.parameters():
                t.copy_(torch.randint(-1, 2, t.shape))

    def forward(self, x):
        y = self.linear(x).clamp(-8, 8)
        self.calls += 1
        if y.mean().item() > 0:
            y = y + 1
            self.seen += 1
        return torch.relu(y)


def pre_hook(module, args):
    trace.append("before")
    return (args[0] + 1,)


def post_hook(module, args, result):
    trace.append("after")
    return result - 0.5


"""
_EXACT = (
    "{a} + {b}", "{a} - {b}", "{a} * 0.5", "{a}.relu()", "torch.where({a} > {b}, {a}, {b})", "{a} * {b}.sign()",
    "({a} @ weight).clamp(-8, 8)", "torch.cat([{a}, {b}])[::2]", "{a}.t() + {b}", "{a}.flip(0)",
    "{a}[:, 1:2].expand(4, 4)", "{a}.reshape(2, 8).reshape(4, 4)", "{a} + {b}.mean()", "layer({a})", "hooked({a})",
    "{a} + torch.randint(0, 3, (4, 4))", "{a} + random.randint(0, 2)", "branching({a})", "tracing({a}, {b})",
    "generating({a})", "first_of({a})", "noted({a})", "recursive({a}, 2)", "failing({a})", "Tripled.apply({a}) * 0.5",
    "Crossed.apply({a}, {b})[0]", "sum(Crossed.apply({a}, {b}))", "Pair({a}, {b}).joined()", "Pair({a}, {b})[1]",
    "max([{a}, {b}], key=lambda t: t.sum().item())", "sorted([{a}, {b}], key=lambda t: t[0, 0].item())[0]",
    "functools.reduce(torch.add, [{a}, {b}, {a}])", "next(t for t in ({a}, {b}, state.scale) if t.sum() > -99)",
    "({a} if 0 < {b}.sum() < 9 else {b})", "{a} + (len(trace) if {b}.any() else state.count)",
    "{a} + f'{{{b}.sum().item():.1f}}'.count('-')", "{a} + {{'k': {b}}}['k']",
    "[t + 2 for t in ({a}, {b}) if t.sum() > 0 or t is {a}][0]", "takes({a}, {b}, scale={a}.max().item())",
    "takes(*({a}, {b}), **{{'k': 1}})", "state.doubled + {a}", "state({a})", "{a} + float({b}.max())",
    "torch.nn.functional.dropout({a}, 0.5)", "torch.stack([{a}, {b}]).sum(0)", "{a} + {b}.nonzero().shape[0]",
    "{a}.masked_fill({b} > 0, 1.0)", "{a} + {b}[{b} > 0].sum()", "{a}.detach() + {b}", "(lambda z: z + {a})({b})",
    "torch.autograd.grad((x * 2 + x).sum(), x)[0] + {a}", "{a} + ({b}.sum() > 0 and {a}.sum() > 0)",
    "({a}.relu() if {b}.sum() > 0 else {b}) + ({b} if {a}.sum() > 0 else {a})", "{a} + torch.as_tensor({b}.tolist())",
    "{a} + [1, 2, 3][int({b}.sum() > 0)]", "torch.maximum({a}, {b})", "{a}.chunk(2, 1)[0].repeat(1, 2)", "{a}.roll(1)",
    "(lambda *t, k=1: t[k])({a}, {b})", "{a} + state.buffer", "{a} + len(state.items)",
)  # fmt: skip
_INEXACT = (
    "torch.sin({a})", "{a}.tanh() * {b}", "{a} / ({b}.abs() + 1)", "{a}.exp().clamp(max=2.0)", "{a}.softmax(-1)",
    "torch.nn.functional.gelu({a})", "{a} + torch.rand(4, 4)", "{a} * torch.randn(4, 4).double()", "{a}.std() + {b}",
    "torch.nn.functional.layer_norm({a}, (4,))", "{a} * {b}.norm().item()", "{a} + random.random()",
    "{a}.cumsum(0) * 0.1",
)  # fmt: skip
_ERRORS = (
    "torch.zeros(3) + {a}", "{a}.view(5)", "[{a}][int({b}.sum() > 0)]", "{a} + kept[int({b}.sum() > 0)]",
    "{a} + 1 // int({b}[0, 0])", "{a}.unknown", "{a}.sum().backward(1, 2, 3, 4, 5, 6)", "{a}[4]", "int({a})",
    "torch.cat([{a}, torch.zeros(3)])", "{a} + None", "bool({a})", "{a}.reshape(2, 8) @ {b}",
)  # fmt: skip
_EFFECTS = (
    "trace.append({a}.sum().item())", "print({a}.sum().item())", "print('at', len(trace), {a}.shape)",
    "state.count += 1",
    "trace.append(tuple({a}[0].tolist()))", "kept['k'] = {a}.detach() + 2", "state.buffer.add_({a}.detach().mean())",
    "state.items.append({a}.sum().item())", "state.last = {a}.detach()", "setattr(state, 'last', {a}.detach())",
    "kept.setdefault('l', []).append({a}.max().item())", "kept.pop('k', None)", "random.random()", "torch.rand(1)",
    "warnings.warn('w')", "y.add_(1)", "y[0] = {a}.detach()[1]", "hooked.train(not hooked.training)", "{a}.sum()",
    "{a}.requires_grad and {a}.register_hook(lambda g: trace.append(g.sum().item()))",
    "{a}.requires_grad and {a}.register_hook(lambda g: g * 0.5)", "{a}.requires_grad and {a}.retain_grad()",
    "assert {a}.sum() < 40, f'large: {{{b}.sum().item()}}'", "layer.calls += 1", "total += 1",
    "total += {a}.sum().item()",
    "trace.append({a}.requires_grad)", "trace.append(torch.is_grad_enabled())", "trace.append(state.buffer._version)",
    "{a}.requires_grad and {a}.sum().backward(retain_graph=True)", "trace.append(x.grad is None)",
    "print(f'{{{a}.mean().item():.3f}}', end=' ')", "state.items[-1:] = [1, 2]", "y = y + {a}.detach()",
)  # fmt: skip
_CONDITIONS = (
    "{a}.sum() > 0", "{a}.mean().item() < 0.2", "len(trace) % 2", "state.count > 1", "not bool({a}.any())",
    "{a}.sum() > 0 and {b}.max() < 3", "{a}.sum() > 0 or trace.append('or')", "not {a}.sum() > 3", "{a}.requires_grad",
    "0 < {a}.sum() < 8", "random.random() < 0.5", "(kept.get('k') is None) == bool({a}[0, 0] > 0)",
    "torch.equal({a}, {b})",
    "(w := {a}.sum().item()) > 2",
)  # fmt: skip
_WRITES = (
    "{n}[1:3].mul_(2)", "{n}.t()[0] += 1", "{n} += {a}", "{n}.mul_(0.5)", "{n}[{n} > 1] = 0.5",
    "{n}.view(-1)[::3] += 2",
    "{n}[0], {n}[1] = {n}[1].clone(), {n}[0].clone()", "{n}.diagonal().zero_()", "{n}.clamp_(-2, 2)", "{n}.copy_({a})",
    "{n}[int({a}.sum() > 0)] = 1.0", "torch.add({n}.detach(), 1, out={n}.data)", "{n}.relu_()",
)  # fmt: skip
_MOST_DEPTH = 3
_FIELDS = ("error", "trace", "printed", "warnings", "objects", "random tensor", "random number")


class EffectWriter(_Writer):
    """Writes the statements of a random function."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.expressions = _EXACT if seed % 2 == 0 else _EXACT + _INEXACT
        self.loops = 0

    def statement(self, names: list[str], depth: int) -> list[str]:
        simple = [self.assignment] * 9 + [self.effect] * 7 + [self.write] * 2 + [self.definition] * 2 + [self.unusual]
        compound = [self.branch] * 3 + [self.loop] * 2 + [self.attempt] * 2 + [self.context] + [self.match]
        last = [self.leave] if depth else []
        return self.random.choice([*simple, *(compound if depth < _MOST_DEPTH else ()), *last])(names, depth)

    def block(self, names: list[str], depth: int) -> list[str]:
        """Return the lines of a block. Sometimes its names are read later, where they may have no value."""
        inner = list(names)
        lines = [line for _ in range(self.random.randint(1, 4)) for line in self.statement(inner, depth)]
        if self.random.random() < 0.04:
            names.extend(inner[len(names) :])
        return lines

    def assignment(self, names, depth):
        forms = _ERRORS if self.random.random() < 0.03 else self.expressions
        value = self.fill(forms, names)
        name = self.random.choice(names) if self.random.random() < 0.3 else self.new_name()
        forms = ("{n} = {v}",) * 8 + (
            "{n}: torch.Tensor = {v}",
            "{n} = {m} = {v}",
            "{n}, *{m} = {v}, 1, 2",
            "({n} := {v})",
        )
        line = self.random.choice(forms).format(n=name, m=self.new_name(), v=value)
        if name not in names:
            names.append(name)
        return [line]

    def effect(self, names, depth):
        return [self.fill(_EFFECTS, names)]

    def write(self, names, depth):
        name = self.new_name()
        lines = [self.fill([f"{name} = {{a}}.clone()", f"{name} = {{a}} * 1", f"{name} = {{a}} + {{b}}"], names)]
        for _ in range(self.random.randint(1, 3)):
            form = self.random.choice(_WRITES).replace("{n}", name)
            lines.append(self.fill([form], names))
        names.append(name)
        return lines

    def definition(self, names, depth):
        """A function, generator or class that the function defines."""
        function, name, other = self.new_name(), self.new_name(), self.random.choice(names)
        forms = [
            [f"def {function}(q, r=2):", f"    return q * 0.5 + {other} * r", f"{name} = {function}({{a}})"],
            [f"def {function}(q):", f"    trace.append({other}.sum().item())", "    return q + 1",
            f"{name} = {function}({{a}})"],
            [f"def {function}():", f"    yield {other}", "    trace.append('between')", "    yield {b} + 1",
             f"{name} = sum({function}()) + {{a}}"],
            [f"{name}_n = 0", f"def {function}(q):", f"    nonlocal {name}_n",
            f"    {name}_n += 1",
             f"    return q + {name}_n", f"{name} = {function}({function}({{a}}))"],
            [f"class {function}:", "    def __init__(self, q):", "        self.q = q", "    def half(self):",
             "        return self.q * 0.5", f"{name} = {function}({{a}}).half() + {{b}}"],
            [f"{function} = [lambda q, n=n: q + n for n in range(2)]", f"{name} = {function}[1]({{a}})"],
            [f"{function} = lambda q: q + {other}", f"{name} = {function}({{a}})"],
            [f"def {function}(q):", "    try:", "        return q + 1", "    finally:", "        trace.append('done')",
             f"{name} = {function}({{a}}) if {{b}}.sum() > 0 else {{b}}"],
        ]  # fmt: skip
        lines = [self.fill([line], names) for line in self.random.choice(forms)]
        names.append(name)
        return lines

    def unusual(self, names, depth):
        """Statements of other kinds."""
        name = self.new_name()
        if self.random.random() < 0.3 and len(names) > 2:
            a, b = self.random.sample(names, 2)
            return [f"{a}, {b} = {b}, {a}"]
        if self.random.random() < 0.2:
            return [f"{name} = 1", f"del {name}"]
        forms = [
            [f"{name} = {{a}}.grad if {{a}}.is_leaf else None",
            f"{name} = {{a}} if {name} is None else {name} + {{b}}"],
            ["with torch.random.fork_rng():", f"    {name} = {{a}} + torch.randint(0, 3, (4, 4))"],
            [f"{name} = {{a}}.detach().clone().requires_grad_()", f"(({name} + 1) * {name}.sign()).sum().backward()",
             f"{name} = {name}.grad + {{b}}"],
            [f"{name} = hooked.linear.weight.detach() + {{a}}"],
            [f"{name} = [*range(2)]", f"{name}[0], {name}[1] = {{a}} + 1, {{b}}", f"{name} = {name}[0] + {name}[1]"],
            [f"{name} = iter([{{a}}, {{b}}])", f"{name} = next({name}) + next({name})"],
        ]  # fmt: skip
        lines = [self.fill([line], names) for line in self.random.choice(forms)]
        names.append(name)
        return lines

    def leave(self, names, depth):
        last = self.fill(
            ["return {a} + 2", "raise ValueError(f'{{{a}.sum().item()}}')", "return {a}", "raise KeyError('k')"], names
        )
        return [self.fill(["if {a}.mean() > 1:", "if {a}.sum().item() > 6:"], names), f"    {last}"]

    def branch(self, names, depth):
        lines = [f"if {self.fill(_CONDITIONS, names)}:", *self.inner(names, depth)]
        if self.random.random() < 0.2:
            lines += [f"elif {self.fill(_CONDITIONS, names)}:", *self.inner(names, depth)]
        return [*lines, "else:", *self.inner(names, depth)] if self.random.random() < 0.5 else lines

    def loop(self, names, depth):
        self.loops += 1
        name, chance = f"t{self.loops}", self.random.random()
        leave = self.random.choice(["break", "continue", ""])
        last = [self.fill(["if {a}.sum().item() > 1:", "if {a}.max() > 2:"], names), f"    {leave}"] if leave else []
        if chance < 0.25:
            header = [
                f"{name} = 0",
                self.fill([f"while {name} < 2 and {{a}}.sum() < 50:", f"while {name} < 3:"], names),
            ]
            lines = [*header, f"    {name} += 1", *self.inner(names, depth, *last)]
        elif chance < 0.5:
            item = self.new_name()
            header = self.fill([f"for {item} in parts_of({{a}}):", f"for {item} in ({{a}}, {{b}}):",
            f"for {item} in {{a}}:",
                                f"for {item} in reversed([{{a}}, {{b}}]):"], names)  # fmt: skip
            read = [f"    {item} = {item} + {self.random.choice(names)}"]
            lines = [header, *read, *self.inner([*names, item], depth, *last)]
        else:
            lines = [f"for {name} in range({self.random.randint(1, 3)}):", *self.inner(names, depth, *last)]
        if self.random.random() < 0.2:
            lines += ["else:", *self.inner(names, depth)]
        return lines

    def attempt(self, names, depth):
        raising = [self.fill(["if {a}.sum().item() > 0:"], names), "    raise ValueError('x')"]
        if self.random.random() < 0.3:
            raising = [f"trace.append({self.fill(_ERRORS, names)})"]
        lines = ["try:", *self.inner(names, depth, *(raising if self.random.random() < 0.6 else ()))]
        chance = self.random.random()
        if chance < 0.25:
            last = [f"    return {self.random.choice(names)}"] if self.random.random() < 0.2 else []
            return [*lines, "finally:", "    trace.append('finally')", *self.inner(names, depth), *last]
        kinds = self.random.choice(["ValueError", "(ValueError, RuntimeError)", "Exception", "KeyError"])
        lines += [f"except {kinds} as error:", "    trace.append((type(error).__name__, str(error)))"]
        if chance < 0.4:
            return [*lines, self.random.choice(["    raise", "    raise KeyError('k') from error", "    raise error"])]
        lines += self.inner(names, depth)
        if chance < 0.6:
            lines += ["else:", *self.inner(names, depth)]
        return [*lines, "finally:", *self.inner(names, depth)] if chance > 0.8 else lines

    def context(self, names, depth):
        forms = ("torch.no_grad()", "torch.enable_grad()", "Scope(True)", "Scope(False)",
        "contextlib.suppress(ValueError)",
                 "block('b')", "Scope(True), torch.no_grad()", "block('c') as w",
                 "torch.set_grad_enabled(len(trace) % 2 == 0)")  # fmt: skip
        return [f"with {self.random.choice(forms)}:", *self.inner(names, depth)]

    def match(self, names, depth):
        lines = [self.fill(["match int({a}.sum() > 0):", "match state.count:", "match [len(trace), {a}]:"], names)]
        first = ["case 0:", "case [1, _]:"]["[" in lines[0][6:8]]
        inner = [first, *self.inner(names, depth), "case _:", *self.inner(names, depth)]
        return [*lines, *(f"    {line}" for line in inner)]


def write_program(seed: int) -> str:
    """Return the source of a module whose `function` takes two tensors and a state."""
    writer = EffectWriter(seed)
    names = ["x", "y"]
    lines = ["global total"] + [line for _ in range(writer.random.randint(3, 7)) for line in writer.statement(names, 0)]
    lines.append(f"return {names[-1]} + x")
    return f"{_PRELUDE}def function(x, y, state):\n" + "".join(f"    {line}\n" for line in lines)


def _start(module: types.ModuleType, seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    module.layer, module.hooked, module.total = module.Layer(), module.Layer(), 0
    module.weight = torch.randint(-1, 2, (4, 4)).double()
    if seed % 3:
        module.hooked.register_forward_hook(module.post_hook)
    if seed % 3 == 2:
        module.hooked.register_forward_pre_hook(module.pre_hook)
    module.trace.clear()
    module.kept.clear()


def _shown(value) -> object:
    """Return a value so that all of it is seen when it is written."""
    if torch.is_tensor(value):  # versions of new tensors are not eager's
        return value.tolist(), value.requires_grad, value.dtype, value.is_leaf
    if isinstance(value, dict):
        return {key: _shown(one) for key, one in value.items()}
    return [_shown(one) for one in value] if isinstance(value, (list, tuple)) else (value, type(value).__module__)


def _line_of(error: Exception, module: types.ModuleType) -> list:
    """Return the lines of the program in an error's traceback, and the errors that it is from."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == module.__file__]
    if isinstance(error, UnboundLocalError):  # CPython 3.11 may give the line of the instruction before
        lines = []
    # The node of a replay has another name than eager's.
    text = re.sub(r", which is output \d+ of \w+,", "", str(error))
    return [type(error).__name__, text, lines[-1:], repr(error.__cause__), repr(error.__context__)]


def outcomes(module: types.ModuleType, compiles: bool, seed: int, calls: int = 6) -> tuple[list, list, int]:
    """Call a program several times. Return what each call gave and did, the gradients, and the number of replays."""
    _start(module, seed)
    state = module.State()
    function = CompiledFunction(module.function, "function") if compiles else module.function
    effects, gradients = [], []
    for call in range(calls):
        x = (torch.randint(-4, 5, (4, 4)) * 0.5).double().requires_grad_(call != 3)
        y = (torch.randint(-4, 5, (4, 4)) * 0.5).double()
        result, error, printed = None, None, io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                result = function(x, y, state)
                if result.requires_grad:
                    result.sum().backward()
            except Exception as raised:
                error = _line_of(raised, module)
        told = [(str(w.message), w.lineno) for w in warned if "torch.compile: " not in str(w.message)]
        layers = [(one.calls, one.seen, one.training) for one in (module.layer, module.hooked)]
        objects = (result, x, y, x._version, y._version, module.kept, module.total, layers, vars(state))
        effects.append(
            (
                error,
                _shown(module.trace),
                printed.getvalue(),
                told,
                _shown(objects),
                torch.rand(1).item(),
                random.random(),
            )
        )
        tensors = [x, result, *module.layer.parameters(), *module.hooked.parameters()]
        gradients += [
            t.grad.clone() for t in tensors if t is not None and (t.is_leaf or t.retains_grad) and t.grad is not None
        ]
        module.trace.clear()
        module.layer.zero_grad()
        module.hooked.zero_grad()
    return [[repr(part) for part in one] for one in effects], gradients, replays_of(function) if compiles else 0


def difference(seed: int, folder: pathlib.Path) -> tuple[str, int]:
    """Return how a compiled program differs from eager ("" if it does not), and its number of replays."""
    module = import_program(write_program(seed), folder / f"effects{seed}.py")
    wanted, wanted_gradients, _ = outcomes(module, False, seed)
    found, gradients, replays = outcomes(module, True, seed)
    for call, (a, b) in enumerate(zip(wanted, found, strict=True)):
        for field, x, y in zip(_FIELDS, a, b, strict=True):
            if x != y:
                return f"call {call}: {field} {y} instead of {x}", replays
    if len(gradients) != len(wanted_gradients):
        return f"{len(gradients)} gradients instead of {len(wanted_gradients)}", replays
    exact = seed % 2 == 0
    for a, b in zip(wanted_gradients, gradients, strict=True):
        limit = {"rtol": 0.0, "atol": 0.0} if exact else {"rtol": 1e-12, "atol": 1e-12 * float(a.abs().max())}
        if not torch.allclose(b, a, equal_nan=True, **limit):
            return f"gradient {b.tolist()} instead of {a.tolist()}", replays
    return "", replays
