"""Quantized convolutions."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor, nn
from torchlite._quantized.public_functions import _empty_affine_quantized
from torchlite.nn import functional as F
from torchlite.nn.utils.fusion import fuse_conv_bn_weights

from .utils import WeightedQuantizedModule, move_with, observed_result, observed_weight, with_arguments


def _tuple(value: Any, rank: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * rank


def _check_dtype(dtype: Any) -> None:
    if dtype not in (None, torch.qint8):
        raise RuntimeError(f"the weight of a quantized convolution has the dtype torch.qint8, but got {dtype}")


_CONV = """
in_channels: Channels of the input.
out_channels: Channels of the result.
kernel_size: Size of the kernel, a number or one for each dimension.
stride: Distance of neighbouring windows. Default: 1.
padding: Places on each side, which have the zero point. Default: 0.
dilation: Distance of the kernel's elements. Default: 1.
groups: Number of groups of channels. Default: 1.
bias: Whether there is a bias. Default: ``True``.
padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``; transposed ones have zeros. Default:
    ``"zeros"``.
device: Device of the weight. Default: the CPU.
dtype: Dtype of the weight: None or `torch.qint8`.
"""
_TRANSPOSED = _CONV + "output_padding: Places that are added at the end of the result. Default: 0."


class _ConvNd(WeightedQuantizedModule):
    """A convolution of quantized images over `_rank` dimensions; `_op` is its op's name, and `_end` that of the
    activation in it.
    """

    _rank: int
    _transposed = False
    _end = ""
    _FLOAT_MODULE: Any

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        _check_dtype(dtype)
        self._setup(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device
        )

    def _setup(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
        output_padding: Any, groups: int, bias: bool, padding_mode: str, device: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if self._transposed and padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self.in_channels, self.out_channels, self.groups, self.padding_mode = (
            in_channels, out_channels, groups, padding_mode,
        )  # fmt: skip
        self.kernel_size, self.stride, self.padding, self.dilation, self.output_padding = (
            _tuple(value, self._rank) for value in (kernel_size, stride, padding, dilation, output_padding)
        )
        self.transposed = self._transposed
        first, second = (in_channels, out_channels) if self._transposed else (out_channels, in_channels)
        weight = _empty_affine_quantized(
            [first, second // groups, *self.kernel_size], scale=1, zero_point=0, dtype=torch.qint8, device=device
        )
        self.set_weight_bias(weight, torch.zeros(out_channels, device=device) if bias else None)
        self.scale, self.zero_point = 1.0, 0

    def _get_name(self) -> str:
        return f"QuantizedConv{'Transpose' * self._transposed}{self._rank}d"

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        ]
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if any(n != usual for n in getattr(self, name)):
                parts.append(f"{name}={getattr(self, name)}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias() is None:
            parts.append("bias=False")
        return ", ".join(parts)

    def set_weight_bias(self, w: Any, b: Any) -> None:
        padding = self.padding if self.padding_mode == "zeros" else (0,) * self._rank
        if self._transposed:
            prepack = getattr(torch.ops.quantized, f"conv_transpose{self._rank}d_prepack")
            self._packed_params = prepack(
                w, b, self.stride, padding, self.output_padding, self.dilation, self.groups
            )  # fmt: skip
        else:
            prepack = getattr(torch.ops.quantized, f"conv{self._rank}d_prepack")
            self._packed_params = prepack(w, b, self.stride, padding, self.dilation, self.groups)

    def _weight_bias(self) -> tuple[Any, Any]:
        name = f"conv{'_transpose' * self._transposed}{self._rank}d_unpack"
        return getattr(torch.ops.quantized, name)(self._packed_params)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self.set_weight_bias(*move_with(fn, *self._weight_bias()))
        return super()._apply(fn, recurse)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        weight, bias = self._weight_bias()
        destination[f"{prefix}weight"], destination[f"{prefix}bias"] = weight, bias
        super()._save_to_state_dict(destination, prefix, keep_vars)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        self.set_weight_bias(state_dict.pop(f"{prefix}weight"), state_dict.pop(f"{prefix}bias"))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _padded(self, input: Tensor) -> Tensor:
        """The input with the padding that the kernel does not add."""
        if input.ndim != self._rank + 2:
            raise ValueError(f"Input shape must be `(N, C, {('L', 'H, W', 'D, H, W')[self._rank - 1]})`!")
        if self.padding_mode == "zeros":
            return input
        return F.pad(input, [n for n in reversed(self.padding) for _ in range(2)], mode=self.padding_mode)

    def _op_name(self) -> str:
        return f"conv_transpose{self._rank}d" if self._transposed else f"conv{self._rank}d{self._end}"

    def _padded_text(self) -> str:
        if self.padding_mode == "zeros":
            return "input"
        pad = [n for n in reversed(self.padding) for _ in range(2)]
        return f"torch.pad(input, {pad}, {self.padding_mode!r}, None)"

    def _tl_script_text(self) -> tuple[str, str, str]:
        """The parameters, the statements and the result of `forward` in TorchScript."""
        arguments = f"{self._padded_text()}, self._packed_params, self.scale, self.zero_point"
        return "input: Tensor", f"return ops.quantized.{self._op_name()}({arguments})", "Tensor"

    def forward(self, input: Tensor) -> Tensor:
        compute = getattr(torch.ops.quantized, self._op_name())
        return compute(self._padded(input), self._packed_params, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Make a quantized convolution of a float one that was observed, or trained with fake quantization.

        Args:
            mod: The float layer, with a `qconfig` and an `activation_post_process`.
            use_precomputed_fake_quant: Whether the weight's parameters are those that its observer has. Default:
                ``False``, it is observed once more.
        """
        scale, zero_point = observed_result(mod)
        mod = _merged_float_conv(cls, mod)
        made = cls._like(mod)
        made.set_weight_bias(observed_weight(mod, use_precomputed_fake_quant), mod.bias)
        made.scale, made.zero_point = scale, zero_point
        return made

    @classmethod
    def _like(cls, mod: Any) -> Any:
        named = {} if not cls._transposed else {"output_padding": mod.output_padding}
        return cls(
            mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding, dilation=mod.dilation,
            groups=mod.groups, bias=mod.bias is not None, padding_mode=mod.padding_mode, **named,
        )  # fmt: skip

    @classmethod
    def from_reference(cls, ref_qconv: Any, output_scale: float, output_zero_point: int) -> Any:
        """Make a quantized convolution of a reference one, which has a quantized weight and computes on numbers."""
        ref_qconv = ref_qconv[0] if isinstance(ref_qconv, nn.Sequential) else ref_qconv
        made = cls._like(ref_qconv)
        made.set_weight_bias(ref_qconv.get_quantized_weight(), ref_qconv.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


def _merged_float_conv(cls: Any, mod: Any) -> Any:
    """Return the float convolution with the weight: that of a fused module, with a batch norm folded in."""
    if hasattr(mod, "weight_fake_quant"):
        if hasattr(mod, "bn"):
            mod.weight, mod.bias = fuse_conv_bn_weights(
                mod.weight, mod.bias, mod.bn.running_mean, mod.bn.running_var, mod.bn.eps, mod.bn.weight, mod.bn.bias
            )
        return mod
    if type(mod) is not cls._FLOAT_MODULE:
        raise AssertionError(
            f" nnq.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__} but got: {type(mod)}"
        )
    if isinstance(mod, nn.Sequential):  # a layer and its activation
        qconfig, mod = mod.qconfig, mod[0]
        mod.qconfig = qconfig
    return mod


@with_arguments(_CONV)
class Conv1d(_ConvNd):
    """A convolution of quantized sequences.

    Example:
        >>> torch.ao.nn.quantized.Conv1d(2, 3, 3)
        QuantizedConv1d(2, 3, kernel_size=(3,), stride=(1,), scale=1.0, zero_point=0)
    """

    _rank = 1
    _FLOAT_MODULE = nn.Conv1d


@with_arguments(_CONV)
class Conv2d(_ConvNd):
    """A convolution of quantized images.

    Example:
        >>> layer = torch.ao.nn.quantized.Conv2d(2, 3, 3, padding=1)
        >>> layer(torch.quantize_per_tensor(torch.ones(1, 2, 5, 5), 0.1, 0, torch.quint8)).shape
        torch.Size([1, 3, 5, 5])
    """

    _rank = 2
    _FLOAT_MODULE = nn.Conv2d


@with_arguments(_CONV)
class Conv3d(_ConvNd):
    """A convolution of quantized volumes.

    Example:
        >>> torch.ao.nn.quantized.Conv3d(2, 3, 3)
        QuantizedConv3d(2, 3, kernel_size=(3, 3, 3), stride=(1, 1, 1), scale=1.0, zero_point=0)
    """

    _rank = 3
    _FLOAT_MODULE = nn.Conv3d


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution, which computes on the numbers."""

    _transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        _check_dtype(dtype)
        self._setup(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias,
            padding_mode, device,
        )  # fmt: skip


@with_arguments(_TRANSPOSED)
class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution of quantized sequences.

    Example:
        >>> torch.ao.nn.quantized.ConvTranspose1d(2, 3, 3)
        QuantizedConvTranspose1d(2, 3, kernel_size=(3,), stride=(1,), scale=1.0, zero_point=0)
    """

    _rank = 1
    _FLOAT_MODULE = nn.ConvTranspose1d


@with_arguments(_TRANSPOSED)
class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution of quantized images.

    Example:
        >>> torch.ao.nn.quantized.ConvTranspose2d(2, 3, 3)
        QuantizedConvTranspose2d(2, 3, kernel_size=(3, 3), stride=(1, 1), scale=1.0, zero_point=0)
    """

    _rank = 2
    _FLOAT_MODULE = nn.ConvTranspose2d


@with_arguments(_TRANSPOSED)
class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution of quantized volumes.

    Example:
        >>> torch.ao.nn.quantized.ConvTranspose3d(2, 3, 3)
        QuantizedConvTranspose3d(2, 3, kernel_size=(3, 3, 3), stride=(1, 1, 1), scale=1.0, zero_point=0)
    """

    _rank = 3
    _FLOAT_MODULE = nn.ConvTranspose3d
