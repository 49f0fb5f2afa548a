"""Loads a model file of any supported format as a module, with its inputs and outputs."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import torchlite as torch
from torchlite._serialization.file_formats import detect_file_format


@dataclasses.dataclass
class Value:
    """Input or output: its name and, if the file has them, its dtype and sizes (a name for a dynamic size)."""

    name: str
    dtype: Any = None
    shape: tuple[int | str, ...] | None = None

    def __str__(self) -> str:
        sizes = "any shape" if self.shape is None else f"[{', '.join(map(str, self.shape))}]"
        return f"{self.name}  {'any dtype' if self.dtype is None else str(self.dtype).rpartition('.')[2]} {sizes}"


@dataclasses.dataclass
class Model:
    """Loaded model. `graph` is None for a file with a program instead; `example` has the file's arguments, `program` is
    torch.export's.
    """

    path: str
    kind: str
    module: Any
    inputs: list[Value]
    outputs: list[Value]
    graph: Any = None
    example: tuple | None = None
    program: Any = None


def read(path: str, device: str = "cpu") -> Model:
    """Load a model on a device. OSError, ValueError or RuntimeError for an invalid file."""
    kind = detect_file_format(path)
    if kind == "checkpoint":
        raise ValueError(f"{path}: holds values that torch.save wrote, and no program; load it with torch.load")
    try:
        return {"pt2": _read_pt2, "torchscript": _read_torchscript, "onnx": _read_onnx}[kind](path, device)
    except (RuntimeError, ValueError, LookupError, pickle.UnpicklingError) as error:
        raise ValueError(f"{path}: {error}") from error


def _read_pt2(path: str, device: str) -> Model:
    from torchlite import export

    program = export.load(path)
    signature = program.graph_signature
    nodes = {node.name: node for node in program.graph.nodes}
    inputs = [
        _describe_node_value(name, nodes[name].meta.get("val")) for name in signature.user_inputs if name in nodes
    ]
    outputs = [
        _describe_node_value(name, nodes[name].meta.get("val")) for name in signature.user_outputs if name in nodes
    ]
    example = program.example_inputs[0] if program.example_inputs else None
    return Model(path, "pt2", program.module().to(device), inputs, outputs, program.graph, example, program)


def _describe_node_value(name: str, about: Any) -> Value:
    """Return the value described by a graph's node."""
    if not isinstance(about, torch.Tensor):
        return Value(name)
    sizes = [int(size) if type(size) is int else str(size) for size in about.shape]
    return Value(name, about.dtype, tuple(sizes))


def _read_torchscript(path: str, device: str) -> Model:
    module = torch.jit.load(path, map_location=device)
    arguments = module.forward.schema.arguments[1:]
    inputs = [Value(argument.name) for argument in arguments if not argument.has_default_value()]
    return Model(path, "torchscript", module, inputs, [])


def _read_onnx(path: str, device: str) -> Model:
    from torchlite import onnx

    module = onnx.load(path)
    about = module.meta["onnx"]

    def describe_values(names: list[str]) -> list[Value]:
        return [_make_typed_value(name, about["types"][name]) for name in names]

    return Model(
        path,
        "onnx",
        module.to(device),
        describe_values(about["inputs"]),
        describe_values(about["outputs"]),
        module.graph,
    )


def _make_typed_value(name: str, about: tuple[str, tuple[int | str, ...] | None] | None) -> Value:
    if about is None:
        return Value(name)
    dtype = getattr(torch, about[0], None)
    return Value(name, dtype if isinstance(dtype, torch.dtype) else None, about[1])
