"""Observers of the least and the greatest number."""

from __future__ import annotations

import warnings
from typing import Any

import torchlite as torch
from torchlite import Tensor

from ._bases import ObserverBase
from .utils import (
    _scales_and_zero_points,
    _unseen,
    calculate_qmin_qmax,
    check_min_max_valid,
    is_per_channel,
    is_per_tensor,
    validate_qmin_qmax,
)

_EPS = torch.finfo(torch.float32).eps
_ALLOWED = (
    torch.qint8, torch.quint8, torch.quint4x2, torch.qint32, torch.int8, torch.uint8, torch.int16, torch.int32,
    torch.float8_e5m2, torch.float8_e4m3fn, torch.uint16,
)  # fmt: skip
_SCHEMES = (
    torch.per_tensor_affine, torch.per_tensor_symmetric, torch.per_channel_affine, torch.per_channel_symmetric,
    torch.per_channel_affine_float_qparams,
)  # fmt: skip


class UniformQuantizationObserverBase(ObserverBase):
    """The base class of observers of ranges.

    Args:
        dtype: The quantized dtype. Default: ``torch.quint8``.
        qscheme: The quantization scheme. Default: ``torch.per_tensor_affine``.
        reduce_range: Whether the range of integers is shorter by a bit. Default: ``False``.
        quant_min: The least integer. Default: the dtype's.
        quant_max: The greatest integer. Default: the dtype's.
        factory_kwargs: Device and dtype of the buffers, as a dictionary. Default: none.
        eps: The least scale. Default: float32's epsilon.
        is_dynamic: Whether each input is to have its own scale. Default: ``False``.
        **kwargs: Arguments of `ObserverBase`.

    Raises:
        AssertionError: The scheme, the dtype or the range of integers is not one that observers know.

    Example:
        >>> isinstance(torch.ao.quantization.MinMaxObserver(), torch.ao.quantization.UniformQuantizationObserverBase)
        True
    """

    _version = 3  # 2: eps is a buffer; 3: the histogram's empty range is 0-d, channels' buffers have their names
    _tl_script_methods: tuple[str, ...] = ("calculate_qparams",)  # those that programs have
    eps: Tensor
    min_val: Tensor
    max_val: Tensor

    def __init__(
        self, dtype: Any = torch.quint8, qscheme: Any = torch.per_tensor_affine, reduce_range: bool = False,
        quant_min: Any = None, quant_max: Any = None, factory_kwargs: Any = None, eps: float = _EPS,
        is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.qscheme = qscheme
        if reduce_range:
            warnings.warn(
                "Please use quant_min and quant_max to specify the range for observers. "
                "reduce_range will be deprecated in a future release of PyTorch.",
                stacklevel=2,
            )
        self.reduce_range = reduce_range
        self.register_buffer("eps", torch.tensor([eps], **torch.nn.factory_kwargs(factory_kwargs)))
        if qscheme not in _SCHEMES:
            raise AssertionError(
                "Default Observer only works for per_tensor_affine, per_tensor_symmetric, per_channel_affine, "
                "per_channel_symmetric and per_channel_float_qparams quantization scheme"
            )
        if dtype not in _ALLOWED:
            raise AssertionError(f"Default Observer only works for {_ALLOWED} data type")
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(
            quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range
        )

    def _check_kind(self, accepts: Any, qscheme: Any, schemes: str, dynamic: bool = False) -> None:
        name = type(self).__name__
        if not accepts(qscheme):
            raise NotImplementedError(f"{name}'s qscheme only support {schemes}.")
        if dynamic:
            raise NotImplementedError(f"{name} doesn't support dynamic quantization")

    def _add_range(self, low: Any, high: Any, factory_kwargs: Any) -> None:
        options = torch.nn.factory_kwargs(factory_kwargs)
        self.register_buffer("min_val", torch.tensor(low, **options))
        self.register_buffer("max_val", torch.tensor(high, **options))

    def _check_reduced_range(self) -> None:
        symmetric = self.qscheme in (torch.per_tensor_symmetric, torch.per_channel_symmetric)
        if symmetric and self.reduce_range and self.dtype == torch.quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict, strict: bool, missing_keys: list,
        unexpected_keys: list, error_msgs: list,
    ) -> None:  # fmt: skip
        if (local_metadata.get("version") or 1) == 1:
            state_dict[prefix + "eps"] = torch.tensor([_EPS])
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _validate_qmin_qmax(self, quant_min: int, quant_max: int) -> None:
        validate_qmin_qmax(quant_min, quant_max)

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> tuple[Tensor, Tensor]:
        if not check_min_max_valid(min_val, max_val):
            return _unseen(min_val.device.type)
        return _scales_and_zero_points(
            min_val, max_val, self.quant_min, self.quant_max, self.dtype, self.eps, self.has_customized_qrange,
            self.qscheme, True,
        )  # fmt: skip

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """The scale and the zero point for what was seen; 1 and 0 with a warning if that is nothing."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget what was seen.

        Raises:
            NotImplementedError: The observer cannot.
        """
        raise NotImplementedError("Cannot reset min/max values in the given observer.")


_ONE = "torch.per_tensor_symmetric and torch.per_tensor_affine"
_EACH = "torch.per_channel_symmetric, torch.per_channel_affine and torch.per_channel_affine_float_qparams"


class MinMaxObserver(UniformQuantizationObserverBase):
    """Notes the least and the greatest number of all tensors.

    With an affine scheme the scale is ``(max - min) / (quant_max - quant_min)`` of a range that includes zero. With a
    symmetric one it is ``2 * max(|min|, |max|) / (quant_max - quant_min)``.

    Args:
        dtype: The quantized dtype. Default: ``torch.quint8``.
        qscheme: The quantization scheme. Default: ``torch.per_tensor_affine``.
        reduce_range: Whether the range of integers is shorter by a bit. Default: ``False``.
        quant_min: The least integer. Default: the dtype's.
        quant_max: The greatest integer. Default: the dtype's.
        factory_kwargs: Device and dtype of the buffers, as a dictionary. Default: none.
        eps: The least scale. Default: float32's epsilon.
        is_dynamic: Whether each input is to have its own scale. Default: ``False``.
        **kwargs: Arguments of `ObserverBase`.

    Raises:
        NotImplementedError: The scheme has a scale for each channel.

    Example:
        >>> observer = torch.ao.quantization.MinMaxObserver()
        >>> _ = observer(torch.tensor([-1.0, 1.55]))
        >>> observer.calculate_qparams()
        (tensor([0.0100]), tensor([100], dtype=torch.int32))
    """

    def __init__(
        self, dtype: Any = torch.quint8, qscheme: Any = torch.per_tensor_affine, reduce_range: bool = False,
        quant_min: Any = None, quant_max: Any = None, factory_kwargs: Any = None, eps: float = _EPS,
        is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        self._check_kind(is_per_tensor, qscheme, _ONE)
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self._add_range(float("inf"), float("-inf"), factory_kwargs)
        self._check_reduced_range()

    def _moved(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """The range after a tensor of the range `low` to `high`."""
        return torch.min(low, self.min_val), torch.max(high, self.max_val)

    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel() == 0:
            return x_orig
        least, greatest = torch.aminmax(x_orig.detach().to(self.min_val.dtype))
        low, high = self._moved(least, greatest)
        self.min_val.copy_(low)
        self.max_val.copy_(high)
        return x_orig

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val.fill_(float("inf"))
        self.max_val.fill_(float("-inf"))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Notes a moving average of the tensors' least and greatest numbers: ``(1 - c) * old + c * new``.

    Args:
        averaging_constant: The weight ``c`` of a new tensor. Default: 0.01.
        dtype: The quantized dtype. Default: ``torch.quint8``.
        qscheme: The quantization scheme. Default: ``torch.per_tensor_affine``.
        reduce_range: Whether the range of integers is shorter by a bit. Default: ``False``.
        quant_min: The least integer. Default: the dtype's.
        quant_max: The greatest integer. Default: the dtype's.
        eps: The least scale. Default: float32's epsilon.
        is_dynamic: Whether each input is to have its own scale; then the constant is 1. Default: ``False``.
        **kwargs: Arguments of `MinMaxObserver`.

    Raises:
        NotImplementedError: The scheme has a scale for each channel, or a dynamic observer averages.

    Example:
        >>> observer = torch.ao.quantization.MovingAverageMinMaxObserver(averaging_constant=0.5)
        >>> _ = observer(torch.tensor([0.0, 1.0])), observer(torch.tensor([0.0, 2.0]))
        >>> observer
        MovingAverageMinMaxObserver(min_val=0.0, max_val=1.5)
    """

    def __init__(
        self, averaging_constant: float = 0.01, dtype: Any = torch.quint8, qscheme: Any = torch.per_tensor_affine,
        reduce_range: bool = False, quant_min: Any = None, quant_max: Any = None, eps: float = _EPS,
        is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        self._check_kind(is_per_tensor, qscheme, _ONE)
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for averaging constant of "
                f"{averaging_constant}"
            )
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs)
        self.averaging_constant = averaging_constant

    def _moved(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        if bool(self.min_val == float("inf")) and bool(self.max_val == float("-inf")):
            return low, high
        return (
            self.min_val + self.averaging_constant * (low - self.min_val),
            self.max_val + self.averaging_constant * (high - self.max_val),
        )


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """Notes the least and the greatest number of each channel.

    Args:
        ch_axis: The dimension of the channels. Default: 0.
        dtype: The quantized dtype. Default: ``torch.quint8``.
        qscheme: The quantization scheme. Default: ``torch.per_channel_affine``.
        reduce_range: Whether the range of integers is shorter by a bit. Default: ``False``.
        quant_min: The least integer. Default: the dtype's.
        quant_max: The greatest integer. Default: the dtype's.
        factory_kwargs: Device and dtype of the buffers, as a dictionary. Default: none.
        eps: The least scale. Default: float32's epsilon.
        is_dynamic: Must be ``False``.
        **kwargs: Arguments of `ObserverBase`.

    Raises:
        NotImplementedError: The scheme has one scale, or the observer is dynamic.

    Example:
        >>> observer = torch.ao.quantization.PerChannelMinMaxObserver()
        >>> _ = observer(torch.tensor([[0.0, 2.55], [0.0, 5.1]]))
        >>> observer.calculate_qparams()[0]
        tensor([0.0100, 0.0200])
    """

    def __init__(
        self, ch_axis: int = 0, dtype: Any = torch.quint8, qscheme: Any = torch.per_channel_affine,
        reduce_range: bool = False, quant_min: Any = None, quant_max: Any = None, factory_kwargs: Any = None,
        eps: float = _EPS, is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        self._check_kind(is_per_channel, qscheme, _EACH, is_dynamic)
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.ch_axis = ch_axis
        self._add_range([], [], factory_kwargs)
        self._check_reduced_range()

    def _moved(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """The ranges after a tensor with the ranges `low` to `high`."""
        return torch.min(low, self.min_val), torch.max(high, self.max_val)

    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach().transpose(0, self.ch_axis).to(self.min_val.dtype)
        low, high = torch.aminmax(x.flatten(1), dim=1)
        if self.min_val.numel() > 0 and self.max_val.numel() > 0:
            low, high = self._moved(low, high)
        self.min_val.resize_(low.shape)
        self.min_val.copy_(low)
        self.max_val.resize_(high.shape)
        self.max_val.copy_(high)
        return x_orig

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict, strict: bool, missing_keys: list,
        unexpected_keys: list, error_msgs: list,
    ) -> None:  # fmt: skip
        old_names = (local_metadata.get("version") or 3) < 3
        for name in ("min_val", "max_val"):
            key = prefix + name
            if old_names and key + "s" in state_dict:
                state_dict[key] = state_dict.pop(key + "s")
            if key in state_dict:
                getattr(self, name).resize_(state_dict[key].shape)
            elif strict:
                missing_keys.append(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val, self.max_val = torch.empty(0), torch.empty(0)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Notes a moving average of each channel's least and greatest number.

    Args:
        averaging_constant: The weight of a new tensor. Default: 0.01.
        ch_axis: The dimension of the channels. Default: 0.
        dtype: The quantized dtype. Default: ``torch.quint8``.
        qscheme: The quantization scheme. Default: ``torch.per_channel_affine``.
        reduce_range: Whether the range of integers is shorter by a bit. Default: ``False``.
        quant_min: The least integer. Default: the dtype's.
        quant_max: The greatest integer. Default: the dtype's.
        eps: The least scale. Default: float32's epsilon.
        is_dynamic: Must be ``False``.
        **kwargs: Arguments of `PerChannelMinMaxObserver`.

    Raises:
        NotImplementedError: The scheme has one scale, or the observer is dynamic.

    Example:
        >>> observer = torch.ao.quantization.MovingAveragePerChannelMinMaxObserver(averaging_constant=0.5)
        >>> _ = observer(torch.tensor([[0.0, 1.0]])), observer(torch.tensor([[0.0, 2.0]]))
        >>> observer
        MovingAveragePerChannelMinMaxObserver(min_val=tensor([0.]), max_val=tensor([1.5000]))
    """

    def __init__(
        self, averaging_constant: float = 0.01, ch_axis: int = 0, dtype: Any = torch.quint8,
        qscheme: Any = torch.per_channel_affine, reduce_range: bool = False, quant_min: Any = None,
        quant_max: Any = None, eps: float = _EPS, is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            ch_axis, dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs
        )
        self.averaging_constant = averaging_constant

    def _moved(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return (
            self.min_val + self.averaging_constant * (low - self.min_val),
            self.max_val + self.averaging_constant * (high - self.max_val),
        )
