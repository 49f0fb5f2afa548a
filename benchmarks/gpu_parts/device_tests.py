"""The device tests: pytest on the device, each outcome kept as it comes, so that a time limit loses none."""

from __future__ import annotations

import collections
import json
import shlex
import subprocess
import time
from pathlib import Path

from . import ROOT, Options, Result, here, plain_environment, program, python, say


def command(options: Options) -> list[str]:
    """How pytest is started."""
    words = [
        python(),
        "-m",
        "pytest",
        "-q",
        "-p",
        "gpu_parts.pytest_recorder",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:benchmark",  # warns when xdist is there, and warnings are errors
        "--tb=short",
        "--device",
        options.device,
        "--device-only",
    ]
    if here("xdist") and options.workers > 1:
        words += ["-n", str(options.workers)]
    return words + shlex.split(options.pytest)


class Outcomes:
    """The file of gpu_parts/pytest_recorder.py, read as it grows."""

    def __init__(self, path: Path):
        self.path, self._at = path, 0
        self.total, self.outcomes, self.messages = 0, {}, {}

    def read(self) -> None:
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            file.seek(self._at)
            text = file.read()
        complete = text[: text.rfind(b"\n") + 1]
        self._at += len(complete)
        for line in complete.splitlines():
            entry = json.loads(line)
            if "total" in entry:
                self.total = max(self.total, entry["total"])
            elif (
                self.outcomes.get(entry["id"]) != "failed"
            ):  # a test that passed and then failed to clean up has failed
                self.outcomes[entry["id"]] = entry["outcome"]
                if entry["outcome"] == "failed":
                    self.messages[entry["id"]] = entry["message"]

    def counts(self) -> dict[str, int]:
        found = collections.Counter(self.outcomes.values())
        return {
            "total": max(self.total, len(self.outcomes)),
            **{name: found[name] for name in ("passed", "failed", "skipped")},
            "not run": max(self.total - len(self.outcomes), 0),
        }


def run(options: Options, result: Result) -> None:
    if not here("pytest"):
        result.put(left_out="pytest is not installed")
        return
    path = result.path.with_suffix(".outcomes")
    seen, log = Outcomes(path), result.path.with_suffix(".log")
    environment = {**plain_environment(), "TORCHLITE_GPU_CHECK_OUTCOMES": str(path)}
    late = False
    with (
        open(log, "w") as output,
        program(command(options), cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=environment) as process,
    ):
        told = time.monotonic()
        while process.poll() is None and not late:
            time.sleep(0.2)
            late = result.left(options) < 3
            if time.monotonic() - told > 10:
                told = time.monotonic()
                seen.read()
                counts = seen.counts()
                result.put(counts=counts, failures=seen.messages)
                say(
                    f"{counts['passed'] + counts['failed'] + counts['skipped']} of {counts['total']} tests, "
                    f"{counts['failed']} failed"
                )
    seen.read()
    counts = seen.counts()
    problems = [f"{name}: {message}" for name, message in seen.messages.items()]
    if late:
        problems.append(f"the time limit of {options.limit:.0f} s: {counts['not run'] or 'all'} tests were not run")
    elif process.returncode not in (0, 1):
        tail = log.read_text(errors="replace").strip().splitlines()[-4:]
        problems.append(f"pytest ended with status {process.returncode}: {' / '.join(tail)}")
    elif not counts["passed"]:
        problems.append("no test ran")
    result.put(
        counts=counts, failures=seen.messages, seconds=round(time.monotonic() - result.begun, 1), failed=problems
    )
    say(", ".join(f"{n} {name}" for name, n in counts.items()))
    for problem in problems[:50]:
        say(f"FAILED {problem}")
