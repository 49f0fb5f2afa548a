"""Measurements of benchmarks, and the formatting of times."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator
from typing import Any

import torchlite as torch

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Returns elements in their order, each once.

    Args:
        elements: The elements, hashable.

    Example:
        >>> torch.utils.benchmark.ordered_unique([2, 1, 2])
        [2, 1]
    """
    return list(dict.fromkeys(elements))


def select_unit(t: float) -> tuple[str, float]:
    """Returns the unit that suits a time, and the unit in seconds.

    Args:
        t: Time in seconds.

    Example:
        >>> torch.utils.benchmark.select_unit(0.002)
        ('ms', 0.001)
    """
    place = min(3, max(0, -(math.floor(math.log10(t)) // 3))) if t > 0 else 3
    return _UNITS[place]


def unit_to_english(u: str) -> str:
    """Returns the English name of a unit of time.

    Args:
        u: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``.

    Example:
        >>> torch.utils.benchmark.unit_to_english("us")
        'microsecond'
    """
    return {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}[u]


def trim_sigfig(x: float, n: int) -> float:
    """Returns a number rounded to significant digits.

    Args:
        x: The number.
        n: Number of significant digits.

    Example:
        >>> torch.utils.benchmark.trim_sigfig(1234.0, 2)
        1200.0
    """
    if x == 0:
        return x
    scale = 10.0 ** (math.floor(math.log10(abs(x))) + 1 - n)
    return float(round(x / scale) * scale)


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Context manager in which CPU kernels use a number of threads.

    Args:
        n: Number of threads.

    Example:
        >>> with torch.utils.benchmark.set_torch_threads(1):
        ...     torch.get_num_threads()
        1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """The statement that is measured, and its labels.

    Args:
        stmt: The statement.
        setup: Statements that run before it and are not timed.
        global_setup: ``""``; it is for C++.
        label: What is measured; one table for each. Default: ``None``.
        sub_label: What differs between rows. Default: ``None``.
        description: What differs between columns. Default: ``None``.
        env: Name of the environment. Default: ``None``.
        num_threads: Number of threads. Default: 1.

    Example:
        >>> torch.utils.benchmark.TaskSpec("x @ x", "x = torch.ones(2, 2)", label="product", sub_label="2 x 2").title
        'product: 2 x 2'
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """Return the heading."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt if "\n" not in self.stmt else "\n" + self.stmt

    def setup_str(self) -> str:
        """The setup in a line or a block."""
        if self.setup in ("", "pass"):
            return ""
        if "\n" in self.setup:
            return "setup:\n" + "\n".join("  " + line for line in self.setup.splitlines())
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(part for part in parts if part)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """The times of a statement, which `Timer` returns.

    Args:
        number_per_run: Number of runs that each time is of.
        raw_times: Times in seconds.
        task_spec: The `TaskSpec`.
        metadata: Further facts. Default: ``None``.

    Example:
        >>> from torchlite.utils.benchmark import Measurement, TaskSpec
        >>> measurement = Measurement(10, [1.0, 2.0, 6.0], TaskSpec("x + 1", "x = 1"))
        >>> measurement.times, measurement.median
        ([0.1, 0.2, 0.6], 0.2)
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    @property
    def times(self) -> list[float]:
        """Seconds a run."""
        return [time / self.number_per_run for time in self.raw_times]

    def _quantile(self, q: float) -> float:
        """By linear interpolation."""
        times = sorted(self.times)
        place = q * (len(times) - 1)
        low = math.floor(place)
        return times[low] + (place - low) * (times[min(low + 1, len(times) - 1)] - times[low])

    @property
    def median(self) -> float:
        """The median of the times."""
        self._needs_times()
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """Their mean."""
        self._needs_times()
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance between their quartiles."""
        self._needs_times()
        return self._quantile(0.75) - self._quantile(0.25)

    def _needs_times(self) -> None:
        if not self.raw_times:
            raise ValueError("a measurement without times")

    @property
    def significant_figures(self) -> int:
        """Return the number of significant figures of the median, from the spread of the times."""
        spread = self.iqr
        if not spread or len(self.times) < 2:
            return 7
        return max(1, min(5, 1 + math.floor(math.log10(self.median / spread)) if self.median > spread else 1))

    @property
    def has_warnings(self) -> bool:
        """True if the times have a large spread."""
        return len(self.raw_times) > 1 and self.iqr / self.median > 0.1

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Returns whether the interquartile range is small against the median.

        Args:
            threshold: Largest share of the median. Default: 0.1.
        """
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """Heading of the measurement."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """Name of the environment."""
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """Name of the row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "task_spec" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Merges measurements of the same task.

        Args:
            measurements: The measurements.
        """
        grouped: dict[TaskSpec, list[Measurement]] = {}
        for m in measurements:
            grouped.setdefault(m.task_spec, []).append(m)
        return [
            Measurement(1, [time for m in group for time in m.times], task, None) for task, group in grouped.items()
        ]

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        count = len(self.raw_times)
        lines = [f"{object.__repr__(self)}", self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {unit}")
        if count >= 4:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        runs = f"{self.number_per_run} runs {'per measurement' if count > 1 else ''}"
        threads = self.task_spec.num_threads
        lines.append(f"  {count} measurement{'s' * (count > 1)}, {runs}, {threads} thread{'s' * (threads > 1)}")
        if self.has_warnings:
            lines.append(
                f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement."
            )
            lines.append("           This could indicate system fluctuation.")
        return "\n".join(lines)
