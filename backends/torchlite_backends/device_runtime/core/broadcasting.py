"""Broadcast shapes and strides, and collapse strided operands into the fewest common dimensions."""

from __future__ import annotations


def broadcast_shape(shapes) -> tuple[int, ...]:
    """Return the broadcast shape. RuntimeError with PyTorch's wording."""
    ndim = max(map(len, shapes))
    out = [1] * ndim
    for shape in shapes:
        lead = ndim - len(shape)
        for d, n in enumerate(shape, lead):
            if n != 1 and out[d] != n:
                if out[d] != 1:
                    raise RuntimeError(
                        f"The size of tensor a ({out[d]}) must match the size of tensor b ({n}) at non-singleton "
                        f"dimension {d}"
                    )
                out[d] = n
    return tuple(out)


def broadcast_steps(shape, steps, to) -> tuple[int, ...]:
    """Return an operand's strides in the broadcast shape `to`: 0 along repeated dimensions."""
    lead = len(to) - len(shape)
    return (0,) * lead + tuple([s if n == m else 0 for n, s, m in zip(shape, steps, to[lead:], strict=True)])


def collapse_dims(shape, *operands) -> tuple[list[int], list[list[int]]]:
    """Drop dimensions of length 1 and merge neighbours that all operands' strides allow.

    Returns the shape and each operand's strides.
    """
    sizes: list[int] = []
    merged: list[list[int]] = [[] for _ in operands]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        if sizes and all(m[-1] == steps[d] * n for m, steps in zip(merged, operands, strict=True)):
            sizes[-1] *= n
            for m, steps in zip(merged, operands, strict=True):
                m[-1] = steps[d]
        else:
            sizes.append(n)
            for m, steps in zip(merged, operands, strict=True):
                m.append(steps[d])
    if not sizes:
        return [1], [[0] for _ in operands]
    return sizes, merged


def find_dense_order(shape, steps) -> tuple[int, ...] | None:
    """Return the dimensions from outermost to innermost if the elements fill a block without gaps, else None."""
    order = sorted(range(len(shape)), key=lambda d: (-steps[d], d))
    expected = 1
    for d in reversed(order):
        if shape[d] == 1:
            continue
        if steps[d] != expected:
            return None
        expected *= shape[d]
    return tuple(order)
