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
        dtype: Dtype of the weight: `torch.qint8`.

    Example:
        >>> torch.ao.nn.quantized.dynamic.Linear(3, 2)(torch.ones(4, 3)).shape
        torch.Size([4, 2])
    """

    _version = 4
    _op = "linear_dynamic"

    def _tl_script_text(self) -> tuple[str, str, str]:
        call = f"ops.quantized.{self._op}(x, self._packed_params._packed_params, True)"
        return "x: Tensor", f"return torch.to({call}, ops.prim.dtype(x))", "Tensor"

    def forward(self, x: Tensor) -> Tensor:
        compute = getattr(torch.ops.quantized, self._op)
        return compute(x, self._packed_params._packed_params, True).to(x.dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return f"{text}, qscheme={self.weight().qscheme()}"

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
        if observer.dtype is not torch.qint8:
            raise RuntimeError("Unsupported dtype specified for dynamic quantized Linear!")
        observer(mod.weight)
        made = cls(mod.in_features, mod.out_features)
        made.set_weight_bias(quantize_weight(mod.weight.detach().float(), observer), mod.bias)
        return made

    @classmethod
    def from_reference(cls, ref_qlinear: Any) -> Any:  # type: ignore[override]
        """Make the module of a reference one, which has a quantized weight.

        Args:
            ref_qlinear: The reference layer.
        """
        ref_qlinear = ref_qlinear[0] if isinstance(ref_qlinear, nn.Sequential) else ref_qlinear
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        return made
