"""Methods of quantized tensors. They are implemented in `torchlite._quantized`, imported at first use."""

from __future__ import annotations

from typing import Any

from .._dispatch.callbacks import CALLBACKS
from .sparse_methods import SparseMethods


class QuantizedMethods(SparseMethods):
    """The part of Tensor that is about quantized tensors; errors of other tensors are PyTorch's."""

    __slots__ = ()

    def dequantize(self) -> Any:
        """Returns the numbers of a quantized tensor, ``(integer - zero_point) * scale``, in float32.

        Example:
            >>> torch.quantize_per_tensor(torch.tensor([0.24]), 0.1, 0, torch.quint8).dequantize()
            tensor([0.2000])
        """
        return CALLBACKS.quantized("dequantize")(self)

    def int_repr(self) -> Any:
        """Returns the integers of a quantized tensor, as `torch.int_repr`."""
        return CALLBACKS.quantized("int_repr")(self)

    def q_scale(self) -> float:
        """Returns the scale of a tensor that is quantized per tensor, as `torch.q_scale`."""
        return CALLBACKS.quantized("q_scale")(self)

    def q_zero_point(self) -> int:
        """Returns the zero point of a tensor that is quantized per tensor, as `torch.q_zero_point`."""
        return CALLBACKS.quantized("q_zero_point")(self)

    def q_per_channel_scales(self) -> Any:
        """Returns the scales of the channels, as `torch.q_per_channel_scales`."""
        return CALLBACKS.quantized("q_per_channel_scales")(self)

    def q_per_channel_zero_points(self) -> Any:
        """Returns the zero points of the channels, as `torch.q_per_channel_zero_points`."""
        return CALLBACKS.quantized("q_per_channel_zero_points")(self)

    def q_per_channel_axis(self) -> int:
        """Returns the dimension of the channels, as `torch.q_per_channel_axis`."""
        return CALLBACKS.quantized("q_per_channel_axis")(self)

    def qscheme(self) -> Any:
        """Returns the quantization scheme.

        Raises:
            NotImplementedError: The tensor is not quantized.

        Example:
            >>> torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8).qscheme()
            torch.per_tensor_affine
        """
        return CALLBACKS.quantized("get_scheme")(self)
