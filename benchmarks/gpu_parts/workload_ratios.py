"""The workloads of the shared folder under torchlite and under torch, in turn (`ratio.py`), in groups, so that a crash
or a time limit costs one group.
"""

from __future__ import annotations

import re
import time

from . import Options, Result, here, library, output_of, python, say

# Workloads that run in one program, and how often.
GROUPS = (("smallops,mlp", 1), ("gpt", 1), ("resnet50", 1), ("bert,resnet18", 1), ("lstm,bigops", 1))
QUICK = (("mlp", 1),)
_ROW = re.compile(r"^(\S+)\s+(missing|[\d.e+-]+)\s+([\d.e+-]+)\s+(-|[\d.e+-]+|nan|inf)(?:\s+(\S+))?$")
_ALONE = re.compile(r"^(\S+) ([\d.e+-]+) (\S+)$")


def reference_of(options: Options) -> str:
    """torch's device: the same GPU, else the CPU; empty without torch."""
    if not here("torch"):
        return ""
    return options.device if options.kind == "cuda" and library("torch").cuda.is_available() else "cpu"


def rows_of(text: str) -> list[dict]:
    """The rows that ratio.py printed: {"name", "torchlite", "torch", "unit"}."""
    rows = []
    for line in text.splitlines():
        match = _ROW.match(line.strip())
        if match:
            mine = None if match[2] == "missing" else float(match[2])
            rows.append({"name": match[1], "torchlite": mine, "torch": float(match[3]), "unit": match[5] or ""})
    return rows


def alone(text: str) -> list[dict]:
    """The rows that workloads.py printed under torchlite, where there is no torch."""
    found = [_ALONE.match(line.strip()) for line in text.splitlines()]
    return [{"name": m[1], "torchlite": float(m[2]), "torch": None, "unit": m[3]} for m in found if m]


def run(options: Options, result: Result) -> None:
    ratio, workloads = options.shared_file("bench", "ratio.py"), options.shared_file("bench", "workloads.py")
    if ratio is None or workloads is None:
        result.put(left_out=f"{options.shared}/bench is not there")
        return
    reference = reference_of(options)
    if not reference:
        result.put(note="torch is not installed: torchlite's times stand alone")
    result.put(rows=[], failed=[], reference=reference)
    groups = QUICK if options.quick else GROUPS
    for number, (only, rounds) in enumerate(groups):
        limit = (result.left(options) - 3) / (len(groups) - number) * (1.0 if number == len(groups) - 1 else 1.5)
        say(f"{only} …")
        if reference:
            command = [
                python(),
                str(ratio),
                python(),
                "torchlite",
                python(),
                "torch",
                "--rounds",
                str(rounds),
                "--candidate-device",
                options.device,
                "--reference-device",
                reference,
                "--",
                "--only",
                only,
            ]
        else:
            command = [python(), str(workloads), "torchlite", "--device", options.device, "--only", only]
        begun = time.monotonic()
        status, text = output_of(command, limit)
        rows = (rows_of if reference else alone)(text)
        for row in rows:
            row["group"] = only
            say(f"{row['name']}: torchlite {row['torchlite']}, torch {row['torch']} {row['unit']}")
        said = [line.strip() for line in text.splitlines() if "FAILED" in line or re.search(r": exit -?\d+", line)]
        problems = [line for line in said if not line.startswith("torch:")]
        if status is None:
            problems.append(f"{only}: the time limit of {limit:.0f} s")
        elif status or not rows:
            problems.append(f"{only}: status {status}: {' / '.join(text.strip().splitlines()[-3:])}")
        problems += [f"{row['name']}: torchlite did not run it" for row in rows if row["torchlite"] is None]
        for line in problems:
            say(f"FAILED {line}")
        for line in said:
            if line.startswith("torch:"):  # a row without torch's time
                result.add("notes", line)
        result.put(rows=result.found["rows"] + rows, failed=result.found["failed"] + problems)
        say(f"({time.monotonic() - begun:.0f} s)")
