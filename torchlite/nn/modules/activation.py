"""Activations as modules: the smooth ones and softmax.

The others are in _piecewise_activations.py, MultiheadAttention is in attention.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._settings.adopted_classes import adopt_classes
from torchlite.nn import functional as F
from torchlite.nn.init import constant_, xavier_normal_, xavier_uniform_  # noqa: F401 programs import them from here

from ._piecewise_activations import (
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    Softshrink,
    Threshold,
    _Inplace,
)
from .attention import MultiheadAttention
from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax",
    "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


class Sigmoid(Module):
    r"""Applies the logistic function to each element.

    .. math::

        y = \sigma(x) = \frac{1}{1 + \exp(-x)}

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.Sigmoid()(torch.tensor([0.0, 1.0]))
        tensor([0.5000, 0.7311])

    See also:
        `torch.sigmoid`, `LogSigmoid`, `Hardsigmoid`, `BCEWithLogitsLoss`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return torch.sigmoid(input)


class Tanh(Module):
    r"""Applies the hyperbolic tangent to each element.

    .. math::

        y = \tanh(x) = \frac{\exp(x) - \exp(-x)}{\exp(x) + \exp(-x)}

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.Tanh()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.7616,  0.0000,  0.7616])

    See also:
        `torch.tanh`, `Hardtanh`, `Sigmoid`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return torch.tanh(input)


class SiLU(_Inplace):
    r"""Multiplies each element by its logistic function (also called swish).

    .. math::

        y = x \, \sigma(x)

    Args:
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.SiLU()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.2689,  0.0000,  0.7311])

    References:
        - D. Hendrycks, K. Gimpel. Gaussian error linear units (GELUs). 2016.
        - S. Elfwing, E. Uchibe, K. Doya. Sigmoid-weighted linear units for neural network function approximation in
          reinforcement learning. 2017.
        - P. Ramachandran, B. Zoph, Q. V. Le. Searching for activation functions. 2017.

    See also:
        `torch.nn.functional.silu`, `Hardswish`, `GELU`, `Mish`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(_Inplace):
    r"""Multiplies each element by the hyperbolic tangent of its softplus.

    .. math::

        y = x \tanh(\log(1 + \exp(x)))

    Args:
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.Mish()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.3034,  0.0000,  0.8651])

    References:
        - D. Misra. Mish: a self regularized non-monotonic activation function. 2019.

    See also:
        `torch.nn.functional.mish`, `SiLU`, `Softplus`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


class _ExponentialUnit(Module):
    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class ELU(_ExponentialUnit):
    r"""Applies the exponential linear unit to each element.

    .. math::

        y = \begin{cases} x & \text{if } x > 0 \\ \alpha (\exp(x) - 1) & \text{otherwise} \end{cases}

    Args:
        alpha: The limit at minus infinity is ``-alpha``. Default: 1.
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.ELU()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.6321,  0.0000,  1.0000])

    References:
        - D.-A. Clevert, T. Unterthiner, S. Hochreiter. Fast and accurate deep network learning by exponential linear
          units (ELUs). 2015.

    See also:
        `torch.nn.functional.elu`, `CELU`, `SELU`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_ExponentialUnit):
    r"""Applies the continuously differentiable exponential linear unit to each element.

    .. math::

        y = \max(0, x) + \min(0, \alpha (\exp(x / \alpha) - 1))

    Args:
        alpha: The limit at minus infinity is ``-alpha``; not 0. Default: 1.
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Raises:
        RuntimeError: ``alpha`` is 0.

    Example:
        >>> torch.nn.CELU(2.0)(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.7869,  0.0000,  1.0000])

    References:
        - J. T. Barron. Continuously differentiable exponential linear units. 2017.

    See also:
        `torch.nn.functional.celu`, `ELU`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(_Inplace):
    r"""Applies the scaled exponential linear unit to each element.

    .. math::

        y = \lambda \, (\max(0, x) + \min(0, \alpha (\exp(x) - 1)))

    The constants :math:`\lambda \approx 1.0507` and :math:`\alpha \approx 1.6733` keep mean 0 and variance 1 from
    layer to layer, for weights of mean 0 and variance ``1 / fan_in``.

    Args:
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.SELU()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-1.1113,  0.0000,  1.0507])

    References:
        - G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter. Self-normalizing neural networks. 2017.

    See also:
        `torch.nn.functional.selu`, `AlphaDropout`, `ELU`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class GLU(Module):
    r"""Multiplies one half of the input by the logistic function of the other half.

    .. math::

        y = a \, \sigma(b)

    Here :math:`a` is the first half of the input along ``dim``, and :math:`b` the second.

    Args:
        dim: Dimension that is halved; its size is even. Default: -1.

    Shape:
        - Input: ``(*, 2 * n, *)``, with ``2 * n`` at ``dim``.
        - Output: ``(*, n, *)``.

    Raises:
        RuntimeError: The size of ``dim`` is odd.

    Example:
        >>> torch.nn.GLU()(torch.zeros(4, 6)).shape
        torch.Size([4, 3])

    References:
        - Y. N. Dauphin, A. Fan, M. Auli, D. Grangier. Language modeling with gated convolutional networks. 2016.

    See also:
        `torch.nn.functional.glu`, `Sigmoid`.
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    r"""Multiplies each element by the cumulative distribution function of the normal distribution at it.

    .. math::

        y = x \, \Phi(x) = \frac{x}{2} \left(1 + \operatorname{erf}\left(\frac{x}{\sqrt{2}}\right)\right)

    With ``approximate="tanh"`` it is

    .. math::

        y = \frac{x}{2} \left(1 + \tanh\left(\sqrt{2 / \pi} \, (x + 0.044715 \, x^3)\right)\right)

    Args:
        approximate: ``"none"``, or ``"tanh"`` for the approximation. Default: ``"none"``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Raises:
        RuntimeError: ``approximate`` is neither ``"none"`` nor ``"tanh"``, at the call.

    Example:
        >>> torch.nn.GELU()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.1587,  0.0000,  0.8413])
        >>> torch.nn.GELU(approximate="tanh")(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.1588,  0.0000,  0.8412])

    References:
        - D. Hendrycks, K. Gimpel. Gaussian error linear units (GELUs). 2016.

    See also:
        `torch.nn.functional.gelu`, `SiLU`, `ReLU`.
    """

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class LogSigmoid(Module):
    r"""Computes the logarithm of the logistic function of each element.

    .. math::

        y = \log \frac{1}{1 + \exp(-x)}

    The computation neither overflows nor loses precision for inputs of large magnitude.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.LogSigmoid()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-2.1269, -0.6931, -0.1269])

    See also:
        `torch.nn.functional.logsigmoid`, `Sigmoid`, `Softplus`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(Module):
    r"""Applies a smooth approximation of the rectified linear unit to each element.

    .. math::

        y = \frac{1}{\beta} \log(1 + \exp(\beta x))

    Where :math:`\beta x` exceeds ``threshold``, the output is :math:`x` itself.

    Args:
        beta: Sharpness :math:`\beta`. Default: 1.
        threshold: The function is the identity where ``beta * x`` is above it. Default: 20.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.Softplus()(torch.tensor([0.0, 30.0]))
        tensor([ 0.6931, 30.0000])

    References:
        - C. Dugas, Y. Bengio, F. Bélisle, C. Nadeau, R. Garcia. Incorporating second-order functional knowledge for
          better option pricing. 2001.

    See also:
        `torch.nn.functional.softplus`, `ReLU`.
    """

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softsign(Module):
    r"""Divides each element by one plus its magnitude.

    .. math::

        y = \frac{x}{1 + |x|}

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.Softsign()(torch.tensor([-1.0, 0.0, 3.0]))
        tensor([-0.5000,  0.0000,  0.7500])

    See also:
        `torch.nn.functional.softsign`, `Tanh`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    r"""Subtracts from each element its hyperbolic tangent.

    .. math::

        y = x - \tanh(x)

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.Tanhshrink()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.2384,  0.0000,  0.2384])

    See also:
        `torch.nn.functional.tanhshrink`, `Tanh`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _SoftmaxBase(Module):
    __constants__ = ["dim"]

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if not hasattr(self, "dim"):
            self.dim = None

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_SoftmaxBase):
    r"""Applies the softmax function to the negated input.

    .. math::

        y_i = \frac{\exp(-x_i)}{\sum_j \exp(-x_j)}

    The outputs along ``dim`` are not negative and sum to 1.

    Args:
        dim: Dimension of the sum. ``None`` chooses 0 for inputs of 0, 1 or 3 dimensions and 1 for others, with a
            deprecation warning. Default: ``None``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.Softmin(dim=0)(torch.tensor([1.0, 2.0, 3.0]))
        tensor([0.6652, 0.2447, 0.0900])

    See also:
        `torch.nn.functional.softmin`, `Softmax`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_SoftmaxBase):
    r"""Normalizes the exponentials of the input along a dimension.

    .. math::

        y_i = \frac{\exp(x_i)}{\sum_j \exp(x_j)}

    The outputs along ``dim`` are not negative and sum to 1. Use `CrossEntropyLoss` on the inputs, not `NLLLoss` on the
    logarithm of the outputs: it is more exact.

    Args:
        dim: Dimension of the sum. ``None`` chooses 0 for inputs of 0, 1 or 3 dimensions and 1 for others, with a
            deprecation warning. Default: ``None``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.Softmax(dim=0)(torch.tensor([1.0, 2.0, 3.0]))
        tensor([0.0900, 0.2447, 0.6652])

    See also:
        `torch.nn.functional.softmax`, `LogSoftmax`, `CrossEntropyLoss`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    r"""Applies the softmax function over the channels at each position of an image.

    .. math::

        y_{c, h, w} = \frac{\exp(x_{c, h, w})}{\sum_{c'} \exp(x_{c', h, w})}

    Shape:
        - Input: ``(N, C, H, W)``, or ``(C, H, W)`` without a batch.
        - Output: the shape of the input.

    Raises:
        ValueError: The input has neither 3 nor 4 dimensions.

    Example:
        >>> torch.nn.Softmax2d()(torch.zeros(2, 4, 12, 13))[0, :, 0, 0]
        tensor([0.2500, 0.2500, 0.2500, 0.2500])

    See also:
        `torch.nn.functional.softmax`, `Softmax`.
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class LogSoftmax(_SoftmaxBase):
    r"""Computes the logarithm of the softmax function along a dimension.

    .. math::

        y_i = x_i - \log \sum_j \exp(x_j)

    It is more exact than the logarithm of `Softmax`, whose small outputs round to zero.

    Args:
        dim: Dimension of the sum. ``None`` chooses 0 for inputs of 0, 1 or 3 dimensions and 1 for others, with a
            deprecation warning. Default: ``None``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.LogSoftmax(dim=0)(torch.tensor([1.0, 2.0, 3.0]))
        tensor([-2.4076, -1.4076, -0.4076])

    See also:
        `torch.nn.functional.log_softmax`, `Softmax`, `NLLLoss`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


adopt_classes(globals())
