"""Weights of linear layers in half precision, as `torch.ops.quantized.linear_prepack_fp16` hands them out."""

from __future__ import annotations

from typing import Any

import torchlite as torch
import torchlite.nn.functional as F

from .._dispatch import REGISTRY, function_for
from .packed_parameters import CLASSES, LibraryObject, LinearPackedParams, register_class
from .quantized_tensor import is_quantized

_weight_product = function_for(REGISTRY["_int8_weight_product"])


def saturate(weight: Any) -> Any:
    """Return numbers within the range of half precision, in float32."""
    if weight.dtype is not torch.float32:
        raise RuntimeError(f"expected scalar type Float but found {weight.dtype.scalar_name}")
    limit = torch.finfo(torch.float16).max
    return weight.clamp(-limit, limit)


class HalfLinearPackedParams(LibraryObject):
    """The weight of a linear layer, of shape ``(out_features, in_features)``, in half precision, and its bias."""

    _schema_type = f"{CLASSES}LinearPackedParamsBase"
    _script_methods = frozenset(("unpack", "bias"))

    def __init__(self, weight: Any, bias: Any = None) -> None:
        self._weight = saturate(weight.detach().to(torch.float32)).to(torch.float16)
        self._bias = None if bias is None else bias.detach().to(torch.float32)
        self._ones = torch.ones(len(weight), device=weight.device)

    def _tl_parts(self) -> list[Any]:
        return [part for part in (self._weight, self._bias, self._ones) if part is not None]

    def _saved_state(self) -> Any:
        return self.unpack()

    def unpack(self) -> tuple[Any, Any]:
        """Return the weight, with float32's numbers, and the bias."""
        return self._weight.to(torch.float32), self._bias

    def bias(self) -> Any:
        """Return the bias."""
        return self._bias

    def dynamic(self, x: Any, reduce_range: bool = False, rectify: bool = False) -> Any:
        """The result for float32 numbers; with `rectify`, 0 for negative ones."""
        if x.dtype is not torch.float32 or x.device != self._weight.device or x.shape[-1:] != self._weight.shape[1:]:
            out = F.linear(x.detach(), *self.unpack())  # which raises the error
        else:
            rows = x.detach().reshape(-1, x.shape[-1])
            out = _weight_product(rows, self._weight, self._ones).reshape(*x.shape[:-1], len(self._ones))
            out = out if self._bias is None else out + self._bias
        return F.relu(out) if rectify else out


def _rebuild(state: Any) -> Any:
    weight, bias = state
    return (LinearPackedParams if is_quantized(weight) else HalfLinearPackedParams)(weight, bias)


register_class(LinearPackedParams._schema_type, _rebuild)
