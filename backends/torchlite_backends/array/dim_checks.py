"""Dimensions and index checks that several kernel files share. Nothing here knows an array library."""

from torchlite._dispatch.shapes import wrap_dim


def wrap_dims(dim, ndim):
    """A tuple of dimensions counted from the front; None and () mean all. RuntimeError for a repeated one."""
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
    """IndexError when there is nothing to choose from along `dim`."""
    if x.ndim and x.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {wrap_dim(dim, x.ndim)} to have non-zero size.")


def check_bounds(index, size, dim, error=RuntimeError, prefix=""):
    """`index` lies within 0 .. size-1. An array of indices is looked at only twice (its least and its greatest)."""
    if index.size == 0:
        return
    least, greatest = int(index.min()), int(index.max())
    if least < 0 or greatest >= size:
        raise error(
            f"{prefix}index {least if least < 0 else greatest} is out of bounds for dimension {dim} with size {size}"
        )


def prod(shape):
    """How many elements a shape holds."""
    count = 1
    for n in shape:
        count *= n
    return count
