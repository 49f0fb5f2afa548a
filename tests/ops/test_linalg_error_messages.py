"""Bad input to products, solvers, decompositions and transforms gets PyTorch's exception type and the first line of its
message.

linalg_error_calls.txt has a call per line, and linalg_error_messages.json PyTorch's answer to each
(tools/record_expressions.py).
"""

from __future__ import annotations

import json
import pathlib
import warnings

import pytest

import torchlite as torch

FILE = pathlib.Path(__file__).with_name("linalg_error_messages.json")
CALLS = FILE.with_name("linalg_error_calls.txt").read_text().splitlines()
RECORDED = json.loads(FILE.read_text())


def answer(lib, call):
    """The type of the error that a call raises in a library, and the first line of its message; None without one."""

    def ones(*size, dtype="float32"):
        return lib.ones(size[0] if size and isinstance(size[0], tuple) else size, dtype=getattr(lib, dtype))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            eval(call, {"ones": ones, "torch": lib})
        except Exception as error:
            return [type(error).__name__, str(error).split("\n")[0]]
    return None


@pytest.mark.parametrize("call", CALLS)
def test_errors_are_pytorchs(call):
    assert answer(torch, call) == RECORDED[call]
