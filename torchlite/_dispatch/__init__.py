"""Op records, the op registry, type promotion, kernel tables and the interceptor stack."""

from .backend_registry import backend_of, has_kernel, register_backend, table_of
from .dispatch_state import GLOBALS, LEAF, MODE
from .interceptors import Interceptor
from .op_functions import F, function_for, namespace_function
from .op_record import (
    ALWAYS_BOOL,
    CAST,
    DEFAULT,
    INPLACE,
    INT_TO_FLOAT,
    KEEPS_DTYPE,
    MAYBE_VIEW,
    NAMESPACES,
    NONDIFF,
    POINTWISE,
    RANDOM,
    REGISTRY,
    UNINITIALIZED,
    VIEW,
    Op,
    Out,
    Overlap,
    composite,
    op,
)

__all__ = [
    "ALWAYS_BOOL", "CAST", "DEFAULT", "F", "GLOBALS", "INPLACE", "INT_TO_FLOAT", "Interceptor", "KEEPS_DTYPE",
    "LEAF", "MAYBE_VIEW", "MODE", "NAMESPACES", "NONDIFF", "Op", "Out", "Overlap", "POINTWISE", "RANDOM", "REGISTRY",
    "UNINITIALIZED", "VIEW", "backend_of", "composite", "function_for", "has_kernel", "namespace_function", "op",
    "register_backend", "table_of",
]  # fmt: skip
