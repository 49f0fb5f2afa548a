"""torchlite: PyTorch's API on existing array libraries. `import torchlite as torch`."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from math import e, inf, nan, pi
from typing import Any

__version__ = __torchlite_version__ = "0.1.0"
newaxis = None
_lazy_modules = {"_dynamo", "_inductor", "_export", "onnx"}  # imported when a program names them

from ._dispatch import NAMESPACES, namespace_function
from ._dispatch.callbacks import CALLBACKS, register_lazily
from ._dispatch.op_functions import in_place_method
from ._ops import load as _load
from ._settings import fork_locks, moved_modules
from ._tensor import Parameter, Tensor
from ._tensor.creation import as_tensor, asarray, from_dlpack, from_numpy, frombuffer, tensor
from ._types import dtypes as _dtype
from ._types.devices import device, get_default_device, set_default_device
from ._types.dtypes import can_cast, dtype, finfo, get_default_dtype, iinfo, promote_types, set_default_dtype
from ._types.layouts import (
    Size,
    channels_last,
    channels_last_3d,
    contiguous_format,
    jagged,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from .autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

_load()
moved_modules.install()


@functools.cache
def _resolve_sparse_module(name: str) -> Any:
    return getattr(importlib.import_module("._sparse", __name__), name)


@functools.cache
def _resolve_quantized_module(name: str) -> Any:
    return getattr(importlib.import_module("._quantized", __name__), name)


def _resolve_overload_module(name: str) -> Any:
    if name == "ops":
        return importlib.import_module("._aten", __name__).ops
    return getattr(importlib.import_module("._library.op_overload", __name__), name)


CALLBACKS.sparse, CALLBACKS.quantized = _resolve_sparse_module, _resolve_quantized_module
CALLBACKS.overloads = _resolve_overload_module
# Callbacks of modules that are loaded when one is first called.
_CALLBACK_HOMES = {
    "make_overridable": ("_tensor.overridable", "make_overridable"),
    "copied_to": ("_aten.torch_dispatch", "copy_subclass_to_device"),
    "detached": ("_aten.torch_dispatch", "detach_subclass"),
    "dispatched": ("_aten.torch_dispatch", "run_through_torch_dispatch"),
    "dispatched_into": ("_aten.torch_dispatch", "run_out_variant"),
    "is_seen_whole": ("_aten.torch_dispatch", "is_seen_whole"),
    "make_wrapper": ("_aten.torch_dispatch", "make_wrapper"),
    "array_function": ("_interop.numpy_protocols", "array_function"),
    "array_namespace": ("_interop.array_namespace", "array_namespace"),
    "array_ufunc": ("_interop.numpy_protocols", "array_ufunc"),
    "compile": ("_dynamo.eval_frame", "compile"),
    "declare_collectives": ("distributed._collective_ops", "declare_collectives"),
    "decomposed_library": ("ao.quantization.fx._decomposed", "decomposed_library"),
    "specialized_sizes": ("export._trace", "specialized_sizes"),
    "convert_observed": ("ao.quantization.quantize", "convert"),
    "prepare_to_quantize": ("ao.quantization.quantize", "prepare"),
    "prepare_to_train_quantized": ("ao.quantization.quantize", "prepare_qat"),
    "from_scipy_sparse": ("_sparse.scipy_matrices", "from_scipy_sparse"),
    "get_rank": ("distributed", "get_rank"),
    "get_world_size": ("distributed", "get_world_size"),
    "inference_function": ("_dynamo.inference_function", "InferenceFunction"),
    "higher_order_class": ("_higher_order_ops.higher_order_operator", "higher_order_class"),
    "higher_order_namespace": ("_higher_order_ops.higher_order_operator", "higher_order_namespace"),
    "load_torchscript": ("jit", "load"),
    "matmul_foreign": ("_sparse.scipy_matrices", "matmul"),
    "register_module_forward_hook": ("nn.modules.module", "register_module_forward_hook"),
    "register_module_forward_pre_hook": ("nn.modules.module", "register_module_forward_pre_hook"),
    "vmap": ("func", "vmap"),
}
register_lazily(CALLBACKS, globals(), _CALLBACK_HOMES)
for _d in _dtype.BY_NAME.values():
    for _name in (_d.name, *_dtype.ALIASES.get(_d.name, ())):
        globals()[_name] = _d
globals().update(_dtype.NAME_ONLY)
legacy_contiguous_format = contiguous_format
del _d, _name

_MODULES = {
    "_C", "_VF", "__config__", "__future__", "_compile", "_custom_ops", "_dynamo", "_functorch", "_guards",
    "_higher_order_ops", "_inductor", "_jit_internal", "_logging", "_prims_common", "_subclasses", "_tensor_str",
    "_utils", "_vmap_internals", "accelerator", "amp", "ao", "autograd", "backends", "compiler", "cpu", "cuda",
    "distributed", "distributions", "export", "fft", "func", "functional", "futures", "fx", "hub", "jit", "library",
    "linalg", "masked", "mps", "mtia", "multiprocessing", "nested", "nn", "onnx", "opencl", "optim", "overrides",
    "package", "profiler", "quantization", "quasirandom", "random", "return_types", "serialization", "signal", "sparse",
    "special", "storage", "testing", "torch_version", "types", "utils", "version", "xpu",
}  # fmt: skip
# Functions and classes that are written by hand and loaded when first used, by the module that has them.
_HOMES = {
    "_alias": ("as_torch",),
    "_compile": ("_disable_dynamo",),
    "_dynamo.eval_frame": ("compile",),
    "_serialization.pytorch_file": ("PyTorchFileReader", "PyTorchFileWriter"),
    "_higher_order_ops.cond": ("cond",), "_higher_order_ops.while_loop": ("while_loop",),
    "_symbolic_shapes": (
        "SymBool", "SymFloat", "SymInt", "sym_float", "sym_fresh_size", "sym_int", "sym_ite", "sym_max", "sym_min",
        "sym_not", "sym_sqrt", "sym_sum",
    ),
    "futures": ("Future",), "nn._functional_activation": ("celu_", "rrelu_"),
    "jit._types": (
        "AnyType", "BoolType", "ComplexType", "DeviceObjType", "DictType", "FloatType", "FutureType", "IntType",
        "ListType", "NoneType", "NumberType", "OptionalType", "PyObjectType", "StreamObjType", "StringType",
        "SymBoolType", "SymIntType", "TensorType", "TupleType", "Type", "UnionType",
    ),
    "jit": ("CompilationUnit", "ScriptFunction", "ScriptModule"), "jit._runtime": ("ScriptObject",),
    "serialization": ("save", "load"),
    "_device.generators": (
        "Generator", "manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "default_generator",
    ),
    "_tensor.printing": ("set_printoptions",),
    "_tensor.array_api_functions": (
        "__array_api_version__", "__array_namespace_info__", "astype", "bitwise_invert", "broadcast_arrays",
        "cumulative_prod", "cumulative_sum", "expand_dims", "isdtype", "matrix_transpose", "permute_dims", "repeat",
        "take_along_axis", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack", "vecdot",
    ),
    "_tensor.tensor_queries": (
        "is_tensor", "is_storage", "is_floating_point", "is_complex", "is_signed", "get_device", "is_nonzero", "numel",
        "_has_compatible_shallow_copy_type", "_shape_as_tensor", "_softmax_backward_data",
        "_log_softmax_backward_data", "_softmax", "_log_softmax", "_cast_Byte", "_cast_Char",
        "_cast_Short", "_cast_Int", "_cast_Long", "_cast_Half", "_cast_Float", "_cast_Double",
        "result_type", "is_conj", "is_neg", "is_inference", "is_same_size", "is_distributed",
        "set_default_tensor_type", "AcceleratorError",
        "OutOfMemoryError", "broadcast_shapes", "typename", "_assert",
    ),
    "_settings.public_settings": (
        "set_num_threads", "get_num_threads", "use_deterministic_algorithms", "are_deterministic_algorithms_enabled",
        "set_num_interop_threads", "get_num_interop_threads", "get_float32_matmul_precision",
        "set_float32_matmul_precision", "set_flush_denormal", "is_deterministic_algorithms_warn_only_enabled",
        "get_deterministic_debug_mode", "set_deterministic_debug_mode", "set_warn_always", "is_warn_always_enabled",
    ),
    "_tensor.storage": ("StorageBase",),
    "_tensor.typed_storage": (
        "TypedStorage", "UntypedStorage", "BoolStorage", "ByteStorage", "CharStorage", "ShortStorage", "IntStorage",
        "LongStorage", "HalfStorage", "BFloat16Storage", "FloatStorage", "DoubleStorage", "ComplexFloatStorage",
        "ComplexDoubleStorage", "from_file", "_storage_classes",
    ),
    "_tensor.assertions": (
        "_assert_async", "_check", "_check_index", "_check_is_size", "_check_not_implemented", "_check_tensor_all",
        "_check_tensor_all_with", "_check_type", "_check_value", "_check_with",
    ),
    "_device.accelerators": ("Stream", "Event"),
    "_sparse.public_functions": (
        "sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor",
        "sparse_compressed_tensor", "_validate_sparse_coo_tensor_args", "_validate_sparse_csr_tensor_args",
        "_validate_sparse_csc_tensor_args", "_validate_sparse_bsr_tensor_args", "_validate_sparse_bsc_tensor_args",
        "_validate_sparse_compressed_tensor_args", "_convert_indices_from_coo_to_csr",
        "_convert_indices_from_csr_to_coo", "smm", "sspaddmm", "hspmm", "spmm", "dsmm", "hsmm", "saddmm",
        "resize_as_sparse_",
    ),
    "_quantized.public_functions": (
        "quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic", "dequantize", "int_repr",
        "q_scale", "q_zero_point", "q_per_channel_scales", "q_per_channel_zero_points", "q_per_channel_axis",
        "_make_per_tensor_quantized_tensor", "_make_per_channel_quantized_tensor", "_empty_affine_quantized",
        "_empty_per_channel_affine_quantized", "_saturate_weight_to_fp16", "quantized_gru", "quantized_lstm",
    ),
    "_types.qschemes": (
        "qscheme", "per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric",
        "per_channel_affine_float_qparams",
    ),
    "autograd.anomaly_mode": ("is_anomaly_enabled", "is_anomaly_check_nan_enabled"),
    "_C": (
        "DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet", "has_lapack",
        "has_mkl", "has_openmp",
    ),
    "_library.tags": ("Tag",),
    "_lobpcg": ("lobpcg",),
    "_losses": (
        "binary_cross_entropy_with_logits", "cosine_embedding_loss", "hinge_embedding_loss", "kl_div",
        "margin_ranking_loss", "poisson_nll_loss", "triplet_margin_loss",
    ),
    "_tensor.removed_functions": ("eig", "lstsq", "matrix_rank", "symeig", "solve"),
    "accelerator": ("get_device_module", "_register_device_module"),
    "func": ("vmap",),
    "random": ("thread_safe_generator",),
    "utils.dlpack": ("to_dlpack",),
    "_aten": ("ops",),
    "amp.grad_scaler": ("GradScaler",),
    "amp.autocast_mode": (
        "autocast", "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache",
        "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_cache_enabled",
        "is_autocast_cpu_enabled", "is_autocast_enabled", "set_autocast_cache_enabled", "set_autocast_cpu_dtype",
        "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype",
    ),
    "_tensor.legacy_types": (
        "BoolTensor", "ByteTensor", "CharTensor", "ShortTensor", "IntTensor", "LongTensor", "HalfTensor",
        "BFloat16Tensor", "FloatTensor", "DoubleTensor", "_tensor_classes",
    ),
}  # fmt: skip
_LAZY = {name: home for home, names in _HOMES.items() for name in names}


_loading = fork_locks.acquire_before_fork(threading.RLock())


def __getattr__(name: str) -> Any:
    # One thread at a time imports modules: their mutual imports would find partly initialised modules in other threads.
    # A thread inside such an import does not wait, because another thread may wait for it.
    if fork_locks.is_importing(here=True):
        return _load_attribute(name)
    with _loading:
        return globals()[name] if name in globals() else _load_attribute(name)


def _load_attribute(name: str) -> Any:
    if name in NAMESPACES["torch"]:
        found = namespace_function("torch", name)
    elif name in _LAZY:
        found = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    elif name == "Storage":
        found = _load_attribute("FloatStorage")
    elif name.startswith("_foreach_"):
        found = getattr(importlib.import_module("._tensor.foreach", __name__), name)
    elif name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    elif name in _IN_PLACE:
        found = in_place_method(NAMESPACES["torch"][name[:-1]])
    elif name == "torch":  # PyTorch's module has itself by that name
        found = sys.modules[__name__]
    else:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = found
    return found


# In-place forms that are functions as well; the others are methods only.
_IN_PLACE = {
    "_add_relu_", "abs_", "acos_", "acosh_", "addmv_", "arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_",
    "arctanh_", "asin_", "asinh_", "atan_", "atanh_", "ceil_", "clamp_", "clamp_max_", "clamp_min_",
    "clip_", "conj_physical_", "cos_", "cosh_", "deg2rad_", "erf_", "erfc_", "exp_", "exp2_", "expm1_", "fix_",
    "floor_", "frac_", "gcd_", "i0_", "index_put_", "lcm_", "ldexp_", "log_", "log10_", "log1p_", "log2_", "logit_",
    "nan_to_num_", "neg_", "negative_", "rad2deg_", "reciprocal_", "relu_", "round_", "rsqrt_", "selu_",
    "sigmoid_", "sin_", "sinc_", "sinh_", "sqrt_", "square_", "tan_", "tanh_", "threshold_", "trunc_", "xlogy_",
}  # fmt: skip
# What this module imports for itself.
_INTERNAL = {
    "Any", "CALLBACKS", "NAMESPACES", "annotations", "fork_locks", "in_place_method", "moved_modules",
    "namespace_function", "register_lazily",
}  # fmt: skip


def __dir__() -> list[str]:
    public = {name for name in globals() if not name.startswith("_") or name.startswith("__")} - _INTERNAL
    private = {"_dispatch", "_ops", "_tensor"}  # PyTorch has them too
    return sorted({*public, *private, *NAMESPACES["torch"], *_LAZY, *_MODULES})


__all__ = [
    "Parameter", "Size", "Tensor", "as_tensor", "asarray", "can_cast", "channels_last", "channels_last_3d",
    "contiguous_format", "device", "dtype", "enable_grad", "finfo", "from_dlpack", "from_numpy", "frombuffer",
    "get_default_device", "get_default_dtype", "iinfo", "inference_mode", "is_grad_enabled",
    "is_inference_mode_enabled", "layout", "memory_format", "no_grad", "preserve_format", "promote_types",
    "set_default_device", "set_default_dtype", "set_grad_enabled", "sparse_coo", "sparse_csr", "strided", "tensor",
]  # fmt: skip
