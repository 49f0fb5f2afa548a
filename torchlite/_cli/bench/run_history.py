"""History of benchmark runs: a JSON Lines file."""

from __future__ import annotations

import json
import math
import os
import pathlib
import tempfile
from typing import Any

from ..info import cache_folders
from .measurement_rounds import CLOCKS, Run

# Keys that must be equal for two runs to be comparable.
SAME_SETTINGS = ("cpu", "cores", "threads", "device", "scale")


def default_file() -> pathlib.Path:
    """Return bench.jsonl in torchlite's cache folder."""
    folder = next(path for name, path in cache_folders().items() if name.startswith("torchlite"))
    return pathlib.Path(folder) / "bench.jsonl"


def write(file: pathlib.Path, text: str) -> None:
    """Write a file atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=file.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as part:
            part.write(text)
        os.chmod(name, 0o666 & ~_read_umask())
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise


def _read_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def record(run: Run) -> dict[str, Any]:
    """Return a run's record: medians of each clock."""
    return {
        **run.about,
        "rows": {
            row: {
                label: {clock: run.median_time(row, label, clock) for clock in CLOCKS if clock in figures}
                for label, figures in labels.items()
            }
            for row, labels in run.rows.items()
        },
        "failed": run.failed,
    }


def read(file: pathlib.Path) -> list[dict[str, Any]]:
    """Return the runs of a file, oldest first; invalid lines are skipped."""
    found = []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        try:
            kept = json.loads(line)
        except ValueError:
            continue
        if isinstance(kept, dict) and isinstance(kept.get("rows"), dict):
            found.append(kept)
    return found


def append(file: pathlib.Path, run: Run) -> None:
    """Append a run."""
    try:
        before = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        before = ""
    if before and not before.endswith("\n"):
        before += "\n"
    write(file, before + json.dumps(record(run)) + "\n")


def last_comparable(runs: list[dict[str, Any]], run: Run) -> dict[str, Any] | None:
    """Return the last run on this machine with these settings."""
    alike = [kept for kept in runs if all(kept.get(key) == run.about.get(key) for key in SAME_SETTINGS)]
    return alike[-1] if alike else None


def mean_time_ratio(kept: dict[str, Any], run: Run, label: str) -> float | None:
    """Return the ratio of a contestant's times to the earlier ones: the geometric mean over common rows."""
    found = []
    for row, labels in kept["rows"].items():
        then, now = (labels.get(label) or {}).get("wall"), run.median_time(row, label)
        if then and now:
            found.append(math.log(now / then))
    return math.exp(sum(found) / len(found)) if found else None
