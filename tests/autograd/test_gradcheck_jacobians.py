"""The Jacobians that older programs get from `torch.autograd.gradcheck`."""

import pytest

import torchlite as torch
from torchlite.autograd.gradcheck import get_analytical_jacobian, get_numerical_jacobian

PRIVATE = "was part of PyTorch's private API and not meant to be exposed"


def grid(inputs):
    return inputs[0].unsqueeze(1) * inputs[1] ** 2, inputs[0]


def test_rows_are_the_elements_of_an_input():
    a = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    by_a = [[1.0, 4, 9, 0, 0, 0], [0, 0, 0, 1, 4, 9]]
    by_b = [[2.0, 0, 0, 4, 0, 0], [0, 4, 0, 0, 8, 0], [0, 0, 6, 0, 0, 12]]
    with pytest.warns(FutureWarning, match=f"`get_numerical_jacobian` {PRIVATE}"):
        found = get_numerical_jacobian(grid, (a, b), eps=1e-6)
    assert all(torch.allclose(x, x.new_tensor(rows)) for x, rows in zip(found, (by_a, by_b), strict=True))
    with pytest.warns(FutureWarning):
        (found,) = get_numerical_jacobian(grid, (a, b), target=b, eps=1e-6)
    assert torch.allclose(found, found.new_tensor(by_b)) and a.tolist() == [1, 2]
    with pytest.warns(FutureWarning, match=f"`get_analytical_jacobian` {PRIVATE}"):
        jacobians, alike, sizes, types = get_analytical_jacobian((a, b), grid((a, b))[0])
    assert [x.tolist() for x in jacobians] == [by_a, by_b] and alike and sizes and types


def test_complex_inputs_and_unsteady_gradients():
    c = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
    square = lambda inputs: (inputs[0] * inputs[0].conj()).real
    with pytest.warns(FutureWarning):
        (numeric,), (analytic,) = (
            get_numerical_jacobian(square, c, eps=1e-6),
            get_analytical_jacobian(c, square([c]))[0],
        )
    assert torch.allclose(numeric, analytic) and analytic.item() == 2 + 4j

    class Unsteady(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g * (1 + torch.rand_like(g))

    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.warns(FutureWarning):
        assert get_analytical_jacobian((x,), Unsteady.apply(x))[1] is False


def test_complex_outputs_and_grad_out_are_refused():
    x = torch.ones(2, dtype=torch.complex128, requires_grad=True)
    for call, words in (
        (lambda: get_numerical_jacobian(lambda inputs: inputs[0], (x,)), "Expected output to be non-complex"),
        (lambda: get_analytical_jacobian((x,), x * 1), "Expected output to be non-complex"),
        (lambda: get_numerical_jacobian(lambda inputs: inputs[0], (x,), grad_out=2.0), "Expected grad_out to be 1.0"),
        (lambda: get_analytical_jacobian((x,), x * 1, grad_out=2.0), "Expected grad_out to be 1.0"),
    ):
        with pytest.warns(FutureWarning), pytest.raises(ValueError, match=words):
            call()
