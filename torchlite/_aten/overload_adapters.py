"""Adapters for ATen overloads whose arguments or results differ from torchlite's function.

An adapter has the schema's parameter names. Keys are op names or single overloads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torchlite as torch

from .._dispatch.callbacks import CALLBACKS
from .._dispatch.op_functions import function_for
from .._dispatch.op_record import REGISTRY
from .._dispatch.public_functions import nn_functional as F
from .._dispatch.shapes import contiguous_strides, wrap_dim, wrap_dims
from . import backward_ops, normalizations, resampling

REDUCTIONS = ("none", "mean", "sum")
_SLICE_ALL = slice(None)


def _record(name: str) -> Callable:
    return function_for(REGISTRY[name])


def _when_called(name: str) -> Callable:
    """A record's function, which is generated when this one is called first."""
    record = REGISTRY[name]

    def run(*args: Any, **kwargs: Any) -> Any:
        return function_for(record)(*args, **kwargs)

    run.op = record  # type: ignore[attr-defined]
    return run


# -- memory, dtypes and devices ----------------------------------------------------------------


def _new_zeros_with_same_feature_meta(self: Any, other: Any, *, self_num_batch_dims: int = 0) -> Any:
    batch = tuple(self.shape[:self_num_batch_dims])
    own = other.untyped_storage().nbytes() // other.itemsize
    strides = (*(own * step for step in contiguous_strides(batch)), *other.stride())
    memory = other.new_zeros(own * math.prod(batch))
    return memory.as_strided((*batch, *other.shape), strides, other.storage_offset())


def _to_copy(
    self: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
    non_blocking: bool = False, memory_format: Any = None,
) -> Any:  # fmt: skip
    keywords = {"dtype": dtype, "device": device, "memory_format": memory_format}
    return self.to(copy=True, **{name: value for name, value in keywords.items() if value is not None})


def _to(
    self: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
    non_blocking: bool = False, copy: bool = False, memory_format: Any = None,
) -> Any:  # fmt: skip
    keywords = {"dtype": dtype, "device": device, "memory_format": memory_format}
    return self.to(copy=copy, **{name: value for name, value in keywords.items() if value is not None})


def _to_device(
    self: Any, device: Any, dtype: Any, non_blocking: bool = False, copy: bool = False, memory_format: Any = None
) -> Any:
    return _to(self, device=device, dtype=dtype, copy=copy, memory_format=memory_format)


def _to_dtype(self: Any, dtype: Any, non_blocking: bool = False, copy: bool = False, memory_format: Any = None) -> Any:
    return _to(self, dtype=dtype, copy=copy, memory_format=memory_format)


def _to_other(self: Any, other: Any, non_blocking: bool = False, copy: bool = False, memory_format: Any = None) -> Any:
    return _to(self, dtype=other.dtype, device=other.device, copy=copy, memory_format=memory_format)


def _assert_async(holds: Any, message: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    if not holds:
        raise RuntimeError(message)


def _assert_async_with_token(self: Any, assert_msg: str, dep_token: Any) -> Any:
    _assert_async(self, assert_msg)
    return dep_token


def _assert_scalar_range(size: Any, *, min: Any = None, max: Any = None) -> None:
    low, high = -math.inf if min is None else min, math.inf if max is None else max
    if not low <= size <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


def _assert_tensor_metadata(
    a: Any, size: Any = None, stride: Any = None, dtype: Any = None, *, device: Any = None, layout: Any = None
) -> None:
    parts: tuple[tuple[str, Any, Any], ...] = (
        ("sizes", None if size is None else list(size), list(a.shape)),
        ("strides", None if stride is None else list(stride), list(a.stride())),
        ("dtype", dtype, a.dtype),
        ("device", None if device is None else torch.device(device), a.device),
    )
    for name, wanted, found in parts:
        if wanted is not None and wanted != found:
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {wanted}, Got: {found}")


# -- indices ------------------------------------------------------------------------------------


def _slice(self: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    dim = wrap_dim(dim, self.ndim)
    return self[(_SLICE_ALL,) * dim + (slice(start, end, step),)]


def _int64_indices(indices: Any) -> tuple:
    return tuple(_SLICE_ALL if i is None else i for i in indices)


def _index_put_(self: Any, indices: Any, values: Any, accumulate: bool = False, unsafe: bool = False) -> Any:
    if all(i is not None for i in indices):
        return self.index_put_(tuple(indices), values, accumulate)
    if accumulate:
        spread = torch.zeros_like(self, memory_format=torch.contiguous_format)
        where = torch.arange(self.numel(), device=self.device).view(self.shape)[_int64_indices(indices)]
        spread.view(-1).index_put_((where,), values.expand(where.shape), True)
        return self.add_(spread)
    self[_int64_indices(indices)] = values
    return self


def _index_put(self: Any, indices: Any, values: Any, accumulate: bool = False, unsafe: bool = False) -> Any:
    return _index_put_(self.clone(), indices, values, accumulate)


# -- layers -------------------------------------------------------------------------------------


def _convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, benchmark: bool = False, deterministic: bool = False,
    cudnn_enabled: bool = False, allow_tf32: bool = True,
) -> Any:  # fmt: skip
    """Return any convolution, by ATen's general signature."""
    dims = weight.ndim - 2
    if transposed:
        run = getattr(torch, f"conv_transpose{dims}d")
        return run(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return getattr(torch, f"conv{dims}d")(input, weight, bias, stride, padding, dilation, groups)


def _convolution_mode(input: Any, weight: Any, bias: Any, stride: Any, padding: str, dilation: Any, groups: int) -> Any:
    return getattr(torch, f"conv{weight.ndim - 2}d")(input, weight, bias, stride, padding, dilation, groups)


def _slow_conv(
    self: Any, weight: Any, kernel_size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1
) -> Any:
    return getattr(torch, f"conv{weight.ndim - 2}d")(self, weight, bias, stride, padding, dilation)


def _slow_conv_transpose(
    self: Any, weight: Any, kernel_size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, dilation: Any = 1,
) -> Any:  # fmt: skip
    run = getattr(torch, f"conv_transpose{weight.ndim - 2}d")
    return run(self, weight, bias, stride, padding, output_padding, 1, dilation)


def _max_pool(dims: int, with_indices: bool) -> Callable:
    run = _when_called(f"max_pool{dims}d")

    def pool(
        self: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> Any:
        return run(self, kernel_size, stride or kernel_size, padding, dilation, ceil_mode, with_indices)

    return pool


def _avg_pool(dims: int) -> Callable:
    run = _when_called(f"avg_pool{dims}d")

    def pool(
        self: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: Any = None,
    ) -> Any:  # fmt: skip
        more = () if divisor_override is None else (divisor_override,)
        return run(self, kernel_size, stride or kernel_size, padding, ceil_mode, count_include_pad, *more)

    return pool


def _adaptive_max_pool(dims: int) -> Callable:
    run = _when_called(f"adaptive_max_pool{dims}d")
    return lambda self, output_size: run(self, output_size, return_indices=True)


def _fractional_max_pool(dims: int) -> Callable:
    run = _when_called(f"fractional_max_pool{dims}d")
    return lambda self, kernel_size, output_size, random_samples: run(
        self, kernel_size, output_size, return_indices=True, _random_samples=random_samples
    )


def _fractional_max_pool_backward(dims: int) -> Callable:
    def run(grad_output: Any, self: Any, kernel_size: Any, output_size: Any, indices: Any) -> Any:
        lead = self.shape[: self.ndim - dims]
        if tuple(grad_output.shape) != (*lead, *output_size):
            raise RuntimeError(f"fractional_max_pool{dims}d_backward(): gradOutput sizes unexpected")
        flat = grad_output.new_zeros(self.shape).flatten(-dims)
        return flat.scatter_add(-1, indices.flatten(-dims), grad_output.flatten(-dims)).view(self.shape)

    return run


def _max_unpool(self: Any, indices: Any, output_size: Any, stride: Any = None, padding: Any = None) -> Any:
    lead, places = self.shape[: self.ndim - len(output_size)], math.prod(output_size)
    flat = self.new_zeros(*lead, places)
    return flat.scatter(-1, indices.flatten(len(lead)), self.flatten(len(lead))).view((*lead, *output_size))


def _pad(mode: str, dims: int | None = None) -> Callable:
    def run(self: Any, padding: Any) -> Any:
        if dims is not None and len(padding) != 2 * dims:
            raise RuntimeError(f"padding size is expected to be {2 * dims}, but got: {len(padding)}")
        return F.pad(self, list(padding), mode)

    return run


def _prelu(self: Any, weight: Any) -> Any:
    return torch.where(self > 0, self, weight * self)


def _rrelu(
    self: Any, noise: Any, lower: Any = 0.125, upper: Any = 1 / 3, training: bool = False, generator: Any = None
) -> Any:
    if not training:
        return F.leaky_relu(self, (lower + upper) / 2)
    slopes = torch.empty_like(self).uniform_(lower, upper, generator=generator)
    noise.copy_(torch.where(self <= 0, slopes, torch.ones_like(slopes)))
    return self * noise


def _softmax(name: str) -> Callable:
    run = _when_called(name)

    def softmax(self: Any, dim: int, half_to_float: bool = False) -> Any:
        return run(self, dim, torch.float32) if half_to_float else run(self, dim)

    return softmax


def _embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Any = None, include_last_offset: bool = False, padding_idx: Any = None,
) -> Any:  # fmt: skip
    padding_idx = None if padding_idx is None or padding_idx < 0 else padding_idx
    return tuple(
        torch.embedding_bag(
            weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
            padding_idx,
        )
    )  # fmt: skip


# -- attention ------------------------------------------------------------------------------------


def _attention_scores(query: Any, key: Any, mask: Any, is_causal: bool, scale: Any) -> Any:
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
    if mask is None:
        return scores
    return scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask


def _attention(query: Any, key: Any, value: Any, mask: Any, dropout_p: float, is_causal: bool, scale: Any) -> Any:
    """Return attention and the log-sum-exp of its softmax."""
    if query.shape[-3] != key.shape[-3]:
        groups = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    out = F.scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal, scale=scale)
    with torch.no_grad():
        wide = torch.float32 if query.dtype in (torch.float16, torch.bfloat16) else query.dtype
        sums = torch.logsumexp(_attention_scores(query.to(wide), key.to(wide), mask, is_causal, scale), -1)
    return out, sums


def _op_with_alpha(name: str) -> Callable:
    """Return an adapter that takes `alpha` positionally, where PyTorch's function has a deprecated signature."""
    return lambda self, other, alpha=1: getattr(self, name)(other, alpha=alpha)


def _flash_attention_cpu(
    query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False, *, attn_mask: Any = None,
    scale: Any = None,
) -> Any:  # fmt: skip
    return _attention(query, key, value, attn_mask, dropout_p, is_causal, scale)


def _flash_attention(
    query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False,
    return_debug_mask: bool = False, *, scale: Any = None,
) -> Any:  # fmt: skip
    out, sums = _attention(query, key, value, None, dropout_p, is_causal, scale)
    seed = torch.zeros(2, dtype=torch.int64, device=query.device)
    nothing = query.new_empty(0)
    return out, sums, None, None, query.shape[-2], key.shape[-2], seed, seed[:0], nothing


def _efficient_attention(
    query: Any, key: Any, value: Any, attn_bias: Any, compute_log_sumexp: bool, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: Any = None,
) -> Any:  # fmt: skip
    out, sums = _attention(query, key, value, attn_bias, dropout_p, is_causal, scale)
    zero = torch.zeros((), dtype=torch.int64, device=query.device)
    return out, sums if compute_log_sumexp else sums[..., :0], zero, zero


def _attention_math(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    dropout_mask: Any = None, *, scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    weights = CALLBACKS.overloads("ops").aten._safe_softmax.default(
        _attention_scores(query, key, attn_mask, is_causal, scale), -1
    )
    if dropout_mask is not None:
        kept = weights.masked_fill(dropout_mask.logical_not(), 0.0)
        return kept @ (value / (1 - dropout_p)), kept
    weights = F.dropout(weights, dropout_p) if dropout_p else weights
    return weights @ value, weights


def _flash_attention_cpu_backward(
    grad_out: Any, query: Any, key: Any, value: Any, out: Any, logsumexp: Any, dropout_p: float, is_causal: bool, *,
    attn_mask: Any = None, scale: Any = None,
) -> Any:  # fmt: skip
    def run(q: Any, k: Any, v: Any) -> Any:
        grouped = q.shape[-3] != k.shape[-3]
        return F.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=grouped)

    return tuple(backward_ops.gradients_of(run, [query, key, value], grad_out))


def _encoder_layer(
    src: Any, embed_dim: int, num_heads: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any, proj_bias: Any,
    use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Any, norm_bias_1: Any, norm_weight_2: Any,
    norm_bias_2: Any, ffn_weight_1: Any, ffn_bias_1: Any, ffn_weight_2: Any, ffn_bias_2: Any, mask: Any = None,
    mask_type: Any = None,
) -> Any:  # fmt: skip
    """Return a transformer encoder layer for inference."""

    def self_attention(x: Any) -> Any:
        return torch._native_multi_head_attention(
            x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type
        )[0]

    def feed_forward(x: Any) -> Any:
        inner = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(inner) if use_gelu else torch.relu(inner), ffn_weight_2, ffn_bias_2)

    def normalize_first(x: Any) -> Any:
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def normalize_second(x: Any) -> Any:
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        src = src + self_attention(normalize_first(src))
        return src + feed_forward(normalize_second(src))
    src = normalize_first(src + self_attention(src))
    return normalize_second(src + feed_forward(src))


# -- losses -----------------------------------------------------------------------------------------


def _nll(self: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100) -> Any:
    return F.nll_loss(self, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction])


def _nll_forward(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """Return the NLL loss and the total weight that it divides by."""
    counted = target != ignore_index
    if reduction == 0:
        total = self.new_zeros(())
    elif weight is None:
        total = counted.sum().to(self.dtype)
    else:
        total = (weight[target.where(counted, 0)] * counted).sum()
    return _nll(self, target, weight, reduction, ignore_index), total


def _nll_backward(
    grad_output: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total_weight: Any
) -> Any:
    return backward_ops.gradients_of(lambda x: _nll(x, target, weight, reduction, ignore_index), [self], grad_output)[0]


def _cross_entropy(
    self: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    return F.cross_entropy(
        self, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction],
        label_smoothing=label_smoothing,
    )  # fmt: skip


def _log_sigmoid_forward(self: Any) -> Any:
    return F.logsigmoid(self), torch.exp(-self.abs())


# -- numbers and linear algebra -------------------------------------------------------------------------


def _fft_arguments(self: Any, dim: Sequence[int], normalization: int, is_complex: bool, last: Any = None) -> Any:
    """The dimensions and the factor of a Fourier transform. The last dimension has `last` elements, if it is given.

    Raises:
        RuntimeError: The dtype, a dimension, the length or the normalization does not fit.
        IndexError: A dimension is out of range.
    """
    if self.dtype.is_complex != is_complex or not (is_complex or self.dtype.is_floating_point):
        kind = "complex" if is_complex else "floating point"
        raise RuntimeError(f"Only supports {kind} dtypes, but found: {self.dtype.scalar_name}")
    dims = wrap_dims(tuple(dim), self.ndim) if dim else ()
    if normalization not in (0, 1, 2):
        raise RuntimeError(f"Unsupported normalization of a Fourier transform: {normalization}")
    sizes = list(self.shape)
    if last is not None:
        if last < 1:
            raise RuntimeError(f"Invalid number of data points ({last}) specified")
        sizes[dims[-1]] = last
    count = math.prod(sizes[d] for d in dims)
    return dims, 1.0 if normalization == 0 or not count else count ** (-normalization / 2)


def _fft_r2c(self: Any, dim: Any, normalization: int, onesided: bool) -> Any:
    return _record("_fft_r2c_core")(self, *_fft_arguments(self, dim, normalization, False), onesided)


def _fft_c2c(self: Any, dim: Any, normalization: int, forward: bool) -> Any:
    dims, scale = _fft_arguments(self, dim, normalization, True)
    return _record("_fft_c2c_core")(self, dims, scale, forward) if dims else self.clone()


def _fft_c2r(self: Any, dim: Any, normalization: int, last_dim_size: int) -> Any:
    arguments = _fft_arguments(self, dim, normalization, True, last_dim_size)
    return _record("_fft_c2r_core")(self, *arguments, last_dim_size)


def _check_info(info: Any, api_name: str, *, is_matrix: bool) -> None:
    if bool((info != 0).any()):
        place = "" if is_matrix else f"(Batch element {int((info != 0).reshape(-1).nonzero()[0])}): "
        raise torch.linalg.LinAlgError(f"{api_name}: {place}The algorithm failed, as info is {info.tolist()}")


def _trilinear(
    i1: Any, i2: Any, i3: Any, expand1: Any, expand2: Any, expand3: Any, sumdim: Any, unroll_dim: int = 1
) -> Any:
    def unsqueeze_to_output(x: Any, dims: Any) -> Any:
        for dim in sorted(dims):
            x = x.unsqueeze(dim)
        return x

    product = unsqueeze_to_output(i1, expand1) * unsqueeze_to_output(i2, expand2) * unsqueeze_to_output(i3, expand3)
    return product.sum(tuple(sumdim)) if sumdim else product


def _lu(A: Any) -> Any:
    return tuple(torch.linalg.lu_factor_ex(A))[:2]


def _eigh(A: Any, UPLO: str = "L", compute_v: bool = True) -> Any:
    if compute_v:
        return tuple(torch.linalg.eigh(A, UPLO))
    return torch.linalg.eigvalsh(A, UPLO), A.new_empty(0)


def _svd(A: Any, full_matrices: bool = False, compute_uv: bool = True, *, driver: Any = None) -> Any:
    if compute_uv:
        return tuple(torch.linalg.svd(A, full_matrices))
    return A.new_empty(0), torch.linalg.svdvals(A), A.new_empty(0)


def _solve(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    result, info = torch.linalg.solve_ex(A, B, left=left, check_errors=check_errors)
    return (result, *_lu(A), info)


def _weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    dims = [d for d in range(v.ndim) if d != dim % v.ndim]
    norm = torch.linalg.vector_norm(v, 2, dims, keepdim=True)
    return v * (g / norm), norm


def _norm(self: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return torch.linalg.vector_norm(self, 2 if p is None else p, dim if dim else None, keepdim, dtype=dtype)


def _powsum(self: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    powers = (self if dtype is None else self.to(dtype)).abs().pow(ord)
    return powers.sum(dim, keepdim) if dim else powers.sum()


def _tensordot(self: Any, other: Any, dims_self: Any, dims_other: Any) -> Any:
    return torch.tensordot(self, other, dims=(list(dims_self), list(dims_other)))


def _cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    names = {1: "use_mm_for_euclid_dist", 2: "donot_use_mm_for_euclid_dist"}
    return torch.cdist(x1, x2, p, names.get(compute_mode, "use_mm_for_euclid_dist_if_necessary"))


def _stft(
    self: Any, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Any = None,
    normalized: bool = False, onesided: Any = None, return_complex: Any = None, align_to_window: Any = None,
) -> Any:  # fmt: skip
    return torch.stft(
        self, n_fft, hop_length, win_length, window, False, "reflect", normalized, onesided, return_complex,
        align_to_window,
    )  # fmt: skip


def _unique_consecutive(self: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None) -> Any:
    found = torch.unique_consecutive(self, return_inverse=True, return_counts=True, dim=dim)
    return _unique_results(self, found, return_inverse or dim is not None, return_counts or dim is not None)


def _unique_dim(
    self: Any, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    return tuple(torch.unique(self, sorted, return_inverse=True, return_counts=True, dim=dim))


def _unique_results(self: Any, found: Any, inverse: bool, counts: bool) -> Any:
    nothing = torch.empty(0, dtype=torch.int64, device=self.device)
    return found[0], found[1] if inverse else nothing, found[2] if counts else nothing


def _new_filled(name: str) -> Callable:
    """Return an op that creates a tensor and fills it by the in-place op of that name."""
    return lambda self, *args, generator=None, **keywords: getattr(torch.empty_like(self), name)(
        *args, *keywords.values(), generator=generator
    )


# The losses with a reduction as a number, and its position. A schema's default is the mean, that of `torch`'s function
# none.
_REDUCED = {
    "binary_cross_entropy_with_logits": 4, "cosine_embedding_loss": 4, "ctc_loss": 5, "hinge_embedding_loss": 3,
    "kl_div": 2, "margin_ranking_loss": 4, "triplet_margin_loss": 7,
}  # fmt: skip


def _averaged_loss(name: str, place: int) -> Callable:
    def loss(*args: Any, **keywords: Any) -> Any:
        given = keywords if len(args) > place else {"reduction": 1, **keywords}
        return getattr(torch, name)(*args, **given)

    return loss


ADAPTERS: dict[str, Callable] = {
    **{name: _averaged_loss(name, place) for name, place in _REDUCED.items()},
    **normalizations.ADAPTERS,
    **resampling.ADAPTERS,
    **backward_ops.ADAPTERS,
    # memory, dtypes and devices
    "_new_zeros_with_same_feature_meta": _new_zeros_with_same_feature_meta, "_to_copy": _to_copy,
    "to.dtype": _to_dtype, "to.device": _to_device, "to.dtype_layout": _to,
    "to.other": _to_other, "_to_cpu": lambda tensors: [t.cpu() for t in tensors],
    "copy": lambda self, src, non_blocking=False: self.clone().copy_(src),
    "bernoulli.Tensor": _new_filled("bernoulli_"),
    "lift": lambda self: self, "lift_fresh": lambda self: self, "lift_fresh_copy": lambda self: self.clone(),
    "_unsafe_view": lambda self, size: self.reshape(size),
    "_efficientzerotensor": lambda size, **options: torch.zeros(size, **options),
    "_mkldnn_transpose": lambda self, dim0, dim1: self.transpose(dim0, dim1).contiguous(),
    "_reshape_copy": lambda self, size: self.reshape(size).clone(),
    "_reshape_alias": lambda self, size, stride: self.as_strided(size, stride),
    "_pin_memory": lambda self, device=None: self.pin_memory(),
    "view.dtype": lambda self, dtype: self.view(dtype),
    "_conj_copy": lambda self: self.conj().clone(), "_neg_view_copy": lambda self: (-self).clone(),
    "_local_scalar_dense": lambda self: self.item(),
    "sym_size.int": lambda self, dim: self.shape[dim], "sym_size": lambda self: list(self.shape),
    "sym_stride.int": lambda self, dim: self.stride(dim), "sym_stride": lambda self: list(self.stride()),
    "size.int": lambda self, dim: self.shape[dim], "size": lambda self: list(self.shape),
    "stride.int": lambda self, dim: self.stride(dim), "stride": lambda self: list(self.stride()),
    "sym_numel": lambda self: self.numel(), "sym_storage_offset": lambda self: self.storage_offset(),
    "sym_is_contiguous": lambda self, memory_format=torch.contiguous_format: self.is_contiguous(
        memory_format=memory_format
    ),
    "_assert_async": lambda self, assert_msg="Expected Tensor with single nonzero value, but got zero": _assert_async(
        self, assert_msg
    ),
    "_assert_scalar": _assert_async, "_assert_tensor_metadata": _assert_tensor_metadata,
    "_functional_assert_async": _assert_async_with_token, "_functional_assert_scalar": _assert_async_with_token,
    "_make_dep_token": lambda **options: torch.empty(0),
    "sym_constrain_range": _assert_scalar_range, "sym_constrain_range_for_size": _assert_scalar_range,
    "_sparse_addmm": lambda self, mat1, mat2, *, beta=1, alpha=1: torch.sparse.addmm(
        self, mat1, mat2, beta=beta, alpha=alpha
    ),
    **{f"fake_quantize_per_{kind}_affine_{ending}": _when_called(f"_fake_quantize_per_{kind}_affine_{ending}")
       for kind in ("tensor", "channel") for ending in ("cachemask", "cachemask_backward")},
    **{name: _when_called(name) for name in (
        "_fake_quantize_learnable_per_tensor_affine_backward", "_fake_quantize_learnable_per_channel_affine_backward",
        "_fused_moving_avg_obs_fq_helper")},
    # indices
    "slice": _slice,
    "index": lambda self, indices: self[_int64_indices(indices)],
    "_unsafe_index": lambda self, indices: self[_int64_indices(indices)],
    "index_put": _index_put, "_unsafe_index_put": _index_put, "index_put_": _index_put_,
    "_index_put_impl_": _index_put_, "_index_put_impl": _index_put,
    "nonzero_numpy": lambda self: list(torch.nonzero(self, as_tuple=True)),
    # layers
    "convolution": _convolution, "_convolution": _convolution, "_convolution_mode": _convolution_mode,
    "thnn_conv2d": _slow_conv, "_slow_conv2d_forward": _slow_conv, "slow_conv3d": _slow_conv,
    "slow_conv3d_forward": _slow_conv, "slow_conv_dilated2d": _slow_conv,
    "slow_conv_dilated3d": _slow_conv, "slow_conv_transpose2d": _slow_conv_transpose,
    "slow_conv_transpose3d": _slow_conv_transpose,
    **{f"max_pool{d}d": _max_pool(d, False) for d in (1, 2, 3)},
    **{f"max_pool{d}d_with_indices": _max_pool(d, True) for d in (1, 2, 3)},
    **{f"avg_pool{d}d": _avg_pool(d) for d in (1, 2, 3)},
    **{f"adaptive_max_pool{d}d": _adaptive_max_pool(d) for d in (1, 2, 3)},
    **{f"_adaptive_avg_pool{d}d": _when_called(f"adaptive_avg_pool{d}d") for d in (2, 3)},
    **{f"fractional_max_pool{d}d": _fractional_max_pool(d) for d in (2, 3)},
    **{f"fractional_max_pool{d}d_backward": _fractional_max_pool_backward(d) for d in (2, 3)},
    **{f"max_unpool{d}d": _max_unpool for d in (2, 3)},
    **{f"{mode[0]}_pad{d}d": _pad(mode[1], d)
       for mode in (("reflection", "reflect"), ("replication", "replicate")) for d in (1, 2, 3)},
    "_pad_circular": _pad("circular"),
    "_prelu_kernel": _prelu, "rrelu_with_noise": _rrelu,
    "elu": lambda self, alpha=1, scale=1, input_scale=1: _record("_elu")(self, alpha, scale, input_scale),
    "_softmax": _softmax("softmax"), "_log_softmax": _softmax("log_softmax"),
    "_safe_softmax": lambda self, dim, dtype=None: _record("_safe_softmax")(self, dim, dtype),
    "embedding_bag": _embedding_bag, "_embedding_bag": _embedding_bag, "_embedding_bag_forward_only": _embedding_bag,
    "col2im": _when_called("col2im"), "im2col": _when_called("im2col"),
    "_weight_norm": lambda v, g, dim=0: _weight_norm(v, g, dim)[0], "_weight_norm_interface": _weight_norm,
    # attention
    "_scaled_dot_product_flash_attention_for_cpu": _flash_attention_cpu,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _flash_attention_cpu_backward,
    "_scaled_dot_product_flash_attention": _flash_attention,
    "_scaled_dot_product_efficient_attention": _efficient_attention,
    "_scaled_dot_product_attention_math": _attention_math, "_transformer_encoder_layer_fwd": _encoder_layer,
    # losses
    **dict.fromkeys(("nll_loss", "nll_loss2d", "nll_loss_nd"), _nll),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), _nll_forward),
    **dict.fromkeys(("nll_loss_backward", "nll_loss2d_backward"), _nll_backward),
    "cross_entropy_loss": _cross_entropy,
    "log_sigmoid": _when_called("logsigmoid"), "log_sigmoid_forward": _log_sigmoid_forward,
    # scalars and linear algebra
    "rsub": lambda self, other, alpha=1: torch.rsub(self, other, alpha=alpha),
    "add.Scalar": _op_with_alpha("add"), "add_.Scalar": _op_with_alpha("add_"), "sub.Scalar": _op_with_alpha("sub"),
    "sub_.Scalar": _op_with_alpha("sub_"),
    "_fft_r2c": _fft_r2c, "_fft_c2c": _fft_c2c, "_fft_c2r": _fft_c2r,
    "_linalg_det": lambda A: (torch.linalg.det(A), *_lu(A)),
    "_linalg_slogdet": lambda A: (*torch.linalg.slogdet(A), *_lu(A)),
    "_linalg_eigh": _eigh, "_linalg_svd": _svd, "_linalg_solve_ex": _solve,
    "_linalg_eigvals": lambda self: torch.linalg.eigvals(self), "linalg__powsum": _powsum, "norm": _norm,
    "_linalg_check_errors": _check_info, "_trilinear": _trilinear, "tensordot": _tensordot, "cdist": _cdist,
    "_cdist_forward": _cdist,
    "_pdist_forward": lambda self, p=2: torch.pdist(self, p),
    "_euclidean_dist": lambda x1, x2: torch.cdist(x1, x2),
    "stft": _stft, "stft.center": _when_called("stft"),
    "einsum": lambda equation, tensors, *, path=None: torch.einsum(equation, *tensors),
    "meshgrid": lambda tensors: list(torch.meshgrid(*tensors, indexing="ij")),
    "meshgrid.indexing": lambda tensors, *, indexing: list(torch.meshgrid(*tensors, indexing=indexing)),
    "cartesian_prod": lambda tensors: torch.cartesian_prod(*tensors),
    "block_diag": lambda tensors: torch.block_diag(*tensors),
    "chain_matmul": lambda matrices: torch.chain_matmul(*matrices),
    "broadcast_tensors": lambda tensors: list(torch.broadcast_tensors(*tensors)),
    **{f"atleast_{d}d.Sequence": (lambda run: lambda tensors: list(run(*tensors)))(_when_called(f"atleast_{d}d"))
       for d in (1, 2, 3)},
    "_stack": lambda tensors, dim=0: torch.stack(tensors, dim),
    "unique_consecutive": _unique_consecutive, "unique_dim": _unique_dim,
    "normal_functional": _new_filled("normal_"), "uniform": _new_filled("uniform_"),
    "exponential": _new_filled("exponential_"), "cauchy": _new_filled("cauchy_"),
    "geometric": _new_filled("geometric_"), "log_normal": _new_filled("log_normal_"),
    "random": _new_filled("random_"),
}  # fmt: skip
