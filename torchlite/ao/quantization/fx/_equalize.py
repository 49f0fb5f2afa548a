"""Equalization: the columns of an input and of the weight that it meets get ranges of like size.

A column of the input is multiplied by a scale, and the weight's column is divided by it.
"""

from __future__ import annotations

import importlib
import warnings
from collections import namedtuple
from typing import Any

import torchlite as torch
from torchlite import Tensor, nn
from torchlite.ao.nn import intrinsic as nni
from torchlite.fx import GraphModule
from torchlite.fx.graph import Node
from torchlite.nn import functional as F

from ..observer import ObserverBase, PerChannelMinMaxObserver, _with_args
from ..utils import _parent_name, check_min_max_valid
from .graph_module import _get_observed_graph_module_attr
from .utils import get_new_attr_name_with_prefix, maybe_get_next_module, node_arg_is_weight

CUSTOM_MODULE_SUPP_LIST: list[Any] = []
_PER_CHANNEL = {
    torch.per_tensor_affine: torch.per_channel_affine, torch.per_tensor_symmetric: torch.per_channel_symmetric,
}  # fmt: skip
_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_FUSED = tuple(getattr(nni, name) for name in ("LinearReLU", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d"))
_FUNCTIONS = (F.linear, F.conv1d, F.conv2d, F.conv3d)


def reshape_scale(scale: Tensor, axis: int, input: Tensor) -> Tensor:
    """A scale for each place along an axis of a tensor, with the tensor's number of dimensions."""
    shape = [1] * input.ndim
    shape[axis] = input.size(axis)
    return scale.view(shape)


def _is_one(scale: Tensor) -> bool:
    return scale.nelement() == 1 and bool(scale == 1)


class _EqualizationObserver(nn.Module):
    """Keeps the least and the greatest number of each column."""

    def __init__(
        self, dtype: Any, qscheme: Any, quant_min: Any = None, quant_max: Any = None, factory_kwargs: Any = None
    ) -> None:
        super().__init__()
        self.dtype, self.qscheme, self.equalization_scale = dtype, qscheme, torch.tensor(1)
        observer = PerChannelMinMaxObserver(
            ch_axis=1, dtype=dtype, qscheme=_PER_CHANNEL.get(qscheme, qscheme), quant_min=quant_min,
            quant_max=quant_max, factory_kwargs=factory_kwargs,
        )  # fmt: skip
        setattr(self, self._part, observer)

    _part: str
    with_args = classmethod(_with_args)

    def forward(self, x_orig: Tensor) -> Tensor:
        if not 2 <= x_orig.ndim <= 5:
            raise ValueError("InputEqualizationObserver only supports Linear and Conv layers")
        return getattr(self, self._part)(x_orig)

    def _range(self) -> tuple[Tensor, Tensor]:
        observer = getattr(self, self._part)
        return observer.min_val, observer.max_val


class _InputEqualizationObserver(_EqualizationObserver):
    """That of inputs, whose columns are the second dimension."""

    _part = "input_obs"

    def __init__(
        self, dtype: Any = torch.quint8, qscheme: Any = torch.per_tensor_affine, quant_min: Any = None,
        quant_max: Any = None, factory_kwargs: Any = None,
    ) -> None:  # fmt: skip
        if qscheme not in _PER_CHANNEL:
            raise TypeError("Input qscheme must be per-tensor")
        super().__init__(dtype, qscheme, quant_min, quant_max, factory_kwargs)
        self.equalization_shape: list[int] = []

    def forward(self, x_orig: Tensor) -> Tensor:
        result = super().forward(x_orig)
        self.equalization_shape = [1] * x_orig.ndim
        self.equalization_shape[1] = x_orig.size(1)
        return result

    def get_input_minmax(self) -> tuple[Tensor, Tensor]:
        return self._range()

    def set_equalization_scale(self, equalization_scale: Tensor) -> None:
        if not _is_one(equalization_scale):
            self.equalization_scale = equalization_scale.reshape(self.equalization_shape)

    def calculate_scaled_minmax(self) -> tuple[Any, Any]:
        """The range of the scaled input."""
        if _is_one(self.equalization_scale):
            warnings.warn(
                "Must call calculate_equalization_scale before calling calculate_scaled_minmax. Will not scale the "
                "next quantization observer.",
                stacklevel=2,
            )
            return None, None
        low, high = self._range()
        scale = reshape_scale(self.equalization_scale, 0, low)
        return (low * scale).min(), (high * scale).max()


class _WeightEqualizationObserver(_EqualizationObserver):
    """That of weights."""

    _part = "weight_col_obs"
    ch_axis = 1

    def __init__(
        self, dtype: Any = torch.qint8, qscheme: Any = torch.per_tensor_affine, quant_min: Any = None,
        quant_max: Any = None, factory_kwargs: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, qscheme, quant_min, quant_max, factory_kwargs)

    def get_weight_col_minmax(self) -> tuple[Tensor, Tensor]:
        return self._range()

    def set_equalization_scale(self, equalization_scale: Tensor) -> None:
        self.equalization_scale = equalization_scale


def calculate_equalization_scale(
    input_obs: _InputEqualizationObserver, weight_obs: _WeightEqualizationObserver
) -> Tensor:
    """The scale of each column: the root of the ratio of the weight's range to the input's."""
    (low, high), (weight_low, weight_high) = input_obs._range(), weight_obs._range()
    if not (check_min_max_valid(low, high) and check_min_max_valid(weight_low, weight_high)):
        warnings.warn(
            "Must run observer before calling calculate_equalization_scale. Returning default equalization scale "
            "torch.tensor(1).",
            stacklevel=2,
        )
        return torch.tensor(1)
    if low.shape != weight_low.shape:
        raise ValueError(
            f"Input and Weight must have the same column dimension. Found {low.shape} and {weight_low.shape} shapes "
            "instead."
        )
    scale = torch.sqrt((weight_high - weight_low) / (high - low))
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    return torch.nan_to_num(scale, nan=1, posinf=1, neginf=1)


class EqualizationQConfig(namedtuple("EqualizationQConfig", ["input_activation", "weight"])):
    """The observers of equalization: classes, or functions that make them."""

    __slots__ = ()

    def __new__(cls, input_activation: Any = nn.Identity, weight: Any = nn.Identity) -> EqualizationQConfig:
        if isinstance(input_activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError(
                "EqualizationQConfig received observer instance, please pass observer class instead. Use "
                "MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, input_activation, weight)


input_equalization_observer = _InputEqualizationObserver.with_args(
    dtype=torch.quint8, qscheme=torch.per_tensor_symmetric
)
weight_equalization_observer = _WeightEqualizationObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric
)
default_equalization_qconfig = EqualizationQConfig(input_equalization_observer, weight_equalization_observer)


def fused_module_supports_equalization(module: Any) -> bool:
    return type(module) in _FUSED


def nn_module_supports_equalization(module: Any) -> bool:
    return type(module) in _LAYERS


def custom_module_supports_equalization(module: Any) -> bool:
    return type(module) in CUSTOM_MODULE_SUPP_LIST


def node_supports_equalization(node: Node, modules: dict[str, Any]) -> bool:
    """True if a node is a layer or a function whose input and weight can be scaled."""
    if node.op == "call_module":
        return type(modules[str(node.target)]) in (*_LAYERS, *_FUSED, *CUSTOM_MODULE_SUPP_LIST)
    return node.op == "call_function" and node.target in _FUNCTIONS


def is_equalization_observer(observer: Any) -> bool:
    return isinstance(observer, _EqualizationObserver)


def _layer_of(node: Node, modules: dict[str, Any]) -> Any:
    """The layer with the weight that a node calls."""
    module = modules[str(node.target)]
    return module[0] if fused_module_supports_equalization(module) else module


def maybe_get_weight_eq_obs_node(op_node: Node, modules: dict[str, Any]) -> Node | None:
    """The node that observes a function's weight for equalization, or ``None``."""
    for arg in op_node.args:
        if isinstance(arg, Node) and node_arg_is_weight(op_node, arg) and arg.op == "call_module":
            if isinstance(modules[str(arg.target)], _WeightEqualizationObserver):
                return arg
    return None


def get_op_node_and_weight_eq_obs(
    input_eq_obs_node: Node, model: Any, modules: dict[str, Any]
) -> tuple[Node | None, _WeightEqualizationObserver | None]:
    """The node whose input is observed, and the observer of its weight."""
    op_node = next((user for user in input_eq_obs_node.users if node_supports_equalization(user, modules)), None)
    if op_node is None:
        raise AssertionError("Expected an operation node after the input equalization observer")
    if op_node.op == "call_module":
        configs = _get_observed_graph_module_attr(model, "equalization_node_name_to_qconfig")
        return op_node, configs[op_node.name].weight()
    observer_node = maybe_get_weight_eq_obs_node(op_node, modules)
    return (None, None) if observer_node is None else (op_node, modules[str(observer_node.target)])


def maybe_get_next_input_eq_obs(node: Node, modules: dict[str, Any]) -> _InputEqualizationObserver | None:
    """The observer of equalization of the next layer's input, behind a ReLU or not."""
    relu = maybe_get_next_module(node, modules, nn.ReLU)
    relu = maybe_get_next_module(node, modules, target_functional_type=F.relu) if relu is None else relu
    observer = maybe_get_next_module(node if relu is None else relu, modules, ObserverBase)
    found = None if observer is None else maybe_get_next_module(observer, modules, _InputEqualizationObserver)
    return None if found is None else modules[str(found.target)]


def maybe_get_next_equalization_scale(node: Node, modules: dict[str, Any]) -> Tensor | None:
    observer = maybe_get_next_input_eq_obs(node, modules)
    return None if observer is None or _is_one(observer.equalization_scale) else observer.equalization_scale


def scale_input_observer(node: Node, modules: dict[str, Any]) -> None:
    """Give the observer before an observer of equalization the range of the scaled input."""
    observer = modules[str(node.args[0].target)]  # type: ignore[union-attr]
    if isinstance(observer, ObserverBase):
        low, high = modules[str(node.target)].calculate_scaled_minmax()
        if low is not None and high is not None:
            observer.min_val, observer.max_val = low, high


def _scaled(weight: Tensor, bias: Any, scale: Tensor, next_scale: Any) -> tuple[Tensor, Any]:
    """A weight divided by the scales of its columns, and with its rows and bias times the next layer's scales."""
    weight = weight * torch.reciprocal(reshape_scale(scale, 1, weight))
    if next_scale is None:
        return weight, bias
    weight = weight * reshape_scale(next_scale, 0, weight)
    return weight, None if bias is None else bias * reshape_scale(next_scale, 0, bias)


def scale_weight_node(
    node: Node, modules: dict[str, Any], equalization_scale: Any, next_equalization_scale: Any
) -> None:
    """Scale the weight and the bias of a layer."""
    if equalization_scale is not None:
        layer = _layer_of(node, modules)
        weight, bias = _scaled(layer.weight, layer.bias, equalization_scale, next_equalization_scale)
        layer.weight = nn.Parameter(weight.detach())
        if bias is not layer.bias:
            layer.bias = nn.Parameter(bias.detach())


def scale_weight_functional(
    op_node: Node, model: Any, modules: dict[str, Any], equalization_scale: Any, next_equalization_scale: Any
) -> None:
    """Scale the weight and the bias of a function, which are attributes of a module."""
    observer_node = maybe_get_weight_eq_obs_node(op_node, modules)
    if equalization_scale is None or observer_node is None:
        return
    weight_node = observer_node.args[0].args[0]  # type: ignore[union-attr]
    bias_node = next(
        (arg for arg in op_node.args if isinstance(arg, Node) and arg.op == "get_attr" and "bias" in arg.name), None
    )
    places = [None if node is None else _parent_name(str(node.target)) for node in (weight_node, bias_node)]  # type: ignore[union-attr]
    values = [None if place is None else getattr(modules[place[0]], place[1]) for place in places]
    made = _scaled(values[0], values[1], equalization_scale, next_equalization_scale)  # type: ignore[arg-type]
    for place, old, new in zip(places, values, made, strict=True):
        if place is not None and new is not old:
            is_parameter = isinstance(old, nn.Parameter)
            setattr(modules[place[0]], place[1], nn.Parameter(new.detach()) if is_parameter else new)


def clear_weight_quant_obs_node(op_node: Node, modules: dict[str, Any]) -> None:
    """Let the observer of a function's weight forget what it saw."""
    observer_node = maybe_get_weight_eq_obs_node(op_node, modules)
    if observer_node is not None:
        modules[str(observer_node.args[0].target)].reset_min_max_vals()  # type: ignore[union-attr]


def remove_node(model: Any, node: Node, prev_node: Node) -> None:
    """Let the users of a node use another, and erase it."""
    for user in list(node.users):
        user.replace_input_with(node, prev_node)
    model.graph.erase_node(node)


def update_obs_for_equalization(model: Any, modules: dict[str, Any]) -> dict[str, _WeightEqualizationObserver]:
    """Compute the scales, and write them into the observers. Returns the weights' ones by node."""
    found = {}
    for node in model.graph.nodes:
        if node.op != "call_module" or not isinstance(modules[node.target], _InputEqualizationObserver):
            continue
        op_node, weight_observer = get_op_node_and_weight_eq_obs(node, model, modules)
        if op_node is None or weight_observer is None:
            continue
        if op_node.op == "call_module":
            weight_observer(_layer_of(op_node, modules).weight)
        scale = calculate_equalization_scale(modules[node.target], weight_observer)
        modules[node.target].set_equalization_scale(scale)
        weight_observer.set_equalization_scale(scale)
        found[op_node.name] = weight_observer
    return found


def convert_eq_obs(model: Any, modules: dict[str, Any], weight_eq_obs_dict: dict[str, Any]) -> None:
    """Replace the observers of equalization by products with the scales, and scale the weights.

    The output of a layer is scaled by the layer's own weight and bias.
    """
    graph = model.graph
    for node in graph.nodes:
        if node.op == "call_module" and isinstance(modules[node.target], _InputEqualizationObserver):
            observer_node = node.args[0]
            source = observer_node.args[0]
            if node_supports_equalization(source, modules) or "relu" in source.name:
                remove_node(model, node, observer_node)
                continue
            scale_input_observer(node, modules)
            with graph.inserting_before(observer_node):
                name = get_new_attr_name_with_prefix(f"{source.name}_equalization_scale")(model)
                model.register_buffer(name, modules[node.target].equalization_scale)
                scale_node = graph.create_node("get_attr", name)
            with graph.inserting_after(scale_node):
                product = graph.create_node("call_function", torch.mul, (source, scale_node))
            observer_node.replace_input_with(source, product)
            remove_node(model, node, observer_node)
        elif node.name in weight_eq_obs_dict:
            scale = weight_eq_obs_dict[node.name].equalization_scale
            scale = None if _is_one(scale) else scale
            next_scale = maybe_get_next_equalization_scale(node, modules)
            if node.op == "call_module":
                scale_weight_node(node, modules, scale, next_scale)
                continue
            scale_weight_functional(node, model, modules, scale, next_scale)
            observer_node = maybe_get_weight_eq_obs_node(node, modules)
            if observer_node is None:
                return
            clear_weight_quant_obs_node(node, modules)
            remove_node(model, observer_node, observer_node.args[0])


def _convert_equalization_ref(model: GraphModule) -> GraphModule:
    """The model with scaled inputs and weights, still with observers."""
    modules: dict[str, Any] = dict(model.named_modules(remove_duplicate=False))
    convert_eq_obs(model, modules, update_obs_for_equalization(model, modules))
    return GraphModule(model, model.graph)


def get_layer_sqnr_dict(model_a: nn.Module, model_b: nn.Module, x: Tensor) -> dict[str, float]:
    """The ratio of signal to noise of each layer's output in a quantized model, by names of layers.

    Args:
        model_a: The float model.
        model_b: The quantized one.
        x: The input of both.
    """
    # The comparison of networks is built on quantization.
    ns, mappings, measures = (
        importlib.import_module(f"torchlite.ao.ns.{name}") for name in ("_numeric_suite_fx", "fx.mappings", "fx.utils")
    )
    unmatchable = mappings.get_unmatchable_types_map()
    unmatchable["funs_unmatchable"].add(torch.mul)  # scales of equalization
    models = ns.add_loggers("fp32", model_a, "int8", model_b, ns.OutputLogger, unmatchable_types_map=unmatchable)
    for model in models:
        model(x)
    results = ns.extract_logger_info(*models, ns.OutputLogger, "int8")
    ns.extend_logger_results_with_comparison(results, "fp32", "int8", measures.compute_sqnr, "sqnr")
    outputs = [found["node_output"]["int8"][0] for found in results.values()]
    return {output["fqn"]: output["sqnr"][0] for output in outputs}


def get_equalization_qconfig_dict(layer_sqnr_dict: dict[str, float], num_layers_to_equalize: int) -> dict[str, Any]:
    """The configurations that equalize the layers with the most noise."""
    worst = sorted(layer_sqnr_dict.items(), key=lambda entry: entry[1])[:num_layers_to_equalize]
    return {"module_name": [(name, default_equalization_qconfig) for name, _ in worst]}
