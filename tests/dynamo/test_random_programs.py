"""Random programs: views, writes, broadcasting, branches on shapes and on elements, several results and dtypes."""

from __future__ import annotations

import random
import warnings

import pytest

import torchlite as torch
from torchlite._dynamo.compiled_function import CompiledFunction

UNARY = ["sin", "tanh", "exp", "relu", "abs", "neg", "sigmoid", "square", "softmax0", "cumsum0"]
BINARY = ["add", "sub", "mul", "maximum", "matmul", "where", "atan2"]
VIEWS = ["t", "flip", "slice", "expand", "reshape", "select", "diag", "chunk", "unsqueeze"]
WRITES = ["add_", "mul_", "relu_", "zero_row", "copy_column", "clamp_"]
OTHERS = [
    "mean",
    "amax",
    "double",
    "item_branch",
    "shape_branch",
    "no_grad",
    "detach",
    "buffer",
    "cat",
    "topk",
    "constant",
]


def unary(name, x):
    if name == "softmax0":
        return x.softmax(0)
    if name == "cumsum0":
        return x.cumsum(0)
    return getattr(x, name)()


def binary(name, x, y):
    if name == "where":
        return torch.where(x > y, x, y * 0.5)
    if name == "matmul":
        return x @ y.transpose(-1, -2) * 0.25
    return getattr(torch, name)(x, y)


def view(name, x):
    return {
        "t": lambda: x.t(), "flip": lambda: x.flip(0), "slice": lambda: x[::2].repeat(2, 1),
        "expand": lambda: x[:1].expand(4, 4),
        "reshape": lambda: x.reshape(2, 8).reshape(4, 4), "select": lambda: x[1] + x, "diag": lambda: x.diagonal() * x,
        "chunk": lambda: torch.cat(x.chunk(2, 1)[::-1], 1), "unsqueeze": lambda: x.unsqueeze(0).squeeze(0),
    }[name]()  # fmt: skip


def write(name, x, y):
    x = x.clone() if name != "relu_" else x * 1
    if name == "zero_row":
        x[1] = 0.0
    elif name == "copy_column":
        x[:, 0] = y[:, 1]
    elif name == "clamp_":
        x.clamp_(-1, 1)
    elif name == "relu_":
        x.relu_()
    else:
        getattr(x, name)(y)
    return x


def other(name, x, y, state):
    if name == "mean":
        return x - x.mean(0, keepdim=True)
    if name == "amax":
        return x / (1 + x.abs().amax())
    if name == "double":
        return (x.double() * 1.5).float()
    if name == "item_branch":
        return x * 2 if x.sum().item() > 0 else x - y
    if name == "shape_branch":
        return x + 1 if x.shape[0] == x.shape[-1] else x - 1
    if name == "no_grad":
        with torch.no_grad():
            z = x * y
        return z + x
    if name == "detach":
        return x.detach() * y
    if name == "buffer":
        state.add_(1)
        return x * state
    if name == "cat":
        return torch.cat([x, y], 1)[:, 2:6]
    if name == "topk":
        return x.topk(4, 1).values
    return x + torch.tensor([1.0, -2.0, 0.5, 3.0])


def program(seed):
    """A function of two tensors and a buffer."""
    rng = random.Random(seed)
    lines = []
    for _ in range(rng.randint(2, 9)):
        kind = rng.choice(["unary", "binary", "view", "write", "other", "other"])
        names = {"unary": UNARY, "binary": BINARY, "view": VIEWS, "write": WRITES, "other": OTHERS}[kind]
        lines.append((kind, rng.choice(names), rng.random(), rng.random()))
    results = [rng.random() for _ in range(rng.randint(1, 3))]

    def run(x, y, state):
        values = [x, y]
        for kind, name, first, second in lines:
            a, b = values[int(first * len(values))], values[int(second * len(values))]
            if kind == "unary":
                values.append(unary(name, a))
            elif kind == "binary":
                values.append(binary(name, a, b))
            elif kind == "view":
                values.append(view(name, a))
            elif kind == "write":
                values.append(write(name, a, b))
            else:
                values.append(other(name, a, b, state))
        made = values[2:]
        return [made[int(r * len(made))] for r in results]

    return run


def outcome(function, state, seed, requires_grad):
    """Results, gradients and what else a call leaves behind."""
    torch.manual_seed(seed)
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    x.requires_grad_(requires_grad)
    try:
        found = function(x, y, state)
        outs = [t for t in found if t.requires_grad]
        grads = [x.grad]
        if outs:
            sum(t.sum() for t in outs).backward()
            grads.append(x.grad)
        shown = [(t.shape, t.stride(), t.dtype, t.requires_grad, t.tolist()) for t in found]
        return str((shown, [None if g is None else g.tolist() for g in grads], state.tolist(), state._version))
    except Exception as error:
        return str((type(error), state.tolist()))


@pytest.mark.parametrize("part", range(10))
def test_random_programs(part, on_device):
    replayed = 0
    for seed in range(part * 50, part * 50 + 50):
        function = program(seed)
        frame = CompiledFunction(function, f"program{seed}")
        mine, theirs = torch.zeros(4), torch.zeros(4)
        for call in range(6):
            requires_grad = seed % 2 == 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = outcome(function, theirs, call % 4, requires_grad)
                assert outcome(frame, mine, call % 4, requires_grad) == want, (seed, call)
        replayed += frame.replays > 0
    assert replayed >= 35, replayed
