"""The compiled kernels over ndarrays that only the processor has: what they compute, decline and refuse."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from torchlite_backends.cc import (
    cxx_compiler,
    native_cat,
    native_gather,
    native_lstm,
    native_mt19937,
    native_optim,
    native_parallel_gemm,
    native_sum,
    native_topk,
    program_build,
)
from torchlite_backends.cc.device import Device
from torchlite_backends.device_runtime.core.device import NotBuiltError

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())
DTYPES = "?", "u1", "i2", "f2", "i4", "f4", "i8", "f8"


@pytest.fixture(scope="module")
def engine():
    return Device()


@pytest.fixture
def numbers():
    rng = np.random.default_rng(3)
    return lambda *shape, dtype="f4": (rng.standard_normal(shape) * 10).astype(dtype)


def _places(*shape, below):
    return np.random.default_rng(4).integers(0, below, shape)


def test_a_refused_build_keeps_no_reference_to_its_arguments(numbers, monkeypatch):
    engine = Device(may_build=False)
    monkeypatch.setattr(program_build, "load_program", refused := Refused())
    x = numbers(3, 4)
    gone = weakref.ref(x)
    for _ in range(2):
        with pytest.raises(NotBuiltError, match="not there"):
            native_gather.gather(engine, x, 1, _places(3, 4, below=4))
    del x
    assert gone() is None and refused.calls == 1


class Refused:
    calls = 0

    def __call__(self, text, may_build):
        self.calls += 1
        raise NotBuiltError("not there")


# --- picking ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_gather(engine, numbers, dtype, dim):
    x = numbers(7, 9, 11, dtype=dtype)
    shape = [*x.shape]
    shape[dim] = 5
    index = _places(*shape, below=x.shape[dim])
    out = native_gather.gather(engine, x, dim, index)
    assert out.dtype == x.dtype and (out == np.take_along_axis(x, index, dim)).all()


@pytest.mark.parametrize("picked", [1, 3, 64, 128, 129, 700])
def test_gather_asks_ahead_within_its_rows(engine, numbers, picked):
    """Prefetching works across rows and within long rows, with any number of remaining rows."""
    for rows in (1, 2, 50, 130):
        x, index = numbers(rows, 33), _places(rows, picked, below=33)
        assert (native_gather.gather(engine, x, 1, index) == np.take_along_axis(x, index, 1)).all()
    index[-1, -1] = 33
    assert native_gather.gather(engine, x, 1, index) is None


@pytest.mark.parametrize("bad", [-1, 9, 1 << 40])
@pytest.mark.parametrize("dim", [0, 1])
def test_bad_places_are_refused(engine, numbers, bad, dim):
    x, index = numbers(9, 9), _places(9, 9, below=9)
    index[4, 5] = bad
    assert native_gather.gather(engine, x, dim, index) is None
    assert native_gather.index_select(engine, x, dim, index[4]) is None
    assert native_gather.embedding(engine, x, index) is None
    if bad < 1 << 31:
        assert native_gather.index_select(engine, x, dim, index[4].astype("i4")) is None


@pytest.mark.parametrize("dtype", [*DTYPES, "c8", "c16"])
@pytest.mark.parametrize("kind", ["i4", "i8"])
def test_rows_by_index(engine, numbers, dtype, kind):
    x = numbers(6, 10, 40, dtype=dtype)
    for dim in (0, 1, -2):
        index = _places(17, below=x.shape[dim]).astype(kind)
        out = native_gather.index_select(engine, x, dim, index)
        assert out.dtype == x.dtype and (out == np.take(x, index, dim)).all()
    narrow, index = numbers(6, 3, dtype=dtype), _places(17, below=3).astype(kind)
    assert (native_gather.index_select(engine, narrow, 0, index) == np.take(narrow, index, 0)).all()
    assert native_gather.index_select(engine, narrow, 1, index) is None  # NumPy is faster
    for width in (5, 127, 128, 1000, 2500):
        table, index = numbers(40, width, dtype=dtype), _places(3, 50, below=40).astype(kind)
        assert (native_gather.embedding(engine, table, index) == table[index]).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", ["i4", "i8"])
@pytest.mark.parametrize("rows", [1, 5, 300])
def test_gradients_of_embeddings(engine, numbers, dtype, kind, rows):
    grad, index = numbers(40, 7, 19, dtype=dtype), _places(40, 7, below=rows).astype(kind)
    for padding in (-1, 0):
        expected = np.zeros((rows, 19))
        np.add.at(expected, index, grad)
        if padding == 0:
            expected[0] = 0
        out = native_gather._embedding_backward(engine, grad, index, rows, padding, False)
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-3 if dtype == "f4" else 1e-11)
    for bad in (-1, rows):
        wrong = index.copy()
        wrong[3, 2] = bad
        assert native_gather._embedding_backward(engine, grad, wrong, rows, -1, False) is None
    assert native_gather._embedding_backward(engine, grad, index, rows, -1, True) is None
    assert native_gather._embedding_backward(engine, grad[..., :3].copy(), index, rows, -1, False) is None
    assert native_gather._embedding_backward(engine, grad, index[:0], rows, -1, False) is None


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", ["i4", "i8"])
@pytest.mark.parametrize("shape", [(1, 16), (7, 5, 9), (300, 33)])
def test_rows_are_added_by_index(engine, numbers, dtype, kind, shape):
    x, index = numbers(*shape, dtype=dtype), _places(400, below=shape[0]).astype(kind)
    source = numbers(400, *shape[1:], dtype=dtype)
    expected, before = x.astype("f8"), x.copy()
    np.add.at(expected, index, source)
    out = native_gather.index_add(engine, x, -x.ndim, index, source)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-3 if dtype == "f4" else 1e-11)
    assert (x == before).all()
    for bad in (-1, shape[0]):
        wrong = index.copy()
        wrong[3] = bad
        assert native_gather.index_add(engine, x, 0, wrong, source) is None
    assert native_gather.index_add(engine, x, 0, index, source, alpha=2) is None
    assert native_gather.index_add(engine, x, 0, index, source[:, :1]) is None
    assert native_gather.index_add(engine, x, 1, index, source) is None
    assert native_gather.index_add(engine, x, 0, index[::2], source[::2]) is None
    assert native_gather.index_add(engine, x.astype("i4"), 0, index, source) is None


def test_unsupported_gathers_are_declined(engine, numbers):
    x, index = numbers(8, 8), _places(8, 8, below=8)
    assert native_gather.gather(engine, x.T, 0, index) is None
    assert native_gather.gather(engine, x, 0, index.astype("i4")) is None
    assert native_gather.gather(engine, x, 2, index) is None
    assert native_gather.gather(engine, x, 1, index[:4]) is None
    assert native_gather.gather(engine, x[:0], 1, index[:0]) is None
    assert native_gather.index_select(engine, x, 0, index) is None
    assert native_gather.index_select(engine, x, 0, index[0, ::2]) is None
    assert native_gather.embedding(engine, x[0], index) is None


@pytest.mark.parametrize("dtype", ["c16", *DTYPES])
@pytest.mark.parametrize("cached", [0, 1 << 25])
def test_cat(engine, numbers, monkeypatch, dtype, cached):
    monkeypatch.setattr(Device, "cached", cached)
    monkeypatch.setattr(native_cat, "CHUNK", 100)
    x = numbers(5, 7, 9, dtype=dtype)
    for dim in (0, 1, 2, -2):
        for given in ([x, x + x], [x], [x[:, :0, :].copy(), x] if dim in (1, -2) else [x, np.empty(0, dtype)], [x] * 5):
            out = native_cat.cat(engine, given, dim)
            assert (out == np.concatenate([a for a in given if a.ndim > 1], dim)).all()
    out = native_cat.cat(engine, [x[:, :3].copy(), x, x[:, 1:3].copy()], 1)
    assert (out == np.concatenate([x[:, :3], x, x[:, 1:3]], 1)).all()


def test_unsupported_cats_are_declined(engine, numbers):
    x = numbers(4, 6)
    for given, dim in (([x, x.T], 0), ([x, x[:, :5].copy()], 0), ([x, x.astype("f8")], 0), ([x, x[0]], 0), ([x], 2),
                       ([np.empty(0, "f4")], 0), ([x[:, ::2], x[:, ::2]], 0), ([x], None)):  # fmt: skip
        assert native_cat.cat(engine, given, dim) is None


# --- sums ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(40,), (33, 70), (3, 5, 67), (2, 3, 300, 41), (3, 70001), (5000, 17), (1, 4, 1030)])
def test_sums_and_means(engine, numbers, dtype, shape):
    x = numbers(*shape, dtype=dtype)
    served = 0
    for dim in (None, 0, -1, (0, 1), (-2, -1), tuple(range(len(shape)))):
        if dim.__class__ is tuple and (len(shape) < 2 or len(dim) > len(shape)):
            continue
        for keepdim in (False, True):
            for op, plain in ((native_sum.sum, np.sum), (native_sum.mean, np.mean)):
                out = op(engine, x, dim, keepdim)
                if out is None:
                    continue
                served += 1
                expected = plain(x.astype("f8"), axis=dim, keepdims=keepdim)
                assert out.shape == expected.shape and out.dtype == x.dtype
                scale = np.abs(x).max() * (x.size if plain is np.sum else 1)
                np.testing.assert_allclose(out, expected, rtol=1e-5, atol=scale * (1e-7 if dtype == "f4" else 1e-15))
    assert served >= 4


def test_sums_of_turned_arrays(engine, numbers):
    x = numbers(50, 60, 40)
    for turned in (x.transpose(0, 2, 1), x.transpose(2, 0, 1)):
        for dim in (0, 1, 2, (0, 1), (1, 2)):
            out = native_sum.sum(engine, turned, dim)
            if out is not None:
                np.testing.assert_allclose(out, turned.astype("f8").sum(dim), rtol=1e-4, atol=1e-3)
    assert native_sum.sum(engine, x[0].T, 0) is not None


def test_sums_propagate_nan(engine):
    x = np.ones((64, 200), np.float32)
    x[3, 7], x[5, 9], x[5, 10] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        for dim in (0, 1, None):
            np.testing.assert_array_equal(native_sum.sum(engine, x, dim), x.sum(dim))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape, dim", [((70_001,), None), ((3, 100), 1), ((3, 5, 7), (1, 2)), ((50, 1025), -1)])
def test_sums_without_nan_and_products(engine, dtype, shape, dim):
    x = np.random.default_rng(3).uniform(0.9, 1.1, shape).astype(dtype)
    close = {"rtol": 1e-4 if dtype == "f4" else 1e-12, "atol": 1e-30}
    if dim.__class__ is not tuple:
        for keepdim in (False, True):
            found, want = native_sum.prod(engine, x, dim, keepdim), np.prod(x, dim, keepdims=keepdim)
            assert found.dtype == x.dtype and found.shape == want.shape and np.allclose(found, want, **close)
    x.reshape(-1)[::7] = np.nan
    found, want = native_sum.nansum(engine, x, dim), np.nansum(x.astype("f8"), dim)
    assert found.dtype == x.dtype and found.shape == want.shape and np.allclose(found, want, **close)
    assert np.isnan(native_sum.prod(engine, x, -1)).any() if len(shape) == 1 else True
    assert native_sum.nansum(engine, np.full(999, np.nan, dtype)) == 0


def test_unsupported_products_are_declined(engine, numbers):
    assert native_sum.prod(engine, numbers(100, 100).T, 1) is None
    assert native_sum.prod(engine, numbers(100, 100), 0) is None
    assert native_sum.nansum(engine, numbers(100, dtype="f2")) is None


def test_sums_are_the_same_for_any_threads(engine, numbers):
    import torchlite as torch

    x, before = numbers(3, 1 << 21), torch.get_num_threads()
    y = x.reshape(-1, 1 << 10)
    try:
        found = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append([a.tobytes() for a in (native_sum.sum(engine, x, 1), native_sum.sum(engine, y, 0))])
        assert found[0] == found[1] == found[2]
    finally:
        torch.set_num_threads(before)


def test_unsupported_sums_are_declined(engine, numbers):
    x = numbers(40, 50, 60)
    assert native_sum.sum(engine, x, (0, 2)) is None  # not neighbours
    assert native_sum.sum(engine, x.astype("i4"), 0) is None
    assert native_sum.sum(engine, x[:, ::2], 0) is None
    assert native_sum.sum(engine, x, 3) is None and native_sum.sum(engine, x, (1, 1)) is None
    assert native_sum.sum(engine, x[:0], 0) is None
    assert native_sum.sum(engine, x[0, 0, :1].reshape(()), 0) is None


# --- order --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("length", [8, 64, 100, 1000])
def test_topk(engine, dtype, largest, length):
    x = np.random.default_rng(5).integers(-20, 20, (600, length)).astype(dtype)  # fewer elements follow other rules
    x[0, 1], x[1, :] = np.nan, np.nan
    x[2, 3], x[2, 4], x[3, :4] = np.inf, -np.inf, (0.0, -0.0, 1e-40, -1e-40)
    for k in (1, 2, min(128, length // 4)):
        values, places = native_topk.topk(engine, x, k, -1, largest)
        order = np.where(np.isnan(x), np.inf, x).astype("f8")
        keys = [np.lexsort((np.arange(length), *((-r, ~n) if largest else (r, n)))) for r, n in zip(order, np.isnan(x))]
        expected = np.array(keys)[:, :k]
        assert (places == expected).all()
        np.testing.assert_array_equal(values, np.take_along_axis(x, expected, 1))
        assert (np.signbit(values) == np.signbit(np.take_along_axis(x, expected, 1))).all()


def test_unsupported_topk_is_declined(engine, numbers):
    x = numbers(40, 600)
    for given, k, dim in (
        (x, 200, 1),
        (x, 0, 1),
        (x, 3, 0),
        (x.T, 3, 1),
        (x[:, :8].copy(), 3, 1),
        (x.astype("i4"), 3, 1),
    ):
        assert native_topk.topk(engine, given, k, dim) is None


# --- products -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("biased", [False, True])
def test_products_are_numpys(engine, numbers, monkeypatch, dtype, biased):
    from torchlite_backends.numpy import deterministic_gemm
    from torchlite_backends.numpy.blas import get_gemm_address

    if get_gemm_address(np.dtype(dtype)) is None:
        pytest.skip("NumPy's BLAS has no function for it")
    taken = []
    # The engine calls BLAS on processors without AVX-512, where a product is not cut into blocks.
    monkeypatch.setattr(native_parallel_gemm, "_HAS_AVX512", False)
    monkeypatch.setattr(deterministic_gemm, "has_avx512_kernels", lambda dtype: False)

    def through(*of):
        taken.append(native_parallel_gemm.parallel_gemm(engine, *of))
        return taken[-1]

    for rows, depth, columns in ((300, 310, 320), (700, 200, 150), (130, 250, 900)):
        bias = numbers(columns, dtype=dtype) if biased else None
        a, b = numbers(rows, depth, dtype=dtype), numbers(depth, columns, dtype=dtype)
        for left in (a, a.T.copy().T, np.pad(a, 3)[3:-3, 3:-3]):
            for right in (b, b.T.copy().T):
                monkeypatch.setattr(deterministic_gemm.native_gemm, "parts", None)
                expected = deterministic_gemm.matmul_bias(left, right, bias)
                monkeypatch.setattr(deterministic_gemm.native_gemm, "parts", through)
                assert (deterministic_gemm.matmul_bias(left, right, bias) == expected).all()
    assert all(taken) and len(taken) == 18
    monkeypatch.setattr(deterministic_gemm.native_gemm, "parts", through)
    square = numbers(400, 300, dtype=dtype)
    deterministic_gemm.matmul_bias(square, square.T)  # which BLAS knows to be symmetric
    assert len(taken) == 19 and not taken[-1]


# --- LSTM ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "near"), [("f4", 2e-6), ("f8", 1e-14)])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sizes", [(5, 3, 7, 11), (21, 32, 16, 64), (1, 1, 1, 1), (4, 70, 8, 9)])
def test_lstm_layers(engine, numbers, dtype, near, reverse, sizes):
    from torchlite_backends.numpy import lstm
    from torchlite_backends.numpy.blas import get_gemm_address

    if get_gemm_address(np.dtype(dtype)) is None:
        pytest.skip("NumPy's BLAS has no function for it")
    steps, batch, features, hidden = sizes

    def some(*shape):
        return numbers(*shape, dtype=dtype) * np.array(0.03, dtype)

    x, h, c = some(steps, batch, features), some(batch, hidden), some(batch, hidden)
    w_ih, w_hh = some(4 * hidden, features), some(4 * hidden, hidden)
    for biases in ([some(4 * hidden), some(4 * hidden)], [None, None]):
        given = [x, h, c, w_ih, w_hh, *biases]
        expected = lstm._lstm_layer(*given, reverse)
        found = native_lstm._lstm_layer(engine, *given, reverse)
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a, b, rtol=100 * near, atol=near)
        output, state = some(steps, batch, hidden), some(batch, hidden)
        for grads in ((output, state, state), (output, None, None), (None, state, None)):
            given_back = [*grads, *given, expected[0], *expected[3:], reverse, [True] * 7]
            expected_back = lstm._lstm_layer_backward(*given_back)
            for a, b in zip(native_lstm._lstm_layer_backward(engine, *given_back), expected_back):
                if b is None:
                    assert a is None
                else:
                    np.testing.assert_allclose(a, b, rtol=100 * near, atol=near * (1 + 30 * np.abs(b).max()))


def test_unsupported_lstms_are_declined(engine, numbers):
    given = [numbers(2, 3, 4), numbers(3, 5), numbers(3, 5), numbers(20, 4), numbers(20, 5), None, None, False]
    halves = [a.astype("f2") for a in given[:5]]
    assert native_lstm._lstm_layer(engine, *halves, None, None, False) is None
    assert native_lstm._lstm_layer(engine, given[0][:0], *given[1:]) is None


# --- the way there ------------------------------------------------------------------------------------


def test_errors_are_numpys(engine):
    """NumPy's kernel runs if a native kernel declines or fails."""
    from torchlite_backends.cc.native_kernel import override_kernels

    class Served:
        def device(self):
            return engine

    def plain(*arguments, **options):
        return "plain"

    found = override_kernels(Served(), dict.fromkeys(("gather", "sum", "cat"), plain))
    assert sorted(found) == ["cat", "gather", "sum"]
    x = np.ones((4, 4), np.float32)
    assert found["sum"](x, "no dimension") == "plain" and found["cat"]([x, None]) == "plain"
    assert found["gather"](x, 0, np.full((4, 4), 9)) == "plain"
    assert (found["cat"]([x, x]) == 1).all()


def test_a_program_that_is_not_built_leaves_its_op_to_numpy(tmp_path, monkeypatch):
    from torchlite_backends.cc.native_kernel import override_kernels

    monkeypatch.setenv("TORCHLITE_CACHE_DIR", str(tmp_path))
    device = Device(0, may_build=False)

    class Served:
        def device(self):
            return device

    found = override_kernels(Served(), {"sum": np.sum})
    assert found["sum"](np.ones((4, 40), np.float32), 1).tolist() == [40.0] * 4
    assert not list(tmp_path.rglob("*.so"))


# --- optimizers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "shapes", [[(40, 50), (3,)], [(1 << 15,), (300, 99), (5, 4)], [(9,)], [(0, 3), (7,), (0,), (5,)]]
)
@pytest.mark.parametrize(
    ("name", "count", "options"),
    [
        ("_fused_adam", 3, (3, 0.01, 0.9, 0.99, 1e-8, 0.0, False, False)),
        ("_fused_adam", 3, (3, 0.01, 0.9, 0.99, 1e-8, 0.1, False, True)),
        ("_fused_adam", 2, (3, 0.01, 0.9, 0.99, 1e-8, 0.1, True, False)),
        ("_fused_sgd", 0, (False, 0.1, 0.0, 0.0, 0.0, False, False)),
        ("_fused_sgd", 0, (False, 0.1, 0.0, 0.0, 0.3, False, True)),
        ("_fused_sgd", 1, (False, 0.1, 0.9, 0.2, 0.01, True, False)),
        ("_fused_sgd", 1, (True, 0.1, 0.9, 0.5, 0.0, False, True)),
        ("_fused_sgd", 1, (False, 0.1, 0.9, 0.5, 0.0, False, True)),
    ],
)
def test_steps_of_optimizers(engine, dtype, shapes, name, count, options):
    from torchlite_backends.numpy import optim

    rng, found = np.random.default_rng(0), []
    params, grads = ([rng.standard_normal(shape).astype(dtype) for shape in shapes] for _ in "pg")
    size = sum(p.size for p in params)
    states = [(rng.random(size) + 0.5).astype(dtype) for _ in range(count)]
    slots = {"_fused_adam": 3, "_fused_sgd": 1}[name]
    scaler = np.array(2, dtype), np.array(0, "f4")
    for kernel in (getattr(optim, name), lambda *given: getattr(native_optim, name)(engine, *given)):
        mine, theirs, kept = ([a.copy() for a in arrays] for arrays in (params, grads, states))
        for more in ((None, None), scaler, (None, scaler[0])):
            kernel(mine, theirs, *kept, *[None] * (slots - count), {}, *options, *more)
        found.append(mine + theirs + kept)
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=2e-6 if dtype == "f4" else 1e-13, atol=1e-6 if dtype == "f4" else 1e-14)


def test_unsupported_sgd_steps_are_declined(engine, numbers):
    p, buffer = numbers(4, 5), numbers(20)
    options = (False, 0.1, 0.9, 0.2, 0.01, True, False, None, None)
    for params, grads, state in (
        ([p], [p.T.copy().T], buffer), ([p], [p.astype("f8")], buffer), ([p], [p], buffer[:10]),
        ([p.astype("f2")], [p.astype("f2")], buffer), ([p[:0]], [p[:0]], buffer[:0]),
    ):  # fmt: skip
        assert native_optim._fused_sgd(engine, params, grads, state, {}, *options) is None


def test_a_losses_gradient_is_served_by_the_scores_size(monkeypatch):
    """The gradient of a loss is a number; what costs are the scores."""
    from torchlite_backends.cpu_engines import kernel_overrides, ndarray_bridge

    asked = []
    monkeypatch.setattr(ndarray_bridge, "run_on_device", lambda device, name, args, options: asked.append(name))

    class Served:
        name, least, products = "cc", dict.fromkeys(kernel_overrides.COSTS, 100), None

        def device(self):
            return engine

        def own(self, plain):
            return {}

    found = kernel_overrides.engine_kernels({"_cross_entropy_backward": lambda *given: None}, Served())
    for rows in (5, 20):
        scores, target = np.ones((rows, 10), "f4"), np.zeros(rows, "i8")
        found["_cross_entropy_backward"](np.ones((), "f4"), scores, target, None, scores[:, 0], -100, "mean")
    assert asked == ["_cross_entropy_backward"]


# --- random words -------------------------------------------------------------------------------------


def test_doubles_of_words_equal_numpys(engine, monkeypatch):
    from torchlite_backends.numpy import normal_deviates

    words = np.random.default_rng(4).integers(0, 1 << 32, 4006, dtype=np.uint32)
    monkeypatch.setattr(normal_deviates, "find_native", lambda name: None)
    found = np.empty(words.size // 2)
    assert native_mt19937.fill_doubles(engine, words, found)
    assert (found == normal_deviates._words_to_doubles(words)).all()


@pytest.mark.parametrize("before", [0, 1, 624, 700])
def test_random_words_equal_numpys_twister(engine, monkeypatch, before):
    from torchlite_backends.numpy import mt19937

    filled = []

    def fill(state, out):
        filled.append(native_mt19937.fill_words(engine, state, out))
        return filled[-1]

    monkeypatch.setattr(mt19937, "find_native", lambda name: None)
    plain, mine = mt19937.Engine(9), mt19937.Engine(9)
    expected = [plain.words(n) for n in (before, 20000, 3, 10000, 5)]
    monkeypatch.setattr(mt19937, "find_native", {"words": fill}.get)
    for words in expected:
        assert (mine.words(words.size) == words).all()
    assert (mine.get_state() == plain.get_state()).all() and filled == [True, True]
    other = mt19937.Engine(1)
    other.set_state(mine.get_state())
    assert (other.words(9000) == mine.words(9000)).all()


def test_a_partly_read_twister_is_declined(engine):
    twister = np.random.MT19937(3)
    twister.random_raw(5)
    out, state = np.zeros(624, "u4"), twister.state["state"]["key"].copy()
    assert not native_mt19937.fill_words(engine, twister.ctypes.state_address, out)
    assert not out.any() and (twister.state["state"]["key"] == state).all()
