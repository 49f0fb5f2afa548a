"""Layers of quantization aware training: the check of the configuration and the conversion from a float layer."""

from __future__ import annotations

from typing import Any

from torchlite.nn.parameter import Parameter
from torchlite.nn.utils.parametrize import type_before_parametrizations


def configured(qconfig: Any) -> Any:
    """A configuration, which a layer must have."""
    if not qconfig:
        raise AssertionError("qconfig must be provided for QAT module")
    return qconfig


def check_source(cls: Any, mod: Any) -> Any:
    """The configuration of a float layer of which `cls` makes one of its own."""
    if type_before_parametrizations(mod) is not cls._FLOAT_MODULE:
        raise AssertionError(
            f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got {type(mod).__name__}"
        )
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.qconfig:
        raise AssertionError("Input float module must have a valid qconfig")
    return mod.qconfig


def with_weights_of(target: Any, source: Any) -> Any:
    """A float layer with copies of a layer's weight and bias, which are parameters of their own."""
    target.weight = Parameter(source.weight.detach())
    if getattr(source, "bias", None) is not None:
        target.bias = Parameter(source.bias.detach())
    target.train(source.training)
    return target
