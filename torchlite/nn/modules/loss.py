"""Losses as modules. `reduction` is "mean", "sum" or "none"; `size_average` and `reduce` are its deprecated form."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchlite.nn import functional as F

from .distance import PairwiseDistance
from .linear import Linear
from .module import Module, buffer_of

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "LinearCrossEntropyOptions",
    "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss",
    "NLLLoss2d", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]  # fmt: skip


def _legacy_reduction(size_average, reduce):
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    name = ("mean" if size_average else "sum") if reduce else "none"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.", stacklevel=4
    )
    return name


class _Loss(Module):
    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = _legacy_reduction(size_average, reduce)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    r"""Computes the absolute difference of input and target.

    .. math::

        \ell_i = |x_i - y_i|

    Args:
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each element, ``"mean"`` the mean of them, ``"sum"`` the sum.
            Default: ``"mean"``.

    Shape:
        - Input: ``(*)``, any shape.
        - Target: the shape of the input.
        - Output: ``()``; with ``reduction="none"`` the shape of the input.

    Example:
        >>> torch.nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 1.0]))
        tensor(1.5000)

    See also:
        `torch.nn.functional.l1_loss`, `MSELoss`, `SmoothL1Loss`, `HuberLoss`.
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    r"""Computes the negative log likelihood of target classes from log probabilities.

    .. math::

        \ell_n = -w_{y_n} \, x_{n, y_n}, \qquad \text{mean} = \frac{\sum_n \ell_n}{\sum_n w_{y_n}}

    The input :math:`x` holds log probabilities, for example from `LogSoftmax`. `CrossEntropyLoss` computes both in
    one.

    Args:
        weight: Weight of each class, shape ``(C,)``. ``None`` weighs all classes 1. Default: ``None``.
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        ignore_index: Targets of this value give a loss of 0 and no gradient, and do not count in the mean. Default:
            -100.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each target, ``"mean"`` their mean weighted by ``weight``, ``"sum"``
            the sum. Default: ``"mean"``.

    Shape:
        - Input: ``(N, C)``, ``(N, C, d1, ..., dK)``, or ``(C)`` without a batch.
        - Target: ``(N)``, ``(N, d1, ..., dK)``, or ``()``; int64 or uint8 indices in [0, C).
        - Output: ``()``; with ``reduction="none"`` the shape of the target.

    Attributes:
        weight (Tensor): The buffer of class weights, or ``None``.

    Raises:
        IndexError: A target on the CPU is not in [0, C) and is not ``ignore_index``.
        ValueError: Input and target have different batch sizes.
        RuntimeError: The shapes of input and target do not match, or ``weight`` has not C elements.

    Example:
        >>> log_probs = torch.nn.LogSoftmax(dim=1)(torch.zeros(3, 5))
        >>> torch.nn.NLLLoss()(log_probs, torch.tensor([1, 0, 4]))
        tensor(1.6094)

    See also:
        `torch.nn.functional.nll_loss`, `CrossEntropyLoss`, `LogSoftmax`.
    """

    __constants__ = ["ignore_index", "reduction"]

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(
            input,
            target,
            weight=buffer_of(self, NLLLoss, "weight"),
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class NLLLoss2d(NLLLoss):
    r"""Deprecated name of `NLLLoss`, formerly for images; the constructor warns.

    .. math::

        \ell_n = -w_{y_n} \, x_{n, y_n}, \qquad \text{mean} = \frac{\sum_n \ell_n}{\sum_n w_{y_n}}

    The input :math:`x` holds log probabilities, for example from `LogSoftmax`. `CrossEntropyLoss` computes both in
    one.

    Args:
        weight: Weight of each class, shape ``(C,)``. ``None`` weighs all classes 1. Default: ``None``.
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        ignore_index: Targets of this value give a loss of 0 and no gradient, and do not count in the mean. Default:
            -100.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each target, ``"mean"`` their mean weighted by ``weight``, ``"sum"``
            the sum. Default: ``"mean"``.

    Shape:
        - Input: ``(N, C)``, ``(N, C, d1, ..., dK)``, or ``(C)`` without a batch.
        - Target: ``(N)``, ``(N, d1, ..., dK)``, or ``()``; int64 or uint8 indices in [0, C).
        - Output: ``()``; with ``reduction="none"`` the shape of the target.

    Attributes:
        weight (Tensor): The buffer of class weights, or ``None``.

    Raises:
        IndexError: A target on the CPU is not in [0, C) and is not ``ignore_index``.
        ValueError: Input and target have different batch sizes.
        RuntimeError: The shapes of input and target do not match, or ``weight`` has not C elements.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     loss = torch.nn.NLLLoss2d()
        >>> loss(torch.full((1, 4, 2, 2), -1.5), torch.zeros(1, 2, 2, dtype=torch.int64))
        tensor(1.5000)

    See also:
        `torch.nn.functional.nll_loss`, `CrossEntropyLoss`, `LogSoftmax`.
    """

    __deprecated__ = (
        "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
        "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details."
    )

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        warnings.warn(self.__deprecated__, FutureWarning, stacklevel=2)
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class PoissonNLLLoss(_Loss):
    r"""Computes the negative log likelihood of counts under Poisson distributions.

    .. math::

        \ell_i = \exp(x_i) - y_i x_i \quad \text{or, with log\_input=False,} \quad \ell_i = x_i - y_i \log(x_i +
        \epsilon)

    The term :math:`\log(y!)` of the likelihood is constant, and left out. With ``full`` it is approximated by
    :math:`y \log y - y + \frac{1}{2} \log(2 \pi y)` for targets above 1.

    Args:
        log_input: Whether the input is the logarithm of the rate; else it is the rate. Default: ``True``.
        full: Whether to add Stirling's approximation of :math:`\log(y!)`. Default: ``False``.
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        eps: Added to the rate before the logarithm if ``log_input=False``. Default: 1e-8.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each element, ``"mean"`` the mean of them, ``"sum"`` the sum.
            Default: ``"mean"``.

    Shape:
        - Input: ``(*)``, any shape.
        - Target: the shape of the input.
        - Output: ``()``; with ``reduction="none"`` the shape of the input.

    Example:
        >>> torch.nn.PoissonNLLLoss()(torch.zeros(2), torch.tensor([1.0, 3.0]))
        tensor(1.)
        >>> torch.nn.PoissonNLLLoss(log_input=False)(torch.tensor([2.0]), torch.tensor([2.0]))
        tensor(0.6137)

    See also:
        `torch.nn.functional.poisson_nll_loss`, `GaussianNLLLoss`.
    """

    __constants__ = ["log_input", "full", "eps", "reduction"]

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    r"""Computes the negative log likelihood of targets under normal distributions.

    .. math::

        \ell_i = \frac{1}{2} \left( \log \max(v_i, \epsilon) + \frac{(x_i - y_i)^2}{\max(v_i, \epsilon)} \right)

    The input is the mean :math:`x` of the distribution; ``forward(input, target, var)`` also takes its variance
    :math:`v`. The limit of the variance is not differentiated.

    Args:
        full: Whether to add the constant :math:`\frac{1}{2} \log(2 \pi)`. Default: ``False``.
        eps: Lower limit of the variance. Default: 1e-6.
        reduction: ``"none"`` returns the loss of each element, ``"mean"`` the mean of them, ``"sum"`` the sum.
            Default: ``"mean"``.

    Shape:
        - Input and target: ``(*)``.
        - Var: the shape of the input, or the same with a last dimension of 1 or without the last dimension; or a
          number.
        - Output: ``()``; with ``reduction="none"`` the shape of the input.

    Raises:
        ValueError: A variance is negative, its shape does not match the input, or ``reduction`` is unknown.

    Example:
        >>> mean, target, variance = torch.tensor([0.0]), torch.tensor([2.0]), torch.tensor([1.0])
        >>> torch.nn.GaussianNLLLoss()(mean, target, variance)
        tensor(2.)

    References:
        - D. A. Nix, A. S. Weigend. Estimating the mean and variance of the target probability distribution. 1994.

    See also:
        `torch.nn.functional.gaussian_nll_loss`, `MSELoss`, `PoissonNLLLoss`.
    """

    __constants__ = ["full", "eps", "reduction"]

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class KLDivLoss(_Loss):
    r"""Computes the Kullback-Leibler divergence of the target distribution from the input distribution.

    .. math::

        \ell_i = y_i (\log y_i - x_i)

    The input :math:`x` holds log probabilities and the target :math:`y` probabilities. The divergence of the
    distributions is the sum over their elements, so ``"batchmean"`` is its mean over the batch, and ``"mean"`` is not.

    Args:
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"``, ``"mean"`` (over all elements, with a warning), ``"sum"``, or ``"batchmean"``: the sum
            divided by the size of dimension 0. Default: ``"mean"``.
        log_target: Whether the target holds log probabilities too. Default: ``False``.

    Shape:
        - Input: ``(*)``, any shape.
        - Target: the shape of the input.
        - Output: ``()``; with ``reduction="none"`` the shape of the input.

    Example:
        >>> target = torch.tensor([[0.5, 0.5]])
        >>> input = torch.tensor([[0.25, 0.75]]).log()
        >>> torch.nn.KLDivLoss(reduction="batchmean")(input, target)
        tensor(0.1438)

    References:
        - S. Kullback, R. A. Leibler. On information and sufficiency. 1951.

    See also:
        `torch.nn.functional.kl_div`, `CrossEntropyLoss`, `torch.distributions.kl_divergence`.
    """

    __constants__ = ["reduction"]

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class MSELoss(_Loss):
    r"""Computes the squared difference of input and target.

    .. math::

        \ell_i = (x_i - y_i)^2

    A target of another shape is broadcast, with a warning.

    Args:
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each element, ``"mean"`` the mean of them, ``"sum"`` the sum.
            Default: ``"mean"``.

    Shape:
        - Input: ``(*)``, any shape.
        - Target: the shape of the input.
        - Output: ``()``; with ``reduction="none"`` the shape of the input.

    Example:
        >>> torch.nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 1.0]))
        tensor(2.5000)
        >>> torch.nn.MSELoss(reduction="none")(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 1.0]))
        tensor([4., 1.])

    See also:
        `torch.nn.functional.mse_loss`, `L1Loss`, `HuberLoss`.
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class BCELoss(_WeightedLoss):
    r"""Computes the binary cross entropy of probabilities and targets.

    .. math::

        \ell_i = -w_i \left( y_i \log x_i + (1 - y_i) \log(1 - x_i) \right)

    The logarithms are limited to -100 from below, so the loss is finite. `BCEWithLogitsLoss` is more exact for
    probabilities that come from a sigmoid.

    Args:
        weight: Factor of each element; its shape broadcasts to the input's. Default: ``None``.
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each element, ``"mean"`` the mean of them, ``"sum"`` the sum.
            Default: ``"mean"``.

    Shape:
        - Input: ``(*)``, any shape.
        - Target: the shape of the input.
        - Output: ``()``; with ``reduction="none"`` the shape of the input.

    Attributes:
        weight (Tensor): The buffer of factors, or ``None``.

    Raises:
        RuntimeError: An element of the input is not in [0, 1].
        ValueError: Input and target have different shapes.

    Example:
        >>> torch.nn.BCELoss()(torch.tensor([0.5, 0.25]), torch.tensor([1.0, 0.0]))
        tensor(0.4904)
        >>> torch.nn.BCELoss()(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor(100.)

    See also:
        `torch.nn.functional.binary_cross_entropy`, `BCEWithLogitsLoss`.
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(
            input, target, weight=buffer_of(self, BCELoss, "weight"), reduction=self.reduction
        )


class BCEWithLogitsLoss(_Loss):
    r"""Computes the binary cross entropy of the logistic function of the input and targets.

    .. math::

        \ell_i = -w_i \left( p_i \, y_i \log \sigma(x_i) + (1 - y_i) \log(1 - \sigma(x_i)) \right)

    The loss is computed from the logits without overflow; no probability rounds to 0 or 1.

    Args:
        weight: Factor :math:`w` of each element; its shape broadcasts to the input's. Default: ``None``.
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each element, ``"mean"`` the mean of them, ``"sum"`` the sum.
            Default: ``"mean"``.
        pos_weight: Factor :math:`p` of the positive term; its shape broadcasts to the input's, for example ``(C,)``
            for ``(N, C)``. Above 1 it raises recall, below 1 precision. Default: ``None``.

    Shape:
        - Input: ``(*)``, any shape.
        - Target: the shape of the input.
        - Output: ``()``; with ``reduction="none"`` the shape of the input.

    Attributes:
        weight (Tensor): The buffer of factors, or ``None``.
        pos_weight (Tensor): The buffer of factors of the positive term, or ``None``.

    Raises:
        ValueError: Input and target have different shapes.

    Example:
        >>> torch.nn.BCEWithLogitsLoss()(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]))
        tensor(1.4100)
        >>> torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0))(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor(2.0794)

    See also:
        `torch.nn.functional.binary_cross_entropy_with_logits`, `BCELoss`, `MultiLabelSoftMarginLoss`.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input,
            target,
            buffer_of(self, BCEWithLogitsLoss, "weight"),
            pos_weight=buffer_of(self, BCEWithLogitsLoss, "pos_weight"),
            reduction=self.reduction,
        )


class HingeEmbeddingLoss(_Loss):
    r"""Computes a hinge loss of distances between similar and dissimilar pairs.

    .. math::

        \ell_i = \begin{cases} x_i & \text{if } y_i = 1 \\ \max(0, \text{margin} - x_i) & \text{if } y_i = -1
        \end{cases}

    The input :math:`x` holds distances. The target :math:`y` is 1 for a similar pair and -1 for a dissimilar one.

    Args:
        margin: Distance above which dissimilar pairs have no loss. Default: 1.
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each element, ``"mean"`` the mean of them, ``"sum"`` the sum.
            Default: ``"mean"``.

    Shape:
        - Input: ``(*)``, any shape.
        - Target: the shape of the input.
        - Output: ``()``; with ``reduction="none"`` the shape of the input.

    Example:
        >>> torch.nn.HingeEmbeddingLoss()(torch.tensor([0.5, 0.25]), torch.tensor([1, -1]))
        tensor(0.6250)

    See also:
        `torch.nn.functional.hinge_embedding_loss`, `CosineEmbeddingLoss`.
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    r"""Computes a hinge loss between target classes and other classes, for several targets a sample.

    .. math::

        \ell = \frac{1}{C} \sum_{j \in Y} \sum_{i \notin Y} \max(0, 1 - (x_j - x_i))

    The set :math:`Y` holds the classes of the target before its first negative element. In the example it is {3, 0}.

    Args:
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each sample, ``"mean"`` the mean of them, ``"sum"`` the sum. Default:
            ``"mean"``.

    Shape:
        - Input: ``(N, C)``, or ``(C)`` without a batch.
        - Target: the shape of the input, int64; each row is padded with -1.
        - Output: ``()``; with ``reduction="none"`` ``(N)``.

    Raises:
        RuntimeError: Input and target have different shapes.

    Example:
        >>> scores, target = torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([[3, 0, -1, 1]])
        >>> torch.nn.MultiLabelMarginLoss()(scores, target)
        tensor(0.8500)

    See also:
        `torch.nn.functional.multilabel_margin_loss`, `MultiMarginLoss`, `MultiLabelSoftMarginLoss`.
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    r"""Computes a squared error for small and an absolute error for large differences.

    .. math::

        \ell_i = \begin{cases} (x_i - y_i)^2 / (2 \beta) & \text{if } |x_i - y_i| < \beta \\ |x_i - y_i| - \beta / 2 &
        \text{otherwise} \end{cases}

    It equals `HuberLoss` with ``delta=beta``, divided by ``beta``.

    Args:
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each element, ``"mean"`` the mean of them, ``"sum"`` the sum.
            Default: ``"mean"``.
        beta: Difference at which the two parts meet; not negative. With 0 the loss is `L1Loss`. Default: 1.

    Shape:
        - Input: ``(*)``, any shape.
        - Target: the shape of the input.
        - Output: ``()``; with ``reduction="none"`` the shape of the input.

    Raises:
        RuntimeError: ``beta`` is negative.

    Example:
        >>> torch.nn.SmoothL1Loss(reduction="none")(torch.tensor([0.5, 3.0]), torch.zeros(2))
        tensor([0.1250, 2.5000])

    References:
        - R. Girshick. Fast R-CNN. 2015.

    See also:
        `torch.nn.functional.smooth_l1_loss`, `HuberLoss`, `L1Loss`.
    """

    __constants__ = ["reduction"]

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    r"""Computes a squared error for small and a linear error for large differences.

    .. math::

        \ell_i = \begin{cases} \frac{1}{2} (x_i - y_i)^2 & \text{if } |x_i - y_i| < \delta \\ \delta \, (|x_i - y_i| -
        \delta / 2) & \text{otherwise} \end{cases}

    Args:
        reduction: ``"none"`` returns the loss of each element, ``"mean"`` the mean of them, ``"sum"`` the sum.
            Default: ``"mean"``.
        delta: Difference at which the two parts meet; greater than 0. Default: 1.

    Shape:
        - Input: ``(*)``, any shape.
        - Target: the shape of the input.
        - Output: ``()``; with ``reduction="none"`` the shape of the input.

    Raises:
        TypeError: ``delta`` is neither an int nor a float.
        RuntimeError: ``delta`` is not greater than 0, at the call.

    Example:
        >>> torch.nn.HuberLoss(reduction="none", delta=2.0)(torch.tensor([1.0, 3.0]), torch.zeros(2))
        tensor([0.5000, 4.0000])

    References:
        - P. J. Huber. Robust estimation of a location parameter. 1964.

    See also:
        `torch.nn.functional.huber_loss`, `SmoothL1Loss`, `MSELoss`.
    """

    __constants__ = ["reduction", "delta"]

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (int, float)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class SoftMarginLoss(_Loss):
    r"""Computes the logistic loss of scores and targets of 1 and -1.

    .. math::

        \ell_i = \log(1 + \exp(-y_i x_i))

    Args:
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each element, ``"mean"`` the mean of them, ``"sum"`` the sum.
            Default: ``"mean"``.

    Shape:
        - Input: ``(*)``, any shape.
        - Target: the shape of the input.
        - Output: ``()``; with ``reduction="none"`` the shape of the input.

    Example:
        >>> torch.nn.SoftMarginLoss()(torch.tensor([0.0, 2.0]), torch.tensor([1.0, -1.0]))
        tensor(1.4100)

    See also:
        `torch.nn.functional.soft_margin_loss`, `BCEWithLogitsLoss`.
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    r"""Computes the cross entropy of target classes and the softmax of logits.

    .. math::

        \ell_n = -w_{y_n} \log \frac{\exp(x_{n, y_n})}{\sum_{c=1}^{C} \exp(x_{n, c})}

    The target holds class indices :math:`y`, as in the formula, or probabilities of the classes. For probabilities the
    loss is :math:`\ell_n = -\sum_c w_c \, y_{n, c} \log \operatorname{softmax}(x_n)_c`. For class indices, ``"mean"``
    divides the sum by the sum of the weights :math:`w_{y_n}` of the targets that count. For probabilities it divides
    by the number of targets.

    With ``label_smoothing`` :math:`\alpha` the target distribution is :math:`(1 - \alpha) y + \alpha / C`.

    Args:
        weight: Weight of each class, shape ``(C,)``. ``None`` weighs all classes 1. Default: ``None``.
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        ignore_index: Targets of this value give a loss of 0 and no gradient, and do not count in the mean. It is for
            class indices only. Default: -100.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each target, ``"sum"`` the sum of them, ``"mean"`` their mean.
            Default: ``"mean"``.
        label_smoothing: Share of the target that is spread evenly over all classes; in [0, 1]. Default: 0.

    Shape:
        - Input: ``(N, C)``, ``(N, C, d1, ..., dK)``, or ``(C)`` without a batch.
        - Target: ``(N)``, ``(N, d1, ..., dK)``, or ``()``, of int64 or uint8 indices in [0, C); or floating point
          probabilities of the shape of the input.
        - Output: ``()``; with ``reduction="none"`` the shape of the input without the dimension of the classes.

    Attributes:
        weight (Tensor): The buffer of class weights, or ``None``.

    Raises:
        IndexError: A target index on the CPU is not in [0, C) and is not ``ignore_index``.
        ValueError: Input and target have different batch sizes.
        RuntimeError: The other sizes do not match, or ``label_smoothing`` is not in [0, 1].

    Example:
        >>> loss = torch.nn.CrossEntropyLoss()
        >>> loss(torch.zeros(3, 5), torch.tensor([1, 0, 4]))
        tensor(1.6094)
        >>> loss(torch.zeros(1, 2), torch.tensor([[0.5, 0.5]]))
        tensor(0.6931)

    References:
        - C. Szegedy, V. Vanhoucke, S. Ioffe, J. Shlens, Z. Wojna. Rethinking the Inception architecture for computer
          vision. 2016. (Label smoothing.)

    See also:
        `torch.nn.functional.cross_entropy`, `NLLLoss`, `LinearCrossEntropyLoss`, `BCEWithLogitsLoss`.
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=buffer_of(self, CrossEntropyLoss, "weight"),
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


@dataclass
class LinearCrossEntropyOptions:
    """Options of `LinearCrossEntropyLoss` that PyTorch uses to process a batch in chunks.

    torchlite accepts the options and computes the loss in one piece; they have no effect.

    Args:
        allow_retain_graph: Whether the backward pass may run twice. Default: ``False``.
        batch_chunk_size: Number of samples of a chunk. Default: ``None``.
        chunking_method: How to choose the size of a chunk. Default: ``"auto"``.
        acc_policy: Where gradients are summed. Default: ``"auto"``.
        acc_dtype: Dtype of the sums. Default: ``None``.

    Returns:
        A dataclass, for the argument ``options`` of the loss.

    Example:
        >>> options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
        >>> loss = torch.nn.LinearCrossEntropyLoss(4, 3, options=options)
        >>> loss(torch.zeros(5, 4), torch.zeros(5, dtype=torch.int64)).item()
        1.0986...

    See also:
        `LinearCrossEntropyLoss`.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: object = None


class LinearCrossEntropyLoss(_WeightedLoss):
    r"""Applies a linear layer to the input and computes the cross entropy of its output.

    .. math::

        \ell = \text{CrossEntropy}(x A^{\mathsf{T}} + b, \; y)

    Args:
        in_features: Size of the last dimension of the input.
        num_classes: Number of classes :math:`C`.
        out_features: Sizes of further dimensions of the target, each with its own logits. Default: ``()``.
        bias: Whether the linear layer has a bias. Default: ``False``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``, as in `CrossEntropyLoss`. Default: ``"mean"``.
        weight: Weight of each class, shape ``(C,)``. Default: ``None``.
        ignore_index: Targets of this value do not count. ``None`` is -100. Default: ``None``.
        label_smoothing: Share of the target that is spread evenly over all classes; in [0, 1]. Default: 0.
        options: `LinearCrossEntropyOptions`; no effect. Default: ``None``.

    Shape:
        - Input: ``(N, in_features)``, or ``(in_features)`` if ``out_features`` is empty.
        - Target: ``(N, *out_features)`` of class indices, or ``(N, num_classes, *out_features)`` of probabilities.
        - Output: ``()``; with ``reduction="none"`` ``(N, *out_features)``.

    Attributes:
        linear (Linear): The layer of ``num_classes * prod(out_features)`` outputs, initialized as in `Linear`.
        weight (Tensor): The buffer of class weights, or ``None``.

    Raises:
        RuntimeError: ``weight`` has not the shape ``(num_classes,)``, or ``label_smoothing`` is not in [0, 1].

    Example:
        >>> loss = torch.nn.LinearCrossEntropyLoss(4, 3)
        >>> loss(torch.zeros(5, 4), torch.zeros(5, dtype=torch.int64)).item()
        1.0986...
        >>> loss.linear.weight.shape
        torch.Size([3, 4])

    See also:
        `torch.nn.functional.linear_cross_entropy`, `CrossEntropyLoss`, `AdaptiveLogSoftmaxWithLoss`.
    """

    __constants__ = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]

    def __init__(
        self,
        in_features: int,
        num_classes: Any,
        *,
        out_features: Any = (),
        bias: bool = False,
        device: DeviceLike = None,
        dtype: DType | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0.0 <= label_smoothing <= 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight=weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        total = num_classes
        for size in self.out_features:
            total *= size
        self.linear = Linear(in_features, total, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    r"""Computes the mean over the classes of the binary cross entropy, for several targets a sample.

    .. math::

        \ell_n = -\frac{1}{C} \sum_{c=1}^{C} w_c \left( y_{n, c} \log \sigma(x_{n, c}) + (1 - y_{n, c}) \log
        \sigma(-x_{n, c}) \right)

    Args:
        weight: Weight of each class, shape ``(C,)``. ``None`` weighs all classes 1. Default: ``None``.
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each sample, ``"mean"`` the mean of them, ``"sum"`` the sum. Default:
            ``"mean"``.

    Shape:
        - Input: ``(N, C)``.
        - Target: the shape of the input; 1 for classes of the sample, 0 for others.
        - Output: ``()``; with ``reduction="none"`` ``(N)``.

    Attributes:
        weight (Tensor): The buffer of class weights, or ``None``.

    Example:
        >>> torch.nn.MultiLabelSoftMarginLoss()(torch.zeros(2, 3), torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]]))
        tensor(0.6931)

    See also:
        `torch.nn.functional.multilabel_soft_margin_loss`, `BCEWithLogitsLoss`.
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    r"""Computes a loss of the cosine similarity of pairs that are similar or dissimilar.

    .. math::

        \ell = \begin{cases} 1 - \cos(x_1, x_2) & \text{if } y = 1 \\ \max(0, \cos(x_1, x_2) - \text{margin}) &
        \text{if } y = -1 \end{cases}

    Args:
        margin: Similarity below which dissimilar pairs have no loss; usually in [0, 0.5]. Default: 0.
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each pair, ``"mean"`` the mean of them, ``"sum"`` the sum. Default:
            ``"mean"``.

    Shape:
        - Inputs: ``(N, D)``, or ``(D)`` without a batch.
        - Target: ``(N)`` or ``()``, of 1 and -1.
        - Output: ``()``; with ``reduction="none"`` the shape of the target.

    Raises:
        RuntimeError: The target has more than 1 dimension, or the inputs have not one dimension more than it.

    Example:
        >>> first, second = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        >>> torch.nn.CosineEmbeddingLoss(reduction="none")(first, second, torch.tensor([1, -1]))
        tensor([1., 1.])

    See also:
        `torch.nn.functional.cosine_embedding_loss`, `CosineSimilarity`, `TripletMarginLoss`.
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    r"""Computes a hinge loss of the order of two scores.

    .. math::

        \ell = \max(0, -y (x_1 - x_2) + \text{margin})

    The target :math:`y` is 1 if the first score should be the larger one, and -1 if the second should.

    Args:
        margin: Difference above which pairs in the right order have no loss. Default: 0.
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each pair, ``"mean"`` the mean of them, ``"sum"`` the sum. Default:
            ``"mean"``.

    Shape:
        - Inputs and target: ``(N)`` or ``()``, with equal numbers of dimensions.
        - Output: ``()``; with ``reduction="none"`` the shape of the inputs.

    Raises:
        RuntimeError: The three tensors have different numbers of dimensions.

    Example:
        >>> loss = torch.nn.MarginRankingLoss(margin=0.5)
        >>> loss(torch.tensor([2.0, 1.0]), torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0]))
        tensor(1.2500)

    See also:
        `torch.nn.functional.margin_ranking_loss`, `TripletMarginLoss`.
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    r"""Computes a hinge loss between the target class and the other classes.

    .. math::

        \ell_n = \frac{1}{C} \sum_{i \ne y_n} w_{y_n} \max(0, \text{margin} - x_{n, y_n} + x_{n, i})^p

    Args:
        p: Exponent: 1 or 2. Default: 1.
        margin: Difference above which a class has no loss. Default: 1.
        weight: Weight of each class, shape ``(C,)``. ``None`` weighs all classes 1. Default: ``None``.
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each sample, ``"mean"`` the mean of them, ``"sum"`` the sum. Default:
            ``"mean"``.

    Shape:
        - Input: ``(N, C)``, or ``(C)`` without a batch.
        - Target: ``(N)`` or ``()``; int64 indices in [0, C).
        - Output: ``()``; with ``reduction="none"`` the shape of the target.

    Attributes:
        weight (Tensor): The buffer of class weights, or ``None``.

    Raises:
        ValueError: ``p`` is neither 1 nor 2, or ``weight`` has not 1 dimension.
        RuntimeError: A target is out of range, or the sizes do not match.

    Example:
        >>> torch.nn.MultiMarginLoss()(torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([3]))
        tensor(0.3250)

    References:
        - J. Weston, C. Watkins. Support vector machines for multi-class pattern recognition. 1999.

    See also:
        `torch.nn.functional.multi_margin_loss`, `MultiLabelMarginLoss`, `CrossEntropyLoss`.
    """

    __constants__ = ["p", "margin", "reduction"]

    def __init__(
        self,
        p: float = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    r"""Computes a hinge loss of the distances of an anchor to a positive and to a negative sample.

    .. math::

        \ell = \max(0, \; d(a, p) - d(a, n) + \text{margin})

    The anchor :math:`a` should be nearer to the positive sample :math:`p` than to the negative sample :math:`n`. The
    distance is :math:`d(u, v) = \lVert u - v + \epsilon \rVert_p`.

    Args:
        margin: Difference of the distances above which there is no loss; greater than 0. Default: 1.
        p: Exponent of the norm. Default: 2.
        eps: Added to each difference before the norm. Default: 1e-6.
        swap: Whether to use :math:`d(p, n)` in place of :math:`d(a, n)` where it is smaller. Default: ``False``.
        size_average: Deprecated, replaced by ``reduction``. ``False`` selects ``"sum"``. Default: ``None``.
        reduce: Deprecated, replaced by ``reduction``. ``False`` selects ``"none"``. Default: ``None``.
        reduction: ``"none"`` returns the loss of each triplet, ``"mean"`` the mean of them, ``"sum"`` the sum.
            Default: ``"mean"``.

    Shape:
        - Anchor, positive and negative: ``(N, D)``, or ``(D)`` without a batch.
        - Output: ``()``; with ``reduction="none"`` ``(N)``.

    Raises:
        ValueError: ``margin`` is not greater than 0.

    Example:
        >>> anchor, positive, negative = torch.zeros(1, 2), torch.tensor([[0.0, 2.0]]), torch.tensor([[2.5, 0.0]])
        >>> torch.nn.TripletMarginLoss(eps=0)(anchor, positive, negative)
        tensor(0.5000)

    References:
        - V. Balntas, E. Riba, D. Ponsa, K. Mikolajczyk. Learning local feature descriptors with triplets and shallow
          convolutional neural networks. 2016.

    See also:
        `torch.nn.functional.triplet_margin_loss`, `TripletMarginWithDistanceLoss`, `PairwiseDistance`.
    """

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    r"""Computes the triplet loss of `TripletMarginLoss` with any distance function.

    .. math::

        \ell = \max(0, \; d(a, p) - d(a, n) + \text{margin})

    The anchor :math:`a` should be nearer to the positive sample :math:`p` than to the negative sample :math:`n`. All
    arguments are keyword only.

    Args:
        distance_function: Function of two tensors that returns their distances. ``None`` is `PairwiseDistance`.
            Default: ``None``.
        margin: Difference of the distances above which there is no loss; greater than 0. Default: 1.
        swap: Whether to use :math:`d(p, n)` in place of :math:`d(a, n)` where it is smaller. Default: ``False``.
        reduction: ``"none"`` returns the loss of each triplet, ``"mean"`` the mean of them, ``"sum"`` the sum.
            Default: ``"mean"``.

    Shape:
        - Anchor, positive and negative: ``(N, *)``, as ``distance_function`` takes them.
        - Output: ``()``; with ``reduction="none"`` the shape of the distances.

    Raises:
        ValueError: ``margin`` is not greater than 0.

    Example:
        >>> loss = torch.nn.TripletMarginWithDistanceLoss(distance_function=lambda u, v: (u - v).abs().amax(-1))
        >>> loss(torch.zeros(1, 2), torch.tensor([[0.0, 2.0]]), torch.tensor([[2.5, 0.0]]))
        tensor(0.5000)

    References:
        - V. Balntas, E. Riba, D. Ponsa, K. Mikolajczyk. Learning local feature descriptors with triplets and shallow
          convolutional neural networks. 2016.

    See also:
        `torch.nn.functional.triplet_margin_with_distance_loss`, `TripletMarginLoss`.
    """

    __constants__ = ["margin", "swap", "reduction"]

    def __init__(
        self, *, distance_function: Any = None, margin: float = 1.0, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__(None, None, reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.distance_function = distance_function if distance_function is not None else PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    r"""Computes the connectionist temporal classification loss of label sequences without alignment.

    .. math::

        \ell = -\log \sum_{\pi \in \mathcal{B}^{-1}(y)} \prod_{t=1}^{T} p_t(\pi_t)

    The sum is over the alignments :math:`\pi`: sequences of :math:`T` labels from which removing repeats and then
    blanks leaves the target :math:`y`.

    Args:
        blank: Class of the blank label. Default: 0.
        reduction: ``"none"`` returns the loss of each sample, ``"sum"`` the sum of them. ``"mean"`` divides each by
            the length of its target (at least 1) and returns the mean over the batch. Default: ``"mean"``.
        zero_infinity: Whether infinite losses, and their gradients, become zero. They occur where an input is too
            short for its target. Default: ``False``.

    Shape:
        - Log probs: ``(T, N, C)``, or ``(T, C)`` without a batch; logarithms of probabilities, for example from
          `LogSoftmax`.
        - Targets: ``(N, S)``, padded to the longest, or ``(sum(target_lengths))``, one after the other; class indices
          other than ``blank``.
        - Input lengths: ``(N)`` or ``()``; at most T.
        - Target lengths: ``(N)`` or ``()``.
        - Output: ``()``; with ``reduction="none"`` ``(N)``, or ``()`` without a batch.

    Raises:
        RuntimeError: A length is out of range, the lengths are not integral, or ``blank`` is not a class.
        ValueError: ``reduction`` is unknown.

    Example:
        >>> log_probs = torch.full((4, 1, 2), 0.5).log()  # T = 4, N = 1, C = 2
        >>> targets, input_lengths, target_lengths = torch.tensor([[1, 1]]), torch.tensor([4]), torch.tensor([2])
        >>> torch.nn.CTCLoss(reduction="sum")(log_probs, targets, input_lengths, target_lengths)
        tensor(1.1632)

    References:
        - A. Graves, S. Fernández, F. Gomez, J. Schmidhuber. Connectionist temporal classification: labelling
          unsegmented sequence data with recurrent neural networks. 2006.

    See also:
        `torch.nn.functional.ctc_loss`, `LogSoftmax`.
    """

    __constants__ = ["blank", "reduction"]

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
