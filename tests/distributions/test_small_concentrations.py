"""Beta and Dirichlet variates whose gamma variates are less than any number of their dtype."""

import math

import pytest

import torchlite as torch
from torchlite.distributions import Beta, Dirichlet, Gamma

N = 4000


def beta(device, a, b, dtype=torch.float32):
    torch.manual_seed(1)
    pair = (torch.tensor(value, dtype=dtype, device=device) for value in (a, b))
    return Beta(*pair).sample((N,)).cpu().double()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("a", [1e-8, 1e-5, 1e-3, 1e-2])
def test_a_symmetric_beta(a, dtype, device):
    x = beta(device, a, a, dtype)
    # P(X < t) is about t**a / 2 for small a
    near = (1e-3**a) / 2
    margin = 4 * math.sqrt(0.25 / N)
    assert abs((x < 1e-3).double().mean() - near) < margin
    assert abs((x > 1 - 1e-3).double().mean() - near) < margin
    assert abs(x.mean() - 0.5) < margin
    assert 0 < x.min() and x.max() < 1


@pytest.mark.parametrize(("a", "b"), [(1e-3, 2e-3), (1e-5, 3e-5), (1e-7, 1e-3)])
def test_the_mean_of_a_skewed_beta(a, b, device):
    mean = a / (a + b)
    assert abs(beta(device, a, b).mean() - mean) < 4 * math.sqrt(mean * (1 - mean) / N) + 1e-3


@pytest.mark.parametrize("concentration", [[1e-4] * 3, [1e-6, 2e-6, 1e-6], [1e-3] * 5])
def test_a_dirichlet(concentration, device):
    torch.manual_seed(2)
    alpha = torch.tensor(concentration, device=device)
    x = Dirichlet(alpha).sample((N,)).cpu().double()
    torch.testing.assert_close(x.sum(-1), torch.ones(N, dtype=torch.float64), rtol=0, atol=1e-6)
    assert (x.max(-1).values > 0.99).double().mean() > 0.96
    wanted = (alpha / alpha.sum()).cpu().double()
    torch.testing.assert_close(x.mean(0), wanted, rtol=0, atol=4 * math.sqrt(0.25 / N))


@pytest.mark.parametrize("a", [1e-5, 1e-3, 0.1])
def test_gradients_are_finite(a, device):
    torch.manual_seed(3)
    for make in (lambda p: Beta(p, p), lambda p: Dirichlet(torch.stack([p, p, p])), lambda p: Gamma(p, p)):
        parameter = torch.tensor(a, device=device, requires_grad=True)
        sample = make(parameter).rsample((50,))
        sample.sum().backward()
        assert torch.isfinite(sample).all() and torch.isfinite(parameter.grad)


def test_rows_without_small_variates_keep_their_values():
    """A seed's values do not change where doubles hold all gamma variates."""
    alpha = torch.tensor([[1e-6, 1e-6, 1e-6], [2.0, 3.0, 0.5]])
    torch.manual_seed(4)
    mixed = torch._sample_dirichlet(alpha)[1]
    torch.manual_seed(4)
    gammas = torch._standard_gamma(alpha.double())[1]
    torch.testing.assert_close(mixed, (gammas / gammas.sum()).float(), rtol=1e-6, atol=0)
