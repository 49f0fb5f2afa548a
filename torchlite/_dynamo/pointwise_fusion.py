"""Groups of large pointwise steps as one step that goes over all arrays by blocks that stay in a core's cache."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torchlite._dispatch.dispatch_state import GLOBALS

from .compile_source import define_function
from .fusion_groups import FusionGroup, form_fusion_groups
from .program_ir import Layouts, Program, Slot, Step, substitute_arrays

if TYPE_CHECKING:
    from torchlite.backends.protocol import AnyBackend


def fuse_pointwise(program: Program, layouts: Layouts, backend: AnyBackend) -> Program:
    """Put one step in the place of each group of large pointwise steps."""
    steps: list[Step] = []
    for one in form_fusion_groups(program, layouts, GLOBALS["LARGE"] * 2):
        if one.__class__ is Step:
            steps.append(one)
        else:
            found = _fuse_cache_blocked if backend.engine() == "numpy" else _fuse_on_engine
            steps += found(one, layouts, backend)  # type: ignore[arg-type]
    return replace(program, steps=steps)


def _fuse_on_engine(group: FusionGroup, layouts: Layouts, backend: AnyBackend) -> list[Step]:
    """The steps in the place of a group where an engine serves: what it joins, the reduction for itself. NumPy goes by
    blocks over a group that the engine cannot join.
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
        given, made = ([layouts[n][:2] for n in slots] for slots in (group.given, group.outs))
        blocks = step.kernel
        step = replace(step, kernel=backend.fuse_pointwise(_compose_group(group), given, made, blocks))
        step.kernel.text = blocks.text
        if ending is not None and step.kernel is blocks:
            return [*group.steps, ending]
    return [*others, step] if ending is None else [*others, step, ending]


def _fuse_cache_blocked(group: FusionGroup, layouts: Layouts, backend: AnyBackend) -> list[Step]:
    """The step in the place of a group, or its steps where they cannot be cut alike."""
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
    made = tuple(map(Slot, group.outs))
    return [Step(name[:60], run, tuple(map(Slot, group.given)), {}, made, group.steps[0].line)]


def _compose_group(group: FusionGroup) -> Any:
    """A function of kernels by op and the arrays that are read that gives the results; what is between them is let go
    of where it is used for the last time.
    """
    last = {n: place for place, step in enumerate(group.steps) for n in (*step.uses(), *step.makes())}

    def compute(kernels: dict[str, Any], arrays: list) -> list:
        values = {Slot(n): array for n, array in zip(group.given, arrays, strict=True)}
        for place, step in enumerate(group.steps):
            args, kwargs = (
                substitute_arrays(step.args, values),
                dict(substitute_arrays(tuple(step.kwargs.items()), values)),
            )
            values[step.out] = kernels[step.name](*args, **kwargs)
            del args, kwargs
            for n in {*step.uses(), *step.makes()}:
                if last[n] == place and n not in group.outs:
                    del values[Slot(n)]
        return [values[Slot(n)] for n in group.outs]

    return compute


def _blocked_shape(shape: tuple, whole: tuple, cut: int, rows: int) -> tuple[tuple, bool]:
    """The shape in which blocks see an array, its leading dimensions as one, and whether that is cut."""
    shape = (1,) * (len(whole) - len(shape)) + shape
    return ((rows, *shape[cut:]), True) if shape[:cut] == whole[:cut] else (shape[cut:], False)


def _count_splittable_dims(group: FusionGroup, layouts: Layouts) -> int:
    """How many leading dimensions can be cut as if they were one: in each array all of them are there or none is."""
    rank, cut = len(group.shape), 0
    shapes = [(1,) * (rank - len(layouts[n][0])) + layouts[n][0] for n in group.given]
    while cut < rank - group.reduced:
        more = cut + 1
        if not all(s[:more] == group.shape[:more] or math.prod(s[:more]) == 1 for s in shapes):
            break
        cut = more
    return cut


class _BlockSource:
    """The text of a group, for one block. Results go where an array of the block is free, if the kernel can be told."""

    def __init__(self, group: FusionGroup, layouts: Layouts) -> None:
        self.group, self.layouts = group, layouts
        self.steps = group.all()
        self.outs = group.outs
        self.last = {n: place for place, step in enumerate(self.steps) for n in step.uses()}
        for step in reversed(self.steps):
            if not _out_argument(step):  # what it returns may be what it got
                for n in step.uses():
                    self.last[n] = max(self.last[n], self.last.get(step.out.number, 0))
        self.names = {n: f"a{n}" for n in group.given}
        self.own: set[int] = set()  # what lies in memory of the chain's: other kernels may return what they got
        self.space: dict[str, Any] = {}
        self.lines = [self._line(place, step) for place, step in enumerate(self.steps)]

    def _line(self, place: int, step: Step) -> str:
        function = f"{step.name}_{place}"
        kernel = without_layout_wrapper(step.kernel)
        self.space[function] = getattr(kernel, "plain", kernel)  # blocks are small
        values = [self._value(value, f"c{place}_{i}") for i, value in enumerate(step.args)]
        if step is self.group.ending:  # dimensions are counted from the end: those in front are one in a block
            values[1] = repr(tuple(range(-self.group.reduced, 0)) if step.args[1].__class__ is tuple else -1)
        values += [f"{name}={self._value(value, f'c{place}_{name}')}" for name, value in step.kwargs.items()]
        number = step.out.number
        target = f"o{self.outs.index(number)}" if number in self.outs else self._target(place, step)
        written = _out_argument(step)
        if written:
            self.own.add(number)
        if written and target is not None:
            if is_ufunc(step):
                self.space[function] = ufunc_of(step)
            self.names[number] = target
            return f"{function}({', '.join(values)}, {written}={target})"
        self.names[number] = target if number in self.outs and target is not None else f"v{number}"
        return f"{self.names[number]}{'[...]' if number in self.outs else ''} = {function}({', '.join(values)})"

    def _value(self, value: Any, name: str) -> str:
        if value.__class__ is Slot:
            return self.names[value.number]
        if value.__class__ in (bool, int, type(None)):
            return repr(value)
        self.space[name] = value
        return name

    def _target(self, place: int, step: Step) -> str | None:
        """An array of the block that the step may write its result into: one that it is the last to use, or a result
        whose own time comes when this one is not needed any more.
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
        """Whether an array may hold a slot until that is used for the last time: a result's own time comes later."""
        if name[0] != "o":
            return True
        own = self.outs[int(name[1:])]
        return next(i for i, step in enumerate(self.steps) if step.out.number == own) >= self.last[number]


def is_ufunc(step: Step) -> bool:
    """Whether a step makes a new array, or writes into one that it is given as `out`."""
    return ufunc_of(step).__class__.__name__ == "ufunc" and not step.kwargs


def _out_argument(step: Step) -> str:
    """The argument by which a step's kernel takes the array that it writes its result into, which may be its operand:
    `out` of a ufunc, `into` of others; empty where there is none.
    """
    if is_ufunc(step):
        return "out"
    kernel = without_layout_wrapper(step.kernel)
    code = getattr(getattr(kernel, "plain", kernel), "__code__", None)
    return "into" if code is not None and "into" in code.co_varnames[: code.co_argcount] else ""


def ufunc_of(step: Step) -> Any:
    """The ufunc that a step's kernel calls; something else where it calls none."""
    kernel = without_layout_wrapper(step.kernel)
    kernel = getattr(kernel, "plain", kernel)  # an engine's kernel may ask NumPy's
    return getattr(kernel, "ufunc", kernel)


def without_layout_wrapper(kernel: Any) -> Any:
    """A kernel without what lays its result out (`layouts.keeps_layout`): that of row-major arrays is row-major."""
    return getattr(kernel, "without_rule", kernel)


__all__ = ["without_layout_wrapper", "is_ufunc", "ufunc_of", "fuse_pointwise"]
