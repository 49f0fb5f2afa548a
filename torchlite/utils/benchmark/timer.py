"""Measures how long a statement takes."""

from __future__ import annotations

import enum
import timeit
from collections.abc import Callable
from typing import Any

import torchlite as torch

from .common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]


def timer() -> float:
    """Return the time in seconds, after synchronizing the accelerator."""
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """The language of a statement."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Times a statement with `num_threads` threads, after a warm-up.

    globals: names visible to it, in addition to `torch`. label, sub_label, description and env describe it in tables.
    ValueError for statements in C++.
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None,
        description: str | None = None, env: str | None = None, num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:  # fmt: skip
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"torchlite times Python statements, not {language}")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be "
                             "moved to `setup`.")  # fmt: skip
        names = dict(globals or {})
        names.setdefault("torch", torch)
        self._globals = names
        stmt, setup = _dedent(stmt), _dedent(setup)
        self._timer = timeit.Timer(stmt=stmt, setup=setup, timer=timer, globals=names)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _make_measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number_per_run=number, raw_times=times, task_spec=self._task_spec)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """The time of `number` runs, after a hundredth of them to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(int(number // 100), 2))
            return self._make_measurement(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Refuses: `blocked_autorange` repeats."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        """Refuses: `blocked_autorange` finds how often to run."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """Return a number of runs that hides the timer's overhead and takes at least a thousandth of `min_run_time`."""
        overhead = sorted(self._timeit(0) for _ in range(5))[2]
        number = 1
        while True:
            taken = self._timeit(number)
            if overhead / taken <= 1e-4 and taken >= min_run_time / 1000 or taken > min_run_time:
                return number
            number *= 10

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Times of blocks of runs, for `min_run_time` seconds in all; `callback(number, time)` sees each."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            return self._make_measurement(
                number, self._time_blocks(number, lambda times, m: sum(times) >= min_run_time, callback)
            )

    def _time_blocks(self, number: int, done: Callable[[list[float], Any], bool], callback: Any) -> list[float]:
        times: list[float] = []
        while not times or not done(times, None):
            times.append(self._timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return times

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:  # fmt: skip
        """Like `blocked_autorange`, until the interquartile range is within `threshold` of the median, or the time
        limit.
        """
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(0.05)

            def done(times: list[float], _: Any) -> bool:
                total = sum(times)
                if total > max_run_time:
                    return True
                return (
                    total >= min_run_time
                    and len(times) > 3
                    and self._make_measurement(number, times).meets_confidence(threshold)
                )

            return self._make_measurement(number, self._time_blocks(number, done, callback))

    def collect_callgrind(
        self,
        number: int = 100,
        *,
        repeats: int | None = None,
        collect_baseline: bool = True,
        retain_out_file: bool = False,
    ) -> Any:
        """Refuses: Callgrind counts a C++ program's instructions."""
        raise NotImplementedError("torchlite counts no instructions by Callgrind; use blocked_autorange for times")


def _dedent(text: str) -> str:
    import textwrap

    return textwrap.dedent(text).strip("\n") or "pass"
