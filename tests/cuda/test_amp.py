"""torch.cuda.amp: the older names, which warn."""

from __future__ import annotations

import pytest

import torchlite as torch


def test_older_names(fake):
    amp = torch.cuda.amp
    x = torch.ones(2, 2, device="cuda")
    with pytest.warns(FutureWarning, match=r"`torch.cuda.amp.autocast\(args...\)` is deprecated"):
        context = amp.autocast(dtype=torch.float16)
    with context:
        assert (x @ x).dtype is torch.float16
    with pytest.warns(FutureWarning, match=r"`torch.cuda.amp.GradScaler\(args...\)` is deprecated"):
        scaler = amp.GradScaler(init_scale=4.0)
    assert scaler.get_scale() == 4.0 and isinstance(scaler, torch.amp.GradScaler)
    assert not amp.amp_definitely_not_available()
    for name in amp.__all__:
        assert getattr(amp, name).__doc__
