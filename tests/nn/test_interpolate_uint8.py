"""Images of bytes are resized by PyTorch's integers: the sums are PyTorch's."""

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
def test_resized(size, mode, antialias, total, first, device):
    torch.manual_seed(3)
    x = torch.randint(0, 256, (1, 3, 24, 32), dtype=torch.uint8)
    y = torch.nn.functional.interpolate(x.to(device), size=size, mode=mode, antialias=antialias)
    assert (y.dtype, y.long().sum().item(), y.flatten()[:4].tolist()) == (torch.uint8, total, first)


def test_lanczos_rounds_to_bytes_after_the_rows(device):
    x = torch.tensor([[10, 200], [0, 77], [255, 3]], dtype=torch.uint8, device=device)[None, None]
    found = torch.nn.functional.interpolate(x, size=(4, 4), mode="lanczos", antialias=True)[0, 0]
    assert found.tolist() == [[6, 61, 163, 241], [0, 8, 99, 163], [106, 87, 47, 33], [255, 209, 64, 0]]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
def test_images_of_other_layouts_and_sizes(mode, device):
    """Views, channels last, one row or column that stays, and images without elements."""
    torch.manual_seed(0)
    x = torch.randint(0, 256, (2, 3, 9, 14), dtype=torch.uint8)
    how = {"mode": mode, "antialias": True}
    for size in ((9, 5), (20, 14), (9, 14), (4, 31)):
        expected = torch.nn.functional.interpolate(x, size=size, **how)
        for given in (x, x.contiguous(memory_format=torch.channels_last), x.repeat(1, 1, 1, 2)[..., :14]):
            found = torch.nn.functional.interpolate(given.to(device), size=size, **how)
            assert found.dtype is torch.uint8 and torch.equal(found.cpu(), expected)
    assert torch.nn.functional.interpolate(x[:0].to(device), size=(4, 4), **how).shape == (0, 3, 4, 4)
