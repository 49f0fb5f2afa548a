"""Batching rules of random ops, by `vmap`'s `randomness` setting."""

from __future__ import annotations

from typing import Any

from ..._dispatch import F, call
from ..._dispatch.interceptors import ReenabledInterceptor
from ..._tensor import Tensor
from .._batched_tensor import batch_dim_first, is_batched_at
from .rule_helpers import (
    elementwise_rule,
    logical_ndim,
    merge_batch_into_dim,
    pad_ndim,
    rule,
    run_below_level,
    split_batch_from_dim,
    to_batch,
)

_RANDOMNESS_ERROR = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)
_SAME_BATCHED_ERROR = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with your "
    "workload, or use randomness 'different'."
)


def check_allowed(level) -> None:
    """Raise RuntimeError if `randomness` is "error"."""
    if level.randomness == "error":
        raise RuntimeError(_RANDOMNESS_ERROR)


def random_rule(level, op, values: list, batching: Any):
    """Draw once for all examples ("same") or for each ("different")."""
    if op.name in ("_normal_sample", "_random_fill"):
        return elementwise_rule(level, op, values) if any(map(level.has, values)) else run_below_level(op, values)
    check_allowed(level)
    if op.name in ALWAYS:
        return batching(level, op, values)
    tensors = [v for p, v in zip(op.params, values, strict=True) if p.is_tensor]
    if not tensors:
        if level.randomness == "same":
            return run_below_level(op, values)
        return level.wrap(run_below_level(op, [(level.size, *values[0]), *values[1:]]))
    if level.randomness == "different":
        return level.wrap(run_below_level(op, [to_batch(level, v) for v in values]))
    if not any(level.has(v) for v in values):
        return run_below_level(op, values)
    if op.name == "_dropout":
        x, p, engine = values
        kept = F._random_keep_mask(tuple(x.shape), x.dtype, p, engine)
        with ReenabledInterceptor(level):
            return F.mul(x, kept)
    raise RuntimeError(_SAME_BATCHED_ERROR)


_UNBATCHED_IN_PLACE_ERROR = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
    "If this is necessary for your usage, please file an issue with functorch."
)
ALWAYS: set[str] = set()  # ops whose rules run even without a batched argument


def _make_rule(*names: str):
    def declare(function):
        def checked(level, op, values):
            check_allowed(level)
            return function(level, op, values)

        ALWAYS.update(names)
        rule(*names, kind="random")(checked)
        return function

    return declare


def _make_empty_example(tensor):
    """Return an empty tensor with the shape of one example."""
    return call.create_tensor("_empty", tuple(tensor.shape), tensor.dtype, device=tensor.device)


@_make_rule(
    "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "cauchy_", "geometric_", "log_normal_",
)  # fmt: skip
def _in_place_random_rule(level, op, values):
    target, *rest = values
    if not is_batched_at(target, level):
        if level.randomness == "different":
            raise RuntimeError(_UNBATCHED_IN_PLACE_ERROR)
        if any(level.has(v) for v in rest):
            raise RuntimeError(_SAME_BATCHED_ERROR)
        return run_below_level(op, values)
    if level.randomness == "different":
        run_below_level(op, [batch_dim_first(target), *(pad_ndim(level, v, logical_ndim(target)) for v in rest)])
        return target
    if any(level.has(v) for v in rest):
        raise RuntimeError(_SAME_BATCHED_ERROR)
    drawn_once = run_below_level(op, [_make_empty_example(target), *rest])
    with ReenabledInterceptor(level):
        target.copy_(drawn_once)
    return target


@_make_rule("rand_like", "randn_like", "randint_like")
def _random_like_rule(level, op, values):
    if level.randomness == "different":
        return level.wrap(run_below_level(op, [to_batch(level, v) for v in values]))
    return run_below_level(op, [_make_empty_example(v) if is_batched_at(v, level) else v for v in values])


@_make_rule("normal", "bernoulli", "poisson", "binomial")
def _elementwise_random_rule(level, op, values):
    tensors = [v for v in values if isinstance(v, Tensor)]
    if not tensors:
        with ReenabledInterceptor(level):
            return op.composite(F, *values)
    if level.randomness == "different":
        ndim = max(map(logical_ndim, tensors))
        return level.wrap(run_below_level(op, [pad_ndim(level, v, ndim) for v in values]))
    if any(map(level.has, tensors)):
        raise RuntimeError(_SAME_BATCHED_ERROR)
    return run_below_level(op, values)


@_make_rule("multinomial")
def _multinomial(level, op, values):
    if level.randomness == "same":
        if level.has(values[0]):
            raise RuntimeError(_SAME_BATCHED_ERROR)
        return run_below_level(op, values)
    weights = to_batch(level, values[0])
    if weights.ndim == 2:
        return level.wrap(run_below_level(op, [weights, *values[1:]]))
    return level.wrap(
        split_batch_from_dim(run_below_level(op, [merge_batch_into_dim(weights), *values[1:]]), level.size)
    )


@_make_rule("_random_permutation")
def _permutation_rule(level, op, values):
    if level.randomness == "same":
        return run_below_level(op, values)
    return level.wrap(F.stack([run_below_level(op, values) for _ in range(level.size)], 0))
