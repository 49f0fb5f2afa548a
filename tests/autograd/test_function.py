"""Custom Functions, saved-tensor hooks, anomaly mode, checkpoint, gradcheck, functional."""

from __future__ import annotations

import warnings

import pytest

import torchlite as torch
from torchlite.autograd import Function
from torchlite.autograd.function import once_differentiable
from torchlite.autograd.graph import save_on_cpu, saved_tensors_hooks
from torchlite.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


class ExpOfOutput(Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


def point(device, *values):
    return torch.tensor(values, dtype=torch.float64, device=device, requires_grad=True)


@pytest.mark.parametrize("function", [Cube, ExpOfOutput])
def test_custom_function_of_any_order(device, function):
    x = point(device, 0.5, 1.5)
    assert torch.autograd.gradcheck(function.apply, (x,))
    assert torch.autograd.gradgradcheck(function.apply, (x,))


def test_several_inputs_and_outputs_and_needs(device):
    class Both(Function):
        @staticmethod
        def forward(ctx, a, k, b):
            ctx.k, ctx.seen = k, ctx.needs_input_grad
            return a * k, b + 1, a.detach().long()

        @staticmethod
        def backward(ctx, ga, gb, gn):
            assert ctx.seen == (True, False, False)
            return ga * ctx.k, None, gb

    a, b = point(device, 1.0), torch.ones(1, dtype=torch.float64, device=device)
    first, second, third = Both.apply(a, 3, b)
    assert not third.requires_grad
    (first.sum() + second.sum()).backward()
    assert a.grad.tolist() == [3.0]


def test_mark_dirty(device):
    class AddOne(Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 10

    x = point(device, 1.0)
    y = x * 2
    z = AddOne.apply(y)
    assert z is y and y._version == 2 and y.grad_fn.name() == "AddOneBackward"
    z.sum().backward()
    assert x.grad.tolist() == [20.0]
    plain = point(device, 1.0).detach()
    assert AddOne.apply(plain) is plain and plain._version == 2  # the write of `forward`, and the mark


def test_once_differentiable(device):
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * 2

    x = point(device, 1.0)
    (g,) = torch.autograd.grad((Once.apply(x) ** 2).sum(), x, create_graph=True)
    assert g.item() == 8.0
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


def test_the_node_of_once_differentiable_has_an_edge_for_each_gradient():
    class F(Function):
        @staticmethod
        def forward(ctx, a, number, b):
            return a * number + b

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * 2, None, g

    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    g = torch.ones(2, requires_grad=True)
    first, second = torch.autograd.grad(F.apply(a, 2, b), [a, b], g, create_graph=True)
    node = first.grad_fn
    assert node.name().endswith("Error") and node is second.grad_fn
    assert [edge and edge.name() for edge, _ in node.next_functions] == [
        "torch::autograd::AccumulateGrad", None, "torch::autograd::AccumulateGrad",
    ]  # fmt: skip


def test_wrong_number_of_gradients(device):
    class Bad(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(RuntimeError, match=r"returned an incorrect number of gradients \(expected 2, got 1\)"):
        Bad.apply(point(device, 1.0), point(device, 1.0)).sum().backward()


def test_a_saved_input_that_changes_is_an_error(device):
    x = point(device, 1.0)
    y = x * 1
    z = Cube.apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_unused_gradients_are_zeros_or_none(device):
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append(b)
            return a, None

    for materialize in (True, False):
        Two.apply(point(device, 1.0), materialize)[0].sum().backward()
    assert seen[0].tolist() == [0.0] and seen[1] is None


def test_objects_are_saved_for_backward_only_where_nothing_is_saved(device):
    class Doubled(Function):
        @staticmethod
        def forward(ctx, x, other):
            ctx.save_for_backward(x, other)
            return x * 2

    x = torch.ones(2, device=device)
    assert Doubled.apply(x, 3).tolist() == [2, 2]
    x.requires_grad_()
    with pytest.raises(TypeError, match="can only save variables, but argument 1 is of type int"):
        Doubled.apply(x, 3)
    with torch.no_grad():
        assert Doubled.apply(x, 3).tolist() == [2, 2]


def test_saved_tensor_hooks_see_every_saved_value(device):
    x = point(device, 1.0, 2.0)
    packed = []
    with saved_tensors_hooks(lambda t: packed.append(tuple(t.shape)) or t.clone(), lambda t: t):
        y = (x.exp() * x).sum()
    assert len(packed) == 3
    y.backward()
    expected = torch.autograd.grad((x.exp() * x).sum(), x)[0]
    assert torch.equal(x.grad, expected)
    with save_on_cpu():
        z = (x.tanh() * x).sum()
    z.backward()


def test_saved_tensor_hooks_with_create_graph(device):
    x = point(device, 1.0, 2.0)
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [6.0, 12.0]


def test_anomaly_mode_points_at_the_forward_line(device):
    x = point(device, 1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with (
            torch.autograd.detect_anomaly(),
            pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"),
        ):
            guilty = (x - 1).sqrt()
            (guilty * 0).sum().backward()
    assert any("guilty = (x - 1).sqrt()" in str(w.message) for w in caught)
    assert (x * 1).grad_fn._trace is None


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint_gives_the_same_gradients(device, reentrant):
    w = torch.randn(3, 3, dtype=torch.float64, device=device, requires_grad=True)
    x = torch.randn(3, 3, dtype=torch.float64, device=device, requires_grad=True)
    runs = []

    def part(a):
        runs.append(1)
        return torch.nn.functional.dropout((a @ w).tanh().exp(), 0.5)

    torch.manual_seed(1)
    part(x).sum().backward()
    expected = x.grad.clone(), w.grad.clone()
    x.grad = w.grad = None
    torch.manual_seed(1)
    checkpoint(part, x, use_reentrant=reentrant).sum().backward()
    assert torch.equal(x.grad, expected[0]) and torch.equal(w.grad, expected[1]) and len(runs) == 3


def test_checkpoint_notices_another_second_run(device):
    x = point(device, 1.0)
    depth = [3]

    def part(a):
        for _ in range(depth[0]):
            a = a.exp()
        return a

    y = checkpoint(part, x, use_reentrant=False)
    depth[0] = 2
    with pytest.raises(CheckpointError, match="A different number of tensors was saved"):
        y.sum().backward()


def test_checkpoint_sequential(device):
    layers = [torch.exp, torch.tanh, torch.sin, torch.cos]
    x = point(device, 0.3)
    checkpoint_sequential(layers, 2, x, use_reentrant=False).sum().backward()
    expected = torch.autograd.grad(x.exp().tanh().sin().cos().sum(), x)[0]
    assert torch.allclose(x.grad, expected)


def test_gradcheck_finds_a_wrong_derivative(device):
    class Wrong(Cube):
        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = point(device, 1.0, 2.0)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for input 0"):
        torch.autograd.gradcheck(Wrong.apply, (x,))
    assert not torch.autograd.gradcheck(Wrong.apply, (x,), raise_exception=False, fast_mode=True)


def test_functional(device):
    from torchlite.autograd import functional as F

    x = torch.tensor([1.0, 2.0], dtype=torch.float64, device=device)
    assert F.jacobian(lambda a: a * a, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert F.hessian(lambda a: (a**3).sum(), x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    v = torch.ones_like(x)
    assert F.vjp(lambda a: a**2, x, v)[1].tolist() == F.jvp(lambda a: a**2, x, v)[1].tolist() == [2.0, 4.0]
    assert F.hvp(lambda a: (a**3).sum(), x, v)[1].tolist() == [6.0, 12.0]
    nested = F.jacobian(lambda a, b: (a * b, a.sum()), (x, x))
    assert nested[0][1].tolist() == [[1.0, 0.0], [0.0, 2.0]] and nested[1][0].tolist() == [1.0, 1.0]


def test_next_functions_are_those_of_tensors():
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, y):
            return x * factor + y

        @staticmethod
        def backward(ctx, g):
            return g, None, g

    x, y = torch.ones(2), torch.ones(2, requires_grad=True)
    pairs = Scaled.apply(x, 3.0, y).grad_fn.next_functions
    assert pairs[0] == (None, 0) and pairs[1][0].variable is y and len(pairs) == 2


def test_functions_of_tensors_beside_ones_with_an_inner_history():
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
    with pytest.raises(
        NotImplementedError, match=r"a custom autograd.Function takes no nested tensor: give it `values"
    ):
        Cube.apply(nested)
    plain = torch.tensor(2.0, requires_grad=True)
    Cube.apply(plain).backward()
    assert plain.grad == 12
