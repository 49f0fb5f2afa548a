"""Quantized layers and functions in place of reference ones between quantization and its inverse."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.fx import GraphModule, map_arg
from torchlite.fx.graph import Graph, Node
from torchlite.nn import functional as F

from ..quantization_mappings import get_quantized_operator
from ..utils import _parent_name
from . import _lowering_tables as tables
from .graph_module import keep_packed_weights
from .utils import (
    _get_module,
    collect_producer_nodes,
    create_node_from_old_node_preserve_meta,
    get_linear_prepack_op_for_dtype,
    get_new_attr_name_with_prefix,
    get_qconv_prepack_op,
    graph_module_from_producer_nodes,
    is_dequantize,
)

ORIGINAL_WEIGHTS_LOOKUP = "original_weights_lookup"
_TRANSPOSED = {F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d}


def is_getattr_tensor_metadata_node(node: Node) -> bool:
    return node.op == "call_function" and node.target is getattr and node.args[1] == "shape"


def is_get_tensor_info_node(node: Node) -> bool:
    return node.op == "call_method" and node.target in ("shape", "size")


def should_skip_lowering(op: Node, qconfig_map: dict[str, Any]) -> bool:
    """True if the user chose not to quantize a node."""
    return qconfig_map.get(op.name, True) is None


def _is_one_of(node: Node, modules: dict[str, Any], sets: tuple) -> tuple[bool, bool, bool]:
    """Whether a node calls one of the functions, of the methods, and of the classes."""
    functions, methods, classes = sets
    return (
        node.op == "call_function" and node.target in functions,
        node.op == "call_method" and node.target in methods,
        node.op == "call_module" and type(modules[str(node.target)]) in classes,
    )


class _Lowering:
    """The steps, on one model."""

    def __init__(self, model: Any, qconfigs: dict[str, Any], scopes: dict[str, tuple[str, type]]) -> None:
        self.model, self.graph, self.qconfigs, self.scopes = model, model.graph, qconfigs, scopes
        self.modules: dict[str, Any] = dict(model.named_modules(remove_duplicate=False))

    def module_of(self, node: Any) -> Any:
        return _get_module(node, self.modules)

    def set_module(self, target: Any, module: Any) -> None:
        parent, name = _parent_name(str(target))
        setattr(self.modules[parent], name, module)

    def value(self, node: Node) -> Any:
        return getattr(self.model, str(node.target))

    def is_relu(self, node: Node, functions: tuple = (F.relu, torch.relu)) -> bool:
        return (node.op == "call_function" and node.target in functions) or type(self.module_of(node)) is nn.ReLU

    def behind_quantize(self, node: Node, with_relu: bool = True) -> tuple[Any, Any]:
        """The node that a node quantizes, and the ReLU between or None. None twice if the node does not quantize."""
        if node.op != "call_function" or node.target is not torch.quantize_per_tensor:
            return None, None
        source: Any = node.args[0]
        relu = None
        if with_relu and self.is_relu(source):
            relu, source = source, source.args[0]
        return (None, None) if should_skip_lowering(source, self.qconfigs) else (source, relu)

    def has_quantized_inputs(self, node: Node, places: int) -> bool:
        """True if the first arguments are numbers of quantized tensors, or no tensors; one is at least."""
        given = node.args[:places]
        tensors = [arg for arg in given if isinstance(arg, Node)]
        return bool(tensors) and all(map(is_dequantize, tensors))

    # -- layers with weights ----------------------------------------------------------------------------------------

    def lower_static_modules(self) -> None:
        """Layers between an inverse of quantization and a quantization."""
        for node in list(self.graph.nodes):
            source, _ = self.behind_quantize(node)
            module = self.module_of(source)
            kind = type(module)
            if kind in tables.TWO_INPUTS:
                # The sum's two arguments, which the quantized layer takes both.
                source, _ = self.behind_quantize(node, with_relu=False)
                if source is None or len(source.args) != 2 or not all(map(is_dequantize, source.args)):
                    continue
                inner, quantized = tables.TWO_INPUTS[kind]
            elif kind in tables.STATIC_FUSED:
                inner, quantized = tables.STATIC_FUSED[kind]
            elif kind in tables.STATIC:
                inner, quantized = None, tables.STATIC[kind]
            else:
                continue
            if not self.has_quantized_inputs(source, 1) or (inner is not None and type(module[0]) is not inner):
                continue
            _, scale, zero_point, _ = node.args
            made = quantized.from_reference(module, self.value(scale), self.value(zero_point))  # type: ignore[arg-type]
            self.set_module(source.target, made)
            for arg in source.args:
                if is_dequantize(arg):
                    source.replace_input_with(arg, arg.args[0])
            node.replace_all_uses_with(source)
            for old in (node, scale, zero_point):
                self.graph.erase_node(old)  # type: ignore[arg-type]

    def lower_dynamic_modules(self) -> None:
        """Layers whose input is quantized by its range."""
        for node in self.graph.nodes:
            module = self.module_of(node)
            kind = type(module)
            if kind in tables.DYNAMIC_FUSED:
                inner, quantized = tables.DYNAMIC_FUSED[kind]
                if type(module[0]) is not inner:
                    continue
            elif kind in tables.DYNAMIC:
                quantized = tables.DYNAMIC[kind]
            else:
                continue
            dequantize = node.args[0]
            source = dequantize.args[0] if is_dequantize(dequantize) else None
            if source is None or source.op != "call_function" or source.target is not torch.quantize_per_tensor_dynamic:
                continue
            if source.args[1] in (torch.float16, torch.quint8, torch.qint8):
                self.set_module(node.target, quantized.from_reference(module))
                node.replace_input_with(dequantize, source.args[0])

    def lower_weight_only_modules(self) -> None:
        """Layers whose input is not quantized."""
        for node in self.graph.nodes:
            module = self.module_of(node)
            if type(module) in tables.WEIGHT_ONLY:
                self.set_module(node.target, tables.WEIGHT_ONLY[type(module)].from_reference(module))

    # -- functions with weights -------------------------------------------------------------------------------------

    def packed(self, node: Node, weight: Node) -> tuple[Any, tuple, dict[str, Any]]:
        """The op that packs the weight and the options of a function, and its arguments."""
        args, kwargs = [weight, *node.args[2:]], dict(node.kwargs)
        if node.target is F.linear:
            if "bias" in kwargs:
                kwargs["B"] = kwargs.pop("bias")
            return get_linear_prepack_op_for_dtype(weight.args[-1]), tuple(args), kwargs
        function: Any = node.target
        padding = ("padding", "output_padding") if function in _TRANSPOSED else ("padding",)
        rest = ("groups", "dilation") if function in _TRANSPOSED else ("dilation", "groups")
        names = ("bias", "stride", *padding, *rest)
        usual = {"bias": None, "stride": 1, "padding": 0, "output_padding": 0, "dilation": 1, "groups": 1}
        given = {**usual, **dict(zip(names, node.args[2:], strict=False)), **node.kwargs}
        rank = int(function.__name__[-2])
        for name in ("stride", *padding, "dilation"):
            if isinstance(given[name], int):
                given[name] = (given[name],) * rank
        order = ("bias", "stride", *padding, "dilation", "groups")
        return get_qconv_prepack_op(function), (weight, *(given[name] for name in order)), {}

    def lower_static_functions(self) -> None:
        """Functions with a weight between an inverse of quantization and a quantization."""
        functions = tables.functions()
        for node in list(self.graph.nodes):
            source, relu = self.behind_quantize(node)
            if source is None or source.op != "call_function" or source.target not in functions:
                continue
            if not self.has_quantized_inputs(source, 2) or not is_dequantize(source.args[1]):
                continue
            weight = source.args[1].args[0]
            if weight.op != "call_function" or weight.target not in (
                torch.quantize_per_tensor, torch.quantize_per_channel,
            ):  # fmt: skip
                continue
            _, scale, zero_point, _ = node.args
            op, args, kwargs = self.packed(source, weight)
            with self.graph.inserting_before(scale):
                packed = self.graph.create_node("call_function", op, args, kwargs)
            plain, with_relu = functions[source.target]
            takes_relu = relu is not None and with_relu is not None
            source.target = with_relu if takes_relu else plain
            source.args = (source.args[0].args[0], packed, scale, zero_point)
            source.kwargs = {}
            zero_point.append(source)  # type: ignore[union-attr]
            if relu is not None and not takes_relu:
                # The ReLU stays, and takes the quantized tensor.
                node.replace_all_uses_with(relu)
                self.graph.erase_node(node)
                continue
            node.replace_all_uses_with(source)
            self.graph.erase_node(node)
            if takes_relu:
                self.graph.erase_node(relu)

    def lower_dynamic_functions(self) -> None:
        """Functions with a weight whose input is quantized by its range."""
        functions = tables.dynamic_functions()
        names = {key[0] for key in functions}
        for node in reversed(list(self.graph.nodes)):
            relu, source = (node, node.args[0]) if self.is_relu(node, (F.relu,)) else (None, node)
            if should_skip_lowering(source, self.qconfigs) or source.op != "call_function":
                continue
            if source.target not in names or not all(map(is_dequantize, source.args[:2])):
                continue
            quantize, weight = source.args[0].args[0], source.args[1].args[0]
            if quantize.op != "call_function" or quantize.target is not torch.quantize_per_tensor_dynamic:
                continue
            numbers, dtype, reduce_range = quantize.args
            plain, with_relu = functions.get((source.target, dtype, weight.args[-1]), (None, None))
            if plain is None or (relu is not None and with_relu is None):
                continue
            op, args, kwargs = self.packed(source, weight)
            with self.graph.inserting_before(source):
                packed = self.graph.create_node("call_function", op, args, kwargs)
            source.target = plain if relu is None else with_relu
            source.args = (numbers, packed) if dtype is torch.float16 else (numbers, packed, reduce_range)
            source.kwargs = {}
            if relu is not None:
                relu.replace_all_uses_with(source)
                self.graph.erase_node(relu)

    def lower_binary_ops(self) -> None:
        """Sums and products of two quantized tensors, or of one and a number."""
        for node in list(self.graph.nodes):
            source, relu = self.behind_quantize(node)
            if source is None or source.op != "call_function" or source.target not in tables.BINARY:
                continue
            if not self.has_quantized_inputs(source, 2):
                continue
            _, scale, zero_point, _ = node.args
            args = [arg.args[0] if is_dequantize(arg) else arg for arg in source.args]
            if all(map(is_dequantize, source.args[:2])):
                args += [scale, zero_point]
            name = tables.BINARY[source.target] + ("" if relu is None else "_relu")
            op = getattr(torch.ops.quantized, name)
            with self.graph.inserting_after(node):
                what: tuple = ("call_function", op, tuple(args), {})
                made = create_node_from_old_node_preserve_meta(self.graph, what, source)
            node.replace_all_uses_with(made)
            for old in (node, relu, source):
                if old is not None:
                    self.graph.erase_node(old)

    # -- other nodes ------------------------------------------------------------------------------------------------

    def lower_tensor_info(self) -> None:
        """Let questions about shapes ask the quantized tensor."""
        for node in self.graph.nodes:
            if is_getattr_tensor_metadata_node(node) or is_get_tensor_info_node(node):
                if is_dequantize(node.args[0]):
                    node.args = (node.args[0].args[0], *node.args[1:])

    def lower_special_nodes(self) -> None:
        """Functions, methods and layers that compute on quantized tensors, with a scale of their own or the input's."""
        for node in list(self.graph.nodes):
            is_quantize = node.target is torch.quantize_per_tensor
            is_half = node.op == "call_method" and node.target == "to" and node.args[1:] == (torch.float16,)
            if not is_quantize and not is_half:
                continue
            source = node.args[0]
            if is_half and any(_is_one_of(source, self.modules, tables.NOT_IN_HALF)):
                continue
            if not any(_is_one_of(source, self.modules, tables.SPECIAL_NODES)):
                continue
            first = source.args[0] if source.args else next(iter(source.kwargs.values()))
            inputs = list(first) if isinstance(first, (tuple, list)) else [first]
            if not all(map(is_dequantize, inputs)):
                continue
            module = self.module_of(source)
            if is_quantize and type(module) in tables.SPECIAL:
                scale, zero_point = (self.value(arg) for arg in node.args[1:3])
                made = tables.SPECIAL[type(module)].from_reference(module, scale, zero_point)
                self.set_module(source.target, made)
            for arg in inputs:
                source.replace_input_with(arg, arg.args[0])
            parameters = node.args[1:]
            node.replace_all_uses_with(source)
            self.graph.erase_node(node)
            if source.op == "call_function" and source.target in tables.DEFAULT[0]:
                self.with_output_parameters(source, parameters)
            else:
                for parameter in parameters:
                    if isinstance(parameter, Node):
                        self.graph.erase_node(parameter)

    def with_output_parameters(self, source: Node, parameters: tuple) -> None:
        """Put a function with a scale and a zero point of the result in place of one."""
        target: Any = source.target
        skipped = tables.ARGUMENTS_TO_SKIP.get(target, ())
        kwargs = {name: value for name, value in source.kwargs.items() if name not in skipped}
        kwargs |= {"output_scale": parameters[0], "output_zero_point": parameters[1]}
        what = ("call_function", get_quantized_operator(source.target), tuple(source.args), kwargs)
        with self.graph.inserting_after(parameters[1]):
            made = create_node_from_old_node_preserve_meta(self.graph, what, source)
        source.replace_all_uses_with(made)
        self.graph.erase_node(source)


def _prepack_ops() -> set[Any]:
    names = [f"conv{kind}{d}d_prepack" for kind in ("", "_transpose") for d in (1, 2, 3)]
    names += ["linear_prepack", "linear_prepack_fp16"]
    return {getattr(torch.ops.quantized, name) for name in names}


def fold_weight(
    quantized_model: Any, node_name_to_scope: dict[str, tuple[str, type]], keep_original_weights: bool = False
) -> GraphModule:
    """The model with packed weights as attributes, in place of the nodes that pack them."""
    ops = _prepack_ops()
    packed: dict[str, Any] = {}
    folded: dict[str, Node] = {}
    originals: dict[str, list[Any]] = {}
    for node in quantized_model.graph.nodes:
        if node.op != "call_function" or node.target not in ops:
            continue
        nodes = collect_producer_nodes(node)
        if nodes is None:
            continue
        folded.update((each.name, node) for each in nodes)
        packing = graph_module_from_producer_nodes(quantized_model, nodes)
        packed[node.name] = packing()
        weights = sorted(packing.state_dict().values(), key=lambda x: x.numel(), reverse=True)
        originals[node.name] = weights if len(weights) > 1 else [*weights, None]
    graph = Graph()
    made: dict[str, Any] = {}
    kept: dict[str, list[Any]] = {}

    def load_arg(arg: Any) -> Any:
        return map_arg(arg, lambda node: made[node.name])

    for node in quantized_model.graph.nodes:
        end = folded.get(node.name)
        if end is None:
            made[node.name] = graph.node_copy(node, load_arg)
        elif end is node:
            path = node_name_to_scope[next(iter(node.users)).name][0]
            name = get_new_attr_name_with_prefix(f"{path}_packed_weight_")(quantized_model)
            setattr(quantized_model, name, packed[node.name])
            made[node.name] = graph.create_node("get_attr", name, (), {})
            key = name.replace(":", "_").replace("/", "_").replace("|", "_").replace(" ", "").lower()
            kept[key] = originals[node.name]
    found = GraphModule(quantized_model, graph)
    keep_packed_weights(found)
    if keep_original_weights:
        setattr(found, ORIGINAL_WEIGHTS_LOOKUP, kept)
    return found


def _lower_to_native_backend(
    model: GraphModule, qconfig_map: dict[str, Any], node_name_to_scope: dict[str, tuple[str, type]],
    keep_original_weights: bool = False,
) -> GraphModule:  # fmt: skip
    """The model with quantized layers and functions in place of reference ones."""
    state = _Lowering(model, qconfig_map, node_name_to_scope)
    for step in (
        state.lower_static_modules, state.lower_dynamic_modules, state.lower_weight_only_modules,
        state.lower_static_functions, state.lower_dynamic_functions, state.lower_binary_ops, state.lower_tensor_info,
        state.lower_special_nodes,
    ):  # fmt: skip
        # Within a step, a module that is called twice stays what it was.
        state.modules = dict(model.named_modules(remove_duplicate=False))
        step()
    model.graph.eliminate_dead_code()
    made = fold_weight(model, node_name_to_scope, keep_original_weights)
    made.graph.eliminate_dead_code()
    made.recompile()
    made.graph.lint()
    return made
