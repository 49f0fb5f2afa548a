"""Bilinear sampling on a grid: the composite's values, and what is outside of the image."""

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY, table_of
from torchlite_backends.numpy import grid_sampling


def composite(*arguments):
    return REGISTRY["_grid_sample"].composite(table_of(torch.device("cpu")), *arguments)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize(("dtype", "near"), [("f4", 1e-5), ("f8", 1e-13)])
def test_values(dtype, near, mode, padding_mode, align_corners):
    rng = np.random.default_rng(0)
    for shape, size in (((2, 3, 5, 7), (4, 6)), ((1, 1, 1, 1), (3, 3)), ((2, 17, 8, 3), (1, 40))):
        images = rng.random(shape).astype(dtype)
        grid = (rng.random((shape[0], *size, 2)) * 3 - 1.5).astype(dtype)
        grid.reshape(-1)[::7] = 1
        grid.reshape(-1)[3::11] = -1
        for given in (images, np.asfortranarray(images)):
            found = grid_sampling._grid_sample(given, grid, mode, padding_mode, align_corners)
            expected = composite(given, grid, mode, padding_mode, align_corners)
            np.testing.assert_allclose(found, expected, near, near)
            assert found.flags.c_contiguous and found.dtype == expected.dtype


def test_nothing_outside_of_the_image_counts():
    images = np.full((1, 1, 3, 3), np.inf, "f4")
    grid = np.array([[[[-1.2, 0.1], [5, 0.1], [0, 0]]]], "f4")
    found = grid_sampling._grid_sample(images, grid, "bilinear", "zeros", False)[0, 0, 0]
    assert found[0] == np.inf and found[1] == 0 and np.isnan(found[2])  # infinity times the weight 0


def test_positions_that_are_not_numbers():
    images = np.ones((1, 1, 3, 3), "f4")
    grid = np.array([[[[np.nan, 0], [1e30, 0.1], [-np.inf, 0]]]], "f4")
    assert (grid_sampling._grid_sample(images, grid, "bilinear", "border", False) == 1).all()
    found = grid_sampling._grid_sample(images, grid, "bilinear", "zeros", False)[0, 0, 0]
    assert np.isnan(found[0]) and np.isnan(found[2])


def test_without_samples():
    found = torch.nn.functional.grid_sample(torch.ones(1, 2, 3, 3), torch.zeros(1, 0, 4, 2), align_corners=False)
    assert found.shape == (1, 2, 0, 4)
