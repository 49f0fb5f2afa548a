"""Translates an exported program to an ONNX ModelProto."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from .._element_types import NUMBERS
from .._protobuf import Message
from ..errors import OnnxExporterError, UnsupportedOperatorError, WrittenViewError
from . import (
    attention,
    complex_numbers,
    control_flow,
    conv_pool,
    downgrade_opset,
    elementwise,
    indexing,
    losses,
    matmul,
    normalization,
    quantization,
    random,
    recurrent,
    reductions,
    resize,
    scans,
    selection,
    shape_ops,
    torch_onnx_ops,
)  # fmt: skip
from .arguments import bind_arguments
from .graph_builder import (
    COMPLEX,
    REAL_PARTS,
    OnnxGraphBuilder,
    WriterValue,
    dtype_name,
    find_rule,
    is_fixed,
    make_tensor,
)  # fmt: skip

__all__ = [
    "ExportedGraph", "attention", "complex_numbers", "conv_pool", "downgrade_opset", "elementwise", "indexing",
    "losses", "matmul", "normalization", "quantization", "random", "recurrent", "reductions", "resize", "scans",
    "selection", "shape_ops", "torch_onnx_ops", "translate",
]  # fmt: skip

# IR versions by the opset version from which on they apply.
_FORMATS = ((25, 13), (24, 12), (23, 11), (20, 10), (19, 9), (15, 8), (12, 7), (0, 6))
_CHECKS = (
    "aten._assert_tensor_metadata", "aten._assert_scalar", "aten._assert_async", "aten.sym_constrain_range",
    "aten.sym_constrain_range_for_size", "aten._check", "torch._check",
)  # fmt: skip
_MOST_FOLDED = 64  # elements of a tensor that is computed at export although ONNX has an op
_VIEWS = frozenset(
    "view reshape permute transpose t slice select unsqueeze squeeze expand flatten unflatten alias detach narrow "
    "split split_with_sizes chunk unbind movedim view_as".split()
)


class ExportedGraph(NamedTuple):
    """Export input: the graph, tensors by placeholder name, other placeholders in order, and which outputs are the
    user's.
    """

    graph: Any
    owner: Any
    tensors: dict[str, tuple[str, Any, bool]]
    inputs: list[str]
    outputs: list[bool]


class AbsentResult(NamedTuple):
    """A result of an op that its rule does not write. Reading it is an error."""

    target: Any
    place: int


def target_name(target: Any) -> str:
    """Return the name of a call's target: aten.add.Tensor, _operator.mul, cond."""
    text = str(target)
    if hasattr(target, "_overloadname") or hasattr(target, "overload"):
        return text.removeprefix("torch.ops.")
    name = getattr(target, "__name__", None) or getattr(target, "_name", None) or text
    module = getattr(target, "__module__", "") or ""
    module = {"operator": "_operator"}.get(module, module)
    if hasattr(target, "_schema") or "higher_order" in module or "higher_order" in text:
        return str(name)
    return f"{module.replace('torchlite', 'torch', 1)}.{name}"


def is_complex(value: Any) -> bool:
    """True if a value, or one in a list, is complex."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)) and not isinstance(value, WriterValue):
        return any(map(is_complex, value))
    return isinstance(value, complex) or hasattr(value, "dtype") and dtype_name(value.dtype) in REAL_PARTS


def as_array(value: Any) -> tuple[Any, str]:
    """Return a tensor's elements and type name; for types that NumPy lacks, their bits; for complex numbers the parts
    in a last dimension.
    """
    name = dtype_name(value.dtype)
    value = value.detach().cpu().contiguous()
    if name.startswith(("bfloat", "float8", "complex")):
        import importlib

        library = importlib.import_module(type(value).__module__.partition(".")[0])
        if name in REAL_PARTS:
            return library.view_as_real(value.resolve_conj()).numpy(), name
        value = value.view(library.int16 if name == "bfloat16" else library.uint8)
    array = value._host_array()
    return array, name


class GraphTranslator:
    """Translator of the program's graph and its subgraphs."""

    def __init__(self, writer: OnnxGraphBuilder, custom: Mapping[Any, Callable] | None = None) -> None:
        self.writer, self.custom = writer, custom or {}
        self.names: dict[Any, str] = {}

    def value_of(self, node: Any, name: str, meta: Any = None) -> Any:
        """Return a node's value with its metadata."""
        meta = node.meta.get("val") if meta is None and node is not None else meta
        if meta is None:
            raise OnnxExporterError(f"{name}: the graph does not say what it is (no meta['val'])")
        if isinstance(meta, (list, tuple)):
            return [self.value_of(None, f"{name}", part) for part in meta]
        if hasattr(meta, "dtype"):
            sizes = tuple(int(n) if is_fixed(n) else None for n in meta.shape)
            dense = not hasattr(meta, "is_contiguous") or bool(meta.is_contiguous())
            return WriterValue(name, dtype_name(meta.dtype), sizes, dense)
        kind = "bool" if type(meta).__name__ in ("bool", "SymBool") else "int64"
        kind = "float32" if type(meta).__name__ in ("float", "SymFloat") else kind
        return WriterValue(name, kind, ())

    def graph(self, nodes: Iterable[Any], owner: Any, env: dict[Any, Any]) -> Any:
        """Translate nodes; return the output's values."""
        for node in nodes:
            if node.op == "call_function":
                self.writer.where = re.sub(r"\W", "_", str(node.name))
                self.writer.scopes = _module_names(node)
                env[node] = self.call(node, owner, env)
            elif node.op == "get_attr":
                env[node] = self.attribute(node, owner)
            elif node.op == "output":
                return self.arguments(node.args[0], env)
            elif node.op != "placeholder":
                raise OnnxExporterError(f"{node.name}: {node.op} in a graph of aten's ops")
        return None

    def attribute(self, node: Any, owner: Any) -> Any:
        """Return a submodule, or a tensor as constant."""
        found = owner
        for part in node.target.split("."):
            found = getattr(found, part)
        if not hasattr(found, "dtype"):
            return found
        return self.constant(found, node.target)

    def constant(self, tensor: Any, wish: str) -> WriterValue:
        """Add a tensor of the program to the model."""
        array, dtype = as_array(tensor)
        name = self.writer.name(wish)
        self.writer.initializers[name] = make_tensor(name, array, REAL_PARTS.get(dtype, dtype))
        return WriterValue(name, dtype, tuple(tensor.shape))

    def arguments(self, value: Any, env: dict[Any, Any]) -> Any:
        """Return arguments with nodes replaced by values. Raise OnnxExporterError for a result that has none."""
        if hasattr(value, "op") and hasattr(value, "users"):
            found = env[value]
            if isinstance(found, AbsentResult):
                error = OnnxExporterError(f"{found.target}: its result {found.place} is not written to ONNX")
                error._target = found.target
                raise error
            return found
        if isinstance(value, (list, tuple)):
            return [self.arguments(item, env) for item in value]
        if isinstance(value, dict):
            return {key: self.arguments(item, env) for key, item in value.items()}
        return value

    def call(self, node: Any, owner: Any, env: dict[Any, Any]) -> Any:
        """Translate one node. An error has the node's op."""
        try:
            return self._call(node, owner, env)
        except OnnxExporterError as error:
            if error._target is None:
                error._target = node.target
            raise

    def _call(self, node: Any, owner: Any, env: dict[Any, Any]) -> Any:
        name = target_name(node.target)
        args, kwargs = self.arguments(node.args, env), self.arguments(node.kwargs, env)
        if name == "_operator.getitem":
            return args[0][args[1]]
        if name.startswith(_CHECKS):
            return None
        if name in control_flow.HIGHER:
            return self.named(node, control_flow.HIGHER[name](self, *args, **kwargs))
        if _is_constant(node, name) and (find_rule(name) is None or node.meta["val"].numel() <= _MOST_FOLDED):
            return self.named(node, self.evaluated(node.target, args, kwargs).name)
        written, in_place, own = self.rule(node.target, name)
        if own:
            args, kwargs = bind_arguments(node.target, name, written, args, kwargs)
            if written not in COMPLEX and any(is_complex(v) for v in (args, kwargs, node.meta.get("val"))):
                raise OnnxExporterError(f"{name}: complex numbers, for which ONNX has no such op")
        try:
            result = written(self.writer, *args, **kwargs)
        except OnnxExporterError:
            raise
        except Exception as error:  # a rule, which may be the user's, raises anything
            raise OnnxExporterError(
                f"{node.name} ({name}): {type(error).__name__}: {error}{_source_location(node)}"
            ) from error
        value = self.named(node, result)
        if in_place:
            self.replaced(node, env, value)
        return value

    def evaluated(self, target: Any, args: list, kwargs: dict) -> WriterValue:
        """Return the constant that a call without tensors gives."""
        return self.constant(target(*args, **kwargs), self.writer.where)

    def rule(self, target: Any, name: str) -> tuple[Callable, bool, bool]:
        """Return the export rule of an op, whether the op is in-place, and whether the rule is not the user's."""
        for key in (target, name, name.rpartition(".")[0].replace(".", "::")):
            if key in self.custom:
                given = self.custom[key]
                return (given[0] if isinstance(given, (list, tuple)) else given), False, False
        written = find_rule(name)
        if written is not None:
            return written, name.split(".")[1].endswith("_") and not name.split(".")[1].endswith("__"), True
        base, _, overload = name.rpartition(".")
        if base.endswith("_"):
            written = find_rule(f"{base[:-1]}.{overload}")
        if written is None:
            raise UnsupportedOperatorError(name.replace(".", "::", 1), self.writer.version)
        return written, True, True

    def replaced(self, node: Any, env: dict[Any, Any], value: Any) -> None:
        """Rebind the mutated argument to the new value."""
        first = node.args[0]
        base = target_name(first.target).split(".")[1] if first.op == "call_function" else ""
        if base.rstrip("_") in _VIEWS or any(
            user.op == "call_function" and user is not node and target_name(user.target).split(".")[1] in _VIEWS
            and user in env for user in first.users
        ):  # fmt: skip
            raise WrittenViewError(
                f"{node.name}: it writes to a tensor that others are views of: run_decompositions() first"
                f"{_source_location(node)}"
            )
        env[first] = value

    def named(self, node: Any, result: Any) -> Any:
        """Return a node's results with its metadata."""
        if result is None:
            return None
        meta = node.meta.get("val")
        if isinstance(result, (list, tuple)) and not isinstance(result, WriterValue):
            metas = list(meta) if isinstance(meta, (list, tuple)) else [meta]
            return [
                AbsentResult(node.target, i) if name is None else self._name_result(node, name, m)
                for i, (name, m) in enumerate(zip(result, metas, strict=False))
            ]
        if isinstance(meta, (list, tuple)) and len(meta) == 1:
            return [self._name_result(node, result, meta[0])]
        return self._name_result(node, result, meta)

    def _name_result(self, node: Any, name: Any, meta: Any) -> Any:
        if isinstance(name, WriterValue) and meta is None:
            return name
        if meta is None:
            return None
        return self.value_of(node, name.name if isinstance(name, WriterValue) else name, meta)


def _module_names(node: Any) -> list[str]:
    """Return the names of the modules that a node is in, from the whole program's "" on, and of the node."""
    stack = (node.meta or {}).get("nn_module_stack")
    return [*(name for name, _ in stack.values()), str(node.name)] if stack else []


def _source_location(node: Any) -> str:
    trace = node.meta.get("stack_trace") if node.meta else None
    return f"\n{trace}" if trace else ""


def value_info(name: str, meta: Any, axes: Mapping[int, str] | None = None) -> Message:
    """Return the type and shape of an input or output."""
    if not hasattr(meta, "dtype"):
        kind = {"bool": "bool", "float": "float32"}.get(type(meta).__name__, "int64")
        about = Message("TypeOfTensor", elem_type=NUMBERS[kind], shape=Message("TensorShape"))
        return Message("ValueInfo", name=name, type=Message("Type", tensor_type=about))
    dims = []
    for i, n in enumerate(meta.shape):
        if axes and i in axes:
            dims.append(Message("Dimension", dim_param=axes[i]))
        elif is_fixed(n):
            dims.append(Message("Dimension", dim_value=int(n)))
        else:
            dims.append(Message("Dimension", dim_param=dim_param(n)))
    dtype = dtype_name(meta.dtype)
    if dtype in REAL_PARTS:
        dims.append(Message("Dimension", dim_value=2))
    about = Message(
        "TypeOfTensor", elem_type=NUMBERS[REAL_PARTS.get(dtype, dtype)], shape=Message("TensorShape", dim=dims)
    )
    return Message("ValueInfo", name=name, type=Message("Type", tensor_type=about))


def dim_param(size: Any) -> str:
    """Return the name of a dynamic size."""
    node = getattr(size, "node", None)
    return str(getattr(node, "expr", None) or getattr(size, "expr", None) or size)


def _is_constant(node: Any, name: str) -> bool:
    """True if a node of one tensor depends on nothing: no value of the program, no random number, no old memory."""
    tags = {str(tag).rpartition(".")[2] for tag in getattr(node.target, "tags", ())}
    if not name.startswith("aten.") or "empty" in name or node.all_input_nodes or "nondeterministic_seeded" in tags:
        return False
    meta = node.meta.get("val")
    return hasattr(meta, "dtype") and all(map(is_fixed, meta.shape))


def find_unwritten(program: ExportedGraph, options: ExportOptions) -> set[Any]:
    """Return the ops of a graph without export rule."""
    work, found = GraphTranslator(OnnxGraphBuilder(options.version), options.custom), set()
    for node in program.graph.nodes:
        name = target_name(node.target) if node.op == "call_function" else ""
        if name.startswith("aten.") and not name.startswith(_CHECKS) and not _is_constant(node, name):
            try:
                work.rule(node.target, name)
            except UnsupportedOperatorError:
                found.add(node.target)
    return found


def name_dimensions(model: Message, exported: Any, names: list[dict[int, str]]) -> None:
    """Give dimensions of inputs their names, and replace the symbols of the same sizes in other dimensions."""
    if not any(names):
        return
    signature = exported.graph_signature
    users = [spec.arg.name for spec in signature.input_specs if getattr(spec.kind, "name", "") == "USER_INPUT"]
    values = {node.name: node.meta.get("val") for node in exported.graph.nodes if node.op == "placeholder"}
    tensors = [(name, dims) for name, dims in zip(users, names, strict=True) if hasattr(values[name], "dtype")]
    symbols: dict[str, str] = {}
    for name, dims in tensors:
        for dim, wanted in dims.items():
            symbols.setdefault(dim_param(values[name].shape[dim]), wanted)
    given = {info.name for info in model.graph.initializer}
    inputs = [info for info in model.graph.input if info.name not in given]
    for info, (_, dims) in zip(inputs, tensors, strict=False):
        _rename_dimensions(info, symbols, dims)
    for info in model.graph.output:
        _rename_dimensions(info, symbols, {})


def _rename_dimensions(info: Message, symbols: Mapping[str, str], names: Mapping[int, str]) -> None:
    if not info.type.has("tensor_type") or info.type.tensor_type.shape is None:
        return
    for dim, size in enumerate(info.type.tensor_type.shape.dim):
        if size.dim_param and dim in names:
            size.dim_param = names[dim]
        elif size.dim_param:
            size.dim_param = re.sub(r"[A-Za-z_]\w*", lambda found: symbols.get(found[0], found[0]), size.dim_param)


class ExportOptions(NamedTuple):
    """Options of the export."""

    version: int
    input_names: list[str]
    output_names: list[str]
    axes: Mapping[str, Mapping[int, str]]
    custom: Mapping[Any, Callable]
    domains: Mapping[str, int]
    weights: bool
    weights_as_inputs: bool
    name: str


def translate(program: ExportedGraph, wanted: ExportOptions) -> Message:
    """Return the model of a program."""
    writer = OnnxGraphBuilder(wanted.version)
    writer.domains.update(wanted.domains)
    work = GraphTranslator(writer, wanted.custom)
    env: dict[Any, Any] = {}
    given = [node for node in program.graph.nodes if node.op == "placeholder"]
    inputs, weights = [], []
    names = dict(zip(program.inputs, wanted.input_names, strict=False))
    for node in given:
        if node.name in program.tensors:
            wish, value, _ = program.tensors[node.name]
            env[node] = work.constant(value, wish)
            weights.append((env[node].name, value))
        else:
            name = writer.name(names.get(node.name, node.name))
            meta = node.meta.get("val")
            if hasattr(meta, "dtype") or meta is not None and not isinstance(meta, (int, float, bool, str)):
                inputs.append(value_info(name, meta, wanted.axes.get(name)))
                env[node] = work.value_of(node, name)
            else:  # a constant argument of the program
                env[node] = meta
    results = work.graph(program.graph.nodes, program.owner, env)
    metas = _results_meta(program.graph)
    outputs: list[Message] = []
    flat = results if isinstance(results, list) else [results]
    kept = [
        (value, meta) for value, meta, own in zip(flat, metas, program.outputs, strict=True) if own and meta is not None
    ]
    known = {info.name for info in inputs} | set(writer.initializers)
    for i, (value, meta) in enumerate(kept):
        requested_name = wanted.output_names[i] if i < len(wanted.output_names) else None
        name = _output_name(writer, value, requested_name, known | {info.name for info in outputs})
        outputs.append(value_info(name, meta, wanted.axes.get(name)))
    return _make_model(writer, inputs, outputs, weights, wanted)


def _results_meta(graph: Any) -> list[Any]:
    (last,) = (node for node in graph.nodes if node.op == "output")
    found = last.args[0]
    flat = found if isinstance(found, (list, tuple)) else [found]
    return [item.meta.get("val") if hasattr(item, "meta") else item for item in flat]


def _output_name(writer: OnnxGraphBuilder, value: Any, wish: str | None, known: set[str]) -> str:
    """Return the output name of a result; copy an input or a repeated result."""
    if isinstance(value, list):
        raise OnnxExporterError("a list of tensors as one result of an op")
    if not isinstance(value, WriterValue):
        value = WriterValue(writer.put(value), "int64", ())
        known = known | set(writer.initializers)
    if wish is None and value.name not in known:
        return value.name
    name = wish or writer.name(f"{value.name}_out")
    writer.taken.add(name)
    writer.nodes.append(
        Message("Node", input=[value.name], output=[name], op_type="Identity", name=f"node_{writer.name(name)}")
    )
    return name


def _make_model(writer: OnnxGraphBuilder, inputs: list, outputs: list, weights: list, wanted: ExportOptions) -> Message:
    nodes = find_needed_nodes(writer.nodes, {info.name for info in outputs})
    read = {name for node in nodes for name in all_inputs(node)} | {info.name for info in outputs}
    initializers = [m for name, m in writer.initializers.items() if name in read]
    if not wanted.weights:
        gone = {name for name, _ in weights}
        initializers = [m for m in initializers if m.name not in gone]
    if wanted.weights_as_inputs or not wanted.weights:
        inputs = [*inputs, *(value_info(name, value) for name, value in weights if name in read)]
    graph = Message("Graph", name=wanted.name, node=nodes, input=inputs, output=outputs, initializer=initializers)
    used = {node.domain for node in nodes} | {""}
    opsets = [
        Message("OperatorSetId", domain=domain, version=version)
        for domain, version in {**dict.fromkeys(sorted(used), 1), **writer.domains}.items()
        if domain in used or domain in wanted.domains
    ]
    ir = next(format for version, format in _FORMATS if wanted.version >= version)
    import torchlite

    return Message(
        "Model", ir_version=ir, producer_name="torchlite", producer_version=torchlite.__version__, graph=graph,
        opset_import=opsets,
    )  # fmt: skip


def all_inputs(node: Message) -> Iterable[str]:
    """Return the values that a node reads, including its bodies."""
    yield from node.input
    for item in node.attribute:
        if item.g is not None:
            for inner in item.g.node:
                yield from all_inputs(inner)
            yield from (info.name for info in item.g.output)


def find_needed_nodes(nodes: list[Message], wanted: set[str]) -> list[Message]:
    """Return the nodes that results depend on."""
    kept, read = [], set(wanted)
    for node in reversed(nodes):
        if read & set(node.output):
            kept.append(node)
            read.update(all_inputs(node))
    return kept[::-1]
