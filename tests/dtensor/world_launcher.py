"""Starts the programs of this folder on several processes."""

from __future__ import annotations

import sys

from tests.distributed.rank_launcher import finish, mpiexec


def start(size: int, program: str, *args: str, seconds: float = 150) -> str:
    """Run `python -m tests.dtensor.PROGRAM` on `size` ranks: what they said. AssertionError where one failed."""
    name = mpiexec()
    assert name is not None
    command = [name, "-n", str(size), sys.executable, "-W", "ignore", "-m", f"tests.dtensor.{program}", *args]
    ended = finish(command, seconds)
    assert ended.returncode == 0, ended.stdout
    return ended.stdout
