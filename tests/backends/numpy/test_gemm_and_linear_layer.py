"""Products cut by their shapes, and linear layers that add their bias in the parts."""

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import table_of
from torchlite_backends.numpy import backend as numpy_backend
from torchlite_backends.numpy import deterministic_gemm
from torchlite_backends.numpy.blas import single_threaded

CPU = table_of(torch.device("cpu"))


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("rows", "inner", "columns"),
    [
        (1, 1, 1),
        (3, 5, 2),
        (1, 300, 700),
        (700, 300, 1),
        (129, 200, 700),
        (700, 200, 131),
        (1300, 250, 259),
        (64, 0, 9),
    ],
)
@pytest.mark.parametrize("bias", [True, False])
def test_linear(rows, inner, columns, bias, threads):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((rows, inner), "f4"), rng.standard_normal((columns, inner), "f4")
    b = rng.standard_normal(columns, "f4") if bias else None
    want = x.astype("f8") @ w.T.astype("f8") + (0 if b is None else b)
    found = []
    for count in (1, 2, 3):
        threads(count)
        found += [CPU.linear(x, w, b), CPU.linear(x.reshape(1, rows, inner), w, b)[0]]
        np.testing.assert_allclose(found[-2], want, rtol=1e-4, atol=1e-3)
    assert len({array.tobytes() for array in found}) == 1 and found[0].flags.c_contiguous


def test_a_bias_of_another_shape_is_broadcast():
    x, w = np.ones((3, 4), "f4"), np.ones((2, 4), "f4")
    assert CPU.linear(x, w, np.full(1, 5, "f4")).tolist() == [[9, 9]] * 3
    assert CPU.linear(x, w, np.full((), 5, "f4")).tolist() == [[9, 9]] * 3
    assert CPU.linear(x, w, np.full((3, 2), 5, "f4")).tolist() == [[9, 9]] * 3
    with pytest.raises(ValueError):
        CPU.linear(x, w, np.ones(3, "f4"))
    assert CPU.linear(np.ones((0, 4), "f4"), w, np.ones(2, "f4")).shape == (0, 2)
    assert CPU.linear(np.ones((2, 0, 4), "f4"), w, np.ones(2, "f4")).shape == (2, 0, 2)


def test_parts_follow_the_size():
    count = deterministic_gemm._count_parts
    assert (
        count(1 << 21, 4096) == 1
        and count(1 << 23, 4096) == 2
        and count(1 << 25, 4096) == 2
        and count(1 << 26, 4096) == 4
    )
    assert count(1 << 26, 100) == 1 and count(1 << 26, 130) == 2  # lines of a part
    assert count(1 << 28, 1024) == 4 and count(1 << 30, 4096) == 16 and count(1 << 40, 1 << 20) == 32


@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(2, 256, 1024), (64, 1024, 256), (33, 100, 300), (8, 3000, 700)]
)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("slowly", [True, False])
def test_few_rows(monkeypatch, rows, inner, columns, bias, slowly):
    """The transposed product of few rows, whatever BLAS has; its tasks have the bits of the engine's product."""
    numpy_backend.large_kernels(0)  # an engine's products serve from now on, as in a program with large arrays
    monkeypatch.setattr(deterministic_gemm, "has_avx512_kernels", lambda dtype: slowly)
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((rows, inner), "f4"), rng.standard_normal((columns, inner), "f4")
    b = rng.standard_normal(columns, "f4") if bias else None
    want = x.astype("f8") @ w.T.astype("f8") + (0 if b is None else b)
    found = deterministic_gemm.matmul_bias(x, w.T, b)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-3)
    parts = np.empty_like(found)
    with single_threaded:
        for task in deterministic_gemm.make_matmul_tasks(x, w.T, parts, b):
            task()
    assert parts.tobytes() == found.tobytes() and found.flags.c_contiguous
    for other in (x[:, ::-1].copy()[:, ::-1], np.asfortranarray(x), x[::-1]):
        right = want[::-1] if other.base is x else want
        np.testing.assert_allclose(deterministic_gemm.matmul_bias(other, w.T, b), right, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("reads_slowly", [False, True])
@pytest.mark.parametrize(
    ("rows", "inner", "columns"),
    [(2, 768, 3072), (3, 800, 1001), (24, 144, 3136), (997, 160, 49), (33, 1024, 256), (512, 512, 512), (1, 900, 1200)],
)
def test_blocks(monkeypatch, rows, inner, columns, reads_slowly):
    """Products of more multiplications than BLAS computes without copies, with rests, in memory with longer rows."""
    monkeypatch.setattr(deterministic_gemm, "READS_SLOWLY", reads_slowly)
    monkeypatch.setattr(deterministic_gemm, "has_avx512_kernels", lambda dtype: True)
    rng = np.random.default_rng(0)
    a, wide = rng.standard_normal((rows, inner), "f4"), rng.standard_normal((inner, columns + 3), "f4")
    for b in (wide[:, :columns], wide[:, :columns].copy(), np.asfortranarray(wide[:, :columns])):
        want = a.astype("f8") @ b.astype("f8")
        room = np.full((rows, columns + 5), np.nan, "f4")
        found = deterministic_gemm.multiply_in_blocks(a, b, room[:, :columns])
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=2e-3)
        assert np.isnan(room[:, columns:]).all()
        np.testing.assert_allclose(deterministic_gemm.matmul_bias(a, b), want, rtol=1e-4, atol=2e-3)
        np.testing.assert_allclose(deterministic_gemm.deterministic_matmul(a, b), want, rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize("lead", [(), (1,), (1, 1)])
def test_one_row(lead):
    rng = np.random.default_rng(0)
    x, w, b = (
        rng.standard_normal((*lead, 200), "f4"),
        rng.standard_normal((300, 200), "f4"),
        rng.standard_normal(300, "f4"),
    )
    found = CPU.linear(x, w, b)
    assert found.shape == (*lead, 300)
    np.testing.assert_allclose(found, x @ w.T + b, rtol=1e-4, atol=1e-4)
    with pytest.raises(RuntimeError, match="same dtype"):
        CPU.linear(x, w.astype("f8"), b)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((1, 400, 384), (384, 200)),  # all rows with one matrix
        ((1, 1, 300, 200), (1, 200, 400)),
        ((20, 1, 512), (512, 1000)),
        ((6, 200, 128), (6, 128, 200)),  # a matrix each
        ((1, 6, 200, 128), (2, 1, 128, 200)),
        ((300, 256), (5, 256, 128)),
        ((5, 300, 256), (256, 128)),
        ((7, 3, 200), (7, 200, 9)),
        ((0, 300, 200), (200, 300)),
        ((3, 200, 0), (3, 0, 300)),
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_stacks_of_matrices(threads, left, right, dtype):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(left).astype(dtype), rng.standard_normal(right).astype(dtype)
    turned = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    want = a.astype("f8") @ b.astype("f8")
    found, others = [], []
    for count in (1, 2, 3):
        threads(count)
        found.append(deterministic_gemm.deterministic_matmul(a, b))
        others.append(deterministic_gemm.deterministic_matmul(turned, b))
        into = np.empty((2, *want.shape), dtype)[1:]
        assert deterministic_gemm.deterministic_matmul(a[None], b, into) is into
        np.testing.assert_allclose(into[0], want, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(found[-1], want, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(others[-1], want, rtol=1e-4, atol=1e-3)
    assert len({array.tobytes() for array in found}) == len({array.tobytes() for array in others}) == 1
    assert found[0].dtype == dtype and found[0].shape == want.shape


def test_stacks_are_shared_by_threads(monkeypatch, threads):
    """One product where all rows meet one matrix, else parts of the stack."""
    threads(2)
    parts, shared = [], []
    one, real = deterministic_gemm._matmul_in_parts, deterministic_gemm.parallel_for
    monkeypatch.setattr(deterministic_gemm, "_matmul_in_parts", lambda *a: parts.append(a[0].shape) or one(*a))
    monkeypatch.setattr(
        deterministic_gemm, "parallel_for", lambda body, items: shared.append(items) or real(body, items)
    )
    x = np.ones((2, 200, 384), "f4")
    deterministic_gemm.deterministic_matmul(x, np.ones((384, 200), "f4"))
    assert parts == [(400, 384)]
    shared.clear()
    deterministic_gemm.deterministic_matmul(np.ones((1, 6, 200, 384), "f4"), np.ones((6, 384, 200), "f4"))
    assert len(parts) == 1 and len(shared) == 1 and shared[0][0][0] == 0 and shared[0][-1][1] == 6
