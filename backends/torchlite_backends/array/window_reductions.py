"""Extremes and sums over windows along one axis, in a number of NumPy calls that does not grow with the window.

A window of a few elements is combined slice by slice. Windows that overlap little are a strided view, which one call
reduces. Others are combined by doubling: a window of 2w elements is two windows of w, so that k elements take log2(k)
calls, whatever the stride.
"""

from __future__ import annotations

import numpy as xp

from .storage import strided_view

# Elements of a window that are combined slice by slice.
_FEW = 4


def index_along_axis(ndim, axis, where):
    """Return the index that applies `where` to one axis."""
    return (slice(None),) * (ndim - 1 if axis < 0 else axis) + (where,)


def _shifted(x, axis, start, count, step=1):
    """Return `count` elements along an axis, from `start` on."""
    return x[index_along_axis(x.ndim, axis, slice(start, start + (count - 1) * step + 1, step))]


def _windows_overlap_little(kernel, stride, dilation):
    return kernel > _FEW and (stride * 2 >= kernel or dilation >= stride * kernel)


def view_windows(x, axis, kernel, stride, dilation, out):
    """Return windows as a view, with the axes (out, kernel) in place of one."""
    step = x.strides[axis]
    return strided_view(
        x,
        (*x.shape[:axis], out, kernel, *x.shape[axis + 1 :]),
        (*x.strides[:axis], step * stride, step * dilation, *x.strides[axis + 1 :]),
    )


def reduce_windows(x, axis, combine, kernel, stride, dilation, out):
    """Reduce windows along one axis by `maximum` or `add`."""
    if not x.size:
        return xp.empty((*x.shape[:axis], out, *x.shape[axis + 1 :]), x.dtype)
    if kernel == 1:
        return xp.ascontiguousarray(_shifted(x, axis, 0, out, stride))
    if _windows_overlap_little(kernel, stride, dilation):
        windows = view_windows(x, axis, kernel, stride, dilation, out)
        return combine.reduce(windows, axis + 1, x.dtype)
    if kernel <= _FEW:
        result = _combined(combine, *(_shifted(x, axis, j * dilation, out, stride) for j in (0, 1)))
        for j in range(2, kernel):
            combine(result, _shifted(x, axis, j * dilation, out, stride), out=result)
        return result
    reach = (out - 1) * stride + 1
    return _double_windows(x, axis, combine, kernel, dilation, reach, stride)


def _combined(combine, a, b):
    result = combine(a, b)
    return result if result.dtype == a.dtype else result.astype(a.dtype)


def _double_windows(x, axis, combine, kernel, dilation, reach, stride):
    """Reduce windows at `reach` places by doubling, and return each `stride`-th: the binary digits of `kernel` say
    which widths make up a window.
    """
    result, start, wide, width = None, 0, x, 1
    while True:
        if kernel & width:
            piece = _shifted(wide, axis, start * dilation, -(-reach // stride), stride)
            result = piece if result is None else _combined(combine, result, piece)
            start += width
        if start == kernel:
            return xp.ascontiguousarray(result)
        count = wide.shape[axis] - width * dilation
        wide = _combined(combine, _shifted(wide, axis, 0, count), _shifted(wide, axis, width * dilation, count))
        width *= 2


def choose_later(best, value):
    """True where a later element replaces the largest so far, as in PyTorch: the last NaN, else the first largest."""
    return (value > best) | (value != value)


def argmax_last_axis(windows):
    """Return the index of each row's first largest element, or of its last NaN."""
    if 1 < windows.shape[-1] <= 2 * _FEW and windows.ndim > 1:
        best, index = windows[..., 0], xp.zeros(windows.shape[:-1], xp.int64)
        for j in range(1, windows.shape[-1]):
            value = windows[..., j]
            better = choose_later(best, value)
            index[better] = j
            best = xp.where(better, value, best)
        return index
    index = xp.argmax(windows, -1)
    if windows.dtype.kind in "fV":
        best = xp.take_along_axis(windows, index[..., None], -1)[..., 0]
        nan = best != best
        if nan.any():
            rows = windows[nan]
            index[nan] = rows.shape[-1] - 1 - xp.argmax((rows != rows)[..., ::-1], -1)
    return index


def argmax_windows(x, axis, kernel, stride, dilation, out):
    """Return the largest element of each window along one axis, and its place along the axis."""
    if not x.size:
        shape = (*x.shape[:axis], out, *x.shape[axis + 1 :])
        return xp.empty(shape, x.dtype), xp.empty(shape, xp.int64)
    starts = (xp.arange(out) * stride).reshape(-1, *(1,) * (x.ndim - 1 - axis))
    if _windows_overlap_little(kernel, stride, dilation):
        windows = xp.moveaxis(view_windows(x, axis, kernel, stride, dilation, out), axis + 1, -1)
        place = argmax_last_axis(windows) * dilation + starts
        return xp.take_along_axis(x, place, axis), place
    if kernel <= _FEW:
        best = xp.ascontiguousarray(_shifted(x, axis, 0, out, stride))
        place = xp.broadcast_to(starts, best.shape)
        for j in range(1, kernel):
            value = _shifted(x, axis, j * dilation, out, stride)
            better = choose_later(best, value)
            best, place = xp.where(better, value, best), xp.where(better, starts + j * dilation, place)
        return best, place
    # Two windows of half the width and more, which may overlap.
    wide, width = x, 1
    place = xp.broadcast_to(xp.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - 1 - axis)), x.shape)
    while width < kernel:
        step = min(width, kernel - width)
        count = wide.shape[axis] - step * dilation
        first, second = (_shifted(wide, axis, j * dilation, count) for j in (0, step))
        better = choose_later(first, second)
        places = (_shifted(place, axis, j * dilation, count) for j in (step, 0))
        wide, place = xp.where(better, second, first), xp.where(better, *places)
        width += step
    return (xp.ascontiguousarray(_shifted(a, axis, 0, out, stride)) for a in (wide, place))


def argmax_ranges(x, axis, start, end):
    """Return the largest element of the ranges [start, end) along one axis, and its place along the axis."""
    count, longest = len(start), int((end - start).max())
    rows = x.shape[axis + 1 :]
    if count <= longest:
        place = xp.empty((*x.shape[:axis], count, *rows), xp.int64)
        for i in range(count):
            piece = x[index_along_axis(x.ndim, axis, slice(int(start[i]), int(end[i])))]
            place[index_along_axis(x.ndim, axis, i)] = argmax_last_axis(xp.moveaxis(piece, axis, -1)) + int(start[i])
        return xp.take_along_axis(x, place, axis), place
    places = xp.minimum(start[:, None] + xp.arange(longest), end[:, None] - 1)
    gathered = xp.take(x, places.reshape(-1), axis).reshape(*x.shape[:axis], count, longest, *rows)
    tap = argmax_last_axis(xp.moveaxis(gathered, axis + 1, -1))
    place = places[xp.arange(count).reshape(-1, *(1,) * len(rows)), tap]
    return xp.take_along_axis(x, place, axis), place


def sum_ranges(x, axis, start, end):
    """Return the sums over ranges [start, end) along one axis, whose ends increase."""
    count, longest = len(start), int((end - start).max()) if len(start) else 0
    result = xp.zeros((*x.shape[:axis], count, *x.shape[axis + 1 :]), x.dtype)
    if count <= longest:
        for i in range(count):
            piece = x[index_along_axis(x.ndim, axis, slice(int(start[i]), int(end[i])))]
            result[index_along_axis(x.ndim, axis, i)] = xp.sum(piece, axis, x.dtype)
        return result
    for tap in range(longest):
        inside = xp.nonzero(start + tap < end)[0]
        result[index_along_axis(x.ndim, axis, inside)] += xp.take(x, start[inside] + tap, axis)
    return result


def add_to_ranges(g, axis, start, end, n):
    """Return zeros with `n` places along one axis, with each element of `g` added to a range [start, end)."""
    count, longest = len(start), int((end - start).max())
    if n < count:  # several ranges begin at one place: each place sums the ranges that have it
        places = xp.arange(n)
        first, last = xp.searchsorted(end, places, side="right"), xp.searchsorted(start, places, side="right")
        return sum_ranges(g, axis, first, last)
    result = xp.zeros((*g.shape[:axis], n, *g.shape[axis + 1 :]), g.dtype)
    if count <= longest:
        for i in range(count):
            piece = g[index_along_axis(g.ndim, axis, slice(i, i + 1))]
            result[index_along_axis(g.ndim, axis, slice(int(start[i]), int(end[i])))] += piece
        return result
    for tap in range(longest):
        inside = xp.nonzero(start + tap < end)[0]
        result[index_along_axis(g.ndim, axis, start[inside] + tap)] += xp.take(g, inside, axis)
    return result
