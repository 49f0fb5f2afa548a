"""Sums, means, variances, norms, products and normalization of long rows and of very large or small elements."""

import math

import numpy as np
import pytest

import torchlite as torch
import torchlite.nn.functional as F

LONG = 1_000_003
# Units in the last place of float32.
ULP = 2.0**-23


def numbers(*shape, scale=1.0, offset=0.0, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale + offset).astype(np.float32)


def positive(*shape, seed=0):
    return np.random.default_rng(seed).random(shape, np.float32)


def assert_close(found, right, ulps):
    """The greatest error is at most so many units in the last place of the greatest number."""
    found, right = np.asarray(found.detach().cpu().double()), np.asarray(right)
    assert found.shape == right.shape
    assert np.abs(found - right).max() <= ulps * ULP * np.abs(right).max()


# --- variance ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e18, 1e-23, 1e30])
def test_deviation_whose_square_leaves_the_range(device, scale):
    x = numbers(1000, scale=scale)
    right = x.astype(np.float64).std(ddof=1)
    assert_close(torch.tensor(x, device=device).std(), right, 2)


@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
@pytest.mark.parametrize("scale", [1e18, 1e-23])
def test_deviation_along_dims(device, scale, dim):
    x = numbers(40, 30, scale=scale)
    std, mean = torch.std_mean(torch.tensor(x, device=device), dim)
    assert_close(std, x.astype(np.float64).std(dim, ddof=1), 2)
    assert_close(mean, x.astype(np.float64).mean(dim), 3)


@pytest.mark.parametrize("scale", [1e18, 1e-18])
def test_variance_that_fits(device, scale):
    x = numbers(50, 200, scale=scale)
    assert_close(torch.tensor(x, device=device).var(1), x.astype(np.float64).var(1, ddof=1), 2)


@pytest.mark.parametrize("value", [1e8, 0.1, -3e-20])
@pytest.mark.parametrize("shape", [(LONG,), (3, 1001)])
def test_variance_of_equal_numbers_is_zero(device, value, shape):
    x = torch.full(shape, value, device=device)
    assert x.var().item() == 0 and x.std(-1).max().item() == 0


def test_variance_about_a_large_mean(device):
    x = (np.arange(LONG) % 2 * 16 + 1e8).astype(np.float32)
    assert_close(torch.tensor(x, device=device).var(), x.astype(np.float64).var(ddof=1), 2)


@pytest.mark.parametrize("scale", [1e18, 1e-23])
def test_gradient_of_deviation(device, scale):
    x = numbers(1000, scale=scale)
    t = torch.tensor(x, device=device, requires_grad=True)
    t.std().backward()
    wide = x.astype(np.float64)
    assert_close(t.grad, (wide - wide.mean()) / (999 * wide.std(ddof=1)), 8)


def test_second_derivative_of_deviation(device):
    x = np.array([1e19, 2e19, -2e19], np.float32)
    t = torch.tensor(x, device=device, requires_grad=True)
    (grad,) = torch.autograd.grad(t.std(), t, create_graph=True)
    (second,) = torch.autograd.grad((grad * torch.tensor([1.0, 2.0, 3.0], device=device)).sum(), t)
    assert np.allclose(second.cpu().numpy(), [-1.8476325e-20, 1.3857244e-20, 4.619081e-21], rtol=1e-5, atol=0)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_deviation_of_float64_is_scaled(scale):
    x = np.random.default_rng(0).standard_normal((3, 100)) * scale
    found = torch.tensor(x).std(1).numpy()
    assert np.allclose(found / scale, (x / scale).std(1, ddof=1), rtol=1e-14)
    assert torch.tensor([1.0, math.inf]).double().std().isnan()


# --- sums -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape,dim", [((LONG,), 0), ((3, 300_001), 1), ((300_001, 3), 0), ((20_000, 40), 0)])
def test_sum_and_mean_of_many_elements(device, shape, dim):
    x = positive(*shape)
    t, wide = torch.tensor(x, device=device), x.astype(np.float64)
    assert_close(t.sum(dim), wide.sum(dim), 1)
    assert_close(t.mean(dim), wide.mean(dim), 1)


def test_mean_over_the_outer_dims(device):
    x = positive(2000, 3, 100)
    assert_close(torch.tensor(x, device=device).mean((0, 2)), x.astype(np.float64).mean((0, 2)), 1)


def test_cumulative_sum_rounds_once(device):
    x = positive(LONG)
    right = np.cumsum(x, dtype=np.float64)
    found = torch.tensor(x, device=device).cumsum(0).cpu().numpy()
    assert np.abs(found / right - 1).max() <= ULP / 2 * 1.01


@pytest.mark.parametrize("shape,dim", [((30_000, 3), 0), ((3, 7001), 1), ((9, 7), 0)])
def test_cumulative_sum_along_dims(device, shape, dim):
    x = positive(*shape)
    assert_close(torch.tensor(x, device=device).cumsum(dim), np.cumsum(x, dim, dtype=np.float64), 0.51)


# --- norms and products -----------------------------------------------------------------------------


def test_norm_and_dot_of_many_elements(device):
    t = torch.full((10_000_000,), 1e-3, device=device)
    value = float(np.float32(1e-3))
    assert math.isclose(t.norm().item(), value * math.sqrt(1e7), rel_tol=2 * ULP)
    for found in (torch.dot(t, t), torch.vdot(t, t), t @ t):
        assert math.isclose(found.item(), value * value * 1e7, rel_tol=2 * ULP)


@pytest.mark.parametrize("scale", [1e19, 1e-30])
@pytest.mark.parametrize("ord", [1, 2, 3, 2.5, -1, math.inf])
def test_norm_of_large_and_small_elements(device, scale, ord):
    x = numbers(7, 5, scale=scale)
    found = torch.linalg.vector_norm(torch.tensor(x, device=device), ord, dim=1)
    right = np.linalg.norm(x.astype(np.float64) / scale, ord, axis=1) * scale
    assert_close(found, right, 8)


@pytest.mark.parametrize("scale", [1e19, 1e-30])
def test_norms_made_of_the_vector_norm(device, scale):
    x = torch.tensor([[1.0, 2.0, -2.0]], device=device) * scale
    for found in (
        torch.linalg.matrix_norm(x),
        torch.norm_except_dim(x).reshape(()),
        torch.dist(x, torch.zeros_like(x)),
        torch.pdist(torch.cat([x, x * 0])).reshape(()),
        torch.cdist(x, x * 0).reshape(()),
        F.pairwise_distance(x, x * 0, eps=0).reshape(()),
    ):
        assert math.isclose(found.item() / scale, 3, rel_tol=1e-6)


def test_normalize_and_cosine_of_large_elements(device):
    x = torch.tensor([[1e19, 2e19, -2e19]], device=device)
    assert np.allclose(F.normalize(x).cpu(), [[1 / 3, 2 / 3, -2 / 3]])
    assert F.cosine_similarity(x, 2 * x).item() == pytest.approx(1)
    assert np.allclose(torch.renorm(x, 2, 0, 1.0).cpu(), [[1 / 3, 2 / 3, -2 / 3]])


@pytest.mark.parametrize("scale", [1e19, 1e-30])
def test_clipping_of_large_and_small_gradients(device, scale):
    weights = [torch.nn.Parameter(torch.zeros(3, device=device)) for _ in range(2)]
    for weight in weights:
        weight.grad = torch.tensor([1.0, 2.0, -2.0], device=device) * scale
    total = torch.nn.utils.clip_grad_norm_(weights, scale)
    assert total.item() / scale == pytest.approx(3 * math.sqrt(2), rel=1e-6)
    if scale > 1:  # PyTorch adds 1e-6 to the norm
        assert weights[0].grad[0].item() / scale == pytest.approx(1 / (3 * math.sqrt(2)), rel=1e-5)


def test_gradient_of_the_norm_of_large_elements(device):
    t = torch.tensor([1e19, 2e19, -2e19], device=device, requires_grad=True)
    (grad,) = torch.autograd.grad(t.norm(), t, create_graph=True)
    assert np.allclose(grad.detach().cpu(), [1 / 3, 2 / 3, -2 / 3])
    (second,) = torch.autograd.grad((grad * torch.tensor([1.0, 2.0, 3.0], device=device)).sum(), t)
    assert np.allclose(second.cpu().numpy(), np.array([10, 20, 25]) / 27e19, rtol=1e-5, atol=0)


@pytest.mark.parametrize("value", [0.0, math.inf, math.nan])
def test_norm_of_what_has_no_scale(device, value):
    x = torch.tensor([[1.0, value], [value, value]], device=device)
    for ord in (1, 2, 3):
        right = np.linalg.norm(x.cpu().numpy(), ord, axis=1)
        assert np.allclose(torch.linalg.vector_norm(x, ord, 1).cpu(), right, equal_nan=True)


def test_dot_of_terms_that_cancel():
    x = torch.tensor([1e20, 1e20])
    assert torch.dot(x, torch.tensor([1e20, -1e20])).item() == 0
    assert torch.dot(x, x).item() == math.inf


@pytest.mark.parametrize("offset", [0, 1000])
@pytest.mark.parametrize("width", [2, 40])
def test_distances_of_rows_with_an_offset(device, offset, width):
    x, y = numbers(60, width, offset=offset), numbers(50, width, offset=offset, seed=1)
    y[:10] = x[:10]
    right = np.sqrt(((x[:, None].astype(np.float64) - y) ** 2).sum(-1))
    found = torch.cdist(torch.tensor(x, device=device), torch.tensor(y, device=device)).cpu().numpy()
    assert (found[right == 0] == 0).all()
    assert np.abs(found - right)[right > 0].max() <= 8 * ULP * right.max()
    assert np.abs(found[right > 0] / right[right > 0] - 1).max() <= 16 * ULP


def test_gradient_of_distances_with_an_offset(device):
    x, y = numbers(60, 3, offset=1000), numbers(50, 3, offset=1000, seed=1)
    a, b = (torch.tensor(v, device=device, requires_grad=True) for v in (x, y))
    torch.cdist(a, b).sum().backward()
    difference = x[:, None].astype(np.float64) - y
    unit = difference / np.sqrt((difference**2).sum(-1, keepdims=True))
    assert_close(a.grad, unit.sum(1), 64)
    assert_close(b.grad, -unit.sum(0), 64)


# --- softmax and normalization ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 2), (200, 2), (3, 70_000)])
def test_log_softmax_of_one_dominant_element(device, shape):
    x = torch.full(shape, -math.inf, device=device)
    x[:, 1] = 1.0
    found = torch.log_softmax(x, 1)
    assert (found[:, 1] == 0).all() and (found[:, 0] == -math.inf).all()
    assert (torch.logsumexp(x, 1) == 1).all()
    target = torch.ones(shape[0], dtype=torch.int64, device=device)
    assert F.cross_entropy(x, target).item() == 0
    assert (torch.log_softmax(x.T, 0)[1] == 0).all()


def test_loss_of_a_certain_class(device):
    x = torch.tensor([[20.0, 11.0, 10.0], [0.0, 30.0, 10.0]], device=device)
    found = F.cross_entropy(x, torch.tensor([0, 1], device=device), reduction="none")
    assert np.allclose(found.cpu(), [1.6879706e-4, 2.0611537e-9], rtol=1e-3, atol=1e-8)


@pytest.mark.parametrize("offset", [0, 10])
def test_layer_norm_of_a_long_row(device, offset):
    x = numbers(2, LONG, offset=offset)
    wide = x.astype(np.float64)
    right = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    t = torch.tensor(x, device=device)
    assert_close(F.layer_norm(t, (LONG,)), right, 2 + offset / 4)
    assert_close(F.group_norm(t.reshape(1, 2, -1), 2)[0], right, 2 + offset / 4)
    assert_close(F.instance_norm(t.reshape(1, 2, -1))[0], right, 2 + offset / 4)
    if not offset:
        assert_close(F.rms_norm(t, (LONG,)), wide / np.sqrt((wide**2).mean(1, keepdims=True)), 2)


@pytest.mark.parametrize("shape", [(300_001, 3), (2, 3, 100_001)])
def test_batch_norm_statistics_of_many_elements(device, shape):
    x = positive(*shape)
    dims = (0, *range(2, len(shape)))
    norm = torch.nn.BatchNorm1d(3, momentum=1.0, device=device)
    norm(torch.tensor(x, device=device))
    wide = x.astype(np.float64)
    assert_close(norm.running_mean, wide.mean(dims), 2)
    assert_close(norm.running_var, wide.var(dims, ddof=1), 3)


def test_gradients_of_the_norms_over_many_rows(device):
    x, g = positive(100_001, 4), positive(100_001, 4, seed=1)
    t = torch.tensor(x, device=device)
    norm = torch.nn.LayerNorm(4, device=device)
    norm(t).backward(torch.tensor(g, device=device))
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    assert_close(norm.bias.grad, g.astype(np.float64).sum(0), 4)
    assert (
        np.abs(norm.weight.grad.cpu().numpy() - (normal * g).sum(0)).max() <= 16 * ULP * np.abs(normal * g).sum(0).max()
    )


def test_softmax_of_a_long_row(device):
    x = numbers(LONG)
    wide = np.exp(x.astype(np.float64))
    found = torch.softmax(torch.tensor(x, device=device), 0).cpu().numpy()
    assert np.abs(found / (wide / wide.sum()) - 1).max() <= 8 * ULP


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "cumsum", "cumprod"])
def test_a_real_dtype_takes_the_real_parts(reduce, device):
    x = torch.tensor([1 + 1j, 2j, 3 + 0j], device=device)
    found = getattr(torch, reduce)(x, 0, dtype=torch.float32)  # without NumPy's warning
    assert found.dtype is torch.float32
    assert found.tolist() == getattr(torch, reduce)(x.real, 0).tolist()
    if reduce != "mean":
        out = torch.empty_like(found)
        assert getattr(torch, reduce)(x, 0, out=out).tolist() == found.tolist()


def test_sums_without_nan(device):
    x = torch.from_numpy(numbers(300, 400)).to(device)
    assert_close(torch.nansum(x), x.cpu().double().sum(), 4)
    with_nan = x.clone()
    with_nan[::7, 3] = math.nan
    right = np.nansum(np.asarray(with_nan.cpu().double()), 1)
    assert_close(torch.nansum(with_nan, 1), right, 4)
    assert torch.nansum(torch.full((9,), math.nan, device=device)) == 0
    assert torch.nansum(torch.zeros(0, device=device)) == 0
    infinite = torch.tensor([math.inf, -math.inf, math.nan], device=device)
    assert torch.nansum(infinite).isnan() and torch.nansum(infinite[::2]) == math.inf
    assert torch.nansum(torch.tensor([1.5, math.nan], device=device), dtype=torch.int64) == 1
    for dtype in (torch.float16, torch.bfloat16):
        assert torch.nansum(torch.tensor([1.5, math.nan, 2], dtype=dtype, device=device)) == 3.5
    leaf = torch.tensor([1.0, math.nan], device=device, requires_grad=True)
    torch.nansum(leaf).backward()
    assert leaf.grad.tolist() == [1.0, 0.0]


def test_traces(device):
    x = torch.from_numpy(numbers(300, 200)).to(device)
    assert_close(torch.trace(x), np.trace(np.asarray(x.cpu().double())), 4)
    assert_close(torch.trace(x.t()), np.trace(np.asarray(x.cpu().double())), 4)
    assert torch.trace(torch.ones(3, 4, dtype=torch.uint8, device=device)).dtype == torch.int64
    assert torch.trace(torch.ones(0, 4, device=device)) == 0
    with pytest.raises(RuntimeError, match="expected a matrix, but got tensor with dim 3"):
        torch.trace(torch.ones(2, 2, 2, device=device))


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_long_bags(device, mode, dtype):
    weight = torch.from_numpy(numbers(50, 24)).to(device).to(dtype).requires_grad_()
    index = torch.from_numpy(np.random.default_rng(2).integers(0, 50, (30, 200))).to(device)
    wide = weight.detach().cpu().double()[index.cpu()]
    right = wide.sum(1) if mode == "sum" else wide.mean(1)
    found = F.embedding_bag(index, weight, mode=mode)
    assert found.dtype == dtype
    slack = 8 if dtype is not torch.float16 else 2**13
    assert_close(found, right, slack)
    found.sum().backward()
    counts = np.bincount(np.asarray(index.cpu()).ravel(), minlength=50) / (1 if mode == "sum" else 200)
    assert_close(weight.grad[:, 0], counts, slack)


def test_losses_of_classes_leave_out_what_is_ignored(device):
    x = torch.tensor([[-1.0, -math.inf], [-3.0, -4.0]], device=device, requires_grad=True)
    target = torch.tensor([1, 0], device=device)
    assert F.nll_loss(x, target, ignore_index=1) == 3
    F.nll_loss(x, target, ignore_index=1).backward()
    assert x.grad.tolist() == [[0, 0], [-1, 0]]
    assert F.nll_loss(x, target, reduction="none").tolist() == [math.inf, 3]
    assert F.nll_loss(x[:0], target[:0]).isnan() and F.nll_loss(x[:0], target[:0], reduction="sum") == 0
    pixels = torch.arange(24.0, device=device).reshape(2, 3, 4)
    places = torch.tensor([[0, 1, 2, 0], [2, 2, -100, 1]], device=device)
    assert F.nll_loss(pixels, places, reduction="none").tolist() == [[0, -5, -10, -3], [-20, -21, 0, -19]]
    assert F.nll_loss(pixels.bfloat16(), places, reduction="sum") == -78


@pytest.mark.parametrize("shape", [(99_999,), (3, 33_001), (1 << 17,), (8192,)])
def test_long_products(device, shape):
    x = torch.full(shape, 1.0, device=device)
    x.view(-1)[:: shape[-1] // 20] = -1.25
    x.view(-1)[-1] = 0.5
    found = torch.prod(x, -1).double().cpu().reshape(-1)
    rows = x.double().cpu().reshape(-1, shape[-1]).numpy()
    assert found.tolist() == pytest.approx(rows.prod(1).tolist(), rel=1e-6)
    if len(shape) == 1:
        assert x.prod().item() == pytest.approx(rows.prod(), rel=1e-6)
        assert torch.where(x == 0.5, torch.nan, x).prod().isnan()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32])
@pytest.mark.parametrize("count", [1, 2, 9, 10])
def test_medians_of_all_elements(device, dtype, count):
    x = torch.tensor([7, 3, 9, 1, 1, 8, 2, 5, 4, 6][:count], device=device).to(dtype)
    median = sorted(x.tolist())[(count - 1) // 2]
    assert x.median() == median == x.nanmedian() and x.median().dtype is dtype is x.nanmedian().dtype
    if dtype.is_floating_point:
        y = torch.cat([x.new_full((2,), torch.nan), x, x.new_full((1,), torch.nan)]).reshape(1, -1)
        assert y.median().isnan() and y.nanmedian() == median
        nan = x * torch.nan
        assert nan.nanmedian().isnan() and nan.median().isnan() and x[:0].nanmedian().isnan()


@pytest.mark.parametrize("keywords", [{}, {"scale_grad_by_freq": True}], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_bags_of_padding_alone(device, dtype, keywords):
    weight = torch.ones(5, 2, dtype=dtype, device=device, requires_grad=True)
    index, starts = torch.tensor([2, 2], device=device), torch.tensor([0], device=device)
    found = F.embedding_bag(index, weight, starts, padding_idx=2, **keywords)
    found.sum().backward()
    assert found.tolist() == [[0, 0]] and not weight.grad.any()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_softmax_of_a_number_that_is_not_finite(device, value, dtype):
    for function in torch.softmax, torch.log_softmax:
        for input in torch.tensor(value, dtype=dtype, device=device), torch.tensor([value], dtype=dtype, device=device):
            found = function(input.requires_grad_(), 0)
            assert found.isnan().all() and found.shape == input.shape and found.dtype == dtype
            found.sum().backward()
            assert input.grad.isnan().all()
    one = torch.tensor(3.0, dtype=dtype, device=device, requires_grad=True)
    assert torch.softmax(one, 0).item() == 1 and torch.log_softmax(one, 0).item() == 0
    (torch.softmax(one, 0) + torch.log_softmax(one, 0)).backward()
    assert one.grad.item() == 0


def test_gradient_of_logcumsumexp_beside_nan_and_infinity(device):
    row = torch.tensor([1.0, 2.0, math.nan, 3.0], device=device, requires_grad=True)
    torch.logcumsumexp(row, 0).sum().backward()
    assert row.grad.isnan().all()
    row = torch.tensor([0.0, 0.0, math.inf, 3.0], device=device, requires_grad=True)
    torch.logcumsumexp(row, 0).sum().backward()
    assert row.grad.tolist() == [1.5, 0.5, 2, 0]
