"""Losses and distances. `size_average` and `reduce` are PyTorch's deprecated forms of `reduction`; they still work and
warn.

The classification losses (cross_entropy and its parts) are in `cross_entropy.py`, ctc_loss in `ctc_loss.py`.
"""

import math
import warnings

from torchlite._dispatch import composite, memory_layout
from torchlite._dispatch.shape_and_value_checks import any_true
from torchlite._dispatch.shapes import broadcast_shapes
from torchlite._types.dtypes import FLOAT, int64, promote_types

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


@composite(f"mse_loss(Tensor input, Tensor target, {LEGACY}, Tensor? weight=None)", where="nn.functional")
def mse_loss(F, input, target, size_average, reduce, reduction, weight):
    """The mean (or sum) of ``(input - target) ** 2``; with ``weight``, the weighted mean."""
    reduction = reduction_of(size_average, reduce, reduction)
    _warn_of_broadcast(input, target)
    _check_common(input, target, "mse_cpu")
    difference = input - target
    errors = difference * difference
    return apply_reduction(errors, reduction) if weight is None else _reduce_weighted_errors(errors, weight, reduction)


@composite(f"l1_loss(Tensor input, Tensor target, {LEGACY}, Tensor? weight=None)", where="nn.functional")
def l1_loss(F, input, target, size_average, reduce, reduction, weight):
    """The mean (or sum) of ``|input - target|``; with ``weight``, the weighted mean."""
    reduction = reduction_of(size_average, reduce, reduction)
    _warn_of_broadcast(input, target)
    errors = F.abs(input - target)
    return apply_reduction(errors, reduction) if weight is None else _reduce_weighted_errors(errors, weight, reduction)


def _huber(F, input, target, delta):
    error = F.abs(input - target)
    return F.where(error < delta, error * error * 0.5, (error - 0.5 * delta) * delta)


@composite(f"smooth_l1_loss(Tensor input, Tensor target, {LEGACY}, beta=1.0)", where="nn.functional")
def smooth_l1_loss(F, input, target, size_average, reduce, reduction, beta):
    """``error ** 2 / (2 beta)`` below ``beta`` and ``error - beta / 2`` above (Girshick, 2015)."""
    reduction = reduction_of(size_average, reduce, reduction)
    _warn_of_broadcast(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return apply_reduction(F.abs(input - target), reduction)
    _check_common(input, target, "smooth_l1_cpu")
    return apply_reduction(_huber(F, input, target, beta) / beta, reduction)


@composite(
    "huber_loss(Tensor input, Tensor target, reduction='mean', delta=1.0, Tensor? weight=None)", where="nn.functional"
)
def huber_loss(F, input, target, reduction, delta, weight):
    """``error ** 2 / 2`` below ``delta`` and ``delta * (error - delta / 2)`` above (Huber, 1964)."""
    reduction = reduction_of(None, None, reduction)
    _warn_of_broadcast(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    _check_common(input, target, "huber_cpu")
    errors = _huber(F, input, target, delta)
    if weight is not None:
        if weight.shape != errors.shape:
            raise ValueError("Weights and input must have the same size.")
        errors = errors * weight
    return apply_reduction(errors, reduction)


@composite("poisson_nll_loss(Tensor input, Tensor target, log_input=True, full=False, size_average=None, eps=1e-08, "
    "reduce=None, reduction='mean')",
           where="nn.functional")  # fmt: skip
def poisson_nll_loss(F, input, target, log_input, full, size_average, eps, reduce, reduction):
    """Minus the log-likelihood of ``target`` under a Poisson distribution of rate ``exp(input)``, or ``input`` when
    ``log_input=False``.

    ``full=True`` adds Stirling's approximation of ``log(target!)`` where ``target > 1``.
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
)
def gaussian_nll_loss(F, input, target, var, full, eps, reduction):
    """``(log var + (input - target) ** 2 / var) / 2``, with ``var`` at least ``eps`` (Nix and Weigend, 1994)."""
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
    """Kullback-Leibler divergence of ``target`` (probabilities, or their logarithms) from ``input``
    (log-probabilities), elementwise and then reduced.

    ``reduction="batchmean"`` divides the sum by the size of the first dimension.
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
    loss = F.exp(target) * (target - input) if log_target else F.xlogy(target, target) - target * input
    total = apply_reduction(loss, reduction)
    return total / input.shape[0] if per_sample and input.ndim else total


@composite(
    f"binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, {LEGACY})",
    where="nn.functional",
    layout=memory_layout.pointwise,
)
def binary_cross_entropy(F, input, target, weight, size_average, reduce, reduction):
    """``-(target log(input) + (1 - target) log(1 - input))``; the logarithms are clamped to at least -100."""
    reduction = reduction_of(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({_size_str(target)}) that is different to the input size ({_size_str(input)}) is "
            "deprecated. Please ensure they have the same size."
        )
    if input.device.type != "meta" and any_true((input < 0) | (input > 1)):
        raise RuntimeError("all elements of input should be between 0 and 1")
    loss = F._bce(input, target)
    return apply_reduction(loss if weight is None else loss * weight, reduction)


def _binary_cross_entropy_terms(F, input, target):
    rest = F.sub(F._ones_like(target), target)
    log_input = F.maximum(F.log(input), F._full_like(input, -100.0))
    log_rest = F.maximum(F.log1p(F.neg(input)), F._full_like(input, -100.0))
    return F.neg(F.add(F.mul(target, log_input), F.mul(rest, log_rest)))


def _bce_input_vjp(F, g, input, target):
    variance = F.mul(F.sub(F._ones_like(input), input), input)
    return F.div(F.mul(g, F.sub(input, target)), F.maximum(variance, F._full_like(input, 1e-12)))


def _bce_target_vjp(F, g, input):
    return F.mul(g, F.sub(F.log1p(F.neg(input)), F.log(input)))


composite(
    "_bce(Tensor input, Tensor target)",
    where="",
    vjp={"input": _bce_input_vjp, "target": _bce_target_vjp},
    node_name="BinaryCrossEntropyBackward0",
)(_binary_cross_entropy_terms)


@composite(
    f"binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, {LEGACY}, Tensor? "
    "pos_weight=None)",
    where="nn.functional",
    layout=memory_layout.pointwise,
)
def binary_cross_entropy_with_logits(F, input, target, weight, size_average, reduce, reduction, pos_weight):
    """``binary_cross_entropy(sigmoid(input), target)``, computed without overflow; ``pos_weight`` multiplies the
    positive term.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({_size_str(target)}) must be the same as input size ({_size_str(input)})")
    if pos_weight is None:
        loss = (1 - target) * input - F.logsigmoid(input)
    else:
        loss = (1 - target) * input - ((pos_weight - 1) * target + 1) * F.logsigmoid(input)
    return apply_reduction(loss if weight is None else loss * weight, reduction)


@composite(f"soft_margin_loss(Tensor input, Tensor target, {LEGACY})", where="nn.functional")
def soft_margin_loss(F, input, target, size_average, reduce, reduction):
    """``log(1 + exp(-target * input))`` for targets of -1 and 1."""
    reduction = reduction_of(size_average, reduce, reduction)
    return apply_reduction(F.log1p(F.exp(-input * target)), reduction)


@composite(
    f"multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, {LEGACY})", where="nn.functional"
)
def multilabel_soft_margin_loss(F, input, target, weight, size_average, reduce, reduction):
    """Binary cross entropy of ``sigmoid(input)`` against 0/1 targets, averaged over the classes
    (the last dimension).
    """
    reduction = reduction_of(size_average, reduce, reduction)
    loss = -(target * F.logsigmoid(input) + (1 - target) * F.logsigmoid(-input))
    return apply_reduction((loss if weight is None else loss * weight).mean(-1), reduction)


# --- margins --------------------------------------------------------------------------------------

# `F.clamp(x, 0)` has the gradient 1 at 0, as PyTorch has there, and needs its input; `F.relu` has 0.


@composite(
    f"hinge_embedding_loss(Tensor input, Tensor target, margin=1.0, {LEGACY})",
    where="nn.functional",
    layout=memory_layout.pointwise,
)
def hinge_embedding_loss(F, input, target, margin, size_average, reduce, reduction):
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    zero = F._zeros_like(input)
    far = F.where(target != 1, F.clamp(margin - input, 0), zero)
    near = F.where(target != -1, input, zero)
    return apply_reduction(far + near, reduction)


@composite(
    f"margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, margin=0, {LEGACY})", where="nn.functional"
)
def margin_ranking_loss(F, input1, input2, target, margin, size_average, reduce, reduction):
    """``max(0, -target * (input1 - input2) + margin)``: the first should be larger where the target is 1."""
    reduction = reduction_of(size_average, reduce, reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{_size_str(input1)}, input2: {_size_str(input2)}, target: {_size_str(target)} "
        )
    return apply_reduction(F.clamp(-target * (input1 - input2) + margin, 0), reduction)


@composite(
    f"multi_margin_loss(Tensor input, Tensor target, p=1, margin=1.0, Tensor? weight=None, {LEGACY})",
    where="nn.functional",
)
def multi_margin_loss(F, input, target, p, margin, weight, size_average, reduce, reduction):
    """``sum over i != y of max(0, margin - x[y] + x[i]) ** p / C``: the multi-class hinge loss."""
    reduction = reduction_of(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    if input.ndim > 2 or (input.numel() == 0 and (input.ndim == 0 or input.shape[-1] == 0)):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )
    x = input if input.ndim == 2 else input.reshape(1, -1)
    count, classes = x.shape
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    if target.ndim > 1 or target.numel() != count:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{count}], but got {list(target.shape)}. Input has shape "
            f"{list(input.shape)}."
        )
    if target.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_name}")
    index = target.reshape(-1, 1)
    if index.device.type != "meta" and any_true((index < 0) | (index >= classes)):
        raise RuntimeError("target out of range")
    right = F.gather(x, 1, index)
    hinge = F.relu(margin - right + x)
    if p == 2:
        hinge = hinge * hinge
    if weight is not None:
        hinge = hinge * F.index_select(weight, 0, index.reshape(-1)).unsqueeze(1)
    others = F._new_arange(index, 0, classes, 1, index.dtype) != index
    loss = F.where(others, hinge, F._zeros_like(hinge)).sum(1) / classes
    return apply_reduction(loss if input.ndim == 2 or target.ndim == 1 else loss.reshape(()), reduction)


@composite(f"multilabel_margin_loss(Tensor input, Tensor target, {LEGACY})", where="nn.functional")
def multilabel_margin_loss(F, input, target, size_average, reduce, reduction):
    """``sum over targets y and other classes i of max(0, 1 - x[y] + x[i]) / C``; each row of ``target`` lists classes,
    ended by -1.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if (input.numel() == 0 and (input.ndim < 2 or 0 in input.shape[1:])) or input.ndim > 2:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )
    if input.shape != target.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    classes = input.shape[-1] if input.ndim else 1
    x, labels = input.reshape(-1, classes), target.reshape(-1, classes)
    listed = F.cumsum((labels < 0).to(labels.dtype), 1) == 0
    safe = F.where(listed, labels, F._zeros_like(labels))
    is_target = F.scatter_add(F._zeros_like(labels), 1, safe, listed.to(labels.dtype)) > 0
    right = F.gather(x, 1, safe)
    hinge = F.relu(1 - right.unsqueeze(2) + x.unsqueeze(1))
    counted = listed.unsqueeze(2) & ~is_target.unsqueeze(1)
    loss = F.where(counted, hinge, F._zeros_like(hinge)).sum((1, 2)) / classes
    return apply_reduction(loss if input.ndim == 2 else loss.reshape(()), reduction)


# --- distances ------------------------------------------------------------------------------------


@composite(
    "cosine_similarity(Tensor x1, Tensor x2, dim=1, eps=1e-08)",
    where="torch nn.functional",
    layout=memory_layout.contiguous,
)
def cosine_similarity(F, x1, x2, dim, eps):
    """The dot product of ``x1`` and ``x2`` along ``dim`` divided by their lengths (each at least ``eps``)."""
    common = promote_types(x1.dtype, x2.dtype)
    if not (common.is_floating_point or common.is_complex):
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common.scalar_name}")
    x1, x2 = x1.to(common), x2.to(common)
    shape = broadcast_shapes(x1.shape, x2.shape)
    x1, x2 = x1.expand(shape), x2.expand(shape)
    length1, length2 = x1.norm(2, dim, keepdim=True), x2.norm(2, dim, keepdim=True)
    # The length is limited below without a gradient through the limit.
    length1 = length1 + (length1.detach().clamp_min(eps) - length1.detach())
    length2 = length2 + (length2.detach().clamp_min(eps) - length2.detach())
    return ((x1 / length1) * (x2 / length2)).sum(dim)


@composite("pairwise_distance(Tensor x1, Tensor x2, p=2.0, eps=1e-06, keepdim=False)", where="torch nn.functional")
def pairwise_distance(F, x1, x2, p, eps, keepdim):
    """The p-norm of ``x1 - x2 + eps`` along the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)


@composite(
    f"cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, margin=0, {LEGACY})", where="nn.functional"
)
def cosine_embedding_loss(F, input1, input2, target, margin, size_average, reduce, reduction):
    """``1 - cos(input1, input2)`` where the target is 1, ``max(0, cos - margin)`` where it is -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    dim = target.ndim
    if input1.ndim != dim + 1 or input2.ndim != dim + 1:
        kind = "1D" if dim else "0D"
        raise RuntimeError(
            f"{kind} target tensor expects {dim + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    # The squares carry eps, so a zero vector has a finite gradient.
    dot = (input1 * input2).sum(dim)
    squares1, squares2 = (input1 * input1).sum(dim) + 1e-12, (input2 * input2).sum(dim) + 1e-12
    cosine = dot / F.sqrt(squares1 * squares2)
    zero = F._zeros_like(cosine)
    near = F.where(target == 1, 1 - cosine, zero)
    far = F.where(target == -1, F.clamp(cosine - margin, 0), zero)
    return apply_reduction(near + far, reduction)


def _triplet_loss_of_distances(F, near, far, swap_distance, margin, reduction):
    if swap_distance is not None:
        far = F.minimum(far, swap_distance())
    return apply_reduction(F.clamp(near - far + margin, 0), reduction)


def _check_triplet(anchor, positive, negative, margin):
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )


@composite(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, margin=1.0, p=2, eps=1e-06, swap=False, "
    f"{LEGACY})",
    where="nn.functional",
)
def triplet_margin_loss(F, anchor, positive, negative, margin, p, eps, swap, size_average, reduce, reduction):
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with the p-norm distance
    (Balntas et al., 2016).
    """
    reduction = reduction_of(size_average, reduce, reduction)
    _check_triplet(anchor, positive, negative, margin)

    def distance(a, b):
        return F.pairwise_distance(a, b, p, eps)

    near, far = distance(anchor, positive), distance(anchor, negative)
    return _triplet_loss_of_distances(
        F, near, far, (lambda: distance(positive, negative)) if swap else None, margin, reduction
    )


@composite(
    "triplet_margin_with_distance_loss(Tensor anchor, Tensor positive, Tensor negative, *, distance_function=None, "
    "margin=1.0, swap=False, reduction='mean')",
    where="nn.functional",
)
def triplet_margin_with_distance_loss(F, anchor, positive, negative, distance_function, margin, swap, reduction):
    """The triplet margin loss with a distance of your own (the Euclidean one by default)."""
    reduction = reduction_of(None, None, reduction)
    _check_triplet(anchor, positive, negative, margin)
    distance = distance_function or F.pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    return _triplet_loss_of_distances(
        F, near, far, (lambda: distance(positive, negative)) if swap else None, margin, reduction
    )
