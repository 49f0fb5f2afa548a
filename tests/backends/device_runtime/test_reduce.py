"""Reductions and scans of OpenCL devices against those of the CPU: every way memory can lie, long ones in parts, the
forms for GPUs, special values.
"""

import math

import numpy as np
import pytest

import torchlite as torch

REAL = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8, torch.bool,
]  # fmt: skip
# (shape, dimensions): few and many elements an output, side by side and apart, several dimensions, an odd end
SHAPES = [
    ((), None), ((1,), 0), ((5,), None), ((37, 5), 0), ((37, 5), 1), ((3, 4, 5, 6), (0, 2)), ((3, 4, 5, 6), (1, 3)),
    ((2, 3, 2, 3, 2, 3, 2), (1, 3, 5)),
]  # fmt: skip
LARGE = [
    ((70, 300), 1), ((300, 100), 0), ((70, 300), 0), ((70, 19), 0), ((5000, 17), 0), ((3, 40000), 1), ((100003,), None),
    ((4, 6, 50, 40), (0, 2, 3)), ((4, 6, 50, 40), 1), ((2, 3000, 20), 1),
]  # fmt: skip
OVER_SEVERAL = ("sum", "mean", "amax", "amin", "any", "all", "count_nonzero", "var", "std", "logsumexp")
OVER_ONE = ("prod", "argmax", "argmin", "max", "min")
SCANS = ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")


def draw(rng, shape, dtype):
    values = np.asarray(rng.standard_normal(shape) * 3)
    if dtype.is_complex:
        values = values + 1j * rng.standard_normal(shape)
    elif dtype is torch.uint8:
        values = abs(values)
    return torch.from_numpy(np.asarray(values.astype(dtype.np if dtype is not torch.bfloat16 else np.float32))).to(
        dtype
    )


def exact(x):
    """A CPU tensor in a precision in which the order of additions does not matter."""
    return x.to(torch.float64) if x.dtype.is_floating_point else x.to(torch.complex128) if x.dtype.is_complex else x


def check(name, x, device, *args, **options):
    """A function's results on the device are those of double precision on the CPU, in the dtypes that the CPU gives."""
    function = getattr(torch, name)
    kinds = function(x, *args, **options)
    want, have = function(exact(x), *args, **options), function(x.to(device), *args, **options)
    several = isinstance(want, tuple)
    for kind, w, h in zip(
        kinds if several else [kinds], want if several else [want], have if several else [have], strict=True
    ):
        assert h.dtype is kind.dtype and h.shape == kind.shape
        tolerance = {torch.float16: 4e-3, torch.bfloat16: 2e-2, torch.float32: 2e-5, torch.complex64: 2e-5}.get(
            h.dtype, 1e-10
        )
        w, h = w.to(h.dtype), h.cpu()
        if h.dtype is torch.bfloat16:
            w, h = w.to(torch.float32), h.to(torch.float32)
        terms = x.numel() / max(w.numel(), 1) if w.shape != x.shape else max(x.numel(), 1)
        np.testing.assert_allclose(
            h.numpy(),
            w.numpy(),
            rtol=tolerance,
            atol=tolerance * math.sqrt(terms),
            err_msg=f"{name} {tuple(x.shape)} {x.dtype} {args}",
        )


@pytest.mark.parametrize("shape,dim", SHAPES)
def test_small(any_form, rng, shape, dim):
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
        x = draw(rng, shape, dtype)
        for name in OVER_SEVERAL:
            if (
                name in ("amax", "amin", "logsumexp")
                and dtype.is_complex
                or name in ("mean", "var", "std", "logsumexp")
                and not (dtype.is_floating_point or dtype.is_complex)
            ):
                continue
            if name == "logsumexp" and dim is None or name in ("var", "std") and x.numel() < 2:
                continue
            check(name, x, any_form, *(() if dim is None else (dim,)))
        for name in OVER_ONE:
            if (
                isinstance(dim, tuple)
                or dtype.is_complex
                and name != "prod"
                or dtype is torch.bool
                and name.startswith("arg")
            ):
                continue
            check(name, x, any_form, *(() if dim is None else (dim,)))


@pytest.mark.parametrize("shape,dim", LARGE)
def test_large(any_form, rng, shape, dim):
    """The layouts that are read as vectors or shared by a work-group, and splitting into parts."""
    x = draw(rng, shape, torch.float32)
    for name in OVER_SEVERAL:
        if name != "logsumexp" or dim is not None:
            check(name, x, any_form, *(() if dim is None else (dim,)))
    for name in OVER_ONE:
        if not isinstance(dim, tuple) and name != "prod":
            check(name, x, any_form, *(() if dim is None else (dim,)))
    y = torch.exp(x / 1000)
    if not isinstance(dim, tuple):
        check("prod", y, any_form, *(() if dim is None else (dim,)))


@pytest.mark.parametrize("dtype", REAL)
def test_vectors_of_every_dtype(opencl, rng, dtype):
    for shape, dim in (((70, 300), 1), ((70, 300), 0), ((100, 333), None)):
        x = draw(rng, shape, dtype)
        for name in ("sum", "amax", "any", "count_nonzero"):
            check(name, x, opencl, *(() if dim is None else (dim,)))
        if dtype is not torch.bool:
            check("argmax", x, opencl, dim)
        if dtype.is_floating_point:
            check("std", x, opencl, *(() if dim is None else (dim,)))


VIEWS = [
    lambda x: x.t(),
    lambda x: x[::2, 1:],
    lambda x: x[:, None].expand(-1, 7, -1),
    lambda x: x.reshape(20, 4, 3, 50).permute(2, 0, 3, 1),
    lambda x: x[3],
]


@pytest.mark.parametrize("view", VIEWS)
def test_views(opencl, rng, view):
    x = view(draw(rng, (80, 150), torch.float32))
    for dim in (None, 0, -1):
        for name in ("sum", "argmin", "var", "amax"):
            have, want = (getattr(torch, name)(y, *(() if dim is None else (dim,))) for y in (view_on(x, opencl), x))
            np.testing.assert_allclose(have.cpu().numpy(), want.numpy(), rtol=1e-4, atol=1e-3)


def view_on(x, device):
    """The same view, of the same memory layout, on the device."""
    base = x._tl_array
    steps = tuple(s // base.itemsize for s in base.strides)
    whole = np.lib.stride_tricks.as_strided(
        base, (1 + sum((n - 1) * s for n, s in zip(base.shape, steps, strict=True)),), (base.itemsize,)
    )
    return torch.from_numpy(whole.copy()).to(device).as_strided(base.shape, steps)


def test_dtype_argument(opencl):
    x = torch.tensor([[1.6, -2.7], [250.0, 3.0]])
    for dtype in (torch.float64, torch.int64, torch.complex64):
        for name in ("sum", "prod"):
            want, have = (getattr(torch, name)(y, 0, dtype=dtype) for y in (x, x.to(opencl)))
            assert have.dtype is want.dtype and torch.equal(have.cpu(), want)
    assert torch.mean(torch.tensor([1, 2], device=opencl), dtype=torch.float32).item() == 1.5
    with pytest.raises(RuntimeError, match="could not infer output dtype.*Got: Long"):
        torch.mean(torch.tensor([1, 2], device=opencl))


def test_nan_wins_and_the_first_of_equals_is_taken(any_form):
    nan = math.nan
    x = torch.tensor([[1.0, nan, 3.0, nan], [2.0, 5.0, 5.0, -1.0], [-math.inf] * 4, [0.0, -0.0, 0.0, -0.0]]).to(
        any_form
    )
    values, places = x.max(1)
    np.testing.assert_array_equal(values.cpu().numpy(), [nan, 5, -math.inf, 0])
    assert places.tolist() == [1, 1, 0, 0] and x.min(1)[1].tolist() == [1, 3, 0, 0]
    assert x.argmax(1).tolist() == [1, 1, 0, 0] and x.argmax().item() == 1
    wide = torch.zeros(3, 5000)
    wide[1, 4321] = wide[1, 17] = nan
    wide[2, 4000] = wide[2, 4500] = 2.0
    assert wide.to(any_form).argmax(1).tolist() == [0, 17, 4000] and wide.to(any_form).t().contiguous().argmax(
        0
    ).tolist() == [0, 17, 4000]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_nothing_to_reduce(opencl):
    x = torch.zeros(3, 0, 2, device=opencl)
    assert (
        x.sum(1).tolist() == [[0.0, 0.0]] * 3
        and x.prod(1).tolist() == [[1.0, 1.0]] * 3
        and x.all(1).cpu().all()
        and not x.any(1).cpu().any()
    )
    assert (
        torch.isnan(x.mean()).item()
        and torch.isnan(x.var(1)).cpu().all()
        and x.logsumexp(1).tolist() == [[-math.inf] * 2] * 3
    )
    assert x.sum(0).shape == (0, 2) and x.amax(0).shape == (0, 2)
    with pytest.raises(IndexError, match=r"amax\(\): Expected reduction dim 1 to have non-zero size"):
        x.amax(1)
    with pytest.raises(IndexError, match=r"max\(\): Expected reduction dim 1 to have non-zero size"):
        x.max(1)
    with pytest.raises(RuntimeError, match="numel.. == 0. Specify the reduction dim"):
        x.amin()


def test_long_sums_keep_their_precision(opencl):
    x = torch.full((1 << 20,), 0.1, device=opencl)
    exact_sum = float(np.float32(0.1)) * (1 << 20)
    assert abs(x.sum().item() - exact_sum) < 4e-6 * exact_sum
    assert abs(x.view(-1, 64).sum(0).sum().item() - exact_sum) < 4e-6 * exact_sum
    assert torch.full((5000,), 0.1, dtype=torch.float16, device=opencl).sum().item() == pytest.approx(500, rel=1e-3)
    far = torch.arange(1000.0).to(opencl) + 1e6
    assert far.var().item() == pytest.approx(83416.67, rel=1e-4)


def test_large_exponents(any_form):
    x = torch.tensor([[1000.0, 1000.0], [-math.inf, -math.inf], [math.inf, 0.0], [-1000.0, -1001.0]])
    np.testing.assert_allclose(x.to(any_form).logsumexp(1).cpu().numpy(), x.logsumexp(1).numpy(), rtol=1e-6)


SCANNED = [
    ((), 0), ((7,), 0), ((3, 40), 1), ((5, 17, 6), 1), ((70, 300), 0), ((70, 300), 1), ((4, 30, 20), 1), ((50000,), 0),
    ((20000, 3), 0), ((2, 30000), 1), ((40, 100), 0), ((700, 300), 0), ((4, 0), 1),
]  # fmt: skip


@pytest.mark.parametrize("shape,dim", SCANNED)
def test_scans(any_form, rng, shape, dim):
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int16, torch.bool, torch.complex64):
        x = draw(rng, shape, dtype)
        for name in SCANS:
            if (
                name in ("cummax", "cummin")
                and dtype.is_complex
                or name == "logcumsumexp"
                and not (dtype.is_floating_point or dtype.is_complex)
            ):
                continue
            if x.numel() > 5000 and (dtype not in (torch.float32, torch.bool)):
                continue
            scaled = torch.exp(x / 1000) if name == "cumprod" and (dtype.is_floating_point or dtype.is_complex) else x
            check(name, scaled.to(dtype), any_form, dim)


def test_running_extremes_take_the_last_of_equals_and_keep_nan(any_form):
    x = torch.tensor([3.0, 1.0, 3.0, math.nan, 5.0, math.nan, 7.0] + [0.0] * 20)
    for name in ("cummax", "cummin"):
        want, have = getattr(torch, name)(x, 0), getattr(torch, name)(x.to(any_form), 0)
        np.testing.assert_array_equal(have[0].cpu().numpy(), want[0].numpy())
        assert have[1].tolist() == want[1].tolist()


def test_recurrence_of_products_does_not_overflow_early(opencl):
    x = torch.tensor([0.0, 1e30, 1e30, 1e30] * 8)
    assert torch.equal(x.to(opencl).cumprod(0).cpu(), x.cumprod(0))


def test_gradients_of_scans(opencl, rng):
    x = torch.from_numpy(rng.standard_normal((3, 40))).to(opencl).requires_grad_()
    y = torch.from_numpy(x.detach().cpu().numpy()).requires_grad_()
    for name in ("cumsum", "cumprod", "logcumsumexp"):
        gx, gy = (torch.autograd.grad((getattr(torch, name)(t, 1) ** 2).sum(), t)[0] for t in (x, y))
        np.testing.assert_allclose(gx.cpu().numpy(), gy.numpy(), rtol=1e-8, atol=1e-8)
