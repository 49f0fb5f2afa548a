"""Quantized nodes in place of observers, and reference layers in place of observed ones."""

from __future__ import annotations

import copy
import operator
import warnings
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.ao.nn.intrinsic import _FusedModule
from torchlite.fx import GraphModule
from torchlite.fx.graph import Graph, Node
from torchlite.nn import functional as F
from torchlite.nn.utils.parametrize import type_before_parametrizations

from ..backend_config import BackendConfig, get_native_backend_config
from ..backend_config.utils import (
    get_fused_module_classes,
    get_pattern_to_dtype_configs,
    get_qat_module_classes,
    get_root_module_to_quantized_reference_module,
)
from ..observer import _is_activation_post_process
from ..qconfig import qconfig_equals
from ..qconfig_mapping import QConfigMapping
from ..quantize import _remove_qconfig
from ..stubs import DeQuantStub
from ..utils import (
    _parent_name,
    activation_is_statically_quantized,
    get_qparam_dict,
    get_swapped_custom_module_class,
    is_per_channel,
    to_underlying_dtype,
    weight_is_quantized,
)
from . import _decomposed as _decomposed
from ._equalize import convert_eq_obs, update_obs_for_equalization
from .custom_config import ConvertCustomConfig
from .fuse import from_deprecated_dict
from .graph_module import _is_observed_standalone_module
from .lower_to_fbgemm import lower_to_fbgemm
from .qconfig_mapping_utils import (
    _compare_prepare_convert_qconfig_mappings,
    _generate_node_name_to_qconfig,
    _is_qconfig_supported_by_dtype_configs,
    _update_qconfig_for_fusion,
    _update_qconfig_for_qat,
)
from .utils import (
    _get_module,
    _is_custom_module_lstm,
    _is_custom_module_mha,
    assert_and_get_unique_device,
    collect_producer_nodes,
    create_getattr_from_value,
    get_custom_module_class_keys,
    graph_module_from_producer_nodes,
    is_dequantize,
    node_arg_is_weight,
)

__all__ = ["convert", "convert_custom_module", "convert_standalone_module", "convert_weighted_module"]
SUPPORTED_QDTYPES = [
    torch.quint8, torch.qint8, torch.qint32, torch.uint8, torch.int8, torch.uint16, torch.int16, torch.int32,
    torch.float8_e5m2, torch.float8_e4m3fn,
]  # fmt: skip
_QUANTIZED = (torch.quint8, torch.qint8, torch.qint32, torch.float8_e5m2, torch.float8_e4m3fn)


def _has_none_qconfig(node: Any, node_name_to_qconfig: dict[str, Any]) -> bool:
    """True if the user chose not to quantize a node."""
    return isinstance(node, Node) and node_name_to_qconfig.get(node.name, True) is None


def _without_dequantize(node: Node, dequantize: Any, graph: Graph) -> None:
    """Let a node use the quantized tensor of which an argument gives the numbers."""
    if is_dequantize(dequantize):
        node.replace_input_with(dequantize, dequantize.args[0])
        if not dequantize.users:
            graph.erase_node(dequantize)


def _insert_dequantize_node(node: Node, graph: Graph) -> None:
    """Let the users of a node use its numbers."""
    with graph.inserting_after(node):
        made = graph.call_method("dequantize", (node,))
    for user in list(node.users):
        if user is not made:
            user.replace_input_with(node, made)


class _ObserverReplacement:
    """Quantization nodes in place of observers, in one model."""

    def __init__(
        self, model: Any, modules: dict[str, Any], scopes: dict[str, tuple[str, type]], qconfigs: dict[str, Any],
        device: Any,
    ) -> None:  # fmt: skip
        self.model, self.graph, self.modules = model, model.graph, modules
        self.scopes, self.qconfigs, self.device = scopes, qconfigs, device

    def prefix_of(self, node: Node) -> str:
        """The beginning of buffers' names: the module in which the observed node was made."""
        observed: Any = node.args[0]
        is_input = self.qconfigs.get(observed.name, True) is None
        if is_input:
            users = list(node.users)
            linear = [user for user in users if user.op == "call_function" and user.target is F.linear]
            observed = next(iter(linear or users), None)
        path = self.scopes[observed.name][0] if observed is not None and observed.name in self.scopes else ""
        return path + ("_input" if is_input else "")

    def is_skipped(self, node: Node, observer: Any) -> bool:
        """True if the observer is removed, and nothing takes its place."""
        if all(_has_none_qconfig(other, self.qconfigs) for other in (*node.args, *node.users)):
            return True
        is_dynamic = getattr(observer, "is_dynamic", False)
        return not (is_dynamic or observer.dtype in SUPPORTED_QDTYPES or observer.dtype is torch.float16)

    def replace(self, node: Node) -> None:
        """Put quantization and its inverse in place of one observer."""
        observer = self.modules[str(node.target)]
        source: Any = node.args[0]
        if self.is_skipped(node, observer):
            node.replace_all_uses_with(source)
            self.graph.erase_node(node)
            return
        prefix = self.prefix_of(node)
        with self.graph.inserting_before(node):
            quantized = self.quantized(source, observer, prefix)
            if quantized is None:
                return
            node.replace_all_uses_with(self.graph.call_method("dequantize", (quantized,)))
        self.graph.erase_node(node)

    def buffer(self, name: str, value: Any) -> Node:
        return create_getattr_from_value(self.model, self.graph, name, value, self.device)

    def quantized(self, source: Node, observer: Any, prefix: str) -> Node | None:
        """The node of the quantized tensor."""
        dtype = observer.dtype
        if getattr(observer, "is_dynamic", False):
            backends: Any = torch.backends.quantized
            reduce_range = backends.engine in ("fbgemm", "x86")
            return self.graph.call_function(torch.quantize_per_tensor_dynamic, (source, dtype, reduce_range))
        if dtype is torch.float16:
            return self.graph.call_method("to", (source, dtype))
        if dtype not in _QUANTIZED:
            return None
        scale, zero_point = observer.calculate_qparams()
        if is_per_channel(observer.qscheme):
            nodes = (self.buffer(f"{prefix}_scale_", scale), self.buffer(f"{prefix}_zero_point_", zero_point))
            return self.graph.call_function(torch.quantize_per_channel, (source, *nodes, int(observer.ch_axis), dtype))
        nodes = (self.buffer(f"{prefix}_scale_", float(scale)), self.buffer(f"{prefix}_zero_point_", int(zero_point)))
        return self.graph.call_function(torch.quantize_per_tensor, (source, *nodes, dtype))

    def replace_decomposed(self, node: Node) -> None:
        """Put plain ops on integers in place of one observer."""
        observer = self.modules[str(node.target)]
        if hasattr(observer, "convert"):
            observer.convert(self.model, node)
            return
        source: Any = node.args[0]
        if self.is_skipped(node, observer):
            node.replace_all_uses_with(source)
            self.graph.erase_node(node)
            return
        prefix, ops, dtype = self.prefix_of(node), torch.ops.quantized_decomposed, observer.dtype
        call = self.graph.call_function
        options = {}
        if "val" in source.meta and source.meta["val"].dtype != torch.float32:
            options["out_dtype"] = source.meta["val"].dtype
        with self.graph.inserting_before(node):
            if getattr(observer, "is_dynamic", False):
                made = self.dynamic_decomposed(source, observer, options)
            elif dtype is torch.float16:
                half = call(ops.convert_element_type.no_fuse, (source, torch.float16))
                made = call(ops.convert_element_type.no_fuse, (half, torch.float))
            else:
                scale, zero_point = observer.calculate_qparams()
                limits = (observer.quant_min, observer.quant_max, to_underlying_dtype(dtype))
                if is_per_channel(observer.qscheme):
                    nodes = (self.buffer(f"{prefix}_scale_", scale), self.buffer(f"{prefix}_zero_point_", zero_point))
                    rest: tuple = (*nodes, int(observer.ch_axis), *limits)
                    pair = ops.quantize_per_channel.default, ops.dequantize_per_channel.default
                else:
                    rest = (float(scale), int(zero_point), *limits)
                    pair = ops.quantize_per_tensor.default, ops.dequantize_per_tensor.default
                made = call(pair[1], (call(pair[0], (source, *rest)), *rest), options)
        node.replace_all_uses_with(made)
        self.graph.erase_node(node)

    def dynamic_decomposed(self, source: Node, observer: Any, options: dict[str, Any]) -> Node:
        ops, call, dtype = torch.ops.quantized_decomposed, self.graph.call_function, to_underlying_dtype(observer.dtype)
        if dtype not in (torch.uint8, torch.int8):
            raise AssertionError(
                "only uint8 and int8 are supported in reference flow for dynamic quantization right now"
            )
        scheme = getattr(observer, "qscheme", torch.per_tensor_affine)
        symmetric = scheme is torch.per_tensor_symmetric
        choose = ops.choose_qparams_symmetric.tensor if symmetric else ops.choose_qparams.tensor
        low, high = observer.quant_min, observer.quant_max
        eps = getattr(observer, "eps", torch.finfo(torch.float32).eps)
        chosen = call(choose, (source, low, high, eps, dtype))
        rest = (call(operator.getitem, (chosen, 0)), call(operator.getitem, (chosen, 1)), low, high, dtype)
        quantized = call(ops.quantize_per_tensor.tensor, (source, *rest))
        return call(ops.dequantize_per_tensor.tensor, (quantized, *rest), options)


def _run_weight_observers(observed: GraphModule) -> None:
    """Run the observers of weights that are attributes, which calibration may not have run."""
    for node in observed.graph.nodes:
        if node.op != "call_function":
            continue
        for arg in node.args:
            if isinstance(arg, Node) and node_arg_is_weight(node, arg):
                nodes = collect_producer_nodes(arg)
                if nodes is not None:
                    graph_module_from_producer_nodes(observed, nodes)()


def _remove_output_dequantize(value: Any, node: Node) -> None:
    """Let a graph return quantized tensors, in containers too."""
    if is_dequantize(value):
        node.replace_input_with(value, value.args[0])
    elif isinstance(value, (list, tuple)):
        for part in value:
            _remove_output_dequantize(part, node)
    elif isinstance(value, dict):
        for part in value.values():
            _remove_output_dequantize(part, node)
    else:
        warnings.warn(f"Unsupported node type in recursive remove dequantize: {type(value)}", stacklevel=2)


def _set(modules: dict[str, Any], target: Any, module: Any) -> None:
    parent, name = _parent_name(str(target))
    setattr(modules[parent], name, module)


def convert_standalone_module(
    node: Node, modules: dict[str, Any], model: GraphModule, is_reference: bool, backend_config: BackendConfig | None
) -> None:
    """Converts a module that was prepared by itself.

    Args:
        node: Its node.
        modules: The model's modules by name.
        model: The model.
        is_reference: Whether layers compute on numbers.
        backend_config: The backend.
    """
    observed = modules[str(node.target)]
    attributes = observed.meta["_observed_graph_module_attrs"]
    for place, arg in enumerate(node.args):
        if place in attributes.standalone_module_input_quantized_idxs:
            _without_dequantize(node, arg, model.graph)
    if attributes.standalone_module_output_quantized_idxs:
        _insert_dequantize_node(node, model.graph)
    made = convert(observed, is_reference, backend_config=backend_config)
    _set(modules, node.target, made)
    modules[str(node.target)] = made


def _observed(make: Any, weight: Any, device: Any = None) -> dict[str, Any]:
    observer = make()
    if device is not None:
        observer.to(device)
    observer(weight)
    return get_qparam_dict(observer)


def convert_weighted_module(
    node: Node, modules: dict[str, Any], observed_node_names: set[str], node_name_to_qconfig: dict[str, Any],
    backend_config: BackendConfig, is_decomposed: bool = False, is_reference: bool = False, model_device: Any = None,
) -> None:  # fmt: skip
    """Puts a reference layer in place of an observed one with a weight.

    Args:
        node: The layer's node.
        modules: The model's modules by name.
        observed_node_names: The names of observed nodes.
        node_name_to_qconfig: The configuration of each node by its name.
        backend_config: The backend.
        is_decomposed: Whether the weight becomes plain integers. Default: ``False``.
        is_reference: Whether layers compute on numbers. Default: ``False``.
        model_device: The model's device. Default: the layer's.
    """
    layer: Any = modules[str(node.target)]
    qconfig, trained = layer.qconfig, None
    is_trained = isinstance(layer, get_qat_module_classes(backend_config))
    if is_trained:
        trained = layer.weight_fake_quant
        layer = layer.to_float()
        _set(modules, node.target, layer)
    if qconfig is None or _has_none_qconfig(node, node_name_to_qconfig) or node.name not in observed_node_names:
        return
    dtypes = get_pattern_to_dtype_configs(backend_config).get(type(layer), [])
    if not _is_qconfig_supported_by_dtype_configs(qconfig, dtypes) or not weight_is_quantized(qconfig):
        return
    fused = layer if isinstance(layer, _FusedModule) else None
    root: Any = layer if fused is None else fused[0]
    found: dict[str, Any] = {"is_decomposed": is_decomposed}
    if isinstance(root, nn.RNNCellBase):
        found.update({name: _observed(qconfig.weight, getattr(root, name)) for name in ("weight_ih", "weight_hh")})
    elif isinstance(root, (nn.LSTM, nn.GRU)):
        for name in root._flat_weights_names:
            if name.startswith("weight") and hasattr(root, name):
                observer = qconfig.weight()
                if observer.dtype is torch.qint8:
                    observer(getattr(root, name))
                found[name] = get_qparam_dict(observer)
    elif trained is None:
        device = assert_and_get_unique_device(root) if model_device is None else model_device
        found.update(_observed(qconfig.weight, root.weight, device))
    else:
        if not (is_decomposed and is_reference):
            trained(root.weight)
        found.update(get_qparam_dict(trained))
    kind = type_before_parametrizations(root)
    reference = get_root_module_to_quantized_reference_module(backend_config).get(kind)
    if reference is None:
        raise AssertionError(f"No reference quantized module class configured for {kind}")
    made = reference.from_float(root, found)  # type: ignore[attr-defined]
    if fused is None:
        _set(modules, node.target, made)
    else:
        fused[0] = made


def _observer_of(node: Node, modules: dict[str, Any]) -> Any:
    """The observer behind a node."""
    observers = (_get_module(user, modules) for user in node.users)
    found = next((observer for observer in observers if _is_activation_post_process(observer)), None)
    if found is None:
        raise AssertionError("Expected activation_post_process to be present for observed custom module")
    return found


def convert_custom_module(
    node: Node, graph: Graph, modules: dict[str, Any], custom_module_class_mapping: dict,
    statically_quantized_custom_module_nodes: set[Node],
) -> None:  # fmt: skip
    """Puts the user's quantized module in place of an observed one.

    Args:
        node: The module's node.
        graph: The graph.
        modules: The model's modules by name.
        custom_module_class_mapping: The quantized classes by observed ones, for each kind of quantization.
        statically_quantized_custom_module_nodes: The nodes of such modules, to which this one is added.
    """
    observed = modules[str(node.target)]
    if activation_is_statically_quantized(observed.qconfig):
        statically_quantized_custom_module_nodes.add(node)
        args: Any = node.args
        if _is_custom_module_lstm(node, modules):
            if len(args) == 2:
                args = (args[0], *args[1])
            if len(args) != 3:
                raise AssertionError("Expected the input and the states of an LSTM")
        elif not _is_custom_module_mha(node, modules):
            args = args[:1]
            observed.activation_post_process = _observer_of(node, modules)
        for arg in args:
            _without_dequantize(node, arg, graph)
    kind = get_swapped_custom_module_class(observed, custom_module_class_mapping, observed.qconfig)
    _set(modules, node.target, kind.from_observed(observed))


def _dequantize_instead(node: Node, graph: Graph) -> None:
    """Put the inverse of quantization in place of an observer or a stub behind a custom module."""
    source: Any = node.args[0]
    node.replace_all_uses_with(source)
    graph.erase_node(node)
    _insert_dequantize_node(source, graph)


def _qconfigs_of(model: Any, attributes: Any, modules: dict, mapping: Any, backend: BackendConfig) -> dict[str, Any]:
    """The configurations of nodes: those of `prepare`, or none where the user says so."""
    if not mapping:
        return attributes.node_name_to_qconfig
    if attributes.is_qat:
        _update_qconfig_for_qat(mapping, backend)
    _update_qconfig_for_fusion(model, mapping)
    _compare_prepare_convert_qconfig_mappings(attributes.qconfig_mapping, mapping)
    copies = copy.deepcopy(modules)
    found = _generate_node_name_to_qconfig(model, copies, model.graph, mapping, attributes.node_name_to_scope)
    for name, qconfig in attributes.node_name_to_qconfig.items():
        if name not in found:
            raise AssertionError(f"Expected key {name} in convert node_name_to_qconfig")
        if found[name] is not None and not qconfig_equals(qconfig, found[name]):
            raise AssertionError(
                f"Expected k {name} to have the same value in prepare and convert QConfigMappings, but {qconfig} was "
                f"updated to {found[name]}"
            )
    return found


def convert(
    model: GraphModule, is_reference: bool = False, convert_custom_config: Any = None,
    is_standalone_module: bool = False, _remove_qconfig_flag: bool = True, qconfig_mapping: Any = None,
    backend_config: Any = None, is_decomposed: bool = False, keep_original_weights: bool = False,
) -> GraphModule:  # fmt: skip
    """The module of a graph with quantized layers, for one with observers.

    Args:
        model: The module that `prepare` returned, which is changed.
        is_reference: Whether layers compute on numbers. Default: ``False``.
        convert_custom_config: What else the user chose. Default: nothing.
        is_standalone_module: No effect.
        _remove_qconfig_flag: Whether configurations are removed. Default: ``True``.
        qconfig_mapping: The configurations, if some became ``None`` after `prepare`. Default: those of `prepare`.
        backend_config: The backend. Default: PyTorch's own kernels.
        is_decomposed: Whether tensors become plain integers. Default: ``False``.
        keep_original_weights: Whether the model keeps the float weights of functions. Default: ``False``.
    """
    custom = from_deprecated_dict(convert_custom_config, ConvertCustomConfig, "convert", "convert_custom_config_dict")
    custom = ConvertCustomConfig() if custom is None else custom
    mapping = copy.deepcopy(from_deprecated_dict(qconfig_mapping, QConfigMapping, "convert", "QConfig dictionary"))
    backend = from_deprecated_dict(backend_config, BackendConfig, "prepare", "backend_config_dict")
    backend = get_native_backend_config() if backend is None else backend
    attributes = model.meta["_observed_graph_module_attrs"]
    modules: dict[str, Any] = dict(model.named_modules(remove_duplicate=False))
    qconfigs = _qconfigs_of(model, attributes, modules, mapping, backend)
    if attributes.equalization_node_name_to_qconfig is not None:
        convert_eq_obs(model, modules, update_obs_for_equalization(model, modules))
    _run_weight_observers(model)

    graph, chosen = model.graph, attributes.prepare_custom_config
    custom_classes = get_custom_module_class_keys(custom.observed_to_quantized_mapping)
    roots = set(get_root_module_to_quantized_reference_module(backend))
    fused = set(get_fused_module_classes(backend))
    weighted = roots | set(get_qat_module_classes(backend)) | fused
    static_custom_nodes: set[Node] = set()
    device = assert_and_get_unique_device(model)
    replacement = _ObserverReplacement(model, modules, attributes.node_name_to_scope, qconfigs, device)
    inputs = 0
    for node in list(graph.nodes):
        if node.op == "placeholder":
            if inputs in chosen.input_quantized_indexes:
                _insert_dequantize_node(node, graph)
            inputs += 1
        elif node.op == "output":
            _keep_outputs(node, chosen.output_quantized_indexes)
        elif node.op == "call_module":
            module = modules[str(node.target)]
            kind = type_before_parametrizations(module)
            if _is_activation_post_process(module):
                if node.args[0] in static_custom_nodes:
                    _dequantize_instead(node, graph)
                elif is_decomposed:
                    replacement.replace_decomposed(node)
                else:
                    replacement.replace(node)
            elif isinstance(module, DeQuantStub):
                _dequantize_instead(node, graph)
            elif _is_observed_standalone_module(module):
                convert_standalone_module(node, modules, model, is_reference, backend)
            elif kind in weighted:
                if kind not in fused or type_before_parametrizations(module[0]) in roots:
                    convert_weighted_module(
                        node, modules, attributes.observed_node_names, qconfigs, backend, is_decomposed,
                        is_reference, device,
                    )  # fmt: skip
            elif kind in custom_classes:
                mapping_of_classes = custom.observed_to_quantized_mapping
                convert_custom_module(node, graph, modules, mapping_of_classes, static_custom_nodes)
    graph.eliminate_dead_code()
    made = GraphModule(model, graph)
    if not is_reference:
        made = lower_to_fbgemm(made, qconfigs, attributes.node_name_to_scope, keep_original_weights)
    if _remove_qconfig_flag:
        _remove_qconfig(made)
    made.delete_all_unused_submodules()
    made.meta.pop("_observed_graph_module_attrs", None)
    return made


def _keep_outputs(node: Node, places: list[int]) -> None:
    """Let a graph return quantized tensors where the user chose so."""
    output: Any = node.args[0]
    if not places:
        return
    if isinstance(output, (list, tuple)):
        for place in places:
            _remove_output_dequantize(output[place], node)
    elif isinstance(output, (Node, dict)):
        if 0 in places:
            _remove_output_dequantize(output, node)
    else:
        warnings.warn(f"Unsupported node type for output_quantized_idxs: {type(output)}", stacklevel=2)
