"""PyTorch's own error inputs of its tables of ops, modules and optimizers: torchlite raises the same type, and mostly
in the same words.

The answers are those of PyTorch 2.13 (tools/record_error_inputs.py). What differs is listed in `known.txt`, a line each
with what differs and why; an entry that no longer differs fails the test, as does a difference that is not listed.
"""

from __future__ import annotations

import pytest

import torchlite as torch

from . import replay

WANTED = {"type": 0.97, "words": 0.85}


def known(device: str) -> dict[tuple[str, int], str]:
    """{(table, number of the case): "type" or "words"} of a device; entries with a star hold on all devices."""
    found = {}
    for line in (replay.HERE / "known.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            where, table, number, what = line.split()[:4]
            if where in ("*", device.partition(":")[0]):
                found[table, int(number)] = what
    return found


def differences(table: str, device: str) -> dict[tuple[str, int], str]:
    """Return the difference: "type" or "words"."""
    found = {}
    for number, case in enumerate(replay.cases(table)):
        kind, words = replay.answer(torch, case, device)
        if kind != case["error"][0]:
            found[table, number] = "type"
        elif replay.first_line(words) != replay.first_line(case["error"][1]):
            found[table, number] = "words"
    return found


@pytest.mark.usefixtures("errors_at_once")
@pytest.mark.parametrize("table", replay.TABLES)
def test_the_same_errors(table, device):
    found = differences(table, device)
    listed = {key: what for key, what in known(device).items() if key[0] == table}
    cases = replay.cases(table)
    new = {
        f"{number} {cases[number]['call']}": what
        for (_, number), what in found.items()
        if (table, number) not in listed
    }
    assert not new
    assert {number for _, number in listed} <= {number for _, number in found}, "entries of known.txt that are mended"
    types = sum(what == "type" for what in found.values())
    assert 1 - types / len(cases) >= WANTED["type"]
    assert 1 - len(found) / len(cases) >= WANTED["words"]
