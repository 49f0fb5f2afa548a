"""The compiled bilinear sampling on a grid: NumPy's values, and what it declines."""

import numpy as np
import pytest

from torchlite_backends.cc import cxx_compiler, native_grid_sampling
from torchlite_backends.cc.device import Device
from torchlite_backends.numpy import grid_sampling

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())


@pytest.fixture(scope="module")
def engine():
    return Device(0, True)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border"])
@pytest.mark.parametrize(("dtype", "near"), [("f4", 1e-5), ("f8", 1e-13)])
def test_values(engine, dtype, near, padding_mode, align_corners):
    rng = np.random.default_rng(0)
    for shape, size in (((2, 3, 5, 7), (4, 6)), ((1, 1, 1, 1), (3, 3)), ((2, 17, 8, 3), (13, 40))):
        images = rng.random(shape).astype(dtype)
        grid = (rng.random((shape[0], *size, 2)) * 3 - 1.5).astype(dtype)
        grid.reshape(-1)[::7] = 1
        grid.reshape(-1)[3::11] = -1
        for given in (images, np.asfortranarray(images)):
            found = native_grid_sampling._grid_sample(engine, given, grid, "bilinear", padding_mode, align_corners)
            expected = grid_sampling._grid_sample(given, grid, "bilinear", padding_mode, align_corners)
            np.testing.assert_allclose(found, expected, near, near)


def test_outside_of_the_image(engine):
    grid = np.array([[[[-1.4, 0], [5, 0.1], [0, 0], [np.nan, 0], [-np.inf, 0], [1e30, 0]]]], "f4")
    for images in (np.full((1, 1, 3, 3), np.inf, "f4"), np.ones((1, 1, 3, 3), "f4")):
        for padding_mode in ("zeros", "border"):
            found = native_grid_sampling._grid_sample(engine, images, grid, "bilinear", padding_mode, False)
            expected = grid_sampling._grid_sample(images, grid, "bilinear", padding_mode, False)
            np.testing.assert_array_equal(found, expected)


def test_others_are_left_to_numpy(engine):
    images, grid = np.ones((1, 1, 3, 3), "f4"), np.zeros((1, 2, 2, 2), "f4")
    for other in (
        (images, grid, "nearest", "zeros", False),
        (images, grid, "bilinear", "reflection", False),
        (images, grid.astype("f8"), "bilinear", "zeros", False),
        (images, grid[:, :0], "bilinear", "zeros", False),
        (np.ones((1, 1, 3, 3, 3), "f4"), np.zeros((1, 2, 2, 2, 3), "f4"), "bilinear", "zeros", False),
    ):
        assert native_grid_sampling._grid_sample(engine, *other) is None
