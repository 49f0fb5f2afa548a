"""Binds a node's arguments to an export rule, so that none is lost: one that the rule has no parameter for is an error,
unless it has its default or cannot change a result.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..errors import OnnxExporterError
from .graph_builder import WriterValue

# Parameters of ATen's schemas that say where a result is, how it is stored, or what backward does. No value depends on
# them.
NO_EFFECT = frozenset(
    "layout device pin_memory memory_format non_blocking copy requires_grad generator sparse sparse_grad "
    "scale_grad_by_freq cudnn_enabled cudnn_enable implicit path stable".split()
)


class RuleParameters:
    """Parameters of an export rule after the builder."""

    def __init__(self, rule: Callable) -> None:
        self.places: list[str] = []
        self.names: set[str] = set()
        self.rest = self.options = False
        for param in list(inspect.signature(rule).parameters.values())[1:]:
            if param.kind is param.VAR_POSITIONAL:
                self.rest = True
            elif param.kind is param.VAR_KEYWORD:
                self.options = True
            else:
                self.names.add(param.name)
                if param.kind is not param.KEYWORD_ONLY:
                    self.places.append(param.name)


@functools.cache
def parameters_of(rule: Callable) -> RuleParameters:
    """Return the parameters of a rule."""
    return RuleParameters(rule)


def bind_arguments(target: Any, name: str, rule: Callable, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Return the arguments to call a rule with. Positional parameters of the schema correspond to the rule's by place,
    the others by name. Raise OnnxExporterError for an argument that the rule does not read.
    """
    schema = getattr(target, "_schema", None)
    if schema is None:
        return args, kwargs
    params = parameters_of(rule)
    positional = [a for a in schema.arguments if not a.kwarg_only]
    given: list[Any] = list(args)
    named = dict(kwargs)
    last = max((i for i, a in enumerate(positional) if a.name in named), default=-1)
    for a in positional[len(given) : last + 1]:
        given.append(named.pop(a.name) if a.name in named else a.default_value)
    kept = len(given) if params.rest else len(params.places)
    for a, value in list(zip(positional, given, strict=False))[kept:]:
        require_default(name, a, value)
    options = {}
    for a in schema.arguments[len(positional) :]:
        if a.name not in named:
            continue
        value = named.pop(a.name)
        if a.name in params.names or params.options:
            options[a.name] = value
        else:
            require_default(name, a, value)
    if named:
        raise OnnxExporterError(f"{name}: arguments {sorted(named)}, which its schema does not have")
    return tuple(given[:kept]), options


def require_default(name: str, argument: Any, value: Any) -> None:
    """Raise OnnxExporterError if an argument that a rule does not read may change the result."""
    if argument.name in NO_EFFECT or value is None:
        return
    if argument.has_default_value() and not isinstance(value, WriterValue) and value == argument.default_value:
        return
    shown = "a tensor" if isinstance(value, WriterValue) else repr(value)
    raise OnnxExporterError(f"{name}: the argument {argument.name}={shown} is not written to ONNX")
