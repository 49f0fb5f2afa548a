"""Contestants of a benchmark, and the worker processes in which they run."""

from __future__ import annotations

import atexit
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import Any

from .workloads.workload_names import OTHER_LIBRARIES

WORKLOADS = pathlib.Path(__file__).with_name("workloads")
RIVALS = ("torch", *OTHER_LIBRARIES)
ENGINE = "TORCHLITE_CPU_KERNELS"
# Environment variables by which libraries limit their threads.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POCL_MAX_PTHREAD_COUNT")


class ContestantError(Exception):
    """A worker process failed; the message says why."""


@dataclasses.dataclass(frozen=True)
class Contestant:
    """A module under an interpreter; for torchlite also an engine ("" for its default)."""

    label: str
    module: str
    python: str = sys.executable
    engine: str = ""
    device: str = "cpu"
    variables: tuple[tuple[str, str], ...] = ()


def torchlite_contestants(engines: Sequence[str], device: str) -> list[Contestant]:
    """Return torchlite as it runs here, once for each engine."""
    return [
        Contestant(f"torchlite {engine}" if engine else "torchlite", "torchlite", engine=engine, device=device)
        for engine in engines or [""]
    ]


def rivals(wanted: Sequence[str] | None, pythons: Sequence[str], device: str) -> list[Contestant]:
    """Return the libraries to compare with: each module in `wanted` (None: all known) under the first interpreter that
    has it.

    `torchlite` means that of another interpreter, or the same again. ContestantError if a requested one is not found.
    """
    theirs = device if device.startswith("cuda") else "cpu"
    found = []
    for name in RIVALS if wanted is None else wanted:
        own = [] if name == "torchlite" and pythons else [sys.executable]
        python = next((p for p in [*own, *pythons] if _has_module(p, name)), None)
        if python:
            label = "torchlite, the other" if name == "torchlite" else name
            variables = tuple(_device_environment(name, device).items())
            found.append(Contestant(label, name, python, "", "" if name in OTHER_LIBRARIES else theirs, variables))
        elif wanted is not None:
            where = " or ".join([*own, *pythons])
            raise ContestantError(
                f"{where} has no {name}: install it, or name an interpreter that has it by --reference-python"
            )
    return found


def _device_environment(name: str, device: str) -> dict[str, str]:
    """Return environment variables that select torchlite's device for a library without device arguments."""
    kind, _, index = device.partition(":")
    if name == "jax":
        return {"JAX_PLATFORMS": "cuda" if kind == "cuda" else "cpu"}
    if name != "tinygrad":
        return {}
    if kind != "opencl":
        return {"DEV": "CUDA" if kind == "cuda" else "CPU", "TRAINING": "1"}
    from ..._dispatch.backend_registry import backend_of

    folder = tempfile.mkdtemp(prefix="torchlite-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    backend: Any = backend_of("opencl")
    return {"DEV": "CL", "TRAINING": "1", **backend.icd_environment(int(index or 0), folder)}


def _has_module(python: str, module: str) -> bool:
    """True if an interpreter has a module, as far as visible without importing it; a `torch` that is torchlite does not
    count.
    """
    code = (
        "import importlib.util as u, os, sys; s = u.find_spec(sys.argv[1]); o = s and s.origin;"
        "print(bool(o) and not (sys.argv[1] == 'torch' and 'torchlite' in open(o).read(5000)))"
    )
    try:
        done = subprocess.run(
            [python, "-c", code, module], capture_output=True, text=True, env=_environment(python), check=False
        )
    except OSError as error:
        raise ContestantError(f"--reference-python {python}: {error.strerror or error}")
    return done.stdout.strip() == "True"


def _environment(python: str) -> dict[str, str]:
    """Return this process's environment; for this interpreter also its path, so that the same torchlite is found."""
    environment = dict(os.environ)
    if python == sys.executable:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    return environment


class Worker:
    """Worker process that runs a contestant's workloads; a context manager.

    A workload's rows are sequential: `make`, then `advance` until it returns an empty name, and any number of `measure`
    calls in between. Each raises ContestantError with the process's message.
    """

    def __init__(self, contestant: Contestant, threads: int, scale: float = 1.0, limit: float = 300.0):
        self.contestant, self.limit = contestant, limit
        environment = _environment(contestant.python) | {name: str(threads) for name in _THREADS}
        onednn = ""
        if contestant.engine:
            environment[ENGINE], _, dnn = contestant.engine.partition("+")
            onednn = "on" if dnn else "off"
        environment.update(contestant.variables)
        words = [contestant.module, "--serve", "--device", contestant.device or "cpu", "--scale", str(scale)]
        words += ["--threads", str(threads), "--onednn", onednn]
        self.process = subprocess.Popen(
            [contestant.python, str(WORKLOADS), *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        if not contestant.device and hasattr(os, "sched_setaffinity"):
            # A library without a thread limit may use as many cores.
            os.sched_setaffinity(self.process.pid, sorted(os.sched_getaffinity(0))[:threads])
        self.answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.errors: collections.deque[str] = collections.deque(maxlen=5)
        for stream, keep in ((self.process.stdout, self.answers.put), (self.process.stderr, self.errors.append)):
            threading.Thread(target=self._read, args=(stream, keep), daemon=True).start()
        try:
            self.about: dict[str, Any] = self._answer()
            if contestant.engine and self.about["engine"] != contestant.engine:
                raise ContestantError(f"{self.about['engine']} serves instead (python -m torchlite info says why)")
        except BaseException:
            self.__exit__()
            raise

    def _read(self, stream: Any, keep: Any) -> None:
        with stream:
            for line in stream:
                keep(line)
        if stream is self.process.stdout:
            keep("")

    def _answer(self) -> dict[str, Any]:
        try:
            line = self.answers.get(timeout=self.limit)
        except queue.Empty:
            self.process.kill()
            raise ContestantError(f"no answer within {self.limit:.0f} s")
        if not line:
            self.answers.put("")  # for later readers
            said = f": {self.errors[-1].strip()}" if self.errors else ""
            raise ContestantError(f"its process ended with status {self.process.wait()}{said}")
        answer = json.loads(line)
        if "failed" in answer:
            raise ContestantError(answer["failed"])
        return answer

    def ask(self, **request: Any) -> dict[str, Any]:
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except OSError:  # it has ended: the answer says how
            pass
        return self._answer()

    def make(self, workload: str) -> None:
        self.ask(make=workload)

    def advance(self) -> str:
        return self.ask(advance=1)["row"]

    def measure(self, seconds: float, least: int = 3) -> dict[str, float]:
        return self.ask(measure=seconds, least=least)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
