"""torch.testing: random tensors and comparisons, with PyTorch's checks and messages (recorded from torch 2.13)."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

import torchlite as torch
from torchlite.testing import _comparison as comparison
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


TOLERANCES = [
    ("float16", 1e-3, 1e-5), ("bfloat16", 1.6e-2, 1e-5), ("float32", 1.3e-6, 1e-5), ("float64", 1e-7, 1e-7),
    ("complex64", 1.3e-6, 1e-5), ("complex128", 1e-7, 1e-7), ("int32", 0, 0), ("bool", 0, 0), ("qint8", 1.3e-6, 1e-5),
]  # fmt: skip


@pytest.mark.parametrize("name,rtol,atol", TOLERANCES)
def test_default_tolerances(name, rtol, atol):
    assert comparison.get_tolerances(getattr(torch, name), rtol=None, atol=None) == (rtol, atol)
    both = comparison.get_tolerances(torch.ones(1), getattr(torch, name), rtol=None, atol=None)
    assert both == (max(rtol, 1.3e-6), 1e-5)
    assert comparison.get_tolerances(getattr(torch, name), rtol=2.0, atol=0.0) == (2.0, 0.0)


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


def test_a_message_is_for_values_and_not_for_structures():
    with pytest.raises(AssertionError, match="^The length of the sequences mismatch: 1 != 2$"):
        assert_close([1], [1, 2], msg="hello")
    with pytest.raises(AssertionError, match="hello.*not equal.*item \\[1\\]"):
        assert_close([1, 1], [1, 2], msg=lambda text: "hello " + text.replace("\n", " "))


def test_all_differences_are_found():
    pairs = (comparison.NumberPair, comparison.TensorLikePair, comparison.ObjectPair)
    values = [1, {"b": torch.ones(2), "a": "x"}, 2.0], [1, {"b": torch.zeros(2), "a": "y"}, 2.5]
    found = comparison.not_close_error_metas(*values, pair_types=pairs)
    assert [error.id for error in found] == [(1, "a"), (1, "b"), (2,)]
    assert [error.type for error in found] == [AssertionError] * 3
    assert str(found[0].to_error()) == "x != y\n\nThe failure occurred for item [1]['a']"
    assert str(found[1].to_error("hello")) == "hello"
    assert not comparison.not_close_error_metas(values, values, pair_types=pairs)


def test_pairs_of_a_program():
    class Length(comparison.Pair):
        def __init__(self, actual, expected, **options):
            self._check_inputs_isinstance(actual, expected, cls=str)
            super().__init__(actual, expected, **options)

        def compare(self):
            if len(self.actual) != len(self.expected):
                self._fail(AssertionError, "lengths")

    class Rounded(comparison.TensorLikePair):
        def _process_inputs(self, actual, expected, *, id, allow_subclasses):
            return tuple(self._to_tensor(x).round() for x in (actual, expected))

    pairs = (Length, Rounded)
    assert not comparison.not_close_error_metas(["a", 1.1], ["b", torch.tensor(0.9)], pair_types=pairs)
    (error,) = comparison.not_close_error_metas(["ab", [1.0]], ["a", [1.2]], pair_types=pairs)
    assert error.id == (0,) and error.msg == "lengths"
    with pytest.raises(TypeError, match="able to handle inputs of type <class 'object'> and <class 'int'>"):
        comparison.not_close_error_metas(object(), 1, pair_types=pairs)


def test_quantized_and_float8_tensors():
    one, other = (torch.quantize_per_tensor(torch.tensor([1.0, x]), 0.1, 0, torch.qint8) for x in (2.0, 2.5))
    assert_close(one, one.clone())
    with pytest.raises(AssertionError, match=r"^Quantized tensor-likes are not close!(.|\n)*0\.5 at index \(1,\)"):
        assert_close(one, other)
    with pytest.raises(AssertionError, match="'is_quantized' do not match: True != False"):
        assert_close(one, one.dequantize())
    channels = torch.quantize_per_channel(torch.ones(2), torch.full((2,), 0.1), torch.zeros(2).long(), 0, torch.qint8)
    with pytest.raises(AssertionError, match=r"'qscheme\(\)' do not match"):
        assert_close(one, channels)
    small = torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn)
    assert_close(small, small.clone())
    with pytest.raises(AssertionError, match="Rtol=0.1 and atol=0.1 are not supported for bitwise comparison"):
        assert_close(small, small, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("name", ["__init__", "compare"])
def test_a_comparison_that_breaks_is_no_difference(name, monkeypatch):
    def breaks(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr(comparison.TensorLikePair, name, breaks)
    with pytest.raises(RuntimeError, match="resulted in the unexpected exception above"):
        assert_close(torch.ones(1), torch.ones(1))


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
