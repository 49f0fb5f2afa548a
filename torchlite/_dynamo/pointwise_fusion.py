"""Pointwise fusion on the CPU: runs groups of large pointwise steps block by block in cache."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torchlite._dispatch.dispatch_state import GLOBALS

from .compile_source import define_function
from .fusion_groups import FusionGroup, form_fusion_groups
from .program_ir import Layouts, Program, Slot, Step, run_step

if TYPE_CHECKING:
    from torchlite.backends.protocol import AnyBackend


def fuse_pointwise(program: Program, layouts: Layouts, backend: AnyBackend) -> Program:
    """Replace each group of large pointwise steps by one step."""
    steps: list[Step] = []
    for one in form_fusion_groups(program, layouts, GLOBALS["LARGE"] * 2):
        if one.__class__ is Step:
            steps.append(one)
        else:
            found = _fuse_cache_blocked if backend.engine() == "numpy" else _fuse_on_engine
            steps += found(one, layouts, backend)  # type: ignore[arg-type]
    return replace(program, steps=steps)


def _fuse_on_engine(group: FusionGroup, layouts: Layouts, backend: AnyBackend) -> list[Step]:
    """Return a group's steps for a CPU engine: a fused kernel, with the reduction separate. Fall back to NumPy in
    blocks.
    """
    ending = group.ending
    if ending is not None:
        if len(group.steps) == 1:
            return group.all()
        read = {*group.outs, *ending.uses()}
        outs = [n for step in group.steps for n in step.makes() if n in read]
        group = replace(group, ending=None, reduced=0, outs=outs)
    (*others, step) = _fuse_cache_blocked(group, layouts, backend)
    if not others:
        given, output_layouts = ([layouts[n][:2] for n in slots] for slots in (group.given, group.outs))
        blocks = step.kernel
        step = replace(step, kernel=backend.fuse_pointwise(_compose_group(group), given, output_layouts, blocks))
        step.kernel.text = blocks.text
        if ending is not None and step.kernel is blocks:
            return [*group.steps, ending]
    return [*others, step] if ending is None else [*others, step, ending]


def _fuse_cache_blocked(group: FusionGroup, layouts: Layouts, backend: AnyBackend) -> list[Step]:
    """Return a group as one cache-blocked step, or its steps if their shapes cannot be split alike."""
    cut = _count_splittable_dims(group, layouts)
    if not cut:
        return group.all()
    text = _BlockSource(group, layouts)
    parameters = ", ".join([f"o{i}" for i in range(len(group.outs))] + [f"a{n}" for n in group.given])
    lines = "".join(f"    {line}\n" for line in text.lines)
    body = define_function("chain", f"def chain({parameters}):\n{lines}", text.space)
    rows, size = math.prod(group.shape[:cut]), math.prod(group.shape[cut:])
    outs = [(*layouts[n][:2], (rows, *layouts[n][0][cut:])) for n in group.outs]
    arrays = [_blocked_shape(layouts[n][0], group.shape, cut, rows) for n in group.given]
    run = backend.blockwise(body, outs, arrays, rows, size)
    run.text = "\n".join(f"    {line}  # {step.line}" for line, step in zip(text.lines, group.all(), strict=True))
    name = "_".join(step.name.strip("_") for step in group.all())
    outputs = tuple(map(Slot, group.outs))
    return [Step(name[:60], run, tuple(map(Slot, group.given)), {}, outputs, group.steps[0].line)]


def _compose_group(group: FusionGroup) -> Any:
    """Return a function that runs a group given kernels by op and input arrays. Frees intermediates after their last
    use.
    """
    last = {n: place for place, step in enumerate(group.steps) for n in (*step.uses(), *step.makes())}

    def compute(kernels: dict[str, Any], arrays: list) -> list:
        values = dict(zip(group.given, arrays, strict=True))
        for place, step in enumerate(group.steps):
            values.update(run_step(replace(step, kernel=kernels[step.name]), values))
            for n in {*step.uses(), *step.makes()}:
                if last[n] == place and n not in group.outs:
                    del values[n]
        return [values[n] for n in group.outs]

    return compute


def _blocked_shape(shape: tuple, whole: tuple, cut: int, rows: int) -> tuple[tuple, bool]:
    """Return an array's shape as seen by blocks, with leading dimensions merged, and whether it is split."""
    shape = (1,) * (len(whole) - len(shape)) + shape
    return ((rows, *shape[cut:]), True) if shape[:cut] == whole[:cut] else (shape[cut:], False)


def _count_splittable_dims(group: FusionGroup, layouts: Layouts) -> int:
    """Return how many leading dimensions can be merged and split: each array has all or none of them."""
    rank, cut = len(group.shape), 0
    shapes = [(1,) * (rank - len(layouts[n][0])) + layouts[n][0] for n in group.given]
    while cut < rank - group.reduced:
        more = cut + 1
        if not all(s[:more] == group.shape[:more] or math.prod(s[:more]) == 1 for s in shapes):
            break
        cut = more
    return cut


class _BlockSource:
    """Source writer of a group for one block. Reuses free block arrays for results, where kernels take an output
    array.
    """

    def __init__(self, group: FusionGroup, layouts: Layouts) -> None:
        self.group, self.layouts = group, layouts
        self.steps = group.all()
        self.outs = group.outs
        self.last = {n: place for place, step in enumerate(self.steps) for n in step.uses()}
        for step in reversed(self.steps):
            if not _out_argument(step):  # the result may alias an argument
                for n in step.uses():
                    self.last[n] = max(self.last[n], self.last.get(step.out.number, 0))
        self.names = {n: f"a{n}" for n in group.given}
        self.own: set[int] = set()  # slots in block-private memory; other kernels may return their argument
        self.space: dict[str, Any] = {}
        self.lines = [self._write_step(place, step) for place, step in enumerate(self.steps)]

    def _write_step(self, place: int, step: Step) -> str:
        function = f"{step.name}_{place}"
        kernel = unwrap_layout_wrapper(step.kernel)
        self.space[function] = getattr(kernel, "plain", kernel)  # blocks are small: use the serial kernel
        values = [self._value_expression(value, f"c{place}_{i}") for i, value in enumerate(step.args)]
        if step is self.group.ending:  # count dimensions from the end: leading ones are merged in a block
            values[1] = repr(tuple(range(-self.group.reduced, 0)) if step.args[1].__class__ is tuple else -1)
        values += [f"{name}={self._value_expression(value, f'c{place}_{name}')}" for name, value in step.kwargs.items()]
        number = step.out.number
        target = f"o{self.outs.index(number)}" if number in self.outs else self._result_block(place, step)
        written = _out_argument(step)
        if written:
            self.own.add(number)
        if written and target is not None:
            if is_ufunc(step):
                self.space[function] = find_ufunc(step)
            self.names[number] = target
            return f"{function}({', '.join(values)}, {written}={target})"
        self.names[number] = target if number in self.outs and target is not None else f"v{number}"
        return f"{self.names[number]}{'[...]' if number in self.outs else ''} = {function}({', '.join(values)})"

    def _value_expression(self, value: Any, name: str) -> str:
        if value.__class__ is Slot:
            return self.names[value.number]
        if value.__class__ in (bool, int, type(None)):
            return repr(value)
        self.space[name] = value
        return name

    def _result_block(self, place: int, step: Step) -> str | None:
        """Return a block array for the step's result: one that this step uses last, or an output array that is still
        free.
        """
        number = step.out.number
        shape, kind = self.layouts[number][:2]
        for n in step.uses():
            if n in self.own and n not in self.outs and self.last[n] == place and self.layouts[n][1] == kind:
                if self._is_free(self.names[n], number):
                    return self.names[n]
        for i, n in enumerate(self.outs):
            if f"o{i}" not in self.names.values() and self.layouts[n][:2] == (shape, kind):
                if self._is_free(f"o{i}", number):
                    return f"o{i}"
        return None

    def _is_free(self, name: str, number: int) -> bool:
        """True if an array is free until a slot's last use; an output array is used from its own step on."""
        if name[0] != "o":
            return True
        own = self.outs[int(name[1:])]
        return next(i for i, step in enumerate(self.steps) if step.out.number == own) >= self.last[number]


def is_ufunc(step: Step) -> bool:
    """True if a step returns a new array or writes to an `out` argument."""
    return find_ufunc(step).__class__.__name__ == "ufunc" and not step.kwargs


def _out_argument(step: Step) -> str:
    """Return the name of a kernel's output argument (`out` of ufuncs, `into` of others), which may alias an operand.
    Empty if there is none.
    """
    if is_ufunc(step):
        return "out"
    kernel = unwrap_layout_wrapper(step.kernel)
    code = getattr(getattr(kernel, "plain", kernel), "__code__", None)
    return "into" if code is not None and "into" in code.co_varnames[: code.co_argcount] else ""


def find_ufunc(step: Step) -> Any:
    """Return the ufunc that a step's kernel calls, another object if it calls none."""
    kernel = unwrap_layout_wrapper(step.kernel)
    kernel = getattr(kernel, "plain", kernel)  # an engine's kernel may fall back to NumPy's
    return getattr(kernel, "ufunc", kernel)


def unwrap_layout_wrapper(kernel: Any) -> Any:
    """Return a kernel without its layout wrapper (`layouts.apply_stride_rule`): row-major arrays need none."""
    return getattr(kernel, "without_rule", kernel)


def fuse_adjacent_steps(program: Program, layouts: Layouts, backend: AnyBackend) -> Program:
    """Fuse adjacent pointwise steps and a final reduction for devices. Intermediate results without other readers are
    not stored.
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
