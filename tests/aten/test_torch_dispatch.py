"""`__torch_dispatch__`: modes and subclasses that see ops below autograd. What they see was recorded from PyTorch."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite.utils import _python_dispatch as dispatch

F = torch.nn.functional


class Names(dispatch.TorchDispatchMode):
    def __init__(self):
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func).removeprefix("aten."))
        return func(*args, **(kwargs or {}))


def _put(x):
    x[0] = torch.zeros(3)


X, W, B = torch.arange(12.0).reshape(4, 3), torch.ones(5, 3), torch.ones(5)
SEEN = {
    "linear": (lambda: F.linear(X, W, B), "t.default addmm.default"),
    "product": (lambda: X @ W.t(), "t.default mm.default"),
    "stacks": (
        lambda: torch.matmul(torch.ones(2, 4, 3), torch.ones(2, 3, 4)),
        "*expand.default view.default expand.default view.default bmm.default _unsafe_view.default",
    ),
    "int": (lambda: X[0], "select.int"),
    "slice": (lambda: X[1:3], "slice.Tensor"),
    "both": (lambda: X[1:3, None, 0], "slice.Tensor unsqueeze.default select.int"),
    "arrays": (lambda: X[torch.tensor([0, 1])], "index.Tensor"),
    "put": (lambda: _put(X.clone()), "clone.default zeros.default select.int copy_.default"),
    "number": (lambda: X * 2, "mul.Tensor"),
    "number first": (lambda: 1 - X, "rsub.Scalar"),
    "power": (lambda: X**2, "pow.Tensor_Scalar"),
    "alpha": (lambda: torch.add(X, X, alpha=2), "add.Tensor"),
    "in place": (lambda: torch.ones(3).add_(2), "ones.default add_.Tensor"),
    "greatest": (lambda: X.max(1), "max.dim"),
    "cast": (lambda: X.to(torch.float64), "_to_copy.default"),
    "softmax": (lambda: X.softmax(-1), "_softmax.default"),
    "layer norm": (lambda: F.layer_norm(X, (3,)), "native_layer_norm.default"),
    "convolution": (lambda: F.conv1d(X[None], W.view(1, -1, 3)[:, :4]), "*convolution.default"),
    "pool": (lambda: F.max_pool2d(torch.ones(1, 1, 4, 4), 2), "*max_pool2d_with_indices.default"),
    "comparison": (lambda: X == 0, "eq.Scalar"),
    "norm": (lambda: torch.linalg.vector_norm(X), "linalg_vector_norm.default"),
    "sum": (lambda: X.sum(1), "sum.dim_IntList"),
}


@pytest.mark.parametrize("name", SEEN)
def test_dispatch_mode_sees_aten_calls(name):
    run, wanted = SEEN[name]
    before = run()
    with Names() as mode:
        result = run()
    found = " ".join(mode.seen)
    if wanted[0] == "*":
        wanted, found = wanted[1:], found[-len(wanted) + 1 :]
    assert found == wanted
    if isinstance(result, torch.Tensor):
        assert torch.equal(result, before)


def test_history_is_recorded_for_the_intercepted_op():
    class Doubling(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            assert not torch.is_grad_enabled()
            result = func(*args, **(kwargs or {}))
            assert not result.requires_grad
            return result * 2 if func is torch.ops.aten.exp.default else result

    x = torch.zeros(2, requires_grad=True)
    with Doubling():
        y = x.exp()
    assert y.tolist() == [2.0, 2.0] and type(y.grad_fn).__name__ == "ExpBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]  # by the result that the mode returned


def test_backward_is_seen():
    x, w = torch.ones(4, 3), torch.ones(3, 5, requires_grad=True)
    with Names() as mode:
        loss = (x @ w).sigmoid().sum()
        forward = len(mode.seen)
        loss.backward()
    assert mode.seen[:forward] == ["mm.default", "sigmoid.default", "sum.default"]
    assert "mm.default" in mode.seen[forward:]
    grad = w.grad
    w.grad = None
    (x @ w).sigmoid().sum().backward()
    assert torch.allclose(grad, w.grad)


def test_gradients_add_up_where_they_are():
    w = torch.ones(3, requires_grad=True)
    (w * 2).sum().backward()
    first = w.grad
    with Names():
        (w * 3).sum().backward()
    assert w.grad is first and first.tolist() == [5.0] * 3


def test_modes_stand_on_each_other():
    class Outer(Names):
        pass

    with Outer() as outer, Names() as inner:
        assert dispatch._get_current_dispatch_mode_stack() == [outer, inner]
        assert dispatch._get_current_dispatch_mode() is inner
        torch.ones(2).exp()
        with dispatch._disable_current_modes() as modes:
            assert modes == [outer, inner] and not dispatch.is_in_torch_dispatch_mode()
            torch.ones(2).sin()
        with dispatch._pop_mode_temporarily():
            torch.ones(2)
    assert inner.seen == ["ones.default", "exp.default"] and outer.seen == [*inner.seen, "ones.default"]


class Wrapped(torch.Tensor):
    """A wrapper subclass: a tensor without data around an inner tensor."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    names: list = []

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.size(), dtype=inner.dtype, device=inner.device, requires_grad=requires_grad
        )
        made.inner = inner
        return made

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Wrapped(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def inner(x):
            return x.inner if isinstance(x, cls) else type(x)(map(inner, x)) if isinstance(x, (list, tuple)) else x

        def outer(x):
            wraps = isinstance(x, torch.Tensor)
            return cls(x) if wraps else type(x)(map(outer, x)) if isinstance(x, (list, tuple)) else x

        cls.names.append(str(func))
        out = outer(func(*inner(args), **{name: inner(value) for name, value in (kwargs or {}).items()}))
        return dispatch.return_and_correct_aliasing(func, args, kwargs, out)


CHAINS = {
    "pointwise": lambda w: (w * 2).exp().sigmoid().sum(),
    "views": lambda w: (w.view(3, 1).t() * 3).sum(),
    "product": lambda w: F.linear(w.view(1, 3), torch.ones(2, 3)).tanh().sum(),
    "parts": lambda w: w[1:].cumsum(0).pow(2).mean(),
    "softmax": lambda w: w.softmax(0).log().sum(),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_wrapper_differentiates(name):
    start = torch.tensor([0.1, 0.2, 0.3])
    plain, wrapped = start.clone().requires_grad_(), Wrapped(start.clone(), requires_grad=True)
    CHAINS[name](plain).backward()
    loss = CHAINS[name](wrapped)
    assert type(loss) is Wrapped and loss.requires_grad
    loss.backward()
    assert type(wrapped.grad) is Wrapped and torch.allclose(wrapped.grad.inner, plain.grad)


def test_wrapper_subclass_dispatches_and_transforms():
    x = Wrapped(torch.ones(2, 3))
    assert x.shape == (2, 3) and x.device.type == "cpu" and x.dtype is torch.float32 and x.is_leaf
    Wrapped.names.clear()
    assert type(x.detach()) is Wrapped and Wrapped.names == ["aten.detach.default"]
    assert x.add_(1) is x and x.inner.tolist() == [[2.0] * 3] * 2
    assert dispatch.is_traceable_wrapper_subclass(x) and not dispatch.is_traceable_wrapper_subclass(x.inner)
    doubled = dispatch.transform_subclass(x, lambda name, inner: inner * 2)
    assert type(doubled) is Wrapped and doubled.inner.tolist() == [[4.0] * 3] * 2
    with pytest.raises(RuntimeError, match="to have shape equal to"):
        dispatch.transform_subclass(x, lambda name, inner: inner[0])
    with pytest.raises(RuntimeError, match="must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(type("Bare", (torch.Tensor,), {}), (2,))


def test_a_class_with_data_sees_ops_and_refuses():
    class Logged(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            names.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs)

    class Refusing(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    names: list = []
    x = torch.Tensor._make_subclass(Logged, torch.ones(2))
    names.clear()
    plain = x + 1
    assert type(plain) is torch.Tensor
    x.sum()
    assert names == ["aten.add.Tensor", "aten.sum.default"]
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'aten.sin.default'"):
        torch.Tensor._make_subclass(Refusing, torch.ones(2)).sin()


def test_classes_that_dispatch_see_no_functions():
    class Seen(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return super().__torch_dispatch__(func, types, args, kwargs)

    class Mixin:
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            names.append(str(func))
            return torch.Tensor.__torch_dispatch__(func, types, args, kwargs)

    class Mixed(Mixin, torch.Tensor):
        pass

    class Both(Seen):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs)

    names: list = []
    off = torch._C._disabled_torch_function_impl
    for cls, is_off in ((Seen, True), (type("Child", (Seen,), {}), True), (Mixed, True), (Both, False)):
        assert (cls.__torch_function__ is off) is is_off
        assert type(torch.ones(2).as_subclass(cls) + 1) is torch.Tensor
    assert "aten.add.Tensor" in names


def test_parameters_of_wrapper_subclasses_train():
    class Halves(torch.Tensor):
        @staticmethod
        def __new__(cls, inner, scale):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=scale.dtype, device=inner.device)

        def __init__(self, inner, scale):
            self.inner, self.scale = inner, scale

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            if func is torch.ops.aten.detach.default:
                return cls(args[0].inner, args[0].scale)
            raise NotImplementedError(func)

    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x @ (w.inner * w.scale).t()

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g @ (w.inner * w.scale), g.t() @ x

    weight = torch.nn.Parameter(Halves(torch.arange(6).reshape(2, 3).to(torch.int8), torch.tensor(0.5)))
    assert type(weight) is Halves and weight.scale == 0.5 and isinstance(weight, torch.nn.Parameter)
    x = torch.ones(4, 3, requires_grad=True)
    for times in (1, 2):
        Linear.apply(x, weight).sum().backward()
        assert type(weight.grad) is torch.Tensor and weight.grad.tolist() == [[4.0 * times] * 3] * 2
        assert x.grad[0].tolist() == [1.5 * times, 2.5 * times, 3.5 * times]


def test_added_ops_have_rules_for_classes():
    @torch.library.custom_op("dispatch_test::op", mutates_args=())
    def op(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    @torch.library.register_torch_dispatch("dispatch_test::op", Names)
    def _(mode, func, types, args, kwargs):
        return torch.full((1,), 7.0)

    with Names():
        assert op(torch.ones(1)).item() == 7
    assert op(torch.ones(1)).item() == 2
    Wrapped.names.clear()
    assert type(op(Wrapped(torch.ones(1)))) is Wrapped and Wrapped.names == ["dispatch_test.op.default"]


def test_a_subclass_sees_the_librarys_ops():
    seen = []

    class Wrapped(torch.Tensor):
        @staticmethod
        def __new__(cls, held):
            made = torch.Tensor._make_wrapper_subclass(
                cls, held.size(), dtype=held.dtype, device=held.device, strides=held.stride()
            )
            made.held = held
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append(str(func).removeprefix("aten."))
            args, kwargs = pytree.tree_map_only(Wrapped, lambda w: w.held, (args, kwargs or {}))
            return pytree.tree_map_only(torch.Tensor, Wrapped, func(*args, **kwargs))

    from torchlite.utils import _pytree as pytree

    held = torch.rand(2, 4, 6, 6)
    calls = {
        "_adaptive_avg_pool2d.default": lambda x: F.adaptive_avg_pool2d(x, 3),
        "max_pool2d_with_indices.default": lambda x: F.max_pool2d(x, 2),
        "upsample_bilinear2d.default": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        "native_group_norm.default": lambda x: F.group_norm(x, 2),
        "native_batch_norm.default": lambda x: F.batch_norm(x, None, None, training=True),
        "view.default": lambda x: x.reshape(8, 36),
    }
    for name, call in calls.items():
        seen.clear()
        assert torch.allclose(call(Wrapped(held)).held, call(held), atol=1e-6)
        assert seen[0] == name


class Holder(torch.Tensor):
    """A wrapper whose results are plain tensors. It notes the ops that it sees."""

    seen: list = []
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held):
        made = torch.Tensor._make_wrapper_subclass(
            cls, held.size(), dtype=held.dtype, device=held.device, strides=held.stride()
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(str(func).removeprefix("aten."))
        args, kwargs = torch.utils._pytree.tree_map_only(Holder, lambda h: h.held, (args, kwargs or {}))
        return func(*args, **kwargs)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("equal.default", lambda x, y: x.equal(y)),
        ("equal.default", lambda x, y: torch.equal(y, x)),
        ("allclose.default", lambda x, y: torch.allclose(x, y)),
        ("mse_loss.default", lambda x, y: F.mse_loss(x, y)),
        ("binary_cross_entropy_with_logits.default", lambda x, y: F.binary_cross_entropy_with_logits(x, y)),
        ("addr.default", lambda x, y: torch.addr(torch.zeros(3, 3), x, y)),
        ("bucketize.Tensor", lambda x, y: torch.bucketize(x, y)),
        ("linalg_vector_norm.default", lambda x, y: x.norm()),
    ],
)
def test_a_class_sees_a_composite_that_is_one_op_of_the_library(name, call):
    x, y = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 1.0, 2.5])
    Holder.seen.clear()
    result, wanted = call(Holder(x), y), call(x, y)
    assert Holder.seen == [name]
    assert torch.equal(torch.as_tensor(result), torch.as_tensor(wanted))


def test_a_class_sees_out():
    x, index = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([2, 0])
    calls = {
        "cat.out": lambda x, out: torch.cat([x, x], out=out),
        "index_select.out": lambda x, out: torch.index_select(x, 0, index, out=out),
        "add.out": lambda x, out: torch.add(x, x, alpha=2, out=out),
    }
    for name, call in calls.items():
        Holder.seen.clear()
        out = torch.empty(0)
        assert call(Holder(x), out) is out and torch.equal(out, call(x, torch.empty(0)))
        assert Holder.seen == [name]
    values, places = torch.empty(0), torch.empty(0, dtype=torch.int64)
    Holder.seen.clear()
    assert torch.max(Holder(x), 0, out=(values, places)).indices is places
    assert Holder.seen == ["max.dim_max"] and values == 3 and places == 0
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.add(Holder(x), 1, out=torch.ones(3, requires_grad=True))


@pytest.mark.parametrize(
    "index",
    [
        (1, slice(None), None, torch.tensor([1, 0])),
        (torch.tensor(1), slice(None), None, torch.tensor([1, 0])),
        (slice(None), None, torch.tensor([1, 1])),
        (slice(1, 3), torch.tensor([1, 0]), None),
    ],
    ids=str,
)
def test_indices_of_several_steps_have_tensors(index):
    x = torch.arange(24.0).reshape(3, 2, 4)
    assert torch.equal(Holder(x)[index], x[index])


def test_modes_see_the_size_of_an_unpooled_tensor_without_its_padding():
    places = torch.tensor([[[0, 3]]])
    with Names():
        found = F.max_unpool1d(torch.ones(1, 1, 2), places, 3, 3, 1)
    assert found.tolist() == [[[1.0, 0.0, 0.0, 1.0]]]


def test_integers_have_no_history_under_a_mode():
    x = torch.ones(2, requires_grad=True)
    with Names():
        made = x.to(torch.int8), (x * 2).round().to(torch.int64), x.to(torch.float64)
    assert [t.requires_grad for t in made] == [False, False, True]
