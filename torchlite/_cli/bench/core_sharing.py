"""Checks of CPU usage: one thread uses one core, idle threads none, and user threads and workers share cores."""

from __future__ import annotations

import argparse
import datetime

from . import markdown_sections, report_tables
from .contestants import Contestant, ContestantError
from .host_info import cpu_name, usable_cores
from .measurement_rounds import ProgressLine
from .worker_process import Worker
from .workloads.core_sharing import CHECKS
from .workloads.workload_names import OTHER_LIBRARIES

# Limits of the figures.
LIMITS = {"cores used by one thread": 1.05, "cores used when idle": 0.01}


def run(options: argparse.Namespace, mine: list[Contestant], others: list[Contestant]) -> int:
    """Print a table; return 1 if torchlite exceeds a limit."""
    everyone = [c for c in [*mine, *others] if c.module not in OTHER_LIBRARIES]
    progress, failed = ProgressLine(len(CHECKS) * len(everyone)), []
    found: dict[str, dict[str, float]] = {}
    for check in CHECKS:
        for contestant in everyone:
            progress.step("sharing", f"{check} under {contestant.label}")
            try:
                with Worker(contestant, options.threads, options.scale) as worker:
                    for name, value in worker.send_request(check=check, seconds=4 * options.seconds).items():
                        found.setdefault(name, {})[contestant.label] = value
            except ContestantError as error:
                failed.append(f"{contestant.label}: {check}: {error}")
                progress.write_line(failed[-1])
    progress.close()
    labels = [c.label for c in everyone]
    table = [
        ["", *labels],
        *([name, *(report_tables.format_ratio(kept.get(who)) for who in labels)] for name, kept in found.items()),
    ]
    print(f"{cpu_name()}, {usable_cores()} cores, {options.threads} threads each, {datetime.date.today()}")
    print(report_tables.to_text(table))
    for page in options.write_docs:
        markdown_sections.fill_page(page, {"sharing": report_tables.to_markdown(table)})
    passed = [
        f"{c.label}: {name} {found[name][c.label]:.2f}, allowed are {limit}"
        for name, limit in LIMITS.items()
        for c in mine
        if found.get(name, {}).get(c.label, 0) > limit
    ]
    for line in passed:
        print(line)
    return 1 if failed or passed else 0
