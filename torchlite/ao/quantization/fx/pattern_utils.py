"""Tables of patterns that a program may extend, and the order in which patterns are tried."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..fake_quantize import FixedQParamsFakeQuantize

__all__ = [
    "get_default_fusion_patterns",
    "get_default_output_activation_post_process_map",
    "get_default_quant_patterns",
]
_DEFAULT_FUSION_PATTERNS: dict[Any, Any] = OrderedDict()
_DEFAULT_QUANTIZATION_PATTERNS: dict[Any, Any] = OrderedDict()
_DEFAULT_OUTPUT_FAKE_QUANTIZE_MAP: dict[Any, Any] = {}
_DEFAULT_OUTPUT_OBSERVER_MAP: dict[Any, Any] = {}


def _register_fusion_pattern(pattern: Any) -> Callable[[Any], Any]:
    def insert(handler: Any) -> Any:
        _DEFAULT_FUSION_PATTERNS[pattern] = handler
        return handler

    return insert


def _register_quant_pattern(pattern: Any, fixed_qparams_observer: Any = None) -> Callable[[Any], Any]:
    def insert(handler: Any) -> Any:
        _DEFAULT_QUANTIZATION_PATTERNS[pattern] = handler
        if fixed_qparams_observer is not None:
            fake = FixedQParamsFakeQuantize.with_args(observer=fixed_qparams_observer)
            _DEFAULT_OUTPUT_FAKE_QUANTIZE_MAP[pattern] = fake
            _DEFAULT_OUTPUT_OBSERVER_MAP[pattern] = fixed_qparams_observer
        return handler

    return insert


def get_default_fusion_patterns() -> dict[Any, Any]:
    """The patterns of fusion that were registered.

    Example:
        >>> torch.ao.quantization.fx.pattern_utils.get_default_fusion_patterns()
        OrderedDict()
    """
    return _DEFAULT_FUSION_PATTERNS.copy()


def get_default_quant_patterns() -> dict[Any, Any]:
    """The patterns of quantization that were registered.

    Example:
        >>> torch.ao.quantization.fx.pattern_utils.get_default_quant_patterns()
        OrderedDict()
    """
    return _DEFAULT_QUANTIZATION_PATTERNS.copy()


def get_default_output_activation_post_process_map(is_training: bool) -> dict[Any, Any]:
    """The observers of outputs with a known range, by registered pattern.

    Args:
        is_training: Whether they round numbers.

    Example:
        >>> torch.ao.quantization.fx.pattern_utils.get_default_output_activation_post_process_map(True)
        {}
    """
    return dict(_DEFAULT_OUTPUT_FAKE_QUANTIZE_MAP if is_training else _DEFAULT_OUTPUT_OBSERVER_MAP)


def _length(pattern: Any) -> int:
    return sum(map(_length, pattern)) if isinstance(pattern, tuple) else 1


def _sorted_patterns_dict(patterns_dict: dict[Any, Any]) -> dict[Any, Any]:
    """The patterns, those of most nodes first."""
    tuples_first = sorted(patterns_dict.items(), key=lambda e: -_length(e[0]) if isinstance(e[0], tuple) else 1)
    return OrderedDict(tuples_first)
