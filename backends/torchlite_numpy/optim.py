"""Multi-tensor optimizer steps: in place, in flat arrays, with two temporaries.

One parameter (a large one) is worked in blocks that fit the cache, on a few threads; several (small ones) are gathered into one flat array first.
"""

from __future__ import annotations

import math

import numpy as np

from . import blocks

_concatenate, _multiply, _subtract, _add, _divide, _sqrt = np.concatenate, np.multiply, np.subtract, np.add, np.divide, np.sqrt


def _scratch(cache, params):
    """(gathered gradients, update, the update's parts in the parameters' shapes), kept between steps."""
    found = cache.get("scratch")
    if found is None:
        sizes = [param.size for param in params]
        dtype = params[0].dtype
        gathered, update = np.empty(sum(sizes), dtype), np.empty(sum(sizes), dtype)
        ends = np.cumsum(sizes).tolist()
        parts = [update[end - size : end].reshape(param.shape) for size, end, param in zip(sizes, ends, params)]
        found = cache["scratch"] = gathered, update, parts
    return found


def _step(params, grads, states, cache, math_of_block, wants_params):
    """Run `math_of_block(gradient, update, *states, parameter)`, all flat, then subtract the update.

    The gradient's array is free to be used as scratch. `parameter` is None unless `wants_params`.
    """
    if len(params) == 1:
        param, grad = params[0].reshape(-1), grads[0].reshape(-1)

        def body(start, stop):
            size = stop - start
            scratch, update = blocks.buffer(0, (size,), param.dtype), blocks.buffer(1, (size,), param.dtype)
            np.copyto(scratch, grad[start:stop])
            parts = [None if state is None else state[start:stop] for state in states]
            block = param[start:stop]
            _subtract(block, math_of_block(scratch, update, *parts, block), block)

        blocks.run(body, param.size, 1, blocks.BLOCK // 2)
        return
    gathered, update, parts = _scratch(cache, params)
    _concatenate([grad.reshape(-1) for grad in grads], out=gathered)
    flat = _concatenate([param.reshape(-1) for param in params]) if wants_params else None
    result = math_of_block(gathered, update, *states, flat)
    if result is not update:
        np.copyto(update, result)
    for param, part in zip(params, parts):
        _subtract(param, part, param)


def _fused_adam(params, grads, exp_avg, exp_avg_sq, max_exp_avg_sq, cache, step, lr, beta1, beta2, eps, weight_decay, decoupled, maximize):
    correction = math.sqrt(1 - beta2**step)
    size, floor = lr * correction / (1 - beta1**step), eps * correction
    one_minus_beta1, one_minus_beta2 = 1 - beta1, 1 - beta2

    def block(g, u, m, v, largest, p):
        if maximize:
            np.negative(g, g)
        if weight_decay and not decoupled:
            _multiply(p, weight_decay, u)
            _add(g, u, g)
        _subtract(g, m, u)
        _multiply(u, one_minus_beta1, u)
        _add(m, u, m)
        _multiply(v, beta2, v)
        _multiply(g, g, g)
        _multiply(g, one_minus_beta2, g)
        _add(v, g, v)
        if largest is not None:
            v = np.maximum(largest, v, largest)
        # m / (sqrt(v) / correction + eps), with the correction taken out of the root's side.
        _sqrt(v, g)
        _add(g, floor, g)
        _divide(m, g, u)
        _multiply(u, size, u)
        if weight_decay and decoupled:
            _multiply(p, lr * weight_decay, g)
            _add(u, g, u)
        return u

    _step(params, grads, (exp_avg, exp_avg_sq, max_exp_avg_sq), cache, block, weight_decay != 0)


def _fused_sgd(params, grads, momentum_buffer, cache, first, lr, momentum, dampening, weight_decay, nesterov, maximize):
    def block(g, u, buffer, p):
        if maximize:
            np.negative(g, g)
        if weight_decay:
            _multiply(p, weight_decay, u)
            _add(g, u, g)
        if buffer is None:
            return _multiply(g, lr, u)
        if first:
            np.copyto(buffer, g)
        else:
            _multiply(buffer, momentum, buffer)
            if dampening:
                _add(buffer, _multiply(g, 1 - dampening, u), buffer)
            else:
                _add(buffer, g, buffer)
        if not nesterov:
            return _multiply(buffer, lr, u)
        _multiply(buffer, momentum, u)
        _add(u, g, u)
        return _multiply(u, lr, u)

    _step(params, grads, (momentum_buffer,), cache, block, weight_decay != 0)


def _fused_rmsprop(params, grads, square_avg, grad_avg, momentum_buffer, cache, lr, alpha, eps, momentum, weight_decay, maximize):
    def block(g, u, square, mean, buffer, p):
        if maximize:
            np.negative(g, g)
        if weight_decay:
            _multiply(p, weight_decay, u)
            _add(g, u, g)
        _multiply(g, g, u)
        _multiply(u, 1 - alpha, u)
        _multiply(square, alpha, square)
        _add(square, u, square)
        if mean is not None:
            _subtract(g, mean, u)
            _multiply(u, 1 - alpha, u)
            _add(mean, u, mean)
            _multiply(mean, mean, u)
            _sqrt(_subtract(square, u, u), u)
        else:
            _sqrt(square, u)
        _add(u, eps, u)
        _divide(g, u, u)
        if buffer is not None:
            _multiply(buffer, momentum, buffer)
            _add(buffer, u, buffer)
            return _multiply(buffer, lr, u)
        return _multiply(u, lr, u)

    _step(params, grads, (square_avg, grad_avg, momentum_buffer), cache, block, weight_decay != 0)


def _fused_adagrad(params, grads, sum, cache, rate, eps, weight_decay, maximize):
    def block(g, u, total, p):
        if maximize:
            np.negative(g, g)
        if weight_decay:
            _multiply(p, weight_decay, u)
            _add(g, u, g)
        _multiply(g, g, u)
        _add(total, u, total)
        _sqrt(total, u)
        _add(u, eps, u)
        _divide(g, u, u)
        return _multiply(u, rate, u)

    _step(params, grads, (sum,), cache, block, weight_decay != 0)
