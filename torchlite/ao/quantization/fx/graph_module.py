"""Modules of graphs that keep chosen attributes, and questions about prepared models."""

from __future__ import annotations

import copy
from typing import Any

from torchlite.fx import GraphModule
from torchlite.fx.graph import Graph
from torchlite.fx.graph_module import _USER_PRESERVED_ATTRIBUTES_KEY
from torchlite.nn import Module

__all__ = ["FusedGraphModule", "ObservedGraphModule", "ObservedStandaloneGraphModule", "QuantizedGraphModule"]
_STATE = {
    "_activation_post_process_indexes", "_activation_post_process_map", "_equalization_node_name_to_qconfig",
    "_is_qat", "_node_name_to_qconfig", "_node_name_to_scope", "_observed_node_names", "_patterns",
    "_prepare_custom_config", "_qconfig_mapping",
}  # fmt: skip


def attach_preserved_attrs_to_model(model: Any, preserved_attrs: dict[str, Any]) -> None:
    """Gives a model attributes, which copies of it keep.

    Args:
        model: The module of a graph.
        preserved_attrs: The attributes by name.

    Example:
        >>> model = torch.fx.symbolic_trace(torch.nn.ReLU())
        >>> torch.ao.quantization.quantize_fx.attach_preserved_attrs_to_model(model, {"level": 3})
        >>> model.level
        3
    """
    model.meta[_USER_PRESERVED_ATTRIBUTES_KEY] = dict(preserved_attrs)
    for name, value in preserved_attrs.items():
        setattr(model, name, value)


def preserved_attributes(model: Any, names: list[str]) -> dict[str, Any]:
    """Those of some attributes that a model has."""
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


class FusedGraphModule(GraphModule):
    """The module of a graph, with attributes of the original model.

    Args:
        root: The original model.
        graph: The graph.
        preserved_attr_names: The names of the attributes.
    """

    _own_state: set[str] = set()

    def __init__(self, root: Any, graph: Graph, preserved_attr_names: set[str]) -> None:
        self.preserved_attr_names = self._own_state | set(preserved_attr_names)
        kept = {name: getattr(root, name) for name in self.preserved_attr_names if hasattr(root, name)}
        super().__init__(root, graph)
        for name, value in kept.items():
            setattr(self, name, value)

    def __deepcopy__(self, memo: Any) -> Any:
        holder = Module()
        holder.__dict__ = copy.deepcopy(self.__dict__)
        kind = next(kind for kind in type(self).__mro__ if kind in _CLASSES)
        return kind(holder, copy.deepcopy(self.graph), copy.deepcopy(self.preserved_attr_names))


class ObservedGraphModule(FusedGraphModule):
    """The module of a graph with observers."""

    _own_state = _STATE


class ObservedStandaloneGraphModule(ObservedGraphModule):
    """The module of a graph with observers, which is converted by itself."""

    _own_state = _STATE | {"_standalone_module_input_quantized_idxs", "_standalone_module_output_quantized_idxs"}


class QuantizedGraphModule(FusedGraphModule):
    """The module of a graph with packed weights, which its state has."""

    def __init__(self, root: Any, graph: Graph, preserved_attr_names: set[str]) -> None:
        super().__init__(root, graph, preserved_attr_names)
        keep_packed_weights(self)


_CLASSES = (FusedGraphModule, ObservedGraphModule, ObservedStandaloneGraphModule, QuantizedGraphModule)


def _is_packed(value: Any) -> bool:
    return getattr(type(value), "_schema_type", "").startswith("__torch__.torch.classes.quantized.")


def _save_packed_weight(self: Any, destination: Any, prefix: str, keep_vars: Any) -> None:
    for name in sorted(vars(self)):
        if "_packed_weight" in name and _is_packed(vars(self)[name]):
            destination[prefix + name] = vars(self)[name]


def _load_packed_weight(self: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
    for name in list(state_dict):
        own = name.removeprefix(prefix)
        if "_packed_weight" in own and name.startswith(prefix) and _is_packed(state_dict[name]):
            setattr(self, own, state_dict.pop(name))


def keep_packed_weights(module: Any) -> None:
    """Put the packed weights of a graph's module into its state."""
    module._register_state_dict_hook(_save_packed_weight)
    module.register_load_state_dict_pre_hook(_load_packed_weight)


def _is_observed_module(module: Any) -> bool:
    return "_observed_graph_module_attrs" in getattr(module, "meta", {})


def _get_observed_graph_module_attr(model: Any, attr_name: str) -> Any:
    return getattr(model.meta["_observed_graph_module_attrs"], attr_name) if _is_observed_module(model) else None


def _is_observed_standalone_module(module: Any) -> bool:
    return bool(_get_observed_graph_module_attr(module, "is_observed_standalone_module"))
