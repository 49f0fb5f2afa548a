"""The long forms, for the night: `python -m tests.distributed.tensor.nightly`."""

from __future__ import annotations

from .world_launcher import start

if __name__ == "__main__":
    for size in (2, 3, 4):
        print(start(size, "op_checks", "--count", "100", seconds=3000).splitlines()[0], flush=True)
        print(start(size, "dtensor_checks", seconds=600).splitlines()[-1], flush=True)
    for size in (2, 4):
        print(start(size, "training", "--steps", "50", seconds=3000).splitlines()[0], flush=True)
