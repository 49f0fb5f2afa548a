"""Programs of the folder's cases answer what PyTorch answered (`tools/record_quantization.py`)."""

from __future__ import annotations

import json

import pytest

import torchlite as torch
from tests.ao.pruning import cases
from tests.ao.quantization.cases import answer
from tests.ao.quantization.test_recorded_answers import differences

RECORDED = json.loads(cases.ANSWERS.read_text())


def test_all_programs_are_recorded():
    assert list(RECORDED) == list(cases.PROGRAMS)


@pytest.mark.parametrize("name", cases.PROGRAMS)
def test_programs_answer_as_in_pytorch(name):
    found = json.loads(json.dumps(answer(torch, name, cases.PROGRAMS)))
    assert differences(found, RECORDED[name]) == []
