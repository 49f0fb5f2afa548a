"""Random programs compiled against eager, bit for bit, and random networks from files, optimized against not. Gradients
of programs with graph breaks may differ by the order of sums.

For the night: `python -m tests.dynamo.nightly --count 2000`.
"""

from __future__ import annotations

import argparse
import pathlib
import tempfile
import types
import warnings

import torchlite as torch
from torchlite._dynamo.compiled_function import CompiledFunction

from . import random_breaks, random_effects
from .random_networks import FORMATS, difference
from .test_random_programs import outcome, program


def main() -> int:
    """How many programs were replayed, and those that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    count = parser.parse_args().count
    replayed, wrong = 0, []
    warnings.simplefilter("ignore")
    for seed in range(count):
        function = program(seed)
        frame = CompiledFunction(function, f"program{seed}")
        mine, theirs = torch.zeros(4), torch.zeros(4)
        for call in range(6):
            found = outcome(frame, mine, call % 4, seed % 2 == 1)
            if found != outcome(function, theirs, call % 4, seed % 2 == 1):
                wrong.append((seed, call))
                break
        replayed += frame.replays > 0
    print(f"{replayed} of {count} replayed; different: {wrong or 'none'}")
    broken = programs_with_breaks(count, random_breaks) + programs_with_breaks(5 * count // 2, random_effects)
    far, served = [], 0
    for seed in range(count):
        gap, replays = difference(seed, FORMATS[seed % 3])
        served += replays > 0
        if not gap < 3e-5:
            far.append((seed, gap))
        torch._dynamo.reset()
    print(f"{served} of {count} networks replayed; different: {far or 'none'}")
    return 1 if wrong or broken or far else 0


def programs_with_breaks(count: int, programs: types.ModuleType) -> list:
    """Run programs with graph breaks. Return those that differ from eager."""
    wrong, replayed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(count):
            text, replays = programs.difference(seed, pathlib.Path(folder))
            replayed += replays > 0
            if text:
                wrong.append((seed, text))
            torch._dynamo.reset()
    print(
        f"{replayed} of {count} {programs.__name__.rpartition('.')[2]} replayed in parts; different: {wrong or 'none'}"
    )
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
