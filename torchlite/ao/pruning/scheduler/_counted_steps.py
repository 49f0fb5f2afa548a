"""The order of steps: a scheduler's follow those of its sparsifier, which are counted."""

from __future__ import annotations

import functools
import warnings
import weakref
from typing import Any


def count_steps(sparsifier: Any) -> None:
    """Count the calls of a sparsifier's `step` in its attribute `_step_count`, from zero."""
    sparsifier._step_count = 0
    step = sparsifier.step
    if getattr(step, "_with_counter", False):
        return
    function, owner = step.__func__, weakref.ref(sparsifier)  # the attribute must not keep its owner alive

    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        instance: Any = owner()
        instance._step_count += 1
        return function(instance, *args, **kwargs)

    counted._with_counter = True  # type: ignore[attr-defined]
    sparsifier.step = counted


def warn_of_order(scheduler: Any, sparsifier: Any, name: str) -> None:
    """Warn if the first step of a scheduler comes before one of its sparsifier, which programs call `name`."""
    if scheduler._step_count != 1:
        return
    if not hasattr(sparsifier.step, "_with_counter"):
        text = (
            f"Seems like `{name}.step()` has been overridden after sparsity scheduler initialization. Please, make "
            f"sure to call `{name}.step()` before `scheduler.step()`."
        )
    elif sparsifier._step_count < 1:
        text = (
            f"Detected call of `scheduler.step()` before `{name}.step()`. You have to make sure you run the "
            f"{name}.step() BEFORE any calls to the scheduler.step()."
        )
    else:
        return
    warnings.warn(text, UserWarning, stacklevel=3)
