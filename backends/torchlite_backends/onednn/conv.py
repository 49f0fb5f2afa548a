"""Convolutions on oneDNN: forward and both gradients over float32 arrays, in pieces that the CPU's threads share.

A channels-last array is read and written in place if oneDNN can. Others are reordered to its blocked layout piece by
piece, in scratch memory that stays in a core's cache. Weights are reordered in every call: they can be written through
NumPy's views unnoticed, so that a cached copy might be stale.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import primitives as p
from .conv_partition import DATA, FORWARD, WEIGHTS, ConvShape, Piece, split_into_pieces
from .library import Library, OneDNNError
from .primitives import MemoryDesc, Operand, Primitive, SlowImplementation, Task

_MAX_CACHED_PLANS = 512
_ITEMSIZE = 4
Strides = tuple[int, ...]
# The task of a piece, the offsets of its operands in bytes, and whether it gets the weights laid out.
_Item = tuple[Task, tuple[int, ...], bool]


class _ConvPlan(NamedTuple):
    """One pass over arrays of fixed shapes and strides: its pieces, and the weight reorder they share.

    For the weight gradient `shares` is the number of partial sums.
    """

    tasks: list[_Item]
    weight_reorder: p.WeightReorder | None
    shares: int


def _channels_last(array: np.ndarray) -> bool:
    """True if an array is channels-last without gaps, and not also row-major."""
    if array.flags.c_contiguous or array.ndim < 3:
        return False
    step = _ITEMSIZE
    for axis in (1, *range(array.ndim - 1, 1, -1), 0):
        if array.shape[axis] > 1 and array.strides[axis] != step:
            return False
        step *= array.shape[axis]
    return True


def _as_fast_readable(array: np.ndarray) -> np.ndarray:
    """Return the array if oneDNN reads it fast, else a copy."""
    return array if array.flags.c_contiguous or _channels_last(array) else np.ascontiguousarray(array)


def _compute_element_strides(strides: Sequence[int]) -> Strides:
    return tuple(s // _ITEMSIZE for s in strides)


class Convolutions:
    """Convolutions by oneDNN. `share(body, items)` runs `body(*item)` on the CPU's threads; `scratch(number, bytes)` is
    memory of the calling thread.
    """

    def __init__(self, library: Library, share: Callable[..., None], scratch: p.Scratch):
        self.library, self._share, self._scratch = library, share, scratch
        self._planned = functools.lru_cache(_MAX_CACHED_PLANS)(self._plan_pieces)
        self._task = functools.lru_cache(_MAX_CACHED_PLANS)(self._make_task)

    def forward(self, g: ConvShape, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray | None:
        """Return the convolution of `x` (batch, channels, *size), (batch, filters, *out); None if oneDNN is slow at
        it.
        """
        x, weight = _as_fast_readable(x), np.ascontiguousarray(weight)
        last = _channels_last(x)
        out = _empty((g.batch, g.filters, *g.out), last)
        operands = [x, weight, out] if bias is None else [x, weight, out, np.ascontiguousarray(bias)]
        return out if self._run(FORWARD, g, operands, last, 1) else None

    def input_gradient(self, g: ConvShape, grad: np.ndarray, weight: np.ndarray) -> np.ndarray | None:
        """Return the input's gradient, (batch, channels, *size), from `grad` (batch, filters, *out)."""
        grad, weight = _as_fast_readable(grad), np.ascontiguousarray(weight)
        last = _channels_last(grad)
        out = _empty((g.batch, g.channels, *g.size), last)
        return out if self._run(DATA, g, [out, weight, grad], last, 1) else None

    def weight_gradient(self, g: ConvShape, grad: np.ndarray, x: np.ndarray) -> np.ndarray | None:
        """Return the weight's gradient, (filters, channels / groups, *kernel)."""
        grad, x = _as_fast_readable(grad), _as_fast_readable(x)
        last = _channels_last(grad) and _channels_last(x)
        shape = (g.filters, g.channels // g.groups, *g.kernel)
        planned = self._planned(
            WEIGHTS, g, _compute_element_strides(x.strides), _compute_element_strides(grad.strides), False, last
        )
        if planned is None:
            return None
        sums = np.empty((planned.shares, *shape), np.float32)
        self._run(WEIGHTS, g, [x, sums, grad], last, planned.shares)
        return sums[0] if planned.shares == 1 else np.add.reduce(sums, 0)

    def _run(self, kind: str, g: ConvShape, operands: Sequence[np.ndarray], last: bool, shares: int) -> bool:
        """Compute one pass over (source, weight, target, optional bias). Return False if oneDNN is slow at it."""
        source, _, target = operands[:3]
        strides = _compute_element_strides(source.strides), _compute_element_strides(target.strides)
        planned = self._planned(kind, g, *strides, len(operands) > 3, last)
        if planned is None:
            return False
        alone, plain = self.library.run_single_threaded, [p.data_address(a) for a in operands]
        laid, reordered = plain, None
        if planned.weight_reorder is not None:
            laid = plain.copy()
            reordered, laid[1] = alone(planned.weight_reorder.run, plain[1])

        def run_piece(task: Task, offsets: tuple[int, ...], ready: bool) -> None:
            alone(task.run, [a + o for a, o in zip(laid if ready else plain, offsets, strict=True)])

        self._share(run_piece, planned.tasks)
        del reordered
        return True

    def _plan_pieces(
        self, kind: str, g: ConvShape, source: Strides, target: Strides, bias: bool, last: bool
    ) -> _ConvPlan | None:
        for by_images_alone in (False, True):
            try:
                cut = split_into_pieces(g, kind, by_images_alone)
                return self.library.run_single_threaded(self._make_tasks, kind, g, cut, source, target, bias, last)
            except SlowImplementation:
                continue
        return None

    def _make_tasks(
        self, kind: str, g: ConvShape, cut: list[Piece], source: Strides, target: Strides, bias: bool, last: bool
    ) -> _ConvPlan:
        per_group = g.channels // g.groups
        taps = math.prod(g.kernel)
        # Pieces of other images and rows have separate partial sums.
        sums = list(dict.fromkeys((piece.images, piece.target_rows) for piece in cut)) if kind == WEIGHTS else []
        # Weights are laid out once where every piece reads all of them.
        whole = kind != WEIGHTS and len(cut) > 1 and cut[0].filters == cut[-1].filters == (0, g.filters)
        whole = whole and cut[0].channels == cut[-1].channels
        tasks: list[_Item] = []
        for piece in cut:
            arguments = (kind, g, _normalize_piece(piece), source, target, bias, last)
            task, ready = self._task(*arguments, whole), whole
            if whole and tasks and not task.has_same_layout(tasks[0][0], 1):
                task, ready = self._task(*arguments, False), False
            row = (piece.filters[0] * per_group + (piece.channels[0] if g.groups == 1 else 0)) * taps
            offsets = [
                piece.images[0] * source[0] + piece.channels[0] * source[1] + piece.source_rows[0] * source[2],
                row + (sums.index((piece.images, piece.target_rows)) * g.filters * per_group * taps if sums else 0),
                piece.images[0] * target[0] + piece.filters[0] * target[1] + piece.target_rows[0] * target[2],
            ]
            if bias:
                offsets.append(piece.filters[0])
            tasks.append((task, tuple(_ITEMSIZE * o for o in offsets), ready))
        return _ConvPlan(tasks, tasks[0][0].make_weight_reorder(1) if whole else None, len(sums) or 1)

    def _make_task(
        self, kind: str, g: ConvShape, piece: Piece, source: Strides, target: Strides, bias: bool, last: bool,
        ready: bool,
    ) -> Task:  # fmt: skip
        """Return the task of a piece, which depends only on the lengths of its ranges."""
        library = self.library
        n, groups = piece.images[1], piece.groups
        channels, filters = piece.channels[1], piece.filters[1]
        per_group = g.channels // g.groups
        taps = [math.prod(g.kernel[i + 1 :]) for i in range(len(g.kernel))]
        inner = channels // groups
        shape: list[int] = [filters // groups, inner, *g.kernel]
        strides = [per_group * math.prod(g.kernel), math.prod(g.kernel), *taps]
        if g.groups > 1:
            shape, strides = [groups, *shape], [strides[0] * (filters // groups), *strides]
        shapes = (
            (n, channels, piece.source_rows[1], *g.size[1:]),
            tuple(shape),
            (n, filters, piece.target_rows[1], *g.out[1:]),
        )
        plain = [
            MemoryDesc(library, s, _compute_dense_strides(s, t))
            for s, t in zip(shapes, (source, tuple(strides), target), strict=True)
        ]
        free = [MemoryDesc(library, s) for s in shapes]
        extra = MemoryDesc(library, (filters,), (1,)) if bias else None
        primitive = self._choose_primitive(kind, g, piece, plain if last else free, free, extra)
        which = {
            FORWARD: (p.SOURCE, p.WEIGHTS, p.TARGET),
            DATA: (p.D_SOURCE, p.WEIGHTS, p.D_TARGET),
            WEIGHTS: (p.SOURCE, p.D_WEIGHTS, p.D_TARGET),
        }[kind]
        operands = [Operand(w, d, ready and i == 1) for i, (w, d) in enumerate(zip(which, plain, strict=True))]
        if extra is not None:
            operands.append(Operand(p.BIAS, extra))
        return Task(library, self._scratch, primitive, operands)

    def _choose_primitive(
        self, kind: str, g: ConvShape, piece: Piece, outer: list[MemoryDesc], free: list[MemoryDesc],
        bias: MemoryDesc | None,
    ) -> Primitive:  # fmt: skip
        """Return the primitive of a piece, in the layout of `outer` if that is fast, else in oneDNN's preferred one.

        Raises SlowImplementation if neither is fast.
        """
        geometry = [
            p.as_int64_array(v)
            for v in (g.stride, [d - 1 for d in g.dilation], (piece.low, *g.padding[1:]), (piece.high, *g.padding[1:]))
        ]
        for source, target in dict.fromkeys(((outer[0], outer[2]), (free[0], free[2]))):
            try:
                description = self._make_description(kind, source, free[1], target, bias, geometry)
            except OneDNNError:
                continue
            if p.is_fast(self.library, description):
                return Primitive(self.library, description)
            self.library.call("primitive_desc_destroy", description)
        raise SlowImplementation

    def _make_description(
        self, kind: str, source: MemoryDesc, weight: MemoryDesc, target: MemoryDesc, bias: MemoryDesc | None,
        geometry: list[Any],
    ) -> int:  # fmt: skip
        library, direct, training = self.library, 1, 64
        engine, attributes = library.engine, library.attributes
        s, w, t = source.handle, weight.handle, target.handle
        forward = library.make(
            "convolution_forward_primitive_desc_create",
            engine, training, direct, s, w, bias and bias.handle, t, *geometry, attributes,
        )  # fmt: skip
        if kind == FORWARD:
            return forward
        try:
            name = f"convolution_backward_{kind}_primitive_desc_create"
            middle = (s, w, None, t) if kind == WEIGHTS else (s, w, t)
            return library.make(name, engine, direct, *middle, *geometry, forward, attributes)
        finally:
            library.call("primitive_desc_destroy", forward)


def _empty(shape: tuple[int, ...], last: bool) -> np.ndarray:
    if not last:
        return np.empty(shape, np.float32)
    return np.moveaxis(np.empty((shape[0], *shape[2:], shape[1]), np.float32), -1, 1)


def _normalize_piece(piece: Piece) -> Piece:
    """Return the piece shifted to the origin, the key of its task."""
    images, source, target, low, high, channels, filters, groups = piece
    moved = [(0, b - a) for a, b in (images, source, target, channels, filters)]
    return Piece(moved[0], moved[1], moved[2], low, high, moved[3], moved[4], groups)


def _compute_dense_strides(shape: Sequence[int], strides: Strides) -> Strides:
    """Return strides without gaps for a single image, so that oneDNN may use its preferred layout."""
    if shape[0] != 1:
        return strides
    return (max(n * s for n, s in zip(shape[1:], strides[1:], strict=True)), *strides[1:])
