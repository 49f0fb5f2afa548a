"""PassManager: runs PassResult passes in a constrained order."""

from __future__ import annotations

import functools
import inspect
from collections import deque
from collections.abc import Callable
from typing import Any

from ....nn.modules.module import Module
from ..._compatibility import compatibility
from ...graph_module import GraphModule
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]


def _pass_name(function: Any) -> str:
    return function.__name__ if inspect.isfunction(function) else type(function).__name__


@compatibility(is_backward_compatible=False)
def pass_result_wrapper(fn: Any) -> Any:
    """Wrap a function that changes or returns a module as a pass that returns a PassResult."""
    if fn is None:
        return None

    @functools.wraps(fn)
    def wrapped(gm: Any) -> PassResult | None:
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        if isinstance(result, Module):
            return PassResult(result, True)
        return result if isinstance(result, PassResult) else None

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def _validate_pass_schedule_constraint(constraint: Constraint, passes: list[Pass]) -> None:
    for i, first in enumerate(passes):
        for j, second in enumerate(passes[i + 1 :]):
            if not constraint(first, second):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {first} before {second} but found {first} at index "
                    f"{i} and {second} at index{j} in pass list."
                )


def _topological_sort_passes(passes: list[Pass], constraints: list[Constraint]) -> list[Pass]:
    """Return the passes in topological order. Raise RuntimeError for cyclic constraints."""
    if not constraints:
        return passes
    behind: dict[Pass, list[Pass]] = {
        a: [b for b in passes if b is not a for allowed in constraints if not allowed(b, a)] for a in passes
    }
    waits = {a: sum(followers.count(a) for followers in behind.values()) for a in passes}
    ready = deque(a for a in passes if not waits[a])
    ordered: list[Pass] = []
    while ready:
        done = ready.popleft()
        ordered.append(done)
        for follower in behind[done]:
            waits[follower] -= 1
            if not waits[follower]:
                ready.append(follower)
    left = [a for a in passes if waits[a]]
    if left:
        raise RuntimeError(f"Circular dependency detected within the following passes: {left}")
    return ordered


@compatibility(is_backward_compatible=False)
def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """Return the constraint that one pass precedes another."""

    def depends_on(a: Pass, b: Pass) -> bool:
        return a != that or b != this

    return depends_on


@compatibility(is_backward_compatible=False)
class PassManager:
    """Run passes over a module in an order that satisfies constraints.

    passes: functions that return a PassResult. constraints: predicates of two passes that decide if the first may
    precede the second. steps: maximum number of rounds; a round without change ends. run_checks_after_each_pass: call
    `check` after each pass. suppress_check_failures: stored only.

    >>> import torchlite as torch
    >>> from torchlite.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper
    >>> manager = PassManager([pass_result_wrapper(lambda module: None)])
    >>> manager(torch.fx.symbolic_trace(lambda x: x)).modified
    True
    """

    _validated = False
    steps = 1

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes, self.constraints = passes or [], constraints or []
        self.steps = steps or self.steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def add_pass(self, _pass: Pass) -> None:
        """Append a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Add a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raise RuntimeError if the order violates a constraint."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
        self._validated = True

    def solve_constraints(self) -> None:
        """Reorder the passes to satisfy the constraints."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Any], None]) -> None:
        """Set the check function."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        setattr(self, "check", check)  # noqa: B010

    def check(self, module: Any) -> None:
        """Check a module.

        `module` has no effect; subclasses check it.
        """
        return

    def __call__(self, module: Any) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            modified = False
            for place, function in enumerate(self.passes):
                try:
                    result = self._run(function, module)
                except Exception as error:  # the user's pass may raise anything
                    before = [_pass_name(other) for other in self.passes[:place]]
                    raise Exception(
                        f"An error occurred when running the '{_pass_name(function)}' pass after the following passes: "
                        f"{before}"
                    ) from error
                module, modified = result.graph_module, modified or result.modified
            changed = changed or modified
            if not modified:
                break
        return PassResult(module, changed)

    def _run(self, function: Pass, module: Any) -> Any:
        result = function(module)
        if not hasattr(result, "graph_module"):
            raise TypeError(
                f"The result of the pass {_pass_name(function)} should be type PassResult."
                "Please wrap it with pass_result_wrapper()"
            )
        if isinstance(result.graph_module, GraphModule):
            result.graph_module.recompile()
        if self.run_checks_after_each_pass:
            self.check(result.graph_module)
        return result
