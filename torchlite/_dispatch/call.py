"""The general path of a call: interceptors, subclasses, argument checks, promotion, several
outputs, in-place and out=.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._settings.switches import SWITCHES
from .._types.devices import device, get_default_device
from .._types.dtypes import _EXTRA, FLOAT, bool_, dtype, float16, get_default_dtype
from .._types.layouts import Size
from . import promotion
from .backend import is_view
from .checks import wanting
from .errors import explained, of_composite, plain_values, type_error
from .graph import (
    Meta,
    OutputOf,
    alias_meta,
    base_of,
    bump,
    edge,
    is_inference,
    keep_retaining,
    kind_of,
    late,
    make_node,
    meta_of,
    positions,
    rebased,
    refuse_inference,
    renew_history,
    root_of,
    version,
    view_meta,
    watch_late,
    without_hooks,
    write,
)
from .hooks import pack
from .interceptors import (
    Writing,
    any_sparse,
    as_called,
    dispatching_classes,
    intercepted,
    overridden,
    overriding,
    stack,
)
from .outputs import check_fits, check_operands, check_target_dtype, fill_uninitialized, write_results, written_at_once
from .overlap import check_in_place, set_together
from .record import ABSENT, ALWAYS_BOOL, EMPTY, INT_TO_FLOAT, MAYBE_VIEW, NONDIFF, POINTWISE, REGISTRY, VIEW, Op
from .registry import table_of
from .runtime import GLOBALS, LEAF, MODE, NOWHERE, WATCHED, recording
from .shapes import broadcast
from .slots import SLOTS

new = object.__new__
NUMBERS = (int, float, complex)
Tensor: Any = None  # handed over by `take_classes`; module globals, since every wrapped result reads one
Parameter: Any = None
set_dtype: Any = None  # writes a tensor's dtype where its class may have a property of that name


def take_classes(tensor: type, parameter: type) -> None:
    """The classes of tensors, from `torchlite._tensor`, which stands on this module."""
    global Tensor, Parameter, set_dtype
    Tensor, Parameter = tensor, parameter
    set_dtype = tensor.dtype.__set__  # type: ignore[attr-defined]
    GLOBALS.update(Tensor=tensor, Parameter=parameter, Size=Size, bool_=bool_)


def wrap(table, data, d: dtype | None = None):
    """A Tensor over a raw array, without checks."""
    if data.__class__ is not table.array:
        data = table.as_array(data)
    out = new(Tensor)
    out._data = data
    out._table = table
    out.dtype = table.dtype_of(data) if d is None else d
    out._node = out._meta = None
    if WATCHED and MODE.inference:
        out._meta = Meta()
        out._meta.inference = True
    return out


def general(op: Op, function, args: tuple, kwargs: dict, more: tuple = ()):
    """Any call that the fast path does not take. `args` and `kwargs` are the caller's, ABSENT where an argument was not
    given; `more` is what no parameter of the record is for.
    """
    args, kwargs = _sorted_out(op, args, kwargs, more)
    if GLOBALS["ACTIVE"] and stack.items:
        return intercepted(op, function, args, kwargs)
    return _below(op, function, args, kwargs)


def below(op: Op, function, args: tuple, kwargs: dict, more: tuple = ()):
    """The general path below the interceptors."""
    return _below(op, function, *_sorted_out(op, args, kwargs, more))


def _parser():
    """PyTorch's signatures: loaded when a call is not in the record's form."""
    from . import signatures

    return signatures


def _sorted_out(op: Op, args: tuple, kwargs: dict, more: tuple) -> tuple[tuple, dict]:
    """The arguments as the record takes them, where they came in another form."""
    if more and (
        any(value is not None for value in more)
        or any(value is ABSENT for value in args)
        or any(value is ABSENT for value in kwargs.values())
    ):
        return _parser().in_any_form(op, args, kwargs, op.numpy_names, more)
    return args, kwargs


def _below(op: Op, function, args: tuple, kwargs: dict):
    out = kwargs.pop("out", None) if op.has_out else None
    bound = bind(op, args, dict(kwargs))
    if overriding(bound) is not None:
        args, kwargs = as_called(op, args, kwargs)
        return overridden(function, bound, args, kwargs if out is None else {**kwargs, "out": out})
    classes = dispatching_classes(bound)
    if classes and op.is_implicit and op.name[-1] != "_":  # whose parts they see
        classes = tuple(cls for cls in classes if cls._takes_records)
    if classes:
        if out is not None:
            raise NotImplementedError(f"{classes[0].__name__} has __torch_dispatch__, which knows no out=")
        return SLOTS.dispatched(op, bound, classes)
    if out is not None and written_at_once(op, bound, out, guarded):
        return out
    try:
        result = execute(op, bound)
    except (TypeError, AttributeError, ValueError):
        plain = plain_values(op, bound)
        if plain is None:
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
            raise TypeError(f'{op.name.lstrip("_")}() missing 1 required positional arguments: "{missing}"')
    if len(args) > len(positional):
        raise TypeError(
            f"{op.name.lstrip('_')}() takes from {sum(p.default is EMPTY for p in positional)} to {len(positional)} "
            f"positional arguments but {len(args)} were given"
        )
    if kwargs:
        raise TypeError(f"{op.name.lstrip('_')}() got an unexpected keyword argument '{next(iter(kwargs))}'")
    return values


def execute(op: Op, values: list):
    """Run an op on bound values: below interceptors and subclasses."""
    if GLOBALS["SPARSE"] and any_sparse(values):
        found = SLOTS.sparse("run")(op, values)
        if found is not NotImplemented:
            return found
    if op.is_implicit:
        values = check_kinds(op, values)
        try:
            return op.composite(SLOTS.F, *values)
        except Exception as error:
            raise of_composite(op, error, values) from error.__cause__
    values = check_tensors(op, values)
    if op.check is not None:
        op.check(*values)
    if op.sparse_flag:
        asked = next(position for position, p in enumerate(op.params) if p.name == op.sparse_flag)
        if values[asked]:
            return SLOTS.sparse("looked_up")(op, [*values[:asked], False, *values[asked + 1 :]])
    if GLOBALS["SIGNED"]:  # somebody has a tensor with the conjugate or negative bit
        if op.tags & (VIEW | MAYBE_VIEW) and getattr(values[0], "_signs", 0):
            return SLOTS.view_of_signed(op, values)
        values = [SLOTS.plain(v) for v in values]
    if op.promote is not None:
        values = promote(op, values)
    if op.numbers:
        values = held(op, values)
    table = table_among(values) or table_of(get_default_device())
    raw = [raw_value(v) for v in values]
    data = call_kernel(op, table, raw, values)
    return finish(op, table, values, data)


def held(op: Op, values: list) -> list:
    """The values with numbers that the dtype of the first tensor holds; RuntimeError for others."""
    to = next((v.dtype for v in values if isinstance(v, Tensor)), None)
    if to is None:
        return values
    return [
        promotion.number_in(v, to, infinite=op.numbers[p.name])
        if p.name in op.numbers and isinstance(v, NUMBERS)
        else v
        for p, v in zip(op.params, values, strict=True)
    ]


def raw_value(value):
    """A Tensor's raw array; lists of Tensors likewise; the rest as it is."""
    if isinstance(value, Tensor):
        return value._data
    if value.__class__ in (list, tuple) and value and any(isinstance(v, Tensor) for v in value):
        return [raw_value(v) for v in value]
    return value


def raw_of_alike(items):
    """The raw arrays of plain tensors of one dtype on one device; None for any others."""
    first = items[0]
    if first.__class__ is not Tensor and first.__class__ is not Parameter:
        return None
    table, d = first._table, first.dtype
    for item in items:
        if (
            (item.__class__ is not Tensor and item.__class__ is not Parameter)
            or item._table is not table
            or item.dtype is not d
        ):
            return None
    return [item._data for item in items]


def call_kernel(op: Op, table, raw, values):
    positional = [r for r, p in zip(raw, op.params, strict=True) if not p.kwonly]
    keywords = {p.name: r for r, p in zip(raw, op.params, strict=True) if p.kwonly}
    kernel = getattr(table.suited(positional[0]) if positional else table, op.name)
    if op.name in _WITH_NUMBERS and table.in_float32 is not None:
        kernel = table.in_float32(kernel)
    try:
        return kernel(*positional, **keywords)
    except Exception as error:
        raise explained(op, error, values) from error.__cause__


def table_among(values):
    for value in values:
        if isinstance(value, Tensor):
            return value._table
        if value.__class__ in (list, tuple):
            for item in value:
                if isinstance(item, Tensor):
                    return item._table
    return None


def check_kinds(op: Op, values: list) -> list:
    """Arguments that must be Tensors are (NumPy arrays are taken too): for composites, whose parts check the rest."""
    for position, (param, value) in enumerate(zip(op.params, values, strict=True)):
        if param.kind == "tensor" and not isinstance(value, Tensor) and not (value is None and param.default is None):
            if not isinstance(value, np.ndarray):
                raise _parser().refusal(op, values) or type_error(op, param, position, value)
            values = [*values[:position], _beside(value, values), *values[position + 1 :]]
        elif param.kind == "list":
            if not isinstance(value, (list, tuple)):
                raise _parser().refusal(op, values) or type_error(op, param, position, value)
            check_items(param, position, value)
    return values


def check_items(param, position: int, items) -> None:
    """TypeError where a list of tensors holds something else."""
    for i, item in enumerate(items):
        if not isinstance(item, Tensor) and not (item is None and param.gaps):
            raise TypeError(f"expected Tensor as element {i} in argument {position}, but got {type(item).__name__}")


def tidied(array: np.ndarray) -> np.ndarray:
    """A NumPy array as a tensor can hold it: a copy of one with negative steps or another machine's byte order."""
    if array.dtype.isnative and all(step >= 0 for step in array.strides):
        return array
    return array.astype(array.dtype.newbyteorder("="), order="C")


def _beside(array: np.ndarray, values):
    """A NumPy array as a Tensor on the device of the Tensors that it was given with."""
    table = table_among(values)
    return SLOTS.as_tensor(tidied(array), device=None if table is None else table.device)


def check_tensors(op: Op, values: list) -> list:
    """Tensor arguments are Tensors (NumPy arrays are taken too), all on one device."""
    values = list(values)
    found = []
    for position, (param, value) in enumerate(zip(op.params, values, strict=True)):
        if not param.is_tensor:
            continue
        if param.kind == "list":
            if not isinstance(value, (list, tuple)):
                raise _parser().refusal(op, values) or type_error(op, param, position, value)
            items = tuple(value)
            check_items(param, position, items)
            values[position] = items
            found += [item for item in items if item is not None]
            continue
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, np.generic) and param.kind == "number":
            values[position] = value.item()
        elif isinstance(value, np.ndarray):
            values[position] = _beside(value, values)
            found.append(values[position])
        elif value is None and (param.kind == "optional" or param.default is None):
            pass
        elif param.kind == "number" and isinstance(value, NUMBERS):
            promotion.in_64_bits(value)
        elif param.kind == "number" and hasattr(value, "__float__") and hasattr(value, "dtype"):
            values[position] = value.item()
        else:
            raise _parser().refusal(op, values) or type_error(op, param, position, value)
    if len(found) > 1 and any(t._table is not found[0]._table for t in found):
        return one_device(op, values, found)
    return values


def one_device(op: Op, values: list, found: list) -> list:
    """A 0-d CPU tensor goes along with another device's tensors; anything else mixed is an error."""
    target = next((t._table for t in found if t._table.device.type != "cpu"), found[0]._table)
    strangers = [t for t in found if t._table is not target]
    if any(t._table.device.type != "cpu" or t._data.ndim for t in strangers) or not op.tags & POINTWISE:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {found[0].device} and "
            f"{next(t for t in found if t._table is not found[0]._table).device}!"
        )
    return [v.to(target.device) if isinstance(v, Tensor) and v._table is not target else v for v in values]


def promote(op: Op, values: list) -> list:
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
        refused = _parser().refusal(op, values)  # most ops want one tensor at least
        if refused is not None:
            raise refused
    to = promotion.result_dtype(flat)
    if to.itemsize == 2 and op.name in _WITH_NUMBERS and len(flat) == 2:
        values = _numbers_of(values, chosen, to)
    if op.promote == INT_TO_FLOAT and to.category < 2:
        to = get_default_dtype()
    cast = SLOTS.F.to
    values = list(values)
    for i in chosen:
        value = values[i]
        if value.__class__ is tuple:
            values[i] = tuple(v if v.dtype is to else cast(v, to) for v in value)
        elif isinstance(value, Tensor):
            values[i] = value if value.dtype is to else cast(value, to)
        elif op.params[i].name in op.numbers:
            values[i] = promotion.number_in(value, to, infinite=op.numbers[op.params[i].name])
        else:
            values[i] = promotion.as_category(value, to)
    if not any(isinstance(v, Tensor) for v in flat):
        first = chosen[0]
        table = table_among(values) or table_of(get_default_device())
        values[first] = wrap(table, table._full((), values[first], to), to)
    elif op.tags & POINTWISE and len(chosen) == 2 and (to.name in _EXTRA or to is float16):
        _round_numbers(op, values, chosen, to)
    return values


def _numbers_of(values: list, chosen: list, to: dtype) -> list:
    """A 0-d tensor of more precision beside half precision counts as the number that it holds, on the CPU."""

    def number(value):
        if not isinstance(value, Tensor) or value._node is not None or value.dtype.category != FLOAT:
            return value
        return value if value._data.ndim or value.dtype.itemsize <= 2 else value.item()

    if table_among(values).in_float32 is None:
        return values
    return [number(value) if i in chosen else value for i, value in enumerate(values)]


def _round_numbers(op: Op, values: list, chosen: list, to: dtype) -> None:
    """Python numbers beside half precision as arrays of its dtype, where the kernel does not take them as they are."""
    table = table_among(values)
    if (
        to in table.takes_numbers
        and op.name not in promotion.ROUNDED
        or to.category == FLOAT
        and op.name in _WITH_NUMBERS
        and table.in_float32 is not None
    ):
        return
    for i in chosen:
        if not isinstance(values[i], Tensor):
            values[i] = wrap(table, table._full((), values[i], to), to)


# The ops that take a number beside half precision as it is, on the CPU too; others round it first there.
_WITH_NUMBERS = frozenset(("mul", "div", "floor_divide", "_floor_divide", "_trunc_divide"))


def finish(op: Op, table, values, data):
    """Wrap a kernel's result and record how it came about."""
    wants = MODE.grad and not op.tags & NONDIFF and _any_wants(values)
    if op.tags & (VIEW | MAYBE_VIEW):
        return _finish_view(op, table, values, data, wants)
    if op.hidden:
        out = wrap(table, data[0])
        if wants and out.dtype.category >= 2:
            record(op, table, values, (out,), tuple(data[1:]))
        return out
    if op.outputs is None and data.__class__ is not tuple and data.__class__ is not list:
        out = wrap(table, data)
        if wants and out.dtype.category >= 2:
            record(op, table, values, (out,))
        return out
    outs = tuple(None if d is None else wrap(table, d) for d in data)
    if wants:
        record(op, table, values, outs)
    return op.result_type(outs) if op.outputs else outs


def _finish_view(op, table, values, data, wants):
    source = values[0]
    if data is source._data and op.tags & MAYBE_VIEW:
        return source
    several = data.__class__ in (tuple, list)
    outs = tuple(wrap(table, d) for d in (data if several else (data,)))
    kind = "inference" if MODE.inference else None if MODE.grad else "no_grad"
    for out in outs:
        if op.tags & VIEW or is_view(out._data, source._data):
            out._meta = view_meta(source, kind or ("multi_output" if several else None))
            if kind is not None and source.requires_grad:
                out._node = NOWHERE
    if wants:
        record(op, table, values, outs)
    return outs if several else outs[0]


def watched(op: Op, table, values, result, hidden: tuple = ()) -> None:
    """What the hot path leaves out where an op is not recorded: inference mode marks its tensors, and an input may have
    a history that came by way of another view.
    """
    if MODE.inference:
        if result._meta is None:
            result._meta = Meta()
            result._meta.inference = True
    elif MODE.grad and late(values) and not op.tags & NONDIFF and result.dtype.category >= 2:
        record(op, table, values, (result,), hidden)


def _any_wants(values) -> bool:
    if WATCHED:
        late(values)
    for value in values:
        if isinstance(value, Tensor):
            if value._node is not None:
                return True
        elif value.__class__ in (list, tuple):
            for item in value:
                if isinstance(item, Tensor) and item._node is not None:
                    return True
    return False


def wanted_names(op: Op, values) -> set:
    """The tensor arguments that want a gradient, by name."""
    return {p.name for p, value in zip(op.params, values, strict=True) if p.is_tensor and _any_wants((value,))}


def record(op: Op, table, values, outs, hidden: tuple = ()) -> None:
    """Make the node of an op that ran and hang it on its outputs; `hidden` are raw values that its formulas see as
    further outputs.
    """
    edges: list[Any] = []
    by_name: dict[str, Any] = {}
    for param, value in zip(op.params, values, strict=True):
        by_name[param.name] = value
        if not param.is_tensor:
            continue
        if param.kind == "list":
            each = tuple(None if v is None or v._node is None else edge(v) for v in value)
            edges.append(None if all(e is None for e in each) else each)
        else:
            edges.append(edge(value) if isinstance(value, Tensor) and value._node is not None else None)
    plan = op.plan
    saved: list[Any] = []
    versions: list[Any] = []
    wanted = {p.name for p, e in zip(op.tensor_params, edges, strict=True) if e is not None}
    for name, kind, users in plan.saves:
        value = by_name[name]
        if wanted.isdisjoint(users):
            value = None
        elif kind == "shape":
            value = (
                tuple(tuple(v.shape) for v in value)
                if value.__class__ is tuple
                else None
                if value is None
                else value._data.shape
                if isinstance(value, Tensor)
                else ()
            )
        elif kind == "dtype":
            value = tuple(v.dtype for v in value) if value.__class__ is tuple else getattr(value, "dtype", None)
        if kind == "value" and GLOBALS["ACTIVE"] and isinstance(value, Tensor):
            value = pack(value, None if value._node is None else edge(value)) or value
        if kind == "value" and value.__class__ is tuple:
            versions.append(tuple(version(v) if isinstance(v, Tensor) else 0 for v in value))
        else:
            versions.append(version(value) if isinstance(value, Tensor) else 0)
        saved.append(value)
    node = make_node(op, tuple(edges), tuple(saved), tuple(versions), table)
    link(node, op, outs, wanted, hidden)
    hooks = GLOBALS["NODE_MADE"]
    if hooks is not None:
        hooks(node)


def link(node, op: Op, outs, wanted: set, hidden: tuple = ()) -> None:
    """Make `outs` the outputs of `node`, keeping the raw outputs that the formulas of the wanted inputs need."""
    keeps = {i for i, users in op.plan.keeps.items() if not wanted.isdisjoint(users)}
    if keeps:
        node._out = (
            *(_kept(op, i, out) if i in keeps else None for i, out in enumerate(outs)),
            *(_kept_beside(node._table, out) if i in keeps else None for i, out in enumerate(hidden, len(outs))),
        )
        node._counter = tuple((meta_of(out), version(out)) if i in keeps else None for i, out in enumerate(outs)) + (
            None,
        ) * len(hidden)
    if len(outs) == 1 and op.outputs is None and not op.several:
        node._shape = outs[0]._data.shape
        outs[0]._node = node
        return
    node._shape = tuple(None if o is None else o._data.shape for o in outs)
    for i, out in enumerate(outs):
        if out is not None and i not in op.nondiff and out.dtype.category >= 2:
            out._node = OutputOf(node, i)


def _kept(op, index, out):
    if not GLOBALS["ACTIVE"]:
        return out._data
    where = -1 if op.outputs is None and not op.several else index if index not in op.nondiff else None
    return pack(out, where) or out._data


def _kept_beside(table, raw):
    if not GLOBALS["ACTIVE"] or raw.__class__ is not table.array:
        return raw
    return pack(wrap(table, raw), None) or raw


# -- in place and out= ---------------------------------------------------------


def in_place(op: Op, args: tuple, kwargs: dict):
    """`self.op_(...)`: the result of the op written into its first argument."""
    if GLOBALS["ACTIVE"] and stack.items:
        return intercepted(op, Writing(in_place, op), args, kwargs)
    try:
        values = bind(op, args, dict(kwargs))
    except TypeError:
        values = bind(op, *_parser().in_place_form(op, args, kwargs))
    target = values[0]
    plain = target.__class__ is Tensor or target.__class__ is Parameter
    if (not plain or GLOBALS["DISPATCHES"]) and (classes := dispatching_classes(values)):
        return SLOTS.dispatched(op, values, classes, True)
    if GLOBALS["GUARDED"]:
        guarded(target)
    if GLOBALS["SPARSE"] and any_sparse(values):
        return SLOTS.sparse("run_in_place")(op, values)
    wants = MODE.grad and (target._node is not None or (_any_wants(values) and not op.tags & NONDIFF))
    if wants:
        check_writable(target)
    # (`_setitem` knows what part it writes, and checks that.)
    together = op.name != "_setitem" and check_in_place(op.name, values)
    if together and not wants:
        set_together(op, values)
        bump(target)
        return target
    table, name = target._table, op.name + "_"
    direct = getattr(table, name, None)
    touches = wants and op.plan.touches_target(wanted_names(op, values))
    if direct is not None and not touches and not target._signs:
        found = _direct(op, values, target, table, direct, wants)
        if found is not None:
            return found
    check_operands(op, values)
    before = _alias(target) if wants else target
    if wants and (op.is_implicit or touches):
        # A formula may need what the write is about to replace.
        before._data, before._meta = table.clone(target._data), None if before._node is not LEAF else before._meta
    with recording(wants):
        result = execute(op, [before, *values[1:]])
        if wants and op.tags & NONDIFF and result._node is None:
            result = SLOTS.F._drawn_over(before, SLOTS.F.to(result, target.dtype), op.name)
    return assign(op, target, result, before)


def _direct(op, values, target, table, kernel, wants):
    """In place by the backend's own in-place kernel, where no cast is needed; None where one is."""
    if op.composite is None or op._vjp is not None:
        values = check_tensors(op, values)
    if (
        op.promote is not None
        and promotion.result_dtype(
            [
                v
                for v, p in zip(values, op.params, strict=True)
                if p.is_tensor and v is not None and (op.promote_args is None or p.name in op.promote_args)
            ]
        )
        is not target.dtype
    ):
        return None
    if (
        op.promote == ALWAYS_BOOL
        and target.dtype is not bool_
        or op.promote == INT_TO_FLOAT
        and target.dtype.category < 2
    ):
        return None
    if op.promote is not None:
        values = [target, *promote(op, values)[1:]]
        if any(isinstance(v, Tensor) and v._data.ndim > target._data.ndim for v in values[1:]):
            return None
    if op.name in _WITH_NUMBERS and target.dtype.itemsize == 2 and table.in_float32 is not None:
        return None
    before = _alias(target) if wants else None
    if op.numbers:
        values = held(op, values)
    positional = [raw_value(r) for r, p in zip(values, op.params, strict=True) if not p.kwonly]
    keywords = {p.name: raw_value(r) for r, p in zip(values, op.params, strict=True) if p.kwonly}
    try:
        kernel(*positional, **keywords)
    except Exception as error:
        if op.tags & POINTWISE:
            check_fits(target, broadcast(*(v._data.shape for v in values if isinstance(v, Tensor))))
        raise explained(op, error, values) from error.__cause__
    if wants:
        result = _alias(target)
        result._node = None
        record(op, table, [before, *values[1:]], (result,))
        return rebase(target, result)
    bump(target)
    return target


# Called with the target before a write, while GUARDED is up.
BEFORE_WRITES: list[Any] = []


def before_write(target) -> None:
    """What others do before a tensor's memory is written, or given to who may write there."""
    for look in BEFORE_WRITES:
        look(target)


def guarded(target) -> bool:
    """Before a write: whether the target has a history, which may have come by way of another view. RuntimeError for an
    inference tensor outside inference mode.
    """
    if not MODE.inference and is_inference(target):
        refuse_inference()
    if MODE.grad:
        late((target,))
    before_write(target)
    return target._node is not None and MODE.grad


def _alias(tensor):
    """The tensor as it is now: same data, version and history, another object."""
    out = new(Tensor)
    out._data, out._table, out.dtype, out._node = tensor._data, tensor._table, tensor.dtype, tensor._node
    if tensor._node is not None:
        out._node = edge(tensor)
        if out._node is tensor:
            out._node = LEAF
        elif base_of(tensor) is not None:
            out._node = without_hooks(out._node)
    out._meta = alias_meta(tensor)
    return out


def check_writable(target) -> None:
    """PyTorch's errors for in-place ops on leaves, and ours for what `rebase` cannot follow: before anything is
    written.
    """
    kind = kind_of(target)
    if kind is not None:
        from .checks import refuse_view

        refuse_view(kind, target, "is being")
    base = base_of(target)
    if base is not None and (base._node is LEAF or base._node is None and target._node is LEAF):
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if target._node is LEAF:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def assign(op: Op, target, result, before):
    """Write a computed result into `target` with its history."""
    sending = GLOBALS["ACTIVE"] and any(item.is_forward for item in stack.items)
    if target._level is not None or result._level is not None or sending:
        return in_place(REGISTRY["_copy"], (target, result), {})
    check_target_dtype(op, result.dtype, target.dtype)
    if result._data.shape != target._data.shape:
        check_fits(target, broadcast(result._data.shape, target._data.shape))
        result = result.expand(target._data.shape)
    if result.dtype is not target.dtype:
        result = SLOTS.F.to(result, target.dtype)
    write(target, result._data)
    if not MODE.grad or (result._node is None and target._node is None):
        bump(target)
        return target
    return rebase(target, result)


def rebase(target, result):
    """Give `target`, whose memory now holds `result`, the history of `result`; through a view, the base too."""
    node, base = result._node, base_of(target)
    bump(target)
    owner = target if base is None else base
    if owner._node is None and node is not None and not root_of(owner).late:
        root_of(owner).late = True
        watch_late(owner)
    rebased(target)
    if base is not None and (node is not None or base._node is not None):
        index = positions(target)
        signs = target._signs ^ base._signs
        part = new(Tensor)
        part._data, part._table, part.dtype, part._node, part._meta = (
            target._data,
            target._table,
            target.dtype,
            SLOTS.with_signs(result, signs)._node if signs else node,
            None,
        )
        before = _alias(base)
        with recording(True):
            record(SLOTS.copy_slices, target._table, [before, part, index], (base,))
        keep_retaining(base, base._node, before._node)
        renew_history(target)
    else:
        keep_retaining(target, node)
        target._node = node
    return target


def write_out(op: Op, result, out, values=()):
    """out=: results written into given tensors; `values` are the op's arguments."""
    if GLOBALS["SPARSE"] and any_sparse((result, out)):
        return SLOTS.sparse("write_out")(result, out)
    if GLOBALS["GUARDED"]:
        for tensor in out if out.__class__ in (tuple, list) else (out,):
            if isinstance(tensor, Tensor):
                guarded(tensor)
    return write_results(op, result, out, values)


# -- creation -------------------------------------------------------------------


def create(name: str, *args, device: device | str | None = None, requires_grad: bool = False, **kwargs):
    """A new Tensor from the creation kernel `name` of a device: `create("_full", (2, 3), 1.0,
    float32, device=None)`.
    """
    if GLOBALS["ACTIVE"] and stack.items:
        return intercepted(
            REGISTRY[name],
            lambda *a, **k: create(name, *a, **k),
            args,
            {"device": device, "requires_grad": requires_grad, **kwargs},
        )
    where = get_default_device() if device is None else _device(device)
    table = table_of(where)
    try:
        out = wrap(table, getattr(table, name)(*args, **kwargs))
    except Exception as error:
        op = REGISTRY[name]
        raise explained(op, error, bind(op, args, dict(kwargs))) from error.__cause__
    if name == "_empty" and SWITCHES.deterministic and SWITCHES.fill_uninitialized_memory:
        fill_uninitialized(out)
    return wanting(out) if requires_grad else out


def _device(where) -> device:
    return where if where.__class__ is device else device(where)
