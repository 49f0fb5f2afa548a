"""Information about the benchmark's machine: CPU, cores, commit, and load by other processes."""

from __future__ import annotations

import os
import pathlib
import platform
import subprocess
import time


def cpu_name() -> str:
    """Return the processor's name from the system."""
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    if platform.system() == "Darwin":
        told = subprocess.run(["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False)
        if told.stdout.strip():
            return told.stdout.strip()
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load_average() -> float | None:
    """Return the load average of the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def last_commit(folder: str) -> str:
    """Return the last commit that changed the package in this folder or the backends; empty outside a checkout."""
    try:
        words = ["git", "-C", folder, "log", "-1", "--format=%h", "--", ".", ":/backends"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


class ForeignLoadMeter:
    """Meter of the share of the cores used by processes other than this one and its children."""

    def __init__(self) -> None:
        self.begun, self.before, self.average = time.monotonic(), _busy_seconds(), load_average()

    def foreign_load(self) -> float | None:
        """Return a number between 0 and 1, or None if the system has no such data. Running children count as others."""
        now = _busy_seconds()
        if self.before is None or now is None:
            return None
        (busy, own), (busy_then, own_then) = now, self.before
        passed = max(time.monotonic() - self.begun, 1e-3) * (os.cpu_count() or 1)
        return min(1.0, max(0.0, ((busy - busy_then) - (own - own_then)) / passed))


def _busy_seconds() -> tuple[float, float] | None:
    """Return seconds that all cores were busy or stolen, and those of this process and its ended children."""
    try:
        first = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        user, nice, system, _, _, irq, soft, steal, *_ = (int(n) / os.sysconf("SC_CLK_TCK") for n in first)
    except (OSError, ValueError):
        return None
    times = os.times()
    return user + nice + system + irq + soft + steal, sum(times[:4])
