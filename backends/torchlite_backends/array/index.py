"""Advanced indexing: read, write and accumulate by index arrays."""

from __future__ import annotations

import math
from typing import Any

xp: Any = None


def _slice_index(input, index):
    out = input[index]
    return out if out.__class__ is xp.ndarray else input[(*index, ...)]


def _slice_index_backward(input, shape, index):
    out = xp.zeros(shape, dtype=input.dtype)
    out[index] = input
    return out


def _index(input, index):
    try:
        return input[index]
    except IndexError as error:
        raise _make_index_error(input, index, error) from None


def _make_index_error(input, index, error):
    """Return PyTorch's error for an advanced index that does not fit."""
    axis, shapes = 0, []
    for item in index:
        if not hasattr(item, "dtype"):
            axis += 1
            continue
        if item.dtype.kind == "b":
            shapes += [[int(xp.count_nonzero(item))]] * item.ndim  # PyTorch indexes with the places of the mask
            if item.shape != input.shape[axis : axis + item.ndim]:
                at = next(
                    (d for d in range(item.ndim) if axis + d >= input.ndim or item.shape[d] != input.shape[axis + d]), 0
                )
                return IndexError(
                    f"The shape of the mask {list(item.shape)} at index {at} does not match the shape of the indexed "
                    f"tensor {list(input.shape)} at index {axis + at}"
                )
            axis += item.ndim
            continue
        shapes.append(list(item.shape))
        size = input.shape[axis] if axis < input.ndim else 0
        wrong = item[(item < -size) | (item >= size)]
        if wrong.size:
            return IndexError(
                f"index {int(wrong.reshape(-1)[0])} is out of bounds for dimension {axis} with size {size}"
            )
        axis += 1
    if "broadcast" in str(error):
        return IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join(map(str, shapes))
        )
    return error


def _index_backward(input, shape, index):
    out = xp.zeros(shape, dtype=input.dtype)
    accumulate_at(out, index, input)
    return out


def add_rows(out, rows, values):
    """Add values[i] to out[rows[i]] for every i in order; `out` is contiguous.

    Short rows use flat indices, long ones are added one by one, others in rounds of distinct rows.
    """
    count, inner = values.shape
    if not values.size:
        return
    if inner == 1:
        xp.add.at(out.reshape(-1), rows, values.reshape(-1))
    elif inner >= 512 and count <= 65536:
        for row, value in zip(rows.tolist(), values, strict=True):
            target = out[row]
            target += value
    elif inner < 128 or not _add_rows_by_rank(out, rows, values):
        places = rows[:, None] * inner + xp.arange(inner)
        xp.add.at(out.reshape(-1), places.reshape(-1), values.reshape(-1))


def _add_rows_by_rank(out, rows, values):
    """Add in rounds: round r adds the (r+1)th value of every row, so no round has a row twice.

    Return False, with nothing written, if that would take too many rounds.
    """
    count = rows.size
    order = rows.argsort(kind="stable")
    ranked = rows[order]
    first = xp.ones(count, dtype=bool)
    first[1:] = ranked[1:] != ranked[:-1]
    place = xp.arange(count)
    turn = place - xp.maximum.accumulate(xp.where(first, place, 0))
    rounds = xp.bincount(turn).tolist()
    if len(rounds) * 16 > count:
        return False
    by_turn, start = turn.argsort(kind="stable"), 0
    for size in rounds:
        chosen = by_turn[start : start + size]
        out[ranked[chosen]] += values[order[chosen]]
        start += size
    return True


def accumulate_at(out, index, values):
    """Accumulate: out[index] += values, with repeated indices. Flat indices take the fast path of `add.at`."""
    if not len(index):
        if values.ndim > out.ndim:
            raise RuntimeError(
                f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
                f"shape {list(out.shape)}"
            )
        out += values
    elif len(index) == 1 and hasattr(index[0], "dtype") and index[0].dtype.kind == "b":
        out[index] += values
    elif out.flags.c_contiguous and all(hasattr(i, "dtype") and i.dtype.kind != "b" for i in index):
        rows = 0
        for axis, item in enumerate(index):
            rows = rows * out.shape[axis] + xp.where(item < 0, item + out.shape[axis], item)
        inner = math.prod(out.shape[len(index) :])
        values = xp.broadcast_to(values, rows.shape + out.shape[len(index) :])
        add_rows(
            out.reshape(math.prod(out.shape[: len(index)]), inner), rows.reshape(-1), values.reshape(rows.size, inner)
        )
    else:
        xp.add.at(out, index, values)


def _setitem(input, index, value):
    out = input.copy()
    _setitem_(out, index, value)
    return out


def _setitem_(input, index, value):
    try:
        if getattr(value, "ndim", 0) > 0 and value.shape[0] == 1:  # for others indexing would copy data for the shape
            target = input[index].shape
            while value.ndim > len(target) and value.shape[0] == 1:
                value = value[0]
        input[index] = value
    except IndexError as error:
        raise _make_index_error(input, index, error) from None
    except (ValueError, TypeError) as error:  # NumPy raises a TypeError for a value of many dimensions under a mask
        if not input.flags.writeable:
            raise RuntimeError(f"the tensor lies in memory of NumPy that may not be written: {error}") from None
        raise RuntimeError(
            broadcast_error(list(input[index].shape), list(value.shape), any(hasattr(i, "dtype") for i in index))
        ) from None


def broadcast_error(target, shape, advanced):
    if advanced:
        return f"shape mismatch: value tensor of shape {shape} cannot be broadcast to indexing result of shape {target}"
    lead = len(target) - len(shape)
    if lead < 0:
        return (
            f"expand(torch.FloatTensor{{{shape}}}, size={target}): the number of sizes provided ({len(target)}) must "
            f"be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    at = next(d for d in reversed(range(len(shape))) if shape[d] not in (1, target[lead + d]))
    return (
        f"The expanded size of the tensor ({target[lead + at]}) must match the existing size ({shape[at]}) at "
        f"non-singleton dimension {lead + at}.  Target sizes: {target}.  Tensor sizes: {shape}"
    )
