"""The base classes of observers and of fake quantization."""

from __future__ import annotations

import abc
from functools import partial
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn.modules.module import Module

from ._granularity import Granularity, MappingType, ZeroPointDomain


class _PartialWrapper:
    """A class with arguments, of which some are called when an object is made.

    Example:
        >>> torch.ao.quantization.default_observer().quant_max
        127
    """

    def __init__(self, p: Any) -> None:
        self.p = p
        self.callable_args: dict[str, Any] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        made = {name: make() for name, make in self.callable_args.items() if name not in keywords}
        return self.p(*args, **keywords, **made)

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs: Any) -> _PartialWrapper:
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs: Any) -> _PartialWrapper:
        result = _PartialWrapper(self.p)
        result.callable_args = {**self.callable_args, **kwargs}
        return result


def _with_args(cls_or_self: Any, **kwargs: Any) -> _PartialWrapper:
    """The class with arguments: a function that makes its objects.

    Args:
        **kwargs: Arguments of the constructor.
    """
    return _PartialWrapper(partial(cls_or_self, **kwargs))


def _with_callable_args(cls_or_self: Any, **kwargs: Any) -> _PartialWrapper:
    """The class with arguments that are functions: each new object calls them.

    Args:
        **kwargs: Functions that return arguments of the constructor.
    """
    return _PartialWrapper(partial(cls_or_self)).with_callable_args(**kwargs)


class ObserverBase(abc.ABC, Module):
    """The base class of observers. `forward` looks at a tensor and returns it, and `calculate_qparams` returns a scale
    and a zero point.

    Args:
        dtype: The quantized dtype.
        is_dynamic: Whether each input is to have its own scale. Default: ``False``.

    Example:
        >>> isinstance(torch.ao.quantization.MinMaxObserver(), torch.ao.quantization.ObserverBase)
        True
    """

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    @abc.abstractmethod
    def forward(self, x: Any) -> Any:
        """Look at a tensor and return it.

        Args:
            x: The tensor.
        """

    @abc.abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scale and the zero point for what was seen."""

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)


class FakeQuantizeBase(abc.ABC, Module):
    """The base class of fake quantization. It has two switches: whether tensors are observed, and whether they are
    rounded.

    Example:
        >>> isinstance(torch.nn.ReLU(), torch.ao.quantization.FakeQuantizeBase)
        False
    """

    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", torch.tensor([1], dtype=torch.uint8))
        self.register_buffer("observer_enabled", torch.tensor([1], dtype=torch.uint8))

    @abc.abstractmethod
    def forward(self, x: Any) -> Any:
        """Observe a tensor and round it.

        Args:
            x: The tensor.
        """

    @abc.abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scale and the zero point for what was seen."""

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Switches rounding on.

        Args:
            enabled: ``False`` switches it off.
        """
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        """Switches rounding off."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Switches observation on.

        Args:
            enabled: ``False`` switches it off.
        """
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        """Switches observation off."""
        self.enable_observer(False)

    with_args = classmethod(_with_args)


class AffineQuantizedObserverBase(abc.ABC, Module):
    """The base class of observers of blocks, whose size follows from a `Granularity`.

    Args:
        mapping_type: How levels follow from a range.
        target_dtype: The quantized dtype.
        granularity: What has a scale.
        quant_min: The least integer. Default: the dtype's.
        quant_max: The greatest integer. Default: the dtype's.
        eps: The least scale. Default: none.
        scale_dtype: The dtype of scales. Default: none.
        zero_point_dtype: The dtype of zero points. Default: none.
        preserve_zero: Whether zero is a level. Default: ``True``.
        zero_point_domain: Whether a zero point is an integer. Default: it is.
        **kwargs: No effect.

    Example:
        >>> torch.ao.quantization.AffineQuantizedObserverBase.__abstractmethods__ >= {"forward"}
        True
    """

    with_args = classmethod(_with_args)

    def __init__(
        self, mapping_type: MappingType, target_dtype: Any, granularity: Granularity, quant_min: int | None = None,
        quant_max: int | None = None, eps: float | None = None, scale_dtype: Any = None, zero_point_dtype: Any = None,
        preserve_zero: bool = True, zero_point_domain: ZeroPointDomain | None = ZeroPointDomain.INT, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if granularity is None:
            raise AssertionError("granularity is None")
        self.mapping_type, self.target_dtype, self.granularity = mapping_type, target_dtype, granularity
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, eps
        self.scale_dtype, self.zero_point_dtype = scale_dtype, zero_point_dtype
        self.preserve_zero, self.zero_point_domain = preserve_zero, zero_point_domain
        self.block_size = self.original_dtype = None

    @abc.abstractmethod
    def forward(self, input: Tensor) -> Tensor:
        """Look at a tensor and return it.

        Args:
            input: The tensor.
        """

    @abc.abstractmethod
    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scales and the zero points for what was seen."""


def _is_activation_post_process(module: Any) -> bool:
    return isinstance(module, (ObserverBase, FakeQuantizeBase, AffineQuantizedObserverBase))
