"""The fused CPU kernels against the composites of the same records, over the dtypes, layouts and sizes that take
different paths.
"""

import inspect

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY, table_of
from torchlite_backends.numpy import cache_blocking, normalisation

CPU = table_of(torch.device("cpu"))
SIZES = [(3, 5), (1, 1), (300, 400)]


def both(name, *args):
    """Return the results of an op's kernel and of its composite, as tuples."""
    record = REGISTRY[name]
    positional = [p.name for p in record.params if not p.kwonly]
    keywords = {p.name: a for p, a in list(zip(record.params, args, strict=False))[len(positional) :]}
    kernel = getattr(CPU, name)
    assert inspect.isfunction(kernel), f"{name} has no kernel"
    results = kernel(*args[: len(positional)], **keywords), record.composite(CPU, *args)
    return [r if isinstance(r, tuple) else (r,) for r in results]


def agree(name, *args, tol=None):
    kernel, composite = both(name, *args)
    for mine, want in zip(kernel, composite, strict=False):
        if want is None:
            continue
        mine, want = np.asarray(mine), np.asarray(want)
        assert (mine.shape, mine.dtype) == (want.shape, want.dtype), name
        single = mine.dtype == np.float32
        limit = tol or (2e-5 if single else 1e-9)
        np.testing.assert_allclose(mine, want, rtol=limit, atol=limit, err_msg=name)


def data(rng, shape, dtype="float32", scale=2.0):
    return (rng.standard_normal(shape) * scale).astype(dtype)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SIZES)
def test_activations(rng, shape, dtype):
    x, grad = data(rng, shape, dtype, 4), data(rng, shape, dtype)
    for name in ("relu", "silu", "mish"):
        agree(name, x)
        agree(f"_{name}_backward", grad, np.maximum(x, 0) if name == "relu" else x)
    for approximate in ("none", "tanh"):
        agree("gelu", x, approximate)
        agree("_gelu_backward", grad, x, approximate)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SIZES)
def test_piecewise_activations(rng, shape, dtype):
    x, grad = data(rng, shape, dtype, 4), data(rng, shape, dtype)
    for slope in (0.1, 1.5, -0.5):
        agree("leaky_relu", x, slope)
        agree("_leaky_relu_backward", grad, x, slope)
    for parameters in ((1.0, 1.0, 1.0), (1.7, 1.05, 1.0), (0.5, 1.0, 2.0)):
        agree("_elu", x, *parameters)
        agree("_elu_backward", grad, x, *parameters)
    agree("softplus", x, 1.0, 20.0)
    agree("softplus", x, 2.0, 3.0)
    agree("_softplus_backward", grad, x, 2.0, 3.0)
    agree("logsigmoid", x)
    agree("hardsigmoid", x)
    agree("hardswish", x)
    agree("softshrink", x, 0.5)


def test_relu_keeps_nan_and_stops_infinite_gradients():
    x = np.array([np.nan, -1.0, 0.0, -0.0, 2.0], np.float32)
    out = CPU.relu(x)
    np.testing.assert_array_equal(out, np.array([np.nan, 0, 0, 0, 2], np.float32))
    grad = CPU._relu_backward(np.full(5, np.inf, np.float32), out)
    assert grad.tolist() == [np.inf, 0, 0, 0, np.inf]


def test_gelu_far_from_zero():
    x = np.array([-1000.0, -20.0, -6.0, -5.5, 5.5, 6.0, 1000.0, np.inf], np.float32)
    np.testing.assert_allclose(CPU.gelu(x), [0, 0, 0, -1.0445e-7, 5.5, 6, 1000, np.inf], atol=2e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [*SIZES, (4, 300, 100), (2, 1000, 100), (50, 7, 300), (90, 300, 5)])
def test_softmax(rng, shape, dtype):
    x, grad = data(rng, shape, dtype), data(rng, shape, dtype)
    for dim in {0, 1, -1}:
        agree("_softmax", x, dim)
        agree("_log_softmax", x, dim)
        agree("_softmax_backward", grad, CPU._softmax(x, dim), dim)
        agree("_log_softmax_backward", grad, CPU._log_softmax(x, dim), dim, tol=1e-4 if dtype == "float32" else None)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 5), (300, 400), (20, 30, 200)])
@pytest.mark.parametrize("affine", [True, False])
def test_layer_and_rms_norm(rng, shape, dtype, affine):
    x, grad = data(rng, shape, dtype), data(rng, shape, dtype)
    weight, bias = (data(rng, shape[1:], dtype), data(rng, shape[1:], dtype)) if affine else (None, None)
    n, needs, tol = len(shape) - 1, (True, affine, affine), 1e-3 if dtype == "float32" else None
    _, mean, rstd = CPU._layer_norm(x, weight, bias, n, 1e-5)
    agree("_layer_norm", x, weight, bias, n, 1e-5)
    agree("_layer_norm_backward", grad, x, weight, mean, rstd, n, 1e-5, needs, tol=tol)
    agree("_rms_norm", x, weight, n, 1e-5)
    agree("_rms_norm_backward", grad, x, weight, CPU._rms_norm(x, weight, n, 1e-5)[1], n, 1e-5, needs[:2], tol=tol)


@pytest.mark.parametrize("shape", [(4, 3), (5, 4, 3, 3), (3, 4, 20, 20), (64, 32, 16, 16), (2, 3, 300, 300)])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(rng, shape, affine):
    x, grad = data(rng, shape) + 1, data(rng, shape)
    weight, bias = (data(rng, shape[1]), data(rng, shape[1])) if affine else (None, None)
    _, mean, var = CPU._batch_norm_train(x, weight, bias, 1e-5)
    agree("_batch_norm_train", x, weight, bias, 1e-5)
    agree("_batch_norm_backward", grad, x, weight, mean, var, 1e-5, (True, affine, affine), tol=2e-3)
    agree("_channel_affine", x, data(rng, shape[1]), data(rng, shape[1]))
    for limits in ((-np.inf, np.inf), (0.0, np.inf), (-np.inf, 0.5), (0.0, 6.0)):
        agree("_batch_norm_eval", x, weight, bias, mean, var, 1e-5, *limits, tol=1e-4)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(32, 10), (4, 5, 3), (3000, 100), (7,)])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("ignore", [-100, 1])
def test_cross_entropy(rng, shape, reduction, weighted, ignore):
    x = data(rng, shape)
    classes = shape[1] if len(shape) > 1 else shape[0]
    target = np.asarray(rng.integers(0, classes, shape[:1] + shape[2:] if len(shape) > 1 else ()))
    if target.ndim == 0:
        target = np.array(3)
    weight = rng.random(classes).astype(np.float32) + 0.5 if weighted else None
    loss, lse = CPU._cross_entropy(x, target, weight, ignore, reduction)
    agree("_cross_entropy", x, target, weight, ignore, reduction)
    agree("_cross_entropy_backward", data(rng, np.shape(loss)), x, target, weight, lse, ignore, reduction)


@pytest.mark.parametrize("mask", [None, "bool", "float", "causal"])
@pytest.mark.parametrize(("lead", "length", "keys"), [((2, 3), 5, 7), ((2,), 300, 300), ((), 6, 6)])
def test_attention(rng, mask, lead, length, keys):
    query, key, value, grad = (
        data(rng, (*lead, *shape), "float64", 1) for shape in ((length, 4), (keys, 4), (keys, 6), (length, 6))
    )
    given = {"bool": rng.random((length, keys)) > 0.3, "float": rng.standard_normal((length, keys))}.get(mask)
    if mask == "bool":
        given[0] = False
    causal = mask == "causal"
    out, lse = CPU._sdpa(query, key, value, given, causal, 0.5)
    agree("_sdpa", query, key, value, given, causal, 0.5)
    agree("_sdpa_backward", grad, query, key, value, given, out, lse, causal, 0.5, (True, True, True))


@pytest.mark.parametrize(("padding", "by_frequency"), [(-1, False), (3, False), (3, True)])
def test_embedding(rng, padding, by_frequency):
    weight, indices = data(rng, (50, 8), "float64"), rng.integers(0, 50, (7, 9))
    agree("embedding", weight, indices, padding, by_frequency, False)
    agree("_embedding_backward", data(rng, (7, 9, 8), "float64"), indices, 50, padding, by_frequency)
    for bad in (50, -1):
        with pytest.raises(IndexError, match="index out of range in self"):
            torch.nn.functional.embedding(torch.tensor([bad]), torch.ones(50, 8))


def test_linear(rng):
    for lead in ((5,), (2, 3), (300,)):
        x, weight, bias = data(rng, (*lead, 64), "float64"), data(rng, (300, 64), "float64"), data(rng, 300, "float64")
        agree("linear", x, weight, bias)
        agree("_linear_weight_grad", data(rng, (*lead, 300), "float64"), x)
        agree("_linear_bias_grad", data(rng, (*lead, 300), "float64"))
        agree("_linear_input_grad", data(rng, (*lead, 300), "float64"), weight)


def test_half_precision_is_computed_in_single():
    x = torch.linspace(-3, 3, 12).reshape(3, 4)
    for name, args in (("_softmax", (1,)), ("gelu", ()), ("silu", ())):
        record = getattr(CPU, name)
        out = record(x.half().numpy(), *args)
        assert out.dtype == np.float16
        np.testing.assert_allclose(out.astype(np.float32), record(x.numpy(), *args), atol=2e-3)
    out = torch.layer_norm(x.half(), (4,))
    assert out.dtype is torch.float16
    np.testing.assert_allclose(out.float().numpy(), torch.layer_norm(x, (4,)).numpy(), atol=5e-3)


def test_results_do_not_depend_on_threads(rng):
    x = data(rng, (2000, 300))
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            _, mean, rstd = CPU._layer_norm(x, None, None, 1, 1e-5)
            results.append(CPU._layer_norm_backward(x, x, x[0], mean, rstd, 1, 1e-5, (True, True, True)))
        for other in results[1:]:
            for a, b in zip(results[0], other, strict=True):
                np.testing.assert_array_equal(a, b)
    finally:
        torch.set_num_threads(before)


def test_an_error_in_a_worker_reaches_the_caller():
    def body(start, stop):
        raise ZeroDivisionError("in a block")

    with pytest.raises(ZeroDivisionError, match="in a block"):
        cache_blocking.run_blocks(body, 1000, 1000)


@pytest.mark.parametrize("size", [50, 5000, (1 << 18) + 77])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_clipping_keeps_zeros_and_nan(size, dtype):
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-42, -1e-42, 7, -3])
    x = np.resize(special, size).astype(dtype)

    def same(found, want):
        np.testing.assert_array_equal(found, want)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(want))

    zero = np.zeros((), dtype)
    same(CPU.relu(x), np.where(x < zero, zero, x))
    same(torch.relu(torch.from_numpy(x)).numpy(), np.where(x < zero, zero, x))
    same(CPU.hardtanh(x, -1.0, 6.0), np.where(x < -1, x.dtype.type(-1), np.where(x > 6, x.dtype.type(6), x)))


@pytest.mark.parametrize("normalized", [True, False])
def test_an_epilogue_writes_to_images_with_their_channels_last(normalized):
    """oneDNN returns such images; a reshape of them is a copy."""
    from torchlite_backends.numpy.fused_inference import ConvEpilogue

    generator = np.random.default_rng(0)
    images = generator.standard_normal((2, 5, 6, 3), np.float32).transpose(0, 3, 1, 2)
    mean, var = (generator.random(3, np.float32) + 0.5 for _ in range(2))
    epilogue = ConvEpilogue(None, None, mean if normalized else None, var, 0.1, 0.0, 1.0)
    expected = images
    if normalized:
        expected = (images - mean.reshape(3, 1, 1)) / np.sqrt(var.reshape(3, 1, 1) + 0.1)
    expected = np.clip(expected, 0.0, 1.0)
    strides = images.strides
    found = epilogue.apply_to_images(images)
    assert found is images and found.strides == strides
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("columns", [1, 7, 256, 4096, 8192])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("affine", [False, True])
def test_layer_norm_of_one_row_has_the_bits_of_several(rng, columns, dtype, affine):
    x = (rng.standard_normal((2, 1, columns)) * 3 + 5).astype(dtype)
    weight = rng.standard_normal(columns).astype(dtype) if affine else None
    for kernel in normalisation._layer_norm, CPU._layer_norm:  # NumPy's, and that of the engine that serves
        pair = kernel(x, weight, weight, 1, 1e-5)
        for k in range(2):
            found = kernel(x[k : k + 1], weight, weight, 1, 1e-5)
            assert [a.shape for a in found] == [(1, 1, columns), (1, 1, 1), (1, 1, 1)]
            assert [a.tobytes() for a in found] == [a[k].tobytes() for a in pair]
