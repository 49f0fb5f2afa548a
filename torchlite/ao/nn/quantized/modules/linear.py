"""Quantized linear layers."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor, nn
from torchlite._quantized.public_functions import _empty_affine_quantized
from torchlite.nn.utils.parametrize import type_before_parametrizations

from .utils import WeightedQuantizedModule, move_with, observed_result, observed_weight


def _empty_weight(rows: int, columns: int, dtype: Any) -> Any:
    if dtype is torch.float16:
        return torch.zeros(rows, columns)
    if dtype is not torch.qint8:
        raise RuntimeError(f"Unsupported dtype on dynamic quantized linear: {dtype}")
    return _empty_affine_quantized([rows, columns], scale=1.0, zero_point=0, dtype=dtype)


class LinearPackedParams(nn.Module):
    """The packed weight and bias of a quantized linear layer, as a part of it with a state of its own.

    Args:
        dtype: `torch.qint8`, or `torch.float16` for a weight in half precision.

    Example:
        >>> torch.ao.nn.quantized.Linear(3, 2)._packed_params.dtype
        torch.qint8
    """

    _version = 3

    def __init__(self, dtype: Any = torch.qint8) -> None:
        super().__init__()
        self.dtype = dtype
        self.set_weight_bias(_empty_weight(1, 1, dtype), None)

    def set_weight_bias(self, weight: Any, bias: Any) -> None:
        """Pack a weight and a bias."""
        name = "linear_prepack" if self.dtype is torch.qint8 else "linear_prepack_fp16"
        self._packed_params = getattr(torch.ops.quantized, name)(weight, bias)

    def _weight_bias(self) -> tuple[Any, Any]:
        name = "linear_unpack" if self.dtype is torch.qint8 else "linear_unpack_fp16"
        return getattr(torch.ops.quantized, name)(self._packed_params)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self.set_weight_bias(*move_with(fn, *self._weight_bias()))
        return super()._apply(fn, recurse)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}dtype"] = self.dtype
        destination[f"{prefix}_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        self.dtype = state_dict.pop(f"{prefix}dtype")
        self.set_weight_bias(*state_dict.pop(f"{prefix}_packed_params"))
        local_metadata, _, *lists = rest
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


class Linear(WeightedQuantizedModule):
    """A linear layer of quantized tensors: a product of integers, whose sums are scaled to the result's integers.

    Args:
        in_features: Size of the input's last dimension.
        out_features: Size of the result's.
        bias_: Whether there is a bias. Default: ``True``.
        dtype: Dtype of the weight: `torch.qint8`.

    Example:
        >>> layer = torch.ao.nn.quantized.Linear(3, 2)
        >>> layer.scale, layer.zero_point = 0.1, 5
        >>> layer(torch.quantize_per_tensor(torch.ones(4, 3), 0.1, 0, torch.quint8)).shape
        torch.Size([4, 2])
    """

    _version = 3
    _FLOAT_MODULE: Any = (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear)
    _op = "linear"

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = torch.qint8) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self._packed_params = LinearPackedParams(dtype)
        weight = _empty_weight(out_features, in_features, dtype)
        self._packed_params.set_weight_bias(weight, torch.zeros(out_features) if bias_ else None)
        self.scale, self.zero_point = 1.0, 0

    def _get_name(self) -> str:
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def _tl_script_text(self) -> tuple[str, str, str]:
        """The parameters, the statement and the result of `forward` in TorchScript."""
        packed = "self._packed_params._packed_params"
        return "x: Tensor", f"return ops.quantized.{self._op}(x, {packed}, self.scale, self.zero_point)", "Tensor"

    def forward(self, x: Tensor) -> Tensor:
        compute = getattr(torch.ops.quantized, self._op)
        return compute(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def set_weight_bias(self, w: Any, b: Any) -> None:
        self._packed_params.set_weight_bias(w, b)

    def _weight_bias(self) -> tuple[Any, Any]:
        return self._packed_params._weight_bias()

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Make a quantized layer of a float one that was observed, or trained with fake quantization.

        Args:
            mod: The float layer, with a `qconfig` and an `activation_post_process`.
            use_precomputed_fake_quant: Whether the weight's parameters are those that its observer has. Default:
                ``False``, it is observed once more.
        """
        scale, zero_point = observed_result(mod)
        mod = _merged_float_linear(cls, mod)
        made = cls._like(mod)
        made.set_weight_bias(observed_weight(mod, use_precomputed_fake_quant), mod.bias)
        made.scale, made.zero_point = scale, zero_point
        return made

    @classmethod
    def _like(cls, mod: Any) -> Any:
        return cls(mod.in_features, mod.out_features)

    @classmethod
    def from_reference(cls, ref_qlinear: Any, output_scale: float, output_zero_point: int) -> Any:
        """Makes a quantized layer of a reference one, which has a quantized weight and computes on numbers.

        Args:
            ref_qlinear: The reference layer.
            output_scale: Scale of the result.
            output_zero_point: Zero point of the result.
        """
        ref_qlinear = ref_qlinear[0] if isinstance(ref_qlinear, nn.Sequential) else ref_qlinear
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


def _merged_float_linear(cls: Any, mod: Any) -> Any:
    """Return the float layer with the weight: that of a fused module, or one with a batch norm folded in."""
    from torchlite.ao.nn.intrinsic import qat as fused_qat

    if type(mod) is fused_qat.LinearBn1d:
        from torchlite.nn.utils.fusion import fuse_linear_bn_weights

        mod.weight, mod.bias = fuse_linear_bn_weights(
            mod.weight, mod.bias, mod.bn.running_mean, mod.bn.running_var, mod.bn.eps, mod.bn.weight, mod.bn.bias
        )
        return mod
    if hasattr(mod, "weight_fake_quant"):
        return mod
    allowed = cls._FLOAT_MODULE if isinstance(cls._FLOAT_MODULE, tuple) else (cls._FLOAT_MODULE,)
    if type_before_parametrizations(mod) not in allowed:
        names = ", ".join(kind.__name__ for kind in allowed)
        raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {names}, but got: {type(mod)}")
    if isinstance(mod, nn.Sequential):  # a layer and its activation
        qconfig, mod = mod.qconfig, mod[0]
        mod.qconfig = qconfig
    return mod
