"""Draws graphs with Graphviz."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import torchlite as torch

from ...nn.modules.module import Module
from .._codegen import _source_comment
from .._compatibility import compatibility
from ..graph_module import GraphModule, _get_attr
from ..node import Node, _format_arg, _get_qualified_name
from ..operator_schemas import normalize_function
from .shape_prop import TensorMetadata

__all__ = ["DotGraph", "FxGraphDrawer"]

_FILLS = {
    "placeholder": "AliceBlue", "call_module": "LemonChiffon1", "get_attr": "LightGrey", "output": "PowderBlue",
}  # fmt: skip
_BY_TARGET = (
    "CadetBlue1 Coral DarkOliveGreen1 DarkSeaGreen1 GhostWhite Khaki1 LavenderBlush1 LightSkyBlue MistyRose1 "
    "PaleTurquoise2 PeachPuff1 Salmon Thistle1 Wheat1"
).split()


class DotGraph:
    """Graph in the DOT language. `to_string()` returns its text, `write(path)` writes it. `write_svg` and `write_png`
    run Graphviz's `dot`, which must be installed.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str] = []

    def add_node(self, name: str, **attributes: str) -> None:
        """Add a node."""
        self.lines.append(f"{_quote(name)} [{_format_attributes(attributes)}];")

    def add_edge(self, source: str, goal: str) -> None:
        """Add an edge."""
        self.lines.append(f"{_quote(source)} -> {_quote(goal)};")

    def to_string(self) -> str:
        """Return the DOT text."""
        return "\n".join([f"digraph {_quote(self.name)} {{", "rankdir=TB;", *self.lines, "}", ""])

    def write(self, path: Any, prog: Any = None, format: str = "raw") -> bool:
        """Write the DOT text, or `dot`'s rendering, to a file."""
        made = self.to_string().encode() if format in ("raw", "dot") else self.create(prog, format)
        Path(path).write_bytes(made)
        return True

    def create(self, prog: Any = None, format: str = "svg") -> bytes:
        """Return `dot`'s rendering. Raise RuntimeError if it is not installed or fails."""
        try:
            done = subprocess.run(
                [prog or "dot", f"-T{format}"], input=self.to_string().encode(), capture_output=True, check=True
            )
        except FileNotFoundError:
            raise RuntimeError(
                f"FxGraphDrawer: {format} pictures are made by Graphviz's program `dot`, which is not installed; "
                "write(path) writes the graph's text"
            ) from None
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"dot: {error.stderr.decode(errors='replace').strip()}") from None
        return done.stdout

    def write_svg(self, path: Any, **_: Any) -> bool:
        """Write an SVG file."""
        return self.write(path, format="svg")

    def write_png(self, path: Any, **_: Any) -> bool:
        """Write a PNG file."""
        return self.write(path, format="png")

    def write_dot(self, path: Any, **_: Any) -> bool:
        """Write the DOT text."""
        return self.write(path)

    write_raw = write_dot

    def __str__(self) -> str:
        return self.to_string()


def _quote(text: str) -> str:
    return '"' + text.replace('"', r"\"") + '"'


def _format_attributes(given: dict[str, str]) -> str:
    return ", ".join(f"{name}={_quote(value)}" for name, value in given.items())


def _escape(text: str) -> str:
    """Return text escaped for record labels."""
    for sign in "{}|<>":
        text = text.replace(sign, f"\\{sign}")
    return text


@compatibility(is_backward_compatible=False)
class FxGraphDrawer:
    """Draw a module's graph and those of its submodules.

    ignore_getattr: omit attributes. ignore_parameters_and_buffers: omit weights. skip_node_names_in_args: show
    constants only among arguments. parse_stack_trace: show source locations. dot_graph_shape: shape of nodes.
    normalize_args: show arguments by name.

    >>> import torchlite as torch
    >>> from torchlite.fx.passes.graph_drawer import FxGraphDrawer
    >>> drawer = FxGraphDrawer(torch.fx.symbolic_trace(lambda x: torch.relu(x)), "picture")
    >>> print(drawer.get_dot_graph().to_string().splitlines()[-2])
    "relu" -> "output";
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        self._name, self.dot_graph_shape, self.normalize_args = name, dot_graph_shape or "record", normalize_args
        self._skips_attributes, self._skips_weights = ignore_getattr, ignore_parameters_and_buffers
        self._skips_names, self._shows_place = skip_node_names_in_args, parse_stack_trace
        self._dot_graphs = {name: self._to_dot(graph_module, name)}
        for node in graph_module.graph.find_nodes(op="call_module"):
            module = _get_attr(graph_module, str(node.target))
            if isinstance(module, GraphModule):
                self._dot_graphs[f"{name}_{node.target}"] = self._to_dot(module, f"{name}_{node.target}")

    def get_dot_graph(self, submod_name: str | None = None) -> DotGraph:
        """Return the drawing of the module or a submodule."""
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> DotGraph:
        """Return the drawing of the module."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> DotGraph:
        """Return the drawing of a submodule."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, DotGraph]:
        """Return all drawings by name."""
        return self._dot_graphs

    def _get_node_style(self, node: Node) -> dict[str, str]:
        """Return a node's style; subclasses can override it."""
        fill = _FILLS.get(node.op)
        if fill is None:
            name = node._pretty_print_target(node.target)
            fill = _BY_TARGET[int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % len(_BY_TARGET)]
        return {"shape": self.dot_graph_shape, "fillcolor": fill, "style": "filled,rounded", "fontcolor": "#000000"}

    def _typename(self, target: Any) -> str:
        if isinstance(target, Module):
            return torch.typename(target)
        return target if isinstance(target, str) else _get_qualified_name(target)

    def _get_node_label(self, module: Any, node: Node) -> str:
        """Return a node's label."""
        parts = [f"name=%{node.name}", f"op_code={node.op}"]
        if node.op == "call_module":
            leaf = _get_attr(module, str(node.target))
            parts.append(_escape(self._typename(leaf)))
            parts += [_escape(f"{name}: {getattr(leaf, name)}") for name in getattr(leaf, "__constants__", ())]
        else:
            parts.append(f"target={_escape(self._typename(node.target))}")
            parts += self._format_arguments(node)
            parts.append(f"num_users={len(node.users)}")
        parts += self._tensor_meta_to_label(node.meta.get("tensor_meta"))
        if self._shows_place and node.stack_trace is not None:
            parts.append(_escape(_source_comment(node.stack_trace)))
        return "{" + "|".join(parts) + r"\n}"

    def _format_arguments(self, node: Node) -> list[str]:
        args, kwargs = node.args, dict(node.kwargs)
        if self.normalize_args and node.op == "call_function":
            try:
                found = normalize_function(node.target, args, kwargs, normalize_to_only_use_kwargs=True)  # type: ignore[arg-type]
            except RuntimeError:
                found = None
            args, kwargs = (args, kwargs) if found is None else found
        shown = {
            "args": [_format_arg(arg, max_list_len=8) for arg in args],
            "kwargs": [f"{name}: {_format_arg(arg, max_list_len=8)}" for name, arg in kwargs.items()],
        }
        lines = []
        for kind, texts in shown.items():
            texts = [text for text in texts if not (self._skips_names and "%" in text)]
            if texts:
                lines.append(_escape(f"{kind}=({', '.join(texts)})"))
        return lines

    def _tensor_meta_to_label(self, meta: Any) -> list[str]:
        if isinstance(meta, TensorMetadata):
            names = ("dtype", "shape", "requires_grad", "stride")
            shown = (meta.dtype, tuple(meta.shape), meta.requires_grad, meta.stride)
            return [_escape(f"{name}={value}") for name, value in zip(names, shown, strict=True)]
        parts = meta.values() if isinstance(meta, dict) else meta if isinstance(meta, (list, tuple)) else ()
        return [line for part in parts for line in self._tensor_meta_to_label(part)]

    def _to_dot(self, module: Any, name: str) -> DotGraph:
        made = DotGraph(name)
        nodes = [node for node in module.graph.nodes if not (self._skips_attributes and node.op == "get_attr")]
        for node in nodes:
            made.add_node(node.name, label=self._get_node_label(module, node), **self._get_node_style(node))
            if node.op == "call_module" and not self._skips_weights:
                self._format_weights(made, module, node)
        for node in nodes:
            for user in node.users:
                made.add_edge(node.name, user.name)
        return made

    def _format_weights(self, made: DotGraph, module: Any, node: Node) -> None:
        leaf = _get_attr(module, str(node.target))
        if isinstance(leaf, GraphModule):
            return
        style = {"shape": self.dot_graph_shape, "fillcolor": "Salmon", "style": "filled,rounded"}
        for kind, values in (("parameter", leaf.named_parameters()), ("buffer", leaf.named_buffers())):
            for name, value in values:
                said = f"{value.dtype}{list(value.shape)}"
                label = "{" + _escape(f"{node.name}.{name}") + f"|op_code=get_{kind}|" + _escape(said) + r"\n}"
                made.add_node(f"{node.name}.{name}", label=label, **style)
                made.add_edge(f"{node.name}.{name}", node.name)
