"""Transforms on OpenCL devices: every way to factor a length, all axes and normalisations, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch

LENGTHS = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 30, 31, 32, 37, 49, 60, 64, 74, 97, 100, 128, 243, 360, 1009, 1024, 4096,
    10007,
]  # fmt: skip


pytestmark = pytest.mark.usefixtures("opencl")


@pytest.fixture(params=[0, 16], ids=["as the device does", "in groups"])
def group(request, device):
    """Work-items that share a transform: CPU devices use one, so that the way of GPUs is tried here too."""
    from torchlite_backends.device_runtime.linalg.matrix_launch import choose_group_size
    from torchlite_backends.opencl.backend import backend

    found = backend.device(0)
    before = choose_group_size(found)
    found.plans["group of a matrix"] = request.param or before
    yield
    found.plans["group of a matrix"] = before


def values(rng, kind, *shape):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(kind)


def close(found, wanted):
    found = found.cpu().numpy()
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= 40 * np.finfo(found.dtype).eps * np.abs(wanted).max()


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(device, rng, group, kind, n):
    a = values(rng, kind, n)
    x, wide = torch.from_numpy(a).to(device), a.astype(np.complex128)
    close(torch.fft.fft(x), np.fft.fft(wide))
    close(torch.fft.ifft(x), np.fft.ifft(wide))
    close(torch.fft.rfft(x.real), np.fft.rfft(wide.real))
    close(torch.fft.fft(x.real), np.fft.fft(wide.real))
    for last in {2 * (n - 1), 2 * n - 1} - {0}:
        close(torch.fft.irfft(x, last), np.fft.irfft(wide, last))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize(
    "shape,dim",
    [
        ((6, 5, 8), (1,)),
        ((6, 5, 8), (0, 2)),
        ((3, 37, 9), (1, 2)),
        ((128, 96), (0, 1)),
        ((2, 3, 64, 40), (2,)),
        ((20, 300), (1,)),
    ],
    ids=str,
)
def test_axes(device, rng, group, norm, shape, dim):
    a = values(rng, np.complex128, *shape)
    x = torch.from_numpy(a).to(device)
    turned = torch.from_numpy(np.ascontiguousarray(a.T)).to(device).permute(*reversed(range(a.ndim)))
    for y in (x, turned):
        close(torch.fft.fftn(y, dim=dim, norm=norm), np.fft.fftn(a, axes=dim, norm=norm))
        close(torch.fft.ifftn(y, dim=dim, norm=norm), np.fft.ifftn(a, axes=dim, norm=norm))
        close(torch.fft.rfftn(y.real, dim=dim, norm=norm), np.fft.rfftn(a.real, axes=dim, norm=norm))
        close(torch.fft.irfftn(y, dim=dim, norm=norm), np.fft.irfftn(a, axes=dim, norm=norm))


def test_a_real_view_that_starts_at_an_odd_place(device, rng):
    a = rng.standard_normal(65)
    x = torch.from_numpy(a).to(device)[1:]
    close(torch.fft.rfft(x), np.fft.rfft(a[1:]))
    assert x.cpu().numpy().tolist() == a[1:].tolist()


def test_nothing_to_transform(device):
    assert torch.fft.fft(torch.ones(0, 4, device=device)).shape == (0, 4)
    assert torch.fft.irfft(torch.ones(0, 3, dtype=torch.complex64, device=device)).shape == (0, 4)
