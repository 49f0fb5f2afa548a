"""Launch recording for devices: consecutive kernels are recorded as launches and restarted by one call."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from torchlite._dispatch.kernel_recorder import UnrecordableError
from torchlite._dispatch.op_record import RANDOM, REGISTRY
from torchlite._settings import fork_locks

from .program_ir import Program, Slot, Step, run_step
from .python_codegen import last_uses_by_step, lower_to_python
from .step_purity import is_pure


class LaunchSequence:
    """Consecutive kernels of a program as one kernel of their inputs.

    The first call records the launches. If a step needs the host, the call runs kernel by kernel, which makes what
    kernels keep, such as tables of offsets, and the second call records. A step that needs the host even then, for
    example to read elements, runs separately and splits the sequence.
    """

    def __init__(self, program: Program, table: Any, mode: str, has_run: bool = False) -> None:
        self.program, self.table, self.mode = program, table, mode
        self._has_run = has_run  # whether each kernel was called once
        self._lock = fork_locks.reinit_after_fork(threading.RLock())
        self._launches: Any = None
        self._parts: Any = None  # function that runs all parts
        self._plain: Any = None  # function that runs kernel by kernel

    def __call__(self, *given: Any) -> tuple:
        launches = self._launches
        if launches is None and self._parts is None:
            with self._lock:
                if self._launches is None and self._parts is None:
                    self._record_launches(given)
            launches = self._launches
        if launches is None:
            return self._run_plain(given) if self._parts is None else self._parts([*given])
        found = launches.run(given)
        return self._run_plain(given) if found is None else found

    def _run_plain(self, given: tuple) -> tuple:
        """Run kernel by kernel."""
        if self._plain is None:
            self._plain = lower_to_python("kernels", self.program, self.table, set())
        return self._plain([*given])

    def _record_launches(self, given: tuple) -> None:
        """Record the launches of the steps."""
        steps = _StepRunner(self.program)
        try:
            self._launches = self.table.backend.record_launches(self.table.device.index or 0, steps, given, self.mode)
        except UnrecordableError:
            self._launches = None
            if self._has_run:
                self._parts = lower_to_python("parts", self._split_around_host_step(steps.place), self.table, set())
            self._has_run = True

    def _split_around_host_step(self, place: int) -> Program:
        """Return the program split around a host step."""
        program = self.program
        before, after = (
            _split_into_sequences(program, *part, self.table, self.mode, True)
            for part in ((0, place), (place + 1, len(program.steps)))
        )
        return replace(program, steps=[*before, program.steps[place], *after])


class _StepRunner:
    """Runs a program's steps on given inputs. `place` is the current or failed step, `touched` the arrays passed to
    kernels that may write. Frees arrays after their last use.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.place = program, 0
        self.last = last_uses_by_step(program)
        self.touched: list[Any] = []

    def __call__(self, *given: Any) -> tuple:
        arrays, self.touched = dict(zip(self.program.inputs, given, strict=True)), []
        for place, step in enumerate(self.program.steps):
            self.place = place
            if _may_write_args(step):
                self.touched += [arrays[number] for number in step.uses()]
            arrays.update(run_step(step, arrays))
            for number in self.last.get(place, ()):
                arrays.pop(number, None)
        return tuple([arrays[number] for number in self.program.outputs])


def _may_write_args(step: Step) -> bool:
    """True if a kernel may modify its arguments; random sampling alone does not."""
    op = REGISTRY.get(step.name)
    draws = step.name.startswith("_random_") or op is not None and op.tags & RANDOM and step.name[-1] != "_"
    return not is_pure(step) and not draws


def record_launch_sequences(program: Program, table: Any, mode: str) -> Program:
    """Replace consecutive kernels by launch sequences."""
    steps: list[Step] = []
    begin = 0
    for place, step in enumerate(program.steps):
        if step.kind != "kernel":
            steps += [*_split_into_sequences(program, begin, place, table, mode), step]
            begin = place + 1
    return replace(program, steps=steps + _split_into_sequences(program, begin, len(program.steps), table, mode))


def _split_into_sequences(
    program: Program, begin: int, end: int, table: Any, mode: str, has_run: bool = False
) -> list[Step]:
    """Return the kernels of a range as one step, none for an empty range."""
    steps = program.steps[begin:end]
    if not steps:
        return []
    later = {n for step in program.steps[end:] for n in step.uses()} | set(program.outputs)
    made = list(dict.fromkeys(n for step in steps for n in step.makes()))
    given = list(dict.fromkeys(n for step in steps for n in step.uses() if n not in made))
    part = LaunchSequence(Program(steps, given, {}, [n for n in made if n in later]), table, mode, has_run)
    return [Step("launches", part, tuple(map(Slot, given)), {}, tuple(map(Slot, part.program.outputs)), steps[0].line)]
