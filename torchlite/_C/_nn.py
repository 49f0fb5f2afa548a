"""Functions of layers that PyTorch names under `torch._C._nn`."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from ..nn.modules._module_conversion import _parse_to as _read_to


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Parse the arguments of `Module.to`: (device, dtype, non_blocking, memory_format).

    >>> from torchlite._C._nn import _parse_to
    >>> _parse_to("cpu", torch.float16)
    (device(type='cpu'), torch.float16, False, None)
    """
    return _read_to(args, kwargs)


def thnn_conv2d(
    input: Any, weight: Any, kernel_size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0
) -> torch.Tensor:
    """`conv2d` without dilation and groups; the weight's own sizes are the kernel's."""
    return torch.conv2d(input, weight, bias, stride, padding)


def slow_conv3d(
    input: Any, weight: Any, kernel_size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0
) -> torch.Tensor:
    """`conv3d` without dilation and groups; the weight's own sizes are the kernel's."""
    return torch.conv3d(input, weight, bias, stride, padding)


def _conv_depthwise2d(
    input: Any, weight: Any, kernel_size: Any, bias: Any, stride: Any, padding: Any, dilation: Any
) -> torch.Tensor:
    """`conv2d` with a group for each channel; the weight's own sizes are the kernel's."""
    return torch.conv2d(input, weight, bias, stride, padding, dilation, input.shape[-3])


def conv_depthwise3d(
    input: Any, weight: Any, kernel_size: Any, bias: Any, stride: Any, padding: Any, dilation: Any
) -> torch.Tensor:
    """`conv3d` with a group for each channel; the weight's own sizes are the kernel's."""
    return torch.conv3d(input, weight, bias, stride, padding, dilation, input.shape[-4])


def flatten_dense_tensors(tensors: Any) -> torch.Tensor:
    """The elements of tensors, one after the other."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def unflatten_dense_tensors(flat: torch.Tensor, tensors: Any) -> tuple[torch.Tensor, ...]:
    """Views of a flat tensor in the shapes of tensors."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True))


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> torch.Tensor:
    """`torch.nn.utils.rnn.pad_sequence`."""
    return torch.nn.utils.rnn.pad_sequence(sequences, batch_first, padding_value, padding_side)


# Functions of the library, whose first argument has the name `input` here.
_LIBRARY = frozenset(
    """_pad_circular _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_nearest_exact3d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d avg_pool2d
    avg_pool3d binary_cross_entropy col2im cross_entropy_loss elu elu_ fractional_max_pool2d fractional_max_pool3d gelu
    gelu_ glu hardsigmoid hardsigmoid_ hardswish hardswish_ hardtanh hardtanh_ huber_loss im2col l1_loss leaky_relu
    leaky_relu_ linear log_sigmoid max_pool2d_with_indices max_pool3d_with_indices max_unpool2d max_unpool3d mish mish_
    mse_loss multi_margin_loss multilabel_margin_loss nll_loss nll_loss2d nll_loss_nd one_hot pad reflection_pad1d
    reflection_pad2d reflection_pad3d relu6 relu6_ replication_pad1d replication_pad2d replication_pad3d
    rrelu_with_noise rrelu_with_noise_ scaled_dot_product_attention silu silu_ slow_conv_dilated2d slow_conv_dilated3d
    slow_conv_transpose2d slow_conv_transpose3d smooth_l1_loss soft_margin_loss softplus softshrink upsample_bicubic2d
    upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d
    upsample_trilinear3d""".split()
)


def _library_function(name: str) -> Any:
    packet = getattr(torch.ops.aten, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        if "input" in kwargs and name not in ("linear",):
            kwargs["self"] = kwargs.pop("input")
        return packet(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`torch.ops.aten.{name}`, whose first argument has the name `input`."
    return function


def __getattr__(name: str) -> Any:
    if name not in _LIBRARY:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = globals()[name] = _library_function(name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LIBRARY})
