"""torchaudio: filters, features, effects, alignment, losses; its compiled ops are torchlite's own."""

import torch
from show import show
from torchaudio import functional as audio
from torchaudio import transforms

torch.manual_seed(0)
rate = 16000
wave = (torch.randn(2, 4000) * 0.3).clamp(-1, 1)
for name in ("allpass", "bandpass", "bandreject", "highpass", "lowpass", "band"):
    show(f"filters.{name}", getattr(audio, f"{name}_biquad")(wave, rate, 1000.0))
for effect in (audio.overdrive, audio.contrast):
    show(f"effects.{effect.__name__}", effect(wave))
show("effects.phaser", audio.phaser(wave, rate))
show("effects.flanger", audio.flanger(wave[None], rate))
signal = wave.clone().requires_grad_()
fed_back, forward = torch.tensor([1.0, -0.9, 0.5], requires_grad=True), torch.tensor([0.3, 0.2], requires_grad=True)
out = audio.lfilter(signal, fed_back, torch.cat([forward, forward.new_zeros(1)]), clamp=False)
out.square().sum().backward()
show("lfilter", out)
show("lfilter.gradient", signal.grad)
show("lfilter.coefficients", torch.cat([fed_back.grad, forward.grad]))
for transform in (
    transforms.Spectrogram(400), transforms.MelSpectrogram(rate), transforms.MFCC(rate), transforms.LFCC(rate),
    transforms.Resample(rate, 8000), transforms.MuLawEncoding(), transforms.SpectralCentroid(rate),
    transforms.ComputeDeltas(), transforms.Vad(rate),
):  # fmt: skip
    show(f"transforms.{type(transform).__name__}", transform(wave))
power = transforms.Spectrogram(400)(wave)
show("transforms.GriffinLim", transforms.GriffinLim(400, n_iter=3, rand_init=False)(power))
scores = torch.randn(1, 30, 6).log_softmax(-1)
path, chosen = audio.forced_align(scores, torch.tensor([[1, 2, 2, 5, 3, 3, 1]], dtype=torch.int32))
show("alignment", path * torch.arange(30))
show("alignment.scores", chosen)
logits = torch.randn(2, 7, 5, 6, requires_grad=True)
lengths = [torch.tensor(numbers, dtype=torch.int32) for numbers in ([7, 5], [4, 3])]
loss = audio.rnnt_loss(logits, torch.randint(1, 6, (2, 4), dtype=torch.int32), *lengths, blank=0)
loss.backward()
show("transducer", loss)
show("transducer.gradient", logits.grad)
