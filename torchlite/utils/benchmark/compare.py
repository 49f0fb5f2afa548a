"""Tables that compare measurements."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from .common import Measurement, ordered_unique, select_unit, trim_sigfig

__all__ = ["Colorize", "Compare"]


class Colorize(enum.Enum):
    """Among which times a table's colors compare: none, those of a column or of a row.

    Example:
        >>> torch.utils.benchmark.Colorize.ROWWISE.value
        'rowwise'
    """

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Measurements as tables.

    There is one table for each label, with a row for each sub-label, environment and number of threads, and a column
    for each description.

    Args:
        results: List of measurements.

    Example:
        >>> from torchlite.utils import benchmark
        >>> def timed(code, name):
        ...     timer = benchmark.Timer(code, "x = 2", label="powers", sub_label="x = 2", description=name)
        ...     return timer.timeit(100)
        >>> table = str(benchmark.Compare([timed("x * x", "product"), timed("x ** 2", "power")]))
        >>> "powers" in table and "product" in table and "Times are in" in table
        True
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim, self._highlight, self._colorize = False, False, Colorize.NONE

    def __str__(self) -> str:
        return "\n".join(self._render())

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements.

        Args:
            results: The measurements.

        Raises:
            ValueError: One is no measurement.
        """
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
            self._results.append(result)

    def trim_significant_figures(self) -> None:
        """Show significant digits only."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colors the best and the worst times.

        Args:
            rowwise: Whether times of a row are compared, else those of a column. Default: ``False``.
        """
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark measurements that spread far."""
        self._highlight = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def _render(self) -> list[str]:
        merged = Measurement.merge(self._results)
        return [
            self._make_table(label, [m for m in merged if m.label == label])
            for label in ordered_unique(m.label for m in merged)
        ]

    def _make_table(self, label: Any, results: list[Measurement]) -> str:
        columns = ordered_unique(m.description for m in results)
        rows = ordered_unique((m.task_spec.num_threads, m.env, m.as_row_name) for m in results)
        unit, scale = select_unit(min(m.median for m in results))
        several = len({env for _, env, _ in rows}) > 1
        by_place = {((m.task_spec.num_threads, m.env, m.as_row_name), m.description): m for m in results}

        def format_cell(m: Measurement | None) -> str:
            if m is None:
                return ""
            time = m.median / scale
            text = f"{trim_sigfig(time, m.significant_figures) if self._trim else time:.1f}"
            return f"(! {m.iqr / m.median * 100:.0f}%) {text}" if self._highlight and m.has_warnings else text

        names = {row: f"({row[1]}) {row[2]}" if several else row[2] for row in rows}
        first = max([len(name) for name in names.values()] + [len(f"{max(r[0] for r in rows)} threads: ")]) + 6
        heads = [str(c or "") for c in columns]
        widths = [
            max(len(h), *(len(format_cell(by_place.get((row, c)))) for row in rows)) + 2
            for h, c in zip(heads, columns, strict=True)
        ]
        total = first + sum(widths) + 3 * len(widths)
        rule = "-" * max(2, (total - len(str(label))) // 2 - 2)
        lines = [f"[{rule} {label} {rule}]"]
        lines.append(" " * first + "".join(" | " + h.center(w) for h, w in zip(heads, widths, strict=True)))
        threads: Any = None
        for row in rows:
            if row[0] != threads:
                threads = row[0]
                text = f"{threads} threads: "
                lines.append(text + "-" * (total - len(text)))
            cells = [
                self._colorize_cell(format_cell(by_place.get((row, c))).rjust(w), row, c, by_place, rows, columns)
                for c, w in zip(columns, widths, strict=True)
            ]
            lines.append(("      " + names[row]).ljust(first) + "".join(" | " + cell for cell in cells))
        words = {"s": "seconds (s)", "ms": "milliseconds (ms)", "us": "microseconds (us)", "ns": "nanoseconds (ns)"}
        return "\n".join([*lines, "", f"Times are in {words[unit]}.", ""])

    def _colorize_cell(self, text: str, row: Any, column: Any, by_place: dict, rows: list, columns: list) -> str:
        """Colour a cell green if it is the best, red if it takes twice as long."""
        mine = by_place.get((row, column))
        if self._colorize is Colorize.NONE or mine is None:
            return text
        places = [(row, c) for c in columns] if self._colorize is Colorize.ROWWISE else [(r, column) for r in rows]
        best = min(by_place[p].median for p in places if p in by_place)
        color = "92" if mine.median <= 1.1 * best else "91" if mine.median > 2 * best else "93"
        return f"\033[{color}m{text}\033[0m"
