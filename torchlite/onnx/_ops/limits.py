"""How many elements the ops of a file may make: attributes and values of a small file can ask for any number."""

from __future__ import annotations

import math
import threading
from typing import Any

from .._types import Narrow
from ..errors import OnnxFileError

MOST = 1 << 26  # elements of a result whose size attributes and values say, where `load` is given no other number
RATIO = 50  # elements for each one of the inputs and of the file's tensors, where these are more
_PRODUCTS = 4  # times as many elements for a result whose size follows from those of its inputs
_RESULTS = 64  # times as many elements for all results of one run whose sizes values say
_FREE = 1 << 16  # elements that results of broadcasting have unasked
_KEPT = 4  # a loop keeps so many times fewer elements, for a step may double them before they are counted
_STEP = 1024  # elements that a step of a loop stands for


class Limits:
    """What one call of a module may make: the elements of a result, all of them so far, and the steps of loops. Where
    `inputs` are given, they let results be larger in proportion.
    """

    __slots__ = ("inputs", "made", "most", "steps")

    def __init__(self, most: int, inputs: Any = None) -> None:
        self.most, self.inputs = most, inputs
        self.made = self.steps = 0

    def exceeds(self, count: int, times: int = 1) -> bool:
        """Whether a number is more than some times what a result may have. Inputs are counted when it matters."""
        if count <= self.most * times:
            return False
        if self.inputs is not None:
            self.most, self.inputs = max(self.most, RATIO * elements(self.inputs)), None
        return count > self.most * times


class _Run(threading.local):
    """A thread's call; None outside calls of modules that were loaded, where each result counts by itself."""

    limits: Limits | None = None


RUN = _Run()


def allow(what: str, *sizes: int) -> int:
    """The elements of a shape that values or attributes say. OnnxFileError for more than a file may ask for."""
    count, limits = math.prod(sizes), RUN.limits or Limits(MOST)
    if limits.exceeds(count):
        raise _excess(what, count, limits.most)
    if count > 0:
        limits.made += count
        if limits.exceeds(limits.made, _RESULTS):
            raise _excess(f"{what}, with the results before it", limits.made, limits.most * _RESULTS)
    return count


def allow_product(what: str, count: int) -> None:
    """Check the elements of a result whose size follows from its inputs', which may be their sizes' product."""
    limits = RUN.limits or Limits(MOST)
    if limits.exceeds(count, _PRODUCTS):
        raise _excess(what, count, limits.most * _PRODUCTS)


def allow_broadcast(what: str, x: Any, y: Any, *rest: Any) -> None:
    """Check the elements of a result of tensors that are broadcast."""
    first, second = x.shape, y.shape
    if not rest and (first == second or math.prod(first) * math.prod(second) <= _FREE):
        return
    shapes = [tuple(v.shape)[::-1] for v in (x, y, *rest)]
    rank = max(map(len, shapes))
    allow_product(what, math.prod(max(s[d] if d < len(s) else 1 for s in shapes) for d in range(rank)))


def allow_matmul(a: Any, b: Any) -> None:
    """Check the elements of a matrix product."""
    first, second = a.shape, b.shape
    if math.prod(first) * math.prod(second) > _FREE and len(first) > 1 and len(second) > 1:
        batch = max(math.prod(first[:-2]), math.prod(second[:-2]))
        if len(first) > 2 and len(second) > 2 and first[:-2] != second[:-2]:
            batch = math.prod(first[:-2]) * math.prod(second[:-2])
        allow_product("MatMul", batch * first[-2] * second[-1])


def allow_step(what: str, kept: int) -> None:
    """Check one more step of a loop, and the elements that it keeps."""
    limits = RUN.limits or Limits(MOST)
    if limits.exceeds(kept * _KEPT):
        raise _excess(what, kept, limits.most // _KEPT)
    limits.steps += 1
    if limits.exceeds(limits.steps * _STEP):
        steps = limits.most // _STEP
        raise OnnxFileError(f"{what}: more than {steps} steps; onnx.load(max_elements=...) sets how many")


def elements(value: Any) -> int:
    """The elements of a tensor, of an array of text or of all in a sequence."""
    if isinstance(value, (list, tuple)):
        return sum(map(elements, value))
    if isinstance(value, Narrow):
        value = value.values
    return math.prod(value.shape) if hasattr(value, "shape") else 1


def _excess(what: str, count: int, most: int) -> OnnxFileError:
    number = str(count) if count < 1 << 64 else "more than 2**64"
    return OnnxFileError(f"{what}: {number} elements, where a file may ask for {most}: onnx.load(max_elements=...)")
