"""Checks of dimensions and indices, shared by kernels; independent of any array library."""

from torchlite._dispatch.shapes import wrap_dim


def wrap_dims(dim, ndim):
    """Normalise dimensions to a tuple counted from the front; None and () mean all. RuntimeError for a repeated one."""
    if dim is None:
        return tuple(range(ndim))
    if not isinstance(dim, (tuple, list)):
        place = wrap_dim(dim, ndim)
        return (place,) if ndim else ()
    dims = tuple(wrap_dim(d, ndim) for d in dim)
    if len(set(dims)) != len(dims):
        twice = next(d for d in dims if dims.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    if not ndim:
        return ()
    return dims or tuple(range(ndim))


def check_not_empty(name, x, dim):
    """Raise IndexError for a reduction without an identity along an empty `dim`."""
    if x.ndim and x.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {wrap_dim(dim, x.ndim)} to have non-zero size.")


def check_bounds(index, size, dim, error=RuntimeError, prefix=""):
    """Raise `error` unless `index` lies within 0 .. size-1. An array of indices is reduced to its minimum and
    maximum.
    """
    if index.size == 0:
        return
    least, greatest = int(index.min()), int(index.max())
    if least < 0 or greatest >= size:
        raise error(
            f"{prefix}index {least if least < 0 else greatest} is out of bounds for dimension {dim} with size {size}"
        )


def prod(shape):
    """Return the number of elements of a shape."""
    count = 1
    for n in shape:
        count *= n
    return count
