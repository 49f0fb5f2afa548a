"""Causal masks of scaled dot-product attention as tensor subclasses, materialised only where an op needs the values."""

from __future__ import annotations

import enum
import warnings
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite._settings.module_dir import make_module_dir

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """The alignment of the diagonal of a causal mask that is not square."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask (seq_len_q, seq_len_kv) for `attn_mask`; other functions do not accept it.

    >>> from torchlite.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        made = torch.empty(1, seq_len_q, seq_len_kv, device="meta").as_subclass(cls)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        if variant is CausalVariant.LOWER_RIGHT and seq_len_q > seq_len_kv:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=3
            )
        return made

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        pass

    def _materialize(self, device: Any = None) -> Tensor:
        """Return the mask, true where a key is visible."""
        offset = self.seq_len_kv - self.seq_len_q if self.variant is CausalVariant.LOWER_RIGHT else 0
        return torch.ones(self.seq_len_q, self.seq_len_kv, device=device, dtype=torch.bool).tril(offset)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return repr(self._materialize())

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        function = torch.nn.functional.scaled_dot_product_attention
        if func is not function:
            raise NotImplementedError(f"CausalBias only supports scaled_dot_product_attention, not {func.__name__}")
        return cls._attention(*args, **(kwargs or {}))

    @staticmethod
    def _attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: CausalBias,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        **options: Any,
    ) -> Tensor:
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        square = attn_mask.seq_len_q == attn_mask.seq_len_kv or attn_mask.variant is CausalVariant.UPPER_LEFT
        mask = None if square else attn_mask._materialize(query.device)
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, dropout_p, square, **options)


def causal_upper_left(*size: int) -> CausalBias:
    """The causal mask (seq_len_q, seq_len_kv) aligned to the upper left: the first query sees the first key only."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The causal mask (seq_len_q, seq_len_kv) aligned to the lower right: the last query sees all keys."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)


__dir__ = make_module_dir(globals())
