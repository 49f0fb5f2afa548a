"""The slow path of a call: interceptors, subclasses, argument checks, promotion, multiple outputs."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from .._settings.backend_flags import FLAGS
from .._types import opaque_dtypes
from .._types.devices import device, get_default_device
from .._types.dtypes import _EXTRA, FLOAT, OPAQUE, bool_, dtype, float16, get_default_dtype
from .._types.layouts import Size
from . import type_promotion
from .autograd_graph import (
    TRANSPARENT,
    AutogradMeta,
    Node,
    OutputEdge,
    autograd_meta_of,
    gradient_edge,
    make_node,
    regenerate_stale_views,
    version_of,
    view_meta,
)
from .backend import is_view
from .backend_registry import table_of
from .callbacks import CALLBACKS
from .dispatch_state import GLOBALS, MODE, REQUIRES_GRAD_DETACHED, SEQUENCE, STALE_VIEW_CHECKS
from .error_translation import coerce_values, decoded_operands, translate_composite_error, translate_error, type_error
from .hooks import pack_saved_tensor
from .interceptors import (
    call_interceptor,
    call_torch_function,
    class_rules,
    find_torch_function_override,
    stack,
    torch_dispatch_classes,
)
from .node_names import show_composite
from .numpy_errors import run_quietly
from .op_record import ABSENT, EMPTY, INT_TO_FLOAT, MAYBE_VIEW, NONDIFF, POINTWISE, REGISTRY, UNINITIALIZED, VIEW, Op
from .out_variants import check_output_count, fill_uninitialized, prepare_out, try_out_kernel, write_out
from .shape_and_value_checks import set_requires_grad

new = object.__new__
PYTHON_SCALARS = (int, float, complex)
Tensor: Any = None  # set by `set_tensor_classes`; module globals, since every wrapped result reads one
Parameter: Any = None
_PLAIN_CLASSES: frozenset = frozenset()
set_dtype: Any = None  # writes a tensor's dtype where its class may have a property of that name


def set_tensor_classes(tensor: type, parameter: type) -> None:
    """Register the tensor classes of `torchlite._tensor`, which imports this module."""
    global Tensor, Parameter, _PLAIN_CLASSES, set_dtype
    Tensor, Parameter = tensor, parameter
    _PLAIN_CLASSES = frozenset((tensor, parameter))
    set_dtype = tensor.dtype.__set__  # type: ignore[attr-defined]
    GLOBALS.update(Tensor=tensor, Parameter=parameter, Size=Size, bool_=bool_)
    GLOBALS["PLAIN"].update((tensor, parameter))


def wrap_array(table, data, d: dtype | None = None):
    """A Tensor over a raw array, without checks."""
    if data.__class__ is not table.array:
        data = table.as_array(data)
    out = new(Tensor)
    out._tl_array = data
    out._tl_kernels = table
    out.dtype = table.dtype_of(data) if d is None else d
    out._tl_node = out._tl_meta = None
    if STALE_VIEW_CHECKS and MODE.inference:
        out._tl_meta = AutogradMeta()
        out._tl_meta.inference = True
    return out


def slow_path(op: Op, function, args: tuple, kwargs: dict, more: tuple = ()):
    """Run any call that the hot path does not handle. `args` and `kwargs` are the caller's, ABSENT if not given; `more`
    are arguments without a parameter in the record.
    """
    args, kwargs = normalize_args(op, function, args, kwargs, more)
    if GLOBALS["INTERCEPTORS"] and stack.items:
        if not stack.items[-1].intercepts_functions:  # who do not tell a method from the function
            function = op.function
        return call_interceptor(op, function, args, kwargs)
    return _run_bound(op, function, args, kwargs)


def without_interceptors(op: Op, function, args: tuple, kwargs: dict, more: tuple = ()):
    """The slow path below the interceptors."""
    return _run_bound(op, function, *normalize_args(op, function, args, kwargs, more))


def _load_arg_parser():
    """PyTorch's signatures: loaded when a call is not in the record's form."""
    from . import arg_parser

    return arg_parser


def _load_override_calls():
    """What `__torch_function__` sees of a call: loaded when a class overrides it."""
    from . import override_calls

    return override_calls


def normalize_args(op: Op, function, args: tuple, kwargs: dict, more: tuple) -> tuple[tuple, dict]:
    """Convert arguments in another form to the record's parameters."""
    if more and (
        any(value is not None for value in more)
        or any(value is ABSENT for value in args)
        or any(value is ABSENT for value in kwargs.values())
        or function is not op.function
        and kwargs.get("out") is not None  # which no method takes
    ):
        return _load_arg_parser().to_record_args(op, function, args, kwargs, more)
    return args, kwargs


def _run_bound(op: Op, function, args: tuple, kwargs: dict):
    out = kwargs.pop("out", None) if op.has_out else None
    bound = bind(op, args, dict(kwargs))
    if out is not None and op.out_list:
        check_output_count(op, out)
    for position in op.bool_positions:
        if (value := bound[position]).__class__ is not bool and value is not None:
            check_bool(op, function, bound)
    if find_torch_function_override(bound) is not None:
        args, kwargs = _load_override_calls().override_arguments(op, function, bound, args, kwargs)
        return call_torch_function(function, bound, args, kwargs if out is None else {**(kwargs or {}), "out": out})
    classes = torch_dispatch_classes(bound)
    if classes and op.is_implicit and op.name[-1] != "_" and not CALLBACKS.is_seen_whole(op, bound):
        classes = tuple(cls for cls in classes if cls._takes_records)  # the others see its parts
    if classes:
        if out is not None:
            return CALLBACKS.dispatched_into(op, bound, classes, out)
        return CALLBACKS.dispatched(op, bound, classes)
    if out is not None:
        bound = prepare_out(op, bound, out)
        if try_out_kernel(op, bound, out):
            return out
    try:
        result = execute(op, bound)
    except (TypeError, AttributeError, ValueError):
        plain = coerce_values(op, bound)
        if plain is None:
            if function is not op.function and (refused := _load_arg_parser().parser_error(op, bound, function)):
                raise refused from None  # the method's words
            raise
        result = execute(op, plain)
    return result if out is None else write_out(op, result, out, bound)


def bind(op: Op, args: tuple, kwargs: dict) -> list:
    """Values of the op's parameters in order. TypeError with PyTorch's wording for a wrong call."""
    values: list = []
    params = op.params
    positional = [p for p in params if not p.kwonly]
    for position, param in enumerate(params):
        if param.kind == "varargs":
            rest = args[position:]
            if param.name in kwargs:
                rest = (kwargs.pop(param.name),)
            values.append(tuple(rest[0]) if len(rest) == 1 and isinstance(rest[0], (tuple, list)) else tuple(rest))
            args = args[:position]
        elif not param.kwonly and position < len(args):
            values.append(args[position])
        elif param.name in kwargs:
            values.append(kwargs.pop(param.name))
        elif position == 0 and "self" in kwargs:
            values.append(kwargs.pop("self"))
        elif param.default is not EMPTY:
            values.append(param.default)
        else:
            missing = param.name
            raise TypeError(f'{op.function_name}() missing 1 required positional arguments: "{missing}"')
    if len(args) > len(positional):
        raise TypeError(
            f"{op.function_name}() takes from {sum(p.default is EMPTY for p in positional)} to {len(positional)} "
            f"positional arguments but {len(args)} were given"
        )
    if kwargs:
        raise TypeError(f"{op.function_name}() got an unexpected keyword argument '{next(iter(kwargs))}'")
    return values


def execute(op: Op, values: list):
    """Run an op on bound values: below interceptors and subclasses."""
    if GLOBALS["CLASS_RULES"] and (rules := class_rules(values)) is not None:
        found = rules("run_op")(op, values)
        if found is not NotImplemented:
            return found
    if op.real_positions:
        values = take_numbers(op, values)
    if op.is_implicit:
        values = check_composite_args(op, values)
        start = next(SEQUENCE) if op.node_name else 0
        try:
            result = op.composite(CALLBACKS.F, *values)
        except Exception as error:  # every error of a composite becomes PyTorch's
            raise translate_composite_error(op, error, values) from error.__cause__
        return show_composite(op, start, result, values) if start else result
    values = check_tensors(op, values)
    if op.check is not None:
        op.check(*values)
    if op.sparse_grad_param:
        flag_index = next(position for position, p in enumerate(op.params) if p.name == op.sparse_grad_param)
        if values[flag_index]:
            return CALLBACKS.sparse("lookup_with_sparse_grad")(
                op, [*values[:flag_index], False, *values[flag_index + 1 :]]
            )
    if GLOBALS["SIGNED"]:  # a tensor with the conjugate or negative bit exists
        if op.tags & (VIEW | MAYBE_VIEW) and getattr(values[0], "_tl_signs", 0):
            return CALLBACKS.conj_neg_view_op(op, values)
        values = [CALLBACKS.resolve_conj_neg(v) for v in values]
    if op.promote is not None:
        values = cast_to_common_dtype(op, values)
    if op.numbers:
        values = cast_scalars(op, values)
    table = table_of_values(values) or table_of(get_default_device())
    raw = [to_raw(v) for v in values]
    data = call_kernel(op, table, raw, values)
    return wrap_and_record(op, table, values, data)


def check_bool(op: Op, function, values: list) -> None:
    """TypeError if PyTorch's parser refuses the arguments, one of which is another object in the place of a bool."""
    refused = _load_arg_parser().parser_error(op, values, function)
    if refused is not None:
        raise refused


def take_numbers(op: Op, values: list) -> list:
    """The values with a number in place of a tensor of one, as PyTorch's parser has it. TypeError for a tensor that
    requires a gradient, which the number would lose.
    """
    for position in op.real_positions:
        value = values[position]
        if isinstance(value, Tensor) and value._tl_level is None:  # those of transforms have no number
            refused = _load_arg_parser().parser_error(op, values)
            if refused is not None:
                raise refused
            if not value._tl_array.ndim:
                values = [*values[:position], value.item(), *values[position + 1 :]]
    return values


def cast_scalars(op: Op, values: list) -> list:
    """The values with numbers that the dtype of the first tensor holds; RuntimeError for others."""
    to = next((v.dtype for v in values if isinstance(v, Tensor)), None)
    if to is None:
        return values
    if to._np is None and to.name in OPAQUE and op.opaque != "number":
        if op.opaque != "array":
            raise NotImplementedError(f"\"{op.function_name}\" not implemented for '{to.scalar_name}'")
        return [
            opaque_dtypes.full((), v, to) if p.name in op.numbers and isinstance(v, PYTHON_SCALARS) else v
            for p, v in zip(op.params, values, strict=True)
        ]
    return [
        type_promotion.cast_scalar(v, to, infinite=op.numbers[p.name])
        if p.name in op.numbers and isinstance(v, PYTHON_SCALARS)
        else v
        for p, v in zip(op.params, values, strict=True)
    ]


def to_raw(value):
    """Convert Tensors, also in lists, to raw arrays; other values are unchanged."""
    if isinstance(value, Tensor):
        return value._tl_array
    if value.__class__ in (list, tuple) and value and any(isinstance(v, Tensor) for v in value):
        return [to_raw(v) for v in value]
    return value


def are_plain_tensors(value) -> bool:
    """True for a list or tuple of at least one tensor, all plain."""
    kind = value.__class__
    return (kind is list or kind is tuple) and bool(value) and _PLAIN_CLASSES.issuperset({*map(type, value)})


def arrays_of_one_dtype(items):
    """The raw arrays of plain tensors of one dtype on one device; None for any others."""
    first = items[0]
    if first.__class__ is not Tensor and first.__class__ is not Parameter:
        return None
    table, d = first._tl_kernels, first.dtype
    for item in items:
        if (
            (item.__class__ is not Tensor and item.__class__ is not Parameter)
            or item._tl_kernels is not table
            or item.dtype is not d
        ):
            return None
    return [item._tl_array for item in items]


def _size_of(raw) -> int:
    size = getattr(raw, "size", 0)
    return size if size.__class__ is int else 0


def call_kernel(op: Op, table, raw, values):
    positional = [r for r, p in zip(raw, op.params, strict=True) if not p.kwonly]
    keywords = {p.name: r for r, p in zip(raw, op.params, strict=True) if p.kwonly}
    sized = positional[:2] if op.tags & POINTWISE else positional[:1]  # the first may be a number
    kernel = getattr(table.for_size(max(sized, key=_size_of)) if sized else table, op.name)
    if op.scalar_rounding == "never" and table.in_float32 is not None:
        kernel = table.in_float32(kernel)
    try:
        return run_quietly(kernel, *positional, **keywords)
    except Exception as error:  # every error of a kernel becomes PyTorch's
        if (decoded := decoded_operands(op, positional)) is not None:
            return run_quietly(kernel, *decoded, **keywords)
        raise translate_error(op, error, values) from error.__cause__


def table_of_values(values):
    for value in values:
        if isinstance(value, Tensor):
            return value._tl_kernels
        if value.__class__ in (list, tuple):
            for item in value:
                if isinstance(item, Tensor):
                    return item._tl_kernels
    return None


def check_composite_args(op: Op, values: list) -> list:
    """Arguments that must be Tensors are (NumPy arrays are taken too): for composites, whose parts check the rest."""
    for position, (param, value) in enumerate(zip(op.params, values, strict=True)):
        if param.kind == "tensor" and not isinstance(value, Tensor) and not (value is None and param.default is None):
            if not isinstance(value, np.ndarray):
                raise _load_arg_parser().parser_error(op, values) or type_error(op, param, position, value)
            values = [*values[:position], array_to_tensor(value, values), *values[position + 1 :]]
        elif param.kind == "list":
            if not isinstance(value, (list, tuple)):
                raise _load_arg_parser().parser_error(op, values) or type_error(op, param, position, value)
            check_tensor_list(param, position, value)
    return values


def check_tensor_list(param, position: int, items) -> None:
    """TypeError if a list of tensors contains something else."""
    for i, item in enumerate(items):
        if not isinstance(item, Tensor) and not (item is None and param.gaps):
            raise TypeError(f"expected Tensor as element {i} in argument {position}, but got {type(item).__name__}")


def to_native_strides(array: np.ndarray) -> np.ndarray:
    """A NumPy array in a layout that tensors support: a copy if it has negative strides or foreign byte order."""
    if array.dtype.isnative and all(step >= 0 for step in array.strides):
        return array
    return array.astype(array.dtype.newbyteorder("="), order="C")


def array_to_tensor(array: np.ndarray, values):
    """A NumPy array as a Tensor on the device of the Tensors that it was given with."""
    table = table_of_values(values)
    return CALLBACKS.as_tensor(to_native_strides(array), device=None if table is None else table.device)


def check_tensors(op: Op, values: list) -> list:
    """Tensor arguments are Tensors (NumPy arrays are taken too), all on one device."""
    values = list(values)
    found = []
    for position, (param, value) in enumerate(zip(op.params, values, strict=True)):
        if not param.is_tensor:
            continue
        if param.kind == "list":
            if not isinstance(value, (list, tuple)):
                raise _load_arg_parser().parser_error(op, values) or type_error(op, param, position, value)
            items = tuple(value)
            check_tensor_list(param, position, items)
            values[position] = items
            found += [item for item in items if item is not None]
            continue
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, np.generic) and param.kind == "number":
            values[position] = value.item()
        elif isinstance(value, np.ndarray):
            values[position] = array_to_tensor(value, values)
            found.append(values[position])
        elif value is None and (param.kind == "optional" or param.default is None):
            pass
        elif param.kind == "number" and isinstance(value, PYTHON_SCALARS):
            type_promotion.check_int64(value)
        elif param.kind == "number" and hasattr(value, "__float__") and hasattr(value, "dtype"):
            values[position] = value.item()
        else:
            raise _load_arg_parser().parser_error(op, values) or type_error(op, param, position, value)
    if len(found) > 1 and any(t._tl_kernels is not found[0]._tl_kernels for t in found):
        return to_common_device(op, values, found)
    return values


def to_common_device(op: Op, values: list, found: list) -> list:
    """Move 0-d CPU tensors to the device of the other tensors. Any other mix of devices is an error."""
    target = next((t._tl_kernels for t in found if t._tl_kernels.device.type != "cpu"), found[0]._tl_kernels)
    strangers = [t for t in found if t._tl_kernels is not target]
    if any(t._tl_kernels.device.type != "cpu" or t._tl_array.ndim for t in strangers) or not op.tags & POINTWISE:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {found[0].device} and "
            f"{next(t for t in found if t._tl_kernels is not found[0]._tl_kernels).device}!"
        )
    return [v.to(target.device) if isinstance(v, Tensor) and v._tl_kernels is not target else v for v in values]


def cast_to_common_dtype(op: Op, values: list) -> list:
    """Cast the taking-part arguments to the dtype that PyTorch computes in."""
    chosen = [
        i
        for i, p in enumerate(op.params)
        if p.is_tensor and values[i] is not None and (op.promote_args is None or p.name in op.promote_args)
    ]
    flat = [v for i in chosen for v in (values[i] if values[i].__class__ is tuple else (values[i],))]
    if not flat:
        return values
    if not any(isinstance(v, Tensor) for v in flat):
        refused = _load_arg_parser().parser_error(op, values)  # most ops want one tensor at least
        if refused is not None:
            raise refused
    to = type_promotion.result_dtype(flat)
    if to.itemsize == 2 and op.scalar_rounding == "never" and len(flat) == 2:
        values = _unwrap_wide_scalars(values, chosen, to)
    if op.promote == INT_TO_FLOAT and to.category < 2:
        to = get_default_dtype()
    cast = CALLBACKS.F.to
    values = list(values)
    for i in chosen:
        value = values[i]
        if value.__class__ is tuple:
            values[i] = tuple(v if v.dtype is to else hide_node(cast(v, to)) for v in value)
        elif isinstance(value, Tensor):
            values[i] = value if value.dtype is to else hide_node(cast(value, to))
        elif op.params[i].name in op.numbers:
            values[i] = type_promotion.cast_scalar(value, to, infinite=op.numbers[op.params[i].name])
        else:
            values[i] = type_promotion.as_category(value, to)
    if not any(isinstance(v, Tensor) for v in flat):
        first = chosen[0]
        table = table_of_values(values) or table_of(get_default_device())
        values[first] = wrap_array(table, run_quietly(table._full, (), values[first], to), to)
    elif op.tags & POINTWISE and len(chosen) == 2 and (to.name in _EXTRA or to is float16):
        _round_scalars_to_half(op, values, chosen, to)
    return values


def hide_node(tensor):
    """The tensor, of which PyTorch shows no node."""
    if tensor._tl_node.__class__ is Node:
        tensor._tl_node._shown = TRANSPARENT
    return tensor


def _unwrap_wide_scalars(values: list, chosen: list, to: dtype) -> list:
    """On the CPU, convert a 0-d tensor that is wider than half-precision operands to its number."""

    def unwrap_scalar(value):
        if not isinstance(value, Tensor) or value._tl_node is not None or value.dtype.category != FLOAT:
            return value
        return value if value._tl_array.ndim or value.dtype.itemsize <= 2 else value.item()

    if table_of_values(values).in_float32 is None:
        return values
    return [unwrap_scalar(value) if i in chosen else value for i, value in enumerate(values)]


def _round_scalars_to_half(op: Op, values: list, chosen: list, to: dtype) -> None:
    """Round Python numbers to the operands' half-precision dtype, as arrays, for kernels that do not round them."""
    table = table_of_values(values)
    if (
        to in table.scalar_dtypes
        and op.scalar_rounding != "always"
        or to.category == FLOAT
        and op.scalar_rounding == "never"
        and table.in_float32 is not None
    ):
        return
    for i in chosen:
        if not isinstance(values[i], Tensor):
            values[i] = wrap_array(table, run_quietly(table._full, (), values[i], to), to)


def wrap_and_record(op: Op, table, values, data):
    """Wrap a kernel's result and record how it came about."""
    wants = MODE.grad and not op.tags & NONDIFF and any_requires_grad(values)
    if op.tags & (VIEW | MAYBE_VIEW):
        return _wrap_view_and_record(op, table, values, data, wants)
    if op.aux_outputs:
        out = wrap_array(table, data[0])
        if wants and out.dtype.category >= 2:
            record_node(op, table, values, (out,), tuple(data[1:]))
        return out
    if op.outputs is None and data.__class__ is not tuple and data.__class__ is not list:
        out = wrap_array(table, data)
        if wants and out.dtype.category >= 2:
            record_node(op, table, values, (out,))
        return out
    outs = tuple(None if d is None else wrap_array(table, d) for d in data)
    if wants:
        record_node(op, table, values, outs)
    return op.result_type(outs) if op.outputs else outs


def _wrap_view_and_record(op, table, values, data, wants):
    source = values[0]
    if data is source._tl_array and op.tags & MAYBE_VIEW:
        return source
    several = data.__class__ in (tuple, list)
    outs = tuple(wrap_array(table, d) for d in (data if several else (data,)))
    kind = "inference" if MODE.inference else None if MODE.grad else "no_grad"
    for out in outs:
        if op.tags & VIEW or is_view(out._tl_array, source._tl_array):
            out._tl_meta = view_meta(source, kind or ("multi_output" if several else None))
            if kind is not None and source.requires_grad:
                out._tl_node = REQUIRES_GRAD_DETACHED
    if wants and outs[0].dtype.category >= 2:
        record_node(op, table, values, outs)
    return outs if several else outs[0]


def finish_unrecorded(op: Op, table, values, result, hidden: tuple = ()) -> None:
    """Complete an op that is not recorded: inference mode marks the results, and an input that is a view may have a
    stale history.
    """
    if MODE.inference:
        if result._tl_meta is None:
            result._tl_meta = AutogradMeta()
            result._tl_meta.inference = True
    elif MODE.grad and regenerate_stale_views(values) and not op.tags & NONDIFF and result.dtype.category >= 2:
        record_node(op, table, values, (result,), hidden)


def any_requires_grad(values) -> bool:
    if STALE_VIEW_CHECKS:
        regenerate_stale_views(values)
    for value in values:
        if isinstance(value, Tensor):
            if value._tl_node is not None:
                return True
        elif value.__class__ in (list, tuple):
            for item in value:
                if (item.__class__ is Tensor or isinstance(item, Tensor)) and item._tl_node is not None:
                    return True
    return False


def find_names_requiring_grad(op: Op, values) -> set:
    """The tensor arguments that want a gradient, by name."""
    return {p.name for p, value in zip(op.params, values, strict=True) if p.is_tensor and any_requires_grad((value,))}


def refuse_gradient(op: Op, name: str) -> NoReturn:
    """Raise PyTorch's error for an argument that requires a gradient and has no derivative."""
    function = op.function_name.removesuffix("_core")
    raise RuntimeError(
        f"The function '{function}' is not differentiable with respect to argument '{name}'. This input cannot have "
        "requires_grad True."
    )


def record_node(op: Op, table, values, outs, hidden: tuple = ()) -> None:
    """Make the node of an op that ran and hang it on its outputs; `hidden` are raw values that its formulas see as
    further outputs.
    """
    edges: list[Any] = []
    by_name: dict[str, Any] = {}
    for param, value in zip(op.params, values, strict=True):
        by_name[param.name] = value
        if not param.is_tensor:
            continue
        if param.name in op.inputs_without_formula and any_requires_grad((value,)):
            refuse_gradient(op, param.name)
        if param.kind == "list":
            each = tuple(None if v is None or v._tl_node is None else gradient_edge(v) for v in value)
            edges.append(None if all(e is None for e in each) else each)
        else:
            edges.append(gradient_edge(value) if isinstance(value, Tensor) and value._tl_node is not None else None)
    plan = op.saved_variables
    saved: list[Any] = []
    versions: list[Any] = []
    differentiable = {p.name for p, e in zip(op.tensor_params, edges, strict=True) if e is not None}
    for name, kind, users in plan.saves:
        value = by_name[name]
        if differentiable.isdisjoint(users):
            value = None
        elif kind == "shape":
            value = (
                tuple(tuple(v.shape) for v in value)
                if value.__class__ is tuple
                else None
                if value is None
                else value._tl_array.shape
                if isinstance(value, Tensor)
                else ()
            )
        elif kind == "dtype":
            value = tuple(v.dtype for v in value) if value.__class__ is tuple else getattr(value, "dtype", None)
        if kind == "value" and GLOBALS["INTERCEPTORS"] and isinstance(value, Tensor):
            value = pack_saved_tensor(value, None if value._tl_node is None else gradient_edge(value)) or value
        if kind == "value" and value.__class__ is tuple:
            versions.append(tuple(version_of(v) if isinstance(v, Tensor) else 0 for v in value))
        else:
            versions.append(version_of(value) if isinstance(value, Tensor) else 0)
        saved.append(value)
    node = make_node(op, tuple(edges), tuple(saved), tuple(versions), table)
    set_outputs(node, op, outs, differentiable, hidden)
    for param, value in zip(op.params, values, strict=True):
        if (param.kind == "number" or param.name in op.numbers) and isinstance(value, PYTHON_SCALARS):
            node._shown = param.name
    hooks = GLOBALS["NODE_CREATED_HOOK"]
    if hooks is not None:
        hooks(node)


def set_outputs(node, op: Op, outs, wanted: set, hidden: tuple = ()) -> None:
    """Make `outs` the outputs of `node`, keeping the raw outputs that the formulas of the wanted inputs need."""
    _hang_on_outputs(node, op, outs)
    keeps = {i for i, users in op.saved_variables.keeps.items() if not wanted.isdisjoint(users)}
    if keeps:
        node._out = (
            *(_save_output(op, i, out) if i in keeps else None for i, out in enumerate(outs)),
            *(
                _save_aux_output(node._tl_kernels, out) if i in keeps else None
                for i, out in enumerate(hidden, len(outs))
            ),
        )
        node._counter = tuple(
            (autograd_meta_of(out), version_of(out)) if i in keeps else None for i, out in enumerate(outs)
        ) + (None,) * len(hidden)


def _hang_on_outputs(node, op: Op, outs) -> None:
    if len(outs) == 1 and op.outputs is None and not op.multi_output:
        node._shape = outs[0]._tl_array.shape
        outs[0]._tl_node = node
        return
    node._shape = tuple(None if o is None else o._tl_array.shape for o in outs)
    for i, out in enumerate(outs):
        if out is not None and i not in op.nondiff and out.dtype.category >= 2:
            out._tl_node = OutputEdge(node, i)


def _save_output(op, index, out):
    if not GLOBALS["INTERCEPTORS"]:
        return out._tl_array
    where = -1 if op.outputs is None and not op.multi_output else index if index not in op.nondiff else None
    return pack_saved_tensor(out, where) or out._tl_array


def _save_aux_output(table, raw):
    if not GLOBALS["INTERCEPTORS"] or raw.__class__ is not table.array:
        return raw
    return pack_saved_tensor(wrap_array(table, raw), None) or raw


# -- creation -------------------------------------------------------------------


def create_tensor(name: str, *args, device: device | str | None = None, requires_grad: bool = False, **kwargs):
    """A new Tensor from the creation kernel `name` of a device: `create("_full", (2, 3), 1.0,
    float32, device=None)`.
    """
    if GLOBALS["INTERCEPTORS"] and stack.items:
        return call_interceptor(
            REGISTRY[name],
            lambda *a, **k: create_tensor(name, *a, **k),
            args,
            {"device": device, "requires_grad": requires_grad, **kwargs},
        )
    where = get_default_device() if device is None else _resolve_device(device)
    table = table_of(where)
    try:
        out = wrap_array(table, run_quietly(getattr(table, name), *args, **kwargs))
    except Exception as error:  # every error of a kernel becomes PyTorch's
        op = REGISTRY[name]
        raise translate_error(op, error, bind(op, args, dict(kwargs))) from error.__cause__
    if FLAGS.deterministic and FLAGS.fill_uninitialized_memory and REGISTRY[name].tags & UNINITIALIZED:
        fill_uninitialized(out)
    return set_requires_grad(out) if requires_grad else out


def _resolve_device(where) -> device:
    return where if where.__class__ is device else device(where)
