"""The compiled product of matrices of float32."""

from __future__ import annotations

import numpy as np
import pytest

from torchlite_backends.cc import cxx_compiler, native_gemm, native_parallel_gemm
from torchlite_backends.cc.device import Device
from torchlite_backends.device_runtime.core.processor_level import has_avx512

pytestmark = [
    pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not()),
    pytest.mark.skipif(not has_avx512(), reason="no vectors of 512 bits: products are BLAS's"),
]


@pytest.fixture(scope="module")
def engine():
    return Device()


def _ways(x):
    """A matrix as it lies in memory in several ways."""
    return x, x.T.copy().T, np.pad(x, 3)[3:-3, 3:-3], np.pad(x.T, 5)[5:-5, 5:-5].T


def _multiplied(engine, a, b, bias=None):
    out = np.full((a.shape[0], b.shape[1]), np.nan, "f4")
    assert native_gemm.gemm(engine, a, b, out, bias)
    return out


@pytest.mark.parametrize(
    ("rows", "depth", "columns"),
    [(16, 1, 48), (17, 5, 93), (101, 192, 130), (23, 700, 79), (300, 257, 400), (520, 16, 93), (40, 512, 96)],
)
def test_products(engine, rows, depth, columns):
    rng = np.random.default_rng(7)
    a, b, bias = (rng.standard_normal(shape).astype("f4") for shape in ((rows, depth), (depth, columns), columns))
    expected, near = a.astype("f8") @ b.astype("f8"), 3e-6 * np.sqrt(depth)
    first = _multiplied(engine, a, b)
    np.testing.assert_allclose(first, expected, 1e-5, near)
    for left in _ways(a):
        for right in _ways(b):
            assert (_multiplied(engine, left, right) == first).all()
    np.testing.assert_allclose(_multiplied(engine, a, b.T.copy().T, bias), expected + bias, 1e-5, near)


def test_how_it_is_cut_changes_nothing(engine, monkeypatch):
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((530, 300)).astype("f4"), rng.standard_normal((300, 610)).astype("f4")
    whole = _multiplied(engine, a, b)
    for name, value in (
        ("_CELLS", 200),
        ("_TALL", 64),
        ("_TILES", 2),
        ("_CELLS", 1),
        ("_MIN_MULS_PER_THREAD", 1 << 60),
    ):
        monkeypatch.setattr(native_gemm, name, value)
        assert (_multiplied(engine, a, b) == whole).all()
    assert (_multiplied(engine, a[96:200], b[:, 100:208]) == whole[96:200, 100:208]).all()


def test_nan_and_infinity_reach_only_their_rows_and_columns(engine):
    a, b = np.ones((50, 60), "f4"), np.ones((60, 90), "f4")
    a[3, 4], a[5, 6], b[8, 89] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(_multiplied(engine, a, b), a @ b)
    tiny = np.full((16, 1), 1e-40, "f4")
    assert (_multiplied(engine, tiny, np.ones((1, 48), "f4")) == tiny).all()


def test_unsupported_operands_are_declined(engine):
    a, b = np.ones((64, 64), "f4"), np.ones((64, 64), "f4")
    out = np.zeros((64, 64), "f4")
    assert not native_gemm.gemm(engine, a[:15], b, out[:15], None)
    assert not native_gemm.gemm(engine, a, b[:, :47], np.zeros((64, 47), "f4"), None)
    assert not native_gemm.gemm(engine, a.astype("f8"), b, out, None)
    assert not native_gemm.gemm(engine, np.ones((64, 128), "f4")[:, ::2], b, out, None)
    assert not native_gemm.gemm(engine, a[::-1], b, out, None)
    assert not native_gemm.gemm(engine, a, b, np.zeros((64, 65), "f4")[:, 1:], None)
    assert not native_gemm.gemm(engine, a, b[:, :49], np.zeros((64, 49), "f4"), None)
    assert not out.any()
    # A matrix times its own transpose is BLAS's, which computes half of it; its square is not.
    assert not native_parallel_gemm.parallel_gemm(engine, a, a.T, out, None, True, 4)
    assert native_parallel_gemm.parallel_gemm(engine, a, a, out, None, True, 4) and (out == 64).all()
