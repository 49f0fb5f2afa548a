"""FLOP counts of matrix products, convolutions and attention, with PyTorch's formulas."""

from __future__ import annotations

import math
from typing import Any

from .._dispatch.shapes import broadcast_shapes


def matmul_flops(a: Any, b: Any) -> int:
    """FLOPs of a product of matrices, vectors or batches, by the rules of `matmul`."""
    a, b = tuple(a), tuple(b)
    inner = a[-1]
    rows = a[-2] if len(a) > 1 else 1
    columns = b[-1] if len(b) > 1 else 1
    lead = 1
    if len(a) > 2 or len(b) > 2:
        lead = math.prod(broadcast_shapes(a[:-2], b[:-2]))
    return lead * rows * columns * 2 * inner


def conv_flops(x: Any, w: Any, out: Any, transposed: bool = False) -> int:
    """FLOPs of the convolution of images `x` with `w`; `out` is the result's shape."""
    places = math.prod((x if transposed else out)[2:])
    return math.prod(w[2:]) * x[0] * places * w[0] * w[1] * 2


def _transpose_shape(shape: Any) -> list:
    return [shape[1], shape[0], *shape[2:]]


def conv_backward_flops(grad: Any, x: Any, w: Any, needs: Any, transposed: bool = False) -> int:
    """FLOPs of the required gradients of a convolution: the input's and the weights'."""
    count = 0
    if needs[0]:
        count += conv_flops(grad, w, x, not transposed)
    if needs[1] and transposed:
        count += conv_flops(_transpose_shape(grad), _transpose_shape(x), _transpose_shape(w))
    elif needs[1]:
        count += conv_flops(_transpose_shape(x), _transpose_shape(grad), _transpose_shape(w))
    return count


def sdpa_flops(q: Any, k: Any, v: Any) -> int:
    """FLOPs of scaled dot product attention: the scores, and the weighted sum of values."""
    *lead, queries, width = q
    keys, last = k[-2], v[-1]
    return math.prod(lead) * (2 * queries * width * keys + 2 * queries * keys * last)


def sdpa_backward_flops(q: Any, k: Any, v: Any) -> int:
    """FLOPs of its backward: the recomputed scores, and four products."""
    *lead, queries, width = q
    keys, last = k[-2], v[-1]
    batch = math.prod(lead)
    return batch * 2 * queries * keys * (3 * width + 2 * last)


_PRODUCTS = {"mm", "bmm", "matmul", "mv", "dot"}
_ADDED = {"addmm", "baddbmm", "addmv"}


def _shape_of_result(value: Any) -> tuple:
    return tuple(value.shape)


def op_flops(op: Any, args: Any, kwargs: Any, result: Any) -> int | None:
    """FLOPs of an op call; None for an op without a formula."""
    name = op.name
    if name in _PRODUCTS:
        return matmul_flops(_shape_of_result(args[0]), _shape_of_result(args[1]))
    if name in _ADDED:
        return matmul_flops(_shape_of_result(args[1]), _shape_of_result(args[2]))
    if name == "linear":
        return matmul_flops(_shape_of_result(args[0]), _shape_of_result(args[1])[::-1])
    if name in ("mul", "add", "sub", "div") and hasattr(result, "numel"):
        return result.numel()
    if name == "_convolution" or name == "convolution":
        return conv_flops(
            _shape_of_result(args[0]),
            _shape_of_result(args[1]),
            _shape_of_result(result),
            bool(args[6]) if len(args) > 6 else False,
        )
    return None
