"""The graph as programs see it: nodes, their saved values, edges, hooks, nested passes."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite.autograd import Function
from torchlite.autograd.graph import GradientEdge, Node, get_gradient_edge, register_multi_grad_hook


def leaf(device, *shape):
    return torch.ones(shape, device=device, requires_grad=True)


def test_nodes_have_pytorchs_names_and_lead_to_leaves(device):
    x, y = leaf(device, 4, 4), leaf(device, 4, 4)
    names = {
        "AddBackward0": x + y, "MulBackward0": x * 2, "DivBackward0": x / 2, "PowBackward0": x**2,
        "PowBackward1": x**y, "SumBackward0": x.sum(), "SumBackward1": x.sum(0), "MeanBackward0": x.mean(),
        "MmBackward0": x @ y, "MvBackward0": x @ y[0], "SelectBackward0": x[0], "SliceBackward0": x[1:],
        "IndexBackward0": x[[0, 1]], "UnsqueezeBackward0": x[None], "SplitBackward0": x.split(2)[0],
        "SplitWithSizesBackward0": x.split([1, 3])[0], "UnbindBackward0": x.unbind()[1], "ViewBackward0": x.view(-1),
        "MaxBackward1": x.max(), "MaxBackward0": x.max(0).values, "ClampBackward1": x.clamp(0, 1),
        "AddmmBackward0": torch.nn.functional.linear(x, y, x[0]), "ToCopyBackward0": x.to(torch.float16),
        "NativeLayerNormBackward0": torch.nn.functional.layer_norm(x, (4,)),
    }  # fmt: skip
    for name, z in names.items():
        assert z.grad_fn.name() == name and type(z.grad_fn).__name__ == name
        assert isinstance(z.grad_fn, Node) and Node not in type(z.grad_fn).mro()
        assert f"grad_fn=<{name}>" in repr(z)
    z = x * 2
    node = z.grad_fn
    assert node is z.grad_fn and len(node.next_functions) == 2 and node.next_functions[1] == (None, 0)
    accumulator, index = node.next_functions[0]
    assert accumulator.variable is x and index == 0 and accumulator is node.next_functions[0][0]
    assert accumulator.name() == "torch::autograd::AccumulateGrad" and accumulator.next_functions == ()
    assert type(accumulator).__name__ == "AccumulateGrad" and isinstance(
        accumulator, torch._C._functions.AccumulateGrad
    )
    node.metadata["mine"] = 1
    assert z.grad_fn.metadata == {"mine": 1} and node.requires_grad
    assert [n.tolist() for n in (x * y).grad_fn(torch.ones(4, 4, device=device))] == [[[1.0] * 4] * 4] * 2
    with pytest.raises(TypeError, match="expected 1 arguments, got 2"):
        node(x, x)


def test_saved_attributes_of_nodes(device):
    x, y = leaf(device, 2), leaf(device, 2)
    node = (x * y).grad_fn
    assert node._saved_self is x and node._saved_other is y
    assert {"_saved_self", "_raw_saved_other"} <= set(dir(node))
    assert (x * 2).grad_fn._saved_self is None
    z = x.exp()
    assert z.grad_fn._saved_result.tolist() == z.tolist() and z.grad_fn._saved_result.grad_fn is z.grad_fn
    assert (x.sum(0)).grad_fn._saved_self_sym_sizes == (2,) and x.sum(0).grad_fn._saved_dim == 0
    with pytest.raises(AttributeError, match="no attribute '_saved_nonsense'"):
        node._saved_nonsense
    z.sum().backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors after they have"):
        z.grad_fn._saved_result
    z = (x * 1) ** 2
    z.grad_fn._raw_saved_self.register_hooks(lambda t: 2 * t, lambda t: t)
    assert z.grad_fn._saved_self.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        z.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    (g,) = torch.autograd.grad(z.sum(), x)
    assert g.tolist() == [4, 4]
    with pytest.raises(RuntimeError, match="from Python is forbidden"):
        torch.autograd.SavedTensor()


def test_saved_tensor_hooks_in_every_order_of_derivative(device):
    x = leaf(device, 1)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: 2 * t, lambda t: t):
        y = x**3
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.item() == 12
    (h,) = torch.autograd.grad(g, x)
    assert h.item() == 12  # 3 * 2 * (2 * x), as the tensor that came out counts
    with (
        pytest.raises(RuntimeError, match="pack hook is modifying its input"),
        torch.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t),
    ):
        x.exp()
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()


@pytest.mark.parametrize("of_leaf", [True, False])
def test_tensor_hook_results_are_checked(device, of_leaf):
    def shorter(g):
        return g[:1]

    for hook, error, words in (
        (shorter, RuntimeError, "hook 'shorter' has changed the size of value"),
        (lambda g: "text", TypeError, "expected Variable, but hook returned 'str'"),
        (lambda g: g.double(), RuntimeError, "has changed the type of value"),
    ):
        x = leaf(device, 2)
        y = x * 2
        (x if of_leaf else y).register_hook(hook)
        with pytest.raises(error, match=words):
            y.sum().backward()


def test_node_hook_results_are_checked(device):
    for before, hook, error, words in (
        (True, lambda g: g[0], TypeError, "expected tuple, but hook returned 'Tensor'"),
        (True, lambda g: (g[0], g[0]), RuntimeError, r"incorrect number of values \(got 2, but expected 1\)"),
        (False, lambda gi, go: (gi[0],), RuntimeError, r"incorrect number of values \(got 1, but expected 2\)"),
        (False, lambda gi, go: (gi[0][:1], None), RuntimeError, "changed the size of value"),
    ):
        y = leaf(device, 2) * 2
        (y.grad_fn.register_prehook if before else y.grad_fn.register_hook)(hook)
        with pytest.raises(error, match=words):
            y.sum().backward()


def test_the_order_of_hooks(device):
    x = leaf(device, 2)
    y = x * 2
    log = []

    def note(name, value=None):
        return lambda *args: log.append(name) or value

    accumulator = y.grad_fn.next_functions[0][0]
    y.grad_fn.register_prehook(note("pre"))
    y.grad_fn.register_hook(note("post"))
    y.register_hook(note("tensor"))
    accumulator.register_hook(note("leaf post"))
    accumulator.register_prehook(note("leaf pre"))
    x.register_post_accumulate_grad_hook(note("accumulated"))
    x.register_hook(note("leaf tensor"))
    y.sum().backward(retain_graph=True)
    assert log == ["tensor", "pre", "post", "leaf tensor", "leaf pre", "accumulated", "leaf post"]
    log.clear()
    torch.autograd.grad(y.sum(), [x, y], retain_graph=True)
    assert log == ["tensor", "pre", "post", "leaf tensor"]
    log.clear()
    torch.autograd.grad(y.sum(), y)
    assert log == ["tensor"]
    # A leaf's hooks run as soon as its gradient is complete, before earlier nodes.
    log.clear()
    first, last = leaf(device, 2), leaf(device, 2)
    h = first.exp()
    h.register_hook(note("h"))
    last.register_hook(note("last"))
    (h * last).sum().backward()
    assert log == ["last", "h"]


def test_prehooks_of_nodes_with_several_outputs(device):
    x = leaf(device, 3)
    a, b, c = x.unbind()
    seen = []
    b.grad_fn.register_prehook(lambda g: seen.append([v if v is None else v.item() for v in g]))
    (a * 2 + c * 5).backward()
    assert seen == [[2, None, 5]] and x.grad.tolist() == [2, 0, 5]


def test_gradients_from_and_to_edges(device):
    x = leaf(device, 2)
    y = x * 3
    z = (y * y).sum()
    at_x, at_y = get_gradient_edge(x), get_gradient_edge(y)
    assert isinstance(at_y, GradientEdge) and at_y.node is y.grad_fn and at_x.node.variable is x
    gx, gy = torch.autograd.grad(z, (at_x, at_y), retain_graph=True)
    assert gx.tolist() == [18, 18] and gy.tolist() == [6, 6]
    (g,) = torch.autograd.grad(get_gradient_edge(y), x, torch.ones(2, device=device), retain_graph=True)
    assert g.tolist() == [3, 3]
    torch.autograd.backward(get_gradient_edge(z), inputs=[x])
    assert x.grad.tolist() == [18, 18]
    with pytest.raises(RuntimeError, match="gradient edge for a Tensor that does not require"):
        get_gradient_edge(x.detach())


def test_one_hook_on_several_gradients(device):
    a, b, c = leaf(device, 1), leaf(device, 1), leaf(device, 1)
    seen, firsts = [], []
    handle = register_multi_grad_hook((a, b, c), lambda gs: seen.append([g is not None for g in gs]))
    register_multi_grad_hook((a, b), firsts.append, mode="any")
    (a * b).backward()
    (a * b * c).backward()
    torch.autograd.grad(a * b * c, b)
    assert seen == [[True, True, False], [True, True, True], [False, True, False]] and len(firsts) == 3
    handle.remove()
    (a * b).backward()
    assert len(seen) == 3 and len(firsts) == 4


def test_writes_to_saved_tensors_raise(device):
    def program():
        a = torch.arange(3.0, device=device, requires_grad=True)
        b = a.clone()
        view = b.view(-1)
        out = (b**2).sum() + b.exp().sum() * 0
        b.sin_()
        view.mul_(2)
        out.backward()
        return a.grad.tolist()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        program()
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        assert program() == [0, 2, 4]
        assert not len(context.cloned)
        with (
            pytest.raises(RuntimeError, match="cannot be nested"),
            torch.autograd.graph.allow_mutation_on_saved_tensors(),
        ):
            raise AssertionError
        x = leaf(device, 2)
        y = x.exp()
    with pytest.raises(AssertionError, match="Trying to backward outside"):
        y.sum().backward()


class Nested(Function):
    """Runs a nested backward, to depth `depth`."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        if ctx.depth:
            with torch.enable_grad():
                (x,) = ctx.saved_tensors
                inner = x.detach().requires_grad_()
                Nested.apply(inner, ctx.depth - 1).sum().backward()
                assert inner.grad.tolist() == [1]
        return g, None


def test_a_backward_in_a_backward_however_deep(device):
    x = leaf(device, 1)
    with torch.no_grad(), torch.enable_grad():
        Nested.apply(x, 400).backward()
    assert x.grad.tolist() == [1] and torch.is_grad_enabled()

    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise ValueError("here")

    y = leaf(device, 1)
    failing = Fails.apply(leaf(device, 1))
    y.register_hook(lambda g: failing.backward())
    z = y * 1
    for _ in range(30):
        before = z.detach().requires_grad_()
        before.register_hook(lambda g, z=z: z.backward(retain_graph=True))
        z = before * 1
    with pytest.raises(ValueError, match="here"):
        z.backward()
    assert torch.is_grad_enabled()


def test_callbacks_of_the_engine(device):
    engine = torch.autograd.Variable._execution_engine
    log = []
    x = leaf(device, 1)

    def hook(g):
        engine.queue_callback(lambda: (log.append("first"), engine.queue_callback(lambda: log.append("second"))))
        log.append("hook")

    x.register_hook(hook)
    x.sum().backward()
    assert log == ["hook", "first", "second"] and x.grad is not None
    with pytest.raises(RuntimeError, match="only be installed during backward"):
        engine.queue_callback(print)


def test_variables_and_modes():
    assert isinstance(torch.ones(1), torch.autograd.Variable)
    assert torch.autograd.Variable(torch.ones(1), requires_grad=True).requires_grad
    with torch.autograd.set_multithreading_enabled(False):
        assert not torch.autograd.is_multithreading_enabled()
    assert torch.autograd.is_multithreading_enabled() and not torch.autograd.kineto_available()

    class Stop(Exception):
        pass

    @torch.no_grad()
    def steps():
        try:
            yield torch.is_grad_enabled()
        except Stop:
            yield (torch.is_grad_enabled(), "caught")

    made = steps()
    assert next(made) is False and torch.is_grad_enabled()
    assert made.throw(Stop) == (False, "caught") and torch.is_grad_enabled()

    with pytest.warns(FutureWarning, match="Decorating classes"):

        @torch.no_grad()
        class Made:
            def __init__(self):
                self.recording = torch.is_grad_enabled()

    assert isinstance(Made, type) and Made().recording is False


def test_a_gradient_given_by_its_private_name(device):
    x = leaf(device, 2)
    x._grad = torch.ones(2, device=device)
    assert x.grad is x._grad
    x._grad = None
    assert x.grad is None
    for delete in ("data", "requires_grad"):
        with pytest.raises(RuntimeError, match="cannot delete"):
            delattr(x, delete)


def test_unique_values_require_grad(device):
    x = leaf(device, 3)
    values, places = x.unique(return_inverse=True)
    assert values.requires_grad and not places.requires_grad and x.unique_consecutive().requires_grad
    with pytest.raises(NotImplementedError, match="the derivative for '_unique2' is not implemented"):
        values.sum().backward()


def test_extremes_of_nan_share_their_gradient(device):
    for name in ("max", "min", "amax", "amin"):
        x = torch.full((3,), float("nan"), device=device, requires_grad=True)
        getattr(x, name)().backward()
        assert torch.allclose(x.grad, torch.full((3,), 1 / 3, device=device))


def test_attributes_that_cannot_be_deleted():
    x = torch.ones(2, requires_grad=True)
    assert x._backward_hooks is None and (x * 2)._backward_hooks is None and torch.ones(2)._backward_hooks is None
    x.register_hook(lambda g: g)
    assert len(x._backward_hooks) == 1
    with pytest.raises(RuntimeError, match="not allowed"):
        del x._backward_hooks
    with pytest.raises(RuntimeError, match="Detach tensor instead"):
        del x._grad_fn
    assert (y := x * 2)._grad_fn is y.grad_fn
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert x.volatile is False
