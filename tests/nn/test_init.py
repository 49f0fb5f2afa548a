"""Initialisation: ranges, variances, structure; seeded draws as PyTorch's."""

import math

import pytest

import torchlite as torch
from torchlite.nn import init


def test_gains():
    assert (
        init.calculate_gain("relu") == math.sqrt(2)
        and init.calculate_gain("tanh") == 5 / 3
        and init.calculate_gain("selu") == 0.75
    )
    assert init.calculate_gain("leaky_relu", 0.2) == math.sqrt(2 / (1 + 0.04)) and init.calculate_gain("conv2d") == 1
    with pytest.raises(ValueError, match="Unsupported nonlinearity foo"):
        init.calculate_gain("foo")


def test_seeded_draws_are_pytorchs():
    torch.manual_seed(0)
    assert init.kaiming_uniform_(torch.empty(2, 2), a=math.sqrt(5)).flatten().tolist() == pytest.approx(
        [-0.0053, 0.3793, -0.5820, -0.5204], abs=1e-4
    )


def test_bounds_and_moments():
    w = torch.empty(200, 100)
    assert (
        init.xavier_uniform_(w).abs().max() <= math.sqrt(6 / 300)
        and abs(init.xavier_normal_(w).std().item() - math.sqrt(2 / 300)) < 2e-3
    )
    assert abs(init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu").std().item() - math.sqrt(2 / 200)) < 2e-3
    init.trunc_normal_(w, 1.0, 2.0, 0.0, 1.5)
    assert w.min() >= 0 and w.max() <= 1.5
    assert (init.sparse_(w, 0.25) == 0).sum(0).tolist() == [50] * 100


def test_structured():
    q = init.orthogonal_(torch.empty(5, 3), gain=2.0)
    torch.testing.assert_close(q.T @ q, 4 * torch.eye(3), rtol=1e-4, atol=1e-4)
    q = init.orthogonal_(torch.empty(2, 3))
    torch.testing.assert_close(q @ q.T, torch.eye(2), rtol=1e-4, atol=1e-4)
    assert torch.equal(init.eye_(torch.empty(2, 3)), torch.eye(2, 3))
    d = init.dirac_(torch.empty(4, 2, 3), groups=2)
    assert d.sum().item() == 4 and d[2, 0, 1].item() == 1
    with pytest.raises(
        ValueError, match="Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
    ):
        init.xavier_uniform_(torch.empty(3))
    with pytest.warns(FutureWarning, match="nn.init.uniform"):
        init.uniform(torch.empty(2))


def test_sparse_places_zeros_by_the_default_generator():
    """Recorded: the draws come from the given generator, the places do not."""
    zeros = [[0, 0], [0, 1], [1, 0], [1, 2], [1, 3], [2, 2], [2, 3], [3, 0], [3, 1], [4, 2], [4, 3], [5, 1]]
    generator = torch.Generator().manual_seed(3)
    torch.manual_seed(7)
    filled = init.sparse_(torch.empty(6, 4), 0.4, std=0.1, generator=generator)
    assert (filled == 0).nonzero().tolist() == zeros
    torch.testing.assert_close(torch.rand(2, generator=generator), torch.tensor([0.5824, 0.4283]), atol=1e-4, rtol=0)
    torch.manual_seed(7)
    again = init.sparse_(torch.empty(6, 4), 0.4, std=0.1, generator=torch.Generator().manual_seed(4))
    assert (again == 0).nonzero().tolist() == zeros
