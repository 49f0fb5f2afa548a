"""`torch.Tag`s of ATen overloads."""

from __future__ import annotations

import enum
import functools
from typing import Any

from .._dispatch.op_record import INPLACE, POINTWISE

Tag = enum.Enum(  # type: ignore[misc]
    "Tag",
    {
        name: number
        for number, name in enumerate(
            "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace "
            "inplace_view maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides "
            "needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise "
            "pt2_compliant_tag reduction view_copy".split()
        )
    },
    module="torchlite",
)
Tag.__doc__ = "What PyTorch's compilers know of an operator, such as that it draws random numbers."
# Core ATen overloads, which compilers decompose to.
_CORE = (
    "_adaptive_avg_pool2d:default _adaptive_avg_pool2d_backward:default _adaptive_avg_pool3d:default "
    "_cdist_forward:default _embedding_bag:default _fft_c2r:default _fft_r2c:default _local_scalar_dense:default "
    "_log_softmax:default _native_batch_norm_legit:default|no_stats _native_batch_norm_legit_no_training:default "
    "_pdist_forward:default _softmax:default _to_copy:default abs:default acos:default acosh:default "
    "adaptive_avg_pool1d:default add:Tensor|Scalar addmm:default alias:default amax:default amin:default "
    "any:default|dim|dims arange:start_step argmax:default argmin:default as_strided:default asin:default "
    "asinh:default atan:default atan2:default|out atanh:default avg_pool1d:default avg_pool2d:default "
    "avg_pool2d_backward:default avg_pool3d:default bitwise_and:Tensor|Scalar bitwise_not:default "
    "bitwise_or:Tensor|Scalar bitwise_xor:Tensor|Scalar bmm:default cat:default ceil:default clamp:default|Tensor "
    "clone:default col2im:default constant_pad_nd:default convolution:default convolution_backward:default "
    "copy:default cos:default cosh:default cumsum:default diagonal:default div:Tensor|Scalar|Tensor_mode|Scalar_mode "
    "elu:default embedding:default embedding_dense_backward:default empty:memory_format empty_strided:default "
    "eq:Tensor|Scalar erf:default exp:default expand:default expm1:default fill:Scalar flip:default floor:default "
    "fmod:Tensor|Scalar full:default full_like:default gather:default ge:Tensor|Scalar gelu:default "
    "grid_sampler_2d:default gt:Tensor|Scalar hardtanh:default index:Tensor index_put:default index_select:default "
    "isinf:default isnan:default le:Tensor|Scalar leaky_relu:default log:default log10:default log1p:default "
    "log2:default logical_and:default logical_not:default logical_or:default logical_xor:default lt:Tensor|Scalar "
    "masked_scatter:default max:dim max_pool2d_with_indices:default max_pool2d_with_indices_backward:default "
    "max_pool3d_with_indices:default maximum:default mean:default|dim min:dim minimum:default mm:default "
    "mul:Tensor|Scalar native_dropout:default native_group_norm:default native_group_norm_backward:default "
    "native_layer_norm:default native_layer_norm_backward:default ne:Tensor|Scalar neg:default nonzero:default "
    "permute:default pow:Tensor_Tensor|Tensor_Scalar|Scalar prod:default|dim_int rand:default randn:default "
    "randperm:default reciprocal:default reflection_pad1d:default reflection_pad2d:default reflection_pad3d:default "
    "relu:default remainder:Tensor|Scalar repeat:default replication_pad2d:default replication_pad3d:default "
    "resize_:default round:default rsqrt:default scalar_tensor:default scatter:value|src scatter_add:default "
    "scatter_reduce:two select:int select_scatter:default sigmoid:default sign:default sin:default sinh:default "
    "slice:Tensor slice_scatter:default sort:default split_with_sizes:default sqrt:default squeeze:dim|dims "
    "sub:Tensor|Scalar sum:dim_IntList tan:default tanh:default topk:default trunc:default unsqueeze:default "
    "upsample_bilinear2d:vec upsample_nearest2d:vec var:dim|correction view:default where:self "
)
_REDUCTIONS = frozenset(
    "all amax amin aminmax any argmax argmin count_nonzero linalg_vector_norm logsumexp max mean min nansum norm prod "
    "std std_mean sum var var_mean".split()
)
_DATA_DEPENDENT_SHAPE = frozenset(
    "_ctc_loss _unique _unique2 argwhere bincount index linalg_lstsq masked_select nonzero one_hot repeat_interleave "
    "unique_consecutive unique_dim unique_dim_consecutive".split()
)
_SEEDED = frozenset(
    "_sample_dirichlet _standard_gamma alpha_dropout bernoulli binomial cauchy dropout exponential "
    "feature_alpha_dropout feature_dropout geometric gru log_normal lstm multinomial native_dropout normal poisson "
    "rand rand_like randint randint_like randn randn_like random randperm rnn_relu rnn_tanh rrelu "
    "scaled_dot_product_attention uniform".split()
)
_DATA_DEPENDENT_OUTPUT = frozenset(("_local_scalar_dense", "allclose", "equal", "item"))
_VIEW_OPS = frozenset(
    "as_strided_ detach_ resize_ resize_as_ set_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_".split()
)


@functools.cache
def _load_core_overloads() -> dict[str, list[str]]:
    return {name: overloads.split("|") for name, _, overloads in (entry.partition(":") for entry in _CORE.split())}


def as_tags(given: Any) -> list[Any]:
    """Return tags as a list: one, several or None."""
    return [] if given is None else [given] if isinstance(given, Tag) else list(given)


def tags_of(name: str, overload: str, record: Any) -> list[Any]:
    """Return the tags of an ATen overload, given its record or None."""
    writes = name.endswith("_") and not name.endswith("__")
    flags = getattr(record, "tags", 0)
    found = {
        "core": overload in _load_core_overloads().get(name, ()),
        "data_dependent_output": name in _DATA_DEPENDENT_OUTPUT,
        "dynamic_output_shape": name in _DATA_DEPENDENT_SHAPE,
        "inplace": writes,
        "inplace_view": name in _VIEW_OPS,
        "nondeterministic_seeded": name.removesuffix("_") in _SEEDED,
        "pointwise": bool(flags & POINTWISE and (not writes or flags & INPLACE)),
        "pt2_compliant_tag": True,
        "reduction": name in _REDUCTIONS,
    }
    return [Tag[tag] for tag, holds in found.items() if holds]
