"""Quantized modules."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor, nn

from .activation import ELU, Hardswish, LeakyReLU, PReLU, ReLU6, Sigmoid, Softmax
from .attention import MultiheadAttention
from .batchnorm import BatchNorm2d, BatchNorm3d
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .dropout import Dropout
from .embedding_ops import Embedding, EmbeddingBag
from .functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from .linear import Linear
from .normalization import GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm
from .rnn import LSTM
from .utils import FromObserved

__all__ = [
    "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
    "ConvTranspose3d", "DeQuantize", "ELU", "Embedding", "EmbeddingBag", "GroupNorm", "Hardswish", "InstanceNorm1d",
    "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LeakyReLU", "Linear", "Quantize", "ReLU6", "Sigmoid", "Softmax",
    "LSTM", "MultiheadAttention", "Dropout", "PReLU", "FloatFunctional", "FXFloatFunctional", "QFunctional",
]  # fmt: skip


class MaxPool2d(nn.MaxPool2d):
    """The greatest levels of windows of quantized images. Its parameters are those of `torch.nn.MaxPool2d`.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(1, 1, 2, 2), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.MaxPool2d(2)(q).shape
        torch.Size([1, 1, 1, 1])
    """

    def _get_name(self) -> str:
        return "QuantizedMaxPool2d"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Makes the layer of a float one.

        Args:
            mod: The float layer.
            use_precomputed_fake_quant: No effect: there is no weight.
        """
        names = ("kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode")
        return cls(*(getattr(mod, name) for name in names))


class Quantize(FromObserved, nn.Module):
    """Quantizes float32 tensors with one scale and one zero point.

    Args:
        scale: The scale.
        zero_point: The zero point.
        dtype: `torch.quint8`, `torch.qint8` or `torch.qint32`.
        factory_kwargs: Device of the parameters. Default: none.

    Example:
        >>> torch.ao.nn.quantized.Quantize(0.1, 3, torch.quint8)(torch.ones(1)).int_repr()
        tensor([13], dtype=torch.uint8)
    """

    def __init__(self, scale: Any, zero_point: Any, dtype: Any, factory_kwargs: Any = None) -> None:
        super().__init__()
        made = factory_kwargs or {}
        self.register_buffer("scale", torch.tensor([scale], **made))
        self.register_buffer(
            "zero_point",
            torch.tensor([zero_point], dtype=torch.long, **{k: v for k, v in made.items() if k != "dtype"}),
        )
        self.dtype = dtype

    def forward(self, X: Tensor) -> Tensor:
        return torch.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Quantize:
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        return cls(float(scale), int(zero_point), mod.activation_post_process.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(FromObserved, nn.Module):
    """Gives the numbers of quantized tensors.

    Example:
        >>> q = torch.quantize_per_tensor(torch.ones(1), 0.1, 3, torch.quint8)
        >>> torch.ao.nn.quantized.DeQuantize()(q)
        tensor([1.])
    """

    def forward(self, Xq: Tensor) -> Tensor:
        return Xq.dequantize()

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> DeQuantize:
        return cls()
