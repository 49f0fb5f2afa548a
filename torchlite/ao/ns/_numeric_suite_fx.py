"""Comparison of graph modules: weights, outputs of nodes, and outputs for the same inputs."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite._settings.adopted_classes import adopt_class
from torchlite.ao import quantization
from torchlite.ao.quantization.backend_config import BackendConfig
from torchlite.ao.quantization.backend_config.utils import get_fusion_pattern_to_root_node_getter
from torchlite.ao.quantization.fx.graph_module import _get_observed_graph_module_attr
from torchlite.ao.quantization.fx.match_utils import _find_matches
from torchlite.ao.quantization.fx.qconfig_mapping_utils import _generate_node_name_to_qconfig
from torchlite.ao.quantization.fx.quantize_handler import _get_pattern_to_quantize_handlers
from torchlite.ao.quantization.quantize_fx import QuantizationTracer
from torchlite.fx import GraphModule, Node

from .fx._loggers import OutputComparisonLogger, OutputLogger
from .fx._loggers import RNNReturnType as RNNReturnType
from .fx.graph_matcher import get_matching_subgraph_pairs
from .fx.graph_passes import add_loggers_to_model, create_a_shadows_b
from .fx.n_shadows_utils import (
    SHADOW_WRAPPER_NODE_NAME_PREFIX,
    OutputProp,
    _get_dedup_subgraphs,
    create_add_loggers_graph,
    create_n_transformed_and_logged_copies_of_subgraph,
    create_results_comparison,
    extract_weight_comparison,
    group_results_by_subgraph,
    print_n_shadows_summary,
)
from .fx.ns_types import NSNodeTargetType, NSResultsType, NSSingleResultValuesType
from .fx.qconfig_multi_mapping import QConfigMultiMapping
from .fx.utils import get_target_type_str, maybe_add_missing_fqns, rekey_logger_info_on_node_name_of_model
from .fx.weight_utils import extract_weight_from_node

for _class in (OutputLogger, OutputComparisonLogger):
    adopt_class(_class, __name__)
_Related = dict[str, set[NSNodeTargetType]] | None


class NSTracer(QuantizationTracer):
    """A tracer for which observers are calls."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        if isinstance(m, (quantization.ObserverBase, quantization.FakeQuantizeBase)):
            return True
        return super().is_leaf_module(m, module_qualified_name)


def _traced(model: Any) -> GraphModule:
    """Return the graph of a model, with the modules that its nodes are from, if it was observed."""
    traced = GraphModule(model, NSTracer([], []).trace(model))
    scopes = _get_observed_graph_module_attr(model, "node_name_to_scope")
    if scopes is not None:
        traced._node_name_to_scope = scopes
    return traced


def _extract_weights_one_model(
    model_name: str, model: GraphModule, nodes_and_names_to_instrument: list[tuple[Node, str]],
    results: NSResultsType, op_to_type_to_weight_extraction_fn: Any = None,
) -> None:  # fmt: skip
    kind = NSSingleResultValuesType.WEIGHT.value
    for node, name in nodes_and_names_to_instrument:
        found = extract_weight_from_node(node, model, op_to_type_to_weight_extraction_fn)
        if found:
            results.setdefault(name, {kind: {}})[kind][model_name] = [found]


def _extract_weights_impl(
    model_name_a: str, gm_a: GraphModule, model_name_b: str, gm_b: GraphModule,
    base_name_to_sets_of_related_ops: _Related = None, unmatchable_types_map: _Related = None,
    op_to_type_to_weight_extraction_fn: Any = None,
) -> NSResultsType:  # fmt: skip
    pairs = get_matching_subgraph_pairs(gm_a, gm_b, base_name_to_sets_of_related_ops, unmatchable_types_map)
    results: NSResultsType = {}
    for place, (model_name, gm) in enumerate(((model_name_a, gm_a), (model_name_b, gm_b))):
        nodes = [(pair[place].base_op_node, name) for name, pair in pairs.items()]
        _extract_weights_one_model(model_name, gm, nodes, results, op_to_type_to_weight_extraction_fn)
    maybe_add_missing_fqns(results)
    return rekey_logger_info_on_node_name_of_model(results, model_name_b)


def extract_weights(
    model_name_a: str, model_a: nn.Module, model_name_b: str, model_b: nn.Module,
    base_name_to_sets_of_related_ops: _Related = None, unmatchable_types_map: _Related = None,
    op_to_type_to_weight_extraction_fn: dict[str, dict[Callable, Callable]] | None = None,
) -> NSResultsType:  # fmt: skip
    """The weights of two models side by side.

    Args:
        model_name_a: The name of the first model.
        model_a: The first model.
        model_name_b: The name of the second one.
        model_b: The second one.
        base_name_to_sets_of_related_ops: The sets of ops that compute the same. Default: those of `mappings`.
        unmatchable_types_map: Ops without a counterpart. Default: those of `mappings`.
        op_to_type_to_weight_extraction_fn: The functions that return weights. Default: those of `weight_utils`.

    Returns:
        Results by layer, kind of values and model.

    Example:
        >>> from torchlite.ao.ns._numeric_suite_fx import extract_weights
        >>> model = torch.nn.Sequential(torch.nn.Linear(3, 2))
        >>> found = extract_weights("a", model, "b", model)
        >>> {name: [*kinds["weight"]] for name, kinds in found.items()}
        {'_0': ['a', 'b']}
    """
    return _extract_weights_impl(
        model_name_a, _traced(model_a), model_name_b, _traced(model_b), base_name_to_sets_of_related_ops,
        unmatchable_types_map, op_to_type_to_weight_extraction_fn,
    )  # fmt: skip


def _add_loggers_one_model(
    model_name: str, model: GraphModule, nodes_and_names_to_instrument_inputs: list[tuple[Node, str, str]],
    nodes_and_names_to_instrument_outputs: list[tuple[Node, str, str]], logger_cls: Callable,
) -> nn.Module:  # fmt: skip
    inputs, outputs = (
        {node: (name, kind) for node, name, kind in nodes}
        for nodes in (nodes_and_names_to_instrument_inputs, nodes_and_names_to_instrument_outputs)
    )
    return add_loggers_to_model(model, inputs, outputs, logger_cls, model_name)


def _add_loggers_impl(
    name_a: str, gm_a: GraphModule, name_b: str, gm_b: GraphModule, logger_cls: Callable, should_log_inputs: bool,
    base_name_to_sets_of_related_ops: _Related = None, unmatchable_types_map: _Related = None,
) -> tuple[nn.Module, nn.Module]:  # fmt: skip
    pairs = get_matching_subgraph_pairs(gm_a, gm_b, base_name_to_sets_of_related_ops, unmatchable_types_map)
    made = []
    for place, (model_name, gm) in enumerate(((name_a, gm_a), (name_b, gm_b))):
        parts = [(pair[place], name, get_target_type_str(pair[place].base_op_node, gm)) for name, pair in pairs.items()]
        inputs = [(part.start_node, name, kind) for part, name, kind in parts] if should_log_inputs else []
        outputs = [(part.end_node, name, kind) for part, name, kind in parts]
        made.append(_add_loggers_one_model(model_name, gm, inputs, outputs, logger_cls))
    return made[0], made[1]


def add_loggers(
    name_a: str, model_a: nn.Module, name_b: str, model_b: nn.Module, logger_cls: Callable,
    should_log_inputs: bool = False, base_name_to_sets_of_related_ops: _Related = None,
    unmatchable_types_map: _Related = None,
) -> tuple[nn.Module, nn.Module]:  # fmt: skip
    """Copies of two models with loggers behind the nodes that compute the same.

    Args:
        name_a: The name of the first model.
        model_a: The first model.
        name_b: The name of the second one.
        model_b: The second one.
        logger_cls: The class of loggers, as `OutputLogger`.
        should_log_inputs: Whether inputs are logged too. Default: ``False``.
        base_name_to_sets_of_related_ops: The sets of ops that compute the same. Default: those of `mappings`.
        unmatchable_types_map: Ops without a counterpart. Default: those of `mappings`.

    Returns:
        Both copies.

    Example:
        >>> from torchlite.ao.ns._numeric_suite_fx import OutputLogger, add_loggers, extract_logger_info
        >>> model = torch.nn.Sequential(torch.nn.Linear(3, 2))
        >>> first, second = add_loggers("a", model, "b", model, OutputLogger)
        >>> _ = first(torch.ones(1, 3)), second(torch.ones(1, 3))
        >>> [*extract_logger_info(first, second, OutputLogger, "b")]
        ['_0']
    """
    return _add_loggers_impl(
        name_a, _traced(model_a), name_b, _traced(model_b), logger_cls, should_log_inputs,
        base_name_to_sets_of_related_ops, unmatchable_types_map,
    )  # fmt: skip


def _extract_logger_info_one_model(model: nn.Module, results: NSResultsType, logger_cls: Any) -> None:
    """Add what the loggers of a model noted to results."""
    for module in model.modules():
        scripted = isinstance(module, torch.jit.RecursiveScriptModule) and module.original_name == "OutputLogger"
        if not scripted and not isinstance(module, logger_cls):
            continue
        logger: Any = module
        kinds = results.setdefault(logger.ref_name, {})
        found = kinds.setdefault(logger.results_type, {}).setdefault(logger.model_name, [])
        names = (
            "ref_node_name", "ref_node_target_type", "prev_node_name", "prev_node_target_type", "index_within_arg",
            "index_of_arg", "fqn", "qconfig_str",
        )  # fmt: skip
        values = logger.stats_rnn if len(logger.stats_rnn) > 0 else logger.stats
        found.append({
            "type": logger.results_type, "values": values, **{name: getattr(logger, name) for name in names},
            "comparisons": getattr(logger, "comparisons", []),
            "comparison_fn_name": getattr(logger, "comparison_fn_name", ""),
        })  # fmt: skip
        found.sort(key=lambda result: f"{result['index_of_arg']}:{result['index_within_arg']}")


def extract_logger_info(
    model_a: nn.Module, model_b: nn.Module, logger_cls: Callable, model_name_to_use_for_layer_names: str
) -> NSResultsType:
    """Returns the tensors that the loggers of two models recorded, side by side.

    Args:
        model_a: The first model, of `add_loggers`.
        model_b: The second one.
        logger_cls: The class of loggers.
        model_name_to_use_for_layer_names: The name of the model whose nodes name the results.

    Returns:
        Results by layer, kind of values and model.
    """
    results: NSResultsType = {}
    for model in (model_a, model_b):
        _extract_logger_info_one_model(model, results, logger_cls)
    maybe_add_missing_fqns(results)
    return rekey_logger_info_on_node_name_of_model(results, model_name_to_use_for_layer_names)


def _add_shadow_loggers_impl(
    name_a: str, gm_a: GraphModule, name_b: str, gm_b: GraphModule, logger_cls: Callable, should_log_inputs: bool,
    base_name_to_sets_of_related_ops: _Related = None, node_type_to_io_type_map: _Related = None,
    unmatchable_types_map: _Related = None,
) -> nn.Module:  # fmt: skip
    pairs = get_matching_subgraph_pairs(gm_a, gm_b, base_name_to_sets_of_related_ops, unmatchable_types_map)
    return create_a_shadows_b(
        name_a, gm_a, name_b, gm_b, pairs, logger_cls, should_log_inputs, node_type_to_io_type_map
    )


def add_shadow_loggers(
    name_a: str, model_a: nn.Module, name_b: str, model_b: nn.Module, logger_cls: Callable,
    should_log_inputs: bool = False, base_name_to_sets_of_related_ops: _Related = None,
    node_type_to_io_type_map: _Related = None, unmatchable_types_map: _Related = None,
) -> nn.Module:  # fmt: skip
    """A copy of the second model which computes the nodes of the first beside its own, with the same inputs, and
    logs the outputs of both.

    Args:
        name_a: The name of the first model.
        model_a: The first model.
        name_b: The name of the second one.
        model_b: The second one.
        logger_cls: The class of loggers, as `OutputLogger`.
        should_log_inputs: Whether inputs are logged too. Default: ``False``.
        base_name_to_sets_of_related_ops: The sets of ops that compute the same. Default: those of `mappings`.
        node_type_to_io_type_map: The types that ops take. Default: those of `mappings`.
        unmatchable_types_map: Ops without a counterpart. Default: those of `mappings`.

    Returns:
        The copy.

    Example:
        >>> from torchlite.ao.ns._numeric_suite_fx import (
        ...     OutputLogger, add_shadow_loggers, extract_shadow_logger_info)
        >>> first, second = (torch.nn.Sequential(torch.nn.Linear(3, 2)) for _ in range(2))
        >>> both = add_shadow_loggers("a", first, "b", second, OutputLogger)
        >>> _ = both(torch.ones(1, 3))
        >>> [*extract_shadow_logger_info(both, OutputLogger, "b")["_0"]["node_output"]]
        ['a', 'b']
    """
    return _add_shadow_loggers_impl(
        name_a, _traced(model_a), name_b, _traced(model_b), logger_cls, should_log_inputs,
        base_name_to_sets_of_related_ops, node_type_to_io_type_map, unmatchable_types_map,
    )  # fmt: skip


def extract_shadow_logger_info(
    model_a_shadows_b: nn.Module, logger_cls: Callable, model_name_to_use_for_layer_names: str
) -> NSResultsType:
    """Returns the tensors that the loggers of a model with shadows recorded.

    Args:
        model_a_shadows_b: The model, of `add_shadow_loggers`.
        logger_cls: The class of loggers.
        model_name_to_use_for_layer_names: The name of the model whose nodes name the results.

    Returns:
        Results by layer, kind of values and model.
    """
    results: NSResultsType = collections.defaultdict(dict)
    _extract_logger_info_one_model(model_a_shadows_b, results, logger_cls)
    maybe_add_missing_fqns(results)
    return dict(rekey_logger_info_on_node_name_of_model(results, model_name_to_use_for_layer_names))


def extend_logger_results_with_comparison(
    results: NSResultsType, model_name_1: str, model_name_2: str, comparison_fn: Callable, comparison_name: str
) -> None:
    """Adds the measures of a function to results of a model, in comparison with another one.

    Args:
        results: The results, which are changed.
        model_name_1: The name of the model that is compared with.
        model_name_2: The name of the model whose results get the measures.
        comparison_fn: The function of both tensors.
        comparison_name: The key of the measures.

    Raises:
        AssertionError: A result has no counterpart.
    """
    for by_kind in results.values():
        for by_model in by_kind.values():
            others = {(one["index_of_arg"], one["index_within_arg"]): one for one in reversed(by_model[model_name_1])}
            for result in by_model[model_name_2]:
                other = others.get((result["index_of_arg"], result["index_within_arg"]))
                if other is None:
                    raise AssertionError("Expected result_1 to be not None")
                pairs = zip(other["values"], result["values"], strict=False)
                result[comparison_name] = [comparison_fn(first, second) for first, second in pairs]


def _matched(model: Any, example_inputs: Any, backend_config: BackendConfig, tracer: Any) -> tuple[GraphModule, Any]:
    """Return the graph of a model, whose nodes know their outputs, and the nodes that can be quantized."""
    graph = tracer.trace(model)
    traced = GraphModule(model, graph)
    traced._node_name_to_scope = tracer.node_name_to_scope
    OutputProp(traced).propagate(*example_inputs)
    matches = _find_matches(
        traced.graph, dict(traced.named_modules(remove_duplicate=False)),
        _get_pattern_to_quantize_handlers(backend_config), get_fusion_pattern_to_root_node_getter(backend_config),
    )  # fmt: skip
    return traced, _get_dedup_subgraphs(matches)


def _qconfigs_of(traced: GraphModule, mapping: Any) -> dict[str, Any]:
    modules = dict(traced.named_modules(remove_duplicate=False))
    return _generate_node_name_to_qconfig(traced, modules, traced.graph, mapping, traced._node_name_to_scope)  # type: ignore[arg-type]


def prepare_n_shadows_model(
    model: nn.Module, example_inputs: Any, qconfig_multi_mapping: QConfigMultiMapping, backend_config: BackendConfig,
    custom_prepare_fn: Callable | None = None, custom_prepare_kwargs: dict[str, Any] | None = None,
    custom_tracer: Any = None,
) -> GraphModule:  # fmt: skip
    """A graph of a model with prepared copies of each op beside it, one for each configuration.

    Args:
        model: The model.
        example_inputs: Its inputs.
        qconfig_multi_mapping: The configurations.
        backend_config: What the backend supports.
        custom_prepare_fn: The function that prepares a copy. Default: `prepare_fx`.
        custom_prepare_kwargs: Other arguments of it. Default: none.
        custom_tracer: The tracer. Default: `QuantizationTracer`.

    Returns:
        The graph module.

    Example:
        >>> from torchlite.ao.ns._numeric_suite_fx import prepare_n_shadows_model
        >>> from torchlite.ao.ns.fx.qconfig_multi_mapping import QConfigMultiMapping
        >>> from torchlite.ao.quantization.backend_config import get_native_backend_config
        >>> mapping = QConfigMultiMapping().set_global([torch.ao.quantization.default_qconfig])
        >>> model = torch.nn.Sequential(torch.nn.Linear(3, 2))
        >>> made = prepare_n_shadows_model(model, (torch.ones(1, 3),), mapping, get_native_backend_config())
        >>> [node.target for node in made.graph.nodes if node.op == "call_module"]
        ['0', 'shadow_0_0', 'shadow_wrapper_0_1', 'shadow_0_1']
    """
    tracer = QuantizationTracer([], []) if custom_tracer is None else custom_tracer
    traced, parts = _matched(model, example_inputs, backend_config, tracer)
    mappings = qconfig_multi_mapping.qconfig_mappings_list
    qconfigs = [_qconfigs_of(traced, mapping) for mapping in mappings]
    for number, (name, nodes) in enumerate(parts.items()):
        create_n_transformed_and_logged_copies_of_subgraph(
            traced, number, name, nodes, mappings, qconfigs, custom_prepare_fn, custom_prepare_kwargs
        )
    return traced


def _prepare_n_shadows_add_loggers_model(
    model: nn.Module, example_inputs: Any, qconfig_mapping: Any, backend_config: BackendConfig
) -> nn.Module:
    """Return a graph of a model with a second, prepared computation beside its own, whose outputs are compared."""
    traced, parts = _matched(model, example_inputs, backend_config, QuantizationTracer([], []))
    create_add_loggers_graph(traced, parts, qconfig_mapping, _qconfigs_of(traced, qconfig_mapping))
    return traced


def _n_shadows_compare_weights(
    model: nn.Module, example_inputs: Any, qconfig_mapping: Any, backend_config: BackendConfig
) -> NSResultsType:
    """Return the weights of a model beside those of its quantized copies."""
    mappings = QConfigMultiMapping.from_list_qconfig_mapping([qconfig_mapping])
    prepared = prepare_n_shadows_model(model, example_inputs, mappings, backend_config)
    prepared(*example_inputs)
    return extract_weight_comparison(convert_n_shadows_model(prepared))


def loggers_set_enabled(model: nn.Module, enabled: bool) -> None:
    """Switches the loggers of a model.

    Args:
        model: The model.
        enabled: Whether they note anything.
    """
    for module in model.modules():
        if isinstance(module, OutputLogger):
            module.enabled = enabled


def loggers_set_save_activations(model: nn.Module, save_activations: bool) -> None:
    """Switches whether the loggers of a model note tensors; measures are noted in any case.

    Args:
        model: The model.
        save_activations: Whether they note tensors.
    """
    for module in model.modules():
        if isinstance(module, OutputLogger):
            module.save_activations = save_activations


def convert_n_shadows_model(
    model: GraphModule, custom_convert_fn: Callable | None = None,
    custom_convert_kwargs: dict[str, Any] | None = None,
) -> GraphModule:  # fmt: skip
    """Converts the prepared copies of ops.

    Args:
        model: The module of `prepare_n_shadows_model`, after a run over data; it is changed.
        custom_convert_fn: The function that converts a copy. Default: `convert_fx`.
        custom_convert_kwargs: Other arguments of it. Default: none.

    Returns:
        The module.
    """
    for node in model.graph.nodes:
        if not node.name.startswith(SHADOW_WRAPPER_NODE_NAME_PREFIX):
            continue
        if custom_convert_fn is None:
            made = quantization.quantize_fx.convert_fx(getattr(model, node.name))
        else:
            made = custom_convert_fn(getattr(model, node.name), **(custom_convert_kwargs or {}))
        setattr(model, node.name, made)
    return model


def extract_results_n_shadows_model(model: nn.Module) -> NSResultsType:
    """Returns the tensors that the loggers of a module with copies recorded.

    Args:
        model: The module, of `convert_n_shadows_model`.

    Returns:
        Results by layer, kind of values and model.
    """
    results: NSResultsType = {}
    _extract_logger_info_one_model(model, results, OutputLogger)
    return results


def print_comparisons_n_shadows_model(results: NSResultsType) -> None:
    """Prints a table of the mean measures of each op and configuration.

    Args:
        results: What `extract_results_n_shadows_model` returned.
    """
    print_n_shadows_summary(create_results_comparison(group_results_by_subgraph(results)))
