"""Linear layers with weights of eight bits, for float inputs."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor, nn
from torchlite.ao.nn.quantized.modules import linear
from torchlite.ao.nn.quantized.modules.utils import quantize_weight


class Linear(linear.Linear):
    """A linear layer whose inputs are quantized by their least and greatest number in each call.

    Args:
        in_features: Size of the input's last dimension.
        out_features: Size of the result's.
        bias_: Whether there is a bias. Default: ``True``.
        dtype: Dtype of the weight: `torch.qint8` or `torch.float16`.

    Example:
        >>> torch.ao.nn.quantized.dynamic.Linear(3, 2)(torch.ones(4, 3)).shape
        torch.Size([4, 2])
    """

    _version = 4
    _op = "linear_dynamic"

    def _tl_script_text(self) -> tuple[str, str, str]:
        name, *rest = self._call()
        call = f"ops.quantized.{name}({', '.join(['x', 'self._packed_params._packed_params', *map(str, rest)])})"
        return "x: Tensor", f"return torch.to({call}, ops.prim.dtype(x))", "Tensor"

    def forward(self, x: Tensor) -> Tensor:
        layer = self._packed_params
        if layer.dtype is torch.float16:
            out = getattr(torch.ops.quantized, f"{self._op}_fp16")(x, layer._packed_params)
        else:
            out = getattr(torch.ops.quantized, self._op)(x, layer._packed_params, True)
        return out.to(x.dtype)

    def _call(self) -> list[Any]:
        """The op's name, and its arguments after the weight. Inputs of weights of eight bits are reduced to 7 bits."""
        return [f"{self._op}_fp16"] if self._packed_params.dtype is torch.float16 else [self._op, True]

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return text if self._packed_params.dtype is torch.float16 else f"{text}, qscheme={self.weight().qscheme()}"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Make the module of a float one, with the observer of its qconfig or dynamic quantization's usual one.

        Args:
            mod: The float module.
            use_precomputed_fake_quant: Has no effect.
        """
        if isinstance(mod, nn.Sequential):  # a layer and its activation
            qconfig, mod = getattr(mod, "qconfig", None), mod[0]
            mod.qconfig = qconfig
        if getattr(mod, "qconfig", None) is not None and mod.qconfig.weight is not None:
            observer = mod.qconfig.weight()
        else:
            from torchlite.ao.quantization.qconfig import default_dynamic_qconfig

            observer = default_dynamic_qconfig.weight()
        if observer.dtype not in (torch.qint8, torch.float16):
            raise RuntimeError("Unsupported dtype specified for dynamic quantized Linear!")
        weight = mod.weight.detach().float()
        if observer.dtype is torch.qint8:
            observer(mod.weight)
            weight = quantize_weight(weight, observer)
        made = cls(mod.in_features, mod.out_features, dtype=observer.dtype)
        made.set_weight_bias(weight, mod.bias)
        return made

    @classmethod
    def from_reference(cls, ref_qlinear: Any) -> Any:  # type: ignore[override]
        """Make the module of a reference one, which has a quantized weight.

        Args:
            ref_qlinear: The reference layer.
        """
        ref_qlinear = ref_qlinear[0] if isinstance(ref_qlinear, nn.Sequential) else ref_qlinear
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features, dtype=ref_qlinear.weight_dtype)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        return made
