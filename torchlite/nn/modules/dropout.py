"""Dropout layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlite.nn import functional as F

from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    r"""Zeroes random elements of the input in training mode and scales the others; else returns the input.

    .. math::

        y_i = \frac{m_i x_i}{1 - p}, \qquad m_i \sim \text{Bernoulli}(1 - p)

    Each call draws new :math:`m_i`. The scale keeps the expected value of each element, so evaluation mode needs no
    change.

    Args:
        p: Probability of zeroing an element; in [0, 1]. Default: 0.5.
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Raises:
        ValueError: ``p`` is not in [0, 1].

    Example:
        >>> layer = torch.nn.Dropout(p=0.2)
        >>> set(layer(torch.ones(1000)).tolist()) == {0.0, 1.25}
        True
        >>> layer.eval()(torch.ones(3))
        tensor([1., 1., 1.])

    References:
        - G. E. Hinton, N. Srivastava, A. Krizhevsky, I. Sutskever, R. R. Salakhutdinov. Improving neural networks by
          preventing co-adaptation of feature detectors. 2012.

    See also:
        `torch.nn.functional.dropout`, `Dropout2d`, `AlphaDropout`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    r"""Zeroes random channels of each sample in training mode and scales the others; else returns the input.

    .. math::

        y_{n, c} = \frac{m_{n, c} \, x_{n, c}}{1 - p}, \qquad m_{n, c} \sim \text{Bernoulli}(1 - p)

    Neighbouring positions of a channel are correlated, so zeroing single elements, as `Dropout` does, removes little
    information. Here a channel is zeroed or kept as a whole.

    Args:
        p: Probability of zeroing a channel; in [0, 1]. Default: 0.5.
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input: ``(N, C, L)``, or ``(C, L)`` without a batch.
        - Output: the shape of the input.

    Raises:
        ValueError: ``p`` is not in [0, 1].
        RuntimeError: The input has not 2 or 3 dimensions.

    Example:
        >>> layer = torch.nn.Dropout1d(p=0.2)
        >>> layer(torch.zeros(20, 16, 32)).shape
        torch.Size([20, 16, 32])

    References:
        - J. Tompson, R. Goroshin, A. Jain, Y. LeCun, C. Bregler. Efficient object localization using convolutional
          networks. 2015.

    See also:
        `torch.nn.functional.dropout1d`, `Dropout`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    r"""Zeroes random channels of each sample in training mode and scales the others; else returns the input.

    .. math::

        y_{n, c} = \frac{m_{n, c} \, x_{n, c}}{1 - p}, \qquad m_{n, c} \sim \text{Bernoulli}(1 - p)

    Neighbouring positions of a channel are correlated, so zeroing single elements, as `Dropout` does, removes little
    information. Here a channel is zeroed or kept as a whole.

    Args:
        p: Probability of zeroing a channel; in [0, 1]. Default: 0.5.
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input: ``(N, C, H, W)``. A 3-dimensional input is taken as ``(N, C, L)``, with a warning.
        - Output: the shape of the input.

    Raises:
        ValueError: ``p`` is not in [0, 1].

    Example:
        >>> layer = torch.nn.Dropout2d(p=0.2)
        >>> layer(torch.zeros(20, 16, 32, 32)).shape
        torch.Size([20, 16, 32, 32])

    References:
        - J. Tompson, R. Goroshin, A. Jain, Y. LeCun, C. Bregler. Efficient object localization using convolutional
          networks. 2015.

    See also:
        `torch.nn.functional.dropout2d`, `Dropout`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    r"""Zeroes random channels of each sample in training mode and scales the others; else returns the input.

    .. math::

        y_{n, c} = \frac{m_{n, c} \, x_{n, c}}{1 - p}, \qquad m_{n, c} \sim \text{Bernoulli}(1 - p)

    Neighbouring positions of a channel are correlated, so zeroing single elements, as `Dropout` does, removes little
    information. Here a channel is zeroed or kept as a whole.

    Args:
        p: Probability of zeroing a channel; in [0, 1]. Default: 0.5.
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input: ``(N, C, D, H, W)``, or ``(C, D, H, W)`` without a batch.
        - Output: the shape of the input.

    Raises:
        ValueError: ``p`` is not in [0, 1].

    Example:
        >>> layer = torch.nn.Dropout3d(p=0.2)
        >>> layer(torch.zeros(2, 16, 4, 8, 8)).shape
        torch.Size([2, 16, 4, 8, 8])

    References:
        - J. Tompson, R. Goroshin, A. Jain, Y. LeCun, C. Bregler. Efficient object localization using convolutional
          networks. 2015.

    See also:
        `torch.nn.functional.dropout3d`, `Dropout`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    r"""Sets random elements to the negative saturation value of SELU and keeps mean and variance.

    .. math::

        y = a \, (m x + (1 - m) \, \alpha') + b, \qquad m \sim \text{Bernoulli}(1 - p)

    Here :math:`\alpha' = -\lambda \alpha \approx -1.7581` is the limit of `SELU` at minus infinity. The constants
    :math:`a` and :math:`b` depend on :math:`p` and keep mean 0 and variance 1. In evaluation mode the input is
    returned.

    Args:
        p: Probability of dropping an element; in [0, 1]. Default: 0.5.
        inplace: No effect; the result is a new tensor. Default: ``False``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Raises:
        ValueError: ``p`` is not in [0, 1].

    Example:
        >>> layer = torch.nn.AlphaDropout(p=0.2)
        >>> layer(torch.zeros(20, 16)).shape
        torch.Size([20, 16])
        >>> layer.eval()(torch.ones(3))
        tensor([1., 1., 1.])

    References:
        - G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter. Self-normalizing neural networks. 2017.

    See also:
        `torch.nn.functional.alpha_dropout`, `SELU`, `FeatureAlphaDropout`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    r"""Sets random channels to the negative saturation value of SELU and keeps mean and variance.

    .. math::

        y = a \, (m x + (1 - m) \, \alpha') + b, \qquad m \sim \text{Bernoulli}(1 - p)

    Here :math:`\alpha' = -\lambda \alpha \approx -1.7581` is the limit of `SELU` at minus infinity. The constants
    :math:`a` and :math:`b` depend on :math:`p` and keep mean 0 and variance 1. In evaluation mode the input is
    returned. All elements of a channel share one :math:`m`.

    Args:
        p: Probability of dropping a channel; in [0, 1]. Default: 0.5.
        inplace: No effect; the result is a new tensor. Default: ``False``.

    Shape:
        - Input: ``(N, C, *)`` with at least 2 dimensions.
        - Output: the shape of the input.

    Raises:
        ValueError: ``p`` is not in [0, 1].
        RuntimeError: The input has fewer than 2 dimensions in training mode.

    Example:
        >>> layer = torch.nn.FeatureAlphaDropout(p=0.2)
        >>> layer(torch.zeros(20, 16, 4, 32, 32)).shape
        torch.Size([20, 16, 4, 32, 32])

    References:
        - G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter. Self-normalizing neural networks. 2017.

    See also:
        `torch.nn.functional.feature_alpha_dropout`, `AlphaDropout`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
