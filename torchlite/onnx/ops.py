"""`torch.onnx.ops`: ONNX's own ops in a program, for export.

>>> import torchlite as torch
>>> class Net(torch.nn.Module):
...     def forward(self, x):
...         return torch.onnx.ops.symbolic("own::Cube", (x,), {"power": 3}, dtype=x.dtype, shape=x.shape, version=1)
>>> Net()(torch.ones(2))  # the op is unknown here
tensor([0., 0.])
>>> program = torch.onnx.export(Net(), (torch.ones(2),))
>>> torch.onnx.load(program.to_bytes(), custom_ops={("own", "Cube"): lambda x, power: x**power})(torch.full((2,), 2.0))
tensor([8., 8.])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite._settings.module_dir import make_module_dir

from . import _import as _loaded
from ._element_types import NARROW, NUMBERS, dtype_of

__all__ = ["aten_decompositions", "attention", "rotary_embedding", "symbolic", "symbolic_multi_out"]

_REST = (
    "str[] attr_keys, str[] attr_types, int[][] attr_pos, int[] attr_ints, float[] attr_floats, str[] attr_strs, "
    'str[] metadata_props_keys, str[] metadata_props_values, str domain="", int? version=None'
)
_ATTENTION = (
    "(Tensor Q, Tensor K, Tensor V, Tensor? attn_mask=None, Tensor? past_key=None, Tensor? past_value=None, *, "
    "bool is_causal=False, SymInt kv_num_heads=0, SymInt q_num_heads=0, SymInt qk_matmul_output_mode=0, "
    "float? scale=None, float softcap=0., SymInt? softmax_precision=None) -> (Tensor, Tensor, Tensor, Tensor)"
)
_ROTARY = (
    "(Tensor x, Tensor cos_cache, Tensor sin_cache, Tensor? position_ids=None, *, bool interleaved=False, "
    "SymInt num_heads=0, SymInt rotary_embedding_dim=0) -> Tensor"
)
_KINDS = {"i": int, "f": float, "s": str}
_VALID = [number for name, number in NUMBERS.items() if number and name not in NARROW and name != "string"]


def _make_empty_output(number: int, shape: Sequence[Any], like: Sequence[Any]) -> Tensor:
    """Return zeros of the declared type and shape on the device of an input."""
    device = next((x.device for x in like if isinstance(x, Tensor)), None)
    return torch.zeros(list(shape), dtype=_to_dtype(number), device=device)


def _to_dtype(number: int) -> Any:
    try:
        return dtype_of(number)
    except ValueError:
        raise RuntimeError(f"{number} is invalid as an ONNX data type. Valid values are {_VALID}") from None


def _define_single_out(inputs: Any, op_type: str, onnx_dtype: int, *, shape: Any, **about: Any) -> Tensor:
    return _make_empty_output(onnx_dtype, shape, inputs)


def _define_multi_out(inputs: Any, op_type: str, onnx_dtypes: Any, *, shapes: Any, **about: Any) -> list[Tensor]:
    return [_make_empty_output(number, shape, inputs) for number, shape in zip(onnx_dtypes, shapes, strict=True)]


def _run_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Any = None, past_key: Any = None, past_value: Any = None, *,
    is_causal: bool = False, kv_num_heads: int = 0, q_num_heads: int = 0, qk_matmul_output_mode: int = 0,
    scale: float | None = None, softcap: float = 0.0, softmax_precision: int | None = None,
) -> Any:  # fmt: skip
    from ._import.attention import attention as run

    found = run(
        q, k, v, mask, past_key, past_value, is_causal=is_causal, kv_num_heads=kv_num_heads or None,
        q_num_heads=q_num_heads or None, qk_matmul_output_mode=qk_matmul_output_mode, scale=scale, softcap=softcap,
        softmax_precision=softmax_precision, outputs=4,
    )  # fmt: skip
    return tuple(x.clone() for x in found)  # results must not alias each other or inputs


def _run_rotary_embedding(
    x: Tensor, cos: Tensor, sin: Tensor, positions: Any = None, *, interleaved: bool = False, num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Tensor:  # fmt: skip
    from ._import.attention import rotary_embedding as run

    return run(
        x, cos, sin, positions, interleaved=interleaved, num_heads=num_heads or None,
        rotary_embedding_dim=rotary_embedding_dim,
    ).clone()  # fmt: skip


def _define_op(name: str, schema: str, function: Callable) -> Any:
    made = torch.library.custom_op(name, function, mutates_args=(), schema=schema)
    made.register_fake(function)
    return made


_loaded.register_all()
_symbolic = _define_op(
    "onnx_symbolic::_symbolic",
    f"(Tensor?[] inputs, str op_type, int onnx_dtype, *, SymInt[] shape, {_REST}) -> Tensor", _define_single_out,
)  # fmt: skip
_symbolic_multi_out = _define_op(
    "onnx_symbolic::_symbolic_multi_out",
    f"(Tensor?[] inputs, str op_type, int[] onnx_dtypes, *, SymInt[][] shapes, {_REST}) -> Tensor[]", _define_multi_out,
)  # fmt: skip
_attention = _define_op("onnx::Attention.opset23", _ATTENTION, _run_attention)
_define_op("onnx::RotaryEmbedding.opset23", _ROTARY, _run_rotary_embedding)


def aten_decompositions() -> dict[Any, Callable]:
    """Return decompositions of this module's ops to torch ops, for `run_decompositions`."""
    return {
        torch.ops.onnx.Attention.opset23: _run_attention,
        torch.ops.onnx.RotaryEmbedding.opset23: _run_rotary_embedding,
    }


def _encode_attributes(attrs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return attributes as lists of plain values. Raise ValueError for an empty list and for unsupported types."""
    found: dict[str, Any] = {
        "attr_keys": [], "attr_types": [], "attr_pos": [], "attr_ints": [], "attr_floats": [], "attr_strs": [],
    }  # fmt: skip
    fields = {"i": "attr_ints", "f": "attr_floats", "s": "attr_strs"}
    for key, value in (attrs or {}).items():
        several = isinstance(value, Sequence) and not isinstance(value, str)
        if several and not value:
            raise ValueError(f"Empty sequence for attribute {key}")
        items = list(value) if several else [value]
        kind = next((k for k, plain in _KINDS.items() if all(isinstance(item, plain) for item in items)), "")
        if not kind and all(isinstance(item, (int, float)) for item in items):
            kind = "f"
        if not kind:
            raise ValueError(f"Unsupported attribute type for {key}: {type(value)}")
        values = found[fields[kind]]
        found["attr_keys"].append(key)
        found["attr_types"].append(kind + "s" * several)
        found["attr_pos"].append([len(values), len(values) + len(items)])
        values += [_KINDS[kind](item) for item in items]
    return found


def _describe_value(
    domain_op: str, attrs: Any, version: int | None, metadata: Mapping[str, str] | None
) -> tuple[str, dict]:
    domain, _, name = domain_op.rpartition("::")
    props = dict(metadata or {})
    rest = {"metadata_props_keys": list(props), "metadata_props_values": list(props.values())}
    return name, {**_encode_attributes(attrs), **rest, "domain": domain, "version": version}


def _element_type_number(dtype: Any) -> int:
    if isinstance(dtype, int):
        _to_dtype(dtype)
        return dtype
    return NUMBERS[str(dtype).rpartition(".")[2]]


def symbolic(
    domain_op: str, /, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any] | None = None, *, dtype: Any,
    shape: Sequence[Any], version: int | None = None, metadata_props: Mapping[str, str] | None = None,
) -> Tensor:  # fmt: skip
    """Add a node "domain::Name" to the exported model. Executed here, it returns zeros of `dtype` (torch's, or ONNX's
    number) and `shape`. `attrs` are numbers, strings and lists of them; `version` is that of the domain.
    """
    name, about = _describe_value(domain_op, attrs, version, metadata_props)
    return torch.ops.onnx_symbolic._symbolic(
        list(inputs), name, _element_type_number(dtype), shape=list(shape), **about
    )


def symbolic_multi_out(
    domain_op: str, /, inputs: Sequence[Tensor | None], attrs: Mapping[str, Any] | None = None, *,
    dtypes: Sequence[Any], shapes: Sequence[Sequence[Any]], version: int | None = None,
    metadata_props: Mapping[str, str] | None = None,
) -> Sequence[Tensor]:  # fmt: skip
    """Add a node like `symbolic` with one output for each of `dtypes` and `shapes`."""
    if len(shapes) != len(dtypes):
        raise RuntimeError(f"Number of shapes ({len(shapes)}) must match number of dtypes ({len(dtypes)})")
    name, about = _describe_value(domain_op, attrs, version, metadata_props)
    kinds, sizes = [_element_type_number(dtype) for dtype in dtypes], [list(shape) for shape in shapes]
    return torch.ops.onnx_symbolic._symbolic_multi_out(list(inputs), name, kinds, shapes=sizes, **about)


def rotary_embedding(
    X: Tensor, cos_cache: Tensor, sin_cache: Tensor, position_ids: Tensor | None = None, *, interleaved: bool = False,
    num_heads: int = 0, rotary_embedding_dim: int = 0,
) -> Tensor:  # fmt: skip
    """Apply ONNX's RotaryEmbedding of opset 23 to `X` (batch, heads, time, size), or (batch, time, heads * size) with
    `num_heads`.
    """
    return torch.ops.onnx.RotaryEmbedding.opset23(
        X, cos_cache, sin_cache, position_ids, interleaved=interleaved, num_heads=num_heads,
        rotary_embedding_dim=rotary_embedding_dim,
    )  # fmt: skip


def attention(
    Q: Tensor, K: Tensor, V: Tensor, attn_mask: Tensor | None = None, past_key: Tensor | None = None,
    past_value: Tensor | None = None, *, is_causal: bool = False, kv_num_heads: int = 0, q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0, scale: float | None = None, softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Apply ONNX's Attention of opset 23. Return the result, present keys and values, and scores as
    `qk_matmul_output_mode` selects. Three-dimensional inputs need `q_num_heads` and `kv_num_heads`.
    """
    return torch.ops.onnx.Attention.opset23(
        Q, K, V, attn_mask, past_key, past_value, is_causal=is_causal, kv_num_heads=kv_num_heads,
        q_num_heads=q_num_heads, qk_matmul_output_mode=qk_matmul_output_mode, scale=scale, softcap=softcap,
        softmax_precision=softmax_precision,
    )  # fmt: skip


__dir__ = make_module_dir(globals())
