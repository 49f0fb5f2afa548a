"""Random functions with graph breaks, as Python source: reads of elements, records of them, branches, loops, handlers
of errors, nested functions, generators, custom Functions, modules, writes and random numbers.
"""

from __future__ import annotations

import importlib.util
import pathlib
import random
import types

import torchlite as torch
from torchlite._dynamo.compiled_function import CompiledFunction

# What the functions call. `trace` records side effects in their order.
_PRELUDE = """
import torchlite as torch

trace, kept = [], {}


def branching(t):
    u = t * 2
    if u.sum() > 1:
        return u.sin()
    return u.cos()


def tracing(s, t):
    trace.append(float(s.mean()))
    return s * t.sigmoid()


def generating(t):
    def parts():
        for n in range(2):
            yield t * n

    return sum(parts())


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        trace.append("forward")
        return x * 3

    @staticmethod
    def backward(ctx, g):
        trace.append("backward")
        return g * 3


class State:
    def __init__(self):
        self.count, self.scale, self.buffer = 0, torch.full((3, 3), 1.5), torch.zeros(3)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.calls = torch.nn.Linear(3, 3), 0

    def forward(self, x):
        y = self.linear(x)
        self.calls += 1
        if y.mean().item() > 0:
            y = y + 1
        return torch.relu(y)


"""
_EXPRESSIONS = (
    "{a} + {b}", "{a} * {b}", "torch.sin({a})", "({a} @ weight).tanh()", "{a} - {b}.mean()", "torch.relu({a})",
    "{a} / ({b}.abs() + 1)", "branching({a})", "tracing({a}, {b})", "{a}.exp().clamp(max=2.0)", "generating({a})",
    "torch.where({a} > 0, {a}, {b})", "torch.cat([{a}, {b}])[:3]", "layer({a})", "state.scale * {a}", "{a}.softmax(-1)",
    "{a} * float({b}.sum().item() > 0.3)", "{a} + torch.rand(3, 3)", "[{a}, {b}][int({a}.sum() > 0)]",
    "({a} if {b}.sum() > 0 else {b})", "{a} * len(trace)", "sum([{a} * n for n in range(3)])",
    "(lambda z: z * 2 + {a})({b})", "Tripled.apply({a})",
)  # fmt: skip
_EFFECTS = (
    "trace.append({a}.sum().item())", "trace.append(str({a}.shape)); tracing({a}, {b})", "state.count += 1",
    "trace.append(tuple({a}[0].tolist()))", "kept['k'] = {a}.detach() * 2", "state.buffer.add_({a}.detach().mean())",
    "{a}.sum()",
)  # fmt: skip
_CONDITIONS = (
    "{a}.sum() > 0", "{a}.mean().item() < 0.2", "len(trace) % 2", "state.count > 1", "not bool({a}.any())",
    "{a}.sum() > 0 and {b}.max() < 3",
)  # fmt: skip
_MOST_DEPTH = 3


class _Writer:
    """Writes the statements of a random function."""

    def __init__(self, seed: int) -> None:
        self.random, self.count = random.Random(seed), 0

    def new_name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def fill(self, forms, names) -> str:
        a, b = self.random.choice(names), self.random.choice(names)
        return self.random.choice(forms).format(a=a, b=b)

    def block(self, names: list[str], depth: int) -> list[str]:
        """Return the lines of a block; `names` are the tensors that it may read."""
        names = list(names)
        return [line for _ in range(self.random.randint(2, 5)) for line in self.statement(names, depth)]

    def inner(self, names: list[str], depth: int, *last: str) -> list[str]:
        return [f"    {line}" for line in (*self.block(names, depth + 1), *last)]

    def statement(self, names: list[str], depth: int) -> list[str]:
        simple = [self.assignment] * 8 + [self.effect] * 6 + [self.write, self.local_function]
        compound = (
            [] if depth >= _MOST_DEPTH else [self.branch] * 3 + [self.loop, self.loop, self.attempt, self.context]
        )
        return self.random.choice([*simple, *compound, *([self.result] if depth else [])])(names, depth)

    def assignment(self, names, depth):
        value = self.fill(_EXPRESSIONS, names)
        name = self.random.choice(names) if self.random.random() < 0.3 else self.new_name()
        if name not in names:
            names.append(name)
        return [f"{name} = {value}"]

    def effect(self, names, depth):
        return [self.fill(_EFFECTS, names)]

    def write(self, names, depth):
        name = self.new_name()
        lines = [
            self.fill([f"{name} = {{a}}.clone()"], names),
            self.fill([f"{name} += {{a}}"], names),
            f"{name}.mul_(0.5)",
        ]
        names.append(name)
        return lines

    def local_function(self, names, depth):
        function, name = self.new_name(), self.new_name()
        lines = [f"def {function}(q):", self.fill(["    return q * {a} + 1"], names)]
        lines.append(self.fill([f"{name} = {function}({{a}})"], names))
        names.append(name)
        return lines

    def result(self, names, depth):
        return [self.fill(["if {a}.mean() > 0.5:"], names), self.fill(["    return {a} * 2"], names)]

    def branch(self, names, depth):
        lines = [f"if {self.fill(_CONDITIONS, names)}:", *self.inner(names, depth)]
        return [*lines, "else:", *self.inner(names, depth)] if self.random.random() < 0.5 else lines

    def loop(self, names, depth):
        if self.random.random() < 0.3:
            name = self.new_name()
            header = [f"{name} = 0", self.fill([f"while {name} < 2 and {{a}}.sum() < 50:"], names), f"    {name} += 1"]
            return [*header, *self.inner(names, depth)]
        leave = self.random.choice(["break", "continue", ""])
        last = [self.fill(["if {a}.sum().item() > 1:"], names), f"    {leave}"] if leave else []
        return [f"for turn{depth} in range({self.random.randint(1, 3)}):", *self.inner(names, depth, *last)]

    def attempt(self, names, depth):
        raising = [self.fill(["if {a}.sum().item() > 0:"], names), "    raise ValueError('x')"]
        lines = ["try:", *self.inner(names, depth, *(raising if self.random.random() < 0.6 else ()))]
        if self.random.random() < 0.3:
            return [*lines, "finally:", "    trace.append('finally')"]
        return [*lines, "except ValueError as error:", "    trace.append(str(error))", *self.inner(names, depth)]

    def context(self, names, depth):
        return ["with torch.no_grad():", *self.inner(names, depth)]


def write_program(seed: int) -> str:
    """Return the source of a module whose `function` takes two tensors and a state."""
    writer = _Writer(seed)
    names = ["x", "y"]
    lines = [line for _ in range(writer.random.randint(3, 6)) for line in writer.statement(names, 0)]
    lines.append(f"return {names[-1]} + x")
    return f"{_PRELUDE}def function(x, y, state):\n" + "".join(f"    {line}\n" for line in lines)


def import_program(text: str, path: pathlib.Path) -> types.ModuleType:
    """Write a program to a file and import it: functions are split by their source."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outcomes(module: types.ModuleType, compiles: bool, seed: int, calls: int = 6) -> tuple[list, list, int]:
    """Call a program several times. Return what each call gave and did, the gradients, and the number of replays."""
    torch.manual_seed(seed)
    module.layer, module.weight, state = module.Layer(), torch.randn(3, 3), module.State()
    module.trace.clear()
    module.kept.clear()
    function = CompiledFunction(module.function, "function") if compiles else module.function
    effects, gradients = [], []
    for call in range(calls):
        x, y = (torch.randn(3, 3) * (0.5 + call % 3)).requires_grad_(), torch.randn(3, 3)
        result, error = None, ""
        try:
            result = function(x, y, state)
            if result.requires_grad:
                result.sum().backward()
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        given = None if result is None else (result.tolist(), result.requires_grad)
        state_now = (
            state.count,
            state.buffer.tolist(),
            module.layer.calls,
            {k: v.tolist() for k, v in module.kept.items()},
        )
        effects.append(repr((given, error, module.trace, state_now, torch.rand(1).item())))
        gradients += [t.grad.clone() for t in (x, *module.layer.parameters()) if t.grad is not None]
        module.trace.clear()
        module.layer.zero_grad()
    return effects, gradients, replays_of(function) if compiles else 0


def replays_of(compiled: CompiledFunction) -> int:
    """Return how often the function or one of its parts was replayed."""
    return sum(part.replays for part in parts_of(compiled))


def parts_of(compiled: CompiledFunction) -> list[CompiledFunction]:
    """Return a function without breaks, or the compiled functions of its parts and of what they call."""
    tree = compiled.tree
    if tree is None:
        return [compiled]
    known = [*tree._by_code.values(), *tree._by_function.values()]
    return [part for one in known for part in one.parts.values()] + [a for a in tree._attempts.values() if a]


def difference(seed: int, folder: pathlib.Path) -> tuple[str, int]:
    """Return how a compiled program differs from eager ("" if it does not), and its number of replays.

    Gradients that several parts add to one tensor may differ by the order of the sums.
    """
    module = import_program(write_program(seed), folder / f"program{seed}.py")
    wanted, wanted_gradients, _ = outcomes(module, False, seed)
    found, gradients, replays = outcomes(module, True, seed)
    for call, (a, b) in enumerate(zip(wanted, found, strict=True)):
        if a != b:
            return f"call {call}: {b} instead of {a}", replays
    if len(gradients) != len(wanted_gradients):
        return f"{len(gradients)} gradients instead of {len(wanted_gradients)}", replays
    for a, b in zip(wanted_gradients, gradients, strict=True):
        if not torch.allclose(b, a, rtol=1e-5, atol=1e-5 * float(a.abs().max()), equal_nan=True):
            return f"gradient {b.tolist()} instead of {a.tolist()}", replays
    return "", replays
