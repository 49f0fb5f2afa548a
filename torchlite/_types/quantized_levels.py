"""Scales and zero points that fit a range of numbers, and constant matrices of levels."""

from __future__ import annotations

from typing import Any


def choose_parameters(least: float, greatest: float, low: int, high: int) -> tuple[float, int]:
    """Return a scale and a zero point for numbers of a range, which is widened to contain 0.

    The zero point is the one of the two ends with the smaller rounding error, rounded to an integer.
    """
    least, greatest = min(least, 0.0), max(greatest, 0.0)
    scale = (greatest - least) / (high - low)
    if scale == 0 or 1 / scale == float("inf"):
        scale = 0.1
    from_low, from_high = low - least / scale, high - greatest / scale
    error_low, error_high = abs(low) + abs(least / scale), abs(high) + abs(greatest / scale)
    exact = from_low if error_low < error_high else from_high
    return scale, int(min(max(round(exact), low), high))


class LevelsMatrix:
    """The right operand of many products: a raw array of levels, and their zero points or None.

    A kernel may keep its own form of them, which stands in their place: it has a method `levels` that gives them back.
    """

    __slots__ = ("_levels", "zero", "form", "shape")

    def __init__(self, levels: Any, zero: Any) -> None:
        self._levels, self.zero, self.shape = levels, zero, tuple(levels.shape)
        self.form: Any = None

    def levels(self) -> Any:
        """Return the levels."""
        levels, form = self._levels, self.form
        return form.levels() if levels is None else levels

    def keep(self, form: Any) -> Any:
        """Keep a kernel's form in the place of the levels, and return it."""
        self.form = form
        self._levels = None
        return form
