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
    """Cross-correlation over one dimension: (N, C_in, L) or (C_in, L) -> (N, C_out, L_out).

    L_out = (L + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1. Parameters `weight` (C_out, C_in / groups,
    kernel_size) and `bias` (C_out) from U(-k, k), k = sqrt(groups / (C_in kernel_size)). padding may be "same" or
    "valid".
    """

    _tl_expand = staticmethod(_single)

    def _conv_forward(self, input, weight, bias):
        return _pad_and_convolve(self, F.conv1d, input, weight, bias)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, *weight_and_bias(self, Conv1d))


class Conv2d(_Conv):
    """Cross-correlation over two dimensions: (N, C_in, H, W) or (C_in, H, W) -> (N, C_out, H_out, W_out); sizes and
    parameters as in Conv1d.

    >>> torchlite.nn.Conv2d(3, 8, 3, padding=1)(torchlite.zeros(1, 3, 5, 5)).shape
    torch.Size([1, 8, 5, 5])
    """

    _tl_expand = staticmethod(_pair)

    def _conv_forward(self, input, weight, bias):
        return _pad_and_convolve(self, F.conv2d, input, weight, bias)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, *weight_and_bias(self, Conv2d))


class Conv3d(_Conv):
    """Cross-correlation over three dimensions: (N, C_in, D, H, W) or (C_in, D, H, W) -> (N, C_out, ...); sizes and
    parameters as in Conv1d.
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
    """The gradient of Conv1d with respect to its input, as a layer: (N, C_in, L) -> (N, C_out, L_out).

    L_out = (L - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1. `weight` is (C_in, C_out /
    groups, kernel_size).
    """

    _tl_expand = staticmethod(_single)

    def forward(self, input: Tensor, output_size: Ints | None = None) -> Tensor:
        return _conv_transpose_forward(self, F.conv_transpose1d, input, output_size, 1)


class ConvTranspose2d(_ConvTranspose):
    """The gradient of Conv2d with respect to its input, as a layer: (N, C_in, H, W) -> (N, C_out, H_out, W_out); sizes
    as in ConvTranspose1d.
    """

    _tl_expand = staticmethod(_pair)

    def forward(self, input: Tensor, output_size: Ints | None = None) -> Tensor:
        return _conv_transpose_forward(self, F.conv_transpose2d, input, output_size, 2)


class ConvTranspose3d(_ConvTranspose):
    """The gradient of Conv3d with respect to its input, as a layer: (N, C_in, D, H, W) -> (N, C_out, ...); sizes as in
    ConvTranspose1d.
    """

    _tl_expand = staticmethod(_triple)

    def forward(self, input: Tensor, output_size: Ints | None = None) -> Tensor:
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
    """A Conv1d that infers `in_channels` from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A Conv2d that infers `in_channels` from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A Conv3d that infers `in_channels` from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A ConvTranspose1d that infers `in_channels` from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A ConvTranspose2d that infers `in_channels` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A ConvTranspose3d that infers `in_channels` from its first input."""

    cls_to_become = ConvTranspose3d
