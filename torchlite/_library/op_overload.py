"""OpOverload and OpOverloadPacket: bases of `torch.ops.<library>.<op>` for ATen and custom ops."""

from __future__ import annotations

from typing import Any

from .._dispatch.callbacks import CALLBACKS
from .._dispatch.op_record import REGISTRY
from .._dispatch.tracing import TRACES, trace_function
from .tags import tags_of


class OpOverload:
    """Base class of op overloads."""

    def __init__(self, packet: OpOverloadPacket, name: str):
        self.overloadpacket, self._overloadname = packet, name
        self.namespace, self._opname = packet._namespace, packet._name
        self.__name__ = f"{packet._name}.{name}"
        self.__module__ = f"torch.ops.{packet._namespace}"

    def name(self) -> str:
        return self.overloadpacket._qualified_op_name + (f".{self._overloadname}" * (self._overloadname != "default"))

    @property
    def _overloadpacket(self) -> OpOverloadPacket:
        """Return the packet, under PyTorch's private name."""
        return self.overloadpacket

    @property
    def _qualified_op_name(self) -> str:
        return self.overloadpacket._qualified_op_name

    @property
    def _schema(self) -> Any:
        """Return the overload's schema."""
        return self.overloadpacket._schema_of(self._overloadname)

    @property
    def _is_defined_in_python(self) -> bool:
        """True if a program added the op."""
        return self.namespace != "aten"

    @property
    def is_view(self) -> bool:
        """True if results alias an argument and nothing is written."""
        return any(r.alias_info is not None and not r.is_write for r in self._schema.returns)

    @property
    def tags(self) -> list:
        """Return the overload's `torch.Tag`s."""
        packet = self.overloadpacket
        record = REGISTRY.get(packet._name.rstrip("_")) or getattr(packet._function, "op", None)
        return tags_of(packet._name, self._overloadname, record)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if TRACES and (found := trace_function(self, *args, **kwargs)) is not NotImplemented:
            return found
        return self.overloadpacket(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return _find_overload, (self.namespace, self._opname, self._overloadname)


class OpOverloadPacket:
    """Base class of op packets: an op with its overloads."""

    def __init__(self, name: str, function: Any, namespace: str = "aten", schema_of: Any = None):
        self._name, self._function, self._namespace = name, function, namespace
        self._qualified_op_name = f"{namespace}::{name}"
        self._overloads: dict[str, OpOverload] = {}
        self._schema_of = schema_of
        self.__name__, self.__module__ = name, f"torch.ops.{namespace}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if TRACES and (found := trace_function(self, *args, **kwargs)) is not NotImplemented:
            return found
        return self._function(*args, **kwargs)

    def overloads(self) -> list[str]:
        """Return the names of the overloads."""
        return list(self._overloads)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._overloads:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        return self._overloads[name]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._namespace}.{self._name}')>"

    def __str__(self) -> str:
        return f"{self._namespace}.{self._name}"

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self


def _find_overload(namespace: str, name: str, overload: str) -> Any:
    """Return an unpickled overload."""
    return getattr(getattr(getattr(CALLBACKS.overloads("ops"), namespace), name), overload)
