"""Quantized embeddings: rows of eight or four bits, with a scale and a zero point for each."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor, nn

from .utils import move_with, quantize_weight

_LOOK_UP = {torch.quint8: "byte", torch.quint4x2: "4bit"}  # the ends of ops' names


class EmbeddingPackedParams(nn.Module):
    """The packed weight of a quantized embedding, as a part of it with a state of its own.

    Args:
        num_embeddings: Number of rows.
        embedding_dim: Size of a row.
        dtype: `torch.quint8` or `torch.quint4x2`.

    Example:
        >>> torch.ao.nn.quantized.Embedding(4, 3)._packed_params.dtype
        torch.quint8
    """

    _version = 1

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = torch.quint8) -> None:
        super().__init__()
        if dtype not in _LOOK_UP:
            raise NotImplementedError(
                f"Unsupported dtype on quantized embedding! Supports quint8 and quint4x2. Got dtype: {dtype}"
            )
        self.dtype = dtype
        scales, zero_points = torch.ones(num_embeddings), torch.zeros(num_embeddings)
        self.set_weight(
            torch.quantize_per_channel(torch.zeros(num_embeddings, embedding_dim), scales, zero_points, 0, dtype)
        )

    def set_weight(self, weight: Any) -> None:
        """Pack a weight."""
        self._packed_weight = torch.ops.quantized.embedding_bag_prepack(weight)

    def _weight(self) -> Any:
        return torch.ops.quantized.embedding_bag_unpack(self._packed_weight)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self.set_weight(*move_with(fn, self._weight()))
        return super()._apply(fn, recurse)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}dtype"] = self.dtype
        destination[f"{prefix}_packed_weight"] = self._weight()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        self.dtype = state_dict.pop(f"{prefix}dtype")
        self.set_weight(state_dict.pop(f"{prefix}_packed_weight"))
        local_metadata, _, *lists = rest
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)

    def __repr__(self) -> str:
        return repr(self._weight())


class Embedding(nn.Module):
    """A table of quantized rows, which gives float32 numbers.

    Args:
        num_embeddings: Number of rows.
        embedding_dim: Size of a row.
        padding_idx: Has no effect. Default: none.
        max_norm: Has no effect. Default: none.
        norm_type: Has no effect. Default: 2.
        scale_grad_by_freq: Has no effect. Default: ``False``.
        sparse: Has no effect. Default: ``False``.
        dtype: `torch.quint8` or `torch.quint4x2`.

    Example:
        >>> torch.ao.nn.quantized.Embedding(4, 3)(torch.tensor([1, 2])).shape
        torch.Size([2, 3])
    """

    _version = 1

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None,
        dtype: Any = torch.quint8,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.set_weight(_weight)

    def _tl_script_text(self) -> tuple[str, str, str]:
        """The parameters, the statement and the result of `forward` in TorchScript."""
        call = f"ops.quantized.embedding_{_LOOK_UP[self.dtype]}(self._packed_params._packed_weight, indices)"
        return "indices: Tensor", f"return {call}", "Tensor"

    def forward(self, indices: Tensor) -> Tensor:
        compute = getattr(torch.ops.quantized, f"embedding_{_LOOK_UP[self.dtype]}")
        return compute(self._packed_params._packed_weight, indices)

    def _get_name(self) -> str:
        return "QuantizedEmbedding"

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def extra_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, dtype={self.dtype}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def set_weight(self, w: Any) -> None:
        """Packs a quantized weight.

        Args:
            w: The weight.
        """
        self._packed_params.set_weight(w)

    def weight(self) -> Any:
        """Return the quantized weight."""
        return self._packed_params._weight()

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Make the quantized module of a float one, whose qconfig has an observer with float parameters.

        Args:
            mod: The float module.
            use_precomputed_fake_quant: Has no effect.
        """
        observer = (
            mod.weight_fake_quant if hasattr(mod, "weight_fake_quant")
            else mod.qconfig.weight() if getattr(mod, "qconfig", None) is not None
            else _default_observer()
        )  # fmt: skip
        if observer.qscheme is not torch.per_channel_affine_float_qparams:
            raise AssertionError(
                f"{cls.__name__} quantization is only supported with float_qparams_weight_only_qconfig."
            )
        observer(mod.weight)
        made = cls._like(mod, observer.dtype)
        made.set_weight(quantize_weight(mod.weight.detach().float(), observer))
        return made

    @classmethod
    def _like(cls, mod: Any, dtype: Any) -> Any:
        return cls(mod.num_embeddings, mod.embedding_dim, dtype=dtype)

    @classmethod
    def from_reference(cls, ref_embedding: Any) -> Any:
        """Makes the quantized module of a reference one, which has a quantized weight.

        Args:
            ref_embedding: The reference module.
        """
        made = cls._like(ref_embedding, ref_embedding.weight_dtype)
        made.set_weight(ref_embedding.get_quantized_weight())
        return made


def _default_observer() -> Any:
    from torchlite.ao.quantization.qconfig import float_qparams_weight_only_qconfig

    return float_qparams_weight_only_qconfig.weight()


class EmbeddingBag(Embedding):
    """Sums, means or maxima of quantized rows, in float32. PyTorch's layer sums in each mode.

    Args:
        num_embeddings: Number of rows.
        embedding_dim: Size of a row.
        max_norm: Has no effect. Default: none.
        norm_type: Has no effect. Default: 2.
        scale_grad_by_freq: Has no effect. Default: ``False``.
        mode: ``"sum"``, ``"mean"`` or ``"max"``; TorchScript has sums. Default: ``"sum"``.
        sparse: Has no effect. Default: ``False``.
        include_last_offset: Whether the last offset is the number of indices. Default: ``False``.
        dtype: `torch.quint8` or `torch.quint4x2`.

    Raises:
        ValueError: The mode is another.

    Example:
        >>> torch.ao.nn.quantized.EmbeddingBag(4, 3)(torch.tensor([1, 2]), torch.tensor([0])).shape
        torch.Size([1, 3])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "sum", sparse: bool = False, _weight: Any = None,
        include_last_offset: bool = False, dtype: Any = torch.quint8,
    ) -> None:  # fmt: skip
        if mode not in ("sum", "mean", "max"):
            raise ValueError("mode has to be one of sum, mean or max")
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.include_last_offset = mode, include_last_offset

    def _tl_script_text(self) -> tuple[str, str, str]:
        if self.mode != "sum":
            raise NotImplementedError(
                f"torchlite has no TorchScript for a quantized EmbeddingBag with the mode {self.mode}"
            )
        parameters = "indices: Tensor, offsets: Optional[Tensor]=None, per_sample_weights: Optional[Tensor]=None"
        arguments = f"indices, offsets, False, 0, False, per_sample_weights, None, {self.include_last_offset}"
        name = f"ops.quantized.embedding_bag_{_LOOK_UP[self.dtype]}"
        return parameters, f"return {name}(self._packed_params._packed_weight, {arguments})", "Tensor"

    def forward(self, indices: Tensor, offsets: Any = None, per_sample_weights: Any = None) -> Tensor:  # type: ignore[override]
        if self.mode != "sum":  # the op has sums only
            return nn.functional.embedding_bag(
                indices, self.weight().dequantize(), offsets, mode=self.mode, per_sample_weights=per_sample_weights,
                include_last_offset=self.include_last_offset,
            )  # fmt: skip
        compute = getattr(torch.ops.quantized, f"embedding_bag_{_LOOK_UP[self.dtype]}")
        return compute(
            self._packed_params._packed_weight, indices, offsets, False, 0, False, per_sample_weights, None,
            self.include_last_offset,
        )  # fmt: skip

    def _get_name(self) -> str:
        return "QuantizedEmbeddingBag"

    @classmethod
    def _like(cls, mod: Any, dtype: Any) -> Any:
        return cls(
            mod.num_embeddings, mod.embedding_dim, max_norm=mod.max_norm, norm_type=mod.norm_type, mode=mod.mode,
            include_last_offset=mod.include_last_offset, dtype=dtype,
        )  # fmt: skip
