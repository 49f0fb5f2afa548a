"""VmapLevel: the interceptor that applies batching rules to ops on BatchedTensors.

A composite op runs its parts, which are intercepted again. Other ops have a batching rule, a function `(level, op,
values)` on batches, found by op name or record class (`_batching_rules`). Autograd records the batches.
"""

from __future__ import annotations

from typing import Any

from .._dispatch import MODE, F, Interceptor, call, function_for
from .._dispatch.interceptors import (
    InPlaceCall,
    ReenabledInterceptor,
    enter,
    leave,
    list_entered,
    show_only_within,
    stack,
)
from .._dispatch.op_record import RANDOM
from .._dispatch.out_variants import check_output_shape, check_target_dtype
from .._dispatch.shapes import broadcast_shapes
from .._library.library_op import LibraryOp
from .._tensor import Tensor
from ._batched_tensor import (
    BatchedTensor,
    batch_dim_first,
    expand_at_level,
    has_batched_tangent,
    hide_batch_dim,
    is_batched_at,
    make_batched,
)
from ._vmap_info import VmapInfo


class VmapLevel(Interceptor):
    """A running `vmap` level."""

    batches = True
    is_scoped = True

    def __init__(self, size: int, randomness: str):
        self.size, self.randomness = size, randomness
        self.number = 0

    def __enter__(self):
        self.number = 1 + max((item.number for item in list_entered() if isinstance(item, VmapLevel)), default=0)
        super().__enter__()
        MODE.transforms += 1
        return self

    def __exit__(self, *exc):
        if leave(self):
            MODE.transforms -= 1

    def again(self):
        """Re-enter the level for work that runs later."""
        return _ReenterLevel(self)

    def custom(self, function, args, kwargs):
        """Run a custom autograd Function on batched arguments."""
        from ._vmap_custom_function import apply_at_level

        if kwargs:
            raise NotImplementedError(
                f"{function.__name__}: autograd.Function with kwarg-only Tensor args is not supported in vmap"
            )
        return apply_at_level(self, function, args)

    def has(self, value: Any) -> bool:
        """True if a value is or contains a tensor of this level."""
        if value.__class__ is BatchedTensor:
            return value._tl_level is self
        if value.__class__ in (tuple, list):
            return any(self.has(item) for item in value)
        return False

    def wrap(self, result: Any):
        """Wrap an op's results on batches, batch dimension first, as BatchedTensors."""
        if isinstance(result, Tensor):
            return make_batched(result, 0, self)
        if result.__class__ in (tuple, list):
            return result.__class__([self.wrap(item) for item in result])
        if isinstance(result, tuple):  # named tuple of results
            return type(result)([self.wrap(item) for item in result])
        return result

    def batch(self, value: Any) -> Any:
        """Return a tensor of this level as its batch, batch dimension first; an unbatched tensor is expanded."""
        if is_batched_at(value, self):
            return batch_dim_first(value)
        return F.expand(F.unsqueeze(value, 0), self.size, *value.shape)

    def _expand_tangents(self, value: Any) -> Any:
        """Return a value with tensors that have tangents of this level expanded to batches."""
        if value.__class__ in (tuple, list):
            return value.__class__([self._expand_tangents(item) for item in value])
        return hide_batch_dim(expand_at_level(value, self), self) if has_batched_tangent(value, self) else value

    def intercept(self, op, function, args, kwargs):
        drawing = op.tags & RANDOM and self.randomness == "different"
        if MODE.forwards and (drawing or any(self.has(value) for value in (*args, *kwargs.values()))):
            args = tuple(self._expand_tangents(value) for value in args)
            kwargs = {name: self._expand_tangents(value) for name, value in kwargs.items()}
        if isinstance(op, LibraryOp):
            return self._run_custom_op(op, function, args, kwargs)
        if isinstance(function, InPlaceCall):
            return self._run_in_place_op(op, function, args, kwargs)
        if "out" in kwargs:
            kwargs = dict(kwargs)
            out = kwargs.pop("out")
            if out is not None:
                if op.has_out:
                    return self._run_out_variant(op, function, args, kwargs, out)
                kwargs["out"] = out
        if function is not op.function:  # factory function
            if op.tags & RANDOM:
                return self._run_random_op(op, function, args, kwargs)
            return function(*args, **kwargs)
        from ._batching_rules import ALWAYS, find_rule

        rule = find_rule(op)
        if rule is None:  # its parts have rules
            return self._run_composite(op, function, args, kwargs)
        if op.name in ALWAYS:
            return rule(self, op, call.bind(op, args, dict(kwargs)))
        if op.tags & RANDOM:
            from ._batching_rules.random_ops import random_rule

            return random_rule(self, op, call.bind(op, args, dict(kwargs)), rule)
        if not any(self.has(value) for value in args) and not any(self.has(value) for value in kwargs.values()):
            return function(*args, **kwargs)
        values = call.check_tensors(op, call.bind(op, args, dict(kwargs)))
        return rule(self, op, values)

    def _run_custom_op(self, op, function, args, kwargs):
        """Run a custom op by its `register_vmap` rule, else example by example."""
        values = op.schema.bind(args, kwargs)
        if not any(self.has(value) for value in values):
            return function(*args, **kwargs)

        def map_nested(take, value):
            return type(value)(map_nested(take, v) for v in value) if isinstance(value, (list, tuple)) else take(value)

        batches = [map_nested(lambda v: batch_dim_first(v) if is_batched_at(v, self) else v, value) for value in values]
        dims = tuple(map_nested(lambda v: 0 if is_batched_at(v, self) else None, value) for value in values)
        if op.vmap_rule is None:
            rows = [
                op(
                    **{
                        a.name: map_nested(lambda v: v[i], b) if _any_dim(d) else b
                        for a, b, d in zip(op.schema.arguments, batches, dims, strict=True)
                    }
                )
                for i in range(self.size)
            ]
            if isinstance(rows[0], (tuple, list)):
                return self.wrap(type(rows[0])(F.stack(list(column)) for column in zip(*rows, strict=True)))
            return self.wrap(F.stack(rows))
        info, (batches, keywords) = VmapInfo(self.size, self.randomness), op.schema.call_form(batches)
        results, out_dims = op.vmap_rule(info, dims[: len(batches)], *batches, **keywords)

        def wrap_nested(value, dim):
            if isinstance(value, (list, tuple)):
                each = dim if isinstance(dim, (list, tuple)) else [dim] * len(value)
                return type(value)(wrap_nested(v, d) for v, d in zip(value, each, strict=True))
            return value if dim is None or not isinstance(value, Tensor) else make_batched(value, dim, self)

        return wrap_nested(results, out_dims)

    def _run_composite(self, op, function, args, kwargs):
        items = [*stack.items, self]
        with show_only_within(items):
            for item in items[:-1]:  # autocast matches op names, which are not visible below
                found = item.cast(op, args, kwargs)
                if found is not None:
                    args, kwargs = found
                    items = [other for other in items if other is not item]
        with show_only_within(items):
            return call.without_interceptors(op, function, args, kwargs)

    def _run_random_op(self, op, function, args, kwargs):
        from ._batching_rules.random_ops import check_allowed

        check_allowed(self)
        if self.randomness == "same":
            return function(*args, **kwargs)
        if op.name == "_random_permutation":  # its size is the number of elements
            return make_batched(F.stack([function(*args, **kwargs) for _ in range(self.size)], 0), 0, self)
        size, *rest = args
        return make_batched(function((self.size, *size), *rest, **kwargs), 0, self)

    def _run_out_variant(self, op, function, args, kwargs, out):
        targets = out if isinstance(out, (tuple, list)) else (out,)
        with ReenabledInterceptor(self):
            result = function(*args, **kwargs)
            for target, value in zip(targets, result if isinstance(out, (tuple, list)) else (result,), strict=True):
                if self.has(value) and not self.has(target):
                    raise RuntimeError(_OUT_ERROR.format(op.name))
                target.copy_(value)
        return out

    def _run_in_place_op(self, op, function, args, kwargs):
        target = args[0]
        if not is_batched_at(target, self):
            if any(self.has(value) for value in (*args, *kwargs.values())):
                raise RuntimeError(_IN_PLACE_ERROR)
            return function(*args, **kwargs)
        from ._batching_rules.in_place import WRITES

        writes = WRITES.get(op.name)
        if writes is not None:
            writes(self, *call.bind(op, args, kwargs))
            return target
        if MODE.grad and any(isinstance(a, Tensor) and a.requires_grad for a in args):
            # The derivative formula may need the overwritten value.
            args = (make_batched(F.clone(batch_dim_first(target)), 0, self), *args[1:])
        with ReenabledInterceptor(self):
            result = function_for(op)(*args, **kwargs)
            check_target_dtype(op, result.dtype, target.dtype)
            if result.shape != target.shape:
                check_output_shape(target, broadcast_shapes(tuple(result.shape), tuple(target.shape)))
        WRITES["_copy"](self, target, result)
        return target


def _any_dim(dims) -> bool:
    return any(map(_any_dim, dims)) if isinstance(dims, (list, tuple)) else dims is not None


_OUT_ERROR = (
    "vmap: {}(..., out=...) cannot write a result that differs from example to example into a tensor that is the same "
    "for all of them. Please use the form without out=."
)
_IN_PLACE_ERROR = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
    "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped "
    "over in a vmap. Please try to use out-of-place operators instead of inplace arithmetic. If said operator is being "
    "called inside the PyTorch framework, please file a bug report instead."
)


class _ReenterLevel:
    """Context that re-enters a level."""

    def __init__(self, level: VmapLevel):
        self.level = level

    def __enter__(self):
        self.active = self.level not in stack.items
        if self.active:
            enter(self.level)
        MODE.transforms += 1

    def __exit__(self, *exc):
        MODE.transforms -= 1
        if self.active:
            leave(self.level)


def active_levels() -> list[VmapLevel]:
    """Return the active levels of this thread, outermost first."""
    return [item for item in stack.items if isinstance(item, VmapLevel)]
