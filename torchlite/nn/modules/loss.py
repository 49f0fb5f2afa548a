"""Losses as modules. `reduction` is "mean", "sum" or "none"; `size_average` and `reduce` are its deprecated form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlite._settings.adopted_classes import adopt_classes
from torchlite.nn import functional as F

from ._cross_entropy_losses import (
    CrossEntropyLoss,
    LinearCrossEntropyLoss,
    LinearCrossEntropyOptions,
    NLLLoss,
    NLLLoss2d,
)
from ._loss_base import _Loss, _WeightedLoss
from ._margin_losses import (
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from .module import Module, buffer_of  # noqa: F401 programs import Module from here

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "LinearCrossEntropyOptions",
    "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss",
    "NLLLoss2d", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]  # fmt: skip


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


adopt_classes(globals())
