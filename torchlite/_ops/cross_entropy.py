"""Cross entropy and negative log-likelihood.

`_cross_entropy` is the common case (class indices, no smoothing) as one record: it saves the logits and the log of each
row's sum, but no matrix of probabilities.
"""

import operator

from torchlite._dispatch import composite, op
from torchlite._types.dtypes import int64, uint8

from .._dispatch.autograd_graph import edge_shape
from .activation import require_float
from .loss import apply_reduction, reduction_of
from .node_graphs import nll_loss_graph


def _class_dim(x):
    return 1 if x.ndim > 1 else 0


def _log_sum_exp(F, input, dim):
    largest = F.amax(input, dim, True)
    return F.add(F.log(F.sum(F.exp(F.sub(input, largest)), dim, True)), largest)


def _mask_ignored_targets(F, target, ignore_index):
    """The mask of targets that are not ignored, and the targets with 0 in place of ignored ones."""
    target = F.to(target, int64)
    counts = F.ne(target, ignore_index)
    return counts, F.where(counts, target, F._zeros_like(target))


def _sample_weights(F, counts, safe, weight, dtype):
    counts = F.to(counts, dtype)
    if weight is None:
        return counts
    return F.mul(counts, F.reshape(F.index_select(weight, 0, F.reshape(safe, (-1,))), safe.shape))


def _scale_by_weights(F, grad, weights, counts, reduction):
    """The gradient of each sample's loss: 0 for ignored targets, also if there are no others."""
    if reduction == "mean":
        grad = F.div(grad, F.sum(weights))
    scale = F.mul(weights, grad)
    return F.where(counts, scale, F._zeros_like(scale))


def _cross_entropy(F, input, target, weight, ignore_index, reduction):
    dim = _class_dim(input)
    counts, safe = _mask_ignored_targets(F, target, ignore_index)
    lse = F.squeeze(_log_sum_exp(F, input, dim), dim)
    chosen = F.squeeze(F.gather(input, dim, F.unsqueeze(safe, dim)), dim)
    weights = _sample_weights(F, counts, safe, weight, F.dtype_of(input))
    losses = F.mul(F.sub(lse, chosen), weights)
    if reduction == "none":
        return losses, lse
    total = F.sum(losses)
    return (F.div(total, F.sum(weights)) if reduction == "mean" else total), lse


def _cross_entropy_backward(F, grad, input, target, weight, lse, ignore_index, reduction):
    dim = _class_dim(input)
    counts, safe = _mask_ignored_targets(F, target, ignore_index)
    weights = _sample_weights(F, counts, safe, weight, F.dtype_of(input))
    scale = F.unsqueeze(_scale_by_weights(F, grad, weights, counts, reduction), dim)
    probabilities = F.exp(F.sub(input, _log_sum_exp(F, input, dim)))
    return F.scatter_add(F.mul(probabilities, scale), dim, F.unsqueeze(safe, dim), F.neg(scale))


def _cross_entropy_shape_fn(input, target, weight, reduction):
    _check_target(input, target, weight)
    return [(target.shape if reduction == "none" else (), input.dtype), (target.shape, input.dtype)]


def _cross_entropy_graph(node):
    """PyTorch takes the loss of log-probabilities."""
    shape = edge_shape(node._edges[0])
    return nll_loss_graph(len(shape), "none" if node._shape else "mean", "LogSoftmaxBackward0(input)")


op(
    "_cross_entropy_backward(Tensor grad, Tensor input, Tensor target, Tensor? weight, Tensor lse, ignore_index, "
    "reduction)",
    where="",
    composite=_cross_entropy_backward,
)
op(
    "_cross_entropy(Tensor input, Tensor target, Tensor? weight, ignore_index, reduction)",
    where="",
    composite=_cross_entropy,
    shape_fn=_cross_entropy_shape_fn,
    vjp={
        "input": lambda F, g, input, target, weight, out1, ignore_index, reduction: F._cross_entropy_backward(
            g, input, target, weight, out1, ignore_index, reduction
        )
    },
    aux_outputs=True,
    node_name=_cross_entropy_graph,
)


def _check_target(input, target, weight):
    """The errors of a target of class indices."""
    shape, found = input.shape, target.shape
    if len(shape) == 2 and len(found) == 1 and shape[0] == found[0] and target.dtype is int64 and weight is None:
        return
    if input.ndim < 1:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if input.ndim > 1 and (target.ndim == 0 or input.shape[0] != target.shape[0]):
        found = target.shape[0] if target.ndim else 0
        if target.ndim or input.shape[0] != 1:
            raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({found}).")
    if input.ndim <= 2 and target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input.ndim == target.ndim == 1 and target.shape[0] != 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.shape[0]}")
    if target.dtype is not int64 and target.dtype is not uint8:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_name}")
    if input.ndim == 4 and target.ndim != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.ndim}"
        )
    expected = (input.shape[0], *input.shape[2:])
    if input.ndim > 2 and target.shape != expected:
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(target.shape)}")
    classes = input.shape[_class_dim(input)]
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor "
            f"of shape: {list(weight.shape)}"
        )


def _nll_loss(F, input, target, weight, ignore_index, reduction):
    dim = _class_dim(input)
    counts, safe = _mask_ignored_targets(F, target, ignore_index)
    weights = _sample_weights(F, counts, safe, weight, F.dtype_of(input))
    chosen = F.squeeze(F.gather(input, dim, F.unsqueeze(safe, dim)), dim)
    # where, not only the factor 0: an ignored entry may be infinite.
    losses = F.mul(F.where(counts, F.neg(chosen), F._zeros_like(chosen)), weights)
    if reduction == "none":
        return losses
    total = F.sum(losses)
    return F.div(total, F.sum(weights)) if reduction == "mean" else total


def _nll_loss_backward(F, grad, target, weight, shape, ignore_index, reduction):
    dim = 1 if len(shape) > 1 else 0
    counts, safe = _mask_ignored_targets(F, target, ignore_index)
    weights = _sample_weights(F, counts, safe, weight, F.dtype_of(grad))
    scale = _scale_by_weights(F, grad, weights, counts, reduction)
    return F.scatter(F._new_zeros(grad, shape), dim, F.unsqueeze(safe, dim), F.unsqueeze(F.neg(scale), dim))


def _nll_loss_weight_grad(F, g, input, target, weight, ignore_index, reduction):
    """The gradient of the weights, of which the mean has the sum in its denominator."""
    dim = _class_dim(input)
    counts, safe = _mask_ignored_targets(F, target, ignore_index)
    losses = F.neg(F.squeeze(F.gather(input, dim, F.unsqueeze(safe, dim)), dim))
    if reduction == "mean":
        total = F.sum(_sample_weights(F, counts, safe, weight, F.dtype_of(input)))
        losses = F.div(F.sub(losses, F._nll_loss(input, target, weight, ignore_index, reduction)), total)
    each = F.where(counts, F.mul(losses, g), F._zeros_like(losses))
    return F.index_add(F._zeros_like(weight), 0, F.reshape(safe, (-1,)), F.reshape(each, (-1,)))


# The loss is linear in the input: each record's derivative is the other one.
op(
    "_nll_loss_backward(Tensor grad, Tensor target, Tensor? weight, shape, ignore_index, reduction)",
    where="",
    composite=_nll_loss_backward,
    shape_fn=lambda grad, shape: (tuple(shape), grad.dtype),
    vjp={
        "grad": lambda F, g, target, weight, ignore_index, reduction: F._nll_loss(
            g, target, weight, ignore_index, reduction
        ),
        "weight": lambda F, g, grad, target, weight, ignore_index, reduction: _nll_loss_weight_grad(
            F, grad, g, target, weight, ignore_index, reduction
        ),
    },
)
op(
    "_nll_loss(Tensor input, Tensor target, Tensor? weight, ignore_index, reduction)",
    where="",
    composite=_nll_loss,
    shape_fn=lambda input, target, reduction: (target.shape if reduction == "none" else (), input.dtype),
    vjp={
        "input": lambda F, g, target, weight, input_shape, ignore_index, reduction: F._nll_loss_backward(
            g, target, weight, input_shape, ignore_index, reduction
        ),
        "weight": _nll_loss_weight_grad,
    },
    zero_derivatives={"input": ("input",)},
)


@composite(
    "nll_loss(Tensor input, Tensor target, Tensor? weight=None, size_average=None, ignore_index=-100, reduce=None, "
    "reduction='mean')",
    where="nn.functional",
    node_name=lambda call: nll_loss_graph(call.ndim("input"), call["reduction"], "input"),
)
def nll_loss(F, input, target, weight, size_average, ignore_index, reduce, reduction):
    r"""Computes the negative log-likelihood of classes.

    .. math::

        \ell_n = -w_{y_n} x_{n, y_n}

    The mean is divided by the sum of the weights.

    Args:
        input: Logarithms of probabilities, of shape ``(N, C, *)`` or ``(C,)``.
        target: Classes, int64, of the input's shape without dimension 1 (0 for a 1-d input).
        weight: Weights of the classes, of shape ``(C,)``. Default: 1.
        ignore_index: A target that does not count. Default: ``-100``.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Raises:
        IndexError: A target is out of range.
        RuntimeError: The shapes or dtypes do not fit.

    Example:
        >>> F.nll_loss(torch.tensor([[0.25, 0.75]]).log(), torch.tensor([1]))
        tensor(0.2877)

    See also:
        `torch.nn.NLLLoss`.
    """
    ignore_index = operator.index(ignore_index)
    reduction = reduction_of(size_average, reduce, reduction)
    _check_target(input, target, weight)
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.scalar_name} but found {weight.dtype.scalar_name}")
    require_float(F, input, "nll_loss_out_frame")
    if input.ndim == 1:
        target = target.reshape(())
    return F._nll_loss(input, target, weight, ignore_index, reduction)


def _smooth_labels(F, log_probs, target, weight, ignore_index, reduction, smoothing):
    """Class indices mixed with a uniform target (Szegedy et al., 2016)."""
    dim = _class_dim(log_probs)
    classes = log_probs.shape[dim]
    if log_probs.ndim == 1:
        target = target.reshape(())
    hard = F._nll_loss(log_probs, target, weight, ignore_index, "sum" if reduction == "mean" else reduction)
    counts, safe = _mask_ignored_targets(F, target, ignore_index)
    weighted = (
        log_probs if weight is None else log_probs * weight.reshape((classes,) + (1,) * (log_probs.ndim - 1 - dim))
    )
    uniform = -weighted.sum(dim)
    uniform = F.where(counts, uniform, F._zeros_like(uniform))
    if reduction == "mean":
        total = _sample_weights(F, counts, safe, weight, log_probs.dtype).sum()
        return (1 - smoothing) * hard / total + (smoothing / classes) * uniform.sum() / total
    return (1 - smoothing) * hard + (smoothing / classes) * apply_reduction(uniform, reduction)


def _cross_entropy_with_probabilities(F, input, target, weight, reduction, smoothing):
    """Targets that are probabilities, one for each class."""
    dim = _class_dim(input)
    classes = input.shape[dim]
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype.scalar_name}"
        )
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got "
            f"weight tensor of shape: {list(weight.shape)}"
        )
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / classes
    products = F._log_softmax(input, dim) * target
    if weight is not None:
        products = products * weight.reshape((classes,) + (1,) * (input.ndim - 1 - dim))
    losses = -products.sum(dim)
    if reduction == "mean":
        return losses.sum() / losses.numel()
    return apply_reduction(losses, reduction)


@composite(
    "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, size_average=None, ignore_index=-100, "
    "reduce=None, reduction='mean', label_smoothing=0.0)",
    where="nn.functional",
)
def cross_entropy(F, input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing):
    r"""Computes the cross entropy of logits and classes.

    .. math::

        \ell_n = -w_{y_n} \log \frac{\exp(x_{n, y_n})}{\sum_c \exp(x_{n, c})}

    The mean over classes is divided by the sum of the weights.

    Args:
        input: Logits, of shape ``(N, C, *)`` or ``(C,)``.
        target: Classes (int64, of the input's shape without the class dimension), or probabilities of the classes
            (of the input's shape).
        weight: Weights of the classes, of shape ``(C,)``. Default: 1.
        ignore_index: A target that does not count. Default: ``-100``.
        label_smoothing: The share of the uniform distribution in the targets, from 0 to 1. Default: 0.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Raises:
        IndexError: A target is out of range.
        RuntimeError: The shapes or dtypes do not fit.

    Example:
        >>> F.cross_entropy(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
        tensor(0.1269)

    See also:
        `torch.nn.CrossEntropyLoss`.
    """
    ignore_index = operator.index(ignore_index)
    if (
        label_smoothing == 0.0
        and weight is None
        and target.dtype is int64
        and input.ndim == 2
        and target.ndim == 1
        and reduction == "mean"
        and (size_average is None and reduce is None)
    ):
        return F._cross_entropy(input, target, None, ignore_index, reduction)
    if size_average is not None or reduce is not None or reduction not in ("mean", "sum", "none"):
        reduction = reduction_of(size_average, reduce, reduction)
    if input.ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if input.shape == target.shape:
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _cross_entropy_with_probabilities(F, input, target, weight, reduction, label_smoothing)
    _check_target(input, target, weight)
    if label_smoothing:
        return _smooth_labels(
            F, F._log_softmax(input, _class_dim(input)), target, weight, ignore_index, reduction, label_smoothing
        )
    if input.ndim == 1 and target.ndim == 1:
        target = target.reshape(())
    return F._cross_entropy(input, target, weight, ignore_index, reduction)


def _check_linear(input, linear_weight, target, linear_bias, ignore_index):
    """The errors of a loss on a linear layer, before the layer."""
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if linear_weight.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {linear_weight.shape[-1]}, respectively"
        )
    if linear_weight.ndim > 2 and input.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {input.shape[-1]}), got unbatched input with shape {tuple(input.shape)}"
        )
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise RuntimeError(
            f"expected linear_bias shape {tuple(linear_weight.shape[:-1])}, got {tuple(linear_bias.shape)}"
        )
    if ignore_index is not None and target.dtype.category >= 2:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")


@composite(
    "linear_cross_entropy(Tensor input, Tensor linear_weight, Tensor target, *, Tensor? linear_bias=None, Tensor? "
    "weight=None, reduction='mean', ignore_index=None, label_smoothing=0.0, options=None)",
    where="nn.functional",
)
def linear_cross_entropy(
    F, input, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing, options
):
    """Computes the cross entropy of a linear layer's output:
    ``cross_entropy(linear(input, linear_weight, linear_bias), target)``.

    Args:
        input: The input of the layer, of shape ``(N, *, in_features)``.
        linear_weight: The layer's weight, of shape ``(C, in_features)``, or ``(C, d1, ..., in_features)`` for
            logits of shape ``(N, C, d1, ...)``.
        target: Classes or probabilities, as for `cross_entropy`.
        linear_bias: The layer's bias. Default: none.
        weight: Weights of the classes, of shape ``(C,)``. Default: 1.
        ignore_index: A target that does not count. Default: ``None``.
        label_smoothing: The share of the uniform distribution in the targets. Default: 0.
        options: Has no effect: the logits are computed at once.

    Returns:
        The loss: a 0-d tensor, or one value an element with ``reduction="none"``.

    Example:
        >>> F.linear_cross_entropy(torch.tensor([[1.0]]), torch.tensor([[2.0], [0.0]]), torch.tensor([0]))
        tensor(0.1269)

    See also:
        `torch.nn.functional.cross_entropy`.
    """
    _check_linear(input, linear_weight, target, linear_bias, ignore_index)
    out_features = linear_weight.shape[:-1]
    if len(out_features) > 1:
        flat = linear_weight.reshape(-1, linear_weight.shape[-1])
        logits = F.linear(input, flat, None if linear_bias is None else linear_bias.reshape(-1)).reshape(
            (*input.shape[:-1], *out_features)
        )
    else:
        logits = F.linear(input, linear_weight, linear_bias)
    ignored = -100 if ignore_index is None else ignore_index
    return F.cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )
