"""`torch.nn.functional`: the ops that layers use.

Most names are ops, generated from their records in `torchlite/_ops` on first access. This module defines the functions
that rearrange arguments: `inplace=`, an implicit dimension, argument orders that differ from the op's.
"""

from __future__ import annotations

import functools
import math
import warnings
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._dispatch import INPLACE, NAMESPACES, REGISTRY, F, namespace_function
from torchlite._dispatch.op_functions import in_place_method
from torchlite._dispatch.tracing import TRACES as _TRACES
from torchlite._dispatch.tracing import trace_function as _handled
from torchlite._ops.embedding import check_indices
from torchlite._types.unsupported import unsupported_function

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DType


# Names of this namespace whose ops are declared for `torch` only.
_TORCH_FUNCTIONS = {
    "alpha_dropout", "avg_pool1d", "adaptive_avg_pool1d", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_tbc",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "feature_alpha_dropout", "max_pool1d_with_indices",
    "native_channel_shuffle", "pdist", "pixel_shuffle", "pixel_unshuffle", "sigmoid", "tanh",
}  # fmt: skip


if TYPE_CHECKING:
    from torchlite._stubs.functional import *
    from torchlite._stubs.functional_pooling import *
else:

    def __getattr__(name):
        if name in NAMESPACES["nn.functional"]:
            found = namespace_function("nn.functional", name)
        elif name in _TORCH_FUNCTIONS:
            found = getattr(torch, name)
        elif name == "grad":
            found = torch.nn.grad
        elif name in ("scaled_mm", "scaled_grouped_mm", "ScalingType", "SwizzleType"):
            found = unsupported_function(f"torch.nn.functional.{name}")
        elif name == "grouped_mm":
            from ._grouped_mm import grouped_mm as found
        elif name in (
            "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
        ):  # fmt: skip
            found = getattr(torch.overrides, name)
        elif name.endswith("_") and name[:-1] in REGISTRY and REGISTRY[name[:-1]].tags & INPLACE:
            found = in_place_method(REGISTRY[name[:-1]])
        else:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        globals()[name] = found
        return found


# What this module imports for itself.
_INTERNAL = {
    "Any", "F", "INPLACE", "NAMESPACES", "REGISTRY", "annotations", "check_indices", "functools", "in_place_method",
    "namespace_function", "unsupported_function",
}  # fmt: skip


def __dir__() -> list[str]:
    public = {name for name in globals() if not name.startswith("_") or name.startswith("__")} - _INTERNAL
    private = {"_in_projection", "_in_projection_packed", "_verify_batch_size"}  # PyTorch has them too
    in_place = {f"{name}_" for name in "celu elu hardtanh leaky_relu relu rrelu selu threshold".split()}
    return sorted({*public, *private, *NAMESPACES["nn.functional"], *_TORCH_FUNCTIONS, *in_place})


@functools.cache
def _make_in_place_function(name: str):
    return in_place_method(REGISTRY[name])


# --- activations with inplace= --------------------------------------------------------------------


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """`torch.relu`; in place with ``inplace=True``."""
    if _TRACES and (found := _handled("relu", **locals())) is not NotImplemented:
        return found
    return input.relu_() if inplace else F.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(input, 0), 6)``, elementwise."""
    if _TRACES and (found := _handled("relu6", **locals())) is not NotImplemented:
        return found
    return _make_in_place_function("relu6")(input) if inplace else F.relu6(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``input`` where it is positive, ``negative_slope * input`` elsewhere."""
    if (
        _TRACES
        and (found := _handled("leaky_relu", input, negative_slope=negative_slope, inplace=inplace))
        is not NotImplemented
    ):
        return found
    return (
        _make_in_place_function("leaky_relu")(input, negative_slope) if inplace else F.leaky_relu(input, negative_slope)
    )


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """``input`` limited to ``[min_val, max_val]``."""
    if (
        _TRACES
        and (found := _handled("hardtanh", input, min_val=min_val, max_val=max_val, inplace=inplace))
        is not NotImplemented
    ):
        return found
    return (
        _make_in_place_function("hardtanh")(input, min_val, max_val) if inplace else F.hardtanh(input, min_val, max_val)
    )


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``input`` where it is above ``threshold``, ``value`` elsewhere."""
    if _TRACES and (found := _handled("threshold", **locals())) is not NotImplemented:
        return found
    return (
        _make_in_place_function("threshold")(input, threshold, value)
        if inplace
        else F.threshold(input, threshold, value)
    )


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``input`` where positive, ``alpha * (exp(input) - 1)`` elsewhere."""
    if _TRACES and (found := _handled("elu", **locals())) is not NotImplemented:
        return found
    return _make_in_place_function("elu")(input, alpha) if inplace else F.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalising ``elu``."""
    if _TRACES and (found := _handled("selu", **locals())) is not NotImplemented:
        return found
    return _make_in_place_function("selu")(input) if inplace else F.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``max(0, input) + min(0, alpha * (exp(input / alpha) - 1))``."""
    if _TRACES and (found := _handled("celu", **locals())) is not NotImplemented:
        return found
    return _make_in_place_function("celu")(input, alpha) if inplace else F.celu(input, alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * sigmoid(input)``."""
    if _TRACES and (found := _handled("silu", **locals())) is not NotImplemented:
        return found
    return _make_in_place_function("silu")(input) if inplace else F.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * tanh(softplus(input))``."""
    if _TRACES and (found := _handled("mish", **locals())) is not NotImplemented:
        return found
    return _make_in_place_function("mish")(input) if inplace else F.mish(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * hardsigmoid(input)``."""
    if _TRACES and (found := _handled("hardswish", **locals())) is not NotImplemented:
        return found
    return _make_in_place_function("hardswish")(input) if inplace else F.hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(input + 3, 0), 6) / 6``."""
    if _TRACES and (found := _handled("hardsigmoid", **locals())) is not NotImplemented:
        return found
    return _make_in_place_function("hardsigmoid")(input) if inplace else F.hardsigmoid(input)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Leaky relu with a random slope in training."""
    if (
        _TRACES
        and (found := _handled("rrelu", input, lower=lower, upper=upper, training=training, inplace=inplace))
        is not NotImplemented
    ):
        return found
    return (
        _make_in_place_function("rrelu")(input, lower, upper, training)
        if inplace
        else F.rrelu(input, lower, upper, training)
    )


# --- softmax with an implicit dimension -----------------------------------------------------------


def _choose_implicit_dim(name, ndim, stacklevel):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=stacklevel + 1,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """``torch.softmax``. Without ``dim`` it uses the first dimension of 1-d and 3-d inputs and the second of others,
    with a warning.
    """
    if _TRACES and (found := _handled("softmax", **locals())) is not NotImplemented:
        return found
    return F.softmax(input, _choose_implicit_dim("softmax", input.ndim, _stacklevel) if dim is None else dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """The logarithm of ``softmax``."""
    if (
        _TRACES
        and (found := _handled("log_softmax", input, dim=dim, _stacklevel=_stacklevel, dtype=dtype))
        is not NotImplemented
    ):
        return found
    return F.log_softmax(
        input, _choose_implicit_dim("log_softmax", input.ndim, _stacklevel) if dim is None else dim, dtype
    )


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """``softmax(-input)``."""
    if _TRACES and (found := _handled("softmin", **locals())) is not NotImplemented:
        return found
    return F.softmax(-input, _choose_implicit_dim("softmin", input.ndim, _stacklevel) if dim is None else dim, dtype)


# --- normalisation --------------------------------------------------------------------------------


def batch_norm(
    input: Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Batch norm over every dimension but 1; see `torch.batch_norm`. In training the running statistics are updated in
    place.
    """
    if (
        _TRACES
        and (
            found := _handled(
                "batch_norm",
                input,
                running_mean,
                running_var,
                weight=weight,
                bias=bias,
                training=training,
                momentum=momentum,
                eps=eps,
            )
        )
        is not NotImplemented
    ):
        return found
    if training:
        _verify_batch_size(input.shape)
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return F.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _verify_batch_size(shape):
    if len(shape) > 1 and math.prod(shape) == shape[1] and shape[1]:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size torch.Size({list(shape)})"
        )


def instance_norm(
    input: Tensor,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Batch norm of each sample separately."""
    if (
        _TRACES
        and (
            found := _handled(
                "instance_norm",
                input,
                running_mean=running_mean,
                running_var=running_var,
                weight=weight,
                bias=bias,
                use_input_stats=use_input_stats,
                momentum=momentum,
                eps=eps,
            )
        )
        is not NotImplemented
    ):
        return found
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size torch.Size({list(input.shape)})"
        )
    return F.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05
) -> Tensor:
    """Mean 0 and variance 1 over each of ``num_groups`` groups of channels of each sample."""
    if (
        _TRACES
        and (found := _handled("group_norm", input, num_groups, weight=weight, bias=bias, eps=eps))
        is not NotImplemented
    ):
        return found
    if input.ndim >= 2:
        groups = input.shape[0] * num_groups
        if input.numel() and input.numel() == groups:
            shape = [input.shape[0] * input.shape[1] // num_groups, num_groups, *input.shape[2:]]
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {shape}")
    return F.group_norm(input, num_groups, weight, bias, eps)


# --- embedding ------------------------------------------------------------------------------------


def _normalize_padding_idx(padding_idx, rows):
    if padding_idx is None:
        return -1
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + rows if padding_idx < 0 else padding_idx


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of ``weight`` that ``input`` names: (*), (rows, features) -> (*, features).

    ``max_norm`` first scales, in place, the named rows that are longer. Row ``padding_idx`` gets no gradient. With
    ``sparse`` the gradient is a sparse tensor of the rows that were looked up.

    >>> F.embedding(torch.tensor([1, 0]), torch.tensor([[1.0], [2.0]]))
    tensor([[2.],
            [1.]])
    """
    if (
        _TRACES
        and (
            found := _handled(
                "embedding",
                input,
                weight,
                padding_idx=padding_idx,
                max_norm=max_norm,
                norm_type=norm_type,
                scale_grad_by_freq=scale_grad_by_freq,
                sparse=sparse,
            )
        )
        is not NotImplemented
    ):
        return found
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    check_indices(input, "embedding")
    if padding_idx is not None:
        padding_idx = _normalize_padding_idx(padding_idx, weight.shape[0])
    if max_norm is not None:
        with torch.no_grad():
            torch.embedding_renorm_(weight, input, max_norm, norm_type)
    padding_idx = -1 if padding_idx is None else padding_idx
    return F.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of bags of embeddings, without storing the embeddings.

    Each row of a 2-d ``input`` is a bag; a 1-d one has bags that begin at ``offsets``.
    """
    if (
        _TRACES
        and (
            found := _handled(
                "embedding_bag",
                input,
                weight,
                offsets=offsets,
                max_norm=max_norm,
                norm_type=norm_type,
                scale_grad_by_freq=scale_grad_by_freq,
                mode=mode,
                sparse=sparse,
                per_sample_weights=per_sample_weights,
                include_last_offset=include_last_offset,
                padding_idx=padding_idx,
            )
        )
        is not NotImplemented
    ):
        return found
    if weight.dtype is torch.int64 and input.dtype.is_floating_point:
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    input, offsets, per_sample_weights = _normalize_bags(input, offsets, per_sample_weights)
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError(
            "max mode does not support "
            f"{'scaling the gradient by the frequency' if scale_grad_by_freq else 'sparse weights'}"
        )
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    if max_norm is not None:
        with torch.no_grad():
            torch.embedding_renorm_(weight, input, max_norm, norm_type)
    number = ("sum", "mean", "max").index(mode)
    return torch.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, number, sparse, per_sample_weights, include_last_offset, padding_idx
    )[0]


def _normalize_bags(input, offsets, per_sample_weights):
    """Return 1-d indices, offsets and weights, from 2-d rows or the 1-d arguments."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        rows, length = input.shape
        offsets = torch.arange(0, rows, dtype=input.dtype, device=input.device) * length
        return input.reshape(-1), offsets, None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if not isinstance(offsets, torch.Tensor):
        raise ValueError(f"offsets has to be a 1D Tensor but got {type(offsets) if offsets is not None else None}")
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, per_sample_weights


# --- multi-head attention -------------------------------------------------------------------------


def _to_additive_mask(mask, name, dtype):
    """Return a float mask to add: minus infinity where a boolean one is True."""
    if mask is None:
        return None
    if mask.dtype is torch.bool:
        return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)
    if not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return mask


def _check_attention_shapes(query, key, value, key_padding_mask, attn_mask, num_heads):
    if query.ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor"
        )
    kind = "batched (3-D)" if query.ndim == 3 else "unbatched (2-D)"
    if key.ndim != query.ndim or value.ndim != query.ndim:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {query.ndim}-D but found {key.ndim}-D and "
            f"{value.ndim}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.ndim != query.ndim - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {query.ndim - 1}-D but found "
            f"{key_padding_mask.ndim}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.ndim not in (2, 3):
        raise AssertionError(
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.ndim}-D tensor "
            "instead"
        )
    if (
        query.ndim == 2
        and attn_mask is not None
        and attn_mask.ndim == 3
        and attn_mask.shape != (num_heads, query.shape[0], key.shape[0])
    ):
        raise AssertionError(
            f"Expected `attn_mask` shape to be {(num_heads, query.shape[0], key.shape[0])} but got {attn_mask.shape}"
        )


def _in_projection_packed(query, key, value, weight, bias):
    """Return queries, keys and values from one packed weight, in as few products as the inputs allow."""
    size = query.shape[-1]
    if key is value:
        if query is key:
            return F.linear(query, weight, bias).unflatten(-1, (3, size)).unbind(-2)
        w_q, w_kv = weight.split([size, size * 2])
        b_q, b_kv = (None, None) if bias is None else bias.split([size, size * 2])
        return (F.linear(query, w_q, b_q), *F.linear(key, w_kv, b_kv).unflatten(-1, (2, size)).unbind(-2))
    w_q, w_k, w_v = weight.chunk(3)
    b_q, b_k, b_v = (None, None, None) if bias is None else bias.chunk(3)
    return F.linear(query, w_q, b_q), F.linear(key, w_k, b_k), F.linear(value, w_v, b_v)


def _in_projection(query, key, value, weights, bias):
    biases = (None, None, None) if bias is None else bias.chunk(3)
    for name, weight in zip("qkv", weights, strict=True):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    return tuple(F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))


def _pad_mask(mask):
    """Return a mask with a column for one more key, visible to all queries."""
    if mask is None:
        return None
    return torch.cat([mask, torch.zeros((*mask.shape[:-1], 1), dtype=mask.dtype, device=mask.device)], -1)


def _is_batch_first_view(x):
    """True if (length, batch, features) is a view of (batch, length, features) in row-major order, so that it can be
    processed without a copy.
    """
    return x.ndim == 3 and not x.is_contiguous() and x.transpose(0, 1).is_contiguous()


def _transpose_batch(query, key, value):
    """Transpose the first two dimensions of tensors; one object passed twice stays one object."""
    turned = query.transpose(0, 1)
    turned_key = turned if key is query else key.transpose(0, 1)
    return turned, turned_key, turned_key if value is key else value.transpose(0, 1)


def _split_heads(x, count, head_dim):
    """(length, batch, features) -> (batch * heads, length, head_dim)."""
    return x.reshape(x.shape[0], count, head_dim).transpose(0, 1)


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention (Vaswani et al., 2017) of (length, batch, features) or (length, features) inputs.

    Returns the output and, with ``need_weights``, the attention weights: (batch, target, source), or with heads in
    dimension 1 when not averaged; else None.
    """
    if (
        _TRACES
        and (
            found := _handled(
                "multi_head_attention_forward",
                query,
                key,
                value,
                embed_dim_to_check,
                num_heads,
                in_proj_weight,
                in_proj_bias,
                bias_k,
                bias_v,
                add_zero_attn,
                dropout_p,
                out_proj_weight,
                out_proj_bias,
                training=training,
                key_padding_mask=key_padding_mask,
                need_weights=need_weights,
                attn_mask=attn_mask,
                use_separate_proj_weight=use_separate_proj_weight,
                q_proj_weight=q_proj_weight,
                k_proj_weight=k_proj_weight,
                v_proj_weight=v_proj_weight,
                static_k=static_k,
                static_v=static_v,
                average_attn_weights=average_attn_weights,
                is_causal=is_causal,
            )
        )
        is not NotImplemented
    ):
        return found
    _check_attention_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    batched = query.ndim == 3
    if not batched:
        same_kv, same_qk = key is value, query is key
        query = query.unsqueeze(1)
        key = query if same_qk else key.unsqueeze(1)
        value = key if same_kv else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    target, batch, features = query.shape
    source = key.shape[0]
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    key_padding_mask = _to_additive_mask(key_padding_mask, "key_padding_mask", query.dtype)
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _to_additive_mask(attn_mask, "attn_mask", query.dtype)
        is_causal = False
    if features != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {features}")
    head_dim = features // num_heads
    if head_dim * num_heads != features:
        raise AssertionError(f"embed_dim {features} not divisible by num_heads {num_heads}")
    plain = not need_weights and bias_k is None and not add_zero_attn and static_k is None and static_v is None
    batch_first = plain and all(_is_batch_first_view(x) for x in (query, key, value))
    if batch_first:
        query, key, value = _transpose_batch(query, key, value)
    if not use_separate_proj_weight:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    else:
        q, k, v = _in_projection(query, key, value, (q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias)
    if attn_mask is not None:
        if attn_mask.ndim == 2:
            if attn_mask.shape != (target, source):
                raise RuntimeError(
                    f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {(target, source)}."
                )
            attn_mask = attn_mask.unsqueeze(0)
        elif attn_mask.shape != (batch * num_heads, target, source):
            raise RuntimeError(
                f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be "
                f"{(batch * num_heads, target, source)}."
            )
    if bias_k is not None and bias_v is not None:
        k, v = torch.cat([k, bias_k.repeat(1, batch, 1)]), torch.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _pad_mask(attn_mask), _pad_mask(key_padding_mask)
    heads = batch * num_heads
    if batch_first:
        q, k, v = (x.reshape(batch, -1, num_heads, head_dim).transpose(1, 2) for x in (q, k, v))
    else:
        q = _split_heads(q, heads, head_dim)
        k = _split_heads(k, heads, head_dim) if static_k is None else static_k
        v = _split_heads(v, heads, head_dim) if static_v is None else static_v
    if add_zero_attn:
        nothing = torch.zeros((heads, 1, head_dim), dtype=k.dtype, device=k.device)
        k, v = torch.cat([k, nothing], 1), torch.cat([v, nothing], 1)
        attn_mask, key_padding_mask = _pad_mask(attn_mask), _pad_mask(key_padding_mask)
    source = k.shape[-2]
    if key_padding_mask is not None:
        for place, want in enumerate((batch, source)):
            if key_padding_mask.shape[place] != want:
                raise AssertionError(
                    f"Expected key_padded_mask.shape[{place}] to be {want}, but got {key_padding_mask.shape[place]}"
                )
        spread = key_padding_mask.reshape(batch, 1, 1, source).expand(-1, num_heads, -1, -1).reshape(heads, 1, source)
        attn_mask = spread if attn_mask is None else attn_mask + spread
    if not training:
        dropout_p = 0.0
    if need_weights:
        return _attend_with_weights(
            q,
            k,
            v,
            attn_mask,
            dropout_p,
            (batch, num_heads, batched),
            average_attn_weights,
            out_proj_weight,
            out_proj_bias,
        )
    if attn_mask is not None:
        attn_mask = (
            attn_mask.unsqueeze(0) if attn_mask.shape[0] == 1 else attn_mask.reshape(batch, num_heads, -1, source)
        )
    if not batch_first:
        q, k, v = (x.reshape(batch, num_heads, x.shape[1], head_dim) for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    out = F.linear(out.permute(2, 0, 1, 3).reshape(target, batch, features), out_proj_weight, out_proj_bias)
    return out if batched else out.squeeze(1), None


def _attend_with_weights(q, k, v, attn_mask, dropout_p, layout, average, out_weight, out_bias):
    """Attention that also returns its weights."""
    batch, num_heads, batched = layout
    scores = torch.bmm(q * math.sqrt(1.0 / q.shape[-1]), k.transpose(1, 2))
    weights = F.softmax(scores if attn_mask is None else scores + attn_mask, -1)
    if dropout_p > 0.0:
        weights = torch.nn.functional.dropout(weights, dropout_p)
    target = q.shape[1]
    out = torch.bmm(weights, v).transpose(0, 1).reshape(target, batch, num_heads * v.shape[-1])
    out = F.linear(out, out_weight, out_bias)
    weights = weights.reshape(batch, num_heads, target, k.shape[1])
    if average:
        weights = weights.mean(1)
    return (out, weights) if batched else (out.squeeze(1), weights.squeeze(0))


for _function in [value for value in globals().values() if getattr(value, "__module__", None) == __name__]:
    # Tools that look for tensors among the parameters find the class, as in PyTorch.
    _types = getattr(_function, "__annotations__", {})
    _types.update({name: torch.Tensor for name, text in _types.items() if text == "Tensor"})
