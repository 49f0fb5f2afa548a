"""Functions of quantized tensors."""

from __future__ import annotations

import warnings
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .modules.conv import _tuple

__all__ = [
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool2d", "avg_pool3d", "celu", "clamp", "conv1d", "conv2d",
    "conv3d", "elu", "hardsigmoid", "hardswish", "hardtanh", "interpolate", "leaky_relu", "linear", "max_pool1d",
    "max_pool2d", "threshold", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip


def _check(input: Tensor, name: str) -> None:
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def avg_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Tensor:  # fmt: skip
    """Means of windows of quantized images, with the input's scale and zero point.

    Args:
        input: The images.
        kernel_size: Size of the windows.
        stride: Distance of the windows. Default: their size.
        padding: Places on each side. Default: 0.
        ceil_mode: Whether windows may begin within and end outside. Default: ``False``.
        count_include_pad: Whether the padding counts in means. Default: ``True``.
        divisor_override: The divisor. Default: the number of places.

    Raises:
        ValueError: The input is not quantized.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(1, 1, 2, 2), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.avg_pool2d(q, 2).shape
        torch.Size([1, 1, 1, 1])
    """
    _check(input, "avg_pool2d")
    return F.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Tensor:  # fmt: skip
    """Means of windows of quantized volumes, with the input's scale and zero point.

    Args:
        input: The volumes.
        kernel_size: Size of the windows.
        stride: Distance of the windows. Default: their size.
        padding: Places on each side. Default: 0.
        ceil_mode: Whether windows may begin within and end outside. Default: ``False``.
        count_include_pad: Whether the padding counts in means. Default: ``True``.
        divisor_override: The divisor. Default: the number of places.

    Raises:
        ValueError: The input is not quantized.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(1, 1, 2, 2, 2), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.avg_pool3d(q, 2).shape
        torch.Size([1, 1, 1, 1, 1])
    """
    _check(input, "avg_pool3d")
    return F.avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means of quantized images in a number of windows, with the input's scale and zero point.

    Args:
        input: The images.
        output_size: The size of the result.

    Raises:
        ValueError: The input is not quantized.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(1, 1, 2, 2), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.adaptive_avg_pool2d(q, 1).shape
        torch.Size([1, 1, 1, 1])
    """
    _check(input, "functional.adaptive_avg_pool2d")
    return F.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means of quantized volumes in a number of windows, with the input's scale and zero point.

    Args:
        input: The volumes.
        output_size: The size of the result.

    Raises:
        ValueError: The input is not quantized.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(1, 1, 2, 2, 2), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.adaptive_avg_pool3d(q, 1).shape
        torch.Size([1, 1, 1, 1, 1])
    """
    _check(input, "functional.adaptive_avg_pool3d")
    return F.adaptive_avg_pool3d(input, output_size)


def _convolution(rank: int) -> Any:
    shape = ", ".join("3" * rank)

    def conv(
        input: Tensor, weight: Tensor, bias: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, padding_mode: str = "zeros", scale: float = 1.0, zero_point: int = 0,
        dtype: Any = torch.quint8,
    ) -> Tensor:  # fmt: skip
        if padding_mode != "zeros":
            raise NotImplementedError("Only zero-padding is supported!")
        if dtype is not torch.quint8:
            raise NotImplementedError(f"Only torch.quint8 is supported for the result, got {dtype}")
        if input.dtype != torch.quint8:
            raise NotImplementedError("Only torch.quint8 is supported for activation tensor!")
        if weight.dtype != torch.qint8:
            raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
        if input.ndim != rank + 2:
            raise ValueError(f"Input shape must be `(N, C, {('L', 'H, W', 'D, H, W')[rank - 1]})`!")
        geometry = [_tuple(value, rank) for value in (stride, padding, dilation)]
        packed = getattr(torch.ops.quantized, f"conv{rank}d_prepack")(weight, bias, *geometry, groups)
        return getattr(torch.ops.quantized, f"conv{rank}d")(input, packed, scale, zero_point)

    conv.__name__ = conv.__qualname__ = f"conv{rank}d"
    conv.__doc__ = f"""A convolution of quantized tensors over {rank} dimension{"s" * (rank > 1)}.

    Args:
        input: The tensor, of `torch.quint8`.
        weight: The kernels, of `torch.qint8`.
        bias: The bias, of float32, or ``None``.
        stride: Distance of neighbouring windows. Default: 1.
        padding: Places on each side, which have the zero point. Default: 0.
        dilation: Distance of the kernel's elements. Default: 1.
        groups: Number of groups of channels. Default: 1.
        padding_mode: ``"zeros"``.
        scale: Scale of the result. Default: 1.
        zero_point: Zero point of the result. Default: 0.
        dtype: `torch.quint8`.

    Raises:
        NotImplementedError: A dtype is another one, or the padding's mode.
        ValueError: The input has another number of dimensions.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(1, 1, {shape}), 0.1, 0, torch.quint8)
        >>> w = torch.quantize_per_tensor(torch.ones(1, 1, {shape}), 0.1, 0, torch.qint8)
        >>> torch.ao.nn.quantized.functional.conv{rank}d(q, w, None).numel()
        1
    """
    return conv


conv1d, conv2d, conv3d = _convolution(1), _convolution(2), _convolution(3)


def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None
) -> Tensor:
    """Quantized images of another size, with the input's scale and zero point.

    Args:
        input: The images.
        size: The size. Default: that of `scale_factor`.
        scale_factor: The factor. Default: that of `size`.
        mode: ``"nearest"`` or ``"bilinear"``.
        align_corners: Whether the corners stay. Default: ``False``.

    Raises:
        ValueError: The input is not quantized.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(1, 1, 2, 2), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.interpolate(q, 4).shape
        torch.Size([1, 1, 4, 4])
    """
    _check(input, "interpolate")
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def linear(input: Tensor, weight: Tensor, bias: Any = None, scale: Any = None, zero_point: Any = None) -> Tensor:
    """A quantized tensor times a quantized weight, plus a bias.

    Args:
        input: The tensor, of `torch.quint8`.
        weight: The weight, of `torch.qint8`.
        bias: The bias, of float32. Default: none.
        scale: Scale of the result. Default: the input's.
        zero_point: Zero point of the result. Default: the input's.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(1, 2), 0.1, 0, torch.quint8)
        >>> w = torch.quantize_per_tensor(torch.ones(3, 2), 0.1, 0, torch.qint8)
        >>> torch.ao.nn.quantized.functional.linear(q, w).dequantize()
        tensor([[2., 2., 2.]])
    """
    packed = torch.ops.quantized.linear_prepack(weight, bias)
    scale = input.q_scale() if scale is None else scale
    zero_point = input.q_zero_point() if zero_point is None else zero_point
    return torch.ops.quantized.linear(input, packed, scale, zero_point)


def _refuse_indices(return_indices: bool) -> None:
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")


def max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    """The greatest levels of windows of quantized sequences.

    Args:
        input: The sequences.
        kernel_size: Size of the windows.
        stride: Distance of the windows. Default: their size.
        padding: Places on each side. Default: 0.
        dilation: Distance of a window's places. Default: 1.
        ceil_mode: Whether windows may begin within and end outside. Default: ``False``.
        return_indices: Must be ``False``.

    Raises:
        NotImplementedError: `return_indices` is true.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(1, 1, 2), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.max_pool1d(q, 2).shape
        torch.Size([1, 1, 1])
    """
    _refuse_indices(return_indices)
    return F.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    """The greatest levels of windows of quantized images.

    Args:
        input: The images.
        kernel_size: Size of the windows.
        stride: Distance of the windows. Default: their size.
        padding: Places on each side. Default: 0.
        dilation: Distance of a window's places. Default: 1.
        ceil_mode: Whether windows may begin within and end outside. Default: ``False``.
        return_indices: Must be ``False``.

    Raises:
        NotImplementedError: `return_indices` is true.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(1, 1, 2, 2), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.max_pool2d(q, 2).shape
        torch.Size([1, 1, 1, 1])
    """
    _refuse_indices(return_indices)
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def celu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """`torch.nn.functional.celu` of a quantized tensor.

    Args:
        input: The tensor.
        scale: Scale of the result.
        zero_point: Zero point of the result.
        alpha: The limit of negative results. Default: 1.

    Raises:
        ValueError: The input is not quantized.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(1), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.celu(q, 0.5, 0).dequantize()
        tensor([1.])
    """
    _check(input, "celu")
    return torch.ops.quantized.celu(input, scale, zero_point, alpha)


def leaky_relu(
    input: Tensor, negative_slope: float = 0.01, inplace: bool = False, scale: Any = None, zero_point: Any = None
) -> Tensor:
    """`torch.nn.functional.leaky_relu` of a quantized tensor.

    Args:
        input: The tensor.
        negative_slope: The factor of negative numbers. Default: 0.01.
        inplace: Whether the input is overwritten; it must not be with a scale of the result. Default: ``False``.
        scale: Scale of the result. Default: the input's.
        zero_point: Zero point of the result. Default: the input's.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(1), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.leaky_relu(q).dequantize()
        tensor([1.])
    """
    if scale is not None and zero_point is not None:
        if inplace:
            raise AssertionError("Cannot rescale with `inplace`")
        return torch.ops.quantized.leaky_relu(input, negative_slope, False, scale, int(zero_point))
    return F.leaky_relu(input, negative_slope, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.hardtanh` of a quantized tensor.

    Args:
        input: The tensor.
        min_val: The least result. Default: -1.
        max_val: The greatest result. Default: 1.
        inplace: Whether the input is overwritten. Default: ``False``.

    Raises:
        ValueError: The input is not quantized.

    Example:
        >>> q = torch.quantize_per_tensor(torch.tensor([2.0]), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.hardtanh(q).dequantize()
        tensor([1.])
    """
    _check(input, "hardtanh")
    # As in PyTorch, a range whose ends are exchanged is no error.
    return input.clamp_(min_val, max_val) if inplace else input.clamp(min_val, max_val)


def hardswish(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """`torch.nn.functional.hardswish` of a quantized tensor.

    Args:
        input: The tensor.
        scale: Scale of the result.
        zero_point: Zero point of the result.

    Raises:
        ValueError: The input is not quantized.

    Example:
        >>> q = torch.quantize_per_tensor(torch.tensor([3.0]), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.hardswish(q, 0.5, 0).dequantize()
        tensor([3.])
    """
    _check(input, "hardswish")
    return torch.ops.quantized.hardswish(input, scale, zero_point)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """`torch.nn.functional.threshold` of a quantized tensor.

    Args:
        input: The tensor.
        threshold: Numbers that are not greater are replaced.
        value: What replaces them.

    Raises:
        ValueError: The input is not quantized, or a number is absent.

    Example:
        >>> q = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.threshold(q, 1.5, 0.0).dequantize()
        tensor([0., 2.])
    """
    _check(input, "threshold")
    if threshold is None:
        raise ValueError("Input to 'threshold' must be specified!")
    if value is None:
        raise ValueError("Input to 'value' must be specified!")
    return torch.ops.quantized.threshold(input, threshold, value)


def elu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """`torch.nn.functional.elu` of a quantized tensor.

    Args:
        input: The tensor.
        scale: Scale of the result.
        zero_point: Zero point of the result.
        alpha: The limit of negative results. Default: 1.

    Raises:
        ValueError: The input is not quantized.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(1), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.elu(q, 0.5, 0).dequantize()
        tensor([1.])
    """
    _check(input, "elu")
    return torch.ops.quantized.elu(input, scale, zero_point, alpha)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.hardsigmoid` of a quantized tensor.

    Args:
        input: The tensor.
        inplace: Whether the input is overwritten. Default: ``False``.

    Raises:
        ValueError: The input is not quantized.

    Example:
        >>> q = torch.quantize_per_tensor(torch.zeros(1), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.hardsigmoid(q).dequantize()
        tensor([0.5000])
    """
    _check(input, "hardsigmoid")
    return F.hardsigmoid(input, inplace)


def clamp(input: Tensor, min_: float, max_: float) -> Tensor:
    """The numbers of a quantized tensor between two bounds.

    Args:
        input: The tensor.
        min_: The least number.
        max_: The greatest number.

    Raises:
        ValueError: The input is not quantized.

    Example:
        >>> q = torch.quantize_per_tensor(torch.tensor([2.0]), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.functional.clamp(q, 0.0, 1.0).dequantize()
        tensor([1.])
    """
    _check(input, "clamp")
    return torch.clamp(input, min_, max_)


def _deprecated(name: str) -> None:
    warnings.warn(
        f"nn.quantized.functional.{name} is deprecated. Use nn.quantized.functional.interpolate instead.", stacklevel=3
    )


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None
) -> Tensor:
    """`interpolate`, with a warning.

    Args:
        input: The images.
        size: The size. Default: that of `scale_factor`.
        scale_factor: The factor. Default: that of `size`.
        mode: ``"nearest"`` or ``"bilinear"``.
        align_corners: Whether the corners stay. Default: ``False``.

    Example:
        >>> import warnings
        >>> q = torch.quantize_per_tensor(torch.ones(1, 1, 2, 2), 0.1, 0, torch.quint8)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     torch.ao.nn.quantized.functional.upsample(q, 4).shape
        torch.Size([1, 1, 4, 4])
    """
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` between neighbours, corners stay, with a warning.

    Args:
        input: The images.
        size: The size. Default: that of `scale_factor`.
        scale_factor: The factor. Default: that of `size`.

    Example:
        >>> import warnings
        >>> q = torch.quantize_per_tensor(torch.ones(1, 1, 2, 2), 0.1, 0, torch.quint8)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     torch.ao.nn.quantized.functional.upsample_bilinear(q, 4).shape
        torch.Size([1, 1, 4, 4])
    """
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` by the nearest place, with a warning.

    Args:
        input: The images.
        size: The size. Default: that of `scale_factor`.
        scale_factor: The factor. Default: that of `size`.

    Example:
        >>> import warnings
        >>> q = torch.quantize_per_tensor(torch.ones(1, 1, 2, 2), 0.1, 0, torch.quint8)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     torch.ao.nn.quantized.functional.upsample_nearest(q, 4).shape
        torch.Size([1, 1, 4, 4])
    """
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")
