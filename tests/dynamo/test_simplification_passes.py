"""The passes that make programs smaller: repeated steps, constants, views of views, results over dead operands."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch.kernel_recorder import table_of
from torchlite._dynamo.alias_analysis import AliasAnalysis
from torchlite._dynamo.buffer_reuse import reuse_buffers
from torchlite._dynamo.common_subexpression_elimination import eliminate_common_subexpressions
from torchlite._dynamo.compiled_function import CompiledFunction
from torchlite._dynamo.constant_folding import fold_constants
from torchlite._dynamo.dead_code_elimination import eliminate_dead_code
from torchlite._dynamo.matmul_epilogue_fusion import fuse_matmul_epilogues
from torchlite._dynamo.program_ir import Program, Slot, Step
from torchlite._dynamo.view_simplification import simplify_views

TABLE = table_of(torch.device("cpu"))
F32 = np.dtype("float32")


def step(name, out, *args):
    return Step(name, getattr(TABLE, name), args, {}, None if out is None else Slot(out))


def names(program):
    return [one.name for one in program.steps]


def apart(*slots):
    return {n: n for n in slots}


def test_repeated_steps_are_run_once():
    steps = [step("exp", 1, Slot(0)), step("exp", 2, Slot(0)), step("add", 3, Slot(1), Slot(2))]
    found = eliminate_common_subexpressions(Program(steps, [0], {}, [3]), apart(*range(4)))
    assert names(found) == ["exp", "add"] and found.steps[1].args == (Slot(1), Slot(1))


@pytest.mark.parametrize("why", ["returned", "written", "published", "between", "other number", "drawn"])
def test_repeated_steps_with_observable_effects_remain(why):
    steps = [step("mul", 1, Slot(0), 2), step("mul", 2, Slot(0), 2 if why != "other number" else 2.0)]
    outputs = [3]
    if why == "returned":
        outputs.append(2)
    if why == "written":
        steps.append(step("add_", None, Slot(1), Slot(0)))
    if why == "published":
        steps.append(Step("step", print, (), {}, None, kind="object", grads=((0, Slot(2)),)))
    if why == "between":
        steps.insert(1, step("add_", None, Slot(0), 1.0))
    if why == "drawn":
        steps = [Step("_random_uniform", TABLE._random_uniform, ((2,),), {}, Slot(n)) for n in (1, 2)]
    steps.append(step("add", 3, Slot(1), Slot(2)))
    found = eliminate_common_subexpressions(Program(steps, [0], {}, outputs), apart(*range(4)))
    assert len(found.steps) == len(steps)


def test_repeated_views_of_written_arrays_are_merged():
    place = {0: 0, 1: 0, 2: 0, 3: 3}
    steps = [step("t", 1, Slot(0)), step("t", 2, Slot(0)), step("add_", None, Slot(1), 1.0), step("exp", 3, Slot(2))]
    found = eliminate_common_subexpressions(Program(steps, [0], {}, [3]), place)
    assert names(found) == ["t", "add_", "exp"] and found.steps[2].args == (Slot(1),)


def test_constants_are_computed_once():
    steps = [
        step("_arange", 1, 0, 4, 1, torch.int64), step("add", 2, Slot(1), 3), step("mul", 3, Slot(0), Slot(2)),
        step("_arange", 4, 0, 4, 1, torch.int64), step("add_", None, Slot(4), 1),
        step("_arange", 5, 0, 2, 1, torch.int64),
    ]  # fmt: skip
    found = fold_constants(Program(steps, [0], {6: np.ones(2), 7: np.ones(3)}, [3, 5, 7]), apart(*range(8)), TABLE)
    assert names(found) == ["mul", "_arange", "add_", "_arange"]
    assert found.held[2].tolist() == [3, 4, 5, 6] and list(found.constants) == [7] and 6 in found.held
    assert list(eliminate_dead_code(found).held) == [2]


def test_views_of_views():
    def layout(shape):
        return shape, F32, True

    place = dict.fromkeys(range(8), 0)
    layouts = {0: layout((4, 6)), 1: layout((24,)), 2: layout((2, 12)), 3: layout((2, 12)), 4: ((12, 2), F32, False)}
    layouts |= {5: layout((2, 12)), 6: layout((4, 6))}
    steps = [
        step("reshape", 1, Slot(0), (24,)), step("_view", 2, Slot(1), (2, 12)), step("reshape", 3, Slot(2), (2, 12)),
        step("permute", 4, Slot(3), (1, 0)), step("permute", 5, Slot(4), (1, 0)), step("_view", 6, Slot(2), (4, 6)),
        step("exp", 7, Slot(6)),
    ]  # fmt: skip
    program = Program(steps, [0], {}, [5, 7])
    found = eliminate_dead_code(simplify_views(program, layouts, {**place, 7: 7}, TABLE.reshape))
    assert names(found) == ["reshape", "permute", "exp"]
    assert found.steps[0].args == (Slot(0), (2, 12)) and found.steps[1].args == (Slot(3), (0, 1))
    assert found.steps[2].args == (Slot(0),)


def test_results_overwrite_dead_operands():
    layouts = dict.fromkeys(range(8), ((2, 3), F32, True)) | {5: ((2, 3), np.dtype("float64"), True)}
    steps = [
        step("exp", 1, Slot(0)), step("add", 2, Slot(1), Slot(0)), step("add", 3, Slot(2), Slot(2)),
        step("mul", 4, Slot(3), Slot(5)), step("mul", 6, Slot(3), Slot(4)), step("sin", 7, Slot(6)),
    ]  # fmt: skip
    found = reuse_buffers(Program(steps, [0, 5], {}, [7]), layouts, apart(*range(8)))
    assert [one.kwargs.get("out") for one in found.steps] == [None, Slot(1), Slot(2), None, Slot(3), None]
    place = {**apart(*range(8)), 2: 1}  # a view of what is read later is not written
    steps[1] = step("reshape", 2, Slot(1), (2, 3))
    steps[2] = step("add", 3, Slot(2), Slot(0))
    steps.insert(3, step("cos", 5, Slot(1)))
    found = reuse_buffers(Program(steps, [0], {}, [7]), layouts, place)
    assert found.steps[2].kwargs == {}


def test_memory_that_is_written_or_seen_is_not_plain():
    steps = [step("exp", 1, Slot(0)), step("add_", None, Slot(1), 1.0), step("exp", 2, Slot(0)), step("t", 3, Slot(2))]
    memory = AliasAnalysis(Program(steps, [0], {}, [3]), {0: 0, 1: 1, 2: 2, 3: 2, 4: 4})
    assert [memory.is_plain(n) for n in range(6)] == [False, False, False, False, True, False]


def repeated(x, y):
    return (x.exp() + y) * (x.exp() + y), x.exp()


def views(x, y):
    a = x.reshape(-1).view(2, -1).flatten().reshape(x.shape)
    b = y.t().t().contiguous().unsqueeze(0).squeeze(0)
    a = a.detach() * 1
    c = a.view(-1)
    c.add_(1)
    return a + b * y, x.permute(1, 0).permute(1, 0) * 2, c.view(x.shape)


def constants(x, y):
    i = torch.arange(x.shape[0])
    one = torch.ones(x.shape[1]) * 3 + torch.tensor(2.0)
    own = torch.zeros(3)
    own.add_(1)
    return x[i] * one, torch.full((2,), 5.0), own, y + torch.arange(y.shape[1])


def drawn(x, y):
    a, b = torch.nn.functional.dropout(x, 0.5), torch.nn.functional.dropout(x, 0.5)
    return a + b, torch.rand(3), torch.rand(3) + torch.rand(3)


def reused(x, y):
    a = x * y
    b = a.exp() + a
    c = (b - x).abs()
    d = c.view(-1)
    c = c.sqrt()
    return c * y, d * 2, (c + 1).expand_as(c)


@pytest.mark.parametrize("function", [repeated, views, constants, drawn, reused])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_programs_match_eager(function, requires_grad):
    frame = CompiledFunction(function, function.__name__, fullgraph=True)
    for seed in range(5):
        results = []
        for one in (function, frame):
            torch.manual_seed(seed)
            x, y = (torch.randn(4, 6, requires_grad=requires_grad) for _ in range(2))
            found = one(x, y)
            if requires_grad:
                sum((t * t.detach().cos()).sum() for t in found if t.requires_grad).backward()
            for t in found:  # each has memory of its own, or shares it as in eager
                if not t.requires_grad:
                    t.add_(1)
            results.append([t.detach() for t in found] + ([x.grad, y.grad] if requires_grad else []))
        for s, t in zip(*results, strict=True):
            assert (s is None) is (t is None)
            assert s is None or torch.equal(s, t) and s.stride() == t.stride()
    assert frame.replays == 3


class Joining:
    """A device's table whose products can take sums and relu with them."""

    def __getattr__(self, name):
        return self if name == "backend" else (name,)

    def fused_matmul(self, name, then):
        return (name, then) if then == "relu" else None


def joined(steps, outputs, layouts, place=None):
    count = 1 + max(n for one in steps for n in one.makes())
    program = Program(steps, [0, 1, 2], {}, outputs)
    return fuse_matmul_epilogues(program, layouts, place or apart(*range(count)), Joining()).steps


SQUARES = dict.fromkeys(range(9), ((4, 4), F32, True)) | {2: ((4,), F32, True)}


def test_products_take_sums_and_elementwise_ops_with_them():
    steps = [
        step("mm", 3, Slot(0), Slot(1)), step("exp", 4, Slot(0)), step("add", 5, Slot(2), Slot(3)),
        step("relu", 6, Slot(5)), step("linear", 7, Slot(6), Slot(1), Slot(2)), step("exp", 8, Slot(7)),
    ]  # fmt: skip
    found = joined(steps, [4, 8], SQUARES)
    assert [one.name for one in found] == ["exp", "addmm", "linear", "exp"]
    assert found[1].kernel == ("addmm", "relu") and found[1].args == (Slot(2), Slot(0), Slot(1))
    assert found[1].out == Slot(6)
    assert found[2].kernel is TABLE.linear


@pytest.mark.parametrize(
    "why", ["returned", "read twice", "seen", "written", "half precision", "batch", "wider", "alpha"]
)
def test_products_that_others_read_stay(why):
    layouts, outputs, place = dict(SQUARES), [4], apart(*range(6))
    steps = [step("matmul", 3, Slot(0), Slot(1)), step("add", 4, Slot(3), Slot(2))]
    if why == "returned":
        outputs.append(3)
    if why == "read twice":
        steps.append(step("exp", 5, Slot(3)))
    if why == "seen":
        steps.insert(1, step("reshape", 5, Slot(3), (16,)))
        place[5] = 3
        outputs.append(5)
    if why == "written":
        steps.insert(1, step("add_", None, Slot(0), 1.0))
    if why == "half precision":
        layouts = {n: (shape, np.dtype("float16"), True) for n, (shape, _, _) in layouts.items()}
    if why == "batch":
        layouts[0] = layouts[3] = layouts[4] = ((2, 4, 4), F32, True)
    if why == "wider":
        layouts[2] = layouts[4] = ((3, 4, 4), F32, True)
    if why == "alpha":
        steps[1].kwargs = {"alpha": 2}
    assert len(joined(steps, outputs, layouts, place)) == len(steps)


def test_views_of_a_repeated_result():
    """The first result's memory is not written while a view of the second one, which it replaces, is alive."""

    def f(x, y):
        first, second = torch.tanh(x), torch.tanh(x)
        view = second.reshape(4, 2)
        product = first * 3.0
        return product + 1.0, view.reshape(8) - y

    compiled = torch.compile(f)
    x, y = torch.randn(8), torch.randn(8)
    for _ in range(4):
        for got, want in zip(compiled(x, y), f(x, y), strict=True):
            torch.testing.assert_close(got, want)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.as_strided(x.t(), (2, 3), (3, 1)).reshape(3, 2) * 2,
        lambda x: x.t().as_strided((6,), (1,)).reshape(2, 3) * 2,
        lambda x: x.t().reshape(6).reshape(2, 3) * 2,
    ],
)
def test_contiguous_views_of_transposed_tensors(function):
    compiled, x = torch.compile(function), torch.arange(6.0).reshape(2, 3)
    for _ in range(3):
        assert torch.equal(compiled(x), function(x))
