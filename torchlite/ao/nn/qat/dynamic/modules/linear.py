"""The linear layer for training with inputs that get a scale each."""

from __future__ import annotations

from typing import Any

from torchlite.ao.nn.qat.modules import linear

__all__ = ["Linear"]


class Linear(linear.Linear):
    """A `torch.ao.nn.qat.Linear` whose inputs get a scale each.

    Args:
        in_features: Size of the input.
        out_features: Size of the output.
        bias: Whether a bias is added. Default: ``True``.
        qconfig: The configuration; its observer of outputs keeps nothing of earlier tensors.
        device: The parameters' device. Default: the current one.
        dtype: The parameters' dtype. Default: float32.

    Raises:
        ValueError: The observer of outputs averages.

    Example:
        >>> qconfig = torch.ao.quantization.qconfig.default_dynamic_qat_qconfig
        >>> torch.ao.nn.qat.dynamic.Linear(2, 3, qconfig=qconfig)(torch.ones(4, 2)).shape
        torch.Size([4, 3])
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(in_features, out_features, bias, qconfig, device, dtype)
        observer = qconfig.activation()
        if getattr(getattr(observer, "activation_post_process", observer), "averaging_constant", None) != 1:
            raise ValueError(
                "Dynamic QAT requires a memoryless observer.This means a MovingAverage observer with averaging "
                "constant equal to 1"
            )
