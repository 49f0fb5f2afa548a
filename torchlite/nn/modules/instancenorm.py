"""Instance normalisation."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from torchlite.nn import functional as F

from ._module_state_dict import allow_dry_run
from .batchnorm import _LazyNormBase, _NormBase

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: DeviceLike = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self):  # dimensions of one sample, the channels included
        raise NotImplementedError

    def _check_input_dim(self, input):
        one = self._get_no_batch_dim()
        if input.dim() not in (one, one + 1):
            raise ValueError(f"expected {one}D or {one + 1}D input (got {input.dim()}D input)")

    def _apply_instance_norm(self, input):
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    @allow_dry_run
    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            stats = [name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if stats:
                name = type(self).__name__
                error_msgs.append(
                    "Unexpected running stats buffer(s) {} for {} with track_running_stats=False. If state_dict is a "
                    "checkpoint saved before 0.4.0, this may be expected because {} does not track running stats by "
                    "default since 0.4.0. Please remove these keys from state_dict. If the running stats are "
                    "actually needed, instead set track_running_stats=True in {} to enable them. See the "
                    "documentation of {} for details.".format(
                        " and ".join(f'"{stat}"' for stat in stats), name, name, name, name
                    )
                )
                for stat in stats:
                    state_dict.pop(prefix + stat)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        channel_dim = input.dim() - self._get_no_batch_dim()
        if input.size(channel_dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channel_dim} to match num_features ({self.num_features}), "
                    f"but got: {input.size(channel_dim)}."
                )
            warnings.warn(
                f"input's size at dim={channel_dim} does not match num_features. You can silence this warning by not "
                "passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if channel_dim == 0:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)


class InstanceNorm1d(_InstanceNorm):
    r"""Normalizes each channel of each sample with its mean and variance over the positions.

    .. math::

        y = \frac{x - \operatorname{E}[x]}{\sqrt{\operatorname{Var}[x] + \epsilon}} \, \gamma + \beta

    The biased variance normalizes. The statistics of the input are used in training and in evaluation mode. With
    ``track_running_stats`` the module keeps their running means, and normalizes with these in evaluation mode.

    Args:
        num_features: Number of channels :math:`C`.
        eps: Added to the variance before the square root. Default: 1e-5.
        momentum: Weight of the new batch in the running statistics. Default: 0.1.
        affine: Whether the module has learnable ``weight`` and ``bias``. Default: ``False``.
        track_running_stats: Whether to keep running statistics and to normalize with them in evaluation mode. Without
            them, the statistics of the input normalize in both modes. Default: ``False``.
        device: Device of parameters and buffers. Default: the default device.
        dtype: Dtype of parameters and buffers. Default: the default dtype.
        bias: Whether an affine module has a ``bias``. Keyword only. Default: ``True``.

    Shape:
        - Input: ``(N, C, L)``, or ``(C, L)`` without a batch.
        - Output: the shape of the input.

    Attributes:
        weight (Parameter): :math:`\gamma`, shape ``(C,)``, initialized to 1. ``None`` if not ``affine``.
        bias (Parameter): :math:`\beta`, shape ``(C,)``, initialized to 0. ``None`` if not ``affine`` or
            ``bias=False``.
        running_mean (Tensor): Buffer of shape ``(C,)``, initially 0. ``None`` if statistics are not tracked.
        running_var (Tensor): Buffer of shape ``(C,)``, initially 1. ``None`` if statistics are not tracked.

    Raises:
        ValueError: The input has not 2 or 3 dimensions, an affine module gets another number of channels than
            ``num_features``, or a channel of a sample has one value while its statistics are used.

    Example:
        >>> layer = torch.nn.InstanceNorm1d(100)
        >>> layer(torch.zeros(20, 100, 40)).shape
        torch.Size([20, 100, 40])

    References:
        - D. Ulyanov, A. Vedaldi, V. Lempitsky. Instance normalization: the missing ingredient for fast stylization.
          2016.

    See also:
        `torch.nn.functional.instance_norm`, `LazyInstanceNorm1d`, `BatchNorm1d`, `GroupNorm`, `LayerNorm`.
    """

    def _get_no_batch_dim(self):
        return 2


class InstanceNorm2d(_InstanceNorm):
    r"""Normalizes each channel of each sample with its mean and variance over the positions.

    .. math::

        y = \frac{x - \operatorname{E}[x]}{\sqrt{\operatorname{Var}[x] + \epsilon}} \, \gamma + \beta

    The biased variance normalizes. The statistics of the input are used in training and in evaluation mode. With
    ``track_running_stats`` the module keeps their running means, and normalizes with these in evaluation mode.

    Args:
        num_features: Number of channels :math:`C`.
        eps: Added to the variance before the square root. Default: 1e-5.
        momentum: Weight of the new batch in the running statistics. Default: 0.1.
        affine: Whether the module has learnable ``weight`` and ``bias``. Default: ``False``.
        track_running_stats: Whether to keep running statistics and to normalize with them in evaluation mode. Without
            them, the statistics of the input normalize in both modes. Default: ``False``.
        device: Device of parameters and buffers. Default: the default device.
        dtype: Dtype of parameters and buffers. Default: the default dtype.
        bias: Whether an affine module has a ``bias``. Keyword only. Default: ``True``.

    Shape:
        - Input: ``(N, C, H, W)``, or ``(C, H, W)`` without a batch.
        - Output: the shape of the input.

    Attributes:
        weight (Parameter): :math:`\gamma`, shape ``(C,)``, initialized to 1. ``None`` if not ``affine``.
        bias (Parameter): :math:`\beta`, shape ``(C,)``, initialized to 0. ``None`` if not ``affine`` or
            ``bias=False``.
        running_mean (Tensor): Buffer of shape ``(C,)``, initially 0. ``None`` if statistics are not tracked.
        running_var (Tensor): Buffer of shape ``(C,)``, initially 1. ``None`` if statistics are not tracked.

    Raises:
        ValueError: The input has not 3 or 4 dimensions, an affine module gets another number of channels than
            ``num_features``, or a channel of a sample has one value while its statistics are used.

    Example:
        >>> layer = torch.nn.InstanceNorm2d(100)
        >>> layer(torch.zeros(20, 100, 35, 45)).shape
        torch.Size([20, 100, 35, 45])

    References:
        - D. Ulyanov, A. Vedaldi, V. Lempitsky. Instance normalization: the missing ingredient for fast stylization.
          2016.

    See also:
        `torch.nn.functional.instance_norm`, `LazyInstanceNorm2d`, `BatchNorm2d`, `GroupNorm`, `LayerNorm`.
    """

    def _get_no_batch_dim(self):
        return 3


class InstanceNorm3d(_InstanceNorm):
    r"""Normalizes each channel of each sample with its mean and variance over the positions.

    .. math::

        y = \frac{x - \operatorname{E}[x]}{\sqrt{\operatorname{Var}[x] + \epsilon}} \, \gamma + \beta

    The biased variance normalizes. The statistics of the input are used in training and in evaluation mode. With
    ``track_running_stats`` the module keeps their running means, and normalizes with these in evaluation mode.

    Args:
        num_features: Number of channels :math:`C`.
        eps: Added to the variance before the square root. Default: 1e-5.
        momentum: Weight of the new batch in the running statistics. Default: 0.1.
        affine: Whether the module has learnable ``weight`` and ``bias``. Default: ``False``.
        track_running_stats: Whether to keep running statistics and to normalize with them in evaluation mode. Without
            them, the statistics of the input normalize in both modes. Default: ``False``.
        device: Device of parameters and buffers. Default: the default device.
        dtype: Dtype of parameters and buffers. Default: the default dtype.
        bias: Whether an affine module has a ``bias``. Keyword only. Default: ``True``.

    Shape:
        - Input: ``(N, C, D, H, W)``, or ``(C, D, H, W)`` without a batch.
        - Output: the shape of the input.

    Attributes:
        weight (Parameter): :math:`\gamma`, shape ``(C,)``, initialized to 1. ``None`` if not ``affine``.
        bias (Parameter): :math:`\beta`, shape ``(C,)``, initialized to 0. ``None`` if not ``affine`` or
            ``bias=False``.
        running_mean (Tensor): Buffer of shape ``(C,)``, initially 0. ``None`` if statistics are not tracked.
        running_var (Tensor): Buffer of shape ``(C,)``, initially 1. ``None`` if statistics are not tracked.

    Raises:
        ValueError: The input has not 4 or 5 dimensions, an affine module gets another number of channels than
            ``num_features``, or a channel of a sample has one value while its statistics are used.

    Example:
        >>> layer = torch.nn.InstanceNorm3d(10)
        >>> layer(torch.zeros(2, 10, 3, 4, 5)).shape
        torch.Size([2, 10, 3, 4, 5])

    References:
        - D. Ulyanov, A. Vedaldi, V. Lempitsky. Instance normalization: the missing ingredient for fast stylization.
          2016.

    See also:
        `torch.nn.functional.instance_norm`, `LazyInstanceNorm3d`, `BatchNorm3d`, `GroupNorm`, `LayerNorm`.
    """

    def _get_no_batch_dim(self):
        return 4


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm1d` that takes ``num_features`` from its first input.

    The first call sets ``num_features`` from dimension 1 of the input, creates the parameters and changes the class of
    the module to `InstanceNorm1d`. Unlike `InstanceNorm1d`, the module is affine and tracks statistics by default.

    Args:
        eps: Added to the variance before the square root. Default: 1e-5.
        momentum: Weight of the new batch in the running statistics. ``None`` averages all batches with equal weights.
            Default: 0.1.
        affine: Whether the module has learnable ``weight`` and ``bias``. Default: ``True``.
        track_running_stats: Whether to keep running statistics and to normalize with them in evaluation mode. Without
            them, the statistics of the input normalize in both modes. Default: ``True``.
        device: Device of parameters and buffers. Default: the default device.
        dtype: Dtype of parameters and buffers. Default: the default dtype.
        bias: Whether an affine module has a ``bias``. Keyword only. Default: ``True``.

    Shape:
        - Input: ``(N, C, L)``; the first input sets ``num_features``.
        - Output: the shape of the input.

    Attributes:
        weight (UninitializedParameter): After the first call as in `InstanceNorm1d`.
        bias (UninitializedParameter): After the first call as in `InstanceNorm1d`.

    Example:
        >>> layer = torch.nn.LazyInstanceNorm1d()
        >>> output = layer(torch.ones(4, 10, 5))
        >>> layer
        InstanceNorm1d(10, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)

    References:
        - D. Ulyanov, A. Vedaldi, V. Lempitsky. Instance normalization: the missing ingredient for fast stylization.
          2016.

    See also:
        `InstanceNorm1d`.
    """

    cls_to_become = InstanceNorm1d
    _get_no_batch_dim = InstanceNorm1d._get_no_batch_dim


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm2d` that takes ``num_features`` from its first input.

    The first call sets ``num_features`` from dimension 1 of the input, creates the parameters and changes the class of
    the module to `InstanceNorm2d`. Unlike `InstanceNorm2d`, the module is affine and tracks statistics by default.

    Args:
        eps: Added to the variance before the square root. Default: 1e-5.
        momentum: Weight of the new batch in the running statistics. ``None`` averages all batches with equal weights.
            Default: 0.1.
        affine: Whether the module has learnable ``weight`` and ``bias``. Default: ``True``.
        track_running_stats: Whether to keep running statistics and to normalize with them in evaluation mode. Without
            them, the statistics of the input normalize in both modes. Default: ``True``.
        device: Device of parameters and buffers. Default: the default device.
        dtype: Dtype of parameters and buffers. Default: the default dtype.
        bias: Whether an affine module has a ``bias``. Keyword only. Default: ``True``.

    Shape:
        - Input: ``(N, C, H, W)``; the first input sets ``num_features``.
        - Output: the shape of the input.

    Attributes:
        weight (UninitializedParameter): After the first call as in `InstanceNorm2d`.
        bias (UninitializedParameter): After the first call as in `InstanceNorm2d`.

    Example:
        >>> layer = torch.nn.LazyInstanceNorm2d()
        >>> output = layer(torch.ones(4, 10, 5, 5))
        >>> layer
        InstanceNorm2d(10, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)

    References:
        - D. Ulyanov, A. Vedaldi, V. Lempitsky. Instance normalization: the missing ingredient for fast stylization.
          2016.

    See also:
        `InstanceNorm2d`.
    """

    cls_to_become = InstanceNorm2d
    _get_no_batch_dim = InstanceNorm2d._get_no_batch_dim


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm3d` that takes ``num_features`` from its first input.

    The first call sets ``num_features`` from dimension 1 of the input, creates the parameters and changes the class of
    the module to `InstanceNorm3d`. Unlike `InstanceNorm3d`, the module is affine and tracks statistics by default.

    Args:
        eps: Added to the variance before the square root. Default: 1e-5.
        momentum: Weight of the new batch in the running statistics. ``None`` averages all batches with equal weights.
            Default: 0.1.
        affine: Whether the module has learnable ``weight`` and ``bias``. Default: ``True``.
        track_running_stats: Whether to keep running statistics and to normalize with them in evaluation mode. Without
            them, the statistics of the input normalize in both modes. Default: ``True``.
        device: Device of parameters and buffers. Default: the default device.
        dtype: Dtype of parameters and buffers. Default: the default dtype.
        bias: Whether an affine module has a ``bias``. Keyword only. Default: ``True``.

    Shape:
        - Input: ``(N, C, D, H, W)``; the first input sets ``num_features``.
        - Output: the shape of the input.

    Attributes:
        weight (UninitializedParameter): After the first call as in `InstanceNorm3d`.
        bias (UninitializedParameter): After the first call as in `InstanceNorm3d`.

    Example:
        >>> layer = torch.nn.LazyInstanceNorm3d()
        >>> output = layer(torch.ones(4, 10, 5, 5, 5))
        >>> layer
        InstanceNorm3d(10, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)

    References:
        - D. Ulyanov, A. Vedaldi, V. Lempitsky. Instance normalization: the missing ingredient for fast stylization.
          2016.

    See also:
        `InstanceNorm3d`.
    """

    cls_to_become = InstanceNorm3d
    _get_no_batch_dim = InstanceNorm3d._get_no_batch_dim
