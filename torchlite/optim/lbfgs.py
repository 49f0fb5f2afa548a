"""L-BFGS optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from ._step_helpers import _check_lr, _get_value
from .optimizer import Optimizer

if TYPE_CHECKING:
    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["LBFGS"]


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None):
    """The minimum within bounds of the cubic through two points with values and slopes (Nocedal and
    Wright, eq. 3.59).
    """
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        at = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        at = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(at, low), high)


class _LineSearchPoint:
    """A step length t with the loss, the gradient and the slope there."""

    __slots__ = ("t", "loss", "grad", "slope")

    def __init__(self, t: Any, loss: Any, grad: Any, slope: Any) -> None:
        self.t, self.loss, self.grad, self.slope = t, loss, grad, slope

    def copy(self) -> Any:
        return _LineSearchPoint(self.t, self.loss, self.grad.clone(), self.slope)


def _find_bracket(evaluate, start, t, c1, c2, max_ls):
    """Two points around a step that satisfies the strong Wolfe conditions, or that step alone. Returns (points,
    evaluations, found).
    """
    previous, evaluations, iteration = start, 0, 0
    while iteration < max_ls:
        point = evaluate(t)
        evaluations += 1
        if point.loss > start.loss + c1 * t * start.slope or (iteration > 0 and point.loss >= previous.loss):
            return [previous, point.copy()], evaluations, False, iteration
        if abs(point.slope) <= -c2 * start.slope:
            return [point], evaluations, True, iteration
        if point.slope >= 0:
            return [previous, point.copy()], evaluations, False, iteration
        low, high = t + 0.01 * (t - previous.t), t * 10
        following = _cubic_interpolate(
            previous.t, previous.loss, previous.slope, t, point.loss, point.slope, bounds=(low, high)
        )
        previous, t = point.copy(), following
        iteration += 1
    # No bracket was found within the iterations: use the start and the last point.
    return [start, evaluate(t).copy()], evaluations + 1, False, iteration


def _wolfe_point(evaluate, start, t, step_size, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """A step length that satisfies the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5 and 3.6). Returns
    (point, evaluations).
    """
    points, evaluations, found, iteration = _find_bracket(evaluate, start, t, c1, c2, max_ls)
    stalled = False
    low, high = (0, 1) if points[0].loss <= points[-1].loss else (1, 0)
    while not found and iteration < max_ls:
        if abs(points[1].t - points[0].t) * step_size < tolerance_change:
            break
        t = _cubic_interpolate(
            points[0].t, points[0].loss, points[0].slope, points[1].t, points[1].loss, points[1].slope
        )
        largest, smallest = max(points[0].t, points[1].t), min(points[0].t, points[1].t)
        margin = 0.1 * (largest - smallest)
        if min(largest - t, t - smallest) < margin:
            # Close to an end twice in a row, or beyond it: step inside by a tenth of the bracket.
            if stalled or t >= largest or t <= smallest:
                t = largest - margin if abs(t - largest) < abs(t - smallest) else smallest + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        point = evaluate(t)
        evaluations += 1
        iteration += 1
        if point.loss > start.loss + c1 * t * start.slope or point.loss >= points[low].loss:
            points[high] = point.copy()
            low, high = (0, 1) if points[0].loss <= points[1].loss else (1, 0)
        else:
            if abs(point.slope) <= -c2 * start.slope:
                found = True
            elif point.slope * (points[high].t - points[low].t) >= 0:
                points[high] = points[low]
            points[low] = point.copy()
    return points[low] if len(points) == 2 else points[0], evaluations


def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """Search a step length along `d` from `x` that satisfies the strong Wolfe conditions, from the first guess `t`.
    `obj_func(x, t, d)` returns the loss and the flat gradient at `x + t * d`; f, g, gtd: loss, gradient and directional
    derivative at `x`. Returns (loss, gradient, length, evaluations). External packages call this name.
    """

    def evaluate(length):
        loss, gradient = obj_func(x, length, d)
        return _LineSearchPoint(length, loss, gradient, gradient.dot(d))

    start, size = _LineSearchPoint(0, f, g.clone(), gtd), d.abs().max()
    point, evaluations = _wolfe_point(evaluate, start, t, size, c1, c2, tolerance_change, max_ls)
    return point.loss, point.grad, point.t, evaluations


class LBFGS(Optimizer):
    r"""Limited-memory BFGS, a quasi-Newton method.

    .. math::

        \theta_{k+1} = \theta_k - t_k H_k \nabla f(\theta_k)

    :math:`H_k` estimates the inverse of the Hessian from the last ``history_size`` differences of parameters and
    gradients; it is applied by the two-loop recursion. The step length :math:`t_k` is ``lr``, or the result of the line
    search. The very first is shortened to ``min(1, 1 / norm) * lr``, with the sum of the absolute gradients as the
    norm.

    One call of `step` runs many iterations. All parameters are in one group.

    Args:
        params: Parameters to optimize: tensors or ``(name, tensor)`` pairs.
        lr: Step length :math:`t_k`, or the first trial of the line search; a number or a one-element tensor; at least
            0. Default: 1.
        max_iter: Largest number of iterations of a `step`. Default: 20.
        max_eval: Largest number of calls of the closure in a `step`, checked after each iteration. Default:
            ``max_iter * 5 // 4``.
        tolerance_grad: The largest absolute gradient at which the iterations end. Default: 1e-7.
        tolerance_change: The least change of the loss, or of a parameter, at which they continue. Default: 1e-9.
        history_size: Number of stored differences. Default: 100.
        line_search_fn: ``"strong_wolfe"`` searches for a step length with the strong Wolfe conditions; ``None``
            searches none. Default: ``None``.

    Raises:
        ValueError: ``lr`` is negative, ``params`` is empty, or there are several groups.

    Example:
        >>> x = torch.nn.Parameter(torch.tensor([-1.5, 2.0]))
        >>> optimizer = torch.optim.LBFGS([x], max_iter=50, line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure).item()
        12.5
        >>> bool(closure() < 1e-6)
        True

    References:
        - D. C. Liu, J. Nocedal. On the limited memory BFGS method for large scale optimization. 1989.
        - J. Nocedal, S. J. Wright. Numerical optimization. 2006, chapters 3 and 7.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        _check_lr(lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Any) -> Any:
        """Minimizes the loss for up to ``max_iter`` iterations.

        Args:
            closure: Clears the gradients, computes the loss and its gradients, and returns the loss. It is called many
                times, with gradients enabled.

        Returns:
            The loss before the first iteration.

        Raises:
            RuntimeError: ``line_search_fn`` is neither ``None`` nor ``"strong_wolfe"``.
        """
        if len(self.param_groups) != 1:
            raise AssertionError(f"Expected exactly one param_group, but got {len(self.param_groups)}")
        with torch.no_grad():
            return _minimize(self, closure)


def _gather_flat_grad(optimizer):
    parts = []
    for param in optimizer.param_groups[0]["params"]:
        grad = torch.zeros_like(param) if param.grad is None else param.grad
        grad = grad if grad.layout is torch.strided else grad.to_dense()
        parts.append((torch.view_as_real(grad) if grad.is_complex() else grad).reshape(-1))
    return torch.cat(parts)


def _add_direction(optimizer, t, direction):
    start = 0
    for param in optimizer.param_groups[0]["params"]:
        real = torch.view_as_real(param) if param.is_complex() else param
        count = real.numel()
        real.add_(direction[start : start + count].view(real.shape), alpha=_get_value(t))
        start += count


def _minimize(optimizer, closure):
    group = optimizer.param_groups[0]
    lr, max_eval, tolerance_change = group["lr"], group["max_eval"], group["tolerance_change"]

    def loss_of():
        with torch.enable_grad():
            return closure()

    state = optimizer.state[optimizer.param_groups[0]["params"][0]]
    state.setdefault("func_evals", 0)
    state.setdefault("n_iter", 0)
    first_loss = loss_of()
    loss = float(first_loss)
    evaluations = 1
    state["func_evals"] += 1
    gradient = _gather_flat_grad(optimizer)
    if gradient.abs().max() <= group["tolerance_grad"]:
        return first_loss
    memory = {
        name: state.get(name)
        for name in ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")
    }
    iteration = 0
    while iteration < group["max_iter"]:
        iteration += 1
        state["n_iter"] += 1
        _find_direction(state, memory, gradient, group["history_size"])
        memory["prev_flat_grad"] = gradient.clone()
        memory["prev_loss"] = loss
        direction = memory["d"]
        t = min(1.0, 1.0 / gradient.abs().sum().item()) * lr if state["n_iter"] == 1 else lr
        slope = gradient.dot(direction)
        if slope > -tolerance_change:
            memory["t"] = t
            break
        used = 1
        if group["line_search_fn"] is not None:
            if group["line_search_fn"] != "strong_wolfe":
                raise RuntimeError("only 'strong_wolfe' is supported")
            loss, gradient, t, used = _line_search(optimizer, loss_of, loss, gradient, slope, t, direction)
            _add_direction(optimizer, t, direction)
            stop = gradient.abs().max() <= group["tolerance_grad"]
        else:
            _add_direction(optimizer, t, direction)
            stop = False
            if iteration != group["max_iter"]:
                loss = float(loss_of())
                gradient = _gather_flat_grad(optimizer)
                stop = gradient.abs().max() <= group["tolerance_grad"]
            else:
                used = 0
                evaluations += 1
                state["func_evals"] += 1
        memory["t"] = t
        evaluations += used
        state["func_evals"] += used
        if iteration == group["max_iter"] or evaluations >= max_eval or stop:
            break
        if direction.mul(t).abs().max() <= tolerance_change or abs(loss - memory["prev_loss"]) < tolerance_change:
            break
    state.update(memory)
    return first_loss


def _find_direction(state, memory, gradient, history_size):
    """Set `d` to minus the inverse Hessian's estimate times the gradient, by the two-loop recursion."""
    if state["n_iter"] == 1:
        memory.update(
            d=gradient.neg(),
            old_dirs=[],
            old_stps=[],
            ro=[],
            H_diag=torch.tensor(1.0, dtype=gradient.dtype, device=gradient.device),
        )
        return
    changes, steps, ro = memory["old_dirs"], memory["old_stps"], memory["ro"]
    change = gradient.sub(memory["prev_flat_grad"])
    step = memory["d"].mul(memory["t"])
    curvature = change.dot(step)
    if curvature > 1e-10:
        if len(changes) == history_size:
            changes.pop(0)
            steps.pop(0)
            ro.pop(0)
        changes.append(change)
        steps.append(step)
        ro.append(1.0 / curvature)
        memory["H_diag"] = curvature / change.dot(change)
    if "al" not in state:
        state["al"] = [None] * history_size
    weights = state["al"]
    q = gradient.neg()
    for place in range(len(changes) - 1, -1, -1):
        weights[place] = steps[place].dot(q) * ro[place]
        q.add_(changes[place] * -weights[place])
    direction = torch.mul(q, memory["H_diag"])
    for place in range(len(changes)):
        direction.add_(steps[place] * (weights[place] - changes[place].dot(direction) * ro[place]))
    memory["d"] = direction


def _line_search(optimizer, loss_of, loss, gradient, slope, t, direction):
    """Search along `direction` from the present parameters, which are restored. Returns (loss, gradient, t,
    evaluations).
    """
    begin = [param.clone(memory_format=torch.contiguous_format) for param in optimizer.param_groups[0]["params"]]

    def evaluate(length):
        _add_direction(optimizer, length, direction)
        value = float(loss_of())
        found = _gather_flat_grad(optimizer)
        for param, value_before in zip(optimizer.param_groups[0]["params"], begin, strict=True):
            param.copy_(value_before)
        return _LineSearchPoint(length, value, found, found.dot(direction).item())

    point, evaluations = _wolfe_point(
        evaluate, _LineSearchPoint(0, loss, gradient, slope.item()), _get_value(t), direction.abs().max().item()
    )
    return point.loss, point.grad, point.t, evaluations
