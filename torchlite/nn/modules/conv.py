"""Convolutions. The transposed ones are in _transposed_conv.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlite._settings.adopted_classes import adopt_classes
from torchlite.nn import functional as F

from ._conv_base import _ConvNd, _LazyConvXdMixin, _make_lazy
from ._transposed_conv import (
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
)
from ._transposed_conv import _ConvTransposeNd as _ConvTransposeNd
from .module import Module, weight_and_bias  # noqa: F401 programs import Module from here
from .utils import _pair, _reverse_repeat_tuple, _single, _triple  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType, Ints


__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip


def _pad_and_convolve(module, conv, input, weight, bias):
    if module.padding_mode != "zeros":
        padded = F.pad(input, module._reversed_padding_repeated_twice, mode=module.padding_mode)
        return conv(padded, weight, bias, module.stride, module._tl_expand(0), module.dilation, module.groups)
    return conv(input, weight, bias, module.stride, module.padding, module.dilation, module.groups)


class _Conv(_ConvNd):
    """The base of Conv1d, Conv2d and Conv3d.

    `_tl_expand` makes a tuple of an argument: one value a dimension.
    """

    _tl_expand: Callable[[Any], tuple[Any, ...]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            self._tl_expand(kernel_size),
            self._tl_expand(stride),
            padding if isinstance(padding, str) else self._tl_expand(padding),
            self._tl_expand(dilation),
            False,
            self._tl_expand(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )


class Conv1d(_Conv):
    r"""Cross-correlates the input with learnable kernels over one spatial dimension.

    .. math::

        y_{n, c} = b_c + \sum_{k} w_{c, k} \star x_{n, k}

    Here :math:`\star` is the cross-correlation: the kernel is not flipped. The sum is over the input channels of the
    group of channel :math:`c`.

    Args:
        in_channels: Number of channels of the input, :math:`C_{in}`; divisible by ``groups``.
        out_channels: Number of channels of the output, :math:`C_{out}`; divisible by ``groups``.
        kernel_size: Size of the kernel. An int or a tuple of one int.
        stride: Step between two positions of the kernel. Default: 1.
        padding: Number of elements added at each end of each spatial dimension, or ``"valid"`` (none), or ``"same"``
            (as many as keep the size; only with stride 1). Default: 0.
        dilation: Distance between two elements of the kernel. Default: 1.
        groups: Number of groups into which the channels are divided. Outputs of a group depend on inputs of the same
            group only. Default: 1.
        bias: Whether to add a learnable bias to each output channel. Default: ``True``.
        padding_mode: Values of the padding: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``. Default:
            ``"zeros"``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, C_in, L)``, or ``(C_in, L)`` without a batch.
        - Output: ``(N, C_out, L_out)``, or ``(C_out, L_out)``.
          ``L_out = ((L + 2 * padding - dilation * (kernel_size - 1) - 1) // stride) + 1``.

    Attributes:
        weight (Parameter): Shape ``(out_channels, in_channels / groups, kernel_size)``. Drawn from :math:`U(-k, k)`
            with :math:`k = \sqrt{\frac{\text{groups}}{C_{in} \, \text{kernel\_size}}}`.
        bias (Parameter): Shape ``(out_channels,)``, drawn from the same distribution. ``None`` if ``bias=False``.

    Raises:
        ValueError: ``groups`` does not divide both numbers of channels, ``padding`` or ``padding_mode`` is an unknown
            word, or ``padding="same"`` comes with a stride other than 1.
        RuntimeError: The input has another number of channels, dimensions or another dtype than the weight.

    Example:
        >>> layer = torch.nn.Conv1d(16, 33, kernel_size=3, stride=2)
        >>> layer(torch.zeros(20, 16, 50)).shape
        torch.Size([20, 33, 24])

    References:
        - V. Dumoulin, F. Visin. A guide to convolution arithmetic for deep learning. 2016.

    See also:
        `torch.nn.functional.conv1d`, `ConvTranspose1d`, `LazyConv1d`.
    """

    _tl_expand = staticmethod(_single)

    def _conv_forward(self, input, weight, bias):
        return _pad_and_convolve(self, F.conv1d, input, weight, bias)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, *weight_and_bias(self, Conv1d))


class Conv2d(_Conv):
    r"""Cross-correlates the input with learnable kernels over two spatial dimensions.

    .. math::

        y_{n, c} = b_c + \sum_{k} w_{c, k} \star x_{n, k}

    Here :math:`\star` is the cross-correlation: the kernel is not flipped. The sum is over the input channels of the
    group of channel :math:`c`. With ``groups=in_channels`` each channel has its own kernels (a depthwise convolution).

    Args:
        in_channels: Number of channels of the input, :math:`C_{in}`; divisible by ``groups``.
        out_channels: Number of channels of the output, :math:`C_{out}`; divisible by ``groups``.
        kernel_size: Size of the kernel. An int, or a tuple ``(height, width)``.
        stride: Step between two positions of the kernel. Default: 1.
        padding: Number of elements added at each end of each spatial dimension, or ``"valid"`` (none), or ``"same"``
            (as many as keep the size; only with stride 1). Default: 0.
        dilation: Distance between two elements of the kernel. Default: 1.
        groups: Number of groups into which the channels are divided. Outputs of a group depend on inputs of the same
            group only. Default: 1.
        bias: Whether to add a learnable bias to each output channel. Default: ``True``.
        padding_mode: Values of the padding: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``. Default:
            ``"zeros"``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, C_in, H, W)``, or ``(C_in, H, W)`` without a batch.
        - Output: ``(N, C_out, H_out, W_out)``, or ``(C_out, H_out, W_out)``.
          ``H_out = ((H + 2 * padding - dilation * (kernel_size - 1) - 1) // stride) + 1``, and likewise for each other
          dimension, with its own values of the arguments.

    Attributes:
        weight (Parameter): Shape ``(out_channels, in_channels / groups, kernel_size[0], kernel_size[1])``. Drawn from
            :math:`U(-k, k)` with :math:`k = \sqrt{\frac{\text{groups}}{C_{in} \prod_i \text{kernel\_size}_i}}`.
        bias (Parameter): Shape ``(out_channels,)``, drawn from the same distribution. ``None`` if ``bias=False``.

    Raises:
        ValueError: ``groups`` does not divide both numbers of channels, ``padding`` or ``padding_mode`` is an unknown
            word, or ``padding="same"`` comes with a stride other than 1.
        RuntimeError: The input has another number of channels, dimensions or another dtype than the weight.

    Example:
        >>> layer = torch.nn.Conv2d(3, 8, kernel_size=3, padding=1)
        >>> layer(torch.zeros(1, 3, 5, 5)).shape
        torch.Size([1, 8, 5, 5])
        >>> layer = torch.nn.Conv2d(16, 33, (3, 5), stride=(2, 1), padding=(4, 2), dilation=(3, 1))
        >>> layer(torch.zeros(20, 16, 50, 100)).shape
        torch.Size([20, 33, 26, 100])

    References:
        - V. Dumoulin, F. Visin. A guide to convolution arithmetic for deep learning. 2016.

    See also:
        `torch.nn.functional.conv2d`, `ConvTranspose2d`, `LazyConv2d`.
    """

    _tl_expand = staticmethod(_pair)

    def _conv_forward(self, input, weight, bias):
        return _pad_and_convolve(self, F.conv2d, input, weight, bias)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, *weight_and_bias(self, Conv2d))


class Conv3d(_Conv):
    r"""Cross-correlates the input with learnable kernels over three spatial dimensions.

    .. math::

        y_{n, c} = b_c + \sum_{k} w_{c, k} \star x_{n, k}

    Here :math:`\star` is the cross-correlation: the kernel is not flipped. The sum is over the input channels of the
    group of channel :math:`c`.

    Args:
        in_channels: Number of channels of the input, :math:`C_{in}`; divisible by ``groups``.
        out_channels: Number of channels of the output, :math:`C_{out}`; divisible by ``groups``.
        kernel_size: Size of the kernel. An int, or a tuple ``(depth, height, width)``.
        stride: Step between two positions of the kernel. Default: 1.
        padding: Number of elements added at each end of each spatial dimension, or ``"valid"`` (none), or ``"same"``
            (as many as keep the size; only with stride 1). Default: 0.
        dilation: Distance between two elements of the kernel. Default: 1.
        groups: Number of groups into which the channels are divided. Outputs of a group depend on inputs of the same
            group only. Default: 1.
        bias: Whether to add a learnable bias to each output channel. Default: ``True``.
        padding_mode: Values of the padding: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``. Default:
            ``"zeros"``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, C_in, D, H, W)``, or ``(C_in, D, H, W)`` without a batch.
        - Output: ``(N, C_out, D_out, H_out, W_out)``, or ``(C_out, D_out, H_out, W_out)``.
          ``D_out = ((D + 2 * padding - dilation * (kernel_size - 1) - 1) // stride) + 1``, and likewise for each other
          dimension, with its own values of the arguments.

    Attributes:
        weight (Parameter): Shape
            ``(out_channels, in_channels / groups, kernel_size[0], kernel_size[1], kernel_size[2])``. Drawn from
            :math:`U(-k, k)` with :math:`k = \sqrt{\frac{\text{groups}}{C_{in} \prod_i \text{kernel\_size}_i}}`.
        bias (Parameter): Shape ``(out_channels,)``, drawn from the same distribution. ``None`` if ``bias=False``.

    Raises:
        ValueError: ``groups`` does not divide both numbers of channels, ``padding`` or ``padding_mode`` is an unknown
            word, or ``padding="same"`` comes with a stride other than 1.
        RuntimeError: The input has another number of channels, dimensions or another dtype than the weight.

    Example:
        >>> layer = torch.nn.Conv3d(16, 33, kernel_size=3, stride=2)
        >>> layer(torch.zeros(2, 16, 10, 20, 30)).shape
        torch.Size([2, 33, 4, 9, 14])

    References:
        - V. Dumoulin, F. Visin. A guide to convolution arithmetic for deep learning. 2016.

    See also:
        `torch.nn.functional.conv3d`, `ConvTranspose3d`, `LazyConv3d`.
    """

    _tl_expand = staticmethod(_triple)

    def _conv_forward(self, input, weight, bias):
        return _pad_and_convolve(self, F.conv3d, input, weight, bias)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, *weight_and_bias(self, Conv3d))


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        # No bias yet, and no channels: their number is not known.
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        _make_lazy(self, out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A `Conv1d` that takes ``in_channels`` from its first input.

    The first call creates the parameters and changes the class of the module to `Conv1d`. Make that call before you
    create an optimizer. Loading a ``state_dict`` also gives the parameters their shapes.

    Args:
        out_channels: Number of channels of the output, :math:`C_{out}`; divisible by ``groups``.
        kernel_size: Size of the kernel. An int or a tuple of one int.
        stride: Step between two positions of the kernel. Default: 1.
        padding: Number of elements added at each end of each spatial dimension, or ``"valid"`` (none), or ``"same"``
            (as many as keep the size; only with stride 1). Default: 0.
        dilation: Distance between two elements of the kernel. Default: 1.
        groups: Number of groups into which the channels are divided. Outputs of a group depend on inputs of the same
            group only. Default: 1.
        bias: Whether to add a learnable bias to each output channel. Default: ``True``.
        padding_mode: Values of the padding: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``. Default:
            ``"zeros"``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, C_in, L)``, or ``(C_in, L)``; the first input sets ``in_channels``.
        - Output: ``(N, C_out, L_out)``, or ``(C_out, L_out)``, with the sizes of `Conv1d`.

    Attributes:
        weight (UninitializedParameter): After the first call a `Parameter` with the shape and the initialization of
            `Conv1d`.
        bias (UninitializedParameter): After the first call a `Parameter` of shape ``(out_channels,)``. ``None`` if
            ``bias=False``.

    Raises:
        RuntimeError: The first input has neither 2 nor 3 dimensions.
        ValueError: ``groups`` does not divide the number of channels of the first input.

    Example:
        >>> layer = torch.nn.LazyConv1d(33, kernel_size=3)
        >>> layer(torch.zeros(20, 16, 50)).shape
        torch.Size([20, 33, 48])
        >>> layer.in_channels
        16

    See also:
        `Conv1d`.
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A `Conv2d` that takes ``in_channels`` from its first input.

    The first call creates the parameters and changes the class of the module to `Conv2d`. Make that call before you
    create an optimizer. Loading a ``state_dict`` also gives the parameters their shapes.

    Args:
        out_channels: Number of channels of the output, :math:`C_{out}`; divisible by ``groups``.
        kernel_size: Size of the kernel. An int, or a tuple ``(height, width)``.
        stride: Step between two positions of the kernel. Default: 1.
        padding: Number of elements added at each end of each spatial dimension, or ``"valid"`` (none), or ``"same"``
            (as many as keep the size; only with stride 1). Default: 0.
        dilation: Distance between two elements of the kernel. Default: 1.
        groups: Number of groups into which the channels are divided. Outputs of a group depend on inputs of the same
            group only. Default: 1.
        bias: Whether to add a learnable bias to each output channel. Default: ``True``.
        padding_mode: Values of the padding: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``. Default:
            ``"zeros"``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, C_in, H, W)``, or ``(C_in, H, W)``; the first input sets ``in_channels``.
        - Output: ``(N, C_out, H_out, W_out)``, or ``(C_out, H_out, W_out)``, with the sizes of `Conv2d`.

    Attributes:
        weight (UninitializedParameter): After the first call a `Parameter` with the shape and the initialization of
            `Conv2d`.
        bias (UninitializedParameter): After the first call a `Parameter` of shape ``(out_channels,)``. ``None`` if
            ``bias=False``.

    Raises:
        RuntimeError: The first input has neither 3 nor 4 dimensions.
        ValueError: ``groups`` does not divide the number of channels of the first input.

    Example:
        >>> layer = torch.nn.LazyConv2d(33, kernel_size=3)
        >>> layer(torch.zeros(20, 16, 50, 100)).shape
        torch.Size([20, 33, 48, 98])
        >>> layer.in_channels
        16

    See also:
        `Conv2d`.
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A `Conv3d` that takes ``in_channels`` from its first input.

    The first call creates the parameters and changes the class of the module to `Conv3d`. Make that call before you
    create an optimizer. Loading a ``state_dict`` also gives the parameters their shapes.

    Args:
        out_channels: Number of channels of the output, :math:`C_{out}`; divisible by ``groups``.
        kernel_size: Size of the kernel. An int, or a tuple ``(depth, height, width)``.
        stride: Step between two positions of the kernel. Default: 1.
        padding: Number of elements added at each end of each spatial dimension, or ``"valid"`` (none), or ``"same"``
            (as many as keep the size; only with stride 1). Default: 0.
        dilation: Distance between two elements of the kernel. Default: 1.
        groups: Number of groups into which the channels are divided. Outputs of a group depend on inputs of the same
            group only. Default: 1.
        bias: Whether to add a learnable bias to each output channel. Default: ``True``.
        padding_mode: Values of the padding: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``. Default:
            ``"zeros"``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, C_in, D, H, W)``, or ``(C_in, D, H, W)``; the first input sets ``in_channels``.
        - Output: ``(N, C_out, D_out, H_out, W_out)``, or ``(C_out, D_out, H_out, W_out)``, with the sizes of `Conv3d`.

    Attributes:
        weight (UninitializedParameter): After the first call a `Parameter` with the shape and the initialization of
            `Conv3d`.
        bias (UninitializedParameter): After the first call a `Parameter` of shape ``(out_channels,)``. ``None`` if
            ``bias=False``.

    Raises:
        RuntimeError: The first input has neither 4 nor 5 dimensions.
        ValueError: ``groups`` does not divide the number of channels of the first input.

    Example:
        >>> layer = torch.nn.LazyConv3d(33, kernel_size=3)
        >>> layer(torch.zeros(2, 16, 10, 20, 30)).shape
        torch.Size([2, 33, 8, 18, 28])
        >>> layer.in_channels
        16

    See also:
        `Conv3d`.
    """

    cls_to_become = Conv3d


adopt_classes(globals())
