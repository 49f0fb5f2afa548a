"""First and second derivatives at kinks and saturated elements, where a formula easily divides 0 by 0."""

import math

import pytest

import torchlite as torch
from torchlite.nn import functional as F

T = torch.tensor
DOUBLE = torch.float64


def derivatives(function, x, device):
    """The first and second derivatives of an elementwise function, each in reverse mode and in forward mode."""
    x = T(x, dtype=DOUBLE, device=device)

    def total(x):
        return function(x).sum()

    gradient = torch.func.grad(total)
    ones = torch.ones_like(x)
    second = torch.func.grad(lambda x: gradient(x).sum())(x)
    tangent = torch.func.jvp(function, (x,), (ones,))[1]
    forward_over_reverse = torch.func.jvp(gradient, (x,), (ones,))[1]
    return gradient(x).tolist(), tangent.tolist(), second.tolist(), forward_over_reverse.tolist()


def loss(function, target, **options):
    return lambda x: function(x, T(target, dtype=DOUBLE, device=x.device), reduction="none", **options)


# A function, its inputs, and the first and second derivatives there: PyTorch's, or the right ones where PyTorch's
# are NaN.
CASES = {
    "huber": (loss(F.huber_loss, [0.0] * 4), [0.0, 0.5, 1.0, -2.0], [0.0, 0.5, 1.0, -1.0], [1.0, 1.0, 0.0, 0.0]),
    "huber, delta": (
        loss(F.huber_loss, [0.0] * 3, delta=2.0), [0.0, -2.0, 3.0], [0.0, -2.0, 2.0], [1.0, 0.0, 0.0]
    ),
    "smooth_l1": (loss(F.smooth_l1_loss, [0.0] * 4), [0.0, 0.5, 1.0, -2.0], [0.0, 0.5, 1.0, -1.0], [1.0, 1.0, 0, 0]),
    "smooth_l1, beta": (
        loss(F.smooth_l1_loss, [0.0] * 3, beta=2.0), [0.0, -1.0, 3.0], [0.0, -0.5, 1.0], [0.5, 0.5, 0.0]
    ),
    "elu": (F.elu, [0.0, -1.0, 1e4], [1.0, math.exp(-1), 1.0], [0.0, math.exp(-1), 0.0]),
    "celu": (lambda x: F.celu(x, 2.0), [0.0, -2.0, 1e4], [1.0, math.exp(-1), 1.0], [0.0, math.exp(-1) / 2, 0.0]),
    "mish": (F.mish, [-1e4, 1e4], [0.0, 1.0], [0.0, 0.0]),
    "log_ndtr": (torch.special.log_ndtr, [20.0, 1e4], [0.0, 0.0], [0.0, 0.0]),
    "log_ndtr, 0": (torch.special.log_ndtr, [0.0], [math.sqrt(2 / math.pi)], [-2 / math.pi]),
    "binary cross entropy": (
        loss(F.binary_cross_entropy, [1.0, 0.0, 1.0, 0.25]),
        [1.0, 0.0, 0.5, 0.5],
        [0.0, 0.0, -2.0, 1.0],
        [1.0, 1.0, 4.0, 4.0],
    ),
    "soft margin": (loss(F.soft_margin_loss, [1.0, 1.0]), [-1e4, 1e4], [-1.0, 0.0], [0.0, 0.0]),
    "sinc near 0": (
        torch.sinc, [0.0, 1e-4, -1e-2, 0.3], [0.0, -3.28986810e-4, 3.28954345e-2, -0.90202813],
        [-3.28986813, -3.28986804, -3.28889410, -2.45848529],
    ),
    "i1e at infinity": (torch.special.i1e, [math.inf, -math.inf, 1e10], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    "atan2 at the origin": (lambda x: torch.atan2(x, torch.zeros_like(x)), [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_derivatives_at_kinks_and_saturated_elements(name, device):
    function, x, first, second = CASES[name]
    by_mode = derivatives(function, x, device)
    for found, expected in zip(by_mode, (first, first, second, second), strict=True):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_losses_of_saturated_logits_are_finite(device):
    x = T([-200.0, 200.0], device=device)
    assert F.soft_margin_loss(x, torch.ones_like(x), reduction="none").tolist() == [200.0, 0.0]


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_gradient_of_atan2_neither_overflows_nor_underflows(scale, device):
    y, x = T([3 * scale], device=device, requires_grad=True), T([4 * scale], device=device, requires_grad=True)
    torch.atan2(y, x).backward()
    assert (y.grad * scale).item() == pytest.approx(4 / 25, rel=1e-5)
    assert (x.grad * scale).item() == pytest.approx(-3 / 25, rel=1e-5)


def test_derivatives_of_logcumsumexp_of_huge_numbers(device):
    x = T([-1e10, -1e9, -1e9], dtype=DOUBLE, device=device, requires_grad=True)
    (first,) = torch.autograd.grad(torch.logcumsumexp(x, 0)[-1], x, create_graph=True)
    (second,) = torch.autograd.grad(first[1], x)
    assert first.tolist() == pytest.approx([0, 0.5, 0.5]) and second.tolist() == pytest.approx([0, 0.25, -0.25])


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_gradient_of_a_complex_angle_neither_overflows_nor_underflows(scale, device):
    z = torch.complex(T([4 * scale], device=device), T([3 * scale], device=device)).requires_grad_()
    torch.angle(z).backward()
    assert (z.grad * scale).item() == pytest.approx(-3 / 25 + 4j / 25, rel=1e-5)


@pytest.mark.parametrize("dtype", [DOUBLE, torch.complex128])
def test_derivatives_of_eigenvalues_and_eigenvectors_are_hermitian(dtype, device):
    """The sum of the eigenvalues is the trace: its second derivative is zero, also off the diagonal."""
    A = T([[2.0, 1.0], [1.0, 3.0]], dtype=dtype, device=device, requires_grad=True)
    values, vectors = torch.linalg.eigh(A)
    (first,) = torch.autograd.grad(values.sum(), A, create_graph=True)
    (second,) = torch.autograd.grad(first.real.sum(), A, retain_graph=True)
    assert second.abs().max().item() < 1e-12
    factors = T([[1.0, 2.0], [3.0, 5.0]], dtype=DOUBLE, device=device)
    (g,) = torch.autograd.grad((vectors.abs() * factors).sum(), A)
    expected = T([[0.21977347380908, 0.10988673690454], [0.10988673690454, -0.21977347380908]], dtype=dtype)
    assert (g.cpu() - expected).abs().max().item() < 1e-12


def test_the_input_keeps_the_gradient_where_both_limits_of_clamp_equal_it(device):
    """PyTorch's gradients, but where the input is below two equal limits: there the result is the upper one."""
    numbers = ([2.0, 1.0, 3.0, 1.5, 2.0, 0.0], [2.0, 2.0, 2.0, 2.0, 1.0, 1.0], [2.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    x, low, high = (T(part, device=device, requires_grad=True) for part in numbers)
    torch.clamp(x, low, high).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert low.grad.tolist() == [0.0] * 6
    assert high.grad.tolist() == [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]


def test_gradients_of_remainders_by_infinity(device):
    """remainder(-1, inf) is -1 + inf, so the divisor has the gradient 1."""
    x = T([-1.0, 1.0, 1.0, 5.5], device=device, requires_grad=True)
    y = T([math.inf, -math.inf, math.inf, 2.0], device=device, requires_grad=True)
    for function, expected in ((torch.remainder, [1.0, 1.0, 0.0, -2.0]), (torch.fmod, [0.0, 0.0, 0.0, -2.0])):
        for_x, for_y = torch.autograd.grad(function(x, y).sum(), (x, y), create_graph=True)
        assert for_x.tolist() == [1.0] * 4 and for_y.tolist() == expected


def test_gradient_of_sinc_does_not_underflow(device):
    """PyTorch's is 0 for both."""
    x = T([5e-38, 1e-30], device=device, requires_grad=True)
    torch.sinc(x).sum().backward()
    assert x.grad.tolist() == pytest.approx([-(math.pi**2) / 3 * 5e-38, -(math.pi**2) / 3 * 1e-30], rel=1e-5, abs=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["i1", "i1e"])
def test_derivatives_of_bessel_functions_near_zero(name, dtype):
    """i1 is x / 2 + x^3 / 16 + ..., and i1e exp(-abs(x)) times that: no digits are lost near 0."""
    x = torch.tensor([-1e-3, -1e-8, -1e-30, 1e-30, 1e-8, 1e-3], dtype=dtype, requires_grad=True)
    (first,) = torch.autograd.grad(getattr(torch.special, name)(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    small = x.detach()
    if name == "i1":
        expected = 0.5 + 3 * small**2 / 16, 3 * small / 8
    else:
        expected = 0.5 - small.abs() + 7 * small**2 / 16, -small.sign() * (1 - 15 * small.abs() / 8)
    torch.testing.assert_close(first.detach(), expected[0], rtol=1e-5, atol=0)
    torch.testing.assert_close(second, expected[1], rtol=1e-4, atol=0)


PIECEWISE = {
    "relu": F.relu,
    "relu_": lambda x: F.relu(x * 1, inplace=True),
    "leaky_relu": F.leaky_relu,
    "rrelu": F.rrelu,
    "prelu": lambda x: F.prelu(x, T([0.2], device=x.device)),
    "hardtanh": F.hardtanh,
    "relu6": F.relu6,
    "hardsigmoid": F.hardsigmoid,
    "threshold": lambda x: F.threshold(x, 0.1, 0.0),
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "abs": torch.abs,
    "elu": F.elu,
}


@pytest.mark.parametrize("name", PIECEWISE)
def test_gradients_of_piecewise_linear_functions_require_a_gradient(name, device):
    """A gradient depends on the input, though its own derivative is zero: a penalty of it has a backward."""
    x = T([0.5, 0.25, 1.5, 2.5], device=device, requires_grad=True)
    (gradient,) = torch.autograd.grad(PIECEWISE[name](x).sum(), x, create_graph=True)
    assert gradient.requires_grad
    assert torch.autograd.grad(gradient.sum(), x)[0].tolist() == [0.0] * 4


def test_the_gradient_of_prelu_depends_on_its_weight(device):
    x, weight = T([-3.0, 2.0], device=device, requires_grad=True), T([0.5], device=device, requires_grad=True)
    for_x, for_weight = torch.autograd.grad(F.prelu(x, weight).sum(), (x, weight), create_graph=True)
    assert (for_x.tolist(), for_weight.tolist()) == ([0.5, 1.0], [-3.0])
    assert torch.autograd.grad(for_x.sum(), weight)[0].tolist() == [1.0]
    assert torch.autograd.grad(for_weight.sum(), x)[0].tolist() == [1.0, 0.0]
