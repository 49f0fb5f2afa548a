"""repr of thousands of tensors under many settings, character for character."""

import numpy as np
import pytest
import torch

import torchlite
from torchlite._tensor import printing as _printing

pytestmark = pytest.mark.oracle

SHAPES = [(), (1,), (3,), (30,), (2, 3), (1, 40), (2, 3, 4), (0,), (2, 0), (1001,), (12, 100), (7, 8, 30)]
SETTINGS = [
    {},
    {"precision": 2},
    {"sci_mode": True},
    {"sci_mode": False},
    {"profile": "short"},
    {"linewidth": 120, "edgeitems": 2, "threshold": 10},
    {"edgeitems": 0, "threshold": 5},
]
FLOATS = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"]
INTS = ["int8", "uint8", "int16", "int32", "int64", "bool"]


def values(rng, shape):
    x = np.asarray(rng.standard_normal(shape))
    yield from (x, x * 1e5, x * 1e-5, np.round(x * 10), np.round(x * 1e7), x * 0, np.full(shape, np.nan))
    yield np.where(rng.random(shape) < 0.2, np.nan, np.where(rng.random(shape) < 0.2, np.inf, x))
    yield np.where(rng.random(shape) < 0.3, -np.inf, np.round(x))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_same_text(settings, rng):
    torch.set_printoptions(profile="default")
    torch.set_printoptions(**settings)
    try:
        with _printing.printoptions(**{**settings, "profile": settings.get("profile", "default")}):
            for shape in SHAPES:
                for array in values(rng, shape):
                    for name in FLOATS:
                        same(array, name)
                for name in INTS:
                    for limit in (2, 100, 10**9):
                        same(rng.integers(-limit, limit, shape), name)
    finally:
        torch.set_printoptions(profile="default")


def same(array, name):
    with np.errstate(all="ignore"):
        if name.startswith("complex") and array.shape:
            array = array + 1j * array[::-1]
        theirs = torch.tensor(array).to(getattr(torch, name))
        ours = torchlite.tensor(theirs.float().numpy() if name == "bfloat16" else theirs.numpy()).to(
            getattr(torchlite, name)
        )
    assert repr(ours) == repr(theirs)
