"""The decorator `parsed`: functions that are no records take the calls of PyTorch's parser."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite._dispatch.parsed_functions import parsed


@parsed("sspaddmm")
def record(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    return beta, alpha


@pytest.fixture
def x():
    return torch.ones(2, 2)


def test_forms(x):
    assert record(x, x, x) == (1, 1)
    assert record(x=x, mat1=x, mat2=x, alpha=3) == (1, 3)
    assert record.parsed_as == "sspaddmm" and record.__name__ == "record"


@pytest.mark.filterwarnings("ignore:This overload:UserWarning")
def test_a_deprecated_form_has_another_order(x):
    assert torch.sspaddmm(2, x.to_sparse(), x.to_sparse(), x).to_dense().tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_other_calls_are_errors_of_the_parser(x):
    with pytest.raises(TypeError, match="sspaddmm\\(\\) received an invalid combination of arguments"):
        record(x, x, x, x, x, x, x)
    with pytest.raises(TypeError, match="argument 'input' \\(position 1\\) must be Tensor, not int"):
        torch.is_signed(1)


def test_an_error_of_the_function_itself_stays():
    @parsed("is_signed")
    def broken(input):
        raise TypeError("within")

    with pytest.raises(TypeError, match="within"):
        broken(torch.ones(1))
