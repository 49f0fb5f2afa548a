"""Equal elements are in PyTorch's order in `topk`, which is that of libstdc++'s algorithms on the CPU."""

from __future__ import annotations

import math

import numpy as np
import pytest

import torchlite as torch

# Elements, k, and PyTorch's indices of the greatest and of the least.
CASES = [
    ("2203", 2, [3, 1], [2, 1]),
    ("10102", 3, [4, 2, 0], [1, 3, 2]),
    ("313010", 6, [2, 0, 1, 4, 5, 3], [3, 5, 4, 1, 2, 0]),
    ("13213101", 3, [1, 4, 2], [6, 0, 3]),
    ("3110011112", 5, [0, 9, 6, 5, 8], [4, 3, 6, 1, 7]),
    ("2111132023112022", 7, [5, 9, 12, 0, 8, 14, 15], [13, 7, 1, 11, 10, 4, 2]),
    (
        "02022232133102023032",
        18,
        [18, 16, 10, 6, 9, 15, 13, 19, 7, 5, 4, 1, 3, 11, 8, 17, 0, 2],
        [0, 2, 17, 12, 14, 8, 11, 13, 1, 15, 19, 5, 3, 4, 7, 18, 9, 6],
    ),
    ("3030110132223022030122122022210123100301", 5, [12, 33, 8, 0, 17], [13, 30, 25, 1, 18]),
    ("2233100321113013210321313323223310313210322020222322210322232222", 1, [2], [5]),
    (
        "2321322111232031322011311103110102131033230112023230202022221332",
        30,
        [1, 27, 35, 38, 39, 22, 41, 48, 16, 14, 50, 62, 4, 61, 11, 59, 12, 63, 33, 0, 40, 45, 47, 58, 57, 49, 56, 54]
        + [52, 17],
        [42, 19, 51, 26, 46, 53, 13, 55, 30, 32, 37, 20, 15, 9, 8, 7, 3, 60, 21, 23, 24, 31, 25, 43, 36, 44, 34, 28]
        + [29, 59],
    ),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8])
def test_ties_are_in_pytorchs_order(dtype, device):
    for digits, k, greatest, least in CASES:
        x = torch.tensor(list(map(int, digits)), dtype=dtype)
        for largest, expected in ((True, greatest), (False, least)):
            values, places = x.to(device).topk(k, largest=largest)
            assert places.tolist() == expected and torch.equal(values.cpu(), x[expected])
            columns = torch.stack([x, torch.arange(len(x)).to(dtype)], 1).to(device)
            assert columns.topk(k, 0, largest).indices[:, 0].tolist() == expected


def test_nan_and_zeros_of_both_signs_are_ties(device):
    x = torch.tensor([1.0, math.nan, -0.0, 0.0, math.nan, 0.0], device=device)
    assert x.topk(4).indices.tolist() == [1, 4, 0, 5]
    assert x.topk(4, largest=False).indices.tolist() == [3, 5, 2, 0]


def test_rows_of_many_elements():
    digits = (
        "31133113110203021233233313232232302232130031201303213013212233001223222201002301033333312302032321133213001200"
        "02303300010123111310100"
    )
    x = torch.tensor(list(map(int, digits)))
    assert x.topk(2).indices.tolist() == [3, 0] and x.topk(2, largest=False).indices.tolist() == [12, 10]


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("length", "k"), [(5000, 1), (5000, 7), (5000, 40), (9000, 3000)])
def test_long_rows_take_the_first_of_equal_elements(device, length, k, largest):
    x = torch.from_numpy(np.random.default_rng(5).integers(0, 4, (2, length)).astype("f4"))
    expected = np.argsort(-x.numpy() if largest else x.numpy(), axis=1, kind="stable")[:, :k]
    assert x.to(device).topk(k, largest=largest).indices.tolist() == expected.tolist()


@pytest.mark.parametrize("length", [65, 1000])
@pytest.mark.parametrize("k", [1, 7, 30])
def test_devices_take_the_first_of_equal_elements_in_rows_above_64(device, length, k):
    if device == "cpu":
        pytest.skip("the order of libstdc++'s algorithms up to 4,096 elements")
    x = torch.from_numpy(np.random.default_rng(6).integers(0, 4, (3, length)).astype("f4"))
    expected = np.argsort(-x.numpy(), axis=1, kind="stable")[:, :k]
    assert x.to(device).topk(k).indices.tolist() == expected.tolist()
    assert x.to(device).topk(1).indices.tolist() == x.topk(1).indices.tolist()
