"""Fusion of row reductions with deferred elementwise ops (`core.lazy_fusion`) that compute their input.

One launch serves both, with bitwise the results of separate ones.
"""

from __future__ import annotations

import math
from typing import Any

from torchlite_backends.kernel_sources.pointwise_codegen import chain_source
from torchlite_backends.kernel_sources.reduce import fused_reduction_source

from ..core.array import Array
from ..core.lazy_fusion import LazyQueue, PendingOp, make_parameter_names

WIDTH = 16  # elements that both take at one time


def find_pending_chain(
    waiting: LazyQueue, x: Array
) -> tuple[int, list[PendingOp], list[Array], list[Array | None]] | None:
    """Return the deferred chain that computes `x`, or None: its index, the steps, their inputs, and arrays to write.

    The arrays have an entry per step, None if unused. `x` is not written if nobody reads it later
    (`LazyQueue.owner_to_drop`).
    """
    steps = waiting.steps
    place = next((k for k, step in enumerate(steps) if step.result() is x), None)
    if place is None:
        return None
    inputs, results, _ = waiting.inputs_and_results()
    if waiting.owner_to_drop is x:
        results[place] = None
    return place, steps, inputs, results


def broadcast_layout(inputs: list[Array], shape: tuple[int, ...], reduced: int) -> list[str] | None:
    """Return the layout of a chain's inputs relative to rows over the last `reduced` dimensions, or None.

    See `torchlite_backends.kernel_sources.reduce.BROADCAST_LAYOUTS`.
    """
    found = []
    for x in inputs:
        own = (1,) * (len(shape) - len(x.shape)) + x.shape
        outer, inner = own[: len(shape) - reduced], own[len(shape) - reduced :]
        is_along, is_down = inner == shape[len(shape) - reduced :], outer == shape[: len(shape) - reduced]
        if not x.contiguous or not (is_along or math.prod(inner) == 1) or not (is_down or math.prod(outer) == 1):
            return None
        found.append(("matrix" if is_down else "row") if is_along else "column" if is_down else "one")
    return found


def fuse_reduction_launch(text: str, name: str, signature: str, x: Array, reduced: int, **kinds: str) -> Any:
    """Return a launcher of the row-reduction kernel `name` fused with the ops that compute `x`; None if impossible.

    It takes the sizes, and the arrays and values that follow `x`.
    """
    device = x.device
    found = find_pending_chain(device.waiting, x)
    if found is None:
        return None
    place, steps, inputs, results = found
    lying = broadcast_layout(inputs, x.shape, reduced)
    if lying is None or any(a.kind != x.kind for a in inputs):
        return None
    written = tuple([result is not None for result in results])
    links = [(step.rule, len(step.operands), make_parameter_names(step, steps, inputs)) for step in steps]
    functions, plan = device.kept("chained"), steps[0].plan
    number: Any = next((step.plan.numbers for step in steps if step.plan.numbers is not None), plan.numbers)
    whole = (text, x.kind, *kinds.values(), place, *lying, written, *[(rule, *said) for rule, _, said in links])
    function = functions.get(whole)
    if function is None:
        chain = chain_source(device, links, x.kind, WIDTH, written)
        joined = fused_reduction_source(text, chain, place, x.kind, lying)
        letters = "p" * (len(inputs) + sum(written)) + signature[1:] + "x" * len(chain.numbers)
        function = functions[whole] = device.function(joined, name, letters, (WIDTH,), T=x.kind, **kinds)
    values = [
        number(n) for step in steps for n in (*step.operands, *step.numbers) if n.__class__ not in (Array, PendingOp)
    ]
    arrays = (*inputs, *[result for result in results if result is not None])
    device.waiting.forget()
    return lambda items, group, *more: function(items, group, *arrays, *more, *values)
