"""Activations as modules. MultiheadAttention is in attention.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite.nn import functional as F
from torchlite.nn import init as _init
from torchlite.nn.init import constant_, xavier_normal_, xavier_uniform_  # noqa: F401 programs import them from here
from torchlite.nn.parameter import Parameter

from .attention import MultiheadAttention
from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax",
    "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


class _Inplace(Module):
    """The base of activations that have only the option `inplace`."""

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Threshold(Module):
    r"""Replaces each element that is not above a threshold by a constant.

    .. math::

        y = \begin{cases} x & \text{if } x > \text{threshold} \\ \text{value} & \text{otherwise} \end{cases}

    Args:
        threshold: Elements above it are kept.
        value: Replaces the other elements.
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.Threshold(0.1, 20.0)(torch.tensor([0.1, 0.2]))
        tensor([20.0000,  0.2000])

    See also:
        `torch.nn.functional.threshold`, `ReLU`.
    """

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class ReLU(_Inplace):
    r"""Applies the rectified linear unit to each element.

    .. math::

        y = \max(0, x)

    Args:
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.ReLU()(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])

    References:
        - V. Nair, G. E. Hinton. Rectified linear units improve restricted Boltzmann machines. 2010.

    See also:
        `torch.nn.functional.relu`, `LeakyReLU`, `GELU`.
    """

    def forward(self, input: Tensor) -> Tensor:
        if self.inplace:
            return F.relu(input, inplace=True)
        return F.relu(input)


class RReLU(Module):
    r"""Applies a leaky ReLU whose slope is random in training mode.

    .. math::

        y = \begin{cases} x & \text{if } x \ge 0 \\ a x & \text{otherwise} \end{cases}

    In training mode, :math:`a` is drawn from :math:`U(\text{lower}, \text{upper})` for each element. In evaluation
    mode it is the mean of the bounds.

    Args:
        lower: Lower bound of the slope. Default: 1/8.
        upper: Upper bound of the slope; not below ``lower``. Default: 1/3.
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Raises:
        RuntimeError: A bound is not finite, or ``lower`` is above ``upper``.

    Example:
        >>> torch.nn.RReLU(0.1, 0.3).eval()(torch.tensor([-10.0, 2.0]))
        tensor([-2.,  2.])

    References:
        - B. Xu, N. Wang, T. Chen, M. Li. Empirical evaluation of rectified activations in convolutional network. 2015.

    See also:
        `torch.nn.functional.rrelu`, `LeakyReLU`, `PReLU`.
    """

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Hardtanh(Module):
    r"""Limits each element to an interval.

    .. math::

        y = \min(\max(x, \text{min\_val}), \text{max\_val})

    Args:
        min_val: Lower end of the interval. Default: -1.
        max_val: Upper end of the interval; greater than ``min_val``. Default: 1.
        inplace: Whether to write the result into the input. Default: ``False``.
        min_value: Deprecated name of ``min_val``.
        max_value: Deprecated name of ``max_val``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Raises:
        AssertionError: ``max_val`` is not greater than ``min_val``.

    Example:
        >>> torch.nn.Hardtanh(-2.0, 2.0)(torch.tensor([-3.0, 0.5, 3.0]))
        tensor([-2.0000,  0.5000,  2.0000])

    References:
        - R. Collobert. Large scale machine learning. 2004.

    See also:
        `torch.nn.functional.hardtanh`, `ReLU6`, `Tanh`.
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: Any = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        import warnings

        if min_value is not None:
            warnings.warn(
                "keyword argument `min_value` is deprecated and renamed to `min_val`", FutureWarning, stacklevel=2
            )
            min_val = min_value
        if max_value is not None:
            warnings.warn(
                "keyword argument `max_value` is deprecated and renamed to `max_val`", FutureWarning, stacklevel=2
            )
            max_val = max_value
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    r"""Applies the rectified linear unit with an upper limit of 6 to each element.

    .. math::

        y = \min(\max(x, 0), 6)

    Args:
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.ReLU6()(torch.tensor([-1.0, 3.0, 8.0]))
        tensor([0., 3., 6.])

    References:
        - A. Krizhevsky. Convolutional deep belief networks on CIFAR-10. 2010.

    See also:
        `torch.nn.functional.relu6`, `Hardtanh`, `ReLU`.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


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


class Hardsigmoid(_Inplace):
    r"""Applies a piecewise linear approximation of the logistic function to each element.

    .. math::

        y = \min\left(\max\left(\frac{x}{6} + \frac{1}{2}, 0\right), 1\right)

    Args:
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.Hardsigmoid()(torch.tensor([-4.0, 0.0, 1.5, 4.0]))
        tensor([0.0000, 0.5000, 0.7500, 1.0000])

    References:
        - A. Howard et al. Searching for MobileNetV3. 2019.

    See also:
        `torch.nn.functional.hardsigmoid`, `Sigmoid`, `Hardswish`.
    """

    def extra_repr(self) -> str:
        return ""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


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


class Hardswish(_Inplace):
    r"""Applies a piecewise approximation of `SiLU` to each element.

    .. math::

        y = x \, \frac{\min(\max(x + 3, 0), 6)}{6}

    Args:
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.Hardswish()(torch.tensor([0.0, 1.5, 4.0]))
        tensor([0.0000, 1.1250, 4.0000])

    References:
        - A. Howard et al. Searching for MobileNetV3. 2019.

    See also:
        `torch.nn.functional.hardswish`, `SiLU`, `Hardsigmoid`.
    """

    def extra_repr(self) -> str:
        return ""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


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


class Hardshrink(Module):
    r"""Sets each element of small magnitude to zero.

    .. math::

        y = \begin{cases} x & \text{if } |x| > \lambda \\ 0 & \text{otherwise} \end{cases}

    Args:
        lambd: Threshold :math:`\lambda` of the magnitude. Default: 0.5.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.Hardshrink()(torch.tensor([-1.0, 0.3, 0.5, 2.0]))
        tensor([-1.,  0.,  0.,  2.])

    See also:
        `torch.nn.functional.hardshrink`, `Softshrink`.
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class LeakyReLU(Module):
    r"""Applies the rectified linear unit with a small slope below zero to each element.

    .. math::

        y = \max(0, x) + \text{negative\_slope} \cdot \min(0, x)

    Args:
        negative_slope: Slope below zero. Default: 0.01.
        inplace: Whether to write the result into the input. Default: ``False``.

    Shape:
        - Input and output: ``(*)``, any shape.

    Example:
        >>> torch.nn.LeakyReLU(0.1)(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.1000,  0.0000,  2.0000])

    References:
        - A. L. Maas, A. Y. Hannun, A. Y. Ng. Rectifier nonlinearities improve neural network acoustic models. 2013.

    See also:
        `torch.nn.functional.leaky_relu`, `PReLU`, `RReLU`.
    """

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


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


class Softshrink(Module):
    r"""Moves each element towards zero by a constant, and those of smaller magnitude to zero.

    .. math::

        y = \begin{cases} x - \lambda & \text{if } x > \lambda \\ x + \lambda & \text{if } x < -\lambda \\ 0 &
        \text{otherwise} \end{cases}

    Args:
        lambd: The constant :math:`\lambda`; not negative. Default: 0.5.

    Shape:
        - Input and output: ``(*)``, any shape.

    Raises:
        RuntimeError: ``lambd`` is negative, at the call.

    Example:
        >>> torch.nn.Softshrink()(torch.tensor([-1.0, 0.25, 2.0]))
        tensor([-0.5000,  0.0000,  1.5000])

    See also:
        `torch.nn.functional.softshrink`, `Hardshrink`.
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class PReLU(Module):
    r"""Applies a leaky ReLU with a learnable slope to each element.

    .. math::

        y = \max(0, x) + w \cdot \min(0, x)

    There is one slope :math:`w` for all elements, or one a channel.

    Args:
        num_parameters: Number of slopes: 1, or the number of channels. Default: 1.
        init: Initial value of the slopes. Default: 0.25.
        device: Device of the parameter. Default: the default device.
        dtype: Dtype of the parameter. Default: the default dtype.

    Shape:
        - Input: ``(*)``; dimension 1 is the channels if there are at least 2 dimensions.
        - Output: the shape of the input.

    Attributes:
        weight (Parameter): The slopes :math:`w`, shape ``(num_parameters,)``, initialized to ``init``.

    Raises:
        RuntimeError: ``num_parameters`` is neither 1 nor the number of channels of the input.

    Example:
        >>> layer = torch.nn.PReLU()
        >>> layer(torch.tensor([-1.0, 2.0])).detach()
        tensor([-0.2500,  2.0000])

    References:
        - K. He, X. Zhang, S. Ren, J. Sun. Delving deep into rectifiers: surpassing human-level performance on ImageNet
          classification. 2015.

    See also:
        `torch.nn.functional.prelu`, `LeakyReLU`.
    """

    __constants__ = ["num_parameters"]

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: DeviceLike = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(torch.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to its initial value."""
        _init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


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
