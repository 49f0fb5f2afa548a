"""Runs the measurements of `python -m torchlite bench` and reports them."""

from __future__ import annotations

import argparse
import sys

from ..command_line import check_output
from . import core_sharing, cpu_contention, markdown_sections, overhead_breakdown, report_tables, run_history, svg_chart
from .contestants import ContestantError, check_device_and_engine, find_rivals, torchlite_contestants
from .measurement_rounds import Run, measure_all
from .workloads.workload_names import GROUPS, WORKLOADS, select_rows


def run(options: argparse.Namespace) -> int:
    if options.list:
        print(list_rows())
        return 0
    try:
        rows = select_rows(options.only)
    except ValueError as error:
        options.bench.error(str(error))
    check_device_and_engine(options)
    for page in options.write_docs:
        if not page.is_file():
            options.bench.error(f"--write-docs {page}: there is no such file")
    if options.picture:
        check_output("--picture", str(options.picture), (".svg",))
    try:
        mine = torchlite_contestants(options.engine, options.device)
        others = find_rivals(options.against, options.reference_python, options.device)
    except ContestantError as error:
        options.bench.error(str(error))
    if options.everything:
        return run_measurements(options, mine, others, rows)
    if options.under_load:
        return cpu_contention.run(options, mine, others, rows if options.only else select_rows("networks"))
    if options.sharing:
        return core_sharing.run(options, mine, others)
    if options.parts:
        return overhead_breakdown.run(options)
    return compare(options, mine, others, rows)


def run_measurements(options: argparse.Namespace, mine: list, others: list, rows: list[str]) -> int:
    """Run the selected measurements; under load the first row of each network, once, of torchlite alone."""
    networks = [WORKLOADS[name][0] for name in GROUPS["networks"]]
    once = argparse.Namespace(**{**vars(options), "rounds": 1})
    status = compare(options, mine, others, rows)
    print()
    status = max(status, cpu_contention.run(once, mine[:1], [], [row for row in networks if row in rows]))
    print()
    status = max(status, core_sharing.run(options, mine[:1], others))
    print()
    return max(status, overhead_breakdown.run(options))


def list_rows() -> str:
    """Return the groups with their workloads and rows."""
    lines = []
    for group, names in GROUPS.items():
        lines.append(group)
        lines += [f"  {name:12} {', '.join(WORKLOADS[name])}" for name in names]
    return "\n".join(lines)


def compare(options: argparse.Namespace, mine: list, others: list, rows: list[str]) -> int:
    """Compare the contestants and print tables; return the exit status."""
    if not others:
        print("no rival is installed (pip install torch, or --reference-python PATH): times alone", file=sys.stderr)
    done = measure_all(mine, others, rows, options, whole=not options.only)
    present = set(done.about["contestants"])
    ours, theirs = ([c.label for c in some if c.label in present] for some in (mine, others))
    print("\n".join(report_tables.host_summary_lines(done)))
    for line in report(done, ours, theirs, options.cpu_time or report_tables.is_busy(done)):
        print(line)
    save_results(options, done, ours, theirs)
    if not done.rows:
        print("bench: nothing could be measured", file=sys.stderr)
    return 1 if not done.rows or any(line.startswith("torchlite") for line in done.failed) else 0


def report(done: Run, mine: list[str], others: list[str], cpu_times: bool) -> list[str]:
    """Return tables and sentences below the headline."""
    lines = []
    others = [rival for rival in others if any(rival in done.rows[row] for row in done.rows)]
    for rival in others:
        lines += ["", f"beside {rival}"]
        for group, table in report_tables.comparison_tables(done, mine, rival, cpu_times):
            lines += ["", report_tables.TITLES[group], report_tables.to_text(table)]
        lines += ["", *report_tables.summarize(done, mine, rival)]
    if not others:
        for group, table in report_tables.standalone_tables(done, mine):
            lines += ["", report_tables.TITLES[group], report_tables.to_text(table)]
    if done.failed:
        lines += ["", "failed", *(f"  {line}" for line in done.failed)]
    return lines


def save_results(options: argparse.Namespace, done: Run, mine: list[str], others: list[str]) -> None:
    """Compare with the history and append to it, draw the chart, fill the pages."""
    if not options.no_history and done.rows:
        file = options.history or run_history.default_file()
        before = run_history.last_comparable(run_history.read(file), done) or {}
        for label in [*others, *mine] if before else ():
            change = run_history.mean_time_ratio(before, done, label)
            if change:
                print(f"{label}: {change:.2f} of the times it took in the run of {before['date']}")
        run_history.append(file, done)
        print(f"kept in {file}")
    if others and mine:
        if options.picture:
            run_history.write(options.picture, svg_chart.draw_ratio_chart(done, mine, others[0]))
            print(f"drawn in {options.picture}")
        for page in options.write_docs:
            filled = markdown_sections.fill_page(page, markdown_sections.comparison_sections(done, mine, others))
            print(f"{page}: {', '.join(filled) or 'no section'} filled")
    elif options.picture or options.write_docs:
        print("no picture and no page: there is nothing to compare with", file=sys.stderr)
