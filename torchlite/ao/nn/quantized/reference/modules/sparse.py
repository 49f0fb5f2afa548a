"""Embeddings with a quantized weight that look numbers up."""

from __future__ import annotations

from typing import Any

from torchlite import Tensor, nn
from torchlite.nn import functional as F

from .utils import ReferenceQuantizedModule

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(nn.Embedding, ReferenceQuantizedModule):
    """A `torch.nn.Embedding` whose weight is quantized before each look-up.

    Its parameters are those of `torch.nn.Embedding`, and ``weight_qparams``: scheme, dtype, scale and zero point of
    the weight.

    Example:
        >>> torch.ao.nn.quantized.reference.Embedding(3, 2)(torch.tensor([1])).shape
        torch.Size([1, 2])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: Any = None, max_norm: Any = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None,
        device: Any = None, dtype: Any = None, weight_qparams: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight,
            device=device, dtype=dtype,
        )  # fmt: skip
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return "QuantizedEmbedding(Reference)"

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.get_weight(), self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.sparse,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: Any, weight_qparams: dict[str, Any]) -> Any:
        """The layer of a float one.

        Args:
            mod: The float layer.
            weight_qparams: Scheme, dtype, scale and zero point of the weight.
        """
        return cls(
            mod.num_embeddings, mod.embedding_dim, mod.padding_idx, mod.max_norm, mod.norm_type,
            mod.scale_grad_by_freq, mod.sparse, mod.weight, mod.weight.device, mod.weight.dtype, weight_qparams,
        )  # fmt: skip


class EmbeddingBag(nn.EmbeddingBag, ReferenceQuantizedModule):
    """A `torch.nn.EmbeddingBag` whose weight is quantized before each look-up.

    Its parameters are those of `torch.nn.EmbeddingBag`, and ``weight_qparams``: scheme, dtype, scale and zero point
    of the weight.

    Example:
        >>> torch.ao.nn.quantized.reference.EmbeddingBag(3, 2)(torch.tensor([[1, 2]])).shape
        torch.Size([1, 2])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: Any = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Any = None,
        include_last_offset: bool = False, padding_idx: Any = None, device: Any = None, dtype: Any = None,
        weight_qparams: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, mode, sparse, _weight,
            include_last_offset, padding_idx, device, dtype,
        )  # fmt: skip
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return "QuantizedEmbedding(Reference)"

    def forward(self, input: Tensor, offsets: Any = None, per_sample_weights: Any = None) -> Tensor:
        return F.embedding_bag(
            input, self.get_weight(), offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode,
            self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: Any, weight_qparams: dict[str, Any], use_precomputed_fake_quant: bool = False) -> Any:
        """The layer of a float one.

        Args:
            mod: The float layer.
            weight_qparams: Scheme, dtype, scale and zero point of the weight.
            use_precomputed_fake_quant: No effect.
        """
        return cls(
            mod.num_embeddings, mod.embedding_dim, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.mode,
            mod.sparse, mod.weight, mod.include_last_offset, mod.padding_idx, mod.weight.device, mod.weight.dtype,
            weight_qparams,
        )  # fmt: skip
