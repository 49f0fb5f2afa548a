"""Helpers of optimizer steps: loops over gradients and states, step counts, checks of options."""

from __future__ import annotations

import functools
import math
from typing import Any

import torchlite as torch
from torchlite._ops import fused_optim as _multi


def _use_grad_for_differentiable(func: Any) -> Any:
    """A step that records gradients only if the optimizer is `differentiable`."""

    @functools.wraps(func)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with torch.set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return run


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The types of devices on which a step may be captured in a graph."""
    return ["cuda", "xpu", "hpu", *(["xla"] if supports_xla else [])]


def _default_to_fused_or_foreach(params: Any, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Return the default implementation as (fused, foreach)."""
    if differentiable:
        return False, False
    plain = all(p is None or (type(p) in (torch.Tensor, torch.nn.Parameter) and p.is_cuda) for p in params)
    fused = use_fused and plain and all(p is None or p.is_floating_point() for p in params)
    return fused, plain and not fused


def _choose_implementation(optimizer, foreach, fused, differentiable):
    """Check the implementation flags: RuntimeError if they exclude each other. With `fused` the step accepts the
    results of a gradient scaler.
    """
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if fused:
        optimizer._step_supports_amp_scaling = True


def _scaler_tensors(optimizer, group):
    """(grad_scale, found_inf) of a gradient scaler as 0-d tensors on the group's device, or None."""
    given = getattr(optimizer, "grad_scale", None), getattr(optimizer, "found_inf", None)
    if given[0] is None and given[1] is None or not group["params"]:
        return None, None
    if not group["fused"]:
        raise AssertionError("Expected grad_scale and found_inf to be None")
    where = group["params"][0].device
    return tuple(
        [None if x is None else x.detach().to(where, torch.float32, non_blocking=True).reshape(()) for x in given]
    )


def _is_step_skipped(optimizer, group, init, grad_scale, found_inf):
    """For a step without a multi-tensor kernel: True if a scaler skips it; else divide the gradients by its scale, in
    place.
    """
    if found_inf is not None and found_inf.item():
        for _ in _params_with_grad(optimizer, group, init):  # the states are created nevertheless
            pass
        return True
    if grad_scale is not None:
        for param in group["params"]:
            if param.grad is not None:
                grad = param.grad.detach()
                grad.copy_(grad.to(torch.promote_types(grad.dtype, torch.float32)) / grad_scale.to(grad.device))
    return False


def _evaluate_closure(closure):
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


def _run_single_tensor(optimizer, closure, init, update, refuses_complex=False):
    """A step by `init(group, state, param, grad)`, which fills a state, and `update(group, param, grad, state)`."""
    loss = _evaluate_closure(closure)
    for group in optimizer.param_groups:
        with torch.set_grad_enabled(group.get("differentiable", False)):
            for param, grad, state in _params_with_grad(
                optimizer, group, functools.partial(init, group), refuses_complex
            ):
                update(group, param, grad, state)
    return loss


def _params_with_grad(optimizer, group, init, refuses_complex=False, takes_sparse=False):
    """Return (parameter, gradient, state) of each parameter with a gradient, as real tensors, the gradient negated if
    `maximize`.

    `init(state, param, grad)` fills an empty state; without `init` there is no state.
    """
    for param in group["params"]:
        grad = param.grad
        if grad is None:
            continue
        if refuses_complex and param.is_complex():
            raise RuntimeError(f"{type(optimizer).__name__} does not support complex parameters")
        if grad.layout is not torch.strided:
            _check_sparse(optimizer, group, takes_sparse)
        if group.get("fused") and not param.is_floating_point():
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors of supported devices: ['cpu', "
                f"'cuda', 'opencl'] but {param.dtype} and {param.device.type}"
            )
        state = {} if init is None else optimizer.state[param]
        if not state and init is not None:
            init(state, param, grad)
        if group.get("maximize"):
            grad = -grad
        yield param, grad, state


def _check_sparse(optimizer, group, takes_sparse: bool) -> None:
    """RuntimeError for a sparse gradient, if the optimizer does not support it."""
    name = type(optimizer).__name__
    if takes_sparse and group.get("fused"):
        raise RuntimeError(f"`_fused_{name.lower()}` does not support sparse gradients")
    if takes_sparse:
        return
    if name in ("Adam", "AdamW"):
        raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")
    raise RuntimeError(f"{name} does not support sparse gradients")


def _view_as_real(*tensors):
    """Return complex tensors as real ones with one more dimension; None is unchanged."""
    return tuple(
        torch.view_as_real(tensor) if tensor is not None and tensor.is_complex() else tensor for tensor in tensors
    )


def _get_value(value):
    """Return an option that may be a one-element tensor as a number."""
    return value.item() if isinstance(value, torch.Tensor) else value


def _scalar_tensor(value=0.0):
    """Return a 0-d tensor for a scalar of the state (a step count, ...)."""
    dtype = torch.float64 if torch.get_default_dtype() is torch.float64 else torch.float32
    return torch.tensor(value, dtype=dtype)


def _apply_weight_decay(group, param, grad, lr):
    """The gradient with weight decay; decoupled decay shrinks the parameter instead."""
    weight_decay = group["weight_decay"]
    if weight_decay == 0:
        return grad
    if not group["decoupled_weight_decay"]:
        return grad.add(param, alpha=weight_decay)
    param.mul_(1 - lr * weight_decay)
    return grad


def _init_step_count(group, param, value=0.0):
    """Return the initial step count, or another number of a new state: on the parameter's device if a step must not
    need the host.
    """
    if _is_step_on_device(group, param):
        return torch.full((), value, dtype=torch.float32, device=param.device)
    return _scalar_tensor(value)


def _is_step_on_device(group, param):
    """True if step counts are float32 tensors on the parameter's device."""
    return bool(group.get("fused") or group.get("capturable") and not param.is_cpu)


def _increment_step(step, on_device=False):
    """Increment the step count and return it as a number; with `on_device` a device tensor is returned as is, without
    synchronization.
    """
    step += 1
    return step if on_device and not step.is_cpu else step.item()


def _power(base, exponent):
    """base ** exponent, the exponent a number or a tensor."""
    if not isinstance(exponent, torch.Tensor):
        return base**exponent
    return torch.exp(exponent * math.log(base)) if base else torch.zeros_like(exponent)


@functools.lru_cache(64)
def _nonzero_eps(eps, dtype):
    """`eps`, or where the dtype rounds it to 0 the least number that keeps quotients of small numbers finite.

    In float16 that is 2**-23, less than a rounding error of each root that is not 0.
    """
    limits = torch.finfo(dtype)
    smallest = limits.smallest_normal * limits.eps
    return 2 * smallest if 0 < eps <= smallest / 2 else eps


def _addcdiv_scaled(param, size, top, bottom):
    """param -= size * top / bottom, `size` a number or a tensor."""
    if isinstance(size, torch.Tensor):
        param.sub_(size * top / bottom)
    else:
        param.addcdiv_(top, bottom, value=-size)


def _bias_correction(beta, step):
    """1 - beta ** step."""
    return (
        1 - beta**step
        if not isinstance(step, torch.Tensor)
        else -torch.expm1(step * math.log(beta))
        if beta
        else torch.ones_like(step)
    )


def _zeros_like(param):
    return torch.zeros_like(param, memory_format=torch.preserve_format)


def _check_lr(lr):
    if isinstance(lr, torch.Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not 0.0 <= lr:
        raise ValueError(f"Invalid learning rate: {lr}")


def _check_betas(betas):
    for index in (0, 1):
        if not 0.0 <= betas[index] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")


def _options(arguments: dict[str, Any], names: str) -> dict[str, Any]:
    """Return a constructor's arguments of these names, in this order."""
    return {name: arguments[name] for name in names.split()}


def _add_missing_options(optimizer, **options):
    """Give each group the options that older checkpoints lack."""
    for group in optimizer.param_groups:
        for name, value in options.items():
            group.setdefault(name, value)


def _checked_options(arguments: dict[str, Any], names: str) -> dict[str, Any]:
    """Return a constructor's arguments of these names. ValueError for a wrong rate, epsilon, momentum or the like."""
    options = _options(arguments, names)
    _check_lr(options["lr"])
    for name, description in (("eps", "epsilon"), ("momentum", "momentum"), ("weight_decay", "weight_decay")):
        if name in options and not 0.0 <= options[name]:
            raise ValueError(f"Invalid {description} value: {options[name]}")
    if "betas" in options:
        _check_betas(options["betas"])
    return options


# The multi-tensor path


def _has_capturable_kernel(group, names):
    """True if the multi-tensor kernel supports a group with `capturable`: Adam's does, if the learning rate is a
    number.
    """
    return (
        "exp_avg_sq" in names
        and not isinstance(group["lr"], torch.Tensor)
        and not any(param.is_cpu for param in group["params"])
    )


def _fused_gradients(optimizer, number, group, init, names):
    """Return (plan, gradients of its packs) if a multi-tensor kernel supports this group, else None for the
    single-tensor step.
    """
    if (
        group.get("differentiable")
        or (group.get("capturable") and not _has_capturable_kernel(group, names))
        or not _multi.is_plain_mode()
        or _multi.has_sparse_gradient(group["params"])
    ):
        return None
    plans = optimizer.__dict__.setdefault("_plans", {})
    plan = plans.get(number)
    if plan is not None:
        if plan.group_params is group["params"]:
            grads = plan.gradients(optimizer.state)
            if grads is not None:
                return plan, grads
        del plans[number]
    params = [param for param in group["params"] if param.grad is not None]
    missing = [param for param in group["params"] if param.grad is None]
    if not params or len({id(param) for param in params}) != len(params) or not _multi.can_plan(params):
        return None
    states = [optimizer.state[param] if names else {} for param in params]
    for param, state in zip(params, states, strict=True):
        if not state:
            init(state, param, param.grad)
    if any(
        not isinstance(state.get(name), torch.Tensor)
        or state[name].dtype is not param.dtype
        or state[name].device != param.device
        or state[name].shape != param.shape
        for param, state in zip(params, states, strict=True)
        for name in names
    ):
        return None
    plan = _multi.make_plan(group["params"], params, missing, states, names, _is_step_on_device(group, params[0]))
    if plan is None:
        return None
    plans[number] = plan
    return plan, plan.gradients(optimizer.state)
