"""Generated sections of Markdown pages, between `<!-- bench NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import pathlib
import re

from . import report_tables, run_history
from .measurement_rounds import Run

_SECTION = re.compile(r"(<!-- bench ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill_page(page: pathlib.Path, sections: dict[str, str]) -> list[str]:
    """Write the sections for which the page has markers; return their names."""
    filled = []

    def replace(match: re.Match) -> str:
        name = match[2]
        if name not in sections:
            return match[0]
        filled.append(name)
        return f"{match[1]}\n{sections[name].strip()}\n\n{match[3]}"

    before = page.read_text(encoding="utf-8")
    after = _SECTION.sub(replace, before)
    if after != before:
        run_history.write(page, after)
    return filled


def comparison_sections(run: Run, mine: list[str], others: list[str]) -> dict[str, str]:
    """Return the sections of a comparison: `machine`, `means` and `tables`."""
    rival = others[0]
    rows = [r for names in report_tables.rows_by_group(run).values() for r in names]
    means = [["", *(label.removeprefix("torchlite ") for label in mine)]]
    for group, names in report_tables.rows_by_group(run).items():
        if group != "process":
            means.append(
                [
                    report_tables.TITLES[group],
                    *(report_tables.format_ratio(run.mean_ratio(names, m, rival)) for m in mine),
                ]
            )
        else:
            means += [[name, *(report_tables.format_ratio(run.ratio(name, m, rival)) for m in mine)] for name in names]
    timed = [r for r in rows if r != report_tables.MEMORY]
    means.append(["all rows' times", *(report_tables.format_ratio(run.mean_ratio(timed, m, rival)) for m in mine)])
    parts = []
    for other in others:
        for group, table in report_tables.comparison_tables(run, mine, other, report_tables.is_busy(run)):
            title = report_tables.TITLES[group] + (f", beside {other}" if other != rival else "")
            parts += [f"**{title}**", "", report_tables.to_markdown(table), ""]
    slower = report_tables.summarize(run, mine, rival)
    return {
        "machine": "\n".join(f"- {line}" for line in report_tables.host_summary_lines(run)),
        "means": report_tables.to_markdown(means),
        "tables": "\n".join(parts),
        "slower": "\n".join(f"- {line}" for line in slower),
    }
