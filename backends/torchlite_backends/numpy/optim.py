"""Multi-tensor optimizer steps: in place, in flat arrays, with two temporaries.

Large parameters are worked in parts, on a few threads; several small ones are gathered into one flat array first.
"""

from __future__ import annotations

import math

import numpy as np

from . import cache_blocking

# Parameters of so many elements together are gathered. Of larger ones a thread takes so many elements at a time: with
# fewer the threads wait for each other's Python (half as many took 1.4 times as long).
_MAX_SIZE_TO_CONCAT, _PART = 1 << 16, 1 << 17


def _scratch(cache, params):
    """(gathered gradients, update, the update's parts in the parameters' shapes), kept between steps."""
    found = cache.get("scratch")
    if found is None:
        sizes = [param.size for param in params]
        dtype = params[0].dtype
        gathered, update = np.empty(sum(sizes), dtype), np.empty(sum(sizes), dtype)
        ends = np.cumsum(sizes).tolist()
        parts = [
            update[end - size : end].reshape(param.shape) for size, end, param in zip(sizes, ends, params, strict=True)
        ]
        found = cache["scratch"] = gathered, update, parts
    return found


def _as_0d(params, *values):
    """Numbers as arrays without dimensions: NumPy takes them in half the time that Python's cost it."""
    dtype = params[0].dtype
    return [np.array(value, dtype) for value in values]


def _cached_0d(cache, params, *values):
    """The same of numbers that seldom change, kept between steps."""
    found = cache.get("constants")
    if found is None or found[0] != values:
        found = cache["constants"] = values, _as_0d(params, *values)
    return found[1]


def _step(params, grads, states, cache, math_of_block, wants_params, shrink=None):
    """Run `math_of_block(gradient, scratch, update, *states, parameter)`, all flat, then subtract the update.

    The scratch may be the gradient itself, which else is only read. `parameter` is None unless `wants_params`. Large
    parameters are multiplied by the number `shrink` before, where it is given, and their block is told of none.
    """
    if len(params) == 1 or sum([param.size for param in params]) > _MAX_SIZE_TO_CONCAT:
        _step_in_parts(params, grads, states, math_of_block, shrink)
        return
    gathered, update, parts = _scratch(cache, params)
    np.concatenate(grads, None, gathered)
    flat = np.concatenate(params, None) if wants_params else None
    result = math_of_block(gathered, gathered, update, *states, flat)
    if result is not update:
        np.copyto(update, result)
    for param, part in zip(params, parts):  # noqa: B905  as many by construction; the hot path
        np.subtract(param, part, param)


def _step_in_parts(params, grads, states, math_of_block, shrink):
    parts, first = [], 0
    for param, grad in zip(params, grads, strict=True):
        param, grad = param.reshape(-1), grad.reshape(-1)
        for start in range(0, param.size, _PART):
            here = slice(start, start + _PART)
            parts.append((param[here], grad[here], first + start))
        first += param.size

    def body(param, grad, place):
        size = param.size
        scratch, update = (
            cache_blocking.scratch_buffer(0, (size,), param.dtype),
            cache_blocking.scratch_buffer(1, (size,), param.dtype),
        )
        here = [None if state is None else state[place : place + size] for state in states]
        result = math_of_block(grad, scratch, update, *here, param if shrink is None else None)
        if shrink is not None:
            np.multiply(param, shrink, out=param)
        np.subtract(param, result, out=param)

    cache_blocking.parallel_for(body, parts)


def _fused_adam(
    params,
    grads,
    exp_avg,
    exp_avg_sq,
    max_exp_avg_sq,
    cache,
    step,
    lr,
    beta1,
    beta2,
    eps,
    weight_decay,
    decoupled,
    maximize,
    grad_scale,
    found_inf,
):
    if _unscale_or_skip(grads, grad_scale, found_inf):
        return
    correction = math.sqrt(1 - beta2**step)
    size, floor = _as_0d(params, lr * correction / (1 - beta1**step), eps * correction)
    decay, new, keep_square, new_square = _cached_0d(
        cache, params, lr * weight_decay if decoupled else weight_decay, 1 - beta1, beta2, 1 - beta2
    )

    def block(g, s, u, m, v, largest, p):
        if maximize:
            g = np.negative(g, s)
        if weight_decay and not decoupled:
            np.multiply(p, decay, u)
            g = np.add(g, u, s)
        np.subtract(g, m, u)
        np.multiply(u, new, u)
        np.add(m, u, m)
        np.multiply(v, keep_square, v)
        np.multiply(g, g, s)
        np.multiply(s, new_square, s)
        np.add(v, s, v)
        if largest is not None:
            v = np.maximum(largest, v, out=largest)
        # m / (sqrt(v) / correction + eps), with the correction taken out of the root's side.
        np.sqrt(v, s)
        np.add(s, floor, s)
        np.divide(m, s, u)
        np.multiply(u, size, u)
        if p is not None and weight_decay and decoupled:
            np.multiply(p, decay, s)
            np.add(u, s, u)
        return u

    shrink = decay.dtype.type(1 - lr * weight_decay) if weight_decay and decoupled else None
    _step(params, grads, (exp_avg, exp_avg_sq, max_exp_avg_sq), cache, block, weight_decay != 0, shrink)


def _fused_sgd(
    params,
    grads,
    momentum_buffer,
    cache,
    first,
    lr,
    momentum,
    dampening,
    weight_decay,
    nesterov,
    maximize,
    grad_scale,
    found_inf,
):
    if _unscale_or_skip(grads, grad_scale, found_inf):
        return

    rate, decay, keep, new = _cached_0d(cache, params, lr, weight_decay, momentum, 1 - dampening)

    def block(g, s, u, buffer, p):
        if maximize:
            g = np.negative(g, s)
        if weight_decay:
            np.multiply(p, decay, u)
            g = np.add(g, u, s)
        if buffer is None:
            return np.multiply(g, rate, u)
        if first:
            np.copyto(buffer, g)
        else:
            np.multiply(buffer, keep, buffer)
            if dampening:
                np.add(buffer, np.multiply(g, new, u), buffer)
            else:
                np.add(buffer, g, buffer)
        if not nesterov:
            return np.multiply(buffer, rate, u)
        np.multiply(buffer, keep, u)
        np.add(u, g, u)
        return np.multiply(u, rate, u)

    _step(params, grads, (momentum_buffer,), cache, block, weight_decay != 0)


def _fused_rmsprop(
    params, grads, square_avg, grad_avg, momentum_buffer, cache, lr, alpha, eps, momentum, weight_decay, maximize
):
    rate, decay, keep, new, floor, speed = _cached_0d(cache, params, lr, weight_decay, alpha, 1 - alpha, eps, momentum)

    def block(g, s, u, square, mean, buffer, p):
        if maximize:
            g = np.negative(g, s)
        if weight_decay:
            np.multiply(p, decay, u)
            g = np.add(g, u, s)
        np.multiply(g, g, u)
        np.multiply(u, new, u)
        np.multiply(square, keep, square)
        np.add(square, u, square)
        if mean is not None:
            np.subtract(g, mean, u)
            np.multiply(u, new, u)
            np.add(mean, u, mean)
            np.multiply(mean, mean, u)
            np.sqrt(np.subtract(square, u, u), u)
        else:
            np.sqrt(square, u)
        np.add(u, floor, u)
        np.divide(g, u, u)
        if buffer is not None:
            np.multiply(buffer, speed, buffer)
            np.add(buffer, u, buffer)
            return np.multiply(buffer, rate, u)
        return np.multiply(u, rate, u)

    _step(params, grads, (square_avg, grad_avg, momentum_buffer), cache, block, weight_decay != 0)


def _fused_adagrad(params, grads, sum, cache, step, lr, lr_decay, eps, weight_decay, maximize, grad_scale, found_inf):
    if _unscale_or_skip(grads, grad_scale, found_inf):
        return
    rate, decay, floor = _as_0d(params, lr / (1 + (step - 1) * lr_decay), weight_decay, eps)

    def block(g, s, u, total, p):
        if maximize:
            g = np.negative(g, s)
        if weight_decay:
            np.multiply(p, decay, u)
            g = np.add(g, u, s)
        np.multiply(g, g, u)
        np.add(total, u, total)
        np.sqrt(total, u)
        np.add(u, floor, u)
        np.divide(g, u, u)
        return np.multiply(u, rate, u)

    _step(params, grads, (sum,), cache, block, weight_decay != 0)


def _unscale_or_skip(grads, grad_scale, found_inf):
    """Whether a gradient scaler leaves the step out; else the gradients are divided by its scale."""
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
        _scale(small, factor)
    for grad in grads if len(small) < len(grads) else ():
        if grad.size > _MAX_UNSCALE_SIZE_TO_CONCAT and not _unscale_large(grad, factor):
            found_inf.fill(1)


# Gradients of at most this many elements are looked at together: a call for each costs more than a copy.
_MAX_UNSCALE_SIZE_TO_CONCAT = 1 << 12


def _unscale_large(grad, factor):
    """Scale a gradient; returns whether all of it was finite."""
    flat, wrong = grad.reshape(-1), []
    if flat.size <= cache_blocking.SMALL or not grad.flags.c_contiguous:
        finite = _all_finite(flat)
        if factor != 1:
            _scale([grad], factor)
        return finite

    def body(start, stop):
        block = flat[start:stop]
        if not _all_finite(block):
            wrong.append(start)
        if factor != 1:
            _scale([block], factor)

    cache_blocking.run_blocks(body, flat.size, 1)
    return not wrong


def _all_finite(flat):
    # A sum of squares is infinite or NaN where one element is, and costs one pass; where large squares make it so each
    # element is looked at.
    return flat.dtype.itemsize >= 4 and math.isfinite(flat.dot(flat)) or bool(np.isfinite(flat).all())


def _scale(grads, factor):
    if grads and grads[0].dtype.itemsize < 4:
        for grad in grads:
            grad[...] = grad.astype(np.float32) * np.float32(factor)
        return
    multiply = np.multiply
    for grad in grads:
        multiply(grad, factor, grad)
