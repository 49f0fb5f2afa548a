"""Quantized batch norms, with the statistics of training."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor, nn

from .utils import FromObserved, observed_result


class _BatchNorm(FromObserved, nn.modules.batchnorm._BatchNorm):
    """What both batch norms share; `_op` is the op's name."""

    _op: str
    _NNI_BN_RELU_MODULE: Any = None

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(num_features, eps, momentum, True, True, device=device, dtype=dtype)
        self.register_buffer("scale", torch.tensor(1.0, device=device))
        self.register_buffer("zero_point", torch.tensor(0, device=device))

    def _tl_script_text(self) -> tuple[str, str, str]:
        """The parameters, the statement and the result of `forward` in TorchScript."""
        statistics = "self.weight, self.bias, self.running_mean, self.running_var"
        call = f"ops.quantized.{self._op}(input, {statistics}, {self.eps!r}, float(self.scale), int(self.zero_point))"
        return "input: Tensor", f"return {call}", "Tensor"

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return getattr(torch.ops.quantized, self._op)(
            input, self.weight, self.bias, self.running_mean, self.running_var, self.eps, float(self.scale),
            int(self.zero_point),
        )  # fmt: skip

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        return cls.from_reference(mod, *observed_result(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Any:
        mod = mod[0] if isinstance(mod, nn.Sequential) else mod  # with an activation
        made = cls(mod.num_features, mod.eps, device=mod.weight.device, dtype=mod.weight.dtype)
        made.weight, made.bias = mod.weight, mod.bias
        made.running_mean, made.running_var = mod.running_mean, mod.running_var
        made.scale, made.zero_point = torch.tensor(float(scale)), torch.tensor(int(zero_point))
        return made


class BatchNorm2d(_BatchNorm):
    """`torch.nn.BatchNorm2d` of quantized images.

    Args:
        num_features: Number of channels.
        eps: What is added to the variance. Default: 1e-5.
        momentum: Passed to the float class; statistics do not change. Default: 0.1.
        device: Device of the parameters. Default: the CPU.
        dtype: Dtype of the weight and the bias. Default: the default dtype.

    Example:
        >>> layer = torch.ao.nn.quantized.BatchNorm2d(3)
        >>> layer(torch.quantize_per_tensor(torch.ones(1, 3, 2, 2), 0.1, 0, torch.quint8)).q_scale()
        1.0
    """

    _op = "batch_norm2d"

    def _check_input_dim(self, input: Any) -> None:
        if input.ndim != 4:
            raise ValueError("Input shape must be `(N, C, H, W)`!")


class BatchNorm3d(_BatchNorm):
    """`torch.nn.BatchNorm3d` of quantized volumes.

    Args:
        num_features: Number of channels.
        eps: What is added to the variance. Default: 1e-5.
        momentum: Passed to the float class; statistics do not change. Default: 0.1.
        device: Device of the parameters. Default: the CPU.
        dtype: Dtype of the weight and the bias. Default: the default dtype.

    Example:
        >>> torch.ao.nn.quantized.BatchNorm3d(3).num_features
        3
    """

    _op = "batch_norm3d"

    def _check_input_dim(self, input: Any) -> None:
        if input.ndim != 5:
            raise ValueError("Input shape must be `(N, C, H, W)`!")
