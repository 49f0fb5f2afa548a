"""Each program with sparse tensors answers what PyTorch answered (`tools/record_sparse.py`)."""

import json

import pytest

import torchlite as torch
from tests.sparse.replay import ANSWERS, DTYPES, LAYOUTS, answer, programs

RECORDED = json.loads(ANSWERS.read_text())


def _same(layout, found, recorded) -> bool:
    if recorded[-1] == "refused":  # so may we, of COO in PyTorch's words; of other layouts we do more than it
        return found[-1] != "refused" or found == recorded or layout not in ("coo", "uncoalesced")
    if len(recorded) == 2 and isinstance(recorded[1], str):  # its backward refused
        return found[:1] == recorded[:1]
    return found == recorded


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_programs_answer_as_in_pytorch(layout, dtype, device):
    lines = RECORDED[f"{layout} {dtype}"]
    asked = [line for where, name, line in programs() if (where, name) == (layout, dtype)]
    assert asked == list(lines)
    wrong = {}
    for line in asked:
        found = json.loads(json.dumps(answer(torch, layout, dtype, line, device)))
        if not _same(layout, found, lines[line]):
            wrong[line] = found, lines[line]
    assert not wrong
