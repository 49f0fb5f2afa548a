"""How many elements the ops of a file may make: attributes and values of a small file can ask for any number."""

from __future__ import annotations

import math
import threading
from typing import Any

from ..errors import OnnxFileError

MOST = 1 << 26  # elements of a result whose size attributes and values say, where `load` is given no other number
RATIO = 50  # elements for each one of the inputs and of the file's tensors, where these are more
_PRODUCTS = 4  # times as many elements for a result whose size follows from those of its inputs
_RESULTS = 64  # times as many elements for all results of one run whose sizes values say
_STEP = 1024  # elements that a step of a loop stands for


class _Run(threading.local):
    """A thread's run: the elements that a result may have, those of all results so far, and the steps of its loops.
    Results are added up while `counts`, in a call of a module that was loaded.
    """

    most: int = MOST
    made: int = 0
    steps: int = 0
    counts: bool = False


RUN = _Run()


def allow(what: str, *sizes: int) -> int:
    """The elements of a shape that values or attributes say. OnnxFileError for more than a file may ask for."""
    count = math.prod(sizes)
    if count > RUN.most:
        raise _excess(what, count, RUN.most)
    if RUN.counts and count > 0:
        RUN.made += count
        if RUN.made > RUN.most * _RESULTS:
            raise _excess(f"{what}, with the results before it", RUN.made, RUN.most * _RESULTS)
    return count


def allow_product(what: str, count: int) -> None:
    """Check the elements of a result whose size follows from its inputs', which may be their sizes' product."""
    if count > RUN.most * _PRODUCTS:
        raise _excess(what, count, RUN.most * _PRODUCTS)


def allow_broadcast(what: str, *values: Any) -> None:
    """Check the elements of a result of tensors that are broadcast."""
    if math.prod(max(math.prod(x.shape), 1) for x in values) > RUN.most:  # the most that it can have
        shapes = [tuple(x.shape)[::-1] for x in values]
        rank = max(map(len, shapes))
        allow_product(what, math.prod(max(s[d] if d < len(s) else 1 for s in shapes) for d in range(rank)))


def allow_matmul(a: Any, b: Any) -> None:
    """Check the elements of a matrix product."""
    if math.prod(a.shape) * math.prod(b.shape) > RUN.most and a.ndim > 1 and b.ndim > 1:
        batch = max(math.prod(a.shape[:-2]), math.prod(b.shape[:-2]))
        if a.ndim > 2 and b.ndim > 2 and a.shape[:-2] != b.shape[:-2]:
            batch = math.prod(a.shape[:-2]) * math.prod(b.shape[:-2])
        allow_product("MatMul", batch * a.shape[-2] * b.shape[-1])


def allow_step(what: str, kept: int) -> None:
    """Check one more step of a loop, and the elements that it keeps."""
    if kept > RUN.most:
        raise _excess(what, kept, RUN.most)
    RUN.steps += 1
    if RUN.steps * _STEP > RUN.most:
        raise OnnxFileError(f"{what}: more than {RUN.most // _STEP} steps; onnx.load(max_elements=...) sets how many")


def elements(value: Any) -> int:
    """The elements of a tensor, of an array of text or of all in a sequence."""
    if isinstance(value, (list, tuple)):
        return sum(map(elements, value))
    return math.prod(getattr(getattr(value, "values", value), "shape", ()))


def _excess(what: str, count: int, most: int) -> OnnxFileError:
    number = str(count) if count < 1 << 64 else "more than 2**64"
    return OnnxFileError(f"{what}: {number} elements, where a file may ask for {most}: onnx.load(max_elements=...)")
