"""Batch normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite.nn import functional as F
from torchlite.nn import init
from torchlite.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

from ._module_state_dict import allow_dry_run
from .lazy import LazyModuleMixin
from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """Base of batch and instance normalisation: running statistics and an affine transform of each channel."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        self.register_parameter("weight", Parameter(torch.empty(num_features, **factory_kwargs)) if affine else None)
        self.register_parameter(
            "bias", Parameter(torch.empty(num_features, **factory_kwargs)) if affine and bias else None
        )
        tracked = track_running_stats
        self.register_buffer("running_mean", torch.zeros(num_features, **factory_kwargs) if tracked else None)
        self.register_buffer("running_var", torch.ones(num_features, **factory_kwargs) if tracked else None)
        self.register_buffer(
            "num_batches_tracked", torch.tensor(0, dtype=torch.long, device=device) if tracked else None
        )
        self.reset_parameters()

    def reset_running_stats(self) -> Any:
        """Set the running mean to 0, the running variance to 1 and the count to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset the statistics, the weight to 1 and the bias to 0."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    @allow_dry_run
    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        # Before version 2 batches were not counted.
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            known = count is not None and count.device.type != "meta"
            state_dict[key] = count if known else torch.tensor(0, dtype=torch.long)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        training = self.training
        if training and self.track_running_stats:
            count = self.num_batches_tracked
            if count is not None:
                count.add_(1)
                if self.momentum is None:  # a cumulative mean of all batches
                    factor = 1.0 / float(count)
        mean, variance = self.running_mean, self.running_var
        use_batch = training or (mean is None and variance is None)
        update = not training or self.track_running_stats
        return F.batch_norm(
            input,
            mean if update else None,
            variance if update else None,
            self.weight,
            self.bias,
            use_batch,
            factor,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    r"""Normalizes each channel of a batch of vectors or sequences with its mean and variance over the batch.

    .. math::

        y = \frac{x - \operatorname{E}[x]}{\sqrt{\operatorname{Var}[x] + \epsilon}} \, \gamma + \beta

    In training mode, mean and variance of each channel are those of the batch and all positions. The biased variance
    normalizes. The running statistics become ``(1 - momentum) * running + momentum * batch``, with the unbiased
    variance of the batch. In evaluation mode the running statistics normalize.

    Args:
        num_features: Number of channels :math:`C`.
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
        - Input: ``(N, C)`` or ``(N, C, L)``.
        - Output: the shape of the input.

    Attributes:
        weight (Parameter): :math:`\gamma`, shape ``(C,)``, initialized to 1. ``None`` if not ``affine``.
        bias (Parameter): :math:`\beta`, shape ``(C,)``, initialized to 0. ``None`` if not ``affine`` or
            ``bias=False``.
        running_mean (Tensor): Buffer of shape ``(C,)``, initially 0. ``None`` if statistics are not tracked.
        running_var (Tensor): Buffer of shape ``(C,)``, initially 1. ``None`` if statistics are not tracked.
        num_batches_tracked (Tensor): Number of training batches, a 0-dimensional int64 buffer. ``None`` if statistics
            are not tracked.

    Raises:
        ValueError: The input has not 2 or 3 dimensions, or a channel has one value in training mode.

    Example:
        >>> layer = torch.nn.BatchNorm1d(2)
        >>> layer(torch.tensor([[1.0, 5.0], [3.0, 9.0]])).detach()
        tensor([[-1.0000, -1.0000],
                [ 1.0000,  1.0000]])
        >>> layer.running_mean
        tensor([0.2000, 0.7000])

    References:
        - S. Ioffe, C. Szegedy. Batch normalization: accelerating deep network training by reducing internal covariate
          shift. 2015.

    See also:
        `torch.nn.functional.batch_norm`, `LazyBatchNorm1d`, `SyncBatchNorm`, `InstanceNorm1d`, `GroupNorm`.
    """

    def _check_input_dim(self, input):
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    r"""Normalizes each channel of a batch of images with its mean and variance over the batch.

    .. math::

        y = \frac{x - \operatorname{E}[x]}{\sqrt{\operatorname{Var}[x] + \epsilon}} \, \gamma + \beta

    In training mode, mean and variance of each channel are those of the batch and all positions. The biased variance
    normalizes. The running statistics become ``(1 - momentum) * running + momentum * batch``, with the unbiased
    variance of the batch. In evaluation mode the running statistics normalize.

    Args:
        num_features: Number of channels :math:`C`.
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
        - Input: ``(N, C, H, W)``.
        - Output: the shape of the input.

    Attributes:
        weight (Parameter): :math:`\gamma`, shape ``(C,)``, initialized to 1. ``None`` if not ``affine``.
        bias (Parameter): :math:`\beta`, shape ``(C,)``, initialized to 0. ``None`` if not ``affine`` or
            ``bias=False``.
        running_mean (Tensor): Buffer of shape ``(C,)``, initially 0. ``None`` if statistics are not tracked.
        running_var (Tensor): Buffer of shape ``(C,)``, initially 1. ``None`` if statistics are not tracked.
        num_batches_tracked (Tensor): Number of training batches, a 0-dimensional int64 buffer. ``None`` if statistics
            are not tracked.

    Raises:
        ValueError: The input has not 4 dimensions, or a channel has one value in training mode.

    Example:
        >>> layer = torch.nn.BatchNorm2d(100)
        >>> layer(torch.zeros(20, 100, 35, 45)).shape
        torch.Size([20, 100, 35, 45])
        >>> layer.num_batches_tracked
        tensor(1)

    References:
        - S. Ioffe, C. Szegedy. Batch normalization: accelerating deep network training by reducing internal covariate
          shift. 2015.

    See also:
        `torch.nn.functional.batch_norm`, `LazyBatchNorm2d`, `SyncBatchNorm`, `InstanceNorm2d`, `GroupNorm`.
    """

    def _check_input_dim(self, input):
        if input.ndim != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    r"""Normalizes each channel of a batch of volumes with its mean and variance over the batch.

    .. math::

        y = \frac{x - \operatorname{E}[x]}{\sqrt{\operatorname{Var}[x] + \epsilon}} \, \gamma + \beta

    In training mode, mean and variance of each channel are those of the batch and all positions. The biased variance
    normalizes. The running statistics become ``(1 - momentum) * running + momentum * batch``, with the unbiased
    variance of the batch. In evaluation mode the running statistics normalize.

    Args:
        num_features: Number of channels :math:`C`.
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
        - Input: ``(N, C, D, H, W)``.
        - Output: the shape of the input.

    Attributes:
        weight (Parameter): :math:`\gamma`, shape ``(C,)``, initialized to 1. ``None`` if not ``affine``.
        bias (Parameter): :math:`\beta`, shape ``(C,)``, initialized to 0. ``None`` if not ``affine`` or
            ``bias=False``.
        running_mean (Tensor): Buffer of shape ``(C,)``, initially 0. ``None`` if statistics are not tracked.
        running_var (Tensor): Buffer of shape ``(C,)``, initially 1. ``None`` if statistics are not tracked.
        num_batches_tracked (Tensor): Number of training batches, a 0-dimensional int64 buffer. ``None`` if statistics
            are not tracked.

    Raises:
        ValueError: The input has not 5 dimensions, or a channel has one value in training mode.

    Example:
        >>> layer = torch.nn.BatchNorm3d(10)
        >>> layer(torch.zeros(2, 10, 3, 4, 5)).shape
        torch.Size([2, 10, 3, 4, 5])

    References:
        - S. Ioffe, C. Szegedy. Batch normalization: accelerating deep network training by reducing internal covariate
          shift. 2015.

    See also:
        `torch.nn.functional.batch_norm`, `LazyBatchNorm3d`, `SyncBatchNorm`, `InstanceNorm3d`, `GroupNorm`.
    """

    def _check_input_dim(self, input):
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class SyncBatchNorm(_BatchNorm):
    r"""Batch normalization with the statistics of the batches of all processes of a group.

    .. math::

        y = \frac{x - \operatorname{E}[x]}{\sqrt{\operatorname{Var}[x] + \epsilon}} \, \gamma + \beta

    In training mode, mean and variance of each channel are those of the batches of all processes together. In
    evaluation mode, and without an initialized process group of several processes, the module computes what
    `BatchNorm2d` computes, for inputs of any dimension.

    Args:
        num_features: Number of channels :math:`C`.
        eps: Added to the variance before the square root. Default: 1e-5.
        momentum: Weight of the new batch in the running statistics. ``None`` averages all batches with equal weights.
            Default: 0.1.
        affine: Whether the module has learnable ``weight`` and ``bias``. Default: ``True``.
        track_running_stats: Whether to keep running statistics and to normalize with them in evaluation mode. Without
            them, the statistics of the input normalize in both modes. Default: ``True``.
        process_group: Process group over which the statistics are computed. Default: all processes.
        device: Device of parameters and buffers. Default: the default device.
        dtype: Dtype of parameters and buffers. Default: the default dtype.
        bias: Whether an affine module has a ``bias``. Keyword only. Default: ``True``.

    Shape:
        - Input: ``(N, C, *)`` with at least 2 dimensions.
        - Output: the shape of the input.

    Attributes:
        weight (Parameter): :math:`\gamma`, shape ``(C,)``, initialized to 1. ``None`` if not ``affine``.
        bias (Parameter): :math:`\beta`, shape ``(C,)``, initialized to 0. ``None`` if not ``affine`` or
            ``bias=False``.
        running_mean (Tensor): Buffer of shape ``(C,)``, initially 0. ``None`` if statistics are not tracked.
        running_var (Tensor): Buffer of shape ``(C,)``, initially 1. ``None`` if statistics are not tracked.
        num_batches_tracked (Tensor): Number of training batches, a 0-dimensional int64 buffer. ``None`` if statistics
            are not tracked.

    Raises:
        ValueError: The input has fewer than 2 dimensions.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8))
        >>> net = torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)
        >>> type(net[1]).__name__
        'SyncBatchNorm'
        >>> net(torch.zeros(2, 3, 6, 6)).shape
        torch.Size([2, 8, 4, 4])

    References:
        - S. Ioffe, C. Szegedy. Batch normalization: accelerating deep network training by reducing internal covariate
          shift. 2015.

    See also:
        `BatchNorm2d`, `torch.nn.parallel.DistributedDataParallel`.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: DeviceLike = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        group = CALLBACKS.sync_batch_norm_group(self.process_group) if self.training else None
        if group is None:
            return super().forward(input)
        momentum = self.momentum
        if self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:
                momentum = 1.0 / self.num_batches_tracked.item()
        mean = self.running_mean if self.track_running_stats else None
        var = self.running_var if self.track_running_stats else None
        return CALLBACKS.sync_batch_norm(input, self.weight, self.bias, mean, var, self.eps, momentum or 0.0, group)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Any:
        """Returns a module with a `SyncBatchNorm` in place of each batch norm in it.

        Args:
            module: Module to convert. Its other submodules are kept; the containers are changed in place.
            process_group: Process group of the new modules. Default: all processes.

        Returns:
            ``module`` itself, or a new `SyncBatchNorm` if ``module`` is a batch norm. The new modules share parameters
            and buffers with the old ones.

        Example:
            >>> torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.BatchNorm1d(4))
            SyncBatchNorm(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        """
        result = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            if module.affine:
                result.weight = module.weight
                result.bias = module.bias
            result.running_mean = module.running_mean
            result.running_var = module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.training = module.training
            if hasattr(module, "qconfig"):  # of torch.ao.quantization
                result.qconfig = module.qconfig
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _LazyNormBase(LazyModuleMixin, _NormBase):
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        # Created without parameters and statistics: their size is not known.
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine = affine
        self.track_running_stats = track_running_stats
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**factory_kwargs)
            if bias:
                self.bias = UninitializedParameter(**factory_kwargs)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**factory_kwargs)
            self.running_var = UninitializedBuffer(**factory_kwargs)
            self.num_batches_tracked = torch.tensor(0, dtype=torch.long, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> Any:
        """Create parameters and statistics from the channels of the first input."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for value in (self.weight, self.bias, self.running_mean, self.running_var):
            if value is not None:
                value.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm1d` that takes ``num_features`` from its first input.

    The first call creates the parameters and the statistics and changes the class of the module to `BatchNorm1d`. Make
    that call before you create an optimizer. Loading a ``state_dict`` also gives the parameters their shapes.

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
        - Input: ``(N, C)`` or ``(N, C, L)``; the first input sets ``num_features``.
        - Output: the shape of the input.

    Attributes:
        weight (UninitializedParameter): After the first call as in `BatchNorm1d`.
        bias (UninitializedParameter): After the first call as in `BatchNorm1d`.

    Example:
        >>> layer = torch.nn.LazyBatchNorm1d()
        >>> output = layer(torch.ones(4, 10))
        >>> layer
        BatchNorm1d(10, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)

    References:
        - S. Ioffe, C. Szegedy. Batch normalization: accelerating deep network training by reducing internal covariate
          shift. 2015.

    See also:
        `BatchNorm1d`.
    """

    cls_to_become = BatchNorm1d
    _check_input_dim = BatchNorm1d._check_input_dim


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm2d` that takes ``num_features`` from its first input.

    The first call creates the parameters and the statistics and changes the class of the module to `BatchNorm2d`. Make
    that call before you create an optimizer. Loading a ``state_dict`` also gives the parameters their shapes.

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
        weight (UninitializedParameter): After the first call as in `BatchNorm2d`.
        bias (UninitializedParameter): After the first call as in `BatchNorm2d`.

    Example:
        >>> layer = torch.nn.LazyBatchNorm2d()
        >>> output = layer(torch.ones(4, 10, 5, 5))
        >>> layer
        BatchNorm2d(10, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)

    References:
        - S. Ioffe, C. Szegedy. Batch normalization: accelerating deep network training by reducing internal covariate
          shift. 2015.

    See also:
        `BatchNorm2d`.
    """

    cls_to_become = BatchNorm2d
    _check_input_dim = BatchNorm2d._check_input_dim


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm3d` that takes ``num_features`` from its first input.

    The first call creates the parameters and the statistics and changes the class of the module to `BatchNorm3d`. Make
    that call before you create an optimizer. Loading a ``state_dict`` also gives the parameters their shapes.

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
        weight (UninitializedParameter): After the first call as in `BatchNorm3d`.
        bias (UninitializedParameter): After the first call as in `BatchNorm3d`.

    Example:
        >>> layer = torch.nn.LazyBatchNorm3d()
        >>> output = layer(torch.ones(4, 10, 5, 5, 5))
        >>> layer
        BatchNorm3d(10, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)

    References:
        - S. Ioffe, C. Szegedy. Batch normalization: accelerating deep network training by reducing internal covariate
          shift. 2015.

    See also:
        `BatchNorm3d`.
    """

    cls_to_become = BatchNorm3d
    _check_input_dim = BatchNorm3d._check_input_dim
