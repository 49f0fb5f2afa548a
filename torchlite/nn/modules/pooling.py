"""Pooling layers. Those that take maxima are in _max_pooling.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlite._settings.adopted_classes import adopt_classes
from torchlite.nn import functional as F

from ._max_pooling import (
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    FractionalMaxPool2d,
    FractionalMaxPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
)
from ._max_pooling import _AdaptiveMaxPoolNd as _AdaptiveMaxPoolNd
from ._max_pooling import _MaxPoolNd as _MaxPoolNd
from ._max_pooling import _MaxUnpoolNd as _MaxUnpoolNd
from .module import Module
from .utils import _pair, _single, _triple  # noqa: F401 programs import them from here

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import Ints, OutputSize


__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip


class _AvgPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    r"""Takes the mean of each window that slides over one spatial dimension.

    .. math::

        y_{n, c, i} = \frac{1}{|K|} \sum_{k \in K} x_{n, c, \; \text{stride} \cdot i + k - \text{padding}}

    Here :math:`K` is the window. Padding counts as zeros.

    Args:
        kernel_size: Size of the window. An int or a tuple of one int.
        stride: Step between two windows. ``None`` is ``kernel_size``. Default: ``None``.
        padding: Number of zeros added at each end of each spatial dimension; at most half of the window. Default: 0.
        ceil_mode: Whether to round the sizes of the output up. Default: ``False``.
        count_include_pad: Whether the padding counts in the divisor. Default: ``True``.

    Shape:
        - Input: ``(N, C, L)``, or ``(C, L)`` without a batch.
        - Output: ``(N, C, L_out)``, or ``(C, L_out)``.
          ``L_out = floor((L + 2 * padding - kernel_size) / stride) + 1``. With ``ceil_mode`` the quotient is rounded
          up, and windows that would begin in the padding after the input are left out.

    Raises:
        RuntimeError: ``padding`` is more than half of the window, or the output would be empty.

    Example:
        >>> torch.nn.AvgPool1d(3, stride=2)(torch.tensor([[[1.0, 2.0, 3.0, 4.0, 5.0]]]))
        tensor([[[2., 4.]]])
        >>> torch.nn.AvgPool1d(2, padding=1)(torch.ones(1, 1, 2))
        tensor([[[0.5000, 0.5000]]])
        >>> torch.nn.AvgPool1d(2, padding=1, count_include_pad=False)(torch.ones(1, 1, 2))
        tensor([[[1., 1.]]])

    See also:
        `torch.nn.functional.avg_pool1d`, `AdaptiveAvgPool1d`, `LPPool1d`.
    """

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolWithDivisor(_AvgPoolNd):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"]

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override


class AvgPool2d(_AvgPoolWithDivisor):
    r"""Takes the mean of each window that slides over two spatial dimensions.

    .. math::

        y_{n, c, i} = \frac{1}{|K|} \sum_{k \in K} x_{n, c, \; \text{stride} \cdot i + k - \text{padding}}

    Here :math:`K` is the window. Padding counts as zeros.

    Args:
        kernel_size: Size of the window. An int, or a tuple ``(height, width)``.
        stride: Step between two windows. ``None`` is ``kernel_size``. Default: ``None``.
        padding: Number of zeros added at each end of each spatial dimension; at most half of the window. Default: 0.
        ceil_mode: Whether to round the sizes of the output up. Default: ``False``.
        count_include_pad: Whether the padding counts in the divisor. Default: ``True``.
        divisor_override: Divisor of the sums in place of the number of elements; not 0. Default: ``None``.

    Shape:
        - Input: ``(N, C, H, W)``, or ``(C, H, W)`` without a batch.
        - Output: ``(N, C, H_out, W_out)``, or ``(C, H_out, W_out)``.
          ``H_out = floor((H + 2 * padding - kernel_size) / stride) + 1``, and likewise for each other dimension, with
          its own values of the arguments. With ``ceil_mode`` the quotient is rounded up, and windows that would begin
          in the padding after the input are left out.

    Raises:
        RuntimeError: ``padding`` is more than half of the window, or the output would be empty, or
            ``divisor_override`` is 0.

    Example:
        >>> torch.nn.AvgPool2d(3, stride=2)(torch.zeros(20, 16, 50, 32)).shape
        torch.Size([20, 16, 24, 15])

    See also:
        `torch.nn.functional.avg_pool2d`, `AdaptiveAvgPool2d`, `LPPool2d`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool3d(_AvgPoolWithDivisor):
    r"""Takes the mean of each window that slides over three spatial dimensions.

    .. math::

        y_{n, c, i} = \frac{1}{|K|} \sum_{k \in K} x_{n, c, \; \text{stride} \cdot i + k - \text{padding}}

    Here :math:`K` is the window. Padding counts as zeros.

    Args:
        kernel_size: Size of the window. An int, or a tuple ``(depth, height, width)``.
        stride: Step between two windows. ``None`` is ``kernel_size``. Default: ``None``.
        padding: Number of zeros added at each end of each spatial dimension; at most half of the window. Default: 0.
        ceil_mode: Whether to round the sizes of the output up. Default: ``False``.
        count_include_pad: Whether the padding counts in the divisor. Default: ``True``.
        divisor_override: Divisor of the sums in place of the number of elements; not 0. Default: ``None``.

    Shape:
        - Input: ``(N, C, D, H, W)``, or ``(C, D, H, W)`` without a batch.
        - Output: ``(N, C, D_out, H_out, W_out)``, or ``(C, D_out, H_out, W_out)``.
          ``D_out = floor((D + 2 * padding - kernel_size) / stride) + 1``, and likewise for each other dimension, with
          its own values of the arguments. With ``ceil_mode`` the quotient is rounded up, and windows that would begin
          in the padding after the input are left out.

    Raises:
        RuntimeError: ``padding`` is more than half of the window, or the output would be empty, or
            ``divisor_override`` is 0.

    Example:
        >>> torch.nn.AvgPool3d(3, stride=2)(torch.zeros(2, 16, 11, 9, 7)).shape
        torch.Size([2, 16, 5, 4, 3])

    See also:
        `torch.nn.functional.avg_pool3d`, `AdaptiveAvgPool3d`, `LPPool3d`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class _LPPoolNd(Module):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(
        self, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    r"""Takes the p-norm of each window that slides over one spatial dimension.

    .. math::

        y_{n, c, i} = \left( \sum_{k \in K} x_{n, c, \; \text{stride} \cdot i + k}^p \right)^{1/p}

    Here :math:`p` is ``norm_type`` and :math:`K` the window. The powers are of the elements themselves, not of their
    magnitudes. Use inputs that are not negative, or an even :math:`p`.

    Args:
        norm_type: The exponent :math:`p`, a finite number.
        kernel_size: Size of the window. An int or a tuple of one int.
        stride: Step between two windows. ``None`` is ``kernel_size``. Default: ``None``.
        ceil_mode: Whether to round the sizes of the output up. Default: ``False``.

    Shape:
        - Input: ``(N, C, L)``, or ``(C, L)`` without a batch.
        - Output: ``(N, C, L_out)``, or ``(C, L_out)``. ``L_out = floor((L - kernel_size) / stride) + 1``.

    Example:
        >>> torch.nn.LPPool1d(2, 2)(torch.tensor([[[3.0, 4.0, 6.0, 8.0]]]))
        tensor([[[ 5., 10.]]])

    See also:
        `torch.nn.functional.lp_pool1d`, `AvgPool1d`, `MaxPool1d`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    r"""Takes the p-norm of each window that slides over two spatial dimensions.

    .. math::

        y_{n, c, i} = \left( \sum_{k \in K} x_{n, c, \; \text{stride} \cdot i + k}^p \right)^{1/p}

    Here :math:`p` is ``norm_type`` and :math:`K` the window. The powers are of the elements themselves, not of their
    magnitudes. Use inputs that are not negative, or an even :math:`p`.

    Args:
        norm_type: The exponent :math:`p`, a finite number.
        kernel_size: Size of the window. An int, or a tuple ``(height, width)``.
        stride: Step between two windows. ``None`` is ``kernel_size``. Default: ``None``.
        ceil_mode: Whether to round the sizes of the output up. Default: ``False``.

    Shape:
        - Input: ``(N, C, H, W)``, or ``(C, H, W)`` without a batch.
        - Output: ``(N, C, H_out, W_out)``, or ``(C, H_out, W_out)``.
          ``H_out = floor((H - kernel_size) / stride) + 1``, and likewise for each other dimension, with its own values
          of the arguments.

    Example:
        >>> torch.nn.LPPool2d(2, 3, stride=2)(torch.zeros(20, 16, 50, 32)).shape
        torch.Size([20, 16, 24, 15])

    See also:
        `torch.nn.functional.lp_pool2d`, `AvgPool2d`, `MaxPool2d`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    r"""Takes the p-norm of each window that slides over three spatial dimensions.

    .. math::

        y_{n, c, i} = \left( \sum_{k \in K} x_{n, c, \; \text{stride} \cdot i + k}^p \right)^{1/p}

    Here :math:`p` is ``norm_type`` and :math:`K` the window. The powers are of the elements themselves, not of their
    magnitudes. Use inputs that are not negative, or an even :math:`p`.

    Args:
        norm_type: The exponent :math:`p`, a finite number.
        kernel_size: Size of the window. An int, or a tuple ``(depth, height, width)``.
        stride: Step between two windows. ``None`` is ``kernel_size``. Default: ``None``.
        ceil_mode: Whether to round the sizes of the output up. Default: ``False``.

    Shape:
        - Input: ``(N, C, D, H, W)``, or ``(C, D, H, W)`` without a batch.
        - Output: ``(N, C, D_out, H_out, W_out)``, or ``(C, D_out, H_out, W_out)``.
          ``D_out = floor((D - kernel_size) / stride) + 1``, and likewise for each other dimension, with its own values
          of the arguments.

    Example:
        >>> torch.nn.LPPool3d(2, 3, stride=2)(torch.zeros(2, 16, 11, 9, 7)).shape
        torch.Size([2, 16, 5, 4, 3])

    See also:
        `torch.nn.functional.lp_pool3d`, `AvgPool3d`, `MaxPool3d`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveAvgPoolNd(Module):
    __constants__ = ["output_size"]

    def __init__(self, output_size: OutputSize) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    r"""Takes the mean of each window, with windows that give a required output size.

    Window :math:`i` of a dimension begins at :math:`\lfloor i L / L_{out} \rfloor` and ends before
    :math:`\lceil (i + 1) L / L_{out} \rceil`, with the sizes :math:`L` of the input and :math:`L_{out}` of the output.
    Windows may overlap.

    Args:
        output_size: Size of the output. An int or a tuple of one int.

    Shape:
        - Input: ``(N, C, L)``, or ``(C, L)`` without a batch.
        - Output: ``(N, C, output_size)``, or ``(C, output_size)``.

    Example:
        >>> torch.nn.AdaptiveAvgPool1d(2)(torch.tensor([[[1.0, 2.0, 3.0, 4.0, 5.0]]]))
        tensor([[[2., 4.]]])

    See also:
        `torch.nn.functional.adaptive_avg_pool1d`, `AvgPool1d`, `AdaptiveMaxPool1d`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    r"""Takes the mean of each window, with windows that give a required output size.

    Window :math:`i` of a dimension begins at :math:`\lfloor i L / L_{out} \rfloor` and ends before
    :math:`\lceil (i + 1) L / L_{out} \rceil`, with the sizes :math:`L` of the input and :math:`L_{out}` of the output.
    Windows may overlap. ``AdaptiveAvgPool2d(1)`` is the mean of each channel (global average pooling).

    Args:
        output_size: Sizes of the output. An int, or a tuple ``(height, width)``. ``None`` in the tuple keeps the size
            of the input.

    Shape:
        - Input: ``(N, C, H, W)``, or ``(C, H, W)`` without a batch.
        - Output: ``(N, C, *output_size)``, or ``(C, *output_size)``.

    Example:
        >>> torch.nn.AdaptiveAvgPool2d(1)(torch.zeros(1, 64, 10, 9)).shape
        torch.Size([1, 64, 1, 1])
        >>> torch.nn.AdaptiveAvgPool2d((None, 7))(torch.zeros(1, 64, 10, 9)).shape
        torch.Size([1, 64, 10, 7])

    See also:
        `torch.nn.functional.adaptive_avg_pool2d`, `AvgPool2d`, `AdaptiveMaxPool2d`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    r"""Takes the mean of each window, with windows that give a required output size.

    Window :math:`i` of a dimension begins at :math:`\lfloor i L / L_{out} \rfloor` and ends before
    :math:`\lceil (i + 1) L / L_{out} \rceil`, with the sizes :math:`L` of the input and :math:`L_{out}` of the output.
    Windows may overlap.

    Args:
        output_size: Sizes of the output. An int, or a tuple ``(depth, height, width)``. ``None`` in the tuple keeps
            the size of the input.

    Shape:
        - Input: ``(N, C, D, H, W)``, or ``(C, D, H, W)`` without a batch.
        - Output: ``(N, C, *output_size)``, or ``(C, *output_size)``.

    Example:
        >>> torch.nn.AdaptiveAvgPool3d((7, None, 5))(torch.zeros(1, 4, 8, 9, 10)).shape
        torch.Size([1, 4, 7, 9, 5])

    See also:
        `torch.nn.functional.adaptive_avg_pool3d`, `AvgPool3d`, `AdaptiveMaxPool3d`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


adopt_classes(globals())
