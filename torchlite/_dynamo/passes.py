"""Passes over programs. Each takes a program and gives one that does the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torchlite._dispatch.record import POINTWISE, RANDOM, REGISTRY, VIEW
from torchlite._dispatch.runtime import GLOBALS

from .program import Program, Slot, Step
from .texts import compiled

# A layout is (shape, NumPy's dtype, whether it is contiguous); of arrays that have one, by slot.
Layouts = dict[int, tuple[tuple, Any, bool]]


def without_dead_code(program: Program) -> Program:
    """Leave out steps whose results nobody uses: those of ops that neither write nor draw."""
    wanted, kept = set(program.outputs), []
    for step in reversed(program.steps):
        if not is_pure(step) or any(number in wanted for number in step.makes()):
            kept.append(step)
            wanted.update(step.uses())
    constants = {number: raw for number, raw in program.constants.items() if number in wanted}
    return replace(program, steps=kept[::-1], constants=constants)


def is_pure(step: Step) -> bool:
    """Whether a step does nothing but give a result."""
    op = REGISTRY.get(step.name)
    if step.name in ("_wide", "_narrowed"):  # casts between half precision and float32
        return True
    return (
        step.kind == "kernel"
        and op is not None
        and step.name[-1] != "_"
        and not op.tags & RANDOM
        and not step.name.startswith(("random_", "_fused_", "_amp_"))
        and step.name not in _WRITING
    )


# Kernels that write into what they get, whatever their names.
_WRITING = frozenset(("copy_into", "_scale_all", "_clamp_all", "_unscale_alike", "_drawn_over"))


def with_chains(program: Program, layouts: Layouts, blockwise: Callable) -> Program:
    """Join pointwise steps on large arrays that follow each other into one that goes over all of them block by block.

    blockwise: the backend's `blockwise(body, shape, dtypes, arrays)`.
    """
    steps: list[Step] = []
    group: list[Step] = []
    shape: tuple | None = None
    for place, step in enumerate([*program.steps, None]):
        found = None if step is None else _shape_of_chain(step, layouts)
        if group and found != shape:
            later = {n for one in program.steps[place:] for n in one.uses()} | set(program.outputs)
            steps += [_chain(group, shape, layouts, later, blockwise)] if len(group) > 1 else group
            group = []
        if step is None:
            break
        shape = found
        if found is None:
            steps.append(step)
        else:
            group.append(step)
    return replace(program, steps=steps)


def _shape_of_chain(step: Step, layouts: Layouts) -> tuple | None:
    """The shape of a step that can be a part of a chain; None of others."""
    op = REGISTRY.get(step.name)
    if op is None or not op.tags & POINTWISE or op.tags & VIEW or not is_pure(step) or step.out.__class__ is not Slot:
        return None
    if any(value.__class__ in (list, tuple) for value in (*step.args, *step.kwargs.values())):
        return None
    parts = [layouts.get(number) for number in (*step.uses(), *step.makes())]
    if len(parts) < 2 or parts[0] is None or any(p is None or not p[2] or p[0] != parts[0][0] for p in parts):
        return None
    size = 1
    for n in parts[0][0]:
        size *= n
    return parts[0][0] if size >= GLOBALS["LARGE"] * 2 else None


class _Chain:
    """The text of a chain, block by block: the arrays of a block are few, so that they stay in a core's cache."""

    def __init__(self, group: list[Step], layouts: Layouts, later: set[int]) -> None:
        self.group, self.layouts = group, layouts
        made = [number for step in group for number in step.makes()]
        self.given = list(dict.fromkeys(n for step in group for n in step.uses() if n not in made))
        self.outs = [n for n in made if n in later]
        self.last = {n: place for place, step in enumerate(group) for n in step.uses()}
        for step in reversed(group):
            if not _is_ufunc(step):  # what it returns may be what it got
                for n in step.uses():
                    self.last[n] = max(self.last[n], self.last.get(step.out.number, 0))
        self.names = {n: f"a{n}" for n in self.given}
        self.own: set[int] = set()  # what lies in memory of the chain's: other kernels may return what they got
        self.space: dict[str, Any] = {}
        self.lines = [self._line(place, step) for place, step in enumerate(group)]

    def _line(self, place: int, step: Step) -> str:
        self.space[f"f{place}"] = step.kernel
        values = [self._value(value, f"c{place}_{i}") for i, value in enumerate(step.args)]
        values += [f"{name}={self._value(value, f'c{place}_{name}')}" for name, value in step.kwargs.items()]
        number = step.out.number
        target = f"o{self.outs.index(number)}" if number in self.outs else self._target(place, step)
        if _is_ufunc(step):
            self.own.add(number)
        if _is_ufunc(step) and target is not None:
            self.space[f"f{place}"] = getattr(step.kernel, "ufunc", step.kernel)
            self.names[number] = target
            return f"f{place}({', '.join(values)}, out={target})"
        self.names[number] = target if number in self.outs and target is not None else f"v{number}"
        return f"{self.names[number]}{'[...]' if number in self.outs else ''} = f{place}({', '.join(values)})"

    def _value(self, value: Any, name: str) -> str:
        if value.__class__ is Slot:
            return self.names[value.number]
        self.space[name] = value
        return name

    def _target(self, place: int, step: Step) -> str | None:
        """An array of the block that the step may write its result into: one that it is the last to use, or a result
        whose own time comes when this one is not needed any more.
        """
        number = step.out.number
        kind = self.layouts[number][1]
        for n in step.uses():
            if n in self.own and n not in self.outs and self.last[n] == place and self.layouts[n][1] == kind:
                if self._is_free(self.names[n], number):
                    return self.names[n]
        for i, n in enumerate(self.outs):
            if f"o{i}" not in self.names.values() and self.layouts[n][1] == kind and self._is_free(f"o{i}", number):
                return f"o{i}"
        return None

    def _is_free(self, name: str, number: int) -> bool:
        """Whether an array may hold a slot until that is used for the last time: a result's own time comes later."""
        if name[0] != "o":
            return True
        own = self.outs[int(name[1:])]
        return next(place for place, step in enumerate(self.group) if step.out.number == own) >= self.last[number]


def _is_ufunc(step: Step) -> bool:
    """Whether a step makes a new array, or writes into one that it is given as `out`."""
    return getattr(step.kernel, "ufunc", step.kernel).__class__.__name__ == "ufunc" and not step.kwargs


def _chain(group: list[Step], shape: Any, layouts: Layouts, later: set[int], blockwise: Callable) -> Step:
    """The step in the place of a group; `later` are the slots that others use."""
    text = _Chain(group, layouts, later)
    parameters = ", ".join([f"o{i}" for i in range(len(text.outs))] + [f"a{n}" for n in text.given])
    body = compiled(
        "chain", f"def chain({parameters}):\n" + "".join(f"    {line}\n" for line in text.lines), text.space
    )
    dtypes = tuple([layouts[n][1] for n in text.outs])

    def run(*arrays: Any) -> Any:
        return blockwise(body, shape, dtypes, arrays)

    run.text = body.text  # type: ignore[attr-defined]
    name = "_".join(step.name.strip("_") for step in group)
    return Step(name[:60], run, tuple(map(Slot, text.given)), {}, tuple(map(Slot, text.outs)), group[0].line)
