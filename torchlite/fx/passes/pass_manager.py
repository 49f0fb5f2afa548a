"""PassManager for functions of modules, with order constraints."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any

from .infra.pass_manager import _validate_pass_schedule_constraint, this_before_that_pass_constraint

__all__ = [
    "PassManager", "inplace_wrapper", "log_hook", "loop_pass", "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]  # fmt: skip

logger = logging.getLogger(__name__)
Pass = Callable[..., Any]


def inplace_wrapper(fn: Pass) -> Pass:
    """Wrap a function that changes its argument in place so that it returns the argument.

    >>> from torchlite.fx.passes.pass_manager import inplace_wrapper
    >>> inplace_wrapper(lambda items: items.append(1))([0])
    [0, 1]
    """

    @functools.wraps(fn)
    def wrapped(gm: Any, *args: Any, **kwargs: Any) -> Any:
        fn(gm, *args, **kwargs)
        return gm

    return wrapped


def log_hook(fn: Pass, level: int = logging.INFO) -> Pass:
    """Wrap a function to log its calls and results."""

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = fn(*args, **kwargs)
        logger.log(level, "Ran pass %s\n Return value: %s", fn, found)
        return found

    return wrapped


def loop_pass(base_pass: Pass, n_iter: int | None = None, predicate: Callable[[Any], bool] | None = None) -> Pass:
    """Repeat a function a number of times, or while the predicate is True. Raise AssertionError if both or neither are
    given.

    >>> from torchlite.fx.passes.pass_manager import loop_pass
    >>> loop_pass(lambda n: n * 2, n_iter=3)(1), loop_pass(lambda n: n * 2, predicate=lambda n: n < 100)(1)
    (8, 128)
    """
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter` or `predicate` must be specified.")

    @functools.wraps(base_pass)
    def looped(source: Any) -> Any:
        if n_iter is not None:
            for _ in range(n_iter):
                source = base_pass(source)
            return source
        while predicate(source):  # type: ignore[misc]
            source = base_pass(source)
        return source

    return looped


def these_before_those_pass_constraint(these: Pass, those: Pass) -> Callable[[Pass, Pass], bool]:
    """Return the constraint that passes made by one function precede those of another, compared by the wrapped
    function.
    """

    def holds(a: Pass, b: Pass) -> bool:
        return not (_unwrap_function(a) is those and _unwrap_function(b) is these)

    return holds


def _unwrap_function(function: Any) -> Any:
    return inspect.unwrap(function) if callable(function) else function


class PassManager:
    """Run functions of a module in order. Constraints on two passes decide if the first may precede the second.

    >>> from torchlite.fx.passes.pass_manager import PassManager
    >>> manager = PassManager([lambda n: n + 1, lambda n: n * 10])
    >>> manager(4)
    50
    """

    def __init__(self, passes: list[Pass] | None = None, constraints: list[Callable] | None = None) -> None:
        self.passes, self.constraints = list(passes or ()), list(constraints or ())
        self._validated = False

    @classmethod
    def build_from_passlist(cls, passes: list[Pass]) -> PassManager:
        """Return a manager of passes without constraints."""
        return cls(passes)

    def add_pass(self, _pass: Pass) -> None:
        """Append a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable) -> None:
        """Add a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes: list[str]) -> None:
        """Remove the passes with these names."""
        self.passes = [p for p in self.passes if getattr(p, "__name__", "") not in _passes]
        self._validated = False

    def replace_pass(self, _target: Pass, _replacement: Pass) -> None:
        """Replace passes with the name of another."""
        self.passes = [_replacement if p.__name__ == _target.__name__ else p for p in self.passes]
        self._validated = False

    def validate(self) -> None:
        """Raise RuntimeError if a constraint is violated."""
        if self._validated:
            return
        for constraint in self.constraints:
            _validate_pass_schedule_constraint(constraint, self.passes)
        self._validated = True

    def __call__(self, source: Any) -> Any:
        self.validate()
        for each in self.passes:
            source = each(source)
        return source
