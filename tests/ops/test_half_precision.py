"""Half and bfloat16: sums accumulate in float32, and Python numbers keep their precision until the end."""

import pytest

import torchlite as torch
import torchlite.nn.functional as F

HALVES = ["float16", "bfloat16"]
pytestmark = pytest.mark.usefixtures("on_device")


@pytest.fixture(params=HALVES)
def half(request):
    return getattr(torch, request.param)


def values(dtype, count=3000):
    """Numbers in (-1, 1) in an order without a pattern."""
    return ((torch.arange(count) * 7919 % 3001).to(torch.float32) / 1500 - 1).to(dtype)


SUMS = {
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: x.reshape(50, -1).sum(0),
    "nansum": lambda x: x.nansum(),
    "mean": lambda x: x.mean(),
    "nanmean": lambda x: x.reshape(3, -1).nanmean(1),
    "prod": lambda x: (x[:40] * 2).prod(),
    "var": lambda x: x.var(),
    "std": lambda x: x.reshape(50, -1).std(0),
    "norm": lambda x: x.norm(),
    "cumsum": lambda x: x.cumsum(0),
    "logsumexp": lambda x: x.logsumexp(0),
    "trace": lambda x: (torch.eye(300, dtype=x.dtype) * x[:300]).trace(),
    "mse_loss": lambda x: F.mse_loss(x, x.flip(0)),
    "l1_loss": lambda x: F.l1_loss(x, x.flip(0)),
    "kl_div": lambda x: F.kl_div(x, x.abs(), reduction="batchmean"),
    "cross_entropy": lambda x: F.cross_entropy(x.reshape(-1, 10), torch.arange(300) % 10),
    "cosine_similarity": lambda x: F.cosine_similarity(x.reshape(5, -1), x.flip(0).reshape(5, -1)),
    "scatter_add": lambda x: x.new_zeros(3).scatter_add(0, torch.zeros(3000, dtype=torch.int64), x),
    "index_add": lambda x: x.new_zeros(3).index_add(0, torch.zeros(3000, dtype=torch.int64), x),
    "embedding_bag": lambda x: F.embedding_bag(torch.arange(1000) % 7, x[:70].reshape(7, 10), torch.tensor([0, 400])),
    "segment_reduce": lambda x: torch.segment_reduce(x, "mean", lengths=torch.tensor([1000, 2000])),
    "matmul": lambda x: x.reshape(3, -1) @ x.reshape(-1, 3),
    "addmm": lambda x: torch.addmm(x[:9].reshape(3, 3), x.reshape(3, -1), x.reshape(-1, 3), beta=0.3, alpha=1.7),
    "trapezoid": lambda x: torch.trapezoid(x),
    "avg_pool1d": lambda x: F.avg_pool1d(x.reshape(1, 1, -1), 1000),
    "rms_norm": lambda x: F.rms_norm(x.reshape(3, -1), (1000,)),
    "lerp": lambda x: torch.lerp(x, x.flip(0), 0.3),
    "addcmul": lambda x: torch.addcmul(x, x, x.flip(0), value=1.3),
    "addcdiv": lambda x: torch.addcdiv(x, x, x.abs() + 1, value=1.3),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_are_rounded_once(name, half):
    """Results differ from those in float64 by at most some roundings."""
    x = values(half)
    found, true = SUMS[name](x), SUMS[name](x.cpu().to(torch.float64).to(x.device) if x.is_cpu else x.float())
    assert found.dtype is half
    # Several ops of a composite round each; a sum in half precision is wrong by a hundred times that.
    slack = 4 * torch.finfo(half).eps
    assert torch.allclose(
        found.double().cpu(), true.double().cpu(), rtol=slack, atol=slack * float(true.abs().max()) / 8
    )


def test_sums_that_half_precision_cannot_hold():
    assert torch.ones(1000, dtype=torch.bfloat16).sum() == 1000
    assert torch.full((1000,), 100.0, dtype=torch.half).mean() == 100
    x = torch.ones(70000, dtype=torch.half, requires_grad=True)
    x.mean().backward()
    assert x.grad[0] == torch.tensor(1 / 70000, dtype=torch.half)
    bias = torch.zeros(3, dtype=torch.bfloat16, requires_grad=True)
    F.linear(torch.ones(1000, 2, dtype=torch.bfloat16), torch.ones(3, 2, dtype=torch.bfloat16), bias).sum().backward()
    assert bias.grad.tolist() == [1000] * 3


# (what, the number, PyTorch's answer)
NUMBERS = [
    ("float16", lambda x: x * 65536.0, 1e-3, 65.5625),
    ("float16", lambda x: x / 1e5, 3.0, 2.9981136322021484e-05),
    ("float16", lambda x: 65536.0 * x, 1e-3, 65.5625),
    ("float16", lambda x: x.clone().mul_(65536.0), 1e-3, 65.5625),
    ("float16", lambda x: x * torch.tensor(65536.0), 1e-3, 65.5625),
    ("float16", lambda x: torch.div(x, 1e-9, rounding_mode="floor"), 1e-7, 119.0),
    ("bfloat16", lambda x: x * 4.775, 3.0, 14.3125),
    ("bfloat16", lambda x: x / 1e5, 0.1, 9.98377799987793e-07),
    ("bfloat16", lambda x: torch.addcmul(x, x, x, value=4.775), 3.0, 46.0),
]


@pytest.mark.parametrize(("dtype", "function", "x", "want"), NUMBERS)
def test_numbers_keep_their_digits(dtype, function, x, want, device):
    if "tensor" in function.__code__.co_names and device != "cpu":
        want = pytest.approx(want, rel=1) if want != 65.5625 else pytest.approx(float("inf"))
    assert function(torch.tensor([x], dtype=getattr(torch, dtype))).item() == want


def test_a_numbers_gradient_keeps_its_digits():
    x = torch.tensor([3.0], dtype=torch.bfloat16, requires_grad=True)
    (x * 4.775).backward(torch.tensor([3.0], dtype=torch.bfloat16))
    assert x.grad.item() == 14.3125


def test_comparisons_round_the_number_first(device):
    x = torch.tensor([0.1], dtype=torch.bfloat16, device=device)
    assert (x == 0.1).item()


def test_truncated_quotients_are_rounded_first(half):
    # PyTorch's: 2.9981 rounds to 3 in both dtypes' nearest neighbour of the quotient.
    a, b = values(half, 60_000) * 9, values(half, 60_000).flip(0) + 0.004
    assert (torch.div(a, b, rounding_mode="trunc") == (a / b).trunc()).all()
    a.div_(b, rounding_mode="trunc")
    assert (a == a.trunc()).all()
