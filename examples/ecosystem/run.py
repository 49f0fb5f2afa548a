"""Run the programs here and compare their numbers with PyTorch's, which `recorded/` has: `python run.py [names]`.

A table is printed, and 0 returned where every number is PyTorch's within the tolerance. With `--record` under PyTorch
itself the numbers are written anew.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = sorted(path.stem.removeprefix("with_") for path in HERE.glob("with_*.py"))
TOLERANCE = 1e-4


def output(name: str) -> tuple[str, str]:
    """What a program prints, and what it says where it fails."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, str(HERE / f"with_{name}.py")], capture_output=True, text=True, env=environment, check=False
    )
    return done.stdout, "" if done.returncode == 0 else done.stderr


def read(text: str) -> dict[str, list[float]]:
    """The numbers by name."""
    lines = (line.split()[1:] for line in text.splitlines() if line.startswith("= "))
    return {name: [float(number) for number in numbers] for name, *numbers in lines}


def difference(mine: float, theirs: float) -> float:
    """How far two numbers are apart: relative to the recorded one, absolute below 1."""
    if mine == theirs or math.isnan(mine) and math.isnan(theirs):
        return 0.0
    apart = abs(mine - theirs) / max(abs(theirs), 1.0)
    return math.inf if math.isnan(apart) else apart


@dataclass
class Compared:
    """What a program's numbers are beside PyTorch's."""

    name: str
    equal: int
    all: int
    largest: float
    seconds: float
    failed: bool

    def __str__(self) -> str:
        counts = f"{self.equal} of {self.all}"
        verdict = "FAILED" if self.failed else "passed"
        return f"{self.name:22} {counts:>12} {self.largest:12.1e} {self.seconds:8.1f} s  {verdict}"


def compare(name: str) -> Compared:
    """Run one program."""
    started = time.perf_counter()
    text, error = output(name)
    mine, theirs = read(text), read((HERE / "recorded" / f"{name}.txt").read_text())
    equal, largest, complaints = 0, 0.0, []
    for key, numbers in theirs.items():
        found = mine.get(key, [])
        if len(found) != len(numbers):
            complaints.append(f"{key}: {len(found)} numbers, PyTorch {len(numbers)}")
            continue
        apart = max(map(difference, found, numbers), default=0.0)
        largest = max(largest, apart)
        equal += sum(difference(a, b) <= TOLERANCE for a, b in zip(found, numbers, strict=True))
        if apart > TOLERANCE:
            complaints.append(f"{key}: {found}, PyTorch {numbers}")
    complaints += error.strip().splitlines()[-6:]
    count, seconds = sum(map(len, theirs.values())), time.perf_counter() - started
    result = Compared(name, equal, count, largest, seconds, bool(complaints or error))
    print(result, *complaints[:12], sep="\n    ", flush=True)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], help="programs (default: all)")
    parser.add_argument("--record", action="store_true", help="write the numbers of an installed PyTorch")
    options = parser.parse_args()
    import torch

    is_torchlite = hasattr(torch, "__torchlite_version__")
    if options.record == is_torchlite:
        print("torch is torchlite here" if is_torchlite else "torch is PyTorch here", file=sys.stderr)
        return 1
    names = options.names or NAMES
    if not options.record:
        results = [compare(name) for name in names]
        print(f"\n{'program':22} {'numbers':>12} {'difference':>12} {'time':>10}", *results, sep="\n")
        passed = [result for result in results if not result.failed]
        numbers, largest = sum(result.equal for result in results), max(result.largest for result in results)
        print(f"{len(passed)} of {len(results)} programs, {numbers} numbers, largest difference {largest:.1e}")
        return 0 if len(passed) == len(results) else 1
    for name in names:
        text, error = output(name)
        if error:
            print(error, file=sys.stderr)
            return 1
        lines = [line for line in text.splitlines(keepends=True) if line.startswith("= ")]
        (HERE / "recorded" / f"{name}.txt").write_text("".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
