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
    "huber": (loss(F.huber_loss, [0.0] * 4), [0.0, 0.5, 1.0, -2.0], [0.0, 0.5, 1.0, -1.0], [1.0, 1.0, 1.0, 0.0]),
    "huber, delta": (
        loss(F.huber_loss, [0.0] * 3, delta=2.0), [0.0, -2.0, 3.0], [0.0, -2.0, 2.0], [1.0, 1.0, 0.0]
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
