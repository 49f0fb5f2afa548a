"""Puts the channels of images last between the convolutions of a captured program, where a backend has kernels for it.

Arrays in this order are slots of their own, with the shape (images, rows, columns, channels). Elementwise ops run on
them as they are. An op that has no such form gets its arguments copied back to PyTorch's order.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from torchlite._dispatch.numpy_errors import run_quietly
from torchlite._dispatch.op_record import POINTWISE, REGISTRY, VIEW
from torchlite._settings.equal_arrays import share_equal

from .dead_code_elimination import eliminate_dead_code
from .program_ir import Layouts, Program, Slot, Step
from .row_major_layouts import infer_layouts
from .step_purity import is_pure, only_mutates_args

_CONVOLUTIONS = ("convolution", "_fused_conv_bn")
_ORDER = (0, 2, 3, 1)  # PyTorch's dimensions in the order of those with channels last
_PLACES = (0, 3, 1, 2)  # the reverse
_F32 = np.dtype(np.float32)
# Nanoseconds: what a result gains that is in this order, and what a copy of a number into the other order costs, from
# arrays that are contiguous and others.
_GAIN_PER_RESULT, _COST_PER_COPY, _COST_PER_STRIDED_COPY = 0.05, 0.4, 1.6
# Multiplications for each number that a convolution reads or writes, from which it begins a region.
_MIN_MULS_TO_BEGIN = 8


def use_channels_last(
    program: Program, given: list[Any], layouts: Layouts, memory: dict[int, int], table: Any
) -> Program:
    """Return the program with images whose channels are last, in all regions that this makes faster.

    A region are the steps between which images need no copy into the other order. given: inputs for a trial run, which
    finds the layouts anew: views of an image in another order have other strides.
    """
    refused: set[int] = set()
    while True:
        attempt = _Attempt(program, layouts, memory, table, refused)
        found = attempt.run()
        losing = attempt.find_losing_convolutions()
        if losing:
            refused |= losing
            continue
        if not any(attempt.convolutions.values()):
            return program
        found = eliminate_dead_code(found)
        run_quietly(infer_layouts, found, given, layouts, memory, table)
        layouts.update({n: (raw.shape, raw.dtype, raw.flags.c_contiguous) for n, raw in found.held.items()})
        return found


def end_in_chains(program: Program, layouts: Layouts) -> Program:
    """Let kernels for images with channels last run the chain of elementwise ops that follows, part by part."""
    count = Counter(n for step in program.steps for n in step.uses())
    count.update(program.outputs)
    makers: dict[int, Step] = {}
    steps: list[Step] = []
    gone: set[int] = set()
    for step in program.steps:
        if step.kind == "kernel" and only_mutates_args(step):
            makers.clear()  # what they read may be written
        if step.name.startswith("chain_"):
            for place, slot in enumerate(step.args):
                maker = makers.get(slot.number)
                if maker is None or count[slot.number] != 1:
                    continue
                kernel = maker.kernel.with_chain(step.kernel, place)
                if kernel is not None:
                    others = [other for other in step.args if other is not slot]
                    step = replace(step, name=f"{maker.name}_{step.name}", kernel=kernel, args=(*maker.args, *others))
                    gone.add(id(maker))
                    break
        elif hasattr(step.kernel, "with_chain") and step.out.__class__ is Slot:
            makers[step.out.number] = step
        steps.append(step)
    return replace(program, steps=[step for step in steps if id(step) not in gone])


def _is_pointwise(step: Step) -> bool:
    op = REGISTRY.get(step.name)
    return op is not None and bool(op.tags & POINTWISE) and not op.tags & VIEW


def _as_4d(shape: tuple) -> tuple:
    return (1,) * (4 - len(shape)) + tuple(shape)


def _reorder(shape: tuple) -> tuple:
    return tuple(_as_4d(shape)[d] for d in _ORDER)


class _Attempt:
    """One way through a program, in which the convolutions of some slots stay as they are."""

    def __init__(
        self, program: Program, layouts: Layouts, memory: dict[int, int], table: Any, refused: set[int]
    ) -> None:
        self.program, self.table, self.refused = program, table, refused
        self.layouts, self.memory, self.held = dict(layouts), dict(memory), dict(program.held)
        self.shown = program.shown()
        # Memory of results, and that which steps read that make results: these may have the strides of what they read.
        near = {n for step in program.steps if self.shown & {*step.makes()} for n in step.uses()}
        self.memory_of_shown = {memory.get(n) for n in self.shown | near}
        self.steps: list[Step] = []
        self.last: dict[int, int] = {}  # slots with channels last, by the slot of PyTorch's order
        self.missing: set[int] = set()  # slots that no step has written in PyTorch's order yet
        self.fresh = 1 + max([0, *layouts, *program.used(), *(n for s in program.steps for n in s.makes())])
        # Regions as a forest: the parent of each slot with channels last; gains and convolutions by root.
        self.parents: dict[int, int] = {}
        self.gains: dict[int, float] = {}
        self.convolutions: dict[int, set[int]] = {}

    def run(self) -> Program:
        for step in self.program.steps:
            if not self._convert(step):
                for number in step.uses():
                    self._write_plain(number)
                self.steps.append(step)
                self._note_contiguous(step)
        for number in self.program.outputs:
            self._write_plain(number)
        return replace(self.program, steps=self.steps, held=self.held)

    def find_losing_convolutions(self) -> set[int]:
        """Return the results of the convolutions in regions that cost more than they gain."""
        roots = [root for root in self.gains if self._root_of(root) == root and self.gains[root] < 0]
        return {number for root in roots for number in self.convolutions.get(root, ())}

    # -- slots --

    def _new_slot(self, shape: tuple, near: int | None = None, contiguous: bool = True) -> int:
        """Return a slot of an array (images, rows, columns, channels). near: the slot whose memory it shares."""
        number = self.fresh
        self.fresh += 1
        self.layouts[number] = tuple(shape), _F32, contiguous
        self.memory[number] = 1 + max(self.memory.values(), default=0) if near is None else self.memory[near]
        self._add_to_regions(number)
        return number

    def _add_to_regions(self, number: int) -> None:
        if number not in self.parents:
            self.parents[number] = number
            self.gains[number], self.convolutions[number] = 0.0, set()

    def _root_of(self, number: int) -> int:
        while self.parents[number] != number:
            number = self.parents[number]
        return number

    def _join(self, numbers: list[int], gain: float) -> int:
        """Put slots into one region; return its root."""
        root, *others = {self._root_of(number) for number in numbers}
        for other in others:
            self.parents[other] = root
            self.gains[root] += self.gains[other]
            self.convolutions[root] |= self.convolutions[other]
        self.gains[root] += gain
        return root

    def _set_last(self, out: Slot, kernel: Any, args: tuple, name: str, line: str, **more: Any) -> int:
        """Append a step whose result has channels last, in place of one that writes `out`."""
        number = self._new_slot(_reorder(self.layouts[out.number][0]))
        self.steps.append(Step(name, kernel, args, more, Slot(number), line))
        self.last[out.number] = number
        self.missing.add(out.number)
        near = [n for n in self.steps[-1].uses() if n in self.parents]
        self._join([number, *near], _GAIN_PER_RESULT * math.prod(self.layouts[number][0]))
        return number

    def _last_of(self, number: int) -> Slot | None:
        """Return a slot with channels last, after a copy if there is none yet. None if it cannot be copied."""
        found = self.last.get(number)
        if found is not None:
            return Slot(found)
        if number in self.held:
            found = self.last[number] = self.fresh
            self.fresh += 1
            raw = self.held[number]
            self.held[found] = share_equal(raw.reshape(_as_4d(raw.shape)).transpose(_ORDER).copy())
            self.layouts[found] = self.held[found].shape, _F32, True
            return Slot(found)
        shape, _, is_contiguous = self.layouts[number]
        if len(shape) != 4:
            return None
        copy = self._copy(number, shape, _reorder(shape), "to_last") if is_contiguous else self._copy_strided(number)
        self.last[number] = copy
        return Slot(copy)

    def _copy(self, number: int, shape: tuple, wanted: tuple, name: str) -> int:
        """Append a copy into the other order; `shape` is in PyTorch's. It is a view if the order is the same."""
        if 1 in (shape[1], math.prod(shape[2:])):
            found = self._new_slot(wanted, near=number if number in self.memory else None)
            self.steps.append(Step("reshape", self.table.reshape, (Slot(number), wanted), {}, Slot(found)))
            return found
        found = self._new_slot(wanted)
        kernel = self._bind(name, (Slot(number),), shape, shape)
        self.steps.append(Step(f"_{name}", kernel, (Slot(number),), {}, Slot(found)))
        self._join([found], -_COST_PER_COPY * math.prod(shape))
        return found

    def _copy_strided(self, number: int) -> int:
        """Append a copy of an array with other strides into the order with channels last, a view if it has that."""
        shape = self.layouts[number][0]
        found = self._new_slot(_reorder(shape), near=number if number in self.memory else None)
        self.steps.append(Step("_strided_to_last", _put_channels_last, (Slot(number),), {}, Slot(found)))
        self._join([found], -_COST_PER_STRIDED_COPY * math.prod(shape))
        return found

    def _write_plain(self, number: int) -> None:
        """Have a slot in PyTorch's order."""
        if number not in self.missing:
            return
        self.missing.discard(number)
        shape, last = self.layouts[number][0], self.last[number]
        found = self._copy(last, shape, shape, "from_last")
        self._join([found, last], 0.0)
        self.steps[-1].out = Slot(number)
        self.memory[number] = self.memory[found]
        self.layouts[number] = shape, _F32, True

    def _bind(self, name: str, args: tuple, shape: tuple, out: tuple) -> Any:
        """Return a kernel for images of this shape in PyTorch's order; None if the backend has none."""
        given = [self.held.get(v.number, v) if v.__class__ is Slot else v for v in args[1:]]
        if any(value.__class__ is Slot for value in given):
            return None
        image = self.table.backend.varying(shape, _F32)
        return self.table.backend.bind_channels_last(name, (image, *given), out)

    # -- steps --

    def _note_contiguous(self, step: Step) -> None:
        """Note that an elementwise step of contiguous arrays makes one, which it may not have done before."""
        if step.out.__class__ is Slot and not step.kwargs and _is_pointwise(step) and step.out.number in self.layouts:
            shape, dtype, _ = self.layouts[step.out.number]
            if all(n in self.held or self.layouts[n][2] for n in step.uses()):
                self.layouts[step.out.number] = shape, dtype, True

    def _convert(self, step: Step) -> bool:
        """Append a step with channels last; False if there is none."""
        if step.kind != "kernel" or not is_pure(step):
            return False
        outs = [*step.makes()]
        if self.shown & {*outs} or any(n not in self.layouts or self.layouts[n][1] != _F32 for n in outs):
            return False
        if any(n not in self.layouts or self.layouts[n][1] != _F32 for n in step.uses()):
            return False
        convert = _CONVERSIONS.get(step.name)
        if convert is not None:
            return convert(self, step)
        return _is_pointwise(step) and self._convert_pointwise(step)

    def _image_of(self, step: Step) -> tuple | None:
        """Return the shape of a step's first argument, if it is a slot with channels last."""
        first = step.args[0] if step.args else None
        if first.__class__ is not Slot or step.out.__class__ is not Slot or first.number not in self.last:
            return None
        return self.layouts[first.number][0]

    def _convert_convolution(self, step: Step) -> bool:
        x, weight = step.args[:2]
        if step.kwargs or x.__class__ is not Slot or x.number in self.held or step.out.number in self.refused:
            return False
        shape, out = self.layouts[x.number][0], self.layouts[step.out.number][0]
        if weight.__class__ is not Slot or weight.number not in self.held or len(shape) != 4:
            return False
        muls = math.prod(out) * math.prod(self.held[weight.number].shape[1:])
        is_free = x.number in self.last or 1 in (shape[1], math.prod(shape[2:]))
        if not is_free and muls < _MIN_MULS_TO_BEGIN * (math.prod(shape) + math.prod(out)):
            return False
        kernel = self._bind(step.name, step.args, shape, out)
        # A convolution that loses more than copies would cost takes PyTorch's order.
        if kernel is None or kernel.gain < -_COST_PER_COPY * (math.prod(shape) + math.prod(out)):
            return False
        given = self._last_of(x.number)
        if given is None:
            return False
        number = self._set_last(step.out, kernel, (given,), "_last_convolution", step.line)
        self.convolutions[self._join([number], kernel.gain)].add(step.out.number)
        return True

    def _convert_max_pool(self, step: Step) -> bool:
        shape = self._image_of(step)
        if shape is None or len(shape) != 4 or step.kwargs:
            return False
        kernel = self._bind(step.name, step.args, shape, self.layouts[step.out.number][0])
        if kernel is None:
            return False
        self._set_last(step.out, kernel, (Slot(self.last[step.args[0].number]),), "_last_max_pool", step.line)
        return True

    def _convert_mean(self, step: Step) -> bool:
        """Convert the mean of each channel."""
        shape = self._image_of(step)
        if shape is None or len(step.args) != 3 or step.kwargs not in ({}, {"dtype": None}):
            return False
        dims, keep = step.args[1:]
        if keep is not True or dims.__class__ not in (tuple, list) or sorted(d % 4 for d in dims) != [2, 3]:
            return False
        kernel = self._bind("mean", step.args[:1], shape, self.layouts[step.out.number][0])
        if kernel is None:
            return False
        self._set_last(step.out, kernel, (Slot(self.last[step.args[0].number]),), "_last_mean", step.line)
        return True

    def _convert_resize(self, step: Step) -> bool:
        """Convert a resize that takes each result from one position of the image."""
        shape = self._image_of(step)
        if shape is None or len(step.args) < 3 or not str(step.args[2]).startswith("nearest") or step.kwargs:
            return False
        _, _, high, wide = shape
        size = self.layouts[step.out.number][0][2:]
        places = np.arange(high * wide, dtype=np.float64).reshape(1, 1, high, wide)
        taken = np.asarray(step.kernel(places, *step.args[1:])).reshape(-1).astype(np.intp)
        kernel = functools.partial(_take_places, taken, size)
        self._set_last(step.out, kernel, (Slot(self.last[step.args[0].number]),), "_last_resize", step.line)
        return True

    def _convert_pad(self, step: Step) -> bool:
        """Convert a border of a constant."""
        shape = self._image_of(step)
        if shape is None or len(shape) != 4 or step.kwargs:
            return False
        columns, rows, channels, images = (tuple(step.args[1][k : k + 2]) or (0, 0) for k in (0, 2, 4, 6))
        args = Slot(self.last[step.args[0].number]), (*channels, *columns, *rows, *images), *step.args[2:]
        self._set_last(step.out, step.kernel, args, step.name, step.line)
        return True

    def _convert_cat(self, step: Step) -> bool:
        given, dim = step.args[0], step.args[1] if len(step.args) > 1 else 0
        if step.kwargs or dim not in (1, -3) or any(v.__class__ is not Slot for v in given):
            return False
        if not any(v.number in self.last for v in given) or any(len(self.layouts[v.number][0]) != 4 for v in given):
            return False
        slots = [slot for slot in (self._last_of(v.number) for v in given) if slot is not None]
        if len(slots) < len(given):
            return False
        kernel = self.table.backend.join_channels_last([self.layouts[slot.number][0] for slot in slots])
        self._set_last(step.out, kernel, (slots,), "_last_cat", step.line)
        return True

    def _convert_split(self, step: Step) -> bool:
        """Convert a split of the channels; the parts are views."""
        first, sizes, dim = step.args if len(step.args) == 3 else (None, None, None)
        if first.__class__ is not Slot or first.number not in self.last or dim not in (1, -3) or step.kwargs:
            return False
        if step.out.__class__ is not tuple or any(slot is None for slot in step.out):
            return False
        source = self.last[first.number]
        outs = []
        for slot in step.out:
            shape = _reorder(self.layouts[slot.number][0])
            outs.append(Slot(self._new_slot(shape, near=source, contiguous=shape == self.layouts[source][0])))
            self.last[slot.number] = outs[-1].number
            self.missing.add(slot.number)
        self.steps.append(Step(step.name, step.kernel, (Slot(source), sizes, 3), {}, tuple(outs), step.line))
        self._join([source, *(slot.number for slot in outs)], 0.0)
        return True

    def _convert_permute(self, step: Step) -> bool:
        """Permute the array with channels last, if no result shows its strides. A permutation from this order has its
        argument as the image with channels last.
        """
        if step.out.__class__ is not Slot or step.kwargs or len(step.args) != 2 or step.args[0].__class__ is not Slot:
            return False
        first, order = step.args[0].number, tuple(step.args[1])
        if len(order) != 4:
            return False
        if first in self.missing:
            memory = self.memory.get(step.out.number)
            if memory is None or memory in self.memory_of_shown:
                return False
            source = self.last[first]
            order = tuple(_PLACES[d] for d in order)
            self.steps.append(replace(step, args=(Slot(source), order)))
            shape = self.layouts[source][0]
            moved = [d for d in order if shape[d] != 1]
            contiguous = self.layouts[source][2] and moved == sorted(moved)
            self.layouts[step.out.number] = tuple(shape[d] for d in order), _F32, contiguous
            return True
        if order == _PLACES and self.layouts[first][2] and first not in self.held:
            self.last[step.out.number] = first
            self._add_to_regions(first)
        return False

    def _convert_pointwise(self, step: Step) -> bool:
        if step.out.__class__ is not Slot or step.kwargs or any(v.__class__ in (list, tuple) for v in step.args):
            return False
        shape = self.layouts[step.out.number][0]
        slots = list(dict.fromkeys(step.uses()))
        if len(shape) != 4 or not any(n in self.last and n not in self.held for n in slots):
            return False
        for number in slots:
            given = self.layouts[number][0] if number in self.layouts else self.held[number].shape
            # A vector may have a number for each channel, whatever its dimension.
            if math.prod(given) != 1 and (len(given) != 4 and number not in self.held or len(given) in (1, 2)):
                return False
            if any(a not in (1, b) for a, b in zip(_as_4d(given), shape, strict=True)):
                return False
            if number not in self.held and math.prod(given) != 1 and not self.layouts[number][2]:
                return False
        args = []
        for value in step.args:
            if value.__class__ is Slot and math.prod(self.layouts[value.number][0]) != 1:
                value = self._last_of(value.number)
            elif value.__class__ is Slot:
                self._write_plain(value.number)
            args.append(value)
        self._set_last(step.out, step.kernel, tuple(args), step.name, step.line)
        return True


def _put_channels_last(x: np.ndarray) -> np.ndarray:
    """Return images with channels last."""
    return np.ascontiguousarray(x.transpose(_ORDER))


def _take_places(places: np.ndarray, size: tuple, x: np.ndarray) -> np.ndarray:
    """Return (images, *size, channels) whose numbers are those at `places` of the images."""
    batch, high, wide, channels = x.shape
    return x.reshape(batch, high * wide, channels).take(places, axis=1).reshape(batch, *size, channels)


_CONVERSIONS: dict[str, Callable[[_Attempt, Step], bool]] = {
    **dict.fromkeys(_CONVOLUTIONS, _Attempt._convert_convolution),
    "_max_pool": _Attempt._convert_max_pool,
    "mean": _Attempt._convert_mean,
    "_resize": _Attempt._convert_resize,
    "constant_pad_nd": _Attempt._convert_pad,
    "cat": _Attempt._convert_cat,
    "split_with_sizes": _Attempt._convert_split,
    "permute": _Attempt._convert_permute,
}
