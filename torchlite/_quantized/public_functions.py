"""The functions of `torch` that make quantized tensors, and those that read their parameters."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .._dispatch.error_translation import no_backend_kernel_error
from .._ops._dtype_checks import refuse_floats
from .._types.package_name import package_name
from .._types.qschemes import per_channel_affine
from .._types.quantized_levels import choose_parameters
from .dispatched_functions import dispatched
from .packed_levels import is_packed, pack, wrap_levels
from .quantized_tensor import is_quantized, wrap_quantized
from .quantizers import BITS, INTEGERS, QUANTIZED, PerChannel, PerTensor, check_dtype, check_numbers, make_per_channel


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) else value


@dispatched
def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, dtype: Any) -> Any:
    """Quantizes a tensor with one scale and one zero point.

    A number ``x`` becomes the integer ``round(x / scale + zero_point)``, limited to the range of `dtype`. Halves round
    to the even integer.

    Args:
        input: A float32 tensor of any shape, or a list of them.
        scale: The distance of neighbouring numbers; a tensor with one for each tensor of a list.
        zero_point: The integer of the number 0; a tensor with one for each tensor of a list.
        dtype: `torch.quint8`, `torch.qint8`, `torch.qint32`, or `torch.quint4x2` and `torch.quint2x4`, whose levels
            have four and two bits.

    Returns:
        A quantized tensor of the same shape, or a tuple of them.

    Raises:
        RuntimeError: The input is not float32, the dtype is not quantized, or it cannot hold the zero point.

    Example:
        >>> torch.quantize_per_tensor(torch.tensor([-1.0, 0.0, 1.26, 99.0]), 0.1, 10, torch.quint8).int_repr()
        tensor([  0,  10,  23, 255], dtype=torch.uint8)

    See also:
        `torch.quantize_per_channel`, `torch.dequantize`.
    """
    refuse_floats(zero_point)
    if isinstance(input, (list, tuple)):
        return tuple(quantize_per_tensor(x, scale[i], zero_point[i], dtype) for i, x in enumerate(input))
    check_dtype(dtype)
    check_numbers(input)
    quantizer = PerTensor(float(_number(scale)), int(_number(zero_point)))
    return wrap_levels(quantizer.quantize(input.detach(), dtype), quantizer, dtype)


@dispatched
def quantize_per_channel(input: Any, scales: Any, zero_points: Any, axis: int, dtype: Any) -> Any:
    """Quantizes a tensor with a scale and a zero point for each entry of a dimension.

    Args:
        input: A float32 tensor.
        scales: The scales, a tensor of shape ``(input.shape[axis],)``.
        zero_points: The zero points, of the same shape. Of float32, a number ``x`` becomes ``round(x / scale + zero)``.
        axis: The dimension of the channels.
        dtype: `torch.quint8`, `torch.qint8` or `torch.qint32`. With zero points of float32 also `torch.quint4x2` and
            `torch.quint2x4`, whose levels have four and two bits.

    Returns:
        A quantized tensor of the same shape.

    Raises:
        RuntimeError: The input is not float32, the dtype is not quantized, or the number of channels differs.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [1.0, 2.0]])
        >>> q = torch.quantize_per_channel(x, torch.tensor([0.5, 0.25]), torch.tensor([0, 1]), 0, torch.qint8)
        >>> q.int_repr()
        tensor([[2, 4],
                [5, 9]], dtype=torch.int8)

    See also:
        `torch.quantize_per_tensor`.
    """
    check_dtype(dtype)
    check_numbers(input)
    quantizer = make_per_channel(scales, zero_points, axis)
    quantizer.check(tuple(input.shape))
    if BITS[dtype] < 8 and quantizer.scheme is per_channel_affine:
        raise NotImplementedError(f"\"quantize_tensor_per_channel_affine\" not implemented for '{dtype.scalar_name}'")
    return wrap_levels(quantizer.quantize(input.detach(), dtype), quantizer, dtype)


@dispatched
def quantize_per_tensor_dynamic(input: Any, dtype: Any, reduce_range: bool) -> Any:
    """Quantizes a tensor with a scale and a zero point that fit its least and greatest numbers.

    Args:
        input: A float32 tensor.
        dtype: `torch.quint8` or `torch.qint8`.
        reduce_range: Whether half of the range of `dtype` is used.

    Returns:
        A quantized tensor of the same shape.

    Raises:
        RuntimeError: The input is not float32, or the dtype is another.

    Example:
        >>> q = torch.quantize_per_tensor_dynamic(torch.tensor([0.0, 255.0]), torch.quint8, False)
        >>> q.q_scale(), q.q_zero_point()
        (1.0, 0)
    """
    if dtype not in (torch.quint8, torch.qint8):
        raise RuntimeError(f"dtype {dtype.scalar_name} not supported")
    check_numbers(input)
    low, high = (-128, 127) if dtype is torch.qint8 else (0, 255)
    if reduce_range:
        low, high = (-64, 63) if dtype is torch.qint8 else (0, 127)
    if input.numel() == 0:
        return quantize_per_tensor(input, 1.0, 0, dtype)
    scale, zero_point = choose_parameters(input.min().item(), input.max().item(), low, high)
    return quantize_per_tensor(input, scale, zero_point, dtype)


def dequantize(input: Any, tensors: Any = None) -> Any:
    """Returns the numbers of a quantized tensor, ``(integer - zero_point) * scale``.

    Args:
        input: A quantized tensor, or a list of them. Another tensor is converted to float32.
        tensors: The list, by its other name.

    Returns:
        A float32 tensor, or a tuple of them.

    Example:
        >>> torch.dequantize(torch.quantize_per_tensor(torch.tensor([0.24, 9.0]), 0.1, 0, torch.quint8))
        tensor([0.2000, 9.0000])
    """
    return _dequantize(tensors if input is None else input)


def _numbers_of(input: Any) -> Any:
    if isinstance(input, (list, tuple)):
        return tuple(_numbers_of(tensor) for tensor in input)
    if not is_quantized(input):
        return input.to(torch.float32)
    return input._quantizer.dequantize(input._values)


_numbers_of.__name__ = "dequantize"
_dequantize = dispatched(_numbers_of)


def _parameters(input: Any, name: str, kind: Any) -> Any:
    if not is_quantized(input):
        raise no_backend_kernel_error(name, "", input)
    if not isinstance(input._quantizer, kind):
        wanted = (
            "kPerTensorAffine" if kind is PerTensor
            else "kPerChannelAffine || quantizer->qscheme() == kPerChannelAffineFloatQParams"
        )  # fmt: skip
        raise RuntimeError(
            f"Expected quantizer->qscheme() == {wanted} to be true, but got false.  (Could this error message be "
            "improved?  If so, please report an enhancement request to PyTorch.)"
        )
    return input._quantizer


@dispatched
def int_repr(input: Any) -> Any:
    """Returns the integers of a quantized tensor.

    Args:
        input: The quantized tensor.

    Returns:
        A tensor of uint8, int8 or int32, a copy. Of `torch.quint4x2` and `torch.quint2x4` it has the bytes with two and
        four levels, in one dimension.

    Raises:
        NotImplementedError: The tensor is not quantized.

    Example:
        >>> torch.int_repr(torch.quantize_per_tensor(torch.tensor([1.0]), 0.5, 3, torch.quint8))
        tensor([5], dtype=torch.uint8)
    """
    if not is_quantized(input):
        raise no_backend_kernel_error("int_repr", "", input)
    if is_packed(input):
        return pack(input._values, BITS[input.dtype])
    return input._values.clone()


@dispatched
def q_scale(input: Any) -> float:
    """Returns the scale of a tensor that is quantized per tensor.

    Args:
        input: The quantized tensor.

    Raises:
        NotImplementedError: The tensor is not quantized.
        RuntimeError: It is quantized per channel.

    Example:
        >>> torch.q_scale(torch.quantize_per_tensor(torch.ones(1), 0.5, 3, torch.quint8))
        0.5
    """
    return _parameters(input, "q_scale", PerTensor).scale


@dispatched
def q_zero_point(input: Any) -> int:
    """Returns the zero point of a tensor that is quantized per tensor.

    Args:
        input: The quantized tensor.

    Raises:
        NotImplementedError: The tensor is not quantized.
        RuntimeError: It is quantized per channel.

    Example:
        >>> torch.q_zero_point(torch.quantize_per_tensor(torch.ones(1), 0.5, 3, torch.quint8))
        3
    """
    return _parameters(input, "q_zero_point", PerTensor).zero_point


@dispatched
def q_per_channel_scales(input: Any) -> Any:
    """Returns the scales of a tensor that is quantized per channel, in float64.

    Args:
        input: The quantized tensor.

    Raises:
        NotImplementedError: The tensor is not quantized.
        RuntimeError: It is quantized per tensor.

    Example:
        >>> parameters = torch.tensor([0.5, 0.25]), torch.tensor([0, 1])
        >>> torch.q_per_channel_scales(torch.quantize_per_channel(torch.ones(2, 2), *parameters, 0, torch.qint8))
        tensor([0.5000, 0.2500], dtype=torch.float64)
    """
    return _parameters(input, "q_per_channel_scales", PerChannel).scales


@dispatched
def q_per_channel_zero_points(input: Any) -> Any:
    """Returns the zero points of a tensor that is quantized per channel.

    Args:
        input: The quantized tensor.

    Raises:
        NotImplementedError: The tensor is not quantized.
        RuntimeError: It is quantized per tensor.

    Example:
        >>> parameters = torch.tensor([0.5, 0.25]), torch.tensor([0, 1])
        >>> torch.q_per_channel_zero_points(torch.quantize_per_channel(torch.ones(2, 2), *parameters, 0, torch.qint8))
        tensor([0, 1])
    """
    return _parameters(input, "q_per_channel_zero_points", PerChannel).zero_points


@dispatched
def q_per_channel_axis(input: Any) -> int:
    """Returns the dimension of the channels of a tensor that is quantized per channel.

    Args:
        input: The quantized tensor.

    Raises:
        NotImplementedError: The tensor is not quantized.
        RuntimeError: It is quantized per tensor.

    Example:
        >>> parameters = torch.tensor([0.5, 0.25]), torch.tensor([0, 1])
        >>> torch.q_per_channel_axis(torch.quantize_per_channel(torch.ones(2, 2), *parameters, 0, torch.qint8))
        0
    """
    return _parameters(input, "q_per_channel_axis", PerChannel).axis


def get_scheme(input: Any) -> Any:
    """Return the quantization scheme."""
    if not is_quantized(input):
        raise no_backend_kernel_error("qscheme", "", input)
    return input._quantizer.scheme


def _check_integers(input: Any) -> None:
    if input.dtype not in QUANTIZED:
        raise RuntimeError(f"expected integers of int8, uint8 or int32, but got {input.dtype}")


def _make_per_tensor_quantized_tensor(input: Any, scale: float, zero_point: int) -> Any:
    """A quantized tensor of given integers."""
    _check_integers(input)
    return wrap_quantized(input.detach().clone(), PerTensor(float(scale), int(zero_point)))


def _make_per_channel_quantized_tensor(input: Any, scale: Any, zero_point: Any, axis: int) -> Any:
    """A quantized tensor of given integers, with parameters for each channel."""
    _check_integers(input)
    quantizer = make_per_channel(scale, zero_point, axis)
    quantizer.check(tuple(input.shape))
    return wrap_quantized(input.detach().clone(), quantizer)


def _empty_integers(size: Any, dtype: Any, device: Any, memory_format: Any) -> Any:
    check_dtype(dtype)
    return torch.empty(size, dtype=INTEGERS[dtype][0], device=device, memory_format=memory_format)


def _empty_affine_quantized(
    size: Any, *, scale: float = 1, zero_point: int = 0, dtype: Any, device: Any = None,
    memory_format: Any = torch.contiguous_format,
) -> Any:  # fmt: skip
    """A quantized tensor of a size, with any integers."""
    values = _empty_integers(size, dtype, device, memory_format)
    return wrap_levels(values, PerTensor(float(scale), int(zero_point)), dtype)


def _empty_per_channel_affine_quantized(
    size: Any, *, scales: Any, zero_points: Any, axis: int, dtype: Any, device: Any = None,
    memory_format: Any = torch.contiguous_format,
) -> Any:  # fmt: skip
    """A quantized tensor of a size, with any integers and parameters for each channel."""
    quantizer = make_per_channel(scales, zero_points, axis)
    quantizer.check(tuple(size))
    return wrap_levels(_empty_integers(size, dtype, device, memory_format), quantizer, dtype)


def quantized_lstm(*args: Any, **kwargs: Any) -> Any:
    """An LSTM of float32 numbers with packed weights; `torch.ao.nn.quantized.dynamic.LSTM` calls it.

    Args:
        *args: The input, the two states as a list, the packed weights as a list, whether there are biases, the number
            of layers, the dropout, whether that is active, whether there are two directions, and whether the batch is
            the first dimension. Of a packed sequence, the sizes of the batches follow the data, and the last is absent.
        **kwargs: ``dtype`` and ``use_dynamic``, without effect.

    Returns:
        The results and the two last states.

    Example:
        >>> layer = torch.ao.nn.quantized.dynamic.LSTM(3, 4)
        >>> params, zeros = [layer._all_weight_values[0].param], torch.zeros(1, 2, 4)
        >>> found = torch.quantized_lstm(
        ...     torch.ones(5, 2, 3), [zeros, zeros], params, True, 1, 0.0, False, False, False
        ... )
        >>> found[0].shape
        torch.Size([5, 2, 4])
    """
    return torch.ops.aten.quantized_lstm(*args, **kwargs)


def quantized_gru(*args: Any, **kwargs: Any) -> Any:
    """A GRU of float32 numbers with packed weights; `torch.ao.nn.quantized.dynamic.GRU` calls it.

    Args:
        *args: Those of `torch.quantized_lstm`, with one state in the place of the list.
        **kwargs: Arguments by name.

    Returns:
        The results and the last state.

    Example:
        >>> layer = torch.ao.nn.quantized.dynamic.GRU(3, 4)
        >>> params, zeros = [layer._all_weight_values[0].param], torch.zeros(1, 2, 4)
        >>> torch.quantized_gru(torch.ones(5, 2, 3), zeros, params, True, 1, 0.0, False, False, False)[0].shape
        torch.Size([5, 2, 4])
    """
    return torch.ops.aten.quantized_gru(*args, **kwargs)


def _saturate_weight_to_fp16(weight: Any) -> Any:
    """Numbers of float32 within the range of half precision."""
    return torch.ops.aten._saturate_weight_to_fp16(weight)


for _function in (
    quantized_lstm, quantized_gru, quantize_per_tensor, quantize_per_channel, quantize_per_tensor_dynamic, dequantize,
    int_repr, q_scale, q_zero_point, q_per_channel_scales, q_per_channel_zero_points, q_per_channel_axis,
):  # fmt: skip
    _function.__module__ = package_name()
