"""Observers in a graph: after the outputs of matched patterns, and before inputs that want another dtype."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torchlite as torch
from torchlite.ao.nn.quantized import FloatFunctional, FXFloatFunctional
from torchlite.fx import GraphModule
from torchlite.fx.graph import Node
from torchlite.nn import Module

from ..backend_config import BackendConfig, DTypeConfig, get_native_backend_config
from ..backend_config.utils import get_fusion_pattern_to_root_node_getter, get_module_to_qat_module
from ..observer import ObserverBase, PlaceholderObserver, _is_activation_post_process
from ..qconfig import _default_fp32_placeholder_qconfig, _default_quint8_placeholder_qconfig, _is_reuse_input_qconfig
from ..qconfig_mapping import QConfigMapping
from ..quantize import convert as convert_modules
from ..quantize import propagate_qconfig_
from ..utils import _parent_name, get_qconfig_dtypes, get_swapped_custom_module_class
from ._equalize import is_equalization_observer, node_supports_equalization
from .custom_config import FuseCustomConfig, PrepareCustomConfig, StandaloneModuleConfigEntry
from .fuse import from_deprecated_dict, fuse
from .graph_module import attach_preserved_attrs_to_model, preserved_attributes
from .match_utils import _find_matches, _flat
from .pattern_utils import _sorted_patterns_dict
from .qconfig_mapping_utils import (
    _generate_node_name_to_qconfig,
    _get_flattened_qconfig_dict,
    _update_qconfig_for_fusion,
    _update_qconfig_for_qat,
)
from .quantize_handler import _default_root_node_getter, _get_pattern_to_quantize_handlers
from .tracer import QuantizationTracer
from .utils import (
    NON_QUANTIZABLE_WEIGHT_OPS,
    ObservedGraphModuleAttrs,
    _insert_dequant_stubs_for_custom_module_lstm_output,
    _is_custom_module_lstm,
    _maybe_get_custom_module_lstm_from_node_arg,
    _qconfig_satisfies_dtype_config_constraints,
    all_node_args_have_no_tensors,
    assert_and_get_unique_device,
    get_custom_module_class_keys,
    get_new_attr_name_with_prefix,
    get_non_observable_arg_indexes_and_types,
    get_skipped_module_name_and_classes,
    node_arg_is_bias,
    node_arg_is_weight,
)

__all__ = ["insert_observers_for_model", "prepare", "propagate_dtypes_for_known_nodes"]
_OBSERVED_DTYPES = (
    torch.quint8, torch.qint8, torch.qint32, torch.float16, torch.uint8, torch.int8, torch.int16, torch.int32,
    torch.float8_e5m2, torch.float8_e4m3fn,
)  # fmt: skip
_NO_TENSORS = {"input_act_obs_or_fq_ctr": None, "output_act_obs_or_fq_ctr": None}


def _ends(qconfig: Any) -> dict[str, Any]:
    return {"input_act_obs_or_fq_ctr": qconfig.activation, "output_act_obs_or_fq_ctr": qconfig.activation}


_NUMBERS, _BYTES = _ends(_default_fp32_placeholder_qconfig), _ends(_default_quint8_placeholder_qconfig)
_NUMBER_OBSERVER = PlaceholderObserver.with_args(dtype=torch.float)


def _made(make: Any) -> Any:
    return make() if make else None


def _dtype_of(observer: Any) -> tuple[Any, bool]:
    """The dtype that an observer is for, and whether numbers are quantized by their range."""
    return (None, False) if observer is None else (observer.dtype, getattr(observer, "is_dynamic", False))


def _wants_observer(produced: Any, wanted: Any, is_dynamic: bool, reuses: bool, is_first: bool) -> bool:
    """True if a tensor of one dtype is observed to become one of another."""
    if is_dynamic:
        if wanted not in _OBSERVED_DTYPES or produced in (int, float, torch.bool, None):
            raise AssertionError(f"no observer quantizes {produced} to {wanted} dynamically")
        return is_first
    if reuses or wanted not in _OBSERVED_DTYPES:
        return False
    return produced in (*_OBSERVED_DTYPES, torch.float) and wanted != produced


def _insert_obs_or_fq(
    node: Node, obs_or_fq: Any, model: Any, named_modules: dict[str, Any], graph: Any, model_device: Any = None
) -> Node:
    """Put an observer of a node's result behind it, as a new module, and return the node of its call."""
    device = assert_and_get_unique_device(model) if model_device is None else model_device
    if device is not None:
        obs_or_fq.to(device)
    is_equalization = is_equalization_observer(obs_or_fq)
    prefix = f"{node.name}_equalization_process_" if is_equalization else "activation_post_process_"
    name = get_new_attr_name_with_prefix(prefix)(model)
    setattr(model, name, obs_or_fq)
    named_modules[name] = obs_or_fq
    with graph.inserting_after(node):
        return graph.create_node("call_module", name, (node,), {})


def _save_state(
    observed: Any, node_name_to_qconfig: dict[str, Any], node_name_to_scope: dict[str, tuple[str, type]],
    prepare_custom_config: PrepareCustomConfig, equalization_node_name_to_qconfig: dict[str, Any], qconfig_mapping: Any,
    is_qat: bool, observed_node_names: set[str],
) -> ObservedGraphModuleAttrs:  # fmt: skip
    """Keep in a prepared model's metadata what `convert` needs, and return it."""
    observed.meta["_observed_graph_module_attrs"] = attributes = ObservedGraphModuleAttrs(
        node_name_to_qconfig, node_name_to_scope, prepare_custom_config, equalization_node_name_to_qconfig,
        qconfig_mapping, is_qat, observed_node_names,
    )  # fmt: skip
    return attributes


class _Match:
    """A match of a pattern, with the configuration of its node."""

    def __init__(self, match: tuple, qconfig: Any) -> None:
        self.last, self.nodes, self.pattern, self.handler = match
        self.qconfig = qconfig


class _Observation:
    """The insertion of observers into one model."""

    def __init__(
        self, model: Any, matches: dict[str, _Match], qconfigs: dict[str, Any], custom: PrepareCustomConfig,
        equalization: dict[str, Any], backend: BackendConfig, observed_names: set[str], is_qat: bool,
    ) -> None:  # fmt: skip
        self.model, self.graph, self.matches, self.qconfigs = model, model.graph, matches, qconfigs
        self.custom, self.equalization, self.backend_config = custom, equalization, backend
        self.observed_names, self.is_qat = observed_names, is_qat
        self.modules: dict[str, Any] = dict(model.named_modules(remove_duplicate=False))
        self.device = assert_and_get_unique_device(model)
        self.roots = get_fusion_pattern_to_root_node_getter(backend)
        self.cache: dict[Any, bool] = {}
        self.swapped: set[Any] = set()

    # -- the dtypes that nodes want ---------------------------------------------------------------------------------

    def target_of(self, node: Node, qconfig: Any, handler: Any) -> dict[str, Any]:
        """The observers that a node wants for its inputs and its output."""
        if all_node_args_have_no_tensors(node, self.modules, self.cache):
            return dict(_NO_TENSORS)
        activation, weight, is_dynamic = get_qconfig_dtypes(qconfig)
        is_half = activation is torch.float16 and weight is torch.float16 and not is_dynamic
        config = (
            self.backend_config._pattern_complex_format_to_config.get(node.target)
            if node.op == "call_function"
            else None
        )
        places = {} if config is None else config._input_type_to_index
        return {
            **_ends(qconfig), "weight_obs_or_fq_ctr": qconfig.weight,
            "bias_obs_or_fq_ctr": PlaceholderObserver.with_args(dtype=torch.float16 if is_half else torch.float),
            "weight_index": places.get("weight"), "bias_index": places.get("bias"),
            "reuse_input_obs_or_fq": _is_reuse_input_qconfig(qconfig),
            "input_output_share_observers": handler is not None and handler.is_general_tensor_value_op(),
            "_is_standalone_module": handler is not None and handler.is_standalone_module(),
        }  # fmt: skip

    def set_targets(self) -> None:
        """Write into each node what observers it wants."""
        for node in self.graph.nodes:
            node.meta["target_dtype_info"] = dict(_NUMBERS)
        done: set[Node] = set()
        for match in self.matches.values():
            self._set_of_match(match, match.qconfig, match.handler, done)
        inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        outputs = [node for node in self.graph.nodes if node.op == "output"]
        for nodes, places in (
            (inputs, self.custom.input_quantized_indexes), (outputs, self.custom.output_quantized_indexes),
        ):  # fmt: skip
            for place in places:
                if place < len(nodes):
                    nodes[place].meta["target_dtype_info"] = dict(_BYTES)
        for node in self.graph.nodes:
            if node.op in ("call_module", "call_method", "call_function"):
                if all_node_args_have_no_tensors(node, self.modules, self.cache):
                    node.meta["target_dtype_info"] = dict(_NO_TENSORS)
        propagate_dtypes_for_known_nodes(self.graph, self.matches)
        done = set()
        for match in self.matches.values():
            if not self.is_supported(match):
                self._set_of_match(match, _default_fp32_placeholder_qconfig, None, done)

    def _set_of_match(self, match: _Match, qconfig: Any, handler: Any, done: set[Node]) -> None:
        for node in _flat(match.nodes):
            if node not in done:
                done.add(node)
                if qconfig is not None:
                    node.meta["target_dtype_info"] = self.target_of(node, qconfig, handler)

    # -- what the backend supports ----------------------------------------------------------------------------------

    def root_of(self, match: _Match) -> Node:
        return self.roots.get(match.pattern, _default_root_node_getter)(match.nodes)

    def is_supported(self, match: _Match | None) -> bool:
        """True if the backend has the dtypes of a match's configuration for its pattern."""
        if match is None or match.pattern is None:
            return True
        config = self.backend_config._pattern_complex_format_to_config.get(match.pattern)
        first, last = self.root_of(match), match.nodes[0]
        return any(
            all(
                self._supports_argument(arg, first, match.qconfig, dtypes)
                for arg in (*first.args, *first.kwargs.values())
            )
            and self._supports_output(last, match.qconfig, dtypes)
            for dtypes in ([] if config is None else config.dtype_configs)
        )

    def _supports_argument(self, arg: Any, node: Node, qconfig: Any, dtypes: DTypeConfig) -> bool:
        if isinstance(arg, (list, tuple)):
            return all(self._supports_argument(part, node, qconfig, dtypes) for part in arg)
        if not isinstance(arg, Node):
            return True
        target = node.meta["target_dtype_info"]
        if node_arg_is_weight(node, arg):
            wanted, _ = _dtype_of(_made(target.get("weight_obs_or_fq_ctr")))
            limits = dtypes.weight_dtype_with_constraints
            fits = _qconfig_satisfies_dtype_config_constraints(qconfig, limits, is_activation=False)
            return dtypes.weight_dtype is None or (wanted == dtypes.weight_dtype and fits)
        if node_arg_is_bias(node, arg):
            wanted, _ = _dtype_of(_made(target.get("bias_obs_or_fq_ctr")))
            return dtypes.bias_dtype is None or wanted == dtypes.bias_dtype
        wanted, is_dynamic = _dtype_of(_made(target.get("input_act_obs_or_fq_ctr")))
        return dtypes.input_dtype is None or (
            wanted == dtypes.input_dtype
            and bool(is_dynamic) == bool(dtypes.is_dynamic)
            and _qconfig_satisfies_dtype_config_constraints(qconfig, dtypes.input_dtype_with_constraints)
        )

    def _supports_output(self, node: Node, qconfig: Any, dtypes: DTypeConfig) -> bool:
        make = node.meta["target_dtype_info"].get("output_act_obs_or_fq_ctr", _NUMBER_OBSERVER)
        wanted, is_dynamic = _dtype_of(_made(make))
        wanted = torch.float32 if is_dynamic else wanted
        fits = _qconfig_satisfies_dtype_config_constraints(qconfig, dtypes.output_dtype_with_constraints)
        return dtypes.output_dtype is None or (wanted == dtypes.output_dtype and fits)

    # -- observers --------------------------------------------------------------------------------------------------

    def is_observer(self, node: Any) -> bool:
        """True if a node calls an observer or fake quantization."""
        if not isinstance(node, Node) or node.op != "call_module":
            return False
        return _is_activation_post_process(self.modules[str(node.target)])

    def insert(self, node: Node, observer: Any) -> Node:
        """Put an observer of a node's result behind it."""
        return _insert_obs_or_fq(node, observer, self.model, self.modules, self.graph, self.device)

    def produced(self, arg: Node) -> Any:
        """The dtype of the tensor that a node hands out."""
        source = _maybe_get_custom_module_lstm_from_node_arg(arg, self.modules)
        if source is None:
            source = arg.args[0] if self.is_observer(arg) else arg  # type: ignore[assignment]
        target = source.meta.get("target_dtype_info", {})  # type: ignore[union-attr]
        return _dtype_of(_made(target.get("output_act_obs_or_fq_ctr", _NUMBER_OBSERVER)))[0]

    def observe_inputs(self, node: Node, match: _Match) -> None:
        """Put observers before the inputs of a pattern that want them."""
        node.args = tuple(self._observed_input(node, arg, match) for arg in node.args)
        node.kwargs = {name: self._observed_input(node, arg, match) for name, arg in node.kwargs.items()}

    def _observed_input(self, node: Node, arg: Any, match: _Match) -> Any:
        if isinstance(arg, (list, tuple)):
            return type(arg)([self._observed_input(node, part, match) for part in arg])
        if not isinstance(arg, Node):
            return arg
        produced = self.produced(arg)
        if match.handler is not None and match.handler.is_standalone_module():
            entry = self.entry_of_standalone(node, match.qconfig)
            places = [place for place, other in enumerate(node.args) if other is arg]
            is_quantized = bool(places) and places[0] in entry.prepare_custom_config.input_quantized_indexes  # type: ignore[union-attr]
            wanted = torch.quint8 if is_quantized else torch.float
            needs = bool(places) and produced != wanted and is_quantized
            observer = _made(match.qconfig.activation)
        else:
            target = node.meta["target_dtype_info"]
            observer = self._observer_for_argument(node, arg, target)
            wanted, is_dynamic = _dtype_of(observer)
            is_first = bool(node.args) and arg is node.args[0]
            reuses = target.get("reuse_input_obs_or_fq", False)
            needs = _wants_observer(produced, wanted, is_dynamic, reuses, is_first)
        if not needs:
            return arg
        for user in arg.users:
            if user.op == "call_module":
                found = self.modules[str(user.target)]
                if type(found) is type(observer) and found.dtype == wanted:
                    return user
        return self.insert(arg, observer)

    def _observer_for_argument(self, node: Node, arg: Node, target: dict[str, Any]) -> Any:
        if node_arg_is_weight(node, arg):
            if node.target in NON_QUANTIZABLE_WEIGHT_OPS:
                return None
            return _made(target.get("weight_obs_or_fq_ctr", _NUMBER_OBSERVER))
        kind = "bias_obs_or_fq_ctr" if node_arg_is_bias(node, arg) else "input_act_obs_or_fq_ctr"
        return _made(target.get(kind, _NUMBER_OBSERVER))

    def observe_for_equalization(self, node: Node, qconfig: Any, is_branch: bool) -> None:
        """Put observers of equalization before a node's input and weight."""
        if qconfig is None or not node_supports_equalization(node, self.modules):
            return
        if is_branch:
            warnings.warn(f"Cannot equalize {node} because it is part of a branch.", stacklevel=2)
            return
        args = []
        for arg in node.args:
            if isinstance(arg, Node) and not node_arg_is_bias(node, arg):
                make = qconfig.weight if node_arg_is_weight(node, arg) else qconfig.input_activation
                arg = self.insert(arg, make())
            args.append(arg)
        node.args = tuple(args)

    def observe_output(self, node: Node) -> Node | None:
        """Put an observer behind a pattern, if its output wants one."""
        target = node.meta["target_dtype_info"]
        observer = _made(target.get("output_act_obs_or_fq_ctr"))
        wanted, is_dynamic = _dtype_of(observer)
        if is_dynamic or target.get("_is_standalone_module", False):
            return None
        if not _wants_observer(torch.float, wanted, False, False, False):
            return None
        found = self.insert(node, observer)
        for user in list(node.users):
            if user is not found:
                user.replace_input_with(node, found)
        return found

    def observe_graph_output(self, value: Any) -> Any:
        """The value that a graph returns, with observers where it must be quantized."""
        if isinstance(value, Node):
            observer = _made(value.meta.get("target_dtype_info", {}).get("input_act_obs_or_fq_ctr"))
            wanted = torch.float if observer is None else observer.dtype
            return self.insert(value, observer) if wanted not in (torch.float, self.produced(value)) else value
        if isinstance(value, (list, tuple)):
            parts = [self.observe_graph_output(part) for part in value]
            return parts if isinstance(value, list) else tuple(parts)
        if isinstance(value, dict):
            return {name: self.observe_graph_output(part) for name, part in value.items()}
        if value is None:
            return None
        raise Exception("Unhandled type for returned node:", value)

    def _observer_behind(self, node: Any) -> Any:
        """The nearest observer among a node and those that it is made of."""
        while not self.is_observer(node):
            if not isinstance(node, Node) or node.op == "placeholder":
                return None
            node = next((arg for arg in node.args if isinstance(arg, Node)), None)
        return node

    def share_observers(self, node: Node) -> bool:
        """Let a node's inputs and output have the first input's observer. False if that has none."""
        first = next((arg for arg in node.args if isinstance(arg, (Node, list, tuple))), None)
        inputs = list(first) if isinstance(first, (list, tuple)) else [first]
        if not inputs:
            return False
        observers = [self._observer_behind(arg) for arg in inputs]
        if any(found is None for found in observers):
            return False
        shared = self.modules[observers[0].target]
        for other in (*observers[1:], *node.users):
            parent, name = _parent_name(str(other.target))
            setattr(self.modules[parent], name, shared)
        return True

    def _is_observed_elsewhere(self, node: Node) -> bool:
        """True if a node's input is one of the graph, which is quantized already."""
        first = node.args[0] if node.args else None
        is_input = isinstance(first, Node) and first.op == "placeholder"
        return is_input and self.produced(node) in (torch.quint8, torch.uint8)

    def swap_custom_module(self, node: Node, qconfig: Any) -> None:
        """Replace a module by the observed one that the user chose for its class."""
        if node.target in self.swapped:
            return
        self.swapped.add(node.target)
        module = self.modules[str(node.target)]
        kind = get_swapped_custom_module_class(module, self.custom.float_to_observed_mapping, qconfig)
        parent, name = _parent_name(str(node.target))
        setattr(self.modules[parent], name, kind.from_float(module))

    def _is_branch(self, node: Node) -> bool:
        """True if another quantized node has the same input."""
        first = node.args[0] if node.args else None
        if not isinstance(first, Node) or len(first.users) < 2:
            return False
        return any(
            user is not node
            and (
                self.qconfigs.get(user.name) is not None
                or (user.op == "call_module" and isinstance(self.modules[str(user.target)], ObserverBase))
            )
            for user in first.users
        )

    def observe(self, node: Node) -> None:
        """Put the observers of one node into the graph."""
        if node.op == "output":
            node.args = tuple(self.observe_graph_output(arg) for arg in node.args)
            return
        match = self.matches.get(node.name)
        if match is None or match.qconfig is None or not self.is_supported(match):
            return
        self.modules = dict(self.model.named_modules(remove_duplicate=False))
        self.observed_names.update(each.name for each in _flat(match.nodes))
        is_branch = self._is_branch(node)
        if node is self.root_of(match):
            self.observe_inputs(node, match)
            self.observe_for_equalization(node, self.equalization.get(node.name), is_branch)
        if node is not match.last:
            return
        if _is_custom_module_lstm(node, self.modules, match.qconfig, match.handler):
            _insert_dequant_stubs_for_custom_module_lstm_output(node, self.model, self.modules, self.graph)
            self.swap_custom_module(node, match.qconfig)
            return
        observer = self.observe_output(node)
        if observer is None:
            return
        target = node.meta["target_dtype_info"]
        shares = target.get("input_output_share_observers", False) and not self._is_observed_elsewhere(node)
        if (shares or target.get("reuse_input_obs_or_fq", False)) and not self.share_observers(node):
            for user in list(node.users):
                user.replace_all_uses_with(node)
                self.graph.erase_node(user)
        if match.handler is not None and match.handler.is_custom_module():
            self.swap_custom_module(node, match.qconfig)

    # -- modules that are prepared by themselves --------------------------------------------------------------------

    def entry_of_standalone(self, node: Node, qconfig: Any) -> StandaloneModuleConfigEntry:
        return _entry_of_standalone(node, self.modules, self.custom, qconfig, self.backend_config)


def _entry_of_standalone(
    node: Node, modules: dict[str, Any], custom: PrepareCustomConfig, qconfig: Any, backend: Any
) -> StandaloneModuleConfigEntry:
    """How a module is prepared: as its name or its class says, else as the model."""
    name = str(node.target)
    empty = StandaloneModuleConfigEntry(None, (), None, None)
    found = custom.standalone_module_classes.get(type(modules[name]), empty)
    found = custom.standalone_module_names.get(name, found)
    return StandaloneModuleConfigEntry(
        found.qconfig_mapping or QConfigMapping().set_global(qconfig), found.example_inputs,
        found.prepare_custom_config or PrepareCustomConfig(), found.backend_config or backend,
    )  # fmt: skip


def _prepare_standalone_modules(
    modules: dict[str, Any], matches: dict[str, _Match], custom: PrepareCustomConfig, backend: Any, is_qat: bool
) -> None:
    """Replace the modules that are quantized by themselves by prepared ones."""
    for match in matches.values():
        if match.handler is None or not match.handler.is_standalone_module():
            continue
        node = match.last
        entry = _entry_of_standalone(node, modules, custom, match.qconfig, backend)
        prepared = trace_and_prepare(
            modules[node.target], entry.qconfig_mapping, is_qat, entry.example_inputs,
            prepare_custom_config=entry.prepare_custom_config, backend_config=entry.backend_config,
            is_standalone_module=True,
        )  # fmt: skip
        parent, name = _parent_name(node.target)
        setattr(modules[parent], name, prepared)
        modules[node.target] = prepared


def _maybe_propagate(node: Node, matches: dict[str, _Match]) -> None:
    node.meta["target_dtype_info"].update(_NO_TENSORS)
    match = matches.get(node.name)
    if match is not None and match.handler is not None and match.handler.is_general_tensor_value_op():
        if isinstance(node.args[0], Node):
            _maybe_propagate(node.args[0], matches)


def propagate_dtypes_for_known_nodes(graph: Any, node_name_to_match_result_with_qconfig: dict[str, Any]) -> None:
    """Notes that sizes and masks, and what they are made of, are not observed.

    Args:
        graph: The graph.
        node_name_to_match_result_with_qconfig: The match of each node by its name.
    """
    for node in graph.nodes:
        for places in get_non_observable_arg_indexes_and_types(node).values():
            for place in places(node):
                arg = node.args[place]
                for part in arg if isinstance(arg, (tuple, list)) else [arg]:
                    if isinstance(part, Node):
                        _maybe_propagate(part, node_name_to_match_result_with_qconfig)


def insert_observers_for_model(
    model: Any, node_name_to_match_result_with_qconfig: dict[str, Any], node_name_to_qconfig: dict[str, Any],
    prepare_custom_config: PrepareCustomConfig, equalization_config_map: dict[str, Any],
    backend_config: BackendConfig, observed_node_names: set[str], is_qat: bool,
) -> Node | None:  # fmt: skip
    """Puts observers into a graph.

    Args:
        model: The module of the graph.
        node_name_to_match_result_with_qconfig: The match of each node by its name.
        node_name_to_qconfig: The configuration of each node by its name.
        prepare_custom_config: What the user chose.
        equalization_config_map: The configuration of equalization by node.
        backend_config: The backend.
        observed_node_names: The names of observed nodes, which are added.
        is_qat: Whether it is for quantization aware training.

    Returns:
        The node of the graph's output.
    """
    state = _Observation(
        model, node_name_to_match_result_with_qconfig, node_name_to_qconfig, prepare_custom_config,
        equalization_config_map, backend_config, observed_node_names, is_qat,
    )  # fmt: skip
    state.set_targets()
    last = None
    for node in list(model.graph.nodes):
        if node.op in ("call_module", "call_method", "call_function", "output"):
            state.observe(node)
        last = node if node.op == "output" else last
    return last


def prepare(
    model: GraphModule, qconfig_mapping: Any, is_qat: bool, node_name_to_scope: dict[str, tuple[str, type]],
    example_inputs: tuple[Any, ...], prepare_custom_config: Any = None, _equalization_config: Any = None,
    backend_config: Any = None, is_standalone_module: bool = False,
) -> GraphModule:  # fmt: skip
    """The module of a graph with observers.

    Args:
        model: The module of a graph whose layers are fused.
        qconfig_mapping: The configurations.
        is_qat: Whether it is for quantization aware training.
        node_name_to_scope: The name and the class of the module in which each node was made.
        example_inputs: No effect.
        prepare_custom_config: What else the user chose. Default: nothing.
        _equalization_config: The configurations of equalization. Default: none.
        backend_config: The backend. Default: PyTorch's own kernels.
        is_standalone_module: Whether the model is within another. Default: ``False``.
    """
    custom = from_deprecated_dict(prepare_custom_config, PrepareCustomConfig, "prepare", "prepare_custom_config_dict")
    custom = PrepareCustomConfig() if custom is None else custom
    mapping = copy.deepcopy(from_deprecated_dict(qconfig_mapping, QConfigMapping, "prepare", "QConfig dictionary"))
    equalization = from_deprecated_dict(
        _equalization_config, QConfigMapping, "prepare for equalization", "QConfig dictionary"
    )
    equalization = QConfigMapping() if equalization is None else copy.deepcopy(equalization)
    backend = from_deprecated_dict(backend_config, BackendConfig, "prepare", "backend_config_dict")
    backend = get_native_backend_config() if backend is None else backend

    handlers = _sorted_patterns_dict(_get_pattern_to_quantize_handlers(backend))
    _update_qconfig_for_fusion(model, mapping)
    _update_qconfig_for_fusion(model, equalization)
    propagate_qconfig_(model, _get_flattened_qconfig_dict(mapping), custom.to_dict())
    if is_qat:
        convert_modules(model, mapping=get_module_to_qat_module(backend), inplace=True, remove_qconfig=False)
        _update_qconfig_for_qat(mapping, backend)
    modules: dict[str, Any] = dict(model.named_modules(remove_duplicate=False))
    # The configurations of nodes are found last: they are written into the modules.
    equalized = _generate_node_name_to_qconfig(model, modules, model.graph, equalization, node_name_to_scope)
    qconfigs = _generate_node_name_to_qconfig(model, modules, model.graph, mapping, node_name_to_scope)
    found = _find_matches(
        model.graph, modules, handlers, get_fusion_pattern_to_root_node_getter(backend),
        custom.standalone_module_names, custom.standalone_module_classes,
        get_custom_module_class_keys(custom.float_to_observed_mapping),
    )  # fmt: skip
    matches = {name: _Match(match, qconfigs[name]) for name, match in found.items()}
    _prepare_standalone_modules(modules, matches, custom, backend, is_qat)
    observed: set[str] = set()
    output = insert_observers_for_model(model, matches, qconfigs, custom, equalized, backend, observed, is_qat)
    made = GraphModule(model, model.graph)
    attributes = _save_state(made, qconfigs, node_name_to_scope, custom, equalized, mapping, is_qat, observed)
    if is_standalone_module:
        if output is None or not isinstance(output.args[0], Node):
            raise AssertionError(
                "standalone module only supports returning simple value currently (not tuple, dict etc.)"
            )
        attributes.is_observed_standalone_module = True
        attributes.standalone_module_input_quantized_idxs = custom.input_quantized_indexes
        attributes.standalone_module_output_quantized_idxs = custom.output_quantized_indexes
    return made


def _swap_ff_with_fxff(model: Module) -> None:
    """Put modules without observers in place of arithmetic modules with them."""
    for name, module in model.named_children():
        if isinstance(module, FloatFunctional):
            model._modules[name] = FXFloatFunctional()
        else:
            _swap_ff_with_fxff(module)


def trace_and_prepare(
    model: Module, qconfig_mapping: Any, is_qat: bool, example_inputs: tuple[Any, ...],
    prepare_custom_config: Any = None, _equalization_config: Any = None, backend_config: Any = None,
    is_standalone_module: bool = False,
) -> GraphModule:  # fmt: skip
    """The module of a model's graph with fused layers and observers.

    Args:
        model: The model, whose arithmetic modules are replaced.
        qconfig_mapping: The configurations.
        is_qat: Whether it is for quantization aware training.
        example_inputs: No effect.
        prepare_custom_config: What else the user chose. Default: nothing.
        _equalization_config: The configurations of equalization. Default: none.
        backend_config: The backend. Default: PyTorch's own kernels.
        is_standalone_module: Whether the model is within another. Default: ``False``.
    """
    custom = from_deprecated_dict(
        prepare_custom_config, PrepareCustomConfig, "prepare", "prepare_custom_config_dict", 4
    )
    custom = PrepareCustomConfig() if custom is None else custom
    equalization = QConfigMapping() if _equalization_config is None else _equalization_config
    _swap_ff_with_fxff(model)
    kept = preserved_attributes(model, custom.preserved_attributes)
    tracer = QuantizationTracer(*get_skipped_module_name_and_classes(custom, is_standalone_module))
    traced = GraphModule(model, tracer.trace(model))
    kept_names = FuseCustomConfig().set_preserved_attributes(custom.preserved_attributes)
    fused = fuse(traced, is_qat, kept_names, backend_config)
    made = prepare(
        fused, qconfig_mapping, is_qat, tracer.node_name_to_scope, example_inputs=example_inputs,
        prepare_custom_config=custom, _equalization_config=equalization, backend_config=backend_config,
        is_standalone_module=is_standalone_module,
    )  # fmt: skip
    attach_preserved_attrs_to_model(made, kept)
    return made
