"""Observers: modules that note the range of the tensors that pass, and choose a scale and a zero point from it."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any, cast

import torchlite as torch
from torchlite import Tensor
from torchlite._settings.adopted_classes import adopt_classes
from torchlite.nn.modules.module import Module

from ._bases import AffineQuantizedObserverBase, ObserverBase
from ._bases import _is_activation_post_process as _is_activation_post_process
from ._bases import _PartialWrapper as _PartialWrapper
from ._bases import _with_args as _with_args
from ._bases import _with_callable_args as _with_callable_args
from ._granularity import (
    Granularity,
    MappingType,
    PerAxis,
    PerBlock,
    PerGroup,
    PerRow,
    PerTensor,
    PerToken,
    TorchAODType,
    ZeroPointDomain,
    get_block_size,
)
from ._histogram_observer import HistogramObserver
from ._range_observers import (
    _EPS,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
    UniformQuantizationObserverBase,
)

__all__ = [
    "AffineQuantizedObserverBase", "FixedQParamsObserver", "Granularity", "HistogramObserver", "MappingType",
    "MinMaxObserver", "MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver", "NoopObserver",
    "ObserverBase", "PerAxis", "PerBlock", "PerChannelMinMaxObserver", "PerGroup", "PerRow", "PerTensor", "PerToken",
    "PlaceholderObserver", "RecordingObserver", "ReuseInputObserver", "TorchAODType",
    "UniformQuantizationObserverBase", "ZeroPointDomain", "default_affine_fixed_qparams_observer",
    "default_debug_observer", "default_dynamic_quant_observer", "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer", "default_float_qparams_observer",
    "default_float_qparams_observer_4bit", "default_histogram_observer", "default_observer",
    "default_per_channel_weight_observer", "default_placeholder_observer", "default_reuse_input_observer",
    "default_symmetric_fixed_qparams_observer", "default_weight_observer", "get_block_size",
    "get_observer_state_dict", "load_observer_state_dict", "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
]  # fmt: skip

_ObserverBase = UniformQuantizationObserverBase


class FixedQParamsObserver(ObserverBase):
    """Has a fixed scale and zero point, whatever it sees.

    Args:
        scale: The scale.
        zero_point: The zero point.
        dtype: The quantized dtype. Default: ``torch.quint8``.
        qscheme: The quantization scheme. Default: ``torch.per_tensor_affine``.
        quant_min: The least integer. Default: 0.
        quant_max: The greatest integer. Default: 255.
        is_dynamic: Must be ``False``.
        **kwargs: Arguments of `ObserverBase`.

    Raises:
        NotImplementedError: The observer is dynamic.

    Example:
        >>> torch.ao.quantization.FixedQParamsObserver(0.5, 3).calculate_qparams()
        (tensor([0.5000]), tensor([3], dtype=torch.int32))
    """

    _tl_script_methods = ("calculate_qparams",)
    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, scale: float, zero_point: int, dtype: Any = torch.quint8, qscheme: Any = torch.per_tensor_affine,
        quant_min: int = 0, quant_max: int = 255, is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max = quant_min, quant_max
        self.register_buffer("scale", torch.tensor([scale], dtype=torch.float32))
        self.register_buffer("zero_point", torch.tensor([zero_point], dtype=torch.int32))
        self.qscheme = qscheme

    def forward(self, X: Tensor) -> Tensor:
        return X

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """The fixed scale and zero point."""
        return self.scale, self.zero_point


class _Blind(ObserverBase):
    """An observer that notes no range."""

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """Refuse: there is no range.

        Raises:
            Exception: Always.
        """
        raise Exception(f"calculate_qparams should not be called for {type(self).__name__}")


class PlaceholderObserver(_Blind):
    """Notes nothing, and has the properties that a conversion needs: to half precision, or with dynamic scales.

    Args:
        dtype: The dtype. Default: ``torch.float32``.
        custom_op_name: The name of an op. Default: none.
        compute_dtype: An older sign for dynamic scales; a warning says so. Default: none.
        quant_min: The least integer. Default: none.
        quant_max: The greatest integer. Default: none.
        qscheme: The quantization scheme. Default: ``torch.per_tensor_affine``.
        eps: The least scale. Default: float32's epsilon.
        is_dynamic: Whether each input is to have its own scale. Default: ``False``.

    Example:
        >>> torch.ao.quantization.PlaceholderObserver(torch.float16)
        PlaceholderObserver(dtype=torch.float16, is_dynamic=False)
    """

    def __init__(
        self, dtype: Any = torch.float32, custom_op_name: str = "", compute_dtype: Any = None, quant_min: Any = None,
        quant_max: Any = None, qscheme: Any = None, eps: Any = None, is_dynamic: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(dtype, is_dynamic)
        self.qscheme = torch.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps = _EPS if eps is None else eps
        self.custom_op = custom_op_name
        if compute_dtype:
            warnings.warn(
                "Please use `is_dynamic` instead of `compute_dtype`. `compute_dtype` will be deprecated in a future "
                "release of PyTorch.",
                stacklevel=2,
            )

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class RecordingObserver(_Blind):
    """Keeps a copy of each tensor.

    Args:
        dtype: The quantized dtype. Default: ``torch.quint8``.

    Example:
        >>> observer = torch.ao.quantization.RecordingObserver()
        >>> _ = observer(torch.ones(2))
        >>> observer.get_tensor_value()
        [tensor([1., 1.])]
    """

    _tl_script_methods = ("get_tensor_value",)
    tensor_val: list[Tensor]

    def __init__(self, dtype: Any = torch.quint8) -> None:
        super().__init__(dtype)
        self.tensor_val = []

    def forward(self, x: Tensor) -> Tensor:
        self.tensor_val.append(x.clone())
        return x

    def get_tensor_value(self) -> list[Tensor]:
        """The copies."""
        return self.tensor_val


class NoopObserver(_Blind):
    """Notes nothing.

    Args:
        dtype: The dtype. Default: ``torch.float16``.
        custom_op_name: The name of an op. Default: none.

    Example:
        >>> torch.ao.quantization.NoopObserver()(torch.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, dtype: Any = torch.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype)
        self.custom_op = custom_op_name


class ReuseInputObserver(_Blind):
    """Stands for the observer of an op's input, after ops such as reshape.

    Example:
        >>> torch.ao.quantization.ReuseInputObserver().dtype
        torch.quint8
    """

    def __init__(self) -> None:
        super().__init__(torch.quint8)


def get_observer_state_dict(mod: Module) -> OrderedDict:
    """The part of a state dict that observers have.

    Args:
        mod: A model with observers.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 1))
        >>> model.qconfig = torch.ao.quantization.default_qconfig
        >>> list(torch.ao.quantization.get_observer_state_dict(torch.ao.quantization.prepare(model)))[0]
        '0.activation_post_process.eps'
    """
    state = mod.state_dict()
    found = OrderedDict((key, value) for key, value in state.items() if "activation_post_process" in key)
    cast(Any, found)._metadata = state._metadata  # type: ignore[attr-defined]
    return found


def load_observer_state_dict(mod: Module, obs_dict: Any) -> None:
    """Loads what `get_observer_state_dict` returned into the observers of a model.

    Args:
        mod: The model.
        obs_dict: The dictionary.

    Raises:
        Exception: A key is absent, or there is no observer for one.

    Example:
        >>> model = torch.nn.Sequential(torch.ao.quantization.MinMaxObserver())
        >>> torch.ao.quantization.load_observer_state_dict(model, model.state_dict())
    """
    missing: list[str] = []
    unexpected: list[str] = []
    for name, module in mod.named_modules():
        if _is_activation_post_process(module):
            module._load_from_state_dict(obs_dict, name + ".", {}, False, missing, unexpected, [])
    for what, keys in (("Missing", missing), ("Unexpected", unexpected)):
        for key in keys:
            if "observer" in key or "activation_post_process" in key:
                raise Exception(f"{what} keys for observer {key} in state_dict")


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_tensor_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=torch.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=torch.quint8, qscheme=torch.per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=torch.quint4x2, qscheme=torch.per_channel_affine_float_qparams, ch_axis=0
)
# The outputs of sigmoid and softmax, and of tanh.
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=torch.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=torch.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver
adopt_classes(globals())
