"""Random compositions of vmap, grad, vjp, jvp, jacrev and jacfwd against loops and `torch.autograd.grad`.

`python -m tests.func.test_compositions --count 1000 --seed 7` runs others; a failure names its seed.
"""

from __future__ import annotations

import argparse

import numpy as np
import pytest

import torchlite as torch
from torchlite import func
from torchlite.nn import functional as nnF

N, B = 2, 2


class Cubed(torch.autograd.Function):
    """A custom Function whose batching rule is generated."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x * x * t


def written(x):
    y = x.clone()
    y[0] = y[-1] * 2
    y.mul_(x + 1)
    return y


def positive(w):
    return w @ w.mT + 2 * torch.eye(N, dtype=w.dtype)


STEPS = [
    lambda x, w: x.sin(),
    lambda x, w: torch.tanh(x) * x,
    lambda x, w: w @ x,
    lambda x, w: x @ w.sin(),
    lambda x, w: torch.softmax(x, -1),
    lambda x, w: x.cumsum(0) / 2,
    lambda x, w: torch.where(x > 0, x * 2, x.exp()),
    lambda x, w: torch.linalg.solve(positive(w), x),
    lambda x, w: torch.cat([x[1:], x[:1] * w[0, 0]]),
    lambda x, w: nnF.layer_norm(x, (N,), w[0], w[1], eps=0.1),
    lambda x, w: torch.stack([x, x.flip(0)]).logsumexp(0),
    lambda x, w: x.masked_fill(w[0] > 0.5, 0.3),
    lambda x, w: torch.outer(x, x).diagonal() + w.trace(),
    lambda x, w: x[torch.tensor([1, 0])] * w.sum(0),
    lambda x, w: nnF.linear(x, w, w[0]),
    lambda x, w: nnF.conv1d(x.reshape(1, 1, N), w.reshape(2, 1, N), padding=1).reshape(-1)[:N] / 2,
    lambda x, w: Cubed.apply(x) / 3,
    lambda x, w: written(x),
    lambda x, w: torch.gather(x, 0, torch.tensor([1, 1])) + x.prod(),
    lambda x, w: x.norm() * w.std(0),
]


KINDS = ("vmap", "grad", "jacrev", "vjp", "jacfwd", "jvp", "vmap")


def base(steps):
    def function(x, w):
        for step in steps:
            x = step(x, w)
        return x

    return function


# -- the same by loops ----------------------------------------------------------------


def looped(function, in_dims, out_dim):
    def run(*args):
        size = next(a.shape[d] for a, d in zip(args, in_dims, strict=True) if d is not None)
        rows = [
            function(*(a if d is None else a.select(d, i) for a, d in zip(args, in_dims, strict=True)))
            for i in range(size)
        ]
        return torch.stack(rows, out_dim)

    return run


def _input(x):
    return x.view_as(x) if x.requires_grad else x.detach().requires_grad_()


def _gradient(out, x, cotangent):
    if not out.requires_grad:
        return torch.zeros_like(x)
    (found,) = torch.autograd.grad(out, x, cotangent, create_graph=True, allow_unused=True, retain_graph=True)
    return torch.zeros_like(x) if found is None else found


def gradient(function, argnum):
    def run(*args):
        x = _input(args[argnum])
        out = function(*args[:argnum], x, *args[argnum + 1 :])
        return _gradient(out, x, None)

    return run


def jacobian(function, argnum):
    def run(*args):
        x = _input(args[argnum])
        out = function(*args[:argnum], x, *args[argnum + 1 :])
        rows = []
        for i in range(out.numel()):
            unit = torch.zeros(out.numel(), dtype=out.dtype)
            unit[i] = 1
            rows.append(_gradient(out, x, unit.view(out.shape)))
        return torch.stack(rows).reshape((*out.shape, *x.shape))

    return run


def pulled(function, argnum):
    def run(*args):
        x = _input(args[argnum])
        out = function(*args[:argnum], x, *args[argnum + 1 :])
        return _gradient(out, x, torch.cos(out.detach()))

    return run


def pulled_by_func(function, argnum):
    def run(*args):
        out, back = func.vjp(lambda x: function(*args[:argnum], x, *args[argnum + 1 :]), args[argnum])
        return back(torch.cos(out.detach()))[0]

    return run


def pushed(function, argnum):
    def run(*args):
        x = args[argnum]
        rows = jacobian(function, argnum)(*args)
        return torch.tensordot(rows, torch.cos(x.detach()), x.ndim) if x.ndim else rows * torch.cos(x.detach())

    return run


def pushed_by_func(function, argnum):
    def run(*args):
        def of_one(x):
            return function(*args[:argnum], x, *args[argnum + 1 :])

        return func.jvp(of_one, (args[argnum],), (torch.cos(args[argnum].detach()),))[1]

    return run


# -- programs ---------------------------------------------------------------------------


def program(seed: int):
    """(a function by transforms, the same by loops, its arguments, what it is)."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, len(STEPS), int(rng.integers(1, 4)))
    fast = slow = base([STEPS[k] for k in chosen])
    shapes, words = [[N], [N, N]], [f"steps {[int(k) for k in chosen]}"]
    depth = 0
    for _ in range(int(rng.integers(2, 5))):
        kind = KINDS[int(rng.integers(len(KINDS)))]
        argnum = int(rng.integers(2))
        if kind in ("grad", "jacrev", "jacfwd", "jvp") and depth == 3:
            kind = "vmap"
        depth += kind != "vmap"
        if kind == "vmap":
            in_dims = ((0, None), (None, 0), (0, 0), (-1, None), (0, -1))[int(rng.integers(5))]
            out_dim = int(rng.integers(-1, 1))
            chunk = int(rng.integers(1, 3)) if rng.integers(4) == 0 else None
            fast, slow = func.vmap(fast, in_dims, out_dim, chunk_size=chunk), looped(slow, in_dims, out_dim)
            for shape, dim in zip(shapes, in_dims, strict=True):
                if dim is not None:
                    shape.insert(len(shape) if dim else 0, B)
            words.append(f"vmap({in_dims}, {out_dim}, chunk_size={chunk})")
            continue
        words.append(f"{kind}({argnum})")
        if kind == "grad":
            fast, slow = (
                (lambda f: lambda *args: f(*args).sin().sum())(fast),
                (lambda f: lambda *args: f(*args).sin().sum())(slow),
            )
            fast, slow = func.grad(fast, argnum), gradient(slow, argnum)
        elif kind in ("jacrev", "jacfwd"):
            fast, slow = getattr(func, kind)(fast, argnum), jacobian(slow, argnum)
        elif kind == "jvp":
            fast, slow = pushed_by_func(fast, argnum), pushed(slow, argnum)
        else:
            fast, slow = pulled_by_func(fast, argnum), pulled(slow, argnum)
    args = [torch.from_numpy(rng.uniform(0.2, 1, shape)) for shape in shapes]
    return fast, slow, args, " of ".join(reversed(words))


def check(seed: int) -> None:
    fast, slow, args, words = program(seed)
    wanted = slow(*args)
    try:
        found = fast(*args)
    except Exception as error:
        raise AssertionError(f"seed {seed}: {words}") from error
    assert found.shape == wanted.shape, f"seed {seed}: {words}: {found.shape}, not {wanted.shape}"
    assert not found.requires_grad
    scale = 1e-8 * max(1.0, float(wanted.detach().abs().max()) if wanted.numel() else 1.0)
    difference = float((found - wanted.detach()).abs().max()) if wanted.numel() else 0.0
    assert difference <= scale, f"seed {seed}: {words}: differs by {difference}"


@pytest.mark.parametrize("start", range(0, 150, 50))
def test_compositions(start):
    for seed in range(start, start + 50):
        check(seed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for number in range(options.seed, options.seed + options.count):
        check(number)
    print(f"{options.count} compositions from seed {options.seed} agree")
