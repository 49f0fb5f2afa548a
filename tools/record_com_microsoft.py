"""Record what onnxruntime gives for ops of the domain com.microsoft, as small models with inputs and results.

usage: python tools/record_com_microsoft.py

It needs onnx and onnxruntime, and rewrites tests/onnx/files/com_microsoft.zip.
"""

from __future__ import annotations

import io
import pathlib
import zipfile
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

ARCHIVE = pathlib.Path(__file__).resolve().parents[1] / "tests/onnx/files/com_microsoft.zip"
DOMAIN = "com.microsoft"
rng = np.random.default_rng(0)


def f(*shape: int) -> Any:
    return rng.standard_normal(shape).astype("f4")


def u8(*shape: int) -> Any:
    return rng.integers(0, 256, shape).astype("u1")


def i8(*shape: int) -> Any:
    return rng.integers(-128, 128, shape).astype("i1")


def S(value: Any) -> Any:
    """A scale."""
    return np.array(value, "f4")


def Z(value: int) -> Any:
    """A zero point."""
    return np.array(value, "u1")


def signed(value: int) -> Any:
    """A signed zero point."""
    return np.array(value, "i1")


def i16(*shape: int) -> Any:
    return rng.integers(-32768, 32768, shape).astype("i2")


def i4(*shape: int) -> Any:
    return rng.integers(-8, 8, shape).astype(ml_dtypes.int4)


r = rng
QUANTIZED_TABLES = [
    r.integers(0, 10, (2, 5)).astype("i4"), r.integers(0, 2, (2, 5)).astype("i4"), u8(10, 16), u8(6, 16), u8(2, 16),
    u8(16), u8(16),
]  # fmt: skip
TABLE_SCALES = (0.02, 0.03, 0.01, 0.02, 0.04)
TABLE_ZEROS = [Z(value) for value in (100, 120, 130, 3, 77)]
# Ops with cases: inputs (None: absent), attributes, and the number of outputs or their places.
CASES: dict[str, list] = {
    "DynamicQuantizeMatMul": [
        ([f(3, 8), u8(8, 5), S(0.02), Z(120)], {}, 1),
        ([f(2, 3, 8), i8(8, 5), f(5) ** 2 * 0.1 + 0.01, i8(5) * 0, f(5)], {}, 1),
    ],
    "MatMulIntegerToFloat": [
        ([u8(3, 8), u8(8, 5), S(0.02), S(0.03), Z(100), Z(130), f(5)], {}, 1),
        ([u8(3, 8), i8(8, 5), S(0.02), abs(f(5)) * 0.1, Z(100)], {}, 1),
    ],
    "QGemm": [
        (
            [
                u8(3, 8),
                S(0.02),
                Z(100),
                u8(8, 5),
                S(0.03),
                Z(130),
                r.integers(-900, 900, 5).astype("i4"),
                S(0.05),
                Z(128),
            ],
            {},
            1,
        ),
        ([u8(3, 8), S(0.02), Z(100), i8(5, 8), abs(f(5)) * 0.1, i8(5) * 0], {"transB": 1, "alpha": 2.0}, 1),
    ],
    **{
        name: [
            ([u8(3, 8), S(0.02), Z(100), u8(3, 8), S(0.03), Z(30), S(0.06), Z(90)], {}, 1),
            ([u8(30, 80), S(0.02), Z(100), u8(80), S(0.03), Z(30), S(0.06), Z(90)], {}, 1),
            ([i8(30, 80), S(0.02), signed(-28), i8(30, 80), S(0.03), signed(-98), S(0.06), signed(-38)], {}, 1),
            ([i8(), S(0.02), signed(-28), i8(30, 8), S(0.03), signed(-98), S(0.06), signed(-38)], {}, 1),
            ([u8(7, 1, 8), S(0.02), Z(100), u8(1, 9, 8), S(0.03), Z(30), S(0.06), Z(90)], {}, 1),
            ([u8(40, 1), S(0.02), Z(100), u8(40, 9), S(0.0337), Z(30), S(0.06), Z(90)], {}, 1),
        ]
        for name in ("QLinearAdd", "QLinearMul")
    },
    "QLinearSigmoid": [([u8(3, 8), S(0.02), Z(100), S(0.01), Z(0)], {}, 1)],
    "QLinearLeakyRelu": [([u8(3, 8), S(0.02), Z(100), S(0.01), Z(10)], {"alpha": 0.2}, 1)],
    "QLinearSoftmax": [
        ([u8(3, 8), S(0.02), Z(100), S(1 / 256), Z(0)], {"opset": 13, "axis": -1}, 1),
        ([u8(2, 3, 8), S(0.02), Z(100), S(1 / 256), Z(0)], {"opset": 11, "axis": 1}, 1),
        # The reciprocal of the result's scale is 255.5.
        ([u8(9, 60), S(0.05), Z(100), S(0.003914), Z(0)], {"opset": 13, "axis": 1}, 1),
        ([i8(3, 40, 7), S(0.05), signed(-3), S(0.0051), signed(-128)], {"opset": 13, "axis": 1}, 1),
    ],
    "QLinearConcat": [([S(0.05), Z(100), u8(2, 3), S(0.02), Z(90), u8(2, 4), S(0.04), Z(128)], {"axis": 1}, 1)],
    "QLinearGlobalAveragePool": [
        ([u8(2, 3, 5, 4), S(0.02), Z(100), S(0.01), Z(120)], {"channels_last": 0}, 1),
        ([u8(2, 5, 4, 3), S(0.02), Z(100), S(0.01), Z(120)], {"channels_last": 1}, 1),
    ],
    "QLinearAveragePool": [
        (
            [u8(2, 3, 6, 6), S(0.02), Z(100), S(0.02), Z(100)],
            {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
            1,
        ),
        ([u8(2, 3, 6, 6), S(0.02), Z(100), S(0.02), Z(100)], {"kernel_shape": [2, 2], "count_include_pad": 1}, 1),
    ],
    "DynamicQuantizeLSTM": [
        (
            [
                f(4, 2, 6),
                u8(1, 6, 32),
                u8(1, 8, 32),
                f(1, 64),
                None,
                None,
                None,
                None,
                S([0.01]),
                np.array([120], "u1"),
                S([0.02]),
                np.array([130], "u1"),
            ],
            {"hidden_size": 8},
            3,
        ),
        (
            [
                f(4, 2, 6),
                i8(2, 6, 32),
                i8(2, 8, 32),
                f(2, 64),
                None,
                f(2, 2, 8),
                f(2, 2, 8),
                None,
                abs(f(2, 32)) * 0.02,
                np.zeros((2, 32), "i1"),
                abs(f(2, 32)) * 0.02,
                np.zeros((2, 32), "i1"),
            ],
            {"hidden_size": 8, "direction": "bidirectional"},
            3,
        ),
    ],
    "Gelu": [([f(3, 5)], {}, 1)],
    "BiasGelu": [([f(3, 5), f(5)], {}, 1)],
    "FastGelu": [([f(3, 5), f(5)], {}, 1), ([f(3, 5)], {}, 1)],
    "QuickGelu": [([f(3, 5)], {"alpha": 1.5}, 1)],
    "FusedMatMul": [
        ([f(2, 3, 4), f(2, 5, 4)], {"transB": 1, "alpha": 0.5}, 1),
        ([f(4, 3), f(4, 5)], {"transA": 1}, 1),
        ([f(3, 2, 4), f(2, 4, 5)], {"transBatchA": 1}, 1),
    ],
    "FusedConv": [
        ([f(1, 3, 6, 6), f(4, 3, 3, 3), f(4)], {"activation": "Relu", "kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, 1),
        (
            [f(1, 3, 6, 6), f(4, 3, 3, 3), f(4)],
            {"activation": "LeakyRelu", "activation_params": [0.3], "kernel_shape": [3, 3]},
            1,
        ),
        (
            [f(1, 3, 6, 6), f(4, 3, 3, 3), f(4)],
            {"activation": "Clip", "activation_params": [-0.5, 0.6], "kernel_shape": [3, 3]},
            1,
        ),
        (
            [f(1, 3, 6, 6), f(4, 3, 3, 3), f(4)],
            {"activation": "HardSigmoid", "activation_params": [0.3, 0.4], "kernel_shape": [3, 3]},
            1,
        ),
    ],
    "FusedGemm": [
        ([f(3, 4), f(5, 4), f(5)], {"transB": 1, "activation": "LeakyRelu", "activation_alpha": 0.2, "alpha": 0.5}, 1)
    ],
    "SkipLayerNormalization": [
        ([f(2, 3, 8), f(2, 3, 8), f(8), f(8), f(8)], {"epsilon": 1e-5}, 1),
        ([f(2, 3, 8), f(2, 3, 8), f(8), f(8)], {"epsilon": 1e-5}, (0, 3)),
    ],
    "SkipSimplifiedLayerNormalization": [([f(2, 3, 8), f(2, 3, 8), f(8)], {"epsilon": 1e-5}, 1)],
    "EmbedLayerNormalization": [
        (
            [
                r.integers(0, 10, (2, 5)).astype("i4"),
                r.integers(0, 2, (2, 5)).astype("i4"),
                f(10, 8),
                f(6, 8),
                f(2, 8),
                f(8),
                f(8),
                np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], "i4"),
            ],
            {"epsilon": 1e-5},
            2,
        )
    ],
    "MultiHeadAttention": [
        ([f(2, 5, 8), f(2, 6, 8), f(2, 6, 8)], {"num_heads": 2}, 1),
        (
            [f(2, 5, 8), f(2, 6, 8), f(2, 6, 8), f(24), np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0]], "i4")],
            {"num_heads": 2},
            1,
        ),
    ],
    "Attention": [
        ([f(2, 5, 8), f(8, 24), f(24)], {"num_heads": 2}, 1),
        ([f(2, 5, 8), f(8, 24), f(24), np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "i4")], {"num_heads": 2}, 1),
        ([f(2, 5, 8), f(8, 24), f(24)], {"num_heads": 2, "unidirectional": 1}, 1),
        ([f(2, 5, 8), f(8, 24), f(24), None, f(2, 2, 2, 3, 4)], {"num_heads": 2, "unidirectional": 1}, 2),
    ],
    "MatMulNBits": [
        ([f(3, 32), u8(6, 2, 8), abs(f(12)) * 0.1], {"K": 32, "N": 6, "bits": 4, "block_size": 16}, 1),
        ([f(3, 32), u8(6, 2, 8), abs(f(12)) * 0.1, u8(6)], {"K": 32, "N": 6, "bits": 4, "block_size": 16}, 1),
        ([f(3, 40), u8(6, 3, 16), abs(f(18)) * 0.1], {"K": 40, "N": 6, "bits": 8, "block_size": 16}, 1),
    ],
    "QLinearWhere": [
        (
            [
                np.array([[1, 0, 1], [0, 1, 1]], bool),
                u8(2, 3),
                S(0.02),
                Z(100),
                u8(2, 3),
                S(0.04),
                Z(90),
                S(0.05),
                Z(100),
            ],
            {},
            1,
        )
    ],
    "QuantizeLinear": [([f(3, 4), S(0.02), Z(120)], {}, 1)],
    "DequantizeLinear": [([u8(3, 4), S(0.02), Z(120)], {}, 1)],
    "MatMulInteger16": [([i16(5, 7), i16(7, 9)], {}, 1)],
    "QLinearConv": [
        (
            [u8(2, 9, 8, 3), S(0.02), Z(100), i8(6, 3, 3, 3), abs(f(6)) * 0.01, i8(6) * 0, S(0.03), Z(120)],
            {"channels_last": 1, "pads": [1, 1, 1, 1]},
            1,
        )
    ],
    "QAttention": [
        ([u8(2, 5, 16), i8(16, 48), f(48), S(0.02), S(0.01), None, Z(120), signed(3)], {"num_heads": 2}, 1),
        (
            [u8(2, 5, 16), u8(16, 48), f(48), S(0.02), S(0.01), np.array([3, 5], "i4"), Z(120), Z(99)],
            {"num_heads": 4, "unidirectional": 1, "scale": 0.3},
            1,
        ),
        (
            [
                u8(2, 5, 16),
                i8(16, 48),
                f(48),
                S(0.02),
                abs(f(48)) * 0.01,
                np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "i4"),
                Z(120),
                i8(48) * 0,
            ],
            {"num_heads": 2},
            1,
        ),
        (
            [u8(2, 5, 16), i8(16, 48), f(48), S(0.02), S(0.01), None, Z(120), signed(3), f(2, 2, 2, 4, 8)],
            {"num_heads": 2, "unidirectional": 1},
            2,
        ),
    ],
    "QEmbedLayerNormalization": [
        (
            [
                *QUANTIZED_TABLES,
                np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], "i4"),
                *map(S, TABLE_SCALES),
                *TABLE_ZEROS,
            ],
            {"epsilon": 1e-5},
            2,
        )
    ],
    "MatMulBnb4": [
        ([f(3, 64), u8(256), abs(f(8)) * 0.1], {"K": 64, "N": 8, "block_size": 64, "quant_type": quant_type}, 1)
        for quant_type in (0, 1)
    ],
    "GatherBlockQuantized": [
        ([u8(10, 32), r.integers(0, 10, (2, 3)), abs(f(10, 4))], {"block_size": 16, "quantize_axis": 1}, 1),
        (
            [u8(10, 64), r.integers(0, 10, (2, 3)), abs(f(10, 4)), u8(10, 4)],
            {"block_size": 16, "quantize_axis": 1, "bits": 8},
            1,
        ),
        (
            [i4(6, 5, 32), r.integers(0, 5, 4), abs(f(6, 5, 2)), i4(6, 5, 2)],
            {"block_size": 16, "quantize_axis": 2, "gather_axis": 1},
            1,
        ),
    ],
}


def make_model(name: str, inputs: list, attributes: dict, outputs: Any) -> bytes:
    names = ["" if value is None else f"i{k}" for k, value in enumerate(inputs)]
    places = range(outputs) if isinstance(outputs, int) else outputs
    results = [f"o{k}" if k in places else "" for k in range(max(places) + 1)]
    node = helper.make_node(name, names, results, domain=DOMAIN, **attributes)
    given = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for n, value in zip(names, inputs, strict=True)
        if value is not None and not is_narrow(value)
    ]
    constants = [numpy_helper.from_array(v, n) for n, v in zip(names, inputs, strict=True) if is_narrow(v)]
    graph = helper.make_graph([node], "graph", given, [onnx.ValueInfoProto(name=n) for n in results if n], constants)
    opsets = [helper.make_opsetid("", 21 if constants else 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10 if constants else 8).SerializeToString()


def is_narrow(value: Any) -> bool:
    """True for levels that NumPy's files do not hold: they are constants of the model."""
    return value is not None and value.dtype.kind == "V"


def main() -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # several threads quantize parts of a batch apart
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, cases in CASES.items():
            for number, (inputs, attributes, outputs) in enumerate(cases):
                model = make_model(name, inputs, attributes, outputs)
                session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
                given = {f"i{k}": v for k, v in enumerate(inputs) if v is not None and not is_narrow(v)}
                found = {f"o{k}": value for k, value in enumerate(session.run(None, given))}
                held = io.BytesIO()
                np.savez(held, **given, **found)
                for suffix, data in (("onnx", model), ("npz", held.getvalue())):
                    info = zipfile.ZipInfo(f"{name}_{number}.{suffix}")
                    info.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(info, data)


if __name__ == "__main__":
    main()
