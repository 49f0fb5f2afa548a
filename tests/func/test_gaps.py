"""Ops under `vmap` and in forward mode that the op table's own samples do not reach, against loops."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
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
def test_what_nodes_save_before_a_write_has_the_tangents_of_then(name):
    def gradient(x):
        torch.manual_seed(5)
        return func.grad(lambda t: WRITES[name](t).sin().sum())(x)

    x, t = X[0].clone(), torch.tensor([0.5, -0.2], dtype=torch.float64)
    step = 1e-6
    slope = (gradient(x + step * t) - gradient(x - step * t)) / (2 * step)
    np.testing.assert_allclose(func.jvp(gradient, (x,), (t,))[1].numpy(), slope.numpy(), rtol=1e-5, atol=1e-8)


def test_parts_of_their_own_have_tangents():
    for split in (lambda t: t.unsafe_split(1, 1), lambda t: t.unsafe_chunk(2, 1)):
        assert torch.equal(func.jvp(lambda t: split(t)[1] * 2, (X,), (X,))[1], X[:, 1:] * 2)
