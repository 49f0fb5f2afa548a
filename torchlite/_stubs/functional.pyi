# Made by tools/make_stubs.py from the op records: do not edit.
"""The functions of torchlite.nn.functional that come from op records."""

import builtins as _b
from collections.abc import Callable, Sequence
from typing import Any

from .aliases import Ints, Number
from .tensor import Tensor

def affine_grid(theta: Tensor, size: Ints, align_corners: _b.bool | None = None) -> Tensor: ...
def alpha_dropout(input: Tensor, p: _b.float = 0.5, training: _b.bool = False, inplace: _b.bool = False) -> Tensor: ...
def bilinear(
    input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor: ...
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
) -> Tensor: ...
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor: ...
def channel_shuffle(input: Tensor, groups: _b.int, *, out: Tensor | None = None) -> Tensor: ...
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
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: _b.float = 0,
    size_average: _b.bool | None = None,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
) -> Tensor: ...
def cosine_similarity(
    x1: Tensor, x2: Tensor, dim: _b.int = 1, eps: _b.float = 1e-08, *, out: Tensor | None = None
) -> Tensor: ...
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    ignore_index: _b.int = -100,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
    label_smoothing: _b.float = 0.0,
) -> Tensor: ...
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Ints,
    target_lengths: Tensor | Ints,
    blank: _b.int = 0,
    reduction: _b.int | _b.str = "mean",
    zero_infinity: _b.bool = False,
) -> Tensor: ...
def dropout(input: Tensor, p: _b.float = 0.5, training: _b.bool = True, inplace: _b.bool = False) -> Tensor: ...
def dropout1d(input: Tensor, p: _b.float = 0.5, training: _b.bool = True, inplace: _b.bool = False) -> Tensor: ...
def dropout2d(input: Tensor, p: _b.float = 0.5, training: _b.bool = True, inplace: _b.bool = False) -> Tensor: ...
def dropout3d(input: Tensor, p: _b.float = 0.5, training: _b.bool = True, inplace: _b.bool = False) -> Tensor: ...
def feature_alpha_dropout(
    input: Tensor, p: _b.float = 0.5, training: _b.bool = False, inplace: _b.bool = False
) -> Tensor: ...
def fold(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor: ...
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | Number,
    full: _b.bool = False,
    eps: _b.float = 1e-06,
    reduction: _b.str = "mean",
) -> Tensor: ...
def gelu(input: Tensor, *, approximate: _b.str = "none", out: Tensor | None = None) -> Tensor: ...
def glu(input: Tensor, dim: _b.int = -1) -> Tensor: ...
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: _b.str = "bilinear",
    padding_mode: _b.str = "zeros",
    align_corners: _b.bool | None = None,
) -> Tensor: ...
def gumbel_softmax(
    logits: Tensor, tau: _b.float = 1, hard: _b.bool = False, eps: _b.float = 1e-10, dim: _b.int = -1
) -> Tensor: ...
def hardshrink(input: Tensor, lambd: _b.float = 0.5, *, out: Tensor | None = None) -> Tensor: ...
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: _b.float = 1.0,
    size_average: _b.bool | None = None,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
) -> Tensor: ...
def huber_loss(
    input: Tensor, target: Tensor, reduction: _b.str = "mean", delta: _b.float = 1.0, weight: Tensor | None = None
) -> Tensor: ...
def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: _b.float | Sequence[_b.float] | None = None,
    mode: _b.str = "nearest",
    align_corners: _b.bool | None = None,
    recompute_scale_factor: _b.bool | None = None,
    antialias: _b.bool = False,
) -> Tensor: ...
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
    log_target: _b.bool = False,
) -> Tensor: ...
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
    weight: Tensor | None = None,
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
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor: ...
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: _b.str = "mean",
    ignore_index: _b.int | None = None,
    label_smoothing: _b.float = 0.0,
    options: Any = None,
) -> Tensor: ...
def local_response_norm(
    input: Tensor, size: Ints, alpha: Number = 0.0001, beta: _b.float = 0.75, k: _b.float = 1.0
) -> Tensor: ...
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: _b.float = 0,
    size_average: _b.bool | None = None,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
) -> Tensor: ...
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
    weight: Tensor | None = None,
) -> Tensor: ...
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: _b.float = 1,
    margin: _b.float = 1.0,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
) -> Tensor: ...
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
) -> Tensor: ...
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
) -> Tensor: ...
def native_channel_shuffle(input: Tensor, groups: _b.int, *, out: Tensor | None = None) -> Tensor: ...
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    ignore_index: _b.int = -100,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
) -> Tensor: ...
def normalize(
    input: Tensor, p: _b.float = 2.0, dim: Ints = 1, eps: _b.float = 1e-12, out: Tensor | None = None
) -> Tensor: ...
def one_hot(input: Tensor, num_classes: _b.int = -1) -> Tensor: ...
def pad(input: Tensor, pad: Ints, mode: _b.str = "constant", value: _b.float | None = None) -> Tensor: ...
def pairwise_distance(
    x1: Tensor,
    x2: Tensor,
    p: _b.float = 2.0,
    eps: _b.float = 1e-06,
    keepdim: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def pdist(input: Tensor, p: _b.float = 2.0, *, out: Tensor | None = None) -> Tensor: ...
def pixel_shuffle(input: Tensor, upscale_factor: _b.int, *, out: Tensor | None = None) -> Tensor: ...
def pixel_unshuffle(input: Tensor, downscale_factor: _b.int, *, out: Tensor | None = None) -> Tensor: ...
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: _b.bool = True,
    full: _b.bool = False,
    size_average: _b.bool | None = None,
    eps: _b.float = 1e-08,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
) -> Tensor: ...
def prelu(input: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def rms_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    eps: _b.float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: _b.float = 0.0,
    is_causal: _b.bool = False,
    *,
    scale: _b.float | None = None,
    enable_gqa: _b.bool = False,
) -> Tensor: ...
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
    beta: _b.float = 1.0,
) -> Tensor: ...
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
) -> Tensor: ...
def softplus(
    input: Tensor, beta: _b.float = 1.0, threshold: _b.float = 20.0, *, out: Tensor | None = None
) -> Tensor: ...
def softshrink(input: Tensor, lambd: _b.float = 0.5, *, out: Tensor | None = None) -> Tensor: ...
def softsign(input: Tensor) -> Tensor: ...
def tanhshrink(input: Tensor) -> Tensor: ...
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: _b.float = 1.0,
    p: _b.float = 2,
    eps: _b.float = 1e-06,
    swap: _b.bool = False,
    size_average: _b.bool | None = None,
    reduce: _b.str | None = None,
    reduction: _b.str = "mean",
) -> Tensor: ...
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: _b.float = 1.0,
    swap: _b.bool = False,
    reduction: _b.str = "mean",
) -> Tensor: ...
def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor: ...
def upsample(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: _b.float | Sequence[_b.float] | None = None,
    mode: _b.str = "nearest",
    align_corners: _b.bool | None = None,
) -> Tensor: ...
def upsample_bilinear(
    input: Tensor, size: Ints | None = None, scale_factor: _b.float | Sequence[_b.float] | None = None
) -> Tensor: ...
def upsample_nearest(
    input: Tensor, size: Ints | None = None, scale_factor: _b.float | Sequence[_b.float] | None = None
) -> Tensor: ...
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def celu_(input: Tensor, alpha: Number = 1.0) -> Tensor: ...
def elu_(input: Tensor, alpha: Number = 1.0) -> Tensor: ...
def hardtanh_(input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0) -> Tensor: ...
def leaky_relu_(input: Tensor, negative_slope: _b.float = 0.01) -> Tensor: ...
def relu_(input: Tensor) -> Tensor: ...
def rrelu_(
    input: Tensor, lower: _b.float = 0.125, upper: Number = 0.3333333333333333, training: _b.bool = False
) -> Tensor: ...
def selu_(input: Tensor) -> Tensor: ...
def threshold_(input: Tensor, threshold: _b.float, value: Any) -> Tensor: ...
