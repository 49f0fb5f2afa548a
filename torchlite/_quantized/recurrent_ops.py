"""Recurrent layers with weights of eight bits or in half precision, for float inputs: `torch.ops.aten.quantized_lstm`
and `quantized_gru`, their cells, and their packed weights.

A layer quantizes its inputs of all time steps at once, and its state in each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch

from .packed_parameters import LibraryObject, LinearPackedParams, register_class

_LINEAR = LinearPackedParams._schema_type
_REDUCED = True  # cells use 7 bits of their inputs, as in PyTorch


class CellParams(LibraryObject):
    """The packed weights of one layer and direction, and a step with them.

    kind: "quantized_dynamic" or "quantized_fp16". biases: those that are in the packed weights, for files.
    """

    _schema_type = "__torch__.torch.classes.rnn.CellParamsBase"

    def __init__(self, kind: str, input: Any, state: Any, biases: Any = (), reduce_range: bool = False) -> None:
        self.kind, self.input, self.state, self.biases, self.reduce_range = kind, input, state, biases, reduce_range

    def _tl_parts(self) -> list[Any]:
        return [self.input, self.state]

    def _saved_state(self) -> Any:
        flags = [int(self.reduce_range)] if self.kind == "quantized_dynamic" else []
        return self.kind, list(self.biases), [], flags, [self.input, self.state]

    def project(self, x: Any) -> Any:
        """Return the products of inputs."""
        return self.input.dynamic(x, self.reduce_range)

    def step(self, mode: str, of_input: Any, h: Any, c: Any = None) -> tuple:
        """Return the next states for the products of a step's inputs."""
        of_state = self.state.dynamic(h, self.reduce_range)
        if mode == "LSTM":
            i, f, g, o = (of_input + of_state).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c
        if mode == "GRU":
            (r, z, n), (hr, hz, hn) = of_input.chunk(3, 1), of_state.chunk(3, 1)
            r, z = torch.sigmoid(r + hr), torch.sigmoid(z + hz)
            n = torch.tanh(n + r * hn)
            return (n + z * (h - n),)
        return ((torch.relu if mode == "RNN_RELU" else torch.tanh)(of_input + of_state),)


def _rebuild_cell(state: Any) -> CellParams:
    kind, biases, _, flags, (input, of_state) = state
    if kind not in ("quantized_dynamic", "quantized_fp16"):
        raise ValueError(f"weights of the kind {str(kind)[:100]}")
    for part in (input, of_state):
        if getattr(type(part), "_schema_type", None) != _LINEAR:
            raise TypeError(f"weights of the class {type(part).__name__}")
    return CellParams(kind, input, of_state, biases, bool(flags[0]) if flags else False)


register_class(CellParams._schema_type, _rebuild_cell)


def _run_steps(mode: str, cell: CellParams, steps: list, states: list, backward: bool) -> tuple[list, list]:
    """Return the results of all steps in order, and the last states. Steps of packed sequences become shorter.

    steps: the products of the inputs.
    """
    made: list[Any] = [None] * len(steps)
    for place in range(len(steps) - 1, -1, -1) if backward else range(len(steps)):
        x = steps[place]
        count = len(x)
        new = cell.step(mode, x, *[state[:count] for state in states])
        made[place] = new[0]
        states = [
            part if count == len(state) else torch.cat([part, state[count:]])
            for part, state in zip(new, states, strict=True)
        ]
    return made, states


def _run_layers(
    mode: str, data: Any, sizes: Any, states: list, params: list, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the results of the last layer and the last states. sizes: the batches of a packed sequence's steps."""
    ways = 1 + bidirectional
    if len(params) != num_layers * ways:
        raise RuntimeError(f"expected {num_layers * ways} packed weights, but got {len(params)}")
    sizes = None if sizes is None else sizes.tolist()
    data = data.transpose(0, 1) if batch_first else data
    lasts: list[list[Any]] = [[] for _ in states]
    for layer in range(num_layers):
        columns = []
        for way in range(ways):
            place = layer * ways + way
            sums = params[place].project(data)
            steps = list(sums.unbind(0) if sizes is None else sums.split(sizes))
            made, last = _run_steps(mode, params[place], steps, [state[place] for state in states], bool(way))
            columns.append(made)
            for kept, value in zip(lasts, last, strict=True):
                kept.append(value)
        rows = [torch.cat(parts, 1) for parts in zip(*columns, strict=True)]
        data = torch.stack(rows) if sizes is None else torch.cat(rows)
        if dropout and train and layer < num_layers - 1:
            data = torch.nn.functional.dropout(data, dropout)
    return data.transpose(0, 1) if batch_first else data, *(torch.stack(kept) for kept in lasts)


def _layers(mode: str) -> dict[str, Callable[..., Any]]:
    several = mode == "LSTM"
    name, result = ("lstm", "(Tensor, Tensor, Tensor)") if several else ("gru", "(Tensor, Tensor)")
    hx, end = ("Tensor[] hx", ", *, ScalarType? dtype=None, bool use_dynamic=False") if several else ("Tensor hx", "")
    flags = "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
    params = f"{CellParams._schema_type}[] params"

    def of_input(
        input: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool, *, dtype: Any = None, use_dynamic: bool = False,
    ) -> Any:  # fmt: skip
        states = list(hx) if several else [hx]
        return _run_layers(
            mode, input, None, states, params, num_layers, dropout, train, bidirectional, batch_first
        )  # fmt: skip

    def of_data(
        data: Any, batch_sizes: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float,
        train: bool, bidirectional: bool, *, dtype: Any = None, use_dynamic: bool = False,
    ) -> Any:  # fmt: skip
        states = list(hx) if several else [hx]
        return _run_layers(
            mode, data, batch_sizes, states, params, num_layers, dropout, train, bidirectional, False
        )  # fmt: skip

    return {
        f"quantized_{name}.input(Tensor input, {hx}, {params}, {flags}, bool batch_first{end}) -> {result}": of_input,
        f"quantized_{name}.data(Tensor data, Tensor batch_sizes, {hx}, {params}, {flags}{end}) -> {result}": of_data,
    }


def _cell(mode: str) -> Callable[..., Any]:
    def compute(input: Any, hx: Any, w_ih: Any, w_hh: Any, *biases: Any) -> Any:
        cell = CellParams("quantized_dynamic", w_ih, w_hh, biases, _REDUCED)
        states = list(hx) if mode == "LSTM" else [hx]
        found = cell.step(mode, cell.project(input), *states)
        return found if mode == "LSTM" else found[0]

    return compute


def _dynamic_params(w_ih: Any, w_hh: Any, bias_ih: Any, bias_hh: Any, reduce_range: bool = False) -> CellParams:
    return CellParams("quantized_dynamic", w_ih, w_hh, (bias_ih, bias_hh), reduce_range)


def _half_params(w_ih: Any, w_hh: Any) -> CellParams:
    return CellParams("quantized_fp16", w_ih, w_hh)


_BIASES = f"{_LINEAR} w_ih, {_LINEAR} w_hh, Tensor b_ih, Tensor b_hh"
# The functions that compute the ops of `torch.ops.quantized`, by schema, and those of `torch.ops.aten`.
CELL_OPS: dict[str, Callable[..., Any]] = {
    f"make_quantized_cell_params_dynamic({_LINEAR} w_ih, {_LINEAR} w_hh, Tensor bias_ih, Tensor bias_hh, "
    f"bool reduce_range=False) -> {CellParams._schema_type}": _dynamic_params,
    f"make_quantized_cell_params_fp16({_LINEAR} w_ih, {_LINEAR} w_hh) -> {CellParams._schema_type}": _half_params,
    "quantized_lstm_cell_dynamic(Tensor input, Tensor[] hx, "
    f"{_BIASES.replace('b_', 'bias_')}) -> (Tensor, Tensor)": _cell("LSTM"),
    f"quantized_gru_cell_dynamic(Tensor input, Tensor hx, {_BIASES}) -> Tensor": _cell("GRU"),
    f"quantized_rnn_relu_cell_dynamic(Tensor input, Tensor hx, {_BIASES}) -> Tensor": _cell("RNN_RELU"),
    f"quantized_rnn_tanh_cell_dynamic(Tensor input, Tensor hx, {_BIASES}) -> Tensor": _cell("RNN_TANH"),
}
LAYER_OPS: dict[str, Callable[..., Any]] = {**_layers("LSTM"), **_layers("GRU")}
