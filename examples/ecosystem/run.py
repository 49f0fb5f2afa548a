"""Run the programs here and compare their numbers with PyTorch's, which `recorded/` has: `python run.py [names]`.

With `--record` under PyTorch itself the numbers are written anew.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
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


def differs(mine: list[float], theirs: list[float]) -> bool:
    """Whether numbers are not the same within the tolerance."""
    return len(mine) != len(theirs) or not all(
        (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        for a, b in zip(mine, theirs, strict=True)
    )


def compare(name: str) -> bool:
    """Run one program; whether all its numbers are PyTorch's."""
    started = time.perf_counter()
    text, error = output(name)
    mine, theirs = read(text), read((HERE / "recorded" / f"{name}.txt").read_text())
    wrong = [key for key in theirs if key in mine and differs(mine[key], theirs[key])]
    missing = [key for key in theirs if key not in mine]
    equal = len(theirs) - len(wrong) - len(missing)
    print(f"{name:14} {equal:3} of {len(theirs):3} numbers, {time.perf_counter() - started:5.1f} s", flush=True)
    for key in wrong:
        print(f"    {key}: {mine[key]}, PyTorch {theirs[key]}")
    if missing:
        print(f"    not reached: {', '.join(missing[:8])}{' ...' * (len(missing) > 8)}")
    if error:
        print("    " + "\n    ".join(error.strip().splitlines()[-6:]))
    return not (wrong or missing or error)


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
        equal = [compare(name) for name in names]
        return 0 if all(equal) else 1
    for name in names:
        text, error = output(name)
        if error:
            print(error, file=sys.stderr)
            return 1
        (HERE / "recorded" / f"{name}.txt").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
