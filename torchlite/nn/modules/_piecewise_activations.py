"""Activations that are polynomials between their thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite.nn import functional as F
from torchlite.nn import init as _init
from torchlite.nn.parameter import Parameter

from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


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
