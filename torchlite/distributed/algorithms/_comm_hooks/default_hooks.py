"""Communication hooks for `FullyShardedDataParallel.register_comm_hook`: the mean, optionally in lower precision."""

from __future__ import annotations

from typing import Any

import torchlite as torch
import torchlite.distributed as dist

__all__ = [
    "DefaultState", "LowPrecisionState", "allreduce_hook", "bf16_compress_hook", "fp16_compress_hook",
    "reduce_scatter_hook",
]  # fmt: skip


class DefaultState:
    """State of the hooks: the group, and the divisors before and after the sum.

    The product of the two is the group's size, so that neither small nor large gradients of low precision are lost.

    Args:
        process_group: The group.

    Raises:
        ValueError: ``process_group`` is ``None``.

    Example:
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> DefaultState(torch.distributed.group.WORLD).gradient_predivide_factor
        1.0
        >>> torch.distributed.destroy_process_group()
    """

    __slots__ = ["gradient_postdivide_factor", "gradient_predivide_factor", "process_group", "world_size"]

    def __init__(self, process_group: Any) -> None:
        if process_group is None:
            raise ValueError(f"Expected to pass in an explicit ProcessGroup to {self}.")
        self.process_group, self.world_size = process_group, dist.get_world_size(process_group)
        self.gradient_predivide_factor = self._get_gradient_predivide_factor(self.world_size)
        self.gradient_postdivide_factor = self.world_size / self.gradient_predivide_factor

    @staticmethod
    def _get_gradient_predivide_factor(world_size: int) -> float:
        """Return a power of two near the square root."""
        factor = 1
        while world_size % factor == 0 and world_size / factor > factor:
            factor *= 2
        return float(factor)


class LowPrecisionState(DefaultState):
    """State of the hooks that send gradients in another dtype.

    Args:
        process_group: The group.
        parameter_type: The dtype of the result. Default: ``torch.float32``.

    Raises:
        ValueError: ``process_group`` is ``None``.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> LowPrecisionState(dist.group.WORLD).parameter_type
        torch.float32
        >>> dist.destroy_process_group()
    """

    __slots__ = ["parameter_type"]

    def __init__(self, process_group: Any, parameter_type: torch.dtype = torch.float32) -> None:
        super().__init__(process_group)
        self.parameter_type = parameter_type


def _divide_by_group_size(tensor: torch.Tensor, factor: float) -> None:
    if factor > 1:
        tensor.div_(factor)


def allreduce_hook(state: DefaultState, grad: torch.Tensor) -> None:
    """Averages a gradient over a group, in place.

    Args:
        state: The state.
        grad: The gradient.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> g = torch.tensor([1.0, 2.0])
        >>> allreduce_hook(DefaultState(dist.group.WORLD), g)
        >>> g
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    _divide_by_group_size(grad, state.gradient_predivide_factor)
    dist.all_reduce(grad, group=state.process_group)
    _divide_by_group_size(grad, state.gradient_postdivide_factor)


def reduce_scatter_hook(state: DefaultState, grad: torch.Tensor, output: torch.Tensor) -> None:
    """Averages a flat gradient over a group, and writes this rank's part.

    Args:
        state: The state.
        grad: The gradient; it changes.
        output: Receives the part.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> part = torch.empty(2)
        >>> reduce_scatter_hook(DefaultState(dist.group.WORLD), torch.tensor([1.0, 2.0]), part)
        >>> part
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    _divide_by_group_size(grad, state.gradient_predivide_factor)
    dist.reduce_scatter_tensor(output, grad, group=state.process_group)
    _divide_by_group_size(output, state.gradient_postdivide_factor)


def _reduce_in_dtype(
    dtype: torch.dtype, state: LowPrecisionState, grad: torch.Tensor, output: torch.Tensor | None
) -> None:
    grad.data = grad.data.to(dtype)
    if output is None:
        allreduce_hook(state, grad)
        grad.data = grad.data.to(state.parameter_type)
        return
    output.data = output.data.to(dtype)
    reduce_scatter_hook(state, grad, output)
    output.data = output.data.to(state.parameter_type)


def fp16_compress_hook(state: LowPrecisionState, grad: torch.Tensor, output: torch.Tensor | None = None) -> None:
    """Averages a gradient over a group, and sends it in float16.

    Args:
        state: The state.
        grad: The gradient; it changes.
        output: Receives this rank's part. Default: ``grad`` receives the mean.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> g = torch.tensor([1.0, 2.0])
        >>> fp16_compress_hook(LowPrecisionState(dist.group.WORLD), g)
        >>> g
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    _reduce_in_dtype(torch.float16, state, grad, output)


def bf16_compress_hook(state: LowPrecisionState, grad: torch.Tensor, output: torch.Tensor | None = None) -> None:
    """Averages a gradient over a group, and sends it in bfloat16.

    Args:
        state: The state.
        grad: The gradient; it changes.
        output: Receives this rank's part. Default: ``grad`` receives the mean.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> g = torch.tensor([1.0, 2.0])
        >>> bf16_compress_hook(LowPrecisionState(dist.group.WORLD), g)
        >>> g
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    _reduce_in_dtype(torch.bfloat16, state, grad, output)
