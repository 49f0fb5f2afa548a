"""Convolutions with what follows them as one step, and writes into a program's own arrays as new ones."""

from __future__ import annotations

import re

import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dispatch.kernel_recorder import table_of
from torchlite._dynamo.compiled_function import CompiledFunction
from torchlite.nn import functional as F

NUMPY = table_of(torch.device("cpu")).backend.engine() == "numpy"


def replayed(function, *given):
    """The text of the captured call, what it gives, and what the function gives."""
    frame = CompiledFunction(function, "finish", fullgraph=True)
    for seed in range(3):
        torch.manual_seed(seed)
        inputs = [torch.randn(shape) for shape in given]
        torch.manual_seed(seed)
        want = function(*[x.clone() for x in inputs])
        torch.manual_seed(seed)
        found = frame(*inputs)
    assert frame.replays == 1
    return next(iter(frame.variants.values()))[0].replay.forward.text, found, want


def trained(norm):
    with torch.no_grad():
        for name in ("weight", "bias", "running_mean", "running_var"):
            getattr(norm, name).uniform_(0.5, 1.5)
    return norm.eval()


CONVOLUTIONS = {
    "plane": (lambda bias: nn.Conv2d(3, 8, 3, 2, 1, bias=bias), (2, 3, 15, 14)),
    "one place": (lambda bias: nn.Conv2d(16, 24, 1, bias=bias), (2, 16, 28, 28)),
    "depthwise": (lambda bias: nn.Conv2d(48, 48, 3, 1, 1, groups=48, bias=bias), (2, 48, 28, 28)),
    "filtering": (lambda bias: nn.Conv2d(64, 64, 3, 1, 1, bias=bias), (1, 64, 32, 32)),
    "long rows": (lambda bias: nn.Conv2d(16, 16, 5, 1, 2, bias=bias), (1, 16, 64, 64)),
    "transposed": (lambda bias: nn.ConvTranspose2d(8, 6, 2, 2, bias=bias), (2, 8, 9, 9)),
    "line": (lambda bias: nn.Conv1d(16, 32, 2, dilation=4, bias=bias), (2, 16, 500)),
}
LIMITS = [F.relu, lambda x: F.relu_(x), F.relu6, lambda x: F.hardtanh(x, -0.5, 0.25, inplace=True)]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_convolutions_with_following_layers(kind, normed, bias):
    make, shape = CONVOLUTIONS[kind]
    torch.manual_seed(0)
    convolution = make(bias)
    norm = trained((nn.BatchNorm1d if kind == "line" else nn.BatchNorm2d)(convolution.out_channels)) if normed else None

    for limit in LIMITS:

        def function(x, limit=limit):
            with torch.no_grad():
                y = convolution(x)
                return limit(y if norm is None else norm(y)) * 2

        text, found, want = replayed(function, shape)
        assert text.count("= _fused_conv_bn(") == 1
        assert not re.search(r"= (convolution|relu\w*|hardtanh|_batch_norm_eval)\(|copy_into\(", text)
        bound = 1e-5 if normed or not NUMPY else 0
        torch.testing.assert_close(found, want, rtol=bound, atol=bound)
        assert found.stride() == want.stride()


def test_returned_intermediates_prevent_fusion():
    torch.manual_seed(0)
    convolution, norm = nn.Conv2d(3, 8, 3), trained(nn.BatchNorm2d(8))

    def function(x):
        with torch.no_grad():
            y = convolution(x)
            z = norm(y)
            return y, z.relu(), z.sum()

    text, found, want = replayed(function, (2, 3, 9, 9))
    assert "_fused_conv_bn(" not in text and "relu(" in text
    assert all(torch.equal(a, b) for a, b in zip(found, want, strict=True))


def test_gradients_of_fused_layers():
    torch.manual_seed(0)
    convolution = nn.Conv2d(3, 8, 3)

    def step(x):
        out = convolution(x).relu_()
        out.square().sum().backward()
        grads = [p.grad for p in convolution.parameters()]
        convolution.zero_grad()
        return (out * 2).detach(), *grads

    text, found, want = replayed(step, (2, 3, 9, 9))
    assert "_fused_conv_bn(" in text
    for a, b in zip(found, want, strict=True):
        torch.testing.assert_close(a, b, rtol=0 if NUMPY else 1e-6, atol=0 if NUMPY else 1e-5)


def own(x, y):
    z = x * 2
    z += y
    z.relu_()
    z.mul_(3).sub_(y)
    F.silu(z, inplace=True)
    return z.clamp_(-1, 1)


def seen_by_a_view(x, y):
    z = x * 2
    row = z[0]
    z += y
    z.relu_()
    return z, row


def part(x, y):
    z = x * 2
    z[1:].add_(y[1:])
    z[0] = 3
    return z.exp_()


def read_before(x, y):
    z = x + y
    before = z.exp()
    z.neg_()
    between = z * before
    z.add_(1)
    return z, between, before


def copied(x, y):
    z, kept = x.clone(), y.exp()
    z.copy_(kept)
    z.add_(1)
    return z, kept


def of_another_kind(x, y):
    z = (x * 10).to(torch.int32)
    z.mul_(2)
    w = y.double()
    w += x
    return z, w.sub_(z)


def compared(x, y):
    z = x * 2
    z.lt_(y)
    z += 1
    return z.gt_(1)


def two_copies(x, y):
    a, b, c = x.clone(), y.clone(), (x + y).exp()
    a.copy_(c)
    b.copy_(c)
    b[0] = 1
    return a, b


def copied_and_seen(x, y):
    a, b, c = x.clone(), y.clone(), (x + y).exp()
    a.copy_(c)
    b.copy_(c)
    return a, b


def given(x, y):
    x.add_(y).relu_()
    return x * y


def twice(x, y):
    z = x + y
    z += z
    z *= z
    same = z
    z.sqrt_()
    return z, same


@pytest.mark.parametrize("shape", [(6, 5), (400, 300)])
@pytest.mark.parametrize(
    "function",
    [own, seen_by_a_view, part, read_before, copied, of_another_kind, compared, two_copies, copied_and_seen, given]
    + [twice],
)  # fmt: skip
def test_in_place_writes_match_eager(function, shape):
    text, found, want = replayed(function, shape, shape)
    found, want = ((t,) if isinstance(t, torch.Tensor) else t for t in (found, want))
    for a, b in zip(found, want, strict=True):
        bound = 0 if NUMPY else 1e-6
        torch.testing.assert_close(a, b, rtol=bound, atol=bound)
        assert a.dtype is b.dtype and a.stride() == b.stride()
    if function in (two_copies, copied_and_seen):
        assert found[0].data_ptr() != found[1].data_ptr()
    if function is twice:
        assert found[0] is found[1] or found[0].data_ptr() == found[1].data_ptr()
    if function is own:
        assert "copy_into(" not in text and "add_(" not in text


def test_gradients_of_a_network_that_writes():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(30, 40), nn.ReLU(inplace=True), nn.Linear(40, 40), nn.SiLU(inplace=True))

    def step(x):
        model.zero_grad()
        out = model(x)
        out += x.sum()
        loss = out.relu_().square().mean()
        loss.backward()
        return loss.detach(), *[p.grad.clone() for p in model.parameters()]

    _, found, want = replayed(step, (300, 30))
    bound = 0 if NUMPY else 1e-6
    for a, b in zip(found, want, strict=True):
        torch.testing.assert_close(a, b, rtol=bound, atol=bound)
