"""`__torch_dispatch__`: presents ops below autograd as ATen overloads to tensor subclasses and modes.

A handler's return value is the op's result and gets the op's autograd history. Composite ops appear as their parts.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

from .._dispatch import call, out_variants
from .._dispatch.autograd_graph import OutputEdge, alias_meta
from .._dispatch.backend_registry import table_of
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.dispatch_state import HAS_WRAPPERS, MODE, REQUIRES_GRAD_DETACHED, recording
from .._dispatch.hooks import PackedTensor
from .._dispatch.interceptors import (
    InPlaceCall,
    Interceptor,
    put_back,
    show_only,
    show_only_within,
    stack,
    torch_dispatch_classes,
)
from .._dispatch.meta_backend import MetaArray
from .._dispatch.op_record import ABSENT, MAYBE_VIEW, NONDIFF, REGISTRY, VIEW, Op
from .._dispatch.shapes import broadcast_shapes
from .._library.library_op import LibraryOp
from .._types.devices import device, get_default_device
from .._types.dtypes import get_default_dtype
from .._types.layouts import contiguous_format
from . import ops, torchlite_overload
from .decompose_mode import is_decomposing, run_composite, should_decompose
from .record_to_overload import match_overload

Handler = Callable[[Any, tuple, tuple, dict], Any]

# Factory ops: their history begins with them.
CREATES = frozenset(
    (
        "arange empty empty_like empty_strided eye full full_like linspace logspace normal ones ones_like rand "
        "rand_like randint randint_like randn randn_like randperm scalar_tensor tril_indices triu_indices zeros "
        "zeros_like bartlett_window blackman_window hamming_window hann_window kaiser_window empty_permuted"
    ).split()
)


def _linear_via_addmm(F: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """Return a linear layer as ATen has it: `addmm` with the bias."""
    across = weight.t() if weight.ndim == 2 else weight
    if bias is None or weight.ndim == 1:
        out = F.matmul(input, across)
        return out if bias is None else out + bias
    if input.ndim == 2:
        return F.addmm(bias, input, across)
    out = F.addmm(bias, input.reshape(math.prod(input.shape[:-1]), input.shape[-1]), across)
    return out.view([*input.shape[:-1], weight.shape[0]])


def _present_as_unsafe_view(out: Any, shape: list) -> Any:
    """Return a result as a view of another shape; there are no other references."""
    return ops.aten._unsafe_view.default(out, shape)


def _matmul_via_mm(F: Any, input: Any, other: Any) -> Any:
    """Return a matrix product as ATen has it: `mm` or `bmm`."""
    a, b = input.ndim, other.ndim
    if (a, b) == (1, 1):
        return F.dot(input, other)
    if (a, b) == (2, 1):
        return F.mv(input, other)
    if (a, b) == (1, 2):
        return F.squeeze(F.mm(F.unsqueeze(input, 0), other), 0)
    if (a, b) == (2, 2):
        return F.mm(input, other)
    if a > 2 and b <= 2:
        matrix = F.unsqueeze(other, 1) if b == 1 else other
        out = F.mm(input.reshape(math.prod(input.shape[:-1]), input.shape[-1]), matrix)
        return _present_as_unsafe_view(out, [*input.shape[:-1], *([] if b == 1 else [other.shape[-1]])])
    if a == 1:
        return F.squeeze(F.matmul(F.unsqueeze(input, 0), other), -2)
    lead = broadcast_shapes(tuple(input.shape[:-2]), tuple(other.shape[:-2]))
    n, k, m = input.shape[-2], input.shape[-1], other.shape[-1]
    count = math.prod(lead)
    left = input.expand(*lead, n, k).reshape(count, n, k)
    right = other.expand(*lead, k, m).reshape(count, k, m)
    return _present_as_unsafe_view(F.bmm(left, right), [*lead, n, m])


def _by_composite(name: str) -> Callable:
    """Return a function that computes a record by its composite."""
    return lambda F, *values: REGISTRY[name].composite(F, *values)


# Records that ATen decomposes.
DECOMPOSED: dict[str, Callable] = {
    "linear": _linear_via_addmm,
    "matmul": _matmul_via_mm,
    "contiguous": lambda F, input, memory_format: (
        input
        if input.is_contiguous(memory_format=memory_format or contiguous_format)
        else F.clone(input, memory_format=memory_format or contiguous_format)
    ),
    **{
        name: _by_composite(name)
        for name in "_huber _nll_loss _nll_loss_backward _pad_border _pad_border_backward _csr_mm _sampled_mm".split()
    },
    "_cross_entropy": lambda F, input, target, weight, ignore_index, reduction: F.nll_loss(
        F.log_softmax(input, 1 if input.ndim > 1 else 0), target, weight, ignore_index=ignore_index, reduction=reduction
    ),
}


def _strip_default_args(op: Op, values: list) -> tuple[tuple, dict]:
    """Return values in call form: without trailing and keyword arguments at their defaults."""
    args: list = []
    kwargs = {}
    plain = 0
    for p, value in zip(op.params, values, strict=True):
        given = not (p.default is value or (isinstance(value, (int, float, str, bool)) and value == p.default))
        if p.kwonly:
            if given:
                kwargs[p.name] = value
            continue
        args.append(list(value) if p.kind == "varargs" else value)
        plain = len(args) if given else plain
    return tuple(args[:plain]), kwargs


def _as_tensors(values: list) -> list:
    """Return an index's arrays as tensors."""
    table = values[0]._tl_kernels
    items = values[1] if isinstance(values[1], tuple) else (values[1],)
    return [call.wrap_array(table, i) if i.__class__ is table.array else i for i in items]


def _present_index(args: tuple, values: list) -> tuple[Any, tuple]:
    """Present `x[index]` with arrays as `aten.index`."""
    items = _as_tensors(values)
    return ops.aten.index.Tensor, (args[0], [None if i.__class__ is slice else i for i in items])


def _present_slice(args: tuple, values: list) -> tuple[Any, tuple]:
    """Present `x[index]` of one dimension as `aten.slice`, `aten.select` or `aten.unsqueeze`."""
    input, index = values
    dim = next((d for d, part in enumerate(index) if part != slice(None)), None)
    if dim is None:
        return ops.aten.alias.default, (input,)
    part = index[dim]
    if part is None:
        return ops.aten.unsqueeze.default, (input, dim)
    if not isinstance(part, slice):
        return ops.aten.select.int, (input, dim, int(part))
    start, stop = part.start or 0, (1 << 63) - 1 if part.stop is None else part.stop
    return ops.aten.slice.Tensor, (input, dim, start, stop, *([] if part.step in (None, 1) else [part.step]))


def _split_index(input: Any, index: tuple) -> list[tuple]:
    """Split an index of integers, slices, None and `...` into indices of one op each, in order."""
    dim, steps = 0, []
    missing = input.ndim - sum(1 for part in index if part is not None and part is not Ellipsis)
    for part in index:
        if part is Ellipsis:
            dim += missing
            continue
        if part != slice(None):
            steps.append((slice(None),) * dim + (part,))
        dim += part is None or isinstance(part, slice)
    return steps


def _present_norm(args: tuple, values: list) -> tuple[Any, tuple]:
    input, weight, bias, dims, eps = values
    return ops.aten.native_layer_norm.default, (input, list(input.shape[-dims:]), weight, bias, eps)


def _present_pool(args: tuple, values: list) -> tuple[Any, tuple]:
    return getattr(ops.aten, f"max_pool{len(values[1])}d_with_indices").default, tuple(values)


def _present_view(args: tuple, values: list) -> tuple[Any, tuple]:
    input, shape = values
    name = "view" if input.is_contiguous() else "_unsafe_view"
    return getattr(ops.aten, name).default, (input, list(shape))


# Ops with other arguments in ATen: record name to a function that returns overload and arguments.
_PRESENTED: dict[str, Callable[[tuple, list], tuple[Any, tuple]]] = {
    "_index": _present_index,
    "_slice_index": _present_slice,
    "_layer_norm": _present_norm,
    "_max_pool": _present_pool,
    "_view": _present_view,
    "reshape": _present_view,
    "_dropout": lambda args, values: (ops.aten.native_dropout.default, (values[0], values[1], True)),
    "_convolution_backward": lambda args, values: (
        ops.aten.convolution_backward.default,
        (*values[:3], None, *values[3:9], list(values[9])),
    ),
}
_FIRST = frozenset(("_layer_norm", "_max_pool", "_dropout", "_sdpa"))


def find_library_call(op: Op, values: list, writes: bool = False) -> tuple[Any, tuple, dict]:
    """Return the ATen overload for a record's call on bound values, with its arguments."""
    found = match_overload(op, values, writes)
    if found is not None and op.name not in _PRESENTED:
        return found
    args, kwargs = _strip_default_args(op, values)
    if op.name == "to":
        return ops.aten._to_copy.default, args[:1], {"dtype": values[1]}
    if op.name == "_sdpa":  # called for a subclass
        query, key, value, mask, is_causal, scale = values
        attend = ops.aten._scaled_dot_product_flash_attention_for_cpu.default
        return attend, (query, key, value, 0.0, is_causal), {"attn_mask": mask, "scale": scale}
    if op.name == "_sdpa_backward":
        grad, query, key, value, mask, out, sums, is_causal, scale, _ = values
        derive = ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
        arguments = (grad, query, key, value, out, sums, 0.0, is_causal)
        return derive, arguments, {"attn_mask": mask, "scale": scale}
    if op.name in _PRESENTED and not writes:
        return (*_PRESENTED[op.name](args, values), kwargs)
    return torchlite_overload(op, writes), args, kwargs


def _is_expanded(op: Op, values: list) -> bool:
    """True if this call is the one to decompose."""
    if not is_decomposing():
        return False
    found = match_overload(op, values)
    return found is not None and should_decompose(found[0])


def _is_single_library_op(op: Op, values: list) -> bool:
    """True if a composite record is a single op in ATen."""
    if op.name == "norm":  # a function of Python in PyTorch, which calls `linalg.vector_norm`
        return False
    found = match_overload(op, values)
    return op.name == "_sdpa_backward" or (found is not None and not found[0].is_implicit)


def is_seen_whole(op: Op, values: list) -> bool:
    """True if a `__torch_dispatch__` sees a composite record as one op of ATen. One that needs a gradient is seen in
    parts, because these have the derivatives.
    """
    return not (MODE.grad and call.any_requires_grad(values)) and _is_single_library_op(op, values)


# Ops that are the identity on real tensors.
_COMPLEX_COMPONENTS = frozenset(
    ("conj", "_conj", "conj_physical", "_conj_physical", "real", "positive", "resolve_conj")
)


@functools.cache
def _load_lowerings() -> dict[str, Callable]:
    """Load the lowerings at the first op that a mode sees."""
    from .record_to_aten import LOWERED

    return LOWERED


def run_handler(handler: Handler, types: tuple, op: Op, values: list, writes: bool = False) -> Any:
    """Run an op through a handler and attach the op's autograd history."""
    if op.name in _COMPLEX_COMPONENTS and not values[0].dtype.is_complex:
        return values[0]  # no-op, absent in ATen
    if op.name == "_slice_index" and not writes:
        steps = _split_index(*values)
        if len(steps) > 1:
            result = run_handler(handler, types, op, [values[0], steps[0]])
            with _ReenterMode(handler):
                for step in steps[1:]:  # which may have tensors
                    result = result[step]
            return result
        values = [values[0], steps[0] if steps else (slice(None),)]
    if op.name in DECOMPOSED:
        with _ReenterMode(handler):
            return DECOMPOSED[op.name](CALLBACKS.F, *values)
    if op.name == "_setitem":
        with _ReenterMode(handler):
            return _set_item(handler, values[0] if writes else values[0].clone(), *values[1:])
    func, args, kwargs = find_library_call(op, values, writes)
    wants = MODE.grad and not op.tags & NONDIFF and call.any_requires_grad(values)
    own = any(getattr(v.__class__, "_wraps", False) for v in _flatten(values))
    if own and any(getattr(v.__class__, "_takes_records", False) for v in _flatten(values)):
        return _take_record_result(op, handler(func, types, args, kwargs), values)  # the parts are recorded
    if not wants or writes or op.aux_outputs or op.is_implicit or (op.tags & (VIEW | MAYBE_VIEW) and not own):
        return _take_record_result(op, handler(func, types, args, kwargs), values)
    with recording(False):
        result = _take_record_result(op, handler(func, types, args, kwargs), values)
    return record_handled(op, values, result)


def _take_record_result(op: Op, result: Any, values: list | None = None) -> Any:
    """Return the record's result given the ATen op's result. `values` are the arguments of a record's own call."""
    if isinstance(result, list):
        result = tuple(result)
    if op.name == "unique_consecutive" and values is not None:  # return the requested results
        wanted = (True, *(values[place] for place, p in enumerate(op.params) if p.name.startswith("return_")))
        result = tuple(itertools.compress(result, wanted))
        return result if len(result) > 1 else result[0]
    if op.name in _FIRST and isinstance(result, tuple):
        return result[0]
    if op.result_type is not None and type(result) is tuple and len(result) == len(op.outputs):
        return op.result_type(result)
    return result


def _scalar_tensor_for(value: Any, target: Any) -> Any:
    return ops.aten.scalar_tensor.default(value, dtype=target.dtype, device=target.device)


def _set_item(handler: Handler, target: Any, index: tuple, value: Any) -> Any:
    """Run `target[index] = value` as `copy_` on a view, else `index_put_`."""
    if all(isinstance(i, (int, slice, type(None), type(...))) for i in index):
        place = target if index == (...,) else target[index]
        place.copy_(value) if isinstance(value, call.Tensor) else place.fill_(value)
        return target
    items = [None if i.__class__ is slice else i for i in _as_tensors([target, index])]
    value = value if isinstance(value, call.Tensor) else _scalar_tensor_for(value, target)
    arguments = (target, items, value)
    return handler(ops.aten.index_put_.default, torch_dispatch_classes(arguments), arguments, {})


def _flatten(values: Any) -> Any:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flatten(value)
        else:
            yield value


class _ReenterMode:
    """Push the handler's mode again for the parts of an op; subclasses see them anyway."""

    def __init__(self, handler: Handler) -> None:
        self.mode = getattr(handler, "__self__", None)

    def __enter__(self) -> None:
        mode = [self.mode] if isinstance(self.mode, Interceptor) else []
        self.view = show_only([*stack.items, *mode])

    def __exit__(self, *exc: object) -> None:
        put_back(self.view)


def record_handled(op: Op, values: list, result: Any) -> Any:
    """Attach the autograd history of the op's call to a handler's result."""
    outs = result if isinstance(result, (tuple, list)) else (result,)
    fresh = [
        o for o in outs if isinstance(o, call.Tensor) and (o._tl_node is None or o._tl_node is REQUIRES_GRAD_DETACHED)
    ]
    if len(fresh) != len(outs) or any(o.dtype.category < 2 for o in outs[:1]):
        return result
    if any(o is v for o in outs for v in _flatten(values)):
        return result
    if not any(getattr(type(v), "_wraps", False) for v in _flatten(values)):
        values = call.check_tensors(op, values)
    if op.promote is not None:
        values = call.cast_to_common_dtype(op, values)
    tables = [v._tl_kernels for v in _flatten(values) if isinstance(v, call.Tensor)]
    table = next((t for t in tables if t.wraps), tables[0])
    for out in outs:
        if out._tl_node is REQUIRES_GRAD_DETACHED:
            out._tl_node = None
    call.record_node(op, table, values, tuple(outs))
    node = outs[0]._tl_node.node if isinstance(outs[0]._tl_node, OutputEdge) else outs[0]._tl_node
    for i, out in enumerate(outs):
        if out._tl_dispatches and node is not None and node._out is not None and node._out[i] is not None:
            node._out = (*node._out[:i], copy_for_node(out, -1 if len(outs) == 1 else i), *node._out[i + 1 :])
    return result


def run_through_torch_dispatch(op: Op, values: list, classes: tuple, writes: bool = False) -> Any:
    """Run an op through `__torch_dispatch__` of its arguments' classes, subclasses first, each once. A class that
    accepts records sees the record.
    """
    for cls in classes:
        if cls._takes_records:
            return cls._run_record(op, values, writes)
    lowered = None if writes or (MODE.grad and call.any_requires_grad(values)) else _load_lowerings().get(op.name)
    if lowered is not None:  # overloads that the classes see; an op that needs a gradient stays one op with its history
        result = lowered(*values)
        if result is not NotImplemented:
            return _take_record_result(op, result)
    handler, ordered = _handler_of_classes(classes)
    return run_handler(handler, ordered, op, values, writes)


def _handler_of_classes(classes: tuple) -> tuple[Handler, tuple]:
    """Return a function that asks the classes' `__torch_dispatch__` in turn, and the classes, subclasses first."""
    ordered: list = []
    for cls in classes:
        place = next((i for i, other in enumerate(ordered) if issubclass(cls, other)), len(ordered))
        ordered.insert(place, cls)

    def call_handler(func: Any, types: tuple, args: tuple, kwargs: dict) -> Any:
        for cls in ordered:
            result = cls.__torch_dispatch__(func, types, args, kwargs)
            if result is not NotImplemented:
                return result
        raise TypeError(
            f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
            + "".join(f"  - tensor subclass {cls}\n" for cls in ordered)
            + "\nFor more information, try re-running with TORCH_LOGS=not_implemented"
        )

    return call_handler, tuple(ordered)


def run_out_variant(op: Op, values: list, classes: tuple, out: Any) -> Any:
    """Run an op with `out=` through `__torch_dispatch__` of its arguments' classes: they see the overload with it."""
    found = match_overload(op, values)
    variant = None if found is None else _find_out_variant(found[0])
    if found is None or variant is None or any(cls._takes_records for cls in classes):
        raise NotImplementedError(f"{op.function_name}() takes no out= for {classes[0].__name__}")
    outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    overload, names = variant
    if MODE.grad and call.any_requires_grad([*values, *outs]):
        raise RuntimeError(
            f"{op.function_name}(): functions with out=... arguments don't support automatic differentiation, but "
            "one of the arguments requires grad."
        )
    handler, ordered = _handler_of_classes(classes)
    _, args, kwargs = found
    return _take_record_result(op, handler(overload, ordered, args, {**kwargs, **dict(zip(names, outs, strict=True))}))


@functools.cache
def _find_out_variant(overload: Any) -> tuple[Any, list[str]] | None:
    """Return the overload with the same arguments and `out`, and the names of its results."""
    packet, wanted = overload._overloadpacket, [(a.name, str(a.type)) for a in overload._schema.arguments]
    for name in packet.overloads():
        variant = getattr(packet, name)
        arguments = variant._schema.arguments
        if [(a.name, str(a.type)) for a in arguments if not a.is_out] == wanted:
            names = [a.name for a in arguments if a.is_out]
            if names:
                return variant, names
    return None


# -- modes ----------------------------------------------------------------------------------


class DispatchMode(Interceptor):
    """Base of TorchDispatchMode: passes ops to `__torch_dispatch__` as ATen overloads."""

    backward: Any = "ops"
    intercepts_overloads = True
    is_dispatch_mode = True

    def overload(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """Handle a call of an ATen overload, which is passed unchanged."""
        with show_only_within(stack.items[:-1]):
            return self._handle(func, torch_dispatch_classes((*args, *kwargs.values())), args, kwargs)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(op, LibraryOp):
            values = op.schema.bind(args, kwargs)
            rule = op.by_class.get(type(self))
            args, kwargs = op.schema.call_form(values)
            classes = torch_dispatch_classes(values)
            if rule is not None:
                return rule(self, op.overload, classes, args, kwargs)
            return self._handle(op.overload, classes, args, kwargs)
        if function.__class__ is InPlaceCall:
            return self._handle_in_place_op(op, function, args, kwargs)
        if function is not op.function:  # a factory kernel
            return function(*args, **kwargs)
        if op.name == "normal" and any(isinstance(value, call.Tensor) for value in args):
            pass  # random factories
        elif op.name in CREATES or op.name.removeprefix("_") in CREATES:
            return self._handle_factory_op(op, args, kwargs)
        out = kwargs.pop("out", None) if op.has_out else None
        if out is not None:
            return out_variants.write_out(op, self.intercept(op, function, args, kwargs), out, (*args,))
        values = call.bind(op, args, dict(kwargs))
        if call.find_torch_function_override(values) is not None:
            with self._reenter():
                return call.without_interceptors(op, function, args, kwargs)
        classes = torch_dispatch_classes(values)
        if op.composite is not None and _is_expanded(op, values):
            with self._reenter():
                return _take_record_result(op, run_composite(op, values))
        lowered = None if classes else _load_lowerings().get(op.name)
        if lowered is not None:
            with self._reenter():
                result = lowered(*values)
            if result is not NotImplemented:
                return _take_record_result(op, result)
        if (
            op.is_implicit
            and op.name not in DECOMPOSED
            and op.name[-1] != "_"
            and not _is_single_library_op(op, values)
        ):
            with self._reenter():
                return call.without_interceptors(op, function, args, kwargs)
        return run_handler(self._handle, classes, op, values)

    def _reenter(self) -> Any:
        return _ReenterMode(self._handle)

    def _handle(self, func: Any, types: tuple, args: tuple, kwargs: dict) -> Any:
        result = self.__torch_dispatch__(func, types, args, kwargs)
        for cls in types if result is NotImplemented else ():  # then the arguments' classes
            result = cls.__torch_dispatch__(func, types, args, kwargs)
            if result is not NotImplemented:
                break
        if result is NotImplemented:
            raise TypeError(
                f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
                f"  - mode object {self}\n\nFor more information, try re-running with TORCH_LOGS=not_implemented"
            )
        return result

    def _handle_in_place_op(self, op: Op, function: Any, args: tuple, kwargs: dict) -> Any:
        """Handle an in-place op."""
        if op.name == "_setitem":
            return run_handler(self._handle, (), op, list(args), writes=True)
        try:
            values = call.bind(op, args, dict(kwargs))
        except TypeError:
            return function(*args, **kwargs)
        func, args, kwargs = find_library_call(op, values, True)
        return self._handle(func, torch_dispatch_classes(values), args, kwargs)

    def _handle_factory_op(self, op: Op, args: tuple, kwargs: dict) -> Any:
        """Handle a factory op."""
        kwargs = {name: v for name, v in kwargs.items() if v is not None and v is not ABSENT}
        wants = kwargs.pop("requires_grad", False)
        packet = getattr(ops.aten, op.name.removeprefix("_"))
        while args and len(args) > 1 and (args[-1] is None or args[-1] == op.params[len(args) - 1].default):
            args = args[:-1]
        if op.params and op.params[0].kind == "varargs":
            size = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
            args = ([*size],) if "size" not in kwargs else ()
        kwargs.setdefault("pin_memory", False)
        if op.params[0].kind == "tensor":
            pass  # passed as an argument
        else:
            kwargs.setdefault("device", get_default_device())
        overload = packet.resolve_overload(args, kwargs)
        result = self._handle(overload, torch_dispatch_classes(args), args, kwargs)
        return result.requires_grad_() if wants else result


# -- wrapper subclasses ---------------------------------------------------------------------


@functools.cache
def _table_without_data(where: device) -> Any:
    """Return the meta kernel table under another device's name, for wrapper tensors that report this device."""
    meta = table_of(device("meta"))
    table = object.__new__(type(meta))
    table.__dict__.update(meta.__dict__)
    table.device, table.wraps = where, True
    return table


def _is_tensor_class(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, call.Tensor)


def make_wrapper(
    cls: Any, size: Any, strides: Any = None, storage_offset: Any = None, memory_format: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    dispatch_sizes_strides_policy: Any = None, dispatch_device: bool = False, dispatch_layout: bool = False,
    _extra_dispatch_keys: Any = None, storage_size: Any = None, **rest: Any,
) -> Any:  # fmt: skip
    """Create a tensor of a subclass with size, dtype and device but without data, for `_make_wrapper_subclass`. Raise
    RuntimeError if the class has no `__torch_dispatch__`, TypeError if it is no tensor class.
    """
    if not _is_tensor_class(cls):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your "
            "class inherits from Tensor."
        )
    if not cls._tl_dispatches:
        raise RuntimeError(
            f"{cls} must define __torch_dispatch__ to use _make_wrapper_subclass, which makes tensors without data"
        )
    where = call._resolve_device(device) if device is not None else get_default_device()
    d = dtype or get_default_dtype()
    out = object.__new__(cls)
    out._tl_array = MetaArray(tuple(size), d, None if strides is None else tuple(strides), storage_offset or 0)
    out._tl_kernels, out._tl_node, out._tl_meta = _table_without_data(where), None, None
    call.set_dtype(out, d)
    cls._wraps = True
    HAS_WRAPPERS[:] = [None]
    return out.requires_grad_() if requires_grad else out


def _shallow_copy(tensor: Any) -> Any:
    """Return another object of a subclass tensor, without history."""
    out = object.__new__(type(tensor))
    for name in ("_tl_array", "_tl_kernels", "dtype", "_tl_meta"):
        setattr(out, name, getattr(tensor, name))
    out._tl_node = None
    out.__dict__.update(tensor.__dict__)
    return out


def copy_for_node(out: Any, where: Any) -> PackedTensor:
    """Return the copy of a subclass output that its node saves, to avoid a reference cycle."""
    shallow = _shallow_copy(out)
    shallow._tl_meta = alias_meta(out)
    return PackedTensor(shallow, _shallow_copy, where)


def copy_subclass_to_device(tensor: Any, where: device) -> Any:
    """Copy a subclass tensor to another device by an op that the class sees."""
    cls = type(tensor)
    return cls.__torch_dispatch__(ops.aten._to_copy.default, (cls,), (tensor,), {"device": where})


def detach_subclass(tensor: Any) -> Any:
    """Detach a subclass tensor by an op that the class sees."""
    cls = type(tensor)
    with recording(False):
        return cls.__torch_dispatch__(ops.aten.detach.default, (cls,), (tensor,), {})
