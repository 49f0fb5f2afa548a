"""Images of bytes are resized by PyTorch's integers on the CPU: the sums are PyTorch's."""

import pytest

import torchlite as torch


@pytest.mark.parametrize(
    ("size", "mode", "antialias", "total", "first"),
    [
        ((12, 16), "bilinear", True, 73350, [135, 148, 132, 101]),
        ((12, 16), "bicubic", True, 73286, [132, 152, 131, 87]),
        ((12, 16), "bilinear", False, 73560, [112, 163, 140, 58]),
        ((50, 40), "bilinear", True, 763206, [106, 138, 201, 214]),
        ((50, 40), "bicubic", False, 762935, [108, 131, 221, 231]),
    ],
)
def test_resized(size, mode, antialias, total, first):
    torch.manual_seed(3)
    x = torch.randint(0, 256, (1, 3, 24, 32), dtype=torch.uint8)
    y = torch.nn.functional.interpolate(x, size=size, mode=mode, antialias=antialias)
    assert (y.dtype, y.long().sum().item(), y.flatten()[:4].tolist()) == (torch.uint8, total, first)


def test_lanczos_rounds_to_bytes_after_the_rows():
    x = torch.tensor([[10, 200], [0, 77], [255, 3]], dtype=torch.uint8)[None, None]
    found = torch.nn.functional.interpolate(x, size=(4, 4), mode="lanczos", antialias=True)[0, 0]
    assert found.tolist() == [[6, 61, 163, 241], [0, 8, 99, 163], [106, 87, 47, 33], [255, 209, 64, 0]]
