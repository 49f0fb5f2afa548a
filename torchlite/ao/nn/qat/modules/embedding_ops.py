"""Embeddings whose rows are rounded while they are trained."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor, nn
from torchlite.nn import functional as F

from ._from_float import check_source, configured, with_weights_of

__all__ = ["Embedding", "EmbeddingBag"]


def _check_scheme(qconfig: Any) -> None:
    qscheme = qconfig.weight().qscheme
    if qscheme != torch.per_channel_affine_float_qparams:
        raise AssertionError(
            f"Embedding weights requires a qscheme of torch.per_channel_affine_float_qparams Got {qscheme}"
        )


class _Rows:
    """Mixin of both embeddings. It stands before a class of `torch.nn` among the bases."""

    _FLOAT_MODULE: Any
    _OPTIONS: tuple[str, ...]

    def _configure(self, qconfig: Any, device: Any, dtype: Any) -> None:
        self.qconfig = configured(qconfig)
        _check_scheme(qconfig)
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for a float layer, whose rows it has.

        Args:
            mod: The float layer, with a ``qconfig``.
            use_precomputed_fake_quant: No effect: a float layer has no fake quantizer yet.
        """
        qconfig = check_source(cls, mod)
        _check_scheme(qconfig)
        options = {name: getattr(mod, name) for name in cls._OPTIONS}
        made: Any = cls(**options, _weight=mod.weight, qconfig=qconfig)  # type: ignore[call-arg]
        return made

    def to_float(self) -> Any:
        """The float layer with a copy of the rows."""
        return with_weights_of(self._FLOAT_MODULE(**{name: getattr(self, name) for name in self._OPTIONS}), self)


class Embedding(_Rows, nn.Embedding):
    """A `torch.nn.Embedding` whose rows are rounded to levels by fake quantization.

    Args:
        num_embeddings: The number of rows.
        embedding_dim: The size of a row.
        padding_idx: The row that is not trained. Default: none.
        max_norm: The greatest norm of a row. Default: none.
        norm_type: The order of the norm. Default: 2.
        scale_grad_by_freq: Whether gradients are divided by the rows' frequency. Default: ``False``.
        sparse: Whether the gradient is sparse. Default: ``False``.
        device: The rows' device. Default: the current one.
        dtype: The rows' dtype. Default: float32.
        qconfig: The configuration; its ``weight`` makes ``weight_fake_quant``.

    Raises:
        AssertionError: There is no configuration, or its scheme is not ``torch.per_channel_affine_float_qparams``.

    Example:
        >>> layer = torch.ao.nn.qat.Embedding(4, 3, qconfig=torch.ao.quantization.qconfig.default_embedding_qat_qconfig)
        >>> layer(torch.tensor([0, 2])).shape
        torch.Size([2, 3])
    """

    _FLOAT_MODULE = nn.Embedding
    _OPTIONS = (
        "num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse",
    )  # fmt: skip

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: Any = None, max_norm: Any = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None,
        device: Any = None, dtype: Any = None, qconfig: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight,
            device=device, dtype=dtype,
        )  # fmt: skip
        self._configure(qconfig, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight_fake_quant(self.weight), self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip


class EmbeddingBag(_Rows, nn.EmbeddingBag):
    """A `torch.nn.EmbeddingBag` whose rows are rounded to levels by fake quantization.

    Args:
        num_embeddings: The number of rows.
        embedding_dim: The size of a row.
        max_norm: The greatest norm of a row. Default: none.
        norm_type: The order of the norm. Default: 2.
        scale_grad_by_freq: Whether gradients are divided by the rows' frequency. Default: ``False``.
        mode: How the rows of a bag are combined. Default: ``"mean"``.
        sparse: Whether the gradient is sparse. Default: ``False``.
        include_last_offset: Whether the offsets include the end. Default: ``False``.
        padding_idx: The row that bags leave out. Default: none.
        qconfig: The configuration; its ``weight`` makes ``weight_fake_quant``.
        device: The rows' device. Default: the current one.
        dtype: The rows' dtype. Default: float32.

    Raises:
        AssertionError: There is no configuration, or its scheme is not ``torch.per_channel_affine_float_qparams``.

    Example:
        >>> qconfig = torch.ao.quantization.qconfig.default_embedding_qat_qconfig
        >>> torch.ao.nn.qat.EmbeddingBag(4, 3, qconfig=qconfig)(torch.tensor([[0, 2]])).shape
        torch.Size([1, 3])
    """

    _FLOAT_MODULE = nn.EmbeddingBag
    _OPTIONS = (
        "num_embeddings", "embedding_dim", "max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse",
        "include_last_offset", "padding_idx",
    )  # fmt: skip

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: Any = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Any = None,
        include_last_offset: bool = False, padding_idx: Any = None, qconfig: Any = None, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, mode, sparse, _weight,
            include_last_offset, padding_idx, device, dtype,
        )  # fmt: skip
        self._configure(qconfig, device, dtype)

    def forward(self, input: Tensor, offsets: Any = None, per_sample_weights: Any = None) -> Tensor:
        return F.embedding_bag(
            input, self.weight_fake_quant(self.weight), offsets, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights, self.include_last_offset,
            self.padding_idx,
        )  # fmt: skip
