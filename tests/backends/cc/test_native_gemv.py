"""Compiled products of one row with a matrix that lies column by column."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.cc import cxx_compiler, native_gemv
from torchlite_backends.cc.device import Device
from torchlite_backends.numpy import deterministic_gemm

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())


@pytest.fixture(scope="module")
def engine():
    return Device()


def _given(depth, columns, dtype="f4"):
    rng = np.random.default_rng(8)
    return (
        rng.standard_normal((1, depth)).astype(dtype),
        rng.standard_normal((columns, depth)).astype(dtype).T,
        rng.standard_normal(columns).astype(dtype),
    )


@pytest.mark.parametrize("dtype, near", [("f4", 1e-4), ("f8", 1e-12)])
@pytest.mark.parametrize("depth, columns", [(256, 768), (1, 40), (31, 5), (67, 130), (5000, 17), (300, 1)])
def test_products(engine, dtype, near, depth, columns):
    row, matrix, bias = _given(depth, columns, dtype)
    want = row.astype("f8") @ matrix.astype("f8")
    out = native_gemv.gemv(engine, row, matrix, None)
    assert out.dtype == dtype and out.shape == (1, columns)
    np.testing.assert_allclose(out, want, rtol=0, atol=near * depth**0.5)
    assert (native_gemv.gemv(engine, row, matrix, bias) == out + bias).all()
    part = matrix[: max(1, depth // 2)]  # columns further apart than they are long
    found = native_gemv.gemv(engine, np.ascontiguousarray(row[:, : len(part)]), part, None)
    np.testing.assert_allclose(found, row[:, : len(part)].astype("f8") @ part, rtol=0, atol=near * depth**0.5)


def test_nonfinite_inputs_propagate(engine):
    row, matrix, bias = _given(200, 64)
    row[0, 3], matrix[:, 2] = np.inf, 0
    out = native_gemv.gemv(engine, row, matrix, bias)
    assert np.isnan(out[0, 2]) and np.isinf(np.delete(out[0], 2)).all()


def test_products_are_the_same_for_any_threads(engine):
    given, before = _given(1024, 1000), torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(native_gemv.gemv(engine, *given).tobytes())
        assert found[0] == found[1] == found[2]
    finally:
        torch.set_num_threads(before)


def test_unsupported_operands_are_declined(engine):
    row, matrix, bias = _given(64, 40)
    assert native_gemv.gemv(engine, row, np.ascontiguousarray(matrix), bias) is None
    assert native_gemv.gemv(engine, row[:, :10], matrix, bias) is None
    assert native_gemv.gemv(engine, row.astype("f8"), matrix, bias) is None
    assert native_gemv.gemv(engine, row, matrix, bias[:1]) is None
    assert native_gemv.gemv(engine, row.astype("f2"), matrix.astype("f2"), None) is None
    assert native_gemv.gemv(engine, np.zeros((1, 128), "f4")[:, ::2], matrix, bias) is None


def test_layers_of_one_row_ask_it(engine, monkeypatch):
    asked = []

    def noted(row, matrix, bias):
        asked.append(matrix.shape)
        return native_gemv.gemv(engine, row, matrix, bias)

    monkeypatch.setattr(deterministic_gemm.native_gemm, "row", noted)
    row, matrix, bias = _given(1024, 1025)
    layer = torch.nn.Linear(1024, 1025)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(matrix.T.copy()))
        layer.bias.copy_(torch.from_numpy(bias))
        found = layer(torch.from_numpy(row)[None])
        layer(torch.zeros(2, 1024)), torch.nn.Linear(16, 16)(torch.zeros(1, 16))
    np.testing.assert_allclose(found[0], row.astype("f8") @ matrix + bias, atol=1e-3)
    assert asked == [(1024, 1025)]
