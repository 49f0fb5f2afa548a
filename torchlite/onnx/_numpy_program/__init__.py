"""Writes an ONNX model as a Python module and a file of weights that need NumPy and nothing else.

`graph_reader` turns nodes into statements by the rules of `op_rules`, `layer_rules` and `control_rules`. `blocks`
divides the statements into functions, and `module_writer` writes them. `program_functions` has the functions that
programs contain.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, NamedTuple

import numpy as np

from .._element_types import NAMES
from .._protobuf import Message
from .._tensor_data import TensorData
from ..errors import UnsupportedOperatorError
from . import control_rules, layer_rules, op_rules
from .expressions import TOKEN, UnwritableError, shown
from .graph_reader import REFUSED_TYPES, GraphReader, live_statements, opset_of
from .module_writer import Described, ModuleWriter, Program, weights_file

__all__ = ["UnwritableError", "control_rules", "layer_rules", "onnx_model", "op_rules", "write_program"]

_OPSET = 18  # of models that are made of programs
_SIZE_NAME = re.compile(r"[A-Za-z_][\w.]*")


class WrittenProgram(NamedTuple):
    """Text of a module, its weights by name, and the bytes of their file: None for a model without weights."""

    text: str
    weights: dict[str, np.ndarray]
    archive: bytes | None


def write_program(model: Message, folder: str | None, source: str, module: str, version: str) -> WrittenProgram:
    """Return a model as a module. The name of its weights' file is the module's with `.npz`.

    Args:
        model: The model.
        folder: Folder of files with external tensors.
        source: Name of the file, for the module's docstring.
        module: Name of the module, an identifier.
        version: Version of torchlite.

    Raises:
        UnwritableError: The model has parts that NumPy cannot express; the message names all of them.
    """
    writer = ModuleWriter(read_program(model, folder, source), module, f"{module}.npz", version)
    if not writer.weights:
        return WrittenProgram(writer.source(""), {}, None)
    archive = weights_file(writer.weights)
    return WrittenProgram(writer.source(hashlib.sha256(archive).hexdigest()), writer.weights, archive)


def onnx_model(program: Any, inputs: list[str], outputs: list[str]) -> Message:
    """Return an exported program as an ONNX model. UnwritableError that names all ops without a rule."""
    from .. import export
    from .._export.program_to_model import ExportOptions
    from .._translate_program import find_inexpressible

    try:
        return export(program, (), input_names=inputs, output_names=outputs, opset_version=_OPSET, dynamo=True).model
    except UnsupportedOperatorError as error:
        nodes = find_inexpressible(program, ExportOptions(_OPSET, [], [], {}, {}, {}, True, False, ""))
        named = [f"{node.target} (node {shown(node.name)})" for node in nodes]
        raise UnwritableError(_refusal(named) if named else str(error)) from None


def _refusal(parts: list[str]) -> str:
    return f"NumPy programs cannot express {len(parts)} of its parts: " + "; ".join(parts)


def read_program(model: Message, folder: str | None, source: str) -> Program:
    """Return the statements of a model. UnwritableError that names all nodes that cannot be written."""
    graph = model.graph
    if graph is None:
        raise UnwritableError("there is no graph")
    reader = GraphReader(opset_of(model.opset_import), TensorData(folder))
    reader.functions.update(((function.domain, function.name), function) for function in model.functions)
    reader.initializers(graph)
    inputs = []
    for item in graph.input:
        if item.name in reader.values:
            continue
        variable = reader.variable("input")
        reader.values[item.name] = variable
        inputs.append(_described(reader, item, variable.number))
        shape = inputs[-1].shape
        if shape is not None:
            reader.known_shapes[variable.number] = [size if isinstance(size, int) else None for size in shape]
    reader.nodes(graph.node)
    outputs: list[Any] = []
    for item in graph.output:
        try:
            text = reader.text(reader.value(item.name))
        except UnwritableError as error:
            reader.refused[f"the output {shown(item.name)}: {error}"] = None
            continue
        outputs.append((_described(reader, item, -1), text))
    if reader.refused:
        raise UnwritableError(_refusal(list(reader.refused)))
    wanted = {int(number) for _, text in outputs for number in TOKEN.findall(text)}
    return Program(reader, inputs, outputs, source, live_statements(reader.statements, wanted))


def _described(reader: GraphReader, item: Message, number: int) -> Described:
    """Return an input or output with its type. A type that NumPy lacks is refused."""
    about = item.type
    if about is None or not about.has("tensor_type"):
        if number >= 0:
            reader.refused[f"the input {shown(item.name)}, which is no tensor"] = None
        return Described(item.name, number, "any", None)
    kind = about.tensor_type.elem_type
    name = NAMES[kind] if 0 < kind < len(NAMES) else "undefined"
    if name in REFUSED_TYPES:
        reader.refused[f"{'the input' if number >= 0 else 'the output'} {shown(item.name)} of {name}"] = None
    shape = about.tensor_type.shape
    if shape is None:
        return Described(item.name, number, name, None)
    sizes: list[int | str | None] = []
    for dim in shape.dim:
        text = dim.dim_param
        sizes.append(dim.dim_value if dim.dim_value > 0 else text if _SIZE_NAME.fullmatch(text) else None)
    return Described(item.name, number, name, sizes)
