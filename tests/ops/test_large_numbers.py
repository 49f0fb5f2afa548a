"""Counts and indices beyond 32 bits, and histograms over almost all numbers."""

from __future__ import annotations

import pytest

import torchlite as torch
import torchlite.nn.functional as F

INDEXED = {
    "gather": lambda x, i: x.gather(0, i),
    "scatter": lambda x, i: x.scatter(0, i, 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i, torch.ones_like(i, dtype=x.dtype)),
    "index_fill": lambda x, i: x.index_fill(0, i, 1),
    "index_copy": lambda x, i: x.index_copy(0, i, torch.ones_like(i, dtype=x.dtype)),
    "index": lambda x, i: x[i],
    "index_put": lambda x, i: x.index_put((i,), torch.ones_like(i, dtype=x.dtype)),
    "take": lambda x, i: x.take(i),
    "put": lambda x, i: x.put(i, torch.ones_like(i, dtype=x.dtype)),
    "cross_entropy": lambda x, i: F.cross_entropy(x[None], i),
}


@pytest.mark.parametrize("index", [2**32 + 1, 2**40, 2**62, -(2**32) + 1, -(2**40) - 2])
@pytest.mark.parametrize("name", INDEXED)
def test_errors_name_the_index(name, index, device):
    with pytest.raises((IndexError, RuntimeError), match=rf"(?<!\d){index}(?!\d)"):
        INDEXED[name](torch.zeros(3, device=device), torch.tensor([index], device=device)).tolist()


@pytest.mark.parametrize("counts", [[2**32 + 3], [2**31, 2**31, 3], [0, 2**40]])
def test_repetitions_beyond_memory(counts, device):
    with pytest.raises(RuntimeError, match=f"allocate {8 * sum(counts)} bytes|has {sum(counts)}: split it"):
        torch.repeat_interleave(torch.tensor(counts, device=device))


def test_a_negative_count_beside_large_ones(device):
    with pytest.raises(RuntimeError, match="repeats can not be negative"):
        torch.repeat_interleave(torch.tensor([2**33, -(2**33)], device=device))


@pytest.mark.parametrize(
    ("dtype", "large"), [(torch.float32, 1e38), (torch.float32, 3e38), (torch.float16, 6e4), (torch.bfloat16, 3e38)]
)
def test_a_histogram_of_a_range_beyond_the_dtype(dtype, large, device):
    x = torch.tensor([large, -large, 0, large / 4], dtype=dtype, device=device)
    assert torch.histc(x, 4).tolist() == [1, 0, 2, 1]
    assert torch.histc(x, 4, x.min().item(), x.max().item()).tolist() == [1, 0, 2, 1]
    assert torch.histc(x, 1000).sum().item() == 4


def test_a_histogram_of_a_range_beyond_float64():
    x = torch.tensor([1e308, -1e308, 0], dtype=torch.float64)
    assert torch.histc(x, 4).tolist() == [1, 0, 1, 1]
