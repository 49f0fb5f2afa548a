"""Starts programs in several processes, for tests that need them, with a limit for the time that they may take."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def mpiexec() -> str | None:
    """The mpiexec beside this Python, or on the path."""
    beside = pathlib.Path(sys.executable).with_name("mpiexec")
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("mpiexec")


MISSING = "" if importlib.util.find_spec("mpi4py") and mpiexec() else "mpi4py or mpiexec is missing (the extra 'mpi')"
needs_mpi = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def environment(**more: str) -> dict[str, str]:
    """The environment of started processes: none of this one's own world, and this checkout on their path."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI", "TORCHELASTIC"))}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        own.pop(name, None)
    path = os.pathsep.join([str(ROOT), str(ROOT / "backends"), *filter(None, [own.get("PYTHONPATH")])])
    rooted = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # which Open MPI asks of containers
    return {**own, **rooted, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "TORCHLITE_CPU_KERNELS": "numpy", **more}


def finish(command: list[str], seconds: float = 60, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; what it started ends with it when the time is up."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(**more), cwd=ROOT,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        raise AssertionError(f"{command} took over {seconds} s; it said:\n{output}") from None
    return subprocess.CompletedProcess(command, process.returncode, output)


def start(size: int, program: str, *args: str, seconds: float = 60) -> str:
    """Run `python -m tests.distributed.PROGRAM` on `size` ranks and return their output.

    Raise AssertionError if one fails.
    """
    name = mpiexec()
    assert name is not None
    command = [name, "-n", str(size), sys.executable, "-m", f"tests.distributed.{program}", *args]
    ended = finish(command, seconds)
    assert ended.returncode == 0, ended.stdout
    return ended.stdout
