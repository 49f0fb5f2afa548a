"""Building blocks of derivative formulas of several op families. They call only `F`."""

from torchlite._dispatch.backend import owner_of
from torchlite._dispatch.op_record import REGISTRY


def copy_if_aliased(F, result, source):
    """The result of an op that is not a view, copied if it shares memory with `source`."""
    return F.clone(result) if owner_of(result._tl_array) is owner_of(source._tl_array) else result


def zero_gradient(F, g):
    """The gradient of a function that is constant between its steps."""
    return F._zeros_like(g)


def keep_dims(F, reduced, shape, dim, keepdim):
    """Reinsert the reduced dimensions of a reduction's result (or gradient) at size 1. `dim` None or () means all."""
    if keepdim or not shape:
        return reduced
    ndim = len(shape)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return F.reshape(reduced, (1,) * ndim)
    dims = {d % ndim for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}
    return F.reshape(reduced, tuple(1 if d in dims else n for d, n in enumerate(shape)))


def to_chosen(F, g, index, shape, dim, keepdim=True):
    """The gradient of picking the elements `index` along `dim` from an array of `shape`, each at most once."""
    if not shape:
        return F.reshape(g, ())
    if not keepdim:
        g, index = F.unsqueeze(g, dim), F.unsqueeze(index, dim)
    return F.scatter(F._new_zeros(g, shape), dim, index, g)


def share_gradient_evenly(F, g, input, out):
    """The gradient of an extreme or median of all elements: shared by all elements equal to it."""
    chosen = F.logical_or(F.eq(input, out), F.logical_and(F.isnan(input), F.isnan(out)))
    mask = F.to(chosen, F.dtype_of(g))
    return F.mul(mask, F.div(g, F.sum(mask)))


def count_of(shape, dim):
    """Number of elements that a reduction over `dim` combines."""
    count = 1
    dims = (
        range(len(shape))
        if dim is None or (isinstance(dim, (tuple, list)) and not dim)
        else dim
        if isinstance(dim, (tuple, list))
        else (dim,)
    )
    for d in dims:
        count *= shape[d] if shape else 1
    return count


def to_named_tuple(name, values):
    """`values` as the named tuple of the op `name`, for composites that only sometimes return one."""
    return REGISTRY[name].result_type(tuple(values))


def shift_towards_end(F, x, dim, fill):
    """`x` shifted by one towards the end along `dim`; `fill` enters at the front."""
    size = x.shape[dim]
    head = F._full_like(F._slice(x, dim, 0, 1, 1), fill)
    return F.cat([head, F._slice(x, dim, 0, size - 1, 1)], dim)


def make_not_implemented_formula(op_name, argument=""):
    """A formula that raises PyTorch's error for a derivative that is not implemented."""
    where = f"{op_name}: {argument}" if argument else op_name

    def raise_not_implemented(F, g):
        raise NotImplementedError(f"the derivative for '{where}' is not implemented.")

    return raise_not_implemented


def make_missing_derivative_formula(op_name):
    """A formula for an op that PyTorch's table of derivatives lacks: its result requires a gradient all the same, and
    backward is an error.
    """
    where = op_name if op_name[-1] == "_" else f"aten::{op_name}"

    def raise_missing_derivative(F, g):
        raise RuntimeError(f"derivative for {where} is not implemented")

    return raise_missing_derivative
