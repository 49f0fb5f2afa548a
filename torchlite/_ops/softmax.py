"""softmax, log_softmax and softmin, with backward records that a backend may fuse."""

from torchlite._dispatch import Out, Overlap, composite, memory_layout, op
from torchlite._dispatch.shapes import wrap_dim
from torchlite._types.dtypes import bool_


def _subtract_max(F, input, dim):
    """``input`` minus its largest element along ``dim``: exp of it can not overflow."""
    return F.sub(input, F.amax(input, dim, True))


def _softmax(F, input, dim):
    if input.ndim == 0:
        return F.reshape(F._softmax(F.reshape(input, (1,)), 0), ())
    if input.shape[dim] == 0:
        return input
    weights = F.exp(_subtract_max(F, input, dim))
    return F.div(weights, F.sum(weights, dim, True))


def _softmax_backward(F, grad, out, dim):
    if out.ndim == 0:
        return F.mul(F.sub(grad, F.mul(grad, out)), out)
    weighted = F.mul(grad, out)
    return F.sub(weighted, F.mul(out, F.sum(weighted, dim, True)))


def _log_softmax(F, input, dim):
    if input.ndim == 0:
        return F.reshape(F._log_softmax(F.reshape(input, (1,)), 0), ())
    if input.shape[dim] == 0:
        return input
    shifted = _subtract_max(F, input, dim)
    return F.sub(shifted, F.log(F.sum(F.exp(shifted), dim, True)))


def _log_softmax_backward(F, grad, out, dim):
    if out.ndim == 0:
        return F.sub(grad, F.mul(F.exp(out), grad))
    return F.sub(grad, F.mul(F.exp(out), F.sum(grad, dim, True)))


def _meta(input, dim):
    wrap_dim(dim, input.ndim)
    return input.shape, input.dtype


op("_softmax_backward(Tensor grad, Tensor out, dim)", where="", composite=_softmax_backward)
op("_log_softmax_backward(Tensor grad, Tensor out, dim)", where="", composite=_log_softmax_backward)
op(
    "_softmax(Tensor input, dim)",
    where="",
    composite=_softmax,
    shape_fn=_meta,
    vjp={"input": lambda F, g, out, dim: F._softmax_backward(g, out, dim)},
    layout=memory_layout.contiguous,
)
op(
    "_log_softmax(Tensor input, dim)",
    where="",
    composite=_log_softmax,
    shape_fn=_meta,
    vjp={"input": lambda F, g, out, dim: F._log_softmax_backward(g, out, dim)},
    layout=memory_layout.contiguous,
)


@composite(
    "softmax(Tensor input, dim, dtype=None)",
    where="torch Tensor",
    alias="special.softmax",
    out=Out("same"),
    overlap=Overlap(operands="partial"),
)
def softmax(F, input, dim, dtype):
    r"""Scales the elements along a dimension to positive values with sum 1.

    .. math::

        y_i = \frac{\exp(x_i)}{\sum_j \exp(x_j)}

    Args:
        dtype: The dtype to which the input is converted first. Default: the input's.

    Example:
        >>> torch.softmax(torch.tensor([0.0, 0.0]), 0)
        tensor([0.5000, 0.5000])

    See also:
        `torch.nn.functional.softmax`, `torch.log_softmax`.
    """
    return F._softmax(input if dtype is None else F.to(input, dtype), dim)


@composite(
    "log_softmax(Tensor input, dim, dtype=None)",
    where="torch Tensor",
    alias="special.log_softmax",
    out=Out("same"),
    overlap=Overlap(operands="partial"),
)
def log_softmax(F, input, dim, dtype):
    r"""Computes the logarithm of the softmax along a dimension, without overflow.

    .. math::

        y_i = x_i - \log \sum_j \exp(x_j)

    Args:
        dtype: The dtype to which the input is converted first. Default: the input's.

    Example:
        >>> torch.log_softmax(torch.tensor([0.0, 0.0]), 0)
        tensor([-0.6931, -0.6931])

    See also:
        `torch.softmax`.
    """
    return F._log_softmax(input if dtype is None else F.to(input, dtype), dim)


@composite("_safe_softmax(Tensor input, dim, dtype=None)", where="", node_name="SafeSoftmaxBackward0(input)")
def _safe_softmax(F, input, dim, dtype):
    """``softmax`` that returns zeros for rows that are minus infinity throughout."""
    empty = F.amax(input.detach(), dim, True) == -float("inf")
    out = F.softmax(F.masked_fill(input, empty, 0), dim, dtype)  # minus infinities alone would have NaN as gradient
    return F.masked_fill(out, empty, 0)


def _broadcast_mask(input, mask, mask_type):
    """The mask in a shape that broadcasts. 0: (L, L), of all heads; 1: (B, L), of keys; 2: the scores' shape. Of the
    first two types are only matrices, for scores of four dimensions.
    """
    if mask.dtype is not bool_:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask_type in (0, 1) and mask.ndim == 2 and input.ndim == 4:
        length, shape = input.shape[2], "(L, L)" if mask_type == 0 else "(B, L)"
        if tuple(mask.shape) != (length if mask_type == 0 else input.shape[0], length):
            raise RuntimeError(f"For mask_type == {mask_type} mask shape should be {shape}")
        return mask if mask_type == 0 else mask.reshape((input.shape[0], 1, 1, length))
    if tuple(mask.shape) != tuple(input.shape):
        raise RuntimeError("For mask_type == 2 mask shape should match input shape")
    return mask


@composite(
    "_masked_softmax(Tensor input, Tensor mask, dim=None, mask_type=None)",
    where="torch",
    node_name="MaskedSoftmaxBackward0(input)",
)
def _masked_softmax(F, input, mask, dim, mask_type):
    """``softmax`` of what ``mask`` does not leave out (where it is True); NaN where all is left out.

    >>> torch._masked_softmax(torch.tensor([1., 1., 1.]), torch.tensor([False, True, False]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    mask = _broadcast_mask(input, mask, mask_type)
    if input.dtype.category != 2:
        raise NotImplementedError(f"\"masked_softmax\" not implemented for '{input.dtype.scalar_name}'")
    return F.softmax(F.masked_fill(input, mask, -float("inf")), -1 if dim is None else dim)
