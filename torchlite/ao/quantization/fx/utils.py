"""Questions about nodes, new nodes, and the attributes of a prepared model."""

from __future__ import annotations

import operator
import warnings
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.fx import GraphModule
from torchlite.fx.graph import Graph, Node
from torchlite.nn import functional as F

from ..fake_quantize import FixedQParamsFakeQuantize
from ..observer import FixedQParamsObserver, ObserverBase, _is_activation_post_process
from ..qconfig import float16_dynamic_qconfig, float16_static_qconfig, qconfig_equals
from ..quant_type import QuantType
from ..quantize import _devices
from ..stubs import DeQuantStub
from ..utils import activation_is_statically_quantized

__all__ = [
    "EMPTY_ARG_DICT", "NON_OBSERVABLE_ARG_DICT", "NON_QUANTIZABLE_WEIGHT_OPS", "NodeInfo", "ObservedGraphModuleAttrs",
    "all_node_args_except_first", "all_node_args_have_no_tensors", "assert_and_get_unique_device",
    "collect_producer_nodes", "create_getattr_from_value", "create_node_from_old_node_preserve_meta",
    "get_custom_module_class_keys", "get_linear_prepack_op_for_dtype", "get_new_attr_name_with_prefix",
    "get_non_observable_arg_indexes_and_types", "get_qconv_prepack_op", "get_skipped_module_name_and_classes",
    "graph_module_from_producer_nodes", "maybe_get_next_module", "node_arg_is_bias", "node_arg_is_weight",
    "return_arg_list",
]  # fmt: skip
# Functions whose weight stays float.
NON_QUANTIZABLE_WEIGHT_OPS = {F.layer_norm, F.group_norm, F.instance_norm}


@dataclass
class ObservedGraphModuleAttrs:
    """What `convert` needs to know of a prepared model."""

    node_name_to_qconfig: dict[str, Any]
    node_name_to_scope: dict[str, tuple[str, type]]
    prepare_custom_config: Any
    equalization_node_name_to_qconfig: dict[str, Any]
    qconfig_mapping: Any
    is_qat: bool
    observed_node_names: set[str]
    is_observed_standalone_module: bool = False
    standalone_module_input_quantized_idxs: list[int] | None = None
    standalone_module_output_quantized_idxs: list[int] | None = None


def _is_argument(node: Node, arg: Any, name: str) -> bool:
    place = node.meta.get("target_dtype_info", {}).get(f"{name}_index")
    if place is not None and place < len(node.args) and node.args[place] is arg:
        return True
    return node.kwargs.get(name) is arg


def node_arg_is_weight(node: Node, arg: Any) -> bool:
    """True if an argument of a node is its weight."""
    return _is_argument(node, arg, "weight")


def node_arg_is_bias(node: Node, arg: Any) -> bool:
    """True if an argument of a node is its bias."""
    return _is_argument(node, arg, "bias")


def get_custom_module_class_keys(custom_module_mapping: dict[QuantType, dict[type, type]]) -> list[Any]:
    """The classes that are replaced, of all kinds of quantization."""
    kinds = (QuantType.STATIC, QuantType.DYNAMIC, QuantType.WEIGHT_ONLY)
    return list(dict.fromkeys(key for kind in kinds for key in custom_module_mapping.get(kind, {})))


def get_linear_prepack_op_for_dtype(dtype: Any) -> Any:
    """The op that packs the weight of a linear layer."""
    names = {torch.float16: "linear_prepack_fp16", torch.qint8: "linear_prepack"}
    if dtype not in names:
        raise Exception("can't get linear prepack op for dtype:", dtype)
    return getattr(torch.ops.quantized, names[dtype])


_CONVS = {getattr(F, name): name for d in (1, 2, 3) for name in (f"conv{d}d", f"conv_transpose{d}d")}


def get_qconv_prepack_op(conv_op: Callable) -> Any:
    """The op that packs the weight of a convolution."""
    if conv_op not in _CONVS:
        raise AssertionError(f"Didn't find prepack op for {conv_op}")
    return getattr(torch.ops.quantized, f"{_CONVS[conv_op]}_prepack")


def get_new_attr_name_with_prefix(prefix: str) -> Callable[[Any], str]:
    """A function that finds an attribute's name that a module does not have yet."""
    prefix = prefix.replace(".", "_")

    def get_new_attr_name(module: Any) -> str:
        number = 0
        while hasattr(module, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    return get_new_attr_name


def collect_producer_nodes(node: Node) -> list[Node] | None:
    """A node and those that it is made of, or ``None`` if an input is among these."""
    found, waiting = [node], [node]
    while waiting:
        current = waiting.pop()
        for arg in (*current.args, *current.kwargs.values()):
            if not isinstance(arg, Node):
                continue
            if arg.op == "placeholder":
                return None
            found.append(arg)
            if not (arg.op == "call_function" and arg.target is getattr):
                waiting.append(arg)
    return found


def graph_module_from_producer_nodes(root: GraphModule, producer_nodes: list[Node]) -> GraphModule:
    """The module of the nodes that `collect_producer_nodes` returned, without inputs."""
    graph = Graph()
    made: dict[Node, Node] = {}
    for node in reversed(producer_nodes):
        made[node] = graph.node_copy(node, lambda arg: made[arg])
    graph.output(made[producer_nodes[0]])
    return GraphModule(root, graph)


def assert_and_get_unique_device(module: Any) -> Any:
    """The device of a module's parameters and buffers, or ``None`` if it has none."""
    devices = _devices(module)
    if len(devices) > 1:
        raise AssertionError(f"prepare only works with cpu or single-device CUDA modules, but got devices {devices}")
    return next(iter(devices), None)


def create_getattr_from_value(module: Any, graph: Graph, prefix: str, value: Any, device: Any = None) -> Node:
    """A node of a new buffer."""
    name = get_new_attr_name_with_prefix(prefix)(module)
    if isinstance(value, torch.Tensor):
        value = value.detach().clone()
    else:
        value = torch.tensor(value, device=assert_and_get_unique_device(module) if device is None else device)
    module.register_buffer(name, value)
    return graph.create_node("get_attr", name)


def all_node_args_have_no_tensors(node: Any, modules: dict[str, Any], cache: dict[Any, bool]) -> bool:
    """True if a node's result is no tensor, as far as its arguments tell."""
    if node not in cache:
        cache[node] = _has_no_tensors(node, modules, cache)
    return cache[node]


def _has_no_tensors(node: Any, modules: dict[str, Any], cache: dict[Any, bool]) -> bool:
    if not isinstance(node, Node):
        return True
    if node.op == "call_module":
        observed = _is_activation_post_process(modules[str(node.target)])
        return observed and all_node_args_have_no_tensors(node.args[0], modules, cache)
    if node.op in ("placeholder", "get_attr"):
        return False
    if node.op == "call_function" and node.target is operator.getitem:
        return all_node_args_have_no_tensors(node.args[0], modules, cache)
    if (
        node.target is getattr
        and node.args[1] in ("ndim", "shape")
        or node.op == "call_method"
        and node.target == "size"
    ):
        return True
    for arg in node.args:
        for part in arg if isinstance(arg, list) else [arg]:
            if isinstance(part, Node):
                if not all_node_args_have_no_tensors(part, modules, cache):
                    return False
            elif not isinstance(arg, (list, int)):
                return False
    # A call without arguments may make a tensor.
    return bool(node.args)


def all_node_args_except_first(node: Node) -> list[int]:
    """The places of a node's arguments after the first."""
    return list(range(1, len(node.args)))


def return_arg_list(arg_indices: list[int]) -> Callable[[Node], list[int]]:
    """A function that returns those of the places that a node has."""
    return lambda node: [place for place in arg_indices if place < len(node.args)]


NodeInfo = namedtuple("NodeInfo", "op target")
# Arguments that are no tensors: the places by type, of a method.
NON_OBSERVABLE_ARG_DICT: dict[Any, dict[Any, Callable[[Node], list[int]]]] = {
    NodeInfo("call_method", "masked_fill"): {torch.bool: return_arg_list([1]), float: return_arg_list([2])},
    **{NodeInfo("call_method", name): {int: all_node_args_except_first}
       for name in ("permute", "repeat", "reshape", "transpose", torch.transpose, "view")},
    **{NodeInfo("call_method", name): {int: return_arg_list([1])}
       for name in ("size", "unsqueeze", "unsqueeze_", torch.unsqueeze)},
}  # fmt: skip
EMPTY_ARG_DICT: dict[Any, Callable[[Node], list[int]]] = {}


def get_non_observable_arg_indexes_and_types(node: Node) -> dict[Any, Callable[[Node], list[int]]]:
    """The functions that find the arguments of a node that are no tensors, by their type."""
    return NON_OBSERVABLE_ARG_DICT.get(NodeInfo(node.op, node.target), EMPTY_ARG_DICT)


def maybe_get_next_module(
    node: Node, modules: dict[str, Any], target_module_type: Any = None, target_functional_type: Any = None
) -> Node | None:
    """The user of a node that calls a class of modules or a function, or ``None``."""
    for user in node.users:
        if user.op == "call_module" and target_module_type is not None:
            if isinstance(modules[str(user.target)], target_module_type):
                return user
        elif (
            user.op == "call_function" and target_functional_type is not None and user.target == target_functional_type
        ):
            return user
    return None


def create_node_from_old_node_preserve_meta(quantized_graph: Graph, create_node_args: tuple, old_node: Node) -> Node:
    """A new node with the stack trace of another."""
    made = quantized_graph.create_node(*create_node_args)
    made.stack_trace = old_node.stack_trace
    return made


def get_skipped_module_name_and_classes(
    prepare_custom_config: Any, is_standalone_module: bool
) -> tuple[list[str], list[type]]:
    """The names and classes of modules that are not traced."""
    names = list(prepare_custom_config.non_traceable_module_names)
    classes = list(prepare_custom_config.non_traceable_module_classes)
    if not is_standalone_module:
        names += prepare_custom_config.standalone_module_names
        classes += prepare_custom_config.standalone_module_classes
        classes += get_custom_module_class_keys(prepare_custom_config.float_to_observed_mapping)
    return names, classes


def _get_module(node: Any, named_modules: dict[str, Any]) -> Any:
    """The module that a node calls, or ``None``."""
    return named_modules.get(str(node.target)) if isinstance(node, Node) and node.op == "call_module" else None


def _is_custom_module(name: str) -> Callable[..., bool]:
    def ask(node: Any, named_modules: dict[str, Any], qconfig: Any = None, qhandler: Any = None) -> bool:
        module = _get_module(node, named_modules)
        if qconfig is None or qhandler is None:
            from torchlite.ao.nn import quantizable

            return isinstance(module, getattr(quantizable, name))
        is_float = isinstance(module, getattr(nn, name))
        return is_float and activation_is_statically_quantized(qconfig) and qhandler.is_custom_module()

    return ask


_is_custom_module_lstm = _is_custom_module("LSTM")
_is_custom_module_mha = _is_custom_module("MultiheadAttention")


def _insert_dequant_stub(node: Node, model: Any, named_modules: dict[str, Any], graph: Graph) -> Node:
    name = get_new_attr_name_with_prefix("dequant_stub_")(model)
    named_modules[name] = DeQuantStub()
    setattr(model, name, named_modules[name])
    with graph.inserting_after(node):
        return graph.call_module(name, (node,))


def _insert_dequant_stubs_for_custom_module_lstm_output(
    node: Node, model: Any, named_modules: dict[str, Any], graph: Graph
) -> Node:
    """Put stubs behind the three tensors that an LSTM returns, and a tuple of tuples behind these."""

    def item(source: Node, place: int, after: Node) -> Node:
        with graph.inserting_after(after):
            return graph.call_function(operator.getitem, (source, place))

    def stub(source: Node) -> Node:
        return _insert_dequant_stub(source, model, named_modules, graph)

    output = item(node, 0, node)
    last = output_stub = stub(output)
    hidden = item(node, 1, last)
    last, states = hidden, []
    for place in (0, 1):
        last = stub(item(hidden, place, last))
        states.append(last)
    with graph.inserting_after(last):
        hidden_stub = graph.call_function(tuple, (states,))
    with graph.inserting_after(hidden_stub):
        found = graph.call_function(tuple, ([output_stub, hidden_stub],))
    for user in list(node.users):
        if user is not output and user is not hidden:
            user.replace_input_with(node, found)
    _reroute_tuple_getitem_pattern(graph)
    return found


def _maybe_get_custom_module_lstm_from_node_arg(arg: Any, named_modules: dict[str, Any]) -> Node | None:
    """The call of an LSTM behind the stub, the tuple and the items of its result, or ``None``."""
    node, seen_stub = arg, False
    while isinstance(node, Node):
        if _is_custom_module_lstm(node, named_modules):
            return node if seen_stub else None
        if isinstance(_get_module(node, named_modules), DeQuantStub):
            seen_stub, node = True, node.args[0]
        elif node.op == "call_function" and node.target is tuple and not seen_stub:
            node = node.args[0][0]  # type: ignore[index,assignment]
        elif node.op == "call_function" and node.target is operator.getitem and seen_stub:
            node = node.args[0]
        else:
            return None
    return None


def _reroute_tuple_getitem_pattern(graph: Graph) -> None:
    """Replace items of tuples that the graph makes by what was put into the tuples."""

    def source_of(node: Node) -> Any:
        """What an item is, or the item itself if the tuple comes from elsewhere."""
        if node.op != "call_function" or node.target is not operator.getitem:
            return node
        container = node.args[0]
        container = source_of(container) if isinstance(container, Node) else container
        if isinstance(container, Node) and container.op == "call_function" and container.target is tuple:
            part = container.args[0][node.args[1]]  # type: ignore[index,call-overload]
            return source_of(part) if isinstance(part, Node) else part
        return node

    for node in list(graph.nodes):
        found = source_of(node)
        if found is not node and isinstance(found, Node):
            for user in list(node.users):
                user.replace_input_with(node, found)


def _get_observer_from_activation_post_process(activation_post_process: Any) -> Any:
    if isinstance(activation_post_process, ObserverBase):
        return activation_post_process
    return activation_post_process.activation_post_process


_SUGGESTION = (
    "Please use torch.ao.quantization.get_default_qconfig_mapping or "
    "torch.ao.quantization.get_default_qat_qconfig_mapping. Example:\n"
    '    qconfig_mapping = get_default_qconfig_mapping("fbgemm")\n'
    "    model = prepare_fx(model, qconfig_mapping, example_inputs)"
)


def _complaint(made: Any, limits: Any, qconfig: Any, what: str) -> str | None:
    """What a backend finds wrong with an observer or fake quantization."""
    observer = _get_observer_from_activation_post_process(made)
    low, high, eps = (getattr(observer, name, None) for name in ("quant_min", "quant_max", "eps"))
    least, most = limits.quant_min_lower_bound, limits.quant_max_upper_bound
    if least is not None and most is not None:
        if low is None or high is None:
            return f"QConfig {what} must specify 'quant_min' and 'quant_max', ignoring {qconfig}"
        if low < least or high > most:
            return (
                f"QConfig {what} quantization range must fall within the backend's:\nQConfig range = ({low}, {high}), "
                f"BackendConfig range = ({least}, {most}), ignoring {qconfig}"
            )
    if limits.scale_min_lower_bound is not None:
        if eps is None:
            return f"QConfig {what} must specify 'eps', ignoring {qconfig}"
        if eps < limits.scale_min_lower_bound:
            return (
                f"QConfig {what} eps ({eps}) must be greater than or equal to the backend's min scale value "
                f"({limits.scale_min_lower_bound}), ignoring {qconfig}"
            )
    scale, zero_point = limits.scale_exact_match, limits.zero_point_exact_match
    if scale is None or zero_point is None:
        return None
    if any(qconfig_equals(qconfig, accepted) for accepted in (float16_static_qconfig, float16_dynamic_qconfig)):
        return None
    if not isinstance(made, (FixedQParamsObserver, FixedQParamsFakeQuantize)):
        return (
            "QConfig must specify a FixedQParamsObserver or a FixedQParamsFakeQuantize for fixed qparams ops, ignoring "
            f"{qconfig}.\n{_SUGGESTION}"
        )
    if observer.scale != scale or observer.zero_point != zero_point:
        return (
            f"QConfig fixed scale ({observer.scale}) and zero point ({observer.zero_point}) do not match the backend's "
            f"({scale} and {zero_point}), ignoring {qconfig}.\n{_SUGGESTION}"
        )
    return None


def _qconfig_satisfies_dtype_config_constraints(
    qconfig: Any, dtype_with_constraints: Any, is_activation: bool = True
) -> bool:
    """True if a configuration's ranges and scales are those that a backend demands; a warning if not."""
    make = None if qconfig is None else qconfig.activation if is_activation else qconfig.weight
    if make is None or dtype_with_constraints.dtype is None:
        return True
    made = make()
    if made.dtype != dtype_with_constraints.dtype:
        return True
    complaint = _complaint(made, dtype_with_constraints, qconfig, "activation" if is_activation else "weight")
    if complaint is not None:
        warnings.warn(complaint, stacklevel=2)
    return complaint is None


def is_dequantize(node: Any) -> bool:
    """True if a node gives the numbers of a quantized tensor."""
    return isinstance(node, Node) and node.op == "call_method" and node.target == "dequantize"
