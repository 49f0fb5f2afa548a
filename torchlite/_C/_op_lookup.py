"""Schemas of ops, for programs that ask `torch._C` for them."""

from __future__ import annotations

from typing import Any

from .._library.function_schema import FunctionSchema


def parse_schema(schema: str) -> FunctionSchema:
    """A schema from its text. RuntimeError where it cannot be read.

    >>> import torchlite as torch
    >>> torch._C.parse_schema("lib::scale(Tensor x, float s=2.0) -> Tensor").arguments[1].default_value
    2.0
    """
    return FunctionSchema(schema)


def _packet(qualname: str) -> Any:
    from .._aten import ops

    namespace, _, name = qualname.partition("::")
    return getattr(getattr(ops, namespace), name, None)


def _jit_get_schemas_for_operator(qualname: str) -> list[FunctionSchema]:
    """The schemas of all overloads of an op such as "aten::add"; none for an op that there is not."""
    packet = _packet(qualname)
    return [] if packet is None else [getattr(packet, name)._schema for name in packet.overloads()]


def _get_operation_overload(qualname: str, overload: str) -> Any:
    """(what calls an overload, the same for a dispatch key, its tags); None where there is none."""
    packet = _packet(qualname)
    name = overload or "default"
    if packet is None or name not in packet.overloads():
        return None
    found = getattr(packet, name)
    return found.op, found.redispatch, found.tags


def _jit_resolve_packet(qualname: str, *args: Any, **kwargs: Any) -> str:
    """The name of the overload that a call fits. RuntimeError where none does."""
    packet = _packet(qualname)
    if packet is None:
        raise RuntimeError(f"there is no op {qualname}")
    for name in packet.overloads():
        overload = getattr(packet, name)
        try:
            overload._schema.bind(args, kwargs, getattr(overload, "accepts_scalars", False))
        except RuntimeError:
            continue
        return name
    raise RuntimeError(f"no overload of {qualname} fits the arguments")
