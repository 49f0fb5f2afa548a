"""Export rules of `torch.onnx.ops`: ONNX's own ops in a program."""

from __future__ import annotations

from typing import Any

from .._protobuf import Message
from ..errors import UnsupportedOperatorError
from .graph_builder import OnnxGraphBuilder, WriterValue, translates


@translates("onnx_symbolic._symbolic", "onnx_symbolic._symbolic_multi_out")
def symbolic(
    w: OnnxGraphBuilder, inputs: list, op_type: str, dtypes: Any, *, attr_keys: list, attr_types: list, attr_pos: list,
    attr_ints: list, attr_floats: list, attr_strs: list, metadata_props_keys: list, metadata_props_values: list,
    domain: str = "", version: int | None = None, shape: Any = None, shapes: Any = None,
) -> Any:  # fmt: skip
    lists = {"i": attr_ints, "f": attr_floats, "s": attr_strs}
    given = {}
    for key, kind, (begin, end) in zip(attr_keys, attr_types, attr_pos, strict=True):
        items = lists[kind[0]][begin:end]
        given[key] = items if len(kind) > 1 else items[0]
    if domain and (version is not None or domain not in w.domains):
        w.domains[domain] = version or 1
    count = len(dtypes) if shapes is not None else 1
    names = w.op(op_type, *inputs, outputs=count, domain=domain, **given)
    if metadata_props_keys:
        props = zip(metadata_props_keys, metadata_props_values, strict=True)
        w.nodes[-1].metadata_props = [Message("StringString", key=key, value=value) for key, value in props]
    return [names] if shapes is not None and count == 1 else names


def _require_opset_23(w: OnnxGraphBuilder, name: str) -> None:
    if w.version < 23:
        raise UnsupportedOperatorError(f"onnx::{name}", w.version, 23)


@translates("onnx.Attention.opset23")
def attention(w: OnnxGraphBuilder, *inputs: WriterValue, **attributes: Any) -> list[str]:
    _require_opset_23(w, "Attention")
    given = {key: value for key, value in attributes.items() if value or key == "scale" and value is not None}
    return w.op("Attention", *inputs, outputs=4, **given)


@translates("onnx.RotaryEmbedding.opset23")
def rotary_embedding(w: OnnxGraphBuilder, *inputs: WriterValue, **attributes: Any) -> str:
    _require_opset_23(w, "RotaryEmbedding")
    return w.op("RotaryEmbedding", *inputs, **{key: value for key, value in attributes.items() if value})
