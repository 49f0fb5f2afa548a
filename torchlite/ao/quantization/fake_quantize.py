"""Fake quantization: tensors are observed, and rounded to the levels that integers would have."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite._settings.adopted_classes import adopt_class

from ._bases import FakeQuantizeBase
from .observer import (
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from .utils import is_per_channel, is_per_tensor

__all__ = [
    "FakeQuantize", "FakeQuantizeBase", "FixedQParamsFakeQuantize", "FusedMovingAvgObsFakeQuantize",
    "default_affine_fixed_qparams_fake_quant", "default_dynamic_fake_quant", "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit", "default_fake_quant", "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant", "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant", "default_fused_wt_fake_quant", "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant", "default_symmetric_fixed_qparams_fake_quant",
    "default_weight_fake_quant", "disable_fake_quant", "disable_observer", "enable_fake_quant", "enable_observer",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127", "fused_wt_fake_quant_range_neg_127_to_127",
]  # fmt: skip
adopt_class(FakeQuantizeBase, __name__)
_SYMMETRIC = (torch.per_tensor_symmetric, torch.per_channel_symmetric)


class FakeQuantize(FakeQuantizeBase):
    """Observes its input and rounds it: ``(clamp(round(x / scale + zero_point)) - zero_point) * scale``.

    The buffers ``fake_quant_enabled`` and ``observer_enabled`` are the switches; ``scale`` and ``zero_point`` are those
    of the last observation. The gradient is that of the input where the level was in the range, else zero.

    Args:
        observer: The class of the observer, ``activation_post_process``, or a function that makes one.
        quant_min: The least integer. Default: the observer's.
        quant_max: The greatest integer. Default: the observer's.
        is_dynamic: Whether each input is to have its own scale. Default: ``False``.
        **observer_kwargs: Arguments of the observer.

    Raises:
        AssertionError: The range of integers is empty or has more than the dtype.

    Example:
        >>> fake = torch.ao.quantization.FakeQuantize(quant_min=0, quant_max=15)
        >>> fake(torch.tensor([0.0, 0.26, 1.5]))
        tensor([0.0000, 0.3000, 1.5000])
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, observer: Any = MovingAverageMinMaxObserver, quant_min: Any = None, quant_max: Any = None,
        is_dynamic: bool = False, **observer_kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            dtype = observer_kwargs.get("dtype", torch.quint8)
            dtype = getattr(getattr(observer, "p", None), "keywords", {}).get("dtype", dtype)
            if torch.iinfo(dtype).min > quant_min:
                raise AssertionError("quant_min out of bound")
            if quant_max > torch.iinfo(dtype).max:
                raise AssertionError("quant_max out of bound")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        self.activation_post_process = observer(**observer_kwargs, is_dynamic=is_dynamic)
        seen = self.activation_post_process
        self.quant_min, self.quant_max, self.is_dynamic = seen.quant_min, seen.quant_max, seen.is_dynamic
        floats = seen.qscheme == torch.per_channel_affine_float_qparams
        self.register_buffer("scale", torch.tensor([1.0]))
        self.register_buffer("zero_point", torch.tensor([0], dtype=torch.float32 if floats else torch.int32))
        self.dtype, self.qscheme, self.ch_axis = seen.dtype, seen.qscheme, getattr(seen, "ch_axis", -1)
        self.is_per_channel = is_per_channel(self.qscheme)
        if not (self.is_per_channel or is_per_tensor(self.qscheme)):
            raise AssertionError(
                "Only per channel and per tensor quantization are supported in fake quantize got qscheme: "
                f"{self.qscheme}"
            )

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """The scale and the zero point for what the observer saw."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X: Tensor) -> Tensor:
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            for old, new in zip((self.scale, self.zero_point), self.calculate_qparams(), strict=True):
                if old.shape != new.shape:
                    old.resize_(new.shape)
                old.copy_(new)
        if self.fake_quant_enabled[0] != 1:
            return X
        levels = self.activation_post_process.quant_min, self.activation_post_process.quant_max
        if self.is_per_channel:
            return torch.fake_quantize_per_channel_affine(X, self.scale, self.zero_point, self.ch_axis, *levels)
        return torch.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, *levels)

    def _shown(self, names: str) -> str:
        levels = {name: getattr(self.activation_post_process, name, None) for name in _OF_THE_OBSERVER}
        return ", ".join(f"{name}={levels.get(name, getattr(self, name, None))}" for name in names.split())

    def extra_repr(self) -> str:
        return self._shown(
            "fake_quant_enabled observer_enabled quant_min quant_max dtype qscheme ch_axis scale zero_point"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict, strict: bool, missing_keys: list,
        unexpected_keys: list, error_msgs: list,
    ) -> None:  # fmt: skip
        for name in ("scale", "zero_point"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


_OF_THE_OBSERVER = ("quant_min", "quant_max", "reduce_range")


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds its input with a fixed scale and zero point.

    Args:
        observer: A function that makes a `FixedQParamsObserver`.

    Raises:
        AssertionError: The observer is another one, or has scales for channels.

    Example:
        >>> observer = torch.ao.quantization.FixedQParamsObserver.with_args(scale=0.5, zero_point=0)
        >>> torch.ao.quantization.FixedQParamsFakeQuantize(observer)(torch.tensor([0.3, 1.2]))
        tensor([0.5000, 1.0000])
    """

    def __init__(self, observer: Any) -> None:
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(f"{type(self).__name__}'s observer must be a FixedQParamsObserver")
        self._observer_ctr = observer
        self.scale = self.activation_post_process.scale
        self.zero_point = self.activation_post_process.zero_point
        if not is_per_tensor(self.qscheme):
            raise AssertionError(
                f"Only per tensor quantization is supported FixedQParamsFakeQuantize module, got qscheme:{self.qscheme}"
            )

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """The fixed scale and zero point."""
        return self.scale, self.zero_point

    def extra_repr(self) -> str:
        return self._shown("fake_quant_enabled observer_enabled scale zero_point dtype quant_min quant_max qscheme")


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """Observes a moving average of the range and rounds, in one op: `torch.fused_moving_avg_obs_fake_quant`.

    Args:
        observer: `MovingAverageMinMaxObserver`, the one of channels, or a function that makes one.
        quant_min: The least integer. Default: 0.
        quant_max: The greatest integer. Default: 255.
        **observer_kwargs: Arguments of the observer.

    Raises:
        AssertionError: The observer is another one.

    Example:
        >>> fake = torch.ao.quantization.FusedMovingAvgObsFakeQuantize(quant_max=15)
        >>> fake(torch.tensor([0.0, 0.26, 1.5]))
        tensor([0.0000, 0.3000, 1.5000])
    """

    def __init__(
        self, observer: Any = MovingAverageMinMaxObserver, quant_min: int = 0, quant_max: int = 255,
        **observer_kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(
            self.activation_post_process, (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        ):
            raise AssertionError("Fused observer+fake_quant module only works with MovingAverageMinMaxObserver")
        self.register_buffer("fake_quant_enabled", torch.tensor([1], dtype=torch.int64))
        self.register_buffer("observer_enabled", torch.tensor([1], dtype=torch.int64))
        self.is_symmetric_quant = self.qscheme in _SYMMETRIC

    def extra_repr(self) -> str:
        return self._shown(
            "fake_quant_enabled observer_enabled scale zero_point dtype quant_min quant_max qscheme reduce_range"
        )

    def forward(self, X: Tensor) -> Tensor:
        seen = self.activation_post_process
        return torch.fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, seen.min_val, seen.max_val, self.scale,
            self.zero_point, seen.averaging_constant, seen.quant_min, seen.quant_max, self.ch_axis,
            self.is_per_channel, self.is_symmetric_quant,
        )  # fmt: skip


def _switch(name: str, text: str) -> Any:
    def set_switch(mod: Any) -> None:
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()

    set_switch.__name__ = set_switch.__qualname__ = name
    set_switch.__doc__ = f"""{text}, if a module is fake quantization: a function for `apply`.

    Args:
        mod: The module.

    Example:
        >>> fake = torch.ao.quantization.FakeQuantize()
        >>> _ = torch.nn.Sequential(fake).apply(torch.ao.quantization.{name})
        >>> fake.fake_quant_enabled.item() + fake.observer_enabled.item() in (1, 2)
        True
    """
    return set_switch


disable_fake_quant = _switch("disable_fake_quant", "Switches rounding off")
enable_fake_quant = _switch("enable_fake_quant", "Switches rounding on")
disable_observer = _switch("disable_observer", "Switches observation off")
enable_observer = _switch("enable_observer", "Switches observation on")

# The arguments of many: unsigned inputs, and signed weights with one scale or one for each channel.
_BYTES = {"observer": MovingAverageMinMaxObserver, "quant_min": 0, "quant_max": 255}
_UNSIGNED = {"dtype": torch.quint8, "qscheme": torch.per_tensor_affine, "reduce_range": True}
_SIGNED = {"quant_min": -128, "quant_max": 127, "dtype": torch.qint8}
_ONE = {"observer": MovingAverageMinMaxObserver, **_SIGNED, "qscheme": torch.per_tensor_symmetric}
_EACH = {"observer": MovingAveragePerChannelMinMaxObserver, **_SIGNED, "qscheme": torch.per_channel_symmetric}
_NARROW = {"quant_min": -127, "quant_max": 127, "eps": 2**-12}
_FLOATS = {"observer": MovingAveragePerChannelMinMaxObserver, "qscheme": torch.per_channel_affine_float_qparams}
default_fake_quant = FakeQuantize.with_args(**_BYTES, **_UNSIGNED)
default_weight_fake_quant = FakeQuantize.with_args(**_ONE, reduce_range=False)
default_dynamic_fake_quant = FakeQuantize.with_args(**_BYTES, is_dynamic=True, dtype=torch.quint8, averaging_constant=1)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(**_EACH, reduce_range=False, ch_axis=0)
default_embedding_fake_quant = FakeQuantize.with_args(
    **_FLOATS, dtype=torch.quint8, quant_min=0, quant_max=255, ch_axis=0, averaging_constant=1
)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    **_FLOATS, ch_axis=0, dtype=torch.quint4x2, averaging_constant=1
)
default_histogram_fake_quant = FakeQuantize.with_args(**{**_BYTES, "observer": HistogramObserver}, **_UNSIGNED)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_BYTES, dtype=torch.quint8)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_ONE)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_EACH)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(**{**_ONE, **_NARROW})
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(**{**_EACH, **_NARROW})
