"""Batching rules of neural network layers: convolution, pooling, normalization, resampling, recurrent layers."""

from __future__ import annotations

from ..._dispatch import F
from ..._dispatch.interceptors import ReenabledInterceptor
from .._batched_tensor import batch_dim_first, is_batched_at
from .rule_helpers import (
    composite_rule,
    decomposed_rule,
    merge_batch_into_dim,
    rule,
    run_below_level,
    split_batch_from_dim,
    to_batch,
)

_BATCH_NORM = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, "
    "were not batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be "
    "False.If you are using a prebuilt module and do not need eval mode, please see the functorch website for "
    "resources on how to patch your module to work with vmap"
)


@rule("convolution", kind="convolution")
def _convolution(level, op, values):
    """Merge batched images into the image batch, and batched weights into groups."""
    x, weight, bias, stride, padding, dilation, transposed, output_padding, groups = values
    options = stride, padding, dilation, transposed, output_padding
    size = level.size
    if not is_batched_at(weight, level):
        own = None if is_batched_at(bias, level) else bias
        out = split_batch_from_dim(
            F.convolution(merge_batch_into_dim(to_batch(level, x)), weight, own, *options, groups), size
        )
        return _add_bias(level, level.wrap(out), bias) if own is not bias else level.wrap(out)
    kernels = batch_dim_first(weight)
    if is_batched_at(x, level):
        images = merge_batch_into_dim(batch_dim_first(x), 1)
        kernels, count = merge_batch_into_dim(kernels), groups * size
        out = F.convolution(images, kernels, None, *options, count)
        return _add_bias(level, level.wrap(split_batch_from_dim(out, size, 1)), bias)
    out = F.convolution(x, _merge_kernel_groups(kernels, groups, transposed), None, *options, groups)
    if groups == 1:
        return _add_bias(level, level.wrap(split_batch_from_dim(out, size, 1)), bias)
    shape = tuple(out.shape)
    each = shape[1] // (groups * size)
    out = F.reshape(out, (shape[0], groups, size, each, *shape[2:]))
    out = F.permute(out, 2, 0, 1, *range(3, out.ndim))
    return _add_bias(level, level.wrap(F.reshape(out, (size, shape[0], groups * each, *shape[2:]))), bias)


def _merge_kernel_groups(kernels, groups: int, transposed: bool):
    """Merge the weights of all examples: within each group, the channels of one example after another."""
    size, first, second, *rest = kernels.shape
    if groups == 1 and not transposed:
        return F.reshape(kernels, (size * first, second, *rest))
    rest_dims = range(3, kernels.ndim)
    if transposed:  # (in, out per group, ...)
        return F.reshape(F.permute(kernels, 1, 0, 2, *rest_dims), (first, size * second, *rest))
    kernels = F.reshape(kernels, (size, groups, first // groups, second, *rest))
    kernels = F.permute(kernels, 1, 0, 2, *range(3, kernels.ndim))
    return F.reshape(kernels, (size * first, second, *rest))


def _add_bias(level, out, bias):
    if bias is None:
        return out
    with ReenabledInterceptor(level):
        return F.add(out, F.reshape(bias, (bias.shape[0], *[1] * (out.ndim - 2))))


@composite_rule("embedding_renorm_")
def _embedding_renorm(F, weight, indices, max_norm, norm_type):
    """Scale all rows, with factor 1 for unused rows, as used rows differ between examples."""
    named = F.index_fill(F._new_zeros(weight, (weight.shape[0],)), 0, indices.reshape(-1), 1) > 0
    norms = F.norm(weight.detach(), norm_type, 1, True)
    return weight.mul_(
        F.where(named.unsqueeze(1) & (norms > max_norm), max_norm / (norms + 1e-7), 1.0).to(weight.dtype)
    )


@rule(
    "_max_pool", "_max_pool_with_indices", "_adaptive_max_pool", "_avg_pool", "_avg_pool_backward",
    "_adaptive_avg_pool", "_adaptive_avg_pool_backward", "_resize", "_resize_backward", "_im2col", "_col2im",
    "_grid_sample", "_fractional_max_pool", kind="first dimension",
)  # fmt: skip
def batch_as_images_rule(level, op, values):
    """Merge the batch into the first dimension, for ops on independent images or channels."""
    made = []
    for param, value in zip(op.params, values, strict=True):
        value = merge_batch_into_dim(to_batch(level, value)) if param.is_tensor and value is not None else value
        if param.name == "size" and op.name.endswith("_backward"):
            value = tuple(value)
        made.append(value)
    result = run_below_level(op, made)
    from .rule_helpers import map_outputs

    return level.wrap(map_outputs(result, lambda t: split_batch_from_dim(t, level.size)))


def _make_norm_rule(plain: int):
    """Return the rule of a norm over trailing dimensions: one call for an unbatched weight, else decomposed."""

    def norm_rule(level, op, values):
        if any(is_batched_at(v, level) for v in values[1:plain]) or not is_batched_at(values[0], level):
            return decomposed_rule(level, op, values)
        return level.wrap(run_below_level(op, [batch_dim_first(values[0]), *values[1:]]))

    return norm_rule


rule("_layer_norm", kind="front")(_make_norm_rule(3))
rule("_rms_norm", kind="front")(_make_norm_rule(2))


@rule("_group_norm", kind="first dimension")
def _group_norm(level, op, values):
    x, weight, bias, *rest = values
    own = not is_batched_at(weight, level) and not is_batched_at(bias, level)
    affine = (weight, bias) if own else (None, None)
    out = level.wrap(
        split_batch_from_dim(
            run_below_level(op, [merge_batch_into_dim(to_batch(level, x)), *affine, *rest]), level.size
        )
    )
    if own:
        return out
    with ReenabledInterceptor(level):
        for parameter, function in ((weight, F.mul), (bias, F.add)):
            if parameter is not None:
                out = function(out, F.reshape(parameter, (x.shape[1], *[1] * (x.ndim - 2))))
        return out


@rule("_channel_affine", kind="first dimension")
def _channel_affine(level, op, values):
    if any(is_batched_at(v, level) for v in values[1:]):
        return decomposed_rule(level, op, values)
    return level.wrap(
        split_batch_from_dim(
            run_below_level(op, [merge_batch_into_dim(batch_dim_first(values[0])), *values[1:]]), level.size
        )
    )


@rule("batch_norm", "instance_norm", "native_batch_norm", kind="composite")
def _batch_norm(level, op, values):
    given = dict(zip((p.name for p in op.params), values, strict=True))
    states = given["running_mean"], given["running_var"]
    if given.get("training", given.get("use_input_stats")) and is_batched_at(given["input"], level):
        if any(s is not None and not is_batched_at(s, level) for s in states):
            raise RuntimeError(_BATCH_NORM)
    with ReenabledInterceptor(level):
        return op.composite(F, *values)


@rule("constant_pad_nd", kind="front")
def _pad(level, op, values):
    """Pad trailing dimensions."""
    return level.wrap(run_below_level(op, [batch_dim_first(values[0]), *values[1:]]))


@rule("_lstm_layer", "_gru_layer", kind="first dimension")
def _recurrent_rule(level, op, values):
    """Merge the batch into the sequences; with batched weights, decompose into steps."""
    states = 2 if op.name == "_lstm_layer" else 1
    if any(is_batched_at(v, level) for v in values[1 + states : -1]):
        return decomposed_rule(level, op, values)
    x, *rest = values
    batched = [
        merge_batch_into_dim(to_batch(level, x), 1),
        *(merge_batch_into_dim(to_batch(level, s)) for s in rest[:states]),
        *rest[states:],
    ]
    found = run_below_level(op, batched)
    results = [
        level.wrap(split_batch_from_dim(t, level.size, d)) for t, d in zip(found, [1, *[0] * states], strict=False)
    ]
    return type(found)([*results, *found[1 + states :]])  # the rest passes from the kernel to its backward
