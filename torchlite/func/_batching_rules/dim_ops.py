"""Batching rules of ops along dimensions: reductions, scans, sorting, FFT. The batch dimension is first, and dimension
arguments shift by one.
"""

from __future__ import annotations

from ..._dispatch import F
from .._batched_tensor import batch_dim_first
from .rule_helpers import flatten_examples, map_outputs, rule, run_below_level, shift_dims

# Reductions over several dimensions.
_MULTI_DIM_OPS = frozenset(
    ("sum", "mean", "amax", "amin", "_var_correction", "_std_correction", "_vector_norm_core", "logsumexp", "flip")
)


def _multi_dim_rule(dims) -> bool:
    return dims is None or dims.__class__ in (tuple, list) and not len(dims)


@rule(
    "sum", "mean", "amax", "amin", "any", "all", "argmax", "argmin", "_var_correction", "_std_correction", "logsumexp",
    "_max_dim", "_min_dim", "_median_dim", "_nanmedian_dim", "mode", "prod", "count_nonzero", "_vector_norm_core",
    "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "sort", "topk", "kthvalue", "_softmax", "_log_softmax",
    "_fft_c2c_core", "_fft_r2c_core", "_fft_c2r_core", kind="reduction",
)  # fmt: skip
def along_dim_rule(level, op, values):
    """Apply the op to the shifted dimension; scalar examples get a dimension of size one."""
    names = [p.name for p in op.params]
    place, keep = names.index("dim"), "keepdim" in names and values[names.index("keepdim")]
    x, dim = batch_dim_first(values[0]), values[place]
    ndim = x.ndim - 1
    if not ndim:
        x = F.unsqueeze(x, 1)
        shift_dims(0 if _multi_dim_rule(dim) else dim, 0)  # raises for an invalid dimension
        along = (1,) if op.name == "_vector_norm_core" else 1
        result = run_below_level(op, [x if i == 0 else along if i == place else v for i, v in enumerate(values)])
        return level.wrap(map_outputs(result, lambda t: F.squeeze(t, 1) if t.ndim > 1 else t))
    if not _multi_dim_rule(dim):
        dims = shift_dims(dim, ndim)
    elif op.name in _MULTI_DIM_OPS:
        dims = tuple(range(1, ndim + 1))
    else:
        x, dims = flatten_examples(x), 1
    result = run_below_level(op, [x if i == 0 else dims if i == place else v for i, v in enumerate(values)])
    if keep and x.ndim - 1 != ndim:
        result = map_outputs(result, lambda t: F.reshape(t, (t.shape[0], *[1] * ndim)))
    return level.wrap(result)


@rule("_median_all", "_nanmedian_all", kind="reduction")
def _median_rule(level, op, values):
    function = F._median_dim if op.name == "_median_all" else F._nanmedian_dim
    return level.wrap(function(flatten_examples(batch_dim_first(values[0])), 1)[0])


@rule("_linear_recurrence", kind="reduction")
def _linear_recurrence_rule(level, op, values):
    from .rule_helpers import to_batch

    factor, term, dim = values
    ndim = max(factor.ndim, term.ndim)
    return level.wrap(run_below_level(op, [to_batch(level, factor), to_batch(level, term), shift_dims(dim, ndim)]))
