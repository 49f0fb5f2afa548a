"""Nodes of graph modules, and measures of the difference between the results of two networks."""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.ao.nn import quantized as nnq
from torchlite.ao.nn.intrinsic import quantized as nniq
from torchlite.ao.quantization import FakeQuantizeBase, ObserverBase
from torchlite.ao.quantization.observer import _is_activation_post_process
from torchlite.ao.quantization.utils import getattr_from_fqn
from torchlite.fx import GraphModule, Node

from .ns_types import NSNodeTargetType, NSResultsType

_SUMS = (torch.add, torch.ops.quantized.add, operator.add)
_PRODUCTS = (torch.mul, torch.ops.quantized.mul, operator.mul)
# Quantized layers with a scale and a zero point of the result.
_WITH_SCALES = (
    *(getattr(nnq, name) for name in """Linear Conv1d Conv2d Conv3d BatchNorm2d BatchNorm3d ConvTranspose1d
        ConvTranspose2d ELU GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm Hardswish LeakyReLU
        ReLU6""".split()),
    *(getattr(nniq, name) for name in "BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d LinearReLU".split()),
)  # fmt: skip


class NodeInputOrOutputType(enum.Enum):
    """The type of a node's inputs or outputs."""

    FP32 = enum.auto()
    INT8 = enum.auto()
    FP16 = enum.auto()
    UNKNOWN = enum.auto()
    FP32_OR_INT8 = enum.auto()


def get_node_first_input_and_output_type(
    node: Node, gm: GraphModule, logger_cls: Any, node_type_to_io_type_map: dict[str, set[NSNodeTargetType]]
) -> tuple[NodeInputOrOutputType, NodeInputOrOutputType]:
    """The types of a node's first input and of its output.

    Args:
        node: The node.
        gm: The module.
        logger_cls: The class of loggers.
        node_type_to_io_type_map: The types of ops.
    """
    kinds, types = node_type_to_io_type_map, NodeInputOrOutputType

    def before() -> NodeInputOrOutputType:
        """The type of what the node's first input returns."""
        source = get_normalized_nth_input(node, gm, 0)
        if not isinstance(source, Node):
            raise AssertionError(f"Expected Node, got {type(source)}")
        return get_node_first_input_and_output_type(source, gm, logger_cls, kinds)[1]

    found: NodeInputOrOutputType | None = None
    if node.op == "call_function":
        for name, kind in (("fp32", types.FP32), ("fp16", types.FP16), ("int8", types.INT8)):
            if node.target in kinds[f"funs_io_type_{name}"]:
                return kind, kind
        if node.target in kinds["funs_io_type_fp32_or_int8"]:
            found = before()
    elif node.op == "call_module":
        module = getattr_from_fqn(gm, str(node.target))
        keeps = (logger_cls, ObserverBase, FakeQuantizeBase, *kinds["mods_io_type_fp32_or_int8"])
        if isinstance(module, keeps):  # type: ignore[arg-type]
            found = before()
        elif isinstance(module, tuple(kinds["mods_io_type_fp32"])):  # type: ignore[arg-type]
            found = types.FP32
        elif isinstance(module, tuple(kinds["mods_io_type_int8"])):  # type: ignore[arg-type]
            found = types.INT8
    elif node.op == "call_method":
        if node.target == "dequantize":
            return before(), types.FP32
        if node.target == "to":
            dtype = get_normalized_nth_input(node, gm, 1)
            if dtype is not torch.float16:
                raise AssertionError(f"{dtype} handling needs to be added")
            return before(), types.FP16
        if node.target in kinds["meths_io_type_fp32_or_int8"]:
            found = before()
    return (found, found) if found is not None else (types.UNKNOWN, types.UNKNOWN)


def get_node_input_qparams(
    node: Node, gm: GraphModule, node_type_to_io_type_map: dict[str, set[NSNodeTargetType]]
) -> tuple[Any, Any] | None:
    """The scale and the zero point of a node's first input.

    Args:
        node: The node.
        gm: The module.
        node_type_to_io_type_map: The types of ops.

    Returns:
        Both, or ``None`` if they are not known.
    """
    source = get_normalized_nth_input(node, gm, 0)
    if not isinstance(source, Node):
        return None
    if source.op == "call_function":
        quantized = torch.ops.quantized
        if source.target is torch.quantize_per_tensor:
            places = 1, 2
        elif source.target in (quantized.add, quantized.add_relu, quantized.mul, quantized.mul_relu):
            places = 2, 3
        else:
            return None
        scale, zero_point = (
            getattr_from_fqn(gm, get_normalized_nth_input(source, gm, place).target) for place in places
        )
        return scale, zero_point
    if source.op == "call_module":
        module = getattr_from_fqn(gm, str(source.target))
        if isinstance(module, _WITH_SCALES):
            return module.scale, module.zero_point
        if isinstance(module, tuple(node_type_to_io_type_map["mods_io_type_fp32_or_int8"])):  # type: ignore[arg-type]
            return get_node_input_qparams(source, gm, node_type_to_io_type_map)
    return None


def return_first_non_observer_node(node: Node, gm: GraphModule) -> Node:
    """The node before observers.

    Args:
        node: A node, which may be the call of an observer.
        gm: The module.
    """
    while node.op == "call_module" and _is_activation_post_process(getattr_from_fqn(gm, str(node.target))):
        if len(node.args) != 1:
            raise AssertionError(f"Expected node.args to have length 1, got {len(node.args)}")
        node = node.args[0]  # type: ignore[assignment]
    return node


def get_number_of_non_param_args(node: Node, gm: GraphModule) -> int:
    """The count of a node's inputs that are no parameters: 2 of an LSTM, else 1.

    Args:
        node: The node.
        gm: The module.
    """
    is_lstm = node.op == "call_module" and isinstance(getattr_from_fqn(gm, str(node.target)), nn.LSTM)
    return 2 if is_lstm else 1


def get_arg_indices_of_inputs_to_log(node: Node) -> list[int]:
    """The places of a node's inputs that are compared: both of sums and products, else the first.

    Args:
        node: The node.
    """
    if not node.args:
        return []
    if node.op == "call_function" and node.target in (*_SUMS, *_PRODUCTS):
        return [place for place in range(2) if type(node.args[place]) is Node]
    return [0]


def get_target_type_str(node: Node, gm: GraphModule) -> str:
    """The name of the function, method or class that a node calls.

    Args:
        node: The node.
        gm: The module.
    """
    if node.op in ("call_function", "call_method"):
        return torch.typename(node.target)
    return torch.typename(getattr_from_fqn(gm, str(node.target))) if node.op == "call_module" else ""


def rekey_logger_info_on_node_name_of_model(results: NSResultsType, model_name: str) -> NSResultsType:
    """Results by the names of one model's nodes.

    Args:
        results: The results.
        model_name: The name of the model.
    """
    found: NSResultsType = {}
    for layer, by_kind in results.items():
        name = layer
        for by_model in by_kind.values():
            if model_name in by_model:
                name = by_model[model_name][0]["ref_node_name"]
        found[name] = by_kind
    return found


def maybe_add_missing_fqns(results: NSResultsType) -> None:
    """Gives results the names of modules that those of the other model have.

    Args:
        results: The results, which are changed.
    """
    first = next((by_model for by_kind in results.values() for by_model in by_kind.values()), {})
    named = [name for name, found in first.items() if found and found[0]["fqn"] is not None]
    if not named:
        return
    for by_kind in results.values():
        for by_model in by_kind.values():
            for name, found in by_model.items():
                if name != named[0]:
                    for result, reference in zip(found, by_model[named[0]], strict=False):
                        result["fqn"] = reference["fqn"]


def maybe_dequantize_first_two_tensor_args_and_handle_tuples(f: Callable) -> Callable:
    """Return the function for quantized tensors too, and for two tuples or lists; its result is None for tensors of
    another dtype than float32.
    """

    @functools.wraps(f)
    def measure(x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, kind) and isinstance(y, kind) for kind in (tuple, list)):
            return [measure(a, b, *args, **kwargs) for a, b in zip(x, y, strict=False)]
        x, y = (t.dequantize() if isinstance(t, torch.Tensor) and t.is_quantized else t for t in (x, y))
        return None if x.dtype != torch.float32 or y.dtype != torch.float32 else f(x, y, *args, **kwargs)

    return measure


@maybe_dequantize_first_two_tensor_args_and_handle_tuples
def compute_sqnr(x: Any, y: Any) -> Any:
    """Return the ratio of signal to noise in decibels: 20 times the logarithm of ``|x| / |x - y|``.

    Args:
        x: Tensor of the first network, or a tuple of them.
        y: Tensor of the second one, or a tuple.

    Example:
        >>> from torchlite.ao.ns.fx.utils import compute_sqnr
        >>> compute_sqnr(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 4.5]))
        tensor(20.)
    """
    return 20 * torch.log10(torch.norm(x) / torch.norm(x - y))


@maybe_dequantize_first_two_tensor_args_and_handle_tuples
def compute_normalized_l2_error(x: Any, y: Any) -> Any:
    """Return ``|x - y| / |x|``.

    Args:
        x: Tensor of the first network, or a tuple of them.
        y: Tensor of the second one, or a tuple.

    Example:
        >>> from torchlite.ao.ns.fx.utils import compute_normalized_l2_error
        >>> compute_normalized_l2_error(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 4.5]))
        tensor(0.1000)
    """
    return torch.sqrt(((x - y) ** 2).sum() / (x**2).sum())


@maybe_dequantize_first_two_tensor_args_and_handle_tuples
def compute_cosine_similarity(x: Any, y: Any) -> Any:
    """Return the cosine of the angle between both tensors as vectors.

    Args:
        x: Tensor of the first network, or a tuple of them.
        y: Tensor of the second one, or a tuple.

    Example:
        >>> from torchlite.ao.ns.fx.utils import compute_cosine_similarity
        >>> compute_cosine_similarity(torch.ones(2), torch.ones(2, 1)).round(decimals=4)
        tensor([1.])
    """
    return torch.nn.functional.cosine_similarity(x.reshape(1, -1), y.reshape(1, -1))


def op_type_supports_shadowing(node: Node) -> bool:
    """Whether a node can be computed beside its counterpart: sums, products and lists of tensors cannot.

    Args:
        node: The node.
    """
    unsupported = (torch.add, torch.mul, operator.add, operator.mul, torch.cat, torch.stack)
    return not (node.op == "call_function" and node.target in unsupported)


def normalized_arguments(node: Node, gm: GraphModule) -> tuple[Any, dict[str, Any]]:
    """The arguments of a node by the names of its signature, or as they are if it is not known."""
    try:
        found = node.normalized_arguments(gm, normalize_to_only_use_kwargs=True)
    except RuntimeError:  # the arguments are those of several signatures
        found = None
    return (node.args, node.kwargs) if found is None else found


def get_normalized_nth_input(node: Node, gm: GraphModule, idx: int) -> Any:
    """An argument of a node by its place in the signature.

    Args:
        node: The node.
        gm: The module.
        idx: The place.

    Raises:
        AssertionError: There are fewer arguments.
    """
    args, kwargs = normalized_arguments(node, gm)
    given = [*args, *kwargs.values()]
    if idx >= len(given):
        raise AssertionError(f"Index {idx} out of range: total = {len(given)}")
    return given[idx]
