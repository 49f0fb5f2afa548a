"""The resource budget of reading a file: work, CPU time, memory and depth limits from the file's size."""

from __future__ import annotations

import functools
import pickle
import time

_FREE_WORK, _WORK_PER_BYTE = 1 << 18, 16  # steps; a step takes some 50 ns
_FREE_TIME, _TIME_PER_BYTE = 600_000_000, 1_000  # nanoseconds for tables and calls: ten times the need of valid files
_FREE_MEMORY, _MEMORY_PER_BYTE = 48 << 20, 40  # bytes
_REFERENCE = 200_000  # nanoseconds of a loop of ten thousand steps on the machine where the time limits were chosen
MAX_DEPTH = 100  # the maximum nesting depth of a file's objects


class BudgetExceeded(pickle.UnpicklingError, RuntimeError):
    """A file needs more resources than its size allows. It is an UnpicklingError and a RuntimeError, the errors of the
    file formats.
    """


@functools.cache
def measure_python_slowdown() -> float:
    """Return the slowdown of Python here relative to the machine on which the time limits were chosen, at least 1."""
    least = 1 << 62
    for _ in range(3):
        begun = time.thread_time_ns()
        for _ in range(10_000):
            pass
        least = min(least, time.thread_time_ns() - begun)
    return max(1.0, least / _REFERENCE)


class Budget:
    """The remaining cost that reading a file may have. The reader of each format creates one from the file's size and
    passes it to the functions that read parts of the file.

    >>> from torchlite._serialization.resource_budget import Budget
    >>> budget = Budget(size=1000)
    >>> budget.spend(100_000)
    >>> budget.spend(10**9)
    Traceback (most recent call last):
    ...
    torchlite._serialization.resource_budget.BudgetExceeded: the file asks for more work or memory than what it holds
    can need
    """

    __slots__ = ("memory", "time", "work")

    def __init__(self, size: int) -> None:
        self.work = _FREE_WORK + _WORK_PER_BYTE * size
        self.time = int(measure_python_slowdown() * (_FREE_TIME + _TIME_PER_BYTE * size))
        self.memory = _FREE_MEMORY + _MEMORY_PER_BYTE * size

    def spend(self, steps: int) -> None:
        """Spend work, in steps. BudgetExceeded if all is spent."""
        self.work -= steps
        if self.work < 0:
            raise BudgetExceeded("the file asks for more work or memory than what it holds can need")

    def pass_time(self, passed: int) -> None:
        """Spend CPU time, in nanoseconds. BudgetExceeded if all is spent."""
        self.time -= passed
        if self.time < 0:
            raise BudgetExceeded("the file takes more time than what it holds can need")

    def take(self, count: int) -> None:
        """Spend memory, in bytes. BudgetExceeded if all is spent."""
        self.memory -= count
        if self.memory < 0:
            raise BudgetExceeded("the file makes more objects than its length can need")

    def check_depth(self, depth: int, what: str) -> None:
        """BudgetExceeded if `what` is nested too deeply."""
        if depth > MAX_DEPTH:
            raise BudgetExceeded(f"{what} more than {MAX_DEPTH} deep")
