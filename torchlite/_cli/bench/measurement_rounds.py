"""Measurement of all contestants, interleaved by row and repeated in rounds, with statistics."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import math
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from torchlite.utils._progress_bar import make_progress_bar

from .contestants import Contestant, ContestantError
from .host_info import ForeignLoadMeter, cpu_name, last_commit, usable_cores
from .worker_process import Worker
from .workloads.workload_names import OTHER_LIBRARIES, WORKLOADS, file_of, workloads_of

CLOCKS = ("wall", "thread", "process")
# Rows of a process, not of a workload.
IMPORT, MEMORY = "import", "peak_memory"


class ProgressLine:
    """Progress line: rewritten on a terminal, else one line per stage."""

    def __init__(self, total: int):
        self._bar = make_progress_bar(total, file=sys.stderr, leave=False)

    def step(self, stage: str, what: str) -> None:
        """A piece of work begins."""
        self._bar.set_description(stage)
        self._bar.set_postfix_str(what, refresh=False)
        self._bar.update()

    def write_line(self, line: str) -> None:
        """Write a line above the bar."""
        self._bar.write(line, file=sys.stderr)

    def close(self) -> None:
        self._bar.close()


@dataclasses.dataclass
class Run:
    """Results: `rows[row][label][clock]` has the figures of the rounds, in seconds (MiB for memory)."""

    about: dict[str, Any]
    rows: dict[str, dict[str, dict[str, list[float]]]] = dataclasses.field(default_factory=dict)
    failed: list[str] = dataclasses.field(default_factory=list)

    def add(self, row: str, label: str, figures: dict[str, float], clocks: Sequence[str] = CLOCKS) -> None:
        kept = self.rows.setdefault(row, {}).setdefault(label, {})
        for clock in clocks:
            if clock in figures:
                kept.setdefault(clock, []).append(figures[clock])

    def median_time(self, row: str, label: str, clock: str = "wall") -> float | None:
        """Return the median over the rounds."""
        found = self.rows.get(row, {}).get(label, {}).get(clock)
        return statistics.median(found) if found else None

    def ratio(self, row: str, label: str, rival: str, clock: str = "wall") -> float | None:
        """Return the median over the rounds of the ratio to a rival."""
        mine, theirs = (self.rows.get(row, {}).get(who, {}).get(clock, []) for who in (label, rival))
        pairs = [a / b for a, b in zip(mine, theirs, strict=False) if b]
        return statistics.median(pairs) if pairs else None

    def slowest_to_fastest_ratio(self, label: str) -> float | None:
        """Return the ratio of the slowest round to the fastest, in the median of the rows."""
        walls = [found[label].get("wall", []) for found in self.rows.values() if label in found]
        found = [max(times) / min(times) for times in walls if len(times) > 1]
        return statistics.median(found) if found else None

    def mean_ratio(self, rows: Iterable[str], label: str, rival: str) -> float | None:
        """Return the geometric mean over rows that both have."""
        found = [r for r in (self.ratio(row, label, rival) for row in rows) if r]
        return math.exp(sum(map(math.log, found)) / len(found)) if found else None


def measure_all(mine: list[Contestant], others: list[Contestant], rows: list[str], options: Any, whole: bool) -> Run:
    """Measure every row under every contestant, `options.rounds` times; with `whole` also import time and peak
    memory.
    """
    everyone = [*mine, *others]
    progress = ProgressLine(options.rounds * len(everyone) * len(rows))
    run, meter = Run(about={}), ForeignLoadMeter()
    versions: dict[str, dict] = {}
    for number in range(options.rounds):
        with contextlib.ExitStack() as stack:
            workers = []
            for contestant in everyone:
                try:
                    worker = stack.enter_context(Worker(contestant, options.threads, options.scale))
                except ContestantError as error:
                    record_failure(run, progress, f"{contestant.label}: {error}")
                    continue
                versions[contestant.label] = worker.about
                workers.append(worker)
                if whole:
                    run.add(IMPORT, contestant.label, {"wall": worker.about["import"]})
            stage = f"round {number + 1} of {options.rounds}"
            for workload in workloads_of(rows):
                for row, worker, figures in _measure_in_turn(workers, workload, rows, options, progress, run, stage):
                    run.add(row, worker.contestant.label, figures)
                workers.reverse()  # alternates the order
            for worker in workers:
                _add_memory(run, worker, whole)
    progress.close()
    run.about = run_conditions(options, versions, everyone, meter)
    return run


def _measure_in_turn(
    workers: list[Worker], workload: str, rows: list[str], options: Any, progress: ProgressLine, run: Run, stage: str
) -> Iterator[tuple[str, Worker, dict[str, float]]]:
    """Measure a workload's rows, each under all workers in turn."""
    at: dict[Worker, str] = {}

    def measure_or_drop(worker: Worker, what: str, *arguments: Any) -> Any:
        try:
            return getattr(worker, what)(*arguments)
        except ContestantError as error:
            record_failure(run, progress, f"{worker.contestant.label}: {at.get(worker) or workload}: {error}")
            at.pop(worker, None)
            return None

    for worker in workers:
        if file_of(workload, worker.contestant.module):
            at[worker] = ""
            measure_or_drop(worker, "make", workload)
    for worker in list(at):
        at[worker] = measure_or_drop(worker, "advance") or ""
    for row in WORKLOADS[workload]:
        for worker in workers:
            if row in rows:
                progress.step(stage, f"{row} under {worker.contestant.label}")
            if at.get(worker) != row:
                continue
            if row in rows:
                figures = measure_or_drop(worker, "measure", options.seconds, 3)
                if figures:
                    yield row, worker, figures
            if worker in at:
                at[worker] = measure_or_drop(worker, "advance") or ""


def record_failure(run: Run, progress: ProgressLine, line: str) -> None:
    """Store and show a failure once; the others continue."""
    if line not in run.failed:
        run.failed.append(line)
        progress.write_line(line)


def _add_memory(run: Run, worker: Worker, whole: bool) -> None:
    if whole and worker.contestant.module not in OTHER_LIBRARIES:
        with contextlib.suppress(ContestantError):
            peak = worker.send_request(peak=1)["peak"]
            if peak:
                run.add(MEMORY, worker.contestant.label, {"wall": peak})


def run_conditions(
    options: Any, versions: dict[str, dict], everyone: list[Contestant], meter: ForeignLoadMeter
) -> dict[str, Any]:
    """Return the conditions of the run, without which figures are not comparable."""
    from ... import __file__, __torchlite_version__

    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "torchlite": __torchlite_version__,
        "commit": last_commit(__file__.rpartition("__init__")[0]),
        "cpu": cpu_name(),
        "cores": usable_cores(),
        "threads": options.threads,
        "device": options.device,
        "rounds": options.rounds,
        "seconds": options.seconds,
        "scale": options.scale,
        "load_before": meter.average,
        "others": meter.foreign_load(),
        "contestants": {
            c.label: {"module": c.module, **{k: versions[c.label][k] for k in ("version", "python", "numpy", "engine")}}
            for c in everyone
            if c.label in versions
        },
    }
