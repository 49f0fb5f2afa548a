"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite.nn import functional as F
from torchlite.nn import init
from torchlite.nn.parameter import Parameter, UninitializedParameter

from .lazy import LazyModuleMixin
from .module import Module, weight_and_bias
from .utils import _pair, _reverse_repeat_tuple, _single, _triple

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType, Ints


__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        transposed: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {set(_PADDING_MODES)}, but got padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = _padding_for_f_pad(self)
        shape = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(torch.empty((*shape, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if not hasattr(self, "padding_mode"):
            self.padding_mode = "zeros"


def _padding_for_f_pad(module):
    """Return the `pad` argument of `F.pad` for padding modes other than zeros, last dimension first."""
    if not isinstance(module.padding, str):
        return _reverse_repeat_tuple(module.padding, 2)
    amounts = []
    for dilation, size in zip(reversed(module.dilation), reversed(module.kernel_size), strict=True):
        total = dilation * (size - 1) if module.padding == "same" else 0
        amounts += [total // 2, total - total // 2]
    return amounts


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


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        transposed: Any,
        output_padding: Ints,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None):
        """Return the output padding for `output_size`, which is ambiguous with a stride."""
        if output_size is None:
            return _single(self.output_padding)
        batched = input.dim() == num_spatial_dims + 2
        extra = 2 if batched else 1
        if len(output_size) == extra + num_spatial_dims:
            output_size = output_size[extra:]
        if len(output_size) != num_spatial_dims:
            raise ValueError(
                f"ConvTranspose{num_spatial_dims}D: for {input.dim()}D input, output_size must have "
                f"{num_spatial_dims} or {extra + num_spatial_dims} elements (got {len(output_size)})"
            )
        smallest, largest = [], []
        for d in range(num_spatial_dims):
            reach = (dilation[d] if dilation is not None else 1) * (kernel_size[d] - 1) + 1
            low = (input.size(d + extra) - 1) * stride[d] - 2 * padding[d] + reach
            smallest.append(low)
            largest.append(low + stride[d] - 1)
        for size, low, high in zip(output_size, smallest, largest, strict=True):
            if not low <= size <= high:
                raise ValueError(
                    f"requested an output size of {output_size}, but valid sizes range from {smallest} to {largest} "
                    f"(for an input of {input.size()[2:]})"
                )
        return [size - low for size, low in zip(output_size, smallest, strict=True)]


def _conv_transpose_forward(module, conv, input, output_size, dims):
    padding = module._output_padding(
        input, output_size, module.stride, module.padding, module.kernel_size, dims, module.dilation
    )
    return conv(
        input, module.weight, module.bias, module.stride, module.padding, padding, module.groups, module.dilation
    )


class _ConvTranspose(_ConvTransposeNd):
    """The base of ConvTranspose1d, ConvTranspose2d and ConvTranspose3d."""

    _tl_expand: Callable[[Any], tuple[Any, ...]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            self._tl_expand(kernel_size),
            self._tl_expand(stride),
            self._tl_expand(padding),
            self._tl_expand(dilation),
            True,
            self._tl_expand(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )


class ConvTranspose1d(_ConvTranspose):
    r"""Applies a transposed convolution over one spatial dimension.

    The map from input to output is the gradient of `Conv1d` with respect to its input. Each input element is
    multiplied by the kernel, and the products are added at positions ``stride`` apart.

    With a stride above 1, inputs of several sizes give one output of `Conv1d`. ``output_padding``, or the argument
    ``output_size`` of ``forward``, selects the size here.

    Args:
        in_channels: Number of channels of the input, :math:`C_{in}`; divisible by ``groups``.
        out_channels: Number of channels of the output, :math:`C_{out}`; divisible by ``groups``.
        kernel_size: Size of the kernel. An int or a tuple of one int.
        stride: Step between the outputs of two neighbouring input elements. Default: 1.
        padding: Number of elements removed at each end of each spatial dimension of the output. Default: 0.
        output_padding: Number of elements added at one end of each spatial dimension of the output; smaller than
            ``stride`` or than ``dilation``. Default: 0.
        groups: Number of groups into which the channels are divided. Default: 1.
        bias: Whether to add a learnable bias to each output channel. Default: ``True``.
        dilation: Distance between two elements of the kernel. Default: 1.
        padding_mode: Only ``"zeros"``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, C_in, L)``, or ``(C_in, L)`` without a batch.
        - Output: ``(N, C_out, L_out)``, or ``(C_out, L_out)``.
          ``L_out = (L - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1``.

    Attributes:
        weight (Parameter): Shape ``(in_channels, out_channels / groups, kernel_size)``. Drawn from :math:`U(-k, k)`
            with :math:`k = \sqrt{\frac{\text{groups}}{C_{out} \, \text{kernel\_size}}}`.
        bias (Parameter): Shape ``(out_channels,)``, drawn from the same distribution. ``None`` if ``bias=False``.

    Raises:
        ValueError: ``groups`` does not divide both numbers of channels, ``padding_mode`` is not ``"zeros"``, or no
            output padding gives ``output_size``.
        RuntimeError: ``output_padding`` is not smaller than ``stride`` or ``dilation``, or the input does not match
            the weight.

    Example:
        >>> layer = torch.nn.ConvTranspose1d(16, 33, kernel_size=3, stride=2)
        >>> layer(torch.zeros(20, 16, 24)).shape
        torch.Size([20, 33, 49])
        >>> layer(torch.zeros(20, 16, 24), output_size=(50,)).shape
        torch.Size([20, 33, 50])

    References:
        - M. D. Zeiler, D. Krishnan, G. W. Taylor, R. Fergus. Deconvolutional networks. 2010.
        - V. Dumoulin, F. Visin. A guide to convolution arithmetic for deep learning. 2016.

    See also:
        `torch.nn.functional.conv_transpose1d`, `Conv1d`, `LazyConvTranspose1d`.
    """

    _tl_expand = staticmethod(_single)

    def forward(self, input: Tensor, output_size: Ints | None = None) -> Tensor:
        """Applies the transposed convolution.

        Args:
            input: Tensor; see the class for the shapes.
            output_size: Spatial sizes of the output, in place of ``output_padding``; sizes of batch and channels may
                precede them. Default: ``None``.

        Returns:
            The output.

        Raises:
            ValueError: No output padding gives ``output_size``.
        """
        return _conv_transpose_forward(self, F.conv_transpose1d, input, output_size, 1)


class ConvTranspose2d(_ConvTranspose):
    r"""Applies a transposed convolution over two spatial dimensions.

    The map from input to output is the gradient of `Conv2d` with respect to its input. Each input element is
    multiplied by the kernel, and the products are added at positions ``stride`` apart.

    With a stride above 1, inputs of several sizes give one output of `Conv2d`. ``output_padding``, or the argument
    ``output_size`` of ``forward``, selects the size here.

    Args:
        in_channels: Number of channels of the input, :math:`C_{in}`; divisible by ``groups``.
        out_channels: Number of channels of the output, :math:`C_{out}`; divisible by ``groups``.
        kernel_size: Size of the kernel. An int, or a tuple ``(height, width)``.
        stride: Step between the outputs of two neighbouring input elements. Default: 1.
        padding: Number of elements removed at each end of each spatial dimension of the output. Default: 0.
        output_padding: Number of elements added at one end of each spatial dimension of the output; smaller than
            ``stride`` or than ``dilation``. Default: 0.
        groups: Number of groups into which the channels are divided. Default: 1.
        bias: Whether to add a learnable bias to each output channel. Default: ``True``.
        dilation: Distance between two elements of the kernel. Default: 1.
        padding_mode: Only ``"zeros"``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, C_in, H, W)``, or ``(C_in, H, W)`` without a batch.
        - Output: ``(N, C_out, H_out, W_out)``, or ``(C_out, H_out, W_out)``.
          ``H_out = (H - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1``,
          and likewise for each other dimension, with its own
          values of the arguments.

    Attributes:
        weight (Parameter): Shape ``(in_channels, out_channels / groups, kernel_size[0], kernel_size[1])``. Drawn from
            :math:`U(-k, k)` with :math:`k = \sqrt{\frac{\text{groups}}{C_{out} \prod_i \text{kernel\_size}_i}}`.
        bias (Parameter): Shape ``(out_channels,)``, drawn from the same distribution. ``None`` if ``bias=False``.

    Raises:
        ValueError: ``groups`` does not divide both numbers of channels, ``padding_mode`` is not ``"zeros"``, or no
            output padding gives ``output_size``.
        RuntimeError: ``output_padding`` is not smaller than ``stride`` or ``dilation``, or the input does not match
            the weight.

    Example:
        >>> down = torch.nn.Conv2d(16, 16, kernel_size=3, stride=2, padding=1)
        >>> up = torch.nn.ConvTranspose2d(16, 16, kernel_size=3, stride=2, padding=1)
        >>> image = torch.zeros(1, 16, 12, 12)
        >>> small = down(image)
        >>> small.shape
        torch.Size([1, 16, 6, 6])
        >>> up(small, output_size=image.shape).shape
        torch.Size([1, 16, 12, 12])

    References:
        - M. D. Zeiler, D. Krishnan, G. W. Taylor, R. Fergus. Deconvolutional networks. 2010.
        - V. Dumoulin, F. Visin. A guide to convolution arithmetic for deep learning. 2016.

    See also:
        `torch.nn.functional.conv_transpose2d`, `Conv2d`, `LazyConvTranspose2d`.
    """

    _tl_expand = staticmethod(_pair)

    def forward(self, input: Tensor, output_size: Ints | None = None) -> Tensor:
        """Applies the transposed convolution.

        Args:
            input: Tensor; see the class for the shapes.
            output_size: Spatial sizes of the output, in place of ``output_padding``; sizes of batch and channels may
                precede them. Default: ``None``.

        Returns:
            The output.

        Raises:
            ValueError: No output padding gives ``output_size``.
        """
        return _conv_transpose_forward(self, F.conv_transpose2d, input, output_size, 2)


class ConvTranspose3d(_ConvTranspose):
    r"""Applies a transposed convolution over three spatial dimensions.

    The map from input to output is the gradient of `Conv3d` with respect to its input. Each input element is
    multiplied by the kernel, and the products are added at positions ``stride`` apart.

    With a stride above 1, inputs of several sizes give one output of `Conv3d`. ``output_padding``, or the argument
    ``output_size`` of ``forward``, selects the size here.

    Args:
        in_channels: Number of channels of the input, :math:`C_{in}`; divisible by ``groups``.
        out_channels: Number of channels of the output, :math:`C_{out}`; divisible by ``groups``.
        kernel_size: Size of the kernel. An int, or a tuple ``(depth, height, width)``.
        stride: Step between the outputs of two neighbouring input elements. Default: 1.
        padding: Number of elements removed at each end of each spatial dimension of the output. Default: 0.
        output_padding: Number of elements added at one end of each spatial dimension of the output; smaller than
            ``stride`` or than ``dilation``. Default: 0.
        groups: Number of groups into which the channels are divided. Default: 1.
        bias: Whether to add a learnable bias to each output channel. Default: ``True``.
        dilation: Distance between two elements of the kernel. Default: 1.
        padding_mode: Only ``"zeros"``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, C_in, D, H, W)``, or ``(C_in, D, H, W)`` without a batch.
        - Output: ``(N, C_out, D_out, H_out, W_out)``, or ``(C_out, D_out, H_out, W_out)``.
          ``D_out = (D - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1``,
          and likewise for each other dimension,
          with its own values of the arguments.

    Attributes:
        weight (Parameter): Shape
            ``(in_channels, out_channels / groups, kernel_size[0], kernel_size[1], kernel_size[2])``. Drawn from
            :math:`U(-k, k)` with :math:`k = \sqrt{\frac{\text{groups}}{C_{out} \prod_i \text{kernel\_size}_i}}`.
        bias (Parameter): Shape ``(out_channels,)``, drawn from the same distribution. ``None`` if ``bias=False``.

    Raises:
        ValueError: ``groups`` does not divide both numbers of channels, ``padding_mode`` is not ``"zeros"``, or no
            output padding gives ``output_size``.
        RuntimeError: ``output_padding`` is not smaller than ``stride`` or ``dilation``, or the input does not match
            the weight.

    Example:
        >>> layer = torch.nn.ConvTranspose3d(4, 2, kernel_size=3, stride=2)
        >>> layer(torch.zeros(1, 4, 2, 3, 4)).shape
        torch.Size([1, 2, 5, 7, 9])

    References:
        - M. D. Zeiler, D. Krishnan, G. W. Taylor, R. Fergus. Deconvolutional networks. 2010.
        - V. Dumoulin, F. Visin. A guide to convolution arithmetic for deep learning. 2016.

    See also:
        `torch.nn.functional.conv_transpose3d`, `Conv3d`, `LazyConvTranspose3d`.
    """

    _tl_expand = staticmethod(_triple)

    def forward(self, input: Tensor, output_size: Ints | None = None) -> Tensor:
        """Applies the transposed convolution.

        Args:
            input: Tensor; see the class for the shapes.
            output_size: Spatial sizes of the output, in place of ``output_padding``; sizes of batch and channels may
                precede them. Default: ``None``.

        Returns:
            The output.

        Raises:
            ValueError: No output padding gives ``output_size``.
        """
        return _conv_transpose_forward(self, F.conv_transpose3d, input, output_size, 3)


class _LazyConvXdMixin(LazyModuleMixin):
    """Mixin that infers `in_channels` from the first input."""

    groups: int
    out_channels: int
    transposed: bool
    kernel_size: Any
    weight: Any
    bias: Any

    def reset_parameters(self) -> None:
        # The constructor of the base calls this before the weight exists.
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Create the parameters from the shape of the first input."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if self.transposed:
            shape = (self.in_channels, self.out_channels // self.groups, *self.kernel_size)
        else:
            shape = (self.out_channels, self.in_channels // self.groups, *self.kernel_size)
        self.weight.materialize(shape)
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input):
        spatial = self._get_num_spatial_dims()
        if input.dim() not in (spatial + 1, spatial + 2):
            raise RuntimeError(
                f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to {type(self).__name__}, "
                f"but got input of size: {input.shape}"
            )
        return input.shape[1] if input.dim() == spatial + 2 else input.shape[0]

    def _get_num_spatial_dims(self):
        return len(self.kernel_size)


def _make_lazy(module, out_channels, bias, device, dtype):
    module.weight = UninitializedParameter(device=device, dtype=dtype)
    module.out_channels = out_channels
    if bias:
        module.bias = UninitializedParameter(device=device, dtype=dtype)


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


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
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


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A `ConvTranspose1d` that takes ``in_channels`` from its first input.

    The first call creates the parameters and changes the class of the module to `ConvTranspose1d`. Make that call
    before you create an optimizer. Loading a ``state_dict`` also gives the parameters their shapes.

    Args:
        out_channels: Number of channels of the output, :math:`C_{out}`; divisible by ``groups``.
        kernel_size: Size of the kernel. An int or a tuple of one int.
        stride: Step between the outputs of two neighbouring input elements. Default: 1.
        padding: Number of elements removed at each end of each spatial dimension of the output. Default: 0.
        output_padding: Number of elements added at one end of each spatial dimension of the output; smaller than
            ``stride`` or than ``dilation``. Default: 0.
        groups: Number of groups into which the channels are divided. Default: 1.
        bias: Whether to add a learnable bias to each output channel. Default: ``True``.
        dilation: Distance between two elements of the kernel. Default: 1.
        padding_mode: Only ``"zeros"``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, C_in, L)``, or ``(C_in, L)``; the first input sets ``in_channels``.
        - Output: ``(N, C_out, L_out)``, or ``(C_out, L_out)``, with the sizes of `ConvTranspose1d`.

    Attributes:
        weight (UninitializedParameter): After the first call a `Parameter` with the shape and the initialization of
            `ConvTranspose1d`.
        bias (UninitializedParameter): After the first call a `Parameter` of shape ``(out_channels,)``. ``None`` if
            ``bias=False``.

    Raises:
        RuntimeError: The first input has neither 2 nor 3 dimensions.
        ValueError: ``groups`` does not divide the number of channels of the first input.

    Example:
        >>> layer = torch.nn.LazyConvTranspose1d(33, kernel_size=3)
        >>> layer(torch.zeros(20, 16, 50)).shape
        torch.Size([20, 33, 52])
        >>> layer.in_channels
        16

    See also:
        `ConvTranspose1d`.
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A `ConvTranspose2d` that takes ``in_channels`` from its first input.

    The first call creates the parameters and changes the class of the module to `ConvTranspose2d`. Make that call
    before you create an optimizer. Loading a ``state_dict`` also gives the parameters their shapes.

    Args:
        out_channels: Number of channels of the output, :math:`C_{out}`; divisible by ``groups``.
        kernel_size: Size of the kernel. An int, or a tuple ``(height, width)``.
        stride: Step between the outputs of two neighbouring input elements. Default: 1.
        padding: Number of elements removed at each end of each spatial dimension of the output. Default: 0.
        output_padding: Number of elements added at one end of each spatial dimension of the output; smaller than
            ``stride`` or than ``dilation``. Default: 0.
        groups: Number of groups into which the channels are divided. Default: 1.
        bias: Whether to add a learnable bias to each output channel. Default: ``True``.
        dilation: Distance between two elements of the kernel. Default: 1.
        padding_mode: Only ``"zeros"``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, C_in, H, W)``, or ``(C_in, H, W)``; the first input sets ``in_channels``.
        - Output: ``(N, C_out, H_out, W_out)``, or ``(C_out, H_out, W_out)``, with the sizes of `ConvTranspose2d`.

    Attributes:
        weight (UninitializedParameter): After the first call a `Parameter` with the shape and the initialization of
            `ConvTranspose2d`.
        bias (UninitializedParameter): After the first call a `Parameter` of shape ``(out_channels,)``. ``None`` if
            ``bias=False``.

    Raises:
        RuntimeError: The first input has neither 3 nor 4 dimensions.
        ValueError: ``groups`` does not divide the number of channels of the first input.

    Example:
        >>> layer = torch.nn.LazyConvTranspose2d(33, kernel_size=3)
        >>> layer(torch.zeros(20, 16, 50, 100)).shape
        torch.Size([20, 33, 52, 102])
        >>> layer.in_channels
        16

    See also:
        `ConvTranspose2d`.
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A `ConvTranspose3d` that takes ``in_channels`` from its first input.

    The first call creates the parameters and changes the class of the module to `ConvTranspose3d`. Make that call
    before you create an optimizer. Loading a ``state_dict`` also gives the parameters their shapes.

    Args:
        out_channels: Number of channels of the output, :math:`C_{out}`; divisible by ``groups``.
        kernel_size: Size of the kernel. An int, or a tuple ``(depth, height, width)``.
        stride: Step between the outputs of two neighbouring input elements. Default: 1.
        padding: Number of elements removed at each end of each spatial dimension of the output. Default: 0.
        output_padding: Number of elements added at one end of each spatial dimension of the output; smaller than
            ``stride`` or than ``dilation``. Default: 0.
        groups: Number of groups into which the channels are divided. Default: 1.
        bias: Whether to add a learnable bias to each output channel. Default: ``True``.
        dilation: Distance between two elements of the kernel. Default: 1.
        padding_mode: Only ``"zeros"``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, C_in, D, H, W)``, or ``(C_in, D, H, W)``; the first input sets ``in_channels``.
        - Output: ``(N, C_out, D_out, H_out, W_out)``, or ``(C_out, D_out, H_out, W_out)``, with the sizes of
          `ConvTranspose3d`.

    Attributes:
        weight (UninitializedParameter): After the first call a `Parameter` with the shape and the initialization of
            `ConvTranspose3d`.
        bias (UninitializedParameter): After the first call a `Parameter` of shape ``(out_channels,)``. ``None`` if
            ``bias=False``.

    Raises:
        RuntimeError: The first input has neither 4 nor 5 dimensions.
        ValueError: ``groups`` does not divide the number of channels of the first input.

    Example:
        >>> layer = torch.nn.LazyConvTranspose3d(33, kernel_size=3)
        >>> layer(torch.zeros(2, 16, 10, 20, 30)).shape
        torch.Size([2, 33, 12, 22, 32])
        >>> layer.in_channels
        16

    See also:
        `ConvTranspose3d`.
    """

    cls_to_become = ConvTranspose3d
