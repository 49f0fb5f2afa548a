"""The long forms, for the night: `python -m tests.dtensor.long`."""

from __future__ import annotations

from .starting import start

if __name__ == "__main__":
    for size in (2, 3, 4):
        print(start(size, "rules", "--count", "100", seconds=3000).splitlines()[0], flush=True)
        print(start(size, "checks", seconds=600).splitlines()[-1], flush=True)
    for size in (2, 4):
        print(start(size, "training", "--steps", "50", seconds=3000).splitlines()[0], flush=True)
