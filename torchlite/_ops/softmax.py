"""softmax, log_softmax and softmin, with backward records that a backend may fuse."""

from torchlite._dispatch import composite, layouts, op
from torchlite._dispatch.shapes import wrap_dim


def _shifted(F, input, dim):
    """``input`` minus its largest element along ``dim``: exp of it can not overflow."""
    return F.sub(input, F.amax(input, dim, True))


def _softmax(F, input, dim):
    if input.ndim == 0:
        return F.ones_like(input)
    if input.shape[dim] == 0:
        return input
    weights = F.exp(_shifted(F, input, dim))
    return F.div(weights, F.sum(weights, dim, True))


def _softmax_backward(F, grad, out, dim):
    if out.ndim == 0:
        return F.zeros_like(grad)
    weighted = F.mul(grad, out)
    return F.sub(weighted, F.mul(out, F.sum(weighted, dim, True)))


def _log_softmax(F, input, dim):
    if input.ndim == 0:
        return F.zeros_like(input)
    if input.shape[dim] == 0:
        return input
    shifted = _shifted(F, input, dim)
    return F.sub(shifted, F.log(F.sum(F.exp(shifted), dim, True)))


def _log_softmax_backward(F, grad, out, dim):
    if out.ndim == 0:
        return F.zeros_like(grad)
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
    meta=_meta,
    vjp={"input": lambda F, g, out, dim: F._softmax_backward(g, out, dim)},
    layout=layouts.contiguous,
)
op(
    "_log_softmax(Tensor input, dim)",
    where="",
    composite=_log_softmax,
    meta=_meta,
    vjp={"input": lambda F, g, out, dim: F._log_softmax_backward(g, out, dim)},
    layout=layouts.contiguous,
)


@composite("softmax(Tensor input, dim, dtype=None)", where="torch Tensor", alias="special.softmax")
def softmax(F, input, dim, dtype):
    """``exp(input)`` divided by its sum along ``dim``; shape and dtype of ``input``, or ``dtype`` (the input is cast to
    it first).

    >>> torch.softmax(torch.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    return F._softmax(input if dtype is None else F.to(input, dtype), dim)


@composite("log_softmax(Tensor input, dim, dtype=None)", where="torch Tensor", alias="special.log_softmax")
def log_softmax(F, input, dim, dtype):
    """The logarithm of ``softmax(input, dim)``, computed without underflow."""
    return F._log_softmax(input if dtype is None else F.to(input, dtype), dim)


@composite("_safe_softmax(Tensor input, dim, dtype=None)", where="")
def _safe_softmax(F, input, dim, dtype):
    """``softmax`` that gives zeros where a whole row is minus infinity."""
    out = F.softmax(input, dim, dtype)
    return F.where(F.amax(input.detach(), dim, True) == -float("inf"), F.zeros_like(out), out)
