"""Normalisation: layer, RMS, batch, instance, group and local response norm.

Layer, RMS and batch norm have one record each for the forward and the backward pass, which a backend may fuse. The
forward records also return the statistics, so that a fused backward need not recompute them. The composites of the
backward records recompute them, because under ``create_graph`` a derivative must depend on the input through them.
"""

import functools

from torchlite._dispatch import INPLACE, Out, composite, memory_layout, op
from torchlite._dispatch.op_functions import in_place_method
from torchlite._dispatch.op_record import SCALAR_TYPE
from torchlite._types.dtypes import BOOL, INT, float32

from ._dtype_checks import refuse_complex, refuse_floats, refuse_kinds
from .activation import require_float
from .fused_inference import NO_CLAMP, batch_norm_affine, is_inference_unobserved
from .node_graphs import rms_norm_graph


def _channel_shape(x):
    return (1, x.shape[1]) + (1,) * (x.ndim - 2)


def _batch_dims(x):
    return (0, *range(2, x.ndim))


def _last_dims(n_dims):
    return tuple(range(-n_dims, 0))


def _leading_dims(x, n_dims):
    return tuple(range(x.ndim - n_dims))


def _sum_leading(F, x, n_dims):
    dims = _leading_dims(x, n_dims)
    return F.sum(x, dims, False) if dims else x


# A row with an element above the limit, whose squares may overflow, is multiplied by the unit, a power of two. The term
# then stands for `eps`, which is lost beside such a variance. By the size of an element in bytes.
_HUGE_ROWS = {4: (2.0**50, 2.0**-80, 2.0**-126), 8: (2.0**400, 2.0**-640, 2.0**-1000)}


def _unit_and_term(F, input, dims, eps):
    """For each row the power of two by which it is multiplied, and the term that is added to its variance. Both are
    constants for derivatives.
    """
    limit, unit, term = _HUGE_ROWS[F.dtype_of(input).itemsize]
    huge = F.gt(F.maximum(F.amax(input, dims, True), F.neg(F.amin(input, dims, True))), limit)
    like = F._new_zeros(input, huge.shape)
    return F.where(huge, F._full_like(like, unit), F._full_like(like, 1)), F.where(
        huge, F._full_like(like, term), F._full_like(like, eps)
    )


def _statistics(F, input, dims, eps):
    """Mean, biased variance, reciprocal standard deviation and normalized input over ``dims``, with these dimensions at
    size 1. The squares of huge rows do not overflow.
    """
    if 0 in input.shape:
        mean = F.mean(input, dims, True)
        return mean, mean, mean, input
    unit, term = _unit_and_term(F, input, dims, eps)
    scaled = F.mul(input, unit)
    mean = F.mean(scaled, dims, True)
    centred = F.sub(scaled, mean)
    var = F.mean(F.mul(centred, centred), dims, True)
    rstd = F.rsqrt(F.add(var, term))
    return F.div(mean, unit), F.div(F.div(var, unit), unit), F.mul(rstd, unit), F.mul(centred, rstd)


def _in_float32(composite):
    """A composite that computes with half precision in float32; its first argument has the dtype of the results."""

    @functools.wraps(composite)
    def run(F, *args):
        dtype = F.dtype_of(args[0])
        if dtype.itemsize != 2 or not dtype.is_floating_point:
            return composite(F, *args)
        wide = [F.to(a, float32) if hasattr(a, "ndim") and F.dtype_of(a).itemsize == 2 else a for a in args]
        return tuple(None if found is None else F.to(found, dtype) for found in composite(F, *wide))

    return run


_rounded_statistics = _in_float32(_statistics)


def _affine(F, x, weight, bias):
    if weight is not None:
        x = F.mul(x, weight)
    return x if bias is None else F.add(x, bias)


def _input_gradient(F, grad, normalized, rstd, dims):
    """The gradient of ``normalized = (x - mean) * rstd`` with respect to x."""
    mean_grad = F.mean(grad, dims, True)
    projection = F.mean(F.mul(grad, normalized), dims, True)
    return F.mul(rstd, F.sub(F.sub(grad, mean_grad), F.mul(normalized, projection)))


# --- layer norm -----------------------------------------------------------------------------------


@_in_float32
def _layer_norm(F, input, weight, bias, n_dims, eps):
    require_float(F, input, "LayerNormKernelImpl")
    mean, _, rstd, normalized = _statistics(F, input, _last_dims(n_dims), eps)
    return _affine(F, normalized, weight, bias), mean, rstd


@_in_float32
def _layer_norm_backward(F, grad, input, weight, mean, rstd, n_dims, eps, needs):
    dims = _last_dims(n_dims)
    _, _, rstd, normalized = _statistics(F, input, dims, eps)
    scaled = grad if weight is None else F.mul(grad, weight)
    return (
        _input_gradient(F, scaled, normalized, rstd, dims) if needs[0] else None,
        _sum_leading(F, F.mul(grad, normalized), n_dims) if needs[1] else None,
        _sum_leading(F, grad, n_dims) if needs[2] else None,
    )


def _statistics_shape(shape, n_dims):
    return tuple(shape[: len(shape) - n_dims]) + (1,) * n_dims


def _layer_norm_shape_fn(input, n_dims):
    small = _statistics_shape(input.shape, n_dims)
    return [(input.shape, input.dtype), (small, input.dtype), (small, input.dtype)]


op(
    "_layer_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor mean, Tensor rstd, n_dims, eps, needs)",
    where="",
    composite=_layer_norm_backward,
)
op(
    "_layer_norm(Tensor input, Tensor? weight, Tensor? bias, n_dims, eps)",
    where="",
    composite=_layer_norm,
    shape_fn=_layer_norm_shape_fn,
    vjp={
        ("input", "weight", "bias"): lambda F, g, input, weight, out1, out2, n_dims, eps, needs: F._layer_norm_backward(
            g, input, weight, out1, out2, n_dims, eps, needs
        )
    },
    absent_derivatives=dict.fromkeys(("input", "weight", "bias"), ("input", "weight", "bias")),
    layout=memory_layout.contiguous,
    node_name="NativeLayerNormBackward0",
    aux_outputs=True,
    saved_for={"weight": ("input",)},
)


def _check_normalized_shape(input, normalized_shape, weight, bias, star="*, "):
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    refuse_floats(*shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and tensor.shape != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(tensor.shape)} and normalized_shape = {list(shape)}"
            )
    if input.shape[-len(shape) :] != shape:
        inner = ", ".join(map(str, shape))
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [{star}{inner}], but got input of "
            f"size{list(input.shape)}"
        )
    return len(shape)


@composite(
    "layer_norm(Tensor input, normalized_shape, Tensor? weight=None, Tensor? bias=None, eps=1e-05, cudnn_enable=True)",
    where="torch nn.functional",
)
def layer_norm(F, input, normalized_shape, weight, bias, eps, cudnn_enable):
    r"""Normalizes the last dimensions (Ba et al., 2016).

    .. math::

        y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}} \cdot \text{weight} + \text{bias}

    Args:
        normalized_shape: The sizes of the last dimensions, over which the statistics run.
        weight: The factors, of shape `normalized_shape`. Default: 1.
        bias: The offsets, of shape `normalized_shape`. Default: 0.
        eps: The term :math:`\epsilon` in the denominator. Default: ``1e-5``.
        cudnn_enable: Has no effect: cuDNN is not used.

    Example:
        >>> F.layer_norm(torch.tensor([[0.0, 2.0]]), (2,))
        tensor([[-1.0000,  1.0000]])

    See also:
        `torch.nn.LayerNorm`.
    """
    n_dims = _check_normalized_shape(input, normalized_shape, weight, bias)
    return F._layer_norm(input, weight, bias, n_dims, eps)


@composite(
    "native_layer_norm(Tensor input, normalized_shape, Tensor? weight, Tensor? bias, eps)",
    where="torch",
    layout=memory_layout.contiguous,
    node_name="NativeLayerNormBackward0(input, weight, bias)",
)
def native_layer_norm(F, input, normalized_shape, weight, bias, eps):
    """Normalizes the last dimensions and returns the statistics too; all results are differentiable.

    Args:
        normalized_shape: The sizes of the last dimensions, over which the statistics run.
        weight: The factors, of shape `normalized_shape`, or ``None``.
        bias: The offsets, of shape `normalized_shape`, or ``None``.
        eps: The term in the denominator.

    Returns:
        The result, the means and the reciprocal standard deviations.

    Example:
        >>> torch.native_layer_norm(torch.tensor([[0.0, 2.0]]), (2,), None, None, 0.0)
        (tensor([[-1.,  1.]]), tensor([[1.]]), tensor([[1.]]))

    See also:
        `torch.nn.functional.layer_norm`.
    """
    n_dims = _check_normalized_shape(input, normalized_shape, weight, bias)
    weight, bias = (None if p is None else F._with_absent_gradient(p) for p in (weight, bias))
    return _layer_norm(F, input, weight, bias, n_dims, eps)


# --- RMS norm -------------------------------------------------------------------------------------


def _rms(F, input, dims, eps):
    """Reciprocal root mean square and normalized input. The squares of huge rows do not overflow."""
    if 0 in input.shape:
        return F.mean(input, dims, True), input
    unit, term = _unit_and_term(F, input, dims, eps)
    scaled = F.mul(input, unit)
    rstd = F.rsqrt(F.add(F.mean(F.mul(scaled, scaled), dims, True), term))
    return F.mul(rstd, unit), F.mul(scaled, rstd)


@_in_float32
def _rms_norm(F, input, weight, n_dims, eps):
    rstd, normalized = _rms(F, input, _last_dims(n_dims), eps)
    return _affine(F, normalized, weight, None), rstd


@_in_float32
def _rms_norm_backward(F, grad, input, weight, rstd, n_dims, eps, needs):
    dims = _last_dims(n_dims)
    rstd, normalized = _rms(F, input, dims, eps)
    scaled = grad if weight is None else F.mul(grad, weight)
    projection = F.mean(F.mul(scaled, normalized), dims, True)
    return (
        F.mul(rstd, F.sub(scaled, F.mul(normalized, projection))) if needs[0] else None,
        _sum_leading(F, F.mul(grad, normalized), n_dims) if needs[1] else None,
    )


op(
    "_rms_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor rstd, n_dims, eps, needs)",
    where="",
    composite=_rms_norm_backward,
)
op(
    "_rms_norm(Tensor input, Tensor? weight, n_dims, eps)",
    where="",
    composite=_rms_norm,
    shape_fn=lambda input, n_dims: [(input.shape, input.dtype), (_statistics_shape(input.shape, n_dims), input.dtype)],
    vjp={
        ("input", "weight"): lambda F, g, input, weight, out1, n_dims, eps, needs: F._rms_norm_backward(
            g, input, weight, out1, n_dims, eps, needs
        )
    },
    aux_outputs=True,
    saved_for={"weight": ("input",)},
)


@composite(
    "rms_norm(Tensor input, normalized_shape, Tensor? weight=None, eps=None)",
    where="torch nn.functional",
    node_name=rms_norm_graph,
)
def rms_norm(F, input, normalized_shape, weight, eps):
    r"""Divides by the root mean square of the last dimensions (Zhang and Sennrich, 2019).

    .. math::

        y = \frac{x}{\sqrt{\mathrm{mean}(x^2) + \epsilon}} \cdot \text{weight}

    Args:
        normalized_shape: The sizes of the last dimensions, over which the statistics run.
        weight: The factors, of shape `normalized_shape`. Default: 1.
        eps: The term :math:`\epsilon`. Default: the machine epsilon of the dtype of the computation, float32's for
            half precision.

    Example:
        >>> F.rms_norm(torch.tensor([[3.0, 4.0]]), (2,))
        tensor([[0.8485, 1.1314]])

    See also:
        `torch.nn.RMSNorm`.
    """
    n_dims = _check_normalized_shape(input, normalized_shape, weight, None, "*")
    refuse_kinds(input.dtype, "rms_norm", BOOL, INT)
    if eps is None:
        from torchlite._types.dtypes import finfo

        eps = finfo(float32 if input.dtype.itemsize == 2 else input.dtype).eps
    if input.dtype.is_complex:
        # As PyTorch does: the mean of the squares, not of the squared magnitudes.
        out = input * F.rsqrt(F.mean(input * input, _last_dims(n_dims), True) + eps)
        return out if weight is None else out * weight
    return F._rms_norm(input, weight, n_dims, eps)


# --- batch norm -----------------------------------------------------------------------------------


@_in_float32
def _batch_norm_train(F, input, weight, bias, eps):
    require_float(F, input, "batch_norm")
    shape, channels = _channel_shape(input), (input.shape[1],)
    mean, var, _, normalized = _statistics(F, input, _batch_dims(input), eps)
    weight, bias = (None if p is None else F.reshape(p, shape) for p in (weight, bias))
    return _affine(F, normalized, weight, bias), F.reshape(mean, channels), F.reshape(var, channels)


@_in_float32
def _batch_norm_backward(F, grad, input, weight, mean, var, eps, needs):
    dims = _batch_dims(input)
    _, _, rstd, normalized = _statistics(F, input, dims, eps)
    scaled = grad if weight is None else F.mul(grad, F.reshape(weight, _channel_shape(input)))
    return (
        _input_gradient(F, scaled, normalized, rstd, dims) if needs[0] else None,
        F.sum(F.mul(grad, normalized), dims, False) if needs[1] else None,
        F.sum(grad, dims, False) if needs[2] else None,
    )


def _batch_norm_shape_fn(input):
    channels = (input.shape[1],)
    return [(input.shape, input.dtype), (channels, input.dtype), (channels, input.dtype)]


op(
    "_batch_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor mean, Tensor var, eps, needs)",
    where="",
    composite=_batch_norm_backward,
)
op(
    "_batch_norm_train(Tensor input, Tensor? weight, Tensor? bias, eps)",
    where="",
    composite=_batch_norm_train,
    shape_fn=_batch_norm_shape_fn,
    nondiff=(1, 2),
    vjp={
        ("input", "weight", "bias"): lambda F, g, input, weight, out1, out2, eps, needs: F._batch_norm_backward(
            g[0], input, weight, out1, out2, eps, needs
        )
    },
    absent_derivatives=dict.fromkeys(("input", "weight", "bias"), ("input", "weight")),
    doc="Batch norm with the batch's own statistics: the result, the mean and the biased variance of each channel.",
    layout=memory_layout.preserve_channels_last,
    multi_output=True,
    node_name="NativeBatchNormBackward0",
)


def _channel_affine(F, input, scale, shift):
    shape = _channel_shape(input)
    return F.add(F.mul(input, F.reshape(scale, shape)), F.reshape(shift, shape))


op(
    "_channel_affine(Tensor input, Tensor scale, Tensor shift)",
    where="",
    composite=_channel_affine,
    shape_fn=lambda input: (input.shape, input.dtype),
    vjp={
        "input": lambda F, g, scale: F.mul(g, F.reshape(scale, _channel_shape(g))),
        "scale": lambda F, g, input: F.sum(F.mul(g, input), _batch_dims(g), False),
        "shift": lambda F, g: F.sum(g, _batch_dims(g), False),
    },
    absent_derivatives=dict.fromkeys(("input", "scale", "shift"), ("input", "scale")),
    doc="``input * scale + shift`` with one scale and shift for each channel (dimension 1).",
    layout=memory_layout.preserve_channels_last,
)


def _check_channels(input, weight, bias, running_mean, running_var):
    channels = input.shape[1]
    for name, tensor in (
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    ):
        if tensor is not None and tensor.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {tensor.numel()}")


_moving_average = op(
    "_moving_average(Tensor input, Tensor new, keep, take)",
    where="",
    composite=lambda F, input, new, keep, take: F.to(F.add(F.mul(input, keep), F.mul(new, take)), F.dtype_of(input)),
    tags=INPLACE,
)
_move = in_place_method(_moving_average)


def _update_running(running_mean, running_var, mean, var, momentum, count):
    """Move running statistics in place towards a batch's; the variance that they follow is the unbiased one."""
    momentum = momentum or 0.0
    refuse_complex(momentum)
    if running_mean is not None:
        _move(running_mean, mean, 1.0 - momentum, momentum)
    if running_var is not None:
        unbiased = count / (count - 1) if count > 1 else float("nan")
        _move(running_var, var, 1.0 - momentum, momentum * unbiased)


@composite("batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, momentum)", where="torch")
def batch_norm_update_stats(F, input, running_mean, running_var, momentum):
    """Computes the statistics of each channel and moves the running ones towards them in place.

    Args:
        input: The input, of shape ``(N, C, *)``.
        running_mean: The running means, of shape ``(C,)``, or ``None``.
        running_var: The running variances, of shape ``(C,)``, or ``None``.
        momentum: The weight of the batch in the running statistics.

    Returns:
        The means and the biased variances, of the dtype of the running mean.

    Example:
        >>> torch.batch_norm_update_stats(torch.tensor([[1.0], [3.0]]), None, None, 0.1)
        (tensor([2.]), tensor([1.]))
    """
    if input.ndim < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-{input.ndim}, {input.ndim - 1}], but got 1)"
        )
    if not input.numel():
        raise RuntimeError(f"input tensor must have at least one element, but got input_sizes = {list(input.shape)}")
    _check_channels(input, None, None, running_mean, running_var)
    x = input.detach() if running_mean is None else F.to(input.detach(), running_mean.dtype)
    var, mean = F.var_mean(x, (0, *range(2, input.ndim)), correction=0)
    _update_running(running_mean, running_var, mean, var, momentum, input.numel() // input.shape[1])
    return mean, var


def _has_tangent(tensor):
    """True if a tensor has a tangent in a level of forward-mode differentiation."""
    return bool(getattr(tensor._tl_meta, "tangents", None))


@composite(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, training, "
    "momentum, eps, cudnn_enabled=True)",
    where="torch",
)
def batch_norm(F, input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """Normalizes each channel (Ioffe and Szegedy, 2015); the argument order is that of PyTorch's operator.

    Args:
        input: The input, of shape ``(N, C, *)``.
        weight: The factors, of shape ``(C,)``, or ``None``.
        bias: The offsets, of shape ``(C,)``, or ``None``.
        running_mean: The running means, of shape ``(C,)``, or ``None``; updated in place in training.
        running_var: The running variances, of shape ``(C,)``, or ``None``; updated in place in training.
        training: Whether to use and record the batch's statistics, else the running ones.
        momentum: The weight of the batch in the running statistics.
        eps: The term in the denominator.
        cudnn_enabled: Has no effect: `torch.backends.cudnn` decides whether cuDNN is used.

    Example:
        >>> torch.batch_norm(torch.tensor([[0.0], [2.0]]), None, None, None, None, True, 0.1, 0.0)
        tensor([[-1.],
                [ 1.]])

    See also:
        `torch.nn.functional.batch_norm`.
    """
    if input.ndim < 2:
        if input.numel() == 0:
            return F.clone(input)
        raise RuntimeError(f"batch_norm expects an input of at least 2 dimensions, but got {input.ndim}")
    _check_channels(input, weight, bias, running_mean, running_var)
    require_float(F, input, "batch_norm")
    if training:
        out, mean, var = F._batch_norm_train(input, weight, bias, eps)
        if (running_mean is not None or running_var is not None) and input.numel():
            _update_running(running_mean, running_var, mean, var, momentum, input.numel() // input.shape[1])
        return out
    for name, tensor in (("running_mean", running_mean), ("running_var", running_var)):
        if tensor is None:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
    if _has_tangent(input) and (_has_tangent(running_mean) or _has_tangent(running_var)):
        raise RuntimeError(
            "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad defined"
        )
    parameters = (weight, bias, running_mean, running_var)
    if is_inference_unobserved() and all(p is None or p.dtype is input.dtype for p in parameters):
        return F._batch_norm_eval(input, weight, bias, running_mean, running_var, eps, *NO_CLAMP)
    return F._normalize_by_statistics(input, weight, bias, running_mean, running_var, eps)


@composite(
    "_normalize_by_statistics(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, eps)",
    where="",
    node_name="NativeBatchNormBackward0(input, weight, bias)",
)
def _normalize_with(F, input, weight, bias, mean, var, eps):
    scale, shift = batch_norm_affine(F, weight, bias, mean, var, eps)
    return F._channel_affine(input, scale.to(input.dtype), shift.to(input.dtype))


@composite(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "training, momentum, eps)",
    where="torch",
    layout=memory_layout.preserve_channels_last,
    out=Out("same", SCALAR_TYPE),
    node_name="NativeBatchNormBackward0(input, weight, bias)",
)
def native_batch_norm(F, input, weight, bias, running_mean, running_var, training, momentum, eps):
    """Normalizes each channel and returns the statistics too; all results are differentiable.

    Args:
        input: The input, of shape ``(N, C, *)``.
        weight: The factors, of shape ``(C,)``, or ``None``.
        bias: The offsets, of shape ``(C,)``, or ``None``.
        running_mean: The running means, of shape ``(C,)``, or ``None``; updated in place in training.
        running_var: The running variances, of shape ``(C,)``, or ``None``; updated in place in training.
        training: Whether to use and record the batch's statistics, else the running ones.
        momentum: The weight of the batch in the running statistics.
        eps: The term in the denominator.

    Returns:
        The result, and in training the means and the reciprocal standard deviations of the batch, else two empty
        tensors.

    Example:
        >>> torch.native_batch_norm(torch.tensor([[0.0], [2.0]]), None, None, None, None, True, 0.1, 0.0)[1]
        tensor([1.])

    See also:
        `torch.nn.functional.batch_norm`.
    """
    if not training:
        empty = F._new_zeros(input, (0,))
        return F.batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps), empty, empty
    _check_channels(input, weight, bias, running_mean, running_var)
    shape, channels = _channel_shape(input), (input.shape[1],)
    mean, var, rstd, normalized = _rounded_statistics(F, input, _batch_dims(input), eps)
    weight = None if weight is None else F._with_absent_gradient(weight)
    weight, bias = (None if p is None else F.reshape(p, shape) for p in (weight, bias))
    if input.numel():
        count = input.numel() // input.shape[1]
        _update_running(
            running_mean, running_var, mean.detach().reshape(channels), var.detach().reshape(channels), momentum, count
        )
    return _affine(F, normalized, weight, bias), F.reshape(mean, channels), F.reshape(rstd, channels)


# --- instance, group and local response norm ------------------------------------------------------


def _reshape_to_groups(F, x, groups):
    """The groups of channels as rows."""
    return F.reshape(x, (x.shape[0] * groups, -1))


def _group_norm(F, input, weight, bias, groups, eps):
    rows, mean, rstd = F._layer_norm(_reshape_to_groups(F, input, groups), None, None, 1, eps)
    return _normalize_channelwise(F, F.reshape(rows, input.shape), weight, bias), mean, rstd


def _group_norm_vjp(F, g, input, weight, out1, out2, groups, eps, needs):
    rows, dims = None if input is None else _reshape_to_groups(F, input, groups), _batch_dims(g)
    of_input = of_weight = None
    if needs[0]:
        scaled = g if weight is None else F.mul(g, F.reshape(weight, _channel_shape(g)))
        scaled = _reshape_to_groups(F, scaled, groups)
        found = F._layer_norm_backward(scaled, rows, None, out1, out2, 1, eps, (True, False, False))
        of_input = F.reshape(found[0], input.shape)
    if needs[1]:
        normalized = F._layer_norm(rows, None, None, 1, eps)  # kernels also return the statistics
        normalized = normalized[0] if normalized.__class__ is tuple else normalized
        of_weight = F.sum(F.mul(g, F.reshape(normalized, g.shape)), dims, False)
    return of_input, of_weight, F.sum(g, dims, False) if needs[2] else None


op(
    "_group_norm(Tensor input, Tensor? weight, Tensor? bias, groups, eps)",
    where="",
    composite=_group_norm,
    shape_fn=lambda input, groups: [(input.shape, input.dtype), *[((input.shape[0] * groups, 1), input.dtype)] * 2],
    vjp={("input", "weight", "bias"): _group_norm_vjp},
    absent_derivatives={"weight": ("weight",)},
    doc="Group norm; the statistics of each group beside it.",
    aux_outputs=True,
    saved_for={"input": ("input", "weight"), "weight": ("input",), "out1": ("input",), "out2": ("input",)},
    node_name="NativeGroupNormBackward0",
)


@composite(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "use_input_stats, momentum, eps, cudnn_enabled=True)",
    where="torch",
    layout=memory_layout.contiguous,
    node_name="ViewBackward0(NativeBatchNormBackward0("
    "ViewBackward0(input), RepeatBackward0(weight), RepeatBackward0(bias)))",
)
def instance_norm(F, input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """Normalizes each channel of each sample (Ulyanov et al., 2016); the argument order is that of PyTorch's operator.

    Args:
        input: The input, of shape ``(N, C, *)``.
        weight: The factors, of shape ``(C,)``, or ``None``.
        bias: The offsets, of shape ``(C,)``, or ``None``.
        running_mean: The running means, of shape ``(C,)``, or ``None``; updated in place in training.
        running_var: The running variances, of shape ``(C,)``, or ``None``; updated in place in training.
        use_input_stats: Whether the statistics are the input's, else the running ones.
        momentum: The weight of the batch in the running statistics.
        eps: The term in the denominator.
        cudnn_enabled: Has no effect: `torch.backends.cudnn` decides whether cuDNN is used.

    Example:
        >>> torch.instance_norm(torch.tensor([[[0.0, 2.0]]]), None, None, None, None, True, 0.1, 0.0, True)
        tensor([[[-1.,  1.]]])

    See also:
        `torch.nn.functional.instance_norm`.
    """
    if not use_input_stats:
        for name, tensor in (("running_mean", running_mean), ("running_var", running_var)):
            if tensor is None:
                raise RuntimeError(f"Expected {name} to be defined when use_input_stats is false")
        return _normalize_with(F, input, weight, bias, running_mean, running_var, eps)
    _check_channels(input, weight, bias, running_mean, running_var)
    batch, channels = input.shape[:2]
    if running_mean is None and running_var is None and input.numel():
        return F._group_norm(input, weight, bias, channels, eps)
    flat = F.reshape(input, (1, batch * channels, *input.shape[2:]))
    out, mean, var = F._batch_norm_train(flat, None, None, eps)
    if (running_mean is not None or running_var is not None) and input.numel():
        mean, var = (s.reshape(batch, channels).mean(0) for s in (mean, var))
        _update_running(running_mean, running_var, mean, var, momentum, input.numel() // (batch * channels))
    return _normalize_channelwise(F, F.reshape(out, input.shape), weight, bias)


def _normalize_channelwise(F, x, weight, bias):
    if weight is not None and bias is not None:
        return F._channel_affine(x, weight, bias)
    shape = _channel_shape(x)
    return _affine(F, x, *(None if p is None else F.reshape(p, shape) for p in (weight, bias)))


def _check_groups(input, num_groups, weight, bias):
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    channels = input.shape[1]
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and tensor.shape != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(tensor.shape)} and input of shape {list(input.shape)}"
            )


@composite(
    "group_norm(Tensor input, num_groups, Tensor? weight=None, Tensor? bias=None, eps=1e-05, cudnn_enabled=True)",
    where="torch",
    layout=memory_layout.suggest_memory_format,
)
def group_norm(F, input, num_groups, weight, bias, eps, cudnn_enabled):
    """Normalizes each group of channels of each sample (Wu and He, 2018).

    Args:
        input: The input, of shape ``(N, C, *)``.
        num_groups: The number of groups; it divides ``C``.
        weight: The factors, of shape ``(C,)``. Default: 1.
        bias: The offsets, of shape ``(C,)``. Default: 0.
        eps: The term in the denominator. Default: ``1e-5``.
        cudnn_enabled: Has no effect: `torch.backends.cudnn` decides whether cuDNN is used.

    Example:
        >>> torch.group_norm(torch.tensor([[0.0, 2.0]]), 1)
        tensor([[-1.0000,  1.0000]])

    See also:
        `torch.nn.functional.group_norm`.
    """
    _check_groups(input, num_groups, weight, bias)
    if input.numel() == 0:
        return _normalize_channelwise(F, F.clone(input), weight, bias)
    return F._group_norm(input, weight, bias, num_groups, eps)


@composite(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, N, C, HxW, group, eps)",
    where="torch",
    node_name="NativeGroupNormBackward0(input, weight, bias)",
)
def native_group_norm(F, input, weight, bias, N, C, HxW, group, eps):
    """Normalizes each group of channels and returns the statistics too; all results are differentiable.

    Args:
        input: The input, of shape ``(N, C, *)``.
        weight: The factors, of shape ``(C,)``, or ``None``.
        bias: The offsets, of shape ``(C,)``, or ``None``.
        N: The number of samples.
        C: The number of channels.
        HxW: The number of positions.
        group: The number of groups; it divides `C`.
        eps: The term in the denominator.

    Returns:
        The result, the means and the reciprocal standard deviations, the latter two of shape ``(N, group)``.

    Example:
        >>> torch.native_group_norm(torch.tensor([[0.0, 2.0]]), None, None, 1, 2, 1, 1, 0.0)[1]
        tensor([[1.]])

    See also:
        `torch.nn.functional.group_norm`.
    """
    _check_groups(input, group, weight, bias)
    flat = F.reshape(input, (N, group, C // group * HxW))
    mean, _, rstd, normalized = _rounded_statistics(F, flat, (2,), eps)
    shape, weight = _channel_shape(input), None if weight is None else F._with_absent_gradient(weight)
    weight, bias = (None if p is None else F.reshape(p, shape) for p in (weight, bias))
    out = _affine(F, F.reshape(normalized, input.shape), weight, bias)
    return out, F.reshape(mean, (N, group)), F.reshape(rstd, (N, group))


@composite(
    "local_response_norm(Tensor input, size, alpha=0.0001, beta=0.75, k=1.0)",
    where="nn.functional",
    layout=memory_layout.like_first,
)
def local_response_norm(F, input, size, alpha, beta, k):
    r"""Divides each channel by a power of the squares of its neighbors (Krizhevsky et al., 2012).

    .. math::

        y = \frac{x}{(k + \alpha \, \mathrm{mean}(x^2))^{\beta}}

    The mean runs over `size` neighboring channels.

    Args:
        input: The input, of shape ``(N, C, *)``.
        size: The number of neighbors.
        alpha: The factor :math:`\alpha`. Default: ``1e-4``.
        beta: The exponent :math:`\beta`. Default: ``0.75``.
        k: The term :math:`k`. Default: 1.

    Example:
        >>> F.local_response_norm(torch.ones(1, 1, 1), 1, alpha=1.0, beta=1.0)
        tensor([[[0.5000]]])

    See also:
        `torch.nn.LocalResponseNorm`.
    """
    if input.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {input.ndim} dimensions)"
        )
    if input.numel() == 0:
        return input
    channels = input.shape[1]
    squares = input * input
    window = F._zeros_like(squares)
    for offset in range(-(size // 2), (size - 1) // 2 + 1):
        length = channels - abs(offset)
        if length <= 0:
            continue
        piece = F.narrow(squares, 1, max(offset, 0), length)
        missing = F._new_zeros(squares, (input.shape[0], channels - length, *input.shape[2:]))
        window = window + F.cat([piece, missing] if offset >= 0 else [missing, piece], 1)
    return input / (window * (alpha / size) + k) ** beta


@composite(
    "normalize(Tensor input, p=2.0, dim=1, eps=1e-12, out=None)",
    where="nn.functional",
    layout=memory_layout.like_first,
    node_name="DivBackward0(input, ExpandBackward0(ClampMinBackward0(LinalgVectorNormBackward0(input))))",
)
def normalize(F, input, p, dim, eps, out):
    r"""Divides vectors by their norm.

    .. math::

        y = \frac{x}{\max(\lVert x \rVert_p, \epsilon)}

    Args:
        p: The order of the norm. Default: 2.
        dim: The dimension of the vectors. Default: 1.
        eps: The least divisor :math:`\epsilon`. Default: ``1e-12``.

    Example:
        >>> F.normalize(torch.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    lengths = input.norm(p, dim, keepdim=True).clamp_min(eps)
    found = input / lengths
    return found if out is None else out.resize_(found.shape).copy_(found)
