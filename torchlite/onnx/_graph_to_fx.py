"""Converts an ONNX graph to an FX graph whose nodes call functions of `_import` or equivalent torch functions."""

from __future__ import annotations

import copy
import functools
import itertools
import keyword
import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import torchlite as torch
from torchlite._dispatch.autograd_graph import memory_counter_of
from torchlite.fx import Graph, GraphModule, Node
from torchlite.nn import Module, Parameter

from . import _import
from ._body_module import BodyModule
from ._element_types import NAMES, NARROW
from ._import import casts, control_flow, model_input_checks, sequences
from ._import.op_registry import Op
from ._import.resource_limits import more_with
from ._loaded_module import CountingCode, LoadedModule
from ._protobuf import Message
from ._tensor_data import TensorData
from ._torch_equivalents import CHECKED_RESULT, KnownResult, known_result_after, known_result_of, torch_equivalent
from .errors import OnnxFileError

OP_TYPE = "onnx_op_type"  # the key in a node's `meta` of the file's name for its op
_HOST_SIZE = 64  # maximum number of integers held on the host
# Limit of nodes from function expansion: a constant, plus a multiple per node and per bytes of the file. A node takes
# 1.2 kB.
_FREE_NODES, _TIMES, _NODE = 20_000, 4, 24
_MODULE = 20  # cost of a module in nodes
_ELEMENTS = 64  # elements of `max_elements` per node
_FREE_ITEMS = 1 << 17  # maximum number of argument items, in addition to one per byte of the file
_COMPILED = 1 << 13  # nodes and arguments beyond which graphs are interpreted: Python's compiler takes 11 kB per node
# Inputs by op that are never trainable.
_FIXED = {
    "BatchNormalization": (3, 4), "QuantizeLinear": (1, 2), "DequantizeLinear": (1, 2),
    "QLinearConv": (1, 2, 4, 5, 6, 7), "QLinearMatMul": (1, 2, 4, 5, 6, 7), "Clip": (1, 2), "Pad": (2,),
    "Resize": (1, 2), "Upsample": (1,),
}  # fmt: skip
# Ops whose result is always on the host.
_ON_HOST = {
    "Shape", "Size", "ConstantOfShape", "Range", "RandomNormal", "RandomUniform", "HannWindow", "HammingWindow",
    "BlackmanWindow", "MelWeightMatrix", "SequenceLength", "OptionalHasElement", "StringSplit", "RegexFullMatch",
    "TfIdfVectorizer", "LabelEncoder", "ImageDecoder", "SequenceAt", "Loop", "Scan", "If", "ConcatFromSequence",
}  # fmt: skip
_KINDS = {int: "an integer", float: "a number", str: "a string"}
_ATTRIBUTES = ("", "f", "i", "s", "t", "g", "floats", "ints", "strings", "tensors", "graphs", "sparse_tensor",
               "sparse_tensors", "tp", "type_protos")  # fmt: skip


class FileConstant(NamedTuple):
    """Tensor of the file. `trains`: it is a weight."""

    array: np.ndarray
    type: str
    name: str
    trains: bool = False

    @property
    def small(self) -> bool:
        """True if it is small enough for the host."""
        return self.array.size <= _HOST_SIZE and self.type in ("int64", "int32", "bool", "uint8")


class ModelBuilder:
    """Shared state of all graphs in a file of `size` bytes."""

    def __init__(
        self, model: Message, size: int, elements: TensorData, custom: dict[tuple[str, str], Op], trains: Any,
        max_elements: int,
    ) -> None:  # fmt: skip
        self.elements, self.custom, self.trains = elements, custom, trains
        self.functions: dict[tuple[str, str, str], Message] = {}
        for f in model.functions:
            key = _normalize_domain(f.domain), f.name, f.overload
            if key in self.functions:
                raise OnnxFileError(f"there are two functions {shorten_name(f.name)}")
            if len(set(f.input)) < len(f.input):
                raise OnnxFileError(f"the function {shorten_name(f.name)} has an input twice")
            self.functions[key] = f
        self.versions = opset_versions(model.opset_import)
        self.open: list[tuple] = []
        # Constants by message, and tensors by array, shared by all calls of a function.
        self.constants: dict[int, FileConstant] = {}
        self.tensors: dict[int, tuple[Any, np.ndarray]] = {}
        self.lists: dict[int, tuple[list, Any]] = {}
        count = len(model.graph.node) + len(model.graph.input)
        count += sum(len(f.node) + len(f.input) for f in model.functions)
        self.nodes_left = max(_FREE_NODES + _TIMES * count + size // _NODE, max_elements // _ELEMENTS)
        self.max_elements = self.nodes_left * _ELEMENTS
        self.items = _FREE_ITEMS + size
        self.code = _COMPILED

    def spend(self, count: int = 1) -> None:
        """Count nodes or similar. Raise OnnxFileError if nested functions create too many."""
        self.nodes_left -= count
        self.code -= count
        if self.nodes_left < 0:
            raise OnnxFileError(
                "functions inside functions make more nodes than a file of this size may; "
                f"{more_with(self.max_elements)}"
            )

    def spend_items(self, count: int) -> None:
        """Count inputs, outputs and list items, which each use of a function or constant repeats."""
        self.items -= count
        self.code -= count
        if self.items < 0:
            raise OnnxFileError("nodes have more inputs and elements of lists than a file of this size may")


def _normalize_domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def opset_versions(imports: list[Message]) -> dict[str, int]:
    """Return the opset version of each domain."""
    found: dict[str, int] = {}
    for entry in imports:
        if found.setdefault(_normalize_domain(entry.domain), entry.version) != entry.version:
            raise OnnxFileError(f"there are two versions of the ops of {shorten_name(entry.domain or 'ai.onnx')}")
    return found


def shorten_name(name: str) -> str:
    """Return a file's name shortened for error messages."""
    return repr(name if len(name) <= 100 else name[:100] + "...")


class GraphBuilder:
    """Builder of one graph. `around` is the enclosing graph of a control flow body."""

    def __init__(
        self,
        model: ModelBuilder,
        opsets: dict[str, int],
        around: GraphBuilder | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> None:
        self.model, self.opsets, self.around, self.attributes = model, opsets, around, attributes
        self.graph, self.root = Graph(), Module()
        self.values: dict[str, Any] = {}
        self.host: set[Node] = set()
        self.known: dict[Node, KnownResult] = {}
        self.lists: dict[int, Node] = {}  # by the list's source, which the model keeps alive
        self.paths: dict[int, Node] = {}  # by the array or list, which the model keeps alive
        self.names: set[str] = set()
        self.counts: dict[tuple[int, str], int] = {}
        self.before: list[Message] = []

    # -- graph construction

    def placeholder(self, name: str) -> Node:
        """Add an input."""
        plain = re.sub(r"\W", "_", name, flags=re.ASCII) or "input"
        if plain[0].isdigit() or plain[0] == "_" or keyword.iskeyword(plain) or plain in ("self", "torch"):
            plain = f"input_{plain.strip('_')}"
        self.model.spend()
        return self.graph.placeholder(self.unique(plain, self.names.__contains__))

    def unique(self, plain: str, taken: Any, place: int = 0) -> str:
        """Return a unique name. `place` separates the numbering of modules."""
        name, count = plain, self.counts.get((place, plain), 0)
        while taken(name):
            count += 1
            name = f"{plain}_{count}"
        self.counts[place, plain] = count
        self.names.add(name)
        return name

    def call(self, function: Any, *args: Any, host: bool = False, **kwargs: Any) -> Node:
        """Add a node."""
        self.model.spend()
        node = self.graph.call_function(function, args, kwargs)
        if host:
            self.host.add(node)
        return node

    def add(self, name: str, value: Any, what: str) -> None:
        """Bind a name to a value. Raise OnnxFileError if it is bound: ONNX is in SSA form."""
        if name:
            if name in self.values:
                raise OnnxFileError(f"{what}: there are two values {shorten_name(name)}")
            self.values[name] = value

    def value(self, name: str, what: str) -> Any:
        """Return the value of a name: a node, a constant, or None for "". Raise OnnxFileError if undefined."""
        if not name:
            return None
        if name not in self.values:
            raise OnnxFileError(f"{what}: there is no value {shorten_name(name)} before it")
        return self.values[name]

    def keep(self, name: str, value: Any) -> str:
        """Add a tensor or submodule to the graph's module, under its name as far as valid."""
        *path, last = [part for part in name.split(".") if part] or ["constant"]
        if len(path) > 20:
            path, last = [], "_".join([*path, last])
        module: Any = self.root
        places = []
        for part in path:
            part = _valid_name_part(part)
            inner = module._modules.get(part)
            if inner is None or isinstance(inner, GraphModule):
                part = self.free(module, part)
                inner = Module()
                module.add_module(part, inner)
            module = inner
            places.append(part)
        last = self.free(module, _valid_name_part(last))
        if isinstance(value, Parameter):
            module.register_parameter(last, value)
        elif isinstance(value, Module):
            module.add_module(last, value)
        else:
            module.register_buffer(last, value)
        return ".".join([*places, last])

    def free(self, module: Module, name: str) -> str:
        """Return an unused attribute name."""
        return self.unique(
            name, lambda taken: hasattr(module, taken) or taken in _reserved_attribute_names(), id(module)
        )

    def tensor(self, value: Any) -> Any:
        """Return a value as a node; constants become get_attr nodes."""
        if not isinstance(value, FileConstant):
            return value
        key = id(value.array)
        if key in self.paths:
            return self.paths[key]
        if value.type == "string" or value.small:
            self.model.tensors[key] = None, value.array
            values, sizes = self.constant_argument(value.array, value.array.ravel().tolist), list(value.array.shape)
            if value.type == "string":
                self.paths[key] = self.call(model_input_checks.make_string_array, values, sizes, host=True)
            else:
                self.paths[key] = self.call(model_input_checks.make_int_tensor, values, sizes, value.type, host=True)
        else:
            if key not in self.model.tensors:
                # separate from the message's buffer
                own = value.array.flags.writeable and value.array.flags.c_contiguous
                tensor = torch.from_numpy(value.array if own else np.array(value.array, order="C"))
                memory_counter_of(tensor).lent = False  # nobody else has the array
                self.model.tensors[key] = Parameter(tensor) if value.trains else tensor, value.array
            path = self.keep(value.name, self.model.tensors[key][0])
            node = self.graph.get_attr(path)
            self.paths[key] = self.call(casts.make_narrow, node, value.type) if value.type in NARROW else node
            self.known[self.paths[key]] = CHECKED_RESULT
        return self.paths[key]

    def constant_argument(self, source: Any, read: Callable[[], Any]) -> Any:
        """Return a parsed constant as an argument. All uses share a long list, which is a node."""
        key = id(source)
        if key in self.lists:
            return self.lists[key]
        values = self.model.lists[key][0] if key in self.model.lists else read()
        if not isinstance(values, list):
            return values
        if len(values) <= _HOST_SIZE:
            self.model.spend_items(len(values))
            return values
        values = self.model.lists.setdefault(key, (values, source))[0]
        name = self.free(self.root, "values")
        setattr(self.root, name, values)
        self.lists[key] = self.graph.get_attr(name)
        return self.lists[key]

    def constant(self, tensor: Message, name: str = "", trains: bool = False) -> FileConstant:
        """Add a tensor of the file. Unnamed ones get a unique name."""
        kept = self.model.constants.get(id(tensor))
        if kept is not None:
            self.names.add(kept.name)
            return kept
        array, type = self.model.elements.array(tensor)
        unique = name or f"constant_{len(self.paths)}_{len(self.names)}"
        self.names.add(unique)
        found = FileConstant(array, type, unique, trains and type.startswith(("float", "bfloat")) and array.ndim > 0)
        self.model.constants[id(tensor)] = found
        return found

    # -- conversion of a file's graph

    def initializers(self, graph: Message) -> None:
        """Add the graph's initializers."""
        self.model.spend_items(len(graph.initializer) + len(graph.sparse_initializer))
        fixed = {
            node.input[i]
            for node in graph.node
            for i in _FIXED.get(node.op_type, ())
            if i < len(node.input) and not node.domain
        }
        for tensor in graph.initializer:
            trains = tensor.name not in fixed and (self.model.trains is None or bool(self.model.trains(tensor.name)))
            self.add(tensor.name, self.constant(tensor, tensor.name, trains), "the initializers")
        for sparse in graph.sparse_initializer:
            if sparse.values is None or sparse.indices is None:
                raise OnnxFileError("a sparse initializer has no values or no indices")
            name = sparse.values.name
            sizes = [int(n) for n in sparse.dims]
            _check_sparse(self.constant(sparse.values), self.constant(sparse.indices), sizes, name)
            parts = [self.tensor(self.constant(part)) for part in (sparse.values, sparse.indices)]
            self.add(name, self.call(sequences.sparse_to_dense, *parts, sizes), "the sparse initializers")

    def nodes(self, nodes: list[Message]) -> None:
        """Add the graph's nodes in order."""
        for number, node in enumerate(nodes):
            self.model.spend()
            self.model.spend_items(len(node.input) + len(node.output) + len(node.attribute))
            what = f"node {number} ({shorten_name(node.name)}, {shorten_name(node.op_type)})"
            results = self.node(node, what)
            if results and isinstance(results[0], Node):
                # Of several outputs each is an item of the computing node's.
                made = results[0].args[0] if results[0].target is operator.getitem else results[0]
                made.meta.setdefault(OP_TYPE, node.op_type)
            for name, value in zip(node.output, results, strict=False):
                self.add(name, value, what)
            self.before.append(node)
            if len(node.output) > len(results) and any(node.output[len(results) :]):
                raise OnnxFileError(f"{what}: it has {len(node.output)} outputs, and the op {len(results)}")

    def node(self, node: Message, what: str) -> list[Any]:
        """Add one node's results."""
        domain = _normalize_domain(node.domain)
        attributes = self.read_attributes(node, what)
        values = [self.value(name, what) for name in node.input]
        function = self.model.functions.get((domain, node.op_type, node.overload))
        if function is not None:
            return self.function(function, values, attributes, node, what)
        if (domain, node.op_type) in _SPECIAL:
            results = _SPECIAL[domain, node.op_type](self, values, attributes, len(node.output), what)
            self.known |= {item: CHECKED_RESULT for item in results if isinstance(item, Node)}
            return results
        version = self.opsets.get(domain)
        if version is None:
            raise OnnxFileError(f"{what}: the file says no version of the ops of {domain or 'ai.onnx'!r}")
        found = self.model.custom.get((domain, node.op_type)) or _import.find_op(domain, node.op_type, version)
        if found is None:
            raise OnnxFileError(f"{what}: {missing_op_error(domain, node.op_type, version)}")
        return self.ordinary(found, node, values, attributes, what)

    def ordinary(self, op: Op, node: Message, values: list, attributes: dict[str, Any], what: str) -> list[Any]:
        """Add a node that calls a function."""
        while values and values[-1] is None:
            values.pop()
        unknown = set() if op.attributes is None else set(attributes) - op.attributes - {"consumed_inputs"}
        if unknown:
            raise OnnxFileError(f"{what}: the op has no attribute {shorten_name(min(unknown))}")
        if len(values) > len(op.inputs) and not op.rest:
            raise OnnxFileError(f"{what}: it has {len(values)} inputs, and the op {len(op.inputs)}")
        if any(not name.isidentifier() or keyword.iskeyword(name) for name in attributes):
            raise OnnxFileError(f"{what}: it has an attribute whose name is none")
        given = {k: v for k, v in attributes.items() if op.attributes is None or k in op.attributes}
        twice = set(given) & set(op.inputs[: len(values)])
        if twice:
            raise OnnxFileError(f"{what}: {shorten_name(min(twice))} is an attribute and an input")
        absent = [name for name in op.inputs[len(values) :] if name in op.required and name not in given]
        if absent:
            raise OnnxFileError(f"{what}: the input {absent[0]!r} of the op is missing")
        args = [self.argument(v, op, i) for i, v in enumerate(values)]
        kwargs = {name: self.attribute(value, what) for name, value in given.items()}
        for name, kind in op.kinds.items():
            value = kwargs.get(name, 0)
            if name in kwargs and not isinstance(value, (kind, int) if kind is float else kind):
                raise OnnxFileError(f"{what}: the attribute {name} is not {_KINDS[kind]}")
        count = max(len(node.output), 1)
        while count > 1 and not node.output[count - 1]:
            count -= 1
        if op.counts and count > 1:
            kwargs["outputs"] = count
        known = known_result_of(node.op_type, values, args, kwargs, self.known)
        if not node.domain or node.domain == "ai.onnx":
            shorter = torch_equivalent(node.op_type, self.opsets[""], values, args, kwargs, self.host, known)
            if shorter is not None:
                result = self.call(shorter[0], *shorter[1], **shorter[2])
                self.known[result] = known_result_after(node.op_type, known, True)
                return [result]
        data = [a for place, a in enumerate(args) if isinstance(a, Node) and _input_name(op, place) not in op.host]
        host = node.op_type in _ON_HOST or all(a in self.host for a in data)
        is_mixed = len(data) > 1 and any(a in self.host for a in data)
        function = op.on_common_device if is_mixed and op.on_common_device else op.function
        result = self.call(function, *args, host=host, **kwargs)
        self.known[result] = known_result_after(node.op_type, known, False)
        if count == 1:
            return [result]
        if not op.counts:
            raise OnnxFileError(f"{what}: it has {count} outputs, and the op 1")
        return self.parts(result, count, host)

    def parts(self, result: Node, count: int, host: bool) -> list[Node]:
        """Return the getitem nodes of several outputs."""
        found = [self.call(operator.getitem, result, i, host=host) for i in range(count)]
        self.known |= dict.fromkeys(found, self.known.get(result, CHECKED_RESULT))
        return found

    def argument(self, value: Any, op: Op, place: int) -> Any:
        """Return a value as a function argument: a constant for a numeric input becomes a Python value."""
        kind = op.host.get(_input_name(op, place))
        if kind is None or not isinstance(value, FileConstant) or value.type == "string":
            return self.tensor(value)
        if kind == "Number":
            return value.array.item() if value.array.size == 1 else self.tensor(value)
        return self.constant_argument(value.array, value.array.ravel().tolist)

    def read_attributes(self, node: Message, what: str) -> dict[str, Any]:
        """Return a node's attributes, with references to function attributes resolved."""
        found = {}
        for item in node.attribute:
            if item.name in found:
                raise OnnxFileError(f"{what}: there are two attributes {shorten_name(item.name)}")
            if item.ref_attr_name:
                if self.attributes is None:
                    raise OnnxFileError(f"{what}: {shorten_name(item.name)} refers to an attribute outside a function")
                if item.ref_attr_name in self.attributes:
                    found[item.name] = self.attributes[item.ref_attr_name]
                continue
            found[item.name] = item
        return found

    def attribute(self, item: Any, what: str) -> Any:
        """Return an attribute as a function argument."""
        value = self.constant_argument(item, lambda: attribute_value(item, what))
        if isinstance(value, Message) and value._kind == "Tensor":
            return self.tensor(self.constant(value))
        if isinstance(value, Message) and value._kind == "Graph":
            module, reads = self.body(value, what)
            if reads:
                raise OnnxFileError(f"{what}: the graph of {shorten_name(item.name)} reads values around it")
            return module
        if isinstance(value, Message):
            return None
        if isinstance(value, str):
            self.model.spend_items(len(value) // 8)
        return value

    def function(self, function: Message, values: list, attributes: dict, node: Message, what: str) -> list[Any]:
        """Inline a call of a function defined in the file."""
        key = (function.domain, function.name, function.overload)
        if key in self.model.open:
            raise OnnxFileError(f"{what}: the function {shorten_name(function.name)} calls itself")
        if len(self.model.open) > 50:
            raise OnnxFileError(f"{what}: functions inside more than 50 others")
        if len(values) > len(function.input):
            raise OnnxFileError(f"{what}: it has {len(values)} inputs, and the function {len(function.input)}")
        self.model.spend(
            len(function.input) + len(function.output) + len(function.attribute_proto) + len(function.opset_import)
        )
        bound = {item.name: item for item in function.attribute_proto}
        bound |= {name: value for name, value in attributes.items() if name in function.attribute or name in bound}
        inner = copy.copy(self)  # same graph, separate names
        inner.opsets, inner.around, inner.attributes = opset_versions(function.opset_import), None, bound
        inner.values, inner.before = {}, []
        for name, value in itertools.zip_longest(function.input, values):
            inner.values[name] = value
        self.model.open.append(key)
        inner.nodes(function.node)
        self.model.open.pop()
        return [inner.value(name, f"the function {shorten_name(function.name)}") for name in function.output]

    def body(self, graph: Message, what: str) -> tuple[Node, tuple]:
        """Return a control flow body: its module, and its outer references."""
        inner = GraphBuilder(self.model, self.opsets, self, self.attributes)
        formal = {item.name for item in graph.initializer}
        for item in graph.input:
            if item.name not in formal:
                formal_input = inner.placeholder(item.name)
                inner.add(item.name, formal_input, what)
                inner.host.add(formal_input)
                inner.known[formal_input] = CHECKED_RESULT
        reads = []
        for name in free_names(graph):
            value = self.values.get(name)
            if value is None:
                continue  # the node that reads it raises
            if isinstance(value, FileConstant) and (value.small or value.type == "string"):
                inner.values[name] = value
            else:
                inner.values[name] = inner.placeholder(name)
                inner.host.add(inner.values[name])
                inner.known[inner.values[name]] = CHECKED_RESULT
                reads.append(self.tensor(value))
        inner.initializers(graph)
        inner.nodes(graph.node)
        inner.finish([item.name for item in graph.output], what)
        path = self.keep(graph.name or "body", inner.module("Body", BodyModule))
        return self.graph.get_attr(path), tuple(reads)

    def finish(self, outputs: list[str], what: str) -> None:
        """Add the graph's output."""
        found = tuple(self.tensor(self.value(name, f"the outputs of {what}")) for name in outputs)
        self.graph.output(found[0] if len(found) == 1 else found)

    def module(self, name: str, kind: type[LoadedModule] = LoadedModule) -> LoadedModule:
        """Return the graph as a module of a class."""
        self.model.spend(_MODULE)
        called = re.sub(r"\W", "_", name, flags=re.ASCII)[:60] or "Graph"
        self.graph.set_codegen(CountingCode(compiled=self.model.code >= 0))
        return kind(self.root, self.graph, called)


def _input_name(op: Op, place: int) -> str:
    """Return the name of an op's input, "" for one of several that have none."""
    return op.inputs[place] if place < len(op.inputs) else ""


def _check_sparse(values: FileConstant, indices: FileConstant, sizes: list[int], name: str) -> None:
    count, wide = values.array.size, indices.array
    flat = functools.reduce(operator.mul, sizes, 1)
    if wide.ndim == 2:
        fits = wide.shape == (count, len(sizes)) and bool(((wide >= 0) & (wide < np.array(sizes))).all())
    else:
        fits = wide.shape == (count,) and bool(((wide >= 0) & (wide < flat)).all())
    if not fits or any(n < 0 for n in sizes):
        raise OnnxFileError(f"the sparse tensor {shorten_name(name)}: its indices do not fit its values or its shape")


def missing_op_error(domain: str, name: str, version: int) -> str:
    """Return the error for an unknown op."""
    since = _import.op_versions(domain, name)
    rest = f"; it has that of version {min(since)} on" if since else ""
    return f"torchlite does not have the op {name} of {domain or 'ai.onnx'}, version {version}{rest}"


@functools.cache
def _reserved_attribute_names() -> frozenset[str]:
    """Return the attributes of every loaded module."""
    return frozenset(dir(LoadedModule(Module(), Graph())))


def _valid_name_part(part: str) -> str:
    """Return a name part as a valid attribute name."""
    plain = re.sub(r"\W", "_", part, flags=re.ASCII)[:100] or "_"
    if plain.startswith("_") or keyword.iskeyword(plain):
        plain = f"w{plain}"
    return plain


def attribute_value(item: Any, what: str) -> Any:
    """Return an attribute's value."""
    kind = item.type
    name = _ATTRIBUTES[kind] if 0 < kind < len(_ATTRIBUTES) else item.which(*_ATTRIBUTES[1:])
    if not name:
        raise OnnxFileError(f"{what}: the attribute {shorten_name(item.name)} has no value")
    value = getattr(item, name)
    try:
        if name == "s":
            return str(value, "utf-8")
        if name == "strings":
            return [str(part, "utf-8") for part in value]
    except UnicodeDecodeError:
        raise OnnxFileError(f"{what}: the text of {shorten_name(item.name)} is not UTF-8") from None
    if name in ("floats", "ints"):
        return [n.item() if isinstance(n, np.generic) else n for n in value]
    if value is None:
        raise OnnxFileError(f"{what}: the attribute {shorten_name(item.name)} has no value")
    return value


def free_names(graph: Message) -> list[str]:
    """Return the outer names that a graph reads, in order of first use."""
    own = {item.name for item in (*graph.input, *graph.initializer)}
    own |= {item.values.name for item in graph.sparse_initializer if item.values is not None}
    found: dict[str, None] = {}
    for node in graph.node:
        inner = [item.g for item in node.attribute if item.g is not None]
        names = [*node.input, *(name for part in inner for name in free_names(part))]
        found |= {name: None for name in names if name and name not in own}
        own |= set(node.output)
    found |= {item.name: None for item in graph.output if item.name and item.name not in own}
    return list(found)


# -- nodes with special conversion


def _add_constant(scope: GraphBuilder, values: list, attributes: dict, outputs: int, what: str) -> list:
    if len(attributes) != 1:
        raise OnnxFileError(f"{what}: a constant has one attribute, but got {len(attributes)}")
    ((name, item),) = attributes.items()
    value = attribute_value(item, what)
    if name == "value":
        return [scope.constant(value)]
    if name == "sparse_value":
        parts = [scope.constant(value.values), scope.constant(value.indices)]
        sizes = [int(n) for n in value.dims]
        _check_sparse(parts[0], parts[1], sizes, "")
        return [scope.call(sequences.sparse_to_dense, *map(scope.tensor, parts), sizes)]
    dtypes = {"value_float": "float32", "value_floats": "float32", "value_int": "int64", "value_ints": "int64"}
    unique = f"constant_{len(scope.names)}"
    scope.names.add(unique)
    if name in ("value_string", "value_strings"):
        return [FileConstant(np.array(value, object), "string", unique)]
    if name not in dtypes:
        raise OnnxFileError(f"{what}: the op has no attribute {shorten_name(name)}")
    return [FileConstant(np.array(value, dtypes[name]), dtypes[name], unique)]


def _control_flow_attributes(attributes: dict, what: str, *graphs: str, **defaults: Any) -> list[Any]:
    """Return the graphs and other attributes of a control flow node."""
    unknown = set(attributes) - set(graphs) - set(defaults)
    if unknown:
        raise OnnxFileError(f"{what}: the op has no attribute {shorten_name(min(unknown))}")
    found = []
    for name in graphs:
        item = attributes.get(name)
        if item is None or item.g is None:
            raise OnnxFileError(f"{what}: the graph of {name} is missing")
        found.append(item.g)
    return found + [attribute_value(attributes[n], what) if n in attributes else v for n, v in defaults.items()]


def _add_if(scope: GraphBuilder, values: list, attributes: dict, outputs: int, what: str) -> list:
    then, otherwise = _control_flow_attributes(attributes, what, "then_branch", "else_branch")
    if len(values) != 1:
        raise OnnxFileError(f"{what}: it has {len(values)} inputs, and the op 1")
    if len(then.output) != len(otherwise.output):
        raise OnnxFileError(f"{what}: its branches have {len(then.output)} and {len(otherwise.output)} outputs")
    bodies = [scope.body(graph, what) for graph in (then, otherwise)]
    modules, reads = zip(*bodies, strict=True)
    result = scope.call(control_flow.if_, scope.tensor(values[0]), *modules, *reads, host=True)
    return [result] if len(then.output) == 1 else scope.parts(result, len(then.output), True)


def _add_loop(scope: GraphBuilder, values: list, attributes: dict, outputs: int, what: str) -> list:
    (graph,) = _control_flow_attributes(attributes, what, "body")
    count, condition = [scope.tensor(v) for v in (*values, None, None)[:2]]
    carried = tuple(scope.tensor(v) for v in values[2:])
    scanned = len(graph.output) - 1 - len(carried)
    if scanned < 0 or len(graph.input) != 2 + len(carried):
        raise OnnxFileError(f"{what}: the body's inputs and outputs are not those of the loop")
    module, reads = scope.body(graph, what)
    result = scope.call(control_flow.loop, module, count, condition, carried, reads, scanned, host=True)
    return scope.parts(result, len(carried) + scanned, True)


def _add_scan(scope: GraphBuilder, values: list, attributes: dict, outputs: int, what: str) -> list:
    old = scope.opsets.get("", 0) < 9
    names = ["directions"] if old else [
        "scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions"]  # fmt: skip
    graph, count, *rest = _control_flow_attributes(attributes, what, "body", num_scan_inputs=0, **dict.fromkeys(names))
    lengths, values = (values[0], values[1:]) if old and values else (None, values)
    states, results = len(values) - count, len(graph.output) - (len(values) - count)
    if count < 1 or states < 0 or results < 0 or len(graph.input) != len(values):
        raise OnnxFileError(f"{what}: the body's inputs and outputs are not those of the scan")
    module, reads = scope.body(graph, what)
    nodes = [scope.tensor(v) for v in values]
    state, scanned = tuple(nodes[:states]), tuple(nodes[states:])
    if old:
        ways = rest[0] or [0] * count
        result = scope.call(
            control_flow.scan_opset8, module, scope.tensor(lengths), state, scanned, reads, ways, results, host=True
        )
    else:
        sizes = (count, count, results, results)
        lists = [part or [0] * n for part, n in zip(rest, sizes, strict=True)]
        if any(len(part) != n for part, n in zip(lists, sizes, strict=True)):
            raise OnnxFileError(f"{what}: its axes and directions are not as many as what it scans")
        result = scope.call(control_flow.scan, module, state, scanned, reads, *lists, host=True)
    return scope.parts(result, states + results, True)


def _add_sequence_map(scope: GraphBuilder, values: list, attributes: dict, outputs: int, what: str) -> list:
    (graph,) = _control_flow_attributes(attributes, what, "body")
    module, reads = scope.body(graph, what)
    nodes = tuple(scope.tensor(v) for v in values)
    result = scope.call(control_flow.sequence_map, module, nodes, reads, len(graph.output), host=True)
    return scope.parts(result, len(graph.output), True)


def _add_gradient(scope: GraphBuilder, values: list, attributes: dict, outputs: int, what: str) -> list:
    """Add the gradient of an earlier value: its nodes are run again with gradients recorded."""
    known = {name: attribute_value(item, what) for name, item in attributes.items()}
    input_names, result = list(known.get("xs", [])), known.get("y")
    inner = GraphBuilder(scope.model, scope.opsets, scope, scope.attributes)
    for name in input_names:
        inner.add(name, inner.placeholder(name), what)
    needed, given = {result}, set(input_names)
    steps: list[Message] = []
    scope.model.spend_items(len(scope.before))
    for node in reversed(scope.before):
        if any(name in needed and name not in given for name in node.output):
            steps.append(node)
            needed |= {*node.input, *(n for item in node.attribute if item.g is not None for n in free_names(item.g))}
    steps.reverse()
    defined = {name for node in steps for name in node.output}
    reads = []
    for name in sorted(name for name in needed if name and name not in defined and name not in given):
        value = scope.value(name, what)
        inner.values[name] = value if isinstance(value, FileConstant) and value.small else inner.placeholder(name)
        if isinstance(inner.values[name], Node):
            reads.append(scope.tensor(value))
    inner.nodes(steps)
    inner.finish([str(result)], what)
    body = scope.graph.get_attr(scope.keep("gradient", inner.module("Gradient", BodyModule)))
    xs = tuple(scope.tensor(scope.value(name, what)) for name in input_names)
    return scope.parts(scope.call(control_flow.gradient, body, xs, tuple(reads)), len(xs), False)


_SPECIAL = {
    ("", "Constant"): _add_constant, ("", "If"): _add_if, ("", "Loop"): _add_loop, ("", "Scan"): _add_scan,
    ("", "SequenceMap"): _add_sequence_map, ("ai.onnx.preview.training", "Gradient"): _add_gradient,
}  # fmt: skip
SPECIAL = frozenset(_SPECIAL)


def input_node(scope: GraphBuilder, item: Message, what: str) -> Node:
    """Add a model input with checks of type and shape."""
    node = scope.placeholder(item.name)
    about = item.type
    if about is None or not about.has("tensor_type"):
        scope.host.add(node)
        return node
    number = about.tensor_type.elem_type
    if not 0 < number < len(NAMES):
        raise OnnxFileError(f"{what}: there is no type of elements {number}")
    sizes = None
    if about.tensor_type.shape is not None:
        sizes = [d.dim_value if d.dim_value > 0 else None for d in about.tensor_type.shape.dim]
    return scope.call(model_input_checks.check_tensor_input, node, item.name, NAMES[number], sizes)
