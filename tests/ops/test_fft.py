"""Fourier transforms beyond the op table: precision, round trips, the short-time transforms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import torchlite as torch


def close(a, b, tol=1e-9):
    np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().cpu().numpy(), rtol=tol, atol=tol)


@pytest.mark.parametrize(
    "kind,wanted", [(torch.float32, torch.complex64), (torch.float64, torch.complex128), (torch.int64, torch.complex64)]
)
def test_precision_is_preserved(kind, wanted, device):
    x = torch.ones(4, 4, dtype=kind, device=device)
    for name in ("fft", "ifft", "rfft", "ihfft", "fftn", "ifft2", "rfftn", "ihfft2"):
        assert getattr(torch.fft, name)(x).dtype is wanted, name
    for name in ("irfft", "hfft", "irfftn", "hfft2"):
        assert getattr(torch.fft, name)(x).dtype is (torch.float64 if kind is torch.float64 else torch.float32), name


@pytest.mark.parametrize("norm", [None, "backward", "forward", "ortho"])
@pytest.mark.parametrize("n", [7, 8])
def test_round_trips(norm, n, device, rng):
    x = torch.from_numpy(rng.standard_normal((3, n))).to(device)
    close(torch.fft.ifft(torch.fft.fft(x, norm=norm), norm=norm).real, x)
    close(torch.fft.irfft(torch.fft.rfft(x, norm=norm), n, norm=norm), x)
    close(torch.fft.hfft(torch.fft.ihfft(x, norm=norm), n, norm=norm), x)
    close(torch.fft.irfftn(torch.fft.rfftn(x, norm=norm), x.shape, norm=norm), x)
    close(torch.fft.hfftn(torch.fft.ihfftn(x, norm=norm), x.shape, norm=norm), x)
    close(torch.fft.ifftshift(torch.fft.fftshift(x)), x)


def test_transform_of_a_wave(device):
    t = torch.arange(16, dtype=torch.float64, device=device) / 16
    spectrum = torch.fft.rfft(torch.cos(2 * math.pi * 3 * t)).abs()
    assert spectrum.argmax().item() == 3
    assert abs(spectrum[3].item() - 8) < 1e-9


def test_frequencies(device):
    assert torch.fft.fftfreq(5, 0.5, device=device).tolist() == pytest.approx([0.0, 0.4, 0.8, -0.8, -0.4])
    assert torch.fft.rfftfreq(4, device=device).tolist() == [0.0, 0.25, 0.5]
    assert torch.fft.fftfreq(3, dtype=torch.float64).dtype is torch.float64


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("onesided", [True, False])
def test_istft_inverts_stft(center, normalized, onesided, device, rng):
    x = torch.from_numpy(rng.standard_normal((2, 50))).to(device)
    window = torch.hann_window(16, periodic=True, dtype=torch.float64, device=device) + 0.1
    how = {"hop_length": 4, "window": window, "center": center, "normalized": normalized, "onesided": onesided}
    spectrum = torch.stft(x, 16, **how, return_complex=True)
    assert spectrum.shape == (2, 9 if onesided else 16, 13 if center else 9)
    back = torch.istft(spectrum, 16, **how)
    close(back, x[:, : back.shape[1]])


def test_short_time_warnings(device):
    x = torch.ones(20, device=device)
    with pytest.warns(UserWarning, match="A window was not provided"):
        spectrum = torch.stft(x, 8, return_complex=True)
    window = torch.ones(8, device=device)
    with pytest.warns(UserWarning, match="The length of signal is shorter"):
        result = torch.istft(spectrum, 8, window=window, length=40)
    assert result.shape == (40,)
