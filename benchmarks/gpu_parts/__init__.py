"""The parts of gpu_check.py, each run in a process of its own."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Options:
    """What the command line says, as a part gets it."""

    device: str = "cuda"
    shared: str = str(ROOT.parent / "shared")
    workers: int = 1
    quick: bool = False
    limit: float = 60.0  # seconds, for this part
    pytest: str = ""

    @property
    def kind(self) -> str:
        """The device's type."""
        return self.device.split(":")[0]

    def shared_file(self, *names: str) -> Path | None:
        """A file of the shared folder; None where it is not there."""
        path = Path(self.shared, *names)
        return path if path.is_file() else None


@dataclass
class Result:
    """What a part has found. Each `put` is written at once, so that a part that dies leaves what it had."""

    path: Path
    found: dict[str, Any] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)

    def put(self, **values: Any) -> None:
        """Set entries and write the file."""
        self.found.update(values)
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.found))
        os.replace(partial, self.path)

    def add(self, name: str, row: Any) -> None:
        """Append to a list and write the file."""
        self.put(**{name: [*self.found.get(name, []), row]})

    def left(self, options: Options) -> float:
        """Seconds until the part's time limit."""
        return options.limit - (time.monotonic() - self.begun)


def say(text: str) -> None:
    """A line of progress."""
    print(text, flush=True)


def here(module: str) -> bool:
    """Whether a module can be imported."""
    return importlib.util.find_spec(module) is not None


def plain_environment() -> dict[str, str]:
    """The environment of programs that run beside others: one thread each for NumPy's products."""
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@contextlib.contextmanager
def program(command: list[str], **how: Any) -> Iterator[subprocess.Popen]:
    """A program, which is ended with all that it has started when the block is left."""
    process = subprocess.Popen(command, start_new_session=True, **how)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def output_of(command: list[str], limit: float, **how: Any) -> tuple[int | None, str]:
    """A program's exit status, None where the time limit ended it, and what it printed until then."""
    with tempfile.TemporaryFile("w+") as output:
        with program(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, **how) as process:
            try:
                status: int | None = process.wait(max(limit, 0.1))
            except subprocess.TimeoutExpired:
                status = None
        output.seek(0)
        return status, output.read()


def checkout_environment(folder: Path, simulate: bool = False) -> dict[str, str]:
    """An environment in which Python finds this checkout, installed or not: its folders, and in `folder` the metadata
    that names its backends and transports.

    simulate: the tests' simulator is the backend of "cuda".
    """
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"]
    if simulate:
        groups["torchlite.backends"]["cuda"] = "gpu_parts.simulated_cuda:backend"
    lines = [line for group, points in groups.items() for line in (f"[{group}]", *map(" = ".join, points.items()))]
    (info / "entry_points.txt").write_text("\n".join([*lines, ""]))
    places = [
        str(ROOT),
        str(ROOT / "backends"),
        str(ROOT / "benchmarks"),
        str(folder),
        os.environ.get("PYTHONPATH", ""),
    ]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places)), "PYTHONUNBUFFERED": "1"}


def library(name: str = "torchlite") -> Any:
    """torchlite, or the library that it is compared with."""
    return importlib.import_module(name)


def reason_not(device: str) -> str:
    """Why a device cannot be used, in a sentence; empty where it can."""
    try:
        torch = library()
    except ImportError as error:
        return f"torchlite cannot be imported: {error}"
    module = getattr(torch, device.split(":")[0], None)
    if hasattr(module, "why_not"):
        reason = module.why_not()
        if reason:
            return reason
    try:
        torch.ones(1, device=device)
    except Exception as error:  # whatever a runtime raises
        return " ".join(str(error).split())
    return ""


def python() -> str:
    return sys.executable
