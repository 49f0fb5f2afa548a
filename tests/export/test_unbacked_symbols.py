"""Numbers that depend on elements in exported programs."""

import io

import pytest

import torchlite as torch
from torchlite.export import Dim, export
from torchlite.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

tensor = torch.tensor
X = torch.arange(15.0).reshape(5, 3) - 6


def checked_slice(x, n):
    k = n.item()
    torch._check(k >= 2)
    torch._check(k <= x.shape[0])
    return x[:k].sum() + torch.zeros(k + 1).sum(), x.new_ones((k * 2, 3)), k


def masks(x, mask):
    rows = mask.nonzero()
    return x[mask] * 2, torch.ones(rows.shape[0] * 2), rows.reshape(-1)


def lists(x, n):
    a, b = n.tolist()
    torch._check(a >= 0)
    torch._check(a + b == x.shape[0])
    first, second = torch.split(x, [a, b])
    return first.sum(), second.sum(0)


def selected(x):
    found = x.masked_select(x > 0)
    return found.view(-1, 1) * 2, found.shape[0], torch.cat([found, x.reshape(-1)]).sum()


def indexed(x, n):
    k = n.item()
    torch._check(torch.sym_not(k < 0))
    torch._check(k < x.shape[0])
    return x[k] * 2, torch.arange(k).reshape(1, k), torch.sym_max(k, 2)


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def plain(values):
    return [value.tolist() if isinstance(value, torch.Tensor) else value for value in values]


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (checked_slice, [(X, tensor(3)), (X, tensor(5))]),
        (masks, [(X, tensor([1, 0, 1, 1, 0]).bool()), (X, tensor([1, 1, 1, 1, 0]).bool())]),
        (lists, [(X, tensor([2, 3])), (X, tensor([4, 1]))]),
        (selected, [(X,), (X - 3,)]),
        (indexed, [(X, tensor(3)), (X, tensor(1))]),
    ],
)
def test_a_number_of_elements_is_a_node(function, calls):
    program = export(Module(function), calls[0])
    held = io.BytesIO()
    torch.export.save(program, held)
    held.seek(0)
    for found in (program, torch.export.load(held), program.run_decompositions()):
        for args in calls:
            assert plain(found.module()(*args)) == plain(function(*args))


def test_checks_are_asserted_and_narrow_the_range():
    program = export(Module(checked_slice), (X, tensor(3)))
    assert str(program.range_constraints["u0"]) == "VR[2, 5]"
    for wrong, text in ((1, "u0 >= 2"), (6, "u0 <= 5")):
        with pytest.raises(RuntimeError, match=f"Runtime assertion failed for expression {text} on node"):
            program.module()(X, tensor(wrong))


def test_with_sizes_that_vary():
    program = export(_Named(), (X, tensor(3)), dynamic_shapes={"x": {0: Dim("n")}, "n": None})
    found = program.module()(X[:3], tensor(7))
    assert found[0].shape == (3,) and found[1].shape == (7,) and found[2] == 3


class _Named(torch.nn.Module):
    def forward(self, x, n):
        k = n.item()
        torch._check(k >= 0)
        return x.reshape(-1)[: x.shape[0]], torch.zeros(k), x.shape[0]


@pytest.mark.parametrize("kind", ["a comparison", "a loop", "the truth of a number"])
def test_data_dependent_decisions_raise_with_the_line(kind):
    def function(x, n):
        k = n.item()
        if kind == "a comparison" and k > 3:  # here
            return x + 1
        for _ in range(k if kind == "a loop" else 1):
            x = x * 2  # here
        if kind == "the truth of a number" and k:  # here
            return x
        return x

    with pytest.raises(GuardOnDataDependentSymNode, match="Could not guard on data-dependent") as caught:
        export(Module(function), (X, tensor(3)))
    assert "# here" in str(caught.value)


def test_ranges_decide():
    def function(x, n):
        k = n.item()
        torch._check(k > 4)
        return x + 1 if k >= 3 else x

    assert torch.equal(export(Module(function), (X, tensor(6))).module()(X, tensor(5)), X + 1)
    with pytest.raises(TypeError, match="cond must be a bool"):
        torch._check(tensor(True))
