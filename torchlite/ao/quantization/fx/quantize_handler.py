"""What quantization asks about the nodes of a pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlite.fx.graph import Node

from ..backend_config import BackendConfig, ObservationType
from .utils import all_node_args_have_no_tensors

__all__ = [
    "BatchNormQuantizeHandler", "BinaryOpQuantizeHandler", "CatQuantizeHandler", "ConvReluQuantizeHandler",
    "CopyNodeQuantizeHandler", "CustomModuleQuantizeHandler", "DefaultNodeQuantizeHandler",
    "EmbeddingQuantizeHandler", "FixedQParamsOpQuantizeHandler", "GeneralTensorShapeOpQuantizeHandler",
    "LinearReLUQuantizeHandler", "QuantizeHandler", "RNNDynamicQuantizeHandler", "StandaloneModuleQuantizeHandler",
]  # fmt: skip


def _default_root_node_getter(node_pattern: Any) -> Any:
    """The first call of a pattern: the innermost node that is last."""
    while node_pattern is not None and not isinstance(node_pattern, Node):
        node_pattern = node_pattern[-1]
    return node_pattern


class QuantizeHandler:
    """The nodes of a pattern.

    Args:
        node_pattern: The nodes.
        modules: The model's modules by name.
        root_node_getter: A function that finds the node with the weight. Default: the first call.
        is_custom_module: Whether the node is a module that the user replaces. Default: ``False``.
        is_standalone_module: Whether the node is a module that is prepared by itself. Default: ``False``.
    """

    observation_type: Any = None

    def __init__(
        self, node_pattern: Any, modules: dict[str, Any], root_node_getter: Callable | None = None,
        is_custom_module: bool = False, is_standalone_module: bool = False,
    ) -> None:  # fmt: skip
        self.node_pattern, self.modules = node_pattern, modules
        self.root_node = (root_node_getter or _default_root_node_getter)(node_pattern)
        self.is_custom_module_, self.is_standalone_module_ = is_custom_module, is_standalone_module
        self.num_tensor_args = 0
        if isinstance(self.root_node, Node):
            self.num_tensor_args = sum(
                isinstance(arg, Node) and not all_node_args_have_no_tensors(arg, modules, {})
                for arg in self.root_node.args
            )

    def is_general_tensor_value_op(self) -> bool:
        """True if the output has the scale and the zero point of the input."""
        return self.observation_type is ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT

    def is_custom_module(self) -> bool:
        """True if the user replaces the module."""
        return self.is_custom_module_

    def is_standalone_module(self) -> bool:
        """True if the module is prepared by itself."""
        return self.is_standalone_module_


def _get_quantize_handler_cls(observation_type: Any, dtype_configs: Any, by_tensors: dict[int, Any]) -> type:
    class ConfigurableQuantizeHandler(QuantizeHandler):
        def __init__(
            self, node_pattern: Any, modules: dict[str, Any], root_node_getter: Callable | None = None
        ) -> None:
            super().__init__(node_pattern, modules, root_node_getter)
            self.observation_type = by_tensors[self.num_tensor_args] if by_tensors else observation_type
            self.dtype_configs = dtype_configs

    return ConfigurableQuantizeHandler


def _get_pattern_to_quantize_handlers(backend_config: BackendConfig) -> dict[Any, type]:
    """The class of handlers for each pattern of a backend."""
    return {
        pattern: _get_quantize_handler_cls(
            config.observation_type, config.dtype_configs, config._num_tensor_args_to_observation_type
        )
        for pattern, config in backend_config._pattern_complex_format_to_config.items()
    }


def _old_name(name: str) -> Any:
    document = "An old name of `QuantizeHandler` for one kind of pattern."
    return type(name, (QuantizeHandler,), {"__doc__": document, "__module__": __name__})


BinaryOpQuantizeHandler = _old_name("BinaryOpQuantizeHandler")
CatQuantizeHandler = _old_name("CatQuantizeHandler")
ConvReluQuantizeHandler = _old_name("ConvReluQuantizeHandler")
LinearReLUQuantizeHandler = _old_name("LinearReLUQuantizeHandler")
BatchNormQuantizeHandler = _old_name("BatchNormQuantizeHandler")
EmbeddingQuantizeHandler = _old_name("EmbeddingQuantizeHandler")
RNNDynamicQuantizeHandler = _old_name("RNNDynamicQuantizeHandler")
DefaultNodeQuantizeHandler = _old_name("DefaultNodeQuantizeHandler")
FixedQParamsOpQuantizeHandler = _old_name("FixedQParamsOpQuantizeHandler")
CopyNodeQuantizeHandler = _old_name("CopyNodeQuantizeHandler")
GeneralTensorShapeOpQuantizeHandler = _old_name("GeneralTensorShapeOpQuantizeHandler")
CustomModuleQuantizeHandler = _old_name("CustomModuleQuantizeHandler")
StandaloneModuleQuantizeHandler = _old_name("StandaloneModuleQuantizeHandler")
