"""Ops under `vmap` and in forward mode that the op table's own samples do not reach, against loops."""

from __future__ import annotations

import re

import numpy as np
import pytest

import torchlite as torch
import torchlite.autograd.forward_ad as fwAD
from torchlite import func
from torchlite.nn import functional as nnF

X = torch.tensor([[0.3, 0.7], [1.1, -0.4], [0.9, 0.2]], dtype=torch.float64)
COUNTS = torch.tensor([[1, 2], [3, 0], [2, 1]])


def ldl(x):
    return torch.linalg.ldl_factor(torch.outer(x, x) + 2 * torch.eye(2, dtype=x.dtype))


def renormed(x, i):
    return nnF.embedding(i, (x * torch.ones(3, 1, dtype=x.dtype)).clone(), max_norm=0.5)


CALLS = {
    "unfold": (lambda x: x[0].unfold(0, 1, 1), X),
    "ldl_solve": (lambda x: torch.linalg.ldl_solve(*ldl(x), x.unsqueeze(1)), X),
    "linspace": (lambda x: torch.linspace(x[0], x[1], 5), X),
    "logspace": (lambda x: torch.logspace(x[0], 2, 4, dtype=torch.float64), X),
    "logspace of whole numbers": (lambda x: torch.logspace(x[0] * 3, 3.9, 4, 2.0, dtype=torch.int64), X),
    "logspace of a base": (lambda x: torch.logspace(0, 2, 3, x[0].abs() + 1), X),
    "masked.median": (lambda x: torch.masked.median(x, 0, mask=torch.tensor([True, False])), X),
    "embedding with max_norm": (renormed, X, COUNTS % 3),
    "repeat_interleave": (lambda x, n: x.repeat_interleave(n), X, COUNTS),
    "argwhere": (lambda n: torch.argwhere(n > 0), COUNTS[[0, 2]]),
    "bincount": (lambda n: torch.bincount(n, minlength=4), COUNTS),
    "resize_ to less": (lambda x: x.clone().resize_(1), X),
    "resize_as_": (lambda x, n: x.clone().resize_as_(n.reshape(2, 1)), X, COUNTS),
    "baddbmm of integers": (lambda n: torch.baddbmm(n, n.view(1, 1, 2), n.view(1, 2, 1), alpha=1.7), COUNTS),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dim", [0, -1])
def test_vmap(name, dim):
    function, *args = CALLS[name]
    wanted = torch.stack([function(*row) for row in zip(*args, strict=True)])
    found = func.vmap(function, in_dims=dim)(*(a if dim == 0 else a.movedim(0, -1) for a in args))
    assert found.dtype is wanted.dtype
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)


def test_counts_that_add_up_to_different_sums():
    with pytest.raises(RuntimeError, match="dynamic shape"):
        func.vmap(torch.repeat_interleave)(X, torch.tensor([[1, 2], [1, 1], [1, 1]]))


def in_turn(x):
    y = x * 1
    y[0] = y[-1] * 2
    return y.mul_(x + 1)


WRITES = {
    "mul_": lambda x: (x * 1).mul_(x + 1),
    "_setitem, mul_": in_turn,
    "exp_": lambda x: (x * x).exp_().mul_(x),
    "sigmoid_": lambda x: (x * 2).sigmoid_() * x,
    "addcmul_": lambda x: (x * x).addcmul_(x, x).mul_(x),
    "pow_ of itself": lambda x: (x * x + 1).pow_(x).div_(x + 2),
    "masked_fill_": lambda x: (x * x).masked_fill_(x > 0.5, 0.1).mul_(x),
    "through a view": lambda x: [y := (x * x), y[1:].mul_(x[:1]), y.mul_(x)][0],
    "index_add_": lambda x: (x * 1).index_add_(0, torch.tensor([1, 1]), x * x).mul_(x),
    "dropout_": lambda x: nnF.dropout(x * x, 0.5, inplace=True).mul_(x),
}


@pytest.mark.parametrize("name", WRITES)
def test_tensors_saved_before_a_write_retain_their_tangents(name):
    def gradient(x):
        torch.manual_seed(5)
        return func.grad(lambda t: WRITES[name](t).sin().sum())(x)

    x, t = X[0].clone(), torch.tensor([0.5, -0.2], dtype=torch.float64)
    step = 1e-6
    slope = (gradient(x + step * t) - gradient(x - step * t)) / (2 * step)
    np.testing.assert_allclose(func.jvp(gradient, (x,), (t,))[1].numpy(), slope.numpy(), rtol=1e-5, atol=1e-8)


def test_autocast_casts_tangents():
    x, w = X.float(), torch.ones(2, 4)
    with torch.autocast("cpu"):
        for function in (lambda t: t @ w, lambda t: t.bfloat16() * 2, lambda t: nnF.linear(t, w.mT).float() * t.sum()):
            value, tangent = func.jvp(function, (x,), (torch.ones_like(x),))
            rows = func.vmap(lambda u, f=function: func.jvp(f, (x,), (u,))[1])(torch.stack([torch.ones_like(x)]))
            _, wanted = func.jvp(lambda t, f=function: f(t).float(), (x,), (torch.ones_like(x),))
            assert tangent.dtype is value.dtype and tangent.abs().min() > 1
            assert torch.equal(tangent.float(), wanted) and torch.equal(rows[0], tangent)


def test_random_ops_in_jacfwd():
    def dropped(x):
        return nnF.dropout(x, 0.5)

    torch.manual_seed(0)
    different = func.jacfwd(dropped, randomness="different")(torch.ones(8))
    same = func.jacfwd(dropped, randomness="same")(torch.ones(8))
    for found in (different, same):
        assert found.shape == (8, 8) and set(found.diagonal().tolist()) == {0.0, 2.0}
        assert not (found - found.diagonal().diag()).any()


def test_jacrev_with_chunk_size_one_avoids_vmap():
    def hooked(x):
        y = x * 2
        y.register_hook(lambda g: g * g.sum().item())
        return y, x.sum()

    first, second = func.jacrev(hooked, chunk_size=1)(torch.ones(3))
    assert torch.equal(first, 2 * torch.eye(3)) and torch.equal(second, torch.ones(3))
    with pytest.raises(RuntimeError, match="item"):
        func.jacrev(hooked)(torch.ones(3))


def test_dual_tensors_are_reported_as_views():
    a = torch.ones(3)
    with fwAD.dual_level():
        dual = fwAD.make_dual(a, torch.ones(3))
        primal = fwAD.unpack_dual(dual).primal
        assert dual._is_view() and dual._base is a and primal._base is a and not a._is_view()
        assert dual[1:]._base is a
        dual[1:].mul_(3)
        assert torch.equal(a, torch.tensor([1.0, 3.0, 3.0])) and fwAD.unpack_dual(a).tangent is None
        assert torch.equal(fwAD.unpack_dual(dual).tangent, a)
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with set_"):
            torch.zeros(3).set_(dual)


BN = torch.nn.BatchNorm1d


def test_replace_all_batch_norm_modules():
    net = torch.nn.Sequential(
        BN(3), torch.nn.Sequential(torch.nn.BatchNorm2d(2), torch.nn.InstanceNorm1d(2, affine=True))
    )
    assert func.replace_all_batch_norm_modules_(net) is net
    assert (
        net[0].running_mean is None and not net[1][0].track_running_stats and "0.running_mean" not in net.state_dict()
    )
    x = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(func.vmap(net[0])(x), torch.stack([net[0](one) for one in x]), atol=1e-6)
    for kind in (BN, torch.nn.InstanceNorm1d):
        with pytest.raises(RuntimeError, match="Batch norm got a batched tensor"):
            func.vmap(kind(3, track_running_stats=True))(x.unsqueeze(-1).expand(2, 4, 3, 2))


REARRANGED = {
    "a b c -> c b a": ((4, 3, 2), {}),
    "a b c -> (a b) c": ((6, 4), {}),
    "a b (c d) -> a b c d": ((2, 3, 2, 2), {"c": 2}),
    "... c -> c ...": ((4, 2, 3), {}),
    "a ... -> a (...)": ((2, 12), {}),
    "a b c -> a () b c 1": ((2, 1, 3, 4, 1), {}),
    "(a b) ... -> b (a ...)": ((1, 24), {"a": 2}),
    "a b ... -> (a ... b)": ((24,), {}),
}
REFUSED = {
    "a b -> a b": "Number of dimensions in pattern (2) must be equal to the number of dimensions in the tensor (3)",
    "a b c d ... -> a b c d ...": "Number of dimensions in pattern (4) must be less than or equal to",
    "a b c": "Pattern must contain a single '->' separator",
    "a a b -> a b": "Indexing expression contains duplicate dimension 'a'",
    "a b c -> a b": "Identifiers only on one side of rearrange expression (should be on both): {'c'}",
    "a b c -> a b c ...": "Ellipsis found in right side, but not left side of a pattern",
    "a (...) c -> a c ...": "Ellipsis is parenthesis in the left side is not allowed",
    "a (b (c)) -> a b c": "Axis composition is one-level (brackets inside brackets not allowed)",
    "(a b c -> a b c": "Imbalanced parentheses in expression: '(a b c '",
    "a b c) -> a b c": "Brackets are not balanced",
    "a b c -> a 2 b c": "rearrange only supports unnamed axes of size 1",
    "a b. -> a": "Expression may contain dots only inside ellipsis (...)",
    "a, b -> a": "Unknown character ','",
    "a _b c -> c _b a": "axis name should should not start or end with underscore",
    "a b (c d) -> a b c d": "cannot infer the sizes of two dimensions at once d2 and d3",
}


def test_rearrange():
    x = torch.arange(24.0).reshape(2, 3, 4)
    for pattern, (shape, sizes) in REARRANGED.items():
        assert func.rearrange(x, pattern, **sizes).shape == shape
    assert torch.equal(func.rearrange(x, "a b c -> (c a) b"), x.permute(2, 0, 1).reshape(8, 3))
    assert torch.equal(func.rearrange(x, "a b (c d) -> d c a b", c=2), x.view(2, 3, 2, 2).permute(3, 2, 0, 1))
    assert torch.equal(func.rearrange(x, "... c -> c (...)"), x.permute(2, 0, 1).reshape(4, 6))
    assert torch.equal(func.rearrange(list(x), "a b c -> b (a c)"), x.permute(1, 0, 2).reshape(3, 8))
    assert torch.equal(func.vmap(lambda t: func.rearrange(t, "a b -> b a"))(x), x.mT)
    for pattern, words in REFUSED.items():
        with pytest.raises(Exception, match=re.escape(words)) as caught:
            func.rearrange(x, pattern)
        assert caught.type.__name__ == ("DimensionBindError" if "infer" in words else "ValueError")
    for sizes, words in (
        ({"c": 3}, "4 vs (3, '?')"),
        ({"c": 2, "d": 3}, "(4 != 6) when matching dimension pack (d2, d3)"),
    ):
        with pytest.raises(Exception, match=re.escape(words)):
            func.rearrange(x, "a b (c d) -> a b c d", **sizes)


def test_unsafe_split_results_have_tangents():
    for split in (lambda t: t.unsafe_split(1, 1), lambda t: t.unsafe_chunk(2, 1)):
        assert torch.equal(func.jvp(lambda t: split(t)[1] * 2, (X,), (X,))[1], X[:, 1:] * 2)


@pytest.mark.parametrize("keep", ["save_for_backward", "save_for_forward"])
@pytest.mark.parametrize("dirty", [False, True])
def test_an_input_that_is_an_output_is_not_saved(keep, dirty):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            if dirty:
                ctx.mark_dirty(inputs[0])
            getattr(ctx, keep)(output)

        @staticmethod
        def backward(ctx, g):
            return g

    for transform in (lambda x: Same.apply(x), lambda x: func.grad(lambda t: Same.apply(t.clone()).sum())(x)):
        if dirty:
            transform(X.clone())
        else:
            with pytest.raises(RuntimeError, match="An input that has been returned as-is as output is being saved"):
                transform(X.clone())


def test_set_state_returns_the_generator():
    g = torch.Generator()
    assert g.set_state(g.get_state()) is g


def test_as_strided_is_limited_to_an_example():
    memory = torch.arange(30.0)
    for batch, call in (
        (memory[:15].view(5, 3), ([3], [1], 1)),
        (memory[15:].view(5, 3), ([3], [1], 14)),
        (memory[6:15].view(3, 3), ([3], [1], 0)),
        (memory[:0].view(5, 0, 3), ([3], [1])),
    ):
        with pytest.raises(RuntimeError, match="can access memory outside of `tensor`.*not supported inside of vmap"):
            func.vmap(lambda t, call=call: t.as_strided(*call))(batch)
    found = func.vmap(lambda t: t.as_strided([2], [1], 16))(memory[15:].view(5, 3))
    assert torch.equal(found, memory[15:].view(5, 3)[:, 1:])
    turned = func.vmap(lambda t: t.as_strided([2], [5]), in_dims=1)(memory[:15].view(3, 5))
    assert torch.equal(turned, memory[:15].view(3, 5)[:2].mT)
    found = func.vmap(lambda t: t.view(3).as_strided_([2], [1], 16))(memory[15:].view(5, 3))
    assert torch.equal(found, memory[15:].view(5, 3)[:, 1:])
    with pytest.raises(RuntimeError, match="size and stride must have the same length"):
        func.vmap(lambda t: t.as_strided([1, 1], [1]))(memory[:4].view(2, 2))
