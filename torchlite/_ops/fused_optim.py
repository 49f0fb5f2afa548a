"""Multi-tensor optimizer steps, and cached plans for them.

An optimizer's hot path is one kernel call for many parameters. Small parameters of a group are *packed*: their states
are adjacent in flat arrays, so a step needs only a few calls. A kernel receives the parameters and gradients as lists
of raw arrays and the states as flat ones, and works in place.
"""

import ast
import math
import operator
from typing import Any

from torchlite._device.streams import CAPTURES
from torchlite._dispatch import NONDIFF, op
from torchlite._dispatch.autograd_graph import AutogradMeta, check_before_write
from torchlite._dispatch.dispatch_state import GLOBALS, recording
from torchlite._dispatch.numpy_errors import run_quietly
from torchlite._dispatch.public_functions import torch
from torchlite._tensor import Parameter, Tensor
from torchlite._types.dtypes import float32
from torchlite._types.optimizer_formulas import ADAGRAD, ADAM, RMSPROP, SGD

# Parameters of at most this many elements are packed, up to this many elements per pack. On the CPU it is the size of a
# core's cache; larger parameters are packed separately, so that threads share a step's work evenly. On devices, launch
# costs dominate; the limit is a size that may be allocated twice for a moment.
SMALL, TOGETHER, LARGE_TOGETHER = 1 << 14, 1 << 16, 1 << 22
SMALL_THERE, TOGETHER_THERE = 1 << 22, 1 << 24


# --- kernels' records; the composites serve backends without a kernel -----------------------------

# The arguments of each op after its arrays and `cache` are the options of its formula, in order.


def _flatten_arrays(F, arrays):
    parts = [F.reshape(array, (-1,)) for array in arrays]
    return parts[0] if len(parts) == 1 else F.cat(parts, 0)


def _write_back(F, params, flat):
    start = 0
    for param in params:
        size = 1
        for length in param.shape:
            size *= length
        F.copy_into(param, F.reshape(F.narrow(flat, 0, start, size), param.shape))
        start += size


def _evaluate_expression(F, node, names):
    """The value of an expression of a formula, over numbers and raw arrays."""
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.IfExp):
        return _evaluate_expression(F, node.body if _evaluate_expression(F, node.test, names) else node.orelse, names)
    if isinstance(node, ast.UnaryOp):
        value = _evaluate_expression(F, node.operand, names)
        return F.neg(value) if hasattr(value, "shape") else -value
    parts = node.args if isinstance(node, ast.Call) else (node.left, node.right)
    values = [_evaluate_expression(F, part, names) for part in parts]
    on_arrays = any(hasattr(value, "shape") for value in values)
    if isinstance(node, ast.BinOp):
        name, function = _OPERATORS[type(node.op)]
        return getattr(F, name)(*values) if on_arrays else function(*values)
    if node.func.id == "bias_correction":
        beta, count = values
        if not on_arrays:
            return 1 - beta**count
        return F.neg(F.expm1(F.mul(count, math.log(beta)))) if beta else F._ones_like(count)
    return getattr(F, node.func.id)(*values) if on_arrays else math.sqrt(*values)


_OPERATORS: dict[type, Any] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
}


def _make_composite(formula):
    """The composite that runs a formula's statements as ops over flat arrays."""
    places = len(formula.states)

    def composite(F, params, grads, *rest):
        states = dict(zip(formula.states, rest, strict=False))
        names = dict(zip(formula.options, rest[places + 1 :], strict=True))
        names |= {"param": _flatten_arrays(F, params), "grad": _flatten_arrays(F, grads), **states}
        if hasattr(names.get("step"), "shape"):  # counts on the device, all alike
            names["step"] = F.to(F.narrow(names["step"], 0, 0, 1), F.dtype_of(names["param"]))
        for statement in formula.scalars:
            names[statement.targets[0].id] = _evaluate_expression(F, statement.value, names)
        known = {name: state is not None for name, state in states.items()}
        known |= {name: names[name] for name in formula.numbers if not hasattr(names[name], "shape")}
        for statement in formula.specialize(known):
            name, value = statement.targets[0].id, _evaluate_expression(F, statement.value, names)
            if name in states:
                F.copy_into(states[name], value)
            else:
                names[name] = value
        _write_back(F, params, names["param"])

    return composite


def _with_scaler(rule):
    """A composite with gradient scaling for a rule without it: steps run, and are undone where `found_inf` is not 0."""

    def composite(F, params, grads, *rest):
        *rest, grad_scale, found_inf = rest  # type: ignore[assignment]
        places = [*params, *grads, *[x for x in rest[:3] if hasattr(x, "shape")]] if found_inf is not None else []
        before = [F.mul(place, 1.0) for place in places]
        if grad_scale is not None:
            for grad in grads:
                F.copy_into(grad, F.div(grad, F.to(grad_scale, F.dtype_of(grad))))
        rule(F, params, grads, *rest)
        for place, old in zip(places, before, strict=True):
            F.copy_into(place, F._choose(old, place, F.ne(found_inf, 0.0)))

    return composite


_PLACE = (
    "params and grads are lists of raw arrays, the states flat raw arrays of all their elements; everything is "
    "written in place. The number `step`, or step[0] of an array of float32, counts this step too."
)
_SCALER = (
    " Gradients are divided by `grad_scale`, in place; nothing is done where `found_inf` is not 0: both are 0-d "
    "float32 arrays, or None."
)
op(
    "_fused_adam(params, grads, exp_avg, exp_avg_sq, max_exp_avg_sq, cache, step, lr, beta1, beta2, eps, "
    "weight_decay, decoupled, maximize, grad_scale=None, found_inf=None)",
    where="",
    tags=NONDIFF,
    mutates="state",
    composite=_with_scaler(_make_composite(ADAM)),
    doc="One step of Adam or AdamW. " + _PLACE + _SCALER,
)
op(
    "_fused_sgd(params, grads, momentum_buffer, cache, first, lr, momentum, dampening, weight_decay, nesterov, "
    "maximize, grad_scale=None, found_inf=None)",
    where="",
    tags=NONDIFF,
    mutates="state",
    composite=_with_scaler(_make_composite(SGD)),
    doc="One step of stochastic gradient descent. " + _PLACE + _SCALER,
)
op(
    "_fused_rmsprop(params, grads, square_avg, grad_avg, momentum_buffer, cache, lr, alpha, eps, momentum, "
    "weight_decay, maximize)",
    where="",
    tags=NONDIFF,
    mutates="state",
    composite=_make_composite(RMSPROP),
    doc="One step of RMSprop. " + _PLACE,
)
op(
    "_fused_adagrad(params, grads, sum, cache, step, lr, lr_decay, eps, weight_decay, maximize, grad_scale=None, "
    "found_inf=None)",
    where="",
    tags=NONDIFF,
    mutates="state",
    composite=_with_scaler(_make_composite(ADAGRAD)),
    doc="One step of Adagrad. " + _PLACE + _SCALER,
)


# --- plans ----------------------------------------------------------------------------------------


class Pack:
    """Parameters that one kernel call updates, with their states in flat arrays."""

    __slots__ = ("params", "raws", "size", "states", "cache")

    def __init__(self, params, states):
        self.params = params
        self.raws = [param._tl_array for param in params]
        self.size = sum([raw.size for raw in self.raws])
        self.states = states  # name -> flat raw array
        self.cache = {}  # what the backend's kernel keeps between steps


class Plan:
    """Plan for the step of one parameter group: its packs, and the values that must not change.

    Created when the first step finds that all parameters with a gradient are plain contiguous tensors of one floating
    dtype and one device.
    """

    group_params: Any  # all parameters of the group
    missing: Any  # those without a gradient
    table: Any
    packs: list[Pack]
    steps: Any  # the counts of steps, a raw array; None where there are none
    count: Any  # the Tensor over them
    version_witnesses: list[tuple[Any, str, Any]]  # (state, name, tensor) that must still be there
    __slots__ = ("group_params", "missing", "table", "packs", "steps", "count", "version_witnesses")

    def gradients(self, state):
        """The raw gradients, a list for each pack, or None where the plan no longer fits."""
        for entry, name, tensor in self.version_witnesses:
            if entry.get(name) is not tensor:
                return None
        if GLOBALS["WRITE_CHECKS"] and self._has_moved_memory():
            return None
        for param in self.missing:
            if param._tl_meta is not None and param._tl_meta.grad is not None:
                return None
        result = []
        for pack in self.packs:
            grads = []
            # Of equal length by construction, and this is the hot path.
            for param, raw in zip(pack.params, pack.raws):  # noqa: B905
                meta = param._tl_meta
                if meta is None or meta.grad is None or param._tl_array is not raw:
                    return None
                grads.append(meta.grad._tl_array)
            result.append(grads)
        return result

    def _has_moved_memory(self):
        """True if a parameter or state gets other memory before it is written."""
        tensors = [tensor for _, _, tensor in self.version_witnesses] + [p for pack in self.packs for p in pack.params]
        before = [tensor._tl_array for tensor in tensors]
        for tensor in tensors:
            check_before_write(tensor)
        return any(tensor._tl_array is not raw for tensor, raw in zip(tensors, before, strict=True))

    def run(self, name, gradients, states, *options, scaler=()):
        """Step every pack by the op `name`: its parameters, gradients and the states so named (None where there is
        none), then the options.

        scaler: (grad_scale, found_inf) for rules that take them, tensors or None.
        """
        options += tuple([None if x is None else x._tl_array for x in scaler])
        for pack, grads in zip(self.packs, gradients, strict=True):
            found = pack.states
            kernel = getattr(self.table if pack.size < GLOBALS["LARGE"] else self.table.large, name)
            run_quietly(kernel, pack.raws, grads, *[found.get(state) for state in states], pack.cache, *options)
        self._count_changes()

    def counted(self, found_inf=None):
        """Increment the step count, unless a scaler skips the step: a number, or on a device an array, so that the host
        does not wait.
        """
        if self.count.is_cpu:
            self.steps += 1 if found_inf is None else found_inf.item() == 0
            return self.steps.item(0)
        self.count.add_(1 if found_inf is None else found_inf == 0)
        return self.steps

    def _count_changes(self):
        """Count the in-place change of every parameter."""
        for pack in self.packs:
            for param in pack.params:
                meta = param._tl_meta
                if meta.root is None:
                    meta.n += 1
                else:
                    meta.root.n += 1


def forget_gradients(params):
    """`param.grad = None` for each."""
    for param in params:
        if param.__class__ is not Parameter:
            param.grad = None
        elif param._tl_meta.__class__ is AutogradMeta:  # else it never had one
            param._tl_meta.grad = None


def is_plain_mode():
    """True if ops go straight to kernels: no interceptor (profiler, mode, tracing) watches."""
    return not GLOBALS["INTERCEPTORS"]


def has_sparse_gradient(params) -> bool:
    """True if one of the parameters or their gradients is sparse: then no multi-tensor kernel steps them."""
    return GLOBALS["SPARSE"] and any(p._tl_is_sparse or p.grad is not None and p.grad._tl_is_sparse for p in params)


def can_plan(params):
    """True if these parameters, all with gradients, can be stepped by a multi-tensor kernel."""
    first = params[0]
    table, dtype = first._tl_kernels, first.dtype
    if dtype.name not in ("float32", "float64") or table.device.type == "meta":
        return False
    for param in params:
        grad = param._tl_meta.grad
        if (
            type(param) not in (Tensor, Parameter)
            or param._tl_kernels is not table
            or param.dtype is not dtype
            or not param.is_contiguous()
        ):
            return False
        if type(grad) is not Tensor or grad.dtype is not dtype or grad._tl_kernels is not table:
            return False
    return True


def make_plan(group_params, params, missing, states, names, on_device=False):
    """A plan for `params` (those of the group with a gradient), whose `states` (a dict each) have tensors `names` and,
    perhaps, "step".

    The states' tensors are replaced by views of flat arrays with the same values. None where the parameters have not
    taken equally many steps. on_device: whether steps are counted there and not on the host.
    """
    if GLOBALS["WRITE_CHECKS"]:
        for param in params:
            check_before_write(param)
    has_steps = "step" in states[0]
    if has_steps and (CAPTURES or len({state["step"].item() for state in states}) > 1):
        return None
    plan = Plan()
    plan.group_params, plan.missing, plan.table = group_params, missing, params[0]._tl_kernels
    plan.packs, plan.version_witnesses, plan.steps, plan.count = [], [], None, None
    with recording(False):
        if has_steps:
            where = (params[0].device, float32) if on_device else ("cpu",)
            steps = torch.stack([state["step"].detach().to(*where) for state in states])
            plan.steps, plan.count = steps._tl_array, steps
            for place, state in enumerate(states):
                state["step"] = steps[place]
        for members in _partition_into_packs(params):
            chosen = [states[place] for place in members]
            flats = {}
            for name in names:
                flat = torch.cat([state[name].detach().reshape(-1) for state in chosen])
                start = 0
                for place, state in zip(members, chosen, strict=True):
                    size = params[place].numel()
                    state[name] = flat[start : start + size].view(params[place].shape)
                    start += size
                flats[name] = flat._tl_array
            plan.packs.append(Pack([params[place] for place in members], flats))
        witness = names[0] if names else "step" if has_steps else None
        if witness is not None:
            plan.version_witnesses = [(state, witness, state[witness]) for state in states]
    return plan


def _partition_into_packs(params):
    """Indices of parameters by pack; on devices large ones are not packed."""
    sizes = list(enumerate([param.numel() for param in params]))
    if not params[0].is_cpu:
        alone = [[place] for place, size in sizes if size > SMALL_THERE]
        return alone + _group_into_runs([entry for entry in sizes if entry[1] <= SMALL_THERE], TOGETHER_THERE)
    large = _group_into_runs([entry for entry in sizes if entry[1] > SMALL], LARGE_TOGETHER)
    return large + _group_into_runs([entry for entry in sizes if entry[1] <= SMALL], TOGETHER)


def _group_into_runs(sizes, most):
    """Indices in runs of at most `most` elements; a larger parameter is a separate run."""
    packs: list[list[int]] = []
    current: list[int] = []
    total = 0
    for place, size in sizes:
        if current and total + size > most:
            packs.append(current)
            current, total = [], 0
        current.append(place)
        total += size
    if current:
        packs.append(current)
    return packs
