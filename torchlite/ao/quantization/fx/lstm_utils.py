"""An LSTM each part of which has an observer that the user chose."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite.ao.nn import quantizable, quantized
from torchlite.ao.nn.quantizable.modules.rnn import _LSTMLayer

from ..fake_quantize import FakeQuantizeBase, default_weight_fake_quant
from ..observer import default_weight_observer
from ..qconfig import QConfig
from ..qconfig_mapping import QConfigMapping

__all__: list[str] = []


def _qconfig_of(make: Callable) -> QConfig:
    weight = default_weight_fake_quant if isinstance(make(), FakeQuantizeBase) else default_weight_observer
    return QConfig(activation=make, weight=weight)


def _get_lstm_with_individually_observed_parts(
    float_lstm: Any, example_inputs: tuple[Any, ...], backend_config: Any = None, linear_output_obs_ctr: Any = None,
    sigmoid_obs_ctr: Any = None, tanh_obs_ctr: Any = None, cell_state_obs_ctr: Any = None,
    hidden_state_obs_ctr: Any = None, split_gates: bool = False,
) -> Any:  # fmt: skip
    """The observed layer of a float one, whose configuration the other parts have.

    Args:
        float_lstm: The float layer, with a ``qconfig``.
        example_inputs: Inputs of a cell.
        backend_config: The backend. Default: PyTorch's own kernels.
        linear_output_obs_ctr: The observer of sums of products. Default: the configuration's, as for the others.
        sigmoid_obs_ctr: That of gates.
        tanh_obs_ctr: That of new values of the state.
        cell_state_obs_ctr: That of the cell's state.
        hidden_state_obs_ctr: That of the results.
        split_gates: Whether each gate has linear layers of its own. Default: ``False``.
    """
    from ..quantize_fx import prepare_fx

    made = quantizable.LSTM(
        float_lstm.input_size, float_lstm.hidden_size, float_lstm.num_layers, float_lstm.bias, float_lstm.batch_first,
        float_lstm.dropout, float_lstm.bidirectional, split_gates=split_gates,
    )  # fmt: skip
    qconfig = made.qconfig = float_lstm.qconfig
    mapping = QConfigMapping().set_global(qconfig)
    if sigmoid_obs_ctr is not None:
        for name in ("input_gate", "forget_gate", "output_gate"):
            mapping.set_module_name(name, _qconfig_of(sigmoid_obs_ctr))
    if tanh_obs_ctr is not None:
        mapping.set_module_name("cell_gate", _qconfig_of(tanh_obs_ctr))
    # The sums and products of a cell, in the order of its graph.
    sums = [linear_output_obs_ctr] * (4 if split_gates else 1) + [cell_state_obs_ctr]
    products = [cell_state_obs_ctr, cell_state_obs_ctr, hidden_state_obs_ctr]
    for place in range(float_lstm.num_layers):
        layer = _LSTMLayer.from_float(float_lstm, place, qconfig, batch_first=False, split_gates=split_gates)
        cell = prepare_fx(layer.layer_fw.cell, mapping, example_inputs, backend_config=backend_config)
        waiting = {torch.add: iter(sums), torch.mul: iter(products)}
        for node in cell.graph.nodes:
            make = next(waiting[node.target], None) if node.target in waiting else None
            if make is not None:
                setattr(cell, next(iter(node.users)).name, make())
        layer.layer_fw.cell = cell
        made.layers[place] = layer
    return made


def _get_reference_quantized_lstm_module(observed_lstm: Any, backend_config: Any = None) -> Any:
    """The layer of which each cell computes on numbers between quantization and its inverse.

    Args:
        observed_lstm: What `_get_lstm_with_individually_observed_parts` returned.
        backend_config: The backend. Default: PyTorch's own kernels.
    """
    from ..quantize_fx import convert_to_reference_fx

    made = quantized.LSTM(
        observed_lstm.input_size, observed_lstm.hidden_size, observed_lstm.num_layers, observed_lstm.bias,
        observed_lstm.batch_first, observed_lstm.dropout, observed_lstm.bidirectional,
    )  # fmt: skip
    for place, layer in enumerate(made.layers):
        cell = copy.deepcopy(observed_lstm.layers[place].layer_fw.cell)
        cell = convert_to_reference_fx(cell, backend_config=backend_config)
        _keep_ends_quantized(cell.graph)
        cell.graph.eliminate_dead_code()
        cell.recompile()
        layer.layer_fw.cell = cell
    return made


def _keep_ends_quantized(graph: Any) -> None:
    """Let a cell take and return quantized tensors."""
    for node in list(graph.nodes):
        if node.target is torch.quantize_per_tensor:
            source = node.args[0]
            is_state = source.target is operator.getitem and source.args[0].target == "hidden"
            if source.target == "x" or is_state:
                node.replace_all_uses_with(source)
                graph.erase_node(node)
        elif node.op == "output":
            for value in node.args[0]:
                node.replace_input_with(value, value.args[0])
