# Made by tools/make_stubs.py from the op records: do not edit.
"""The functions of torchlite.nn.functional that come from op records."""

import builtins as _b
from collections.abc import Callable, Sequence
from typing import Any

from .aliases import Ints, Number
from .tensor import Tensor

def affine_grid(theta: Tensor, size: Ints, align_corners: _b.bool | None = None) -> Tensor:
    """Returns the positions of an affine map of a sampling grid, for `grid_sample`."""

def alpha_dropout(input: Tensor, p: _b.float = 0.5, training: _b.bool = False, inplace: _b.bool = False) -> Tensor:
    """Drops elements so that mean and variance stay (Klambauer et al., 2017)."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Applies a bilinear map to the last dimensions of two inputs: ``y[k] = input1^T weight[k] input2 + bias[k]``."""

def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    r"""Computes the binary cross entropy of probabilities."""

def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    r"""Computes the binary cross entropy of logits, without overflow."""

def channel_shuffle(input: Tensor, groups: _b.int) -> Tensor:
    """Interleaves groups of channels (Zhang et al., 2018)."""

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

def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: _b.float = 0,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    r"""Computes a loss of the cosine between two vectors."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: _b.int = 1, eps: _b.float = 1e-08) -> Tensor:
    r"""Computes the cosines of the angles between vectors."""

def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    ignore_index: _b.int = -100,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
    label_smoothing: _b.float = 0.0,
) -> Tensor:
    r"""Computes the cross entropy of logits and classes."""

def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Ints,
    target_lengths: Tensor | Ints,
    blank: _b.int = 0,
    reduction: _b.int | _b.str = "mean",
    zero_infinity: _b.bool = False,
) -> Tensor:
    """Computes the connectionist temporal classification loss (Graves et al., 2006)."""

def dropout(input: Tensor, p: _b.float = 0.5, training: _b.bool = True, inplace: _b.bool = False) -> Tensor:
    """Sets elements to zero with a probability, and divides the others by :math:`1 - p` (Hinton et al., 2012)."""

def dropout1d(input: Tensor, p: _b.float = 0.5, training: _b.bool = True, inplace: _b.bool = False) -> Tensor:
    """Sets whole channels to zero with a probability, and divides the others by :math:`1 - p`."""

def dropout2d(input: Tensor, p: _b.float = 0.5, training: _b.bool = True, inplace: _b.bool = False) -> Tensor:
    """Sets whole channels to zero with a probability, and divides the others by :math:`1 - p`."""

def dropout3d(input: Tensor, p: _b.float = 0.5, training: _b.bool = True, inplace: _b.bool = False) -> Tensor:
    """Sets whole channels to zero with a probability, and divides the others by :math:`1 - p`."""

def feature_alpha_dropout(
    input: Tensor, p: _b.float = 0.5, training: _b.bool = False, inplace: _b.bool = False
) -> Tensor:
    """Drops whole channels (dimension 1) so that mean and variance stay."""

def fold(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Adds columns of sliding blocks up into images."""

def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | Number,
    full: _b.bool = False,
    eps: _b.float = 1e-06,
    reduction: _b.str = "mean",
) -> Tensor:
    r"""Computes the negative log-likelihood under normal distributions (Nix and Weigend, 1994)."""

def gelu(input: Tensor, *, approximate: _b.str = "none", out: Tensor | None = None) -> Tensor:
    """`input` times the standard normal distribution function of `input` (Hendrycks and Gimpel, 2016)."""

def glu(input: Tensor, dim: _b.int = -1) -> Tensor:
    """The gated linear unit: the first half of `input` along `dim` times the sigmoid of the second (Dauphin et
    al., 2016).
    """

def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: _b.str = "bilinear",
    padding_mode: _b.str = "zeros",
    align_corners: _b.bool | None = None,
) -> Tensor:
    """Samples the input at given positions."""

def gumbel_softmax(
    logits: Tensor, tau: _b.float = 1, hard: _b.bool = False, eps: _b.float = 1e-10, dim: _b.int = -1
) -> Tensor:
    """A sample from the Gumbel-softmax distribution along `dim` (Jang et al., 2016):
    ``softmax((logits + g) / tau)`` with Gumbel noise `g`.
    """

def hardshrink(input: Tensor, lambd: _b.float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Zero where the absolute value is at most `lambd`, and `input` elsewhere."""

def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: _b.float = 1.0,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    r"""Computes the hinge loss of distances."""

def huber_loss(
    input: Tensor, target: Tensor, reduction: _b.str = "mean", delta: _b.float = 1.0, weight: Tensor | None = None
) -> Tensor:
    r"""Computes the Huber loss: quadratic near 0, linear beyond (Huber, 1964)."""

def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: _b.float | Sequence[_b.float] | None = None,
    mode: _b.str = "nearest",
    align_corners: _b.bool | None = None,
    recompute_scale_factor: _b.bool | None = None,
    antialias: _b.bool = False,
) -> Tensor:
    """Resamples the spatial dimensions to given sizes or by given factors."""

def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
    log_target: _b.bool = False,
) -> Tensor:
    r"""Computes the Kullback-Leibler divergence of the targets from the input."""

def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    r"""Computes the absolute errors."""

def layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _b.float = 1e-05,
    cudnn_enable: _b.bool = True,
) -> Tensor:
    r"""Normalizes the last dimensions (Ba et al., 2016)."""

def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """Applies an affine map to the last dimension: ``y = input @ weight.T + bias``."""

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
) -> Tensor:
    """Computes the cross entropy of a linear layer's output:
    ``cross_entropy(linear(input, linear_weight, linear_bias), target)``.
    """

def local_response_norm(
    input: Tensor, size: Ints, alpha: Number = 0.0001, beta: _b.float = 0.75, k: _b.float = 1.0
) -> Tensor:
    r"""Divides each channel by a power of the squares of its neighbors (Krizhevsky et al., 2012)."""

def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(1 / (1 + exp(-input)))``, computed without overflow."""

def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: _b.float = 0,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    r"""Computes a loss that ranks the first input above the second where the target is 1."""

def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    r"""Computes the squared errors."""

def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: _b.float = 1,
    margin: _b.float = 1.0,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    r"""Computes the multi-class hinge loss."""

def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    r"""Computes the hinge loss for several classes an example."""

def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    r"""Computes the binary cross entropy of logits, averaged over the classes."""

def native_channel_shuffle(input: Tensor, groups: _b.int) -> Tensor:
    """Interleaves groups of channels (Zhang et al., 2018)."""

def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    ignore_index: _b.int = -100,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    r"""Computes the negative log-likelihood of classes."""

def normalize(
    input: Tensor, p: _b.float = 2.0, dim: Ints = 1, eps: _b.float = 1e-12, out: Tensor | None = None
) -> Tensor:
    r"""Divides vectors by their norm."""

def one_hot(input: Tensor, num_classes: _b.int = -1) -> Tensor:
    """Returns vectors with a 1 at the position of each class and zeros elsewhere."""

def pad(input: Tensor, pad: Ints, mode: _b.str = "constant", value: _b.float | None = None) -> Tensor:
    """Adds a border around the last dimensions."""

def pairwise_distance(
    x1: Tensor, x2: Tensor, p: _b.float = 2.0, eps: _b.float = 1e-06, keepdim: _b.bool = False
) -> Tensor:
    r"""Computes the distances between vectors along the last dimension."""

def pdist(input: Tensor, p: _b.float = 2.0) -> Tensor:
    """Computes the distances between all pairs of rows of a matrix in a :math:`p`-norm."""

def pixel_shuffle(input: Tensor, upscale_factor: _b.int) -> Tensor:
    """Moves channels into space (Shi et al., 2016)."""

def pixel_unshuffle(input: Tensor, downscale_factor: _b.int) -> Tensor:
    """Moves space into channels; the inverse of `pixel_shuffle`."""

def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: _b.bool = True,
    full: _b.bool = False,
    size_average: _b.bool | None = None,
    eps: _b.float = 1e-08,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    r"""Computes the negative log-likelihood of counts under Poisson distributions."""

def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`input` where it is positive, and ``weight * input`` elsewhere (He et al., 2015)."""

def rms_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor | None = None, eps: _b.float | None = None
) -> Tensor:
    r"""Divides by the root mean square of the last dimensions (Zhang and Sennrich, 2019)."""

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
) -> Tensor:
    r"""Computes attention: ``softmax(query @ key^T * scale + mask) @ value``."""

def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
    beta: _b.float = 1.0,
) -> Tensor:
    r"""Computes absolute errors that are quadratic near 0 (Girshick, 2015)."""

def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    r"""Computes the logistic loss for targets of -1 and 1."""

def softplus(input: Tensor, beta: _b.float = 1.0, threshold: _b.float = 20.0, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``: a smooth ReLU."""

def softshrink(input: Tensor, lambd: _b.float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """`input` moved towards zero by `lambd`; zero where the absolute value is at most `lambd`."""

def softsign(input: Tensor) -> Tensor:
    """``input / (1 + abs(input))``, elementwise.

    Example:
        >>> torch.nn.functional.softsign(torch.tensor([-1.0, 3.0]))
        tensor([-0.5000,  0.7500])

    See also:
        `torch.nn.Softsign`.
    """

def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``, elementwise.

    Example:
        >>> torch.nn.functional.tanhshrink(torch.tensor([-1.0, 2.0]))
        tensor([-0.2384,  1.0360])

    See also:
        `torch.nn.Tanhshrink`.
    """

def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: _b.float = 1.0,
    p: _b.float = 2,
    eps: _b.float = 1e-06,
    swap: _b.bool = False,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    r"""Computes the triplet loss (Balntas et al., 2016)."""

def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: _b.float = 1.0,
    swap: _b.bool = False,
    reduction: _b.str = "mean",
) -> Tensor:
    r"""Computes the triplet loss with a given distance."""

def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """Copies the sliding blocks of images into columns."""

def upsample(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: _b.float | Sequence[_b.float] | None = None,
    mode: _b.str = "nearest",
    align_corners: _b.bool | None = None,
) -> Tensor:
    """Resamples the spatial dimensions. Deprecated: use `torch.nn.functional.interpolate`."""

def upsample_bilinear(
    input: Tensor, size: Ints | None = None, scale_factor: _b.float | Sequence[_b.float] | None = None
) -> Tensor:
    """Resamples bilinearly with aligned corners. Deprecated: use `torch.nn.functional.interpolate`."""

def upsample_nearest(
    input: Tensor, size: Ints | None = None, scale_factor: _b.float | Sequence[_b.float] | None = None
) -> Tensor:
    """Resamples by the nearest elements. Deprecated: use `torch.nn.functional.interpolate`."""

def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logistic function ``1 / (1 + exp(-input))``; integers become the default float dtype.

    Example:
        >>> torch.sigmoid(torch.tensor([0.0, 1.0]))
        tensor([0.5000, 0.7311])

    See also:
        `torch.logit`, its inverse.
    """

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent; integers become the default float dtype.

    Example:
        >>> torch.tanh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """

def hardtanh_(input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0) -> Tensor:
    """In-place version of `hardtanh`: writes the result into the tensor and returns it."""

def relu_(input: Tensor) -> Tensor:
    """In-place version of `relu`: writes the result into the tensor and returns it."""

def selu_(input: Tensor) -> Tensor:
    """In-place version of `selu`: writes the result into the tensor and returns it."""

def threshold_(input: Tensor, threshold: _b.float, value: Any) -> Tensor:
    """In-place version of `threshold`: writes the result into the tensor and returns it."""
