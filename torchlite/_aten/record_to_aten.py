"""Lowers op records to the ATen ops of which PyTorch composes them, as dispatch modes see them.

A function takes all parameters of the record. It returns NotImplemented if the record's own parts match PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torchlite as torch

from .._dispatch import call
from .._dispatch.public_functions import nn_functional as F
from .._symbolic_shapes import UnbackedInt
from . import ops
from .record_to_overload import REDUCTIONS, to_library_argument

aten = ops.aten


def call_overload(overload: Any, *values: Any, **keywords: Any) -> Any:
    """Call an overload with a program's values: expand numbers to lists, drop defaults."""
    schema = overload._schema
    bound = []
    for place, argument in enumerate(schema.arguments):
        value = values[place] if place < len(values) else keywords.get(argument.name, argument.default_value)
        bound.append(to_library_argument(value, argument))
    args, kwargs = schema.call_form(bound)
    return overload(*args, **kwargs)


def _as_list(value: Any, count: int) -> list:
    return list(value) if isinstance(value, (tuple, list)) else [value] * count


# -- pools --------------------------------------------------------------------------------------


def _unsqueeze_pool_size(value: Any) -> list:
    """Return a one-dimensional pool's parameter for two dimensions, with 1 or 0 for the added one."""
    return [0, *_as_list(value, 1)]


def _unsqueeze_pool_parameter(value: Any) -> list:
    return [1, *_as_list(value, 1)] if value is not None and value != () and value != [] else []


def _max_pool(dims: int, always: bool = False) -> Callable:
    def pool(
        input: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, with_indices: bool = True
    ) -> Any:
        if dims == 1:
            wide = call_overload(aten.unsqueeze.default, input, -2)
            found = call_overload(
                aten.max_pool2d_with_indices.default,
                wide,
                _unsqueeze_pool_parameter(kernel),
                _unsqueeze_pool_parameter(stride),
                _unsqueeze_pool_size(padding),
                _unsqueeze_pool_parameter(dilation),
                ceil_mode,
            )
            found = tuple(call_overload(aten.squeeze.dim, part, -2) for part in found)
        else:
            overload = getattr(aten, f"max_pool{dims}d_with_indices").default
            found = call_overload(overload, input, kernel, stride or [], padding, dilation, ceil_mode)
        return found if with_indices or always else found[0]

    return pool


def _inner_max_pool(with_indices: bool) -> Callable:
    def pool(input: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
        return _max_pool(len(kernel))(input, kernel, stride, padding, dilation, ceil_mode, with_indices)

    return pool


def _avg_pool(
    input: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
    divisor_override: Any = None,
) -> Any:  # fmt: skip
    dims = len(kernel) if isinstance(kernel, (tuple, list)) else 1
    if dims > 1:
        pool = getattr(aten, f"avg_pool{dims}d").default
        return call_overload(pool, input, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
    wide = call_overload(aten.unsqueeze.default, input, -2)
    found = call_overload(
        aten.avg_pool2d.default, wide, _unsqueeze_pool_parameter(kernel), _unsqueeze_pool_parameter(stride or kernel),
        _unsqueeze_pool_size(padding), ceil_mode,
        count_include_pad,
    )  # fmt: skip
    return call_overload(aten.squeeze.dim, found, -2)


def _adaptive_size(input: Any, size: Any, dims: int) -> list:
    shape = input.shape[-dims:]
    return [n if s is None else s for s, n in zip(_as_list(size, dims), shape, strict=True)]


def _adaptive_avg_pool(dims: int | None) -> Callable:
    def pool(input: Any, output_size: Any) -> Any:
        count = dims or len(output_size)
        size = _adaptive_size(input, output_size, count)
        if count == 1:
            wide = call_overload(aten.unsqueeze.default, input, -2)
            return call_overload(aten.squeeze.dim, pool_of(wide, [1, *size]), -2)
        return pool_of(input, size)

    def pool_of(input: Any, size: list) -> Any:
        if all(n == 1 for n in size):
            return call_overload(aten.mean.dim, input, [-1 - d for d in range(len(size))], True)
        return call_overload(getattr(aten, f"_adaptive_avg_pool{len(size)}d").default, input, size)

    return pool


def _adaptive_max_pool(dims: int | None, always: bool = False) -> Callable:
    def pool(input: Any, output_size: Any, return_indices: bool = True) -> Any:
        count = dims or len(output_size)
        size = _adaptive_size(input, output_size, count)
        if count == 1:
            wide = call_overload(aten.unsqueeze.default, input, -2)
            found = call_overload(aten.adaptive_max_pool2d.default, wide, [1, *size])
            found = tuple(call_overload(aten.squeeze.dim, part, -2) for part in found)
        else:
            found = call_overload(getattr(aten, f"adaptive_max_pool{count}d").default, input, size)
        return found if return_indices or always else found[0]

    return pool


def _fractional_max_pool(input: Any, random_samples: Any, kernel: Any, output_size: Any) -> Any:
    return call_overload(
        getattr(aten, f"fractional_max_pool{len(kernel)}d").default, input, kernel, output_size, random_samples
    )


def _max_unpool(dims: int) -> Callable:
    def unpool(input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Any:
        kernel = _as_list(kernel_size, dims)
        stride = _as_list(stride, dims) if stride not in (None, (), []) else kernel
        padding = _as_list(padding, dims)
        if output_size is None:
            shape = input.shape[-dims:]
            size = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(shape, stride, kernel, padding, strict=True)]
        else:
            size = list(output_size)[-dims:]
        if dims == 1:
            wide, places = (call_overload(aten.unsqueeze.default, x, -1) for x in (input, indices))
            return call_overload(
                aten.squeeze.dim, call_overload(aten.max_unpool2d.default, wide, places, [*size, 1]), -1
            )
        if dims == 2:
            return call_overload(aten.max_unpool2d.default, input, indices, size)
        return call_overload(aten.max_unpool3d.default, input, indices, size, stride, padding)

    return unpool


# -- images --------------------------------------------------------------------------------------

_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}
_RESIZED = {
    "nearest": "upsample_nearest{}d", "nearest-exact": "_upsample_nearest_exact{}d", "linear": "upsample_linear{}d",
    "bilinear": "upsample_bilinear{}d", "bicubic": "upsample_bicubic{}d", "trilinear": "upsample_trilinear{}d",
    "lanczos": "upsample_lanczos{}d",
}  # fmt: skip


def _resize(input: Any, size: Any, mode: str, align_corners: bool, factors: Any, antialias: bool) -> Any:
    name = _RESIZED[mode].format(len(size))
    if antialias or mode == "lanczos":
        name = f"_{name}_aa"
    corners = () if mode.startswith("nearest") else (align_corners,)
    return call_overload(getattr(aten, name).default, input, size, *corners, *factors)


def _grid_sample(input: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool) -> Any:
    sampler = getattr(aten, f"grid_sampler_{input.ndim - 2}d").default
    return call_overload(
        sampler, input, grid, _INTERPOLATION_MODES[mode], _PADDING_MODES[padding_mode], bool(align_corners)
    )


def _pad(input: Any, pad: Any, mode: str, value: Any) -> Any:
    if mode == "constant":
        return call_overload(aten.constant_pad_nd.default, input, list(pad), 0.0 if value is None else value)
    dims = len(pad) // 2
    if mode == "circular" or not 1 <= dims <= 3 or input.ndim not in (dims + 1, dims + 2):
        return NotImplemented
    name = {"reflect": "reflection", "replicate": "replication"}.get(mode)
    if name is None:
        return NotImplemented
    return call_overload(getattr(aten, f"{name}_pad{dims}d").default, input, list(pad))


# -- normalizations ------------------------------------------------------------------------------


def _batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
    eps: float, cudnn_enabled: bool = True,
) -> Any:  # fmt: skip
    normalize = aten.native_batch_norm.default
    return call_overload(normalize, input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def _batch_norm_train(input: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Return batch norm by the batch's mean and variance."""
    found, mean, scale = call_overload(aten.native_batch_norm.default, input, weight, bias, None, None, True, 0.0, eps)
    return found, mean, call_overload(aten.sub.Tensor, call_overload(aten.pow.Tensor_Scalar, scale, -2), eps)


def _instance_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool, momentum: float,
    eps: float, cudnn_enabled: bool = True,
) -> Any:  # fmt: skip
    if running_mean is not None or running_var is not None:
        return NotImplemented
    n, c = input.shape[:2]
    weight, bias = (None if p is None else call_overload(aten.repeat.default, p, [n]) for p in (weight, bias))
    rows = call_overload(aten.view.default, input, [1, n * c, *input.shape[2:]])
    found = _batch_norm(rows, weight, bias, None, None, use_input_stats, momentum, eps)
    return call_overload(aten.view.default, found, list(input.shape))


def _group_norm(input: Any, weight: Any, bias: Any, groups: int, eps: float) -> Any:
    n, c = input.shape[:2]
    normalize = aten.native_group_norm.default
    return call_overload(normalize, input, weight, bias, n, c, math.prod(input.shape[2:]), groups, eps)[0]


def _layer_norm(
    input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float, cudnn_enable: bool = True
) -> Any:
    return call_overload(aten.native_layer_norm.default, input, _as_list(normalized_shape, 1), weight, bias, eps)[0]


def _rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: Any) -> Any:
    dims = [-1 - d for d in range(len(_as_list(normalized_shape, 1)))][::-1]
    squares = call_overload(aten.mean.dim, call_overload(aten.pow.Tensor_Scalar, input, 2), dims, True)
    eps = torch.finfo(input.dtype).eps if eps is None else eps
    found = call_overload(
        aten.mul.Tensor, input, call_overload(aten.rsqrt.default, call_overload(aten.add_.Scalar, squares, eps))
    )
    return found if weight is None else call_overload(aten.mul.Tensor, found, weight)


# -- losses -----------------------------------------------------------------------------------------


def _uses_legacy_reduction(size_average: Any, reduce: Any) -> bool:
    """True if the deprecated reduction arguments are used."""
    return size_average is not None or reduce is not None


def _nll(
    input: Any, target: Any, weight: Any, size_average: Any, ignore_index: int, reduce: Any, reduction: str
) -> Any:
    if _uses_legacy_reduction(size_average, reduce) or reduction not in REDUCTIONS or input.ndim not in (1, 2, 4):
        return NotImplemented
    forward = aten.nll_loss2d_forward.default if input.ndim == 4 else aten.nll_loss_forward.default
    return call_overload(forward, input, target, weight, REDUCTIONS[reduction], ignore_index)[0]


def _l1(input: Any, target: Any, size_average: Any, reduce: Any, reduction: str, weight: Any = None) -> Any:
    if _uses_legacy_reduction(size_average, reduce) or weight is not None or reduction not in REDUCTIONS:
        return NotImplemented
    found = call_overload(aten.abs.default, call_overload(aten.sub.Tensor, input, target))
    return _apply_reduction(found, reduction)


def _apply_reduction(loss: Any, reduction: str) -> Any:
    if reduction == "none":
        return loss
    return call_overload(aten.mean.default if reduction == "mean" else aten.sum.default, loss)


# -- recurrent layers ----------------------------------------------------------------------------------


def _rnn_input_projection(input: Any, weight: Any, bias: Any, reverse: bool) -> list:
    """Return the input projections of all steps as one product."""
    steps = list(call_overload(aten.unbind.int, F.linear(input, weight, bias)))
    return steps[::-1] if reverse else steps


def _stack_outputs(outputs: list, reverse: bool) -> Any:
    return call_overload(aten.stack.default, outputs[::-1] if reverse else outputs)


def _lstm_gates(gates: Any, cell: Any) -> tuple[Any, Any]:
    into, forget, new, out = call_overload(aten.unsafe_split.Tensor, gates, gates.shape[1] // 4, 1)
    into, forget, out = (call_overload(aten.sigmoid.default, part) for part in (into, forget, out))
    new = call_overload(aten.tanh.default, new)
    cell = call_overload(
        aten.add.Tensor, call_overload(aten.mul.Tensor, forget, cell), call_overload(aten.mul.Tensor, into, new)
    )
    return call_overload(aten.mul.Tensor, out, call_overload(aten.tanh.default, cell)), cell


def _lstm_layer(input: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, reverse: bool) -> Any:
    hidden, cell, outputs = h0, c0, []
    for part in _rnn_input_projection(input, w_ih, b_ih, reverse):
        gates = call_overload(aten.add.Tensor, F.linear(hidden, w_hh, b_hh), part)
        hidden, cell = _lstm_gates(gates, cell)
        outputs.append(hidden)
    return _stack_outputs(outputs, reverse), hidden, cell, None, None


def _gru_layer(input: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, reverse: bool) -> Any:
    hidden, outputs = h0, []
    for part in _rnn_input_projection(input, w_ih, b_ih, reverse):
        size = hidden.shape[-1]
        of_input = call_overload(aten.unsafe_split.Tensor, part, size, 1)
        of_hidden = call_overload(aten.unsafe_split.Tensor, F.linear(hidden, w_hh, b_hh), size, 1)
        reset = call_overload(aten.sigmoid.default, call_overload(aten.add.Tensor, of_hidden[0], of_input[0]))
        keep = call_overload(aten.sigmoid.default, call_overload(aten.add.Tensor, of_hidden[1], of_input[1]))
        new = call_overload(
            aten.tanh.default,
            call_overload(aten.add.Tensor, of_input[2], call_overload(aten.mul.Tensor, of_hidden[2], reset)),
        )
        change = call_overload(aten.mul.Tensor, call_overload(aten.sub.Tensor, hidden, new), keep)
        hidden = call_overload(aten.add.Tensor, change, new)
        outputs.append(hidden)
    return _stack_outputs(outputs, reverse), hidden, None


# -- shapes ----------------------------------------------------------------------------------------------


def _split(input: Any, sizes: Any, dim: int, split_size: Any) -> Any:
    sizes = split_size if sizes is None else sizes
    return tuple(_split_sizes(input, sizes, dim))


def _split_sizes(input: Any, sizes: Any, dim: int) -> Any:
    if isinstance(sizes, (tuple, list)):
        return call_overload(aten.split_with_sizes.default, input, list(sizes), dim)
    return call_overload(aten.split.Tensor, input, sizes, dim)


def _chunk(input: Any, chunks: int, dim: int) -> Any:
    n = input.shape[dim]
    if chunks < 1 or not n:
        return NotImplemented
    return tuple(call_overload(aten.split.Tensor, input, -(-n // chunks), dim))


def _as_tensor(value: Any, other: Any) -> Any:
    if isinstance(value, call.Tensor):
        return value
    like = other.dtype if isinstance(other, call.Tensor) else torch.get_default_dtype()
    kept = like if not isinstance(value, complex) and (like.is_floating_point or not isinstance(value, float)) else None
    device = other.device if isinstance(other, call.Tensor) else None
    return call_overload(
        aten.scalar_tensor.default, value, dtype=kept or torch.result_type(other, value), device=device
    )


def _select_overload_results(input: Any, other: Any, condition: Any) -> Any:
    if not isinstance(input, call.Tensor) and not isinstance(other, call.Tensor):
        return NotImplemented
    first, second = _as_tensor(input, other), _as_tensor(other, input)
    return call_overload(aten.where.self, condition, first, second)


def _var_or_std(name: str) -> Callable:
    """Return the lowering of var or std."""
    overload = getattr(aten, name).correction

    def var_or_std(input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
        if isinstance(dim, bool):  # deprecated signature with `unbiased` first
            dim, unbiased = None, dim
        if correction is None and unbiased is not None:
            correction = int(unbiased)
        if correction is None and dim is not None:
            correction = 1
        return call_overload(overload, input, None if dim == () else dim, correction=correction, keepdim=keepdim)

    return var_or_std


def _embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool, mode: int, sparse: bool,
    per_sample_weights: Any, include_last_offset: bool, padding_idx: Any,
) -> Any:  # fmt: skip
    wants = torch.is_grad_enabled() and weight.requires_grad
    bag = aten._embedding_bag.default if wants else aten._embedding_bag_forward_only.default
    return call_overload(
        bag, weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
        -1 if padding_idx is None else padding_idx,
    )  # fmt: skip


def _attention(query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: Any) -> Any:
    given = None if scale is None or math.isclose(scale, query.shape[-1] ** -0.5) else scale
    attend = aten._scaled_dot_product_flash_attention_for_cpu.default
    return call_overload(attend, query, key, value, 0.0, is_causal, attn_mask=attn_mask, scale=given)[0]


def _select_results(name: str, *places: int) -> Callable:
    """Return the lowering to an ATen op with more results: those at `places`, or the first alone."""
    overload = getattr(aten, name).default

    def call_and_select(*values: Any) -> Any:
        found = call_overload(overload, *values)
        return tuple(found[place] for place in places) if places else found[0]

    return call_and_select


def _pinv(input: Any, rtol: Any, atol: Any, hermitian: bool) -> Any:
    limits = [
        value
        if isinstance(value, call.Tensor)
        else call_overload(aten.full.default, [], value, dtype=input.real.dtype, device=input.device, pin_memory=False)
        for value in (atol, rtol)
    ]
    return call_overload(aten.linalg_pinv.atol_rtol_tensor, input, atol=limits[0], rtol=limits[1], hermitian=hermitian)


def _fft(overload: Any, input: Any, dim: Any, scale: float, last: Any, sizes: Any = None) -> Any:
    """Return a Fourier transform by its normalization mode (1, 1 / sqrt(n), 1 / n), or with another factor."""
    count = math.prod((sizes or input.shape)[d] for d in dim)
    ways = [way for way in (0, 1, 2) if not count or math.isclose(scale, count ** (-way / 2), rel_tol=1e-12)]
    result = call_overload(overload, input, dim, ways[0] if ways else 0, last)
    return result if ways else call_overload(aten.mul.Scalar, result, scale)


def _fft_r2c(input: Any, dim: Any, scale: float, onesided: bool) -> Any:
    return _fft(aten._fft_r2c.default, input, dim, scale, onesided)


def _fft_c2c(input: Any, dim: Any, scale: float, forward: bool) -> Any:
    return _fft(aten._fft_c2c.default, input, dim, scale, forward)


def _fft_c2r(input: Any, dim: Any, scale: float, last_size: int) -> Any:
    sizes = list(input.shape)
    sizes[dim[-1]] = last_size
    return _fft(aten._fft_c2r.default, input, dim, scale, last_size, sizes)


def _arange(input: Any, start: Any, end: Any, step: Any, dtype: Any) -> Any:
    return call_overload(aten.arange.start_step, start, end, step, dtype=dtype, device=input.device, pin_memory=False)


def _reshape(input: Any, shape: Any) -> Any:
    """Return a view if possible, else a view of a copy."""
    sizes = list(shape)
    if any(isinstance(n, UnbackedInt) for n in sizes):  # copy: an unbacked size cannot be compared
        return call_overload(
            aten.view.default, call_overload(aten.clone.default, input, memory_format=torch.contiguous_format), sizes
        )
    if -1 in sizes:
        rest = -math.prod(sizes)
        if rest <= 0 or input.numel() % rest:
            return NotImplemented  # its error is the right one
        sizes[sizes.index(-1)] = input.numel() // rest
    if math.prod(sizes) != input.numel() or any(n < 0 for n in sizes):
        return NotImplemented
    if _can_view(input, sizes):
        return call_overload(aten.view.default, input, sizes)
    return call_overload(
        aten._unsafe_view.default,
        call_overload(aten.clone.default, input, memory_format=torch.contiguous_format),
        sizes,
    )


def _can_view(input: Any, sizes: list) -> bool:
    """True if each new dimension lies within old dimensions that are contiguous with each other."""
    if not input.numel() or input.is_contiguous():
        return True
    groups: list[int] = []  # sizes of blocks of contiguous dimensions
    last = None
    for n, stride in zip(input.shape, input.stride(), strict=True):
        if n == 1:
            continue
        if groups and last == n * stride:
            groups[-1] *= n
        else:
            groups.append(n)
        last = stride
    places = iter(groups)
    block = next(places, 1)
    for n in sizes:
        if block == 1 and n > 1:
            block = next(places, 1)
        if block % n:
            return False
        block //= n
    return True


def _convolution_backward(
    grad_output: Any, input: Any, weight: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, needs: Any,
) -> Any:  # fmt: skip
    count = weight.shape[1] * groups if transposed else weight.shape[0]
    return call_overload(
        aten.convolution_backward.default, grad_output, input, weight, [count] if needs[2] else [0], stride, padding,
        dilation, transposed, output_padding, groups, needs,
    )  # fmt: skip


def _fake_quantize_by_tensors(
    input: Any, scale: Any, zero_point: Any, enabled: Any, quant_min: int, quant_max: int
) -> Any:
    """PyTorch passes a flag that is on."""
    on = call_overload(aten.ones.default, [1], dtype=torch.int64, device=input.device, layout=torch.strided)
    return aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default(
        input, scale, zero_point, on, quant_min, quant_max
    )


LOWERED: dict[str, Callable] = {
    "_fake_quantize_by_tensors": _fake_quantize_by_tensors,
    **{f"_fake_quantize_per_{kind}_affine_cachemask_backward": lambda grad, mask: aten.mul.Tensor(grad, mask)
       for kind in ("tensor", "channel")},
    **{f"max_pool{d}d": _max_pool(d) for d in (1, 2, 3)},
    **{f"max_pool{d}d_with_indices": _max_pool(d, always=True) for d in (1, 2, 3)},
    "_max_pool": _inner_max_pool(False), "_max_pool_with_indices": _inner_max_pool(True),
    "avg_pool1d": _avg_pool, "_avg_pool": _avg_pool,
    **{f"adaptive_avg_pool{d}d": _adaptive_avg_pool(d) for d in (1, 2, 3)},
    "_adaptive_avg_pool": _adaptive_avg_pool(None),
    **{f"adaptive_max_pool{d}d": _adaptive_max_pool(d) for d in (1, 2, 3)},
    **{f"adaptive_max_pool{d}d_with_indices": _adaptive_max_pool(d, always=True) for d in (1, 2, 3)},
    "_adaptive_max_pool": _adaptive_max_pool(None), "_fractional_max_pool": _fractional_max_pool,
    **{f"max_unpool{d}d": _max_unpool(d) for d in (1, 2, 3)},
    "_resize": _resize, "_grid_sample": _grid_sample, "pad": _pad,
    "batch_norm": _batch_norm, "_batch_norm_train": _batch_norm_train,
    "instance_norm": _instance_norm, "_group_norm": _group_norm, "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "nll_loss": _nll, "l1_loss": _l1, "logsigmoid": _select_results("log_sigmoid_forward"),
    "_lstm_layer": _lstm_layer, "_gru_layer": _gru_layer, "embedding_bag": _embedding_bag, "_sdpa": _attention,
    "_convolution_backward": _convolution_backward,
    "_softmax_backward": lambda grad, out, dim: call_overload(
        aten._softmax_backward_data.default, grad, out, dim, out.dtype
    ),
    "_log_softmax_backward": lambda grad, out, dim: call_overload(
        aten._log_softmax_backward_data.default, grad, out, dim, out.dtype
    ),
    "_relu_backward": lambda grad, out: call_overload(aten.threshold_backward.default, grad, out, 0),
    "_embedding_backward": lambda grad, indices, rows, padding_idx, scale_grad_by_freq: call_overload(
        aten.embedding_dense_backward.default, grad, indices, rows, padding_idx, scale_grad_by_freq
    ),
    "split": _split, "chunk": _chunk, "_choose": _select_overload_results,
    "var": _var_or_std("var"), "std": _var_or_std("std"), "var_mean": _var_or_std("var_mean"),
    "std_mean": _var_or_std("std_mean"),
    "square": lambda input: call_overload(aten.pow.Tensor_Scalar, input, 2),
    "relu6": lambda input: call_overload(aten.hardtanh.default, input, 0, 6),
    "selu": lambda input: call_overload(aten.elu.default, input, 1.6732632423543772, 1.0507009873554805),
    "_cdist_core": lambda x1, x2, p: call_overload(aten._cdist_forward.default, x1, x2, p, None),
    "pdist": lambda input, p: call_overload(aten._pdist_forward.default, input, p),
    "outer": lambda input, vec2: call_overload(
        aten.mul.Tensor, call_overload(aten.view.default, input, [input.shape[0], 1]), vec2
    ),
    "linalg_svdvals": lambda A, driver: call_overload(aten._linalg_svd.default, A, False, False, driver=driver)[1],
    "_cholesky_core": _select_results("linalg_cholesky_ex", 0, 1), "_inv_core": _select_results("linalg_inv_ex", 0, 1),
    "_solve_core": _select_results("_linalg_solve_ex", 0, 3), "_pinv_core": _pinv,
    "_det_core": _select_results("_linalg_det"),
    "_slogdet_core": _select_results("_linalg_slogdet", 0, 1), "_svd_core": _select_results("_linalg_svd", 0, 1, 2),
    "_svdvals_core": lambda input: call_overload(aten._linalg_svd.default, input, False, False)[1],
    "_eigh_core": _select_results("_linalg_eigh", 0, 1),
    "_eigvalsh_core": lambda input, UPLO: call_overload(aten._linalg_eigh.default, input, UPLO, False)[0],
    "_eig_core": _select_results("linalg_eig", 0, 1),
    "_eigvals_core": lambda input: call_overload(aten._linalg_eigvals.default, input),
    "_householder_product_core": lambda input, tau: call_overload(aten.linalg_householder_product.default, input, tau),
    "_triangular_core": lambda A, B, upper, unitriangular: call_overload(
        aten.linalg_solve_triangular.default, A, B, upper=upper, unitriangular=unitriangular
    ),
    "_lu_core": _select_results("linalg_lu_factor_ex", 0, 1, 2),
    "_fft_r2c_core": _fft_r2c, "_fft_c2c_core": _fft_c2c, "_fft_c2r_core": _fft_c2r,
    "_new_arange": _arange, "reshape": _reshape, "_view": _reshape, "_with_strides": lambda input, strides: input,
    "_with_constant_gradient": lambda input: input, "_with_absent_gradient": lambda input: input,
    "_repeat_interleave_indices": lambda repeats: call_overload(aten.repeat_interleave.Tensor, repeats),
    "_unique_rows": lambda input, dim: call_overload(aten.unique_dim.default, input, dim, True, True, True),
    "_unique_runs": lambda input, dim: call_overload(aten.unique_consecutive.default, input, True, True, dim),
    "_unique_flat": lambda input, inverse, counts: call_overload(aten._unique2.default, input, True, inverse, counts),
}  # fmt: skip
