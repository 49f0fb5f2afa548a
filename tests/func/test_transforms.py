"""torch.func's transforms: arguments, results, and PyTorch's error messages."""

from __future__ import annotations

import re
import warnings

import pytest

import torchlite as torch
from torchlite import func
from torchlite.func import grad, grad_and_value, hessian, jacrev, vjp, vmap


def x():
    return torch.arange(6.0).reshape(2, 3)


def refused(kind, words):
    return pytest.raises(kind, match=re.escape(words))


def test_dims_of_arguments_and_results():
    a, b = x(), torch.ones(3)
    assert torch.equal(vmap(torch.mul, (0, None))(a, b), a)
    assert torch.equal(vmap(lambda t: t, 1)(a), a.t())
    assert torch.equal(vmap(lambda t: t, -1, -1)(a), a)
    nested = vmap(lambda d, items: {"out": d["a"] + items[0]}, ({"a": 0}, [None]))({"a": a}, [b])
    assert torch.equal(nested["out"], a + 1)
    p, q = vmap(lambda t: (t, t * 2), out_dims=(0, 1))(a)
    assert torch.equal(p, a) and torch.equal(q, (a * 2).t())
    assert torch.equal(vmap(lambda t: torch.ones(2))(a), torch.ones(2, 2))
    assert vmap(lambda t: t.sum(), out_dims=0)(torch.ones(0, 3)).shape == (0,)
    outer = vmap(vmap(torch.mul, (None, 0)), (0, None))(torch.arange(2.0), b)
    assert torch.equal(outer, torch.outer(torch.arange(2.0), b))
    for size in (1, 2, 5):
        assert torch.equal(vmap(torch.sin, chunk_size=size)(a), a.sin())
    assert torch.equal(vmap(lambda t: t, 1, 1, chunk_size=2)(a), a)
    assert torch.equal(torch.vmap(torch.sin)(a), a.sin())


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: vmap(torch.add, [0, 0])(x(), x()), ValueError, "to be int or a (potentially nested) tuple"),
        (lambda: vmap(torch.add, (0, (0, 0)))(x(), x()), ValueError, "in_dims is not compatible"),
        (lambda: vmap(torch.add, (None, None))(x(), x()), ValueError, "Expected at least one Tensor to vmap over"),
        (lambda: vmap(torch.sin, 3)(x()), ValueError, "in_dim to satisfy -2 <= in_dim < 2"),
        (lambda: vmap(torch.add)(x(), 2), ValueError, "We cannot vmap over non-Tensor arguments"),
        (lambda: vmap(torch.add)(torch.ones(2), torch.ones(3)), ValueError, "got sizes [2, 3] for the mapped"),
        (lambda: vmap(lambda: 1)(), ValueError, "got no inputs"),
        (lambda: vmap(lambda t: 1)(x()), ValueError, "must only return Tensors, got type"),
        (lambda: vmap(lambda t: None)(x()), ValueError, "must only return Tensors"),
        (lambda: vmap(lambda t: t, out_dims=None)(x()), ValueError, "can not return a BatchedTensor"),
        (lambda: vmap(lambda t: (t, t), out_dims=(0, 0, 0))(x()), ValueError, "out_dims is not compatible"),
        (lambda: vmap(lambda t: t, out_dims=2)(x()), IndexError, "Dimension out of range"),
        (lambda: vmap(torch.sin, randomness="x"), RuntimeError, "Only allowed values for randomness"),
        (lambda: vmap(torch.sin, chunk_size=0), ValueError, "chunk_size should be None or greater than 0"),
        (lambda: vmap(lambda t: t.item())(torch.ones(2)), RuntimeError, "calling .item() on a Tensor"),
        (lambda: vmap(lambda t: t if t > 0 else -t)(torch.ones(2)), RuntimeError, "data-dependent control flow"),
        (lambda: vmap(lambda t: t.numpy())(torch.ones(2)), RuntimeError, "Cannot access data pointer of Tensor"),
        (lambda: vmap(lambda t: t.data)(torch.ones(2)), RuntimeError, "accessing `data` under vmap"),
        (lambda: vmap(torch.nonzero)(x()), RuntimeError, "dynamic shape"),
        (lambda: vmap(lambda t: t[t > 0])(x()), RuntimeError, "indexing with a boolean mask"),
        (lambda: vmap(lambda t: torch.rand(2))(x()), RuntimeError, "randomness error mode"),
        (lambda: vmap(lambda a, b: a.copy_(b), (None, 0))(torch.ones(3), x()), RuntimeError, "inplace arithmetic"),
        (lambda: vmap(lambda a, b: torch.add(a, b, out=torch.ones(3)))(x(), x()), RuntimeError, "out="),
        (lambda: grad(lambda t: t)(x()), RuntimeError, "a scalar Tensor, got tensor with 2 dims"),
        (lambda: grad(lambda t: 2)(x()), RuntimeError, "Expected f(*args) to return a Tensor, got"),
        (lambda: grad(lambda t: t.sum(), has_aux=True)(x()), RuntimeError, "should be a tuple: (output, aux)"),
        (lambda: grad(torch.dot, argnums=2)(x()[0], x()[0]), RuntimeError, "Got argnum=2, but only 2"),
        (lambda: grad(torch.dot, argnums=(0, 0))(x()[0], x()[0]), RuntimeError, "argnums elements must be unique"),
        (lambda: grad(torch.dot, argnums="a")(x()[0], x()[0]), RuntimeError, "argnums must be int or Tuple"),
        (lambda: grad(lambda t: torch.ones(()))(2.0), ValueError, "Thing passed to transform API must be Tensor"),
        (lambda: grad(lambda t: t.sum())(torch.ones(2, dtype=torch.int64)), RuntimeError, "floating point"),
        (lambda: grad(lambda t: t.requires_grad_().sum())(x()), RuntimeError, "Tensor.requires_grad_()"),
        (lambda: grad(lambda t: (t.sum().backward(), t.sum())[1])(x()), RuntimeError, "backward() called inside"),
        (lambda: vjp(lambda t: 1, x()), RuntimeError, "to return only tensors"),
        (lambda: vjp(lambda t: (), x()), RuntimeError, "has non-empty output"),
        (lambda: vjp(lambda t: (t, t), x())[1](x()), RuntimeError, "cotangents: *, primal output: (*, *)"),
        (lambda: jacrev(torch.conj)(torch.ones(2, dtype=torch.complex64)), RuntimeError, "Expected all inputs"),
        (lambda: jacrev(torch.sin, chunk_size=0), ValueError, "`chunk_size` should be greater than 0"),
        (lambda: func.functionalize(torch.sin, remove="x"), RuntimeError, "invalid argument for remove=x"),
    ],
)  # fmt: skip
def test_refusals(call, kind, words):
    with refused(kind, words):
        call()


def test_escaped():
    kept = []
    vmap(lambda t: (kept.append(t), t)[1])(x())
    with refused(RuntimeError, "escaped from inside a function being vmapped and"):
        kept[0] + 1


def test_shown():
    seen = []
    vmap(lambda t: (seen.append((repr(t), tuple(t.shape), t.ndim, t.stride(), t.is_contiguous())), t)[1], 1)(x())
    text, shape, ndim, stride, contiguous = seen[0]
    assert text.startswith("BatchedTensor(lvl=1, bdim=1, value=") and (shape, ndim, stride) == ((2,), 1, (3,))
    assert not contiguous
    vmap(lambda t: (seen.append(func.debug_unwrap(t)), t)[1])(x())
    assert torch.equal(seen[-1], x())


def test_random_modes():
    ones = torch.ones(4, 3)

    def draw(t):
        return t + torch.randn(3)

    same = vmap(draw, randomness="same")(ones)
    assert torch.equal(same, same[:1].expand(4, 3))
    torch.manual_seed(3)
    different = vmap(draw, randomness="different")(ones)
    torch.manual_seed(3)
    assert torch.equal(different, ones + torch.randn(4, 3))
    chunked = vmap(draw, randomness="same", chunk_size=1)(ones)
    assert torch.equal(chunked, chunked[:1].expand(4, 3))
    both = vmap(vmap(lambda t: torch.rand_like(t), randomness="same"), randomness="different")(torch.ones(2, 3))
    assert torch.equal(both, both[:, :1].expand(2, 3)) and both[0, 0] != both[1, 0]
    permutations = vmap(lambda t: torch.randperm(5), randomness="different")(torch.ones(3))
    assert torch.equal(permutations.sort(1)[0], torch.arange(5).expand(3, 5))
    with refused(RuntimeError, "different inplace randomness on an unbatched tensor"):
        vmap(lambda t: torch.ones(2).uniform_(), randomness="different")(torch.ones(3))
    with refused(RuntimeError, "same randomness with a batched tensor input"):
        vmap(torch.bernoulli, randomness="same")(torch.full((3, 2), 0.5))


def test_writes():
    a = x()
    assert torch.equal(vmap(lambda t: t.add_(1))(a), x() + 1) and torch.equal(a, x() + 1)

    def rows(t, i):
        y = torch.zeros_like(t)
        y[i] = t[i]
        y[1:].mul_(2)
        y.unsqueeze_(0)
        return y

    found = vmap(rows)(x(), torch.tensor([0, 2]))
    assert torch.equal(found, torch.tensor([[[0.0, 0, 0]], [[0, 0, 10]]]))
    w = torch.ones(2, 3, requires_grad=True)
    vmap(lambda t: t.clone().mul_(t).exp_().sum())(w).sum().backward()
    assert torch.allclose(w.grad, 2 * torch.exp(torch.ones(2, 3)))
    masked = vmap(lambda t, m: t.masked_fill(m, 0) + torch.where(m, 1.0, 0.0))(x(), x() > 2)
    assert torch.equal(masked, torch.tensor([[0.0, 1, 2], [1, 1, 1]]))

    def by_mask(t):
        y = t.clone()
        y[t > 2] = 9.0
        return y

    assert torch.equal(vmap(by_mask)(x()), x().masked_fill(x() > 2, 9.0))


def test_derivatives():
    a = torch.tensor([0.5, 1.0, 2.0])
    assert torch.allclose(grad(lambda t: (t**3).sum())(a), 3 * a**2)
    assert torch.allclose(
        grad(lambda t: grad(lambda s: (s**3 * t).sum())(t).sum())(torch.tensor(2.0)), torch.tensor(36.0)
    )
    value, (out, aux) = grad_and_value(lambda t: ((t**2).sum(), {"twice": t * 2}), has_aux=True)(a)
    assert torch.equal(value, 2 * a) and float(out) == 5.25 and torch.equal(aux["twice"], 2 * a)
    both = grad(lambda s, t: (s * t).sum(), argnums=(1, 0))(a, a + 1)
    assert torch.equal(both[0], a) and torch.equal(both[1], a + 1)
    tree = grad(lambda d: d["p"].sum() * d["q"])({"p": a, "q": torch.tensor(2.0)})
    assert torch.equal(tree["p"], torch.full((3,), 2.0)) and float(tree["q"]) == 3.5
    out, back = vjp(lambda s, t: {"sum": s + t, "product": s * t}, a, a)
    assert torch.equal(back({"sum": a, "product": a})[0], a + a * a)
    assert torch.equal(vjp(lambda s, t: s * 2, a, a)[1](a)[1], torch.zeros(3))
    assert torch.equal(jacrev(lambda t: t**2)(a), torch.diag(2 * a))
    assert torch.equal(jacrev(lambda t: t**2, chunk_size=2)(a), torch.diag(2 * a))
    parts = jacrev(lambda s, t: (s * t, {"sum": s.sum()}), argnums=(0, 1))(a, a + 1)
    assert torch.equal(parts[0][0], torch.diag(a + 1)) and torch.equal(parts[1]["sum"][1], torch.zeros(3))
    assert torch.allclose(hessian(lambda t: (t**3).sum())(a), torch.diag(6 * a))
    assert torch.allclose(vmap(hessian(lambda t: t.sin().sum()))(x()), torch.diag_embed(-x().sin()), atol=1e-6)
    cotangents = torch.eye(3)
    y = (w := a.clone().requires_grad_()) ** 2
    (rows,) = torch.autograd.grad(y, w, cotangents, is_grads_batched=True)
    assert torch.equal(rows, torch.diag(2 * a))


def test_gradients_and_the_graph_around():
    w = torch.ones(3, requires_grad=True)
    a = x()[1]
    inner = grad(lambda t: (t * t * w).sum())(a)
    assert inner.requires_grad
    inner.sum().backward()
    assert torch.equal(w.grad, 2 * a)
    assert not grad(lambda t: (t * t).sum())(a).requires_grad
    assert not grad_and_value(lambda t: (t * t).sum())(a)[1].requires_grad
    with torch.no_grad():
        assert torch.equal(grad(lambda t: (t * t * w).sum())(a), 2 * a)
        assert not grad(lambda t: (t * t).sum())(w).requires_grad
    assert grad(lambda t: (t * t).sum())(w).requires_grad

    def partly(t):
        with torch.no_grad():
            c = t * t
        return (c * t).sum()

    assert torch.equal(grad(partly)(a), a * a)
    assert torch.equal(grad(lambda t: (t.detach() * t).sum())(a), a)
    batched = vmap(lambda t: (t * w).sum())(x())
    batched.sum().backward()
    assert torch.equal(w.grad, 2 * a + x().sum(0))
    with (
        torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
        refused(RuntimeError, "saved tensor hooks"),
    ):
        grad(torch.sum)(a)


def test_batched_gradients_and_jacobians():
    a, b = x().double(), torch.ones(3, 2, dtype=torch.float64)

    def f(s, t):
        return (s @ t).sin(), s.sum()

    one, other = (torch.autograd.functional.jacobian(f, (a, b), vectorize=v) for v in (False, True))
    assert all(torch.allclose(p, q) for u, v in zip(one, other, strict=True) for p, q in zip(u, v, strict=True))
    u = a.clone().requires_grad_()
    v = b.clone().requires_grad_()
    found = torch.autograd.grad(u.sum(), (u, v), torch.arange(2.0), allow_unused=True, is_grads_batched=True)
    assert found[1] is None and torch.equal(found[0], torch.arange(2.0).double().reshape(2, 1, 1).expand(2, 2, 3))


def test_hooks_and_the_engine_inside_vmap():
    w = torch.ones(2, 3, requires_grad=True)
    seen = []

    def hooked(t):
        y = t * 2
        y.register_hook(lambda g: (seen.append(tuple(g.shape)), g * 3)[1])
        return (y * y).sum()

    vmap(hooked)(w).sum().backward()
    assert seen == [(3,)] and torch.equal(w.grad, torch.full((2, 3), 24.0))
    with refused(RuntimeError, "does not require grad and does not have a grad_fn"):
        vmap(lambda t: torch.autograd.grad(t.sum(), t)[0])(w)
    y = w * w
    (rows,) = vmap(lambda g: torch.autograd.grad(y, w, g, retain_graph=True))(torch.eye(6).reshape(6, 2, 3))
    assert torch.equal(rows.reshape(6, 6), 2 * torch.eye(6))


def test_gradients_of_each_example():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    parameters = {k: v.detach() for k, v in net.named_parameters()}

    def loss(p, one, target):
        return ((func.functional_call(net, p, (one.unsqueeze(0),)).squeeze(0) - target) ** 2).sum()

    inputs, targets = torch.randn(5, 3), torch.randn(5, 1)
    found = vmap(grad(loss), (None, 0, 0))(parameters, inputs, targets)
    for i in range(5):
        wanted = grad(loss)(parameters, inputs[i], targets[i])
        assert all(torch.allclose(found[k][i], wanted[k], atol=1e-6) for k in wanted)


def test_autocast():
    with torch.autocast("cpu"):
        assert vmap(torch.matmul)(torch.ones(2, 3, 3), torch.ones(2, 3, 3)).dtype is torch.bfloat16
        half = torch.ones(2, 3, dtype=torch.bfloat16)
        assert vmap(torch.nn.functional.mse_loss)(half, half).dtype is torch.float32
        assert vmap(grad(lambda t: (t @ t).float().sum()))(torch.ones(2, 3, 3)).dtype is torch.float32


class Double(torch.autograd.Function):
    @staticmethod
    def forward(t):
        return t * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2


class WithRule(Double):
    seen: list = []

    @staticmethod
    def vmap(info, in_dims, t):
        WithRule.seen.append((info.batch_size, info.randomness, in_dims))
        return WithRule.apply(t), in_dims[0]


def test_custom_functions():
    a = x()
    with refused(RuntimeError, "it does not have vmap support"):
        vmap(Double.apply)(a)
    assert torch.equal(vmap(WithRule.apply, 1)(a), (a * 2).t())
    assert WithRule.seen == [(3, "error", (1,))]
    assert torch.equal(vmap(grad(lambda t: WithRule.apply(t).sum()))(a), torch.full((2, 3), 2.0))

    class Both(WithRule):
        generate_vmap_rule = True

    with refused(RuntimeError, "both generate_vmap_rule=True and an overriden vmap"):
        vmap(Both.apply)(a)

    class Older(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t

    with refused(RuntimeError, "it must override the setup_context"):
        grad(lambda t: Older.apply(t).sum())(a)

    class One(Double):
        @staticmethod
        def vmap(info, in_dims, t):
            return t

    with refused(RuntimeError, "to have two returns"):
        vmap(One.apply)(a)

    class Wrong(Double):
        @staticmethod
        def vmap(info, in_dims, t):
            return t, (None,)

    with refused(RuntimeError, "returned an incompatible"):
        vmap(Wrong.apply)(a)

    class Scaled(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(t, by):
            return t * by, t + by

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g, h):
            t, by = ctx.saved_tensors
            return g * by + h, (g * t + h).sum_to_size(by.shape)

    by = torch.tensor([2.0], requires_grad=True)
    p, q = vmap(Scaled.apply, (0, None))(a, by)
    assert torch.equal(p, a * 2) and torch.equal(q, a + 2)
    (p.sum() + q.sum()).backward()
    assert torch.equal(by.grad, (a.sum() + 6).reshape(1))


def test_op_without_a_rule_warns_and_loops():
    from torchlite.func._batching_rules.rule_helpers import _WARNED_OPS

    _WARNED_OPS.discard("histc")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = vmap(lambda t: torch.histc(t, 3, 0, 6))(x())
    assert torch.equal(found, torch.stack([torch.histc(t, 3, 0, 6) for t in x()]))
    assert any("performance drop" in str(w.message) for w in caught)


def test_on_device(device):
    a = torch.arange(12.0).reshape(3, 4).to(device)
    w = torch.ones(4, 2).to(device)
    found = vmap(grad(lambda t: torch.softmax(t @ w, -1).square().sum() + t.sort()[0][0]))(a)
    wanted = torch.stack([grad(lambda t: torch.softmax(t @ w, -1).square().sum() + t.sort()[0][0])(t) for t in a])
    assert found.device == a.device and torch.allclose(found.cpu(), wanted.cpu())
    images, kernels = torch.ones(2, 1, 2, 5, 5).to(device), torch.ones(2, 3, 2, 3, 3).to(device)
    both = vmap(torch.nn.functional.conv2d)(images, kernels)
    assert torch.allclose(both.cpu(), torch.full((2, 1, 3, 3, 3), 18.0))
    drawn = vmap(lambda t: t + torch.rand(4, device=t.device), randomness="different")(a)
    assert drawn.shape == (3, 4) and not torch.equal((drawn - a)[0].cpu(), (drawn - a)[1].cpu())
