"""Graphs with loggers, and graphs that compute the ops of another one beside their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite.ao.quantization.fx.utils import get_new_attr_name_with_prefix
from torchlite.ao.quantization.observer import _is_activation_post_process
from torchlite.ao.quantization.utils import getattr_from_fqn
from torchlite.fx import Graph, GraphModule, Node
from torchlite.fx.graph import map_arg

from .mappings import get_node_type_to_io_type_map
from .ns_types import NSNodeTargetType, NSSingleResultValuesType, NSSubgraph
from .utils import (
    NodeInputOrOutputType,
    get_arg_indices_of_inputs_to_log,
    get_node_first_input_and_output_type,
    get_node_input_qparams,
    get_normalized_nth_input,
    get_number_of_non_param_args,
    get_target_type_str,
    normalized_arguments,
    op_type_supports_shadowing,
    return_first_non_observer_node,
)

_INPUT, _OUTPUT = NSSingleResultValuesType.NODE_INPUT.value, NSSingleResultValuesType.NODE_OUTPUT.value
_FP32, _INT8 = NodeInputOrOutputType.FP32, NodeInputOrOutputType.INT8
_FP16, _UNKNOWN = NodeInputOrOutputType.FP16, NodeInputOrOutputType.UNKNOWN


def _maybe_get_fqn(node: Node, gm: GraphModule) -> str | None:
    """Return the name of the module that a node is from; of an observer, that of what it observes."""
    scopes = getattr(gm, "_node_name_to_scope", None)
    if scopes is None:
        return None
    if node.op == "call_module" and _is_activation_post_process(getattr_from_fqn(gm, str(node.target))):
        node = get_normalized_nth_input(node, gm, 0)
    return scopes[node.name][0]


def _insert_logger_after_node(
    node: Node, gm: GraphModule, logger_cls: Callable, logger_node_name_suffix: str, ref_node_name: str,
    model_name: str, ref_name: str, ref_node_target_type: str, results_type: str, index_within_arg: int,
    index_of_arg: int, fqn: str | None,
) -> Node:  # fmt: skip
    """Give the module a logger, and return its call."""
    name = get_new_attr_name_with_prefix(node.name + logger_node_name_suffix)(gm)
    logger = logger_cls(
        ref_node_name, node.name, model_name, ref_name, get_target_type_str(node, gm), ref_node_target_type,
        results_type, index_within_arg, index_of_arg, fqn,
    )  # fmt: skip
    setattr(gm, name, logger)
    return node.graph.create_node("call_module", name, (node,), {})


def add_loggers_to_model(
    gm: GraphModule, node_to_instrument_inputs_to_ref_node_name: dict[Node, tuple[str, str]],
    node_to_instrument_outputs_to_ref_node_name: dict[Node, tuple[str, str]], logger_cls: Callable, model_name: str,
) -> GraphModule:  # fmt: skip
    """A copy of a module with loggers.

    Args:
        gm: The module.
        node_to_instrument_inputs_to_ref_node_name: Nodes whose inputs are logged, with a name and a type for them.
        node_to_instrument_outputs_to_ref_node_name: Nodes whose outputs are logged.
        logger_cls: The class of loggers.
        model_name: The name of the model.
    """
    inputs, outputs = node_to_instrument_inputs_to_ref_node_name, node_to_instrument_outputs_to_ref_node_name
    graph = Graph()
    copies: dict[str, Node] = {}

    def log(source: str, node: Node, table: dict, kind: str, place: tuple[int, int]) -> None:
        name, target = table[node]
        copies[source] = _insert_logger_after_node(
            copies[source], gm, logger_cls, "_ns_logger_", node.name, model_name, name, target, kind, *place,
            _maybe_get_fqn(node, gm),
        )  # fmt: skip

    for node in gm.graph.nodes:
        if node.op == "output":
            graph.output(map_arg(get_normalized_nth_input(node, gm, 0), lambda old: copies[old.name]))
            continue
        for place in get_arg_indices_of_inputs_to_log(node) if node in inputs else ():
            given = get_normalized_nth_input(node, gm, place)
            for within, one in enumerate(given if isinstance(given, (list, tuple)) else [given]):
                if isinstance(one, Node):
                    log(one.name, node, inputs, _INPUT, (within, place))
        copies[node.name] = graph.node_copy(node, lambda old: copies[old.name])
        if node in outputs:
            log(node.name, node, outputs, _OUTPUT, (0, 0))
    return GraphModule(gm, graph)


def _chain(subgraph: NSSubgraph, gm: GraphModule) -> list[Node]:
    """Return the nodes of a part of a graph, in order."""
    nodes = [subgraph.end_node]
    while nodes[-1] is not subgraph.start_node:
        nodes.append(get_normalized_nth_input(nodes[-1], gm, 0))
    return nodes[::-1]


def _can_insert_copy_of_subgraph_a(subgraph_a: NSSubgraph, gm_a: GraphModule, num_non_param_args_node_a: int) -> bool:
    """Whether the other arguments of nodes are numbers and parameters, which can be copied."""

    def is_copied(value: Any) -> bool:
        if isinstance(value, Node):
            source = return_first_non_observer_node(value, gm_a)
            return source.op == "get_attr" or source.op == "call_method" and source.target in ("dequantize", "to")
        return not isinstance(value, (list, tuple)) or all(isinstance(item, Node) for item in value)

    nodes = _chain(subgraph_a, gm_a)
    for node in nodes:
        args, kwargs = normalized_arguments(node, gm_a)
        skipped = 2 if node is nodes[0] and num_non_param_args_node_a == 2 else 1
        if not all(is_copied(value) for value in [*args, *kwargs.values()][skipped:]):
            return False
    return True


class _Shadowing:
    """The graph of a module B with the ops of a module A beside its own."""

    def __init__(
        self, name_a: str, gm_a: GraphModule, name_b: str, gm_b: GraphModule, logger_cls: Callable, log_inputs: bool,
        types: dict[str, set[NSNodeTargetType]],
    ) -> None:  # fmt: skip
        self.names, self.gm_a, self.gm_b = {"a": name_a, "b": name_b}, gm_a, gm_b
        self.logger_cls, self.log_inputs, self.types = logger_cls, log_inputs, types
        self.graph = Graph()
        self.copies: dict[str, Node] = {}

    def new_name(self, prefix: str) -> str:
        """Return a name that the module B does not have."""
        return get_new_attr_name_with_prefix(prefix)(self.gm_b)

    def types_of(self, node: Node, gm: GraphModule) -> tuple[NodeInputOrOutputType, NodeInputOrOutputType]:
        """Return what a node takes and returns."""
        return get_node_first_input_and_output_type(node, gm, self.logger_cls, self.types)

    def log(self, node: Node, model: str, end: str, ref_node: str, match: tuple, kind: str, within: int = 0) -> Node:
        """Insert a logger for the output or an input of model "a" or "b"."""
        name, targets, fqns = match
        return _insert_logger_after_node(
            node, self.gm_b, self.logger_cls, end, ref_node, self.names[model], name, targets[model], kind, within, 0,
            fqns[model],
        )  # fmt: skip

    def reason_to_skip(self, subgraph_a: NSSubgraph, node_b: Node) -> str | None:
        """Return why a node has no shadow, or None."""
        start = subgraph_a.start_node
        if not op_type_supports_shadowing(start) or not op_type_supports_shadowing(node_b):
            return "unsupported"
        types_a, types_b = self.types_of(start, self.gm_a), self.types_of(node_b, self.gm_b)
        if _UNKNOWN in (*types_a, *types_b):
            return "unknown dtype cast"
        if types_a[0] is _INT8 and types_b[0] is _FP32:
            if not get_node_input_qparams(start, self.gm_a, self.types):
                return "unknown input qparams"
        if not _can_insert_copy_of_subgraph_a(subgraph_a, self.gm_a, get_number_of_non_param_args(start, self.gm_a)):
            return "unhandled logic in subgraph copy"
        return None

    def attribute(self, prefix: str, value: Any) -> Node:
        """Give the module B an attribute, and return the node that reads it."""
        name = self.new_name(prefix)
        setattr(self.gm_b, name, value)
        return self.graph.create_node("get_attr", name, (), {}, name)

    def cast(self, node_a: Node, node_c: Node, given: Any) -> Any:
        """Insert a conversion of the input of a node to what A's node takes. A list has one for each tensor."""
        type_a, type_c = self.types_of(node_a, self.gm_a)[0], self.types_of(node_c, self.gm_b)[0]
        prefix = f"{node_c.name}_dtype_cast_"
        to_float = type_c in (_INT8, _FP16, NodeInputOrOutputType.FP32_OR_INT8)
        scales = None
        if type_a is _INT8 and type_c is _FP32:
            scales = get_node_input_qparams(node_a, self.gm_a, self.types)

        def convert(node: Node) -> Node:
            name = self.new_name(prefix)
            if type_a is _FP32 and to_float:
                return self.graph.create_node("call_function", torch.dequantize, (node,), {}, name)
            if type_a is type_c and type_a is not _UNKNOWN:
                setattr(self.gm_b, name, torch.nn.Identity())
                return self.graph.create_node("call_module", name, (node,), {}, name)
            if scales is not None:
                scale = self.attribute(f"{node_a.name}_input_scale_", scales[0])
                zero_point = self.attribute(f"{node_a.name}_input_zero_point_", scales[1])
                args = (node, scale, zero_point, torch.quint8)
                return self.graph.create_node("call_function", torch.quantize_per_tensor, args, {}, name)
            if type_a is _FP16 and type_c is _FP32:
                return self.graph.create_node("call_method", "to", (node, torch.float16), {}, name)
            raise AssertionError(
                f"dtype cast from {type_c} {node_c.format_node()} to {type_a} {node_a.format_node()} needs to be "
                "implemented"
            )

        return [convert(one) for one in given] if isinstance(given, (list, tuple)) else convert(given)

    def copy_of_argument(self, value: Any) -> Any:
        """Return the copy of what a node of A takes: a number, or a parameter and its conversion."""
        if not isinstance(value, Node):
            return value
        node = return_first_non_observer_node(value, self.gm_a)
        prefix = f"{node.name}_shadow_copy_"
        if node.op == "get_attr":
            found = getattr_from_fqn(self.gm_a, str(node.target))
            return self.attribute(prefix, found.detach() if torch.is_tensor(found) else found)
        if node.op != "call_method":
            raise AssertionError(f"handling of node {node.format_node()} with op {node.op} is not implemented")
        source = self.copy_of_argument(get_normalized_nth_input(node, self.gm_a, 0))
        rest = () if node.target == "dequantize" else (get_normalized_nth_input(node, self.gm_a, 1),)
        return self.graph.create_node(node.op, node.target, (source, *rest), {}, self.new_name(prefix))

    def copy_of_node(self, node_a: Node, inputs: list[Any], prefix: str) -> Node:
        """Insert a copy of a node of A with other first inputs."""
        args, kwargs = normalized_arguments(node_a, self.gm_a)
        values = [
            inputs[place] if place < len(inputs) else self.copy_of_argument(value)
            for place, value in enumerate([*args, *kwargs.values()])
        ]
        args, kwargs = tuple(values[: len(args)]), dict(zip(kwargs, values[len(args) :], strict=True))
        name = self.new_name(prefix)
        target = node_a.target
        if node_a.op == "call_module":
            setattr(self.gm_b, name, getattr_from_fqn(self.gm_a, str(target)))
            target = name
        return self.graph.create_node(node_a.op, target, args, kwargs, name)

    def log_inputs_of_b(self, node_b: Node, match: tuple) -> None:
        """Insert loggers before a node of B."""
        given = get_normalized_nth_input(node_b, self.gm_b, 0)
        for within, one in enumerate(given if isinstance(given, (list, tuple)) else [given]):
            node = self.copies[one.name]
            self.copies[node.name] = self.log(node, "b", "_ns_logger_b_inp_", node_b.name, match, _INPUT, within)

    def shadow(self, subgraph_a: NSSubgraph, node_c: Node, match: tuple) -> None:
        """Insert the ops of A beside a node, with a conversion of its input and loggers."""
        start = subgraph_a.start_node
        given = get_normalized_nth_input(node_c, self.gm_b, 0)
        if self.log_inputs and isinstance(given, (list, tuple)):
            given = [get_normalized_nth_input(one, self.gm_b, 0) for one in given]
        converted = self.cast(start, node_c, given)
        loggers: list[Node] = []
        if self.log_inputs:
            parts = converted if isinstance(converted, list) else [converted]
            for within, part in enumerate(parts):
                loggers.append(self.log(part, "a", "_ns_logger_a_inp_", "", match, _INPUT, within))
            converted = loggers if isinstance(converted, list) else loggers[0]
        inputs = [converted]
        if get_number_of_non_param_args(start, self.gm_a) == 2:
            inputs.append(get_normalized_nth_input(node_c, self.gm_b, 1))
        made = first = None
        for node_a in _chain(subgraph_a, self.gm_a):
            made = self.copy_of_node(node_a, inputs if made is None else [made], f"{node_c.name}_shadow_copy_")
            first = made if first is None else first
        if made is None or first is None:
            raise AssertionError("a part of a graph has no nodes")
        for logger in loggers:
            getattr(self.gm_b, logger.name).ref_node_name = first.name
        self.copies[made.name] = self.log(made, "a", "_ns_logger_a_", made.name, match, _OUTPUT)


def create_a_shadows_b(
    name_a: str, gm_a: GraphModule, name_b: str, gm_b: GraphModule,
    matched_subgraph_pairs: dict[str, tuple[NSSubgraph, NSSubgraph]], logger_cls: Callable, should_log_inputs: bool,
    node_type_to_io_type_map: dict[str, set[NSNodeTargetType]] | None = None,
) -> GraphModule:  # fmt: skip
    """A copy of a module B which computes the ops of a module A beside its own, with the inputs that its own get.

    Args:
        name_a: The name of A.
        gm_a: The module A.
        name_b: The name of B.
        gm_b: The module B.
        matched_subgraph_pairs: The pairs of their ops.
        logger_cls: The class of loggers.
        should_log_inputs: Whether inputs are logged too.
        node_type_to_io_type_map: The types of ops. Default: those of `get_node_type_to_io_type_map`.
    """
    types = get_node_type_to_io_type_map() if node_type_to_io_type_map is None else node_type_to_io_type_map
    made = _Shadowing(name_a, gm_a, name_b, gm_b, logger_cls, should_log_inputs, types)
    pairs = [(name, *pair) for name, pair in matched_subgraph_pairs.items()]
    starts = {b.start_node: (name, a, b) for name, a, b in pairs}
    ends = {b.end_node: (name, a, b) for name, a, b in pairs}
    for node in gm_b.graph.nodes:
        if node.op == "output":
            made.graph.output(map_arg(node.args[0], lambda old: made.copies[old.name]))
            continue
        found: Any = starts.get(node) or ends.get(node) or (None, None, None)
        name, part_a, part_b = found
        reason = None if part_a is None else made.reason_to_skip(part_a, node)
        if reason is not None:
            print(
                f"skipping shadow loggers for node_b: {get_target_type_str(node, gm_b)}, start_node_a: "
                f"{get_target_type_str(part_a.start_node, gm_a)}, {reason}"
            )
        match: Any = None
        if part_a is not None and reason is None:
            bases = {"a": (part_a.base_op_node, gm_a), "b": (part_b.base_op_node, gm_b)}
            match = (
                name, {model: get_target_type_str(*base) for model, base in bases.items()},
                {model: _maybe_get_fqn(*base) for model, base in bases.items()},
            )  # fmt: skip
            if node in starts and should_log_inputs:
                made.log_inputs_of_b(node, match)
        copy = made.graph.node_copy(node, lambda old: made.copies[old.name])
        made.copies[node.name] = copy
        if match is not None and node in starts:
            made.shadow(part_a, copy, match)
        if match is not None and node in ends:
            made.copies[node.name] = made.log(copy, "b", "_ns_logger_b_", node.name, match, _OUTPUT)
    return GraphModule(gm_b, made.graph)
