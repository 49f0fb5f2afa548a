"""`torch.autograd.functional`: accepted and refused arguments, and `strict`, with PyTorch's messages."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite.autograd import functional

X, Y = torch.tensor([1.0, 2.0]), torch.tensor(3.0)
ALL = ("jacobian", "hessian", "vjp", "jvp", "hvp", "vhp")
NO_GRADIENT = "Output 0 of the user-provided function does not require gradients"
TWICE = "While computing the hessian, found that the jacobian of the user-provided function with respect to input 0 is"
CHAIN = "The jacobian of the user-provided function is independent of input 0. This is not allowed in strict mode when"


def call(name, function, inputs, **options):
    """A function of the module, with ones where it wants a vector."""
    found = getattr(functional, name)
    if name in ("jacobian", "hessian"):
        return found(function, inputs, **options)
    vectors = tuple(torch.ones_like(x) for x in inputs) if isinstance(inputs, tuple) else torch.ones(2)
    return found(function, inputs, None if name == "vjp" else vectors, **options)


@pytest.mark.parametrize("name", ALL)
def test_types(name):
    for function, words in (
        (lambda t: 1, "given outputs of the user-provided function has type <class 'int'>"),
        (lambda t: (t, 1), "value at index 1 has type <class 'int'>"),
        (lambda t: [t, t], "given outputs of the user-provided function has type <class 'list'>"),
    ):
        with pytest.raises(
            TypeError, match=f"The outputs of the user-provided function given to {name} must be .*{words}"
        ):
            call(name, function, X)
    for inputs, words in (([X], "given inputs has type <class 'list'>"), ((X, 1), "value at index 1 has type")):
        with pytest.raises(TypeError, match=f"The inputs given to {name} must be either a Tensor or a .*{words}"):
            getattr(functional, name)(lambda t: t, inputs)


@pytest.mark.parametrize("name", ALL)
def test_strict(name):
    with pytest.raises(RuntimeError, match=NO_GRADIENT):
        call(name, lambda t: torch.ones(()), X, strict=True)
    with pytest.raises(RuntimeError, match=NO_GRADIENT):
        call(name, lambda t: t.detach().sum(), X, strict=True)
    call(name, lambda t: torch.ones(()), X)
    if name in ("hessian", "hvp", "vhp"):
        with pytest.raises(RuntimeError, match=TWICE):
            call(name, lambda t: t.sum(), X, strict=True)
    else:
        call(name, lambda t: t.sum(), X, strict=True)
        with pytest.raises(RuntimeError, match="utput(?: 0)? of the user-provided function is independent of input 1"):
            call(name, lambda a, b: a.sum(), (X, Y), strict=True)
        with pytest.raises(RuntimeError, match=CHAIN):
            call(name, lambda t: t.sum() * 2, X, strict=True, create_graph=True)


def test_vectors():
    for function, v, words in (
        (lambda t: t * 2, None, "can only be None if the user-provided function returns a single Tensor with a single"),
        (lambda t: t * 2, torch.ones(3), r"^v has invalid size: should be torch.Size\(\[2\]\) but got torch.Size\(\[3"),
        (lambda t: t * 2, (X, X), "The given v should contain a single Tensor"),
        (lambda t: (t, t), X, "v is a tuple of invalid length: should be 2 but got 1"),
        (lambda t: (t, t), (X, torch.ones(3)), "Entry 1 in v has invalid size"),
    ):
        with pytest.raises(RuntimeError, match=words):
            functional.vjp(function, X, v)
    with pytest.raises(RuntimeError, match="can only be None if the input to the user-provided function is a single"):
        functional.jvp(lambda t: t, X)


def test_values():
    assert functional.jacobian(lambda t: t**2, X).tolist() == [[2, 0], [0, 4]]
    assert functional.hessian(lambda t: (t**3).sum(), X).tolist() == [[6, 0], [0, 12]]
    value, product = functional.hvp(lambda t: (t**3).sum(), X, torch.ones(2))
    assert value == 9 and product.tolist() == [6, 12]
    rows = functional.jacobian(lambda a, b: (a * b, a), (X, Y))
    assert [[part.tolist() for part in row] for row in rows] == [
        [[[3, 0], [0, 3]], [1, 2]], [[[1, 0], [0, 1]], [0, 0]]
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="`strict=True` and `vectorized=True` are not supported together"):
        functional.jacobian(lambda t: t, X, strict=True, vectorize=True)
    with pytest.raises(AssertionError, match='Expected strategy to be either "forward-mode" or "reverse-mode"'):
        functional.jacobian(lambda t: t, X, strategy="sideways")
