"""Bar chart of a run's ratios as an SVG, on a logarithmic axis, for light and dark backgrounds."""

from __future__ import annotations

import html
import math

from .measurement_rounds import Run
from .report_tables import TITLES, host_summary_lines, rows_by_group

# Widths of a column of bars: names, bars, and labels.
NAMES, BARS, ASIDE, BETWEEN = 160, 220, 32, 16
COLUMN = NAMES + ASIDE + BARS + ASIDE
BAR, GAP, TOP = 13, 5, 44
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
# Light and dark: text, lines, and a colour for each of ours; the first is NumPy alone.
LIGHT = ("#24292f", "#d0d7de", ("#2f6fb0", "#d08a2b", "#4f9d69", "#8b5fa8"))
DARK = ("#e6edf3", "#3d444d", ("#6aa9e9", "#e0a458", "#74c48e", "#b48ad0"))


def draw_ratio_chart(run: Run, mine: list[str], rival: str) -> str:
    """Return an SVG with a bar for each row and each of ours: left of 1 faster than the rival, right of it slower."""
    columns = _split_into_columns(run, mine, rival)
    values = [
        v for column in columns for _, rows in column for r in rows for m in mine if (v := run.ratio(r, m, rival))
    ]
    scale = _Scale(min([0.5, *values]) / 1.1, max([1.5, *values]) * 1.1)
    body, height = [], 0
    for number, column in enumerate(columns):
        inside, reached = _draw_column(run, mine, rival, column, scale)
        body.append(f'<g transform="translate({number * (COLUMN + BETWEEN)},0)">{inside}</g>')
        height = max(height, reached)
    width = len(columns) * (COLUMN + BETWEEN) - BETWEEN
    if len(mine) > 1:
        body += _draw_legend(mine, height + 14)
        height += 24
    notes = host_summary_lines(run)
    body += [f'<text class="n" x="0" y="{height + 20 + 13 * i}">{html.escape(n)}</text>' for i, n in enumerate(notes)]
    height += 20 + 13 * len(notes)
    title = f"Time by {rival}'s: shorter to the left of 1, longer to the right of it"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"',
        ' role="img">', f"<title>{html.escape(title)}</title>", f"<style>{_css_style(len(mine))}</style>",
        f'<text class="g" x="0" y="14">{html.escape(title)}</text>', *body, "</svg>\n",
    ])  # fmt: skip


class _Scale:
    """Logarithmic axis of ratios."""

    def __init__(self, low: float, high: float):
        self.low, self.high = low, high

    def __call__(self, value: float) -> float:
        return NAMES + ASIDE + BARS * math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[float]:
        """Return tick marks with a minimum distance."""
        chosen: list[float] = []
        for tick in sorted(TICKS, key=lambda t: abs(math.log(t))):
            if self.low <= tick <= self.high and all(abs(self(tick) - self(t)) > 22 for t in chosen):
                chosen.append(tick)
        return sorted(chosen)


def _split_into_columns(run: Run, mine: list[str], rival: str) -> list[list[tuple[str, list[str]]]]:
    """Return the groups with drawable rows, in two columns of about the same height."""
    shown = [
        (TITLES[group], [r for r in rows if any(run.ratio(r, m, rival) for m in mine)])
        for group, rows in rows_by_group(run).items()
    ]
    shown = [(title, rows) for title, rows in shown if rows]
    half, first = sum(len(rows) for _, rows in shown) / 2, 0
    for count, (_, rows) in enumerate(shown):
        if first + len(rows) / 2 > half:
            return [part for part in (shown[:count], shown[count:]) if part]
        first += len(rows)
    return [shown] if shown else []


def _draw_column(run: Run, mine: list[str], rival: str, column: list, scale: _Scale) -> tuple[str, int]:
    """Draw the bars of some groups; return their height."""
    found, y = [], TOP
    for title, rows in column:
        y += 14
        found.append(f'<text class="g" x="0" y="{y + 2}">{html.escape(title)}</text>')
        y += 12
        for row in rows:
            middle = y + BAR * len(mine) / 2 + 3
            found.append(f'<text x="{NAMES}" y="{middle:.1f}" text-anchor="end">{html.escape(row)}</text>')
            for number, who in enumerate(mine):
                value = run.ratio(row, who, rival)
                if value is not None:
                    found += _draw_bar(scale(value), scale(1.0), y + number * BAR, value, number)
            y += BAR * len(mine) + GAP
    lines = [
        f'<line class="{"one" if t == 1 else "tick"}" x1="{scale(t):.1f}" x2="{scale(t):.1f}" y1="{TOP}" y2="{y}"/>'
        f'<text class="n" x="{scale(t):.1f}" y="{TOP - 6}" text-anchor="middle">{t:g}</text>'
        for t in scale.ticks()
    ]
    return "\n".join(lines + found), y


def _draw_legend(mine: list[str], y: int) -> list[str]:
    found, place = [], 0
    for number, who in enumerate(mine):
        found.append(f'<circle class="c{number}" cx="{place + 5}" cy="{y}" r="5"/>')
        found.append(f'<text x="{place + 14}" y="{y + 4}">{html.escape(who)}</text>')
        place += 30 + 7 * len(who)
    return found


def _draw_bar(end: float, one: float, y: float, value: float, number: int) -> list[str]:
    start, width = min(end, one), max(abs(end - one), 0.5)
    beside, anchor = (end - 4, "end") if value < 1 else (end + 4, "start")
    return [
        f'<rect class="c{number}" x="{start:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR - 2}"/>',
        f'<text class="v" x="{beside:.1f}" y="{y + BAR - 3:.1f}" text-anchor="{anchor}">{value:.2f}</text>',
    ]


def _css_style(count: int) -> str:
    def colours(scheme: tuple[str, str, tuple[str, ...]]) -> str:
        text, lines, bars = scheme
        return f"text{{fill:{text}}}.tick{{stroke:{lines}}}.one{{stroke:{text}}}" + "".join(
            f".c{i}{{fill:{bars[i % len(bars)]}}}" for i in range(count)
        )

    return (
        "text{font:11px system-ui,sans-serif}.g{font-weight:600;font-size:12px}.v{font-size:9px}"
        f".n{{font-size:10px}}{colours(LIGHT)}@media (prefers-color-scheme:dark){{{colours(DARK)}}}"
    )
