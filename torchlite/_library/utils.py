"""Schema and name helpers under PyTorch's module name."""

from __future__ import annotations

from typing import Any

from .._dispatch.callbacks import CALLBACKS
from .function_schema import Argument, FunctionSchema

__all__ = [
    "is_functional_schema",
    "is_tensorlist_like_type",
    "lookup_op",
    "mutates_and_returns_first_arg",
    "parse_namespace",
]


def is_functional_schema(schema: Any) -> bool:
    """True if a schema (or its text) writes to no argument, and results alias none."""
    parsed = FunctionSchema(schema) if isinstance(schema, str) else schema
    reads = not any(part.alias_info is not None for part in (*parsed.arguments, *parsed.returns))
    return reads and bool(parsed.returns)


def is_tensorlist_like_type(kind: Any) -> bool:
    """True if an argument's type is a list of tensors, optional or with optional elements."""
    return kind.base == "Tensor" and any(suffix.startswith("[") for suffix in kind.suffixes)


def parse_namespace(qualname: str) -> tuple[str, str]:
    """Split "lib::op" into library and name. Raise ValueError if one is missing."""
    namespace, colons, name = qualname.partition("::")
    if not colons:
        raise ValueError(f"Expected `qualname` to be of the form 'namespace::name', but got {qualname}")
    return namespace, name


def lookup_op(qualname: str) -> Any:
    """Return the overload "lib::op" or "lib::op.overload". Raise AttributeError if there is none."""
    namespace, name = parse_namespace(qualname)
    name, _, overload = name.partition(".")
    return getattr(getattr(getattr(CALLBACKS.overloads("ops"), namespace), name), overload or "default")


def mutates_and_returns_first_arg(op: Any) -> bool:
    """True if an op mutates only its first argument and returns it, as `add_` does."""
    schema = op._schema
    if len(schema.returns) != 1 or not schema.arguments:
        return False
    first: Argument = schema.arguments[0]
    written = [a for a in schema.arguments if a.is_write]
    own, returned = first.alias_info, schema.returns[0].alias_info
    if own is None or returned is None or written != [first]:
        return False
    return bool(own.before_set == returned.before_set)
