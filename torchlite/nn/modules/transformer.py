"""The transformer and its parts (Vaswani et al. 2017)."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite.nn import functional as F
from torchlite.nn.init import xavier_uniform_

from ._attention_masks import additive_mask, dtype_or_none
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _generate_square_subsequent_mask(sz, device=None, dtype=None):
    return torch.triu(torch.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _get_clones(module, count):
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _get_activation_fn(activation):
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _get_seq_len(src, batch_first):
    size = src.size()
    if len(size) == 2:
        return size[0]
    return size[1 if batch_first else 0]


def _detect_is_causal_mask(mask, is_causal=None, size=None):
    """True if `mask` is causal: `is_causal` if given, else by comparison with a causal mask."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    size = size if size is not None else mask.size(-2)
    causal = _generate_square_subsequent_mask(size, device=mask.device, dtype=mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _find_activation(given):
    return _get_activation_fn(given) if isinstance(given, str) else given


def _activation_code(activation):
    """1 for ReLU, 2 for GELU, 0 for anything else."""
    if activation is F.relu or activation is torch.relu or isinstance(activation, ReLU):
        return 1
    return 2 if activation is F.gelu or isinstance(activation, GELU) else 0


def _why_not_nested_tensor(layer):
    """PyTorch's reason for not using nested tensors with an encoder layer, or ""."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = (
        (layer.norm_first, ".norm_first was True"),
        (
            not attention.batch_first,
            ".self_attn.batch_first was not True(use batch_first for better inference performance)",
        ),
        (not attention._qkv_same_embed_dim, ".self_attn._qkv_same_embed_dim was not True"),
        (attention.in_proj_bias is None, ".self_attn was passed bias=False"),
        (not layer.activation_relu_or_gelu, ".activation_relu_or_gelu was not True"),
        (layer.norm1.eps != layer.norm2.eps, ".norm1.eps was not equal to encoder_layer.norm2.eps"),
        (attention.num_heads % 2 == 1, ".self_attn.num_heads is odd"),
    )
    return next(("encoder_layer" + words for holds, words in reasons if holds), "")


class _TransformerLayer(Module):
    __constants__ = ["norm_first"]

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout1(
            self.self_attn(
                x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False, is_causal=is_causal
            )[0]
        )


class TransformerEncoderLayer(_TransformerLayer):
    r"""Applies self-attention and a feed-forward network, each with a residual and a layer norm.

    .. math::

        \begin{aligned}
        u &= \operatorname{LayerNorm}(x + \operatorname{SelfAttention}(x)) \\
        y &= \operatorname{LayerNorm}(u + W_2 \, \operatorname{activation}(W_1 u + b_1) + b_2)
        \end{aligned}

    Dropout applies to the attention weights, to the hidden features, and to the result of each part. With
    ``norm_first`` it is ``u = x + SelfAttention(LayerNorm(x))``, and likewise for the second part.

    Args:
        d_model: Number of features of input and output.
        nhead: Number of heads of attention; a divisor of ``d_model``.
        dim_feedforward: Number of hidden features of the feed-forward network. Default: 2048.
        dropout: Probability of all dropouts. Default: 0.1.
        activation: Activation of the feed-forward network: ``"relu"``, ``"gelu"`` or a function of a tensor. Default:
            `torch.nn.functional.relu`.
        layer_norm_eps: ``eps`` of the layer norms. Default: 1e-5.
        batch_first: Whether dimension 0 of inputs and output is the batch. Default: ``False``.
        norm_first: Whether a layer norm precedes each part, not follows it. Default: ``False``.
        bias: Whether linear layers and layer norms have biases. Default: ``True``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Src: ``(S, N, d_model)``, ``(N, S, d_model)`` with ``batch_first``, or ``(S, d_model)`` without a batch.
        - Output: the shape of src.

    Attributes:
        self_attn (MultiheadAttention): The self-attention.
        linear1 (Linear): ``d_model`` to ``dim_feedforward`` features.
        linear2 (Linear): ``dim_feedforward`` to ``d_model`` features.
        norm1 (LayerNorm): The norm of the self-attention.
        norm2 (LayerNorm): The norm of the feed-forward network.

    Raises:
        RuntimeError: ``activation`` is an unknown word.

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(d_model=8, nhead=2, batch_first=True)
        >>> layer(torch.zeros(3, 5, 8)).shape
        torch.Size([3, 5, 8])

    References:
        - A. Vaswani, N. Shazeer, N. Parmar, J. Uszkoreit, L. Jones, A. N. Gomez, L. Kaiser, I. Polosukhin. Attention
          is all you need. 2017.
        - R. Xiong et al. On layer normalization in the transformer architecture. 2020. (``norm_first``.)

    See also:
        `TransformerEncoder`, `TransformerDecoderLayer`, `MultiheadAttention`.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **factory_kwargs
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory_kwargs)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory_kwargs)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory_kwargs)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory_kwargs)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        activation = _find_activation(activation)
        self.activation_relu_or_gelu = _activation_code(activation)
        self.activation = activation

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Applies the layer to a sequence.

        Args:
            src: The sequence; see the class for the shapes.
            src_mask: Mask of pairs of positions, shape ``(S, S)`` or ``(N * nhead, S, S)``. A boolean mask is ``True``
                where attention is not allowed; a floating point mask is added to the scores. Default: ``None``.
            src_key_padding_mask: Mask of positions, shape ``(N, S)`` or ``(S)``, with the same meaning. Default:
                ``None``.
            is_causal: Hint that ``src_mask``, which must be given, is a causal mask. Default: ``False``.

        Returns:
            A tensor of the shape of ``src``.
        """
        src_key_padding_mask = additive_mask(
            src_key_padding_mask, "src_key_padding_mask", src.dtype, dtype_or_none(src_mask), "src_mask"
        )
        src_mask = additive_mask(src_mask, "src_mask", src.dtype, check_other=False)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x):
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(_TransformerLayer):
    r"""Applies self-attention, attention to the output of an encoder, and a feed-forward network.

    .. math::

        \begin{aligned}
        u &= \operatorname{LayerNorm}(x + \operatorname{SelfAttention}(x)) \\
        v &= \operatorname{LayerNorm}(u + \operatorname{Attention}(u, \text{memory}, \text{memory})) \\
        y &= \operatorname{LayerNorm}(v + W_2 \, \operatorname{activation}(W_1 v + b_1) + b_2)
        \end{aligned}

    Dropout applies to the attention weights, to the hidden features, and to the result of each part. With
    ``norm_first`` the norm applies to the input of each part instead.

    Args:
        d_model: Number of features of input and output.
        nhead: Number of heads of attention; a divisor of ``d_model``.
        dim_feedforward: Number of hidden features of the feed-forward network. Default: 2048.
        dropout: Probability of all dropouts. Default: 0.1.
        activation: Activation of the feed-forward network: ``"relu"``, ``"gelu"`` or a function of a tensor. Default:
            `torch.nn.functional.relu`.
        layer_norm_eps: ``eps`` of the layer norms. Default: 1e-5.
        batch_first: Whether dimension 0 of inputs and output is the batch. Default: ``False``.
        norm_first: Whether a layer norm precedes each part, not follows it. Default: ``False``.
        bias: Whether linear layers and layer norms have biases. Default: ``True``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Tgt: ``(T, N, d_model)``, ``(N, T, d_model)`` with ``batch_first``, or ``(T, d_model)`` without a batch.
        - Memory: ``(S, N, d_model)``, ``(N, S, d_model)`` or ``(S, d_model)``.
        - Output: the shape of tgt.

    Attributes:
        self_attn (MultiheadAttention): The self-attention.
        multihead_attn (MultiheadAttention): The attention to ``memory``.
        linear1 (Linear): ``d_model`` to ``dim_feedforward`` features.
        linear2 (Linear): ``dim_feedforward`` to ``d_model`` features.
        norm1 (LayerNorm): The norm of the self-attention.
        norm2 (LayerNorm): The norm of the attention to ``memory``.
        norm3 (LayerNorm): The norm of the feed-forward network.

    Raises:
        RuntimeError: ``activation`` is an unknown word.

    Example:
        >>> layer = torch.nn.TransformerDecoderLayer(d_model=8, nhead=2, batch_first=True)
        >>> layer(torch.zeros(3, 4, 8), torch.zeros(3, 5, 8)).shape
        torch.Size([3, 4, 8])

    References:
        - A. Vaswani, N. Shazeer, N. Parmar, J. Uszkoreit, L. Jones, A. N. Gomez, L. Kaiser, I. Polosukhin. Attention
          is all you need. 2017.
        - R. Xiong et al. On layer normalization in the transformer architecture. 2020. (``norm_first``.)

    See also:
        `TransformerDecoder`, `TransformerEncoderLayer`, `MultiheadAttention`.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **factory_kwargs
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **factory_kwargs
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory_kwargs)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory_kwargs)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory_kwargs)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory_kwargs)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory_kwargs)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _find_activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Applies the layer to a target sequence and the output of an encoder.

        Args:
            tgt: The target sequence; see the class for the shapes.
            memory: The output of the encoder.
            tgt_mask: Mask of pairs of target positions, shape ``(T, T)`` or ``(N * nhead, T, T)``. A boolean mask is
                ``True`` where attention is not allowed; a floating point mask is added to the scores. Default:
                ``None``.
            memory_mask: Mask of pairs of target and memory positions, shape ``(T, S)`` or ``(N * nhead, T, S)``.
                Default: ``None``.
            tgt_key_padding_mask: Mask of target positions, shape ``(N, T)`` or ``(T)``. Default: ``None``.
            memory_key_padding_mask: Mask of memory positions, shape ``(N, S)`` or ``(S)``. Default: ``None``.
            tgt_is_causal: Hint that ``tgt_mask``, which must be given, is a causal mask. Default: ``False``.
            memory_is_causal: Hint that ``memory_mask``, which must be given, is a causal mask. Default: ``False``.

        Returns:
            A tensor of the shape of ``tgt``.
        """
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout2(
            self.multihead_attn(
                x,
                mem,
                mem,
                attn_mask=attn_mask,
                key_padding_mask=key_padding_mask,
                is_causal=is_causal,
                need_weights=False,
            )[0]
        )

    def _ff_block(self, x):
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """Applies a stack of copies of an encoder layer.

    The copies begin with equal parameters, those of ``encoder_layer``, and train separately. ``enable_nested_tensor``
    and ``mask_check`` configure PyTorch's nested tensors. Without gradients in evaluation they leave out the padding at
    the ends of sequences, and the result has zeros there; so it has here.

    Args:
        encoder_layer: The layer to copy, for example a `TransformerEncoderLayer`.
        num_layers: Number of copies.
        norm: Module applied to the output of the last copy. Default: ``None``.
        enable_nested_tensor: Whether to warn if PyTorch's nested tensors would not support the layer. Default:
            ``True``.
        mask_check: No effect. Default: ``True``.

    Shape:
        - Src: as the layer takes it, for example ``(S, N, d_model)``.
        - Output: the shape of src.

    Attributes:
        layers (ModuleList): The copies.
        norm (Module): The last norm, or ``None``.

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(d_model=8, nhead=2, batch_first=True)
        >>> encoder = torch.nn.TransformerEncoder(layer, num_layers=3)
        >>> encoder(torch.zeros(3, 5, 8)).shape
        torch.Size([3, 5, 8])

    References:
        - A. Vaswani, N. Shazeer, N. Parmar, J. Uszkoreit, L. Jones, A. N. Gomez, L. Kaiser, I. Polosukhin. Attention
          is all you need. 2017.

    See also:
        `TransformerEncoderLayer`, `TransformerDecoder`, `Transformer`.
    """

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Any = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        why_not = _why_not_nested_tensor(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not why_not
        self.mask_check = mask_check
        if enable_nested_tensor and why_not:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why_not}", stacklevel=2
            )

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Applies the copies in sequence.

        Args:
            src: The sequence.
            mask: Mask of pairs of positions, shape ``(S, S)`` or ``(N * nhead, S, S)``. A boolean mask is ``True``
                where attention is not allowed; a floating point mask is added to the scores. Default: ``None``.
            src_key_padding_mask: Mask of positions, shape ``(N, S)`` or ``(S)``. Default: ``None``.
            is_causal: Hint that ``mask`` is causal. ``None`` compares ``mask`` with a causal mask. Default: ``None``.

        Returns:
            A tensor of the shape of ``src``.
        """
        src_key_padding_mask = additive_mask(
            src_key_padding_mask, "src_key_padding_mask", src.dtype, dtype_or_none(mask), "mask"
        )
        mask = additive_mask(mask, "mask", src.dtype, check_other=False)
        batch_first = getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False)
        is_causal = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, batch_first))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask)
        if mask is None and src_key_padding_mask is not None and _may_leave_out_padding(self, src):
            output = output.masked_fill(_find_left_out(self, src_key_padding_mask).unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)


def _may_leave_out_padding(encoder: TransformerEncoder, src: Tensor) -> bool:
    """True where PyTorch computes over nested tensors, whose positions behind the ends become zeros."""
    layer = encoder.layers[0]
    if not encoder.use_nested_tensor or layer.training or src.ndim != 3 or torch.is_autocast_enabled():
        return False
    if not torch.backends.mha.get_fastpath_enabled():
        return False
    return not torch.is_grad_enabled() or not (
        src.requires_grad or any(parameter.requires_grad for parameter in layer.parameters())
    )


def _find_left_out(encoder: TransformerEncoder, padding: Tensor) -> Tensor:
    """The positions that are zeros: all of the padding, or none if some is not at an end."""
    behind = padding != 0
    return behind & ~(behind[:, :-1] & ~behind[:, 1:]).any() if encoder.mask_check else behind


class TransformerDecoder(Module):
    """Applies a stack of copies of a decoder layer.

    The copies begin with equal parameters, those of ``decoder_layer``, and train separately.

    Args:
        decoder_layer: The layer to copy, for example a `TransformerDecoderLayer`.
        num_layers: Number of copies.
        norm: Module applied to the output of the last copy. Default: ``None``.

    Shape:
        - Tgt and memory: as the layer takes them, for example ``(T, N, d_model)`` and ``(S, N, d_model)``.
        - Output: the shape of tgt.

    Attributes:
        layers (ModuleList): The copies.
        norm (Module): The last norm, or ``None``.

    Example:
        >>> layer = torch.nn.TransformerDecoderLayer(d_model=8, nhead=2, batch_first=True)
        >>> decoder = torch.nn.TransformerDecoder(layer, num_layers=3)
        >>> decoder(torch.zeros(3, 4, 8), torch.zeros(3, 5, 8)).shape
        torch.Size([3, 4, 8])

    References:
        - A. Vaswani, N. Shazeer, N. Parmar, J. Uszkoreit, L. Jones, A. N. Gomez, L. Kaiser, I. Polosukhin. Attention
          is all you need. 2017.

    See also:
        `TransformerDecoderLayer`, `TransformerEncoder`, `Transformer`.
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: Any = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Applies the copies in sequence.

        Args:
            tgt: The target sequence; see the class for the shapes.
            memory: The output of the encoder.
            tgt_mask: Mask of pairs of target positions, shape ``(T, T)`` or ``(N * nhead, T, T)``. A boolean mask is
                ``True`` where attention is not allowed; a floating point mask is added to the scores. Default:
                ``None``.
            memory_mask: Mask of pairs of target and memory positions, shape ``(T, S)`` or ``(N * nhead, T, S)``.
                Default: ``None``.
            tgt_key_padding_mask: Mask of target positions, shape ``(N, T)`` or ``(T)``. Default: ``None``.
            memory_key_padding_mask: Mask of memory positions, shape ``(N, S)`` or ``(S)``. Default: ``None``.
            tgt_is_causal: Hint that ``tgt_mask`` is causal. ``None`` compares ``tgt_mask`` with a causal mask.
                Default: ``None``.
            memory_is_causal: Hint that ``memory_mask``, which must be given, is a causal mask. Default: ``False``.

        Returns:
            A tensor of the shape of ``tgt``.
        """
        batch_first = getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False)
        tgt_is_causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, _get_seq_len(tgt, batch_first))
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder and a decoder with attention, for sequence to sequence models.

    It contains neither embeddings nor positional encodings nor an output layer. Encoder and decoder end with a layer
    norm.

    Args:
        d_model: Number of features of inputs and output. Default: 512.
        nhead: Number of heads of attention; a divisor of ``d_model``. Default: 8.
        num_encoder_layers: Number of layers of the encoder. Default: 6.
        num_decoder_layers: Number of layers of the decoder. Default: 6.
        dim_feedforward: Number of hidden features of the feed-forward network. Default: 2048.
        dropout: Probability of all dropouts. Default: 0.1.
        activation: Activation of the feed-forward network: ``"relu"``, ``"gelu"`` or a function of a tensor. Default:
            `torch.nn.functional.relu`.
        custom_encoder: Module in place of the encoder. Default: ``None``.
        custom_decoder: Module in place of the decoder. Default: ``None``.
        layer_norm_eps: ``eps`` of the layer norms. Default: 1e-5.
        batch_first: Whether dimension 0 of inputs and output is the batch. Default: ``False``.
        norm_first: Whether a layer norm precedes each part, not follows it. Default: ``False``.
        bias: Whether linear layers and layer norms have biases. Default: ``True``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Src: ``(S, N, d_model)``, ``(N, S, d_model)`` with ``batch_first``, or ``(S, d_model)`` without a batch.
        - Tgt: ``(T, N, d_model)``, ``(N, T, d_model)`` or ``(T, d_model)``.
        - Output: the shape of tgt.

    Attributes:
        encoder (TransformerEncoder): The encoder. Its matrices are initialized by `xavier_uniform_`.
        decoder (TransformerDecoder): The decoder, initialized likewise.

    Raises:
        RuntimeError: At the call, src and tgt have different batch sizes, or their last size is not ``d_model``.

    Example:
        >>> model = torch.nn.Transformer(d_model=16, nhead=4, num_encoder_layers=2, num_decoder_layers=2,
        ...                              dim_feedforward=32, batch_first=True)
        >>> mask = model.generate_square_subsequent_mask(5)
        >>> model(torch.zeros(3, 7, 16), torch.zeros(3, 5, 16), tgt_mask=mask).shape
        torch.Size([3, 5, 16])

    References:
        - A. Vaswani, N. Shazeer, N. Parmar, J. Uszkoreit, L. Jones, A. N. Gomez, L. Kaiser, I. Polosukhin. Attention
          is all you need. 2017.

    See also:
        `TransformerEncoder`, `TransformerDecoder`, `MultiheadAttention`.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        super().__init__()
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer = TransformerEncoderLayer(
                d_model,
                nhead,
                dim_feedforward,
                dropout,
                activation,
                layer_norm_eps,
                batch_first,
                norm_first,
                bias,
                **factory_kwargs,
            )
            self.encoder = TransformerEncoder(
                layer, num_encoder_layers, LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory_kwargs)
            )
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            decoder_layer = TransformerDecoderLayer(
                d_model,
                nhead,
                dim_feedforward,
                dropout,
                activation,
                layer_norm_eps,
                batch_first,
                norm_first,
                bias,
                **factory_kwargs,
            )
            self.decoder = TransformerDecoder(
                decoder_layer, num_decoder_layers, LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory_kwargs)
            )
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: Any = None,
        tgt_is_causal: Any = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encodes a source sequence and decodes a target sequence.

        Args:
            src: The source sequence; see the class for the shapes.
            tgt: The target sequence.
            src_mask: Mask of pairs of source positions, shape ``(S, S)`` or ``(N * nhead, S, S)``. A boolean mask is
                ``True`` where attention is not allowed; a floating point mask is added to the scores. Default:
                ``None``.
            tgt_mask: Mask of pairs of target positions, shape ``(T, T)`` or ``(N * nhead, T, T)``. Default: ``None``.
            memory_mask: Mask of pairs of target and source positions, shape ``(T, S)`` or ``(N * nhead, T, S)``.
                Default: ``None``.
            src_key_padding_mask: Mask of source positions for the encoder, shape ``(N, S)`` or ``(S)``. Default:
                ``None``.
            tgt_key_padding_mask: Mask of target positions, shape ``(N, T)`` or ``(T)``. Default: ``None``.
            memory_key_padding_mask: Mask of source positions for the decoder, shape ``(N, S)`` or ``(S)``. Default:
                ``None``.
            src_is_causal: Hint that ``src_mask`` is causal. ``None`` compares it with a causal mask. Default:
                ``None``.
            tgt_is_causal: Hint that ``tgt_mask`` is causal. ``None`` compares it with a causal mask. Default:
                ``None``.
            memory_is_causal: Hint that ``memory_mask``, which must be given, is a causal mask. Default: ``False``.

        Returns:
            A tensor of the shape of ``tgt``.

        Raises:
            RuntimeError: The batch sizes differ, or a last size is not ``d_model``.
        """
        batched = src.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if batched and (tgt.dim() < 3 or src.size(batch_dim) != tgt.size(batch_dim)):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: Any, device: DeviceLike = None, dtype: DType | None = None) -> Any:
        """Returns an additive causal mask: 0 on and below the diagonal, minus infinity above it.

        Args:
            sz: Number of rows and columns.
            device: Device of the mask. Default: the default device.
            dtype: Dtype of the mask. Default: the default dtype.

        Returns:
            A tensor of shape ``(sz, sz)``.

        Example:
            >>> torch.nn.Transformer.generate_square_subsequent_mask(3)
            tensor([[0., -inf, -inf],
                    [0., 0., -inf],
                    [0., 0., 0.]])
        """
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self):
        for parameter in self.parameters():
            if parameter.dim() > 1:
                xavier_uniform_(parameter)
