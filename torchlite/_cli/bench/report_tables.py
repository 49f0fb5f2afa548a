"""Tables and sentences of a run, for a terminal and as Markdown."""

from __future__ import annotations

from .measurement_rounds import MEMORY, Run
from .workloads.workload_names import GROUPS, group_of

TITLES = {
    "small": "Single ops on 4x4 tensors",
    "mlp": "Networks of a few small layers",
    "networks": "Networks",
    "big": "Large tensors (4096 x 1024)",
    "process": "The process",
}
# Minimum load by others for which CPU times are shown next to clock times.
BUSY = 0.05


def rows_by_group(run: Run) -> dict[str, list[str]]:
    """Return the rows by group."""
    order = [*GROUPS, "process"]
    found: dict[str, list[str]] = {name: [] for name in order}
    for row in run.rows:
        found[group_of(row)].append(row)
    return {name: rows for name, rows in found.items() if rows}


def format_seconds(value: float | None, row: str = "") -> str:
    """Format a figure with its unit."""
    if value is None:
        return "-"
    if row == MEMORY:
        return f"{value:.0f} MiB"
    for unit, factor in (("ns", 1e9), ("us", 1e6), ("ms", 1e3)):
        if value * factor < 1000:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"


def format_ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def is_busy(run: Run) -> bool:
    return (run.about.get("others") or 0) > BUSY


def host_summary_lines(run: Run) -> list[str]:
    """Return versions, machine and load, a line each."""
    about = run.about
    who = []
    for label, c in about["contestants"].items():
        numpy = f", NumPy {c['numpy']}" if c["module"] == "torchlite" else ""
        engine = f", {c['engine']}" if c["engine"] else ""
        who.append(f"{label} {c['version']} (Python {c['python']}{numpy}{engine})")
    spreads = [(label, run.slowest_to_fastest_ratio(label)) for label in about["contestants"]]
    extremes = ", ".join(f"{label} {value:.2f}" for label, value in spreads if value)
    others = about["others"]
    load = "unknown" if others is None else f"{others:.0%} of the cores"
    average = "" if about["load_before"] is None else f" (the load average before was {about['load_before']:.2f})"
    return [
        "; ".join(who),
        f"{about['cpu']}, {about['cores']} cores, {about['threads']} threads each; other processes used {load}"
        + average,
        f"{about['date'][:10]}, medians of {about['rounds']} rounds"
        + (f" (slowest by fastest: {extremes})" if extremes else "")
        + (f", torchlite at {about['commit']}" if about["commit"] else ""),
    ]


def comparison_tables(run: Run, mine: list[str], rival: str, cpu_times: bool) -> list[tuple[str, list[list[str]]]]:
    """Return for each group the lines of a table: header, rows, geometric means."""
    found = []
    clocks = ["wall", *(("thread", "process") if cpu_times else ())]
    names = {"wall": "ratio", "thread": "of thread's CPU", "process": "of process's CPU"}
    short = [label.removeprefix("torchlite ") for label in mine]
    for group, rows in rows_by_group(run).items():
        rows = [r for r in rows if run.median_time(r, rival) is not None]
        if not rows:
            continue
        several = len(mine) > 1
        head = ["row", *short, rival]
        head += [names[clock] + (f", {label}" if several else "") for clock in clocks for label in short]
        lines = [head]
        for row in rows:
            line = [row, *(format_seconds(run.median_time(row, who), row) for who in (*mine, rival))]
            lines.append(line + [format_ratio(run.ratio(row, who, rival, clock)) for clock in clocks for who in mine])
        if len(rows) > 1 and group != "process":
            means = [format_ratio(run.mean_ratio(rows, who, rival)) for who in mine]
            lines.append(["geometric mean", *[""] * (len(mine) + 1), *means, *[""] * (len(mine) * (len(clocks) - 1))])
        found.append((group, lines))
    return found


def standalone_tables(run: Run, mine: list[str]) -> list[tuple[str, list[list[str]]]]:
    """Return tables without a rival."""
    return [
        (
            group,
            [
                ["row", *mine],
                *([row, *(format_seconds(run.median_time(row, who), row) for who in mine)] for row in rows),
            ],
        )
        for group, rows in rows_by_group(run).items()
    ]


def to_text(lines: list[list[str]]) -> str:
    """Format a table for a terminal."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    shown = []
    for line in lines:
        first, *rest = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        shown.append("  ".join([line[0].ljust(len(first)), *rest]).rstrip())
    return "\n".join(shown)


def to_markdown(lines: list[list[str]]) -> str:
    """Format a table as Markdown."""
    head, *rows = lines
    rule = "| " + " | ".join(["---"] + ["---:"] * (len(head) - 1)) + " |"
    return "\n".join(["| " + " | ".join(head) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)])


def summarize(run: Run, mine: list[str], rival: str) -> list[str]:
    """Return a sentence for each of ours: the mean over all rows, and the slower rows."""
    said = []
    for label in mine:
        rows = [r for r in run.rows if run.ratio(r, label, rival) is not None]
        times = [r for r in rows if r != MEMORY]
        mean = run.mean_ratio(times, label, rival)
        if mean is None:
            continue
        slower = sorted(((run.ratio(r, label, rival) or 0, r) for r in times), reverse=True)
        named = [f"{row} {value:.2f}" for value, row in slower if value > 1]
        tail = f"slower than {rival}: {', '.join(named)}" if named else f"no row is slower than {rival}'s"
        said.append(f"{label}: geometric mean {mean:.2f} over {len(times)} rows; {tail}")
    return said
