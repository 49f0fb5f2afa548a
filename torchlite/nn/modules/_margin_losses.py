"""Losses with a margin: of classes, pairs and triplets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlite.nn import functional as F

from ._loss_base import _Loss, _WeightedLoss
from .distance import PairwiseDistance

if TYPE_CHECKING:
    from torchlite import Tensor


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
