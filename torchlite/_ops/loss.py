"""Losses and distances. `size_average` and `reduce` are PyTorch's deprecated forms of `reduction`; they still work and
warn.

The classification losses (cross_entropy and its parts) are in `cross_entropy.py`, ctc_loss in `ctc_loss.py`.
"""

import math
import warnings

from torchlite._dispatch import POINTWISE, composite, memory_layout, op
from torchlite._dispatch.shape_and_value_checks import any_true
from torchlite._types.dtypes import BOOL, COMPLEX, FLOAT, INT, finfo, promote_types

from ._dtype_checks import refuse_kinds
from .node_graphs import (
    gaussian_nll_loss_graph,
    huber_loss_graph,
    mse_loss_graph,
    multilabel_soft_margin_loss_graph,
    smooth_l1_loss_graph,
)

LEGACY = "size_average=None, reduce=None, reduction='mean'"
WRONG_SIZE = (
    "Using a target size ({}) that is different to the input size ({}). This will likely lead to incorrect results "
    "due to broadcasting. Please ensure they have the same size."
)


def reduction_of(size_average, reduce, reduction):
    """The reduction that the arguments ask for: "none", "mean" or "sum"."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            UserWarning,
            stacklevel=4,
        )
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def apply_reduction(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def _warn_of_broadcast(input, target):
    if input.shape != target.shape:
        warnings.warn(WRONG_SIZE.format(_size_str(target), _size_str(input)), UserWarning, stacklevel=5)


def _size_str(tensor):
    return f"torch.Size({list(tensor.shape)})"


def _reduce_weighted_errors(errors, weight, reduction):
    """Weighted reduction of elementwise errors: the mean divides by the sum of the weights."""
    if weight.shape != errors.shape:
        raise ValueError("Weights and input must have the same size.")
    loss = errors * weight
    if reduction == "mean":
        return loss.sum() / weight.sum()
    return apply_reduction(loss, reduction)


# --- regression -----------------------------------------------------------------------------------


def _check_common(input, target, kernel: str) -> None:
    """PyTorch's error for a loss whose promoted dtype is not floating point; `kernel` is the name in its message."""
    common = input.dtype if input.dtype is target.dtype else promote_types(input.dtype, target.dtype)
    if common.category != FLOAT:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{common.scalar_name}'")


@composite(
    f"mse_loss(Tensor input, Tensor target, {LEGACY}, Tensor? weight=None)",
    where="nn.functional",
    node_name=mse_loss_graph,
)
def mse_loss(F, input, target, size_average, reduce, reduction, weight):
    r"""Computes the squared errors.

    .. math::

        \ell = (x - y)^2

    With `weight` the mean is the weighted mean.

    Args:
        target: The targets, which broadcast with `input`.
        weight: Weights of the elements, which broadcast with `input`. Default: 1.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> F.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)

    See also:
        `torch.nn.MSELoss`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    _warn_of_broadcast(input, target)
    _check_common(input, target, "mse_cpu")
    difference = input - target
    errors = difference * difference
    return apply_reduction(errors, reduction) if weight is None else _reduce_weighted_errors(errors, weight, reduction)


@composite(f"l1_loss(Tensor input, Tensor target, {LEGACY}, Tensor? weight=None)", where="nn.functional")
def l1_loss(F, input, target, size_average, reduce, reduction, weight):
    r"""Computes the absolute errors.

    .. math::

        \ell = |x - y|

    With `weight` the mean is the weighted mean.

    Args:
        target: The targets, which broadcast with `input`.
        weight: Weights of the elements, which broadcast with `input`. Default: 1.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> F.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(1.)

    See also:
        `torch.nn.L1Loss`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    _warn_of_broadcast(input, target)
    errors = F.abs(input - target)
    return apply_reduction(errors, reduction) if weight is None else _reduce_weighted_errors(errors, weight, reduction)


_LEAST_MAX = 65504  # the largest number of float16, which other dtypes exceed


def _limit_error(F, error, delta):
    """The error limited to delta, and to the largest number of its dtype."""
    limit = delta if delta <= _LEAST_MAX else min(delta, finfo(F.dtype_of(error)).max)
    return F.hardtanh(error, -limit, limit)


def _huber(F, input, target, delta):
    error = F.sub(input, target)
    near = _limit_error(F, error, delta)
    return F.mul(near, F.sub(error, F.mul(near, 0.5)))


def _huber_input_vjp(F, g, input, target, delta):
    """The gradient of the input. The second derivative at delta is 0, as that of hardtanh."""
    return F.mul(g, _limit_error(F, F.sub(input, target), delta))


op(
    "_huber(Tensor input, Tensor target, delta)",
    where="",
    composite=_huber,
    tags=POINTWISE,
    vjp={
        "input": _huber_input_vjp,
        "target": lambda F, g, input, target, delta: F.neg(_huber_input_vjp(F, g, input, target, delta)),
    },
    doc="Half the square of errors within delta, else linear.",
)


@composite(
    f"smooth_l1_loss(Tensor input, Tensor target, {LEGACY}, beta=1.0)",
    where="nn.functional",
    node_name=smooth_l1_loss_graph,
)
def smooth_l1_loss(F, input, target, size_average, reduce, reduction, beta):
    r"""Computes absolute errors that are quadratic near 0 (Girshick, 2015).

    .. math::

        \ell = \begin{cases} (x - y)^2 / (2 \beta) & |x - y| < \beta \\ |x - y| - \beta / 2 & \text{otherwise}
        \end{cases}

    Args:
        target: The targets, which broadcast with `input`.
        beta: The bound :math:`\beta` of the quadratic part. Default: 1.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> F.smooth_l1_loss(torch.tensor([1.5, 2.0]), torch.tensor([1.0, 4.0]), reduction="none")
        tensor([0.1250, 1.5000])

    See also:
        `torch.nn.SmoothL1Loss`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    _warn_of_broadcast(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return apply_reduction(F.abs(input - target), reduction)
    _check_common(input, target, "smooth_l1_cpu")
    errors = F._huber(input, target, beta)
    return apply_reduction(errors if beta == 1 else errors / beta, reduction)


@composite(
    "huber_loss(Tensor input, Tensor target, reduction='mean', delta=1.0, Tensor? weight=None)",
    where="nn.functional",
    node_name=huber_loss_graph,
)
def huber_loss(F, input, target, reduction, delta, weight):
    r"""Computes the Huber loss: quadratic near 0, linear beyond (Huber, 1964).

    .. math::

        \ell = \begin{cases} (x - y)^2 / 2 & |x - y| < \delta \\ \delta (|x - y| - \delta / 2) & \text{otherwise}
        \end{cases}

    Args:
        target: The targets, which broadcast with `input`.
        delta: The bound :math:`\delta` of the quadratic part. Default: 1.
        weight: Weights of the elements, which broadcast with `input`. Default: 1.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> F.huber_loss(torch.tensor([1.5, 2.0]), torch.tensor([1.0, 4.0]), reduction="none")
        tensor([0.1250, 1.5000])

    See also:
        `torch.nn.HuberLoss`.
    """
    reduction = reduction_of(None, None, reduction)
    _warn_of_broadcast(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    _check_common(input, target, "huber_cpu")
    errors = F._huber(input, target, delta)
    if weight is not None:
        if weight.shape != errors.shape:
            raise ValueError("Weights and input must have the same size.")
        errors = errors * weight
    return apply_reduction(errors, reduction)


@composite("poisson_nll_loss(Tensor input, Tensor target, log_input=True, full=False, size_average=None, eps=1e-08, "
    "reduce=None, reduction='mean')",
           where="nn.functional")  # fmt: skip
def poisson_nll_loss(F, input, target, log_input, full, size_average, eps, reduce, reduction):
    r"""Computes the negative log-likelihood of counts under Poisson distributions.

    .. math::

        \ell = \exp(x) - y x \quad \text{or} \quad x - y \log(x + \epsilon)

    Args:
        target: The targets, which broadcast with `input`.
        log_input: Whether `input` is the logarithm of the rate, else the rate. Default: ``True``.
        full: Whether Stirling's approximation of :math:`\log y!` is added where ``target > 1``. Default: ``False``.
        eps: The term :math:`\epsilon`. Default: ``1e-8``.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> F.poisson_nll_loss(torch.tensor([0.0]), torch.tensor([2.0]))
        tensor(1.)

    See also:
        `torch.nn.PoissonNLLLoss`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    loss = F.exp(input) - target * input if log_input else input - target * F.log(input + eps)
    if full:
        safe = F.where(target > 1, target, F._ones_like(target))
        stirling = safe * F.log(safe) - safe + 0.5 * F.log(2 * math.pi * safe)
        loss = loss + F.where(target > 1, stirling, F._zeros_like(stirling))
    return apply_reduction(loss, reduction)


@composite(
    "gaussian_nll_loss(Tensor input, Tensor target, Tensor|Number var, full=False, eps=1e-06, reduction='mean')",
    where="nn.functional",
    node_name=gaussian_nll_loss_graph,
)
def gaussian_nll_loss(F, input, target, var, full, eps, reduction):
    r"""Computes the negative log-likelihood under normal distributions (Nix and Weigend, 1994).

    .. math::

        \ell = \frac{1}{2} \left( \log v + \frac{(x - y)^2}{v} \right)

    Args:
        target: The targets, which broadcast with `input`.
        var: The variances :math:`v`, raised to at least `eps`.
        full: Whether the constant :math:`\log(2 \pi) / 2` is added. Default: ``False``.
        eps: The least variance. Default: ``1e-6``.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Raises:
        ValueError: A variance is negative, or its shape does not fit.

    Example:
        >>> F.gaussian_nll_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
        tensor(2.)

    See also:
        `torch.nn.GaussianNLLLoss`.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = F._full_like(input, var)
    elif var.device.type != "meta" and any_true(var < 0):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or [v for v, n in zip(var.shape, input.shape, strict=True) if v != n] != [1]:
            raise ValueError("var is of incorrect size")
    reduction = reduction_of(None, None, reduction)
    # The limit is not differentiated: below eps the gradient is that of var itself.
    var = var + (var.detach().clamp_min(eps) - var.detach())
    difference = input - target
    loss = 0.5 * (F.log(var) + difference * difference / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return apply_reduction(loss, reduction)


# --- probabilities --------------------------------------------------------------------------------


@composite(
    "kl_div(Tensor input, Tensor target, size_average=None, reduce=None, reduction='mean', log_target=False)",
    where="nn.functional",
)
def kl_div(F, input, target, size_average, reduce, reduction, log_target):
    r"""Computes the Kullback-Leibler divergence of the targets from the input.

    .. math::

        \ell = y (\log y - x)

    Args:
        input: Logarithms of probabilities.
        target: Probabilities, or their logarithms.
        log_target: Whether `target` has logarithms. Default: ``False``.
        reduction: ``"none"``, ``"sum"``, ``"mean"`` over all elements, or ``"batchmean"``, the sum divided by the
            size of the first dimension. Default: ``"mean"``.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> F.kl_div(torch.tensor([0.5, 0.5]).log(), torch.tensor([0.5, 0.5]), reduction="sum")
        tensor(0.)

    See also:
        `torch.nn.KLDivLoss`.
    """
    if reduction == "batchmean" and size_average is None and reduce is None:
        reduction, per_sample = "sum", True
    else:
        reduction, per_sample = reduction_of(size_average, reduce, reduction), False
        if reduction == "mean":
            warnings.warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support size."
                "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
                "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
                UserWarning,
                stacklevel=3,
            )
    for kind, words in (((COMPLEX,), "Complex"), ((BOOL, INT), "Integral")):
        if input.dtype.category in kind or target.dtype.category in kind:
            raise RuntimeError(f"kl_div: {words} inputs not supported.")
    loss = F.exp(target) * (target - input) if log_target else F.xlogy(target, target) - target * input
    total = apply_reduction(loss, reduction)
    return total / input.shape[0] if per_sample and input.ndim else total


@composite(
    f"binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, {LEGACY})",
    where="nn.functional",
    layout=memory_layout.pointwise,
    node_name="BinaryCrossEntropyBackward0(input, target)",
)
def binary_cross_entropy(F, input, target, weight, size_average, reduce, reduction):
    r"""Computes the binary cross entropy of probabilities.

    .. math::

        \ell = -w \left( y \log x + (1 - y) \log(1 - x) \right)

    The logarithms are at least -100.

    Args:
        input: Probabilities.
        target: Targets from 0 to 1, of the input's shape.
        weight: Weights :math:`w`, which broadcast with `input`. Default: 1.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Raises:
        ValueError: The shapes differ.
        RuntimeError: An element of `input` is not between 0 and 1.

    Example:
        >>> F.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1.0]))
        tensor(0.6931)

    See also:
        `torch.nn.BCELoss`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({_size_str(target)}) that is different to the input size ({_size_str(input)}) is "
            "deprecated. Please ensure they have the same size."
        )
    if target.dtype is not input.dtype:
        raise RuntimeError(f"Found dtype {target.dtype.scalar_name} but expected {input.dtype.scalar_name}")
    refuse_kinds(input.dtype, "binary_cross_entropy", BOOL, INT, COMPLEX)
    if input.device.type != "meta" and any_true((input < 0) | (input > 1)):
        raise RuntimeError("all elements of input should be between 0 and 1")
    loss = F._bce(input, target)
    return apply_reduction(loss if weight is None else loss * weight, reduction)


def _binary_cross_entropy_terms(F, input, target):
    rest = F.sub(F._ones_like(target), target)
    log_input = F.maximum(F.log(input), F._full_like(input, -100.0))
    log_rest = F.maximum(F.log1p(F.neg(input)), F._full_like(input, -100.0))
    return F.neg(F.add(F.mul(target, log_input), F.mul(rest, log_rest)))


def _bce_backward(F, grad, input, target):
    return F.div(F.mul(grad, F.sub(input, target)), _bernoulli_variance(F, input))


def _bernoulli_variance(F, input):
    variance = F.mul(F.sub(F._ones_like(input), input), input)
    return F.maximum(variance, F._full_like(input, 1e-12))


def _bce_backward_input_vjp(F, g, grad, input, target):
    """The second derivative, target / input^2 + (1 - target) / (1 - input)^2, which is finite at exact predictions."""
    rest = F.sub(F._ones_like(input), input)
    least = F._full_like(input, 1e-12)
    first = F.div(target, F.maximum(F.mul(input, input), least))
    second = F.div(F.sub(F._ones_like(target), target), F.maximum(F.mul(rest, rest), least))
    return F.mul(F.mul(g, grad), F.add(first, second))


op(
    "_bce_backward(Tensor grad, Tensor input, Tensor target)",
    where="",
    composite=_bce_backward,
    tags=POINTWISE,
    vjp={
        "grad": lambda F, g, input, target: F._bce_backward(g, input, target),
        "input": _bce_backward_input_vjp,
        "target": lambda F, g, grad, input: F.neg(F.div(F.mul(g, grad), _bernoulli_variance(F, input))),
    },
)


def _bce_target_vjp(F, g, input):
    return F.mul(g, F.sub(F.log1p(F.neg(input)), F.log(input)))


composite(
    "_bce(Tensor input, Tensor target)",
    where="",
    vjp={"input": lambda F, g, input, target: F._bce_backward(g, input, target), "target": _bce_target_vjp},
    node_name="BinaryCrossEntropyBackward0",
)(_binary_cross_entropy_terms)


@composite(
    f"binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, {LEGACY}, Tensor? "
    "pos_weight=None)",
    where="nn.functional",
    layout=memory_layout.pointwise,
    node_name="BinaryCrossEntropyWithLogitsBackward0(input, target)",
)
def binary_cross_entropy_with_logits(F, input, target, weight, size_average, reduce, reduction, pos_weight):
    r"""Computes the binary cross entropy of logits, without overflow.

    .. math::

        \ell = -w \left( p y \log \sigma(x) + (1 - y) \log(1 - \sigma(x)) \right)

    Args:
        input: Logits.
        target: Targets from 0 to 1, of the input's shape.
        weight: Weights :math:`w`, which broadcast with `input`. Default: 1.
        pos_weight: Weights :math:`p` of the positive term. Default: 1.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> F.binary_cross_entropy_with_logits(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor(0.6931)

    See also:
        `torch.nn.BCEWithLogitsLoss`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({_size_str(target)}) must be the same as input size ({_size_str(input)})")
    if pos_weight is None:
        loss = (1 - target) * input - F.logsigmoid(input)
    else:
        loss = (1 - target) * input - ((pos_weight - 1) * target + 1) * F.logsigmoid(input)
    loss = loss if weight is None else loss * weight
    if loss.dtype is not target.dtype:  # PyTorch multiplies `1 - target` in place
        if target.dtype.category == INT:
            raise RuntimeError(f"result type Float can't be cast to the desired output type {target.dtype.scalar_name}")
        loss = F.to(loss, target.dtype)
    return apply_reduction(loss, reduction)


@composite(
    f"soft_margin_loss(Tensor input, Tensor target, {LEGACY})",
    where="nn.functional",
    node_name="SoftMarginLossBackward0(input)",
)
def soft_margin_loss(F, input, target, size_average, reduce, reduction):
    r"""Computes the logistic loss for targets of -1 and 1.

    .. math::

        \ell = \log(1 + \exp(-y x))

    Args:
        target: Targets of -1 or 1, of the input's shape.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> F.soft_margin_loss(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor(0.6931)

    See also:
        `torch.nn.SoftMarginLoss`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if input.dtype.category == INT:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {input.dtype.scalar_name}")
    return apply_reduction(-F.logsigmoid(input * target), reduction)


@composite(
    f"multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, {LEGACY})",
    where="nn.functional",
    node_name=multilabel_soft_margin_loss_graph,
)
def multilabel_soft_margin_loss(F, input, target, weight, size_average, reduce, reduction):
    r"""Computes the binary cross entropy of logits, averaged over the classes.

    .. math::

        \ell = -\frac{1}{C} \sum_c w_c \left( y_c \log \sigma(x_c) + (1 - y_c) \log(1 - \sigma(x_c)) \right)

    Args:
        input: Logits, of shape ``(*, C)``.
        target: Targets of 0 or 1, of the input's shape.
        weight: Weights of the classes. Default: 1.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> F.multilabel_soft_margin_loss(torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0]]))
        tensor(0.6931)

    See also:
        `torch.nn.MultiLabelSoftMarginLoss`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    loss = -(target * F.logsigmoid(input) + (1 - target) * F.logsigmoid(-input))
    return apply_reduction((loss if weight is None else loss * weight).mean(-1), reduction)
