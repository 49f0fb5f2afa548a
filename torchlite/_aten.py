"""`torch.ops.aten`: PyTorch's ops by the names of its operator library, for programs that name ops so.

`torch.ops.aten.mm.default` is an overload of the packet `torch.ops.aten.mm`; calling either calls the op. What an
interceptor sees of a record's call has such a name too (`overload_of`).
"""

from __future__ import annotations

from typing import Any

from ._dispatch.codegen import function_for
from ._dispatch.record import NAMESPACES, Op

# Where an overload is not called "default": by the op, what its call has.
_BY_NUMBER = frozenset(
    "add sub mul div fmod remainder eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor floor_divide".split()
)
_CALLED = {
    "var_mean": "correction", "std_mean": "correction", "var": "correction", "std": "correction", "softmax": "int",
    "log_softmax": "int", "index": "Tensor", "where": "self", "lerp": "Scalar", "masked_fill": "Scalar",
    "transpose": "int", "select": "int", "slice": "Tensor", "split": "Tensor", "unbind": "int", "squeeze": "dim",
}  # fmt: skip
# Records whose name is not the library's.
_RECORDS = {
    "_slice_index": "slice", "_index": "index", "_setitem": "index_put", "_where": "where", "linear": "addmm",
    "var_correction": "var", "std_correction": "std", "_layer_norm": "native_layer_norm", "max_dim": "max",
    "min_dim": "min", "_sdpa": "_scaled_dot_product_flash_attention_for_cpu",
}  # fmt: skip


class OpOverload:
    """One overload of an op."""

    def __init__(self, packet: OpOverloadPacket, name: str):
        self.overloadpacket, self._overloadname = packet, name

    def name(self) -> str:
        return f"aten::{self.overloadpacket._name}" + (f".{self._overloadname}" * (self._overloadname != "default"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.overloadpacket._name}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"aten.{self.overloadpacket._name}.{self._overloadname}"


class OpOverloadPacket:
    """An op with its overloads."""

    def __init__(self, name: str, function: Any):
        self._name, self._function = name, function
        self._overloads: dict[str, OpOverload] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._overloads:
            self._overloads[name] = OpOverload(self, name)
        return self._overloads[name]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self._name}')>"


class _Namespace:
    """The ops of one library, each made when it is asked for."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        packet = OpOverloadPacket(name, _function(name))
        setattr(self, name, packet)
        return packet


class _Ops:
    """The libraries of ops: there is one, `aten`."""

    def __init__(self) -> None:
        self.aten = _Namespace()

    def load_library(self, path: Any) -> None:
        """OSError: a library of compiled ops wants PyTorch's own libraries."""
        raise OSError(
            f"Could not load this library: {path}. It is built for PyTorch's C++ libraries, and torchlite has none"
        )


def _function(name: str) -> Any:
    """The public function of an op of the library. AttributeError where torchlite has no such op."""
    for space in ("torch", "nn.functional", "Tensor"):
        record = NAMESPACES.get(space, {}).get(name)
        if record is not None:
            return function_for(record)
    from ._tensor import Tensor

    method = getattr(Tensor, name, None)  # the in-place ops
    if method is None:
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
    return method


def overload_of(op: Op, args: tuple) -> OpOverload:
    """The library's name for a record's call."""
    name = _RECORDS.get(op.name, op.name)
    if name == "matmul" and len(args) > 1:
        dims = args[0].ndim, args[1].ndim
        name = {(2, 2): "mm", (3, 3): "bmm", (2, 1): "mv", (1, 1): "dot"}.get(dims, name)
    overload = _CALLED.get(name, "default")
    if name in _BY_NUMBER:
        overload = "Tensor" if len(args) > 1 and hasattr(args[1], "_data") else "Scalar"
    elif name == "pow":
        overload = "Tensor_Tensor" if hasattr(args[-1], "_data") else "Tensor_Scalar"
    elif name in ("sum", "mean") and len(args) > 1 and args[1] is not None:
        overload = "dim_IntList" if name == "sum" else "dim"
    elif op.name in ("max_dim", "min_dim"):
        overload = "dim"
    return getattr(_packet(name, op), overload)


def _packet(name: str, op: Op) -> OpOverloadPacket:
    found = ops.aten.__dict__.get(name)
    if found is None:
        found = OpOverloadPacket(name, function_for(op))
        setattr(ops.aten, name, found)
    return found


ops = _Ops()
