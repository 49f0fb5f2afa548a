"""Runs hooks on nodes and gradients, and checks their results."""

from __future__ import annotations

import threading

from .._tensor import Tensor


class _Current(threading.local):
    """The backward passes that this thread is in, one inside the other."""

    runs: tuple = ()
    base = 0  # how many of them belong to threads below


CURRENT_PASSES = _Current()


def _hook_name(hook) -> str:
    return getattr(hook, "__name__", "<unknown>")


def check_hook_result(value, answer, hook):
    """Check the result of a gradient hook. TypeError unless it is a Tensor, RuntimeError unless it has the gradient's
    shape, dtype and device.
    """
    if not isinstance(answer, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(answer).__name__}'")
    if value is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if answer is value:
        return answer
    if answer._tl_array.shape != value._tl_array.shape:
        raise RuntimeError(f"hook '{_hook_name(hook)}' has changed the size of value")
    if answer.dtype is not value.dtype or answer._tl_kernels is not value._tl_kernels:
        raise RuntimeError(
            f"hook '{_hook_name(hook)}' has changed the type of value (was {value.type()} got {answer.type()})"
        )
    return answer


def check_hook_results(values: tuple, answer, hook) -> tuple:
    """Check the result of a hook on several gradients."""
    if not isinstance(answer, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(answer).__name__}'")
    if len(answer) != len(values):
        raise RuntimeError(
            f"hook '{_hook_name(hook)}' has returned an incorrect number of values (got {len(answer)}, but expected "
            f"{len(values)})"
        )
    found: list[Tensor | None] = []
    for value, item in zip(values, answer, strict=True):
        if item is None:
            found.append(None)
        else:
            found.append(check_hook_result(value, item, hook))
    return tuple(found)


def is_expandable_to(shape, of) -> bool:
    """True if a gradient of shape `of` can be summed down to `shape`."""
    lead = len(of) - len(shape)
    return lead >= 0 and all(n in (1, m) for n, m in zip(shape, of[lead:], strict=True))


def run_prehooks(mode, node, hooks, g):
    """A node's prehooks: the gradients of its outputs after them."""
    several = g.__class__ is list
    values = tuple(None if x is None else mode.tensor(node._tl_kernels, x) for x in (g if several else [g]))
    for hook in list(hooks.values()):
        answer = hook(values)
        if answer is not None:
            values = check_hook_results(values, answer, hook)
    grads = [None if v is None else mode.tensor_to_grad(v) for v in values]
    return grads if several else grads[0]


def run_posthooks(mode, node, grads, g):
    """A node's hooks: the gradients of its inputs after them."""
    table = node._tl_kernels
    sizes = [len(x) if x.__class__ in (tuple, list) else None for x in grads]
    parts = [p for x in grads for p in (x if x.__class__ in (tuple, list) else (x,))]
    inputs = tuple(None if x is None else mode.tensor(table, x) for x in parts)
    outputs = tuple(None if x is None else mode.tensor(table, x) for x in (g if g.__class__ is list else [g]))
    for hook in list(node._hooks.post.values()):
        answer = hook(inputs, outputs)
        if answer is not None:
            inputs = check_hook_results(inputs, answer, hook)
    found = iter([None if v is None else mode.tensor_to_grad(v) for v in inputs])
    return tuple(next(found) if n is None else tuple(next(found) for _ in range(n)) for n in sizes)
