"""Names of what PyTorch writes in C++ that programs ask for, each the same thing here.

A name stands here only where torchlite has what it means; anything else is an AttributeError, as of a PyTorch that was
built without it.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import weakref
from typing import Any

from .._dispatch import shapes
from .._dispatch.dispatch_state import MODE
from .._dispatch.interceptors import DISABLED_TORCH_FUNCTION
from .._dispatch.interceptors import torch_function_disabled as DisableTorchFunctionSubclass
from .._settings.jit_state import STATE as JIT_STATE
from .._types.devices import private_use_type, rename_private_use
from .._types.layouts import Size

# The names by the module that has them.
_ROOT = __name__.rpartition(".")[0]
_HOMES = {
    "": (
        "Generator", "device", "dtype", "finfo", "iinfo", "is_autocast_enabled", "is_grad_enabled",
        "is_inference_mode_enabled", "layout", "memory_format",
    ),
    "._ops._linalg_common": ("_LinAlgError",),
    ".autograd.graph": (
        "_current_autograd_node", "_current_graph_task_execution_order", "_current_graph_task_id",
        "_will_engine_execute_node",
    ),
    ".autograd.grad_mode": (
        "_is_fwd_grad_enabled", "_is_multithreading_enabled", "_is_view_replay_enabled", "_set_grad_enabled",
    ),
    "._library.tags": ("Tag",),
    ".overrides": ("DisableTorchFunction",),
    ".random": ("default_generator",),
    ".futures": ("Future",),
    ".jit._types": (
        "AnyType", "BoolType", "ComplexType", "DeviceObjType", "DictType", "FloatType", "FutureType", "IntType",
        "ListType", "NoneType", "NumberType", "OptionalType", "PyObjectType", "StreamObjType", "StringType",
        "SymBoolType", "SymIntType", "TensorType", "TupleType", "Type", "UnionType",
    ),
    ".jit": ("CompilationUnit", "ScriptFunction"), ".jit._runtime": ("ScriptObject",),
    ".jit._module_handle": ("_freeze_module",),
    ".jit._graph_ir": ("Graph", "Node", "Value"), ".jit._trace_graph": ("TracingState",),
    ".jit._script_modules": ("ScriptMethod",),
    "._C._cached_tensors": (
        "_add_cached_tensor", "_is_cached_tensor", "_remove_cached_tensor", "_set_cached_tensors_enabled",
    ),
    "._C._dispatch": (
        "DispatchKey", "DispatchKeySet", "_AutoDispatchBelowAutograd", "_ExcludeDispatchKeyGuard",
        "_dispatch_has_kernel_for_dispatch_key",
    ),
    "._C._op_lookup": (
        "_get_operation_overload", "_jit_get_schemas_for_operator", "_jit_resolve_packet", "parse_schema",
    ),
    "._C._fuser_flags": (
        "_jit_can_fuse_on_cpu", "_jit_can_fuse_on_gpu", "_jit_nvfuser_enabled", "_jit_override_can_fuse_on_cpu",
        "_jit_override_can_fuse_on_gpu", "_jit_set_nvfuser_enabled", "_jit_set_profiling_executor",
        "_jit_set_profiling_mode", "_jit_set_texpr_fuser_enabled", "_jit_texpr_fuser_enabled",
    ),
    "._serialization.pytorch_file": ("PyTorchFileReader", "PyTorchFileWriter"),
}  # fmt: skip
# Base classes that PyTorch implements in C++.
_PARTS = {"StorageBase": "UntypedStorage", "TensorBase": "Tensor", "_TensorBase": "Tensor"}
_LAZY = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = {"_autograd", "_cpu", "_fft", "_functions", "_linalg", "_nn", "_special"}

_disabled_torch_function_impl = _disabled_torch_dispatch_impl = DISABLED_TORCH_FUNCTION
_TensorMeta = type  # the class of the class Tensor
# The parts of PyTorch's build that this library has.
has_lapack = has_spectral = True
has_openmp = has_mkl = has_cuda = False
_has_cuda = _has_cudnn = _has_cusparselt = _has_magma = _has_mkldnn = _has_mkldnn_acl = _has_mps = _has_xpu = False


def _infer_size(a: Any, b: Any) -> Any:
    """The shape that tensors of two shapes broadcast to.

    >>> import torchlite as torch
    >>> torch._C._infer_size(torch.Size((2, 1)), torch.Size((1, 3)))
    torch.Size([2, 3])
    """
    return Size(shapes.broadcast_shapes(tuple(a), tuple(b)))


def _is_alias_of(a: Any, b: Any) -> bool:
    """Whether two tensors share their storage."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def _is_cow_tensor(tensor: Any) -> bool:
    """True if the tensor's storage shares its memory with lazy clones, until one of them is written."""
    return importlib.import_module(f"{_ROOT}._tensor.copy_on_write").is_lazy_clone(tensor)


def _set_fwd_grad_enabled(mode: bool) -> None:
    """Say whether levels of forward-mode differentiation send tangents along in this thread."""
    MODE.forward = mode


def _storage_address(tensor: Any) -> int:
    """A number that the tensor's storage keeps, and no other living one has."""
    return importlib.import_module(f"{_ROOT}._tensor.copy_on_write").storage_id(tensor)


def _data_address(tensor: Any) -> int:
    """`Tensor.data_ptr` for readers: lazy clones stay lazy."""
    return tensor._tl_address()


class _WeakTensorRef:
    """A reference to a tensor that does not keep it."""

    def __init__(self, tensor: Any) -> None:
        self._reference = weakref.ref(tensor)

    def __call__(self) -> Any:
        return self._reference()

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._reference() is None


def _set_default_mobile_cpu_allocator() -> None:
    """Have no effect: arrays have one allocator, and no kernel reads behind their ends."""


def _unset_default_mobile_cpu_allocator() -> None:
    """Have no effect, as `_set_default_mobile_cpu_allocator`."""


@functools.cache
def _log_api_usage_once(event: str) -> None:
    """Write the event to stderr the first time, where PYTORCH_API_USAGE_STDERR is set."""
    if os.environ.get("PYTORCH_API_USAGE_STDERR"):
        print("PYTORCH_API_USAGE", event, file=sys.stderr)


def _get_mkldnn_enabled() -> bool:
    """The switch `torch.backends.mkldnn.enabled`."""
    return importlib.import_module(f"{_ROOT}.backends.mkldnn").enabled


def _set_mkldnn_enabled(enabled: bool) -> None:
    """Set `torch.backends.mkldnn.enabled`. RuntimeError for what is no bool."""
    if not isinstance(enabled, bool):
        raise RuntimeError(f"set_enabled_mkldnn expects a bool, but got {type(enabled).__name__}")
    importlib.import_module(f"{_ROOT}.backends.mkldnn").enabled = enabled  # type: ignore[attr-defined]


def _get_tracing_state() -> Any:
    """Return the tracing state that records scopes for `torch.jit._get_trace_graph`, or None."""
    return JIT_STATE.tracing


def _is_tracing() -> bool:
    """Whether this thread runs a program that `torch.jit.trace` or `torch.jit._get_trace_graph` records."""
    return JIT_STATE.recorder is not None or JIT_STATE.tracing is not None


def _are_functorch_transforms_active() -> bool:
    """Whether a transform of `torch.func` runs the function that calls this."""
    levels = sys.modules.get(f"{_ROOT}.func._vmap_interceptor")
    return levels is not None and bool(levels.active_levels())


def _get_default_device() -> str:
    """The type of the device whose name printed tensors leave out."""
    return "cpu"


def _get_accelerator(check: bool | None = None) -> Any:
    """The type of the machine's accelerator; the CPU where there is none."""
    found = importlib.import_module(f"{_ROOT}.accelerator").current_accelerator(bool(check))
    return importlib.import_module(f"{_ROOT}._types.devices").device("cpu") if found is None else found


def _get_privateuse1_backend_name() -> str:
    """The name of the device type that is left to others."""
    return private_use_type()


def _rename_privateuse1_backend(name: str) -> None:
    """Name the device type that is left to others; `torch.utils.rename_privateuse1_backend` does more."""
    rename_private_use(name)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        found = getattr(importlib.import_module(_ROOT + _LAZY[name]), name)
    elif name in _PARTS:
        found = getattr(importlib.import_module(_ROOT), _PARTS[name])
    elif name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_MODULES})
