"""Which configuration each node of a graph has."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import torchlite as torch
from torchlite.ao.nn.intrinsic import _FusedModule
from torchlite.fx.graph import Graph

from ..backend_config import BackendConfig, DTypeConfig
from ..backend_config.utils import get_module_to_qat_module
from ..observer import _is_activation_post_process
from ..qconfig import _add_module_to_qconfig_obs_ctr, qconfig_equals
from ..qconfig_mapping import _PARTS, QConfigMapping
from ..utils import _parent_name, get_qconfig_dtypes

__all__: list[str] = []


def _get_object_type_qconfig(qconfig_mapping: QConfigMapping, object_type: Any, fallback_qconfig: Any) -> Any:
    return qconfig_mapping.object_type_qconfigs.get(object_type, fallback_qconfig)


def _get_module_name_regex_qconfig(qconfig_mapping: QConfigMapping, module_name: str, fallback_qconfig: Any) -> Any:
    for pattern, qconfig in qconfig_mapping.module_name_regex_qconfigs.items():
        if re.match(pattern, module_name):
            return qconfig
    return fallback_qconfig


def _get_module_name_qconfig(qconfig_mapping: QConfigMapping, module_name: str, fallback_qconfig: Any) -> Any:
    """The configuration of a module's name, or that of the nearest module around it that has one."""
    while module_name:
        if module_name in qconfig_mapping.module_name_qconfigs:
            return qconfig_mapping.module_name_qconfigs[module_name]
        module_name = _parent_name(module_name)[0]
    return fallback_qconfig


def _maybe_adjust_qconfig_for_module_type_or_name(
    qconfig_mapping: QConfigMapping, module_type: Any, module_name: str, global_qconfig: Any
) -> Any:
    found = _get_object_type_qconfig(qconfig_mapping, module_type, global_qconfig)
    found = _get_module_name_regex_qconfig(qconfig_mapping, module_name, found)
    return _get_module_name_qconfig(qconfig_mapping, module_name, found)


def _maybe_adjust_qconfig_for_module_name_object_type_order(
    qconfig_mapping: QConfigMapping, cur_module_path: str, cur_object_type: Any, cur_object_type_idx: int,
    fallback_qconfig: Any,
) -> Any:  # fmt: skip
    key = (cur_module_path, cur_object_type, cur_object_type_idx)
    return qconfig_mapping.module_name_object_type_order_qconfigs.get(key, fallback_qconfig)


def _update_qconfig_for_fusion(model: Any, qconfig_mapping: QConfigMapping) -> None:
    """Give containers the configuration of their layers' classes."""
    by_type = qconfig_mapping.object_type_qconfigs
    if not by_type:
        return
    modules = dict(model.named_modules())
    for node in model.graph.nodes:
        fused = modules.get(node.target) if node.op == "call_module" else None
        if not isinstance(fused, _FusedModule):
            continue
        first, *rest = fused._modules.values()
        qconfig = by_type.get(type(first))
        for layer in rest:
            if not qconfig_equals(by_type.get(type(layer)), qconfig):
                raise LookupError(
                    "During fusion, we need to specify the same qconfigs for all module types in "
                    f"{type(fused)} offending type: {type(layer)}"
                )
        if qconfig is not None:
            by_type[type(fused)] = qconfig


def _update_qconfig_for_qat(qconfig_mapping: QConfigMapping, backend_config: BackendConfig) -> None:
    """Give classes of quantization aware training the configuration of the float ones."""
    by_type = qconfig_mapping.object_type_qconfigs
    for kind, trained in get_module_to_qat_module(backend_config).items():
        if kind in by_type:
            by_type[trained] = by_type[kind]


def _generate_node_name_to_qconfig(
    root: Any, modules: dict[str, Any], input_graph: Graph, qconfig_mapping: QConfigMapping,
    node_name_to_scope: dict[str, tuple[str, type]],
) -> dict[str, Any]:  # fmt: skip
    """The configuration of each node by its name; modules get theirs as an attribute."""
    usual = qconfig_mapping.global_qconfig
    counts: dict[tuple[str, Any], int] = defaultdict(int)
    found: dict[str, Any] = {}

    def adjusted(kind: Any, path: str, fallback: Any) -> Any:
        return _maybe_adjust_qconfig_for_module_type_or_name(qconfig_mapping, kind, path, fallback)

    def by_order(path: str, kind: Any, fallback: Any) -> Any:
        place = counts[path, kind]
        counts[path, kind] += 1
        return _maybe_adjust_qconfig_for_module_name_object_type_order(qconfig_mapping, path, kind, place, fallback)

    for node in input_graph.nodes:
        qconfig: Any = None
        target: Any = node.target
        if node.op == "get_attr":
            parent = _parent_name(target)[0]
            qconfig = adjusted(type(modules[parent]), parent, usual)
        elif node.op == "call_function":
            path, kind = node_name_to_scope[node.name]
            qconfig = adjusted(kind, path, _get_object_type_qconfig(qconfig_mapping, target, usual))
            qconfig = by_order(path, target, qconfig)
        elif node.op == "call_method":
            path, kind = node_name_to_scope[node.name]
            qconfig = adjusted(kind, path, adjusted(target, path, usual))
        elif node.op == "call_module":
            if _is_activation_post_process(modules[target]):
                continue
            path, kind = node_name_to_scope[node.name]
            qconfig = by_order(_parent_name(path)[0], kind, adjusted(type(modules[target]), target, usual))
        qconfig = _add_module_to_qconfig_obs_ctr(qconfig, modules.get(target))
        if node.op == "call_module":
            modules[target].qconfig = qconfig
        found[node.name] = qconfig
    return found


def _check_is_valid_config_dict(config_dict: Any, allowed_keys: set[str], dict_name: str) -> None:
    for key in config_dict:
        if key not in allowed_keys:
            raise ValueError(
                f"Expected {dict_name} to have the following keys: {allowed_keys}. But found '{key}' instead."
            )


def _compare_prepare_convert_qconfig_mappings(
    prepare_qconfig_mapping: QConfigMapping, convert_qconfig_mapping: QConfigMapping
) -> None:
    """Refuse a mapping that has other configurations than that of `prepare`, but ``None``."""
    if not qconfig_equals(prepare_qconfig_mapping.global_qconfig, convert_qconfig_mapping.global_qconfig):
        raise AssertionError("Expected global qconfigs to be the same in the prepare and convert quantization configs")
    for part in ("object_type_qconfigs", "module_name_qconfigs", "module_name_regex_qconfigs"):
        first, second = getattr(prepare_qconfig_mapping, part), getattr(convert_qconfig_mapping, part)
        for name, qconfig in first.items():
            where = f"{_PARTS[part]} {name}"
            if name not in second:
                raise AssertionError(f"Missing key {where} in convert QConfigMapping when it was present in prepare")
            if second[name] is not None and not qconfig_equals(qconfig, second[name]):
                raise AssertionError(
                    f"Expected convert QConfigMapping to have the same qconfig as prepare for key {where}; "
                    f"prepare: {qconfig}; convert: {second[name]}"
                )


def _is_qconfig_supported_by_dtype_configs(qconfig: Any, dtype_configs: list[DTypeConfig]) -> bool:
    """True if the dtypes of a configuration are among those of a pattern."""
    activation, weight, is_dynamic = get_qconfig_dtypes(qconfig)
    for config in dtype_configs:
        of_input, of_weight, of_bias, of_output = (
            dtype or torch.float
            for dtype in (config.input_dtype, config.weight_dtype, config.bias_dtype, config.output_dtype)
        )
        if of_input != activation or of_weight != weight:
            continue
        is_half = activation is torch.float16 and weight is torch.float16
        if config.is_dynamic:
            if is_dynamic and of_output is torch.float:
                return True
        elif of_output == activation and of_bias == (torch.float16 if is_half else torch.float):
            return True
    return False


def _get_flattened_qconfig_dict(qconfig_mapping: QConfigMapping) -> dict[Any, Any]:
    """The configurations of all, of types and of names in one dictionary."""
    by_type, by_name = qconfig_mapping.object_type_qconfigs, qconfig_mapping.module_name_qconfigs
    return {"": qconfig_mapping.global_qconfig, **by_type, **by_name}
