"""Borders of an array's own elements: the composite's values, with negative widths too."""

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY, table_of
from torchlite_backends.array import pad as kernels

CASES = [
    ((2, 5), (1, 2)), ((2, 5), (4, 0)), ((2, 5), (-1, 2)), ((2, 5), (2, -2)), ((2, 5), (-2, -2)),
    ((2, 4, 5), (1, 2, 3, 1)), ((2, 4, 5), (0, 2, -1, 1)), ((2, 4, 5), (0, 0, 1, 1)),
    ((1, 3, 4, 3), (1, 1, 1, 1, 1, 1)), ((1, 3, 4, 3), (2, 0, 0, 2, 1, 0)), ((0, 4, 5), (1, 2, 3, 1)),
]  # fmt: skip


def composite(name, *arguments):
    return REGISTRY[name].composite(table_of(torch.device("cpu")), *arguments)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(("shape", "pad"), CASES)
def test_values_and_gradients(mode, shape, pad):
    x = np.random.default_rng(0).standard_normal(shape)
    for given in (x, np.asfortranarray(x), x[..., ::-1]):
        found = kernels._pad_border(given, pad, mode)
        np.testing.assert_array_equal(found, composite("_pad_border", given, pad, mode))
        assert not np.shares_memory(found, given)
    grad = np.random.default_rng(1).standard_normal(found.shape)
    back = kernels._pad_border_backward(grad, pad, mode)
    np.testing.assert_allclose(back, composite("_pad_border_backward", grad, pad, mode), atol=1e-12)
    # <pad(x), grad> = <x, backward(grad)>
    padded = kernels._pad_border(x, pad, mode)
    np.testing.assert_allclose((padded * grad).sum(), (x * back).sum(), atol=1e-10)


def test_a_border_of_more_than_what_is_left_is_refused():
    with pytest.raises(RuntimeError, match="wrapping around more than once"):
        torch.nn.functional.pad(torch.ones(2, 5), (3, -4), mode="circular")
