"""How much a run of a loaded model may make: attributes and values of a small file can ask for any number.

One number bounds a run: the elements that its values may hold at once, four bytes each. What makes a value checks its
size first (`allow`); the code of the module counts each value that was made (`Limits.hold`). Values are freed after
their last use, and weak references to their memory tell which are left. CPU time and work are bounded by multiples of
that number: time where ops follow each other, and work within an op.
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

from ..._serialization.resource_budget import slowness
from ..._types.layouts import MAX_DIMS
from .._element_types import NarrowTensor
from ..errors import OnnxFileError

MAX_ELEMENTS = 1 << 20  # elements of all values at once, beside what the file and the inputs pay for
ELEMENTS_PER_FILE_ELEMENT = 8  # elements more for each one that the file has, four bytes of it
ELEMENTS_PER_INPUT_ELEMENT = 256  # elements more for each one of the inputs
_PRODUCT, _PRODUCT_OF_FILE = 1 << 28, 50  # the most that products of inputs with inputs and the file may add
_WORK = 256  # times as many elements may all results of a run have
_TIME = 800  # nanoseconds of CPU time for an element
_STEP = 5_000  # nanoseconds of a step of Python within an op
_ALONE = 1 << 28  # elements of a result where no loaded model runs
_BETWEEN = 1 << 16  # values until those that are alive are counted
_OBJECT, _OBJECTS = 64, 256  # elements that a value takes beside its own, where there are more than so many values
_LOOK = 4 * _OBJECT  # elements that are made between two looks at the clock
_FREE = 1 << 16  # elements that results of broadcasting have unasked


def element_budget(file: int, inputs: int) -> int:
    """The elements that a run's values may hold at once, by those of the file and of the inputs.

    Results may be products: channels are of the weights and positions of the inputs, and attention has scores for
    pairs of positions.
    """
    product = min(inputs * (inputs + file), _PRODUCT + _PRODUCT_OF_FILE * file)
    return MAX_ELEMENTS + ELEMENTS_PER_FILE_ELEMENT * file + ELEMENTS_PER_INPUT_ELEMENT * inputs + product


class TrackedSequence(list):
    """A sequence that an op made, which weak references can tell of: `objects` is how many were made for it."""

    __slots__ = ("__weakref__", "objects")

    def __init__(self, values: Iterable[Any], objects: int = 0) -> None:
        super().__init__(values)
        self.objects = objects


class RunLimits:
    """What one call of a module may make. `most` is the elements that its values may hold at once, and bounds its CPU
    time. `kept` says whose memory does not count: the inputs' and the module's.

    The first values, which are `free` elements in all, count as if they stayed: a usual run makes no more, and need not
    know which of them are left.
    """

    __slots__ = ("base", "end", "free", "kept", "left", "look", "made", "most", "next", "own")

    def __init__(self, most: int, free: int, kept: Callable[[], Iterable[Any]] = tuple) -> None:
        self.most, self.free, self.kept = most, free, kept
        self.end = time.thread_time_ns() + int(_TIME * max(most, MAX_ELEMENTS) * slowness())
        self.look = 0  # when so many elements are made, the clock is looked at
        self.made = 0  # elements of all values, and work that stands for some
        self.left: list[weakref.ref] | None = None  # memory of values that may be alive, where it is asked for
        self.own: set[int] = set()
        # What is alive is no more than was made beyond `base`. At `next` it is counted.
        self.base, self.next = 0, free

    def hold(self, value: Any) -> None:
        """Count a value that was made. OnnxFileError where too much is alive."""
        kind: Any = value.__class__
        if kind is Tensor or kind is Parameter:
            array = value._tl_array
            size = array.nbytes >> 2 if array.itemsize > 2 else _narrow_elements(array)
            made = self.made = self.made + (size or _array_elements(array)) + _OBJECT
        elif kind is np.ndarray or kind is TrackedSequence:
            array = value
            made = self.made = self.made + _array_elements(array) + _OBJECT
        else:
            if isinstance(value, tuple):  # several results, or a tensor of a narrow type: lists have what was counted
                for item in value:
                    self.hold(item)
            return
        if self.left is not None:
            self.left.append(weakref.ref(_base_array(array)))
        if made > self.next:
            self.count("the values", 0)
        if made > self.look:
            self.check_time("the model")

    def replace(self, value: Any) -> None:
        """Count a value that is as large as one that was freed: its time alone."""
        self.look -= _OBJECT + (value._tl_array.nbytes >> 2)
        if self.made > self.look:
            self.check_time("the model")

    def check_time(self, what: str, steps: int = 0) -> None:
        """OnnxFileError where so many steps of Python would end after the call's time."""
        self.look = self.made + _LOOK
        if time.thread_time_ns() + _STEP * steps > self.end:
            raise OnnxFileError(
                f"{what}: more CPU time than a run on {self.most} elements may take; {more_with(max(self.most, MAX_ELEMENTS))}"
            )

    def count(self, what: str, more: int) -> None:
        """Count what is alive. OnnxFileError where it and `more` elements are too many."""
        if self.left is None:
            self.left, live = [], min(self.made - self.base, self.free)
            self.own = {id(_base_array(_to_array(x))) for x in self.kept()}
        else:
            alive = {id(memory): (memory, ref) for ref in self.left if (memory := ref()) is not None}
            self.left = [ref for _, ref in alive.values()]
            live = self.free + sum(_array_elements(memory) for key, (memory, _) in alive.items() if key not in self.own)
            live += _OBJECT * max(len(alive) - _OBJECTS, 0)
        if live + more > self.most:
            raise _raise_excess(what, live + more, self.most, live if more else 0)
        self.base = self.made - live
        # A part is made before the next count, however little is left, for counts take time; and lists stay short.
        self.next = self.made + min(max(self.most - live, self.most // 16), _OBJECT * (len(self.left) + _BETWEEN))
        self.spend("the results", 0)

    def spend(self, what: str, work: int) -> None:
        """Count work that no value shows, as elements that are made."""
        self.made += work
        self.base += work
        self.next += work
        if self.made > _WORK * self.most:
            raise OnnxFileError(f"{what}: more work than on {_WORK * self.most} elements; {more_with(self.most)}")
        if self.made > self.look:
            self.check_time(what)


class _CurrentRun(threading.local):
    """A thread's call; None outside calls of modules that were loaded, where each result counts by itself."""

    limits: RunLimits | None = None


RUN = _CurrentRun()


def value_counter() -> tuple[Callable[[Any], None], Callable[[Any], None]]:
    """What counts each value that a node of a loaded model makes, and each that is as large as one that it freed. Where
    gradients are recorded, both stay.
    """
    limits = RUN.limits
    if limits is None:
        return _count_nothing, _count_nothing
    return limits.hold, limits.hold if torch.is_grad_enabled() else limits.replace


def count_value(value: Any) -> None:
    """Count a value that an op makes on its way to its result."""
    if RUN.limits is not None:
        RUN.limits.hold(value)


def _count_nothing(value: Any) -> None:
    pass


def check_elements(what: str, *sizes: int, each: int = 1) -> int:
    """The elements of a result with these sizes, before it is made. OnnxFileError for more than may be alive. `each`
    is for what stands for several: eight bytes are two. What is beside the result counts as work too.
    """
    if len(sizes) > MAX_DIMS:
        raise OnnxFileError(f"{what}: a shape of {len(sizes)} dimensions")
    count, limits = math.prod(sizes), RUN.limits
    more = (count or nonzero_numel(sizes)) * each
    if limits is None:
        if more > _ALONE:
            raise _raise_excess(what, more, _ALONE, 0)
    else:
        if more + limits.made - limits.base > limits.most:
            limits.count(what, more)
        if more > count:
            limits.spend(what, more - count)
    return count


def check_objects(what: str, count: int) -> None:
    """Check how many objects of Python are made."""
    check_elements(what, count, each=_OBJECT)


def dtype_width(dtype: Any) -> int:
    """For how many elements of four bytes one of a dtype stands."""
    return max(dtype.itemsize // 4, 1)


def check_work(what: str, count: int) -> None:
    """Check work that no result shows, counted as elements that are made."""
    limits = RUN.limits
    if limits is not None:
        limits.spend(what, count)


def check_steps(what: str, count: int) -> None:
    """Check steps of Python that an op takes, or a loop of ops."""
    limits = RUN.limits
    if limits is not None:
        limits.check_time(what, count)


def check_broadcast(what: str, x: Any, y: Any, *rest: Any) -> None:
    """Check the elements of a result of tensors that are broadcast."""
    first, second = x.shape, y.shape
    if not rest and (first == second or nonzero_numel(first) * nonzero_numel(second) <= _FREE):
        return
    shapes = [tuple(v.shape)[::-1] for v in (x, y, *rest)]
    rank = max(map(len, shapes))
    check_elements(what, *(max(s[d] if d < len(s) else 1 for s in shapes) for d in range(rank)))


def check_matmul(a: Any, b: Any) -> None:
    """Check the elements of a matrix product, and its work."""
    first, second = a.shape, b.shape
    if nonzero_numel(first) * nonzero_numel(second) > _FREE and len(first) > 1 and len(second) > 1:
        batch = max(math.prod(first[:-2]), math.prod(second[:-2]))
        if len(first) > 2 and len(second) > 2 and first[:-2] != second[:-2]:
            batch = math.prod(max(p, q) for p, q in zip(first[-3::-1], second[-3::-1], strict=False)) * math.prod(
                (first if len(first) > len(second) else second)[: abs(len(first) - len(second))])  # fmt: skip
        count = check_elements("MatMul", batch, first[-2], second[-1])
        check_products("MatMul", count * first[-1], a)


def check_products(what: str, count: int, x: Any, fast: int = 64) -> None:
    """Check the work of products that BLAS adds up: `fast` of floating-point numbers in the time of an element."""
    check_work(what, count // (fast if x.is_floating_point() else 2))


def count_elements(value: Any) -> int:
    """How many elements of four bytes a tensor, an array of text or all in a sequence have."""
    if isinstance(value, NarrowTensor):
        value = value.values
    if isinstance(value, (list, tuple)):
        return sum(map(count_elements, value))
    return _array_elements(_to_array(value)) if hasattr(value, "shape") else 1


def nonzero_numel(shape: Iterable[int]) -> int:
    """The elements of a shape, where a size of 0 counts as 1: what an op makes of a tensor without elements may have as
    many, a sum over the size that is 0 for example.
    """
    return math.prod(n or 1 for n in shape)


def _narrow_elements(array: Any) -> int:
    """The elements that an array of one or two bytes each stands for: numbers of floating point take much longer."""
    if array.itemsize == 2:
        return 4 * array.nbytes
    return array.nbytes >> 2 if array.dtype.char in "?bB" else 16 * array.nbytes


def _to_array(value: Any) -> Any:
    """The array of a tensor, or an array itself."""
    return value._tl_array if hasattr(value, "_tl_array") else value


def _base_array(array: Any) -> Any:
    """The array that an array is a view of, which lives as long as its memory."""
    base = getattr(array, "base", None)
    while base.__class__ is np.ndarray:
        array, base = base, base.base
    return array


def _array_elements(array: Any) -> int:
    """The elements of four bytes in an array; a text has one for each letter and some for itself. An array without
    elements counts as its extent.
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


def _raise_excess(what: str, count: int, most: int, alive: int) -> OnnxFileError:
    least = count if count < 1 << 40 else 0
    number = str(count) if count < 1 << 64 else "more than 2**64"
    beside = f" with {alive} that are alive" if alive else ""
    return OnnxFileError(
        f"{what}: {number} elements{beside}, where a run may hold {most}; {more_with(max(most, least))}"
    )


def more_with(most: int) -> str:
    """How to allow more than an error says: a power of two, at least four times as much."""
    return f"torch.onnx.load(f, max_elements={1 << (4 * most - 1).bit_length()}) allows more"
