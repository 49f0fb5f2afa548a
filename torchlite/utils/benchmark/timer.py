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
    """Returns the time in seconds, after the work on the accelerator is done.

    Example:
        >>> torch.utils.benchmark.timer() <= torch.utils.benchmark.timer()
        True
    """
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """Language of a statement; `Timer` takes Python alone.

    Example:
        >>> torch.utils.benchmark.Language.PYTHON.name
        'PYTHON'
    """

    PYTHON = 0
    CPP = 1


class Timer:
    """Times a statement, after a warm-up.

    Args:
        stmt: The statement. Default: ``"pass"``.
        setup: Statements that run before it and are not timed. Default: ``"pass"``.
        global_setup: Only ``""`` is supported.
        timer: Function that returns the time in seconds. Default: `timer`, which waits for the accelerator.
        globals: Names that the statement sees, besides ``torch``. Default: none.
        label: What is measured. Default: ``None``.
        sub_label: What differs between the rows of a table. Default: ``None``.
        description: What differs between the columns. Default: ``None``.
        env: Name of the environment. Default: ``None``.
        num_threads: Number of threads of CPU kernels. Default: 1.
        language: Only Python is supported.

    Raises:
        ValueError: ``stmt`` is no text, the language is another one, or ``global_setup`` is given.

    Example:
        >>> timer = torch.utils.benchmark.Timer("x @ x", setup="x = torch.ones(8, 8)")
        >>> timer.timeit(10).number_per_run
        10
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
        """Returns the time of a number of runs, after a hundredth of them to warm up.

        Args:
            number: Number of runs. Default: a million.
        """
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(int(number // 100), 2))
            return self._make_measurement(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Raises NotImplementedError: `blocked_autorange` repeats.

        Args:
            repeat: No effect.
            number: No effect.
        """
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        """Raises NotImplementedError: `blocked_autorange` finds how often to run.

        Args:
            callback: No effect.
        """
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
        """Returns the times of blocks of runs.

        Args:
            callback: Function ``(number, time)`` that is called with each. Default: none.
            min_run_time: Seconds in all. Default: 0.2.
        """
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
        """Returns the times of blocks of runs, until they agree or the time is over.

        Args:
            threshold: Largest interquartile range, as a share of the median. Default: 0.1.
            min_run_time: Seconds at least. Default: 0.01.
            max_run_time: Seconds at most. Default: 10.
            callback: Function ``(number, time)`` that is called with each. Default: none.
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
        """Raises NotImplementedError: Callgrind counts a C++ program's instructions.

        Args:
            number: No effect.
            repeats: No effect.
            collect_baseline: No effect.
            retain_out_file: No effect.
        """
        raise NotImplementedError("torchlite counts no instructions by Callgrind; use blocked_autorange for times")


def _dedent(text: str) -> str:
    import textwrap

    return textwrap.dedent(text).strip("\n") or "pass"
