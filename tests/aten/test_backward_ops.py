"""Backward ops of the library that programs call by name."""

import pytest

import torchlite as torch


@pytest.mark.parametrize("training,wanted", [(False, [2.0, 0.5]), (True, [6.0, 10.0])])
def test_rrelu_with_noise_backward(training, wanted):
    g, x, noise = torch.tensor([2.0, 2.0]), torch.tensor([1.0, -1.0]), torch.tensor([3.0, 5.0])
    found = torch.ops.aten.rrelu_with_noise_backward(g, x, noise, 0.125, 0.375, training, False)
    assert found.tolist() == wanted
