"""Gamma and Dirichlet variates: the stream that they take, their distribution on every device, and how they move with
their parameters.
"""

import numpy as np
import pytest

import torchlite as torch
from torchlite.distributions import Beta, Dirichlet, Gamma

# dx/da of gamma variates (a, x), by 30 digits: differences of the regularised incomplete gamma function over the
# density.
GAMMA = [
    (0.01, 1e-20, 4.5490816402012235e-17), (0.01, 0.5, 46.67927940515068), (0.3, 0.001, 0.022481140914591295),
    (0.7, 2.5, 2.217500298007293), (1, 1.4, 1.384980454008827), (1, 1.6, 1.4747072694466965),
    (3, 9, 1.7397554120638796), (8, 1.7, 0.42599916019312456), (50, 45, 0.9514101922116238),
    (1000, 1100, 1.048586678561617), (3000, 2950, 0.991675071967186),
]  # fmt: skip
# dx/da / (1 - x) of beta variates (a, b, x).
BETA = [
    (0.05, 0.05, 1e-06, 0.0004748284381297174), (0.05, 0.05, 0.999, 201.2985468807775),
    (0.5, 2, 0.3, 0.7553986006857254), (2, 0.5, 0.9, 0.5304844718524953), (3, 4, 0.1, 0.06871532216622371),
    (30, 40, 0.5, 0.015577938207215314), (500, 3, 0.99, 0.0019860064249072064), (3, 500, 0.002, 0.0011553016702123245),
    (200, 900, 0.2, 0.0009541922764003069), (0.2, 100, 0.01, 0.03777405765916816),
    (100, 0.2, 0.9999, 0.010039576984919283), (1, 1, 0.5, 0.6931471805599453),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-5), (torch.float32, 2e-3)])
def test_gamma_variates_move_exactly(device, dtype, tolerance):
    a, x, exact = (torch.tensor(column, dtype=dtype, device=device) for column in zip(*GAMMA, strict=True))
    torch.testing.assert_close(torch._standard_gamma_grad(a, x), exact, rtol=tolerance, atol=0)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-5), (torch.float32, 2e-3)])
def test_beta_variates_move_exactly(device, dtype, tolerance):
    a, b, x, exact = (torch.tensor(column, dtype=dtype, device=device) for column in zip(*BETA, strict=True))
    torch.testing.assert_close(torch._dirichlet_grad(x, a, a + b), exact, rtol=tolerance, atol=0)


def test_many_variates_move_as_each_alone():
    a = torch.linspace(0.1, 30, 40000, dtype=torch.float64)
    x = a * torch.linspace(2, 0.4, 40000, dtype=torch.float64)
    whole = torch._standard_gamma_grad(a, x)
    alone = torch._standard_gamma_grad(a[25000:25010], x[25000:25010])
    if torch.backends.cpu.get_kernel_engine() == "numpy":
        assert torch.equal(whole[25000:25010], alone)
    else:  # an engine has exponentials of its own for large arrays
        torch.testing.assert_close(whole[25000:25010], alone, rtol=1e-13, atol=0)


@pytest.mark.parametrize("shape", [0.2, 1.0, 5.0])
def test_many_gamma_variates_are_those_drawn_one_by_one(shape):
    many = torch.full((9000,), shape)
    torch.manual_seed(3)
    together = torch._standard_gamma(many)
    after = torch.rand(1)
    torch.manual_seed(3)
    apart = torch.cat([torch._standard_gamma(part) for part in many.split(37)])
    torch.testing.assert_close(together, apart, rtol=1e-6, atol=0)
    assert torch.equal(after, torch.rand(1))


def test_extreme_shapes():
    torch.manual_seed(0)
    tiny = torch.finfo(torch.float32).tiny
    drawn = torch._standard_gamma(torch.tensor([0.0, -1.0, float("nan"), float("inf"), 1e-30]))
    assert drawn.tolist() == [pytest.approx(tiny)] * 3 + [float("inf"), pytest.approx(tiny)]
    assert torch._sample_dirichlet(torch.full((2,), 1e-6)).isfinite().all()
    assert torch._standard_gamma(torch.empty(0)).shape == (0,)
    assert torch._sample_dirichlet(torch.empty(0, 3)).shape == (0, 3)


def test_dtypes_without_a_kernel_raise():
    for name, words in (("_standard_gamma", "gamma_cpu"), ("_sample_dirichlet", "dirichlet")):
        for dtype, scalar in ((torch.float16, "Half"), (torch.int64, "Long")):
            with pytest.raises(NotImplementedError, match=f"\"{words}\" not implemented for '{scalar}'"):
                getattr(torch, name)(torch.ones(2, dtype=dtype))
    a = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for '_standard_gamma_grad' is not implemented"):
        torch._standard_gamma_grad(a, torch.ones(2)).sum().backward()
    assert type(torch._standard_gamma(a).grad_fn).__name__ == "StandardGammaBackward0"


@pytest.mark.parametrize("shape", [0.3, 1.0, 7.0])
def test_distribution_of_gamma_variates(device, shape):
    torch.manual_seed(5)
    d = Gamma(torch.tensor(shape, device=device), torch.tensor(2.0, device=device))
    drawn = d.sample((5000,)).cpu().double()
    mean, deviation = shape / 2, np.sqrt(shape) / 2
    assert abs(float(drawn.mean()) - mean) < 4 * deviation / np.sqrt(5000)
    levels = torch.special.gammainc(torch.tensor(shape, dtype=torch.float64), 2 * drawn).sort()[0]
    steps = torch.arange(1, 5001, dtype=torch.float64) / 5000
    assert float((levels - steps).abs().max()) < 1.9 / np.sqrt(5000)  # Kolmogorov: one in a thousand


def test_gradients_of_samples(device):
    torch.manual_seed(1)
    a = torch.tensor([0.5, 2.0, 9.0], device=device, requires_grad=True)
    b = torch.tensor([1.5, 2.0, 0.7], device=device, requires_grad=True)
    # E[x] = a / b, whose derivatives the samples' have as mean.
    Gamma(a, b).rsample((5000,)).mean(0).sum().backward()
    torch.testing.assert_close(a.grad, (1 / b).detach(), rtol=0.1, atol=0)
    torch.testing.assert_close(b.grad, (-a / b**2).detach(), rtol=0.1, atol=0)
    a.grad = b.grad = None
    Beta(a, b).rsample((5000,)).mean(0).sum().backward()
    torch.testing.assert_close(a.grad, (b / (a + b) ** 2).detach(), rtol=0.1, atol=4e-3)
    torch.testing.assert_close(b.grad, (-a / (a + b) ** 2).detach(), rtol=0.1, atol=4e-3)
    a.grad = None
    Dirichlet(a).rsample((5000,))[:, 0].mean().backward()
    total = a.sum()
    exact = torch.stack([(total - a[0]) / total**2, -a[0] / total**2, -a[0] / total**2])
    torch.testing.assert_close(a.grad, exact.detach(), rtol=0.1, atol=4e-3)
