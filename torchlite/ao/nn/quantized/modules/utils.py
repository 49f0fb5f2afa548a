"""What quantized modules share: weights by an observer, and parameters of the result in the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite._quantized.public_functions import _make_per_channel_quantized_tensor, _make_per_tensor_quantized_tensor
from torchlite.nn import Module


class WeightedQuantizedModule(Module):
    """Base of quantized modules with a weight and a bias in packed parameters, and a scale and a zero point of the
    result.
    """

    scale: float
    zero_point: int

    def set_weight_bias(self, w: Any, b: Any) -> None:
        """Pack a quantized weight and a bias."""
        raise NotImplementedError

    def _weight_bias(self) -> tuple[Any, Any]:
        """Return the weight and the bias."""
        raise NotImplementedError

    def weight(self) -> Any:
        """Return the quantized weight."""
        return self._weight_bias()[0]

    def bias(self) -> Any:
        """Return the bias."""
        return self._weight_bias()[1]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}scale"] = torch.tensor(self.scale)
        destination[f"{prefix}zero_point"] = torch.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        self.scale = float(state_dict.pop(f"{prefix}scale"))
        self.zero_point = int(state_dict.pop(f"{prefix}zero_point"))
        local_metadata, _, *lists = rest
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)


def with_arguments(text: str) -> Callable[[type], type]:
    """Return a decorator that puts arguments into the docstring of a class, before its example."""

    def add(kind: type) -> type:
        head, mark, example = (kind.__doc__ or "").partition("    Example:")
        lines = "".join(f"        {line}\n" if line else "\n" for line in text.strip().splitlines())
        kind.__doc__ = f"{head}    Args:\n{lines}\n{mark}{example}"
        return kind

    return add


class FromObserved:
    """Base of quantized modules that are made of float ones whose results were observed."""

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Makes the quantized module of a float one whose result was observed.

        Args:
            mod: The float module, with an `activation_post_process`.
            use_precomputed_fake_quant: No effect: there is no weight whose parameters are observed.
        """
        return cls.from_reference(mod, *observed_result(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Any:
        """Makes the quantized module of a float one.

        Args:
            mod: The float module.
            scale: Scale of the result. Modules that keep the input's scale do not use it.
            zero_point: Zero point of the result, as the scale.
        """
        raise NotImplementedError


def move_with(fn: Any, *tensors: Any) -> list[Any]:
    """Return packed tensors on the device to which a function of `Module._apply` moves others. Dtypes stay."""
    device = fn(torch.empty(0, device=tensors[0].device)).device
    return [None if tensor is None else tensor.to(device) for tensor in tensors]


def quantize_weight(weight: Any, observer: Any) -> Any:
    """Return a weight, quantized by what an observer of it found, with levels of the observer's range."""
    scale, zero_point = observer.calculate_qparams()
    scheme = observer.qscheme
    if scheme in (torch.per_tensor_symmetric, torch.per_tensor_affine):
        made = torch.quantize_per_tensor(weight, float(scale), int(zero_point), observer.dtype)
        levels = _levels_in_range(made, observer)
        if levels is None:
            return made
        return _make_per_tensor_quantized_tensor(levels, float(scale), int(zero_point))
    if scheme in (torch.per_channel_symmetric, torch.per_channel_affine):
        parameters = scale.to(torch.double), zero_point.to(torch.int64)
    elif scheme is torch.per_channel_affine_float_qparams:
        parameters = scale.to(torch.float), zero_point.to(torch.float)
    else:
        raise ValueError(f"Unexpected qscheme {scheme}")
    made = torch.quantize_per_channel(weight, *parameters, observer.ch_axis, observer.dtype)
    levels = _levels_in_range(made, observer)
    if levels is None:
        return made
    return _make_per_channel_quantized_tensor(levels, *parameters, axis=observer.ch_axis)


def _levels_in_range(made: Any, observer: Any) -> Any:
    """Return levels clamped to an observer's range; None for all of the dtype's, and for fewer than 8 bits."""
    observer = getattr(observer, "activation_post_process", observer)
    if made.dtype not in (torch.qint8, torch.quint8, torch.qint32):
        return None
    low, high, info = observer.quant_min, observer.quant_max, torch.iinfo(made.dtype)
    return made.int_repr().clamp(low, high) if low > info.min or high < info.max else None


_quantize_weight = quantize_weight


def observed_weight(mod: Any, use_precomputed_fake_quant: bool) -> Any:
    """Return the quantized weight of a float module by its fake quantizer, or by an observer of its qconfig."""
    observer = mod.weight_fake_quant if hasattr(mod, "weight_fake_quant") else mod.qconfig.weight()
    if not use_precomputed_fake_quant:
        observer(mod.weight)
    if observer.dtype is not torch.qint8:
        raise AssertionError("Weight observer must have dtype torch.qint8")
    return quantize_weight(mod.weight.detach().float(), observer)


def observed_result(mod: Any) -> tuple[float, int]:
    """Return the scale and the zero point of a module's result, as its observer found them."""
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)
