"""The ratios of a run as a picture: bars on a logarithmic axis, for light and dark backgrounds."""

from __future__ import annotations

import html
import math

from .rounds import Run
from .tables import TITLES, groups, headline

WIDTH, NAMES, BAR, GAP, HEAD = 760, 200, 13, 5, 30
LEFT, RIGHT = NAMES + 10, 50
TICKS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# Light and dark: text, lines, and a colour for each of ours; the first is NumPy alone.
LIGHT = ("#24292f", "#d0d7de", ("#2f6fb0", "#d08a2b", "#4f9d69", "#8b5fa8"))
DARK = ("#e6edf3", "#3d444d", ("#6aa9e9", "#e0a458", "#74c48e", "#b48ad0"))


def svg(run: Run, mine: list[str], rival: str) -> str:
    """An SVG with a bar for each row and each of ours: to the left of 1 faster than the rival, to the right slower."""
    rows = [
        (group, [r for r in names if any(run.ratio(r, m, rival) for m in mine)]) for group, names in groups(run).items()
    ]
    rows = [(group, names) for group, names in rows if names]
    values = [v for _, names in rows for r in names for m in mine if (v := run.ratio(r, m, rival))]
    low, high = min([0.5, *values]) / 1.1, max([1.5, *values]) * 1.1

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(value / low) / math.log(high / low)

    body, y = [], HEAD + 22
    for group, names in rows:
        y += 14
        body.append(f'<text class="group" x="0" y="{y + 4}">{html.escape(TITLES[group])}</text>')
        y += 14
        for row in names:
            middle = y + BAR * len(mine) / 2 + 4
            body.append(f'<text x="{NAMES}" y="{middle:.1f}" text-anchor="end">{html.escape(row)}</text>')
            for number, who in enumerate(mine):
                value = run.ratio(row, who, rival)
                if value is not None:
                    body += _bar(x(value), x(1.0), y + number * BAR, value, number)
            y += BAR * len(mine) + GAP
    ticks = [t for t in TICKS if low <= t <= high]
    lines = [
        f'<line class="{"one" if t == 1 else "tick"}" x1="{x(t):.1f}" x2="{x(t):.1f}" y1="{HEAD + 14}" y2="{y}"/>'
        f'<text x="{x(t):.1f}" y="{HEAD + 8}" text-anchor="middle">{t:g}</text>'
        for t in ticks
    ]
    title = f"Time by {rival}'s: shorter to the left of 1, longer to the right of it"
    legend, place = [], 0.0
    if len(mine) > 1:
        for number, who in enumerate(mine):
            legend.append(f'<rect class="c{number}" x="{place:.0f}" y="{y + 12}" width="10" height="10"/>')
            legend.append(f'<text x="{place + 14:.0f}" y="{y + 21}">{html.escape(who)}</text>')
            place += 24 + 7 * len(who)
        y += 24
    notes = [
        f'<text class="note" x="0" y="{y + 20 + 13 * i}">{html.escape(line)}</text>'
        for i, line in enumerate(headline(run))
    ]
    height = y + 20 + 13 * len(notes)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"',
        ' role="img">',
        f"<title>{html.escape(title)}</title>", f"<style>{_style(len(mine))}</style>",
        f'<text class="group" x="0" y="14">{html.escape(title)}</text>', *lines, *body, *legend, *notes, "</svg>\n",
    ])  # fmt: skip


def _bar(end: float, one: float, y: float, value: float, number: int) -> list[str]:
    start, width = min(end, one), max(abs(end - one), 0.5)
    beside, anchor = (end - 4, "end") if value < 1 else (end + 4, "start")
    return [
        f'<rect class="c{number}" x="{start:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR - 2}"/>',
        f'<text class="value" x="{beside:.1f}" y="{y + BAR - 3:.1f}" text-anchor="{anchor}">{value:.2f}</text>',
    ]


def _style(count: int) -> str:
    def colours(scheme: tuple[str, str, tuple[str, ...]]) -> str:
        text, lines, bars = scheme
        return f"text{{fill:{text}}}.tick{{stroke:{lines}}}.one{{stroke:{text}}}" + "".join(
            f".c{i}{{fill:{bars[i % len(bars)]}}}" for i in range(count)
        )

    return (
        "text{font:11px system-ui,sans-serif}.group{font-weight:600;font-size:12px}.value{font-size:10px}"
        f".note{{font-size:10px}}{colours(LIGHT)}@media (prefers-color-scheme:dark){{{colours(DARK)}}}"
    )
