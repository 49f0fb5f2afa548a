"""The modules whose code a capture knows: torchlite's own, Python's and the libraries that torchlite uses.

These are lists of what is known to be safe. A rule such as "all of the standard library" would be wrong: `logging` and
`random` keep state, and a replay does not see it change. Code of other modules is examined like the program's own.
`tests/dynamo/test_known_modules.py` checks that every name exists.
"""

# The module that generated functions of ops belong to by name.
GENERATED_MODULE = "torchlite._generated"
# torchlite's modules whose functions compute and keep no state.
COMPUTING_MODULES = (GENERATED_MODULE, *(f"torchlite.{name}" for name in (
    "_types", "_dispatch", "_tensor", "_interop", "autograd", "_ops", "nn", "_losses", "functional", "fft", "linalg",
    "special", "optim", "amp", "_settings", "utils._pytree", "_dynamo", "_alias", "_utils", "return_types", "overrides",
    "distributions", "_device", "utils.hooks", "backends", "compiler", "_sparse.backward_pass", "func", "_functorch",
    "random", "utils.checkpoint", "utils._backward_hook", "_library", "_aten", "_higher_order_ops",
    "_serialization.resource_budget", "onnx._import", "onnx._loaded_module", "onnx._element_types", "fx",
    "export._input_guards", "export._graph_codegen", "jit", "_quantized", "ao.nn.quantized",
    "ao.nn.intrinsic.quantized",
)))  # fmt: skip
# Parts of those that read elements without a kernel table, or keep state.
REFUSED_MODULES = tuple(f"torchlite.{name}" for name in (
    "_tensor.interop", "_tensor.storage", "_tensor.typed_storage", "_tensor.dlpack", "_tensor.pickling",
    "_tensor.shared_memory", "_tensor.printing", "optim.lr_scheduler", "optim._cyclic_schedulers",
    "optim._lr_scheduler_base",
    "optim._composed_schedulers", "optim._reduce_on_plateau", "optim.swa_utils", "autograd.profiler",
    "autograd.anomaly_mode", "_device.accelerators", "_device.streams", "autograd.gradcheck", "nn.parallel",
    "nn.utils.prune", "nn.utils._pruning_methods", "nn.utils.memory_format",
))  # fmt: skip
# Top-level modules whose functions are not examined before a capture: `side_effect_monitor` judges each call.
JUDGED_AT_CALL = frozenset((
    "torchlite", "torch", "math", "cmath", "operator", "itertools", "functools", "typing", "typing_extensions",
    "collections", "abc", "enum", "builtins", "contextlib", "types", "numbers", "dataclasses", "warnings", "copy",
))  # fmt: skip
# Top-level modules whose functions compute, or keep state that changes no result (caches, imports).
COMPUTING_LIBRARIES = frozenset("""
    numpy contextlib functools collections enum typing abc operator types threading weakref copyreg inspect copy heapq
    _weakrefset importlib ml_dtypes dataclasses reprlib _collections_abc re dis opcode math numbers array_api_compat ast
    tokenize linecache ctypes encodings codecs posixpath zipimport
""".split())  # fmt: skip
# Modules of the standard library whose objects have no state but their attributes.
ATTRIBUTE_MODULES = frozenset(
    ("logging", "dataclasses", "inspect", "functools", "pathlib", "argparse", "string", "fractions")
)
