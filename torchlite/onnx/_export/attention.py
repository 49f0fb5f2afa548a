"""Export rules of scaled dot product attention."""

from __future__ import annotations

import math

from ..errors import OnnxExporterError
from .graph_builder import OnnxGraphBuilder, WriterValue, translates


@translates("aten.scaled_dot_product_attention")
def attention(
    w: OnnxGraphBuilder, q: WriterValue, k: WriterValue, v: WriterValue, mask: WriterValue | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, *,
    scale: float | None = None, enable_gqa: bool = False,
) -> str:  # fmt: skip
    head = q.sizes[-1]
    if scale is None:
        if head is None:
            raise OnnxExporterError("scaled_dot_product_attention: heads of no fixed size")
        scale = 1 / math.sqrt(head)
    if enable_gqa and q.sizes[-3] != k.sizes[-3]:
        k, v = (_repeat_heads(w, x, (q.sizes[-3] or 0) // (x.sizes[-3] or 1)) for x in (k, v))
    order = [*range(k.ndim - 2), k.ndim - 1, k.ndim - 2]
    root = w.constant(math.sqrt(scale), q.dtype)
    scores = w.op("MatMul", w.op("Mul", q, root), w.op("Mul", w.permute(k, order), root))
    lowest = w.constant(-math.inf, q.dtype)
    if is_causal:
        rows, columns = w.size(q, q.ndim - 2), w.size(k, k.ndim - 2)
        whole = w.op("Expand", w.constant(1, "int64"), w.ints([rows, columns]))
        seen = w.cast(w.op("Trilu", whole, upper=0), "bool", "int64")
        scores = w.op("Where", seen, scores, lowest)
    blind = None
    if mask is not None:
        if mask.dtype == "bool":
            scores, blind = w.op("Where", mask, scores, lowest), w.op("Not", mask)
        else:
            scores = w.op("Add", scores, mask)
    weights = w.op("Softmax", scores, axis=-1)
    if blind is not None:  # a fully masked row is NaN after softmax, and zero in attention
        weights = w.op("Where", w.op("IsNaN", weights), w.constant(0, q.dtype), weights)
    if dropout_p:
        weights = w.op("Dropout", weights, w.constant(dropout_p, "float32"), w.constant(True, "bool"))
    return w.op("MatMul", weights, v)


def _repeat_heads(w: OnnxGraphBuilder, x: WriterValue, times: int) -> WriterValue:
    sizes = [w.size(x, d) for d in range(x.ndim)]
    repeats = [1] * (x.ndim + 1)
    repeats[x.ndim - 2] = times
    wide = w.op("Tile", w.unsqueeze(x, x.ndim - 2), w.ints(repeats))
    heads = w.product([sizes[-3], times])
    name = w.reshape(wide, [*sizes[:-3], heads, *sizes[-2:]])
    return WriterValue(name, x.dtype, (*x.sizes[:-3], heads if isinstance(heads, int) else None, *x.sizes[-2:]))


@translates("aten._scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    w: OnnxGraphBuilder, q: WriterValue, k: WriterValue, v: WriterValue, dropout_p: float = 0.0,
    is_causal: bool = False, *, attn_mask: WriterValue | None = None, scale: float | None = None,
) -> list[str | None]:  # fmt: skip
    return [attention(w, q, k, v, attn_mask, dropout_p, is_causal, scale=scale), None]


@translates("aten._scaled_dot_product_attention_math")
def attention_math(
    w: OnnxGraphBuilder, q: WriterValue, k: WriterValue, v: WriterValue, attn_mask: WriterValue | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> list[str | None]:  # fmt: skip
    return [attention(w, q, k, v, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa), None]
