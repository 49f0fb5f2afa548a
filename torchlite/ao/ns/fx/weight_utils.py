"""The weights of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
import torchlite.ao.nn.qat as nnqat
import torchlite.nn.functional as F
from torchlite import Tensor, nn
from torchlite.ao.nn import intrinsic as nni
from torchlite.ao.nn import quantized as nnq
from torchlite.ao.nn.intrinsic import qat as nniqat
from torchlite.ao.nn.intrinsic import quantized as nniq
from torchlite.ao.nn.quantized import dynamic as nnqd
from torchlite.ao.quantization.utils import getattr_from_fqn
from torchlite.fx import GraphModule, Node

from .ns_types import NSSingleResultType, NSSingleResultValuesType
from .utils import get_target_type_str, return_first_non_observer_node


def mod_weight_detach(mod: Any) -> Tensor:
    """The weight of a float layer.

    Args:
        mod: The layer.
    """
    return mod.weight.detach()


def mod_0_weight_detach(mod: Any) -> Tensor:
    """The weight of the first layer of a fused one.

    Args:
        mod: The fused layer.
    """
    return mod[0].weight.detach()


def mod_weight_bias_0(mod: Any) -> Tensor:
    """The weight of a quantized layer.

    Args:
        mod: The layer.
    """
    return mod._weight_bias()[0]


def get_lstm_weight(mod: Any) -> list[Tensor]:
    """The weights of an LSTM.

    Args:
        mod: The LSTM.
    """
    names = [name for name in mod._flat_weights_names if name.startswith(("weight_ih_l", "weight_hh_l"))]
    return [getattr(mod, name).detach() for name in names]


def get_qlstm_weight(mod: Any) -> list[Tensor]:
    """The weights of a dynamically quantized LSTM.

    Args:
        mod: The LSTM.
    """
    return [*mod.get_weight().values()]


def _weight_of(plain: tuple[Any, ...], fused: tuple[Any, ...]) -> Callable[[Any], Tensor]:
    def find(mod: Any) -> Tensor:
        if isinstance(mod, plain):
            return mod_weight_detach(mod)
        return mod_0_weight_detach(mod) if isinstance(mod, fused) else mod_weight_bias_0(mod)

    return find


_conv_weight = _weight_of((nn.Conv1d, nn.Conv2d, nn.Conv3d), (nni.ConvReLU1d, nni.ConvReLU2d, nni.ConvReLU3d))
_linear_weight = _weight_of((nn.Linear,), (nni.LinearReLU,))


def get_conv_mod_weight(mod: Any) -> Tensor:
    """The weight of a convolution, fused or quantized too.

    Args:
        mod: The convolution.
    """
    return _conv_weight(mod)


def get_linear_mod_weight(mod: Any) -> Tensor:
    """The weight of a linear layer, fused or quantized too.

    Args:
        mod: The layer.
    """
    return _linear_weight(mod)


def get_lstm_mod_weights(mod: Any) -> list[Tensor]:
    """The weights of an LSTM, quantized too.

    Args:
        mod: The LSTM.

    Raises:
        AssertionError: The module is another one.
    """
    if isinstance(mod, nn.LSTM):
        return get_lstm_weight(mod)
    if not isinstance(mod, nnqd.LSTM):
        raise AssertionError(f"type {type(mod)} not handled yet")
    return get_qlstm_weight(mod)


def _value(node: Any, gm: GraphModule) -> Any:
    if node.op != "get_attr":
        raise AssertionError(f"Expected get_attr, got {node.op}")
    return getattr_from_fqn(gm, node.target)


def get_conv_fun_weight(node: Node, gm: GraphModule) -> Tensor:
    """The weight that a float function gets, before observers.

    Args:
        node: The call of the function.
        gm: The module.
    """
    return _value(return_first_non_observer_node(node.args[1], gm), gm).detach()  # type: ignore[arg-type]


def get_qconv_fun_weight(node: Node, gm: GraphModule) -> Tensor:
    """The weight of a quantized function.

    Args:
        node: The call of the function.
        gm: The module.
    """
    return _value(node.args[1], gm).unpack()[0]


def get_linear_fun_weight(node: Node, gm: GraphModule) -> Tensor:
    """The weight that a linear function gets, before observers, or in half precision.

    Args:
        node: The call of the function.
        gm: The module.
    """
    weight: Any = node.args[1]
    if weight.op != "call_method":
        return get_conv_fun_weight(node, gm)
    half = weight.args[0]  # weight.to(dtype).dequantize()
    return _value(half.args[0], gm).detach().to(half.args[1])


def get_qlinear_fun_weight(node: Node, gm: GraphModule) -> Tensor:
    """The weight of a quantized linear function.

    Args:
        node: The call of the function.
        gm: The module.
    """
    return _value(node.args[1], gm).unpack()[0]


def get_op_to_type_to_weight_extraction_fn() -> dict[str, dict[Any, Callable]]:
    """The functions that return weights, by kinds of nodes and by what they call.

    Example:
        >>> from torchlite.ao.ns.fx.weight_utils import get_op_to_type_to_weight_extraction_fn
        >>> find = get_op_to_type_to_weight_extraction_fn()["call_module"][torch.nn.Linear]
        >>> find(torch.nn.Linear(3, 2)).shape
        torch.Size([2, 3])
    """
    modules: dict[Any, Callable] = {
        nn.Linear: mod_weight_detach, nnq.Linear: mod_weight_bias_0, nni.LinearReLU: mod_0_weight_detach,
        nniq.LinearReLU: mod_weight_bias_0, nnqat.Linear: mod_weight_detach, nnqd.Linear: mod_weight_bias_0,
        nniqat.LinearReLU: mod_weight_detach, nniqat.LinearBn1d: mod_weight_detach,
        nn.modules.linear.NonDynamicallyQuantizableLinear: mod_weight_detach,  # type: ignore[attr-defined]
        nn.LSTM: get_lstm_weight, nnqd.LSTM: get_qlstm_weight,
    }  # fmt: skip
    functions: dict[Any, Callable] = {
        F.linear: get_linear_fun_weight, torch.ops.quantized.linear: get_qlinear_fun_weight,
        torch.ops.quantized.linear_relu: get_qlinear_fun_weight,
    }  # fmt: skip
    for number in (1, 2, 3):
        conv, fused = f"Conv{number}d", f"ConvReLU{number}d"
        modules |= {
            getattr(nn, conv): mod_weight_detach, getattr(nnqat, conv): mod_weight_detach,
            getattr(nnq, conv): mod_weight_bias_0, getattr(nni, fused): mod_0_weight_detach,
            getattr(nniq, fused): mod_weight_bias_0,
        }  # fmt: skip
        for name in (fused, f"ConvBn{number}d", f"ConvBnReLU{number}d"):
            modules[getattr(nniqat, name)] = mod_weight_detach
        functions[getattr(F, f"conv{number}d")] = get_conv_fun_weight
        for end in ("", "_relu"):
            functions[getattr(torch.ops.quantized, f"conv{number}d{end}")] = get_qconv_fun_weight
    return {"call_module": modules, "call_function": functions}


def extract_weight_from_node(
    node: Node, gm: GraphModule, op_to_type_to_weight_extraction_fn: dict[str, dict[Any, Callable]] | None = None
) -> NSSingleResultType | None:
    """The weight of a node, as a result.

    Args:
        node: The node.
        gm: The module.
        op_to_type_to_weight_extraction_fn: The functions that return weights. Default: those of
            `get_op_to_type_to_weight_extraction_fn`.

    Returns:
        The result, or ``None`` if there is no function for the node.
    """
    functions = op_to_type_to_weight_extraction_fn
    if functions is None:
        functions = get_op_to_type_to_weight_extraction_fn()
    weight = None
    if node.op == "call_function":
        find = next((find for function, find in functions["call_function"].items() if node.target == function), None)
        weight = None if find is None else find(node, gm)
    elif node.op == "call_module":
        module = getattr_from_fqn(gm, str(node.target))
        find = functions["call_module"].get(type(module))
        weight = None if find is None else find(module)
    if weight is None:
        return None
    kind = get_target_type_str(node, gm)
    scopes = getattr(gm, "_node_name_to_scope", None)
    return {
        "type": NSSingleResultValuesType.WEIGHT.value, "values": [weight], "prev_node_name": node.name,
        "prev_node_target_type": kind, "ref_node_name": node.name, "ref_node_target_type": kind,
        "index_within_arg": 0, "index_of_arg": 0, "fqn": None if scopes is None else scopes[node.name][0],
    }  # fmt: skip
