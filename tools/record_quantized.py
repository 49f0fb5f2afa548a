"""Record what onnxruntime gives for integer products: ops of integers, and graphs of QuantizeLinear, a product and
QuantizeLinear, which it computes on levels.

usage: python tools/record_quantized.py

It needs onnx and onnxruntime, and rewrites tests/onnx/files/quantized.zip.
"""

from __future__ import annotations

import io
import pathlib
import zipfile
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

ARCHIVE = pathlib.Path(__file__).resolve().parents[1] / "tests/onnx/files/quantized.zip"
rng = np.random.default_rng(0)


def f(*shape: int) -> Any:
    return rng.standard_normal(shape).astype("f4")


def u8(*shape: int) -> Any:
    return rng.integers(0, 256, shape).astype("u1")


def i8(*shape: int) -> Any:
    return rng.integers(-128, 128, shape).astype("i1")


def i32(*shape: int) -> Any:
    return rng.integers(-9000, 9000, shape).astype("i4")


def scales(*shape: int) -> Any:
    return rng.uniform(0.002, 0.02, shape).astype("f4")


# Names, ops and their inputs (None: absent) with attributes.
OPS: list[tuple[str, str, list, dict]] = [
    ("pair", "MatMulInteger", [u8(5, 7), i8(7, 9)], {}),
    ("zero", "MatMulInteger", [u8(3, 130), u8(130, 70), u8(), u8()], {}),
    ("columns", "MatMulInteger", [u8(2, 17, 33), i8(33, 65), u8(), i8(65)], {}),
    ("stacks", "MatMulInteger", [i8(2, 3, 5, 64), i8(3, 64, 17), i8(), i8()], {}),
    ("padded", "ConvInteger", [u8(2, 3, 9, 8), u8(5, 3, 3, 2), u8(), u8()], {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
    ("groups", "ConvInteger", [u8(1, 4, 9, 9), u8(4, 1, 3, 3), u8()], {"group": 4, "dilations": [2, 1]}),
    ("row", "ConvInteger", [u8(2, 3, 40), u8(8, 3, 5)], {}),
    (
        "number", "QLinearMatMul",
        [u8(4, 40), scales(), u8(), i8(40, 30), scales(), i8(), np.array(0.06, "f4"), np.array(120, "u1")], {},
    ),
    (
        "columns", "QLinearMatMul",
        [u8(2, 9, 64), scales(), u8(), i8(64, 70), scales(70), i8(70), np.array(0.05, "f4"), np.array(130, "u1")], {},
    ),
    (
        "signed", "QLinearMatMul",
        [i8(4, 40), scales(), i8(), i8(40, 30), scales(), i8(), np.array(0.06, "f4"), np.array(-3, "i1")], {},
    ),
    (
        "filters", "QLinearConv",
        [u8(2, 3, 8, 7), scales(), u8(), i8(6, 3, 3, 3), scales(6), np.zeros(6, "i1"), np.array(0.02, "f4"),
         np.array(100, "u1"), i32(6)], {"pads": [1, 1, 1, 1]},
    ),
    (
        "depthwise", "QLinearConv",
        [u8(1, 8, 11, 10), scales(), u8(), u8(8, 1, 3, 3), scales(), u8(), np.array(0.03, "f4"), np.array(110, "u1")],
        {"group": 8, "strides": [2, 2]},
    ),
    ("range", "DynamicQuantizeLinear", [f(7, 50)], {}),
    ("positive", "DynamicQuantizeLinear", [abs(f(40)) + 1], {}),
    ("negative", "DynamicQuantizeLinear", [-abs(f(40)) - 1], {}),
    ("zeros", "DynamicQuantizeLinear", [np.zeros(5, "f4")], {}),
]  # fmt: skip


def make_op(op: str, inputs: list, attributes: dict) -> tuple[bytes, dict]:
    """A model of one op, and its inputs."""
    names = [f"i{k}" for k in range(len(inputs))]
    outputs = [f"o{k}" for k in range(3 if op == "DynamicQuantizeLinear" else 1)]
    node = helper.make_node(op, names, outputs, **attributes)
    given = dict(zip(names, inputs, strict=True))
    return make_model([node], given, {}, outputs), given


def make_model(nodes: list, given: dict, constants: dict, outputs: list[str]) -> bytes:
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in given.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model).SerializeToString()


class Graph:
    """A graph of quantized layers."""

    def __init__(self) -> None:
        self.nodes: list = []
        self.constants: dict[str, Any] = {}

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        out = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [out], **attributes))
        return out

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def quantize(self, x: str, scale: float, zero: Any) -> str:
        """The levels of a tensor."""
        return self.add("QuantizeLinear", x, self.constant(np.array(scale, "f4")), self.constant(zero))

    def dequantize(self, levels: str, quantize: int = -1) -> str:
        """What the levels of the last QuantizeLinear stand for."""
        node = next(node for node in self.nodes if node.output[0] == levels)
        return self.add("DequantizeLinear", levels, *node.input[1:])

    def weight(self, value: Any, scale: Any, axis: int) -> str:
        zero = np.zeros(scale.shape, value.dtype)
        return self.add("DequantizeLinear", *map(self.constant, (value, scale, zero)), axis=axis)


def make_graphs() -> dict[str, tuple[bytes, dict]]:
    """Models of QuantizeLinear and DequantizeLinear around products, and their inputs."""
    found = {}

    def finish(name: str, graph: Graph, given: dict, *outputs: str) -> None:
        found[name] = make_model(graph.nodes, given, graph.constants, list(outputs)), given

    for name, zero in (("unsigned", np.array(128, "u1")), ("signed", np.array(4, "i1"))):
        g = Graph()
        x = g.dequantize(g.quantize("i0", 0.03, zero))
        y = g.quantize(g.add("MatMul", x, g.weight(i8(96, 70), scales(70), 1)), 0.2, zero)
        finish(f"matmul_{name}", g, {"i0": f(2, 30, 96)}, y)
    g = Graph()
    zero = np.array(120, "u1")
    x = g.dequantize(g.quantize("i0", 0.03, zero))
    y = g.dequantize(g.quantize(g.add("MatMul", x, g.weight(i8(64, 33), scales(33), 1)), 0.2, zero))
    y = g.quantize(g.add("Relu", g.add("Add", y, g.constant(f(33)))), 0.1, np.array(0, "u1"))
    finish("layer", g, {"i0": f(20, 64)}, y)
    g = Graph()
    left, right = (
        g.dequantize(g.quantize(name, 0.03, np.array(zero, "u1"))) for name, zero in (("i0", 120), ("i1", 99))
    )
    y = g.quantize(g.add("MatMul", left, right), 0.1, np.array(111, "u1"))
    finish("attention", g, {"i0": f(2, 3, 20, 32), "i1": f(2, 3, 32, 50)}, y)
    g = Graph()
    x = g.dequantize(g.quantize("i0", 0.03, zero))
    factors = scales(21)
    bias = g.add(
        "DequantizeLinear", *map(g.constant, (i32(21), np.float32(0.03) * factors, np.zeros(21, "i4"))), axis=0
    )
    y = g.quantize(g.add("Gemm", x, g.weight(i8(21, 40), factors, 0), bias, transB=1), 0.1, zero)
    finish("gemm", g, {"i0": f(6, 40)}, y)
    g = Graph()
    x = g.dequantize(g.quantize("i0", 0.03, zero))
    factors = scales(7)
    bias = g.add("DequantizeLinear", *map(g.constant, (i32(7), np.float32(0.03) * factors, np.zeros(7, "i4"))), axis=0)
    y = g.add("Conv", x, g.weight(i8(7, 3, 3, 3), factors, 0), bias, pads=[1, 1, 1, 1], strides=[2, 1])
    finish("conv", g, {"i0": f(2, 3, 12, 11)}, g.quantize(y, 0.1, zero))
    g = Graph()
    x = g.dequantize(g.quantize("i0", 0.03, zero))
    y = g.add("MatMul", x, g.weight(i8(64, 33), scales(33), 1))
    finish("float", g, {"i0": f(20, 64)}, y)
    for name, op, weight, bias in (
        ("matmul", "MatMulInteger", i8(48, 35), i32(35)), ("conv", "ConvInteger", i8(6, 4, 3), i32(1, 6, 1)),
    ):  # fmt: skip
        g = Graph()
        g.nodes.append(helper.make_node("DynamicQuantizeLinear", ["i0"], ["levels", "scale", "zero"]))
        total = g.add(op, "levels", g.constant(weight), "zero")
        wide = g.add("Cast", g.add("Add", total, g.constant(bias)), to=onnx.TensorProto.FLOAT)
        y = g.add("Mul", wide, g.add("Mul", "scale", g.constant(np.array([0.02], "f4"))))
        finish(f"dynamic_{name}", g, {"i0": f(2, 9, 48) if name == "matmul" else f(2, 4, 30)}, y)
    return found


def main() -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    models = {f"{op}_{name}": make_op(op, inputs, attributes) for name, op, inputs, attributes in OPS}
    models |= {f"graph_{name}": made for name, made in make_graphs().items()}
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (model, given) in models.items():
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            found = {f"o{k}": value for k, value in enumerate(session.run(None, given))}
            held = io.BytesIO()
            np.savez(held, **given, **found)
            for suffix, data in (("onnx", model), ("npz", held.getvalue())):
                info = zipfile.ZipInfo(f"{name}.{suffix}")
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, data)


if __name__ == "__main__":
    main()
