"""Softmax and log-softmax, forward and backward."""

from __future__ import annotations

from torchlite._dispatch.shapes import wrap_dim
from torchlite_backends.kernel_sources import softmax as texts

from ..core.array import Array, empty
from ..core.contiguous_copy import as_contiguous
from ..core.views import broadcast_view
from .row_launch import FLOATS, make_row_launch, raise_not_implemented, split_rows_along

_SOURCES = {
    "softmax": texts.SOFTMAX,
    "log_softmax": texts.LOG_SOFTMAX,
    "softmax_backward": texts.SOFTMAX_BACKWARD,
    "log_softmax_backward": texts.LOG_SOFTMAX_BACKWARD,
}


def _run(name: str, dim: int, *operands: Array) -> Array:
    """Run a kernel of this family along `dim` of arrays of one shape and kind."""
    x = operands[-1]
    device, shape, kind = x.device, x.shape, x.kind
    key = (name, kind, shape, dim)
    found = device.plans.get(key)
    if found is None:
        rows, n, inner = split_rows_along(shape or (1,), wrap_dim(dim, len(shape)))
        at = make_row_launch(device, kind, rows, n, inner)
        function = device.function(
            _SOURCES[name],
            name,
            "p" * (len(operands) + 1) + "iiii",
            at.widths,
            T=kind,
            RECOMPUTE=str(int(FLOATS[kind] != kind)),
            **at.macros,
        )
        found = device.plans[key] = function, at.global_size, at.local_size, (at.rows, n, inner, at.per)
    function, global_size, local_size, numbers = found
    out = empty(device, shape, kind)
    function(global_size, local_size, *[a if a.contiguous else as_contiguous(a) for a in operands], out, *numbers)
    return out


def _run_forward(name: str, x: Array, dim: int) -> Array:
    if x.kind not in FLOATS:
        raise_not_implemented(x, f"{name}_lastdim_kernel_impl")
    if not x.size:
        wrap_dim(dim, len(x.shape))
        return empty(x.device, x.shape, x.kind)
    return _run(name, dim, x)


def _run_backward(name: str, grad: Array, out: Array, dim: int) -> Array:
    if not out.size:
        return empty(out.device, grad.shape, out.kind)
    return _run(name, dim, broadcast_view(grad, out.shape), out)


def _softmax(input, dim):
    return _run_forward("softmax", input, dim)


def _log_softmax(input, dim):
    return _run_forward("log_softmax", input, dim)


def _softmax_backward(grad, out, dim):
    return _run_backward("softmax_backward", grad, out, dim)


def _log_softmax_backward(grad, out, dim):
    return _run_backward("log_softmax_backward", grad, out, dim)
