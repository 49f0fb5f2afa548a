"""`torch.onnx.load`: reads an ONNX file as a module."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .._serialization.atomic_files import check_regular, open_regular
from .._serialization.file_formats import names_other_loaders
from . import _import
from ._element_types import NAMES, NARROW
from ._graph_to_fx import SPECIAL, GraphBuilder, ModelBuilder, input_node, missing_op_error, opset_versions
from ._import.casts import on_device_of, to_plain
from ._import.op_registry import Op
from ._protobuf import Message, parse_message
from ._tensor_data import TensorData
from .errors import OnnxFileError

if TYPE_CHECKING:
    from ..fx import GraphModule


def read_model(f: Any) -> tuple[Message, int, str | None]:
    """Return the model of a path, bytes or binary file, the file's bytes, and its folder."""
    if isinstance(f, (bytes, bytearray, memoryview)):
        return parse_message(f), memoryview(f).nbytes, None
    if isinstance(f, (str, os.PathLike)):
        with open_regular(f) as stream:
            data = stream.read()
        return parse_message(data), len(data), os.path.dirname(os.path.abspath(os.fspath(f)))
    data = check_regular(f).read()
    if not isinstance(data, (bytes, bytearray)):
        raise TypeError(f"onnx.load: a path, bytes or a binary file, but got {f.__class__.__name__}")
    return parse_message(data), len(data), _folder_of(f)


def _folder_of(stream: Any) -> str | None:
    """Return the folder of an open file. An archive member's name is no path."""
    name = getattr(stream, "name", None)
    try:
        if isinstance(name, str) and os.path.samestat(os.fstat(stream.fileno()), os.stat(name)):
            return os.path.dirname(os.path.abspath(name))
    except (AttributeError, OSError, ValueError):  # no descriptor, or the path is stale
        return None
    return None


@names_other_loaders("onnx")
def load(
    f: Any, *, parameters: Callable[[str], bool] | None = None,
    custom_ops: Mapping[tuple[str, str], Callable] | None = None, max_elements: int | None = None,
) -> GraphModule:  # fmt: skip
    """Loads an ONNX model as a `torch.fx.GraphModule` with its weights as parameters.

    Floating-point tensors with at least one dimension become trainable parameters under their names in the file. Batch
    norm statistics, quantization constants and all other tensors become buffers.

    The module takes the model's inputs in order, as tensors or NumPy arrays (strings as object arrays, sequences as
    lists). `module.meta["onnx"]` has names, types and sizes of inputs and outputs, opset versions and the producer.

    Args:
        f: A path, bytes, or a binary file.
        parameters: Function of a tensor's name that returns whether it is a parameter. Default: the rule above.
        custom_ops: Functions for ops that torchlite lacks, by ``(domain, name)``. They take the inputs in order and the
            attributes as keywords. Default: none.
        max_elements: Largest number of elements of four bytes that a call's values hold at once. All results of a call
            together are limited to 256 times this number. Loops can run one cheap node per six elements, and functions
            of the file can create one node per 64 elements. Default: 2**20, plus 8 per four bytes of the file, 256 per
            input element, and up to 2**28 for products of inputs with inputs and 50 of the file.

    Returns:
        A `torch.fx.GraphModule`, whose calls return the model's output, or a tuple of several.

    Raises:
        OnnxFileError: The file is invalid, has an unknown op or has external data outside its folder. A call raises it
            where a limit is exceeded, with the op and the number.
        TypeError: ``f`` is another object.

    Example:
        >>> import torchlite as torch
        >>> net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
        >>> program = torch.onnx.export(net, (torch.ones(1, 3),))
        >>> module = torch.onnx.load(program.to_bytes())
        >>> module(torch.ones(1, 3)).shape
        torch.Size([1, 2])
        >>> [name for name, _ in module.named_parameters()]
        ['0.weight', '0.bias']
    """
    model, size, folder = read_model(f)
    return build_module(model, size, folder, parameters, custom_ops, max_elements)


def build_module(
    model: Message, size: int, folder: str | None = None, parameters: Callable[[str], bool] | None = None,
    custom_ops: Mapping[tuple[str, str], Callable] | None = None, max_elements: int | None = None,
) -> Any:  # fmt: skip
    """Return the module of a model parsed from a file of `size` bytes."""
    graph = model.graph
    if graph is None:
        raise OnnxFileError("no ONNX model: there is no graph")
    if model.ir_version > 100 or not model.opset_import:
        raise OnnxFileError("no ONNX model: it says no version of its ops")
    custom = {key: Op(1, function, (), None, {}, True, False) for key, function in (custom_ops or {}).items()}
    shared = ModelBuilder(model, size, TensorData(folder), custom, parameters, int(max_elements or 0))
    _check_ops(model, custom)
    scope = GraphBuilder(shared, shared.versions)
    scope.initializers(graph)
    given = [item for item in graph.input if item.name not in scope.values]
    first = None
    for item in given:
        node = input_node(scope, item, f"the input {item.name[:100]!r}")
        first = node if first is None and node not in scope.host else first
        scope.add(item.name, node, "the inputs")
    scope.nodes(graph.node)
    results = []
    for item in graph.output:
        node = scope.tensor(scope.value(item.name, "the outputs"))
        if first is not None and node in scope.host:
            node = scope.call(on_device_of, node, first)
        results.append(scope.call(to_plain, node) if _is_narrow(item.type) else node)
    scope.graph.output(results[0] if len(results) == 1 else tuple(results))
    module = scope.module(graph.name or "Model")
    module.meta["onnx"] = {
        "inputs": [item.name for item in given],
        "outputs": [item.name for item in graph.output],
        "types": {item.name: _read_tensor_type(item.type) for item in (*given, *graph.output)},
        "opsets": dict(shared.versions),
        "ir_version": model.ir_version,
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "metadata": {entry.key: entry.value for entry in model.metadata_props},
    }
    module.max_elements = None if max_elements is None else int(max_elements)
    module.file_elements = (size + sum(shared.elements.named.values())) // 4
    return module.eval()


def _read_tensor_type(about: Message | None) -> tuple[str, tuple[int | str, ...] | None] | None:
    """Return the element type and sizes of a tensor, dynamic sizes by name or "?"; None for other types."""
    if about is None or not about.has("tensor_type") or not 0 < about.tensor_type.elem_type < len(NAMES):
        return None
    shape = about.tensor_type.shape
    sizes = None if shape is None else tuple(d.dim_value if d.dim_value > 0 else d.dim_param or "?" for d in shape.dim)
    return NAMES[about.tensor_type.elem_type], sizes


def _is_narrow(type: Message | None) -> bool:
    while type is not None and not type.has("tensor_type"):
        inner = type.sequence_type or type.optional_type
        type = None if inner is None else inner.elem_type
    return (
        type is not None and 0 < type.tensor_type.elem_type < len(NAMES) and NAMES[type.tensor_type.elem_type] in NARROW
    )


def _check_ops(model: Message, custom: Mapping[tuple[str, str], Any]) -> None:
    """Raise OnnxFileError that names all unknown ops."""
    own = {("" if f.domain == "ai.onnx" else f.domain, f.name) for f in model.functions}
    used: dict[tuple[str, str, int], None] = {}

    def check_nodes(nodes: list[Message], opsets: dict[str, int]) -> None:
        for node in nodes:
            domain = "" if node.domain == "ai.onnx" else node.domain
            key = (domain, node.op_type)
            if key not in own and key not in custom and key not in SPECIAL:
                used[(*key, opsets.get(domain, 0))] = None
            for item in node.attribute:
                for graph in (*([item.g] if item.g is not None else []), *item.graphs):
                    check_nodes(graph.node, opsets)

    check_nodes(model.graph.node, opset_versions(model.opset_import))
    for function in model.functions:
        check_nodes(function.node, opset_versions(function.opset_import))
    gone = [missing_op_error(*key) for key in used if key[2] and _import.find_op(*key) is None]
    if gone:
        rest = f", and {len(gone) - 10} others" if len(gone) > 10 else ""
        raise OnnxFileError("; ".join(text[:200] for text in gone[:10]) + rest)
