"""Transposed convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlite.nn import functional as F

from ._conv_base import _ConvNd, _LazyConvXdMixin, _make_lazy
from .utils import _pair, _single, _triple

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType, Ints


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
