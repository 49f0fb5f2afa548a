"""Compiled normals and permutations: the bits are those of NumPy's kernels."""

import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.cc import cxx_compiler
from torchlite_backends.cc.cpu_engine import Engine as CompiledEngine
from torchlite_backends.cc.device import Device
from torchlite_backends.cc.native_normals import box_muller
from torchlite_backends.cpu_engines import engine_selection

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())

DRAWS = {
    "randn": lambda n: torch.randn(n),
    "scaled": lambda n: torch.empty(n).normal_(-3.0, 0.7),
    "wide": lambda n: torch.empty(n).normal_(0.0, 1e30),
    "constant": lambda n: torch.empty(n).normal_(2.0, 0.0),
    "half": lambda n: torch.randn(n, dtype=torch.float16),
    "bfloat16": lambda n: torch.empty(n, dtype=torch.bfloat16).normal_(1.0, 2.0).float(),
    "randperm": lambda n: torch.randperm(n),
    "randperm of int32": lambda n: torch.randperm(n, dtype=torch.int32),
}


def drawn(draw, engine, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(engine_selection, "select_engine", lambda: type("Selected", (), {"engine": engine}))
        torch.manual_seed(9)
        torch.rand(3)
        found = draw()
        return found.numpy(), torch.rand(2).tolist()


@pytest.mark.parametrize("n", [100, 256, 273, 640, 5003, 1 << 16])
@pytest.mark.parametrize("name", DRAWS)
def test_bits_and_position(name, n, monkeypatch):
    values, after = drawn(lambda: DRAWS[name](n), CompiledEngine(), monkeypatch)
    plain, after_plain = drawn(lambda: DRAWS[name](n), None, monkeypatch)
    bits = f"V{values.itemsize}"
    assert values.dtype == plain.dtype and np.array_equal(values.view(bits), plain.view(bits)) and after == after_plain


def test_all_radii_and_angles():
    """Every 24-bit word, once for a radius and once for an angle."""
    from torchlite_backends.numpy.normal_deviates import sample_box_muller

    device = Device()
    for first in (0, 1 << 20, (1 << 24) - (1 << 16)):
        words = np.arange(first, first + (1 << 16), dtype=np.uint32)
        words = np.stack([words.reshape(-1, 8), words[::-1].reshape(-1, 8)], 1).reshape(-1)
        out = np.empty(words.size, np.float32)
        assert box_muller(device, words, out, 0.0, 1.0)
        np.testing.assert_array_equal(out.view(np.int32), sample_box_muller(words).view(np.int32))
