"""Convolutions with a batch norm and the positive part, whose weights are rounded while they are trained."""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch
from torchlite import Tensor, nn
from torchlite.ao.nn import intrinsic as nni
from torchlite.ao.nn.intrinsic.modules.fused import _FusedModule
from torchlite.ao.nn.qat.modules import conv as nnqat
from torchlite.ao.nn.qat.modules._from_float import check_source, configured, with_weights_of
from torchlite.nn import functional as F
from torchlite.nn import init
from torchlite.nn.parameter import Parameter
from torchlite.nn.utils import fuse_conv_bn_weights

from ._frozen_norm import NormInside

__all__ = [
    "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d",
    "ConvReLU3d", "freeze_bn_stats", "update_bn_stats",
]  # fmt: skip


class _ConvBnNd(NormInside):
    """Mixin of convolutions with a batch norm. It stands before a class of `torch.nn` among the bases."""

    _version = 2
    _FLOAT_MODULE: Any
    _FLOAT_CONV_MODULE: Any
    _FLOAT_BN_MODULE: Any
    _FLOAT_RELU_MODULE: Any
    _FUSED_FLOAT_MODULE: Any
    _conv_forward: Any
    register_parameter: Any
    out_channels: int

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: Any = None, padding_mode: str = "zeros", eps: float = 1e-05,
        momentum: float = 0.1, freeze_bn: bool = False, qconfig: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(  # type: ignore[call-arg]
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, False, padding_mode
        )
        self.qconfig = configured(qconfig)
        self.freeze_bn = False
        self.bn = self._FLOAT_BN_MODULE(out_channels, eps, momentum, True, True)
        self.weight_fake_quant = qconfig.weight()
        if bias:
            self.bias = Parameter(torch.empty(out_channels))
        self.reset_bn_parameters()
        self._begin(freeze_bn)
        self._enable_slow_path_for_better_numerical_stability = False

    def reset_bn_parameters(self) -> None:
        """Forget the running statistics and draw the norm's weight and the bias."""
        super().reset_bn_parameters()
        if self.bias is not None:
            bound = 1 / math.sqrt(init._calculate_fan_in_and_fan_out(self.weight)[0])
            init.uniform_(self.bias, -bound, bound)

    def _forward(self, input: Tensor) -> Tensor:
        if self._enable_slow_path_for_better_numerical_stability:
            return self._forward_slow(input)
        scale = self._scale()
        weight = self._scaled_weight(scale)
        zeros = torch.zeros(self.out_channels, device=weight.device, dtype=input.dtype)
        return self._normed(self._conv_forward(input, weight, zeros), scale)

    def _forward_slow(self, input: Tensor) -> Tensor:
        """The same by two convolutions, which no weight of the norm that is zero disturbs."""
        bn, shape = self.bn, (1, -1, *(1,) * (self.weight.ndim - 2))
        zeros = torch.zeros(self.out_channels, device=self.weight.device, dtype=input.dtype)
        factor = None
        if bn.training:
            plain = self._conv_forward(input, self.weight, zeros)
            with torch.no_grad():
                bn(plain if self.bias is None else plain + self.bias.reshape(shape))
            dims = (0, *range(2, self.weight.ndim))
            mean = plain.mean(dims)
            std = torch.sqrt(torch.square(plain - mean.reshape(shape)).mean(dims) + bn.eps)
            factor = (torch.sqrt(bn.running_var + bn.eps) / std).reshape(shape)
        else:
            mean = bn.running_mean - (0 if self.bias is None else self.bias)
            std = torch.sqrt(bn.running_var + bn.eps)
        out = self._conv_forward(input, self._scaled_weight(self._scale()), zeros)
        out = out if factor is None else out * factor
        out = out + (bn.bias - bn.weight * mean / std).reshape(shape)
        # The bias has no effect on a batch's norm; DistributedDataParallel wants a gradient of it.
        return out if self.bias is None else out + (self.bias - self.bias).reshape(shape)

    def forward(self, input: Tensor) -> Tensor:
        out = self._forward(input)
        return out if self._FLOAT_RELU_MODULE is None else F.relu(out)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict, strict: bool, missing_keys: list,
        unexpected_keys: list, error_msgs: list,
    ) -> None:  # fmt: skip
        if (local_metadata.get("version") or 1) == 1:
            old_names = {"bn.weight": "gamma", "bn.bias": "beta"}
            for name in ("bn.weight", "bn.bias", "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"):
                old = prefix + old_names.get(name, name.removeprefix("bn."))
                if old in state_dict:
                    state_dict[prefix + name] = state_dict.pop(old)
                elif prefix + name not in state_dict and strict:
                    missing_keys.append(prefix + name)
        super()._load_from_state_dict(  # type: ignore[misc]
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for a container of float layers, whose parameters it has.

        Args:
            mod: The container, with a ``qconfig``.
            use_precomputed_fake_quant: No effect: a float layer has no fake quantizer yet.
        """
        qconfig, (conv, bn) = check_source(cls, mod), (mod[0], mod[1])
        made = cls(**nnqat._options(conv), eps=bn.eps, momentum=bn.momentum, qconfig=qconfig)
        return made._take(conv, bn)

    def to_float(self) -> Any:
        """The float layer with the batch norm folded into copies of its parameters."""
        conv = with_weights_of(self._FLOAT_CONV_MODULE(**nnqat._options(self)), self)
        bn = self.bn
        conv.weight, conv.bias = fuse_conv_bn_weights(
            conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        if self._FLOAT_RELU_MODULE is None:
            return conv
        fused = self._FUSED_FLOAT_MODULE(conv, self._FLOAT_RELU_MODULE())
        fused.train(self.training)
        return fused


def _forward_with_relu(self: Any, input: Tensor) -> Tensor:
    """The positive part of the convolution with the rounded weight.

    Args:
        input: The input.
    """
    return F.relu(self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias))


def _document(name: str, what: str, dims: int, more: str) -> str:
    shape = ", ".join("4" * dims)
    return f"""A `torch.nn.Conv{dims}d` with {what}, whose weight is rounded to levels by fake quantization.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: The size of the kernel.
        stride: The step of the kernel. Default: 1.
        padding: Zeros at each end of each dimension. Default: 0.
        dilation: Distance of the kernel's elements. Default: 1.
        groups: The number of groups of channels. Default: 1.
        bias: Whether a bias is added.
        padding_mode: What the padding is. Default: ``"zeros"``.{more}

    Raises:
        AssertionError: There is no configuration.

    Example:
        >>> qconfig = torch.ao.quantization.get_default_qat_qconfig("qnnpack")
        >>> layer = torch.ao.nn.intrinsic.qat.{name}(1, 2, 3, qconfig=qconfig)
        >>> layer(torch.ones(2, 1, {shape})).shape[:2]
        torch.Size([2, 2])
    """


_OF_RELU = """
        qconfig: The configuration; its ``weight`` makes ``weight_fake_quant``.
        device: The parameters' device. Default: the current one.
        dtype: The parameters' dtype. Default: float32."""
_OF_NORM = """
        eps: The term in the norm's denominator. Default: 1e-05.
        momentum: The weight of a batch in the running statistics. Default: 0.1.
        freeze_bn: Whether training leaves the running statistics as they are. Default: ``False``.
        qconfig: The configuration; its ``weight`` makes ``weight_fake_quant``."""


def _make(dims: int) -> tuple[Any, Any, Any]:
    """The three classes of convolutions of some dimensions."""
    conv, norm = getattr(nn, f"Conv{dims}d"), getattr(nn, f"BatchNorm{dims}d")
    relu = getattr(nni, f"ConvReLU{dims}d")
    shared = {"__module__": __name__, "_FLOAT_CONV_MODULE": conv, "_FLOAT_BN_MODULE": norm}

    def facts(name: str, what: str, more: str = _OF_NORM, **own: Any) -> dict[str, Any]:
        return {**shared, "__doc__": _document(name, what, dims, more), "_FLOAT_MODULE": getattr(nni, name), **own}

    name = f"ConvBn{dims}d"
    first = type(name, (_ConvBnNd, conv, _FusedModule), facts(name, "a batch norm", _FLOAT_RELU_MODULE=None))
    name = f"ConvBnReLU{dims}d"
    own = facts(name, "a batch norm and ReLU", _FLOAT_RELU_MODULE=nn.ReLU, _FUSED_FLOAT_MODULE=relu)
    second = type(name, (first,), own)
    name = f"ConvReLU{dims}d"
    own = facts(name, "ReLU", _OF_RELU, _FLOAT_BN_MODULE=None, _FLOAT_RELU_MODULE=nn.ReLU)
    own["forward"] = _forward_with_relu
    return first, second, type(name, (getattr(nnqat, f"Conv{dims}d"), _FusedModule), own)


ConvBn1d, ConvBnReLU1d, ConvReLU1d = _make(1)
ConvBn2d, ConvBnReLU2d, ConvReLU2d = _make(2)
ConvBn3d, ConvBnReLU3d, ConvReLU3d = _make(3)


def update_bn_stats(mod: Any) -> None:
    """Lets training update the running statistics of a fused convolution: a function for `apply`.

    Args:
        mod: A module; others than fused convolutions are left as they are.

    Example:
        >>> torch.ao.nn.intrinsic.qat.update_bn_stats(torch.nn.ReLU())
    """
    if isinstance(mod, _ConvBnNd):
        mod.update_bn_stats()


def freeze_bn_stats(mod: Any) -> None:
    """Lets training use the running statistics of a fused convolution as they are: a function for `apply`.

    Args:
        mod: A module; others than fused convolutions are left as they are.

    Example:
        >>> torch.ao.nn.intrinsic.qat.freeze_bn_stats(torch.nn.ReLU())
    """
    if isinstance(mod, _ConvBnNd):
        mod.freeze_bn_stats()
