"""Functions of half precision from tables: the same bits as the kernels, in all layouts, and few tables."""

import math

import ml_dtypes
import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.numpy import half_tables

HALVES = [np.dtype("f2"), np.dtype(ml_dtypes.bfloat16)]
DTYPES = [torch.float16, torch.bfloat16]
NUMBERS = [1.5, -0.0, 0, 3, 1e-5, math.inf, 1e6]
FUNCTIONS = {
    "sigmoid": torch.sigmoid,
    "gelu": torch.nn.functional.gelu,
    "gelu, tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "elu": lambda x: torch.nn.functional.elu(x, 0.7),
    "clamp": lambda x: x.clamp(-0.5, 2),
    "clamp_min": lambda x: x.clamp_min(0.25),
    "round": torch.round,
    "round to decimals": lambda x: x.round(decimals=1),
    "square": torch.square,
    "pow": lambda x: x**2,
    "erfinv": torch.erfinv,
}


@pytest.fixture
def no_tables(monkeypatch):
    """Empty tables, for this test alone."""
    monkeypatch.setattr(half_tables, "_tables", half_tables._Tables())


def every_half(dtype):
    """All numbers of a dtype three times, so that a function is worth a table at once."""
    bits = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).repeat(3)
    return bits.view(dtype)


def assert_same(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    nan = expected.isnan()
    assert torch.equal(found.isnan(), nan)
    assert torch.equal(found[~nan].view(torch.int16), expected[~nan].view(torch.int16))  # signed zeros too


@pytest.mark.usefixtures("no_tables")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_kernels_bits(name, dtype):
    function, x = FUNCTIONS[name], every_half(dtype)
    pieces = torch.cat([function(part.clone()) for part in x[: 1 << 16].split(1024)])  # too small for a table
    assert_same(function(x), pieces.repeat(3))
    assert_same(function(x), pieces.repeat(3))


@pytest.mark.usefixtures("no_tables")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("number", NUMBERS, ids=str)
def test_arithmetic_with_a_number(number, dtype):
    x = every_half(dtype)
    operations = {
        "add": lambda x: x + number, "sub": lambda x: x - number, "mul": lambda x: x * number,
        "div": lambda x: x / number, "number first": lambda x: number - x, "divided": lambda x: number / x,
        "add_": lambda x: x.clone().add_(number), "sub_": lambda x: x.clone().sub_(number),
        "mul_": lambda x: x.clone().mul_(number), "div_": lambda x: x.clone().div_(number),
    }  # fmt: skip
    for run in operations.values():
        pieces = torch.cat([run(part.clone()) for part in x[: 1 << 16].split(1024)])
        assert_same(run(x), pieces.repeat(3))


@pytest.mark.usefixtures("no_tables")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_in_place_in_all_layouts(dtype):
    x = torch.linspace(-3, 3, 1 << 17).to(dtype)
    for run in (lambda t: t.mul_(1.3), lambda t: t.add_(0.3), lambda t: t.clamp_(-1, 0.33), lambda t: t.sigmoid_()):
        expected = run(x.clone())
        strided, reversed_ = torch.stack([x, x], 1), x.flip(0).clone()
        assert_same(run(strided[:, 0]), expected)
        assert_same(strided[:, 1], x)  # the elements between
        assert_same(run(reversed_.flip(0)), expected)
        whole = torch.cat([x, x])
        run(whole[: len(x)])
        assert_same(whole[: len(x)], expected)
        assert_same(whole[len(x) :], x)
    assert run(torch.empty(0, dtype=dtype)).shape == (0,)


@pytest.mark.usefixtures("no_tables")
@pytest.mark.parametrize("half", HALVES, ids=str)
def test_a_table_is_made_when_it_pays(half):
    calls = []

    def kernel(x, number):
        calls.append(x.size)
        return (x.astype("f4") + np.float32(number)).astype(half)

    x = np.zeros(1 << 16, half)
    assert half_tables.look_up("f", kernel, (x, 2.0)) is None and not calls
    found = half_tables.look_up("f", kernel, (x, 2.0))
    assert calls == [1 << 16] and (found == 2).all()
    assert (half_tables.look_up("f", kernel, (x, 2.0)) == 2).all() and len(calls) == 1
    assert half_tables.look_up("f", kernel, (x, 3.0)) is None
    assert half_tables.look_up("f", kernel, (2.0, x)) is None  # another function
    assert half_tables.look_up("f", kernel, (x, -0.0)) is half_tables.look_up("f", kernel, (x[::2], 2.0)) is None
    assert half_tables.look_up("f", kernel, (x[:100], 2.0)) is half_tables.look_up("f", kernel, (x, x)) is None


@pytest.mark.usefixtures("no_tables")
def test_few_tables_are_kept():
    x = np.zeros(1 << 17, "f2")
    for number in range(half_tables._TABLES + 5):
        half_tables.look_up("f", lambda x, number: x, (x, number))
    assert len(half_tables._tables.found) == half_tables._TABLES
    for number in range(2 * half_tables._KEYS):
        half_tables.look_up("g", lambda x, number: x, (x[:5000], number))
    assert len(half_tables._tables.asked) <= half_tables._KEYS


def test_in_place_with_history():
    x = torch.linspace(-2, 2, 1 << 16).half().requires_grad_()
    y = x * 1
    y.mul_(3.0).add_(0.5).clamp_(-1, 4)
    y.sum().backward()
    assert torch.equal(x.grad, torch.where((x * 3 + 0.5 >= -1) & (x * 3 + 0.5 <= 4), 3.0, 0.0).half())
