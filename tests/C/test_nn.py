"""`torch._C._nn`: functions of layers by the names of PyTorch's library."""

from __future__ import annotations

import pytest

import torchlite as torch
import torchlite.nn.functional as F

nn = torch._C._nn
X = torch.linspace(-2, 2, 48).reshape(1, 3, 4, 4)
CASES = {
    "gelu": (lambda: nn.gelu(X, approximate="tanh"), lambda: F.gelu(X, approximate="tanh")),
    "gelu, by name": (lambda: nn.gelu(input=X), lambda: F.gelu(X)),
    "elu": (lambda: nn.elu(X, 0.5), lambda: F.elu(X, 0.5)),
    "linear": (lambda: nn.linear(X, torch.ones(2, 4)), lambda: F.linear(X, torch.ones(2, 4))),
    "avg_pool2d": (lambda: nn.avg_pool2d(X, 2), lambda: F.avg_pool2d(X, 2)),
    "adaptive_avg_pool2d": (lambda: nn.adaptive_avg_pool2d(X, (2, 1)), lambda: F.adaptive_avg_pool2d(X, (2, 1))),
    "max_pool2d": (lambda: nn.max_pool2d_with_indices(X, 2)[1], lambda: F.max_pool2d(X, 2, return_indices=True)[1]),
    "pad": (lambda: nn.pad(X, (1, 2, 0, 1), "reflect"), lambda: F.pad(X, (1, 2, 0, 1), "reflect")),
    "upsample": (
        lambda: nn.upsample_bilinear2d(X, (8, 6), True),
        lambda: F.interpolate(X, (8, 6), mode="bilinear", align_corners=True),
    ),
    "upsample by factors": (
        lambda: nn.upsample_nearest2d(X, None, [2.0, 2.0]), lambda: F.interpolate(X, scale_factor=2.0),
    ),
    "mse_loss": (lambda: nn.mse_loss(X, X + 1, 2), lambda: F.mse_loss(X, X + 1, reduction="sum")),
    "one_hot": (lambda: nn.one_hot(torch.tensor([0, 2])), lambda: F.one_hot(torch.tensor([0, 2]))),
    "depthwise": (
        lambda: nn._conv_depthwise2d(X, torch.ones(3, 1, 2, 2), (2, 2), None, (1, 1), (0, 0), (1, 1)),
        lambda: F.conv2d(X, torch.ones(3, 1, 2, 2), groups=3),
    ),
    "im2col": (lambda: nn.im2col(X, (2, 2), (1, 1), (0, 0), (1, 1)), lambda: F.unfold(X, 2)),
    "pad_sequence": (
        lambda: nn.pad_sequence([torch.ones(2), torch.ones(3)], True, 5.0),
        lambda: torch.tensor([[1.0, 1, 5], [1, 1, 1]]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    call, expected = CASES[name]
    torch.testing.assert_close(call(), expected())


def test_in_place_flat_and_absent_names():
    x = torch.tensor([-1.0, 1.0])
    assert nn.silu_(x) is x and torch.equal(x, F.silu(torch.tensor([-1.0, 1.0])))
    parts = [torch.arange(4.0).reshape(2, 2), torch.ones(3)]
    flat = nn.flatten_dense_tensors(parts)
    assert all(map(torch.equal, nn.unflatten_dense_tensors(flat, parts), parts))
    with pytest.raises(AttributeError, match="has no attribute 'no_such_layer'"):
        nn.no_such_layer
    assert "gelu" in dir(nn)
