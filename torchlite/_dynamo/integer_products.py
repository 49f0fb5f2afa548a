"""Integer products of quantized networks: a product of two dequantized operands is computed on their levels.

A file with QuantizeLinear and DequantizeLinear describes `((a - za) * sa) @ ((b - zb) * sb)` in floats. The sums
`(a - za) @ (b - zb)` are whole numbers, which an integer product finds without rounding. One multiplication by
`sa * sb` follows. Where the result is quantized again, that is part of the same step, with the scale `sa * sb / sc`.
ONNX Runtime computes the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from torchlite._ops.quantized import levels_range
from torchlite._types.dtypes import float32, int8, uint8

from .alias_analysis import AliasAnalysis
from .program_ir import Layouts, Program, Slot, Step

_PRODUCTS = ("_quantized_matmul", "_quantized_convolution")
_SCALE = 5  # the place of the scale among their arguments
_LEVELS = {uint8.np: uint8, int8.np: int8}
_F4 = np.dtype("f4")


class Dequantized(NamedTuple):
    """An array that is `(levels - zero) * scale`. Zero point and scale are slots or numbers; no zero point is 0."""

    levels: int
    zero: Any
    scale: Any


def find_dequantized(program: Program) -> dict[int, Dequantized]:
    """Return the arrays that are dequantized from 8-bit levels, by slot, before constants are folded."""
    makers: dict[int, Step] = {}
    found = {}
    for step in program.steps:
        if step.out.__class__ is not Slot or step.kwargs or not step.args or step.args[0].__class__ is not Slot:
            continue
        makers[step.out.number] = step
        if step.name != "mul" or len(step.args) != 2:
            continue
        source = makers.get(step.args[0].number)
        zero = None
        if source is not None and source.name == "sub" and len(source.args) == 2:
            zero, source = source.args[1], makers.get(source.args[0].number)
        if source is not None and source.name == "to" and source.args[1] is float32:
            found[step.out.number] = Dequantized(source.args[0].number, zero, step.args[1])
    return found


def use_integer_products(
    program: Program, dequantized: dict[int, Dequantized], layouts: Layouts, memory: dict[int, int], table: Any
) -> Program:
    """Replace products of arrays that are dequantized by constant scales. The scale that integer sums are multiplied by
    becomes part of their product. Updates `layouts` and `memory`.
    """
    if not dequantized and all(step.name not in _PRODUCTS for step in program.steps):
        return program
    return _Rewriter(program, dequantized, layouts, memory, table).run()


class _Rewriter:
    def __init__(self, program: Program, dequantized: dict, layouts: Layouts, memory: dict, table: Any) -> None:
        self.program, self.dequantized, self.layouts, self.memory, self.table = (
            program, dequantized, layouts, memory, table,
        )  # fmt: skip
        self.held = dict(program.held)
        self.free = 1 + max((*layouts, *self.held), default=0)
        self.count = Counter(n for step in program.steps for n in step.uses())
        self.count.update(program.outputs)
        self.aliases = AliasAnalysis(program, memory)
        self.sums: dict[int, list[int]] = {}  # the places of a product, and of a cast of its result, by that result

    def run(self) -> Program:
        steps: list[Step | None] = []
        open_ones: dict[int, tuple[int, Step, list[int]]] = {}  # by the slot that a quantization would read
        for step in self.program.steps:
            made = self._multiply(step)
            if made is not None:
                steps += made
                if len(made) == 1:
                    self._open(open_ones, step.out, len(steps) - 1, made[0], [])
                continue
            steps.append(step)
            if self._scale(steps):
                continue
            first = step.args[0] if step.args else None
            before = open_ones.pop(first.number, None) if first.__class__ is Slot else None
            if before is None:
                continue
            place, product, chain = before
            if step.name == "to":
                fused = self._requantize(product, [steps[at] for at in chain], step)
                if fused is not None:
                    for at in (place, *chain):
                        steps[at] = None
                    steps[-1] = fused
            elif step.name == _QUANTIZATION[min(len(chain), 3)] or (len(chain) == 2 and step.name == "_clamp_scalars"):
                self._open(open_ones, step.out, place, product, [*chain, len(steps) - 1])
        return replace(self.program, steps=[step for step in steps if step is not None], held=self.held)

    def _scale(self, steps: list[Step | None]) -> bool:
        """Make the last step a product with a scale, if it multiplies integer sums in floats by one. True if done."""
        step: Any = steps[-1]
        if step.kwargs or step.out.__class__ is not Slot:
            return False
        if step.name in _PRODUCTS and step.args[_SCALE : _SCALE + 2] == (None, None) and self._is_read_once(step.out):
            self.sums[step.out.number] = [len(steps) - 1]
        elif step.name == "to" and step.args[0].number in self.sums and step.args[1:] == (float32,):
            places = self.sums.pop(step.args[0].number)
            if self._is_read_once(step.out):
                self.sums[step.out.number] = [*places, len(steps) - 1]
        elif step.name == "add" and len(step.args) == 2 and all(value.__class__ is Slot for value in step.args):
            for total, bias in (step.args, step.args[::-1]):
                place = self.sums.get(total.number, [])
                if len(place) == 1 and self._add_to_sums(steps, place[0], bias):
                    return True
        elif step.name == "mul" and all(value.__class__ is Slot for value in step.args):
            for total, scale in (step.args, step.args[::-1]):
                places = self.sums.get(total.number, [])
                if len(places) == 2 and self._fits(scale, steps[places[0]], step.out):
                    product: Any = steps[places[0]]
                    args = (*product.args[:_SCALE], scale, *product.args[_SCALE + 1 :])
                    steps[places[0]] = steps[places[1]] = None
                    steps[-1] = replace(product, args=args, out=step.out)
                    return True
        return False

    def _add_to_sums(self, steps: list[Step | None], place: int, bias: Slot) -> bool:
        """Make the last step, which adds integers to a product, the product. True if done."""
        product: Any = steps[place]
        step: Any = steps[-1]
        if product.args[_SCALE - 1] is not None or any(n not in self.layouts for n in (bias.number, step.out.number)):
            return False
        shape, dtype, _ = self.layouts[bias.number]
        total = self.layouts[product.out.number][0]
        axis = 1 if product.name == "_quantized_convolution" else len(total) - 1
        count = total[axis]
        lines = count, *(1,) * (len(total) - 1 - axis)
        if dtype != np.dtype("i4") or self.layouts[step.out.number][0] != total or shape[-len(lines) :] != lines:
            return False
        if any(n != 1 for n in shape[: -len(lines)]):
            return False
        steps[place] = None
        if len(shape) > 1:
            flat = Slot(self.free)
            self.free += 1
            self.layouts[flat.number], self.memory[flat.number] = ((count,), dtype, True), self.memory[bias.number]
            steps.insert(-1, replace(step, name="reshape", kernel=self.table.reshape, args=(bias, (count,)), out=flat))
            bias = flat
        args = (*product.args[: _SCALE - 1], bias, *product.args[_SCALE:])
        steps[-1] = replace(product, args=args, out=step.out)
        if self._is_read_once(step.out):
            self.sums[step.out.number] = [len(steps) - 1]
        return True

    def _fits(self, scale: Slot, product: Any, out: Slot) -> bool:
        """True if an array scales the sums of a product."""
        if any(slot.number not in self.layouts for slot in (scale, product.out, out)):
            return False
        shape, dtype, _ = self.layouts[scale.number]
        total = self.layouts[product.out.number][0]
        whole = shape in ((), (1,)) or (product.name == "_quantized_matmul" and shape == total[-1:])
        return whole and dtype == _F4 and self.layouts[out.number][0] == total

    def _is_read_once(self, out: Any) -> bool:
        return self.count[out.number] == 1 and self.aliases.is_plain(out.number)

    def _open(self, open_ones: dict, out: Any, place: int, product: Step, chain: list[int]) -> None:
        """Note a result that nothing else reads."""
        if out.__class__ is Slot and self._is_read_once(out):
            open_ones[out.number] = place, product, chain

    # -- operands --

    def _add_constant(self, value: np.ndarray) -> Slot:
        number = self.free
        self.free += 1
        self.held[number] = value
        self.layouts[number] = value.shape, value.dtype, True
        self.memory[number] = 1 + max(self.memory.values(), default=0)
        return Slot(number)

    def _constant(self, value: Any) -> np.ndarray | None:
        """Return a constant in float32, an array or a number."""
        if value.__class__ in (int, float):
            return np.array(value, _F4)
        found = self.held.get(value.number) if value.__class__ is Slot else None
        return found if found is not None and found.dtype == _F4 else None

    def _operand(self, slot: Any, axis: int) -> tuple[Slot, Any, Any] | None:
        """Return levels, zero points as levels and scales. These are numbers, or one for each element along `axis`."""
        found = self.dequantized.get(slot.number) if slot.__class__ is Slot else None
        if found is None or found.levels not in self.layouts:
            return None
        shape, dtype, _ = self.layouts[found.levels]
        scale = self._constant(found.scale)
        zero = None if found.zero is None else self._constant(found.zero)
        if dtype not in _LEVELS or scale is None or (zero is None) != (found.zero is None):
            return None
        lines = [self._along(value, shape, axis) for value in (scale, zero) if value is not None]
        if any(line is None for line in lines):
            return None
        low, high = levels_range(_LEVELS[dtype])
        if zero is not None and not np.all((zero == np.rint(zero)) & (zero >= low) & (zero <= high)):
            return None
        return Slot(found.levels), None if zero is None else np.asarray(lines[1], dtype), lines[0]

    def _along(self, value: np.ndarray, shape: tuple, axis: int) -> np.ndarray | None:
        """Return one number, or those along an axis, None for others."""
        if value.size == 1:
            return value.reshape(())
        whole = (1,) * (len(shape) - value.ndim) + value.shape
        return value.reshape(-1) if value.size == shape[axis] == whole[axis] else None

    def _whole_bias(self, slot: Any, scale: np.ndarray) -> Any:
        """Return the slot of a bias as a multiple of `scale` in int32; None for none, False if it is no such."""
        if slot is None:
            return None
        bias = self._constant(slot)
        if bias is None or bias.ndim > 1 or not np.all(scale > 0):
            return False
        with np.errstate(all="ignore"):
            levels = np.rint(bias.astype("f8") / scale.astype("f8"))
            same = np.abs(levels) < 1 << 24  # those that float32 has exactly, as the dequantization casts them
            same &= levels.astype(_F4) * scale == bias
        return self._add_constant(levels.astype("i4")) if np.all(same) else False

    def _transposed_weight(self, slot: Any) -> Any:
        """Return the dequantized weight of a linear layer as a constant right operand."""
        found = self._operand(slot, 0)
        levels = None if found is None else self.held.get(found[0].number)
        if found is None or levels is None or levels.ndim != 2:
            return None
        return self._add_constant(levels.T), *found[1:]

    # -- products --

    def _multiply(self, step: Step) -> list[Step] | None:
        """Return the steps in place of a product, None if it stays."""
        if step.kwargs or step.out.__class__ is not Slot:
            return None
        if step.name in ("matmul", "mm", "bmm"):
            left, right = self._operand(step.args[0], -2), self._operand(step.args[1], -1)
            return self._matrix_product(step, left, right, None)
        if step.name == "linear":
            bias = step.args[2] if len(step.args) > 2 else None
            left = self._operand(step.args[0], -2)
            return left and self._matrix_product(step, left, self._transposed_weight(step.args[1]), bias)
        return self._convolution(step) if step.name == "convolution" else None

    def _slots(self, *values: np.ndarray | None) -> list[Slot | None]:
        return [None if value is None else self._add_constant(value) for value in values]

    def _matrix_product(self, step: Step, left: Any, right: Any, bias: Any) -> list[Step] | None:
        if left is None or right is None or left[2].ndim:
            return None
        if any(len(self.layouts[levels.number][0]) < 2 for levels in (left[0], right[0])):
            return None
        scale = left[2] * right[2]
        whole = self._whole_bias(bias, scale)
        args = (left[0], right[0], *self._slots(left[1], right[1]), whole or None, *self._slots(scale), None)
        made = replace(step, name="_quantized_matmul", kernel=self.table._quantized_matmul, args=args)
        return [made] if whole is not False else self._add_bias(made, bias)

    def _add_bias(self, product: Step, bias: Slot) -> list[Step]:
        """Return a product and the addition of a bias that has no levels."""
        slot = Slot(self.free)
        self.free += 1
        self.layouts[slot.number] = self.layouts[product.out.number]
        self.memory[slot.number] = 1 + max(self.memory.values(), default=0)
        add = replace(product, name="add", kernel=self.table.add, args=(slot, bias))
        return [replace(product, out=slot), add]

    def _convolution(self, step: Step) -> list[Step] | None:
        input, weight, bias, stride, padding, dilation, transposed, _, groups = step.args
        image, kernel = self._operand(input, 1), self._operand(weight, 0)
        if transposed or image is None or kernel is None or image[2].ndim or kernel[0].number not in self.held:
            return None
        rank = len(self.layouts[kernel[0].number][0]) - 2
        sizes = [
            value if value.__class__ in (tuple, list) else (value,) * rank for value in (stride, padding, dilation)
        ]
        if any(len(value) != rank for value in sizes) or any(v.__class__ is not int for value in sizes for v in value):
            return None
        scale = image[2] * kernel[2]
        whole = self._whole_bias(bias, scale)
        if whole is False:
            return None
        args = (
            image[0], kernel[0], *self._slots(image[1], kernel[1]), whole, *self._slots(scale), None,
            tuple(sizes[0]), (*sizes[1], *sizes[1]), tuple(sizes[2]), groups,
        )  # fmt: skip
        return [replace(step, name="_quantized_convolution", kernel=self.table._quantized_convolution, args=args)]

    def _requantize(self, product: Step, chain: list, cast: Step) -> Step | None:
        """Return a product whose result is quantized by `chain` and a cast, as one step; None if it is another one."""
        dtype = cast.args[1] if len(cast.args) == 2 else None
        if [step.name for step in chain if step.name != "add"] != ["div", "round", "_clamp_scalars"] or cast.kwargs:
            return None
        if dtype not in (uint8, int8) or chain[-1].args[1:] != levels_range(dtype):
            return None
        scale, shift = self._constant(chain[0].args[1]), np.zeros((), _F4)
        if len(chain) == 4:
            found = self._constant(chain[2].args[1])
            if found is None:
                return None
            shift = found
        if scale is None or scale.size != 1 or shift.size != 1 or shift != np.rint(shift):
            return None
        low, high = levels_range(dtype)
        if not low <= shift.item() <= high:
            return None
        before = self.held[product.args[_SCALE].number]
        slots = self._slots(before / scale.reshape(()), shift.reshape(()).astype(dtype.np))
        args = (*product.args[:_SCALE], *slots, *product.args[_SCALE + 2 :])
        return replace(product, args=args, out=cast.out)


# The steps of QuantizeLinear on a product; the zero point may be absent, and a cast follows.
_QUANTIZATION = ("div", "round", "add", "_clamp_scalars")
