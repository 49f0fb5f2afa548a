"""SharedProgram: one compiled program for calls that differ in the sizes of arguments only.

Calls of different sizes are recorded and optimized on their own. If the programs differ in integers alone, those become
parameters of one compiled function. A size gets its integers from a recording of a call with it. Where the function's
code reads no sizes and has no effects, expressions of the sizes replace the recording from the third size on.
"""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from torchlite._dispatch.dispatch_state import GLOBALS
from torchlite._dispatch.op_record import POINTWISE, REGISTRY
from torchlite._symbolic_shapes import Expr

from .program_ir import CapturedCall, Program, SizeNumber, Slot, Step, comparison_key, is_same_kernel
from .replay import ReplayEpilogue, compile_replay, run_passes
from .step_purity import is_pure, only_mutates_args

_MAX_BOUND = 64  # sizes whose functions are stored
_MAX_KNOWN = 4096  # sizes whose integers are stored
_MAX_FAILURES = 2  # calls that do not fit the program before it is abandoned
_MAX_UNUSED = 32  # sizes whose first call is recorded, if they do not come again
_SAMPLES = 3  # recordings that expressions are fitted to
# Names by which code may learn a tensor's size, or that may hide such code. Iteration changes the number of steps.
_READS_SIZES = frozenset("""
    shape size len numel nelement stride strides nbytes storage storage_offset untyped_storage is_contiguous data_ptr
    is_same_size sym_size broadcast_shapes getattr vars dir eval exec locals globals attrgetter methodcaller __dict__
    __getattr__ __getattribute__ __len__ __sizeof__ range apply register_hook saved_tensors_hooks numpy __array__ repr
    str format tolist result_type infer_size length_hint enumerate iter next hasattr
""".split())  # fmt: skip
# Ops that do the same for all sizes, and check no more than that sizes fit together; elementwise ops do too. Ops that
# get positions or lengths (slices, pads, windows) do not: a position may be out of range for another size.
_FREE_OF_SIZES = frozenset("""
    _arange _cross_entropy _cross_entropy_backward _embedding_backward _full _layer_norm _layer_norm_backward
    _linear_bias_grad _linear_input_grad _linear_weight_grad _log_softmax _log_softmax_backward _ones_like _rms_norm
    _rms_norm_backward _sdpa _sdpa_backward _softmax _softmax_backward _view _zeros_like amax amin cat clone contiguous
    copy_into embedding expand linear matmul mean permute reshape split_with_sizes stack sum to transpose unbind
    unsqueeze
""".split())  # fmt: skip


class _NoSharedProgram(Exception):
    """The programs of two sizes differ in more than integers."""


class SharedProgram:
    """The program of the calls of one structure, and the sizes that it serves."""

    def __init__(self, name: str, mode: str, table: Any, variant: Any, arguments: list) -> None:
        self.name, self.mode, self.table = name, mode, table
        self.samples: list[tuple[tuple, list[Program], CapturedCall]] = []
        self.variant = variant  # whose record the replays have
        self.template: list[Program] | None = None
        self.replay: Any = None
        self.simple = False  # passes whose kernels hold sizes are left out
        self.known: dict[Any, tuple] = {}  # integers by size
        self.bound: OrderedDict[Any, Any] = OrderedDict()  # replays by size
        self.settled: dict[tuple, Any] = {}  # those of frequent sizes, by shapes and strides
        self.formulas: _Formulas | None = None
        self.is_free = False  # True if formulas replace recordings
        self.recorded: dict[Any, tuple] = {}  # numbers of sizes that were recorded once
        self.inferred: set[Any] = set()  # sizes whose integers come from formulas
        self.unused: set[Any] = set()  # sizes whose first call was recorded, and that had no other one
        self.failures = self.rounds = 0
        self.growth = 0.0  # elements of the largest array per element of the arguments
        self.is_closed = table.array is not np.ndarray or not _is_sharable(variant)
        if not self.is_closed:
            self.add(None, arguments, variant)

    def find(self, place: Any, arguments: list) -> Any:
        """Return the replay for a size, None if the size is new."""
        replay = self.bound.get(place)
        if replay is not None:
            self.unused.discard(place)
            return replay
        numbers = self.known.get(place)
        if numbers is None and self.is_free and self.formulas is not None:
            numbers = self.formulas.numbers(_sizes_of(arguments), arguments)
            if numbers is not None:
                self._learn(place, numbers)
                self.inferred.add(place)
        self.unused.discard(place)
        return None if numbers is None else self._bind(place, numbers)

    def settle(self, place: Any, replay: Any) -> None:
        """Find a frequent size faster from now on: no program of its own will replace this one."""
        if len(self.settled) >= _MAX_BOUND:
            self.settled.clear()
        self.settled[place.shapes] = replay

    def is_inferred(self, place: Any) -> bool:
        """True if no call of a size was recorded."""
        return place in self.inferred

    def wants(self, arguments: list, calls: int) -> bool:
        """True if a call of a new size is to be recorded; calls: those of this size before."""
        if self.is_closed or not self._is_general(arguments):
            return False
        return len(self.samples) < _SAMPLES or calls > 0 or self.formulas is not None and len(self.unused) < _MAX_UNUSED

    def serves_for_now(self, arguments: list) -> bool:
        """True if a program of a size of its own would be faster: with constants, or arrays in blocks."""
        assert self.variant.captured is not None
        if self.variant.captured.backward is None:
            return True
        return self.growth * sum(map(math.prod, (t._tl_array.shape for t in arguments))) >= 2 * GLOBALS["LARGE"]

    def _is_general(self, arguments: list) -> bool:
        """True if no size that varies is 0 or 1: those have rules of their own."""
        if not self.samples:
            return True
        sizes, first = _sizes_of(arguments), self.samples[0][0]
        return len(sizes) == len(first) and all(a == b or min(a, b) > 1 for a, b in zip(sizes, first, strict=True))

    def add(self, place: Any, arguments: list, variant: Any) -> None:
        """Add a recorded call."""
        if not _is_sharable(variant) or not _has_same_sources(variant, self.variant):
            self._fail()
            return
        captured = variant.captured
        sizes = _sizes_of(arguments)
        programs = self._optimize(captured)
        self.growth = max(self.growth, _largest(captured) / max(1, sum(map(math.prod, _shapes_of(arguments)))))
        if not self.samples:
            self.samples.append((sizes, programs, captured))
            return
        try:
            _check_same_call(self.samples[0][2], captured)
            if self.template is not None:
                numbers: dict[int, float] = {}
                if _match_programs(self.template, programs, numbers):
                    self._confirm(place, tuple([numbers[i] for i in range(len(numbers))]), sizes, arguments)
                    if len(self.samples) < _SAMPLES and all(sizes != one for one, _, _ in self.samples):
                        self.samples.append((sizes, programs, captured))
                        self._fit(variant)
                    return
            self._merge(place, (sizes, programs, captured), len(arguments))
            self._fit(variant)
        except _NoSharedProgram:
            self._fail()

    def _fail(self) -> None:
        self.failures += 1
        if self.failures > _MAX_FAILURES:
            self.is_closed = True
            self.samples.clear()

    def _optimize(self, captured: CapturedCall) -> list[Program]:
        """Return the optimized programs of a call: forward, and the backward passes."""
        backward = captured.backward
        passes = [] if backward is None or backward.together is None else [backward.together, *backward.apart]
        programs = [captured.program, *(one.program for one in passes)]
        return [run_passes(one, captured, self.table, self.mode, keeps_sizes=self.simple) for one in programs]

    def _merge(self, place: Any, sample: tuple, arguments: int) -> None:
        """Make the program of all samples, and compile it."""
        if self.rounds >= _MAX_FAILURES:
            raise _NoSharedProgram
        samples = [*self.samples[: _SAMPLES - 1], sample]
        try:
            template, rows = _merge_programs([programs for _, programs, _ in samples])
        except _NoSharedProgram:
            if self.simple:
                raise
            self.simple = True
            self.samples = [(sizes, self._optimize(captured), captured) for sizes, _, captured in self.samples]
            samples = [*self.samples[: _SAMPLES - 1], (sample[0], self._optimize(sample[2]), sample[2])]
            template, rows = _merge_programs([programs for _, programs, _ in samples])
        self.rounds += 1
        captured = self.variant.captured
        backward = captured.backward
        if backward is not None:
            together = None if backward.together is None else replace(backward.together)
            backward = replace(backward, together=together, apart=[replace(one) for one in backward.apart])
        self.replay = compile_replay(
            self.name, replace(captured, backward=backward), self.variant.sources, arguments, self.table, self.mode,
            optimized=template,
        )  # fmt: skip
        self.samples, self.template = samples, template
        self.known, self.bound, self.settled = {}, OrderedDict(), {}
        self.formulas, self.recorded, self.inferred = None, {}, set()
        self._confirm(place, tuple([row[-1] for row in rows]), sample[0], [])

    def _fit(self, variant: Any) -> None:
        """Find the formulas of the integers, and whether they replace recordings."""
        if len(self.samples) < _SAMPLES or self.template is None:
            return
        self.is_free = _is_free_of_sizes(variant, [captured for _, _, captured in self.samples])
        rows = _merge_programs([programs for _, programs, _ in self.samples])[1]
        self.formulas = _Formulas.fit([sizes for sizes, _, _ in self.samples], rows)

    def _confirm(self, place: Any, numbers: tuple, sizes: tuple, arguments: list) -> None:
        """Accept the numbers of a size once a formula or a second recording gives the same."""
        if self.formulas is not None and self.formulas.numbers(sizes, arguments) == numbers or not numbers:
            self._learn(place, numbers)
            self.unused.add(place)
        elif place not in self.recorded:
            self.recorded[place] = numbers
        elif self.recorded.pop(place) == numbers:
            self._learn(place, numbers)
        else:
            self.is_closed = True  # the numbers do not depend on the size

    def _learn(self, place: Any, numbers: tuple) -> None:
        if len(self.known) >= _MAX_KNOWN:
            self.known.clear()
            self.recorded.clear()
            self.inferred.clear()
            self.bound.clear()
            self.settled.clear()
        self.known[place] = numbers

    def _bind(self, place: Any, numbers: tuple) -> Any:
        """Return the compiled function with the integers of a size as defaults."""
        captured, space = self.replay.captured, self.replay.__globals__
        backward = captured.backward
        if backward is not None and backward.together is not None:
            together = replace(backward.together, run=bind_numbers(backward.together.run, numbers))
            apart = [replace(one, run=_bind_lazily(one.run, numbers)) for one in backward.apart]
            captured = replace(captured, backward=replace(backward, together=together, apart=apart))
        forward = bind_numbers(space["forward"], numbers)
        space = {**space, "forward": forward, "finish": ReplayEpilogue(captured, self.table)}
        bound = self.bound[place] = FunctionType(self.replay.__code__, space, "replay")
        if len(self.bound) > _MAX_BOUND:
            self.bound.popitem(last=False)
        return bound


def bind_numbers(function: Any, numbers: tuple) -> FunctionType:
    """Return a generated function with other integers as defaults."""
    defaults = tuple([numbers[i] for i in function.numbers])
    return FunctionType(function.__code__, function.__globals__, function.__name__, defaults)


def _bind_lazily(run: Any, numbers: tuple) -> Any:
    return lambda given: bind_numbers(run.written(), numbers)(given)


# -- what can be shared -----------------------------------------------------------------------------


def _is_sharable(variant: Any) -> bool:
    """True if a call reads no elements, emits no warnings, and has a backward pass without an error."""
    captured = variant.captured
    if any(step.kind not in ("kernel", "object") for step in captured.program.steps):
        return False
    given = [k for k, source in enumerate(variant.sources) if source.argument >= 0]
    if any(captured.gradients[k] is not None for k in given):
        return False
    return captured.backward is None or captured.backward.error is None


def _is_free_of_sizes(variant: Any, samples: list[CapturedCall]) -> bool:
    """True if the function's own code reads no sizes, its ops do the same for all sizes, and a call has no effect but
    its results.
    """
    captured, state = variant.captured, variant.state
    if state.allowed_codes or state.constant_codes:  # code that was not walked
        return False
    if captured.bumps or captured.grads or any(_names_of(code) & _READS_SIZES for code in state.codes):
        return False
    inputs = {captured.memory.get(n) for n in captured.program.inputs}
    for step in captured.program.steps:
        written = set() if is_pure(step) else {captured.memory.get(n) for n in step.uses()}
        if written & inputs or not (is_pure(step) or only_mutates_args(step)):
            return False
    return all(_is_free(steps) for steps in zip(*map(_steps_of, samples), strict=True))


def _steps_of(captured: CapturedCall) -> list[Step]:
    backward = captured.backward
    passes = [] if backward is None or backward.together is None else [backward.together, *backward.apart]
    return [*captured.program.steps, *(step for one in passes for step in one.program.steps)]


def _is_free(steps: tuple[Step, ...]) -> bool:
    """True if a step of several sizes does the same for all others."""
    op = REGISTRY.get(steps[0].name)
    if steps[0].name == "split_with_sizes" and any(one.args != steps[0].args for one in steps[1:]):
        return False  # more parts would be needed
    return steps[0].name in _FREE_OF_SIZES or op is not None and bool(op.tags & POINTWISE)


def _names_of(code: Any) -> set[str]:
    return {*code.co_names, *(c for c in code.co_consts if c.__class__ is str)}


def _has_same_sources(a: Any, b: Any) -> bool:
    """True if two variants get their tensors from the same places."""
    return len(a.sources) == len(b.sources) and all(
        x.argument == y.argument and x.held is y.held for x, y in zip(a.sources, b.sources, strict=True)
    )


def _shapes_of(arguments: list) -> list[tuple]:
    return [tensor._tl_array.shape for tensor in arguments]


def _sizes_of(arguments: list) -> tuple[int, ...]:
    return tuple([size for shape in _shapes_of(arguments) for size in shape])


def _largest(captured: CapturedCall) -> int:
    return max([math.prod(shape) for shape, _, _ in captured.layouts.values()], default=0)


# -- programs of several sizes ------------------------------------------------------------------------


def _check_same_call(a: CapturedCall, b: CapturedCall) -> None:
    """Raise _NoSharedProgram if two calls differ in what is done around the kernels, or in layouts."""
    names = ("results", "shape_of_results", "bumps", "grads", "reads_gradients", "scalars")
    same = all(getattr(a, name) == getattr(b, name) for name in names) and _shape_free(a) == _shape_free(b)
    same = same and (not a.reads_gradients or a.gradients == b.gradients) and [*map(id, a.logs)] == [*map(id, b.logs)]
    if not same or (a.backward is None) is not (b.backward is None):
        raise _NoSharedProgram
    if a.backward is None or b.backward is None:
        return
    names = ("outputs", "wanted", "is_freed", "saved", "checked_outside", "checked_results")
    passes = [(x.together, *x.apart) if x.together is not None else () for x in (a.backward, b.backward)]
    if not all(getattr(a.backward, name) == getattr(b.backward, name) for name in names) or [
        (one.grads, one.outputs) for one in passes[0]
    ] != [(one.grads, one.outputs) for one in passes[1]]:
        raise _NoSharedProgram


def _shape_free(captured: CapturedCall) -> tuple:
    """Return dtypes, ranks and contiguity by slot, and which slots share memory."""
    slots = sorted({n for n in captured.layouts if n >= 0} | set(captured.program.inputs))
    layouts = [(n, len(found[0]), *found[1:]) for n in slots if (found := captured.layouts.get(n)) is not None]
    first: dict[Any, int] = {}
    memory = [(n, first.setdefault(captured.memory[n], n)) for n in sorted(captured.memory) if n >= 0 or n in slots]
    return layouts, memory


def _merge_programs(groups: list[list[Program]]) -> tuple[list[Program], list[tuple]]:
    """Return the programs of one call with parameters for integers that differ, and the integers' values by group."""
    rows: dict[tuple, int] = {}
    if len({len(group) for group in groups}) != 1:
        raise _NoSharedProgram
    merged = []
    for programs in zip(*groups, strict=True):
        first = programs[0]
        if not all(_has_same_frame(first, one) for one in programs[1:]):
            raise _NoSharedProgram
        steps = [_merge_steps(steps, rows) for steps in zip(*(one.steps for one in programs), strict=True)]
        merged.append(replace(first, steps=steps))
    return merged, list(rows)


def _has_same_frame(a: Program, b: Program) -> bool:
    """True if two programs have equal numbers of steps, inputs, outputs and constants."""
    if (len(a.steps), a.inputs, a.outputs) != (len(b.steps), b.inputs, b.outputs):
        return False
    return all(
        x.keys() == y.keys() and all(_is_same_array(x[n], y[n]) for n in x)
        for x, y in ((a.constants, b.constants), (a.held, b.held))
    )


def _is_same_array(a: Any, b: Any) -> bool:
    return a is b or (a.dtype, a.shape, a.strides) == (b.dtype, b.shape, b.strides) and a.tobytes() == b.tobytes()


def _merge_steps(steps: tuple[Step, ...], rows: dict) -> Step:
    first = steps[0]
    if not all(_is_same_operation(first, one) for one in steps[1:]):
        raise _NoSharedProgram
    args = _merge_values([one.args for one in steps], rows)
    kwargs = {name: _merge_values([one.kwargs[name] for one in steps], rows) for name in first.kwargs}
    return replace(first, args=args, kwargs=kwargs)


def _is_same_operation(a: Step, b: Step) -> bool:
    return (
        is_same_kernel(a.kernel, b.kernel)
        and (a.name, a.kind, a.out, a.grads) == (b.name, b.kind, b.out, b.grads)
        and a.kwargs.keys() == b.kwargs.keys()
    )


def _merge_values(values: list, rows: dict) -> Any:
    first = values[0]
    cls = first.__class__
    if any(value.__class__ is not cls for value in values):
        raise _NoSharedProgram
    if cls is tuple or cls is list:
        if len({len(value) for value in values}) != 1:
            raise _NoSharedProgram
        return cls([_merge_values(list(items), rows) for items in zip(*values, strict=True)])
    if cls is slice:
        parts = [[getattr(value, name) for value in values] for name in ("start", "stop", "step")]
        return slice(*[_merge_values(part, rows) for part in parts])
    if (cls is int or cls is float) and len(set(values)) > 1:
        return SizeNumber(rows.setdefault(tuple(values), len(rows)))
    if any(comparison_key(value) != comparison_key(first) for value in values[1:]):
        raise _NoSharedProgram
    return first


def _match_programs(template: list[Program], programs: list[Program], numbers: dict[int, float]) -> bool:
    """True if programs are those of the template for some integers, which are added to `numbers`."""
    return len(template) == len(programs) and all(
        _has_same_frame(a, b)
        and all(
            _is_same_operation(x, y)
            and _match_value(x.args, y.args, numbers)
            and all(_match_value(x.kwargs[name], y.kwargs[name], numbers) for name in x.kwargs)
            for x, y in zip(a.steps, b.steps, strict=True)
        )
        for a, b in zip(template, programs, strict=True)
    )


def _match_value(a: Any, b: Any, numbers: dict[int, float]) -> bool:
    if a.__class__ is SizeNumber:
        return (b.__class__ is int or b.__class__ is float) and numbers.setdefault(a.number, b) == b
    if a.__class__ is not b.__class__:
        return False
    if a.__class__ is tuple or a.__class__ is list:
        return len(a) == len(b) and all(_match_value(x, y, numbers) for x, y in zip(a, b, strict=True))
    if a.__class__ is slice:
        return all(_match_value(getattr(a, n), getattr(b, n), numbers) for n in ("start", "stop", "step"))
    return a == b if a.__class__ is Slot else comparison_key(a) == comparison_key(b)


# -- integers as expressions of sizes -----------------------------------------------------------------


class _Formulas:
    """Expressions of a program's integers. Sizes that were equal in all samples must be equal, and those that did not
    vary are constants.
    """

    def __init__(self, first: tuple[int, ...], symbols: list[str | None], expressions: list[Expr]) -> None:
        self.first, self.symbols, self.expressions = first, symbols, expressions

    @staticmethod
    def fit(samples: list[tuple], rows: list[tuple]) -> _Formulas | None:
        """Return the formulas, None if an integer is no sum or product of the sizes."""
        named: dict[tuple[int, ...], str] = {}
        symbols: list[str | None] = []
        for values in zip(*samples, strict=True):
            if len(set(values)) == 1:
                symbols.append(None)
            elif len(set(values)) < len(values) or min(values) < 2:
                return None  # too few values of this size to tell expressions apart
            else:
                symbols.append(named.setdefault(values, f"s{len(named)}"))
        found = [_fit_row(row, named) if row[0].__class__ is int else None for row in rows]
        if any(one is None for one in found):
            return None
        return _Formulas(samples[0], symbols, [one for one in found if one is not None])

    def numbers(self, sizes: tuple[int, ...], arguments: list) -> tuple | None:
        """Return the integers for other sizes, None if the program does not hold for them."""
        values: dict[str, int] = {}
        for size, first, name in zip(sizes, self.first, self.symbols, strict=True):
            if size != first if name is None else size < 2 or values.setdefault(name, size) != size:
                return None
        if not all(_is_row_major(tensor._tl_array) for tensor in arguments):
            return None
        return tuple([one.value(values) for one in self.expressions])


def _fit_row(values: tuple[int, ...], named: dict[tuple[int, ...], str]) -> Expr | None:
    """Return a multiple of one size or of a product of two, plus a constant."""
    factors = [(sizes, Expr.symbol(name)) for sizes, name in named.items()]
    pairs = itertools.combinations_with_replacement(factors, 2)
    factors += [(tuple([x * y for x, y in zip(a, b, strict=True)]), m * n) for (a, m), (b, n) in pairs]
    for sizes, expr in factors:
        if sizes[0] == sizes[1]:
            continue
        slope, rest = divmod(values[1] - values[0], sizes[1] - sizes[0])
        found = expr * slope + (values[0] - slope * sizes[0])
        if not rest and all(slope * s + values[0] - slope * sizes[0] == v for s, v in zip(sizes, values, strict=True)):
            return found
    return None


def _is_row_major(array: Any) -> bool:
    step = array.itemsize
    for size, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if stride != step:
            return False
        step *= size
    return True
