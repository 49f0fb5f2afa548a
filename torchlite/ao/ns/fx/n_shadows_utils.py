"""Graphs with several quantized copies of each op beside it, whose outputs are compared."""

from __future__ import annotations

import collections
import copy
import operator
from typing import Any

import torchlite as torch
import torchlite.nn.functional as F
from torchlite import nn
from torchlite.ao.ns.fx._loggers import OutputComparisonLogger, OutputLogger
from torchlite.ao.ns.fx.graph_passes import _maybe_get_fqn
from torchlite.ao.ns.fx.ns_types import NSResultsType, NSSingleResultValuesType
from torchlite.ao.ns.fx.utils import compute_sqnr, get_normalized_nth_input, get_target_type_str
from torchlite.ao.quantization.qconfig_mapping import QConfigMapping
from torchlite.ao.quantization.utils import getattr_from_fqn
from torchlite.fx import Graph, GraphModule, Interpreter, Node
from torchlite.fx.graph import map_arg

SHADOW_NODE_NAME_PREFIX = "shadow"
SHADOW_WRAPPER_NODE_NAME_PREFIX = "shadow_wrapper"
BINARY_FUNCTIONS = {torch.add, torch.Tensor.add, operator.add, torch.mul, torch.Tensor.mul, operator.mul}
_OUTPUT, _WEIGHT = NSSingleResultValuesType.NODE_OUTPUT.value, NSSingleResultValuesType.WEIGHT.value


def _get_attr_name(subgraph_idx: int, subgraph_candidate_idx: int) -> str:
    return f"{SHADOW_NODE_NAME_PREFIX}_{subgraph_idx}_{subgraph_candidate_idx}"


def _get_attr_wrapper_name(subgraph_idx: int, subgraph_candidate_idx: int) -> str:
    return f"{SHADOW_WRAPPER_NODE_NAME_PREFIX}_{subgraph_idx}_{subgraph_candidate_idx}"


class OutputProp:
    """Runs a module, and notes the tensor that each node returns as its ``traced_result``.

    Args:
        mod: The module.

    Example:
        >>> from torchlite.ao.ns.fx.n_shadows_utils import OutputProp
        >>> model = torch.fx.symbolic_trace(torch.nn.ReLU())
        >>> OutputProp(model).propagate(torch.tensor([-1.0, 2.0]))
        >>> [node.traced_result for node in model.graph.nodes if node.op == "call_function"]
        [tensor([0., 2.])]
    """

    def __init__(self, mod: GraphModule) -> None:
        self.mod, self.graph, self.modules = mod, mod.graph, dict(mod.named_modules())

    def propagate(self, *args: Any) -> None:
        """Runs the module.

        Args:
            *args: Its inputs.
        """

        class Noting(Interpreter):
            def run_node(self, n: Node) -> Any:
                result = super().run_node(n)
                if isinstance(result, torch.Tensor) and n.op != "output":
                    n.traced_result = result  # type: ignore[attr-defined]
                return result

        Noting(self.mod).run(*args)


def _get_dedup_subgraphs(matches: dict[str, Any]) -> dict[str, list[Node]]:
    """Return the nodes of each match in order, without matches of nodes that others have."""
    seen: set[Node] = set()
    found: dict[str, list[Node]] = {}
    for name, match in reversed(matches.items()):
        parts = match[1] if isinstance(match[1], list) else [match[1]]
        nodes = [node for part in parts for node in (part if isinstance(part, tuple) else [part])]
        was_seen = not seen.isdisjoint(nodes)
        seen.update(nodes)
        if was_seen:
            continue
        if len(parts) > 2:
            raise ValueError(f"Expected cur_match[1] to have length 2, got {len(parts)}")
        if len(nodes) == 3:  # a pair within a pair
            first = next(node for node in nodes if node.args[0] not in nodes)
            last = next(node for node in nodes if next(iter(node.users)) not in nodes)
            found[name] = [first, next(node for node in nodes if node not in (first, last)), last]
        else:
            found[name] = nodes[::-1]
    return found


def _get_logger_for_subgraph(
    model: GraphModule, first_node: Node, last_node: Node, subgraph_idx: int, subgraph_candidate_idx: int,
    qconfig_str: str, logger_cls: Any, fqn: str | None,
) -> Any:  # fmt: skip
    """Return a logger of the output of nodes, which is switched off."""
    logger = logger_cls(
        first_node.name, last_node.name, f"subgraph_{subgraph_idx}_{subgraph_candidate_idx}", "model",
        get_target_type_str(last_node, model), get_target_type_str(first_node, model), _OUTPUT, 0, 0, fqn or "",
        qconfig_str,
    )  # fmt: skip
    logger.enabled = False
    return logger


def create_submodule_from_subgraph(model: Any, first_node: Node, last_node: Node) -> GraphModule:
    """A module of its own that computes nodes which follow each other. Its inputs are those of the first node.

    Args:
        model: The module.
        first_node: The first node.
        last_node: The last node.

    Raises:
        AssertionError: A node is of another kind, or a later node takes more than one tensor.
    """
    root, graph = nn.Module(), Graph()
    names: set[str] = set()

    def placeholder(node: Node) -> Node:
        number = 0
        while f"{node.name}_{number}" in names:
            number += 1
        names.add(f"{node.name}_{number}")
        return graph.placeholder(f"{node.name}_{number}")

    node, made, count = first_node, None, 0
    while True:
        if made is None:
            args, kwargs = map_arg(node.args, placeholder), map_arg(node.kwargs, placeholder)
        else:
            if node.target in BINARY_FUNCTIONS:
                raise AssertionError(f"Unexpected binary function target: {node.target}")
            for value in (*node.args[1:], *node.kwargs.values()):
                if value is not None and not isinstance(value, (float, int, str, torch.dtype)):
                    raise AssertionError(f"arg of type {type(value)} not handled yet")
            args, kwargs = (made, *node.args[1:]), node.kwargs
        target = node.target
        if node.op == "call_module":
            target = f"mod_{count}"
            setattr(root, target, copy.deepcopy(getattr_from_fqn(model, str(node.target))))
            count += 1
        elif node.op not in ("call_function", "call_method"):
            raise AssertionError(f"{node.op} not supported yet")
        made = graph.create_node(node.op, target, args, kwargs)
        if node is last_node:
            break
        node = next(iter(node.users))
    graph.output(made)
    return GraphModule(root, graph, "M")


def _add_call(mt: GraphModule, name: str, module: Any, after: Any, args: tuple, kwargs: Any = None) -> Node:
    """Give a module a part and call it behind a node."""
    if hasattr(mt, name):
        raise AssertionError(f"Unexpected attribute '{name}' found in {mt}")
    setattr(mt, name, module)
    with mt.graph.inserting_after(after):
        return mt.graph.call_module(name, args=args, kwargs=kwargs or {})


def create_one_transformed_and_logged_copy_of_subgraph(
    mt: GraphModule, subgraph_idx: int, subgraph_candidate_idx: int, first_node: Node, last_node: Node,
    fqn: str | None, list_of_node_name_to_qconfig: list[dict[str, Any]], example_inputs: Any,
    last_added_shadow_node_list: list[Any], custom_prepare_fn: Any = None, custom_prepare_kwargs: Any = None,
) -> None:  # fmt: skip
    """Adds a logger behind nodes, or a prepared copy of them with a logger that compares the outputs.

    Args:
        mt: The module, which is changed.
        subgraph_idx: The number of the nodes.
        subgraph_candidate_idx: 0 for the logger, from 1 the number of a configuration.
        first_node: The first node.
        last_node: The last node.
        fqn: The name of the module that they are from.
        list_of_node_name_to_qconfig: The configurations of nodes by name.
        example_inputs: The inputs of the first node.
        last_added_shadow_node_list: A list with the node behind which the copy comes, which is changed.
        custom_prepare_fn: The function that prepares a copy. Default: `prepare_fx`.
        custom_prepare_kwargs: Other arguments of it. Default: none.
    """
    place = subgraph_idx, subgraph_candidate_idx
    if subgraph_candidate_idx == 0:
        logger = _get_logger_for_subgraph(mt, first_node, last_node, *place, "", OutputLogger, fqn)
        last_added_shadow_node_list[0] = _add_call(mt, _get_attr_name(*place), logger, last_node, (last_node,))
        mt.recompile()
        return
    qconfig = list_of_node_name_to_qconfig[subgraph_candidate_idx - 1][first_node.name]
    if qconfig is None:
        return
    prepare = torch.ao.quantization.quantize_fx.prepare_fx if custom_prepare_fn is None else custom_prepare_fn
    given = {"example_inputs": example_inputs, "qconfig_mapping": QConfigMapping().set_global(qconfig)}
    others = (custom_prepare_kwargs or {}) if custom_prepare_fn is not None else {}
    for name in ("example_inputs", "prepare_custom_config", "qconfig_mapping"):
        if name in others:
            raise AssertionError(f"cannot specify {name} in custom_prepare_kwargs")
    shadow = prepare(create_submodule_from_subgraph(mt, first_node, last_node), **given, **others)
    nodes: list[Node] = []
    map_arg((first_node.args, first_node.kwargs), nodes.append)
    new_node = _add_call(
        mt, _get_attr_wrapper_name(*place), shadow, last_added_shadow_node_list[0], tuple(nodes)
    )  # fmt: skip
    logger = _get_logger_for_subgraph(
        mt, first_node, last_node, *place, str(qconfig), OutputComparisonLogger, fqn
    )  # fmt: skip
    last_added_shadow_node_list[0] = _add_call(mt, _get_attr_name(*place), logger, new_node, (new_node, last_node))
    mt.recompile()


def create_n_transformed_and_logged_copies_of_subgraph(
    mt: GraphModule, subgraph_idx: int, match_name: str, nodes_in_this_subgraph: list[Any],
    qconfig_mappings: list[QConfigMapping], list_of_node_name_to_qconfig: list[dict[str, Any]],
    custom_prepare_fn: Any = None, custom_prepare_kwargs: Any = None,
) -> None:  # fmt: skip
    """Adds a prepared copy of nodes for each configuration.

    Args:
        mt: The module, which is changed.
        subgraph_idx: The number of the nodes.
        match_name: No effect.
        nodes_in_this_subgraph: The nodes.
        qconfig_mappings: The mappings of configurations.
        list_of_node_name_to_qconfig: The configurations of nodes by name, one dictionary for each mapping.
        custom_prepare_fn: The function that prepares a copy. Default: `prepare_fx`.
        custom_prepare_kwargs: Other arguments of it. Default: none.
    """
    if not all(isinstance(node, Node) for node in nodes_in_this_subgraph):
        return
    first, last = nodes_in_this_subgraph[0], nodes_in_this_subgraph[-1]
    before = get_normalized_nth_input(first, mt, 0)
    sources = before if isinstance(before, (list, tuple)) else [before]
    if not all(hasattr(source, "traced_result") for source in sources):
        print(f"unable to get example input for node {first.format_node()}, skipping")
        return
    if all(by_name[first.name] is None for by_name in list_of_node_name_to_qconfig):
        print(f"unable to find at least one qconfig for node {first.format_node()}, skipping")
        return
    inputs = tuple(source.traced_result for source in sources)
    fqn, behind = _maybe_get_fqn(first, mt), [None]
    for candidate in range(len(qconfig_mappings) + 1):
        create_one_transformed_and_logged_copy_of_subgraph(
            mt, subgraph_idx, candidate, first, last, fqn, list_of_node_name_to_qconfig, inputs, behind,
            custom_prepare_fn, custom_prepare_kwargs,
        )  # fmt: skip


def create_add_loggers_graph(
    model: GraphModule, subgraphs_dedup: dict[str, list[Node]], qconfig_mapping: QConfigMapping,
    node_name_to_qconfig: dict[str, Any],
) -> None:  # fmt: skip
    """Adds a second computation beside a module's own, with quantized copies of its nodes, which take each other's
    outputs. All outputs are compared.

    Args:
        model: The module, which is changed.
        subgraphs_dedup: The nodes that follow each other and have a configuration.
        qconfig_mapping: The configurations.
        node_name_to_qconfig: Those of nodes by name.
    """
    part_of = {node: part for part in subgraphs_dedup.values() for node in part}
    parts: list[list[Node]] = []
    for node in model.graph.nodes:
        part = part_of.get(node, [node])
        if node.op not in ("placeholder", "get_attr", "output") and node in (part[0], *part) and part not in parts:
            parts.append(part)
    entries: dict[Node, Node] = {}  # the first nodes of copies, by first nodes
    exits: dict[Node, Node] = {}  # the last nodes of copies, by last nodes
    for number, part in enumerate(parts):
        first, last = part[0], part[-1]
        if part[0] in part_of and node_name_to_qconfig[first.name] is not None:
            create_n_transformed_and_logged_copies_of_subgraph(
                model, number, first.name, part, [qconfig_mapping], [node_name_to_qconfig]
            )
            target = _get_attr_wrapper_name(number, 1)
            entries[first] = exits[last] = next(node for node in model.graph.nodes if node.target == target)
        else:
            entries[first], exits[last] = _add_plain_copy(model, part, number)
    model.recompile()
    for node in entries.values():
        node.args = map_arg(node.args, lambda source: exits.get(source, source))
        node.kwargs = map_arg(node.kwargs, lambda source: exits.get(source, source))
    model.recompile()


def _add_plain_copy(model: GraphModule, part: list[Node], number: int) -> tuple[Node, Node]:
    """Add a copy of nodes that is not quantized, with loggers, and return its first and last node."""
    first, last = part[0], part[-1]
    fqn = _maybe_get_fqn(first, model)
    copies: list[Node] = []
    logger = _get_logger_for_subgraph(model, first, last, number, 0, "", OutputLogger, fqn)
    behind = _add_call(model, _get_attr_name(number, 0), logger, last, (last,))
    for node in part:
        args = (copies[-1], *node.args[1:]) if copies else node.args
        with model.graph.inserting_after(behind):
            behind = model.graph.create_node(node.op, node.target, args, node.kwargs)
        copies.append(behind)
    logger = _get_logger_for_subgraph(model, first, last, number, 1, "", OutputComparisonLogger, fqn)
    _add_call(model, _get_attr_name(number, 1), logger, behind, (behind, last))
    return copies[0], copies[-1]


def _get_weight_info_from_shadow_wrapper(shadow_wrapper: GraphModule) -> tuple[Any, tuple] | None:
    """Return the function that quantizes the second input of a converted copy, and its arguments."""
    inputs = [node for node in shadow_wrapper.graph.nodes if node.op == "placeholder"]
    if len(inputs) < 2:
        return None
    node = next(iter(inputs[1].users))
    if node.target not in (torch.quantize_per_tensor, torch.quantize_per_channel):
        raise AssertionError(f"Expected torch.quantize_per_tensor, but got {node.target}")
    values = [
        getattr_from_fqn(shadow_wrapper, str(value.target)) if isinstance(value, Node) else value
        for value in node.args[1:]
    ]
    return node.target, tuple(values)


def extract_weight_comparison(m: GraphModule) -> NSResultsType:
    """The weights of linear functions beside those that their quantized copies have.

    Args:
        m: The module with converted copies.

    Returns:
        The results.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for node in m.graph.nodes:
        if node.op != "call_function" or node.target is not F.linear:
            continue
        users = node.args[0].users
        wrapper: Any = next(
            (
                user for user in users
                if user.op == "call_module" and user.target.startswith(SHADOW_WRAPPER_NODE_NAME_PREFIX)
            ),
            None,
        )  # fmt: skip
        info = (
            None if wrapper is None
            else _get_weight_info_from_shadow_wrapper(getattr_from_fqn(m, wrapper.target))
        )  # fmt: skip
        if info is None:
            continue
        weight = getattr_from_fqn(m, node.args[1].target).detach()
        quantized = info[0](weight, *info[1])
        kind, scopes = get_target_type_str(node, m), getattr(m, "_node_name_to_scope", None)
        comparison = compute_sqnr(weight, quantized)
        number = wrapper.target.split("_")[2]
        for candidate, value in enumerate((weight, quantized)):
            found[f"subgraph_{number}_{candidate}"] = [{
                "res_type": _WEIGHT, "values": [value], "prev_node_name": node.name, "prev_node_target_type": kind,
                "ref_node_name": node.name, "ref_node_target_type": kind, "index_within_arg": 0, "index_of_arg": 0,
                "fqn": None if scopes is None else scopes[node.name][0], "qconfig_str": "",
                "comparisons": [comparison], "comparison_fn_name": "sqnr",
            }]  # fmt: skip
    return {"model": {_WEIGHT: found}}


def group_results_by_subgraph(results: NSResultsType) -> Any:
    """Results by the numbers of nodes and of configurations.

    Args:
        results: The results.
    """
    grouped: Any = collections.defaultdict(dict)
    names = (
        "ref_node_name", "ref_node_target_type", "fqn", "values", "qconfig_str", "comparisons", "comparison_fn_name",
    )  # fmt: skip
    for name, found in next(iter(results["model"].values())).items():
        subgraph, _, candidate = name.rpartition("_")
        grouped[subgraph][candidate] = {key: found[0][key] for key in names}
    return dict(grouped)


def create_results_comparison(results_grouped: Any) -> Any:
    """The measures of each configuration, and their means.

    Args:
        results_grouped: What `group_results_by_subgraph` returned.
    """
    compared: dict[str, Any] = {}
    for name, by_candidate in results_grouped.items():
        candidates: dict[str, Any] = {}
        for candidate, result in by_candidate.items():
            if candidate != "0":
                raw = torch.stack(result["comparisons"])
                candidates[candidate] = {
                    "qconfig_str": result["qconfig_str"], "comparison_fn_name": result["comparison_fn_name"],
                    "cmp_raw": raw, "cmp_mean": torch.mean(raw),
                }  # fmt: skip
        original = by_candidate["0"]
        compared[name] = {
            "ref_node_name": original["ref_node_name"], "ref_node_target_type": original["ref_node_target_type"],
            "fqn": original["fqn"], "candidates": candidates,
        }  # fmt: skip
    return compared


def print_n_shadows_summary(results_comparison: Any) -> None:
    """Prints a table of the means.

    Args:
        results_comparison: What `create_results_comparison` returned.
    """
    try:
        from tabulate import tabulate
    except ImportError:
        print(
            "`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run `pip "
            "install tabulate` to install the library."
        )
        return
    rows = []
    for found in results_comparison.values():
        means = [candidate["cmp_mean"] for candidate in found["candidates"].values()]
        rows.append([found["ref_node_name"], found["ref_node_target_type"], found["fqn"], *means])
    count = max((len(row) - 3 for row in rows), default=0)
    print(tabulate(rows, headers=["node_name", "node_type", "fqn", *map(str, range(count))]))
