"""Ops of torchaudio's compiled library, which torchlite has itself: against their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import torchlite as torch

torch.ops.load_library("/site-packages/torchaudio/lib/_torchaudio.abi3.so")
torch.ops.load_library("/site-packages/torchaudio/lib/libtorchaudio.abi3.so")
ops = torch.ops.torchaudio


def test_capability_ops():
    assert torch.ops._torchaudio.is_align_available() is True and torch.ops._torchaudio.cuda_version() is None


@pytest.mark.parametrize("time", [0, 1, 64, 150])
def test_filters_feed_back(device, time):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, time))
    coefficients = np.concatenate([rng.uniform(-0.4, 0.4, (3, 2)), np.ones((3, 1))], 1)
    want = np.zeros((2, 3, time + 2))
    for t in range(time):
        want[:, :, t + 2] = x[:, :, t] - (want[:, :, t : t + 2] * coefficients[:, :2]).sum(-1)
    out = torch.zeros(2, 3, time + 2, device=device)
    given = (torch.from_numpy(v).float().to(device) for v in (x, coefficients))
    assert ops._lfilter_core_loop(*given, out) is out
    np.testing.assert_allclose(out.cpu().numpy(), want, atol=1e-5)


def test_the_end_of_overdrive(device):
    rng = np.random.default_rng(1)
    wave, temp = rng.standard_normal((2, 2, 100)).astype(np.float32)
    last_in = last_out = np.zeros(2)
    want = np.zeros((2, 100))
    for t in range(100):
        last_out = temp[:, t] - last_in + 0.995 * last_out
        last_in = temp[:, t]
        want[:, t] = wave[:, t] * 0.5 + last_out * 0.75
    past, out = torch.zeros(2, 2, device=device), torch.zeros(2, 100, device=device)
    ops._overdrive_core_loop(torch.from_numpy(wave).to(device), torch.from_numpy(temp).to(device), *past, out)
    np.testing.assert_allclose(out.cpu().numpy(), want, atol=1e-5)
    np.testing.assert_allclose(past.cpu().numpy(), np.stack([last_in, last_out]), atol=1e-5)


def ways(labels, time):
    """All ways of labels through time, blanks (0) between them."""
    for way in itertools.product({0, *labels}, repeat=time):
        if [k for k, _ in itertools.groupby(way) if k] == labels:
            yield way


@pytest.mark.parametrize("labels", [[1, 2], [2, 2], [3]])
def test_the_likeliest_alignment(labels):
    torch.manual_seed(0)
    scores = torch.randn(1, 6, 4).log_softmax(-1)
    path, _ = ops.forced_align(
        scores, torch.tensor([labels], dtype=torch.int32), torch.tensor([6]), torch.tensor([len(labels)]), 0
    )
    best = max(ways(labels, 6), key=lambda way: sum(float(scores[0, t, k]) for t, k in enumerate(way)))
    assert tuple(path[0].tolist()) == best and path.dtype == torch.int32
    with pytest.raises(RuntimeError, match="targets length is too long for CTC"):
        ops.forced_align(scores[:, :1], torch.tensor([[2, 2]]), torch.tensor([1]), torch.tensor([2]), 0)


@pytest.mark.parametrize("fused", [True, False])
def test_the_loss_of_transducers(fused):
    torch.manual_seed(0)
    logits = torch.randn(2, 4, 3, 5, dtype=torch.float64, requires_grad=True)
    labels = [[1, 3], [2]]
    scores = logits.log_softmax(-1) if fused else logits
    total = 0.0
    for i, (time, names) in enumerate(zip((4, 3), labels, strict=True)):
        found = []
        for spoken in itertools.combinations_with_replacement(range(time), len(names)):
            steps = []
            said = 0
            for t in range(time):
                while said < len(names) and spoken[said] == t:
                    steps.append(scores[i, t, said, names[said]])
                    said += 1
                steps.append(scores[i, t, said, 0])
            found.append(sum(steps))
        total = total - torch.stack(found).logsumexp(0)
    given = (torch.tensor([[1, 3], [2, 0]]), torch.tensor([4, 3]), torch.tensor([2, 1]), 0)
    losses, gradients = ops.rnnt_loss_forward(logits, *given, -1.0, fused)
    assert float(losses.sum()) == pytest.approx(float(total), rel=1e-5)
    torch.testing.assert_close(gradients, torch.autograd.grad(total, logits)[0], atol=1e-5, rtol=1e-5)
    assert float(ops.rnnt_loss_forward(logits, *given, 0.01, fused)[1].abs().max()) == pytest.approx(0.01)
