"""Forward-mode differentiation: an interceptor that propagates tangents through the ops of a level.

No op has a forward-mode formula. An op that moves elements is applied to the tangent too. A product's tangent is a sum
of products with one factor's tangent each. An elementwise op's tangent is its backward applied to the input's tangent.
Any other op's is the derivative of its backward with respect to the output gradient. Composites are differentiated
through the ops that they call. A level is below all other interceptors, so it sees ops on entire batches and with the
dtypes in which they compute. If a tangent is batched and its tensor is not, only its ops run under the `vmap`.
"""

from __future__ import annotations

import weakref
from typing import Any

from .._dispatch import MODE, REGISTRY, F, call, function_for, in_place_calls
from .._dispatch.autograd_graph import autograd_meta_of, base_of, gradient_edge, make_node
from .._dispatch.backend import owner_of
from .._dispatch.dispatch_state import LEAF, recording
from .._dispatch.interceptors import (
    InPlaceCall,
    Interceptor,
    ReenabledInterceptor,
    enter,
    leave,
    put_back,
    show_only,
    stack,
)
from .._dispatch.op_record import MAYBE_VIEW, NONDIFF, POINTWISE, RANDOM, VIEW, Op
from .._dispatch.out_variants import check_output_shape, check_target_dtype
from .._dispatch.shapes import broadcast_shapes
from .._tensor import Tensor
from ._tangents import assign_tangent, copy_tangents, is_writable, set_tangent, tangent_of, vmap_levels, zeros_like
from .backward_api import grad

# Ops besides views that are applied to the tangent of their first argument unchanged.
LINEAR_OPS = frozenset(
    "clone contiguous to flip roll rot90 sum cumsum mean tril triu index_select gather take repeat _identity conj real "
    "imag _conj_physical conj_physical take_index _index resolve_conj resolve_neg".split()
)
# Ops that are linear in each of their factors, and what they add to the product.
_PRODUCTS: dict[str, tuple[tuple[str, str], str | None]] = {
    "convolution": (("input", "weight"), "bias"),
    "linear": (("input", "weight"), "bias"),
    "matmul": (("input", "other"), None),
    "mm": (("input", "mat2"), None),
    "bmm": (("input", "mat2"), None),
    "mv": (("input", "vec"), None),
    "dot": (("input", "tensor"), None),
    "vdot": (("input", "other"), None),
}
_CONSTANT = frozenset(("_random_binomial", "_random_poisson"))  # draws that a small change of the parameters leaves
_COPIES = frozenset(("_copy", "_fill"))  # in place: nothing of what was there matters
_DRAWS = frozenset("uniform_ normal_ random_ bernoulli_ exponential_ cauchy_ geometric_ log_normal_".split())
_RESHAPES = frozenset("transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ t_ as_strided_ resize_ resize_as_".split())


class ForwardLevel(Interceptor):
    """One level of forward-mode differentiation; its tangents belong to one direction."""

    backward = "ops"
    intercepts_library = False
    is_forward = True

    def __init__(self) -> None:
        self.known: weakref.WeakSet = weakref.WeakSet()  # the Metas of tensors that have a tangent

    def __enter__(self):
        items = stack.items
        place = sum(1 for item in items if isinstance(item, ForwardLevel))
        enter(self, place)
        MODE.forwards = (*MODE.forwards, self)  # no call since it was entered: an interrupt finds both, or none
        return self

    def __exit__(self, *exc):
        leave(self)
        MODE.forwards = tuple(level for level in MODE.forwards if level is not self)
        for meta in list(self.known):
            if meta.tangents is not None:
                meta.tangents.pop(self, None)
                meta.tangents = meta.tangents or None

    def below_level(self):
        """Context manager in which only the interceptors below the level are active."""
        return _OuterLevels(self)

    def has(self, value: Any) -> bool:
        """True if a value is, or holds, a tensor with a tangent."""
        if isinstance(value, Tensor):
            return value.dtype.category >= 2 and tangent_of(value, self) is not None
        if value.__class__ in (tuple, list):
            return any(self.has(item) for item in value)
        return False

    def intercept(self, op, function, args, kwargs):
        if not MODE.forward or not (self.has(args) or any(self.has(value) for value in kwargs.values())):
            return function(*args, **kwargs)
        if isinstance(function, InPlaceCall):
            return self._write_in_place(op, function, args, kwargs)
        if op.has_out and "out" in kwargs:
            kwargs = dict(kwargs)
            if kwargs.pop("out") is not None:
                raise NotImplementedError(
                    f"Trying to use forward AD with {op.function_name}_out that does not support it because it is "
                    "an out= function"
                )
        if function is not op.function:  # a function that creates a tensor has no tangent
            return function(*args, **kwargs)
        if op.name == "set_" and call.bind(op, args, dict(kwargs))[3] is None:
            raise NotImplementedError(
                "Trying to use forward AD with set_ that does not support it because it has not been implemented yet. "
                "Please file an issue to PyTorch at https://github.com/pytorch/pytorch/issues/new?template="
                "feature-request.yml so that we can prioritize its implementation."
            )
        if op.name in _WRITES:
            return _WRITES[op.name](self, *call.bind(op, args, dict(kwargs)))
        if op.name in _DRAWS:
            return self._zero_tangent(args[0], function(*args, **kwargs))
        if op.name in _RESHAPES:
            tangent = tangent_of(args[0], self)
            with vmap_levels(tangent):
                function(tangent, *args[1:], **kwargs)
            return function(*args, **kwargs)
        if op.is_implicit:
            with ReenabledInterceptor(self):
                return call.without_interceptors(op, function, args, kwargs)
        if op.tags & NONDIFF or op.name in _CONSTANT:
            result = function(*args, **kwargs)
            if op.tags & RANDOM and isinstance(result, Tensor) and result.dtype.category >= 2:
                source = next(tangent_of(a, self) for a in (*args, *kwargs.values()) if self.has(a))
                self._set_output_tangent(result, zeros_like(result, source))
            return result
        values = call.check_tensors(op, call.bind(op, args, dict(kwargs)))
        if op.promote is not None:
            with ReenabledInterceptor(self):
                values = call.cast_to_common_dtype(op, values)
        return self._run_with_tangents(op, values)

    # -- ops -----------------------------------------------------------------------

    def _run_with_tangents(self, op: Op, values: list) -> Any:
        """An op and its tangents."""
        if op.tags & (VIEW | MAYBE_VIEW) or op.name in LINEAR_OPS:
            return self._apply_linear_op(op, values)
        if op.name in _PRODUCTS:
            factors, added = _PRODUCTS[op.name]
            found = {p.name: i for i, p in enumerate(op.params) if self.has(values[i])}
            if any(name in found for name in factors):
                return self._apply_product(op, values, [found[name] for name in factors if name in found], added)
        return _Jvp(self, op, values).run()

    def _apply_product(self, op: Op, values: list, factors: list[int], added: str | None) -> Any:
        """A product, whose tangent is that of what is added and, for each factor, the product with its tangent."""
        result, total = call_op(op, values), None
        names = [p.name for p in op.params]
        for i in factors:
            given = list(values)
            given[i] = self._tangent_in_dtype(values[i])
            if added is not None:
                bias = given[names.index(added)]
                given[names.index(added)] = self._tangent_in_dtype(bias) if total is None and self.has(bias) else None
            with vmap_levels(*given, total):
                part = call_op(op, given)
                total = part if total is None else F.add(total, part)
        self._set_output_tangent(result, total)
        return result

    def _tangent_in_dtype(self, value: Any) -> Any:
        """The tangent of a tensor, which may have another dtype, in the tensor's dtype."""
        tangent = tangent_of(value, self)
        with vmap_levels(tangent):
            return tangent if tangent.dtype is value.dtype else F.to(tangent, value.dtype)

    def _apply_linear_op(self, op: Op, values: list) -> Any:
        source = values[0]
        tangent = tangent_of(source, self)
        result = call_op(op, values)
        if result is source or tangent is None:
            return result
        with vmap_levels(tangent):
            moved = call_op(op, [tangent, *values[1:]])
        several = isinstance(result, (tuple, list))
        for out, part in zip(result if several else (result,), moved if several else (moved,), strict=True):
            if out.dtype.category < 2:
                continue
            if base_of(_innermost_tensor(out)) is not None and base_of(_innermost_tensor(part)) is not None:
                assign_tangent(out, self, part)  # both are views of the same kind
            else:
                self._set_output_tangent(out, clone_if_aliased(part, [tangent]))
        return result

    def _set_output_tangent(self, out: Any, tangent: Any) -> None:
        with self.below_level(), vmap_levels(tangent):
            set_tangent(out, self, tangent)

    # -- in place --------------------------------------------------------------------

    def _zero_tangent(self, target: Any, result: Any) -> Any:
        tangent = tangent_of(target, self)
        if tangent is not None:
            with vmap_levels(tangent):
                tangent.zero_()
        return result

    def _write_in_place(self, op: Op, function: Any, args: tuple, kwargs: dict) -> Any:
        target = args[0]
        if op.tags & NONDIFF or target.dtype.category < 2:
            return self._zero_tangent(target, function(*args, **kwargs))
        with ReenabledInterceptor(self), recording(MODE.grad):
            copy = F.clone(target)
            twins = [copy if value is target else value for value in args[1:]]
            written = function_for(op)(copy, *twins, **kwargs)
        if op.name not in _COPIES:  # what nodes save has the tangents of before
            check_target_dtype(op, written.dtype, target.dtype)
            if written.shape != target.shape:
                check_output_shape(target, broadcast_shapes(tuple(written.shape), tuple(target.shape)))
            with ReenabledInterceptor(self):
                return in_place_calls.run_in_place(REGISTRY["_copy"], (target, written), {})
        tangent = tangent_of(written, self) if written.dtype.category >= 2 else None
        result = function(*args, **kwargs)
        if tangent is None:
            return self._zero_tangent(target, result)
        own = tangent_of(target, self)
        with vmap_levels(tangent, own):
            if tangent.dtype is not target.dtype:
                tangent = F.to(tangent, target.dtype)
            if tangent.shape != target.shape:
                tangent = F.expand(tangent, target.shape)
            if own is not None and is_writable(own, tangent):
                own.copy_(tangent)
            else:
                set_tangent(target, self, tangent)
        return result


class _OuterLevels:
    def __init__(self, level: ForwardLevel):
        self.level = level

    def __enter__(self):
        items = stack.items
        self.view = show_only(items[: items.index(self.level)] if self.level in items else [*items])

    def __exit__(self, *exc):
        put_back(self.view)


def call_op(op: Op, values: list) -> Any:
    """The op on these values."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    by_name = False
    for param, value in zip(op.params, values, strict=True):
        if param.kwonly or by_name:
            keywords[param.name] = value
        elif param.kind == "varargs":
            positional.append(tuple(value))
            by_name = True
        else:
            positional.append(value)
    return function_for(op)(*positional, **keywords)


def alias_with_tangents(tensor: Any, tracked: bool) -> Tensor:
    """A tensor on the same memory, with the tangents of the active levels; with its history if `tracked`."""
    if tensor._tl_level is not None:
        return tensor._batch_like(alias_with_tangents(tensor._value, tracked))
    made = copy_tangents(tensor, tensor.detach())
    if tracked and tensor.requires_grad:
        made._tl_node = make_node(REGISTRY["_identity"], (gradient_edge(tensor),), (), (), tensor._tl_kernels)
        made._tl_node._shape = tensor._tl_array.shape
    return made


class _LocalLevel:
    """The scope of aliases that are differentiated by only here."""

    open = False


_LOCAL_LEVEL = _LocalLevel()


def clone_if_aliased(tangent: Any, others: list) -> Any:
    """The tangent, cloned if it shares memory with `others`: backward may return its argument itself, as sums do."""
    place = owner_of(_innermost_tensor(tangent)._tl_array)
    if any(place is owner_of(_innermost_tensor(other)._tl_array) for other in others):
        with vmap_levels(tangent):
            return F.clone(tangent)
    return tangent


class _Jvp:
    """Runs an op once, on aliases of its arguments that have tangents, and computes the tangents of its results."""

    def __init__(self, level: ForwardLevel, op: Op, values: list):
        self.level, self.op, self.values = level, op, values
        self.inputs: list[Any] = []
        self.leaves: list[Any] = []  # aliases without a history
        self.tangents: list[Any] = []
        self.tracked = MODE.grad

    def run(self) -> Any:
        op, values = self.op, self.values
        shape = None
        if op.tags & POINTWISE and op.outputs is None and not op.multi_output:
            shape = broadcast_shapes(*(tuple(v.shape) for v in values if isinstance(v, Tensor)))
        inference, MODE.inference = MODE.inference, False
        try:
            with recording(True):
                aliased = [
                    tuple(self._alias_input(item, None) for item in value)
                    if value.__class__ in (tuple, list) and param.is_tensor
                    else self._alias_input(value, shape if param.is_tensor else None)
                    for param, value in zip(op.params, values, strict=True)
                ]
                result = call_op(op, aliased)
                tangents = self._tangents_of_result(result, shape)
        finally:
            MODE.inference = inference
            for leaf in self.leaves:
                leaf._tl_node = None
        several = isinstance(result, (tuple, list))
        for out, tangent in zip(result if several else (result,), tangents, strict=True):
            if out is None:
                continue
            if not self.tracked or not self._needs_gradient():
                out._tl_node = None
            if inference:
                autograd_meta_of(out).inference = True
            if tangent is not None:
                self.level._set_output_tangent(out, clone_if_aliased(tangent, self.tangents))
        return result

    def _needs_gradient(self) -> bool:
        flat = [i for v in self.values for i in (v if v.__class__ in (tuple, list) else (v,))]
        return any(isinstance(v, Tensor) and v.requires_grad for v in flat)

    def _alias_input(self, value: Any, shape: Any) -> Any:
        if not isinstance(value, Tensor) or value.dtype.category < 2:
            return value
        tangent = tangent_of(value, self.level)
        if tangent is None and not value.is_inference():
            untracked = not self.tracked and value.requires_grad and value._tl_level is None
            return copy_tangents(value, value.detach()) if untracked else value
        if value.is_inference():
            value = copy_tangents(value, value.clone())
        if tangent is None:
            return value
        result: Any = alias_with_tangents(value, self.tracked)
        if result._tl_node is None:
            result._tl_node = LEAF
            result._scope = _LOCAL_LEVEL
            self.leaves.append(result)
        if tangent.dtype is not value.dtype:  # a tangent may have another dtype
            with vmap_levels(tangent):
                tangent = F.to(tangent, value.dtype)
        self.inputs.append(result)
        if shape is not None and tuple(result.shape) != tuple(shape):
            result = F.expand(result, shape)
            self.inputs[-1] = result
            with vmap_levels(tangent):
                tangent = F.expand(tangent, shape)
        self.tangents.append(tangent)
        assign_tangent(result, self.level, tangent)  # what the node saves is differentiated where backward is
        return result

    def _tangents_of_result(self, result: Any, shape: Any) -> list:
        several = isinstance(result, (tuple, list))
        outs = list(result) if several else [result]
        usable = [i for i, o in enumerate(outs) if isinstance(o, Tensor) and o._tl_node is not None and o.requires_grad]
        found: list = [None] * len(outs)
        create = self.tracked and (
            self._needs_gradient() or any(_innermost_tensor(t).requires_grad for t in self.tangents)
        )
        if not usable:
            return found
        if not several and shape is not None and not result.dtype.is_complex and tuple(result.shape) == tuple(shape):
            if all(t.dtype is result.dtype for t in self.tangents):
                found[0] = self._elementwise_tangent(result, create)
                return found
        return self._tangents_by_double_backward(outs, usable, found, create)

    def _elementwise_tangent(self, result: Any, create: bool) -> Any:
        total: Any = None
        for made, tangent in zip(self.inputs, self.tangents, strict=True):
            with vmap_levels(tangent, total):
                (part,) = grad([result], [made], [tangent], True, create, allow_unused=True)
                if part is not None:
                    total = part if total is None else F.add(total, part)
        return total

    def _tangents_by_double_backward(self, outs: list, usable: list, found: list, create: bool) -> list:
        """The derivative of the op's backward with respect to its output gradients."""
        chosen = [outs[i] for i in usable]
        given = [F._zeros_like(o.detach()) for o in chosen]
        for zero in given:
            zero._tl_node = LEAF
        pulled = grad(chosen, self.inputs, given, True, True, allow_unused=True)
        pairs = [(p, t) for p, t in zip(pulled, self.tangents, strict=True) if p is not None and p.requires_grad]
        parts: Any = (None,) * len(given)
        if pairs:
            with vmap_levels(*self.tangents):
                parts = grad([p for p, _ in pairs], given, [t for _, t in pairs], True, create, allow_unused=True)
        for i, part, zero in zip(usable, parts, given, strict=True):
            found[i] = zero.detach() if part is None else part
        return found


def _innermost_tensor(tensor: Any) -> Any:
    while tensor._tl_level is not None:
        tensor = tensor._value
    return tensor


def _copy_tangent(level: ForwardLevel, target: Any, source: Any, non_blocking: bool) -> Tensor:
    with ReenabledInterceptor(level):
        if not isinstance(source, Tensor):
            return in_place_calls.run_in_place(REGISTRY["_fill"], (target, source), {})
        return in_place_calls.run_in_place(REGISTRY["_copy"], (target, source.to(target.device)), {})


def _zero_tangent(level: ForwardLevel, target: Any, value: Any = 0) -> Tensor:
    with ReenabledInterceptor(level):
        return in_place_calls.run_in_place(REGISTRY["_fill"], (target, value), {})


_WRITES: dict[str, Any] = {"copy_": _copy_tangent, "fill_": _zero_tangent, "zero_": _zero_tangent}


def active_levels() -> list[ForwardLevel]:
    """The active levels of this thread, outermost first."""
    return [item for item in stack.items if isinstance(item, ForwardLevel)]


def drop_tangent(tensor: Any, level: ForwardLevel) -> None:
    """Drop the tangent at a level of a tensor without other references."""
    tensor = _innermost_tensor(tensor)
    tangents = autograd_meta_of(tensor).tangents
    if tangents is not None:
        tangents.pop(level, None)
