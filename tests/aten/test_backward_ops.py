"""Backward ops of the library that programs call by name."""

import pytest

import torchlite as torch


@pytest.mark.parametrize("training,wanted", [(False, [2.0, 0.5]), (True, [6.0, 10.0])])
def test_rrelu_with_noise_backward(training, wanted):
    g, x, noise = torch.tensor([2.0, 2.0]), torch.tensor([1.0, -1.0]), torch.tensor([3.0, 5.0])
    found = torch.ops.aten.rrelu_with_noise_backward(g, x, noise, 0.125, 0.375, training, False)
    assert found.tolist() == wanted


INDICES, OFFSETS = torch.tensor([0, 1, 2, 2, 4, 0, 1]), torch.tensor([0, 2, 2, 5])
SUMS = [[11.0, 13.0, 15.0], [11.0, 13.0, 15.0], [14.0, 16.0, 18.0], [0.0] * 3, [7.0, 8.0, 9.0]]


@pytest.mark.parametrize(
    "mode,padding_idx,sparse,factors,wanted",
    [
        (0, -1, False, None, SUMS),
        (0, -1, True, None, SUMS),
        (0, 1, False, None, [SUMS[0], [0.0] * 3, *SUMS[2:]]),
        (0, -1, False, [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5],
         [[30.5, 34.0, 37.5], [36.0, 40.5, 45.0], [24.5, 28.0, 31.5], [0.0] * 3, [17.5, 20.0, 22.5]]),
        (1, 1, False, None, [SUMS[0], [0.0] * 3, [14 / 3, 16 / 3, 6.0], [0.0] * 3, [7 / 3, 8 / 3, 3.0]]),
        (2, -1, False, None,
         [[0.0, 13.0, 15.0], [11.0, 0.0, 0.0], [7.0, 8.0, 0.0], [0.0] * 3, [0.0, 0.0, 9.0]]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_last", [False, True])
def test_embedding_bag_backward(mode, padding_idx, sparse, factors, wanted, has_last):
    """PyTorch's gradients, of bags of which one is empty."""
    weight = (torch.arange(15.0) * 7 % 11).reshape(5, 3)
    offsets = torch.tensor([*OFFSETS, 7]) if has_last else OFFSETS
    factors = None if factors is None else torch.tensor(factors)
    options = (False, mode, sparse, factors)
    made = torch.ops.aten._embedding_bag(weight, INDICES, offsets, *options, has_last, padding_idx)
    grad = torch.arange(1.0, 13.0).reshape(4, 3)
    found = torch.ops.aten._embedding_bag_backward(grad, INDICES, offsets, *made[1:], 5, *options, padding_idx)
    assert found.is_sparse == sparse
    torch.testing.assert_close(found.to_dense(), torch.tensor(wanted))
