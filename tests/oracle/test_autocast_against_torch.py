"""autocast and GradScaler beside PyTorch's: the op lists, the recorded dtypes, training, and the scale's way."""

from __future__ import annotations

import json
import pathlib
import warnings

import pytest
import torch

import torchlite
from tests.ops.op_db import load_rows
from tools import record_autocast
from torchlite._dispatch import REGISTRY
from torchlite.amp import op_lists

pytestmark = pytest.mark.oracle

# PyTorch's names that no op of ours has: forms and parts of ops that are listed, or ops of other devices.
ELSEWHERE = {
    "_convolution", "cudnn_convolution", "cudnn_convolution_transpose", "_thnn_fused_gru_cell", "_thnn_fused_lstm_cell",
    "mkldnn_rnn_layer", "nll_loss2d", "_scaled_dot_product_flash_attention", "_grid_sampler_2d_cpu_fallback",
    "grid_sampler_2d", "grid_sampler_3d",
    "cross_entropy_loss", "multilabel_margin_loss_forward", "_lu_with_info", "orgqr",
    "upsample_bicubic2d", "upsample_bilinear2d", "upsample_linear1d", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_nearest3d", "upsample_trilinear3d", "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa",
    "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "reflection_pad1d",
    "reflection_pad2d", "replication_pad1d", "replication_pad2d", "replication_pad3d", "avg_pool3d",
}  # fmt: skip


@pytest.mark.parametrize("device_type,key", [("cpu", "AutocastCPU"), ("cuda", "AutocastCUDA")])
def test_every_op_that_pytorch_lists_is_listed(device_type, key):
    theirs = {
        name.removeprefix("aten::").partition(".")[0]
        for name in torch._C._dispatch_get_registrations_for_dispatch_key(key)
    }
    assert not sorted(theirs - set(op_lists.RULES[device_type]) - ELSEWHERE)
    assert not sorted(ELSEWHERE & set(REGISTRY) & set(op_lists.RULES[device_type]))


def test_the_recorded_dtypes_are_those_of_today():
    load_rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = record_autocast.record(torch)
    recorded = json.loads(pathlib.Path(record_autocast.PATH).read_text())
    assert {
        name: (found.get(name), recorded.get(name))
        for name in {*found, *recorded}
        if found.get(name) != recorded.get(name)
    } == {}


def mixed_losses(t, steps=20):
    """A small network's losses in bfloat16 on the CPU, with a scaler."""
    t.manual_seed(0)
    model = t.nn.Sequential(t.nn.Linear(8, 16), t.nn.LayerNorm(16), t.nn.GELU(), t.nn.Linear(16, 4))
    x, y = t.randn(32, 8), t.randint(4, (32,))
    optimizer, scaler = (
        t.optim.AdamW(model.parameters(), lr=0.02),
        t.amp.GradScaler("cpu", init_scale=256.0, growth_interval=4),
    )
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with t.autocast("cpu", dtype=t.bfloat16):
            loss = t.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        t.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses, scaler.state_dict()


def test_training_in_bfloat16():
    (theirs, their_state), (ours, our_state) = mixed_losses(torch), mixed_losses(torchlite)
    assert ours == pytest.approx(theirs, rel=0.02) and our_state == their_state


def scales(t, factors):
    weight = t.nn.Parameter(t.ones(3))
    optimizer, scaler = t.optim.SGD([weight], lr=0.1), t.amp.GradScaler("cpu", init_scale=2.0**126, growth_interval=2)
    found = []
    for factor in factors:
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        found.append((scaler.state_dict(), weight.tolist()))
    return found


def test_scale_updates():
    inf, nan = float("inf"), float("nan")
    factors = [1.0, 1.0, 1.0, 1.0, 1e-3, 1e-3, inf, 1.0, nan, 1.0, 1.0, 1.0, 2.0**10, 1.0]
    assert scales(torchlite, factors) == scales(torch, factors)
