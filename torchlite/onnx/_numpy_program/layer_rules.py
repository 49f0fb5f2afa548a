"""Rules of layers: products, convolutions, pools, normalizations, recurrent and quantized layers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .expressions import UnwritableError, literal_number, literal_tuple
from .graph_reader import GraphReader, NodeArguments, call, writes


@writes("Gemm")
def gemm(w: GraphReader, n: NodeArguments) -> Any:
    a, b = n.text(0), n.text(1)
    out = f"{a}.T @ " if n.integer("transA", 0) else f"{a} @ "
    out += f"{b}.T" if n.integer("transB", 0) else b
    alpha, beta = (n.number(name, 1.0) for name in ("alpha", "beta"))
    if alpha != 1:
        out = f"{literal_number(alpha)} * ({out})"
    if not n.has(2):
        return out
    return f"{out} + {n.text(2)}" if beta == 1 else f"{out} + {literal_number(beta)} * {n.text(2)}"


@writes("Einsum")
def einsum(w: GraphReader, n: NodeArguments) -> Any:
    equation = n.option("equation", "").replace(" ", "")
    if not re.fullmatch(r"([A-Za-z.,]*)(->[A-Za-z.]*)?", equation):
        raise UnwritableError("its equation has other characters than letters")
    return f'np.einsum("{equation}", {", ".join(n.texts())}, optimize=True)'


# -- windows


def _pairs(pads: list[int]) -> str | None:
    """Return padding as pairs of each dimension, None for none."""
    half = len(pads) // 2
    if not any(pads):
        return None
    return literal_tuple([literal_tuple(pair) for pair in zip(pads[:half], pads[half:], strict=True)])


def _padding(n: NodeArguments) -> str | None:
    auto = n.option("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        return '"upper"' if auto == "SAME_UPPER" else '"lower"'
    if auto not in ("NOTSET", "VALID", ""):
        raise UnwritableError(f"there is no padding {auto[:20]!r}")
    return _pairs(n.integers("pads", [])) if auto != "VALID" else None


def _unless_ones(numbers: list[int]) -> str | None:
    return literal_tuple(numbers) if any(number != 1 for number in numbers) else None


def _window_options(n: NodeArguments) -> dict[str, str | None]:
    groups = n.integer("group", 1)
    return {
        "strides": _unless_ones(n.integers("strides", [])),
        "padding": _padding(n),
        "dilations": _unless_ones(n.integers("dilations", [])),
        "groups": str(groups) if groups != 1 else None,
    }


@writes("Conv")
def conv(w: GraphReader, n: NodeArguments) -> Any:
    return call("conv", *n.texts(), **_window_options(n))


@writes("ConvTranspose")
def conv_transpose(w: GraphReader, n: NodeArguments) -> Any:
    extra, shape = n.integers("output_padding", []), n.integers("output_shape", [])
    return call(
        "conv_transpose",
        *n.texts(),
        **_window_options(n),
        output_padding=literal_tuple(extra) if any(extra) else None,
        output_shape=literal_tuple(shape) if shape else None,
    )


@writes("MaxPool", "AveragePool")
def pool(w: GraphReader, n: NodeArguments) -> Any:
    if len(n.outputs) > 1:
        raise UnwritableError("indices of a pool are not supported")
    kernel = n.integers("kernel_shape", [])
    options = {
        "padding": _padding(n),
        "dilations": _unless_ones(n.integers("dilations", [])),
        "ceil": "True" if n.integer("ceil_mode", 0) else None,
    }
    if n.kind == "AveragePool":
        options["count_padding"] = "True" if n.integer("count_include_pad", 0) else None
    strides = n.integers("strides", [1] * len(kernel))
    function = "max_pool" if n.kind == "MaxPool" else "average_pool"
    return call(function, n.text(0), literal_tuple(kernel), literal_tuple(strides), **options)


@writes("GlobalAveragePool", "GlobalMaxPool")
def global_pool(w: GraphReader, n: NodeArguments) -> Any:
    axes = call("spatial_axes", n.text(0))
    return f"{n.text(0)}.{'mean' if n.kind == 'GlobalAveragePool' else 'max'}(axis={axes}, keepdims=True)"


# -- normalizations


@writes("BatchNormalization")
def batch_norm(w: GraphReader, n: NodeArguments) -> Any:
    if n.integer("training_mode", 0) or len(n.outputs) > 1:
        raise UnwritableError("it is in training mode")
    if not n.integer("spatial", 1):
        raise UnwritableError("means of single elements are not supported")
    return call("batch_norm", *n.texts(), _epsilon(n))


def _epsilon(n: NodeArguments) -> str:
    return literal_number(np.float32(n.number("epsilon", 1e-5)))


@writes("LayerNormalization")
def layer_norm(w: GraphReader, n: NodeArguments) -> Any:
    if len(n.outputs) > 1:
        raise UnwritableError("its mean as a result is not supported")
    axis = n.integer("axis", -1)
    return call("layer_norm", *n.texts(), axis=None if axis == -1 else str(axis), epsilon=_epsilon(n))


# -- recurrent layers


@writes("LSTM", "GRU", "RNN")
def recurrent(w: GraphReader, n: NodeArguments) -> Any:
    direction = n.option("direction", "forward")
    ways = {"forward": None, "reverse": "(True,)", "bidirectional": "(False, True)"}
    if direction not in ways:
        raise UnwritableError(f"there is no direction {direction[:20]!r}")
    count = 2 if direction == "bidirectional" else 1
    usual = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}[n.kind] * count
    names = [name.lower() for name in n.options("activations", usual)]
    relu = n.kind == "RNN" and names == ["relu"] * count
    if names != usual and not relu:
        raise UnwritableError("other activations than the usual ones are not supported")
    if n.number("clip", None) is not None or n.integer("input_forget", 0):
        raise UnwritableError("clipped gates and coupled ones are not supported")
    if n.has(4):
        raise UnwritableError("lengths of sequences are not supported")
    if n.has(7):
        raise UnwritableError("peepholes are not supported")
    options = {
        "bias": n.text(3) if n.has(3) else None,
        "hidden": n.text(5) if n.has(5) else None,
        "cell": n.text(6) if n.has(6) else None,
        "reverse": ways[direction],
        "reset_after": "True" if n.integer("linear_before_reset", 0) and n.kind == "GRU" else None,
        "relu": "True" if relu else None,
        "batch_first": "True" if n.integer("layout", 0) else None,
    }
    text = call(n.kind.lower(), n.text(0), n.text(1), n.text(2), **options)
    parts = w.unpack(text, 3 if n.kind == "LSTM" else 2, n.kind.lower())
    return list(parts[: len(n.outputs)]) if len(n.outputs) > 1 else parts[0]


# -- images


@writes("Resize", "Upsample")
def resize(w: GraphReader, n: NodeArguments) -> Any:
    mode = {"bilinear": "linear"}.get(n.option("mode", "nearest"), n.option("mode", "nearest"))
    old = n.kind == "Upsample" or n.opset < 11
    sizes, scales = (None, 1) if old else (3 if n.has(3) else None, 2)
    if n.kind == "Upsample" and n.opset < 9:
        factors: str | None = literal_tuple(n.numbers("scales"))
    else:
        factors = None if sizes else _numbers(n, scales)
    coordinates = "asymmetric" if old else n.option("coordinate_transformation_mode", "half_pixel")
    nearest = "floor" if old else n.option("nearest_mode", "round_prefer_floor")
    known = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
    rules = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    if mode not in ("nearest", "linear", "cubic") or coordinates not in known or nearest not in rules:
        raise UnwritableError(f"the mode {mode[:20]!r} of {coordinates[:40]!r} is not supported")
    for name in ("antialias", "exclude_outside"):
        if n.integer(name, 0):
            raise UnwritableError(f"its attribute {name} is not supported")
    if n.option("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise UnwritableError("it keeps the ratio of sizes, which is not supported")
    cubic = n.number("cubic_coeff_a", -0.75)
    axes = n.integers("axes", [])
    found = n.sizes(sizes) if sizes else None
    return call(
        "resize",
        n.text(0),
        scales=factors,
        sizes=None if not sizes else literal_tuple(found.items) if found is not None else n.text(sizes),
        mode=f'"{mode}"' if mode != "nearest" else None,
        coordinates=f'"{coordinates}"' if coordinates != "half_pixel" else None,
        nearest=f'"{nearest}"' if mode == "nearest" and nearest != "round_prefer_floor" else None,
        cubic=literal_number(cubic) if mode == "cubic" and cubic != np.float32(-0.75) else None,
        axes=literal_tuple(axes) if axes else None,
    )


def _numbers(n: NodeArguments, place: int) -> str:
    array = n.constant(place)
    return n.text(place) if array is None else literal_tuple([float(v) for v in array.reshape(-1)])


# -- quantized numbers


@writes("QuantizeLinear")
def quantize(w: GraphReader, n: NodeArguments) -> Any:
    zero = n.text(2) if n.has(2) else "np.uint8(0)"
    return call("quantize", n.text(0), n.text(1), zero, axis=_axis(n))


def _axis(n: NodeArguments) -> str | None:
    axis = n.integer("axis", 1)
    return None if axis == 1 else str(axis)


@writes("DequantizeLinear")
def dequantize(w: GraphReader, n: NodeArguments) -> Any:
    return call("dequantize", n.text(0), n.text(1), *([n.text(2)] if n.has(2) else []), axis=_axis(n))


@writes("DynamicQuantizeLinear")
def dynamic_quantize(w: GraphReader, n: NodeArguments) -> Any:
    return list(w.unpack(call("dynamic_quantize", n.text(0)), 3, "quantized"))[: len(n.outputs)]


def _shifted(w: GraphReader, n: NodeArguments, value: int, zero: int, axis: int) -> str:
    return call("without_zero_point", n.text(value), n.text(zero) if n.has(zero) else "None", str(axis))


@writes("MatMulInteger")
def matmul_integer(w: GraphReader, n: NodeArguments) -> Any:
    return f"({_shifted(w, n, 0, 2, -2)} @ {_shifted(w, n, 1, 3, -1)}).astype(np.int32)"


@writes("ConvInteger")
def conv_integer(w: GraphReader, n: NodeArguments) -> Any:
    text = call("conv", _shifted(w, n, 0, 2, 1), _shifted(w, n, 1, 3, 0), **_window_options(n))
    return f"np.rint({text}).astype(np.int32)"
