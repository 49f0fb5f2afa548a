"""Resource limits of loaded models: memory, CPU time and work of a run.

A limit is a number of elements (four bytes each) that values may hold at once. Ops check the size of a result first
(`check_elements`), and generated code counts each value (`RunLimits.hold`). Values are freed after their last use, and
weak references show which are alive. CPU time and work are bounded by multiples of the limit.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import Parameter

from ..._serialization.resource_budget import measure_python_slowdown
from ..._settings.build_time import thread_time_without_builds
from ..._types.layouts import MAX_DIMS
from .._element_types import NarrowTensor
from ..errors import OnnxFileError

MAX_ELEMENTS = 1 << 20  # constant part of the limit
ELEMENTS_PER_FILE_ELEMENT = 8  # additional elements per element (four bytes) of the file
ELEMENTS_PER_INPUT_ELEMENT = 256  # additional elements per input element
# additional elements for products of inputs with inputs, and with the file's elements
_PRODUCT, _PRODUCT_OF_FILE = 1 << 28, 50
_WORK = 256  # total elements of all results, as a multiple of the limit
_TIME = 800  # CPU time per element in nanoseconds
_STEP = 5_000  # CPU time per Python step in nanoseconds
_MAX_UNLIMITED = 1 << 28  # maximum elements of a result outside loaded models
_COUNT_INTERVAL = 1 << 16  # elements between counts of live values
_OBJECT, _OBJECTS = 64, 256  # additional elements per value, beyond this number of values
_CLOCK_INTERVAL = 4 * _OBJECT  # elements between clock checks
_MAX_UNCHECKED_ELEMENTS = 1 << 16  # elements of broadcast results without check


def element_budget(file: int, inputs: int) -> int:
    """Return the limit of a run, given the elements of the file and the inputs.

    Results may be products: channels come from weights and positions from inputs, and attention has scores for pairs of
    positions.
    """
    product = min(inputs * (inputs + file), _PRODUCT + _PRODUCT_OF_FILE * file)
    return MAX_ELEMENTS + ELEMENTS_PER_FILE_ELEMENT * file + ELEMENTS_PER_INPUT_ELEMENT * inputs + product


class TrackedSequence(list):
    """Sequence that supports weak references; `objects` is the number of objects created for it."""

    __slots__ = ("__weakref__", "objects")

    def __init__(self, values: Iterable[Any], objects: int = 0) -> None:
        super().__init__(values)
        self.objects = objects


class RunLimits:
    """Counter of one call of a module.

    `max_elements` bounds live elements and CPU time. `uncounted` returns the values that do not count: inputs and
    module tensors.

    The first `free` elements are counted without checking which values are alive, since a typical run creates no more.
    """

    __slots__ = (
        "base", "created", "deadline", "free", "live_refs", "max_elements", "next_clock_check", "next_count",
        "sure_until", "uncounted", "uncounted_ids",
    )  # fmt: skip

    def __init__(self, max_elements: int, free: int, uncounted: Callable[[], Iterable[Any]] = tuple) -> None:
        self.max_elements, self.free, self.uncounted = max_elements, free, uncounted
        allowed = int(_TIME * max(max_elements, MAX_ELEMENTS) * measure_python_slowdown())
        self.deadline = thread_time_without_builds() + allowed
        # Until then the limit holds, as no thread's CPU time goes faster. This clock is read without a system call.
        self.sure_until = time.perf_counter_ns() + allowed
        self.next_clock_check = 0  # element count of the next clock check
        self.created = 0  # elements created, including work
        self.live_refs: list[weakref.ref] | None = None  # weak references to memory of possibly live values
        self.uncounted_ids: set[int] = set()
        # At most the elements created since `base` are alive. `next` is the next count.
        self.base, self.next_count = 0, free

    def hold(self, value: Any) -> None:
        """Count a new value. Raise OnnxFileError if too many elements are alive."""
        kind: Any = value.__class__
        if kind is Tensor or kind is Parameter:
            array = value._tl_array
            size = array.nbytes >> 2 if array.itemsize > 2 else _narrow_elements(array)
            created = self.created = self.created + (size or _array_elements(array)) + _OBJECT
        elif kind is np.ndarray or kind is TrackedSequence:
            array = value
            created = self.created = self.created + _array_elements(array) + _OBJECT
        else:
            if isinstance(value, tuple):  # several results, or a narrow tensor; lists contain counted values
                for item in value:
                    self.hold(item)
            return
        if self.live_refs is not None:
            self.live_refs.append(weakref.ref(_base_array(array)))
        if created > self.next_count:
            self.count("the values", 0)
        if created > self.next_clock_check:
            self.check_time("the model")

    def replace(self, value: Any) -> None:
        """Count the time of a value that replaces a freed one of equal size."""
        self.next_clock_check -= _OBJECT + (value._tl_array.nbytes >> 2)
        if self.created > self.next_clock_check:
            self.check_time("the model")

    def check_time(self, what: str, steps: int = 0) -> None:
        """Raise OnnxFileError if so many Python steps would exceed the time limit."""
        self.next_clock_check = self.created + _CLOCK_INTERVAL
        more = _STEP * steps
        if time.perf_counter_ns() + more > self.sure_until and thread_time_without_builds() + more > self.deadline:
            raise OnnxFileError(
                f"{what}: more CPU time than a run on {self.max_elements} elements may take; "
                f"{more_with(max(self.max_elements, MAX_ELEMENTS))}"
            )

    def count(self, what: str, more: int) -> None:
        """Count live elements. Raise OnnxFileError if they and `more` exceed the limit."""
        if self.live_refs is None:
            self.live_refs, live = [], min(self.created - self.base, self.free)
            self.uncounted_ids = {id(_base_array(_to_array(x))) for x in self.uncounted()}
        else:
            alive = {id(memory): (memory, ref) for ref in self.live_refs if (memory := ref()) is not None}
            self.live_refs = [ref for _, ref in alive.values()]
            live = self.free + sum(
                _array_elements(memory) for key, (memory, _) in alive.items() if key not in self.uncounted_ids
            )
            live += _OBJECT * max(len(alive) - _OBJECTS, 0)
        if live + more > self.max_elements:
            raise _excess_error(what, live + more, self.max_elements, live if more else 0)
        self.base = self.created - live
        # Allow some progress before the next count, as counts take time; and keep lists short.
        self.next_count = self.created + min(
            max(self.max_elements - live, self.max_elements // 16), _OBJECT * (len(self.live_refs) + _COUNT_INTERVAL)
        )
        self.spend("the results", 0)

    def spend(self, what: str, work: int) -> None:
        """Count work as created elements."""
        self.created += work
        self.base += work
        self.next_count += work
        if self.created > _WORK * self.max_elements:
            raise OnnxFileError(
                f"{what}: more work than on {_WORK * self.max_elements} elements; {more_with(self.max_elements)}"
            )
        if self.created > self.next_clock_check:
            self.check_time(what)


class _CurrentRun(threading.local):
    """Counter of the current call in this thread, None outside loaded modules, where each result is checked alone."""

    limits: RunLimits | None = None


RUN = _CurrentRun()


def value_counter() -> tuple[Callable[[Any], None], Callable[[Any], None]]:
    """Return the functions that count each new value and each value that replaces a freed one. With gradients recorded,
    both stay alive.
    """
    limits = RUN.limits
    if limits is None:
        return _count_nothing, _count_nothing
    return limits.hold, limits.hold if torch.is_grad_enabled() else limits.replace


def count_value(value: Any) -> None:
    """Count an intermediate value of an op."""
    if RUN.limits is not None:
        RUN.limits.hold(value)


def _count_nothing(value: Any) -> None:
    pass


def check_elements(what: str, *sizes: int, each: int = 1) -> int:
    """Check the elements of a result of these sizes before it is created, and count additional ones as work. Raise
    OnnxFileError if they exceed the limit. `each`: width of an element in units of four bytes.
    """
    if len(sizes) > MAX_DIMS:
        raise OnnxFileError(f"{what}: a shape of {len(sizes)} dimensions")
    count, limits = math.prod(sizes), RUN.limits
    more = (count or nonzero_numel(sizes)) * each
    if limits is None:
        if more > _MAX_UNLIMITED:
            raise _excess_error(what, more, _MAX_UNLIMITED, 0)
    else:
        if more + limits.created - limits.base > limits.max_elements:
            limits.count(what, more)
        if more > count:
            limits.spend(what, more - count)
    return count


def check_objects(what: str, count: int) -> None:
    """Check the number of Python objects to create."""
    check_elements(what, count, each=_OBJECT)


def dtype_width(dtype: Any) -> int:
    """Return the width of a dtype in units of four bytes."""
    return max(dtype.itemsize // 4, 1)


def check_work(what: str, count: int) -> None:
    """Check work, counted as created elements."""
    limits = RUN.limits
    if limits is not None:
        limits.spend(what, count)


def check_steps(what: str, count: int) -> None:
    """Check Python steps of an op or a loop."""
    limits = RUN.limits
    if limits is not None:
        limits.check_time(what, count)


def check_broadcast(what: str, x: Any, y: Any, *rest: Any) -> None:
    """Check the elements of a broadcast result."""
    first, second = x.shape, y.shape
    if not rest and (first == second or nonzero_numel(first) * nonzero_numel(second) <= _MAX_UNCHECKED_ELEMENTS):
        return
    shapes = [tuple(v.shape)[::-1] for v in (x, y, *rest)]
    rank = max(map(len, shapes))
    check_elements(what, *(max(s[d] if d < len(s) else 1 for s in shapes) for d in range(rank)))


def check_matmul(a: Any, b: Any) -> None:
    """Check the elements and work of a matrix product."""
    first, second = a.shape, b.shape
    if nonzero_numel(first) * nonzero_numel(second) > _MAX_UNCHECKED_ELEMENTS and len(first) > 1 and len(second) > 1:
        batch = max(math.prod(first[:-2]), math.prod(second[:-2]))
        if len(first) > 2 and len(second) > 2 and first[:-2] != second[:-2]:
            batch = math.prod(max(p, q) for p, q in zip(first[-3::-1], second[-3::-1], strict=False)) * math.prod(
                (first if len(first) > len(second) else second)[: abs(len(first) - len(second))])  # fmt: skip
        count = check_elements("MatMul", batch, first[-2], second[-1])
        check_products("MatMul", count * first[-1], a)


def check_products(what: str, count: int, x: Any, fast: int = 64) -> None:
    """Check the work of multiply-adds by BLAS: `fast` floating-point ones take the time of an element."""
    check_work(what, count // (fast if x.is_floating_point() else 2))


def count_elements(value: Any) -> int:
    """Return the elements (four bytes) of a tensor, a string array or a sequence."""
    if isinstance(value, NarrowTensor):
        value = value.values
    if isinstance(value, (list, tuple)):
        return sum(map(count_elements, value))
    return _array_elements(_to_array(value)) if hasattr(value, "shape") else 1


def nonzero_numel(shape: Iterable[int]) -> int:
    """Return the number of elements of a shape with zero sizes counted as 1: an op on an empty tensor may return that
    many, for example a sum over the empty dimension.
    """
    return math.prod(n or 1 for n in shape)


def _narrow_elements(array: Any) -> int:
    """Return the cost of an array of one- or two-byte elements; narrow floats take longer."""
    if array.itemsize == 2:
        return 4 * array.nbytes
    return array.nbytes >> 2 if array.dtype.char in "?bB" else 16 * array.nbytes


def _to_array(value: Any) -> Any:
    """Return a tensor's array, or an array itself."""
    return value._tl_array if hasattr(value, "_tl_array") else value


def _base_array(array: Any) -> Any:
    """Return the array that owns a view's memory."""
    base = getattr(array, "base", None)
    while base.__class__ is np.ndarray:
        array, base = base, base.base
    return array


def _array_elements(array: Any) -> int:
    """Return the elements (four bytes) in an array; a string counts its characters plus a constant. An empty array
    counts its extent.
    """
    if array.__class__ is not TrackedSequence and 0 in array.shape:
        return nonzero_numel(array.shape)
    if array.__class__ is np.ndarray:
        if array.dtype == object:
            return 16 * array.size + sum(len(item) for item in array.ravel() if item.__class__ is str)
        return array.size if array.itemsize <= 4 else array.size * array.itemsize // 4
    if array.__class__ is TrackedSequence:
        return 2 * len(array) + _OBJECT * array.objects
    return math.prod(array.shape) * max(getattr(getattr(array, "dtype", None), "itemsize", 4), 4) // 4


def _excess_error(what: str, count: int, max_elements: int, alive: int) -> OnnxFileError:
    least = count if count < 1 << 40 else 0
    number = str(count) if count < 1 << 64 else "more than 2**64"
    beside = f" with {alive} that are alive" if alive else ""
    return OnnxFileError(
        f"{what}: {number} elements{beside}, where a run may hold {max_elements}; {more_with(max(max_elements, least))}"
    )


def more_with(max_elements: int) -> str:
    """Return the hint of an error message to raise the limit: a power of two, at least four times as much."""
    return f"torch.onnx.load(f, max_elements={1 << (4 * max_elements - 1).bit_length()}) allows more"
