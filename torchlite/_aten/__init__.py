"""`torch.ops`: PyTorch's ops by library, name and overload.

`torch.ops.aten.mm.default` is an overload of the packet `torch.ops.aten.mm`; both are callable. Interceptors see an op
record's call under such a name (`record_to_overload`). Libraries added by `torch.library` are siblings of `aten`.
"""

from __future__ import annotations

import functools
from typing import Any

from .._dispatch.callbacks import CALLBACKS
from .._dispatch.op_functions import function_for, in_place_method
from .._dispatch.op_record import REGISTRY, VIEW, Op
from .._library.function_schema import FunctionSchema
from .._library.library_op import DEFINED, LibraryOp, define_op
from .._library.op_overload import OpOverload, OpOverloadPacket
from .overload_packet import AtenOverload, AtenPacket
from .recorded_schemas import all_names, schema_entries

# Ops of aten that `quantized` declares.
QUANTIZED_LAYERS = ("quantized_lstm", "quantized_gru", "_saturate_weight_to_fp16")
TORCHLITE_NAMESPACE = "torchlite"  # the library of ops that PyTorch lacks


class OpNamespace:
    """Ops of one library; packets are created on first access."""

    def __init__(self, name: str) -> None:
        self.name, self.__name__ = name, f"torch.ops.{name}"

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if self.name == "aten" and name in QUANTIZED_LAYERS:
            ops.quantized  # noqa: B018  declares them
        found = DEFINED.get((self.name, name))
        if found is None and self.name == "aten" and schema_entries(name):
            found = self.__dict__.setdefault(name, AtenPacket(name))
        if found is None and self.name == TORCHLITE_NAMESPACE:
            op = REGISTRY.get(name) or REGISTRY.get(name.removesuffix("_"))
            found = None if op is None else torchlite_overload(op, op.name != name).overloadpacket
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        return found

    def __dir__(self) -> list[str]:
        if self.name == "aten":
            return all_names()
        return sorted(name for space, name in DEFINED if space == self.name)

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.name}' from 'torch.ops'>"


class _Ops:
    """Op libraries: `aten` and those added by programs."""

    loaded_libraries: set[str] = set()
    refused_libraries: list[str] = []

    def __getattr__(self, name: str) -> OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "higher_order":
            return CALLBACKS.higher_order_namespace()
        if name == "profiler":
            _declare_record_function()
        if name == "prims" and (name, "convert_element_type") not in DEFINED:
            _declare_prims()
        if name in ("_c10d_functional", "c10d_functional", "c10d") and ("c10d", "scatter_") not in DEFINED:
            CALLBACKS.declare_collectives()
        if name == "quantized" and ("quantized", "linear") not in DEFINED:
            CALLBACKS.quantized("declare_ops")()
        if name == "_quantized" and (name, "linear") not in DEFINED:
            CALLBACKS.quantized("declare_wrapped_ops")()
        if name == "sparse" and (name, "qlinear") not in DEFINED:
            CALLBACKS.quantized("declare_sparse_ops")()
        if name == "onednn" and (name, "qlinear_prepack") not in DEFINED:
            CALLBACKS.quantized("declare_onednn_ops")()
        if name == "mkldnn" and (name, "_is_mkldnn_acl_supported") not in DEFINED:
            CALLBACKS.quantized("declare_mkldnn_ops")()
        if name == "quantized_decomposed" and (name, "quantize_per_tensor") not in DEFINED:
            CALLBACKS.decomposed_library()
        return self.__dict__.setdefault(name, OpNamespace(name))

    def load_library(self, path: Any) -> None:
        """Register the ops of a compiled library for which torchlite has an implementation, as for torchvision.

        Raise OSError for other libraries: they link against PyTorch's own.
        """
        from .._extensions import declare_library_ops

        if declare_library_ops(path):
            self.loaded_libraries.add(str(path))
            return
        self.refused_libraries.append(str(path))
        raise OSError(
            f"Could not load this library: {path}. It is built for PyTorch's C++ libraries, and torchlite has none"
        )

    def import_module(self, module: str) -> None:
        """Import a Python module that registers ops."""
        import importlib

        importlib.import_module(module)

    def __repr__(self) -> str:
        return "<module 'torch.ops' from '_ops.py'>"


def _declare_record_function() -> None:
    """Define the two profiler ops behind `record_function`."""
    from ..autograd.profiler import record_function

    enter = define_op("profiler", "_record_function_enter(str name, str? args=None) -> Any")
    leave = define_op("profiler", "_record_function_exit(Any handle) -> ()")
    enter.kernels["CompositeExplicitAutograd"] = lambda name, args=None: record_function(name, args).__enter__()
    leave.kernels["CompositeExplicitAutograd"] = lambda handle: handle.__exit__(None, None, None)


def _declare_prims() -> None:
    """Define the op that passes of packages name for a conversion."""
    converted = define_op("prims", "convert_element_type(Tensor a, ScalarType dtype) -> Tensor")
    converted.kernels["CompositeImplicitAutograd"] = lambda a, dtype: a.to(dtype)


@functools.cache
def torchlite_overload(op: Op, writes: bool = False) -> OpOverload:
    """Return the overload of an op record that PyTorch's library lacks."""
    packet = OpOverloadPacket(
        op.name + "_" * writes, in_place_method(op) if writes else function_for(op), TORCHLITE_NAMESPACE
    )
    packet._overloads["default"] = OpOverload(packet, "default")
    packet._schema_of = lambda overload: _torchlite_schema(op, packet._qualified_op_name, writes)
    return packet._overloads["default"]


_TYPES = {"tensor": "Tensor", "optional": "Tensor?", "number": "Tensor", "list": "Tensor[]"}


def _torchlite_schema(op: Op, name: str, writes: bool) -> FunctionSchema:
    """Return a schema for an op record that PyTorch's library lacks."""
    mark = "(a!)" if writes else "(a)" if op.tags & VIEW else ""
    parts = [f"{_TYPES.get(p.kind, 'Any')} {p.name}" for p in op.params]
    if parts and parts[0].startswith("Tensor"):
        parts[0] = f"Tensor{mark}{parts[0][6:]}"
    results = ", ".join([f"Tensor{mark}"] * (len(op.outputs or ()) or 1))
    return FunctionSchema(f"{name}({', '.join(parts)}) -> ({results})")


ops = _Ops()
