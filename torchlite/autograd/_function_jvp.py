"""Forward mode of custom Functions: calls their `jvp`."""

from __future__ import annotations

from typing import Any

from .._dispatch import MODE, F
from .._dispatch.autograd_graph import base_of, version_of
from .._dispatch.interceptors import put_back, show_only, stack
from .._tensor import Tensor
from ._forward_mode import active_levels
from ._tangents import assign_tangent, set_tangent, tangent_of, vmap_levels

_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view"


class without_forward_levels:
    """Context manager that disables all levels of forward mode: a Function's forward propagates no tangents."""

    def __enter__(self):
        self.on = MODE.forward
        self.view = show_only([item for item in stack.items if not item.is_forward])
        MODE.forward = False

    def __exit__(self, *exc):
        MODE.forward = self.on
        put_back(self.view)


class PendingTangents:
    """The tangents of a Function's arguments, as they are before its forward runs."""

    def __init__(self, args: tuple):
        self.args = args
        self.found = []
        for level in active_levels() if MODE.forward else ():
            tangents = [tangent_of(a, level) if isinstance(a, Tensor) and a.dtype.category >= 2 else None for a in args]
            if any(t is not None for t in tangents):
                self.found.append((level, tangents))

    def send(self, node: Any, result: Any, fixed: set, dirty: set, saved: tuple) -> None:
        """Set the tangents of the Function's outputs; `ctx` is the node. `fixed` and `dirty` are ids of outputs without
        tangents and of inputs that forward changed in place.
        """
        outs = result if isinstance(result, tuple) else (result,)
        for level, tangents in self.found:
            counts = [None if t is None else t._version for t in tangents]
            with level.below_level(), vmap_levels(*tangents):
                results = self._call_jvp(node, tangents, saved)
            results = results if isinstance(results, tuple) else (results,)
            if len(results) != len(outs):
                raise RuntimeError(
                    f"Function {node.name()}'s jvp returned an incorrect number of gradients (expected {len(outs)}, "
                    f"got {len(results)})"
                )
            for i, (out, tangent) in enumerate(zip(outs, results, strict=True)):
                if id(out) in dirty:
                    _in_place_tangent(level, self.args, tangents, counts, out, tangent)
                else:
                    self._set_output_tangent(level, tangents, out, tangent, i, id(out) in fixed)

    def _call_jvp(self, node, tangents, saved):
        given = [
            F._zeros_like(a.detach())
            if t is None and node.materialize_grads and isinstance(a, Tensor) and a.dtype.category >= 2
            else t
            for a, t in zip(self.args, tangents, strict=True)
        ]
        before = node._saved, node._versions
        node._saved, node._versions = saved, tuple(0 if t is None else version_of(t) for t in saved)
        try:
            return node._forward_cls.jvp(node, *given)
        finally:
            node._saved, node._versions = before

    def _set_output_tangent(self, level, tangents, out, tangent, i, is_fixed):
        if not isinstance(out, Tensor) or out.dtype.category < 2 or is_fixed:
            if tangent is not None:
                raise RuntimeError(
                    f"A custom Function's jvp returned a tangent for output {i}, which is not differentiable. You "
                    "should return None at that position instead."
                )
            return
        if tangent is None:
            return
        if tangent.shape != out.shape:
            raise RuntimeError(
                f"Trying to set a forward gradient that has a different size than that of the original Tensor, this "
                f"is not supported. Tensor is of size {list(out.shape)} while the given forward gradient is of size "
                f"{list(tangent.shape)}."
            )
        base = base_of(out)
        pairs = [(a, t) for a, t in zip(self.args, tangents, strict=True) if isinstance(a, Tensor) and t is not None]
        source = next(((a, t) for a, t in pairs if base is not None and (base is a or base is base_of(a))), None)
        if source is None:
            set_tangent(out, level, tangent)
            return
        mine = base_of(tangent)
        if mine is None:
            raise RuntimeError(_VIEW + ".")
        origin, given = source
        if base is origin and mine is not given and mine is not base_of(given):
            raise RuntimeError(_VIEW + " of the given grad input.")
        if base is not origin and mine is not base_of(given):
            raise RuntimeError(_VIEW + " of the same base as the given grad input.")
        assign_tangent(out, level, tangent)


def _in_place_tangent(level, args, tangents, counts, out, tangent) -> None:
    """The tangent of an input that forward changed in place, which jvp has to have done as well."""
    own, before = next((t, c) for a, t, c in zip(args, tangents, counts, strict=True) if a is out)
    if own is None and tangent is not None:
        set_tangent(out, level, tangent)
    elif own is not tangent or own is not None and own._version == before:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
            "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
        )
