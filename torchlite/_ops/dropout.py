"""Dropout: sets entries or entire channels to zero at random in training.

Srivastava et al. 2014; for self-normalising networks (alpha dropout) Klambauer et al. 2017.
"""

from __future__ import annotations

import math
import warnings

from .._device.generators import dims_by_stride, engine_for_table
from .._dispatch import RANDOM, REGISTRY, autograd_graph, call, composite, in_place_calls, memory_layout, op
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.interceptors import is_inside_vmap, stack
from .._dispatch.numpy_errors import run_quietly
from .._types.dtypes import bool_

_ALPHA = 1.7580993408473766  # scale * alpha of selu


op(
    "_dropout_backward(Tensor grad, Tensor kept, p)",
    where="",
    composite=lambda F, grad, kept, p: F.mul(grad, kept),
    vjp={"grad": lambda F, g, kept, p: F._dropout_backward(g, kept, p)},
    doc="The gradient of `_dropout`, from what it remembers.",
)


def _dropout(F, input, p, generator):
    kept = F._random_keep_mask(input.shape, F.dtype_of(input), p, generator)
    return F.mul(input, kept), kept


op(
    "_dropout(Tensor input, p, generator)",
    where="",
    tags=RANDOM,
    composite=_dropout,
    shape_fn=lambda input: [(input.shape, input.dtype)] * 2,
    vjp={"input": lambda F, g, out1, p: F._dropout_backward(g, out1, p)},
    doc="Dropout of a contiguous input with 0 < p < 1. What it remembers for backward is the kernel's affair: here "
    "the factors.",
    aux_outputs=True,
    node_name="MulBackward0(input, -)",
)


def _check_probability(p, kind=RuntimeError) -> None:
    if not 0.0 <= p <= 1.0:
        raise kind(f"dropout probability has to be between 0 and 1, but got {p}")


def _draw_noise(input, kernel, p, shape=None):
    """Random noise of `_random_keep_mask` or `_random_bernoulli` with an input's shape and memory order, or with a
    given shape.
    """
    table = input._tl_kernels
    engine = engine_for_table(table, None)
    if is_inside_vmap():
        size = tuple(input.shape) if shape is None else shape
        return call.create_tensor(kernel, size, input.dtype, p, engine, device=table.device)
    if stack.items:  # interceptors must see the random op
        noise = CALLBACKS.F.empty_like(input) if shape is None else input.new_empty(shape)
        noise.bernoulli_(1.0 - p if kernel == "_random_keep_mask" else p)
        return noise / (1.0 - p) if kernel == "_random_keep_mask" else noise
    if shape is not None or input.is_contiguous():
        data = run_quietly(
            getattr(table, kernel), input._tl_array.shape if shape is None else shape, input.dtype, p, engine
        )
    else:
        order = dims_by_stride(input)
        data = getattr(table, kernel)(tuple(input._tl_array.shape[d] for d in order), input.dtype, p, engine)
        data = table.permute(data, tuple(order.index(d) for d in range(len(order))))
    return call.wrap_array(table, data, input.dtype)


def _channel_mask_shape(input) -> tuple[int, ...]:
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return (*input.shape[:2], *[1] * (input.ndim - 2))


def _apply_dropout(F, input, p, training, *, channels=False, alpha=False):
    """Dropout in its four kinds: of entries or of channels, setting them to zero or (alpha) to the value that keeps
    mean and variance.
    """
    _check_probability(p)
    if p == 0 or not training or 0 in input._tl_array.shape:
        return input
    if p == 1:
        return F.mul(input, F._zeros_like(input))
    if input.dtype.category != 2:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {input.dtype.scalar_name}")
    shape = _channel_mask_shape(input) if channels else None
    if not alpha and not channels and input.is_contiguous():
        return F._dropout(input, p, engine_for_table(input._tl_kernels, None))
    if not alpha:
        return F.mul(input, _draw_noise(input, "_random_keep_mask", p, shape))
    noise = _draw_noise(input, "_random_bernoulli", 1.0 - p, shape)
    scale = 1.0 / math.sqrt((_ALPHA * _ALPHA * p + 1.0) * (1.0 - p))
    shift = F.add_alpha(F.mul(F.add_alpha(noise, -1.0), _ALPHA * scale), _ALPHA * scale * p)
    return F.add_alpha(F.mul(input, F.mul(noise, scale)), shift)


def _write_result_in_place(record, input, result, inplace):
    if not inplace or result is input:
        return result
    if call.MODE.grad:
        autograd_graph.check_in_place_autograd(input)
    if call.GLOBALS["INTERCEPTORS"]:  # what looks on sees the write
        return in_place_calls.run_in_place(REGISTRY["_copy"], (input, result), {})
    return in_place_calls.write_result_in_place(record, input, result, input)


_WORDS = {
    "dropout": "Drops elements with a probability",
    "alpha_dropout": "Drops elements so that mean and variance stay",
    "feature_dropout": "Drops whole channels with a probability",
    "feature_alpha_dropout": "Drops whole channels so that mean and variance stay",
}
_TORCH_DOC = """{words}.

Args:
    p: The probability to drop an element, from 0 to 1.
    train: Whether dropout applies.

Example:
    >>> torch.{name}{suffix}(torch.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])

See also:
    `torch.nn.functional`, which has functions with defaults."""


def _define_torch_functions(name: str, options: dict) -> None:
    """Define torch.<name>(input, p, train) and torch.<name>_, which nn.functional's functions use."""

    @composite(
        f"torch_{name}(Tensor input, p, train)",
        where="",
        alias=f"torch.{name}",
        doc=_TORCH_DOC.format(name=name, words=_WORDS[name], suffix=""),
    )
    def out_of_place(F, input, p, train):
        return _apply_dropout(F, input, p, train, **options)

    @composite(
        f"torch_{name}_(Tensor input, p, train)",
        where="",
        alias=f"torch.{name}_",
        doc=_TORCH_DOC.format(name=name, words=f"{_WORDS[name]}, in place", suffix="_"),
    )
    def in_place(F, input, p, train):
        return _write_result_in_place(
            REGISTRY[f"torch_{name}_"], input, _apply_dropout(F, input, p, train, **options), True
        )


for _name, _options in (
    ("dropout", {}),
    ("alpha_dropout", {"alpha": True}),
    ("feature_dropout", {"channels": True}),
    ("feature_alpha_dropout", {"channels": True, "alpha": True}),
):
    _define_torch_functions(_name, _options)


@composite("dropout(Tensor input, p=0.5, training=True, inplace=False)", where="nn.functional")
def dropout(F, input, p, training, inplace):
    """Sets elements to zero with a probability, and divides the others by :math:`1 - p` (Hinton et al., 2012).

    On the CPU the same elements are dropped as in PyTorch with the same seed.

    Args:
        p: The probability to drop an element, from 0 to 1. Default: ``0.5``.
        training: Whether dropout applies; otherwise the result is the input. Default: ``True``.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> F.dropout(torch.ones(3), p=0.5, training=False)
        tensor([1., 1., 1.])

    See also:
        `torch.nn.Dropout`.
    """
    _check_probability(p, ValueError)
    return _write_result_in_place(REGISTRY["dropout"], input, _apply_dropout(F, input, p, training), inplace)


@composite("alpha_dropout(Tensor input, p=0.5, training=False, inplace=False)", where="nn.functional")
def alpha_dropout(F, input, p, training, inplace):
    """Drops elements so that mean and variance stay (Klambauer et al., 2017).

    A dropped element gets the limit of `selu` at minus infinity; then an affine map restores mean and variance.

    Args:
        p: The probability to drop an element, from 0 to 1. Default: ``0.5``.
        training: Whether dropout applies; otherwise the result is the input. Default: ``False``.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> F.alpha_dropout(torch.ones(3))
        tensor([1., 1., 1.])

    See also:
        `torch.nn.AlphaDropout`.
    """
    _check_probability(p, ValueError)
    return _write_result_in_place(
        REGISTRY["alpha_dropout"], input, _apply_dropout(F, input, p, training, alpha=True), inplace
    )


@composite(
    "feature_alpha_dropout(Tensor input, p=0.5, training=False, inplace=False)",
    where="nn.functional",
    layout=memory_layout.like_first,
)
def feature_alpha_dropout(F, input, p, training, inplace):
    """Drops whole channels (dimension 1) so that mean and variance stay.

    Args:
        p: The probability to drop an element, from 0 to 1. Default: ``0.5``.
        training: Whether dropout applies; otherwise the result is the input. Default: ``False``.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> F.feature_alpha_dropout(torch.ones(1, 2))
        tensor([[1., 1.]])

    See also:
        `torch.nn.FeatureAlphaDropout`.
    """
    _check_probability(p, ValueError)
    return _write_result_in_place(
        REGISTRY["feature_alpha_dropout"],
        input,
        _apply_dropout(F, input, p, training, channels=True, alpha=True),
        inplace,
    )


_TOO_FEW_DIMS_ERROR = (
    "dropout1d: Expected 2D or 3D input, but received a {}D input. Note that dropout1d exists to provide "
    "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension "
    "(i.e. 2D or 3D inputs)."
)
_DEPRECATED = (
    "{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a future "
    "release. To retain the behavior and silence this warning, please use dropout instead. Note that {name} "
    "exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel dimension, and an "
    "optional batch dimension (i.e. {low}D or {high}D inputs)."
)


_ONE_DIMENSION = (
    "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input "
    "is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to "
    "interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
    "dropout behavior, please switch to using dropout1d instead."
)


_CHANNELS_DOC = r"""Sets whole channels to zero with a probability, and divides the others by :math:`1 - p`.

Args:
    input: The input with {n} spatial dimension(s), of shape ``(N, C{shape})`` or ``(C{shape})``.
    p: The probability to drop a channel, from 0 to 1. Default: ``0.5``.
    training: Whether dropout applies; otherwise the result is the input. Default: ``True``.

Raises:
    ValueError: `p` is not between 0 and 1.

Example:
    >>> F.dropout{n}d(torch.ones(1, 2{ones}), training=False).shape
    torch.Size([1, 2{ones}])

See also:
    `torch.nn.Dropout{n}d`."""


def _make_channel_dropout(name: str, spatial: int, accepted: tuple[int, ...]) -> None:
    @composite(
        f"{name}(Tensor input, p=0.5, training=True, inplace=False)",
        where="nn.functional",
        doc=_CHANNELS_DOC.format(n=spatial, shape=", *" if spatial > 1 else ", L", ones=", 1" * spatial),
        layout=memory_layout.like_first if spatial > 1 else None,
    )
    def drop(F, input, p, training, inplace):
        _check_probability(p, ValueError)
        if input.ndim not in accepted:
            if spatial == 1:
                raise RuntimeError(_TOO_FEW_DIMS_ERROR.format(input.ndim))
            warnings.warn(
                _DEPRECATED.format(name=name, ndim=input.ndim, spatial=spatial, low=spatial + 1, high=spatial + 2),
                stacklevel=4,
            )
        if spatial == 2 and input.ndim == 3:
            warnings.warn(_ONE_DIMENSION, stacklevel=4)
        unbatched = input.ndim != spatial + 2 and spatial != 2
        result = _apply_dropout(F, F.unsqueeze(input, 0) if unbatched else input, p, training, channels=True)
        return _write_result_in_place(REGISTRY[name], input, F.squeeze(result, 0) if unbatched else result, inplace)


_make_channel_dropout("dropout1d", 1, (2, 3))
_make_channel_dropout("dropout2d", 2, (3, 4))
_make_channel_dropout("dropout3d", 3, (4, 5))


@composite("native_dropout(Tensor input, p, train)", where="torch", node_name="NativeDropoutBackward0(input)")
def native_dropout(F, input, p, train):
    """Drops elements, and returns the mask of those that stay.

    Args:
        p: The probability to drop an element, from 0 to 1.
        train: Whether dropout applies.

    Returns:
        The result and the mask (bool).

    Example:
        >>> torch.native_dropout(torch.ones(2), 0.5, False)
        (tensor([1., 1.]), tensor([True, True]))

    See also:
        `torch.nn.functional.dropout`.
    """
    if not train:
        return input.clone(), call.create_tensor("_full", tuple(input.shape), True, bool_, device=input.device)
    mask = _draw_noise(input, "_random_bernoulli", 1.0 - p).to(bool_)
    return F.native_dropout_backward(input, mask, 0.0 if p == 1 else 1.0 / (1.0 - p)), mask


def _apply_dropout_mask(F, grad_output, mask, scale):
    return F.mul(F.mul(grad_output, F.to(mask, F.dtype_of(grad_output))), float(scale))


op(
    "native_dropout_backward(Tensor grad_output, Tensor mask, scale)",
    where="torch",
    composite=_apply_dropout_mask,
    shape_fn=lambda grad_output, mask: (grad_output.shape, grad_output.dtype),
    vjp={"grad_output": lambda F, g, mask, scale: F.native_dropout_backward(g, mask, scale)},
    doc="""Computes the gradient of `native_dropout`: ``grad_output * mask * scale``.

    Args:
        grad_output: The gradient of the result.
        mask: The mask of the elements that stayed.
        scale: The factor, ``1 / (1 - p)``.

    Example:
        >>> torch.native_dropout_backward(torch.ones(2), torch.tensor([True, False]), 2.0)
        tensor([2., 0.])
    """,
    node_name="NativeDropoutBackwardBackward0(grad_output, -)",
)
