"""Deserializes exported programs from `.pt2` files without executing code from the file.

Graphs may call allowed ops and a few functions on sizes. Names are validated, and sizes are checked against the file
before memory is allocated.
"""

from __future__ import annotations

import inspect
import itertools
import math
import operator
import os
from typing import Any

import torchlite as torch
from torchlite._aten.allowlist import allowed_overload
from torchlite._higher_order_ops.higher_order_operator import OPERATORS, HigherOrderOperator
from torchlite._higher_order_ops.out_dtype import out_dtype
from torchlite._serialization import atomic_files
from torchlite._serialization.resource_budget import Budget, BudgetExceeded
from torchlite._subclasses.fake_constructors import new_fake_tensor
from torchlite._symbolic_expression_text import make_opaque_symbol, parse_srepr
from torchlite._symbolic_shapes import SymBool, SymFloat, SymInt
from torchlite._types.python_source import is_identifier
from torchlite.fx import Graph, GraphModule, Node

from . import _treespec_text
from . import graph_signature as gs
from ._checked_functions import FUNCTIONS, CheckedFunction, make_checked_target
from ._pt2_archive import Pt2Reader, check_name, parse_int, parse_json, parse_union, typed_field
from ._serde_schema import DTYPES, LAYOUTS, MEMORY_FORMATS, SCHEMA_VERSION, FormatError, format_error
from ._unlift import GUARDS_NAME, SubgraphModule
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature


def open_program(f: Any, extra_files: dict[str, Any] | None = None) -> ExportedProgram:
    """Return the program of a file, a path or a binary stream."""
    try:
        if isinstance(f, (str, os.PathLike)):
            with atomic_files.open_regular(f) as stream:
                return _read_program(Pt2Reader(stream), extra_files)
        return _read_program(Pt2Reader(atomic_files.check_regular(f), from_position=True), extra_files)
    except BudgetExceeded as error:
        raise format_error("the file", str(error)) from None
    except (RecursionError, MemoryError, OverflowError) as error:
        raise format_error("the file", f"it asks for too much ({type(error).__name__})") from None
    except (KeyError, TypeError, AttributeError, IndexError, AssertionError) as error:
        raise format_error(
            "models/model.json", f"it is no exported program ({type(error).__name__}: {error})"
        ) from error


def _read_program(records: Pt2Reader, extra_files: dict[str, Any] | None) -> ExportedProgram:
    if extra_files is not None:
        for name in extra_files:
            if records.has(f"extra/{name}"):
                extra_files[name] = records.bytes(f"extra/{name}").decode("utf-8", "replace")
    if records.has("serialized_exported_program.json"):
        return _read_legacy_program(records)
    if not records.has("archive_version"):
        raise format_error("archive_version", "the archive has no such record: it is no exported program")
    if records.bytes("archive_version").strip() != b"0":
        raise format_error("archive_version", f"version {records.bytes('archive_version')[:20]!r} is unknown")
    models = [n[7:-5] for n in records.names() if n.startswith("models/") and n.endswith(".json")]
    if not models:
        raise format_error("models/", "the archive has no model")
    name = "model" if "model" in models else models[0]
    state = records.tensors("data/weights/", f"{name}_weights_config.json")
    constants = records.tensors("data/constants/", f"{name}_constants_config.json")
    example = None
    sample = f"data/sample_inputs/{name}.pt"
    if records.has(sample) and records.reader.size(sample):
        example = _read_checkpoint(records, sample)
    return _ProgramDeserializer(records.json(f"models/{name}.json"), records.reader.budget).program(
        state, constants, example
    )


def _read_legacy_program(records: Pt2Reader) -> ExportedProgram:
    """Read an archive in the format of torch 2.5 and 2.6, where tensors are nested checkpoints."""

    def load_record(name: str) -> Any:
        return _read_checkpoint(records, name) if records.has(name) and records.reader.size(name) else None

    state, constants = load_record("serialized_state_dict.pt") or {}, load_record("serialized_constants.pt") or {}
    for found in (state, constants):
        if not isinstance(found, dict):
            raise format_error("serialized_state_dict.pt", "it is no dictionary")
        for key in found:
            check_name(key, "serialized_state_dict.pt")
    data = records.json("serialized_exported_program.json")
    return _ProgramDeserializer(data, records.reader.budget).program(
        state, constants, load_record("serialized_example_inputs.pt")
    )


def _read_checkpoint(records: Pt2Reader, name: str) -> Any:
    """Return the content of a nested checkpoint."""
    import pickle

    try:
        return records.checkpoint(name, map_location="cpu")
    except BudgetExceeded:
        raise
    except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
        raise format_error(name, str(error)[:500]) from None


def _check_identifier(name: Any, where: str) -> str:
    if not is_identifier(name) or name == "self" or len(name) > 1000:
        raise format_error(where, f"{str(name)[:100]!r} cannot be the name of a value")
    return name


def resolve_target(text: str, where: str) -> Any:
    """Return a node's target: an op or a function on sizes. Targets with repeat counts check them."""
    if text in FUNCTIONS:
        return make_checked_target(FUNCTIONS[text])
    parts = text.split(".")
    found: Any = None
    if parts[:3] == ["torch", "ops", "higher_order"] and len(parts) == 4:
        found = OPERATORS.get(parts[3])
    elif parts[:2] == ["torch", "ops"] and len(parts) == 5:
        found = make_checked_target(allowed_overload(*parts[2:]))
    if found is not None:
        return found
    raise format_error(where, f"the op {text[:200]!r} is unknown to torchlite")


class _ProgramDeserializer:
    """Deserializer of a program's JSON."""

    def __init__(self, data: Any, budget: Budget) -> None:
        where = "models/model.json"
        version = typed_field(data, "schema_version", dict, where)
        if version.get("major") != SCHEMA_VERSION[0]:
            raise format_error(
                where,
                f"its schema is of version {version.get('major')}.{version.get('minor')}, and torchlite reads "
                f"{SCHEMA_VERSION[0]}.*",
            )
        self.data, self.budget = data, budget
        self.expressions: dict[str, Any] = {}  # by text
        self.module = typed_field(data, "graph_module", dict, where)

    def program(self, state: dict, constants: dict, example: Any) -> ExportedProgram:
        names = {
            name: typed_field(entry, "field_names", list, name)
            for name, entry in (self.module.get("treespec_namedtuple_fields") or {}).items()
        }
        calls = [
            self._read_module_call_entry(e, names)
            for e in typed_field(self.module, "module_call_graph", list, "module_call_graph")
        ]
        if not calls or calls[0].fqn != "" or calls[0].signature is None:
            raise format_error("module_call_graph", "the call of the root module is missing")
        for call in calls:
            if call.signature is not None:
                self._check_call(call.signature, whole=call is calls[0])
        root = torch.nn.Module()
        graph = Graph()
        signature = self._read_signature(typed_field(self.module, "signature", dict, "signature"))
        self._fill_graph(graph, root, typed_field(self.module, "graph", dict, "graph"), {}, 0, signature)
        module = GraphModule(root, graph)
        module.meta.update(typed_field(self.module, "metadata", dict, "metadata") if "metadata" in self.module else {})
        program = ExportedProgram(
            root=module,
            graph=module.graph,
            graph_signature=signature,
            state_dict={name: state[name] for name in state},
            range_constraints=self._read_ranges(),
            module_call_graph=calls,
            example_inputs=example if isinstance(example, tuple) and len(example) == 2 else None,
            constants=constants,
        )
        program._guards_code = [g for g in self.data.get("guards_code") or [] if type(g) is str]
        program._dialect = "ATEN" if "ATEN" in (self.data.get("verifiers") or []) else "TRAINING"
        self._check_signature_matches_graph(program)
        self._check_names(signature, [*root._modules])
        return program

    @staticmethod
    def _check_call(signature: ModuleCallSignature, whole: bool) -> None:
        """Check that the tree of arguments is that of a call, with valid keyword names."""
        spec, where = signature.in_spec, "module_call_graph"
        if spec.type is not tuple or [child.type for child in spec.children()] != [tuple, dict]:
            raise format_error(where, "the arguments are no tuple and dictionary")
        for name in spec.child(1).context:
            _check_identifier(name, where)
        names = signature.forward_arg_names
        if names is not None and len(names) != spec.child(0).num_children + spec.child(1).num_children:
            raise format_error(where, "the names are not those of the arguments")
        if names is not None and len({*names}) != len(names):
            raise format_error(where, "two arguments have one name")
        counts = signature.in_spec.num_leaves, signature.out_spec.num_leaves
        if not whole and counts != (len(signature.inputs), len(signature.outputs)):
            raise format_error(where, "the inputs and outputs are not those of the trees")

    def _check_signature_matches_graph(self, program: ExportedProgram) -> None:
        signature = program.graph_signature
        placeholders = [n.name for n in program.graph.nodes if n.op == "placeholder"]
        if placeholders != [s.arg.name for s in signature.input_specs]:
            raise format_error("signature", "its inputs are not those of the graph")
        outputs = program.graph.output_node().args[0]
        if len(outputs) != len(signature.output_specs):
            raise format_error("signature", "its outputs are not those of the graph")
        for spec in signature.input_specs:
            if spec.kind is gs.InputKind.USER_INPUT or spec.kind is gs.InputKind.TOKEN:
                continue
            held = spec.kind is gs.InputKind.PARAMETER or (spec.kind is gs.InputKind.BUFFER and spec.persistent)
            if spec.target not in (program.state_dict if held else program.constants):
                raise format_error("signature", f"the file has no tensor {str(spec.target)[:100]!r}")

    @staticmethod
    def _check_names(signature: gs.ExportGraphSignature, graphs: list[str]) -> None:
        """Check that tensors and graphs have distinct module paths, and that mutated targets exist."""
        lifted = gs.InputKind.PARAMETER, gs.InputKind.BUFFER, gs.InputKind.CONSTANT_TENSOR
        tensors = [str(spec.target) for spec in signature.input_specs if spec.kind in lifted]
        # After sorting by parts, a prefix directly precedes names that start with it.
        places = sorted(name.replace(".", "\0") for name in (*tensors, *graphs, GUARDS_NAME))
        for first, second in itertools.pairwise(places):
            if second == first or second.startswith(first + "\0"):
                names = (name.replace("\0", ".")[:100] for name in (first, second))
                raise format_error("signature", "one module cannot have both {!r} and {!r}".format(*names))
        users = {spec.arg.name for spec in signature.input_specs if spec.kind is gs.InputKind.USER_INPUT}
        written = {
            gs.OutputKind.BUFFER_MUTATION: {*tensors}, gs.OutputKind.PARAMETER_MUTATION: {*tensors},
            gs.OutputKind.USER_INPUT_MUTATION: users,
        }  # fmt: skip
        for output in signature.output_specs:
            if output.target not in written.get(output.kind, (output.target,)):
                raise format_error(
                    "signature", f"an output is written to {str(output.target)[:100]!r}, which is no input"
                )

    def _read_ranges(self) -> dict[str, Any]:
        from .dynamic_shapes import ValueRanges

        found = {}
        for name, entry in typed_field(self.data, "range_constraints", dict, "range_constraints").items():
            low, high = (entry.get("min_val"), entry.get("max_val")) if type(entry) is dict else ("", "")
            if any(v is not None and type(v) is not int for v in (low, high)):
                raise format_error("range_constraints", f"the range of {name[:100]} is none")
            found[name] = ValueRanges(low if low is not None else -math.inf, math.inf if high is None else high)
        return found

    def _read_module_call_entry(self, entry: Any, names: dict) -> ModuleCallEntry:
        where = "module_call_graph"
        signature = entry.get("signature") if type(entry) is dict else None
        fqn = typed_field(entry, "fqn", str, where)
        if fqn:
            check_name(fqn, where)
        if signature is None:
            return ModuleCallEntry(fqn)
        argument = self._call_argument
        return ModuleCallEntry(
            fqn,
            ModuleCallSignature(
                inputs=[argument(a) for a in typed_field(signature, "inputs", list, where)],
                outputs=[argument(a) for a in typed_field(signature, "outputs", list, where)],
                in_spec=_treespec_text.parse_treespec(
                    typed_field(signature, "in_spec", str, where), names, self.budget
                ),
                out_spec=_treespec_text.parse_treespec(
                    typed_field(signature, "out_spec", str, where), names, self.budget
                ),
                forward_arg_names=[_check_identifier(n, where) for n in signature.get("forward_arg_names") or []]
                or None,
            ),
        )

    # -- the signature ------------------------------------------------------------------------

    def _call_argument(self, entry: Any) -> Any:
        tag, value = parse_union(entry, "an argument")
        kinds = {
            "as_tensor": gs.TensorArgument, "as_sym_int": gs.SymIntArgument, "as_sym_float": gs.SymFloatArgument,
            "as_sym_bool": gs.SymBoolArgument,
        }  # fmt: skip
        if tag == "as_tensor":
            return gs.TensorArgument(_check_identifier(typed_field(value, "name", str, "an argument"), "an argument"))
        if tag in kinds:
            inner, found = parse_union(value, "an argument")
            return (
                kinds[tag](_check_identifier(found, "an argument"))
                if inner == "as_name"
                else gs.ConstantArgument("", found)
            )
        if tag in ("as_none", "as_int", "as_float", "as_bool", "as_string"):
            return gs.ConstantArgument("", None if tag == "as_none" else self._read_number(tag, value))
        if tag == "as_custom_obj":
            raise format_error("signature", "the program has an object of a class of TorchScript")
        raise format_error("signature", f"an argument {tag[:50]!r} is unknown")

    @staticmethod
    def _read_number(tag: str, value: Any) -> Any:
        if tag == "as_float" and type(value) in (str, int):
            return float(value)
        wanted = {"as_int": int, "as_float": float, "as_bool": bool, "as_string": str}[tag]
        if type(value) is not wanted:
            raise format_error("an argument", f"{tag} is {type(value).__name__}")
        if type(value) is int and not -(1 << 63) <= value < 1 << 64:
            raise format_error("an argument", f"an integer has {value.bit_length()} bits")
        return value

    def _read_signature(self, entry: dict) -> gs.ExportGraphSignature:
        inputs = [self._read_input_spec(e) for e in typed_field(entry, "input_specs", list, "signature")]
        outputs = [self._read_output_spec(e) for e in typed_field(entry, "output_specs", list, "signature")]
        return gs.ExportGraphSignature(inputs, outputs)

    def _read_input_spec(self, entry: Any) -> gs.InputSpec:
        tag, value = parse_union(entry, "signature")
        where, kinds = "signature", gs.InputKind
        if tag == "user_input":
            return gs.InputSpec(kinds.USER_INPUT, self._call_argument(typed_field(value, "arg", dict, where)), None)
        if tag == "constant_input":
            inner, constant = parse_union(typed_field(value, "value", dict, where), where)
            found = None if inner == "as_none" else self._read_number(inner, constant)
            name = _check_identifier(typed_field(value, "name", str, where), where)
            return gs.InputSpec(kinds.USER_INPUT, gs.ConstantArgument(name, found), None)
        kind, key = {
            "parameter": (kinds.PARAMETER, "parameter_name"), "buffer": (kinds.BUFFER, "buffer_name"),
            "tensor_constant": (kinds.CONSTANT_TENSOR, "tensor_constant_name"),
        }.get(tag, (None, ""))  # fmt: skip
        if kind is None:
            raise format_error(where, f"an input {tag[:50]!r} is unknown")
        arg = gs.TensorArgument(
            _check_identifier(typed_field(typed_field(value, "arg", dict, where), "name", str, where), where)
        )
        persistent = typed_field(value, "persistent", bool, where) if kind is kinds.BUFFER else None
        return gs.InputSpec(kind, arg, check_name(value.get(key), where), persistent)

    def _read_output_spec(self, entry: Any) -> gs.OutputSpec:
        tag, value = parse_union(entry, "signature")
        where, kinds = "signature", gs.OutputKind
        if tag == "user_output":
            return gs.OutputSpec(kinds.USER_OUTPUT, self._call_argument(typed_field(value, "arg", dict, where)), None)
        known: dict[str, tuple[gs.OutputKind, str | None]] = {
            "loss_output": (kinds.LOSS_OUTPUT, None), "buffer_mutation": (kinds.BUFFER_MUTATION, "buffer_name"),
            "parameter_mutation": (kinds.PARAMETER_MUTATION, "parameter_name"),
            "gradient_to_parameter": (kinds.GRADIENT_TO_PARAMETER, "parameter_name"),
            "gradient_to_user_input": (kinds.GRADIENT_TO_USER_INPUT, "user_input_name"),
            "user_input_mutation": (kinds.USER_INPUT_MUTATION, "user_input_name"),
        }  # fmt: skip
        if tag not in known:
            raise format_error(where, f"an output {tag[:50]!r} is unknown")
        kind, key = known[tag]
        arg = gs.TensorArgument(
            _check_identifier(typed_field(typed_field(value, "arg", dict, where), "name", str, where), where)
        )
        return gs.OutputSpec(kind, arg, None if key is None else check_name(value.get(key), where))

    # -- graphs --------------------------------------------------------------------------------

    def _fill_graph(
        self, graph: Graph, owner: Any, data: dict, outer: dict[str, Any], depth: int, signature: Any = None
    ) -> None:
        """Add a graph's nodes to `graph`; subgraphs become modules of `owner`."""
        self.budget.check_depth(depth, "graphs lie in each other")
        _GraphDeserializer(self, graph, owner, data, depth).run(signature)

    def size(self, entry: Any, where: str) -> Any:
        """Return a node's size: an integer or an expression."""
        if type(entry) is dict and type(entry.get("as_expr")) is dict and entry["as_expr"].get("hint") is None:
            text = str(entry["as_expr"].get("expr_str", ""))
            found = self._parse_expression(text) or make_opaque_symbol(text)
            if found is None:
                raise format_error(where, "a size is no expression that torchlite knows")
            try:
                number = max(
                    0, found.value({name: self._example_of_unbacked_symbol(name) for name in found.free_symbols})
                )
            except ArithmeticError:
                number = 1 << 62
            return SymInt.of(found, parse_int({"as_int": number}, where))
        value = parse_int(entry, where)
        if "as_expr" in entry:
            found = self._parse_expression(str(typed_field(entry["as_expr"], "expr_str", str, where)))
            return value if found is None else SymInt.of(found, value)
        return value

    def _parse_expression(self, text: str) -> Any:
        """Return an expression of the file, parsed once; None if invalid."""
        if text not in self.expressions:
            self.expressions[text] = parse_srepr(text, self.budget)
        return self.expressions[text]

    def _example_of_unbacked_symbol(self, name: str) -> int:
        """Return an example value in range for an unbacked symbol, as files have none."""
        entry = (self.data.get("range_constraints") or {}).get(name)
        low, high = (entry.get("min_val"), entry.get("max_val")) if type(entry) is dict else (None, None)
        number = max(2, low) if type(low) is int else 2
        return min(number, high) if type(high) is int else number

    def value(self, meta: Any, where: str) -> Any:
        """Return a fake tensor with this metadata."""
        sizes = [self.size(n, where) for n in typed_field(meta, "sizes", list, where)]
        strides = [self.size(n, where) for n in typed_field(meta, "strides", list, where)]
        dtype = DTYPES.get(typed_field(meta, "dtype", int, where))
        place = typed_field(meta, "device", dict, where)
        kind = typed_field(place, "type", str, where)
        if dtype is None or len(sizes) != len(strides) or len(sizes) > 64 or kind not in _DEVICES:
            raise format_error(where, "its dtype, sizes or device are unknown")
        if min([0, *sizes]) < 0:
            raise format_error(where, "a size is negative")
        wants = typed_field(meta, "requires_grad", bool, where) and (dtype.is_floating_point or dtype.is_complex)
        index = place.get("index")
        device = torch.device(kind, index) if type(index) is int and 0 <= index < 128 else torch.device(kind)
        return new_fake_tensor(dtype, sizes, strides, device, wants)


_VMAP_BEGIN = FUNCTIONS["torch._functorch.predispatch._vmap_increment_nesting"]
_VMAP_END = FUNCTIONS["torch._functorch.predispatch._vmap_decrement_nesting"]
_DEVICES = frozenset(("cpu", "cuda", "meta", "opencl", "mps", "xpu"))


class _GraphDeserializer:
    """Deserializer of one graph's nodes."""

    def __init__(self, reader: _ProgramDeserializer, graph: Graph, owner: Any, data: dict, depth: int) -> None:
        self.reader, self.graph, self.owner, self.data, self.depth = reader, graph, owner, data, depth
        self.known: dict[str, Node] = {}
        self.where = "graph"
        self.tensors = typed_field(data, "tensor_values", dict, "graph")

    def run(self, signature: Any) -> None:
        specs = signature.input_specs if signature is not None else None
        entries = typed_field(self.data, "inputs", list, "graph")
        if specs is not None and len(specs) != len(entries):
            raise format_error("graph", "its inputs are not those of the signature")
        for position, entry in enumerate(entries):
            self._add_placeholder(entry, None if specs is None else specs[position])
        for position, entry in enumerate(typed_field(self.data, "nodes", list, "graph")):
            self.where = f"node {position}"
            self._add_node(entry, position)
        self._check_levels()
        self.where = "outputs"
        outputs = [self.argument(e) for e in typed_field(self.data, "outputs", list, "graph")]
        single = self.data.get("is_single_tensor_return") is True and len(outputs) == 1 and signature is None
        if any(isinstance(value, (list, dict)) for value in outputs):
            raise format_error(self.where, "an output is no tensor and no number")
        node = self.graph.output(outputs[0] if single else tuple(outputs))
        node.meta["val"] = None
        self._rename()

    def _rename(self) -> None:
        """Rename nodes without a name in the file that collide with names in the file."""
        space = self.graph._graph_namespace
        for node in self.graph.nodes:
            while self.known.get(node.name, node) is not node:
                node.name = space.create_name(node.name, None)
                space._rename_object(node, node.name)

    def _check_levels(self) -> None:
        """Check that `vmap` levels end in the graph that enters them."""
        open_levels = 0
        for node in self.graph.nodes:
            open_levels += node.target is _VMAP_BEGIN
            open_levels -= node.target is _VMAP_END
            if open_levels < 0:
                break
        if open_levels:
            raise format_error("graph", "a level of vmap does not end in the graph that begins it")

    def _add_placeholder(self, entry: Any, spec: Any) -> None:
        tag, value = parse_union(entry, "inputs")
        name = None
        if tag == "as_tensor":
            name = typed_field(value, "name", str, "inputs")
        elif tag in ("as_sym_int", "as_sym_float", "as_sym_bool") and type(value) is dict:
            name = value.get("as_name")
        if name is None:
            given = spec.arg.name if spec is not None else ""
            name = given or f"constant_{len(self.known)}"
        node = self.graph.placeholder(_check_identifier(name, "inputs"))
        if spec is not None and isinstance(spec.arg, gs.ConstantArgument):
            spec.arg.name = name
        if spec is not None and spec.arg.name != name:
            raise format_error("signature", "its inputs are not those of the graph")
        if isinstance(getattr(spec, "arg", None), gs.ConstantArgument):
            node.meta["val"] = spec.arg.value
        self._name_node(node, name)

    def _name_node(self, node: Node, name: str) -> None:
        if name in self.known:
            raise format_error(self.where, f"there are two values {name[:100]!r}")
        if node.name != name:
            node.name = name
            self.graph._graph_namespace._rename_object(node, name)
        self.known[name] = node
        if name in self.tensors:
            node.meta["val"] = self.reader.value(self.tensors[name], name[:100])
            return
        sizes = self.data.get("sym_int_values") or {}
        if name in sizes:
            node.meta["val"] = self.reader.size(sizes[name], name[:100])
        for table, tag in (("sym_float_values", "as_float"), ("sym_bool_values", "as_bool")):
            found = self.data.get(table) or {}
            if name in found:
                node.meta["val"] = _read_constant(found[name], tag, name[:100])

    def _add_node(self, entry: Any, position: int) -> None:
        text = typed_field(entry, "target", str, self.where)
        self.where = f"node {position} ({text[:100]})"
        target = resolve_target(text, self.where)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        schema = getattr(target, "_schema", None)
        places = [a.name for a in schema.positional] if schema is not None else []
        for given in typed_field(entry, "inputs", list, self.where):
            name = typed_field(given, "name", str, self.where)
            value = self.argument(typed_field(given, "arg", dict, self.where))
            by_name = given.get("kind") == 2 or (given.get("kind") in (None, 0) and name and name not in places)
            if by_name or (name and places and len(args) < len(places) and places[len(args)] != name):
                kwargs[_check_identifier(name, self.where)] = value
            else:
                args.append(value)
        if isinstance(target, HigherOrderOperator):
            self._check_functions(target, args, kwargs)
        if schema is None:
            self._check_schemaless_arguments(target, [*args, *kwargs.values()])
        node = self.graph.create_node("call_function", target, tuple(args), kwargs, entry.get("name") or None)
        self._read_node_meta(node, entry)
        self._name_outputs(node, entry)

    def _check_functions(self, target: HigherOrderOperator, args: list, kwargs: dict) -> None:
        """Check that function arguments of higher-order ops are subgraphs, and that only those take subgraphs."""
        try:
            given = inspect.signature(target._run).bind(*args, **kwargs)
        except TypeError as error:
            raise format_error(self.where, str(error)) from None
        for name, parameter in given.signature.parameters.items():
            value = given.arguments.get(name)
            is_graph = isinstance(value, Node) and value.op == "get_attr"
            if name in given.arguments and str(parameter.annotation).startswith("Callable") and not is_graph:
                raise format_error(self.where, f"its argument {name!r} is no graph")

    def _check_schemaless_arguments(self, target: Any, values: list) -> None:
        """Check arguments of targets without schema: tensors and numbers, or lists of them for sums and subgraph calls.
        So no value is a list of lists, whose comparison could take unbounded time.
        """
        takes_list = isinstance(target, HigherOrderOperator) or target is FUNCTIONS["torch.sym_sum"]
        for value in values:
            inner = value if isinstance(value, list) and takes_list else [value]
            is_text = isinstance(value, str) and isinstance(target, CheckedFunction)
            if is_text or any(isinstance(item, (list, dict)) for item in inner):
                raise format_error(self.where, "an argument is no number and no tensor")

    def _read_node_meta(self, node: Node, entry: dict) -> None:
        found = entry.get("metadata") or {}
        for key in ("stack_trace", "torch_fn", "nn_module_stack"):
            text = found.get(key)
            if type(text) is str:
                node.meta[key] = self._read_module_stack(text) if key == "nn_module_stack" else (
                    tuple(text.split(";", 1)) if key == "torch_fn" else text
                )  # fmt: skip

    def _read_module_stack(self, text: str) -> dict[str, tuple[str, str]]:
        """Return the module stack of a node."""
        found = {}
        for part in text.split(";"):
            pieces = part.split(",")
            if len(pieces) == 3:
                self.reader.budget.check_depth(pieces[1].count("."), "the names of modules lie in each other")
                found[pieces[0]] = (pieces[1], pieces[2])
        self.reader.budget.check_depth(len(found), "modules lie in each other")
        return found

    def _name_outputs(self, node: Node, entry: dict) -> None:
        """Name a node's outputs."""
        outputs = typed_field(entry, "outputs", list, self.where)
        self._check_outputs(node, outputs)
        several = len(outputs) > 1
        if len(outputs) == 1:
            tag, value = parse_union(outputs[0], self.where)
            if tag == "as_none":
                return
            alone = not (isinstance(node.target, tuple(_HIGHER_ORDER_TYPES)) and self._is_tuple(entry, node))
            if tag not in ("as_tensors", "as_optional_tensors") and alone:
                if isinstance(node.target, HigherOrderOperator) and not self._returns_single_result(node):
                    raise format_error(self.where, "its outputs are not those of the op")
                self._name_node(node, self._output_name(tag, value))
                return
            several = tag not in ("as_tensors", "as_optional_tensors")
        elif not outputs:
            return
        items: Any = enumerate(outputs) if several else enumerate(parse_union(outputs[0], self.where)[1])
        values: list[Any] = []
        for place, item in items:
            tag, value = parse_union(item, self.where) if several else ("as_tensor", item)
            if tag in ("as_tensors", "as_optional_tensors"):
                part = self.graph.call_function(operator.getitem, (node, place))
                parts = [self._add_getitem(part, inner, "as_tensor", tensor) for inner, tensor in enumerate(value)]
                part.meta["val"] = [p.meta.get("val") for p in parts]
                values.append(part.meta["val"])
                continue
            if not several and type(item) is dict and len(item) == 1 and "name" not in item:
                tag, value = parse_union(item, self.where)
            values.append(None if tag == "as_none" else self._add_getitem(node, place, tag, value).meta.get("val"))
        node.meta["val"] = values

    def _check_outputs(self, node: Node, outputs: list) -> None:
        """Check that an op's outputs match its schema: a named output is a tensor or number, never a list."""
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            return
        tags = [parse_union(output, self.where)[0] for output in outputs]
        kinds = ["[" in str(result.type) for result in schema.returns]
        if len(tags) == 1 and not kinds and tags[0] == "as_none":
            return
        fits = len(tags) == len(kinds) or len(kinds) == 1 and kinds[0]
        several = len(tags) > 1 and len(kinds) == 1  # a list of numbers or tensors with one name each
        if (
            not fits
            or not several
            and any((tag in _LISTS) != is_list for tag, is_list in zip(tags, kinds, strict=True) if tag != "as_none")
        ):
            raise format_error(self.where, "its outputs are not those of the op")

    def _is_tuple(self, entry: dict, node: Node) -> bool:
        """True if a subgraph op returns its single tensor in a tuple."""
        return entry.get("is_hop_single_tensor_return") is False

    def _returns_single_result(self, node: Node) -> bool:
        """True if an op that calls a subgraph returns the subgraph's single result without a tuple."""
        if node.target is out_dtype:
            return True
        graphs = [arg for arg in node.all_input_nodes if arg.op == "get_attr"]
        if node.target.name() not in _WRAPPERS or len(graphs) != 1:  # type: ignore[union-attr]
            return False
        return isinstance(self.owner._modules[graphs[0].target].graph.output_node().args[0], Node)

    def _add_getitem(self, node: Node, place: int, tag: str, value: Any) -> Node:
        made = self.graph.call_function(operator.getitem, (node, place))
        self._name_node(made, self._output_name(tag, value))
        return made

    def _output_name(self, tag: str, value: Any) -> str:
        if tag == "as_tensor":
            return _check_identifier(typed_field(value, "name", str, self.where), self.where)
        if tag in ("as_sym_int", "as_sym_float", "as_sym_bool"):
            return _check_identifier(typed_field(value, "as_name", str, self.where), self.where)
        raise format_error(self.where, f"a result {tag[:50]!r} is unknown")

    # -- arguments -------------------------------------------------------------------------------

    def _find_value(self, name: Any) -> Node:
        found = self.known.get(name) if type(name) is str else None
        if found is None:
            raise format_error(self.where, f"there is no value {str(name)[:100]!r} before it")
        return found

    def _check_list(self, value: Any) -> list:
        if type(value) is not list:
            raise format_error(self.where, "an argument is no list")
        return value

    def argument(self, entry: Any) -> Any:
        """Return an argument of a node."""
        tag, value = parse_union(entry, self.where)
        if tag == "as_none":
            return None
        if tag == "as_tensor":
            return self._find_value(typed_field(value, "name", str, self.where))
        if tag == "as_tensors":
            return [self._find_value(typed_field(v, "name", str, self.where)) for v in self._check_list(value)]
        if tag == "as_nested_tensors":
            return [self.argument({"as_tensors": v}) for v in self._check_list(value)]
        if tag == "as_optional_tensors":
            return [self.argument(v) for v in self._check_list(value)]
        if tag == "as_optional_tensor":
            return self.argument(value)
        if tag in ("as_sym_int", "as_sym_float", "as_sym_bool"):
            inner, found = parse_union(value, self.where)
            return self._find_value(found) if inner == "as_name" else self._read_plain_argument(inner, found)
        if tag in ("as_sym_ints", "as_sym_floats", "as_sym_bools"):
            return [self.argument({tag[:-1]: v}) for v in self._check_list(value)]
        if tag in ("as_ints", "as_floats", "as_bools", "as_strings"):
            return [self._read_plain_argument(tag[:-1], v) for v in self._check_list(value)]
        if tag in ("as_int_lists", "as_float_lists"):
            return [
                [self._read_plain_argument(tag[:-6], v) for v in self._check_list(inner)]
                for inner in self._check_list(value)
            ]
        if tag == "as_string_to_argument" and type(value) is dict:
            return {str(name): self.argument(item) for name, item in value.items()}
        if tag == "as_graph":
            return self._read_subgraph(value)
        if tag == "as_operator":
            return resolve_target(value if type(value) is str else "", self.where)
        if tag in _TABLES:
            found = _TABLES[tag].get(value) if type(value) is int else None
            if found is None:
                raise format_error(self.where, f"{tag} {str(value)[:50]} is unknown")
            return found
        return self._read_plain_argument(tag, value)

    def _read_plain_argument(self, tag: str, value: Any) -> Any:
        if tag == "as_device":
            kind, index = typed_field(value, "type", str, self.where), value.get("index")
            if kind not in _DEVICES or index is not None and type(index) is not int:
                raise format_error(self.where, f"a device {kind[:50]!r} is unknown")
            return torch.device(kind) if index is None else torch.device(kind, index)
        if tag == "as_complex":
            return complex(
                self._read_plain_argument("as_float", value.get("real")),
                self._read_plain_argument("as_float", value.get("imag")),
            )
        if tag not in ("as_int", "as_float", "as_bool", "as_string"):
            raise format_error(self.where, f"an argument {tag[:50]!r} is unknown")
        try:
            return _ProgramDeserializer._read_number(tag, value)
        except ValueError:
            raise format_error(self.where, f"{str(value)[:50]!r} is no number") from None

    def _read_subgraph(self, value: Any) -> Node:
        name = check_name(_check_identifier(typed_field(value, "name", str, self.where), self.where), self.where)
        where, inner = self.where, torch.nn.Module()
        graph = Graph()
        self.reader._fill_graph(graph, inner, typed_field(value, "graph", dict, self.where), self.known, self.depth + 1)
        self.where = where
        if hasattr(self.owner, name):
            raise format_error(self.where, f"there are two graphs {name[:100]!r}")
        self.owner.add_module(name, SubgraphModule(inner, graph))
        node = self.graph.create_node("get_attr", name, (), {}, name)
        return node


_TABLES: dict[str, dict[int, Any]] = {
    "as_scalar_type": DTYPES, "as_layout": LAYOUTS, "as_memory_format": MEMORY_FORMATS,
}  # fmt: skip
_WRAPPERS = frozenset(("wrap_with_set_grad_enabled", "wrap_with_autocast", "strict_mode"))
_LISTS = frozenset(("as_tensors", "as_optional_tensors", "as_nested_tensors", "as_sym_ints", "as_ints"))
_HIGHER_ORDER_TYPES = {type(found) for found in OPERATORS.values()}


def _read_constant(entry: Any, tag: str, where: str) -> Any:
    """Return a float or bool constant of a file."""
    kind, value = parse_union(entry, where)
    if kind != "as_expr":
        return _ProgramDeserializer._read_number(tag, value)
    text, hint = typed_field(value, "expr_str", str, where), value.get("hint")
    known = None if hint is None else _ProgramDeserializer._read_number(tag, parse_union(hint, where)[1])
    if tag == "as_bool":
        return SymBool.of("text", text, None, known is not False, None)
    return SymFloat.of(1.0 if known is None else known, (text,), None, known is None)


__all__ = ["FormatError", "open_program", "parse_json"]
