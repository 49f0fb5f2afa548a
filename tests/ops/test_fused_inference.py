"""Convolution, batch norm and activation: every fusion computes what the modules compute one by one."""

import math

import numpy as np
import pytest

import torchlite as torch
from torchlite import nn
from torchlite._ops.fused_inference import NO_CLAMP, can_fold_batch_norm, can_fuse_dtypes, clamp_range_of_activation
from torchlite.fx.experimental.optimization import fuse

LAYERS = {
    "Conv1d": (lambda bias: nn.Conv1d(3, 6, 3, bias=bias), nn.BatchNorm1d, (2, 3, 11)),
    "Conv2d": (lambda bias: nn.Conv2d(4, 6, 3, groups=2, bias=bias), nn.BatchNorm2d, (2, 4, 9, 8)),
    "Conv3d": (lambda bias: nn.Conv3d(2, 6, 2, bias=bias), nn.BatchNorm3d, (2, 2, 4, 5, 3)),
    "ConvTranspose2d": (lambda bias: nn.ConvTranspose2d(4, 6, 2, 2, bias=bias), nn.BatchNorm2d, (2, 4, 5, 4)),
}
ACTIVATIONS = [nn.ReLU, nn.ReLU6, lambda: nn.Hardtanh(-0.25, 0.5)]


def compiled(net, x):
    run = torch.compile(net, fullgraph=True)
    for _ in range(3):
        out = run(x)
    return out


WAYS = {
    "Sequential": lambda net, x: net(x),
    "compile": compiled,
    "jit": lambda net, x: torch.jit.freeze(torch.jit.script(net))(x),
    "fx": lambda net, x: fuse(net)(x),
}


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("way", WAYS)
def test_all_fusions_agree_with_the_modules(way, layer, bias, affine):
    make, norm_class, shape = LAYERS[layer]
    torch.manual_seed(0)
    for activation in ACTIVATIONS:
        norm = norm_class(6, affine=affine)
        for tensor in (norm.running_mean, norm.running_var, norm.weight, norm.bias):
            if tensor is not None:
                tensor.detach().uniform_(0.5, 1.5)
        net = nn.Sequential(make(bias), norm, activation()).double().eval()
        x = torch.randn(shape, dtype=torch.float64)
        expected = net[2](net[1](net[0](x))).detach()
        with torch.no_grad():
            torch.testing.assert_close(WAYS[way](net, x), expected, rtol=1e-12, atol=1e-13)


def test_bounds_of_activations():
    assert clamp_range_of_activation("relu") == (0.0, math.inf) and clamp_range_of_activation("relu6") == (0.0, 6.0)
    assert clamp_range_of_activation("hardtanh", (-1, 2.5)) == (-1.0, 2.5)
    assert clamp_range_of_activation("hardtanh", (torch.tensor(-1.0), 2.5)) is None
    assert clamp_range_of_activation("gelu") is None and clamp_range_of_activation("hardtanh") is None
    assert NO_CLAMP == (-math.inf, math.inf)


def test_conditions():
    stats = torch.zeros(2), torch.ones(2)
    assert can_fold_batch_norm(False, *stats) and can_fold_batch_norm(False, *stats, transposed=True)
    assert can_fold_batch_norm(False, *stats, groups=4)
    assert not can_fold_batch_norm(True, *stats)
    assert not can_fold_batch_norm(False, None, stats[1])
    assert not can_fold_batch_norm(False, *stats, transposed=True, groups=2)
    assert can_fuse_dtypes([torch.float32] * 2) and can_fuse_dtypes([np.dtype("f8")])
    assert not can_fuse_dtypes([torch.float32, torch.float64]) and not can_fuse_dtypes([torch.float16])
