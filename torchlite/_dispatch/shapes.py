"""Shape functions with PyTorch's error messages."""

from __future__ import annotations

import operator


def wrap_dim(dim: int, ndim: int) -> int:
    """The non-negative index of a dimension. IndexError if it is out of range."""
    low = -max(ndim, 1)
    try:
        dim = operator.index(dim)
    except TypeError:
        raise TypeError(f"'dim' must be int, not {type(dim).__name__}") from None
    if not low <= dim < -low:
        raise IndexError(f"Dimension out of range (expected to be in range of [{low}, {-low - 1}], but got {dim})")
    return dim + max(ndim, 1) if dim < 0 else dim


def wrap_dims(dims, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the front; None or () means all. RuntimeError for a repeated one."""
    if dims is None or (not isinstance(dims, int) and not hasattr(dims, "__index__") and len(dims) == 0):
        return tuple(range(ndim))
    if hasattr(dims, "__index__"):
        return (wrap_dim(dims, ndim),)
    wrapped = tuple(wrap_dim(d, ndim) for d in dims)
    if len(set(wrapped)) != len(wrapped):
        repeated = next(d for d in wrapped if wrapped.count(d) > 1)
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    return wrapped


def broadcast_shapes(*shapes) -> tuple[int, ...]:
    """The broadcast shape. RuntimeError if the shapes do not broadcast."""
    result: tuple[int, ...] = ()
    for shape in shapes:
        shape = tuple(shape)
        short, long = sorted((result, shape), key=len)
        padded = (1,) * (len(long) - len(short)) + tuple(short)
        for position in reversed(range(len(long))):
            a, b = padded[position], long[position]
            if a != b and a != 1 and b != 1:
                first, second = (a, b) if short is result else (b, a)
                raise RuntimeError(
                    f"The size of tensor a ({first}) must match the size of tensor b ({second}) at non-singleton "
                    f"dimension {position}"
                )
        result = tuple([b if a == 1 else a for a, b in zip(padded, long, strict=True)])
    return result


def reduced_shape(shape, dim, keepdim: bool = False) -> tuple[int, ...]:
    """The shape after a reduction over `dim` (an int, several, or None for all)."""
    dims = set(wrap_dims(dim, len(shape)))
    if keepdim:
        return tuple(1 if d in dims else n for d, n in enumerate(shape))
    return tuple(n for d, n in enumerate(shape) if d not in dims)


def infer_size(shape, numel: int) -> tuple[int, ...]:
    """`shape` with its -1 filled in for `numel` elements. RuntimeError when that cannot be."""
    shape = tuple(map(operator.index, shape))
    known, unknown = 1, None
    for d, n in enumerate(shape):
        if n >= 0:
            known *= n
        elif n < -1:
            raise RuntimeError(f"invalid shape dimension {n} at index {d} of shape {list(shape)}")
        elif unknown is not None:
            raise RuntimeError("only one dimension can be inferred")
        else:
            unknown = d
    if unknown is None:
        if known == numel:
            return shape
    elif known:
        if numel % known == 0:
            return (*shape[:unknown], numel // known, *shape[unknown + 1 :])
    elif numel == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension "
            "size -1 can be any value and is ambiguous"
        )
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")


def tril_size(rows: int, columns: int, offset: int) -> int:
    """Number of elements of a matrix lie on and below its diagonal `offset`.

    >>> tril_size(3, 3, 0), tril_size(3, 3, -1), tril_size(2, 4, 1)
    (6, 3, 5)
    """
    first, full = min(max(-offset, 0), rows), min(max(columns - offset, 0), rows)  # rows with one, with all elements
    full = max(full, first)
    return (full - first) * (first + full + 2 * offset + 1) // 2 + (rows - full) * columns


def contiguous_strides(shape) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def memory_format_strides(shape, name: str) -> tuple[int, ...]:
    """Strides in elements of the memory format of that name: contiguous_format, channels_last or channels_last_3d."""
    shape = tuple(shape)
    if name == "contiguous_format":
        return contiguous_strides(shape)
    wanted = 5 if name.endswith("3d") else 4
    if len(shape) != wanted:
        raise RuntimeError(f"required rank {wanted} tensor to use {name} format")
    order = (0, *range(2, wanted), 1)
    steps = contiguous_strides([shape[d] for d in order])
    return tuple([steps[order.index(d)] for d in range(wanted)])


def infer_expand_geometry(shape, steps, size) -> tuple[list[int], list[int]]:
    """The shape and the steps (of any unit) of elements that are repeated to a size; -1 keeps a length. The errors of
    PyTorch's `expand`.

    >>> infer_expand_geometry((3, 1), (1, 1), (2, -1, 4))
    ([2, 3, 4], [0, 1, 0])
    """
    lead = len(size) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand(torch.FloatTensor{{{list(shape)}}}, size={list(size)}): the number of sizes provided "
            f"({len(size)}) must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    new, new_steps = [*size], [0] * len(size)
    for d in reversed(range(lead, len(size))):
        n, step, target = shape[d - lead], steps[d - lead], new[d]
        if target == n:  # it stays, so that the array's shape refuses a float
            new_steps[d] = step
        elif target == -1:
            new[d], new_steps[d] = n, step
        elif n != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({target}) must match the existing size ({n}) at non-singleton "
                f"dimension {d}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
            )
    if -1 in new:
        raise RuntimeError(
            f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {new.index(-1)}"
        )
    return new, new_steps
