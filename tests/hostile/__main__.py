"""`python -m tests.hostile`: 25,000 damaged and hostile checkpoints by path, 4,000 each by mmap and from memory.

Nothing may be executed, crash, hang or take memory that the file does not have, and every error is of one of four types
and names the record. Prints what is not so, and ends with status 1 then.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys

_LIMIT = 4 << 30  # bytes of addresses of the process that loads


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_LIMIT, _LIMIT))


def run(seed: int, numbers: range, way: str) -> list[str]:
    """Return the faults in loading the files of these numbers. If a process dies, continue after its file."""
    wrong: list[str] = []
    first = numbers.start
    while first < numbers.stop:
        asked = (seed, first, numbers.step, numbers.stop, way)
        done = subprocess.run(
            [sys.executable, "-m", "tests.hostile.loader_process", *map(str, asked)],
            capture_output=True, text=True, errors="replace", preexec_fn=_limited, check=False,
        )  # fmt: skip
        lines = done.stdout.splitlines()
        wrong += [f"{way}: {line.removeprefix('wrong ')}" for line in lines if line.startswith("wrong ")]
        if done.returncode == 0:
            break
        at = max((int(line.split()[1]) for line in lines if line.startswith("at ")), default=first)
        said = (done.stderr.strip().splitlines() or ["nothing"])[0]
        wrong.append(f"{way}: {at} ended the process with status {done.returncode}: {said}")
        first = at + numbers.step
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=25_000, help="files by path")
    parser.add_argument("--others", type=int, default=4_000, help="files by mmap, and as many from memory")
    parser.add_argument("--only", type=int, help="one number, by path")
    arguments = parser.parse_args()
    ways = {"path": arguments.count, "mmap": arguments.others, "buffer": arguments.others}
    if arguments.only is not None:
        ranges = {"path": range(arguments.only, arguments.only + 1)}
    else:
        ranges = {way: range(count) for way, count in ways.items()}
    wrong = []
    for way, numbers in ranges.items():
        found = run(arguments.seed, numbers, way)
        print(f"{len(numbers)} files by {way}: {len(found)} wrong", *found[:60], sep="\n    ", flush=True)
        wrong += found
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
