"""Exported programs whose sizes vary: what Python computes of sizes is computed again for other sizes."""

import io
import math
import operator

import pytest

import torchlite as torch
from torchlite.export import Dim, export
from torchlite.export._checked_functions import CHECKED
from torchlite.fx.experimental.symbolic_shapes import ConstraintViolationError

F = torch.nn.functional


def padded(x):
    n = x.shape[1]
    y = F.pad(x, (0, (4 - n % 4) % 4))
    return y.view(x.shape[0], y.shape[1] // 4, 4).mean(-1), y


def rounded(x):
    n, m = x.shape
    return x.new_zeros((n + 3) // 4 * 4), x.new_zeros(-(-m // 4)), x.new_zeros(n * (n - 1) // 2), x[: n // 2, m // 3 :]


def extremes(x):
    return x[: min(x.shape[0], 5)], x.new_ones(max(x.shape)), x.new_ones(torch.sym_max(x.shape[0], 6))


def fractions(x):
    n, m = x.shape
    return x / math.sqrt(m), x * (1.0 / n), x * n**-0.5, x.clamp(max=n / 2), x * 0.5 * n, x.new_zeros(math.ceil(m / 4))


def tensors(x):
    return torch.tensor(x.shape[0]) * 2, torch.tensor([x.shape[1], 3]), torch.tensor(x.shape[0] / 2)


def shapes(x):
    y = torch.cat([x, x[:1]]).unsqueeze(1).expand(-1, 2, -1)
    return y.reshape(y.shape[0] * 2, -1).t() @ torch.ones(y.size(0) * 2), y.flatten().numel(), y.shape, len(x)


def masks(x):
    n = x.shape[1]
    i, j = torch.triu_indices(n, n, 1)
    seen = torch.ones(n, n, dtype=torch.bool).tril()
    return (x.t() @ x)[i, j], seen, torch.arange(n)[:, None] - torch.arange(n) + n - 1


def windows(x):
    image = x[None, None].repeat(1, 2, 3, 3)
    y = F.conv2d(image, torch.ones(2, 2, 3, 3), stride=2, padding=1)
    return F.interpolate(y, size=image.shape[2:]), y.flatten(2).transpose(1, 2), x.unfold(1, 2, 1)


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def made(*shape):
    return torch.arange(float(math.prod(shape))).reshape(shape).sin()


@pytest.mark.parametrize("function", [padded, rounded, extremes, fractions, tensors, shapes, masks, windows])
def test_a_program_of_sizes(function):
    program = export(Module(function), (made(4, 6),), dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},))
    held = io.BytesIO()
    torch.export.save(program, held)
    held.seek(0)
    for found in (program, torch.export.load(held), program.run_decompositions()):
        for shape in ((4, 6), (7, 5), (3, 9), (17, 32)):
            x = made(*shape)
            torch.testing.assert_close(found.module()(x), function(x))


def test_a_decision_narrows_the_range_of_a_size():
    program = export(
        Module(lambda x: x * 2 if x.shape[0] > 2 else x), (made(4, 6),), dynamic_shapes=({0: Dim.DYNAMIC},)
    )
    assert program.range_constraints["s0"].lower == 3
    assert program._guards_code == ["L['x'].size()[0] > 2"]
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] >"):
        program.module()(made(2, 6))


def test_guards_on_sizes_are_checked_at_the_call():
    def halves(x):
        torch._check(x.shape[0] % 2 == 0)
        return x.reshape(2, -1, 6).sum(0)

    program = export(Module(halves), (made(4, 6),), dynamic_shapes=({0: Dim.DYNAMIC},))
    assert program.module()(made(10, 6)).shape == (5, 6)
    assert program._guards_code == ["(L['x'].size()[0] % 2) == 0"]
    with pytest.raises(AssertionError, match=r"Guard failed: \(x.size\(\)\[0\] % 2\) == 0"):
        program.module()(made(5, 6))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x * 2 if x.shape[0] > 2 else x, r"generated guard 3 <= n and n <= IntInfinity\(\)"),
        (lambda x: x * 2 if x.shape[0] % 2 == 0 else x, r"generated guard \(n % 2\) == 0"),
        (lambda x: x * 2 if x.shape[0] == 4 else x, r"You marked n as dynamic but .* a constant \(4\)"),
    ],
)
def test_a_named_size_that_a_program_decides_by(function, text):
    with pytest.raises(torch._dynamo.exc.UserError, match=text):
        export(Module(function), (made(4, 6),), dynamic_shapes=({0: Dim("n")},))


def test_a_size_that_is_a_multiple():
    def pairs(x):
        return x.reshape(x.shape[0], -1, 2).sum(-1), x[:, ::2] + x[:, 1::2]

    program = export(Module(pairs), (made(4, 6),), dynamic_shapes=({1: 2 * Dim("half")},))
    for found in (program, program.run_decompositions()):
        assert [y.shape for y in found.module()(made(4, 10))] == [(4, 5), (4, 5)]


class Several(torch.nn.Module):
    def forward(self, x, *more, scale=None, **named):
        return x + sum(more) + sum(named.values()) + (0 if scale is None else scale)


@pytest.mark.parametrize(
    "shapes",
    [
        ({0: Dim.DYNAMIC}, ({0: Dim.AUTO},), {0: Dim.DYNAMIC}, {"k": {0: Dim.DYNAMIC}}),
        {"x": {0: Dim("n")}, "more": ({0: Dim("n")},), "scale": (Dim("n"), 3), "named": {"k": {0: Dim("n")}}},
    ],
)
def test_sizes_of_many_inputs_are_one(shapes):
    values = [made(4, 3) * i for i in range(4)]
    program = export(Several(), tuple(values[:2]), {"scale": values[2], "k": values[3]}, dynamic_shapes=shapes)
    assert len(program.range_constraints) == 1
    again = [made(7, 3) * i for i in range(4)]
    torch.testing.assert_close(program.module()(*again[:2], scale=again[2], k=again[3]), sum(again))


@pytest.mark.parametrize(
    ("shapes", "kind", "text"),
    [
        ({"x": {0: Dim.AUTO}}, torch._dynamo.exc.UserError, r"must be the arg names \['x', 'more'\]"),
        (({0: Dim.AUTO}, {0: Dim.AUTO}), torch._dynamo.exc.UserError, "Detected mismatch between the structure"),
        (({0: Dim.AUTO},), torch._dynamo.exc.UserError, "`inputs` has 2 elements, but `dynamic_shapes` has 1 elements"),
        (({0: 5}, None), ConstraintViolationError, r"constraint of 5 does not match input size of 4, for L\['x'\]"),
    ],
)
def test_dynamic_shapes_that_do_not_match_the_inputs_raise(shapes, kind, text):
    with pytest.raises(kind, match=text):
        export(Several(), (made(4, 3), made(4, 3)), dynamic_shapes=shapes)


def test_numbers_of_a_file_are_checked_as_keywords_too():
    run = CHECKED[round]
    assert run(1234, ndigits=-2) == 1200
    with pytest.raises(OverflowError, match="round: an integer of 4000000000 bits"):
        run(1234, ndigits=-(10**9))
    with pytest.raises(OverflowError, match="round: an integer of 4000000000 bits"):
        run(ndigits=-(10**9), number=1234)


def test_quotients_of_sizes_are_nodes_with_their_values():
    class Scaled(torch.nn.Module):
        def forward(self, x):
            return x * (3.0 / x.shape[0]), x * (1 / math.sqrt(x.shape[0]))

    program = torch.export.export(Scaled(), (torch.ones(4, 2),), dynamic_shapes=({0: Dim("n", min=2, max=9)},))
    found = [str(node.meta["val"]) for node in program.graph.nodes if node.target is operator.truediv]
    assert sorted(found) == ["truediv(1.0, sym_sqrt(sym_float(s0)))", "truediv(3.0, sym_float(s0))"]
    for ours, eager in zip(program.module()(torch.ones(6, 2)), Scaled()(torch.ones(6, 2)), strict=True):
        torch.testing.assert_close(ours, eager)
