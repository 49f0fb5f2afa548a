# Made by tools/make_stubs.py from the op records: do not edit.
"""The functions of torchlite.nn.functional that come from op records."""

import builtins as _b
from collections.abc import Callable, Sequence
from typing import Any

from .aliases import Ints, Number
from .tensor import Tensor

def affine_grid(theta: Tensor, size: Ints, align_corners: _b.bool | None = None) -> Tensor:
    """The sampling grid (N, H, W, 2) or (N, D, H, W, 3) of affine matrices `theta` (N, 2, 3) or (N, 3, 4), for an
    output of `size` (N, C, H, W) or (N, C, D, H, W).

    >>> torch.nn.functional.affine_grid(torch.tensor([[[1., 0., 0.], [0., 1., 0.]]]), (1, 1, 1, 2), align_corners=True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """

def alpha_dropout(input: Tensor, p: _b.float = 0.5, training: _b.bool = False, inplace: _b.bool = False) -> Tensor:
    """Dropout for self-normalising networks: dropped entries get the value that selu has at minus infinity, and mean
    and variance stay.
    """

def bilinear(
    input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Applies a bilinear map to the last dimensions of two inputs: ``y[k] = input1^T weight[k] input2 + bias[k]``."""

def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    """``-(target log(input) + (1 - target) log(1 - input))``; the logarithms are clamped to at least -100."""

def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """``binary_cross_entropy(sigmoid(input), target)``, computed without overflow; ``pos_weight`` multiplies the
    positive term.
    """

def celu(input: Tensor, alpha: Number = 1.0, *, out: Tensor | None = None) -> Tensor:
    """``max(0, input) + min(0, alpha * (exp(input / alpha) - 1))`` (Barron, 2017)."""

def channel_shuffle(input: Tensor, groups: _b.int, *, out: Tensor | None = None) -> Tensor:
    """The channels (dimension 1) of `input` dealt out over `groups` (Zhang et al., 2017, arXiv:1707.01083).

    >>> torch.nn.functional.channel_shuffle(torch.arange(4.).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
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

def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: _b.float = 0,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    """``1 - cos(input1, input2)`` where the target is 1, ``max(0, cos - margin)`` where it is -1."""

def cosine_similarity(
    x1: Tensor, x2: Tensor, dim: _b.int = 1, eps: _b.float = 1e-08, *, out: Tensor | None = None
) -> Tensor:
    """The dot product of ``x1`` and ``x2`` along ``dim`` divided by their lengths (each at least ``eps``)."""

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
    """``-log_softmax(input)`` at the target class, averaged; classes are along dimension 1 (0 for a 1-d input).

    ``target`` holds class indices (int64, shape of ``input`` without the class dimension) or class probabilities
    (shape of ``input``). See ``nll_loss`` for ``weight``, ``ignore_index`` and ``reduction``.

    >>> F.cross_entropy(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.1269)
    """

def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Ints,
    target_lengths: Tensor | Ints,
    blank: _b.int = 0,
    reduction: _b.int | _b.str = "mean",
    zero_infinity: _b.bool = False,
) -> Tensor:
    """See `torch.ctc_loss`; `reduction` is a name. ValueError for unknown names."""

def dropout(input: Tensor, p: _b.float = 0.5, training: _b.bool = True, inplace: _b.bool = False) -> Tensor:
    """Each entry set to zero with probability `p` while training, the others divided by 1 - p.

    ValueError unless 0 <= p <= 1. On "cpu" the same entries as in PyTorch for the same seed.
    """

def dropout1d(input: Tensor, p: _b.float = 0.5, training: _b.bool = True, inplace: _b.bool = False) -> Tensor:
    """Whole channels of an input with 1 spatial dimension set to zero with probability `p` while training, the others
    divided by 1 - p.
    """

def dropout2d(input: Tensor, p: _b.float = 0.5, training: _b.bool = True, inplace: _b.bool = False) -> Tensor:
    """Whole channels of an input with 2 spatial dimensions set to zero with probability `p` while training, the others
    divided by 1 - p.
    """

def dropout3d(input: Tensor, p: _b.float = 0.5, training: _b.bool = True, inplace: _b.bool = False) -> Tensor:
    """Whole channels of an input with 3 spatial dimensions set to zero with probability `p` while training, the others
    divided by 1 - p.
    """

def elu(input: Tensor, alpha: Number = 1.0) -> Tensor:
    """``input`` where positive, ``alpha * (exp(input) - 1)`` elsewhere (Clevert et al., 2015)."""

def feature_alpha_dropout(
    input: Tensor, p: _b.float = 0.5, training: _b.bool = False, inplace: _b.bool = False
) -> Tensor:
    """`alpha_dropout` of entire channels (dimension 1)."""

def fold(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Columns of sliding blocks (N, C * kernel places, blocks) added up into images (N, C, *output_size).

    RuntimeError when the number of columns is not that of `output_size`.

    >>> torch.nn.functional.fold(torch.ones(1, 4, 4), 3, 2)
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """

def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | Number,
    full: _b.bool = False,
    eps: _b.float = 1e-06,
    reduction: _b.str = "mean",
) -> Tensor:
    """``(log var + (input - target) ** 2 / var) / 2``, with ``var`` at least ``eps`` (Nix and Weigend, 1994)."""

def gelu(input: Tensor, *, approximate: _b.str = "none", out: Tensor | None = None) -> Tensor:
    """``input`` times the standard normal distribution function of ``input`` (Hendrycks and Gimpel, 2016).

    ``approximate="tanh"`` uses ``0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))``.
    """

def glu(input: Tensor, dim: _b.int = -1) -> Tensor:
    """The first half of ``input`` along ``dim`` times the sigmoid of the second half (Dauphin et al., 2016)."""

def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: _b.str = "bilinear",
    padding_mode: _b.str = "zeros",
    align_corners: _b.bool | None = None,
) -> Tensor:
    """`input` (N, C, H, W) or (N, C, D, H, W) read at the positions in `grid` (N, ..., 2 or 3): x first, -1 and 1 being
    the image's first and last pixel centres (`align_corners`) or its edges.

    Modes "bilinear", "nearest", "bicubic" (4-D input only); `padding_mode` "zeros", "border" or "reflection" defines
    what is outside.

    >>> torch.nn.functional.grid_sample(torch.tensor([[[[1., 2.]]]]), torch.zeros(1, 1, 1, 2), align_corners=False)
    tensor([[[[1.5000]]]])
    """

def gumbel_softmax(
    logits: Tensor, tau: _b.float = 1, hard: _b.bool = False, eps: _b.float = 1e-10, dim: _b.int = -1
) -> Tensor:
    """A sample from the Gumbel-softmax distribution (Jang et al., 2016): nearly one-hot for a small ``tau``.

    With ``hard=True`` the value is one-hot and the gradient is the soft sample's.
    """

def hardshrink(input: Tensor, lambd: _b.float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Zero within ``[-lambd, lambd]``, ``input`` elsewhere."""

def hardsigmoid(input: Tensor) -> Tensor:
    """``min(max(input + 3, 0), 6) / 6``, a piecewise linear sigmoid."""

def hardswish(input: Tensor) -> Tensor:
    """``input * hardsigmoid(input)`` (Howard et al., 2019)."""

def hardtanh(input: Tensor, min_val: _b.float = -1.0, max_val: Number = 1.0) -> Tensor:
    """``input`` limited to ``[min_val, max_val]``; the gradient is zero at and beyond the limits."""

def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: _b.float = 1.0,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1."""

def huber_loss(
    input: Tensor, target: Tensor, reduction: _b.str = "mean", delta: _b.float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """``error ** 2 / 2`` below ``delta`` and ``delta * (error - delta / 2)`` above (Huber, 1964)."""

def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: _b.float | Sequence[_b.float] | None = None,
    mode: _b.str = "nearest",
    align_corners: _b.bool | None = None,
    recompute_scale_factor: _b.bool | None = None,
    antialias: _b.bool = False,
) -> Tensor:
    """`input` (N, C, ...) resampled to `size`, or to its size times `scale_factor`."""

def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
    log_target: _b.bool = False,
) -> Tensor:
    """Kullback-Leibler divergence of ``target`` (probabilities, or their logarithms) from ``input``
    (log-probabilities), elementwise and then reduced.

    ``reduction="batchmean"`` divides the sum by the size of the first dimension.
    """

def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The mean (or sum) of ``|input - target|``; with ``weight``, the weighted mean."""

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

def leaky_relu(input: Tensor, negative_slope: _b.float = 0.01) -> Tensor:
    """``input`` where it is positive, ``negative_slope * input`` elsewhere."""

def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
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
    """``cross_entropy(linear(input, linear_weight, linear_bias), target, ...)``.

    A weight of shape (C, d1, ..., in_features) gives logits of shape (N, C, d1, ...). ``options`` asks PyTorch for a
    chunked computation, which changes memory use and not the result. `options` has no effect.
    """

def local_response_norm(
    input: Tensor, size: Ints, alpha: Number = 0.0001, beta: _b.float = 0.75, k: _b.float = 1.0
) -> Tensor:
    """``input / (k + alpha * mean of the squares of `size` neighbouring channels) ** beta``
    (Krizhevsky et al., 2012).
    """

def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(1 / (1 + exp(-input)))``, without overflow for any input."""

def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: _b.float = 0,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``: the first should be larger where the target is 1."""

def mish(input: Tensor) -> Tensor:
    """``input * tanh(softplus(input))`` (Misra, 2019)."""

def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The mean (or sum) of ``(input - target) ** 2``; with ``weight``, the weighted mean."""

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
    """``sum over i != y of max(0, margin - x[y] + x[i]) ** p / C``: the multi-class hinge loss."""

def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    """``sum over targets y and other classes i of max(0, 1 - x[y] + x[i]) / C``; each row of ``target`` lists classes,
    ended by -1.
    """

def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    """Binary cross entropy of ``sigmoid(input)`` against 0/1 targets, averaged over the classes
    (the last dimension).
    """

def native_channel_shuffle(input: Tensor, groups: _b.int, *, out: Tensor | None = None) -> Tensor:
    """The channels (dimension 1) of `input` dealt out over `groups` (Zhang et al., 2017, arXiv:1707.01083).

    >>> torch.nn.functional.channel_shuffle(torch.arange(4.).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """

def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: _b.bool | None = None,
    ignore_index: _b.int = -100,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    """Minus the log-probability (along dimension 1 of ``input``) of the class that ``target`` names.

    The mean is weighted by ``weight[target]``; targets equal to ``ignore_index`` do not count.
    """

def normalize(
    input: Tensor, p: _b.float = 2.0, dim: Ints = 1, eps: _b.float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """``input`` divided by its p-norm along ``dim``, or by ``eps`` where the norm is smaller; written to ``out``."""

def one_hot(input: Tensor, num_classes: _b.int = -1) -> Tensor:
    """Class indices as 0/1 rows: (*) -> (*, num_classes), int64; ``num_classes=-1`` is one more than the largest index.

    >>> F.one_hot(torch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """

def pad(input: Tensor, pad: Ints, mode: _b.str = "constant", value: _b.float | None = None) -> Tensor:
    """`input` with places added around its last dimensions.

    `pad` has two numbers a dimension, the last dimension first: how many places before and after. A negative number
    cuts. `mode` "constant" fills with `value` (default 0) and pads any number of dimensions; "reflect", "replicate"
    and "circular" pad the last one to three dimensions of an input with one or two more.

    >>> torch.nn.functional.pad(torch.tensor([[1., 2., 3.]]), (1, 2), mode="reflect")
    tensor([[2., 1., 2., 3., 2., 1.]])
    """

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

def pdist(input: Tensor, p: _b.float = 2.0, *, out: Tensor | None = None) -> Tensor:
    """Computes the distances between all pairs of rows of a matrix in a :math:`p`-norm."""

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
    """Minus the log-likelihood of ``target`` under a Poisson distribution of rate ``exp(input)``, or ``input`` when
    ``log_input=False``.

    ``full=True`` adds Stirling's approximation of ``log(target!)`` where ``target > 1``.
    """

def prelu(input: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input`` where positive, ``weight * input`` elsewhere; ``weight`` has one element or one for each channel
    (dimension 1).
    """

def relu6(input: Tensor) -> Tensor:
    """``min(max(input, 0), 6)``, elementwise."""

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

def rrelu(
    input: Tensor,
    lower: _b.float = 0.125,
    upper: Number = 0.3333333333333333,
    training: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Leaky relu whose slope is drawn from ``[lower, upper)`` for each negative element in training, and is the middle
    of the range otherwise. RuntimeError for bounds that are not finite, or not in order.
    """

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
    """``softmax(query @ key^T * scale + mask) @ value``: (..., L, E), (..., S, E), (..., S, V) -> (..., L, V).

    ``attn_mask`` broadcasts to (..., L, S): booleans say what takes part, floats are added. ``is_causal`` lets
    position i see keys 0 to i. ``scale`` is ``1 / sqrt(E)`` by default. With ``enable_gqa`` each key head serves
    several query heads.
    """

def selu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``elu`` scaled so that activations keep mean 0 and variance 1 from layer to layer (Klambauer et al., 2017)."""

def silu(input: Tensor) -> Tensor:
    """``input * sigmoid(input)``, also called swish."""

def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
    beta: _b.float = 1.0,
) -> Tensor:
    """``error ** 2 / (2 beta)`` below ``beta`` and ``error - beta / 2`` above (Girshick, 2015)."""

def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: _b.bool | None = None,
    reduce: _b.bool | None = None,
    reduction: _b.str = "mean",
) -> Tensor:
    """``log(1 + exp(-target * input))`` for targets of -1 and 1."""

def softplus(input: Tensor, beta: _b.float = 1.0, threshold: _b.float = 20.0, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``, and ``input`` itself where ``beta * input`` is above ``threshold``."""

def softshrink(input: Tensor, lambd: _b.float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """``input`` moved towards zero by ``lambd``; zero within ``[-lambd, lambd]``."""

def softsign(input: Tensor) -> Tensor:
    """``input / (1 + |input|)``."""

def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""

def threshold(input: Tensor, threshold: _b.float, value: Any, *, out: Tensor | None = None) -> Tensor:
    """``input`` where it is above ``threshold``, ``value`` elsewhere."""

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
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with the p-norm distance
    (Balntas et al., 2016).
    """

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
    """The triplet margin loss with a distance of your own (the Euclidean one by default)."""

def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """The sliding blocks of `input` (N, C, H, W) or (C, H, W) as columns: (N, C * kernel places, blocks). RuntimeError
    when no block fits.

    >>> torch.nn.functional.unfold(torch.ones(1, 1, 3, 3), 2).shape
    torch.Size([1, 4, 4])
    """

def upsample(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: _b.float | Sequence[_b.float] | None = None,
    mode: _b.str = "nearest",
    align_corners: _b.bool | None = None,
) -> Tensor:
    """Deprecated: `interpolate`."""

def upsample_bilinear(
    input: Tensor, size: Ints | None = None, scale_factor: _b.float | Sequence[_b.float] | None = None
) -> Tensor:
    """Deprecated: `interpolate` with mode "bilinear" and align_corners=True."""

def upsample_nearest(
    input: Tensor, size: Ints | None = None, scale_factor: _b.float | Sequence[_b.float] | None = None
) -> Tensor:
    """Deprecated: `interpolate` with mode "nearest"."""

def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + exp(-input))``."""

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent."""

def celu_(input: Tensor, alpha: Number = 1.0) -> Tensor:
    """In-place version of `celu`: writes the result into the tensor and returns it."""

def elu_(input: Tensor, alpha: Number = 1.0) -> Tensor:
    """In-place version of `elu`: writes the result into the tensor and returns it."""

def hardtanh_(input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0) -> Tensor:
    """In-place version of `hardtanh`: writes the result into the tensor and returns it."""

def leaky_relu_(input: Tensor, negative_slope: _b.float = 0.01) -> Tensor:
    """In-place version of `leaky_relu`: writes the result into the tensor and returns it."""

def relu_(input: Tensor) -> Tensor:
    """In-place version of `relu`: writes the result into the tensor and returns it."""

def rrelu_(
    input: Tensor, lower: _b.float = 0.125, upper: Number = 0.3333333333333333, training: _b.bool = False
) -> Tensor:
    """In-place version of `rrelu`: writes the result into the tensor and returns it."""

def selu_(input: Tensor) -> Tensor:
    """In-place version of `selu`: writes the result into the tensor and returns it."""

def threshold_(input: Tensor, threshold: _b.float, value: Any) -> Tensor:
    """In-place version of `threshold`: writes the result into the tensor and returns it."""
