"""torch.masked: the same as computing with the elements that count, row by row."""

from __future__ import annotations

import math

import numpy as np
import pytest

import torchlite as torch
from torchlite import masked


@pytest.fixture
def data(rng, device):
    array = rng.uniform(-2, 2, (4, 6))
    mask = rng.random((4, 6)) < 0.6
    mask[:, 0] = True
    mask[:, 3] = True
    return array, mask, torch.tensor(array, device=device), torch.tensor(mask, device=device)


def by_row(array, mask, function):
    return np.array([function(row[m]) for row, m in zip(array, mask, strict=True)])


@pytest.mark.parametrize(
    "name,function",
    [
        ("sum", np.sum),
        ("prod", np.prod),
        ("amax", np.max),
        ("amin", np.min),
        ("mean", np.mean),
        ("var", lambda v: v.var(ddof=1)),
        ("std", lambda v: v.std(ddof=1)),
        ("logsumexp", lambda v: math.log(np.exp(v).sum())),
        ("norm", lambda v: math.sqrt((v * v).sum())),
        ("median", lambda v: np.sort(v)[(len(v) - 1) // 2]),
    ],
)
def test_reductions(data, name, function):
    array, mask, x, m = data
    where = {"dim": 1}
    np.testing.assert_allclose(
        getattr(masked, name)(x, mask=m, **where).cpu().numpy(), by_row(array, mask, function), rtol=1e-10
    )
    np.testing.assert_allclose(
        getattr(masked, name)(x, **where).cpu().numpy(), by_row(array, np.ones_like(mask), function), rtol=1e-10
    )
    assert getattr(masked, name)(x, mask=m, keepdim=True, **where).shape == (4, 1)


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
def test_over_everything(data, name):
    array, mask, x, m = data
    numpy_name = {"amax": "max", "amin": "min"}.get(name, name)
    assert math.isclose(getattr(masked, name)(x, mask=m).item(), getattr(np, numpy_name)(array[mask]), rel_tol=1e-10)


def test_positions(data):
    array, mask, x, m = data
    want = np.where(mask, array, -np.inf).argmax(1)
    found = masked.argmax(x, 1, mask=m)
    assert found.dtype is x.dtype
    np.testing.assert_array_equal(found.cpu().numpy(), want)
    np.testing.assert_array_equal(
        masked.argmin(x, 1, mask=m, dtype=torch.int64).cpu().numpy(), np.where(mask, array, np.inf).argmin(1)
    )


def test_scans_skip_masked_elements(data):
    array, mask, x, m = data
    np.testing.assert_allclose(masked.cumsum(x, 1, mask=m).cpu().numpy(), np.where(mask, array, 0).cumsum(1))
    np.testing.assert_allclose(masked.cumprod(x, 1, mask=m).cpu().numpy(), np.where(mask, array, 1).cumprod(1))


@pytest.mark.parametrize("name,sign", [("softmax", 1), ("softmin", -1)])
def test_softmax(data, name, sign):
    array, mask, x, m = data
    weights = np.where(mask, np.exp(sign * array), 0)
    found = getattr(masked, name)(x, 1, mask=m).cpu().numpy()
    np.testing.assert_allclose(found, weights / weights.sum(1, keepdims=True), rtol=1e-10)


def test_log_softmax_and_normalize(data):
    array, mask, x, m = data
    np.testing.assert_allclose(
        masked.log_softmax(x, 1, mask=m).exp().cpu().numpy(), masked.softmax(x, 1, mask=m).cpu().numpy(), rtol=1e-10
    )
    kept = np.where(mask, array, 0)
    np.testing.assert_allclose(
        masked.normalize(x, 2.0, 1, mask=m).cpu().numpy(),
        kept / np.linalg.norm(kept, axis=1, keepdims=True),
        rtol=1e-10,
    )


def test_nothing_counts(device):
    x, m = torch.ones(3, device=device), torch.zeros(3, dtype=torch.bool, device=device)
    assert masked.sum(x, mask=m).item() == 0 and masked.prod(x, mask=m).item() == 1
    assert masked.amax(x, mask=m).item() == -math.inf and math.isnan(masked.mean(x, mask=m).item())


def test_gradient_flows_only_where_it_counts(data):
    _, mask, x, m = data
    x.requires_grad_()
    masked.mean(x, 1, mask=m).sum().backward()
    want = mask / mask.sum(1, keepdims=True)
    np.testing.assert_allclose(x.grad.cpu().numpy(), want)


def test_bad_input(device):
    x = torch.ones(2, 3, device=device)
    with pytest.raises(RuntimeError, match="appears multiple times"):
        masked.sum(x, (0, 0))
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        masked.mean(x.long())
