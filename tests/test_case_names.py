"""Cases are named for their arguments."""

import functools

import numpy as np
import pytest

import torchlite as torch
from tests.case_names import case_name, unnamed
from tests.ops.op_db import ROWS, A, S, load_rows, sample_label


@pytest.mark.parametrize(
    ("value", "parameter", "name"),
    [
        (torch.float16, "dtype", "float16"),
        (np.dtype("int8"), "dtype", "int8"),
        ((2, 3), "shape", "2x3"),
        ((), "shape", "0-d"),
        ((4,), "shape", "shape=4"),
        ((2, 3), "dims", "dims=(2,3)"),
        (True, "keepdim", "keepdim=True"),
        (None, "dim", "dim=None"),
        (-1, "dim", "dim=-1"),
        ({"a": 1, "b": torch.int8}, "options", "options=a=1,b=int8"),
        (torch.ones(2, 3), "x", "float32[2x3]"),
        (lambda x: x.t() + 1, "function", "x.t() + 1"),
        (functools.partial(torch.sum, dim=1), "function", "sum(dim=1)"),
        (torch.nn.Linear, "layer", "Linear"),
        (object(), "thing", "object"),
        (list(range(100)), "numbers", "numbers=[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19.."),
        ("text", "what", "text"),
        ("", "what", "what=''"),
        ("a" * 200, "what", f"{'a' * 98}.."),
    ],
)
def test_names(value, parameter, name):
    assert case_name(value, parameter) == name


def test_collected_cases_are_named_for_their_arguments(request):
    """In this run; `pytest tests` collects all."""
    cases = [item for item in request.session.items if hasattr(item, "callspec")]
    wrong = {item.nodeid: unnamed(item.callspec.id, item.callspec.params) for item in cases}
    assert not [f"{nodeid}: {why}" for nodeid, why in wrong.items() if why]


def test_positions_are_refused():
    assert "lambda" in unnamed("cpu-<lambda>0", {"function": print})
    assert "shape0" in unnamed("cpu-shape0", {"shape": (2,)})
    assert "'3'" in unnamed("3", {"case": print})
    assert unnamed("cpu-i0-3x4", {"name": "i0", "i": 0}) is None
    assert unnamed("2x3-dim=0", {"shape": (2, 3), "dim": 0}) is None


def test_samples_of_an_op():
    load_rows()
    assert sample_label(ROWS["sum"], S((2, 3), 0, keepdim=True)) == "2x3,dim=0,keepdim=True"
    assert sample_label(ROWS["mul"], S(A((3,), dtype="int64"), 2)) == "3:int64,other=2"
    assert sample_label(ROWS["cat"], S([(2, 3), (1, 3)], 0)) == "[2x3,1x3],dim=0"
    assert all(len(set(row.labels)) == len(row.samples) for row in ROWS.values())
