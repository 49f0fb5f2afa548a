"""Custom autograd Functions under `vmap`: by their `vmap` method, or by `generate_vmap_rule`."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..autograd.function import Function
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from ._batched_tensor import BatchedTensor, batch_dim_first, is_batched_at, make_batched
from ._vmap_info import VmapInfo

_NO_VMAP_SUPPORT_ERROR = (
    "You tried to vmap over {0}, but it does not have vmap support. Please override and implement the vmap "
    "staticmethod or set generate_vmap_rule=True. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)
_BOTH_RULES_ERROR = (
    "You tried to vmap over {0}, but it has both generate_vmap_rule=True and an overriden vmap staticmethod. Please "
    "set generate_vmap_rule=False or delete the overriden vmap staticmethod to avoid ambiguity. For more details, "
    "please see https://pytorch.org/docs/main/notes/extending.func.html"
)
_TWO_RETURNS_ERROR = (
    "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with "
    "the output. "
)


def apply_at_level(level, cls: Any, args: tuple):
    """Run `cls.apply(*args)` with arguments batched at a level, below the level."""
    own = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule:
        if own:
            raise RuntimeError(_BOTH_RULES_ERROR.format(cls.__name__))
        return _generate_batched_function(level, cls, args)
    if not own:
        raise RuntimeError(_NO_VMAP_SUPPORT_ERROR.format(cls.__name__))
    flat, spec = tree_flatten(args)
    values = [a._value if is_batched_at(a, level) else a for a in flat]
    dims = tree_unflatten([a._dim if is_batched_at(a, level) else None for a in flat], spec)
    result = cls.vmap(VmapInfo(level.size, level.randomness), dims, *tree_unflatten(values, spec))
    if not isinstance(result, tuple):
        raise RuntimeError(_TWO_RETURNS_ERROR + f"Got a {type(result)} instead")
    if len(result) != 2:
        raise RuntimeError(_TWO_RETURNS_ERROR + f"Got {len(result)} returns instead")
    return _wrap_outputs(level, cls, *result)


def _wrap_outputs(level, cls, out, out_dims):
    flat, spec = tree_flatten(out)
    if isinstance(out_dims, tuple) and not isinstance(out, tuple) or not isinstance(out, tuple) and flat != [out]:
        dims = None
    else:
        dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise RuntimeError(
            f"The autograd.Function {cls.__name__}'s vmap staticmethod returned an incompatible (output, out_dims) "
            f"tuple. Expected out_dims={out_dims} to be compatible with the structure of `output`. out_dims has "
            f"structure {tree_flatten(out_dims)[1]} but output has structure {spec}. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    wrapped = [
        t if d is None or not isinstance(t, Tensor) else make_batched(t, d % t.ndim, level)
        for t, d in zip(flat, dims, strict=True)
    ]
    return tree_unflatten(wrapped, spec)


class _BatchedContext:
    """`ctx` of a Function's methods when they run on examples."""

    materialize_grads = True

    def __init__(self, needs: tuple):
        self.needs_input_grad = needs
        self.saved: tuple = ()
        self.saved_for_forward: tuple = ()
        self.dirty: tuple = ()
        self.fixed: tuple = ()

    def save_for_backward(self, *tensors):
        self.saved = tensors

    def save_for_forward(self, *tensors):
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors):
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors):
        self.fixed = tensors

    def set_materialize_grads(self, value: bool):
        self.materialize_grads = value

    saved_tensors: tuple = ()


def _generate_batched_function(level, cls, args: tuple):
    """Return a Function on batches that runs the given Function's methods on examples."""
    dims = [0 if is_batched_at(a, level) else None for a in args]
    inputs = [batch_dim_first(a) if is_batched_at(a, level) else a for a in args]
    context: Any = _BatchedContext(())
    shape: dict[str, Any] = {}

    def examples(values):
        return [v if d is None or v is None else make_batched(v, d, level) for v, d in zip(values, dims, strict=True)]

    def batch(tensor):
        """Return (tensor as a batch, True if it was batched)."""
        return (batch_dim_first(tensor), True) if is_batched_at(tensor, level) else (tensor, False)

    class Generated(Function):
        generate_vmap_rule = True  # handled by the levels below

        @staticmethod
        def forward(*values):
            with level.again():
                given = examples(values)
                out = cls.forward(*given)
                shape["examples"], shape["out"] = given, out
            several = isinstance(out, (tuple, list))
            made = [batch(t) if isinstance(t, Tensor) else (t, False) for t in (out if several else (out,))]
            shape["batched"] = [b for _, b in made]
            same = {id(e): v for e, v in zip(given, values, strict=True)}
            found = [same.get(id(t), m) for t, (m, _) in zip(out if several else (out,), made, strict=True)]
            return tuple(found) if several else found[0]

        @staticmethod
        def setup_context(ctx, values, output):
            given, out = shape["examples"], shape["out"]
            context.needs_input_grad = ctx.needs_input_grad
            with level.again():
                cls.setup_context(context, tuple(given), out)
            outs = output if isinstance(output, tuple) else (output,)
            plain = {id(e): v for e, v in zip(given, values, strict=True)}
            plain |= dict(zip(map(id, out if isinstance(out, (tuple, list)) else (out,)), outs, strict=True))
            ctx.mark_dirty(*(plain[id(t)] for t in context.dirty))
            ctx.mark_non_differentiable(*(plain[id(t)] for t in context.fixed))
            ctx.set_materialize_grads(context.materialize_grads)
            kept = [(None, False) if t is None else batch(t) for t in context.saved]
            ctx.save_for_backward(
                *(plain.get(id(t), k) if t is not None else None for t, (k, _) in zip(context.saved, kept, strict=True))
            )
            ctx.kept = [b for _, b in kept]
            forward = [(None, False) if t is None else batch(t) for t in context.saved_for_forward]
            ctx.save_for_forward(
                *(
                    None if t is None else plain.get(id(t), k)
                    for t, (k, _) in zip(context.saved_for_forward, forward, strict=True)
                )
            )
            ctx.kept_forward = [b for _, b in forward]
            context.saved = context.saved_for_forward = ()
            shape.pop("examples"), shape.pop("out")

        @staticmethod
        def backward(ctx, *grads):
            saved = [
                t if t is None or not b else make_batched(t, 0, level)
                for t, b in zip(ctx.saved_tensors, ctx.kept, strict=True)
            ]
            context.saved_tensors = tuple(saved)
            context.needs_input_grad = ctx.needs_input_grad
            given = [
                g if g is None or not b else make_batched(g, 0, level)
                for g, b in zip(grads, shape["batched"], strict=True)
            ]
            with level.again():
                found = (cls.vjp if cls.vjp is not Function.vjp else cls.backward)(context, *given)
                context.saved_tensors = ()
            found = found if isinstance(found, tuple) else (found,)
            return tuple(_reduce_grad_to_input(level, g, d) for g, d in zip(found, dims, strict=True))

        @staticmethod
        def jvp(ctx, *tangents):
            saved = [
                t if t is None or not b else make_batched(t, 0, level)
                for t, b in zip(ctx.saved_tensors, ctx.kept_forward, strict=True)
            ]
            context.saved_tensors = tuple(saved)
            with level.again():
                found = cls.jvp(context, *examples(tangents))
                context.saved_tensors = ()
            several = isinstance(found, tuple)
            made = [
                t if t is None or not b else level.batch(t)
                for t, b in zip(found if several else (found,), shape["batched"], strict=True)
            ]
            return tuple(made) if several else made[0]

    Generated.__name__ = Generated.__qualname__ = f"{cls.__name__}Generated"
    Generated._backward_cls.__name__ = f"{cls.__name__}GeneratedBackward"
    Generated._op.name = Generated.__name__
    result = Generated.apply(*inputs)
    several = isinstance(result, tuple)
    outs = [
        make_batched(t, 0, level) if b else t
        for t, b in zip(result if several else (result,), shape["batched"], strict=True)
    ]
    for position, original in enumerate(args):  # results written in place are the arguments themselves
        if is_batched_at(original, level):
            for k, t in enumerate(outs):
                if t.__class__ is BatchedTensor and t._value is inputs[position] and t._value is original._value:
                    outs[k] = original
    return tuple(outs) if several else outs[0]


def _reduce_grad_to_input(level, gradient, dim):
    """Return the gradient of an input: per example for a batched one, summed over examples for an unbatched one."""
    if gradient is None:
        return None
    if dim is None:
        return batch_dim_first(gradient).sum(0) if is_batched_at(gradient, level) else gradient
    return level.batch(gradient)
