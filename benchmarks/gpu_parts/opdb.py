"""PyTorch's own table of operators (`opdb.py` of the conformance folder), in several programs at once; rows that fail
on the CPU too are told apart.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from . import ROOT, Options, Result, here, plain_environment, program, python, say

# Each name is in one of them.
SHARES = (
    "^[ab]", "^c", "^[de]", "^fft", "^[f-k](?!ft)", "^linalg", "^l(?!inalg)", "^m", r"^nn\.functional\.[a-c]",
    r"^nn\.functional\.[d-l]", r"^nn\.functional\.[m-z]", r"^n(?!n\.f)|^[o-r]", "^s(?!pecial)", "^special|^[t-zA-Z_]",
)  # fmt: skip
QUICK = ("^(add|softmax|cumsum)$", "^(matmul|sort)$")


def command(script: Path, options: Options, device: str, only: str, output: Path) -> list[str]:
    """How a share of the table is run."""
    words = [
        python(),
        "-m",
        "gpu_parts.full_precision_conv",
        str(script),
        "torchlite",
        "--device",
        device,
        "--dtypes",
        "float32",
        "--backward",
        "--public-only",
        "--only",
        only,
        "--json",
        str(output),
    ]
    if device.split(":")[0] == "cuda":
        # Its rows would run in a child: torch's tables, imported by the parent, open CUDA, and what is open does not
        # survive a fork.
        words.append("--in-process")
    return [*words, "--max-samples", "2" if options.quick else "6", "--timeout", "15"]


def run_all(commands: dict[Path, list[str]], together: int, until: float) -> list[str]:
    """Run the programs, some at a time; the problems of those that did not end well."""
    waiting, problems = list(commands.items()), []
    with ExitStack() as stack:
        running: dict[Path, subprocess.Popen] = {}
        while waiting or running:
            while waiting and len(running) < together:
                output, words = waiting.pop(0)
                log = stack.enter_context(open(output.with_suffix(".log"), "w"))
                running[output] = stack.enter_context(
                    program(words, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, env=plain_environment())
                )
            time.sleep(0.05)
            for output, process in list(running.items()):
                if process.poll() is not None:
                    del running[output]
                    lines = output.with_suffix(".log").read_text(errors="replace").strip().splitlines()
                    say(lines[-1] if lines else "(no output)")
                    if process.returncode or not output.exists():
                        problems.append(f"opdb.py ended with status {process.returncode}: {lines[-1] if lines else ''}")
            if time.monotonic() > until:
                unfinished = len(waiting) + len(running)
                if unfinished:
                    problems.append(
                        f"the time limit: {unfinished} of {len(commands)} shares of the table were not finished"
                    )
                break
    return problems


def rows_of(outputs) -> list[dict]:
    """The counted rows of some programs' results."""
    rows = [row for output in outputs if output.exists() for row in json.loads(output.read_text())["rows"]]
    return [row for row in rows if row["bucket"] == "public" and row["ok"] is not None]


def label(row: dict) -> str:
    return f"{row['part']} {row['name']}[{row['dtype']}]"


def reason(row: dict) -> str:
    first = (row.get("reasons") or [{}])[0]
    return " ".join(f"{first.get('kind', '')}: {first.get('what', '')} {first.get('detail', '')}".split())[:300]


def run(options: Options, result: Result) -> None:
    script = options.shared_file("conformance", "opdb.py")
    if script is None:
        result.put(left_out=f"{options.shared}/conformance/opdb.py is not there")
        return
    if not here("torch"):
        result.put(left_out="torch, the oracle, is not installed")
        return
    if not here("expecttest"):
        result.put(left_out="expecttest, which torch's test tables need, is not installed")
        return
    folder = result.path.parent
    until = result.begun + options.limit - 4
    shares = QUICK if options.quick else SHARES
    commands = {
        folder / f"opdb-{n}.json": command(script, options, options.device, only, folder / f"opdb-{n}.json")
        for n, only in enumerate(shares)
    }
    problems = run_all(commands, max(1, min(options.workers, len(commands))), until - 12)
    rows = rows_of(commands)
    bad = [row for row in rows if not row["ok"]]
    result.put(counts=_counts(rows), failed=problems + [f"{label(row)}: {reason(row)}" for row in bad])
    elsewhere = _also_on_cpu(script, options, bad, folder, until) if options.kind != "cpu" else set()
    result.put(
        on_cpu_too=sorted(elsewhere),
        failed=problems + [f"{label(row)}: {reason(row)}" for row in bad if label(row) not in elsewhere],
        seconds=round(time.monotonic() - result.begun, 1),
    )
    for line in result.found["failed"]:
        say(f"FAILED {line}")
    if elsewhere:
        say(f"fail on the CPU too: {', '.join(sorted(elsewhere))}")
    if not rows and not problems:
        result.put(failed=["no row was compared"])


def _counts(rows: list[dict]) -> dict[str, list[int]]:
    """{"forward": [rows that pass, rows], …}."""
    parts = dict.fromkeys(row["part"] for row in rows)
    return {
        part: [sum(row["ok"] for row in rows if row["part"] == part), sum(row["part"] == part for row in rows)]
        for part in parts
    }


def _also_on_cpu(script: Path, options: Options, bad: list[dict], folder: Path, until: float) -> set[str]:
    """The labels of those failing rows that fail with torchlite on the CPU as well."""
    names = sorted({row["name"] for row in bad})
    if not names or len(names) > 60:  # so many are the device's
        return set()
    output = folder / "opdb-cpu.json"
    only = "^(" + "|".join(re.escape(name) for name in names) + ")$"
    run_all({output: command(script, options, "cpu", only, output)}, 1, until)
    return {label(row) for row in rows_of([output]) if not row["ok"]} & {label(row) for row in bad}
