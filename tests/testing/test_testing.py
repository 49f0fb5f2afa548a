"""torch.testing: random tensors and comparisons, with PyTorch's checks and messages (recorded from torch 2.13)."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

import torchlite as torch
from torchlite.testing import assert_close, make_tensor

WRONG_LIMITS = [
    (torch.int32, {"low": 1, "high": 1}, "`low` must be less than `high`, but got 1 >= 1"),
    (torch.float32, {"low": 2, "high": 1}, "`low` must be less than `high`, but got 2 >= 1"),
    (torch.float32, {"low": math.nan}, "`low` and `high` cannot be NaN, but got low=nan and high=9"),
    (
        torch.uint8,
        {"low": 300, "high": 400},
        "The value interval specified by `low` and `high` is [300, 400), but torch.uint8 only supports [0, 256)",
    ),
    (
        torch.bool,
        {"low": 2, "high": 3},
        "The value interval specified by `low` and `high` is [2, 3), but torch.bool only supports [0, 2)",
    ),
    (
        torch.int32,
        {"requires_grad": True},
        "`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype=torch.int32",
    ),
]


@pytest.mark.parametrize("dtype,options,words", WRONG_LIMITS)
def test_limits_that_leave_nothing(dtype, options, words):
    with pytest.raises(ValueError) as caught:
        make_tensor(2, dtype=dtype, device="cpu", **options)
    assert str(caught.value) == words


def test_make_tensor(device):
    draw = {"device": device, "dtype": torch.float32}
    x = make_tensor(2, 3, noncontiguous=True, **draw)
    assert x.shape == (2, 3) and x.stride() == (6, 2) and -9 <= x.min() and x.max() < 9
    assert make_tensor((2, 3, 4, 5), memory_format=torch.channels_last, **draw).stride() == (60, 1, 15, 3)
    assert make_tensor(100, low=-math.inf, high=math.inf, **draw).isfinite().all()
    assert (make_tensor(50, dtype=torch.int64, device=device, low=-1, high=2, exclude_zero=True) != 0).all()
    assert make_tensor(3, dtype=torch.bool, device=device).dtype is torch.bool
    with pytest.warns(FutureWarning, match="Passing `low==high`"):
        assert make_tensor(2, low=1, high=1, **draw).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="mutually exclusive"):
        make_tensor(2, 3, noncontiguous=True, memory_format=torch.contiguous_format, **draw)


def test_make_tensor_values_equal_pytorchs():
    torch.manual_seed(0)
    x = make_tensor(3, dtype=torch.float32, device="cpu")
    assert x.tolist() == [-0.06738138198852539, 4.8279924392700195, -7.407406330108643]
    torch.manual_seed(0)
    assert make_tensor(3, dtype=torch.int32, device="cpu").tolist() == [6, -5, -9]


FAILURES = [
    (
        "assert_close(1, 2)",
        "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5",
    ),
    ("assert_close(1, 1.0)", "The (d)types do not match: <class 'int'> != <class 'float'>."),
    ("assert_close(True, False)", "Booleans mismatch: True is not False"),
    ("assert_close(None, 1)", "None mismatch: None is not 1"),
    (
        "assert_close([1, [1]], [2, [1, 2]])",
        "The length of the sequences mismatch: 1 != 2\n\nThe failure occurred for item [1]",
    ),
    (
        "assert_close(T([1, 2]), T([1, 3]))",
        "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\n"
        "Greatest absolute difference: 1 at index (1,)\n"
        "Greatest relative difference: 0.3333333432674408 at index (1,)",
    ),
    (
        "assert_close({'a': T([1., math.nan])}, {'a': T([1., 2.])})",
        "Tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\n"
        "Greatest absolute difference: nan at index (1,) "
        "(up to 1e-05 allowed)\nGreatest relative difference: nan at index (1,) (up to 1.3e-06 allowed)\n\nThe failure "
        "occurred for item ['a']",
    ),
    (
        "assert_close(T([1.]), T([1.]).double())",
        "The values for attribute 'dtype' do not match: torch.float32 != torch.float64.",
    ),
    ("assert_close(T([1.]), T([2.]), msg='hello')", "hello"),
    ("assert_close({'a': 1}, {'b': 1})", "The keys of the mappings do not match:\nMissing keys in the actual mapping: "
     "['b']\nAdditional keys in the actual mapping: ['a']"),
]  # fmt: skip


@pytest.mark.parametrize("expression,words", FAILURES)
def test_assert_close_messages(expression, words):
    with pytest.raises(AssertionError) as caught:
        eval(expression, {"assert_close": assert_close, "T": torch.tensor, "math": math})
    assert str(caught.value) == words


def test_assert_close_rejects_other_types():
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type <class 'str'>"):
        assert_close("a", "a")
    with pytest.raises(TypeError, match="No comparison pair was able"):
        assert_close(torch.tensor(1.0), 1.0)
    with pytest.raises(
        ValueError, match="Both 'rtol' and 'atol' must be either specified or omitted, but got no atol."
    ):
        assert_close(1, 2, rtol=1)
    assert_close(np.ones(2), np.ones(2))
    assert_close(torch.empty(2, device="meta"), torch.empty(2, device="meta"))
    assert_close(math.nan, math.nan, equal_nan=True)


def test_classes_of_several_results():
    x = torch.tensor([[1.0, 2.0]])
    assert type(torch.max(x, 0)) is torch.return_types.max and torch.return_types.max.n_fields == 2
    assert torch.return_types.linalg_svd in torch.return_types.all_return_types
    assert all(getattr(torch.return_types, kind.__name__) is kind for kind in torch.return_types.all_return_types)
    assert torch.return_types._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.n_fields == 2
    with pytest.raises(AttributeError, match="has no attribute 'add'"):
        _ = torch.return_types.add


@pytest.mark.parametrize("name", ["eig", "lstsq", "matrix_rank", "solve", "symeig"])
def test_removed_functions_raise(name):
    with pytest.raises(RuntimeError, match="This function was deprecated since version 1.9 and is now removed"):
        getattr(torch, name)(torch.eye(2))


def test_unittest_mock_is_loaded():
    program = "import torchlite.testing, unittest; unittest.mock.Mock()"
    subprocess.run([sys.executable, "-c", program], check=True)
