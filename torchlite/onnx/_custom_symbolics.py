"""Custom symbolic functions: adapts those of `register_custom_op_symbolic` to export rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._export.graph_builder import OnnxGraphBuilder, WriterValue, make_tensor
from ._export.program_to_model import as_array

SYMBOLICS: dict[tuple[str, int], Callable] = {}
_SUFFIXES: dict[str, Callable] = {"i": int, "f": float, "s": str, "t": lambda value: make_tensor("", *as_array(value))}


class GraphContext:
    """Graph under construction, as passed to a symbolic function."""

    def __init__(self, writer: OnnxGraphBuilder) -> None:
        self._writer, self.opset = writer, writer.version

    def op(self, opname: str, *args: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node: `g.op("Add", x, y)`, `g.op("domain::Name", x, alpha_f=0.1)`. Attribute names end with their kind:
        `_i`, `_f`, `_s`, `_t`.
        """
        domain, _, name = opname.rpartition("::")
        domain = "" if domain in ("onnx", "ai.onnx") else domain
        given = {}
        for key, value in attributes.items():
            plain, _, suffix = key.rpartition("_")
            if suffix in _SUFFIXES and plain:
                kind = _SUFFIXES[suffix]
                key, value = plain, [kind(v) for v in value] if isinstance(value, (list, tuple)) else kind(value)
            given[key] = value
        if domain:
            self._writer.domains.setdefault(domain, 1)
        known = next((a for a in args if isinstance(a, WriterValue)), None)
        names = self._writer.op(name, *(self._to_value_name(a) for a in args), outputs=outputs, domain=domain, **given)
        dtype, sizes = (known.dtype, known.sizes) if known is not None else ("float32", ())
        return WriterValue(names, dtype, sizes) if outputs == 1 else [WriterValue(n, dtype, sizes) for n in names]

    def _to_value_name(self, value: Any) -> Any:
        if isinstance(value, (WriterValue, str)) or value is None:
            return value
        if isinstance(value, (list, tuple)):
            return self._writer.ints(value)
        kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
        return self._writer.put(value, kind)


def to_export_rule(function: Callable) -> Callable:
    """Return a symbolic function of a graph as an export rule."""

    def write(writer: OnnxGraphBuilder, *args: Any, **kwargs: Any) -> Any:
        found = function(GraphContext(writer), *args, **kwargs)
        return list(found) if isinstance(found, tuple) and not isinstance(found, WriterValue) else found

    return write
