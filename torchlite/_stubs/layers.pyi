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
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Embeddings of each bag (indices from one offset to the next) reduced by ``mode``: 0 sums, 1 takes the mean, 2 the
    maximum. Four tensors: the reduced embeddings (bags, features), the bag of each index, the number of indices of
    each bag, and for maxima the index that gave each.

    >>> torch.embedding_bag(torch.tensor([[1.], [2.], [3.]]), torch.tensor([0, 2, 1]), torch.tensor([0, 2]))[0]
    tensor([[4.],
            [2.]])
    """

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
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Embeddings of each bag (indices from one offset to the next) reduced by ``mode``: 0 sums, 1 takes the mean, 2 the
    maximum. Four tensors: the reduced embeddings (bags, features), the bag of each index, the number of indices of
    each bag, and for maxima the index that gave each.

    >>> torch.embedding_bag(torch.tensor([[1.], [2.], [3.]]), torch.tensor([0, 2, 1]), torch.tensor([0, 2]))[0]
    tensor([[4.],
            [2.]])
    """

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
) -> tuple[Tensor, Tensor | None]:
    """The computation of `nn.MultiheadAttention` on batches (N, L, E): the result (N, L, E) and the weights (N, L, L),
    per head (N, H, L, L) unless averaged, None unless needed. `mask` is true at positions that are not attended to:
    (L, L) for `mask_type` 0, (N, L) for 1, (N, H, L, L) for 2.
    """

def _transform_bias_rescale_qkv(
    qkv: Tensor, qkv_bias: Tensor, num_heads: _b.int, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values by heads, (N, H, L, E / H) each, from their joined projections (N, L, 3 E) and bias
    (3 E); queries are divided by the root of their length.
    """

def adaptive_avg_pool1d(input: Tensor, output_size: OutputSize, *, out: Tensor | None = None) -> Tensor:
    """The average over `output_size` windows that share the 1 spatial dimension(s) of `input` among them; window i
    covers the places from floor(i * size / out) to ceil((i + 1) * size / out). None in `output_size` keeps a size.

    >>> torch.nn.functional.adaptive_avg_pool1d(torch.ones(1, 1, 4), 2).shape
    torch.Size([1, 1, 2])
    """

@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, return_indices: Literal[False] = False, *, out: Tensor | None = None
) -> Tensor:
    """The maximum over `output_size` windows that share the 1 spatial dimension(s) of `input` among them; window i
    covers the places from floor(i * size / out) to ceil((i + 1) * size / out). None in `output_size` keeps a size.

    >>> torch.nn.functional.adaptive_max_pool1d(torch.ones(1, 1, 4), 2).shape
    torch.Size([1, 1, 2])
    """

@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, *, return_indices: Literal[True], out: Tensor | None = None
) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, return_indices: _b.bool, *, out: Tensor | None = None
) -> Tensor | tuple[Tensor, Tensor]: ...
def affine_grid_generator(theta: Tensor, size: Ints, align_corners: _b.bool, *, out: Tensor | None = None) -> Tensor:
    """`nn.functional.affine_grid` without its checks."""

def alpha_dropout(input: Tensor, p: _b.float, train: _b.bool, *, out: Tensor | None = None) -> Tensor:
    """alpha_dropout with probability `p` when `train`: see `nn.functional`."""

def alpha_dropout_(input: Tensor, p: _b.float, train: _b.bool) -> Tensor:
    """`alpha_dropout` in place."""

def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: _b.bool = False,
    count_include_pad: _b.bool = True,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The average over windows of `input` (N, C, ...) or (C, ...) with 1 spatial dimension(s).

    `stride` defaults to `kernel_size`; zeros of `padding` count unless `count_include_pad` is False. RuntimeError
    when no window fits.

    >>> torch.nn.functional.avg_pool1d(torch.ones(1, 1, 4), 2).shape
    torch.Size([1, 1, 2])
    """

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
) -> Tensor:
    """Batch norm over every dimension but 1 (Ioffe and Szegedy, 2015).

    In training the batch's statistics are used, and the running ones are moved towards them in place by
    ``momentum``; otherwise the running ones are used.

    `cudnn_enabled` has no effect: `torch.backends.cudnn` decides whether cuDNN is used.
    """

def batch_norm_update_stats(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: _b.float,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The mean and the variance (not corrected) of each channel, towards which the running ones are moved in place. All
    are of the dtype of the running mean.

    >>> torch.batch_norm_update_stats(torch.tensor([[1.], [3.]]), None, None, 0.1)
    (tensor([2.]), tensor([1.]))
    """

def bilinear(
    input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Applies a bilinear map to the last dimensions of two inputs: ``y[k] = input1^T weight[k] input2 + bias[k]``."""

def channel_shuffle(input: Tensor, groups: _b.int, *, out: Tensor | None = None) -> Tensor:
    """The channels (dimension 1) of `input` dealt out over `groups` (Zhang et al., 2017, arXiv:1707.01083).

    >>> torch.nn.functional.channel_shuffle(torch.arange(4.).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """

def constant_pad_nd(input: Tensor, pad: Ints, value: Number = 0, *, out: Tensor | None = None) -> Tensor:
    """`input` with `value` around it. `pad` has two numbers a dimension, the last dimension first: how many places
     before and after; a negative number cuts.

    >>> torch.constant_pad_nd(torch.ones(2), (1, 2))
    tensor([0., 1., 1., 0., 0.])

    """

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
) -> Tensor:
    """A 1-D convolution (cross-correlation) of `input` (N, C, L) or (C, L) with `weight` (O, C /
    groups, kL).
    """

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
) -> Tensor:
    """A 2-D convolution (cross-correlation) of `input` (N, C, H, W) or (C, H, W) with `weight` (O, C /
    groups, kH, kW).
    """

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
) -> Tensor:
    """A 3-D convolution (cross-correlation) of `input` (N, C, D, H, W) or (C, D, H, W) with `weight` (O, C /
    groups, kD, kH, kW).
    """

def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: Ints = 0, *, out: Tensor | None = None) -> Tensor:
    """A 1-D convolution of `input` (time, batch, C) with `weight` (kernel, C, O): the result is (time, batch, O)."""

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
) -> Tensor:
    """A 1-D transposed convolution of `input` (N, C, L) or (C, L) with `weight` (C, O /
    groups, kL): the gradient of `conv1d` with respect to its input.
    """

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
) -> Tensor:
    """A 2-D transposed convolution of `input` (N, C, H, W) or (C, H, W) with `weight` (C, O /
    groups, kH, kW): the gradient of `conv2d` with respect to its input.
    """

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
) -> Tensor:
    """A 3-D transposed convolution of `input` (N, C, D, H, W) or (C, D, H, W) with `weight` (C, O /
    groups, kD, kH, kW): the gradient of `conv3d` with respect to its input.
    """

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
) -> Tensor:
    """The convolution behind `conv1d` ... `conv_transpose3d`."""

def cosine_similarity(
    x1: Tensor, x2: Tensor, dim: _b.int = 1, eps: _b.float = 1e-08, *, out: Tensor | None = None
) -> Tensor:
    """The dot product of ``x1`` and ``x2`` along ``dim`` divided by their lengths (each at least ``eps``)."""

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
) -> Tensor:
    """Minus the log-probability of ``targets`` under all alignments to ``log_probs`` (time, batch, classes), which are
    log-probabilities.

    ``targets`` is (batch, longest) or all targets one after the other; ``reduction`` 1 or "mean" divides each loss
    by its target length and then averages. Targets and lengths may lie on the host: lengths on the device are read
    from it, for what depends on the longest. As in PyTorch the gradient is that of log-probabilities that came from
    ``log_softmax``.
    """

def dropout(input: Tensor, p: _b.float, train: _b.bool, *, out: Tensor | None = None) -> Tensor:
    """dropout with probability `p` when `train`: see `nn.functional`."""

def dropout_(input: Tensor, p: _b.float, train: _b.bool) -> Tensor:
    """`dropout` in place."""

def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: _b.int = -1,
    scale_grad_by_freq: _b.bool = False,
    sparse: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The rows of ``weight`` that ``indices`` name: (rows, features), (*) -> (*, features). Row ``padding_idx``
    gets no gradient.
    """

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
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Embeddings of each bag (indices from one offset to the next) reduced by ``mode``: 0 sums, 1 takes the mean, 2 the
    maximum. Four tensors: the reduced embeddings (bags, features), the bag of each index, the number of indices of
    each bag, and for maxima the index that gave each.

    >>> torch.embedding_bag(torch.tensor([[1.], [2.], [3.]]), torch.tensor([0, 2, 1]), torch.tensor([0, 2]))[0]
    tensor([[4.],
            [2.]])
    """

def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: _b.float, norm_type: _b.float = 2.0) -> Tensor:
    """Scale, in place, the rows of ``input`` that ``indices`` name and whose norm is above ``max_norm``, so that it is
    just below.
    """

def feature_alpha_dropout(input: Tensor, p: _b.float, train: _b.bool, *, out: Tensor | None = None) -> Tensor:
    """feature_alpha_dropout with probability `p` when `train`: see `nn.functional`."""

def feature_alpha_dropout_(input: Tensor, p: _b.float, train: _b.bool) -> Tensor:
    """`feature_alpha_dropout` in place."""

def feature_dropout(input: Tensor, p: _b.float, train: _b.bool, *, out: Tensor | None = None) -> Tensor:
    """feature_dropout with probability `p` when `train`: see `nn.functional`."""

def feature_dropout_(input: Tensor, p: _b.float, train: _b.bool) -> Tensor:
    """`feature_dropout` in place."""

def grid_sampler(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: _b.int,
    padding_mode: _b.str,
    align_corners: _b.bool,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`grid_sample` with its modes as numbers: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""

def grid_sampler_2d(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: _b.int,
    padding_mode: _b.str,
    align_corners: _b.bool,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`grid_sample` with its modes as numbers: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""

def grid_sampler_3d(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: _b.int,
    padding_mode: _b.str,
    align_corners: _b.bool,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`grid_sample` with its modes as numbers: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""

def group_norm(
    input: Tensor,
    num_groups: _b.int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _b.float = 1e-05,
    cudnn_enabled: _b.bool = True,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Mean 0 and variance 1 over each of ``num_groups`` groups of channels of each sample, then ``* weight + bias`` (Wu
    and He, 2018). `cudnn_enabled` has no effect: `torch.backends.cudnn` decides whether cuDNN is used.
    """

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
) -> tuple[Tensor, Tensor]:
    """GRU of several layers: `gru(input, h0, params, ...)`, or `gru(data, batch_sizes, h0, params, ...)` for packed
    data.
    """

def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """One step of a GRU: input (N, I), hx (N, H) -> (N, H)."""

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
) -> Tensor:
    """Batch norm of each sample separately (Ulyanov et al., 2016). `cudnn_enabled` has no effect:
    `torch.backends.cudnn` decides whether cuDNN is used.
    """

def layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _b.float = 1e-05,
    cudnn_enable: _b.bool = True,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Mean 0 and variance 1 over the last dimensions ``normalized_shape``, then ``* weight + bias`` (Ba et al., 2016).
    `cudnn_enable` has no effect: cuDNN is not used.
    """

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
) -> tuple[Tensor, Tensor, Tensor]:
    """LSTM of several layers: `lstm(input, (h0, c0), params, ...)`, or `lstm(data, batch_sizes, (h0, c0), params, ...)`
    for packed data.
    """

def lstm_cell(
    input: Tensor,
    hx: Tensor | Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: input (N, I), hx a pair of (N, H) -> (h', c')."""

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
) -> Tensor:
    """The maximum over windows of `input` (N, C, ...) or (C, ...) with 1 spatial dimension(s).

    `stride` defaults to `kernel_size`; places of `padding` count as minus infinity; `ceil_mode` lets a last window
    reach over the end. With `return_indices` the flat spatial index (int64) of each maximum comes second.
    RuntimeError when no window fits.

    >>> torch.nn.functional.max_pool1d(torch.ones(1, 1, 4), 2).shape
    torch.Size([1, 1, 2])
    """

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
) -> Tensor:
    """`max_pool1d` with the indices of the maxima. `return_indices` has no effect."""

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
) -> Tensor:
    """The maximum over windows of `input` (N, C, ...) or (C, ...) with 2 spatial dimension(s).

    `stride` defaults to `kernel_size`; places of `padding` count as minus infinity; `ceil_mode` lets a last window
    reach over the end. With `return_indices` the flat spatial index (int64) of each maximum comes second.
    RuntimeError when no window fits.

    >>> torch.nn.functional.max_pool2d(torch.ones(1, 1, 4, 4), 2).shape
    torch.Size([1, 1, 2, 2])
    """

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
) -> Tensor:
    """The maximum over windows of `input` (N, C, ...) or (C, ...) with 3 spatial dimension(s).

    `stride` defaults to `kernel_size`; places of `padding` count as minus infinity; `ceil_mode` lets a last window
    reach over the end. With `return_indices` the flat spatial index (int64) of each maximum comes second.
    RuntimeError when no window fits.

    >>> torch.nn.functional.max_pool3d(torch.ones(1, 1, 4, 4, 4), 2).shape
    torch.Size([1, 1, 2, 2, 2])
    """

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
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch norm that also returns, in training, the batch's mean and reciprocal standard deviation; all are
    differentiable.
    """

def native_channel_shuffle(input: Tensor, groups: _b.int, *, out: Tensor | None = None) -> Tensor:
    """The channels (dimension 1) of `input` dealt out over `groups` (Zhang et al., 2017, arXiv:1707.01083).

    >>> torch.nn.functional.channel_shuffle(torch.arange(4.).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """

def native_dropout(
    input: Tensor, p: _b.float, train: _b.bool, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """(dropout of `input`, the mask of the entries that are not dropped)."""

def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: _b.float, *, out: Tensor | None = None) -> Tensor:
    """The gradient of `native_dropout`, and its formula too: what the mask has, times a scale."""

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
) -> tuple[Tensor, Tensor, Tensor]:
    """Group norm, the mean and the reciprocal standard deviation of each group, all three differentiable."""

def native_layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: _b.float,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Layer norm, the mean and the reciprocal standard deviation, all three differentiable."""

def pairwise_distance(
    x1: Tensor,
    x2: Tensor,
    p: _b.float = 2.0,
    eps: _b.float = 1e-06,
    keepdim: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The p-norm of ``x1 - x2 + eps`` along the last dimension."""

def pixel_shuffle(input: Tensor, upscale_factor: _b.int, *, out: Tensor | None = None) -> Tensor:
    """Channels to space: (..., C * r * r, H, W) becomes (..., C, H * r, W * r) for r = `upscale_factor` (Shi et al.,
    2016, arXiv:1609.05158).

    >>> torch.nn.functional.pixel_shuffle(torch.ones(1, 8, 2, 3), 2).shape
    torch.Size([1, 2, 4, 6])
    """

def pixel_unshuffle(input: Tensor, downscale_factor: _b.int, *, out: Tensor | None = None) -> Tensor:
    """Space to channels, the inverse of `pixel_shuffle`: (..., C, H * r, W * r) becomes (..., C * r * r, H, W) for r =
    `downscale_factor`.

    >>> torch.nn.functional.pixel_unshuffle(torch.ones(1, 2, 4, 6), 2).shape
    torch.Size([1, 8, 2, 3])
    """

def rms_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    eps: _b.float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """``input / sqrt(mean(input**2) + eps) * weight``, the mean over the last dimensions (Zhang and Sennrich, 2019).

    ``eps=None`` is the machine epsilon of the dtype that it is computed in: float32's for half precision.
    """

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
) -> tuple[Tensor, Tensor]:
    """Relu network of several layers: `rnn_relu(input, h0, params, ...)`, or with `batch_sizes` before h0 for packed
    data.
    """

def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """One step of a relu network: input (N, I), hx (N, H) -> (N, H)."""

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
) -> tuple[Tensor, Tensor]:
    """Tanh network of several layers: `rnn_tanh(input, h0, params, ...)`, or with `batch_sizes` before h0 for packed
    data.
    """

def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """One step of a tanh network: input (N, I), hx (N, H) -> (N, H)."""
