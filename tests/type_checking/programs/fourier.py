"""torch.fft: a spectrum, a filter, a convolution, a spectrogram."""

import math

import torchlite as torch

rate, n = 64, 128
time = torch.arange(n) / rate
wave = torch.sin(2 * math.pi * 5 * time) + 0.5 * torch.cos(2 * math.pi * 12 * time)

spectrum = torch.fft.rfft(wave)
frequencies = torch.fft.rfftfreq(n, d=1 / rate)
peaks = frequencies[spectrum.abs().topk(2).indices].sort().values
assert peaks.tolist() == [5.0, 12.0]

low = torch.where(frequencies < 8, spectrum, torch.zeros_like(spectrum))
filtered = torch.fft.irfft(low, n=n)
assert torch.allclose(filtered, torch.sin(2 * math.pi * 5 * time), atol=1e-4)

kernel = torch.tensor([0.25, 0.5, 0.25])
by_fft = torch.fft.irfft(torch.fft.rfft(wave, n + 2) * torch.fft.rfft(kernel, n + 2), n + 2)
direct = torch.nn.functional.conv1d(wave.view(1, 1, -1), kernel.view(1, 1, -1), padding=2).flatten()
assert torch.allclose(by_fft, direct, atol=1e-5)

image = torch.rand(8, 8)
shifted = torch.fft.fftshift(torch.fft.fft2(image, norm="ortho"))
assert torch.allclose(torch.fft.ifft2(torch.fft.ifftshift(shifted), norm="ortho").real, image, atol=1e-6)

spectrogram = torch.stft(wave, n_fft=32, hop_length=8, window=torch.hann_window(32), return_complex=True)
restored = torch.istft(spectrogram, n_fft=32, hop_length=8, window=torch.hann_window(32), length=n)
print(spectrogram.shape, torch.angle(spectrum[10]).item(), torch.view_as_real(spectrum).shape)
assert torch.allclose(restored, wave, atol=1e-5)
