"""Convolutions with a quantized weight that compute on numbers."""

from __future__ import annotations

from typing import Any

from torchlite import Tensor, nn
from torchlite.nn import functional as F

from .utils import ReferenceQuantizedModule, with_float_parameters

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
_NAMES = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode")


class _ConvNd(ReferenceQuantizedModule):
    """Common part of the convolutions, a base class before one of `torch.nn`."""

    _IS_REFERENCE = True
    _base: Any
    bias: Any

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
        dtype: Any = None, weight_qparams: Any = None,
    ) -> None:  # fmt: skip
        self._base.__init__(
            self, in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups,
            bias=bias, padding_mode=padding_mode, device=device, dtype=dtype,
        )  # fmt: skip
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return f"Quantized{self._base.__name__}(Reference)"

    def forward(self, x: Tensor) -> Tensor:
        function = getattr(F, self._base.__name__.lower())
        options: Any = self
        return function(
            x, self.get_weight(), self.bias, options.stride, options.padding, options.dilation, options.groups
        )

    @classmethod
    def from_float(cls, float_conv: Any, weight_qparams: dict[str, Any]) -> Any:
        """The layer of a float one.

        Args:
            float_conv: The float layer.
            weight_qparams: Scheme, dtype, scale and zero point of the weight.
        """
        weight = float_conv.weight
        options = {name: getattr(float_conv, name) for name in cls._names()}
        made = cls(
            **options, bias=float_conv.bias is not None, device=weight.device, dtype=weight.dtype,
            weight_qparams=weight_qparams,
        )  # fmt: skip
        return with_float_parameters(made, float_conv)

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return _NAMES


class _ConvTransposeNd(_ConvNd):
    """Common part of the transposed convolutions."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None, weight_qparams: Any = None,
    ) -> None:  # fmt: skip
        self._base.__init__(
            self, in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation,
            padding_mode, device, dtype,
        )  # fmt: skip
        self._init_weight_qparams(weight_qparams, device)

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        """The transposed convolution.

        Args:
            x: The input.
            output_size: The spatial size of the result. Default: the least.
        """
        options: Any = self
        padding = options._output_padding(
            x, output_size, options.stride, options.padding, options.kernel_size, len(options.kernel_size),
            options.dilation,
        )  # fmt: skip
        function = getattr(F, self._base.__name__.lower().replace("transpose", "_transpose"))
        return function(
            x, self.get_weight(), self.bias, options.stride, options.padding, padding, options.groups, options.dilation
        )

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return (*_NAMES, "output_padding")


def _make(name: str) -> Any:
    base = getattr(nn, name)
    document = f"""A `torch.nn.{name}` whose weight is quantized before each convolution of numbers.

    Its parameters are those of `torch.nn.{name}`, and ``weight_qparams``: scheme, dtype, scale and zero point of the
    weight.

    Example:
        >>> torch.ao.nn.quantized.reference.{name}(1, 1, 3).weight_dtype
        torch.quint8
    """
    mixin = _ConvTransposeNd if "Transpose" in name else _ConvNd
    return type(name, (mixin, base), {"__doc__": document, "__module__": __name__, "_base": base})


Conv1d: Any = _make("Conv1d")
Conv2d: Any = _make("Conv2d")
Conv3d: Any = _make("Conv3d")
ConvTranspose1d, ConvTranspose2d = _make("ConvTranspose1d"), _make("ConvTranspose2d")
ConvTranspose3d = _make("ConvTranspose3d")
