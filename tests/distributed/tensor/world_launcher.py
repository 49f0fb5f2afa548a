"""Starts the programs of this folder on several processes."""

from __future__ import annotations

import sys

from tests.distributed.rank_launcher import finish, mpiexec


def start(size: int, program: str, *args: str, seconds: float = 150) -> str:
    """Run `python -m tests.distributed.tensor.PROGRAM` on `size` ranks and return their output."""
    name = mpiexec()
    assert name is not None
    module = f"tests.distributed.tensor.{program}"
    command = [name, "-n", str(size), sys.executable, "-W", "ignore", "-m", module, *args]
    ended = finish(command, seconds)
    assert ended.returncode == 0, ended.stdout
    return ended.stdout
