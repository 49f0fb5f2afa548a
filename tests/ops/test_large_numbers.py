"""Counts and indices beyond 32 bits, and histograms over almost all numbers."""

from __future__ import annotations

import pytest

import torchlite as torch
import torchlite.nn.functional as F

INDEXED = {
    "gather": lambda x, i: x.gather(0, i),
    "scatter": lambda x, i: x.scatter(0, i, 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i, torch.ones_like(i, dtype=x.dtype)),
    "index_fill": lambda x, i: x.index_fill(0, i, 1),
    "index_copy": lambda x, i: x.index_copy(0, i, torch.ones_like(i, dtype=x.dtype)),
    "index": lambda x, i: x[i],
    "index_put": lambda x, i: x.index_put((i,), torch.ones_like(i, dtype=x.dtype)),
    "take": lambda x, i: x.take(i),
    "put": lambda x, i: x.put(i, torch.ones_like(i, dtype=x.dtype)),
    "cross_entropy": lambda x, i: F.cross_entropy(x[None], i),
}


@pytest.mark.parametrize("index", [2**32 + 1, 2**40, 2**62, -(2**32) + 1, -(2**40) - 2])
@pytest.mark.parametrize("name", INDEXED)
def test_errors_name_the_index(name, index, device):
    with pytest.raises((IndexError, RuntimeError), match=rf"(?<!\d){index}(?!\d)"):
        INDEXED[name](torch.zeros(3, device=device), torch.tensor([index], device=device)).tolist()


@pytest.mark.parametrize("counts", [[2**32 + 3], [2**31, 2**31, 3], [0, 2**40]])
def test_repetitions_beyond_memory(counts, device):
    with pytest.raises(RuntimeError, match=f"allocate {8 * sum(counts)} bytes|has {sum(counts)}: split it"):
        torch.repeat_interleave(torch.tensor(counts, device=device))


def test_a_negative_count_beside_large_ones(device):
    with pytest.raises(RuntimeError, match="repeats can not be negative"):
        torch.repeat_interleave(torch.tensor([2**33, -(2**33)], device=device))


@pytest.mark.parametrize(
    ("dtype", "large"), [(torch.float32, 1e38), (torch.float32, 3e38), (torch.float16, 6e4), (torch.bfloat16, 3e38)]
)
def test_a_histogram_of_a_range_beyond_the_dtype(dtype, large, device):
    x = torch.tensor([large, -large, 0, large / 4], dtype=dtype, device=device)
    assert torch.histc(x, 4).tolist() == [1, 0, 2, 1]
    assert torch.histc(x, 4, x.min().item(), x.max().item()).tolist() == [1, 0, 2, 1]
    assert torch.histc(x, 1000).sum().item() == 4


def test_a_histogram_of_a_range_beyond_float64():
    x = torch.tensor([1e308, -1e308, 0], dtype=torch.float64)
    assert torch.histc(x, 4).tolist() == [1, 0, 1, 1]


def _norms(x, weight, bias):
    rows, columns = x.shape
    blocks = x.reshape(rows, 4, -1)
    return {
        "layer_norm": F.layer_norm(x, (columns,), weight, bias),
        "layer_norm without weights": F.layer_norm(x, (columns,)),
        "rms_norm": F.rms_norm(x, (columns,), weight),
        "group_norm": F.group_norm(blocks, 2, weight[:4], bias[:4]),
        "instance_norm": F.instance_norm(blocks, None, None, weight[:4], bias[:4]),
        "batch_norm": F.batch_norm(blocks, None, None, weight[:4], bias[:4], True),
    }


@pytest.mark.parametrize("size", [1e15, 1e19, 1e30, 1.5e38])
@pytest.mark.parametrize("shape", [(1, 24), (6, 40), (40, 700), (2, 20000)])
def test_norms_of_elements_whose_squares_overflow(shape, size, device):
    """Values and gradients are those of float64, as long as the elements and their spread are float32 numbers."""
    rng = torch.Generator().manual_seed(0)
    drawn = torch.rand(shape, generator=rng, dtype=torch.float64) * 2 - 1
    drawn[0] += 0.5  # a mean that is far from 0
    given = (drawn * size, torch.rand(shape[1], generator=rng) + 0.5, torch.rand(shape[1], generator=rng))
    grad = torch.rand(shape, generator=rng) - 0.5
    results = []
    for dtype, where in ((torch.float64, "cpu"), (torch.float32, device)):
        inputs = [t.to(where, dtype).requires_grad_() for t in given]
        results.append({})
        for name, out in _norms(*inputs).items():
            upstream = grad.to(where, dtype).reshape(out.shape)
            found = torch.autograd.grad(out, inputs, upstream, allow_unused=True, retain_graph=True)
            results[-1][name] = [out.detach(), *found]
    for name, expected in results[0].items():
        for found, wanted in zip(results[1][name], expected, strict=True):
            if wanted is not None:
                largest = wanted.abs().max().item()
                found = found.cpu().double() / max(largest, 1e-37)
                torch.testing.assert_close(found, wanted / max(largest, 1e-37), rtol=0, atol=1e-5, msg=name)


@pytest.mark.parametrize("layout", [(16, 40), (16, 40, 1), (8, 40, 2)])
def test_batch_norm_of_channels_of_all_sizes(layout, device):
    """Channels whose variance overflows change nothing in the others. Their running variance is infinite."""
    rng = torch.Generator().manual_seed(0)
    x = (torch.rand(16, 40, generator=rng, dtype=torch.float64) * 2 - 1) * 10.0 ** torch.arange(-2, 38)
    x = x.reshape(-1, 2, 40).movedim(1, 2) if layout == (8, 40, 2) else x.reshape(layout)
    results = []
    for dtype, where in ((torch.float64, "cpu"), (torch.float32, device)):
        given, weight = x.to(where, dtype).contiguous().requires_grad_(), torch.ones(40, dtype=dtype, device=where)
        mean, var = torch.zeros(40, dtype=dtype, device=where), torch.zeros(40, dtype=dtype, device=where)
        out = F.batch_norm(given, mean, var, weight.requires_grad_(), None, True)
        upstream = torch.linspace(-1, 1, 640).sin().reshape(layout).to(where, dtype)
        results.append(
            [t.detach().cpu().double() for t in (out, mean, var, *torch.autograd.grad(out, (given, weight), upstream))]
        )
    for found, expected in zip(results[1], results[0], strict=True):
        dims = [d for d in range(expected.ndim) if d != 1] if expected.ndim > 1 else []
        largest = expected.abs().amax(dims, keepdim=True) if dims else expected.abs()
        fits = (largest < 1e37).expand(expected.shape)
        assert torch.isinf(found[(largest > 1e39).expand(expected.shape)]).all()
        torch.testing.assert_close((found / largest)[fits], (expected / largest)[fits], rtol=0, atol=1e-4)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_norms_of_numbers_that_are_none(bad, device):
    x = torch.full((3, 8), 1e20, device=device)
    x[0, 1], x[1, 2] = -1e20, bad
    out = F.layer_norm(x, (8,))
    assert out[0].isfinite().all() and out[0, 1] < -2 and out[1].isnan().all() and (out[2] == 0).all()


def test_layer_norm_of_large_float64():
    x = torch.tensor([[1e200, -1e200, 3e200]], dtype=torch.float64, requires_grad=True)
    out = F.layer_norm(x, (3,))
    torch.testing.assert_close(out, F.layer_norm(x / 1e200, (3,), eps=0.0))
    out[0, 0].backward()
    small = (x.detach() / 1e200).requires_grad_()
    F.layer_norm(small, (3,), eps=0.0)[0, 0].backward()
    torch.testing.assert_close(x.grad * 1e200, small.grad)


def _parts_of(norm, x, weight, bias, factors, size):
    """Values, first and second derivatives and the tangent of a norm, all about 1 in size."""
    out = norm(x, weight, bias)
    wanted = (x, weight, bias)
    firsts = torch.autograd.grad((out * factors[0]).sum(), wanted, create_graph=True, allow_unused=True)
    firsts = [None if g is None else g * size if t is x else g for t, g in zip(wanted, firsts, strict=True)]
    total = sum((g * f).sum() for g, f in zip(firsts, factors[1:], strict=True) if g is not None)
    seconds = torch.autograd.grad(total, wanted, allow_unused=True)
    seconds = [None if g is None else g * size if t is x else g for t, g in zip(wanted, seconds, strict=True)]
    arguments = [t.detach() for t in wanted]
    directions = [f * size if t is x else f for t, f in zip(wanted, factors[1:], strict=True)]
    tangent = torch.func.jvp(norm, tuple(arguments), tuple(directions))[1]
    return {"value": out, "first": firsts, "second": seconds, "tangent": tangent}


def _blocks(x):
    return x.reshape(x.shape[0], 4, -1)


LARGE_NORMS = {
    "layer_norm": lambda x, w, b: F.layer_norm(x, x.shape[1:], w.repeat(6), b.repeat(6)),
    "native_layer_norm": lambda x, w, b: torch.native_layer_norm(x, x.shape[1:], w.repeat(6), b.repeat(6), 1e-5)[0],
    "rms_norm": lambda x, w, b: F.rms_norm(x, x.shape[1:], w.repeat(6)) + b[0],
    "group_norm": lambda x, w, b: F.group_norm(_blocks(x), 2, w, b),
    "native_group_norm": lambda x, w, b: torch.native_group_norm(_blocks(x), w, b, x.shape[0], 4, 6, 2, 1e-5)[0],
    "instance_norm": lambda x, w, b: F.instance_norm(_blocks(x), None, None, w, b),
    "batch_norm": lambda x, w, b: F.batch_norm(_blocks(x), None, None, w, b, True),
    "native_batch_norm": lambda x, w, b: torch.native_batch_norm(_blocks(x), w, b, None, None, True, 0.1, 1e-5)[0],
}


@pytest.mark.parametrize("size", [1.0, 1e10, 1e18, 1e25, 1e35])
@pytest.mark.parametrize("name", LARGE_NORMS)
def test_second_derivatives_of_norms_of_large_elements(name, size, device):
    """They are those of float64. The composites of the norms compute them, and the tangents."""
    rng = torch.Generator().manual_seed(0)
    x = (torch.rand(5, 24, generator=rng, dtype=torch.float64) * 2 - 1) * size
    x[0] += 0.5 * size  # a mean that is far from 0
    given = (x, torch.rand(4, generator=rng) + 0.5, torch.rand(4, generator=rng))
    shape = LARGE_NORMS[name](*given).shape
    factors = [torch.rand(s, generator=rng) - 0.5 for s in (shape, x.shape, (4,), (4,))]
    results = []
    for dtype, where in ((torch.float64, "cpu"), (torch.float32, device)):
        inputs = [t.to(where, dtype).requires_grad_() for t in given]
        results.append(_parts_of(LARGE_NORMS[name], *inputs, [f.to(where, dtype) for f in factors], size))
    for part, expected in results[0].items():
        found = results[1][part]
        for one, wanted in zip(*([v] if isinstance(v, torch.Tensor) else v for v in (found, expected)), strict=True):
            assert (one is None) == (wanted is None)
            if wanted is not None:
                largest = max(wanted.abs().max().item(), 1e-30)
                one, wanted = one.detach().cpu().double() / largest, wanted.detach() / largest
                torch.testing.assert_close(one, wanted, rtol=0, atol=2e-5, msg=lambda m: f"{part}: {m}")


def test_statistics_of_large_elements(device):
    x = torch.tensor([[1e20, -1e20, 3e20], [1e20, 1e20, 1e20]], device=device)
    out, mean, rstd = torch.native_layer_norm(x, (3,), None, None, 1e-5)
    assert mean[:, 0].tolist() == pytest.approx([1e20, 1e20]) and rstd[0].item() == pytest.approx(6.1237e-21, rel=1e-4)
    assert out[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (16, 40, 30)])
@pytest.mark.parametrize("size", [1, 300, 10000])
def test_batch_norm_of_a_variance_beyond_float16(shape, size, device):
    rng = torch.Generator().manual_seed(0)
    x = (torch.randn(shape, generator=rng) * size).clamp(-6e4, 6e4).half()
    upstream = torch.randn(shape, generator=rng).half()
    results = []
    for dtype, where in ((torch.float64, "cpu"), (torch.float16, device)):
        given = x.to(where, dtype).requires_grad_()
        weight = torch.ones(shape[1], dtype=dtype, device=where, requires_grad=True)
        out = F.batch_norm(given, None, None, weight, None, True)
        found = torch.autograd.grad((out * upstream.to(where, dtype)).sum(), (given, weight))
        results.append([t.detach().cpu().double() for t in (out, *found)])
    for found, expected in zip(*results[::-1], strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=5e-3 * expected.abs().max().item())


@pytest.mark.parametrize("name", [name for name in LARGE_NORMS if name != "rms_norm"])
def test_second_derivatives_of_norms_in_half_precision(name, device):
    """Squares overflow in float16, in which nothing is computed."""
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(5, 24, generator=rng, dtype=torch.float64) * 2000 - 1000
    results = []
    for dtype, where in ((torch.float64, "cpu"), (torch.float16, device)):
        given = x.half().to(where, dtype).requires_grad_()
        ones = torch.ones(4, dtype=dtype, device=where)
        out = LARGE_NORMS[name](given, ones, ones)
        weights = torch.arange(out.numel(), device=where).reshape(out.shape).to(dtype) % 7 - 3
        (first,) = torch.autograd.grad((out * weights).sum(), given, create_graph=True)
        factors = torch.arange(120, device=where).reshape(5, 24).to(dtype) % 5 - 2
        (second,) = torch.autograd.grad((first * 1000 * factors).sum(), given)
        results.append([t.detach().cpu().double() for t in (first, second)])
    for found, expected in zip(*results[::-1], strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-2 * expected.abs().max().item())
