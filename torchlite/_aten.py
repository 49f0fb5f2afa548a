"""`torch.ops`: ops by the names of their libraries, for programs that name ops so.

`torch.ops.aten.mm.default` is an overload of the packet `torch.ops.aten.mm`; calling either calls the op. What an
interceptor sees of a record's call has such a name too (`overload_of`). Libraries that programs add (`torch.library`)
are beside `aten`.
"""

from __future__ import annotations

import functools
from typing import Any

from ._dispatch.codegen import function_for, in_place_method
from ._dispatch.record import NAMESPACES, REGISTRY, VIEW, Op
from ._dispatch.signatures import public_name, signatures
from ._library.operators import DEFINED, LibraryOp, declare
from ._library.overloads import OpOverload, OpOverloadPacket
from ._library.schema import FunctionSchema

# Where an overload is not called "default": by the op, what its call has.
_BY_NUMBER = frozenset("fmod remainder eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor".split())
_CALLED = {
    "add": "Tensor", "sub": "Tensor", "mul": "Tensor", "div": "Tensor", "var_mean": "correction",
    "std_mean": "correction", "var": "correction", "std": "correction", "softmax": "int", "log_softmax": "int",
    "index": "Tensor", "where": "self", "lerp": "Scalar", "masked_fill": "Scalar", "transpose": "int",
    "select": "int", "slice": "Tensor", "split": "Tensor", "unbind": "int", "squeeze": "dim",
}  # fmt: skip
# Records whose name is not the library's.
_RECORDS = {
    "_slice_index": "slice", "_index": "index", "_setitem": "index_put", "_where": "where", "linear": "addmm",
    "var_correction": "var", "std_correction": "std", "_layer_norm": "native_layer_norm", "max_dim": "max",
    "min_dim": "min", "_add": "add", "_sub": "sub", "_div": "div", "_copy": "copy", "_fill": "fill",
    "_sdpa": "_scaled_dot_product_flash_attention_for_cpu",
    "_sdpa_backward": "_scaled_dot_product_flash_attention_for_cpu_backward",
}  # fmt: skip


class _Namespace:
    """The ops of one library, each made when it is asked for."""

    def __init__(self, name: str) -> None:
        self.name, self.__name__ = name, f"torch.ops.{name}"

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.name != "aten":
            found = DEFINED.get((self.name, name))
            if found is None:
                raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
            return found
        packet = OpOverloadPacket(name, _function(name))
        packet._schema_of = lambda overload: schema_of(packet, overload)
        setattr(self, name, packet)
        return packet

    def __dir__(self) -> list[str]:
        if self.name == "aten":
            return sorted({*NAMESPACES["torch"], *NAMESPACES["Tensor"], *NAMESPACES["nn.functional"]})
        return sorted(name for space, name in DEFINED if space == self.name)

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.name}' from 'torch.ops'>"


class _Ops:
    """The libraries of ops: `aten` and those that programs added."""

    loaded_libraries: set[str] = set()
    refused_libraries: list[str] = []

    def __getattr__(self, name: str) -> _Namespace:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "profiler":
            _declare_regions()
        found = self.__dict__[name] = _Namespace(name)
        return found

    def load_library(self, path: Any) -> None:
        """Make the ops of a compiled library known where torchlite has them itself, as it has torchvision's.

        OSError for others: they want PyTorch's own libraries.
        """
        from ._extensions import provide

        if provide(path):
            self.loaded_libraries.add(str(path))
            return
        self.refused_libraries.append(str(path))
        raise OSError(
            f"Could not load this library: {path}. It is built for PyTorch's C++ libraries, and torchlite has none"
        )

    def import_module(self, module: str) -> None:
        """Import a Python module that adds ops."""
        import importlib

        importlib.import_module(module)

    def __repr__(self) -> str:
        return "<module 'torch.ops' from '_ops.py'>"


def _declare_regions() -> None:
    """`record_function` as two ops, for programs that call it so."""
    from .autograd.profiler import record_function

    enter = declare("profiler", "_record_function_enter(str name, str? args=None) -> Any")
    leave = declare("profiler", "_record_function_exit(Any handle) -> ()")
    enter.kernels["CompositeExplicitAutograd"] = lambda name, args=None: record_function(name, args).__enter__()
    leave.kernels["CompositeExplicitAutograd"] = lambda handle: handle.__exit__(None, None, None)


def _layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The op, with the mean and the reciprocal of the deviation that it returns in the library."""
    import torchlite as torch

    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    deviation, mean = torch.var_mean(input, dims, correction=0, keepdim=True)
    out = torch.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps)
    return out, mean, (deviation + eps).rsqrt()


def _convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
    groups: int,
) -> Any:  # fmt: skip
    """Every convolution under one name."""
    import torchlite as torch

    dims = weight.ndim - 2
    if transposed:
        run = getattr(torch, f"conv_transpose{dims}d")
        return run(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return getattr(torch, f"conv{dims}d")(input, weight, bias, stride, padding, dilation, groups)


def _convolution_with_flags(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
    groups: int, benchmark: bool, deterministic: bool, cudnn_enabled: bool, allow_tf32: bool = True,
) -> Any:  # fmt: skip
    """Every convolution, with switches of a library that is not used."""
    return _convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _to_copy(input: Any, *, dtype: Any = None, device: Any = None, memory_format: Any = None, **rest: Any) -> Any:
    """A copy with another dtype or on another device."""
    keywords = {"dtype": dtype, "device": device, "memory_format": memory_format}
    return input.to(copy=True, **{name: value for name, value in keywords.items() if value is not None})


def _slice(input: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """A part of one dimension."""
    return input[(slice(None),) * (dim % input.ndim) + (slice(start, end, step),)]


def _index(input: Any, indices: Any) -> Any:
    """`input[indices]`, with None where a dimension is taken whole."""
    return input[tuple(slice(None) if i is None else i for i in indices)]


def _linalg(name: str) -> Any:
    import torchlite as torch

    return getattr(torch.linalg, name)


def _softmax(input: Any, dim: int, half_to_float: bool = False) -> Any:
    return input.softmax(dim)


def _log_softmax(input: Any, dim: int, half_to_float: bool = False) -> Any:
    return input.log_softmax(dim)


def _threshold_backward(grad: Any, input: Any, threshold: float) -> Any:
    return grad * (input > threshold)


def _native_dropout(input: Any, p: float, train: Any) -> Any:
    """The op, with which elements it kept."""
    import torchlite as torch

    out = torch.nn.functional.dropout(input, p, bool(train))
    return out, (out != 0) | (input == 0)


def _pool_with_indices(dims: int) -> Any:
    def pool(input: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False) -> Any:
        import torchlite as torch

        run = getattr(torch.nn.functional, f"max_pool{dims}d")
        return run(input, kernel, stride or kernel, padding, dilation, ceil_mode=ceil, return_indices=True)

    return pool


def _convolution_backward(
    grad: Any, input: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, needs: Any,
) -> Any:  # fmt: skip
    """The gradients of a convolution that are needed."""
    run = function_for(REGISTRY["_convolution_backward"])
    return run(grad, input, weight, stride, padding, dilation, transposed, output_padding, groups, tuple(needs))


def _rsub(input: Any, other: Any, alpha: Any = 1) -> Any:
    return other - input if alpha == 1 else other - alpha * input


def _setting(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """`input[indices] = values`, with None where a dimension is taken whole."""
    if accumulate:
        return input.index_put_(tuple(indices), values, True)
    input[tuple(slice(None) if i is None else i for i in indices)] = values
    return input


def _sparse_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    from .sparse import addmm

    return addmm(input, mat1, mat2, beta=beta, alpha=alpha)


# Ops of the library that are no function of torch.
_OF_THE_LIBRARY = {
    "native_layer_norm": _layer_norm, "convolution": _convolution,
    "_convolution": _convolution_with_flags, "_to_copy": _to_copy, "slice": _slice,
    "index": _index, "_softmax": _softmax, "_log_softmax": _log_softmax, "threshold_backward": _threshold_backward,
    "max_pool1d_with_indices": _pool_with_indices(1), "max_pool2d_with_indices": _pool_with_indices(2),
    "max_pool3d_with_indices": _pool_with_indices(3), "native_dropout": _native_dropout, "rsub": _rsub,
    "convolution_backward": _convolution_backward,
    "index_put_": _setting, "linalg_vector_norm": lambda *args, **kwargs: _linalg("vector_norm")(*args, **kwargs),
    "_pin_memory": lambda input, device=None: input.pin_memory(), "_sparse_addmm": _sparse_addmm,
    "lift_fresh": lambda input: input, "_unsafe_view": lambda input, size: input.reshape(size),
}  # fmt: skip


def _function(name: str) -> Any:
    """The public function of an op of the library. AttributeError where torchlite has no such op."""
    if name in _OF_THE_LIBRARY:
        return _OF_THE_LIBRARY[name]
    for space in ("torch", "nn.functional", "Tensor"):
        record = NAMESPACES.get(space, {}).get(name)
        if record is not None:
            return function_for(record)
    for record_name, library_name in _RECORDS.items():
        if library_name == name:
            return function_for(REGISTRY[record_name])
    from ._tensor import Tensor

    method = getattr(Tensor, name, None)  # the in-place ops
    if method is None:
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
    return method


# Their schemas.
_SCHEMAS = {
    "native_layer_norm": "(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
    "(Tensor, Tensor, Tensor)",
    "convolution": "(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
    "bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
    "_convolution": "(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
    "bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled, "
    "bool allow_tf32) -> Tensor",
    "convolution_backward": "(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, "
    "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    "_to_copy": "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    "slice": "(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
    "index": "(Tensor self, Tensor?[] indices) -> Tensor",
    "_softmax": "(Tensor self, int dim, bool half_to_float) -> Tensor",
    "_log_softmax": "(Tensor self, int dim, bool half_to_float) -> Tensor",
    "threshold_backward": "(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    "native_dropout": "(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    "rsub": "(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    "index_put_": "(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
    "linalg_vector_norm": "(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    "lift_fresh": "(Tensor(a) self) -> Tensor(a)",
    "_unsafe_view": "(Tensor self, SymInt[] size) -> Tensor",
    **{
        f"max_pool{d}d_with_indices": "(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, "
        "int[] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)"
        for d in (1, 2, 3)
    },
}
_TYPES = {"tensor": "Tensor", "optional": "Tensor?", "number": "Tensor", "list": "Tensor[]", "varargs": "int[]"}
# The parser's words for types, where the library has others.
_LIBRARY_TYPES = {
    "Number": "Scalar", "ints": "SymInt[]", "floats": "float[]", "dtype": "ScalarType", "layout": "Layout",
    "device": "Device", "memory_format": "MemoryFormat", "generator": "Generator", "Tensors": "Tensor[]",
}  # fmt: skip


@functools.cache
def _parsed_types(record: Op) -> dict[str, str]:
    """The types that PyTorch's parser gives a record's arguments, in the library's words."""
    found: dict[str, str] = {}
    for form in signatures(public_name(record)):
        for a in form.arguments:
            found.setdefault(a.name, _LIBRARY_TYPES.get(a.type, a.type) + "?" * a.nullable)
    return found


def schema_of(packet: OpOverloadPacket, overload: str) -> FunctionSchema:
    """The schema of a record's op: its arguments by PyTorch's names, with the memory that it writes to or shares."""
    name = packet._qualified_op_name + f".{overload}" * (overload != "default")
    if packet._name in _SCHEMAS:
        return FunctionSchema(name + _SCHEMAS[packet._name])
    record = getattr(packet._function, "op", None) or REGISTRY.get(packet._name)
    if record is None:
        raise NotImplementedError(f"torchlite has no schema for {packet._qualified_op_name}")
    writes = packet._name.endswith("_") and not packet._name.endswith("__")
    mark = "(a!)" if writes else "(a)" if record.tags & VIEW else ""
    parts = []
    for position, p in enumerate(record.params):
        if p.kwonly and "*" not in parts:
            parts.append("*")
        kind = _TYPES.get(p.kind) or _parsed_types(record).get(p.name, "Any")
        if p.kind == "number" and overload == "Scalar" and position:
            kind = "Scalar"
        if position == 0 and kind.startswith("Tensor"):
            kind = kind[:6] + mark + kind[6:]
        argument = "self" if position == 0 and p.name == "input" else p.name
        default = p.default
        written = isinstance(default, (int, float, bool)) or default is None
        parts.append(f"{kind} {argument}" + (f"={default}" if written else "=None" if default == () else ""))
    count = len(record.outputs or ()) or 1
    results = ", ".join([f"Tensor{mark}"] * count)
    return FunctionSchema(f"{name}({', '.join(parts)}) -> " + (f"({results})" if count > 1 else results))


def overload_of(op: Op | LibraryOp, args: tuple, writes: bool = False) -> OpOverload:
    """The library's name for a record's call; of the op in place where it `writes`."""
    if isinstance(op, LibraryOp):
        return op.overload
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
    return getattr(_packet(name + "_" * writes, op, writes), overload)


def _packet(name: str, op: Op, writes: bool) -> OpOverloadPacket:
    found = ops.aten.__dict__.get(name)
    if found is None:
        # `add` and its like are seen without their keyword first; the library's take it.
        if name in _OF_THE_LIBRARY or name in ("add", "sub", "div") or (writes and hasattr(ops.aten, name)):
            return getattr(ops.aten, name)
        found = OpOverloadPacket(name, in_place_method(op) if writes else function_for(op))
        found._schema_of = lambda overload: schema_of(found, overload)
        setattr(ops.aten, name, found)
    return found


ops = _Ops()
