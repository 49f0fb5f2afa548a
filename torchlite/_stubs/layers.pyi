# Made by tools/make_stubs.py from the op records: do not edit.
"""Functions of ops: layers."""

import builtins as _b
from collections.abc import Sequence
from typing import Any, Literal, overload

from .aliases import Ints, Number, OutputSize
from .tensor import Tensor

def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: _b.bool = False,
    mode: _b.int = 0,
    sparse: _b.bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: _b.bool = False,
    padding_idx: _b.int | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
def _embedding_bag_forward_only(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: _b.bool = False,
    mode: _b.int = 0,
    sparse: _b.bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: _b.bool = False,
    padding_idx: _b.int | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
def _native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: _b.int,
    num_head: _b.int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: _b.bool = True,
    average_attn_weights: _b.bool = True,
    mask_type: _b.int | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor | None]: ...
def _transform_bias_rescale_qkv(
    qkv: Tensor, qkv_bias: Tensor, num_heads: _b.int, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, Tensor, Tensor]: ...
def adaptive_avg_pool1d(input: Tensor, output_size: OutputSize, *, out: Tensor | None = None) -> Tensor: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, return_indices: Literal[False] = False, *, out: Tensor | None = None
) -> Tensor: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, *, return_indices: Literal[True], out: Tensor | None = None
) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, return_indices: _b.bool, *, out: Tensor | None = None
) -> Tensor | tuple[Tensor, Tensor]: ...
def affine_grid_generator(
    theta: Tensor, size: Ints, align_corners: _b.bool, *, out: Tensor | None = None
) -> Tensor: ...
def alpha_dropout(input: Tensor, p: _b.float, train: _b.bool, *, out: Tensor | None = None) -> Tensor: ...
def alpha_dropout_(input: Tensor, p: _b.float, train: _b.bool) -> Tensor: ...
def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: _b.bool = False,
    count_include_pad: _b.bool = True,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: _b.bool,
    momentum: _b.float,
    eps: _b.float,
    cudnn_enabled: _b.bool = True,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def batch_norm_update_stats(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: _b.float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def bilinear(
    input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor: ...
def channel_shuffle(input: Tensor, groups: _b.int, *, out: Tensor | None = None) -> Tensor: ...
def constant_pad_nd(input: Tensor, pad: Ints, value: Number = 0, *, out: Tensor | None = None) -> Tensor: ...
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | _b.str = 0,
    dilation: Ints = 1,
    groups: _b.int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | _b.str = 0,
    dilation: Ints = 1,
    groups: _b.int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | _b.str = 0,
    dilation: Ints = 1,
    groups: _b.int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: Ints = 0, *, out: Tensor | None = None) -> Tensor: ...
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: _b.int = 1,
    dilation: Ints = 1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: _b.int = 1,
    dilation: Ints = 1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: _b.int = 1,
    dilation: Ints = 1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: _b.bool,
    output_padding: Ints,
    groups: _b.int,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def cosine_similarity(
    x1: Tensor, x2: Tensor, dim: _b.int = 1, eps: _b.float = 1e-08, *, out: Tensor | None = None
) -> Tensor: ...
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Ints,
    target_lengths: Tensor | Ints,
    blank: _b.int = 0,
    reduction: _b.int | _b.str = 1,
    zero_infinity: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def dropout(input: Tensor, p: _b.float, train: _b.bool, *, out: Tensor | None = None) -> Tensor: ...
def dropout_(input: Tensor, p: _b.float, train: _b.bool) -> Tensor: ...
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: _b.int = -1,
    scale_grad_by_freq: _b.bool = False,
    sparse: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: _b.bool = False,
    mode: _b.int = 0,
    sparse: _b.bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: _b.bool = False,
    padding_idx: _b.int | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: _b.float, norm_type: _b.float = 2.0) -> Tensor: ...
def feature_alpha_dropout(input: Tensor, p: _b.float, train: _b.bool, *, out: Tensor | None = None) -> Tensor: ...
def feature_alpha_dropout_(input: Tensor, p: _b.float, train: _b.bool) -> Tensor: ...
def feature_dropout(input: Tensor, p: _b.float, train: _b.bool, *, out: Tensor | None = None) -> Tensor: ...
def feature_dropout_(input: Tensor, p: _b.float, train: _b.bool) -> Tensor: ...
def grid_sampler(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: _b.int,
    padding_mode: _b.str,
    align_corners: _b.bool,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def grid_sampler_2d(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: _b.int,
    padding_mode: _b.str,
    align_corners: _b.bool,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def grid_sampler_3d(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: _b.int,
    padding_mode: _b.str,
    align_corners: _b.bool,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def group_norm(
    input: Tensor,
    num_groups: _b.int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _b.float = 1e-05,
    cudnn_enabled: _b.bool = True,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def gru(
    input: Tensor,
    hx: Tensor | Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: _b.bool,
    num_layers: _b.int,
    dropout: Any,
    train: _b.bool,
    bidirectional: _b.bool,
    batch_first: _b.bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...
def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: _b.bool,
    momentum: _b.float,
    eps: _b.float,
    cudnn_enabled: _b.bool = True,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _b.float = 1e-05,
    cudnn_enable: _b.bool = True,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def lstm(
    input: Tensor,
    hx: Tensor | Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: _b.bool,
    num_layers: _b.int,
    dropout: Any,
    train: _b.bool,
    bidirectional: _b.bool,
    batch_first: _b.bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
def lstm_cell(
    input: Tensor,
    hx: Tensor | Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    return_indices: Literal[False] = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: Literal[True],
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: _b.bool,
    out: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    return_indices: Literal[False] = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> Tensor: ...
@overload
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: Literal[True],
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: _b.bool,
    out: Sequence[Tensor] | None = None,
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    return_indices: Literal[False] = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: Literal[True],
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: _b.bool,
    out: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    return_indices: Literal[False] = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: Literal[True],
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: _b.bool,
    out: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]: ...
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: _b.bool,
    momentum: _b.float,
    eps: _b.float,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
def native_channel_shuffle(input: Tensor, groups: _b.int, *, out: Tensor | None = None) -> Tensor: ...
def native_dropout(
    input: Tensor, p: _b.float, train: _b.bool, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, Tensor]: ...
def native_dropout_backward(
    grad_output: Tensor, mask: Tensor, scale: _b.float, *, out: Tensor | None = None
) -> Tensor: ...
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: _b.int,
    C: _b.int,
    HxW: _b.int,
    group: _b.int,
    eps: _b.float,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
def native_layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: _b.float,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
def pairwise_distance(
    x1: Tensor,
    x2: Tensor,
    p: _b.float = 2.0,
    eps: _b.float = 1e-06,
    keepdim: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def pixel_shuffle(input: Tensor, upscale_factor: _b.int, *, out: Tensor | None = None) -> Tensor: ...
def pixel_unshuffle(input: Tensor, downscale_factor: _b.int, *, out: Tensor | None = None) -> Tensor: ...
def rms_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    eps: _b.float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def rnn_relu(
    input: Tensor,
    hx: Tensor | Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: _b.bool,
    num_layers: _b.int,
    dropout: Any,
    train: _b.bool,
    bidirectional: _b.bool,
    batch_first: _b.bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...
def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def rnn_tanh(
    input: Tensor,
    hx: Tensor | Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: _b.bool,
    num_layers: _b.int,
    dropout: Any,
    train: _b.bool,
    bidirectional: _b.bool,
    batch_first: _b.bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...
def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
