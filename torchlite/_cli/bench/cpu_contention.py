"""Slowdown of networks while other processes keep cores busy."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from . import markdown_sections, report_tables
from .contestants import Contestant, ContestantError
from .host_info import cpu_name, usable_cores
from .measurement_rounds import ProgressLine
from .worker_process import Worker
from .workloads.workload_names import WORKLOADS, workloads_of

# Numbers of busy processes.
LOADS = (0, 1, 2)
# Ends with the process that started it, whatever became of that.
_BUSY = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(100_000): pass
"""
# Maximum slowdown of a network with one of them.
AIM = 2.5


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Run busy processes until the block ends."""
    started = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        if started:
            time.sleep(0.2)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def run(options: argparse.Namespace, mine: list[Contestant], others: list[Contestant], rows: list[str]) -> int:
    """Measure the rows, print a table; return 1 if one of torchlite's is too slow."""
    everyone = [*mine, *others]
    taken: dict[str, dict[str, dict[int, list[float]]]] = {row: {} for row in rows}
    progress = ProgressLine(len(everyone) * len(rows) * options.rounds)
    failed = []
    for number in range(options.rounds):
        for workload in workloads_of(rows):
            for contestant in everyone:
                stage = f"round {number + 1} of {options.rounds}"
                try:
                    _measure(contestant, workload, taken, options, progress, stage)
                except ContestantError as error:
                    failed.append(f"{contestant.label}: {workload}: {error}")
                    progress.write_line(failed[-1])
    progress.close()
    labels = [c.label for c in everyone]
    table = table_rows(taken, labels)
    print(f"{cpu_name()}, {usable_cores()} cores, {options.threads} threads each, {datetime.date.today()}")
    print(report_tables.to_text(table))
    worst = {
        c.label: max(((f[1], row) for row, f in slowdown_factors(taken, c.label).items()), default=None)
        for c in everyone
    }
    for label, found in worst.items():
        if found is None:
            continue
        factor, row = found
        print(f"{label}: beside one busy process at most {factor:.2f} times the quiet time ({row})")
    for page in options.write_docs:
        markdown_sections.fill_page(page, {"load": report_tables.to_markdown(table)})
    return 1 if failed or any((worst[c.label] or (0.0, ""))[0] > AIM for c in mine) else 0


def _measure(
    contestant: Contestant, workload: str, taken: dict, options: Any, progress: ProgressLine, stage: str
) -> None:
    """Measure a workload's rows under one contestant, without and with load."""
    with Worker(contestant, options.threads, options.scale) as worker:
        worker.make(workload)
        for row in WORKLOADS[workload]:
            if worker.advance() != row or row not in taken:
                continue
            progress.step(stage, f"{row} under {contestant.label}")
            kept = taken[row].setdefault(contestant.label, {})
            for count in LOADS:
                with busy_processes(count):
                    kept.setdefault(count, []).append(worker.measure(options.seconds)["wall"])


def slowdown_factors(taken: dict, label: str) -> dict[str, dict[int, float]]:
    """Return for each row the median over the rounds of the slowdowns."""
    found = {}
    for row, labels in taken.items():
        times = labels.get(label, {})
        if len(times) == len(LOADS):
            found[row] = {
                n: statistics.median(a / b for a, b in zip(times[n], times[0], strict=False)) for n in LOADS[1:]
            }
    return found


def table_rows(taken: dict, labels: list[str]) -> list[list[str]]:
    """Return the table: unloaded times, and slowdowns with one busy process and with two."""
    head = ["row"]
    for label in labels:
        head += [f"{label}, quiet", *(f"{n} busy" for n in LOADS[1:])]
    found = [head]
    each = {label: slowdown_factors(taken, label) for label in labels}
    for row in taken:
        line = [row]
        for label in labels:
            times = taken[row].get(label, {}).get(0)
            line.append(report_tables.format_seconds(statistics.median(times)) if times else "-")
            line += [report_tables.format_ratio(each[label].get(row, {}).get(n)) for n in LOADS[1:]]
        found.append(line)
    return found
