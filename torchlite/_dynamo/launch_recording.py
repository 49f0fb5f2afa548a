"""Programs of devices: kernels that follow each other are recorded as launches, and started again by one call."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torchlite._dispatch.kernel_recorder import UnrecordableError
from torchlite._dispatch.op_record import RANDOM, REGISTRY
from torchlite._settings import fork_locks

from .fusion_groups import FusionGroup, form_fusion_groups
from .program_ir import Layouts, Program, Slot, Step
from .python_codegen import last_uses_by_step, lower_to_python
from .side_effects import is_pure

if TYPE_CHECKING:
    from torchlite.backends.protocol import AnyBackend


class LaunchSequence:
    """Kernels of a program that follow each other, as one kernel of the arrays that they read from outside.

    The first call records what they start. Where one of them needs the host (it reads elements, say), it is a part of
    its own, which runs as it is, and so are those before and after it.
    """

    def __init__(self, program: Program, table: Any, mode: str) -> None:
        self.program, self.table, self.mode = program, table, mode
        self._lock = fork_locks.reinit_after_fork(threading.RLock())
        self._launches: Any = None
        self._parts: Any = None  # a function over parts
        self._plain: Any = None  # the kernels one by one

    def __call__(self, *given: Any) -> tuple:
        launches = self._launches
        if launches is None and self._parts is None:
            with self._lock:
                if self._launches is None and self._parts is None:
                    self._record(given)
            launches = self._launches
        if launches is None:
            return self._parts([*given])
        found = launches.run(given)
        if found is None:
            if self._plain is None:
                self._plain = lower_to_python("kernels", self.program, self.table, set())
            found = self._plain([*given])
        return found

    def _record(self, given: tuple) -> None:
        """Find what is started."""
        steps = _StepRunner(self.program)
        try:
            self._launches = self.table.backend.record_launches(self.table.device.index or 0, steps, given, self.mode)
        except UnrecordableError:
            self._launches = None
            self._parts = lower_to_python("parts", self._apart(steps.place), self.table, set())

    def _apart(self, place: int) -> Program:
        """The program with what comes before and after a step in parts."""
        program = self.program
        steps = [*_split_into_sequences(program, 0, place, self.table, self.mode), program.steps[place]]
        return replace(
            program, steps=steps + _split_into_sequences(program, place + 1, len(program.steps), self.table, self.mode)
        )


class _StepRunner:
    """The steps of a program as a function of its inputs; `place` is the step that runs, or that failed, and `touched`
    the arrays that were given to kernels that may write. Arrays die where they were used last.
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
            _run_step(step, arrays)
            for number in self.last.get(place, ()):
                arrays.pop(number, None)
        return tuple([arrays[number] for number in self.program.outputs])


def _may_write_args(step: Step) -> bool:
    """Whether a kernel may change what it gets: those that only draw numbers do not."""
    op = REGISTRY.get(step.name)
    draws = step.name.startswith("_random_") or op is not None and op.tags & RANDOM and step.name[-1] != "_"
    return not is_pure(step) and not draws


def _run_step(step: Step, arrays: dict) -> None:
    result = step.kernel(
        *[_substitute_arrays(value, arrays) for value in step.args],
        **{name: _substitute_arrays(value, arrays) for name, value in step.kwargs.items()},
    )
    if step.out.__class__ is Slot:
        arrays[step.out.number] = result
    elif step.out is not None:
        arrays.update((slot.number, raw) for slot, raw in zip(step.out, result, strict=True) if slot is not None)


def _substitute_arrays(value: Any, arrays: dict) -> Any:
    """An argument with arrays in the places of Slots."""
    cls = value.__class__
    if cls is Slot:
        return arrays[value.number]
    if cls is tuple or cls is list:
        return cls([_substitute_arrays(item, arrays) for item in value])
    if cls is slice:
        return slice(
            _substitute_arrays(value.start, arrays),
            _substitute_arrays(value.stop, arrays),
            _substitute_arrays(value.step, arrays),
        )
    return value


def fuse_adjacent_steps(program: Program, layouts: Layouts, backend: AnyBackend) -> Program:
    """The program with steps next to each other that can be computed together, pointwise ones and a reduction at the
    end: devices join them. What only that reads is not written where they do.
    """
    steps: list[Step] = []
    for one in form_fusion_groups(program, layouts, 1):
        if isinstance(one, FusionGroup):
            steps += one.all()
            ending = one.ending
            if ending is not None and ending.args[0].number not in one.outs and hasattr(backend, "consume_last_use"):
                steps[-1] = replace(ending, kernel=backend.consume_last_use(ending.kernel))
        else:
            steps.append(one)
    return replace(program, steps=steps)


def record_launch_sequences(program: Program, table: Any, mode: str) -> Program:
    """The program with its kernels in parts: all between two steps that are none."""
    steps: list[Step] = []
    begin = 0
    for place, step in enumerate(program.steps):
        if step.kind != "kernel":
            steps += [*_split_into_sequences(program, begin, place, table, mode), step]
            begin = place + 1
    return replace(program, steps=steps + _split_into_sequences(program, begin, len(program.steps), table, mode))


def _split_into_sequences(program: Program, begin: int, end: int, table: Any, mode: str) -> list[Step]:
    """The steps of a range as one, none where there are none."""
    steps = program.steps[begin:end]
    if not steps:
        return []
    later = {n for step in program.steps[end:] for n in step.uses()} | set(program.outputs)
    made = list(dict.fromkeys(n for step in steps for n in step.makes()))
    given = list(dict.fromkeys(n for step in steps for n in step.uses() if n not in made))
    part = LaunchSequence(Program(steps, given, {}, [n for n in made if n in later]), table, mode)
    return [Step("launches", part, tuple(map(Slot, given)), {}, tuple(map(Slot, part.program.outputs)), steps[0].line)]
