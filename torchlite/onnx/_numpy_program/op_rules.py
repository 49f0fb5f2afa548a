"""Rules of elementwise operators, and of those that move or choose elements."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from ..._types.layouts import MAX_DIMS
from .._element_types import NAMES
from .expressions import Constant, Sizes, UnwritableError, Variable, literal_number, literal_tuple
from .graph_reader import REFUSED_TYPES, GraphReader, NodeArguments, call, writes

_SMALL = 1024  # elements of a range, or of a filled or repeated array, that the file's constants give

# Expressions of operators. {0} is the first input, {*} are all inputs. {name:default} is an attribute, an integer where
# the default has no point. {,option=name:default} is an option of a call, left out where the attribute has the default.
_TEMPLATES = {
    "Abs": "np.abs({0})", "Acos": "np.arccos({0})", "Acosh": "np.arccosh({0})", "Asin": "np.arcsin({0})",
    "Asinh": "np.arcsinh({0})", "Atan": "np.arctan({0})", "Atanh": "np.arctanh({0})", "Ceil": "np.ceil({0})",
    "Cos": "np.cos({0})", "Cosh": "np.cosh({0})", "Exp": "np.exp({0})", "Floor": "np.floor({0})",
    "IsNaN": "np.isnan({0})", "Log": "np.log({0})", "Neg": "-{0}", "Not": "~{0}", "BitwiseNot": "~{0}",
    "Reciprocal": "1 / {0}", "Relu": "np.maximum({0}, 0)", "Round": "np.rint({0})", "Sign": "np.sign({0})",
    "Sin": "np.sin({0})", "Sinh": "np.sinh({0})", "Sqrt": "np.sqrt({0})", "Tan": "np.tan({0})", "Tanh": "np.tanh({0})",
    "Softsign": "{0} / (1 + np.abs({0}))", "Sigmoid": "sigmoid({0})", "Erf": "erf({0})", "Softplus": "softplus({0})",
    "HardSwish": "hard_swish({0})", "Mish": "{0} * np.tanh(softplus({0}))", "PRelu": "prelu({0}, {1})",
    "LeakyRelu": "leaky_relu({0}{,slope=alpha:0.01})", "Elu": "elu({0}{,alpha=alpha:1.0})",
    "Swish": "{0} * sigmoid({alpha:1.0} * {0})",
    "SwiGLU": "{0} * sigmoid({alpha:1.0} * {0}) * {1}",
    "Selu": "selu({0}{,alpha=alpha:1.67326319217681884765625}{,gamma=gamma:1.05070102214813232421875})",
    "HardSigmoid": "hard_sigmoid({0}{,alpha=alpha:0.2}{,beta=beta:0.5})",
    "ThresholdedRelu": "{0} * ({0} > {alpha:1.0})",
    "IsInf": "is_infinite({0}{,negative=detect_negative:1}{,positive=detect_positive:1})",
    "Where": "np.where({0}, {1}, {2})", "CastLike": "{0}.astype({1}.dtype)", "Det": "np.linalg.det({0})",
    "NonZero": "np.array(np.nonzero({0}), dtype=np.int64)", "SequenceEmpty": "[]", "SequenceConstruct": "[{*}]",
    "SpaceToDepth": "space_to_depth({0}, {blocksize:1})", "GatherND": "gather_nd({0}, {1}{,batch_dims=batch_dims:0})",
    "GatherElements": "np.take_along_axis({0}, {1}, axis={axis:0})",
    "InstanceNormalization": "instance_norm({*}, {epsilon:0.00001})",
    "GroupNormalization": "group_norm({*}, {num_groups:1}, {epsilon:0.00001})",
    "RMSNormalization": "rms_norm({*}, {axis:-1}, {epsilon:0.00001})",
    "SimplifiedLayerNormalization": "rms_norm({*}, {axis:-1}, {epsilon:0.00001})",
}  # fmt: skip
_PLACE = re.compile(r"\{(?:,(\w+)=)?([\w*]+)(?::([-.\d]+))?\}")
_BINARY = {
    "Add": "+", "Sub": "-", "Mul": "*", "And": "&", "Or": "|", "Xor": "^", "Equal": "==", "Less": "<", "Greater": ">",
    "LessOrEqual": "<=", "GreaterOrEqual": ">=", "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "MatMul": "@",
}  # fmt: skip


@writes(*_TEMPLATES)
def template(w: GraphReader, n: NodeArguments) -> Any:
    def filled(found: re.Match) -> str:
        option, name, default = found.groups()
        if default is None:
            return ", ".join(n.texts()) if name == "*" else n.text(int(name))
        usual = float(default) if "." in default else int(default)
        value = n.integer(name, usual) if isinstance(usual, int) else n.number(name, usual)
        if option and value == type(value)(usual):
            return ""
        return f", {option}={literal_number(value)}" if option else literal_number(value)

    return _PLACE.sub(filled, _TEMPLATES[n.kind])


@writes(*_BINARY)
def binary(w: GraphReader, n: NodeArguments) -> Any:
    _refuse_legacy_broadcast(n)
    if n.kind in ("Add", "Sub", "Mul"):
        found = [n.sizes(0), n.sizes(1)]
        if all(s is not None and s.is_plain and len(s.items) == 1 for s in found):
            a, b = (s for s in found if s is not None)
            return Sizes((_combined(a.items[0], _BINARY[n.kind], b.items[0]),), a.scalar and b.scalar)
    return f"{n.text(0)} {_BINARY[n.kind]} {n.text(1)}"


def _combined(a: str, sign: str, b: str) -> str:
    """Return a sum, difference or product of integer expressions."""
    if re.fullmatch(r"-?\d+", a) and re.fullmatch(r"-?\d+", b):
        x, y = int(a), int(b)
        return str({"+": x + y, "-": x - y, "*": x * y}[sign])
    return f"{_operand(a)} {sign} {_operand(b)}"


def _operand(text: str) -> str:
    return f"({text})" if re.search(r" [-+*/]", text) or text.startswith("-") else text


def _refuse_legacy_broadcast(n: NodeArguments) -> None:
    if n.integer("broadcast", 0) or n.integer("axis", None) is not None and n.kind != "MatMul":
        raise UnwritableError("the broadcast of opsets below 7 is not supported")


@writes("Div")
def div(w: GraphReader, n: NodeArguments) -> Any:
    _refuse_legacy_broadcast(n)
    a, b = n.sizes(0), n.scalar(1)
    second = n.constant(1)
    if a is not None and a.is_plain and len(a.items) == 1 and second is not None and isinstance(b, int) and b > 0:
        if second.ndim <= (not a.scalar) and "-" not in a.items[0]:  # a negative quotient is rounded the other way
            return Sizes((f"{_operand(a.items[0])} // {b}",), a.scalar)
    if second is not None and second.dtype.kind == "f":
        return f"{n.text(0)} / {n.text(1)}"
    return call("divide", n.text(0), n.text(1))


@writes("Pow")
def pow(w: GraphReader, n: NodeArguments) -> Any:
    _refuse_legacy_broadcast(n)
    if n.scalar(1) == 2 and n.constant(1) is not None and n.constant(1).ndim == 0:  # type: ignore[union-attr]
        return f"np.square({n.text(0)})"
    return call("power", n.text(0), n.text(1))


@writes("Mod")
def mod(w: GraphReader, n: NodeArguments) -> Any:
    return f"np.{'fmod' if n.integer('fmod', 0) else 'remainder'}({n.text(0)}, {n.text(1)})"


@writes("Max", "Min")
def extremes(w: GraphReader, n: NodeArguments) -> Any:
    function = "np.maximum" if n.kind == "Max" else "np.minimum"
    first, *rest = n.texts()
    for text in rest:
        first = f"{function}({first}, {text})"
    return first


@writes("Sum", "Mean")
def sums(w: GraphReader, n: NodeArguments) -> Any:
    texts = n.texts()
    total = " + ".join(texts)
    if n.kind == "Sum" or len(texts) == 1:
        return total
    return f"({total}) / {len(texts)}"


@writes("Clip")
def clip(w: GraphReader, n: NodeArguments) -> Any:
    if n.opset < 11:
        low, high = n.number("min", None), n.number("max", None)
        limits = [None if v is None else literal_number(np.float32(v)) for v in (low, high)]
    else:
        limits = [_number_or_text(n, place) if n.has(place) else None for place in (1, 2)]
    low, high = limits
    if low is not None and high is not None and all(re.fullmatch(r"-?[\d.e+-]+", v) for v in (low, high)):
        return f"np.clip({n.text(0)}, {low}, {high})"
    return call("clip", n.text(0), low or ("None" if high else None) or "None", *([high] if high else []))


def _number_or_text(n: NodeArguments, place: int) -> str:
    array = n.constant(place)
    return literal_number(array.reshape(-1)[0]) if array is not None and array.size == 1 else n.text(place)


def _option(n: NodeArguments, name: str, default: float) -> str | None:
    """Return a number among the attributes as text, None for the default."""
    value = n.number(name, default)
    return None if np.float32(value) == np.float32(default) else literal_number(np.float32(value))


@writes("Gelu")
def gelu(w: GraphReader, n: NodeArguments) -> Any:
    return call("gelu", n.text(0), tanh="True" if n.option("approximate", "none") == "tanh" else None)


@writes("Softmax", "LogSoftmax")
def softmax(w: GraphReader, n: NodeArguments) -> Any:
    function = "softmax" if n.kind == "Softmax" else "log_softmax"
    if n.opset < 13:
        return call("flattened", function, n.text(0), axis=str(n.integer("axis", 1)))
    axis = n.integer("axis", -1)
    return call(function, n.text(0), axis=None if axis == -1 else str(axis))


# -- types


def dtype_text(number: int) -> str:
    """Return the expression of a dtype by ONNX's number."""
    name = NAMES[number] if 0 < number < len(NAMES) else "undefined"
    if name in REFUSED_TYPES:
        raise UnwritableError(f"NumPy has no numbers of {name}")
    return "bool" if name == "bool" else f"np.{name}"


@writes("Cast")
def cast(w: GraphReader, n: NodeArguments) -> Any:
    kind = dtype_text(n.integer("to", 0))
    found = n.sizes(0)
    if kind == "np.int64" and found is not None:
        return found
    return f"{n.text(0)}.astype({kind})"


@writes("Identity")
def identity(w: GraphReader, n: NodeArguments) -> Any:
    return n.inputs[0]


@writes("Dropout")
def dropout(w: GraphReader, n: NodeArguments) -> Any:
    if n.has(2) and n.scalar(2) is not False:
        raise UnwritableError("it is in training mode")
    if len(n.outputs) > 1:
        return [n.inputs[0], f"np.ones({n.text(0)}.shape, dtype=bool)"]
    return n.inputs[0]


@writes("Constant")
def constant(w: GraphReader, n: NodeArguments) -> Any:
    found = n.tensor("value")
    if found is not None:
        return found
    integer, number = n.integer("value_int", None), n.number("value_float", None)
    if integer is not None or number is not None:
        return Constant(np.array(integer, np.int64) if number is None else np.array(number, np.float32))
    integers = n.integers("value_ints", None)
    if integers is None and not n.numbers("value_floats"):
        raise UnwritableError("it is no tensor and no numbers")
    return Constant(
        np.array(n.numbers("value_floats"), np.float32) if integers is None else np.array(integers, np.int64)
    )


@writes("ConstantOfShape")
def constant_of_shape(w: GraphReader, n: NodeArguments) -> Any:
    tensor = n.tensor("value")
    filling = np.zeros(1, np.float32) if tensor is None else tensor.array
    shape = n.constant(0)
    if shape is not None and math.prod(int(s) for s in shape) <= _SMALL:
        return Constant(np.full([int(s) for s in shape], filling.reshape(-1)[0]))
    kind = "bool" if filling.dtype == bool else f"np.{filling.dtype.name}"
    return f"np.full({shape_text(n, 0)}, {literal_number(filling.reshape(-1)[0])}, dtype={kind})"


@writes("Range")
def range_(w: GraphReader, n: NodeArguments) -> Any:
    found = [n.constant(place) for place in range(3)]
    first = next((a for a in found if a is not None), None)
    if all(a is not None for a in found) and first is not None:
        a, b, c = (array.reshape(-1)[0].item() for array in found if array is not None)
        if c and 0 <= (b - a) / c <= _SMALL:
            return Constant((a + np.arange(math.ceil((b - a) / c)) * c).astype(first.dtype))
    numbers = [n.sizes(place) for place in range(3)]
    if all(s is not None and s.is_plain and len(s.items) == 1 for s in numbers):
        a, b, c = (s.items[0] for s in numbers if s is not None)
        span = [a, b] if a != "0" or c != "1" else [b]
        return f"np.arange({', '.join([*span, *([c] if c != '1' else [])])}, dtype=np.int64)"
    kind = f"np.{first.dtype.name}" if first is not None else f"{n.text(0)}.dtype"
    return f"np.arange({', '.join(n.texts())}, dtype={kind})"


# -- shapes


def shape_text(n: NodeArguments, place: int) -> str:
    """Return an input of integers as the text of a tuple."""
    found = n.sizes(place)
    if found is not None:
        if len(found.items) == 1 and found.items[0].startswith("*"):
            return found.items[0][1:]
        return literal_tuple(found.items)
    return f"tuple({n.text(place)})"


@writes("Shape")
def shape(w: GraphReader, n: NodeArguments) -> Any:
    start, end = n.integer("start", 0), n.integer("end", None)
    value = n.inputs[0]
    array = w.array(value)
    if array is not None:
        return Constant(np.array(array.shape[start:end], np.int64))
    known = w.known_shapes.get(value.number) if isinstance(value, Variable) else None
    if known is not None:
        items = [f"{n.text(0)}.shape[{i}]" if size is None else str(size) for i, size in enumerate(known)]
        return Sizes(tuple(items[start:end]))
    if end is not None and 0 <= start < end or start < 0 and end is not None and start < end < 0:
        return Sizes(tuple(f"{n.text(0)}.shape[{i}]" for i in range(start, end)))
    whole = f"{n.text(0)}.shape"
    return Sizes(
        (f"*{whole}" if not start and end is None else f"*{whole}[{start or ''}:{'' if end is None else end}]",)
    )


@writes("Size")
def size(w: GraphReader, n: NodeArguments) -> Any:
    found, array = n.inputs[0], n.constant(0)
    if array is not None:
        return Sizes((str(array.size),), True)
    if isinstance(found, Sizes):
        return Sizes((f"len({shape_text(n, 0)})",), True)
    return Sizes((f"{n.text(0)}.size",), True)


def _item(sizes: Sizes, index: int) -> str | None:
    """Return an element of integers, None if it is not known where it is."""
    items = sizes.items
    if len(items) == 1 and items[0].endswith(".shape"):
        return f"{items[0][1:]}[{index}]"
    before = items[: index + 1] if index >= 0 else items[index:]
    if not before or len(before) < (index + 1 if index >= 0 else -index) or any(i.startswith("*") for i in before):
        return None
    return items[index]


@writes("Gather")
def gather(w: GraphReader, n: NodeArguments) -> Any:
    axis, found, places = n.integer("axis", 0), n.sizes(0), n.constant(1)
    if found is not None and places is not None and places.ndim <= 1 and not found.scalar:
        items = [_item(found, i) for i in places.reshape(-1).tolist()]
        if all(item is not None for item in items):
            return Sizes(tuple(item for item in items if item is not None), places.ndim == 0)
    if places is not None and places.ndim == 0 and n.constant(0) is None and abs(axis) <= MAX_DIMS:
        before = ":, " * axis if axis >= 0 else "..., "
        after = ", :" * (-axis - 1) if axis < 0 else ""
        return f"{n.text(0)}[{before}{int(places)}{after}]"
    return f"np.take({n.text(0)}, {n.text(1)}, axis={axis})"


@writes("Reshape")
def reshape(w: GraphReader, n: NodeArguments) -> Any:
    x = n.text(0)
    if n.opset < 5:
        return f"{x}.reshape({literal_tuple(n.integers('shape', []))})"
    found = n.sizes(1)
    if found is None:
        return call("reshape", x, n.text(1)) if not n.integer("allowzero", 0) else f"{x}.reshape({n.text(1)})"
    if isinstance(n.inputs[0], Sizes) and len(found.items) <= 1:
        sizes = n.inputs[0]
        if found.items in ((), ("1",)) and len(sizes.items) == 1 and sizes.is_plain:
            return Sizes(sizes.items, not found.items)
        if found.items == ("-1",):
            return Sizes(sizes.items)
    items = list(found.items)
    if not n.integer("allowzero", 0):
        items = [f"{x}.shape[{i}]" if item == "0" else item for i, item in enumerate(items)]
    return f"{x}.reshape({', '.join(items) if items else '()'})"


@writes("Flatten")
def flatten(w: GraphReader, n: NodeArguments) -> Any:
    axis, x = n.integer("axis", 1), n.text(0)
    if axis == 1:
        return f"{x}.reshape({x}.shape[0], -1)"
    if axis == 0:
        return f"{x}.reshape(1, -1)"
    return f"{x}.reshape(int(np.prod({x}.shape[:{axis}])), -1)"


@writes("Transpose")
def transpose(w: GraphReader, n: NodeArguments) -> Any:
    order, value = n.integers("perm", None), n.inputs[0]
    if isinstance(value, Constant) and value.key and not value.view and value.array.ndim > 1:
        stored, view = value.array, ".T" if order in (None, [1, 0]) else f".transpose({', '.join(map(str, order))})"
        if order is None or sorted(order) == list(range(stored.ndim)):
            return Constant(stored.transpose(order), value.key, view, stored)
    return f"{n.text(0)}.T" if order is None else f"{n.text(0)}.transpose({', '.join(map(str, order))})"


@writes("Squeeze")
def squeeze(w: GraphReader, n: NodeArguments) -> Any:
    axes, found = n.ints(1, "axes"), n.sizes(0)
    if found is not None and found.is_plain and len(found.items) == 1 and (axes in (None, [0], [-1])):
        return Sizes(found.items, True)
    if axes is None:
        return f"np.squeeze({n.text(0)}{f', axis=tuple({n.text(1)})' if n.has(1) else ''})"
    return f"np.squeeze({n.text(0)}, axis={literal_tuple(axes) if len(axes) != 1 else axes[0]})"


@writes("Unsqueeze")
def unsqueeze(w: GraphReader, n: NodeArguments) -> Any:
    axes, found = n.ints(1, "axes"), n.sizes(0)
    if found is not None and found.scalar and axes in ([0], [-1]):
        return Sizes(found.items)
    if axes is None:
        return f"np.expand_dims({n.text(0)}, tuple({n.text(1)}))"
    return f"np.expand_dims({n.text(0)}, {literal_tuple(axes) if len(axes) != 1 else axes[0]})"


@writes("Concat")
def concat(w: GraphReader, n: NodeArguments) -> Any:
    found = [n.sizes(place) for place in range(len(n.inputs))]
    axis = n.integer("axis", 1 if n.opset < 4 else 0)
    if axis in (0, -1) and all(s is not None and not s.scalar for s in found):
        return Sizes(tuple(item for s in found if s is not None for item in s.items))
    return f"np.concatenate([{', '.join(n.texts())}], axis={axis})"


@writes("Split")
def split(w: GraphReader, n: NodeArguments) -> Any:
    axis, count, x = n.integer("axis", 0), len(n.outputs), n.text(0)
    sizes = n.ints(1, "split")
    if sizes is not None:
        if len(set(sizes)) == 1:
            text = f"np.split({x}, {len(sizes)}, axis={axis})"
        else:
            text = f"np.split({x}, {[sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]}, axis={axis})"
        count = len(sizes)
    elif n.has(1):
        text = call("split_axis", x, n.text(1), str(axis))
    else:
        count = n.integer("num_outputs", count)
        text = call("split_evenly", x, str(count), str(axis))
    parts = w.unpack(text, count, "part")
    return list(parts[: len(n.outputs)]) if len(n.outputs) > 1 else parts[0]


_LAST = (1 << 31) - 1  # from here on an end of a slice means the end


@writes("Slice")
def slice_(w: GraphReader, n: NodeArguments) -> Any:
    if n.opset < 10:
        starts, ends = ([str(i) for i in n.integers(name, [])] for name in ("starts", "ends"))
        axes: list[int] | None = n.integers("axes", list(range(len(starts))))
        steps: list[int] | None = [1] * len(starts)
    else:
        first, last = n.sizes(1), n.sizes(2)
        if first is None or last is None or not (first.is_plain and last.is_plain):
            return call("slice_axes", *n.texts()) if all(n.inputs) else _refuse("an input is left out")
        starts, ends = list(first.items), list(last.items)
        axes = n.ints(3) if n.has(3) else list(range(len(starts)))
        steps = n.ints(4) if n.has(4) else [1] * len(starts)
    if axes is None or steps is None or not len(starts) == len(ends) == len(axes) == len(steps) > 0:
        return call("slice_axes", *n.texts())
    found = n.sizes(0)
    if found is not None and axes in ([0], [-1]) and steps == [1] and all(map(_is_number, (*starts, *ends))):
        if found.is_plain:
            return Sizes(found.items[int(starts[0]) : int(ends[0])])
        if len(found.items) == 1 and found.items[0].endswith(".shape"):
            return Sizes((f"{found.items[0]}[{_bound(starts[0], False)}:{_bound(ends[0], True)}]",))
    if max(map(abs, axes)) > MAX_DIMS:
        raise UnwritableError(f"it has an axis beyond {MAX_DIMS}")
    parts: dict[int, str] = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        whole = step < 0 and _is_number(start) and _is_number(end) and int(end) <= -_LAST
        if axis < 0 and len(axes) > 1 or step < 0 and not (whole and (start == "-1" or int(start) >= _LAST)):
            return call("slice_axes", *n.texts()) if n.opset >= 10 else _refuse("its axes or steps are negative")
        parts[axis] = ":" if whole else f"{_bound(start, False)}:{_bound(end, True)}"
        parts[axis] += f":{step}" if step != 1 else ""
    if all(text == ":" for text in parts.values()):
        return n.inputs[0]
    return f"{n.text(0)}[{index_text(parts)}]"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+", text) is not None


def index_text(parts: dict[int, str]) -> str:
    """Return an index by dimension, counted from the first or, for one negative number, from the last."""
    if min(parts) < 0:
        ((axis, text),) = parts.items()
        return ", ".join(["...", text, *[":"] * (-axis - 1)])
    return ", ".join(parts.get(d, ":") for d in range(max(parts) + 1))


def _bound(text: str, end: bool) -> str:
    """Return a bound of a slice, none for the first and the last element."""
    if re.fullmatch(r"-?\d+", text):
        number = int(text)
        if end and number >= _LAST or not end and (number == 0 or number <= -_LAST):
            return ""
    return text


def _refuse(why: str) -> Any:
    raise UnwritableError(why)


@writes("Expand")
def expand(w: GraphReader, n: NodeArguments) -> Any:
    values, shape = n.constant(0), n.constant(1)
    if values is not None and shape is not None and math.prod(int(s) for s in shape) * values.size <= _SMALL:
        return Constant(values * np.ones(shape, values.dtype))
    return call("expand", n.text(0), shape_text(n, 1))


@writes("Tile")
def tile(w: GraphReader, n: NodeArguments) -> Any:
    if n.opset < 6:
        raise UnwritableError("Tile of opsets below 6 is not supported")
    return f"np.tile({n.text(0)}, {shape_text(n, 1)})"


@writes("Pad")
def pad(w: GraphReader, n: NodeArguments) -> Any:
    mode = n.option("mode", "constant")
    modes = {"constant": None, "reflect": "'reflect'", "edge": "'edge'", "wrap": "'wrap'"}
    if mode not in modes:
        raise UnwritableError(f"there is no mode {mode[:20]!r}")
    quoted = None if modes[mode] is None else f'"{mode}"'
    pads = n.ints(1, "pads") if n.opset >= 11 else n.integers("pads", n.integers("paddings", None))
    fill: str | None = None
    if n.opset < 11:
        fill = _option(n, "value", 0.0)
    elif n.has(2) and n.scalar(2) != 0:
        fill = _number_or_text(n, 2)
    axes = n.ints(3) if n.has(3) else None
    if n.has(3) and axes is None:
        raise UnwritableError("its axes are computed")
    if pads is None:
        pairs = call("pad_pairs", n.text(1), f"{n.text(0)}.ndim", axes=None if axes is None else literal_tuple(axes))
    elif axes is not None:
        given = f"np.array({pads}, dtype=np.int64)"
        pairs = call("pad_pairs", given, f"{n.text(0)}.ndim", axes=literal_tuple(axes))
    else:
        half = len(pads) // 2
        pairs = literal_tuple([literal_tuple(pair) for pair in zip(pads[:half], pads[half:], strict=True)])
    return call("pad", n.text(0), pairs, fill=fill, mode=quoted)


@writes("DepthToSpace")
def depth_to_space(w: GraphReader, n: NodeArguments) -> Any:
    crd = n.option("mode", "DCR") == "CRD"
    return call("depth_to_space", n.text(0), str(n.integer("blocksize", 1)), columns_first="True" if crd else None)


@writes("Trilu")
def trilu(w: GraphReader, n: NodeArguments) -> Any:
    k = (
        ""
        if not n.has(1) or n.scalar(1) == 0
        else f", {n.scalar(1) if n.scalar(1) is not None else f'int({n.text(1)})'}"
    )
    return f"np.{'triu' if n.integer('upper', 1) else 'tril'}({n.text(0)}{k})"


# -- chosen elements


@writes("ScatterElements", "Scatter")
def scatter_elements(w: GraphReader, n: NodeArguments) -> Any:
    return call("scatter_elements", *n.texts(), str(n.integer("axis", 0)), _reduction(n))


@writes("ScatterND")
def scatter_nd(w: GraphReader, n: NodeArguments) -> Any:
    return call("scatter_nd", *n.texts(), _reduction(n))


def _reduction(n: NodeArguments) -> str:
    found = n.option("reduction", "none")
    if found not in ("none", "add", "mul", "max", "min"):
        raise UnwritableError(f"there is no reduction {found[:20]!r}")
    return f'"{found}"'


@writes("OneHot")
def one_hot(w: GraphReader, n: NodeArguments) -> Any:
    axis, depth = n.integer("axis", -1), n.scalar(1)
    count = f"int({n.text(1)}.item())" if depth is None else str(int(depth))
    return call("one_hot", n.text(0), count, n.text(2), axis=None if axis == -1 else str(axis))


@writes("TopK")
def top_k(w: GraphReader, n: NodeArguments) -> Any:
    count = n.integer("k", None) if n.opset < 10 else n.scalar(1)
    found = None if n.opset < 10 else n.sizes(1)
    k = str(count) if count is not None else found.items[0] if found and found.is_plain else f"int({n.text(1)}.item())"
    text = call("top_k", n.text(0), k, str(n.integer("axis", -1)), str(bool(n.integer("largest", 1))))
    values, order = w.unpack(text, 2, "top")
    return [values, order][: len(n.outputs)] if len(n.outputs) > 1 else values


@writes("ArgMax", "ArgMin")
def arg_extremes(w: GraphReader, n: NodeArguments) -> Any:
    axis, keep = n.integer("axis", 0), bool(n.integer("keepdims", 1))
    if n.integer("select_last_index", 0):
        raise UnwritableError("the last of equal elements is not supported")
    return f"np.{n.kind.lower()}({n.text(0)}, axis={axis}{', keepdims=True' if keep else ''})"


@writes("CumSum", "CumProd")
def cumulate(w: GraphReader, n: NodeArguments) -> Any:
    axis = n.scalar(1)
    place = f"int({n.text(1)}.item())" if axis is None else str(int(axis))
    options = [str(bool(n.integer(name, 0))) for name in ("exclusive", "reverse")]
    if options == ["False", "False"] and n.kind == "CumSum":
        return f"np.cumsum({n.text(0)}, axis={place}, dtype={n.text(0)}.dtype)"
    return call("cumulate", n.text(0), place, *options, product="True" if n.kind == "CumProd" else None)


_REDUCTIONS = {
    "ReduceSum": "sum", "ReduceMean": "mean", "ReduceMax": "max", "ReduceMin": "min", "ReduceProd": "prod",
    "ReduceL1": "l1", "ReduceL2": "l2", "ReduceSumSquare": "sum_square", "ReduceLogSum": "log_sum",
    "ReduceLogSumExp": "log_sum_exp",
}  # fmt: skip


@writes(*_REDUCTIONS)
def reductions(w: GraphReader, n: NodeArguments) -> Any:
    kind, keep = _REDUCTIONS[n.kind], bool(n.integer("keepdims", 1))
    noop = bool(n.integer("noop_with_empty_axes", 0))
    axes = n.ints(1, "axes")
    if axes is None and n.has(1) or not axes and noop or kind not in ("mean", "max", "min"):
        given = n.text(1) if axes is None and n.has(1) else "None" if axes is None else literal_tuple(axes)
        return call("reduce_axes", n.text(0), given, str(keep), f'"{kind}"', noop="True" if noop else None)
    options = [] if not axes else [f"axis={axes[0] if len(axes) == 1 else literal_tuple(axes)}"]
    return f"{n.text(0)}.{kind}({', '.join([*options, *(['keepdims=True'] if keep else [])])})"
