"""Elementwise ops at kinks, at the ends of the number range, with Python numbers, in place; and what they refuse."""

import math

import numpy as np
import pytest

import torchlite as torch
from torchlite.autograd import grad

inf, nan = math.inf, math.nan
T = torch.tensor
F = torch.nn.functional


def values(tensor):
    return np.asarray(tensor.detach().numpy())


def same(tensor, expected, dtype=None):
    np.testing.assert_array_equal(values(tensor), np.asarray(expected))
    if dtype is not None:
        assert tensor.dtype is dtype


REFUSED = [
    (lambda: T([5]) // T([0]), RuntimeError, "ZeroDivisionError"),
    (lambda: torch.fmod(T([5]), 0), RuntimeError, "ZeroDivisionError"),
    (lambda: T([5]) % 0, RuntimeError, "ZeroDivisionError"),
    (
        lambda: torch.div(T([7.0]), 2, rounding_mode="x"),
        RuntimeError,
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'x'",
    ),
    (lambda: torch.clamp(T([1.0])), RuntimeError, "torch.clamp: At least one of 'min' or 'max' must not be None"),
    (lambda: torch.clamp(T([1j]), min=0), NotImplementedError, "clamp is not supported for complex types"),
    (lambda: T([True]) - T([True]), RuntimeError, "with two bool tensors is not supported"),
    (lambda: T([True]) - T([1]), RuntimeError, "with a bool tensor is not supported"),
    (lambda: 1 - T([True]), RuntimeError, "with a bool tensor is not supported"),
    (lambda: -T([True]), RuntimeError, "Negation, the `-` operator, on a bool tensor is not supported"),
    (lambda: +T([True]), RuntimeError, r"The `\+` operator, on a bool tensor is not supported."),
    (lambda: torch.abs(T([True])), NotImplementedError, "\"abs_cpu\" not implemented for 'Bool'"),
    (lambda: T([1j]) < 1, NotImplementedError, "\"lt_cpu\" not implemented for 'ComplexFloat'"),
    (lambda: torch.maximum(T([1j]), T([1j])), RuntimeError, "maximum not implemented for complex tensors."),
    (lambda: torch.sign(T([1j])), NotImplementedError, "Please use torch.sgn instead."),
    (lambda: T([2]) ** -1, RuntimeError, "Integers to negative integer powers are not allowed."),
    (
        lambda: torch.add(T([1]), T([2]), alpha=1.5),
        RuntimeError,
        "For integral input tensors, argument alpha must not be a floating point number.",
    ),
    (lambda: torch.add(T([1.0]), T([2.0]), alpha=1j), RuntimeError, "argument alpha must not be a complex number."),
    (
        lambda: torch.add(T([1.0]), T([2.0]), alpha=True),
        RuntimeError,
        "Boolean alpha only supported for Boolean results.",
    ),
    (
        lambda: torch.mul(T([1, 2, 3]), T([1, 2])),
        RuntimeError,
        r"The size of tensor a \(3\) must match the size of tensor b \(2\) at non-singleton",
    ),
    (
        lambda: torch.lerp(T([1.0]), T([2.0]), T([1.0], dtype=torch.float64)),
        RuntimeError,
        "expected dtype float for `weight` but got dtype double",
    ),
    (
        lambda: torch.complex(T([1.0]), T([2])),
        RuntimeError,
        "Expected both inputs to be Half, Float or Double tensors but got Float and Long",
    ),
    (lambda: torch.imag(T([1.0])), RuntimeError, "imag is not implemented for tensors with non-complex dtypes."),
    (lambda: torch.isclose(T([1.0]), T([1.0], dtype=torch.float64)), RuntimeError, "Float did not match Double"),
    (
        lambda: torch.isclose(T([1.0]), T([1.0]), rtol=-1),
        RuntimeError,
        "rtol must be greater than or equal to zero, but got -1",
    ),
    (lambda: torch.heaviside(T([1.0]), T([1])), RuntimeError, "not yet implemented for tensors with different dtypes"),
    (
        lambda: torch.where(T([1]), T([1]), T([2])),
        RuntimeError,
        "where expected condition to be a boolean tensor, but got a tensor with dtype Long",
    ),
    (lambda: torch.polygamma(-1, T([1.0])), RuntimeError, r"polygamma\(n, x\) does not support negative n."),
    (lambda: torch.mvlgamma(T([3.0]), 0), RuntimeError, "p has to be greater than or equal to 1"),
    (lambda: torch.erf(T([1j])), NotImplementedError, "\"erf_vml_cpu\" not implemented for 'ComplexFloat'"),
    (lambda: T([1]).add_(1.5), RuntimeError, "result type Float can't be cast to the desired output type Long"),
    (
        lambda: T([1.0]).mul_(T([[1.0], [2.0]])),
        RuntimeError,
        r"output with shape \[1\] doesn't match the broadcast shape \[2, 1\]",
    ),
    (
        lambda: T([1.0], requires_grad=True).add_(1),
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number):
    call, kind, words = REFUSED[number]
    with pytest.raises(kind, match=words):
        call()


def test_python_integers_wrap_around():
    x = T([2], dtype=torch.uint8)
    same(x - 3, [255], torch.uint8)
    same(x * -1, [254], torch.uint8)
    same(x + 300, [46], torch.uint8)
    same(T([2], dtype=torch.int8) * 200, [-112], torch.int8)


def test_integer_powers():
    same(T([1, -1, 0, -1, 3]) ** T([-1, -1, -1, -2, -1]), [1, -1, 0, 1, 0], torch.int64)
    same(2 ** T([-1, 3]), [0, 8], torch.int64)


def test_shifts_beyond_the_width():
    same(torch.bitwise_left_shift(T([1, 1, 1]), T([64, -1, 2])), [0, 0, 4])
    same(torch.bitwise_right_shift(T([-8, 8, 8]), T([64, -1, 2])), [-1, 0, 2])


def test_division_by_zero_and_infinity():
    x = T([1.0, -1.0, 0.0, nan, inf])
    same(x / 0, [inf, -inf, nan, nan, inf])
    same(x // 0, [inf, -inf, nan, nan, inf])
    same(x % 0, [nan] * 5)
    same(torch.div(T([7, -7]), 2, rounding_mode="trunc"), [3, -3], torch.int64)
    same(torch.div(T([7, -7]), 2, rounding_mode="floor"), [3, -4], torch.int64)


def test_nan_propagates_through_extremes_and_comparisons():
    a, b = T([nan, 1.0, 1.0]), T([1.0, nan, 2.0])
    same(torch.maximum(a, b), [nan, nan, 2])
    same(torch.fmax(a, b), [1, 1, 2])
    same(torch.clamp(T([nan, 1.0, 2.0]), min=3, max=1), [nan, 1, 1])
    same(torch.sign(T([nan, -0.0, -3.0])), [0, 0, -1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("size", [1, 40])
def test_of_two_zeros_fmax_and_fmin_take_the_first(device, size, dtype):
    x = torch.tensor([-0.0, 0.0] * size, dtype=dtype).to(device)
    for function in (torch.fmax, torch.fmin):
        assert torch.equal(torch.signbit(function(x, -x)), torch.signbit(x))


@pytest.mark.parametrize(
    ("function", "point", "expected"),
    [
        (torch.abs, 0.0, 0.0),
        (lambda x: torch.clamp(x, 0.0, 1.0), 1.0, 1.0),
        (lambda x: torch.clamp(x, 0.0, 1.0), 1.5, 0.0),
        (lambda x: torch.maximum(x, T(2.0)), 2.0, 0.5),
        (lambda x: torch.minimum(x, T(2.0)), 2.0, 0.5),
        (lambda x: torch.fmax(x, T(2.0)), 2.0, 1.0),
        (lambda x: x**0, 0.0, 0.0),
        (lambda x: x**2, 0.0, 0.0),
        (lambda x: 0.0**x, 1.0, 0.0),
        (torch.sqrt, 0.0, inf),
        (torch.sinc, 0.0, 0.0),
        (torch.special.i1, 0.0, 0.5),
        (lambda x: torch.xlogy(x, T(0.0)), 0.0, 0.0),
        (torch.logit, 2.0, nan),
        (lambda x: torch.logit(x, eps=0.1), 2.0, 0.0),
        (lambda x: torch.nan_to_num(x), nan, 0.0),
        (lambda x: torch.where(x > 0, x, T(0.0)), nan, 0.0),
        (torch.round, 0.3, 0.0),
        (torch.frac, 0.3, 1.0),
    ],
)
def test_gradient_at_a_kink(function, point, expected):
    x = T(point, requires_grad=True)
    (found,) = grad(function(x), x)
    np.testing.assert_array_equal(values(found), expected)


def test_gradient_of_bounds():
    x, low, high = (
        T(v, requires_grad=True) for v in ([-1.0, 0.5, 3.0, 0.5], [0.0, 0.0, 0.0, 2.0], [1.0, 1.0, 1.0, 1.0])
    )
    found = grad(torch.clamp(x, low, high).sum(), (x, low, high))
    for have, want in zip(found, ([0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1]), strict=True):
        same(have, want)


def test_not_differentiable_arguments_raise():
    a, x = T([1.0], requires_grad=True), T([2.0], requires_grad=True)
    with pytest.raises(NotImplementedError, match="the derivative for 'igamma: input' is not implemented"):
        torch.igamma(a, x).sum().backward()


@pytest.mark.parametrize("size", [7, 5_000, 200_000])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.int64])
def test_choice_is_the_same_at_every_size(size, dtype):
    """Large `where` calls select bitwise and on threads."""
    rng = np.random.default_rng(size)
    mask = rng.random(size) < 0.5
    x, y = (rng.standard_normal(size).astype(dtype.np) for _ in range(2))
    x[:3] = 0, -1, 1
    if dtype.is_floating_point:
        x[:3] = nan, inf, -0.0
    tensors = torch.from_numpy(mask), torch.from_numpy(x), torch.from_numpy(y)
    for other, plain in ((tensors[2], y), (0, 0), (1, 1)):
        have, want = torch.where(tensors[0], tensors[1], other), np.where(mask, x, np.asarray(plain, x.dtype))
        assert have.dtype is dtype
        np.testing.assert_array_equal(values(have), want)
        np.testing.assert_array_equal(np.signbit(values(have)), np.signbit(want))
    np.testing.assert_array_equal(
        values(torch.where(tensors[0], 0, tensors[1])), np.where(mask, np.asarray(0, x.dtype), x)
    )


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "cos", "sigmoid", "erf"])
def test_large_arrays_in_blocks(name):
    x = np.random.default_rng(1).uniform(0.1, 2, (300, 500)).astype(np.float32)
    function = getattr(torch, name)
    whole = values(function(torch.from_numpy(x)))
    parts = np.stack([values(function(torch.from_numpy(row))) for row in x])
    np.testing.assert_allclose(whole, parts, rtol=1e-6)
    np.testing.assert_allclose(values(function(torch.from_numpy(x).t())), whole.T, rtol=1e-6)
    changed = torch.from_numpy(x.copy())
    assert getattr(changed, name + "_")() is changed
    np.testing.assert_allclose(values(changed), whole, rtol=1e-6)


def test_in_place_counts_versions_and_keeps_dtype():
    x = T([1.0, 2.0])
    view = x[:1]
    x += 1
    x.mul_(T([2.0, 2.0]))
    x.sub_(1, alpha=2)
    x /= T(2.0, dtype=torch.float64)
    view.pow_(2)
    same(x, [1, 2], torch.float32)
    assert x._version == 5 == view._version
    flags = T([5.0]).eq_(5)
    same(flags, [1], torch.float32)


def test_in_place_records_history():
    x = T([1.0, 2.0], requires_grad=True)
    y = x * 3
    y += x
    y.mul_(2)
    y.exp_()
    (found,) = grad(y.log().sum(), x)
    np.testing.assert_allclose(values(found), [8, 8], rtol=1e-6)


def test_numbers_keep_the_dtype():
    for x in (T([1, 2]), T([1.0, 2.0]), T([1.0, 2.0], dtype=torch.float16)):
        for result in (x + 1, 1 - x, x * 2, x**2, x % 2, x // 1):
            assert result.dtype is x.dtype
        assert (x > 1).dtype is torch.bool
    assert (T([1, 2]) * 2.5).dtype is torch.float32
    assert (T([1, 2]) / 2).dtype is torch.float32
    assert (T([1.0]) * 1j).dtype is torch.complex64
    assert torch.where(T([True]), 1.0, 2).dtype is torch.float32


def test_aliases_are_the_same_function():
    for one, other in (
        ("absolute", "abs"),
        ("arccos", "acos"),
        ("arctan2", "atan2"),
        ("negative", "neg"),
        ("multiply", "mul"),
        ("subtract", "sub"),
        ("divide", "div"),
        ("true_divide", "div"),
        ("greater", "gt"),
        ("not_equal", "ne"),
        ("clip", "clamp"),
        ("fix", "trunc"),
    ):
        assert getattr(torch, one) is getattr(torch, other)
    assert torch.special.expit is torch.sigmoid
    assert torch.special.gammaln is torch.lgamma
    assert torch.special.psi is torch.digamma


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_results_are_stored_in_the_dtype_they_name(device, dtype):
    x = torch.tensor([0.5, 1.5], device=device).to(dtype)
    for result in (torch.sinc(x), torch.addcdiv(x, x, x, value=0.5), torch.addcmul(x, x, x, value=0.5)):
        assert result.dtype is dtype and result._tl_kernels.dtype_of(result._tl_array) is dtype


@pytest.mark.parametrize("size", [1, 40000])
def test_gates_keep_their_digits_far_below_zero(size, device):
    for value, gate in ((-7.7, 0.0004526222), (-20.0, 2.0611537e-09), (-80.0, 1.8048513e-35)):
        x = torch.full((size,), value, device=device, requires_grad=True)
        y = torch.nn.functional.silu(x)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        assert y[-1].item() == pytest.approx(value * gate, rel=1e-5)
        assert gradient[-1].item() == pytest.approx(gate * (1 + value * (1 - gate)), rel=1e-4)
        assert torch.sigmoid(x)[-1].item() == pytest.approx(gate, rel=1e-5)


def test_bessel_functions_overflow_where_their_values_do(device):
    x = T([700.0, 713.0, -713.0, 714.0], dtype=torch.float64, device=device)
    i0, i1 = [1.529593347671875e302, 6.705128263670996e307, 6.705128263670996e307, inf], [
        1.528500390233901e302, 6.700424559186402e307, -6.700424559186402e307, inf
    ]  # fmt: skip
    for function, expected in ((torch.special.i0, i0), (torch.special.i1, i1)):
        np.testing.assert_allclose(values(function(x).cpu()), expected, rtol=1e-13)
    single = T([88.0, 90.0, 91.0], device=device)
    np.testing.assert_allclose(values(torch.i0(single).cpu()), [7.03401970e36, 5.13923835e37, 1.38927141e38], rtol=1e-5)


def test_incomplete_gamma_functions_pass_nan_on(device):
    a, x = T([inf, nan, nan, 0.0, nan], device=device), T([nan, 0.0, inf, nan, 1.0], device=device)
    assert torch.special.gammainc(a, x).isnan().all()
    assert torch.special.gammaincc(a, x).isnan().all()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int64], ids=str)
def test_negative_powers_of_integers_in_place(device, dtype):
    """The number is checked before it becomes one of the tensor's dtype: -1 is 255 as uint8."""
    x = torch.tensor([1, 2], dtype=dtype, device=device)
    for call in (lambda: x.pow_(-1), lambda: x.pow(-1), lambda: torch.pow(x, -1, out=x)):
        with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
            call()
    assert x.tolist() == [1, 2]


def test_softplus_whose_exponential_is_infinite(device):
    x = torch.tensor([0.5, -1.0, 2.0, inf, -inf, nan], device=device, requires_grad=True)
    for beta, threshold in ((100.0, 1000.0), (1e30, 1e30)):
        found = F.softplus(x, beta, threshold)
        same(found.cpu(), T([0.5, 0.0, 2.0, inf, 0.0, nan]))
        same(torch.autograd.grad(found.sum(), x)[0].cpu(), T([1.0, 0.0, 1.0, 1.0, 0.0, nan]))
    assert F.softplus(torch.tensor(200.0, device=device), threshold=1000) == 200
    assert F.softplus(torch.tensor(100.0, dtype=torch.float64, device=device), -1, 1000) == -math.exp(-100)
    half = F.softplus(torch.tensor([0.5, 12.0], dtype=torch.float16, device=device), 1000.0, 60000.0)
    same(half.cpu().float(), [0.5, 12.0])
    first = torch.autograd.grad(F.softplus(x[:3], 2.0, 90.0).sum(), x, create_graph=True)[0]
    gate = torch.sigmoid(2 * x.detach()[:3])
    torch.testing.assert_close(torch.autograd.grad(first[:3].sum(), x)[0][:3], 2 * gate * (1 - gate))


def test_zeta_of_what_is_no_number(device):
    s = torch.tensor([nan, nan, nan, 1.0, 2.0, 1.0, 1.0], device=device)
    q = torch.tensor([-1.0, -inf, 0.0, nan, nan, 2.0, inf], device=device)
    same(torch.special.zeta(s, q).cpu(), [nan, nan, nan, nan, nan, inf, inf])
    assert torch.polygamma(1, torch.tensor(nan, device=device)).isnan()


@pytest.mark.parametrize("size", [1, 5000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_functions_of_subnormal_numbers(device, size, dtype):
    """A constant that halves the number first loses its last digits, and so does a sine of it."""
    least = 2.0**-149 if dtype is torch.float32 else 5e-324
    steps = [1.0, 2.0, 3.0, 4.0, 8.0, 1000.0, -1.0, -3.0]
    x = torch.tensor([step * least for step in steps] * size, dtype=dtype, device=device)
    found = torch.special.erfinv(x)[: len(steps)]
    assert (found.double() / least).tolist() == [1, 2, 3, 4, 7, 886, -1, -3]
    expected = [-math.log(least) - math.log(abs(step)) for step in steps]
    np.testing.assert_allclose(values(torch.lgamma(x)[: len(steps)].cpu()), expected, rtol=1e-7)
    assert torch.erfinv(T(0.5, dtype=dtype, device=device)).item() == pytest.approx(0.4769362762044699, rel=2e-7)
    assert torch.erfinv(T(-0.9, dtype=dtype, device=device)).item() == pytest.approx(-1.1630871536766743, rel=2e-7)


def test_sgn_of_infinite_complex_numbers(device):
    # PyTorch's documents: the angle of the input, and an absolute value of 1. Its kernels give NaN.
    inf, nan, half = math.inf, math.nan, math.sqrt(0.5)
    x = torch.tensor(
        [complex(inf, 0), complex(-inf, 1), complex(0, inf), complex(inf, -inf), complex(-inf, inf), complex(3, -inf)],
        dtype=torch.complex64,
        device=device,
    )
    right = torch.tensor([1, -1, 1j, complex(half, -half), complex(-half, half), -1j], dtype=torch.complex64)
    for found in (torch.sgn(x), torch.sgn(x.repeat(600))[-6:], torch.sgn(x.to(torch.complex64).clone().sgn_())):
        assert torch.allclose(found.cpu(), right)
    assert torch.isnan(torch.sgn(torch.tensor([complex(inf, nan), complex(nan, 1)], device=device))).all()
    assert torch.signbit(torch.sgn(torch.tensor([complex(inf, -0.0)], device=device)).imag).all()
