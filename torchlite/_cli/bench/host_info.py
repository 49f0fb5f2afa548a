"""The machine that figures come from, and what else it did meanwhile."""

from __future__ import annotations

import os
import pathlib
import platform
import subprocess
import time


def cpu_name() -> str:
    """The processor's name, as the system tells it."""
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
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load_average() -> float | None:
    """Processes that ran or waited, on average over the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def last_commit(folder: str) -> str:
    """The last commit of a checkout that changed the package in this folder or the backends; empty elsewhere."""
    try:
        words = ["git", "-C", folder, "log", "-1", "--format=%h", "--", ".", ":/backends"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


class ForeignLoadMeter:
    """The share of the cores that processes other than this one's and its children's used since it began."""

    def __init__(self) -> None:
        self.begun, self.before, self.average = time.monotonic(), _busy_seconds(), load_average()

    def others(self) -> float | None:
        """Between 0 and 1, children counted as far as they have ended; None where the system does not tell."""
        now = _busy_seconds()
        if self.before is None or now is None:
            return None
        (busy, own), (busy_then, own_then) = now, self.before
        passed = max(time.monotonic() - self.begun, 1e-3) * (os.cpu_count() or 1)
        return min(1.0, max(0.0, ((busy - busy_then) - (own - own_then)) / passed))


def _busy_seconds() -> tuple[float, float] | None:
    """Seconds that all cores were busy or taken away by other virtual machines, and those of this process and its
    children that ended.
    """
    try:
        first = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        user, nice, system, _, _, irq, soft, steal, *_ = (int(n) / os.sysconf("SC_CLK_TCK") for n in first)
    except (OSError, ValueError):
        return None
    times = os.times()
    return user + nice + system + irq + soft + steal, sum(times[:4])
