"""Each line answers what PyTorch answered (`tools/record_behaviours.py`)."""

import json

import pytest

import torchlite as torch
from tests.behaviours.replay import ANSWERS, answer, lines

RECORDED = json.loads(ANSWERS.read_text())


def test_every_line_has_an_answer():
    assert sorted(RECORDED) == sorted(lines())


@pytest.mark.parametrize("line", lines())
def test_behaviour(line, device):
    assert answer(torch, line, device) == RECORDED[line]
