"""`torch.nn.functional`: the ops that layers use.

Most names are ops, generated from their records in `torchlite/_ops` on first access. This module defines the functions
that rearrange arguments: `inplace=`, an implicit dimension, argument orders that differ from the op's.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._dispatch import NAMESPACES, REGISTRY, F, namespace_function
from torchlite._dispatch.dispatch_state import OVERRIDES
from torchlite._dispatch.interceptors import call_override as _call_override
from torchlite._dispatch.op_functions import in_place_method
from torchlite._dispatch.tracing import TRACES as _TRACES
from torchlite._dispatch.tracing import trace_function as _handled
from torchlite._ops.embedding import check_indices
from torchlite._types.unsupported import unsupported_function

from ._functional_activation import celu as celu
from ._functional_activation import celu_ as celu_
from ._functional_activation import elu as elu
from ._functional_activation import elu_ as elu_
from ._functional_activation import hardsigmoid as hardsigmoid
from ._functional_activation import hardswish as hardswish
from ._functional_activation import hardtanh as hardtanh
from ._functional_activation import leaky_relu as leaky_relu
from ._functional_activation import leaky_relu_ as leaky_relu_
from ._functional_activation import log_softmax as log_softmax
from ._functional_activation import mish as mish
from ._functional_activation import relu as relu
from ._functional_activation import relu6 as relu6
from ._functional_activation import rrelu as rrelu
from ._functional_activation import rrelu_ as rrelu_
from ._functional_activation import selu as selu
from ._functional_activation import silu as silu
from ._functional_activation import softmax as softmax
from ._functional_activation import softmin as softmin
from ._functional_activation import threshold as threshold
from ._functional_attention import _in_projection as _in_projection
from ._functional_attention import _in_projection_packed as _in_projection_packed
from ._functional_attention import multi_head_attention_forward as multi_head_attention_forward

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DType


# Names of this namespace whose ops are declared for `torch` only.
_TORCH_FUNCTIONS = {
    "alpha_dropout", "avg_pool1d", "adaptive_avg_pool1d", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_tbc",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "feature_alpha_dropout", "max_pool1d_with_indices",
    "native_channel_shuffle", "pdist", "pixel_shuffle", "pixel_unshuffle", "sigmoid", "tanh",
}  # fmt: skip
_IN_PLACE = {"hardtanh_", "relu_", "selu_", "threshold_"}


if TYPE_CHECKING:
    from torchlite._stubs.functional import *
    from torchlite._stubs.functional_pooling import *
else:

    def __getattr__(name):
        if name in NAMESPACES["nn.functional"]:
            found = namespace_function("nn.functional", name)
        elif name in _TORCH_FUNCTIONS:
            found = getattr(torch, name)
        elif name == "grad":
            found = torch.nn.grad
        elif name == "scaled_grouped_mm":
            return unsupported_function(f"torch.nn.functional.{name}")  # not one of the names in dir()
        elif name in ("scaled_mm", "ScalingType", "SwizzleType"):
            from . import _scaled_mm

            found = getattr(_scaled_mm, name)
        elif name == "grouped_mm":
            from ._grouped_mm import grouped_mm as found
        elif name in (
            "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
        ):  # fmt: skip
            found = getattr(torch.overrides, name)
        elif name in _IN_PLACE:
            found = in_place_method(REGISTRY[name[:-1]])
        else:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        globals()[name] = found
        return found


# What this module imports for itself.
_INTERNAL = {
    "Any", "F", "NAMESPACES", "REGISTRY", "annotations", "check_indices", "in_place_method",
    "OVERRIDES", "namespace_function", "unsupported_function",
}  # fmt: skip


def __dir__() -> list[str]:
    public = {name for name in globals() if not name.startswith("_") or name.startswith("__")} - _INTERNAL
    private = {"_in_projection", "_in_projection_packed", "_verify_batch_size"}  # PyTorch has them too
    return sorted({*public, *private, *NAMESPACES["nn.functional"], *_TORCH_FUNCTIONS, *_IN_PLACE})


# --- normalisation --------------------------------------------------------------------------------


def batch_norm(
    input: Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    r"""Normalizes each channel over the batch and all positions (Ioffe and Szegedy, 2015).

    .. math::

        y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}} \cdot \text{weight} + \text{bias}

    In training the statistics are the batch's, and the running statistics are updated in place; otherwise they are the
    running ones.

    Args:
        input: The input, of shape ``(N, C)`` or ``(N, C, *)``.
        running_mean: The running means, of shape ``(C,)``, or ``None``.
        running_var: The running variances, of shape ``(C,)``, or ``None``.
        weight: The factors, of shape ``(C,)``. Default: 1.
        bias: The offsets, of shape ``(C,)``. Default: 0.
        training: Whether to use and record the batch's statistics. Default: ``False``.
        momentum: The weight of the batch in the running statistics. Default: ``0.1``.
        eps: The term :math:`\epsilon` in the denominator. Default: ``1e-5``.

    Returns:
        A tensor of the input's shape.

    Raises:
        ValueError: A channel has one value in training, or ``eps`` is not positive.

    Example:
        >>> F.batch_norm(torch.tensor([[0.0], [2.0]]), None, None, training=True)
        tensor([[-1.0000],
                [ 1.0000]])

    See also:
        `torch.nn.BatchNorm1d`, `torch.nn.BatchNorm2d`, `torch.nn.BatchNorm3d`.
    """
    if (
        OVERRIDES
        and (
            found := _call_override(
                batch_norm,
                (input, running_mean, running_var),
                {"weight": weight, "bias": bias, "training": training, "momentum": momentum, "eps": eps},
            )
        )
        is not NotImplemented
    ):
        return found
    if (
        _TRACES
        and (
            found := _handled(
                "batch_norm",
                input,
                running_mean,
                running_var,
                weight=weight,
                bias=bias,
                training=training,
                momentum=momentum,
                eps=eps,
            )
        )
        is not NotImplemented
    ):
        return found
    if training:
        _verify_batch_size(input.shape)
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return F.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _verify_batch_size(shape):
    if len(shape) > 1 and math.prod(shape) == shape[1] and shape[1]:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size torch.Size({list(shape)})"
        )


def instance_norm(
    input: Tensor,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    r"""Normalizes each channel of each sample over its positions (Ulyanov et al., 2016).

    .. math::

        y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}} \cdot \text{weight} + \text{bias}

    Args:
        input: The input, of shape ``(N, C, *)``.
        running_mean: The running means, of shape ``(C,)``, or ``None``.
        running_var: The running variances, of shape ``(C,)``, or ``None``.
        weight: The factors, of shape ``(C,)``. Default: 1.
        bias: The offsets, of shape ``(C,)``. Default: 0.
        use_input_stats: Whether the statistics are the input's; otherwise the running ones. Default: ``True``.
        momentum: The weight of the input in the running statistics. Default: ``0.1``.
        eps: The term :math:`\epsilon` in the denominator. Default: ``1e-5``.

    Returns:
        A tensor of the input's shape.

    Raises:
        ValueError: A channel has one position, and the statistics are the input's.

    Example:
        >>> F.instance_norm(torch.tensor([[[0.0, 2.0]]]))
        tensor([[[-1.0000,  1.0000]]])

    See also:
        `torch.nn.InstanceNorm1d`, `torch.nn.InstanceNorm2d`, `torch.nn.InstanceNorm3d`.
    """
    if (
        OVERRIDES
        and (
            found := _call_override(
                instance_norm,
                (input,),
                {
                    "running_mean": running_mean,
                    "running_var": running_var,
                    "weight": weight,
                    "bias": bias,
                    "use_input_stats": use_input_stats,
                    "momentum": momentum,
                    "eps": eps,
                },
            )
        )
        is not NotImplemented
    ):
        return found
    if (
        _TRACES
        and (
            found := _handled(
                "instance_norm",
                input,
                running_mean=running_mean,
                running_var=running_var,
                weight=weight,
                bias=bias,
                use_input_stats=use_input_stats,
                momentum=momentum,
                eps=eps,
            )
        )
        is not NotImplemented
    ):
        return found
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size torch.Size({list(input.shape)})"
        )
    return F.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05
) -> Tensor:
    r"""Normalizes each group of channels of each sample (Wu and He, 2018).

    .. math::

        y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}} \cdot \text{weight} + \text{bias}

    Args:
        input: The input, of shape ``(N, C, *)``.
        num_groups: The number of groups; it divides ``C``.
        weight: The factors, of shape ``(C,)``. Default: 1.
        bias: The offsets, of shape ``(C,)``. Default: 0.
        eps: The term :math:`\epsilon` in the denominator. Default: ``1e-5``.

    Returns:
        A tensor of the input's shape.

    Raises:
        ValueError: A group has one value.
        RuntimeError: ``num_groups`` does not divide ``C``.

    Example:
        >>> F.group_norm(torch.tensor([[0.0, 2.0, 5.0, 7.0]]), 2)
        tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])

    See also:
        `torch.nn.GroupNorm`.
    """
    if (
        OVERRIDES
        and (found := _call_override(group_norm, (input, num_groups), {"weight": weight, "bias": bias, "eps": eps}))
        is not NotImplemented
    ):
        return found
    if (
        _TRACES
        and (found := _handled("group_norm", input, num_groups, weight=weight, bias=bias, eps=eps))
        is not NotImplemented
    ):
        return found
    if input.ndim >= 2 and num_groups and input.numel() == num_groups:
        shape = [input.shape[0] * input.shape[1] // num_groups, num_groups, *input.shape[2:]]
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {shape}")
    return F.group_norm(input, num_groups, weight, bias, eps)


# --- embedding ------------------------------------------------------------------------------------


def _normalize_padding_idx(padding_idx, rows):
    if padding_idx is None:
        return -1
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + rows if padding_idx < 0 else padding_idx


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Looks up rows of a matrix by their indices.

    Args:
        input: The indices, int32 or int64, of any shape.
        weight: The matrix, of shape ``(rows, features)``.
        padding_idx: A row that receives no gradient. Negative values count from the last.
        max_norm: The norm to which longer rows among those looked up are scaled, in place.
        norm_type: The exponent of that norm. Default: ``2``.
        scale_grad_by_freq: Whether a row's gradient is divided by the number of its occurrences in `input`.
        sparse: Whether the gradient of `weight` is a sparse tensor of the rows that were looked up.

    Returns:
        A tensor of shape ``(*input.shape, features)``.

    Raises:
        IndexError: An index is out of range.
        RuntimeError: The matrix does not have two dimensions.

    Example:
        >>> F.embedding(torch.tensor([1, 0]), torch.tensor([[1.0], [2.0]]))
        tensor([[2.],
                [1.]])

    See also:
        `torch.nn.Embedding`.
    """
    if (OVERRIDES or not isinstance(weight, torch.Tensor)) and (
        found := _call_override(
            embedding,
            (input, weight),
            {
                "padding_idx": padding_idx,
                "max_norm": max_norm,
                "norm_type": norm_type,
                "scale_grad_by_freq": scale_grad_by_freq,
                "sparse": sparse,
            },
        )
    ) is not NotImplemented:
        return found
    if (
        _TRACES
        and (
            found := _handled(
                "embedding",
                input,
                weight,
                padding_idx=padding_idx,
                max_norm=max_norm,
                norm_type=norm_type,
                scale_grad_by_freq=scale_grad_by_freq,
                sparse=sparse,
            )
        )
        is not NotImplemented
    ):
        return found
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    check_indices(input, "embedding")
    if padding_idx is not None:
        if isinstance(padding_idx, float):
            raise TypeError("embedding(): argument 'padding_idx' (position 3) must be int, not float")
        padding_idx = _normalize_padding_idx(padding_idx, weight.shape[0])
    if max_norm is not None:
        with torch.no_grad():
            torch.embedding_renorm_(weight, input, max_norm, norm_type)
    padding_idx = -1 if padding_idx is None else padding_idx
    return F.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Computes sums, means or maxima of bags of rows of a matrix, without storing the rows.

    Args:
        input: The indices, int32 or int64. Each row of a 2-d tensor is a bag; a 1-d tensor has bags by `offsets`.
        weight: The matrix, of shape ``(rows, features)``.
        offsets: The positions where bags begin in a 1-d `input`.
        max_norm: The norm to which longer rows among those looked up are scaled, in place.
        norm_type: The exponent of that norm. Default: ``2``.
        scale_grad_by_freq: Whether a row's gradient is divided by the number of its occurrences. Not for ``"max"``.
        mode: ``"sum"``, ``"mean"`` or ``"max"``. Default: ``"mean"``.
        sparse: Whether the gradient of `weight` is a sparse tensor. Not for ``"max"``.
        per_sample_weights: Factors of the rows, of the shape of `input`; for ``"sum"`` alone.
        include_last_offset: Whether the last of `offsets` is the end of the last bag.
        padding_idx: A row that the bags leave out.

    Returns:
        A tensor of shape ``(bags, features)``.

    Raises:
        ValueError: The shapes do not fit, or the mode is unknown or does not support an option.

    Example:
        >>> weight = torch.tensor([[1.0], [2.0], [4.0]])
        >>> F.embedding_bag(torch.tensor([0, 1, 2]), weight, torch.tensor([0, 2]), mode="sum")
        tensor([[3.],
                [4.]])

    See also:
        `torch.nn.EmbeddingBag`.
    """
    if (OVERRIDES or not isinstance(weight, torch.Tensor)) and (
        found := _call_override(
            embedding_bag,
            (input, weight),
            {
                "offsets": offsets,
                "max_norm": max_norm,
                "norm_type": norm_type,
                "scale_grad_by_freq": scale_grad_by_freq,
                "mode": mode,
                "sparse": sparse,
                "per_sample_weights": per_sample_weights,
                "include_last_offset": include_last_offset,
                "padding_idx": padding_idx,
            },
        )
    ) is not NotImplemented:
        return found
    if (
        _TRACES
        and (
            found := _handled(
                "embedding_bag",
                input,
                weight,
                offsets=offsets,
                max_norm=max_norm,
                norm_type=norm_type,
                scale_grad_by_freq=scale_grad_by_freq,
                mode=mode,
                sparse=sparse,
                per_sample_weights=per_sample_weights,
                include_last_offset=include_last_offset,
                padding_idx=padding_idx,
            )
        )
        is not NotImplemented
    ):
        return found
    if weight.dtype is torch.int64 and input.dtype.is_floating_point:
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    input, offsets, per_sample_weights = _normalize_bags(input, offsets, per_sample_weights)
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError(
            "max mode does not support "
            f"{'scaling the gradient by the frequency' if scale_grad_by_freq else 'sparse weights'}"
        )
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    if max_norm is not None:
        with torch.no_grad():
            torch.embedding_renorm_(weight, input, max_norm, norm_type)
    number = ("sum", "mean", "max").index(mode)
    return torch.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, number, sparse, per_sample_weights, include_last_offset, padding_idx
    )[0]


def _normalize_bags(input, offsets, per_sample_weights):
    """Return 1-d indices, offsets and weights, from 2-d rows or the 1-d arguments."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        rows, length = input.shape
        offsets = torch.arange(0, rows, dtype=input.dtype, device=input.device) * length
        return input.reshape(-1), offsets, None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if not isinstance(offsets, torch.Tensor):
        raise ValueError(f"offsets has to be a 1D Tensor but got {type(offsets) if offsets is not None else None}")
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, per_sample_weights


def _is_defined_here(value) -> bool:
    module = getattr(value, "__module__", None) or ""
    return module == __name__ or module.startswith(f"{__package__}._functional_")


for _function in filter(_is_defined_here, [*globals().values()]):
    _function.__module__ = __name__  # where pickle finds it
    # Tools that look for tensors among the parameters find the class, as in PyTorch.
    _types = getattr(_function, "__annotations__", {})
    _types.update({name: torch.Tensor for name, text in _types.items() if text == "Tensor"})
