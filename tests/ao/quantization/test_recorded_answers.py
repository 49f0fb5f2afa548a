"""Programs that observe, round and train answer what PyTorch answered (`tools/record_quantization.py`)."""

from __future__ import annotations

import json
from typing import Any

import pytest

import torchlite as torch
import torchlite.ao.nn.intrinsic.qat
import torchlite.ao.nn.qat.dynamic
from tests.ao.quantization import cases

ON_THE_HOST = {"drawn_numbers"}  # each device has its own random numbers
RECORDED = json.loads(cases.ANSWERS.read_text())


def differences(found: Any, wanted: Any, place: str = "") -> list[str]:
    """Where two results differ: numbers by more than a hundred-thousandth."""
    if isinstance(found, dict) and isinstance(wanted, dict) and list(found) == list(wanted):
        return [line for key in found for line in differences(found[key], wanted[key], f"{place}.{key}")]
    if isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        return [line for i in range(len(found)) for line in differences(found[i], wanted[i], f"{place}[{i}]")]
    if isinstance(found, float) and isinstance(wanted, float):
        return [] if found == pytest.approx(wanted, rel=1e-5, abs=1e-6) else [f"{place}: {found} != {wanted}"]
    return [] if found == wanted else [f"{place}: {found} != {wanted}"]


def test_all_programs_are_recorded():
    assert list(RECORDED) == list(cases.PROGRAMS)


@pytest.mark.parametrize("name", cases.PROGRAMS)
def test_programs_answer_as_in_pytorch(name, device):
    with torch.device("cpu" if name in ON_THE_HOST else device):
        found = json.loads(json.dumps(cases.answer(torch, name)))
    assert differences(found, RECORDED[name]) == []
