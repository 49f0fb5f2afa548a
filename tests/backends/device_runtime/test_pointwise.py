"""Pointwise kernels of OpenCL devices against those of the CPU: every dtype, layout and special value, in place and out
of it.
"""

import itertools
import math

import numpy as np
import pytest

import torchlite as torch

F = torch.nn.functional
DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int16,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
]
TRIED = [
    torch.bool,
    torch.uint8,
    torch.int64,
    torch.bfloat16,
    torch.float32,
    torch.complex64,
]  # with every op: building a program takes long
ARITHMETIC = (
    "add", "sub", "mul", "div", "maximum", "minimum", "fmax", "fmin", "eq", "ne", "lt", "le", "gt", "ge", "logical_and",
    "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "atan2", "copysign", "hypot", "logaddexp",
    "xlogy", "heaviside", "fmod", "remainder", "floor_divide", "pow", "gcd", "lcm", "bitwise_left_shift",
    "bitwise_right_shift",
)  # fmt: skip
FUNCTIONS = (
    "neg", "abs", "sign", "sgn", "square", "logical_not", "bitwise_not", "isnan", "isinf", "isfinite", "signbit",
    "floor", "ceil", "trunc", "round", "frac", "exp", "log", "sqrt", "rsqrt", "reciprocal", "sigmoid", "sin", "cos",
    "tan", "tanh", "asin", "acos", "atan", "sinh", "cosh", "asinh", "log1p", "expm1", "log2", "log10", "exp2", "erf",
    "erfc", "angle", "nan_to_num", "conj_physical", "relu", "sinc", "deg2rad", "isposinf", "isneginf", "isreal",
)  # fmt: skip
SPECIAL = (
    "erfinv", "lgamma", "digamma", "i0", "special.i0e", "special.i1", "special.i1e", "special.ndtr", "special.ndtri",
    "special.log_ndtr", "special.erfcx", "special.bessel_j0", "special.bessel_j1", "special.bessel_y0",
    "special.bessel_y1", "special.modified_bessel_k0", "special.modified_bessel_k1",
    "special.scaled_modified_bessel_k0", "special.spherical_bessel_j0", "special.airy_ai",
)  # fmt: skip
ODD = [
    0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, 1e-30, -1e-30, 1e30, -1e30, 1e-42, 88.0,
    -104.0, 709.0,
]  # fmt: skip


def named(name):
    space = torch
    for part in name.split("."):
        space = getattr(space, part)
    return space


def draw(rng, shape, dtype, low=-9, high=9):
    """A tensor on the CPU."""
    if dtype is torch.bool:
        return torch.from_numpy(rng.random(shape) < 0.5)
    if dtype.is_complex:
        return torch.from_numpy(rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).to(dtype)
    if dtype.is_floating_point:
        return torch.from_numpy(rng.uniform(low, high, shape)).to(dtype)
    return torch.from_numpy(rng.integers(max(low, 0) if dtype is torch.uint8 else low, high, shape)).to(dtype)


def outcome(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)


def tolerance(dtype):
    return {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float64: 1e-9, torch.complex128: 1e-9}.get(dtype, 2e-5)


def agree(found, want, tol=None):
    """Two results, or two errors, are the same."""
    if isinstance(want, tuple) and isinstance(want[0], type):
        assert found == want
        return
    assert not isinstance(found, tuple), found
    assert found.dtype is want.dtype and found.shape == want.shape
    tol = tolerance(want.dtype) if tol is None else tol
    found, want = (x.detach().cpu() for x in (found, want))
    if want.dtype in (torch.bfloat16, torch.float16):
        found, want = found.float(), want.float()
    np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", TRIED, ids=str)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_two_operands(name, dtype, opencl, rng):
    """300 elements: vectors, and a rest of 12 one by one."""
    integral = not dtype.is_floating_point and not dtype.is_complex
    x = draw(rng, (300,), dtype, *((0.1, 5) if name == "pow" and dtype.is_floating_point else ()))
    y = draw(
        rng,
        (300,),
        dtype,
        *(
            (1, 7)
            if name in ("fmod", "remainder", "floor_divide", "pow") or "shift" in name
            else (1, 3)
            if name == "xlogy"
            else ()
        ),
    )
    function = named(name)
    tol = 0 if integral and name not in ("div", "atan2", "copysign", "logaddexp", "xlogy") else None
    agree(outcome(function, x.to(opencl), y.to(opencl)), outcome(function, x, y), tol)


@pytest.mark.parametrize("dtype", TRIED, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_operand(name, dtype, opencl, rng):
    low, high = {
        "acos": (-0.9, 0.9),
        "asin": (-0.9, 0.9),
        "log": (0.1, 9),
        "log2": (0.1, 9),
        "log10": (0.1, 9),
        "log1p": (0.1, 9),
        "sqrt": (0.1, 9),
        "rsqrt": (0.1, 9),
        "tan": (-1.4, 1.4),
        "frac": (-3, 3),
    }.get(name, (-4, 4))
    if not dtype.is_floating_point and not dtype.is_complex:
        low, high = math.ceil(low), math.floor(high) + 1
    x = draw(rng, (300,), dtype, low, high)
    agree(outcome(named(name), x.to(opencl)), outcome(named(name), x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name, dtype, opencl, rng):
    unit = name in ("erfinv", "special.ndtri")
    x = torch.cat(
        [
            draw(rng, (60,), dtype, 0.05 if unit else 0.1, 0.95 if unit else 25),
            draw(rng, (40,), dtype, -0.95, 0.95),
            torch.tensor([0.0, 1.0, math.inf, math.nan]).to(dtype),
        ]
    )
    agree(outcome(named(name), x.to(opencl)), outcome(named(name), x))


@pytest.mark.parametrize(
    "name",
    [
        "special.zeta",
        "special.gammainc",
        "special.gammaincc",
        "special.hermite_polynomial_h",
        "special.chebyshev_polynomial_t",
        "special.laguerre_polynomial_l",
        "special.shifted_chebyshev_polynomial_u",
        "special.legendre_polynomial_p",
    ],
)
def test_special_functions_of_two(name, opencl, rng):
    for dtype in (torch.float32, torch.float64):
        a, x = (
            draw(rng, (40, 1), dtype, 1.1, 400) if "gamma" in name else draw(rng, (40, 1), dtype, 1.1, 9),
            draw(rng, (1, 50), dtype, 0.1, 500 if "gamma" in name else 6),
        )
        if "polynomial" in name:
            a, x = x.T - 3, torch.arange(-2, 15).to(dtype)
        agree(
            outcome(named(name), a.to(opencl), x.to(opencl)),
            outcome(named(name), a, x),
            1e-7 if dtype is torch.float64 else None,
        )


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("bitwise_not",)])
def test_values_at_the_edges(name, opencl):
    """Signed zeros, infinities, NaN, numbers that are not normal; with and without vectors."""
    x = torch.tensor(ODD, dtype=torch.float64)
    for wide in (x, x.repeat(20)):
        want = named(name)(wide)
        found = named(name)(wide.to(opencl))
        agree(found, want)
        if want.dtype.is_floating_point and name not in ("deg2rad", "sinc", "frac"):
            zero = want.numpy() == 0
            np.testing.assert_array_equal(np.signbit(found.cpu().numpy())[zero], np.signbit(want.numpy())[zero])


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "mul",
        "div",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "pow",
        "fmod",
        "remainder",
        "floor_divide",
        "atan2",
        "hypot",
        "logaddexp",
        "xlogy",
        "eq",
        "lt",
        "copysign",
        "nextafter",
    ],
)
def test_pairs_of_values_at_the_edges(name, opencl):
    pairs = np.array(list(itertools.product([v for v in ODD if abs(v) < 100 or not math.isfinite(v)], repeat=2)))
    x, y = torch.from_numpy(pairs[:, 0].copy()), torch.from_numpy(pairs[:, 1].copy())
    agree(named(name)(x.to(opencl), y.to(opencl)), named(name)(x, y))


@pytest.mark.parametrize(
    "name",
    [
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "tanh",
        "sinh",
        "cosh",
        "asin",
        "acos",
        "atan",
        "asinh",
        "acosh",
        "atanh",
        "log1p",
        "sigmoid",
        "reciprocal",
        "rsqrt",
        "sgn",
        "abs",
        "angle",
        "square",
        "log2",
        "exp2",
    ],
)
def test_complex_functions(name, opencl, rng):
    points = np.array([complex(a, b) for a in (-3.0, -1.0, -0.5, 0.25, 1.0, 2.0) for b in (-2.0, -0.3, 0.0, 0.7, 3.0)])
    for dtype in (torch.complex64, torch.complex128):
        x = torch.from_numpy(points).to(dtype)
        agree(named(name)(x.to(opencl)), named(name)(x))


# -- layouts --


def layouts(x):
    """The same elements as views that lie otherwise in memory."""
    yield "contiguous", x
    if x.ndim < 2:
        return
    yield "transposed", x.transpose(-1, -2).contiguous().transpose(-1, -2)
    wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1] + 3, dtype=x.dtype, device=x.device)
    wide[..., 3::2] = x
    yield "every second, with an offset", wide[..., 3::2]
    yield "one row", x[..., :1, :].expand(x.shape)
    yield "one column", x[..., :1].expand(x.shape)
    yield "one element", x.reshape(-1)[5].expand(x.shape)


@pytest.mark.parametrize("shape", [(4, 6), (33, 40), (70, 130), (2, 37, 65), (3, 1, 5, 2, 7)], ids=str)
def test_layouts(shape, opencl, rng):
    """Every pair of layouts, small and large."""
    x, y = (draw(rng, shape, torch.float32).to(opencl) for _ in range(2))
    for (first, a), (second, b) in itertools.product(layouts(x), layouts(y)):
        want = torch.sub(a.cpu(), b.cpu())
        found = torch.sub(a, b)
        assert found.shape == want.shape, (first, second)
        np.testing.assert_array_equal(found.cpu().numpy(), want.numpy(), err_msg=f"{first}, {second}")


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.int16, torch.float16, torch.bfloat16, torch.float64, torch.complex64], ids=str
)
def test_layouts_of_dtypes(dtype, opencl, rng):
    x = draw(rng, (40, 130), dtype).to(opencl)
    for name, view in layouts(x):
        host = view.cpu()
        for function in (
            lambda v: v.clone(),
            lambda v: v.t().contiguous(),
            lambda v: v == v[:1],
            lambda v: torch.where(v[:, :1] == v, v, v[0]),
        ):
            found, want = function(view), function(host)
            assert torch.equal(found.cpu(), want), name


def test_turned_results_keep_their_order(opencl):
    x = torch.arange(6.0, device=opencl).reshape(2, 3).t()
    assert (x + x).stride() == x.stride() and torch.exp(x).stride() == x.stride()


def test_many_dimensions(opencl, rng):
    x = draw(rng, (2, 3) * 4, torch.float32).to(opencl)
    y = x.permute(7, 0, 6, 1, 5, 2, 4, 3)
    np.testing.assert_array_equal((y + y[..., :1]).cpu().numpy(), (y.cpu() + y.cpu()[..., :1]).numpy())


def test_without_dimensions_and_without_elements(opencl):
    x = torch.tensor(2.0, device=opencl)
    assert (x + x).item() == 4 and (x * torch.ones(3, device=opencl)).tolist() == [2, 2, 2]
    for shape in ((0,), (0, 3), (3, 0)):
        empty = torch.zeros(shape, device=opencl)
        assert (empty + 1).shape == shape and (empty + x).shape == shape and empty.exp().shape == shape
        empty.add_(1)
    assert (torch.zeros(3, 0, device=opencl) + torch.zeros(1, 0, device=opencl)).shape == (3, 0)


def test_shapes_that_do_not_fit(opencl):
    with pytest.raises(
        RuntimeError,
        match=r"The size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 0",
    ):
        torch.ones(3, device=opencl) + torch.ones(4, device=opencl)


# -- in place --


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_", "copysign_", "atan2_", "remainder_", "pow_"])
@pytest.mark.parametrize("size", [(5, 7), (80, 70)], ids=str)
def test_in_place_of_two(name, size, opencl, rng):
    for first, second in itertools.product(range(3), range(6)):
        x, y = draw(rng, size, torch.float32, 0.5, 3), draw(rng, size, torch.float32, 0.5, 3)
        _, target = list(layouts(x.to(opencl)))[first]
        _, other = list(layouts(y.to(opencl)))[second]
        want = getattr(target.cpu(), name)(other.cpu())
        assert getattr(target, name)(other) is target
        np.testing.assert_allclose(target.cpu().numpy(), want.numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["exp_", "neg_", "sqrt_", "relu_", "sigmoid_", "round_", "erf_", "nan_to_num_", "tanh_"]
)
def test_in_place_of_one(name, opencl, rng):
    for dtype in (torch.float32, torch.bfloat16):
        x = draw(rng, (9, 50), dtype, 0.1, 3)
        for _, target in list(layouts(x.to(opencl)))[:3]:
            want = getattr(target.cpu(), name)()
            agree(getattr(target, name)(), want)


def test_out_may_be_an_operand(opencl):
    """An operand that shares memory with the target, but lies otherwise, is read before it is written over."""
    x = torch.arange(10000.0, device=opencl)[::2]
    x[1:] += x[:-1]  # with gaps, so that no overlap is looked for
    want = np.arange(10000.0)[::2]
    want[1:] = want[1:] + want[:-1]
    assert x.tolist() == want.tolist()
    y = torch.arange(4096.0, device=opencl).reshape(64, 64)
    y.add_(y[:1].expand(64, 64))
    assert y.tolist() == (np.arange(4096.0).reshape(64, 64) + np.arange(64.0)).tolist()


def test_results_that_do_not_fit_their_target(opencl):
    with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"):
        torch.ones(3, device=opencl).add_(torch.ones(2, 3, device=opencl))


# -- conversion and choice --


@pytest.mark.parametrize("source", [*DTYPES, torch.int8, torch.int32, torch.complex128], ids=str)
def test_casts(source, opencl, rng):
    for size in (20, 300):
        x = draw(rng, (size,), source, -90, 90)
        for target in (*DTYPES, torch.int8, torch.int32, torch.complex128):
            if target is torch.uint8 and (source.is_floating_point or source.is_complex):
                x = x.abs().to(source)
            agree(x.to(opencl).to(target), x.to(target), 0)


def test_numbers_that_do_not_fit(opencl):
    x = torch.tensor([300.0, -1.0, 1e9, 70000.0], device=opencl)
    assert (
        x[:2].to(torch.uint8).tolist() == [44, 255]
        and x[3:].to(torch.int16).tolist() == [4464]
        and x[2:3].half().tolist() == [math.inf]
    )
    assert torch.tensor([250, 10], dtype=torch.uint8, device=opencl).add(10).tolist() == [4, 20]
    assert (torch.tensor([2**62], device=opencl) * 4).tolist() == [0]
    assert torch.tensor([-(2**63)], device=opencl).floor_divide(-1).tolist() == [-(2**63)]


def test_division_of_integers_by_zero_is_not_checked(opencl):
    """As on other devices than the CPU: a check would wait for the device."""
    for dtype in (torch.int8, torch.uint8, torch.int32, torch.int64):
        x = torch.tensor([5, 7], dtype=dtype, device=opencl)
        for function in (
            torch.floor_divide,
            torch.remainder,
            torch.fmod,
            lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        ):
            assert function(x, torch.tensor([0, 2], dtype=dtype, device=opencl)).tolist()[1] in (1, 3)


def test_halves_are_rounded_once(opencl):
    """Computed in float: 2048 + 1 + 1 in one op is 2050, where two roundings leave 2048."""
    for dtype, big in ((torch.float16, 2048.0), (torch.bfloat16, 256.0)):
        x, one = (torch.full((40,), v, dtype=dtype, device=opencl) for v in (big, 1.0))
        assert torch.addcmul(x, one, one + one).tolist() == [big + 2] * 40
        assert torch.addcmul(x, one, one, value=3).tolist() == [big + 4] * 40


def test_choice(opencl, rng):
    mask = draw(rng, (30, 1), torch.bool)
    for dtype in DTYPES:
        x, y = draw(rng, (30, 20), dtype), draw(rng, (20,), dtype)
        agree(torch.where(mask.to(opencl), x.to(opencl), y.to(opencl)), torch.where(mask, x, y), 0)
        agree(x.to(opencl).masked_fill(mask.to(opencl), 1), x.masked_fill(mask, 1), 0)
        agree(torch.where(mask.to(opencl), x.to(opencl), 1), torch.where(mask, x, 1), 0)
    agree(torch.where(mask.to(opencl), 1.5, 2), torch.where(mask, 1.5, 2))
    with pytest.raises(RuntimeError, match="masked_fill_ only supports boolean masks, but got mask with dtype float"):
        torch.ones(2, device=opencl).masked_fill(torch.ones(2, device=opencl), 0)


def test_parts_are_views(opencl, rng):
    z = draw(rng, (5, 4), torch.complex64).to(opencl)
    part = z.t()[1:].imag
    part.mul_(2)
    z.real.zero_()
    assert z.real.abs().sum().item() == 0 and torch.equal(z.imag.t()[1:], part)


def test_mixed_kinds_in_formulas(opencl):
    """Derivatives multiply complex by real numbers without a cast."""
    z = torch.tensor([1 + 2j, -3 + 0.5j], device=opencl, requires_grad=True)
    z.abs().sum().backward()
    want = z.detach().cpu()
    agree(z.grad, want / want.abs())


# -- activations and what takes numbers --


ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "elu": lambda x: F.elu(x, 0.7),
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 1.3),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "softplus": lambda x: F.softplus(x, 2.0, 5.0),
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 1.5),
    "relu6": F.relu6,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "softshrink": F.softshrink,
    "hardshrink": F.hardshrink,
    "threshold": lambda x: F.threshold(x, 0.3, -2.0),
    "logsigmoid": F.logsigmoid,
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name, dtype, opencl, rng):
    """Values and gradients; NaN and infinities pass as on the CPU."""
    for x in (draw(rng, (300,), dtype, -7, 7), torch.tensor([math.nan, math.inf, 30.0, -30.0, 0.0]).to(dtype)):
        results = []
        for where in (opencl, "cpu"):
            leaf = x.to(where).requires_grad_()
            out = ACTIVATIONS[name](leaf)
            out.backward(torch.ones_like(out))
            results.append((out, leaf.grad))
        for found, want in zip(*results, strict=True):
            agree(found, want)


@pytest.mark.parametrize("name", ["relu", "gelu", "leaky_relu", "elu", "softplus", "hardswish", "silu", "mish"])
def test_activations_refuse(name, opencl):
    for dtype in (torch.bool, torch.int64):
        x = torch.ones(3, dtype=dtype)
        agree(outcome(ACTIVATIONS[name], x.to(opencl)), outcome(ACTIVATIONS[name], x))


def test_clamping(opencl, rng):
    x, low, high = (draw(rng, (400,), torch.float32) for _ in range(3))
    x[3], low[4], high[5] = math.nan, math.nan, math.nan
    on = [t.to(opencl) for t in (x, low, high)]
    for dtype in (torch.float32, torch.float16, torch.int64):
        cases = [
            (lambda a, b, c: a.clamp(b, c)),
            (lambda a, b, c: a.clamp(-2, 3)),
            (lambda a, b, c: a.clamp(min=b)),
            (lambda a, b, c: a.clamp(max=1)),
            (lambda a, b, c: a.clamp(5, 2)),
        ]
        for case in cases:
            host = [t.nan_to_num().to(dtype) if not dtype.is_floating_point else t.to(dtype) for t in (x, low, high)]
            agree(case(*[t.to(opencl) for t in host]), case(*host))
    assert math.isnan(on[0].clamp(on[1], on[2])[3].item())
    agree(outcome(on[0].clamp), outcome(x.clamp))


def test_functions_with_numbers(opencl, rng):
    x, y, z = (draw(rng, (50,), torch.float32, 0.1, 0.9) for _ in range(3))
    cases = [
        lambda a, b, c: torch.lerp(a, b, 0.3),
        lambda a, b, c: torch.lerp(a, b, c),
        lambda a, b, c: torch.addcmul(a, b, c, value=2.5),
        lambda a, b, c: torch.addcdiv(a, b, c, value=-0.5),
        lambda a, b, c: torch.isclose(a, b, 0.1, 0.2),
        lambda a, b, c: torch.isclose(a, a, equal_nan=True),
        lambda a, b, c: a.round(decimals=2),
        lambda a, b, c: (100 * a).round(decimals=-1),
        lambda a, b, c: torch.logit(a, 0.2),
        lambda a, b, c: torch.polygamma(2, a),
        lambda a, b, c: torch.polygamma(1, -a),
        lambda a, b, c: a**3,
        lambda a, b, c: a**-1,
        lambda a, b, c: a**0.5,
        lambda a, b, c: 2**a,
        lambda a, b, c: torch.polar(a, b),
        lambda a, b, c: torch.complex(a, b),
        lambda a, b, c: torch.frexp(a * 100)[0],
        lambda a, b, c: torch.frexp(a * 100)[1],
        lambda a, b, c: a.nan_to_num(1.0, 2.0, 3.0),
        lambda a, b, c: torch.isclose((a * 9).long(), (b * 9).long(), 0.2),
        lambda a, b, c: 1 - a,
        lambda a, b, c: 1 / a,
        lambda a, b, c: 7 // a,
    ]
    for case in cases:
        agree(case(*(t.to(opencl) for t in (x, y, z))), case(x, y, z))
    agree(outcome(torch.pow, torch.tensor([1, 2], device=opencl), -1), outcome(torch.pow, torch.tensor([1, 2]), -1))


def test_program_texts_are_shared_by_shapes(opencl, rng):
    """A new shape or layout of a kind that was seen builds nothing."""

    def run(n, m):
        x = draw(rng, (n, m), torch.float32).to(opencl)
        for a in (x, x[:, ::2], x.t(), x[1:, 1:]):
            a.sub(a[:1]).cpu()

    run(60, 120)
    run(5, 4)
    device = torch.ones(1, device=opencl)._tl_array.device
    before = len(device.functions)
    run(61, 140)
    run(6, 3)
    run(2, 9)
    assert len(device.functions) == before
