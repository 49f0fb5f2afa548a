"""Softmax, normalisation, cross entropy and embedding on OpenCL devices: extremes, errors, empty
arrays, mixed types.
"""

import numpy as np
import pytest

import torchlite as torch
import torchlite.nn.functional as F


def both(function, *arrays, device):
    """Return a function's results on the device and on the CPU, as NumPy arrays."""
    results = [function(*[torch.from_numpy(a).to(where) for a in arrays]) for where in (device, "cpu")]
    return [r.detach().cpu().numpy() for r in results]


def test_rows_with_extremes(opencl):
    x = np.array(
        [[1e4, -1e4, 0, 3], [-np.inf, 1, 2, 3], [-np.inf] * 4, [np.nan, 1, 2, 3], [np.inf, 1, 2, 3], [88, 89, 90, 91]],
        np.float32,
    )
    for dim in (0, 1):
        for function in (torch.softmax, torch.log_softmax):
            mine, right = both(lambda t, f=function, d=dim: f(t, d), x, device=opencl)
            np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-6)


def test_long_rows(opencl, rng):
    x = rng.standard_normal((2, 70_001)).astype(np.float32)
    for function in (
        lambda t: t.softmax(1) * 70_000,
        lambda t: F.layer_norm(t, (70_001,)),
        lambda t: F.cross_entropy(t, torch.tensor([5, 69_999]).to(t.device)),
    ):
        mine, right = both(function, x, device=opencl)
        np.testing.assert_allclose(mine, right, rtol=2e-5, atol=2e-5)


def test_empty(opencl):
    assert torch.ones(0, 3, device=opencl).softmax(1).shape == (0, 3)
    assert torch.ones(3, 0, device=opencl).log_softmax(1).shape == (3, 0)
    assert F.layer_norm(torch.ones(0, 3, device=opencl), (3,)).shape == (0, 3)
    assert torch.isnan(
        F.cross_entropy(torch.ones(0, 3, device=opencl), torch.empty(0, dtype=torch.int64, device=opencl))
    ).item()
    assert (
        F.cross_entropy(
            torch.ones(0, 3, device=opencl), torch.empty(0, dtype=torch.int64, device=opencl), reduction="sum"
        ).item()
        == 0
    )


def test_all_targets_ignored(opencl):
    x = torch.ones(3, 4, device=opencl, requires_grad=True)
    target = torch.full((3,), -100, dtype=torch.int64, device=opencl)
    loss = F.cross_entropy(x, target)
    loss.backward()
    assert torch.isnan(loss).item()
    np.testing.assert_array_equal(x.grad.cpu().numpy(), np.zeros((3, 4)))


def test_target_out_of_range(opencl):
    with pytest.raises(IndexError, match="Target 4 is out of bounds"):
        F.cross_entropy(torch.zeros(3, 4, device=opencl), torch.tensor([0, 1, 4], device=opencl)).item()


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool])
def test_types_that_have_no_softmax(opencl, dtype):
    x = torch.ones(3, 4, device=opencl).to(dtype)
    for function in (torch.softmax, torch.log_softmax):
        with pytest.raises(NotImplementedError, match="not implemented for"):
            function(x, 1)


def test_half_precision_with_weights_in_single(opencl, rng):
    x, weight = rng.standard_normal((4, 40)).astype(np.float16), rng.standard_normal(40).astype(np.float32)
    mine = F.layer_norm(torch.from_numpy(x).to(opencl), (40,), torch.from_numpy(weight).to(opencl))
    right = F.layer_norm(torch.from_numpy(x.astype(np.float32)), (40,), torch.from_numpy(weight))
    assert mine.dtype == torch.float16
    np.testing.assert_allclose(mine.cpu().numpy().astype("f4"), right.numpy(), rtol=2e-3, atol=2e-3)


def test_embedding_gradient_is_the_same_every_time(opencl, rng):
    index = torch.from_numpy(rng.integers(0, 20, 3000)).to(opencl)
    weight = torch.from_numpy(rng.standard_normal((20, 33)).astype(np.float32)).to(opencl).requires_grad_()
    grads = []
    for _ in range(3):
        weight.grad = None
        F.embedding(index, weight).square().sum().backward()
        grads.append(weight.grad.cpu().numpy())
    np.testing.assert_array_equal(grads[0], grads[1])
    np.testing.assert_array_equal(grads[0], grads[2])


def test_running_statistics(opencl, rng):
    x = rng.standard_normal((6, 3, 5)).astype(np.float32)
    layers = [torch.nn.BatchNorm1d(3).to(where) for where in (opencl, "cpu")]
    for layer, where in zip(layers, (opencl, "cpu"), strict=True):
        layer(torch.from_numpy(x).to(where))
    for name in ("running_mean", "running_var"):
        mine, right = (getattr(layer, name).cpu().numpy() for layer in layers)
        np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-6)
