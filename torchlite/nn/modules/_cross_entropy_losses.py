"""Losses of classes: negative log likelihood and cross entropy."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchlite.nn import functional as F

from ._loss_base import _WeightedLoss
from .linear import Linear
from .module import buffer_of

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


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
