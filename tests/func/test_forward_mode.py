"""`jvp`, `jacfwd`, `hessian` and `linearize`: structures, what is refused, and how they meet the other transforms."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite import func

X = torch.tensor([0.3, 0.7], dtype=torch.float64)
W = torch.tensor([[0.2, 0.5], [0.9, 0.4]], dtype=torch.float64)


def close(a, b):
    torch.testing.assert_close(a, b)


def test_structures():
    tree = {"a": X, "b": [X]}
    out, tangent = func.jvp(lambda d: {"o": d["a"] * d["b"][0]}, (tree,), (tree,))
    close(out["o"], X * X)
    close(tangent["o"], 2 * X * X)
    _, tangent, aux = func.jvp(lambda x: (x.sin(), {"cos": x.cos()}), (X,), (X,), has_aux=True)
    close(tangent, X.cos() * X)
    close(aux["cos"], X.cos())
    close(func.jvp(lambda x: torch.ones(2), (X,), (X,))[1], torch.zeros(2))


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: func.jvp(torch.sin, X, X), "Expected primals to be a tuple"),
        (lambda: func.jvp(torch.sin, (X,), (X, X)), "to have the same python structure"),
        (lambda: func.jvp(torch.sin, (1.0,), (X,)), "Expected primals to only contain Tensors, got <class 'float'>"),
        (lambda: func.jvp(torch.sin, (), ()), "to contain at least one Tensor"),
        (lambda: func.jvp(lambda x: 1.0, (X,), (X,)), "to return only tensors, got unsupported type"),
        (lambda: func.jvp(lambda x: (), (X,), (X,)), "non-empty output"),
        (lambda: func.jvp(lambda x: x, (X,), (X,), has_aux=True), r"should be a tuple: \(output, aux\)"),
        (lambda: func.jvp(lambda x: (x, 1), (X,), (X,), has_aux=True), "Expected tensors, got unsupported type"),
        (lambda: func.jacfwd(lambda x: (x, {"a": 1}), has_aux=True)(X), "Expected tensors, got unsupported type"),
        (lambda: func.jvp(lambda x: W, (X,), (X,), strict=True), "independent of the inputs"),
        (lambda: func.jvp(torch.sin, (X,), (W,)), "different size"),
        (lambda: func.jacfwd(lambda x: x)(X + 1j), "Expected all inputs to be real"),
        (lambda: func.jacfwd(lambda x: x * 1j)(X), "Expected all outputs to be real"),
        (lambda: func.jacfwd(lambda x: x, argnums=3)(X), "Got argnum=3"),
        (lambda: func.jacfwd(lambda x: x * torch.rand(2))(X), "random operation"),
        (lambda: func.linearize(torch.sin, X)[1](X, X), "to have the same argspec"),
        (lambda: func.linearize(torch.sin, X)[1](W), "doesn't match the shape"),
    ],
)
def test_wrong_calls_raise(call, words):
    with pytest.raises(RuntimeError, match=words):
        call()


def test_jacobians():
    def f(x, w):
        return w @ x.sin(), {"s": (x * x).sum() * w}

    for argnums in (0, (0, 1), (1,)):
        found, wanted = func.jacfwd(f, argnums)(X, W), func.jacrev(f, argnums)(X, W)
        torch.testing.assert_close(found, wanted)
    jacobian, aux = func.jacfwd(lambda x: (x * x, x.sum()), has_aux=True)(X)
    close(jacobian, 2 * X.diag())
    close(aux, X.sum())
    assert func.jacfwd(lambda x: x * torch.rand(2), randomness="same")(X).shape == (2, 2)


def test_a_primal_is_no_batch():
    """`jacfwd` is a `vmap` over tangents, in which the values can be looked at."""
    close(func.jacfwd(lambda x: x * 2 if x.sum() > 0 else x)(X), 2 * torch.eye(2, dtype=X.dtype))
    close(func.jacfwd(lambda x: x * x[0].item())(X), X[0] * torch.eye(2, dtype=X.dtype))


def test_levels_do_not_mix():
    """A derivative inside a derivative, of a variable of the outer one."""
    inner = lambda x: func.jvp(lambda y: x * y, (torch.ones_like(x),), (torch.ones_like(x),))[1]
    close(func.jvp(lambda x: x * inner(x), (X,), (torch.ones_like(X),))[1], 2 * X)

    def f(x, w):
        return (torch.tanh(w @ x) * x.sum()).sum()

    mixed = [
        lambda x: outer(lambda x: inner(lambda w: f(x, w))(W))(x)
        for outer in (func.jacfwd, func.jacrev)
        for inner in (func.jacfwd, func.jacrev)
    ]
    for found in mixed[1:]:
        close(found(X), mixed[0](X))
    close(func.vmap(func.hessian(lambda x: f(x, W)))(W), torch.stack([func.hessian(lambda x: f(x, W))(x) for x in W]))


def test_writes_with_tangents_that_stand_for_examples():
    def f(x):
        y = torch.zeros(2, dtype=x.dtype)
        part = y[1:]
        part.add_(x[:1])
        y.fill_(1.0)
        part.mul_(x[1:])
        y[0] = x[1]
        return y * x

    close(func.jacfwd(f)(X), func.jacrev(f)(X))


def test_linearize_runs_its_function_once():
    calls = []

    def f(x):
        calls.append(x)
        return x.exp(), {"w": W @ x}

    value, push = func.linearize(f, X)
    close(value[0], X.exp())
    for tangent in (X, X + 1):
        close(push(tangent)[0], X.exp() * tangent)
        close(push(tangent)[1]["w"], W @ tangent)
    assert len(calls) == 1 and not push(X)[0].requires_grad


def test_on_every_device(device):
    def f(x):
        y = torch.zeros(2, 2, device=x.device)
        y.t()[0] = x[0].exp()
        return torch.softmax(W.to(x.device, x.dtype) @ x, 1).cumsum(0) + y.to("cpu").to(x.device)

    x = W.float()
    there = x.to(device)
    found, wanted = func.jvp(f, (there,), (there + 1,))[1], func.jvp(f, (x,), (x + 1,))[1]
    torch.testing.assert_close(found.cpu(), wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(func.jacfwd(f)(there).cpu(), func.jacrev(f)(x), rtol=1e-4, atol=1e-5)


PRODUCTS = {
    "conv2d": (lambda x, w, b: torch.nn.functional.conv2d(x, w, b, padding=1), [(2, 2, 4, 5), (3, 2, 3, 3), (3,)]),
    "conv1d in groups": (
        lambda x, w, b: torch.nn.functional.conv1d(x, w, b, stride=2, groups=2),
        [(1, 4, 7), (6, 2, 3), (6,)],
    ),
    "conv_transpose2d": (
        lambda x, w, b: torch.nn.functional.conv_transpose2d(x, w, b, 2, output_padding=1, dilation=2),
        [(1, 2, 3, 3), (2, 2, 2, 2), (2,)],
    ),
    "linear": (torch.nn.functional.linear, [(2, 3, 4), (5, 4), (5,)]),
    "linear of a vector": (torch.nn.functional.linear, [(4,), (4,)]),
    "matmul": (torch.matmul, [(2, 1, 3, 4), (2, 4, 2)]),
    "mm": (torch.mm, [(3, 4), (4, 2)]),
    "bmm": (torch.bmm, [(2, 3, 4), (2, 4, 2)]),
    "mv": (torch.mv, [(3, 4), (4,)]),
    "dot": (torch.dot, [(4,), (4,)]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_tangents_of_some_factors(name):
    function, shapes = PRODUCTS[name]
    torch.manual_seed(0)
    given = [torch.rand(shape, dtype=torch.float64) for shape in shapes]
    for places in [*range(len(given)), (0, 1), tuple(range(len(given)))]:
        forward, backward = (jac(function, places)(*given) for jac in (func.jacfwd, func.jacrev))
        close(forward, backward)
    smooth = lambda *args: function(*args).sin().sum()
    expected = func.jacrev(func.jacrev(smooth, 1), 1)(*given)
    for outer, inner in ((func.jacfwd, func.jacrev), (func.jacrev, func.jacfwd), (func.jacfwd, func.jacfwd)):
        close(outer(inner(smooth, 1), 1)(*given), expected)
    directions = torch.stack(given[:1] * 3)
    batched = func.vmap(lambda t: func.jvp(lambda x: function(x, *given[1:]), (given[0],), (t,))[1])(directions)
    close(batched, torch.stack([func.jvp(lambda x: function(x, *given[1:]), (given[0],), (given[0],))[1]] * 3))


@pytest.mark.parametrize("transposed", [False, True])
def test_complex_products(transposed):
    a, b = torch.rand(3, 3, dtype=torch.complex128), torch.rand(3, 3, dtype=torch.complex128)
    s, t = a.cos(), b.sin()
    if transposed:
        a, s = a.mH, s.mH
    _, tangent = func.jvp(torch.mm, (a, b), (s, t))
    close(tangent, s @ b + a @ t)
    _, tangent = func.jvp(torch.vdot, (a[0], b[0]), (s[0], t[0]))
    close(tangent, torch.vdot(s[0], b[0]) + torch.vdot(a[0], t[0]))


def test_a_product_computes_no_backward_pass(monkeypatch):
    x, w = torch.rand(1, 2, 5, 5), torch.rand(3, 2, 3, 3)
    calls, kernel = [], x._tl_kernels.convolution
    monkeypatch.setattr(x._tl_kernels, "convolution", lambda *args: calls.append(args[6]) or kernel(*args))
    func.jvp(torch.nn.functional.conv2d, (x, w), (x, w))
    assert calls == [False] * 3
