"""Serializes exported programs to `.pt2` files in PyTorch's format."""

from __future__ import annotations

import io
import json
import math
import operator
import os
from typing import Any

import torchlite as torch
from torchlite._aten import OpOverload
from torchlite._higher_order_ops.higher_order_operator import HigherOrderOperator
from torchlite._higher_order_ops.out_dtype import out_dtype
from torchlite._serialization.atomic_files import replace_file
from torchlite._serialization.zip_archive import ArchiveWriter
from torchlite._symbolic_shapes import SymBool, SymFloat, SymInt
from torchlite.fx import Graph, Node
from torchlite.nn.parameter import Parameter
from torchlite.utils import _pytree as pytree
from torchlite.version import __version__ as version

from . import graph_signature as gs
from ._checked_functions import FUNCTION_NAMES
from ._pt2_archive import is_valid_name
from ._serde_schema import DTYPE_CODES, LAYOUT_CODES, MEMORY_FORMAT_CODES, SCHEMA_VERSION

OPSET_VERSION = 10  # of the ops of aten


def write_program(program: Any, f: Any, extra_files: dict[str, Any] | None = None) -> None:
    """Write a program to a path or binary stream, atomically. Raise RuntimeError for names that files cannot have."""
    for name in (*program.state_dict, *program.constants, *(e.fqn for e in program.module_call_graph if e.fqn)):
        if not is_valid_name(name):
            raise RuntimeError(f"torch.export.save: {str(name)[:100]!r} cannot be the name of an attribute")
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        with replace_file(path) as stream:
            _write_archive(program, stream, _archive_name(path), extra_files or {})
        return
    held = io.BytesIO()
    _write_archive(program, held, "archive", extra_files or {})
    f.write(held.getbuffer())


def _archive_name(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0] or "archive"


def _write_archive(program: Any, stream: Any, top: str, extra_files: dict[str, Any]) -> None:
    writer = ArchiveWriter(stream, top)
    model = json.dumps(_ProgramSerializer(program).data()).encode()
    weights = {name: program.state_dict[name] for name in program.state_dict}
    tensors = {name: value for name, value in program.constants.items() if isinstance(value, torch.Tensor)}
    _write_tensors(writer, weights, "data/weights/", "weight", "model_weights_config.json")
    _write_tensors(writer, tensors, "data/constants/", "tensor", "model_constants_config.json")
    writer.record("models/model.json", model)
    writer.record("data/sample_inputs/model.pt", _serialize_example_inputs(program))
    for name, value in extra_files.items():
        writer.record(f"extra/{name}", value if isinstance(value, bytes) else str(value).encode())
    writer.record("archive_format", b"pt2")
    writer.record("archive_version", b"0")
    writer.record(".data/version", b"6")
    writer.record("byteorder", b"little")
    writer.finish()


def _serialize_example_inputs(program: Any) -> bytes:
    if program.example_inputs is None:
        return b""
    held = io.BytesIO()
    torch.save(program.example_inputs, held)
    return held.getvalue()


def _write_tensors(writer: ArchiveWriter, tensors: dict[str, Any], folder: str, stem: str, config: str) -> None:
    """Write storages once each, and the config that describes their tensors."""
    entries: dict[str, Any] = {}
    known: dict[int, str] = {}
    for name, tensor in tensors.items():
        plain = tensor.detach()
        if plain.device.type != "cpu":
            plain = plain.cpu()
        storage = plain.untyped_storage()
        key = tensor.untyped_storage().data_ptr() if tensor.device.type != "meta" else -len(known) - 1
        own = key not in known or not storage.nbytes()
        if own:
            known[key] = f"{stem}_{len({*known.values()})}"
            whole: Any = torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),))
            writer.record(folder + known[key], whole._host_array() if storage.nbytes() else b"")
        entries[name] = {
            "path_name": known[key],
            "is_param": isinstance(tensor, Parameter),
            "use_pickle": False,
            "tensor_meta": serialize_tensor_meta(plain, tensor.requires_grad, tensor.device),
        }
    writer.record(folder + config, json.dumps({"config": entries}).encode())


def serialize_size(value: Any) -> dict[str, Any]:
    """Return a serialized size."""
    if isinstance(value, SymInt):
        expr = value.node.expr
        hint = None if any(name.startswith("u") for name in expr.free_symbols) else {"as_int": int(value)}
        return {"as_expr": {"expr_str": expr.srepr(), "hint": hint}}
    return {"as_int": int(value)}


def _serialize_float(value: float) -> dict[str, Any]:
    if not isinstance(value, SymFloat) or not value.parts:
        return {"as_float": _serialize_number(value)}
    hint = None if value.elements else {"as_float": float(value)}
    return {"as_expr": {"expr_str": value.srepr(), "hint": hint}}


def serialize_tensor_meta(tensor: Any, requires_grad: bool, device: Any) -> dict[str, Any]:
    """Return serialized tensor metadata."""
    return {
        "dtype": DTYPE_CODES[tensor.dtype],
        "sizes": [serialize_size(n) for n in tensor.shape],
        "requires_grad": bool(requires_grad),
        "device": {"type": device.type, "index": device.index},
        "strides": [serialize_size(n) for n in tensor.stride()],
        "storage_offset": {"as_int": int(tensor.storage_offset()) if hasattr(tensor, "_tl_array") else 0},
        "layout": LAYOUT_CODES[tensor.layout],
    }


class _ProgramSerializer:
    """Serializer of a program to JSON."""

    def __init__(self, program: Any) -> None:
        self.program = program

    def data(self) -> dict[str, Any]:
        program = self.program
        functional = program.dialect == "ATEN"
        return {
            "graph_module": {
                "graph": _GraphSerializer(program.graph, program.graph_module, self._serialize_arguments()).data(),
                "signature": self._serialize_signature(),
                "module_call_graph": [self._serialize_call_entry(entry) for entry in program.module_call_graph],
                "metadata": {},
                "treespec_namedtuple_fields": self._collect_named_tuples(),
            },
            "opset_version": {"aten": OPSET_VERSION},
            "range_constraints": {str(name): self._serialize_range(r) for name, r in program.range_constraints.items()},
            "schema_version": {"major": SCHEMA_VERSION[0], "minor": SCHEMA_VERSION[1]},
            "verifiers": ["ATEN" if functional else "TRAINING"],
            "torch_version": f"torchlite {version}",
            "guards_code": program._guards_code,
        }

    def _serialize_arguments(self) -> dict[str, Any]:
        return {s.arg.name: s.arg for s in self.program.graph_signature.input_specs}

    @staticmethod
    def _serialize_range(ranged: Any) -> dict[str, Any]:
        low, high = ranged
        return {"min_val": None if low == -math.inf else int(low), "max_val": None if high == math.inf else int(high)}

    def _collect_named_tuples(self) -> dict[str, Any]:
        from torchlite.utils import _pytree_serialization as text

        found = {}
        call = self.program._root()
        pending = [call.in_spec, call.out_spec]
        while pending:
            spec = pending.pop()
            if spec is None:
                continue
            kind = spec.context if isinstance(spec.context, type) else None
            if kind is not None and hasattr(kind, "_fields"):
                found[text.name_of_namedtuple(kind)] = {"field_names": list(kind._fields)}
            pending.extend(spec.children())
        return found

    def _serialize_call_entry(self, entry: Any) -> dict[str, Any]:
        if entry.signature is None:
            return {"fqn": entry.fqn, "signature": None}
        signature = entry.signature
        return {
            "fqn": entry.fqn,
            "signature": {
                "inputs": [_serialize_argument_spec(a) for a in signature.inputs],
                "outputs": [_serialize_argument_spec(a) for a in signature.outputs],
                "in_spec": pytree.treespec_dumps(signature.in_spec),
                "out_spec": pytree.treespec_dumps(signature.out_spec),
                "forward_arg_names": signature.forward_arg_names,
            },
        }

    def _serialize_signature(self) -> dict[str, Any]:
        signature = self.program.graph_signature
        return {
            "input_specs": [_serialize_input(s) for s in signature.input_specs],
            "output_specs": [_serialize_output(s) for s in signature.output_specs],
        }


def _serialize_constant(value: Any) -> dict[str, Any]:
    """Return a serialized constant argument."""
    if value is None:
        return {"as_none": True}
    for kind, tag in ((bool, "as_bool"), (int, "as_int"), (float, "as_float"), (str, "as_string")):
        if isinstance(value, kind):
            return {tag: _serialize_number(value)}
    raise RuntimeError(f"torch.export.save: a value {value!r} cannot be written")


def _serialize_number(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


def _serialize_argument_spec(arg: Any) -> dict[str, Any]:
    """Return a serialized argument of a signature."""
    if isinstance(arg, gs.ConstantArgument):
        return _serialize_constant(arg.value)
    if isinstance(arg, gs.TensorArgument):
        return {"as_tensor": {"name": arg.name}}
    kinds: Any = {gs.SymIntArgument: "int", gs.SymFloatArgument: "float", gs.SymBoolArgument: "bool"}
    if type(arg) in kinds:
        return {f"as_sym_{kinds[type(arg)]}": {"as_name": arg.name}}
    raise RuntimeError(f"torch.export.save: an argument {arg} cannot be written")


def _serialize_input(spec: gs.InputSpec) -> dict[str, Any]:
    if spec.kind is gs.InputKind.USER_INPUT:
        if isinstance(spec.arg, gs.ConstantArgument):
            return {"constant_input": {"name": spec.arg.name, "value": _serialize_constant(spec.arg.value)}}
        return {"user_input": {"arg": _serialize_argument_spec(spec.arg)}}
    arg = {"arg": {"name": spec.arg.name}}
    if spec.kind is gs.InputKind.PARAMETER:
        return {"parameter": {**arg, "parameter_name": spec.target}}
    if spec.kind is gs.InputKind.BUFFER:
        return {"buffer": {**arg, "buffer_name": spec.target, "persistent": spec.persistent}}
    if spec.kind is gs.InputKind.CONSTANT_TENSOR:
        return {"tensor_constant": {**arg, "tensor_constant_name": spec.target}}
    raise RuntimeError(f"torch.export.save: an input {spec} cannot be written")


def _serialize_output(spec: gs.OutputSpec) -> dict[str, Any]:
    kinds = gs.OutputKind
    if spec.kind is kinds.USER_OUTPUT:
        return {"user_output": {"arg": _serialize_argument_spec(spec.arg)}}
    arg = {"arg": {"name": spec.arg.name}}
    tag, key = {
        kinds.LOSS_OUTPUT: ("loss_output", None),
        kinds.BUFFER_MUTATION: ("buffer_mutation", "buffer_name"),
        kinds.PARAMETER_MUTATION: ("parameter_mutation", "parameter_name"),
        kinds.GRADIENT_TO_PARAMETER: ("gradient_to_parameter", "parameter_name"),
        kinds.GRADIENT_TO_USER_INPUT: ("gradient_to_user_input", "user_input_name"),
        kinds.USER_INPUT_MUTATION: ("user_input_mutation", "user_input_name"),
    }[spec.kind]
    return {tag: arg if key is None else {**arg, key: spec.target}}


class _GraphSerializer:
    """Serializer of a graph to JSON."""

    def __init__(self, graph: Graph, owner: Any, specs: dict[str, Any] | None = None) -> None:
        self.graph, self.owner, self.specs = graph, owner, specs
        self.tensors: dict[str, Any] = {}
        self.sizes: dict[str, Any] = {}
        self.truths: dict[str, Any] = {}
        self.numbers: dict[str, Any] = {}

    def data(self) -> dict[str, Any]:
        inputs, nodes, outputs, single = [], [], [], False
        for node in self.graph.nodes:
            if node.op == "placeholder":
                inputs.append(self._serialize_placeholder(node))
            elif node.op == "call_function":
                if node.target is not operator.getitem or not self._is_part(node):
                    nodes.append(self._serialize_node(node))
            elif node.op == "output":
                results = node.args[0]
                single = isinstance(results, Node)
                outputs = [self.argument(r) for r in ([results] if single else results)]
        return {
            "inputs": inputs,
            "outputs": outputs,
            "nodes": nodes,
            "tensor_values": self.tensors,
            "sym_int_values": self.sizes,
            "sym_bool_values": self.truths,
            "is_single_tensor_return": single,
            "custom_obj_values": {},
            "sym_float_values": self.numbers,
        }

    def _is_part(self, node: Node) -> bool:
        """True if a getitem node is one of the outputs that its source node names."""
        first = node.args[0]
        return isinstance(first, Node) and isinstance(first.meta.get("val"), (list, tuple))

    def _serialize_placeholder(self, node: Node) -> dict[str, Any]:
        spec = (self.specs or {}).get(node.name)
        if isinstance(spec, gs.ConstantArgument):
            return _serialize_constant(spec.value)
        return self._name_and_record_value(node)

    def _name_and_record_value(self, node: Node) -> dict[str, Any]:
        """Return a value's name, and record its metadata."""
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            self.tensors[node.name] = serialize_tensor_meta(value, value.requires_grad, value.device)
            return {"as_tensor": {"name": node.name}}
        if isinstance(value, SymBool):
            self.truths[node.name] = {"as_expr": {"expr_str": value.srepr(), "hint": None}}
            return {"as_sym_bool": {"as_name": node.name}}
        if isinstance(value, bool):
            self.truths[node.name] = {"as_bool": value}
            return {"as_sym_bool": {"as_name": node.name}}
        if isinstance(value, int):
            self.sizes[node.name] = serialize_size(value)
            return {"as_sym_int": {"as_name": node.name}}
        if isinstance(value, float):
            self.numbers[node.name] = _serialize_float(value)
            return {"as_sym_float": {"as_name": node.name}}
        raise RuntimeError(
            f"torch.export.save: the graph does not say what the value of {node.name} is (meta['val'] is "
            f"{type(value).__name__})"
        )

    def _serialize_node(self, node: Node) -> dict[str, Any]:
        target: Any = node.target
        schema = getattr(target, "_schema", None)
        return {
            "target": self._serialize_target(target),
            "inputs": self._serialize_inputs(node, schema),
            "outputs": self._serialize_outputs(node, schema),
            "metadata": self._serialize_metadata(node),
            "is_hop_single_tensor_return": target is out_dtype if isinstance(target, HigherOrderOperator) else None,
            "name": node.name,
        }

    @staticmethod
    def _serialize_metadata(node: Node) -> dict[str, str]:
        trace, stack = node.meta.get("stack_trace"), node.meta.get("nn_module_stack")
        found = {"stack_trace": trace} if trace else {}
        if stack:
            found["nn_module_stack"] = ";".join(f"{key},{path},{kind}" for key, (path, kind) in stack.items())
        return found

    @staticmethod
    def _serialize_target(target: Any) -> str:
        if isinstance(target, HigherOrderOperator):
            return f"torch.ops.higher_order.{target.name()}"
        if hasattr(target, "_overloadname"):
            return f"torch.ops.{target}"
        if target in FUNCTION_NAMES:
            return FUNCTION_NAMES[target]
        raise RuntimeError(f"torch.export.save: {target} is no op of a library, and cannot be written")

    def _serialize_inputs(self, node: Node, schema: Any) -> list[dict[str, Any]]:
        if schema is None:
            found = [{"name": "", "arg": self.argument(a), "kind": 1} for a in node.args]
            return found + [{"name": k, "arg": self.argument(a), "kind": 2} for k, a in node.kwargs.items()]
        found = []
        for argument, value in zip(schema.positional, node.args, strict=False):
            found.append({"name": argument.name, "arg": self.argument(value, argument.type), "kind": 1})
        types = {a.name: a.type for a in schema.arguments}
        for name, value in node.kwargs.items():
            found.append({"name": name, "arg": self.argument(value, types.get(name)), "kind": 2})
        return found

    def _serialize_outputs(self, node: Node, schema: Any) -> list[dict[str, Any]]:
        value = node.meta.get("val")
        if value is None:
            none = isinstance(node.target, HigherOrderOperator) or schema is not None and not schema.returns
            return [] if none else [{"as_none": True}]
        if not isinstance(value, (list, tuple)):
            return [self._name_and_record_value(node)]
        items: dict[int, Node] = {}
        for user in node.users:
            if user.target is operator.getitem and user.args[0] is node:
                items.setdefault(user.args[1], user)  # type: ignore[arg-type]
        as_list = schema is not None and len(schema.returns) == 1
        if as_list:
            parts = [self._serialize_part(node, items, i, v) for i, v in enumerate(value)]
            if not all("as_tensor" in part for part in parts):
                raise RuntimeError(f"torch.export.save: the values of {node.name} are not all tensors")
            return [{"as_tensors": [part["as_tensor"] for part in parts]}]
        return [self._serialize_part(node, items, i, v) for i, v in enumerate(value)]

    def _serialize_part(self, node: Node, items: dict[int, Node], place: int, value: Any) -> dict[str, Any]:
        if value is None:
            return {"as_none": True}
        if place in items:
            return self._name_and_record_value(items[place])
        name = f"{node.name}_unused_{place}"
        if isinstance(value, torch.Tensor):
            self.tensors[name] = serialize_tensor_meta(value, value.requires_grad, value.device)
            return {"as_tensor": {"name": name}}
        self.sizes[name] = serialize_size(value)
        return {"as_sym_int": {"as_name": name}}

    # -- arguments -------------------------------------------------------------------------------

    def argument(self, value: Any, kind: Any = None) -> dict[str, Any]:
        """Return an argument as a one-key union."""
        if isinstance(value, Node):
            if value.op == "get_attr":
                return self._serialize_subgraph(value)
            return self._name_and_record_value(self._representative_getitem(value))
        if isinstance(value, (list, tuple)):
            return self._serialize_list(list(value), kind)
        if isinstance(value, torch.dtype):
            return {"as_scalar_type": DTYPE_CODES[value]}
        if isinstance(value, torch.device):
            return {"as_device": {"type": value.type, "index": value.index}}
        if isinstance(value, torch.layout):
            return {"as_layout": LAYOUT_CODES[value]}
        if isinstance(value, torch.memory_format):
            return {"as_memory_format": MEMORY_FORMAT_CODES[value]}
        if isinstance(value, complex):
            return {"as_complex": {"real": value.real, "imag": value.imag}}
        if isinstance(value, OpOverload):
            return {"as_operator": self._serialize_target(value)}
        if kind is not None and kind.base == "Device" and isinstance(value, str):
            return self.argument(torch.device(value))
        if kind is not None and kind.base == "float" and type(value) is int:
            value = float(value)
        return _serialize_constant(value)

    def _representative_getitem(self, node: Node) -> Node:
        """Return the representative of several getitem nodes for one output."""
        if node.target is not operator.getitem or not self._is_part(node):
            return node
        first: Any = node.args[0]
        return next(u for u in first.users if u.target is operator.getitem and u.args == node.args)

    def _serialize_list(self, values: list, kind: Any) -> dict[str, Any]:
        base, text = (kind.base, kind.text) if kind is not None else ("", "")
        if base == "Tensor" or (not base and any(isinstance(v, Node) for v in values)):
            parts = [None if v is None else self.argument(v) for v in values]
            if "Tensor?" in text or any(p is None for p in parts):
                return {"as_optional_tensors": [{"as_none": True} if p is None else p for p in parts]}
            if all("as_tensor" in p for p in parts if p is not None):
                return {"as_tensors": [p["as_tensor"] for p in parts if p is not None]}
            return {"as_sym_ints": [p.get("as_sym_int", p) for p in parts if p is not None]}
        if any(isinstance(v, Node) for v in values):
            return {
                "as_sym_ints": [
                    self.argument(v)["as_sym_int"] if isinstance(v, Node) else {"as_int": int(v)} for v in values
                ]
            }
        if base == "float" or (not base and values and all(isinstance(v, float) for v in values)):
            return {"as_floats": [_serialize_number(float(v)) for v in values]}
        if base == "bool" or (not base and values and all(isinstance(v, bool) for v in values)):
            return {"as_bools": [bool(v) for v in values]}
        if base in ("int", "SymInt") and values and all(isinstance(v, (list, tuple)) for v in values):
            return {"as_int_lists": [[int(n) for n in v] for v in values]}
        if base in ("int", "SymInt") or not base and all(isinstance(v, int) for v in values):
            return {"as_ints": [int(v) for v in values]}
        if all(isinstance(v, str) for v in values):
            return {"as_strings": values}
        if all(isinstance(v, int) and not isinstance(v, bool) for v in values):
            return {"as_ints": values}
        if all(isinstance(v, (int, float)) for v in values):
            return {"as_floats": [_serialize_number(float(v)) for v in values]}
        raise RuntimeError(f"torch.export.save: a list {values!r} cannot be written")

    def _serialize_subgraph(self, node: Node) -> dict[str, Any]:
        module = getattr(self.owner, str(node.target))
        return {"as_graph": {"name": node.name, "graph": _GraphSerializer(module.graph, module).data()}}
