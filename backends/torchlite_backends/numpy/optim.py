"""Multi-tensor optimizer steps: in place, in flat arrays, with two temporaries.

The calls are generated from the formulas in `torchlite._types.optimizer_formulas`. Large parameters are updated in
parts, on a few threads; several small ones are gathered into one flat array first.
"""

from __future__ import annotations

import ast
import functools
import math

import numpy as np

from torchlite._types.optimizer_formulas import ADAGRAD, ADAM, RMSPROP, SGD, find_names
from torchlite._types.python_source import compile_function

from . import cache_blocking
from .in_place_calls import InPlaceCalls, make_namespace

# Parameters with at most so many elements in total are gathered. Of larger ones a thread updates so many elements at a
# time: with fewer, threads wait for each other's GIL (half as many took 1.4 times as long).
_MAX_SIZE_TO_CONCAT, _PART = 1 << 16, 1 << 17


def _get_scratch_arrays(cache, params):
    """Return gathered gradients, updates and parameters, and the last two in the parameters' shapes; cached between
    steps.
    """
    found = cache.get("scratch")
    if found is None:
        sizes = [param.size for param in params]
        flats = [np.empty(sum(sizes), params[0].dtype) for _ in range(3)]
        ends = np.cumsum(sizes).tolist()
        parts = [
            [flat[end - size : end].reshape(param.shape) for size, end, param in zip(sizes, ends, params, strict=True)]
            for flat in flats[1:]
        ]
        found = cache["scratch"] = *flats, *parts
    return found


@functools.cache
def _make_step_block(formula, present, values):
    """Return `block(grad, scratch, update, param, *states, *numbers)` of a formula, and whether it reads and scales
    `param`.

    present: the names of existing states; values: the numbers that are constant over steps.
    """
    fixed = dict(zip(formula.numbers, values, strict=False))
    known = fixed | dict(zip(formula.states, present, strict=True))
    statements = formula.specialize(known, {name for name, value in fixed.items() if value == 1})
    # The value to subtract from the parameter ends in `update`. `scratch` may be the memory of `grad`, so nothing is
    # written there before the last use of `grad`.
    calls = InPlaceCalls(statements, {"grad": "scratch"}, ["update"], formula.states)
    kept, difference = statements[-1].value.left, statements[-1].value.right
    calls.finish(difference, "update")
    scales = isinstance(kept, ast.BinOp)
    lines = [*calls.lines, f"multiply(param, {kept.right.id}, param)"] if scales else calls.lines
    parameters = ", ".join(("grad", "scratch", "update", "param", *formula.states, *formula.numbers))
    text = f"def block({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
    reads = scales or any("param" in find_names(s.value) for s in statements[:-1])
    return compile_function("block", text, f"<{formula.name} {known}>", make_namespace()), reads, scales


def _step_parameters(formula, params, grads, states, cache, options):
    """Step all parameters by a formula whose scalars depend on `options`.

    Scalars are 0-d arrays, which NumPy takes in half the time of Python numbers.
    """
    count, dtype = formula.fixed_count, params[0].dtype
    values = formula.host_numbers(*options) if formula.numbers_of_step else options
    key = values[:count] if formula.numbers_of_step else options, [s is not None for s in states]
    found = cache.get("block")
    if found is None or found[0] != key:
        fixed = formula.host_numbers(*options)[:count]
        # Conditions and numbers that are 1 differ between blocks; what else a rate is does not.
        plain = tuple([value if value in (0, 1) else 2.0 for value in fixed])
        found = cache["block"] = (
            key,
            [np.array(v, dtype) for v in fixed],
            *_make_step_block(formula, tuple(key[1]), plain),
        )
    _, numbers, block, reads_param, scales_param = found
    if formula.numbers_of_step:
        numbers = numbers + [np.array(value, dtype) for value in values[count:]]
    if len(params) == 1 or sum([param.size for param in params]) > _MAX_SIZE_TO_CONCAT:
        _step_in_parts(block, params, grads, states, numbers)
        return
    gathered, update, flat, updates, parts = _get_scratch_arrays(cache, params)
    np.concatenate(grads, None, gathered)
    if reads_param:
        np.concatenate(params, None, flat)
    block(gathered, gathered, update, flat, *states, *numbers)
    if not scales_param:
        for param, part in zip(params, updates):  # noqa: B905  as many by construction; the hot path
            np.subtract(param, part, param)
        return
    np.subtract(flat, update, flat)
    for param, part in zip(params, parts):  # noqa: B905
        param[...] = part


def _step_in_parts(block, params, grads, states, numbers):
    parts, first = [], 0
    for param, grad in zip(params, grads, strict=True):
        param, grad = param.reshape(-1), grad.reshape(-1)
        for start in range(0, param.size, _PART):
            here = slice(start, start + _PART)
            parts.append((param[here], grad[here], first + start))
        first += param.size

    def step_part(param, grad, place):
        size = param.size
        scratch, update = (cache_blocking.get_scratch_buffer(slot, (size,), param.dtype) for slot in (0, 1))
        here = [None if state is None else state[place : place + size] for state in states]
        block(grad, scratch, update, param, *here, *numbers)
        np.subtract(param, update, out=param)

    cache_blocking.parallel_for(step_part, parts)


def _fused_adam(params, grads, exp_avg, exp_avg_sq, max_exp_avg_sq, cache, *options):
    if not _unscale_or_skip(grads, *options[-2:]):
        _step_parameters(ADAM, params, grads, (exp_avg, exp_avg_sq, max_exp_avg_sq), cache, options[:-2])


def _fused_sgd(params, grads, momentum_buffer, cache, *options):
    if not _unscale_or_skip(grads, *options[-2:]):
        _step_parameters(SGD, params, grads, (momentum_buffer,), cache, options[:-2])


def _fused_rmsprop(params, grads, square_avg, grad_avg, momentum_buffer, cache, *options):
    _step_parameters(RMSPROP, params, grads, (square_avg, grad_avg, momentum_buffer), cache, options)


def _fused_adagrad(params, grads, sum, cache, *options):
    if not _unscale_or_skip(grads, *options[-2:]):
        _step_parameters(ADAGRAD, params, grads, (sum,), cache, options[:-2])


def _unscale_or_skip(grads, grad_scale, found_inf):
    """Return True if a gradient scaler skips the step; else divide the gradients by its scale."""
    if found_inf is not None and found_inf.item() != 0:
        return True
    if grad_scale is not None:
        for grad in grads:
            np.divide(grad, grad_scale, grad)
    return False


def _unscale_homogeneous(grads, found_inf, inv_scale):
    factor = inv_scale.item()
    small = [grad for grad in grads if grad.size <= _MAX_UNSCALE_SIZE_TO_CONCAT]
    if small and not _all_finite(np.concatenate(small, axis=None)):
        found_inf.fill(1)
    if factor != 1:
        _scale_grads(small, factor)
    for grad in grads if len(small) < len(grads) else ():
        if grad.size > _MAX_UNSCALE_SIZE_TO_CONCAT and not _unscale_large_grad(grad, factor):
            found_inf.fill(1)


# Gradients of at most this many elements are concatenated for the check: a call for each costs more than a copy.
_MAX_UNSCALE_SIZE_TO_CONCAT = 1 << 12


def _unscale_large_grad(grad, factor):
    """Scale a gradient; return True if all of it was finite."""
    flat, wrong = grad.reshape(-1), []
    if flat.size <= cache_blocking.SMALL or not grad.flags.c_contiguous:
        finite = _all_finite(flat)
        if factor != 1:
            _scale_grads([grad], factor)
        return finite

    def unscale_part(start, stop):
        block = flat[start:stop]
        if not _all_finite(block):
            wrong.append(start)
        if factor != 1:
            _scale_grads([block], factor)

    cache_blocking.run_blocks(unscale_part, flat.size, 1)
    return not wrong


def _all_finite(flat):
    # A sum of squares is infinite or NaN where one element is, and costs one pass; where large squares make it so each
    # element is looked at.
    return flat.dtype.itemsize >= 4 and math.isfinite(flat.dot(flat)) or bool(np.isfinite(flat).all())


def _scale_grads(grads, factor):
    if grads and grads[0].dtype.itemsize < 4:
        for grad in grads:
            grad[...] = grad.astype(np.float32) * np.float32(factor)
        return
    multiply = np.multiply
    for grad in grads:
        multiply(grad, factor, grad)
