"""Reductions of consecutive segments: the values of scattered elements."""

import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.numpy import segments


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("numbers", [[0, 0, 2, 2, 2, 4], [3, 3, 3, 3, 3, 3], [5, 0, 0, 1, 1, 5], [0, 1, 2, 3, 4, 5]])
@pytest.mark.parametrize("tail", [(), (3,), (2, 3)])
def test_values(reduce, dtype, numbers, tail):
    data = np.random.default_rng(0).standard_normal((6, *tail)).astype(dtype)
    data[3:4] = np.nan
    shown = np.array(numbers).reshape(6, *(1 for _ in tail))
    found = segments._segments(data, np.broadcast_to(shown, data.shape), 0, 6, reduce, 0.5)
    start = np.full((6, *tail), 0.5, dtype)
    expected = segments._scatter(start, data, np.broadcast_to(shown, data.shape).copy(), 0, reduce)
    np.testing.assert_allclose(found, expected, 1e-6)
    assert found.dtype == data.dtype


def test_lengths_of_rows_and_no_data():
    data = torch.arange(12.0).reshape(2, 6)
    lengths = torch.tensor([[1, 2, 3], [0, 6, 0]])
    found = torch.segment_reduce(data, "sum", lengths=lengths, axis=1)
    assert found.tolist() == [[0.0, 3.0, 12.0], [0.0, 51.0, 0.0]]
    found = torch.segment_reduce(torch.zeros(0), "max", lengths=torch.tensor([0, 0]), initial=-1.0)
    assert found.tolist() == [-1.0, -1.0]
    long = torch.segment_reduce(torch.ones(100_000), "sum", lengths=torch.full((100,), 1000))
    assert (long == 1000).all()
