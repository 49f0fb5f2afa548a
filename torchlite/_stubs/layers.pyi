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
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Reduces bags of rows of a matrix; the argument order is that of PyTorch's operator."""

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
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Reduces bags of rows of a matrix; the argument order is that of PyTorch's operator."""

def _grid_sampler_2d_cpu_fallback(
    input: Tensor, grid: Tensor, interpolation_mode: _b.int, padding_mode: _b.str, align_corners: _b.bool
) -> Tensor:
    """Samples the input at given positions; the modes are numbers."""

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
) -> tuple[Tensor, Tensor | None]:
    """The computation of `nn.MultiheadAttention` on batches (N, L, E): the result (N, L, E) and the weights (N, L, L),
    per head (N, H, L, L) unless averaged, None unless needed. `mask` is true at positions that are not attended to:
    (L, L) for `mask_type` 0, (N, L) for 1, (N, H, L, L) for 2.
    """

def _transform_bias_rescale_qkv(qkv: Tensor, qkv_bias: Tensor, num_heads: _b.int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values by heads, (N, H, L, E / H) each, from their joined projections (N, L, 3 E) and bias
    (3 E); queries are divided by the root of their length.
    """

def adaptive_avg_pool1d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Computes the average of windows that divide 1 spatial dimension(s) into a given number."""

def adaptive_max_pool1d(input: Tensor, output_size: OutputSize) -> tuple[Tensor, Tensor]:
    """Computes the maxima over windows that divide the input into `output_size` parts, and their indices."""

def affine_grid_generator(theta: Tensor, size: Ints, align_corners: _b.bool) -> Tensor:
    """Returns the positions of an affine map of a sampling grid, without the checks of `affine_grid`."""

def alpha_dropout(input: Tensor, p: _b.float, train: _b.bool) -> Tensor:
    """Drops elements so that mean and variance stay."""

def alpha_dropout_(input: Tensor, p: _b.float, train: _b.bool) -> Tensor:
    """Drops elements so that mean and variance stay, in place."""

def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: _b.bool = False,
    count_include_pad: _b.bool = True,
) -> Tensor:
    """Computes the average of each window of 1 spatial dimension(s)."""

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
) -> Tensor:
    """Normalizes each channel (Ioffe and Szegedy, 2015); the argument order is that of PyTorch's operator."""

def batch_norm_update_stats(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: _b.float
) -> Tensor:
    """Computes the statistics of each channel and moves the running ones towards them in place."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Applies a bilinear map to the last dimensions of two inputs: ``y[k] = input1^T weight[k] input2 + bias[k]``."""

def channel_shuffle(input: Tensor, groups: _b.int) -> Tensor:
    """Interleaves groups of channels (Zhang et al., 2018)."""

def constant_pad_nd(input: Tensor, pad: Ints, value: Number = 0) -> Tensor:
    """Adds a border with a value."""

def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | _b.str = 0,
    dilation: Ints = 1,
    groups: _b.int = 1,
) -> Tensor:
    """Applies a convolution over 1 spatial dimension(s), as networks define it: a cross-correlation."""

def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | _b.str = 0,
    dilation: Ints = 1,
    groups: _b.int = 1,
) -> Tensor:
    """Applies a convolution over 2 spatial dimension(s), as networks define it: a cross-correlation."""

def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | _b.str = 0,
    dilation: Ints = 1,
    groups: _b.int = 1,
) -> Tensor:
    """Applies a convolution over 3 spatial dimension(s), as networks define it: a cross-correlation."""

def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: Ints = 0) -> Tensor:
    """Applies a one-dimensional convolution to an input with the time first."""

def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: _b.int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """Applies a transposed convolution over 1 spatial dimension(s)."""

def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: _b.int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """Applies a transposed convolution over 2 spatial dimension(s)."""

def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: _b.int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """Applies a transposed convolution over 3 spatial dimension(s)."""

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
) -> Tensor:
    """Applies a convolution or a transposed convolution over one to three spatial dimensions."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: _b.int = 1, eps: _b.float = 1e-08) -> Tensor:
    r"""Computes the cosines of the angles between vectors."""

def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Ints,
    target_lengths: Tensor | Ints,
    blank: _b.int = 0,
    reduction: _b.int | _b.str = 0,
    zero_infinity: _b.bool = False,
) -> Tensor:
    """Computes the connectionist temporal classification loss (Graves et al., 2006)."""

def dropout(input: Tensor, p: _b.float, train: _b.bool) -> Tensor:
    """Drops elements with a probability."""

def dropout_(input: Tensor, p: _b.float, train: _b.bool) -> Tensor:
    """Drops elements with a probability, in place."""

def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: _b.int = -1,
    scale_grad_by_freq: _b.bool = False,
    sparse: _b.bool = False,
) -> Tensor:
    """Looks up rows of a matrix by their indices; the argument order is that of PyTorch's operator."""

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
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Reduces bags of rows of a matrix; the argument order is that of PyTorch's operator."""

def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: _b.float, norm_type: _b.float = 2.0) -> Tensor:
    """Scales rows of a matrix in place to at most a maximal norm."""

def feature_alpha_dropout(input: Tensor, p: _b.float, train: _b.bool) -> Tensor:
    """Drops whole channels so that mean and variance stay."""

def feature_alpha_dropout_(input: Tensor, p: _b.float, train: _b.bool) -> Tensor:
    """Drops whole channels so that mean and variance stay, in place."""

def feature_dropout(input: Tensor, p: _b.float, train: _b.bool) -> Tensor:
    """Drops whole channels with a probability."""

def feature_dropout_(input: Tensor, p: _b.float, train: _b.bool) -> Tensor:
    """Drops whole channels with a probability, in place."""

def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: _b.int, padding_mode: _b.str, align_corners: _b.bool
) -> Tensor:
    """Samples the input at given positions; the modes are numbers."""

def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: _b.int, padding_mode: _b.str, align_corners: _b.bool
) -> Tensor:
    """Samples the input at given positions; the modes are numbers."""

def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: _b.int, padding_mode: _b.str, align_corners: _b.bool
) -> Tensor:
    """Samples the input at given positions; the modes are numbers."""

def group_norm(
    input: Tensor,
    num_groups: _b.int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _b.float = 1e-05,
    cudnn_enabled: _b.bool = True,
) -> Tensor:
    """Normalizes each group of channels of each sample (Wu and He, 2018)."""

def gru(
    data: Tensor,
    batch_sizes: Any,
    hx: Tensor | Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: _b.bool,
    num_layers: _b.int,
    dropout: Any,
    train: _b.bool,
    bidirectional: _b.bool,
) -> tuple[Tensor, Tensor]:
    """Computes a network of gated recurrent units of several layers over sequences."""

def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Computes one step of a gated recurrent unit (Cho et al., 2014)."""

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
) -> Tensor:
    """Normalizes each channel of each sample (Ulyanov et al., 2016); the argument order is that of PyTorch's
    operator.
    """

def layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _b.float = 1e-05,
    cudnn_enable: _b.bool = True,
) -> Tensor:
    r"""Normalizes the last dimensions (Ba et al., 2016)."""

def lstm(
    data: Tensor,
    batch_sizes: Any,
    hx: Tensor | Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: _b.bool,
    num_layers: _b.int,
    dropout: Any,
    train: _b.bool,
    bidirectional: _b.bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Computes a long short-term memory network of several layers over sequences."""

def lstm_cell(
    input: Tensor,
    hx: Tensor | Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Computes one step of a long short-term memory cell (Hochreiter and Schmidhuber, 1997)."""

@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    """Computes the maximum of each window of 1 spatial dimension(s)."""

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
) -> Tensor:
    """Computes the maximum of each window of 1 spatial dimension(s) and its index."""

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
) -> Tensor:
    """Computes the maximum of each window of 2 spatial dimension(s)."""

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
) -> Tensor:
    """Computes the maximum of each window of 3 spatial dimension(s)."""

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
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalizes each channel and returns the statistics too; all results are differentiable."""

def native_channel_shuffle(input: Tensor, groups: _b.int) -> Tensor:
    """Interleaves groups of channels (Zhang et al., 2018)."""

def native_dropout(input: Tensor, p: _b.float, train: _b.bool) -> tuple[Tensor, Tensor]:
    """Drops elements, and returns the mask of those that stay."""

def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: _b.float, *, out: Tensor | None = None) -> Tensor:
    """Computes the gradient of `native_dropout`: ``grad_output * mask * scale``."""

def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: _b.int,
    C: _b.int,
    HxW: _b.int,
    group: _b.int,
    eps: _b.float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalizes each group of channels and returns the statistics too; all results are differentiable."""

def native_layer_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor | None, bias: Tensor | None, eps: _b.float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalizes the last dimensions and returns the statistics too; all results are differentiable."""

def pairwise_distance(
    x1: Tensor, x2: Tensor, p: _b.float = 2.0, eps: _b.float = 1e-06, keepdim: _b.bool = False
) -> Tensor:
    r"""Computes the distances between vectors along the last dimension."""

def pixel_shuffle(input: Tensor, upscale_factor: _b.int) -> Tensor:
    """Moves channels into space (Shi et al., 2016)."""

def pixel_unshuffle(input: Tensor, downscale_factor: _b.int) -> Tensor:
    """Moves space into channels; the inverse of `pixel_shuffle`."""

def rms_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor | None = None, eps: _b.float | None = None
) -> Tensor:
    r"""Divides by the root mean square of the last dimensions (Zhang and Sennrich, 2019)."""

def rnn_relu(
    data: Tensor,
    batch_sizes: Any,
    hx: Tensor | Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: _b.bool,
    num_layers: _b.int,
    dropout: Any,
    train: _b.bool,
    bidirectional: _b.bool,
) -> tuple[Tensor, Tensor]:
    """Computes an Elman network with relu of several layers over sequences."""

def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Computes one step of an Elman network: ``relu(w_ih @ input + b_ih + w_hh @ hx + b_hh)``."""

def rnn_tanh(
    data: Tensor,
    batch_sizes: Any,
    hx: Tensor | Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: _b.bool,
    num_layers: _b.int,
    dropout: Any,
    train: _b.bool,
    bidirectional: _b.bool,
) -> tuple[Tensor, Tensor]:
    """Computes an Elman network with tanh of several layers over sequences."""

def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Computes one step of an Elman network: ``tanh(w_ih @ input + b_ih + w_hh @ hx + b_hh)``."""
