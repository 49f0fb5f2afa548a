"""Loaded networks whose images have their channels last between convolutions."""

from __future__ import annotations

import io

import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dispatch.kernel_recorder import table_of
from torchlite._dynamo import channels_last
from torchlite._dynamo.compiled_function import COMPILED_FUNCTIONS
from torchlite.nn import functional as F

from .random_networks import FORMATS, difference

pytestmark = pytest.mark.skipif(
    table_of(torch.device("cpu")).backend.engine() != "cc", reason="the engine cc has kernels for such images"
)


@pytest.fixture
def always(monkeypatch):
    """All convolutions that can have channels last."""
    from torchlite_backends.cc import channels_last as kernels

    monkeypatch.setattr(channels_last, "_MIN_MULS_TO_BEGIN", 0)
    monkeypatch.setattr(channels_last, "_COST_PER_COPY", 0.0)
    monkeypatch.setattr(channels_last, "_COST_PER_STRIDED_COPY", 0.0)
    monkeypatch.setattr(kernels, "_estimate_gain", lambda *_: 1.0)


class Network(nn.Module):
    def __init__(self, forward, *layers):
        super().__init__()
        self.layers, self.run = nn.ModuleList(layers), forward

    def forward(self, *given):
        return self.run(self.layers, *given)


def replayed(module, *given, strides=True):
    """The text of the replayed calls of a module that is written and loaded; compares them with calls without."""
    module.eval()
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.uniform_(-1, 1)
            layer.running_var.uniform_(0.5, 2)
    with torch.no_grad():
        held = io.BytesIO()
        torch.export.save(torch.export.export(module, given), held)
        held.seek(0)
        loaded = torch.export.load(held).module()
        for _ in range(5):
            found = loaded(*given)
        with torch.jit.optimized_execution(False):
            want = loaded(*given)
    for a, b in zip(*map(torch.utils._pytree.tree_leaves, (found, want)), strict=True):
        assert a.stride() == b.stride() or not strides
        torch.testing.assert_close(a, b, rtol=1e-5, atol=2e-6)
    (function,) = [f for f in COMPILED_FUNCTIONS if getattr(f, "module", lambda: None)() is loaded]
    assert function.replays > 0
    ((variant,),) = function.variants.values()
    return variant.replay.forward.text


def conv(channels, filters, kernel=3, **more):
    return nn.Conv2d(channels, filters, kernel, padding=kernel // 2, **more)


def test_chain_of_convolutions():
    """One copy of the images, and one back."""
    net = Network(
        lambda m, x: torch.sigmoid(m[3](F.hardswish(m[2](F.silu(m[1](F.relu(m[0](x)))))))).flatten(1),
        conv(16, 32), nn.Sequential(conv(32, 32, groups=32), nn.BatchNorm2d(32)), conv(32, 48, 1), conv(48, 24),
    )  # fmt: skip
    text = replayed(net, torch.randn(2, 16, 24, 24))
    assert text.count("_to_last") == text.count("_from_last") == 1
    assert text.count("_last_convolution") >= 4 and text.count("_chain_") == 3
    assert not any(line.lstrip().startswith(("convolution", "chain")) for line in text.splitlines())


def test_images_with_other_strides(always):
    """Sequences whose channels are last are no copy; others are copied."""
    net = Network(lambda m, x: m[0](x.permute(0, 2, 1)[..., None]).amax(2), nn.Conv2d(64, 64, (5, 1)))
    assert "_last_convolution" in replayed(net, torch.randn(1, 96, 64))
    net = Network(lambda m, x: torch.cat([m[0](x[..., ::2]), x[..., 1::2]], 1), conv(32, 32))
    text = replayed(net, torch.randn(2, 32, 24, 48))
    assert "_strided_to_last" in text and "_last_convolution" in text


def test_one_convolution_between_other_ops_stays():
    net = Network(lambda m, x: m[0](x.cumsum(3)).cumsum(3), conv(8, 8, 1))
    assert "_last" not in replayed(net, torch.randn(1, 8, 32, 32))


def test_convolutions_of_few_filters_keep_the_order():
    """Most lanes of their vectors would be idle."""
    net = Network(lambda m, x: m[1](F.relu(m[0](x))).cumsum(1), conv(1, 1, 15), conv(1, 1, 15))
    assert "_last" not in replayed(net, torch.randn(1, 1, 64, 64))
    net = Network(lambda m, x: m[1](F.relu(m[0](x))).cumsum(1), conv(32, 32), conv(32, 1, 5))
    assert replayed(net, torch.randn(1, 32, 48, 48)).count(" _last_convolution") == 1


CASES = {
    "residual": lambda m, x: F.relu(m[1](F.relu(m[0](x))) + x) * 2,
    "squeeze and excite": lambda m, x: m[1](m[0](x) * F.hardsigmoid(m[3](F.relu(m[2](m[0](x).mean((2, 3), True)))))),
    "cat": lambda m, x: m[4](torch.cat([m[0](x), F.relu(m[1](x)), x], 1)),
    "split": lambda m, x: torch.cat([m[5](m[0](x).split([6, 10], 1)[1]), m[1](x)], 1).relu(),
    "parts that are summed": lambda m, x: (lambda a, b: m[6](a + b) * a)(*m[0](x).split([8, 8], 1)),
    "pooling": lambda m, x: m[1](F.max_pool2d(m[0](x), 3, 2, 1, ceil_mode=True)).exp(),
    "other pooling": lambda m, x: m[1](F.avg_pool2d(m[0](x), 2)).exp(),
    "nearest": lambda m, x: m[1](F.interpolate(m[0](x), scale_factor=2)),
    "nearest-exact": lambda m, x: m[1](F.interpolate(m[0](x), size=(5, 17), mode="nearest-exact")),
    "bilinear": lambda m, x: m[1](F.interpolate(m[0](x), scale_factor=2, mode="bilinear")),
    "permuted": lambda m, x: m[0](x).permute(0, 2, 3, 1).flatten(1, 2).softmax(-1),
    "permuted otherwise": lambda m, x: m[0](x).permute(3, 0, 1, 2).flatten(2),
    "one position": lambda m, x: m[1](m[0](x).mean((2, 3), True)).flatten(1).tanh(),
    "flat": lambda m, x: m[1](m[0](x)).flatten(1).tanh(),
    "numbers for each channel": lambda m, x: m[1](m[0](x) * m[0].bias[:, None, None] + m[1].bias[None, :, None, None]),
    "numbers for each column": lambda m, x: m[1](m[0](x) * torch.arange(12.0) + torch.arange(11.0)[:, None]),
    "numbers for each place": lambda m, x: m[1](m[0](x) * m[0](x)[:, :1].sigmoid()),
    "a result that is used later": lambda m, x: (m[1](m[0](x)), m[0](x)),
    "an output in the middle": lambda m, x: (lambda y: (m[1](m[0](y.relu())), y))(m[0](x)),
    "softmax over channels": lambda m, x: m[1](m[0](x).softmax(1)),
    "normalized": lambda m, x: m[1](F.layer_norm(m[0](x), (12,))),
    "transposed": lambda m, x: m[1](m[7](m[0](x)).relu()),
    "norm behind the activation": lambda m, x: m[1](m[8](F.relu(m[0](x)))),
    "one channel": lambda m, x: m[9](x[:, :1]).relu() + m[10](m[0](x)).sigmoid(),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("batch", [1, 3])
def test_ops_between_convolutions(always, case, batch):
    torch.manual_seed(0)
    layers = [
        conv(16, 16), conv(16, 16), conv(16, 4, 1), conv(4, 16, 1), conv(48, 16, 1), conv(10, 5, 1), conv(8, 8),
        nn.ConvTranspose2d(16, 16, 2, 2), nn.BatchNorm2d(16), conv(1, 16), conv(16, 1),
    ]  # fmt: skip
    text = replayed(Network(CASES[case], *layers), torch.randn(batch, 16, 11, 12))
    assert "_last_convolution" in text


MEANS = {
    "of each channel": (lambda y: y.mean((2, 3), True), True),
    "of each channel, dimensions from the end": (lambda y: y.mean((-1, -2), True), True),
    "of each channel, without its dimensions": (lambda y: y.mean((2, 3))[..., None, None], False),
    "of rows": (lambda y: y.mean((3,), True), False),
    "of columns and channels": (lambda y: y.mean((1, 2), True).expand(-1, 16, -1, -1), False),
    "of all dimensions but one": (lambda y: y.mean((0, 2, 3), True), False),
    "in another dtype": (lambda y: y.mean((2, 3), True, dtype=torch.float64).float(), False),
}


@pytest.mark.parametrize("case", MEANS)
def test_means_between_convolutions(always, case):
    mean, converted = MEANS[case]
    torch.manual_seed(0)
    net = Network(lambda m, x: m[1](mean(m[0](x))).exp(), conv(16, 16), conv(16, 16, 1))
    assert ("_last_mean" in replayed(net, torch.randn(2, 16, 11, 12))) == converted


def test_images_with_channels_last(always):
    """Of a loaded module, results of optimized calls are row-major."""
    net = Network(lambda m, x: m[1](m[0](x).relu()), conv(16, 24), conv(24, 16))
    replayed(net, torch.randn(2, 16, 9, 10).to(memory_format=torch.channels_last), strides=False)


def test_permuted_images(always):
    """Networks that permute images for each convolution do not copy them."""
    net = Network(
        lambda m, x: m[1](F.relu(m[0](x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)).permute(0, 3, 1, 2))
        .permute(0, 2, 3, 1).flatten(1).exp(),
        conv(16, 24), conv(24, 16),
    )  # fmt: skip
    text = replayed(net, torch.randn(2, 9, 10, 16))
    assert "_to_last" not in text and "_from_last" not in text


def test_empty_images(always):
    net = Network(lambda m, x: m[1](m[0](x).relu()), conv(16, 24), conv(24, 16))
    replayed(net, torch.randn(0, 16, 9, 10))


def test_a_network_of_doubles(always):
    net = Network(lambda m, x: m[1](m[0](x).relu()), conv(16, 24), conv(24, 16)).double()
    assert "_last" not in replayed(net, torch.randn(2, 16, 9, 10).double())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_random_networks(always, seed):
    gap, replays = difference(seed, FORMATS[seed % 3])
    assert gap < 1e-5 and replays > 0
