"""Grouped GEMM: independent linear layers and their gradients in one parallel region, for compiled programs.

A thread takes 25 to 60 us to wake, and the first to finish waits for the others; grouping pays that once. The parts are
those of the separate kernels, so results are bitwise equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .blas import can_limit, single_threaded
from .cache_blocking import parallel_for
from .deterministic_gemm import make_matmul_tasks
from .linear_layer import _view_rows_as_matrix
from .row_blocks import ones

# Minimum multiplications of all products; below, waking threads takes longer (two cores).
_MIN_MULS = 1 << 24


def _make_linear_tasks(input, weight, bias=None):
    out = np.empty((*input.shape[:-1], len(weight)), input.dtype)
    return out, make_matmul_tasks(_view_rows_as_matrix(input), weight.T, _view_rows_as_matrix(out), bias)


def _make_input_grad_tasks(grad, weight):
    out = np.empty((*grad.shape[:-1], weight.shape[1]), grad.dtype)
    return out, make_matmul_tasks(_view_rows_as_matrix(grad), weight, _view_rows_as_matrix(out))


def _make_weight_grad_tasks(grad, input):
    out = np.empty((grad.shape[-1], input.shape[-1]), grad.dtype)
    return out, make_matmul_tasks(_view_rows_as_matrix(grad).T, _view_rows_as_matrix(input), out)


def _make_bias_grad_tasks(grad):
    rows, out = _view_rows_as_matrix(grad), np.empty(grad.shape[-1:], grad.dtype)
    return out, [lambda: np.dot(ones(len(rows), rows.dtype), rows, out=out)]


# By op: function of its arrays that returns the uncomputed result, and the calls that compute it.
_TASK_BUILDERS: dict[str, Callable[..., tuple[np.ndarray, list]]] = {
    "linear": _make_linear_tasks,
    "_linear_input_grad": _make_input_grad_tasks,
    "_linear_weight_grad": _make_weight_grad_tasks,
    "_linear_bias_grad": _make_bias_grad_tasks,
}


def count_multiplications(name: str, layouts: Sequence[tuple]) -> int:
    """Return the multiplications of an op over arrays of these layouts, (shape, dtype, contiguous); 0 if it is not
    groupable.
    """
    if name not in _TASK_BUILDERS or not can_limit():
        return 0
    shapes, kinds = [shape for shape, *_ in layouts], {kind.char for _, kind, _ in layouts}
    if kinds not in ({"f"}, {"d"}) or any(0 in shape for shape in shapes) or len(shapes[0]) < 2:
        return 0
    if name == "linear" and (len(shapes[1]) != 2 or any(shape != shapes[1][:1] for shape in shapes[2:])):
        return 0
    if name == "_linear_input_grad" and len(shapes[1]) != 2:
        return 0
    columns = {"linear": 0, "_linear_input_grad": 1, "_linear_weight_grad": -1}.get(name)
    return math.prod(shapes[0]) * (1 if columns is None else shapes[1][columns])


def make_grouped_kernel(calls: Sequence[tuple[str, Sequence[tuple]]]) -> Callable | None:
    """Return `kernel(arrays of all calls)`, which returns the results of some ops; None if separate calls are as fast.

    calls: each op's name and the layouts of its arrays.
    """
    work = [count_multiplications(name, layouts) for name, layouts in calls]
    if len(work) < 2 or sum(work) < _MIN_MULS:
        return None
    plans, place = [], 0
    for name, layouts in calls:
        plans.append((_TASK_BUILDERS[name], slice(place, place + len(layouts))))
        place += len(layouts)

    def kernel(*arrays: Any) -> tuple:
        made = [plan(*arrays[here]) for plan, here in plans]
        with single_threaded:
            parallel_for(_run_task, [(task,) for _, found in made for task in found])
        return tuple([out for out, _ in made])

    return kernel


def _run_task(task):
    task()
