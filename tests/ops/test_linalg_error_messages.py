"""Bad input to products, solvers, decompositions and transforms gets PyTorch's exception type and the first line of its
message.

tests/ops/linalg_error_messages.json holds the calls and what PyTorch 2.13 says to them.
"""

from __future__ import annotations

import json
import pathlib
import warnings

import pytest

import torchlite as torch

CASES = json.loads(pathlib.Path(__file__).with_name("linalg_error_messages.json").read_text())


def ones(*size, dtype="float32"):
    """Ones of a dtype given by name."""
    return torch.ones(*size, dtype=getattr(torch, dtype))


@pytest.mark.parametrize("expression,kind,words", CASES, ids=[case[0] for case in CASES])
def test_words(expression, kind, words):
    with warnings.catch_warnings(), pytest.raises(Exception) as caught:
        warnings.simplefilter("ignore")
        eval(expression, {"ones": ones, "torch": torch})
    assert type(caught.value).__name__ == kind
    assert str(caught.value).split("\n")[0] == words
