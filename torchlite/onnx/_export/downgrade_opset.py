"""Rewrites nodes for older opsets, from 11 on: inputs that were attributes, and missing ops.

A rule takes the builder, inputs, number of outputs and attributes of a node. It adds other nodes and returns their
outputs, or it changes the attributes and returns the remaining inputs of the node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._element_types import NUMBERS
from ..errors import UnsupportedOperatorError
from .graph_builder import OLDER, InputList, OnnxGraphBuilder, WriterValue

_INTEGERS = frozenset(number for name, number in NUMBERS.items() if name.startswith(("int", "uint")))


def _read_constant_integers(w: OnnxGraphBuilder, value: Any, kind: str) -> list[int]:
    """Return a constant's integers. Raise UnsupportedOperatorError for a computed value."""
    within: OnnxGraphBuilder | None = w
    while within is not None:
        message = within.initializers.get(w.put(value))
        if message is not None:
            return np.frombuffer(bytes(message.raw_data), np.int64).tolist()
        within = within.outer
    raise UnsupportedOperatorError(kind, w.version, 18)


def _make_input_to_attribute_rule(name: str) -> Callable:
    """Convert the second input to an attribute."""

    def rule(w: OnnxGraphBuilder, kind: str, inputs: list, outputs: int, attributes: dict) -> InputList:
        if len(inputs) > 1 and inputs[1] is not None:
            attributes[name] = _read_constant_integers(w, inputs[1], kind)
        return InputList(inputs[:1])

    return rule


def _downgrade_split(w: OnnxGraphBuilder, kind: str, inputs: list, outputs: int, attributes: dict) -> InputList:
    attributes.pop("num_outputs", None)  # equal parts
    return (
        InputList(inputs)
        if w.version >= 13
        else _make_input_to_attribute_rule("split")(w, kind, inputs, outputs, attributes)
    )


def _downgrade_shape(w: OnnxGraphBuilder, kind: str, inputs: list, outputs: int, attributes: dict) -> Any:
    start, end = attributes.pop("start", None), attributes.pop("end", None)
    if start is None and end is None:
        return InputList(inputs)
    whole = w.node("Shape", inputs, 1, {})
    return w.op("Slice", whole, w.constant([start or 0], "int64"), w.constant([(1 << 63) - 1 if end is None else end],
                "int64"), w.constant([0], "int64"))  # fmt: skip


def _make_drop_attribute_rule(*names: str) -> Callable:
    """Remove attributes that the older op lacks; raise if they matter."""

    def rule(w: OnnxGraphBuilder, kind: str, inputs: list, outputs: int, attributes: dict) -> InputList:
        for name in names:
            if attributes.pop(name, None) not in (None, 0, "none"):
                raise UnsupportedOperatorError(f"{kind}({name})", w.version, 18)
        return InputList(inputs)

    return rule


def _downgrade_resize(w: OnnxGraphBuilder, kind: str, inputs: list, outputs: int, attributes: dict) -> InputList:
    inputs = _make_drop_attribute_rule("antialias", "keep_aspect_ratio_policy")(w, kind, inputs, outputs, attributes)
    if w.version >= 13:
        return InputList(inputs)
    nothing = w.constant([], "float32")  # no input is optional yet
    inputs += [None] * (3 - len(inputs))
    return InputList([inputs[0], *(nothing if value is None else value for value in inputs[1:3]), *inputs[3:]])


def _make_comparison_rule(choose: Callable) -> Callable:
    """Express an op that lacked integer support by comparisons."""

    def rule(w: OnnxGraphBuilder, kind: str, inputs: list, outputs: int, attributes: dict) -> Any:
        return choose(w, *inputs) if any(_is_integer(w, value) for value in inputs) else InputList(inputs)

    return rule


def _is_integer(w: OnnxGraphBuilder, value: Any) -> bool:
    """True if a value, or the constant of a name, has an integer type."""
    if isinstance(value, WriterValue):
        return not value.is_float
    held = w.initializers.get(value) if isinstance(value, str) else None
    return type(value) is int or (held is not None and held.data_type in _INTEGERS)


def _downgrade_max(w: OnnxGraphBuilder, first: Any, *others: Any) -> Any:
    for other in others:
        first = w.op("Where", w.op("Less", first, other), other, first)
    return first


def _downgrade_min(w: OnnxGraphBuilder, first: Any, *others: Any) -> Any:
    for other in others:
        first = w.op("Where", w.op("Less", first, other), first, other)
    return first


def _downgrade_clip(w: OnnxGraphBuilder, x: Any, low: Any = None, high: Any = None) -> Any:
    x = x if low is None else _downgrade_max(w, x, low)
    return x if high is None else _downgrade_min(w, x, high)


def _downgrade_scatter(w: OnnxGraphBuilder, kind: str, inputs: list, outputs: int, attributes: dict) -> InputList:
    reduction = attributes.get("reduction")
    since = 18 if reduction in ("max", "min") else 16 if reduction in ("add", "mul") else 0
    if w.version < since:
        raise UnsupportedOperatorError(f"{kind}({reduction})", w.version, since)
    return InputList(inputs)


def _downgrade_layer_norm(w: OnnxGraphBuilder, kind: str, inputs: list, outputs: int, attributes: dict) -> Any:
    x: WriterValue = inputs[0]
    axes = list(range(attributes["axis"], 0)) if attributes["axis"] < 0 else list(range(attributes["axis"], x.ndim))
    mean = w.op("ReduceMean", x, w.constant(axes, "int64"), keepdims=1)
    apart = w.op("Sub", x, mean)
    spread = w.op("ReduceMean", w.op("Mul", apart, apart), w.constant(axes, "int64"), keepdims=1)
    root = w.op("Sqrt", w.op("Add", spread, w.constant(attributes["epsilon"], x.dtype)))
    found = w.op("Div", apart, root)
    found = w.op("Mul", found, inputs[1]) if inputs[1] is not None else found
    found = w.op("Add", found, inputs[2]) if len(inputs) > 2 and inputs[2] is not None else found
    return found if outputs == 1 else [found, mean, w.op("Reciprocal", root)]


def _downgrade_softmax(w: OnnxGraphBuilder, kind: str, inputs: list, outputs: int, attributes: dict) -> Any:
    """Softmax normalized over all dimensions from the axis on; transpose if the axis is not the last."""
    x, axis = inputs[0], attributes.get("axis", -1)
    if axis == -1 or (isinstance(x, WriterValue) and axis % x.ndim == x.ndim - 1):
        attributes["axis"] = -1
        return InputList(inputs)
    if not isinstance(x, WriterValue):
        raise UnsupportedOperatorError(kind, w.version, 13)
    order = list(range(x.ndim))
    order[axis], order[-1] = order[-1], order[axis]
    return w.permute(w.node(kind, [w.permute(x, order)], 1, {"axis": -1}), order)


def _downgrade_trilu(w: OnnxGraphBuilder, kind: str, inputs: list, outputs: int, attributes: dict) -> Any:
    x = inputs[0]
    first = w.constant(0, "int64") if len(inputs) < 2 or inputs[1] is None else inputs[1]
    sizes = w.op("Shape", x)
    rows, columns = (
        w.op("Range", w.constant(0, "int64"), w.op("Gather", sizes, w.constant(d, "int64")), w.constant(1, "int64"))
        for d in (-2, -1)
    )
    apart = w.op("Sub", columns, w.unsqueeze(rows, 1))
    outside = w.op("Less" if attributes.get("upper", 1) else "Greater", apart, first)
    return w.op("Where", outside, w.constant(0, x.dtype if isinstance(x, WriterValue) else "int64"), x)


def _downgrade_or_equal(strictly: str) -> Callable:
    return lambda w, kind, inputs, outputs, attributes: w.op("Not", w.op(strictly, *inputs))


def _downgrade_mish(w: OnnxGraphBuilder, kind: str, inputs: list, outputs: int, attributes: dict) -> str:
    return w.op("Mul", inputs[0], w.op("Tanh", w.op("Softplus", inputs[0])))


def _downgrade_hard_swish(w: OnnxGraphBuilder, kind: str, inputs: list, outputs: int, attributes: dict) -> str:
    return w.op("Mul", inputs[0], w.op("HardSigmoid", inputs[0], alpha=1 / 6, beta=0.5))


def _make_unsupported_rule(version: int) -> Callable:
    def rule(w: OnnxGraphBuilder, kind: str, inputs: list, outputs: int, attributes: dict) -> Any:
        raise UnsupportedOperatorError(kind, w.version, version)

    return rule


# The version from which on a node keeps its form, and the rule for older ones.
RULES: dict[str, tuple[int, Callable]] = {
    **{
        f"Reduce{what}": (18, _make_input_to_attribute_rule("axes"))
        for what in ("Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
    },
    "ReduceSum": (13, _make_input_to_attribute_rule("axes")),
    "Squeeze": (13, _make_input_to_attribute_rule("axes")),
    "Unsqueeze": (13, _make_input_to_attribute_rule("axes")),
    "Split": (18, _downgrade_split),
    "Shape": (15, _downgrade_shape),
    "ScatterElements": (18, _downgrade_scatter),
    "ScatterND": (18, _downgrade_scatter),
    "LayerNormalization": (17, _downgrade_layer_norm),
    "Softmax": (13, _downgrade_softmax),
    "LogSoftmax": (13, _downgrade_softmax),
    "Trilu": (14, _downgrade_trilu),
    "Mish": (18, _downgrade_mish),
    "HardSwish": (14, _downgrade_hard_swish),
    "Reshape": (14, _make_drop_attribute_rule("allowzero")),
    "Max": (12, _make_comparison_rule(_downgrade_max)),
    "Min": (12, _make_comparison_rule(_downgrade_min)),
    "Clip": (12, _make_comparison_rule(_downgrade_clip)),
    "Resize": (18, _downgrade_resize),
    "ArgMax": (12, _make_drop_attribute_rule("select_last_index")),
    "ArgMin": (12, _make_drop_attribute_rule("select_last_index")),
    "GreaterOrEqual": (12, _downgrade_or_equal("Less")),
    "LessOrEqual": (12, _downgrade_or_equal("Greater")),
    "GridSample": (16, _make_unsupported_rule(16)),
    "Einsum": (12, _make_unsupported_rule(12)),
    "Celu": (12, _make_unsupported_rule(12)),
    **{f"Bitwise{what}": (18, _make_unsupported_rule(18)) for what in ("And", "Or", "Xor", "Not")},
    "Dropout": (12, _make_unsupported_rule(12)),
    "STFT": (17, _make_unsupported_rule(17)),
    "DFT": (17, _make_unsupported_rule(17)),
}
OLDER.update(RULES)
