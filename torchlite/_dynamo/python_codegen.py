"""Lowers a program to the source of one Python function that calls its kernels in order."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np

from torchlite._types.python_source import is_identifier

from .compile_source import define_function
from .program_ir import Program, SizeNumber, Slot, Step, variable_name


class ReplayMiss(Exception):
    """An element or a data-dependent shape differs from the captured one. Raised before any write."""


class SourceWriter:
    """Source of a function, and the objects that it names."""

    def __init__(self, name: str, table: Any) -> None:
        self.name, self.table = name, table
        self.space: dict[str, Any] = {
            "slice": slice,
            "array": table.array,
            "as_array": table.as_array,
            "check": _make_shape_check(table),
            "check_shape": _check_shape,
        }
        self.space[name] = None  # reserves the function's name
        self.named: dict[int, str] = {}
        self.numbers: dict[int, None] = {}  # integers that sizes give
        self.lines: list[str] = []

    def object(self, value: Any, hint: str) -> str:
        """Return the global name of an object in the generated function."""
        found = self.named.get(id(value))
        if found is None:
            base = found = hint if is_identifier(hint) else "object"
            count = 1
            while found in self.space:
                count += 1
                found = f"{base}_{count}"
            self.named[id(value)] = found
            self.space[found] = value
        return found

    def value(self, value: Any) -> str:
        """Return an argument as source."""
        cls = value.__class__
        if cls is Slot:
            return variable_name(value.number)
        if cls is SizeNumber:
            self.numbers[value.number] = None
            return f"n{value.number}"
        if cls in (bool, int, str, bytes) or value is None or value is Ellipsis:
            return "..." if value is Ellipsis else repr(value)
        if cls is float and value == value and abs(value) != float("inf"):
            return repr(value)
        if cls is list:
            return f"[{', '.join(map(self.value, value))}]"
        if cls is tuple:
            return f"({', '.join(map(self.value, value))}{',' if len(value) == 1 else ''})"
        if cls is slice:
            return f"slice({self.value(value.start)}, {self.value(value.stop)}, {self.value(value.step)})"
        return self.object(value, getattr(value, "name", "") or cls.__name__)

    def step(self, step: Step) -> None:
        """Return a step's source line."""
        if step.kind == "read" and step.name == "shape":
            self.lines.append(f"check_shape({self.value(step.args[0])}, {tuple(step.expected.tolist())})")
            return
        if step.kind == "read":
            self.lines.append(f"check({self.value(step.args[0])}, {self.object(step.expected, 'expected')})")
            return
        if step.kind == "object":
            given = "".join(f"({i}, {self.value(slot)}), " for i, slot in step.grads)
            self.lines.append(f"publish(owners, ({given}))")
        inner = getattr(step.kernel, "program", None)
        if inner.__class__ is Program:
            self.lines += [f"#     {self.call(one)}" for one in inner.steps]
        self.lines.append(self.call(step))

    def call(self, step: Step) -> str:
        """Return a kernel call as source."""
        values = [self.value(v) for v in step.args] + [f"{n}={self.value(v)}" for n, v in step.kwargs.items()]
        name = step.name.replace("::", "_").replace(".", "_")  # ops of programs: "library::name.overload"
        call = f"{self.object(step.kernel, name)}({', '.join(values)})"
        if step.out.__class__ is tuple:
            targets = [f"v{part.number}" if part.__class__ is Slot else "_" for part in step.out]
            call = f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {call}" if targets else call
        elif step.out is not None:
            call = f"v{step.out.number} = {call}"
        return call


def _make_shape_check(table: Any) -> Any:
    to_numpy = table.to_numpy

    def check(raw: Any, expected: np.ndarray) -> None:
        found = to_numpy(raw)
        if found.tobytes() != expected.tobytes():
            raise ReplayMiss

    return check


def _check_shape(raw: Any, expected: tuple) -> None:
    if raw.shape != expected:
        raise ReplayMiss


def lower_to_python(name: str, program: Program, table: Any, scalars: set[int], publish: Any = None) -> Any:
    """Return the function of a program: takes its inputs and returns its output arrays. scalars: zero-dimensional
    slots, whose kernels may return NumPy scalars. Integers that sizes give are parameters with defaults. Without
    `publish`, the function takes one list and empties it, so no caller's frame keeps inputs alive.
    """
    writer = SourceWriter(name, table)
    writer.space["publish"] = publish
    for number, raw in program.constants.items():
        clone = table.clone if raw.__class__ is table.array else np.copy
        writer.lines.append(f"v{number} = {writer.object(clone, 'clone')}({writer.object(raw, 'constant')})")
    for number, raw in program.held.items():
        writer.space[f"v{number}"] = raw
    last = last_uses_by_step(program)
    shown = ""
    for place, step in enumerate(program.steps):
        if step.line and step.line != shown:
            writer.lines.append(f"# {_describe_source_line(step.line)}")
            shown = step.line
        writer.step(step)
        for number in step.makes():
            if number in scalars:
                writer.lines.append(f"if v{number}.__class__ is not array: v{number} = as_array(v{number})")
        dead = [variable_name(number) for number in last.get(place, ())]
        if dead:
            writer.lines.append(f"del {', '.join(dead)}")
    returned = "".join(f"{variable_name(number)}, " for number in program.outputs)
    writer.lines.append(f"return ({returned})")
    parameters = ", ".join([*map(variable_name, program.inputs), "owners"])
    if publish is None:
        names = "".join(f"{variable_name(number)}, " for number in program.inputs)
        writer.lines[:0] = [f"({names}) = given", "given.clear()"] if names else []
        parameters = "given"
    parameters += "".join(f", n{number}=0" for number in writer.numbers)
    text = f"def {name}({parameters}):\n" + "".join(f"    {line}\n" for line in writer.lines)
    function: Any = define_function(name, text, writer.space)
    function.numbers = tuple(writer.numbers)
    return function


def last_uses_by_step(program: Program) -> dict[int, list[int]]:
    """Return the slots that die at each step, including inputs and constants but not outputs."""
    kept = {*program.outputs, *program.held}
    last: dict[int, int] = {}
    for place, step in enumerate(program.steps):
        for number in (*step.uses(), *step.makes()):
            last[number] = place
    found: dict[int, list[int]] = {}
    for number, place in last.items():
        if number not in kept:
            found.setdefault(place, []).append(number)
    return found


def _describe_source_line(place: str) -> str:
    """Return a source location with its line of text."""
    path, _, number = place.rpartition(":")
    return f"{place}: {linecache.getline(path, int(number)).strip()}"
