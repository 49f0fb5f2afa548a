"""Fusion of pointwise steps: groups, their kernels, and results of large arrays."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch.kernel_recorder import table_of
from torchlite._dynamo.compiled_function import CompiledFunction
from torchlite._dynamo.dead_code_elimination import eliminate_dead_code
from torchlite._dynamo.fusion_groups import FusionGroup, form_fusion_groups
from torchlite._dynamo.pointwise_fusion import fuse_pointwise, is_ufunc
from torchlite._dynamo.program_ir import Program, Slot, Step, is_same_program

TABLE = table_of(torch.device("cpu"))


def step(name, out, *args):
    return Step(name, getattr(TABLE, name), args, {}, Slot(out))


def test_dead_code_is_removed_and_writes_remain():
    a, b, c = map(Slot, range(3))
    program = Program(
        [step("exp", 3, a), step("add", 4, b, c), step("sin", 5, Slot(3)), Step("add_", TABLE.add_, (a, b), {}, None),
         Step("_random_uniform", TABLE._random_uniform, ((2,), torch.float32, 0.0, 1.0, None), {}, Slot(6))],
        [0, 1, 2], {7: np.zeros(2)}, [4],
    )  # fmt: skip
    found = eliminate_dead_code(program)
    assert [one.name for one in found.steps] == ["add", "add_", "_random_uniform"] and not found.constants
    assert is_same_program(eliminate_dead_code(found), found)


def test_consecutive_ops_are_fused():
    shape = (512, 256)
    x, y = np.random.default_rng(0).standard_normal((2, *shape)).astype(np.float32)
    steps = [
        step("mul", 2, Slot(0), 2.0), step("add", 3, Slot(2), Slot(1)), step("tanh", 4, Slot(3)),
        Step("sum", TABLE.sum, (Slot(4), 0), {}, Slot(5)), step("exp", 6, Slot(3)),
    ]  # fmt: skip
    layouts = {n: (shape, np.dtype("float32"), True) for n in (0, 1, 2, 3, 4, 6)}
    program = fuse_pointwise(Program(steps, [0, 1], {}, [5, 6]), layouts, TABLE.backend)
    assert [one.name for one in program.steps] == ["mul_add_tanh", "sum", "exp"]
    chain = program.steps[0]
    assert chain.args == (Slot(0), Slot(1)) and chain.out == (Slot(3), Slot(4))
    total, bent = chain.kernel(x, y)
    np.testing.assert_array_equal(total, x * 2 + y)
    np.testing.assert_array_equal(bent, np.tanh(x * 2 + y))
    small = {n: ((2, 2), np.dtype("float32"), True) for n in layouts}
    assert len(fuse_pointwise(Program(steps, [0, 1], {}, [5, 6]), small, TABLE.backend).steps) == 5


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("ending", [("relu",), ("relu6",), ("hardtanh", -0.5, 0.5), ("sigmoid",)])
def test_kernels_of_a_chain_write_where_results_are_wanted(ending, dtype):
    shape = (512, 256)
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    x[0, :5] = np.nan, np.inf, -np.inf, -0.0, 0.0
    name, *bounds = ending
    steps = [
        step("mul", 1, Slot(0), 2.0), step(name, 2, Slot(1), *bounds), step("neg", 3, Slot(2)),
        step(name, 4, Slot(3), *bounds),
    ]  # fmt: skip
    layouts = {n: (shape, np.dtype(dtype), True) for n in range(5)}
    (chain,) = fuse_pointwise(Program(steps, [0], {}, [2, 4]), layouts, TABLE.backend).steps
    apart = getattr(TABLE, name)
    first = apart(TABLE.mul(x, 2.0), *bounds)
    want = first, apart(-first, *bounds)
    for a, b in zip(chain.kernel(x), want, strict=True):
        if TABLE.backend.engine() == "numpy" or bounds:
            np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))
        else:  # an engine's exponential function is another
            np.testing.assert_allclose(a, b, rtol=1e-3 if dtype == "float16" else 1e-6)
    if TABLE.backend.engine() == "numpy" and dtype != "float16":
        assert chain.kernel.text.count(", into=o") == 2


F32 = np.dtype("float32")


def names(found):
    return [[s.name for s in one.all()] if isinstance(one, FusionGroup) else one.name for one in found]


def test_groups_extend_to_their_readers_and_end_at_writes():
    shape = (8, 4)
    steps = [
        step("mul", 2, Slot(0), 2.0), step("exp", 3, Slot(1)), step("matmul", 4, Slot(0), Slot(1)),
        step("sin", 5, Slot(3)), step("add", 6, Slot(2), Slot(0)), step("sum", 7, Slot(5), 0),
        step("cos", 8, Slot(6)), Step("add_", TABLE.add_, (Slot(0), Slot(1)), {}, None), step("tan", 9, Slot(8)),
        step("abs", 10, Slot(9)), step("mul", 11, Slot(10), Slot(8)),
    ]  # fmt: skip
    layouts = dict.fromkeys(range(12), (shape, F32, True))
    layouts[4], layouts[7] = ((8, 8), F32, True), ((4,), F32, True)
    found = form_fusion_groups(Program(steps, [0, 1], {}, [4, 7, 8, 11]), layouts, 1)
    assert names(found) == ["matmul", ["exp", "sin"], "sum", ["mul", "add", "cos"], "add_", ["tan", "abs", "mul"]]
    assert found[3].given == [0] and found[3].outs == [8] and found[5].given == [8] and found[5].outs == [11]
    assert names(form_fusion_groups(Program(steps, [0, 1], {}, [4, 7, 8, 11]), layouts, 64))[:2] == ["mul", "exp"]


def test_groups_of_one_shape_become_one_where_a_step_reads_both():
    layouts = dict.fromkeys(range(8), ((8, 4), F32, True))
    steps = [step("exp", 2, Slot(0)), step("sin", 3, Slot(1)), step("add", 4, Slot(2), Slot(3))]
    assert names(form_fusion_groups(Program(steps, [0, 1], {}, [4]), layouts, 1)) == [["exp", "sin", "add"]]
    many = [step("exp", n + 1, Slot(n)) for n in range(80)]
    sizes = [
        len(one.steps)
        for one in form_fusion_groups(Program(many, [0], {}, [80]), dict.fromkeys(range(99), layouts[0]), 1)
    ]
    assert sizes == [32, 32, 16]


def test_groups_end_with_a_reduction_of_rows():
    layouts = {0: ((6, 8, 4), F32, True), 1: ((4,), F32, True), 2: ((6, 8, 4), F32, True), 3: ((6, 8), F32, True)}
    for dim, joins in ((-1, True), (2, True), ((2,), True), ((1, 2), True), (1, False), (None, False), ((0, 2), False)):
        steps = [step("mul", 2, Slot(0), Slot(1)), step("sum", 3, Slot(2), dim)]
        found = form_fusion_groups(Program(steps, [0, 1], {}, [3]), layouts, 1)
        assert names(found) == ([["mul", "sum"]] if joins else ["mul", "sum"])


@pytest.mark.parametrize("shapes", [
    [(300, 40, 30), (30,), (300, 1, 1)], [(300, 40, 30), (40, 30), ()], [(1, 200000), (200000,), (1, 1)],
    [(4, 100, 400), (4, 100, 1), (400,)], [(2, 100, 1000), (1, 100, 1), (1,)],
])  # fmt: skip
@pytest.mark.parametrize("end", ["", "sum", "mean", "amax", "softmax"])
def test_chains_with_broadcasting_and_reductions(shapes, end):
    def function(x, y, z):
        found = ((x * y + z).tanh() - y) * z
        return found if not end else getattr(found, end)(-1)

    frame = CompiledFunction(function, "chain", fullgraph=True)
    for seed in range(3):
        torch.manual_seed(seed)
        given = [torch.randn(shape) for shape in shapes]
        want, got = function(*given), frame(*given)
    assert frame.replays == 1
    replay = next(iter(frame.variants.values()))[0].replay
    assert "mul_add_tanh" in replay.forward.text or TABLE.backend.engine() != "numpy"
    if end in ("sum", "mean", "softmax") or TABLE.backend.engine() != "numpy":  # sums by blocks; functions of engines
        torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-5)
    else:
        assert torch.equal(got, want) and got.stride() == want.stride()


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
def test_large_chains_match_eager(function, requires_grad):
    frame = CompiledFunction(function, "chain", fullgraph=True)
    for seed in range(4):
        torch.manual_seed(seed)
        x, y = torch.randn(400, 400), torch.randn(400, 400)
        results, weights = [], []
        for one in (function, frame):
            a, b = (t.clone().requires_grad_(requires_grad) for t in (x, y))
            found = one(a, b)
            found = found if isinstance(found, tuple) else (found,)
            grads = ()
            if requires_grad:
                outs = [t for t in found if t.requires_grad]
                weights = weights or [torch.cos(t.detach()) for t in outs]
                grads = torch.autograd.grad(outs, (a, b), weights)
            results.append([t.detach() for t in (*found, *grads)])
        bound = 0 if TABLE.backend.engine() == "numpy" else 1e-6  # functions of engines
        for s, t in zip(*results, strict=True):
            most = float(s.abs().nan_to_num().max()) if s.dtype.is_floating_point or s.dtype.is_complex else 0.0
            torch.testing.assert_close(s, t, equal_nan=True, rtol=bound, atol=bound * most)
            assert s.stride() == t.stride()
    assert frame.replays == 2


def test_constants_are_not_overwritten():
    def numbered(x, mask):
        number = 0
        number += (torch.arange(6)[:, None] - torch.arange(6) > 0).to(torch.long) * 2
        number += torch.where(mask, number, 1)
        return number * x

    compiled = torch.compile(numbered, fullgraph=True)
    x, mask = torch.ones(1, dtype=torch.long), torch.eye(6) > 0
    for _ in range(5):
        assert compiled(x, mask).equal(numbered(x, mask))


@pytest.mark.skipif(TABLE.backend.engine() != "numpy", reason="engines have quicker kernels of the two passes")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("activation", [
    torch.nn.functional.gelu, lambda x: torch.nn.functional.gelu(x, approximate="tanh"), torch.nn.functional.silu,
])  # fmt: skip
def test_slopes_are_saved_for_the_backward_step(activation, dtype):
    def step(x, weight, shown=False):
        before = x @ weight
        out = activation(before)
        (out * out.detach().cos()).sum().backward()
        return (out.detach(), before.detach()) if shown else out.detach()

    for shown in (False, True):
        frame = CompiledFunction(step, "slope", fullgraph=True)
        for seed in range(3):
            torch.manual_seed(seed)
            x, weight = torch.randn(500, 40, dtype=dtype) * 3, torch.randn(40, 300, dtype=dtype)
            weights = [weight.clone().requires_grad_(), weight.clone().requires_grad_()]
            x[0] = torch.tensor([float("inf"), float("-inf"), float("nan"), 0.0] * 10)
            want, got = step(x, weights[0], shown), frame(x, weights[1], shown)
        assert frame.replays == 1
        text = next(iter(frame.variants.values()))[0].replay.forward.text
        assert ("_backward(" in text) is shown  # the input is returned: it would be held beside the slope
        wanted, found = (want, got) if shown else ([want], [got])
        for a, b in zip((*wanted, weights[0].grad), (*found, weights[1].grad), strict=True):
            assert a.numpy().tobytes() == b.numpy().tobytes()


def test_ufuncs_are_recognized_inside_layout_wrappers():
    """Once a program asked for channels last, pointwise kernels of several operands lay their results out."""
    torch.ones(1, 2, 3, 4).to(memory_format=torch.channels_last)
    assert hasattr(TABLE.add, "without_rule") and is_ufunc(step("add", 2, Slot(0), Slot(1)))
    shape, kind = (400, 400), np.dtype(np.float32)
    program = Program(
        [step("mul", 2, Slot(0), 2.0), step("sub", 3, Slot(2), Slot(1)), step("exp", 4, Slot(3))], [0, 1], {}, [4]
    )
    (found,) = fuse_pointwise(program, dict.fromkeys(range(5), (shape, kind, True)), TABLE.backend).steps
    if TABLE.backend.engine() == "numpy":
        assert found.kernel.text.count("out=") == 3
