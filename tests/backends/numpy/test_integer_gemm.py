"""Integer products by BLAS: exact, and modulo the size of the dtype."""

import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.numpy import deterministic_gemm, integer_gemm
from torchlite_backends.numpy.deterministic_gemm import deterministic_dot, deterministic_matmul

DTYPES = ["int8", "uint8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]


def _values(kind, dtype, shape, seed):
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    low, high = {
        "small": (max(info.min, -99), 99),
        "full": (info.min, info.max),
        "largest": (info.max - 2, info.max),
        "lowest": (info.min, info.min + 2),
    }[kind]
    return rng.integers(low, high, shape, dtype=dtype, endpoint=True)


def _cell(a, b, row, column):
    """An element of a product by Python's integers, which do not overflow."""
    total = sum(int(x) * int(y) for x, y in zip(a[row], b[:, column], strict=True))
    info = np.iinfo(a.dtype)
    return (total - int(info.min)) % (1 << info.bits) + int(info.min)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", ["small", "full", "largest", "lowest"])
@pytest.mark.parametrize("right", ["small", "full", "lowest"])
def test_products_wrap_around(dtype, left, right):
    a, b = _values(left, dtype, (40, 50), 0), _values(right, dtype, (50, 60), 1)
    out = deterministic_matmul(a, b)
    assert integer_gemm.is_worthwhile(a, b)
    assert out.dtype == a.dtype and np.array_equal(out, np.matmul(a, b))
    for row, column in [(0, 0), (39, 59), (7, 31)]:
        assert out[row, column] == _cell(a, b, row, column)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64"])
def test_long_sums(dtype):
    """A sum that no single floating-point product holds exactly."""
    a, b = _values("full", dtype, (30, 5000), 0), _values("full", dtype, (5000, 30), 1)
    assert np.array_equal(deterministic_matmul(a, b), np.matmul(a, b))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_stacks_vectors_and_views(dtype):
    a, b = _values("full", dtype, (3, 40, 50), 0), _values("full", dtype, (50, 40), 1)
    for left, right in [(a, b), (a[:, ::2], b[:, ::-1]), (b.T, b), (a[:1], b), (a, b[None])]:
        assert np.array_equal(deterministic_matmul(left, right), np.matmul(left, right))
    wide = _values("full", dtype, (200, 300), 2)
    for left, right in [
        (wide, wide[0]),
        (wide[:, 0], wide),
        (wide[:1], wide.T),
        (wide, wide[:1].T),
        (wide.T, wide[:, 0]),
    ]:
        assert np.array_equal(deterministic_dot(left, right), np.dot(left, right))
    out = np.empty((40, 40), dtype)
    assert deterministic_matmul(a[0], b, out) is out and np.array_equal(out, a[0] @ b)


@pytest.mark.parametrize("shape", [(0, 50, 50), (50, 0, 50), (50, 50, 0), (1, 1, 5000)])
def test_empty_products(shape):
    rows, depth, columns = shape
    a, b = np.ones((rows, depth), np.int64), np.ones((depth, columns), np.int64)
    assert np.array_equal(deterministic_matmul(a, b), np.full((rows, columns), depth))


@pytest.mark.parametrize(
    ("left", "right", "size", "products"),
    [(20, 20, 64, 1), (32, 32, 32, 3), (64, 64, 64, 6), (64, 8, 64, 2), (33, 64, 64, 6)],
)
def test_the_fewest_products_are_chosen(left, right, size, products):
    first, second, wide, narrow = integer_gemm._choose_digits(left, right, 2048, size)
    assert first * wide >= left and second * narrow >= right and wide + narrow - 2 + 11 <= 53
    assert sum(wide * i + narrow * j < size for i in range(first) for j in range(second)) == products


@pytest.mark.parametrize(
    "call",
    [
        torch.mm,
        torch.matmul,
        lambda a, b: torch.addmm(a, a, b, beta=2, alpha=3),
        lambda a, b: torch.einsum("ij,jk->ik", a, b),
        lambda a, b: torch.tensordot(a, b, 1),
        lambda a, b: torch.bmm(a[None], b[None])[0],
        lambda a, b: torch.baddbmm(a[None], a[None], b[None])[0],
        lambda a, b: torch.nn.functional.linear(a, b, a[0]),
        lambda a, b: torch.matrix_power(a, 3),
        lambda a, b: torch.linalg.multi_dot([a, b, a]),
        lambda a, b: torch.mv(a, b[0]),
        lambda a, b: b[0] @ a,
    ],
)
def test_ops(call, monkeypatch):
    """The ops that multiply matrices give the same numbers as NumPy's own products of integers."""
    a, b = (torch.from_numpy(_values("full", "int64", (40, 40), seed)) for seed in (0, 1))
    out = call(a, b)
    monkeypatch.setattr(deterministic_gemm, "is_worthwhile", lambda a, b: False)
    assert out.dtype == torch.int64 and torch.equal(out, call(a, b))
