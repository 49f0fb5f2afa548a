"""Export rules of RNN, GRU and LSTM (one node per layer), and of embedding bags."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import OnnxExporterError
from .graph_builder import OnnxGraphBuilder, WriterValue, make_tensor, translates
from .reductions import reduce_with


def _reorder_gates(w: OnnxGraphBuilder, parts: list[WriterValue], order: list[int], rows: int) -> str:
    """Return weights with gates in ONNX's order, one direction per row."""
    known = [w.initializers.get(part.name) for part in parts]
    if all(message is not None for message in known) and parts[0].dtype in ("float32", "float64", "float16"):
        # Reorder the program's weights at export time.
        arrays = [np.frombuffer(m.raw_data, parts[0].dtype).reshape(tuple(m.dims)) for m in known if m is not None]
        whole = np.stack([np.concatenate([a[i * rows : (i + 1) * rows] for i in order]) for a in arrays])
        name = w.name(f"{parts[0].name}_onnx")
        w.initializers[name] = make_tensor(name, whole, parts[0].dtype)
        return name
    turned = []
    for part in parts:
        blocks: Any = part
        if order != sorted(order):
            pieces = [w.slice(part, 0, i * rows, (i + 1) * rows) for i in order]
            blocks = w.op("Concat", *pieces, axis=0)
        turned.append(w.unsqueeze(blocks, 0))
    return w.op("Concat", *turned, axis=0) if len(turned) > 1 else turned[0]


def _add_layers(
    w: OnnxGraphBuilder, kind: str, x: WriterValue, states: list[WriterValue], params: list[WriterValue],
    has_biases: bool, layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool, order: list[int], **attributes: Any,
) -> list[str]:  # fmt: skip
    ways, per = 2 if bidirectional else 1, 4 if has_biases else 2
    if len(params) != layers * ways * per:
        raise OnnxExporterError(f"{kind}: a projection, which ONNX's op does not have")
    alone = x.ndim == 2
    value: Any = w.unsqueeze(x, 0 if batch_first else 1) if alone else x
    if batch_first:
        value = w.permute(value, [1, 0, 2])
    starts: list[Any] = [w.unsqueeze(s, 1) if alone else s for s in states]
    hidden = params[1].sizes[1] or 0
    found: list[list[str]] = [[] for _ in states]
    for layer in range(layers):
        given = params[layer * ways * per : (layer + 1) * ways * per]
        sets = [given[d * per : (d + 1) * per] for d in range(ways)]
        bias = None
        if has_biases:
            both = [_reorder_gates(w, [s[i] for s in sets], order, hidden) for i in (2, 3)]
            bias = _merge_directions(w, both, params[2].dtype)
        begin = [w.slice(s, 0, layer * ways, (layer + 1) * ways) if layers > 1 else s for s in starts]
        out, *last = w.op(
            kind,
            value,
            _reorder_gates(w, [s[0] for s in sets], order, hidden),
            _reorder_gates(w, [s[1] for s in sets], order, hidden),
            bias,
            None,
            *begin,
            outputs=1 + len(states),
            hidden_size=hidden,
            direction="bidirectional" if bidirectional else "forward",
            **attributes,
        )
        for kept, state in zip(found, last, strict=True):
            kept.append(state)
        # From (time, direction, batch, part): concatenate the directions.
        if ways == 1:
            value = w.squeeze(out, 1)
        else:
            value = w.op("Reshape", w.permute(out, [0, 2, 1, 3]), w.constant([0, 0, -1], "int64"))
        if dropout and train and layer + 1 < layers:
            value = w.op("Dropout", value, w.constant(dropout, "float32"), w.constant(True, "bool"))
    if batch_first:
        value = w.permute(value, [1, 0, 2])
    ends = [w.op("Concat", *kept, axis=0) if len(kept) > 1 else kept[0] for kept in found]
    if alone:
        value, ends = w.squeeze(value, 0 if batch_first else 1), [w.squeeze(e, 1) for e in ends]
    return [value, *ends]


def _merge_directions(w: OnnxGraphBuilder, names: list[str], dtype: str) -> str:
    """Concatenate the weights of both directions."""
    known = [w.initializers.get(name) for name in names]
    if all(message is not None for message in known):
        arrays = [np.frombuffer(m.raw_data, dtype).reshape(tuple(m.dims)) for m in known if m is not None]
        name = w.name(f"{names[0]}_both")
        w.initializers[name] = make_tensor(name, np.concatenate(arrays, 1), dtype)
        return name
    return w.op("Concat", *names, axis=1)


@translates("aten.lstm.input")
def lstm(
    w: OnnxGraphBuilder, x: WriterValue, states: Any, params: Any, has_biases: bool, layers: int, dropout: float,
    train: bool,
    bidirectional: bool, batch_first: bool,
) -> list[str]:  # fmt: skip
    return _add_layers(w, "LSTM", x, list(states), list(params), has_biases, layers, dropout, train, bidirectional,
                   batch_first, [0, 3, 1, 2])  # fmt: skip


@translates("aten.gru.input")
def gru(
    w: OnnxGraphBuilder, x: WriterValue, state: WriterValue, params: Any, has_biases: bool, layers: int, dropout: float,
    train: bool,
    bidirectional: bool, batch_first: bool,
) -> list[str]:  # fmt: skip
    return _add_layers(
        w,
        "GRU",
        x,
        [state],
        list(params),
        has_biases,
        layers,
        dropout,
        train,
        bidirectional,
        batch_first,
        [1, 0, 2],
        linear_before_reset=1,
    )


def _register_rnn(name: str, activation: str) -> None:
    @translates(f"aten.{name}.input")
    def rnn(
        w: OnnxGraphBuilder, x: WriterValue, state: WriterValue, params: Any, has_biases: bool, layers: int,
        dropout: float, train: bool,
        bidirectional: bool, batch_first: bool,
    ) -> list[str]:  # fmt: skip
        return _add_layers(w, "RNN", x, [state], list(params), has_biases, layers, dropout, train, bidirectional,
                       batch_first, [0], activations=[activation] * (2 if bidirectional else 1))  # fmt: skip


_register_rnn("rnn_tanh", "Tanh")
_register_rnn("rnn_relu", "Relu")


def _add_cell(
    w: OnnxGraphBuilder,
    x: WriterValue,
    h: Any,
    w_ih: WriterValue,
    w_hh: WriterValue,
    b_ih: WriterValue | None,
    b_hh: WriterValue | None,
) -> tuple[str, str]:
    return w.op("Gemm", x, w_ih, b_ih, transB=1), w.op("Gemm", h, w_hh, b_hh, transB=1)


@translates("aten.lstm_cell")
def lstm_cell(
    w: OnnxGraphBuilder,
    x: WriterValue,
    states: Any,
    w_ih: WriterValue,
    w_hh: WriterValue,
    b_ih: WriterValue | None = None,
    b_hh: WriterValue | None = None,
) -> list[str]:
    h, c = states
    i, f, g, o = w.op(
        "Split", w.op("Add", *_add_cell(w, x, h, w_ih, w_hh, b_ih, b_hh)), outputs=4, axis=1, num_outputs=4
    )
    i, f, o = (w.op("Sigmoid", v) for v in (i, f, o))
    cell = w.op("Add", w.op("Mul", f, c), w.op("Mul", i, w.op("Tanh", g)))
    return [w.op("Mul", o, w.op("Tanh", cell)), cell]


@translates("aten.gru_cell")
def gru_cell(
    w: OnnxGraphBuilder,
    x: WriterValue,
    h: WriterValue,
    w_ih: WriterValue,
    w_hh: WriterValue,
    b_ih: WriterValue | None = None,
    b_hh: WriterValue | None = None,
) -> str:
    a, b = (w.op("Split", v, outputs=3, axis=1, num_outputs=3) for v in _add_cell(w, x, h, w_ih, w_hh, b_ih, b_hh))
    r, z = (w.op("Sigmoid", w.op("Add", a[i], b[i])) for i in (0, 1))
    n = w.op("Tanh", w.op("Add", a[2], w.op("Mul", r, b[2])))
    return w.op("Add", n, w.op("Mul", z, w.op("Sub", h, n)))


def _register_rnn_cell(name: str, activation: str) -> None:
    @translates(f"aten.{name}")
    def cell(
        w: OnnxGraphBuilder,
        x: WriterValue,
        h: WriterValue,
        w_ih: WriterValue,
        w_hh: WriterValue,
        b_ih: WriterValue | None = None,
        b_hh: WriterValue | None = None,
    ) -> str:
        return w.op(activation, w.op("Add", *_add_cell(w, x, h, w_ih, w_hh, b_ih, b_hh)))


_register_rnn_cell("rnn_tanh_cell", "Tanh")
_register_rnn_cell("rnn_relu_cell", "Relu")


@translates("aten.embedding_bag", "aten._embedding_bag", "aten._embedding_bag_forward_only")
def embedding_bag(
    w: OnnxGraphBuilder, weight: WriterValue, indices: WriterValue, offsets: WriterValue, _scale_grad: bool = False,
    mode: int = 0, _sparse: bool = False,
    per_sample: WriterValue | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> list[str | None]:  # fmt: skip
    """Sum rows per bag; a row's bag is the number of offsets at or before it."""
    if padding_idx is not None and padding_idx < 0:
        padding_idx = None if padding_idx == -1 else padding_idx + (weight.sizes[0] or 0)
    begins: Any = w.slice(offsets, 0, 0, -1) if include_last_offset else offsets
    count = w.op("Shape", begins)
    rows = w.op("Gather", weight, indices)
    width = w.put(w.size(weight, 1))
    every = w.op("Range", w.constant(0, "int64"), w.put(w.size(indices, 0)), w.constant(1, "int64"))
    reached = w.op("GreaterOrEqual", w.unsqueeze(every, 1), w.cast(w.unsqueeze(begins, 0), "int64", offsets.dtype))
    bag = w.op("Sub", reduce_with(w, "ReduceSum", w.cast(reached, "int64", "bool"), [1], False), w.constant(1, "int64"))
    if per_sample is not None:
        rows = w.op("Mul", rows, w.unsqueeze(per_sample, 1))
    kept = None
    if padding_idx is not None:
        kept = w.op("Not", w.op("Equal", indices, w.constant(padding_idx, indices.dtype)))
    places = w.op("Expand", w.unsqueeze(bag, 1), w.op("Shape", rows))
    whole = w.op("Concat", count, w.reshape(width, [1]), axis=0)
    if mode == 2:
        lowest = w.constant(-np.inf, weight.dtype)
        if kept is not None:
            rows = w.op("Where", w.unsqueeze(kept, 1), rows, lowest)
        out = w.op("ScatterElements", w.op("Expand", lowest, whole), places, rows, axis=0, reduction="max")
        out = w.op("Where", w.op("IsInf", out), w.constant(0, weight.dtype), out)
    else:
        if kept is not None:
            rows = w.op("Where", w.unsqueeze(kept, 1), rows, w.constant(0, weight.dtype))
        zero = w.op("Expand", w.constant(0, weight.dtype), whole)
        out = w.op("ScatterElements", zero, places, rows, axis=0, reduction="add")
        if mode == 1:
            ones = w.op("Expand", w.constant(1, weight.dtype), w.op("Shape", bag))
            if kept is not None:
                ones = w.cast(kept, weight.dtype, "bool")
            none = w.op("Expand", w.constant(0, weight.dtype), count)
            many = w.op("ScatterElements", none, bag, ones, axis=0, reduction="add")
            out = w.op("Div", out, w.unsqueeze(w.op("Max", many, w.constant(1, weight.dtype)), 1))
    return [out, None, None, None]
