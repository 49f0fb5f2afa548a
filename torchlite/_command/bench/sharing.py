"""How threads behave: one thread uses one core, idle ones nothing, and user threads and worker processes share."""

from __future__ import annotations

import argparse
import datetime

from . import pages, tables
from .contestants import Contestant, Failed, Worker
from .machine import cores, cpu_name
from .rounds import Progress
from .workloads.names import OTHERS
from .workloads.together import CHECKS

# What is allowed of the figures that have a limit.
LIMITS = {"cores used by one thread": 1.05, "cores used when idle": 0.01}


def run(options: argparse.Namespace, mine: list[Contestant], others: list[Contestant]) -> int:
    """Print a table; 1 when torchlite passes a limit."""
    everyone = [c for c in [*mine, *others] if c.module not in OTHERS]
    progress, failed = Progress(len(CHECKS) * len(everyone)), []
    found: dict[str, dict[str, float]] = {}
    for check in CHECKS:
        for contestant in everyone:
            progress.step("sharing", f"{check} under {contestant.label}")
            try:
                with Worker(contestant, options.threads, options.scale) as worker:
                    for name, value in worker.ask(check=check, seconds=4 * options.seconds).items():
                        found.setdefault(name, {})[contestant.label] = value
            except Failed as error:
                failed.append(f"{contestant.label}: {check}: {error}")
                progress.say(failed[-1])
    progress.end()
    labels = [c.label for c in everyone]
    table = [["", *labels], *([name, *(tables.ratio(kept.get(who)) for who in labels)] for name, kept in found.items())]
    print(f"{cpu_name()}, {cores()} cores, {options.threads} threads each, {datetime.date.today()}")
    print(tables.text(table))
    for page in options.write_docs:
        pages.fill(page, {"sharing": tables.markdown(table)})
    passed = [
        f"{c.label}: {name} {found[name][c.label]:.2f}, allowed are {limit}"
        for name, limit in LIMITS.items()
        for c in mine
        if found.get(name, {}).get(c.label, 0) > limit
    ]
    for line in passed:
        print(line)
    return 1 if failed or passed else 0
