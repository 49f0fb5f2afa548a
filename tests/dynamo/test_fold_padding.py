"""Zeros around the images of a loaded module's convolution are a part of the convolution."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dispatch.kernel_recorder import table_of
from torchlite.nn import functional as F

from .loaded_programs import replay


class Padded(nn.Module):
    """A convolution of what `F.pad` makes. twice: of which a second convolution reads. more: and another function."""

    def __init__(self, layer, pad, value=0.0, twice=False, more=False):
        super().__init__()
        self.layer, self.pad, self.value, self.twice, self.more = layer, pad, value, twice, more

    def forward(self, x):
        padded = F.pad(torch.relu(x), self.pad, value=self.value)
        out = self.layer(padded)
        out = out + self.layer(padded) * 2 if self.twice else out
        return (out, padded.amax((2, 3))) if self.more else out


CASES = {
    "equal sides": (nn.Conv2d(3, 4, 3), (1, 1, 2, 2), {}),
    "all dimensions": (nn.Conv2d(3, 4, 3, stride=2), (1, 1, 1, 1, 0, 0, 0, 0), {}),
    "with a padding": (nn.Conv2d(3, 4, 5, padding=(1, 2)), (1, 1), {}),
    "dilated, in groups": (nn.Conv2d(4, 4, 3, dilation=2, groups=4), (2, 2, 2, 2), {}),
    "one dimension": (nn.Conv1d(3, 4, 3), (2, 2), {}),
    "three dimensions": (nn.Conv3d(2, 4, 3), (1, 1, 1, 1, 1, 1), {}),
    "two convolutions": (nn.Conv2d(3, 4, 3), (1, 1, 1, 1), {"twice": True}),
}


def images(layer):
    return torch.randn(2, layer.in_channels, *(9, 8, 7)[: len(layer.kernel_size)])


@pytest.mark.parametrize("case", CASES)
def test_folded(case):
    layer, pad, more = CASES[case]
    assert "constant_pad_nd" not in replay(Padded(layer, pad, **more), images(layer))


@pytest.mark.parametrize(
    ("pad", "more"),
    [((1, 1, 1, 1), {"value": 0.5}), ((1, 1, 1, 1), {"more": True}), ((0, 0, 0, 0, 1, 1), {})],
    ids=["another value", "another reader", "channels"],
)
def test_zeros_that_stay(pad, more):
    layer = nn.Conv2d(3, 4, 3)
    given = torch.randn(2, 1 if len(pad) == 6 else 3, 9, 8)
    assert "constant_pad_nd" in replay(Padded(layer, pad, **more), given)


@pytest.mark.parametrize("pad", [(0, 1, 0, 1), (-1, 2, 3, 0), (0, 1, 0, 1, 0, 0, 0, 0), (1, 0, 0, 0, 1, 1)])
@pytest.mark.parametrize("value", [0.0, 1.5])
def test_borders_of_images_with_channels_last(pad, value):
    """Other borders stay, and are made in the order that the images have."""

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(16, 32, 3)
            self.second = nn.Conv2d(34 if len(pad) == 6 else 32, 32, 3, stride=2)

        def forward(self, x):
            return self.second(F.pad(torch.relu(self.first(x)), pad, value=value)).flatten(1)

    text = replay(Network(), torch.randn(1, 16, 24, 24))
    assert "constant_pad_nd" in text
    if table_of(torch.device("cpu")).backend.engine() == "cc":
        assert text.count("_to_last") == text.count("_from_last") == 1
