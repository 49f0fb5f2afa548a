"""Limits of dtypes."""

import pytest

import torchlite as torch


@pytest.mark.parametrize(
    "name,bits,least,greatest",
    [
        ("quint8", 8, 0, 255),
        ("qint8", 8, -128, 127),
        ("qint32", 32, -(2**31), 2**31 - 1),
        ("quint4x2", 8, 0, 255),
        ("int16", 16, -(2**15), 2**15 - 1),
    ],
)
def test_quantized_dtypes_have_the_limits_of_their_integers(name, bits, least, greatest):
    info = torch.iinfo(getattr(torch, name))
    assert (info.bits, info.min, info.max, info.dtype) == (bits, least, greatest, name)
