"""Random programs compiled against eager, bit for bit, and random networks from files, optimized against not.

For the night: `python -m tests.dynamo.nightly --count 2000`.
"""

from __future__ import annotations

import argparse
import warnings

import torchlite as torch
from torchlite._dynamo.compiled_function import CompiledFunction

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
    far, served = [], 0
    for seed in range(count):
        gap, replays = difference(seed, FORMATS[seed % 3])
        served += replays > 0
        if not gap < 3e-5:
            far.append((seed, gap))
        torch._dynamo.reset()
    print(f"{served} of {count} networks replayed; different: {far or 'none'}")
    return 1 if wrong or far else 0


if __name__ == "__main__":
    raise SystemExit(main())
