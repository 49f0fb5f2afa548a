"""The passes over captured programs, each alone, and what chains of large arrays give."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch.recording import table_of
from torchlite._dynamo.frames import Frame
from torchlite._dynamo.passes import with_chains, without_dead_code
from torchlite._dynamo.program import Program, Slot, Step, same_program

TABLE = table_of(torch.device("cpu"))


def step(name, out, *args):
    return Step(name, getattr(TABLE, name), args, {}, Slot(out))


def test_dead_code_goes_and_writes_stay():
    a, b, c = map(Slot, range(3))
    program = Program(
        [step("exp", 3, a), step("add", 4, b, c), step("sin", 5, Slot(3)), Step("add_", TABLE.add_, (a, b), {}, None),
         Step("random_uniform", TABLE.random_uniform, ((2,), torch.float32, 0.0, 1.0, None), {}, Slot(6))],
        [0, 1, 2], {7: np.zeros(2)}, [4],
    )  # fmt: skip
    found = without_dead_code(program)
    assert [one.name for one in found.steps] == ["add", "add_", "random_uniform"] and not found.constants
    assert same_program(without_dead_code(found), found)


def test_chains_join_what_follows_each_other():
    shape = (512, 256)
    x, y = np.random.default_rng(0).standard_normal((2, *shape)).astype(np.float32)
    steps = [
        step("mul", 2, Slot(0), 2.0), step("add", 3, Slot(2), Slot(1)), step("tanh", 4, Slot(3)),
        Step("sum", TABLE.sum, (Slot(4), 0), {}, Slot(5)), step("exp", 6, Slot(3)),
    ]  # fmt: skip
    layouts = {n: (shape, np.dtype("float32"), True) for n in (0, 1, 2, 3, 4, 6)}
    program = with_chains(Program(steps, [0, 1], {}, [5, 6]), layouts, TABLE.backend.blockwise)
    assert [one.name for one in program.steps] == ["mul_add_tanh", "sum", "exp"]
    chain = program.steps[0]
    assert chain.args == (Slot(0), Slot(1)) and chain.out == (Slot(3), Slot(4))
    total, bent = chain.kernel(x, y)
    np.testing.assert_array_equal(total, x * 2 + y)
    np.testing.assert_array_equal(bent, np.tanh(x * 2 + y))
    small = {n: ((2, 2), np.dtype("float32"), True) for n in layouts}
    assert len(with_chains(Program(steps, [0, 1], {}, [5, 6]), small, TABLE.backend.blockwise).steps) == 5


@pytest.mark.parametrize("function", [
    lambda x, y: ((x * 2 + y).tanh() * x - y).relu(),
    lambda x, y: (x.sigmoid() * y, (x - y).abs().sqrt(), x > y),
    lambda x, y: torch.where(x > 0, x, y).exp() + 1,
    lambda x, y: (x.t() * y.t()).sin() + 1,
    lambda x, y: (x + y[0]).cos() * x.sum(),
    lambda x, y: torch.nn.functional.gelu((x.double() * y).float()) - x,
    lambda x, y: (torch.conj(x * y) + (x + y).exp(), torch.conj((x - y) * 2).sin() * torch.conj(x - y)),
    lambda x, y: torch.nn.functional.silu(x.add(y).mul_(3)).add_(x),
])  # fmt: skip
@pytest.mark.parametrize("requires_grad", [False, True])
def test_large_chains_give_what_eager_gives(function, requires_grad):
    frame = Frame(function, "chain", fullgraph=True)
    for seed in range(4):
        torch.manual_seed(seed)
        x, y = torch.randn(400, 400), torch.randn(400, 400)
        results = []
        for one in (function, frame):
            a, b = (t.clone().requires_grad_(requires_grad) for t in (x, y))
            found = one(a, b)
            found = found if isinstance(found, tuple) else (found,)
            grads = ()
            if requires_grad:
                outs = [t for t in found if t.requires_grad]
                grads = torch.autograd.grad(outs, (a, b), [torch.cos(t.detach()) for t in outs])
            results.append([t.detach() for t in (*found, *grads)])
        assert all(torch.equal(s, t) and s.stride() == t.stride() for s, t in zip(*results, strict=True))
    assert frame.replays == 2
