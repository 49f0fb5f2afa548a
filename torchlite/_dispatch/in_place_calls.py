"""In-place calls: the result of an op written into its first argument, with its history."""

from __future__ import annotations

from .._types.dtypes import bool_
from . import call, type_promotion
from .autograd_graph import (
    alias_meta,
    base_of,
    bump_version,
    check_before_write,
    check_in_place_autograd,
    copy_without_hooks,
    flat_view_indices,
    gradient_edge,
    invalidate_views,
    move_retain_grad,
    regenerate_grad_fn,
    root_meta_of,
    track_stale_views,
    write_raw,
)
from .call import (
    _load_arg_parser,
    any_requires_grad,
    bind,
    cast_scalars,
    cast_to_common_dtype,
    check_tensors,
    execute,
    find_names_requiring_grad,
    record_node,
    to_raw,
)
from .callbacks import CALLBACKS
from .dispatch_state import GLOBALS, LEAF, MODE, recording
from .error_translation import translate_error
from .interceptors import (
    InPlaceCall,
    call_interceptor,
    call_torch_function,
    class_rules,
    find_torch_function_override,
    stack,
    torch_dispatch_classes,
)
from .memory_overlap import check_in_place, has_leaf_base, write_expanded
from .numpy_errors import run_quietly
from .op_record import ALWAYS_BOOL, INT_TO_FLOAT, NONDIFF, POINTWISE, REGISTRY, Op
from .out_variants import check_operand_dtypes, check_output_shape, check_target_dtype
from .shapes import broadcast_shapes


def run_in_place(op: Op, args: tuple, kwargs: dict):
    """`self.op_(...)`: the result of the op written into its first argument."""
    if GLOBALS["INTERCEPTORS"] and stack.items:
        return call_interceptor(op, InPlaceCall(run_in_place, op), args, kwargs)
    try:
        values = bind(op, args, dict(kwargs))
    except TypeError:
        values = bind(op, *_load_arg_parser().parse_in_place_args(op, args, kwargs))
    target = values[0]
    plain = target.__class__ is call.Tensor or target.__class__ is call.Parameter
    if find_torch_function_override(values) is not None:
        public = getattr(call.Tensor, f"{op.function_name.rstrip('_')}_", None)
        if public is not None:
            return call_torch_function(public, values, args, kwargs or None)
    if (not plain or GLOBALS["DISPATCHES"]) and (classes := torch_dispatch_classes(values)):
        return CALLBACKS.dispatched(op, values, classes, True)
    if GLOBALS["WRITE_CHECKS"]:
        check_before_write(target)
    if GLOBALS["CLASS_RULES"] and (rules := class_rules(values)) is not None:
        return rules("run_in_place")(op, values)
    wants = MODE.grad and (target._tl_node is not None or (any_requires_grad(values) and not op.tags & NONDIFF))
    if wants or target._tl_meta is not None and has_leaf_base(target):
        check_in_place_autograd(target)
    together = check_in_place(op, values)
    if together and not wants:
        write_expanded(op, values)
        bump_version(target)
        return target
    if op.base_op or op.number_ops:
        op, values = _simple_op(op, values)
    table, name = target._tl_kernels, op.name + "_"
    sized = table.for_size(target._tl_array)
    direct = getattr(sized, name, None)
    touches = wants and op.saved_variables.reads_or_saves_target(find_names_requiring_grad(op, values))
    if direct is not None and not touches and not target._tl_signs:
        found = _run_in_place_kernel(op, values, target, sized, direct, wants)
        if found is not None:
            return found
    check_operand_dtypes(op, values, target.dtype)
    before = _shallow_copy(target) if wants else target
    if wants and (op.is_implicit or touches):
        # A formula may need the value that the write replaces.
        before._tl_array, before._tl_meta = (
            table.clone(target._tl_array),
            None if before._tl_node is not LEAF else before._tl_meta,
        )
    with recording(wants):
        result = execute(op, [before, *values[1:]])
        if wants and op.tags & NONDIFF and result._tl_node is None:
            result = CALLBACKS.F._random_fill(before, CALLBACKS.F.to(result, target.dtype), op.name)
    return write_result_in_place(op, target, result, before)


def _simple_op(op, values):
    """The op that a composite's in-place call is with these arguments, if it is one, and its arguments."""
    if op.base_op:
        if all(v is p.default for p, v in zip(op.params, values, strict=True) if p.kwonly):
            base = REGISTRY[op.base_op]
            return base, values[: len(base.params)]
    else:
        numbers = [v.__class__ for v in values[1:] if v is not None]
        category = values[0].dtype.category
        if numbers and all(kind is int or kind is float for kind in numbers) and category in (1, 2):
            return REGISTRY[op.number_ops[category - 1]], values
    return op, values


def _run_in_place_kernel(op, values, target, sized, kernel, wants):
    """Run the backend's in-place kernel if no cast is needed; else return None. `sized`: the table for its size."""
    table = target._tl_kernels
    if op.check is not None:
        op.check(*values)
    if op.composite is None or op.vjp is not None:
        values = check_tensors(op, values)
    if (
        op.promote is not None
        and type_promotion.result_dtype(
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
        values = [target, *cast_to_common_dtype(op, values)[1:]]
        if any(isinstance(v, call.Tensor) and v._tl_array.ndim > target._tl_array.ndim for v in values[1:]):
            return None
    if op.scalar_rounding == "never" and target.dtype.itemsize == 2 and table.in_float32 is not None:
        kernel = getattr(table.in_float32(getattr(sized, op.name)), "write", None)
        if kernel is None or values[1].__class__ not in (int, float):
            return None
    before = _shallow_copy(target) if wants else None
    if op.numbers:
        values = cast_scalars(op, values)
    positional = [to_raw(r) for r, p in zip(values, op.params, strict=True) if not p.kwonly]
    keywords = {p.name: to_raw(r) for r, p in zip(values, op.params, strict=True) if p.kwonly}
    try:
        run_quietly(kernel, *positional, **keywords)
    except Exception as error:  # every error of a kernel becomes PyTorch's
        if op.tags & POINTWISE:
            check_output_shape(
                target, broadcast_shapes(*(v._tl_array.shape for v in values if isinstance(v, call.Tensor)))
            )
        raise translate_error(op, error, values) from error.__cause__
    if wants:
        result = _shallow_copy(target)
        result._tl_node = None
        record_node(op, table, [before, *values[1:]], (result,))
        return rebase_history(target, result)
    bump_version(target)
    return target


def _shallow_copy(tensor):
    """A new tensor object with the same data, version and history."""
    out = object.__new__(call.Tensor)
    out._tl_array, out._tl_kernels, out.dtype, out._tl_node = (
        tensor._tl_array,
        tensor._tl_kernels,
        tensor.dtype,
        tensor._tl_node,
    )
    if tensor._tl_node is not None:
        out._tl_node = gradient_edge(tensor)
        if out._tl_node is tensor:
            out._tl_node = LEAF
        elif base_of(tensor) is not None:
            out._tl_node = copy_without_hooks(out._tl_node)
    out._tl_meta = alias_meta(tensor)
    return out


def write_result_in_place(op: Op, target, result, before):
    """Write a computed result into `target` with its history."""
    sending = GLOBALS["INTERCEPTORS"] and any(item.is_forward for item in stack.items)
    if target._tl_level is not None or result._tl_level is not None or sending:
        return run_in_place(CALLBACKS.copy, (target, result), {})
    check_target_dtype(op, result.dtype, target.dtype)
    if result._tl_array.shape != target._tl_array.shape:
        check_output_shape(target, broadcast_shapes(result._tl_array.shape, target._tl_array.shape))
        result = result.expand(target._tl_array.shape)
    if result.dtype is not target.dtype:
        result = CALLBACKS.F.to(result, target.dtype)
    write_raw(target, result._tl_array)
    if not MODE.grad or (result._tl_node is None and target._tl_node is None):
        bump_version(target)
        return target
    return rebase_history(target, result)


def rebase_history(target, result):
    """Set the history of `target`, whose memory now holds `result`, to that of `result`; for a view, the base's history
    too.
    """
    node, base = result._tl_node, base_of(target)
    bump_version(target)
    owner = target if base is None else base
    if owner._tl_node is None and node is not None and not root_meta_of(owner).late:
        root_meta_of(owner).late = True
        track_stale_views(owner)
    invalidate_views(target)
    if base is not None and (node is not None or base._tl_node is not None):
        index = flat_view_indices(target)
        signs = target._tl_signs ^ base._tl_signs
        part = object.__new__(call.Tensor)
        part._tl_array, part._tl_kernels, part.dtype, part._tl_node, part._tl_meta = (
            target._tl_array,
            target._tl_kernels,
            target.dtype,
            CALLBACKS.view_with_bits(result, signs)._tl_node if signs else node,
            None,
        )
        before = _shallow_copy(base)
        with recording(True):
            record_node(CALLBACKS.copy_slices, target._tl_kernels, [before, part, index], (base,))
        move_retain_grad(base, base._tl_node, before._tl_node)
        regenerate_grad_fn(target)
    else:
        move_retain_grad(target, node)
        target._tl_node = node
    return target
