"""Tensors and the objects of pandas and Pillow. Pillow comes with Matplotlib; pandas is not in the extra `test`."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import torchlite as torch


@pytest.fixture
def pd():
    return pytest.importorskip("pandas")


@pytest.fixture
def image():
    return Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))


@pytest.mark.parametrize("make", [torch.tensor, torch.as_tensor, torch.asarray])
def test_tensors_of_series_and_frames(pd, make):
    series = pd.Series([1, 2, 3], index=[5, 6, 7])
    have = make(series)
    have[0] = 9
    assert have.tolist() == [9, 2, 3] and series.tolist() == [1, 2, 3]
    assert make(pd.DataFrame({"x": [1, 2], "y": [0.5, 1.5]})).tolist() == [[1.0, 0.5], [2.0, 1.5]]
    assert make(pd.Series([True, False])).dtype is torch.bool


def test_series_in_lists_and_as_indices(pd):
    series, x = pd.Series([1.0, 2.0, 3.0]), torch.tensor([0.5, 1.5, 2.5])
    assert torch.tensor([series, series]).dtype is torch.float64
    assert x[series > 1].tolist() == [1.5, 2.5] and x[series.index].tolist() == x.tolist()


@pytest.mark.parametrize("kind", ["Series", "DataFrame"])
def test_from_numpy_says_what_to_write(pd, kind):
    value = getattr(pd, kind)({"x": [1.0, 2.0]})
    with pytest.raises(TypeError, match=rf"expected np.ndarray \(got {kind}\). Use torch.from_numpy\(x.to_numpy\(\)\)"):
        torch.from_numpy(value)


def test_series_and_frames_of_tensors(pd):
    x = torch.tensor([0.5, 1.5, 2.5])
    assert pd.Series(x).dtype == np.float32
    assert pd.DataFrame({"a": x, "b": torch.tensor([1, 2, 3])}).dtypes.tolist() == [np.float32, np.int64]
    frame = pd.DataFrame(torch.ones(3, 2), columns=["x", "y"])
    frame["x"] = x
    assert frame["x"].tolist() == x.tolist() and frame[(x > 1).numpy()].shape == (2, 2)
    assert (frame["x"] + x).tolist() == [1.0, 3.0, 5.0]
    with pytest.raises(RuntimeError, match="requires grad"):
        pd.Series(x.requires_grad_())


@pytest.mark.parametrize("make", [torch.tensor, torch.as_tensor, torch.asarray])
def test_images_are_tensors_of_bytes(image, make):
    have = make(image)
    assert have.dtype is torch.uint8 and have.shape == (4, 4, 3) and have.flatten().tolist() == list(range(48))
    assert torch.equal(torch.from_numpy(np.array(image)), have)
    assert Image.fromarray(have.numpy()).tobytes() == image.tobytes()
