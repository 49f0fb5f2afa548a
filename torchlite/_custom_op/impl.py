"""Names of the module that preceded `torch.library`."""

from __future__ import annotations

from typing import Any

from .._library.custom_ops import OPS, CustomOpDef
from .._library.function_schema import infer_schema

__all__ = ["RESERVED_NS", "SUPPORTED_DEVICE_TYPE_TO_KEY", "CustomOp", "get_op", "global_registry", "infer_schema"]

# The library's own namespaces.
RESERVED_NS = {"prim", "prims", "aten", "at", "torch", "pytorch"}
SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA", "opencl": "OpenCL"}
# Ops created by the older functions (`torch._custom_ops`), by name: `torch.library` has all of today's.
global_registry: dict[str, Any] = {}
CustomOp = CustomOpDef


def get_op(qualname: str) -> Any:
    """The overload of a custom op by its name. RuntimeError where there is none."""
    from .._library.library_op import find_op

    return OPS[qualname] if qualname in OPS else find_op(qualname).overload
